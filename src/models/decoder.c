/* SPDX-License-Identifier: MIT
 *
 * What all decoders share. decoder_attend() and decoder_feed_forward() are the recipe.
 */
#include "models/decoder.h"

#include "base/num.h"
#include "load/metadata.h"

#include <math.h>
#include <stdio.h>

#define JOINED "blk.%d.attn_qkv.weight"
#define JOINED_BIAS "blk.%d.attn_qkv.bias"

/* --- weights ------------------------------------------------------------------------------------------- */

int decoder_open(struct decoder *d, const struct checkpoint *ck, struct error *err)
{
    bool tied, halves;
    char key[KEY_SIZE];
    int status = meta_bool(ck, model_key(key, d->base.prefix, "tie_word_embeddings"), false, &tied, err);
    if (status) return status;
    if (meta_find(ck, key)) d->head = tied ? HEAD_TIED : HEAD_OWN;
    status = meta_bool(ck, model_key(key, d->base.prefix, "rope.halves"), false, &halves, err);
    if (status) return status;
    d->paired = d->base.architecture->paired && !halves;
    d->base.config.tied = true;
    d->frequency = mem_array(d->base.bind.mem, (uint64_t)d->rope.dim / 2, sizeof *d->frequency);
    if (!d->frequency) return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the model.");
    rope_frequencies(&d->rope, d->frequency);
    return OK;
}

/* A divisor that no scaling has becomes NaN, as does every result. */
static float usable(float divisor) { return divisor >= 0.25F && divisor <= 1e6F ? divisor : NAN; }

/* The embedding is the head if the metadata says so, or if no file has another. */
int decoder_bind(struct decoder *d, struct checkpoint *ck, struct error *err)
{
    struct model_config *c = &d->base.config;
    struct binder *b = &d->base.bind;
    bool own = d->head == HEAD_OWN && !ck->trunk;
    bool here = d->head != HEAD_TIED && (own || ck_find(ck, "output.weight") != NULL);
    int status = bind_matrix(b, ck, "token_embd.weight", 0, c->dim, c->vocab_size, &d->embedding, err);
    if (!status) status = decoder_bind_norm(d, ck, "output_norm.weight", 0, c->dim, &d->output_norm, err);
    if (!status && here) status = bind_matrix(b, ck, "output.weight", 0, c->dim, c->vocab_size, &d->output, err);
    if (!status && d->paired && d->rope.scaling != ROPE_LLAMA3 && ck_find(ck, "rope_freqs.weight"))
        status = bind_changed(b, ck, "rope_freqs.weight", 0, d->rope.dim / 2, usable, &d->divisors, err);
    c->tied = c->tied && !here;
    c->headless = c->tied && d->head == HEAD_OWN;
    return status;
}

int decoder_bind_norm(struct decoder *d, struct checkpoint *ck, const char *name, int l, int n, float **out,
                      struct error *err)
{
    return bind_changed(&d->base.bind, ck, name, l, n, d->norm_change, out, err);
}

/* Some programs join the rows of q, k and v in one tensor. */
static int bind_joined(struct decoder *d, struct checkpoint *ck, int l, bool gated, struct attention *w,
                       struct error *err)
{
    const struct model_config *c = &d->base.config;
    int head = c->head_dim, q_dim = c->n_heads * head, kv_dim = c->n_kv_heads * head;
    const struct fused parts[] = {
        {gated ? 2 : 1, q_dim, gated ? head : q_dim, &w->q}, {1, kv_dim, kv_dim, &w->k}, {1, kv_dim, kv_dim, &w->v}};
    if (head % 8)
        return fail(
            err, ERR_UNSUPPORTED, "tensor", 0,
            "The rows of queries, keys and values are joined in one tensor, with heads of %d columns; this version reads it for "
            "multiples of 8.",
            head);
    return bind_fused(&d->base.bind, ck, JOINED, l, c->dim, parts, 3, err);
}

static int bind_apart(struct decoder *d, struct checkpoint *ck, int l, bool gated, struct attention *w,
                      struct error *err)
{
    const struct model_config *c = &d->base.config;
    struct binder *b = &d->base.bind;
    int head = c->head_dim, q_dim = c->n_heads * head, kv_dim = c->n_kv_heads * head;
    int status = gated ? bind_in_turn(b, ck, "blk.%d.attn_q.weight", l, c->dim, q_dim, head, &w->q, err)
                       : bind_matrix(b, ck, "blk.%d.attn_q.weight", l, c->dim, q_dim, &w->q, err);
    if (!status) status = bind_matrix(b, ck, "blk.%d.attn_k.weight", l, c->dim, kv_dim, &w->k, err);
    if (!status) status = bind_matrix(b, ck, "blk.%d.attn_v.weight", l, c->dim, kv_dim, &w->v, err);
    return status;
}

static int bind_biases(struct decoder *d, struct checkpoint *ck, int l, struct attention *w, struct error *err)
{
    const struct model_config *c = &d->base.config;
    struct binder *b = &d->base.bind;
    int q_dim = c->n_heads * c->head_dim, kv_dim = c->n_kv_heads * c->head_dim;
    char name[40];
    snprintf(name, sizeof name, JOINED_BIAS, l);
    if (ck_find(ck, name) || w->qkv_bias)
        return bind_vector(b, ck, JOINED_BIAS, l, q_dim + 2 * kv_dim, &w->qkv_bias, err);
    int status = bind_vector(b, ck, "blk.%d.attn_q.bias", l, q_dim, &w->q_bias, err);
    if (!status) status = bind_vector(b, ck, "blk.%d.attn_k.bias", l, kv_dim, &w->k_bias, err);
    if (!status) status = bind_vector(b, ck, "blk.%d.attn_v.bias", l, kv_dim, &w->v_bias, err);
    return status;
}

const float *decoder_bias(const struct decoder *d, const struct attention *w, int which)
{
    const struct model_config *c = &d->base.config;
    const float *own[] = {w->q_bias, w->k_bias, w->v_bias};
    int before = which ? c->n_heads + (which - 1) * c->n_kv_heads : 0; /* heads */
    return w->qkv_bias ? w->qkv_bias + before * c->head_dim : own[which];
}

static int bind_head_norms(struct decoder *d, struct checkpoint *ck, int l, struct attention *w, struct error *err)
{
    int head = d->base.config.head_dim;
    int status = decoder_bind_norm(d, ck, "blk.%d.attn_q_norm.weight", l, head, &w->q_norm, err);
    return status ? status : decoder_bind_norm(d, ck, "blk.%d.attn_k_norm.weight", l, head, &w->k_norm, err);
}

int decoder_bind_attention(struct decoder *d, struct checkpoint *ck, int l, bool gated, struct attention *w,
                           struct error *err)
{
    const struct model_config *c = &d->base.config;
    const struct architecture *a = d->base.architecture;
    char name[40];
    snprintf(name, sizeof name, JOINED, l);
    w->unturned = a->unturned && (l + 1) % a->unturned == 0;
    int status = decoder_bind_norm(d, ck, "blk.%d.attn_norm.weight", l, c->dim, &w->norm, err);
    if (!status) status = (ck_find(ck, name) ? bind_joined : bind_apart)(d, ck, l, gated, w, err);
    if (!status && a->biases) status = bind_biases(d, ck, l, w, err);
    if (!status && a->norms) status = bind_head_norms(d, ck, l, w, err);
    if (!status)
        status = bind_matrix(&d->base.bind, ck, "blk.%d.attn_output.weight", l, c->n_heads * c->head_dim, c->dim, &w->o,
                             err);
    return status;
}

int decoder_bind_dense(struct decoder *d, struct checkpoint *ck, int l, int ffn_dim, struct dense *w, struct error *err)
{
    struct binder *b = &d->base.bind;
    int dim = d->base.config.dim;
    int status = bind_matrix(b, ck, "blk.%d.ffn_gate.weight", l, dim, ffn_dim, &w->gate, err);
    if (!status) status = bind_matrix(b, ck, "blk.%d.ffn_up.weight", l, dim, ffn_dim, &w->up, err);
    if (!status) status = bind_matrix(b, ck, "blk.%d.ffn_down.weight", l, ffn_dim, dim, &w->down, err);
    return status;
}

void decoder_drop(struct decoder *d, float *const *vectors, int n_vectors, struct weight *const *matrices,
                  int n_matrices)
{
    struct backend *be = d->base.bind.be;
    for (int i = 0; i < n_vectors; i++) mem_free(d->base.bind.mem, vectors[i]);
    for (int i = 0; be && i < n_matrices; i++) be->ops->weight_free(be, matrices[i]);
}

void decoder_drop_attention(struct decoder *d, struct attention *w)
{
    decoder_drop(d, (float *[]){w->norm, w->q_norm, w->k_norm, w->q_bias, w->k_bias, w->v_bias, w->qkv_bias}, 7,
                 (struct weight *[]){w->q, w->gate, w->k, w->v, w->o}, 5);
}

void decoder_drop_dense(struct decoder *d, struct dense *w)
{
    decoder_drop(d, &w->norm, 1, (struct weight *[]){w->gate, w->up, w->down}, 3);
}

void decoder_free(struct decoder *d)
{
    struct backend *be = d->base.bind.be;
    struct mem *mem = d->base.bind.mem;
    if (be) be->ops->weight_free(be, d->output);
    if (be) be->ops->weight_free(be, d->embedding);
    void *parts[] = {d->output_norm, d->frequency, d->divisors, d->cosine, d->sine, d};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) mem_free(mem, parts[i]);
}

void decoder_each_vector(model_part *fn, void *context, const float *v, int n)
{
    fn(context, NULL, (struct bytes){(const uint8_t *)v, v ? (size_t)n * sizeof *v : 0});
}

const struct rope *decoder_rope(const struct model *m) { return &((const struct decoder *)m)->rope; }

void decoder_each_turn(const struct decoder *d, model_part *fn, void *context)
{
    const struct rope *r = &d->rope;
    const double turns[] = {r->dim,    r->sections[0], r->sections[1], r->sections[2], r->theta,
                            r->factor, r->original,    r->beta_fast,   r->beta_slow,   r->magnitude};
    fn(context, NULL, (struct bytes){(const uint8_t *)turns, sizeof turns});
    if (!d->paired) return;
    fn(context, NULL, (struct bytes){(const uint8_t *)"paired", 6});
    decoder_each_vector(fn, context, d->divisors, r->dim / 2);
}

void decoder_each(const struct decoder *d, model_part *fn, void *context)
{
    fn(context, d->embedding, (struct bytes){0});
    fn(context, d->output, (struct bytes){0});
    decoder_each_vector(fn, context, d->output_norm, d->base.config.dim);
}

/* --- scratch ------------------------------------------------------------------------------------------- */

void decoder_lay_out(struct decoder *d, struct arena *a, int max_rows, int max_out, uint64_t wide, uint64_t inner)
{
    const struct model_config *c = &d->base.config;
    uint64_t dim = (uint64_t)c->dim, out = (uint64_t)max_out, rows = (uint64_t)max_rows,
             kv = rows * (uint64_t)(c->n_kv_heads * c->head_dim);
    d->x = take_values(a, rows * dim, sizeof(float));
    d->h = take_values(a, rows * dim, sizeof(float));
    d->q = take_values(a, rows * wide, sizeof(float));
    d->o = take_values(a, rows * wide, sizeof(float));
    d->k = take_values(a, kv, sizeof(float));
    d->v = take_values(a, kv, sizeof(float));
    d->gate = take_values(a, rows * inner, sizeof(float));
    d->up = take_values(a, rows * inner, sizeof(float));
    d->last = take_values(a, out * dim, sizeof(float));
    d->logits = take_values(a, out * (uint64_t)c->vocab_size, sizeof(float));
}

struct kv_shape decoder_kv(const struct model *m, int n_layers, int n_pages, enum kv_type type)
{
    const struct model_config *c = &m->config;
    return (struct kv_shape){.n_layers = n_layers,
                             .n_heads = c->n_heads,
                             .n_kv_heads = c->n_kv_heads,
                             .head_dim = c->head_dim,
                             .n_pages = n_pages,
                             .type = type,
                             .scale = ((const struct decoder *)m)->attention_scale};
}

int decoder_q_dim(const struct model *m) { return m->config.n_heads * m->config.head_dim; }

static uint64_t angles(const struct model *m, int max_rows)
{
    return (uint64_t)max_rows * (uint64_t)m->config.rope_dim / 2;
}

uint64_t decoder_reserve_cost(const struct model *m, int max_rows)
{
    return 2 * mem_cost(angles(m, max_rows) * sizeof(float));
}

int decoder_reserve(struct decoder *d, int max_rows)
{
    d->cosine = mem_array(d->base.bind.mem, angles(&d->base, max_rows), sizeof *d->cosine);
    d->sine = mem_array(d->base.bind.mem, angles(&d->base, max_rows), sizeof *d->sine);
    return d->cosine && d->sine ? OK : ERR_MEM_LOAD;
}

/* --- forward ------------------------------------------------------------------------------------------- */

/* Radians per position of pair i. */
static double frequency_of(const struct decoder *d, size_t i)
{
    return d->divisors ? d->frequency[i] / (double)d->divisors[i] : d->frequency[i];
}

/* Cosine and sine of every angle of the step, in double, rounded once. */
void decoder_turn(struct decoder *d, const struct batch *b)
{
    size_t half = (size_t)d->rope.dim / 2;
    for (size_t t = 0; t < (size_t)b->n; t++)
        for (size_t i = 0; i < half; i++) {
            double sine, cosine;
            num_sincos64(b->pos[t][rope_axis(&d->rope, (int)i)] * frequency_of(d, i), &sine, &cosine);
            d->cosine[t * half + i] = (float)(cosine * d->rope.magnitude);
            d->sine[t * half + i] = (float)(sine * d->rope.magnitude);
        }
}

void decoder_begin(struct model *m, const struct batch *b)
{
    struct decoder *d = (struct decoder *)m;
    int n = b->n, dim = m->config.dim;
    struct op_list ops = {0};
    add_op(&ops, OP_EMBED, n, dim, .y = d->x, .w = d->embedding, .ids = b->tokens);
    if (b->features) add_op(&ops, OP_FEATURES, n, dim, .y = d->x, .features = b->features);
    backend_run_list(m->bind.be, &ops);
    decoder_turn(d, b);
}

/* Turns the columns of q or k, which are of n rows of heads. */
static void turn(const struct decoder *d, const struct attention *w, struct handle y, int n, int heads,
                 struct op_list *ops)
{
    const struct model_config *c = &d->base.config;
    if (w->unturned && !d->paired) return;
    add_op(ops, OP_ROPE, n, heads * c->head_dim, .y = y, .cosine = w->unturned ? NULL : d->cosine, .sine = d->sine,
           .heads = heads, .rot = c->rope_dim, .paired = d->paired);
}

/* Norms and turns k, and appends k and v, with their biases. */
static void append(const struct decoder *d, const struct batch *b, const struct attention *w, int layer,
                   struct op_list *ops)
{
    const struct model_config *c = &d->base.config;
    int n = b->n, heads = c->n_kv_heads, kv_dim = heads * c->head_dim;
    const float *k_bias = decoder_bias(d, w, 1), *v_bias = decoder_bias(d, w, 2);
    if (k_bias) add_op(ops, OP_BIAS, n, kv_dim, .y = d->k, .bias = k_bias);
    if (v_bias) add_op(ops, OP_BIAS, n, kv_dim, .y = d->v, .bias = v_bias);
    if (w->k_norm)
        add_op(ops, OP_RMSNORM, n * heads, c->head_dim, .y = d->k, .x = d->k, .vector = w->k_norm, .eps = c->eps);
    turn(d, w, d->k, n, heads, ops);
    add_op(ops, OP_KV_APPEND, n, kv_dim, .x = d->k, .z = d->v, .kv = b->kv, .layer = layer);
}

void decoder_remember(const struct decoder *d, const struct batch *b, const struct attention *w, int layer,
                      struct op_list *ops)
{
    add_op(ops, OP_MATMUL, b->n, d->base.config.dim, .x = d->h, .products = {product(d->k, w->k), product(d->v, w->v)});
    append(d, b, w, layer, ops);
}

void decoder_attend(const struct decoder *d, const struct batch *b, const struct attention *w, int layer,
                    struct op_list *ops)
{
    const struct model_config *c = &d->base.config;
    int n = b->n, dim = c->dim, head = c->head_dim, q_dim = c->n_heads * head;
    struct op products = {OP_MATMUL, n, dim, .x = d->h,
                          .products = {product(d->q, w->q), product(d->k, w->k), product(d->v, w->v)}};
    if (w->gate) products.products[3] = product(d->gate, w->gate);
    add_op(ops, OP_RMSNORM, n, dim, .y = d->h, .x = d->x, .vector = w->norm, .eps = c->eps);
    ops_append(ops, &products);
    const float *q_bias = decoder_bias(d, w, 0);
    if (q_bias) add_op(ops, OP_BIAS, n, q_dim, .y = d->q, .bias = q_bias);
    if (w->q_norm)
        add_op(ops, OP_RMSNORM, n * c->n_heads, head, .y = d->q, .x = d->q, .vector = w->q_norm, .eps = c->eps);
    turn(d, w, d->q, n, c->n_heads, ops);
    append(d, b, w, layer, ops);
    add_op(ops, OP_ATTENTION, n, q_dim, .y = d->o, .x = d->q, .kv = b->kv, .layer = layer);
    if (w->gate) add_op(ops, OP_GATE, n, q_dim, .y = d->o, .x = d->gate);
    add_op(ops, OP_MATMUL, n, q_dim, .x = d->o, .products = {product(d->h, w->o)});
    add_op(ops, OP_ADD, n, dim, .y = d->x, .x = d->h);
}

void decoder_feed_forward(const struct decoder *d, const struct dense *w, int ffn_dim, int n, struct op_list *ops)
{
    int dim = d->base.config.dim;
    add_op(ops, OP_RMSNORM, n, dim, .y = d->h, .x = d->x, .vector = w->norm, .eps = d->base.config.eps);
    add_op(ops, OP_MATMUL, n, dim, .x = d->h, .products = {product(d->gate, w->gate), product(d->up, w->up)});
    add_op(ops, OP_SWIGLU, n, ffn_dim, .y = d->gate, .x = d->up);
    add_op(ops, OP_MATMUL, n, ffn_dim, .x = d->gate, .products = {product(d->h, w->down)});
    add_op(ops, OP_ADD, n, dim, .y = d->x, .x = d->h);
}

void decoder_head(struct model *m, const struct batch *b, int first, int n)
{
    struct decoder *d = (struct decoder *)m;
    struct op_list ops = {0};
    int dim = m->config.dim;
    if (first == 0 && b->n_out) {
        add_op(&ops, OP_PICK, b->n_out, dim, .y = d->last, .x = d->x, .ids = b->out);
        add_op(&ops, OP_RMSNORM, b->n_out, dim, .y = d->last, .x = d->last, .vector = d->output_norm,
               .eps = m->config.eps);
    }
    if (b->n_logits)
        add_op(&ops, OP_MATMUL, b->n_logits, dim, .x = d->last, .products = {{d->logits, decoder_output(m), first, n}});
    backend_run_list(m->bind.be, &ops);
}

struct outputs decoder_end(const struct model *m)
{
    const struct decoder *d = (const struct decoder *)m;
    return (struct outputs){.logits = d->logits, .hidden = d->last};
}

const struct weight *decoder_output(const struct model *m)
{
    const struct decoder *d = (const struct decoder *)m;
    return d->output ? d->output : d->embedding;
}
