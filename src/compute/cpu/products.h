/* SPDX-License-Identifier: MIT
 *
 * What the SIMD products share: the layout of arranged activations, loads of halves, and the heights of tiles.
 *
 * gemm_simd.c has the products with codes, floats_simd.c those with floats, tables_simd.c those by tables of sums, and
 * arrange_simd.c arranges activations.
 */
#ifndef QUERN_PRODUCTS_H
#define QUERN_PRODUCTS_H

#include "compute/cpu/simd.h"

/* --- activations --------------------------------------------------------------------------------------- */

/* A block of a tile of T rows: f32 scale[T], f32 sum of its codes [T], start values [T] for products with codes 8 too
 * large, int16 sums of its halves [T][2], start values [2][T] for the halves' products with codes 4 too large; then
 * codes: 8 groups of int8 [T][4], with DOTS_I16 16 groups of int16 [T][2]. A start value is int32; for sums of pairs
 * (DOTS_U7, FORM_TWOS, FORM_FOURS) it is int16 [2], for the even and the odd pairs of columns.
 *
 * FORM_APART has 8 groups of int16 [T][2][2]: the even columns, then the odd ones. FORM_TWOS has 8 groups of int16
 * [T][2][2] too, FORM_FOURS 4 pairs of groups of int16 [T][4][2]: for words of n = 2 or 4 codes, two words a row. With
 * B = 2^(16 / n) a word is the sum of c[k] * B^k; shifted right by k codes it lacks the first k. So the sum of c[k] *
 * x[k] is the sum of (word >> k codes) * y[k] with y[k] = x[k] - B * x[k - 1], and no code needs to be cut out. This
 * holds modulo 2^16, which suffices for a sum that fits in 16 bits.
 *
 * FORM_TABLES has the blocks of one row after those of the other: f32 scale, 28 unused
 * bytes; then for each 4 columns two tables for the 16 combinations of their signs, where bit k of an index says that
 * column k is added and not subtracted: the sum's lowest 5 bits, then int8 the sum divided by 32, rounded down. */
enum { ACT_HEAD = 24, TABLES_HEAD = 32 };
INLINE size_t act_bytes(enum form form)
{
    return form == FORM_TABLES ? TABLES_HEAD + 8 * 32 : ACT_HEAD + (form == FORM_BYTES ? 32 : 64);
}

/* --- loads --------------------------------------------------------------------------------------------- */

INLINE void load_two(vec out[2], const uint8_t *p)
{
    out[0] = vec_load(p);
    out[1] = vec_load(p + 16);
}

INLINE void store_two(uint8_t *out, const vec v[2])
{
    vec_store(out, v[0]);
    vec_store(out + 16, v[1]);
}

/* Hides the value of a pointer from compilers, so that a loop counts no steps beside the pointer that it moves: saves
 * one instruction of 26. */
INLINE const uint8_t *loop_end(const uint8_t *end)
{
    __asm__("" : "+r"(end));
    return end;
}

struct half_masks {
    vec exponent, lowest, span, scaled, bias;
};

INLINE struct half_masks half_masks_new(void)
{
    return (struct half_masks){i32_kept(0x7C007C00), i32_kept(0x04000400), i32_kept(0x77FF77FF), i32_kept(F16_MASK),
                               i32_kept(112 << 23)};
}

/* Loads 8 halves, mostly scales. Usually none is zero, subnormal, infinite or NaN, and then moving the exponent
 * suffices. */
INLINE void load_halves(vec out[2], const uint8_t *halves, const struct half_masks *m)
{
    vec exponent = vec_and(vec_load(halves), m->exponent);
    f16_scaled(halves, m->scaled, out);
    if (__builtin_expect(u16_any_above(i16_sub(exponent, m->lowest), m->span), 0)) {
        const struct f32_constants k = f32_constants();
        for (int i = 0; i < 2; i++) out[i] = f16_unscaled(&k, out[i]);
        return;
    }
    for (int i = 0; i < 2; i++) out[i] = i32_add(out[i], m->bias);
}

INLINE void load_bfloats(vec out[2], const uint8_t *bfloats)
{
    out[0] = u16_interleave_low(i32_splat(0), vec_load(bfloats));
    out[1] = u16_interleave_high(i32_splat(0), vec_load(bfloats));
}

/* --- tiles --------------------------------------------------------------------------------------------- */

/* What fits the registers: 12 sums, or 8 sums and the products in flight. */
INLINE int full_tile(enum dots dots) { return dots == DOTS_U8 || dots == DOTS_S8 ? TILE : 4; }

/* Runs one body for each height of a tile. */
#define BY_HEIGHT(BODY)      \
    switch (n_rows) {        \
    case 2: BODY(2); break;  \
    case 3: BODY(3); break;  \
    case 4: BODY(4); break;  \
    case 5: BODY(5); break;  \
    default: BODY(TILE); break; \
    }

void arrange_simd(struct kernels *k); /* sets k->arrange; k->dots is set before */

#endif
