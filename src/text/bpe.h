/* SPDX-License-Identifier: MIT
 *
 * Byte pair encoding of one piece of text: start from bytes, then merge the adjacent pair of lowest rank (the leftmost
 * of equals) until no pair has a rank.
 */
#ifndef QUERN_BPE_H
#define QUERN_BPE_H

#include "text/table.h"

struct merge {
    uint32_t left, right, result; /* token ids */
};

struct bpe {
    struct merge *merges; /* [n_merges], by rank; if tokens have ranks, in any order */
    struct table pairs;   /* (left, right) -> merge */
    uint32_t byte_ids[256];
    uint32_t *token_ranks, *by_rank; /* [n_tokens] if tokens have ranks, whichever pair makes them; else NULL */
};

/* Output array for ids. */
struct id_sink {
    int32_t *ids; /* [cap] */
    int cap, n;
};

static inline void id_sink_put(struct id_sink *out, uint32_t id) { out->ids[out->n++] = (int32_t)id; }

/* Encodes a piece of any length, a little at a time, in memory of its own: 32 bytes for each byte of the piece.
 * Zero-initialise all fields but mem. */
struct bpe_run {
    struct mem *mem;
    struct symbol *symbols; /* [capacity], by the position of the first byte of each */
    uint64_t *heap;         /* [2 * capacity] candidates as rank << 32 | position, the lowest first */
    size_t capacity, n_heap;
    uint32_t n, at;         /* number of symbols at the start; the next symbol, or byte, of the current pass */
    enum { BPE_FILL, BPE_RANK, BPE_JOIN, BPE_TELL } pass;
};

/* Allocates room for n_merges <= TABLE_MAX_ITEMS. Returns false when memory is short. Call bpe_free() in either
 * case. */
bool bpe_new(struct mem *m, struct bpe *b, uint64_t n_merges);
void bpe_free(struct mem *m, struct bpe *b);
/* Sets the merge with this number (its rank), unless the pair already has a lower one. Returns false on hash
 * collisions, see table.h. */
bool bpe_set_merge(struct bpe *b, uint32_t rank, struct merge merge);

/* Begins a piece of `size` bytes and allocates room for it. Returns OK or ERR_MEM_LOAD. */
int bpe_begin(struct bpe_run *run, size_t size);
/* Works on the piece for at most *budget steps, which it subtracts, or until out is full. Leaves out every occurrence
 * of `skip`, which may be empty. Returns whether all ids are written. */
bool bpe_go_on(const struct bpe *b, struct bpe_run *run, struct bytes piece, struct bytes skip, int64_t *budget,
               struct id_sink *out);
void bpe_end(struct bpe_run *run);

/* Encodes a piece in one call. out needs room for as many ids as the piece has bytes. Returns OK or ERR_MEM_LOAD; only
 * a piece of more than 64 bytes allocates memory, which stays with `run`. */
int bpe_encode(const struct bpe *b, struct bytes piece, struct bytes skip, struct bpe_run *run, int64_t *budget,
               struct id_sink *out);

#endif
