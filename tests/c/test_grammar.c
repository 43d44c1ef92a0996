/* SPDX-License-Identifier: MIT
 *
 * Grammars: random expressions and rules against a slow matcher that tries every way, over every short text; what
 * builders may request; limits.
 */
#include "check.h"
#include "grammar/vocabulary.h"

#include <stdlib.h>

static struct mem mem;

static uint64_t seed;
static uint32_t below(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

static struct bytes text_of(const char *text) { return (struct bytes){(const uint8_t *)text, strlen(text)}; }

static bool accepts(struct grammar *g, const char *text)
{
    return grammar_accepts(g, grammar_step(g, grammar_start(g), text_of(text)));
}

/* --- the slow matcher: computes the set of possible ends of a part of a text ----------------------------------- */

enum { TREES = 400, TEXT_MOST = 6, RULES = 3 };
enum tree_kind { T_NEVER, T_EMPTY, T_SET, T_CAT, T_OR, T_AND, T_NOT, T_REPEAT, T_RULE };

struct tree {
    enum tree_kind kind;
    int a, b, set; /* set: bits of the letters a, b, c */
    uint32_t least, most;
};

static struct tree trees[TREES];
static int n_trees;
static int bodies[RULES];

static uint32_t ends(int t, const char *text, int begin, int size);

/* The ends of a limited number of repetitions, from the set `from`. */
static uint32_t ends_repeated(const struct tree *t, const char *text, uint32_t from, int size)
{
    uint32_t all = t->least == 0 ? from : 0;
    uint32_t most = t->most == GR_MANY || t->most > t->least + 2 * TEXT_MOST ? t->least + 2 * TEXT_MOST : t->most;
    for (uint32_t k = 1; k <= most; k++) {
        uint32_t next = 0;
        for (int i = 0; i <= size; i++)
            if (from >> i & 1) next |= ends(t->a, text, i, size);
        from = next;
        if (k >= t->least) all |= from;
    }
    return all;
}

static uint32_t ends(int index, const char *text, int begin, int size)
{
    const struct tree *t = &trees[index];
    uint32_t all = 0, from = 0;
    switch (t->kind) {
    case T_NEVER: return 0;
    case T_EMPTY: return 1u << begin;
    case T_SET: return begin < size && t->set >> (text[begin] - 'a') & 1 ? 2u << begin : 0;
    case T_CAT:
        from = ends(t->a, text, begin, size);
        for (int i = begin; i <= size; i++)
            if (from >> i & 1) all |= ends(t->b, text, i, size);
        return all;
    case T_OR: return ends(t->a, text, begin, size) | ends(t->b, text, begin, size);
    case T_AND: return ends(t->a, text, begin, size) & ends(t->b, text, begin, size);
    case T_NOT: return ~ends(t->a, text, begin, size) & ((2u << size) - 1) & ~((1u << begin) - 1);
    case T_REPEAT: return ends_repeated(t, text, 1u << begin, size);
    case T_RULE: return ends(bodies[t->a], text, begin, size);
    }
    return 0;
}

static int add(struct tree t)
{
    trees[n_trees] = t;
    return n_trees++;
}

/* Makes a random tree. `rules` rules may be called, each after a letter, so that none begins with itself. */
static int grow(int depth, int rules)
{
    if (depth == 0 || below(8) == 0) {
        int leaf = (int)below(9);
        if (leaf == 0) return add((struct tree){.kind = T_EMPTY});
        if (leaf == 1 && below(4) == 0) return add((struct tree){.kind = T_NEVER});
        return add((struct tree){.kind = T_SET, .set = 1 + (int)below(7)});
    }
    if (rules && below(4) == 0) {
        int letter = add((struct tree){.kind = T_SET, .set = 1 + (int)below(7)}),
            rule = add((struct tree){.kind = T_RULE, .a = (int)below((uint32_t)rules)});
        return add((struct tree){.kind = T_CAT, .a = letter, .b = rule});
    }
    static const enum tree_kind kinds[] = {T_CAT, T_CAT, T_CAT, T_OR, T_OR, T_REPEAT, T_AND, T_NOT};
    struct tree t = {.kind = kinds[below(rules ? 6 : 8)]};
    t.a = grow(depth - 1, rules);
    if (t.kind == T_CAT || t.kind == T_OR || t.kind == T_AND) t.b = grow(depth - 1, rules);
    t.least = below(3);
    t.most = below(3) ? t.least + below(3) : GR_MANY;
    return add(t);
}

static gr_expr build(struct grammar *g, int index, const gr_expr *rules)
{
    const struct tree *t = &trees[index];
    uint32_t set[8] = {0};
    gr_expr a = t->kind >= T_CAT && t->kind != T_RULE ? build(g, t->a, rules) : 0;
    gr_expr b = t->kind == T_CAT || t->kind == T_OR || t->kind == T_AND ? build(g, t->b, rules) : 0;
    switch (t->kind) {
    case T_NEVER: return gr_never(g);
    case T_EMPTY: return gr_empty(g);
    case T_SET: set['a' >> 5] = (uint32_t)t->set << ('a' & 31); return gr_byte_set(g, set);
    case T_CAT: return gr_cat(g, a, b);
    case T_OR: return gr_or(g, a, b);
    case T_AND: return gr_and(g, a, b);
    case T_NOT: return gr_not(g, a);
    case T_REPEAT: return gr_repeat(g, a, t->least, t->most);
    case T_RULE: return rules[t->a];
    }
    return 0;
}

/* Compares every text of up to TEXT_MOST letters. Returns how many are in the language; none may be if the grammar is
 * empty. */
static int compare(struct grammar *g, int tree)
{
    int accepted = 0;
    for (int size = 0, texts = 1; size <= TEXT_MOST; size++, texts *= 3) {
        for (int number = 0; number < texts; number++) {
            char text[TEXT_MOST + 1] = {0};
            for (int i = 0, rest = number; i < size; i++, rest /= 3) text[i] = (char)('a' + rest % 3);
            bool expected = ends(tree, text, 0, size) >> size & 1;
            CHECK_EQ(accepts(g, text), expected);
            accepted += expected;
        }
    }
    return accepted;
}

/* From every state that a text reaches, some text leads to an end. */
static void check_alive(struct grammar *g)
{
    enum { MOST = 4000 };
    static gr_state states[MOST];
    char text[TEXT_MOST + 1] = {0};
    for (int i = 0; i < TEXT_MOST; i++) text[i] = (char)('a' + below(3));
    gr_state first = grammar_step(g, grammar_start(g), (struct bytes){(uint8_t *)text, below(TEXT_MOST)});
    if (first == GR_DEAD) return;
    int n = 0;
    states[n++] = first;
    for (int i = 0; i < n; i++) {
        if (grammar_accepts(g, states[i])) return;
        for (uint8_t c = 'a'; c <= 'd'; c++) { /* a character outside the texts may be allowed by NOT */
            gr_state to = grammar_step(g, states[i], (struct bytes){&c, 1});
            bool known = to == GR_DEAD;
            for (int k = 0; k < n && !known; k++) known = states[k] == to;
            if (!known && n < MOST) states[n++] = to;
        }
    }
    CHECK(n == MOST);
}

/* What must follow a state is found, byte by byte, as by trying all bytes. */
static int check_forced(struct grammar *g)
{
    char text[3] = {(char)('a' + below(3)), (char)('a' + below(3)), 0};
    gr_state state = grammar_step(g, grammar_start(g), (struct bytes){(uint8_t *)text, below(3)});
    uint8_t forced[10];
    uint32_t n = grammar_forced(g, state, forced, sizeof forced), i = 0;
    for (; i < sizeof forced && state != GR_DEAD && !grammar_accepts(g, state); i++) {
        int ways = 0;
        uint8_t only = 0;
        gr_state next = GR_DEAD;
        for (int b = 0; b < 256; b++) {
            gr_state to = grammar_step(g, state, (struct bytes){&(uint8_t){(uint8_t)b}, 1});
            if (to != GR_DEAD) ways++, only = (uint8_t)b, next = to;
        }
        if (ways != 1) break;
        CHECK(i < n && forced[i] == only);
        state = next;
    }
    CHECK_EQ(i, n);
    return (int)n;
}

static int n_forced;

static int try_random(int rules)
{
    struct error err;
    gr_expr of[RULES] = {0};
    struct grammar *g = grammar_new(&mem);
    CHECK(g != NULL);
    n_trees = 0;
    for (int r = 0; r < rules; r++) of[r] = gr_rule(g);
    for (int r = 0; r < rules; r++) bodies[r] = grow(3, rules);
    int tree = grow(4, rules);
    gr_expr start = build(g, tree, of);
    for (int r = 0; r < rules; r++) gr_define(g, of[r], build(g, bodies[r], of));
    int status = grammar_ready(g, start, &err), accepted = 0;
    if (!rules && start) CHECK_EQ(gr_is_empty(g, start) == GR_YES, status != OK);
    CHECK_EQ(grammar_error(g)->code, status);
    if (status == OK) {
        accepted = compare(g, tree);
        check_alive(g);
        n_forced += check_forced(g);
    } else {
        CHECK_EQ(status, ERR_SCHEMA);
        CHECK(!strcmp(err.rule, "nothing"));
        for (int size = 0; size <= 3; size++) CHECK_EQ(ends(tree, "abc", 0, size) >> size & 1, 0);
    }
    grammar_free(g);
    CHECK_EQ(mem.used, 0);
    return accepted;
}

static void against_the_slow_matcher(void)
{
    int accepted = 0, rounds = (int)check_length(300, 6000);
    for (int i = 0; i < rounds; i++) {
        seed = (uint64_t)i + 1;
        accepted += try_random(i % 2 ? RULES : 0);
    }
    CHECK(accepted > rounds * 10); /* the texts accepted are enough to mean something */
    CHECK(n_forced > rounds / 10);
}

/* --- one by one ------------------------------------------------------------------------------------------------ */

static struct grammar *ready(struct grammar *g, gr_expr start)
{
    CHECK_EQ(grammar_ready(g, start, NULL), OK);
    return g;
}

static void finish(struct grammar *g)
{
    grammar_free(g);
    CHECK_EQ(mem.used, 0);
}

static void counted(void)
{
    struct grammar *g = grammar_new(&mem);
    char text[2001];
    ready(g, gr_repeat(g, gr_literal(g, "ab"), 500, 1000));
    for (int i = 0; i < 2000; i++) text[i] = i % 2 ? 'b' : 'a';
    for (size_t n = 0; n <= 2000; n += 100)
        CHECK_EQ(grammar_accepts(g, grammar_step(g, grammar_start(g), (struct bytes){(uint8_t *)text, n})), n >= 1000);
    finish(g);
}

static void multiples(void)
{
    static const uint64_t divisors[] = {1, 2, 3, 7, 10, 97, 1000000000000000000u};
    for (size_t i = 0; i < sizeof divisors / sizeof *divisors; i++) {
        struct grammar *g = grammar_new(&mem);
        char text[32];
        ready(g, gr_multiple(g, divisors[i]));
        for (uint64_t n = 0; n < 700; n++) {
            snprintf(text, sizeof text, "%llu", (unsigned long long)n);
            CHECK_EQ(accepts(g, text), n % divisors[i] == 0);
        }
        for (uint64_t n = 5000000000000000000; n < 5000000000000000100; n++) {
            snprintf(text, sizeof text, "%llu", (unsigned long long)n);
            CHECK_EQ(accepts(g, text), n % divisors[i] == 0);
        }
        CHECK(!accepts(g, "00") && !accepts(g, "010") && !accepts(g, ""));
        finish(g);
    }
    struct grammar *g = grammar_new(&mem);
    CHECK_EQ(gr_multiple(g, 0), 0);
    CHECK_EQ(grammar_error(g)->code, ERR_SCHEMA);
    finish(g);
}

/* Checks every code point against its UTF-8. */
static void code_points(void)
{
    struct grammar *g = grammar_new(&mem);
    const struct gr_range ranges[] = {{0x10FFF0, UINT32_MAX}, {'x', 'z'},        {0x7F, 0x80}, {0x3B1, 0x3C9},
                                      {0xD000, 0xE005},       {0xFFFF, 0x10005}, {'a', 'x'}};
    ready(g, gr_class(g, GR_PLAIN, ranges, sizeof ranges / sizeof *ranges));
    for (uint32_t c = 0; c < 0x110000; c++) {
        uint8_t t[4] = {(uint8_t)c};
        size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        if (n == 2) t[0] = (uint8_t)(0xC0 | c >> 6);
        if (n == 3) t[0] = (uint8_t)(0xE0 | c >> 12);
        if (n == 4) t[0] = (uint8_t)(0xF0 | c >> 18);
        for (size_t i = 1; i < n; i++) t[i] = (uint8_t)(0x80 | (c >> 6 * (n - 1 - i) & 0x3F));
        bool in = false;
        for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
            in = in || (c >= ranges[i].first && c <= ranges[i].last);
        CHECK_EQ(grammar_accepts(g, grammar_step(g, grammar_start(g), (struct bytes){t, n})),
                 in && (c < 0xD800 || c > 0xDFFF));
    }
    finish(g);
}

static void inside_json(void)
{
    struct grammar *g = grammar_new(&mem);
    ready(g, gr_repeat(g, gr_class(g, GR_JSON, &(struct gr_range){0, UINT32_MAX}, 1), 0, GR_MANY));
    CHECK(accepts(g, "a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0000\\u001f \x7F \xC3\xA9 \xF0\x9F\x98\x80/"));
    static const char *const wrong[] = {"\"",  "\n",   "\\/",          "\\u0041", "\\u000a", "\\u001F",
                                        "\\x", "\xC3", "\xED\xA0\x80", "\xFF",    "\x1F"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) CHECK(!accepts(g, wrong[i]));
    finish(g);
    g = grammar_new(&mem);
    ready(g, gr_json_text(g, text_of("say \"\xC3\xA9\"\x01\n")));
    CHECK(accepts(g, "say \\\"\xC3\xA9\\\"\\u0001\\n"));
    finish(g);
    g = grammar_new(&mem);
    CHECK_EQ(gr_json_text(g, text_of("ab\xFF")), 0);
    CHECK(!strcmp(grammar_error(g)->rule, "utf-8") && grammar_error(g)->offset == 2);
    finish(g);
}

static void questions(void)
{
    struct grammar *g = grammar_new(&mem);
    gr_expr letters = gr_repeat(g, gr_range(g, 'a', 'z'), 0, GR_MANY),
            digits = gr_repeat(g, gr_range(g, '0', '9'), 1, GR_MANY);
    gr_expr cats = gr_cat(g, gr_repeat(g, gr_range(g, 'a', 'a'), 0, GR_MANY), gr_literal(g, "b")),
            dogs = gr_cat(g, gr_repeat(g, gr_range(g, 'a', 'a'), 0, GR_MANY), gr_literal(g, "c"));
    CHECK_EQ(gr_disjoint(g, letters, digits), GR_YES);
    CHECK_EQ(gr_disjoint(g, cats, letters), GR_NO);
    CHECK_EQ(gr_disjoint(g, cats, dogs), GR_YES);
    CHECK_EQ(gr_is_empty(g, gr_and(g, letters, gr_not(g, letters))), GR_YES);
    CHECK_EQ(gr_contains(g, cats, text_of("aaab")), GR_YES);
    CHECK_EQ(gr_contains(g, cats, text_of("aaa")), GR_NO);
    CHECK_EQ(gr_is_empty(g, gr_rule(g)), GR_UNKNOWN);
    /* Two counts with a very large common multiple: the answer is unknown, without an error. */
    gr_expr a = gr_literal(g, "a"), far = gr_and(g, gr_repeat(g, gr_repeat(g, a, 9973, 9973), 0, GR_MANY),
                                                 gr_cat(g, a, gr_repeat(g, gr_repeat(g, a, 9967, 9967), 0, GR_MANY)));
    CHECK_EQ(gr_is_empty(g, far), GR_UNKNOWN);
    CHECK_EQ(grammar_error(g)->code, OK);
    ready(g, gr_or(g, cats, dogs));
    CHECK(accepts(g, "aab") && accepts(g, "c") && !accepts(g, "a"));
    finish(g);
}

/* "a" must not be allowed if only more a's and then an empty class may follow. */
static void corners(void)
{
    struct grammar *g = grammar_new(&mem);
    gr_expr many = gr_repeat(g, gr_literal(g, "a"), 0, GR_MANY);
    gr_expr trap = gr_and(g, gr_cat(g, many, gr_literal(g, "b")), gr_cat(g, many, gr_literal(g, "c")));
    ready(g, gr_or(g, gr_cat(g, gr_literal(g, "x"), trap), gr_literal(g, "y")));
    CHECK_EQ(grammar_step(g, grammar_start(g), text_of("x")), GR_DEAD);
    CHECK(accepts(g, "y"));
    CHECK_EQ(grammar_error(g)->code, OK);
    finish(g);
}

static void nesting(void)
{
    struct grammar *g = grammar_new(&mem);
    gr_expr list = gr_rule(g), any[] = {list, gr_literal(g, "1")};
    gr_expr item = gr_any(g, any, 2),
            more = gr_cat(g, item, gr_repeat(g, gr_cat(g, gr_literal(g, ","), item), 0, GR_MANY));
    gr_expr parts[] = {gr_literal(g, "["), gr_or(g, gr_empty(g), more), gr_literal(g, "]")};
    gr_define(g, list, gr_sequence(g, parts, 3));
    ready(g, list);
    enum { DEEP = 20000 };
    static char text[2 * DEEP + 1];
    memset(text, '[', DEEP);
    memset(text + DEEP, ']', DEEP);
    gr_state s = grammar_step(g, grammar_start(g), (struct bytes){(uint8_t *)text, DEEP});
    CHECK(s != GR_DEAD && !grammar_accepts(g, s));
    CHECK(accepts(g, "[[1,[]],1]") && !accepts(g, "[1,]") && !accepts(g, "[1]]"));
    finish(g);
}

static void expect_rule(struct grammar *g, gr_expr start, const char *rule)
{
    struct error err = {0};
    CHECK_EQ(grammar_ready(g, start, &err), ERR_SCHEMA);
    CHECK(!strcmp(err.rule, rule));
    CHECK_EQ(grammar_start(g), GR_DEAD);
    finish(g);
}

static void refused(void)
{
    struct grammar *g = grammar_new(&mem);
    gr_expr r = gr_rule(g), maybe = gr_repeat(g, gr_literal(g, "x"), 0, 1);
    gr_define(g, r, gr_or(g, gr_cat(g, maybe, gr_cat(g, r, gr_literal(g, "y"))), gr_literal(g, "z")));
    expect_rule(g, gr_cat(g, gr_literal(g, "("), r), "left-recursion");
    g = grammar_new(&mem);
    expect_rule(g, gr_cat(g, gr_literal(g, "("), gr_rule(g)), "undefined");
    g = grammar_new(&mem);
    r = gr_rule(g);
    gr_define(g, r, gr_cat(g, gr_literal(g, "("), r));
    expect_rule(g, r, "nothing");
    g = grammar_new(&mem);
    expect_rule(g, gr_not(g, gr_rule(g)), "recursion");
    g = grammar_new(&mem);
    r = gr_literal(g, "x");
    for (int i = 0; i < 5000; i++) { /* a chain of rules longer than derivatives may nest */
        gr_expr next = gr_rule(g);
        gr_define(g, next, r);
        r = next;
    }
    ready(g, r);
    CHECK_EQ(grammar_step(g, grammar_start(g), text_of("x")), GR_DEAD);
    CHECK(!strcmp(grammar_error(g)->rule, "limit"));
    finish(g);
}

static void short_of_memory(void)
{
    bool whole = false;
    for (uint64_t n = 1; !whole; n++) {
        mem = (struct mem){.fail_at = n, .fail_after = n % 2};
        struct grammar *g = grammar_new(&mem);
        if (g) {
            gr_expr r = gr_rule(g);
            gr_define(g, r,
                      gr_or(g, gr_cat(g, gr_class(g, GR_JSON, &(struct gr_range){0, 0x3000}, 1), r),
                            gr_not(g, gr_literal(g, "end"))));
            whole = grammar_ready(g, r, NULL) == OK && accepts(g, "\xC3\xA9 en");
            if (!whole) CHECK(!strcmp(grammar_error(g)->rule, "memory"));
            grammar_free(g);
        }
        CHECK_EQ(mem.used, 0);
    }
    mem = (struct mem){0};
}

int main(int argc, char **argv)
{
    static const struct check tests[] = {
        {"against_the_slow_matcher", against_the_slow_matcher},
        {"counted", counted},
        {"multiples", multiples},
        {"code_points", code_points},
        {"inside_json", inside_json},
        {"questions", questions},
        {"corners", corners},
        {"nesting", nesting},
        {"refused", refused},
        {"short_of_memory", short_of_memory},
    };
    return check_run(argc, argv, tests, sizeof tests / sizeof *tests);
}
