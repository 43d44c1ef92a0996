/* SPDX-License-Identifier: MIT
 *
 * One step's input: rows of any number of sequences, prefill chunks and decoded tokens mixed. There is no other way
 * into a model: prefill, decode, chunks and batches are all this.
 */
#ifndef QUERN_BATCH_H
#define QUERN_BATCH_H

#include "compute/backend.h"

struct batch {
    int n;                  /* rows */
    int32_t *tokens;        /* [n]; of a row with features any */
    const float **features; /* [n], or NULL: none. NULL: the row is its token; else [1 + n_added, dim]: what stands in
                               its place, then what is added to the row after layer 0, 1, ... */
    int n_added;            /* at most the layers of the model */
    struct kv_row *kv;      /* [n]; rows of one sequence are neighbours, in order */
    int32_t (*pos)[3];      /* [n] rope positions: time, row, column; text: three equal */
    struct state_run *runs; /* [n_runs] all rows, in their order: one run for each sequence in the step, or two */
    int n_runs;
    int n_out;              /* rows of which something is wanted */
    int n_logits;           /* the first n_logits of them want logits, the others their hidden state only */
    int32_t *out;           /* [n_out] their numbers */
};

/* What a step made. */
struct outputs {
    struct handle logits; /* [n_logits, vocab_size] */
    struct handle hidden; /* [n_out - n_logits, dim] after the last norm, of those rows that want no logits */
};

#endif
