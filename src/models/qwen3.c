/* SPDX-License-Identifier: MIT
 *
 * Qwen3: a pre-norm decoder with grouped-query attention, norms on the heads of q and k, and SwiGLU, dense or a mixture
 * of experts; the language model of Qwen3-VL, which differs only in its positions, which have three sections; and
 * Qwen2, Llama and SmolLM3, which are dense and have no such norms. Rows of load/architecture.c tell them apart.
 *
 * bind_layer() and qwen3_layer() define the architecture, with the parts of decoder.h. Dense layers and layers with
 * experts may be mixed: the tensors tell them apart. Facts and shapes: MODEL.md.
 */
#include "base/reader.h"
#include "load/metadata.h"
#include "models/decoder.h"
#include "models/qwen3.h"

#include <stdio.h>
#include <string.h>

struct layer {
    struct attention attention;
    bool dense;                /* no router; one expert with share 1 */
    struct weight *router;     /* [n_experts, dim] */
    struct dense ffn;          /* its matrices may be those of all experts, stacked */
    struct singles singles[3]; /* of the experts, if files have them one by one */
    int ffn_dim;               /* of an expert */
};

struct qwen3 {
    struct decoder d;
    bool dense_known;     /* the metadata says which layers are dense; GGUF files do not */
    struct layer *layers; /* [n_layers] */
    struct handle scores; /* [n, n_experts] */
    struct handle places; /* [n * n_used, dim] inputs of the experts, then their outputs */
    struct route route;
};

static const struct model_config *config(const struct qwen3 *m) { return &m->d.base.config; }

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
    return config(m)->n_experts == 0;
}

static int bind_experts(struct qwen3 *m, struct checkpoint *ck, int l, struct error *err)
{
    struct binder *b = &m->d.base.bind;
    struct layer *w = &m->layers[l];
    int dim = config(m)->dim, n = config(m)->n_experts;
    int status = bind_matrix_as_stored(b, ck, "blk.%d.ffn_gate_inp.weight", l, dim, n, &w->router, err);
    if (!status)
        status = bind_stack(b, ck, "blk.%d.ffn_gate", l, dim, w->ffn_dim, n, &w->ffn.gate, &w->singles[0], err);
    if (!status) status = bind_stack(b, ck, "blk.%d.ffn_up", l, dim, w->ffn_dim, n, &w->ffn.up, &w->singles[1], err);
    if (!status)
        status = bind_stack(b, ck, "blk.%d.ffn_down", l, w->ffn_dim, dim, n, &w->ffn.down, &w->singles[2], err);
    return status;
}

static int bind_feed_forward(struct qwen3 *m, struct checkpoint *ck, int l, struct error *err)
{
    const struct model_config *c = config(m);
    struct layer *w = &m->layers[l];
    bool dense = w->dense || (!m->dense_known && dense_here(m, ck, l)),
         experts_before = !w->dense && (w->router || w->ffn.gate || w->ffn.up || w->ffn.down);
    if (dense && experts_before)
        return fail(
            err, ERR_INCONSISTENT, "split", 0,
            "Layer %d has experts in one file of the split model and is dense in another; they do not belong together.",
            l);
    w->dense = dense;
    w->ffn_dim = dense ? c->ffn_dim : c->expert_dim;
    if (dense && w->ffn_dim == 0)
        return fail(err, ERR_FORMAT, "missing", 0,
                    "The metadata key %s.feed_forward_length is missing, which layer %d needs.", m->d.base.prefix, l);
    return dense ? decoder_bind_dense(&m->d, ck, l, w->ffn_dim, &w->ffn, err) : bind_experts(m, ck, l, err);
}

/* Ignoring biases would give wrong numbers silently, unless they are zeros. */
static int check_biases(const struct qwen3 *m, const struct checkpoint *ck, int l, struct error *err)
{
    static const char *const roles[] = {"output", "q", "k", "v", "qkv"};
    const struct architecture *a = m->d.base.architecture;
    char name[40];
    for (size_t i = 0; i < (a->biases ? 1 : sizeof roles / sizeof *roles); i++) {
        snprintf(name, sizeof name, "blk.%d.attn_%s.bias", l, roles[i]);
        const struct tensor *t = ck_find(ck, name);
        if (t && !m->d.base.bind.zeros)
            return fail(err, ERR_UNSUPPORTED, "architecture", t->name.at,
                        "Attention with biases (%s) is not supported; %s has none there.", name, a->name);
    }
    return OK;
}

static int bind_layer(struct qwen3 *m, struct checkpoint *ck, int l, struct error *err)
{
    const struct model_config *c = config(m);
    struct layer *w = &m->layers[l];
    int status = check_biases(m, ck, l, err);
    if (!status) status = decoder_bind_attention(&m->d, ck, l, false, &w->attention, err);
    if (!status) status = decoder_bind_norm(&m->d, ck, "blk.%d.ffn_norm.weight", l, c->dim, &w->ffn.norm, err);
    if (!status) status = bind_feed_forward(m, ck, l, err);
    return status;
}

static int qwen3_bind(struct model *base, struct checkpoint *ck, struct error *err)
{
    struct qwen3 *m = (struct qwen3 *)base;
    int status = decoder_bind(&m->d, ck, err);
    for (int l = 0; !status && l < base->config.n_layers; l++) status = bind_layer(m, ck, l, err);
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
    int status = meta_int(ck, model_key(key, m->d.base.prefix, "decoder_sparse_step"), 1, INT32_MAX, &none, &step, err);
    if (!status)
        status = meta_array(ck, model_key(key, m->d.base.prefix, "mlp_only_layers"), META_I32, false, &list, &n, err);
    if (status || !step || !config(m)->n_experts) return status;
    m->dense_known = true;
    for (int l = 0; l < config(m)->n_layers; l++) m->layers[l].dense = (l + 1) % step != 0;
    for (uint64_t i = 0; i < n; i++)
        if (load_u32(list.data + 4 * i) < (uint32_t)config(m)->n_layers)
            m->layers[load_u32(list.data + 4 * i)].dense = true;
    return OK;
}

static int take_layers(struct qwen3 *m, struct error *err)
{
    int n = config(m)->n_layers;
    m->layers = mem_array(m->d.base.bind.mem, (uint64_t)n, sizeof *m->layers);
    return m->layers ? OK : fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the model's %d layers.", n);
}

static void qwen3_free(struct model *base)
{
    struct qwen3 *m = (struct qwen3 *)base;
    struct mem *mem = base->bind.mem;
    struct backend *be = base->bind.be;
    for (int l = 0; m->layers && l < base->config.n_layers; l++) {
        struct layer *w = &m->layers[l];
        decoder_drop_attention(&m->d, &w->attention);
        decoder_drop_dense(&m->d, &w->ffn);
        if (be) be->ops->weight_free(be, w->router);
        for (size_t i = 0; i < sizeof w->singles / sizeof *w->singles; i++) mem_free(mem, w->singles[i].there);
    }
    mem_free(mem, m->layers);
    decoder_free(&m->d);
}

static void each_bias(const struct decoder *d, const struct attention *a, model_part *fn, void *context)
{
    const struct model_config *c = &d->base.config;
    for (int i = 0; i < 3; i++)
        decoder_each_vector(fn, context, decoder_bias(d, a, i), (i ? c->n_kv_heads : c->n_heads) * c->head_dim);
}

static void qwen3_each(const struct model *base, model_part *fn, void *context)
{
    const struct qwen3 *m = (const struct qwen3 *)base;
    const struct model_config *c = &base->config;
    decoder_each_turn(&m->d, fn, context);
    for (int l = 0; l < c->n_layers; l++) {
        const struct layer *w = &m->layers[l];
        const struct attention *a = &w->attention;
        const struct weight *matrices[] = {a->q, a->k, a->v, a->o, w->router, w->ffn.gate, w->ffn.up, w->ffn.down};
        decoder_each_vector(fn, context, a->norm, c->dim);
        decoder_each_vector(fn, context, w->ffn.norm, c->dim);
        decoder_each_vector(fn, context, a->q_norm, c->head_dim);
        decoder_each_vector(fn, context, a->k_norm, c->head_dim);
        if (base->architecture->biases) each_bias(&m->d, a, fn, context);
        for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) fn(context, matrices[i], (struct bytes){0});
    }
    decoder_each(&m->d, fn, context);
}

static int qwen3_open(const struct architecture *architecture, struct mem *mem, struct backend *be,
                      const struct checkpoint *ck, const char *prefix, struct model **out, struct error *err)
{
    struct qwen3 *m = mem_alloc(mem, sizeof *m);
    if (!m) return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the model.");
    m->d.base = (struct model){
        .ops = &model_qwen3, .architecture = architecture, .prefix = prefix, .bind = {.mem = mem, .be = be}};
    int status = qwen3_config(architecture, ck, prefix, &m->d.base.config, &m->d.rope, err);
    if (!status) status = decoder_open(&m->d, ck, err);
    if (!status) status = take_layers(m, err);
    if (!status) status = read_dense(m, ck, err);
    if (status) qwen3_free(&m->d.base);
    else *out = &m->d.base;
    return status;
}

/* --- scratch -------------------------------------------------------------------------------------------- */

/* Lays out the values of m, which may be a copy that is only measured; returns their bytes. */
static uint64_t lay_out(struct qwen3 *m, int max_rows, int max_out)
{
    const struct model_config *c = config(m);
    struct arena all = {0}, *a = &all;
    uint64_t rows = (uint64_t)max_rows, used = (uint64_t)c->n_used, expert = used * (uint64_t)c->expert_dim,
             dense = (uint64_t)c->ffn_dim;
    decoder_lay_out(&m->d, a, max_rows, max_out, (uint64_t)decoder_q_dim(&m->d.base), expert > dense ? expert : dense);
    m->scores = take_values(a, rows * (uint64_t)c->n_experts, sizeof(float));
    m->places = take_values(a, rows * used * (uint64_t)c->dim, sizeof(float));
    m->route = (struct route){.n_experts = c->n_experts, .n_used = c->n_used};
    m->route.first = take_values(a, (uint64_t)c->n_experts + 1, sizeof(int32_t));
    m->route.place = take_values(a, rows * used, sizeof(int32_t));
    m->route.share = take_values(a, rows * used, sizeof(float));
    return a->used;
}

/* Every layer has keys and values, and no other state. */
static struct cache_shape qwen3_cache(const struct model *base, int n_pages, int n_slots, enum kv_type type)
{
    (void)n_slots;
    return (struct cache_shape){.kv = decoder_kv(base, base->config.n_layers, n_pages, type)};
}

static uint64_t qwen3_values(const struct model *base, int max_rows, int max_out)
{
    struct qwen3 measured = *(const struct qwen3 *)base;
    return lay_out(&measured, max_rows, max_out);
}

static int qwen3_reserve(struct model *base, int max_rows, int max_out)
{
    struct qwen3 *m = (struct qwen3 *)base;
    lay_out(m, max_rows, max_out);
    return decoder_reserve(&m->d, max_rows);
}

/* --- forward ---------------------------------------------------------------------------------------------- */

/* x += sum over a row's experts of share * down(silu(gate(h)) * up(h)) */
static void mix_experts(const struct qwen3 *m, const struct layer *w, int n, struct op_list *ops)
{
    const struct model_config *c = config(m);
    const struct decoder *d = &m->d;
    const struct route *route = &m->route;
    int dim = c->dim, ffn = w->ffn_dim, places = n * c->n_used;
    add_op(ops, OP_RMSNORM, n, dim, .y = d->h, .x = d->x, .vector = w->ffn.norm, .eps = c->eps);
    add_op(ops, OP_MATMUL, n, dim, .x = d->h, .products = {product(m->scores, w->router)});
    add_op(ops, OP_ROUTE, n, c->n_experts, .y = m->scores, .route = route, .renormalise = c->renormalise);
    add_op(ops, OP_GATHER, n, dim, .y = m->places, .x = d->h, .route = route);
    add_op(ops, OP_EXPERTS, places, dim, .x = m->places,
           .products = {product(d->gate, w->ffn.gate), product(d->up, w->ffn.up)}, .route = route);
    add_op(ops, OP_SWIGLU, places, ffn, .y = d->gate, .x = d->up);
    add_op(ops, OP_EXPERTS, places, ffn, .x = d->gate, .products = {product(m->places, w->ffn.down)}, .route = route);
    add_op(ops, OP_COMBINE, n, dim, .y = d->h, .x = m->places, .route = route);
    add_op(ops, OP_ADD, n, dim, .y = d->x, .x = d->h);
}

static void qwen3_layer(struct model *base, const struct batch *b, int l)
{
    struct qwen3 *m = (struct qwen3 *)base;
    const struct layer *w = &m->layers[l];
    struct op_list ops = {0};
    int dim = base->config.dim;
    decoder_attend(&m->d, b, &w->attention, l, &ops);
    if (w->dense) decoder_feed_forward(&m->d, &w->ffn, w->ffn_dim, b->n, &ops);
    else mix_experts(m, w, b->n, &ops);
    if (b->features && l < b->n_added)
        add_op(&ops, OP_FEATURES, b->n, dim, .y = m->d.x, .features = b->features, .first = (1 + l) * dim,
               .adds = true);
    backend_run_list(base->bind.be, &ops);
}

/* Serves seven architectures: the forward pass differs by what their layers have. */
const struct model_ops model_qwen3 = {
    .open = qwen3_open,
    .bind = qwen3_bind,
    .free = qwen3_free,
    .each = qwen3_each,
    .cache = qwen3_cache,
    .values = qwen3_values,
    .reserve_cost = decoder_reserve_cost,
    .reserve = qwen3_reserve,
    .begin = decoder_begin,
    .layer = qwen3_layer,
    .head = decoder_head,
    .end = decoder_end,
    .output = decoder_output,
};
