/* SPDX-License-Identifier: MIT
 *
 * What the native command line shows. Text from models, files and arguments passes one filter on its way to stderr, and
 * to stdout where that is a terminal: what would steer it is replaced, as harmless() in js/shared/errors.js does. A
 * pipe or a file gets it as it is.
 */
#ifndef QUERN_CLI_TERMINAL_H
#define QUERN_CLI_TERMINAL_H

#include <stddef.h>

/* Whole characters to stdout; bytes that are none show as such on a terminal. */
void show(const char *text, size_t n);

/* As a JSON string. */
void show_json_text(const char *text, size_t n);

/* One line on stderr. Returns 1. */
int complain(const char *code, const char *sentence);
/* The standard input, which the caller frees. NULL after the complaint. */
char *terminal_input(size_t *size);

/* The program's exit status: the one given; 0 becomes 1, after a complaint, where stdout could not be written. */
int end_output(int status);

#endif
