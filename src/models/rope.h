/* SPDX-License-Identifier: MIT
 *
 * RoPE's frequencies, and YaRN, which extends a model's context: slow frequencies are divided by a factor, fast ones
 * kept, those between blended, and cosines and sines grow a little. A row has three positions (time, row, column of an
 * image's part), and sections say which of them turns a pair of columns. MODEL.md has the formulas.
 */
#ifndef QUERN_ROPE_H
#define QUERN_ROPE_H

#include "models/model.h"

struct rope {
    int dim;                     /* columns that turn: pairs (i, i + dim / 2) */
    int sections[3];             /* pairs that turn by each position; all 0: by the first one */
    double theta;
    double factor;               /* of YaRN; 1: none */
    double original;             /* positions the model was trained for */
    double beta_fast, beta_slow; /* turns within these, above and below which frequencies are fast and slow */
    double magnitude;            /* of cosines and sines */
    bool whole;                  /* blending begins and ends at whole columns */
};

/* From the keys ARCHITECTURE.rope.*; c has rope_dim, theta and the context's length. Scalings other than YaRN:
 * ERR_UNSUPPORTED "rope-scaling". */
int rope_read(const struct checkpoint *ck, const char *architecture, const struct model_config *c, struct rope *out,
              struct error *err);
/* out [dim / 2] radians per position */
void rope_frequencies(const struct rope *r, double *out);
/* Which of a row's three positions turns pair i. */
int rope_axis(const struct rope *r, int i);

#endif
