/* SPDX-License-Identifier: MIT
 *
 * Commands that become one. A device spends microseconds on each command, and a page spends more on asking for it; a
 * decoded token has hundreds.
 *
 * When a command is complete, the rules below look at it and at the one before. A command that took another one in
 * computes all that both computed, in the same order, and also writes everything that both wrote. So a rule need not
 * know who reads what later, and results have the same bits with and without it.
 */
#include "compute/gpu/gpu.h"

#include <string.h>

enum { MOST_GROUPS = 65535 };

static bool is_product(const struct gpu_command *c)
{
    return c->kernel == GPU_PRODUCT || c->kernel == GPU_TILE || c->kernel == GPU_FLOATS;
}

/* The parts of a product: y, rows, columns of y, first panel, a bias, values to add to; see js/gpu/products.js. */
static uint32_t *part_of(struct gpu_command *c, uint32_t i) { return c->params + GPU_PART + GPU_PART_WORDS * i; }

/* A buffer that both commands bind at a place, if one of them or both do. */
static bool same_buffer(uint32_t a, uint32_t b) { return !a || !b || a == b; }

/* Values of y that the command writes row by row, and which products may read next; 0: none. */
static uint64_t values_of(const struct gpu_command *c)
{
    const uint32_t *p = c->params;
    switch (c->kernel) {
    case GPU_RMSNORM: case GPU_LAYERNORM: return p[3] % BLOCK ? 0 : (uint64_t)p[3] * p[5];
    case GPU_SWIGLU: case GPU_GATE: case GPU_GELU: case GPU_GELU_ERF: return p[3];
    case GPU_ATTEND: return (uint64_t)c->groups[1] * p[4] * c->head_dim;
    case GPU_GATHER: return (uint64_t)c->groups[1] * p[3];
    default: return 0;
    }
}

/* What computes y also quantises it. */
static bool quantised(struct gpu_command *a, const struct gpu_command *b)
{
    const uint32_t *p = b->params;
    if (b->matrix || a->params[GPU_QUANTISED] || a->params[1] != p[1] || values_of(a) != p[3]) return false;
    memcpy(a->params + GPU_QUANTISED, p + GPU_QUANTISED, 4 * sizeof *p);
    return true;
}

static bool writes(struct gpu_command *c, uint32_t y)
{
    for (uint32_t i = 0; i < c->params[4]; i++)
        if (part_of(c, i)[0] == y) return true;
    return false;
}

/* Products of the same rows with matrices in the same buffer. Floats are read where another product might write. */
static bool multiplied(struct gpu_command *a, struct gpu_command *b)
{
    uint32_t *p = a->params, *q = b->params, n = p[4];
    if (a->kernel != b->kernel || a->layout != b->layout || a->matrix != b->matrix || !same_buffer(a->pages, b->pages))
        return false;
    if (n + q[4] > GPU_PARTS || a->groups[0] + b->groups[0] > MOST_GROUPS) return false;
    if (memcmp(p + 1, q + 1, 3 * sizeof *p) || memcmp(p + 5, q + 5, 9 * sizeof *p)) return false;
    if (p[11] && part_of(a, 0)[1] != part_of(b, 0)[1]) return false;
    if (writes(a, q[1])) return false;
    memcpy(part_of(a, n), part_of(b, 0), q[4] * GPU_PART_WORDS * sizeof *p);
    p[4] += q[4];
    a->groups[0] += b->groups[0];
    return true;
}

/* The part of a product that has written all of y, n values, and nothing else in their rows. */
static uint32_t *whole_part(struct gpu_command *c, uint32_t y, uint32_t n)
{
    for (uint32_t i = 0; is_product(c) && i < c->params[4]; i++) {
        uint32_t *part = part_of(c, i);
        if (part[0] == y) return part[1] == part[2] && part[1] * c->params[12] == n && !part[5] ? part : NULL;
    }
    return NULL;
}

/* A product adds its bias. Between them the biases of others may have been added, and their heads turned. */
static bool biased(struct gpu_command *first, struct gpu_command *b)
{
    uint32_t y = b->params[1];
    struct gpu_command *a = b - 1;
    while (a > first && a->kernel == GPU_ROPE && a->params[1] != y && !a->params[11]) a--;
    uint32_t *part = whole_part(a, y, b->params[3]);
    if (!part || part[4] || part[1] != b->params[4] || !same_buffer(a->pages, b->pages)) return false;
    a->pages = b->pages;
    part[4] = b->params[6] + 1;
    return true;
}

/* What computes y also adds it to other values, unless it reads or writes those. */
static bool added(struct gpu_command *a, const struct gpu_command *b)
{
    const uint32_t *p = b->params;
    if (a->kernel == GPU_COMBINE && a->params[1] == p[2] && (uint64_t)a->groups[1] * a->params[3] == p[3]) {
        a->params[7] = p[1] + 1;
        return true;
    }
    uint32_t *part = whole_part(a, p[2], p[3]);
    if (!part || a->params[1] == p[1] || writes(a, p[1])) return false;
    part[5] = p[1] + 1;
    return true;
}

/* Heads are normed and turned: the norm's gain comes to the first heads of a turn. */
static bool turned(struct gpu_command *a, struct gpu_command *b)
{
    const uint32_t *p = a->params;
    uint32_t *q = b->params;
    if (p[1] != q[1] || p[2] != q[1] || p[3] != q[2] || p[5] != b->groups[1] * q[7] || p[GPU_QUANTISED]) return false;
    q[8] = p[7] + 1;
    q[9] = p[4];
    b->matrix = a->matrix;
    *a = *b;
    return true;
}

/* Heads of q and of k are turned by the same angles. */
static bool both_turned(struct gpu_command *a, const struct gpu_command *b)
{
    uint32_t *p = a->params;
    const uint32_t *q = b->params;
    if (p[11] || q[11] || p[1] == q[1] || a->groups[1] != b->groups[1] || memcmp(p + 2, q + 2, 5 * sizeof *p))
        return false;
    if (!same_buffer(a->matrix, b->matrix) || (p[8] && q[8] && p[9] != q[9])) return false;
    if (q[8]) p[9] = q[9], a->matrix = b->matrix;
    p[10] = q[1], p[11] = q[7], p[12] = q[8];
    a->groups[0] += b->groups[0];
    return true;
}

/* Heads of k are turned, perhaps those of q too, and go to the cache with those of v. */
static bool appended(struct gpu_command *a, struct gpu_command *b)
{
    const uint32_t *p = a->params;
    uint32_t *q = b->params;
    bool alone = !p[11];
    if (p[alone ? 1 : 10] != q[10] || p[alone ? 7 : 11] != q[11] || p[2] != q[2] || a->groups[1] != b->groups[1])
        return false;
    memcpy(q + 3, p + 3, 4 * sizeof *q);
    q[9] = p[9], q[12] = p[alone ? 8 : 12];
    if (!alone) q[1] = p[1], q[7] = p[7], q[8] = p[8];
    b->groups[0] += q[7];
    b->matrix = a->matrix;
    *a = *b;
    return true;
}

static bool taken_in(struct gpu_command *first, struct gpu_command *b)
{
    struct gpu_command *a = b - 1;
    switch (b->kernel) {
    case GPU_QUANTIZE: return quantised(a, b);
    case GPU_PRODUCT: case GPU_TILE: case GPU_FLOATS: return multiplied(a, b);
    case GPU_BIAS: return biased(first, b);
    case GPU_ADD: return added(a, b);
    case GPU_ROPE: return a->kernel == GPU_RMSNORM ? turned(a, b) : a->kernel == GPU_ROPE && both_turned(a, b);
    case GPU_APPEND: return a->kernel == GPU_ROPE && appended(a, b);
    default: return false;
    }
}

void gpu_fuse(struct gpu *g)
{
    while (g->n_commands > 1 && taken_in(g->commands, &g->commands[g->n_commands - 1])) g->n_commands--;
}
