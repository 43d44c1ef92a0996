/* SPDX-License-Identifier: MIT
 *
 * Blocks from floats. The K types work alike. For each part of a block (32 columns of Q4_K, 16 of Q6_K) they try some
 * ranges: round to codes, solve for the scale (and minimum) that fits these codes best, and keep the best result. Then
 * the parts' scales are rounded to codes of their own, relative to the block's one or two f16 numbers; neighbouring
 * codes are tried too.
 */
#include "weights/quantize.h"

#include "base/num.h"

#include <string.h>

static void store_half(uint8_t *out, float v)
{
    uint16_t half = f16_from_f32(v);
    memcpy(out, &half, sizeof half);
}

/* The nearest f16 number that is not closer to 0 than v. With a smaller scale the largest code could not reach the
 * largest value; below 2^-14, where f16 is coarse, up to a third of it would be cut off. */
static float half_beyond(float v)
{
    uint16_t half = f16_from_f32(v);
    float near = f32_from_f16(half);
    return f32_from_f16((uint16_t)(half + (v < 0 ? near > v : near < v)));
}

static const float HALF_MOST = 65504;

/* Writes a block that decodes to NaN, because the type cannot express its values. Returns false. */
static bool broken(uint8_t *block, size_t bytes, size_t half)
{
    static const uint16_t nan = 0x7E00;
    memset(block, 0, bytes);
    memcpy(block + half, &nan, sizeof nan);
    return false;
}

/* The value farthest from 0, with its sign; NaN if any value is NaN. */
static float largest(const float *x, int n)
{
    float most = 0;
    for (int i = 0; i < n; i++) {
        float a = x[i] < 0 ? -x[i] : x[i], b = most < 0 ? -most : most;
        if (!(a <= b)) most = x[i];
        if (x[i] != x[i]) return x[i];
    }
    return most;
}

/* 1 / d; 0 if that is not a finite number. Values are then so small that all codes are 0. */
static float inverse(float d)
{
    float size = d < 0 ? -d : d;
    return size >= 0x1p-126f ? 1.0f / d : 0.0f;
}

/* --- Q8_0 and Q4_0 --------------------------------------------------------------------------------------- */

/* One function for both types, since it is part of a page's download. Codes are rounded half away from 0; for Q4_0
 * after 8 is added. */
static bool quantize_32(const float *x, int n, uint8_t *out, bool four)
{
    size_t bytes = four ? 18 : 34;
    bool ok = true;
    for (; n > 0; n -= 32, x += 32, out += bytes) {
        float most = largest(x, 32), d = four ? most / -8 : (most < 0 ? -most : most) / 127, id = inverse(d);
        memset(out, 0, bytes);
        if (!(d <= HALF_MOST && d >= -HALF_MOST)) {
            ok = broken(out, bytes, 0);
            continue;
        }
        store_half(out, d);
        for (int i = 0; i < 32; i++) {
            float v = x[i] * id;
            int code = (int)(v + (four ? 8.5f : v < 0 ? -0.5f : 0.5f));
            if (four) out[2 + i % 16] |= (uint8_t)(min_int(code, 15) << (i / 16 * 4));
            else out[2 + i] = (uint8_t)code;
        }
    }
    return ok;
}

bool quantize_q8_0(const float *x, int n, uint8_t *out) { return quantize_32(x, n, out, false); }
bool quantize_q4_0(const float *x, int n, uint8_t *out) { return quantize_32(x, n, out, true); }

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

/* --- Q4_K: value = scale * code - min, codes 0 .. 15 -------------------------------------------------------- */

struct fit {
    float scale, min, gain;
};

/* Fits 32 values by least squares to the codes that `scale` and `min` give. Solves for a new scale and minimum, or for
 * the scale alone if the minimum would be negative. `gain` is the sum of squares that the fit explains. */
static struct fit solve(const float *x, float scale, float min)
{
    f4 id = all(inverse(scale)), m = all(min), sx = all(0), sq = sx, sqq = sx, sxq = sx;
    for (int i = 0; i < 32; i += 4) {
        f4 v = load4(x + i), q = nearest((v + m) * id, 0, 15);
        sx += v;
        sq += q;
        sqq += q * q;
        sxq += v * q;
    }
    float x1 = sum4(sx), q1 = sum4(sq), qq = sum4(sqq), xq = sum4(sxq), det = 32 * qq - q1 * q1;
    struct fit f = {0};
    if (det > 0) f = (struct fit){(32 * xq - x1 * q1) / det, (q1 * xq - qq * x1) / det, 0};
    if (f.min < 0 || det <= 0) f = (struct fit){qq > 0 && xq > 0 ? xq / qq : 0, 0, 0};
    f.gain = f.scale * xq - f.min * x1;
    return f;
}

enum { RANGES = 9, STEPS = 2 };

/* Searches the best scale and minimum of 32 values. */
static struct fit fit_32(const float *x)
{
    float lo = 0, hi = x[0];
    for (int i = 0; i < 32; i++) {
        if (x[i] < lo) lo = x[i];
        if (x[i] > hi) hi = x[i];
    }
    float range = (hi - lo) / 15;
    struct fit best = {range, -lo, -1};
    if (inverse(range) == 0) return (struct fit){0, -lo, 0};
    for (int r = 0; r < RANGES; r++) {
        struct fit f = {range * (1.05f - 0.05f * (float)r), -lo, 0};
        for (int step = 0; step < STEPS; step++) {
            f = solve(x, f.scale, f.min);
            if (f.gain > best.gain) best = f;
        }
    }
    return best;
}

/* Squared error of 32 values with the best codes for this scale and minimum. */
static float error_of(const float *x, float scale, float min)
{
    f4 sum = all(0), id = all(inverse(scale)), s = all(scale), m = all(min);
    for (int i = 0; i < 32; i += 4) {
        f4 v = load4(x + i) + m, e = s * nearest(v * id, 0, 15) - v;
        sum += e * e;
    }
    return sum4(sum);
}

struct coded {
    int scale, min;
};

/* Codes in 0 .. 63 for the scale and minimum of a fit, with d and dmin given: the best of the nearest codes and their
 * neighbours. */
static struct coded code_fit(const float *x, const struct fit *f, float d, float dmin)
{
    int s = nearest_int(f->scale * inverse(d), 0, 63), m = nearest_int(f->min * inverse(dmin), 0, 63);
    struct coded best = {s, m};
    float least = error_of(x, d * (float)s, dmin * (float)m);
    for (int i = max_int(s - 1, 0); i <= min_int(s + 1, 63); i++)
        for (int j = max_int(m - 1, 0); j <= min_int(m + 1, 63); j++) {
            float error = error_of(x, d * (float)i, dmin * (float)j);
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

static bool q4_k_block(const float *x, uint8_t *out)
{
    struct fit fits[8];
    struct coded codes[8];
    uint8_t code[256];
    float scale = 0, min = 0;
    for (int i = 0; i < 8; i++) {
        fits[i] = fit_32(x + 32 * i);
        if (fits[i].scale > scale) scale = fits[i].scale;
        if (fits[i].min > min) min = fits[i].min;
    }
    float d = half_beyond(scale / 63), dmin = half_beyond(min / 63);
    if (!(d <= HALF_MOST && dmin <= HALF_MOST)) return broken(out, 144, 0);
    for (int i = 0; i < 8; i++) {
        codes[i] = code_fit(x + 32 * i, &fits[i], d, dmin);
        float s = d * (float)codes[i].scale, m = dmin * (float)codes[i].min, id = inverse(s);
        for (int c = 32 * i; c < 32 * i + 32; c++) code[c] = (uint8_t)nearest_int((x[c] + m) * id, 0, 15);
    }
    store_half(out, d);
    store_half(out + 2, dmin);
    store_scales(codes, out + 4);
    for (int g = 0; g < 4; g++)
        for (int c = 0; c < 32; c++) out[16 + 32 * g + c] = (uint8_t)(code[64 * g + c] | code[64 * g + 32 + c] << 4);
    return true;
}

bool quantize_q4_k(const float *x, int n, uint8_t *out)
{
    bool ok = true;
    for (; n > 0; n -= 256, x += 256, out += 144) {
        float most = largest(x, 256);
        if (most - most != 0) ok = broken(out, 144, 0); /* NaN or infinite */
        else ok &= q4_k_block(x, out);
    }
    return ok;
}

/* --- Q6_K: value = scale * code, codes -32 .. 31 -------------------------------------------------------------- */

/* Fits a scale of either sign. At first the largest value gets the code -32, because there is no code 32. Then least
 * squares as in solve(), with one unknown. */
static float fit_16(const float *x)
{
    float range = largest(x, 16) / -32, best = range, most = -1;
    for (int r = -8; r <= 8; r++) {
        f4 id = all(inverse(range * (1 + 0.004f * (float)r))), sxq = all(0), sqq = sxq;
        for (int i = 0; i < 16; i += 4) {
            f4 v = load4(x + i), q = nearest(v * id, -32, 31);
            sxq += v * q;
            sqq += q * q;
        }
        float xq = sum4(sxq), qq = sum4(sqq), scale = qq > 0 ? xq / qq : 0;
        if (scale * xq <= most) continue;
        most = scale * xq;
        best = scale;
    }
    return best;
}

static float error_16(const float *x, float scale)
{
    f4 sum = all(0), id = all(inverse(scale)), s = all(scale);
    for (int i = 0; i < 16; i += 4) {
        f4 v = load4(x + i), e = s * nearest(v * id, -32, 31) - v;
        sum += e * e;
    }
    return sum4(sum);
}

static int code_scale(const float *x, float scale, float d)
{
    int s = nearest_int(scale * inverse(d), -128, 127), best = s;
    float least = error_16(x, d * (float)s);
    for (int i = max_int(s - 1, -128); i <= min_int(s + 1, 127); i++) {
        float error = error_16(x, d * (float)i);
        if (error >= least) continue;
        least = error;
        best = i;
    }
    return best;
}

/* Stores codes in the layout of unpack_q6_k() in dtype.c. */
static void store_six(const uint8_t code[256], uint8_t *out)
{
    for (int half = 0; half < 2; half++)
        for (int j = 0; j < 32; j++) {
            const uint8_t *c = code + half * 128 + j;
            out[half * 64 + j] = (uint8_t)((c[0] & 15) | (c[64] & 15) << 4);
            out[half * 64 + j + 32] = (uint8_t)((c[32] & 15) | (c[96] & 15) << 4);
            out[128 + half * 32 + j] = (uint8_t)(c[0] >> 4 | c[32] >> 4 << 2 | c[64] >> 4 << 4 | c[96] >> 4 << 6);
        }
}

static bool q6_k_block(const float *x, uint8_t *out)
{
    float scales[16];
    uint8_t code[256];
    for (int i = 0; i < 16; i++) scales[i] = fit_16(x + 16 * i);
    float d = half_beyond(largest(scales, 16) / -128);
    if (!(d <= HALF_MOST && d >= -HALF_MOST)) return broken(out, 210, 208);
    for (int i = 0; i < 16; i++) {
        int s = code_scale(x + 16 * i, scales[i], d);
        float id = inverse(d * (float)s);
        for (int c = 16 * i; c < 16 * i + 16; c++) code[c] = (uint8_t)(nearest_int(x[c] * id, -32, 31) + 32);
        out[192 + i] = (uint8_t)(int8_t)s;
    }
    store_six(code, out);
    store_half(out + 208, d);
    return true;
}

bool quantize_q6_k(const float *x, int n, uint8_t *out)
{
    bool ok = true;
    for (; n > 0; n -= 256, x += 256, out += 210) {
        float most = largest(x, 256);
        if (most - most != 0) ok = broken(out, 210, 208);
        else ok &= q6_k_block(x, out);
    }
    return ok;
}

/* --- floats ----------------------------------------------------------------------------------------------------- */

static bool store_f32(const float *x, int n, uint8_t *out)
{
    float most = largest(x, n);
    memcpy(out, x, (size_t)n * sizeof *x);
    return most - most == 0;
}

static bool store_f16(const float *x, int n, uint8_t *out)
{
    float most = largest(x, n);
    for (int i = 0; i < n; i++) store_half(out + 2 * i, x[i]);
    return most < 65520 && most > -65520;
}

/* --- tables ----------------------------------------------------------------------------------------------------- */

quantize_fn *quantizer(const struct dtype *type)
{
    static const struct {
        const char *name;
        quantize_fn *quantize;
    } all_types[] = {{"F32", store_f32},      {"F16", store_f16},      {"Q8_0", quantize_q8_0},
                     {"Q4_0", quantize_q4_0}, {"Q4_K", quantize_q4_k}, {"Q6_K", quantize_q6_k}};
    for (size_t i = 0; i < sizeof all_types / sizeof *all_types; i++)
        if (!strcmp(type->name, all_types[i].name)) return all_types[i].quantize;
    return NULL;
}

void read_floats(const struct dtype *type, const uint8_t *values, int n, float *out)
{
    for (int i = 0; i < n; i++, values += type->bytes)
        out[i] = type->layout == LAYOUT_F32   ? load_f32(values)
                 : type->layout == LAYOUT_F16 ? f32_from_f16(load_u16(values))
                                              : f32_from_bf16(load_u16(values));
}

void quantize_panel(const struct dtype *from, const uint8_t *rows, size_t row_bytes, int n, int cols,
                    const struct dtype *to, uint8_t *panel)
{
    enum { WIDTH = 256 }; /* whole blocks of every type */
    for (int c = 0; c < cols; c += WIDTH) {
        uint8_t blocks[PANEL_ROWS][WIDTH / 32 * 34];
        float x[WIDTH];
        int width = min_int(WIDTH, cols - c);
        for (int r = 0; r < n; r++) {
            const uint8_t *row = rows + (size_t)r * row_bytes + (size_t)c / from->block * from->bytes;
            if (from->block > 1) unpack_row(from, row, width, x);
            else read_floats(from, row, width, x);
            quantize_32(x, width, blocks[r], to->layout == LAYOUT_Q4);
        }
        pack_panel(to, blocks[0], sizeof blocks[0], n, width, panel);
        panel += panel_bytes(to->layout, width);
    }
}
