/* SPDX-License-Identifier: MIT
 *
 * Tool calls: each name with arguments of its own schema, spaced as in templates or between tags, and nothing else;
 * tools whose schema is refused.
 */
#include "check.h"
#include "grammar/calls.h"

static struct mem mem;
static struct error err;
static bool is_closed;

/* Makes a grammar of calls; parts end with NUL, and a string literal's own NUL ends the last one. NULL if it is
 * refused. */
static struct grammar *grammar_in(const char *parts, size_t size, enum calls_form form)
{
    struct grammar *g = grammar_new(&mem);
    gr_expr start = 0;
    err = (struct error){0};
    const struct schema_options how = {.closed = is_closed};
    if (calls_compile(g, &mem, (struct bytes){(const uint8_t *)parts, size}, form, &how, &start, &err) == OK &&
        grammar_ready(g, start, &err) == OK)
        return g;
    grammar_free(g);
    return NULL;
}

static struct grammar *grammar_of(const char *parts, size_t size) { return grammar_in(parts, size, CALLS_JSON); }

static bool accepts(struct grammar *g, const char *text)
{
    return grammar_accepts(g, grammar_step(g, grammar_start(g), (struct bytes){(const uint8_t *)text, strlen(text)}));
}

#define TWO \
    "f: \0{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"array\"}}}\0}\n\0g: \0{\"$ref\":\"#/$defs/x\",\"$defs\":{\"x\":{\"const\":{}}}}\0 end"

static void each_with_its_own(void)
{
    struct grammar *g = grammar_of(TWO, sizeof TWO);
    CHECK(g);
    static const char *const good[] = {"f: {\"a\": 1, \"b\": [2, {}]}}\n", "f: {}}\n", "g: {} end"};
    static const char *const bad[] = {
        "g: {\"a\": 1} end",
        "f: {\"a\":1}}\n",
        "f: {\"a\": 1,\"b\": []}}\n",
        "f: {\"a\": 1 }}\n",
        "f: { }}\n",
        "f: {\"a\": \"x\"}}\n",
        "f: {}}",
        "h: {}}\n",
        "",
        "f: ",
        "g: {}}\n",
        "f: {} end",
        "g: {}",
    };
    for (size_t i = 0; g && i < sizeof good / sizeof *good; i++) CHECK(accepts(g, good[i]));
    for (size_t i = 0; g && i < sizeof bad / sizeof *bad; i++) CHECK(!accepts(g, bad[i]));
    grammar_free(g);
    CHECK_EQ(mem.used, 0);
}

static void refused(void)
{
    static const char word[] = "f: \0true\0\0g: \0{\"type\":\"string\",\"pattern\":\"(?<=x)\"}";
    CHECK(!grammar_of(word, sizeof word));
    CHECK_EQ(err.code, ERR_SCHEMA);
    CHECK(!strncmp(err.message, "The parameters of tool 1: ", 26));
    CHECK(!grammar_of("", 0));       /* without tools no text is a call */
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

/* --- between tags ------------------------------------------------------------------------------------------ */

/* A grammar of the arguments that a schema allows; a call is F(arguments). */
static struct grammar *tagged(const char *schema)
{
    char parts[2048];
    int n = snprintf(parts, sizeof parts, "F(%c%s%c)", 0, schema, 0);
    return grammar_in(parts, (size_t)n, CALLS_TAGGED);
}

static bool takes(struct grammar *g, const char *text)
{
    char call[1024];
    snprintf(call, sizeof call, "F(%s)", text);
    return accepts(g, call);
}

#define P(name, value) "<parameter=" name ">\n" value "\n</parameter>\n"
#define TYPES \
    "\"s\":{\"type\":\"string\"},\"n\":{\"type\":\"integer\",\"maximum\":9},\"b\":{\"type\":\"boolean\"},\"o\":{\"type\":\"object\"},\"z\":{\"type\":\"null\"}"
#define PROPERTIES(more) "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" more "}}"

struct tagged_case {
    const char *schema, *good[14], *bad[14];
};

static const struct tagged_case cases[] = {
    {"{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" TYPES "},\"required\":[\"s\"]}",
     {P("s", ""), P("s", "a"), P("s", "\"a\\n") P("n", "-7"),
      P("s", "a\n\n</param> <b> x</parameter\n") P("b", "True") P("o", "{\"a\": [1, \"\xc3\xbc\"]}"),
      P("s", "a") P("b", "false") P("z", "None"), P("s", "null"), P("s", "12") P("z", "null"), P("s", "True")},
     {"", P("n", "3"), P("n", "3") P("s", "a"), P("s", "a") P("s", "b"), P("s", "a") P("n", "10"),
      P("s", "a") P("n", "1.5"), P("s", "a") P("b", "TRUE"), P("s", "a") P("o", "{\"a\":1}"), P("s", "</parameter>"),
      P("s", "a</parameter>b"), P("s", "a") P("q", "1"), "<parameter=s>a</parameter>", P("s", "\x80")}},
    {PROPERTIES("\"s\":{\"enum\":[\"a\\nb\",\"\\\"\",\"</parameter>\"]}"),
     {"", P("s", "a\nb"), P("s", "\"")},
     {P("s", "a\\nb"), P("s", "</parameter>"), P("s", "a")}},
    {PROPERTIES("\"s\":{\"type\":\"string\",\"pattern\":\"^a.b$\",\"maxLength\":3}"),
     {P("s", "a\"b"), P("s", "a\xc3\xbc"
                             "b")},
     {P("s", "a\\\"b"), P("s", "ab")}},
    {PROPERTIES("\"s\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}],\"default\":null}"),
     {P("s", "null"), P("s", "None"), P("s", "5"), P("s", "{}"), P("s", "a"), P("s", "nul")},
     {P("s", " null"), P("s", "None ")}},
    {PROPERTIES("\"s\":{\"type\":[\"string\",\"integer\"],\"minimum\":5}"),
     {P("s", "7"), P("s", "7a"), P("s", "true"), P("s", "[1]")},
     {P("s", "3"), P("s", "7.0"), P("s", " 3"), P("s", "3\n")}},
    {PROPERTIES("\"s\":{}"),
     {P("s", "a"), P("s", "\"a\""), P("s", "1"), P("s", "[{}]"), P("s", "{a}b"), P("s", "{\"a\": null}")},
     {P("s", "{a}"), P("s", "[1,2]"), P("s", "01e5") "x"}},
    {PROPERTIES("\"s\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{}}}"),
     {P("s", "{\"a\": \"</param>\", \"b\": [\"</parameter\"]}"), P("s", "{}")},
     {P("s", "{\"a\": \"</parameter>\"}"), P("s", "{\"b\": [\"</parameter>\"]}"),
      P("s", "{\"b\": {\"x</parameter>\": 1}}")}},
    {PROPERTIES("\"s\":{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}"),
     {P("s", "[]"), P("s", "[{\"s\": [{}]}]")},
     {P("s", "[1]"), P("s", "[{\"q\": 1}]"), P("s", "")}},
    {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},\"additionalProperties\":{\"type\":\"string\"}}",
     {"", P("b", "x") P("c", "\""), P("a", "1") P("b", "2"), P("\xc3\xbc", "x")},
     {P("b", "x") P("a", "1"), P("a>", "x"), P("a\nb", "x"), P("a\"", "x"), P("\\u0061", "x") P("a", "1")}},
    {"{\"type\":\"object\",\"minProperties\":1,\"maxProperties\":2,\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{\"type\":\"string\"},\"c\":{\"type\":\"string\"}},\"additionalProperties\":false}",
     {P("a", "1"), P("a", "1") P("c", "1"), P("b", "")},
     {"", P("a", "1") P("b", "1") P("c", "1")}},
    {"{\"$ref\":\"#/$defs/x\",\"$defs\":{\"x\":{\"properties\":{\"a\":{\"$ref\":\"#/$defs/s\"}},\"required\":[\"a\"]},\"s\":{\"type\":\"string\",\"const\":\"\\t\"}}}",
     {P("a", "\t"), P("a", "\t") P("b", "1")},
     {"", P("a", "\\t")}},
    {"{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}", {""}, {" ", P("a", "1")}},
};

static void between_tags(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct grammar *g = tagged(cases[i].schema);
        CHECK(g);
        if (!g) printf("# case %zu: %s\n", i, err.message);
        for (size_t k = 0; g && k < 12 && cases[i].good[k]; k++) {
            if (!takes(g, cases[i].good[k])) printf("# case %zu, good %zu\n", i, k);
            CHECK(takes(g, cases[i].good[k]));
        }
        for (size_t k = 0; g && k < 12 && cases[i].bad[k]; k++) {
            if (takes(g, cases[i].bad[k])) printf("# case %zu, bad %zu\n", i, k);
            CHECK(!takes(g, cases[i].bad[k]));
        }
        grammar_free(g);
        CHECK_EQ(mem.used, 0);
    }
}

/* Without other members, in either form, if the caller wants that. */
static void closed(void)
{
    is_closed = true;
    struct grammar *g = grammar_of(TWO, sizeof TWO);
    CHECK(g && accepts(g, "f: {\"a\": 1, \"b\": [2, {\"c\": 3}]}}\n") && !accepts(g, "f: {\"c\": 1}}\n"));
    grammar_free(g);
    g = tagged("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"o\":{\"properties\":{\"b\":{}}}}}");
    CHECK(g && takes(g, P("a", "1") P("o", "{\"b\": 1}")) && !takes(g, P("c", "1")) && !takes(g, P("o", "{\"c\": 1}")));
    grammar_free(g);
    is_closed = false;
    CHECK_EQ(mem.used, 0);
}

/* A long string under a large limit continues up to what looks like its end; a small limit is obeyed. */
static void long_between_tags(void)
{
    static char value[50000], call[60000];
    struct grammar *g = tagged(
        PROPERTIES("\"s\":{\"type\":\"string\",\"maxLength\":60000},\"t\":{\"type\":\"string\",\"maxLength\":2000}"));
    CHECK(g);
    memset(value, 'a', sizeof value - 1);
    for (int n = 1999; g && n <= 2001; n++) {
        snprintf(call, sizeof call, "F(" P("s", "%s\n</parameter") P("t", "%0*d") ")", value, n, 0);
        CHECK_EQ(accepts(g, call), n <= 2000);
    }
    grammar_free(g);
    CHECK_EQ(mem.used, 0);
}

static void refused_between_tags(void)
{
    CHECK(!tagged(PROPERTIES("\"a>b\":{}")));
    CHECK(strstr(err.message, "'>'"));
    CHECK(!tagged("{\"type\":\"string\"}")); /* arguments must be an object */
    CHECK(!tagged(PROPERTIES("\"a\":{\"pattern\":\"(?<=x)\"}")));
    CHECK(!strncmp(err.message, "The parameters of tool 0: ", 26));
    CHECK(!tagged("{\"properties\":{\"a\":{\"enum\":[\"</parameter>\"]}},\"required\":[\"a\"]}"));
    CHECK_EQ(mem.used, 0);
}

int main(int argc, char **argv)
{
    static const struct check tests[] = {
        {"each_with_its_own", each_with_its_own}, {"refused", refused},
        {"between_tags", between_tags},           {"closed", closed},
        {"long_between_tags", long_between_tags}, {"refused_between_tags", refused_between_tags}};
    return check_run(argc, argv, tests, sizeof tests / sizeof *tests);
}
