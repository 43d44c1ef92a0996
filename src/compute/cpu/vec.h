/* SPDX-License-Identifier: MIT
 *
 * 128-bit vectors: the few operations that the SIMD kernels use, for WebAssembly and for native compilers.
 *
 * This is the only file that knows about relaxed SIMD. vec_native.h has the same operations in GCC's and clang's vector
 * extensions, so that the same kernels run under sanitizers and are compared with the scalar reference on any machine.
 * Every operation has one exact result, except the byte dots, which are relaxed and used only where their result is
 * exact.
 */
#ifndef QUERN_VEC_H
#define QUERN_VEC_H

#include "base/base.h"

#ifdef __wasm_simd128__

#include <wasm_simd128.h>

typedef v128_t vec;

#ifdef __wasm_relaxed_simd__
#define VEC_NAME "relaxed"
/* whether an instruction for byte dots exists; whether it is only a model of one */
enum { VEC_BYTE_DOTS = 1, VEC_MODEL = 0 };
#else
#define VEC_NAME "simd"
enum { VEC_BYTE_DOTS = 0, VEC_MODEL = 0 };
#endif

/* Before a loop whose body is to be unrolled. */
#define VEC_UNROLL _Pragma("GCC unroll 8")
#define VEC static inline __attribute__((always_inline)) vec

VEC vec_load(const void *p) { return wasm_v128_load(p); }
VEC vec_load8(const void *p) { return wasm_v128_load64_zero(p); } /* 8 bytes, then zeros */
VEC vec_spread4(const void *p) { return wasm_v128_load32_splat(p); } /* 4 bytes, four times */
static inline void vec_store(void *p, vec a) { wasm_v128_store(p, a); }
VEC vec_and(vec a, vec b) { return wasm_v128_and(a, b); }
VEC vec_and_not(vec a, vec b) { return wasm_v128_andnot(a, b); } /* a & ~b */
VEC vec_or(vec a, vec b) { return wasm_v128_or(a, b); }
VEC vec_xor(vec a, vec b) { return wasm_v128_xor(a, b); }
VEC vec_select(vec mask, vec a, vec b) { return wasm_v128_bitselect(a, b, mask); } /* mask ? a : b */
VEC vec_low_pairs(vec a, vec b) { return wasm_i32x4_shuffle(a, b, 0, 1, 4, 5); }  /* lanes 0 and 1 of a, of b */
VEC vec_high_pairs(vec a, vec b) { return wasm_i32x4_shuffle(a, b, 2, 3, 6, 7); } /* lanes 2 and 3 */
VEC vec_even(vec a, vec b) { return wasm_i32x4_shuffle(a, b, 0, 2, 4, 6); }       /* lanes 0 and 2 */
VEC vec_odd(vec a, vec b) { return wasm_i32x4_shuffle(a, b, 1, 3, 5, 7); }        /* lanes 1 and 3 */

VEC f32_splat(float x) { return wasm_f32x4_splat(x); }
VEC f32_add(vec a, vec b) { return wasm_f32x4_add(a, b); }
VEC f32_sub(vec a, vec b) { return wasm_f32x4_sub(a, b); }
VEC f32_mul(vec a, vec b) { return wasm_f32x4_mul(a, b); }
VEC f32_div(vec a, vec b) { return wasm_f32x4_div(a, b); }
/* b < a ? b : a and a < b ? b : a, so that a NaN in a stays. */
VEC f32_pmin(vec a, vec b) { return wasm_f32x4_pmin(a, b); }
VEC f32_pmax(vec a, vec b) { return wasm_f32x4_pmax(a, b); }
VEC f32_lt(vec a, vec b) { return wasm_f32x4_lt(a, b); }
VEC f32_eq(vec a, vec b) { return wasm_f32x4_eq(a, b); }
VEC f32_from_i32(vec a) { return wasm_f32x4_convert_i32x4(a); }

VEC i32_splat(int32_t x) { return wasm_i32x4_splat(x); }
VEC i32_add(vec a, vec b) { return wasm_i32x4_add(a, b); }
VEC i32_sub(vec a, vec b) { return wasm_i32x4_sub(a, b); }
VEC i32_max(vec a, vec b) { return wasm_i32x4_max(a, b); }
VEC i32_gt(vec a, vec b) { return wasm_i32x4_gt(a, b); }
VEC i32_shl(vec a, int n) { return wasm_i32x4_shl(a, (uint32_t)n); }
VEC i32_shr(vec a, int n) { return wasm_i32x4_shr(a, (uint32_t)n); } /* keeps the sign */
VEC u32_shr(vec a, int n) { return wasm_u32x4_shr(a, (uint32_t)n); }

VEC i32_from_i16_low(vec a) { return wasm_i32x4_extend_low_i16x8(a); }
VEC i32_from_i16_high(vec a) { return wasm_i32x4_extend_high_i16x8(a); }
VEC i16_splat(int16_t x) { return wasm_i16x8_splat(x); }
VEC i16_shl(vec a, int n) { return wasm_i16x8_shl(a, (uint32_t)n); }
VEC i16_shr(vec a, int n) { return wasm_i16x8_shr(a, (uint32_t)n); }
VEC u16_shr(vec a, int n) { return wasm_u16x8_shr(a, (uint32_t)n); }
VEC i16_from_u8_low(vec a) { return wasm_u16x8_extend_low_u8x16(a); }
VEC i16_from_i8_low(vec a) { return wasm_i16x8_extend_low_i8x16(a); }
/* The low bytes of 8 int16 (each in -128..127) of a, then of b. */
VEC i8_from_i16(vec a, vec b) { return wasm_i8x16_narrow_i16x8(a, b); }
/* The low halves of 4 int32 (each in 0..65535) of a, then of b. */
VEC u16_narrow(vec a, vec b) { return wasm_u16x8_narrow_i32x4(a, b); }
/* The low bytes of 4 int32 (each in -128..127) of a, b, c, d. */
VEC i8_narrow(vec a, vec b, vec c, vec d)
{
    return wasm_i8x16_narrow_i16x8(wasm_i16x8_narrow_i32x4(a, b), wasm_i16x8_narrow_i32x4(c, d));
}

VEC i16_from_i8_high(vec a) { return wasm_i16x8_extend_high_i8x16(a); }
VEC i16_from_u8_high(vec a) { return wasm_u16x8_extend_high_u8x16(a); }
VEC i8_eq(vec a, vec b) { return wasm_i8x16_eq(a, b); }
VEC i8_add(vec a, vec b) { return wasm_i8x16_add(a, b); }
VEC i8_sub(vec a, vec b) { return wasm_i8x16_sub(a, b); }
VEC i16_mul(vec a, vec b) { return wasm_i16x8_mul(a, b); } /* the low halves of the products */
VEC i16_sub(vec a, vec b) { return wasm_i16x8_sub(a, b); }
VEC i16_add(vec a, vec b) { return wasm_i16x8_add(a, b); }
VEC i16_pairs(vec a) { return wasm_i32x4_extadd_pairwise_i16x8(a); } /* sums of neighbours, int32 */
/* a0 b0 a1 b1 .. */
VEC u16_interleave_low(vec a, vec b) { return wasm_i16x8_shuffle(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
VEC u16_interleave_high(vec a, vec b) { return wasm_i16x8_shuffle(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }
/* Whether any of 8 int16 of a is above b's, unsigned. */
static inline bool u16_any_above(vec a, vec b) { return wasm_v128_any_true(wasm_u16x8_sub_sat(a, b)); }

#ifdef __wasm_relaxed_simd__
/* bytes i, each in 0..15, of the table */
VEC vec_lookup(vec table, vec i) { return wasm_i8x16_relaxed_swizzle(table, i); }
#else
VEC vec_lookup(vec table, vec i) { return wasm_i8x16_swizzle(table, i); }
#endif

/* For each of 4 lanes the sum of 2 products of int16. */
VEC dot2_i16(vec a, vec b) { return wasm_i32x4_dot_i16x8(a, b); }
VEC i16_narrow(vec a, vec b) { return wasm_i16x8_narrow_i32x4(a, b); } /* 4 int32 of a, then of b, saturated */

#ifdef __wasm_relaxed_simd__
/* One instruction under two names: exact if dots_probe() says so. a is signed; b is unsigned (u8) or signed (s8). Adds
 * to acc, in each of 4 lanes, the sum of 4 products. */
VEC dot4_u8(vec acc, vec a, vec b) { return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(a, b, acc); }
VEC dot4_s8(vec acc, vec a, vec b) { return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(a, b, acc); }
VEC dot4_probe(vec acc, vec a, vec b) { return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(a, b, acc); }
/* In each of 8 lanes the sum of 2 products, int16; b in 0..127, exact everywhere. */
VEC dot2_u7(vec a, vec b) { return wasm_i16x8_relaxed_dot_i8x16_i7x16(a, b); }
#endif

#else
#include "compute/cpu/vec_native.h"
#ifdef __SSE2__
VEC dot2_i16(vec a, vec b) { return (vec)__builtin_ia32_pmaddwd128((vec_i16)a, (vec_i16)b); }
#else
VEC dot2_i16(vec a, vec b)
{
    vec_i16 x = (vec_i16)a, y = (vec_i16)b;
    vec out;
    for (int i = 0; i < 4; i++) out[i] = x[2 * i] * y[2 * i] + x[2 * i + 1] * y[2 * i + 1];
    return out;
}
#endif
VEC i16_pairs(vec a) { return dot2_i16(a, i32_splat(0x00010001)); }
#endif

#include "compute/cpu/vec_common.h"
#ifndef __wasm_relaxed_simd__
#include "compute/cpu/vec_model.h"
#endif

#endif
