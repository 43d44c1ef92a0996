/* SPDX-License-Identifier: MIT
 *
 * The split, written by hand: one function per alternative of the model's regular expression, in its order.
 *
 *    (?i:'s|'t|'re|'ve|'m|'ll|'d) | [^\r\n\p{L}\p{N}]?\p{L}+ | \p{N} |
 *     ?[^\s\p{L}\p{N}]+[\r\n]* | \s*[\r\n]+ | \s+(?!\S) | \s+
 *
 * With `marks` the classes are [\p{L}\p{M}]+ and [^\s\p{L}\p{M}\p{N}]+, so a mark is read as a letter. With `digits`
 * numbers are \p{N}{1,3}. With `bare` each number is cut out first, then the text between is cut by
 *
 *    's|'t|'re|'ve|'m|'ll|'d | ?\p{L}+ | ?[^\s\p{L}\p{N}]+ | \s+(?!\S) | \s+
 *
 * A regex engine would need backtracking. Here each alternative is one forward scan, chosen by the first characters.
 * Case-insensitive matching is Unicode's simple folding, as in the libraries of the models' authors: U+017F (long s)
 * counts as an s. No other letter of the contractions has a counterpart outside ASCII.
 */
#include "text/pieces.h"

#include <string.h>

/* One character of the text: its end and its class. UTF8_INVALID and UNICODE_OTHER if there is no character. */
struct character {
    size_t end;
    uint32_t code_point;
    enum unicode_class class;
    enum { THERE, AT_END, WANTED } state; /* WANTED: the text received so far does not contain all of the character */
};

bool piece_skips(const struct piece_text *text, size_t at)
{
    return text->bytes.data[at] == text->skip.data[0] && text->bytes.size - at >= text->skip.size &&
           memcmp(text->bytes.data + at, text->skip.data, text->skip.size) == 0;
}

static struct character read_character(const struct piece_text *text, size_t pos)
{
    const struct bytes bytes = text->bytes;
    if (text->skip.size)
        while (pos < bytes.size && piece_skips(text, pos)) pos += text->skip.size;
    struct character c = {.end = pos, .code_point = UTF8_INVALID, .class = UNICODE_OTHER};
    if (!text->is_whole && bytes.size - pos < UTF8_MAX) c.state = WANTED;
    else if (pos == bytes.size) c.state = AT_END;
    if (c.state != THERE) return c;
    c.end += utf8_read(bytes.data + pos, bytes.size - pos, &c.code_point);
    c.class = unicode_class(text->classes, c.code_point);
    if (c.class == UNICODE_MARK) c.class = text->rules.marks ? UNICODE_LETTER : UNICODE_OTHER;
    return c;
}

static bool is_newline(uint32_t code_point) { return code_point == '\r' || code_point == '\n'; }

/* Converts ASCII letters to lower case. */
static uint32_t lower(uint32_t c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; }

/* The second letter of (?i:'re|'ve|'ll) for a first letter; 0 if there is none. */
static uint32_t second_of(uint32_t first) { return first == 'r' || first == 'v' ? 'e' : first == 'l' ? 'l' : 0; }

/* Matches (?i:s|t|re|ve|m|ll|d) after an apostrophe. Returns the last character; its state is AT_END if there is no
 * match. */
static struct character match_contraction(const struct piece_text *text, size_t pos)
{
    enum { LONG_S = 0x17F };
    const bool bare = text->rules.bare;
    struct character first = read_character(text, pos), none = {.state = AT_END};
    uint32_t c = bare ? first.code_point : lower(first.code_point);
    if (first.state == WANTED || c == 's' || c == 't' || c == 'm' || c == 'd' || (c == LONG_S && !bare)) return first;
    if (first.state == AT_END || !second_of(c)) return none;
    struct character second = read_character(text, first.end);
    c = bare ? second.code_point : lower(second.code_point);
    return second.state == WANTED || c == second_of(lower(first.code_point)) ? second : none;
}

static bool found(struct piece *p, size_t end)
{
    p->end = end;
    return true;
}

static bool goes_on(struct piece *p, enum piece_kind kind, size_t end)
{
    p->kind = kind;
    p->end = end;
    return false;
}

/* Chooses the kind of the piece by its first characters. */
static bool begin(struct piece *p, const struct piece_text *text)
{
    struct character first = read_character(text, 0);
    if (first.state == WANTED) return false;
    if (first.state == AT_END) return found(p, text->bytes.size);
    if (first.code_point == '\'') {
        struct character last = match_contraction(text, first.end);
        if (last.state == WANTED) return false;
        if (last.state == THERE) return found(p, last.end);
    }
    if (first.class == UNICODE_NUMBER && text->rules.digits <= 1) return found(p, first.end);
    if (first.class == UNICODE_NUMBER) return goes_on(p, PIECE_NUMBERS, 0);
    if (first.class == UNICODE_LETTER) return goes_on(p, PIECE_LETTERS, first.end);
    if (text->rules.bare && first.class == UNICODE_OTHER) return goes_on(p, PIECE_OTHERS, first.end);
    if (text->rules.bare ? first.code_point != ' ' : is_newline(first.code_point)) return goes_on(p, PIECE_SPACES, 0);
    struct character second = read_character(text, first.end);
    if (second.state == WANTED) return false;
    if (second.class == UNICODE_LETTER) return goes_on(p, PIECE_LETTERS, second.end); /* [^\r\n\p{L}\p{N}]?\p{L}+ */
    if (first.class == UNICODE_OTHER) return goes_on(p, PIECE_OTHERS, first.end);      /* ?[^\s\p{L}\p{N}]+[\r\n]* */
    bool is_behind = first.code_point == ' ' && second.state == THERE && second.class == UNICODE_OTHER;
    return is_behind ? goes_on(p, PIECE_OTHERS, second.end) : goes_on(p, PIECE_SPACES, 0);
}

static bool is_of(enum piece_kind kind, struct character c)
{
    switch (kind) {
    case PIECE_LETTERS: return c.class == UNICODE_LETTER;
    case PIECE_NUMBERS: return c.class == UNICODE_NUMBER;
    case PIECE_OTHERS: return c.class == UNICODE_OTHER;
    case PIECE_SPACES: return c.class == UNICODE_SPACE;
    default: return is_newline(c.code_point);
    }
}

/* \s*[\r\n]+ | \s+(?!\S) | \s+ : the piece ends after the last line end in the run of spaces. Without a line end it
 * ends before the last space, which belongs to the next piece, or includes all spaces if no text follows or there is
 * only one. */
static size_t end_of_spaces(const struct piece *p, bool follows)
{
    if (p->after_line) return p->after_line;
    return follows && p->last > 0 ? p->last : p->end;
}

bool piece_find(struct piece *p, const struct piece_text *text, int64_t *budget)
{
    if (p->kind == PIECE_NEW && begin(p, text)) return true;
    if (p->kind == PIECE_NEW) return false;
    for (; *budget > 0; --*budget) {
        struct character c = read_character(text, p->end);
        if (c.state == WANTED) return false;
        if (c.state == AT_END || !is_of(p->kind, c)) {
            bool follows = c.state == THERE && !(text->rules.bare && c.class == UNICODE_NUMBER);
            if (p->kind == PIECE_SPACES) return found(p, end_of_spaces(p, follows));
            if (p->kind != PIECE_OTHERS || text->rules.bare) return true;
            p->kind = PIECE_LINES;
            continue;
        }
        if (p->kind == PIECE_SPACES) {
            if (is_newline(c.code_point) && !text->rules.bare) p->after_line = c.end;
            p->last = p->end;
        }
        p->end = c.end;
        if (p->kind == PIECE_NUMBERS && ++p->n == text->rules.digits) return true;
    }
    return false;
}
