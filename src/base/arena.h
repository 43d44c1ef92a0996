/* SPDX-License-Identifier: MIT
 *
 * Memory: one counted allocator per engine, and an arena for scratch that lives as long as the engine.
 *
 * Everything the engine allocates goes through `struct mem`, so that use and peak are known, a limit can be
 * kept, leaks show as a non-zero balance, and tests can make the n-th allocation fail.
 */
#ifndef QUERN_ARENA_H
#define QUERN_ARENA_H

#include "base/base.h"

enum { MEM_ALIGN = 64 }; /* bytes: a cache line, and any SIMD load */

struct mem {
    uint64_t used, peak;  /* current and highest use in bytes, block headers included */
    uint64_t limit;       /* bytes; 0 = no limit */
    uint64_t n_allocs;    /* calls so far */
    uint64_t fail_at;     /* for tests: number of the call that fails, from 1; 0 = no call fails */
    bool fail_after;      /* for tests: every later call fails too */
};

/* Returns n zeroed bytes aligned to MEM_ALIGN, or NULL. n = 0 gives a valid pointer. */
void *mem_alloc(struct mem *m, uint64_t n);
/* Like mem_alloc() without zeroing, for large blocks whose pages should stay untouched until they are used. */
void *mem_alloc_raw(struct mem *m, uint64_t n);
/* Returns count * size zeroed bytes. NULL also when the product overflows. */
void *mem_array(struct mem *m, uint64_t count, uint64_t size);
/* Keeps the old contents; new bytes are not zeroed. Returns NULL when memory is short; the old block then stays
 * valid. */
void *mem_resize(struct mem *m, void *p, uint64_t n);
/* Bytes that a block of n bytes adds to `used`, header and padding included. Saturates. */
uint64_t mem_cost(uint64_t n);
/* Accepts NULL. */
void mem_free(struct mem *m, void *p);

/* Bump allocator. With base == NULL it only measures: run the same takes twice, first to learn `used`. */
struct arena {
    uint8_t *base;
    uint64_t used; /* 64 bits on every machine, since a measured size may exceed the address space */
};

/* Returns count * size bytes aligned to MEM_ALIGN; NULL while measuring. The sums cannot overflow: every dimension that
 * a loader accepts is below 2^32. */
void *arena_take(struct arena *a, uint64_t count, uint64_t size);

#endif
