/* SPDX-License-Identifier: MIT
 *
 * The reference kernels: the arithmetic rules, written as plainly as they can be. Slow is fine; wrong is not.
 */
#include "kernels.h"

#include "../num.h"

#include <math.h>
#include <string.h>

static float half_at(const uint8_t *halves, int i) { return f32_from_f16(load_u16(halves + 2 * i)); }

/* Code of row r, column c (0..31) of a block of nibbles. */
static int nibble(const uint8_t *nibbles, int r, int c)
{
    return nibbles[16 * (c / 4) + 4 * (r % 4) + c % 4] >> (r / 4 * 4) & 15;
}

static int pair(const uint8_t *pairs, int r, int c)
{
    return pairs[16 * (c / 8) + 4 * (r % 4) + c % 4] >> (c / 4 % 2 * 4 + r / 4 * 2) & 3;
}

/* --- products: one output element is row r of the panel times row t of the activations --------------- */

/* Calls `element` for the n_rows x 8 outputs. */
#define EACH_ELEMENT(element)                                                                  \
    for (int t = 0; t < n_rows; t++)                                                           \
        for (int r = 0; r < PANEL_ROWS; r++) out[t * PANEL_ROWS + r] = element(panel, a, row + t, r)

static float element_f32(const uint8_t *panel, const struct act *a, int t, int r)
{
    const float *x = a->x + (size_t)t * (size_t)a->cols;
    float y = 0;
    for (int c = 0; c < a->cols; c++) y += load_f32(panel + 32 * (size_t)c + 4 * (size_t)r) * x[c];
    return y;
}

static float element_f16(const uint8_t *panel, const struct act *a, int t, int r)
{
    const float *x = a->x + (size_t)t * (size_t)a->cols;
    float y = 0;
    for (int c = 0; c < a->cols; c++) y += half_at(panel + 16 * (size_t)c, r) * x[c];
    return y;
}

static float element_bf16(const uint8_t *panel, const struct act *a, int t, int r)
{
    const float *x = a->x + (size_t)t * (size_t)a->cols;
    float y = 0;
    for (int c = 0; c < a->cols; c++) y += f32_from_bf16(load_u16(panel + 16 * (size_t)c + 2 * (size_t)r)) * x[c];
    return y;
}

static float element_f8(const uint8_t *panel, const struct act *a, int t, int r)
{
    const float *x = a->x + (size_t)t * (size_t)a->cols;
    float y = 0;
    for (int c = 0; c < a->cols; c++) {
        const uint8_t *unit = panel + (size_t)(c / 128) * 1040;
        y += f32_from_e4m3(unit[16 + 8 * (c % 128) + r]) * load_f32(unit) * x[c];
    }
    return y;
}

/* Row t's view of block b. */
struct block_act {
    const int8_t *code; /* [32] */
    const int16_t *sum; /* [2] */
    float scale;
};

static struct block_act block_of(const struct act *a, int t, int b)
{
    size_t n_blocks = (size_t)(a->cols / BLOCK), at = (size_t)t * n_blocks + (size_t)b;
    return (struct block_act){a->code + at * BLOCK, a->sum + at * 2, a->scale[at]};
}

static float element_q8(const uint8_t *panel, const struct act *a, int t, int r)
{
    float y = 0;
    for (int b = 0; b < a->cols / BLOCK; b++, panel += 272) {
        struct block_act x = block_of(a, t, b);
        int32_t sum = 0;
        for (int c = 0; c < BLOCK; c++) sum += (int8_t)panel[16 + 32 * (c / 4) + 4 * r + c % 4] * x.code[c];
        y += (float)sum * (half_at(panel, r) * x.scale);
    }
    return y;
}

static float element_q8f(const uint8_t *panel, const struct act *a, int t, int r)
{
    float y = 0;
    for (int b = 0; b < a->cols / BLOCK; b++, panel += 288) {
        struct block_act x = block_of(a, t, b);
        int32_t sum = 0;
        for (int c = 0; c < BLOCK; c++) sum += (int8_t)panel[32 + 32 * (c / 4) + 4 * r + c % 4] * x.code[c];
        y += (float)sum * (load_f32(panel + 4 * r) * x.scale);
    }
    return y;
}

static float element_q4(const uint8_t *panel, const struct act *a, int t, int r)
{
    float y = 0;
    for (int b = 0; b < a->cols / BLOCK; b++, panel += 144) {
        struct block_act x = block_of(a, t, b);
        int32_t sum = 0;
        for (int c = 0; c < BLOCK; c++) sum += (nibble(panel + 16, r, c) - 8) * x.code[c];
        y += (float)sum * (half_at(panel, r) * x.scale);
    }
    return y;
}

static float element_q4k(const uint8_t *panel, const struct act *a, int t, int r)
{
    float products = 0, mins = 0;
    for (int b = 0; b < a->cols / BLOCK; b++) {
        const uint8_t *unit = panel + (size_t)(b / 8) * 1184, *block = unit + 32 + 144 * (b % 8);
        struct block_act x = block_of(a, t, b);
        int32_t sum = 0;
        for (int c = 0; c < BLOCK; c++) sum += nibble(block + 16, r, c) * x.code[c];
        sum *= block[r];
        int32_t min_sum = block[8 + r] * (x.sum[0] + x.sum[1]);
        products += (float)sum * (half_at(unit, r) * x.scale);
        mins += (float)min_sum * (half_at(unit + 16, r) * x.scale);
    }
    return products - mins;
}

static float element_q6k(const uint8_t *panel, const struct act *a, int t, int r)
{
    float y = 0;
    for (int b = 0; b < a->cols / BLOCK; b++) {
        const uint8_t *unit = panel + (size_t)(b / 8) * 1680, *block = unit + 16 + 208 * (b % 8);
        struct block_act x = block_of(a, t, b);
        int32_t sum = 0;
        for (int c = 0; c < BLOCK; c++) {
            int code = nibble(block + 16, r, c) | pair(block + 144, r, c) << 4;
            sum += (int8_t)block[8 * (c / 16) + r] * (code - 32) * x.code[c];
        }
        y += (float)sum * (half_at(unit, r) * x.scale);
    }
    return y;
}

static void gemm_f32(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out) { EACH_ELEMENT(element_f32); }
static void gemm_f16(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out) { EACH_ELEMENT(element_f16); }
static void gemm_bf16(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out) { EACH_ELEMENT(element_bf16); }
static void gemm_q8(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out) { EACH_ELEMENT(element_q8); }
static void gemm_f8(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out) { EACH_ELEMENT(element_f8); }
static void gemm_q8f(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out) { EACH_ELEMENT(element_q8f); }
static void gemm_q4(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out) { EACH_ELEMENT(element_q4); }
static void gemm_q4k(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out) { EACH_ELEMENT(element_q4k); }
static void gemm_q6k(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out) { EACH_ELEMENT(element_q6k); }

/* --- rows -------------------------------------------------------------------------------------------- */

/* NaN scale and zero codes for a block that holds NaN or infinity. */
static float block_scale(const float *x)
{
    uint32_t top = 0;
    for (int c = 0; c < BLOCK; c++) {
        uint32_t bits = bits_from_f32(x[c]) & 0x7FFFFFFF; /* |x|: ordered as integers, NaN above infinity */
        if (bits > top) top = bits;
    }
    return top >= 0x7F800000 ? f32_from_bits(0x7FC00000) : f32_from_bits(top) / 127.0f;
}

static void quantize(const float *x, int cols, int8_t *code, float *scale, int16_t *sum)
{
    for (int b = 0; b < cols / BLOCK; b++, x += BLOCK, code += BLOCK, sum += 2) {
        float s = block_scale(x);
        scale[b] = s;
        memset(code, 0, BLOCK);
        sum[0] = sum[1] = 0;
        if (!(s > 0)) continue; /* all zero, or not finite */
        for (int c = 0; c < BLOCK; c++) {
            float v = x[c] / s;
            v = v > 127.0f ? 127.0f : v < -127.0f ? -127.0f : v;
            v = (v + EXP_MAGIC) - EXP_MAGIC; /* half to even */
            code[c] = (int8_t)v;
            sum[c / 16] = (int16_t)(sum[c / 16] + code[c]);
        }
    }
}

/* The one order of float reductions: partial sums over columns i mod 8, then this tree. */
static float reduce8(const float p[8])
{
    return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
}

static float dot(const float *x, const float *y, int n)
{
    float p[8] = {0};
    for (int i = 0; i < n; i++) p[i % 8] += x[i] * y[i];
    return reduce8(p);
}

static void rmsnorm(float *y, const float *x, const float *w, int n, float eps)
{
    float scale = 1.0f / sqrtf(dot(x, x, n) / (float)n + eps);
    for (int i = 0; i < n; i++) y[i] = x[i] * scale * w[i];
}

static void rope(float *x, const float *cosine, const float *sine, int half)
{
    for (int i = 0; i < half; i++) {
        float a = x[i], b = x[i + half];
        x[i] = a * cosine[i] - b * sine[i];
        x[i + half] = b * cosine[i] + a * sine[i];
    }
}

static void swiglu(float *gate, const float *up, int n)
{
    for (int i = 0; i < n; i++) gate[i] = num_silu(gate[i]) * up[i];
}

static void add(float *x, const float *y, int n)
{
    for (int i = 0; i < n; i++) x[i] += y[i];
}

static void add_scaled(float *x, const float *y, float scale, int n)
{
    for (int i = 0; i < n; i++) x[i] += scale * y[i];
}

static void widen(float *out, const uint16_t *in, int n)
{
    for (int i = 0; i < n; i++) out[i] = f32_from_f16(in[i]);
}

static void narrow(uint16_t *out, const float *in, int n)
{
    for (int i = 0; i < n; i++) out[i] = f16_from_f32(in[i]);
}

static void dequantize(float *out, const int8_t *code, const float *scale, int n)
{
    for (int i = 0; i < n; i++) out[i] = (float)code[i] * scale[i / BLOCK];
}

/* --- attention ----------------------------------------------------------------------------------------- */

static void scores(float *p, const struct query *q, int n, const float *k, int dim, float scale)
{
    for (int t = 0; t < n; t++)
        for (int i = 0; i < q[t].seen; i++) p[t * BLOCK + i] = dot(q[t].q, k + (size_t)i * (size_t)dim, dim) * scale;
}

/* The integer rule: sums of 32 products are exact, their floats are added in block order. */
static float dot_q8(const struct query *q, const int8_t *code, const float *d, int dim)
{
    float y = 0;
    for (int b = 0; b < dim / BLOCK; b++) {
        int32_t sum = 0;
        for (int c = b * BLOCK; c < (b + 1) * BLOCK; c++) sum += code[c] * q->code[c];
        y += (float)sum * (d[b] * q->scale[b]);
    }
    return y;
}

static void scores_q8(float *p, const struct query *q, int n, const int8_t *code, const float *d, int dim, float scale)
{
    for (int t = 0; t < n; t++)
        for (int i = 0; i < q[t].seen; i++) p[t * BLOCK + i] = dot_q8(&q[t], code + i * dim, d + i * (dim / BLOCK), dim) * scale;
}

static void soften_one(float *p, struct query *q, int dim)
{
    float max = q->max;
    for (int i = 0; i < q->seen; i++)
        if (p[i] > max) max = p[i];
    if (max > q->max) {
        float shrink = num_exp(q->max - max);
        q->sum *= shrink;
        for (int d = 0; d < dim; d++) q->acc[d] *= shrink;
        q->max = max;
    }
    for (int i = 0; i < q->seen; i++) {
        p[i] = num_exp(p[i] - max);
        q->sum += p[i];
    }
}

static void soften(float *p, struct query *q, int n, int dim)
{
    for (int t = 0; t < n; t++) soften_one(p + t * BLOCK, &q[t], dim);
}

static void values(float *p, const struct query *q, int n, const float *v, int dim)
{
    for (int t = 0; t < n; t++)
        for (int i = 0; i < q[t].seen; i++)
            for (int d = 0; d < dim; d++) q[t].acc[d] += p[t * BLOCK + i] * v[i * dim + d];
}

const struct kernels kernels_scalar = {
    .name = "scalar",
    .gemm = {[LAYOUT_F32] = gemm_f32, [LAYOUT_F16] = gemm_f16, [LAYOUT_BF16] = gemm_bf16, [LAYOUT_Q8] = gemm_q8,
             [LAYOUT_Q4] = gemm_q4, [LAYOUT_Q4K] = gemm_q4k, [LAYOUT_Q6K] = gemm_q6k, [LAYOUT_Q8F] = gemm_q8f, [LAYOUT_F8] = gemm_f8},
    .tile = TILE,
    .quantize = quantize,
    .rmsnorm = rmsnorm,
    .rope = rope,
    .swiglu = swiglu,
    .add = add,
    .add_scaled = add_scaled,
    .widen = widen,
    .narrow = narrow,
    .dequantize = dequantize,
    .scores = scores,
    .scores_q8 = scores_q8,
    .soften = soften,
    .values = values,
};
