/* SPDX-License-Identifier: MIT
 *
 * The block that drafts tokens.
 */
#include "models/draft.h"

#include <stdio.h>

/* The output head is a third of a small model. Tokens with low ids are the most frequent ones, so only these are
 * drafted. */
enum { DRAFTED_ROWS = 1 << 15 };

/* --- weights ------------------------------------------------------------------------------------------- */

static const struct tensor *part_of(const struct checkpoint *ck, int l, const char *part)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%d.nextn.%s.weight", l, part);
    return ck_find(ck, name);
}

bool draft_there(const struct checkpoint *ck, int l)
{
    return part_of(ck, l, "eh_proj") && !part_of(ck, l, "embed_tokens") && !part_of(ck, l, "shared_head_head");
}

int draft_bind(struct draft *w, struct decoder *d, struct checkpoint *ck, int l, struct error *err)
{
    const struct model_config *c = &d->base.config;
    int dim = c->dim;
    bool own = part_of(ck, l, "shared_head_norm") != NULL || w->head_norm;
    int status = bind_matrix(&d->base.bind, ck, "blk.%d.nextn.eh_proj.weight", l, 2 * dim, dim, &w->join, err);
    if (!status) status = decoder_bind_norm(d, ck, "blk.%d.nextn.enorm.weight", l, dim, &w->token_norm, err);
    if (!status) status = decoder_bind_norm(d, ck, "blk.%d.nextn.hnorm.weight", l, dim, &w->hidden_norm, err);
    if (!status && own)
        status = decoder_bind_norm(d, ck, "blk.%d.nextn.shared_head_norm.weight", l, dim, &w->head_norm, err);
    if (!status) status = decoder_bind_attention(d, ck, l, true, &w->attention, err);
    if (!status) status = decoder_bind_norm(d, ck, "blk.%d.post_attention_norm.weight", l, dim, &w->ffn.norm, err);
    if (!status) status = decoder_bind_dense(d, ck, l, c->ffn_dim, &w->ffn, err);
    return status;
}

void draft_drop(struct draft *w, struct decoder *d)
{
    decoder_drop_attention(d, &w->attention);
    decoder_drop_dense(d, &w->ffn);
    decoder_drop(d, (float *[]){w->token_norm, w->hidden_norm, w->head_norm}, 3, &w->join, 1);
}

/* Only what the keys and values depend on. */
void draft_each(const struct draft *w, const struct decoder *d, model_part *fn, void *context)
{
    const struct attention *a = &w->attention;
    const struct weight *matrices[] = {w->join, a->k, a->v};
    decoder_each_vector(fn, context, w->token_norm, d->base.config.dim);
    decoder_each_vector(fn, context, w->hidden_norm, d->base.config.dim);
    decoder_each_vector(fn, context, a->norm, d->base.config.dim);
    decoder_each_vector(fn, context, a->k_norm, d->base.config.head_dim);
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) fn(context, matrices[i], (struct bytes){0});
}

void draft_lay_out(struct draft *w, const struct decoder *d, struct arena *a, int max_rows)
{
    w->rows = min_int(d->base.config.vocab_size, DRAFTED_ROWS);
    w->joined = take_values(a, 2 * (uint64_t)max_rows * (uint64_t)d->base.config.dim, sizeof(float));
}

/* --- forward ------------------------------------------------------------------------------------------- */

/* out = join of the norms of the rows' embeddings and of the hidden states in o */
static void join(const struct draft *w, const struct decoder *d, const struct batch *b, struct handle out,
                 struct op_list *ops)
{
    int n = b->n, dim = d->base.config.dim;
    float eps = d->base.config.eps;
    add_op(ops, OP_EMBED, n, dim, .y = d->q, .w = d->embedding, .ids = b->tokens);
    if (b->features) add_op(ops, OP_FEATURES, n, dim, .y = d->q, .features = b->features);
    add_op(ops, OP_RMSNORM, n, dim, .y = d->q, .x = d->q, .vector = w->token_norm, .eps = eps);
    add_op(ops, OP_RMSNORM, n, dim, .y = d->o, .x = d->o, .vector = w->hidden_norm, .eps = eps);
    add_op(ops, OP_JOIN, n, 2 * dim, .y = w->joined, .x = d->q, .z = d->o);
    add_op(ops, OP_MATMUL, n, 2 * dim, .x = w->joined, .products = {product(out, w->join)});
}

void draft_remember(const struct draft *w, struct decoder *d, const struct batch *b)
{
    struct op_list ops = {0};
    int n = b->n, dim = d->base.config.dim;
    float eps = d->base.config.eps;
    add_op(&ops, OP_RMSNORM, n, dim, .y = d->h, .x = d->x, .vector = d->output_norm, .eps = eps);
    add_op(&ops, OP_LATER, n, dim, .y = d->o, .x = d->h, .runs = b->runs, .n_runs = b->n_runs, .first = (int)w->at);
    join(w, d, b, d->h, &ops);
    add_op(&ops, OP_RMSNORM, n, dim, .y = d->h, .x = d->h, .vector = w->attention.norm, .eps = eps);
    decoder_remember(d, b, &w->attention, w->layer, &ops);
    backend_run_list(d->base.bind.be, &ops);
}

static int32_t largest(const float *logits, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

void draft_make(const struct draft *w, struct decoder *d, const struct batch *b, int32_t *drafts)
{
    struct backend *be = d->base.bind.be;
    struct op_list begin = {0}, ops = {0};
    int n = b->n, dim = d->base.config.dim;
    add_op(&begin, OP_PICK, n, dim, .y = d->o, .x = d->last, .ids = b->out);
    join(w, d, b, d->x, &begin);
    decoder_turn(d, b);
    decoder_attend(d, b, &w->attention, w->layer, &ops);
    decoder_feed_forward(d, &w->ffn, d->base.config.ffn_dim, n, &ops);
    add_op(&ops, OP_RMSNORM, n, dim, .y = d->h, .x = d->x, .vector = w->head_norm ? w->head_norm : d->output_norm,
           .eps = d->base.config.eps);
    /* Of the logits of the last step nothing is needed any more. A part of a product has the whole weight's stride. */
    add_op(&ops, OP_MATMUL, n, dim, .x = d->h, .products = {{d->logits, decoder_output(&d->base), 0, w->rows}});
    backend_run_list(be, &begin);
    backend_run_list(be, &ops);
    const float *logits = be->ops->result(be, d->logits);
    for (int i = 0; i < n; i++) drafts[i] = largest(logits + (size_t)i * (size_t)d->base.config.vocab_size, w->rows);
}
