/* SPDX-License-Identifier: MIT
 *
 * The SIMD kernels of linear layers, and the output gate: the same sums as kernels_scalar.c. Columns of values are the
 * lanes. Eight columns walk over all keys; one walk over the state ends a row and begins the next one, so the state is
 * read and written once for each row.
 */
#include "compute/cpu/simd.h"

#define APART static __attribute__((noinline))

static void gate(float *x, const float *g, int n)
{
    const struct exp4 k = exp4_constants();
    int i = 0;
    for (; i + 4 <= n; i += 4) {
        vec sigmoid = f32_div(k.one, sigmoid4_divisor(&k, vec_load(g + i)));
        vec_store(x + i, f32_mul(vec_load(x + i), sigmoid));
    }
    for (; i < n; i++) x[i] *= num_sigmoid(g[i]);
}

static void convolve(float *y, const float *const x[TAPS], const float *taps, size_t stride, int n)
{
    const struct exp4 k = exp4_constants();
    for (int i = 0; i < n; i += 4) {
        vec sum = f32_splat(0);
        for (size_t j = 0; j < TAPS; j++)
            sum = f32_add(sum, f32_mul(vec_load(taps + j * stride + i), vec_load(x[j] + i)));
        vec_store(y + i, f32_div(sum, sigmoid4_divisor(&k, sum)));
    }
}

static void unit(float *x, float scale, int n)
{
    vec inverse = f32_splat(1.0f / sqrtf(dot(x, x, n) + UNIT_EPS)), s = f32_splat(scale);
    for (int i = 0; i < n; i += 4) vec_store(x + i, f32_mul(f32_mul(vec_load(x + i), inverse), s));
}

/* The change of a row's state, and what the state answered to the key of the next row. */
struct column {
    vec change[2], sum[2];
};

/* Adds the change of row t to the state, and sums up the answer to its query and, unless the row is the last, to the
 * next row's key. */
INLINE void walk(const struct delta *d, const float *from, size_t at, size_t t, struct column *c, const bool last)
{
    const size_t dim = (size_t)d->head_dim;
    const float *q = d->q + t * d->stride, *k = d->k + t * d->stride, *next = k + d->stride;
    const vec decay = f32_splat(d->decay[t]), later = f32_splat(last ? 0 : d->decay[t + 1]);
    vec y[2] = {f32_splat(0), f32_splat(0)}, sum[2] = {f32_splat(0), f32_splat(0)};
    float *to = d->to + at;
    for (size_t i = 0; i < dim; i++, from += dim, to += dim)
        for (int h = 0; h < 2; h++) {
            vec s = f32_add(f32_mul(vec_load(from + 4 * h), decay), f32_mul(vec_spread4(k + i), c->change[h]));
            y[h] = f32_add(y[h], f32_mul(s, vec_spread4(q + i)));
            vec_store(to + 4 * h, s);
            if (!last) sum[h] = f32_add(sum[h], f32_mul(f32_mul(s, later), vec_spread4(next + i)));
        }
    for (int h = 0; h < 2; h++) {
        vec_store(d->y + t * d->y_stride + at + 4 * h, y[h]);
        c->sum[h] = sum[h];
    }
}

/* Columns at .. at + 7. A function of its own: V8 compiles a function anew when it is called, not while it runs. */
APART void delta_columns(const struct delta *d, size_t at)
{
    const size_t dim = (size_t)d->head_dim, n = (size_t)d->n;
    const float *from = d->from + at;
    const vec decay = f32_splat(d->decay[0]);
    struct column c = {.sum = {f32_splat(0), f32_splat(0)}};
    for (size_t i = 0; i < dim; i++)
        for (int h = 0; h < 2; h++)
            c.sum[h] =
                f32_add(c.sum[h], f32_mul(f32_mul(vec_load(from + i * dim + 4 * h), decay), vec_spread4(d->k + i)));
    for (size_t t = 0; t < n; t++, from = d->to + at) {
        for (int h = 0; h < 2; h++)
            c.change[h] =
                f32_mul(f32_sub(vec_load(d->v + t * d->stride + at + 4 * h), c.sum[h]), f32_splat(d->beta[t]));
        if (t + 1 < n) walk(d, from, at, t, &c, false);
        else walk(d, from, at, t, &c, true);
    }
}

static void delta(const struct delta *d)
{
    for (size_t at = 0; at < (size_t)d->head_dim; at += 8) delta_columns(d, at);
}

void linear_simd(struct kernels *k)
{
    k->gate = gate;
    k->convolve = convolve;
    k->unit = unit;
    k->delta = delta;
}
