/* SPDX-License-Identifier: MIT
 *
 * A container: how its files fill a checkpoint. One file of src/load/formats/ each, and a row in sniff.c.
 */
#ifndef QUERN_FORMAT_H
#define QUERN_FORMAT_H

#include "load/checkpoint.h"

enum { SNIFF = 24 }; /* bytes that tell what a file is */

/* A container. Of a side file, which has `read`, everything is header. */
struct format {
    const char *name;
    /* rules, where the header says how long the file is; NULL: "truncated"; it may be longer */
    const char *too_short, *too_long;
    bool (*sniff)(const uint8_t *bytes, size_t n); /* n >= 4 */
    int (*header)(struct checkpoint *ck, const uint8_t *bytes, size_t n, size_t *used, struct error *err);
    int (*ended)(struct checkpoint *ck, struct error *err);
    /* Of a file with weights that others describe: what their metadata says of how its tensors are stored. NULL:
     * nothing. */
    int (*settle)(struct checkpoint *ck, const struct checkpoint *model, struct error *err);
    int (*read)(struct checkpoint *file, struct checkpoint *model, struct error *err);
};
/* By the first bytes, n >= 4; ERR_FORMAT "magic" guesses what another file is. */
int format_sniff(const uint8_t *bytes, size_t n, const struct format **out, struct error *err);
extern const struct format format_gguf, format_safetensors, format_ajc1; /* weights */
extern const struct format format_json, format_tokenizer;                /* side files */

/* --- a file's phases --- */

/* Takes bytes of the header. OK: complete, *used of n taken; NEED_MORE: all taken; or an error. */
int ck_header(struct checkpoint *ck, const uint8_t *bytes, size_t n, size_t *used, struct error *err);
/* The file ended inside the header: why that is an error. */
int ck_header_ended(struct checkpoint *ck, struct error *err);
/* The file has ended. ERR_FORMAT "truncated" when a tensor is not complete, bound or not. */
int ck_data_ended(const struct checkpoint *ck, struct error *err);

/* --- files beside the weights, which describe the model (JSON, vocabularies) --- */

/* Whether the file, which has ended, is one. */
bool ck_is_side(const struct checkpoint *ck);
/* Adds what it says to the model's metadata. */
int ck_read_side(struct checkpoint *file, struct checkpoint *model, struct error *err);

#endif
