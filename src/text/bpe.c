/* SPDX-License-Identifier: MIT
 *
 * Merging in O(n log n) without recursion. A short piece (nearly all are) is in two arrays on the stack, where a scan
 * for the lowest rank is faster than any other structure. A long piece is a doubly linked list of symbols in one block,
 * with a heap of (rank, position) candidates; its work can pause after any candidate. A candidate is never removed: if
 * its symbol no longer has its rank when the heap returns it, it is stale and dropped. Symbols only grow, so a position
 * never gets an earlier rank again.
 */
#include "text/bpe.h"

#include <string.h>

enum { SHORT_PIECE = 64 }; /* bytes; measured: around this size the heap starts to be faster */

/* Cost of a step of each pass, relative to the first pass. Measured with pieces of a megabyte, whose symbols are in no
 * cache. */
enum { RANK_COST = 8, JOIN_COST = 32, SHORT_COST = 8 };

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

static uint32_t result_of(const struct bpe *b, uint32_t rank)
{
    return b->by_rank ? b->by_rank[rank] : b->merges[rank].result;
}

bool bpe_set_merge(struct bpe *b, uint32_t rank, struct merge merge)
{
    b->merges[rank] = merge;
    if (find_merge(b, merge.left, merge.right) != TABLE_NONE) return true;
    return table_put(&b->pairs, hash_u64(pair_key(merge.left, merge.right)), rank);
}

/* --- short pieces ------------------------------------------------------------------------------------- */

struct short_piece {
    uint32_t ids[SHORT_PIECE];   /* [n] */
    uint32_t ranks[SHORT_PIECE]; /* [n - 1]: rank of the pair that starts here */
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

static bool skipped(struct bytes piece, struct bytes skip, size_t at)
{
    return skip.size && piece.data[at] == skip.data[0] && piece.size - at >= skip.size &&
           memcmp(piece.data + at, skip.data, skip.size) == 0;
}

static void encode_short(const struct bpe *b, struct bytes piece, struct bytes skip, struct id_sink *out)
{
    struct short_piece p; /* not cleared, because that would cost as much as the merging */
    p.n = 0;
    for (size_t i = 0; i < piece.size;) {
        if (skipped(piece, skip, i)) i += skip.size;
        else p.ids[p.n++] = b->byte_ids[piece.data[i++]];
    }
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
    uint32_t rank;       /* of the pair with the next symbol; NO_RANK without a merge, or if merged away */
    uint32_t prev, next; /* NO_SYMBOL at the ends */
};

/* The heap starts with n - 1 candidates at most; each merge takes one and adds at most two. So it never exceeds 2n. */
static void heap_push(struct bpe_run *run, uint64_t candidate)
{
    size_t i = run->n_heap++;
    for (; i > 0 && run->heap[(i - 1) / 2] > candidate; i = (i - 1) / 2) run->heap[i] = run->heap[(i - 1) / 2];
    run->heap[i] = candidate;
}

static uint64_t heap_pop(struct bpe_run *run)
{
    uint64_t top = run->heap[0], last = run->heap[--run->n_heap];
    size_t i = 0;
    for (size_t child = 1; child < run->n_heap; child = 2 * i + 1) {
        if (child + 1 < run->n_heap && run->heap[child + 1] < run->heap[child]) child++;
        if (run->heap[child] >= last) break;
        run->heap[i] = run->heap[child];
        i = child;
    }
    run->heap[i] = last;
    return top;
}

static void update_long(const struct bpe *b, struct bpe_run *run, uint32_t i)
{
    struct symbol *s = run->symbols + i;
    s->rank = s->next == NO_SYMBOL ? NO_RANK : rank_of(b, s->id, run->symbols[s->next].id);
    if (s->rank != NO_RANK) heap_push(run, (uint64_t)s->rank << 32 | i);
}

static void merge_long(const struct bpe *b, struct bpe_run *run, uint32_t i)
{
    struct symbol *left = run->symbols + i, *right = run->symbols + left->next;
    left->id = result_of(b, left->rank);
    left->next = right->next;
    right->rank = NO_RANK;
    if (left->next != NO_SYMBOL) run->symbols[left->next].prev = i;
    update_long(b, run, i);
    if (left->prev != NO_SYMBOL) update_long(b, run, left->prev);
}

static bool next_pass(struct bpe_run *run)
{
    run->pass++;
    run->at = 0;
    return true;
}

/* Makes a symbol of each byte. Each pass returns whether it is finished. */
static bool fill(const struct bpe *b, struct bpe_run *run, struct bytes piece, struct bytes skip, int64_t *budget)
{
    for (; run->at < piece.size && *budget > 0; --*budget) {
        if (skipped(piece, skip, run->at)) {
            run->at += (uint32_t)skip.size;
            continue;
        }
        /* 0 - 1 is NO_SYMBOL */
        run->symbols[run->n] = (struct symbol){b->byte_ids[piece.data[run->at++]], NO_RANK, run->n - 1, run->n + 1};
        run->n++;
    }
    if (run->at < piece.size) return false;
    if (run->n) run->symbols[run->n - 1].next = NO_SYMBOL;
    return next_pass(run);
}

static bool rank(const struct bpe *b, struct bpe_run *run, int64_t *budget)
{
    for (; run->at < run->n && *budget > 0; *budget -= RANK_COST) update_long(b, run, run->at++);
    return run->at == run->n && next_pass(run);
}

static bool join(const struct bpe *b, struct bpe_run *run, int64_t *budget)
{
    for (; run->n_heap && *budget > 0; *budget -= JOIN_COST) {
        uint64_t candidate = heap_pop(run);
        uint32_t position = (uint32_t)candidate;
        if (run->symbols[position].rank == candidate >> 32) merge_long(b, run, position);
    }
    return !run->n_heap && next_pass(run);
}

static bool tell(struct bpe_run *run, int64_t *budget, struct id_sink *out)
{
    if (run->n == 0) return true;
    for (; run->at != NO_SYMBOL && out->n < out->cap && *budget > 0; --*budget) {
        id_sink_put(out, run->symbols[run->at].id);
        run->at = run->symbols[run->at].next;
    }
    return run->at == NO_SYMBOL;
}

bool bpe_go_on(const struct bpe *b, struct bpe_run *run, struct bytes piece, struct bytes skip, int64_t *budget,
               struct id_sink *out)
{
    if (run->pass == BPE_FILL && !fill(b, run, piece, skip, budget)) return false;
    if (run->pass == BPE_RANK && !rank(b, run, budget)) return false;
    if (run->pass == BPE_JOIN && !join(b, run, budget)) return false;
    return tell(run, budget, out);
}

/* Allocates a quarter more than needed, so that pieces of growing length cost few allocations. */
static bool reserve(struct bpe_run *run, size_t size)
{
    if (size <= run->capacity) return true;
    if (size >= NO_SYMBOL / 2) return false; /* positions are 32 bits */
    size_t capacity = size + size / 4;
    bpe_end(run);
    run->symbols = mem_alloc_raw(run->mem, capacity * (uint64_t)(sizeof(struct symbol) + 2 * sizeof(uint64_t)));
    run->capacity = run->symbols ? capacity : 0;
    return run->symbols != NULL;
}

int bpe_begin(struct bpe_run *run, size_t size)
{
    if (!reserve(run, size)) return ERR_MEM_LOAD;
    run->heap = (uint64_t *)(void *)(run->symbols + size);
    run->n_heap = 0;
    run->n = run->at = 0;
    run->pass = BPE_FILL;
    return OK;
}

int bpe_encode(const struct bpe *b, struct bytes piece, struct bytes skip, struct bpe_run *run, int64_t *budget,
               struct id_sink *out)
{
    if (piece.size <= SHORT_PIECE) {
        encode_short(b, piece, skip, out);
        *budget -= SHORT_COST * (int64_t)piece.size;
        return OK;
    }
    if (bpe_begin(run, piece.size)) return ERR_MEM_LOAD;
    int64_t enough = INT64_MAX;
    bpe_go_on(b, run, piece, skip, &enough, out);
    *budget -= INT64_MAX - enough;
    return OK;
}

void bpe_end(struct bpe_run *run)
{
    mem_free(run->mem, run->symbols);
    run->symbols = NULL;
    run->capacity = 0;
}
