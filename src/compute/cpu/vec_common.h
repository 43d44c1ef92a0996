/* SPDX-License-Identifier: MIT
 *
 * Vector operations built from those of vec.h, the same for WebAssembly and native builds; included by vec.h only.
 */
#ifndef QUERN_VEC_COMMON_H
#define QUERN_VEC_COMMON_H

VEC i32_add_pairs(vec a, vec b) { return i32_add(vec_even(a, b), vec_odd(a, b)); }

/* 4 numbers that add up to the sum of 16 products of signed bytes: exact everywhere. */
VEC dot16(vec a, vec b)
{
    return i32_add(dot2_i16(i16_from_i8_low(a), i16_from_i8_low(b)),
                   dot2_i16(i16_from_i8_high(a), i16_from_i8_high(b)));
}

/* A constant for use in loops. V8 rebuilds a constant vector at each use, in three instructions; a value read from
 * memory stays in its register. */
VEC i32_kept(int32_t x) { volatile int32_t kept = x; return i32_splat(kept); }
VEC vec_kept(const void *p) { const void *volatile kept = p; return vec_load(kept); }
VEC f32_kept(float x) { volatile float kept = x; return f32_splat(kept); }

#endif
