/* SPDX-License-Identifier: MIT
 *
 * Qwen3.5: a pre-norm decoder whose layers are of two kinds. Full layers have attention with an output gate, linear
 * layers (Gated DeltaNet) keep a state of fixed size instead of keys and values.
 *
 * GGUF files hold some weights changed: norms plus 1, -exp of the rates, value heads in another order. Folders hold
 * them as they were trained, and the metadata says so; they are changed while they load, but heads keep their order.
 * The first block behind the layers drafts tokens (draft.h); others are skipped. Facts and shapes: MODEL.md.
 */
#include "base/num.h"
#include "load/metadata.h"
#include "models/config.h"
#include "models/draft.h"

#include <stdio.h>

struct layer {
    bool full;
    int at;                      /* among the layers of its kind */
    struct attention attention;  /* of a full layer; both kinds use its norm */
    struct weight *qkv;          /* [channels, dim] */
    struct weight *z;            /* [value_dim, dim] */
    struct weight *alpha, *beta; /* [n_value_heads, dim] */
    struct weight *out;          /* [dim, value_dim] */
    float *taps, *rate, *bias;   /* see struct linear_layer */
    struct linear_layer linear;  /* points to them from reserve() on */
    float *norm;                 /* [head_dim of linear layers] */
    struct dense ffn;
};

struct qwen35 {
    struct decoder d;
    struct linear_layer linear; /* of every linear layer, without weights */
    uint8_t *no_kv;             /* [blocks] every block but the full layers */
    int n_full;
    bool as_trained;      /* the weights are as in a folder */
    struct layer *layers; /* [n_layers] */
    struct draft draft;   /* with config.drafts */
    struct handle pairs;  /* [2, n, n_value_heads] alpha, then beta */
};

static const struct model_config *config(const struct qwen35 *m) { return &m->d.base.config; }

/* --- metadata ------------------------------------------------------------------------------------------- */

/* Which layers are linear: those that a list names, else all except every interval-th. */
static int read_kinds(struct qwen35 *m, const struct keys *k, struct error *err)
{
    const int64_t four = 4;
    char key[KEY_SIZE];
    int interval, status = config_int(k, "full_attention_interval", 1, INT32_MAX, &four, &interval, err);
    const struct meta *list = meta_find(k->ck, model_key(key, k->prefix, "attention.recurrent_layers"));
    for (int l = 0; !status && l < config(m)->n_layers; l++) {
        int64_t linear = (l + 1) % interval != 0;
        if (list) status = meta_element(k->ck, key, (uint64_t)l, (uint64_t)k->n_blocks, &linear, err);
        m->layers[l].full = !linear;
        m->layers[l].at = linear ? l - m->n_full : m->n_full++;
        m->no_kv[l] = linear != 0;
    }
    for (int l = config(m)->n_layers; !status && l < k->n_blocks; l++) m->no_kv[l] = true;
    if (status || m->n_full) return status;
    return fail(err, ERR_UNSUPPORTED, "layers", 0, "No layer of the model has full attention; this version needs one.");
}

/* Values of all linear layers in a slot. */
static uint64_t linear_values(const struct qwen35 *m)
{
    return (uint64_t)(config(m)->n_layers - m->n_full) * linear_state(&m->linear);
}

static int check_linear(const struct linear_layer *l, int taps, int inner, int head_dim, struct error *err)
{
    if (taps != TAPS)
        return fail(err, ERR_UNSUPPORTED, "value", 0, "The convolution sees %d rows; this version computes %d.", taps,
                    TAPS);
    if (l->n_value_heads % l->n_key_heads)
        return fail(err, ERR_INCONSISTENT, "value", 0, "%d value heads do not divide by %d key heads.",
                    l->n_value_heads, l->n_key_heads);
    if (l->head_dim % 16 || head_dim % 8)
        return fail(
            err, ERR_UNSUPPORTED, "value", 0,
            "Linear layers have heads of %d columns and full ones of %d; this version needs multiples of 16 and of 8.",
            l->head_dim, head_dim);
    if (inner != l->n_value_heads * l->head_dim)
        return fail(err, ERR_INCONSISTENT, "value", 0, "%d value heads of %d columns do not make %d columns.",
                    l->n_value_heads, l->head_dim, inner);
    return OK;
}

static int read_linear(struct qwen35 *m, const struct keys *k, struct error *err)
{
    enum { HEADS_MOST = 1024 };
    struct linear_layer *l = &m->linear;
    struct model_config *c = &m->d.base.config;
    const double none = 0;
    double scale = 0;
    bool tiled;
    char key[KEY_SIZE];
    int taps, status = config_int(k, "ssm.conv_kernel", 1, INT32_MAX, NULL, &taps, err);
    if (!status) status = config_int(k, "ssm.state_size", 1, LINEAR_HEAD_MOST, NULL, &l->head_dim, err);
    if (!status) status = config_int(k, "ssm.group_count", 1, HEADS_MOST, NULL, &l->n_key_heads, err);
    if (!status) status = config_int(k, "ssm.time_step_rank", 1, HEADS_MOST, NULL, &l->n_value_heads, err);
    if (!status) status = config_int(k, "ssm.inner_size", 1, INT32_MAX, NULL, &c->value_dim, err);
    if (!status) status = meta_bool(k->ck, model_key(key, k->prefix, "ssm.v_head_reordered"), true, &tiled, err);
    if (!status) status = meta_bool(k->ck, model_key(key, k->prefix, "ssm.grouped"), !tiled, &l->grouped, err);
    if (!status) status = meta_bool(k->ck, model_key(key, k->prefix, "norm.zero_centered"), false, &m->as_trained, err);
    if (!status) status = config_float(k, "attention.scale", 0, 1e6, &none, &scale, err);
    m->d.attention_scale = (float)scale;
    if (!status) status = check_linear(l, taps, c->value_dim, c->head_dim, err);
    if (status || linear_values(m) <= INT32_MAX) return status;
    return fail(err, ERR_UNSUPPORTED, "value", 0, "The states of all layers have more than 2^31 values.");
}

/* A file may hold only the blocks behind the layers, for programs that load them beside the model. */
static int check_drafts(const struct qwen35 *m, const struct checkpoint *ck, struct error *err)
{
    char name[48];
    struct bytes rest;
    snprintf(name, sizeof name, "blk.%d.nextn.", config(m)->n_layers);
    if (!ck_rest(ck, ck_first(ck, name), name, &rest) || ck_rest(ck, ck_first(ck, "blk.0."), "blk.0.", &rest))
        return OK;
    return fail(err, ERR_UNSUPPORTED, "drafts", 0,
                "This file has only the part of a model that drafts further tokens; load the file of the model itself, "
                "whose name does not begin with mtp.");
}

static int read_config(struct qwen35 *m, const struct checkpoint *ck, struct error *err)
{
    struct model_config *c = &m->d.base.config;
    struct keys k = {.ck = ck, .prefix = m->d.base.prefix};
    const int64_t none = 0, n_tensors = (int64_t)ck_tensors_in_all(ck);
    int blocks, status = config_int(&k, "block_count", 1, n_tensors, NULL, &blocks, err);
    if (!status) status = config_int(&k, "nextn_predict_layers", 0, blocks - 1, &none, &c->n_nextn, err);
    if (status) return status;
    k.n_blocks = blocks;
    c->n_layers = blocks - c->n_nextn;
    m->layers = mem_array(m->d.base.bind.mem, (uint64_t)c->n_layers, sizeof *m->layers);
    k.no_kv = m->no_kv = mem_alloc(m->d.base.bind.mem, (size_t)blocks);
    if (!m->layers || !m->no_kv)
        return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the model's %d layers.", blocks);
    c->drafts = c->n_nextn == 1 && draft_there(ck, c->n_layers);
    status = check_drafts(m, ck, err);
    if (!status) status = read_kinds(m, &k, err);
    if (!status) status = config_decoder(&k, c, &m->d.rope, err);
    c->sees = m->d.rope.sections[0] > 0; /* without sections there is no place for a row and a column */
    return status ? status : read_linear(m, &k, err);
}

/* --- weights ------------------------------------------------------------------------------------------- */

static float plus_one(float x) { return x + 1; }
static float negative_exp(float x) { return (float)-num_exp64((double)x); }

/* Some programs write this name without ".bias". */
static const char *bias_name(const struct checkpoint *ck, int l)
{
    char name[40];
    snprintf(name, sizeof name, "blk.%d.ssm_dt", l);
    return ck_find(ck, name) ? "blk.%d.ssm_dt" : "blk.%d.ssm_dt.bias";
}

static int bind_linear(struct qwen35 *m, struct checkpoint *ck, int l, struct error *err)
{
    struct binder *b = &m->d.base.bind;
    struct layer *w = &m->layers[l];
    const struct linear_layer *s = &m->linear;
    int dim = config(m)->dim, channels = linear_channels(s), heads = s->n_value_heads, inner = config(m)->value_dim;
    int status = decoder_bind_norm(&m->d, ck, "blk.%d.attn_norm.weight", l, dim, &w->attention.norm, err);
    if (!status) status = bind_matrix(b, ck, "blk.%d.attn_qkv.weight", l, dim, channels, &w->qkv, err);
    if (!status) status = bind_matrix(b, ck, "blk.%d.attn_gate.weight", l, dim, inner, &w->z, err);
    if (!status) status = bind_matrix_as_stored(b, ck, "blk.%d.ssm_alpha.weight", l, dim, heads, &w->alpha, err);
    if (!status) status = bind_matrix_as_stored(b, ck, "blk.%d.ssm_beta.weight", l, dim, heads, &w->beta, err);
    if (!status) status = bind_turned(b, ck, "blk.%d.ssm_conv1d.weight", l, TAPS, channels, &w->taps, err);
    if (!status) status = bind_vector(b, ck, bias_name(ck, l), l, heads, &w->bias, err);
    if (!status)
        status = m->as_trained ? bind_changed(b, ck, "blk.%d.ssm_a_log", l, heads, negative_exp, &w->rate, err)
                               : bind_vector(b, ck, "blk.%d.ssm_a", l, heads, &w->rate, err);
    if (!status) status = bind_vector(b, ck, "blk.%d.ssm_norm.weight", l, s->head_dim, &w->norm, err);
    if (!status) status = bind_matrix(b, ck, "blk.%d.ssm_out.weight", l, inner, dim, &w->out, err);
    return status;
}

static int qwen35_bind(struct model *base, struct checkpoint *ck, struct error *err)
{
    struct qwen35 *m = (struct qwen35 *)base;
    int dim = base->config.dim, status = decoder_bind(&m->d, ck, err);
    for (int l = 0; !status && l < base->config.n_layers; l++) {
        struct layer *w = &m->layers[l];
        status = w->full ? decoder_bind_attention(&m->d, ck, l, true, &w->attention, err) : bind_linear(m, ck, l, err);
        if (!status)
            status = decoder_bind_norm(&m->d, ck, "blk.%d.post_attention_norm.weight", l, dim, &w->ffn.norm, err);
        if (!status) status = decoder_bind_dense(&m->d, ck, l, base->config.ffn_dim, &w->ffn, err);
    }
    if (!status && base->config.drafts) status = draft_bind(&m->draft, &m->d, ck, base->config.n_layers, err);
    return status;
}

static void qwen35_free(struct model *base)
{
    struct qwen35 *m = (struct qwen35 *)base;
    for (int l = 0; m->layers && l < base->config.n_layers; l++) {
        struct layer *w = &m->layers[l];
        decoder_drop_attention(&m->d, &w->attention);
        decoder_drop_dense(&m->d, &w->ffn);
        decoder_drop(&m->d, (float *[]){w->taps, w->rate, w->bias, w->norm}, 4,
                     (struct weight *[]){w->qkv, w->z, w->alpha, w->beta, w->out}, 5);
    }
    draft_drop(&m->draft, &m->d);
    mem_free(base->bind.mem, m->layers);
    mem_free(base->bind.mem, m->no_kv);
    decoder_free(&m->d);
}

static void qwen35_each(const struct model *base, model_part *fn, void *context)
{
    const struct qwen35 *m = (const struct qwen35 *)base;
    const struct model_config *c = &base->config;
    const struct linear_layer *s = &m->linear;
    const int32_t numbers[] = {s->n_key_heads, s->n_value_heads, s->head_dim, s->grouped};
    fn(context, NULL, (struct bytes){(const uint8_t *)numbers, sizeof numbers});
    decoder_each_vector(fn, context, &m->d.attention_scale, 1);
    decoder_each_turn(&m->d, fn, context);
    for (int l = 0; l < c->n_layers; l++) {
        const struct layer *w = &m->layers[l];
        const struct attention *a = &w->attention;
        const struct weight *matrices[] = {a->q,     a->gate, a->k,   a->v,        a->o,      w->qkv,     w->z,
                                           w->alpha, w->beta, w->out, w->ffn.gate, w->ffn.up, w->ffn.down};
        decoder_each_vector(fn, context, a->norm, c->dim);
        decoder_each_vector(fn, context, w->ffn.norm, c->dim);
        decoder_each_vector(fn, context, a->q_norm, c->head_dim);
        decoder_each_vector(fn, context, a->k_norm, c->head_dim);
        decoder_each_vector(fn, context, w->taps, TAPS * linear_channels(s));
        decoder_each_vector(fn, context, w->rate, s->n_value_heads);
        decoder_each_vector(fn, context, w->bias, s->n_value_heads);
        decoder_each_vector(fn, context, w->norm, s->head_dim);
        for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) fn(context, matrices[i], (struct bytes){0});
    }
    if (c->drafts) draft_each(&m->draft, &m->d, fn, context);
    decoder_each(&m->d, fn, context);
}

static int qwen35_open(const struct architecture *architecture, struct mem *mem, struct backend *be,
                       const struct checkpoint *ck, const char *prefix, struct model **out, struct error *err)
{
    struct qwen35 *m = mem_alloc(mem, sizeof *m);
    if (!m) return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the model.");
    m->d.base = (struct model){
        .ops = &model_qwen35, .architecture = architecture, .prefix = prefix, .bind = {.mem = mem, .be = be}};
    int status = read_config(m, ck, err);
    if (m->as_trained) m->d.norm_change = plus_one;
    if (!status) status = decoder_open(&m->d, ck, err);
    if (status) qwen35_free(&m->d.base);
    else *out = &m->d.base;
    return status;
}

/* --- scratch -------------------------------------------------------------------------------------------- */

/* Lays out the values of m, which may be a copy that is only measured; returns their bytes. Of a linear layer, z and
 * the answers lie in q and o, the channels before and after the convolution in gate and up. */
static uint64_t lay_out(struct qwen35 *m, int max_rows, int max_out)
{
    const struct model_config *c = config(m);
    struct arena all = {0};
    int wide = max_int(max_int(decoder_q_dim(&m->d.base), c->value_dim), c->dim),
        inner = max_int(max_int(c->ffn_dim, linear_channels(&m->linear)), wide);
    decoder_lay_out(&m->d, &all, max_rows, max_out, (uint64_t)wide, (uint64_t)inner);
    m->pairs = take_values(&all, 2 * (uint64_t)max_rows * (uint64_t)m->linear.n_value_heads, sizeof(float));
    if (c->drafts) draft_lay_out(&m->draft, &m->d, &all, max_rows);
    return all.used;
}

static struct cache_shape qwen35_cache(const struct model *base, int n_pages, int n_slots, enum kv_type type)
{
    const struct qwen35 *m = (const struct qwen35 *)base;
    uint64_t values = linear_values(m) + (base->config.drafts ? (uint64_t)base->config.dim : 0);
    return (struct cache_shape){.kv = decoder_kv(base, m->n_full + base->config.drafts, n_pages, type),
                                .state = {.bytes = values * sizeof(float),
                                          .n_slots = values ? n_slots : 0,
                                          .n_layers = base->config.n_layers - m->n_full,
                                          .layer_bytes = linear_state(&m->linear) * sizeof(float)}};
}

static uint64_t qwen35_values(const struct model *base, int max_rows, int max_out)
{
    struct qwen35 measured = *(const struct qwen35 *)base;
    return lay_out(&measured, max_rows, max_out);
}

static int qwen35_reserve(struct model *base, int max_rows, int max_out)
{
    struct qwen35 *m = (struct qwen35 *)base;
    lay_out(m, max_rows, max_out);
    m->draft.layer = m->n_full;
    m->draft.at = linear_values(m);
    for (int l = 0; l < base->config.n_layers; l++) {
        struct layer *w = &m->layers[l];
        w->linear = m->linear;
        w->linear.taps = w->taps, w->linear.rate = w->rate, w->linear.bias = w->bias;
    }
    return decoder_reserve(&m->d, max_rows);
}

/* --- forward -------------------------------------------------------------------------------------------- */

/* x += out(norm(delta(convolve(qkv(h)))) * silu(z(h))), h = norm(x) */
static void mix_linear(const struct qwen35 *m, const struct batch *b, const struct layer *w, struct op_list *ops)
{
    const struct model_config *c = config(m);
    const struct decoder *d = &m->d;
    const struct linear_layer *linear = &w->linear;
    int n = b->n, dim = c->dim, heads = linear->n_value_heads;
    struct handle z = d->q, o = d->o, u = d->gate, mixed = d->up, beta = handle_at(m->pairs, (size_t)(n * heads));
    add_op(ops, OP_RMSNORM, n, dim, .y = d->h, .x = d->x, .vector = w->attention.norm, .eps = c->eps);
    add_op(ops, OP_MATMUL, n, dim, .x = d->h,
           .products = {product(u, w->qkv), product(z, w->z), product(m->pairs, w->alpha), product(beta, w->beta)});
    add_op(ops, OP_CONVOLVE, n, linear_channels(linear), .y = mixed, .x = u, .linear = linear, .runs = b->runs,
           .n_runs = b->n_runs, .layer = w->at);
    add_op(ops, OP_DELTA, n, c->value_dim, .y = o, .x = mixed, .z = m->pairs, .linear = linear, .runs = b->runs,
           .n_runs = b->n_runs, .layer = w->at);
    add_op(ops, OP_RMSNORM, n * heads, linear->head_dim, .y = o, .x = o, .vector = w->norm, .eps = c->eps);
    add_op(ops, OP_SWIGLU, n, c->value_dim, .y = z, .x = o);
    add_op(ops, OP_MATMUL, n, c->value_dim, .x = z, .products = {product(d->h, w->out)});
    add_op(ops, OP_ADD, n, dim, .y = d->x, .x = d->h);
}

static void qwen35_layer(struct model *base, const struct batch *b, int l)
{
    struct qwen35 *m = (struct qwen35 *)base;
    const struct layer *w = &m->layers[l];
    struct op_list ops = {0};
    if (w->full) decoder_attend(&m->d, b, &w->attention, w->at, &ops);
    else mix_linear(m, b, w, &ops);
    decoder_feed_forward(&m->d, &w->ffn, base->config.ffn_dim, b->n, &ops);
    backend_run_list(base->bind.be, &ops);
    if (base->config.drafts && l == base->config.n_layers - 1) draft_remember(&m->draft, &m->d, b);
}

static void qwen35_draft(struct model *base, const struct batch *b, int32_t *drafts)
{
    struct qwen35 *m = (struct qwen35 *)base;
    draft_make(&m->draft, &m->d, b, drafts);
}

const struct model_ops model_qwen35 = {
    .open = qwen35_open,
    .bind = qwen35_bind,
    .free = qwen35_free,
    .each = qwen35_each,
    .cache = qwen35_cache,
    .values = qwen35_values,
    .reserve_cost = decoder_reserve_cost,
    .reserve = qwen35_reserve,
    .begin = decoder_begin,
    .layer = qwen35_layer,
    .head = decoder_head,
    .end = decoder_end,
    .output = decoder_output,
    .draft = qwen35_draft,
};
