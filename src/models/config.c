/* SPDX-License-Identifier: MIT
 *
 * Reads the keys that all decoders have, and checks what they say together.
 */
#include "models/config.h"

#include "load/metadata.h"

enum { VOCAB_MAX = 1 << 24 }; /* rows; Qwen3.5 has 248,320 */

/* Reads an equal number for each layer; it may be 0 for layers without keys and values, if `spared`. */
static int config_layers(const struct keys *k, const char *key, bool spared, int64_t *out, struct error *err)
{
    int64_t value;
    bool found = false;
    for (int i = 0; i < k->n_blocks; i++) {
        int status = meta_element(k->ck, key, (uint64_t)i, (uint64_t)k->n_blocks, &value, err);
        if (status) return status;
        if (spared && k->no_kv && k->no_kv[i] && value == 0) continue;
        if (found && value != *out)
            return fail(err, ERR_UNSUPPORTED, "value", meta_find(k->ck, key)->key.at,
                        "The metadata key %s differs from layer to layer; this version does not run that.", key);
        *out = value;
        found = true;
    }
    return found ? OK : fail(err, ERR_INCONSISTENT, "value", 0, "The metadata key %s has no number.", key);
}

static int read_int(const struct keys *k, const char *name, bool spared, int64_t lo, int64_t hi, const int64_t *missing,
                    int *out, struct error *err)
{
    char key[KEY_SIZE];
    const struct meta *m = meta_find(k->ck, model_key(key, k->prefix, name));
    int64_t value = 0;
    bool array = m && m->type == META_ARRAY;
    int status =
        array ? config_layers(k, key, spared, &value, err) : meta_int(k->ck, key, lo, hi, missing, &value, err);
    if (!status && array && (value < lo || value > hi))
        status = fail(err, ERR_INCONSISTENT, "value", m->value.at,
                      "The metadata key %s is %lld; it must be from %lld to %lld.", key, (long long)value,
                      (long long)lo, (long long)hi);
    if (!status) *out = (int)value;
    return status;
}

int config_int(const struct keys *k, const char *name, int64_t lo, int64_t hi, const int64_t *missing, int *out,
               struct error *err)
{
    return read_int(k, name, false, lo, hi, missing, out, err);
}

int config_float(const struct keys *k, const char *name, double lo, double hi, const double *missing, double *out,
                 struct error *err)
{
    char key[KEY_SIZE];
    return meta_float(k->ck, model_key(key, k->prefix, name), lo, hi, missing, out, err);
}

/* GGUF's default for the size of a head: the columns divided by the heads. NULL: they do not divide evenly. */
static const int64_t *even_heads(const struct model_config *c, int64_t *size)
{
    *size = c->dim / c->n_heads;
    return c->dim % c->n_heads || *size > HEAD_MOST ? NULL : size;
}

static int check_heads(const struct model_config *c, int value_length, struct error *err)
{
    if (c->n_heads % c->n_kv_heads)
        return fail(err, ERR_INCONSISTENT, "value", 0, "%d attention heads do not divide by %d key-value heads.",
                    c->n_heads, c->n_kv_heads);
    if (c->head_dim % 2) return fail(err, ERR_INCONSISTENT, "value", 0, "The head size %d is odd.", c->head_dim);
    if (value_length != c->head_dim)
        return fail(err, ERR_INCONSISTENT, "value", 0,
                    "Keys have %d and values %d columns per head; this version runs equal ones.", c->head_dim,
                    value_length);
    if (c->rope_dim % 2 || c->rope_dim > c->head_dim)
        return fail(err, ERR_INCONSISTENT, "value", 0, "RoPE turns %d columns of heads of %d.", c->rope_dim,
                    c->head_dim);
    return OK;
}

/* The number of rows of the embedding; if another file has it, the metadata's vocab_size, or the number of tokens. */
static int read_vocab_size(const struct keys *k, struct model_config *c, struct error *err)
{
    const struct checkpoint *ck = k->ck;
    char key[KEY_SIZE];
    const struct tensor *t = ck_find(ck, "token_embd.weight");
    const struct meta *tokens = meta_find(ck, "tokenizer.ggml.tokens");
    const int64_t n_tokens = tokens && tokens->count && tokens->count <= VOCAB_MAX ? (int64_t)tokens->count : 1;
    int64_t said;
    int status = meta_int(ck, model_key(key, k->prefix, "vocab_size"), 1, INT64_MAX, &n_tokens, &said, err);
    if (status) return status;
    uint64_t rows = t ? t->rows : (uint64_t)said;
    if (rows > VOCAB_MAX)
        return fail(err, ERR_INCONSISTENT, "value", t ? t->name.at : 0,
                    "The embedding has %llu rows; at most %d are allowed.", (unsigned long long)rows, VOCAB_MAX);
    c->vocab_size = (int)rows;
    return OK;
}

int config_decoder(const struct keys *k, struct model_config *c, struct rope *rope, struct error *err)
{
    const int64_t unset = 0;
    char key[KEY_SIZE];
    int value_length = 0;
    int64_t even;
    double eps;
    int status = config_int(k, "embedding_length", 1, 1 << 20, NULL, &c->dim, err);
    if (!status)
        status =
            config_int(k, "feed_forward_length", k->feed_forward ? 0 : 1, 1 << 22, k->feed_forward, &c->ffn_dim, err);
    if (!status) status = config_int(k, "attention.head_count", 1, 4096, NULL, &c->n_heads, err);
    if (!status)
        status = read_int(k, "attention.head_count_kv", true, 1, c->n_heads, &(const int64_t){c->n_heads},
                          &c->n_kv_heads, err);
    if (!status) status = config_int(k, "attention.key_length", 1, HEAD_MOST, even_heads(c, &even), &c->head_dim, err);
    if (!status)
        status =
            config_int(k, "attention.value_length", 1, INT32_MAX, &(const int64_t){c->head_dim}, &value_length, err);
    if (!status) status = config_int(k, "rope.dimension_count", 0, INT32_MAX, &unset, &c->rope_dim, err);
    if (!status)
        status =
            meta_int(k->ck, model_key(key, k->prefix, "context_length"), 1, INT64_MAX, NULL, &c->context_length, err);
    if (!status) status = config_float(k, "rope.freq_base", 1.0, 1e12, k->theta, &c->rope_theta, err);
    if (!status) status = config_float(k, "attention.layer_norm_rms_epsilon", 1e-30, 1.0, NULL, &eps, err);
    if (status) return status;
    c->eps = (float)eps;
    if (c->rope_dim == 0) c->rope_dim = c->head_dim;
    status = check_heads(c, value_length, err);
    if (!status) status = rope_read(k->ck, k->prefix, c, rope, err);
    c->rope_factor = rope->factor;
    return status ? status : read_vocab_size(k, c, err);
}
