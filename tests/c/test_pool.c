/* SPDX-License-Identifier: MIT
 *
 * The thread pool: each thread runs once per job, nothing of a job is left when pool_run returns; thousands of empty
 * jobs, and pools that come and go. Also meant for ThreadSanitizer, so jobs share plain memory: only the pool orders
 * accesses.
 */
#include "check.h"
#include "base/pool.h"

#include <stdlib.h>
#include <time.h>

/* Spinning threads without a core of their own make jobs slow, so there are fewer jobs then. */
enum { JOBS = 10000, CROWDED_JOBS = 1000, MOST = 8 };

static struct mem mem;

static struct pool *new_pool(int threads)
{
    struct pool *p = pool_new(&mem, threads);
    CHECK(p != NULL);
    CHECK_EQ(pool_threads(p), threads);
    return p;
}

/* --- each thread once ------------------------------------------------------------------------------------ */

struct tally {
    int job, n_threads;
    struct {
        int calls, last_job, n_threads;
    } of[MOST];
};

static void count(void *arg, int thread, int n_threads)
{
    struct tally *t = arg;
    t->of[thread].calls++;
    t->of[thread].last_job = t->job; /* written by the caller just before */
    t->of[thread].n_threads = n_threads;
}

static void once_each(void)
{
    for (int threads = 1; threads <= MOST; threads++) {
        struct pool *p = new_pool(threads);
        struct tally t = {0};
        for (t.job = 1; t.job <= (threads <= 2 ? JOBS : CROWDED_JOBS); t.job++) {
            pool_run(p, count, &t);
            for (int i = 0; i < MOST; i++) {
                CHECK_EQ(t.of[i].calls, i < threads ? t.job : 0);
                CHECK_EQ(t.of[i].last_job, i < threads ? t.job : 0);
            }
        }
        CHECK_EQ(t.of[threads - 1].n_threads, threads);
        pool_free(p);
        CHECK_EQ(mem.used, 0);
    }
}

/* --- results of one job are the input of the next --------------------------------------------------------- */

enum { CELLS = 1000 };

struct field {
    uint32_t a[CELLS], b[CELLS];
};

/* b[i] from a's neighbours, which other threads wrote in the previous job. */
static void spread(void *arg, int thread, int n_threads)
{
    struct field *f = arg;
    int begin, end;
    pool_share(CELLS, thread, n_threads, &begin, &end);
    for (int i = begin; i < end; i++) f->b[i] = f->a[(i + CELLS - 1) % CELLS] * 3 + f->a[(i + 1) % CELLS] + 1;
}

static void gather(void *arg, int thread, int n_threads)
{
    struct field *f = arg;
    int begin, end;
    pool_share(CELLS, thread, n_threads, &begin, &end);
    for (int i = begin; i < end; i++) f->a[i] = f->b[CELLS - 1 - i] ^ f->b[i];
}

static void results_follow(void)
{
    static struct field one, many;
    struct pool *alone = new_pool(1);
    memset(&one, 0, sizeof one);
    for (int i = 0; i < 500; i++) pool_run(alone, i % 2 ? gather : spread, &one);
    pool_free(alone);
    for (int threads = 2; threads <= MOST; threads++) {
        struct pool *p = new_pool(threads);
        memset(&many, 0, sizeof many);
        for (int i = 0; i < 500; i++) pool_run(p, i % 2 ? gather : spread, &many);
        pool_free(p);
        CHECK_EQ(memcmp(&one, &many, sizeof one), 0);
    }
}

/* --- beside the caller ------------------------------------------------------------------------------------ */

/* Runs the workers alone; a job that was begun is over before the next one. */
static void beside_the_caller(void)
{
    for (int threads = 1; threads <= MOST; threads++) {
        struct pool *p = new_pool(threads);
        struct tally begun = {0}, run = {0};
        for (begun.job = run.job = 1; run.job <= 300; begun.job = ++run.job) {
            pool_begin(p, count, &begun);
            if (run.job % 2) pool_end(p);
            pool_run(p, count, &run);
            for (int i = 0; i < MOST; i++) {
                CHECK_EQ(begun.of[i].calls, i < threads && (i > 0 || threads == 1) ? run.job : 0);
                CHECK_EQ(run.of[i].calls, i < threads ? run.job : 0);
            }
        }
        pool_begin(p, count, &begun);
        pool_free(p);
        CHECK_EQ(mem.used, 0);
    }
}

/* --- waiting ------------------------------------------------------------------------------------------------ */

static void pause_us(long microseconds) { nanosleep(&(struct timespec){0, microseconds * 1000}, NULL); }

/* Delays a worker, or the caller, until long after the others have gone to sleep. */
static void late(void *arg, int thread, int n_threads)
{
    struct tally *t = arg;
    if (t->job % n_threads == thread) pause_us(2000);
    count(arg, thread, n_threads);
}

static void sleepers_wake(void)
{
    struct pool *p = new_pool(3);
    struct tally t = {0};
    for (t.job = 1; t.job <= 60; t.job++) {
        if (t.job % 4 == 0) pause_us(2000); /* all workers also sleep between jobs */
        pool_run(p, late, &t);
        for (int i = 0; i < 3; i++) CHECK_EQ(t.of[i].last_job, t.job);
    }
    pool_free(p);
}

/* --- limits ------------------------------------------------------------------------------------------------ */

/* Every number of threads after every other; threads beyond it do not run, and return at their first job. */
static void limits(void)
{
    enum { ROUNDS = 40, EACH = 3 };
    struct pool *p = new_pool(MOST);
    struct tally t = {0};
    int calls[MOST] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        int n = 1 + round * 5 % MOST; /* up and down, in steps of 5 and 3 */
        uint32_t jobs = pool_jobs(p);
        pool_limit(p, n);
        CHECK_EQ(pool_working(p), n);
        if (round % 3 == 0) pause_us(500); /* all workers are asleep, too */
        for (int i = 0; i < EACH; i++) {
            t.job++;
            if (i % 2) pool_begin(p, count, &t), pool_end(p); /* without the caller, if there are other threads */
            else pool_run(p, count, &t);
            for (int j = 0; j < MOST; j++) {
                calls[j] += j < n && (j > 0 || n == 1 || i % 2 == 0);
                CHECK_EQ(t.of[j].calls, calls[j]);
                if (t.of[j].last_job == t.job) CHECK_EQ(t.of[j].n_threads, n);
            }
        }
        CHECK_EQ(pool_jobs(p) - jobs, n > 1 ? EACH : 0);
    }
    CHECK_EQ(pool_threads(p), MOST);
    pool_limit(p, 1);
    CHECK(pool_barrier_us(p) == 0);
    pool_free(p);
    CHECK_EQ(mem.used, 0);
}

static void waits_are_counted(void)
{
    struct pool *p = new_pool(2);
    struct tally t = {0};
    pool_run(p, count, &t);
    CHECK(pool_barrier_us(p) > 0);
    double before = pool_waited(p);
    for (t.job = 1; t.job <= 20; t.job++) pool_run(p, late, &t); /* every other time the caller waits 2 ms */
    CHECK(pool_waited(p) - before >= 15);
    pool_free(p);
}

/* --- life ----------------------------------------------------------------------------------------------------- */

/* Pools freed at once, after a while, after a job: no worker may be lost or left. */
static void come_and_go(void)
{
    for (int i = 0; i < 300; i++) {
        struct pool *p = new_pool(1 + i % MOST);
        struct tally t = {.job = 1};
        if (i % 3 == 1) pause_us(300);
        if (i % 3 == 2) pool_run(p, count, &t);
        pool_free(p);
        CHECK_EQ(mem.used, 0);
    }
}

/* --- the rest ------------------------------------------------------------------------------------------------ */

static void shares(void)
{
    for (int total = 0; total < 200; total++)
        for (int n = 1; n <= 17; n++) {
            int next = 0, begin, end;
            for (int t = 0; t < n; t++, next = end) {
                pool_share(total, t, n, &begin, &end);
                CHECK_EQ(begin, next);
                CHECK(end - begin == total / n || end - begin == total / n + 1);
            }
            CHECK_EQ(next, total);
        }
    int begin, end;
    pool_share(INT32_MAX, POOL_MAX_THREADS - 1, POOL_MAX_THREADS, &begin, &end);
    CHECK_EQ(end, INT32_MAX);
}

static void odd_numbers(void)
{
    const int asked[] = {-5, 0, 1, 1000}, given[] = {1, 1, 1, POOL_MAX_THREADS};
    for (int i = 0; i < 4; i++) {
        struct pool *p = pool_new(&mem, asked[i]);
        CHECK(p != NULL);
        CHECK_EQ(pool_threads(p), given[i]);
        pool_free(p);
    }
    pool_free(NULL);
    struct mem none = {.fail_at = 1};
    CHECK(pool_new(&none, 4) == NULL);
}

/* --- the dynamic split ----------------------------------------------------------------------------------------- */

struct claims {
    int64_t claimed;
    int total, slow; /* index of a thread that takes as long for one interval as the others for all, or -1 */
    uint8_t by[CELLS]; /* 1 + index of the thread */
    int intervals[MOST], items[MOST];
};

static void claim(void *arg, int thread, int n_threads)
{
    struct claims *c = arg;
    int64_t begin, end;
    while (pool_claim(&c->claimed, c->total, n_threads, &begin, &end)) {
        CHECK(begin < end && end <= c->total);
        /* plain memory: a second visit would be a race */
        for (int64_t i = begin; i < end; i++) c->by[i] += (uint8_t)(1 + thread);
        c->intervals[thread]++;
        c->items[thread] += (int)(end - begin);
        while (thread == c->slow && __atomic_load_n(&c->claimed, __ATOMIC_RELAXED) < c->total)
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
}

static void claims(void)
{
    for (int threads = 1; threads <= MOST; threads++) {
        struct pool *p = new_pool(threads);
        for (int total = 0; total <= CELLS; total += total < 40 ? 1 : 240) {
            struct claims c = {.total = total, .slow = -1};
            int items = 0, intervals = 0;
            pool_run(p, claim, &c);
            for (int i = 0; i < CELLS; i++) CHECK(i < total ? c.by[i] >= 1 && c.by[i] <= threads : c.by[i] == 0);
            for (int i = 0; i < threads; i++) items += c.items[i], intervals += c.intervals[i];
            CHECK_EQ(items, total);
            CHECK(threads == 1 ? intervals == (total > 0) : intervals <= 40 * threads);
        }
        pool_free(p);
    }
}

/* The slow thread gets one interval. */
static void slow_thread(void)
{
    struct pool *p = new_pool(2);
    struct claims c = {.total = CELLS, .slow = 1};
    pool_run(p, claim, &c);
    CHECK(c.items[1] <= CELLS / 4 && c.intervals[1] <= 1);
    CHECK_EQ(c.items[0] + c.items[1], CELLS);
    pool_free(p);
}

static const struct check tests[] = {
    {"once_each", once_each},
    {"results_follow", results_follow},
    {"beside_the_caller", beside_the_caller},
    {"sleepers_wake", sleepers_wake},
    {"limits", limits},
    {"waits_are_counted", waits_are_counted},
    {"come_and_go", come_and_go},
    {"shares", shares},
    {"claims", claims},
    {"slow_thread", slow_thread},
    {"odd_numbers", odd_numbers},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
