/* SPDX-License-Identifier: MIT
 *
 * A model: an architecture's configuration, its weights in a backend, and the forward pass.
 *
 * model_open() reads the configuration, checks it and binds every weight with its shape; the bytes arrive afterwards. A step is
 * begin, each layer, end: the engine looks at the clock and the abort word between layers. These cannot fail and allocate nothing.
 */
#ifndef QUERN_MODEL_H
#define QUERN_MODEL_H

#include "batch.h"
#include "checkpoint.h"

struct model_config {
    int n_layers, dim, ffn_dim, n_heads, n_kv_heads, head_dim, vocab_size;
    int n_experts, n_used, expert_dim; /* of layers with experts: how many, how many of them for each row, their feed-forward size; or 0 */
    bool renormalise;       /* the chosen experts' shares */
    int64_t context_length; /* positions the model was made for */
    double rope_theta;
    double rope_factor;     /* by how much YaRN extends the context; 1: not */
    float eps;
    bool tied;              /* the output head is the embedding */
};

struct model;

struct model_ops {
    const char *architecture;
    int (*open)(struct mem *mem, struct backend *be, struct checkpoint *ck, struct model **out, struct error *err);
    void (*free)(struct model *m);
    int (*reserve)(struct model *m, int max_rows, int max_out);
    void (*begin)(struct model *m, const struct batch *b);
    void (*layer)(struct model *m, const struct batch *b, int layer);
    const float *(*end)(struct model *m, const struct batch *b);
};

struct model {
    const struct model_ops *ops;
    struct model_config config;
    struct mem *mem;
    struct backend *be;
};

/* Picks the architecture. ERR_UNSUPPORTED "architecture" names another one. */
int model_open(struct mem *mem, struct backend *be, struct checkpoint *ck, struct model **out, struct error *err);
void model_free(struct model *m); /* accepts NULL */

/* Scratch for batches of at most max_rows rows, max_out of which want logits. ERR_MEM_LOAD. */
int model_reserve(struct model *m, int max_rows, int max_out);
int model_max_cols(const struct model *m); /* most columns that a product takes for one row, in all its places; for backend reserve */

void model_begin(struct model *m, const struct batch *b);
void model_layer(struct model *m, const struct batch *b, int layer); /* 0 .. n_layers - 1, in order */
/* Logits [b->n_out, vocab_size], borrowed until the next begin. */
const float *model_end(struct model *m, const struct batch *b);

/* --- for the architectures --- */

enum { KEY_SIZE = 96 };
/* "ARCHITECTURE.name". Returns out. */
const char *model_key(char out[KEY_SIZE], const char *architecture, const char *name);


/* Binds a matrix [rows, cols]: shape-checked, storage made, bytes routed there. `name` may hold one %d for the layer. */
int model_matrix(struct model *m, struct checkpoint *ck, const char *name, int layer, int cols, int rows, struct weight **out, struct error *err);
/* The same for a stack of matrices, which become one of stack * rows rows. rows is a multiple of 8. */
int model_stack(struct model *m, struct checkpoint *ck, const char *name, int layer, int cols, int rows, int stack, struct weight **out, struct error *err);
/* The same for a float vector [n], as float32. */
int model_vector(struct model *m, struct checkpoint *ck, const char *name, int layer, int n, float **out, struct error *err);

extern const struct model_ops model_qwen3, model_qwen3moe;

#endif
