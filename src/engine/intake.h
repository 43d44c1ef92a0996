/* SPDX-License-Identifier: MIT
 *
 * Takes the files of a model as they come: recognises each file and checks that the files belong together. Loading,
 * inspection and conversion feed headers here, file after file; the caller decides which weights are wanted and where
 * their data goes.
 *
 * `ck` has the metadata. If the first file with weights describes itself (GGUF), `ck` is that file; otherwise `ck`
 * collects the contents of the files before it (JSON, a vocabulary: "side files"). A vocabulary in a side file replaces
 * a GGUF file's own.
 */
#ifndef QUERN_INTAKE_H
#define QUERN_INTAKE_H

#include "load/format.h"
#include "load/metadata.h"

struct intake {
    struct mem *mem;
    int n_files;              /* number of files in all, given by the caller */
    bool headers_only;        /* files may end after their headers */
    struct checkpoint ck;
    struct checkpoint part;   /* the current file, if it is not ck */
    struct checkpoint *file;  /* the current file: ck or part */
    bool complete;            /* the current file's header is complete and has weights */
    uint64_t file_size;       /* bytes of that file, from its header */
    const struct format *weights; /* format of the files with weights; NULL: none has come */
    struct split split;       /* the current file's number, and the number of files with weights */
    uint64_t tensors, name_hash; /* sums over the files with weights so far */
    uint64_t bytes;           /* bytes of those files, from their headers */
    int sides;                /* number of side files so far */
    uint64_t side_bytes;
};

/* Keeps m. first_size: bytes of the first file; 0 when not known. */
void intake_open(struct intake *in, struct mem *m, int n_files, uint64_t first_size);
void intake_close(struct intake *in);

/* Takes bytes of the current file until in->complete. Then the file has been checked against the files before it, and
 * the first *used of n bytes belonged to the header. */
int intake_header(struct intake *in, const uint8_t *bytes, size_t n, size_t *used, struct error *err);
/* Ends the current file and begins another one. */
int intake_next(struct intake *in, uint64_t size, struct error *err);
/* Ends the last file. */
int intake_finish(struct intake *in, struct error *err);

/* Whether more files with weights follow the current one. */
bool intake_more(const struct intake *in);

#endif
