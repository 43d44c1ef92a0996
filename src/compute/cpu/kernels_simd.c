/* SPDX-License-Identifier: MIT
 *
 * The SIMD kernels for rows, and the table of all SIMD kernels: the same sums as kernels_scalar.c.
 */
#include "compute/cpu/simd.h"

#include <math.h>

static int32_t block_top(const float *x)
{
    vec top = i32_splat(0);
    for (int c = 0; c < BLOCK; c += 4) top = i32_max(top, f32_abs_bits(vec_load(x + c)));
    int32_t lane[4];
    vec_store(lane, top);
    return max_int(max_int(lane[0], lane[1]), max_int(lane[2], lane[3]));
}

struct clamp {
    vec high, low, magic;
};

/* x / s clamped to +-127 and rounded, as int32 */
INLINE vec to_codes(const struct clamp *k, const float *x, vec s)
{
    vec v = f32_pmax(f32_pmin(f32_div(vec_load(x), s), k->high), k->low);
    return i32_sub(f32_add(v, k->magic), k->magic); /* the integer is in the low bits */
}

INLINE int16_t lane_sum(vec v)
{
    int32_t lane[4];
    vec_store(lane, v);
    return (int16_t)(lane[0] + lane[1] + lane[2] + lane[3]);
}

static void quantize(const float *x, int cols, int8_t *code, float *scale, int16_t *sum)
{
    const struct clamp k = {f32_kept(127.0f), f32_kept(-127.0f), f32_kept(EXP_MAGIC)};
    for (int b = 0; b < cols / BLOCK; b++, x += BLOCK, code += BLOCK, sum += 2) {
        int32_t top = block_top(x);
        float s = top >= 0x7F800000 ? f32_from_bits(0x7FC00000) : f32_from_bits((uint32_t)top) / 127.0f;
        scale[b] = s;
        if (!(s > 0)) {
            vec_store(code, i32_splat(0));
            vec_store(code + 16, i32_splat(0));
            sum[0] = sum[1] = 0;
            continue;
        }
        for (int h = 0; h < 2; h++) {
            vec v[4];
            for (int i = 0; i < 4; i++) v[i] = to_codes(&k, x + 16 * h + 4 * i, f32_splat(s));
            vec_store(code + 16 * h, i8_narrow(v[0], v[1], v[2], v[3]));
            sum[h] = lane_sum(i32_add(i32_add(v[0], v[1]), i32_add(v[2], v[3])));
        }
    }
}

static void rmsnorm(float *y, const float *x, const float *w, int n, float eps)
{
    float scale = 1.0f / sqrtf(dot(x, x, n) / (float)n + eps);
    vec s = f32_splat(scale);
    int i = 0;
    for (; i + 4 <= n; i += 4) vec_store(y + i, f32_mul(f32_mul(vec_load(x + i), s), vec_load(w + i)));
    for (; i < n; i++) y[i] = x[i] * scale * w[i];
}

static void rope(float *x, const float *cosine, const float *sine, int half)
{
    int i = 0;
    for (; i + 4 <= half; i += 4) {
        vec a = vec_load(x + i), b = vec_load(x + i + half), c = vec_load(cosine + i), s = vec_load(sine + i);
        vec_store(x + i, f32_sub(f32_mul(a, c), f32_mul(b, s)));
        vec_store(x + i + half, f32_add(f32_mul(b, c), f32_mul(a, s)));
    }
    for (; i < half; i++) {
        float a = x[i], b = x[i + half];
        x[i] = a * cosine[i] - b * sine[i];
        x[i + half] = b * cosine[i] + a * sine[i];
    }
}

static void swiglu(float *gate, const float *up, int n)
{
    const struct exp4 k = exp4_constants();
    int i = 0;
    for (; i + 4 <= n; i += 4) {
        vec g = vec_load(gate + i);
        vec_store(gate + i, f32_mul(f32_div(g, sigmoid4_divisor(&k, g)), vec_load(up + i)));
    }
    for (; i < n; i++) gate[i] = num_silu(gate[i]) * up[i];
}

static void add(float *x, const float *y, int n)
{
    int i = 0;
    for (; i + 4 <= n; i += 4) vec_store(x + i, f32_add(vec_load(x + i), vec_load(y + i)));
    for (; i < n; i++) x[i] += y[i];
}

static void add_scaled(float *x, const float *y, float scale, int n)
{
    vec s = f32_splat(scale);
    int i = 0;
    for (; i + 4 <= n; i += 4) vec_store(x + i, f32_add(vec_load(x + i), f32_mul(s, vec_load(y + i))));
    for (; i < n; i++) x[i] += scale * y[i];
}

static void widen(float *out, const uint16_t *in, int n)
{
    const vec mask = i32_kept(F16_MASK);
    const struct f32_constants k = f32_constants();
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        vec x[2];
        f16_scaled(in + i, mask, x);
        vec_store(out + i, f16_unscaled(&k, x[0]));
        vec_store(out + i + 4, f16_unscaled(&k, x[1]));
    }
    for (; i < n; i++) out[i] = f32_from_f16(in[i]);
}

struct f16_constants {
    vec sign, odd, normal, half, small, least, most, infinity, nan;
};

/* f16_from_f32() in 4 lanes: computes all three ranges and selects the right one. Float comparisons suffice, since only
 * x can be NaN. */
INLINE vec f16_lanes(const struct f16_constants *k, vec x)
{
    vec abs = f32_abs_bits(x), sign = vec_and(u32_shr(x, 16), k->sign);
    vec odd = vec_and(u32_shr(abs, 13), k->odd);
    vec normal = u32_shr(i32_add(i32_add(abs, k->normal), odd), 13);
    vec small = i32_sub(f32_add(abs, k->half), k->small);
    vec h = vec_select(f32_lt(abs, k->least), small, normal);
    h = vec_select(f32_lt(abs, k->most), h, k->infinity);
    h = vec_select(f32_eq(abs, abs), h, k->nan);
    return vec_or(h, sign);
}

static void narrow(uint16_t *out, const float *in, int n)
{
    const struct f16_constants k = {
        .sign = i32_kept(0x8000),
        .odd = i32_kept(1),
        .normal = i32_kept(0xFFF - 0x38000000),
        .half = f32_kept(0.5f),
        .small = i32_kept(0x3F000000),
        .least = f32_kept(0x1p-14f),
        .most = f32_kept(65520.0f),
        .infinity = i32_kept(0x7C00),
        .nan = i32_kept(0x7E00),
    };
    int i = 0;
    for (; i + 8 <= n; i += 8)
        vec_store(out + i, u16_narrow(f16_lanes(&k, vec_load(in + i)), f16_lanes(&k, vec_load(in + i + 4))));
    for (; i < n; i++) out[i] = f16_from_f32(in[i]);
}

static void dequantize(float *v, const int8_t *code, const float *scale, int n, int dim)
{
    for (int i = 0; i < n; i++, code += dim, scale += dim / BLOCK)
        for (int d = 0; d < dim; d += 8) {
            vec h = i16_from_i8_low(vec_load8(code + d)), s = f32_splat(scale[d / BLOCK]);
            float *to = v + value_place(i, d, dim);
            vec_store(to, f32_mul(f32_from_i32(i32_from_i16_low(h)), s));
            vec_store(to + 4, f32_mul(f32_from_i32(i32_from_i16_high(h)), s));
        }
}

const char *const dots_names[DOTS_COUNT] = {"i16", "u7", "u8", "s8"};

struct kernels kernels_simd(enum dots dots)
{
    struct kernels k = kernels_scalar;
    k.name = VEC_NAME;
    gemm_simd(&k, dots);
    full_simd(&k);
    tables_simd(&k);
    floats_simd(&k);
    attend_simd(&k);
    linear_simd(&k);
    encode_simd(&k);
    k.quantize = quantize;
    k.rmsnorm = rmsnorm;
    k.rope = rope;
    k.swiglu = swiglu;
    k.add = add;
    k.add_scaled = add_scaled;
    k.widen = widen;
    k.narrow = narrow;
    k.dequantize = dequantize;
    return k;
}
