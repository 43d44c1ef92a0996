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
    [-ERR_LOST] = "gpu/lost",
};

const char *status_name(int status)
{
    int count = (int)(sizeof names / sizeof *names);
    return status <= 0 && -status < count ? names[-status] : "engine/trap";
}

/* Removes an incomplete UTF-8 character from the end of text. */
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

bool text_equal(const uint8_t *data, size_t size, const char *text)
{
    return size == strlen(text) && memcmp(data, text, size) == 0;
}

/* Bytes of the printable character that the text begins with; 0 if it begins with none. */
static size_t shown_size(const uint8_t *text, size_t size)
{
    uint8_t c = text[0];
    size_t n = c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
    for (size_t i = 1; i < n; i++)
        if (i == size || (text[i] & 0xC0) != 0x80) return 0;
    bool control = c < 0x20 || c == 0x7F || (c == 0xC2 && n == 2 && text[1] < 0xA0);
    return control ? 0 : n;
}

const char *quoted(struct bytes text, char out[QUOTED])
{
    static const char hex[] = "0123456789abcdef";
    char *p = out;
    size_t i = 0;
    for (size_t n, step; i < text.size; i += step) {
        const uint8_t *c = text.data + i;
        n = shown_size(c, text.size - i);
        step = n ? n : 1;
        if (i + step > 64) break;
        if (*c == '"') *p++ = '\\';
        for (size_t k = 0; k < n; k++) *p++ = (char)c[k];
        if (n == 0) *p++ = '\\', *p++ = 'x', *p++ = hex[*c >> 4], *p++ = hex[*c & 15];
    }
    if (i < text.size) *p++ = '.', *p++ = '.', *p++ = '.';
    *p = 0;
    return out;
}

double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}
