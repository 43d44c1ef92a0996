/* SPDX-License-Identifier: MIT
 *
 * Attention of an image encoder, whose rows all see each other.
 *
 * The sums are those of a language model's attention with an f32 cache: pages of 32 keys, a softmax for each span of
 * 512 keys, merged in order. Here rows are many and the keys are complete, so a tile of rows and a head are one piece
 * of work that computes and merges its spans one after the other; nothing is left to merge afterwards. Keys and values
 * are stored by head, so that the tiles of one head, which follow each other, find them in the processor's cache.
 */
#include "compute/cpu/cpu.h"

#include <math.h>
#include <string.h>

enum { SPAN_PAGES = 16, TILE_ROWS = 32 };

/* --- keys and values ---------------------------------------------------------------------------------------- */

/* [n_heads][pages]: keys [KV_PAGE, head_dim], values [KV_PAGE, head_dim], laid out as in a page of the KV cache; then
 * the scratch of each thread. */

static size_t page_count(const struct heads *s) { return ((size_t)s->rows + KV_PAGE - 1) / KV_PAGE; }
static size_t page_floats(const struct heads *s) { return (size_t)KV_PAGE * (size_t)s->head_dim; }
static size_t head_floats(const struct heads *s) { return page_count(s) * 2 * page_floats(s); }

/* Scratch of one thread: p [TILE_ROWS, KV_PAGE], acc [TILE_ROWS, head_dim]. */
static size_t scratch_floats(const struct heads *s) { return (size_t)TILE_ROWS * (size_t)(KV_PAGE + s->head_dim); }

uint64_t cpu_heads_size(const struct backend *b, const struct heads *s)
{
    uint64_t pages = ((uint64_t)s->rows + KV_PAGE - 1) / KV_PAGE, dim = (uint64_t)s->head_dim;
    return (uint64_t)s->n_heads * pages * 2 * KV_PAGE * dim +
           (uint64_t)pool_threads(((const struct cpu *)b)->pool) * TILE_ROWS * (KV_PAGE + dim);
}

struct keep {
    float *kept;
    const float *k, *v;
    int first, n;
    const struct heads *s;
};

static void keep_heads(void *arg, int thread, int n_threads)
{
    const struct keep *a = arg;
    const struct heads *s = a->s;
    size_t dim = (size_t)s->head_dim, heads = (size_t)s->n_heads;
    int begin, end;
    pool_share(s->n_heads, thread, n_threads, &begin, &end);
    for (size_t h = (size_t)begin; h < (size_t)end; h++)
        for (size_t t = 0; t < (size_t)a->n; t++) {
            size_t row = (size_t)a->first + t;
            float *page = a->kept + h * head_floats(s) + row / KV_PAGE * 2 * page_floats(s);
            cpu_lay_floats(page, true, (int)(row % KV_PAGE), a->k + (t * heads + h) * dim, s->head_dim);
            cpu_lay_floats(page + page_floats(s), false, (int)(row % KV_PAGE), a->v + (t * heads + h) * dim,
                           s->head_dim);
        }
}

void cpu_keep(struct cpu *c, const struct op *op)
{
    struct keep a = {cpu_at(c, op->y), cpu_at(c, op->x), cpu_at(c, op->z), op->first, op->n, &op->attended};
    cpu_run(c, op->n > 1, keep_heads, &a);
}

/* --- attention ------------------------------------------------------------------------------------------------ */

struct attend {
    struct cpu *c;
    float *o;
    const float *q;
    float *kept;
    int n;
    const struct heads *s;
};

/* One tile of one head. */
struct tile_of {
    const struct attend *a;
    int first, n, head;
    float *p, *acc;
};

static size_t row_of(const struct tile_of *t, int i)
{
    const struct heads *s = t->a->s;
    return ((size_t)(t->first + i) * (size_t)s->n_heads + (size_t)t->head) * (size_t)s->head_dim;
}

/* Computes the softmaxes of one span. */
static void attend_span(const struct tile_of *t, struct query *queries, int page, int end)
{
    const struct heads *s = t->a->s;
    const struct kernels *k = &t->a->c->k;
    float scale = (float)(1.0 / sqrt((double)s->head_dim));
    memset(t->acc, 0, (size_t)t->n * (size_t)s->head_dim * sizeof *t->acc);
    for (int i = 0; i < t->n; i++)
        queries[i] = (struct query){.q = t->a->q + row_of(t, i), .acc = t->acc + i * s->head_dim, .max = -INFINITY};
    for (; page < end; page++) {
        const float *keys = t->a->kept + (size_t)t->head * head_floats(s) + (size_t)page * 2 * page_floats(s);
        for (int i = 0; i < t->n; i++) queries[i].seen = min_int(KV_PAGE, s->rows - page * KV_PAGE);
        k->scores(t->p, queries, t->n, keys, s->head_dim, scale);
        k->soften(t->p, queries, t->n, s->head_dim);
        k->values(t->p, queries, t->n, keys + page_floats(s), s->head_dim);
    }
}

static void attend_tile(const struct tile_of *t)
{
    int dim = t->a->s->head_dim, pages = (int)page_count(t->a->s);
    struct query total[TILE_ROWS], queries[TILE_ROWS];
    for (int i = 0; i < t->n; i++) {
        total[i] = (struct query){.acc = t->a->o + row_of(t, i), .max = -INFINITY};
        memset(total[i].acc, 0, (size_t)dim * sizeof *total[i].acc);
    }
    for (int page = 0; page < pages; page += SPAN_PAGES) {
        attend_span(t, queries, page, min_int(page + SPAN_PAGES, pages));
        for (int i = 0; i < t->n; i++) cpu_softmax_merge(&total[i], &queries[i], dim);
    }
    for (int i = 0; i < t->n; i++) cpu_softmax_end(&total[i], dim);
}

static int tile_count(const struct attend *a) { return (a->n + TILE_ROWS - 1) / TILE_ROWS; }

static void attend_tiles(void *arg, int thread, int n_threads)
{
    const struct attend *a = arg;
    const struct heads *s = a->s;
    int64_t begin, end, tiles = tile_count(a);
    float *p = a->kept + (size_t)s->n_heads * head_floats(s) + (size_t)thread * scratch_floats(s);
    while (pool_claim(&a->c->claimed, tiles * s->n_heads, n_threads, &begin, &end))
        for (; begin < end; begin++) {
            int first = (int)(begin % tiles) * TILE_ROWS;
            attend_tile(&(struct tile_of){a, first, min_int(TILE_ROWS, a->n - first), (int)(begin / tiles), p,
                                          p + TILE_ROWS * KV_PAGE});
        }
}

void cpu_attend_all(struct cpu *c, const struct op *op)
{
    struct attend a = {c, cpu_at(c, op->y), cpu_at(c, op->x), cpu_at(c, op->z), op->n, &op->attended};
    cpu_run(c, true, attend_tiles, &a);
}
