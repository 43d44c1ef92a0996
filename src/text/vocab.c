/* SPDX-License-Identifier: MIT
 *
 * Reads and checks the token strings of a file, and keeps each token's bytes once.
 *
 * A normal token that is not written in the byte alphabet stands for its own UTF-8 text, and encoding never produces
 * it. Nor does encoding produce control, user-defined or unused tokens.
 */
#include "text/vocab.h"

#include "base/reader.h"
#include "base/unicode.h"

#include <string.h>

/* --- the byte alphabet ----------------------------------------------------------------------------------- */

/* Printable Latin-1 characters stand for themselves. U+0100 and the following characters stand for the other 68 bytes
 * in ascending order: 0..32, 127..160 and 173. */
static bool alphabet_byte(uint32_t c, uint8_t *out)
{
    if ((c >= 33 && c <= 126) || (c >= 161 && c <= 172) || (c >= 174 && c <= 255)) {
        *out = (uint8_t)c;
        return true;
    }
    if (c < 256 || c >= 256 + 68) return false;
    uint32_t nth = c - 256;
    *out = (uint8_t)(nth <= 32 ? nth : nth <= 66 ? nth - 33 + 127 : 173);
    return true;
}

bool alphabet_decode(struct bytes text, uint8_t *out, size_t *size)
{
    size_t n = 0;
    for (size_t pos = 0; pos < text.size; n++) {
        uint32_t code_point;
        uint8_t byte;
        pos += utf8_read(text.data + pos, text.size - pos, &code_point);
        if (!alphabet_byte(code_point, &byte)) return false;
        if (out) out[n] = byte;
    }
    *size = n;
    return true;
}

/* --- loading ----------------------------------------------------------------------------------------------- */

static bool is_literal(uint8_t type) { return type == TOKEN_CONTROL || type == TOKEN_USER_DEFINED; }

/* Writes the bytes of a token's string to out (NULL: only measures) and returns their number. *encodes: encoding may
 * produce the token. */
static size_t token_value(struct bytes string, uint8_t type, uint8_t *out, bool *encodes)
{
    size_t size;
    *encodes = false;
    if (type == TOKEN_UNUSED) return 0;
    if (!is_literal(type) && alphabet_decode(string, out, &size)) {
        *encodes = true;
        return size;
    }
    if (out) memcpy(out, string.data, string.size);
    return string.size;
}

static int load_types(struct vocab *v, struct bytes types, struct error *err)
{
    if (types.size == 0) {
        memset(v->types, TOKEN_NORMAL, v->n_tokens);
        return OK;
    }
    if (types.size != (uint64_t)v->n_tokens * 4)
        return fail(err, ERR_FORMAT, "vocab", 0, "The vocabulary has %u tokens but %zu bytes of token types (4 each).",
                    (unsigned)v->n_tokens, types.size);
    for (uint32_t i = 0; i < v->n_tokens; i++) {
        uint32_t type = load_u32(types.data + (size_t)i * 4);
        if (type < TOKEN_NORMAL || type > TOKEN_BYTE)
            return fail(err, ERR_FORMAT, "vocab", 0, "Token %u has the type %d; types are 1 to 6.", (unsigned)i,
                        (int)type);
        v->types[i] = (uint8_t)type;
    }
    return OK;
}

static int take_string(struct cursor *c, uint32_t id, struct bytes *out, struct error *err)
{
    uint64_t size;
    if (!take_u64(c, &size) || !take_bytes(c, size, out))
        return fail(err, ERR_FORMAT, "vocab", 0, "The vocabulary ends in the middle of token %u.", (unsigned)id);
    return OK;
}

static int check_string(const struct vocab *v, uint32_t id, struct bytes string, struct error *err)
{
    if (string.size > TOKEN_MAX_BYTES)
        return fail(err, ERR_FORMAT, "vocab", 0, "Token %u has %zu bytes; at most %d are allowed.", (unsigned)id,
                    string.size, TOKEN_MAX_BYTES);
    if (string.size == 0 && v->types[id] != TOKEN_UNUSED)
        return fail(err, ERR_FORMAT, "vocab", 0, "Token %u is empty but not marked as unused.", (unsigned)id);
    return OK;
}

/* First pass: checks every string and fills starts. */
static int measure(struct vocab *v, struct bytes tokens, struct error *err)
{
    struct cursor c = {.data = tokens.data, .size = tokens.size};
    uint64_t total = 0;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        struct bytes string;
        bool encodes;
        int status = take_string(&c, id, &string, err);
        if (!status) status = check_string(v, id, string, err);
        if (status) return status;
        total += token_value(string, v->types[id], NULL, &encodes);
        if (total > UINT32_MAX) return fail(err, ERR_FORMAT, "vocab", 0, "The token strings exceed 4 GiB.");
        v->starts[id + 1] = (uint32_t)total;
    }
    if (c.pos == c.size) return OK;
    return fail(err, ERR_FORMAT, "vocab", 0, "The vocabulary has bytes left after its last token.");
}

static bool same_bytes(const void *items, uint32_t index, const void *key)
{
    struct bytes token = vocab_bytes(items, index);
    const struct bytes *wanted = key;
    return token.size == wanted->size && memcmp(token.data, wanted->data, token.size) == 0;
}

static bool index_token(struct vocab *v, uint32_t id)
{
    struct bytes bytes = vocab_bytes(v, id);
    uint64_t hash = hash_bytes(bytes);
    if (table_find(&v->by_bytes, hash, same_bytes, v, &bytes) != TABLE_NONE) return true;
    return table_put(&v->by_bytes, hash, id);
}

/* Second pass over strings that measure() has accepted. */
static int fill(struct vocab *v, struct bytes tokens, struct error *err)
{
    struct cursor c = {.data = tokens.data, .size = tokens.size};
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        struct bytes string;
        bool encodes;
        int status = take_string(&c, id, &string, err);
        if (status) return status;
        token_value(string, v->types[id], v->text + v->starts[id], &encodes);
        if (encodes && !index_token(v, id))
            return fail(err, ERR_FORMAT, "vocab", 0,
                        "The token strings collide far beyond chance; the file is not trustworthy.");
    }
    return OK;
}

int vocab_load(struct mem *m, struct vocab *v, struct bytes tokens, uint64_t n_tokens, struct bytes types,
               struct error *err)
{
    *v = (struct vocab){0};
    if (n_tokens == 0) return fail(err, ERR_FORMAT, "vocab", 0, "The vocabulary has no tokens.");
    if (n_tokens > TABLE_MAX_ITEMS || n_tokens > tokens.size / 8)
        return fail(err, ERR_FORMAT, "vocab", 0, "The vocabulary claims %llu tokens in %zu bytes.",
                    (unsigned long long)n_tokens, tokens.size);
    v->n_tokens = (uint32_t)n_tokens;
    v->types = mem_alloc(m, n_tokens);
    v->starts = mem_array(m, n_tokens + 1, sizeof *v->starts);
    if (!v->types || !v->starts) return fail(err, ERR_MEM_LOAD, "vocab", 0, "Out of memory for the vocabulary.");
    int status = load_types(v, types, err);
    if (!status) status = measure(v, tokens, err);
    if (status) return status;
    v->text = mem_alloc(m, v->starts[n_tokens]);
    if (!v->text || !table_new(m, &v->by_bytes, n_tokens))
        return fail(err, ERR_MEM_LOAD, "vocab", 0, "Out of memory for the vocabulary.");
    return fill(v, tokens, err);
}

bool vocab_index_literals(struct vocab *v)
{
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        struct bytes bytes = vocab_bytes(v, id);
        size_t i = 0;
        /* these characters are the same in the byte alphabet */
        while (i < bytes.size && bytes.data[i] > ' ' && bytes.data[i] <= '~') i++;
        if (is_literal(v->types[id]) && i == bytes.size && !index_token(v, id)) return false;
    }
    return true;
}

void vocab_drop_index(struct mem *m, struct vocab *v)
{
    mem_free(m, v->by_bytes.slots);
    v->by_bytes = (struct table){0};
}

void vocab_free(struct mem *m, struct vocab *v)
{
    vocab_drop_index(m, v);
    mem_free(m, v->text);
    mem_free(m, v->starts);
    mem_free(m, v->types);
}

struct bytes vocab_bytes(const struct vocab *v, uint32_t id)
{
    return (struct bytes){v->text + v->starts[id], v->starts[id + 1] - v->starts[id]};
}

uint32_t vocab_find(const struct vocab *v, struct bytes bytes)
{
    return table_find(&v->by_bytes, hash_bytes(bytes), same_bytes, v, &bytes);
}
