/* SPDX-License-Identifier: MIT
 *
 * Attention over one page: the same sums as kernels_scalar.c. The lanes are positions in scores, and columns in values.
 *
 * Both add products of a row's lanes with one factor, 16 lanes of one or two queries that share the loads, or 8 lanes
 * of four that share the widening of halves: eight sums at once hide the latency of the additions. One body serves
 * floats, and halves that are widened in registers.
 */
#include "compute/cpu/simd.h"

#include <math.h>

enum source { FLOATS, HALVES };
enum { MOST_QUERIES = 4 }; /* that share the loads */

/* Loads 8 lanes of keys or values; halves come out divided by F16_SCALE. */
INLINE void load8(enum source source, const uint8_t *x, vec mask, vec out[2])
{
    if (source == HALVES) f16_scaled(x, mask, out);
    else out[0] = vec_load(x), out[1] = vec_load(x + 16);
}

/* --- sums of products ------------------------------------------------------------------------------------ */

INLINE size_t lanes_bytes(enum source source)
{
    return KV_LANES * (source == FLOATS ? sizeof(float) : sizeof(uint16_t));
}

/* to[t] [16] += w[t][i * next] * x[i] [16] for i < n in order, for 1, 2 or 4 queries. With `fresh` the sums start at 0.
 */
struct sums_of {
    float *to[MOST_QUERIES];
    const float *w[MOST_QUERIES];
    size_t next;
    const uint8_t *x;
    int n;
};

/* `eights` times 8 lanes, from lane 8 * first on: at most 8 sums, so that all of them stay in registers. */
INLINE void add_lanes(enum source source, int queries, size_t first, const size_t eights, const bool fresh,
                      const struct sums_of a, vec mask)
{
    const size_t half = lanes_bytes(source) / 2;
    const float *w[MOST_QUERIES] = {a.w[0], a.w[1], a.w[2], a.w[3]};
    const uint8_t *row = a.x + first * half;
    vec s[MOST_QUERIES][4];
    for (int t = 0; t < queries; t++)
        for (size_t j = 0; j < 2 * eights; j++)
            s[t][j] = fresh ? f32_splat(0) : vec_load(a.to[t] + 8 * first + 4 * j);
    for (int i = 0; i < a.n; i++, row += 2 * half) {
#pragma GCC unroll 2
        for (size_t j = 0; j < eights; j++) {
            vec x[2];
            load8(source, row + j * half, mask, x);
            for (int t = 0; t < queries; t++) {
                s[t][2 * j] = f32_add(s[t][2 * j], f32_mul(vec_spread4(w[t]), x[0]));
                s[t][2 * j + 1] = f32_add(s[t][2 * j + 1], f32_mul(vec_spread4(w[t]), x[1]));
            }
        }
        for (int t = 0; t < queries; t++) w[t] += a.next;
    }
    for (int t = 0; t < queries; t++)
        for (size_t j = 0; j < 2 * eights; j++) vec_store(a.to[t] + 8 * first + 4 * j, s[t][j]);
}

INLINE void add_products(enum source source, int queries, const bool fresh, const struct sums_of a, vec mask)
{
    if (queries <= 2) {
        add_lanes(source, queries, 0, 2, fresh, a, mask);
        return;
    }
    add_lanes(source, queries, 0, 1, fresh, a, mask);
    add_lanes(source, queries, 1, 1, fresh, a, mask);
}

/* --- scores -------------------------------------------------------------------------------------------- */

/* The partial sums of 16 positions, one for each remainder of column mod 8. */
typedef float partial_sums[8][KV_LANES];

/* p [16] = the tree of the sums * scale */
INLINE void store_scores(float *p, const partial_sums sums, float scale)
{
    for (int i = 0; i < KV_LANES; i += 4) {
        vec s[8];
        for (int r = 0; r < 8; r++) s[r] = vec_load(sums[r] + i);
        vec even = f32_add(f32_add(s[0], s[4]), f32_add(s[2], s[6])),
            odd = f32_add(f32_add(s[1], s[5]), f32_add(s[3], s[7]));
        vec_store(p + i, f32_mul(f32_add(even, odd), f32_splat(scale)));
    }
}

INLINE const float *factor(enum source source, const struct query *q) { return source == FLOATS ? q->q : q->scaled; }

/* Also computes positions after the last one seen, up to a multiple of 16: they are in the page, and their results are
 * not used. */
INLINE void score_queries(enum source source, int queries, float *p, const struct query *q, const uint8_t *k, int dim,
                          float scale)
{
    const vec mask = i32_kept(F16_MASK);
    partial_sums sums[MOST_QUERIES];
    int seen = 0;
    for (int t = 0; t < queries; t++) seen = max_int(seen, q[t].seen);
    for (int i = 0; i < seen; i += KV_LANES) {
        for (int r = 0; r < 8; r++) {
            struct sums_of a = {.next = 8, .x = k, .n = (dim - r + 7) / 8};
            for (int t = 0; t < queries; t++) a.to[t] = sums[t][r], a.w[t] = factor(source, &q[t]) + r;
            add_products(source, queries, true, a, mask);
            k += (size_t)a.n * lanes_bytes(source);
        }
        for (int t = 0; t < queries; t++) store_scores(p + t * KV_PAGE + i, sums[t], scale);
    }
}

INLINE void score_all(enum source source, float *p, const struct query *q, int n, const uint8_t *k, int dim,
                      float scale)
{
    for (; source == HALVES && n >= 4; n -= 4, q += 4, p += 4 * KV_PAGE) score_queries(source, 4, p, q, k, dim, scale);
    for (; n >= 2; n -= 2, q += 2, p += 2 * KV_PAGE) score_queries(source, 2, p, q, k, dim, scale);
    if (n) score_queries(source, 1, p, q, k, dim, scale);
}

static void scores(float *p, const struct query *q, int n, const float *k, int dim, float scale)
{
    score_all(FLOATS, p, q, n, (const uint8_t *)k, dim, scale);
}

static void scores_f16(float *p, const struct query *q, int n, const uint16_t *k, int dim, float scale)
{
    score_all(HALVES, p, q, n, (const uint8_t *)k, dim, scale);
}

/* Sums of 32 products of codes; the lanes are 4 keys. */
INLINE vec sum4_codes(const int8_t *code, size_t step, const int8_t *q)
{
    vec low = vec_load(q), high = vec_load(q + 16), s[4];
    for (int j = 0; j < 4; j++)
        s[j] =
            i32_add(dot16(vec_load(code + (size_t)j * step), low), dot16(vec_load(code + (size_t)j * step + 16), high));
    vec a = i32_add(vec_low_pairs(s[0], s[1]), vec_high_pairs(s[0], s[1]));
    vec b = i32_add(vec_low_pairs(s[2], s[3]), vec_high_pairs(s[2], s[3]));
    return i32_add(vec_even(a, b), vec_odd(a, b));
}

static void scores_q8(float *p, const struct query *q, int n, const int8_t *code, const float *d, int dim, float scale)
{
    int blocks = dim / BLOCK;
    for (int t = 0; t < n; t++, p += KV_PAGE)
        for (int i = 0; i < q[t].seen; i += 4) {
            const float *e = d + i * blocks;
            vec y = f32_splat(0);
            for (int b = 0; b < blocks; b++, e++) {
                const float each[4] = {e[0], e[blocks], e[2 * blocks], e[3 * blocks]};
                vec sum =
                    sum4_codes(code + (size_t)i * (size_t)dim + (size_t)b * BLOCK, (size_t)dim, q[t].code + b * BLOCK);
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

/* Puts -infinity after the scores. A NaN is never the maximum, as in the reference. */
static float largest(float *p, int n, float max)
{
    float lane[4];
    vec top = f32_splat(max);
    for (int i = n; i % 4; i++) p[i] = -INFINITY;
    for (int i = 0; i < n; i += 4) top = f32_pmax(top, vec_load(p + i));
    top = f32_pmax(top, vec_high_pairs(top, top));
    vec_store(lane, f32_pmax(top, vec_odd(top, top)));
    return lane[0];
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
        if (q[t].seen) soften_one(&k, p + t * KV_PAGE, &q[t], dim);
}

/* --- values -------------------------------------------------------------------------------------------- */

/* acc += p * v for 1, 2 or 4 queries that see the same number of positions. */
INLINE void add_rows(enum source source, int queries, const float *p, const struct query *q, const uint8_t *v, int dim)
{
    const vec mask = i32_kept(F16_MASK);
    for (int d = 0; d + KV_LANES <= dim; d += KV_LANES, v += KV_PAGE * lanes_bytes(source)) {
        struct sums_of a = {.next = 1, .x = v, .n = q->seen};
        for (int t = 0; t < queries; t++) a.to[t] = q[t].acc + d, a.w[t] = p + t * KV_PAGE;
        add_products(source, queries, false, a, mask);
    }
}

INLINE void add_values(enum source source, const float *p, const struct query *q, int n, const uint8_t *v, int dim)
{
    for (int t = 0, same; t < n; t += same) {
        for (same = 1; same < MOST_QUERIES && t + same < n && q[t + same].seen == q[t].seen; same++) continue;
        if (source == HALVES && same == 4) add_rows(source, 4, p + t * KV_PAGE, q + t, v, dim);
        else if (same = min_int(same, 2), same == 2) add_rows(source, 2, p + t * KV_PAGE, q + t, v, dim);
        else add_rows(source, 1, p + t * KV_PAGE, q + t, v, dim);
    }
}

static void values(float *p, const struct query *q, int n, const float *v, int dim)
{
    add_values(FLOATS, p, q, n, (const uint8_t *)v, dim);
    for (int t = 0; t < n; t++)
        for (int d = dim - dim % KV_LANES; d < dim; d++)
            for (int i = 0; i < q[t].seen; i++) q[t].acc[d] += p[t * KV_PAGE + i] * v[value_place(i, d, dim)];
}

static void values_f16(float *p, const struct query *q, int n, const uint16_t *v, int dim)
{
    scale_row(p, F16_SCALE, n * KV_PAGE);
    add_values(HALVES, p, q, n, (const uint8_t *)v, dim);
}

static void spread(float *out, const uint16_t *in, int n)
{
    const vec mask = i32_kept(F16_MASK);
    for (int i = 0; i < n; i += 8) {
        vec x[2];
        f16_scaled(in + i, mask, x);
        vec_store(out + i, x[0]);
        vec_store(out + i + 4, x[1]);
    }
}

void attend_simd(struct kernels *k)
{
    k->spread = spread;
    k->scores = scores;
    k->scores_q8 = scores_q8;
    k->scores_f16 = scores_f16;
    k->soften = soften;
    k->values = values;
    k->values_f16 = values_f16;
}
