/* SPDX-License-Identifier: MIT
 *
 * What the files of the CPU backend share: the backend itself and its scratch. cpu.c uses all the others.
 */
#ifndef QUERN_CPU_H
#define QUERN_CPU_H

#include "compute/backend.h"
#include "compute/cpu/kernels.h"

struct weight {
    const struct dtype *type;
    const struct dtype *from; /* type of the rows that come: the same, or one to quantise */
    int rows, cols;
    size_t panel;    /* bytes of one panel of 8 rows */
    uint8_t *panels; /* [ceil(rows / 8)] panels */
    uint32_t *order; /* [rows / order_rows, cols] weight_order()'s columns; NULL: as they come */
    int order_rows;
    bool has_rows, has_scales, has_mins;
};

struct tile;
struct tile_place;
struct scratch;

/* The race between the orders in which gemv may read: heats alternate, and the best heat of each order counts. */
struct race {
    int heat;                 /* heats that are over */
    double bytes, ms;         /* of this heat */
    double best[ORDERS];      /* bytes per ms, of whole heats */
    int rested, rest;         /* products since the last race; products before the next one */
};

struct cpu {
    struct backend base;
    struct kernels k;
    struct mem *mem;
    struct pool *pool;
    struct kv_shape kv;
    struct state_shape state;
    uint8_t *slots;      /* [n_slots, state.bytes] */
    uint8_t *pages;      /* [n_pages][n_layers][n_kv_heads]: see attention.c */
    void *memory;        /* all scratch, in one block */
    uint8_t *values;     /* handles point into it */
    struct act act;      /* views of the four arrays below */
    int8_t *code;        /* [max_rows, max_cols] */
    float *scale;        /* [max_rows, max_cols / 32] */
    int16_t *sum;        /* [max_rows, max_cols / 16] */
    uint8_t *arranged[FORMS]; /* [max_rows, max_cols / 32 * k.arranged]; of tables for FEW_MOST rows at most */
    uint8_t *expanded;   /* [threads][max_cols / 32 * k.expanded]: one panel each */
    size_t expanded_size; /* of one thread */
    /* Scratch of attention. */
    uint64_t max_places;     /* pairs of a row and a span */
    struct query *queries;   /* [max_places, n_heads] their softmaxes */
    float *acc;              /* [max_places, n_heads, head_dim] sums of the softmaxes */
    struct tile *tiles;      /* [max_places] */
    struct tile_place *places;    /* [max_places] ordered by row, then by span */
    int32_t *tile_rows;      /* [max_places] ordered by tile */
    struct scratch *scratch; /* [threads] */
    int max_rows;
    struct weight like[LAYOUT_COUNT]; /* one weight of each layout in use; type NULL if there is none */
    struct race race;        /* see race.c */
    struct warm *warm;       /* the warm-up, until it ends: see warm.c */
    bool warmed;
    _Alignas(MEM_ALIGN) int64_t claimed; /* cost that threads have claimed of the running job: see pool_claim() */
};

/* Runs fn on all threads of the pool if there is enough to share, else on this thread only. */
static inline void cpu_run(struct cpu *c, bool parallel, pool_fn *fn, void *arg)
{
    c->claimed = 0;
    if (parallel) pool_run(c->pool, fn, arg);
    else fn(arg, 0, 1);
}

/* Address of a handle's values. It adds integers, not pointers, because tests and the warm-up have handles to other
 * memory: cpu_handle(). */
static inline float *cpu_at(const struct cpu *c, struct handle h) { return (float *)((uintptr_t)c->values + h.at); }
static inline int32_t *cpu_ints(const struct cpu *c, struct handle h)
{
    return (int32_t *)((uintptr_t)c->values + h.at);
}
static inline struct handle cpu_handle(const struct cpu *c, const void *p)
{
    return (struct handle){(uintptr_t)p - (uintptr_t)c->values};
}

static inline uint8_t *cpu_slot(const struct cpu *c, int slot)
{
    return c->slots + (size_t)slot * (size_t)c->state.bytes;
}

static inline int cpu_panels(int rows) { return (rows + PANEL_ROWS - 1) / PANEL_ROWS; }

/* For work shared by cost: the first of n units, each of this cost, that begins at `at` or later; the first begins at
 * 0. */
static inline int unit_from(int64_t at, int64_t cost, int n)
{
    int64_t unit = at <= 0 ? 0 : (at + cost - 1) / cost;
    return unit < n ? (int)unit : n;
}

/* The operations (rows.c, matmul.c, experts.c, attention.c, linear.c, encode.c). */
#define CPU_OP(kind, function, ...) void cpu_##function(struct cpu *c, const struct op *op);
EACH_OP(CPU_OP)
#undef CPU_OP

/* Weights (weights.c). */
struct weight *cpu_weight_new(struct backend *b, const struct dtype *type, int rows, int cols);
void cpu_weight_from(struct backend *b, struct weight *w, const struct dtype *type);
uint64_t cpu_weight_cost(const struct backend *b, const struct dtype *type, int rows, int cols);
void cpu_weight_free(struct backend *b, struct weight *w);
void cpu_weight_put(struct backend *b, struct weight *w, int row, int n, const uint8_t *rows);
void cpu_weight_put_columns(struct backend *b, struct weight *w, int row, int n, int col, int n_cols,
                            const uint8_t *rows, size_t row_bytes);
bool cpu_weight_order(struct backend *b, struct weight *w, int row, int n_rows, const uint32_t *columns);
void cpu_weight_part(struct backend *b, struct weight *w, int row, int n_rows, int col, int n_cols,
                     enum weight_part part, float value);
struct weight_facts cpu_weight_facts(const struct backend *b, const struct weight *w);
void cpu_weight_hash(struct backend *b, const struct weight *w, uint64_t from, uint64_t n, uint8_t *out);

/* The race (race.c). */
bool race_over(const struct race *r);
bool race_on(struct race *r); /* called before a product; returns whether to race_add() it */
enum order race_order(const struct race *r); /* the order to use now: the next to try, or the winner */
void race_add(struct race *r, double bytes, double ms);

/* The warm-up (warm.c). */
bool cpu_warm(struct backend *b);

/* Attention (attention.c). */
void cpu_attention_take(struct arena *a, struct cpu *c); /* its scratch, for c->kv and c->max_rows */
void cpu_kv_copy(struct backend *b, int to, int from, int n);
uint64_t cpu_kv_bytes(const struct backend *b);
void cpu_kv_get(struct backend *b, int page, int n, void *bytes);
void cpu_kv_set(struct backend *b, int page, const void *bytes);
void cpu_kv_poison(struct backend *b, int page); /* fills a page with NaN; for tests */
/* Stores x [dim] as the key or value of a position in its page: key_place(), value_place(). */
void cpu_lay_floats(float *page, bool key, int position, const float *x, int dim);
/* a = the softmax over a's positions, then b's */
void cpu_softmax_merge(struct query *a, const struct query *b, int dim);
/* after all positions: a's sums become the output */
void cpu_softmax_end(struct query *a, int dim);
uint64_t cpu_heads_size(const struct backend *b, const struct heads *s); /* encode.c */

#endif
