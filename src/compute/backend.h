/* SPDX-License-Identifier: MIT
 *
 * A backend stores the weights, the KV cache and the values of a step, and computes the operations of ops.h.
 *
 * Weights enter row group by row group (weight_put), in the file's own type, and are stored in the backend's layout.
 * The KV cache's pages, the state slots, and the scratch that handles point into belong to the backend too. Only
 * weight_new and reserve can fail; run cannot.
 *
 * A backend may compute on a device of its own, whose answers come `late`: submit() then only begins the work, and the
 * caller of the engine reports its arrival (quern_arrive()). On the CPU everything is done when the call returns.
 */
#ifndef QUERN_BACKEND_H
#define QUERN_BACKEND_H

#include "base/pool.h"
#include "compute/ops.h"

struct backend {
    const struct backend_ops *ops;
    struct watcher *watcher; /* NULL: nothing watches */
    bool late;               /* results arrive after submit(), not before it returns */
};

/* First member of a struct that runs the operations in its own way, as a profile does. */
struct watcher {
    void (*run)(struct watcher *w, struct backend *b, const struct op *ops, int n);
};

/* What reserve() allocates: `values` bytes of scratch for values; further scratch for batches of at most max_rows rows
 * and products of at most max_cols columns; pages; slots. */
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
    /* ERR_UNSUPPORTED "gpu" if this backend cannot run a model with such pages and states, or an encoder of images.
     * NULL: it runs all. */
    int (*check)(const struct backend *b, const struct kv_shape *kv, const struct state_shape *state, bool encodes,
                 struct error *err);
    /* type->layout is supported and cols a multiple of type->block. NULL when memory is short. */
    struct weight *(*weight_new)(struct backend *b, const struct dtype *type, int rows, int cols);
    void (*weight_free)(struct backend *b, struct weight *w); /* accepts NULL */
    /* The rows that follow are of this type, and are quantised as they come. Not for types with separate scales. */
    void (*weight_from)(struct backend *b, struct weight *w, const struct dtype *type);
    /* Takes rows row .. row + n - 1 as in the file; row is a multiple of 8, and so is n unless these are the last rows.
     */
    void (*weight_put)(struct backend *b, struct weight *w, int row, int n, const uint8_t *rows);
    /* Takes columns col .. col + n_cols - 1 of such rows, for float types; the rows are row_bytes apart. */
    void (*weight_put_columns)(struct backend *b, struct weight *w, int row, int n, int col, int n_cols,
                               const uint8_t *rows, size_t row_bytes);
    /* For types whose scales are separate from their codes (layouts[].scaled), in any order: sets a number of rows row
     * .. row + n_rows - 1 in columns col .. col + n_cols - 1, one rectangle of the file. */
    void (*weight_part)(struct backend *b, struct weight *w, int row, int n_rows, int col, int n_cols,
                        enum weight_part part, float value);
    /* Rows row .. row + n_rows - 1, which have not come yet, get their columns in this order: column k of the panels,
     * and of the rectangles above, is column columns[k] of the rows that come and of what is multiplied. n_rows is the
     * same in all calls for a weight, and a multiple of 8 or all rows. Returns false when memory is short. For types of
     * dtype_of_codes(), and not for weights whose rows are looked up. */
    bool (*weight_order)(struct backend *b, struct weight *w, int row, int n_rows, const uint32_t *columns);
    struct weight_facts (*weight_facts)(const struct backend *b, const struct weight *w);
    /* Bytes that weight_new and reserve allocate; they saturate. */
    uint64_t (*weight_cost)(const struct backend *b, const struct dtype *type, int rows, int cols);
    struct reserve_cost (*reserve_cost)(const struct backend *b, const struct reserve *r);
    /* Called once, before anything runs. Returns ERR_MEM_LOAD or ERR_MEM_KV; nothing is allocated then. */
    int (*reserve)(struct backend *b, const struct reserve *r);
    /* Number of values in a cache of an encoder's keys and values: OF_CACHE. */
    uint64_t (*heads_size)(const struct backend *b, const struct heads *s);
    /* Called after reserve, while weights are still loading: runs the operations that take most of the time on made-up
     * data for about a millisecond, for machines that compile code better after it has run for a while. Overwrites
     * scratch and page 0 only. Returns whether more is to be done. */
    bool (*warm)(struct backend *b);

    /* --- pages --- */
    /* copies the first n positions of a page, all layers; may copy more */
    void (*kv_copy)(struct backend *b, int to, int from, int n);
    /* bytes of a whole page; the same in every build */
    uint64_t (*kv_bytes)(const struct backend *b);
    /* on any thread; the bytes may be changed when it returns */
    void (*kv_set)(struct backend *b, int page, const void *bytes);

    /* --- slots --- */
    /* Sets bytes from .. from + n - 1 of a slot, both multiples of 4; the layout is the same in every build. On any
     * thread; the bytes may be changed when it returns. */
    void (*slot_set)(struct backend *b, int slot, uint64_t from, uint64_t n, const void *bytes);

    /* --- computing --- */
    void (*run)(struct backend *b, const struct op *ops, int n); /* n operations, in their order; see backend_run() */

    /* --- what comes back: complete when the next submit() returns, or has arrived --- */
    /* a whole page, [kv_bytes()], with zeros for all positions after the first n */
    void (*kv_get)(struct backend *b, int page, int n, void *bytes);
    /* the same bytes as slot_set() */
    void (*slot_get)(struct backend *b, int slot, uint64_t from, uint64_t n, void *bytes);
    /* Hashes bytes from .. from + n - 1 of w's panels, after all rows have come: out [HASH_BYTES], the same in every
     * build whose keys and values have the same bits. On any thread. */
    void (*weight_hash)(struct backend *b, const struct weight *w, uint64_t from, uint64_t n, uint8_t *out);
    /* Begins everything that was requested; these results come back too. */
    void (*submit)(struct backend *b, const struct result *results, int n);
    /* What was requested lies in memory now. NULL where it does so when submit() returns. */
    void (*arrived)(struct backend *b);
    /* one result that has come back; borrowed until the next run */
    const float *(*result)(const struct backend *b, struct handle y);
};

/* Lays values out: returns a handle of n values of `size` bytes each, at the end of the arena, which only measures. */
static inline struct handle take_values(struct arena *a, uint64_t n, uint64_t size)
{
    uint64_t at = a->used;
    arena_take(a, n, size);
    return (struct handle){(size_t)at};
}

/* Computes operations. Their pointers need not stay valid after it returns. */
static inline void backend_run(struct backend *b, const struct op *ops, int n)
{
    if (b->watcher) b->watcher->run(b->watcher, b, ops, n);
    else b->ops->run(b, ops, n);
}

static inline void backend_run_list(struct backend *b, const struct op_list *list)
{
    backend_run(b, list->at, list->n);
}

/* All backends; the first one is the default. */
struct backend_row {
    const char *name;
    /* `scalar` asks for the reference kernels. NULL when memory is short. */
    struct backend *(*open)(struct mem *m, struct pool *pool, bool scalar);
    /* the kind of byte dots on this machine: a name of cpu/kernels.h's enum dots, or "none" */
    const char *(*dots)(bool scalar);
};
extern const struct backend_row backends[];
extern const int n_backends;

struct backend *backend_cpu(struct mem *m, struct pool *pool, bool scalar);
const char *backend_cpu_dots(bool scalar);

#endif
