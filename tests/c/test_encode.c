/* SPDX-License-Identifier: MIT
 *
 * The operations of the image encoder: against the rules in double precision, the scalar and the SIMD kernels to the
 * bit, over threads and sizes that no block divides; attention against a language model's with an f32 cache, also to
 * the bit.
 */
#include "base/num.h"
#include "model_file.h"
#include "ops.h"

#include <math.h>

static struct kernels simd;

/* Two CPU backends: scalar with one thread, SIMD with three. */
struct both {
    struct mem mem;
    struct pool *pool[2];
    struct backend *be[2];
};

static void both_open(struct both *b)
{
    *b = (struct both){0};
    for (int i = 0; i < 2; i++) {
        b->pool[i] = pool_new(&b->mem, i ? 3 : 1);
        b->be[i] = b->pool[i] ? backend_cpu(&b->mem, b->pool[i], !i) : NULL;
        CHECK(b->be[i] != NULL);
    }
}

static void both_close(struct both *b)
{
    for (int i = 0; i < 2; i++) {
        b->be[i]->ops->free(b->be[i]);
        pool_free(b->pool[i]);
    }
    CHECK_EQ(b->mem.used, 0);
}

static float *floats(uint64_t *seed, size_t n, float scale)
{
    float *x = malloc(n * sizeof *x + 1);
    CHECK(x != NULL);
    for (size_t i = 0; i < n; i++) x[i] = random_unit(seed) * scale;
    return x;
}

static bool same(float a, float b) { return (a != a && b != b) || bits_from_f32(a) == bits_from_f32(b); }

static void check_same(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) CHECK(same(a[i], b[i]));
}

/* --- by row ---------------------------------------------------------------------------------------------------- */

static void check_normed(const float *y, const float *x, const float *w, const float *bias, int n, double eps)
{
    double mean = 0, variance = 0;
    for (int i = 0; i < n; i++) mean += (double)x[i] / n;
    for (int i = 0; i < n; i++) variance += ((double)x[i] - mean) * ((double)x[i] - mean) / n;
    for (int i = 0; i < n; i++) {
        double expected = ((double)x[i] - mean) / sqrt(variance + eps) * (double)w[i] + (double)bias[i];
        CHECK(fabs((double)y[i] - expected) <= 1e-4 * (1 + fabs(expected)));
    }
}

static void run_layernorm(struct backend *be, float *y, const float *x, const float *w, const float *bias, int n,
                          int dim)
{
    RUN(be, OP_LAYERNORM, n, dim, .y = handle_of(be, y), .x = handle_of(be, x), .vector = w, .bias = bias,
        .eps = 1e-6f);
}

static void layernorm(void)
{
    struct both b;
    uint64_t seed = 3;
    both_open(&b);
    for (int n = 1; n <= 160; n = n < 80 ? n + 1 : 2 * n) {
        const int rows = 300;
        float *x = floats(&seed, (size_t)(n * rows), 4), *w = floats(&seed, (size_t)n, 1),
              *bias = floats(&seed, (size_t)n, 1);
        float *y[2] = {floats(&seed, (size_t)(n * rows), 1), floats(&seed, (size_t)(n * rows), 1)};
        for (int i = 0; i < n * rows; i++) x[i] += 3; /* a mean that is not 0 */
        for (int i = 0; i < 2; i++) run_layernorm(b.be[i], y[i], x, w, bias, rows, n);
        check_same(y[0], y[1], (size_t)(n * rows));
        for (int t = 0; t < rows && n > 7; t++) check_normed(y[0] + t * n, x + t * n, w, bias, n, 1e-6);
        run_layernorm(b.be[1], x, x, w, bias, rows, n); /* in place */
        check_same(x, y[0], (size_t)(n * rows));
        float *parts[] = {x, w, bias, y[0], y[1]};
        for (int i = 0; i < 5; i++) free(parts[i]);
    }
    both_close(&b);
}

static double gelu_by_tanh(double x) { return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x))); }
static double gelu_by_erf(double x) { return 0.5 * x * (1 + erf(x / sqrt(2))); }

/* Every 4,096th float, and those near the points where the formula changes. */
static float gelu_input(uint32_t i)
{
    static const float places[] = {0,  -0.0f, 1e-30f, 5.6568537f, 5.656855f, -5.6568537f, -5.656855f,
                                   88, -88,   1e30f,  -1e30f,     INFINITY,  -INFINITY,   NAN};
    const uint32_t n = sizeof places / sizeof *places;
    return i < n ? places[i] : f32_from_bits((i - n) << 12);
}

typedef void gelu_fn(float *x, int n);

static void gelu_kind(gelu_fn *reference, gelu_fn *fast, double (*exact)(double), double room)
{
    const uint32_t n = (1u << 20) + 14;
    float *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b);
    CHECK(a && b);
    for (uint32_t i = 0; i < n; i++) a[i] = b[i] = gelu_input(i);
    reference(a, (int)n);
    fast(b, (int)n);
    check_same(a, b, n);
    for (uint32_t i = 0; i < n; i++) {
        float x = gelu_input(i);
        if (isfinite(x) && fabsf(x) < 1e18f)
            CHECK(fabs((double)a[i] - exact((double)x)) <= room * (1 + fabs((double)x)));
        if (x != x || x == -INFINITY) CHECK(a[i] != a[i]);
        if (x == INFINITY) CHECK(a[i] == INFINITY);
    }
    for (int size = 1; size < 12; size++) { /* sizes with remainders */
        for (int i = 0; i < size; i++) a[i] = b[i] = gelu_input((uint32_t)(700000 + i));
        reference(a, size);
        fast(b, size);
        check_same(a, b, (size_t)size);
    }
    free(a);
    free(b);
}

static void gelu(void)
{
    gelu_kind(kernels_scalar.gelu, simd.gelu, gelu_by_tanh, 6e-7);
    gelu_kind(kernels_scalar.gelu_erf, simd.gelu_erf, gelu_by_erf, 1e-7);
}

static void bias(void)
{
    struct both b;
    uint64_t seed = 5;
    both_open(&b);
    for (int dim = 1; dim < 40; dim++) {
        float *y = floats(&seed, (size_t)(700 * dim), 1), *other = malloc((size_t)(700 * dim) * sizeof *y),
              *more = floats(&seed, (size_t)dim, 1);
        memcpy(other, y, (size_t)(700 * dim) * sizeof *y);
        RUN(b.be[1], OP_BIAS, 700, dim, .y = handle_of(b.be[1], y), .bias = more);
        for (int i = 0; i < 700 * dim; i++) CHECK(y[i] == other[i] + more[i % dim]);
        free(y), free(other), free(more);
    }
    both_close(&b);
}

/* --- attention --------------------------------------------------------------------------------------------------- */

struct look {
    int rows, heads, dim;
    float *q, *k, *v; /* [rows, heads * dim] */
};

static float *attend_all(struct backend *be, const struct look *l, int chunk)
{
    const struct heads s = {l->rows, l->heads, l->dim};
    int width = l->heads * l->dim;
    size_t kept_size = be->ops->heads_size(be, &s);
    float *o = malloc((size_t)(l->rows * width) * sizeof *o), *kept = malloc(kept_size * sizeof *kept);
    CHECK(o && kept);
    memset(kept, 0xFF, kept_size * sizeof *kept); /* NaN after the last row */
    for (int i = 0; i < l->rows; i += chunk)
        RUN(be, OP_KEEP, min_int(chunk, l->rows - i), width, .y = handle_of(be, kept),
            .x = handle_of(be, l->k + i * width), .z = handle_of(be, l->v + i * width), .first = i, .attended = s);
    for (int i = 0; i < l->rows; i += chunk)
        RUN(be, OP_ATTEND_ALL, min_int(chunk, l->rows - i), width, .y = handle_of(be, o + i * width),
            .x = handle_of(be, l->q + i * width), .z = handle_of(be, kept), .attended = s);
    free(kept);
    return o;
}

/* A language model's attention with an f32 cache, where every row sees all rows. */
static float *attend_pages(struct backend *be, const struct look *l)
{
    int n_pages = (l->rows + KV_PAGE - 1) / KV_PAGE, width = l->heads * l->dim;
    const struct reserve reserve = {
        .kv = {1, l->heads, l->heads, l->dim, n_pages, KV_F32}, .max_rows = l->rows, .max_cols = 32};
    int32_t *pages = malloc((size_t)n_pages * sizeof *pages);
    struct kv_row *rows = malloc((size_t)l->rows * sizeof *rows);
    float *o = malloc((size_t)(l->rows * width) * sizeof *o);
    CHECK(pages && rows && o);
    CHECK_EQ(be->ops->reserve(be, &reserve), OK);
    for (int i = 0; i < n_pages; i++) pages[i] = i;
    for (int i = 0; i < l->rows; i++) rows[i] = (struct kv_row){pages, i};
    RUN(be, OP_KV_APPEND, l->rows, width, .x = handle_of(be, l->k), .z = handle_of(be, l->v), .kv = rows);
    for (int i = 0; i < l->rows; i++) rows[i].index = l->rows - 1;
    RUN(be, OP_ATTENTION, l->rows, width, .y = handle_of(be, o), .x = handle_of(be, l->q), .kv = rows);
    free(pages);
    free(rows);
    return o;
}

static void check_exact(const struct look *l, const float *o)
{
    size_t width = (size_t)(l->heads * l->dim);
    double *p = malloc((size_t)l->rows * sizeof *p);
    for (int i = 0; i < l->rows; i += 1 + l->rows / 7)
        for (int h = 0; h < l->heads; h++) {
            const float *q = l->q + (size_t)i * width + h * l->dim;
            double sum = 0;
            for (int j = 0; j < l->rows; j++) {
                double dot = 0;
                for (int d = 0; d < l->dim; d++)
                    dot += (double)q[d] * (double)l->k[(size_t)j * width + (size_t)(h * l->dim + d)];
                sum += p[j] = exp(dot / sqrt(l->dim));
            }
            for (int d = 0; d < l->dim; d++) {
                double expected = 0;
                for (int j = 0; j < l->rows; j++)
                    expected += p[j] / sum * (double)l->v[(size_t)j * width + (size_t)(h * l->dim + d)];
                CHECK(fabs((double)o[(size_t)i * width + (size_t)(h * l->dim + d)] - expected) <= 1e-5);
            }
        }
    free(p);
}

/* Heads of 64 and 72 columns, and of odd sizes; numbers of rows below, at and above a page and a span. */
static void attention(void)
{
    static const struct look looks[] = {{.rows = 4, .heads = 1, .dim = 4},    {.rows = 31, .heads = 3, .dim = 12},
                                        {.rows = 32, .heads = 2, .dim = 72},  {.rows = 33, .heads = 1, .dim = 64},
                                        {.rows = 200, .heads = 2, .dim = 64}, {.rows = 512, .heads = 1, .dim = 20},
                                        {.rows = 513, .heads = 2, .dim = 72}, {.rows = 1100, .heads = 1, .dim = 32}};
    uint64_t seed = 11;
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        struct look l = looks[i];
        size_t size = (size_t)(l.rows * l.heads * l.dim);
        struct both b;
        both_open(&b);
        l.q = floats(&seed, size, 2), l.k = floats(&seed, size, 2), l.v = floats(&seed, size, 1);
        float *scalar = attend_all(b.be[0], &l, l.rows), *fast = attend_all(b.be[1], &l, 37),
              *text = attend_pages(b.be[1], &l);
        check_same(scalar, fast, size);
        check_same(scalar, text, size);
        check_exact(&l, fast);
        float *parts[] = {l.q, l.k, l.v, scalar, fast, text};
        for (int j = 0; j < 6; j++) free(parts[j]);
        both_close(&b);
    }
}

/* --- weights in strips ------------------------------------------------------------------------------------------- */

/* A matrix that arrives in columns equals the matrix that arrives in rows. */
static void columns(void)
{
    static const char *const types[] = {"F32", "F16", "BF16"};
    const int rows = 19, cols = 96, strip = 16;
    struct both b;
    uint64_t seed = 13;
    both_open(&b);
    for (int i = 0; i < 3; i++) {
        const struct dtype *type = dtype_by_name(types[i]);
        size_t bytes = type->bytes, pitch = (size_t)cols * bytes;
        uint8_t whole[19 * 96 * 4], hash[2][16];
        for (size_t j = 0; j < sizeof whole; j++) whole[j] = (uint8_t)(random_next(&seed) >> 56);
        struct weight *w[2] = {b.be[1]->ops->weight_new(b.be[1], type, rows, cols),
                               b.be[1]->ops->weight_new(b.be[1], type, rows, cols)};
        b.be[1]->ops->weight_put(b.be[1], w[0], 0, rows, whole);
        for (int c = cols - strip; c >= 0; c -= strip)
            for (int r = 0; r < rows; r += 8)
                b.be[1]->ops->weight_put_columns(b.be[1], w[1], r, min_int(8, rows - r), c, strip,
                                                 whole + (size_t)r * pitch + (size_t)c * bytes, pitch);
        for (int j = 0; j < 2; j++) {
            b.be[1]->ops->weight_hash(b.be[1], w[j], 0, b.be[1]->ops->weight_facts(b.be[1], w[j]).bytes, hash[j]);
            b.be[1]->ops->weight_free(b.be[1], w[j]);
        }
        CHECK_EQ(memcmp(hash[0], hash[1], sizeof hash[0]), 0);
    }
    both_close(&b);
}

static const struct check tests[] = {
    {"layernorm", layernorm}, {"gelu", gelu}, {"bias", bias}, {"attention", attention}, {"columns", columns}};

int main(int argc, char **argv)
{
    simd = kernels_simd(DOTS_I16);
    return check_run(argc, argv, tests, sizeof tests / sizeof *tests);
}
