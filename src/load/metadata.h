/* SPDX-License-Identifier: MIT
 *
 * Typed access to a checkpoint's metadata. Results are views that are valid until ck_close().
 */
#ifndef QUERN_METADATA_H
#define QUERN_METADATA_H

#include "load/checkpoint.h"

const struct meta *meta_find(const struct checkpoint *ck, const char *key); /* NULL when absent */

/* Typed access. If the key is absent, the result is `missing`, or ERR_FORMAT "missing" if that is NULL. Wrong type:
 * ERR_FORMAT "kv-type". Outside lo..hi: ERR_INCONSISTENT "value". Integers of any width and sign are accepted if their
 * value fits. */
int meta_int(const struct checkpoint *ck, const char *key, int64_t lo, int64_t hi, const int64_t *missing, int64_t *out,
             struct error *err);
/* Reads element i of an array that exists and must have n > 0 of them, one for each layer: an integer, or a truth value
 * as 1 or 0. Another number of elements: ERR_INCONSISTENT "value". */
int meta_element(const struct checkpoint *ck, const char *key, uint64_t i, uint64_t n, int64_t *out, struct error *err);
int meta_float(const struct checkpoint *ck, const char *key, double lo, double hi, const double *missing, double *out,
               struct error *err);
int meta_bool(const struct checkpoint *ck, const char *key, bool missing, bool *out, struct error *err);
int meta_text(const struct checkpoint *ck, const char *key, bool required, struct bytes *out, struct error *err);
/* Returns the packed elements of an array of exactly this element type. Absent and not required: count 0. */
int meta_array(const struct checkpoint *ck, const char *key, enum meta_type element, bool required, struct bytes *data,
               uint64_t *count, struct error *err);

/* --- split models: the first file has the metadata, each file has its own tensors --- */

struct split {
    int64_t files, number; /* number of files, and number of this one, from 0 */
    int64_t tensors;       /* in all files together; 0: unknown */
};

/* Gives {1, 0, 0} for a model in one file. */
int ck_split(const struct checkpoint *ck, struct split *out, struct error *err);
/* Number of tensors in all files by this file's metadata, at least its own number. */
uint64_t ck_tensors_in_all(const struct checkpoint *ck);

#endif
