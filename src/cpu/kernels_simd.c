/* SPDX-License-Identifier: MIT
 *
 * The SIMD kernels over rows, and the table of all of them: the same sums as kernels_scalar.c.
 */
#include "simd.h"

#include <math.h>

INLINE vec f32_abs_bits(vec x) { return vec_and(x, i32_splat(0x7FFFFFFF)); }

static int32_t block_top(const float *x)
{
    vec top = i32_splat(0);
    for (int c = 0; c < BLOCK; c += 4) top = i32_max(top, f32_abs_bits(vec_load(x + c)));
    int32_t lane[4];
    vec_store(lane, top);
    return max_int(max_int(lane[0], lane[1]), max_int(lane[2], lane[3]));
}

/* x / s clamped to +-127 and rounded, as int32 */
INLINE vec to_codes(const float *x, vec s)
{
    static const float k[] = {127.0f, -127.0f, EXP_MAGIC};
    vec limit = vec_constant(k), floor = vec_constant(k + 1), magic = vec_constant(k + 2), v = f32_div(vec_load(x), s);
    v = vec_select(f32_lt(limit, v), limit, v);
    v = vec_select(f32_lt(v, floor), floor, v);
    return i32_sub(f32_add(v, magic), magic); /* the integer stands in the low bits */
}

INLINE int16_t lane_sum(vec v)
{
    int32_t lane[4];
    vec_store(lane, v);
    return (int16_t)(lane[0] + lane[1] + lane[2] + lane[3]);
}

static void quantize(const float *x, int cols, int8_t *code, float *scale, int16_t *sum)
{
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
            for (int i = 0; i < 4; i++) v[i] = to_codes(x + 16 * h + 4 * i, f32_splat(s));
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
    const vec one = f32_splat(1.0f);
    int i = 0;
    for (; i + 4 <= n; i += 4) {
        vec g = vec_load(gate + i);
        vec e = exp4(vec_xor(g, i32_splat(INT32_MIN)));
        vec_store(gate + i, f32_mul(f32_div(g, f32_add(one, e)), vec_load(up + i)));
    }
    for (; i < n; i++) gate[i] = num_silu(gate[i]) * up[i];
}

static void add(float *x, const float *y, int n)
{
    int i = 0;
    for (; i + 4 <= n; i += 4) vec_store(x + i, f32_add(vec_load(x + i), vec_load(y + i)));
    for (; i < n; i++) x[i] += y[i];
}

static void widen(float *out, const uint16_t *in, int n)
{
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        vec h = vec_load(in + i);
        vec_store(out + i, f32_from_f16_low(h));
        vec_store(out + i + 4, f32_from_f16_high(h));
    }
    for (; i < n; i++) out[i] = f32_from_f16(in[i]);
}

/* f16_from_f32 in 4 lanes: all three ranges computed, the right one chosen. */
INLINE vec f16_lanes(vec x)
{
    vec abs = f32_abs_bits(x), sign = vec_and(u32_shr(x, 16), i32_splat(0x8000));
    vec odd = vec_and(u32_shr(abs, 13), i32_splat(1));
    vec normal = u32_shr(i32_add(i32_add(abs, i32_splat(0xFFF - 0x38000000)), odd), 13);
    vec small = i32_sub(f32_add(abs, f32_splat(0.5f)), i32_splat(0x3F000000));
    vec h = vec_select(i32_gt(i32_splat(0x38800000), abs), small, normal);
    h = vec_select(i32_gt(abs, i32_splat(0x477FEFFF)), i32_splat(0x7C00), h);
    h = vec_select(i32_gt(abs, i32_splat(0x7F800000)), i32_splat(0x7E00), h);
    return vec_or(h, sign);
}

static void narrow(uint16_t *out, const float *in, int n)
{
    int i = 0;
    for (; i + 8 <= n; i += 8) vec_store(out + i, u16_narrow(f16_lanes(vec_load(in + i)), f16_lanes(vec_load(in + i + 4))));
    for (; i < n; i++) out[i] = f16_from_f32(in[i]);
}

const char *const dots_names[DOTS_COUNT] = {"i16", "u7", "u8", "s8"};

struct kernels kernels_simd(enum dots dots)
{
    struct kernels k = kernels_scalar;
    k.name = VEC_NAME;
    gemm_simd(&k, dots);
    attend_simd(&k);
    k.quantize = quantize;
    k.rmsnorm = rmsnorm;
    k.rope = rope;
    k.swiglu = swiglu;
    k.add = add;
    k.widen = widen;
    k.narrow = narrow;
    return k;
}
