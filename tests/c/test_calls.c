/* SPDX-License-Identifier: MIT
 *
 * Calls of tools: each name with its own schema's arguments, spaced as templates space them, and nothing else; whose schema is refused.
 */
#include "check.h"
#include "grammar/calls.h"

static struct mem mem;
static struct error err;

/* A grammar of calls; parts end with NUL, which a literal has at its own end too. NULL where it is refused. */
static struct grammar *grammar_of(const char *parts, size_t size)
{
    struct grammar *g = grammar_new(&mem);
    gr_expr start = 0;
    err = (struct error){0};
    if (calls_compile(g, &mem, (struct bytes){(const uint8_t *)parts, size}, &start, &err) == OK && grammar_ready(g, start, &err) == OK) return g;
    grammar_free(g);
    return NULL;
}

static bool accepts(struct grammar *g, const char *text)
{
    return grammar_accepts(g, grammar_step(g, grammar_start(g), (struct bytes){(const uint8_t *)text, strlen(text)}));
}

#define TWO "f: \0{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"array\"}}}\0}\n\0g: \0{\"$ref\":\"#/$defs/x\",\"$defs\":{\"x\":{\"const\":{}}}}\0 end"

static void each_with_its_own(void)
{
    struct grammar *g = grammar_of(TWO, sizeof TWO);
    CHECK(g);
    static const char *const good[] = {"f: {\"a\": 1, \"b\": [2, {}]}}\n", "f: {}}\n", "g: {} end"};
    static const char *const bad[] = {
        "g: {\"a\": 1} end", "f: {\"a\":1}}\n", "f: {\"a\": 1,\"b\": []}}\n", "f: {\"a\": 1 }}\n", "f: { }}\n", "f: {\"a\": \"x\"}}\n", "f: {}}", "h: {}}\n", "", "f: ", "g: {}}\n", "f: {} end", "g: {}",
    };
    for (size_t i = 0; g && i < sizeof good / sizeof *good; i++) CHECK(accepts(g, good[i]));
    for (size_t i = 0; g && i < sizeof bad / sizeof *bad; i++) CHECK(!accepts(g, bad[i]));
    grammar_free(g);
    CHECK_EQ(mem.used, 0);
}

static void refused(void)
{
    static const char word[] = "f: \0true\0\0g: \0{\"type\":\"string\",\"pattern\":\"(?=x)\"}";
    CHECK(!grammar_of(word, sizeof word));
    CHECK_EQ(err.code, ERR_SCHEMA);
    CHECK(!strncmp(err.message, "The parameters of tool 1: ", 26));
    CHECK(!grammar_of("", 0));       /* no tools: no text is a call */
    CHECK(!grammar_of("f: ", 3));    /* a name without a schema */
    CHECK(!grammar_of("f: \0", 4));
    char many[(CALLS_MAX + 1) * 9];
    for (size_t i = 0; i < sizeof many; i++) many[i] = "f\0true\0.\0"[i % 9];
    CHECK(!grammar_of(many, sizeof many));
    CHECK(strstr(err.message, "128"));
    struct grammar *g = grammar_of(many, sizeof many - 9);
    CHECK(g && accepts(g, "f[1, 2]."));
    grammar_free(g);
    CHECK_EQ(mem.used, 0);
}

int main(int argc, char **argv)
{
    static const struct check tests[] = {{"each_with_its_own", each_with_its_own}, {"refused", refused}};
    return check_run(argc, argv, tests, sizeof tests / sizeof *tests);
}
