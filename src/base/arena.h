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
    uint64_t used, peak;  /* bytes now and at most, headers included */
    uint64_t limit;       /* bytes; 0 = none */
    uint64_t n_allocs;    /* calls so far */
    uint64_t fail_at;     /* tests: the call that fails, counted from 1; 0 = none */
    bool fail_after;      /* tests: every later call fails too */
};

/* Zeroed bytes aligned to MEM_ALIGN, or NULL. n = 0 gives a valid pointer. */
void *mem_alloc(struct mem *m, uint64_t n);
/* The same without zeroing, for large blocks whose pages should stay untouched until they are used. */
void *mem_alloc_raw(struct mem *m, uint64_t n);
/* count * size with the product checked; zeroed. */
void *mem_array(struct mem *m, uint64_t count, uint64_t size);
/* Keeps the old contents; NULL leaves the old block as it is. New bytes are not zeroed. */
void *mem_resize(struct mem *m, void *p, uint64_t n);
/* What a block of n bytes counts for, its header and padding included. Saturates. */
uint64_t mem_cost(uint64_t n);
/* Accepts NULL. */
void mem_free(struct mem *m, void *p);

/* Bump allocator. With base == NULL it only measures: run the same takes twice, first to learn `used`. */
struct arena {
    uint8_t *base;
    uint64_t used; /* 64 bits on every machine: what is measured may be more than it can address */
};

/* count * size bytes aligned to MEM_ALIGN; NULL while measuring. Sums stay far below 2^64 for any dimensions a loader
 * lets through (each is below 2^32). */
void *arena_take(struct arena *a, uint64_t count, uint64_t size);

#endif
