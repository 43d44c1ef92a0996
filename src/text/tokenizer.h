/* SPDX-License-Identifier: MIT
 *
 * Byte-level BPE with the splits of Qwen's models, Llama 3 and SmolLM: text -> token ids -> bytes.
 *
 * The vocabulary comes as packed strings, so that every file format can pass it without a copy. It is untrusted:
 * tok_new() checks all of it, and afterwards only memory can fail. There are two modes for special tokens: plain text
 * recognises user-defined tokens only. A rendered chat recognises all special tokens, but none that a user typed,
 * because the caller has put a sentinel inside it. Where special tokens overlap, the earliest position wins, then the
 * longest. Of tokens with the same text a control token comes before a user-defined one, then the lowest id.
 */
#ifndef QUERN_TOKENIZER_H
#define QUERN_TOKENIZER_H

#include "text/bpe.h"
#include "text/rules.h"

/* Packed strings: each is a little-endian uint64 length, then its bytes (GGUF's own encoding). */
struct tok_source {
    struct bytes tokens;   /* n_tokens packed strings, in GPT-2's byte alphabet; types 3 and 4 in plain bytes */
    uint64_t n_tokens;
    /* n_tokens int32: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte; empty = all normal */
    struct bytes types;
    struct bytes merges;   /* n_merges packed strings "left right", by rank */
    uint64_t n_merges;
    /* n_tokens floats: tokens are joined by scores (scores.h), without a split and without merges; empty: by merges */
    struct bytes scores;
    struct piece_rules rules;
    bool whole;            /* a piece that is a token becomes this token, whatever the merges make of it */
};

struct tokenizer;

/* Copies the data that it needs; keeps m. ERR_FORMAT, ERR_INCONSISTENT (rules "vocab", "merges") or ERR_MEM_LOAD. */
int tok_new(struct mem *m, const struct tok_source *source, struct tokenizer **out, struct error *err);
void tok_free(struct tokenizer *t); /* accepts NULL */

int tok_count(const struct tokenizer *t);
/* The bytes of token id: decoded from the byte alphabet; the text of a control token; empty for an unused one or an id
 * out of range. Valid as long as the tokenizer. */
struct bytes tok_bytes(const struct tokenizer *t, int id);
/* All tokens: their bytes, the position of each, and types as in tok_source.types. */
const struct vocab *tok_vocab(const struct tokenizer *t);
/* Type of token id, 1..6 as in tok_source.types; 0 for an id out of range. */
int tok_type(const struct tokenizer *t, int id);
/* The id of a special token (type 3 or 4) with exactly this text, or -1. */
int tok_find_special(const struct tokenizer *t, struct bytes text);

enum tok_mode {
    TOK_PLAIN = 0, /* no special token is recognised */
    TOK_TEXT = 1,  /* recognises user-defined tokens (llama.cpp's tokenizer with parse_special off) */
    TOK_CHAT = 2   /* recognises control and user-defined tokens; removes the sentinel from the text between */
};

/* Starts the encoding of a text that may arrive in parts and is encoded a little at a time. sentinel is a code point, 0
 * = none (only for TOK_CHAT). NULL when memory is short. */
struct tok_run *tok_run_new(const struct tokenizer *t, enum tok_mode mode, uint32_t sentinel);
void tok_run_free(struct tok_run *r); /* accepts NULL */

/* The received part of a text, from the first byte that has not become tokens. */
struct tok_text {
    struct bytes bytes;
    bool is_whole; /* no more text follows */
    size_t used;   /* out: bytes that have become tokens; the next call starts after them */
};

enum tok_state { TOK_DONE, TOK_MORE, TOK_WANTS_TEXT, TOK_LONG };

/* Works for about `budget` steps of some 10 ns, or until out has room for fewer than 8192 ids; out->cap must be at
 * least 8192. Returns TOK_DONE; TOK_MORE: call again; TOK_WANTS_TEXT: call again with a few more bytes of text;
 * TOK_LONG: the next piece has more than 8192 bytes. A long piece needs 32 bytes of memory per byte and is only begun
 * if may_be_long; while it is being joined, the result is TOK_LONG too. A negative status means that memory is short
 * (ERR_MEM_LOAD). */
int tok_run_go_on(struct tok_run *r, struct tok_text *in, bool may_be_long, int64_t budget, struct id_sink *out);

/* Encodes a whole text of any bytes. sentinel: as above. Writes at most cap ids and returns the number of all ids,
 * which may exceed cap. A negative status means that memory is short (ERR_MEM_LOAD). */
int64_t tok_encode(const struct tokenizer *t, struct bytes text, enum tok_mode mode, uint32_t sentinel, int32_t *ids,
                   int64_t cap);

/* Streaming decode: takes the bytes of each token and gives whole UTF-8 characters. */
struct tok_stream {
    uint8_t held[4]; /* bytes of an incomplete character */
    int n_held;
};

/* Adds the bytes of a token, writes all complete characters to out (room for piece.size + 3) and returns their size in
 * bytes. Invalid bytes are passed on at once; readers of the text show them as U+FFFD. */
size_t tok_stream_push(struct tok_stream *s, struct bytes piece, uint8_t *out);
/* Writes the remaining bytes at the end of a reply, at most 3. Returns their number. */
size_t tok_stream_end(struct tok_stream *s, uint8_t *out);

#endif
