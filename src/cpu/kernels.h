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

/* A half whose bits are moved into place as a float lacks this factor, the difference of the exponents' biases. */
#define F16_SCALE 0x1p112f

/* One query head of one row, and its running softmax over the positions that it has seen. */
struct query {
    const float *q;      /* [head_dim] */
    const float *scaled; /* [head_dim] q * F16_SCALE, for keys that are widened in registers */
    const int8_t *code;  /* [head_dim] and */
    const float *scale;  /* [head_dim / 32]: q quantised, where the keys are */
    float *acc;          /* [head_dim], 0 at the start */
    float max, sum;      /* -INFINITY and 0 at the start */
    int seen;            /* positions of the page at hand: its first ones, 0..BLOCK */
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
    void (*dequantize)(float *out, const int8_t *code, const float *scale, int n); /* code * scale; n a multiple of 32 */

    /* Attention of n queries over one page of one kv head, in three steps. Keys and values are [BLOCK, dim]; p [n, BLOCK] has a
     * row for each query, which holds something in its first `seen` places only. */
    void (*scores)(float *p, const struct query *q, int n, const float *k, int dim, float scale); /* p = q.k * scale */
    void (*scores_q8)(float *p, const struct query *q, int n, const int8_t *code, const float *d, int dim, float scale);
    void (*soften)(float *p, struct query *q, int n, int dim); /* p = exp(p - max), with max, sum and acc brought up to date */
    void (*values)(float *p, const struct query *q, int n, const float *v, int dim); /* acc += p * v, positions in order */
    /* The same for finite f16 and dims that 16 divides, for few queries: the halves are widened in registers, and the other factor
     * is scaled beforehand, exactly. NULL where widening first is as good. values_f16 leaves nothing of use in p. scores_f16
     * reads v on the way, which brings it near: processors fetch ahead by themselves within 4 KB only. */
    void (*scores_f16)(float *p, const struct query *q, int n, const uint16_t *k, int dim, float scale, const uint16_t *v);
    void (*values_f16)(float *p, const struct query *q, int n, const uint16_t *v, int dim);
};

extern const struct kernels kernels_scalar;
struct kernels kernels_simd(void);

#endif
