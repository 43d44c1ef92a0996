/* SPDX-License-Identifier: MIT
 *
 * Blocks from floats, by a search. Only command lines have this file.
 *
 * All types work alike. For each part of a block (16 or 32 columns) some ranges are tried: round to codes, solve for
 * the scale (and minimum) that fits these codes best, and keep the best result. Then the parts' scales are rounded to
 * codes of their own, relative to the block's one or two f16 numbers; neighbouring codes are tried too. Squared errors
 * count by the weights of their columns.
 */
#include "weights/blocks.h"
#include "weights/quantize.h"

enum { K_BLOCK = 256 };

/* Compiled for each way of rounding, a constant in every call. */
#define INLINE static inline __attribute__((always_inline))

static const float ones[K_BLOCK] = {[0 ... K_BLOCK - 1] = 1};

/* --- four values at a time -------------------------------------------------------------------------------- */

typedef float f4 __attribute__((vector_size(16)));
typedef int32_t i4 __attribute__((vector_size(16)));

static f4 all(float v) { return (f4){v, v, v, v}; }
static float sum4(f4 v) { return (v[0] + v[1]) + (v[2] + v[3]); }
static f4 choose(i4 mask, f4 yes, f4 no) { return (f4)((mask & (i4)yes) | (~mask & (i4)no)); }

static f4 load4(const float *x)
{
    f4 v;
    memcpy(&v, x, sizeof v);
    return v;
}

/* Rounds to the nearest whole number of lo .. hi, half to even; |v| < 2^22. */
static f4 nearest(f4 v, float lo, float hi)
{
    v = (v + all(EXP_MAGIC)) - all(EXP_MAGIC);
    v = choose(v < all(lo), all(lo), v);
    return choose(v > all(hi), all(hi), v);
}

static int nearest_int(float v, int lo, int hi) { return (int)nearest(all(v), (float)lo, (float)hi)[0]; }

/* --- Q4_K and Q5_K: value = scale * code - min, codes 0 .. top ----------------------------------------------- */

/* 32 columns, and what they are made for. */
struct part {
    const float *x, *w;
    float top;
};

struct fit {
    float scale, min, gain;
};

/* Fits 32 values by least squares to the codes that `scale` and `min` give. Solves for a new scale and minimum, or for
 * the scale alone if the minimum would be negative. `gain` is the sum of squares that the fit explains. */
static struct fit solve(struct part p, float scale, float min)
{
    f4 id = all(inverse(scale)), m = all(min), sw = all(0), sx = sw, sq = sw, sqq = sw, sxq = sw;
    for (int i = 0; i < 32; i += 4) {
        f4 v = load4(p.x + i), w = load4(p.w + i), q = nearest((v + m) * id, 0, p.top), wq = w * q;
        sw += w;
        sx += w * v;
        sq += wq;
        sqq += wq * q;
        sxq += v * wq;
    }
    float n = sum4(sw), x1 = sum4(sx), q1 = sum4(sq), qq = sum4(sqq), xq = sum4(sxq), det = n * qq - q1 * q1;
    struct fit f = {0};
    if (det > 0) f = (struct fit){(n * xq - x1 * q1) / det, (q1 * xq - qq * x1) / det, 0};
    if (f.min < 0 || det <= 0) f = (struct fit){qq > 0 && xq > 0 ? xq / qq : 0, 0, 0};
    f.gain = f.scale * xq - f.min * x1;
    return f;
}

enum { RANGES = 9, STEPS = 2 };

/* Searches the best scale and minimum of 32 values. */
static struct fit fit_32(struct part p)
{
    float lo = 0, hi = p.x[0];
    for (int i = 0; i < 32; i++) {
        if (p.x[i] < lo) lo = p.x[i];
        if (p.x[i] > hi) hi = p.x[i];
    }
    float range = (hi - lo) / p.top;
    struct fit best = {range, -lo, -1};
    if (inverse(range) == 0) return (struct fit){0, -lo, 0};
    for (int r = 0; r < RANGES; r++) {
        struct fit f = {range * (1.05f - 0.05f * (float)r), -lo, 0};
        for (int step = 0; step < STEPS; step++) {
            f = solve(p, f.scale, f.min);
            if (f.gain > best.gain) best = f;
        }
    }
    return best;
}

/* Squared error of 32 values with the best codes for this scale and minimum. */
static float error_of(struct part p, float scale, float min)
{
    f4 sum = all(0), id = all(inverse(scale)), s = all(scale), m = all(min);
    for (int i = 0; i < 32; i += 4) {
        f4 v = load4(p.x + i) + m, e = s * nearest(v * id, 0, p.top) - v;
        sum += load4(p.w + i) * (e * e);
    }
    return sum4(sum);
}

struct coded {
    int scale, min;
};

/* Codes in 0 .. 63 for the scale and minimum of a fit, with d and dmin given: the best of the nearest codes and their
 * neighbours. */
static struct coded code_fit(struct part p, const struct fit *f, float d, float dmin)
{
    int s = nearest_int(f->scale * inverse(d), 0, 63), m = nearest_int(f->min * inverse(dmin), 0, 63);
    struct coded best = {s, m};
    float least = error_of(p, d * (float)s, dmin * (float)m);
    for (int i = max_int(s - 1, 0); i <= min_int(s + 1, 63); i++)
        for (int j = max_int(m - 1, 0); j <= min_int(m + 1, 63); j++) {
            float error = error_of(p, d * (float)i, dmin * (float)j);
            if (error >= least) continue;
            least = error;
            best = (struct coded){i, j};
        }
    return best;
}

/* Stores six bits each, in the layout of split_sixes() in dtype.c. */
static void store_scales(const struct coded c[8], uint8_t out[12])
{
    for (int i = 0; i < 4; i++) {
        out[i] = (uint8_t)(c[i].scale | c[i + 4].scale >> 4 << 6);
        out[i + 4] = (uint8_t)(c[i].min | c[i + 4].min >> 4 << 6);
        out[i + 8] = (uint8_t)((c[i + 4].scale & 15) | (c[i + 4].min & 15) << 4);
    }
}

/* Writes d, dmin and the 12 bytes of scales, which both types begin with, and gives the codes. */
static bool fit_codes(const float *x, const float *w, int top, uint8_t code[K_BLOCK], uint8_t *out)
{
    struct fit fits[8];
    struct coded codes[8];
    float scale = 0, min = 0;
    for (int i = 0; i < 8; i++) {
        fits[i] = fit_32((struct part){x + 32 * i, w + 32 * i, (float)top});
        if (fits[i].scale > scale) scale = fits[i].scale;
        if (fits[i].min > min) min = fits[i].min;
    }
    float d = half_beyond(scale / 63), dmin = half_beyond(min / 63);
    if (!(d <= HALF_MOST && dmin <= HALF_MOST)) return false;
    for (int i = 0; i < 8; i++) {
        codes[i] = code_fit((struct part){x + 32 * i, w + 32 * i, (float)top}, &fits[i], d, dmin);
        float s = d * (float)codes[i].scale, m = dmin * (float)codes[i].min, id = inverse(s);
        for (int c = 32 * i; c < 32 * i + 32; c++) code[c] = (uint8_t)nearest_int((x[c] + m) * id, 0, top);
    }
    store_half(out, d);
    store_half(out + 2, dmin);
    store_scales(codes, out + 4);
    return true;
}

/* Low nibbles in the layout of unpack_q4_k() in dtype.c. */
static void store_nibbles(const uint8_t code[K_BLOCK], uint8_t out[128])
{
    for (int g = 0; g < 4; g++)
        for (int c = 0; c < 32; c++)
            out[32 * g + c] = (uint8_t)((code[64 * g + c] & 15) | (code[64 * g + 32 + c] & 15) << 4);
}

static bool q4_k_block(const float *x, const float *w, uint8_t *out)
{
    uint8_t code[K_BLOCK];
    if (!fit_codes(x, w, 15, code, out)) return broken(out, 144, 0);
    store_nibbles(code, out + 16);
    return true;
}

static bool q5_k_block(const float *x, const float *w, uint8_t *out)
{
    uint8_t code[K_BLOCK];
    if (!fit_codes(x, w, 31, code, out)) return broken(out, 176, 0);
    memset(out + 16, 0, 32);
    for (int c = 0; c < K_BLOCK; c++) out[16 + c % 32] |= (uint8_t)(code[c] >> 4 << c / 32);
    store_nibbles(code, out + 48);
    return true;
}

/* --- Q6_K and Q4_0: value = scale * code, codes low .. -low - 1 ---------------------------------------------- */

/* The nearest values that codes of a type stand for. */
typedef f4 round_fn(f4 v);

static f4 round_six(f4 v) { return nearest(v, -32, 31); }
static f4 round_four(f4 v) { return nearest(v, -8, 7); }

/* A scale, and the sum of squares that it explains. */
struct scaled {
    float scale, gain;
};

/* Fits a scale by least squares, as in solve(), to the codes that `range` gives, and keeps it if it is better. */
INLINE void try_range(const float *x, const float *w, int n, float range, round_fn *round, struct scaled *best)
{
    f4 id = all(inverse(range)), sxq = all(0), sqq = sxq;
    for (int i = 0; i < n; i += 4) {
        f4 v = load4(x + i), q = round(v * id), wq = load4(w + i) * q;
        sxq += v * wq;
        sqq += wq * q;
    }
    float xq = sum4(sxq), qq = sum4(sqq), scale = qq > 0 ? xq / qq : 0;
    if (scale * xq > best->gain) *best = (struct scaled){scale, scale * xq};
}

/* Squared error of n values with the best codes for this scale. */
INLINE float error_scaled(const float *x, const float *w, int n, float scale, round_fn *round)
{
    f4 sum = all(0), id = all(inverse(scale)), s = all(scale);
    for (int i = 0; i < n; i += 4) {
        f4 v = load4(x + i), e = s * round(v * id) - v;
        sum += load4(w + i) * (e * e);
    }
    return sum4(sum);
}

/* Fits a scale of either sign to n values. At first the largest value gets the code `low`, because there is no code
 * -low. */
INLINE float fit_signed(const float *x, const float *w, int n, int low, round_fn *round)
{
    float range = largest(x, n) / (float)low;
    struct scaled best = {range, -1};
    for (int r = -8; r <= 8; r++) try_range(x, w, n, range * (1 - 0.128f / (float)low * (float)r), round, &best);
    return best.scale;
}

/* The best of the nearest code in low .. -low - 1 of a part's scale, and its neighbours. */
INLINE int code_scale(const float *x, const float *w, int n, float scale, float d, int low, round_fn *round)
{
    int high = -low - 1, s = nearest_int(scale * inverse(d), low, high), best = s;
    float least = error_scaled(x, w, n, d * (float)s, round);
    for (int i = max_int(s - 1, low); i <= min_int(s + 1, high); i++) {
        float error = error_scaled(x, w, n, d * (float)i, round);
        if (error >= least) continue;
        least = error;
        best = i;
    }
    return best;
}

/* Stores codes in the layout of unpack_q6_k() in dtype.c. */
static void store_six(const uint8_t code[K_BLOCK], uint8_t *out)
{
    for (int half = 0; half < 2; half++)
        for (int j = 0; j < 32; j++) {
            const uint8_t *c = code + half * 128 + j;
            out[half * 64 + j] = (uint8_t)((c[0] & 15) | (c[64] & 15) << 4);
            out[half * 64 + j + 32] = (uint8_t)((c[32] & 15) | (c[96] & 15) << 4);
            out[128 + half * 32 + j] = (uint8_t)(c[0] >> 4 | c[32] >> 4 << 2 | c[64] >> 4 << 4 | c[96] >> 4 << 6);
        }
}

static bool q6_k_block(const float *x, const float *w, uint8_t *out)
{
    float scales[16];
    uint8_t code[K_BLOCK];
    for (int i = 0; i < 16; i++) scales[i] = fit_signed(x + 16 * i, w + 16 * i, 16, -32, round_six);
    float d = half_beyond(largest(scales, 16) / -128);
    if (!(d <= HALF_MOST && d >= -HALF_MOST)) return broken(out, 210, 208);
    for (int i = 0; i < 16; i++) {
        int s = code_scale(x + 16 * i, w + 16 * i, 16, scales[i], d, -128, round_six);
        float id = inverse(d * (float)s);
        for (int c = 16 * i; c < 16 * i + 16; c++) code[c] = (uint8_t)(nearest_int(x[c] * id, -32, 31) + 32);
        out[192 + i] = (uint8_t)(int8_t)s;
    }
    store_six(code, out);
    store_half(out + 208, d);
    return true;
}

/* Nibbles in the layout of unpack_q4_0() in dtype.c. */
static void store_32(const uint8_t code[32], uint8_t out[16])
{
    for (int c = 0; c < 16; c++) out[c] = (uint8_t)(code[c] | code[c + 16] << 4);
}

static bool q4_0_block(const float *x, const float *w, uint8_t *out)
{
    uint8_t code[32];
    float d = fit_signed(x, w, 32, -8, round_four);
    if (!(d <= HALF_MOST && d >= -HALF_MOST)) return broken(out, 18, 0);
    store_half(out, d);
    float id = inverse(f32_from_f16(f16_from_f32(d)));
    for (int c = 0; c < 32; c++) code[c] = (uint8_t)(nearest_int(x[c] * id, -8, 7) + 8);
    store_32(code, out + 2);
    return true;
}

/* --- IQ4_XS: value = scale * table[code] ------------------------------------------------------------------------- */

/* The code whose number in the table is nearest to v; the smaller one between two. */
static int table_code(float v)
{
    int code = 0;
    while (code < 15 && v > 0.5f * (float)(table_iq4[code] + table_iq4[code + 1])) code++;
    return code;
}

/* The same for four values, as numbers of the table. */
static f4 table_nearest(f4 v)
{
    f4 best = all(table_iq4[0]);
    for (int i = 1; i < 16; i++)
        best = choose(v > all(0.5f * (float)(table_iq4[i - 1] + table_iq4[i])), all(table_iq4[i]), best);
    return best;
}

/* As fit_signed(); the largest value gets either end of the table at first. */
static float fit_table(const float *x, const float *w)
{
    const float end = largest(x, 32);
    struct scaled best = {end / table_iq4[0], -1};
    for (int side = 0; side < 2; side++)
        for (int r = -3; r <= 3; r++)
            try_range(x, w, 32, end / table_iq4[side ? 15 : 0] * (1 + 0.04f * (float)r), table_nearest, &best);
    return best.scale;
}

static bool iq4_xs_block(const float *x, const float *w, uint8_t *out)
{
    float scales[8];
    for (int i = 0; i < 8; i++) scales[i] = fit_table(x + 32 * i, w + 32 * i);
    float d = half_beyond(largest(scales, 8) / -32);
    if (!(d <= HALF_MOST && d >= -HALF_MOST)) return broken(out, 136, 0);
    uint32_t high = 0;
    memset(out, 0, 8);
    store_half(out, d);
    for (int i = 0; i < 8; i++) {
        int s = code_scale(x + 32 * i, w + 32 * i, 32, scales[i], d, -32, table_nearest);
        float id = inverse(d * (float)s);
        uint8_t code[32];
        for (int c = 0; c < 32; c++) code[c] = (uint8_t)table_code(x[32 * i + c] * id);
        store_32(code, out + 8 + 16 * i);
        out[4 + i / 2] |= (uint8_t)(((s + 32) & 15) << i % 2 * 4);
        high |= (uint32_t)(s + 32) >> 4 << 2 * i;
    }
    out[2] = (uint8_t)high, out[3] = (uint8_t)(high >> 8);
    return true;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* Where the f16 number is that makes a block NaN. */
struct block_shape {
    int columns;
    size_t bytes, half;
};

typedef bool block_fn(const float *x, const float *w, uint8_t *out);

static bool each_block(const float *x, const float *w, int n, uint8_t *out, struct block_shape s, block_fn *fit)
{
    bool ok = true;
    for (int c = 0; c < n; c += s.columns, out += s.bytes) {
        float most = largest(x + c, s.columns);
        if (most - most != 0) ok = broken(out, s.bytes, s.half); /* NaN or infinite */
        else ok &= fit(x + c, w ? w + c : ones, out);
    }
    return ok;
}

#define QUANTIZE(name, fit, ...) \
    bool name(const float *x, const float *w, int n, uint8_t *out) \
    { \
        return each_block(x, w, n, out, (struct block_shape){__VA_ARGS__}, fit); \
    }
QUANTIZE(fit_q4_0, q4_0_block, 32, 18, 0)
QUANTIZE(quantize_q4_k, q4_k_block, K_BLOCK, 144, 0)
QUANTIZE(quantize_q5_k, q5_k_block, K_BLOCK, 176, 0)
QUANTIZE(quantize_q6_k, q6_k_block, K_BLOCK, 210, 208)
QUANTIZE(quantize_iq4_xs, iq4_xs_block, K_BLOCK, 136, 0)
