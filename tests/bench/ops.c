/* SPDX-License-Identifier: MIT
 *
 * Times the operations of src/compute/ops.h with Qwen3-0.6B's dimensions, one cell (operation, length) at a time.
 *
 * The length is a number of rows for operations by row, and of positions for attention and blocks: a prefill cell is
 * the chunk of up to 64 rows that ends at the length, a decode cell the last row. In a batch the length is the number
 * of rows, each of its own conversation with BATCH_PAST positions. Weights and pages rotate through several copies, so
 * that they come from memory as in a model. Natively this is a program that reads requests for cells line by line
 * (main); as wasm its functions are called.
 */
#include "blocks.h"
#include "ops.h"

#include <stdlib.h>

#ifdef __EMSCRIPTEN__
#include <emscripten/emscripten.h>
#define EXPORT EMSCRIPTEN_KEEPALIVE
#else
#define EXPORT
#endif

enum {
    DIM = 1024, FFN = 3072, HEADS = 16, KV_HEADS = 8, HEAD = 128, Q_DIM = HEADS * HEAD, KV_DIM = KV_HEADS * HEAD,
    LENGTH_MAX = 4096, CHUNK = 64,
    BATCH_MAX = 16, BATCH_PAST = LENGTH_MAX / BATCH_MAX,
    EXPERTS = 128, USED = 8, EXPERT = 256, /* as many as in Qwen3-30B-A3B, with about the same ratio to DIM */
    LAYERS = 4,               /* copies of pages and of a block's weights */
    MATRIX_BYTES = 64 << 20,  /* all copies of one matrix together */
    COPIES_MAX = 64, SAMPLES_MAX = 25,
};

struct layer {
    struct weight *q, *k, *v, *o, *gate, *up, *down;
};

/* The matrices of a mixture of experts, stacked. */
struct mixture {
    struct weight *router, *gate, *up, *down;
};

/* weights of a series: matrices, layers, a mixture, layers and a mixture */
enum weights { PLAIN, LAYER, MIXTURE, BOTH };

struct bench {
    struct mem mem;
    struct pool *pool;
    struct backend *be;
    struct handle x, y, gate, up, q, k, v, o; /* [LENGTH_MAX, widest use] */
    float *cosine, *sine, *norm;        /* [LENGTH_MAX, HEAD / 2] twice, [LENGTH_MAX] */
    int32_t pages[LENGTH_MAX / KV_PAGE];
    struct kv_row rows[LENGTH_MAX];
    struct kv_row batch[BATCH_MAX];
    struct handle scores, places;       /* [BATCH_MAX, EXPERTS], [BATCH_MAX * USED, DIM] */
    struct route route;
    const char *type;                   /* of the present weights */
    struct weight *matrices[COPIES_MAX]; /* [FFN, DIM] each */
    int n_matrices;
    struct layer layers[LAYERS];
    struct mixture mixture;
    enum weights there;
    unsigned turn;                      /* index of the next copy */
    char line[400];
};

/* Multiply-accumulates of one call, and the least bytes that it reads and writes. */
struct work {
    double macs, bytes;
};

typedef void call_fn(struct bench *b, int length);
typedef struct work work_fn(const struct bench *b, int length);

/* --- operations by row ------------------------------------------------------------------------------------ */

static void call_rmsnorm(struct bench *b, int n)
{
    RUN(b->be, OP_RMSNORM, n, DIM, .y = b->y, .x = b->x, .vector = b->norm, .eps = 1e-6f);
}
static struct work work_rmsnorm(const struct bench *b, int n) { return (void)b, (struct work){0, 8.0 * n * DIM}; }

static void call_rope(struct bench *b, int n)
{
    RUN(b->be, OP_ROPE, n, Q_DIM, .y = b->q, .cosine = b->cosine, .sine = b->sine, .heads = HEADS, .rot = HEAD);
}

static struct work work_rope(const struct bench *b, int n)
{
    return (void)b, (struct work){0, 8.0 * n * Q_DIM + 4.0 * n * HEAD};
}

static void call_swiglu(struct bench *b, int n) { RUN(b->be, OP_SWIGLU, n, FFN, .y = b->gate, .x = b->up); }
static struct work work_swiglu(const struct bench *b, int n) { return (void)b, (struct work){0, 12.0 * n * FFN}; }

static void call_matmul(struct bench *b, int n)
{
    RUN(b->be, OP_MATMUL, n, DIM, .x = b->x, .products = {{b->y, b->matrices[b->turn++ % (unsigned)b->n_matrices]}});
}

static struct work work_matmul(const struct bench *b, int n)
{
    return (struct work){(double)n * FFN * DIM,
                         (double)b->be->ops->weight_facts(b->be, b->matrices[0]).bytes + 4.0 * n * (FFN + DIM)};
}

/* --- attention ------------------------------------------------------------------------------------------------ */

static int layer_turn(struct bench *b) { return (int)(b->turn++ % LAYERS); }

/* Appends keys and values of the first n rows. */
static void append(struct bench *b, int l, int n)
{
    RUN(b->be, OP_KV_APPEND, n, KV_DIM, .x = b->k, .z = b->v, .kv = b->rows, .layer = l);
}

static void call_kv_append(struct bench *b, int n) { append(b, layer_turn(b), n); }
static struct work work_kv_append(const struct bench *b, int n) { return (void)b, (struct work){0, 12.0 * n * KV_DIM}; }

static void attend(struct bench *b, int length, int n)
{
    RUN(b->be, OP_ATTENTION, n, Q_DIM, .y = b->o, .x = b->q, .kv = b->rows + length - n, .layer = layer_turn(b));
}

static struct work attend_work(int length, int n)
{
    double pairs = 0;
    for (int i = length - n; i < length; i++) pairs += i + 1;
    return (struct work){pairs * 2 * Q_DIM, 4.0 * length * KV_DIM};
}

static int chunk_of(int length) { return min_int(length, CHUNK); }
static int one_of(int length) { return (void)length, 1; }

static void call_attention_prefill(struct bench *b, int length) { attend(b, length, chunk_of(length)); }
static struct work work_attention_prefill(const struct bench *b, int length)
{
    return (void)b, attend_work(length, chunk_of(length));
}
static void call_attention_decode(struct bench *b, int length) { attend(b, length, 1); }
static struct work work_attention_decode(const struct bench *b, int length) { return (void)b, attend_work(length, 1); }

/* --- a transformer block: src/models/qwen3.c's layer ---------------------------------------------------------- */

static void add_attention(const struct bench *b, int l, struct handle x, const struct kv_row *rows, int n,
                          struct op_list *ops)
{
    const struct layer *w = &b->layers[l];
    add_op(ops, OP_RMSNORM, n, DIM, .y = b->y, .x = x, .vector = b->norm, .eps = 1e-6f);
    add_op(ops, OP_MATMUL, n, DIM, .x = b->y,
           .products = {product(b->q, w->q), product(b->k, w->k), product(b->v, w->v)});
    add_op(ops, OP_RMSNORM, n * HEADS, HEAD, .y = b->q, .x = b->q, .vector = b->norm, .eps = 1e-6f);
    add_op(ops, OP_RMSNORM, n * KV_HEADS, HEAD, .y = b->k, .x = b->k, .vector = b->norm, .eps = 1e-6f);
    add_op(ops, OP_ROPE, n, Q_DIM, .y = b->q, .cosine = b->cosine, .sine = b->sine, .heads = HEADS, .rot = HEAD);
    add_op(ops, OP_ROPE, n, KV_DIM, .y = b->k, .cosine = b->cosine, .sine = b->sine, .heads = KV_HEADS, .rot = HEAD);
    add_op(ops, OP_KV_APPEND, n, KV_DIM, .x = b->k, .z = b->v, .kv = rows, .layer = l);
    add_op(ops, OP_ATTENTION, n, Q_DIM, .y = b->o, .x = b->q, .kv = rows, .layer = l);
    add_op(ops, OP_MATMUL, n, Q_DIM, .x = b->o, .products = {product(b->y, w->o)});
    add_op(ops, OP_ADD, n, DIM, .y = x, .x = b->y);
}

static void add_feed_forward(const struct bench *b, int l, struct handle x, int n, struct op_list *ops)
{
    const struct layer *w = &b->layers[l];
    add_op(ops, OP_RMSNORM, n, DIM, .y = b->y, .x = x, .vector = b->norm, .eps = 1e-6f);
    add_op(ops, OP_MATMUL, n, DIM, .x = b->y, .products = {product(b->gate, w->gate), product(b->up, w->up)});
    add_op(ops, OP_SWIGLU, n, FFN, .y = b->gate, .x = b->up);
    add_op(ops, OP_MATMUL, n, FFN, .x = b->gate, .products = {product(b->y, w->down)});
    add_op(ops, OP_ADD, n, DIM, .y = x, .x = b->y);
}

/* The same with a mixture of experts. */
static void add_experts(const struct bench *b, struct handle x, int n, struct op_list *ops)
{
    const struct mixture *w = &b->mixture;
    const struct route *r = &b->route;
    int places = n * USED;
    add_op(ops, OP_RMSNORM, n, DIM, .y = b->y, .x = x, .vector = b->norm, .eps = 1e-6f);
    add_op(ops, OP_MATMUL, n, DIM, .x = b->y, .products = {product(b->scores, w->router)});
    add_op(ops, OP_ROUTE, n, EXPERTS, .y = b->scores, .route = r, .renormalise = true);
    add_op(ops, OP_GATHER, n, DIM, .y = b->places, .x = b->y, .route = r);
    add_op(ops, OP_EXPERTS, places, DIM, .x = b->places, .products = {product(b->gate, w->gate), product(b->up, w->up)},
           .route = r);
    add_op(ops, OP_SWIGLU, places, EXPERT, .y = b->gate, .x = b->up);
    add_op(ops, OP_EXPERTS, places, EXPERT, .x = b->gate, .products = {product(b->places, w->down)}, .route = r);
    add_op(ops, OP_COMBINE, n, DIM, .y = b->y, .x = b->places, .route = r);
    add_op(ops, OP_ADD, n, DIM, .y = x, .x = b->y);
}

/* Runs the next layer with n rows. */
static void run_layer(struct bench *b, const struct kv_row *rows, int n)
{
    struct op_list ops = {0};
    int l = layer_turn(b);
    add_attention(b, l, b->x, rows, n, &ops);
    add_feed_forward(b, l, b->x, n, &ops);
    backend_run_list(b->be, &ops);
}

static void run_block(struct bench *b, int length, int n) { run_layer(b, b->rows + length - n, n); }

/* Adds a product of n rows, which reads all bytes of a weight. */
static void add_product(const struct bench *b, const struct weight *w, int n, struct work *sum)
{
    struct weight_facts facts = b->be->ops->weight_facts(b->be, w);
    sum->macs += (double)n * facts.rows * facts.cols;
    sum->bytes += (double)facts.bytes;
}

static struct work block_work(const struct bench *b, int length, int n)
{
    const struct layer *w = &b->layers[0];
    const struct weight *all[] = {w->q, w->k, w->v, w->o, w->gate, w->up, w->down};
    struct work sum = attend_work(length, n);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) add_product(b, all[i], n, &sum);
    return sum;
}

static void call_block_prefill(struct bench *b, int length) { run_block(b, length, chunk_of(length)); }
static struct work work_block_prefill(const struct bench *b, int length)
{
    return block_work(b, length, chunk_of(length));
}
static void call_block_decode(struct bench *b, int length) { run_block(b, length, 1); }
static struct work work_block_decode(const struct bench *b, int length) { return block_work(b, length, 1); }

/* --- batches: rows of many conversations ------------------------------------------------------------------------ */

/* Different rows each time, so that different experts work. */
static struct handle batch_rows(const struct bench *b)
{
    return handle_at(b->x, (size_t)(b->turn * BATCH_MAX % (LENGTH_MAX - BATCH_MAX)) * DIM);
}

static void call_feed_forward(struct bench *b, int n)
{
    struct op_list ops = {0};
    add_feed_forward(b, layer_turn(b), b->x, n, &ops);
    backend_run_list(b->be, &ops);
}

static void call_experts(struct bench *b, int n)
{
    struct op_list ops = {0};
    b->turn++;
    add_experts(b, batch_rows(b), n, &ops);
    backend_run_list(b->be, &ops);
}

static void call_layer(struct bench *b, int n) { run_layer(b, b->batch, n); }

static void call_expert_layer(struct bench *b, int n)
{
    const struct handle x = batch_rows(b);
    struct op_list ops = {0};
    add_attention(b, layer_turn(b), x, b->batch, n, &ops);
    add_experts(b, x, n, &ops);
    backend_run_list(b->be, &ops);
}

static struct work work_feed_forward(const struct bench *b, int n)
{
    const struct layer *w = &b->layers[0];
    struct work sum = {0};
    add_product(b, w->gate, n, &sum), add_product(b, w->up, n, &sum), add_product(b, w->down, n, &sum);
    return sum;
}

/* Counts the experts that work if no two rows share one. */
static struct work work_experts(const struct bench *b, int n)
{
    const struct mixture *w = &b->mixture;
    struct work sum = {0}, all = {0};
    double share = (double)min_int(n * USED, EXPERTS) / EXPERTS;
    add_product(b, w->router, n, &sum);
    add_product(b, w->gate, n, &all), add_product(b, w->up, n, &all), add_product(b, w->down, n, &all);
    return (struct work){sum.macs + all.macs * USED / EXPERTS, sum.bytes + all.bytes * share};
}

static struct work plus(struct work a, struct work b) { return (struct work){a.macs + b.macs, a.bytes + b.bytes}; }

static struct work work_attention_batch(const struct bench *b, int n)
{
    const struct layer *w = &b->layers[0];
    struct work sum = {2.0 * n * BATCH_PAST * Q_DIM, 4.0 * n * BATCH_PAST * KV_DIM};
    add_product(b, w->q, n, &sum), add_product(b, w->k, n, &sum), add_product(b, w->v, n, &sum),
        add_product(b, w->o, n, &sum);
    return sum;
}

static struct work work_layer(const struct bench *b, int n)
{
    return plus(work_attention_batch(b, n), work_feed_forward(b, n));
}
static struct work work_expert_layer(const struct bench *b, int n)
{
    return plus(work_attention_batch(b, n), work_experts(b, n));
}

/* --- the series -------------------------------------------------------------------------------------------------- */

static int all_of(int length) { return length; }

static const struct series {
    const char *name, *type;   /* type: of the weights; NULL: no weights */
    call_fn *call;
    work_fn *work;
    int (*rows)(int length);   /* rows computed by one call */
    enum weights weights;
    int most;                  /* largest length */
} all_series[] = {
    {"rmsnorm", NULL, call_rmsnorm, work_rmsnorm, all_of, PLAIN, LENGTH_MAX},
    {"rope", NULL, call_rope, work_rope, all_of, PLAIN, LENGTH_MAX},
    {"swiglu", NULL, call_swiglu, work_swiglu, all_of, PLAIN, LENGTH_MAX},
    {"kv_append", NULL, call_kv_append, work_kv_append, all_of, PLAIN, LENGTH_MAX},
    {"attention, prefill", NULL, call_attention_prefill, work_attention_prefill, chunk_of, PLAIN, LENGTH_MAX},
    {"attention, decode", NULL, call_attention_decode, work_attention_decode, one_of, PLAIN, LENGTH_MAX},
    {"matmul F32", "F32", call_matmul, work_matmul, all_of, PLAIN, LENGTH_MAX},
    {"matmul F16", "F16", call_matmul, work_matmul, all_of, PLAIN, LENGTH_MAX},
    {"matmul BF16", "BF16", call_matmul, work_matmul, all_of, PLAIN, LENGTH_MAX},
    {"matmul Q8_0", "Q8_0", call_matmul, work_matmul, all_of, PLAIN, LENGTH_MAX},
    {"matmul Q4_0", "Q4_0", call_matmul, work_matmul, all_of, PLAIN, LENGTH_MAX},
    {"matmul Q4_K", "Q4_K", call_matmul, work_matmul, all_of, PLAIN, LENGTH_MAX},
    {"matmul Q6_K", "Q6_K", call_matmul, work_matmul, all_of, PLAIN, LENGTH_MAX},
    {"block Q8_0, prefill", "Q8_0", call_block_prefill, work_block_prefill, chunk_of, LAYER, LENGTH_MAX},
    {"block Q8_0, decode", "Q8_0", call_block_decode, work_block_decode, one_of, LAYER, LENGTH_MAX},
    {"block Q4_K, prefill", "Q4_K", call_block_prefill, work_block_prefill, chunk_of, LAYER, LENGTH_MAX},
    {"block Q4_K, decode", "Q4_K", call_block_decode, work_block_decode, one_of, LAYER, LENGTH_MAX},
    {"feed-forward Q8_0, batch", "Q8_0", call_feed_forward, work_feed_forward, all_of, LAYER, BATCH_MAX},
    {"experts Q8_0, batch", "Q8_0", call_experts, work_experts, all_of, MIXTURE, BATCH_MAX},
    {"layer Q8_0, batch", "Q8_0", call_layer, work_layer, all_of, LAYER, BATCH_MAX},
    {"layer with experts Q8_0, batch", "Q8_0", call_expert_layer, work_expert_layer, all_of, BOTH, BATCH_MAX},
    {"feed-forward Q4_K, batch", "Q4_K", call_feed_forward, work_feed_forward, all_of, LAYER, BATCH_MAX},
    {"experts Q4_K, batch", "Q4_K", call_experts, work_experts, all_of, MIXTURE, BATCH_MAX},
    {"layer Q4_K, batch", "Q4_K", call_layer, work_layer, all_of, LAYER, BATCH_MAX},
    {"layer with experts Q4_K, batch", "Q4_K", call_expert_layer, work_expert_layer, all_of, BOTH, BATCH_MAX},
};
enum { SERIES = sizeof all_series / sizeof *all_series };

/* --- weights ------------------------------------------------------------------------------------------------------ */

static const struct ref_type *type_of(const char *name)
{
    const struct ref_type *t = ref_types;
    while (strcmp(t->name, name) != 0) t++;
    return t;
}

/* Makes a matrix from `codes`, its rows in file form. */
static struct weight *matrix(struct bench *b, const struct ref_type *t, const uint8_t *codes, int rows, int cols)
{
    struct weight *w = b->be->ops->weight_new(b->be, dtype_by_gguf(t->gguf_id), rows, cols);
    if (!w) exit(2);
    b->be->ops->weight_put(b->be, w, 0, rows, codes);
    return w;
}

/* The same with more rows: `codes` are FFN rows of the same size, which are repeated. */
static struct weight *stack(struct bench *b, const struct ref_type *t, const uint8_t *codes, int rows, int cols)
{
    struct weight *w = b->be->ops->weight_new(b->be, dtype_by_gguf(t->gguf_id), rows, cols);
    if (!w) exit(2);
    for (int row = 0; row < rows; row += FFN) b->be->ops->weight_put(b->be, w, row, min_int(FFN, rows - row), codes);
    return w;
}

static void free_all(struct bench *b, struct weight **all, int n)
{
    for (int i = 0; i < n; i++) b->be->ops->weight_free(b->be, all[i]);
}

static void free_weights(struct bench *b)
{
    struct mixture *m = &b->mixture;
    free_all(b, b->matrices, b->n_matrices);
    b->n_matrices = 0;
    for (int l = 0; l < LAYERS; l++) {
        struct layer *w = &b->layers[l];
        free_all(b, (struct weight *[]){w->q, w->k, w->v, w->o, w->gate, w->up, w->down}, 7);
        *w = (struct layer){0};
    }
    free_all(b, (struct weight *[]){m->router, m->gate, m->up, m->down}, 4);
    *m = (struct mixture){0};
    b->type = NULL;
}

static void make_mixture(struct bench *b, const struct ref_type *t, const uint8_t *codes)
{
    uint64_t seed = 6;
    uint8_t *scores = make_rows(type_of("F32"), BLOCKS_RANDOM, &seed, EXPERTS, DIM);
    b->mixture = (struct mixture){.router = matrix(b, type_of("F32"), scores, EXPERTS, DIM),
                                  .gate = stack(b, t, codes, EXPERTS * EXPERT, DIM),
                                  .up = stack(b, t, codes, EXPERTS * EXPERT, DIM),
                                  .down = stack(b, t, codes, EXPERTS * DIM, EXPERT)};
    free(scores);
}

/* Makes the weights of a series unless they exist. All copies have the same numbers. */
static void make_weights(struct bench *b, const struct series *s)
{
    if (!s->type || (b->type && strcmp(b->type, s->type) == 0 && b->there == s->weights)) return;
    free_weights(b);
    const struct ref_type *t = type_of(s->type);
    uint64_t seed = 5;
    uint8_t *codes = make_rows(t, BLOCKS_RANDOM, &seed, FFN, DIM); /* as many as in the widest matrix */
    int copies = s->weights == PLAIN ? min_int((int)(MATRIX_BYTES / (FFN * ref_row_bytes(t, DIM))) + 1, COPIES_MAX) : 0;
    for (int l = 0; (s->weights == LAYER || s->weights == BOTH) && l < LAYERS; l++)
        b->layers[l] = (struct layer){.q = matrix(b, t, codes, Q_DIM, DIM),
                                      .k = matrix(b, t, codes, KV_DIM, DIM),
                                      .v = matrix(b, t, codes, KV_DIM, DIM),
                                      .o = matrix(b, t, codes, DIM, Q_DIM),
                                      .gate = matrix(b, t, codes, FFN, DIM),
                                      .up = matrix(b, t, codes, FFN, DIM),
                                      .down = matrix(b, t, codes, DIM, FFN)};
    if (s->weights == MIXTURE || s->weights == BOTH) make_mixture(b, t, codes);
    while (b->n_matrices < copies) b->matrices[b->n_matrices++] = matrix(b, t, codes, FFN, DIM);
    free(codes);
    b->type = s->type;
    b->there = s->weights;
}

/* --- life ------------------------------------------------------------------------------------------------------ */

static float *floats(struct bench *b, int width, float scale)
{
    uint64_t seed = 9;
    float *out = mem_array(&b->mem, (uint64_t)LENGTH_MAX * (uint64_t)width, sizeof *out);
    if (!out) exit(2);
    for (int i = 0; i < LENGTH_MAX * width; i++) out[i] = scale * random_unit(&seed);
    return out;
}

/* Handles of rows filled with numbers; and of n elements of 4 bytes for results. */
static struct handle filled(struct bench *b, int width) { return handle_of(b->be, floats(b, width, 1)); }

static struct handle room(struct bench *b, uint64_t n)
{
    void *out = mem_array(&b->mem, n, 4);
    if (!out) exit(2);
    return handle_of(b->be, out);
}

static void make_inputs(struct bench *b)
{
    float *gate = floats(b, FFN, 1), *up = floats(b, FFN, 1);
    b->x = filled(b, DIM), b->y = filled(b, FFN), b->gate = handle_of(b->be, gate), b->up = handle_of(b->be, up);
    b->q = filled(b, Q_DIM), b->k = filled(b, KV_DIM), b->v = filled(b, KV_DIM), b->o = filled(b, Q_DIM);
    b->cosine = floats(b, HEAD / 2, 0), b->sine = floats(b, HEAD / 2, 0), b->norm = floats(b, 1, 1);
    b->scores = room(b, BATCH_MAX * EXPERTS), b->places = room(b, BATCH_MAX * USED * DIM);
    b->route =
        (struct route){EXPERTS, USED, room(b, EXPERTS + 1), room(b, BATCH_MAX * USED), room(b, BATCH_MAX * USED)};
    /* a rotation, so that repeated calls do not grow the values */
    for (int i = 0; i < LENGTH_MAX * HEAD / 2; i++) b->cosine[i] = 0.8f, b->sine[i] = 0.6f;
    /* a stable fixed point of gate = silu(gate) * up, since the calls are repeated */
    for (int i = 0; i < LENGTH_MAX * FFN; i++) {
        gate[i] = -1 - 0.8f * gate[i];
        up[i] = 1 + expf(-gate[i]);
    }
    for (int i = 0; i < LENGTH_MAX / KV_PAGE; i++) b->pages[i] = i;
    for (int i = 0; i < LENGTH_MAX; i++) b->rows[i] = (struct kv_row){b->pages, i};
    for (int i = 0; i < BATCH_MAX; i++)
        b->batch[i] = (struct kv_row){b->pages + i * (BATCH_PAST / KV_PAGE), BATCH_PAST - 1};
}

/* NULL when memory is short. */
EXPORT struct bench *ops_open(int threads)
{
    const struct reserve r = {.kv = {.n_layers = LAYERS,
                                     .n_heads = HEADS,
                                     .n_kv_heads = KV_HEADS,
                                     .head_dim = HEAD,
                                     .n_pages = LENGTH_MAX / KV_PAGE},
                              .max_rows = LENGTH_MAX,
                              .max_cols = FFN};
    struct bench *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    b->pool = pool_new(&b->mem, threads);
    b->be = b->pool ? backend_cpu(&b->mem, b->pool, false) : NULL;
    if (!b->be || b->be->ops->reserve(b->be, &r)) return NULL;
    make_inputs(b);
    for (int l = 0; l < LAYERS; l++) append(b, l, LENGTH_MAX);
    return b;
}

EXPORT const char *ops_name(struct bench *b) { return b->be->ops->name(b->be); }
EXPORT int ops_threads(struct bench *b) { return pool_threads(b->pool); }

/* NULL after the last. */
EXPORT const char *ops_series(int i) { return i < SERIES ? all_series[i].name : NULL; }
EXPORT int ops_most(int i) { return all_series[i].most; }

/* --- one cell -------------------------------------------------------------------------------------------------- */

/* Milliseconds of one call, measured over `calls` calls. */
static double time_calls(struct bench *b, const struct series *s, int length, int calls)
{
    double begin = now_ms();
    for (int i = 0; i < calls; i++) s->call(b, length);
    return (now_ms() - begin) / calls;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Measures for about budget_ms and sorts the samples; returns their number. A sample is at least a millisecond of
 * calls. A call longer than the budget is made twice, and both count: shorter lengths have warmed it up. */
static int take_samples(struct bench *b, const struct series *s, int length, double budget_ms,
                        double samples[SAMPLES_MAX])
{
    double begin = now_ms(), warmed;
    int calls = 0;
    do { /* engines recompile functions that run often */
        s->call(b, length);
        warmed = now_ms() - begin;
        calls++;
    } while (warmed < budget_ms / 10);
    double once = warmed / calls; /* mean of many: a browser's clock is coarse */
    calls = (int)(1 / once) + 1;
    int n = max_int(2, min_int(SAMPLES_MAX, (int)(budget_ms / (once * calls))));
    samples[0] = once;
    for (int i = once > budget_ms; i < n; i++) samples[i] = time_calls(b, s, length, calls);
    qsort(samples, (size_t)n, sizeof *samples, compare);
    return n;
}

/* Measures a cell; returns a JSON object, borrowed until the next call. */
EXPORT const char *ops_cell(struct bench *b, int series, int length, double budget_ms)
{
    const struct series *s = &all_series[series];
    double samples[SAMPLES_MAX];
    make_weights(b, s);
    int n = take_samples(b, s, length, budget_ms, samples);
    struct work w = s->work(b, length);
    double median = (samples[(n - 1) / 2] + samples[n / 2]) / 2;
    snprintf(
        b->line, sizeof b->line,
        "{\"series\":\"%s\",\"length\":%d,\"rows\":%d,\"min\":%.6g,\"median\":%.6g,\"samples\":%d,\"macs\":%.0f,\"bytes\":%.0f}",
        s->name, length, s->rows(length), samples[0], median, n, w.macs, w.bytes);
    return b->line;
}

#ifndef __EMSCRIPTEN__
/* ops THREADS: prints its setup, then answers each line "series length budget_ms" with a cell. */
int main(int argc, char **argv)
{
    struct bench *b = ops_open(argc > 1 ? atoi(argv[1]) : 1);
    char line[100];
    int series, length;
    double budget;
    if (!b) return 2;
    printf("{\"variant\":\"%s\",\"threads\":%d}\n", ops_name(b), ops_threads(b));
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) && sscanf(line, "%d %d %lf", &series, &length, &budget) == 3) {
        if (!ops_series(series) || length < 1 || length > ops_most(series)) return 2;
        puts(ops_cell(b, series, length, budget));
        fflush(stdout);
    }
    return 0;
}
#endif
