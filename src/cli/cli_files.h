/* SPDX-License-Identifier: MIT
 *
 * Which files a model consists of, by its path, in the order in which the engine takes them.
 */
#ifndef QUERN_CLI_FILES_H
#define QUERN_CLI_FILES_H

#include "base/base.h"

#include <stdio.h>

struct cli_files {
    char **paths; /* [n] */
    int n;        /* 0: a folder without a model, or memory was short */
};

struct cli_files cli_files(const char *path);
/* One more, the last. */
void cli_files_add(struct cli_files *f, const char *path);
void cli_files_free(struct cli_files *f);

/* A regular file and its size; NULL when it is none. */
FILE *cli_open(const char *path, uint64_t *size);

#endif
