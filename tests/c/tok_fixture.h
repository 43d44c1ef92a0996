/* SPDX-License-Identifier: MIT
 *
 * Vocabularies for tests: a builder of packed strings that may be false, and Qwen's real vocabulary. Its merges are
 * derived from the ranks of qwen.tiktoken: the token of rank r is made by the last merge that remains after byte pair
 * encoding with the ranks below r.
 */
#ifndef QUERN_TOK_FIXTURE_H
#define QUERN_TOK_FIXTURE_H

#include "check.h"
#include "text/tokenizer.h"

#include <stdlib.h>

struct buffer {
    uint8_t *data;
    size_t size, capacity;
};

static inline void buffer_add(struct buffer *b, const void *data, size_t n)
{
    if (b->size + n > b->capacity) {
        b->capacity = 2 * (b->size + n) + 64;
        b->data = realloc(b->data, b->capacity);
        if (!b->data) exit(2);
    }
    if (n) memcpy(b->data + b->size, data, n);
    b->size += n;
}

static inline void buffer_pack(struct buffer *b, const void *data, uint64_t n)
{
    buffer_add(b, &n, sizeof n);
    buffer_add(b, data, (size_t)n);
}

static inline struct bytes view(const char *text) { return (struct bytes){(const uint8_t *)text, strlen(text)}; }

struct builder {
    struct buffer tokens, types, merges;
    uint64_t n_tokens, n_merges;
};

/* Adds the string in the file's form. */
static inline void add_string(struct builder *b, const void *data, size_t n, int32_t type)
{
    buffer_pack(&b->tokens, data, n);
    buffer_add(&b->types, &type, sizeof type);
    b->n_tokens++;
}

static inline void add_literal(struct builder *b, const char *text, int32_t type)
{
    add_string(b, text, strlen(text), type);
}

/* GPT-2's alphabet by its definition: bytes without a printable form become U+0100 and so on, in order. */
static inline void spell(struct buffer *out, const uint8_t *data, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t code_point = data[i], skipped = 256;
        for (uint32_t c = 0; c <= data[i]; c++) {
            int printable = (c > 32 && c < 127) || (c > 160 && c != 173);
            if (c == data[i] && !printable) code_point = skipped;
            skipped += !printable;
        }
        uint8_t utf8[2] = {(uint8_t)(0xC0 | code_point >> 6), (uint8_t)(0x80 | (code_point & 63))};
        uint8_t ascii = (uint8_t)code_point;
        if (code_point < 128) buffer_add(out, &ascii, 1);
        else buffer_add(out, utf8, 2);
    }
}

static inline void add_normal(struct builder *b, const void *data, size_t n)
{
    struct buffer spelled = {0};
    spell(&spelled, data, n);
    add_string(b, spelled.data, spelled.size, 1);
    free(spelled.data);
}

static inline void add_bytes(struct builder *b)
{
    for (int i = 0; i < 256; i++) {
        uint8_t byte = (uint8_t)i;
        add_normal(b, &byte, 1);
    }
}

static inline void add_merge(struct builder *b, const void *left, size_t n_left, const void *right, size_t n_right)
{
    struct buffer line = {0};
    spell(&line, left, n_left);
    buffer_add(&line, " ", 1);
    spell(&line, right, n_right);
    buffer_pack(&b->merges, line.data, line.size);
    b->n_merges++;
    free(line.data);
}

static inline void add_merge_line(struct builder *b, const char *line)
{
    buffer_pack(&b->merges, line, strlen(line));
    b->n_merges++;
}

/* Adds a token of two parts and its merge. */
static inline void add_pair(struct builder *b, const char *left, const char *right)
{
    char text[64];
    int n = snprintf(text, sizeof text, "%s%s", left, right);
    add_normal(b, text, (size_t)n);
    add_merge(b, left, strlen(left), right, strlen(right));
}

static inline struct tok_source source_of(const struct builder *b)
{
    return (struct tok_source){
        .tokens = {b->tokens.data, b->tokens.size}, .n_tokens = b->n_tokens, .types = {b->types.data, b->types.size},
        .merges = {b->merges.data, b->merges.size}, .n_merges = b->n_merges};
}

static inline void builder_free(struct builder *b)
{
    free(b->tokens.data);
    free(b->types.data);
    free(b->merges.data);
    *b = (struct builder){0};
}

/* --- Qwen's vocabulary -------------------------------------------------------------------------------- */

static inline struct buffer read_fixture(const char *name)
{
    char path[1000];
    struct buffer out = {0};
    snprintf(path, sizeof path, "%s/%s", check_fixtures, name);
    FILE *f = fopen(path, "rb");
    if (!f) {
        printf("cannot read %s\n", path);
        exit(2);
    }
    uint8_t block[65536];
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;) buffer_add(&out, block, n);
    fclose(f);
    return out;
}

enum { QWEN_RANKS = 151643, QWEN_TOKENS = 151936, QWEN_SLOTS = 1 << 19, QWEN_LONGEST = 128 };

struct ranks {
    struct buffer text;
    uint32_t starts[QWEN_RANKS + 1];
    uint32_t slots[QWEN_SLOTS]; /* rank + 1 */
};

static inline uint32_t rank_slot(const struct ranks *r, const uint8_t *data, size_t n)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) hash = (hash ^ data[i]) * 1099511628211u;
    uint32_t slot = (uint32_t)(hash ^ hash >> 29) % QWEN_SLOTS;
    for (;; slot = (slot + 1) % QWEN_SLOTS) {
        uint32_t rank = r->slots[slot] - 1;
        if (r->slots[slot] == 0) return slot;
        if (r->starts[rank + 1] - r->starts[rank] == n && !memcmp(r->text.data + r->starts[rank], data, n)) return slot;
    }
}

static inline uint32_t decode_base64(const uint8_t *text, size_t n, uint8_t *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0, n_bits = 0, size = 0;
    for (size_t i = 0; i < n && text[i] != '='; i++) {
        bits = (bits << 6 | (uint32_t)(strchr(digits, text[i]) - digits)) & 0xFFFF;
        n_bits += 6;
        if (n_bits >= 8) out[size++] = (uint8_t)(bits >> (n_bits -= 8));
    }
    return size;
}

/* Reads lines "base64 rank", ordered by rank. */
static inline struct ranks *read_ranks(void)
{
    struct ranks *r = calloc(1, sizeof *r);
    struct buffer file = read_fixture("vocab/qwen.tiktoken");
    const uint8_t *line = file.data, *end = file.data + file.size;
    for (uint32_t rank = 0; r && rank < QWEN_RANKS; rank++) {
        uint8_t token[QWEN_LONGEST + 4];
        const uint8_t *space = memchr(line, ' ', (size_t)(end - line)),
                      *next = memchr(line, '\n', (size_t)(end - line));
        uint32_t n = decode_base64(line, (size_t)(space - line), token);
        buffer_add(&r->text, token, n);
        r->starts[rank + 1] = r->starts[rank] + n;
        r->slots[rank_slot(r, token, n)] = rank + 1;
        line = next + 1;
    }
    free(file.data);
    return r;
}

static inline uint32_t rank_of_bytes(const struct ranks *r, const uint8_t *data, size_t n)
{
    return r->slots[rank_slot(r, data, n)] - 1; /* UINT32_MAX if there is none */
}

/* Where the last merge of this rank's token joins its two parts. */
static inline size_t cut_of(const struct ranks *r, uint32_t rank)
{
    const uint8_t *token = r->text.data + r->starts[rank];
    size_t n = r->starts[rank + 1] - r->starts[rank], cuts[QWEN_LONGEST + 1];
    for (size_t i = 0; i <= n; i++) cuts[i] = i;
    while (n > 2) {
        size_t best = 0;
        uint32_t lowest = rank;
        for (size_t i = 0; i + 2 <= n; i++) {
            uint32_t found = rank_of_bytes(r, token + cuts[i], cuts[i + 2] - cuts[i]);
            if (found < lowest) lowest = found, best = i + 1;
        }
        if (!best) break;
        memmove(cuts + best, cuts + best + 1, (n - best) * sizeof *cuts);
        n--;
    }
    CHECK_EQ(n, 2);
    return cuts[1];
}

/* Ids and types as in Qwen3's files. */
static const struct {
    const char *text;
    int32_t type;
} qwen_specials[] = {
    {"<|endoftext|>", 3},
    {"<|im_start|>", 3},
    {"<|im_end|>", 3},
    {"<|object_ref_start|>", 3},
    {"<|object_ref_end|>", 3},
    {"<|box_start|>", 3},
    {"<|box_end|>", 3},
    {"<|quad_start|>", 3},
    {"<|quad_end|>", 3},
    {"<|vision_start|>", 3},
    {"<|vision_end|>", 3},
    {"<|vision_pad|>", 3},
    {"<|image_pad|>", 3},
    {"<|video_pad|>", 3},
    {"<tool_call>", 4},
    {"</tool_call>", 4},
    {"<|fim_prefix|>", 4},
    {"<|fim_middle|>", 4},
    {"<|fim_suffix|>", 4},
    {"<|fim_pad|>", 4},
    {"<|repo_name|>", 4},
    {"<|file_sep|>", 4},
    {"<tool_response>", 4},
    {"</tool_response>", 4},
    {"<think>", 4},
    {"</think>", 4},
};

static inline struct builder build_qwen(void)
{
    struct builder b = {0};
    struct ranks *r = read_ranks();
    for (uint32_t rank = 0; rank < QWEN_RANKS; rank++) {
        const uint8_t *token = r->text.data + r->starts[rank];
        size_t n = r->starts[rank + 1] - r->starts[rank];
        add_normal(&b, token, n);
        if (n == 1) continue;
        size_t cut = cut_of(r, rank);
        add_merge(&b, token, cut, token + cut, n - cut);
    }
    free(r->text.data);
    free(r);
    for (size_t i = 0; i < sizeof qwen_specials / sizeof *qwen_specials; i++)
        add_literal(&b, qwen_specials[i].text, qwen_specials[i].type);
    while (b.n_tokens < QWEN_TOKENS) {
        char pad[32];
        snprintf(pad, sizeof pad, "[PAD%d]", (int)b.n_tokens);
        add_literal(&b, pad, 5);
    }
    return b;
}

/* --- the reference's cases ---------------------------------------------------------------------------- */

/* Reads the numbers of one line and compares them with the ids; returns the start of the next line. */
static inline const char *expect_line(const char *line, const int32_t *ids, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        char *end;
        CHECK_EQ(ids[i], strtol(line, &end, 10));
        CHECK(end > line);
        line = end;
    }
    line += strspn(line, " ");
    CHECK(*line == '\n');
    return line + 1;
}

/* llama.cpp's 46 cases: each text has the ids of its line. */
static inline void reference_cases(const struct tokenizer *t)
{
    static const char separator[] = "\n__ggml_vocab_test__\n";
    static int32_t ids[4096];
    struct buffer inputs = read_fixture("vocab/qwen2-cases.inp"), outputs = read_fixture("vocab/qwen2-cases.out");
    buffer_add(&inputs, "", 1);
    buffer_add(&outputs, "", 1);
    char *text = (char *)inputs.data;
    const char *line = (const char *)outputs.data;
    int n_cases = 0;
    for (char *end; (end = strstr(text, separator)); text = end + strlen(separator), n_cases++) {
        *end = 0;
        line = expect_line(line, ids, tok_encode(t, view(text), TOK_TEXT, 0, ids, (int64_t)(sizeof ids / sizeof *ids)));
    }
    CHECK_EQ(n_cases, 46);
    free(inputs.data);
    free(outputs.data);
}

/* --- random numbers ----------------------------------------------------------------------------------- */

static inline uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

#endif
