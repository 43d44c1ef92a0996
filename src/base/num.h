/* SPDX-License-Identifier: MIT
 *
 * Numbers: half floats, and exp, log, sine and cosine of our own.
 *
 * libm differs between platforms in the last bit; these functions do not. Each is a fixed sequence of IEEE operations
 * (compiled with -ffp-contract=off), so scalar code, SIMD code and every browser agree to the bit. MODEL.md,
 * "Arithmetic", has the formulas. The f32 functions are inline, because the scalar kernels call them per element.
 */
#ifndef QUERN_NUM_H
#define QUERN_NUM_H

#include "base/base.h"

/* --- half floats ------------------------------------------------------------------------------------- */

/* Exact for all 65,536 values; a NaN keeps its payload bits. A subnormal half first gets the exponent of the smallest
 * normal half, which is then subtracted as a float. So no operand is a subnormal float, which costs processors hundreds
 * of cycles; the scales of K types usually are subnormal halves. */
static inline float f32_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7FFF;
    if (rest >= 0x7C00) return f32_from_bits(sign | 0x7F800000 | (rest & 0x3FF) << 13);
    float value = rest >= 0x400 ? f32_from_bits((rest << 13) + (112u << 23))
                                : f32_from_bits((rest << 13) + (113u << 23)) - 0x1p-14f;
    return f32_from_bits(sign | bits_from_f32(value));
}

/* Round to nearest even, subnormals and overflow to infinity included. NaN becomes the quiet NaN 0x7E00. */
static inline uint16_t f16_from_f32(float x)
{
    uint32_t bits = bits_from_f32(x), sign = bits >> 16 & 0x8000, abs = bits & 0x7FFFFFFF;
    if (abs > 0x7F800000) return (uint16_t)(sign | 0x7E00);
    if (abs >= 0x477FF000) return (uint16_t)(sign | 0x7C00); /* from 65520 on */
    if (abs < 0x38800000) { /* below 2^-14: adding 0.5 leaves the rounded value, in units of 2^-24, in the low bits */
        float shifted = f32_from_bits(abs) + 0.5f;
        return (uint16_t)(sign | (bits_from_f32(shifted) - 0x3F000000));
    }
    uint32_t odd = abs >> 13 & 1;
    return (uint16_t)(sign | ((abs + 0xFFF + odd - 0x38000000) >> 13));
}

/* OCP FP8 E4M3, exact: bias 7, no infinities, NaN if all bits but the sign are set. Subnormals use the trick of
 * f32_from_f16(). */
static inline float f32_from_e4m3(uint8_t b)
{
    uint32_t sign = (uint32_t)(b & 0x80) << 24, rest = b & 0x7F;
    if (rest == 0x7F) return f32_from_bits(sign | 0x7FC00000);
    float value =
        rest >= 8 ? f32_from_bits((rest << 20) + (120u << 23)) : f32_from_bits((rest << 20) + (121u << 23)) - 0x1p-6f;
    return f32_from_bits(sign | bits_from_f32(value));
}

static inline float f32_from_bf16(uint16_t b) { return f32_from_bits((uint32_t)b << 16); }

/* --- f32 exp ----------------------------------------------------------------------------------------- */

/* Minimax coefficients of (e^r - 1 - r) / r^2 on |r| <= ln2 / 2, lowest power first (Cephes' expf; under 2 ulp). */
#define EXP_C0 0.50000001201f
#define EXP_C1 0.16666665459f
#define EXP_C2 0.041665795894f
#define EXP_C3 0.0083334519073f
#define EXP_C4 0.0013981999507f
#define EXP_C5 0.00019875691500f
#define EXP_LOG2E 1.44269504089f
#define EXP_LN2_HI 0.693359375f     /* 9 bits, so n * EXP_LN2_HI is exact */
#define EXP_LN2_LO -2.12194440e-4f
#define EXP_MAGIC 12582912.0f       /* 1.5 * 2^23: adding it rounds to an integer, half to even */
#define EXP_MIN -87.33f             /* smaller arguments give 0, before the result gets subnormal */
#define EXP_MAX 88.0f               /* larger arguments give infinity */

/* exp(0) is exactly 1; NaN gives NaN. The callers of vec.h repeat these steps lane by lane. */
static inline float num_exp(float x)
{
    if (x < EXP_MIN) return 0.0f;
    if (x > EXP_MAX) return f32_from_bits(0x7F800000);
    float shifted = x * EXP_LOG2E + EXP_MAGIC;
    float n = shifted - EXP_MAGIC;
    float r = x - n * EXP_LN2_HI;
    r = r - n * EXP_LN2_LO;
    float p = EXP_C5 * r + EXP_C4;
    p = p * r + EXP_C3;
    p = p * r + EXP_C2;
    p = p * r + EXP_C1;
    p = p * r + EXP_C0;
    p = p * (r * r) + r;
    p = p + 1.0f;
    uint32_t power = (bits_from_f32(shifted) - bits_from_f32(EXP_MAGIC) + 127) << 23;
    return p * f32_from_bits(power);
}

static inline float num_sigmoid(float x) { return 1.0f / (1.0f + num_exp(-x)); }
/* silu(x) = x / (1 + e^-x) */
static inline float num_silu(float x) { return x / (1.0f + num_exp(-x)); }

/* gelu(x) = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), computed as x / (1 + e^-2u). -infinity gives NaN. */
#define GELU_C1 1.5957691f  /* 2 sqrt(2 / pi) */
#define GELU_C2 0.07135482f /* GELU_C1 * 0.044715 */
static inline float num_gelu_tanh(float x)
{
    float z = x * (GELU_C1 + GELU_C2 * (x * x));
    return x / (1.0f + num_exp(-z));
}

/* --- f64 functions: sampling and RoPE ---------------------------------------------------------------- */

/* Relative errors are below 1e-15. exp gives 0 below -708 and infinity above 709. log needs x > 0 and normal. */
double num_exp64(double x);
double num_log64(double x);
/* x / 2 * (1 + erf(x / sqrt(2))) by the series of erf. The error is below 1e-14 up to |x| = 4 sqrt(2), where erf is 1
 * within 2e-8. */
float num_gelu_erf(float x);
/* Needs |x| < 1e6 (radians), or NaN, which gives NaN. */
void num_sincos64(double x, double *sine, double *cosine);

#endif
