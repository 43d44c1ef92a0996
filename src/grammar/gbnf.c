/* SPDX-License-Identifier: MIT
 *
 * GBNF, the grammars of llama.cpp: rules of literals, classes, names, groups and repeats; comments begin with #. A rule
 * ends at the end of its line, except inside parentheses, after `::=` and around `|`. Rules may be used before they are
 * defined.
 */
#include "grammar/nodes.h"

#include "base/unicode.h"

#include <string.h>

enum { NESTING_MOST = 100, BUCKETS = 1 << 14, RANGES_MOST = 512 };

struct name {
    struct bytes text;
    gr_expr rule;
    uint32_t next; /* next name in its bucket: index + 1 */
    bool defined;
};

struct gbnf {
    struct grammar *g;
    struct bytes text;
    size_t at;
    int depth;
    struct name *names; /* [room] */
    uint32_t n, room;
    uint32_t buckets[BUCKETS]; /* index + 1 */
};

static gr_expr alternatives(struct gbnf *p);

static gr_expr wrong(struct gbnf *p, const char *sentence)
{
    unsigned line = 1;
    size_t at = p->at < p->text.size ? p->at : p->text.size, n = 0;
    for (size_t i = 0; i < at; i++) line += p->text.data[i] == '\n';
    while (n < 32 && at + n < p->text.size && p->text.data[at + n] != '\n' && p->text.data[at + n] != '\r') n++;
    while (n && at + n < p->text.size && (p->text.data[at + n] & 0xC0) == 0x80) n--;
    char shown[QUOTED];
    if (n == 0)
        return grammar_fail(p->g, "gbnf", at, "The grammar cannot be used, in line %u, at its end: %s.", line,
                            sentence);
    const char *text = quoted((struct bytes){p->text.data + at, n}, shown);
    return grammar_fail(p->g, "gbnf", at, "The grammar cannot be used, in line %u, at \"%s\": %s.", line, text,
                        sentence);
}

/* Reports an error at `begin`. Returns false. */
static bool wrong_from(struct gbnf *p, size_t begin, const char *sentence)
{
    p->at = begin;
    return wrong(p, sentence) != 0;
}

static int peek(const struct gbnf *p, size_t ahead)
{
    return p->at + ahead < p->text.size ? p->text.data[p->at + ahead] : -1;
}

static bool takes(struct gbnf *p, const char *word)
{
    size_t n = strlen(word);
    if (p->text.size - p->at < n || memcmp(p->text.data + p->at, word, n)) return false;
    p->at += n;
    return true;
}

static void skip_space(struct gbnf *p, bool lines)
{
    for (;; p->at++) {
        int c = peek(p, 0);
        if (c == '#')
            while (peek(p, 1) >= 0 && peek(p, 1) != '\n' && peek(p, 1) != '\r') p->at++;
        else if (c != ' ' && c != '\t' && !(lines && (c == '\n' || c == '\r'))) return;
    }
}

/* --- names ----------------------------------------------------------------------------------------------------- */

static struct bytes read_name(struct gbnf *p)
{
    size_t begin = p->at;
    for (int c; (c = peek(p, 0)) >= 0; p->at++)
        if (c != '-' && c != '_' && (c < '0' || c > '9') && ((c | 0x20) < 'a' || (c | 0x20) > 'z')) break;
    return (struct bytes){p->text.data + begin, p->at - begin};
}

/* Returns the index of a name + 1, and adds the name if it is new. 0: failed. */
static uint32_t find_name(struct gbnf *p, struct bytes text)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < text.size; i++) hash = (hash ^ text.data[i]) * 16777619u;
    uint32_t *bucket = &p->buckets[(hash ^ hash >> 16) % BUCKETS];
    for (uint32_t i = *bucket; i; i = p->names[i - 1].next) {
        if (bytes_compare(p->names[i - 1].text, text) == 0) return i;
        if (!node_work(p->g, 1)) return 0;
    }
    gr_expr rule = gr_rule(p->g);
    gr_name(p->g, rule, text);
    if (!rule || !node_room(p->g, (void **)&p->names, &p->room, (uint64_t)p->n + 1, sizeof *p->names)) return 0;
    p->names[p->n++] = (struct name){text, rule, *bucket, false};
    return *bucket = p->n;
}

/* --- literals and classes -------------------------------------------------------------------------------------- */

/* Reads one code point, escaped or not. */
static bool read_char(struct gbnf *p, uint32_t *c)
{
    static const char from[] = "nrt\\\"[]^-", to[] = "\n\r\t\\\"[]^-";
    if (p->at >= p->text.size) return wrong(p, "a literal or a class is not closed") != 0;
    size_t begin = p->at;
    if (!takes(p, "\\")) {
        p->at += utf8_read(p->text.data + p->at, p->text.size - p->at, c);
        return *c != UTF8_INVALID || wrong(p, "it is not valid UTF-8");
    }
    int kind = peek(p, 0), digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (kind <= 0 || (!digits && !strchr(from, kind))) return wrong_from(p, begin, "there is no such escape");
    p->at++;
    *c = digits ? 0 : (uint32_t)(uint8_t)to[strchr(from, kind) - from];
    for (int i = 0; i < digits; i++, p->at++) {
        int h = peek(p, 0);
        int digit = h >= '0' && h <= '9'                     ? h - '0'
                    : (h | 0x20) >= 'a' && (h | 0x20) <= 'f' ? (h | 0x20) - 'a' + 10
                                                             : -1;
        if (digit < 0) return wrong_from(p, begin, "hexadecimal digits are missing");
        *c = *c << 4 | (uint32_t)digit;
    }
    return *c <= 0x10FFFF || wrong_from(p, begin, "there is no such code point");
}

/* Joins the expressions on the scratch from `base` on to a sequence. */
static gr_expr join(struct gbnf *p, uint32_t base)
{
    gr_expr all = EXPR_EMPTY;
    while (p->g->n_scratch > base && all) all = gr_cat(p->g, (gr_expr)p->g->scratch[--p->g->n_scratch], all);
    p->g->n_scratch = base;
    return all;
}

static gr_expr literal(struct gbnf *p)
{
    uint32_t base = p->g->n_scratch, c;
    while (!takes(p, "\"")) {
        uint8_t utf8[UTF8_MAX];
        size_t begin = p->at;
        if (!read_char(p, &c)) return 0;
        if (c >= 0xD800 && c <= 0xDFFF) return wrong_from(p, begin, "half a character cannot be written"), 0;
        size_t n = utf8_write(c, utf8);
        if (!node_push(p->g, gr_text(p->g, (struct bytes){utf8, n}))) return 0;
    }
    return join(p, base);
}

static gr_expr class(struct gbnf *p)
{
    struct gr_range ranges[RANGES_MOST], others[RANGES_MOST + 1];
    size_t n = 0, n_others = 0;
    bool negated = takes(p, "^");
    for (; !takes(p, "]"); n++) {
        size_t begin = p->at;
        if (n == RANGES_MOST) return wrong(p, "a class has more than 512 ranges");
        if (!read_char(p, &ranges[n].first)) return 0;
        ranges[n].last = ranges[n].first;
        if (peek(p, 0) != '-' || peek(p, 1) == ']') continue;
        p->at++;
        if (!read_char(p, &ranges[n].last)) return 0;
        if (ranges[n].last < ranges[n].first) return wrong_from(p, begin, "a range is out of order"), 0;
    }
    if (!negated) return gr_class(p->g, GR_PLAIN, ranges, n);
    uint32_t next = 0;
    n = class_order(p->g, ranges, n);
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].first > next) others[n_others++] = (struct gr_range){next, ranges[i].first - 1};
        next = ranges[i].last + 1;
    }
    others[n_others++] = (struct gr_range){next, UINT32_MAX};
    return gr_class(p->g, GR_PLAIN, others, n_others);
}

/* --- rules ----------------------------------------------------------------------------------------------------- */

static gr_expr group(struct gbnf *p)
{
    if (++p->depth > NESTING_MOST) return wrong(p, "groups are nested too deeply");
    gr_expr inner = alternatives(p);
    p->depth--;
    if (!inner) return 0;
    return takes(p, ")") ? inner : wrong(p, "a parenthesis is not closed");
}

static gr_expr element(struct gbnf *p)
{
    if (takes(p, "\"")) return literal(p);
    if (takes(p, "[")) return class(p);
    if (takes(p, ".")) return gr_range(p->g, 0, UINT32_MAX);
    if (takes(p, "(")) return group(p);
    if (peek(p, 0) == '<' || peek(p, 0) == '!') return wrong(p, "tokens (<...>) are not supported");
    uint32_t name = find_name(p, read_name(p));
    return name ? p->names[name - 1].rule : 0;
}

static bool number(struct gbnf *p, uint32_t *out)
{
    size_t begin = p->at;
    uint64_t value = 0;
    for (int c; (c = peek(p, 0)) >= '0' && c <= '9'; p->at++) {
        value = value * 10 + (uint64_t)(c - '0');
        if (value >= GR_MANY) value = GR_MANY - 1;
    }
    *out = (uint32_t)value;
    return p->at > begin;
}

/* Reads the rest of a count after `{`. White space may occur between its parts. */
static gr_expr counted(struct gbnf *p, gr_expr a)
{
    uint32_t least = 0, most;
    bool lines = p->depth > 0;
    skip_space(p, lines);
    bool first = number(p, &least);
    most = least;
    skip_space(p, lines);
    if (takes(p, ",")) {
        skip_space(p, lines);
        if (!number(p, &most)) most = GR_MANY;
        skip_space(p, lines);
    } else if (!first) return wrong(p, "a count is missing");
    if (!takes(p, "}") || most < least) return wrong(p, "a count is out of order or not closed");
    return gr_repeat(p->g, a, least, most);
}

static gr_expr repeats(struct gbnf *p, gr_expr a)
{
    while (a) {
        if (takes(p, "*")) a = gr_repeat(p->g, a, 0, GR_MANY);
        else if (takes(p, "+")) a = gr_repeat(p->g, a, 1, GR_MANY);
        else if (takes(p, "?")) a = gr_repeat(p->g, a, 0, 1);
        else if (takes(p, "{")) a = counted(p, a);
        else return a;
        skip_space(p, p->depth > 0);
    }
    return 0;
}

static bool begins_element(int c)
{
    return c == '"' || c == '[' || c == '.' || c == '(' || c == '<' || c == '!' || c == '-' || c == '_' ||
           (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static gr_expr sequence(struct gbnf *p)
{
    uint32_t base = p->g->n_scratch;
    while (begins_element(peek(p, 0))) {
        gr_expr a = element(p);
        skip_space(p, p->depth > 0);
        if (!node_push(p->g, repeats(p, a))) return 0;
    }
    return join(p, base);
}

static gr_expr alternatives(struct gbnf *p)
{
    uint32_t base = p->g->n_scratch;
    for (;;) {
        skip_space(p, true);
        if (!node_push(p->g, sequence(p))) return 0;
        size_t end = p->at;
        skip_space(p, true);
        if (takes(p, "|")) continue;
        if (!p->depth) p->at = end;
        return node_or(p->g, base);
    }
}

static bool rule(struct gbnf *p)
{
    size_t begin = p->at;
    struct bytes text = read_name(p);
    if (!text.size) return wrong(p, "the name of a rule is expected") != 0;
    uint32_t name = find_name(p, text);
    skip_space(p, false);
    if (!name || !takes(p, "::=")) return name && wrong(p, "::= is expected after the name of a rule");
    if (p->names[name - 1].defined) return wrong_from(p, begin, "a rule is defined twice");
    p->names[name - 1].defined = true;
    gr_expr body = alternatives(p);
    if (!body) return false;
    gr_define(p->g, p->names[name - 1].rule, body);
    skip_space(p, false);
    return peek(p, 0) < 0 || peek(p, 0) == '\n' || peek(p, 0) == '\r' ||
           wrong(p, "this is not part of a rule");
}

static gr_expr read_all(struct gbnf *p)
{
    static const char root[] = "root";
    for (skip_space(p, true); p->at < p->text.size; skip_space(p, true))
        if (!rule(p)) return 0;
    uint32_t name = find_name(p, (struct bytes){(const uint8_t *)root, sizeof root - 1});
    if (name && !p->names[name - 1].defined) return wrong(p, "there is no rule `root`");
    return name ? p->names[name - 1].rule : 0;
}

gr_expr gr_gbnf(struct grammar *g, struct bytes text, struct error *err)
{
    struct gbnf *p = mem_alloc(g->mem, sizeof *p);
    if (p) *p = (struct gbnf){.g = g, .text = text};
    uint32_t base = g->n_scratch;
    gr_expr made = p ? read_all(p) : node_memory(g);
    g->n_scratch = base;
    if (p) mem_free(g->mem, p->names);
    mem_free(g->mem, p);
    if (!made && err) *err = g->err;
    return made;
}
