/* SPDX-License-Identifier: MIT
 *
 * Masks against stepping every token, and the texts that become grammars: patterns, GBNF, choices.
 */
#include "check.h"
#include "grammar/saved.h"
#include "grammar/schema/schema.h"
#include "qwen_tokens.h"

static struct mem mem;
static uint64_t seed = 1;

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

static struct grammar *make(gr_expr build(struct grammar *g, const char *text), const char *text)
{
    struct error err = {0};
    struct grammar *g = grammar_new(&mem);
    CHECK(g != NULL);
    int status = grammar_ready(g, build(g, text), &err);
    if (status) printf("%s: %s\n", err.rule, err.message);
    CHECK_EQ(status, OK);
    return g;
}

static void finish(struct grammar *g)
{
    grammar_free(g);
    CHECK_EQ(mem.used, 0);
}

/* --- masks ----------------------------------------------------------------------------------------------------- */

static gr_expr whole(struct grammar *g, const char *text)
{
    return gr_regex(g, text_of(text), GR_WHOLE, GR_PLAIN, NULL);
}
static gr_expr search(struct grammar *g, const char *text)
{
    return gr_regex(g, text_of(text), GR_SEARCH, GR_PLAIN, NULL);
}
static gr_expr gbnf(struct grammar *g, const char *text) { return gr_gbnf(g, text_of(text), NULL); }

/* A JSON string of at most 5 + size of `text` characters, then a number. */
static gr_expr counted_string(struct grammar *g, const char *text)
{
    gr_expr c = gr_class(g, GR_JSON, &(struct gr_range){0, UINT32_MAX}, 1), quote = gr_literal(g, "\"");
    gr_expr parts[] = {quote, gr_repeat(g, c, 2, 5 + (uint32_t)strlen(text)), quote,
                       gr_repeat(g, gr_range(g, '0', '9'), 0, 3)};
    return gr_sequence(g, parts, 4);
}

static gr_expr any_string(struct grammar *g, const char *text)
{
    gr_expr c = gr_class(g, GR_JSON, &(struct gr_range){0, UINT32_MAX}, 1), quote = gr_literal(g, text);
    return gr_cat(g, quote, gr_cat(g, gr_repeat(g, c, 0, GR_MANY), quote));
}

static gr_expr schema_with(struct grammar *g, const char *text, struct schema_options options)
{
    char copy[1000];
    struct error err = {0};
    gr_expr start = 0;
    snprintf(copy, sizeof copy, "%s", text);
    int status = schema_compile(g, &mem, (struct bytes){(uint8_t *)copy, strlen(copy)}, &options, &start, &err);
    if (status) printf("%s: %s\n", err.rule, err.message);
    return start;
}

static gr_expr schema(struct grammar *g, const char *text) { return schema_with(g, text, (struct schema_options){0}); }
static gr_expr flexible(struct grammar *g, const char *text)
{
    return schema_with(g, text, (struct schema_options){.flexible = true});
}

/* Keys other than the named ones, and counts. */
static const char keys_schema[] =
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"maxLength\":30},\"the\":true,\"there\":{\"type\":\"null\"}},"
    "\"additionalProperties\":{\"type\":\"string\",\"minLength\":3,\"maxLength\":9}}";
static const char counts_schema[] =
    "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":40}}";

/* White space everywhere, numbers in several places, patterns with counts, keys by patterns, and values of any kind. */
static const char spaced_schema[] =
    "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"number\"},\"list\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}},\"id\":{\"type\":\"string\",\"format\":\"uuid\"}},\"required\":[\"list\"]}";
static const char pattern_keys_schema[] =
    "{\"type\":\"object\",\"properties\":{\"type\":{\"enum\":[\"a\",\"b\",1]},\"text\":true},\"patternProperties\":{\"^t\":{\"type\":\"string\"},\"e$\":{\"minLength\":2}}}";
static const char patterns_schema[] =
    "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"pattern\":\"^[a-z]([-a-z0-9]*[a-z0-9])?$\",\"minLength\":3,\"maxLength\":63}}";
static const char uri_schema[] =
    "{\"anyOf\":[{\"type\":\"string\",\"format\":\"uri\"},{\"type\":\"object\",\"additionalProperties\":{\"$ref\":\"#\"},\"maxProperties\":3},{\"type\":\"number\",\"minimum\":-5}]}";

/* The languages of the grammars in llama.cpp's documentation, with their ambiguities: white space that may or may not
 * be a line's end, names that are types, a comment's end. */
static const char json_grammar[] =
    "root ::= object\n"
    "value ::= object | array | string | number | (\"true\" | \"false\" | \"null\") ws\n"
    "object ::= \"{\" ws ( pair (\",\" ws pair)* )? \"}\" ws\n"
    "pair ::= string \":\" ws value\n"
    "array ::=\n  \"[\" ws (\n    value (\",\" ws value)*\n  )? \"]\" ws\n"
    "string ::= \"\\\"\" ([^\"\\\\\\x7F\\x00-\\x1F] | \"\\\\\" ([\"\\\\bfnrt] | \"u\" [0-9a-fA-F]{4}))* \"\\\"\" ws\n"
    "number ::= (\"-\"? ([0-9] | [1-9] [0-9]{0,15})) (\".\" [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws\n"
    "# no more of it than people write: else a model may go on with it for ever\n"
    "ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n";

/* A line's end is also white space, and no rule that may be empty hides that. */
static const char arithmetic_grammar[] =
    "root ::= (expr \"=\" ws term \"\\n\")+\n"
    "expr ::= term ([-+*/] term)*\n"
    "term ::= name | number | \"(\" ws expr \")\" ws\n"
    "name ::= [a-z] [a-z0-9_]* ws\n"
    "number ::= [0-9]+ ws\n"
    "ws ::= [ \\t\\n]*\n";

static const char chess_grammar[] =
    "# one to ninety-nine moves; the second one is not optional\n"
    "root ::= \"1. \" move \" \" move \"\\n\" ([1-9] [0-9]? \". \" move \" \" move \"\\n\")+\n"
    "move ::= (pawn | piece | castle) [+#]?\n"
    "# a file and a rank before the goal, each or none: \"Nd2\" and \"Nbd2\" begin alike\n"
    "piece ::= [NBKQR] [a-h]? [1-8]? \"x\"? [a-h] [1-8]\n"
    "pawn ::= ([a-h] \"x\")? [a-h] [1-8] (\"=\" [NBKQR])?\n"
    "castle ::= \"O-O\" \"-O\"?\n";

static const char list_grammar[] =
    "root ::= item+\n"
    "# no end of a line as any system has it\n"
    "item ::= \"- \" [^\\r\\n\\x0b\\x0c\\x85\\u2028\\u2029]+ \"\\n\"\n";

static const char c_grammar[] =
    "root ::= function*\n"
    "function ::= type name \"(\" (type name)? \")\" block\n"
    "block ::= \"{\" statement* \"}\"\n"
    "type ::= (\"int\" | \"float\" | \"char\") ws\n"
    "statement ::=\n"
    "  setting \";\" |\n"
    "  name ws \"(\" list? \")\" \";\" |\n"
    "  \"return\" ws sum \";\" |\n"
    "  \"while\" \"(\" condition \")\" block |\n"
    "  \"for\" \"(\" setting \";\" ws condition \";\" ws change \")\" block |\n"
    "  \"if\" \"(\" condition \")\" block (\"else\" block)? |\n"
    "  \"//\" [^\\n]* \"\\n\" |\n"
    "  \"/*\" ([^*] | \"*\" [^/])* \"*/\"\n"
    "setting ::= type change | change # a name may be a type's: \"int\" is one too\n"
    "change ::= name ws \"=\" ws sum\n"
    "condition ::= sum (\"<=\" | \"<\" | \"==\" | \"!=\" | \">=\" | \">\") sum\n"
    "sum ::= product ([-+] product)*\n"
    "product ::= factor ([*/] factor)*\n"
    "factor ::= name | [0-9]+ | \"-\" factor | name \"(\" list? \")\" | \"(\" ws sum ws \")\"\n"
    "list ::= sum (\",\" ws sum)*\n"
    "name ::= [a-zA-Z_] [a-zA-Z_0-9]*\n"
    "ws ::= [ \\t\\n]+\n";

static const struct {
    gr_expr (*build)(struct grammar *g, const char *text);
    const char *text;
} languages[] = {
    {any_string, "\""},
    {any_string, "a"},
    {counted_string, ""},
    {counted_string, "0123456789012345678901234567890123456789"},
    {counted_string, "012345678901234567"},
    {whole, "[a-z]{1,40}"},
    {search, "f(oo|\\p{L}+)bar"},
    {whole, "\\d{4}-\\d\\d-\\d\\d( \\d+)*"},
    {gbnf, json_grammar},
    {schema, keys_schema},
    {schema, counts_schema},
    {schema, "{\"type\":\"string\",\"minLength\":1,\"maxLength\":200}"},
    {gbnf, arithmetic_grammar},
    {gbnf, chess_grammar},
    {gbnf, list_grammar},
    {gbnf, c_grammar},
    {flexible, spaced_schema},
    {schema, pattern_keys_schema},
    {flexible, pattern_keys_schema},
    {flexible, patterns_schema},
    {flexible, uri_schema},
    {whole, "([^\"]*,)*[ab]*"},
    {whole, "[a-z]*[0-9a-f]{2,5}(, [a-z]*)*"},
};

static bool allowed(const uint32_t *mask, uint32_t id) { return mask[id >> 5] >> (id & 31) & 1; }

/* Writes a text token by token, choosing any allowed token. */
static void check_walk(struct grammar *g, const struct vocabulary *v, int steps)
{
    gr_state state = grammar_start(g);
    for (int i = 0; i < steps; i++) {
        static uint32_t kept[QWEN_TOKENS / 32 + 2];
        const uint32_t *mask = grammar_mask(g, v, state);
        CHECK(mask != NULL && v->n_words <= sizeof kept / sizeof *kept);
        memcpy(kept, mask, v->n_words * sizeof *mask);
        uint32_t n = 0, chosen = 0;
        for (uint32_t id = 0; id < v->n; id++) {
            CHECK_EQ(allowed(kept, id), grammar_take(g, v, state, id) != GR_DEAD);
            if (allowed(kept, id) && v->kinds[id] == TOKEN_TEXT && below(++n) == 0) chosen = id;
        }
        CHECK(n > 0 || grammar_accepts(g, state));
        CHECK(!memcmp(kept, grammar_mask(g, v, state), v->n_words * sizeof *mask)); /* remembered, and the same */
        if (!n) return;
        state = grammar_take(g, v, state, chosen);
    }
}

static void against_every_token(void)
{
    struct vocabulary_source source;
    struct vocabulary *v = NULL;
    int steps = (int)check_length(6, 60);
    CHECK(qwen_tokens(check_fixtures, 16, &source));
    CHECK_EQ(vocabulary_new(&mem, &source, &v, NULL), OK);
    qwen_tokens_free(&source);
    uint64_t used = mem.used;
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++) {
        struct grammar *g = make(languages[i].build, languages[i].text);
        for (int k = 0; k < 2; k++) check_walk(g, v, steps);
        grammar_free(g);
        CHECK_EQ(mem.used, used);
    }
    vocabulary_free(v);
    CHECK_EQ(mem.used, 0);
}

/* --- slices ---------------------------------------------------------------------------------------------------- */

/* Grammars whose transitions take many steps, one by one or together; the last two exceed the limit of a call. */
static const struct {
    gr_expr (*build)(struct grammar *g, const char *text);
    const char *text;
    bool fails;
} slow_ones[] = {
    {search, "^(?=.*a.{4}b)(?=.*c.{3}d).*$", false},
    {whole, "(((.{0,50}a){0,50}b){0,50}c){0,50}", false},
    {search, "^(?!.*(a|b.{5}a).{4}c)[a-d ]*$", false},
    {gbnf, "root ::= a\na ::= [a-z] a? a? a? | [a-z] b?\nb ::= [a-z] a? b? | [a-z]", false},
    {gbnf, "root ::= a\na ::= [a-z ] a? a? a? a? a? | [a-z] b?\nb ::= [a-z ] a? b? | [a-z]", true},
    {whole, "(.{0,99}a.{0,98}b|.{0,97}c.{0,96}d|.{0,95}e.{0,94}f|.{0,93}g.{0,92}h){2,99}", true},
};

static const int64_t slices[] = {0, 1000, 1 << 14};
enum { SLICED = 3 };

/* Number of repeated calls, of all grammars. */
static int pauses;

static const uint32_t *whole_mask(struct grammar *g, const struct vocabulary *v, gr_state state)
{
    const uint32_t *mask = grammar_mask(g, v, state);
    for (; !mask && grammar_paused(g); pauses++) mask = grammar_mask(g, v, state);
    return mask;
}

static gr_state whole_take(struct grammar *g, const struct vocabulary *v, gr_state state, uint32_t id)
{
    gr_state to = grammar_take(g, v, state, id);
    for (; to == GR_DEAD && grammar_paused(g); pauses++) to = grammar_take(g, v, state, id);
    return to;
}

/* Checks that masks, states and steps, or the error, are the same with and without slices. Returns whether the grammar
 * failed. */
static bool check_sliced(struct grammar *g[SLICED], const struct vocabulary *v, int steps)
{
    gr_state state = grammar_start(g[0]);
    for (int i = 0; i < steps; i++) {
        const uint32_t *masks[SLICED];
        uint32_t n = 0, chosen = 0;
        for (int k = 0; k < SLICED; k++) {
            masks[k] = whole_mask(g[k], v, state);
            CHECK_EQ(masks[k] != NULL, masks[0] != NULL);
            CHECK_EQ(g[k]->work, g[0]->work);
            CHECK(!strcmp(grammar_error(g[k])->message, grammar_error(g[0])->message));
            CHECK(!masks[k] || !memcmp(masks[k], masks[0], v->n_words * sizeof **masks));
        }
        if (!masks[0]) return true;
        for (uint32_t id = 0; id < v->n; id++)
            if (allowed(masks[0], id) && v->kinds[id] == TOKEN_TEXT && below(++n) == 0) chosen = id;
        if (!n) return false;
        gr_state next = whole_take(g[0], v, state, chosen);
        for (int k = 1; k < SLICED; k++) CHECK_EQ(whole_take(g[k], v, state, chosen), next);
        state = next;
    }
    return false;
}

static void make_sliced(struct grammar *g[SLICED], gr_expr build(struct grammar *g, const char *text), const char *text)
{
    for (int k = 0; k < SLICED; k++) {
        g[k] = make(build, text);
        grammar_slice(g[k], slices[k]);
    }
}

static void the_same_in_slices(void)
{
    enum { LANGUAGES = sizeof languages / sizeof *languages, SLOW = sizeof slow_ones / sizeof *slow_ones };
    struct vocabulary_source source;
    struct vocabulary *v = NULL;
    struct grammar *g[SLICED];
    CHECK(qwen_tokens(check_fixtures, 16, &source));
    CHECK_EQ(vocabulary_new(&mem, &source, &v, NULL), OK);
    qwen_tokens_free(&source);
    for (size_t i = 0; i < LANGUAGES + SLOW; i++) {
        bool slow = i >= LANGUAGES, failed = false;
        pauses = 0;
        if (slow) make_sliced(g, slow_ones[i - LANGUAGES].build, slow_ones[i - LANGUAGES].text);
        else make_sliced(g, languages[i].build, languages[i].text);
        for (int k = 0; k < 2; k++) failed |= check_sliced(g, v, (int)check_length(12, 60));
        CHECK_EQ(failed, slow && slow_ones[i - LANGUAGES].fails);
        CHECK(!slow || pauses > 20);
        for (int k = 0; k < SLICED; k++) grammar_free(g[k]);
    }
    vocabulary_free(v);
    CHECK_EQ(mem.used, 0);
}

/* Three users in turns, each asking for a mask, then for a step: no call discards the progress of another user's call.
 */
static void in_turns(void)
{
    enum { WHO = 3, WORDS = QWEN_TOKENS / 16 / 32 + 20 };
    static uint32_t masks[WHO][WORDS];
    struct vocabulary_source source;
    struct vocabulary *v = NULL;
    CHECK(qwen_tokens(check_fixtures, 16, &source));
    CHECK_EQ(vocabulary_new(&mem, &source, &v, NULL), OK);
    qwen_tokens_free(&source);
    CHECK(v->n_words <= WORDS);
    for (size_t i = 0; i < 4; i++) {
        struct grammar *g = make(slow_ones[i].build, slow_ones[i].text),
                       *alone = make(slow_ones[i].build, slow_ones[i].text);
        gr_state states[WHO] = {grammar_start(g), grammar_start(g), grammar_start(g)},
                 beside[WHO] = {grammar_start(alone), grammar_start(alone), grammar_start(alone)};
        grammar_slice(g, 1000);
        for (int step = 0; step < 10; step++) {
            uint32_t chosen[WHO] = {0}, left = WHO;
            bool done[WHO] = {false};
            for (int calls = 0; left; calls++) {
                CHECK(calls < 100000);
                for (int k = 0; k < WHO; k++) {
                    const uint32_t *mask = done[k] ? NULL : grammar_mask(g, v, states[k]);
                    CHECK(done[k] || mask || grammar_paused(g));
                    if (!mask) continue;
                    memcpy(masks[k], mask, v->n_words * sizeof *mask);
                    done[k] = true;
                    left--;
                }
            }
            for (int k = 0; k < WHO; k++) {
                uint32_t n = 0;
                CHECK(!memcmp(masks[k], grammar_mask(alone, v, beside[k]), v->n_words * sizeof **masks));
                for (uint32_t id = 0; id < v->n; id++)
                    if (allowed(masks[k], id) && v->kinds[id] == TOKEN_TEXT && below(++n) == 0) chosen[k] = id;
                CHECK(n > 0);
            }
            for (int k = 0; k < WHO; k++, left++) done[k] = false;
            while (left) {
                for (int k = 0; k < WHO; k++) {
                    gr_state to = done[k] ? GR_DEAD : grammar_take(g, v, states[k], chosen[k]);
                    if (to == GR_DEAD) continue;
                    states[k] = to;
                    done[k] = true;
                    left--;
                }
            }
            for (int k = 0; k < WHO; k++) beside[k] = grammar_take(alone, v, beside[k], chosen[k]);
        }
        grammar_free(g);
        grammar_free(alone);
    }
    vocabulary_free(v);
    CHECK_EQ(mem.used, 0);
}

/* Shared parts can be reached in many ways, and first bytes must not be searched for along each of them. Ten rules with
 * eight ways would take forever. */
static void shared_beginnings(void)
{
    static char text[20000];
    int at = sprintf(text, "root ::= r10 \"z\"\nr0 ::= \"a\"\n");
    for (int rule = 1; rule <= 10; rule++) {
        at += sprintf(text + at, "r%d ::= \"a\"", rule);
        for (int way = 0; way < 8; way++) at += sprintf(text + at, " | r%d{0,%d} \"%c\"", rule - 1, way + 2, 'b' + way);
        at += sprintf(text + at, "\n");
    }
    struct error err = {0};
    struct grammar *g = grammar_new(&mem);
    int status = grammar_ready(g, gr_gbnf(g, text_of(text), NULL), &err);
    CHECK(status == OK || status == ERR_SCHEMA);
    CHECK(g->work > 0);
    finish(g);
}

/* --- what is remembered ---------------------------------------------------------------------------------------- */

/* More masks than are remembered: all are forgotten, and computed again. */
static void forgotten_masks(void)
{
    struct vocabulary_source source;
    struct vocabulary *v = NULL;
    CHECK(qwen_tokens(check_fixtures, 16, &source));
    CHECK_EQ(vocabulary_new(&mem, &source, &v, NULL), OK);
    qwen_tokens_free(&source);
    struct grammar *g = make(whole, "[a-z]{4000}");
    gr_state state = grammar_start(g);
    uint64_t most = mem.used + (8 << 20);
    for (int i = 0; i < 2500; i++) {
        const uint32_t *mask = grammar_mask(g, v, state);
        CHECK(mask != NULL && mem.used < most);
        for (uint32_t id = 0; i % 500 == 0 && id < v->n; id++)
            CHECK_EQ(allowed(mask, id), grammar_take(g, v, state, id) != GR_DEAD);
        state = grammar_step(g, state, text_of("q"));
    }
    grammar_free(g);
    vocabulary_free(v);
    CHECK_EQ(mem.used, 0);
}

/* --- saved grammars -------------------------------------------------------------------------------------------- */

/* The bytes of a ready grammar; the caller frees them. */
static uint8_t *saved(const struct grammar *g, size_t *size)
{
    *size = (size_t)grammar_saved_size(g);
    uint8_t *block = malloc(*size);
    CHECK(block != NULL);
    grammar_save(g, block);
    return block;
}

/* Both grammars agree all along a text of allowed tokens. */
static void same_walk(struct grammar *g, struct grammar *twin, const struct vocabulary *v, int steps)
{
    gr_state state = grammar_start(g), other = grammar_start(twin);
    for (int i = 0; i < steps && state != GR_DEAD; i++) {
        const uint32_t *mask = grammar_mask(g, v, state), *same = grammar_mask(twin, v, other);
        CHECK(mask && same && !memcmp(mask, same, v->n_words * sizeof *mask));
        CHECK_EQ(grammar_accepts(g, state), grammar_accepts(twin, other));
        uint32_t n = 0, chosen = v->n;
        for (uint32_t id = 0; id < v->n; id++)
            if (allowed(mask, id) && v->kinds[id] == TOKEN_TEXT && below(++n) == 0) chosen = id;
        state = grammar_take(g, v, state, chosen);
        other = grammar_take(twin, v, other, chosen);
        CHECK_EQ(state == GR_DEAD, other == GR_DEAD);
    }
}

static void saved_and_loaded(void)
{
    struct vocabulary_source source;
    struct vocabulary *v = NULL;
    CHECK(qwen_tokens(check_fixtures, 16, &source));
    CHECK_EQ(vocabulary_new(&mem, &source, &v, NULL), OK);
    qwen_tokens_free(&source);
    uint64_t used = mem.used;
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++) {
        struct grammar *g = make(languages[i].build, languages[i].text), *twin = NULL;
        size_t size;
        uint8_t *block = saved(g, &size);
        CHECK_EQ(grammar_load(&mem, (struct bytes){block, size}, &twin, NULL), OK);
        CHECK(!strcmp(grammar_notes(g), grammar_notes(twin)));
        for (int k = 0; k < 3; k++) same_walk(g, twin, v, 20);
        free(block);
        grammar_free(g);
        grammar_free(twin);
        CHECK_EQ(mem.used, used);
    }
    vocabulary_free(v);
    CHECK_EQ(mem.used, 0);
}

/* A damaged block is refused, or is a grammar like any other: using it takes little time and memory. */
static void try_damaged(struct bytes block, const struct vocabulary *v)
{
    struct error err = {0};
    struct grammar *g = NULL;
    uint64_t used = mem.used;
    int status = grammar_load(&mem, block, &g, &err);
    CHECK_EQ(status == OK, g != NULL);
    CHECK(status == OK || (err.rule[0] && err.message[0]));
    gr_state state = g ? grammar_start(g) : GR_DEAD;
    for (int i = 0; i < 6 && state != GR_DEAD; i++) {
        const uint32_t *mask = grammar_mask(g, v, state);
        uint32_t n = 0, chosen = v->n;
        for (uint32_t id = 0; mask && id < v->n; id++)
            if (allowed(mask, id) && below(++n) == 0) chosen = id;
        state = grammar_take(g, v, state, chosen);
    }
    grammar_free(g);
    CHECK_EQ(mem.used, used);
}

static struct vocabulary *every_byte(void)
{
    enum { TOKENS = 257, END = 256 };
    uint32_t sizes[TOKENS];
    uint8_t bytes[TOKENS], kinds[TOKENS] = {[END] = TOKEN_END};
    struct vocabulary *v = NULL;
    for (uint32_t id = 0; id < TOKENS; id++) sizes[id] = 1, bytes[id] = (uint8_t)id;
    CHECK_EQ(vocabulary_new(&mem, &(struct vocabulary_source){bytes, sizes, kinds, TOKENS}, &v, NULL), OK);
    return v;
}

static void saved_and_damaged(void)
{
    struct vocabulary *v = every_byte();
    uint32_t rounds = (uint32_t)check_length(150, 20000);
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++) {
        struct grammar *g = make(languages[i].build, languages[i].text);
        size_t size;
        uint8_t *block = saved(g, &size), *copy = malloc(size + 4);
        CHECK(copy != NULL);
        grammar_free(g);
        for (uint32_t k = 0; k < rounds; k++) {
            memcpy(copy, block, size);
            /* the head, where each byte matters more */
            uint32_t at = below(2) ? below((uint32_t)size) : below(700);
            if (k % 8 == 0) try_damaged((struct bytes){copy, at}, v);
            else if (k % 8 == 1) memset(copy + size, 0, 4), try_damaged((struct bytes){copy, size + 4}, v);
            else {
                copy[at < size ? at : 0] ^= (uint8_t)(1u << below(8));
                if (k % 2) copy[below((uint32_t)size)] = (uint8_t)below(256);
                try_damaged((struct bytes){copy, size}, v);
            }
        }
        free(block);
        free(copy);
    }
    vocabulary_free(v);
    CHECK_EQ(mem.used, 0);
}

/* Gives memory back if the last call ran out of it. */
static bool short_of_memory(const struct grammar *g)
{
    if (strcmp(grammar_error(g)->rule, "memory")) return false;
    mem.fail_at = 0;
    return true;
}

/* A walk in which one allocation of masks and states fails, or that one and all later ones. The failure is reported;
 * the same call is right when there is memory again, and so are the calls before and after it. Returns whether that
 * allocation happened. */
static bool starved_walk(struct grammar *g, const struct vocabulary *v, uint64_t at, bool after)
{
    enum { STEPS = 8, WORDS = 9 };
    gr_state states[STEPS] = {grammar_start(g)};
    uint32_t masks[STEPS][WORDS], n = 0;
    mem.fail_at = mem.n_allocs + at;
    mem.fail_after = after;
    while (n < STEPS && states[n] != GR_DEAD) {
        const uint32_t *mask = whole_mask(g, v, states[n]);
        if (!mask && short_of_memory(g)) mask = whole_mask(g, v, states[n]);
        CHECK(mask != NULL && v->n_words == WORDS);
        memcpy(masks[n], mask, sizeof masks[n]);
        uint32_t chosen = v->n, allowed_ones = 0;
        for (uint32_t id = 0; id < v->n; id++)
            if (allowed(mask, id) && v->kinds[id] == TOKEN_TEXT && below(++allowed_ones) == 0) chosen = id;
        gr_state next = whole_take(g, v, states[n], chosen);
        if (next == GR_DEAD && chosen < v->n && short_of_memory(g)) next = whole_take(g, v, states[n], chosen);
        if (++n < STEPS) states[n] = next;
    }
    bool came = !mem.fail_at || mem.n_allocs >= mem.fail_at;
    mem.fail_at = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t id = 0; id < v->n; id++)
            CHECK_EQ(allowed(masks[i], id), whole_take(g, v, states[i], id) != GR_DEAD);
    return came;
}

static void memory_runs_out(void)
{
    struct vocabulary *v = every_byte();
    uint64_t used = mem.used;
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++) {
        bool came = true;
        for (uint64_t at = 1; came; at++) {
            struct grammar *g = make(languages[i].build, languages[i].text);
            grammar_slice(g, 500);
            came = starved_walk(g, v, (at + 1) / 2, at % 2);
            grammar_free(g);
            CHECK_EQ(mem.used, used);
        }
    }
    vocabulary_free(v);
    CHECK_EQ(mem.used, 0);
}

/* A vocabulary arrives in parts; if memory ends in any of them, that is reported, and all memory is given back. */
static void learning(void)
{
    struct vocabulary_source source;
    struct vocabulary *v = NULL;
    struct error err = {0};
    int parts = 0, status = ERR_MEM_LOAD;
    CHECK(qwen_tokens(check_fixtures, 64, &source));
    CHECK_EQ(vocabulary_begin(&mem, &source, &v, NULL), OK);
    for (; (status = vocabulary_go_on(v, &err)) == 1; parts++) CHECK(v->making != NULL);
    CHECK(status == OK && parts > 15 && !v->making);
    CHECK_EQ(vocabulary_go_on(v, &err), OK);
    vocabulary_free(v);
    CHECK_EQ(mem.used, 0);
    for (uint64_t at = 1; status != OK || at == 1; at++) {
        mem.fail_at = mem.n_allocs + at;
        status = vocabulary_new(&mem, &source, &v, &err);
        CHECK(status == OK || (status == ERR_MEM_LOAD && mem.used == 0));
    }
    mem.fail_at = 0;
    vocabulary_free(v);
    qwen_tokens_free(&source);
    CHECK_EQ(mem.used, 0);
}

/* Equal tokens, empty tokens, end tokens, and no tokens at all. */
static void odd_vocabularies(void)
{
    static const uint32_t sizes[] = {1, 1, 0, 2, 2, 3, 1};
    static const uint8_t kinds[] = {0, 0, 0, 0, 0, 1, 2};
    struct vocabulary_source source = {(const uint8_t *)"aaababENDx", sizes, kinds, 7};
    struct vocabulary *v = NULL;
    struct error err = {0};
    CHECK_EQ(vocabulary_new(&mem, &source, &v, NULL), OK);
    struct grammar *g = make(whole, "(ab?)*");
    CHECK_EQ(grammar_mask(g, v, grammar_start(g))[0], 1 | 2 | 8 | 16 | 32);
    CHECK_EQ(grammar_mask(g, v, grammar_take(g, v, grammar_start(g), 3))[0], 1 | 2 | 8 | 16 | 32);
    grammar_free(g);
    g = make(whole, "ab");
    CHECK_EQ(grammar_mask(g, v, grammar_start(g))[0], 1 | 2 | 8 | 16);
    CHECK_EQ(grammar_mask(g, v, grammar_take(g, v, grammar_start(g), 4))[0], 32);
    /* no token can write "b": the mask is empty, which the caller reports */
    CHECK_EQ(grammar_mask(g, v, grammar_take(g, v, grammar_start(g), 1))[0], 0);
    CHECK_EQ(grammar_take(g, v, grammar_start(g), 2), GR_DEAD);
    CHECK_EQ(grammar_take(g, v, grammar_start(g), 5), GR_DEAD);
    CHECK_EQ(grammar_take(g, v, grammar_start(g), 7), GR_DEAD);
    CHECK(grammar_mask(g, v, GR_DEAD) == NULL && grammar_mask(g, v, 1000) == NULL);
    grammar_free(g);
    vocabulary_free(v);
    source.n = 0;
    CHECK_EQ(vocabulary_new(&mem, &source, &v, &err), ERR_PARAM);
    CHECK_EQ(mem.used, 0);
}

/* --- patterns -------------------------------------------------------------------------------------------------- */

static void patterns(void)
{
    static const struct {
        const char *pattern, *in, *out; /* search pattern, matching texts, other texts */
    } cases[] = {
        {"^a|b$", "ax", "xa"},
        {"^a|b$", "xb", "bx"},
        {"^$", "", "a"},
        {"a^b|c", "c", "ab"},
        {"(^|x)y", "y", "zy"},
        {"(^|x)y($|z)", "axyz", "xya"},
        {"^\\d{2,3}?$", "123", "1234"},
        {"^[^\\d\\s-]+$", "a\xC3\xA9", "a b"},
        {"^\\u{1F600}\\ud83d\\ude00$", "\xF0\x9F\x98\x80\xF0\x9F\x98\x80", ""},
        {"^.$", "\xE2\x82\xAC", "\n"},
        {"^\\p{L}\\P{L}$", "\xC3\x9F.", "\xC3\x9Fs"},
        {"^[\\w.+\\-]+@(?<host>[a-z]+)$", "a.b-c@d", "a@"},
        {"^a{,2}$", "a{,2}", "aa"},
        {"^[]$", "\x01", ""},
        {"^[^]$", "\n", ""},
        {"^\\x41\\cJ\\0\\/$", "A\n", "A"},
        {"", "anything", "\xFF"},
        {"^(?!foo$|bar)\\w+$", "foo1", "bar1"},
        {"^(?=.*[A-Z])(?=.*\\d).{3,}$", "a1B", "a1b"},
        {"a(?=b)", "ab", "ac"},
        {"a(?!b)", "abac", "ab"},
        {"^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$", "-1.5", "-."},
        {"x|^(?!a)", "b", "a"},
        {"^a(?=b$)|c", "ab", "abb"},
        {"^(x|(?!b)\\w)c(?=d).$", "acd", "bcd"},
        {"^(?:a(?=c)|b)?(?:c|d)$", "ac", "ad"},
        {"^((?=(a))a(?!c))?b?[()]?$", "ab(", "ac"},
        {"^P(?:(\\d+W)|(?!.*W)(?=\\d|T\\d)(\\d+Y)?(T(?=\\d)(\\d+H)?)?)$", "P1YT2H", "P1YT"},
        {"(?!.*b)a$", "ba", "bb"},
        {"^(?!.{3})", "ab", "abc"},
        {"(?im:^A(?:b|c)$)(?!\\n)", "x\nab", "ab\n"},
        {"^\\p{Lu}\\p{Ll}+$", "\xC3\x89t\xC3\xA9", "\xC3\xA9t"},
        {"^\\p{Script=Greek}+$", "\xCE\xB1\xCE\xB2",
         "\xCE\xB1"
         "b"},
        {"^\\p{Emoji_Presentation}$", "\xF0\x9F\x98\x80", "1"},
        {"^[\\p{Sc}\\P{ASCII}]$", "$", "a"},
        {"^(?i:stra\xC3\x9F"
         "e)$",
         "STRA\xE1\xBA\x9E"
         "E",
         "STRASSE"},
        {"^a(?i:b)c$", "aBc", "aBC"},
        {"^(?i:[^a-f])$", "g", "D"},
        {"^(?s:.).$", "\na", "a\n"},
        {"(?m:^b$)", "a\nb\rc", "ab\nc"},
        {"^a(?m:$)", "a\n", "ab"},
        {"a(?m:$)\\s(?m:^)b", "a\nb", "a b"},
        {"^a(?i-s:.b)$", "axB", "a\nb"},
        {"(?m:^)$", "a\n", "a"},
        {"(?m:$^)\nx", "a\xE2\x80\xA8\nx", "a\nx"},
        {"^\\S\\W\\D$", "a x", "a11"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        /* skips the empty language; a text with a NUL is checked below */
        if (!strcmp(cases[i].pattern, "^[]$") || strstr(cases[i].pattern, "\\0")) continue;
        struct grammar *g = make(search, cases[i].pattern);
        if (!accepts(g, cases[i].in) || accepts(g, cases[i].out)) printf("%s\n", cases[i].pattern);
        CHECK(accepts(g, cases[i].in) && !accepts(g, cases[i].out));
        finish(g);
    }
    struct grammar *g = make(whole, "\\x41\\cJ\\0\\/");
    CHECK(grammar_accepts(g, grammar_step(g, grammar_start(g), (struct bytes){(const uint8_t *)"A\n\0/", 4})));
    finish(g);
    g = grammar_new(&mem);
    gr_expr quoted_line = gr_regex(g, text_of("^\"\\n.\\x01?$"), GR_SEARCH | GR_DOT_ALL, GR_JSON, NULL);
    CHECK_EQ(grammar_ready(g, quoted_line, NULL), OK);
    CHECK(accepts(g, "\\\"\\n\\\\") && accepts(g, "\\\"\\nx\\u0001") && !accepts(g, "\"\nx"));
    finish(g);
}

static void patterns_refused(void)
{
    static const char *const cases[] = {"(a(?=b)){2}",
                                        "((?=a)",
                                        "(?:(?=a)b)*",
                                        "[((?=a)b",
                                        "(?<=a)b",
                                        "((?!a)b)*",
                                        "a(?!^b)",
                                        "(?=a",
                                        "(?=(?=a)b)",
                                        "(?=a)*",
                                        "(?!a){2}",
                                        "(?<!a)b",
                                        "(a)\\1",
                                        "\\k<n>",
                                        "\\bx",
                                        "(?x:a)",
                                        "(?i",
                                        "(?ii:a)",
                                        "(?-:a)",
                                        "(?i-i:a)",
                                        "(?i)a",
                                        "\\p{lu}",
                                        "\\p{sc=Lu}",
                                        "\\p{gc=Greek}",
                                        "\\p{gc=Emoji}",
                                        "\\p{Basic_Emoji}",
                                        "\\p{}",
                                        "\\p{=}",
                                        "\\pL",
                                        "(?m:^a$)+",
                                        "[z-a]",
                                        "a{3,2}",
                                        "(",
                                        ")",
                                        "[a",
                                        "a**",
                                        "*",
                                        "\\",
                                        "\\q",
                                        "\\x4",
                                        "\\u{110000}",
                                        "(^a)*",
                                        "^*",
                                        "[\\d-z]",
                                        "\xFF"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        struct grammar *g = grammar_new(&mem);
        CHECK_EQ(gr_regex(g, text_of(cases[i]), GR_SEARCH, GR_PLAIN, &err), 0);
        CHECK(err.code == ERR_SCHEMA && (!strcmp(err.rule, "pattern") || !strcmp(err.rule, "property")) &&
              err.message[0]);
        finish(g);
    }
    char deep[501] = {0};
    memset(deep, '(', 500);
    struct grammar *g = grammar_new(&mem);
    CHECK_EQ(gr_regex(g, text_of(deep), GR_SEARCH, GR_PLAIN, NULL), 0);
    finish(g);
}

/* --- GBNF and choices ------------------------------------------------------------------------------------------ */

/* Checks that each text of `good` is in the language, and none of `bad`; both lists end with NULL. */
static void check_texts(const char *text, const char *const *good, const char *const *bad)
{
    struct grammar *g = make(gbnf, text);
    for (; *good; good++) CHECK(accepts(g, *good));
    for (; *bad; bad++) CHECK(!accepts(g, *bad));
    finish(g);
}

static void grammars(void)
{
    check_texts(json_grammar,
                (const char *const[]){"{}", "{\n\t}\n  ", "{\"a\":[1,-2.5e+3,\n true],\"b\\u00e9\\n\":null}",
                                      "{ \"a\": { \"b\":[] , \"c\":0.50}}", "{\"a\":1e019}", NULL},
                (const char *const[]){"", "[1]", "{\"a\":}", "{\"a\":01}", "{\"a\":1,}", "{\"a\":\"\\/\"}",
                                      "{\"a\":\"\t\"}", "{\"a\":  1}", "{\"a\":1e10}", "{}{}", NULL});
    check_texts(arithmetic_grammar,
                (const char *const[]){"1=2\n", "(1 +2)*x=3\n4/2= y\n", "a \n\t+b\n=\n\n( c )\n", "1=2\n\n\n3=4\n",
                                      "1=2 \n \n", "1\n=2\n\n", NULL},
                (const char *const[]){"", "1=2", "1+=2\n", "=2\n", "1=2+3\n", " 1=2\n", "1 2=3\n", "1=2\n3", "1=\n",
                                      "A=1\n", "1+ 2=3\n", NULL});
    check_texts(chess_grammar,
                (const char *const[]){"1. e4 e5\n2. Nf3 Nc6\n",
                                      "1. e4 e5\n2. Nbd2 R1xa3+\n3. O-O-O Qxe5+\n10. exd8=Q# O-O\n", NULL},
                (const char *const[]){"1. e4 e5\n", "1. e9 e5\n2. Nf3 Nc6\n", "1. e4 e5\n0. Nf3 Nc6\n",
                                      "1. e4 e5\n100. Nf3 Nc6\n", "1. e4 e5\n2. N3f Nc6\n", "1. e4  e5\n2. a3 a6\n",
                                      NULL});
    check_texts("root ::= \"a\"{ 2} [b] { 1 , 2 } (\"c\" {\n2 # twice\n,\n} \"d\") \"e\"\t{,1 } \"f\" ?  \"g\" *{2}",
                (const char *const[]){"aabccd", "aabbccccdefggg", NULL},
                (const char *const[]){"abccd", "aabbbccd", "aabcd", "aabccdee", "aabccdff", NULL});
    check_texts("root ::= x # one\rx ::= \"a\" # two\r\n", (const char *const[]){"a", NULL},
                (const char *const[]){"", "aa", NULL});
    check_texts(
        list_grammar, (const char *const[]){"- a\n", "- a\n- \xC3\xA9 - b\n", "-  \n", NULL},
        (const char *const[]){"", "- a", "- \n", "-a\n", "- \xE2\x80\xA8\n", "- a\r\n", "- a\x0B\n", "a\n", NULL});
    check_texts(c_grammar,
                (const char *const[]){"", "int f(){}char \n_g1(float x){return a+-b*(\n1 )/f(2, c);}",
                                      "int f(){for(int i = 0; i<10; i = i+1){g (i);}while(a!=b){a = b;/* * x */}}",
                                      "int f(){if(a==1){}else{int x = y;}// no\n}", "int f(){intx = 1;int y = 2;}",
                                      "int f(){for (1);return 1;}", "int f(){/***x*/}", NULL},
                (const char *const[]){"int f()", "intf(){}", "int f(){return;}", "int f(){x=1;}",
                                      "int f(){for(i = 0;i<1; i = i+1){}}", "int f(){for (i = 0; i<1; i = i+1){}}",
                                      "int f(){g(1);}", "int f(int a, int b){}", "int f(){// no}", NULL});
}

static void grammars_refused(void)
{
    static const char *const cases[] = {"",
                                        "root",
                                        "root = x",
                                        "root ::= x",
                                        "a ::= \"b\"",
                                        "root ::= \"a",
                                        "root ::= [a",
                                        "root ::= (\"a\"",
                                        "root ::= \"a\" )",
                                        "root ::= \"a\"\nroot ::= \"b\"",
                                        "root ::= \"\\q\"",
                                        "root ::= [b-a]",
                                        "root ::= \"a\"{3,1}",
                                        "root ::= \"a\"{x}",
                                        "root ::= \"a\"{1 2}",
                                        "root ::= \"a\"{\n1}",
                                        "root ::= \"a\"{ }",
                                        "root ::= { 2 }",
                                        "root ::= <think>",
                                        "root ::= root \"a\" | \"b\"",
                                        "root ::= \"a\" root",
                                        "root ::= \"\\x4\"",
                                        "root ::= \"\xFF\""};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        struct grammar *g = grammar_new(&mem);
        CHECK_EQ(grammar_ready(g, gr_gbnf(g, text_of(cases[i]), NULL), &err), ERR_SCHEMA);
        CHECK(err.rule[0] && err.message[0]);
        finish(g);
    }
}

static void choices(void)
{
    struct error err = {0};
    struct grammar *g = grammar_new(&mem);
    uint8_t list[] = "[\"yes\", \"no\", \"\\u00e9\\n\", \"yesterday\"]";
    CHECK_EQ(grammar_ready(g, gr_choices(g, list, sizeof list - 1, NULL), NULL), OK);
    CHECK(accepts(g, "yes") && accepts(g, "yesterday") && accepts(g, "\xC3\xA9\n") && !accepts(g, "yester") &&
          !accepts(g, "No"));
    finish(g);
    static const char *const wrong[] = {"[]", "[1]", "{}", "[\"a\"", "", "[\"a\"] x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint8_t text[16] = {0};
        memcpy(text, wrong[i], strlen(wrong[i]));
        g = grammar_new(&mem);
        CHECK_EQ(gr_choices(g, text, strlen(wrong[i]), &err), 0);
        CHECK_EQ(err.code, ERR_SCHEMA);
        CHECK(!strcmp(err.rule, "choices"));
        finish(g);
    }
}

int main(int argc, char **argv)
{
    static const struct check tests[] = {
        {"against_every_token", against_every_token},
        {"the_same_in_slices", the_same_in_slices},
        {"in_turns", in_turns},
        {"shared_beginnings", shared_beginnings},
        {"forgotten_masks", forgotten_masks},
        {"saved_and_loaded", saved_and_loaded},
        {"saved_and_damaged", saved_and_damaged},
        {"memory_runs_out", memory_runs_out},
        {"learning", learning},
        {"odd_vocabularies", odd_vocabularies},
        {"patterns", patterns},
        {"patterns_refused", patterns_refused},
        {"grammars", grammars},
        {"grammars_refused", grammars_refused},
        {"choices", choices},
    };
    return check_run(argc, argv, tests, sizeof tests / sizeof *tests);
}
