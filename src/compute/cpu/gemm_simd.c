/* SPDX-License-Identifier: MIT
 *
 * The products with codes: the same sums as kernels_scalar.c. 8 rows are the lanes of two vectors.
 *
 * One body, block_add(), adds a block of 32 columns for a tile of rows. Layout, dot instruction and tile height are
 * constants of it (struct how), so that each kernel is compiled by itself and its sums stay in registers. gemv and few
 * read packed panels: gemv for one row, few for a tile of few rows. gemm reads expanded panels, codes as bytes and
 * scales as floats, which all tiles of a chunk share; so layouts that differ only in packing have a gemm in common.
 * Kernels are short calls: a browser replaces a function by its optimised code only after a call returns.
 */
#include "compute/cpu/codes.h"

/* --- expanded blocks ------------------------------------------------------------------------------------- */

/* An expanded block: f32 d[8] (KIND_SCALE: scale[8]; KIND_HALVES, KIND_HALF_FLOATS: scale[2][8]; KIND_MINS: dmin[8],
 * scale[8], min[8]; KIND_HALF_MINS: dmin[8], scale[2][8], int16 min[8][2 halves]), then 8 groups of codes: bytes [8
 * rows][4 columns], with DOTS_I16 two times int16 [8 rows][2 columns]. Whole scales are int16 [8][2], each twice. With
 * DOTS_I16 there are no integer ones. */
INLINE size_t head_bytes(const struct how h)
{
    return 32 * (size_t)(1 + (has_scale(h) ? 1 + has_halves(h) : 0) + 2 * has_mins(h.kind));
}
INLINE size_t code_bytes(enum dots dots) { return dots == DOTS_I16 ? 512 : 256; }

/* --- sums of codes --------------------------------------------------------------------------------------- */

/* sum [T][2] += codes of n groups times the tile's; n is 4 or 8. The loops over groups stay loops: if they are
 * unrolled, compilers compute all dots of one sum in a row, each waiting for the last, instead of alternating between
 * the tile's sums. Two steps at once need more registers than there are on processors that add products in a separate
 * instruction. Expanded groups are 32 bytes. */

INLINE void dots_bytes(vec sum[TILE][2], const uint8_t *codes, const uint8_t *x, size_t n, const struct how h)
{
#pragma GCC unroll 2
    for (size_t g = 0; g < n; g++, codes += 32, x += 4 * h.rows) {
        vec w[2];
        load_two(w, codes);
        for (int t = 0; t < h.rows; t++) {
            vec v = vec_spread4(x + 4 * t);
            for (int i = 0; i < 2; i++)
                sum[t][i] = h.dots == DOTS_S8 ? dot4_s8(sum[t][i], v, w[i]) : dot4_u8(sum[t][i], v, w[i]);
        }
    }
}

INLINE void clear(vec sum[TILE][2], const int T)
{
    for (int t = 0; t < T; t++) sum[t][0] = sum[t][1] = i32_splat(0);
}

/* sum += pairs that began at `begin`, times their integer scales. */
INLINE vec pairs_add(vec sum, vec pairs, vec begin, const vec scale[2], int i, const struct how h)
{
    sum = i32_add(sum, whole_scales(h) ? dot2_i16(pairs, scale[i]) : i16_pairs(pairs));
    return !is_lent(h) ? sum : i32_sub(sum, whole_scales(h) ? dot2_i16(begin, scale[i]) : i16_pairs(begin));
}

INLINE void dots_pairs(vec sum[TILE][2], const uint8_t *codes, const uint8_t *x, size_t n, const vec begin[TILE],
                       const vec scale[2], const struct how h)
{
    vec part[TILE][2];
    for (int t = 0; t < h.rows; t++) part[t][0] = part[t][1] = begin[t];
#pragma GCC unroll 1
    for (const uint8_t *end = loop_end(codes + 32 * n); codes != end; codes += 32, x += 4 * h.rows) {
        vec w[2];
        load_two(w, codes);
        for (int t = 0; t < h.rows; t++) {
            vec v = vec_spread4(x + 4 * t);
            for (int i = 0; i < 2; i++) part[t][i] = i16_add(part[t][i], dot2_u7(v, w[i]));
        }
    }
    for (int t = 0; t < h.rows; t++)
        for (int i = 0; i < 2; i++) sum[t][i] = pairs_add(sum[t][i], part[t][i], begin[t], scale, i, h);
}

/* 16-bit codes, two columns at a time. */
INLINE void dots_words(vec sum[TILE][2], const uint8_t *codes, const uint8_t *x, size_t n, const struct how h)
{
#pragma GCC unroll 1
    for (size_t g = 0; g < 2 * n; g++, codes += 32, x += 4 * h.rows) {
        vec w[2];
        load_two(w, codes);
        for (int t = 0; t < h.rows; t++) {
            vec v = vec_spread4(x + 4 * t);
            for (int i = 0; i < 2; i++) sum[t][i] = i32_add(sum[t][i], dot2_i16(v, w[i]));
        }
    }
}

/* --- the same for packed codes: two groups at a step ------------------------------------------------------------ */

/* With more groups at once compilers read all codes first, and keep most of them in memory meanwhile: on V8's stack,
 * see keep_in_memory(). */
#define EACH_GROUP(first, n, at, j) \
    _Pragma("GCC unroll 1") for (size_t at = (first); at < (first) + (n); at += 2) \
        VEC_UNROLL for (size_t j = 0; j < 2; j++)

/* Keeps compilers from reading the next group earlier: the sums of three rows leave no registers for it. */
INLINE void end_group(void) { __asm__ volatile("" ::: "memory"); }

/* With one or two rows there are two sums for each, so that none waits for the last dot. */
INLINE void packed_bytes(vec sum[TILE][2], const uint8_t *codes, const uint8_t *x, size_t first, size_t n,
                         const struct masks *m, const struct how h)
{
    vec odd[TILE][2];
    clear(odd, h.rows);
    EACH_GROUP(first, n, at, j) {
        vec w[2];
        group_load(w, codes, at, j, m, h);
        for (size_t t = 0; t < (size_t)h.rows; t++) {
            vec v = vec_spread4(x + 4 * ((at + j) * (size_t)h.rows + t)), *to = j && h.rows <= 2 ? odd[t] : sum[t];
            for (int i = 0; i < 2; i++) to[i] = h.dots == DOTS_S8 ? dot4_s8(to[i], v, w[i]) : dot4_u8(to[i], v, w[i]);
        }
    }
    for (int t = 0; t < h.rows && h.rows <= 2; t++)
        for (int i = 0; i < 2; i++) sum[t][i] = i32_add(sum[t][i], odd[t][i]);
}

/* part += words of n codes times their activations. */
INLINE void words_add(vec part[TILE][2], const vec words[2], const uint8_t *x, const int n, const int T)
{
    for (int k = 0; k < n; k++) {
        vec w[2];
        for (int i = 0; i < 2; i++) w[i] = k ? u16_shr(words[i], 16 / n * k) : words[i];
        for (int t = 0; t < T; t++) {
            vec v = vec_spread4(x + 4 * (n * t + k));
            for (int i = 0; i < 2; i++) part[t][i] = i16_add(part[t][i], i16_mul(w[i], v));
        }
    }
}

INLINE void group_add(vec part[TILE][2], const uint8_t *codes, const uint8_t *x, size_t at, const size_t j,
                      const struct masks *m, const struct how h)
{
    const size_t T = (size_t)h.rows;
    vec w[2];
    if (form_of(h) == FORM_FOURS && j) return; /* both groups at once */
    if (form_of(h) == FORM_FOURS) load_two(w, codes + 16 * at);
    else group_load(w, codes, at, j, m, h);
    if (form_of(h) != FORM_BYTES) {
        words_add(part, w, x + 8 * (at + j) * T, form_of(h) == FORM_TWOS ? 2 : 4, h.rows);
        return;
    }
    for (size_t t = 0; t < T; t++) {
        vec v = vec_spread4(x + 4 * ((at + j) * T + t));
        for (int i = 0; i < 2; i++) part[t][i] = i16_add(part[t][i], dot2_u7(v, w[i]));
    }
    if (h.rows > 2) end_group();
}

INLINE void packed_pairs(vec sum[TILE][2], const uint8_t *codes, const uint8_t *x, size_t first, size_t n,
                         const vec begin[TILE], const vec scale[2], const struct masks *m, const struct how h)
{
    vec part[TILE][2];
    for (int t = 0; t < h.rows; t++) part[t][0] = part[t][1] = begin[t];
    EACH_GROUP(first, n, at, j) group_add(part, codes, x, at, j, m, h);
    for (int t = 0; t < h.rows; t++)
        for (int i = 0; i < 2; i++) sum[t][i] = pairs_add(sum[t][i], part[t][i], begin[t], scale, i, h);
}

/* One row of 8-bit numbers, stored 128 too large, so their high halves are 8 too large. */
INLINE void row_split(vec sum[2], const uint8_t *codes, const uint8_t *x, vec begin, const vec scale[2],
                      const struct masks *m, const struct how h)
{
    vec high[2] = {begin, begin}, low[2] = {i32_splat(0), i32_splat(0)};
    EACH_GROUP(0, 8, at, j) {
        vec w[2], v = vec_spread4(x + 4 * (at + j));
        group_load(w, codes, at, j, m, h);
        for (int i = 0; i < 2; i++) {
            high[i] = i16_add(high[i], dot2_u7(v, vec_lookup(m->table_high, w[i])));
            low[i] = i16_add(low[i], dot2_u7(v, vec_lookup(m->table, w[i])));
        }
    }
    for (int i = 0; i < 2; i++)
        sum[i] =
            pairs_add(i32_shl(pairs_add(i32_splat(0), high[i], begin, scale, i, h), 4), low[i], begin, scale, i, h);
}

/* One row of 7-bit values: sums of two columns fit in 16 bits, and adding those up multiplies by the scale. */
INLINE void row_seven(vec sum[2], const uint8_t *codes, const uint8_t *x, size_t first, size_t n, const vec scale[2],
                      const struct masks *m, const struct how h)
{
    EACH_GROUP(first, n, at, j) {
        vec w[2], v = vec_spread4(x + 4 * (at + j));
        group_load(w, codes, at, j, m, h);
        for (int i = 0; i < 2; i++) sum[i] = i32_add(sum[i], dot2_i16(dot2_u7(v, w[i]), scale[i]));
    }
}

/* Signed codes stay in the upper half of a word; those of the odd columns are already there. So sums are 256 times too
 * large until the end. */
INLINE void packed_words(vec sum[TILE][2], const uint8_t *codes, const uint8_t *x, size_t first, size_t n,
                         const struct masks *m, const struct how h)
{
    const size_t T = (size_t)h.rows;
    EACH_GROUP(first, n, at, j) {
        vec w[2], odd[2], even[2];
        group_load(w, codes, at, j, m, h);
        for (int i = 0; i < 2; i++) odd[i] = vec_and(w[i], m->odd), even[i] = i16_shl(w[i], 8);
        for (size_t t = 0; t < T; t++) {
            const uint8_t *v = x + 8 * ((at + j) * T + t);
            vec evens = vec_spread4(v), odds = vec_spread4(v + 4);
            for (int i = 0; i < 2; i++)
                sum[t][i] = i32_add(sum[t][i], i32_add(dot2_i16(odds, odd[i]), dot2_i16(evens, even[i])));
        }
        if (h.rows > 2) end_group();
    }
    for (size_t t = 0; t < T; t++)
        for (int i = 0; i < 2; i++) sum[t][i] = i32_shr(sum[t][i], 8);
}

/* sum [T][2] = codes times the tile's, of 16 columns from 16 * half on, or of all 32 if half < 0; offsets taken off.
 * With integer scales: sum += that times scale. */
INLINE void block_dots(vec sum[TILE][2], const uint8_t *codes, const uint8_t *x, int half, const vec scale[2],
                       const struct masks *m, const struct how h)
{
    size_t first = half > 0 ? 4 : 0, n = half < 0 ? 8 : 4;
    const uint8_t *act = x + ACT_HEAD * h.rows;
    const uint8_t *from = codes + (size_t)code_bytes(h.dots) / 8 * first,
                  *to = act + (act_bytes(form_of(h)) - ACT_HEAD) / 8 * first * (size_t)h.rows;
    vec begin[TILE];
    for (int t = 0; t < h.rows; t++) begin[t] = block_begin(x, t, half, h);
    if (in_pairs(h)) {
        if (is_split(h)) row_split(sum[0], codes, act, begin[0], scale, m, h);
        else if (is_seven(h)) row_seven(sum[0], codes, act, first, n, scale, m, h);
        else if (h.packed) packed_pairs(sum, codes, act, first, n, begin, scale, m, h);
        else dots_pairs(sum, from, to, n, begin, scale, h);
        return;
    }
    for (int t = 0; t < h.rows; t++) sum[t][0] = sum[t][1] = begin[t];
    if (h.packed && h.dots == DOTS_I16) packed_words(sum, codes, act, first, n, m, h);
    else if (h.dots == DOTS_I16) dots_words(sum, from, to, n, h);
    else if (h.packed) packed_bytes(sum, codes, act, first, n, m, h);
    else dots_bytes(sum, from, to, n, h);
}

/* --- a block --------------------------------------------------------------------------------------------- */

struct sums {
    vec acc[TILE][2], mins[TILE][2];
};

/* Reads the head of an expanded block in its order. */
INLINE void scales_load(struct scales *s, const uint8_t *head, const struct how h)
{
    load_two(s->d, head), head += 32;
    if (has_mins(h.kind)) load_two(s->dmin, head), head += 32;
    for (int i = 0; i <= has_halves(h) && has_scale(h); i++, head += 32) load_two(s->scale[i], head);
    if (has_mins(h.kind)) load_two(s->min, head);
}

/* mins += (float)msum * (dmin * xs) for row t */
INLINE void block_mins(struct sums *a, const struct scales *s, const uint8_t *x, vec xs, int t, const struct how h)
{
    for (int i = 0; i < 2; i++) {
        vec whole = vec_spread4(x + 4 * (h.rows + t));
        if (h.kind == KIND_MINS) whole = f32_mul(s->min[i], whole);
        if (h.kind == KIND_HALF_MINS) whole = f32_from_i32(dot2_i16(s->min[i], vec_spread4(x + 4 * (3 * h.rows + t))));
        a->mins[t][i] = f32_add(a->mins[t][i], f32_mul(whole, f32_mul(s->dmin[i], xs)));
    }
}

/* acc += (float)isum * (d * xs). Integers below 2^24 multiply and add exactly as floats too. */
INLINE void block_add(struct sums *a, const struct scales *s, const uint8_t *codes, const uint8_t *x,
                      const struct masks *m, const struct how h)
{
    vec sum[TILE][2], other[TILE][2];
    clear(sum, h.rows);
    if (!whole_scales(h)) clear(other, h.rows);
    if (is_seven(h) && h.dots == DOTS_U7) seven_begin(sum[0], s, x, h);
    block_dots(sum, codes, x, has_halves(h) ? 0 : -1, s->scale[0], m, h);
    if (h.kind == KIND_HALVES && h.rows > 1) keep_in_memory(sum);
    if (has_halves(h)) block_dots(whole_scales(h) ? sum : other, codes, x, 1, s->scale[1], m, h);
    for (int t = 0; t < h.rows; t++) {
        vec xs = vec_spread4(x + 4 * t);
        for (int i = 0; i < 2; i++) {
            vec whole = f32_from_i32(sum[t][i]);
            if (has_scale(h) && !whole_scales(h)) whole = f32_mul(whole, s->scale[0][i]);
            if (has_halves(h) && !whole_scales(h))
                whole = f32_add(whole, f32_mul(f32_from_i32(other[t][i]), s->scale[1][i]));
            a->acc[t][i] = f32_add(a->acc[t][i], f32_mul(whole, f32_mul(s->d[i], xs)));
        }
        if (has_mins(h.kind)) block_mins(a, s, x, xs, t, h);
    }
}

INLINE void sums_clear(struct sums *a, const struct how h) { clear(a->acc, h.rows), clear(a->mins, h.rows); }

INLINE void sums_store(const struct sums *a, float *out, const struct how h)
{
    for (int t = 0; t < h.rows; t++)
        for (int i = 0; i < 2; i++)
            vec_store(out + 8 * t + 4 * i, has_mins(h.kind) ? f32_sub(a->acc[t][i], a->mins[t][i]) : a->acc[t][i]);
}

/* --- gemm: an expanded panel, a tile ------------------------------------------------------------------------ */

INLINE void gemm(const uint8_t *panel, const struct act *a, int row, float *out, const struct how h)
{
    size_t blocks = (size_t)(a->cols / BLOCK), block = head_bytes(h) + code_bytes(h.dots),
           tile = act_bytes(form_of(h)) * (size_t)h.rows;
    const uint8_t *x = a->tiles[form_of(h)] + (size_t)row * blocks * act_bytes(form_of(h));
    struct sums sums;
    sums_clear(&sums, h);
    for (size_t b = 0; b < blocks; b++, panel += block, x += tile) {
        struct scales s;
        scales_load(&s, panel, h);
        block_add(&sums, &s, panel + head_bytes(h), x, NULL, h);
        if (is_kept(h)) keep_in_memory(&sums);
    }
    sums_store(&sums, out, h);
}

/* --- packed panels: gemv, a row, and few, a tile --------------------------------------------------------------- */

/* Multiplies one row with n panels, a block of each in turn; or a tile with one panel. */
INLINE void gemv(const uint8_t *panels, size_t panel_bytes, const struct act *a, int row, float *out, const size_t n,
                 const struct how h)
{
    const struct layout_info l = layouts[h.packed];
    const size_t per_unit = (size_t)l.columns / BLOCK, tile = act_bytes(form_of(h)) * (size_t)h.rows;
    size_t units = (size_t)(a->cols / l.columns);
    const uint8_t *x = a->tiles[form_of(h)] + (size_t)row * (size_t)(a->cols / BLOCK) * act_bytes(form_of(h));
    struct masks m = masks_new(h);
    struct sums sums[STREAMS];
    struct scales s[STREAMS];
VEC_UNROLL
    for (size_t p = 0; p < n; p++) sums_clear(&sums[p], h);
    for (size_t u = 0; u < units; u++, panels += l.bytes) {
        const uint8_t *block = panels + l.head;
VEC_UNROLL
        for (size_t p = 0; p < n; p++) unit_scales(&s[p], panels + p * panel_bytes, &m, h);
        for (size_t i = 0; i < per_unit; i++, x += tile, block += l.block)
VEC_UNROLL
            for (size_t p = 0; p < n; p++) {
                block_scales(&s[p], block + p * panel_bytes, &m, whole_scales(h), h);
                if (is_kept(h)) keep_in_memory(&s[p]);
                block_add(&sums[p], &s[p], block + p * panel_bytes + l.scales, x, &m, h);
                if (is_kept(h)) keep_in_memory(&sums[p]);
            }
    }
VEC_UNROLL
    for (size_t p = 0; p < n; p++) sums_store(&sums[p], out + PANEL_ROWS * p, h);
}

/* Bytes of a panel, at least, before the next panel's turn: enough that storing and loading the tile's sums costs
 * little. */
enum { SPAN = 1024 };

INLINE void sums_load(struct sums *a, const float *out, const struct how h)
{
    for (int t = 0; t < h.rows; t++) load_two(a->acc[t], (const uint8_t *)(out + 8 * t));
}

/* out [n, T, 8] = a tile times n panels: if is_awaited(), a span of each in turn; otherwise n is 1. */
INLINE void few(const uint8_t *panels, size_t panel_bytes, size_t n, const struct act *a, int row, float *out,
                const struct how h)
{
    const struct layout_info l = layouts[h.packed];
    const size_t per_unit = (size_t)l.columns / BLOCK, bytes = (size_t)l.bytes,
                 tile = act_bytes(form_of(h)) * (size_t)h.rows;
    const size_t out_panel = PANEL_ROWS * (size_t)h.rows;
    if (!is_awaited(h)) {
        gemv(panels, 0, a, row, out, 1, h);
        return;
    }
    const uint8_t *x = a->tiles[form_of(h)] + (size_t)row * (size_t)(a->cols / BLOCK) * act_bytes(form_of(h));
    struct masks m = masks_new(h);
    for (size_t i = 0; i < n * out_panel; i += 4) vec_store(out + i, i32_splat(0));
    size_t left = (size_t)(a->cols / l.columns), span = n > 1 ? (SPAN + bytes - 1) / bytes : left;
    for (size_t units; left; left -= units, panels += units * bytes, x += units * per_unit * tile) {
        units = left < span ? left : span;
        for (size_t p = 0; p < n; p++) {
            const uint8_t *unit = panels + p * panel_bytes, *at = x;
            struct sums sum;
            sums_load(&sum, out + out_panel * p, h);
            for (size_t u = 0; u < units; u++, unit += bytes) {
                const uint8_t *block = unit + l.head;
                struct scales s;
                unit_scales(&s, unit, &m, h);
                for (size_t i = 0; i < per_unit; i++, at += tile, block += l.block) {
                    block_scales(&s, block, &m, whole_scales(h), h);
                    if (is_kept(h)) keep_in_memory(&s);
                    block_add(&sum, &s, block + l.scales, at, &m, h);
                    if (is_kept(h)) keep_in_memory(&sum);
                }
            }
            sums_store(&sum, out + out_panel * p, h);
        }
    }
}

/* --- expanding ------------------------------------------------------------------------------------------------ */

/* Makes equal what is the same to a gemm: a min for a block or for each unit; words, which include their scales and
 * offsets; and, except where sums have 16 bits, codes of any width. */
INLINE struct how expanded(const struct how h)
{
    const bool words = h.dots == DOTS_I16, no_scale = words && (h.kind == KIND_SCALE || h.kind == KIND_HALVES);
    const enum kind kind = no_scale ? KIND_PLAIN : h.kind == KIND_MIN ? KIND_MINS : h.kind;
    return (struct how){kind, h.dots,     words ? 16 : h.dots == DOTS_U7 ? h.bits : 8, words ? -1 : h.shift,
                        1,    LAYOUT_NONE};
}

INLINE void scales_store(uint8_t *head, const struct scales *s, const struct how h)
{
    store_two(head, s->d), head += 32;
    if (has_mins(h.kind)) store_two(head, s->dmin), head += 32;
    for (int i = 0; i <= has_halves(h) && has_scale(h); i++, head += 32) store_two(head, s->scale[i]);
    if (has_mins(h.kind)) store_two(head, s->min);
}

/* Expands one group's codes into the form of the dot; scale is an integer. */
INLINE void expand_group(uint8_t *out, const uint8_t *codes, size_t g, const vec scale[2], const struct masks *m,
                         const struct how h)
{
    vec w[2];
    const bool scaled = has_scale(h) && is_whole(h.kind);
    group_load(w, codes, g - g % 2, g % 2, m, h);
    if (h.dots != DOTS_I16) {
        store_two(out + 32 * g, w);
        return;
    }
    for (size_t i = 0; i < 2; i++) { /* rows (0, 1), (2, 3) of 4 columns -> 4 rows of 2 columns, twice */
        vec code = h.shift < 0 ? w[i] : i8_sub(w[i], m->offset), low = i16_from_i8_low(code),
            high = i16_from_i8_high(code);
        vec first = vec_even(low, high), second = vec_odd(low, high);
        vec_store(out + 64 * g + 16 * i, scaled ? i16_mul(first, scale[i]) : first);
        vec_store(out + 64 * g + 32 + 16 * i, scaled ? i16_mul(second, scale[i]) : second);
    }
}

INLINE void expand(const uint8_t *panel, int cols, uint8_t *out, const struct how h)
{
    const struct layout_info l = layouts[h.packed];
    const struct how to = expanded(h);
    const bool twice = whole_scales(to) || is_folded(to);
    const size_t per_unit = (size_t)l.columns / BLOCK, head = head_bytes(to);
    const vec one = f32_splat(1), whole = twice ? i32_splat(0x00010001) : one;
    struct masks m = masks_new(h);
    struct scales s = {.scale = {{whole, whole}}, .min = {one, one}};
    for (size_t u = 0; u < (size_t)(cols / l.columns); u++, panel += l.bytes) {
        unit_scales(&s, panel, &m, h);
        for (size_t i = 0; i < per_unit; i++, out += head + code_bytes(h.dots)) {
            const uint8_t *block = panel + l.head + (size_t)l.block * i;
            block_scales(&s, block, &m, twice, h);
            scales_store(out, &s, to);
VEC_UNROLL
for (size_t g = 0; g < 8; g++) expand_group(out + head, block + l.scales, g, s.scale[has_halves(h) ? g / 4 : 0], &m, h);
        }
    }
}

/* --- the kernels: of tiles ------------------------------------------------------------------------------------- */

/* Defines gemm_NAME from the constants of a kernel. */
#define HOW(T) \
    if (T <= full_tile(how.dots)) \
    gemm(panel, a, row, out, (struct how){how.kind, how.dots, how.bits, how.shift, T, LAYOUT_NONE})
#define GEMM(name, kind, dots, ...)                                                                     \
    static void gemm_##name(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out) \
    {                                                                                                   \
        const struct how how = {kind, dots, __VA_ARGS__, 0, LAYOUT_NONE};                               \
        if (VEC_BYTE_DOTS || dots == DOTS_I16) BY_HEIGHT(HOW)                                           \
    }

/* One row for each result of expanded(). */
#define GEMMS(ROW)                                             \
    /*  name        kind            dots      bits shift */    \
    ROW(words_i16,  KIND_PLAIN,     DOTS_I16, 16, -1)          \
    ROW(mins_i16,   KIND_MINS,      DOTS_I16, 16, -1)          \
    ROW(halves_i16, KIND_HALF_MINS, DOTS_I16, 16, -1)          \
    ROW(floats_i16, KIND_HALF_FLOATS, DOTS_I16, 16, -1)        \
    ROW(floats_u7,  KIND_HALF_FLOATS, DOTS_U7, 5, 4)           \
    ROW(floats_u8,  KIND_HALF_FLOATS, DOTS_U8, 8, 4)           \
    ROW(four_u7,    KIND_PLAIN,     DOTS_U7,   4, 3)           \
    ROW(five_u7,    KIND_PLAIN,     DOTS_U7,   5, 4)           \
    ROW(pairs_u7,   KIND_PLAIN,     DOTS_U7,   2, 0)           \
    ROW(mins_u7,    KIND_MINS,      DOTS_U7,   4, -1)          \
    ROW(mins5_u7,   KIND_MINS,      DOTS_U7,   5, -1)          \
    ROW(six_u7,     KIND_HALVES,    DOTS_U7,   6, 5)           \
    ROW(three_u7,   KIND_HALVES,    DOTS_U7,   3, 2)           \
    ROW(two_u7,     KIND_HALF_MINS, DOTS_U7,   2, -1)          \
    ROW(bytes_u8,   KIND_PLAIN,     DOTS_U8,   8, 7)           \
    ROW(bytes_s8,   KIND_PLAIN,     DOTS_S8,   8, -1)          \
    ROW(scaled_u8,  KIND_SCALE,     DOTS_U8,   8, 7)           \
    ROW(scaled_s8,  KIND_SCALE,     DOTS_S8,   8, -1)          \
    ROW(four_u8,    KIND_PLAIN,     DOTS_U8,   8, 3)           \
    ROW(five_u8,    KIND_PLAIN,     DOTS_U8,   8, 4)           \
    ROW(pairs_u8,   KIND_PLAIN,     DOTS_U8,   8, 0)           \
    ROW(mins_u8,    KIND_MINS,      DOTS_U8,   8, -1)          \
    ROW(bmins_u8,   KIND_MINS,      DOTS_U8,   8, 7)           \
    ROW(bmins_s8,   KIND_MINS,      DOTS_S8,   8, -1)          \
    ROW(six_u8,     KIND_HALVES,    DOTS_U8,   8, 5)           \
    ROW(three_u8,   KIND_HALVES,    DOTS_U8,   8, 2)           \
    ROW(two_u8,     KIND_HALF_MINS, DOTS_U8,   8, -1)          \
    ROW(seven_u8,   KIND_SCALE,     DOTS_U8,   8, 6)           \
    ROW(sevens_u8,  KIND_HALVES,    DOTS_U8,   8, 6)
GEMMS(GEMM)

INLINE bool is_same(const struct how a, const struct how b)
{
    return a.kind == b.kind && a.dots == b.dots && a.bits == b.bits && a.shift == b.shift;
}

/* Falls through to NULL if GEMMS lacks a row, which a test notices. */
#define IF_SAME(name, ...) if (is_same(h, (struct how){__VA_ARGS__, 1, LAYOUT_NONE})) return gemm_##name;
INLINE gemm_fn *gemm_of(const struct how h)
{
    GEMMS(IF_SAME)
    return NULL;
}

/* --- the kernels: of one row, of few, and what expands ----------------------------------------------------------- */

/* The constants of a layout's kernels; all follow from its row in pack.h. */
INLINE struct how how_of(const enum layout layout, const enum dots dots)
{
    const struct layout_info l = layouts[layout];
    const bool above = l.value_bits >= 7 ? dots == DOTS_U7 || dots == DOTS_U8 : l.offset || l.table;
    const int bit = l.offset ? __builtin_ctz((unsigned)l.offset) : l.value_bits - 1; /* of the offset */
    return (struct how){l.kind, dots, l.value_bits, above ? bit : -1, 1, layout};
}

/* The most downloaded layouts are read from eight panels at once: up to 12 KB of code each. */
#define IS_STREAMED(layout) \
    ((layout) == LAYOUT_Q8 || (layout) == LAYOUT_Q4 || (layout) == LAYOUT_Q4K || (layout) == LAYOUT_Q5K || \
     (layout) == LAYOUT_Q6K)

/* Few rows share what they read of these layouts, unexpanded, so that memory is not idle while a panel is expanded.
 * 6-bit codes are shared by 5 rows at most: two full tiles cost more than expanding. Two rows of Q2 are shared, and of
 * Q2K with byte dots: expanded they would take longer than one after the other. Others would gain too little. */
#define IS_SHARED(layout) (IS_STREAMED(layout) && (layout) != LAYOUT_Q5K)
#define MOST_SHARED(layout, dots) \
    ((layout) == LAYOUT_Q2 || ((layout) == LAYOUT_Q2K && (dots) != DOTS_I16) ? 2 \
     : !IS_SHARED(layout)                         ? 1 \
     : (layout) == LAYOUT_Q6K                     ? FEW_TILE + 1 \
                                                  : FEW_MOST)

/* turns_: panels one after the other; gemv_: eight at once; few_: tiles of panels that are not expanded */
#define FEW(T, layout) \
    if (T <= MOST_SHARED(layout, how.dots)) \
    few(panels, panel_bytes, (size_t)n, a, row, out, (struct how){how.kind, how.dots, how.bits, how.shift, T, layout})
#define ROWS_KERNEL(kernel) \
    static void kernel(const uint8_t *panels, size_t panel_bytes, int n, const struct act *a, int row, int n_rows, \
                       float *out)
#define KERNELS_FOR(name, suffix, dots) \
    ROWS_KERNEL(turns_##name##_##suffix) \
    { \
        (void)n_rows; \
        for (size_t p = 0; p < (size_t)n; p++) \
            gemv(panels + p * panel_bytes, panel_bytes, a, row, out + PANEL_ROWS * p, 1, how_of(LAYOUT_##name, dots)); \
    } \
    ROWS_KERNEL(gemv_##name##_##suffix) \
    { \
        (void)n, (void)n_rows; \
        gemv(panels, panel_bytes, a, row, out, STREAMS, how_of(LAYOUT_##name, dots)); \
    } \
    ROWS_KERNEL(few_##name##_##suffix) \
    { \
        const struct how how = how_of(LAYOUT_##name, dots); \
        switch (n_rows) { \
        case 2: FEW(2, LAYOUT_##name); break; \
        case 3: FEW(3, LAYOUT_##name); break; \
        default: FEW(FEW_TILE, LAYOUT_##name); break; \
        } \
    } \
    static void expand_##name##_##suffix(const uint8_t *panel, int cols, uint8_t *out) \
    { \
        expand(panel, cols, out, how_of(LAYOUT_##name, dots)); \
    }
#define KERNELS(name, ...) \
    KERNELS_FOR(name, i16, DOTS_I16) \
    KERNELS_FOR(name, u7, DOTS_U7) KERNELS_FOR(name, u8, DOTS_U8) KERNELS_FOR(name, s8, DOTS_S8)
ALL_LAYOUTS(KERNELS)

/* --- the table: in constant expressions, so that compilers drop the kernels that no kind of dots uses --- */

/* The kind of dots that a layout is expanded for. Without an 8-bit dot, words are faster for 8-bit values than bytes in
 * two halves. All other codes are the same signed and unsigned; those of 7 bits need sums of 32 bits. */
#define TILE_DOTS(dots, value_bits) \
    ((value_bits) == 8 ? ((dots) == DOTS_U7 ? DOTS_I16 : (dots)) \
     : (dots) == DOTS_S8 || ((value_bits) == 7 && (dots) == DOTS_U7) ? DOTS_U8 : (dots))

/* The same for one row, where bytes in two halves are faster if they are looked up. */
#define ROW_DOTS(dots, bits, value_bits) \
    ((bits) < 7 && (value_bits) >= 7 && (dots) == DOTS_U7 ? (dots) : TILE_DOTS(dots, value_bits))

#define OF_DOTS(kernel, dots) \
    ((dots) == DOTS_I16  ? kernel##_i16 \
     : (dots) == DOTS_U7 ? kernel##_u7 \
     : (dots) == DOTS_U8 ? kernel##_u8 \
                         : kernel##_s8)

INLINE void set_forms(struct kernels *k, const enum layout layout, const enum dots row, const enum dots tile)
{
    const struct how to = expanded(how_of(layout, tile));
    k->form[ONE_ROW][layout] = form_of(how_of(layout, row));
    for (int n = 2; n < ROWS_KINDS; n++)
        k->form[n][layout] = form_of(n <= MOST_SHARED(layout, tile) ? how_of(layout, tile) : to);
    k->gemm[layout] = gemm_of(to);
}

/* tables_simd.c has the products of few rows with codes of one bit. */
#define SET(name, row, tile) \
    if (layouts[LAYOUT_##name].bits > 1) { \
        k->gemv[IN_TURN][LAYOUT_##name] = OF_DOTS(turns_##name, row); \
        k->gemv[TOGETHER][LAYOUT_##name] = \
            IS_STREAMED(LAYOUT_##name) ? OF_DOTS(gemv_##name, row) : OF_DOTS(turns_##name, row); \
        for (int n = 2; n <= MOST_SHARED(LAYOUT_##name, tile); n++) \
            k->few[n][LAYOUT_##name] = OF_DOTS(few_##name, tile); \
        k->few_at_once[LAYOUT_##name] = is_awaited(how_of(LAYOUT_##name, tile)) ? STREAMS : 1; \
    } \
    k->expand[LAYOUT_##name] = OF_DOTS(expand_##name, tile); \
    set_forms(k, LAYOUT_##name, row, tile);
#define SET_WITH(dots, name, kind, columns, bits, offset, value_bits, ...) \
    SET(name, ROW_DOTS(dots, bits, value_bits), TILE_DOTS(dots, value_bits))
#define SET_I16(...) SET_WITH(DOTS_I16, __VA_ARGS__)
#define SET_U7(...) SET_WITH(DOTS_U7, __VA_ARGS__)
#define SET_U8(...) SET_WITH(DOTS_U8, __VA_ARGS__)
#define SET_S8(...) SET_WITH(DOTS_S8, __VA_ARGS__)

/* Defines a function that sets the kernels of a list of layouts. */
#define SET_LIST(scope, set, LAYOUTS) \
    static void set##_i16(struct kernels *k) { LAYOUTS(SET_I16) } \
    static void set##_u7(struct kernels *k) { LAYOUTS(SET_U7) } \
    static void set##_u8(struct kernels *k) { LAYOUTS(SET_U8) } \
    static void set##_s8(struct kernels *k) { LAYOUTS(SET_S8) } \
    scope void set(struct kernels *k) \
    { \
        if (!VEC_BYTE_DOTS || (VEC_MODEL && k->dots == DOTS_I16)) set##_i16(k); \
        else if (k->dots == DOTS_U7) set##_u7(k); \
        else if (k->dots == DOTS_U8) set##_u8(k); \
        else set##_s8(k); \
    }
SET_LIST(static, set_codes, CODE_LAYOUTS)
SET_LIST(, gemm_full, FULL_LAYOUTS)

void gemm_simd(struct kernels *k, enum dots dots)
{
    k->dots = dots, k->tile = full_tile(dots);
    k->expanded = BLOCK * PANEL_ROWS * sizeof(float); /* for F16; codes with their scales need less */
    arrange_simd(k);
    set_codes(k);
}
