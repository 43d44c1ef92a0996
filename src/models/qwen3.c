/* SPDX-License-Identifier: MIT
 *
 * Qwen3: a pre-norm decoder with grouped-query attention, norms on the heads of q and k, and SwiGLU, dense or a mixture
 * of experts; and the language model of Qwen3-VL, which differs only in its positions, which have three sections.
 *
 * The calls of bind_*() define the architecture; `attend` and `feed_forward` below are the recipe. Dense layers and
 * layers with experts may be mixed: the tensors tell them apart. Facts and shapes: MODEL.md.
 */
#include "base/num.h"
#include "base/reader.h"
#include "load/metadata.h"
#include "models/qwen3.h"

#include <stdio.h>
#include <string.h>

struct layer {
    float *attn_norm, *ffn_norm;           /* [dim] */
    float *q_norm, *k_norm;                /* [head_dim] */
    struct weight *q, *k, *v;              /* [q_dim, dim], [kv_dim, dim] twice */
    struct weight *o;                      /* [dim, q_dim] */
    bool dense;                            /* no router; one expert with share 1 */
    struct weight *router;                 /* [n_experts, dim] */
    struct weight *gate, *up, *down;       /* of each expert [ffn_dim, dim] twice, [dim, ffn_dim] */
    struct singles singles[3];             /* of the experts, if files have them one by one */
    int ffn_dim;                           /* of an expert */
};

/* Values of the current step; n rows. */
struct scratch {
    struct handle x, h;      /* [n, dim] the residual stream; its norm, or a block's result */
    struct handle q, o;      /* [n, q_dim] */
    struct handle k, v;      /* [n, kv_dim] */
    struct handle gate, up;  /* [n, ffn_dim] or [n * n_used, expert_dim] */
    struct handle scores;    /* [n, n_experts] */
    struct handle places;    /* [n * n_used, dim] inputs of the experts, then their outputs */
    struct route route;
    struct handle last;      /* [n_out, dim] rows whose output is wanted */
    struct handle logits;    /* [n_logits, vocab_size] */
};

/* Where the output head is; GGUF files do not say. */
enum head { HEAD_FOUND, HEAD_OWN, HEAD_TIED };

struct qwen3 {
    struct model base;
    enum head head;
    bool dense_known;                  /* the metadata says which layers are dense; GGUF files do not */
    struct weight *embedding, *output; /* [vocab_size, dim]; output NULL when tied */
    float *output_norm;                /* [dim] */
    struct layer *layers;              /* [n_layers] */
    struct rope rope;
    double *frequency;                 /* [rope_dim / 2] radians per position */
    struct scratch s;
    float *cosine, *sine;              /* [max_rows, rope_dim / 2] of the current step */
};

/* --- weights ------------------------------------------------------------------------------------------- */

/* In a model with experts, a layer that has a plain matrix is dense. */
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
    bool dense = w->dense || (!m->dense_known && dense_here(m, ck, l)),
         experts_before = !w->dense && (w->router || w->gate || w->up || w->down);
    if (dense && experts_before)
        return fail(
            err, ERR_INCONSISTENT, "split", 0,
            "Layer %d has experts in one file of the split model and is dense in another; they do not belong together.",
            l);
    w->dense = dense;
    w->ffn_dim = dense ? c->ffn_dim : c->expert_dim;
    if (dense && w->ffn_dim == 0)
        return fail(err, ERR_FORMAT, "missing", 0,
                    "The metadata key %s.feed_forward_length is missing, which layer %d needs.", m->base.prefix, l);
    return dense ? bind_dense(m, ck, l, err) : bind_experts(m, ck, l, err);
}

/* Qwen2's attention has biases; ignoring them would give wrong numbers silently. */
static int check_biases(const struct checkpoint *ck, int l, struct error *err)
{
    static const char *const roles[] = {"q", "k", "v", "output"};
    char name[40];
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        snprintf(name, sizeof name, "blk.%d.attn_%s.bias", l, roles[i]);
        const struct tensor *t = ck_find(ck, name);
        if (t)
            return fail(err, ERR_UNSUPPORTED, "architecture", t->name.at,
                        "Attention with biases (%s) is not supported; Qwen3 has none.", name);
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

/* Binds the embedding and the output head. The embedding is the head if the metadata says so, or if no file has
 * another. */
static int bind_ends(struct qwen3 *m, struct checkpoint *ck, struct error *err)
{
    struct model_config *c = &m->base.config;
    bool own = m->head == HEAD_OWN && !ck->trunk;
    bool here = m->head != HEAD_TIED && (own || ck_find(ck, "output.weight") != NULL);
    int status = bind_matrix(&m->base.bind, ck, "token_embd.weight", 0, c->dim, c->vocab_size, &m->embedding, err);
    if (!status) status = bind_vector(&m->base.bind, ck, "output_norm.weight", 0, c->dim, &m->output_norm, err);
    if (!status && here)
        status = bind_matrix(&m->base.bind, ck, "output.weight", 0, c->dim, c->vocab_size, &m->output, err);
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

/* Which layers have no experts, according to config.json: each one listed, and all except every step-th. */
static int read_dense(struct qwen3 *m, const struct checkpoint *ck, struct error *err)
{
    const int64_t none = 0;
    char key[KEY_SIZE];
    struct bytes list;
    uint64_t n;
    int64_t step;
    int status = meta_int(ck, model_key(key, m->base.prefix, "decoder_sparse_step"), 1, INT32_MAX, &none, &step, err);
    if (!status)
        status = meta_array(ck, model_key(key, m->base.prefix, "mlp_only_layers"), META_I32, false, &list, &n, err);
    if (status || !step || !m->base.config.n_experts) return status;
    m->dense_known = true;
    for (int l = 0; l < m->base.config.n_layers; l++) m->layers[l].dense = (l + 1) % step != 0;
    for (uint64_t i = 0; i < n; i++)
        if (load_u32(list.data + 4 * i) < (uint32_t)m->base.config.n_layers)
            m->layers[load_u32(list.data + 4 * i)].dense = true;
    return OK;
}

static int take_layers(struct qwen3 *m, struct error *err)
{
    struct model_config *c = &m->base.config;
    m->layers = mem_array(m->base.bind.mem, (uint64_t)c->n_layers, sizeof *m->layers);
    m->frequency = mem_array(m->base.bind.mem, (uint64_t)c->rope_dim / 2, sizeof *m->frequency);
    if (!m->layers || !m->frequency)
        return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the model's %d layers.", c->n_layers);
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
    void *parts[] = {m->output_norm, m->layers, m->frequency, m->cosine, m->sine, m};
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
    const double turns[] = {r->dim,    r->sections[0], r->sections[1], r->sections[2], r->theta,
                            r->factor, r->original,    r->beta_fast,   r->beta_slow,   r->magnitude};
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

static int qwen3_open(const struct architecture *architecture, struct mem *mem, struct backend *be,
                      const struct checkpoint *ck, const char *prefix, struct model **out, struct error *err)
{
    struct qwen3 *m = mem_alloc(mem, sizeof *m);
    if (!m) return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the model.");
    m->base = (struct model){
        .ops = &model_qwen3, .architecture = architecture, .prefix = prefix, .bind = {.mem = mem, .be = be}};
    int status = qwen3_config(architecture, ck, prefix, &m->base.config, &m->rope, err);
    if (!status) status = read_head(m, ck, err);
    if (!status) status = take_layers(m, err);
    if (!status) status = read_dense(m, ck, err);
    if (status) qwen3_free(&m->base);
    else *out = &m->base;
    return status;
}

/* --- scratch -------------------------------------------------------------------------------------------- */

/* Lays out the values; returns their bytes. */
static uint64_t lay_out(const struct model_config *c, int max_rows, int max_out, struct scratch *s)
{
    struct arena all = {0}, *a = &all;
    uint64_t rows = (uint64_t)max_rows, out = (uint64_t)max_out, dim = (uint64_t)c->dim, head = (uint64_t)c->head_dim,
             f = sizeof(float);
    uint64_t q_dim = (uint64_t)c->n_heads * head, kv_dim = (uint64_t)c->n_kv_heads * head,
             dense = rows * (uint64_t)c->ffn_dim;
    uint64_t places = rows * (uint64_t)c->n_used, expert = places * (uint64_t)c->expert_dim,
             inner = expert > dense ? expert : dense;
    s->x = take_values(a, rows * dim, f);
    s->h = take_values(a, rows * dim, f);
    s->q = take_values(a, rows * q_dim, f);
    s->o = take_values(a, rows * q_dim, f);
    s->k = take_values(a, rows * kv_dim, f);
    s->v = take_values(a, rows * kv_dim, f);
    s->gate = take_values(a, inner, f);
    s->up = take_values(a, inner, f);
    s->scores = take_values(a, rows * (uint64_t)c->n_experts, f);
    s->places = take_values(a, places * dim, f);
    s->route = (struct route){.n_experts = c->n_experts, .n_used = c->n_used};
    s->route.first = take_values(a, (uint64_t)c->n_experts + 1, sizeof(int32_t));
    s->route.place = take_values(a, places, sizeof(int32_t));
    s->route.share = take_values(a, places, f);
    s->last = take_values(a, out * dim, f);
    s->logits = take_values(a, out * (uint64_t)c->vocab_size, f);
    return a->used;
}

/* Every layer has keys and values, and no other state. */
static struct cache_shape qwen3_cache(const struct model *base, int n_pages, int n_slots, enum kv_type type)
{
    (void)n_slots;
    const struct model_config *c = &base->config;
    return (struct cache_shape){.kv = {.n_layers = c->n_layers,
                                       .n_heads = c->n_heads,
                                       .n_kv_heads = c->n_kv_heads,
                                       .head_dim = c->head_dim,
                                       .n_pages = n_pages,
                                       .type = type}};
}

static uint64_t qwen3_values(const struct model *base, int max_rows, int max_out)
{
    struct scratch measured;
    return lay_out(&base->config, max_rows, max_out, &measured);
}

static uint64_t angles(const struct model *base, int max_rows)
{
    return (uint64_t)max_rows * (uint64_t)base->config.rope_dim / 2;
}

static uint64_t qwen3_reserve_cost(const struct model *base, int max_rows)
{
    return 2 * mem_cost(angles(base, max_rows) * sizeof(float));
}

static int qwen3_reserve(struct model *base, int max_rows, int max_out)
{
    struct qwen3 *m = (struct qwen3 *)base;
    lay_out(&base->config, max_rows, max_out, &m->s);
    m->cosine = mem_array(base->bind.mem, angles(base, max_rows), sizeof *m->cosine);
    m->sine = mem_array(base->bind.mem, angles(base, max_rows), sizeof *m->sine);
    return m->cosine && m->sine ? OK : ERR_MEM_LOAD;
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
            m->cosine[t * half + i] = (float)(cosine * m->rope.magnitude);
            m->sine[t * half + i] = (float)(sine * m->rope.magnitude);
        }
}

static void qwen3_begin(struct model *base, const struct batch *b)
{
    struct qwen3 *m = (struct qwen3 *)base;
    int n = b->n, dim = base->config.dim;
    struct op_list ops = {0};
    add_op(&ops, OP_EMBED, n, dim, .y = m->s.x, .w = m->embedding, .ids = b->tokens);
    if (b->features) add_op(&ops, OP_FEATURES, n, dim, .y = m->s.x, .features = b->features);
    backend_run_list(base->bind.be, &ops);
    set_angles(m, b);
}

/* x += o(attention(rope(norm(q)), rope(norm(k)), v)) */
static void attend(const struct qwen3 *m, const struct batch *b, int l, struct op_list *ops)
{
    const struct model_config *c = &m->base.config;
    const struct layer *w = &m->layers[l];
    const struct scratch *s = &m->s;
    int n = b->n, dim = c->dim, head = c->head_dim, q_dim = c->n_heads * head, kv_dim = c->n_kv_heads * head;
    add_op(ops, OP_RMSNORM, n, dim, .y = s->h, .x = s->x, .vector = w->attn_norm, .eps = c->eps);
    add_op(ops, OP_MATMUL, n, dim, .x = s->h,
           .products = {product(s->q, w->q), product(s->k, w->k), product(s->v, w->v)});
    add_op(ops, OP_RMSNORM, n * c->n_heads, head, .y = s->q, .x = s->q, .vector = w->q_norm, .eps = c->eps);
    add_op(ops, OP_RMSNORM, n * c->n_kv_heads, head, .y = s->k, .x = s->k, .vector = w->k_norm, .eps = c->eps);
    add_op(ops, OP_ROPE, n, q_dim, .y = s->q, .cosine = m->cosine, .sine = m->sine, .heads = c->n_heads,
           .rot = c->rope_dim);
    add_op(ops, OP_ROPE, n, kv_dim, .y = s->k, .cosine = m->cosine, .sine = m->sine, .heads = c->n_kv_heads,
           .rot = c->rope_dim);
    add_op(ops, OP_KV_APPEND, n, kv_dim, .x = s->k, .z = s->v, .kv = b->kv, .layer = l);
    add_op(ops, OP_ATTENTION, n, q_dim, .y = s->o, .x = s->q, .kv = b->kv, .layer = l);
    add_op(ops, OP_MATMUL, n, q_dim, .x = s->o, .products = {product(s->h, w->o)});
    add_op(ops, OP_ADD, n, dim, .y = s->x, .x = s->h);
}

/* x += down(silu(gate(h)) * up(h)) */
static void feed_forward(const struct qwen3 *m, const struct layer *w, int n, struct op_list *ops)
{
    const struct scratch *s = &m->s;
    int dim = m->base.config.dim, ffn = w->ffn_dim;
    add_op(ops, OP_RMSNORM, n, dim, .y = s->h, .x = s->x, .vector = w->ffn_norm, .eps = m->base.config.eps);
    add_op(ops, OP_MATMUL, n, dim, .x = s->h, .products = {product(s->gate, w->gate), product(s->up, w->up)});
    add_op(ops, OP_SWIGLU, n, ffn, .y = s->gate, .x = s->up);
    add_op(ops, OP_MATMUL, n, ffn, .x = s->gate, .products = {product(s->h, w->down)});
    add_op(ops, OP_ADD, n, dim, .y = s->x, .x = s->h);
}

/* x += sum over a row's experts of share * down(silu(gate(h)) * up(h)) */
static void mix_experts(const struct qwen3 *m, const struct layer *w, int n, struct op_list *ops)
{
    const struct model_config *c = &m->base.config;
    const struct scratch *s = &m->s;
    const struct route *route = &s->route;
    int dim = c->dim, ffn = w->ffn_dim, places = n * c->n_used;
    add_op(ops, OP_RMSNORM, n, dim, .y = s->h, .x = s->x, .vector = w->ffn_norm, .eps = c->eps);
    add_op(ops, OP_MATMUL, n, dim, .x = s->h, .products = {product(s->scores, w->router)});
    add_op(ops, OP_ROUTE, n, c->n_experts, .y = s->scores, .route = route, .renormalise = c->renormalise);
    add_op(ops, OP_GATHER, n, dim, .y = s->places, .x = s->h, .route = route);
    add_op(ops, OP_EXPERTS, places, dim, .x = s->places, .products = {product(s->gate, w->gate), product(s->up, w->up)},
           .route = route);
    add_op(ops, OP_SWIGLU, places, ffn, .y = s->gate, .x = s->up);
    add_op(ops, OP_EXPERTS, places, ffn, .x = s->gate, .products = {product(s->places, w->down)}, .route = route);
    add_op(ops, OP_COMBINE, n, dim, .y = s->h, .x = s->places, .route = route);
    add_op(ops, OP_ADD, n, dim, .y = s->x, .x = s->h);
}

static void qwen3_layer(struct model *base, const struct batch *b, int l)
{
    struct qwen3 *m = (struct qwen3 *)base;
    const struct layer *w = &m->layers[l];
    struct op_list ops = {0};
    int dim = base->config.dim;
    attend(m, b, l, &ops);
    if (w->dense) feed_forward(m, w, b->n, &ops);
    else mix_experts(m, w, b->n, &ops);
    if (b->features && l < b->n_added)
        add_op(&ops, OP_FEATURES, b->n, dim, .y = m->s.x, .features = b->features, .first = (1 + l) * dim,
               .adds = true);
    backend_run_list(base->bind.be, &ops);
}

static void qwen3_head(struct model *base, const struct batch *b, int first, int n)
{
    struct qwen3 *m = (struct qwen3 *)base;
    const struct scratch *s = &m->s;
    const struct weight *head = m->output ? m->output : m->embedding;
    struct op_list ops = {0};
    int dim = base->config.dim;
    if (first == 0 && b->n_out) {
        add_op(&ops, OP_PICK, b->n_out, dim, .y = s->last, .x = s->x, .ids = b->out);
        add_op(&ops, OP_RMSNORM, b->n_out, dim, .y = s->last, .x = s->last, .vector = m->output_norm,
               .eps = base->config.eps);
    }
    if (b->n_logits) add_op(&ops, OP_MATMUL, b->n_logits, dim, .x = s->last, .products = {{s->logits, head, first, n}});
    backend_run_list(base->bind.be, &ops);
}

static struct outputs qwen3_end(const struct model *base)
{
    const struct qwen3 *m = (const struct qwen3 *)base;
    return (struct outputs){.logits = m->s.logits, .hidden = m->s.last};
}

static const struct weight *qwen3_output(const struct model *base)
{
    const struct qwen3 *m = (const struct qwen3 *)base;
    return m->output ? m->output : m->embedding;
}

/* Serves four architectures: files tell them apart, the forward pass does not. */
const struct model_ops model_qwen3 = {
    .open = qwen3_open,
    .bind = qwen3_bind,
    .free = qwen3_free,
    .each = qwen3_each,
    .cache = qwen3_cache,
    .values = qwen3_values,
    .reserve_cost = qwen3_reserve_cost,
    .reserve = qwen3_reserve,
    .begin = qwen3_begin,
    .layer = qwen3_layer,
    .head = qwen3_head,
    .end = qwen3_end,
    .output = qwen3_output,
};
