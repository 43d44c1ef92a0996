/* SPDX-License-Identifier: MIT
 *
 * Attention over one page: the same sums as kernels_scalar.c, columns in the lanes.
 *
 * Scores and values are written once, for floats and for halves that are widened in registers, for one query at a time and
 * for two that share what is loaded. Eight sums at once hide the latency of the additions.
 */
#include "simd.h"

#include <math.h>

enum source { FLOATS, HALVES };

/* 8 columns of keys or values; halves come out divided by F16_SCALE. */
INLINE void load8(enum source source, const uint8_t *x, vec mask, vec out[2])
{
    if (source == HALVES) f16_scaled(x, mask, out);
    else out[0] = vec_load(x), out[1] = vec_load(x + 16);
}

/* Brings bytes into the cache. */
INLINE void touch(const uint8_t *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64) (void)*(volatile const uint8_t *)(p + i);
}

/* --- scores -------------------------------------------------------------------------------------------- */

/* The tree of 8 partial sums, for four dot products at once. */
INLINE vec tree4(const vec low[4], const vec high[4])
{
    vec s[4];
    for (int j = 0; j < 4; j++) s[j] = f32_add(low[j], high[j]);
    vec a = f32_add(vec_low_pairs(s[0], s[1]), vec_high_pairs(s[0], s[1]));
    vec b = f32_add(vec_low_pairs(s[2], s[3]), vec_high_pairs(s[2], s[3]));
    return f32_add(vec_even(a, b), vec_odd(a, b));
}

/* Columns from .. dim - 1, fewer than 8, of one product's partial sums. */
static __attribute__((noinline)) void add_rest(vec *low, vec *high, const float *x, const float *y, int from, int dim)
{
    float sums[8];
    vec_store(sums, *low);
    vec_store(sums + 4, *high);
    for (int i = from; i < dim; i++) sums[i % 8] += x[i] * y[i];
    *low = vec_load(sums);
    *high = vec_load(sums + 4);
}

/* Products of 4 keys with a, or of 2 keys with a, then with b, which are scaled if the keys are halves; keys are `step` bytes apart. */
INLINE vec dot4_keys(enum source source, int queries, const float *a, const float *b, const uint8_t *k, size_t step, int dim)
{
    const int keys = 4 / queries;
    const size_t size = source == FLOATS ? sizeof(float) : sizeof(uint16_t);
    const vec mask = i32_kept(F16_MASK);
    vec low[4], high[4];
    int i = 0;
    for (int j = 0; j < 4; j++) low[j] = high[j] = f32_splat(0);
    for (; i + 8 <= dim; i += 8)
#pragma GCC unroll 4
        for (int j = 0; j < keys; j++) {
            vec x[2];
            load8(source, k + (size_t)j * step + (size_t)i * size, mask, x);
            low[j] = f32_add(low[j], f32_mul(vec_load(a + i), x[0]));
            high[j] = f32_add(high[j], f32_mul(vec_load(a + i + 4), x[1]));
            if (queries == 1) continue;
            low[j + 2] = f32_add(low[j + 2], f32_mul(vec_load(b + i), x[0]));
            high[j + 2] = f32_add(high[j + 2], f32_mul(vec_load(b + i + 4), x[1]));
        }
    if (source == FLOATS && i < dim)
        for (int j = 0; j < 4; j++) add_rest(&low[j], &high[j], j < keys ? a : b, (const float *)(const void *)(k + (size_t)(j % keys) * step), i, dim);
    return tree4(low, high);
}

INLINE const float *factor(enum source source, const struct query *q) { return source == FLOATS ? q->q : q->scaled; }

/* Keys after the last one seen, up to a multiple of 4, are computed too: they are in the page, and no one looks at the result.
 * `ahead` may be NULL; else it is as long as k. */
INLINE void score_keys(enum source source, float *p, const struct query *q, int n, const uint8_t *k, size_t step, int dim, float scale, const uint8_t *ahead)
{
    for (; n >= 2; n -= 2, q += 2, p += 2 * BLOCK)
        for (int i = 0; i < max_int(q[0].seen, q[1].seen); i += 2) {
            float s[4];
            if (ahead) touch(ahead + (size_t)i * step, 2 * step);
            vec_store(s, f32_mul(dot4_keys(source, 2, factor(source, q), factor(source, q + 1), k + (size_t)i * step, step, dim), f32_splat(scale)));
            p[i] = s[0], p[i + 1] = s[1];
            p[BLOCK + i] = s[2], p[BLOCK + i + 1] = s[3];
        }
    if (n == 0) return;
    for (int i = 0; i < q->seen; i += 4) {
        if (ahead) touch(ahead + (size_t)i * step, 4 * step);
        vec_store(p + i, f32_mul(dot4_keys(source, 1, factor(source, q), NULL, k + (size_t)i * step, step, dim), f32_splat(scale)));
    }
}

static void scores(float *p, const struct query *q, int n, const float *k, int dim, float scale)
{
    score_keys(FLOATS, p, q, n, (const uint8_t *)k, (size_t)dim * sizeof *k, dim, scale, NULL);
}

static void scores_f16(float *p, const struct query *q, int n, const uint16_t *k, int dim, float scale, const uint16_t *v)
{
    score_keys(HALVES, p, q, n, (const uint8_t *)k, (size_t)dim * sizeof *k, dim, scale, (const uint8_t *)v);
}

/* Sums of 32 products of codes: lanes are 4 keys. */
INLINE vec sum4_codes(const int8_t *code, size_t step, const int8_t *q)
{
    vec low = vec_load(q), high = vec_load(q + 16), s[4];
    for (int j = 0; j < 4; j++) s[j] = i32_add(dot16(vec_load(code + (size_t)j * step), low), dot16(vec_load(code + (size_t)j * step + 16), high));
    vec a = i32_add(vec_low_pairs(s[0], s[1]), vec_high_pairs(s[0], s[1]));
    vec b = i32_add(vec_low_pairs(s[2], s[3]), vec_high_pairs(s[2], s[3]));
    return i32_add(vec_even(a, b), vec_odd(a, b));
}

static void scores_q8(float *p, const struct query *q, int n, const int8_t *code, const float *d, int dim, float scale)
{
    int blocks = dim / BLOCK;
    for (int t = 0; t < n; t++, p += BLOCK)
        for (int i = 0; i < q[t].seen; i += 4) {
            const float *e = d + i * blocks;
            vec y = f32_splat(0);
            for (int b = 0; b < blocks; b++, e++) {
                const float each[4] = {e[0], e[blocks], e[2 * blocks], e[3 * blocks]};
                vec sum = sum4_codes(code + (size_t)i * (size_t)dim + (size_t)b * BLOCK, (size_t)dim, q[t].code + b * BLOCK);
                y = f32_add(y, f32_mul(f32_from_i32(sum), f32_mul(vec_load(each), f32_splat(q[t].scale[b]))));
            }
            vec_store(p + i, f32_mul(y, f32_splat(scale)));
        }
}

/* --- softmax ------------------------------------------------------------------------------------------- */

static void scale_row(float *x, float factor, int n)
{
    int i = 0;
    for (; i + 4 <= n; i += 4) vec_store(x + i, f32_mul(vec_load(x + i), f32_splat(factor)));
    for (; i < n; i++) x[i] *= factor;
}

/* Puts -infinity behind the scores. A NaN is no maximum, as in the reference. */
static float largest(float *p, int n, float max)
{
    float lane[4];
    vec top = f32_splat(max);
    for (int i = n; i % 4; i++) p[i] = -INFINITY;
    for (int i = 0; i < n; i += 4) top = vec_select(f32_lt(top, vec_load(p + i)), vec_load(p + i), top);
    vec_store(lane, top);
    for (int i = 0; i < 4; i++) max = lane[i] > max ? lane[i] : max;
    return max;
}

static void soften_one(const struct exp4 *k, float *p, struct query *q, int dim)
{
    float max = largest(p, q->seen, q->max);
    if (max > q->max) {
        float shrink = num_exp(q->max - max);
        q->sum *= shrink;
        scale_row(q->acc, shrink, dim);
        q->max = max;
    }
    for (int i = 0; i < q->seen; i += 4) vec_store(p + i, exp4(k, f32_sub(vec_load(p + i), f32_splat(max))));
    float sum = q->sum;
    for (int i = 0; i < q->seen; i++) sum += p[i];
    q->sum = sum;
}

static void soften(float *p, struct query *q, int n, int dim)
{
    const struct exp4 k = exp4_constants();
    for (int t = 0; t < n; t++)
        if (q[t].seen) soften_one(&k, p + t * BLOCK, &q[t], dim);
}

/* --- values -------------------------------------------------------------------------------------------- */

/* 16 columns of acc += p * v for one query or two; the values of a position are `step` bytes after those of the last. */
INLINE void add_columns(enum source source, int queries, float *const acc[2], const float *const p[2], const uint8_t *v, size_t step, int n)
{
    const size_t size = source == FLOATS ? sizeof(float) : sizeof(uint16_t);
    const vec mask = i32_kept(F16_MASK);
    vec s[2][4];
    for (int t = 0; t < queries; t++)
        for (int j = 0; j < 4; j++) s[t][j] = vec_load(acc[t] + 4 * j);
    for (int i = 0; i < n; i++, v += step)
#pragma GCC unroll 2
        for (size_t j = 0; j < 2; j++) {
            vec x[2];
            load8(source, v + 8 * j * size, mask, x);
            for (int t = 0; t < queries; t++) {
                s[t][2 * j] = f32_add(s[t][2 * j], f32_mul(vec_spread4(p[t] + i), x[0]));
                s[t][2 * j + 1] = f32_add(s[t][2 * j + 1], f32_mul(vec_spread4(p[t] + i), x[1]));
            }
        }
    for (int t = 0; t < queries; t++)
        for (int j = 0; j < 4; j++) vec_store(acc[t] + 4 * j, s[t][j]);
}

INLINE void add_rows(enum source source, int queries, const float *p, const struct query *q, const uint8_t *v, int dim)
{
    const size_t size = source == FLOATS ? sizeof(float) : sizeof(uint16_t);
    for (int d = 0; d + 16 <= dim; d += 16) {
        float *const acc[2] = {q[0].acc + d, q[queries - 1].acc + d};
        const float *const weights[2] = {p, p + BLOCK};
        add_columns(source, queries, acc, weights, v + (size_t)d * size, (size_t)dim * size, q->seen);
    }
}

INLINE void add_values(enum source source, const float *p, const struct query *q, int n, const uint8_t *v, int dim)
{
    for (int t = 0; t < n; t++) {
        bool pair = t + 1 < n && q[t].seen == q[t + 1].seen;
        if (pair) add_rows(source, 2, p + t * BLOCK, q + t, v, dim);
        else add_rows(source, 1, p + t * BLOCK, q + t, v, dim);
        t += pair;
    }
}

static void values(float *p, const struct query *q, int n, const float *v, int dim)
{
    add_values(FLOATS, p, q, n, (const uint8_t *)v, dim);
    for (int t = 0; t < n && dim % 16; t++)
        for (int d = dim - dim % 16; d < dim; d++)
            for (int i = 0; i < q[t].seen; i++) q[t].acc[d] += p[t * BLOCK + i] * v[i * dim + d];
}

static void values_f16(float *p, const struct query *q, int n, const uint16_t *v, int dim)
{
    scale_row(p, F16_SCALE, n * BLOCK);
    add_values(HALVES, p, q, n, (const uint8_t *)v, dim);
}

void attend_simd(struct kernels *k)
{
    k->scores = scores;
    k->scores_q8 = scores_q8;
    k->scores_f16 = scores_f16;
    k->soften = soften;
    k->values = values;
    k->values_f16 = values_f16;
}
