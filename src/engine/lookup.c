/* SPDX-License-Identifier: MIT
 *
 * The index of pairs of tokens.
 */
#include "engine/lookup.h"

#include <string.h>

enum { CHAIN_MOST = 32 }; /* earlier places that are compared */

static uint32_t buckets_for(int room)
{
    uint32_t n = 16;
    while (n < (uint32_t)room / 2) n *= 2;
    return n;
}

uint64_t lookup_cost(int room)
{
    return mem_cost((uint64_t)room * sizeof(uint32_t)) + mem_cost((uint64_t)buckets_for(room) * sizeof(uint32_t));
}

void lookup_free(struct mem *m, struct lookup *l)
{
    mem_free(m, l->last);
    mem_free(m, l->before);
    *l = (struct lookup){0};
}

bool lookup_reserve(struct mem *m, struct lookup *l, int room)
{
    if (room <= l->room) return true;
    uint32_t buckets = buckets_for(room);
    struct lookup larger = {.last = mem_array(m, buckets, sizeof *larger.last),
                            .before = mem_array(m, (uint64_t)room, sizeof *larger.before),
                            .buckets = buckets,
                            .room = room};
    if (!larger.last || !larger.before) {
        lookup_free(m, &larger);
        return false;
    }
    lookup_free(m, l);
    *l = larger;
    return true;
}

void lookup_forget(struct lookup *l)
{
    l->n = 0;
    if (l->last) memset(l->last, 0, l->buckets * sizeof *l->last);
}

static uint32_t bucket_of(const struct lookup *l, const uint64_t *pair)
{
    uint64_t hash = (pair[0] * 0x9E3779B97F4A7C15 ^ pair[1]) * 0xD6E8FEB86659FD93;
    return (uint32_t)(hash >> 32) & (l->buckets - 1);
}

static void add(struct lookup *l, const uint64_t *ids, int n)
{
    for (l->n = l->n ? l->n : 1; l->n < n; l->n++) {
        uint32_t *last = &l->last[bucket_of(l, ids + l->n - 1)];
        l->before[l->n] = *last;
        *last = (uint32_t)l->n + 1;
    }
}

int lookup_find(struct lookup *l, const uint64_t *ids, int n, int *length)
{
    int best = 0;
    *length = 0;
    if (n < 3) return 0;
    add(l, ids, n);
    uint32_t at = l->before[n - 1]; /* `at` is the place behind the pair */
    for (int i = 0; i < CHAIN_MOST && at && *length < LOOKUP_LONGEST; i++, at = l->before[at - 1]) {
        int same = 0;
        while (same < LOOKUP_LONGEST && same < (int)at && ids[at - 1 - (uint32_t)same] == ids[n - 1 - same]) same++;
        if (same >= 2 && same > *length) *length = same, best = (int)at;
    }
    return best;
}
