/* SPDX-License-Identifier: MIT
 *
 * A profile: the cost of each operation, by layer, separately for prefill, for decoding, for both at once, and for
 * encoding images.
 *
 * While a profile watches a backend, the operations of a list run one by one. An operation's name includes what it
 * works on: "matmul Q8_0 [4096, 1024]" are all products of one input with matrices of 4,096 rows in all.
 */
#ifndef QUERN_PROFILE_H
#define QUERN_PROFILE_H

#include "base/base.h"

struct backend;
struct kv_shape;
struct mem;
struct pool;
struct profile;

/* In a decoding step every sequence has one row, and its drafts; in a mixed step some read and others write. Images are
 * encoded between steps. */
enum profile_phase { PROFILE_PREFILL, PROFILE_DECODE, PROFILE_MIXED, PROFILE_VISION, PROFILE_PHASES };

/* All values are sums; doubles count exactly up to 2^53. */
struct profile_cost {
    double calls, ms;
    double macs;     /* multiplications of products and of attention */
    /* of weights, keys and values, each counted once per call; at most as many experts as places */
    double bytes;
    double barriers; /* of the pool */
};

/* Special values for an operation or a layer. */
enum { PROFILE_ALL = -1, PROFILE_OUTSIDE = -2 /* the layers: embedding and output head */ };

/* NULL when memory is short. */
struct profile *profile_new(struct mem *m, struct pool *pool);
/* Bytes that profile_reserve() takes. */
uint64_t profile_cost_bytes(const struct profile *p, int n_layers);
/* Allocates the costs of each layer, and drops earlier ones. ERR_MEM_LOAD. This and the next three functions accept
 * NULL. */
int profile_reserve(struct profile *p, int n_layers, const struct kv_shape *kv);
void profile_free(struct profile *p);

/* From now on the backend's operations run one by one, and their costs are added up. */
void profile_watch(struct profile *p, struct backend *b);

/* Tells the profile the phase and the rows of the current step, and how many of these are drafts; then its current
 * layer. */
void profile_step(struct profile *p, enum profile_phase phase, int rows, int drafts);
void profile_layer(struct profile *p, int layer); /* or PROFILE_OUTSIDE */

/* Forgets all costs. */
void profile_reset(struct profile *p);
/* Name of operation i, in the order of first calls; NULL after the last. */
const char *profile_operation(const struct profile *p, int i);
/* Costs of an operation in a layer; either may be PROFILE_ALL. Zero calls from layer n_layers on. */
struct profile_cost profile_cost(const struct profile *p, enum profile_phase phase, int operation, int layer);
/* Rows in all, drafts too; and drafts. */
double profile_tokens(const struct profile *p, enum profile_phase phase);
double profile_drafts(const struct profile *p, enum profile_phase phase);
/* Microseconds of an empty barrier, and number of working threads, at present: see pool.h. */
double profile_barrier_us(const struct profile *p);
int profile_threads(const struct profile *p);
/* The whole profile as one JSON object (keys: see profile.c and index.d.ts); borrowed until the next call. NULL when
 * memory is short. */
const char *profile_json(struct profile *p);

#endif
