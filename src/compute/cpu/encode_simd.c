/* SPDX-License-Identifier: MIT
 *
 * The kernels for an encoder's rows: the same sums as kernels_scalar.c.
 */
#include "compute/cpu/simd.h"

#include <math.h>

/* Adds in the order of the reference: partial sums over columns i mod 8, then their tree. */
static float sum8(const float *x, int n)
{
    vec low = f32_splat(0), high = low;
    float p[8];
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        low = f32_add(low, vec_load(x + i));
        high = f32_add(high, vec_load(x + i + 4));
    }
    vec_store(p, low);
    vec_store(p + 4, high);
    for (; i < n; i++) p[i % 8] += x[i];
    return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
}

static float squares8(const float *x, vec mean, int n)
{
    vec low = f32_splat(0), high = low;
    float p[8], m[4];
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        vec a = f32_sub(vec_load(x + i), mean), b = f32_sub(vec_load(x + i + 4), mean);
        low = f32_add(low, f32_mul(a, a));
        high = f32_add(high, f32_mul(b, b));
    }
    vec_store(p, low);
    vec_store(p + 4, high);
    vec_store(m, mean);
    for (; i < n; i++) p[i % 8] += (x[i] - m[0]) * (x[i] - m[0]);
    return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
}

static void layernorm(float *y, const float *x, const float *w, const float *bias, int n, float eps)
{
    float mean = sum8(x, n) / (float)n, scale = 1.0f / sqrtf(squares8(x, f32_splat(mean), n) / (float)n + eps);
    vec m = f32_splat(mean), s = f32_splat(scale);
    int i = 0;
    for (; i + 4 <= n; i += 4)
        vec_store(y + i,
                  f32_add(f32_mul(f32_mul(f32_sub(vec_load(x + i), m), s), vec_load(w + i)), vec_load(bias + i)));
    for (; i < n; i++) y[i] = (x[i] - mean) * scale * w[i] + bias[i];
}

static void gelu(float *x, int n)
{
    const struct exp4 k = exp4_constants();
    const vec c1 = f32_kept(GELU_C1), c2 = f32_kept(GELU_C2);
    int i = 0;
    for (; i + 4 <= n; i += 4) {
        vec v = vec_load(x + i), z = f32_mul(v, f32_add(c1, f32_mul(c2, f32_mul(v, v))));
        vec_store(x + i, f32_div(v, sigmoid4_divisor(&k, z)));
    }
    for (; i < n; i++) x[i] = num_gelu_tanh(x[i]);
}

void encode_simd(struct kernels *k)
{
    k->layernorm = layernorm;
    k->gelu = gelu;
}
