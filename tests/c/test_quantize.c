/* SPDX-License-Identifier: MIT
 *
 * Blocks made from floats, read back by the second decoder: their distance from the original, compared with a search
 * over all scales where that is possible; and values that no scale suits.
 */
#include "blocks.h"
#include "base/num.h"
#include "weights/quantize.h"

enum { COLS = 256 };

static const char *const names[] = {"Q8_0", "Q4_0", "Q4_K", "Q6_K", "Q5_K", "IQ4_XS"};
enum { KINDS = sizeof names / sizeof *names };

static const struct ref_type *ref_of(const char *name)
{
    for (int i = 0; i < REF_TYPES; i++)
        if (!strcmp(ref_types[i].name, name)) return &ref_types[i];
    CHECK(!"no such type");
    return NULL;
}

/* Quantises a row of COLS columns and reads it back. The bytes have exactly their size, for the sanitizer. */
static bool weighed_there_and_back(const char *name, const float *x, const float *w, float *out)
{
    const struct ref_type *t = ref_of(name);
    uint8_t *blocks = malloc(ref_row_bytes(t, COLS));
    CHECK(blocks != NULL);
    memset(blocks, 0xA5, ref_row_bytes(t, COLS));
    bool ok = quantizer(dtype_by_name(name))(x, w, COLS, blocks);
    ref_row(t, blocks, COLS, out);
    free(blocks);
    return ok;
}

static bool there_and_back(const char *name, const float *x, float *out)
{
    return weighed_there_and_back(name, x, NULL, out);
}

/* A sum of uniform values: nearly normal, like real weights. */
static float bell(uint64_t *seed)
{
    float sum = 0;
    for (int i = 0; i < 6; i++) sum += random_unit(seed);
    return sum;
}

static double square_error(const float *x, const float *y, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    return sum;
}

static double most_of(const float *x, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++) most = fmax(most, fabs((double)x[i]));
    return most;
}

/* --- tests --------------------------------------------------------------------------------------------- */

/* Each value is within the error that the type's steps allow. K types also round their scales, and sacrifice rare
 * values where that pays. */
static void every_value_is_near(void)
{
    /* the widest gap of IQ4_XS's table is 24 of 127 */
    static const double steps[KINDS] = {0.57 / 127, 1.01 / 8, 1.5 / 15, 1.3 / 32, 1.5 / 31, 0.15};
    uint64_t seed = 1;
    for (int k = 0; k < KINDS; k++)
        for (int round = 0; round < 200; round++) {
            float x[COLS], y[COLS];
            double size = ldexp(1, round % 24 - 12);
            for (int i = 0; i < COLS; i++) x[i] = (float)(size * (double)bell(&seed));
            CHECK(there_and_back(names[k], x, y));
            for (int c = 0; c < COLS; c += 32) {
                int from = k < 2 ? c : 0, n = k < 2 ? 32 : COLS;
                double allowed = steps[k] * most_of(x + from, n) * (k < 2 ? 1 : 2) + ldexp(1, -25) * 1024;
                for (int i = c; i < c + 32; i++) CHECK(fabs((double)x[i] - (double)y[i]) <= allowed);
            }
        }
}

/* The mean error of a K type is below this fraction of the values' power. */
static void mean_error(void)
{
    static const double most[KINDS] = {3e-5, 1e-2, 5.0e-3, 3.3e-4, 1.3e-3, 5.5e-3};
    uint64_t seed = 2;
    for (int k = 0; k < KINDS; k++) {
        double error = 0, power = 0;
        for (int round = 0; round < 100; round++) {
            float x[COLS], y[COLS];
            static const float zero[COLS];
            for (int i = 0; i < COLS; i++) x[i] = bell(&seed);
            CHECK(there_and_back(names[k], x, y));
            error += square_error(x, y, COLS);
            power += square_error(x, zero, COLS);
        }
        printf("# %s: %.3g of the power\n", names[k], error / power);
        CHECK(error / power <= most[k]);
    }
}

/* The least squared error of any scale and minimum on a fine grid, with free codes. */
static double best_of_grid(const float *x, int n, bool six)
{
    double lo = 0, hi = 0, best = INFINITY;
    for (int i = 0; i < n; i++) lo = fmin(lo, (double)x[i]), hi = fmax(hi, (double)x[i]);
    double range = six ? fmax(hi, -lo) / 32 : (hi - lo) / 15;
    for (int s = 0; s <= 300; s++)
        for (int m = 0; m <= (six ? 1 : 60); m++) {
            double scale = range * (0.6 + 0.0015 * s) * (six && m ? -1 : 1), min = six ? 0 : -lo * (0.7 + 0.01 * m),
                   sum = 0;
            for (int i = 0; i < n; i++) {
                double q = fmin(fmax(nearbyint(((double)x[i] + min) / scale), six ? -32 : 0), six ? 31 : 15),
                       e = scale * q - min - (double)x[i];
                sum += e * e;
            }
            best = fmin(best, sum);
        }
    return best;
}

/* One part of a block has values, the others are zero: nearly as good as the best of all scales. */
static void near_the_best(void)
{
    uint64_t seed = 3;
    double error[2] = {0}, best[2] = {0};
    for (int six = 0; six < 2; six++) {
        for (int round = 0; round < 24; round++) {
            float x[COLS] = {0}, y[COLS];
            int n = six ? 16 : 32, part = (int)random_below(&seed, (uint64_t)(COLS / n));
            for (int i = 0; i < n; i++) x[part * n + i] = bell(&seed);
            CHECK(there_and_back(six ? "Q6_K" : "Q4_K", x, y));
            double e = square_error(x, y, COLS), b = best_of_grid(x + part * n, n, six);
            CHECK(e <= 1.5 * b);
            error[six] += e, best[six] += b;
        }
        printf("# %s: %.3f of the best error\n", six ? "Q6_K" : "Q4_K", error[six] / best[six]);
        CHECK(error[six] <= 1.06 * best[six]);
    }
}

static void degenerate(void)
{
    static const float sizes[] = {0, 0x1p-149f, 0x1p-130f, 0x1p-126f, 0x1p-30f, 0x1p-14f, 1, 1e5f};
    for (int k = 0; k < KINDS; k++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int shape = 0; shape < 6; shape++) {
                float x[COLS], y[COLS], v = sizes[s];
                for (int i = 0; i < COLS; i++) /* one outlier of either sign, constants, two values, a ramp */
                    x[i] = shape < 2    ? (i == 77 ? (shape ? -v : v) : 0)
                           : shape == 2 ? v
                           : shape == 3 ? -v
                           : shape == 4 ? (i % 2 ? v : -v)
                                        : v * (float)i / 256;
                CHECK(there_and_back(names[k], x, y));
                for (int i = 0; i < COLS; i++)
                    CHECK(fabs((double)x[i] - (double)y[i]) <= (double)v * 0.13 + ldexp(1, -17));
                if (v == 0) for (int i = 0; i < COLS; i++) CHECK(y[i] == 0);
            }
}

/* Values that cannot be represented become NaN and are reported; the row's other blocks do not change. */
static void not_finite(void)
{
    const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 3e9f};
    for (int k = 0; k < KINDS; k++)
        for (size_t o = 0; o < sizeof odd / sizeof *odd; o++)
            for (int at = 0; at < COLS; at += 51) {
                float x[COLS], y[COLS];
                for (int i = 0; i < COLS; i++) x[i] = i == at ? odd[o] : (float)(i % 7) / 8;
                CHECK(!there_and_back(names[k], x, y));
                for (int i = 0; i < COLS; i++) CHECK((y[i] != y[i]) == (k > 1 || i / 32 == at / 32));
            }
}

/* A block's bytes depend on its own values only. */
static void blocks_are_apart(void)
{
    uint64_t seed = 5;
    float x[2 * COLS];
    for (int i = 0; i < 2 * COLS; i++) x[i] = bell(&seed);
    for (int k = 0; k < KINDS; k++) {
        uint8_t both[2 * 272], one[2 * 272];
        size_t bytes = ref_row_bytes(ref_of(names[k]), COLS);
        quantize_fn *quantize = quantizer(dtype_by_name(names[k]));
        CHECK(quantize(x, NULL, 2 * COLS, both) && quantize(x, NULL, COLS, one) &&
              quantize(x + COLS, NULL, COLS, one + bytes));
        CHECK(memcmp(both, one, 2 * bytes) == 0);
    }
    CHECK(quantizer(dtype_by_name("Q2_K")) == NULL);
}

static double weighed_error(const float *x, const float *y, const float *w)
{
    double sum = 0;
    for (int i = 0; i < COLS; i++) sum += (double)w[i] * ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    return sum;
}

/* Where columns count differently, the error that counts gets smaller than without weights, and a type without a search
 * ignores them. Equal weights change nothing. */
static void weights_matter(void)
{
    static const double most[KINDS] = {1, 0.85, 0.85, 0.95, 0.9, 0.85};
    uint64_t seed = 9;
    for (int k = 0; k < KINDS; k++) {
        double with = 0, without = 0;
        for (int round = 0; round < 50; round++) {
            float x[COLS], w[COLS], equal[COLS], y[COLS], z[COLS];
            for (int i = 0; i < COLS; i++) {
                x[i] = bell(&seed);
                w[i] = random_below(&seed, 8) ? 0.05f : 6;
                equal[i] = 1;
            }
            CHECK(there_and_back(names[k], x, y) && weighed_there_and_back(names[k], x, w, z));
            without += weighed_error(x, y, w), with += weighed_error(x, z, w);
            CHECK(weighed_there_and_back(names[k], x, equal, z) && (k == 1 || memcmp(y, z, sizeof y) == 0));
        }
        printf("# %s: %.3f of the error that counts\n", names[k], with / without);
        CHECK(with <= most[k] * without);
    }
}

static void floats_of_all_types(void)
{
    uint64_t seed = 6;
    for (int i = 0; i < 3; i++) {
        uint8_t *row = make_rows(&ref_types[i], BLOCKS_RANDOM, &seed, 1, COLS);
        float x[COLS], y[COLS];
        read_floats(dtype_by_name(ref_types[i].name), row, COLS, x);
        ref_row(&ref_types[i], row, COLS, y);
        CHECK(memcmp(x, y, sizeof x) == 0);
        free(row);
    }
}

/* A panel from any type equals the panel from the floats of the second decoder. */
static void panels_of_all_types(void)
{
    enum { WIDE = 3 * COLS, ROWS = 5 };
    static const char *const targets[] = {"Q8_0", "Q4_0"};
    const struct ref_type *floats = ref_of("F32");
    uint64_t seed = 8;
    for (int i = 0; i < REF_TYPES; i++)
        for (int k = 0; k < 2; k++)
            for (int cols = max_int(32, ref_types[i].columns); cols <= WIDE; cols += COLS) {
                const struct ref_type *t = &ref_types[i];
                const struct dtype *to = dtype_by_name(targets[k]), *f32 = dtype_by_name(floats->name);
                size_t size = panel_bytes(to->layout, cols), row_bytes = ref_row_bytes(t, cols);
                uint8_t *rows = make_rows(t, BLOCKS_RANDOM, &seed, ROWS, cols), *panel = malloc(size),
                        *wanted = malloc(size);
                float *x = malloc(ROWS * (size_t)cols * sizeof *x);
                CHECK(panel && wanted && x);
                for (int r = 0; r < ROWS; r++) ref_row(t, rows + (size_t)r * row_bytes, cols, x + r * cols);
                quantize_panel(dtype_by_name(t->name), rows, row_bytes, ROWS, cols, to, panel);
                quantize_panel(f32, (const uint8_t *)x, (size_t)cols * sizeof *x, ROWS, cols, to, wanted);
                if (memcmp(panel, wanted, size) != 0) printf("# %s to %s, %d columns\n", t->name, to->name, cols);
                CHECK(memcmp(panel, wanted, size) == 0);
                free(rows), free(panel), free(wanted), free(x);
            }
}

static void floats_as_they_are(void)
{
    uint64_t seed = 7;
    float x[COLS], y[COLS];
    for (int i = 0; i < COLS; i++) x[i] = bell(&seed);
    CHECK(there_and_back("F32", x, y) && memcmp(x, y, sizeof x) == 0);
    for (int i = 0; i < COLS; i++) x[i] = f32_from_f16(f16_from_f32(x[i]));
    CHECK(there_and_back("F16", x, y) && memcmp(x, y, sizeof x) == 0);
    x[9] = 65519;
    CHECK(there_and_back("F16", x, y) && y[9] == 65504);
    x[9] = -65520;
    CHECK(there_and_back("F32", x, y) && !there_and_back("F16", x, y));
    x[9] = NAN;
    CHECK(!there_and_back("F32", x, y) && !there_and_back("F16", x, y));
}

static const struct check tests[] = {
    {"every_value_is_near", every_value_is_near},
    {"mean_error", mean_error},
    {"near_the_best", near_the_best},
    {"degenerate", degenerate},
    {"not_finite", not_finite},
    {"weights_matter", weights_matter},
    {"blocks_are_apart", blocks_are_apart},
    {"floats_of_all_types", floats_of_all_types},
    {"panels_of_all_types", panels_of_all_types},
    {"floats_as_they_are", floats_as_they_are},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
