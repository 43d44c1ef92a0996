/* SPDX-License-Identifier: MIT
 *
 * The languages of numbers and strings in a schema.
 */
#include "grammar/schema/words.h"

#include "grammar/nodes.h"

#include <stdio.h>
#include <string.h>

enum { SPACES = 40 /* most white space in a row: five levels of eight */, PLAIN_COUNTED = 2048 };

/* --- the alphabet ---------------------------------------------------------------------------------------- */

static gr_expr with_space(struct schema *s, const char *text, bool before, bool after)
{
    static const uint32_t spaces[8] = {1u << '\t' | 1u << '\n' | 1u << '\r', 1u};
    gr_expr mark = gr_literal(s->g, text);
    if (s->options.spaced && before && after) return gr_cat(s->g, mark, gr_literal(s->g, " "));
    if (!s->options.flexible || s->options.spaced) return mark;
    gr_expr space = gr_repeat(s->g, gr_byte_set(s->g, spaces), 0, SPACES);
    if (after) mark = gr_cat(s->g, mark, space);
    return before ? gr_cat(s->g, space, mark) : mark;
}

bool words_new(struct schema *s)
{
    static const struct gr_range all = {0, 0x10FFFF};
    struct schema_words *w = schema_take(s, 1, sizeof *w);
    if (!w) return false;
    s->words = w;
    w->form = s->options.plain ? GR_PLAIN : GR_JSON;
    w->never = gr_never(s->g);
    number_forms(s->g, &w->forms);
    w->number = number_any(s->g, &w->forms);
    w->integer = number_integer(s->g, &w->forms);
    w->written = number_written(s->g, &w->forms, w->number);
    w->letter = gr_class(s->g, w->form, &all, 1);
    w->string = gr_repeat(s->g, w->letter, 0, GR_MANY);
    w->quote = gr_literal(s->g, "\"");
    w->open = with_space(s, "{", false, true);
    w->close = with_space(s, "}", true, false);
    w->begin = with_space(s, "[", false, true);
    w->end = with_space(s, "]", true, false);
    w->comma = with_space(s, ",", true, true);
    w->colon = with_space(s, ":", true, true);
    return schema_checked(s, s->root, "limit", w->colon) != 0;
}

bool words_empty(struct schema *s, gr_expr e) { return e == s->words->never || (e && gr_is_empty(s->g, e) == GR_YES); }

gr_expr words_and(struct schema *s, gr_expr all, gr_expr a, gr_expr b)
{
    gr_expr never = s->words->never;
    if (a == never || b == never) return never;
    if (a == all || a == b) return b;
    if (b == all) return a;
    gr_expr both = gr_and(s->g, a, b);
    return words_empty(s, both) ? never : both;
}

gr_expr words_but(struct schema *s, gr_expr all, gr_expr a)
{
    gr_expr never = s->words->never;
    if (a == all || a == never) return a == all ? never : all;
    gr_expr rest = gr_and(s->g, all, gr_not(s->g, a));
    return words_empty(s, rest) ? never : rest;
}

gr_expr words_quoted(struct schema *s, gr_expr strings)
{
    if (s->excluded) strings = gr_and(s->g, strings, gr_not(s->g, s->excluded));
    return gr_sequence(s->g, (gr_expr[]){s->words->quote, strings, s->words->quote}, 3);
}

/* --- numbers --------------------------------------------------------------------------------------------- */

static const struct {
    const char *keyword;
    enum number_order order, otherwise;
} bounds[] = {
    {"minimum", NUMBER_GE, NUMBER_LT},
    {"maximum", NUMBER_LE, NUMBER_GT},
    {"exclusiveMinimum", NUMBER_GT, NUMBER_LE},
    {"exclusiveMaximum", NUMBER_LT, NUMBER_GE},
};

enum { BOUNDS = sizeof bounds / sizeof *bounds };

static int bound_of(const char *keyword)
{
    for (int i = 0; i < BOUNDS; i++)
        if (!strcmp(bounds[i].keyword, keyword)) return i;
    return -1;
}

bool words_is_number(const char *keyword) { return bound_of(keyword) >= 0 || !strcmp(keyword, "multipleOf"); }

static gr_expr refused(struct schema *s, uint32_t value, const char *keyword, const char *sentence)
{
    schema_refuse(s, s->nodes[value].parent, keyword, sentence);
    return 0;
}

static bool read_number(struct schema *s, uint32_t value, const char *keyword, struct decimal *d)
{
    const struct schema_node *n = &s->nodes[value];
    if (n->kind != JSON_NUMBER) return refused(s, value, keyword, "a number was expected");
    return decimal_read(n->text, d) ||
           refused(s, value, keyword, "a number of at most 40 digits, no larger than 10^308, was expected");
}

/* Index of the strict bound, if draft 4's `exclusiveMinimum: true` is beside `minimum`; else `bound`. */
static int sharpened(const struct schema *s, uint32_t value, int bound)
{
    uint32_t sharp = schema_member(s, s->nodes[value].parent, bounds[bound + 2].keyword);
    return sharp && s->nodes[sharp].kind == JSON_TRUE ? bound + 2 : bound;
}

gr_expr words_number(struct schema *s, uint32_t value, const char *keyword, bool negative)
{
    struct decimal d;
    const struct schema_words *w = s->words;
    int bound = bound_of(keyword);
    bool lone = bound >= 2 && (s->nodes[value].kind == JSON_TRUE || s->nodes[value].kind == JSON_FALSE);
    if (lone) return negative ? w->never : w->number; /* draft 4: it only changes `minimum` */
    if (bound >= 0 && bound < 2) bound = sharpened(s, value, bound);
    if (!read_number(s, value, keyword, &d)) return 0;
    if (bound >= 0) {
        if (!number_bound_fits(&d))
            return refused(s, value, keyword, "a bound must be 0 or of a size from 0.00001 to below 10^21");
        enum number_order order = negative ? bounds[bound].otherwise : bounds[bound].order;
        return schema_checked(s, s->nodes[value].parent, keyword, number_bound(s->g, &w->forms, order, &d));
    }
    if (d.n == 0 || d.negative) return refused(s, value, keyword, "a number above 0 was expected");
    gr_expr e = number_multiple(s->g, &w->forms, &d);
    if (!e && !grammar_error(s->g)->code)
        return refused(s, value, keyword, "only whole numbers and divisors of 1 (0.25, 0.01) are supported");
    if (e && negative) e = words_but(s, number_sure(s->g, &w->forms), e);
    return schema_checked(s, s->nodes[value].parent, keyword, e);
}

gr_expr words_const_number(struct schema *s, uint32_t value, bool negative)
{
    struct decimal d;
    const struct schema_words *w = s->words;
    if (!read_number(s, value, "const", &d)) return 0;
    gr_expr e;
    if (!negative) e = number_text(s->g, &d);
    else if (!number_bound_fits(&d)) e = words_but(s, w->number, number_text(s->g, &d));
    else e = gr_or(s->g, number_bound(s->g, &w->forms, NUMBER_LT, &d), number_bound(s->g, &w->forms, NUMBER_GT, &d));
    return schema_checked(s, s->nodes[value].parent, "const", e);
}

/* --- strings --------------------------------------------------------------------------------------------- */

bool words_is_string(const char *keyword)
{
    return !strcmp(keyword, "minLength") || !strcmp(keyword, "maxLength") || !strcmp(keyword, "pattern") ||
           !strcmp(keyword, "format");
}

static gr_expr pattern_of(struct schema *s, uint32_t value, const char *keyword, struct bytes pattern, int where)
{
    struct error err = {0};
    gr_expr e = gr_regex(s->g, pattern, where, s->words->form, &err);
    if (!e && err.code == ERR_SCHEMA) {
        size_t n = strlen(err.message);
        if (n && err.message[n - 1] == '.') err.message[n - 1] = 0;
        return refused(s, value, keyword, err.message);
    }
    return schema_checked(s, s->nodes[value].parent, keyword, e);
}

/* Both limits give one count, for each keyword, because two separate counts would need pairs of states. Masks have no
 * shortcut for plain strings: each counted letter costs about 3 KB of states. So their counts stop at a few
 * thousand. */
static gr_expr length_of(struct schema *s, uint32_t value, const char *keyword, bool negative)
{
    uint32_t node = s->nodes[value].parent, min = schema_member(s, node, "minLength"),
             max = schema_member(s, node, "maxLength");
    uint32_t least = min ? schema_count(s, min, "minLength") : 0,
             most = max ? schema_count(s, max, "maxLength") : GR_MANY;
    gr_expr letter = s->words->letter;
    if (s->status) return 0;
    if (s->options.plain && most > PLAIN_COUNTED) most = GR_MANY;
    if (s->options.plain && least > PLAIN_COUNTED) least = PLAIN_COUNTED;
    if (!negative) return gr_repeat(s->g, letter, least, most);
    if (!strcmp(keyword, "maxLength")) return gr_repeat(s->g, letter, most + 1, GR_MANY);
    return least == 0 ? s->words->never : gr_repeat(s->g, letter, 0, least - 1);
}

static gr_expr unknown_format(struct schema *s, uint32_t value, bool negative)
{
    char name[QUOTED], sentence[QUOTED + 60];
    snprintf(sentence, sizeof sentence, "the format \"%s\" is not one of JSON Schema and is ignored",
             quoted(s->nodes[value].text, name));
    schema_note(s, value, sentence, true);
    return s->status ? 0 : negative ? s->words->never : s->words->string;
}

gr_expr words_string(struct schema *s, uint32_t value, const char *keyword, bool negative)
{
    const struct schema_node *n = &s->nodes[value];
    if (keyword[0] == 'm')
        return schema_checked(s, s->nodes[value].parent, keyword, length_of(s, value, keyword, negative));
    if (n->kind != JSON_STRING) return refused(s, value, keyword, "a string was expected");
    gr_expr e;
    if (keyword[0] == 'p') e = pattern_of(s, value, keyword, n->text, GR_SEARCH);
    else {
        const char *pattern = format_pattern(n->text);
        if (!pattern && bytes_equal(n->text, "idn-hostname"))
            return refused(s, value, keyword, "idn-hostname is not supported");
        if (!pattern) return unknown_format(s, value, negative);
        e = pattern_of(s, value, keyword, (struct bytes){(const uint8_t *)pattern, strlen(pattern)}, GR_WHOLE);
    }
    if (!e) return 0;
    e = words_and(s, s->words->string, s->words->string, e);
    return schema_checked(s, s->nodes[value].parent, keyword, negative ? words_but(s, s->words->string, e) : e);
}

gr_expr words_const_string(struct schema *s, uint32_t value)
{
    struct bytes text = s->nodes[value].text;
    return schema_checked(s, s->nodes[value].parent, "const",
                          s->options.plain ? gr_text(s->g, text) : gr_json_text(s->g, text));
}

gr_expr words_of_name(struct schema *s, uint32_t name) { return gr_json_text(s->g, s->names[name]); }

/* A name as it is written in a JSON string. */
static struct bytes encoded(struct schema *s, struct bytes name)
{
    static const char hex[] = "0123456789abcdef", from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    uint8_t *out = schema_take(s, name.size * 6 + 1, 1);
    size_t n = 0;
    for (size_t i = 0; out && i < name.size; i++) {
        uint8_t c = name.data[i];
        const char *at = c ? strchr(from, c) : NULL;
        if (at || c < 0x20) out[n++] = '\\';
        if (at) out[n++] = (uint8_t)to[at - from];
        else if (c >= 0x20) out[n++] = c;
        else {
            memcpy(out + n, "u00", 3);
            out[n + 3] = (uint8_t)hex[c >> 4];
            out[n + 4] = (uint8_t)hex[c & 15];
            n += 5;
        }
    }
    return (struct bytes){out, n};
}

bool words_have_name(struct schema *s, gr_expr e, uint32_t name)
{
    if (e == 0 || e == s->words->never || s->status) return false;
    if (!node_work(s->g, (int64_t)s->names[name].size)) return schema_checked(s, s->here, "limit", 0) != 0;
    enum gr_answer answer = gr_contains(s->g, e, encoded(s, s->names[name]));
    if (answer == GR_UNKNOWN) schema_refuse(s, s->here, "limit", "its patterns of names are too large");
    return answer == GR_YES;
}
