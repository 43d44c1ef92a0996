/* SPDX-License-Identifier: MIT
 *
 * Mixture of experts: which experts each row gets, its values brought to their places, and the results brought back.
 *
 * Choosing is a few hundred operations a row, the same scalar code in every build. A row's experts are ascending, and so are the rows of
 * an expert, so that no sum depends on which rows a batch has beside this one.
 */
#include "compute/cpu/cpu.h"

#include "base/num.h"

#include <math.h>
#include <string.h>

/* A place that has been chosen; scores are none or positive by then, or NaN. */
static const float TAKEN = -1;

static void softmax(float *x, int n)
{
    float max = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++)
        if (x[i] > max) max = x[i];
    for (int i = 0; i < n; i++) sum += x[i] = num_exp(x[i] - max);
    for (int i = 0; i < n; i++) x[i] /= sum;
}

/* The place of the largest score that is not taken, the first among equals. With NaN among them it is any that is not taken. */
static int take_largest(float *x, int n, float *value)
{
    int best = -1;
    for (int i = 0; i < n; i++)
        if (x[i] != TAKEN && (best < 0 || x[i] > x[best])) best = i;
    *value = x[best];
    x[best] = TAKEN;
    return best;
}

/* One row's experts, ascending, and their shares. */
static void choose(float *scores, int n_experts, int n_used, bool renormalise, int32_t *expert, float *share)
{
    float sum = 0;
    softmax(scores, n_experts);
    for (int i = 0; i < n_used; i++) {
        float value;
        int chosen = take_largest(scores, n_experts, &value), at = i;
        for (; at > 0 && expert[at - 1] > chosen; at--) expert[at] = expert[at - 1], share[at] = share[at - 1];
        expert[at] = chosen;
        share[at] = value;
    }
    for (int i = 0; i < n_used; i++) sum += share[i];
    for (int i = 0; renormalise && i < n_used; i++) share[i] /= sum;
}

/* r->place holds experts: counts their places and numbers them. */
static void number_places(struct route *r, int n)
{
    memset(r->first, 0, ((size_t)r->n_experts + 1) * sizeof *r->first);
    for (int i = 0; i < n * r->n_used; i++) r->first[r->place[i] + 1]++;
    for (int e = 0; e < r->n_experts; e++) r->first[e + 1] += r->first[e];
    for (int i = 0; i < n * r->n_used; i++) r->place[i] = r->first[r->place[i]]++;
    /* each has moved to where the next one begins */
    memmove(r->first + 1, r->first, (size_t)r->n_experts * sizeof *r->first);
    r->first[0] = 0;
}

void cpu_route(struct backend *b, float *scores, int n, bool renormalise, struct route *r)
{
    (void)b;
    for (int t = 0; t < n; t++)
        choose(scores + t * r->n_experts, r->n_experts, r->n_used, renormalise, r->place + t * r->n_used, r->share + t * r->n_used);
    number_places(r, n);
}

/* --- to the places and back ------------------------------------------------------------------------------ */

struct move {
    struct cpu *c;
    float *y;
    const float *x;
    const struct route *r;
    int n, dim;
};

static void gather_rows(void *arg, int thread, int n_threads)
{
    const struct move *m = arg;
    size_t dim = (size_t)m->dim;
    int begin, end, used = m->r->n_used;
    pool_share(m->n, thread, n_threads, &begin, &end);
    for (int i = begin * used; i < end * used; i++) memcpy(m->y + (size_t)m->r->place[i] * dim, m->x + (size_t)(i / used) * dim, dim * sizeof *m->y);
}

static void combine_rows(void *arg, int thread, int n_threads)
{
    const struct move *m = arg;
    size_t dim = (size_t)m->dim;
    int begin, end, used = m->r->n_used;
    pool_share(m->n, thread, n_threads, &begin, &end);
    memset(m->y + (size_t)begin * dim, 0, (size_t)(end - begin) * dim * sizeof *m->y);
    for (int i = begin * used; i < end * used; i++)
        m->c->k.add_scaled(m->y + (size_t)(i / used) * dim, m->x + (size_t)m->r->place[i] * dim, m->r->share[i], m->dim);
}

static void move(struct backend *b, float *y, const float *x, const struct route *r, int n, int dim, pool_fn *fn)
{
    struct move m = {(struct cpu *)b, y, x, r, n, dim};
    cpu_run(m.c, n >= 8, fn, &m);
}

void cpu_gather(struct backend *b, float *y, const float *x, const struct route *r, int n, int dim) { move(b, y, x, r, n, dim, gather_rows); }
void cpu_combine(struct backend *b, float *y, const float *x, const struct route *r, int n, int dim) { move(b, y, x, r, n, dim, combine_rows); }
