/* SPDX-License-Identifier: MIT
 *
 * The products with float weights: the same sums as kernels_scalar.c. 8 rows are the lanes of two vectors; columns are
 * added in order.
 */
#include "compute/cpu/products.h"

#include <string.h>

/* Loads the weights of 8 rows in one column as floats. */
INLINE void column_load(vec w[2], const uint8_t *column, const struct half_masks *m, const enum layout layout)
{
    if (layout == LAYOUT_F32) load_two(w, column);
    else if (layout == LAYOUT_F16) load_halves(w, column, m);
    else load_bfloats(w, column);
}

/* Multiplies two packed panels. */
INLINE void pair_floats(const uint8_t *panels, size_t panel_bytes, const float *x, int cols, float *out,
                        const enum layout layout)
{
    size_t column = (size_t)layouts[layout].bytes;
    struct half_masks m = half_masks_new();
    vec acc[2][2], w[2][2];
    for (int p = 0; p < 2; p++) acc[p][0] = acc[p][1] = i32_splat(0);
    for (int c = 0; c < cols; c++, panels += column) {
        vec v = vec_spread4(x + c);
        column_load(w[0], panels, &m, layout);
        column_load(w[1], panels + panel_bytes, &m, layout);
        for (int i = 0; i < 4; i++) acc[i / 2][i % 2] = f32_add(acc[i / 2][i % 2], f32_mul(w[i / 2][i % 2], v));
    }
    for (int i = 0; i < 4; i++) vec_store(out + 4 * i, acc[i / 2][i % 2]);
}

/* An odd last panel is paired with itself. */
INLINE void gemv_floats(const uint8_t *panels, size_t panel_bytes, int n, const struct act *a, int row, float *out,
                        const enum layout layout)
{
    const float *x = a->x + (size_t)row * (size_t)a->cols;
    float two[2 * PANEL_ROWS];
    for (int p = 0; p < n; p += 2, panels += 2 * panel_bytes, out += 2 * PANEL_ROWS) {
        pair_floats(panels, p + 1 < n ? panel_bytes : 0, x, a->cols, two, layout);
        memcpy(out, two, p + 1 < n ? sizeof two : sizeof two / 2);
    }
}

/* F32 panels; smaller float types are expanded to F32. */
INLINE void gemm_floats(const uint8_t *panel, const struct act *a, int row, float *out, const int T)
{
    size_t cols = (size_t)a->cols;
    const float *x = a->x + (size_t)row * cols;
    vec acc[FLOAT_TILE][2], w[2];
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
    struct half_masks m = half_masks_new();
    for (int c = 0; c < cols; c++) {
        vec w[2];
        column_load(w, panel + 16 * c, &m, layout);
        store_two(out + 32 * c, w);
    }
}

static void gemm_f32(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out)
{
    switch (n_rows) {
    case 1: gemm_floats(panel, a, row, out, 1); break;
    case 2: gemm_floats(panel, a, row, out, 2); break;
    case 3: gemm_floats(panel, a, row, out, 3); break;
    case 4: gemm_floats(panel, a, row, out, 4); break;
    default: gemm_floats(panel, a, row, out, FLOAT_TILE); break;
    }
}

#define DEFINE_FLOATS(name, layout) \
    static void gemv_##name(const uint8_t *panels, size_t panel_bytes, int n, const struct act *a, int row, \
                            int n_rows, float *out) \
    { \
        (void)n_rows; \
        gemv_floats(panels, panel_bytes, n, a, row, out, layout); \
    }
DEFINE_FLOATS(f32, LAYOUT_F32)
DEFINE_FLOATS(f16, LAYOUT_F16)
DEFINE_FLOATS(bf16, LAYOUT_BF16)
static void expand_f16(const uint8_t *panel, int cols, uint8_t *out) { expand_floats(panel, cols, out, LAYOUT_F16); }
static void expand_bf16(const uint8_t *panel, int cols, uint8_t *out) { expand_floats(panel, cols, out, LAYOUT_BF16); }

/* Decodes FP8 codes as f32_from_e4m3() does, times their scale. */
static void expand_f8(const uint8_t *panel, int cols, uint8_t *out)
{
    const vec rest = i32_kept(0x7F), one = i32_kept(8), most = i32_kept(0x7E), bias = i32_kept(120 << 23),
              step = i32_kept(1 << 23), sign = i32_kept(0x80);
    const vec least = f32_kept(0x1p-6f), nan = i32_kept(0x7FC00000);
    for (int c = 0; c < cols; c++) {
        vec both = i16_from_u8_low(vec_load8(panel + f8_column((size_t)c))), d[2],
            w[2] = {i32_from_i16_low(both), i32_from_i16_high(both)};
        load_two(d, panel + f8_unit((size_t)c));
        for (int i = 0; i < 2; i++) {
            vec code = vec_and(w[i], rest), small = i32_gt(one, code);
            vec bits = i32_add(i32_add(i32_shl(code, 20), bias), vec_and(small, step));
            vec value = vec_or(f32_sub(bits, vec_and(small, least)), vec_and(i32_gt(code, most), nan));
            w[i] = f32_mul(vec_or(value, i32_shl(vec_and(w[i], sign), 24)), d[i]);
        }
        store_two(out + 32 * c, w);
    }
}

void floats_simd(struct kernels *k)
{
    k->gemm[LAYOUT_F32] = k->gemm[LAYOUT_F16] = k->gemm[LAYOUT_BF16] = k->gemm[LAYOUT_F8] = gemm_f32;
    for (int i = 0; i < ORDERS; i++)
        k->gemv[i][LAYOUT_F32] = gemv_f32, k->gemv[i][LAYOUT_F16] = gemv_f16, k->gemv[i][LAYOUT_BF16] = gemv_bf16;
    k->expand[LAYOUT_F16] = expand_f16, k->expand[LAYOUT_BF16] = expand_bf16, k->expand[LAYOUT_F8] = expand_f8;
}
