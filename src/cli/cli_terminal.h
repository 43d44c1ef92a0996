/* SPDX-License-Identifier: MIT
 *
 * The output of the native command line. Text from models, files and arguments is filtered on its way to stderr, and to
 * stdout if that is a terminal: characters that would steer the terminal are replaced, as harmless() in
 * js/shared/errors.js does. Pipes and files get the text as it is.
 */
#ifndef QUERN_CLI_TERMINAL_H
#define QUERN_CLI_TERMINAL_H

#include <stddef.h>

/* Writes whole characters to stdout; on a terminal invalid bytes are replaced. */
void show(const char *text, size_t n);

/* Writes a JSON string. */
void show_json_text(const char *text, size_t n);

/* Prints one line on stderr. Returns 1. */
int complain(const char *code, const char *sentence);
/* Reads the standard input, which the caller frees. NULL after an error message. */
char *terminal_input(size_t *size);

/* The program's exit status: `status`, or 1, after an error message, if it is 0 but stdout could not be written. */
int end_output(int status);

#endif
