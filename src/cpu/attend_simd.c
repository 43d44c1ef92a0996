/* SPDX-License-Identifier: MIT
 *
 * Attention over one block of positions: the same sums as kernels_scalar.c, columns in the lanes.
 */
#include "simd.h"

static void scale_row(float *x, float factor, int n)
{
    int i = 0;
    for (; i + 4 <= n; i += 4) vec_store(x + i, f32_mul(vec_load(x + i), f32_splat(factor)));
    for (; i < n; i++) x[i] *= factor;
}

/* acc [head_dim] += p [n] * v [n, head_dim], positions in order; 16 columns at a time stay in registers */
static void add_values(float *acc, const float *p, const float *v, int n, int head_dim)
{
    size_t step = (size_t)head_dim;
    int d = 0;
    for (; d + 16 <= head_dim; d += 16) {
        vec s[4];
        for (int j = 0; j < 4; j++) s[j] = vec_load(acc + d + 4 * j);
        const float *value = v + d;
        for (int i = 0; i < n; i++, value += step) {
            vec w = f32_splat(p[i]);
            for (int j = 0; j < 4; j++) s[j] = f32_add(s[j], f32_mul(w, vec_load(value + 4 * j)));
        }
        for (int j = 0; j < 4; j++) vec_store(acc + d + 4 * j, s[j]);
    }
    for (; d < head_dim; d++)
        for (int i = 0; i < n; i++) acc[d] += p[i] * v[(size_t)i * step + (size_t)d];
}

static void attend(struct softmax *s, const float *q, const float *k, const float *v, int n, int head_dim, float scale)
{
    float p[BLOCK] = {0}, max = s->max;
    for (int i = 0; i < n; i++) {
        p[i] = dot(q, k + (size_t)i * (size_t)head_dim, head_dim) * scale;
        if (p[i] > max) max = p[i];
    }
    if (max > s->max) {
        float shrink = num_exp(s->max - max);
        s->sum *= shrink;
        scale_row(s->acc, shrink, head_dim);
        s->max = max;
    }
    for (int i = 0; i < n; i += 4) vec_store(p + i, exp4(f32_sub(vec_load(p + i), f32_splat(max))));
    for (int i = 0; i < n; i++) s->sum += p[i];
    add_values(s->acc, p, v, n, head_dim);
}

void attend_simd(struct kernels *k)
{
    k->attend = attend;
}
