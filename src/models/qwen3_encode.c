/* SPDX-License-Identifier: MIT
 *
 * Qwen3-VL's encoder: from pixels to rows of the language model, in parts.
 *
 * `attend`, `feed_forward` and `merge` are the recipe. A part is one product of up to 256 rows and what belongs to it, or attention of as many rows
 * as take about as long. Queries, keys and values of a layer are there for all rows before the first attends. Rows influence each other in attention
 * only, so that neither parts nor chunks change a result. What comes from here (pixels, positions, angles) goes up as a backend wants it;
 * what has been made is read where it lies, as the CPU's backend has it.
 */
#include "models/qwen3_vision.h"

#include "base/num.h"
#include "image/image.h"

#include <string.h>

/* --- scratch ---------------------------------------------------------------------------------------------- */

static struct heads heads_of(const struct vision *v, int rows) { return (struct heads){rows, v->config.n_heads, v->config.head_dim}; }

static void lay_out(struct arena *a, const struct vision *v, int max_patches, struct vision_scratch *s)
{
    const struct vision_config *c = &v->config;
    const struct heads heads = heads_of(v, max_patches);
    uint64_t n = (uint64_t)max_patches, dim = (uint64_t)c->dim, angles = (uint64_t)c->head_dim / 2, f = sizeof(float);
    s->x = arena_take(a, n * dim, f);
    s->q = arena_take(a, n * dim, f);
    s->kept = arena_take(a, v->bind.be->ops->kept_size(v->bind.be, &heads), f);
    s->cosine = arena_take(a, n * angles, f);
    s->sine = arena_take(a, n * angles, f);
    s->h = arena_take(a, CHUNK * dim, f);
    s->k = arena_take(a, CHUNK * dim, f);
    s->v = arena_take(a, CHUNK * dim, f);
    s->f = arena_take(a, CHUNK * (uint64_t)max_int(max_int(vision_pixels(c), c->ffn_dim), c->dim), f);
    s->made = arena_take(a, CHUNK / JOINED * (uint64_t)c->out_dim, f);
}

static uint64_t arena_bytes(const struct vision *v, int max_patches)
{
    struct vision_scratch measured;
    struct arena a = {0};
    lay_out(&a, v, max_patches, &measured);
    return a.used;
}

/* `ups`, then `up`. */
static uint64_t host_bytes(const struct vision *v)
{
    return CHUNK * (sizeof *v->ups + (uint64_t)max_int(vision_pixels(&v->config), v->config.dim) * sizeof *v->up);
}

int vision_max_rows(const struct vision *v) { return (void)v, CHUNK; }
int vision_max_cols(const struct vision *v) { return max_int(v->config.ffn_dim, max_int(JOINED * v->config.dim, vision_pixels(&v->config))); }

uint64_t vision_reserve_cost(const struct vision *v, int max_patches) { return mem_cost(arena_bytes(v, max_patches)) + mem_cost(host_bytes(v)); }

int vision_reserve(struct vision *v, int max_patches)
{
    struct mem *mem = v->bind.mem;
    struct backend *be = v->bind.be;
    struct arena a = {0};
    mem_free(mem, v->arena);
    mem_free(mem, v->host);
    v->arena = a.base = mem_alloc(mem, arena_bytes(v, max_patches));
    v->host = mem_alloc(mem, host_bytes(v));
    if (!v->arena || !v->host) return ERR_MEM_LOAD;
    lay_out(&a, v, max_patches, &v->s);
    v->ups = v->host;
    v->up = (float *)(void *)(v->ups + CHUNK);
    if (be->ops->adopt) be->ops->adopt(be, v->arena, a.used);
    return OK;
}

/* --- pixels and places ------------------------------------------------------------------------------------ */

/* Of a patch, in the order in which they come. */
struct place {
    int y, x;
};

static struct place place_of(const struct vision *v, int patch)
{
    int block = patch / JOINED, in_row = v->cols / 2;
    return (struct place){block / in_row * 2 + patch % JOINED / 2, block % in_row * 2 + patch % 2};
}

/* n rows of `up`, each of `width`, to x or added to it. */
static void go_up(struct vision *v, float *x, int n, int width, bool add)
{
    struct backend *be = v->bind.be;
    for (int i = 0; i < n; i++) v->ups[i] = v->up + (size_t)i * (size_t)width;
    be->ops->features(be, x, v->ups, 0, n, width, add);
}

/* Where a coordinate lies between two of the table's. */
struct between {
    int low, high;
    float part; /* of the way to `high` */
};

static struct between between(int at, int size, int side)
{
    int q = at * (side - 1), low = q / (size - 1);
    return (struct between){low, min_int(low + 1, side - 1), (float)(q % (size - 1)) / (float)(size - 1)};
}

/* out [dim] = what the table has at a place */
static void position(const struct vision *v, struct place at, float *out)
{
    int side = v->config.side, dim = v->config.dim;
    struct between y = between(at.y, v->rows, side), x = between(at.x, v->cols, side);
    const float *e[4] = {v->positions + (size_t)(y.low * side + x.low) * (size_t)dim, v->positions + (size_t)(y.low * side + x.high) * (size_t)dim,
                         v->positions + (size_t)(y.high * side + x.low) * (size_t)dim, v->positions + (size_t)(y.high * side + x.high) * (size_t)dim};
    const float w[4] = {(1 - y.part) * (1 - x.part), (1 - y.part) * x.part, y.part * (1 - x.part), y.part * x.part};
    for (int i = 0; i < dim; i++) out[i] = w[0] * e[0][i] + w[1] * e[1][i] + w[2] * e[2][i] + w[3] * e[3][i];
}

/* Half of a head turns by the row, half by the column: in double, rounded once. */
static void set_angles(struct vision *v, int patch)
{
    size_t quarter = (size_t)v->config.head_dim / 4, first = (size_t)patch * 2 * quarter;
    struct place at = place_of(v, patch);
    for (size_t i = 0; i < 2 * quarter; i++) {
        double sine, cosine;
        num_sincos64((i < quarter ? at.y : at.x) * v->frequency[i % quarter], &sine, &cosine);
        v->s.cosine[first + i] = (float)cosine;
        v->s.sine[first + i] = (float)sine;
    }
}

/* x = patches * weights + bias + positions */
static void begin_rows(struct vision *v, int first, int n)
{
    const struct vision_config *c = &v->config;
    struct backend *be = v->bind.be;
    const struct backend_ops *op = be->ops;
    float *x = v->s.x + (size_t)first * (size_t)c->dim;
    image_patches(v->frames, v->cols * c->patch, c->patch, v->table, first, n, v->up);
    go_up(v, v->s.f, n, vision_pixels(c), false);
    op->matmul(be, (struct product[]){product(x, v->patches)}, 1, v->s.f, n, NULL);
    op->bias(be, x, v->patch_bias, n, c->dim);
    for (int i = 0; i < n; i++) position(v, place_of(v, first + i), v->up + (size_t)i * (size_t)c->dim);
    go_up(v, x, n, c->dim, true);
    for (int i = 0; i < n; i++) set_angles(v, first + i);
}

/* --- a layer ------------------------------------------------------------------------------------------------ */

/* y = x * weights + bias, x [n, cols] */
static void apply(struct vision *v, const struct linear *l, float *y, const float *x, int n, int rows)
{
    struct backend *be = v->bind.be;
    be->ops->matmul(be, (struct product[]){product(y, l->w)}, 1, x, n, NULL);
    be->ops->bias(be, y, l->b, n, rows);
}

/* q, k, v of ln1(x), turned; q stays, k and v are kept */
static void prepare(struct vision *v, const struct vision_layer *w, int first, int n)
{
    const struct vision_config *c = &v->config;
    const struct heads heads = heads_of(v, v->rows * v->cols);
    const struct vision_scratch *s = &v->s;
    struct backend *be = v->bind.be;
    const struct backend_ops *op = be->ops;
    size_t at = (size_t)first * (size_t)c->dim, angles = (size_t)first * (size_t)c->head_dim / 2;
    float *parts[] = {s->q + at, s->k, s->v};
    op->layernorm(be, s->h, s->x + at, w->ln1.w, w->ln1.b, n, c->dim, c->eps);
    op->matmul(be, (struct product[]){product(parts[0], w->qkv[0]), product(parts[1], w->qkv[1]), product(parts[2], w->qkv[2])}, 3, s->h, n, NULL);
    for (int i = 0; i < 3; i++) {
        op->bias(be, parts[i], w->qkv_bias + i * c->dim, n, c->dim);
        if (i < 2) op->rope(be, parts[i], s->cosine + angles, s->sine + angles, n, c->n_heads, c->head_dim, c->head_dim);
    }
    op->keep(be, s->kept, s->k, s->v, first, n, &heads);
}

/* x += out(attention(q)) */
static void attend(struct vision *v, const struct vision_layer *w, int first, int n)
{
    const struct vision_config *c = &v->config;
    const struct heads heads = heads_of(v, v->rows * v->cols);
    const struct vision_scratch *s = &v->s;
    struct backend *be = v->bind.be;
    size_t at = (size_t)first * (size_t)c->dim;
    be->ops->attend_all(be, s->k, s->q + at, s->kept, n, &heads);
    apply(v, &w->out, s->h, s->k, n, c->dim);
    be->ops->add(be, s->x + at, s->h, n, c->dim);
}

/* x += down(gelu(up(ln2(x)))), in two parts */
static void feed_forward(struct vision *v, const struct vision_layer *w, int first, int n, bool second)
{
    const struct vision_config *c = &v->config;
    const struct vision_scratch *s = &v->s;
    struct backend *be = v->bind.be;
    float *x = s->x + (size_t)first * (size_t)c->dim;
    if (!second) {
        be->ops->layernorm(be, s->h, x, w->ln2.w, w->ln2.b, n, c->dim, c->eps);
        apply(v, &w->up, s->f, s->h, n, c->ffn_dim);
        be->ops->gelu(be, s->f, GELU_TANH, n, c->ffn_dim);
        return;
    }
    apply(v, &w->down, s->h, s->f, n, c->dim);
    be->ops->add(be, x, s->h, n, c->dim);
}

/* Tokens of n patches: fc2(gelu(fc1(norm(join(x))))), where the last merger's norm is before the joining; in two parts. */
static void merge(struct vision *v, int merger, int first, int n, bool second)
{
    const struct vision_config *c = &v->config;
    const struct merger *m = &v->mergers[merger];
    const struct vision_scratch *s = &v->s;
    struct backend *be = v->bind.be;
    bool last = merger == c->n_added;
    int tokens = n / JOINED, wide = JOINED * c->dim;
    if (!second) {
        const float *x = s->x + (size_t)first * (size_t)c->dim;
        be->ops->layernorm(be, s->h, x, m->norm.w, m->norm.b, last ? n : tokens, last ? c->dim : wide, c->eps);
        apply(v, &m->fc1, s->k, s->h, tokens, wide);
        be->ops->gelu(be, s->k, GELU_ERF, tokens, wide);
        return;
    }
    size_t width = (size_t)c->out_dim, pitch = width * (size_t)(1 + c->n_added), place = width * (size_t)(last ? 0 : 1 + merger);
    apply(v, &m->fc2, s->made, s->k, tokens, c->out_dim);
    for (size_t t = 0; t < (size_t)tokens; t++)
        memcpy(v->out + ((size_t)(first / JOINED) + t) * pitch + place, s->made + t * width, width * sizeof *v->out);
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
}

/* Rows whose attention takes about as long as a product of CHUNK rows. */
static int attend_rows(const struct vision *v)
{
    const int64_t macs = (int64_t)1 << 29, row = 2LL * v->rows * v->cols * v->config.dim;
    return macs / row < 8 ? 8 : macs / row > CHUNK ? CHUNK : (int)(macs / row);
}

enum step_kind { ROWS, PREPARE, ATTEND, FEED_FORWARD, MERGE, KINDS };

static int ceil_div(int n, int size) { return (n + size - 1) / size; }

/* How many parts an image's rows, or one layer's or one merger's work, have. */
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
    return count[ROWS] + v->config.n_layers * (count[PREPARE] + count[ATTEND] + count[FEED_FORWARD]) + (v->config.n_added + 1) * count[MERGE];
}

/* Which addition follows layer l; -1: none. */
static int added_by(const struct vision_config *c, int l)
{
    for (int i = 0; i < c->n_added; i++)
        if (c->added_after[i] == l) return i;
    return -1;
}

struct step {
    enum step_kind kind;
    int which; /* layer or merger */
    int part;  /* of that */
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
    struct step s = step_of(v, part);
    bool halves = s.kind >= FEED_FORWARD, second = halves && s.part % 2;
    int rows = s.kind == ATTEND ? attend_rows(v) : CHUNK, first = (halves ? s.part / 2 : s.part) * rows, n = min_int(rows, v->rows * v->cols - first);
    switch (s.kind) {
    case ROWS: begin_rows(v, first, n); break;
    case PREPARE: prepare(v, &v->layers[s.which], first, n); break;
    case ATTEND: attend(v, &v->layers[s.which], first, n); break;
    case FEED_FORWARD: feed_forward(v, &v->layers[s.which], first, n, second); break;
    default: merge(v, s.which, first, n, second); break;
    }
}
