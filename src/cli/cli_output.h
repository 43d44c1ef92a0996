/* SPDX-License-Identifier: MIT
 *
 * A new file on the disk: whole under its name, or absent. It grows beside it, under a name and in a file that nobody
 * had before, and gets its name when it is whole; a link by that name is replaced, and what it points to stays as it is
 * (in Hugging Face's cache every file is such a link). What is there and is no regular file (a device, a pipe) is
 * written as it is.
 */
#ifndef QUERN_CLI_OUTPUT_H
#define QUERN_CLI_OUTPUT_H

#include "base/base.h"
#include "cli/cli_claim.h"

struct output {
    struct claim claim;
    char *path;
    int fd;          /* -1: not open */
    bool opened;
    bool unfinished; /* the file that grows is there */
};

/* Whether what is there is no regular file, or one that somebody else has opened. */
bool output_is_stream(const char *path);
/* Each: 0 or an errno; EBUSY: another process (claim.holder) writes that file. Also after a failure output_close()
 * follows. */
int output_open(struct output *o, const char *path);
int output_add(struct output *o, const void *bytes, size_t n);
int output_finish(struct output *o);
/* Removes what is unfinished. */
void output_close(struct output *o);

/* What to say of an errno: a sentence, and the code for users ("storage/quota"), which is returned. */
const char *output_explain(const struct output *o, int failed, struct error *err);

#endif
