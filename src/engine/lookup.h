/* SPDX-License-Identifier: MIT
 *
 * Drafts by look-up: what followed the last time that the conversation's newest tokens occurred in it. Replies that
 * repeat parts of their prompts, such as corrected texts and code, are found this way, without a second model.
 *
 * An index holds for each pair of neighbouring tokens its last place, and for each place the one before it with the
 * same hash. It grows with the ids, and takes 8 bytes a token.
 */
#ifndef QUERN_LOOKUP_H
#define QUERN_LOOKUP_H

#include "base/arena.h"

/* How much what is found may be trusted: by its length. */
enum { LOOKUP_TRUSTS = 3 };

struct lookup {
    uint32_t *last;   /* [buckets] place + 1 of the last pair of each hash; 0: none */
    uint32_t *before; /* [room] the same for the pair that ends at a place */
    uint32_t buckets; /* a power of 2 */
    int room, n;      /* ids that fit, and that are indexed */
};

/* Bytes of lookup_reserve(). */
uint64_t lookup_cost(int room);
/* Makes room for `room` ids; what is indexed stays. Returns false when memory is short: nothing has changed then. */
bool lookup_reserve(struct mem *m, struct lookup *l, int room);
void lookup_free(struct mem *m, struct lookup *l);
/* The sequence has other ids from now on. */
void lookup_forget(struct lookup *l);

/* Indexes ids [n], n <= room, of which those that are indexed have not changed, and finds the longest earlier
 * occurrence of their end, the latest of equals. Returns the place behind it, 0 if the last two ids never occurred
 * together. *length: ids that are equal, up to LOOKUP_LONGEST. */
enum { LOOKUP_LONGEST = 16 };
int lookup_find(struct lookup *l, const uint64_t *ids, int n, int *length);

#endif
