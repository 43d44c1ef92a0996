/* SPDX-License-Identifier: MIT
 *
 * Operations become commands. A command is complete when the next one is begun, and then fuse.c sees it.
 *
 * Whatever an operation's pointers name is copied into the table of the step at once; what the operations of all layers
 * name again (rows of conversations, angles) is copied once. If the list or the table is full, what waits begins
 * earlier: the device computes everything in order.
 */
#include "compute/gpu/gpu.h"

#include <math.h>
#include <string.h>

enum {
    FEW = 8,    /* rows of a product up to which each has its own workgroups */
    LANES = 64, /* of a workgroup of small kernels */
    TILE_ROWS = 64,
    TILE_TOKENS = 32,
};

static uint32_t word(struct handle h) { return (uint32_t)(h.at / sizeof(uint32_t)); }
static uint32_t groups(uint64_t n, uint64_t each) { return (uint32_t)((n + each - 1) / each); }

/* --- the table of the step ----------------------------------------------------------------------------------- */

static void forget_parts(struct gpu *g) { g->rows = g->runs = g->cosine = g->sine = (struct gpu_part){0}; }

void gpu_begin(struct gpu *g)
{
    gpu_fuse(g);
    if (g->n_commands || g->n_reads)
        gpu_submit(g->scratch, g->commands, g->n_commands, g->table, g->n_table, g->reads, g->n_reads);
    g->n_commands = g->n_reads = 0;
    g->n_table = 1; /* place 0 is none */
    forget_parts(g);
}

void gpu_ask(struct gpu *g, uint32_t buffer, uint64_t offset, uint64_t bytes, void *to)
{
    if (g->n_reads == GPU_READS) gpu_begin(g);
    g->reads[g->n_reads++] = (struct gpu_read){buffer, (uint32_t)offset, (uint32_t)bytes, (uintptr_t)to};
}

/* Makes room for an operation: n words of the table, and as many commands as one operation can have. */
static void make_room(struct gpu *g, int n)
{
    if (g->n_table + n > g->table_room || g->n_commands + OP_PRODUCTS * (1 + GPU_SLICES) > GPU_COMMANDS) gpu_begin(g);
}

static uint32_t table_add(struct gpu *g, const void *words, int n)
{
    uint32_t at = (uint32_t)g->n_table;
    memcpy(g->table + at, words, (size_t)n * sizeof *g->table);
    g->n_table += n;
    return at;
}

/* The place of angles [n] in the table. */
static uint32_t angles(struct gpu *g, struct gpu_part *part, const float *values, int n)
{
    if (part->at != values || part->n != n) *part = (struct gpu_part){values, n, table_add(g, values, n)};
    return part->place;
}

static int pages_of(const struct kv_row *row) { return row->index / KV_PAGE + 1; }

/* Whether row i has the pages of the row before it, of which it may see more. */
static bool same_pages(const struct kv_row *rows, int i) { return i > 0 && rows[i].pages == rows[i - 1].pages; }

/* Words that rows need in the table: two for each row, then the pages of each sequence, as many as its last row sees.
 */
static int rows_words(const struct kv_row *rows, int n)
{
    int words = 2 * n;
    for (int i = 0; i < n; i++)
        if (i == n - 1 || !same_pages(rows, i + 1)) words += pages_of(&rows[i]);
    return words;
}

/* The place of rows in the table: of each its position, and the place of its pages. */
static uint32_t place_rows(struct gpu *g, const struct kv_row *rows, int n)
{
    if (g->rows.at == rows && g->rows.n == n) return g->rows.place;
    uint32_t at = (uint32_t)g->n_table, pages = at + 2 * (uint32_t)n;
    for (int i = 0; i < n; i++) {
        g->table[at + 2 * (uint32_t)i] = (uint32_t)rows[i].index;
        g->table[at + 2 * (uint32_t)i + 1] = pages;
        if (i < n - 1 && same_pages(rows, i + 1)) continue;
        memcpy(g->table + pages, rows[i].pages, (size_t)pages_of(&rows[i]) * sizeof *g->table);
        pages += (uint32_t)pages_of(&rows[i]);
    }
    g->n_table = (int)pages;
    g->rows = (struct gpu_part){rows, n, at};
    return at;
}

/* Words that runs need in the table: three for each row, the end of each chain, four for each run. */
static int runs_words(const struct op *op) { return 3 * op->n + 1 + 5 * op->n_runs; }

/* Runs of one sequence that follow each other are a chain. */
static uint32_t chain_count(const struct op *op)
{
    uint32_t n = 0;
    for (int i = 0; i < op->n_runs; i++) n += !run_goes_on(op->runs, i);
    return n;
}

/* The place of runs in the table. Slots are counted from 1, and 0 is none. First of each row: the first row of its
 * chain, the slot from which the chain starts, the slot that gets the state after the row; then the runs: first row,
 * rows, the slots from and to; then of each chain the first run, and the number of runs. */
static uint32_t place_runs(struct gpu *g, const struct op *op)
{
    if (g->runs.at == op->runs && g->runs.n == op->n_runs) return g->runs.place;
    uint32_t at = (uint32_t)g->n_table, chain[2] = {0}, *row = g->table + at, *run = row + 3 * op->n,
             *end = run + 4 * op->n_runs;
    for (int i = 0; i < op->n_runs; i++) {
        const struct state_run *r = &op->runs[i];
        if (!run_goes_on(op->runs, i)) {
            *end++ = (uint32_t)i;
            chain[0] = (uint32_t)r->first, chain[1] = (uint32_t)(r->from + 1);
        }
        for (int t = 0; t < r->n; t++, row += 3)
            row[0] = chain[0], row[1] = chain[1], row[2] = t == r->n - 1 ? (uint32_t)(r->to + 1) : 0;
        run[0] = (uint32_t)r->first, run[1] = (uint32_t)r->n;
        run[2] = (uint32_t)(r->from + 1), run[3] = (uint32_t)(r->to + 1);
        run += 4;
    }
    *end++ = (uint32_t)op->n_runs;
    g->n_table = (int)(end - g->table);
    g->runs = (struct gpu_part){op->runs, op->n_runs, at};
    return at;
}

/* --- commands ---------------------------------------------------------------------------------------------------- */

static struct gpu_command *command(struct gpu *g, enum gpu_kernel kernel, uint32_t x, uint32_t y, uint32_t z)
{
    gpu_fuse(g);
    struct gpu_command *c = &g->commands[g->n_commands++];
    *c = (struct gpu_command){.kernel = kernel, .groups = {x, y, z}};
    return c;
}

/* Sets params from number 1 on; number 0 is the zero of the guards. */
#define SET(c, ...) \
    do { \
        const uint32_t words_[] = {__VA_ARGS__}; \
        memcpy((c)->params + 1, words_, sizeof words_); \
    } while (0)

/* A lane for each of n values, which finds n and the lanes of a row of workgroups in params 3 and 5; the others are
 * given. */
static struct gpu_command *each(struct gpu *g, enum gpu_kernel kernel, uint32_t first, uint32_t second, uint64_t n,
                                uint32_t fourth)
{
    uint32_t all = groups(n, LANES), wide = all < 32768 ? all : 32768;
    struct gpu_command *c = command(g, kernel, wide, groups(all, wide), 1);
    SET(c, first, second, (uint32_t)n, fourth, wide * LANES);
    return c;
}

/* y is computed from x, value by value. */
static struct gpu_command *small(struct gpu *g, enum gpu_kernel kernel, const struct op *op)
{
    return each(g, kernel, word(op->y), word(op->x), (uint64_t)op->n * (uint64_t)op->dim, (uint32_t)op->dim);
}

static void record_embed(struct gpu *g, const struct op *op)
{
    const struct weight *w = op->w;
    forget_parts(g); /* a step begins */
    make_room(g, op->n);
    uint32_t ids = table_add(g, op->ids, op->n);
    for (int s = 0; s < w->n_slices; s++) {
        struct gpu_command *c = command(g, GPU_EMBED, groups((uint64_t)w->cols, LANES), (uint32_t)op->n, 1);
        c->layout = w->type->layout;
        c->matrix = w->slice[s];
        SET(c, word(op->y), ids, (uint32_t)w->cols, (uint32_t)(s * w->slice_panels), (uint32_t)w->slice_panels,
            (uint32_t)(w->panel / sizeof(uint32_t)), w->at);
    }
}

/* The n rows of features from row t on go to a place of the scratch, after all that was recorded. */
static void write_features(struct gpu *g, const struct op *op, int t, int n, uint32_t at)
{
    size_t dim = (size_t)op->dim;
    float *rows = (float *)(void *)g->staging;
    for (int i = 0; i < n; i++) memcpy(rows + (size_t)i * dim, op->features[t + i] + op->first, dim * sizeof *rows);
    gpu_begin(g);
    gpu_write(g->scratch, 4.0 * at, rows, (double)((size_t)n * dim * sizeof *rows));
}

/* Features are written where they belong, or, to be added, where products have quantised rows. */
static void record_features(struct gpu *g, const struct op *op)
{
    uint32_t dim = (uint32_t)op->dim, most = (uint32_t)(GPU_STAGING / sizeof(float)) / dim;
    if (op->adds && most > g->spare / dim) most = g->spare / dim;
    for (int t = 0, n; t < op->n; t += n) {
        for (n = 0; t + n < op->n && n < (int)most && op->features[t + n]; n++) {}
        if (!n) {
            n = 1;
            continue;
        }
        uint32_t y = word(op->y) + (uint32_t)t * dim;
        write_features(g, op, t, n, op->adds ? g->codes : y);
        if (op->adds) each(g, GPU_ADD, y, g->codes, (uint64_t)n * dim, dim);
    }
}

static void record_pick(struct gpu *g, const struct op *op)
{
    make_room(g, op->n);
    uint32_t ids = table_add(g, op->ids, op->n);
    struct gpu_command *c = command(g, GPU_PICK, groups((uint64_t)op->dim, LANES), (uint32_t)op->n, 1);
    SET(c, word(op->y), word(op->x), ids, (uint32_t)op->dim);
}

static void record_rmsnorm(struct gpu *g, const struct op *op)
{
    make_room(g, 0);
    struct gpu_vector gain = gpu_vector_of(g, GPU_MATRIX, op->vector, op->dim);
    uint32_t wide = op->n < 32768 ? (uint32_t)op->n : 32768;
    struct gpu_command *c = command(g, GPU_RMSNORM, wide, groups((uint64_t)op->n, wide), 1);
    c->matrix = gain.buffer;
    SET(c, word(op->y), word(op->x), (uint32_t)op->dim, bits_from_f32(op->eps), (uint32_t)op->n, wide, gain.at);
}

/* Of the heads of the whole matrix, those of one slice. */
void gpu_put_heads(struct gpu *g, const struct weight *w, int slice, uint32_t heads)
{
    const struct layout_info *l = &layouts[w->type->layout];
    int first = slice * w->slice_panels, panels = min_int(w->slice_panels, gpu_panels(w->rows) - first);
    uint32_t head = (uint32_t)l->head / 4, units = (uint32_t)(w->cols / l->columns);
    make_room(g, 0);
    struct gpu_command *c = each(g, GPU_HEADS, head, (uint32_t)l->bytes / 4, (uint64_t)panels * units * head,
                                 (uint32_t)(w->panel / sizeof(uint32_t)));
    c->matrix = heads;
    c->pages = w->slice[slice];
    c->params[6] = units;
    c->params[7] = (uint32_t)first * units * head;
    c->params[8] = w->at;
}

/* The columns of x come in the order of `w`; of an expert, in that of its matrix. */
static void quantize(struct gpu *g, const struct op *op, const struct weight *w)
{
    struct gpu_command *c =
        each(g, GPU_QUANTIZE, word(op->x), 0, (uint64_t)op->n * (uint64_t)op->dim, (uint32_t)op->dim);
    const uint32_t places[] = {g->codes, g->scales, g->sums, bits_from_f32(127)};
    memcpy(c->params + GPU_QUANTISED, places, sizeof places);
    c->matrix = w->ordered;
    if (!w->ordered) return;
    c->params[7] = (uint32_t)op->dim / BLOCK;
    c->params[8] = op->kind == OP_EXPERTS ? g->experts : 0;
}

/* Multiplies with the panels of a product that are in one slice. For experts each place has its own panels, which only
 * the device knows. */
static void multiply(struct gpu *g, const struct op *op, const struct product *p, int slice)
{
    const struct weight *w = p->w;
    int experts = op->kind == OP_EXPERTS ? op->route->n_experts : 0;
    int rows = experts ? w->rows / experts : p->rows ? p->rows : w->rows;
    int first = slice * w->slice_panels, n_panels = min_int(w->slice_panels, gpu_panels(w->rows) - first);
    int from = first, before = 0; /* a panel; rows of the product before it */
    if (!experts) {
        int begin = p->first / PANEL_ROWS, end = min_int(begin + gpu_panels(rows), first + n_panels);
        from = first > begin ? first : begin;
        before = PANEL_ROWS * (from - begin);
        rows = min_int(rows - before, PANEL_ROWS * (end - from));
        if (rows <= 0) return;
    }
    enum layout layout = w->type->layout;
    bool floats = layouts[layout].kind == KIND_FLOAT, tile = !floats && !experts && op->n > FEW;
    struct gpu_command *c =
        floats ? command(g, GPU_FLOATS, groups((uint64_t)rows, LANES), (uint32_t)op->n, 1)
        : tile ? command(g, GPU_TILE, groups((uint64_t)rows, TILE_ROWS), groups((uint64_t)op->n, TILE_TOKENS), 1)
               : command(g, GPU_PRODUCT, (uint32_t)gpu_panels(rows), (uint32_t)op->n, 1);
    uint32_t panel = (uint32_t)(w->panel / sizeof(uint32_t));
    c->layout = layout;
    c->matrix = w->slice[slice];
    SET(c, floats ? word(op->x) : g->codes, g->scales, g->sums, 1, (uint32_t)w->cols, 0, 0, 0,
        experts ? (uint32_t)first : 0, experts ? (uint32_t)n_panels : UINT32_MAX, experts ? g->experts : 0,
        (uint32_t)op->n, panel);
    const uint32_t part[] = {word(p->y) + (uint32_t)(p->first + before), (uint32_t)rows,
                             (uint32_t)(experts ? rows : w->rows), w->at + (uint32_t)(from - first) * panel};
    memcpy(c->params + GPU_PART, part, sizeof part);
}

static void record_matmul(struct gpu *g, const struct op *op)
{
    const struct weight *quantised = NULL; /* whose order the rows have */
    make_room(g, 0);
    for (const struct product *p = op->products; p < op->products + OP_PRODUCTS && p->w; p++) {
        bool codes = layouts[p->w->type->layout].kind != KIND_FLOAT;
        if (codes && (!quantised || quantised->ordered != p->w->ordered)) quantize(g, op, quantised = p->w);
        for (int s = 0; s < p->w->n_slices; s++) multiply(g, op, p, s);
    }
}

static void record_rope(struct gpu *g, const struct op *op)
{
    if (!op->cosine && !op->paired) return;
    int n = op->n * op->rot / 2;
    make_room(g, 2 * n);
    uint32_t cosine = op->cosine ? angles(g, &g->cosine, op->cosine, n) : 0;
    uint32_t sine = op->cosine ? angles(g, &g->sine, op->sine, n) : 0;
    struct gpu_command *c = command(g, GPU_ROPE, (uint32_t)op->heads, (uint32_t)op->n, 1);
    SET(c, word(op->y), (uint32_t)(op->dim / op->heads), (uint32_t)op->rot / 2, cosine, sine, op->paired,
        (uint32_t)op->heads);
}

static void record_kv_append(struct gpu *g, const struct op *op)
{
    make_room(g, rows_words(op->kv, op->n));
    uint32_t rows = place_rows(g, op->kv, op->n);
    uint32_t heads = (uint32_t)g->kv.n_kv_heads, dim = (uint32_t)g->kv.head_dim;
    struct gpu_command *c = command(g, GPU_APPEND, 2 * heads, (uint32_t)op->n, 1);
    c->layout = (uint32_t)g->kv.type;
    c->pages = g->pages[op->layer];
    c->head_dim = dim;
    SET(c, 0, dim, 0, 0, 0, 0, 0, 0, 0, word(op->x), heads, 0, word(op->z), rows,
        (uint32_t)(g->layer_bytes / sizeof(uint32_t)));
}

static void record_attention(struct gpu *g, const struct op *op)
{
    make_room(g, rows_words(op->kv, op->n));
    float scale = g->kv.scale != 0 ? g->kv.scale : (float)(1.0 / sqrt((double)g->kv.head_dim));
    uint32_t rows = place_rows(g, op->kv, op->n);
    struct gpu_command *c = command(g, GPU_ATTEND, (uint32_t)g->kv.n_heads, (uint32_t)op->n, 1);
    c->layout = (uint32_t)g->kv.type;
    c->pages = g->pages[op->layer];
    c->head_dim = (uint32_t)g->kv.head_dim;
    SET(c, word(op->y), word(op->x), rows, (uint32_t)g->kv.n_heads, (uint32_t)g->kv.n_kv_heads,
        (uint32_t)(g->layer_bytes / sizeof(uint32_t)), bits_from_f32(scale));
}

static void record_small(struct gpu *g, const struct op *op)
{
    make_room(g, 0);
    enum gpu_kernel kernel = op->kind == OP_SWIGLU ? GPU_SWIGLU
                             : op->kind == OP_GATE ? GPU_GATE
                             : op->kind == OP_ADD  ? GPU_ADD
                                                   : GPU_BIAS;
    struct gpu_vector bias = {0};
    if (kernel == GPU_BIAS) bias = gpu_vector_of(g, GPU_PAGES, op->bias, op->dim);
    struct gpu_command *c = small(g, kernel, op);
    c->pages = bias.buffer;
    c->params[6] = bias.at;
}

static void record_route(struct gpu *g, const struct op *op)
{
    const struct route *r = op->route;
    make_room(g, 0);
    bool one = op->n == 1; /* whose places are its experts in their order */
    struct gpu_command *c = command(g, GPU_ROUTE, (uint32_t)op->n, 1, 1);
    SET(c, word(op->y), (uint32_t)r->n_experts, (uint32_t)r->n_used, word(r->place), word(r->share), op->renormalise,
        one ? g->experts : 0);
    if (one) return;
    c = command(g, GPU_PLACES, 1, 1, 1);
    SET(c, word(r->first), (uint32_t)r->n_experts, (uint32_t)(op->n * r->n_used), word(r->place), g->experts);
}

static void record_gather(struct gpu *g, const struct op *op)
{
    const struct route *r = op->route;
    make_room(g, 0);
    struct gpu_command *c = command(g, GPU_GATHER, groups((uint64_t)op->dim, LANES), (uint32_t)(op->n * r->n_used), 1);
    SET(c, word(op->y), word(op->x), (uint32_t)op->dim, (uint32_t)r->n_used, word(r->place));
}

static void record_combine(struct gpu *g, const struct op *op)
{
    const struct route *r = op->route;
    make_room(g, 0);
    struct gpu_command *c = command(g, GPU_COMBINE, groups((uint64_t)op->dim, LANES), (uint32_t)op->n, 1);
    SET(c, word(op->y), word(op->x), (uint32_t)op->dim, (uint32_t)r->n_used, word(r->place), word(r->share));
}

/* --- states ------------------------------------------------------------------------------------------------------ */

static uint32_t state_words(const struct gpu *g, int part)
{
    return (uint32_t)(gpu_state_bytes(&g->state, part) / sizeof(uint32_t));
}

static void record_convolve(struct gpu *g, const struct op *op)
{
    const struct linear_layer *l = op->linear;
    make_room(g, runs_words(op));
    uint32_t runs = place_runs(g, op), channels = (uint32_t)op->dim, state = state_words(g, op->layer);
    float scale = (float)(1.0 / sqrt((double)l->head_dim));
    struct gpu_vector taps = gpu_vector_of(g, GPU_MATRIX, l->taps, TAPS * op->dim);
    struct gpu_command *c = command(g, GPU_CONVOLVE, channels / (uint32_t)l->head_dim, (uint32_t)op->n, 1);
    c->matrix = taps.buffer;
    c->pages = g->states[op->layer];
    SET(c, word(op->y), word(op->x), runs, channels, (uint32_t)l->head_dim, (uint32_t)l->n_key_heads, state,
        state - (TAPS - 1) * channels, bits_from_f32(UNIT_EPS), bits_from_f32(scale), taps.at);
}

/* Columns of a workgroup, so that their part of the state fits into 16 KiB; js/gpu/states.js has the same rule. */
static int delta_columns(int head_dim) { return head_dim <= 128 && head_dim % 32 == 0 ? 32 : 16; }

/* The decays and the sigmoids take the place of quantised rows, of which there are none now. */
static void record_delta(struct gpu *g, const struct op *op)
{
    const struct linear_layer *l = op->linear;
    uint32_t heads = (uint32_t)l->n_value_heads, all = (uint32_t)op->n * heads;
    make_room(g, runs_words(op));
    uint32_t runs = place_runs(g, op) + 3 * (uint32_t)op->n, chains = runs + 4 * (uint32_t)op->n_runs;
    struct gpu_vector rate = gpu_vector_of(g, GPU_MATRIX, l->rate, l->n_value_heads);
    struct gpu_vector bias = gpu_vector_of(g, GPU_PAGES, l->bias, l->n_value_heads);
    struct gpu_command *c = command(g, GPU_DECAY, groups(all, LANES), 1, 1);
    c->matrix = rate.buffer;
    c->pages = bias.buffer;
    SET(c, g->codes, word(op->z), all, heads, rate.at, bias.at);
    c = command(g, GPU_DELTA, (uint32_t)(l->head_dim / delta_columns(l->head_dim)) * heads, chain_count(op), 1);
    c->head_dim = (uint32_t)l->head_dim;
    c->pages = g->states[op->layer];
    SET(c, word(op->y), word(op->x), g->codes, runs, chains, (uint32_t)linear_channels(l), (uint32_t)l->n_key_heads,
        heads, l->grouped, state_words(g, op->layer), all);
}

static void record_later(struct gpu *g, const struct op *op)
{
    make_room(g, runs_words(op));
    uint32_t runs = place_runs(g, op), before = (uint32_t)g->state.n_layers * state_words(g, 0);
    struct gpu_command *c = command(g, GPU_LATER, groups((uint64_t)op->dim, LANES), (uint32_t)op->n, 1);
    c->pages = g->states[g->state.n_layers];
    SET(c, word(op->y), word(op->x), runs, (uint32_t)op->dim, state_words(g, g->state.n_layers),
        (uint32_t)op->first - before);
}

static void record_join(struct gpu *g, const struct op *op)
{
    make_room(g, 0);
    struct gpu_command *c = command(g, GPU_JOIN, groups((uint64_t)op->dim, LANES), (uint32_t)op->n, 1);
    SET(c, word(op->y), word(op->x), word(op->z), (uint32_t)op->dim / 2);
}

/* --- encoders of images ------------------------------------------------------------------------------------------ */

static void record_layernorm(struct gpu *g, const struct op *op)
{
    record_rmsnorm(g, op);
    struct gpu_vector bias = gpu_vector_of(g, GPU_PAGES, op->bias, op->dim);
    struct gpu_command *c = &g->commands[g->n_commands - 1];
    c->kernel = GPU_LAYERNORM;
    c->pages = bias.buffer;
    c->params[8] = bias.at;
}

static void record_gelu(struct gpu *g, const struct op *op)
{
    make_room(g, 0);
    small(g, op->kind == OP_GELU ? GPU_GELU : GPU_GELU_ERF, op);
}

static void record_keep(struct gpu *g, const struct op *op)
{
    const struct heads *s = &op->attended;
    make_room(g, 0);
    struct gpu_command *c = command(g, GPU_KEEP, groups((uint64_t)op->dim, LANES), (uint32_t)op->n, 1);
    SET(c, word(op->y), word(op->x), word(op->z), (uint32_t)op->first, (uint32_t)op->dim, (uint32_t)gpu_head_words(s),
        (uint32_t)s->head_dim);
}

static void record_attend_all(struct gpu *g, const struct op *op)
{
    const struct heads *s = &op->attended;
    make_room(g, 0);
    struct gpu_command *c =
        command(g, GPU_ATTEND_ALL, (uint32_t)s->n_heads, (uint32_t)op->n, groups((uint64_t)s->head_dim, 256));
    c->head_dim = (uint32_t)s->head_dim;
    SET(c, word(op->y), word(op->x), word(op->z), (uint32_t)s->n_heads, (uint32_t)s->rows, (uint32_t)gpu_head_words(s),
        bits_from_f32((float)(1.0 / sqrt((double)s->head_dim))));
}

/* Models whose operations are not in this table are refused by gpu_check(). */
static void (*const records[OP_KINDS])(struct gpu *g, const struct op *op) = {
    [OP_EMBED] = record_embed,         [OP_PICK] = record_pick,           [OP_RMSNORM] = record_rmsnorm,
    [OP_MATMUL] = record_matmul,       [OP_EXPERTS] = record_matmul,      [OP_ROUTE] = record_route,
    [OP_GATHER] = record_gather,       [OP_COMBINE] = record_combine,     [OP_ROPE] = record_rope,
    [OP_KV_APPEND] = record_kv_append, [OP_ATTENTION] = record_attention, [OP_SWIGLU] = record_small,
    [OP_GATE] = record_small,          [OP_ADD] = record_small,           [OP_BIAS] = record_small,
    [OP_CONVOLVE] = record_convolve,
    [OP_DELTA] = record_delta,
    [OP_LATER] = record_later,
    [OP_JOIN] = record_join,
    [OP_FEATURES] = record_features,
    [OP_LAYERNORM] = record_layernorm,
    [OP_GELU] = record_gelu,
    [OP_GELU_ERF] = record_gelu,
    [OP_KEEP] = record_keep,
    [OP_ATTEND_ALL] = record_attend_all,
};

void gpu_record(struct gpu *g, const struct op *ops, int n)
{
    for (const struct op *op = ops; op < ops + n; op++)
        if (records[op->kind]) records[op->kind](g, op);
}
