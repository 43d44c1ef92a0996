/* SPDX-License-Identifier: MIT
 *
 * A hash index over items that live elsewhere: 4 bytes a slot, at most half full.
 *
 * A slot holds 24 bits of index + 1 (0 = free) and 8 bits of the hash, so that a look-up touches the items only
 * for a likely match. Keys come from files that may be written to collide, and a seed cannot help where the page can
 * have no secret and results must repeat. So the number of probes is bounded instead: at half load a random hash
 * displaces one of 2^24 items by TABLE_PROBES places with a chance below 1e-13, and table_put() then refuses.
 * That also bounds every later look-up. Slots past n_slots take the overflow, so probing never wraps.
 */
#ifndef QUERN_TABLE_H
#define QUERN_TABLE_H

#include "base/arena.h"

enum { TABLE_PROBES = 256, TABLE_MAX_ITEMS = (1 << 24) - 1 };
#define TABLE_NONE UINT32_MAX

struct table {
    uint32_t *slots; /* [n_slots + TABLE_PROBES] */
    uint32_t n_slots;
};

/* Whether item `index` of `items` has this key. */
typedef bool table_same(const void *items, uint32_t index, const void *key);

/* Room for n <= TABLE_MAX_ITEMS items; false when memory is short. mem_free(m, t->slots) gives it back. */
bool table_new(struct mem *m, struct table *t, uint64_t n);
/* Adds an item that is not in the table. false: more collisions than chance allows. */
bool table_put(struct table *t, uint64_t hash, uint32_t index);

/* Hashes of all bits, good in the low byte and in the high half. */
uint64_t hash_u64(uint64_t key);
uint64_t hash_bytes(struct bytes key);

/* The item's index or TABLE_NONE. Inline, so that `same` is. */
static inline uint32_t table_find(const struct table *t, uint64_t hash, table_same *same, const void *items,
                                  const void *key)
{
    const uint32_t *slot = t->slots + ((hash >> 32) * t->n_slots >> 32);
    uint32_t tag = (uint32_t)hash & 0xFF;
    for (int i = 0; i < TABLE_PROBES && slot[i]; i++) {
        uint32_t index = (slot[i] & 0xFFFFFF) - 1;
        if (slot[i] >> 24 == tag && same(items, index, key)) return index;
    }
    return TABLE_NONE;
}

#endif
