/* SPDX-License-Identifier: MIT
 *
 * ECMAScript's patterns. What ^ and $ say is kept apart while a pattern is put together: a part is four expressions, by whether the text has to
 * begin before it and to end after it. A part that may only come first joins one before it where that one may be empty, and so on; so anchors
 * stand anywhere but inside what is repeated.
 */
#include "grammar/regex.h"

#include "base/unicode.h"

#include <string.h>

enum { NESTING_MOST = 100, BEGINS = 1, ENDS = 2, VARIANTS = 4 };

/* By BEGINS | ENDS; of[0] = 0: failed. */
struct part {
    gr_expr of[VARIANTS];
};

static const struct part nothing = {{EXPR_NEVER, EXPR_NEVER, EXPR_NEVER, EXPR_NEVER}};
static const struct part failed = {{0, 0, 0, 0}};

static struct part disjunction(struct regex *r);

gr_expr regex_wrong(struct regex *r, const char *sentence)
{
    char shown[QUOTED];
    size_t begin = r->at > 40 ? r->at - 30 : 0, left = r->text.size - begin;
    while (begin && begin < r->text.size && (r->text.data[begin] & 0xC0) == 0x80) begin++, left--;
    struct bytes text = {r->text.data + begin, left < 40 ? left : 40};
    const char *before = begin ? "..." : "", *after = left > 40 ? "..." : "", *form = "The pattern \"%s%s%s\" cannot be used, at byte %u: %s.";
    return grammar_fail(r->g, "pattern", r->at, form, before, quoted(text, shown), after, (unsigned)r->at, sentence);
}

int regex_peek(const struct regex *r) { return r->at < r->text.size ? r->text.data[r->at] : -1; }

bool regex_takes(struct regex *r, const char *word)
{
    size_t n = strlen(word);
    if (r->text.size - r->at < n || memcmp(r->text.data + r->at, word, n)) return false;
    r->at += n;
    return true;
}

static struct part plain(gr_expr a)
{
    struct part p = nothing;
    p.of[0] = a;
    return a ? p : failed;
}

static bool is_anchored(const struct part *p)
{
    for (int i = 1; i < VARIANTS; i++)
        if (p->of[i] != EXPR_NEVER) return true;
    return false;
}

/* --- putting together ------------------------------------------------------------------------------------------------------ */

/* The text begins after a where b has to come first, so a is empty; likewise at the end. */
static gr_expr join(struct grammar *g, gr_expr a, int a_says, gr_expr b, int b_says)
{
    bool a_empty = b_says & BEGINS, b_empty = a_says & ENDS;
    if ((a_empty && !is_nullable(g, a)) || (b_empty && !is_nullable(g, b))) return EXPR_NEVER;
    return gr_cat(g, a_empty ? EXPR_EMPTY : a, b_empty ? EXPR_EMPTY : b);
}

static struct part sequence(struct grammar *g, struct part a, struct part b)
{
    struct part all = nothing;
    if (!is_anchored(&a) && !is_anchored(&b)) return plain(gr_cat(g, a.of[0], b.of[0]));
    for (int i = 0; i < VARIANTS; i++) {
        for (int k = 0; k < VARIANTS; k++) {
            if (!a.of[i] || !b.of[k]) return failed;
            if (a.of[i] == EXPR_NEVER || b.of[k] == EXPR_NEVER) continue;
            /* An end before b is one after it too, as b is empty then. */
            gr_expr *into = &all.of[(i | k) & (BEGINS | ENDS)];
            *into = gr_or(g, *into, join(g, a.of[i], i, b.of[k], k));
            if (!*into) return failed;
        }
    }
    return all;
}

static struct part either(struct grammar *g, struct part a, struct part b)
{
    struct part all;
    for (int i = 0; i < VARIANTS; i++) {
        all.of[i] = gr_or(g, a.of[i], b.of[i]);
        if (!all.of[i]) return failed;
    }
    return all;
}

static struct part repeated(struct regex *r, struct part p, uint32_t least, uint32_t most)
{
    if (!is_anchored(&p)) return plain(gr_repeat(r->g, p.of[0], least, most));
    if (most > 1) return plain(regex_wrong(r, "anchors inside a repeated group are not supported"));
    if (most == 0) return plain(EXPR_EMPTY);
    return least ? p : either(r->g, p, plain(EXPR_EMPTY));
}

/* --- reading ------------------------------------------------------------------------------------------------------------------ */

/* Decimal digits, saturated below GR_MANY. */
static bool number(struct regex *r, uint32_t *out)
{
    size_t begin = r->at;
    uint64_t value = 0;
    for (int c; (c = regex_peek(r)) >= '0' && c <= '9'; r->at++) {
        value = value * 10 + (uint64_t)(c - '0');
        if (value >= GR_MANY) value = GR_MANY - 1;
    }
    *out = (uint32_t)value;
    return r->at > begin;
}

/* Whether a quantifier follows. Braces that are none stand for themselves. */
static bool quantifier(struct regex *r, uint32_t *least, uint32_t *most)
{
    size_t begin = r->at;
    *least = 0;
    *most = GR_MANY;
    if (regex_takes(r, "*")) return true;
    if (regex_takes(r, "+")) return (*least = 1) != 0;
    if (regex_takes(r, "?")) return (*most = 1) != 0;
    if (regex_takes(r, "{") && number(r, least)) {
        *most = *least;
        if (regex_takes(r, ",") && !number(r, most)) *most = GR_MANY;
        if (regex_takes(r, "}")) return true;
    }
    r->at = begin;
    return false;
}

/* Of a group, up to `>`; what it is called changes nothing. */
static bool group_name(struct regex *r)
{
    size_t begin = r->at;
    for (int c; (c = regex_peek(r)) >= 0 && c != '>'; r->at++) {
        bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z', digit = c >= '0' && c <= '9';
        if (!letter && c != '_' && c != '$' && c < 0x80 && !(digit && r->at > begin)) return regex_wrong(r, "this is no name of a group") != 0;
    }
    if (r->at == begin) return regex_wrong(r, "a group's name is empty") != 0;
    return regex_takes(r, ">") || regex_wrong(r, "a group's name is not closed");
}

/* After `(`. */
static struct part group(struct regex *r)
{
    if (regex_takes(r, "?")) {
        if (regex_takes(r, "=") || regex_takes(r, "!") || regex_takes(r, "<=") || regex_takes(r, "<!"))
            return plain(regex_wrong(r, "lookaround is not supported"));
        if (regex_takes(r, "<")) {
            if (!group_name(r)) return failed;
        } else if (!regex_takes(r, ":")) return plain(regex_wrong(r, "modifiers are not supported"));
    }
    if (++r->depth > NESTING_MOST) return plain(regex_wrong(r, "groups are nested too deeply"));
    struct part p = disjunction(r);
    r->depth--;
    if (p.of[0] && !regex_takes(r, ")")) return plain(regex_wrong(r, "a parenthesis is not closed"));
    return p;
}

static gr_expr atom(struct regex *r)
{
    uint32_t c, least, most;
    if (regex_takes(r, ".")) return regex_dot(r);
    if (regex_takes(r, "[")) return regex_class(r);
    if (regex_takes(r, "\\")) {
        c = regex_escape(r, false);
        if (c == REGEX_WRONG) return 0;
        if (c == REGEX_SET) return regex_take_class(r, false);
    } else {
        if (quantifier(r, &least, &most)) return regex_wrong(r, "there is nothing to repeat");
        r->at += utf8_read(r->text.data + r->at, r->text.size - r->at, &c);
        if (c == UTF8_INVALID) return regex_wrong(r, "it is no valid UTF-8");
    }
    return gr_class(r->g, r->form, &(struct gr_range){c, c}, 1);
}

static struct part term(struct regex *r)
{
    uint32_t least, most;
    struct part p = nothing;
    bool anchor = regex_peek(r) == '^' || regex_peek(r) == '$';
    if (anchor) p.of[r->text.data[r->at++] == '^' ? BEGINS : ENDS] = EXPR_EMPTY;
    else p = regex_takes(r, "(") ? group(r) : plain(atom(r));
    if (!p.of[0] || !quantifier(r, &least, &most)) return p;
    if (anchor) return plain(regex_wrong(r, "an anchor cannot be repeated"));
    if (least > most) return plain(regex_wrong(r, "a count is out of order"));
    regex_takes(r, "?"); /* lazy: the same texts */
    return repeated(r, p, least, most);
}

/* Up to `|` or `)`. Terms are put together from the right, in halves of what has been read: a long pattern stays cheap. */
static struct part alternative(struct regex *r)
{
    enum { LEVELS = 32 };
    struct part held[LEVELS]; /* of 2^level terms each, where the bit of `n` is set */
    uint32_t n = 0;
    for (; regex_peek(r) >= 0 && regex_peek(r) != '|' && regex_peek(r) != ')'; n++) {
        struct part p = term(r);
        int level = 0;
        for (; n >> level & 1; level++) p = sequence(r->g, held[level], p);
        held[level] = p;
        if (!p.of[0]) return failed;
    }
    struct part all = plain(EXPR_EMPTY);
    for (int level = 0; level < LEVELS && all.of[0]; level++)
        if (n >> level & 1) all = sequence(r->g, held[level], all);
    return all;
}

static struct part disjunction(struct regex *r)
{
    struct part all = alternative(r);
    while (all.of[0] && regex_takes(r, "|")) all = either(r->g, all, alternative(r));
    return all;
}

gr_expr gr_regex(struct grammar *g, struct bytes pattern, int where, enum gr_form form, struct error *err)
{
    struct regex r = {.g = g, .text = pattern, .form = form, .dot_all = (where & GR_DOT_ALL) != 0};
    struct part p = disjunction(&r);
    if (p.of[0] && r.at < pattern.size) p = plain(regex_wrong(&r, "a parenthesis was not opened"));
    mem_free(g->mem, r.ranges);
    gr_expr made = p.of[0] ? EXPR_NEVER : 0, any = EXPR_EMPTY;
    if (where & GR_SEARCH) any = gr_repeat(g, gr_class(g, form, &(struct gr_range){0, UINT32_MAX}, 1), 0, GR_MANY);
    for (int i = 0; i < VARIANTS && made; i++) {
        gr_expr whole = p.of[i];
        if (!(i & ENDS)) whole = gr_cat(g, whole, any);
        if (!(i & BEGINS)) whole = gr_cat(g, any, whole);
        made = gr_or(g, made, whole);
    }
    if (!made && err) *err = g->err;
    return made;
}
