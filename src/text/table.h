/* SPDX-License-Identifier: MIT
 *
 * A hash index over items that are stored elsewhere: 4 bytes per slot, at most half full.
 *
 * A slot holds 24 bits of index + 1 (0 = free) and 8 bits of the hash, so that a look-up reads an item only for a
 * likely match. A file's author may choose keys that collide. A random seed would not help, because a page can have no
 * secret and results must repeat. So the number of probes is bounded: at half load a random hash displaces one of 2^24
 * items by TABLE_PROBES places with a probability below 1e-13, and table_put() then refuses. This also bounds every
 * later look-up. Slots past n_slots take the overflow, so probing never wraps.
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

/* Allocates room for n <= TABLE_MAX_ITEMS items. Returns false when memory is short. The caller frees t->slots. */
bool table_new(struct mem *m, struct table *t, uint64_t n);
/* Adds an item that is not in the table. Returns false if there are more collisions than chance explains. */
bool table_put(struct table *t, uint64_t hash, uint32_t index);

/* Hashes that mix all bits well, in the low byte and in the high half. */
uint64_t hash_u64(uint64_t key);
uint64_t hash_bytes(struct bytes key);

/* Returns the item's index or TABLE_NONE. Inline, so that compilers inline `same` too. */
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
