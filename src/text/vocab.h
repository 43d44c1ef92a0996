/* SPDX-License-Identifier: MIT
 *
 * The tokens of a vocabulary: bytes and types and, while a tokenizer loads, the id of a string.
 */
#ifndef QUERN_VOCAB_H
#define QUERN_VOCAB_H

#include "text/table.h"

/* The values of GGUF's tokenizer.ggml.token_type. */
enum token_type {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_USER_DEFINED = 4,
    TOKEN_UNUSED = 5,
    TOKEN_BYTE = 6
};

enum { TOKEN_MAX_BYTES = 65536 }; /* longer strings are refused; Qwen3's longest has 128 */

struct vocab {
    uint32_t n_tokens;
    uint32_t *starts;      /* [n_tokens + 1]: token i is text[starts[i] .. starts[i + 1]) */
    uint8_t *text;         /* the bytes of all tokens; unused tokens have none */
    uint8_t *types;        /* [n_tokens], enum token_type */
    struct table by_bytes; /* lowest id of each string that encoding may produce; only while loading */
};

/* tokens: n_tokens packed strings (uint64 length, bytes). types: n_tokens int32; empty = all normal. OK, ERR_FORMAT
 * (rule "vocab") or ERR_MEM_LOAD. Call vocab_free() in every case. */
int vocab_load(struct mem *m, struct vocab *v, struct bytes tokens, uint64_t n_tokens, struct bytes types,
               struct error *err);
void vocab_free(struct mem *m, struct vocab *v);

/* The bytes of token id < n_tokens. Valid as long as the vocabulary. */
struct bytes vocab_bytes(const struct vocab *v, uint32_t id);
/* The id that these bytes, at least one, encode to; TABLE_NONE if there is none. Not after vocab_drop_index(). */
uint32_t vocab_find(const struct vocab *v, struct bytes bytes);
/* From now on vocab_find() also finds control and user-defined tokens of printable ASCII, if no other token has these
 * bytes. Returns false if there are more collisions than chance explains. */
bool vocab_index_literals(struct vocab *v);
void vocab_drop_index(struct mem *m, struct vocab *v);

/* Decodes text in GPT-2's alphabet, in which vocabularies write bytes as printable characters. out has room for
 * text.size bytes, or is NULL to measure. Returns false if a character is not in the alphabet. */
bool alphabet_decode(struct bytes text, uint8_t *out, size_t *size);

#endif
