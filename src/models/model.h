/* SPDX-License-Identifier: MIT
 *
 * A model: an architecture's configuration, its weights in a backend, and the forward pass.
 *
 * model_open() reads the configuration, model_bind() finds the weights and checks their shapes, file by file of a split
 * model, and model_take() allocates them; the bytes arrive afterwards. A step is begin, each layer, each part of the
 * output head, end; the engine looks at the clock and the attention word in between. Steps cannot fail and allocate
 * nothing.
 */
#ifndef QUERN_MODEL_H
#define QUERN_MODEL_H

#include "load/architecture.h"
#include "models/batch.h"
#include "models/bind.h"

/* How a text's vector is made, according to the files; the numbers are GGUF's. LAST: a model for vectors, RANK: one for
 * ranking. */
enum model_pooling { POOLING_UNSAID = -1, POOLING_NONE, POOLING_MEAN, POOLING_CLS, POOLING_LAST, POOLING_RANK };

enum { MODEL_CLASSES = 2 }; /* of a ranking model: yes and no */

struct model_config {
    int n_nextn;   /* blocks behind the layers that draft further tokens */
    bool drafts;   /* the model drafts with the first of them */
    int value_dim; /* columns of all value heads of a linear layer; 0: there are none */
    int n_layers, dim, ffn_dim, n_heads, n_kv_heads, head_dim, vocab_size;
    /* of layers with experts: their number, how many of them each row uses, their feed-forward size; or 0 */
    int n_experts, n_used, expert_dim;
    bool renormalise;       /* the chosen experts' shares are made to sum up to 1 */
    int64_t context_length; /* positions the model was made for */
    int rope_dim;           /* columns of a head that RoPE turns */
    double rope_theta;
    double rope_factor;     /* factor by which RoPE's scaling extends the context; 1: none */
    float eps;
    bool tied;              /* the output head is the embedding */
    /* the files have no output head, and say that it is not the embedding: only hidden states are available */
    bool headless;
    bool sees;              /* rows may be parts of images: the model accepts a projector */
    enum model_pooling pooling;
    int n_classes;          /* MODEL_CLASSES, or 0: the files have no classes */
    /* number of layers after which something is added to rows of images; -1: the projector decides */
    int n_added;
};

/* What a conversation stores in a model's cache: keys and values in pages, and perhaps a state. */
struct cache_shape {
    struct kv_shape kv;
    struct state_shape state;
};

struct model;

/* Receives a matrix, or, with w NULL, the bytes of a vector; both are empty if the model lacks it. */
typedef void model_part(void *context, const struct weight *w, struct bytes vector);

/* The code of a family of architectures. */
struct model_ops {
    int (*open)(const struct architecture *architecture, struct mem *mem, struct backend *be,
                const struct checkpoint *ck, const char *prefix, struct model **out, struct error *err);
    int (*bind)(struct model *m, struct checkpoint *ck, struct error *err);
    void (*free)(struct model *m);
    void (*each)(const struct model *m, model_part *fn, void *context);
    /* n_slots counts only if the model has states */
    struct cache_shape (*cache)(const struct model *m, int n_pages, int n_slots, enum kv_type type);
    uint64_t (*values)(const struct model *m, int max_rows, int max_out);
    uint64_t (*reserve_cost)(const struct model *m, int max_rows);
    int (*reserve)(struct model *m, int max_rows, int max_out);
    void (*begin)(struct model *m, const struct batch *b);
    void (*layer)(struct model *m, const struct batch *b, int layer);
    /* Computes outputs first .. first + n - 1 of the head, in order; the first call also computes what precedes the
     * head. */
    void (*head)(struct model *m, const struct batch *b, int first, int n);
    struct outputs (*end)(const struct model *m);                           /* hidden: of all n_out rows */
    void (*draft)(struct model *m, const struct batch *b, int32_t *drafts); /* only with config.drafts */
    const struct weight *(*output)(const struct model *m);                  /* matrix of the output head */
};

struct model {
    const struct model_ops *ops;
    const struct architecture *architecture;
    const char *prefix;     /* of its metadata keys: the architecture, or the older name in the file */
    struct model_config config;
    struct binder bind;
    struct weight *classes; /* [n_classes, dim] that ranks a hidden state */
};

/* Picks the architecture by the metadata of the (first) file. be NULL: only model_bind() may follow. ERR_UNSUPPORTED
 * "architecture": an unknown one, which the sentence names. */
int model_open(struct mem *mem, struct backend *be, const struct checkpoint *ck, struct model **out, struct error *err);
void model_free(struct model *m); /* accepts NULL */

/* Binds the weights of a file; `more`: others follow. Every weight must be in exactly one of the files. */
int model_bind(struct model *m, struct checkpoint *ck, bool more, struct error *err);
/* Whether a bound tensor is the matrix of one expert or of all experts; a token uses only some of them. */
bool model_of_experts(const struct tensor *t);
/* Between binding and taking: sets the types that the bound matrices of this file, and those of later files, are
 * quantised to. May be called again until they are taken. Routers, rows that are not whole blocks, and types with
 * separate scales stay as they are. */
void model_quantize(struct model *m, struct checkpoint *ck, struct model_types types);
/* Bytes that model_take() allocates for the bound tensors of this file; saturates. */
uint64_t model_take_cost(const struct model *m, const struct checkpoint *ck);
/* Allocates the weights bound in this file. ERR_MEM_LOAD. */
int model_take(struct model *m, struct checkpoint *ck, struct error *err);

/* Call when all data have come: ERR_UNSUPPORTED "quantisation" for what only data tell. */
int model_check(const struct model *m, struct error *err);

/* Calls fn for everything that a forward pass reads beside the configuration, in the architecture's order. */
void model_each(const struct model *m, model_part *fn, void *context);
struct cache_shape model_cache(const struct model *m, int n_pages, int n_slots, enum kv_type type);
/* Bytes of values in the backend's scratch, from its beginning, for batches of at most max_rows rows and max_out
 * outputs; and bytes that model_reserve() allocates beside them. */
uint64_t model_values(const struct model *m, int max_rows, int max_out);
uint64_t model_reserve_cost(const struct model *m, int max_rows);
/* ERR_MEM_LOAD. */
int model_reserve(struct model *m, int max_rows, int max_out);
/* most columns of a row in a product, over all its places; for backend reserve */
int model_max_cols(const struct model *m);

void model_begin(struct model *m, const struct batch *b);
void model_layer(struct model *m, const struct batch *b, int layer); /* 0 .. n_layers - 1, in order */
/* number of parts of the output head, each about as long as a layer; at least one */
int model_parts(const struct model *m, const struct batch *b);
void model_head(struct model *m, const struct batch *b, int part); /* 0 .. parts - 1, in order */
/* Drafts, before a step begins, the token after each row of b, which is a row of that step: drafts [b->n]. `out` says
 * where the hidden state is from which the row's token was sampled: its place among the outputs of the last step. Only
 * on the CPU, and only with config.drafts. */
void model_draft(struct model *m, const struct batch *b, int32_t *drafts);
/* Ends a step. Its outputs can be read when the backend's submit() has arrived. */
struct outputs model_end(struct model *m, const struct batch *b);
/* Copies a row of the output head, or for id -1 - i of the matrix of classes, to out [dim]; returns whether it exists.
 * Not during a step. */
bool model_output_row(struct model *m, int32_t id, float *out);

/* --- for the families --- */

enum { KEY_SIZE = 96 };
/* "PREFIX.name". Returns out. */
const char *model_key(char out[KEY_SIZE], const char *prefix, const char *name);

/* Indexed by enum model_family; in families.c. */
extern const struct model_ops *const families[];
extern const struct model_ops model_qwen3, model_qwen35;

#endif
