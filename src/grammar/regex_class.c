/* SPDX-License-Identifier: MIT
 *
 * Escapes and sets of code points in a pattern, as with the flag u. Needless escapes of punctuation are accepted,
 * because people write them, although u forbids them.
 */
#include "grammar/regex.h"

#include "base/unicode.h"

#include <string.h>

enum { CODE_POINT_MOST = 0x10FFFF };

static bool add_others(struct regex *r, const struct gr_range *ranges, size_t n)
{
    uint32_t next = 0;
    bool good = true;
    for (size_t i = 0; i < n && good; i++) {
        if (ranges[i].first > next) good = regex_add(r, next, ranges[i].first - 1);
        next = ranges[i].last + 1;
    }
    return good && (next > CODE_POINT_MOST || regex_add(r, next, CODE_POINT_MOST));
}

bool regex_add(struct regex *r, uint32_t first, uint32_t last)
{
    if (!node_room(r->g, (void **)&r->ranges, &r->room, (uint64_t)r->n + 1, sizeof *r->ranges)) return false;
    r->ranges[r->n++] = (struct gr_range){first, last};
    return node_work(r->g, 1);
}

gr_expr regex_take_class(struct regex *r, bool negated)
{
    r->n = (uint32_t)class_order(r->g, r->ranges, r->n);
    if (r->where & GR_IGNORE_CASE && r->n && !regex_fold(r)) return 0;
    uint32_t begin = r->n;
    if (negated && !add_others(r, r->ranges, begin)) return 0;
    gr_expr made =
        negated ? gr_class(r->g, r->form, r->ranges + begin, r->n - begin) : gr_class(r->g, r->form, r->ranges, begin);
    r->n = 0;
    return made;
}

gr_expr regex_dot(struct regex *r)
{
    bool good =
        r->where & GR_DOT_ALL || (regex_add(r, '\n', '\n') && regex_add(r, '\r', '\r') && regex_add(r, 0x2028, 0x2029));
    return good ? regex_take_class(r, true) : 0;
}

/* --- \d \w \s and properties ----------------------------------------------------------------------------------- */

static bool add_set(struct regex *r, char name)
{
    /* The last two of `words` (an s and a k in other scripts) are letters only with the flag i. */
    static const struct gr_range digits[] = {{'0', '9'}};
    static const struct gr_range words[] = {{'0', '9'}, {'A', 'Z'},     {'_', '_'},
                                            {'a', 'z'}, {0x17F, 0x17F}, {0x212A, 0x212A}};
    static const struct gr_range spaces[] = {
        {'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
        {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF},
    };
    char lower = (char)(name | 0x20);
    const struct gr_range *of = lower == 'd' ? digits : lower == 'w' ? words : spaces;
    size_t n_words = (r->where & (GR_IGNORE_CASE | GR_OLD_CASE)) == GR_IGNORE_CASE ? 6 : 4;
    size_t n = lower == 'd' ? 1 : lower == 'w' ? n_words : sizeof spaces / sizeof *spaces;
    if (name != lower) return add_others(r, of, n);
    for (size_t i = 0; i < n; i++)
        if (!regex_add(r, of[i].first, of[i].last)) return false;
    return true;
}

/* Reads a property after `\p` or `\P`. */
static uint32_t property(struct regex *r, bool negated)
{
    size_t end = r->at;
    while (end < r->text.size && r->text.data[end] != '}') end++;
    if (!regex_takes(r, "{") || end == r->text.size)
        return regex_wrong(r, "\\p needs a property in braces"), REGEX_WRONG;
    struct bytes name = {r->text.data + r->at, end - r->at};
    bool known;
    r->at = end + 1;
    if (regex_property(r, name, negated, &known)) return REGEX_SET;
    char shown[QUOTED];
    if (!known)
        grammar_fail(r->g, "property", r->at, "The pattern's \\p{%s} is not a Unicode property of patterns.",
                     quoted(name, shown));
    return REGEX_WRONG;
}

/* --- escapes --------------------------------------------------------------------------------------------------- */

static int hex_digit(int c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

/* Reads exactly n hexadecimal digits. */
static uint32_t hex(struct regex *r, int n)
{
    uint32_t value = 0;
    for (int i = 0; i < n; i++) {
        int digit = hex_digit(regex_peek(r));
        if (digit < 0) return regex_wrong(r, "hexadecimal digits are missing"), REGEX_WRONG;
        value = value << 4 | (uint32_t)digit;
        r->at++;
    }
    return value;
}

/* Reads a code point after `\u`: four digits, two such halves of a surrogate pair, or digits in braces. */
static uint32_t unicode_escape(struct regex *r)
{
    if (regex_takes(r, "{")) {
        uint32_t value = 0;
        size_t begin = r->at;
        for (int digit; (digit = hex_digit(regex_peek(r))) >= 0 && value <= CODE_POINT_MOST; r->at++)
            value = value << 4 | (uint32_t)digit;
        bool good = r->at > begin && value <= CODE_POINT_MOST && regex_takes(r, "}");
        return good ? value : (regex_wrong(r, "a code point in braces has to be 0 to 10FFFF"), REGEX_WRONG);
    }
    uint32_t high = hex(r, 4);
    size_t after = r->at;
    if (high < 0xD800 || high > 0xDBFF || !regex_takes(r, "\\u")) return high;
    uint32_t low = hex(r, 4);
    if (low >= 0xDC00 && low <= 0xDFFF) return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    r->at = after;
    return low == REGEX_WRONG ? low : high;
}

uint32_t regex_escape(struct regex *r, bool in_class)
{
    static const char from[] = "fnrtv", to[] = "\f\n\r\t\v";
    int c = regex_peek(r);
    if (c < 0) return regex_wrong(r, "it ends with a backslash"), REGEX_WRONG;
    r->at++;
    if (c && strchr("dDwWsS", c)) return add_set(r, (char)c) ? REGEX_SET : REGEX_WRONG;
    if (c == 'p' || c == 'P') return property(r, c == 'P');
    if (c && strchr(from, c)) return (uint32_t)to[strchr(from, c) - from];
    if (c == 'x') return hex(r, 2);
    if (c == 'u') return unicode_escape(r);
    if (c == 'b' && in_class) return '\b';
    if (c == 'b' || c == 'B') return regex_wrong(r, "word boundaries (\\b, \\B) are not supported"), REGEX_WRONG;
    if (c == 'k' || (c >= '1' && c <= '9')) return regex_wrong(r, "backreferences are not supported"), REGEX_WRONG;
    if (c == '0' && !(regex_peek(r) >= '0' && regex_peek(r) <= '9')) return 0;
    if (c == 'c' && ((regex_peek(r) | 0x20) >= 'a' && (regex_peek(r) | 0x20) <= 'z'))
        return r->text.data[r->at++] & 31u;
    bool word = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c >= 0x80;
    return word ? (regex_wrong(r, "there is no such escape"), REGEX_WRONG) : (uint32_t)c;
}

/* --- classes --------------------------------------------------------------------------------------------------- */

static uint32_t class_item(struct regex *r)
{
    uint32_t c;
    if (r->at == r->text.size) return regex_wrong(r, "a bracket is not closed"), REGEX_WRONG;
    if (regex_takes(r, "\\")) return regex_escape(r, true);
    r->at += utf8_read(r->text.data + r->at, r->text.size - r->at, &c);
    return c == UTF8_INVALID ? (regex_wrong(r, "it is not valid UTF-8"), REGEX_WRONG) : c;
}

gr_expr regex_class(struct regex *r)
{
    bool negated = regex_takes(r, "^");
    while (!regex_takes(r, "]")) {
        uint32_t first = class_item(r), last = first;
        if (first == REGEX_WRONG) return 0;
        bool range = regex_peek(r) == '-' && r->at + 1 < r->text.size && r->text.data[r->at + 1] != ']';
        if (range) {
            r->at++;
            last = class_item(r);
            if (last == REGEX_WRONG) return 0;
            if (first == REGEX_SET || last == REGEX_SET)
                return regex_wrong(r, "a range in brackets needs a letter at each end; - itself is \\-");
            if (first > last) return regex_wrong(r, "a range in brackets is out of order");
        }
        if (first != REGEX_SET && !regex_add(r, first, last)) return 0;
    }
    return regex_take_class(r, negated);
}
