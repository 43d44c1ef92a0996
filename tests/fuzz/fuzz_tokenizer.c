/* SPDX-License-Identifier: MIT
 *
 * The input is a vocabulary and a text. With any vocabulary that loads, encoding and decoding must give the text back,
 * in every mode and through the stream, with ids inside the vocabulary.
 *
 * Layout: u16 n_tokens, n_merges, sizes of tokens, types and merges; then those three; the rest is the text. n_merges
 * 65535: scores instead of merges.
 *
 *   build/fuzz/fuzz/fuzz_tokenizer -max_len=8192 -timeout=5 -malloc_limit_mb=64 NEW_CORPUS tests/fuzz/corpus/tokenizer
 */
#include "load.h"
#include "text/tokenizer.h"

/* Takes the next n bytes, or as many as there are. */
static struct bytes take(const uint8_t **data, size_t *size, size_t n)
{
    struct bytes out = {*data, n < *size ? n : *size};
    *data += out.size;
    *size -= out.size;
    return out;
}

/* Every byte that goes in comes out, whole characters first. */
static void check_stream(const struct tokenizer *t, const int32_t *ids, int64_t n, struct bytes text)
{
    struct tok_stream stream = {0};
    uint8_t *out = malloc(text.size + 8), *piece = malloc(text.size + 8);
    size_t at = 0;
    require(out && piece);
    for (int64_t i = 0; i <= n; i++) {
        size_t count = i < n ? tok_stream_push(&stream, tok_bytes(t, ids[i]), piece) : tok_stream_end(&stream, piece);
        require(count <= text.size - at);
        memcpy(out + at, piece, count);
        at += count;
    }
    require(at == text.size && (at == 0 || memcmp(out, text.data, at) == 0));
    free(out);
    free(piece);
}

static void check_encoding(const struct tokenizer *t, struct bytes text, enum tok_mode mode)
{
    int64_t n = tok_encode(t, text, mode, 0, NULL, 0);
    require(n >= 0 && (uint64_t)n <= text.size);
    int32_t *ids = malloc(((size_t)n + 1) * sizeof *ids);
    require(ids != NULL);
    ids[n] = -7;
    require(tok_encode(t, text, mode, 0, ids, n) == n && ids[n] == -7);
    for (int64_t i = 0; i < n; i++) {
        int type = tok_type(t, ids[i]);
        require(ids[i] >= 0 && ids[i] < tok_count(t));
        require(mode == TOK_CHAT || type != 3);
        require(mode != TOK_PLAIN || type != 4);
    }
    check_stream(t, ids, n, text);
    free(ids);
}

/* Removing a sentinel (a text may contain one) must not create further ones. */
static void check_sentinel(const struct tokenizer *t, struct bytes text)
{
    int64_t n = tok_encode(t, text, TOK_CHAT, text.size ? text.data[0] & 0x7F : 0, NULL, 0);
    require(n >= 0 && (uint64_t)n <= text.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mem mem = {.limit = 64 << 20};
    struct tokenizer *t = NULL;
    struct error err = {0};
    uint16_t head[5];
    if (size < sizeof head) return 0;
    memcpy(head, data, sizeof head);
    data += sizeof head, size -= sizeof head;
    bool scored = head[1] == UINT16_MAX;
    struct tok_source source = {.n_tokens = head[0], .n_merges = scored ? 0 : head[1]};
    source.tokens = take(&data, &size, head[2]);
    source.types = take(&data, &size, head[3]);
    *(scored ? &source.scores : &source.merges) = take(&data, &size, head[4]);
    int status = tok_new(&mem, &source, &t, &err);
    require(status == err.code && (status == OK) == (t != NULL) && (status == OK) == (err.rule[0] == 0));
    if (status == OK) check_sentinel(t, (struct bytes){data, size});
    for (int mode = TOK_PLAIN; status == OK && mode <= TOK_CHAT; mode++)
        check_encoding(t, (struct bytes){data, size}, (enum tok_mode)mode);
    tok_free(t);
    require(mem.used == 0);
    return 0;
}
