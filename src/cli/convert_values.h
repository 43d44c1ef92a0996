/* SPDX-License-Identifier: MIT
 *
 * What becomes of weights that a folder stores otherwise than GGUF files do. Qwen3.5's folders store norms less 1, the
 * logarithms of decays, and the value heads of a key head as neighbours; in GGUF files value head h belongs to key head
 * h % n_keys. Folders of Llama and SmolLM3 have the rows of q and k that RoPE turns together half a head apart; in GGUF
 * files they are neighbours.
 */
#ifndef QUERN_CONVERT_VALUES_H
#define QUERN_CONVERT_VALUES_H

#include "load/checkpoint.h"

/* How the model's files store weights. All zero: as GGUF files do. */
struct storage {
    bool zero_centered;         /* norms less 1; decays as logarithms */
    int n_keys, n_values, size; /* heads of linear attention that must be moved, and their size; n_values 0: none */
    int head;                   /* rows of each head of q and k that are to be moved; 0: they stay */
};

/* How one tensor changes. All zero: not at all. */
struct change {
    bool add_one, decay;
    bool columns;               /* the heads lie in columns, not in rows */
    int n_keys, n_values, size; /* heads, and the rows or columns of each; n_values 0: they stay */
    int first;                  /* rows before the heads */
    int paired;                 /* rows of each head whose halves alternate in the file; 0: they stay */
};

/* prefix: of the model's keys. */
int storage_read(const struct checkpoint *ck, const char *prefix, struct storage *out, struct error *err);
/* Finds how the tensor changes, and replaces its name by GGUF's. */
struct change change_of(const struct storage *s, char *name);

/* Where a row goes. */
int change_place(const struct change *c, int row);
/* Changes the values of a row. x, scratch: [cols] */
void change_row(const struct change *c, float *x, int cols, float *scratch);

#endif
