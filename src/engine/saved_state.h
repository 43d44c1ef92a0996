/* SPDX-License-Identifier: MIT
 *
 * What an engine and a conversation know of what is kept (kept.h).
 */
#ifndef QUERN_SAVED_STATE_H
#define QUERN_SAVED_STATE_H

#include "base/hash.h"

/* The model's fingerprint while it is made, of blocks of all that a forward pass reads: n of them (0: not counted yet),
 * of which the first `done` are in the sum. A job hashes those before `until`, which are added then; claimed: of these
 * so many have been taken by a thread. */
enum { PRINT_MOST = 128 }; /* blocks of a job at most */
struct printing {
    int64_t n, done, until, claimed;
    uint64_t sum[HASH_BYTES / 8];
    uint8_t content[PRINT_MOST][HASH_BYTES]; /* hashes of the job's blocks, which may have to come from a device */
};

/* A record that is being given, and what it becomes: a page, or a part of a slot, or nothing (-1); n is 0 where there
 * is nothing to do. */
struct giving {
    uint8_t *record;
    uint64_t n;
    int page, slot;
    uint64_t from, size;      /* of the slot */
    int rows;                 /* that the sequence has then, if it is the last one of them; else -1 */
    int next;                 /* of its two parts, that no thread has taken */
    uint8_t hash[HASH_BYTES]; /* of the record; its own is what it says */
    uint8_t own[HASH_BYTES];
};

/* Of a held conversation and its file: the record that comes next, and the hash of what is before it. */
struct saved {
    int next;
    bool taking;              /* its page is on its way */
    uint8_t before[HASH_BYTES];
};

#endif
