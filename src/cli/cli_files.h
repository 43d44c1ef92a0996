/* SPDX-License-Identifier: MIT
 *
 * The files of a model at a path, in the order in which the engine takes them.
 */
#ifndef QUERN_CLI_FILES_H
#define QUERN_CLI_FILES_H

#include "base/base.h"

#include <stdio.h>

struct cli_files {
    char **paths; /* [n] */
    int n;        /* 0: a folder without a model */
    bool failed;  /* memory was short: n is 0, and nothing more is added */
};

struct cli_files cli_files(const char *path);
/* Adds a file at the end. */
void cli_files_add(struct cli_files *f, const char *path);
void cli_files_free(struct cli_files *f);

/* Opens a regular file and gets its size; NULL if it is not one. */
FILE *cli_open(const char *path, uint64_t *size);

#endif
