/* SPDX-License-Identifier: MIT
 *
 * The input of one step: rows of any number of sequences, prefill chunks and decoded tokens mixed. This is the only way
 * into a model, for prefill and decode alike.
 */
#ifndef QUERN_BATCH_H
#define QUERN_BATCH_H

#include "compute/backend.h"

struct batch {
    int n;                  /* rows */
    int32_t *tokens;        /* [n]; any value for a row with features */
    /* [n], or NULL: no row has features. NULL for a row: it is its token; else [1 + n_added, dim]: the values in place
     * of the embedding, then the values to add to the row after layer 0, 1, ... */
    const float **features;
    int n_added;            /* at most the layers of the model */
    struct kv_row *kv;      /* [n]; rows of one sequence are neighbours, in order */
    int32_t (*pos)[3];      /* [n] rope positions: time, row, column; text: three equal */
    struct state_run *runs; /* [n_runs] all rows, in their order: one run for each sequence in the step, or two */
    int n_runs;
    int n_out;              /* rows whose logits or hidden state is wanted */
    int n_logits;           /* the first n_logits of them want logits, the others only their hidden state */
    int32_t *out;           /* [n_out] row numbers */
};

/* The results of a step. */
struct outputs {
    struct handle logits; /* [n_logits, vocab_size] */
    struct handle hidden; /* [n_out - n_logits, dim] after the last norm, of the rows that want no logits */
};

#endif
