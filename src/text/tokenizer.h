/* SPDX-License-Identifier: MIT
 *
 * Byte-level BPE with Qwen2's split: text -> token ids -> bytes.
 *
 * The vocabulary comes as packed strings, so that every container can hand it
 * over without a copy. Untrusted: tok_new() checks all of it, afterwards nothing but memory can fail. Special
 * tokens follow two rules: plain text recognises user-defined tokens only; a rendered chat recognises all of them, but
 * none that a person typed, because the caller has put a sentinel inside it. Where they overlap, the longest at the
 * earliest position wins; of the same text a control token before a user-defined one, then the lowest id.
 */
#ifndef QUERN_TOKENIZER_H
#define QUERN_TOKENIZER_H

#include "text/bpe.h"

/* Packed strings: each a uint64 little-endian length, then its bytes (GGUF's own encoding). */
struct tok_source {
    struct bytes tokens;   /* n_tokens packed strings, in GPT-2's byte alphabet except types 3 and 4 */
    uint64_t n_tokens;
    /* n_tokens int32: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte; empty = all normal */
    struct bytes types;
    struct bytes merges;   /* n_merges packed strings "left right", by rank */
    uint64_t n_merges;
    /* n_tokens floats: tokens are joined by them (scores.h), without a split and merges; empty: by merges */
    struct bytes scores;
};

struct tokenizer;

/* Copies what it needs; keeps m. ERR_FORMAT, ERR_INCONSISTENT (rules "vocab", "merges") or ERR_MEM_LOAD. */
int tok_new(struct mem *m, const struct tok_source *source, struct tokenizer **out, struct error *err);
void tok_free(struct tokenizer *t); /* accepts NULL */

int tok_count(const struct tokenizer *t);
/* The bytes that token id stands for (decoded from the byte alphabet; control tokens: their text; unused: empty).
 * Borrowed for the tokenizer's life. id out of range: empty. */
struct bytes tok_bytes(const struct tokenizer *t, int id);
/* All tokens: their bytes, where each begins, and types as in tok_source.types. */
const struct vocab *tok_vocab(const struct tokenizer *t);
/* 1..6 as in tok_source.types; 0 for an id out of range. */
int tok_type(const struct tokenizer *t, int id);
/* The id of a special (type 3 or 4) token with exactly this text, or -1. */
int tok_find_special(const struct tokenizer *t, struct bytes text);

enum tok_mode {
    TOK_PLAIN = 0, /* no special token is recognised */
    TOK_TEXT = 1,  /* user-defined ones are (what llama.cpp's tokenizer gives with parse_special off) */
    TOK_CHAT = 2   /* control and user-defined ones are; the sentinel is removed from the pieces between */
};

/* A text on its way to tokens, which comes in parts, and of which a little is worked on at a time. sentinel: a code
 * point, 0 = none (only for TOK_CHAT). NULL when memory is short. */
struct tok_run *tok_run_new(const struct tokenizer *t, enum tok_mode mode, uint32_t sentinel);
void tok_run_free(struct tok_run *r); /* accepts NULL */

/* What there is of a text from the first byte on that has not become tokens. */
struct tok_text {
    struct bytes bytes;
    bool is_whole; /* nothing follows */
    size_t used;   /* out: bytes that have become tokens; the next call is given what stands behind them */
};

enum tok_state { TOK_DONE, TOK_MORE, TOK_WANTS_TEXT, TOK_LONG };

/* Works for about so many steps, of some 10 ns, or until out has less room than 8192; out->cap is that at least.
 * TOK_DONE; TOK_MORE: call again; TOK_WANTS_TEXT: with more of it (some bytes more than it has now); TOK_LONG: a piece
 * of more than 8192 bytes, which takes 32 bytes of memory for each of its, is next, and begun only if may_be_long, or
 * is being joined. A negative status only when memory is short (ERR_MEM_LOAD). */
int tok_run_go_on(struct tok_run *r, struct tok_text *in, bool may_be_long, int64_t budget, struct id_sink *out);

/* All of a text, which is any bytes. sentinel: as above. Writes at most cap ids and returns how many there
 * are, however large cap is; a negative status only when memory is short (ERR_MEM_LOAD). */
int64_t tok_encode(const struct tokenizer *t, struct bytes text, enum tok_mode mode, uint32_t sentinel, int32_t *ids,
                   int64_t cap);

/* Streaming decode: bytes go in as tokens come, whole UTF-8 characters come out. */
struct tok_stream {
    uint8_t held[4]; /* an incomplete character */
    int n_held;
};

/* Appends token bytes; writes what is complete to out (room for piece.size + 3) and returns its length.
 * An invalid byte is passed on at once; the reader of the text shows it as U+FFFD. */
size_t tok_stream_push(struct tok_stream *s, struct bytes piece, uint8_t *out);
/* The rest, at the end of a reply: at most 3 bytes. */
size_t tok_stream_end(struct tok_stream *s, uint8_t *out);

#endif
