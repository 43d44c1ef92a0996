/* SPDX-License-Identifier: MIT
 *
 * Qwen3: a pre-norm decoder with grouped-query attention, norms on the heads of q and k, and SwiGLU, dense or a mixture of experts; and the
 * language model of Qwen3-VL, which is the same but for positions in three sections.
 *
 * The list of binds is the architecture; `attend` and `feed_forward` below are the recipe. Layers of both kinds may be mixed: which one a
 * layer is, its tensors tell. Facts and shapes: MODEL.md.
 */
#include "base/num.h"
#include "base/reader.h"
#include "load/metadata.h"
#include "models/qwen.h"
#include "models/rope.h"

#include <stdio.h>
#include <string.h>

struct layer {
    float *attn_norm, *ffn_norm;           /* [dim] */
    float *q_norm, *k_norm;                /* [head_dim] */
    struct weight *q, *k, *v;              /* [q_dim, dim], [kv_dim, dim] twice */
    struct weight *o;                      /* [dim, q_dim] */
    bool dense;                            /* one expert of share 1, and no router */
    struct weight *router;                 /* [n_experts, dim] */
    struct weight *gate, *up, *down;       /* of each expert [ffn_dim, dim] twice, [dim, ffn_dim] */
    struct singles singles[3];             /* of these, where files have the experts one by one */
    int ffn_dim;                           /* of an expert */
};

/* Values of the step at hand; n rows. Handles: see backend.h. */
struct scratch {
    float *x, *h;            /* [n, dim] the residual stream; its norm, or a block's result */
    float *q, *o;            /* [n, q_dim] */
    float *k, *v;            /* [n, kv_dim] */
    float *gate, *up;        /* [n, ffn_dim] or [n * n_used, expert_dim] */
    float *scores;           /* [n, n_experts] */
    float *places;           /* [n * n_used, dim] what the experts get, then what they give */
    struct route route;
    float *cosine, *sine;    /* [n, rope_dim / 2] the only ones that are written here; nothing is read */
    float *last;             /* [n_out, dim] rows of which something is wanted */
    float *logits;           /* [n_logits, vocab_size] */
};

/* Where the output head is: GGUF files do not say. */
enum head { HEAD_FOUND, HEAD_OWN, HEAD_TIED };

struct qwen3 {
    struct model base;
    enum head head;
    bool dense_known;                  /* which layers are dense, by the metadata: GGUF files do not say */
    struct weight *embedding, *output; /* [vocab_size, dim]; output NULL when tied */
    float *output_norm;                /* [dim] */
    struct layer *layers;              /* [n_layers] */
    struct rope rope;
    double *frequency;                 /* [rope_dim / 2] radians per position */
    struct scratch s;
    void *arena;
};

enum { VOCAB_MAX = 1 << 24 }; /* rows; Qwen3 has 151,936 */

/* --- configuration ------------------------------------------------------------------------------------- */

/* Where a model's own keys are: "qwen3." and so on. */
struct keys {
    const struct checkpoint *ck;
    const char *prefix;
    int n_layers;             /* 0: not known yet */
};

/* An integer key of lo .. hi, for all layers or for each of them; a missing one is an error unless a default is given. */
static int config_int(const struct keys *k, const char *name, int64_t lo, int64_t hi, const int64_t *missing, int *out, struct error *err)
{
    char key[KEY_SIZE];
    const struct meta *m = meta_find(k->ck, model_key(key, k->prefix, name));
    int64_t value;
    int status = m && m->type == META_ARRAY ? meta_layers(k->ck, key, k->n_layers, lo, hi, &value, err)
                                            : meta_int(k->ck, key, lo, hi, missing, &value, err);
    if (!status) *out = (int)value;
    return status;
}

static int config_float(const struct keys *k, const char *name, double lo, double hi, const double *missing, double *out, struct error *err)
{
    char key[KEY_SIZE];
    return meta_float(k->ck, model_key(key, k->prefix, name), lo, hi, missing, out, err);
}

enum { HEAD_MOST = 1024 };

/* What the specification of GGUF has for the size of a head that a file does not say: even parts of the columns. NULL: nothing. */
static const int64_t *even_heads(const struct model_config *c, int64_t *size)
{
    *size = c->dim / c->n_heads;
    return c->dim % c->n_heads || *size > HEAD_MOST ? NULL : size;
}

static int check_heads(const struct model_config *c, int value_length, struct error *err)
{
    if (c->n_heads % c->n_kv_heads)
        return fail(err, ERR_INCONSISTENT, "value", 0, "%d attention heads do not divide by %d key-value heads.", c->n_heads, c->n_kv_heads);
    if (c->head_dim % 2) return fail(err, ERR_INCONSISTENT, "value", 0, "The head size %d is odd.", c->head_dim);
    if (value_length != c->head_dim)
        return fail(err, ERR_INCONSISTENT, "value", 0, "Keys have %d and values %d columns per head; Qwen3 has equal ones.", c->head_dim,
                    value_length);
    if (c->rope_dim % 2 || c->rope_dim > c->head_dim)
        return fail(err, ERR_INCONSISTENT, "value", 0, "RoPE turns %d columns of heads of %d.", c->rope_dim, c->head_dim);
    return OK;
}

/* What other models with experts do and Qwen3 does not. */
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
    return fail(err, ERR_UNSUPPORTED, "experts", 0,
                "The experts are chosen by gating function %d with scale %g, and %d are shared; Qwen3 has softmax, no scale and none shared.", gating,
                scale, shared);
}

/* What is left of all sizes when experts and columns multiply: they are counted in int32. */
static int check_expert_sizes(const struct model_config *c, struct error *err)
{
    int64_t widest = max_int(c->dim, c->expert_dim);
    if (c->expert_dim % 8 || c->dim % 8)
        return fail(err, ERR_INCONSISTENT, "value", 0, "Experts of %d x %d; both must be multiples of 8.", c->expert_dim, c->dim);
    if (c->n_experts * widest <= INT32_MAX) return OK;
    return fail(err, ERR_INCONSISTENT, "value", 0, "%d experts of %lld columns are too many.", c->n_experts, (long long)widest);
}

static int read_experts(const struct keys *k, struct model_config *c, struct error *err)
{
    enum { EXPERTS_MAX = 1024 }; /* Qwen3 has 128 */
    char key[KEY_SIZE];
    int status = config_int(k, "expert_count", 1, EXPERTS_MAX, NULL, &c->n_experts, err);
    if (!status) status = config_int(k, "expert_used_count", 1, c->n_experts, NULL, &c->n_used, err);
    if (!status) status = config_int(k, "expert_feed_forward_length", 1, 1 << 22, NULL, &c->expert_dim, err);
    if (!status) status = meta_bool(k->ck, model_key(key, k->prefix, "expert_weights_norm"), true, &c->renormalise, err);
    if (!status) status = check_gating(k, err);
    if (status) return status;
    return check_expert_sizes(c, err);
}

/* The number of rows of the embedding; where another file has that, as the metadata says, or the number of tokens. */
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
        return fail(err, ERR_INCONSISTENT, "value", t ? t->name.at : 0, "The embedding has %llu rows; at most %d are allowed.",
                    (unsigned long long)rows, VOCAB_MAX);
    c->vocab_size = (int)rows;
    return OK;
}

static bool has_experts(const struct model_ops *ops) { return ops == &model_qwen3moe || ops == &model_qwen3vlmoe; }
static bool sees(const struct model_ops *ops) { return ops == &model_qwen3vl || ops == &model_qwen3vlmoe; }

/* What a model with vision says beside the rest; its positions have sections, and its experts' shares always sum up to 1. */
static int read_sight(const struct keys *k, struct model_config *c, struct error *err)
{
    const int64_t unsaid = -1;
    char key[KEY_SIZE];
    int status = config_int(k, "n_deepstack_layers", 0, INT32_MAX, &unsaid, &c->n_added, err);
    c->sees = c->renormalise = true;
    if (!status && !meta_find(k->ck, model_key(key, k->prefix, "rope.dimension_sections")))
        return fail(err, ERR_FORMAT, "missing", 0, "The metadata key %s is missing.", key);
    if (status || c->n_added <= c->n_layers) return status;
    return fail(err, ERR_INCONSISTENT, "deepstack", 0, "Images are added after %d layers, but the model has %d.", c->n_added, c->n_layers);
}

static int read_config(const struct checkpoint *ck, struct qwen3 *m, struct error *err)
{
    struct model_config *c = &m->base.config;
    struct keys keys = {ck, m->base.prefix, 0}, *k = &keys;
    const bool moe = has_experts(m->base.ops);
    const double theta = 1e6;
    const int64_t n_tensors = (int64_t)ck_tensors_in_all(ck), unset = 0;
    char key[KEY_SIZE];
    int value_length = 0;
    int64_t even;
    double eps;
    int status = config_int(k, "block_count", 1, n_tensors, NULL, &c->n_layers, err);
    k->n_layers = c->n_layers;
    if (!status) status = config_int(k, "embedding_length", 1, 1 << 20, NULL, &c->dim, err);
    if (!status) status = config_int(k, "feed_forward_length", moe ? 0 : 1, 1 << 22, moe ? &unset : NULL, &c->ffn_dim, err);
    if (!status) status = config_int(k, "attention.head_count", 1, 4096, NULL, &c->n_heads, err);
    if (!status) status = config_int(k, "attention.head_count_kv", 1, c->n_heads, &(const int64_t){c->n_heads}, &c->n_kv_heads, err);
    if (!status) status = config_int(k, "attention.key_length", 1, HEAD_MOST, even_heads(c, &even), &c->head_dim, err);
    if (!status) status = config_int(k, "attention.value_length", 1, INT32_MAX, &(const int64_t){c->head_dim}, &value_length, err);
    if (!status) status = config_int(k, "rope.dimension_count", 0, INT32_MAX, &unset, &c->rope_dim, err);
    if (!status) status = meta_int(ck, model_key(key, k->prefix, "context_length"), 1, INT64_MAX, NULL, &c->context_length, err);
    if (!status) status = config_float(k, "rope.freq_base", 1.0, 1e12, &theta, &c->rope_theta, err);
    if (!status) status = config_float(k, "attention.layer_norm_rms_epsilon", 1e-30, 1.0, NULL, &eps, err);
    if (!status && moe) status = read_experts(k, c, err);
    if (!status && sees(m->base.ops)) status = read_sight(k, c, err);
    if (status) return status;
    c->eps = (float)eps;
    if (c->rope_dim == 0) c->rope_dim = c->head_dim;
    status = check_heads(c, value_length, err);
    if (!status) status = rope_read(ck, k->prefix, c, &m->rope, err);
    c->rope_factor = m->rope.factor;
    return status ? status : read_vocab_size(k, c, err);
}

/* --- weights ------------------------------------------------------------------------------------------- */

/* A layer of a model with experts that has a plain matrix is dense. */
static bool dense_here(const struct qwen3 *m, const struct checkpoint *ck, int l)
{
    static const char *const roles[] = {"gate", "up", "down"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        char name[40];
        snprintf(name, sizeof name, "blk.%d.ffn_%s.weight", l, roles[i]);
        if (ck_find(ck, name)) return true;
    }
    return m->base.config.n_experts == 0;
}

static int bind_dense(struct qwen3 *m, struct checkpoint *ck, int l, struct error *err)
{
    struct binder *b = &m->base.bind;
    struct layer *w = &m->layers[l];
    int dim = m->base.config.dim;
    int status = bind_matrix(b, ck, "blk.%d.ffn_gate.weight", l, dim, w->ffn_dim, &w->gate, err);
    if (!status) status = bind_matrix(b, ck, "blk.%d.ffn_up.weight", l, dim, w->ffn_dim, &w->up, err);
    if (!status) status = bind_matrix(b, ck, "blk.%d.ffn_down.weight", l, w->ffn_dim, dim, &w->down, err);
    return status;
}

static int bind_experts(struct qwen3 *m, struct checkpoint *ck, int l, struct error *err)
{
    struct binder *b = &m->base.bind;
    struct layer *w = &m->layers[l];
    int dim = m->base.config.dim, n = m->base.config.n_experts;
    int status = bind_matrix_as_stored(b, ck, "blk.%d.ffn_gate_inp.weight", l, dim, n, &w->router, err);
    if (!status) status = bind_stack(b, ck, "blk.%d.ffn_gate", l, dim, w->ffn_dim, n, &w->gate, &w->singles[0], err);
    if (!status) status = bind_stack(b, ck, "blk.%d.ffn_up", l, dim, w->ffn_dim, n, &w->up, &w->singles[1], err);
    if (!status) status = bind_stack(b, ck, "blk.%d.ffn_down", l, w->ffn_dim, dim, n, &w->down, &w->singles[2], err);
    return status;
}

static int bind_feed_forward(struct qwen3 *m, struct checkpoint *ck, int l, struct error *err)
{
    const struct model_config *c = &m->base.config;
    struct layer *w = &m->layers[l];
    bool dense = w->dense || (!m->dense_known && dense_here(m, ck, l)), experts_before = !w->dense && (w->router || w->gate || w->up || w->down);
    if (dense && experts_before)
        return fail(err, ERR_INCONSISTENT, "split", 0,
                    "Layer %d has experts in one file of the split model and is dense in another; they do not belong together.", l);
    w->dense = dense;
    w->ffn_dim = dense ? c->ffn_dim : c->expert_dim;
    if (dense && w->ffn_dim == 0)
        return fail(err, ERR_FORMAT, "missing", 0, "The metadata key %s.feed_forward_length is missing, which layer %d needs.", m->base.prefix,
                    l);
    return dense ? bind_dense(m, ck, l, err) : bind_experts(m, ck, l, err);
}

/* Qwen2's attention has them; without them its numbers would be wrong without a sign. */
static int check_biases(const struct checkpoint *ck, int l, struct error *err)
{
    static const char *const roles[] = {"q", "k", "v", "output"};
    char name[40];
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        snprintf(name, sizeof name, "blk.%d.attn_%s.bias", l, roles[i]);
        const struct tensor *t = ck_find(ck, name);
        if (t) return fail(err, ERR_UNSUPPORTED, "architecture", t->name.at, "Attention with biases (%s) is not supported; Qwen3 has none.", name);
    }
    return OK;
}

static int bind_layer(struct qwen3 *m, struct checkpoint *ck, int l, struct error *err)
{
    const struct model_config *c = &m->base.config;
    struct binder *b = &m->base.bind;
    struct layer *w = &m->layers[l];
    int q_dim = c->n_heads * c->head_dim, kv_dim = c->n_kv_heads * c->head_dim;
    int status = check_biases(ck, l, err);
    if (!status) status = bind_vector(b, ck, "blk.%d.attn_norm.weight", l, c->dim, &w->attn_norm, err);
    if (!status) status = bind_matrix(b, ck, "blk.%d.attn_q.weight", l, c->dim, q_dim, &w->q, err);
    if (!status) status = bind_matrix(b, ck, "blk.%d.attn_k.weight", l, c->dim, kv_dim, &w->k, err);
    if (!status) status = bind_matrix(b, ck, "blk.%d.attn_v.weight", l, c->dim, kv_dim, &w->v, err);
    if (!status) status = bind_vector(b, ck, "blk.%d.attn_q_norm.weight", l, c->head_dim, &w->q_norm, err);
    if (!status) status = bind_vector(b, ck, "blk.%d.attn_k_norm.weight", l, c->head_dim, &w->k_norm, err);
    if (!status) status = bind_matrix(b, ck, "blk.%d.attn_output.weight", l, q_dim, c->dim, &w->o, err);
    if (!status) status = bind_vector(b, ck, "blk.%d.ffn_norm.weight", l, c->dim, &w->ffn_norm, err);
    if (!status) status = bind_feed_forward(m, ck, l, err);
    return status;
}

/* Embedding and output head, which is the embedding where the metadata says so, or else no file has another. */
static int bind_ends(struct qwen3 *m, struct checkpoint *ck, struct error *err)
{
    struct model_config *c = &m->base.config;
    bool own = m->head == HEAD_OWN && !ck->trunk;
    bool here = m->head != HEAD_TIED && (own || ck_find(ck, "output.weight") != NULL);
    int status = bind_matrix(&m->base.bind, ck, "token_embd.weight", 0, c->dim, c->vocab_size, &m->embedding, err);
    if (!status) status = bind_vector(&m->base.bind, ck, "output_norm.weight", 0, c->dim, &m->output_norm, err);
    if (!status && here) status = bind_matrix(&m->base.bind, ck, "output.weight", 0, c->dim, c->vocab_size, &m->output, err);
    c->tied = c->tied && !here;
    c->headless = c->tied && m->head == HEAD_OWN;
    return status;
}

static int qwen3_bind(struct model *base, struct checkpoint *ck, struct error *err)
{
    struct qwen3 *m = (struct qwen3 *)base;
    int status = bind_ends(m, ck, err);
    for (int l = 0; !status && l < base->config.n_layers; l++) status = bind_layer(m, ck, l, err);
    return status;
}

static int read_head(struct qwen3 *m, const struct checkpoint *ck, struct error *err)
{
    bool tied;
    char key[KEY_SIZE];
    int status = meta_bool(ck, model_key(key, m->base.prefix, "tie_word_embeddings"), false, &tied, err);
    if (!status && meta_find(ck, key)) m->head = tied ? HEAD_TIED : HEAD_OWN;
    m->base.config.tied = true;
    return status;
}

/* Layers without experts, as config.json counts them: each that is named, and all but every so many. */
static int read_dense(struct qwen3 *m, const struct checkpoint *ck, struct error *err)
{
    const struct keys keys = {ck, m->base.prefix, m->base.config.n_layers};
    const int64_t none = 0;
    char key[KEY_SIZE];
    struct bytes list;
    uint64_t n;
    int step, status = config_int(&keys, "decoder_sparse_step", 1, INT32_MAX, &none, &step, err);
    if (!status) status = meta_array(ck, model_key(key, keys.prefix, "mlp_only_layers"), META_I32, false, &list, &n, err);
    if (status || !step || !m->base.config.n_experts) return status;
    m->dense_known = true;
    for (int l = 0; l < m->base.config.n_layers; l++) m->layers[l].dense = (l + 1) % step != 0;
    for (uint64_t i = 0; i < n; i++)
        if (load_u32(list.data + 4 * i) < (uint32_t)m->base.config.n_layers) m->layers[load_u32(list.data + 4 * i)].dense = true;
    return OK;
}

static int take_layers(struct qwen3 *m, struct error *err)
{
    struct model_config *c = &m->base.config;
    m->layers = mem_array(m->base.bind.mem, (uint64_t)c->n_layers, sizeof *m->layers);
    m->frequency = mem_array(m->base.bind.mem, (uint64_t)c->rope_dim / 2, sizeof *m->frequency);
    if (!m->layers || !m->frequency) return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the model's %d layers.", c->n_layers);
    rope_frequencies(&m->rope, m->frequency);
    return OK;
}

static void qwen3_free(struct model *base)
{
    struct qwen3 *m = (struct qwen3 *)base;
    struct mem *mem = base->bind.mem;
    struct backend *be = base->bind.be;
    for (int l = 0; m->layers && l < base->config.n_layers; l++) {
        struct layer *w = &m->layers[l];
        float *vectors[] = {w->attn_norm, w->ffn_norm, w->q_norm, w->k_norm};
        struct weight *matrices[] = {w->q, w->k, w->v, w->o, w->router, w->gate, w->up, w->down};
        for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) mem_free(mem, vectors[i]);
        for (size_t i = 0; i < sizeof w->singles / sizeof *w->singles; i++) mem_free(mem, w->singles[i].there);
        for (size_t i = 0; be && i < sizeof matrices / sizeof *matrices; i++) be->ops->weight_free(be, matrices[i]);
    }
    if (be) be->ops->weight_free(be, m->output);
    if (be) be->ops->weight_free(be, m->embedding);
    void *parts[] = {m->output_norm, m->layers, m->frequency, m->arena, m};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) mem_free(mem, parts[i]);
}

static void each_vector(model_part *fn, void *context, const float *v, int n)
{
    fn(context, NULL, (struct bytes){(const uint8_t *)v, v ? (size_t)n * sizeof *v : 0});
}

static void qwen3_each(const struct model *base, model_part *fn, void *context)
{
    const struct qwen3 *m = (const struct qwen3 *)base;
    const struct model_config *c = &base->config;
    const struct rope *r = &m->rope;
    const double turns[] = {r->dim, r->sections[0], r->sections[1], r->sections[2], r->theta, r->factor, r->original, r->beta_fast, r->beta_slow,
                            r->magnitude};
    fn(context, NULL, (struct bytes){(const uint8_t *)turns, sizeof turns});
    for (int l = 0; l < c->n_layers; l++) {
        const struct layer *w = &m->layers[l];
        const struct weight *matrices[] = {w->q, w->k, w->v, w->o, w->router, w->gate, w->up, w->down};
        each_vector(fn, context, w->attn_norm, c->dim);
        each_vector(fn, context, w->ffn_norm, c->dim);
        each_vector(fn, context, w->q_norm, c->head_dim);
        each_vector(fn, context, w->k_norm, c->head_dim);
        for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) fn(context, matrices[i], (struct bytes){0});
    }
    fn(context, m->embedding, (struct bytes){0});
    fn(context, m->output, (struct bytes){0});
    each_vector(fn, context, m->output_norm, c->dim);
}

static int qwen3_open(const struct model_ops *ops, struct mem *mem, struct backend *be, const struct checkpoint *ck, const char *prefix,
                      struct model **out, struct error *err)
{
    struct qwen3 *m = mem_alloc(mem, sizeof *m);
    if (!m) return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the model.");
    m->base = (struct model){.ops = ops, .prefix = prefix, .bind = {.mem = mem, .be = be}};
    int status = read_config(ck, m, err);
    if (!status) status = read_head(m, ck, err);
    if (!status) status = take_layers(m, err);
    if (!status) status = read_dense(m, ck, err);
    if (status) qwen3_free(&m->base);
    else *out = &m->base;
    return status;
}

/* --- scratch -------------------------------------------------------------------------------------------- */

static void lay_out(struct arena *a, const struct model_config *c, uint64_t rows, uint64_t out, struct scratch *s)
{
    uint64_t dim = (uint64_t)c->dim, ffn = (uint64_t)c->ffn_dim, head = (uint64_t)c->head_dim, angles = (uint64_t)c->rope_dim / 2, f = sizeof(float);
    uint64_t q_dim = (uint64_t)c->n_heads * head, kv_dim = (uint64_t)c->n_kv_heads * head;
    uint64_t places = rows * (uint64_t)c->n_used, expert = (uint64_t)c->expert_dim,
             inner = places * expert > rows * ffn ? places * expert : rows * ffn;
    s->x = arena_take(a, rows * dim, f);
    s->h = arena_take(a, rows * dim, f);
    s->q = arena_take(a, rows * q_dim, f);
    s->o = arena_take(a, rows * q_dim, f);
    s->k = arena_take(a, rows * kv_dim, f);
    s->v = arena_take(a, rows * kv_dim, f);
    s->gate = arena_take(a, inner, f);
    s->up = arena_take(a, inner, f);
    s->scores = arena_take(a, rows * (uint64_t)c->n_experts, f);
    s->places = arena_take(a, places * dim, f);
    s->route = (struct route){.n_experts = c->n_experts, .n_used = c->n_used};
    s->route.first = arena_take(a, (uint64_t)c->n_experts + 1, sizeof *s->route.first);
    s->route.place = arena_take(a, places, sizeof *s->route.place);
    s->route.share = arena_take(a, places, f);
    s->cosine = arena_take(a, rows * angles, f);
    s->sine = arena_take(a, rows * angles, f);
    s->last = arena_take(a, out * dim, f);
    s->logits = arena_take(a, out * (uint64_t)c->vocab_size, f);
}

static uint64_t scratch_bytes(const struct model *base, int max_rows, int max_out)
{
    struct scratch measured;
    struct arena a = {0};
    lay_out(&a, &base->config, (uint64_t)max_rows, (uint64_t)max_out, &measured);
    return a.used;
}

/* Every layer has keys and values, and nothing beside them. */
static struct cache_shape qwen3_cache(const struct model *base, int n_pages, enum kv_type type)
{
    const struct model_config *c = &base->config;
    return (struct cache_shape){.kv = {.n_layers = c->n_layers, .n_heads = c->n_heads, .n_kv_heads = c->n_kv_heads, .head_dim = c->head_dim,
                                       .n_pages = n_pages, .type = type}};
}

static uint64_t qwen3_reserve_cost(const struct model *base, int max_rows, int max_out) { return mem_cost(scratch_bytes(base, max_rows, max_out)); }

static int qwen3_reserve(struct model *base, int max_rows, int max_out)
{
    struct qwen3 *m = (struct qwen3 *)base;
    m->arena = mem_alloc(base->bind.mem, scratch_bytes(base, max_rows, max_out));
    if (!m->arena) return ERR_MEM_LOAD;
    struct arena a = {.base = m->arena};
    lay_out(&a, &base->config, (uint64_t)max_rows, (uint64_t)max_out, &m->s);
    if (base->bind.be->ops->adopt) base->bind.be->ops->adopt(base->bind.be, m->arena, a.used);
    return OK;
}

/* --- forward ---------------------------------------------------------------------------------------------- */

/* Cosine and sine of every angle of the step, in double, rounded once. */
static void set_angles(struct qwen3 *m, const struct batch *b)
{
    size_t half = (size_t)m->rope.dim / 2;
    for (size_t t = 0; t < (size_t)b->n; t++)
        for (size_t i = 0; i < half; i++) {
            double sine, cosine;
            num_sincos64(b->pos[t][rope_axis(&m->rope, (int)i)] * m->frequency[i], &sine, &cosine);
            m->s.cosine[t * half + i] = (float)(cosine * m->rope.magnitude);
            m->s.sine[t * half + i] = (float)(sine * m->rope.magnitude);
        }
}

static void qwen3_begin(struct model *base, const struct batch *b)
{
    struct qwen3 *m = (struct qwen3 *)base;
    const struct backend_ops *op = base->bind.be->ops;
    op->embed(base->bind.be, m->s.x, m->embedding, b->tokens, b->n);
    if (b->features) op->features(base->bind.be, m->s.x, b->features, 0, b->n, base->config.dim, false);
    set_angles(m, b);
}

/* x += o(attention(rope(norm(q)), rope(norm(k)), v)) */
static void attend(struct qwen3 *m, const struct batch *b, int l)
{
    const struct model_config *c = &m->base.config;
    const struct layer *w = &m->layers[l];
    struct scratch *s = &m->s;
    struct backend *be = m->base.bind.be;
    const struct backend_ops *op = be->ops;
    int n = b->n;
    op->rmsnorm(be, s->h, s->x, w->attn_norm, n, c->dim, c->eps);
    op->matmul(be, (struct product[]){product(s->q, w->q), product(s->k, w->k), product(s->v, w->v)}, 3, s->h, n, NULL);
    op->rmsnorm(be, s->q, s->q, w->q_norm, n * c->n_heads, c->head_dim, c->eps);
    op->rmsnorm(be, s->k, s->k, w->k_norm, n * c->n_kv_heads, c->head_dim, c->eps);
    op->rope(be, s->q, s->cosine, s->sine, n, c->n_heads, c->head_dim, c->rope_dim);
    op->rope(be, s->k, s->cosine, s->sine, n, c->n_kv_heads, c->head_dim, c->rope_dim);
    op->kv_append(be, l, s->k, s->v, b->kv, n);
    op->attention(be, l, s->o, s->q, b->kv, n);
    op->matmul(be, (struct product[]){product(s->h, w->o)}, 1, s->o, n, NULL);
    op->add(be, s->x, s->h, n, c->dim);
}

/* x += sum over a row's experts of share * down(silu(gate(h)) * up(h)) */
static void feed_forward(struct qwen3 *m, const struct layer *w, int n)
{
    const struct model_config *c = &m->base.config;
    struct scratch *s = &m->s;
    struct backend *be = m->base.bind.be;
    const struct backend_ops *op = be->ops;
    const struct route *route = w->dense ? NULL : &s->route;
    float *h = route ? s->places : s->h;
    int n_places = route ? n * c->n_used : n;
    op->rmsnorm(be, s->h, s->x, w->ffn_norm, n, c->dim, c->eps);
    if (route) {
        op->matmul(be, (struct product[]){product(s->scores, w->router)}, 1, s->h, n, NULL);
        op->route(be, s->scores, n, c->renormalise, &s->route);
        op->gather(be, h, s->h, route, n, c->dim);
    }
    op->matmul(be, (struct product[]){product(s->gate, w->gate), product(s->up, w->up)}, 2, h, n_places, route);
    op->swiglu(be, s->gate, s->up, n_places, w->ffn_dim);
    op->matmul(be, (struct product[]){product(h, w->down)}, 1, s->gate, n_places, route);
    if (route) op->combine(be, s->h, h, route, n, c->dim);
    op->add(be, s->x, s->h, n, c->dim);
}

static void qwen3_layer(struct model *base, const struct batch *b, int l)
{
    struct qwen3 *m = (struct qwen3 *)base;
    int dim = base->config.dim;
    attend(m, b, l);
    feed_forward(m, &m->layers[l], b->n);
    if (b->features && l < b->n_added) base->bind.be->ops->features(base->bind.be, m->s.x, b->features, (1 + l) * dim, b->n, dim, true);
}

static void qwen3_head(struct model *base, const struct batch *b, int first, int n)
{
    struct qwen3 *m = (struct qwen3 *)base;
    const struct model_config *c = &base->config;
    struct backend *be = base->bind.be;
    const struct product part = {m->s.logits, m->output ? m->output : m->embedding, first, n};
    if (first == 0 && b->n_out) {
        be->ops->pick(be, m->s.last, m->s.x, b->out, b->n_out, c->dim);
        be->ops->rmsnorm(be, m->s.last, m->s.last, m->output_norm, b->n_out, c->dim, c->eps);
    }
    if (b->n_logits) be->ops->matmul(be, &part, 1, m->s.last, b->n_logits, NULL);
}

static struct outputs qwen3_end(const struct model *base)
{
    const struct qwen3 *m = (const struct qwen3 *)base;
    return (struct outputs){m->s.last, m->s.logits};
}

static const struct weight *qwen3_output(const struct model *base)
{
    const struct qwen3 *m = (const struct qwen3 *)base;
    return m->output ? m->output : m->embedding;
}

/* Four architectures by name: files tell them apart, the forward pass does not. */
#define QWEN3_OPS(name, older, texts) \
    { \
        .architecture = name, .claim = older, .open = qwen3_open, .tokenizer = texts, .bind = qwen3_bind, .free = qwen3_free, \
        .each = qwen3_each, .cache = qwen3_cache, \
        .reserve_cost = qwen3_reserve_cost, .reserve = qwen3_reserve, .begin = qwen3_begin, .layer = qwen3_layer, \
        .head = qwen3_head, .end = qwen3_end, .output = qwen3_output, \
    }

const struct model_ops model_qwen3 = QWEN3_OPS("qwen3", qwen_claim, qwen_tokenizer);
const struct model_ops model_qwen3moe = QWEN3_OPS("qwen3moe", NULL, qwen_tokenizer);
const struct model_ops model_qwen3vl = QWEN3_OPS("qwen3vl", NULL, qwen_vl_tokenizer);
const struct model_ops model_qwen3vlmoe = QWEN3_OPS("qwen3vlmoe", NULL, qwen_vl_tokenizer);
