/* SPDX-License-Identifier: MIT
 *
 * A backend: where weights, keys and values and the values of a step lie, and what computes the operations of ops.h.
 *
 * Weights enter row group by row group (weight_put), in the file's own type, and live in the backend's layout. The KV
 * cache's pages, the slots of states, and the scratch, which handles point into, belong to the backend too. What can
 * fail, fails in weight_new and reserve; run cannot.
 *
 * A backend may compute on a device of its own, whose answers come `late`: then submit() only begins what has been
 * asked for, and whoever drives the engine says when it has arrived (quern_arrive()). On the CPU everything is done
 * when the call returns.
 */
#ifndef QUERN_BACKEND_H
#define QUERN_BACKEND_H

#include "base/pool.h"
#include "compute/ops.h"

struct backend {
    const struct backend_ops *ops;
    struct watcher *watcher; /* NULL: nobody wants to know */
    bool late;               /* what is asked for arrives after submit(), not before it returns */
};

/* First member of who has operations run in its own way, as a profile does. */
struct watcher {
    void (*run)(struct watcher *w, struct backend *b, const struct op *ops, int n);
};

/* What reserve() takes: scratch for values, of `values` bytes, and what batches of at most max_rows rows and products
 * of at most max_cols columns need beside that; pages; slots. */
struct reserve {
    struct kv_shape kv;
    struct state_shape state;
    int max_rows, max_cols;
    uint64_t values;
};

struct backend_ops {
    const char *(*name)(const struct backend *b); /* "scalar", "simd" or "relaxed" */
    void (*free)(struct backend *b);

    /* --- opening --- */
    /* type->layout is supported and cols a multiple of type->block. NULL when memory is short. */
    struct weight *(*weight_new)(struct backend *b, const struct dtype *type, int rows, int cols);
    void (*weight_free)(struct backend *b, struct weight *w); /* accepts NULL */
    /* The rows that follow are of this type, whose scales do not come apart, and quantised as they come. */
    void (*weight_from)(struct backend *b, struct weight *w, const struct dtype *type);
    /* Rows row .. row + n - 1 as in the file; row a multiple of 8, n too unless they are the last. */
    void (*weight_put)(struct backend *b, struct weight *w, int row, int n, const uint8_t *rows);
    /* The same of float types and of some columns of these rows: col .. col + n_cols - 1, each row's row_bytes behind
     * the one before. */
    void (*weight_put_columns)(struct backend *b, struct weight *w, int row, int n, int col, int n_cols,
                               const uint8_t *rows, size_t row_bytes);
    /* For types whose scales come apart from their codes (layouts[].scaled), in any order: the scale of rows row .. row
     * + n_rows - 1 in columns col .. col + n_cols - 1, a rectangle as the file has them. */
    void (*weight_scale)(struct backend *b, struct weight *w, int row, int n_rows, int col, int n_cols, float scale);
    struct weight_facts (*weight_facts)(const struct backend *b, const struct weight *w);
    /* What weight_new and reserve take, in bytes; they saturate. */
    uint64_t (*weight_cost)(const struct backend *b, const struct dtype *type, int rows, int cols);
    struct reserve_cost (*reserve_cost)(const struct backend *b, const struct reserve *r);
    /* Once, before anything is run. ERR_MEM_LOAD or ERR_MEM_KV, and then nothing has been taken. */
    int (*reserve)(struct backend *b, const struct reserve *r);
    /* Values that a cache of an encoder's keys and values takes: OF_CACHE. */
    uint64_t (*heads_size)(const struct backend *b, const struct heads *s);
    /* After reserve, while weights are awaited: about a millisecond of every operation on made-up data, for machines
     * that compile code better once it has run for a while. Overwrites scratch and page 0 only. Returns whether more is
     * to be done. */
    bool (*warm)(struct backend *b);

    /* --- pages --- */
    /* the first n positions of a page, all layers; others too, perhaps */
    void (*kv_copy)(struct backend *b, int to, int from, int n);
    /* of a whole page as bytes, which lie alike in every build */
    uint64_t (*kv_bytes)(const struct backend *b);
    /* by any thread; the bytes may change when it returns */
    void (*kv_set)(struct backend *b, int page, const void *bytes);

    /* --- slots --- */
    /* Bytes from .. from + n - 1 of a slot, both multiples of 4, which lie alike in every build; they may change when
     * it returns. By any thread. */
    void (*slot_set)(struct backend *b, int slot, uint64_t from, uint64_t n, const void *bytes);

    /* --- computing --- */
    void (*run)(struct backend *b, const struct op *ops, int n); /* n operations, in their order; see backend_run() */

    /* --- what comes back: there when the next submit() returns, or has arrived --- */
    void (*kv_get)(struct backend *b, int page, void *bytes); /* a whole page, [kv_bytes()] */
    /* as slot_set() takes them */
    void (*slot_get)(struct backend *b, int slot, uint64_t from, uint64_t n, void *bytes);
    /* Bytes from .. from + n - 1 of what w holds, once all rows have come: out [HASH_BYTES], the same in every build.
     * By any thread. */
    void (*weight_hash)(struct backend *b, const struct weight *w, uint64_t from, uint64_t n, uint8_t *out);
    /* Begins all that has been asked for; these results shall come back too. */
    void (*submit)(struct backend *b, const struct result *results, int n);
    /* one that has come back; borrowed until the next run */
    const float *(*result)(const struct backend *b, struct handle y);
};

/* Lays values out: a handle of n of them, each of `size` bytes, behind what the arena, which only measures, has so far.
 */
static inline struct handle take_values(struct arena *a, uint64_t n, uint64_t size)
{
    uint64_t at = a->used;
    arena_take(a, n, size);
    return (struct handle){(size_t)at};
}

/* Computes operations. Their pointers need not be valid any longer when it returns. */
static inline void backend_run(struct backend *b, const struct op *ops, int n)
{
    if (b->watcher) b->watcher->run(b->watcher, b, ops, n);
    else b->ops->run(b, ops, n);
}

static inline void backend_run_list(struct backend *b, const struct op_list *list)
{
    backend_run(b, list->at, list->n);
}

/* The backends there are, the first one by default. */
struct backend_row {
    const char *name;
    /* `scalar` asks for the reference kernels. NULL when memory is short. */
    struct backend *(*open)(struct mem *m, struct pool *pool, bool scalar);
    /* how it multiplies codes on this machine: a name of cpu/kernels.h's enum dots, or "none" */
    const char *(*dots)(bool scalar);
};
extern const struct backend_row backends[];
extern const int n_backends;

struct backend *backend_cpu(struct mem *m, struct pool *pool, bool scalar);
const char *backend_cpu_dots(bool scalar);

#endif
