/* SPDX-License-Identifier: MIT
 *
 * The paged KV cache and attention over it.
 *
 * Positions are cut into spans of 512, and the rows of a span into tiles of up to 32 rows: rows of one sequence, and of
 * other sequences that share its pages because they began alike. Work is cut into (tile, kv head), so that one row with
 * few heads also keeps the threads busy, and is shared by cost. Keys and values of a page serve all rows of the tile
 * and all query heads of the group. Every span leaves its own softmax for each query; they are merged in order
 * afterwards, so tiles, threads and other sequences never change a result. When the softmaxes of all rows do not fit
 * into the scratch, the rows are computed in several turns.
 */
#include "compute/cpu/cpu.h"

#include "base/num.h"

#include <math.h>
#include <string.h>

enum {
    SPAN = 512,
    SPAN_PAGES = SPAN / KV_PAGE,
    TILE_ROWS = 32,
    FEW = 4, /* up to this many queries, halves become floats in registers, not beforehand */
    SUBNORMAL_MAX = 16, /* scaled halves are faster up to this many subnormals in the keys or values of a page */
    HEAD_DIM_MAX = 1024,
    MERGE_ALONE = 128, /* up to this many softmaxes, one thread merges sooner than others wake up */
};

/* --- pages ------------------------------------------------------------------------------------------------- */

static struct page_view page_at(const struct cpu *c, int page, int layer, int head)
{
    return page_view(&c->kv, c->pages + (size_t)((uint64_t)page * page_bytes(&c->kv)), layer, head);
}

static uint8_t *whole_page(const struct cpu *c, int page) { return page_at(c, page, 0, 0).part[0]; }

/* Copies all positions: the first n are not contiguous, and nothing reads the others. */
void cpu_kv_copy(struct backend *b, int to, int from, int n)
{
    struct cpu *c = (struct cpu *)b;
    (void)n;
    memcpy(whole_page(c, to), whole_page(c, from), (size_t)page_bytes(&c->kv));
}

uint64_t cpu_kv_bytes(const struct backend *b) { return page_bytes(&((const struct cpu *)b)->kv); }

/* Positions behind the first n may be anybody's. */
void cpu_kv_get(struct backend *b, int page, int n, void *bytes)
{
    const struct cpu *c = (const struct cpu *)b;
    memcpy(bytes, whole_page(c, page), (size_t)cpu_kv_bytes(b));
    page_clear(&c->kv, bytes, n);
}

void cpu_kv_set(struct backend *b, int page, const void *bytes)
{
    memcpy(whole_page((struct cpu *)b, page), bytes, (size_t)cpu_kv_bytes(b));
}

void cpu_kv_poison(struct backend *b, int page)
{
    struct cpu *c = (struct cpu *)b;
    /* all ones is a NaN in f16 and f32, scales too */
    memset(whole_page(c, page), 0xFF, (size_t)page_bytes(&c->kv));
}

/* Counts in 16 bits throughout, so that compilers process 8 halves at once. */
static uint8_t oddity(const uint16_t *halves, int n)
{
    uint16_t carry = 0, subnormal = 0;
    VECTORIZE
    for (int i = 0; i < n; i++) {
        uint16_t rest = halves[i] & 0x7FFF;
        carry |= (uint16_t)(rest + 0x400); /* an exponent of all ones overflows */
        subnormal = (uint16_t)(subnormal + ((uint16_t)(rest - 1) < 0x3FF));
    }
    return (uint8_t)(carry & 0x8000 ? ODD : min_int(subnormal, ODD));
}

/* Stores x [dim] as the key or value of a position; an element has `size` bytes, a constant in every call, so that
 * copies become moves. */
static inline __attribute__((always_inline)) void lay(uint8_t *to, enum page_part part, int position, const void *x,
                                                      int dim, const size_t size)
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
    for (; d + KV_LANES <= dim; d += KV_LANES)
        memcpy(to + value_place(position, d, dim) * size, from + (size_t)d * size, KV_LANES * size);
    memcpy(to + value_place(position, d, dim) * size, from + (size_t)d * size, (size_t)(dim - d) * size);
}

void cpu_lay_floats(float *page, bool key, int position, const float *x, int dim)
{
    lay((uint8_t *)page, key ? KEYS : VALUES, position, x, dim, sizeof *x);
}

/* Stores x [head_dim] as the key or value of a position. */
static void store_halves(const struct cpu *c, const struct page_view *page, enum page_part part, int position,
                         const float *x)
{
    int dim = c->kv.head_dim;
    uint16_t halves[HEAD_DIM_MAX];
    c->k.narrow(halves, x, dim);
    page->part[part == KEYS ? KEY_NOTES : VALUE_NOTES][position] = oddity(halves, dim);
    lay(page->part[part], part, position, halves, dim, sizeof *halves);
}

static void store_codes(const struct cpu *c, const struct page_view *page, enum page_part part, int position,
                        const float *x)
{
    int dim = c->kv.head_dim;
    float *scales = (float *)(void *)page->part[part == KEYS ? KEY_NOTES : VALUE_NOTES];
    int16_t sums[HEAD_DIM_MAX / 16]; /* unused */
    c->k.quantize(x, dim, (int8_t *)page->part[part] + position * dim, scales + position * (dim / BLOCK), sums);
}

static void store(const struct cpu *c, const struct page_view *page, enum page_part part, int position, const float *x)
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

/* Each thread stores its heads. */
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

void cpu_kv_append(struct cpu *c, const struct op *op)
{
    struct append a = {
        .c = c, .layer = op->layer, .n = op->n, .k = cpu_at(c, op->x), .v = cpu_at(c, op->z), .rows = op->kv};
    cpu_run(c, op->n > 1, append_heads, &a);
}

/* --- scratch ----------------------------------------------------------------------------------------------- */

/* Up to TILE_ROWS rows over one span: rows of one sequence, and of others that share pages of the span with it. */
struct tile {
    const int32_t *rows;  /* [n] ascending, so that rows of one sequence are neighbours */
    int n, span;
    int last;             /* last position that any of them sees */
    const int32_t *pages; /* pages of the row that sees most */
    int shared;           /* number of pages, from the first of the span, that all rows which see them have in common */
    size_t at;            /* its first softmax: [kv head][row][query head of the group] */
};

/* Place of the softmax of one row over one span. */
struct tile_place {
    int32_t tile, row; /* tile -1: in no tile yet */
};

/* Scratch of one thread. */
struct scratch {
    float *floats; /* [KV_PAGE * head_dim] keys or values of a page, widened */
    float *p;      /* [TILE_ROWS * group, KV_PAGE] scores, then weights */
    float *scaled; /* [max(n_kv_heads * FEW, TILE_ROWS * group), head_dim] queries times F16_SCALE, for f16 */
    int8_t *code;  /* [the same] queries quantised, for q8 */
    float *scale;  /* [the same, head_dim / 32] */
    int16_t *sum;  /* [head_dim / 16] output of quantising, unused here */
};

static void take_scratch(struct arena *a, const struct kv_shape *s, struct scratch *out)
{
    uint64_t dim = (uint64_t)s->head_dim, queries = TILE_ROWS * (uint64_t)(s->n_heads / s->n_kv_heads);
    uint64_t few = FEW * (uint64_t)s->n_kv_heads, all = (few > queries ? few : queries) * dim,
             codes = s->type == KV_Q8 ? all : 0;
    out->floats = arena_take(a, KV_PAGE * dim, sizeof(float));
    out->p = arena_take(a, queries * KV_PAGE, sizeof(float));
    out->scaled = arena_take(a, s->type == KV_F16 ? all : 0, sizeof(float));
    out->code = arena_take(a, codes, 1);
    out->scale = arena_take(a, codes / BLOCK, sizeof(float));
    out->sum = arena_take(a, dim / 16, sizeof(int16_t));
}

void cpu_attention_take(struct arena *a, struct cpu *c)
{
    uint64_t spans = ((uint64_t)c->kv.n_pages + SPAN_PAGES - 1) / SPAN_PAGES, max_rows = (uint64_t)c->max_rows;
    struct scratch measured;
    c->max_places = max_rows > TILE_ROWS * spans ? max_rows : TILE_ROWS * spans;
    c->queries = arena_take(a, c->max_places * (uint64_t)c->kv.n_heads, sizeof *c->queries);
    c->acc = arena_take(a, c->max_places * (uint64_t)c->kv.n_heads * (uint64_t)c->kv.head_dim, sizeof *c->acc);
    c->tiles = arena_take(a, c->max_places, sizeof *c->tiles);
    c->places = arena_take(a, c->max_places, sizeof *c->places);
    c->tile_rows = arena_take(a, c->max_places, sizeof *c->tile_rows);
    c->scratch = arena_take(a, (uint64_t)pool_threads(c->pool), sizeof *c->scratch);
    for (int t = 0; t < pool_threads(c->pool); t++) take_scratch(a, &c->kv, c->scratch ? &c->scratch[t] : &measured);
}

/* --- rows of a tile over pages of its span, one or more kv heads ----------------------------------------------- */

struct attention {
    struct cpu *c;
    int layer, n;
    float *o;
    const float *q;
    const struct kv_row *rows;
    int first, end; /* rows of this turn */
    int n_tiles;
};

struct span {
    const struct attention *a;
    const struct tile *tile;
    const struct scratch *s;
    int head, heads;       /* kv heads whose keys and values are read page by page, in the order of memory */
    const int32_t *rows, *pages;
    int first_page, n_pages;
    int group, n;          /* n: queries of one head, over all rows */
    bool scaled;           /* queries are scaled, so that finite halves need only a shift of their bits */
    bool in_registers;     /* halves are widened in registers; with many queries this does not pay */
    struct query *queries; /* of the first row and head; those of the next head are tile->n * group further */
};

static int group_of(const struct cpu *c) { return c->kv.n_heads / c->kv.n_kv_heads; }

static struct query *tile_queries(const struct cpu *c, const struct tile *tile, int head, int row)
{
    return c->queries + tile->at + (size_t)(head * tile->n + row) * (size_t)group_of(c);
}

/* Query i of head h; both count from the span's first. */
static struct query *span_query(const struct span *s, int h, int i)
{
    return s->queries + h * s->tile->n * s->group + i;
}

/* Starts an empty softmax for every row of a tile. */
static void softmaxes_begin(const struct attention *a, const struct tile *tile, int head, int end)
{
    const struct cpu *c = a->c;
    size_t dim = (size_t)c->kv.head_dim, heads = (size_t)c->kv.n_heads;
    int group = group_of(c);
    struct query *query = tile_queries(c, tile, head, 0);
    for (; head < end; head++)
        for (int i = 0; i < tile->n * group; i++, query++) {
            size_t at = (size_t)tile->rows[i / group] * heads + (size_t)(head * group + i % group);
            *query = (struct query){
                .itself = a->q + at * dim, .acc = c->acc + (size_t)(query - c->queries) * dim, .max = -INFINITY};
            memset(query->acc, 0, dim * sizeof *query->acc);
        }
}

/* Scales a query; returns whether the result is exact, that is, did not overflow. Magnitudes are compared as integers,
 * which compilers vectorise. */
static bool scale_query(float *out, const float *q, int dim)
{
    int32_t top = 0;
    for (int d = 0; d < dim; d++) {
        out[d] = q[d] * F16_SCALE;
        top = max_int(top, (int32_t)(bits_from_f32(q[d]) & 0x7FFFFFFF));
    }
    return top < (int32_t)bits_from_f32(0x1p15f);
}

static void quantize_query(const struct span *s, struct query *query, int i)
{
    const struct cpu *c = s->a->c;
    size_t dim = (size_t)c->kv.head_dim;
    int8_t *code = s->s->code + (size_t)i * dim;
    float *scale = s->s->scale + (size_t)i * (dim / BLOCK);
    c->k.quantize(query->itself, (int)dim, code, scale, s->s->sum);
    query->code = code;
    query->scale = scale;
}

/* Computes what the kernels need of queries beside their values. */
static void span_begin(struct span *s)
{
    const struct cpu *c = s->a->c;
    size_t dim = (size_t)c->kv.head_dim;
    s->scaled = c->kv.type == KV_F16 && c->k.spread;
    for (int i = 0; i < s->heads * s->n; i++) {
        struct query *query = span_query(s, i / s->n, i % s->n);
        if (c->kv.type == KV_Q8) quantize_query(s, query, i);
        if (!s->scaled) continue;
        query->scaled = s->s->scaled + (size_t)i * dim;
        s->scaled = scale_query(s->s->scaled + (size_t)i * dim, query->itself, (int)dim);
    }
    s->in_registers = s->scaled && s->n <= FEW && dim % 16 == 0;
}

/* Sets how many positions of a page each query sees; returns the largest number. */
static int set_seen(const struct span *s, int page)
{
    int most = 0;
    for (int i = 0; i < s->n; i += s->group) {
        int left = s->a->rows[s->rows[i / s->group]].index + 1 - page * KV_PAGE,
            seen = max_int(0, min_int(left, KV_PAGE));
        for (int h = 0; h < s->heads; h++)
            for (int g = 0; g < s->group; g++) span_query(s, h, i + g)->seen = seen;
        most = max_int(most, seen);
    }
    return most;
}

/* Whether the first n positions should be read divided by F16_SCALE: no infinity or NaN, and few subnormals. */
static bool all_plain(const uint8_t *notes, int n)
{
    int odd = 0;
    for (int i = 0; i < n; i++) odd += notes[i];
    return odd <= SUBNORMAL_MAX;
}

static void page_scores(const struct span *s, const struct page_view *page, struct query *queries, int most,
                        float scale)
{
    const struct cpu *c = s->a->c;
    const void *keys = page->part[KEYS], *notes = page->part[KEY_NOTES];
    const float *floats = keys;
    int dim = c->kv.head_dim;
    if (c->kv.type == KV_Q8) {
        c->k.scores_q8(s->s->p, queries, s->n, keys, notes, dim, scale);
        return;
    }
    bool plain = s->scaled && all_plain(notes, most);
    if (plain && s->in_registers) {
        c->k.scores_f16(s->s->p, queries, s->n, keys, dim, scale);
        return;
    }
    for (int i = 0; i < s->n; i++) queries[i].q = plain ? queries[i].scaled : queries[i].itself;
    if (c->kv.type == KV_F16)
        floats = s->s->floats, (plain ? c->k.spread : c->k.widen)(s->s->floats, keys, KV_PAGE * dim);
    c->k.scores(s->s->p, queries, s->n, floats, dim, scale);
}

static void page_values(const struct span *s, const struct page_view *page, struct query *queries, int most)
{
    const struct cpu *c = s->a->c;
    const void *from = page->part[VALUES], *notes = page->part[VALUE_NOTES];
    const float *floats = from;
    int dim = c->kv.head_dim;
    bool plain = s->scaled && all_plain(notes, most);
    if (plain && s->in_registers) {
        c->k.values_f16(s->s->p, queries, s->n, from, dim);
        return;
    }
    for (int i = 0; plain && i < s->n * KV_PAGE; i++) s->s->p[i] *= F16_SCALE;
    if (c->kv.type == KV_F16) (plain ? c->k.spread : c->k.widen)(s->s->floats, from, KV_PAGE * dim);
    if (c->kv.type == KV_Q8) c->k.dequantize(s->s->floats, from, notes, most, dim);
    if (c->kv.type != KV_F32) floats = s->s->floats;
    c->k.values(s->s->p, queries, s->n, floats, dim);
}

static void span_attend(struct span *s)
{
    const struct cpu *c = s->a->c;
    float scale = c->kv.scale != 0 ? c->kv.scale : (float)(1.0 / sqrt((double)c->kv.head_dim));
    span_begin(s);
    for (int i = s->first_page; i < s->first_page + s->n_pages; i++) {
        int most = set_seen(s, i);
        for (int h = 0; h < s->heads; h++) {
            struct page_view page = page_at(c, s->pages[i], s->a->layer, s->head + h);
            struct query *queries = span_query(s, h, 0);
            page_scores(s, &page, queries, most, scale);
            c->k.soften(s->s->p, queries, s->n, c->kv.head_dim);
            page_values(s, &page, queries, most);
        }
    }
}

/* Number of pages of a span up to a position. */
static int pages_to(int last, int span) { return min_int(last / KV_PAGE + 1 - span * SPAN_PAGES, SPAN_PAGES); }

/* Computes rows row .. row + n - 1 of a tile over pages from .. to - 1 of its span. With few queries, all heads of a
 * page are computed before the next page. */
static void attend_rows(struct span s, int row, int n, const int32_t *pages, int from, int to)
{
    int end = s.head + s.heads;
    s.n = n * s.group;
    if (s.n > FEW) s.heads = 1;
    s.rows = s.tile->rows + row;
    s.pages = pages;
    s.first_page = s.tile->span * SPAN_PAGES + from;
    s.n_pages = to - from;
    for (; s.head < end && from < to; s.head += s.heads) {
        s.queries = tile_queries(s.a->c, s.tile, s.head, row);
        span_attend(&s);
    }
}

/* Computes heads head .. end - 1 of a tile: all rows over the shared pages, then each sequence's rows over its own. */
static void attend_heads(const struct attention *a, const struct tile *tile, int head, int end, int thread)
{
    const struct span s = {
        .a = a, .tile = tile, .s = &a->c->scratch[thread], .head = head, .heads = end - head, .group = group_of(a->c)};
    softmaxes_begin(a, tile, head, end);
    attend_rows(s, 0, tile->n, tile->pages, 0, tile->shared);
    if (tile->shared == pages_to(tile->last, tile->span)) return;
    for (int row = 0, n; row < tile->n; row += n) {
        const int32_t *pages = a->rows[tile->rows[row]].pages;
        int last = 0;
        for (n = 0; row + n < tile->n; n++) {
            const struct kv_row *next = &a->rows[tile->rows[row + n]];
            if (next->pages != pages) break;
            last = max_int(last, next->index);
        }
        attend_rows(s, row, n, pages, tile->shared, pages_to(last, tile->span));
    }
}

/* Cost of one head of a tile; the last span is shorter than the others. */
static int64_t tile_cost(const struct tile *tile)
{
    return (int64_t)tile->n * min_int(SPAN, tile->last + 1 - tile->span * SPAN);
}

/* Computes an interval of the total cost, which runs through the heads of all tiles. */
static void attend_between(const struct attention *a, int64_t begin, int64_t end, int thread)
{
    int heads = a->c->kv.n_kv_heads;
    int64_t at = 0;
    for (const struct tile *tile = a->c->tiles; tile < a->c->tiles + a->n_tiles; tile++) {
        int64_t cost = tile_cost(tile);
        int from = unit_from(begin - at, cost, heads), to = unit_from(end - at, cost, heads);
        if (from < to) attend_heads(a, tile, from, to, thread);
        at += heads * cost;
    }
}

static void attend_tiles(void *arg, int thread, int n_threads)
{
    const struct attention *a = arg;
    int64_t total = 0, begin, end;
    for (int t = 0; t < a->n_tiles; t++) total += a->c->kv.n_kv_heads * tile_cost(&a->c->tiles[t]);
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

void cpu_softmax_end(struct query *a, int dim)
{
    for (int d = 0; d < dim; d++) a->acc[d] /= a->sum;
}

static int spans_of(const struct kv_row *row) { return row->index / SPAN + 1; }

/* The output of one query of a row: merges its spans in order. */
static void merge_query(const struct attention *a, int row, const struct tile_place *spans, int query_head)
{
    const struct cpu *c = a->c;
    int dim = c->kv.head_dim, group = group_of(c);
    float *o = a->o + ((size_t)row * (size_t)c->kv.n_heads + (size_t)query_head) * (size_t)dim;
    struct query total = {.acc = o, .max = -INFINITY};
    memset(o, 0, (size_t)dim * sizeof *o);
    for (const struct tile_place *p = spans; p < spans + spans_of(&a->rows[row]); p++)
        cpu_softmax_merge(&total, tile_queries(c, &c->tiles[p->tile], query_head / group, p->row) + query_head % group,
                          dim);
    cpu_softmax_end(&total, dim);
}

static void merge_rows(void *arg, int thread, int n_threads)
{
    const struct attention *a = arg;
    const struct tile_place *spans = a->c->places;
    int begin, end;
    pool_share(a->end - a->first, thread, n_threads, &begin, &end);
    for (int row = a->first; row < a->first + end; spans += spans_of(&a->rows[row]), row++)
        for (int h = 0; row >= a->first + begin && h < a->c->kv.n_heads; h++) merge_query(a, row, spans, h);
}

/* --- all rows ------------------------------------------------------------------------------------------------ */

/* Whether a row joins a tile. A sequence that began alike has the same pages; joining pays if these are at least half
 * of the pages that both see. */
static bool joins(struct tile *tile, const struct kv_row *row)
{
    if (row->pages == tile->pages) return true;
    const int32_t *of = tile->pages + tile->span * SPAN_PAGES, *pages = row->pages + tile->span * SPAN_PAGES;
    int both = pages_to(min_int(tile->last, row->index), tile->span), same = 0;
    while (same < both && of[same] == pages[same]) same++;
    if (2 * same < both) return false;
    if (same < both) tile->shared = min_int(tile->shared, same);
    return true;
}

/* Makes the tile of row `first` and of the later rows that join it; `places` are the spans of that row. Returns the
 * number of rows. */
static int tile_from(struct attention *a, int span, int first, struct tile_place *places, int32_t *rows, size_t at)
{
    struct tile *tile = &a->c->tiles[a->n_tiles];
    *tile = (struct tile){.rows = rows,
                          .span = span,
                          .last = a->rows[first].index,
                          .pages = a->rows[first].pages,
                          .shared = SPAN_PAGES,
                          .at = at};
    for (int i = first; i < a->end && tile->n < TILE_ROWS; places += spans_of(&a->rows[i]), i++) {
        const struct kv_row *row = &a->rows[i];
        if (spans_of(row) <= span || places[span].tile >= 0 || !joins(tile, row)) continue;
        places[span] = (struct tile_place){a->n_tiles, tile->n};
        rows[tile->n++] = i;
        if (row->index > tile->last) tile->last = row->index, tile->pages = row->pages;
    }
    tile->shared = min_int(tile->shared, pages_to(tile->last, span));
    return a->n_tiles++, tile->n;
}

/* Cuts the rows of a turn into tiles, span by span. */
static void make_tiles(struct attention *a, int n_places)
{
    struct cpu *c = a->c;
    int used = 0;
    for (int i = 0; i < n_places; i++) c->places[i].tile = -1;
    for (int span = 0; used < n_places; span++) {
        struct tile_place *places = c->places;
        for (int i = a->first; i < a->end; places += spans_of(&a->rows[i]), i++)
            if (span < spans_of(&a->rows[i]) && places[span].tile < 0)
                used += tile_from(a, span, i, places, c->tile_rows + used, (size_t)used * (size_t)c->kv.n_heads);
    }
}

/* Begins a turn with as many rows as there is scratch for, at least one. Returns the number of their places. */
static int begin_turn(struct attention *a)
{
    int used = 0;
    for (; a->end < a->n && (uint64_t)(used + spans_of(&a->rows[a->end])) <= a->c->max_places; a->end++)
        used += spans_of(&a->rows[a->end]);
    a->n_tiles = 0;
    make_tiles(a, used);
    return used;
}

void cpu_attention(struct cpu *c, const struct op *op)
{
    struct attention a = {
        .c = c, .layer = op->layer, .n = op->n, .o = cpu_at(c, op->y), .q = cpu_at(c, op->x), .rows = op->kv};
    for (; a.end < a.n; a.first = a.end) {
        int softmaxes = begin_turn(&a) * c->kv.n_heads;
        cpu_run(c, true, attend_tiles, &a);
        cpu_run(c, softmaxes > MERGE_ALONE, merge_rows, &a);
    }
}
