/* SPDX-License-Identifier: MIT
 *
 * Converts a model on disk: finds its files and reports the disk's errors. One process at a time writes a file
 * (cli_output.h). The native command line and, through tool.c, the one in Node call it step by step, so that they can
 * show progress and stop.
 */
#ifndef QUERN_CLI_QUANTIZE_H
#define QUERN_CLI_QUANTIZE_H

#include "base/base.h"

struct quantizing;

/* type: see convert.h; imatrix: path of a file of importance, NULL or empty: none. NULL when memory is short; the first
 * step reports any other error. */
struct quantizing *quantizing_new(const char *in, const char *out, const char *type, const char *imatrix, int threads);
/* OK: the new file is complete; 1: more to do; or a failure. */
int quantizing_step(struct quantizing *q);
/* The failure's code ("storage/quota", "storage/busy" and so on) and sentence. */
const char *quantizing_code(const struct quantizing *q);
const char *quantizing_message(const struct quantizing *q);
/* 0 .. 1 */
double quantizing_progress(const struct quantizing *q);
/* Removes an unfinished file. Accepts NULL. */
void quantizing_free(struct quantizing *q);

#endif
