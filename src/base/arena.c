/* SPDX-License-Identifier: MIT
 *
 * The counted allocator: each block carries its size in a header of one alignment unit.
 */
#include "base/arena.h"

#include "base/reader.h"

#include <stdlib.h>
#include <string.h>

struct block {
    size_t total; /* bytes, this header included */
};

static struct block *header_of(void *p) { return (struct block *)((char *)p - MEM_ALIGN); }

/* Counts the call. Returns whether the limit allows `total` more bytes after `freed` bytes are released. */
static bool may_allocate(struct mem *m, uint64_t total, uint64_t freed)
{
    m->n_allocs++;
    if (m->fail_at && (m->n_allocs == m->fail_at || (m->fail_after && m->n_allocs > m->fail_at))) return false;
    return !m->limit || m->used - freed + total <= m->limit;
}

static void count(struct mem *m, uint64_t added, uint64_t freed)
{
    m->used += added;
    if (m->used > m->peak) m->peak = m->used;
    m->used -= freed;
}

uint64_t mem_cost(uint64_t n)
{
    uint64_t total;
    return pad64(n ? n : 1, MEM_ALIGN, &total) && add64(total, MEM_ALIGN, &total) ? total : UINT64_MAX;
}

static void *allocate(struct mem *m, uint64_t n)
{
    size_t total;
    if (mem_cost(n) == UINT64_MAX || !to_size(mem_cost(n), &total) || !may_allocate(m, total, 0)) return NULL;
    struct block *b = aligned_alloc(MEM_ALIGN, total);
    if (!b) return NULL;
    b->total = total;
    count(m, total, 0);
    return (char *)b + MEM_ALIGN;
}

void *mem_alloc(struct mem *m, uint64_t n)
{
    void *p = allocate(m, n);
    if (p) memset(p, 0, header_of(p)->total - MEM_ALIGN);
    return p;
}

void *mem_alloc_raw(struct mem *m, uint64_t n) { return allocate(m, n); }

void *mem_array(struct mem *m, uint64_t n, uint64_t size)
{
    uint64_t total;
    return mul64(n, size, &total) ? mem_alloc(m, total) : NULL;
}

void *mem_resize(struct mem *m, void *p, uint64_t n)
{
    if (!p) return allocate(m, n);
    size_t old = header_of(p)->total - MEM_ALIGN;
    void *fresh = allocate(m, n);
    if (!fresh) return NULL;
    memcpy(fresh, p, old < n ? old : (size_t)n);
    mem_free(m, p);
    return fresh;
}

void mem_free(struct mem *m, void *p)
{
    if (!p) return;
    count(m, 0, header_of(p)->total);
    free(header_of(p));
}

void *arena_take(struct arena *a, uint64_t n, uint64_t size)
{
    uint64_t begin = a->used;
    a->used += (n * size + MEM_ALIGN - 1) & ~(uint64_t)(MEM_ALIGN - 1);
    return a->base ? a->base + begin : NULL;
}
