/* SPDX-License-Identifier: MIT
 *
 * A container: how its files fill a checkpoint. One file of src/formats/ each, and a row in sniff.c.
 */
#ifndef QUERN_FORMAT_H
#define QUERN_FORMAT_H

#include "checkpoint.h"

/* Appends to ck->header. */
int ck_keep(struct checkpoint *ck, const uint8_t *bytes, size_t n, struct error *err);
int ck_add_meta(struct checkpoint *ck, const struct meta *m, struct error *err);
int ck_add_tensor(struct checkpoint *ck, const struct tensor *t, struct error *err);
/* The same for metadata that the file words otherwise: key and value are appended to ck->header. */
int ck_put_text(struct checkpoint *ck, const char *key, struct bytes text, struct error *err);
int ck_put_int(struct checkpoint *ck, const char *key, int64_t value, struct error *err);
int ck_put_float(struct checkpoint *ck, const char *key, double value, struct error *err);
int ck_put_bool(struct checkpoint *ck, const char *key, bool value, struct error *err);
int ck_put_array(struct checkpoint *ck, const char *key, enum meta_type element, struct bytes data, uint64_t count, struct error *err);
/* Adds a copy of all tensors of another file, as if that began at `at`. */
int ck_gather(struct checkpoint *ck, const struct checkpoint *from, uint64_t at, struct error *err);
void ck_sort_tensors(struct checkpoint *ck); /* by their places; empty ones first */
/* Sorts both lists and checks what no format may violate: duplicates, overlaps. */
int ck_complete(struct checkpoint *ck, struct error *err);

uint64_t name_hash(struct bytes name); /* FNV-1a */

enum { SNIFF = 24 }; /* bytes that tell what a file is */

/* A container. Of a side file, which has `read`, everything is header. */
struct format {
    const char *name;
    const char *too_short, *too_long; /* rules, where the header says how long the file is; NULL: "truncated"; it may be longer */
    bool (*sniff)(const uint8_t *bytes, size_t n); /* n >= 4 */
    int (*header)(struct checkpoint *ck, const uint8_t *bytes, size_t n, size_t *used, struct error *err);
    int (*ended)(struct checkpoint *ck, struct error *err);
    int (*read)(struct checkpoint *file, struct checkpoint *model, struct error *err);
};
/* By the first bytes, n >= 4; ERR_FORMAT "magic" guesses what another file is. */
int format_sniff(const uint8_t *bytes, size_t n, const struct format **out, struct error *err);
extern const struct format format_gguf, format_safetensors, format_ajc1; /* weights */
extern const struct format format_json, format_tokenizer;                /* side files */

#endif
