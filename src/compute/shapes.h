/* SPDX-License-Identifier: MIT
 *
 * What operations are given: handles, weights, the geometry of the cache, rows of conversations, routes to experts,
 * products.
 */
#ifndef QUERN_SHAPES_H
#define QUERN_SHAPES_H

#include "weights/dtype.h"

struct weight; /* a matrix [rows, cols] in the backend's own layout */

/* Where values lie in a backend's scratch: bytes from its beginning. Only the backend can read or write there. */
struct handle {
    size_t at;
};

/* n values further. */
static inline struct handle handle_at(struct handle h, size_t n) { return (struct handle){h.at + n * sizeof(float)}; }

struct weight_facts {
    const struct dtype *type;
    int rows, cols;
    uint64_t bytes; /* that a product reads */
    bool has_rows, has_scales; /* whether any have come */
};

enum { KV_PAGE = 32 }; /* positions per page: one block of the online softmax */

/* Type of keys and values: floats, or codes with a scale for each 32 columns. */
enum kv_type { KV_F16 = 0, KV_F32 = 1, KV_Q8 = 2 };

/* Geometry of the KV cache and of attention. */
struct kv_shape {
    int n_layers; /* that have keys and values: kv_append and attention count these */
    int n_heads, n_kv_heads, head_dim; /* n_heads a multiple of n_kv_heads; head_dim even */
    int n_pages;
    enum kv_type type; /* KV_Q8: head_dim a multiple of 32 */
};

/* Of the states that a model has beside keys and values: all layers' of one sequence at one position are a slot. */
struct state_shape {
    uint64_t bytes; /* of a slot, a multiple of 4; 0: the model has none */
    int n_slots;
};

/* Rows first .. first + n - 1 of a batch, all of one sequence, go on from one slot and leave their state in another
 * one, never the same. A run whose `from` is the `to` of the run before goes on from that. */
struct state_run {
    int first, n;
    int32_t from, to; /* from -1: from zeros; both -1: there are no states */
};

/* Where one row of a batch stands: its sequence's pages and its index in them. */
struct kv_row {
    const int32_t *pages; /* page of positions 0..31, 32..63, ... */
    int32_t index;        /* this row's position in the cache; it sees 0 .. index */
};

/* Bytes. */
struct reserve_cost {
    uint64_t scratch, pages, states;
};

/* Which experts work for which rows of a batch. A place is one expert's work for one row; places are ordered by expert,
 * those of one expert by row. */
struct route {
    int n_experts, n_used; /* all, and those of each row */
    struct handle first;   /* int32 [n_experts + 1] expert e has the places first[e] .. first[e + 1] - 1 */
    struct handle place;   /* int32 [n, n_used] a row's places, its experts ascending */
    struct handle share;   /* float [n, n_used] what each of them counts for */
};

/* y [n, w.rows] = x [n, w.cols] * w^T, or a part of its columns, without a route: first, a multiple of 64, .. first +
 * rows - 1 */
struct product {
    struct handle y;
    const struct weight *w;
    int first, rows; /* 0: all */
};

static inline struct product product(struct handle y, const struct weight *w)
{
    return (struct product){.y = y, .w = w};
}

/* Of an encoder's attention: as many rows, all of which each row sees. */
struct heads {
    int rows, n_heads, head_dim;
};

/* What an operation wrote, and somebody wants to read: n values. */
struct result {
    struct handle y;
    uint64_t n;
};

#endif
