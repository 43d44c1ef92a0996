/* SPDX-License-Identifier: MIT
 *
 * Packed codes and their scales in registers: what the kernels over panels of codes share. Every function is inlined
 * into kernels whose constants (struct how) the compiler knows.
 */
#ifndef QUERN_CODES_H
#define QUERN_CODES_H

#include "compute/cpu/products.h"

/* Constants of a kernel. */
struct how {
    enum kind kind;
    enum dots dots;
    int bits;  /* of a code */
    int shift; /* codes are stored 2^shift too large; -1: they are not */
    int rows;  /* T, the rows of a tile */
    enum layout packed; /* LAYOUT_NONE: expanded */
};

/* --- what a kernel has -------------------------------------------------------------------------------------------- */

/* Whether the scales of blocks are integers. */
INLINE bool is_whole(enum kind kind) { return kind != KIND_HALF_FLOATS; }
/* 16-bit codes have room for such scales, and are multiplied by them when they are expanded. */
INLINE bool is_folded(const struct how h) { return h.dots == DOTS_I16 && !h.packed && is_whole(h.kind); }
INLINE bool has_scale(const struct how h) { return h.kind != KIND_PLAIN && h.kind != KIND_MIN && !is_folded(h); }
INLINE bool has_halves(const struct how h)
{
    return h.kind >= KIND_HALVES && h.kind != KIND_MINS && !is_folded(h);
}

INLINE enum form form_of(const struct how h)
{
    if (h.dots != DOTS_I16) return FORM_BYTES;
    if (!h.packed) return FORM_WORDS;
    return h.bits >= 7 ? FORM_APART : h.bits == 4 ? FORM_FOURS : FORM_TWOS;
}

/* Sums of pairs of columns in 16 bits are multiplied by integer scales in the instruction that adds them up. */
INLINE bool in_pairs(const struct how h) { return h.dots == DOTS_U7 || form_of(h) >= FORM_TWOS; }
INLINE bool whole_scales(const struct how h) { return in_pairs(h) && has_scale(h) && is_whole(h.kind); }

/* Whether the sums and scales are too many for the registers. */
INLINE bool is_kept(const struct how h) { return h.rows > 1 && (has_mins(h.kind) || has_halves(h)); }

/* Whether a product of few rows is limited by memory. Narrower codes keep a core busy with unpacking, words with
 * multiplying. few() keeps its sums in `out`, which has no room for mins. */
INLINE bool is_awaited(const struct how h)
{
    return layouts[h.packed].bits > 4 && h.dots != DOTS_I16 && !has_mins(h.kind);
}

/* --- packed codes -------------------------------------------------------------------------------------- */

/* Constants for unpacking, kept in registers. */
struct masks {
    vec piece[PIECES], sign, nibble, odd, offset, table, table_high, part;
    vec rows[2], column[2], bit; /* for codes of one bit: which row's byte, which bit of it, the bit of a code */
    struct half_masks halves;
};

/* `width` bits of each byte, starting at bit `to`. */
INLINE int32_t byte_mask(int width, int to) { return (int32_t)((((1u << width) - 1) << to) * 0x01010101u); }

/* Whether a piece is exactly the bits above a whole code. */
INLINE bool is_rest(const int bits, const struct piece p) { return p.to == bits && p.width == 8 - bits; }

/* The piece whose mask piece i uses: the first equal one, or that of a whole code, whose complement leaves the rest. */
INLINE int piece_mask(const int bits, int i)
{
    const struct piece *of = pieces[bits];
    for (int first = 0; first < i; first++)
        if (is_rest(bits, of[i]) || (of[first].width == of[i].width && of[first].from == of[i].from)) return first;
    return i;
}

/* Whether values have 7 bits, made positive by 64. The dot of bytes that adds to 32 bits is exact for them on every
 * processor, so tiles use it with DOTS_U7 too. */
INLINE bool is_seven(const struct how h) { return h.shift == 6; }

INLINE bool is_part(enum d_type d) { return d == D_QUARTER || d == D_EIGHTH; }

/* Whether a table's numbers are looked up 4 bits at a time: sums of pairs have no room for more. */
INLINE bool is_split(const struct how h) { return h.dots == DOTS_U7 && h.bits == 8; }

/* The table of values, made positive where the dot needs that. */
INLINE vec table_kept(const int8_t *table, const int shift)
{
    vec values = vec_kept(table);
    return shift < 0 ? values : i8_add(values, i32_splat((int32_t)((1u << shift) * 0x01010101u)));
}

INLINE struct masks masks_new(const struct how h)
{
    const struct layout_info l = layouts[h.packed];
    struct masks m = {.halves = half_masks_new()};
VEC_UNROLL
    for (int i = 0; i < PIECES && l.bits < 8 && l.bits > 1; i++)
        if (piece_mask(l.bits, i) == i)
            m.piece[i] = i32_kept(byte_mask(pieces[l.bits][i].width, pieces[l.bits][i].from));
    if (l.bits == 8 && h.shift == 7) m.sign = i32_kept(byte_mask(1, 7));
    if (form_of(h) == FORM_APART) m.odd = i32_kept((int32_t)0xFF00FF00);
    if (h.dots == DOTS_I16 && h.shift >= 0) m.offset = i32_kept(byte_mask(1, h.shift));
    if (l.kind == KIND_HALF_MINS) m.nibble = i32_kept(byte_mask(4, 0));
    if (l.table) m.table = table_kept(l.table, h.shift);
    if (l.bits == 1) m.bit = i32_kept(byte_mask(1, 0));
    for (int i = 0; i < 2 && l.bits == 1; i++) {
        static const int32_t rows[2][4] = {{0, 0x01010101, 0x02020202, 0x03030303},
                                           {0x04040404, 0x05050505, 0x06060606, 0x07070707}};
        m.rows[i] = vec_kept(rows[i]), m.column[i] = i32_kept((int32_t)(0x08040201u << 4 * i));
    }
    if (is_split(h)) m.table_high = vec_and(u32_shr(m.table, 4), m.piece[0]), m.table = vec_and(m.table, m.piece[0]);
    if (is_part(l.d)) m.part = f32_kept(d_part(l.d));
    return m;
}

INLINE vec move_bits(vec v, int from, int to)
{
    return from > to ? u32_shr(v, from - to) : from < to ? i32_shl(v, to - from) : v;
}

/* Codes of one bit: each row's byte four times, a bit of it in each. */
INLINE void bits_load(vec w[2], const uint8_t *codes, const size_t j, const struct masks *m)
{
    vec rows = vec_load8(codes);
    for (int i = 0; i < 2; i++)
        w[i] = vec_and(i8_eq(vec_and(vec_lookup(rows, m->rows[i]), m->column[j]), m->column[j]), m->bit);
}

/* Loads the codes of group g = at + j, rows 0..3 and 4..7; signed codes become unsigned where the dot needs that. `at`
 * is even; j is 0 or 1 and a constant. */
INLINE void group_load(vec w[2], const uint8_t *codes, size_t at, const size_t j, const struct masks *m,
                       const struct how h)
{
    const struct layout_info l = layouts[h.packed];
    w[0] = w[1] = i32_splat(0);
    if (l.bits == 1) bits_load(w, codes + at / 2 * PANEL_ROWS, j, m);
    for (int i = 0, step = (int)at / 2; i < 2; i++) {
VEC_UNROLL
        for (int n = 0; n < PIECES && l.bits > 1; n++) {
            const struct piece p = pieces[l.bits][n];
            if (p.k != 2 * i + (int)j || !p.width) continue;
            vec v = vec_load(codes + piece_at(l.bits, step, p.place)), mask = m->piece[piece_mask(l.bits, n)];
            v = u32_shr(v, piece_shift(l.bits, step, p.place));
            if (is_rest(l.bits, p)) v = move_bits(vec_and_not(v, mask), p.to, p.from);
            else if (p.width < 8) v = vec_and(move_bits(v, p.to, p.from), mask);
            w[i] = vec_or(w[i], v);
        }
        if (l.bits == 8 && h.shift == 7) w[i] = vec_xor(w[i], m->sign);
        if (l.table && !is_split(h)) w[i] = vec_lookup(m->table, w[i]);
    }
}

/* --- start values ------------------------------------------------------------------------------------------ */

/* Sums of pairs stay in 16 bits if codes have 4 bits (16 * 15 * 127) or an offset is subtracted first (16 * 16 * 127 =
 * 32,512; an overflow on the way cancels). So codes of 5 bits without an offset are given one. */
INLINE bool is_lent(const struct how h) { return in_pairs(h) && h.shift < 0 && h.bits == 5; }

/* The int16 sums of a block's two halves of 16 columns; 0 for a half that is not meant. */
INLINE vec half_sums(const uint8_t *x, int t, int half, const struct how h)
{
    vec both = vec_spread4(x + 4 * (3 * h.rows + t));
    return half < 0 ? both : vec_and(both, i32_splat(half ? -0x10000 : 0xFFFF));
}

/* The start value of a sum of products, which takes the offset off. With 7 bits it is made of the halves' sums, since
 * arranged start values may be for sums of pairs; for row_seven() see seven_begin(). */
INLINE vec block_begin(const uint8_t *x, int t, int half, const struct how h)
{
    if (h.shift < 0 && !is_lent(h)) return i32_splat(0);
    if (is_seven(h)) return i32_shl(dot2_i16(half_sums(x, t, half, h), i32_splat(-1)), h.shift);
    const int more = is_split(h) ? 0 : (is_lent(h) ? 4 : h.shift) - (half < 0 ? 3 : 2);
    vec v = vec_spread4(x + 4 * (h.rows * (half < 0 ? 2 : 4 + half) + t));
    if (more < 0) return in_pairs(h) ? i16_shr(v, -more) : i32_shr(v, -more);
    return in_pairs(h) ? i16_shl(v, more) : i32_shl(v, more);
}

/* --- scales ----------------------------------------------------------------------------------------------- */

/* Scales of a block: floats, except integer scales and the mins of halves. The kind tells which ones are used. `both`
 * has the integer scales of a row's two halves side by side. */
struct scales {
    vec d[2], dmin[2], scale[2][2], min[2], both[2];
};

/* 8 int16 as floats, or, with `twice`, each twice as int16. */
INLINE void load_whole(vec out[2], vec words, const bool twice)
{
    out[0] = twice ? u16_interleave_low(words, words) : f32_from_i32(i32_from_i16_low(words));
    out[1] = twice ? u16_interleave_high(words, words) : f32_from_i32(i32_from_i16_high(words));
}

/* Loads the scales of a unit, then of a block: floats or, with `twice`, integers. */
INLINE void unit_scales(struct scales *s, const uint8_t *unit, const struct masks *m, const struct how h)
{
    if (layouts[h.packed].d == D_F32) load_two(s->d, unit);
    else if (layouts[h.packed].d == D_BF16) load_bfloats(s->d, unit);
    else load_halves(s->d, unit, &m->halves);
    if (is_part(layouts[h.packed].d))
        for (int i = 0; i < 2; i++) s->d[i] = f32_mul(s->d[i], m->part);
    if (has_mins(h.kind) && layouts[h.packed].d == D_F32) load_two(s->dmin, unit + 32);
    else if (has_mins(h.kind)) load_halves(s->dmin, unit + 16, &m->halves);
}

/* Decodes 8 scales without sign as f32_from_e4m3() does: in place they are floats 2^120 times too small. */
INLINE void load_e4m3(vec out[2], const uint8_t *scales)
{
    vec words = i16_from_u8_low(vec_load8(scales)), more = f32_splat(0x1p120f);
    out[0] = f32_mul(i32_shl(i32_from_i16_low(words), 20), more);
    out[1] = f32_mul(i32_shl(i32_from_i16_high(words), 20), more);
}

INLINE void block_scales(struct scales *s, const uint8_t *scales, const struct masks *m, const bool twice,
                         const struct how h)
{
    if (h.kind == KIND_SCALE || h.kind == KIND_HALVES)
        load_whole(s->scale[0], i16_from_i8_low(vec_load8(scales)), twice);
    if (h.kind == KIND_HALVES) load_whole(s->scale[1], i16_from_i8_low(vec_load8(scales + 8)), twice);
    for (int half = 0; half < 2 && h.kind == KIND_HALF_FLOATS; half++) load_e4m3(s->scale[half], scales + 8 * half);
    if (is_seven(h) && twice) {
        vec first = i16_from_i8_low(vec_load8(scales)),
            second = h.kind == KIND_HALVES ? i16_from_i8_low(vec_load8(scales + 8)) : first;
        s->both[0] = u16_interleave_low(first, second), s->both[1] = u16_interleave_high(first, second);
    }
    if (h.kind == KIND_MINS) {
        load_whole(s->scale[0], i16_from_u8_low(vec_load8(scales)), twice);
        load_whole(s->min, i16_from_u8_low(vec_load8(scales + 8)), false);
    }
    if (h.kind == KIND_HALF_MINS) {
        vec both = vec_load(scales), scale = vec_and(both, m->nibble), min = vec_and(u32_shr(both, 4), m->nibble);
        vec first = i16_from_u8_low(min), second = i16_from_u8_high(min);
        load_whole(s->scale[0], i16_from_u8_low(scale), twice), load_whole(s->scale[1], i16_from_u8_high(scale), twice);
        s->min[0] = u16_interleave_low(first, second), s->min[1] = u16_interleave_high(first, second);
    }
}

/* Takes the offset off the sums of row_seven(): 64 times the sums of both halves, each times its scale. */
INLINE void seven_begin(vec sum[2], const struct scales *s, const uint8_t *x, const struct how h)
{
    vec halves = half_sums(x, 0, -1, h);
    for (int i = 0; i < 2; i++) sum[i] = i32_sub(i32_splat(0), i32_shl(dot2_i16(halves, s->both[i]), h.shift));
}

#endif
