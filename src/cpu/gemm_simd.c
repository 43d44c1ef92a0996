/* SPDX-License-Identifier: MIT
 *
 * The products: the same sums as kernels_scalar.c, 8 rows in the lanes of two vectors.
 *
 * One body, block_add(), adds a block of 32 columns for a tile of rows; what a layout, a dot instruction or a tile's height changes is a
 * constant of it (struct how), so that each kernel is compiled for its own and its sums stay in registers. gemv reads panels as
 * they are packed. gemm reads them expanded, codes as bytes and scales as floats, which all tiles of a chunk share.
 * Kernels are short calls (one panel, one tile): a browser replaces only functions that return by their optimised code.
 */
#include "simd.h"

#include <string.h>

enum kind {
    KIND_PLAIN,  /* a scale for each block */
    KIND_MINS,   /* d, dmin, and a whole scale and min for each block (Q4K) */
    KIND_HALVES, /* d, and a whole scale for each 16 columns (Q6K) */
};

/* Constants of a kernel. */
struct how {
    enum kind kind;
    enum dots dots;
    int bits;  /* of a code */
    int shift; /* codes are 2^shift too large; -1: they are not */
    int rows;  /* T, of a tile */
    bool packed;
};

/* --- blocks -------------------------------------------------------------------------------------------- */

/* An expanded block: f32 d[8] (KIND_MINS: dmin[8], scale[8], min[8]; KIND_HALVES: scale[2][8]), then 8 groups of codes: bytes [8 rows][4
 * columns], with DOTS_I16 two times int16 [8 rows][2 columns]. */
INLINE size_t head_bytes(enum kind kind) { return kind == KIND_PLAIN ? 32 : kind == KIND_MINS ? 128 : 96; }
INLINE size_t code_bytes(enum dots dots) { return dots == DOTS_I16 ? 512 : 256; }

/* A block of a tile of T rows: f32 scale[T], f32 sum of its codes [T], then what sums of products with codes too large begin at: int32 -8 sum [T],
 * -128 sum [T], -32 sum of the first half [T], of the second [T]; then codes: 8 groups of int8 [T][4], with DOTS_I16 16 of int16 [T][2]. */
enum { ACT_HEAD = 24 };
INLINE enum form form_of(enum dots dots) { return dots == DOTS_I16 ? FORM_WORDS : FORM_BYTES; }
INLINE size_t act_bytes(enum dots dots) { return ACT_HEAD + (form_of(dots) == FORM_WORDS ? 64 : 32); }

/* Constants of unpacking, in registers. */
struct masks {
    vec nibble, pair, sign;
    vec exponent, lowest, span, scaled, bias; /* of f16 */
};

INLINE struct masks masks_new(void)
{
    return (struct masks){i32_kept(0x0F0F0F0F), i32_kept(0x30303030), i32_kept((int32_t)0x80808080u), i32_kept(0x7C007C00),
                          i32_kept(0x04000400), i32_kept(0x77FF77FF), i32_kept(F16_MASK), i32_kept(112 << 23)};
}

/* Codes of group g, as they are packed: bytes of rows 0..3 and of rows 4..7. */
INLINE void group_bytes(vec w[2], const uint8_t *codes, size_t g)
{
    w[0] = vec_load(codes + 32 * g);
    w[1] = vec_load(codes + 32 * g + 16);
}

INLINE void group_nibbles(vec w[2], const uint8_t *codes, size_t g, const struct masks *m)
{
    vec both = vec_load(codes + 16 * g);
    w[0] = vec_and(both, m->nibble);
    w[1] = vec_and(u32_shr(both, 4), m->nibble);
}

/* Nibbles joined with bit pairs. */
INLINE void group_six(vec w[2], const uint8_t *codes, size_t g, const struct masks *m)
{
    vec pairs = vec_load(codes + 128 + 16 * (g / 2));
    group_nibbles(w, codes, g, m);
    w[0] = vec_or(w[0], vec_and(g % 2 ? pairs : i32_shl(pairs, 4), m->pair));
    w[1] = vec_or(w[1], vec_and(g % 2 ? u32_shr(pairs, 2) : i32_shl(pairs, 2), m->pair));
}

/* Packed codes; signed ones made unsigned where the dot wants that. */
INLINE void group_load(vec w[2], const uint8_t *codes, size_t g, const struct masks *m, const struct how h)
{
    if (h.bits == 8) group_bytes(w, codes, g);
    else if (h.bits == 4) group_nibbles(w, codes, g, m);
    else group_six(w, codes, g, m);
    if (h.bits == 8 && h.shift == 7)
        for (int i = 0; i < 2; i++) w[i] = vec_xor(w[i], m->sign);
}

/* --- sums of codes --------------------------------------------------------------------------------------- */

/* sum [T][2] += codes of n groups times the tile's; n is 4 or 8. The loops over groups stay loops, of two steps: without them compilers line up all
 * dots of a sum, each waiting for the last, instead of those of the tile's sums in turn. Expanded groups are 32 bytes. */

INLINE void dots_bytes(vec sum[TILE][2], const uint8_t *codes, const uint8_t *x, size_t n, const struct how h)
{
#pragma GCC unroll 2
    for (size_t g = 0; g < n; g++, codes += 32, x += 4 * h.rows) {
        vec w[2];
        group_bytes(w, codes, 0);
        for (int t = 0; t < h.rows; t++) {
            vec v = vec_spread4(x + 4 * t);
            for (int i = 0; i < 2; i++) sum[t][i] = h.dots == DOTS_S8 ? dot4_s8(sum[t][i], v, w[i]) : dot4_u8(sum[t][i], v, w[i]);
        }
    }
}

INLINE void clear(vec sum[TILE][2], const int T)
{
    for (int t = 0; t < T; t++) sum[t][0] = sum[t][1] = i32_splat(0);
}

/* Sums of two products stay in 16 bits: 8 times with 4-bit codes (8 * 2 * 15 * 127 = 30,480), twice with 6-bit ones. */
INLINE void dots_pairs(vec sum[TILE][2], const uint8_t *codes, const uint8_t *x, size_t n, const struct how h)
{
    size_t run = h.bits == 6 ? 2 : n;
    for (size_t from = 0; from < n; from += run) {
        vec part[TILE][2];
        clear(part, h.rows);
#pragma GCC unroll 2
        for (size_t g = 0; g < run; g++, codes += 32, x += 4 * h.rows) {
            vec w[2];
            group_bytes(w, codes, 0);
            for (int t = 0; t < h.rows; t++) {
                vec v = vec_spread4(x + 4 * t);
                for (int i = 0; i < 2; i++) part[t][i] = i16_add(part[t][i], dot2_u7(v, w[i]));
            }
        }
        for (int t = 0; t < h.rows; t++)
            for (int i = 0; i < 2; i++) sum[t][i] = i32_add(sum[t][i], i16_pairs(part[t][i]));
    }
}

/* 16-bit codes, two columns at a time. */
INLINE void dots_words(vec sum[TILE][2], const uint8_t *codes, const uint8_t *x, size_t n, const struct how h)
{
#pragma GCC unroll 2
    for (size_t g = 0; g < 2 * n; g++, codes += 32, x += 4 * h.rows) {
        vec w[2];
        group_bytes(w, codes, 0);
        for (int t = 0; t < h.rows; t++) {
            vec v = vec_spread4(x + 4 * t);
            for (int i = 0; i < 2; i++) sum[t][i] = i32_add(sum[t][i], dot2_i16(v, w[i]));
        }
    }
}

/* --- the same of packed codes and one row: all groups at once, two sums in turn ------------------------------ */

INLINE void row_bytes(vec sum[2], const uint8_t *codes, const uint8_t *x, size_t first, size_t n, const struct masks *m, const struct how h)
{
    vec odd[2] = {i32_splat(0), i32_splat(0)};
VEC_UNROLL
    for (size_t g = first; g < first + n; g++) {
        vec w[2], v = vec_spread4(x + 4 * g), *to = g % 2 ? odd : sum;
        group_load(w, codes, g, m, h);
        for (int i = 0; i < 2; i++) to[i] = h.dots == DOTS_S8 ? dot4_s8(to[i], v, w[i]) : dot4_u8(to[i], v, w[i]);
    }
    for (int i = 0; i < 2; i++) sum[i] = i32_add(sum[i], odd[i]);
}

INLINE void row_pairs(vec sum[2], const uint8_t *codes, const uint8_t *x, size_t first, size_t n, const struct masks *m, const struct how h)
{
    size_t run = h.bits == 6 ? 2 : n;
VEC_UNROLL
    for (size_t from = first; from < first + n; from += run) {
        vec part[2] = {i32_splat(0), i32_splat(0)};
VEC_UNROLL
        for (size_t g = from; g < from + run; g++) {
            vec w[2], v = vec_spread4(x + 4 * g);
            group_load(w, codes, g, m, h);
            for (int i = 0; i < 2; i++) part[i] = i16_add(part[i], dot2_u7(v, w[i]));
        }
        for (int i = 0; i < 2; i++) sum[i] = i32_add(sum[i], i16_pairs(part[i]));
    }
}

/* Bytes widened on the way; lanes are (row, column pair) until the end. */
INLINE void row_words(vec sum[2], const uint8_t *codes, const uint8_t *x, size_t first, size_t n, const struct masks *m, const struct how h)
{
    vec part[4] = {i32_splat(0), i32_splat(0), i32_splat(0), i32_splat(0)};
VEC_UNROLL
    for (size_t g = first; g < first + n; g++) {
        vec w[2], v = vec_spread8(x + 8 * g);
        group_load(w, codes, g, m, h);
        for (int i = 0; i < 4; i++)
            part[i] = i32_add(part[i], dot2_i16(v, i % 2 ? i16_from_i8_high(w[i / 2]) : i16_from_i8_low(w[i / 2])));
    }
    for (int i = 0; i < 2; i++) sum[i] = i32_add(sum[i], i32_add_pairs(part[2 * i], part[2 * i + 1]));
}

/* sum [T][2] = codes of columns 16 * half .. times the tile's, with half < 0 of all 32; offsets taken off. */
INLINE void block_dots(vec sum[TILE][2], const uint8_t *codes, const uint8_t *x, int half, const struct masks *m, const struct how h)
{
    size_t first = half > 0 ? 4 : 0, n = half < 0 ? 8 : 4;
    const uint8_t *begin = x + 4 * h.rows * (h.shift == 3 ? 2 : h.shift == 7 ? 3 : 4 + half), *act = x + ACT_HEAD * h.rows;
    const uint8_t *from = codes + (size_t)code_bytes(h.dots) / 8 * first, *to = act + (size_t)(act_bytes(h.dots) - ACT_HEAD) / 8 * first * (size_t)h.rows;
    for (int t = 0; t < h.rows; t++) sum[t][0] = sum[t][1] = h.shift < 0 ? i32_splat(0) : vec_spread4(begin + 4 * t);
    if (h.packed && h.dots == DOTS_I16) row_words(sum[0], codes, act, first, n, m, h);
    else if (h.dots == DOTS_I16) dots_words(sum, from, to, n, h);
    else if (h.packed && h.dots == DOTS_U7) row_pairs(sum[0], codes, act, first, n, m, h);
    else if (h.dots == DOTS_U7) dots_pairs(sum, from, to, n, h);
    else if (h.packed) row_bytes(sum[0], codes, act, first, n, m, h);
    else dots_bytes(sum, from, to, n, h);
}

/* --- a block --------------------------------------------------------------------------------------------- */

struct sums {
    vec acc[TILE][2], mins[TILE][2];
};

/* Scales of a block as floats; which ones count, the kind says. */
struct scales {
    vec d[2], dmin[2], scale[2][2], min[2];
};

INLINE void load_two(vec out[2], const uint8_t *floats)
{
    out[0] = vec_load(floats);
    out[1] = vec_load(floats + 16);
}

INLINE void scales_load(struct scales *s, const uint8_t *head, const enum kind kind)
{
    load_two(s->d, head);
    if (kind == KIND_MINS) load_two(s->dmin, head + 32);
    if (kind != KIND_PLAIN) load_two(s->scale[0], head + (kind == KIND_MINS ? 64 : 32));
    if (kind == KIND_HALVES) load_two(s->scale[1], head + 64);
    if (kind == KIND_MINS) load_two(s->min, head + 96);
}

/* acc += (float)isum * (d * xs). Whole numbers below 2^24 multiply and add exactly as floats too. */
INLINE void block_add(struct sums *a, const struct scales *s, const uint8_t *codes, const uint8_t *x, const struct masks *m, const struct how h)
{
    vec sum[TILE][2], other[TILE][2];
    block_dots(sum, codes, x, h.kind == KIND_HALVES ? 0 : -1, m, h);
    if (h.kind == KIND_HALVES) block_dots(other, codes, x, 1, m, h);
    for (int t = 0; t < h.rows; t++) {
        vec xs = vec_spread4(x + 4 * t), b = vec_spread4(x + 4 * (h.rows + t));
        for (int i = 0; i < 2; i++) {
            vec whole = f32_from_i32(sum[t][i]);
            if (h.kind != KIND_PLAIN) whole = f32_mul(whole, s->scale[0][i]);
            if (h.kind == KIND_HALVES) whole = f32_add(whole, f32_mul(f32_from_i32(other[t][i]), s->scale[1][i]));
            a->acc[t][i] = f32_add(a->acc[t][i], f32_mul(whole, f32_mul(s->d[i], xs)));
            if (h.kind == KIND_MINS) a->mins[t][i] = f32_add(a->mins[t][i], f32_mul(f32_mul(s->min[i], b), f32_mul(s->dmin[i], xs)));
        }
    }
}

INLINE void sums_clear(struct sums *a, const struct how h)
{
    clear(a->acc, h.rows);
    clear(a->mins, h.rows);
}

INLINE void sums_store(const struct sums *a, float *out, const struct how h)
{
    for (int t = 0; t < h.rows; t++)
        for (int i = 0; i < 2; i++)
            vec_store(out + 8 * t + 4 * i, h.kind == KIND_MINS ? f32_sub(a->acc[t][i], a->mins[t][i]) : a->acc[t][i]);
}

/* --- gemm: an expanded panel, a tile ------------------------------------------------------------------------ */

INLINE void gemm(const uint8_t *panel, const struct act *a, int row, float *out, const struct how h)
{
    size_t blocks = (size_t)(a->cols / BLOCK), block = head_bytes(h.kind) + code_bytes(h.dots), tile = act_bytes(h.dots) * (size_t)h.rows;
    const uint8_t *x = a->tiles[form_of(h.dots)] + (size_t)row * blocks * act_bytes(h.dots);
    struct masks m = masks_new();
    struct sums sums;
    sums_clear(&sums, h);
    for (size_t b = 0; b < blocks; b++, panel += block, x += tile) {
        struct scales s;
        scales_load(&s, panel, h.kind);
        block_add(&sums, &s, panel + head_bytes(h.kind), x, &m, h);
    }
    sums_store(&sums, out, h);
}

/* --- gemv: packed panels, one row ----------------------------------------------------------------------------- */

/* Scales of 8 rows, f16. None is zero, subnormal, infinite or NaN, as a rule, and then moving the exponent is enough. */
INLINE void load_halves(vec out[2], const uint8_t *halves, const struct masks *m)
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

INLINE void load_whole(vec out[2], const uint8_t *bytes, const bool is_signed)
{
    vec v = is_signed ? i16_from_i8_low(vec_load8(bytes)) : i16_from_u8_low(vec_load8(bytes));
    out[0] = f32_from_i32(i32_from_i16_low(v));
    out[1] = f32_from_i32(i32_from_i16_high(v));
}

/* Scales of a unit, then of a block; *codes: where its codes begin. */
INLINE void unit_scales(struct scales *s, const uint8_t *unit, const struct masks *m, const enum layout layout, const enum kind kind)
{
    if (layout == LAYOUT_Q8F) load_two(s->d, unit);
    else load_halves(s->d, unit, m);
    if (kind == KIND_MINS) load_halves(s->dmin, unit + 16, m);
}

INLINE const uint8_t *block_scales(struct scales *s, const uint8_t *unit, size_t i, const enum layout layout, const enum kind kind)
{
    if (kind == KIND_PLAIN) return unit + (layout == LAYOUT_Q8F ? 32 : 16);
    const uint8_t *block = kind == KIND_MINS ? unit + 32 + 144 * i : unit + 16 + 208 * i;
    load_whole(s->scale[0], block, kind == KIND_HALVES);
    if (kind == KIND_MINS) load_whole(s->min, block + 8, false);
    else load_whole(s->scale[1], block + 8, true);
    return block + 16;
}

/* n panels, a block of each in turn. */
INLINE void gemv(const uint8_t *panels, size_t panel_bytes, const struct act *a, float *out, const size_t n, const enum layout layout, const struct how h)
{
    size_t unit = (size_t)layouts[layout].bytes, per_unit = h.kind == KIND_PLAIN ? 1 : 8, units = (size_t)(a->cols / BLOCK) / per_unit;
    const uint8_t *x = a->tiles[form_of(h.dots)];
    struct masks m = masks_new();
    struct sums sums[STREAMS];
    struct scales s[STREAMS];
VEC_UNROLL
    for (size_t p = 0; p < n; p++) sums_clear(&sums[p], h);
    for (size_t u = 0; u < units; u++, panels += unit) {
VEC_UNROLL
        for (size_t p = 0; p < n; p++) unit_scales(&s[p], panels + p * panel_bytes, &m, layout, h.kind);
        for (size_t i = 0; i < per_unit; i++, x += act_bytes(h.dots))
VEC_UNROLL
            for (size_t p = 0; p < n; p++)
                block_add(&sums[p], &s[p], block_scales(&s[p], panels + p * panel_bytes, i, layout, h.kind), x, &m, h);
    }
VEC_UNROLL
    for (size_t p = 0; p < n; p++) sums_store(&sums[p], out + PANEL_ROWS * p, h);
}

/* --- expanding ------------------------------------------------------------------------------------------------ */

INLINE void store_two(uint8_t *floats, const vec v[2])
{
    vec_store(floats, v[0]);
    vec_store(floats + 16, v[1]);
}

/* One group's codes, as the dot wants them. */
INLINE void expand_group(uint8_t *out, const uint8_t *codes, size_t g, const struct masks *m, const struct how h)
{
    vec w[2];
    group_load(w, codes, g, m, h);
    if (h.dots != DOTS_I16) {
        store_two(out + 32 * g, w);
        return;
    }
    for (size_t i = 0; i < 2; i++) { /* rows (0, 1), (2, 3) of 4 columns -> 4 rows of 2 columns, twice */
        vec low = i16_from_i8_low(w[i]), high = i16_from_i8_high(w[i]);
        vec_store(out + 64 * g + 16 * i, vec_even(low, high));
        vec_store(out + 64 * g + 32 + 16 * i, vec_odd(low, high));
    }
}

INLINE void expand(const uint8_t *panel, int cols, uint8_t *out, const enum layout layout, const struct how h)
{
    size_t per_unit = h.kind == KIND_PLAIN ? 1 : 8, head = head_bytes(h.kind);
    struct masks m = masks_new();
    for (size_t u = 0; u < (size_t)(cols / BLOCK) / per_unit; u++, panel += layouts[layout].bytes) {
        struct scales s;
        unit_scales(&s, panel, &m, layout, h.kind);
        for (size_t i = 0; i < per_unit; i++, out += head + code_bytes(h.dots)) {
            const uint8_t *codes = block_scales(&s, panel, i, layout, h.kind);
            store_two(out, s.d);
            if (h.kind == KIND_MINS) store_two(out + 32, s.dmin), store_two(out + 64, s.scale[0]), store_two(out + 96, s.min);
            if (h.kind == KIND_HALVES) store_two(out + 32, s.scale[0]), store_two(out + 64, s.scale[1]);
            for (size_t g = 0; g < 8; g++) expand_group(out + head, codes, g, &m, h);
        }
    }
}

/* --- activations ---------------------------------------------------------------------------------------------- */

/* 4 columns of a row, as bytes or as two pairs of int16, into a tile's codes. */
INLINE void arrange_group(uint8_t *codes, const int8_t *from, size_t g, size_t t, size_t T, const bool words)
{
    if (!words) {
        memcpy(codes + 4 * (g * T + t), from, 4);
        return;
    }
    for (size_t i = 0; i < 2; i++) memcpy(codes + 4 * ((2 * g + i) * T + t), (int16_t[]){from[2 * i], from[2 * i + 1]}, 4);
}

INLINE void arrange(const struct act *a, int row, int n_rows, uint8_t *tile, const bool words)
{
    size_t T = (size_t)n_rows, blocks = (size_t)(a->cols / BLOCK), bytes = T * act_bytes(words ? DOTS_I16 : DOTS_U8);
    for (size_t t = 0; t < T; t++) {
        size_t at = ((size_t)row + t) * blocks;
        for (size_t b = 0; b < blocks; b++, at++) {
            uint8_t *block = tile + b * bytes;
            int32_t half[2] = {a->sum[2 * at], a->sum[2 * at + 1]}, sum = half[0] + half[1];
            const int32_t begin[4] = {-8 * sum, -128 * sum, -32 * half[0], -32 * half[1]};
            memcpy(block + 4 * t, a->scale + at, 4);
            memcpy(block + 4 * (T + t), &(float){(float)sum}, 4);
            for (size_t i = 0; i < 4; i++) memcpy(block + 4 * ((2 + i) * T + t), begin + i, 4);
            for (size_t g = 0; g < 8; g++) arrange_group(block + ACT_HEAD * T, a->code + at * BLOCK + 4 * g, g, t, T, words);
        }
    }
}

static void arrange_bytes(const struct act *a, int row, int n_rows, uint8_t *tile) { arrange(a, row, n_rows, tile, false); }
static void arrange_words(const struct act *a, int row, int n_rows, uint8_t *tile) { arrange(a, row, n_rows, tile, true); }

/* --- float weights ------------------------------------------------------------------------------------------- */

/* 8 rows' weights of a column as floats. */
INLINE void column_load(vec w[2], const uint8_t *column, const struct masks *m, const enum layout layout)
{
    if (layout == LAYOUT_F32) load_two(w, column);
    else if (layout == LAYOUT_F16) load_halves(w, column, m);
    else w[0] = u16_interleave_low(i32_splat(0), vec_load(column)), w[1] = u16_interleave_high(i32_splat(0), vec_load(column));
}

/* Two panels, packed. */
INLINE void pair_floats(const uint8_t *panels, size_t panel_bytes, const struct act *a, float *out, const enum layout layout)
{
    size_t column = (size_t)layouts[layout].bytes;
    struct masks m = masks_new();
    vec acc[2][2], w[2][2];
    for (int p = 0; p < 2; p++) acc[p][0] = acc[p][1] = i32_splat(0);
    for (int c = 0; c < a->cols; c++, panels += column) {
        vec v = vec_spread4(a->x + c);
        column_load(w[0], panels, &m, layout);
        column_load(w[1], panels + panel_bytes, &m, layout);
        for (int i = 0; i < 4; i++) acc[i / 2][i % 2] = f32_add(acc[i / 2][i % 2], f32_mul(w[i / 2][i % 2], v));
    }
    for (int i = 0; i < 4; i++) vec_store(out + 4 * i, acc[i / 2][i % 2]);
}

INLINE void gemv_floats(const uint8_t *panels, size_t panel_bytes, const struct act *a, float *out, const enum layout layout)
{
    for (size_t p = 0; p < STREAMS; p += 2) pair_floats(panels + p * panel_bytes, panel_bytes, a, out + p * PANEL_ROWS, layout);
}

/* F32 panels; halves are expanded to them. */
INLINE void gemm_floats(const uint8_t *panel, const struct act *a, int row, float *out, const int T)
{
    size_t cols = (size_t)a->cols;
    const float *x = a->x + (size_t)row * cols;
    vec acc[TILE][2], w[2];
    for (int t = 0; t < T; t++) acc[t][0] = acc[t][1] = i32_splat(0);
    for (size_t c = 0; c < cols; c++) {
        load_two(w, panel + 32 * c);
        for (int t = 0; t < T; t++) {
            vec v = vec_spread4(x + (size_t)t * cols + c);
            for (int i = 0; i < 2; i++) acc[t][i] = f32_add(acc[t][i], f32_mul(w[i], v));
        }
    }
    for (int t = 0; t < T; t++)
        for (int i = 0; i < 2; i++) vec_store(out + 8 * t + 4 * i, acc[t][i]);
}

INLINE void expand_floats(const uint8_t *panel, int cols, uint8_t *out, const enum layout layout)
{
    struct masks m = masks_new();
    for (int c = 0; c < cols; c++) {
        vec w[2];
        column_load(w, panel + 16 * c, &m, layout);
        store_two(out + 32 * c, w);
    }
}

/* --- the kernels --------------------------------------------------------------------------------------------- */

/* One body for each height of a tile. */
#define BY_HEIGHT(BODY)      \
    switch (n_rows) {        \
    case 1: BODY(1); break;  \
    case 2: BODY(2); break;  \
    case 4: BODY(4); break;  \
    default: BODY(TILE); break; \
    }

#define FLOATS(T) gemm_floats(panel, a, row, out, T)
static void gemm_f32(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out) { BY_HEIGHT(FLOATS) }

#define DEFINE_FLOATS(name, layout)                                                                      \
    static void gemv_##name(const uint8_t *panels, size_t panel_bytes, const struct act *a, float *out) \
    {                                                                                                    \
        gemv_floats(panels, panel_bytes, a, out, layout);                                                \
    }
DEFINE_FLOATS(f32, LAYOUT_F32)
DEFINE_FLOATS(f16, LAYOUT_F16)
DEFINE_FLOATS(bf16, LAYOUT_BF16)
static void expand_f16(const uint8_t *panel, int cols, uint8_t *out) { expand_floats(panel, cols, out, LAYOUT_F16); }
static void expand_bf16(const uint8_t *panel, int cols, uint8_t *out) { expand_floats(panel, cols, out, LAYOUT_BF16); }

/* expand_NAME from the constants of a kernel; gemm_NAME, gemv_NAME and turns_NAME too */
#define HOW(T) gemm(panel, a, row, out, (struct how){how.kind, how.dots, how.bits, how.shift, T, false})
#define DEFINE_EXPAND(name, layout, ...)                                                                    \
    static void expand_##name(const uint8_t *panel, int cols, uint8_t *out)                                 \
    {                                                                                                       \
        expand(panel, cols, out, layout, (struct how){__VA_ARGS__, 1, true});                               \
    }
#define DEFINE(name, layout, ...)                                                                           \
    static void gemm_##name(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out)     \
    {                                                                                                       \
        const struct how how = {__VA_ARGS__, 0, 0};                                                             \
        BY_HEIGHT(HOW)                                                                                      \
    }                                                                                                       \
    static void gemv_##name(const uint8_t *panels, size_t panel_bytes, const struct act *a, float *out)     \
    {                                                                                                       \
        gemv(panels, panel_bytes, a, out, STREAMS, layout, (struct how){__VA_ARGS__, 1, true});             \
    }                                                                                                       \
    static void turns_##name(const uint8_t *panels, size_t panel_bytes, const struct act *a, float *out)    \
    {                                                                                                       \
        for (size_t p = 0; p < STREAMS; p++)                                                                \
            gemv(panels + p * panel_bytes, panel_bytes, a, out + PANEL_ROWS * p, 1, layout, (struct how){__VA_ARGS__, 1, true}); \
    }                                                                                                       \
    DEFINE_EXPAND(name, layout, __VA_ARGS__)

/*     name     layout      kind         dots      bits shift */
DEFINE(q8_i16,  LAYOUT_Q8,  KIND_PLAIN,  DOTS_I16, 8, -1)
DEFINE(q4_i16,  LAYOUT_Q4,  KIND_PLAIN,  DOTS_I16, 4, 3)
DEFINE(q4k_i16, LAYOUT_Q4K, KIND_MINS,   DOTS_I16, 4, -1)
DEFINE(q6k_i16, LAYOUT_Q6K, KIND_HALVES, DOTS_I16, 6, 5)
DEFINE(q4_u7,   LAYOUT_Q4,  KIND_PLAIN,  DOTS_U7,  4, 3)
DEFINE(q4k_u7,  LAYOUT_Q4K, KIND_MINS,   DOTS_U7,  4, -1)
DEFINE(q6k_u7,  LAYOUT_Q6K, KIND_HALVES, DOTS_U7,  6, 5)
DEFINE(q8_u8,   LAYOUT_Q8,  KIND_PLAIN,  DOTS_U8,  8, 7)
DEFINE(q8_s8,   LAYOUT_Q8,  KIND_PLAIN,  DOTS_S8,  8, -1)
DEFINE(q4_u8,   LAYOUT_Q4,  KIND_PLAIN,  DOTS_U8,  4, 3) /* DOTS_S8 too, from here on: these codes are the same signed and unsigned */
DEFINE(q4k_u8,  LAYOUT_Q4K, KIND_MINS,   DOTS_U8,  4, -1)
DEFINE(q6k_u8,  LAYOUT_Q6K, KIND_HALVES, DOTS_U8,  6, 5)
/* Expanded, these are Q8's; and they are rare, so that gemm has to do for one row too. */
DEFINE_EXPAND(q8f_i16, LAYOUT_Q8F, KIND_PLAIN, DOTS_I16, 8, -1)
DEFINE_EXPAND(q8f_u8, LAYOUT_Q8F, KIND_PLAIN, DOTS_U8, 8, 7)
DEFINE_EXPAND(q8f_s8, LAYOUT_Q8F, KIND_PLAIN, DOTS_S8, 8, -1)

#define SET(layout, name, taken)                                                                                                \
    (k->gemm[layout] = gemm_##name, k->gemv[TOGETHER][layout] = gemv_##name, k->gemv[IN_TURN][layout] = turns_##name,            \
     k->expand[layout] = expand_##name, k->form[layout] = taken)
#define SET_8BIT(dots, taken)                                                                                                    \
    (SET(LAYOUT_Q8, q8_##dots, taken), k->gemm[LAYOUT_Q8F] = gemm_q8_##dots, k->expand[LAYOUT_Q8F] = expand_q8f_##dots, k->form[LAYOUT_Q8F] = taken)

static void set_words(struct kernels *k)
{
    SET_8BIT(i16, FORM_WORDS), SET(LAYOUT_Q4, q4_i16, FORM_WORDS);
    SET(LAYOUT_Q4K, q4k_i16, FORM_WORDS), SET(LAYOUT_Q6K, q6k_i16, FORM_WORDS);
}

/* Without a dot of whole bytes, words are faster for these than bytes in two halves. */
static void set_u7(struct kernels *k)
{
    SET_8BIT(i16, FORM_WORDS), SET(LAYOUT_Q4, q4_u7, FORM_BYTES), SET(LAYOUT_Q4K, q4k_u7, FORM_BYTES), SET(LAYOUT_Q6K, q6k_u7, FORM_BYTES);
}

static void set_bytes(struct kernels *k)
{
    if (k->dots == DOTS_U8) SET_8BIT(u8, FORM_BYTES);
    else SET_8BIT(s8, FORM_BYTES);
    SET(LAYOUT_Q4, q4_u8, FORM_BYTES), SET(LAYOUT_Q4K, q4k_u8, FORM_BYTES), SET(LAYOUT_Q6K, q6k_u8, FORM_BYTES);
}

static void set_floats(struct kernels *k)
{
    k->gemm[LAYOUT_F32] = k->gemm[LAYOUT_F16] = k->gemm[LAYOUT_BF16] = k->gemm[LAYOUT_F8] = gemm_f32; /* F8 is expanded by kernels_simd.c */
    for (int i = 0; i < ORDERS; i++) k->gemv[i][LAYOUT_F32] = gemv_f32, k->gemv[i][LAYOUT_F16] = gemv_f16, k->gemv[i][LAYOUT_BF16] = gemv_bf16;
    k->expand[LAYOUT_F16] = expand_f16, k->expand[LAYOUT_BF16] = expand_bf16;
}

void gemm_simd(struct kernels *k, enum dots dots)
{
    k->dots = dots;
    k->tile = dots == DOTS_U8 || dots == DOTS_S8 ? TILE : 4; /* what the registers hold: 12 sums, or 8 and products on their way */
    k->expanded = BLOCK * PANEL_ROWS * sizeof(float); /* of F16; codes with their scales take less */
    if (dots != DOTS_I16) k->arrange[FORM_BYTES] = arrange_bytes, k->arranged[FORM_BYTES] = act_bytes(DOTS_U8);
    if (dots == DOTS_I16 || dots == DOTS_U7) k->arrange[FORM_WORDS] = arrange_words, k->arranged[FORM_WORDS] = act_bytes(DOTS_I16);
    set_floats(k);
    if (dots == DOTS_I16 || !VEC_BYTE_DOTS) set_words(k);
    else if (dots == DOTS_U7) set_u7(k);
    else set_bytes(k);
}
