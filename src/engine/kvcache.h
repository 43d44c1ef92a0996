/* SPDX-License-Identifier: MIT
 *
 * Which page holds what: sequences as lists of pages, shared by content.
 *
 * A page has KV_PAGE positions and belongs to a chain: it knows the serial number of the page before it and the ids it
 * holds. Chains of different scopes have nothing in common: who may not learn what another one wrote has a scope of his
 * own. Pages that nobody uses keep their content until they are needed for something else, the longest unused first, so
 * a conversation that comes again finds its longest known prefix by walking the chain. Ids are compared, never only
 * hashes. At most one page is copied per match: the partly equal one at the end. Contents live in the backend; this
 * file only counts.
 *
 * A model may have a state beside its pages (slots.h), which says what was read up to one position. Then a sequence
 * goes on only from where a snapshot is, and all lengths that are found here are such.
 */
#ifndef QUERN_KVCACHE_H
#define QUERN_KVCACHE_H

#include "base/arena.h"
#include "compute/backend.h"
#include "engine/slots.h"

struct kv_cache;

/* One conversation's pages. ids are 64-bit, so that later an image part can be an id too. */
struct kv_seq {
    struct kv_cache *cache;
    int32_t *pages;  /* [max_pages]; n_pages of them in use */
    int n_pages;
    int length;      /* positions computed */
    uint32_t scope;
    /* Slots, where there are states; -1: none. */
    /* the state at `length`, never one of nothing; -1 also where pages were given without it: kv_lacks_state() */
    int32_t slot;
    int32_t next;    /* what the running step writes: at its end, */
    int32_t mid;     /* and at `mid_at`, where a snapshot is wanted */
    int mid_at;
    enum kept_as mid_as, end_as; /* the snapshot there, and the one at its end */
};

/* Copies the first n positions of a page. */
typedef void kv_copy_fn(void *context, int to, int from, int n);

/* Bytes that kv_new() takes. */
uint64_t kv_cost(int n_pages, int n_slots);
/* n_slots: 0, or 2 at least, with which one sequence always gets on. NULL when memory is short. context is handed to
 * copy. */
struct kv_cache *kv_new(struct mem *m, int n_pages, int n_slots, kv_copy_fn *copy, void *context);
void kv_free(struct kv_cache *c); /* accepts NULL */

/* max_length: positions. ERR_MEM_LOAD. */
int kv_seq_open(struct kv_cache *c, int max_length, uint32_t scope, struct kv_seq *out);
void kv_seq_close(struct kv_seq *s); /* its pages stay known, and its state */

/* Gives the sequence the longest known prefix of ids, at most n positions; the rest of its pages is let go. Returns the
 * length. */
int kv_match(struct kv_seq *s, const uint64_t *ids, int n);
/* The two halves of it, from a length that is a multiple of KV_PAGE: appends the known whole pages, then what is known
 * of the next one. Both return the new length. With states: up to the last snapshot at the end of a page, then up to
 * the last one of all. */
int kv_extend(struct kv_seq *s, const uint64_t *ids, int n);
int kv_extend_part(struct kv_seq *s, const uint64_t *ids, int n);
/* How many of ids, at most n, kv_match() would find. Changes nothing. */
int kv_known(const struct kv_cache *c, uint32_t scope, const uint64_t *ids, int n);
/* How many whole pages of ids are known, or lie before the last snapshot, and how many of those nobody uses. Changes
 * nothing. */
int kv_probe(const struct kv_cache *c, uint32_t scope, const uint64_t *ids, int n, int *unused);
/* Lets everything go: length 0. A state becomes a snapshot, the first to be forgotten. */
void kv_clear(struct kv_seq *s);
/* The same, but what is this sequence's alone, from its last page back to the first that another page follows too, is
 * taken first when pages are needed. */
void kv_clear_first(struct kv_seq *s);
/* Makes room for n more positions, and for the state at their end. ERR_MEM_KV when no page is free, or no slot; the
 * sequence is then as before. */
int kv_reserve(struct kv_seq *s, int n);
/* The same without a state. */
int kv_reserve_pages(struct kv_seq *s, int n);
/* A snapshot is wanted where the step that was reserved for passes `at` or ends: the length will be `end`. One before
 * the end; it is given up where there is no slot for it. One that is there already gets younger. Nothing without
 * states. */
void kv_mark(struct kv_seq *s, int at, int end, enum kept_as as);
/* Lets reserved pages behind the length go, and what the step was to write. */
void kv_trim(struct kv_seq *s);
/* The next n positions, reserved before, hold these ids now. The state is what the step has written, or lacking. */
void kv_commit(struct kv_seq *s, const uint64_t *ids, int n);
/* Keeps whole pages up to n positions, a multiple of KV_PAGE below the length, without a state. */
void kv_cut(struct kv_seq *s, int n);
/* Whether there are positions but no state to go on from: then nothing but kv_clear() or a state's end helps. */
bool kv_lacks_state(const struct kv_seq *s);

int kv_slots(const struct kv_cache *c);            /* 0: there are no states */
int kv_snapshots(const struct kv_cache *c);
int kv_pages_used(const struct kv_cache *c);       /* by sequences; */
int kv_users(const struct kv_cache *c, int32_t page); /* sequences that have it */
int kv_pages_unused(const struct kv_cache *c);     /* the others, */
int kv_pages_remembered(const struct kv_cache *c); /* and how many of those still have content */

/* --- for tests --- */
/* the order in which free pages are taken, of a chain the last first as ever */
void kv_shuffle(struct kv_cache *c, uint64_t seed);
/* Forgets all unused content, calls fn for each page. */
void kv_each_forgotten(struct kv_cache *c, void (*fn)(void *context, int page), void *context);
/* Calls fn for each slot that nobody holds. */
void kv_each_free_slot(struct kv_cache *c, void (*fn)(void *context, int slot), void *context);
/* Invariants: references of pages and slots, lists, chains. scratch: [n_pages], and [n_slots] at least. */
bool kv_check(const struct kv_cache *c, const struct kv_seq *const *seqs, int n_seqs, int *scratch);

#endif
