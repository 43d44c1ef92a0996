/* SPDX-License-Identifier: MIT
 *
 * The states of models that have them: who holds which slot, and which are remembered.
 *
 * A slot has one sequence's state at one position. Whoever takes it writes it once; from then on it is only read, by as
 * many as hold it, so that nothing is ever copied. A snapshot is one more reference, at a place: a page, and the length
 * that the page ends or passes. There is at most one at each place. When a slot is needed, the one goes that only
 * snapshots hold, of the lowest rank, and of these the one that was used longest ago; the youngest of each rank goes
 * last of all. Contents live in the backend; this file only counts, and knows nothing of pages but their numbers.
 */
#ifndef QUERN_SLOTS_H
#define QUERN_SLOTS_H

#include "base/arena.h"

/* Whether a place is one for a snapshot, and its rank there: what was only let go, where a conversation may be taken up
 * again, where it goes on. */
enum kept_as { KEPT_NOT, KEPT_LEAST, KEPT_LESS, KEPT_MOST };

struct snapshot {
    int32_t slot, page;
    int length;                 /* positions that the state has read; the last of them is in the page */
    enum kept_as as;
};

struct slots {
    struct mem *mem;
    int n;                      /* 0: the model has no states */
    int32_t *refs;              /* [n] of sequences, of the step that writes it, and of snapshots */
    int32_t *kept;              /* [n] of snapshots only */
    struct snapshot *snapshots; /* [room] the first to be forgotten first; n_snapshots of them */
    int n_snapshots, room;
    int n_less;                 /* of them, the first ones, those below KEPT_MOST */
};

uint64_t slots_cost(int n); /* bytes that slots_open() takes */
/* n is 0 or at least 2. ERR_MEM_LOAD, and then slots_close() is due as well. */
int slots_open(struct slots *s, struct mem *m, int n);
void slots_close(struct slots *s);

/* One to be written, with one reference, for which snapshots may be forgotten; -1: somebody holds each. */
int32_t slots_take(struct slots *s);
void slots_hold(struct slots *s, int32_t slot);
void slots_let_go(struct slots *s, int32_t slot); /* -1: nothing happens */

/* A snapshot at a place: of its rank the last to be forgotten, but with KEPT_LEAST the first. One that is there already
 * stays what it is, and gets younger and this rank; with KEPT_LEAST nothing happens. */
void slots_keep(struct slots *s, struct snapshot k, enum kept_as as);
/* The same of one that may be there. */
void slots_touch(struct slots *s, int32_t page, int length, enum kept_as as);
/* All of a slot are less from now on. */
void slots_lower(struct slots *s, int32_t slot);
/* Those of page `from` up to a length are those of page `to`, its copy, too. */
void slots_copy(struct slots *s, int32_t from, int32_t to, int length);
/* Those of a page are the next to be forgotten; or are. */
void slots_age(struct slots *s, int32_t page);
void slots_forget(struct slots *s, int32_t page);

/* --- for tests --- */
/* Whether users [n] of each slot, without snapshots, are those that it has. */
bool slots_check(const struct slots *s, const int *users);

#endif
