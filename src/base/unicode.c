/* SPDX-License-Identifier: MIT
 *
 * UTF-8 by the table of well-formed sequences (Unicode, table 3-7). Classes by binary search in one sorted table of 6.5
 * KB: 11 steps for characters outside ASCII, which cost less than the merging that follows.
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

enum unicode_class unicode_class(uint32_t code_point)
{
    if (code_point < 0x80) return ascii_class(code_point);
    if (code_point > 0x10FFFF) return UNICODE_OTHER;
    size_t low = 0, high = sizeof class_starts / sizeof *class_starts;
    while (high - low > 1) { /* class_starts[low] <= code_point < class_starts[high] */
        size_t middle = (low + high) / 2;
        if (class_starts[middle] >> 2 <= code_point) low = middle;
        else high = middle;
    }
    return (enum unicode_class)(class_starts[low] & 3);
}

bool unicode_stretch(size_t i, enum unicode_class *class, uint32_t *first, uint32_t *last)
{
    size_t n = sizeof class_starts / sizeof *class_starts;
    if (i >= n) return false;
    *class = (enum unicode_class)(class_starts[i] & 3);
    *first = class_starts[i] >> 2;
    *last = i + 1 < n ? (class_starts[i + 1] >> 2) - 1 : 0x10FFFF;
    return true;
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
