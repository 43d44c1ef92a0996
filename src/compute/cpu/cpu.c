/* SPDX-License-Identifier: MIT
 *
 * The CPU backend: weights as panels, the operations spread over the pool.
 *
 * A product's panels and attention's spans are claimed by whichever thread is free, the rest is split beforehand; one output
 * element is always computed by one thread: the number of threads changes nothing but time. Small operations of one row stay
 * on the calling thread, since a barrier costs more than they do.
 */
#include "compute/cpu/cpu.h"

#include "base/hash.h"
#include "base/reader.h"
#include "weights/quantize.h"

#include <string.h>

static struct cpu *cpu_of(struct backend *b) { return (struct cpu *)b; }

void cpu_run(struct cpu *c, bool parallel, pool_fn *fn, void *arg)
{
    c->claimed = 0;
    if (parallel) pool_run(c->pool, fn, arg);
    else fn(arg, 0, 1);
}

static const char *cpu_name(const struct backend *b) { return ((const struct cpu *)b)->k.name; }

static struct kernels kernels_of(bool scalar) { return scalar ? kernels_scalar : kernels_simd(dots_choose()); }

const char *backend_cpu_dots(bool scalar)
{
    const struct kernels k = kernels_of(scalar);
    return k.expanded ? dots_names[k.dots] : "none";
}

/* --- weights ------------------------------------------------------------------------------------------ */

static int panel_count(int rows) { return (rows + PANEL_ROWS - 1) / PANEL_ROWS; }

static uint64_t weight_bytes(const struct weight *w) { return (uint64_t)panel_count(w->rows) * w->panel; }

static struct weight *cpu_weight_new(struct backend *b, const struct dtype *type, int rows, int cols)
{
    struct cpu *c = cpu_of(b);
    struct weight *w = mem_alloc(c->mem, sizeof *w);
    if (!w) return NULL;
    *w = (struct weight){.type = type, .from = type, .rows = rows, .cols = cols, .panel = panel_bytes(type->layout, cols)};
    /* Scales of rows past the end are never set. */
    w->panels = layouts[type->layout].scaled ? mem_alloc(c->mem, weight_bytes(w)) : mem_alloc_raw(c->mem, weight_bytes(w));
    c->like[type->layout] = *w;
    if (w->panels) return w;
    mem_free(c->mem, w);
    return NULL;
}

static void cpu_weight_from(struct backend *b, struct weight *w, const struct dtype *type)
{
    (void)b;
    w->from = type;
}

static uint64_t cpu_weight_cost(const struct backend *b, const struct dtype *type, int rows, int cols)
{
    (void)b;
    uint64_t panels, total;
    if (!mul64((uint64_t)panel_count(rows), panel_bytes(type->layout, cols), &panels)) return UINT64_MAX;
    return add64(mem_cost(panels), mem_cost(sizeof(struct weight)), &total) ? total : UINT64_MAX;
}

static void cpu_weight_free(struct backend *b, struct weight *w)
{
    if (!w) return;
    mem_free(cpu_of(b)->mem, w->panels);
    mem_free(cpu_of(b)->mem, w);
}

struct put {
    struct weight *w;
    int row, n, col, n_cols;
    const uint8_t *rows;
    size_t row_bytes;
};

static void put_panels(void *arg, int thread, int n_threads)
{
    struct put *p = arg;
    int begin, end;
    pool_share(panel_count(p->n), thread, n_threads, &begin, &end);
    for (int i = begin; i < end; i++) {
        uint8_t *panel = p->w->panels + (size_t)(p->row / PANEL_ROWS + i) * p->w->panel + panel_bytes(p->w->type->layout, p->col);
        int n = min_int(PANEL_ROWS, p->n - i * PANEL_ROWS);
        const uint8_t *rows = p->rows + (size_t)i * PANEL_ROWS * p->row_bytes;
        if (p->w->from != p->w->type) quantize_panel(p->w->from, rows, p->row_bytes, n, p->n_cols, p->w->type, panel);
        else pack_panel(p->w->type, rows, p->row_bytes, n, p->n_cols, panel);
    }
}

static void cpu_weight_put_columns(struct backend *b, struct weight *w, int row, int n, int col, int n_cols, const uint8_t *rows, size_t row_bytes)
{
    struct put put = {.w = w, .row = row, .n = n, .col = col, .n_cols = n_cols, .rows = rows, .row_bytes = row_bytes};
    w->has_rows = true;
    cpu_run(cpu_of(b), (size_t)n * row_bytes > 65536, put_panels, &put);
}

static void cpu_weight_put(struct backend *b, struct weight *w, int row, int n, const uint8_t *rows)
{
    cpu_weight_put_columns(b, w, row, n, 0, w->cols, rows, (size_t)w->cols / w->from->block * w->from->bytes);
}

static void cpu_weight_scale(struct backend *b, struct weight *w, int row, int n_rows, int col, int n_cols, float scale)
{
    (void)b;
    w->has_scales = true;
    for (int i = row; i < row + n_rows; i++)
        pack_scale(w->type->layout, w->panels + (size_t)(i / PANEL_ROWS) * w->panel, i % PANEL_ROWS, col, n_cols, scale);
}

static struct weight_facts cpu_weight_facts(const struct backend *b, const struct weight *w)
{
    (void)b;
    return (struct weight_facts){w->type, w->rows, w->cols, weight_bytes(w), w->has_rows, w->has_scales};
}

static void cpu_weight_hash(const struct backend *b, const struct weight *w, uint64_t from, uint64_t n, uint8_t *out)
{
    (void)b;
    hash128(w->panels + from, (size_t)n, out);
}

/* --- products ----------------------------------------------------------------------------------------- */

struct matmul {
    struct cpu *c;
    const struct product *p;
    int n_products, n;
    const float *x;
    const struct route *route; /* NULL: one expert, who has all rows */
    enum order order;     /* in which panels are read as they are */
    bool form[ROWS_KINDS][FORMS]; /* of the activations, that some product takes */
};

/* Calls body for tiles t .. t + height - 1 of n rows. */
#define EACH_TILE(k, layout, n, t, height) \
    for (int t = 0, height; t < (n) && (height = tile_rows((k), (layout), (n), (n) - t)) > 0; t += height)

/* The rows of one expert. */
struct group {
    int first, n;
};

static int expert_count(const struct matmul *m) { return m->route ? m->route->n_experts : 1; }

static struct group group_of(const struct matmul *m, int expert)
{
    if (!m->route) return (struct group){0, m->n};
    const int32_t *first = m->route->first + expert;
    return (struct group){first[0], first[1] - first[0]};
}

/* Codes of one tile of rows, arranged as products of so many take them. */
static void quantize_tile(const struct matmul *m, int first, int height, int kind)
{
    struct cpu *c = m->c;
    size_t cols = (size_t)c->act.cols, blocks = cols / BLOCK;
    for (size_t t = (size_t)first; t < (size_t)(first + height); t++)
        c->k.quantize(m->x + t * cols, (int)cols, c->code + t * cols, c->scale + t * blocks, c->sum + t * blocks * 2);
    for (int f = 0; f < FORMS; f++)
        if (m->form[kind][f] && c->k.arrange[f]) c->k.arrange[f](&c->act, first, height, c->arranged[f] + (size_t)first * blocks * c->k.arranged[f]);
}

/* Threads take whole tiles. */
static void quantize_rows(void *arg, int thread, int n_threads)
{
    const struct matmul *m = arg;
    int begin, end;
    pool_share(m->n, thread, n_threads, &begin, &end);
    for (int e = 0; e < expert_count(m); e++) {
        struct group g = group_of(m, e);
        EACH_TILE(&m->c->k, LAYOUT_Q8, g.n, t, height)
            if (g.first + t >= begin && g.first + t < end) quantize_tile(m, g.first + t, height, rows_kind(g.n));
    }
}

/* One expert's part of a product, or of its columns. */
struct part {
    const struct weight *w;
    const uint8_t *panels; /* [ceil(rows / 8)] the expert's */
    int rows;              /* of its matrix */
    struct group g;
    float *y;              /* [g.n, stride] */
    size_t stride;
};

/* Columns of y that one expert makes. */
static int part_rows(const struct matmul *m, const struct product *p) { return p->rows ? p->rows : p->w->rows / expert_count(m); }

static struct part part_of(const struct matmul *m, const struct product *p, int expert)
{
    int rows = p->w->rows / expert_count(m);
    struct group g = group_of(m, expert);
    size_t panel = (size_t)(expert * panel_count(rows) + p->first / PANEL_ROWS);
    return (struct part){p->w, p->w->panels + panel * p->w->panel, part_rows(m, p), g, p->y + (size_t)(g.first * (int64_t)rows + p->first),
                         (size_t)rows};
}

/* Rows t .. t + height - 1 of panel i's columns = out [height, 8] */
static void put_tile(const struct part *p, int i, int t, int height, const float *out)
{
    size_t width = (size_t)min_int(PANEL_ROWS, p->rows - i * PANEL_ROWS);
    for (int j = 0; j < height; j++)
        memcpy(p->y + (size_t)(t + j) * p->stride + (size_t)i * PANEL_ROWS, out + j * PANEL_ROWS, width * sizeof *out);
}

/* All rows against panel i, expanded where that pays. */
static void panel_product(const struct matmul *m, const struct part *p, int i, int thread)
{
    const struct weight *w = p->w;
    struct cpu *c = m->c;
    enum layout layout = w->type->layout;
    const uint8_t *panel = p->panels + (size_t)i * w->panel;
    float out[TILE * PANEL_ROWS];
    if (c->k.expand[layout]) {
        uint8_t *expanded = c->expanded + (size_t)thread * c->expanded_size;
        c->k.expand[layout](panel, w->cols, expanded);
        panel = expanded;
    }
    EACH_TILE(&c->k, layout, p->g.n, t, height) {
        c->k.gemm[layout](panel, &c->act, p->g.first + t, height, out);
        put_tile(p, i, t, height, out);
    }
}

/* One row or few against n panels from i on, as they are. */
static void packed_product(const struct matmul *m, const struct part *p, gemv_fn *gemv, int i, int n)
{
    const struct weight *w = p->w;
    float out[STREAMS * FEW_TILE * PANEL_ROWS];
    EACH_TILE(&m->c->k, w->type->layout, p->g.n, t, height) {
        gemv(p->panels + (size_t)i * w->panel, w->panel, n, &m->c->act, p->g.first + t, height, out);
        for (int j = 0; j < n; j++) put_tile(p, i + j, t, height, out + j * height * PANEL_ROWS);
    }
}

/* Panels i .. end - 1. A row's kernels take STREAMS, and what is left in turn. */
static void panel_range(const struct matmul *m, const struct part *p, int i, int end, int thread)
{
    const struct kernels *k = &m->c->k;
    enum layout layout = p->w->type->layout;
    int kind = rows_kind(p->g.n), most = kind == ONE_ROW ? STREAMS : m->order == IN_TURN ? 1 : k->few_at_once[layout];
    gemv_fn *all = kind == ONE_ROW ? k->gemv[m->order][layout] : k->few[kind][layout], *rest = kind == ONE_ROW ? k->gemv[IN_TURN][layout] : all;
    for (int n; i < end && all; i += n) {
        n = min_int(most, end - i);
        packed_product(m, p, n == STREAMS ? all : rest, i, n);
    }
    for (; i < end; i++) panel_product(m, p, i, thread);
}

/* Work is counted in units of STREAMS panels, which a row's kernels take at once; the last unit of a matrix may be smaller. */
static int unit_count(int rows) { return (panel_count(rows) + STREAMS - 1) / STREAMS; }

/* What a unit costs an expert: its rows, and as much as some more for reading the panels, or for expanding them. */
static int64_t unit_cost(struct group g)
{
    enum { READING = 1, EXPANDING = 3 };
    return g.n ? g.n + (rows_kind(g.n) == MANY_ROWS ? EXPANDING : READING) : 0;
}

static int64_t total_cost(const struct matmul *m)
{
    int64_t sum = 0, units = 0;
    for (int j = 0; j < m->n_products; j++) units += unit_count(part_rows(m, &m->p[j]));
    for (int e = 0; e < expert_count(m); e++) sum += units * unit_cost(group_of(m, e));
    return sum;
}

/* An interval of the cost, in which units of all experts and products count through. */
static void multiply_between(const struct matmul *m, int64_t begin, int64_t end, int thread)
{
    int64_t at = 0;
    for (int e = 0; e < expert_count(m); e++) {
        int64_t cost = unit_cost(group_of(m, e));
        for (int j = 0; cost && j < m->n_products; j++) {
            struct part p = part_of(m, &m->p[j], e);
            int units = unit_count(p.rows), from = unit_from(begin - at, cost, units), to = unit_from(end - at, cost, units);
            panel_range(m, &p, STREAMS * from, min_int(STREAMS * to, panel_count(p.rows)), thread);
            at += cost * units;
        }
    }
}

static void multiply(void *arg, int thread, int n_threads)
{
    const struct matmul *m = arg;
    int64_t total = total_cost(m), begin, end;
    while (pool_claim(&m->c->claimed, total, n_threads, &begin, &end)) multiply_between(m, begin, end, thread);
}

/* Codes of x, where a product takes them. */
static void prepare_rows(struct matmul *m)
{
    bool quantised = false;
    for (int j = 0; j < m->n_products; j++) {
        enum layout layout = m->p[j].w->type->layout;
        if (layouts[layout].kind == KIND_FLOAT) continue;
        quantised = true;
        for (int kind = ONE_ROW; kind < ROWS_KINDS; kind++) m->form[kind][m->c->k.form[kind][layout]] = true;
    }
    if (quantised) cpu_run(m->c, m->n >= 8, quantize_rows, m);
}

static void multiply_row(struct matmul *m)
{
    double bytes = 0, start = now_ms();
    for (int j = 0; j < m->n_products; j++) bytes += (double)panel_count(part_rows(m, &m->p[j])) * (double)m->p[j].w->panel;
    cpu_run(m->c, true, multiply, m);
    race_add(&m->c->race, bytes, now_ms() - start);
}

static void cpu_matmul(struct backend *b, const struct product *p, int n_products, const float *x, int n, const struct route *r)
{
    struct cpu *c = cpu_of(b);
    bool races = n == 1 && !r && race_on(&c->race);
    struct matmul m = {.c = c, .p = p, .n_products = n_products, .n = n, .x = x, .route = r, .order = race_order(&c->race)};
    c->act = (struct act){.x = x, .code = c->code, .scale = c->scale, .sum = c->sum, .cols = p->w->cols};
    memcpy(c->act.tiles, c->arranged, sizeof c->arranged);
    prepare_rows(&m);
    if (races) multiply_row(&m);
    else cpu_run(c, true, multiply, &m);
}

/* --- operations by row --------------------------------------------------------------------------------- */

struct rows_op {
    struct cpu *c;
    float *y;
    const float *x, *w;
    const float *cosine, *sine;
    const int32_t *ids;
    const struct weight *table;
    const float *const *features;
    int n, dim, heads, rot, from;
    bool add;
    float eps;
};

/* Runs fn with the calling row range of each thread; parallel from about 16 K elements on. */
static void run_rows(struct rows_op *op, pool_fn *fn)
{
    cpu_run(op->c, op->n > 1 && (int64_t)op->n * op->dim > 16384, fn, op);
}

#define EACH_ROW(op, t)                                          \
    int begin_, end_;                                            \
    pool_share((op)->n, thread, n_threads, &begin_, &end_);      \
    for (size_t t = (size_t)begin_; t < (size_t)end_; t++)

static void embed_rows(void *arg, int thread, int n_threads)
{
    struct rows_op *op = arg;
    const struct weight *w = op->table;
    EACH_ROW(op, t) {
        size_t id = (size_t)op->ids[t];
        unpack_panel_row(w->type->layout, w->panels + id / PANEL_ROWS * w->panel, (int)(id % PANEL_ROWS), w->cols, op->y + t * (size_t)w->cols);
    }
}

static void cpu_embed(struct backend *b, float *y, const struct weight *w, const int32_t *ids, int n)
{
    run_rows(&(struct rows_op){.c = cpu_of(b), .y = y, .table = w, .ids = ids, .n = n, .dim = w->cols}, embed_rows);
}

static void feature_rows(void *arg, int thread, int n_threads)
{
    struct rows_op *op = arg;
    size_t dim = (size_t)op->dim;
    EACH_ROW(op, t) {
        if (!op->features[t]) continue;
        if (op->add) op->c->k.add(op->y + t * dim, op->features[t] + op->from, op->dim);
        else memcpy(op->y + t * dim, op->features[t] + op->from, dim * sizeof *op->y);
    }
}

static void cpu_features(struct backend *b, float *x, const float *const *features, int from, int n, int dim, bool add)
{
    run_rows(&(struct rows_op){.c = cpu_of(b), .y = x, .features = features, .from = from, .n = n, .dim = dim, .add = add}, feature_rows);
}

static void cpu_pick(struct backend *b, float *y, const float *x, const int32_t *rows, int n, int dim)
{
    (void)b;
    for (int i = 0; i < n; i++) memcpy(y + (size_t)i * (size_t)dim, x + (size_t)rows[i] * (size_t)dim, (size_t)dim * sizeof *y);
}

static void rmsnorm_rows(void *arg, int thread, int n_threads)
{
    struct rows_op *op = arg;
    size_t dim = (size_t)op->dim;
    EACH_ROW(op, t) op->c->k.rmsnorm(op->y + t * dim, op->x + t * dim, op->w, op->dim, op->eps);
}

static void cpu_rmsnorm(struct backend *b, float *y, const float *x, const float *w, int n, int dim, float eps)
{
    run_rows(&(struct rows_op){.c = cpu_of(b), .y = y, .x = x, .w = w, .n = n, .dim = dim, .eps = eps}, rmsnorm_rows);
}

static void rope_rows(void *arg, int thread, int n_threads)
{
    struct rows_op *op = arg;
    size_t half = (size_t)op->rot / 2, heads = (size_t)op->heads, dim = (size_t)op->dim;
    EACH_ROW(op, t)
        for (size_t h = 0; h < heads; h++) op->c->k.rope(op->y + (t * heads + h) * dim, op->cosine + t * half, op->sine + t * half, (int)half);
}

static void cpu_rope(struct backend *b, float *x, const float *cosine, const float *sine, int n, int heads, int head_dim, int rot)
{
    run_rows(&(struct rows_op){.c = cpu_of(b), .y = x, .cosine = cosine, .sine = sine, .n = n, .heads = heads, .dim = head_dim, .rot = rot},
             rope_rows);
}

static void swiglu_rows(void *arg, int thread, int n_threads)
{
    struct rows_op *op = arg;
    size_t dim = (size_t)op->dim;
    EACH_ROW(op, t) op->c->k.swiglu(op->y + t * dim, op->x + t * dim, op->dim);
}

static void cpu_swiglu(struct backend *b, float *gate, const float *up, int n, int dim)
{
    run_rows(&(struct rows_op){.c = cpu_of(b), .y = gate, .x = up, .n = n, .dim = dim}, swiglu_rows);
}

static void add_rows(void *arg, int thread, int n_threads)
{
    struct rows_op *op = arg;
    size_t dim = (size_t)op->dim;
    EACH_ROW(op, t) op->c->k.add(op->y + t * dim, op->x + t * dim, op->dim);
}

static void cpu_add(struct backend *b, float *x, const float *y, int n, int dim)
{
    run_rows(&(struct rows_op){.c = cpu_of(b), .y = x, .x = y, .n = n, .dim = dim}, add_rows);
}

/* --- life ---------------------------------------------------------------------------------------------- */

/* All scratch, for c->kv and c->max_rows; measures while a->base is NULL. */
static void take_scratch(struct arena *a, struct cpu *c, int max_cols)
{
    uint64_t blocks = (uint64_t)(max_cols + BLOCK - 1) / BLOCK, cells = (uint64_t)c->max_rows * blocks;
    c->code = arena_take(a, cells, BLOCK);
    c->scale = arena_take(a, cells, sizeof *c->scale);
    c->sum = arena_take(a, cells, BLOCK / 16 * sizeof *c->sum);
    for (int f = 0; f < FORMS; f++) c->arranged[f] = arena_take(a, cells, c->k.arranged[f]);
    c->expanded_size = (size_t)blocks * c->k.expanded;
    c->expanded = arena_take(a, (uint64_t)pool_threads(c->pool), c->expanded_size);
    cpu_attention_take(a, c);
}

static uint64_t scratch_bytes(const struct cpu *c, const struct kv_shape *shape, int max_rows, int max_cols)
{
    struct cpu measured = *c;
    struct arena a = {0};
    measured.kv = *shape;
    measured.max_rows = max_rows;
    take_scratch(&a, &measured, max_cols);
    return a.used;
}

/* UINT64_MAX when they are more. */
static uint64_t pages_bytes(const struct kv_shape *shape)
{
    uint64_t bytes;
    return mul64((uint64_t)shape->n_pages, cpu_page_bytes(shape), &bytes) ? bytes : UINT64_MAX;
}

static struct reserve_cost cpu_reserve_cost(const struct backend *b, const struct kv_shape *shape, int max_rows, int max_cols)
{
    return (struct reserve_cost){mem_cost(scratch_bytes((const struct cpu *)b, shape, max_rows, max_cols)), mem_cost(pages_bytes(shape))};
}

static int cpu_reserve(struct backend *b, const struct kv_shape *shape, int max_rows, int max_cols)
{
    struct cpu *c = cpu_of(b);
    struct arena a = {.base = mem_alloc(c->mem, scratch_bytes(c, shape, max_rows, max_cols))};
    if (!a.base) return ERR_MEM_LOAD;
    c->memory = a.base;
    c->kv = *shape;
    c->max_rows = max_rows;
    take_scratch(&a, c, max_cols);
    /* Not zeroed: pages that no conversation has reached cost no memory on systems that commit on first touch. */
    c->pages = mem_alloc_raw(c->mem, pages_bytes(shape));
    if (c->pages) return OK;
    mem_free(c->mem, c->memory);
    c->memory = NULL;
    return ERR_MEM_KV;
}

static void cpu_free(struct backend *b)
{
    struct cpu *c = cpu_of(b);
    void *parts[] = {c->pages, c->memory, c->warm, c};
    struct mem *m = c->mem;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) mem_free(m, parts[i]);
}

static const struct backend_ops cpu_ops = {
    .name = cpu_name,
    .free = cpu_free,
    .weight_new = cpu_weight_new,
    .weight_from = cpu_weight_from,
    .weight_cost = cpu_weight_cost,
    .weight_free = cpu_weight_free,
    .weight_put = cpu_weight_put,
    .weight_put_columns = cpu_weight_put_columns,
    .weight_scale = cpu_weight_scale,
    .weight_facts = cpu_weight_facts,
    .weight_hash = cpu_weight_hash,
    .reserve_cost = cpu_reserve_cost,
    .reserve = cpu_reserve,
    .warm = cpu_warm,
    .kv_copy = cpu_kv_copy,
    .kv_bytes = cpu_kv_bytes,
    .kv_get = cpu_kv_get,
    .kv_set = cpu_kv_set,
    .embed = cpu_embed,
    .features = cpu_features,
    .pick = cpu_pick,
    .rmsnorm = cpu_rmsnorm,
    .matmul = cpu_matmul,
    .route = cpu_route,
    .gather = cpu_gather,
    .combine = cpu_combine,
    .rope = cpu_rope,
    .kv_append = cpu_kv_append,
    .attention = cpu_attention,
    .swiglu = cpu_swiglu,
    .add = cpu_add,
    .layernorm = cpu_layernorm,
    .bias = cpu_bias,
    .gelu = cpu_gelu,
    .kept_size = cpu_kept_size,
    .keep = cpu_keep,
    .attend_all = cpu_attend_all,
};

struct backend *backend_cpu(struct mem *m, struct pool *pool, bool scalar)
{
    struct cpu *c = mem_alloc(m, sizeof *c);
    if (!c) return NULL;
    c->base.ops = &cpu_ops;
    c->mem = m;
    c->pool = pool;
    c->k = kernels_of(scalar);
    return &c->base;
}
