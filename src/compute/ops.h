/* SPDX-License-Identifier: MIT
 *
 * The operations that a model is made of, as data.
 *
 * A model builds a list of operations for a part of a step, and backend_run() computes it. Each operation is one row of the table EACH_OP: its
 * operands, which of them it reads and writes, and what it costs. A backend's dispatch, the profile and a device that records what it is given
 * are made from that table, so a new operation is one row here and one function in each backend.
 *
 * All values are float32. [n, ...] is n rows, which never influence each other. MODEL.md states every formula.
 */
#ifndef QUERN_OPS_H
#define QUERN_OPS_H

#include "compute/shapes.h"

/* What an operation does with the values behind a handle, and how many they are. */
enum operand {
    NO_OPERAND = 0,
    OP_READS = 1, OP_WRITES = 2, OP_CHANGES = OP_READS | OP_WRITES,
    OF_ROWS = 4,    /* n * dim values */
    OF_PLACES = 8,  /* n * n_used * dim, of a route */
    OF_CACHE = 16,  /* an encoder's keys and values: heads_size() */
    OF_ANY = 32     /* rows of dim values, as many as there are */
};

/*    kind         function    y                     x                     z                    name in a profile; cost
 * embed           y = rows `ids` of w, dim columns each
 * features        rows of y that have features become features[row] + first, or with `adds` get that added
 * pick            y = rows `ids` of x
 * rmsnorm         y = x / rms(x) * vector; x and y may be the same
 * matmul          each products[i].y = x * w^T; dim is the columns of x
 * experts         the same by route: n places, and every w is its experts' matrices, one below the other, of a multiple of 8 rows each
 * route           chooses the experts of each row by its scores y, dim of them, which it overwrites: softmax, then the n_used largest
 * gather          y, by places = x
 * combine         y = the sums of share * x, by places
 * rope            turns the first `rot` columns of each of the heads of y
 * kv_append       x and z are the keys and values of `layer` at the positions `kv`
 * attention       y = attention of the queries x over the pages of `kv` in `layer`; append first
 * swiglu          y = silu(y) * x
 * add             y += x
 * layernorm       y = (x - mean) / sqrt(variance + eps) * vector + bias; x and y may be the same
 * bias            y += bias, of each row
 * gelu, gelu_erf  y = gelu(y), by the tanh or by the error function
 * keep            x and z become the rows first .. first + n - 1 of an encoder's keys and values y
 * attend_all      y = attention of the queries x over all of an encoder's keys and values z */
#define EACH_OP(OP)                                                                                       \
    OP(EMBED,      embed,      OP_WRITES | OF_ROWS,    NO_OPERAND,        NO_OPERAND,       BY_DIM, embed)    \
    OP(FEATURES,   features,   OP_CHANGES | OF_ROWS,   NO_OPERAND,        NO_OPERAND,       BY_DIM, none)     \
    OP(PICK,       pick,       OP_WRITES | OF_ROWS,    OP_READS | OF_ANY,    NO_OPERAND,       BY_DIM, none)     \
    OP(RMSNORM,    rmsnorm,    OP_WRITES | OF_ROWS,    OP_READS | OF_ROWS,   NO_OPERAND,       BY_DIM, none)     \
    OP(MATMUL,     matmul,     NO_OPERAND,          OP_READS | OF_ROWS,   NO_OPERAND,       BY_WEIGHTS, products) \
    OP(EXPERTS,    experts,    NO_OPERAND,          OP_READS | OF_ROWS,   NO_OPERAND,       BY_WEIGHTS, products) \
    OP(ROUTE,      route,      OP_CHANGES | OF_ROWS,   NO_OPERAND,        NO_OPERAND,       BY_NAME, none)    \
    OP(GATHER,     gather,     OP_WRITES | OF_PLACES,  OP_READS | OF_ROWS,   NO_OPERAND,       BY_DIM, none)     \
    OP(COMBINE,    combine,    OP_WRITES | OF_ROWS,    OP_READS | OF_PLACES, NO_OPERAND,       BY_DIM, none)     \
    OP(ROPE,       rope,       OP_CHANGES | OF_ROWS,   NO_OPERAND,        NO_OPERAND,       BY_HEADS, none)   \
    OP(KV_APPEND,  kv_append,  NO_OPERAND,          OP_READS | OF_ROWS,   OP_READS | OF_ROWS,  BY_NAME, append)  \
    OP(ATTENTION,  attention,  OP_WRITES | OF_ROWS,    OP_READS | OF_ROWS,   NO_OPERAND,       BY_NAME, attention) \
    OP(SWIGLU,     swiglu,     OP_CHANGES | OF_ROWS,   OP_READS | OF_ROWS,   NO_OPERAND,       BY_DIM, none)     \
    OP(ADD,        add,        OP_CHANGES | OF_ROWS,   OP_READS | OF_ROWS,   NO_OPERAND,       BY_DIM, none)     \
    OP(LAYERNORM,  layernorm,  OP_WRITES | OF_ROWS,    OP_READS | OF_ROWS,   NO_OPERAND,       BY_DIM, none)     \
    OP(BIAS,       bias,       OP_CHANGES | OF_ROWS,   NO_OPERAND,        NO_OPERAND,       BY_DIM, none)     \
    OP(GELU,       gelu,       OP_CHANGES | OF_ROWS,   NO_OPERAND,        NO_OPERAND,       BY_DIM, none)     \
    OP(GELU_ERF,   gelu_erf,   OP_CHANGES | OF_ROWS,   NO_OPERAND,        NO_OPERAND,       BY_DIM, none)     \
    OP(KEEP,       keep,       OP_CHANGES | OF_CACHE,  OP_READS | OF_ROWS,   OP_READS | OF_ROWS,  BY_NAME, keep)    \
    OP(ATTEND_ALL, attend_all, OP_WRITES | OF_ROWS,    OP_READS | OF_ROWS,   OP_CHANGES | OF_CACHE, BY_NAME, attend_all)

enum op_kind {
#define OP_KIND(kind, ...) OP_##kind,
    EACH_OP(OP_KIND)
#undef OP_KIND
    OP_KINDS
};

enum { OP_PRODUCTS = 4, OPS_MOST = 24 }; /* products of one operation; operations of a list */

/* One operation. Handles name values of the backend; pointers name memory of the model, which is read before backend_run() returns. What a kind
 * does not use is zero. */
struct op {
    enum op_kind kind;
    int n, dim;                           /* rows, and the columns of a row */
    struct handle y, x, z;
    const struct weight *w;
    struct product products[OP_PRODUCTS]; /* up to the first without a weight */
    const struct route *route;
    const int32_t *ids;                   /* [n] tokens, or numbers of rows */
    const float *const *features;         /* [n], each [first + dim] or NULL */
    const float *vector, *bias;           /* [dim] */
    const float *cosine, *sine;           /* [n, rot / 2]; the same memory in a whole step */
    const struct kv_row *kv;              /* [n] */
    struct heads attended;                /* of an encoder */
    int layer;                            /* among those with keys and values */
    int heads, rot;                       /* of a row; columns of a head that turn */
    int first;
    bool adds, renormalise;
    float eps;
};

struct op_list {
    int n;
    struct op at[OPS_MOST];
};

/* Appends an operation: its kind, n and dim, then its other operands by name. */
#define add_op(list, ...) ops_append((list), &(struct op){__VA_ARGS__})
void ops_append(struct op_list *list, const struct op *op);

/* What names an operation in a profile beside its kind: nothing, its columns, its heads, or its weights' types and shape. */
enum op_naming { BY_NAME, BY_DIM, BY_HEADS, BY_WEIGHTS };

/* Multiplications, and bytes of weights, keys and values, each counted once. */
struct op_cost {
    double macs, bytes;
};

/* What a cost depends on beside the operation: its weights, w or those of its products, and the shape of the cache. */
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
