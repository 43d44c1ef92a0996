/* SPDX-License-Identifier: MIT
 *
 * Status names, error records and the escaping of a file's strings.
 */
#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const names[] = {
    [-OK] = "ok",
    [-ERR_FORMAT] = "model/format",
    [-ERR_UNSUPPORTED] = "model/unsupported",
    [-ERR_INCONSISTENT] = "model/inconsistent",
    [-ERR_NONFINITE] = "model/nonfinite",
    [-ERR_MEM_PLAN] = "mem/plan",
    [-ERR_MEM_LOAD] = "mem/load",
    [-ERR_MEM_KV] = "mem/kv",
    [-ERR_PARAM] = "use/param",
    [-ERR_CONTEXT] = "use/context",
    [-ERR_EMPTY] = "use/empty",
    [-ERR_BUSY] = "use/busy",
    [-ERR_DECODE] = "image/decode",
    [-ERR_SIZE] = "image/size",
    [-ERR_SCHEMA] = "use/schema",
};

const char *status_name(int status)
{
    int count = (int)(sizeof names / sizeof *names);
    return status <= 0 && -status < count ? names[-status] : "engine/trap";
}

/* Drops the tail of a character that was cut at the end of text. */
static void trim_utf8(char *text)
{
    size_t n = strlen(text), tail = 0;
    while (tail < n && tail < 3 && ((uint8_t)text[n - 1 - tail] & 0xC0) == 0x80) tail++;
    if (tail == n) return;
    uint8_t lead = (uint8_t)text[n - 1 - tail];
    size_t want = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
    if (want > tail) text[n - 1 - tail] = 0;
}

int fail(struct error *err, int code, const char *rule, uint64_t offset, const char *format, ...)
{
    if (!err) return code;
    err->code = code;
    err->offset = offset;
    snprintf(err->rule, sizeof err->rule, "%s", rule);
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    trim_utf8(err->message);
    return code;
}

int bytes_compare(struct bytes a, struct bytes b)
{
    size_t n = a.size < b.size ? a.size : b.size;
    int order = n ? memcmp(a.data, b.data, n) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

bool bytes_equal(struct bytes a, const char *text)
{
    return a.size == strlen(text) && memcmp(a.data, text, a.size) == 0;
}

const char *quoted(struct bytes text, char out[QUOTED])
{
    static const char hex[] = "0123456789abcdef";
    char *p = out;
    size_t shown = text.size < 64 ? text.size : 64;
    for (size_t i = 0; i < shown; i++) {
        uint8_t c = text.data[i];
        if (c >= 0x20 && c < 0x7F && c != '"' && c != '\\') {
            *p++ = (char)c;
        } else {
            *p++ = '\\';
            *p++ = 'x';
            *p++ = hex[c >> 4];
            *p++ = hex[c & 15];
        }
    }
    if (shown < text.size) *p++ = '.', *p++ = '.', *p++ = '.';
    *p = 0;
    return out;
}

double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}
