/* SPDX-License-Identifier: MIT
 *
 * Vector operations made of vec.h's others, the same for WebAssembly and native builds; included by vec.h only.
 */
#ifndef QUERN_VEC_COMMON_H
#define QUERN_VEC_COMMON_H

VEC i32_add_pairs(vec a, vec b) { return i32_add(vec_even(a, b), vec_odd(a, b)); }

/* 4 numbers whose sum is that of 16 products of signed bytes: exact everywhere. */
VEC dot16(vec a, vec b)
{
    return i32_add(dot2_i16(i16_from_i8_low(a), i16_from_i8_low(b)), dot2_i16(i16_from_i8_high(a), i16_from_i8_high(b)));
}

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
