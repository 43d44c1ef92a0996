/* SPDX-License-Identifier: MIT
 *
 * Every kind of grammar text through the one function that JavaScript and the command line use, and what it refuses.
 */
#include "check.h"
#include "grammar/compile.h"

static struct mem mem;

static int compile(int kind, const char *text, uint32_t flags, struct grammar **g, struct error *err)
{
    static uint8_t own[256];
    memcpy(own, text, strlen(text));
    *err = (struct error){0};
    return grammar_compile(&mem, kind, own, strlen(text), flags, g, err);
}

static bool accepts(struct grammar *g, const char *text)
{
    return grammar_accepts(g, grammar_step(g, grammar_start(g), (struct bytes){(const uint8_t *)text, strlen(text)}));
}

static void kinds(void)
{
    static const struct {
        int kind;
        const char *text;
        uint32_t flags;
        const char *in, *out;
    } cases[] = {
        {GRAMMAR_SCHEMA, "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}", 0, "[1,-2]", "[1, 2]"},
        {GRAMMAR_SCHEMA, "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}", GRAMMAR_FLEXIBLE, "[1, 2]", "[1.5]"},
        {GRAMMAR_REGEX, "a.c", 0, "abc", "xabc"},
        {GRAMMAR_REGEX, "a.c", GRAMMAR_DOT_ALL, "a\nc", "ac"},
        {GRAMMAR_REGEX, "a.c", 0, "a+c", "a\nc"},
        {GRAMMAR_GBNF, "root ::= \"a\" root?", 0, "aaa", ""},
        {GRAMMAR_CHOICES, "[\"a\",\"b\"]", 0, "b", "ab"},
        {GRAMMAR_JSON, "", 0, "{\"a\":[1.5,null]}", "{a:1}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct grammar *g;
        struct error err;
        CHECK_EQ(compile(cases[i].kind, cases[i].text, cases[i].flags, &g, &err), OK);
        CHECK(accepts(g, cases[i].in) && !accepts(g, cases[i].out));
        grammar_free(g);
        CHECK_EQ(mem.used, 0);
    }
}

static void refused(void)
{
    static const struct {
        int kind;
        const char *text;
        uint32_t flags;
        int status;
        const char *rule;
    } cases[] = {
        {-1, "", 0, ERR_PARAM, "kind"},
        {GRAMMAR_KINDS, "", 0, ERR_PARAM, "kind"},
        {GRAMMAR_REGEX, "\\p{Old}", GRAMMAR_IGNORE_CASE, ERR_SCHEMA, "property"},
        {GRAMMAR_REGEX, "(", 0, ERR_SCHEMA, "pattern"},
        {GRAMMAR_REGEX, "[]", 0, ERR_SCHEMA, "nothing"},
        {GRAMMAR_GBNF, "a ::= \"b\"", 0, ERR_SCHEMA, "gbnf"},
        {GRAMMAR_CHOICES, "[]", 0, ERR_SCHEMA, "choices"},
        {GRAMMAR_SCHEMA, "{\"minimum\":", 0, ERR_SCHEMA, "json"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct grammar *g;
        struct error err;
        CHECK_EQ(compile(cases[i].kind, cases[i].text, cases[i].flags, &g, &err), cases[i].status);
        CHECK(g == NULL && err.code == cases[i].status && !strcmp(err.rule, cases[i].rule) && err.message[0]);
        CHECK_EQ(mem.used, 0);
    }
    struct grammar *g;
    CHECK_EQ(grammar_compile(&mem, GRAMMAR_GBNF, NULL, GRAMMAR_TEXT_MOST + 1, 0, &g, NULL), ERR_SCHEMA);
}

/* With any limit of memory there is either a grammar or an error about memory, and nothing leaks. */
static void limits_of_memory(void)
{
    bool whole = false;
    for (uint64_t limit = 1 << 18; !whole; limit += limit / 4) {
        struct grammar *g;
        struct error err;
        mem = (struct mem){.limit = limit};
        int status = compile(GRAMMAR_REGEX, "(\\p{L}{1,30}|[^x]+)@\\w+(\\.\\w+)*", 0, &g, &err);
        CHECK(status == OK || status == ERR_SCHEMA || status == ERR_MEM_LOAD);
        if (!status && !accepts(g, "a@b")) CHECK(!strcmp(grammar_error(g)->rule, "memory"));
        else whole = !status;
        grammar_free(g);
        CHECK_EQ(mem.used, 0);
        CHECK(limit < 64 << 20);
    }
    mem = (struct mem){0};
}

int main(int argc, char **argv)
{
    static const struct check tests[] = {
        {"kinds", kinds}, {"refused", refused}, {"limits_of_memory", limits_of_memory}};
    return check_run(argc, argv, tests, sizeof tests / sizeof *tests);
}
