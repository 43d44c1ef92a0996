/* SPDX-License-Identifier: MIT
 *
 * The pool's barrier: one word that counts jobs, one that counts workers still busy.
 *
 * A new value of `job` publishes a job; the value includes the number of threads that the job is for. Workers spin on
 * the word, then wait in the kernel. The last worker to finish wakes the caller. Nothing is woken while no thread
 * sleeps, because even a wake-up without effect is a call of the system (in a browser, of its runtime). Workers that
 * take no part wait for `working` to grow, and no job wakes them. In WebAssembly a thread waits with
 * memory.atomic.wait32 (Atomics.wait), on Linux with a futex, elsewhere by short sleeps.
 */
#include "base/pool.h"

#include <pthread.h>
#include <stdatomic.h>

#ifdef __EMSCRIPTEN__
#include <emscripten/threading.h>
#elif defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <time.h>
#endif

/* Spinning lasts longer than the gaps between the operations of a step. A token has some hundred operations, and a
 * wake-up in each would cost 50 microseconds. The time of a turn differs: 1 ns in V8, which has no pause instruction, 3
 * ns in JavaScriptCore, 40 ns with a pause. So a clock ends the spinning, read every few microseconds. A number of
 * turns also ends it, since some browsers have clocks of 1 to 100 ms. */
static const double SPIN_MS = 0.1;
#ifdef __EMSCRIPTEN__
enum { TURNS = 2000, LOOKS = 50 };
#else
enum { TURNS = 50, LOOKS = 50 };
#endif

enum { JOB = 256 };
_Static_assert((int)POOL_MAX_THREADS < (int)JOB, "a job's word contains its number of threads");

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
    double waited;                 /* ms that the caller has waited */
    uint32_t jobs;                 /* published so far */
    bool quit;
    /* Grows by JOB with every job; the value modulo JOB is the job's number of threads. */
    _Alignas(MEM_ALIGN) _Atomic uint32_t job;
    _Alignas(MEM_ALIGN) _Atomic uint32_t busy;  /* workers that have not finished the job */
    _Alignas(MEM_ALIGN) _Atomic uint32_t working; /* threads that take part in the next job */
    _Atomic uint32_t grown;                       /* value of `job` before `working` grew */
    _Alignas(MEM_ALIGN) _Atomic uint32_t sleepers; /* threads that wait in the kernel, or are about to */
    _Alignas(MEM_ALIGN) struct worker workers[POOL_MAX_THREADS - 1];
};

/* May return early; callers look again. In WebAssembly, if a thread of the pool has crashed, the pool's owner leaves by
 * an exception within a second. */
static void word_wait(_Atomic uint32_t *word, uint32_t value)
{
#ifdef __EMSCRIPTEN__
    emscripten_futex_wait((volatile void *)word, value, 1000.0);
#elif defined(__linux__)
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
#else
    (void)word, (void)value;
    nanosleep(&(struct timespec){0, 20000}, NULL);
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

/* Call after changing the word: a thread that goes to sleep has either seen the change or has counted itself in
 * `sleepers`. */
static void wake(struct pool *p, _Atomic uint32_t *word, int count)
{
    if (atomic_load(&p->sleepers)) word_wake(word, count);
}

/* Waits until the word is no longer `value` and returns its new value. Adds the time to *waited in ms; short waits add
 * 0. */
static uint32_t await_change(struct pool *p, _Atomic uint32_t *word, uint32_t value, double *waited)
{
    uint32_t now;
    double start = 0, last = 0;
    for (int look = 0; look < LOOKS && last - start < SPIN_MS; look++) {
        for (int i = 0; i < TURNS; i++) {
            now = atomic_load_explicit(word, memory_order_acquire);
            if (now != value) {
                *waited += last - start;
                return now;
            }
            relax();
        }
        last = now_ms();
        if (look == 0) start = last;
    }
    atomic_fetch_add(&p->sleepers, 1);
    while ((now = atomic_load(word)) == value) word_wait(word, value);
    atomic_fetch_sub(&p->sleepers, 1);
    *waited += now_ms() - start;
    return now;
}

/* Waits until `working` includes this worker. Returns the last job that it need not do; that is `job` if it did not
 * wait. */
static uint32_t await_work(const struct worker *w, uint32_t job)
{
    struct pool *p = w->pool;
    uint32_t index = (uint32_t)w->index, working = atomic_load(&p->working);
    if (working > index) return job;
    while ((working = atomic_load(&p->working)) <= index) word_wait(&p->working, working);
    return atomic_load(&p->grown);
}

/* Returns the next job after `job` that includes this worker. */
static uint32_t await_job(const struct worker *w, uint32_t job)
{
    double waited = 0;
    do job = await_change(w->pool, &w->pool->job, await_work(w, job), &waited);
    while (job % JOB <= (uint32_t)w->index);
    return job;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct pool *p = w->pool;
    uint32_t job = 0;
    for (;;) {
        job = await_job(w, job);
        if (p->quit) return NULL;
        p->fn(p->arg, w->index, (int)(job % JOB));
        if (atomic_fetch_sub(&p->busy, 1) == 1) wake(p, &p->busy, 1);
    }
}

static void publish(struct pool *p)
{
    uint32_t last = atomic_load_explicit(&p->job, memory_order_relaxed),
             n = atomic_load_explicit(&p->working, memory_order_relaxed);
    p->jobs++;
    atomic_store(&p->job, last - last % JOB + JOB + n);
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
    pool_limit(p, p->n_threads);
    return p;
}

void pool_free(struct pool *p)
{
    if (!p) return;
    pool_end(p);
    pool_limit(p, p->n_threads);
    p->quit = true;
    publish(p);
    for (int i = 0; i < p->n_threads - 1; i++) pthread_join(p->workers[i].thread, NULL);
    mem_free(p->mem, p);
}

int pool_threads(const struct pool *p) { return p->n_threads; }
int pool_working(const struct pool *p) { return (int)atomic_load_explicit(&p->working, memory_order_relaxed); }
uint32_t pool_jobs(const struct pool *p) { return p->jobs; }
double pool_waited(const struct pool *p) { return p->waited; }

void pool_limit(struct pool *p, int n)
{
    int before = pool_working(p);
    if (n == before) return;
    if (n > before) atomic_store(&p->grown, atomic_load(&p->job));
    atomic_store(&p->working, (uint32_t)n);
    if (n > before) word_wake(&p->working, p->n_threads - 1);
}

void pool_end(struct pool *p)
{
    for (uint32_t left; (left = atomic_load_explicit(&p->busy, memory_order_acquire)) != 0;)
        await_change(p, &p->busy, left, &p->waited);
}

void pool_begin(struct pool *p, pool_fn *fn, void *arg)
{
    int n = pool_working(p);
    pool_end(p);
    if (n == 1) {
        fn(arg, 0, 1);
        return;
    }
    p->fn = fn;
    p->arg = arg;
    atomic_store_explicit(&p->busy, (uint32_t)(n - 1), memory_order_relaxed);
    publish(p);
}

void pool_run(struct pool *p, pool_fn *fn, void *arg)
{
    int n = pool_working(p);
    pool_begin(p, fn, arg);
    if (n > 1) fn(arg, 0, n);
    pool_end(p);
}

static void do_nothing(void *arg, int thread, int n_threads) { (void)arg, (void)thread, (void)n_threads; }

double pool_barrier_us(struct pool *p)
{
    enum { TRIES = 6, JOBS = 16 }; /* a paused thread delays one try only; a missing processor delays all */
    double least = 0;
    if (pool_working(p) == 1) return 0;
    for (int t = 0; t < TRIES; t++) {
        double begin = now_ms();
        for (int i = 0; i < JOBS; i++) pool_run(p, do_nothing, NULL);
        double us = (now_ms() - begin) * 1e3 / (double)JOBS;
        if (t == 0 || us < least) least = us;
    }
    return least;
}

void pool_share(int total, int thread, int n_threads, int *begin, int *end)
{
    int64_t n = total;
    *begin = (int)(n * thread / n_threads);
    *end = (int)(n * (thread + 1) / n_threads);
}

bool pool_claim(int64_t *claimed, int64_t total, int n_threads, int64_t *begin, int64_t *end)
{
    enum { LEAST = 32 }; /* intervals per thread if all were the smallest */
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
