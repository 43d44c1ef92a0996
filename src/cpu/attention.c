/* SPDX-License-Identifier: MIT
 *
 * The paged KV cache and attention over it.
 *
 * Work is cut into (tile of rows, kv head) items. A tile is up to 16 rows of one sequence; for each page the keys and values of a head are
 * widened to f32 once and serve all rows of the tile and all query heads of the group. Every row sees the pages in order, so
 * neither the tile nor the thread changes a result. Each span of 512 positions has a softmax of its own, merged in order.
 */
#include "cpu.h"

#include "../num.h"

#include <math.h>
#include <string.h>

enum { SPAN = 512, TILE_ROWS = 16 };

/* --- pages -------------------------------------------------------------------------------------------- */

static size_t element_size(const struct kv_shape *s) { return s->f32 ? sizeof(float) : sizeof(uint16_t); }

/* Elements of the keys (or values) of one head in one page. */
static size_t head_elements(const struct kv_shape *s) { return (size_t)KV_PAGE * (size_t)s->head_dim; }

/* 64 bits: cpu_reserve learns from these whether the pages fit at all. */
static uint64_t layer_bytes(const struct kv_shape *s) { return (uint64_t)s->n_kv_heads * 2 * head_elements(s) * element_size(s); }

uint64_t cpu_page_bytes(const struct kv_shape *s) { return (uint64_t)s->n_layers * layer_bytes(s); }

/* The keys of a head; its values follow right behind. */
static uint8_t *head_at(const struct cpu *c, int page, int layer, int head)
{
    uint64_t at = (uint64_t)page * cpu_page_bytes(&c->kv) + (uint64_t)layer * layer_bytes(&c->kv);
    return c->pages + (size_t)at + (size_t)head * 2 * head_elements(&c->kv) * element_size(&c->kv);
}

void cpu_kv_copy(struct backend *b, int to, int from, int n)
{
    struct cpu *c = (struct cpu *)b;
    size_t half = head_elements(&c->kv) * element_size(&c->kv), used = half / KV_PAGE * (size_t)n;
    for (int l = 0; l < c->kv.n_layers; l++)
        for (int h = 0; h < c->kv.n_kv_heads; h++) {
            uint8_t *target = head_at(c, to, l, h), *source = head_at(c, from, l, h);
            memcpy(target, source, used);
            memcpy(target + half, source + half, used);
        }
}

void cpu_kv_poison(struct backend *b, int page)
{
    struct cpu *c = (struct cpu *)b;
    memset(head_at(c, page, 0, 0), 0xFF, (size_t)cpu_page_bytes(&c->kv)); /* all ones is a NaN in f16 and in f32 */
}

void cpu_kv_append(struct backend *b, int layer, const float *k, const float *v, const struct kv_row *rows, int n)
{
    struct cpu *c = (struct cpu *)b;
    size_t dim = (size_t)c->kv.head_dim, heads = (size_t)c->kv.n_kv_heads, size = element_size(&c->kv);
    for (size_t t = 0; t < (size_t)n; t++)
        for (size_t h = 0; h < heads; h++) {
            int32_t index = rows[t].index;
            uint8_t *key = head_at(c, rows[t].pages[index / KV_PAGE], layer, (int)h) + (size_t)(index % KV_PAGE) * dim * size;
            uint8_t *value = key + head_elements(&c->kv) * size;
            const float *from_k = k + (t * heads + h) * dim, *from_v = v + (t * heads + h) * dim;
            if (c->kv.f32) {
                memcpy(key, from_k, dim * size);
                memcpy(value, from_v, dim * size);
            } else {
                c->k.narrow((uint16_t *)(void *)key, from_k, (int)dim);
                c->k.narrow((uint16_t *)(void *)value, from_v, (int)dim);
            }
        }
}

/* --- softmax states ------------------------------------------------------------------------------------ */

static void softmax_clear(struct softmax *s, int head_dim)
{
    s->max = -INFINITY;
    s->sum = 0;
    memset(s->acc, 0, (size_t)head_dim * sizeof(float));
}

/* a = the softmax over a's positions, then b's. */
static void softmax_merge(struct softmax *a, const struct softmax *b, int head_dim)
{
    float max = a->max > b->max ? a->max : b->max;
    float shrink_a = num_exp(a->max - max), shrink_b = num_exp(b->max - max);
    a->sum = a->sum * shrink_a + b->sum * shrink_b;
    for (int d = 0; d < head_dim; d++) a->acc[d] = a->acc[d] * shrink_a + b->acc[d] * shrink_b;
    a->max = max;
}

/* --- one item: a tile of rows, one kv head ---------------------------------------------------------------- */

struct attention {
    struct cpu *c;
    int layer, n;
    float *o;
    const float *q;
    const struct kv_row *rows;
};

/* A thread's scratch: widened keys and values of a page, then two softmax states for each row and query head of a tile. */
uint64_t cpu_attention_floats(const struct kv_shape *s)
{
    uint64_t group = (uint64_t)(s->n_heads / s->n_kv_heads);
    return 2 * head_elements(s) + 2 * TILE_ROWS * group * ((uint64_t)s->head_dim + 2);
}

/* The softmax of row i, query head g: `which` 0 total, 1 span. Kept in the scratch as max, sum, acc [head_dim]. */
static float *state_at(const struct cpu *c, float *states, int group, int which, int i, int g)
{
    size_t stride = (size_t)c->kv.head_dim + 2;
    return states + ((size_t)(which * TILE_ROWS + i) * (size_t)group + (size_t)g) * stride;
}

static struct softmax state_load(float *s) { return (struct softmax){s[0], s[1], s + 2}; }
static void state_store(float *at, const struct softmax *s) { at[0] = s->max, at[1] = s->sum; }

/* Keys and values of a page's head as floats: in place when they are, else widened into scratch. */
static void page_floats(const struct attention *a, int page, int head, float *scratch, const float **k, const float **v)
{
    const struct cpu *c = a->c;
    uint8_t *at = head_at(c, page, a->layer, head);
    size_t count = head_elements(&c->kv);
    *k = scratch, *v = scratch + count;
    if (c->kv.f32) *k = (const float *)(const void *)at, *v = *k + count;
    else c->k.widen(scratch, (const uint16_t *)(const void *)at, (int)(2 * count));
}

/* Positions of page `block` for every row of the tile that sees some. */
static void tile_page(const struct attention *a, int first, int n, int head, int block, float *scratch)
{
    const struct cpu *c = a->c;
    int dim = c->kv.head_dim, group = c->kv.n_heads / c->kv.n_kv_heads;
    float scale = (float)(1.0 / sqrt((double)dim)), *states = scratch + 2 * head_elements(&c->kv);
    bool span_begins = block % (SPAN / KV_PAGE) == 0;
    const float *k, *v;
    page_floats(a, a->rows[first].pages[block], head, scratch, &k, &v);
    for (int i = 0; i < n; i++) {
        int seen = min_int(KV_PAGE, a->rows[first + i].index + 1 - block * KV_PAGE);
        if (seen <= 0) continue;
        for (int g = 0; g < group; g++) {
            float *total_at = state_at(c, states, group, 0, i, g), *span_at = state_at(c, states, group, 1, i, g);
            struct softmax total = state_load(total_at), span = state_load(span_at);
            if (span_begins && block) softmax_merge(&total, &span, dim), state_store(total_at, &total);
            if (span_begins) softmax_clear(&span, dim);
            size_t row = (size_t)(first + i), q_head = (size_t)(head * group + g);
            const float *q = a->q + (row * (size_t)c->kv.n_heads + q_head) * (size_t)dim;
            c->k.attend(&span, q, k, v, seen, dim, scale);
            state_store(span_at, &span);
        }
    }
}

static void tile_begin(const struct cpu *c, int n, int group, float *states)
{
    for (int i = 0; i < n; i++)
        for (int g = 0; g < group; g++) {
            float *at = state_at(c, states, group, 0, i, g);
            struct softmax s = state_load(at);
            softmax_clear(&s, c->kv.head_dim);
            state_store(at, &s);
        }
}

static void tile_end(const struct attention *a, int first, int n, int head, float *states)
{
    const struct cpu *c = a->c;
    int dim = c->kv.head_dim, group = c->kv.n_heads / c->kv.n_kv_heads;
    for (int i = 0; i < n; i++)
        for (int g = 0; g < group; g++) {
            struct softmax total = state_load(state_at(c, states, group, 0, i, g));
            struct softmax span = state_load(state_at(c, states, group, 1, i, g));
            softmax_merge(&total, &span, dim);
            float *o = a->o + ((size_t)(first + i) * (size_t)c->kv.n_heads + (size_t)(head * group + g)) * (size_t)dim;
            for (int d = 0; d < dim; d++) o[d] = total.acc[d] / total.sum;
        }
}

static void tile_attend(const struct attention *a, int first, int n, int head, float *scratch)
{
    const struct cpu *c = a->c;
    int group = c->kv.n_heads / c->kv.n_kv_heads, last = 0;
    float *states = scratch + 2 * head_elements(&c->kv);
    for (int i = 0; i < n; i++) last = max_int(last, a->rows[first + i].index);
    tile_begin(c, n, group, states);
    for (int block = 0; block <= last / KV_PAGE; block++) tile_page(a, first, n, head, block, scratch);
    tile_end(a, first, n, head, states);
}

/* Length of the tile that begins at row `first`: rows of the same sequence. */
static int tile_length(const struct attention *a, int first)
{
    int n = 1;
    while (n < TILE_ROWS && first + n < a->n && a->rows[first + n].pages == a->rows[first].pages) n++;
    return n;
}

static void attend_tiles(void *arg, int thread, int n_threads)
{
    const struct attention *a = arg;
    int heads = a->c->kv.n_kv_heads, n_tiles = 0, begin, end, item = 0;
    float *scratch = a->c->attn + (size_t)thread * (size_t)a->c->attn_floats;
    for (int first = 0; first < a->n; first += tile_length(a, first)) n_tiles++;
    pool_share(n_tiles * heads, thread, n_threads, &begin, &end);
    for (int first = 0; first < a->n; first += tile_length(a, first))
        for (int h = 0; h < heads; h++, item++)
            if (item >= begin && item < end) tile_attend(a, first, tile_length(a, first), h, scratch);
}

void cpu_attention(struct backend *b, int layer, float *o, const float *q, const struct kv_row *rows, int n)
{
    struct attention a = {.c = (struct cpu *)b, .layer = layer, .n = n, .o = o, .q = q, .rows = rows};
    cpu_run(a.c, true, attend_tiles, &a);
}
