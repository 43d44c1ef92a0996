/* SPDX-License-Identifier: MIT
 *
 * Data types of operations: handles, weights, the geometry of the cache, rows of conversations, routes to experts,
 * products.
 */
#ifndef QUERN_SHAPES_H
#define QUERN_SHAPES_H

#include "weights/dtype.h"

struct weight; /* a matrix [rows, cols] in the backend's own layout */

/* Place of values in a backend's scratch: bytes from its beginning. Only the backend can read or write there. */
struct handle {
    size_t at;
};

/* n values further. */
static inline struct handle handle_at(struct handle h, size_t n) { return (struct handle){h.at + n * sizeof(float)}; }

struct weight_facts {
    const struct dtype *type;
    int rows, cols;
    uint64_t bytes; /* read by a product */
    bool has_rows, has_scales, has_mins; /* whether any have arrived */
};

enum { KV_PAGE = 32 }; /* positions per page: one block of the online softmax */

/* Type of keys and values: floats, or codes with a scale for each 32 columns. */
enum kv_type { KV_F16 = 0, KV_F32 = 1, KV_Q8 = 2 };

/* Geometry of the KV cache and of attention. */
struct kv_shape {
    int n_layers; /* layers with keys and values; kv_append and attention count only these */
    int n_heads, n_kv_heads, head_dim; /* n_heads a multiple of n_kv_heads; head_dim even */
    int n_pages;
    enum kv_type type; /* KV_Q8: head_dim a multiple of 32 */
    float scale;       /* of attention's scores; 0: 1 / sqrt(head_dim) */
};

/* The states that a model has beside keys and values: one slot holds the states of all layers, for one sequence at one
 * position. It begins with the states of n_layers layers, one after the other. */
struct state_shape {
    uint64_t bytes; /* of one slot, a multiple of 4; 0: the model has no states */
    int n_slots, n_layers;
    uint64_t layer_bytes; /* of the state of one layer */
};

/* Rows first .. first + n - 1 of a batch, all of one sequence, start from one slot and leave their state in another
 * slot, never the same. If `from` is the `to` of the previous run, the run continues it. */
struct state_run {
    int first, n;
    int32_t from, to; /* from -1: starts from zeros; both -1: the model has no states */
};

/* Whether a run continues the one before it. */
static inline bool run_goes_on(const struct state_run *runs, int i)
{
    return i > 0 && runs[i].from == runs[i - 1].to;
}

enum { HEAD_MOST = 1024 }; /* columns of a head */

enum { TAPS = 4, LINEAR_HEAD_MOST = 256 }; /* rows that the convolution of a linear layer sees; columns of its heads */

#define UNIT_EPS 1e-6f /* added to a sum of squares of queries and keys, whatever the model's eps is */

/* A layer of linear attention (Gated DeltaNet). The channels of a row are its queries [n_key_heads, head_dim], its keys
 * (as many), and its values [n_value_heads, head_dim]. The layer's state in a slot is a matrix [head_dim of keys,
 * head_dim of values] for each value head, then the last TAPS - 1 rows of channels, oldest first. */
struct linear_layer {
    int n_key_heads, n_value_heads, head_dim; /* n_key_heads divides n_value_heads; head_dim a multiple of 16 */
    /* value heads with the same key head are neighbours; otherwise they are n_key_heads apart */
    bool grouped;
    const float *taps;        /* [TAPS, channels] of the convolution, for the oldest row first */
    const float *rate, *bias; /* [n_value_heads] decay = exp(rate * softplus(alpha + bias)) */
};

static inline int linear_channels(const struct linear_layer *l)
{
    return (2 * l->n_key_heads + l->n_value_heads) * l->head_dim;
}

/* Number of values in the state of one layer. */
static inline size_t linear_state(const struct linear_layer *l)
{
    return (size_t)l->n_value_heads * (size_t)l->head_dim * (size_t)l->head_dim +
           (size_t)(TAPS - 1) * (size_t)linear_channels(l);
}

/* The position of one row of a batch: its sequence's pages and its index in them. */
struct kv_row {
    const int32_t *pages; /* page of positions 0..31, 32..63, ... */
    int32_t index;        /* this row's position in the cache; it sees 0 .. index */
};

/* Bytes. */
struct reserve_cost {
    uint64_t scratch, pages, states;
};

/* Which experts work for which rows of a batch. A place is one expert's work for one row; places are ordered by expert,
 * then by row. */
struct route {
    int n_experts, n_used; /* all experts; experts of each row */
    struct handle first;   /* int32 [n_experts + 1] expert e has the places first[e] .. first[e + 1] - 1 */
    struct handle place;   /* int32 [n, n_used] a row's places, its experts ascending */
    struct handle share;   /* float [n, n_used] weight of each of them */
};

/* y [n, w.rows] = x [n, w.cols] * w^T. Without a route it may be a part of the columns, first .. first + rows - 1,
 * where first is a multiple of 64. */
struct product {
    struct handle y;
    const struct weight *w;
    int first, rows; /* 0: all */
};

static inline struct product product(struct handle y, const struct weight *w)
{
    return (struct product){.y = y, .w = w};
}

/* Shape of an encoder's attention; each row sees all rows. */
struct heads {
    int rows, n_heads, head_dim;
};

/* Values of an operation that a caller wants to read: n values. */
struct result {
    struct handle y;
    uint64_t n;
};

#endif
