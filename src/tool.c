/* SPDX-License-Identifier: MIT
 *
 * The conversion tool as WebAssembly for Node, which reads and writes the disk itself: the functions of cli_quantize.h in plain numbers.
 * No page loads it. js/quantize.js is the one caller.
 */
#include <emscripten/emscripten.h>
#include <stdlib.h>

#include "cli_quantize.h"

#define EXPORT EMSCRIPTEN_KEEPALIVE

EXPORT void *tool_alloc(size_t size) { return malloc(size); }
EXPORT struct quantizing *tool_new(const char *in, const char *out, const char *type, int threads) { return quantizing_new(in, out, type, threads); }
EXPORT int tool_step(struct quantizing *q) { return quantizing_step(q); }
EXPORT const char *tool_code(const struct quantizing *q) { return quantizing_code(q); }
EXPORT const char *tool_message(const struct quantizing *q) { return quantizing_message(q); }
EXPORT double tool_progress(const struct quantizing *q) { return quantizing_progress(q); }
EXPORT void tool_free(struct quantizing *q) { quantizing_free(q); }
