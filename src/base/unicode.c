/* SPDX-License-Identifier: MIT
 *
 * UTF-8 by the table of well-formed sequences (Unicode, table 3-7). Classes by binary search in one sorted table: 11
 * steps for characters outside ASCII, which cost less than the merging that follows. The packed table is half as large
 * for a page to download as the sorted one.
 */
#include "base/unicode.h"

#include "base/unicode_data.h"

static bool in_range(uint32_t value, uint32_t first, uint32_t last) { return value - first <= last - first; }

static enum unicode_class ascii_class(uint32_t c)
{
    if (in_range(c | 0x20, 'a', 'z')) return UNICODE_LETTER;
    if (in_range(c, '0', '9')) return UNICODE_NUMBER;
    return c == ' ' || in_range(c, '\t', '\r') ? UNICODE_SPACE : UNICODE_OTHER;
}

bool unicode_open(struct mem *m, struct unicode_classes *c)
{
    uint32_t start = 0;
    const uint8_t *at = class_runs;
    c->starts = mem_array(m, CLASS_RUNS, sizeof *c->starts);
    for (c->n = 0; c->starts && c->n < CLASS_RUNS; c->n++) {
        uint32_t run = 0;
        for (int shift = 0;; shift += 7) {
            run |= (*at & 0x7Fu) << shift;
            if (*at++ < 0x80) break;
        }
        c->starts[c->n] = start << 3 | (run & 7);
        start += run >> 3;
    }
    return c->starts != NULL;
}

void unicode_close(struct mem *m, struct unicode_classes *c) { mem_free(m, c->starts); }

enum unicode_class unicode_class(const struct unicode_classes *c, uint32_t code_point)
{
    if (code_point < 0x80) return ascii_class(code_point);
    if (code_point > 0x10FFFF) return UNICODE_OTHER;
    size_t low = 0, high = c->n;
    while (high - low > 1) { /* starts[low] <= code_point < starts[high] */
        size_t middle = (low + high) / 2;
        if (c->starts[middle] >> 3 <= code_point) low = middle;
        else high = middle;
    }
    return (enum unicode_class)(c->starts[low] & 7);
}

/* Length of a character that begins with the byte `lead`; 0 if no character does. */
static size_t length_by_lead(uint8_t lead)
{
    if (lead < 0x80) return 1;
    if (in_range(lead, 0xC2, 0xDF)) return 2;
    if (in_range(lead, 0xE0, 0xEF)) return 3;
    return in_range(lead, 0xF0, 0xF4) ? 4 : 0;
}

/* The second byte reveals overlong forms, surrogates and numbers above U+10FFFF. */
static bool second_fits(uint8_t lead, uint8_t second)
{
    uint8_t first = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    uint8_t last = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    return second >= first && second <= last;
}

/* How many of `have` bytes, at least 1, belong to the character at text[0]; 0 if there is no character. */
static size_t well_formed(const uint8_t *text, size_t have)
{
    size_t want = length_by_lead(text[0]);
    if (want <= 1 || have == 1) return want ? 1 : 0;
    if (!second_fits(text[0], text[1])) return 1;
    size_t n = 2;
    while (n < want && n < have && (text[n] & 0xC0) == 0x80) n++;
    return n;
}

size_t utf8_read(const uint8_t *text, size_t size, uint32_t *code_point)
{
    static const uint8_t lead_bits[UTF8_MAX + 1] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    *code_point = text[0];
    if (text[0] < 0x80) return 1;
    size_t n = length_by_lead(text[0]);
    if (n == 0 || size < n || well_formed(text, n) < n) {
        *code_point = UTF8_INVALID;
        return 1;
    }
    uint32_t value = text[0] & lead_bits[n];
    for (size_t i = 1; i < n; i++) value = value << 6 | (text[i] & 0x3F);
    *code_point = value;
    return n;
}

size_t utf8_write(uint32_t code_point, uint8_t out[UTF8_MAX])
{
    static const uint8_t lead_mark[UTF8_MAX + 1] = {0, 0, 0xC0, 0xE0, 0xF0};
    if (code_point > 0x10FFFF) return 0;
    size_t n = code_point < 0x80 ? 1 : code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (uint8_t)(0x80 | (code_point & 0x3F));
        code_point >>= 6;
    }
    out[0] = (uint8_t)(lead_mark[n] | code_point);
    return n;
}

size_t utf8_unfinished(const uint8_t *text, size_t size)
{
    for (size_t tail = 1; tail < UTF8_MAX && tail <= size; tail++) {
        const uint8_t *start = text + size - tail;
        if ((*start & 0xC0) == 0x80) continue; /* the middle of a character */
        return length_by_lead(*start) > tail && well_formed(start, tail) == tail ? tail : 0;
    }
    return 0;
}
