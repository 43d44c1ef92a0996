/* SPDX-License-Identifier: MIT
 *
 * The KV cache's bookkeeping: sequences are lists of pages, and pages are shared by content.
 *
 * A page has KV_PAGE (32) positions and belongs to a chain: it knows the serial number of the page before it, and its
 * own ids. Chains of different scopes share nothing, so guests who must not learn each other's prompts get scopes of
 * their own. A page that no sequence uses keeps its content until the page is needed, the longest unused page first. So
 * a conversation that comes again finds its longest known prefix by walking the chain. Ids are compared, never only
 * hashes. A match copies at most one page: the last one, if only a part of it is equal. Contents live in the backend;
 * this file only counts. Any number of sequences may have a whole page, which is never written again.
 *
 * A model may have a state beside its pages (slots.h), which belongs to one position and cannot be cut. Then a sequence
 * continues only from a snapshot, and every length that is found here is the length of a snapshot.
 */
#ifndef QUERN_KVCACHE_H
#define QUERN_KVCACHE_H

#include "base/arena.h"
#include "compute/backend.h"
#include "engine/slots.h"

struct kv_cache;

/* The pages of one sequence. ids have 64 bits, so that a part of an image can be an id too. */
struct kv_seq {
    struct kv_cache *cache;
    int32_t *pages;  /* [max_pages]; n_pages of them in use */
    int n_pages;
    int length;      /* positions computed */
    uint32_t scope;
    /* slots, if the model has states; -1: none */
    int32_t slot;    /* the state at `length`; -1 at length 0, and if pages were given without it: kv_lacks_state() */
    int32_t next;    /* the running step writes the state at its end here, */
    int32_t mid;     /* and the state at `mid_at`, where a snapshot is wanted, here */
    int mid_at;
    enum kept_as mid_as, end_as; /* ranks of the snapshots at mid_at and at the step's end */
};

/* Copies the first n positions of a page. */
typedef void kv_copy_fn(void *context, int to, int from, int n);

/* Bytes that kv_new() takes. */
uint64_t kv_cost(int n_pages, int n_slots);
/* n_slots: 0, or at least 2, which is enough for one sequence. Returns NULL if memory is short. context is passed to
 * `copy`. */
struct kv_cache *kv_new(struct mem *m, int n_pages, int n_slots, kv_copy_fn *copy, void *context);
void kv_free(struct kv_cache *c); /* accepts NULL */

/* max_length: positions. ERR_MEM_LOAD. */
int kv_seq_open(struct kv_cache *c, int max_length, uint32_t scope, struct kv_seq *out);
void kv_seq_close(struct kv_seq *s); /* its pages and its state stay known */

/* Gives the sequence the longest known prefix of ids, at most n positions, and lets its other pages go. Returns the
 * length. */
int kv_match(struct kv_seq *s, const uint64_t *ids, int n);
/* The two halves of kv_match(), from a length that is a multiple of KV_PAGE: kv_extend() appends known whole pages, and
 * kv_extend_part() the known part of the next page. Both return the new length. With states they continue to the last
 * snapshot that ends with a page, and to the last snapshot of all. */
int kv_extend(struct kv_seq *s, const uint64_t *ids, int n);
int kv_extend_part(struct kv_seq *s, const uint64_t *ids, int n);
/* Returns how many of ids, at most n, kv_match() would find. Changes nothing. */
int kv_known(const struct kv_cache *c, uint32_t scope, const uint64_t *ids, int n);
/* Returns how many whole pages of ids are known, with states how many lie before the last snapshot. *unused: how many
 * of these no sequence uses. Changes nothing. */
int kv_probe(const struct kv_cache *c, uint32_t scope, const uint64_t *ids, int n, int *unused);
/* Lets all pages go: length 0. The state becomes the snapshot that is forgotten first. */
void kv_clear(struct kv_seq *s);
/* The same, but pages that only this sequence needs, from its last page back to one that another page follows too, are
 * the first to be taken. */
void kv_clear_first(struct kv_seq *s);
/* Reserves pages for n more positions, and a slot for the state after them. ERR_MEM_KV if no page or no slot is free;
 * the sequence is then unchanged. */
int kv_reserve(struct kv_seq *s, int n);
/* The same without a slot. */
int kv_reserve_pages(struct kv_seq *s, int n);
/* Asks for a snapshot of rank `as` at length `at`, in the reserved step that ends at length `end`. One snapshot per
 * step may lie before its end; it is given up if no slot is free. A snapshot that exists becomes younger. Does nothing
 * without states. */
void kv_mark(struct kv_seq *s, int at, int end, enum kept_as as);
/* For a step whose last rows, behind n others, are drafts: reserves their pages, and a slot for the state before them,
 * without letting any remembered state go, though the oldest page may. With states there is one draft only. Returns
 * false if there is no room; nothing has changed then. Call it after kv_reserve() for the other rows of the step. */
bool kv_reserve_drafts(struct kv_seq *s, int n, int drafts);
/* kv_commit() for the n rows before the drafts. What was reserved for the drafts stays: kv_commit() their rows one by
 * one, and then kv_trim(). */
void kv_commit_before(struct kv_seq *s, const uint64_t *ids, int n);
/* Lets reserved pages after the length go, and the slots that the step was to write. */
void kv_trim(struct kv_seq *s);
/* The next n positions, reserved before, hold these ids now, and the step has written the state, if one was reserved.
 */
void kv_commit(struct kv_seq *s, const uint64_t *ids, int n);
/* Shortens the sequence to n positions, a multiple of KV_PAGE below the length, without a state. */
void kv_cut(struct kv_seq *s, int n);
/* Whether the model has states and the sequence has positions but no state. It can then only be cleared, or get a state
 * from a file. */
bool kv_lacks_state(const struct kv_seq *s);

int kv_slots(const struct kv_cache *c);               /* 0: the model has no states */
int kv_snapshots(const struct kv_cache *c);
int kv_pages_used(const struct kv_cache *c);          /* pages that sequences use */
int kv_users(const struct kv_cache *c, int32_t page); /* sequences that use the page */
int kv_pages_unused(const struct kv_cache *c);        /* the other pages */
int kv_pages_remembered(const struct kv_cache *c);    /* unused pages that still have content */

/* --- for tests --- */
/* Shuffles the order in which unused pages are taken; in a chain the last page still goes first. */
void kv_shuffle(struct kv_cache *c, uint64_t seed);
/* Forgets all unused content and calls fn for each unused page. */
void kv_each_forgotten(struct kv_cache *c, void (*fn)(void *context, int page), void *context);
/* Calls fn for each slot without references. */
void kv_each_free_slot(struct kv_cache *c, void (*fn)(void *context, int slot), void *context);
/* Checks invariants: references to pages and slots, lists, chains. scratch: [max(n_pages, n_slots)]. */
bool kv_check(const struct kv_cache *c, const struct kv_seq *const *seqs, int n_seqs, int *scratch);

#endif
