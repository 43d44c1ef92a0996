/* SPDX-License-Identifier: MIT
 *
 * What the files of the GPU backend share.
 *
 * The backend holds weights, pages and scratch in buffers of the device. Operations become commands (record.c), several
 * of which may become one (fuse.c). A submit hands them to JavaScript together with the table of the step: what they
 * read beside buffers (tokens, pages, angles). Panels and pages have the CPU's bytes, and every kernel computes what
 * compute/cpu/kernels_scalar.c computes, in the same order, so the results have the same bits (docs/recipes/gpu.md).
 */
#ifndef QUERN_GPU_H
#define QUERN_GPU_H

#include "compute/backend.h"
#include "compute/gpu/port.h"
#include "weights/pack.h"

enum {
    GPU_SLICES = 64,       /* of a matrix */
    GPU_SLICE_ROWS = 64,   /* a slice has a multiple of these rows */
    GPU_STAGING = 8 << 20, /* bytes of packed panels on their way, or of panels that come back to be hashed */
    GPU_HASHES = 8,
    GPU_GETS = 8,        /* requests of one submit; hashes of 1 MiB each */
    GPU_COMMANDS = 2048, /* that wait for a submit; more begin earlier */
    GPU_READS = 256,
    GPU_LAYERS = 512,             /* of a model; a layer has fewer than eight vectors */
    GPU_VECTORS = 8 * (GPU_LAYERS + 128),
    GPU_VECTOR_BYTES = 1 << 18,   /* of a buffer of vectors */
    GPU_SHARED = 8192,            /* buffers of several weights or vectors */
    GPU_SHARED_BYTES = 512 << 20, /* the most of them, unless one weight has more */
};

struct weight {
    const struct dtype *type;
    const struct dtype *from; /* type of the rows that come: the same, or one to quantise */
    int rows, cols;
    size_t panel;               /* bytes of one panel of 8 rows */
    int slice_panels, n_slices; /* panels of a slice, but the last one */
    bool has_rows, has_scales, has_mins;
    uint32_t slice[GPU_SLICES]; /* ids of buffers */
    uint32_t at;                /* word of the buffer at which the only slice begins */
    struct weight *unplaced;    /* the next weight without buffers */
    /* Of types whose scales come apart, until the first operation: the heads of all units, and the next such weight. */
    uint8_t *heads;
    struct weight *next;
    uint32_t *order;  /* [rows / order_rows, cols] weight_order()'s columns, until the first operation */
    int order_rows;
    uint32_t ordered; /* buffer of `order`; 0: columns as they come */
};

/* A kernel can bind two vectors, from different buffers. */
enum gpu_binding { GPU_MATRIX, GPU_PAGES, GPU_BINDINGS };

/* A vector of a model, in a buffer since its first use. */
struct gpu_vector {
    const float *values;
    enum gpu_binding binding;
    uint32_t buffer, at; /* its first word */
};

/* A buffer that gets vectors. */
struct gpu_room {
    uint32_t buffer, used, words;
};

/* A part of the table of the step that further operations use too. */
struct gpu_part {
    const void *at;
    int n;
    uint32_t place; /* 0: none */
};

/* What is to be done with bytes that have come back: they are hashed, or positions of a page after the first n cleared.
 */
struct gpu_hash {
    const uint8_t *bytes;
    uint64_t n;
    uint8_t *out;
};
struct gpu_get {
    uint8_t *bytes;
    int n;
};

struct gpu {
    struct backend base;
    struct mem *mem;
    struct kv_shape kv;
    uint64_t layer_bytes;                  /* of one page */
    uint32_t scratch;                      /* buffer: values, then the parts below */
    uint32_t *pages;                       /* [n_layers] buffers: [n_pages] pages of the layer */
    struct state_shape state;
    uint32_t *states; /* [state.n_layers + 1] buffers: the layer's part of all slots; last, the rest of all slots */
    float *mirror;                         /* where values that are read arrive, at their places in the scratch */
    uint32_t codes, scales, sums, experts; /* places in the scratch of quantised rows, of the expert of each place */
    uint32_t spare;                        /* words from `codes` to the end; free outside of products */
    int max_rows, max_cols;
    uint8_t *staging;             /* [GPU_STAGING] */
    struct gpu_command *commands; /* [GPU_COMMANDS] */
    int n_commands;
    uint32_t *table; /* [table_room] */
    int n_table, table_room;
    struct gpu_part rows, runs, cosine, sine; /* in the table */
    struct gpu_read reads[GPU_READS];
    int n_reads;
    struct gpu_hash hashes[GPU_HASHES];
    struct gpu_get gets[GPU_GETS];
    int n_hashes, n_gets;
    struct weight *apart;       /* weights that have heads here */
    struct weight *unplaced;    /* weights without buffers, in the order in which they were made */
    uint32_t *shared;           /* [GPU_SHARED] buffers that are released at the end */
    int n_shared;
    struct gpu_vector *vectors; /* [GPU_VECTORS], ordered by use */
    int n_vectors, next_vector;
    struct gpu_room rooms[GPU_BINDINGS];
};

/* Bytes of part i of a slot: of a layer, or of what follows the layers. */
static inline uint64_t gpu_state_bytes(const struct state_shape *s, int i)
{
    return i < s->n_layers ? s->layer_bytes : s->bytes - (uint64_t)s->n_layers * s->layer_bytes;
}

/* Values of one head of an encoder: keys [pages][head_dim][KV_PAGE], then values [pages * KV_PAGE][head_dim]. */
static inline uint64_t gpu_head_words(const struct heads *s)
{
    return ((uint64_t)s->rows + KV_PAGE - 1) / KV_PAGE * KV_PAGE * 2 * (uint64_t)s->head_dim;
}

static inline int gpu_panels(int rows) { return (rows + PANEL_ROWS - 1) / PANEL_ROWS; }

/* shared.c */
/* A buffer of its own for what is released at the end. */
uint32_t gpu_shared(struct gpu *g, uint64_t bytes);
/* Where a model's vector of n values lies, which never changes. */
struct gpu_vector gpu_vector_of(struct gpu *g, enum gpu_binding binding, const float *values, int n);

/* weights.c */
struct weight *gpu_weight_new(struct backend *b, const struct dtype *type, int rows, int cols);
void gpu_weight_free(struct backend *b, struct weight *w);
void gpu_weight_from(struct backend *b, struct weight *w, const struct dtype *type);
uint64_t gpu_weight_cost(const struct backend *b, const struct dtype *type, int rows, int cols);
void gpu_weight_put(struct backend *b, struct weight *w, int row, int n, const uint8_t *rows);
void gpu_weight_put_columns(struct backend *b, struct weight *w, int row, int n, int col, int n_cols,
                            const uint8_t *rows, size_t row_bytes);
bool gpu_weight_order(struct backend *b, struct weight *w, int row, int n_rows, const uint32_t *columns);
void gpu_weight_part(struct backend *b, struct weight *w, int row, int n_rows, int col, int n_cols,
                     enum weight_part part, float value);
/* Puts heads and orders on the device; all have come. */
void gpu_weights_end(struct gpu *g);
struct weight_facts gpu_weight_facts(const struct backend *b, const struct weight *w);

void gpu_weight_hash(struct backend *b, const struct weight *w, uint64_t from, uint64_t n, uint8_t *out);

/* record.c */
void gpu_put_heads(struct gpu *g, const struct weight *w, int slice, uint32_t heads);
void gpu_record(struct gpu *g, const struct op *ops, int n);
/* Asks for bytes of a buffer, which come to `to` with the next submit. */
void gpu_ask(struct gpu *g, uint32_t buffer, uint64_t offset, uint64_t bytes, void *to);
void gpu_begin(struct gpu *g); /* begins all commands and reads that wait */

/* fuse.c */
void gpu_fuse(struct gpu *g); /* the last command, which is complete, may become a part of one before it */

#endif
