/* SPDX-License-Identifier: MIT
 *
 * The tokens of a vocabulary: their bytes and types, and, while a tokenizer loads, the id of a string.
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

enum { TOKEN_MAX_BYTES = 65536 }; /* longer strings are refused; the longest of Qwen3 has 128 */

struct vocab {
    uint32_t n_tokens;
    uint32_t *starts;      /* [n_tokens + 1]: token i is text[starts[i] .. starts[i + 1]) */
    uint8_t *text;         /* the bytes that tokens stand for; unused tokens: none */
    uint8_t *types;        /* [n_tokens], enum token_type */
    struct table by_bytes; /* of each string that encoding may produce, the lowest id; while loading only */
};

/* tokens: n_tokens packed strings (uint64 length, bytes); types: n_tokens int32, or empty = all normal.
 * OK, ERR_FORMAT (rule "vocab") or ERR_MEM_LOAD; vocab_free() in every case. */
int vocab_load(struct mem *m, struct vocab *v, struct bytes tokens, uint64_t n_tokens, struct bytes types,
               struct error *err);
void vocab_free(struct mem *m, struct vocab *v);

/* Borrowed for the vocabulary's life. id < n_tokens. */
struct bytes vocab_bytes(const struct vocab *v, uint32_t id);
/* The id that these bytes, at least one, encode to; TABLE_NONE when there is none. Not after vocab_drop_index(). */
uint32_t vocab_find(const struct vocab *v, struct bytes bytes);
/* From now on vocab_find() also finds control and user-defined tokens, of printable ASCII, where no other token has
 * these bytes. false: more collisions than chance allows. */
bool vocab_index_literals(struct vocab *v);
void vocab_drop_index(struct mem *m, struct vocab *v);

/* GPT-2's alphabet, in which vocabularies spell bytes as printable characters -> bytes. out: room for text.size, or
 * NULL to measure. false when a character is not of the alphabet. */
bool alphabet_decode(struct bytes text, uint8_t *out, size_t *size);

#endif
