/* SPDX-License-Identifier: MIT
 *
 * The .tokenizer file of a qwen3.c checkpoint: three numbers, then a score and bytes for each token.
 *
 * The file has no magic number (sniff.c), and no token types: see type_of() and scores.h.
 */
#include "base/reader.h"
#include "load/format.h"

#include <math.h>
#include <string.h>

enum { HEADER = 12, TOKENS_MOST = 1 << 24 };
enum { NORMAL = 1, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5 }; /* values of tokenizer.ggml.token_type */

static int header(struct checkpoint *ck, const uint8_t *bytes, size_t n, size_t *used, struct error *err)
{
    int status = ck_keep(ck, bytes, n, err);
    *used = n;
    return status ? status : NEED_MORE;
}

struct vocabulary {
    uint8_t *texts;   /* packed strings as in GGUF */
    size_t size;
    float *scores;
    int32_t *types;
    uint32_t n;
};

/* --- tokens ----------------------------------------------------------------------------------------------- */

/* Reads the token at c. Returns an error at the end of the file. */
static int take_token(struct cursor *c, uint32_t id, float *score, struct bytes *text, struct error *err)
{
    uint32_t bits, length;
    size_t at = c->pos;
    if (!take_u32(c, &bits) || !take_u32(c, &length))
        return fail(err, ERR_FORMAT, "truncated", c->size, "The tokenizer file ends in the middle of token %u.",
                    (unsigned)id);
    *score = f32_from_bits(bits);
    if (!isfinite(*score))
        return fail(err, ERR_FORMAT, "score", at, "The score of token %u in the tokenizer file is not a number.",
                    (unsigned)id);
    if (length > TOKEN_MOST)
        return fail(err, ERR_FORMAT, "token-length", at + 4, "Token %u of the tokenizer file claims %u bytes.",
                    (unsigned)id, (unsigned)length);
    if (!take_bytes(c, length, text))
        return fail(err, ERR_FORMAT, "truncated", c->size, "The tokenizer file ends in the middle of token %u.",
                    (unsigned)id);
    return OK;
}

/* Counts the tokens, and the bytes that their packed strings need at most. */
static int measure(struct cursor c, struct vocabulary *v, struct error *err)
{
    float score;
    struct bytes text;
    int status = OK;
    for (; !status && c.pos < c.size; v->n++) {
        status = take_token(&c, v->n, &score, &text, err);
        v->size += 8 + 2 * text.size; /* a byte becomes a character of at most two bytes */
    }
    if (!status && (v->n == 0 || v->n > TOKENS_MOST))
        return fail(err, ERR_FORMAT, "vocab", c.size, "The tokenizer file has %u tokens.", (unsigned)v->n);
    return status;
}

/* The character of a byte in GPT-2's alphabet: printable Latin-1 as it is, the others from U+0100 on. */
static uint32_t letter(uint8_t byte)
{
    if (byte <= 32) return 256u + byte;
    if (byte >= 127 && byte <= 160) return 256u + 33 + byte - 127;
    return byte == 173 ? 256u + 67 : byte;
}

static size_t spell(struct bytes text, uint8_t *out)
{
    size_t n = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint32_t c = letter(text.data[i]);
        if (c < 128) out[n++] = (uint8_t)c;
        else {
            out[n++] = (uint8_t)(0xC0 | c >> 6);
            out[n++] = (uint8_t)(0x80 | (c & 63));
        }
    }
    return n;
}

/* Exporters give tokens that no merge makes (bytes and special tokens) a score far below that of any merge. Special
 * tokens usually look like tags. Other special tokens are found when the vocabulary is built, because no pair makes
 * them. */
static int32_t type_of(struct bytes text, float score)
{
    if (text.size == 0) return UNUSED;
    if (text.size < 3 || score > -9e5f || text.data[0] != '<' || text.data[text.size - 1] != '>') return NORMAL;
    return text.data[1] == '|' ? CONTROL : USER_DEFINED;
}

static int fill(struct cursor c, struct vocabulary *v, struct error *err)
{
    size_t at = 0;
    for (uint32_t id = 0; id < v->n; id++) {
        struct bytes text;
        int status = take_token(&c, id, &v->scores[id], &text, err);
        if (status) return status;
        v->types[id] = type_of(text, v->scores[id]);
        bool literal = v->types[id] == CONTROL || v->types[id] == USER_DEFINED;
        uint64_t size = text.size;
        if (literal) memcpy(v->texts + at + 8, text.data, text.size);
        else size = spell(text, v->texts + at + 8);
        memcpy(v->texts + at, &size, sizeof size);
        at += 8 + (size_t)size;
    }
    v->size = at;
    return OK;
}

/* --- metadata ----------------------------------------------------------------------------------------------- */

static struct bytes text_of(const char *text) { return (struct bytes){(const uint8_t *)text, strlen(text)}; }

static int check_end(const uint8_t *header, size_t at, uint32_t n, struct error *err)
{
    uint32_t id = load_u32(header + at);
    if (id < n) return OK;
    return fail(err, ERR_INCONSISTENT, "value", at, "The tokenizer file names the token %u, but has only %u.",
                (unsigned)id, (unsigned)n);
}

static int write(struct checkpoint *model, const uint8_t *header, const struct vocabulary *v, struct error *err)
{
    int status = check_end(header, 4, v->n, err);
    if (!status) status = check_end(header, 8, v->n, err);
    if (!status) status = ck_put_text(model, "tokenizer.ggml.model", text_of("scores"), err);
    if (!status)
        status =
            ck_put_array(model, "tokenizer.ggml.tokens", META_STRING, (struct bytes){v->texts, v->size}, v->n, err);
    if (!status)
        status = ck_put_array(model, "tokenizer.ggml.token_type", META_I32,
                              (struct bytes){(const uint8_t *)v->types, 4 * (size_t)v->n}, v->n, err);
    if (!status)
        status = ck_put_array(model, "tokenizer.ggml.scores", META_F32,
                              (struct bytes){(const uint8_t *)v->scores, 4 * (size_t)v->n}, v->n, err);
    if (!status) status = ck_put_int(model, "tokenizer.ggml.bos_token_id", load_u32(header + 4), err);
    return status ? status : ck_put_int(model, "tokenizer.ggml.eos_token_id", load_u32(header + 8), err);
}

static int read(struct checkpoint *file, struct checkpoint *model, struct error *err)
{
    struct vocabulary v = {0};
    struct cursor c = {file->header, file->header_size, HEADER};
    int status = measure(c, &v, err);
    if (status) return status;
    v.texts = mem_alloc_raw(file->mem, v.size);
    v.scores = mem_array(file->mem, v.n, sizeof *v.scores);
    v.types = mem_array(file->mem, v.n, sizeof *v.types);
    status = v.texts && v.scores && v.types
                 ? fill(c, &v, err)
                 : fail(err, ERR_MEM_LOAD, "header", 0, "Not enough memory for the vocabulary.");
    if (!status) status = write(model, file->header, &v, err);
    mem_free(file->mem, v.texts);
    mem_free(file->mem, v.scores);
    mem_free(file->mem, v.types);
    return status;
}

const struct format format_tokenizer = {.name = "tokenizer", .header = header, .read = read};
