/* SPDX-License-Identifier: MIT
 *
 * Data of an engine and of a sequence for saved conversations (saved.h).
 */
#ifndef QUERN_SAVED_STATE_H
#define QUERN_SAVED_STATE_H

#include "base/hash.h"

/* The model's fingerprint while it is computed, from blocks of all that a forward pass reads. n: number of blocks, 0
 * until they are counted. done: blocks that are in the sum. A job hashes blocks done .. until - 1, and then they are
 * added. claimed: blocks of the job that threads have taken. */
enum { PRINT_MOST = 128 }; /* most blocks of a job */
struct printing {
    int64_t n, done, until, claimed;
    uint64_t sum[HASH_BYTES / 8];
    uint8_t content[PRINT_MOST][HASH_BYTES]; /* hashes of the job's blocks, maybe from a device */
    bool asked;                              /* the job has blocks of matrices, which a device hashes */
};

/* The record that saved_give_begin() has taken. It becomes a page or a part of a slot; the other is -1. n: bytes, 0 if
 * there is nothing to do. */
struct giving {
    uint8_t *record;
    uint64_t n;
    int page, slot;
    uint64_t from, size;      /* range of bytes in the slot */
    int rows;                 /* rows that the sequence gains at the end; -1 while a state has further records */
    int next;                 /* next part of the work (hashing, copying) that no thread has taken */
    uint8_t hash[HASH_BYTES]; /* computed from the record */
    uint8_t own[HASH_BYTES];  /* stored in the record */
};

/* The place of a held sequence in its file. */
struct saved {
    int next;                   /* number of the next record */
    bool taking;                /* a device is sending the record's page */
    uint8_t before[HASH_BYTES]; /* hash of the record before it, or of the header */
};

#endif
