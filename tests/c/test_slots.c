/* SPDX-License-Identifier: MIT
 *
 * States without a model: a slot holds a hash of all ids that were read, a page one hash for each position. Whatever is
 * matched, saved, forgotten, copied or dropped, a sequence must find the hashes of its own ids in its slot and its
 * pages. Slots that no sequence holds, and reserved but not committed contents, are poisoned.
 */
#include "engine/kvcache.h"
#include "model_file.h"

enum { PAGES = 40, SLOTS = 24, SEQUENCES = 6, LENGTH_MAX = 8 * KV_PAGE, TALKS = 8 };

static const uint64_t POISON = 0xDEADDEADDEADDEAD;

struct shadow {
    struct kv_seq seq;
    bool open;
    uint64_t ids[LENGTH_MAX];
};

static uint64_t contents[PAGES][KV_PAGE], states[SLOTS];
static struct mem mem;
static struct kv_cache *cache;
static struct shadow shadows[SEQUENCES];
static long n_resumed, n_halves, n_full;

static uint64_t extend(uint64_t state, uint64_t id) { return (state ^ id) * 0x9E3779B97F4A7C15 + 0x7F4A7C15; }

static uint64_t hash_of(const uint64_t *ids, int n)
{
    uint64_t state = 1;
    for (int i = 0; i < n; i++) state = extend(state, ids[i]);
    return state;
}

/* --- the shadow of a backend ------------------------------------------------------------------------------- */

static void copy_page(void *context, int to, int from, int n)
{
    CHECK(context == contents && to != from && n > 0 && n < KV_PAGE);
    memcpy(contents[to], contents[from], (size_t)n * sizeof **contents);
    for (int i = n; i < KV_PAGE; i++) contents[to][i] = POISON;
}

static void poison_page(void *context, int page)
{
    CHECK(context == contents);
    for (int i = 0; i < KV_PAGE; i++) contents[page][i] = POISON;
}

static void poison_slot(void *context, int slot)
{
    CHECK(context == states);
    states[slot] = POISON;
}

static void check_sequence(const struct shadow *s)
{
    uint64_t state = 1;
    for (int i = 0; i < s->seq.length; i++) {
        state = extend(state, s->ids[i]);
        CHECK(contents[s->seq.pages[i / KV_PAGE]][i % KV_PAGE] == state);
    }
    if (s->seq.slot >= 0) CHECK(s->seq.length > 0 && states[s->seq.slot] == state);
    CHECK_EQ(kv_lacks_state(&s->seq), s->seq.length > 0 && s->seq.slot < 0);
}

static void check_cache(void)
{
    const struct kv_seq *open[SEQUENCES];
    int n = 0, scratch[PAGES];
    for (int k = 0; k < SEQUENCES; k++)
        if (shadows[k].open) open[n++] = &shadows[k].seq, check_sequence(&shadows[k]);
    CHECK(kv_check(cache, open, n, scratch));
}

/* No other sequence has a slot that is written. */
static void check_alone(int32_t slot)
{
    int users = 0;
    for (int k = 0; k < SEQUENCES; k++)
        if (shadows[k].open)
            users += (shadows[k].seq.slot == slot) + (shadows[k].seq.next == slot) + (shadows[k].seq.mid == slot);
    CHECK_EQ(users, 1);
}

/* Computes a step, with the states at its end and at snapshots. */
static void compute(struct shadow *s, int n)
{
    const struct kv_seq *kv = &s->seq;
    uint64_t state = kv->length ? states[kv->slot] : 1;
    for (int i = kv->length; i < kv->length + n; i++) {
        state = extend(state, s->ids[i]);
        contents[kv->pages[i / KV_PAGE]][i % KV_PAGE] = state;
        if (kv->mid >= 0 && kv->mid_at == i + 1) check_alone(kv->mid), states[kv->mid] = state, n_halves++;
    }
    check_alone(kv->next);
    states[kv->next] = state;
}

/* --- operations ------------------------------------------------------------------------------------------------ */

static void begin(int n_pages, int n_slots)
{
    memset(shadows, 0, sizeof shadows);
    memset(contents, 0xFF, sizeof contents);
    memset(states, 0xFF, sizeof states);
    mem = (struct mem){0};
    cache = kv_new(&mem, n_pages, n_slots, copy_page, contents);
    CHECK(cache != NULL);
    CHECK_EQ(mem.used, kv_cost(n_pages, n_slots));
}

static void end(void)
{
    for (int k = 0; k < SEQUENCES; k++) kv_seq_close(&shadows[k].seq), shadows[k].open = false;
    check_cache();
    kv_free(cache);
    CHECK_EQ(mem.used, 0);
}

static void open_sequence(struct shadow *s)
{
    CHECK_EQ(kv_seq_open(cache, LENGTH_MAX, 0, &s->seq), OK);
    s->open = true;
}

/* Makes one step of n rows with a mark at `mark` (0: none). Returns whether there was room. */
static bool advance(struct shadow *s, int n, int mark)
{
    struct kv_seq before = s->seq;
    int end_at = s->seq.length + n;
    kv_each_free_slot(cache, poison_slot, states);
    if (kv_reserve(&s->seq, n)) {
        CHECK(s->seq.n_pages == before.n_pages && s->seq.next == before.next && s->seq.slot == before.slot);
        n_full++;
        return false;
    }
    if (mark > s->seq.length && mark <= end_at) kv_mark(&s->seq, mark, end_at, KEPT_MOST);
    compute(s, n);
    kv_commit(&s->seq, s->ids + s->seq.length, n);
    CHECK(s->seq.next < 0 && s->seq.mid < 0 && s->seq.slot >= 0);
    return true;
}

/* Continues from the known part of ids [n], in steps of `chunk`. Returns the length of that part. */
static int run(struct shadow *s, const uint64_t *ids, int n, int chunk, int mark)
{
    memmove(s->ids, ids, (size_t)n * sizeof *ids);
    kv_clear(&s->seq); /* its own state may be the best one to continue from */
    int told = kv_known(cache, 0, s->ids, n), known = kv_match(&s->seq, s->ids, n);
    CHECK(known == s->seq.length && known <= n && !kv_lacks_state(&s->seq));
    CHECK(known <= told); /* there may be no page for a copy */
    check_sequence(s);
    n_resumed += known > 0;
    while (s->seq.length < n && advance(s, min_int(chunk, n - s->seq.length), mark)) {}
    return known;
}

static void count_up(uint64_t *ids, int n, uint64_t from)
{
    for (int i = 0; i < n; i++) ids[i] = from + (uint64_t)i;
}

/* --- single properties ------------------------------------------------------------------------------------------- */

/* A conversation is found again up to its last snapshot: at the mark, wherever that is within steps and pages, and at
 * its end. */
static void marks(void)
{
    static const int places[] = {1, 31, 32, 33, 64, 70, 96, 99};
    uint64_t ids[100], other[100];
    count_up(ids, 100, 5);
    for (int chunk = 1; chunk <= 128; chunk = chunk * 2 + 1)
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            int mark = places[i];
            begin(PAGES, 6);
            open_sequence(&shadows[0]);
            CHECK_EQ(run(&shadows[0], ids, 100, chunk, mark), 0);
            CHECK_EQ(kv_snapshots(cache), 1);
            CHECK_EQ(kv_known(cache, 0, ids, mark), mark);
            CHECK_EQ(kv_known(cache, 0, ids, mark - 1), 0);
            CHECK_EQ(kv_known(cache, 1, ids, 100), 0); /* another scope */
            memcpy(other, ids, sizeof ids);
            other[mark - 1] = 999; /* a text that diverges before the mark finds nothing, */
            CHECK_EQ(kv_known(cache, 0, other, 100), 0);
            memcpy(other, ids, sizeof ids);
            if (mark < 100) other[mark] = 999; /* and one that diverges after it finds the mark */
            open_sequence(&shadows[1]);
            CHECK_EQ(run(&shadows[1], other, 100, chunk, 0), mark);
            kv_clear(&shadows[0].seq);
            CHECK_EQ(run(&shadows[0], ids, 100, chunk, 0), 100); /* its end was saved when it was cleared */
            check_cache();
            end();
        }
}

/* Which of four conversations and two places to return to are forgotten first. */
static void spared(void)
{
    static const int order[] = {4, 0, 1, 2, 5, 3}; /* the youngest of each rank last */
    struct slots s;
    int32_t slot[6];
    mem = (struct mem){0};
    CHECK_EQ(slots_open(&s, &mem, 6), OK);
    for (int i = 0; i < 6; i++) {
        slot[i] = slots_take(&s);
        slots_keep(&s, (struct snapshot){slot[i], i, 10, KEPT_NOT}, i < 4 ? KEPT_MOST : KEPT_LESS);
        slots_let_go(&s, slot[i]);
    }
    for (int i = 0; i < 6; i++) CHECK_EQ(slots_take(&s), slot[order[i]]);
    CHECK_EQ(slots_take(&s), -1);
    slots_close(&s);
}

/* A dropped step leaves no trace, whatever it has written. */
static void dropped_steps(void)
{
    uint64_t ids[100];
    count_up(ids, 100, 5);
    begin(PAGES, 3);
    open_sequence(&shadows[0]);
    run(&shadows[0], ids, 40, 64, 0);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(kv_reserve(&shadows[0].seq, 60), OK);
        kv_mark(&shadows[0].seq, 70, 100, KEPT_LESS);
        kv_mark(&shadows[0].seq, 100, 100, KEPT_MOST);
        compute(&shadows[0], 60);
        kv_trim(&shadows[0].seq);
        check_cache();
        CHECK_EQ(kv_snapshots(cache), 0);
    }
    CHECK(advance(&shadows[0], 60, 0));
    CHECK_EQ(kv_snapshots(cache), 0);
    end();
}

/* When a slot is needed, the least recently used snapshot goes, first those that were only cleared; never one that a
 * sequence continues from. */
static void oldest_first(void)
{
    uint64_t ids[4][40];
    begin(PAGES, 5);
    for (int k = 0; k < 4; k++) count_up(ids[k], 40, 1000 * (uint64_t)(k + 1));
    for (int k = 0; k < 3; k++) {
        open_sequence(&shadows[k]);
        run(&shadows[k], ids[k], 39, 64, 20 + k);
        kv_seq_close(&shadows[k].seq), shadows[k].open = false;
    }
    CHECK_EQ(kv_known(cache, 0, ids[2], 40), 39);
    CHECK_EQ(kv_known(cache, 0, ids[1], 40), 21); /* the snapshot at its end was forgotten */
    open_sequence(&shadows[0]);
    CHECK_EQ(run(&shadows[0], ids[0], 20, 64, 0), 20); /* used, and held */
    open_sequence(&shadows[3]);
    run(&shadows[3], ids[3], 40, 1, 0);
    CHECK_EQ(kv_known(cache, 0, ids[0], 40), 20);
    CHECK_EQ(kv_known(cache, 0, ids[1], 40), 21);
    CHECK_EQ(kv_known(cache, 0, ids[2], 40), 22);
    check_cache();
    end();
}

/* Returns which of three slots is taken, after `change`. */
static int32_t taken_after(void (*change)(struct slots *s, int32_t a, int32_t b))
{
    struct slots s;
    mem = (struct mem){0};
    CHECK_EQ(slots_open(&s, &mem, 3), OK);
    int32_t a = slots_take(&s), b = slots_take(&s);
    slots_keep(&s, (struct snapshot){a, 1, 10, KEPT_NOT}, KEPT_LESS);
    slots_keep(&s, (struct snapshot){b, 2, 20, KEPT_NOT}, KEPT_LESS);
    if (change) change(&s, a, b);
    slots_let_go(&s, a);
    slots_let_go(&s, b);
    CHECK_EQ(slots_take(&s), 2);
    int32_t taken = slots_take(&s);
    CHECK(slots_check(&s, (int[]){taken == 0, taken == 1, 1}));
    slots_close(&s);
    CHECK_EQ(mem.used, 0);
    return taken;
}

static void kept_again(struct slots *s, int32_t a, int32_t b)
{
    (void)b, slots_keep(s, (struct snapshot){a, 1, 10, KEPT_NOT}, KEPT_LESS);
}
static void let_go_again(struct slots *s, int32_t a, int32_t b)
{
    (void)b, slots_keep(s, (struct snapshot){a, 1, 10, KEPT_NOT}, KEPT_LEAST);
}
static void kept_elsewhere(struct slots *s, int32_t a, int32_t b)
{
    (void)b, slots_keep(s, (struct snapshot){a, 3, 10, KEPT_NOT}, KEPT_LESS);
}
static void copied(struct slots *s, int32_t a, int32_t b) { (void)a, (void)b, slots_copy(s, 1, 4, 10); }
static void copied_below(struct slots *s, int32_t a, int32_t b) { (void)a, (void)b, slots_copy(s, 1, 4, 9); }
static void aged(struct slots *s, int32_t a, int32_t b) { (void)a, (void)b, slots_age(s, 2); }
static void touched(struct slots *s, int32_t a, int32_t b) { (void)a, (void)b, slots_touch(s, 1, 10, KEPT_LESS); }
static void not_there(struct slots *s, int32_t a, int32_t b) { (void)a, (void)b, slots_touch(s, 1, 11, KEPT_MOST); }

/* The older snapshot has a higher rank; its copy does not. */
static void matters(struct slots *s, int32_t a, int32_t b)
{
    slots_touch(s, 1, 10, KEPT_MOST);
    slots_keep(s, (struct snapshot){b, 2, 20, KEPT_NOT}, KEPT_LESS);
    slots_copy(s, 1, 4, 10);
    (void)a;
}

static void matters_no_more(struct slots *s, int32_t a, int32_t b)
{
    matters(s, a, b);
    slots_touch(s, 2, 20, KEPT_MOST);
    slots_touch(s, 1, 10, KEPT_LESS);
}

static void order_of_slots(void)
{
    CHECK_EQ(taken_after(NULL), 0);
    CHECK_EQ(taken_after(kept_again), 1);
    CHECK_EQ(taken_after(let_go_again), 0);
    CHECK_EQ(taken_after(kept_elsewhere), 1); /* the youngest of a slot's snapshots counts */
    CHECK_EQ(taken_after(copied), 1);
    CHECK_EQ(taken_after(copied_below), 0);
    CHECK_EQ(taken_after(aged), 1);
    CHECK_EQ(taken_after(touched), 1);
    CHECK_EQ(taken_after(not_there), 0);
    CHECK_EQ(taken_after(matters), 1);
    CHECK_EQ(taken_after(matters_no_more), 0);
}

/* Two sequences continue from one state and never affect each other; a mark is given up if there is no slot for it, a
 * step is not. */
static void shared(void)
{
    uint64_t ids[2][80];
    begin(PAGES, 4);
    count_up(ids[0], 80, 1);
    memcpy(ids[1], ids[0], sizeof *ids);
    count_up(ids[1] + 50, 30, 9000);
    open_sequence(&shadows[0]);
    open_sequence(&shadows[1]);
    run(&shadows[0], ids[0], 50, 64, 50);
    CHECK_EQ(run(&shadows[1], ids[1], 80, 7, 60), 50);
    CHECK_EQ(kv_match(&shadows[0].seq, ids[0], 80), 50);
    for (int at = 50; at < 80; at++) shadows[0].ids[at] = ids[0][at];
    for (; shadows[0].seq.length < 80; check_cache()) CHECK(advance(&shadows[0], 5, 62));
    CHECK_EQ(kv_reserve(&shadows[0].seq, 10), OK);
    CHECK_EQ(kv_reserve(&shadows[1].seq, 10), OK);
    kv_mark(&shadows[0].seq, 84, 90, KEPT_MOST);
    CHECK_EQ(shadows[0].seq.mid, -1);
    open_sequence(&shadows[2]);
    CHECK_EQ(kv_reserve(&shadows[2].seq, 1), ERR_MEM_KV);
    check_cache();
    end();
}

/* A snapshot is forgotten with its page. */
static void forgotten_pages(void)
{
    uint64_t ids[100];
    begin(PAGES, 6);
    count_up(ids, 100, 5);
    open_sequence(&shadows[0]);
    run(&shadows[0], ids, 100, 32, 50);
    kv_clear(&shadows[0].seq);
    CHECK_EQ(kv_snapshots(cache), 2);
    kv_each_forgotten(cache, poison_page, contents);
    CHECK_EQ(kv_snapshots(cache), 0);
    CHECK_EQ(run(&shadows[0], ids, 100, 64, 0), 0);
    end();
}

/* Pages may be given without a state, which then comes at their end, or not at all. */
static void given(void)
{
    uint64_t ids[100];
    begin(PAGES, 4);
    count_up(ids, 100, 5);
    open_sequence(&shadows[0]);
    memcpy(shadows[0].ids, ids, sizeof ids);
    for (int page = 0; page < 2; page++) {
        CHECK_EQ(kv_reserve_pages(&shadows[0].seq, KV_PAGE), OK);
        for (int i = 0; i < KV_PAGE; i++)
            contents[shadows[0].seq.pages[page]][i] = hash_of(ids, page * KV_PAGE + i + 1);
        kv_commit(&shadows[0].seq, ids + page * KV_PAGE, KV_PAGE);
        CHECK(kv_lacks_state(&shadows[0].seq));
        check_cache();
    }
    CHECK_EQ(kv_reserve(&shadows[0].seq, 0), OK);
    states[shadows[0].seq.next] = hash_of(ids, 2 * KV_PAGE);
    kv_commit(&shadows[0].seq, ids, 0);
    check_cache();
    CHECK_EQ(kv_snapshots(cache), 0);
    kv_mark(&shadows[0].seq, 2 * KV_PAGE, 2 * KV_PAGE, KEPT_MOST);
    CHECK_EQ(kv_snapshots(cache), 1);
    CHECK(advance(&shadows[0], 36, 0));
    kv_cut(&shadows[0].seq, 2 * KV_PAGE);
    CHECK(kv_lacks_state(&shadows[0].seq));
    check_cache();
    CHECK_EQ(kv_match(&shadows[0].seq, ids, 100), 100);
    end();
}

static void short_memory(void)
{
    for (uint64_t at = 1; at <= 6; at++) {
        mem = (struct mem){.fail_at = at};
        CHECK(kv_new(&mem, PAGES, 4, copy_page, contents) == NULL);
        CHECK_EQ(mem.used, 0);
    }
}

/* --- random operations ----------------------------------------------------------------------------------------- */

static void say(struct shadow *s, uint64_t talks[TALKS][LENGTH_MAX], uint64_t *seed)
{
    uint64_t ids[LENGTH_MAX];
    int n = 1 + random_below(seed, LENGTH_MAX), own = random_below(seed, 2) ? random_below(seed, n) : n;
    memcpy(ids, talks[random_below(seed, TALKS)], sizeof ids);
    for (int i = own; i < n; i++) ids[i] = (uint64_t)random_below(seed, 3);
    run(s, ids, n, 1 + random_below(seed, 64),
        random_below(seed, 2) ? 1 + random_below(seed, n) : own / KV_PAGE * KV_PAGE);
}

static void write_more(struct shadow *s, uint64_t *seed)
{
    int n = min_int(1 + random_below(seed, 3), LENGTH_MAX - s->seq.length);
    for (int i = 0; i < n; i++) s->ids[s->seq.length + i] = (uint64_t)random_below(seed, 3);
    if (n > 0) advance(s, n, 0);
}

static void drop_step(struct shadow *s, uint64_t *seed)
{
    int n = 1 + random_below(seed, LENGTH_MAX - s->seq.length + 1);
    if (s->seq.length + n > LENGTH_MAX || kv_reserve(&s->seq, n)) return;
    for (int i = 0; i < n; i++) s->ids[s->seq.length + i] = 77;
    kv_mark(&s->seq, s->seq.length + (n + 1) / 2, s->seq.length + n, random_below(seed, 2) ? KEPT_LESS : KEPT_MOST);
    compute(s, n);
    if (random_below(seed, 2)) kv_trim(&s->seq);
    else kv_clear(&s->seq);
}

static void act(struct shadow *s, uint64_t talks[TALKS][LENGTH_MAX], uint64_t *seed)
{
    int what = random_below(seed, 100);
    if (!s->open) open_sequence(s);
    else if (what < 30) say(s, talks, seed);
    else if (what < 70) write_more(s, seed);
    else if (what < 80) drop_step(s, seed);
    else if (what < 85) kv_clear(&s->seq);
    else if (what < 88) kv_clear_first(&s->seq);
    else if (what < 92) kv_seq_close(&s->seq), s->open = false;
    else if (what < 96) kv_shuffle(cache, random_next(seed));
    else if (what < 98) kv_cut(&s->seq, s->seq.length / KV_PAGE * KV_PAGE), kv_match(&s->seq, s->ids, s->seq.length);
    else kv_each_forgotten(cache, poison_page, contents);
}

static void simulate(int n_pages, int n_slots, uint64_t seed, long steps)
{
    uint64_t talks[TALKS][LENGTH_MAX];
    begin(n_pages, n_slots);
    for (int t = 0; t < TALKS; t++) {
        int common = t ? random_below(&seed, LENGTH_MAX) : 0;
        memcpy(talks[t], talks[0], (size_t)common * sizeof **talks);
        for (int i = common; i < LENGTH_MAX; i++) talks[t][i] = (uint64_t)random_below(&seed, 3);
    }
    for (long i = 0; i < steps; i++) {
        act(&shadows[random_below(&seed, SEQUENCES)], talks, &seed);
        kv_each_free_slot(cache, poison_slot, states);
        check_cache();
    }
    end();
}

static void simulation(void)
{
    static const int pools[] = {PAGES, 12}, slots[] = {2, 7, SLOTS};
    long steps = check_length(10000, 200000);
    n_resumed = n_halves = n_full = 0;
    for (int p = 0; p < 2; p++)
        for (int s = 0; s < 3; s++) simulate(pools[p], slots[s], (uint64_t)(41 + 3 * p + s), steps);
    CHECK(n_resumed > steps / 10 && n_halves > steps / 10 && n_full > steps / 10);
}

static const struct check tests[] = {
    {"marks", marks},
    {"dropped_steps", dropped_steps},
    {"oldest_first", oldest_first},
    {"order_of_slots", order_of_slots},
    {"shared", shared},
    {"spared", spared},
    {"forgotten_pages", forgotten_pages},
    {"given", given},
    {"short_memory", short_memory},
    {"simulation", simulation},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
