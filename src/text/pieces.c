/* SPDX-License-Identifier: MIT
 *
 * The split by hand, one function per alternative of the model's regular expression, in its order:
 *
 *   (?i:'s|'t|'re|'ve|'m|'ll|'d) | [^\r\n\p{L}\p{N}]?\p{L}+ | \p{N} | ?[^\s\p{L}\p{N}]+[\r\n]* | \s*[\r\n]+ | \s+(?!\S) | \s+
 *
 * A regex engine would bring backtracking and code of its own; each alternative here is one forward scan.
 * Case-insensitive matching is Unicode's simple folding, as in the libraries the models' authors used: U+017F
 * (long s) counts as an s. No other letter of the contractions has a partner outside ASCII.
 */
#include "text/pieces.h"

#include "base/unicode.h"

/* One character of the text: where it ends and what it is. end == pos at the end of the text. */
struct character {
    size_t end;
    uint32_t code_point;
    enum unicode_class class;
};

static struct character read_character(struct bytes text, size_t pos)
{
    struct character c = {.end = pos, .code_point = UTF8_INVALID, .class = UNICODE_OTHER};
    if (pos == text.size) return c;
    c.end += utf8_read(text.data + pos, text.size - pos, &c.code_point);
    c.class = unicode_class(c.code_point);
    return c;
}

static bool is_newline(uint32_t code_point) { return code_point == '\r' || code_point == '\n'; }

static size_t skip_class(struct bytes text, size_t pos, enum unicode_class class)
{
    for (;;) {
        struct character c = read_character(text, pos);
        if (c.end == pos || c.class != class) return pos;
        pos = c.end;
    }
}

static size_t skip_newlines(struct bytes text, size_t pos)
{
    while (pos < text.size && is_newline(text.data[pos])) pos++;
    return pos;
}

/* ASCII lower case at pos; 0 past the end. */
static int lower_at(struct bytes text, size_t pos)
{
    int c = pos < text.size ? text.data[pos] : 0;
    return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d) at an apostrophe; pos itself when it does not match. */
static size_t match_contraction(struct bytes text, size_t pos)
{
    int second = lower_at(text, pos + 2);
    switch (lower_at(text, pos + 1)) {
    case 's': case 't': case 'm': case 'd': return pos + 2;
    case 'r': case 'v': return second == 'e' ? pos + 3 : pos;
    case 'l': return second == 'l' ? pos + 3 : pos;
    case 0xC5: return second == 0xBF ? pos + 3 : pos; /* U+017F */
    default: return pos;
    }
}

/* \s*[\r\n]+ | \s+(?!\S) | \s+ : up to the last line end of the run; else all of it but the last character, which the next
 * piece may want; all of it when nothing follows or it is one character. */
static size_t match_spaces(struct bytes text, size_t pos)
{
    size_t end = pos, last = pos, after_newline = 0;
    for (;;) {
        struct character c = read_character(text, end);
        if (c.end == end || c.class != UNICODE_SPACE) break;
        if (is_newline(c.code_point)) after_newline = c.end;
        last = end;
        end = c.end;
    }
    if (after_newline) return after_newline;
    return end < text.size && last > pos ? last : end;
}

size_t pieces_next(struct bytes text, size_t pos)
{
    struct character first = read_character(text, pos);
    if (first.code_point == '\'') {
        size_t end = match_contraction(text, pos);
        if (end > pos) return end;
    }
    if (first.class == UNICODE_NUMBER) return first.end;
    if (first.class == UNICODE_LETTER) return skip_class(text, first.end, UNICODE_LETTER);
    if (!is_newline(first.code_point)) { /* [^\r\n\p{L}\p{N}]?\p{L}+ with its optional character */
        size_t end = skip_class(text, first.end, UNICODE_LETTER);
        if (end > first.end) return end;
    }
    size_t begin = first.code_point == ' ' ? first.end : pos; /* ?[^\s\p{L}\p{N}]+[\r\n]* */
    size_t end = skip_class(text, begin, UNICODE_OTHER);
    return end > begin ? skip_newlines(text, end) : match_spaces(text, pos);
}
