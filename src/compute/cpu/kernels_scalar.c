/* SPDX-License-Identifier: MIT
 *
 * The reference kernels: the arithmetic rules, written as plainly as possible. Slow is fine; wrong is not.
 */
#include "compute/cpu/kernels.h"

#include "base/num.h"

#include <math.h>
#include <string.h>

static float half_at(const uint8_t *halves, int i) { return f32_from_f16(load_u16(halves + 2 * i)); }

/* --- products of floats: one output element is row r of the panel times row t of the activations ------- */

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
    for (int c = 0; c < a->cols; c++) y += f8_value(panel, (size_t)c, (size_t)r) * x[c];
    return y;
}

static void gemm_f32(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out)
{
    EACH_ELEMENT(element_f32);
}
static void gemm_f16(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out)
{
    EACH_ELEMENT(element_f16);
}
static void gemm_bf16(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out)
{
    EACH_ELEMENT(element_bf16);
}
static void gemm_f8(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out)
{
    EACH_ELEMENT(element_f8);
}

/* --- products of codes --------------------------------------------------------------------------------- */

/* Adds the products and the mins of one block, of row r of the panel and row t of the activations. */
static void block_sums(const struct block *w, const int8_t *q, const int16_t *sum, float xs, float *products,
                       float *mins)
{
    int32_t isum[2] = {0}, msum = 0;
    for (int c = 0; c < BLOCK; c++) isum[c / 16] += w->code[c] * q[c];
    for (int h = 0; h < 2; h++) msum += w->min[h] * sum[h];
    float whole = w->scale[0] * (float)isum[0] + w->scale[1] * (float)isum[1];
    *products += whole * (w->d * xs);
    *mins += (float)msum * (w->dmin * xs);
}

/* Without mins this is products - 0. */
static void gemm_codes(enum layout layout, const uint8_t *panel, const struct act *a, int row, int n_rows, float *out)
{
    int blocks = a->cols / BLOCK;
    for (int r = 0; r < PANEL_ROWS; r++) {
        float products[TILE] = {0}, mins[TILE] = {0};
        for (int b = 0; b < blocks; b++) {
            struct block w;
            unpack_block(layout, panel, b, r, &w);
            for (int t = 0; t < n_rows; t++) {
                size_t at = (size_t)(row + t) * (size_t)blocks + (size_t)b;
                block_sums(&w, a->code + at * BLOCK, a->sum + at * 2, a->scale[at], &products[t], &mins[t]);
            }
        }
        for (int t = 0; t < n_rows; t++) out[t * PANEL_ROWS + r] = products[t] - mins[t];
    }
}

#define DEFINE(name, ...)                                                                               \
    static void gemm_##name(const uint8_t *panel, const struct act *a, int row, int n_rows, float *out) \
    {                                                                                                   \
        gemm_codes(LAYOUT_##name, panel, a, row, n_rows, out);                                          \
    }
ALL_LAYOUTS(DEFINE)

/* --- rows -------------------------------------------------------------------------------------------- */

/* The scale of a block; NaN (with zero codes) if the block holds NaN or infinity. */
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

/* Adds in the order of reduce8(). */
static float sum8(const float *x, int n)
{
    float p[8] = {0};
    for (int i = 0; i < n; i++) p[i % 8] += x[i];
    return reduce8(p);
}

static void layernorm(float *y, const float *x, const float *w, const float *bias, int n, float eps)
{
    float mean = sum8(x, n) / (float)n, p[8] = {0};
    for (int i = 0; i < n; i++) p[i % 8] += (x[i] - mean) * (x[i] - mean);
    float scale = 1.0f / sqrtf(reduce8(p) / (float)n + eps);
    for (int i = 0; i < n; i++) y[i] = (x[i] - mean) * scale * w[i] + bias[i];
}

static void gelu(float *x, int n)
{
    for (int i = 0; i < n; i++) x[i] = num_gelu_tanh(x[i]);
}

static void gelu_erf(float *x, int n)
{
    for (int i = 0; i < n; i++) x[i] = num_gelu_erf(x[i]);
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

static void gate(float *x, const float *g, int n)
{
    for (int i = 0; i < n; i++) x[i] *= num_sigmoid(g[i]);
}

static void convolve(float *y, const float *const x[TAPS], const float *taps, size_t stride, int n)
{
    for (int i = 0; i < n; i++) {
        float sum = 0;
        for (size_t j = 0; j < TAPS; j++) sum += taps[j * stride + (size_t)i] * x[j][i];
        y[i] = num_silu(sum);
    }
}

static void unit(float *x, float scale, int n)
{
    float inverse = 1.0f / sqrtf(dot(x, x, n) + UNIT_EPS);
    for (int i = 0; i < n; i++) x[i] = x[i] * inverse * scale;
}

/* One row of one column of values. */
static void delta_column(const struct delta *d, const float *from, size_t t, size_t column)
{
    size_t dim = (size_t)d->head_dim, row = t * d->stride;
    float sum = 0, y = 0;
    for (size_t i = 0; i < dim; i++) sum += from[i * dim + column] * d->decay[t] * d->k[row + i];
    float change = (d->v[row + column] - sum) * d->beta[t];
    for (size_t i = 0; i < dim; i++) {
        float state = from[i * dim + column] * d->decay[t] + d->k[row + i] * change;
        y += state * d->q[row + i];
        d->to[i * dim + column] = state;
    }
    d->y[t * d->y_stride + column] = y;
}

static void delta(const struct delta *d)
{
    for (size_t t = 0; t < (size_t)d->n; t++)
        for (size_t column = 0; column < (size_t)d->head_dim; column++) delta_column(d, t ? d->to : d->from, t, column);
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

static void dequantize(float *v, const int8_t *code, const float *scale, int n, int dim)
{
    for (int i = 0; i < n; i++, code += dim, scale += dim / BLOCK)
        for (int d = 0; d < dim; d++) v[value_place(i, d, dim)] = (float)code[d] * scale[d / BLOCK];
}

/* --- attention ----------------------------------------------------------------------------------------- */

static float dot_key(const float *q, const float *k, int position, int dim)
{
    float p[8] = {0};
    for (int i = 0; i < dim; i++) p[i % 8] += q[i] * k[key_place(position, i, dim)];
    return reduce8(p);
}

static void scores(float *p, const struct query *q, int n, const float *k, int dim, float scale)
{
    for (int t = 0; t < n; t++)
        for (int i = 0; i < q[t].seen; i++) p[t * KV_PAGE + i] = dot_key(q[t].q, k, i, dim) * scale;
}

/* The integer rule: sums of 32 products are exact; their floats are added in block order. */
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
        for (int i = 0; i < q[t].seen; i++)
            p[t * KV_PAGE + i] = dot_q8(&q[t], code + i * dim, d + i * (dim / BLOCK), dim) * scale;
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
    for (int t = 0; t < n; t++) soften_one(p + t * KV_PAGE, &q[t], dim);
}

static void values(float *p, const struct query *q, int n, const float *v, int dim)
{
    for (int t = 0; t < n; t++)
        for (int i = 0; i < q[t].seen; i++)
            for (int d = 0; d < dim; d++) q[t].acc[d] += p[t * KV_PAGE + i] * v[value_place(i, d, dim)];
}

#define ENTRY(name, ...) [LAYOUT_##name] = gemm_##name,
const struct kernels kernels_scalar = {
    .name = "scalar",
    .gemm = {[LAYOUT_F32] = gemm_f32,
             [LAYOUT_F16] = gemm_f16,
             [LAYOUT_BF16] = gemm_bf16,
             [LAYOUT_F8] = gemm_f8,
             ALL_LAYOUTS(ENTRY)},
    .tile = TILE,
    .quantize = quantize,
    .rmsnorm = rmsnorm,
    .layernorm = layernorm,
    .gelu = gelu,
    .gelu_erf = gelu_erf,
    .rope = rope,
    .swiglu = swiglu,
    .gate = gate,
    .convolve = convolve,
    .unit = unit,
    .delta = delta,
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
