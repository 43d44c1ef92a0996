/* SPDX-License-Identifier: MIT
 *
 * A model: an architecture's configuration, its weights in a backend, and the forward pass.
 *
 * model_open() reads the configuration, model_bind() finds the weights and checks their shapes, file by file of a split
 * model, model_take() makes room for those; the bytes arrive afterwards. A step is begin, each layer, each part of the
 * output head, end: the engine looks at the clock and the attention word between them. These cannot fail and allocate
 * nothing.
 */
#ifndef QUERN_MODEL_H
#define QUERN_MODEL_H

#include "load/architecture.h"
#include "models/batch.h"
#include "models/bind.h"

/* What a text's vector is made of, by the files; the numbers are GGUF's. LAST: a model for vectors, RANK: one for
 * ranking. */
enum model_pooling { POOLING_UNSAID = -1, POOLING_NONE, POOLING_MEAN, POOLING_CLS, POOLING_LAST, POOLING_RANK };

enum { MODEL_CLASSES = 2 }; /* of one that ranks: yes and no */

struct model_config {
    int n_layers, dim, ffn_dim, n_heads, n_kv_heads, head_dim, vocab_size;
    /* of layers with experts: how many, how many of them for each row, their feed-forward size; or 0 */
    int n_experts, n_used, expert_dim;
    bool renormalise;       /* the chosen experts' shares */
    int64_t context_length; /* positions the model was made for */
    int rope_dim;           /* columns of a head that RoPE turns */
    double rope_theta;
    double rope_factor;     /* by how much YaRN extends the context; 1: not */
    float eps;
    bool tied;              /* the output head is the embedding */
    /* the files have none, and say that the embedding is not it: hidden states are all that there is to have */
    bool headless;
    bool sees;              /* rows may be images' parts: it may be given a projector */
    enum model_pooling pooling;
    int n_classes;          /* MODEL_CLASSES, or 0: the files have none */
    int n_added;            /* after so many layers something is added to such rows; -1: as the projector has it */
};

/* What a conversation leaves behind in a model: keys and values in pages, and perhaps a state beside them. */
struct cache_shape {
    struct kv_shape kv;
    struct state_shape state;
};

struct model;

/* A matrix, or w NULL and the bytes of a vector; both are empty where a model does not have it. */
typedef void model_part(void *context, const struct weight *w, struct bytes vector);

/* The code of a family of architectures. */
struct model_ops {
    int (*open)(const struct architecture *architecture, struct mem *mem, struct backend *be,
                const struct checkpoint *ck, const char *prefix, struct model **out, struct error *err);
    int (*bind)(struct model *m, struct checkpoint *ck, struct error *err);
    void (*free)(struct model *m);
    void (*each)(const struct model *m, model_part *fn, void *context);
    /* n_slots: if it has states */
    struct cache_shape (*cache)(const struct model *m, int n_pages, int n_slots, enum kv_type type);
    uint64_t (*values)(const struct model *m, int max_rows, int max_out);
    uint64_t (*reserve_cost)(const struct model *m, int max_rows);
    int (*reserve)(struct model *m, int max_rows, int max_out);
    void (*begin)(struct model *m, const struct batch *b);
    void (*layer)(struct model *m, const struct batch *b, int layer);
    /* Outputs first .. first + n - 1 of the head, in order; with the first of them also what comes before the head. */
    void (*head)(struct model *m, const struct batch *b, int first, int n);
    struct outputs (*end)(const struct model *m); /* hidden: of all n_out rows */
    const struct weight *(*output)(const struct model *m); /* the output head's matrix */
};

struct model {
    const struct model_ops *ops;
    const struct architecture *architecture;
    const char *prefix;     /* of its metadata keys: the architecture, or the older name that the file has for it */
    struct model_config config;
    struct binder bind;
    struct weight *classes; /* [n_classes, dim] by which a hidden state is ranked */
};

/* Picks the architecture by the (first) file's metadata. be NULL: nothing but model_bind() will be asked for.
 * ERR_UNSUPPORTED "architecture" names another one. */
int model_open(struct mem *mem, struct backend *be, const struct checkpoint *ck, struct model **out, struct error *err);
void model_free(struct model *m); /* accepts NULL */

/* Binds the weights of a file; `more`: others follow. Every weight must be in one of the files, and in one only. */
int model_bind(struct model *m, struct checkpoint *ck, bool more, struct error *err);
/* Whether a bound tensor is one expert's matrix or all experts': not all of them work for a token. */
bool model_of_experts(const struct tensor *t);
/* Between the two: what the bound matrices of this file become, and those of later files. May be said again until they
 * are taken. Routers, rows that are not whole blocks, and types whose scales come apart stay what they are. */
void model_quantize(struct model *m, struct checkpoint *ck, struct model_types types);
/* Bytes that model_take() takes for the bound tensors of this file; saturates. */
uint64_t model_take_cost(const struct model *m, const struct checkpoint *ck);
/* Storage for the weights bound in this file. ERR_MEM_LOAD. */
int model_take(struct model *m, struct checkpoint *ck, struct error *err);

/* All that a forward pass reads beside the configuration, in the architecture's order. */
void model_each(const struct model *m, model_part *fn, void *context);
struct cache_shape model_cache(const struct model *m, int n_pages, int n_slots, enum kv_type type);
/* Bytes of values that it has in the backend's scratch, from the beginning on, for batches of at most max_rows rows, of
 * max_out of which something is wanted; and bytes that model_reserve() takes beside them. */
uint64_t model_values(const struct model *m, int max_rows, int max_out);
uint64_t model_reserve_cost(const struct model *m, int max_rows);
/* ERR_MEM_LOAD. */
int model_reserve(struct model *m, int max_rows, int max_out);
/* most columns that a product takes for one row, in all its places; for backend reserve */
int model_max_cols(const struct model *m);

void model_begin(struct model *m, const struct batch *b);
void model_layer(struct model *m, const struct batch *b, int layer); /* 0 .. n_layers - 1, in order */
/* of the output head, about as long as a layer each; at least one */
int model_parts(const struct model *m, const struct batch *b);
void model_head(struct model *m, const struct batch *b, int part); /* 0 .. parts - 1, in order */
/* Ends a step, whose outputs are there when the backend's submit() has arrived. */
struct outputs model_end(struct model *m, const struct batch *b);
/* A row of the output head, or for id -1 - i of the matrix of classes, [dim]: whether there is one. Not while a step
 * runs. */
bool model_output_row(struct model *m, int32_t id, float *out);

/* --- for the families --- */

enum { KEY_SIZE = 96 };
/* "PREFIX.name". Returns out. */
const char *model_key(char out[KEY_SIZE], const char *prefix, const char *name);

/* By enum model_family; in families.c. */
extern const struct model_ops *const families[];
extern const struct model_ops model_qwen3;

#endif
