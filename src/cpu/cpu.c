/* SPDX-License-Identifier: MIT
 *
 * The CPU backend: weights as panels, the operations spread over the pool.
 *
 * A product is split by panels, everything else by rows, always statically, and one output element is always computed by one
 * thread: the number of threads changes nothing but time. Small operations of one row stay on the calling thread, since a
 * barrier costs more than they do.
 */
#include "cpu.h"

#include "../reader.h"

#include <string.h>

static struct cpu *cpu_of(struct backend *b) { return (struct cpu *)b; }

void cpu_run(struct cpu *c, bool parallel, pool_fn *fn, void *arg)
{
    if (parallel) pool_run(c->pool, fn, arg);
    else fn(arg, 0, 1);
}

static const char *cpu_name(const struct backend *b) { return ((const struct cpu *)b)->k.name; }

static const char *cpu_dots(const struct backend *b)
{
    const struct kernels *k = &((const struct cpu *)b)->k;
    return k->expanded ? dots_names[k->dots] : "none";
}

/* --- weights ------------------------------------------------------------------------------------------ */

static int panel_count(int rows) { return (rows + PANEL_ROWS - 1) / PANEL_ROWS; }

static struct weight *cpu_weight_new(struct backend *b, const struct dtype *type, int rows, int cols)
{
    struct cpu *c = cpu_of(b);
    struct weight *w = mem_alloc(c->mem, sizeof *w);
    if (!w) return NULL;
    *w = (struct weight){.type = type, .rows = rows, .cols = cols, .panel = panel_bytes(type->layout, cols)};
    uint64_t bytes = (uint64_t)panel_count(rows) * w->panel;
    w->panels = layouts[type->layout].scaled ? mem_alloc(c->mem, bytes) : mem_alloc_raw(c->mem, bytes); /* scales of rows past the end are never set */
    c->like[type->layout] = *w;
    if (w->panels) return w;
    mem_free(c->mem, w);
    return NULL;
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
    int row, n;
    const uint8_t *rows;
    size_t row_bytes;
};

static void put_panels(void *arg, int thread, int n_threads)
{
    struct put *p = arg;
    int begin, end;
    pool_share(panel_count(p->n), thread, n_threads, &begin, &end);
    for (int i = begin; i < end; i++) {
        uint8_t *panel = p->w->panels + (size_t)(p->row / PANEL_ROWS + i) * p->w->panel;
        int n = min_int(PANEL_ROWS, p->n - i * PANEL_ROWS);
        const uint8_t *rows = p->rows + (size_t)i * PANEL_ROWS * p->row_bytes;
        pack_panel(p->w->type, rows, p->row_bytes, n, p->w->cols, panel);
    }
}

static void cpu_weight_put(struct backend *b, struct weight *w, int row, int n, const uint8_t *rows)
{
    size_t row_bytes = (size_t)w->cols / w->type->block * w->type->bytes;
    w->has_rows = true;
    struct put put = {.w = w, .row = row, .n = n, .rows = rows, .row_bytes = row_bytes};
    cpu_run(cpu_of(b), (size_t)n * row_bytes > 65536, put_panels, &put);
}

static void cpu_weight_scale(struct backend *b, struct weight *w, int row, int n_rows, int col, int n_cols, float scale)
{
    (void)b;
    w->has_scales = true;
    for (int i = row; i < row + n_rows; i++) pack_scale(w->type->layout, w->panels + (size_t)(i / PANEL_ROWS) * w->panel, i % PANEL_ROWS, col, n_cols, scale);
}

static struct weight_facts cpu_weight_facts(const struct backend *b, const struct weight *w)
{
    (void)b;
    return (struct weight_facts){w->type, w->rows, w->cols, (uint64_t)panel_count(w->rows) * w->panel, w->has_rows, w->has_scales};
}

/* --- products ----------------------------------------------------------------------------------------- */

struct matmul {
    struct cpu *c;
    const struct product *p;
    int n_products, n;
    const float *x;
    gemv_fn *const *gemv; /* of each layout */
    bool form[FORMS];     /* of the activations, that some product takes */
};

/* Calls body for tiles t .. t + height - 1 of n rows. */
#define EACH_TILE(k, n, t, height) for (int t = 0, height; t < (n) && (height = tile_rows((k), (n) - t)) > 0; t += height)

/* Codes of tiles of rows, arranged as gemm takes them. Threads take whole tiles. */
static void quantize_rows(void *arg, int thread, int n_threads)
{
    struct matmul *m = arg;
    struct cpu *c = m->c;
    size_t cols = (size_t)c->act.cols, blocks = cols / BLOCK;
    int begin, end;
    pool_share(m->n, thread, n_threads, &begin, &end);
    EACH_TILE(&c->k, m->n, first, height) {
        if (first < begin || first >= end) continue;
        for (size_t t = (size_t)first; t < (size_t)(first + height); t++)
            c->k.quantize(m->x + t * cols, (int)cols, c->code + t * cols, c->scale + t * blocks, c->sum + t * blocks * 2);
        for (int f = 0; f < FORMS; f++)
            if (m->form[f] && c->k.arrange[f]) c->k.arrange[f](&c->act, first, height, c->arranged[f] + (size_t)first * blocks * c->k.arranged[f]);
    }
}

/* All rows against panel i of one product. */
static void panel_product(const struct matmul *m, const struct product *p, int i, int thread)
{
    const struct weight *w = p->w;
    struct cpu *c = m->c;
    enum layout layout = w->type->layout;
    const uint8_t *panel = w->panels + (size_t)i * w->panel;
    size_t width = (size_t)min_int(PANEL_ROWS, w->rows - i * PANEL_ROWS);
    float out[TILE * PANEL_ROWS];
    if (c->k.expand[layout]) {
        uint8_t *expanded = c->expanded + (size_t)thread * c->expanded_size;
        c->k.expand[layout](panel, w->cols, expanded);
        panel = expanded;
    }
    EACH_TILE(&c->k, m->n, t, height) {
        c->k.gemm[layout](panel, &c->act, t, height, out);
        for (int j = 0; j < height; j++)
            memcpy(p->y + (size_t)(t + j) * (size_t)w->rows + (size_t)i * PANEL_ROWS, out + j * PANEL_ROWS, width * sizeof *out);
    }
}

/* One row against panels i .. i + STREAMS - 1. */
static void streams_product(const struct matmul *m, const struct product *p, int i)
{
    const struct weight *w = p->w;
    size_t width = (size_t)min_int(STREAMS * PANEL_ROWS, w->rows - i * PANEL_ROWS);
    float out[STREAMS * PANEL_ROWS];
    m->gemv[w->type->layout](w->panels + (size_t)i * w->panel, w->panel, &m->c->act, out);
    memcpy(p->y + (size_t)i * PANEL_ROWS, out, width * sizeof *out);
}

/* Panels i .. end - 1 of one product. */
static void panel_range(const struct matmul *m, const struct product *p, int i, int end, int thread)
{
    if (m->n == 1 && m->gemv[p->w->type->layout])
        for (; i + STREAMS <= end; i += STREAMS) streams_product(m, p, i);
    for (; i < end; i++) panel_product(m, p, i, thread);
}

/* Groups of panels that gemv takes at once; the last one of a product may be smaller. */
static int group_count(const struct product *p) { return (panel_count(p->w->rows) + STREAMS - 1) / STREAMS; }

/* Groups of all products count through, so that threads share them evenly. */
static void multiply(void *arg, int thread, int n_threads)
{
    const struct matmul *m = arg;
    int total = 0, begin, end, first = 0;
    for (int j = 0; j < m->n_products; j++) total += group_count(&m->p[j]);
    pool_share(total, thread, n_threads, &begin, &end);
    for (int j = 0; j < m->n_products; j++) {
        int count = group_count(&m->p[j]), panels = panel_count(m->p[j].w->rows);
        panel_range(m, &m->p[j], STREAMS * max_int(begin - first, 0), min_int(STREAMS * min_int(end - first, count), panels), thread);
        first += count;
    }
}

/* Codes of x, where a product takes them. */
static void prepare_rows(struct matmul *m)
{
    bool quantised = false;
    for (int j = 0; j < m->n_products; j++) {
        enum layout layout = m->p[j].w->type->layout;
        if (layouts[layout].quantised) quantised = m->form[m->c->k.form[layout]] = true;
    }
    if (quantised) cpu_run(m->c, m->n >= 8, quantize_rows, m);
}

static void multiply_row(struct matmul *m)
{
    struct race *race = &m->c->race;
    double bytes = 0, start = now_ms();
    for (int j = 0; j < m->n_products; j++) bytes += (double)m->p[j].w->panel * panel_count(m->p[j].w->rows);
    cpu_run(m->c, true, multiply, m);
    race_add(race, bytes, now_ms() - start);
}

static void cpu_matmul(struct backend *b, const struct product *p, int n_products, const float *x, int n)
{
    struct cpu *c = cpu_of(b);
    struct matmul m = {.c = c, .p = p, .n_products = n_products, .n = n, .x = x, .gemv = c->k.gemv[race_order(&c->race)]};
    c->act = (struct act){.x = x, .code = c->code, .scale = c->scale, .sum = c->sum, .cols = p->w->cols};
    memcpy(c->act.tiles, c->arranged, sizeof c->arranged);
    prepare_rows(&m);
    if (n == 1 && !race_over(&c->race)) multiply_row(&m);
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
    int n, dim, heads;
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
    size_t half = (size_t)op->dim / 2, heads = (size_t)op->heads;
    EACH_ROW(op, t)
        for (size_t h = 0; h < heads; h++)
            op->c->k.rope(op->y + (t * heads + h) * half * 2, op->cosine + t * half, op->sine + t * half, (int)half);
}

static void cpu_rope(struct backend *b, float *x, const float *cosine, const float *sine, int n, int heads, int head_dim)
{
    run_rows(&(struct rows_op){.c = cpu_of(b), .y = x, .cosine = cosine, .sine = sine, .n = n, .heads = heads, .dim = head_dim}, rope_rows);
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
    .dots = cpu_dots,
    .free = cpu_free,
    .weight_new = cpu_weight_new,
    .weight_cost = cpu_weight_cost,
    .weight_free = cpu_weight_free,
    .weight_put = cpu_weight_put,
    .weight_scale = cpu_weight_scale,
    .weight_facts = cpu_weight_facts,
    .reserve_cost = cpu_reserve_cost,
    .reserve = cpu_reserve,
    .warm = cpu_warm,
    .kv_copy = cpu_kv_copy,
    .kv_poison = cpu_kv_poison,
    .embed = cpu_embed,
    .rmsnorm = cpu_rmsnorm,
    .matmul = cpu_matmul,
    .rope = cpu_rope,
    .kv_append = cpu_kv_append,
    .attention = cpu_attention,
    .swiglu = cpu_swiglu,
    .add = cpu_add,
};

struct backend *backend_cpu(struct mem *m, struct pool *pool, bool scalar)
{
    struct cpu *c = mem_alloc(m, sizeof *c);
    if (!c) return NULL;
    c->base.ops = &cpu_ops;
    c->mem = m;
    c->pool = pool;
    c->k = scalar ? kernels_scalar : kernels_simd(dots_choose());
    return &c->base;
}
