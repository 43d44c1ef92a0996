/* SPDX-License-Identifier: MIT
 *
 * The files of a model as they come: what each of them is, and whether they belong together. Whoever loads, inspects or
 * converts a model feeds headers here, file after file; which weights are wanted, and where their data goes, is the
 * caller's.
 *
 * `ck` has the metadata: it is the first file with weights itself where that describes itself (GGUF), and otherwise
 * collects what the files before it say (JSON, a vocabulary: "side files"). A GGUF file's own vocabulary gives way to
 * one beside it.
 */
#ifndef QUERN_INTAKE_H
#define QUERN_INTAKE_H

#include "load/format.h"
#include "load/metadata.h"

struct intake {
    struct mem *mem;
    int n_files;              /* that will come in all, as the caller says */
    bool headers_only;        /* no file need go on behind its header */
    struct checkpoint ck;
    struct checkpoint part;   /* a file that is not ck */
    struct checkpoint *file;  /* the one that is being read */
    bool complete;            /* its header has come: it has weights */
    uint64_t file_size;       /* then: what that promises */
    const struct format *weights; /* of the files with weights; NULL: none has come */
    struct split split;       /* which of these the one at hand is, and of how many */
    uint64_t tensors, name_hash; /* in them so far */
    uint64_t bytes;           /* theirs, as their headers promise */
    int sides;                /* side files so far */
    uint64_t side_bytes;
};

/* Keeps m. first_size: of the first file; 0 where it is not known. */
void intake_open(struct intake *in, struct mem *m, int n_files, uint64_t first_size);
void intake_close(struct intake *in);

/* Takes bytes of the file at hand, until in->complete: then it has been found to belong to the files before, and *used
 * of n were its header. */
int intake_header(struct intake *in, const uint8_t *bytes, size_t n, size_t *used, struct error *err);
/* The file has ended and another one begins. */
int intake_next(struct intake *in, uint64_t size, struct error *err);
/* The last one has ended. */
int intake_finish(struct intake *in, struct error *err);

/* More files with weights follow the one at hand. */
bool intake_more(const struct intake *in);

#endif
