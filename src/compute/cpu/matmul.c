/* SPDX-License-Identifier: MIT
 *
 * Products of rows with weights.
 *
 * Free threads claim panels; one output element is always computed by one thread, so the number of threads changes
 * nothing but the time. One row is limited by memory and races for the fastest order of reading; few rows share the
 * reads of a packed panel; many rows share an expanded panel.
 */
#include "compute/cpu/cpu.h"

#include <string.h>

struct matmul {
    struct cpu *c;
    struct product p[OP_PRODUCTS];
    int n_products, n;
    const float *x;
    int n_experts;        /* 0: one group of all rows */
    const int32_t *first; /* [n_experts + 1] first row of each expert */
    enum order order;     /* order of reading packed panels */
    bool form[ROWS_KINDS][FORMS]; /* forms of the activations that some product needs */
};

/* Runs the body for tiles t .. t + height - 1 of n rows. */
#define EACH_TILE(k, layout, n, t, height) \
    for (int t = 0, height; t < (n) && (height = tile_rows((k), (layout), (n), (n) - t)) > 0; t += height)

/* The rows of one expert. */
struct group {
    int first, n;
};

static int expert_count(const struct matmul *m) { return m->n_experts ? m->n_experts : 1; }

static struct group group_of(const struct matmul *m, int expert)
{
    if (!m->n_experts) return (struct group){0, m->n};
    const int32_t *first = m->first + expert;
    return (struct group){first[0], first[1] - first[0]};
}

/* How n rows are multiplied with weights of a layout, as an index of tables by rows. Tables of sums exist for FEW_MOST
 * rows of all experts together; for more, few rows of an expert are multiplied as many are. */
static int kind_of(const struct matmul *m, enum layout layout, int n)
{
    int kind = rows_kind(n);
    return m->n > FEW_MOST && m->c->k.form[kind][layout] == FORM_TABLES ? MANY_ROWS : kind;
}

/* Quantises row t, whose columns are put in the order of the weights. */
static void quantize_row(const struct matmul *m, size_t t, const uint32_t *order)
{
    struct cpu *c = m->c;
    size_t cols = (size_t)c->act.cols, blocks = cols / BLOCK;
    const float *x = m->x + t * cols;
    int8_t *code = c->code + t * cols;
    float *scale = c->scale + t * blocks;
    int16_t *sum = c->sum + t * blocks * 2;
    if (!order) {
        c->k.quantize(x, (int)cols, code, scale, sum);
        return;
    }
    for (size_t b = 0; b < blocks; b++, order += BLOCK) {
        float block[BLOCK];
        for (int i = 0; i < BLOCK; i++) block[i] = x[order[i]];
        c->k.quantize(block, BLOCK, code + b * BLOCK, scale + b, sum + b * 2);
    }
}

/* Quantises one tile of an expert's rows, and arranges its codes for products of this kind. */
static void quantize_tile(const struct matmul *m, int expert, int first, int height, int kind)
{
    struct cpu *c = m->c;
    const struct weight *w = m->p->w;
    size_t cols = (size_t)c->act.cols, blocks = cols / BLOCK;
    const uint32_t *order = w->order ? w->order + (size_t)expert * cols : NULL;
    for (size_t t = (size_t)first; t < (size_t)(first + height); t++) quantize_row(m, t, order);
    for (int f = 0; f < FORMS; f++)
        if (m->form[kind][f] && c->k.arrange[f])
            c->k.arrange[f](&c->act, first, height, c->arranged[f] + (size_t)first * blocks * c->k.arranged[f]);
}

/* Each thread takes whole tiles. */
static void quantize_rows(void *arg, int thread, int n_threads)
{
    const struct matmul *m = arg;
    int begin, end;
    pool_share(m->n, thread, n_threads, &begin, &end);
    for (int e = 0; e < expert_count(m); e++) {
        struct group g = group_of(m, e);
        EACH_TILE(&m->c->k, LAYOUT_Q8, g.n, t, height)
            if (g.first + t >= begin && g.first + t < end) quantize_tile(m, e, g.first + t, height, rows_kind(g.n));
    }
}

/* The part of a product, or of some of its columns, that belongs to one expert. */
struct part {
    const struct weight *w;
    const uint8_t *panels; /* [ceil(rows / 8)] of the expert */
    int rows;              /* columns of y to compute */
    struct group g;
    float *y;              /* [g.n, stride] */
    size_t stride;
};

/* Number of columns of y that one expert computes. */
static int part_rows(const struct matmul *m, const struct product *p)
{
    return p->rows ? p->rows : p->w->rows / expert_count(m);
}

static struct part part_of(const struct matmul *m, const struct product *p, int expert)
{
    int rows = p->w->rows / expert_count(m);
    struct group g = group_of(m, expert);
    size_t panel = (size_t)(expert * cpu_panels(rows) + p->first / PANEL_ROWS);
    return (struct part){p->w, p->w->panels + panel * p->w->panel, part_rows(m, p), g,
                         cpu_at(m->c, p->y) + (size_t)(g.first * (int64_t)rows + p->first), (size_t)rows};
}

/* Rows t .. t + height - 1 of panel i's columns = out [height, 8] */
static void put_tile(const struct part *p, int i, int t, int height, const float *out)
{
    size_t width = (size_t)min_int(PANEL_ROWS, p->rows - i * PANEL_ROWS);
    for (int j = 0; j < height; j++)
        memcpy(p->y + (size_t)(t + j) * p->stride + (size_t)i * PANEL_ROWS, out + j * PANEL_ROWS, width * sizeof *out);
}

/* Multiplies all rows with panel i, expanded if that pays. */
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

/* Multiplies one row or few with n packed panels from i on. */
static void packed_product(const struct matmul *m, const struct part *p, gemv_fn *gemv, int i, int n)
{
    const struct weight *w = p->w;
    float out[STREAMS * FEW_TILE * PANEL_ROWS];
    EACH_TILE(&m->c->k, w->type->layout, p->g.n, t, height) {
        gemv(p->panels + (size_t)i * w->panel, w->panel, n, &m->c->act, p->g.first + t, height, out);
        for (int j = 0; j < n; j++) put_tile(p, i + j, t, height, out + j * height * PANEL_ROWS);
    }
}

/* Multiplies panels i .. end - 1. Kernels for one row take STREAMS at once, and the rest one after the other. */
static void panel_range(const struct matmul *m, const struct part *p, int i, int end, int thread)
{
    const struct kernels *k = &m->c->k;
    enum layout layout = p->w->type->layout;
    int kind = kind_of(m, layout, p->g.n), most = m->order == IN_TURN ? 1 : k->few_at_once[layout];
    if (kind == ONE_ROW || k->form[kind][layout] == FORM_TABLES) most = STREAMS;
    gemv_fn *all = kind == ONE_ROW ? k->gemv[m->order][layout] : k->few[kind][layout],
            *rest = kind == ONE_ROW ? k->gemv[IN_TURN][layout] : all;
    for (int n; i < end && all; i += n) {
        n = min_int(most, end - i);
        packed_product(m, p, n == STREAMS ? all : rest, i, n);
    }
    for (; i < end; i++) panel_product(m, p, i, thread);
}

/* Work is counted in units of STREAMS panels, the size of one call for one row; the last unit of a matrix may be
 * smaller. */
static int unit_count(int rows) { return (cpu_panels(rows) + STREAMS - 1) / STREAMS; }

/* Cost of one unit for an expert: its number of rows, plus a constant for reading the panels or for expanding them. */
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

/* Computes an interval of the total cost, which runs through the units of all experts and products. */
static void multiply_between(const struct matmul *m, int64_t begin, int64_t end, int thread)
{
    int64_t at = 0;
    for (int e = 0; e < expert_count(m); e++) {
        int64_t cost = unit_cost(group_of(m, e));
        for (int j = 0; cost && j < m->n_products; j++) {
            struct part p = part_of(m, &m->p[j], e);
            int units = unit_count(p.rows), from = unit_from(begin - at, cost, units),
                to = unit_from(end - at, cost, units);
            panel_range(m, &p, STREAMS * from, min_int(STREAMS * to, cpu_panels(p.rows)), thread);
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

/* Quantises x if a product needs codes. */
static void prepare_rows(struct matmul *m)
{
    bool quantised = false;
    for (int j = 0; j < m->n_products; j++) {
        enum layout layout = m->p[j].w->type->layout;
        if (layouts[layout].kind == KIND_FLOAT) continue;
        quantised = true;
        for (int kind = ONE_ROW; kind < ROWS_KINDS; kind++)
            m->form[kind][m->c->k.form[kind_of(m, layout, kind)][layout]] = true;
    }
    if (quantised) cpu_run(m->c, m->n >= 8, quantize_rows, m);
}

static void multiply_row(struct matmul *m)
{
    double bytes = 0, start = now_ms();
    for (int j = 0; j < m->n_products; j++)
        bytes += (double)cpu_panels(part_rows(m, &m->p[j])) * (double)m->p[j].w->panel;
    cpu_run(m->c, true, multiply, m);
    race_add(&m->c->race, bytes, now_ms() - start);
}

static bool same_order(const struct weight *a, const struct weight *b)
{
    if (!a->order || !b->order) return a->order == b->order;
    return a->rows / a->order_rows == b->rows / b->order_rows &&
           !memcmp(a->order, b->order, (size_t)(a->rows / a->order_rows) * (size_t)a->cols * sizeof *a->order);
}

/* Multiplies with products of the same order of columns. */
static void multiply_some(struct cpu *c, const struct op *op, const struct product *p, int n, const struct route *route)
{
    bool races = op->n == 1 && !route && race_on(&c->race);
    struct matmul m = {.c = c, .n_products = n, .n = op->n, .x = cpu_at(c, op->x), .order = race_order(&c->race)};
    memcpy(m.p, p, (size_t)n * sizeof *p);
    if (route) m.n_experts = route->n_experts, m.first = cpu_ints(c, route->first);
    c->act = (struct act){.x = m.x, .code = c->code, .scale = c->scale, .sum = c->sum, .cols = op->products->w->cols};
    memcpy(c->act.tiles, c->arranged, sizeof c->arranged);
    prepare_rows(&m);
    if (races) multiply_row(&m);
    else cpu_run(c, true, multiply, &m);
}

static void multiply_all(struct cpu *c, const struct op *op, const struct route *route)
{
    const struct product *p = op->products;
    for (int first = 0, end; first < OP_PRODUCTS && p[first].w; first = end) {
        for (end = first + 1; end < OP_PRODUCTS && p[end].w && same_order(p[first].w, p[end].w);) end++;
        multiply_some(c, op, p + first, end - first, route);
    }
}

void cpu_matmul(struct cpu *c, const struct op *op) { multiply_all(c, op, NULL); }
void cpu_experts(struct cpu *c, const struct op *op) { multiply_all(c, op, op->route); }
