/* SPDX-License-Identifier: MIT
 *
 * Reads the metadata of a Qwen3 model, and refuses by name what other models do and Qwen3 does not.
 */
#include "models/qwen3.h"

#include "load/metadata.h"

enum { VOCAB_MAX = 1 << 24 }; /* rows; Qwen3 has 151,936 */

/* The prefix of a model's own keys: "qwen3." and so on. */
struct keys {
    const struct checkpoint *ck;
    const char *prefix;
    int n_layers;             /* 0: not known yet */
};

/* Reads an integer of lo .. hi, one for all layers or an equal one for each; a missing one is an error unless there is
 * a default. */
static int config_int(const struct keys *k, const char *name, int64_t lo, int64_t hi, const int64_t *missing, int *out,
                      struct error *err)
{
    char key[KEY_SIZE];
    const struct meta *m = meta_find(k->ck, model_key(key, k->prefix, name));
    int64_t value;
    int status = m && m->type == META_ARRAY ? meta_layers(k->ck, key, k->n_layers, lo, hi, &value, err)
                                            : meta_int(k->ck, key, lo, hi, missing, &value, err);
    if (!status) *out = (int)value;
    return status;
}

static int config_float(const struct keys *k, const char *name, double lo, double hi, const double *missing,
                        double *out, struct error *err)
{
    char key[KEY_SIZE];
    return meta_float(k->ck, model_key(key, k->prefix, name), lo, hi, missing, out, err);
}

enum { HEAD_MOST = 1024 };

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
                    "Keys have %d and values %d columns per head; Qwen3 has equal ones.", c->head_dim, value_length);
    if (c->rope_dim % 2 || c->rope_dim > c->head_dim)
        return fail(err, ERR_INCONSISTENT, "value", 0, "RoPE turns %d columns of heads of %d.", c->rope_dim,
                    c->head_dim);
    return OK;
}

/* Refuses the gating of other models with experts. */
static int check_gating(const struct keys *k, struct error *err)
{
    enum { SOFTMAX = 1 };
    const int64_t softmax = SOFTMAX, none = 0;
    const double one = 1;
    int gating, shared;
    double scale;
    int status = config_int(k, "expert_gating_func", 0, INT32_MAX, &softmax, &gating, err);
    if (!status) status = config_int(k, "expert_shared_count", 0, INT32_MAX, &none, &shared, err);
    if (!status) status = config_float(k, "expert_weights_scale", -1e9, 1e9, &one, &scale, err);
    if (status) return status;
    if (gating == SOFTMAX && shared == 0 && (scale == 1 || scale == 0)) return OK;
    return fail(
        err, ERR_UNSUPPORTED, "experts", 0,
        "The experts are chosen by gating function %d with scale %g, and %d are shared; Qwen3 has softmax, no scale and none shared.",
        gating, scale, shared);
}

/* Limits the product of experts and columns, which is counted in int32. */
static int check_expert_sizes(const struct model_config *c, struct error *err)
{
    int64_t widest = max_int(c->dim, c->expert_dim);
    if (c->expert_dim % 8 || c->dim % 8)
        return fail(err, ERR_INCONSISTENT, "value", 0, "Experts of %d x %d; both must be multiples of 8.",
                    c->expert_dim, c->dim);
    if (c->n_experts * widest <= INT32_MAX) return OK;
    return fail(err, ERR_INCONSISTENT, "value", 0, "%d experts of %lld columns are too many.", c->n_experts,
                (long long)widest);
}

static int read_experts(const struct keys *k, struct model_config *c, struct error *err)
{
    enum { EXPERTS_MAX = 1024 }; /* Qwen3 has 128 */
    char key[KEY_SIZE];
    int status = config_int(k, "expert_count", 1, EXPERTS_MAX, NULL, &c->n_experts, err);
    if (!status) status = config_int(k, "expert_used_count", 1, c->n_experts, NULL, &c->n_used, err);
    if (!status) status = config_int(k, "expert_feed_forward_length", 1, 1 << 22, NULL, &c->expert_dim, err);
    if (!status)
        status = meta_bool(k->ck, model_key(key, k->prefix, "expert_weights_norm"), true, &c->renormalise, err);
    if (!status) status = check_gating(k, err);
    if (status) return status;
    return check_expert_sizes(c, err);
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

/* The keys of a model with vision. Its positions have sections, and its experts' shares always sum up to 1. */
static int read_projector(const struct keys *k, struct model_config *c, struct error *err)
{
    const int64_t unsaid = -1;
    char key[KEY_SIZE];
    int status = config_int(k, "n_deepstack_layers", 0, INT32_MAX, &unsaid, &c->n_added, err);
    c->sees = c->renormalise = true;
    if (!status && !meta_find(k->ck, model_key(key, k->prefix, "rope.dimension_sections")))
        return fail(err, ERR_FORMAT, "missing", 0, "The metadata key %s is missing.", key);
    if (status || c->n_added <= c->n_layers) return status;
    return fail(err, ERR_INCONSISTENT, "deepstack", 0, "Images are added after %d layers, but the model has %d.",
                c->n_added, c->n_layers);
}

int qwen3_config(const struct architecture *architecture, const struct checkpoint *ck, const char *prefix,
                 struct model_config *c, struct rope *rope, struct error *err)
{
    const bool moe = architecture->experts;
    struct keys keys = {ck, prefix, 0}, *k = &keys;
    const double theta = 1e6;
    const int64_t n_tensors = (int64_t)ck_tensors_in_all(ck), unset = 0;
    char key[KEY_SIZE];
    int value_length = 0;
    int64_t even;
    double eps;
    int status = config_int(k, "block_count", 1, n_tensors, NULL, &c->n_layers, err);
    k->n_layers = c->n_layers;
    if (!status) status = config_int(k, "embedding_length", 1, 1 << 20, NULL, &c->dim, err);
    if (!status)
        status = config_int(k, "feed_forward_length", moe ? 0 : 1, 1 << 22, moe ? &unset : NULL, &c->ffn_dim, err);
    if (!status) status = config_int(k, "attention.head_count", 1, 4096, NULL, &c->n_heads, err);
    if (!status)
        status =
            config_int(k, "attention.head_count_kv", 1, c->n_heads, &(const int64_t){c->n_heads}, &c->n_kv_heads, err);
    if (!status) status = config_int(k, "attention.key_length", 1, HEAD_MOST, even_heads(c, &even), &c->head_dim, err);
    if (!status)
        status =
            config_int(k, "attention.value_length", 1, INT32_MAX, &(const int64_t){c->head_dim}, &value_length, err);
    if (!status) status = config_int(k, "rope.dimension_count", 0, INT32_MAX, &unset, &c->rope_dim, err);
    if (!status)
        status = meta_int(ck, model_key(key, k->prefix, "context_length"), 1, INT64_MAX, NULL, &c->context_length, err);
    if (!status) status = config_float(k, "rope.freq_base", 1.0, 1e12, &theta, &c->rope_theta, err);
    if (!status) status = config_float(k, "attention.layer_norm_rms_epsilon", 1e-30, 1.0, NULL, &eps, err);
    if (!status && moe) status = read_experts(k, c, err);
    if (!status && architecture->sees) status = read_projector(k, c, err);
    if (status) return status;
    c->eps = (float)eps;
    if (c->rope_dim == 0) c->rope_dim = c->head_dim;
    status = check_heads(c, value_length, err);
    if (!status) status = rope_read(ck, k->prefix, c, rope, err);
    c->rope_factor = rope->factor;
    return status ? status : read_vocab_size(k, c, err);
}
