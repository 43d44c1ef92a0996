/* SPDX-License-Identifier: MIT
 *
 * The warm-up runs every operation that the loaded model needs on made-up data, until a just-in-time compiler has seen
 * enough of it.
 *
 * Browsers first compile each function quickly, and compile it well only after it has run for a while (V8: some 13 MB
 * of quick code executed), and never while it runs. Loading has time for that; the first prompt has not. So small
 * matrices of zeros, in the layouts of the weights to come, are multiplied by one row, by few and by many, and
 * attention runs over page 0, pass after pass, through the backend's own operations.
 */
#include "compute/cpu/cpu.h"

enum {
    PASSES = 360,          /* V8 14.6 has compiled most products well after 120 passes, all kernels after 360 */
    ROWS = 8 * PANEL_ROWS, /* of a matrix: a panel for each of 8 threads */
    COLS = 256,            /* most columns: a block of any type fits */
    LENGTH = 4096,         /* elements of operations on single rows */
};

struct warm {
    int pass;
    float *x, *y;     /* input and output of every operation, [length] */
    uint8_t *panels;  /* zeros */
};

/* A matrix of zeros with w's type. */
static struct weight small_like(const struct weight *w, uint8_t *zeros)
{
    int cols = min_int(w->cols, COLS);
    return (struct weight){
        .type = w->type, .rows = ROWS, .cols = cols, .panel = panel_bytes(w->type->layout, cols), .panels = zeros};
}

/* Returns NULL when memory is short; the warm-up is then skipped. */
static struct warm *warm_new(const struct cpu *c)
{
    size_t length = (size_t)max_int(LENGTH, TILE * c->kv.n_heads * c->kv.head_dim),
           panels = ROWS * COLS * sizeof(float);
    struct warm *w = mem_alloc(c->mem, MEM_ALIGN + 2 * length * sizeof(float) + panels);
    if (!w) return NULL;
    w->x = (float *)(void *)((uint8_t *)w + MEM_ALIGN);
    w->y = w->x + length;
    w->panels = (uint8_t *)(w->y + length);
    for (size_t i = 0; i < length; i++) w->x[i] = 0.25f * (float)((int)(i % 7) - 3);
    return w;
}

/* The last n rows of page 0. */
static void page_rows(struct kv_row rows[KV_PAGE], int n)
{
    static const int32_t pages[] = {0};
    for (int i = 0; i < n; i++) rows[i] = (struct kv_row){pages, KV_PAGE - n + i};
}

static void run(struct cpu *c, const struct op *op) { c->base.ops->run(&c->base, op, 1); }

static void warm_rows(struct cpu *c, const struct warm *w)
{
    const struct handle y = cpu_handle(c, w->y), x = cpu_handle(c, w->x);
    const int heads = c->kv.n_heads, head = c->kv.head_dim;
    run(c, &(struct op){OP_RMSNORM, 1, LENGTH, .y = y, .x = x, .vector = w->x, .eps = 1e-6f});
    run(c, &(struct op){OP_SWIGLU, 1, LENGTH, .y = y, .x = x});
    run(c, &(struct op){OP_ADD, 1, LENGTH, .y = y, .x = x});
    c->k.add_scaled(w->y, w->x, 0.5f, LENGTH);
    run(c, &(struct op){OP_ROPE, 1, heads * head, .y = y, .cosine = w->x, .sine = w->x, .heads = heads, .rot = head});
}

/* The kernels of layers that have a state, on a small one and some rows. */
static void warm_state(const struct cpu *c, const struct warm *w)
{
    enum { DIM = 32, COUNT = 8 };
    static const float half[COUNT] = {0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f};
    float *state = w->y + DIM * COUNT;
    for (int i = 0; i < COUNT; i++) {
        c->k.convolve(w->y, (const float *const[TAPS]){w->x, w->x, w->x, w->x}, w->x, DIM, DIM);
        c->k.unit(w->y, 1, DIM);
        c->k.gate(w->y, w->x, DIM);
    }
    for (int n = 1; n <= COUNT; n += COUNT - 1)
        c->k.delta(&(struct delta){.y = w->y, .y_stride = DIM, .q = w->x, .k = w->x, .v = w->x, .stride = DIM,
                                   .beta = half, .decay = half, .n = n, .head_dim = DIM, .from = state, .to = state});
}

static void append(struct cpu *c, const struct warm *w, const struct kv_row *rows, int n)
{
    const struct handle x = cpu_handle(c, w->x);
    run(c, &(struct op){OP_KV_APPEND, n, c->kv.n_kv_heads * c->kv.head_dim, .x = x, .z = x, .kv = rows});
}

static void warm_attention(struct cpu *c, const struct warm *w, int n)
{
    struct kv_row rows[KV_PAGE];
    page_rows(rows, n);
    append(c, w, rows, n);
    run(c, &(struct op){OP_ATTENTION, n, c->kv.n_heads * c->kv.head_dim, .y = cpu_handle(c, w->y),
                        .x = cpu_handle(c, w->x), .kv = rows});
}

static void warm_products(struct cpu *c, const struct warm *w, int n)
{
    for (int l = 0; l < LAYOUT_COUNT; l++) {
        if (!c->like[l].type) continue;
        struct weight zeros = small_like(&c->like[l], w->panels);
        run(c, &(struct op){OP_MATMUL, n, zeros.cols, .x = cpu_handle(c, w->x),
                            .products = {product(cpu_handle(c, w->y), &zeros)}});
    }
}

/* Page 0 is not initialised yet. */
static void fill_page(struct cpu *c, const struct warm *w)
{
    struct kv_row rows[KV_PAGE];
    page_rows(rows, KV_PAGE);
    for (int i = 0; i < KV_PAGE; i++) append(c, w, rows + i, 1);
}

static void warm_begin(struct cpu *c)
{
    c->warm = warm_new(c);
    if (c->warm) fill_page(c, c->warm);
    else c->warmed = true;
}

static void warm_end(struct cpu *c)
{
    mem_free(c->mem, c->warm);
    c->warm = NULL;
    c->warmed = true;
}

bool cpu_warm(struct backend *b)
{
    static const int heights[] = {2, 3, FEW_TILE, FEW_MOST + 1};
    const double slice_ms = 1;
    struct cpu *c = (struct cpu *)b;
    const struct race race = c->race;
    double start = now_ms();
    if (!c->warm && !c->warmed) warm_begin(c);
    while (!c->warmed && now_ms() - start < slice_ms) {
        warm_rows(c, c->warm);
        if (c->state.bytes) warm_state(c, c->warm);
        warm_attention(c, c->warm, 1 + c->warm->pass % min_int(TILE, c->max_rows));
        /* decoding has its own kernels */
        for (c->race.heat = 0; c->race.heat < ORDERS; c->race.heat++) warm_products(c, c->warm, 1);
        warm_products(c, c->warm, min_int(heights[c->warm->pass % 4], c->max_rows));
        if (++c->warm->pass == PASSES) warm_end(c);
    }
    c->race = race;
    return !c->warmed;
}
