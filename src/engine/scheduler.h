/* SPDX-License-Identifier: MIT
 *
 * Whose turn it is: which rows of which sequences the next step computes, and who waits for pages.
 *
 * Pages, rows and turns; no model, no text, no clock. Everywhere the order is (priority, arrival). Writers get a row in
 * every step; readers share what a step may last longer for them, half for the eldest and half for the shortest. Who
 * finds no page lets the youngest go, whose pages stay remembered until somebody takes them; the first of all is never
 * let go, so something always ends, and nobody fails for want of pages. A model with states needs two slots for whoever
 * computes, the one that is read and the one that is written: as many are admitted at once as there are pairs. At a
 * mark its rows become two runs, so that the state in between is there; rows go no further than the second mark. What a
 * sequence's rows become depends on its ids alone, so no decision made here changes a result.
 */
#ifndef QUERN_SCHEDULER_H
#define QUERN_SCHEDULER_H

#include "engine/kvcache.h"

/* As of the last plan. IDLE: nothing to compute; its pages are the first to go. WAITING: not admitted, or let go; no
 * pages. READING: several tokens, or the first step. WRITING: one token after an output. */
enum sched_state { SCHED_IDLE, SCHED_WAITING, SCHED_READING, SCHED_WRITING };

enum { SCHED_MARKS = 8 };

/* First member of what it is a sequence of. */
struct sched_seq {
    /* the owner's */
    struct kv_seq kv;         /* opened for limits.length positions */
    const uint64_t *ids;      /* [n], to which the owner appends; a plan at hand is not concerned */
    int n, limit;             /* tokens so far, and at most: prompt and reply, no more than limits.length */
    bool all;                 /* outputs of every row, not only of the last */
    bool held;                /* nothing is computed yet; the owner may match, reserve and commit */
    int priority;             /* 0 normal, 1 background; in the list only sched_prefer() changes it */
    /* [n_marks] where snapshots are wanted of a model that has states: lengths, ascending; the last one matters most */
    int32_t marks[SCHED_MARKS];
    int n_marks;
    /* others' pages are remembered longer than its own once it has left, whatever its priority is by then */
    bool forgotten_first;
    /* the scheduler's, for the owner to read */
    enum sched_state state;
    uint64_t arrival;         /* given by sched_add(), kept when let go */
    int rows, outs;           /* in the plan at hand; outs of them, the last ones, need an output */
    int made;                 /* tokens up to the last that has had its output */
    int reached;              /* positions it has had at most: computed or found */
    int cached;               /* positions found that it had not had before */
    int let_go;               /* times */
    int overtaken;            /* by younger ones while waiting */
    bool follows;             /* steps aside in this plan: an elder is about to read what it wants */
    struct sched_seq *next;
};

struct sched_limits {
    int parallel;             /* admitted at once; at most `outs` and `rows` */
    int waiting;              /* and so many more that want something */
    int rows, outs;           /* of a step */
    int length;               /* positions of a sequence; the pool has room for them and two pages more */
    /* reading may make a step of writers last twice as long, but by this much at least and at most */
    double extra_min_ms, extra_max_ms;
    int (*ready)(const struct sched_seq *s); /* tokens of it up to which rows can be computed by now; NULL: all */
};

/* Positions first .. first + rows - 1 of a sequence; the last `outs` of them have outputs. */
struct sched_take {
    struct sched_seq *seq;    /* NULL once it has left: its rows go on in vain */
    const int32_t *pages;     /* its page table, which stays where it is until the plan ends */
    int first, rows, outs;
    struct state_run runs[2]; /* [n_runs] of its rows, counted from the plan's first */
    int n_runs;
};

enum { SCHED_SIZES = 8 };

struct sched_facts {
    int running, waiting;     /* sequences */
    int used, remembered;     /* pages */
    uint64_t steps, rows;     /* committed */
    uint64_t let_go;          /* times somebody was */
    uint64_t recomputed;      /* rows computed once more */
    uint64_t followed;        /* positions taken over instead of read, after stepping aside */
    uint64_t sizes[SCHED_SIZES]; /* steps of at most 1, 2, 4 .. 64 rows, and of more */
};

struct sched;

uint64_t sched_cost(const struct sched_limits *l); /* bytes that sched_new() takes */
/* NULL when memory is short. kv is borrowed; only sequences in the list use its pages. */
struct sched *sched_new(struct mem *m, struct kv_cache *kv, const struct sched_limits *l);
void sched_free(struct sched *q); /* accepts NULL; no sequence is in it any more */

/* With the owner's fields set. One that is held never waits, and is added once more when it is to begin: it keeps its
 * pages. It is admitted, and its prefix found, in a plan. ERR_BUSY when parallel + waiting want something already;
 * nothing has changed then. */
int sched_add(struct sched *q, struct sched_seq *s);
/* In any state, also when it is not in the list: s may be freed or added anew at once. Its kv is empty and open; its
 * pages are remembered, now or, where the plan at hand uses them, when that ends. */
void sched_remove(struct sched *q, struct sched_seq *s);
/* its place in the order from the next plan on */
void sched_prefer(struct sched *q, struct sched_seq *s, int priority);

/* What reading may take beside writers, of what it may take where nothing else is done between steps: 1, or less. And
 * that in all, in ms, beside those who write now; 0: nobody does. */
void sched_share(struct sched *q, double share);
double sched_extra(const struct sched *q);

/* Who computes what next, writers before readers; reading takes at most `rows` of it. *n is 0 when nobody wants
 * anything. The takes are valid until the plan ends, by sched_commit() or sched_drop(); no other is made before. */
const struct sched_take *sched_plan(struct sched *q, int rows, int *n);
/* computed, in ms: lengths move, pages of those who left go; ms <= 0: not known */
void sched_commit(struct sched *q, double ms);
void sched_drop(struct sched *q);               /* not computed */
bool sched_lost(const struct sched *q);         /* there is a plan, and all in it have left */
struct sched_facts sched_facts(const struct sched *q);

/* --- for tests --- */
/* the pages of those who left the plan at hand: [parallel], how many */
int sched_left(const struct sched *q, const struct kv_seq **out);

#endif
