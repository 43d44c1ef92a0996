/* SPDX-License-Identifier: MIT
 *
 * RoPE's frequencies, and YaRN, which extends a model's context: slow frequencies are divided by a factor, fast ones kept, those
 * between blended, and cosines and sines grow a little. MODEL.md has the formulas.
 */
#ifndef QUERN_ROPE_H
#define QUERN_ROPE_H

#include "models/model.h"

struct rope {
    double theta;
    double factor;               /* of YaRN; 1: none */
    double original;             /* positions the model was trained for */
    double beta_fast, beta_slow; /* turns within these, above and below which frequencies are fast and slow */
    double magnitude;            /* of cosines and sines */
};

/* From the keys ARCHITECTURE.rope.scaling.*; c has theta and the context's length. Scalings other than YaRN: ERR_UNSUPPORTED "rope-scaling". */
int rope_read(const struct checkpoint *ck, const char *architecture, const struct model_config *c, struct rope *out, struct error *err);
/* out [head_dim / 2] radians per position */
void rope_frequencies(const struct rope *r, int head_dim, double *out);

#endif
