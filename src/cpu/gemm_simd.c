/* SPDX-License-Identifier: MIT
 *
 * The products: the same sums as kernels_scalar.c, 8 rows in the lanes of two vectors.
 *
 * Each gemm is one inline body over a constant number of rows, instantiated for 1 to TILE, so that sums stay in
 * registers and a panel is read once per tile. Built twice for the web, plain and relaxed; the difference is in vec.h alone.
 * Kernels are short calls (one panel, one tile): a browser replaces only functions that return by their optimised code.
 */
#include "simd.h"

/* gemm_NAME from tile_NAME(panel, a, row, out, T) */
#define DEFINE_GEMM(name)                                                                          \
    static void gemm_##name(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out) \
    {                                                                                              \
        switch (n_rows) {                                                                          \
        case 1: tile_##name(panel, a, row, out, 1); break;                                         \
        case 2: tile_##name(panel, a, row, out, 2); break;                                         \
        case 3: tile_##name(panel, a, row, out, 3); break;                                         \
        default: tile_##name(panel, a, row, out, TILE); break;                                     \
        }                                                                                          \
    }

INLINE void store_tile(float *out, vec acc[TILE][2], const int T)
{
    for (int t = 0; t < T; t++) {
        vec_store(out + 8 * t, acc[t][0]);
        vec_store(out + 8 * t + 4, acc[t][1]);
    }
}

INLINE void zero_tile(vec acc[TILE][2], const int T)
{
    for (int t = 0; t < T; t++) acc[t][0] = acc[t][1] = i32_splat(0);
}

/* --- float weights ------------------------------------------------------------------------------------ */

INLINE void axpy_column(vec acc[TILE][2], vec low, vec high, const float *x, int cols, const int T)
{
    for (int t = 0; t < T; t++) {
        vec v = vec_spread4(x + (size_t)t * (size_t)cols);
        acc[t][0] = f32_add(acc[t][0], f32_mul(low, v));
        acc[t][1] = f32_add(acc[t][1], f32_mul(high, v));
    }
}

INLINE void tile_f32(const uint8_t *panel, const struct act *a, int row, float *out, const int T)
{
    const float *x = a->x + (size_t)row * (size_t)a->cols;
    vec acc[TILE][2];
    zero_tile(acc, T);
    for (int c = 0; c < a->cols; c++, panel += 32)
        axpy_column(acc, vec_load(panel), vec_load(panel + 16), x + c, a->cols, T);
    store_tile(out, acc, T);
}

INLINE void tile_f16(const uint8_t *panel, const struct act *a, int row, float *out, const int T)
{
    const float *x = a->x + (size_t)row * (size_t)a->cols;
    vec acc[TILE][2];
    zero_tile(acc, T);
    for (int c = 0; c < a->cols; c++, panel += 16) {
        vec w = vec_load(panel);
        axpy_column(acc, f32_from_f16_low(w), f32_from_f16_high(w), x + c, a->cols, T);
    }
    store_tile(out, acc, T);
}

INLINE void tile_bf16(const uint8_t *panel, const struct act *a, int row, float *out, const int T)
{
    const float *x = a->x + (size_t)row * (size_t)a->cols;
    vec acc[TILE][2];
    zero_tile(acc, T);
    for (int c = 0; c < a->cols; c++, panel += 16) {
        vec w = vec_load(panel);
        axpy_column(acc, i32_shl(i32_from_u16_low(w), 16), i32_shl(i32_from_u16_high(w), 16), x + c, a->cols, T);
    }
    store_tile(out, acc, T);
}

DEFINE_GEMM(f32)
DEFINE_GEMM(f16)
DEFINE_GEMM(bf16)

/* --- quantised weights: integer sums of a block, then one float step per block ------------------------ */

/* Where row `row` keeps block b. */
struct tile_act {
    const int8_t *code;
    const float *scale;
    const int16_t *sum;
    size_t cols, blocks; /* distance of rows */
};

INLINE struct tile_act tile_rows(const struct act *a, int row)
{
    size_t cols = (size_t)a->cols, blocks = cols / BLOCK, r = (size_t)row;
    return (struct tile_act){a->code + r * cols, a->scale + r * blocks, a->sum + r * blocks * 2, cols, blocks};
}

INLINE int32_t block_sum(const struct tile_act *x, size_t b, int t)
{
    const int16_t *sum = x->sum + ((size_t)t * x->blocks + b) * 2;
    return sum[0] + sum[1];
}

/* acc += (float)sum * (d * xs), for both halves of 8 rows */
INLINE void add_block(vec acc[2], const vec sum[2], const vec d[2], float xs)
{
    vec s = f32_splat(xs);
    acc[0] = f32_add(acc[0], f32_mul(f32_from_i32(sum[0]), f32_mul(d[0], s)));
    acc[1] = f32_add(acc[1], f32_mul(f32_from_i32(sum[1]), f32_mul(d[1], s)));
}

INLINE void load_halves(vec d[2], const uint8_t *halves)
{
    vec h = vec_load(halves);
    d[0] = f32_from_f16_low(h);
    d[1] = f32_from_f16_high(h);
}

/* 8-bit codes. `wide` takes the dot that allows -128. */
INLINE void dots_q8(vec sum[TILE][2], const uint8_t *codes, const struct tile_act *x, size_t b, const bool wide, const int T)
{
    zero_tile(sum, T);
    for (size_t g = 0; g < 8; g++) {
        vec low = vec_load(codes + 32 * g), high = vec_load(codes + 32 * g + 16);
        for (int t = 0; t < T; t++) {
            vec v = vec_spread4(x->code + (size_t)t * x->cols + b * BLOCK + 4 * g);
            sum[t][0] = wide ? dot4_wide(sum[t][0], low, v) : dot4_signed(sum[t][0], low, v);
            sum[t][1] = wide ? dot4_wide(sum[t][1], high, v) : dot4_signed(sum[t][1], high, v);
        }
    }
}

INLINE void tile_q8_any(const uint8_t *panel, const struct act *a, int row, float *out, const bool wide, const int T)
{
    struct tile_act x = tile_rows(a, row);
    vec acc[TILE][2], sum[TILE][2], d[2];
    zero_tile(acc, T);
    for (size_t b = 0; b < x.blocks; b++, panel += 272) {
        dots_q8(sum, panel + 16, &x, b, wide, T);
        load_halves(d, panel);
        for (int t = 0; t < T; t++) add_block(acc[t], sum[t], d, x.scale[(size_t)t * x.blocks + b]);
    }
    store_tile(out, acc, T);
}

INLINE void tile_q8(const uint8_t *panel, const struct act *a, int row, float *out, const int T)
{
    tile_q8_any(panel, a, row, out, false, T);
}

INLINE void tile_q8_wide(const uint8_t *panel, const struct act *a, int row, float *out, const int T)
{
    tile_q8_any(panel, a, row, out, true, T);
}

/* The same of one row, two panels side by side. */
static void gemv_q8(const uint8_t *panels, size_t panel_bytes, const struct act *a, int row, float *out)
{
    struct tile_act x = tile_rows(a, row);
    vec acc[2][2], sum[2][2], d[2];
    for (int p = 0; p < 2; p++) acc[p][0] = acc[p][1] = i32_splat(0);
    for (size_t b = 0; b < x.blocks; b++) {
        const uint8_t *block[2] = {panels + 272 * b, panels + panel_bytes + 272 * b};
        for (int p = 0; p < 2; p++) sum[p][0] = sum[p][1] = i32_splat(0);
        for (size_t g = 0; g < 8; g++) {
            vec v = vec_spread4(x.code + b * BLOCK + 4 * g);
            for (int p = 0; p < 2; p++)
                for (int h = 0; h < 2; h++) sum[p][h] = dot4_signed(sum[p][h], vec_load(block[p] + 16 + 32 * g + 16 * h), v);
        }
        for (int p = 0; p < 2; p++) {
            load_halves(d, block[p]);
            add_block(acc[p], sum[p], d, x.scale[b]);
        }
    }
    for (int p = 0; p < 2; p++)
        for (int h = 0; h < 2; h++) vec_store(out + PANEL_ROWS * p + 4 * h, acc[p][h]);
}

/* 4-bit codes, unsigned: the offset is taken off by the caller with the sums of the activations. */
INLINE void dots_q4(vec sum[TILE][2], const uint8_t *codes, const struct tile_act *x, size_t b, const int T)
{
    zero_tile(sum, T);
    for (size_t g = 0; g < 8; g++) {
        vec both = vec_load(codes + 16 * g);
        vec low = vec_and(both, i32_splat(0x0F0F0F0F)), high = u8_shr(both, 4);
        for (int t = 0; t < T; t++) {
            vec v = vec_spread4(x->code + (size_t)t * x->cols + b * BLOCK + 4 * g);
            sum[t][0] = dot4(sum[t][0], v, low);
            sum[t][1] = dot4(sum[t][1], v, high);
        }
    }
}

INLINE void tile_q4(const uint8_t *panel, const struct act *a, int row, float *out, const int T)
{
    struct tile_act x = tile_rows(a, row);
    vec acc[TILE][2], sum[TILE][2], d[2];
    zero_tile(acc, T);
    for (size_t b = 0; b < x.blocks; b++, panel += 144) {
        dots_q4(sum, panel + 16, &x, b, T);
        load_halves(d, panel);
        for (int t = 0; t < T; t++) {
            vec offset = i32_splat(8 * block_sum(&x, b, t));
            sum[t][0] = i32_sub(sum[t][0], offset);
            sum[t][1] = i32_sub(sum[t][1], offset);
            add_block(acc[t], sum[t], d, x.scale[(size_t)t * x.blocks + b]);
        }
    }
    store_tile(out, acc, T);
}

/* One block of Q4_K: products into acc, mins into low. */
INLINE void block_q4k(vec acc[TILE][2], vec low[TILE][2], const uint8_t *block, const vec d[2], const vec dmin[2], const struct tile_act *x, size_t b, const int T)
{
    vec sum[TILE][2];
    dots_q4(sum, block + 16, x, b, T);
    vec scale = i16_from_u8_low(vec_load8(block)), min = i16_from_u8_low(vec_load8(block + 8));
    for (int t = 0; t < T; t++) {
        float xs = x->scale[(size_t)t * x->blocks + b];
        vec total = i32_splat(block_sum(x, b, t));
        vec scaled[2] = {i32_mul(sum[t][0], i32_from_i16_low(scale)), i32_mul(sum[t][1], i32_from_i16_high(scale))};
        vec lowered[2] = {i32_mul(total, i32_from_i16_low(min)), i32_mul(total, i32_from_i16_high(min))};
        add_block(acc[t], scaled, d, xs);
        add_block(low[t], lowered, dmin, xs);
    }
}

INLINE void tile_q4k(const uint8_t *panel, const struct act *a, int row, float *out, const int T)
{
    struct tile_act x = tile_rows(a, row);
    vec acc[TILE][2], low[TILE][2], d[2], dmin[2];
    zero_tile(acc, T);
    zero_tile(low, T);
    for (size_t unit = 0; unit < x.blocks / 8; unit++, panel += 1184) {
        load_halves(d, panel);
        load_halves(dmin, panel + 16);
        for (size_t i = 0; i < 8; i++) block_q4k(acc, low, panel + 32 + 144 * i, d, dmin, &x, 8 * unit + i, T);
    }
    for (int t = 0; t < T; t++)
        for (int h = 0; h < 2; h++) acc[t][h] = f32_sub(acc[t][h], low[t][h]);
    store_tile(out, acc, T);
}

/* 6-bit codes of columns 16 * half .. + 15: nibbles joined with bit pairs. */
INLINE void dots_q6(vec sum[TILE][2], const uint8_t *block, const struct tile_act *x, size_t b, size_t half, const int T)
{
    const vec mask = i32_splat(0x30303030);
    zero_tile(sum, T);
    for (size_t k = 2 * half; k < 2 * half + 2; k++) {
        vec pairs = vec_load(block + 144 + 16 * k);
        for (size_t g = 2 * k; g < 2 * k + 2; g++) {
            vec both = vec_load(block + 16 + 16 * g);
            vec high2 = g % 2 ? pairs : i32_shl(pairs, 4); /* bits 4-5: rows 0..3 */
            vec high6 = g % 2 ? u32_shr(pairs, 2) : i32_shl(pairs, 2);
            vec low = vec_or(vec_and(both, i32_splat(0x0F0F0F0F)), vec_and(high2, mask));
            vec high = vec_or(u8_shr(both, 4), vec_and(high6, mask));
            for (int t = 0; t < T; t++) {
                vec v = vec_spread4(x->code + (size_t)t * x->cols + b * BLOCK + 4 * g);
                sum[t][0] = dot4(sum[t][0], v, low);
                sum[t][1] = dot4(sum[t][1], v, high);
            }
        }
    }
}

/* sum = (sum - 32 * sum of the activations) * scale, for 16 columns */
INLINE void scale_half(vec sum[2], const struct tile_act *x, size_t b, size_t half, int t, vec scale)
{
    vec offset = i32_splat(32 * x->sum[((size_t)t * x->blocks + b) * 2 + half]);
    sum[0] = i32_mul(i32_sub(sum[0], offset), i32_from_i16_low(scale));
    sum[1] = i32_mul(i32_sub(sum[1], offset), i32_from_i16_high(scale));
}

INLINE void block_q6k(vec acc[TILE][2], const uint8_t *block, const vec d[2], const struct tile_act *x, size_t b, const int T)
{
    vec left[TILE][2], right[TILE][2];
    dots_q6(left, block, x, b, 0, T);
    dots_q6(right, block, x, b, 1, T);
    vec scale0 = i16_from_i8_low(vec_load8(block)), scale1 = i16_from_i8_low(vec_load8(block + 8));
    for (int t = 0; t < T; t++) {
        scale_half(left[t], x, b, 0, t, scale0);
        scale_half(right[t], x, b, 1, t, scale1);
        vec sum[2] = {i32_add(left[t][0], right[t][0]), i32_add(left[t][1], right[t][1])};
        add_block(acc[t], sum, d, x->scale[(size_t)t * x->blocks + b]);
    }
}

INLINE void tile_q6k(const uint8_t *panel, const struct act *a, int row, float *out, const int T)
{
    struct tile_act x = tile_rows(a, row);
    vec acc[TILE][2], d[2];
    zero_tile(acc, T);
    for (size_t unit = 0; unit < x.blocks / 8; unit++, panel += 1680) {
        load_halves(d, panel);
        for (size_t i = 0; i < 8; i++) block_q6k(acc, panel + 16 + 208 * i, d, &x, 8 * unit + i, T);
    }
    store_tile(out, acc, T);
}

DEFINE_GEMM(q8)
DEFINE_GEMM(q8_wide)
DEFINE_GEMM(q4)
DEFINE_GEMM(q4k)
DEFINE_GEMM(q6k)

void gemm_simd(struct kernels *k)
{
    k->gemm[LAYOUT_F32] = gemm_f32;
    k->gemm[LAYOUT_F16] = gemm_f16;
    k->gemm[LAYOUT_BF16] = gemm_bf16;
    k->gemm[LAYOUT_Q8] = gemm_q8;
    k->gemm[LAYOUT_Q4] = gemm_q4;
    k->gemm[LAYOUT_Q4K] = gemm_q4k;
    k->gemm[LAYOUT_Q6K] = gemm_q6k;
    k->gemm_q8_wide = gemm_q8_wide;
    k->gemv[LAYOUT_Q8] = gemv_q8;
}
