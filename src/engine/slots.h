/* SPDX-License-Identifier: MIT
 *
 * The states of models that have states: which slots are in use, and which states are remembered.
 *
 * A slot has one sequence's state at one position. It is written once, by the step that takes it; after that it is only
 * read, by every sequence that holds a reference, so a state is never copied. A snapshot is one more reference, at a
 * place: a page, and a length that ends within the page or at its end. Each place has at most one snapshot. When no
 * slot is free, a slot that only snapshots hold is reused, the lowest rank first: of KEPT_LEAST the latest that was let
 * go, of the others the least recently used; the youngest KEPT_LESS and then the youngest KEPT_MOST go only when
 * nothing else is left. Contents live in the backend. This file only counts references, and knows pages only by their
 * numbers.
 */
#ifndef QUERN_SLOTS_H
#define QUERN_SLOTS_H

#include "base/arena.h"

/* The rank of a snapshot: none; a state that was only let go; a place to which a conversation may return; the place
 * from which it continues. */
enum kept_as { KEPT_NOT, KEPT_LEAST, KEPT_LESS, KEPT_MOST };

struct snapshot {
    int32_t slot, page;
    int length;                 /* positions that the state has read; the last of them is in the page */
    enum kept_as as;
};

struct slots {
    struct mem *mem;
    int n;                      /* 0: the model has no states */
    int32_t *refs;              /* [n] references by sequences, by the step that writes the slot, and by snapshots */
    int32_t *kept;              /* [n] references by snapshots only */
    struct snapshot *snapshots; /* [room] in the order in which they are forgotten; n_snapshots are in use */
    int n_snapshots, room;
    int n_less;                 /* number of snapshots below KEPT_MOST, which come first */
};

uint64_t slots_cost(int n); /* bytes that slots_open() takes */
/* n is 0 or at least 2. Returns OK or ERR_MEM_LOAD; call slots_close() in both cases. */
int slots_open(struct slots *s, struct mem *m, int n);
void slots_close(struct slots *s);

/* Takes a slot for writing, with one reference; its snapshots are forgotten. Returns -1 if sequences or steps hold all
 * slots. */
int32_t slots_take(struct slots *s);
/* The same, but only a slot that at most snapshots of the lowest rank hold. */
int32_t slots_take_spare(struct slots *s);
void slots_hold(struct slots *s, int32_t slot);
void slots_let_go(struct slots *s, int32_t slot); /* -1: nothing happens */

/* Adds a snapshot: the last of its rank to be forgotten, or with KEPT_LEAST the first. A snapshot that the place has
 * already keeps its slot and becomes the youngest of rank `as`; with KEPT_LEAST nothing happens to it. */
void slots_keep(struct slots *s, struct snapshot k, enum kept_as as);
/* Does the same to the snapshot that the place has already, if any. */
void slots_touch(struct slots *s, int32_t page, int length, enum kept_as as);
/* Lowers all snapshots of a slot to KEPT_LESS. */
void slots_lower(struct slots *s, int32_t slot);
/* Copies the snapshots of page `from`, up to a length, to page `to`, which is a copy of it. */
void slots_copy(struct slots *s, int32_t from, int32_t to, int length);
/* Makes the snapshots of a page the next ones to be forgotten. */
void slots_age(struct slots *s, int32_t page);
/* Forgets the snapshots of a page, which gets other content. */
void slots_forget(struct slots *s, int32_t page);

/* --- for tests --- */
/* Whether users [n] is the number of references to each slot other than by snapshots. */
bool slots_check(const struct slots *s, const int *users);

#endif
