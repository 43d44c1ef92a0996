/* SPDX-License-Identifier: MIT
 *
 * The encoder of Qwen3-VL and Qwen3.5: computes rows of the language model from pixels, in parts.
 *
 * `attend`, `feed_forward` and `merge` are the recipe. A part is one product of up to 256 rows with what belongs to it,
 * or attention of as many rows as take about as long. A layer's queries, keys and values are computed for all rows
 * before the first row attends. Rows influence each other only in attention, so neither parts nor chunks change a
 * result. Tokens come back part by part.
 */
#include "models/qwen3_vision.h"

#include "base/num.h"
#include "image/image.h"

#include <string.h>

/* --- scratch ---------------------------------------------------------------------------------------------- */

static struct heads heads_of(const struct vision *v, int rows)
{
    return (struct heads){rows, v->config.n_heads, v->config.head_dim};
}

/* Lays out the values from `first` on; returns the end of all, in bytes of the scratch. */
static uint64_t lay_out(const struct vision *v, int max_patches, struct handle first, struct vision_scratch *s)
{
    const struct vision_config *c = &v->config;
    const struct heads heads = heads_of(v, max_patches);
    struct arena all = {.used = first.at}, *a = &all;
    uint64_t n = (uint64_t)max_patches, dim = (uint64_t)c->dim, f = sizeof(float);
    s->x = take_values(a, n * dim, f);
    s->q = take_values(a, n * dim, f);
    s->kept = take_values(a, v->bind.be->ops->heads_size(v->bind.be, &heads), f);
    s->h = take_values(a, CHUNK * dim, f);
    s->k = take_values(a, CHUNK * dim, f);
    s->v = take_values(a, CHUNK * dim, f);
    s->f = take_values(a, CHUNK * (uint64_t)max_int(max_int(vision_pixels(c), c->ffn_dim), c->dim), f);
    s->made = take_values(a, CHUNK / JOINED * (uint64_t)c->out_dim, f);
    return a->used;
}

int vision_max_rows(const struct vision *v) { return (void)v, CHUNK; }
int vision_max_cols(const struct vision *v)
{
    return max_int(v->config.ffn_dim, max_int(JOINED * v->config.dim, vision_pixels(&v->config)));
}

uint64_t vision_values(const struct vision *v, int max_patches)
{
    struct vision_scratch measured;
    return lay_out(v, max_patches, (struct handle){0}, &measured);
}

static uint64_t angles(const struct vision *v, int max_patches)
{
    return (uint64_t)max_patches * (uint64_t)v->config.head_dim / 2;
}

/* Floats of `cosine`, `sine` and `up`, which are one block of memory. */
static uint64_t floats(const struct vision *v, int max_patches)
{
    return 2 * angles(v, max_patches) + CHUNK * (uint64_t)max_int(vision_pixels(&v->config), v->config.dim);
}

uint64_t vision_reserve_cost(const struct vision *v, int max_patches)
{
    return mem_cost(floats(v, max_patches) * sizeof *v->cosine) + mem_cost(CHUNK * sizeof *v->ups);
}

int vision_reserve(struct vision *v, int max_patches, struct handle first)
{
    struct mem *mem = v->bind.mem;
    lay_out(v, max_patches, first, &v->s);
    v->cosine = mem_array(mem, floats(v, max_patches), sizeof *v->cosine);
    v->ups = mem_array(mem, CHUNK, sizeof *v->ups);
    if (!v->cosine || !v->ups) return ERR_MEM_LOAD;
    v->sine = v->cosine + angles(v, max_patches);
    v->up = v->sine + angles(v, max_patches);
    return OK;
}

/* --- pixels and places ------------------------------------------------------------------------------------ */

/* Row and column of a patch; patches are ordered in blocks of 2 x 2. */
struct place {
    int y, x;
};

static struct place place_of(const struct vision *v, int patch)
{
    int block = patch / JOINED, in_row = v->cols / 2;
    return (struct place){block / in_row * 2 + patch % JOINED / 2, block % in_row * 2 + patch % 2};
}

/* Sets n rows of x, each of `width` columns, to the rows of `up`, or adds those to them. */
static void take_up(struct vision *v, struct op_list *ops, struct handle x, int n, int width, bool adds)
{
    for (int i = 0; i < n; i++) v->ups[i] = v->up + (size_t)i * (size_t)width;
    add_op(ops, OP_FEATURES, n, width, .y = x, .features = v->ups, .adds = adds);
}

/* The two neighbours of a coordinate in the position table. */
struct between {
    int low, high;
    float part; /* fraction of the way to `high` */
};

static struct between between(int at, int size, int side)
{
    int q = at * (side - 1), low = q / (size - 1);
    return (struct between){low, min_int(low + 1, side - 1), (float)(q % (size - 1)) / (float)(size - 1)};
}

/* out [dim] = the position table, interpolated at a place */
static void position(const struct vision *v, struct place at, float *out)
{
    int side = v->config.side, dim = v->config.dim;
    struct between y = between(at.y, v->rows, side), x = between(at.x, v->cols, side);
    const float *e[4] = {v->positions + (size_t)(y.low * side + x.low) * (size_t)dim,
                         v->positions + (size_t)(y.low * side + x.high) * (size_t)dim,
                         v->positions + (size_t)(y.high * side + x.low) * (size_t)dim,
                         v->positions + (size_t)(y.high * side + x.high) * (size_t)dim};
    const float w[4] = {(1 - y.part) * (1 - x.part), (1 - y.part) * x.part, y.part * (1 - x.part), y.part * x.part};
    for (int i = 0; i < dim; i++) out[i] = w[0] * e[0][i] + w[1] * e[1][i] + w[2] * e[2][i] + w[3] * e[3][i];
}

/* The first half of a head turns by the row, the second by the column: in double, rounded once. */
static void set_angles(struct vision *v, int patch)
{
    size_t quarter = (size_t)v->config.head_dim / 4, first = (size_t)patch * 2 * quarter;
    struct place at = place_of(v, patch);
    for (size_t i = 0; i < 2 * quarter; i++) {
        double sine, cosine;
        num_sincos64((i < quarter ? at.y : at.x) * v->frequency[i % quarter], &sine, &cosine);
        v->cosine[first + i] = (float)cosine;
        v->sine[first + i] = (float)sine;
    }
}

/* x = patches * weights + bias + positions */
static void begin_rows(struct vision *v, int first, int n, struct op_list *ops)
{
    const struct vision_config *c = &v->config;
    struct handle x = handle_at(v->s.x, (size_t)first * (size_t)c->dim);
    image_patches(v->frames, v->cols * c->patch, c->patch, v->table, first, n, v->up);
    take_up(v, ops, v->s.f, n, vision_pixels(c), false);
    add_op(ops, OP_MATMUL, n, vision_pixels(c), .x = v->s.f, .products = {product(x, v->patches)});
    add_op(ops, OP_BIAS, n, c->dim, .y = x, .bias = v->patch_bias);
    backend_run_list(v->bind.be, ops); /* the pixels in `up` have been read; positions take their place */
    ops->n = 0;
    for (int i = 0; i < n; i++) position(v, place_of(v, first + i), v->up + (size_t)i * (size_t)c->dim);
    take_up(v, ops, x, n, c->dim, true);
    for (int i = 0; i < n; i++) set_angles(v, first + i);
}

/* --- a layer ------------------------------------------------------------------------------------------------ */

/* y = x * weights + bias, x [n, cols], y [n, rows] */
static void apply(struct op_list *ops, const struct linear *l, struct handle y, struct handle x, int n, int cols,
                  int rows)
{
    add_op(ops, OP_MATMUL, n, cols, .x = x, .products = {product(y, l->w)});
    add_op(ops, OP_BIAS, n, rows, .y = y, .bias = l->b);
}

/* y = norm(x), both [n, dim] */
static void normalise(const struct vision *v, struct op_list *ops, const struct norm *norm, struct handle y,
                      struct handle x, int n, int dim)
{
    add_op(ops, OP_LAYERNORM, n, dim, .y = y, .x = x, .vector = norm->w, .bias = norm->b, .eps = v->config.eps);
}

/* Computes q, k, v of ln1(x), and turns q and k; q stays in scratch, k and v are stored for attention. */
static void prepare(const struct vision *v, const struct vision_layer *w, int first, int n, struct op_list *ops)
{
    const struct vision_config *c = &v->config;
    const struct vision_scratch *s = &v->s;
    size_t at = (size_t)first * (size_t)c->dim, angles = (size_t)first * (size_t)c->head_dim / 2;
    const struct handle parts[] = {handle_at(s->q, at), s->k, s->v};
    struct weight *const *qkv = w->qkv;
    normalise(v, ops, &w->ln1, s->h, handle_at(s->x, at), n, c->dim);
    add_op(ops, OP_MATMUL, n, c->dim, .x = s->h,
           .products = {product(parts[0], qkv[0]), product(s->k, qkv[1]), product(s->v, qkv[2])});
    for (int i = 0; i < 3; i++) {
        add_op(ops, OP_BIAS, n, c->dim, .y = parts[i], .bias = w->qkv_bias + i * c->dim);
        if (i == 2) continue;
        add_op(ops, OP_ROPE, n, c->dim, .y = parts[i], .cosine = v->cosine + angles, .sine = v->sine + angles,
               .heads = c->n_heads, .rot = c->head_dim);
    }
    add_op(ops, OP_KEEP, n, c->dim, .y = s->kept, .x = s->k, .z = s->v, .first = first,
           .attended = heads_of(v, v->rows * v->cols));
}

/* x += out(attention(q)) */
static void attend(const struct vision *v, const struct vision_layer *w, int first, int n, struct op_list *ops)
{
    const struct vision_config *c = &v->config;
    const struct vision_scratch *s = &v->s;
    size_t at = (size_t)first * (size_t)c->dim;
    add_op(ops, OP_ATTEND_ALL, n, c->dim, .y = s->k, .x = handle_at(s->q, at), .z = s->kept,
           .attended = heads_of(v, v->rows * v->cols));
    apply(ops, &w->out, s->h, s->k, n, c->dim, c->dim);
    add_op(ops, OP_ADD, n, c->dim, .y = handle_at(s->x, at), .x = s->h);
}

/* x += down(gelu(up(ln2(x)))), as two parts */
static void feed_forward(const struct vision *v, const struct vision_layer *w, int first, int n, bool second,
                         struct op_list *ops)
{
    const struct vision_config *c = &v->config;
    const struct vision_scratch *s = &v->s;
    const struct handle x = handle_at(s->x, (size_t)first * (size_t)c->dim);
    if (!second) {
        normalise(v, ops, &w->ln2, s->h, x, n, c->dim);
        apply(ops, &w->up, s->f, s->h, n, c->dim, c->ffn_dim);
        add_op(ops, OP_GELU, n, c->ffn_dim, .y = s->f);
        return;
    }
    apply(ops, &w->down, s->h, s->f, n, c->ffn_dim, c->dim);
    add_op(ops, OP_ADD, n, c->dim, .y = x, .x = s->h);
}

/* Tokens of n patches: fc2(gelu(fc1(norm(join(x))))), as two parts. The last merger's norm comes before the joining. */
static void merge(struct vision *v, int merger, int first, int n, bool second, struct op_list *ops)
{
    const struct vision_config *c = &v->config;
    const struct merger *m = &v->mergers[merger];
    const struct vision_scratch *s = &v->s;
    bool last = merger == c->n_added;
    int tokens = n / JOINED, wide = JOINED * c->dim;
    if (!second) {
        const struct handle x = handle_at(s->x, (size_t)first * (size_t)c->dim);
        normalise(v, ops, &m->norm, s->h, x, last ? n : tokens, last ? c->dim : wide);
        apply(ops, &m->fc1, s->k, s->h, tokens, wide, wide);
        add_op(ops, OP_GELU_ERF, tokens, wide, .y = s->k);
        return;
    }
    apply(ops, &m->fc2, s->made, s->k, tokens, wide, c->out_dim);
    v->made_by = merger;
    v->made_at = first / JOINED;
    v->n_made = tokens;
}

bool vision_awaits(const struct vision *v) { return v->n_made > 0; }

void vision_arrive(struct vision *v)
{
    const struct vision_config *c = &v->config;
    size_t width = (size_t)c->out_dim, pitch = width * (size_t)(1 + c->n_added);
    size_t place = v->made_by == c->n_added ? 0 : width * (size_t)(1 + v->made_by);
    const float *made = v->n_made ? v->bind.be->ops->result(v->bind.be, v->s.made) : NULL;
    for (size_t t = 0; t < (size_t)v->n_made; t++)
        memcpy(v->out + ((size_t)v->made_at + t) * pitch + place, made + t * width, width * sizeof *v->out);
    v->n_made = 0;
}

/* --- parts ---------------------------------------------------------------------------------------------------- */

uint64_t vision_size(const struct vision *v, int rows, int cols)
{
    return (uint64_t)rows * (uint64_t)cols / JOINED * (uint64_t)(1 + v->config.n_added) * (uint64_t)v->config.out_dim;
}

void vision_begin(struct vision *v, const uint8_t *const frames[FRAMES], int rows, int cols, float *out)
{
    memcpy(v->frames, frames, sizeof v->frames);
    v->rows = rows;
    v->cols = cols;
    v->out = out;
    v->n_made = 0;
}

/* Number of rows whose attention takes about as long as a product of CHUNK rows. */
static int attend_rows(const struct vision *v)
{
    const int64_t macs = (int64_t)1 << 29, row = 2LL * v->rows * v->cols * v->config.dim;
    return macs / row < 8 ? 8 : macs / row > CHUNK ? CHUNK : (int)(macs / row);
}

enum step_kind { ROWS, PREPARE, ATTEND, FEED_FORWARD, MERGE, KINDS };

static int ceil_div(int n, int size) { return (n + size - 1) / size; }

/* Numbers of parts: of an image's rows, and of the steps of one layer and of one merger. */
static void count_parts(const struct vision *v, int count[KINDS])
{
    int n = v->rows * v->cols, chunks = ceil_div(n, CHUNK);
    count[ROWS] = count[PREPARE] = chunks;
    count[ATTEND] = ceil_div(n, attend_rows(v));
    count[FEED_FORWARD] = count[MERGE] = 2 * chunks;
}

int vision_parts(const struct vision *v)
{
    int count[KINDS];
    count_parts(v, count);
    return count[ROWS] + v->config.n_layers * (count[PREPARE] + count[ATTEND] + count[FEED_FORWARD]) +
           (v->config.n_added + 1) * count[MERGE];
}

/* The addition that is made after layer l; -1: none. */
static int added_by(const struct vision_config *c, int l)
{
    for (int i = 0; i < c->n_added; i++)
        if (c->added_after[i] == l) return i;
    return -1;
}

struct step {
    enum step_kind kind;
    int which; /* layer or merger */
    int part;  /* within it */
};

static struct step step_of(const struct vision *v, int part)
{
    const struct vision_config *c = &v->config;
    int count[KINDS];
    count_parts(v, count);
    if (part < count[ROWS]) return (struct step){ROWS, 0, part};
    part -= count[ROWS];
    for (int l = 0; l < c->n_layers; l++) {
        for (enum step_kind kind = PREPARE; kind <= FEED_FORWARD; part -= count[kind], kind++)
            if (part < count[kind]) return (struct step){kind, l, part};
        if (added_by(c, l) < 0) continue;
        if (part < count[MERGE]) return (struct step){MERGE, added_by(c, l), part};
        part -= count[MERGE];
    }
    return (struct step){MERGE, c->n_added, part};
}

void vision_part(struct vision *v, int part)
{
    struct backend *be = v->bind.be;
    struct step s = step_of(v, part);
    bool halves = s.kind >= FEED_FORWARD, second = halves && s.part % 2;
    int rows = s.kind == ATTEND ? attend_rows(v) : CHUNK, first = (halves ? s.part / 2 : s.part) * rows,
        n = min_int(rows, v->rows * v->cols - first);
    struct op_list ops = {0};
    switch (s.kind) {
    case ROWS: begin_rows(v, first, n, &ops); break;
    case PREPARE: prepare(v, &v->layers[s.which], first, n, &ops); break;
    case ATTEND: attend(v, &v->layers[s.which], first, n, &ops); break;
    case FEED_FORWARD: feed_forward(v, &v->layers[s.which], first, n, second, &ops); break;
    default: merge(v, s.which, first, n, second, &ops); break;
    }
    backend_run_list(be, &ops);
    be->ops->submit(be, &(struct result){v->s.made, (uint64_t)v->n_made * (uint64_t)v->config.out_dim}, v->n_made > 0);
}
