/* SPDX-License-Identifier: MIT
 *
 * 128-bit vectors: the few operations the SIMD kernels use, for WebAssembly and for native compilers.
 *
 * This is the only file that knows about relaxed SIMD. vec_native.h has the same operations in GCC's and clang's vector
 * extensions, so that the same kernels run under sanitizers and are compared with the scalar reference on any machine. Every operation has one exact result; dot4() is the only relaxed one, used where its result is exact.
 */
#ifndef QUERN_VEC_H
#define QUERN_VEC_H

#include "../base.h"

#ifdef __wasm_simd128__

#include <wasm_simd128.h>

typedef v128_t vec;

#ifdef __wasm_relaxed_simd__
#define VEC_NAME "relaxed"
#else
#define VEC_NAME "simd"
#endif

#define VEC static inline __attribute__((always_inline)) vec

VEC vec_load(const void *p) { return wasm_v128_load(p); }
VEC vec_load8(const void *p) { return wasm_v128_load64_zero(p); } /* 8 bytes, then zeros */
VEC vec_spread4(const void *p) { return wasm_v128_load32_splat(p); } /* 4 bytes, four times */
static inline void vec_store(void *p, vec a) { wasm_v128_store(p, a); }
VEC vec_and(vec a, vec b) { return wasm_v128_and(a, b); }
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
VEC f32_lt(vec a, vec b) { return wasm_f32x4_lt(a, b); }
VEC f32_eq(vec a, vec b) { return wasm_f32x4_eq(a, b); }
VEC f32_from_i32(vec a) { return wasm_f32x4_convert_i32x4(a); }

VEC i32_splat(int32_t x) { return wasm_i32x4_splat(x); }
VEC i32_add(vec a, vec b) { return wasm_i32x4_add(a, b); }
VEC i32_sub(vec a, vec b) { return wasm_i32x4_sub(a, b); }
VEC i32_mul(vec a, vec b) { return wasm_i32x4_mul(a, b); }
VEC i32_max(vec a, vec b) { return wasm_i32x4_max(a, b); }
VEC i32_gt(vec a, vec b) { return wasm_i32x4_gt(a, b); }
VEC i32_shl(vec a, int n) { return wasm_i32x4_shl(a, (uint32_t)n); }
VEC u32_shr(vec a, int n) { return wasm_u32x4_shr(a, (uint32_t)n); }

VEC i8_sub(vec a, vec b) { return wasm_i8x16_sub(a, b); }
VEC i8_abs(vec a) { return wasm_i8x16_abs(a); }
VEC i8_sign(vec a) { return wasm_i8x16_lt(a, wasm_i8x16_splat(0)); } /* -1 or 0; a shift would be three instructions on x86 */
VEC u8_shr(vec a, int n) { return wasm_u8x16_shr(a, (uint32_t)n); }

VEC i32_from_u16_low(vec a) { return wasm_u32x4_extend_low_u16x8(a); }
VEC i32_from_u16_high(vec a) { return wasm_u32x4_extend_high_u16x8(a); }
VEC i32_from_i16_low(vec a) { return wasm_i32x4_extend_low_i16x8(a); }
VEC i32_from_i16_high(vec a) { return wasm_i32x4_extend_high_i16x8(a); }
VEC i16_shl(vec a, int n) { return wasm_i16x8_shl(a, (uint32_t)n); }
VEC i16_shr(vec a, int n) { return wasm_i16x8_shr(a, (uint32_t)n); }
VEC i32_join_low(vec low, vec high) { return wasm_i16x8_shuffle(low, high, 0, 8, 1, 9, 2, 10, 3, 11); } /* int32 of halves 0..3 */
VEC i32_join_high(vec low, vec high) { return wasm_i16x8_shuffle(low, high, 4, 12, 5, 13, 6, 14, 7, 15); } /* of 4..7 */
VEC i16_from_u8_low(vec a) { return wasm_u16x8_extend_low_u8x16(a); }
VEC i16_from_i8_low(vec a) { return wasm_i16x8_extend_low_i8x16(a); }
/* The low halves of 4 int32 (each in 0..65535) of a, then of b. */
VEC u16_narrow(vec a, vec b) { return wasm_u16x8_narrow_i32x4(a, b); }
/* The low bytes of 4 int32 (each in -128..127) of a, b, c, d. */
VEC i8_narrow(vec a, vec b, vec c, vec d)
{
    return wasm_i8x16_narrow_i16x8(wasm_i16x8_narrow_i32x4(a, b), wasm_i16x8_narrow_i32x4(c, d));
}

/* acc + for each of 4 lanes the sum of 4 products of signed bytes: exact for all inputs. */
VEC dot4_wide(vec acc, vec a, vec b)
{
    vec low = wasm_i32x4_extadd_pairwise_i16x8(wasm_i16x8_extmul_low_i8x16(a, b));
    vec high = wasm_i32x4_extadd_pairwise_i16x8(wasm_i16x8_extmul_high_i8x16(a, b));
    vec even = wasm_i32x4_shuffle(low, high, 0, 2, 4, 6), odd = wasm_i32x4_shuffle(low, high, 1, 3, 5, 7);
    return i32_add(acc, i32_add(even, odd));
}

#ifdef __wasm_relaxed_simd__
/* b in 0..127 makes the relaxed dot exact under each of its semantics; a may be any signed byte. */
VEC dot4(vec acc, vec a, vec b) { return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(a, b, acc); }
/* Both signed, a > -128: the sign of b moves over to a. */
VEC dot4_signed(vec acc, vec a, vec b)
{
    vec sign = i8_sign(b);
    return dot4(acc, i8_sub(vec_xor(a, sign), sign), i8_abs(b));
}
#else
VEC dot4(vec acc, vec a, vec b) { return dot4_wide(acc, a, b); }
VEC dot4_signed(vec acc, vec a, vec b) { return dot4_wide(acc, a, b); }
#endif

#else
#include "vec_native.h"
#endif

/* --- for both -------------------------------------------------------------------------------- */

/* A constant for use in loops. V8 makes a constant vector anew wherever it is used, in three instructions; what comes from memory
 * stays in its register. */
VEC i32_kept(int32_t x) { volatile int32_t kept = x; return i32_splat(kept); }
VEC f32_kept(float x) { volatile float kept = x; return f32_splat(kept); }

/* 4 f16 in the low halves of 4 int32 -> f32, step for step as num.h's f32_from_f16. */
VEC f32_from_f16_lanes(vec h)
{
    vec rest = vec_and(h, i32_splat(0x7FFF));
    vec small = i32_gt(i32_splat(0x400), rest);
    vec bits = i32_add(i32_add(i32_shl(rest, 13), i32_splat(112 << 23)), vec_and(small, i32_splat(1 << 23)));
    vec value = f32_sub(bits, vec_and(small, i32_splat(113 << 23)));
    vec special = vec_and(i32_gt(rest, i32_splat(0x7BFF)), i32_splat(0x7F800000));
    return vec_or(vec_or(value, special), i32_shl(vec_and(h, i32_splat(0x8000)), 16));
}
VEC f32_from_f16_low(vec h) { return f32_from_f16_lanes(i32_from_u16_low(h)); }
VEC f32_from_f16_high(vec h) { return f32_from_f16_lanes(i32_from_u16_high(h)); }

#endif
