/* SPDX-License-Identifier: MIT
 *
 * Operations that compute each row by itself: threads get equal ranges of rows.
 *
 * Small operations stay on the calling thread, since a barrier costs more than they do.
 */
#include "compute/cpu/cpu.h"

#include <string.h>

/* An operation with the addresses of its values. */
struct rows {
    struct cpu *c;
    const struct op *op;
    float *y;
    const float *x;
};

/* Runs fn with the row range of each thread; in parallel from about 16 K elements on. */
static void run_rows(struct cpu *c, const struct op *op, pool_fn *fn)
{
    struct rows r = {c, op, cpu_at(c, op->y), cpu_at(c, op->x)};
    cpu_run(c, op->n > 1 && (int64_t)op->n * op->dim > 16384, fn, &r);
}

/* Runs the body for each row t of a thread's range. */
#define EACH_ROW(r, t)                                             \
    const struct rows *r = arg;                                    \
    const struct kernels *k = &r->c->k;                            \
    const struct op *op = r->op;                                   \
    size_t dim = (size_t)op->dim;                                  \
    int begin_, end_;                                              \
    (void)k, (void)dim;                                            \
    pool_share(op->n, thread, n_threads, &begin_, &end_);          \
    for (size_t t = (size_t)begin_; t < (size_t)end_; t++)

static void embed_rows(void *arg, int thread, int n_threads)
{
    EACH_ROW(r, t) {
        const struct weight *w = op->w;
        size_t id = (size_t)op->ids[t];
        unpack_panel_row(w->type->layout, w->panels + id / PANEL_ROWS * w->panel, (int)(id % PANEL_ROWS), w->cols,
                         r->y + t * dim);
    }
}

static void feature_rows(void *arg, int thread, int n_threads)
{
    EACH_ROW(r, t) {
        if (!op->features[t]) continue;
        if (op->adds) k->add(r->y + t * dim, op->features[t] + op->first, op->dim);
        else memcpy(r->y + t * dim, op->features[t] + op->first, dim * sizeof *r->y);
    }
}

static void pick_rows(void *arg, int thread, int n_threads)
{
    EACH_ROW(r, t) memcpy(r->y + t * dim, r->x + (size_t)op->ids[t] * dim, dim * sizeof *r->y);
}

static void rmsnorm_rows(void *arg, int thread, int n_threads)
{
    EACH_ROW(r, t) k->rmsnorm(r->y + t * dim, r->x + t * dim, op->vector, op->dim, op->eps);
}

static void layernorm_rows(void *arg, int thread, int n_threads)
{
    EACH_ROW(r, t) k->layernorm(r->y + t * dim, r->x + t * dim, op->vector, op->bias, op->dim, op->eps);
}

/* Moves the column 2i of the first 2 * half columns to i, and 2i + 1 to i + half. */
static void unpair(float *x, size_t half)
{
    float odd[HEAD_MOST / 2];
    for (size_t i = 0; i < half; i++) {
        odd[i] = x[2 * i + 1];
        x[i] = x[2 * i];
    }
    memcpy(x + half, odd, half * sizeof *x);
}

static void rope_rows(void *arg, int thread, int n_threads)
{
    EACH_ROW(r, t) {
        size_t half = (size_t)op->rot / 2, heads = (size_t)op->heads, head = dim / heads;
        for (size_t h = 0; h < heads; h++) {
            float *x = r->y + t * dim + h * head;
            if (op->paired) unpair(x, half);
            if (op->cosine) k->rope(x, op->cosine + t * half, op->sine + t * half, (int)half);
        }
    }
}

static void swiglu_rows(void *arg, int thread, int n_threads)
{
    EACH_ROW(r, t) k->swiglu(r->y + t * dim, r->x + t * dim, op->dim);
}

static void gate_rows(void *arg, int thread, int n_threads)
{
    EACH_ROW(r, t) k->gate(r->y + t * dim, r->x + t * dim, op->dim);
}

static void join_rows(void *arg, int thread, int n_threads)
{
    EACH_ROW(r, t)
    {
        size_t half = dim / 2, bytes = half * sizeof *r->y;
        memcpy(r->y + t * dim, r->x + t * half, bytes);
        memcpy(r->y + t * dim + half, cpu_at(r->c, op->z) + t * half, bytes);
    }
}

static void add_rows(void *arg, int thread, int n_threads)
{
    EACH_ROW(r, t) k->add(r->y + t * dim, r->x + t * dim, op->dim);
}

static void bias_rows(void *arg, int thread, int n_threads)
{
    EACH_ROW(r, t) k->add(r->y + t * dim, op->bias, op->dim);
}

static void gelu_rows(void *arg, int thread, int n_threads)
{
    EACH_ROW(r, t) k->gelu(r->y + t * dim, op->dim);
}

static void gelu_erf_rows(void *arg, int thread, int n_threads)
{
    EACH_ROW(r, t) k->gelu_erf(r->y + t * dim, op->dim);
}

void cpu_embed(struct cpu *c, const struct op *op) { run_rows(c, op, embed_rows); }
void cpu_features(struct cpu *c, const struct op *op) { run_rows(c, op, feature_rows); }
void cpu_pick(struct cpu *c, const struct op *op) { run_rows(c, op, pick_rows); }
void cpu_rmsnorm(struct cpu *c, const struct op *op) { run_rows(c, op, rmsnorm_rows); }
void cpu_layernorm(struct cpu *c, const struct op *op) { run_rows(c, op, layernorm_rows); }
void cpu_rope(struct cpu *c, const struct op *op) { run_rows(c, op, rope_rows); }
void cpu_swiglu(struct cpu *c, const struct op *op) { run_rows(c, op, swiglu_rows); }
void cpu_gate(struct cpu *c, const struct op *op) { run_rows(c, op, gate_rows); }
void cpu_join(struct cpu *c, const struct op *op) { run_rows(c, op, join_rows); }
void cpu_add(struct cpu *c, const struct op *op) { run_rows(c, op, add_rows); }
void cpu_bias(struct cpu *c, const struct op *op) { run_rows(c, op, bias_rows); }
void cpu_gelu(struct cpu *c, const struct op *op) { run_rows(c, op, gelu_rows); }
void cpu_gelu_erf(struct cpu *c, const struct op *op) { run_rows(c, op, gelu_erf_rows); }
