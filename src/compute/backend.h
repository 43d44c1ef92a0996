/* SPDX-License-Identifier: MIT
 *
 * The tensor operations a model is made of, as a table, so that a model does not know where they run.
 *
 * Weights enter row group by row group (weight_put), in the file's own type, and live in the backend's layout; the KV
 * cache's pages live there too. Everything that can fail, fails in weight_new and reserve; the operations return void. Rows never
 * influence each other: [n, ...] is n independent rows. All floats are float32. MODEL.md states every formula.
 *
 * A float pointer that an operation gets lies in the scratch that the backend has adopted, and is a handle: a device of its own keeps
 * what it names elsewhere, at the same offset. So nobody else reads or writes there, but for angles, which go up, and what submit()
 * names, which comes down. Vectors of weights (rmsnorm's w) and features are real memory.
 */
#ifndef QUERN_BACKEND_H
#define QUERN_BACKEND_H

#include "base/pool.h"
#include "compute/shapes.h"

struct backend {
    const struct backend_ops *ops;
};

struct backend_ops {
    const char *(*name)(const struct backend *b); /* "scalar", "simd" or "relaxed" */
    void (*free)(struct backend *b);

    /* --- opening --- */
    /* type->layout is supported and cols a multiple of type->block. NULL when memory is short. */
    struct weight *(*weight_new)(struct backend *b, const struct dtype *type, int rows, int cols);
    void (*weight_free)(struct backend *b, struct weight *w);
    /* The rows that follow are of this type, whose scales do not come apart, and quantised as they come. */
    void (*weight_from)(struct backend *b, struct weight *w, const struct dtype *type);
    /* Rows row .. row + n - 1 as in the file; row a multiple of 8, n too unless they are the last. */
    void (*weight_put)(struct backend *b, struct weight *w, int row, int n, const uint8_t *rows);
    /* The same of float types and of some columns of these rows: col .. col + n_cols - 1, each row's row_bytes behind the one before. */
    void (*weight_put_columns)(struct backend *b, struct weight *w, int row, int n, int col, int n_cols, const uint8_t *rows, size_t row_bytes);
    /* For types whose scales come apart from their codes (layouts[].scaled), in any order: the scale of rows row .. row + n_rows - 1
     * in columns col .. col + n_cols - 1, a rectangle as the file has them. */
    void (*weight_scale)(struct backend *b, struct weight *w, int row, int n_rows, int col, int n_cols, float scale);
    struct weight_facts (*weight_facts)(const struct backend *b, const struct weight *w);
    /* Bytes from .. from + n - 1 of what it holds, once all rows have come: out [HASH_BYTES], the same in every build. By any thread. */
    void (*weight_hash)(const struct backend *b, const struct weight *w, uint64_t from, uint64_t n, uint8_t *out);
    /* What weight_new and reserve take, in bytes; they saturate. */
    uint64_t (*weight_cost)(const struct backend *b, const struct dtype *type, int rows, int cols);
    struct reserve_cost (*reserve_cost)(const struct backend *b, const struct kv_shape *shape, int max_rows, int max_cols);
    /* Scratch and pages for batches of at most max_rows. ERR_MEM_LOAD or ERR_MEM_KV, and then nothing has been taken. */
    int (*reserve)(struct backend *b, const struct kv_shape *shape, int max_rows, int max_cols);
    /* After reserve, while weights are awaited: about a millisecond of every operation on made-up data, for machines that compile code
     * better once it has run for a while. Overwrites scratch and page 0 only. Returns whether more is to be done. */
    bool (*warm)(struct backend *b);
    /* The scratch [bytes] of the model: the addresses that operations get lie there. Once, before the first of them. NULL where an operation
     * works on the memory itself. */
    void (*adopt)(struct backend *b, void *base, uint64_t bytes);

    /* --- pages --- */
    void (*kv_copy)(struct backend *b, int to, int from, int n); /* the first n positions of a page, all layers; others too, perhaps */
    /* A whole page as bytes [kv_bytes()], which lie alike in every build. */
    uint64_t (*kv_bytes)(const struct backend *b);
    void (*kv_get)(struct backend *b, int page, void *bytes);
    void (*kv_set)(struct backend *b, int page, const void *bytes); /* by any thread */

    /* --- operations --- */
    void (*embed)(struct backend *b, float *y, const struct weight *w, const int32_t *ids, int n); /* y [n, w.cols] = rows of w */
    /* x [n, dim] of rows that have features, [from + dim] of them each, becomes features[row] + from, or with `add` gets that added. */
    void (*features)(struct backend *b, float *x, const float *const *features, int from, int n, int dim, bool add);
    void (*pick)(struct backend *b, float *y, const float *x, const int32_t *rows, int n, int dim); /* y [n, dim]: these rows of x */
    void (*rmsnorm)(struct backend *b, float *y, const float *x, const float *w, int n, int dim, float eps); /* x, y [n, dim], w [dim] */
    /* All products share x [n, cols]; one dispatch for all of them. With a route, each w is its experts' matrices one below the other,
     * of a multiple of 8 rows, and x and y are rows of places: y [n, w.rows / n_experts], only the experts that have places are read. */
    void (*matmul)(struct backend *b, const struct product *p, int n_products, const float *x, int n, const struct route *r);
    /* Chooses each row's experts by scores [n, n_experts], which are overwritten: softmax, then the n_used largest. Fills r. */
    void (*route)(struct backend *b, float *scores, int n, bool renormalise, struct route *r);
    /* y [n * n_used, dim]: x [n, dim] in its places */
    void (*gather)(struct backend *b, float *y, const float *x, const struct route *r, int n, int dim);
    /* y [n, dim]: sums of share * x [its place, dim] */
    void (*combine)(struct backend *b, float *y, const float *x, const struct route *r, int n, int dim);
    /* x [n, heads, head_dim], whose first rot columns turn; cosine, sine [n, rot / 2], the same memory in a whole step */
    void (*rope)(struct backend *b, float *x, const float *cosine, const float *sine, int n, int heads, int head_dim, int rot);
    /* k, v [n, n_kv_heads * head_dim] */
    void (*kv_append)(struct backend *b, int layer, const float *k, const float *v, const struct kv_row *rows, int n);
    /* o, q [n, n_heads * head_dim]; reads the pages only, so append first */
    void (*attention)(struct backend *b, int layer, float *o, const float *q, const struct kv_row *rows, int n);
    void (*swiglu)(struct backend *b, float *gate, const float *up, int n, int dim); /* gate = silu(gate) * up, [n, dim] */
    void (*add)(struct backend *b, float *x, const float *y, int n, int dim);        /* x += y, [n, dim] */

    /* --- operations of an encoder of images --- */
    /* y = (x - mean) / sqrt(variance + eps) * w + bias, of each row; x, y [n, dim], which may be the same, w, bias [dim] */
    void (*layernorm)(struct backend *b, float *y, const float *x, const float *w, const float *bias, int n, int dim, float eps);
    void (*bias)(struct backend *b, float *y, const float *bias, int n, int dim); /* y [n, dim] += bias [dim] */
    void (*gelu)(struct backend *b, float *x, enum gelu kind, int n, int dim);    /* x = gelu(x), [n, dim] */
    /* Floats that keep() and attend_all() need for s->rows rows of keys and values. */
    uint64_t (*kept_size)(const struct backend *b, const struct heads *s);
    /* k, v [n, n_heads * head_dim] become rows first .. first + n - 1 of kept */
    void (*keep)(struct backend *b, float *kept, const float *k, const float *v, int first, int n, const struct heads *s);
    /* o, q [n, n_heads * head_dim]; reads what was kept only, so keep all rows first */
    void (*attend_all)(struct backend *b, float *o, const float *q, float *kept, int n, const struct heads *s);

    /* --- the end of a step --- */
    /* Ends a step: what was asked for since the last one begins, and these results are to arrive in memory; there may be none. NULL where an
     * operation is done when it returns. */
    void (*submit)(struct backend *b, const struct result *results, int n);
};

/* The CPU backend. `scalar` asks for the reference kernels. NULL when memory is short. */
struct backend *backend_cpu(struct mem *m, struct pool *pool, bool scalar);
/* How such a backend multiplies codes on this machine: a name of cpu/kernels.h's enum dots, or "none". */
const char *backend_cpu_dots(bool scalar);

#endif
