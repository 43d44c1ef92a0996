/* SPDX-License-Identifier: MIT
 *
 * A new file on the disk: complete under its name, or absent. It is written beside that name, as a file that did not
 * exist before, and renamed when it is complete. A link with that name is replaced, and its target stays as it is (in
 * Hugging Face's cache every file is such a link). An existing name that is not a regular file (a device, a pipe) is
 * written to directly.
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
    bool unfinished; /* the unfinished file exists */
};

/* Whether the path exists but is not a regular file, or is one that another process has opened. */
bool output_is_stream(const char *path);
/* Each returns 0 or an errno; EBUSY: another process (claim.holder) writes that file. output_close() must follow, also
 * after a failure. */
int output_open(struct output *o, const char *path);
int output_add(struct output *o, const void *bytes, size_t n);
int output_finish(struct output *o);
/* Removes an unfinished file. */
void output_close(struct output *o);

/* Turns an errno into a sentence in *err and a code for users ("storage/quota"), which it returns. */
const char *output_explain(const struct output *o, int failed, struct error *err);

#endif
