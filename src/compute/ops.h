/* SPDX-License-Identifier: MIT
 *
 * The operations that a model is made of, as data.
 *
 * A model builds a list of operations for a part of a step, and backend_run() computes it. Each operation is one row of
 * the table EACH_OP: its operands, which of them it reads and writes, and its cost. A backend's dispatch, the profile
 * and a device that records operations are made from that table, so a new operation is one row here and one function in
 * each backend.
 *
 * The CPU's function is cpu_NAME (compute/cpu/), and a cost of its own is cost_NAME in ops.c; nothing links without
 * them. CONTRIBUTING.md has the steps.
 *
 * All values are float32. [n, ...] is n rows, which never influence each other. MODEL.md states every formula.
 */
#ifndef QUERN_OPS_H
#define QUERN_OPS_H

#include "compute/shapes.h"

/* What an operation does with the values of a handle, and how many values there are. */
enum operand {
    OP_READS = 1,
    OP_WRITES = 2,
    OF_ROWS = 4,   /* n * dim values */
    OF_PLACES = 8, /* n * n_used * dim, of a route */
    OF_CACHE = 16, /* an encoder's keys and values: heads_size() of a backend */
    OF_ANY = 32,   /* any number of rows of dim values */
    OF_CHANNELS = 64, /* n rows of the channels of a linear layer */
    OF_HALVES = 256,  /* n rows of dim / 2 values */
    OF_PAIRS = 128,   /* alpha of all n rows, then beta of all rows: n_value_heads values in each */
    OP_NONE = 0,
    OP_IN = OP_READS | OF_ROWS,
    OP_OUT = OP_WRITES | OF_ROWS,
    OP_BOTH = OP_READS | OP_WRITES | OF_ROWS,
    OP_ANY = OP_READS | OF_ANY,
    OP_IN_PLACES = OP_READS | OF_PLACES,
    OP_OUT_PLACES = OP_WRITES | OF_PLACES,
    OP_BOTH_CACHE = OP_READS | OP_WRITES | OF_CACHE,
    OP_IN_CHANNELS = OP_READS | OF_CHANNELS,
    OP_IN_PAIRS = OP_READS | OF_PAIRS,
    OP_IN_HALVES = OP_READS | OF_HALVES
};

/*     kind        function    y              x             z              named by    cost */
#define EACH_OP(OP)                                                                                                    \
    /* y = rows `ids` of the matrix w */                                                                               \
    OP(EMBED,      embed,      OP_OUT,        OP_NONE,      OP_NONE,       BY_DIM,     embed)                          \
    /* rows of y that have features become features[row] + first, or, with `adds`, get them added */                   \
    OP(FEATURES,   features,   OP_BOTH,       OP_NONE,      OP_NONE,       BY_DIM,     none)                           \
    /* y = rows `ids` of x */                                                                                          \
    OP(PICK,       pick,       OP_OUT,        OP_ANY,       OP_NONE,       BY_DIM,     none)                           \
    /* y = x / rms(x) * vector; x may be y */                                                                          \
    OP(RMSNORM,    rmsnorm,    OP_OUT,        OP_IN,        OP_NONE,       BY_DIM,     none)                           \
    /* each products[i].y = x * w^T; dim is the columns of x */                                                        \
    OP(MATMUL,     matmul,     OP_NONE,       OP_IN,        OP_NONE,       BY_WEIGHTS, products)                       \
    /* the same for n places of a route: w is the experts' matrices, stacked, a multiple of 8 rows each */             \
    OP(EXPERTS,    experts,    OP_NONE,       OP_IN,        OP_NONE,       BY_WEIGHTS, products)                       \
    /* fills the route from each row's scores y [dim], and overwrites them: softmax, then the n_used largest */        \
    OP(ROUTE,      route,      OP_BOTH,       OP_NONE,      OP_NONE,       BY_NAME,    none)                           \
    /* y, by places = x */                                                                                             \
    OP(GATHER,     gather,     OP_OUT_PLACES, OP_IN,        OP_NONE,       BY_DIM,     none)                           \
    /* y = the sums of share * x; x is by places */                                                                    \
    OP(COMBINE,    combine,    OP_OUT,        OP_IN_PLACES, OP_NONE,       BY_DIM,     none)                           \
    /* turns the first `rot` columns of each of the `heads` of y by cosine and sine, unless cosine is NULL; `paired`: \
     * pairs are neighbours in y before, and rot / 2 columns apart afterwards */                                       \
    OP(ROPE,       rope,       OP_BOTH,       OP_NONE,      OP_NONE,       BY_HEADS,   none)                           \
    /* x and z become the keys and values of `layer` at the positions `kv` */                                          \
    OP(KV_APPEND,  kv_append,  OP_NONE,       OP_IN,        OP_IN,         BY_NAME,    append)                         \
    /* y = attention of the queries x in `layer` over the pages of `kv` only, so append first */                       \
    OP(ATTENTION,  attention,  OP_OUT,        OP_IN,        OP_NONE,       BY_NAME,    attention)                      \
    /* y = silu(y) * x */                                                                                              \
    OP(SWIGLU,     swiglu,     OP_BOTH,       OP_IN,        OP_NONE,       BY_DIM,     none)                           \
    /* y = y * sigmoid(x) */                                                                                           \
    OP(GATE,       gate,       OP_BOTH,       OP_IN,        OP_NONE,       BY_DIM,     none)                           \
    /* y = silu(the convolution of the channels x along each run); queries and keys get the norm 1; the last rows of x \
     * go to the slot of the run */ \
    OP(CONVOLVE, convolve, OP_OUT, OP_IN, OP_NONE, BY_DIM, convolve) \
    /* y = what the state answers to the query of each row of channels x, after the row's key and value and its pair \
     * of z have changed the state; the last state goes to the slot of the run */ \
    OP(DELTA, delta, OP_OUT, OP_IN_CHANNELS, OP_IN_PAIRS, BY_DIM, delta) \
    /* y = x one row later along each run; the last row goes to the slot of the run, `first` values from its beginning \
     */ \
    OP(LATER, later, OP_OUT, OP_IN, OP_NONE, BY_DIM, none) \
    /* y = rows of x, each followed by the row of z */ \
    OP(JOIN, join, OP_OUT, OP_IN_HALVES, OP_IN_HALVES, BY_DIM, none) \
    /* y += x */ \
    OP(ADD, add, OP_BOTH, OP_IN, OP_NONE, BY_DIM, none) \
    /* y = (x - mean) / sqrt(variance + eps) * vector + bias; x may be y */ \
    OP(LAYERNORM, layernorm, OP_OUT, OP_IN, OP_NONE, BY_DIM, none) \
    /* y += bias */ \
    OP(BIAS, bias, OP_BOTH, OP_NONE, OP_NONE, BY_DIM, none) \
    /* y = gelu(y), with tanh */ \
    OP(GELU, gelu, OP_BOTH, OP_NONE, OP_NONE, BY_DIM, none) \
    /* y = gelu(y), with the error function */ \
    OP(GELU_ERF, gelu_erf, OP_BOTH, OP_NONE, OP_NONE, BY_DIM, none) \
    /* x and z become the rows first .. first + n - 1 of an encoder's keys and values y */ \
    OP(KEEP, keep, OP_BOTH_CACHE, OP_IN, OP_IN, BY_NAME, keep) \
    /* y = attention of the queries x over all of an encoder's keys and values z */ \
    OP(ATTEND_ALL, attend_all, OP_OUT, OP_IN, OP_BOTH_CACHE, BY_NAME, attend_all)

enum op_kind {
#define OP_KIND(kind, ...) OP_##kind,
    EACH_OP(OP_KIND)
#undef OP_KIND
    OP_KINDS
};

enum { OP_PRODUCTS = 4, OPS_MOST = 24 }; /* products of one operation; operations of a list */

/* One operation. Handles name values of the backend; pointers name memory of the model, which backend_run() reads
 * before it returns. Fields that a kind does not use are zero. */
struct op {
    enum op_kind kind;
    int n, dim;                           /* rows; columns of a row */
    struct handle y, x, z;
    const struct weight *w;
    struct product products[OP_PRODUCTS]; /* ends at the first without a weight */
    const struct route *route;
    const int32_t *ids;                   /* [n] tokens, or row numbers */
    const float *const *features;         /* [n], each [first + dim] or NULL */
    const float *vector, *bias;           /* [dim] */
    const float *cosine, *sine;           /* [n, rot / 2]; the same memory for a whole step, or NULL */
    const struct kv_row *kv;              /* [n] */
    const struct linear_layer *linear;
    const struct state_run *runs;         /* [n_runs] */
    int n_runs;
    struct heads attended;                /* of an encoder */
    int layer;                            /* counts the layers with keys and values, or the linear layers */
    int heads, rot;                       /* of a row; columns of a head that turn */
    int first;
    bool adds, renormalise, paired;
    float eps;
};

struct op_list {
    int n;
    struct op at[OPS_MOST];
};

/* Appends an operation: its kind, n and dim, then its other operands by name. */
#define add_op(list, ...) ops_append((list), &(struct op){__VA_ARGS__})
void ops_append(struct op_list *list, const struct op *op);

/* What a profile adds to the name of an operation's kind: nothing, its columns, its heads, or the types and shape of
 * its weights. */
enum op_naming { BY_NAME, BY_DIM, BY_HEADS, BY_WEIGHTS };

/* Multiplications, and bytes of weights, keys and values, each counted once. */
struct op_cost {
    double macs, bytes;
};

/* What a cost depends on beside the operation: the weights, op->w or those of the products, and the shape of the cache.
 */
struct op_facts {
    struct weight_facts weights[OP_PRODUCTS];
    struct kv_shape kv;
};

struct op_row {
    const char *name;
    enum operand y, x, z;
    enum op_naming naming;
    struct op_cost (*cost)(const struct op *op, const struct op_facts *f);
};

extern const struct op_row op_rows[OP_KINDS];

#endif
