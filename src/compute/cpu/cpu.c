/* SPDX-License-Identifier: MIT
 *
 * The CPU backend: opening and freeing it, its scratch, and the dispatch of operations.
 *
 * One output element is always computed by one thread, so the number of threads changes nothing but the time.
 */
#include "compute/cpu/cpu.h"

#include "base/reader.h"

#include <string.h>

static const char *cpu_name(const struct backend *b) { return ((const struct cpu *)b)->k.name; }

static struct kernels kernels_of(bool scalar) { return scalar ? kernels_scalar : kernels_simd(dots_choose()); }

const char *backend_cpu_dots(bool scalar)
{
    const struct kernels k = kernels_of(scalar);
    return k.expanded ? dots_names[k.dots] : "none";
}

static void cpu_run_ops(struct backend *b, const struct op *ops, int n)
{
    static void (*const functions[OP_KINDS])(struct cpu *c, const struct op *op) = {
#define CPU_ENTRY(kind, function, ...) [OP_##kind] = cpu_##function,
        EACH_OP(CPU_ENTRY)
#undef CPU_ENTRY
    };
    for (const struct op *op = ops; op < ops + n; op++) functions[op->kind]((struct cpu *)b, op);
}

/* The CPU computes immediately, so nothing is left to do. */
static void cpu_submit(struct backend *b, const struct result *results, int n) { (void)b, (void)results, (void)n; }

static const float *cpu_result(const struct backend *b, struct handle y) { return cpu_at((const struct cpu *)b, y); }

/* --- life ---------------------------------------------------------------------------------------------- */

/* Lays out all scratch, for c->kv and c->max_rows; only measures while a->base is NULL. */
static void take_scratch(struct arena *a, struct cpu *c, const struct reserve *r)
{
    uint64_t blocks = ((uint64_t)r->max_cols + BLOCK - 1) / BLOCK, cells = (uint64_t)c->max_rows * blocks,
             table_cells = (uint64_t)min_int(c->max_rows, FEW_MOST) * blocks;
    c->values = arena_take(a, r->values, 1);
    c->code = arena_take(a, cells, BLOCK);
    c->scale = arena_take(a, cells, sizeof *c->scale);
    c->sum = arena_take(a, cells, BLOCK / 16 * sizeof *c->sum);
    for (int f = 0; f < FORMS; f++)
        c->arranged[f] = arena_take(a, f == FORM_TABLES ? table_cells : cells, c->k.arranged[f]);
    c->expanded_size = (size_t)blocks * c->k.expanded;
    c->expanded = arena_take(a, (uint64_t)pool_threads(c->pool), c->expanded_size);
    cpu_attention_take(a, c);
}

static uint64_t scratch_bytes(const struct cpu *c, const struct reserve *r)
{
    struct cpu measured = *c;
    struct arena a = {0};
    measured.kv = r->kv;
    measured.max_rows = r->max_rows;
    take_scratch(&a, &measured, r);
    return a.used;
}

/* UINT64_MAX on overflow. */
static uint64_t pages_bytes(const struct kv_shape *shape)
{
    uint64_t bytes;
    return mul64((uint64_t)shape->n_pages, page_bytes(shape), &bytes) ? bytes : UINT64_MAX;
}

static uint64_t slots_bytes(const struct state_shape *shape)
{
    uint64_t bytes;
    return mul64((uint64_t)shape->n_slots, shape->bytes, &bytes) ? bytes : UINT64_MAX;
}

static struct reserve_cost cpu_reserve_cost(const struct backend *b, const struct reserve *r)
{
    uint64_t slots = slots_bytes(&r->state);
    return (struct reserve_cost){mem_cost(scratch_bytes((const struct cpu *)b, r)), mem_cost(pages_bytes(&r->kv)),
                                 slots ? mem_cost(slots) : 0};
}

static int cpu_reserve(struct backend *b, const struct reserve *r)
{
    struct cpu *c = (struct cpu *)b;
    struct arena a = {.base = mem_alloc(c->mem, scratch_bytes(c, r))};
    if (!a.base) return ERR_MEM_LOAD;
    c->memory = a.base;
    c->kv = r->kv;
    c->max_rows = r->max_rows;
    take_scratch(&a, c, r);
    /* Not zeroed: pages that no conversation has reached use no memory on systems that commit on first touch. */
    c->pages = mem_alloc_raw(c->mem, pages_bytes(&r->kv));
    c->state = r->state;
    c->slots = r->state.bytes ? mem_alloc_raw(c->mem, slots_bytes(&r->state)) : NULL;
    if (c->pages && (c->slots || !r->state.bytes)) return OK;
    mem_free(c->mem, c->memory);
    mem_free(c->mem, c->pages);
    mem_free(c->mem, c->slots);
    c->memory = NULL;
    c->pages = c->slots = NULL;
    return ERR_MEM_KV;
}

static void cpu_free(struct backend *b)
{
    struct cpu *c = (struct cpu *)b;
    void *parts[] = {c->slots, c->pages, c->memory, c->warm, c};
    struct mem *m = c->mem;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) mem_free(m, parts[i]);
}

static void cpu_slot_get(struct backend *b, int slot, uint64_t from, uint64_t n, void *bytes)
{
    memcpy(bytes, cpu_slot((const struct cpu *)b, slot) + from, (size_t)n);
}

static void cpu_slot_set(struct backend *b, int slot, uint64_t from, uint64_t n, const void *bytes)
{
    memcpy(cpu_slot((const struct cpu *)b, slot) + from, bytes, (size_t)n);
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
    .weight_part = cpu_weight_part,
    .weight_order = cpu_weight_order,
    .weight_facts = cpu_weight_facts,
    .weight_hash = cpu_weight_hash,
    .reserve_cost = cpu_reserve_cost,
    .reserve = cpu_reserve,
    .warm = cpu_warm,
    .kv_copy = cpu_kv_copy,
    .kv_bytes = cpu_kv_bytes,
    .kv_get = cpu_kv_get,
    .kv_set = cpu_kv_set,
    .slot_get = cpu_slot_get,
    .slot_set = cpu_slot_set,
    .heads_size = cpu_heads_size,
    .run = cpu_run_ops,
    .submit = cpu_submit,
    .result = cpu_result,
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
