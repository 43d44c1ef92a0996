/* SPDX-License-Identifier: MIT
 *
 * A plan is made in four passes: admission, rows of writers, rows of readers, and then the takes. Only the takes are
 * final, so a sequence that is let go for an elder's page simply has no rows any more.
 *
 * A sequence that leaves while a plan uses its pages swaps its page table for a spare one. There are as many spares as
 * places in a plan, so leaving never fails and nothing is allocated after sched_new().
 */
#include "engine/scheduler.h"

#include <string.h>

enum {
    SIZES = 7,         /* steps of 1, 2, 4 .. 64 rows are timed separately */
    ROWS_LEAST = 4,    /* least rows read beside writers, however slow the machine is */
    PAGES_AHEAD = 4,   /* promised to an admitted sequence, beyond what its tokens need */
    OVERTAKEN_MOST = 4,
    LOWEST = 1,        /* the lowest priority */
    FOLLOWED_LEAST = 8 /* least number of ids in common that is worth following for */
};

/* A spare page table; in use, the pages of a sequence that left the plan. */
struct left {
    struct kv_seq kv;
    bool first;                  /* these pages are forgotten before others */
};

struct sched {
    struct mem *mem;
    struct kv_cache *kv;
    struct sched_limits limits;
    int places;                  /* most sequences admitted at once */
    struct sched_seq *first;     /* by (priority, arrival) */
    uint64_t last_arrival;
    struct sched_take *takes;    /* [parallel]; n_takes of them while there is a plan */
    struct left *left;           /* [parallel]; n_left of them are in use */
    int n_takes, n_left;
    int rows, outs;              /* of the plan */
    double share;                /* of the extra time that readers may use */
    double ms[SIZES];            /* time of a step with 1 << i rows; 0: not measured yet */
    struct sched_facts facts;    /* the counters */
};

/* --- life ------------------------------------------------------------------------------------------------ */

uint64_t sched_cost(const struct sched_limits *l)
{
    uint64_t n = (uint64_t)l->parallel, pages = ((uint64_t)l->length + KV_PAGE - 1) / KV_PAGE;
    return mem_cost(sizeof(struct sched)) + mem_cost(n * sizeof(struct sched_take)) +
           mem_cost(n * sizeof(struct left)) + n * mem_cost(pages * sizeof(int32_t));
}

struct sched *sched_new(struct mem *m, struct kv_cache *kv, const struct sched_limits *l)
{
    struct sched *q = mem_alloc(m, sizeof *q);
    if (!q) return NULL;
    *q = (struct sched){.mem = m, .kv = kv, .limits = *l, .places = l->parallel, .share = 1};
    if (kv_slots(kv)) q->places = min_int(l->parallel, kv_slots(kv) / 2);
    q->takes = mem_array(m, (uint64_t)l->parallel, sizeof *q->takes);
    q->left = mem_array(m, (uint64_t)l->parallel, sizeof *q->left);
    bool opened = q->takes && q->left;
    for (int i = 0; i < l->parallel && opened; i++) opened = kv_seq_open(kv, l->length, 0, &q->left[i].kv) == OK;
    if (opened) return q;
    sched_free(q);
    return NULL;
}

void sched_free(struct sched *q)
{
    if (!q) return;
    for (int i = 0; i < q->limits.parallel && q->left; i++) kv_seq_close(&q->left[i].kv);
    mem_free(q->mem, q->left);
    mem_free(q->mem, q->takes);
    mem_free(q->mem, q);
}

/* --- the list ---------------------------------------------------------------------------------------------- */

static bool admitted(const struct sched_seq *s) { return s->state == SCHED_READING || s->state == SCHED_WRITING; }

static int count(const struct sched *q, enum sched_state state)
{
    int n = 0;
    for (const struct sched_seq *s = q->first; s; s = s->next) n += s->state == state;
    return n;
}

static int running(const struct sched *q) { return count(q, SCHED_READING) + count(q, SCHED_WRITING); }

static bool before(const struct sched_seq *a, const struct sched_seq *b)
{
    return a->priority != b->priority ? a->priority < b->priority : a->arrival < b->arrival;
}

static void link_in(struct sched *q, struct sched_seq *s)
{
    struct sched_seq **link = &q->first;
    while (*link && before(*link, s)) link = &(*link)->next;
    s->next = *link;
    *link = s;
}

static bool unlink_from(struct sched *q, struct sched_seq *s)
{
    struct sched_seq **link = &q->first;
    while (*link && *link != s) link = &(*link)->next;
    if (!*link) return false;
    *link = s->next;
    s->next = NULL;
    return true;
}

int sched_add(struct sched *q, struct sched_seq *s)
{
    if (!s->held && running(q) + count(q, SCHED_WAITING) >= q->limits.parallel + q->limits.waiting) return ERR_BUSY;
    unlink_from(q, s);
    if (!s->held && kv_lacks_state(&s->kv)) kv_clear(&s->kv);
    s->state = s->held ? SCHED_IDLE : SCHED_WAITING;
    s->arrival = ++q->last_arrival;
    s->rows = s->outs = s->made = s->let_go = s->overtaken = 0;
    s->drafts = s->drafted = 0;
    s->reached = s->cached = s->kv.length;
    s->follows = false;
    link_in(q, s);
    return OK;
}

void sched_prefer(struct sched *q, struct sched_seq *s, int priority)
{
    bool listed = unlink_from(q, s);
    s->priority = priority;
    if (listed) link_in(q, s);
}

/* Pages that only one background reply has read should not displace the pages of others. */
static void clear(struct kv_seq *kv, bool first)
{
    if (first) kv_clear_first(kv);
    else kv_clear(kv);
}

/* Leaves the plan, which keeps the pages that its rows are written to. */
static void leave_plan(struct sched *q, struct sched_seq *s)
{
    struct left *l = &q->left[q->n_left++];
    struct kv_seq spare = l->kv;
    spare.scope = s->kv.scope;
    *l = (struct left){.kv = s->kv, .first = s->forgotten_first};
    s->kv = spare;
    for (int i = 0; i < q->n_takes; i++)
        if (q->takes[i].seq == s) q->takes[i].seq = NULL;
}

void sched_remove(struct sched *q, struct sched_seq *s)
{
    unlink_from(q, s);
    if (s->rows > 0) leave_plan(q, s);
    else clear(&s->kv, s->forgotten_first);
    s->state = SCHED_IDLE;
    s->rows = s->outs = 0;
    s->drafted = 0;
    s->follows = false;
}

/* --- pages --------------------------------------------------------------------------------------------------- */

static int pages_of(int length) { return (length + KV_PAGE - 1) / KV_PAGE; }

/* Number of pages that are promised to s in all. */
static int share(const struct sched_seq *s) { return min_int(pages_of(s->limit), pages_of(s->n) + PAGES_AHEAD); }

/* Number of ids that may come from the cache; rows that need an output are computed. */
static int matchable(const struct sched_seq *s) { return s->all ? s->made : s->n - 1; }

/* The first sequence that has something to compute. */
static struct sched_seq *first_of_all(const struct sched *q)
{
    struct sched_seq *s = q->first;
    while (s && s->state == SCHED_IDLE) s = s->next;
    return s;
}

static void let_go(struct sched *q, struct sched_seq *s)
{
    kv_clear(&s->kv);
    q->rows -= s->rows;
    q->outs -= s->outs;
    s->rows = s->outs = 0;
    s->follows = false;
    s->let_go++;
    q->facts.let_go++;
    if (s->state != SCHED_IDLE) s->state = SCHED_WAITING;
}

/* The last admitted sequence in the order. It is the first of all only if it is alone, and then the pool is large
 * enough for it. */
static struct sched_seq *last_admitted(const struct sched *q)
{
    struct sched_seq *last = NULL;
    for (struct sched_seq *s = q->first; s; s = s->next)
        if (admitted(s)) last = s;
    return last;
}

/* The sequence that is let go when a page is needed. */
static struct sched_seq *victim(const struct sched *q)
{
    struct sched_seq *idle = NULL;
    for (struct sched_seq *s = q->first; s; s = s->next)
        if (s->state == SCHED_IDLE && s->kv.n_pages > 0) idle = s;
    return idle ? idle : last_admitted(q);
}

/* Reserves n more positions for s in this plan, or as many as pages allow. If no position or no slot is free, a
 * sequence is let go. Returns the number of rows that s has in the plan: 0 if s was let go itself. */
static int grant(struct sched *q, struct sched_seq *s, int n)
{
    for (;;) {
        int room = (s->kv.n_pages + kv_pages_unused(q->kv)) * KV_PAGE - s->kv.length;
        int rows = min_int(s->rows + n, room);
        if (room > 0 && kv_reserve(&s->kv, rows) == OK) return s->rows = rows;
        struct sched_seq *v = victim(q);
        let_go(q, v);
        if (v == s) return 0;
    }
}

/* --- admission ------------------------------------------------------------------------------------------------- */

/* Updates the state of s from the tokens that its owner has appended and the rows that the last plan has computed. */
static void renew(struct sched_seq *s)
{
    int pending = s->n - s->kv.length;
    bool one = pending == 1 && s->made > 0 && s->made == s->kv.length;
    if (admitted(s)) {
        s->state = pending == 0 ? SCHED_IDLE : one ? SCHED_WRITING : SCHED_READING;
    } else if (s->state == SCHED_IDLE && !s->held && s->n > s->made) {
        s->state = SCHED_WAITING; /* it keeps its pages if this plan admits it */
    }
}

static bool same_page(const struct sched_seq *a, const struct sched_seq *b, int page)
{
    size_t at = (size_t)page * KV_PAGE;
    return (page + 1) * KV_PAGE <= min_int(a->kv.length, b->n) &&
           memcmp(a->ids + at, b->ids + at, KV_PAGE * sizeof *a->ids) == 0;
}

/* Number of pages that s gains if o is let go: those that no other sequence uses and s does not share. */
static int gained(const struct sched *q, const struct sched_seq *o, const struct sched_seq *s)
{
    int i = 0, n = 0;
    while (o->kv.scope == s->kv.scope && i < o->kv.n_pages && same_page(o, s, i)) i++;
    for (; i < o->kv.n_pages; i++) n += kv_users(q->kv, o->kv.pages[i]) == 1;
    return n;
}

/* Whether there is a place for s, and pages for it and for all promises to others. Sequences with a lower priority than
 * `lowest` may be let go for it. Idle sequences are not counted as free, though they go first: a conversation that is
 * being saved would be cut short, and is done soon. */
static bool fits(const struct sched *q, const struct sched_seq *s, int lowest)
{
    int unused = 0, known = s->kv.n_pages, pages = kv_pages_unused(q->kv), places = q->places;
    if (!known) known = kv_probe(q->kv, s->kv.scope, s->ids, matchable(s), &unused);
    for (const struct sched_seq *o = q->first; o; o = o->next) {
        if (!admitted(o)) continue;
        bool stays = o->priority <= lowest;
        places -= stays;
        pages += stays ? min_int(o->kv.n_pages - share(o), 0) : gained(q, o, s);
    }
    return places > 0 && max_int(share(s) - known, 0) + unused <= pages;
}

/* Lets the last sequence with a lower priority go, if s would fit without all of these. */
static bool background_goes(struct sched *q, const struct sched_seq *s)
{
    struct sched_seq *last = last_admitted(q);
    if (!last || last->priority <= s->priority || !fits(q, s, s->priority)) return false;
    let_go(q, last);
    return true;
}

/* F3: a waiting sequence is not overtaken without end. */
static bool may_overtake(const struct sched *q, const struct sched_seq *s)
{
    for (const struct sched_seq *o = q->first; o != s; o = o->next)
        if (o->state == SCHED_WAITING && o->overtaken >= OVERTAKEN_MOST) return false;
    return true;
}

static void admit(struct sched *q, struct sched_seq *s)
{
    for (struct sched_seq *o = q->first; o != s; o = o->next) o->overtaken += o->state == SCHED_WAITING;
    s->overtaken = 0;
    s->state = SCHED_READING;
    if (s->kv.n_pages == 0) kv_extend(&s->kv, s->ids, matchable(s));
    renew(s); /* it may continue to write at once */
}

/* Admits sequences in order; one that does not fit may be overtaken a few times. The first of all is admitted even if
 * it does not fit: others are let go when it needs pages. */
static void admit_all(struct sched *q)
{
    struct sched_seq *first = first_of_all(q);
    if (first && first->state == SCHED_WAITING) {
        if (running(q) >= q->places) let_go(q, last_admitted(q));
        admit(q, first);
    }
    for (struct sched_seq *s = first; s && may_overtake(q, s); s = s->next) {
        if (s->state != SCHED_WAITING) continue;
        /* no place is free, neither for s nor for the ones after it */
        if (running(q) >= q->places && last_admitted(q)->priority <= s->priority) break;
        while (!fits(q, s, LOWEST) && background_goes(q, s)) {}
        if (fits(q, s, LOWEST)) admit(q, s);
    }
    /* pages that they got while they were held stay remembered */
    for (struct sched_seq *s = q->first; s; s = s->next)
        if (s->state == SCHED_WAITING) kv_clear(&s->kv);
}

/* --- time for readers beside writers --------------------------------------------------------------------------- */

/* ms of a step with 1 << i rows; if that size was not measured, scaled from the nearest size that was. */
static double size_ms(const struct sched *q, int i)
{
    for (int d = 0; d < SIZES; d++) {
        if (i - d >= 0 && q->ms[i - d] > 0) return q->ms[i - d] * (1 << d);
        if (i + d < SIZES && q->ms[i + d] > 0) return q->ms[i + d] / (1 << d);
    }
    return 0;
}

static double predicted(const struct sched *q, int rows)
{
    int i = 0;
    while (i < SIZES - 1 && rows > 1 << (i + 1)) i++;
    if (i == SIZES - 1) return size_ms(q, i) * rows / (1 << i);
    double low = size_ms(q, i), high = size_ms(q, i + 1);
    return low + (high - low) * (rows - (1 << i)) / (1 << i);
}

/* Corrects the time of the size nearest to `rows` by an eighth of the prediction's error, the first time by all of it.
 * The error is limited to a factor of 4, for a machine that slept. */
static void learn(struct sched *q, int rows, double ms)
{
    int i = 0;
    while (i < SIZES - 1 && rows * rows > 2 << (2 * i)) i++;
    double expected = predicted(q, rows), weight = q->ms[i] > 0 ? 0.125 : 1;
    if (expected <= 0) {
        q->ms[i] = ms * (1 << i) / rows;
        return;
    }
    double factor = ms / expected < 4 ? ms / expected : 4;
    q->ms[i] = size_ms(q, i) * (1 - weight + weight * factor);
}

void sched_took(struct sched *q, int rows, double ms)
{
    if (ms > 0) learn(q, rows, ms);
}

/* The time in ms by which readers may prolong a step with this number of writers. */
static double extra_ms(const struct sched *q, int writers)
{
    double extra = predicted(q, writers);
    if (extra < q->limits.extra_min_ms) extra = q->limits.extra_min_ms;
    return extra > q->limits.extra_max_ms ? q->limits.extra_max_ms : extra;
}

void sched_share(struct sched *q, double share) { q->share = share; }

double sched_extra(const struct sched *q)
{
    int writers = count(q, SCHED_WRITING);
    return writers ? extra_ms(q, writers) : 0;
}

double sched_ms(const struct sched *q, int rows)
{
    int i = 0;
    while (i < SIZES - 1 && rows * rows > 2 << (2 * i)) i++;
    return q->ms[i] > 0 ? predicted(q, rows) : 0;
}

/* Number of rows that may be read beside `writers` rows. */
static int rows_to_read(const struct sched *q, int writers, int most)
{
    most = min_int(most, q->limits.rows - writers);
    if (writers == 0) return most;
    double until = predicted(q, writers) + q->share * extra_ms(q, writers);
    int rows = most;
    while (rows > ROWS_LEAST && predicted(q, writers + rows) > until) rows--;
    return rows;
}

/* --- rows ------------------------------------------------------------------------------------------------------ */

/* Number of outputs that the first n pending rows need. */
static int outs_of(const struct sched_seq *s, int n)
{
    int end = s->kv.length + n;
    return s->all ? min_int(max_int(end - s->made, 0), n) : end == s->n;
}

/* Number of rows that can be computed by now, beyond those that s has in the plan. */
static int rows_ready(const struct sched *q, const struct sched_seq *s)
{
    return (q->limits.ready ? q->limits.ready(s) : s->n) - s->kv.length - s->rows;
}

static int outs_free(const struct sched *q) { return q->limits.outs - q->outs; }

/* The length at which a step must end: the second mark after the present length. */
static int second_mark(const struct sched_seq *s)
{
    int i = 0;
    while (i < s->n_marks && s->marks[i] <= s->kv.length) i++;
    return i + 1 < s->n_marks && kv_slots(s->kv.cache) ? s->marks[i + 1] : INT32_MAX;
}

/* Gives s up to n more rows, with up to `most` more outputs. */
static void give_some(struct sched *q, struct sched_seq *s, int n, int most)
{
    int rows = s->rows, outs = s->outs;
    n = min_int(min_int(n, rows_ready(q, s)), second_mark(s) - s->kv.length - s->rows);
    while (n > 0 && outs_of(s, rows + n) > most + outs) n--; /* a row without room for its output waits */
    if (n <= 0) return;
    if (grant(q, s, n) == 0) return;
    s->outs = outs_of(s, s->rows);
    q->rows += s->rows - rows;
    q->outs += s->outs - outs;
}

static void give(struct sched *q, struct sched_seq *s, int n) { give_some(q, s, n, outs_free(q)); }

static void write_rows(struct sched *q)
{
    for (struct sched_seq *s = q->first; s; s = s->next)
        if (s->state == SCHED_WRITING) give(q, s, 1);
}

/* The last mark of s that is at most `most`; 0: none. */
static int last_mark(const struct sched_seq *s, int most)
{
    int i = s->n_marks;
    while (i > 0 && s->marks[i - 1] > most) i--;
    return i ? s->marks[i - 1] : 0;
}

/* a and b have their first n ids in common. Returns the mark of a from which b could continue if it waited for a; 0 if
 * the cache has as much for b now. */
static int worth(const struct sched_seq *a, const struct sched_seq *b, int n)
{
    int mark = last_mark(a, n);
    return mark > kv_known(b->kv.cache, b->kv.scope, b->ids, matchable(b)) ? mark : 0;
}

/* Whether a is at the same page as b and is about to read ids that b needs. */
static bool leads(const struct sched_seq *a, const struct sched_seq *b)
{
    int at = b->kv.length, n = min_int(a->n, matchable(b)), page = at / KV_PAGE - 1;
    if (a->state != SCHED_READING || a->kv.scope != b->kv.scope || a->kv.length / KV_PAGE != at / KV_PAGE) return false;
    if (page >= 0 && a->kv.pages[page] != b->kv.pages[page]) return false;
    while (at < n && a->ids[at] == b->ids[at]) at++;
    if (kv_slots(a->kv.cache)) at = worth(a, b, at);
    return at - a->kv.length >= FOLLOWED_LEAST;
}

/* Counts the positions that s has just found in the cache. */
static void found(struct sched_seq *s)
{
    if (s->kv.length <= s->reached) return;
    s->cached += s->kv.length - s->reached;
    s->reached = s->kv.length;
}

/* Gives a reader the pages that have become known meanwhile, and lets it follow an earlier sequence that reads the same
 * ids. It takes a part of a page only if it follows none: that is a copy, after which it reads alone. */
static void catch_up(struct sched *q, struct sched_seq *b)
{
    int before = b->kv.length;
    bool followed = b->follows;
    b->follows = false;
    if (before % KV_PAGE) return;
    kv_extend(&b->kv, b->ids, matchable(b));
    for (const struct sched_seq *a = q->first; a != b && !b->follows; a = a->next) b->follows = leads(a, b);
    if (!b->follows) kv_extend_part(&b->kv, b->ids, matchable(b));
    if (followed) q->facts.followed += (uint64_t)(b->kv.length - before);
    found(b);
}

static bool reads(const struct sched *q, const struct sched_seq *s)
{
    return s->state == SCHED_READING && !s->follows && rows_ready(q, s) > 0;
}

static int rows_left(const struct sched_seq *s) { return s->n - s->kv.length - s->rows; }

static void read_rows(struct sched *q, int most)
{
    struct sched_seq *elder = NULL, *shortest = NULL;
    for (struct sched_seq *s = q->first; s; s = s->next) {
        if (s->state == SCHED_READING) catch_up(q, s);
        if (!reads(q, s)) continue;
        if (!elder) elder = s;
        if (!shortest || rows_left(s) < rows_left(shortest)) shortest = s;
    }
    if (!elder) return;
    int end = q->rows + rows_to_read(q, q->rows, most);
    /* half the outputs too: a scored sequence needs an output for each row */
    give_some(q, elder, (end - q->rows + 1) / 2, (outs_free(q) + 1) / 2);
    if (reads(q, shortest)) give(q, shortest, end - q->rows);
    for (struct sched_seq *s = q->first; s; s = s->next)
        if (reads(q, s)) give(q, s, end - q->rows);
}

/* Gives writers rows for their drafts, if there is room that nobody else needs. */
static void draft_rows(struct sched *q)
{
    for (struct sched_seq *s = q->first; s; s = s->next) {
        int n = min_int(min_int(s->drafts, s->limit - s->n), min_int(outs_free(q), q->limits.rows - q->rows));
        if (s->state != SCHED_WRITING || n <= 0 || s->rows != 1) continue;
        s->drafted = kv_reserve_drafts(&s->kv, 1, n) ? n : 0;
        s->rows += s->drafted;
        s->outs += s->drafted;
        q->rows += s->drafted;
        q->outs += s->drafted;
    }
}

static void mark(struct sched_seq *s)
{
    int end = s->kv.length + s->rows;
    for (int i = 0; i < s->n_marks && s->marks[i] <= end; i++)
        kv_mark(&s->kv, s->marks[i], end, i + 1 < s->n_marks ? KEPT_LESS : KEPT_MOST);
}

static void take(struct sched *q, struct sched_seq *s)
{
    const struct kv_seq *kv = &s->kv;
    struct sched_take *t = &q->takes[q->n_takes++];
    mark(s);
    *t = (struct sched_take){.seq = s,
                             .pages = kv->pages,
                             .first = kv->length,
                             .rows = s->rows,
                             .outs = s->outs,
                             .drafted = s->drafted,
                             .n_runs = 1};
    t->runs[0] = (struct state_run){q->rows, s->rows, kv->slot, kv->next};
    if (kv->mid >= 0) {
        int n = kv->mid_at - t->first;
        t->runs[t->n_runs++] = (struct state_run){q->rows + n, s->rows - n, kv->mid, kv->next};
        t->runs[0].n = n;
        t->runs[0].to = kv->mid;
    }
    q->rows += s->rows;
}

/* --- a plan ---------------------------------------------------------------------------------------------------- */

const struct sched_take *sched_plan(struct sched *q, int rows, int *n)
{
    q->rows = q->outs = 0;
    for (struct sched_seq *s = q->first; s; s = s->next) renew(s);
    admit_all(q);
    write_rows(q);
    read_rows(q, rows);
    draft_rows(q);
    q->rows = 0;
    for (struct sched_seq *s = q->first; s; s = s->next)
        if (s->rows > 0 && s->state == SCHED_WRITING) take(q, s);
    for (struct sched_seq *s = q->first; s; s = s->next)
        if (s->rows > 0 && s->state == SCHED_READING) take(q, s);
    *n = q->n_takes;
    return q->takes;
}

static void end_plan(struct sched *q)
{
    for (int i = 0; i < q->n_takes; i++)
        if (q->takes[i].seq) q->takes[i].seq->rows = q->takes[i].seq->outs = q->takes[i].seq->drafted = 0;
    for (; q->n_left > 0; q->n_left--) clear(&q->left[q->n_left - 1].kv, q->left[q->n_left - 1].first);
    q->n_takes = 0;
}

static void count_step(struct sched_facts *f, int rows)
{
    int i = 0;
    while (i < SCHED_SIZES - 1 && rows > 1 << i) i++;
    f->steps++;
    f->rows += (uint64_t)rows;
    f->sizes[i]++;
}

void sched_commit(struct sched *q, double ms)
{
    for (const struct sched_take *t = q->takes; t < q->takes + q->n_takes; t++) {
        struct sched_seq *s = t->seq;
        if (!s) continue;
        if (t->drafted) kv_commit_before(&s->kv, s->ids + t->first, t->rows - t->drafted);
        else kv_commit(&s->kv, s->ids + t->first, t->rows);
        q->facts.recomputed += (uint64_t)min_int(max_int(s->reached - t->first, 0), t->rows);
        q->facts.drafted += (uint64_t)t->drafted;
        s->reached = max_int(s->reached, s->kv.length);
        if (t->outs > 0) s->made = s->kv.length;
    }
    if (q->n_takes > 0) sched_took(q, q->rows, ms);
    if (q->n_takes > 0) count_step(&q->facts, q->rows);
    end_plan(q);
}

void sched_judge(struct sched *q, struct sched_seq *s, bool right)
{
    if (!right) {
        kv_trim(&s->kv);
        return;
    }
    q->facts.right++;
    kv_commit(&s->kv, s->ids + s->kv.length, 1);
    s->made = s->kv.length;
    s->reached = max_int(s->reached, s->kv.length);
}

void sched_drop(struct sched *q)
{
    for (int i = 0; i < q->n_takes; i++)
        if (q->takes[i].seq) kv_trim(&q->takes[i].seq->kv);
    end_plan(q);
}

bool sched_lost(const struct sched *q) { return q->n_takes > 0 && q->n_left == q->n_takes; }

struct sched_facts sched_facts(const struct sched *q)
{
    struct sched_facts f = q->facts;
    f.running = running(q);
    f.waiting = count(q, SCHED_WAITING);
    f.used = kv_pages_used(q->kv);
    f.remembered = kv_pages_remembered(q->kv);
    return f;
}

int sched_left(const struct sched *q, const struct kv_seq **out)
{
    for (int i = 0; i < q->n_left; i++) out[i] = &q->left[i].kv;
    return q->n_left;
}
