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
    int32_t *tokens;        /* [n] */
    struct kv_row *kv;      /* [n]; rows of one sequence are neighbours, in order */
    int32_t (*pos)[3];      /* [n] rope positions; text: three equal */
    int n_out;              /* rows that want logits */
    int32_t *out;           /* [n_out] their numbers, ascending */
};

#endif
