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

/* Where ids go: n counts all, the first cap are written. */
struct id_sink {
    int32_t *ids; /* [cap] */
    int64_t cap, n;
};

static inline void id_sink_put(struct id_sink *out, uint32_t id)
{
    if (out->n < out->cap) out->ids[out->n] = (int32_t)id;
    out->n++;
}

/* Scratch for long pieces, grown on demand: 32 bytes per byte of the longest. Zero-initialise but for mem. */
struct bpe_scratch {
    struct mem *mem;
    void *block;
    size_t capacity; /* bytes of text that block serves */
};

/* Room for n_merges <= TABLE_MAX_ITEMS; false when memory is short. bpe_free() in either case. */
bool bpe_new(struct mem *m, struct bpe *b, uint64_t n_merges);
void bpe_free(struct mem *m, struct bpe *b);
/* Sets the merge of that number (its rank), unless the pair has a lower one already. false: hash collisions, see table.h. */
bool bpe_set_merge(struct bpe *b, uint32_t rank, struct merge merge);

/* OK or ERR_MEM_LOAD; only a piece of more than 64 bytes allocates. */
int bpe_encode(const struct bpe *b, struct bytes piece, struct bpe_scratch *scratch, struct id_sink *out);
void bpe_scratch_free(struct bpe_scratch *scratch);

#endif
