/* SPDX-License-Identifier: MIT
 *
 * Small false vocabularies (rows V01 to V14 of the catalogue of bad inputs), overlapping special tokens, and short
 * memory while loading.
 */
#include "tok_fixture.h"

#include "text/table.h"
#include "base/unicode.h"

#include <time.h>

static struct mem mem;
static int32_t ids[200000];

static int load(const struct tok_source *source, struct tokenizer **out, struct error *err)
{
    *err = (struct error){0};
    return tok_new(&mem, source, out, err);
}

static void expect_refusal(const struct tok_source *source, int status, const char *rule, const char *words)
{
    struct tokenizer *t;
    struct error err;
    CHECK_EQ(load(source, &t, &err), status);
    CHECK(t == NULL);
    CHECK_EQ(mem.used, 0);
    if (strcmp(err.rule, rule) || !strstr(err.message, words)) printf("# rule %s: %s\n", err.rule, err.message);
    CHECK(!strcmp(err.rule, rule));
    CHECK(strstr(err.message, words) != NULL);
    CHECK_EQ(err.code, status);
}

static void refuse(struct builder *b, int status, const char *rule, const char *words)
{
    struct tok_source source = source_of(b);
    expect_refusal(&source, status, rule, words);
    builder_free(b);
}

static struct tokenizer *accept(struct builder *b)
{
    struct tokenizer *t;
    struct error err;
    struct tok_source source = source_of(b);
    int status = load(&source, &t, &err);
    builder_free(b);
    if (status) printf("# %s\n", err.message);
    CHECK_EQ(status, OK);
    return t;
}

static struct builder small(void)
{
    struct builder b = {0};
    add_bytes(&b);
    add_pair(&b, "a", "b");
    add_pair(&b, "ab", "c");
    add_pair(&b, " ", "x");
    return b;
}

/* Encodes and compares; expected ends with -1. */
static void expect_ids(const struct tokenizer *t, const char *text, enum tok_mode mode, const int32_t *expected)
{
    int64_t n = tok_encode(t, view(text), mode, 0, ids, 1000), i = 0;
    for (; expected[i] >= 0 && i < n; i++) CHECK_EQ(ids[i], expected[i]);
    CHECK_EQ(n, i);
    CHECK_EQ(expected[i], -1);
}

#define IDS(...) ((const int32_t[]){__VA_ARGS__, -1})

/* --- V01 to V06: tokens ------------------------------------------------------------------------------- */

static void no_tokens(void)
{
    struct builder b = {0};
    refuse(&b, ERR_FORMAT, "vocab", "no tokens");
    b = small();
    struct tok_source source = source_of(&b);
    source.n_tokens = 1 << 24;
    expect_refusal(&source, ERR_FORMAT, "vocab", "claims 16777216 tokens");
    source.n_tokens = UINT64_MAX;
    expect_refusal(&source, ERR_FORMAT, "vocab", "claims");
    builder_free(&b);
}

static void truncated_tokens(void)
{
    struct builder b = small();
    struct tok_source source = source_of(&b);
    size_t whole = source.tokens.size;
    for (size_t size = 8 * source.n_tokens; size < whole; size++) {
        source.tokens.size = size;
        expect_refusal(&source, ERR_FORMAT, "vocab", "ends in the middle");
    }
    source.tokens.size = whole;
    source.n_tokens--;
    source.types.size -= 4;
    expect_refusal(&source, ERR_FORMAT, "vocab", "left after");
    builder_free(&b);
    b = small();
    uint64_t lie = UINT64_MAX - 8;
    memcpy(b.tokens.data, &lie, 8);
    refuse(&b, ERR_FORMAT, "vocab", "ends in the middle of token 0");
}

static void token_types(void)
{
    struct builder b = small();
    struct tok_source source = source_of(&b);
    size_t whole = source.types.size;
    const size_t sizes[] = {whole - 1, whole - 4, 1, 4};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        source.types.size = sizes[i];
        expect_refusal(&source, ERR_FORMAT, "vocab", "bytes of token types");
    }
    const int32_t bad[] = {0, 7, -1, INT32_MAX, INT32_MIN};
    source.types.size = whole;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        memcpy(b.types.data + 4 * 257, &bad[i], 4);
        expect_refusal(&source, ERR_FORMAT, "vocab", "Token 257 has the type");
    }
    b.types.size = 0; /* no types: all normal */
    struct tokenizer *t = accept(&b);
    CHECK_EQ(tok_type(t, 5), 1);
    tok_free(t);
}

static void duplicate_tokens(void)
{
    struct builder b = small();
    add_normal(&b, "ab", 2);
    add_normal(&b, "a", 1);
    struct tokenizer *t = accept(&b);
    expect_ids(t, "ab", TOK_PLAIN, IDS(256));
    expect_ids(t, "a", TOK_PLAIN, IDS('a'));
    CHECK(bytes_equal(tok_bytes(t, 259), "ab"));
    CHECK(bytes_equal(tok_bytes(t, 260), "a"));
    tok_free(t);
}

static void empty_and_long_tokens(void)
{
    static char text[65537];
    memset(text, 'a', sizeof text);
    for (int type = 1; type <= 6; type++) {
        struct builder b = small();
        add_string(&b, "", 0, type);
        if (type == 5) tok_free(accept(&b));
        else refuse(&b, ERR_FORMAT, "vocab", "Token 259 is empty");
    }
    struct builder b = small();
    add_string(&b, text, 65536, 1);
    tok_free(accept(&b));
    b = small();
    add_string(&b, text, 65537, 1);
    refuse(&b, ERR_FORMAT, "vocab", "65537 bytes");
    b = small();
    add_string(&b, text, 257, 3);
    refuse(&b, ERR_FORMAT, "vocab", "special token 259");
}

/* Tokens with NUL, a raw space, broken UTF-8, or letters outside the alphabet decode to themselves and are never
 * produced. */
static void strange_tokens(void)
{
    static const struct {
        const char *bytes;
        size_t size;
    } strange[] = {{"\0", 1},           {" ", 1},      {"a b", 3},     {"\xFF\xFE", 2}, {"\xC4", 1},
                   {"\xE4\xB8\xAD", 3}, {"<0x-1>", 6}, {"\xC5\x84", 2}};
    struct builder b = small();
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++)
        add_string(&b, strange[i].bytes, strange[i].size, i % 2 ? 1 : 6);
    struct tokenizer *t = accept(&b);
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        struct bytes token = tok_bytes(t, 259 + (int)i);
        CHECK_EQ(token.size, strange[i].size);
        CHECK(!memcmp(token.data, strange[i].bytes, token.size));
        int64_t n = tok_encode(t, token, TOK_CHAT, 0, ids, 100);
        CHECK_EQ(n, token.size);
        for (int64_t k = 0; k < n; k++) CHECK_EQ(ids[k], token.data[k]);
    }
    tok_free(t);
}

/* All bytes except `missing`; that one is a special token, or missing completely. */
static struct builder without(int missing, bool is_special)
{
    struct builder b = {0};
    for (int i = 0; i < 256; i++) {
        uint8_t byte = (uint8_t)i;
        if (i != missing) add_normal(&b, &byte, 1);
        else if (is_special) add_string(&b, &byte, 1, 4);
    }
    return b;
}

static void missing_byte(void)
{
    for (int missing = 0; missing < 256; missing += 5) {
        char words[32];
        snprintf(words, sizeof words, "byte 0x%02X", (unsigned)missing);
        struct builder b = without(missing, false);
        refuse(&b, ERR_INCONSISTENT, "vocab", words);
        b = without(missing, true);
        if (missing > ' ' && missing <= '~') tok_free(accept(&b)); /* an ordinary token that texts are padded with */
        else refuse(&b, ERR_INCONSISTENT, "vocab", words);
    }
}

/* --- V07, V08: merges --------------------------------------------------------------------------------- */

static void malformed_merges(void)
{
    static const char *const lines[] = {"", " ", "ab", " ab", "ab ", "a  b", "a b ", "a b c", " a b"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct builder b = small();
        add_merge_line(&b, lines[i]);
        refuse(&b, ERR_FORMAT, "merges", "Merge 3 is");
    }
    struct builder b = small();
    struct tok_source source = source_of(&b);
    for (size_t cut = 1; cut < source.merges.size - 24; cut++) {
        struct tok_source short_source = source;
        short_source.merges.size -= cut;
        expect_refusal(&short_source, ERR_FORMAT, "merges", "ends in the middle");
    }
    source.n_merges = UINT64_MAX;
    expect_refusal(&source, ERR_FORMAT, "merges", "claims");
    source.n_merges = 2;
    expect_refusal(&source, ERR_FORMAT, "merges", "left after");
    source.n_merges = 0;
    expect_refusal(&source, ERR_FORMAT, "merges", "missing");
    builder_free(&b);
}

static void unknown_merge_parts(void)
{
    static const char *const lines[] = {"a zz", "zz a", "a d", "\xE4\xB8\xAD a", "a \xFF", "a <s>", "ab ab"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct builder b = small();
        add_literal(&b, "<s>", 3);
        add_literal(&b, "aab", 5);
        add_merge_line(&b, lines[i]);
        refuse(&b, ERR_INCONSISTENT, "merges", "Merge 3 has a part or a result");
    }
    struct builder b = small();
    struct buffer line = {0};
    for (int i = 0; i < 70000; i++) buffer_add(&line, "a", 1);
    buffer_add(&line, " b", 3);
    add_merge_line(&b, (const char *)line.data);
    free(line.data);
    refuse(&b, ERR_INCONSISTENT, "merges", "Merge 3");
}

static void duplicate_merges(void)
{
    struct builder b = small();
    add_normal(&b, "bc", 2);
    add_merge_line(&b, "b c"); /* rank 3: after "a b" */
    add_merge_line(&b, "a b");
    struct tokenizer *t = accept(&b);
    expect_ids(t, "abc", TOK_PLAIN, IDS(257));
    expect_ids(t, "bcbc", TOK_PLAIN, IDS(259, 259));
    tok_free(t);
}

/* The lowest rank first, the leftmost of equal ones, one merge at a time. */
static void merge_order(void)
{
    struct builder b = {0};
    add_bytes(&b);
    add_pair(&b, "a", "a"); /* 256 */
    add_pair(&b, "aa", "b"); /* 257 */
    add_pair(&b, "b", "a"); /* 258 */
    struct tokenizer *t = accept(&b);
    expect_ids(t, "aaaaa", TOK_PLAIN, IDS(256, 256, 'a'));
    expect_ids(t, "aab", TOK_PLAIN, IDS(257));
    expect_ids(t, "aaab", TOK_PLAIN, IDS(256, 'a', 'b'));
    expect_ids(t, "baab", TOK_PLAIN, IDS('b', 257));
    expect_ids(t, "bab", TOK_PLAIN, IDS(258, 'b'));
    tok_free(t);
}

/* The fast path for short pieces and the heap for long ones agree: a piece of length n, and one of n plus padding that
 * cannot merge. */
static void short_and_long_pieces(void)
{
    struct builder b = small();
    struct tokenizer *t = accept(&b);
    char text[200];
    static int32_t expected[200];
    uint64_t state = 3;
    for (int round = 0; round < 2000; round++) {
        size_t n = 1 + next_random(&state) % 64;
        memset(text, 'z', sizeof text);
        for (size_t i = 0; i < n; i++) text[i] = "abc"[next_random(&state) % 3];
        int64_t n_short = tok_encode(t, (struct bytes){(uint8_t *)text, n}, TOK_PLAIN, 0, expected, 200);
        int64_t n_long = tok_encode(t, (struct bytes){(uint8_t *)text, 200}, TOK_PLAIN, 0, ids, 200);
        CHECK_EQ(n_long - n_short, 200 - (int64_t)n);
        CHECK(!memcmp(ids, expected, (size_t)n_short * sizeof *ids));
    }
    tok_free(t);
}

/* a, aa, aaa, ... each made from the previous one: the longest chain per byte of token that a vocabulary allows. */
static void merge_chain(void)
{
    enum { DEPTH = 1500, LENGTH = 100000 };
    static uint8_t text[LENGTH];
    struct builder b = {0};
    memset(text, 'a', sizeof text);
    add_bytes(&b);
    for (size_t n = 2; n <= DEPTH; n++) {
        add_normal(&b, text, n);
        add_merge(&b, text, n - 1, "a", 1);
    }
    struct tokenizer *t = accept(&b);
    clock_t start = clock();
    int64_t n = tok_encode(t, (struct bytes){text, LENGTH}, TOK_PLAIN, 0, ids, LENGTH);
    CHECK(clock() - start < 2 * CLOCKS_PER_SEC);
    size_t total = 0;
    for (int64_t i = 0; i < n; i++) total += tok_bytes(t, ids[i]).size;
    CHECK_EQ(total, LENGTH);
    tok_free(t);
}

/* --- V12: special tokens ------------------------------------------------------------------------------ */

static void overlapping_specials(void)
{
    struct builder b = small();
    static const char *const texts[] = {"<a", "<a>", "<a>b", "q", "<|x y\n|>", "a>b<"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) add_literal(&b, texts[i], i % 2 ? 4 : 3); /* 259.. */
    struct tokenizer *t = accept(&b);
    expect_ids(t, "<a>b", TOK_CHAT, IDS(261));
    expect_ids(t, "<a>b<", TOK_CHAT, IDS(261, '<'));
    expect_ids(t, "<a><a<<a>b", TOK_CHAT, IDS(260, 259, '<', 261));
    expect_ids(t, "a>b<a", TOK_CHAT, IDS(264, 'a'));
    expect_ids(t, "<a>b", TOK_TEXT, IDS(260, 'b'));
    expect_ids(t, "zq<|x y\n|>q", TOK_CHAT, IDS('z', 262, 263, 262));
    expect_ids(t, "zq<|x", TOK_PLAIN, IDS('z', 'q', '<', '|', 'x'));
    tok_free(t);
}

static void duplicate_specials(void)
{
    struct builder b = small();
    static const int32_t types[] = {4, 3, 4, 3};
    for (int i = 0; i < 4; i++) add_literal(&b, "<s>", types[i]);
    struct tokenizer *t = accept(&b);
    expect_ids(t, "<s>", TOK_TEXT, IDS(259));
    expect_ids(t, "<s>", TOK_CHAT, IDS(260)); /* control before user-defined */
    CHECK_EQ(tok_find_special(t, view("<s>")), 260);
    for (int id = 259; id < 263; id++) CHECK(bytes_equal(tok_bytes(t, id), "<s>"));
    tok_free(t);
}

/* 100,000 special tokens with a long common beginning, over a text that always almost matches. */
static void many_specials(void)
{
    static char text[100001];
    struct builder b = small();
    memset(text, 'a', sizeof text - 1);
    for (int i = 0; i < 100000; i++) {
        char special[260];
        memset(special, 'a', 248);
        snprintf(special + 248, 12, "%07d", i);
        add_literal(&b, special, 3);
    }
    clock_t start = clock();
    struct tokenizer *t = accept(&b);
    CHECK_EQ(tok_encode(t, view(text), TOK_CHAT, 0, ids, 200000), 100000);
    printf("# many specials: %.0f ms\n", 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC);
    tok_free(t);
    CHECK(clock() - start < 2 * CLOCKS_PER_SEC);
}

/* --- V13, V14: size and collisions -------------------------------------------------------------------- */

static void one_token(void)
{
    struct builder b = {0};
    add_literal(&b, "a", 1);
    refuse(&b, ERR_INCONSISTENT, "vocab", "byte 0x00");
}

static void million_tokens(void)
{
    struct builder b = small();
    for (int i = 0; b.n_tokens < 1 << 20; i++) {
        char text[16];
        int n = snprintf(text, sizeof text, "%x.", i);
        add_string(&b, text, (size_t)n, 1);
    }
    struct tokenizer *t = accept(&b);
    CHECK_EQ(tok_count(t), 1 << 20);
    expect_ids(t, "abc", TOK_PLAIN, IDS(257));
    tok_free(t);
}

/* Adds n strings that all hash to one slot of the table for this vocabulary. */
static void add_colliding(struct builder *b, uint64_t n)
{
    uint64_t n_slots = 2 * (b->n_tokens + n) + 1;
    uint64_t added = 0;
    for (uint32_t i = 0; added < n; i++) {
        char text[16];
        int size = snprintf(text, sizeof text, "%u", (unsigned)i + 1000);
        uint64_t hash = hash_bytes((struct bytes){(uint8_t *)text, (size_t)size});
        if ((hash >> 32) * n_slots >> 32 != n_slots / 2) continue;
        add_normal(b, text, (size_t)size);
        added++;
    }
}

static void colliding_tokens(void)
{
    struct builder b = small();
    add_colliding(&b, 100);
    struct tokenizer *t = accept(&b);
    expect_ids(t, "abc", TOK_PLAIN, IDS(257));
    tok_free(t);
    b = small();
    add_colliding(&b, 400);
    refuse(&b, ERR_FORMAT, "vocab", "collide");
}

/* --- memory ------------------------------------------------------------------------------------------- */

static void short_memory(void)
{
    struct builder b = small();
    add_literal(&b, "<s>", 3);
    struct tok_source source = source_of(&b);
    for (int after = 0; after < 2; after++) {
        int status = ERR_MEM_LOAD;
        for (uint64_t call = 1; status; call++) {
            struct tokenizer *t;
            struct error err;
            mem.fail_at = mem.n_allocs + call;
            mem.fail_after = after;
            status = load(&source, &t, &err);
            CHECK(status == OK || status == ERR_MEM_LOAD);
            CHECK(status == OK || err.code == ERR_MEM_LOAD);
            tok_free(t);
            CHECK_EQ(mem.used, 0);
            CHECK(call < 20);
        }
    }
    mem.fail_at = 0;
    builder_free(&b);
}

/* --- Unicode ------------------------------------------------------------------------------------------ */

static void utf8(void)
{
    uint8_t text[4];
    uint32_t read;
    for (uint32_t c = 0; c < 0x110000; c++) {
        size_t n = utf8_write(c, text);
        bool surrogate = c >= 0xD800 && c < 0xE000;
        CHECK_EQ(utf8_read(text, n, &read), surrogate ? 1 : n);
        CHECK_EQ(read, surrogate ? UTF8_INVALID : c);
        for (size_t cut = 1; cut < n; cut++) {
            CHECK_EQ(utf8_read(text, cut, &read), 1);
            CHECK_EQ(read, UTF8_INVALID);
            CHECK_EQ(utf8_unfinished(text, cut), surrogate && cut > 1 ? 0 : cut);
        }
    }
    CHECK_EQ(utf8_write(0x110000, text), 0);
}

static void classes(void)
{
    static const struct {
        uint32_t code_point;
        enum unicode_class class;
    } cases[] = {{0, 0},      {'A', 1},     {'z', 1},     {'@', 0},     {'[', 0},      {'0', 2},         {'9', 2},
                 {'/', 0},    {':', 0},     {' ', 3},     {'\t', 3},    {0x0B, 3},     {0x0C, 3},        {'\r', 3},
                 {0x0E, 0},   {0x1C, 0},    {0x7F, 0},    {0x85, 3},    {0xA0, 3},     {0xAA, 1},        {0xB2, 2},
                 {0xB7, 0},   {0x17F, 1},   {0x301, 4},   {0x345, 4},   {0x660, 2},    {0x1680, 3},      {0x180E, 0},
                 {0x2000, 3}, {0x200A, 3},  {0x200B, 0},  {0x2028, 3},  {0x2029, 3},   {0x202F, 3},      {0x205F, 3},
                 {0x2167, 2}, {0x3000, 3},  {0x3007, 2},  {0x4E00, 1},  {0x9FFF, 1},   {0xAC00, 1},      {0xD800, 0},
                 {0xFEFF, 0}, {0x10400, 1}, {0x1F600, 0}, {0x20000, 1}, {0x10FFFF, 0}, {UTF8_INVALID, 0}};
    struct mem mem = {.limit = UINT64_MAX};
    struct unicode_classes all;
    CHECK(unicode_open(&mem, &all));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_EQ(unicode_class(&all, cases[i].code_point), cases[i].class);
    int count[UNICODE_MARK + 1] = {0};
    for (uint32_t c = 0; c < 0x110000; c++) count[unicode_class(&all, c)]++;
    /* of Unicode 17 */
    CHECK_EQ(count[UNICODE_SPACE], 25);
    CHECK_EQ(count[UNICODE_MARK], 2543);
    CHECK_EQ(count[UNICODE_LETTER], 145672);
    CHECK_EQ(count[UNICODE_NUMBER], 1924);
    unicode_close(&mem, &all);
}

int main(int argc, char **argv)
{
    static const struct check tests[] = {
        {"no_tokens", no_tokens},
        {"truncated_tokens", truncated_tokens},
        {"token_types", token_types},
        {"duplicate_tokens", duplicate_tokens},
        {"empty_and_long_tokens", empty_and_long_tokens},
        {"strange_tokens", strange_tokens},
        {"missing_byte", missing_byte},
        {"malformed_merges", malformed_merges},
        {"unknown_merge_parts", unknown_merge_parts},
        {"duplicate_merges", duplicate_merges},
        {"merge_order", merge_order},
        {"short_and_long_pieces", short_and_long_pieces},
        {"merge_chain", merge_chain},
        {"overlapping_specials", overlapping_specials},
        {"duplicate_specials", duplicate_specials},
        {"many_specials", many_specials},
        {"one_token", one_token},
        {"million_tokens", million_tokens},
        {"colliding_tokens", colliding_tokens},
        {"short_memory", short_memory},
        {"utf8", utf8},
        {"classes", classes},
    };
    return check_run(argc, argv, tests, sizeof tests / sizeof *tests);
}
