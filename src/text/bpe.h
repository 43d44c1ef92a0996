/* SPDX-License-Identifier: MIT
 *
 * Byte pair encoding of one piece of text: start from bytes, merge the adjacent pair of lowest rank (the leftmost
 * of equals) until no pair has one.
 */
#ifndef QUERN_BPE_H
#define QUERN_BPE_H

#include "text/table.h"

struct merge {
    uint32_t left, right, result; /* token ids */
};

struct bpe {
    struct merge *merges; /* [n_merges], by rank; where tokens have ranks, in any order */
    struct table pairs;   /* (left, right) -> merge */
    uint32_t byte_ids[256];
    uint32_t *token_ranks, *by_rank; /* [n_tokens] where tokens have ranks, whichever pair makes them; else NULL */
};

/* Where ids go, while there is room. */
struct id_sink {
    int32_t *ids; /* [cap] */
    int cap, n;
};

static inline void id_sink_put(struct id_sink *out, uint32_t id) { out->ids[out->n++] = (int32_t)id; }

/* A piece of any length that is joined a little at a time, in memory of its own: 32 bytes for each of its.
 * Zero-initialise but for mem. */
struct bpe_run {
    struct mem *mem;
    struct symbol *symbols; /* [capacity], by the byte where each started */
    uint64_t *heap;         /* [2 * capacity] candidates rank << 32 | position, the lowest first */
    size_t capacity, n_heap;
    uint32_t n, at;         /* symbols that it began with; the next one, or byte, of a pass over them */
    enum { BPE_FILL, BPE_RANK, BPE_JOIN, BPE_TELL } pass;
};

/* Room for n_merges <= TABLE_MAX_ITEMS; false when memory is short. bpe_free() in either case. */
bool bpe_new(struct mem *m, struct bpe *b, uint64_t n_merges);
void bpe_free(struct mem *m, struct bpe *b);
/* Sets the merge of that number (its rank), unless the pair has a lower one already. false: hash collisions, see
 * table.h. */
bool bpe_set_merge(struct bpe *b, uint32_t rank, struct merge merge);

/* Room for a piece of `size` bytes, which begins. OK or ERR_MEM_LOAD. */
int bpe_begin(struct bpe_run *run, size_t size);
/* Works on it for as many steps as *budget has, which it lowers, or until out is full. `skip` (it may be empty) is left
 * out of the piece's bytes wherever it stands. Whether all of its ids are out. */
bool bpe_go_on(const struct bpe *b, struct bpe_run *run, struct bytes piece, struct bytes skip, int64_t *budget,
               struct id_sink *out);
void bpe_end(struct bpe_run *run);

/* A piece at once, whatever it takes: room in out for as many ids as it has bytes. OK or ERR_MEM_LOAD; only a piece of
 * more than 64 bytes takes memory, which stays with `run`. */
int bpe_encode(const struct bpe *b, struct bytes piece, struct bytes skip, struct bpe_run *run, int64_t *budget,
               struct id_sink *out);

#endif
