/* SPDX-License-Identifier: MIT
 *
 * Qwen3, dense: a pre-norm decoder with grouped-query attention, norms on the heads of q and k, and SwiGLU.
 *
 * The list of binds is the architecture; `layer` below is the recipe. Facts and shapes: MODEL.md.
 */
#include "../model.h"
#include "../num.h"

#include <stdio.h>
#include <string.h>

struct layer {
    float *attn_norm, *ffn_norm;           /* [dim] */
    float *q_norm, *k_norm;                /* [head_dim] */
    struct weight *q, *k, *v;              /* [q_dim, dim], [kv_dim, dim] twice */
    struct weight *o;                      /* [dim, q_dim] */
    struct weight *gate, *up, *down;       /* [ffn_dim, dim] twice, [dim, ffn_dim] */
};

/* Values of the step at hand; n rows. */
struct scratch {
    float *x, *h;            /* [n, dim] the residual stream; its norm, or a block's result */
    float *q, *o;            /* [n, q_dim] */
    float *k, *v;            /* [n, kv_dim] */
    float *gate, *up;        /* [n, ffn_dim] */
    float *cosine, *sine;    /* [n, head_dim / 2] */
    float *last;             /* [n_out, dim] rows that want logits */
    float *logits;           /* [n_out, vocab_size] */
};

/* Where the output head is: GGUF files do not say. */
enum head { HEAD_FOUND, HEAD_OWN, HEAD_TIED };

struct qwen3 {
    struct model base;
    enum head head;
    struct weight *embedding, *output; /* [vocab_size, dim]; output NULL when tied */
    float *output_norm;                /* [dim] */
    struct layer *layers;              /* [n_layers] */
    double *frequency;                 /* [head_dim / 2] radians per position */
    struct scratch s;
    void *arena;
};

enum { VOCAB_MAX = 1 << 24 }; /* rows; Qwen3 has 151,936 */

/* --- configuration ------------------------------------------------------------------------------------- */

/* An integer key of lo .. hi; a missing one is an error unless a default is given. */
static int config_int(const struct checkpoint *ck, const char *key, int64_t lo, int64_t hi, const int64_t *missing, int *out, struct error *err)
{
    const struct meta *m = meta_find(ck, key);
    if (m && m->type == META_ARRAY) return fail(err, ERR_UNSUPPORTED, "value", m->key.at, "The metadata key %s differs from layer to layer; this version does not run that.", key);
    int64_t value;
    int status = meta_int(ck, key, lo, hi, missing, &value, err);
    if (!status) *out = (int)value;
    return status;
}

static int check_heads(const struct model_config *c, int value_length, int rope_dim, struct error *err)
{
    if (c->n_heads % c->n_kv_heads)
        return fail(err, ERR_INCONSISTENT, "value", 0, "%d attention heads do not divide by %d key-value heads.", c->n_heads, c->n_kv_heads);
    if (c->head_dim % 2) return fail(err, ERR_INCONSISTENT, "value", 0, "The head size %d is odd.", c->head_dim);
    if (value_length != c->head_dim)
        return fail(err, ERR_INCONSISTENT, "value", 0, "Keys have %d and values %d columns per head; Qwen3 has equal ones.", c->head_dim, value_length);
    if (rope_dim && rope_dim != c->head_dim) /* 0: all of them */
        return fail(err, ERR_INCONSISTENT, "value", 0, "RoPE turns %d columns of heads of %d; Qwen3 turns all.", rope_dim, c->head_dim);
    return OK;
}

static int check_rope_scaling(const struct checkpoint *ck, struct error *err)
{
    struct bytes type;
    char text[QUOTED];
    int status = meta_text(ck, "qwen3.rope.scaling.type", false, &type, err);
    if (status || !type.data || bytes_equal(type, "none")) return status;
    return fail(err, ERR_UNSUPPORTED, "rope-scaling", 0, "The RoPE scaling type \"%.64s\" is not supported in this version.", quoted(type, text));
}

/* The number of rows of the embedding; where another file has that, as the metadata says, or the number of tokens. */
static int read_vocab_size(const struct checkpoint *ck, struct model_config *c, struct error *err)
{
    const struct tensor *t = ck_find(ck, "token_embd.weight");
    const struct meta *tokens = meta_find(ck, "tokenizer.ggml.tokens");
    const int64_t n_tokens = tokens && tokens->count && tokens->count <= VOCAB_MAX ? (int64_t)tokens->count : 1;
    int64_t said;
    int status = meta_int(ck, "qwen3.vocab_size", 1, INT64_MAX, &n_tokens, &said, err);
    if (status) return status;
    uint64_t rows = t ? t->rows : (uint64_t)said;
    if (rows > VOCAB_MAX)
        return fail(err, ERR_INCONSISTENT, "value", t ? t->name.at : 0, "The embedding has %llu rows; at most %d are allowed.", (unsigned long long)rows, VOCAB_MAX);
    c->vocab_size = (int)rows;
    return OK;
}

static int read_config(const struct checkpoint *ck, struct model_config *c, struct error *err)
{
    const double theta = 1e6;
    const int64_t unset = 0;
    int value_length = 0, rope_dim = 0, status;
    double eps;
    if ((status = config_int(ck, "qwen3.block_count", 1, (int64_t)ck_tensors_in_all(ck), NULL, &c->n_layers, err)) ||
        (status = config_int(ck, "qwen3.embedding_length", 1, 1 << 20, NULL, &c->dim, err)) ||
        (status = config_int(ck, "qwen3.feed_forward_length", 1, 1 << 22, NULL, &c->ffn_dim, err)) ||
        (status = config_int(ck, "qwen3.attention.head_count", 1, 4096, NULL, &c->n_heads, err)) ||
        (status = config_int(ck, "qwen3.attention.head_count_kv", 1, c->n_heads, NULL, &c->n_kv_heads, err)) ||
        (status = config_int(ck, "qwen3.attention.key_length", 1, 1024, NULL, &c->head_dim, err)) ||
        (status = config_int(ck, "qwen3.attention.value_length", 1, INT32_MAX, &(const int64_t){c->head_dim}, &value_length, err)) ||
        (status = config_int(ck, "qwen3.rope.dimension_count", 0, INT32_MAX, &unset, &rope_dim, err)) ||
        (status = meta_int(ck, "qwen3.context_length", 1, INT64_MAX, NULL, &c->context_length, err)) ||
        (status = meta_float(ck, "qwen3.rope.freq_base", 1.0, 1e12, &theta, &c->rope_theta, err)) ||
        (status = meta_float(ck, "qwen3.attention.layer_norm_rms_epsilon", 1e-30, 1.0, NULL, &eps, err)) ||
        (status = check_rope_scaling(ck, err)))
        return status;
    c->eps = (float)eps;
    status = check_heads(c, value_length, rope_dim, err);
    return status ? status : read_vocab_size(ck, c, err);
}

/* --- weights ------------------------------------------------------------------------------------------- */

static int bind_layer(struct qwen3 *m, struct checkpoint *ck, int l, struct error *err)
{
    const struct model_config *c = &m->base.config;
    struct model *b = &m->base;
    struct layer *w = &m->layers[l];
    int q_dim = c->n_heads * c->head_dim, kv_dim = c->n_kv_heads * c->head_dim, status;
    (void)((status = model_vector(b, ck, "blk.%d.attn_norm.weight", l, c->dim, &w->attn_norm, err)) ||
           (status = model_matrix(b, ck, "blk.%d.attn_q.weight", l, c->dim, q_dim, &w->q, err)) ||
           (status = model_matrix(b, ck, "blk.%d.attn_k.weight", l, c->dim, kv_dim, &w->k, err)) ||
           (status = model_matrix(b, ck, "blk.%d.attn_v.weight", l, c->dim, kv_dim, &w->v, err)) ||
           (status = model_vector(b, ck, "blk.%d.attn_q_norm.weight", l, c->head_dim, &w->q_norm, err)) ||
           (status = model_vector(b, ck, "blk.%d.attn_k_norm.weight", l, c->head_dim, &w->k_norm, err)) ||
           (status = model_matrix(b, ck, "blk.%d.attn_output.weight", l, q_dim, c->dim, &w->o, err)) ||
           (status = model_vector(b, ck, "blk.%d.ffn_norm.weight", l, c->dim, &w->ffn_norm, err)) ||
           (status = model_matrix(b, ck, "blk.%d.ffn_gate.weight", l, c->dim, c->ffn_dim, &w->gate, err)) ||
           (status = model_matrix(b, ck, "blk.%d.ffn_up.weight", l, c->dim, c->ffn_dim, &w->up, err)) ||
           (status = model_matrix(b, ck, "blk.%d.ffn_down.weight", l, c->ffn_dim, c->dim, &w->down, err)));
    return status;
}

/* Embedding and output head, which is the embedding where the metadata says so, or else no file has another. */
static int bind_ends(struct qwen3 *m, struct checkpoint *ck, struct error *err)
{
    struct model_config *c = &m->base.config;
    bool here = m->head != HEAD_TIED && (m->head == HEAD_OWN || ck_find(ck, "output.weight") != NULL);
    int status = model_matrix(&m->base, ck, "token_embd.weight", 0, c->dim, c->vocab_size, &m->embedding, err);
    if (!status) status = model_vector(&m->base, ck, "output_norm.weight", 0, c->dim, &m->output_norm, err);
    if (!status && here) status = model_matrix(&m->base, ck, "output.weight", 0, c->dim, c->vocab_size, &m->output, err);
    c->tied = c->tied && !here;
    return status;
}

static void set_frequencies(struct qwen3 *m)
{
    const struct model_config *c = &m->base.config;
    double log_theta = num_log64(c->rope_theta);
    for (int i = 0; i < c->head_dim / 2; i++) m->frequency[i] = num_exp64(-2.0 * i / c->head_dim * log_theta);
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
    int status = meta_bool(ck, "qwen3.tie_word_embeddings", false, &tied, err);
    if (!status && meta_find(ck, "qwen3.tie_word_embeddings")) m->head = tied ? HEAD_TIED : HEAD_OWN;
    m->base.config.tied = true;
    return status;
}

static int take_layers(struct qwen3 *m, struct error *err)
{
    struct model_config *c = &m->base.config;
    m->layers = mem_array(m->base.mem, (uint64_t)c->n_layers, sizeof *m->layers);
    m->frequency = mem_array(m->base.mem, (uint64_t)c->head_dim / 2, sizeof *m->frequency);
    if (!m->layers || !m->frequency) return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the model's %d layers.", c->n_layers);
    set_frequencies(m);
    return OK;
}

static void qwen3_free(struct model *base)
{
    struct qwen3 *m = (struct qwen3 *)base;
    struct mem *mem = base->mem;
    for (int l = 0; m->layers && l < base->config.n_layers; l++) {
        struct layer *w = &m->layers[l];
        float *vectors[] = {w->attn_norm, w->ffn_norm, w->q_norm, w->k_norm};
        struct weight *matrices[] = {w->q, w->k, w->v, w->o, w->gate, w->up, w->down};
        for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) mem_free(mem, vectors[i]);
        for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) base->be->ops->weight_free(base->be, matrices[i]);
    }
    base->be->ops->weight_free(base->be, m->output);
    base->be->ops->weight_free(base->be, m->embedding);
    void *parts[] = {m->output_norm, m->layers, m->frequency, m->arena, m};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) mem_free(mem, parts[i]);
}

static int qwen3_open(struct mem *mem, struct backend *be, const struct checkpoint *ck, struct model **out, struct error *err)
{
    struct qwen3 *m = mem_alloc(mem, sizeof *m);
    if (!m) return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the model.");
    m->base = (struct model){.ops = &model_qwen3, .mem = mem, .be = be};
    int status = read_config(ck, &m->base.config, err);
    if (!status) status = read_head(m, ck, err);
    if (!status) status = take_layers(m, err);
    if (status) qwen3_free(&m->base);
    else *out = &m->base;
    return status;
}

/* --- scratch -------------------------------------------------------------------------------------------- */

static void lay_out(struct arena *a, const struct model_config *c, uint64_t rows, uint64_t out, struct scratch *s)
{
    uint64_t dim = (uint64_t)c->dim, ffn = (uint64_t)c->ffn_dim, head = (uint64_t)c->head_dim, f = sizeof(float);
    uint64_t q_dim = (uint64_t)c->n_heads * head, kv_dim = (uint64_t)c->n_kv_heads * head;
    s->x = arena_take(a, rows * dim, f);
    s->h = arena_take(a, rows * dim, f);
    s->q = arena_take(a, rows * q_dim, f);
    s->o = arena_take(a, rows * q_dim, f);
    s->k = arena_take(a, rows * kv_dim, f);
    s->v = arena_take(a, rows * kv_dim, f);
    s->gate = arena_take(a, rows * ffn, f);
    s->up = arena_take(a, rows * ffn, f);
    s->cosine = arena_take(a, rows * head / 2, f);
    s->sine = arena_take(a, rows * head / 2, f);
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

static uint64_t qwen3_reserve_cost(const struct model *base, int max_rows, int max_out) { return mem_cost(scratch_bytes(base, max_rows, max_out)); }

static int qwen3_reserve(struct model *base, int max_rows, int max_out)
{
    struct qwen3 *m = (struct qwen3 *)base;
    m->arena = mem_alloc(base->mem, scratch_bytes(base, max_rows, max_out));
    if (!m->arena) return ERR_MEM_LOAD;
    struct arena a = {.base = m->arena};
    lay_out(&a, &base->config, (uint64_t)max_rows, (uint64_t)max_out, &m->s);
    return OK;
}

/* --- forward ---------------------------------------------------------------------------------------------- */

/* Cosine and sine of every angle of the step, in double, rounded once. */
static void set_angles(struct qwen3 *m, const struct batch *b)
{
    size_t half = (size_t)m->base.config.head_dim / 2;
    for (size_t t = 0; t < (size_t)b->n; t++)
        for (size_t i = 0; i < half; i++) {
            double sine, cosine;
            num_sincos64(b->pos[t][0] * m->frequency[i], &sine, &cosine);
            m->s.cosine[t * half + i] = (float)cosine;
            m->s.sine[t * half + i] = (float)sine;
        }
}

static void qwen3_begin(struct model *base, const struct batch *b)
{
    struct qwen3 *m = (struct qwen3 *)base;
    base->be->ops->embed(base->be, m->s.x, m->embedding, b->tokens, b->n);
    set_angles(m, b);
}

static void qwen3_layer(struct model *base, const struct batch *b, int l)
{
    struct qwen3 *m = (struct qwen3 *)base;
    const struct model_config *c = &base->config;
    const struct layer *w = &m->layers[l];
    struct scratch *s = &m->s;
    struct backend *be = base->be;
    const struct backend_ops *op = be->ops;
    int n = b->n;

    /* attention: x += o(attention(rope(norm(q)), rope(norm(k)), v)) */
    op->rmsnorm(be, s->h, s->x, w->attn_norm, n, c->dim, c->eps);
    op->matmul(be, (struct product[]){{s->q, w->q}, {s->k, w->k}, {s->v, w->v}}, 3, s->h, n);
    op->rmsnorm(be, s->q, s->q, w->q_norm, n * c->n_heads, c->head_dim, c->eps);
    op->rmsnorm(be, s->k, s->k, w->k_norm, n * c->n_kv_heads, c->head_dim, c->eps);
    op->rope(be, s->q, s->cosine, s->sine, n, c->n_heads, c->head_dim);
    op->rope(be, s->k, s->cosine, s->sine, n, c->n_kv_heads, c->head_dim);
    op->kv_append(be, l, s->k, s->v, b->kv, n);
    op->attention(be, l, s->o, s->q, b->kv, n);
    op->matmul(be, (struct product[]){{s->h, w->o}}, 1, s->o, n);
    op->add(be, s->x, s->h, n, c->dim);

    /* feed-forward: x += down(silu(gate(h)) * up(h)) */
    op->rmsnorm(be, s->h, s->x, w->ffn_norm, n, c->dim, c->eps);
    op->matmul(be, (struct product[]){{s->gate, w->gate}, {s->up, w->up}}, 2, s->h, n);
    op->swiglu(be, s->gate, s->up, n, c->ffn_dim);
    op->matmul(be, (struct product[]){{s->h, w->down}}, 1, s->gate, n);
    op->add(be, s->x, s->h, n, c->dim);
}

static const float *qwen3_end(struct model *base, const struct batch *b)
{
    struct qwen3 *m = (struct qwen3 *)base;
    const struct model_config *c = &base->config;
    struct backend *be = base->be;
    size_t dim = (size_t)c->dim;
    if (b->n_out == 0) return m->s.logits;
    for (size_t i = 0; i < (size_t)b->n_out; i++) memcpy(m->s.last + i * dim, m->s.x + (size_t)b->out[i] * dim, dim * sizeof(float));
    be->ops->rmsnorm(be, m->s.last, m->s.last, m->output_norm, b->n_out, c->dim, c->eps);
    be->ops->matmul(be, (struct product[]){{m->s.logits, m->output ? m->output : m->embedding}}, 1, m->s.last, b->n_out);
    return m->s.logits;
}

const struct model_ops model_qwen3 = {
    .architecture = "qwen3",
    .open = qwen3_open,
    .bind = qwen3_bind,
    .free = qwen3_free,
    .reserve_cost = qwen3_reserve_cost,
    .reserve = qwen3_reserve,
    .begin = qwen3_begin,
    .layer = qwen3_layer,
    .end = qwen3_end,
};
