/* SPDX-License-Identifier: MIT
 *
 * What the SIMD kernel files share: float reductions, conversion of halves, and the exponential in vectors.
 *
 * kernels_simd.c has the row kernels (norms, activations, conversions), attend_simd.c attention; for products see
 * products.h.
 */
#ifndef QUERN_SIMD_H
#define QUERN_SIMD_H

#include "base/num.h"
#include "compute/cpu/kernels.h"
#include "compute/cpu/vec.h"

#include <math.h>

#define INLINE static inline __attribute__((always_inline))

/* Finishes 8 partial sums: adds the remaining columns, then the tree. */
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

INLINE vec f32_abs_bits(vec x) { return vec_and(x, i32_splat(0x7FFFFFFF)); }

/* 8 finite f16 -> f32, divided by F16_SCALE: moves the bits into place and leaves the exponent as it is. A subnormal
 * half becomes a subnormal float, which costs processors a hundred cycles: attention.c makes sure that there are few.
 */
#define F16_MASK ((int32_t)0x8FFF8FFF)
INLINE void f16_scaled(const void *halves, vec mask, vec out[2])
{
    vec h = vec_load(halves), high = vec_and(i16_shr(h, 3), mask), low = i16_shl(h, 13);
    out[0] = u16_interleave_low(low, high);
    out[1] = u16_interleave_high(low, high);
}

/* Keeps a value in memory that no register is free for anyway. V8 would put it on its own stack, which is not aligned,
 * so a vector may cross two cache lines, and waiting for it each time costs a third of the speed. */
INLINE void keep_in_memory(void *p) { __asm__ volatile("" ::"r"(p) : "memory"); }

struct f32_constants {
    vec rest, sign, bias, one, least, finite, infinity;
};

INLINE struct f32_constants f32_constants(void)
{
    return (struct f32_constants){
        .rest = i32_kept(0x0FFFFFFF),
        .sign = i32_kept(INT32_MIN),
        .bias = i32_kept(112 << 23),
        .one = i32_kept(1 << 23),
        .least = f32_kept(0x1p-14f),
        .finite = i32_kept((31 << 23) - 1),
        .infinity = i32_kept(0x7F800000),
    };
}

/* Gives a scaled half its value, as num.h does, without a subnormal operand; handles infinity and NaN too. */
INLINE vec f16_unscaled(const struct f32_constants *k, vec scaled)
{
    vec rest = vec_and(scaled, k->rest), small = i32_gt(k->one, rest);
    vec bits = i32_add(i32_add(rest, k->bias), vec_and(small, k->one));
    vec value = f32_sub(bits, vec_and(small, k->least));
    vec special = vec_and(i32_gt(rest, k->finite), k->infinity);
    return vec_or(vec_or(value, special), vec_and(scaled, k->sign));
}

struct exp4 {
    vec log2e, magic, ln2_hi, ln2_lo, c[6], one, bias, max, min, infinity;
};

INLINE struct exp4 exp4_constants(void)
{
    return (struct exp4){
        f32_kept(EXP_LOG2E),
        f32_kept(EXP_MAGIC),
        f32_kept(EXP_LN2_HI),
        f32_kept(EXP_LN2_LO),
        {f32_kept(EXP_C0), f32_kept(EXP_C1), f32_kept(EXP_C2), f32_kept(EXP_C3), f32_kept(EXP_C4), f32_kept(EXP_C5)},
        f32_kept(1.0f),
        i32_kept(127 - (int32_t)bits_from_f32(EXP_MAGIC)),
        f32_kept(EXP_MAX),
        f32_kept(EXP_MIN),
        i32_kept(0x7F800000),
    };
}

/* num_exp() in 4 lanes, step by step. */
INLINE vec exp4(const struct exp4 *k, vec x)
{
    vec shifted = f32_add(f32_mul(x, k->log2e), k->magic);
    vec n = f32_sub(shifted, k->magic);
    vec r = f32_sub(x, f32_mul(n, k->ln2_hi));
    r = f32_sub(r, f32_mul(n, k->ln2_lo));
    vec p = k->c[5];
    for (int i = 4; i >= 0; i--) p = f32_add(f32_mul(p, r), k->c[i]);
    p = f32_add(f32_mul(p, f32_mul(r, r)), r);
    p = f32_add(p, k->one);
    vec y = f32_mul(p, i32_shl(i32_add(shifted, k->bias), 23));
    y = vec_select(f32_lt(k->max, x), k->infinity, y);
    return vec_select(f32_lt(x, k->min), i32_splat(0), y);
}

/* 1 + e^-x in 4 lanes, by which sigmoid and silu divide. */
INLINE vec sigmoid4_divisor(const struct exp4 *k, vec x)
{
    return f32_add(k->one, exp4(k, vec_xor(x, i32_splat(INT32_MIN))));
}

void gemm_simd(struct kernels *k, enum dots dots); /* sets the products with codes of CODE_LAYOUTS */
void gemm_full(struct kernels *k);                 /* the same for FULL_LAYOUTS; k->dots is set before */
void full_simd(struct kernels *k);                 /* the same in the full build; nothing in the text build */
void tables_simd(struct kernels *k);               /* sets the products by tables of sums */
void floats_simd(struct kernels *k);               /* sets the products with floats */
void attend_simd(struct kernels *k);               /* sets attention */
void linear_simd(struct kernels *k);               /* sets what linear layers and output gates use */
void encode_simd(struct kernels *k);               /* sets the kernels that only an image encoder uses */

#endif
