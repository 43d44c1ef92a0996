/* SPDX-License-Identifier: MIT
 *
 * Numbers: every half float against formulas that share nothing with num.h, exp at every float that matters, and the
 * double functions against libm.
 */
#include "check.h"
#include "base/num.h"

#include <float.h>
#include <math.h>

/* --- half floats ------------------------------------------------------------------------------------- */

/* Decodes by the definition of the formats: sign, exponent field of `exponent_bits`, fraction of `fraction_bits`. */
static double decode(uint32_t bits, int exponent_bits, int fraction_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (int)(bits >> fraction_bits & ((1u << exponent_bits) - 1));
    double fraction = (double)(bits & ((1u << fraction_bits) - 1)) / (double)(1u << fraction_bits);
    double sign = bits >> (exponent_bits + fraction_bits) & 1 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(fraction, 1 - bias);
    return sign * ldexp(1 + fraction, exponent - bias);
}

static bool same(float a, double b)
{
    if (b != b) return a != a;
    return (double)a == b && !signbit(a) == !signbit(b);
}

static void widening(void)
{
    for (uint32_t h = 0; h < 65536; h++) {
        CHECK(same(f32_from_f16((uint16_t)h), decode(h, 5, 10)));
        CHECK(same(f32_from_bf16((uint16_t)h), decode(h, 8, 7)));
    }
    CHECK_EQ(bits_from_f32(f32_from_f16(0xFD01)), 0xFFA02000); /* a NaN keeps its payload */
}

static void every_half_returns(void)
{
    for (uint32_t h = 0; h < 65536; h++) {
        bool nan = (h & 0x7C00) == 0x7C00 && (h & 0x3FF);
        CHECK_EQ(f16_from_f32(f32_from_f16((uint16_t)h)), nan ? (h & 0x8000) | 0x7E00 : h);
    }
}

/* Between two neighbours: below the middle the lower one, above it the upper one, in the middle the even one. */
static void narrowing(void)
{
    for (uint32_t h = 0; h < 0x7C00; h++) {
        double low = decode(h, 5, 10), high = h == 0x7BFF ? 65536.0 : decode(h + 1, 5, 10);
        float middle = (float)((low + high) / 2); /* exact: needs one bit more */
        uint32_t even = h % 2 ? h + 1 : h;
        CHECK_EQ(f16_from_f32(middle), even);
        CHECK_EQ(f16_from_f32(-middle), even | 0x8000);
        CHECK_EQ(f16_from_f32(nextafterf(middle, 0)), h);
        CHECK_EQ(f16_from_f32(nextafterf(middle, INFINITY)), h + 1);
        CHECK_EQ(f16_from_f32(nextafterf((float)low, INFINITY)), h);
    }
    CHECK_EQ(f16_from_f32(FLT_MAX), 0x7C00);
    CHECK_EQ(f16_from_f32(-INFINITY), 0xFC00);
    CHECK_EQ(f16_from_f32(FLT_TRUE_MIN), 0);
    CHECK_EQ(f16_from_f32(-FLT_MIN), 0x8000);
    CHECK_EQ(f16_from_f32(NAN) & 0x7FFF, 0x7E00);
}

/* --- exp in f32 -------------------------------------------------------------------------------------- */

static void exp_special(void)
{
    CHECK_EQ(bits_from_f32(num_exp(0.0f)), 0x3F800000);
    CHECK_EQ(bits_from_f32(num_exp(-0.0f)), 0x3F800000);
    CHECK(num_exp(NAN) != num_exp(NAN));
    CHECK_EQ(bits_from_f32(num_exp(-INFINITY)), 0);
    CHECK_EQ(bits_from_f32(num_exp(-FLT_MAX)), 0);
    CHECK_EQ(bits_from_f32(num_exp(-87.34f)), 0);
    CHECK(num_exp(-87.32f) >= FLT_MIN); /* no subnormal result before zero */
    CHECK(num_exp(INFINITY) == INFINITY);
    CHECK(num_exp(88.01f) == INFINITY);
    CHECK(num_exp(87.99f) < INFINITY);
    CHECK_EQ(bits_from_f32(num_exp(FLT_TRUE_MIN)), 0x3F800000);
}

/* Distance in units of the last place of the exact value. */
static double ulps(float x, float y)
{
    double exact = exp((double)x);
    return fabs((double)y - exact) / (ldexp(1, ilogb(exact) - 23));
}

/* Every 64th float of both signs over the whole range; all would be 34 million. */
static void exp_error(void)
{
    double worst = 0;
    float last = 0;
    for (uint32_t bits = 0; f32_from_bits(bits) < 87.3f; bits += 64) {
        float x = f32_from_bits(bits), up = num_exp(x), down = num_exp(-x);
        worst = fmax(worst, fmax(ulps(x, up), ulps(-x, down)));
        last = x;
    }
    CHECK(last > 87.2f);
    if (worst >= 2) printf("# exp is off by %.3f ulp\n", worst);
    CHECK(worst < 2);
}

static void silu(void)
{
    CHECK(num_silu(0.0f) == 0.0f);
    CHECK(num_silu(200.0f) == 200.0f && num_silu(-200.0f) == 0.0f); /* e^200 is infinity, so the quotient is -0 */
    CHECK(num_silu(NAN) != num_silu(NAN));
    for (float x = -80; x < 80; x += 0.0625f) {
        double exact = (double)x / (1 + exp(-(double)x));
        CHECK(fabs((double)num_silu(x) - exact) <= 4e-7 * fabs(exact));
    }
}

/* --- double functions -------------------------------------------------------------------------------- */

/* Twice the rounding error of one operation: the achievable accuracy of a reduced argument and a series. */
static bool nearly(double a, double b) { return fabs(a - b) <= 1e-15 * fabs(b); }

static void exp_double(void)
{
    CHECK(num_exp64(0) == 1);
    CHECK(num_exp64(NAN) != num_exp64(NAN));
    CHECK(num_exp64(-708.5) == 0 && num_exp64(-INFINITY) == 0);
    CHECK(num_exp64(709.5) == INFINITY && num_exp64(INFINITY) == INFINITY);
    for (int i = -70799; i < 70899; i++) CHECK(nearly(num_exp64(i / 100.0), exp(i / 100.0)));
}

static void log_double(void)
{
    CHECK(num_log64(1) == 0);
    for (int i = 1; i < 200000; i++) {
        CHECK(nearly(num_log64(i / 1000.0), log(i / 1000.0)));
        CHECK(
            nearly(num_log64(ldexp(1 + i / 200001.0, i % 2000 - 1000)), log(ldexp(1 + i / 200001.0, i % 2000 - 1000))));
    }
}

/* Near a zero of sine or cosine the error is that of the reduced angle: absolute. */
static bool near(double a, double b) { return fabs(a - b) <= 2.5e-16; }

static void sine_and_cosine(void)
{
    double sine, cosine;
    num_sincos64(0, &sine, &cosine);
    CHECK(sine == 0 && cosine == 1);
    for (int position = 0; position < 1000000; position += 7)
        for (double frequency = 1; frequency > 1e-6; frequency *= 0.0501) {
            double x = position * frequency;
            num_sincos64(x, &sine, &cosine);
            CHECK(near(sine, sin(x)) && near(cosine, cos(x)));
            num_sincos64(-x, &sine, &cosine);
            CHECK(near(sine, sin(-x)) && near(cosine, cos(x)));
        }
}

static const struct check tests[] = {
    {"widening", widening},
    {"every_half_returns", every_half_returns},
    {"narrowing", narrowing},
    {"exp_special", exp_special},
    {"exp_error", exp_error},
    {"silu", silu},
    {"exp_double", exp_double},
    {"log_double", log_double},
    {"sine_and_cosine", sine_and_cosine},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
