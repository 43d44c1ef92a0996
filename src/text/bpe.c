/* SPDX-License-Identifier: MIT
 *
 * Merging in O(n log n) without recursion. A short piece (nearly all are) lives in two arrays on the stack, where
 * finding the lowest rank by a scan beats any structure. A long one is a doubly linked list of symbols over one block, with a
 * heap of (rank, position) candidates. A candidate is never removed: when it comes up and its symbol no longer has
 * that rank, it is stale and dropped. Symbols only grow, so a rank, once left behind at a position, never comes back.
 */
#include "text/bpe.h"

#include <string.h>

enum { SHORT_PIECE = 64 }; /* bytes; measured: around here the heap starts to win */

#define NO_RANK TABLE_NONE
#define NO_SYMBOL UINT32_MAX

/* --- pairs -------------------------------------------------------------------------------------------- */

bool bpe_new(struct mem *m, struct bpe *b, uint64_t n_merges)
{
    b->merges = mem_array(m, n_merges, sizeof *b->merges);
    return b->merges && table_new(m, &b->pairs, n_merges);
}

void bpe_free(struct mem *m, struct bpe *b)
{
    mem_free(m, b->merges);
    mem_free(m, b->pairs.slots);
    mem_free(m, b->token_ranks);
    mem_free(m, b->by_rank);
}

static uint64_t pair_key(uint32_t left, uint32_t right) { return (uint64_t)left << 32 | right; }

static bool same_pair(const void *items, uint32_t index, const void *key)
{
    const struct merge *m = (const struct merge *)items + index;
    return pair_key(m->left, m->right) == *(const uint64_t *)key;
}

static uint32_t find_merge(const struct bpe *b, uint32_t left, uint32_t right)
{
    uint64_t key = pair_key(left, right);
    return table_find(&b->pairs, hash_u64(key), same_pair, b->merges, &key);
}

static uint32_t rank_of(const struct bpe *b, uint32_t left, uint32_t right)
{
    uint32_t merge = find_merge(b, left, right);
    return b->token_ranks && merge != TABLE_NONE ? b->token_ranks[b->merges[merge].result] : merge;
}

static uint32_t result_of(const struct bpe *b, uint32_t rank) { return b->by_rank ? b->by_rank[rank] : b->merges[rank].result; }

bool bpe_set_merge(struct bpe *b, uint32_t rank, struct merge merge)
{
    b->merges[rank] = merge;
    if (find_merge(b, merge.left, merge.right) != TABLE_NONE) return true;
    return table_put(&b->pairs, hash_u64(pair_key(merge.left, merge.right)), rank);
}

/* --- short pieces ------------------------------------------------------------------------------------- */

struct short_piece {
    uint32_t ids[SHORT_PIECE];   /* [n] */
    uint32_t ranks[SHORT_PIECE]; /* [n - 1]: of the pair that starts here */
    size_t n;
};

static size_t lowest_rank(const struct short_piece *p)
{
    size_t best = 0;
    for (size_t i = 1; i + 1 < p->n; i++)
        if (p->ranks[i] < p->ranks[best]) best = i;
    return best;
}

static void update_short(const struct bpe *b, struct short_piece *p, size_t i)
{
    if (i + 1 < p->n) p->ranks[i] = rank_of(b, p->ids[i], p->ids[i + 1]);
}

static void merge_short(const struct bpe *b, struct short_piece *p, size_t i)
{
    p->ids[i] = result_of(b, p->ranks[i]);
    p->n--;
    size_t moved = p->n - i - 1;
    memmove(p->ids + i + 1, p->ids + i + 2, moved * sizeof *p->ids);
    memmove(p->ranks + i + 1, p->ranks + i + 2, moved * sizeof *p->ranks);
    update_short(b, p, i);
    if (i > 0) update_short(b, p, i - 1);
}

static void encode_short(const struct bpe *b, struct bytes piece, struct id_sink *out)
{
    struct short_piece p; /* not cleared: that would cost as much as the merging */
    p.n = piece.size;
    for (size_t i = 0; i < p.n; i++) p.ids[i] = b->byte_ids[piece.data[i]];
    for (size_t i = 0; i < p.n; i++) update_short(b, &p, i);
    while (p.n > 1) {
        size_t i = lowest_rank(&p);
        if (p.ranks[i] == NO_RANK) break;
        merge_short(b, &p, i);
    }
    for (size_t i = 0; i < p.n; i++) id_sink_put(out, p.ids[i]);
}

/* --- long pieces -------------------------------------------------------------------------------------- */

struct symbol {
    uint32_t id;
    uint32_t rank;       /* of the pair with the next symbol; NO_RANK when none, or merged away */
    uint32_t prev, next; /* NO_SYMBOL at the ends */
};

struct long_piece {
    const struct bpe *b;
    struct symbol *symbols; /* [n], by the byte where each started */
    uint64_t *heap;         /* [2n] candidates rank << 32 | position, the lowest first */
    size_t n_heap;
};

/* n - 1 candidates at the start; each merge takes one and adds at most two: never over 2n. */
static void heap_push(struct long_piece *p, uint64_t candidate)
{
    size_t i = p->n_heap++;
    for (; i > 0 && p->heap[(i - 1) / 2] > candidate; i = (i - 1) / 2) p->heap[i] = p->heap[(i - 1) / 2];
    p->heap[i] = candidate;
}

static uint64_t heap_pop(struct long_piece *p)
{
    uint64_t top = p->heap[0], last = p->heap[--p->n_heap];
    size_t i = 0;
    for (size_t child = 1; child < p->n_heap; child = 2 * i + 1) {
        if (child + 1 < p->n_heap && p->heap[child + 1] < p->heap[child]) child++;
        if (p->heap[child] >= last) break;
        p->heap[i] = p->heap[child];
        i = child;
    }
    p->heap[i] = last;
    return top;
}

static void update_long(struct long_piece *p, uint32_t i)
{
    struct symbol *s = p->symbols + i;
    s->rank = s->next == NO_SYMBOL ? NO_RANK : rank_of(p->b, s->id, p->symbols[s->next].id);
    if (s->rank != NO_RANK) heap_push(p, (uint64_t)s->rank << 32 | i);
}

static void merge_long(struct long_piece *p, uint32_t i)
{
    struct symbol *left = p->symbols + i, *right = p->symbols + left->next;
    left->id = result_of(p->b, left->rank);
    left->next = right->next;
    right->rank = NO_RANK;
    if (left->next != NO_SYMBOL) p->symbols[left->next].prev = i;
    update_long(p, i);
    if (left->prev != NO_SYMBOL) update_long(p, left->prev);
}

static void fill_symbols(struct long_piece *p, struct bytes piece)
{
    uint32_t n = (uint32_t)piece.size;
    for (uint32_t i = 0; i < n; i++)
        p->symbols[i] = (struct symbol){
            .id = p->b->byte_ids[piece.data[i]],
            .prev = i ? i - 1 : NO_SYMBOL,
            .next = i + 1 < n ? i + 1 : NO_SYMBOL,
        };
    for (uint32_t i = 0; i < n; i++) update_long(p, i);
}

static void encode_long(struct long_piece *p, struct bytes piece, struct id_sink *out)
{
    fill_symbols(p, piece);
    while (p->n_heap) {
        uint64_t candidate = heap_pop(p);
        uint32_t position = (uint32_t)candidate;
        if (p->symbols[position].rank == candidate >> 32) merge_long(p, position);
    }
    for (uint32_t i = 0; i != NO_SYMBOL; i = p->symbols[i].next) id_sink_put(out, p->symbols[i].id);
}

/* Doubles, so that pieces of growing length cost few allocations. */
static bool reserve(struct bpe_scratch *s, size_t size)
{
    if (size <= s->capacity) return true;
    if (size >= NO_SYMBOL / 2) return false; /* positions are 32 bits */
    uint64_t capacity = 2 * SHORT_PIECE;
    while (capacity < size) capacity *= 2;
    void *block = mem_alloc_raw(s->mem, capacity * (sizeof(struct symbol) + 2 * sizeof(uint64_t)));
    if (!block) return false;
    mem_free(s->mem, s->block);
    s->block = block;
    s->capacity = (size_t)capacity;
    return true;
}

int bpe_encode(const struct bpe *b, struct bytes piece, struct bpe_scratch *scratch, struct id_sink *out)
{
    if (piece.size <= SHORT_PIECE) {
        encode_short(b, piece, out);
        return OK;
    }
    if (!reserve(scratch, piece.size)) return ERR_MEM_LOAD;
    struct long_piece p = {.b = b, .symbols = scratch->block};
    p.heap = (uint64_t *)(void *)(p.symbols + piece.size);
    encode_long(&p, piece, out);
    return OK;
}

void bpe_scratch_free(struct bpe_scratch *scratch)
{
    mem_free(scratch->mem, scratch->block);
    scratch->block = NULL;
    scratch->capacity = 0;
}
