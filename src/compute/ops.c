/* SPDX-License-Identifier: MIT
 *
 * The table of operations, and their costs.
 */
#include "compute/ops.h"

/* A list has room for a layer of every model here; overflow is a bug of a model, which every test of that model finds.
 */
void ops_append(struct op_list *list, const struct op *op)
{
    if (list->n == OPS_MOST) __builtin_trap();
    list->at[list->n++] = *op;
}

/* --- costs ----------------------------------------------------------------------------------------------------- */

static struct op_cost cost_none(const struct op *op, const struct op_facts *f)
{
    return (void)op, (void)f, (struct op_cost){0};
}

static struct op_cost cost_embed(const struct op *op, const struct op_facts *f)
{
    return (struct op_cost){.bytes = (double)f->weights->bytes / f->weights->rows * op->n};
}

/* No more experts are read than there are places; only the route knows which ones, and it may be on a device. */
static struct op_cost cost_products(const struct op *op, const struct op_facts *f)
{
    struct op_cost cost = {0};
    int experts = op->route ? op->route->n_experts : 1;
    double busy = op->n < experts ? (double)op->n / experts : 1;
    for (int i = 0; i < OP_PRODUCTS && op->products[i].w; i++) {
        const struct weight_facts *w = &f->weights[i];
        int part = op->products[i].rows, rows = part ? part : w->rows / experts;
        cost.macs += (double)op->n * w->cols * rows;
        cost.bytes += (double)w->bytes * (part ? (double)part / w->rows : busy);
    }
    return cost;
}

/* Bytes of one position's keys and values in one layer. */
static double position_bytes(const struct kv_shape *kv)
{
    static const double element[] = {[KV_F16] = 2, [KV_F32] = 4, [KV_Q8] = 1.125};
    return 2.0 * kv->n_kv_heads * kv->head_dim * element[kv->type];
}

static struct op_cost cost_append(const struct op *op, const struct op_facts *f)
{
    return (struct op_cost){.bytes = op->n * position_bytes(&f->kv)};
}

static struct op_cost cost_attention(const struct op *op, const struct op_facts *f)
{
    /* pairs of a row and a position that meet; positions read, once for all rows of a sequence */
    double pairs = 0, positions = 0;
    for (int i = 0; i < op->n; i++) {
        pairs += op->kv[i].index + 1.0;
        if (i + 1 == op->n || op->kv[i + 1].pages != op->kv[i].pages) positions += op->kv[i].index + 1.0;
    }
    return (struct op_cost){pairs * 2 * f->kv.n_heads * f->kv.head_dim, positions * position_bytes(&f->kv)};
}

static struct op_cost cost_convolve(const struct op *op, const struct op_facts *f)
{
    (void)f;
    double rows = 2 * (TAPS - 1) * op->n_runs; /* of the states, read and written */
    return (struct op_cost){(double)TAPS * op->n * op->dim, rows * op->dim * sizeof(float)};
}

static struct op_cost cost_delta(const struct op *op, const struct op_facts *f)
{
    (void)f;
    double matrices = (double)op->dim * op->linear->head_dim; /* elements of the states of all heads */
    return (struct op_cost){4 * op->n * matrices, 2 * op->n_runs * matrices * sizeof(float)};
}

static struct op_cost cost_keep(const struct op *op, const struct op_facts *f)
{
    (void)f;
    return (struct op_cost){.bytes = 2 * sizeof(float) * (double)op->n * op->dim};
}

static struct op_cost cost_attend_all(const struct op *op, const struct op_facts *f)
{
    double all = (double)op->attended.rows * op->dim;
    (void)f;
    return (struct op_cost){2 * op->n * all, 2 * sizeof(float) * all};
}

const struct op_row op_rows[OP_KINDS] = {
#define OP_ROW(kind, function, y, x, z, naming, cost) [OP_##kind] = {#function, y, x, z, naming, cost_##cost},
    EACH_OP(OP_ROW)
#undef OP_ROW
};
