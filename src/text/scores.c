/* SPDX-License-Identifier: MIT
 *
 * Turns scores into ranks of tokens, and finds every pair that makes a token.
 */
#include "text/scores.h"

#include <stdlib.h>

/* qwen3.c does not join a pair whose score is this or lower. */
static const float WORTH = -1e10f;

struct scored {
    float score;
    uint32_t id;
};

static int compare_scored(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;
    int order = (x->score < y->score) - (x->score > y->score);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

static int out_of_memory(struct error *err)
{
    return fail(err, ERR_MEM_LOAD, "vocab", 0, "Out of memory for the tokenizer.");
}

static float score_of(struct bytes scores, uint32_t id) { return load_f32(scores.data + 4 * (size_t)id); }

static int rank_tokens(struct mem *m, struct bpe *b, uint32_t n, struct bytes scores, struct error *err)
{
    struct scored *list = mem_array(m, n, sizeof *list);
    b->token_ranks = mem_array(m, n, sizeof *b->token_ranks);
    b->by_rank = mem_array(m, n, sizeof *b->by_rank);
    int status = list && b->token_ranks && b->by_rank ? OK : out_of_memory(err);
    for (uint32_t id = 0; !status && id < n; id++) list[id] = (struct scored){score_of(scores, id), id};
    if (!status) qsort(list, n, sizeof *list, compare_scored);
    for (uint32_t rank = 0; !status && rank < n; rank++) {
        b->by_rank[rank] = list[rank].id;
        b->token_ranks[list[rank].id] = rank;
    }
    mem_free(m, list);
    return status;
}

/* Whether encoding may produce the token by joining others. */
static bool is_made(const struct vocab *v, uint32_t id)
{
    struct bytes token = vocab_bytes(v, id);
    return v->types[id] == TOKEN_NORMAL && token.size > 1 && token.size <= SCORED_MAX_BYTES &&
           vocab_find(v, token) == id;
}

/* Finds the next cut of a token, at `at` or later, into two tokens that encoding may produce. Returns its position, or
 * the token's size if there is none. */
static size_t next_cut(const struct vocab *v, struct bytes token, size_t at, struct merge *out)
{
    for (; at < token.size; at++) {
        out->left = vocab_find(v, (struct bytes){token.data, at});
        if (out->left == TABLE_NONE) continue;
        out->right = vocab_find(v, (struct bytes){token.data + at, token.size - at});
        if (out->right != TABLE_NONE) return at;
    }
    return at;
}

static uint64_t count_pairs(struct vocab *v)
{
    uint64_t n = 0;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        struct bytes token = vocab_bytes(v, id);
        struct merge pair;
        uint64_t before = n;
        if (v->types[id] != TOKEN_NORMAL || token.size < 2 || vocab_find(v, token) != id) continue;
        if (is_made(v, id))
            for (size_t at = next_cut(v, token, 1, &pair); at < token.size; at = next_cut(v, token, at + 1, &pair)) n++;
        if (n == before) v->types[id] = TOKEN_USER_DEFINED;
    }
    return n;
}

static bool set_pairs(struct bpe *b, const struct vocab *v, struct bytes scores)
{
    uint32_t n = 0;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        struct bytes token = vocab_bytes(v, id);
        struct merge pair = {.result = id};
        if (!is_made(v, id) || score_of(scores, id) <= WORTH) continue;
        for (size_t at = next_cut(v, token, 1, &pair); at < token.size; at = next_cut(v, token, at + 1, &pair))
            if (!bpe_set_merge(b, n++, pair)) return false;
    }
    return true;
}

int scores_load(struct mem *m, struct bpe *b, struct vocab *v, struct bytes scores, struct error *err)
{
    int status = rank_tokens(m, b, v->n_tokens, scores, err);
    if (status) return status;
    uint64_t n = count_pairs(v);
    if (n > TABLE_MAX_ITEMS)
        return fail(err, ERR_FORMAT, "vocab", 0, "The vocabulary has more than %d ways to join tokens.",
                    TABLE_MAX_ITEMS);
    if (!bpe_new(m, b, n)) return out_of_memory(err);
    return set_pairs(b, v, scores) ? OK
                                   : fail(err, ERR_FORMAT, "vocab", 0,
                                          "The tokens collide far beyond chance; the file is not trustworthy.");
}
