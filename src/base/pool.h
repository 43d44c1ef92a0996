/* SPDX-License-Identifier: MIT
 *
 * The thread pool: n - 1 threads that live as long as the pool, and the caller, which works too.
 *
 * pool_run() is a barrier: every thread calls fn once with its own index, and the call returns when all
 * have. Small work is split by index, large work is claimed piece by piece: results never depend on who
 * computes what. Waiting threads spin for a short while, then sleep in the kernel (Atomics.wait in wasm). Where threads
 * get no processor of their own fewer can do the same in less time: pool_limit() sends the others to sleep (see
 * crew.h).
 */
#ifndef QUERN_POOL_H
#define QUERN_POOL_H

#include "base/arena.h"

struct pool;

enum { POOL_MAX_THREADS = 64 };

/* arg is shared by all; thread is 0 (the caller) .. n_threads - 1. */
typedef void pool_fn(void *arg, int thread, int n_threads);

/* Starts threads - 1 workers. Where the system refuses some (a page without SharedArrayBuffer), the pool
 * has fewer: see pool_threads(). NULL when memory is short. */
struct pool *pool_new(struct mem *m, int threads);
void pool_free(struct pool *p); /* joins the workers; accepts NULL */
int pool_threads(const struct pool *p);
void pool_run(struct pool *p, pool_fn *fn, void *arg);
/* The same without the caller, who does something else until pool_end(); where there are no workers, fn is called at
 * once. Another job ends this one first. */
void pool_begin(struct pool *p, pool_fn *fn, void *arg);
void pool_end(struct pool *p);

/* From now on n threads work, 1 .. pool_threads(). Not while a job runs that was begun. */
void pool_limit(struct pool *p, int n);
int pool_working(const struct pool *p);
uint32_t pool_jobs(const struct pool *p); /* barriers so far, modulo 2^32; none while one thread works */
/* ms that pool_end() has waited so far, which pool_run() ends with; short waits count as none */
double pool_waited(const struct pool *p);
/* what an empty barrier takes now: the best of some tries; 0 while one thread works */
double pool_barrier_us(struct pool *p);

/* The static split: thread t of n takes [*begin, *end) of `total` items, sizes differing by at most one. */
void pool_share(int total, int thread, int n_threads, int *begin, int *end);

/* The dynamic split: each thread claims one interval [*begin, *end) of `total` after the other, large ones first, until
 * there are none (false). A core that is slower than others, or busy with something else, holds them up for some
 * hundredths of the job at most. *claimed is 0 when the job begins, and written by all threads: a cache line of its own
 * keeps it apart. */
bool pool_claim(int64_t *claimed, int64_t total, int n_threads, int64_t *begin, int64_t *end);

#endif
