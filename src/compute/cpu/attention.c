/* SPDX-License-Identifier: MIT
 *
 * The paged KV cache and attention over it.
 *
 * A tile is up to 32 rows of one sequence; work is cut into (tile, span of 512 positions, kv head), so that threads are busy with one row
 * of few heads too, and shared by cost. Keys and values of a page serve all rows of the tile and all query heads of the group. Every span leaves a
 * softmax of its own for each query; these are merged in order afterwards, so neither the tile nor the thread changes a result. Tiles whose softmaxes
 * do not fit into the scratch at once are taken in several turns.
 */
#include "compute/cpu/cpu.h"

#include "base/num.h"

#include <math.h>
#include <string.h>

enum {
    SPAN = 512,
    SPAN_PAGES = SPAN / KV_PAGE,
    TILE_ROWS = 32,
    FEW = 4, /* queries for which halves are widened in registers, not beforehand */
    SUBNORMAL_MAX = 16, /* subnormal halves of a page's keys or values up to which that is faster */
    ODD = 255,
    HEAD_DIM_MAX = 1024,
    MERGE_ALONE = 128, /* softmaxes that one thread merges sooner than others wake up */
};

/* --- pages: for each layer and kv head the parts below, each KV_PAGE positions ------------------------------ */

/* Notes: for q8 the scales of the codes, float [head_dim / 32]; for f16 one byte that says how odd
 * the halves of a position are: how many are subnormal, or ODD where one is infinite or NaN. */
enum part { KEY_NOTES, VALUE_NOTES, KEYS, VALUES, PARTS }; /* notes are read first: what follows is then on its way */

/* Bytes of one position in a part. */
static size_t part_bytes(const struct kv_shape *s, enum part part)
{
    size_t dim = (size_t)s->head_dim;
    bool notes = part < KEYS;
    if (s->type == KV_F32) return notes ? 0 : dim * sizeof(float);
    if (s->type == KV_F16) return notes ? 1 : dim * sizeof(uint16_t);
    return notes ? dim / BLOCK * sizeof(float) : dim;
}

static size_t head_bytes(const struct kv_shape *s)
{
    size_t bytes = 0;
    for (enum part part = KEY_NOTES; part < PARTS; part++) bytes += KV_PAGE * part_bytes(s, part);
    return bytes;
}

/* 64 bits: cpu_reserve learns from these whether the pages fit at all. */
static uint64_t layer_bytes(const struct kv_shape *s) { return (uint64_t)s->n_kv_heads * head_bytes(s); }

uint64_t cpu_page_bytes(const struct kv_shape *s) { return (uint64_t)s->n_layers * layer_bytes(s); }

struct page_view {
    uint8_t *part[PARTS]; /* of one head */
};

static struct page_view page_at(const struct cpu *c, int page, int layer, int head)
{
    struct page_view p;
    uint64_t at = (uint64_t)page * cpu_page_bytes(&c->kv) + (uint64_t)layer * layer_bytes(&c->kv);
    uint8_t *bytes = c->pages + (size_t)at + (size_t)head * head_bytes(&c->kv);
    for (enum part part = KEY_NOTES; part < PARTS; bytes += KV_PAGE * part_bytes(&c->kv, part), part++) p.part[part] = bytes;
    return p;
}

static uint8_t *whole_page(const struct cpu *c, int page) { return page_at(c, page, 0, 0).part[0]; }

/* All positions: the first n are not together, and nobody looks at the others. */
void cpu_kv_copy(struct backend *b, int to, int from, int n)
{
    struct cpu *c = (struct cpu *)b;
    (void)n;
    memcpy(whole_page(c, to), whole_page(c, from), (size_t)cpu_page_bytes(&c->kv));
}

uint64_t cpu_kv_bytes(const struct backend *b) { return cpu_page_bytes(&((const struct cpu *)b)->kv); }

void cpu_kv_get(struct backend *b, int page, void *bytes) { memcpy(bytes, whole_page((struct cpu *)b, page), (size_t)cpu_kv_bytes(b)); }

void cpu_kv_set(struct backend *b, int page, const void *bytes) { memcpy(whole_page((struct cpu *)b, page), bytes, (size_t)cpu_kv_bytes(b)); }

void cpu_kv_poison(struct backend *b, int page)
{
    struct cpu *c = (struct cpu *)b;
    memset(whole_page(c, page), 0xFF, (size_t)cpu_page_bytes(&c->kv)); /* all ones is a NaN in f16 and f32, scales too */
}

/* In 16 bits throughout, so that compilers take 8 halves at once. */
static uint8_t oddity(const uint16_t *halves, int n)
{
    uint16_t carry = 0, subnormal = 0;
#pragma GCC unroll 1
    for (int i = 0; i < n; i++) {
        uint16_t rest = halves[i] & 0x7FFF;
        carry |= (uint16_t)(rest + 0x400); /* an exponent of all ones overflows */
        subnormal = (uint16_t)(subnormal + ((uint16_t)(rest - 1) < 0x3FF));
    }
    return (uint8_t)(carry & 0x8000 ? ODD : min_int(subnormal, ODD));
}

/* x [dim] of a position to where its key or value lies; an element has `size` bytes, a constant of the caller: copies are moves then. */
static inline __attribute__((always_inline)) void lay(uint8_t *to, enum part part, int position, const void *x, int dim, const size_t size)
{
    const uint8_t *from = x;
    int d = 0;
    if (part == KEYS) {
        to += key_place(position, 0, dim) * size;
#pragma GCC unroll 1
        for (int r = 0; r < 8; r++)
#pragma GCC unroll 1
            for (d = r; d < dim; d += 8, to += KV_LANES * size) memcpy(to, from + (size_t)d * size, size);
        return;
    }
    for (; d + KV_LANES <= dim; d += KV_LANES) memcpy(to + value_place(position, d, dim) * size, from + (size_t)d * size, KV_LANES * size);
    memcpy(to + value_place(position, d, dim) * size, from + (size_t)d * size, (size_t)(dim - d) * size);
}

void cpu_lay_floats(float *page, bool key, int position, const float *x, int dim)
{
    lay((uint8_t *)page, key ? KEYS : VALUES, position, x, dim, sizeof *x);
}

/* x [head_dim] becomes the key or value of a position. */
static void store_halves(const struct cpu *c, const struct page_view *page, enum part part, int position, const float *x)
{
    int dim = c->kv.head_dim;
    uint16_t halves[HEAD_DIM_MAX];
    c->k.narrow(halves, x, dim);
    page->part[part == KEYS ? KEY_NOTES : VALUE_NOTES][position] = oddity(halves, dim);
    lay(page->part[part], part, position, halves, dim, sizeof *halves);
}

static void store_codes(const struct cpu *c, const struct page_view *page, enum part part, int position, const float *x)
{
    int dim = c->kv.head_dim;
    float *scales = (float *)(void *)page->part[part == KEYS ? KEY_NOTES : VALUE_NOTES];
    int16_t sums[HEAD_DIM_MAX / 16]; /* nobody needs them */
    c->k.quantize(x, dim, (int8_t *)page->part[part] + position * dim, scales + position * (dim / BLOCK), sums);
}

static void store(const struct cpu *c, const struct page_view *page, enum part part, int position, const float *x)
{
    switch (c->kv.type) {
    case KV_F32: lay(page->part[part], part, position, x, c->kv.head_dim, sizeof *x); break;
    case KV_F16: store_halves(c, page, part, position, x); break;
    case KV_Q8: store_codes(c, page, part, position, x); break;
    }
}

struct append {
    struct cpu *c;
    int layer, n;
    const float *k, *v;
    const struct kv_row *rows;
};

/* Each thread its heads. */
static void append_heads(void *arg, int thread, int n_threads)
{
    const struct append *a = arg;
    size_t dim = (size_t)a->c->kv.head_dim, heads = (size_t)a->c->kv.n_kv_heads;
    int begin, end;
    pool_share((int)heads, thread, n_threads, &begin, &end);
    for (int h = begin; h < end; h++)
        for (size_t t = 0; t < (size_t)a->n; t++) {
            int32_t index = a->rows[t].index;
            struct page_view page = page_at(a->c, a->rows[t].pages[index / KV_PAGE], a->layer, h);
            store(a->c, &page, KEYS, index % KV_PAGE, a->k + (t * heads + (size_t)h) * dim);
            store(a->c, &page, VALUES, index % KV_PAGE, a->v + (t * heads + (size_t)h) * dim);
        }
}

void cpu_kv_append(struct backend *b, int layer, const float *k, const float *v, const struct kv_row *rows, int n)
{
    struct append a = {.c = (struct cpu *)b, .layer = layer, .n = n, .k = k, .v = v, .rows = rows};
    cpu_run(a.c, n > 1, append_heads, &a);
}

/* --- scratch ----------------------------------------------------------------------------------------------- */

/* Rows first .. first + n - 1, of one sequence. */
struct tile {
    int first, n;
    int last, spans; /* position, and the spans up to it */
    size_t at; /* its first softmax: [span][kv head][row][query head of the group] */
};

/* One thread's. */
struct scratch {
    float *floats; /* [KV_PAGE * head_dim] keys or values of a page, widened */
    float *p;      /* [TILE_ROWS * group, KV_PAGE] scores, then weights */
    float *scaled; /* [n_kv_heads * FEW, head_dim] queries times F16_SCALE */
    int8_t *code;  /* [max(n_kv_heads * FEW, TILE_ROWS * group), head_dim] queries quantised, for q8 */
    float *scale;  /* [the same, head_dim / 32] */
    int16_t *sum;  /* [head_dim / 16] which quantising makes, and nobody needs here */
};

static void take_scratch(struct arena *a, const struct kv_shape *s, struct scratch *out)
{
    uint64_t dim = (uint64_t)s->head_dim, queries = TILE_ROWS * (uint64_t)(s->n_heads / s->n_kv_heads);
    uint64_t few = FEW * (uint64_t)s->n_kv_heads, codes = s->type == KV_Q8 ? (few > queries ? few : queries) * dim : 0;
    out->floats = arena_take(a, KV_PAGE * dim, sizeof(float));
    out->p = arena_take(a, queries * KV_PAGE, sizeof(float));
    out->scaled = arena_take(a, few * dim, sizeof(float));
    out->code = arena_take(a, codes, 1);
    out->scale = arena_take(a, codes / BLOCK, sizeof(float));
    out->sum = arena_take(a, dim / 16, sizeof(int16_t));
}

void cpu_attention_take(struct arena *a, struct cpu *c)
{
    uint64_t spans = ((uint64_t)c->kv.n_pages + SPAN_PAGES - 1) / SPAN_PAGES, max_rows = (uint64_t)c->max_rows;
    uint64_t rows = max_rows > TILE_ROWS * spans ? max_rows : TILE_ROWS * spans;
    struct scratch measured;
    c->max_queries = rows * (uint64_t)c->kv.n_heads;
    c->queries = arena_take(a, c->max_queries, sizeof *c->queries);
    c->acc = arena_take(a, c->max_queries * (uint64_t)c->kv.head_dim, sizeof *c->acc);
    c->tiles = arena_take(a, max_rows, sizeof *c->tiles);
    c->scratch = arena_take(a, (uint64_t)pool_threads(c->pool), sizeof *c->scratch);
    for (int t = 0; t < pool_threads(c->pool); t++) take_scratch(a, &c->kv, c->scratch ? &c->scratch[t] : &measured);
}

/* --- a span of one tile and one or more kv heads --------------------------------------------------------------- */

struct attention {
    struct cpu *c;
    int layer, n;
    float *o;
    const float *q;
    const struct kv_row *rows;
    const struct tile *tiles; /* of this turn */
    int n_tiles;
};

struct span {
    const struct attention *a;
    const struct tile *tile;
    const struct scratch *s;
    int head, heads;       /* whose keys and values are read in a row, page by page, as they lie there */
    int group, n;          /* n: queries of a head, tile->n * group */
    int first_page;
    bool in_registers;     /* finite halves are widened there: no reason to do it for many queries */
    struct query *queries; /* [heads, tile->n, group] */
};

static struct query *span_queries(const struct cpu *c, const struct tile *tile, int head, int span)
{
    size_t group = (size_t)(c->kv.n_heads / c->kv.n_kv_heads);
    return c->queries + tile->at + (size_t)(span * c->kv.n_kv_heads + head) * (size_t)tile->n * group;
}

/* Scaling is exact unless it overflows. */
static bool scale_query(float *out, const float *q, int dim)
{
    float top = 0;
    for (int d = 0; d < dim; d++) {
        out[d] = q[d] * F16_SCALE;
        if (fabsf(q[d]) > top) top = fabsf(q[d]);
    }
    return top < 0x1p15f;
}

static void quantize_query(const struct span *s, int i)
{
    const struct cpu *c = s->a->c;
    size_t dim = (size_t)c->kv.head_dim;
    int8_t *code = s->s->code + (size_t)i * dim;
    float *scale = s->s->scale + (size_t)i * (dim / BLOCK);
    c->k.quantize(s->queries[i].q, (int)dim, code, scale, s->s->sum);
    s->queries[i].code = code;
    s->queries[i].scale = scale;
}

static void span_begin(struct span *s)
{
    const struct cpu *c = s->a->c;
    size_t dim = (size_t)c->kv.head_dim, heads = (size_t)c->kv.n_heads;
    s->in_registers = c->kv.type == KV_F16 && s->n <= FEW && dim % 16 == 0 && c->k.scores_f16;
    for (int i = 0; i < s->heads * s->n; i++) {
        size_t row = (size_t)(s->tile->first + i % s->n / s->group), head = (size_t)((s->head + i / s->n) * s->group + i % s->group);
        struct query *query = &s->queries[i];
        *query = (struct query){.q = s->a->q + (row * heads + head) * dim, .acc = c->acc + (size_t)(query - c->queries) * dim, .max = -INFINITY};
        memset(query->acc, 0, dim * sizeof *query->acc);
        if (c->kv.type == KV_Q8) quantize_query(s, i);
        if (!s->in_registers) continue;
        query->scaled = s->s->scaled + (size_t)i * dim;
        s->in_registers = scale_query(s->s->scaled + (size_t)i * dim, query->q, (int)dim);
    }
}

/* What each query sees of a page; returns the most. */
static int set_seen(const struct span *s, int page)
{
    int most = 0;
    for (int i = 0; i < s->heads * s->n; i++) {
        int left = s->a->rows[s->tile->first + i % s->n / s->group].index + 1 - page * KV_PAGE;
        s->queries[i].seen = max_int(0, min_int(left, KV_PAGE));
        most = max_int(most, s->queries[i].seen);
    }
    return most;
}

/* Whether the first n positions may be, and had better be, widened in registers. */
static bool all_plain(const uint8_t *notes, int n)
{
    int odd = 0;
    for (int i = 0; i < n; i++) odd += notes[i];
    return odd <= SUBNORMAL_MAX;
}

static void page_scores(const struct span *s, const struct page_view *page, struct query *queries, int most, float scale)
{
    const struct cpu *c = s->a->c;
    const void *keys = page->part[KEYS], *notes = page->part[KEY_NOTES];
    const float *floats = keys;
    int dim = c->kv.head_dim;
    if (c->kv.type == KV_Q8) {
        c->k.scores_q8(s->s->p, queries, s->n, keys, notes, dim, scale);
        return;
    }
    if (c->kv.type == KV_F16) {
        if (s->in_registers && all_plain(notes, most)) {
            c->k.scores_f16(s->s->p, queries, s->n, keys, dim, scale);
            return;
        }
        c->k.widen(s->s->floats, keys, KV_PAGE * dim);
        floats = s->s->floats;
    }
    c->k.scores(s->s->p, queries, s->n, floats, dim, scale);
}

static void page_values(const struct span *s, const struct page_view *page, struct query *queries, int most)
{
    const struct cpu *c = s->a->c;
    const void *from = page->part[VALUES], *notes = page->part[VALUE_NOTES];
    const float *floats = from;
    int dim = c->kv.head_dim;
    if (s->in_registers && all_plain(notes, most)) {
        c->k.values_f16(s->s->p, queries, s->n, from, dim);
        return;
    }
    if (c->kv.type == KV_F16) c->k.widen(s->s->floats, from, KV_PAGE * dim);
    if (c->kv.type == KV_Q8) c->k.dequantize(s->s->floats, from, notes, most, dim);
    if (c->kv.type != KV_F32) floats = s->s->floats;
    c->k.values(s->s->p, queries, s->n, floats, dim);
}

static void span_attend(struct span *s)
{
    const struct cpu *c = s->a->c;
    float scale = (float)(1.0 / sqrt((double)c->kv.head_dim));
    span_begin(s);
    const int32_t *pages = s->a->rows[s->tile->first].pages;
    int last = min_int(s->tile->last / KV_PAGE, s->first_page + SPAN_PAGES - 1);
    for (int i = s->first_page; i <= last; i++) {
        int most = set_seen(s, i);
        for (int h = 0; h < s->heads; h++) {
            struct page_view page = page_at(c, pages[i], s->a->layer, s->head + h);
            struct query *queries = s->queries + h * s->n;
            page_scores(s, &page, queries, most, scale);
            c->k.soften(s->s->p, queries, s->n, c->kv.head_dim);
            page_values(s, &page, queries, most);
        }
    }
}

/* Heads head .. end - 1 of a span. Where a tile has few queries, a page's heads are taken in a row. */
static void attend_heads(const struct attention *a, const struct tile *tile, int span, int head, int end, int thread)
{
    const struct cpu *c = a->c;
    int group = c->kv.n_heads / c->kv.n_kv_heads, queries = tile->n * group;
    for (int n; head < end; head += n) {
        n = queries > FEW ? 1 : end - head;
        span_attend(&(struct span){.a = a, .tile = tile, .s = &c->scratch[thread], .head = head, .heads = n, .group = group, .n = queries,
                                   .first_page = span * SPAN_PAGES, .queries = span_queries(c, tile, head, span)});
    }
}

/* What a head of a span costs: its last span is shorter than the others. */
static int64_t span_cost(const struct tile *tile, int span) { return (int64_t)tile->n * min_int(SPAN, tile->last + 1 - span * SPAN); }

/* An interval of the cost, in which heads of all tiles and spans count through. */
static void attend_between(const struct attention *a, int64_t begin, int64_t end, int thread)
{
    int heads = a->c->kv.n_kv_heads;
    int64_t at = 0;
    for (int t = 0; t < a->n_tiles; t++)
        for (int i = 0; i < a->tiles[t].spans; i++) {
            const struct tile *tile = &a->tiles[t];
            int64_t cost = span_cost(tile, i);
            attend_heads(a, tile, i, unit_from(begin - at, cost, heads), unit_from(end - at, cost, heads), thread);
            at += heads * cost;
        }
}

static void attend_spans(void *arg, int thread, int n_threads)
{
    const struct attention *a = arg;
    int64_t total = 0, begin, end;
    for (int t = 0; t < a->n_tiles; t++)
        for (int i = 0; i < a->tiles[t].spans; i++) total += a->c->kv.n_kv_heads * span_cost(&a->tiles[t], i);
    while (pool_claim(&a->c->claimed, total, n_threads, &begin, &end)) attend_between(a, begin, end, thread);
}

/* --- merging ------------------------------------------------------------------------------------------------ */

void cpu_softmax_merge(struct query *a, const struct query *b, int dim)
{
    float max = a->max > b->max ? a->max : b->max;
    float shrink_a = num_exp(a->max - max), shrink_b = num_exp(b->max - max);
    a->sum = a->sum * shrink_a + b->sum * shrink_b;
    for (int d = 0; d < dim; d++) a->acc[d] = a->acc[d] * shrink_a + b->acc[d] * shrink_b;
    a->max = max;
}

/* The output of one query of a tile: the spans that its row has reached, in order. */
static void merge_query(const struct attention *a, const struct tile *tile, int row, int query_head)
{
    const struct cpu *c = a->c;
    int dim = c->kv.head_dim, group = c->kv.n_heads / c->kv.n_kv_heads, head = query_head / group;
    float *o = a->o + ((size_t)(tile->first + row) * (size_t)c->kv.n_heads + (size_t)query_head) * (size_t)dim;
    struct query total = {.acc = o, .max = -INFINITY};
    memset(o, 0, (size_t)dim * sizeof *o);
    for (int span = 0; span <= a->rows[tile->first + row].index / SPAN; span++)
        cpu_softmax_merge(&total, span_queries(c, tile, head, span) + row * group + query_head % group, dim);
    for (int d = 0; d < dim; d++) o[d] /= total.sum;
}

static void merge_spans(void *arg, int thread, int n_threads)
{
    const struct attention *a = arg;
    int heads = a->c->kv.n_heads, first = a->tiles->first, begin, end;
    const struct tile *tile = a->tiles;
    pool_share(tile[a->n_tiles - 1].first + tile[a->n_tiles - 1].n - first, thread, n_threads, &begin, &end);
    for (int row = first + begin; row < first + end; row++) {
        while (row >= tile->first + tile->n) tile++;
        for (int h = 0; h < heads; h++) merge_query(a, tile, row - tile->first, h);
    }
}

/* --- all rows ------------------------------------------------------------------------------------------------ */

/* The tile that begins at row `first`: rows of the same sequence. */
static struct tile tile_from(const struct attention *a, int first)
{
    struct tile tile = {.first = first};
    for (int i = first; i < a->n && tile.n < TILE_ROWS && a->rows[i].pages == a->rows[first].pages; i++, tile.n++)
        tile.last = max_int(tile.last, a->rows[i].index);
    tile.spans = tile.last / SPAN + 1;
    return tile;
}

/* As many tiles from row `first` on as there is scratch for, one at least. Returns their softmaxes. */
static uint64_t begin_turn(struct attention *a, int first)
{
    struct cpu *c = a->c;
    uint64_t used = 0;
    a->tiles = c->tiles;
    for (a->n_tiles = 0; first < a->n; a->n_tiles++) {
        struct tile tile = tile_from(a, first);
        uint64_t more = (uint64_t)tile.n * (uint64_t)tile.spans * (uint64_t)c->kv.n_heads;
        if (used + more > c->max_queries) break;
        tile.at = (size_t)used;
        c->tiles[a->n_tiles] = tile;
        used += more;
        first += tile.n;
    }
    return used;
}

void cpu_attention(struct backend *b, int layer, float *o, const float *q, const struct kv_row *rows, int n)
{
    struct attention a = {.c = (struct cpu *)b, .layer = layer, .n = n, .o = o, .q = q, .rows = rows};
    for (int row = 0; row < n;) {
        uint64_t softmaxes = begin_turn(&a, row);
        cpu_run(a.c, true, attend_spans, &a);
        cpu_run(a.c, softmaxes > MERGE_ALONE, merge_spans, &a);
        row = a.tiles[a.n_tiles - 1].first + a.tiles[a.n_tiles - 1].n;
    }
}
