/* SPDX-License-Identifier: MIT
 *
 * Converting a model on disk: names of files, and what a disk can do wrong. One process at a time makes a file
 * (cli_output.h). The native command line and, through tool.c, that in Node call it step by step, so that they can show
 * progress and stop.
 */
#ifndef QUERN_CLI_QUANTIZE_H
#define QUERN_CLI_QUANTIZE_H

#include "base/base.h"

struct quantizing;

/* type: q8_0, q4_0, q4_k or q6_k. NULL when memory is short; whatever else is wrong, the first step says. */
struct quantizing *quantizing_new(const char *in, const char *out, const char *type, int threads);
/* OK: the new file is there; 1: more to do; or a failure. */
int quantizing_step(struct quantizing *q);
/* Of the failure: "storage/quota", "storage/busy" and so on, and a sentence. */
const char *quantizing_code(const struct quantizing *q);
const char *quantizing_message(const struct quantizing *q);
/* 0 .. 1 */
double quantizing_progress(const struct quantizing *q);
/* Removes what is unfinished. Accepts NULL. */
void quantizing_free(struct quantizing *q);

#endif
