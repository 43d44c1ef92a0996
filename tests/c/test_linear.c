/* SPDX-License-Identifier: MIT
 *
 * Linear layers: the operations CONVOLVE and DELTA, and the gates around them. fixtures/qwen35/linear.bin has inputs
 * and the bits of an independent program; any cut of its rows into runs and steps, any company and any build must give
 * them. Unwritten slots are full of NaN.
 */
#include "base/num.h"
#include "base/reader.h"
#include "model_file.h"
#include "ops.h"

#include <math.h>

enum { SLOTS = 8, ROWS_MOST = 160 };

/* One call: inputs, and the results of all rows of one sequence. */
struct record {
    struct linear_layer l;
    int n;
    float *taps, *rate, *bias, *norm, *u, *z, *alpha, *beta; /* u [n, channels], z [n, value_dim] */
    float *y, *state, *rows;                                 /* results; NULL: unknown */
};

static int value_dim(const struct record *r) { return r->l.n_value_heads * r->l.head_dim; }

static float *take(const uint8_t **at, size_t n)
{
    float *x = malloc(n * sizeof *x);
    CHECK(x != NULL);
    memcpy(x, *at, n * sizeof *x);
    *at += n * sizeof *x;
    return x;
}

static float *turn(const float *x, int rows, int cols)
{
    float *y = malloc((size_t)(rows * cols) * sizeof *y);
    CHECK(y != NULL);
    for (int i = 0; i < rows * cols; i++) y[i % cols * rows + i / cols] = x[i];
    return y;
}

static struct record read_record(const uint8_t **at)
{
    struct record r = {0};
    int32_t head[8];
    memcpy(head, *at, sizeof head);
    *at += sizeof head;
    r.l = (struct linear_layer){
        .n_key_heads = head[0], .n_value_heads = head[1], .head_dim = head[2], .grouped = head[4]};
    r.n = head[3];
    size_t channels = (size_t)linear_channels(&r.l), n = (size_t)r.n, heads = (size_t)head[1], dim = (size_t)head[2];
    float *taps = take(at, TAPS * channels);
    r.taps = turn(taps, (int)channels, TAPS);
    free(taps);
    r.rate = take(at, heads);
    r.bias = take(at, heads);
    r.norm = take(at, dim);
    r.u = take(at, n * channels);
    r.z = take(at, n * heads * dim);
    r.alpha = take(at, n * heads);
    r.beta = take(at, n * heads);
    r.y = take(at, n * heads * dim);
    r.state = take(at, heads * dim * dim);
    r.rows = take(at, (TAPS - 1) * channels);
    return r;
}

static float *floats(uint64_t *seed, size_t n, float scale)
{
    float *x = malloc(n * sizeof *x);
    CHECK(x != NULL);
    for (size_t i = 0; i < n; i++) x[i] = random_unit(seed) * scale;
    return x;
}

static struct record random_record(uint64_t seed, struct linear_layer l, int n)
{
    size_t channels = (size_t)linear_channels(&l), heads = (size_t)l.n_value_heads, rows = (size_t)n,
           wide = heads * (size_t)l.head_dim;
    struct record r = {.l = l,
                       .n = n,
                       .taps = floats(&seed, TAPS * channels, .5f),
                       .rate = floats(&seed, heads, 4),
                       .bias = floats(&seed, heads, 3),
                       .norm = floats(&seed, (size_t)l.head_dim, 2),
                       .u = floats(&seed, rows * channels, 2),
                       .z = floats(&seed, rows * wide, 4),
                       .alpha = floats(&seed, rows * heads, 3),
                       .beta = floats(&seed, rows * heads, 4)};
    for (size_t i = 0; i < heads; i++) r.rate[i] = -fabsf(r.rate[i]);
    return r;
}

static void free_record(struct record *r)
{
    float *parts[] = {r->taps, r->rate, r->bias, r->norm, r->u, r->z, r->alpha, r->beta, r->y, r->state, r->rows};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) free(parts[i]);
}

struct machine {
    struct mem mem;
    struct pool *pool;
    struct backend *be;
    float *mixed, *pairs;
};

static void open_machine(struct machine *m, const struct record *r, int threads, bool scalar)
{
    const struct kv_shape kv = {.n_layers = 1, .n_heads = 1, .n_kv_heads = 1, .head_dim = 32, .n_pages = 1};
    const uint64_t bytes = 2 * linear_state(&r->l) * sizeof(float); /* two layers, of which the second is used */
    *m = (struct machine){0};
    m->pool = pool_new(&m->mem, threads);
    m->be = backend_cpu(&m->mem, m->pool, scalar);
    CHECK_EQ(
        m->be->ops->reserve(m->be, &(struct reserve){.kv = kv, .state = {.bytes = bytes, .n_slots = SLOTS}, .max_rows = 1, .max_cols = 32}),
        OK);
    memset(cpu_slot((struct cpu *)m->be, 0), 0xFF, (size_t)bytes * SLOTS);
    m->mixed = malloc((size_t)(ROWS_MOST * linear_channels(&r->l)) * sizeof(float));
    m->pairs = malloc((size_t)(2 * ROWS_MOST * r->l.n_value_heads) * sizeof(float));
}

static void close_machine(struct machine *m)
{
    m->be->ops->free(m->be);
    pool_free(m->pool);
    CHECK_EQ(m->mem.used, 0);
    free(m->mixed);
    free(m->pairs);
}

/* Computes rows first .. first + n - 1 of the record as one step of these runs, which count from its first row; writes
 * the rows of y. */
static void step(struct machine *m, const struct record *r, int first, int n, const struct state_run *runs, int n_runs,
                 float *y)
{
    struct linear_layer l = r->l;
    struct backend *be = m->be;
    size_t heads = (size_t)l.n_value_heads, wide = (size_t)value_dim(r), at = (size_t)first, rows = (size_t)n;
    float *z = malloc(rows * wide * sizeof *z), *o = malloc(rows * wide * sizeof *o);
    CHECK(z && o);
    l.taps = r->taps, l.rate = r->rate, l.bias = r->bias;
    memcpy(z, r->z + at * wide, rows * wide * sizeof *z);
    memcpy(m->pairs, r->alpha + at * heads, rows * heads * sizeof(float));
    memcpy(m->pairs + rows * heads, r->beta + at * heads, rows * heads * sizeof(float));
    RUN(be, OP_CONVOLVE, n, linear_channels(&l), .y = handle_of(be, m->mixed),
        .x = handle_of(be, r->u + at * (size_t)linear_channels(&l)), .linear = &l, .runs = runs, .n_runs = n_runs,
        .layer = 1);
    RUN(be, OP_DELTA, n, (int)wide, .y = handle_of(be, o), .x = handle_of(be, m->mixed), .z = handle_of(be, m->pairs),
        .linear = &l, .runs = runs, .n_runs = n_runs, .layer = 1);
    RUN(be, OP_RMSNORM, n * (int)heads, l.head_dim, .y = handle_of(be, o), .x = handle_of(be, o), .vector = r->norm,
        .eps = 1e-6f);
    RUN(be, OP_SWIGLU, n, (int)wide, .y = handle_of(be, z), .x = handle_of(be, o));
    memcpy(y + at * wide, z, rows * wide * sizeof *y);
    free(z);
    free(o);
}

static bool same(float a, float b) { return (a != a && b != b) || bits_from_f32(a) == bits_from_f32(b); }

static void check_same(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) CHECK(same(a[i], b[i]));
}

/* Compares the state in a slot with the record's result. */
static void check_slot(const struct machine *m, const struct record *r, int slot)
{
    size_t all = linear_state(&r->l), rows = (TAPS - 1) * (size_t)linear_channels(&r->l);
    const float *state = (const float *)(const void *)cpu_slot((const struct cpu *)m->be, slot) + all;
    check_same(state, r->state, all - rows);
    check_same(state + all - rows, r->rows, rows);
}

/* All rows at once, on one thread of the scalar build: what every other way must give. */
static void expect(struct record *r)
{
    struct machine m;
    size_t all = linear_state(&r->l), rows = (TAPS - 1) * (size_t)linear_channels(&r->l);
    r->y = malloc((size_t)(r->n * value_dim(r)) * sizeof(float));
    r->state = malloc((all - rows) * sizeof(float));
    r->rows = malloc(rows * sizeof(float));
    open_machine(&m, r, 1, true);
    step(&m, r, 0, r->n, &(struct state_run){0, r->n, -1, 3}, 1, r->y);
    const float *state = (const float *)(const void *)cpu_slot((const struct cpu *)m.be, 3) + all;
    memcpy(r->state, state, (all - rows) * sizeof(float));
    memcpy(r->rows, state + all - rows, rows * sizeof(float));
    close_machine(&m);
}

/* The rows cut in two at each place: as two runs of one step, and as two steps. */
static void check_cuts(struct record *r, int threads, bool scalar, int every)
{
    struct machine m;
    float *y = malloc((size_t)(r->n * value_dim(r)) * sizeof *y);
    open_machine(&m, r, threads, scalar);
    step(&m, r, 0, r->n, &(struct state_run){0, r->n, -1, 0}, 1, y);
    check_same(y, r->y, (size_t)(r->n * value_dim(r)));
    check_slot(&m, r, 0);
    for (int cut = 1; cut < r->n; cut += every) {
        const struct state_run runs[] = {{0, cut, -1, 1}, {cut, r->n - cut, 1, 2}};
        step(&m, r, 0, r->n, runs, 2, y);
        check_same(y, r->y, (size_t)(r->n * value_dim(r)));
        check_slot(&m, r, 2);
        step(&m, r, 0, cut, &(struct state_run){0, cut, -1, 4}, 1, y);
        step(&m, r, cut, r->n - cut, &(struct state_run){0, r->n - cut, 4, 5}, 1, y);
        check_same(y, r->y, (size_t)(r->n * value_dim(r)));
        check_slot(&m, r, 5);
    }
    free(y);
    close_machine(&m);
}

static void given_bits(void)
{
    char path[300];
    static uint8_t file[1 << 18];
    snprintf(path, sizeof path, "%s/qwen35/linear.bin", check_fixtures);
    FILE *f = fopen(path, "rb");
    CHECK(f != NULL);
    size_t size = fread(file, 1, sizeof file, f);
    fclose(f);
    const uint8_t *at = file;
    for (int i = 0; i < 2; i++) {
        struct record r = read_record(&at);
        CHECK_EQ(r.l.grouped, i);
        for (int threads = 1; threads <= 3; threads++) check_cuts(&r, threads, threads == 2, 1);
        free_record(&r);
    }
    CHECK_EQ(at - file, (long long)size);
}

/* More rows than the kernel takes at once, other sizes of heads, values that are not finite. */
static void every_build(void)
{
    const struct linear_layer shapes[] = {
        {1, 1, 128, false, 0, 0, 0}, {2, 6, 32, true, 0, 0, 0}, {2, 4, 16, false, 0, 0, 0}, {1, 2, 256, true, 0, 0, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct record r = random_record(i + 1, shapes[i], 70 + (int)i);
        r.beta[0] = 1e30f;
        r.alpha[1] = -1e30f;
        expect(&r);
        for (int threads = 1; threads <= 4; threads += 3) check_cuts(&r, threads, false, 23);
        r.u[linear_channels(&r.l) * 40] = NAN;
        r.alpha[(size_t)r.l.n_value_heads * 50] = INFINITY;
        free(r.y), free(r.state), free(r.rows);
        expect(&r);
        check_cuts(&r, 3, false, 69);
        free_record(&r);
    }
}

/* Three sequences in one step, of which one continues its state in two runs. */
static void company(void)
{
    struct record r = random_record(9, (struct linear_layer){2, 4, 32, false, 0, 0, 0}, 30);
    struct machine m;
    size_t wide = (size_t)value_dim(&r);
    float *alone = malloc(30 * wide * sizeof *alone), *y = malloc(30 * wide * sizeof *y);
    open_machine(&m, &r, 3, false);
    step(&m, &r, 0, 8, &(struct state_run){0, 8, -1, 0}, 1, alone);
    step(&m, &r, 8, 12, &(struct state_run){0, 12, 0, 1}, 1, alone);
    step(&m, &r, 20, 1, &(struct state_run){0, 1, -1, 2}, 1, alone);
    step(&m, &r, 21, 9, &(struct state_run){0, 9, 0, 3}, 1, alone);
    memcpy(y, alone, 8 * wide * sizeof *y);
    const struct state_run runs[] = {{0, 5, 0, 4}, {5, 7, 4, 5}, {12, 1, -1, 6}, {13, 9, 0, 7}};
    step(&m, &r, 8, 22, runs, 4, y);
    check_same(y, alone, 30 * wide);
    for (int i = 1; i <= 3; i++) {
        const void *a = cpu_slot((struct cpu *)m.be, i), *b = cpu_slot((struct cpu *)m.be, i + 4);
        size_t bytes = linear_state(&r.l) * sizeof(float);
        CHECK(!memcmp((const uint8_t *)a + bytes, (const uint8_t *)b + bytes, bytes));
    }
    free(alone), free(y);
    close_machine(&m);
    free_record(&r);
}

/* The first layer's state is not touched by the second layer. */
static void own_layer_only(void)
{
    struct record r = random_record(5, (struct linear_layer){1, 2, 16, false, 0, 0, 0}, 4);
    struct machine m;
    float *y = malloc((size_t)(4 * value_dim(&r)) * sizeof *y);
    open_machine(&m, &r, 2, false);
    step(&m, &r, 0, 4, &(struct state_run){0, 4, -1, 1}, 1, y);
    const uint8_t *slot = cpu_slot((struct cpu *)m.be, 1);
    for (size_t i = 0; i < linear_state(&r.l) * sizeof(float); i++) CHECK_EQ(slot[i], 0xFF);
    for (size_t i = 0; i < 2 * linear_state(&r.l) * sizeof(float); i++)
        CHECK_EQ(slot[2 * linear_state(&r.l) * 4 + i], 0xFF);
    free(y);
    close_machine(&m);
    free_record(&r);
}

static void gate(void)
{
    struct kernels simd = kernels_simd(dots_choose());
    const uint32_t n = 1u << 20;
    float *g = malloc(n * sizeof *g), *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b);
    CHECK(g && a && b);
    for (uint32_t i = 0; i < n; i++) {
        g[i] = f32_from_bits(i << 12);
        a[i] = b[i] = (float)(i % 1000) - 499.5f;
    }
    kernels_scalar.gate(a, g, (int)n - 3); /* not a multiple of the lanes */
    simd.gate(b, g, (int)n - 3);
    check_same(a, b, n);
    for (uint32_t i = 0; i < n - 3; i++) {
        double x = (double)(i % 1000) - 499.5, exact = x / (1 + exp(-(double)g[i]));
        if (g[i] == g[i]) CHECK(fabs((double)a[i] - exact) <= 1e-6 * fabs(x) + 1e-30);
    }
    free(g), free(a), free(b);
}

int main(int argc, char **argv)
{
    const struct check tests[] = {
        {"given_bits", given_bits},
        {"every_build", every_build},
        {"company", company},
        {"own_layer_only", own_layer_only},
        {"gate", gate},
    };
    return check_run(argc, argv, tests, sizeof tests / sizeof *tests);
}
