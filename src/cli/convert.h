/* SPDX-License-Identifier: MIT
 *
 * Converts the files of a model or a projector to one GGUF file with other weight types. Linked into the command lines
 * only.
 *
 * All headers are read first; the model's own list of weights says which tensors and shapes must exist. Then the data
 * is read in file order, at most one chunk at a time. Each row is quantised by itself, so threads change nothing.
 */
#ifndef QUERN_CONVERT_H
#define QUERN_CONVERT_H

#include "base/base.h"

/* Which weights get which type. Users write these names: q8_0, q4_0, q4_k, q5_k, q6_k, iq4_xs. */
struct recipe;
const struct recipe *recipe_by_name(const char *name); /* NULL for an unknown name */

struct convert_io {
    void *context;
    /* Reads up to n bytes of a file from `at` on; fewer only at its end, or on an error. */
    size_t (*read)(void *context, int file, uint64_t at, void *bytes, size_t n);
    bool (*write)(void *context, uint64_t at, const void *bytes, size_t n);
};

struct convert_options {
    const struct recipe *recipe;
    int threads;
    uint64_t memory_limit; /* bytes; 0: none */
    int n_files;           /* in the order of quern_feed(): files that describe the model, then its weights */
    const uint64_t *sizes; /* [n_files] */
    struct convert_io io;
    struct bytes imatrix;  /* a file of importance (imatrix.h); data NULL: none */
};

struct convert;

/* Reads all headers and writes the new file's header. NULL after an error; a failed write has the rule "write". */
struct convert *convert_open(const struct convert_options *options, struct error *err);
void convert_close(struct convert *c); /* accepts NULL */
/* Continues with a chunk of a file. OK: finished; 1: more to do; or an error. */
int convert_step(struct convert *c, struct error *err);
/* Bytes of the files' data, processed and in all. */
void convert_progress(const struct convert *c, uint64_t *done, uint64_t *total);

#endif
