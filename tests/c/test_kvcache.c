/* SPDX-License-Identifier: MIT
 *
 * The KV cache without a model: a page holds, for each position, a number that depends on all ids before it, as keys
 * and values do. So whatever the cache shares, copies or reuses, a sequence must find the numbers of its own ids in its
 * pages.
 */
#include "engine/kvcache.h"
#include "model_file.h"

enum { PAGES = 40, SEQUENCES = 6, LENGTH_MAX = 8 * KV_PAGE, TALKS = 8, STEPS = 500000 };

static const uint64_t POISON = 0xDEADDEADDEADDEAD;

/* --- the shadow of a backend ----------------------------------------------------------------------------- */

static uint64_t contents[PAGES][KV_PAGE];
static int n_copies;

static void copy_page(void *context, int to, int from, int n)
{
    CHECK(context == contents && to != from && n > 0 && n < KV_PAGE);
    memcpy(contents[to], contents[from], (size_t)n * sizeof **contents);
    for (int i = n; i < KV_PAGE; i++) contents[to][i] = POISON;
    n_copies++;
}

static void poison_page(void *context, int page)
{
    CHECK(context == contents);
    for (int i = 0; i < KV_PAGE; i++) contents[page][i] = POISON;
}

/* One conversation: its ids, and the expected contents of its pages. */
struct shadow {
    struct kv_seq seq;
    bool open;
    uint64_t ids[LENGTH_MAX];
};

static struct mem mem;
static struct kv_cache *cache;
static struct shadow shadows[SEQUENCES];

static uint64_t extend(uint64_t state, uint64_t id) { return (state ^ id) * 0x9E3779B97F4A7C15 + 0x7F4A7C15; }

static void check_contents(const struct shadow *s)
{
    uint64_t state = 1;
    for (int i = 0; i < s->seq.length; i++) {
        state = extend(state, s->ids[i]);
        CHECK(contents[s->seq.pages[i / KV_PAGE]][i % KV_PAGE] == state);
    }
    CHECK(s->seq.n_pages * KV_PAGE >= s->seq.length);
}

/* Computes a step: positions from the length on, in reserved pages, which no other sequence may use. */
static void compute(struct shadow *s, int n)
{
    uint64_t state = 1;
    for (int i = 0; i < s->seq.length; i++) state = extend(state, s->ids[i]);
    for (int i = s->seq.length; i < s->seq.length + n; i++) {
        int page = s->seq.pages[i / KV_PAGE], users = 0;
        for (int k = 0; k < SEQUENCES; k++)
            for (int j = 0; j < shadows[k].seq.n_pages; j++) users += shadows[k].seq.pages[j] == page;
        CHECK_EQ(users, 1);
        state = extend(state, s->ids[i]);
        contents[page][i % KV_PAGE] = state;
    }
}

static void check_cache(void)
{
    const struct kv_seq *open[SEQUENCES];
    int n = 0, used = 0, scratch[PAGES];
    bool seen[PAGES] = {false};
    for (int k = 0; k < SEQUENCES; k++) {
        if (!shadows[k].open) continue;
        open[n++] = &shadows[k].seq;
        for (int i = 0; i < shadows[k].seq.n_pages; i++)
            used += !seen[shadows[k].seq.pages[i]], seen[shadows[k].seq.pages[i]] = true;
    }
    CHECK(kv_check(cache, open, n, scratch));
    CHECK_EQ(kv_pages_used(cache), used);
}

/* --- operations ---------------------------------------------------------------------------------------------- */

static void begin(int n_pages)
{
    memset(shadows, 0, sizeof shadows);
    memset(contents, 0xFF, sizeof contents);
    mem = (struct mem){0};
    n_copies = 0;
    cache = kv_new(&mem, n_pages, 0, copy_page, contents);
    CHECK(cache != NULL);
}

static void end(void)
{
    for (int k = 0; k < SEQUENCES; k++) kv_seq_close(&shadows[k].seq);
    memset(shadows, 0, sizeof shadows);
    check_cache();
    CHECK_EQ(kv_pages_used(cache), 0);
    kv_free(cache);
    CHECK_EQ(mem.used, 0);
}

static void open_sequence(struct shadow *s)
{
    CHECK_EQ(kv_seq_open(cache, LENGTH_MAX, 0, &s->seq), OK);
    s->open = true;
}

/* Reserves n more positions; succeeds exactly if there is room, and changes nothing otherwise. */
static bool reserve(struct shadow *s, int n, int n_pages)
{
    int wanted = max_int((s->seq.length + n + KV_PAGE - 1) / KV_PAGE - s->seq.n_pages, 0);
    int before = s->seq.n_pages, length = s->seq.length, used = kv_pages_used(cache), status = kv_reserve(&s->seq, n);
    CHECK_EQ(status, wanted > n_pages - used ? ERR_MEM_KV : OK);
    CHECK_EQ(s->seq.length, length);
    CHECK_EQ(s->seq.n_pages, status ? before : before + wanted);
    CHECK_EQ(kv_pages_used(cache), status ? used : used + wanted);
    return status == OK;
}

/* One step of n rows. */
static bool advance(struct shadow *s, int n, int n_pages)
{
    if (!reserve(s, n, n_pages)) return false;
    compute(s, n);
    kv_commit(&s->seq, s->ids + s->seq.length, n);
    return true;
}

/* Matches the known prefix of ids [n], then computes the rest in steps of `chunk`. Returns the length of that prefix.
 */
static int run(struct shadow *s, const uint64_t *ids, int n, int chunk, int n_pages)
{
    int copies = n_copies;
    memmove(s->ids, ids, (size_t)n * sizeof *ids);
    int known = kv_match(&s->seq, s->ids, n);
    CHECK(known >= 0 && known <= n && known == s->seq.length);
    CHECK(n_copies - copies <= 1);
    check_contents(s);
    while (s->seq.length < n && advance(s, min_int(chunk, n - s->seq.length), n_pages)) {}
    return known;
}

/* --- single properties ----------------------------------------------------------------------------------------- */

static void count_up(uint64_t *ids, int n, uint64_t from)
{
    for (int i = 0; i < n; i++) ids[i] = from + (uint64_t)i;
}

/* K01: a conversation is found again completely, whatever its length and that of its steps. */
static void lengths(void)
{
    static const int sizes[] = {1, 2, 31, 32, 33, 63, 64, 65, 127, 128, LENGTH_MAX};
    uint64_t ids[LENGTH_MAX];
    count_up(ids, LENGTH_MAX, 100);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int chunk = 1; chunk <= 40; chunk += 13) {
            begin(PAGES);
            open_sequence(&shadows[0]);
            CHECK_EQ(run(&shadows[0], ids, sizes[i], chunk, PAGES), 0);
            CHECK_EQ(shadows[0].seq.n_pages, (sizes[i] + KV_PAGE - 1) / KV_PAGE);
            CHECK_EQ(run(&shadows[0], ids, sizes[i], chunk, PAGES), sizes[i]);
            kv_seq_close(&shadows[0].seq);
            open_sequence(&shadows[0]);
            /* and so is every prefix of it */
            for (int n = sizes[i]; n > 0; n--) CHECK_EQ(run(&shadows[0], ids, n, chunk, PAGES), n);
            CHECK_EQ(n_copies, sizes[i] - 1 - (sizes[i] - 1) / KV_PAGE); /* whole pages are never copied */
            end();
        }
}

/* K03: two sequences with a common beginning diverge; whichever ends first, the other keeps its own pages. */
static void divergence(void)
{
    for (int common = 1; common <= 100; common++)
        for (int first = 0; first < 2; first++) {
            uint64_t ids[2][LENGTH_MAX];
            begin(PAGES);
            for (int k = 0; k < 2; k++) {
                count_up(ids[k], common, 1);
                count_up(ids[k] + common, 60, 1000 * (uint64_t)(k + 1));
                open_sequence(&shadows[k]);
                CHECK_EQ(run(&shadows[k], ids[k], common + 60, 64, PAGES), k ? common : 0);
            }
            for (int i = 0; i < 40; i++)
                for (int k = 0; k < 2; k++) {
                    shadows[k].ids[shadows[k].seq.length] = (uint64_t)i;
                    CHECK(advance(&shadows[k], 1, PAGES));
                }
            check_contents(&shadows[0]);
            check_contents(&shadows[1]);
            kv_clear(&shadows[first].seq);
            check_cache();
            check_contents(&shadows[!first]);
            CHECK_EQ(run(&shadows[first], ids[first], common + 60, 64, PAGES), common + 60);
            check_contents(&shadows[!first]);
            end();
        }
}

/* K06: forgotten pages return nothing; K09: ids that differ only in a high bit are different. */
static void forgetting(void)
{
    uint64_t ids[100];
    begin(PAGES);
    open_sequence(&shadows[0]);
    count_up(ids, 100, 5);
    run(&shadows[0], ids, 100, 64, PAGES);
    kv_clear(&shadows[0].seq);
    kv_each_forgotten(cache, poison_page, contents);
    CHECK_EQ(run(&shadows[0], ids, 100, 64, PAGES), 0);
    check_contents(&shadows[0]);
    for (int at = 0; at < 100; at += 9)
        for (int bit = 0; bit < 64; bit += 7) {
            ids[at] ^= 1ull << bit;
            CHECK_EQ(kv_match(&shadows[0].seq, ids, 100), at);
            ids[at] ^= 1ull << bit;
            kv_match(&shadows[0].seq, ids, 100);
        }
    end();
}

/* Among unused pages the least recently used goes first, and a conversation loses its end before its beginning. */
static void oldest_first(void)
{
    uint64_t x[4 * KV_PAGE], y[6 * KV_PAGE];
    begin(8);
    open_sequence(&shadows[0]);
    count_up(x, 4 * KV_PAGE, 1);
    count_up(y, 6 * KV_PAGE, 1000);
    run(&shadows[0], x, 4 * KV_PAGE, 64, 8);
    CHECK_EQ(run(&shadows[0], y, 6 * KV_PAGE, 64, 8), 0);
    CHECK_EQ(kv_match(&shadows[0].seq, x, 4 * KV_PAGE), 2 * KV_PAGE);
    memcpy(shadows[0].ids, x, sizeof x);
    check_contents(&shadows[0]);
    end();
}

/* Numbers written by a dropped step are never taken for content. */
static void dropped_steps(void)
{
    uint64_t ids[100], other[100];
    begin(PAGES);
    open_sequence(&shadows[0]);
    count_up(ids, 100, 5);
    memcpy(other, ids, sizeof ids);
    count_up(other + 40, 60, 9000);
    run(&shadows[0], ids, 40, 64, PAGES);
    memcpy(shadows[0].ids, other, sizeof other);
    CHECK(reserve(&shadows[0], 60, PAGES));
    compute(&shadows[0], 60); /* without a commit */
    CHECK_EQ(run(&shadows[0], other, 100, 64, PAGES), 40);
    check_contents(&shadows[0]);
    CHECK_EQ(run(&shadows[0], ids, 100, 64, PAGES), 40);
    check_contents(&shadows[0]);
    end();
}

static void short_memory(void)
{
    for (uint64_t at = 1; at <= 3; at++) {
        mem = (struct mem){.fail_at = at};
        CHECK(kv_new(&mem, PAGES, 0, copy_page, contents) == NULL);
        CHECK_EQ(mem.used, 0);
    }
    begin(PAGES);
    mem.fail_at = mem.n_allocs + 1;
    CHECK_EQ(kv_seq_open(cache, LENGTH_MAX, 0, &shadows[0].seq), ERR_MEM_LOAD);
    end();
}

/* --- K02: random operations -------------------------------------------------------------------------------------- */

/* Makes conversations that begin alike and diverge at different places. */
static void make_talks(uint64_t talks[TALKS][LENGTH_MAX], uint64_t *seed)
{
    for (int t = 0; t < TALKS; t++) {
        int common = t ? random_below(seed, LENGTH_MAX) : 0;
        memcpy(talks[t], talks[0], (size_t)common * sizeof **talks);
        for (int i = common; i < LENGTH_MAX; i++) talks[t][i] = (uint64_t)random_below(seed, 3);
    }
}

/* Chooses a random conversation up to a random place, half of the time with its own end. */
static void say(struct shadow *s, uint64_t talks[TALKS][LENGTH_MAX], uint64_t *seed, int n_pages)
{
    uint64_t ids[LENGTH_MAX];
    int n = 1 + random_below(seed, LENGTH_MAX), own = random_below(seed, 2) ? random_below(seed, n) : n;
    memcpy(ids, talks[random_below(seed, TALKS)], sizeof ids);
    for (int i = own; i < n; i++) ids[i] = (uint64_t)random_below(seed, 3);
    run(s, ids, n, 1 + random_below(seed, 64), n_pages);
}

static void decode(struct shadow *s, uint64_t *seed, int n_pages)
{
    int n = min_int(1 + random_below(seed, 3), LENGTH_MAX - s->seq.length);
    for (int i = 0; i < n; i++) s->ids[s->seq.length + i] = (uint64_t)random_below(seed, 3);
    if (n > 0) advance(s, n, n_pages);
}

static void drop_step(struct shadow *s, uint64_t *seed, int n_pages)
{
    int n = random_below(seed, LENGTH_MAX - s->seq.length + 1);
    for (int i = 0; i < n; i++) s->ids[s->seq.length + i] = 77;
    if (reserve(s, n, n_pages)) compute(s, n);
}

static void act(struct shadow *s, uint64_t talks[TALKS][LENGTH_MAX], uint64_t *seed, int n_pages)
{
    int what = random_below(seed, 100);
    if (!s->open) open_sequence(s);
    else if (what < 30) say(s, talks, seed, n_pages);
    else if (what < 75) decode(s, seed, n_pages);
    else if (what < 85) drop_step(s, seed, n_pages);
    else if (what < 90) kv_clear(&s->seq);
    else if (what < 94) kv_seq_close(&s->seq), s->open = false;
    else if (what < 98) kv_shuffle(cache, random_next(seed));
    else kv_each_forgotten(cache, poison_page, contents);
}

static void simulate(int n_pages, uint64_t seed)
{
    uint64_t talks[TALKS][LENGTH_MAX];
    long total = 0, full = 0;
    begin(n_pages);
    make_talks(talks, &seed);
    for (int step = 0; step < STEPS; step++) {
        struct shadow *s = &shadows[random_below(&seed, SEQUENCES)];
        act(s, talks, &seed, n_pages);
        if (s->open) check_contents(s);
        if (step % 16) continue;
        check_cache();
        for (int k = 0; k < SEQUENCES; k++)
            if (shadows[k].open) check_contents(&shadows[k]), total += shadows[k].seq.length;
        full += kv_pages_used(cache) == n_pages;
    }
    CHECK(total > STEPS); /* there were conversations in the cache, */
    CHECK(n_copies > STEPS / 100); /* copied pages, */
    CHECK(n_pages > 12 || full > 0); /* and too few pages when the pool was small */
    end();
}

static void simulation(void) { simulate(PAGES, 41); }
static void simulation_exhausted(void) { simulate(12, 43); }

static const struct check tests[] = {
    {"lengths", lengths},           {"divergence", divergence},     {"forgetting", forgetting},
    {"oldest_first", oldest_first}, {"dropped_steps", dropped_steps}, {"short_memory", short_memory},
    {"simulation", simulation},     {"simulation_exhausted", simulation_exhausted},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
