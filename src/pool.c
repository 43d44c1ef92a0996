/* SPDX-License-Identifier: MIT
 *
 * The pool's barrier: one word that counts jobs, one that counts workers still busy.
 *
 * A job is published by adding 1 to `job`; workers spin on it, then wait in the kernel. The last worker to finish wakes
 * the caller. Nobody is woken while nobody sleeps: a wake-up that finds no one still is a call of the system (or, in a browser, of its runtime). In wasm the words are waited on with memory.atomic.wait32 (Atomics.wait), elsewhere with a futex or, where there is
 * none, by yielding.
 */
#include "pool.h"

#include <pthread.h>
#include <stdatomic.h>

#ifdef __EMSCRIPTEN__
#include <emscripten/threading.h>
#elif defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <sched.h>
#endif

/* About 100 microseconds: longer than the gaps between the operations of a step, of which a token has some hundred, each of which
 * would cost a wake-up of 50 microseconds. A turn of the loop takes 1 ns in wasm, which has no pause, and about 40 with one. */
#ifdef __EMSCRIPTEN__
enum { SPINS = 100000 };
#else
enum { SPINS = 2500 };
#endif

struct worker {
    struct pool *pool;
    pthread_t thread;
    int index;
};

struct pool {
    struct mem *mem;
    int n_threads;                 /* the caller included */
    pool_fn *fn;
    void *arg;
    bool quit;
    _Alignas(MEM_ALIGN) _Atomic uint32_t job;   /* counts up with every job */
    _Alignas(MEM_ALIGN) _Atomic uint32_t busy;  /* workers that have not finished the job */
    _Alignas(MEM_ALIGN) _Atomic uint32_t sleepers; /* threads that wait in the kernel, or are about to */
    _Alignas(MEM_ALIGN) struct worker workers[POOL_MAX_THREADS - 1];
};

/* May return early; callers look again. In wasm, whoever owns the pool leaves by an exception within a second when one of its threads has crashed. */
static void word_wait(_Atomic uint32_t *word, uint32_t value)
{
#ifdef __EMSCRIPTEN__
    emscripten_futex_wait((volatile void *)word, value, 1000.0);
#elif defined(__linux__)
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
#else
    (void)word, (void)value;
    sched_yield();
#endif
}

static void word_wake(_Atomic uint32_t *word, int count)
{
#ifdef __EMSCRIPTEN__
    emscripten_futex_wake((volatile void *)word, count);
#elif defined(__linux__)
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
#else
    (void)word, (void)count;
#endif
}

static inline void relax(void)
{
#if defined(__x86_64__) && !defined(__EMSCRIPTEN__)
    __builtin_ia32_pause();
#endif
}

/* After a word has changed: either the sleeper has seen that, or it has counted itself before. */
static void wake(struct pool *p, _Atomic uint32_t *word, int count)
{
    if (atomic_load(&p->sleepers)) word_wake(word, count);
}

/* Returns the word's value once it is no longer `value`. */
static uint32_t await_change(struct pool *p, _Atomic uint32_t *word, uint32_t value)
{
    for (int i = 0; i < SPINS; i++) {
        uint32_t now = atomic_load_explicit(word, memory_order_acquire);
        if (now != value) return now;
        relax();
    }
    uint32_t now;
    atomic_fetch_add(&p->sleepers, 1);
    while ((now = atomic_load(word)) == value) word_wait(word, value);
    atomic_fetch_sub(&p->sleepers, 1);
    return now;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct pool *p = w->pool;
    uint32_t job = 0;
    for (;;) {
        job = await_change(p, &p->job, job);
        if (p->quit) return NULL;
        p->fn(p->arg, w->index, p->n_threads);
        if (atomic_fetch_sub(&p->busy, 1) == 1) wake(p, &p->busy, 1);
    }
}

static void publish(struct pool *p)
{
    atomic_fetch_add(&p->job, 1);
    wake(p, &p->job, p->n_threads - 1);
}

struct pool *pool_new(struct mem *m, int threads)
{
    struct pool *p = mem_alloc(m, sizeof *p);
    if (!p) return NULL;
    p->mem = m;
    p->n_threads = 1;
    threads = threads < 1 ? 1 : min_int(threads, POOL_MAX_THREADS);
    for (int i = 0; i < threads - 1; i++) {
        struct worker *w = &p->workers[i];
        *w = (struct worker){.pool = p, .index = i + 1};
        if (pthread_create(&w->thread, NULL, work, w)) break;
        p->n_threads++;
    }
    return p;
}

void pool_free(struct pool *p)
{
    if (!p) return;
    pool_end(p);
    p->quit = true;
    publish(p);
    for (int i = 0; i < p->n_threads - 1; i++) pthread_join(p->workers[i].thread, NULL);
    mem_free(p->mem, p);
}

int pool_threads(const struct pool *p) { return p->n_threads; }
uint32_t pool_jobs(const struct pool *p) { return atomic_load_explicit(&p->job, memory_order_relaxed); }

void pool_end(struct pool *p)
{
    for (uint32_t left; (left = atomic_load_explicit(&p->busy, memory_order_acquire)) != 0;) await_change(p, &p->busy, left);
}

void pool_begin(struct pool *p, pool_fn *fn, void *arg)
{
    pool_end(p);
    if (p->n_threads == 1) {
        fn(arg, 0, 1);
        return;
    }
    p->fn = fn;
    p->arg = arg;
    atomic_store_explicit(&p->busy, (uint32_t)(p->n_threads - 1), memory_order_relaxed);
    publish(p);
}

void pool_run(struct pool *p, pool_fn *fn, void *arg)
{
    pool_begin(p, fn, arg);
    if (p->n_threads > 1) fn(arg, 0, p->n_threads);
    pool_end(p);
}

void pool_share(int total, int thread, int n_threads, int *begin, int *end)
{
    int64_t n = total;
    *begin = (int)(n * thread / n_threads);
    *end = (int)(n * (thread + 1) / n_threads);
}

bool pool_claim(int64_t *claimed, int64_t total, int n_threads, int64_t *begin, int64_t *end)
{
    enum { LEAST = 32 }; /* intervals a thread would get if all were the smallest */
    int64_t more;
    *begin = __atomic_load_n(claimed, __ATOMIC_RELAXED);
    do {
        if (*begin >= total) return false;
        int64_t left = total - *begin, share = left / (2 * n_threads), least = total / (LEAST * n_threads) + 1;
        more = n_threads == 1 || left < least ? left : share > least ? share : least;
    } while (!__atomic_compare_exchange_n(claimed, begin, *begin + more, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    *end = *begin + more;
    return true;
}
