/* SPDX-License-Identifier: MIT
 *
 * The files of a model, or a projector's -> one GGUF file of other weight types. Linked into the command lines only.
 *
 * All headers are read first; the model's own list of weights says what must be there, with which shape. Then the data
 * goes through in file order: never more than a chunk of it is held, and each row is quantised by itself, so that
 * threads change nothing.
 */
#ifndef QUERN_CONVERT_H
#define QUERN_CONVERT_H

#include "base/base.h"

/* Which weights get which type; names as users write them: q8_0, q4_0, q4_k, q6_k. */
struct recipe;
const struct recipe *recipe_by_name(const char *name); /* NULL for another one */

struct convert_io {
    void *context;
    /* Up to n bytes of a file from `at` on; fewer only at its end, or where it cannot be read. */
    size_t (*read)(void *context, int file, uint64_t at, void *bytes, size_t n);
    bool (*write)(void *context, uint64_t at, const void *bytes, size_t n);
};

struct convert_options {
    const struct recipe *recipe;
    int threads;
    uint64_t memory_limit; /* bytes; 0: none */
    int n_files;           /* in the order of quern_feed(): what describes the model, then its weights */
    const uint64_t *sizes; /* [n_files] */
    struct convert_io io;
};

struct convert;

/* Reads all headers and writes that of the new file. NULL after an error; what could not be written has the rule
 * "write". */
struct convert *convert_open(const struct convert_options *options, struct error *err);
void convert_close(struct convert *c); /* accepts NULL */
/* Goes on by a chunk of a file. OK: finished; 1: more to do; or an error. */
int convert_step(struct convert *c, struct error *err);
/* Bytes of the files' data, so far and in all. */
void convert_progress(const struct convert *c, uint64_t *done, uint64_t *total);

#endif
