/* SPDX-License-Identifier: MIT
 *
 * The tokenizer with Qwen's real vocabulary: reference ids, round trips, special tokens, time, streaming.
 */
#include "tok_fixture.h"

#include "base/unicode.h"

#include <time.h>

static struct mem mem;
static struct tokenizer *qwen;

enum { SENTINEL = 0xE000, CAP = 1 << 20 };
#define S "\xEE\x80\x80" /* the sentinel's UTF-8 */
static int32_t ids[CAP];

static int64_t encode(const char *text, enum tok_mode mode)
{
    return tok_encode(qwen, view(text), mode, SENTINEL, ids, CAP);
}

static void load_qwen(void)
{
    struct builder b = build_qwen();
    struct tok_source source = source_of(&b);
    struct error err = {0};
    clock_t start = clock();
    int status = tok_new(&mem, &source, &qwen, &err);
    double ms = 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC;
    builder_free(&b);
    printf("# load: %.0f ms, %.2f MiB, peak %.2f MiB %s\n", ms, (double)mem.used / 0x1p20, (double)mem.peak / 0x1p20,
           err.message);
    CHECK_EQ(status, OK);
    CHECK_EQ(tok_count(qwen), QWEN_TOKENS);
    CHECK(mem.used < 5 << 20);
    CHECK(mem.peak < 7 << 20); /* with the 6 MiB header this is within the 16 MiB that loading may use */
}

static void llama_cases(void) { reference_cases(qwen); }

static size_t decode_hex(const char *hex, uint8_t *out)
{
    size_t n = 0;
    for (unsigned byte; hex[2 * n] != ' ' && sscanf(hex + 2 * n, "%2x", &byte) == 1; n++) out[n] = (uint8_t)byte;
    return n;
}

/* Lines "hex ids...", from hf-cases.py. */
static void hugging_face_cases(void)
{
    struct buffer file = read_fixture("vocab/hf-cases.txt");
    buffer_add(&file, "", 1);
    int n_cases = 0;
    for (const char *line = (const char *)file.data; *line;) {
        uint8_t text[1000];
        if (*line == '#') {
            line = strchr(line, '\n') + 1;
            continue;
        }
        size_t n = decode_hex(line, text);
        line = expect_line(line + 2 * n, ids, tok_encode(qwen, (struct bytes){text, n}, TOK_PLAIN, 0, ids, CAP));
        n_cases++;
    }
    CHECK_EQ(n_cases, 400);
    free(file.data);
}

/* --- round trips -------------------------------------------------------------------------------------- */

static void check_round_trip(struct bytes text, enum tok_mode mode)
{
    int64_t n = tok_encode(qwen, text, mode, 0, ids, CAP);
    size_t pos = 0;
    for (int64_t i = 0; i < n; i++) {
        struct bytes token = tok_bytes(qwen, ids[i]);
        CHECK(token.size && token.size <= text.size - pos && !memcmp(token.data, text.data + pos, token.size));
        if (mode == TOK_PLAIN) CHECK_EQ(tok_type(qwen, ids[i]), 1);
        pos += token.size;
    }
    CHECK_EQ(pos, text.size);
}

static void byte_pairs(void)
{
    for (int i = 0; i < 65536; i++) {
        uint8_t pair[2] = {(uint8_t)(i >> 8), (uint8_t)i};
        check_round_trip((struct bytes){pair, 1}, TOK_PLAIN);
        check_round_trip((struct bytes){pair, 2}, TOK_PLAIN);
    }
}

static void random_bytes(void)
{
    uint64_t state = 1;
    uint8_t text[600];
    for (int round = 0; round < 3000; round++) {
        size_t n = next_random(&state) % sizeof text;
        uint32_t kind = next_random(&state) % 3, mask = kind == 0 ? 0xFF : kind == 1 ? 0x7F : 0x3F;
        for (size_t i = 0; i < n; i++) text[i] = (uint8_t)((next_random(&state) & mask) | (kind == 2 ? 0x80 : 0));
        for (int mode = TOK_PLAIN; mode <= TOK_CHAT; mode++)
            check_round_trip((struct bytes){text, n}, (enum tok_mode)mode);
    }
}

static void every_code_point(void)
{
    uint8_t text[4 * 64];
    for (uint32_t first = 0; first < 0x110000; first += 64) {
        size_t n = 0;
        for (uint32_t c = first; c < first + 64; c++) n += utf8_write(c, text + n);
        check_round_trip((struct bytes){text, n}, TOK_PLAIN);
    }
}

static void small_inputs(void)
{
    CHECK_EQ(encode("", TOK_CHAT), 0);
    CHECK_EQ(tok_encode(qwen, (struct bytes){NULL, 0}, TOK_TEXT, 0, NULL, 0), 0);
    int64_t n = encode("Hello world, and more", TOK_PLAIN);
    CHECK_EQ(tok_encode(qwen, view("Hello world, and more"), TOK_PLAIN, 0, NULL, 0), n);
    int32_t two[3] = {0, 0, -7};
    CHECK_EQ(tok_encode(qwen, view("Hello world, and more"), TOK_PLAIN, 0, two, 2), n);
    CHECK(two[0] == ids[0] && two[1] == ids[1] && two[2] == -7);
    CHECK_EQ(tok_encode(qwen, (struct bytes){(const uint8_t *)"a\0b", 3}, TOK_PLAIN, 0, ids, CAP), 3);
}

static void token_table(void)
{
    CHECK_EQ(tok_bytes(qwen, -1).size, 0);
    CHECK_EQ(tok_bytes(qwen, QWEN_TOKENS).size, 0);
    CHECK_EQ(tok_bytes(qwen, QWEN_TOKENS - 1).size, 0); /* padding */
    CHECK_EQ(tok_type(qwen, -1), 0);
    CHECK_EQ(tok_type(qwen, QWEN_TOKENS), 0);
    CHECK_EQ(tok_type(qwen, QWEN_TOKENS - 1), 5);
    CHECK_EQ(tok_type(qwen, 151667), 4);
    CHECK(bytes_equal(tok_bytes(qwen, 151645), "<|im_end|>"));
    CHECK_EQ(tok_find_special(qwen, view("<|im_end|>")), 151645);
    CHECK_EQ(tok_find_special(qwen, view("</think>")), 151668);
    CHECK_EQ(tok_find_special(qwen, view("<|im_end|")), -1);
    CHECK_EQ(tok_find_special(qwen, view("<|im_end|>x")), -1);
    CHECK_EQ(tok_find_special(qwen, view("the")), -1);
    CHECK_EQ(tok_find_special(qwen, view("")), -1);
}

/* --- special tokens ----------------------------------------------------------------------------------- */

static int count_special(int64_t n)
{
    int count = 0;
    for (int64_t i = 0; i < n; i++) count += ids[i] >= QWEN_RANKS;
    return count;
}

static void special_modes(void)
{
    static const char text[] = "<|im_start|>a<think>b</think><|im_end|>";
    CHECK_EQ(count_special(encode(text, TOK_PLAIN)), 0);
    CHECK_EQ(count_special(encode(text, TOK_TEXT)), 2);
    int64_t n = encode(text, TOK_CHAT);
    static const int32_t expected[] = {151644, 64, 151667, 65, 151668, 151645};
    CHECK_EQ(n, 6);
    CHECK(!memcmp(ids, expected, sizeof expected));
}

/* Text that a user types stays text, whole or split over two messages that the template joins. */
static void typed_specials(void)
{
    static const char chat[] = "<|im_start|>user\n<" S "|im_end|> and <" S "/think> <" S "|im_<|im_end|>\n"
                               "<|im_start|>user\nend|><" S "<|im_end|>\n";
    static const char shown[] = "<|im_start|>user\n<|im_end|> and </think> <|im_<|im_end|>\n"
                                "<|im_start|>user\nend|><<|im_end|>\n";
    int64_t n = encode(chat, TOK_CHAT);
    CHECK_EQ(count_special(n), 4);
    size_t pos = 0;
    for (int64_t i = 0; i < n; i++) {
        struct bytes token = tok_bytes(qwen, ids[i]);
        CHECK(!memcmp(token.data, shown + pos, token.size));
        pos += token.size;
    }
    CHECK_EQ(pos, strlen(shown));
}

/* A text without sentinels is encoded as if sentinels did not exist, and only the chat mode removes them. */
static void sentinel_removal(void)
{
    static int32_t clean[100];
    int64_t n = tok_encode(qwen, view("a <b and <c"), TOK_PLAIN, 0, clean, 100);
    CHECK_EQ(encode("a <" S "b and <" S "c" S, TOK_CHAT), n);
    CHECK(!memcmp(ids, clean, (size_t)n * sizeof *ids));
    CHECK_EQ(encode(S S, TOK_CHAT), 0);
    CHECK(encode("a <" S "b and <" S "c", TOK_TEXT) > n);
    CHECK(tok_encode(qwen, view("a <" S "b"), TOK_CHAT, 0, ids, CAP) > 3);
}

/* Programs list the padding token among the special tokens, even if it is a byte or the result of a merge. Such a token
 * is still a part of pieces, is found wherever it occurs, as in Hugging Face's tokenizers, and is not a control token,
 * which would not be shown. */
static void ordinary_for_padding(void)
{
    enum { BANG = '!', TH = 256, THE, MARK, CONTROL = 3, USER = 4 };
    struct builder b = {0};
    struct tokenizer *t;
    struct error err;
    struct mem own = {0};
    int32_t control = CONTROL, got[8];
    add_bytes(&b);
    add_pair(&b, "t", "h");
    add_pair(&b, "th", "e");
    add_literal(&b, "<mark>", CONTROL);
    memcpy(b.types.data + BANG * sizeof control, &control, sizeof control);
    memcpy(b.types.data + TH * sizeof control, &control, sizeof control);
    struct tok_source source = source_of(&b);
    CHECK_EQ(tok_new(&own, &source, &t, &err), OK);
    CHECK(tok_type(t, BANG) == USER && tok_type(t, TH) == USER && tok_type(t, THE) == 1 &&
          tok_type(t, MARK) == CONTROL);
    CHECK_EQ(tok_encode(t, view("the!"), TOK_PLAIN, 0, got, 8), 2);
    CHECK(got[0] == THE && got[1] == BANG);
    CHECK_EQ(tok_encode(t, view("the!"), TOK_TEXT, 0, got, 8), 3);
    CHECK(got[0] == TH && got[1] == 'e' && got[2] == BANG);
    CHECK_EQ(tok_encode(t, view("<mark>"), TOK_TEXT, 0, got, 8), 6);
    tok_free(t);
    builder_free(&b);
    CHECK_EQ(own.used, 0);
}

/* A piece that is a token is not made by merges, if the tokenizer says so: "abc" and " abc", which no merge makes. */
static void whole_pieces(void)
{
    enum { AB = 256, ABC, SPACED, CONTROL };
    struct builder b = {0};
    struct tokenizer *t;
    struct error err;
    struct mem own = {0};
    int32_t got[8];
    add_bytes(&b);
    add_pair(&b, "a", "b");
    add_normal(&b, "abc", 3);
    add_normal(&b, " abc", 4);
    add_literal(&b, "xyz", 3);
    struct tok_source source = source_of(&b);
    for (int whole = 0; whole < 2; whole++) {
        source.whole = whole;
        CHECK_EQ(tok_new(&own, &source, &t, &err), OK);
        CHECK_EQ(tok_encode(t, view("abc abc"), TOK_PLAIN, 0, got, 8), whole ? 2 : 5);
        CHECK(whole ? got[0] == ABC && got[1] == SPACED : got[0] == AB && got[1] == 'c' && got[2] == ' ');
        CHECK_EQ(tok_encode(t, view("a" S "bc" S), TOK_CHAT, SENTINEL, got, 8), whole ? 1 : 2);
        CHECK_EQ(got[0], whole ? ABC : AB);
        CHECK_EQ(tok_encode(t, view("abcc"), TOK_PLAIN, 0, got, 8), 3);
        CHECK_EQ(tok_encode(t, view("xyz"), TOK_PLAIN, 0, got, 8), 3);
        CHECK_EQ(tok_encode(t, view("xyz"), TOK_CHAT, 0, got, 8), 1);
        CHECK_EQ(got[0], CONTROL);
        tok_free(t);
        CHECK_EQ(own.used, 0);
    }
    builder_free(&b);
}

/* --- time --------------------------------------------------------------------------------------------- */

static void shape_letter(uint8_t *p, size_t n) { memset(p, 'a', n); }
static void shape_spaces(uint8_t *p, size_t n) { memset(p, ' ', n); }
static void shape_newlines(uint8_t *p, size_t n) { memset(p, '\n', n); }
static void shape_underscores(uint8_t *p, size_t n) { memset(p, '_', n); }

static void shape_alternating(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) p[i] = i % 2 ? 'b' : 'a';
}

static void fill_from(uint8_t *p, size_t n, const char *set)
{
    uint64_t state = 5;
    size_t size = strlen(set);
    for (size_t i = 0; i < n; i++) p[i] = (uint8_t)set[next_random(&state) % size];
}

static void shape_random(uint8_t *p, size_t n) { fill_from(p, n, "abcdefghijklmnopqrstuvwxyz"); }
static void shape_punctuation(uint8_t *p, size_t n) { fill_from(p, n, "!#$%&()*+,-./:;<=>?@[]^_{|}~"); }
static void shape_base64(uint8_t *p, size_t n)
{
    fill_from(p, n, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
}

static void shape_chinese(uint8_t *p, size_t n)
{
    uint64_t state = 6;
    memset(p, 'x', n);
    for (size_t i = 0; i + 3 <= n; i += 3) utf8_write(0x4E00 + next_random(&state) % 20000, p + i);
}

/* Seconds of processor time. */
static double time_of(struct bytes text)
{
    clock_t start = clock();
    CHECK(tok_encode(qwen, text, TOK_CHAT, SENTINEL, ids, CAP) > 0);
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

/* n log n gives a ratio of 2.1, outgrown caches up to 2.8, quadratic work 4. Several tries, for a busy machine. */
static bool scales(struct bytes text, const char *name)
{
    for (int attempt = 0; attempt < 4; attempt++) {
        double half = time_of((struct bytes){text.data, text.size / 2}), whole = time_of(text);
        printf("# %s: %zu KiB in %.0f ms, %.2f times the half\n", name, text.size >> 10, 1e3 * whole, whole / half);
        if (whole < 2.0 && whole < 3.2 * half) return true;
    }
    return false;
}

static void long_words(void)
{
    static const struct {
        const char *name;
        void (*fill)(uint8_t *, size_t);
    } shapes[] = {
        {"one letter", shape_letter},       {"alternating", shape_alternating}, {"letters", shape_random},
        {"chinese", shape_chinese},         {"spaces", shape_spaces},           {"newlines", shape_newlines},
        {"punctuation", shape_punctuation}, {"base64", shape_base64},           {"underscores", shape_underscores}};
    static uint8_t text[1 << 20];
    const struct bytes word = {text, (size_t)check_length(1 << 18, sizeof text)};
    uint64_t used = mem.used;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        shapes[i].fill(text, word.size);
        CHECK(scales(word, shapes[i].name));
        check_round_trip(word, TOK_PLAIN);
    }
    CHECK_EQ(mem.used, used);
}

/* --- in small steps ----------------------------------------------------------------------------------- */

enum { MIXED = 60000 };

/* Fills a text with separators, special tokens and long pieces, in random order. */
static size_t fill_mixed(uint8_t *out, uint64_t *state, size_t size, size_t longest)
{
    static const char *const parts[] = {
        "word",
        " and",
        "  ",
        "\n",
        "\r\n",
        " \n \n",
        "'s",
        "'LL",
        "'\xC5\xBF",
        "'",
        "12",
        "\xC3\xA9",
        "\xE4\xBD\xA0\xE5\xA5\xBD",
        "\xF0\x9F\x98\x80",
        "\xE2\x80\x83",
        "<|im_end|>",
        "<|im_",
        "<" S "|im_end|>",
        "'" S "s",
        "<think>",
        "!?",
        "\xE4\xBD",
        "\t",
        "<" S,
        "</think",
        S S,
        "x" S "y",
    };
    size_t n = 0;
    while (n + longest + 32 < size) {
        uint64_t draw = next_random(state);
        const char *part = parts[draw % (sizeof parts / sizeof *parts)];
        size_t length = strlen(part), times = draw >> 32 & 127 ? 1 : (draw >> 40) % (longest / length) + 1;
        for (size_t i = 0; i < times; i++, n += length) memcpy(out + n, part, length);
    }
    return n;
}

/* The same ids as at once, whatever part of the text has arrived and however small each step is. @return their number
 */
static int64_t encode_slowly(struct bytes text, enum tok_mode mode, uint64_t *state, int64_t budget, size_t part)
{
    static int32_t some[8192 + 1];
    struct tok_run *run = tok_run_new(qwen, mode, SENTINEL);
    size_t at = 0, end = 0;
    int64_t n = 0;
    for (int status = TOK_MORE; status != TOK_DONE;) {
        struct tok_text in = {.bytes = {text.data + at, end - at}, .is_whole = end == text.size};
        struct id_sink out = {.ids = some, .cap = 8192 + (int)(next_random(state) & 1)};
        bool may_be_long = next_random(state) & 1;
        status = tok_run_go_on(run, &in, may_be_long, budget, &out);
        CHECK(status >= 0 && in.used <= in.bytes.size && (status != TOK_WANTS_TEXT || !in.is_whole));
        if (n + out.n > CAP || memcmp(ids + n, some, (size_t)out.n * sizeof *ids)) break;
        at += in.used;
        n += out.n;
        if (status == TOK_WANTS_TEXT) end += 1 + next_random(state) % part;
        if (end > text.size) end = text.size;
    }
    tok_run_free(run);
    return n;
}

static void resumed(void)
{
    static uint8_t text[MIXED];
    uint64_t state = 11, used = mem.used;
    static const int64_t budgets[] = {1, 7, 100, 5000, 1 << 20};
    for (int i = 0; i < check_length(40, 2000); i++) {
        size_t n = fill_mixed(text, &state, i % 4 ? 3000 : MIXED, i % 4 ? 100 : 20000);
        enum tok_mode mode = (enum tok_mode)(i % 3);
        int64_t whole = tok_encode(qwen, (struct bytes){text, n}, mode, SENTINEL, ids, CAP);
        int64_t budget = budgets[i % 4 ? i % 5 : 2 + i % 3];
        CHECK_EQ(encode_slowly((struct bytes){text, n}, mode, &state, budget, i % 2 ? 5 : 5000), whole);
    }
    CHECK_EQ(mem.used, used);
}

/* Pieces of a megabyte are encoded in calls of a few milliseconds each. */
static void slices(void)
{
    static const struct {
        const char *name;
        void (*fill)(uint8_t *, size_t);
    } shapes[] = {{"one letter", shape_letter}, {"letters", shape_random},          {"chinese", shape_chinese},
                  {"spaces", shape_spaces},     {"punctuation", shape_punctuation}, {"base64", shape_base64}};
    enum { BUDGET = 100000 };
    static uint8_t text[1 << 20];
    static int32_t some[16384];
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        shapes[i].fill(text, sizeof text);
        struct tok_run *run = tok_run_new(qwen, TOK_CHAT, SENTINEL);
        double longest = 0, all = 0;
        int calls = 0;
        size_t at = 0;
        for (int status = TOK_MORE; status != TOK_DONE; calls++) {
            struct tok_text in = {.bytes = {text + at, sizeof text - at}, .is_whole = true};
            struct id_sink out = {.ids = some, .cap = 16384};
            clock_t start = clock();
            status = tok_run_go_on(run, &in, true, BUDGET, &out);
            double ms = 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC;
            at += in.used;
            all += ms;
            if (ms > longest) longest = ms;
        }
        tok_run_free(run);
        printf("# %s: %.0f ms in %d calls, %.2f ms the longest\n", shapes[i].name, all, calls, longest);
        CHECK(calls > 10);
        CHECK(longest < 20 + all / 10);
    }
}

/* --- streaming ---------------------------------------------------------------------------------------- */

/* An independent check that a text consists of whole characters. */
static bool is_utf8(const uint8_t *p, size_t n)
{
    for (size_t i = 0, more; i < n; i += 1 + more) {
        more = p[i] < 0x80 ? 0 : p[i] < 0xC0 ? 9 : p[i] < 0xE0 ? 1 : p[i] < 0xF0 ? 2 : 3;
        if (i + more >= n) return false;
        for (size_t k = 1; k <= more; k++)
            if ((p[i + k] & 0xC0) != 0x80) return false;
    }
    return true;
}

static void stream_text(struct bytes text, bool valid, uint64_t *state)
{
    struct tok_stream stream = {0};
    uint8_t out[5000], chunk[16];
    size_t n = 0;
    for (size_t pos = 0, step; pos < text.size; pos += step) {
        step = next_random(state) % 6;
        if (step > text.size - pos) step = text.size - pos;
        size_t size = tok_stream_push(&stream, (struct bytes){text.data + pos, step}, chunk);
        CHECK(size <= step + 3);
        CHECK(!valid || is_utf8(chunk, size));
        memcpy(out + n, chunk, size);
        n += size;
        CHECK(pos + step - n <= 3);
    }
    size_t rest = tok_stream_end(&stream, chunk);
    CHECK(rest <= 3 && (!valid || rest == 0));
    memcpy(out + n, chunk, rest);
    CHECK_EQ(n + rest, text.size);
    CHECK(!memcmp(out, text.data, text.size));
    CHECK_EQ(stream.n_held, 0);
}

static void streaming(void)
{
    uint64_t state = 9;
    uint8_t text[4000];
    for (int round = 0; round < 500; round++) {
        size_t n = 0;
        while (n < sizeof text - 4) {
            uint32_t c = next_random(&state) % (next_random(&state) % 2 ? 0x110000 : 0x900);
            if (c < 0xD800 || c > 0xDFFF) n += utf8_write(c, text + n);
        }
        stream_text((struct bytes){text, n}, true, &state);
        for (int i = 0; i < 100; i++) text[next_random(&state) % n] = (uint8_t)next_random(&state);
        stream_text((struct bytes){text, n}, false, &state);
    }
}

/* Bytes that begin no character are not held back. */
static void streaming_invalid(void)
{
    static const struct {
        const char *bytes;
        int held;
    } cases[] = {{"\xC3", 1},     {"\xE2\x82", 2},     {"\xF0\x9F\xA6", 3}, {"\xC0", 0},     {"\xF5", 0},
                 {"\xE0\x80", 0}, {"\xED\xA0", 0},     {"\xF4\x90", 0},     {"\xF0\x80", 0}, {"\x80\x80", 0},
                 {"a\x80", 0},    {"\xE2\x82\xAC", 0}, {"\xC3\xC3", 1},     {"\xFF", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tok_stream stream = {0};
        uint8_t out[16];
        size_t n = tok_stream_push(&stream, view(cases[i].bytes), out);
        CHECK_EQ(stream.n_held, cases[i].held);
        CHECK_EQ(n, strlen(cases[i].bytes) - (size_t)cases[i].held);
    }
}

/* --- memory ------------------------------------------------------------------------------------------- */

static void short_memory(void)
{
    static char text[20000];
    memset(text, 'x', sizeof text - 1);
    memcpy(text, "<" S "|", 5);
    uint64_t used = mem.used;
    int failures = 0;
    for (int64_t n = -1; n < 0; failures++) {
        mem.fail_at = mem.n_allocs + (uint64_t)failures + 1;
        n = encode(text, TOK_CHAT);
        CHECK(n > 0 || n == ERR_MEM_LOAD);
        CHECK_EQ(mem.used, used);
    }
    mem.fail_at = 0;
    CHECK_EQ(failures, 3); /* the cleaned text and the scratch fail, then success */
}

static void unload(void)
{
    tok_free(qwen);
    tok_free(NULL);
    CHECK_EQ(mem.used, 0);
}

int main(int argc, char **argv)
{
    static const struct check tests[] = {
        {"load_qwen", load_qwen},
        {"llama_cases", llama_cases},
        {"hugging_face_cases", hugging_face_cases},
        {"byte_pairs", byte_pairs},
        {"random_bytes", random_bytes},
        {"every_code_point", every_code_point},
        {"small_inputs", small_inputs},
        {"token_table", token_table},
        {"special_modes", special_modes},
        {"typed_specials", typed_specials},
        {"sentinel_removal", sentinel_removal},
        {"ordinary_for_padding", ordinary_for_padding},
        {"whole_pieces", whole_pieces},
        {"long_words", long_words},
        {"resumed", resumed},
        {"slices", slices},
        {"streaming", streaming},
        {"streaming_invalid", streaming_invalid},
        {"short_memory", short_memory},
        {"unload", unload},
    };
    return check_run(argc, argv, tests, sizeof tests / sizeof *tests);
}
