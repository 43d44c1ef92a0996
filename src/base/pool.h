/* SPDX-License-Identifier: MIT
 *
 * The thread pool: n - 1 threads that live as long as the pool, and the caller, which works too.
 *
 * pool_run() is a barrier: every thread calls fn once with its own index, and the call returns when all have finished.
 * Small work is split by index, large work is claimed piece by piece; results never depend on which thread computes a
 * piece. Waiting threads spin for a short while, then sleep in the kernel (Atomics.wait in WebAssembly). If there are
 * fewer free processors than threads, fewer threads may be faster: pool_limit() lets the others sleep (see crew.h).
 */
#ifndef QUERN_POOL_H
#define QUERN_POOL_H

#include "base/arena.h"

struct pool;

enum { POOL_MAX_THREADS = 64 };

/* All threads get the same arg. thread is 0 (the caller) .. n_threads - 1. */
typedef void pool_fn(void *arg, int thread, int n_threads);

/* Starts threads - 1 workers. If the system refuses some of them (as in a page without SharedArrayBuffer), the pool has
 * fewer: see pool_threads(). NULL when memory is short. */
struct pool *pool_new(struct mem *m, int threads);
void pool_free(struct pool *p); /* joins the workers; accepts NULL */
int pool_threads(const struct pool *p);
void pool_run(struct pool *p, pool_fn *fn, void *arg);
/* Like pool_run(), but the caller does other work until pool_end(). Without workers, fn is called at once. A running
 * job is ended before the next begins. */
void pool_begin(struct pool *p, pool_fn *fn, void *arg);
void pool_end(struct pool *p);

/* From now on n threads work, 1 .. pool_threads(). Must not be called between pool_begin() and pool_end(). */
void pool_limit(struct pool *p, int n);
int pool_working(const struct pool *p);
uint32_t pool_jobs(const struct pool *p); /* barriers so far, modulo 2^32; does not count while one thread works */
/* Total ms that the caller has waited in pool_end() and pool_run(); short waits count as 0. */
double pool_waited(const struct pool *p);
/* Measured time of an empty barrier in microseconds, the best of some tries; 0 while one thread works. */
double pool_barrier_us(struct pool *p);

/* The static split: thread t of n takes the items [*begin, *end) of `total`. Sizes differ by at most one. */
void pool_share(int total, int thread, int n_threads, int *begin, int *end);

/* The dynamic split: each call claims one interval [*begin, *end) of `total`, large intervals first, and returns false
 * when none is left. A thread that is slower than the others delays them by a few hundredths of the job at most.
 * *claimed starts at 0 and is written by all threads, so it should have a cache line of its own. */
bool pool_claim(int64_t *claimed, int64_t total, int n_threads, int64_t *begin, int64_t *end);

#endif
