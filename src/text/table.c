/* SPDX-License-Identifier: MIT
 *
 * The hash index and its hashes: 64-bit multiply and xor-shift rounds with the constants of MurmurHash3's finalizer
 * (every input bit flips every output bit with a probability near 1/2).
 */
#include "text/table.h"

#include <string.h>

bool table_new(struct mem *m, struct table *t, uint64_t n)
{
    t->n_slots = (uint32_t)(2 * n + 1);
    t->slots = mem_array(m, (uint64_t)t->n_slots + TABLE_PROBES, sizeof *t->slots);
    return t->slots != NULL;
}

bool table_put(struct table *t, uint64_t hash, uint32_t index)
{
    uint32_t *slot = t->slots + ((hash >> 32) * t->n_slots >> 32);
    for (int i = 0; i < TABLE_PROBES; i++) {
        if (slot[i]) continue;
        slot[i] = (uint32_t)(hash & 0xFF) << 24 | (index + 1);
        return true;
    }
    return false;
}

uint64_t hash_u64(uint64_t key)
{
    key ^= key >> 33;
    key *= 0xFF51AFD7ED558CCD;
    key ^= key >> 33;
    key *= 0xC4CEB9FE1A85EC53;
    return key ^ key >> 33;
}

uint64_t hash_bytes(struct bytes key)
{
    uint64_t hash = key.size, word;
    size_t i = 0;
    for (; i + sizeof word <= key.size; i += sizeof word) hash = hash_u64(hash ^ load_u64(key.data + i));
    word = 0;
    memcpy(&word, key.data + i, key.size - i);
    return hash_u64(hash ^ word);
}
