/* SPDX-License-Identifier: MIT
 *
 * The kernel table: everything that computes over a row, a panel or a block, once per instruction set.
 *
 * kernels_scalar is complete and is the reference; kernels_simd() starts as a copy of it and overrides what it has. Every
 * entry gives the same bits in both (tests/c/test_kernels.c compares with ==), so which table runs is a matter of speed only.
 * The formulas are normative: see MODEL.md, "Arithmetic".
 */
#ifndef QUERN_KERNELS_H
#define QUERN_KERNELS_H

#include "../pack.h"

enum { TILE = 4 }; /* rows (tokens) a gemm kernel takes at once, at most */

/* Activations of n rows, as the products take them. Blocks of 32 columns; cols is a multiple of 32 where codes are used. */
struct act {
    const float *x;       /* [n, cols] for float weights */
    const int8_t *code;   /* [n, cols] -127..127, for quantised weights */
    const float *scale;   /* [n, cols / 32] */
    const int16_t *sum;   /* [n, cols / 16] sums of 16 codes */
    int cols;
};

/* out [n_rows, 8] = rows row .. row + n_rows - 1 (1..TILE of them) times one panel [8, cols]. */
typedef void gemm_fn(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out);

/* out [2 * 8] = row `row` times two neighbouring panels, panel_bytes apart: for one row, memory is the limit, and two streams of it
 * wait less than one, since processors fetch ahead within a page only. */
typedef void gemv_fn(const uint8_t *panels, size_t panel_bytes, const struct act *a, int row, float *out);

/* One query head's running softmax over positions. */
struct softmax {
    float max, sum; /* -INFINITY and 0 at the start */
    float *acc;     /* [head_dim], 0 at the start */
};

struct kernels {
    const char *name;
    gemm_fn *gemm[LAYOUT_COUNT];
    gemm_fn *gemm_q8_wide; /* Q8 with a code of -128 */
    gemv_fn *gemv[LAYOUT_COUNT]; /* NULL where gemm is as good */
    /* x [cols] -> code [cols], scale [cols / 32], sum [cols / 16]; cols a multiple of 32 */
    void (*quantize)(const float *x, int cols, int8_t *code, float *scale, int16_t *sum);
    /* y = x / sqrt(mean(x^2) + eps) * w, all [n]; y may be x */
    void (*rmsnorm)(float *y, const float *x, const float *w, int n, float eps);
    /* one head x [2 * half]: pairs (i, i + half) turned by the angle whose cosine and sine are given, [half] each */
    void (*rope)(float *x, const float *cosine, const float *sine, int half);
    void (*swiglu)(float *gate, const float *up, int n); /* gate = silu(gate) * up */
    void (*add)(float *x, const float *y, int n);        /* x += y */
    void (*widen)(float *out, const uint16_t *in, int n);  /* f16 -> f32 */
    void (*narrow)(uint16_t *out, const float *in, int n); /* f32 -> f16 */
    /* n (1..32) more positions for one head: q [head_dim], k and v [n, head_dim] */
    void (*attend)(struct softmax *s, const float *q, const float *k, const float *v, int n, int head_dim, float scale);
};

extern const struct kernels kernels_scalar;
struct kernels kernels_simd(void);

#endif
