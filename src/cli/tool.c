/* SPDX-License-Identifier: MIT
 *
 * The conversion tool as WebAssembly for Node, which reads and writes the disk itself: the functions of cli_quantize.h
 * with plain numbers as arguments, and their questions about processes. No page loads it. Its only caller is
 * js/cli/quantize.js.
 */
#include "cli/cli_process.h"
#include "cli/cli_quantize.h"

#include <emscripten/emscripten.h>
#include <stdlib.h>

EM_JS_DEPS(tool, "$ERRNO_CODES,$UTF8ToString");
EM_JS(int, process_id, (void), { return process.pid; })
EM_JS(int, process_user, (void), { return process.geteuid?.() ?? 0; })
EM_JS(bool, process_exists, (int id), {
    try {
        return process.kill(id, 0);
    } catch (error) {
        return error.code === 'EPERM';
    }
})
EM_JS(int, process_link, (const char *target, const char *path), {
    try {
        fs.symlinkSync(UTF8ToString(target), UTF8ToString(path));
        return 0;
    } catch (error) {
        return ERRNO_CODES[error.code] ?? ERRNO_CODES.EIO;
    }
})

#define EXPORT EMSCRIPTEN_KEEPALIVE

EXPORT void *tool_alloc(size_t size) { return malloc(size); }
EXPORT struct quantizing *tool_new(const char *in, const char *out, const char *type, const char *imatrix, int threads)
{
    return quantizing_new(in, out, type, imatrix, threads);
}
EXPORT int tool_step(struct quantizing *q) { return quantizing_step(q); }
EXPORT const char *tool_code(const struct quantizing *q) { return quantizing_code(q); }
EXPORT const char *tool_message(const struct quantizing *q) { return quantizing_message(q); }
EXPORT double tool_progress(const struct quantizing *q) { return quantizing_progress(q); }
EXPORT void tool_free(struct quantizing *q) { quantizing_free(q); }
