/* SPDX-License-Identifier: MIT
 *
 * The native half of vec.h: the same operations, lane by lane where the vector extensions have nothing better. Made to
 * be correct under sanitizers, not fast. Included by vec.h only, which says what each operation does.
 */
#ifndef QUERN_VEC_NATIVE_H
#define QUERN_VEC_NATIVE_H

#include "base/base.h"

#define VEC_NAME "simd"
enum { VEC_BYTE_DOTS = 1, VEC_MODEL = 1 };

typedef int32_t vec __attribute__((vector_size(16)));
typedef float vec_f32 __attribute__((vector_size(16)));
typedef uint32_t vec_u32 __attribute__((vector_size(16)));
typedef int64_t vec_i64 __attribute__((vector_size(16)));
typedef int16_t vec_i16 __attribute__((vector_size(16)));
typedef uint16_t vec_u16 __attribute__((vector_size(16)));
typedef int8_t vec_i8 __attribute__((vector_size(16)));
typedef uint8_t vec_u8 __attribute__((vector_size(16)));
typedef char vec_char __attribute__((vector_size(16)));

#define VEC_UNROLL /* speed does not matter here, and sanitizers take minutes to compile unrolled code */
#define VEC static inline __attribute__((always_inline)) vec

VEC vec_load(const void *p) { vec v; __builtin_memcpy(&v, p, 16); return v; }
VEC vec_load8(const void *p) { vec v = {0}; __builtin_memcpy(&v, p, 8); return v; }
VEC vec_spread4(const void *p) { int32_t x; __builtin_memcpy(&x, p, 4); return (vec){x, x, x, x}; }
static inline void vec_store(void *p, vec a) { __builtin_memcpy(p, &a, 16); }
VEC vec_and(vec a, vec b) { return a & b; }
VEC vec_and_not(vec a, vec b) { return a & ~b; }
VEC vec_or(vec a, vec b) { return a | b; }
VEC vec_xor(vec a, vec b) { return a ^ b; }
VEC vec_select(vec mask, vec a, vec b) { return (a & mask) | (b & ~mask); }
VEC vec_low_pairs(vec a, vec b) { return (vec){a[0], a[1], b[0], b[1]}; }
VEC vec_high_pairs(vec a, vec b) { return (vec){a[2], a[3], b[2], b[3]}; }
VEC vec_even(vec a, vec b) { return (vec){a[0], a[2], b[0], b[2]}; }
VEC vec_odd(vec a, vec b) { return (vec){a[1], a[3], b[1], b[3]}; }

VEC f32_splat(float x) { return (vec)(vec_f32){x, x, x, x}; }
VEC f32_add(vec a, vec b) { return (vec)((vec_f32)a + (vec_f32)b); }
VEC f32_sub(vec a, vec b) { return (vec)((vec_f32)a - (vec_f32)b); }
VEC f32_mul(vec a, vec b) { return (vec)((vec_f32)a * (vec_f32)b); }
VEC f32_div(vec a, vec b) { return (vec)((vec_f32)a / (vec_f32)b); }
VEC f32_lt(vec a, vec b) { return (vec)((vec_f32)a < (vec_f32)b); }
VEC f32_eq(vec a, vec b) { return (vec)((vec_f32)a == (vec_f32)b); }
VEC f32_pmin(vec a, vec b) { return vec_select(f32_lt(b, a), b, a); }
VEC f32_pmax(vec a, vec b) { return vec_select(f32_lt(a, b), b, a); }
VEC f32_from_i32(vec a) { return (vec)__builtin_convertvector(a, vec_f32); }

VEC i32_splat(int32_t x) { return (vec){x, x, x, x}; }
VEC i32_add(vec a, vec b) { return (vec)((vec_u32)a + (vec_u32)b); }
VEC i32_sub(vec a, vec b) { return (vec)((vec_u32)a - (vec_u32)b); }
VEC i32_gt(vec a, vec b) { return (vec)(a > b); }
VEC i32_max(vec a, vec b) { return vec_select(i32_gt(a, b), a, b); }
VEC i32_shl(vec a, int n) { return (vec)((vec_u32)a << n); }
VEC i32_shr(vec a, int n) { return a >> n; }
VEC u32_shr(vec a, int n) { return (vec)((vec_u32)a >> n); }

VEC i32_from_i16_low(vec a) { vec_i16 v = (vec_i16)a; return (vec){v[0], v[1], v[2], v[3]}; }
VEC i32_from_i16_high(vec a) { vec_i16 v = (vec_i16)a; return (vec){v[4], v[5], v[6], v[7]}; }
VEC i16_splat(int16_t x) { return (vec)(vec_i16){x, x, x, x, x, x, x, x}; }
VEC i16_shl(vec a, int n) { return (vec)((vec_u16)a << (uint16_t)n); }
VEC i16_shr(vec a, int n) { return (vec)((vec_i16)a >> (int16_t)n); }
VEC u16_shr(vec a, int n) { return (vec)((vec_u16)a >> (uint16_t)n); }
VEC i16_from_u8_low(vec a)
{
    vec_u8 v = (vec_u8)a;
    return (vec)(vec_i16){v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
}
VEC i16_from_i8_low(vec a)
{
    vec_i8 v = (vec_i8)a;
    return (vec)(vec_i16){v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
}
VEC u16_narrow(vec a, vec b)
{
    vec_u16 lo = (vec_u16)a, hi = (vec_u16)b;
    return (vec)(vec_u16){lo[0], lo[2], lo[4], lo[6], hi[0], hi[2], hi[4], hi[6]};
}
VEC i8_narrow(vec a, vec b, vec c, vec d)
{
    vec_i8 out;
    for (int i = 0; i < 4; i++) {
        out[i] = (int8_t)a[i];
        out[4 + i] = (int8_t)b[i];
        out[8 + i] = (int8_t)c[i];
        out[12 + i] = (int8_t)d[i];
    }
    return (vec)out;
}

VEC i8_from_i16(vec a, vec b)
{
    vec_i16 x = (vec_i16)a, y = (vec_i16)b;
    vec_i8 out;
    for (int i = 0; i < 8; i++) out[i] = (int8_t)x[i], out[8 + i] = (int8_t)y[i];
    return (vec)out;
}

VEC i16_from_i8_high(vec a)
{
    vec_i8 v = (vec_i8)a;
    return (vec)(vec_i16){v[8], v[9], v[10], v[11], v[12], v[13], v[14], v[15]};
}
VEC i16_from_u8_high(vec a)
{
    vec_u8 v = (vec_u8)a;
    return (vec)(vec_i16){v[8], v[9], v[10], v[11], v[12], v[13], v[14], v[15]};
}
VEC i8_eq(vec a, vec b) { return (vec)((vec_i8)a == (vec_i8)b); }
VEC i8_add(vec a, vec b) { return (vec)((vec_u8)a + (vec_u8)b); }
VEC i8_sub(vec a, vec b) { return (vec)((vec_u8)a - (vec_u8)b); }
VEC i16_mul(vec a, vec b) { return (vec)((vec_u16)a * (vec_u16)b); }
VEC i16_add(vec a, vec b) { return (vec)((vec_u16)a + (vec_u16)b); }
VEC i16_sub(vec a, vec b) { return (vec)((vec_u16)a - (vec_u16)b); }
VEC u16_interleave_low(vec a, vec b)
{
    vec_u16 x = (vec_u16)a, y = (vec_u16)b;
    return (vec)(vec_u16){x[0], y[0], x[1], y[1], x[2], y[2], x[3], y[3]};
}
VEC u16_interleave_high(vec a, vec b)
{
    vec_u16 x = (vec_u16)a, y = (vec_u16)b;
    return (vec)(vec_u16){x[4], y[4], x[5], y[5], x[6], y[6], x[7], y[7]};
}
static inline bool u16_any_above(vec a, vec b)
{
    vec_i64 above = (vec_i64)((vec_u16)a > (vec_u16)b);
    return (above[0] | above[1]) != 0;
}
#ifdef __SSSE3__
VEC vec_lookup(vec table, vec i) { return (vec)__builtin_ia32_pshufb128((vec_char)table, (vec_char)i); }
#else
VEC vec_lookup(vec table, vec i)
{
    vec_u8 from = (vec_u8)table, at = (vec_u8)i, out;
    for (int b = 0; b < 16; b++) out[b] = from[at[b] & 15];
    return (vec)out;
}
#endif
VEC i16_narrow(vec a, vec b)
{
    vec_i16 out = {0};
    for (int i = 0; i < 4; i++) {
        out[i] = (int16_t)(a[i] < INT16_MIN ? INT16_MIN : a[i] > INT16_MAX ? INT16_MAX : a[i]);
        out[4 + i] = (int16_t)(b[i] < INT16_MIN ? INT16_MIN : b[i] > INT16_MAX ? INT16_MAX : b[i]);
    }
    return (vec)out;
}

#endif
