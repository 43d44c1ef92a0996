/* SPDX-License-Identifier: MIT
 *
 * ECMAScript's patterns. The conditions of ^ and $ are kept apart while a pattern is built. A part is nine expressions,
 * by the condition before it and the condition after it: none, a line must begin or end here (with the flag m), or the
 * text must. A part that must be at the beginning can follow another part if that one may be empty, or may end with a
 * line end, and so on. So anchors may stand anywhere, except inside repeated groups.
 */
#include "grammar/regex.h"

#include "base/unicode.h"

#include <string.h>

enum { NESTING_MOST = 100, SIDES = 3, VARIANTS = SIDES * SIDES };
/* The condition at a side of a part. A larger value is the stronger condition. */
enum side { SIDE_ANY, SIDE_LINE, SIDE_TEXT };

/* Indexed by SIDES * before + after. of[0] = 0: failed. */
struct part {
    gr_expr of[VARIANTS];
};

static const struct part nothing = {
    {EXPR_NEVER, EXPR_NEVER, EXPR_NEVER, EXPR_NEVER, EXPR_NEVER, EXPR_NEVER, EXPR_NEVER, EXPR_NEVER, EXPR_NEVER}};
static const struct part failed = {{0, 0, 0, 0, 0, 0, 0, 0, 0}};

static struct part disjunction(struct regex *r, bool at_start);

gr_expr regex_wrong(struct regex *r, const char *sentence)
{
    char shown[QUOTED];
    size_t begin = r->at > 40 ? r->at - 30 : 0, left = r->text.size - begin;
    while (begin && begin < r->text.size && (r->text.data[begin] & 0xC0) == 0x80) begin++, left--;
    struct bytes text = {r->text.data + begin, left < 40 ? left : 40};
    const char *before = begin ? "..." : "", *after = left > 40 ? "..." : "",
               *form = "The pattern \"%s%s%s\" cannot be used, at byte %u: %s.";
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

/* --- putting together ------------------------------------------------------------------------------------------ */

static gr_expr anything(struct regex *r)
{
    return gr_repeat(r->g, gr_class(r->g, r->form, &(struct gr_range){0, UINT32_MAX}, 1), 0, GR_MANY);
}

/* Any text that ends with a line end, or that begins with one. */
static gr_expr beside_line(struct regex *r, bool at_end)
{
    static const struct gr_range ends[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
    gr_expr end = gr_class(r->g, r->form, ends, sizeof ends / sizeof *ends), any = anything(r);
    return at_end ? gr_cat(r->g, any, end) : gr_cat(r->g, end, any);
}

/* Ways to satisfy a condition that the neighbour of a part has at their border: there is no condition (free); the part
 * is empty, so that the condition applies beyond it; or the part has a line end there. */
enum way { WAY_FREE, WAY_EMPTY, WAY_LINE, WAYS };

static gr_expr in_way(struct regex *r, gr_expr a, int said, enum way way, bool at_end)
{
    if ((way == WAY_FREE) != (said == SIDE_ANY) || (way == WAY_LINE && said != SIDE_LINE)) return EXPR_NEVER;
    if (way == WAY_EMPTY) return is_nullable(r->g, a) ? EXPR_EMPTY : EXPR_NEVER;
    return way == WAY_LINE ? gr_and(r->g, a, beside_line(r, at_end)) : a;
}

static int larger(int a, int b) { return a > b ? a : b; }

/* Adds the sequence of variant i of part a and variant k of part b. */
static bool join(struct regex *r, struct part *all, struct part a, int i, struct part b, int k)
{
    for (enum way left = 0; left < WAYS; left++) {
        gr_expr first = in_way(r, a.of[i], k / SIDES, left, true);
        for (enum way right = 0; right < WAYS && first != EXPR_NEVER; right++) {
            gr_expr second = in_way(r, b.of[k], i % SIDES, right, false);
            if (second == EXPR_NEVER) continue;
            int before = left == WAY_EMPTY ? larger(i / SIDES, k / SIDES) : i / SIDES;
            int after = right == WAY_EMPTY ? larger(i % SIDES, k % SIDES) : k % SIDES;
            gr_expr *into = &all->of[SIDES * before + after];
            *into = gr_or(r->g, *into, gr_cat(r->g, first, second));
            if (!*into) return false;
        }
    }
    return true;
}

static struct part sequence(struct regex *r, struct part a, struct part b)
{
    struct part all = nothing;
    if (!is_anchored(&a) && !is_anchored(&b)) return plain(gr_cat(r->g, a.of[0], b.of[0]));
    for (int i = 0; i < VARIANTS; i++)
        for (int k = 0; k < VARIANTS; k++)
            if (a.of[i] != EXPR_NEVER && b.of[k] != EXPR_NEVER && !join(r, &all, a, i, b, k)) return failed;
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

/* --- reading --------------------------------------------------------------------------------------------------- */

/* Reads decimal digits; the value stays below GR_MANY. */
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

/* Reads a quantifier if one follows. Other braces stand for themselves. */
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

/* Reads a group's name, up to `>`. It has no effect. */
static bool group_name(struct regex *r)
{
    size_t begin = r->at;
    for (int c; (c = regex_peek(r)) >= 0 && c != '>'; r->at++) {
        bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z', digit = c >= '0' && c <= '9';
        if (!letter && c != '_' && c != '$' && c < 0x80 && !(digit && r->at > begin))
            return regex_wrong(r, "this is not a group name") != 0;
    }
    if (r->at == begin) return regex_wrong(r, "a group's name is empty") != 0;
    return regex_takes(r, ">") || regex_wrong(r, "a group's name is not closed");
}

/* Reads modifiers after `(?`, as in `i-ms:`: the flags that are on in the group, and those that are off. */
static bool modifiers(struct regex *r)
{
    static const char letters[] = "ims";
    static const int flags[] = {GR_IGNORE_CASE, GR_MULTILINE, GR_DOT_ALL};
    int seen = 0;
    bool on = true;
    for (;; r->at++) {
        int c = regex_peek(r);
        const char *letter = c > 0 ? strchr(letters, c) : NULL;
        if (c == ':' && (seen || on)) return r->at++, true;
        if (c == '-' && on) {
            on = false;
            continue;
        }
        int flag = letter ? flags[letter - letters] : 0;
        if (!flag || seen & flag)
            return regex_wrong(r, "a group's modifiers are i, m and s, once each, and a colon, as in (?i:a)") != 0;
        seen |= flag;
        r->where = on ? r->where | flag : r->where & ~flag;
    }
}

/* Reads from `(` up to the content of the group. */
static bool group_head(struct regex *r)
{
    static const char *const looks[] = {"=", "!", "<=", "<!"};
    if (!regex_takes(r, "?")) return true;
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        if (regex_takes(r, looks[i]))
            return regex_wrong(r, "of lookaround only lookahead outside of repeated groups is supported") != 0;
    return regex_takes(r, "<") ? group_name(r) : modifiers(r);
}

/* Reads the content of a group and its end. Unless `open`, the content is independent of the text after it. */
static struct part enclosed(struct regex *r, bool open, bool at_start)
{
    bool was_open = r->open;
    if (++r->depth > NESTING_MOST) return plain(regex_wrong(r, "groups are nested too deeply"));
    r->open = open;
    struct part p = disjunction(r, at_start);
    r->open = was_open;
    r->depth--;
    if (p.of[0] && !regex_takes(r, ")")) return plain(regex_wrong(r, "a parenthesis is not closed"));
    return p;
}

static struct part group(struct regex *r)
{
    int where = r->where;
    struct part p = group_head(r) ? enclosed(r, false, false) : failed;
    r->where = where;
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
        if (c == UTF8_INVALID) return regex_wrong(r, "it is not valid UTF-8");
    }
    return regex_add(r, c, c) ? regex_take_class(r, false) : 0;
}

static struct part anchor(struct regex *r)
{
    struct part p = nothing;
    int side = r->where & GR_MULTILINE ? SIDE_LINE : SIDE_TEXT;
    p.of[r->text.data[r->at++] == '^' ? SIDES * side : side] = EXPR_EMPTY;
    return p;
}

static struct part term(struct regex *r)
{
    uint32_t least, most;
    bool is_anchor = regex_peek(r) == '^' || regex_peek(r) == '$';
    struct part p = is_anchor ? anchor(r) : regex_takes(r, "(") ? group(r) : plain(atom(r));
    if (!p.of[0] || !quantifier(r, &least, &most)) return p;
    if (is_anchor) return plain(regex_wrong(r, "an anchor cannot be repeated"));
    if (least > most) return plain(regex_wrong(r, "a count is out of order"));
    regex_takes(r, "?"); /* lazy: the same texts */
    return repeated(r, p, least, most);
}

/* The text that a search allows before the pattern, or after it. */
static gr_expr around(struct regex *r, int side, bool before)
{
    if (side == SIDE_TEXT) return EXPR_EMPTY;
    return side == SIDE_ANY ? anything(r) : gr_or(r->g, EXPR_EMPTY, beside_line(r, before));
}

/* Reads a lookahead after `(?=` or `(?!`: an expression for the whole rest of the text. */
static gr_expr looked_at(struct regex *r, bool negated, bool at_start)
{
    struct part p = enclosed(r, false, false);
    gr_expr all = p.of[0] ? EXPR_NEVER : 0;
    for (int i = 0; i < VARIANTS && all; i++) {
        if (p.of[i] == EXPR_NEVER) continue;
        if (i / SIDES != SIDE_ANY && !at_start)
            return regex_wrong(r, "^ in a lookahead is supported only at the beginning");
        all = gr_or(r->g, all, gr_cat(r->g, p.of[i], around(r, i % SIDES, false)));
    }
    return negated ? gr_not(r->g, all) : all;
}

static struct part alternative(struct regex *r, bool at_start);

/* Reads a lookahead and the part after it; together they extend to the end of the text. */
static struct part looking(struct regex *r, bool at_start)
{
    bool negated = regex_takes(r, "(?!");
    if (!negated) regex_takes(r, "(?=");
    if (++r->looks > NESTING_MOST) return plain(regex_wrong(r, "there are too many lookaheads"));
    gr_expr seen = looked_at(r, negated, at_start);
    struct part rest = seen ? alternative(r, at_start) : failed, all = nothing;
    r->looks--;
    if (!rest.of[0]) return failed;
    for (int i = 0; i < VARIANTS; i++) {
        if (rest.of[i] == EXPR_NEVER) continue;
        gr_expr after = r->where & GR_SEARCH ? around(r, i % SIDES, false) : EXPR_EMPTY;
        gr_expr *into = &all.of[i / SIDES * SIDES + SIDE_TEXT];
        *into = gr_or(r->g, *into, gr_and(r->g, gr_cat(r->g, rest.of[i], after), seen));
        if (!*into) return failed;
    }
    return all;
}

static bool looks_ahead(const struct regex *r, size_t at)
{
    const uint8_t *next = r->text.data + at;
    return r->text.size - at > 2 && next[0] == '(' && next[1] == '?' && (next[2] == '=' || next[2] == '!');
}

/* Position after the group that begins here if it contains a lookahead; else 0. */
static size_t end_of_looking(const struct regex *r)
{
    int depth = 0;
    bool looks = false, in_class = false;
    for (size_t i = r->at; i < r->text.size; i++) {
        uint8_t c = r->text.data[i];
        if (c == '\\') i++;
        else if (in_class) in_class = c != ']';
        else if (c == '[') in_class = true;
        else if (c == '(') looks = looks_ahead(r, i) || looks, depth++;
        else if (c == ')' && --depth == 0) return looks ? i + 1 : 0;
    }
    return 0;
}

/* Reads a group with lookaheads and the part after it. The part is read first and appended to each alternative of the
 * group. */
static struct part open_group(struct regex *r, size_t end, bool at_start)
{
    size_t begin = r->at, after;
    uint32_t least, most;
    int where = r->where;
    const struct part *tail = r->tail;
    if (++r->looks > NESTING_MOST) return plain(regex_wrong(r, "there are too many lookaheads"));
    r->at = end;
    if (!quantifier(r, &least, &most)) least = most = 1;
    else regex_takes(r, "?"); /* lazy */
    if (most != 1) return plain(regex_wrong(r, "lookahead inside a repeated group is not supported"));
    struct part rest = alternative(r, false);
    after = r->at;
    r->tail = &rest;
    r->at = begin + 1;
    struct part p = rest.of[0] && group_head(r) ? enclosed(r, true, at_start) : failed;
    r->tail = tail;
    r->where = where;
    r->at = after;
    r->looks--;
    return p.of[0] && !least ? either(r->g, p, rest) : p;
}

/* Reads an alternative up to `|` or `)`. `at_start`: nothing can stand before it. Terms are joined like a balanced
 * tree, so that a long pattern stays cheap. */
static struct part alternative(struct regex *r, bool at_start)
{
    enum { LEVELS = 32 };
    struct part held[LEVELS]; /* each joins 2^level terms, if that bit of `n` is set */
    uint32_t n = 0;
    bool is_whole = false; /* the tail has been appended */
    for (; regex_peek(r) >= 0 && regex_peek(r) != '|' && regex_peek(r) != ')'; n++) {
        bool begins = regex_peek(r) == '^' && !(r->where & GR_MULTILINE), looks = r->open && looks_ahead(r, r->at);
        size_t end = r->open && !looks && regex_peek(r) == '(' ? end_of_looking(r) : 0;
        struct part p = looks ? looking(r, at_start) : end ? open_group(r, end, at_start) : term(r);
        is_whole = looks || end;
        at_start = begins;
        int level = 0;
        for (; n >> level & 1; level++) p = sequence(r, held[level], p);
        held[level] = p;
        if (!p.of[0]) return failed;
    }
    struct part all = plain(EXPR_EMPTY);
    for (int level = 0; level < LEVELS && all.of[0]; level++)
        if (n >> level & 1) all = sequence(r, held[level], all);
    if (r->open && r->tail && !is_whole && all.of[0]) all = sequence(r, all, *r->tail);
    return all;
}

static struct part disjunction(struct regex *r, bool at_start)
{
    struct part all = alternative(r, at_start);
    while (all.of[0] && regex_takes(r, "|")) all = either(r->g, all, alternative(r, at_start));
    return all;
}

gr_expr gr_regex(struct grammar *g, struct bytes pattern, int where, enum gr_form form, struct error *err)
{
    struct regex r = {.g = g, .text = pattern, .form = form, .where = where, .open = true};
    struct part p = disjunction(&r, !(where & GR_SEARCH));
    if (p.of[0] && r.at < pattern.size) p = plain(regex_wrong(&r, "a parenthesis was not opened"));
    mem_free(g->mem, r.ranges);
    gr_expr made = p.of[0] ? EXPR_NEVER : 0;
    for (int i = 0; i < VARIANTS && made; i++) {
        if (p.of[i] == EXPR_NEVER) continue;
        gr_expr whole = p.of[i];
        if (where & GR_SEARCH)
            whole = gr_sequence(g, (gr_expr[]){around(&r, i / SIDES, true), whole, around(&r, i % SIDES, false)}, 3);
        made = gr_or(g, made, whole);
    }
    if (!made && err) *err = g->err;
    return made;
}
