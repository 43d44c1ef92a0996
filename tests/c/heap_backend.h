/* SPDX-License-Identifier: MIT
 *
 * A device, played: a backend that computes in a heap of its own. An address that it is given says where in the model's scratch it lies,
 * and nothing else; that scratch is NaN, whatever a model might read there, until results arrive, which they do when the test says so. It
 * lets the CPU's backend compute, over the heap. Angles go up with the first rotation of a step.
 */
#ifndef QUERN_HEAP_BACKEND_H
#define QUERN_HEAP_BACKEND_H

#include "session.h"

enum { HEAP_RESULTS = 2 };

struct heap {
    struct backend base;
    struct backend *inner;
    uint8_t *scratch, *memory; /* [bytes] the model's, NaN; the heap */
    uint64_t bytes;
    const float *embedded;     /* of this step: [n, dim] in the heap */
    bool rotated;              /* in this step */
    const float *cosine;       /* of this step, as they went up: [n, rot / 2] */
    struct result results[HEAP_RESULTS]; /* n_results on their way */
    int n_results;
    int attentions;            /* of this step so far: layers begun */
    int added[8], n_added;     /* layers after which rows got something, and what began where */
    int added_from[8];
};

static struct heap *heap_of(struct backend *b) { return (struct heap *)b; }

/* The place in the heap that an address names; n floats must lie in the scratch. */
static float *heap_at(const struct heap *h, const void *p, uint64_t n)
{
    uint64_t offset = (uint64_t)((uintptr_t)p - (uintptr_t)h->scratch);
    CHECK(h->scratch && offset % MEM_ALIGN % sizeof(float) == 0 && offset <= h->bytes && n * sizeof(float) <= h->bytes - offset);
    return (float *)(void *)(h->memory + offset);
}

static void heap_forget(const void *p, uint64_t n) { memset((uint8_t *)(uintptr_t)p, 0xFF, n * sizeof(float)); }

/* Whether nobody has written into the scratch. */
static bool heap_untouched(const struct heap *h)
{
    for (uint64_t i = 0; i < h->bytes; i++)
        if (h->scratch[i] != 0xFF) return false;
    return true;
}

static void heap_upload(const struct heap *h, const float *p, uint64_t n)
{
    memcpy(heap_at(h, p, n), p, n * sizeof *p);
    heap_forget(p, n);
}

static struct route heap_route(const struct heap *h, const struct route *r)
{
    return (struct route){r->n_experts, r->n_used, (int32_t *)(void *)heap_at(h, r->first, (uint64_t)r->n_experts + 1),
                          (int32_t *)(void *)heap_at(h, r->place, 1), heap_at(h, r->share, 1)};
}

/* --- operations ------------------------------------------------------------------------------------------ */

static void heap_embed(struct backend *b, float *y, const struct weight *w, const int32_t *ids, int n)
{
    struct heap *h = heap_of(b);
    int cols = h->inner->ops->weight_facts(h->inner, w).cols;
    h->rotated = false;
    h->attentions = h->n_added = 0;
    float *rows = heap_at(h, y, (uint64_t)n * (uint64_t)cols);
    h->embedded = rows;
    h->inner->ops->embed(h->inner, rows, w, ids, n);
}

static void heap_features(struct backend *b, float *x, const float *const *features, int from, int n, int dim, bool add)
{
    struct heap *h = heap_of(b);
    h->inner->ops->features(h->inner, heap_at(h, x, (uint64_t)n * (uint64_t)dim), features, from, n, dim, add);
    if (!add) return;
    h->added_from[h->n_added] = from;
    h->added[h->n_added++] = h->attentions - 1;
}

static void heap_pick(struct backend *b, float *y, const float *x, const int32_t *rows, int n, int dim)
{
    struct heap *h = heap_of(b);
    h->inner->ops->pick(h->inner, heap_at(h, y, (uint64_t)n * (uint64_t)dim), heap_at(h, x, 1), rows, n, dim);
}

static void heap_rmsnorm(struct backend *b, float *y, const float *x, const float *w, int n, int dim, float eps)
{
    struct heap *h = heap_of(b);
    uint64_t size = (uint64_t)n * (uint64_t)dim;
    h->inner->ops->rmsnorm(h->inner, heap_at(h, y, size), heap_at(h, x, size), w, n, dim, eps);
}

static void heap_matmul(struct backend *b, const struct product *p, int n_products, const float *x, int n, const struct route *r)
{
    struct heap *h = heap_of(b);
    struct product own[4];
    struct route route = r ? heap_route(h, r) : (struct route){0};
    CHECK(n_products <= 4);
    for (int i = 0; i < n_products; i++) own[i] = (struct product){heap_at(h, p[i].y, (uint64_t)n), p[i].w, p[i].first, p[i].rows};
    h->inner->ops->matmul(h->inner, own, n_products, heap_at(h, x, (uint64_t)n), n, r ? &route : NULL);
}

static void heap_choose(struct backend *b, float *scores, int n, bool renormalise, struct route *r)
{
    struct heap *h = heap_of(b);
    struct route route = heap_route(h, r);
    h->inner->ops->route(h->inner, heap_at(h, scores, (uint64_t)n), n, renormalise, &route);
}

static void heap_gather(struct backend *b, float *y, const float *x, const struct route *r, int n, int dim)
{
    struct heap *h = heap_of(b);
    struct route route = heap_route(h, r);
    h->inner->ops->gather(h->inner, heap_at(h, y, 1), heap_at(h, x, 1), &route, n, dim);
}

static void heap_combine(struct backend *b, float *y, const float *x, const struct route *r, int n, int dim)
{
    struct heap *h = heap_of(b);
    struct route route = heap_route(h, r);
    h->inner->ops->combine(h->inner, heap_at(h, y, 1), heap_at(h, x, 1), &route, n, dim);
}

static void heap_rope(struct backend *b, float *x, const float *cosine, const float *sine, int n, int heads, int head_dim, int rot)
{
    struct heap *h = heap_of(b);
    uint64_t angles = (uint64_t)n * (uint64_t)rot / 2;
    if (!h->rotated) {
        heap_upload(h, cosine, angles);
        heap_upload(h, sine, angles);
        h->cosine = heap_at(h, cosine, angles);
    }
    h->rotated = true;
    h->inner->ops->rope(h->inner, heap_at(h, x, (uint64_t)(n * heads * head_dim)), heap_at(h, cosine, angles), heap_at(h, sine, angles), n, heads,
                        head_dim, rot);
}

static void heap_kv_append(struct backend *b, int layer, const float *k, const float *v, const struct kv_row *rows, int n)
{
    struct heap *h = heap_of(b);
    h->inner->ops->kv_append(h->inner, layer, heap_at(h, k, 1), heap_at(h, v, 1), rows, n);
}

static void heap_attention(struct backend *b, int layer, float *o, const float *q, const struct kv_row *rows, int n)
{
    struct heap *h = heap_of(b);
    h->attentions++;
    h->inner->ops->attention(h->inner, layer, heap_at(h, o, 1), heap_at(h, q, 1), rows, n);
}

static void heap_swiglu(struct backend *b, float *gate, const float *up, int n, int dim)
{
    struct heap *h = heap_of(b);
    h->inner->ops->swiglu(h->inner, heap_at(h, gate, (uint64_t)n * (uint64_t)dim), heap_at(h, up, 1), n, dim);
}

static void heap_add(struct backend *b, float *x, const float *y, int n, int dim)
{
    struct heap *h = heap_of(b);
    h->inner->ops->add(h->inner, heap_at(h, x, (uint64_t)n * (uint64_t)dim), heap_at(h, y, 1), n, dim);
}

/* --- the device ------------------------------------------------------------------------------------------- */

static void heap_adopt(struct backend *b, void *base, uint64_t bytes)
{
    struct heap *h = heap_of(b);
    CHECK(!h->scratch);
    h->scratch = base;
    h->bytes = bytes;
    h->memory = aligned_alloc(MEM_ALIGN, (bytes + MEM_ALIGN - 1) / MEM_ALIGN * MEM_ALIGN);
    if (!h->memory) exit(2);
    memset(base, 0xFF, bytes);
    memset(h->memory, 0xFF, bytes);
}

static void heap_submit(struct backend *b, const struct result *results, int n)
{
    struct heap *h = heap_of(b);
    CHECK(n <= HEAP_RESULTS && h->n_results == 0);
    CHECK(heap_untouched(h));
    memcpy(h->results, results, (size_t)n * sizeof *results);
    h->n_results = n;
}

/* The results of the last step come down. */
static void heap_deliver(struct quern_engine *e)
{
    struct heap *h = heap_of(e->be);
    CHECK(quern_awaits(e) == (h->n_results > 0));
    for (int i = 0; i < h->n_results; i++) {
        const struct result *r = &h->results[i];
        memcpy((float *)(uintptr_t)r->y, heap_at(h, r->y, r->n), r->n * sizeof(float));
    }
    quern_arrive(e, 10);
    CHECK(!quern_awaits(e));
}

/* Nobody has kept what came down: it is NaN again. */
static void heap_clear(const struct quern_engine *e)
{
    struct heap *h = heap_of(e->be);
    for (int i = 0; i < h->n_results; i++) heap_forget(h->results[i].y, h->results[i].n);
    h->n_results = 0;
}

static void heap_free(struct backend *b)
{
    struct heap *h = heap_of(b);
    h->inner->ops->free(h->inner);
    free(h->memory);
    free(h);
}

/* --- what the CPU's backend does by itself: weights, pages ------------------------------------------------- */

#define INNER(b) (((const struct heap *)(b))->inner)
static const char *heap_name(const struct backend *b) { return INNER(b)->ops->name(INNER(b)); }
static struct weight *heap_weight_new(struct backend *b, const struct dtype *type, int rows, int cols)
{
    return INNER(b)->ops->weight_new(INNER(b), type, rows, cols);
}
static void heap_weight_free(struct backend *b, struct weight *w) { INNER(b)->ops->weight_free(INNER(b), w); }
static void heap_weight_from(struct backend *b, struct weight *w, const struct dtype *type) { INNER(b)->ops->weight_from(INNER(b), w, type); }
static void heap_weight_put(struct backend *b, struct weight *w, int row, int n, const uint8_t *rows)
{
    INNER(b)->ops->weight_put(INNER(b), w, row, n, rows);
}
static struct weight_facts heap_weight_facts(const struct backend *b, const struct weight *w) { return INNER(b)->ops->weight_facts(INNER(b), w); }
static uint64_t heap_weight_cost(const struct backend *b, const struct dtype *type, int rows, int cols)
{
    return INNER(b)->ops->weight_cost(INNER(b), type, rows, cols);
}
static struct reserve_cost heap_reserve_cost(const struct backend *b, const struct kv_shape *shape, int max_rows, int max_cols)
{
    return INNER(b)->ops->reserve_cost(INNER(b), shape, max_rows, max_cols);
}
static int heap_reserve(struct backend *b, const struct kv_shape *shape, int max_rows, int max_cols)
{
    return INNER(b)->ops->reserve(INNER(b), shape, max_rows, max_cols);
}
static void heap_weight_hash(const struct backend *b, const struct weight *w, uint64_t from, uint64_t n, uint8_t *out)
{
    INNER(b)->ops->weight_hash(INNER(b), w, from, n, out);
}
static bool heap_warm(struct backend *b) { return (void)b, false; }
static void heap_kv_copy(struct backend *b, int to, int from, int n) { INNER(b)->ops->kv_copy(INNER(b), to, from, n); }
static uint64_t heap_kv_bytes(const struct backend *b) { return INNER(b)->ops->kv_bytes(INNER(b)); }
static void heap_kv_get(struct backend *b, int page, void *bytes) { INNER(b)->ops->kv_get(INNER(b), page, bytes); }
static void heap_kv_set(struct backend *b, int page, const void *bytes) { INNER(b)->ops->kv_set(INNER(b), page, bytes); }

/* An engine whose backend is such a device; it has taken nothing yet. */
static struct quern_engine *heap_engine(struct quern_options options)
{
    static const struct backend_ops ops = {
        .name = heap_name, .free = heap_free, .weight_new = heap_weight_new, .weight_free = heap_weight_free, .weight_from = heap_weight_from,
        .weight_put = heap_weight_put, .weight_facts = heap_weight_facts, .weight_cost = heap_weight_cost, .reserve_cost = heap_reserve_cost,
        .reserve = heap_reserve, .warm = heap_warm, .adopt = heap_adopt, .kv_copy = heap_kv_copy,
        .weight_hash = heap_weight_hash, .kv_bytes = heap_kv_bytes, .kv_get = heap_kv_get, .kv_set = heap_kv_set, .embed = heap_embed,
        .features = heap_features, .pick = heap_pick, .rmsnorm = heap_rmsnorm, .matmul = heap_matmul, .route = heap_choose, .gather = heap_gather,
        .combine = heap_combine, .rope = heap_rope, .kv_append = heap_kv_append, .attention = heap_attention, .swiglu = heap_swiglu,
        .add = heap_add, .submit = heap_submit,
    };
    struct quern_engine *e = quern_new(&options);
    struct heap *h = calloc(1, sizeof *h);
    if (!e || !h) exit(2);
    h->base.ops = &ops;
    h->inner = e->be;
    e->be = &h->base;
    return e;
}

#endif
