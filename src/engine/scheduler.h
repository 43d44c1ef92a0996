/* SPDX-License-Identifier: MIT
 *
 * The scheduler: which rows of which sequences the next step computes, and which sequences wait for pages.
 *
 * It knows pages, rows and turns, but no model, no text and no clock. The order is (priority, arrival) everywhere. A
 * writer gets one row in every step. Readers share the time by which they may prolong a step: half for the eldest, the
 * rest for the one with the fewest rows left, which may be the eldest again; what these do not need goes to the others
 * in order. If a sequence finds no page, the youngest one is let go; its pages stay remembered until they are
 * taken. The first of all is never let go, so some sequence always ends, and none fails for lack of pages. In a model
 * with states each sequence that computes needs two slots, one to read and one to write, so at most as many are
 * admitted as there are pairs. At a mark the rows become two runs, which makes the state in between available; a step
 * goes no further than the second mark. What is left beside all of these is for drafts: rows for tokens that writers
 * are thought to write next. They count only after sched_judge(). A row depends on its sequence's ids only,
 * so no decision here changes a result.
 */
#ifndef QUERN_SCHEDULER_H
#define QUERN_SCHEDULER_H

#include "engine/kvcache.h"

/* As of the last plan. IDLE: nothing to compute; its pages are the first to be let go. WAITING: not admitted, or let
 * go; no pages. READING: several tokens to compute, or the first step. WRITING: one token to compute after an output.
 */
enum sched_state { SCHED_IDLE, SCHED_WAITING, SCHED_READING, SCHED_WRITING };

enum { SCHED_MARKS = 8 };

/* The scheduler's part of a sequence: its first member. */
struct sched_seq {
    /* set by the owner */
    struct kv_seq kv;         /* opened for limits.length positions */
    const uint64_t *ids;      /* [n]; the owner may append, which does not affect the current plan */
    int n, limit;             /* tokens so far, and at most: prompt and reply, up to limits.length */
    bool all;                 /* outputs of every row, not only of the last */
    bool held;                /* nothing is computed yet; the owner may match, reserve and commit */
    int priority;             /* 0 normal, 1 background; in the list only sched_prefer() changes it */
    /* [n_marks] lengths at which a model with states makes snapshots, ascending; the last one is remembered longest */
    int32_t marks[SCHED_MARKS];
    int n_marks;
    /* a writer that may get so many rows more, for tokens that the owner drafts: ids has room for them after the n
     * tokens; at most 1 in a model with states */
    int drafts;
    /* after it has left, its pages are forgotten before others' pages, whatever its priority is then */
    bool forgotten_first;
    /* set by the scheduler, for the owner to read */
    enum sched_state state;
    uint64_t arrival; /* set by sched_add(); a sequence that is let go keeps it */
    int rows, outs;   /* in the current plan; the last `outs` rows need an output */
    int drafted;      /* the last ones of these rows are those of drafts */
    int made;         /* number of tokens up to the last one whose output was made */
    int reached;      /* most positions that it has had, computed or found in the cache */
    int cached;       /* positions found in the cache that it had not had before */
    int let_go;       /* number of times */
    int overtaken;    /* number of younger sequences admitted while it waited */
    bool follows;     /* gets no rows in this plan: an elder sequence is about to read the same ids */
    struct sched_seq *next;
};

struct sched_limits {
    int parallel;             /* most sequences admitted at once; at most `outs` and `rows` */
    int waiting;              /* most further sequences that wait */
    int rows, outs;           /* most rows and outputs of a step */
    int length;               /* most positions of a sequence; the pool has room for these and two pages more */
    /* readers may prolong a step of writers by its own length, within these bounds */
    double extra_min_ms, extra_max_ms;
    int (*ready)(const struct sched_seq *s); /* number of leading tokens that can be computed by now; NULL: all */
};

/* Positions first .. first + rows - 1 of a sequence; the last `outs` of them have outputs. */
struct sched_take {
    struct sched_seq *seq;    /* NULL after it has left: its rows are still computed, but not used */
    const int32_t *pages;     /* its page table, which does not move until the plan ends */
    int first, rows, outs, drafted;
    struct state_run runs[2]; /* [n_runs]; rows are counted from the plan's first row */
    int n_runs;
};

enum { SCHED_SIZES = 8 };

struct sched_facts {
    int running, waiting;        /* sequences */
    int used, remembered;        /* pages */
    uint64_t steps, rows;        /* committed */
    uint64_t let_go;             /* number of times that a sequence was let go */
    uint64_t recomputed;         /* rows computed again */
    uint64_t drafted, right;     /* drafts, and those of them that were right */
    uint64_t followed;           /* positions found in the cache after following another sequence */
    uint64_t sizes[SCHED_SIZES]; /* steps with at most 1, 2, 4 .. 64 rows, and with more */
};

struct sched;

uint64_t sched_cost(const struct sched_limits *l); /* bytes that sched_new() takes */
/* Returns NULL if memory is short. kv is borrowed; only sequences in the list use its pages. */
struct sched *sched_new(struct mem *m, struct kv_cache *kv, const struct sched_limits *l);
void sched_free(struct sched *q); /* accepts NULL; remove all sequences before */

/* Adds a sequence whose owner's fields are set. A later plan admits it and finds its prefix. A held sequence never
 * waits; add it again when it is to begin: it keeps its pages. ERR_BUSY if parallel + waiting sequences already run or
 * wait; nothing has changed then. */
int sched_add(struct sched *q, struct sched_seq *s);
/* Removes a sequence in any state, also one that is not in the list; s may be freed or added again at once. Its kv is
 * then empty and open. Its pages are remembered, if the current plan uses them after that plan ends. */
void sched_remove(struct sched *q, struct sched_seq *s);
/* Changes the priority, from the next plan on. */
void sched_prefer(struct sched *q, struct sched_seq *s, int priority);

/* Sets which share of their extra time readers may use beside writers: 1, or less while other work is done between
 * steps. sched_extra() returns the whole extra time in ms beside the present writers; 0 without writers. */
void sched_share(struct sched *q, double share);
double sched_extra(const struct sched *q);
/* Measured time in ms of a step with this number of rows; 0: not measured yet. */
double sched_ms(const struct sched *q, int rows);

/* Plans a step, writers before readers; readers get at most `rows` rows, and no more than the limit leaves beside the
 * writers. *n is 0 if there is nothing to compute. The takes are valid until the plan ends by sched_commit() or
 * sched_drop(); make no other plan before. */
const struct sched_take *sched_plan(struct sched *q, int rows, int *n);
/* The plan was computed in `ms` (<= 0: not known): lengths grow, and pages of sequences that left are let go. */
void sched_commit(struct sched *q, double ms);
void sched_took(struct sched *q, int rows, double ms); /* tells the time of a committed plan's step later */
/* After the commit, before the next plan: whether the next draft of a sequence that had some was right. A right one
 * counts as computed; its token is the sequence's next one. After a wrong one the others are none. */
void sched_judge(struct sched *q, struct sched_seq *s, bool right);
void sched_drop(struct sched *q);       /* the plan was not computed */
bool sched_lost(const struct sched *q); /* whether there is a plan that all its sequences have left */
struct sched_facts sched_facts(const struct sched *q);

/* --- for tests --- */
/* Writes the pages of sequences that left the current plan to out [parallel]; returns their number. */
int sched_left(const struct sched *q, const struct kv_seq **out);

#endif
