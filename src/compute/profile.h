/* SPDX-License-Identifier: MIT
 *
 * A profile: what each operation costs, by layer, apart for reading prompts, for decoding, for both at once, and for
 * encoding images.
 *
 * Where one is wanted, it runs each operation of a list by itself, for the backend. An operation's name holds what it
 * works on: "matmul Q8_0 [4096, 1024]" are all products of one input with matrices of 4,096 rows together.
 */
#ifndef QUERN_PROFILE_H
#define QUERN_PROFILE_H

#include "base/base.h"

struct backend;
struct kv_shape;
struct mem;
struct pool;
struct profile;

/* A step in which every sequence has one row is decoding; one in which some read and others write is mixed. Between
 * steps images are encoded. */
enum profile_phase { PROFILE_PREFILL, PROFILE_DECODE, PROFILE_MIXED, PROFILE_VISION, PROFILE_PHASES };

/* Numbers are sums; doubles count exactly up to 2^53. */
struct profile_cost {
    double calls, ms;
    double macs;     /* multiplications of products and of attention */
    /* of weights, keys and values, each counted once per call; of experts at most as many as there were places */
    double bytes;
    double barriers; /* of the pool */
};

/* What is asked for in place of an operation or a layer. */
enum { PROFILE_ALL = -1, PROFILE_OUTSIDE = -2 /* of the layers: embedding and output head */ };

/* NULL when memory is short. */
struct profile *profile_new(struct mem *m, struct pool *pool);
/* Bytes that profile_reserve() takes. */
uint64_t profile_cost_bytes(const struct profile *p, const struct kv_shape *kv);
/* Room for the costs of each layer, in place of what there was. ERR_MEM_LOAD. It and the next three accept NULL. */
int profile_reserve(struct profile *p, const struct kv_shape *kv);
void profile_free(struct profile *p);

/* From now on the backend's operations run one by one, and what they cost is added up. */
void profile_watch(struct profile *p, struct backend *b);

/* Where the step at hand is. */
void profile_step(struct profile *p, enum profile_phase phase, int rows);
void profile_layer(struct profile *p, int layer); /* or PROFILE_OUTSIDE */

/* Forgets all costs. */
void profile_reset(struct profile *p);
/* Name of operation i, in the order of their first calls; NULL after the last. */
const char *profile_operation(const struct profile *p, int i);
/* Zero calls from layer n_layers on. Either may be PROFILE_ALL. */
struct profile_cost profile_cost(const struct profile *p, enum profile_phase phase, int operation, int layer);
double profile_tokens(const struct profile *p, enum profile_phase phase);
/* Microseconds of an empty barrier, and how many threads work, both of now: see pool.h. */
double profile_barrier_us(const struct profile *p);
int profile_threads(const struct profile *p);
/* All of it as one JSON object (keys: see profile.c and index.d.ts); borrowed until the next call. NULL when memory is
 * short. */
const char *profile_json(struct profile *p);

#endif
