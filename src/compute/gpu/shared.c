/* SPDX-License-Identifier: MIT
 *
 * Buffers that several weights or vectors share. A command binds one buffer of matrices, so it can multiply with all
 * that lie in it; and a pass has few different bind groups.
 */
#include "compute/gpu/gpu.h"

uint32_t gpu_shared(struct gpu *g, uint64_t bytes)
{
    if (g->n_shared == GPU_SHARED) __builtin_trap();
    return g->shared[g->n_shared++] = gpu_buffer((double)bytes);
}

static void take_room(struct gpu *g, struct gpu_room *r, uint32_t words)
{
    if (r->words - r->used >= words) return;
    *r = (struct gpu_room){.words = words > GPU_VECTOR_BYTES / 4 ? words : GPU_VECTOR_BYTES / 4};
    r->buffer = gpu_shared(g, 4 * (uint64_t)r->words);
}

/* Steps use vectors in the same order, so the next one is looked at first. */
struct gpu_vector gpu_vector_of(struct gpu *g, enum gpu_binding binding, const float *values, int n)
{
    for (int i = 0; i < g->n_vectors; i++) {
        int at = (g->next_vector + i) % g->n_vectors;
        if (g->vectors[at].values != values || g->vectors[at].binding != binding) continue;
        g->next_vector = at + 1;
        return g->vectors[at];
    }
    if (g->n_vectors == GPU_VECTORS) __builtin_trap();
    struct gpu_room *r = &g->rooms[binding];
    take_room(g, r, (uint32_t)n);
    struct gpu_vector v = {values, binding, r->buffer, r->used};
    gpu_write(v.buffer, 4.0 * v.at, values, (double)n * sizeof *values);
    r->used += (uint32_t)n;
    return g->vectors[g->n_vectors++] = v;
}
