/* SPDX-License-Identifier: MIT
 *
 * The scheduler without a model: a page holds, for each position, a hash of all ids before it, as keys and values
 * depend on them; the "model" makes the next token from that hash and the reply's seed. So a reply is a function of its
 * prompt and seed, whatever ran beside it, and any error in sharing, letting go, recomputing or restoring gives another
 * hash. If the model has states, a slot holds that hash too, each run of rows continues it, and slots that no sequence
 * holds are poisoned.
 *
 * QUERN_LONG=1 runs the full proof, a million events for each seed, pool and width (four minutes, nine under
 * sanitizers), and as many again with states.
 */
#include "engine/scheduler.h"
#include "model_file.h"

#include <stdlib.h>

enum {
    PAGES_MOST = 130,
    LENGTH_MOST = 640,
    SLOTS = 28,
    PARALLEL_MOST = 16,
    WAITING = 8,
    ROWS = 64,
    TALKS = 8,
    IDS = 3,
    END_OF_REPLY = -1,
    STATES_MOST = 40
};

static const uint64_t POISON = 0xDEADDEADDEADDEAD;

/* One conversation: its expected contents, and what was observed. */
struct talk {
    struct sched_seq seq;
    bool listed;
    bool driven;               /* its owner appends at any time, also several tokens at once */
    bool waits;                /* its last row must not be computed for now */
    uint64_t ids[LENGTH_MOST], hashes[LENGTH_MOST + 1]; /* hashes of the ids before each position */
    uint64_t seed;
    int tokens, outs;
    /* observed before the plan: */
    enum sched_state state;
    int let_go, length;
    bool wanted;
    /* while it waits: */
    int passed;                /* younger sequences that were admitted */
    /* since it was admitted: */
    int base[SLOTS];           /* pages of every sequence's tokens at that time, or when it was admitted later */
    bool pushed;               /* an elder sequence has been admitted */
};

/* A take in the backend's view: it refers to nothing of a sequence. */
struct computed {
    struct sched_take take;
    uint32_t scope;
    uint64_t before, ids[ROWS], made; /* hash before the first row, the rows' ids, hash after the last row */
};

static uint64_t contents[PAGES_MOST][KV_PAGE];
static uint64_t states[STATES_MOST];
static uint64_t tree[TALKS][LENGTH_MOST];
static struct talk talks[SLOTS];
static struct computed plan[PARALLEL_MOST];
static const struct sched_take *takes;
static struct mem mem;
static struct kv_cache *cache;
static struct sched *sched;
static struct sched_limits limits;
static int n_pages, n_slots, n_takes;
static uint64_t seed;
static struct {
    long waits, plans, tokens, ends, let_go, busy, copies, left_planned, given, followed, recomputed, halves;
} seen;

static int ready_of(const struct sched_seq *s) { return s->n - ((const struct talk *)s)->waits; }
static uint64_t mix(uint64_t x) { return random_next(&x); }
static uint64_t extend(uint64_t state, uint64_t id) { return (state ^ id) * 0x9E3779B97F4A7C15 + 0x7F4A7C15; }
static int below(int n) { return random_below(&seed, n); }
static int pages_of(int length) { return (length + KV_PAGE - 1) / KV_PAGE; }

/* --- the shadow of a backend ----------------------------------------------------------------------------- */

static void copy_page(void *context, int to, int from, int n)
{
    CHECK(context == contents && to != from && n > 0 && n < KV_PAGE);
    memcpy(contents[to], contents[from], (size_t)n * sizeof **contents);
    for (int i = n; i < KV_PAGE; i++) contents[to][i] = POISON;
    seen.copies++;
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

static uint64_t *at(const int32_t *pages, int position)
{
    return &contents[pages[position / KV_PAGE]][position % KV_PAGE];
}

/* P3: a page that is written has one user. */
static void check_alone(int32_t page)
{
    const struct kv_seq *left[PARALLEL_MOST];
    int users = 0, n = sched_left(sched, left);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < left[i]->n_pages; k++) users += left[i]->pages[k] == page;
    for (int i = 0; i < SLOTS; i++)
        for (int k = 0; k < talks[i].seq.kv.n_pages; k++) users += talks[i].seq.kv.pages[k] == page;
    CHECK_EQ(users, 1);
}

/* A slot that is written has one user, who holds it for that. */
static void check_written(int32_t slot)
{
    const struct kv_seq *left[PARALLEL_MOST];
    int users = 0, others = 0, n = sched_left(sched, left);
    for (int i = 0; i < SLOTS + n; i++) {
        const struct kv_seq *kv = i < SLOTS ? &talks[i].seq.kv : left[i - SLOTS];
        if (!kv->cache) continue;
        users += (kv->next == slot) + (kv->mid == slot);
        others += kv->slot == slot;
    }
    CHECK(users == 1 && others == 0);
}

/* Ends a run with this state of its rows. */
static void end_run(const struct state_run *run, uint64_t state)
{
    if (n_slots == 0) CHECK(run->from == -1 && run->to == -1);
    if (n_slots == 0) return;
    check_written(run->to);
    states[run->to] = state;
}

static void begin_run(const struct state_run *run, uint64_t state, bool first)
{
    CHECK(run->n > 0 && (run->from < 0 || run->from != run->to));
    if (n_slots == 0) return;
    CHECK_EQ(run->from == -1, first);
    if (!first) CHECK(states[run->from] == state);
}

/* Computes the rows of one take from the contents of its pages. */
static void compute(struct computed *c)
{
    const struct state_run *run = c->take.runs;
    const struct sched_take *t = &c->take;
    uint64_t state = t->first ? *at(t->pages, t->first - 1) : mix(c->scope);
    CHECK(state == c->before); /* P4 */
    CHECK(t->n_runs == 1 ||
          (t->n_runs == 2 && t->runs[1].from == t->runs[0].to && t->runs[1].first == t->runs[0].first + t->runs[0].n));
    begin_run(run, state, t->first == 0);
    for (int i = 0; i < t->rows; i++) {
        if (i == run->first + run->n - t->runs->first)
            end_run(run, state), begin_run(++run, state, false), seen.halves++;
        if (i == 0 || (t->first + i) % KV_PAGE == 0) check_alone(t->pages[(t->first + i) / KV_PAGE]);
        state = extend(state, c->ids[i]);
        *at(t->pages, t->first + i) = state;
    }
    CHECK(run == t->runs + t->n_runs - 1 && run->first + run->n == t->runs->first + t->rows);
    end_run(run, state);
    c->made = state;
}

/* P2, P6: the pages, and the state, hold the hashes of its own ids. */
static void check_contents(const struct talk *t)
{
    if (t->seq.kv.slot >= 0) CHECK(states[t->seq.kv.slot] == t->hashes[t->seq.kv.length]);
    if (n_slots && t->seq.kv.length && !t->seq.held) CHECK(t->seq.kv.slot >= 0);
    for (int i = 0; i < t->seq.kv.length; i++) CHECK(*at(t->seq.kv.pages, i) == t->hashes[i + 1]);
}

static int token_of(uint64_t hash, uint64_t of_reply)
{
    uint64_t x = mix(hash ^ of_reply) >> 20;
    return x % 500 == 0 ? END_OF_REPLY : (int)(x / 500 % IDS);
}

/* --- conversations ---------------------------------------------------------------------------------------------- */

static void append(struct talk *t, uint64_t id)
{
    t->ids[t->seq.n] = id;
    t->hashes[t->seq.n + 1] = extend(t->hashes[t->seq.n], id);
    t->seq.n++;
}

/* Ascending marks inside the prompt, some of them close together. */
static void set_marks(struct sched_seq *s)
{
    s->n_marks = 0;
    for (int at = 0, n = below(4); n > 0 && s->n > 1; n--) {
        at += 1 + below(below(2) ? 20 : s->n);
        if (at > KV_PAGE && s->n_marks == 0 && below(2)) at -= at % KV_PAGE;
        if (at < s->n) s->marks[s->n_marks++] = at;
    }
}

/* Chooses a prompt from the tree, up to a random place and half of the time with its own end, and the kind of its
 * reply. */
static void say(struct talk *t)
{
    int longest = limits.length - 1, n = 1 + below(1 + below(longest)), own = below(2) ? below(n) : n;
    const uint64_t *known = tree[below(TALKS)];
    t->seq.n = 0;
    t->hashes[0] = mix(t->seq.kv.scope);
    for (int i = 0; i < n; i++) append(t, i < own ? known[i] : (uint64_t)below(IDS));
    t->seq.ids = t->ids;
    if (n_slots) set_marks(&t->seq);
    t->driven = below(7) == 0;
    t->seq.all = t->driven && below(3) == 0;
    t->seq.held = !t->driven && below(8) == 0;
    t->seq.limit = t->driven ? limits.length : min_int(limits.length, n + 1 + below(120));
    t->seq.priority = below(5) == 0;
    t->seq.forgotten_first = t->seq.priority > 0;
    t->waits = !t->driven && below(6) == 0;
    t->seed = random_next(&seed);
    t->tokens = t->outs = t->passed = 0;
}

static int wanting(void)
{
    int n = 0;
    for (int i = 0; i < SLOTS; i++) n += talks[i].listed && talks[i].seq.state != SCHED_IDLE;
    return n;
}

static void close_talk(struct talk *t)
{
    CHECK_EQ(t->seq.kv.n_pages, 0);
    kv_seq_close(&t->seq.kv);
    t->listed = false;
}

static void leave(struct talk *t)
{
    uint32_t scope = t->seq.kv.scope;
    seen.left_planned += t->seq.rows > 0;
    sched_remove(sched, &t->seq);
    CHECK_EQ(t->seq.kv.scope, scope);
    CHECK(t->seq.state == SCHED_IDLE && t->seq.kv.length == 0 && t->seq.kv.n_pages == 0);
    for (int i = 0; i < n_takes; i++) CHECK(takes[i].seq != &t->seq);
}

static void enter(struct talk *t)
{
    bool full = wanting() >= limits.parallel + limits.waiting && !t->seq.held;
    int status = sched_add(sched, &t->seq);
    CHECK_EQ(status, full ? ERR_BUSY : OK);
    seen.busy += full;
    t->listed = !full;
    if (full) close_talk(t);
    else if (t->seq.held) kv_match(&t->seq.kv, t->ids, t->seq.n - 1);
}

static void arrive(void)
{
    struct talk *t = talks;
    while (t < talks + SLOTS && t->listed) t++;
    if (t == talks + SLOTS) return;
    CHECK_EQ(kv_seq_open(cache, limits.length, (uint32_t)below(2), &t->seq.kv), OK);
    say(t);
    enter(t);
}

/* A listed conversation, or NULL. */
static struct talk *somebody(void)
{
    struct talk *t = &talks[below(SLOTS)];
    return t->listed ? t : NULL;
}

/* Gives a held conversation one more saved page, or lets it begin. */
static void give(struct talk *t)
{
    struct kv_seq *kv = &t->seq.kv;
    int from = kv->length;
    if (!t->listed || !t->seq.held) return;
    bool with_state = below(2); /* otherwise the state comes later, or not at all */
    if (from % KV_PAGE == 0 && from + KV_PAGE < t->seq.n && below(4) &&
        (with_state ? kv_reserve : kv_reserve_pages)(kv, KV_PAGE) == OK) {
        if (kv->next >= 0) states[kv->next] = t->hashes[from + KV_PAGE];
        for (int i = from; i < from + KV_PAGE; i++) *at(kv->pages, i) = t->hashes[i + 1];
        kv_commit(kv, t->ids + from, KV_PAGE);
        seen.given++;
        return;
    }
    bool full = wanting() >= limits.parallel + limits.waiting;
    t->seq.held = false;
    CHECK_EQ(sched_add(sched, &t->seq), full ? ERR_BUSY : OK);
    if (!full) return;
    t->seq.held = true;
    CHECK_EQ(t->seq.kv.length, from);
}

/* --- the plan, checked ------------------------------------------------------------------------------------------- */

static bool earlier(const struct talk *a, const struct talk *b)
{
    return a->seq.priority != b->seq.priority ? a->seq.priority < b->seq.priority : a->seq.arrival < b->seq.arrival;
}

static bool admitted(const struct talk *t)
{
    return t->listed && (t->seq.state == SCHED_READING || t->seq.state == SCHED_WRITING);
}
static bool was_admitted(const struct talk *t) { return t->state == SCHED_READING || t->state == SCHED_WRITING; }

static bool wants(const struct talk *t) { return t->listed && !t->seq.held && t->seq.n > t->seq.made; }

/* The first one that wants something; or, if `reading`, the first one that reads and can continue. */
static struct talk *first_of(bool reading)
{
    struct talk *first = NULL;
    for (struct talk *t = talks; t < talks + SLOTS; t++) {
        bool counts =
            reading ? t->listed && t->seq.state == SCHED_READING && ready_of(&t->seq) > t->seq.kv.length : wants(t);
        if (counts && (!first || earlier(t, first))) first = t;
    }
    return first;
}

/* Rows that it can take in a step: no further than the second mark. */
static int givable(const struct sched_seq *s)
{
    int end = ready_of(s), marks = 0;
    for (int i = 0; i < s->n_marks; i++)
        if (s->marks[i] > s->kv.length && ++marks == 2) end = min_int(end, s->marks[i]);
    return end - s->kv.length;
}

static void before_plan(void)
{
    for (struct talk *t = talks; t < talks + SLOTS; t++) {
        t->state = t->listed ? t->seq.state : SCHED_IDLE;
        t->let_go = t->seq.let_go;
        t->length = t->seq.kv.length;
        t->wanted = wants(t);
    }
}

/* S1, and the rows whose outputs are wanted. */
static void check_take(const struct sched_take *t)
{
    const struct sched_seq *s = t->seq;
    bool last = t->first + t->rows == s->n;
    CHECK(s->state == SCHED_READING || (s->state == SCHED_WRITING && t->rows == 1 && last && s->made == t->first));
    CHECK(s->state == SCHED_READING || ((const struct talk *)s)->outs > 0);
    CHECK(((const struct talk *)s)->wanted && !s->follows && s->rows == t->rows && s->outs == t->outs);
    CHECK(t->rows >= 1 && t->first == s->kv.length && t->first + t->rows <= ready_of(s) && t->pages == s->kv.pages);
    CHECK(s->kv.n_pages == pages_of(t->first + t->rows));
    CHECK_EQ(t->outs, s->all ? min_int(max_int(t->first + t->rows - s->made, 0), t->rows) : last);
    for (int page = t->first / KV_PAGE; page < s->kv.n_pages; page++) check_alone(s->kv.pages[page]);
    for (int i = 0, inside = 0; i < s->n_marks; i++) {
        inside += s->marks[i] > t->first && s->marks[i] < t->first + t->rows;
        CHECK(inside <= 1);
        if (t->n_runs == 2) CHECK(t->first + t->runs[0].n == s->kv.mid_at);
    }
}

/* S2: every writer has its row, or waits, or was let go. S3: the eldest reader has half of R, of the outputs, or all it
 * can use, which implies F2. R: `most` if there is no writer, else as many rows as time allows, at least 4; that many
 * rows are read, or all there are. */
static void check_shares(int rows, int outs, int most)
{
    int read = 0, left = 0;
    bool short_of_pages = kv_pages_unused(cache) == 0, short_of_outs = outs == limits.outs;
    for (const struct talk *t = talks; t < talks + SLOTS; t++) {
        bool writes = t->wanted && was_admitted(t) && t->seq.let_go == t->let_go && t->seq.made == t->length &&
                      t->length == t->seq.n - 1;
        if (writes && t->length) CHECK(t->seq.rows == !t->waits && t->seq.outs == !t->waits);
        short_of_pages |= t->listed && t->seq.let_go > t->let_go;
        if (!t->listed || t->seq.state != SCHED_READING) continue;
        read += t->seq.rows;
        if (!t->seq.follows) left += givable(&t->seq);
    }
    const struct talk *elder = first_of(true);
    if (!elder) return;
    CHECK(!elder->seq.follows);
    int writers = rows - read, least = min_int(most, limits.rows - writers),
        to_read = writers ? max_int(read, min_int(4, least)) : least;
    CHECK(read >= min_int(left, to_read) || short_of_pages || short_of_outs);
    bool has_half_of_outs = elder->seq.all && elder->seq.outs >= (limits.outs - writers + 1) / 2;
    CHECK(elder->seq.rows >= min_int(givable(&elder->seq), (to_read + 1) / 2) || short_of_pages || short_of_outs ||
          has_half_of_outs);
    CHECK(elder->seq.rows >= 1 && rows <= limits.rows);
}

/* A sequence that follows has an earlier reader of its scope which is about to read what it needs. */
static void check_followers(void)
{
    for (const struct talk *t = talks; t < talks + SLOTS; t++) {
        bool led = !t->listed || !t->seq.follows;
        for (const struct talk *o = talks; o < talks + SLOTS && !led; o++) {
            int last = o->seq.kv.length + 8;
            led = o->listed && o->seq.state == SCHED_READING && earlier(o, t) && o->seq.kv.scope == t->seq.kv.scope &&
                  last <= o->seq.n && last < t->seq.n && o->hashes[last] == t->hashes[last] &&
                  o->seq.kv.length >= t->seq.kv.length;
        }
        CHECK(led && (!t->seq.follows || (t->seq.state == SCHED_READING && t->seq.rows == 0)));
    }
}

/* S4: places are not exceeded; the first of all has one and is never let go. F3: a waiting sequence is overtaken by
 * four at most. */
static void check_places(const struct talk *first)
{
    int places = 0;
    for (const struct talk *t = talks; t < talks + SLOTS; t++) {
        places += admitted(t);
        seen.waits += admitted(t) && t->waits;
        if (t->listed && t->seq.state == SCHED_WAITING) CHECK(t->seq.kv.n_pages == 0 && t->wanted);
        if (t->listed && t->seq.state == SCHED_IDLE) CHECK(!t->wanted);
    }
    CHECK(places <= limits.parallel && (!n_slots || places <= n_slots / 2));
    if (first) CHECK(admitted(first) && first->seq.let_go == first->let_go);
    for (struct talk *t = talks; t < talks + SLOTS; t++) {
        if (!t->listed || t->seq.state != SCHED_WAITING || was_admitted(t)) t->passed = 0;
        else
            for (const struct talk *o = talks; o < talks + SLOTS; o++)
                t->passed += admitted(o) && !was_admitted(o) && earlier(t, o);
        CHECK(t->passed <= 4);
    }
}

/* F5: a sequence that is let go again has seen another one take more than four pages, or an elder one admitted. */
static void check_let_go(void)
{
    for (struct talk *t = talks; t < talks + SLOTS; t++) {
        bool went = t->wanted && was_admitted(t) && t->seq.let_go > t->let_go, grown = t->pushed || t->seq.priority > 0;
        for (int k = 0; k < SLOTS && went && !grown; k++) {
            const struct talk *o = &talks[k];
            grown = was_admitted(o) ? pages_of(o->seq.n) - t->base[k] > 4 : admitted(o) && earlier(o, t);
        }
        CHECK(!went || grown);
        seen.let_go += went;
    }
    for (struct talk *t = talks; t < talks + SLOTS; t++) {
        if (!admitted(t) || (was_admitted(t) && t->seq.let_go == t->let_go)) continue;
        t->pushed = false;
        for (int k = 0; k < SLOTS; k++) {
            t->base[k] = pages_of(talks[k].seq.n);
            talks[k].base[t - talks] = pages_of(t->seq.n);
            talks[k].pushed |= k != t - talks && earlier(t, &talks[k]);
        }
    }
}

static void capture(struct computed *c, const struct sched_take *take)
{
    const struct talk *t = (const struct talk *)take->seq;
    *c = (struct computed){.take = *take, .scope = t->seq.kv.scope, .before = t->hashes[take->first]};
    memcpy(c->ids, t->ids + take->first, (size_t)take->rows * sizeof *c->ids);
}

static void make_plan(void)
{
    int rows = 0, outs = 0, most = below(4) ? ROWS : 1 + below(ROWS);
    const struct talk *first = first_of(false);
    before_plan();
    kv_each_free_slot(cache, poison_slot, states);
    takes = sched_plan(sched, most, &n_takes);
    CHECK(n_takes > 0 ? first != NULL : !first || first->waits);
    CHECK(n_takes <= limits.parallel);
    for (int i = 0; i < n_takes; i++) {
        check_take(&takes[i]);
        CHECK(i == 0 || takes[i - 1].seq->state >= takes[i].seq->state); /* writers before readers */
        capture(&plan[i], &takes[i]);
        rows += takes[i].rows;
        outs += takes[i].outs;
    }
    CHECK(rows <= limits.rows && outs <= limits.outs);
    check_shares(rows, outs, most);
    check_places(first);
    check_followers();
    check_let_go();
    seen.plans++;
}

/* T1: the output of a finished take follows from its prompt and seed. */
static void hear(struct talk *t, const struct computed *c, bool finite)
{
    CHECK_EQ(t->seq.made, t->seq.n);
    CHECK(c->made == t->hashes[t->seq.n]);
    int token = token_of(c->made, t->seed);
    if (t->driven && finite) return;
    if (token == END_OF_REPLY || t->seq.n == t->seq.limit || !finite) {
        leave(t);
        close_talk(t);
        seen.ends++;
        return;
    }
    append(t, (uint64_t)token);
    t->tokens++;
    seen.tokens++;
}

static void finish_plan(bool finite)
{
    struct talk *of[PARALLEL_MOST];
    int n = n_takes, rows = 0, bad = finite || !n ? -1 : below(n);
    for (int i = 0; i < n; i++) {
        compute(&plan[i]);
        rows += plan[i].take.rows;
        of[i] = (struct talk *)takes[i].seq;
    }
    sched_commit(sched, 5 + rows + (below(50) ? 0 : 1000));
    n_takes = 0;
    for (int i = 0; i < n; i++) {
        const struct sched_take *t = &plan[i].take;
        if (!of[i]) continue;
        of[i]->outs += t->outs;
        CHECK(!of[i]->seq.all || of[i]->outs == of[i]->seq.made);
        CHECK(of[i]->seq.rows == 0 && of[i]->seq.kv.length == t->first + t->rows);
        if (t->outs > 0 && t->first + t->rows == of[i]->seq.n) hear(of[i], &plan[i], i != bad);
    }
}

/* --- random operations -------------------------------------------------------------------------------------------- */

static void check_cache(void)
{
    const struct kv_seq *users[SLOTS + PARALLEL_MOST];
    int scratch[PAGES_MOST], n = sched_left(sched, users);
    for (int i = 0; i < SLOTS; i++)
        if (talks[i].listed) users[n++] = &talks[i].seq.kv;
    CHECK(kv_check(cache, users, n, scratch)); /* P1, P5 */
    CHECK_EQ(kv_pages_used(cache) + kv_pages_unused(cache), n_pages);
    CHECK_EQ(kv_slots(cache), n_slots);
}

static void step(void)
{
    if (n_takes == 0) make_plan();
    if (n_takes && sched_lost(sched)) sched_drop(sched), n_takes = 0;
    else if (below(5) > 1) finish_plan(below(40) > 0);
}

static void push(struct talk *t)
{
    for (int n = 1 + below(3) * below(20); n > 0 && t->seq.n < t->seq.limit; n--) append(t, (uint64_t)below(IDS));
}

static void set_anew(struct talk *t)
{
    leave(t);
    say(t);
    enter(t);
}

static void act(void)
{
    int what = below(1000);
    struct talk *t = somebody();
    if (what < 350) arrive();
    else if (what < 750) step();
    else if (what < 850) {
        if (t) leave(t), close_talk(t);
    } else if (what < 900) {
        if (t) set_anew(t);
    } else if (what < 930) {
        if (n_takes) sched_drop(sched), n_takes = 0;
    } else if (what < 945) kv_shuffle(cache, random_next(&seed));
    else if (what < 955) kv_each_forgotten(cache, poison_page, contents);
    else if (what < 960) {
        if (t) sched_prefer(sched, &t->seq, 0);
    } else if (what < 980) {
        for (int i = 0; i < SLOTS; i++) give(&talks[i]);
    } else if (t && t->driven && t->seq.made == t->seq.n) push(t);
    else if (t && !t->driven && t->seq.rows == 0) t->waits = !t->waits;
}

static void open_pool(int pages, int parallel)
{
    memset(talks, 0, sizeof talks);
    memset(contents, 0xFF, sizeof contents);
    mem = (struct mem){0};
    n_pages = pages;
    n_takes = 0;
    limits = (struct sched_limits){.parallel = parallel,
                                   .waiting = WAITING,
                                   .rows = ROWS,
                                   .outs = max_int(8, parallel),
                                   .length = min_int((pages - 2) * KV_PAGE, LENGTH_MOST),
                                   .extra_min_ms = 50,
                                   .extra_max_ms = 200,
                                   .ready = ready_of};
    cache = kv_new(&mem, pages, n_slots, copy_page, contents);
    sched = sched_new(&mem, cache, &limits);
    CHECK(cache && sched);
    CHECK_EQ(mem.used, kv_cost(pages, n_slots) + sched_cost(&limits));
}

/* T3 */
static void close_pool(void)
{
    for (int i = 0; i < SLOTS; i++)
        if (talks[i].listed) leave(&talks[i]);
    sched_drop(sched);
    for (int i = 0; i < SLOTS; i++)
        if (talks[i].listed) close_talk(&talks[i]);
    struct sched_facts f = sched_facts(sched);
    uint64_t steps = 0, least = 0;
    for (int i = 0; i < SCHED_SIZES; i++)
        steps += f.sizes[i], least += f.sizes[i] * (uint64_t)(i ? (1 << i) / 2 + 1 : 1);
    CHECK(f.running == 0 && f.waiting == 0 && f.used == 0);
    CHECK(steps == f.steps && least <= f.rows);
    check_cache();
    sched_free(sched);
    kv_free(cache);
    CHECK_EQ(mem.used, 0);
}

/* S6: without arrivals all replies end. In each step the first of all gets a token or reads at least two rows. */
static void drain(void)
{
    long bound = 0, steps = 0;
    for (struct talk *t = talks; t < talks + SLOTS; t++) {
        t->waits = false;
        if (t->listed && (t->seq.held || t->driven)) leave(t), close_talk(t);
        if (t->listed) bound += t->seq.limit + 2;
    }
    if (n_takes) finish_plan(true);
    for (make_plan(); n_takes; make_plan()) {
        finish_plan(true);
        check_cache();
        CHECK(++steps <= bound);
    }
    for (const struct talk *t = talks; t < talks + SLOTS; t++) CHECK(!t->listed);
}

static void make_tree(void)
{
    for (int t = 0; t < TALKS; t++) {
        int common = t ? below(limits.length) : 0;
        memcpy(tree[t], tree[0], (size_t)common * sizeof **tree);
        for (int i = common; i < LENGTH_MOST; i++) tree[t][i] = (uint64_t)below(IDS);
    }
}

static void simulate(int pages, int parallel, int slots, int of, long events)
{
    n_slots = slots;
    open_pool(pages, parallel);
    seed = (uint64_t)(of * 1000 + pages * 10 + parallel);
    make_tree();
    for (long i = 0; i < events; i++) {
        struct talk *t = somebody();
        act();
        check_cache();
        if (t && t->listed) check_contents(t);
        for (int k = 0; i % 32 == 0 && k < SLOTS; k++)
            if (talks[k].listed) check_contents(&talks[k]);
        if (i % 4000 == 3999) drain();
    }
    drain();
    struct sched_facts f = sched_facts(sched);
    seen.followed += (long)f.followed;
    seen.recomputed += (long)f.recomputed;
    close_pool();
    n_slots = 0;
}

static void simulation(void)
{
    static const int pools[] = {130, 20, 6}, parallels[] = {1, 4, 16};
    long events = check_length(2500, 1000000);
    memset(&seen, 0, sizeof seen);
    for (int of = 0; of < 8; of++)
        for (int p = 0; p < 3; p++)
            for (int k = 0; k < 3; k++) simulate(pools[p], parallels[k], 0, of, events);
    long least = events / 10; /* lower bound for each count, in the 72 runs: */
    CHECK(seen.plans > 10 * least && seen.tokens > 10 * least && seen.ends > least && seen.copies > least);
    CHECK(seen.left_planned > least && seen.given > least && seen.busy > least && seen.followed > least);
    CHECK(seen.let_go > least && seen.recomputed > least && seen.waits > least);
}

/* With two slots for each place and some to spare, with too few slots for all places, and with slots for one place. */
static void simulation_with_states(void)
{
    static const int pools[] = {130, 20, 6}, parallels[] = {1, 4, 16}, slots[] = {2, 5, 12, 35};
    long events = check_length(1000, 300000);
    memset(&seen, 0, sizeof seen);
    for (int of = 0; of < 8; of++)
        for (int p = 0; p < 3; p++)
            for (int k = 0; k < 3; k++)
                for (int s = 0; s < 4; s++) simulate(pools[p], parallels[k], slots[s], of, events);
    long least = events / 10; /* lower bound for each count, in the 288 runs: */
    printf(
        "# plans %ld tokens %ld ends %ld copies %ld left %ld given %ld busy %ld followed %ld let go %ld recomputed %ld waits %ld halves %ld\n",
        seen.plans, seen.tokens, seen.ends, seen.copies, seen.left_planned, seen.given, seen.busy, seen.followed,
        seen.let_go, seen.recomputed, seen.waits, seen.halves);
    CHECK(seen.plans > 10 * least && seen.tokens > 10 * least && seen.ends > least && seen.copies > least);
    CHECK(seen.left_planned > least && seen.given > least && seen.busy > least && seen.followed > least);
    CHECK(seen.let_go > least && seen.recomputed > least && seen.waits > least && seen.halves > least);
}

/* --- single properties -------------------------------------------------------------------------------------------- */

/* A reply of at most `tokens` to a prompt of n ids that count up from `from`. */
static struct talk *ask(int slot, int n, int from, int tokens)
{
    struct talk *t = &talks[slot];
    CHECK_EQ(kv_seq_open(cache, limits.length, 0, &t->seq.kv), OK);
    t->hashes[0] = mix(0);
    for (int i = 0; i < n; i++) append(t, (uint64_t)(from + i));
    t->seq.ids = t->ids;
    t->seq.limit = n + tokens;
    enter(t);
    return t;
}

/* Makes a step in which every reply gets the token 7. Returns its rows. */
static int whole_step(double ms)
{
    int rows = 0;
    takes = sched_plan(sched, ROWS, &n_takes);
    for (int i = 0; i < n_takes; i++) {
        capture(&plan[i], &takes[i]);
        compute(&plan[i]);
        rows += takes[i].rows;
    }
    sched_commit(sched, ms > 0 ? ms : 20 + 9 * rows);
    for (int i = 0; i < n_takes; i++) {
        struct talk *t = (struct talk *)takes[i].seq;
        if (t->seq.made == t->seq.n && t->seq.n < t->seq.limit) append(t, 7), t->tokens++;
    }
    n_takes = 0;
    return rows;
}

static void end_of(struct talk *t)
{
    leave(t);
    close_talk(t);
    memset(t, 0, sizeof *t);
}

/* 2.3: n equal prompts cost one reading, a copy of the last page and n last rows. */
static void followers(void)
{
    open_pool(PAGES_MOST, 4);
    for (int i = 0; i < 4; i++) ask(i, 300, 1000, 20);
    int rows = 0;
    while (talks[3].tokens == 0) rows += whole_step(0);
    CHECK(rows <= 300 + 3 * 8 + 4 * 5);
    CHECK(sched_facts(sched).followed >= 3 * 280);
    CHECK_EQ(talks[1].seq.cached + talks[2].seq.cached + talks[3].seq.cached, (int)sched_facts(sched).followed);
    for (int i = 0; i < 4; i++) check_contents(&talks[i]);
    close_pool();

    open_pool(PAGES_MOST, 4); /* the leader leaves: the follower reads on from there */
    ask(0, 300, 1000, 20);
    ask(1, 300, 1000, 20);
    whole_step(0);
    whole_step(0);
    CHECK(talks[1].seq.follows);
    end_of(&talks[0]);
    CHECK_EQ(whole_step(0), ROWS);
    CHECK_EQ(talks[1].seq.kv.length, 3 * ROWS);
    close_pool();
}

/* F2: half for the eldest, and a short question is answered meanwhile. */
static void elder_and_shortest(void)
{
    open_pool(PAGES_MOST, 4);
    ask(0, 600, 1000, 5);
    int steps = 0, answered = 0;
    for (; talks[0].tokens == 0; steps++) {
        if (!talks[1].listed) ask(1, 60, 2000 + 100 * steps, 0);
        whole_step(0);
        if (talks[1].seq.made == talks[1].seq.n && talks[1].listed) end_of(&talks[1]), answered++;
    }
    CHECK(steps <= 2 * ((600 + ROWS - 1) / ROWS) + 1);
    CHECK(answered >= steps / 2 - 1);
    close_pool();
}

/* A prompt that wants the output of every row does not get all outputs. */
static void scored_and_shortest(void)
{
    open_pool(PAGES_MOST, 4);
    ask(0, 600, 1000, 5);
    talks[0].seq.all = true;
    int steps = 0, answered = 0;
    for (; talks[0].tokens == 0; steps++) {
        if (!talks[1].listed) ask(1, 20, 2000 + 100 * steps, 0);
        whole_step(0);
        if (talks[1].seq.made == talks[1].seq.n && talks[1].listed) end_of(&talks[1]), answered++;
    }
    CHECK(steps <= 2 * 600 / limits.outs + 1);
    CHECK(answered >= steps / 2 - 1);
    close_pool();
}

/* 1.3, R: a prompt beside writers at most doubles the time between their tokens, or adds 50 ms; and it uses that time.
 */
static void time_between_tokens(void)
{
    open_pool(PAGES_MOST, 4);
    for (int i = 0; i < 3; i++) ask(i, 10, 1000 * i, 400);
    for (int i = 0; i < 30; i++) whole_step(0);
    double alone = 20 + 9 * 3;
    ask(3, 600, 9000, 5);
    int tokens = talks[0].tokens, steps = 0, late = 0, slept = 0;
    for (; talks[3].tokens == 0; steps++) {
        double ms = 20 + 9 * whole_step(steps == 20 ? 1e5 : 0);
        if (steps > 20 && steps <= 60) { /* the machine slept: less is read for some steps */
            slept += ms < alone + 50 - 9;
            continue;
        }
        if (steps > 10 && talks[3].tokens == 0) late += ms > alone + 50 + 9 || ms < alone + 50 - 18;
        CHECK(ms <= 4 * alone + 9 * 4);
    }
    CHECK_EQ(late, 0);
    CHECK(slept <= 15);
    CHECK_EQ(talks[0].tokens - tokens, steps); /* F1 */
    close_pool();
}

/* 1.4: a sequence that was let go reads again what another one took meanwhile, and nothing else. */
static void let_go(void)
{
    open_pool(20, 4);
    struct talk *elder = ask(0, 100, 1000, 400), *younger = ask(1, 100, 3000, 300);
    int before = 0;
    while (younger->seq.let_go == 0) before = younger->seq.reached, whole_step(0);
    CHECK(elder->seq.let_go == 0 && younger->seq.state == SCHED_WAITING && before > 200);
    int recomputed = (int)sched_facts(sched).recomputed, tokens = younger->tokens;
    while (elder->seq.n < elder->seq.limit - 1) {
        CHECK_EQ(younger->seq.state, SCHED_WAITING);
        whole_step(0);
    }
    int taken = pages_of(elder->seq.n) + pages_of(younger->seq.n) - 20;
    end_of(elder);
    whole_step(0);
    CHECK(younger->seq.state != SCHED_WAITING);
    while (younger->tokens == tokens) whole_step(0);
    recomputed = (int)sched_facts(sched).recomputed - recomputed;
    CHECK(taken > 0 && recomputed > (taken - 1) * KV_PAGE && recomputed <= taken * KV_PAGE);
    check_contents(younger);
    close_pool();
}

/* A repeated prompt is found in the cache, and a writing sequence continues where it is. */
static void known_before(void)
{
    open_pool(20, 4);
    for (int again = 0; again < 2; again++) {
        struct talk *t = ask(0, 100, 1000, 10);
        while (t->seq.n < t->seq.limit) whole_step(0);
        CHECK_EQ(t->seq.cached, again ? 99 : 0);
        CHECK_EQ((int)sched_facts(sched).rows, again ? 109 + 10 : 109);
        end_of(t);
    }
    CHECK_EQ(sched_facts(sched).recomputed, 0);
    CHECK_EQ(sched_facts(sched).followed, 0);
    close_pool();
}

/* 1.3, 1: promised pages keep a newcomer waiting, whom at most four overtake; and a normal sequence takes a background
 * one's place. */
static void admission(void)
{
    open_pool(20, 4);
    ask(0, 200, 1000, 100);
    ask(1, 400, 3000, 100);
    whole_step(0);
    CHECK_EQ(talks[1].seq.state, SCHED_WAITING);
    for (int i = 0; i < 4; i++) {
        ask(2, 10, 5000 + 50 * i, 1);
        whole_step(0);
        CHECK_EQ(talks[2].seq.state, SCHED_READING);
        end_of(&talks[2]);
    }
    ask(2, 10, 6000, 1);
    whole_step(0);
    CHECK_EQ(talks[2].seq.state, SCHED_WAITING);
    end_of(&talks[0]);
    whole_step(0);
    CHECK_EQ(talks[1].seq.state, SCHED_READING);
    close_pool();

    open_pool(PAGES_MOST, 1);
    talks[0].seq.priority = 1;
    ask(0, 50, 1000, 100);
    whole_step(0);
    ask(1, 50, 3000, 100);
    whole_step(0);
    CHECK(talks[0].seq.state == SCHED_WAITING && talks[1].seq.state == SCHED_READING && talks[0].seq.let_go == 1);
    sched_prefer(sched, &talks[0].seq, 0);
    whole_step(0);
    CHECK(talks[0].seq.kv.length == 51 && talks[1].seq.state == SCHED_WAITING);
    CHECK_EQ(sched_facts(sched).recomputed, 0);
    close_pool();

    open_pool(20, 4); /* but not if that would not make enough room */
    ask(0, 200, 1000, 100);
    talks[1].seq.priority = 1;
    ask(1, 60, 3000, 30);
    whole_step(0);
    ask(2, 400, 5000, 100);
    for (int i = 0; i < 8; i++) whole_step(0);
    CHECK(talks[2].seq.state == SCHED_WAITING && talks[1].seq.state == SCHED_WRITING && talks[1].seq.let_go == 0);
    end_of(&talks[0]);
    whole_step(0);
    CHECK(talks[2].seq.state == SCHED_READING);
    close_pool();

    open_pool(20, 4); /* pages that others share, or that it would find itself, are not gained */
    ask(0, 300, 1000, 100);
    for (int i = 0; i < 6; i++) whole_step(0);
    talks[1].seq.priority = 1;
    ask(1, 290, 1000, 30);
    for (int i = 0; i < 3; i++) whole_step(0);
    ask(2, 200, 5000, 100);
    for (int i = 0; i < 6; i++) whole_step(0);
    CHECK(talks[2].seq.state == SCHED_WAITING && talks[1].seq.state == SCHED_WRITING && talks[1].seq.let_go == 0);
    close_pool();
}

/* Pages given to a sequence that finds no place are remembered; it has not been let go, since it was never admitted. */
static void given_in_vain(void)
{
    open_pool(PAGES_MOST, 1);
    ask(0, 50, 1000, 10);
    whole_step(0);
    for (int i = 1; i <= WAITING; i++) {
        struct talk *t = &talks[i];
        t->seq.held = true;
        ask(i, 2 * KV_PAGE + 5, 1000 * (i + 1), 10);
        CHECK_EQ(kv_reserve(&t->seq.kv, 2 * KV_PAGE), OK);
        for (int k = 0; k < 2 * KV_PAGE; k++) *at(t->seq.kv.pages, k) = t->hashes[k + 1];
        kv_commit(&t->seq.kv, t->ids, 2 * KV_PAGE);
        t->seq.held = false;
        CHECK_EQ(sched_add(sched, &t->seq), OK);
    }
    whole_step(0);
    for (int i = 1; i <= WAITING; i++)
        CHECK(talks[i].seq.state == SCHED_WAITING && talks[i].seq.kv.n_pages == 0 && talks[i].seq.let_go == 0);
    CHECK_EQ(sched_facts(sched).let_go, 0);
    end_of(&talks[0]);
    whole_step(0);
    CHECK(talks[1].seq.state == SCHED_WRITING || talks[1].seq.kv.length == talks[1].seq.n - 1);
    CHECK_EQ(sched_facts(sched).recomputed, 0);
    close_pool();
}

/* 2.5: pages that only a background reply has read are forgotten before those that others may return to, even after it
 * has waited so long that it takes turns. */
static void forgotten_first(bool waited_long)
{
    open_pool(20, 4);
    ask(0, 8 * KV_PAGE, 1000, 1);
    for (int i = 0; i < 6; i++) whole_step(0);
    end_of(&talks[0]);
    talks[1].seq.priority = 1;
    talks[1].seq.forgotten_first = true;
    ask(1, 10 * KV_PAGE, 5000, 1);
    if (waited_long) sched_prefer(sched, &talks[1].seq, 0);
    for (int i = 0; i < 6; i++) whole_step(0);
    end_of(&talks[1]);
    ask(2, 10 * KV_PAGE, 9000, 1);
    for (int i = 0; i < 8; i++) whole_step(0);
    end_of(&talks[2]);
    int unused;
    uint64_t ids[8 * KV_PAGE];
    for (int i = 0; i < 8 * KV_PAGE; i++) ids[i] = (uint64_t)(1000 + i);
    CHECK_EQ(kv_probe(cache, 0, ids, 8 * KV_PAGE, &unused), 8);
    CHECK_EQ(unused, 8);
    CHECK_EQ(kv_probe(cache, 1, ids, 8 * KV_PAGE, &unused), 0); /* another scope cannot find it */
    close_pool();
}

static void background_is_forgotten_first(void)
{
    forgotten_first(false);
    forgotten_first(true);
}

/* A step that all sequences have left is dropped; otherwise the others' rows count. */
static void leaving(void)
{
    open_pool(PAGES_MOST, 4);
    ask(0, 100, 1000, 5);
    ask(1, 60, 3000, 5);
    takes = sched_plan(sched, ROWS, &n_takes);
    CHECK_EQ(n_takes, 2);
    for (int i = 0; i < 2; i++) capture(&plan[i], &takes[i]);
    leave(&talks[0]);
    CHECK(!takes[0].seq && takes[1].seq && !sched_lost(sched));
    for (int i = 0; i < 2; i++) compute(&plan[i]);
    sched_commit(sched, 1);
    n_takes = 0;
    CHECK(talks[1].seq.kv.length > 0);
    close_talk(&talks[0]);
    takes = sched_plan(sched, ROWS, &n_takes);
    leave(&talks[1]);
    CHECK(sched_lost(sched));
    close_pool();
}

static void short_memory(void)
{
    for (uint64_t at_call = 1; at_call <= 5; at_call++) {
        open_pool(20, 2);
        struct mem own = {.fail_at = at_call};
        struct mem *of_cache = &mem;
        if (at_call > 3) of_cache->fail_at = of_cache->n_allocs + at_call - 3;
        CHECK(sched_new(&own, cache, &limits) == NULL);
        CHECK_EQ(own.used, 0);
        mem.fail_at = 0;
        close_pool();
    }
}

static const struct check tests[] = {
    {"followers", followers},
    {"elder_and_shortest", elder_and_shortest},
    {"scored_and_shortest", scored_and_shortest},
    {"time_between_tokens", time_between_tokens},
    {"let_go", let_go},
    {"known_before", known_before},
    {"admission", admission},
    {"given_in_vain", given_in_vain},
    {"background_is_forgotten_first", background_is_forgotten_first},
    {"leaving", leaving},
    {"short_memory", short_memory},
    {"simulation", simulation},
    {"simulation_with_states", simulation_with_states},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
