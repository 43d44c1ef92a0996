/* SPDX-License-Identifier: MIT
 *
 * Checkpoints of qwen3.c: a header of 256 bytes, norms as floats, and matrices as 8-bit codes with a float scale per
 * group.
 *
 * The file does not state the positions of its tensors: they follow from the numbers of the header. The only check that
 * the format allows is that the file's length agrees with the numbers. They have limits that keep every product within
 * 64 bits.
 */
#include "base/reader.h"
#include "load/format.h"

#include <stdio.h>
#include <string.h>

enum { HEADER = 256, VERSION = 1 }; /* the magic number is in sniff.c */

enum { DIM, FFN, LAYERS, HEADS, KV_HEADS, VOCAB, CONTEXT, HEAD_DIM, SHARED, GROUP, FIELDS };

/* int32 each, from byte 8 on. `key` is the name in GGUF files. */
static const struct {
    const char *name, *key;
    int32_t least, most;
} fields[FIELDS] = {
    {"dim", "qwen3.embedding_length", 1, 1 << 20},
    {"hidden_dim", "qwen3.feed_forward_length", 1, 1 << 22},
    {"n_layers", "qwen3.block_count", 1, 4096},
    {"n_heads", "qwen3.attention.head_count", 1, 4096},
    {"n_kv_heads", "qwen3.attention.head_count_kv", 1, 4096},
    {"vocab_size", "qwen3.vocab_size", 1, 1 << 24},
    {"max_seq_len", "qwen3.context_length", 1, INT32_MAX},
    {"head_dim", "qwen3.attention.key_length", 1, 1024},
    {"shared_classifier", NULL, 0, 1},
    {"group_size", NULL, INT32_MIN, INT32_MAX}, /* check_group() checks it */
};

/* --- the header ------------------------------------------------------------------------------------------- */

struct shape {
    uint64_t field[FIELDS];
    uint64_t at; /* end of the tensors so far */
};

static int check_group(const struct shape *s, struct error *err)
{
    uint64_t group = s->field[GROUP], all_heads = s->field[HEADS] * s->field[HEAD_DIM];
    if ((group == 32 || group == 64 || group == 128) && s->field[DIM] % group == 0 && s->field[FFN] % group == 0 &&
        all_heads % group == 0)
        return OK;
    return fail(err, ERR_FORMAT, "group-size", 0x2C,
                "The group size is %d; it must be 32, 64 or 128 and divide the rows of every matrix.",
                (int)(int32_t)group);
}

static int read_fields(const uint8_t *header, struct shape *s, struct error *err)
{
    uint32_t version = load_u32(header + 4);
    if (version != VERSION)
        return fail(err, ERR_FORMAT, "version", 4,
                    "The qwen3.c checkpoint has the version %d; only version 1 is known.", (int)version);
    for (int i = 0; i < FIELDS; i++) {
        size_t at = 8 + 4 * (size_t)i;
        int32_t value = (int32_t)load_u32(header + at);
        if (value < fields[i].least || value > fields[i].most)
            return fail(err, ERR_FORMAT, "value", at, "The checkpoint's %s is %d; it must be from %d to %d.",
                        fields[i].name, (int)value, (int)fields[i].least, (int)fields[i].most);
        s->field[i] = (uint64_t)(uint32_t)value;
    }
    return check_group(s, err);
}

static struct bytes text_of(const char *text) { return (struct bytes){(const uint8_t *)text, strlen(text)}; }

static int put_metadata(struct checkpoint *ck, const struct shape *s, struct error *err)
{
    int status = ck_put_text(ck, "general.architecture", text_of("qwen3"), err);
    for (int i = 0; !status && i < FIELDS; i++)
        if (fields[i].key) status = ck_put_int(ck, fields[i].key, (int64_t)s->field[i], err);
    if (!status) status = ck_put_bool(ck, "qwen3.tie_word_embeddings", s->field[SHARED] != 0, err);
    if (!status) status = ck_put_float(ck, "qwen3.rope.freq_base", 1e6, err);
    return status ? status : ck_put_float(ck, "qwen3.attention.layer_norm_rms_epsilon", 1e-6, err);
}

/* --- tensors ---------------------------------------------------------------------------------------------- */

static int add(struct checkpoint *ck, struct shape *s, const char *name, const char *type, uint64_t cols, uint64_t rows,
               struct error *err)
{
    struct tensor t = {.name = {ck->header_size, strlen(name)},
                       .type = dtype_by_name(type),
                       .cols = cols,
                       .rows = rows,
                       .stack = 1,
                       .n_dims = rows > 1 ? 2 : 1,
                       .offset = s->at};
    t.bytes = cols / t.type->block * t.type->bytes * rows;
    s->at += t.bytes;
    int status = ck_keep(ck, (const uint8_t *)name, t.name.size, err);
    return status ? status : ck_add_tensor(ck, &t, err);
}

static int add_vector(struct checkpoint *ck, struct shape *s, const char *format, uint64_t layer, uint64_t n,
                      struct error *err)
{
    char name[64];
    snprintf(name, sizeof name, format, (int)layer);
    return add(ck, s, name, "F32", n, 1, err);
}

/* Adds the tensors of a matrix: all codes, then all scales. */
static int add_matrix(struct checkpoint *ck, struct shape *s, const char *format, uint64_t layer, uint64_t cols,
                      uint64_t rows, struct error *err)
{
    char base[48], name[64];
    snprintf(base, sizeof base, format, (int)layer);
    snprintf(name, sizeof name, "%s.weight", base);
    int status = add(ck, s, name, "Q8F", cols, rows, err);
    snprintf(name, sizeof name, "%s.scale", base);
    return status ? status : add(ck, s, name, "F32", cols / s->field[GROUP], rows, err);
}

static int add_norms(struct checkpoint *ck, struct shape *s, struct error *err)
{
    static const struct {
        const char *name;
        int width;
        bool once;
    } norms[] = {{"blk.%d.attn_norm.weight", DIM, false},
                 {"blk.%d.ffn_norm.weight", DIM, false},
                 {"output_norm.weight", DIM, true},
                 {"blk.%d.attn_q_norm.weight", HEAD_DIM, false},
                 {"blk.%d.attn_k_norm.weight", HEAD_DIM, false}};
    int status = OK;
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
        for (uint64_t l = 0; !status && l < (norms[i].once ? 1 : s->field[LAYERS]); l++)
            status = add_vector(ck, s, norms[i].name, l, s->field[norms[i].width], err);
    return status;
}

static int add_matrices(struct checkpoint *ck, struct shape *s, struct error *err)
{
    const uint64_t dim = s->field[DIM], ffn = s->field[FFN], q = s->field[HEADS] * s->field[HEAD_DIM],
                   kv = s->field[KV_HEADS] * s->field[HEAD_DIM];
    const struct {
        const char *name;
        uint64_t cols, rows;
    } kinds[] = {{"blk.%d.attn_q", dim, q},      {"blk.%d.attn_k", dim, kv},    {"blk.%d.attn_v", dim, kv},
                 {"blk.%d.attn_output", q, dim}, {"blk.%d.ffn_gate", dim, ffn}, {"blk.%d.ffn_down", ffn, dim},
                 {"blk.%d.ffn_up", dim, ffn}};
    int status = add_matrix(ck, s, "token_embd", 0, dim, s->field[VOCAB], err);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (uint64_t l = 0; !status && l < s->field[LAYERS]; l++)
            status = add_matrix(ck, s, kinds[i].name, l, kinds[i].cols, kinds[i].rows, err);
    if (!status && !s->field[SHARED]) status = add_matrix(ck, s, "output", 0, dim, s->field[VOCAB], err);
    return status;
}

/* Length of the file by its numbers alone: the sum of all tensors added above. */
static uint64_t file_length(const struct shape *s)
{
    const uint64_t *f = s->field;
    uint64_t dim = f[DIM], q = f[HEADS] * f[HEAD_DIM], kv = f[KV_HEADS] * f[HEAD_DIM],
             vocab = f[VOCAB] * (f[SHARED] ? 1 : 2);
    uint64_t weights = vocab * dim + f[LAYERS] * dim * (2 * q + 2 * kv + 3 * f[FFN]);
    return HEADER + 4 * (2 * f[LAYERS] * dim + dim + 2 * f[LAYERS] * f[HEAD_DIM]) + weights + weights / f[GROUP] * 4;
}

static int check_length(const struct checkpoint *ck, const struct shape *s, struct error *err)
{
    uint64_t length = file_length(s);
    if (!ck->known_size || ck->known_size == length) return OK;
    return fail(err, ERR_FORMAT, "length", ck->known_size < length ? ck->known_size : length,
                "The checkpoint has %llu bytes; by its header it should have %llu.", (unsigned long long)ck->known_size,
                (unsigned long long)length);
}

static int finish(struct checkpoint *ck, struct error *err)
{
    struct shape s = {.at = HEADER};
    int status = read_fields(ck->header, &s, err);
    if (!status) status = check_length(ck, &s, err);
    if (!status) status = put_metadata(ck, &s, err);
    if (!status) status = add_norms(ck, &s, err);
    if (!status) status = add_matrices(ck, &s, err);
    ck->begin = HEADER;
    ck->file_size = s.at;
    return status ? status : ck_complete(ck, err);
}

static int header(struct checkpoint *ck, const uint8_t *bytes, size_t n, size_t *used, struct error *err)
{
    size_t missing = HEADER - ck->header_size;
    *used = missing < n ? missing : n;
    int status = ck_keep(ck, bytes, *used, err);
    if (status || ck->header_size < HEADER) return status ? status : NEED_MORE;
    return finish(ck, err);
}

static int ended(struct checkpoint *ck, struct error *err)
{
    return fail(err, ERR_FORMAT, "length", ck->header_size, "The checkpoint ends at byte %zu, inside its header.",
                ck->header_size);
}

const struct format format_ajc1 = {
    .name = "ajc1", .too_short = "length", .too_long = "length", .header = header, .ended = ended};
