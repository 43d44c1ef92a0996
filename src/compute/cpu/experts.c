/* SPDX-License-Identifier: MIT
 *
 * Mixture of experts: chooses the experts of each row, brings its values to their places, and brings the results back.
 *
 * Choosing is a few hundred operations per row, the same scalar code in every build. A row's experts are ascending, and
 * so are the rows of an expert, so that no sum depends on the other rows of a batch.
 */
#include "compute/cpu/cpu.h"

#include "base/num.h"

#include <math.h>
#include <string.h>

/* Marks a place that has been chosen; scores are at least zero, or NaN, at that time. */
static const float TAKEN = -1;

static void softmax(float *x, int n)
{
    float max = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++)
        if (x[i] > max) max = x[i];
    for (int i = 0; i < n; i++) sum += x[i] = num_exp(x[i] - max);
    for (int i = 0; i < n; i++) x[i] /= sum;
}

/* Takes the largest score that is not taken, the first among equals; returns its place. If there are NaNs, any place
 * that is not taken. */
static int take_largest(float *x, int n, float *value)
{
    int best = -1;
    for (int i = 0; i < n; i++)
        if (x[i] != TAKEN && (best < 0 || x[i] > x[best])) best = i;
    *value = x[best];
    x[best] = TAKEN;
    return best;
}

/* Chooses one row's experts, ascending, and their shares. */
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

/* `place` holds experts on entry: counts the places of each expert, and numbers them. */
static void number_places(int32_t *first, int32_t *place, int n_experts, int n_places)
{
    memset(first, 0, ((size_t)n_experts + 1) * sizeof *first);
    for (int i = 0; i < n_places; i++) first[place[i] + 1]++;
    for (int e = 0; e < n_experts; e++) first[e + 1] += first[e];
    for (int i = 0; i < n_places; i++) place[i] = first[place[i]]++;
    /* each entry is now the beginning of the next expert */
    memmove(first + 1, first, (size_t)n_experts * sizeof *first);
    first[0] = 0;
}

void cpu_route(struct cpu *c, const struct op *op)
{
    const struct route *r = op->route;
    float *scores = cpu_at(c, op->y), *share = cpu_at(c, r->share);
    int32_t *place = cpu_ints(c, r->place);
    for (int t = 0; t < op->n; t++)
        choose(scores + t * r->n_experts, r->n_experts, r->n_used, op->renormalise, place + t * r->n_used,
               share + t * r->n_used);
    number_places(cpu_ints(c, r->first), place, r->n_experts, op->n * r->n_used);
}

/* --- to the places and back ------------------------------------------------------------------------------ */

struct move {
    struct cpu *c;
    float *y;
    const float *x, *share; /* share [n, n_used] */
    const int32_t *place;   /* [n, n_used] */
    int n, n_used, dim;
};

static void gather_rows(void *arg, int thread, int n_threads)
{
    const struct move *m = arg;
    size_t dim = (size_t)m->dim;
    int begin, end, used = m->n_used;
    pool_share(m->n, thread, n_threads, &begin, &end);
    for (int i = begin * used; i < end * used; i++)
        memcpy(m->y + (size_t)m->place[i] * dim, m->x + (size_t)(i / used) * dim, dim * sizeof *m->y);
}

static void combine_rows(void *arg, int thread, int n_threads)
{
    const struct move *m = arg;
    size_t dim = (size_t)m->dim;
    int begin, end, used = m->n_used;
    pool_share(m->n, thread, n_threads, &begin, &end);
    memset(m->y + (size_t)begin * dim, 0, (size_t)(end - begin) * dim * sizeof *m->y);
    for (int i = begin * used; i < end * used; i++)
        m->c->k.add_scaled(m->y + (size_t)(i / used) * dim, m->x + (size_t)m->place[i] * dim, m->share[i], m->dim);
}

static void move(struct cpu *c, const struct op *op, pool_fn *fn)
{
    const struct route *r = op->route;
    struct move m = {c,     cpu_at(c, op->y), cpu_at(c, op->x), cpu_at(c, r->share), cpu_ints(c, r->place),
                     op->n, r->n_used,        op->dim};
    cpu_run(c, op->n >= 8, fn, &m);
}

void cpu_gather(struct cpu *c, const struct op *op) { move(c, op, gather_rows); }
void cpu_combine(struct cpu *c, const struct op *op) { move(c, op, combine_rows); }
