/* SPDX-License-Identifier: MIT
 *
 * Typed access to a checkpoint's metadata. What is found is borrowed, valid until ck_close.
 */
#ifndef QUERN_METADATA_H
#define QUERN_METADATA_H

#include "load/checkpoint.h"

const struct meta *meta_find(const struct checkpoint *ck, const char *key); /* NULL when absent */

/* Typed access. Absent: `missing` when it is not NULL, else ERR_FORMAT "missing". Wrong type: ERR_FORMAT "kv-type".
 * Out of lo..hi: ERR_INCONSISTENT "value". Integers of any width and sign are accepted where their value fits. */
int meta_int(const struct checkpoint *ck, const char *key, int64_t lo, int64_t hi, const int64_t *missing, int64_t *out,
             struct error *err);
/* The same of an array that is there and has a number for each layer, which must be equal: ERR_UNSUPPORTED "value"
 * where they are not. */
int meta_layers(const struct checkpoint *ck, const char *key, int n_layers, int64_t lo, int64_t hi, int64_t *out,
                struct error *err);
int meta_float(const struct checkpoint *ck, const char *key, double lo, double hi, const double *missing, double *out,
               struct error *err);
int meta_bool(const struct checkpoint *ck, const char *key, bool missing, bool *out, struct error *err);
int meta_text(const struct checkpoint *ck, const char *key, bool required, struct bytes *out, struct error *err);
/* The packed elements of an array of exactly this element type. Absent and not required: count 0. */
int meta_array(const struct checkpoint *ck, const char *key, enum meta_type element, bool required, struct bytes *data,
               uint64_t *count, struct error *err);

/* --- split models: the first file has the metadata, each its own tensors --- */

struct split {
    int64_t files, number; /* how many, and which one of them this is, from 0 */
    int64_t tensors;       /* of all files; 0: not said */
};

/* {1, 0, 0} for a file that is whole. */
int ck_split(const struct checkpoint *ck, struct split *out, struct error *err);
/* Tensors of all files, by what this one says; its own at least. */
uint64_t ck_tensors_in_all(const struct checkpoint *ck);

#endif
