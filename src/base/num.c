/* SPDX-License-Identifier: MIT
 *
 * Exp, log, sine and cosine in double precision: range reduction, then the Taylor series, cut where the rest is below
 * 2^-60. Speed does not matter here (a few hundred calls per token); equal results on all machines do.
 */
#include "base/num.h"

static double f64_from_bits(uint64_t bits)
{
    double v;
    __builtin_memcpy(&v, &bits, sizeof v);
    return v;
}

static const double LN2_HI = 0x1.62e42feep-1, LN2_LO = 0x1.a39ef35793c76p-33;
static const double MAGIC = 0x1.8p52; /* adding it rounds to an integer */

/* 1 / k! for k = 2 .. 19 */
static const double inverse_factorial[] = {
    1 / 2.0, 1 / 6.0, 1 / 24.0, 1 / 120.0, 1 / 720.0, 1 / 5040.0, 1 / 40320.0, 1 / 362880.0, 1 / 3628800.0,
    1 / 39916800.0, 1 / 479001600.0, 1 / 6227020800.0, 1 / 87178291200.0, 1 / 1307674368000.0,
    1 / 20922789888000.0, 1 / 355687428096000.0, 1 / 6402373705728000.0, 1 / 121645100408832000.0,
};

double num_exp64(double x)
{
    if (x < -708) return 0;
    if (x > 709) return f64_from_bits(0x7FF0000000000000);
    if (x != x) return x;
    double n = (x * 1.4426950408889634 + MAGIC) - MAGIC;
    double r = x - n * LN2_HI - n * LN2_LO;
    double p = 0;
    for (int k = 12; k >= 0; k--) p = p * r + inverse_factorial[k]; /* to r^14 / 14! */
    p = p * (r * r) + r + 1;
    return p * f64_from_bits((uint64_t)((int64_t)n + 1023) << 52);
}

double num_log64(double x)
{
    uint64_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    int64_t exponent = (int64_t)(bits >> 52) - 1023;
    double m = f64_from_bits((bits & 0xFFFFFFFFFFFFF) | (uint64_t)1023 << 52); /* 1 <= m < 2 */
    if (m > 1.4142135623730951) m *= 0.5, exponent++;
    double s = (m - 1) / (m + 1), s2 = s * s; /* log m = 2 (s + s^3 / 3 + s^5 / 5 ...), |s| <= 0.172 */
    double p = 0;
    for (int k = 23; k >= 1; k -= 2) p = p * s2 + 1.0 / k;
    return (double)exponent * LN2_HI + (2 * s * p + (double)exponent * LN2_LO);
}

/* erf z = 2 / sqrt(pi) * z * e^-zz * (1 + 2zz / 3 + (2zz)^2 / 15 ...). All terms are positive, and they fall once 2k +
 * 1 > 2zz. So after one of these that leaves the sum unchanged, no later term changes it. */
float num_gelu_erf(float x)
{
    double wide = (double)x, z = (wide < 0 ? -wide : wide) * 0.7071067811865476, e = 1;
    if (z < 4) {
        double term = 1, sum = 1, zz2 = 2 * z * z;
        for (int k = 1; k < 48; k++) {
            double last = sum;
            term = term * zz2 / (2 * k + 1);
            sum += term;
            if (sum == last && zz2 < 2 * k + 1) break;
        }
        e = 1.1283791670955126 * z * num_exp64(-z * z) * sum;
    }
    return (float)(0.5 * wide * (1 + (wide < 0 ? -e : e)));
}

/* pi / 2 in three parts. The first has 33 bits, so n times the first part is exact for n < 2^20. */
static const double PIO2_1 = 0x1.921fb544p0, PIO2_2 = 0x1.0b4611a6p-34, PIO2_3 = 0x1.3198a2e037073p-69;

void num_sincos64(double x, double *sine, double *cosine)
{
    double n = (x * 0.6366197723675814 + MAGIC) - MAGIC;
    double r = x - n * PIO2_1;
    r = r - n * PIO2_2;
    r = r - n * PIO2_3;
    double r2 = r * r, s = 0, c = 0;
    for (int k = 17; k >= 1; k -= 2) s = inverse_factorial[k] - s * r2; /* 1/3! - r^2/5! ... */
    for (int k = 16; k >= 0; k -= 2) c = inverse_factorial[k] - c * r2; /* 1/2! - r^2/4! ... */
    s = r - r * r2 * s;
    c = 1 - r2 * c;
    switch ((n == n ? (int64_t)n : 0) & 3) {
    case 0: *sine = s, *cosine = c; break;
    case 1: *sine = c, *cosine = -s; break;
    case 2: *sine = -s, *cosine = -c; break;
    default: *sine = -c, *cosine = s; break;
    }
}
