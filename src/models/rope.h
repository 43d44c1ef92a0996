/* SPDX-License-Identifier: MIT
 *
 * RoPE's frequencies, and what extends a model's context: slow frequencies are divided by a factor, fast ones stay,
 * those between are blended. YaRN blends by columns, and cosines and sines grow a little; Llama 3 blends by turns. A
 * row has three positions (time, row and column of an image's part); the sections say which of them turns a pair of
 * columns. MODEL.md has the formulas.
 */
#ifndef QUERN_ROPE_H
#define QUERN_ROPE_H

#include "models/model.h"

struct rope {
    int dim;                     /* columns that turn: pairs (i, i + dim / 2) */
    int sections[3];             /* pairs that each position turns; all 0: the first one turns all */
    double theta;
    enum { ROPE_AS_IS, ROPE_YARN, ROPE_LLAMA3 } scaling;
    double factor;               /* by which the scaling extends the context; 1: not at all */
    double original;             /* positions the model was trained for */
    /* turns within `original`: above beta_fast a frequency is fast, below beta_slow it is slow */
    double beta_fast, beta_slow;
    double magnitude;            /* of cosines and sines */
    bool whole;                  /* YaRN's blending begins and ends at whole columns */
};

/* Reads the keys ARCHITECTURE.rope.*; c provides rope_dim, theta and the context's length. ERR_UNSUPPORTED
 * "rope-scaling": a scaling other than YaRN and Llama 3's. */
int rope_read(const struct checkpoint *ck, const char *architecture, const struct model_config *c, struct rope *out,
              struct error *err);
/* out [dim / 2] radians per position */
void rope_frequencies(const struct rope *r, double *out);
/* What Llama 3's scaling divides frequency i by, as GGUF files have it in the tensor rope_freqs. */
float rope_divisor(const struct rope *r, int i);
/* Which of a row's three positions turns pair i. */
int rope_axis(const struct rope *r, int i);

#endif
