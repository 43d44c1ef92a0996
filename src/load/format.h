/* SPDX-License-Identifier: MIT
 *
 * A file format: how it fills a checkpoint. Each format is one file of src/load/formats/, and a row with
 * its test in sniff.c.
 */
#ifndef QUERN_FORMAT_H
#define QUERN_FORMAT_H

#include "load/checkpoint.h"

enum {
    SNIFF = 24,                  /* bytes that identify a file's format */
    SAFETENSORS_MOST = 64 << 20, /* bytes of a safetensors header; Qwen3-235B's files have 300 KB each */
    TOKEN_MOST = 65536,          /* bytes of a token in a .tokenizer file */
};

/* A file format. A side file has `read`; all of its bytes are header. */
struct format {
    const char *name;
    /* rules of errors if the header states the file's length. too_short NULL: "truncated"; too_long NULL: longer files
     * are allowed */
    const char *too_short, *too_long;
    int (*header)(struct checkpoint *ck, const uint8_t *bytes, size_t n, size_t *used, struct error *err);
    int (*ended)(struct checkpoint *ck, struct error *err);
    /* Only for files with weights. Applies what other files' metadata state about the storage of its tensors. NULL:
     * nothing to apply. */
    int (*settle)(struct checkpoint *ck, const struct checkpoint *model, struct error *err);
    int (*read)(struct checkpoint *file, struct checkpoint *model, struct error *err);
};
/* Finds the format by the first bytes, n >= 4. The message of ERR_FORMAT "magic" guesses the kind of an unsupported
 * file. */
int format_sniff(const uint8_t *bytes, size_t n, const struct format **out, struct error *err);
extern const struct format format_gguf, format_safetensors, format_ajc1; /* weights */
extern const struct format format_json, format_tokenizer;                /* side files */

/* --- a file's phases --- */

/* Takes bytes of the header. OK: complete, *used of n bytes were taken; NEED_MORE: all were taken; or an error. */
int ck_header(struct checkpoint *ck, const uint8_t *bytes, size_t n, size_t *used, struct error *err);
/* Call if the file ended inside the header. Returns an error that says why, or OK for a complete side file. */
int ck_header_ended(struct checkpoint *ck, struct error *err);
/* Call at the end of the file. ERR_FORMAT "truncated" if a tensor is incomplete, bound or not. */
int ck_data_ended(const struct checkpoint *ck, struct error *err);

/* --- side files: describe the model beside the weights (JSON, vocabularies) --- */

/* Whether the file is a side file. Call at its end. */
bool ck_is_side(const struct checkpoint *ck);
/* Adds the metadata of a side file to the model's metadata. */
int ck_read_side(struct checkpoint *file, struct checkpoint *model, struct error *err);

#endif
