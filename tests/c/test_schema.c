/* SPDX-License-Identifier: MIT
 *
 * Schemas: what their grammars accept (tests/fixtures/schemas/cases.txt), what is refused and why, short memory,
 * hostile sizes, and texts that are generated from a grammar byte by byte.
 */
#include "check.h"
#include "grammar/nodes.h"
#include "grammar/schema/schema.h"

#include <stdlib.h>
#include <time.h>

enum { LINE = 4096 };

static struct mem mem;
static struct grammar *grammar;
static struct error err;

static struct bytes text_of(const char *text) { return (struct bytes){(const uint8_t *)text, strlen(text)}; }

static int compile(struct bytes text, struct schema_options options)
{
    gr_expr start;
    grammar_free(grammar);
    grammar = grammar_new(&mem);
    err = (struct error){0};
    if (!grammar) return ERR_MEM_LOAD;
    int status = schema_compile(grammar, &mem, text, &options, &start, &err);
    if (!status) status = grammar_ready(grammar, start, &err);
    CHECK(status == err.code && (status != OK) == (err.rule[0] != 0) && (status != OK) == (err.message[0] != 0));
    return status;
}

static void let_go(void)
{
    grammar_free(grammar);
    grammar = NULL;
    CHECK_EQ(mem.used, 0);
}

static bool accepts(const char *text)
{
    gr_state state = grammar_step(grammar, grammar_start(grammar), text_of(text));
    return state != GR_DEAD && grammar_accepts(grammar, state);
}

/* --- the table ------------------------------------------------------------------------------------------- */

static void try_refusal(const char *line)
{
    char rule[40];
    size_t n = strcspn(line, " ");
    snprintf(rule, sizeof rule, "%.*s", (int)n, line);
    int status = compile(text_of(line + n + 1), (struct schema_options){0});
    if (status != ERR_SCHEMA || strcmp(err.rule, rule)) printf("# %s: %s %s\n", line, err.rule, err.message);
    CHECK_EQ(status, ERR_SCHEMA);
    CHECK(!strcmp(err.rule, rule));
}

static void try_line(const char *line)
{
    struct schema_options options = {
        .draft = line[1] == '7' ? 7 : 0, .flexible = line[1] == 'F', .closed = line[1] == 'C'};
    if (line[0] == 'S') {
        int status = compile(text_of(strchr(line, ' ') + 1), options);
        if (status) printf("# %s: %s\n", line, err.message);
        CHECK_EQ(status, OK);
    } else if (line[0] == '!') try_refusal(line + 1);
    else if (line[0] == '+' || line[0] == '-') {
        bool right = accepts(line + 2) == (line[0] == '+');
        if (!right) printf("# %s\n", line);
        CHECK(right);
    }
}

static void table(void)
{
    char path[256], line[LINE];
    snprintf(path, sizeof path, "%s/schemas/cases.txt", check_fixtures);
    FILE *f = fopen(path, "r");
    int lines = 0;
    CHECK(f != NULL);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        try_line(line);
        lines++;
    }
    fclose(f);
    CHECK(lines > 200);
    let_go();
}

/* --- memory ---------------------------------------------------------------------------------------------- */

/* Any allocation may fail, with or without all later ones: that is reported soon (building rules from rules does not go
 * on without memory), and nothing leaks. */
static void starved(const char *schema)
{
    enum { SOON = 200 }; /* further allocations after the failure */
    CHECK_EQ(compile(text_of(schema), (struct schema_options){0}), OK);
    uint64_t before = mem.n_allocs, calls;
    CHECK_EQ(compile(text_of(schema), (struct schema_options){0}), OK);
    calls = mem.n_allocs - before;
    CHECK(calls > 5 && calls < 1000);
    for (uint64_t i = 1; i <= calls; i++) {
        uint64_t failing = mem.fail_at = mem.n_allocs + i;
        mem.fail_after = true; /* a question that runs out of memory has no answer, and does not answer no */
        int status = compile(text_of(schema), (struct schema_options){0});
        /* the pool of expressions reports that the schema is too large */
        CHECK(status == ERR_MEM_LOAD || status == ERR_SCHEMA);
        CHECK(mem.n_allocs - failing < SOON);
        mem.fail_at = 0;
        let_go();
    }
    CHECK_EQ(compile(text_of(schema), (struct schema_options){0}), OK);
    let_go();
}

static void memory_runs_out(void)
{
    static const char *const schemas[] = {
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"$ref\":\"#\"},\"contains\":{\"type\":\"null\"}}},"
        "\"patternProperties\":{\"^b\":{\"pattern\":\"[a-z]+\"}},\"oneOf\":[{\"required\":[\"a\"]},{\"minimum\":3}]}",
        "true",
        "{\"multipleOf\":0.01}",
        "{\"properties\":{\"a\":true,\"b\":{\"items\":{\"not\":{\"const\":[1]}}}},\"required\":[\"b\"]}",
    };
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) starved(schemas[i]);
}

/* --- sizes ----------------------------------------------------------------------------------------------- */

/* Repeats `each` n times, with its number, between `first` and `last`. */
static char *repeated(const char *first, const char *each, int n, const char *last)
{
    char *text = malloc((size_t)n * (strlen(each) + 12) + strlen(first) + strlen(last) + 1), *at = text;
    at += sprintf(at, "%s", first);
    for (int i = 0; i < n; i++) at += sprintf(at, each, i, i + 1);
    sprintf(at, "%s", last);
    return text;
}

static int compile_repeated(const char *first, const char *each, int n, const char *last)
{
    char *text = repeated(first, each, n, last);
    int status = compile(text_of(text), (struct schema_options){0});
    free(text);
    return status;
}

static void large_ones(void)
{
    CHECK_EQ(compile_repeated("{\"properties\":{", "\"p%d\":{\"type\":\"null\"},", 1000,
                              "\"z\":true},\"additionalProperties\":false}"),
             OK);
    CHECK(accepts("{\"p3\":null,\"p999\":null}"));
    CHECK(!accepts("{\"p3\":null,\"p1\":null}"));
    CHECK_EQ(compile_repeated("{\"enum\":[", "\"v%d\",", 3000, "1]}"), OK);
    CHECK(accepts("\"v2999\"") && !accepts("\"v3000\""));
    /* a chain of references through properties may have any length; one without properties may not */
    CHECK_EQ(compile_repeated("{\"$ref\":\"#/$defs/d0\",\"$defs\":{", "\"d%d\":{\"items\":{\"$ref\":\"#/$defs/d%d\"}},",
                              2000, "\"d2000\":false}}"),
             OK);
    CHECK(accepts("[[[[]]]]") && !accepts("[[[[]],]]"));
    CHECK_EQ(compile_repeated("{\"$ref\":\"#/$defs/d0\",\"$defs\":{", "\"d%d\":{\"$ref\":\"#/$defs/d%d\"},", 2000,
                              "\"d2000\":false}}"),
             ERR_SCHEMA);
    CHECK(!strcmp(err.rule, "limit"));
    CHECK_EQ(compile_repeated("", "{\"items\":", 1000, "true"), ERR_SCHEMA);
    CHECK(!strcmp(err.rule, "json"));
    CHECK_EQ(compile_repeated("{\"enum\":[", "[],", 200000, "1]}"), ERR_SCHEMA);
    CHECK(!strcmp(err.rule, "limit"));
    CHECK_EQ(compile_repeated("{\"title\":\"", "%d %d", 200000, "\"}"), ERR_SCHEMA);
    CHECK(!strcmp(err.rule, "limit"));
    let_go();
}

/* --- how work grows ---------------------------------------------------------------------------------------- */

/* Processor seconds for a list of n parts, whatever the result: the least of several runs. */
static double taken(const char *head, const char *part, int n, const char *tail)
{
    double least = 1e9;
    for (int i = 0; i < 2; i++) {
        clock_t begun = clock();
        compile_repeated(head, part, n, tail);
        double took = (double)(clock() - begun) / CLOCKS_PER_SEC;
        least = took < least ? took : least;
    }
    return least;
}

/* Sixteen times as many names take about sixteen times as long; code that compares them in pairs takes up to 256 times
 * as long. */
static void grows_evenly(void)
{
    static const char *const lists[][3] = {
        {"{\"required\":[", "\"k%d\",", "\"z\"]}"},
        {"{\"additionalProperties\":false,\"required\":[\"k0\"],\"properties\":{", "\"k%d\":true,", "\"z\":true}}"},
        {"{\"dependentRequired\":{\"a\":[", "\"k%d\",", "\"z\"]}}"},
        {"{\"$ref\":\"#/$defs/k0\",\"$defs\":{", "\"k%d\":{\"items\":{\"$ref\":\"#/$defs/k%d\"}},", "\"z\":true}}"},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        double few = taken(lists[i][0], lists[i][1], 2500, lists[i][2]),
               many = taken(lists[i][0], lists[i][1], 40000, lists[i][2]);
        if (many > 32 * few) printf("%s: %.4f and %.4f s\n", lists[i][0], few, many);
        CHECK(many <= 32 * few);
    }
    let_go();
}

static int asked_to_stop;
static int stop_now(void) { return ++asked_to_stop > 2; }

/* The stop callback is called now and then, and may end the making of a grammar. */
static void stopped(void)
{
    grammar_pace(stop_now);
    asked_to_stop = 0;
    CHECK_EQ(compile_repeated("{\"enum\":[", "\"v%d\",", 20000, "1]}"), ERR_SCHEMA);
    grammar_pace(NULL);
    CHECK(asked_to_stop == 3 && strstr(err.message, "too long"));
    CHECK_EQ(compile_repeated("{\"enum\":[", "\"v%d\",", 200, "1]}"), OK);
    let_go();
}

/* --- walks ----------------------------------------------------------------------------------------------- */

static uint64_t seed;
static uint32_t below(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

/* Takes any allowed byte, and bytes that end something when the text is long: there always is one, and the text can
 * always be finished. */
static size_t walk(uint8_t *text, size_t most)
{
    gr_state state = grammar_start(grammar);
    size_t n = 0;
    while (!grammar_accepts(grammar, state)) {
        uint32_t first = below(256), tries = 0;
        gr_state next = GR_DEAD;
        for (const char *end = n > most / 8 ? "\"]}" : ""; *end && next == GR_DEAD; end++) {
            text[n] = (uint8_t)*end;
            next = grammar_step(grammar, state, (struct bytes){text + n, 1});
        }
        for (; next == GR_DEAD && tries < 256; tries++) {
            text[n] = (uint8_t)(first + tries);
            next = grammar_step(grammar, state, (struct bytes){text + n, 1});
        }
        CHECK(next != GR_DEAD);
        state = next;
        if (++n == most) return 0;
    }
    return n;
}

/* A wider schema accepts every text of a narrower one. */
static void walks(void)
{
    static const char narrow[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"$ref\":\"#\"},\"maxItems\":2},\"b\":{\"minimum\":-2.5,"
        "\"maximum\":7},\"c\":{\"format\":\"date\"}},\"required\":[\"b\",\"c\"],\"additionalProperties\":false}";
    static uint8_t texts[40][4000];
    static size_t sizes[40];
    seed = 7;
    CHECK_EQ(compile(text_of(narrow), (struct schema_options){0}), OK);
    int whole = 0;
    for (int i = 0; i < 40; i++) whole += (sizes[i] = walk(texts[i], sizeof texts[i])) > 0;
    CHECK(whole > 20);
    CHECK_EQ(compile(text_of("true"), (struct schema_options){0}), OK);
    for (int i = 0; i < 40; i++)
        CHECK(grammar_accepts(grammar,
                              grammar_step(grammar, grammar_start(grammar), (struct bytes){texts[i], sizes[i]})) ||
              !sizes[i]);
    let_go();
}

/* The sentence names the keyword and its place. */
static void messages(void)
{
    CHECK_EQ(
        compile(text_of("{\"properties\":{\"a/b\":{\"items\":{\"multipleOf\":1.5}}}}"), (struct schema_options){0}),
        ERR_SCHEMA);
    CHECK(strstr(err.message, "multipleOf at #/properties/a/b/items") != NULL);
    CHECK_EQ(compile(text_of("{\"allOf\":[{},{\"disallow\":\"null\"}]}"), (struct schema_options){0}), ERR_SCHEMA);
    CHECK(strstr(err.message, "disallow at #/allOf/1") != NULL);
    gr_expr any;
    struct schema_options options = {0};
    grammar_free(grammar);
    grammar = grammar_new(&mem);
    CHECK_EQ(schema_any(grammar, &mem, &options, &any, &err), OK);
    CHECK_EQ(grammar_ready(grammar, any, &err), OK);
    CHECK(accepts("{\"a\":[true,null,1e-7]}") && !accepts("{\"a\":[true,null,1e-7}"));
    let_go();
}

/* Keywords without effect are noted once, or refused on request. */
static void notes(void)
{
    static const char schema[] =
        "{\"title\":\"t\",\"x-a\":1,\"items\":{\"nullable\":true,\"format\":\"int64\"},\"not\":{\"maxlength\":2,\"type\":\"null\"},"
        "\"contains\":{\"format\":\"int32\"},\"vendor\":{\"a\":1},\"$schema\":\"https://a.b/c\"}";
    CHECK_EQ(compile(text_of(schema), (struct schema_options){0}), OK);
    const char *told = grammar_notes(grammar);
    CHECK(strstr(told, "nullable nullable at #/items: ") &&
          strstr(told, "format format at #/items: the format \"int64\"") && strstr(told, "\"int32\""));
    CHECK(strstr(told, "maxlength maxlength at #/not: ") && strstr(told, "is maxLength meant?") &&
          strstr(told, "vendor vendor at #: ") && strstr(told, "$schema $schema at #: "));
    CHECK(!strstr(told, "title") && !strstr(told, "x-a"));
    int lines = 0;
    for (const char *at = told; (at = strchr(at, '\n')) != NULL; at++) lines++;
    CHECK_EQ(lines, 6);
    CHECK_EQ(compile(text_of(schema), (struct schema_options){.strict = true}), ERR_SCHEMA);
    CHECK_EQ(compile(text_of("{\"items\":{\"format\":\"int64\"}}"), (struct schema_options){.strict = true}),
             ERR_SCHEMA);
    CHECK(!strcmp(err.rule, "format") && strstr(err.message, "at #/items"));
    CHECK_EQ(compile(text_of("{\"title\":\"t\",\"x-a\":1,\"format\":\"date\",\"discriminator\":{}}"),
                     (struct schema_options){.strict = true}),
             OK);
    CHECK(!grammar_notes(grammar)[0]);
    static char many[4096];
    size_t n = 0;
    for (int i = 0; i < 200; i++) n += (size_t)snprintf(many + n, sizeof many - n, "%c\"word%d\":1", i ? ',' : '{', i);
    many[n] = '}';
    CHECK_EQ(compile(text_of(many), (struct schema_options){0}), OK);
    CHECK(strlen(grammar_notes(grammar)) < NOTES_MOST && strstr(grammar_notes(grammar), "word31 ") &&
          !strstr(grammar_notes(grammar), "word32 "));
    let_go();
}

int main(int argc, char **argv)
{
    static const struct check tests[] = {
        {"table", table},           {"messages", messages},
        {"notes", notes},           {"memory_runs_out", memory_runs_out},
        {"large_ones", large_ones}, {"grows_evenly", grows_evenly},
        {"stopped", stopped},       {"walks", walks},
    };
    return check_run(argc, argv, tests, sizeof tests / sizeof *tests);
}
