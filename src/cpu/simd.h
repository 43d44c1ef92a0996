/* SPDX-License-Identifier: MIT
 *
 * What the SIMD kernel files share: the float reductions and the exponential in vectors.
 *
 * kernels_simd.c has the rows (norms, activations, conversions), gemm_simd.c the products, attend_simd.c attention.
 */
#ifndef QUERN_SIMD_H
#define QUERN_SIMD_H

#include "kernels.h"

#include "../num.h"
#include "vec.h"

#include <math.h>

#define INLINE static inline __attribute__((always_inline))

/* Finishes 8 partial sums: the rest of the columns, then the tree. */
INLINE float reduce8(vec low, vec high, const float *x, const float *y, int from, int n)
{
    float p[8];
    vec_store(p, low);
    vec_store(p + 4, high);
    for (int i = from; i < n; i++) p[i % 8] += x[i] * y[i];
    return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
}

INLINE float dot(const float *x, const float *y, int n)
{
    vec low = f32_splat(0), high = low;
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        low = f32_add(low, f32_mul(vec_load(x + i), vec_load(y + i)));
        high = f32_add(high, f32_mul(vec_load(x + i + 4), vec_load(y + i + 4)));
    }
    return reduce8(low, high, x, y, i, n);
}

/* num_exp in 4 lanes, step for step. */
INLINE vec exp4(vec x)
{
    static const float k[] = {EXP_MAGIC, EXP_LOG2E, EXP_LN2_HI, EXP_LN2_LO, EXP_C0, EXP_C1, EXP_C2, EXP_C3, EXP_C4, EXP_C5, EXP_MAX, EXP_MIN, 1.0f, INFINITY};
    vec magic = vec_constant(k), one = vec_constant(k + 12);
    vec shifted = f32_add(f32_mul(x, vec_constant(k + 1)), magic);
    vec n = f32_sub(shifted, magic);
    vec r = f32_sub(x, f32_mul(n, vec_constant(k + 2)));
    r = f32_sub(r, f32_mul(n, vec_constant(k + 3)));
    vec p = vec_constant(k + 9);
    for (int i = 8; i >= 4; i--) p = f32_add(f32_mul(p, r), vec_constant(k + i)); /* C4 .. C0 */
    p = f32_add(f32_add(f32_mul(p, f32_mul(r, r)), r), one);
    vec power = i32_add(i32_shl(i32_sub(shifted, magic), 23), one); /* (n + 127) << 23 */
    vec y = f32_mul(p, power);
    y = vec_select(f32_lt(vec_constant(k + 10), x), vec_constant(k + 13), y);
    return vec_select(f32_lt(x, vec_constant(k + 11)), i32_splat(0), y);
}

void gemm_simd(struct kernels *k, enum dots dots); /* sets the products */
void attend_simd(struct kernels *k);               /* sets attention */

#endif
