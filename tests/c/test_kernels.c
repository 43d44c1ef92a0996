/* SPDX-License-Identifier: MIT
 *
 * Every kernel of the SIMD table against the scalar one, to the bit, in the manner of checkasm: all layouts, odd sizes,
 * adversarial inputs, guard bytes around every output. The scalar kernels themselves are checked against the rules
 * (MODEL.md, "Arithmetic") written once more over the file's own blocks, and against double precision.
 */
#include "blocks.h"
#include "compute/cpu/kernels.h"
#include "base/num.h"

#include <float.h>

static struct kernels simd;

/* --- comparing ----------------------------------------------------------------------------------------- */

enum { GUARD = 64, GUARD_BYTE = 0xA5 };

/* Two outputs of `size` bytes with guards around them, filled with the same bytes. */
struct pair {
    uint8_t *a, *b;
    size_t size;
};

static struct pair pair_new(size_t size, const void *contents)
{
    struct pair p = {malloc(size + 2 * GUARD), malloc(size + 2 * GUARD), size};
    CHECK(p.a && p.b);
    memset(p.a, GUARD_BYTE, size + 2 * GUARD);
    p.a += GUARD;
    if (contents) memcpy(p.a, contents, size);
    p.b += GUARD;
    memcpy(p.b - GUARD, p.a - GUARD, size + 2 * GUARD);
    return p;
}

static void pair_free(struct pair *p)
{
    free(p->a - GUARD);
    free(p->b - GUARD);
}

static bool guards_intact(const uint8_t *p, size_t size)
{
    for (size_t i = 0; i < GUARD; i++)
        if (p[i - GUARD] != GUARD_BYTE || p[size + i] != GUARD_BYTE) return false;
    return true;
}

static bool same_float(float a, float b) { return (a != a && b != b) || bits_from_f32(a) == bits_from_f32(b); }

/* Equal bits; any NaN equals any NaN. */
static void check_floats(const char *what, const struct pair *p)
{
    const float *a = (const float *)(void *)p->a, *b = (const float *)(void *)p->b;
    for (size_t i = 0; i < p->size / sizeof *a; i++) {
        if (!same_float(a[i], b[i]))
            printf("# %s: element %zu is %a, scalar %a\n", what, i, (double)b[i], (double)a[i]);
        CHECK(same_float(a[i], b[i]));
    }
    CHECK(guards_intact(p->a, p->size) && guards_intact(p->b, p->size));
}

static void check_bytes(const struct pair *p)
{
    CHECK_EQ(memcmp(p->a, p->b, p->size), 0);
    CHECK(guards_intact(p->a, p->size) && guards_intact(p->b, p->size));
}

/* --- inputs ---------------------------------------------------------------------------------------------- */

enum floats {
    FLOATS_UNIT,
    FLOATS_ZERO,
    FLOATS_MINUS_ZERO,
    FLOATS_EQUAL,
    FLOATS_ALTERNATE,
    FLOATS_DENORMAL,
    FLOATS_TINY,
    FLOATS_HUGE,
    FLOATS_WIDE,
    FLOATS_NAN,
    FLOATS_INFINITE,
    FLOATS_BITS,
    FLOATS_KINDS
};

static float make_float(enum floats how, uint64_t *seed, int i)
{
    float unit = random_unit(seed);
    switch (how) {
    case FLOATS_ZERO: return 0;
    case FLOATS_MINUS_ZERO: return -0.0f;
    case FLOATS_EQUAL: return 1;
    case FLOATS_ALTERNATE: return i % 2 ? -3.5f : 3.5f;
    case FLOATS_DENORMAL: return unit * 1e-38f * (i % 3 ? 1 : 1e-6f);
    /* scales of a unit or two: quotients far above 127 */
    case FLOATS_TINY: return copysignf(f32_from_bits((uint32_t)random_below(seed, 300)), unit);
    case FLOATS_HUGE: return i % 5 ? unit * FLT_MAX : FLT_MAX;
    case FLOATS_WIDE: return ldexpf(unit, random_below(seed, 60) - 40);
    case FLOATS_NAN: return i % 37 == 36 ? NAN : unit;
    case FLOATS_INFINITE: return i % 37 == 36 ? copysignf(INFINITY, unit) : unit;
    case FLOATS_BITS: return f32_from_bits((uint32_t)(random_next(seed) >> 32));
    default: return unit;
    }
}

static float *make_floats(enum floats how, uint64_t *seed, int n)
{
    float *out = malloc((size_t)n * sizeof *out);
    CHECK(out != NULL);
    for (int i = 0; i < n; i++) out[i] = make_float(how, seed, i);
    return out;
}

static bool finite_kind(enum floats how) { return how != FLOATS_NAN && how != FLOATS_INFINITE && how != FLOATS_BITS; }

/* Rows of activations, quantised if their width allows it. */
enum { ACT_ROWS = 12 }; /* few, many, and full tiles of each height */

static struct act act_new(enum floats how, uint64_t *seed, int cols)
{
    size_t cells = (size_t)(ACT_ROWS * cols), blocks = cells / BLOCK;
    float *x = make_floats(how, seed, (int)cells);
    struct act a = {.x = x, .cols = cols};
    if (cols % BLOCK) return a;
    int8_t *code = malloc(cells);
    float *scale = malloc(blocks * sizeof *scale);
    int16_t *sum = malloc(2 * blocks * sizeof *sum);
    CHECK(code && scale && sum);
    kernels_scalar.quantize(x, (int)cells, code, scale, sum);
    a.code = code, a.scale = scale, a.sum = sum;
    return a;
}

static void act_free(struct act *a)
{
    free((void *)a->x);
    free((void *)a->code);
    free((void *)a->scale);
    free((void *)a->sum);
}

/* --- products -------------------------------------------------------------------------------------------- */

/* MODEL.md's arithmetic over the file's blocks: row `r` of the file times row t of the activations. */
static float rule_product(const struct ref_type *t, const uint8_t *row, const struct act *a, int token)
{
    struct ref_block b;
    float products = 0, mins = 0;
    bool has_mins = t->halves[0] != t->halves[1];
    for (int c = 0; c < a->cols; c += BLOCK) {
        const int8_t *q = a->code + token * a->cols + c;
        float xs = a->scale[(token * a->cols + c) / BLOCK];
        int isum[2] = {0}, msum = 0, from = c % t->columns;
        if (!from) t->read(row + c / t->columns * t->bytes, &b);
        for (int i = 0; i < BLOCK; i++) {
            isum[i / 16] += b.code[from + i] * q[i];
            msum += b.min[(from + i) / 16] * q[i];
        }
        float whole = (float)b.scale[from / 16] * (float)isum[0] + (float)b.scale[from / 16 + 1] * (float)isum[1];
        products += whole * ((float)b.d * xs);
        mins += (float)msum * ((float)b.dmin * xs);
    }
    return !has_mins ? products : t->adds ? products + mins : products - mins;
}

static float float_product(const struct ref_type *t, const uint8_t *row, const struct act *a, int token)
{
    float y = 0, w;
    for (int c = 0; c < a->cols; c++) {
        ref_values(t, row + c * t->bytes, &w);
        y += w * a->x[token * a->cols + c];
    }
    return y;
}

/* The sum in double of the exact values of weights and activations; *magnitude: the sum of absolute values. */
static double exact_product(const struct ref_type *t, const uint8_t *row, const struct act *a, int token,
                            double *magnitude)
{
    float *w = malloc((size_t)a->cols * sizeof *w);
    double y = 0;
    *magnitude = 0;
    ref_row(t, row, a->cols, w);
    for (int c = 0; c < a->cols; c++) {
        int at = token * a->cols + c;
        double x = t->read ? (double)a->scale[at / BLOCK] * a->code[at] : (double)a->x[at];
        y += (double)w[c] * x;
        *magnitude += fabs((double)w[c] * x);
    }
    free(w);
    return y;
}

struct gemm_case {
    const struct ref_type *t;
    enum hostility blocks;
    enum floats floats;
    int cols, n_rows; /* rows of the file in the panel */
};

/* Compares with the rules to the bit; in tame cases with double too. */
static void check_reference(const struct gemm_case *g, const uint8_t *rows, const struct act *a, int token, int n,
                            const float *out)
{
    size_t row_bytes = ref_row_bytes(g->t, g->cols);
    for (int i = 0; i < n * g->n_rows; i++) {
        int r = i % g->n_rows, t = token + i / g->n_rows;
        const uint8_t *row = rows + (size_t)r * row_bytes;
        float y = out[i / g->n_rows * PANEL_ROWS + r];
        float rule = g->t->read ? rule_product(g->t, row, a, t) : float_product(g->t, row, a, t);
        if (!same_float(y, rule))
            printf("# %s, %d columns: %a, by the rules %a\n", g->t->name, g->cols, (double)y, (double)rule);
        CHECK(same_float(y, rule));
        if (hostile(g->blocks) || g->floats != FLOATS_UNIT) continue;
        double magnitude, exact = exact_product(g->t, row, a, t, &magnitude);
        CHECK(fabs((double)y - exact) <= 1e-6 * magnitude);
    }
}

/* Whether a product of n rows reads the packed panel. */
static bool is_packed(enum layout layout, int n) { return !simd.expand[layout] || simd.few[rows_kind(n)][layout]; }

/* The product of n rows as the backend computes it: activations arranged, the panel expanded if rows are many. */
static void simd_product(enum layout layout, const uint8_t *panel, struct act *a, int row, int n, float *out)
{
    size_t blocks = ((size_t)a->cols + BLOCK - 1) / BLOCK;
    enum form form = simd.form[rows_kind(n)][layout];
    uint8_t *tiles = malloc(ACT_ROWS * blocks * simd.arranged[form]), *expanded = malloc(blocks * simd.expanded);
    gemv_fn *packed = n == 1 ? simd.gemv[IN_TURN][layout] : simd.few[rows_kind(n)][layout];
    a->tiles[form] = tiles;
    if (!is_packed(layout, n)) simd.expand[layout](panel, a->cols, expanded);
    for (int t = 0, height; t < n; t += height) {
        height = tile_rows(&simd, layout, n, n - t);
        if (layouts[layout].kind != KIND_FLOAT)
            simd.arrange[form](a, row + t, height, tiles + (size_t)(row + t) * blocks * simd.arranged[form]);
        if (packed) packed(panel, 0, 1, a, row + t, height, out + t * PANEL_ROWS);
        else simd.gemm[layout](is_packed(layout, n) ? panel : expanded, a, row + t, height, out + t * PANEL_ROWS);
    }
    a->tiles[form] = NULL;
    free(tiles);
    free(expanded);
}

static void scalar_product(enum layout layout, const uint8_t *panel, const struct act *a, int row, int n, float *out)
{
    for (int t = 0; t < n; t++) kernels_scalar.gemm[layout](panel, a, row + t, 1, out + t * PANEL_ROWS);
}

/* Checks n rows somewhere in the activations. */
static void gemm_one(const struct gemm_case *g, uint64_t *seed, int n)
{
    const struct dtype *type = dtype_by_gguf(g->t->gguf_id);
    uint8_t *rows = make_rows(g->t, g->blocks, seed, g->n_rows, g->cols),
            *panel = calloc(1, panel_bytes(type->layout, g->cols));
    pack_panel(type, rows, ref_row_bytes(g->t, g->cols), g->n_rows, g->cols, panel);
    struct act a = act_new(g->floats, seed, g->cols);
    int row = random_below(seed, ACT_ROWS - n + 1);
    struct pair out = pair_new((size_t)(n * PANEL_ROWS) * sizeof(float), NULL);
    scalar_product(type->layout, panel, &a, row, n, (float *)(void *)out.a);
    simd_product(type->layout, panel, &a, row, n, (float *)(void *)out.b);
    check_floats(g->t->name, &out);
    /* needed once only: all kinds of dots give the same result */
    if (simd.dots == 0) check_reference(g, rows, &a, row, n, (const float *)(void *)out.a);
    pair_free(&out);
    act_free(&a);
    free(rows);
    free(panel);
}

/* out [STREAMS, height, 8]: n panels of one kernel call; the others must be untouched. */
static void check_panels(const struct gemm_case *g, gemv_fn *kernel, const uint8_t *panels, const struct act *a,
                         int row, int height, int n)
{
    enum layout layout = dtype_by_gguf(g->t->gguf_id)->layout;
    size_t bytes = panel_bytes(layout, g->cols), size = (size_t)(height * PANEL_ROWS) * sizeof(float);
    struct pair out = pair_new(STREAMS * size, NULL);
    for (size_t i = 0; i < STREAMS; i++)
        scalar_product(layout, panels + i * bytes, a, row, height, (float *)(void *)(out.a + i * size));
    memset(out.b, 0xFF, STREAMS * size);
    kernel(panels, bytes, n, a, row, height, (float *)(void *)out.b);
    memcpy(out.b + (size_t)n * size, out.a + (size_t)n * size, (size_t)(STREAMS - n) * size);
    check_floats(g->t->name, &out);
    pair_free(&out);
}

/* Several panels at once give a row, and a tile of few rows, the same as each panel alone. */
static void panels_at_once(const struct gemm_case *g, uint64_t *seed)
{
    enum layout layout = dtype_by_gguf(g->t->gguf_id)->layout;
    size_t bytes = panel_bytes(layout, g->cols);
    uint8_t *panels = malloc(STREAMS * bytes);
    for (int i = 0; i < STREAMS; i++) {
        uint8_t *rows = make_rows(g->t, g->blocks, seed, g->n_rows, g->cols);
        pack_panel(dtype_by_gguf(g->t->gguf_id), rows, ref_row_bytes(g->t, g->cols), g->n_rows, g->cols,
                   panels + (size_t)i * bytes);
        free(rows);
    }
    struct act a = act_new(g->floats, seed, g->cols);
    for (int height = 1; height <= FEW_TILE; height++) {
        if (height > 1 && !simd.few[height][layout]) continue;
        enum form form = simd.form[height][layout];
        int row = random_below(seed, ACT_ROWS - height + 1);
        size_t tile = ((size_t)g->cols + BLOCK - 1) / BLOCK * simd.arranged[form];
        uint8_t *tiles = malloc(ACT_ROWS * tile);
        if (layouts[layout].kind != KIND_FLOAT) simd.arrange[form](&a, row, height, tiles + (size_t)row * tile);
        a.tiles[form] = tiles;
        for (int order = 0; order < ORDERS; order++) {
            int most = height > 1 ? simd.few_at_once[layout] : STREAMS,
                n = order == TOGETHER ? most : 1 + random_below(seed, most);
            check_panels(g, height > 1 ? simd.few[height][layout] : simd.gemv[order][layout], panels, &a, row, height,
                         n);
        }
        a.tiles[form] = NULL;
        free(tiles);
    }
    act_free(&a);
    free(panels);
}

/* Widths of 1 to 8 blocks in turn, then rows of 4,096 columns. Floats also have widths that no block divides. Every
 * number of rows occurs. */
static void gemm_type(const struct ref_type *t)
{
    static const int blocks[] = {1, 2, 3, 5, 8}, widths[] = {1, 3, 20, 31, 257};
    uint64_t seed = 7;
    int count = 0;
    for (int how = 0; how < BLOCKS_KINDS; how++)
        for (int floats = 0; floats < FLOATS_KINDS; floats++) {
            for (size_t i = (size_t)(how + floats) % check_every(5); i < 5; i += check_every(5)) {
                int cols = t->read ? blocks[i] * t->columns : widths[i];
                struct gemm_case g = {t, how, floats, cols, 1 + random_below(&seed, PANEL_ROWS)};
                for (int n = 0; n < 2; n++) gemm_one(&g, &seed, 1 + count++ % ACT_ROWS);
                if (cols <= 1024) panels_at_once(&g, &seed); /* eight panels; three of the largest blocks */
            }
            if (floats == FLOATS_EQUAL)
                gemm_one(&(struct gemm_case){t, how, floats, 4096, PANEL_ROWS}, &seed, 1 + count++ % ACT_ROWS);
        }
}

/* For every kind of byte dots. */
static void gemm(void)
{
    for (int dots = 0; dots < DOTS_COUNT; dots++) {
        simd = kernels_simd((enum dots)dots);
        CHECK_EQ(simd.dots, dots);
        for (int i = 0; i < REF_TYPES; i++) gemm_type(&ref_types[i]);
    }
}

/* The largest sums of a block stay exact, in tiles of every height: largest codes (for Q8_0 also -128), scales and
 * activations of one sign. */
static void largest_sums(void)
{
    uint64_t seed = 3;
    for (int dots = 0; dots < DOTS_COUNT; dots++) {
        simd = kernels_simd((enum dots)dots);
        for (int i = 0; i < REF_TYPES; i++)
            for (int how = BLOCKS_FULL; how <= BLOCKS_LOW; how++)
                for (int n = 1; n <= ACT_ROWS; n++)
                    gemm_one(&(struct gemm_case){&ref_types[i], how, FLOATS_EQUAL, 512, PANEL_ROWS}, &seed, n);
    }
}

/* Writes blocks of small codes as blocks of Q4_0 with the same values. */
static uint8_t *as_q4_0(const struct ref_type *t, const uint8_t *row, int cols)
{
    uint8_t *out = calloc((size_t)cols / BLOCK, 18), *to = out;
    struct ref_block b;
    CHECK(out != NULL);
    for (int c = 0; c < cols; c += BLOCK, to += 18) {
        const uint8_t *from = row + c / t->columns * t->bytes;
        t->read(from, &b);
        memcpy(to, from + t->halves[0], 2);
        for (int i = 0; i < BLOCK; i++) to[2 + i % 16] |= (uint8_t)((b.code[c % t->columns + i] + 8) << i / 16 * 4);
    }
    return out;
}

/* Codes of 1 and 2 bits give what Q4_0 gives for the same weights. */
static void small_codes_are_q4_0(void)
{
    enum { Q1_0 = 41, Q2_0 = 42, COLS = 384 };
    const struct dtype *q4 = dtype_by_name("Q4_0");
    uint64_t seed = 11;
    for (int i = 0; i < REF_TYPES; i++) {
        const struct ref_type *t = &ref_types[i];
        if (t->gguf_id != Q1_0 && t->gguf_id != Q2_0) continue;
        const struct dtype *type = dtype_by_gguf(t->gguf_id);
        uint8_t *row = make_rows(t, BLOCKS_RANDOM, &seed, 1, COLS), *same = as_q4_0(t, row, COLS),
                *panel = malloc(panel_bytes(type->layout, COLS)), *wide = malloc(panel_bytes(q4->layout, COLS));
        struct act a = act_new(FLOATS_UNIT, &seed, COLS);
        pack_panel(type, row, ref_row_bytes(t, COLS), 1, COLS, panel);
        pack_panel(q4, same, COLS / BLOCK * 18, 1, COLS, wide);
        for (int dots = 0; dots < DOTS_COUNT; dots++) {
            simd = kernels_simd((enum dots)dots);
            for (int n = 1; n <= ACT_ROWS; n++) {
                struct pair out = pair_new((size_t)(n * PANEL_ROWS) * sizeof(float), NULL);
                simd_product(q4->layout, wide, &a, 0, n, (float *)(void *)out.a);
                simd_product(type->layout, panel, &a, 0, n, (float *)(void *)out.b);
                check_floats(t->name, &out);
                pair_free(&out);
            }
        }
        act_free(&a);
        free(row), free(same), free(panel), free(wide);
    }
}

/* Tiles are as few as possible and differ by one row at most: 3 is 3, 5 is 3 + 2, 7 is 4 + 3, 8 is 4 + 4. */
static void tile_heights(void)
{
    for (int i = 0; i < 2 * DOTS_COUNT; i++) {
        struct kernels k = kernels_simd((enum dots)(i / 2));
        enum layout layout = i % 2 ? LAYOUT_F16 : LAYOUT_Q4;
        for (int n = 1; n < 100; n++) {
            int few = n > FEW_MOST ? k.tile : FEW_TILE, most = i % 2 ? FLOAT_TILE : few;
            int left = n, tiles = 0, first = tile_rows(&k, layout, n, n);
            for (int height; left > 0; left -= height, tiles++) {
                height = tile_rows(&k, layout, n, left);
                CHECK(height <= left && height <= first && height >= first - 1);
                CHECK(height <= most && height >= min_int(n, most / 2));
            }
            CHECK_EQ(left, 0);
            CHECK_EQ(tiles, (n + most - 1) / most);
        }
    }
}

/* Native builds model the byte dots of VNNI; the probe must detect that. */
static void probe(void) { CHECK_EQ(dots_probe(), DOTS_U8); }

/* --- quantize --------------------------------------------------------------------------------------------- */

static void check_block(const float *x, const int8_t *code, float scale, const int16_t *sum)
{
    float amax = 0;
    bool finite = true;
    for (int i = 0; i < BLOCK; i++) {
        finite &= isfinite(x[i]) != 0;
        amax = fmaxf(amax, fabsf(x[i]));
    }
    CHECK(finite ? bits_from_f32(scale) == bits_from_f32(amax / 127.0f) : scale != scale);
    int sums[2] = {0, 0};
    for (int i = 0; i < BLOCK; i++) {
        float v = finite && scale > 0 ? rintf(fminf(fmaxf(x[i] / scale, -127), 127)) : 0; /* rintf: half to even */
        CHECK_EQ(code[i], (int)v);
        sums[i / 16] += code[i];
    }
    CHECK(sums[0] == sum[0] && sums[1] == sum[1]);
}

static void quantize_one(const float *x, int cols)
{
    struct pair code = pair_new((size_t)cols, NULL), scale = pair_new((size_t)cols / BLOCK * 4, NULL),
                sum = pair_new((size_t)cols / 16 * 2, NULL);
    kernels_scalar.quantize(x, cols, (int8_t *)code.a, (float *)(void *)scale.a, (int16_t *)(void *)sum.a);
    simd.quantize(x, cols, (int8_t *)code.b, (float *)(void *)scale.b, (int16_t *)(void *)sum.b);
    check_bytes(&code);
    check_floats("scale", &scale);
    check_bytes(&sum);
    for (int b = 0; b < cols / BLOCK; b++) {
        float s;
        memcpy(&s, scale.a + 4 * b, 4);
        check_block(x + b * BLOCK, (int8_t *)code.a + b * BLOCK, s, (int16_t *)(void *)sum.a + 2 * b);
    }
    pair_free(&code);
    pair_free(&scale);
    pair_free(&sum);
}

static void quantize(void)
{
    uint64_t seed = 11;
    for (int how = 0; how < FLOATS_KINDS; how++)
        for (int blocks = 1; blocks <= 128; blocks += blocks < 8 ? 1 : 24) {
            float *x = make_floats(how, &seed, blocks * BLOCK);
            quantize_one(x, blocks * BLOCK);
            free(x);
        }
}

/* If the largest value is 127, the scale is 1, and halves lie between two codes. */
static void quantize_ties(void)
{
    float x[BLOCK * 8];
    for (int i = 0; i < BLOCK * 8; i++) x[i] = i % BLOCK ? (float)(i - BLOCK * 4) * 0.5f : 127;
    quantize_one(x, BLOCK * 8);
}

/* --- rows -------------------------------------------------------------------------------------------------- */

/* 1 to 40 and a few larger sizes: every remainder of every vector width. */
#define EACH_SIZE(n) for (int n = 1; n <= 4096; n = n < 40 ? n + 1 : n * 5 / 2 + 1)

static void rmsnorm_one(enum floats how, uint64_t *seed, int n)
{
    float *x = make_floats(how, seed, n), *w = make_floats(FLOATS_UNIT, seed, n);
    struct pair y = pair_new((size_t)n * 4, NULL), own = pair_new((size_t)n * 4, x);
    kernels_scalar.rmsnorm((float *)(void *)y.a, x, w, n, 1e-6f);
    simd.rmsnorm((float *)(void *)y.b, x, w, n, 1e-6f);
    check_floats("rmsnorm", &y);
    kernels_scalar.rmsnorm((float *)(void *)own.a, (float *)(void *)own.a, w, n, 1e-6f);
    simd.rmsnorm((float *)(void *)own.b, (float *)(void *)own.b, w, n, 1e-6f);
    check_floats("rmsnorm in place", &own);
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    for (int i = 0; how == FLOATS_UNIT && i < n; i++) {
        double exact = (double)x[i] / sqrt(sum / n + 1e-6) * (double)w[i];
        CHECK(fabs((double)((float *)(void *)y.a)[i] - exact) <= 1e-6 * fabs(exact));
    }
    pair_free(&y);
    pair_free(&own);
    free(x);
    free(w);
}

static void rmsnorm(void)
{
    uint64_t seed = 13;
    for (int how = 0; how < FLOATS_KINDS; how++) EACH_SIZE(n) rmsnorm_one(how, &seed, n);
}

static void rope_one(enum floats how, uint64_t *seed, int half)
{
    float *x = make_floats(how, seed, 2 * half), *cosine = make_floats(FLOATS_UNIT, seed, half),
          *sine = make_floats(FLOATS_UNIT, seed, half);
    struct pair y = pair_new((size_t)half * 8, x);
    kernels_scalar.rope((float *)(void *)y.a, cosine, sine, half);
    simd.rope((float *)(void *)y.b, cosine, sine, half);
    check_floats("rope", &y);
    for (int i = 0; finite_kind(how) && how != FLOATS_HUGE && i < half; i++) {
        const float *out = (const float *)(void *)y.a;
        double a = x[i], b = x[i + half], c = cosine[i], s = sine[i], room = 2e-7 * (fabs(a) + fabs(b)) + 1e-44;
        CHECK(fabs(out[i] - (a * c - b * s)) <= room && fabs(out[i + half] - (b * c + a * s)) <= room);
    }
    pair_free(&y);
    free(x);
    free(cosine);
    free(sine);
}

static void rope(void)
{
    uint64_t seed = 17;
    for (int how = 0; how < FLOATS_KINDS; how++)
        for (int half = 1; half <= 67; half++) rope_one(how, &seed, half);
}

/* Values around both ends of exp, and any others. */
static float gate_value(enum floats how, uint64_t *seed, int i)
{
    return i % 3 ? make_float(how, seed, i) : random_unit(seed) * 100;
}

static void elementwise_one(enum floats how, uint64_t *seed, int n)
{
    float *x = make_floats(how, seed, n), *y = make_floats((enum floats)random_below(seed, FLOATS_KINDS), seed, n);
    struct pair sum = pair_new((size_t)n * 4, x);
    kernels_scalar.add((float *)(void *)sum.a, y, n);
    simd.add((float *)(void *)sum.b, y, n);
    check_floats("add", &sum);
    for (int i = 0; i < n; i++) CHECK(same_float(((float *)(void *)sum.a)[i], x[i] + y[i]));
    float scale = make_float(how, seed, n);
    struct pair scaled = pair_new((size_t)n * 4, x);
    kernels_scalar.add_scaled((float *)(void *)scaled.a, y, scale, n);
    simd.add_scaled((float *)(void *)scaled.b, y, scale, n);
    check_floats("add_scaled", &scaled);
    for (int i = 0; i < n; i++) {
        volatile float product = scale * y[i];
        CHECK(same_float(((float *)(void *)scaled.a)[i], x[i] + product));
    }
    pair_free(&scaled);
    for (int i = 0; i < n; i++) x[i] = gate_value(how, seed, i);
    struct pair gate = pair_new((size_t)n * 4, x);
    kernels_scalar.swiglu((float *)(void *)gate.a, y, n);
    simd.swiglu((float *)(void *)gate.b, y, n);
    check_floats("swiglu", &gate);
    for (int i = 0; i < n; i++) CHECK(same_float(((float *)(void *)gate.a)[i], num_silu(x[i]) * y[i]));
    pair_free(&sum);
    pair_free(&gate);
    free(x);
    free(y);
}

static void elementwise(void)
{
    uint64_t seed = 19;
    for (int how = 0; how < FLOATS_KINDS; how++) EACH_SIZE(n) elementwise_one(how, &seed, n);
    for (int i = 0; i < 1000; i++) elementwise_one(FLOATS_BITS, &seed, 64);
}

/* --- half floats ------------------------------------------------------------------------------------------- */

static void widen_one(const uint16_t *in, int n)
{
    struct pair out = pair_new((size_t)n * 4, NULL);
    kernels_scalar.widen((float *)(void *)out.a, in, n);
    simd.widen((float *)(void *)out.b, in, n);
    check_floats("widen", &out);
    for (int i = 0; i < n; i++) {
        uint8_t bytes[2] = {(uint8_t)in[i], (uint8_t)(in[i] >> 8)};
        CHECK(same_float(((float *)(void *)out.a)[i], (float)ref_half(bytes, 5)));
    }
    pair_free(&out);
}

static void widen(void)
{
    uint16_t *all = malloc(65536 * sizeof *all);
    for (int i = 0; i < 65536; i++) all[i] = (uint16_t)i;
    widen_one(all, 65536);
    for (int n = 1; n <= 40; n++) widen_one(all + 65536 - n, n);
    free(all);
}

static void narrow_one(const float *in, int n)
{
    struct pair out = pair_new((size_t)n * 2, NULL);
    kernels_scalar.narrow((uint16_t *)(void *)out.a, in, n);
    simd.narrow((uint16_t *)(void *)out.b, in, n);
    check_bytes(&out);
    pair_free(&out);
}

/* Every half, the floats next to it and the middle to the next half; then random floats. */
static void narrow(void)
{
    enum { NEAR = 5 };
    float *x = malloc(65536 * NEAR * sizeof *x);
    uint64_t seed = 23;
    for (uint32_t h = 0; h < 65536; h++) {
        uint32_t bits = bits_from_f32(f32_from_f16((uint16_t)h)), middle = (h & 0x7C00 ? 0x1000 : 0) + bits;
        const uint32_t around[NEAR] = {bits - 1, bits, bits + 1, middle, middle + 1};
        for (int i = 0; i < NEAR; i++) x[h * NEAR + (uint32_t)i] = f32_from_bits(around[i]);
    }
    narrow_one(x, 65536 * NEAR);
    for (int i = 0; i < 65536 * NEAR; i++) x[i] = f32_from_bits((uint32_t)(random_next(&seed) >> 32));
    narrow_one(x, 65536 * NEAR);
    for (int n = 1; n <= 40; n++) narrow_one(x + n, n);
    free(x);
}

/* --- attention ----------------------------------------------------------------------------------------------- */

enum { HEAD_MAX = 128 };

/* Queries and pages of one kv head, in every form that kernels take. */
struct small_heads {
    int n, dim, pages;
    int seen[3];     /* positions seen of the last page, for each query; 32 of the others */
    float *q;        /* [n, dim] */
    float *scaled;   /* q * F16_SCALE */
    int8_t *code;    /* q quantised */
    float *scale;
    float *kv;       /* [pages, keys and values, 32 * dim] in page order */
    uint16_t *half;  /* kv narrowed */
    int8_t *kv_code; /* kv quantised */
    float *kv_scale;
};

struct state {
    float max[3], sum[3], acc[3][HEAD_MAX], p[3 * BLOCK];
};

static struct small_heads heads_new(enum floats how, uint64_t *seed, int n, int dim, int pages)
{
    enum floats tame = how == FLOATS_NAN || how == FLOATS_INFINITE ? FLOATS_UNIT : how;
    size_t count = (size_t)(2 * pages * BLOCK * dim);
    struct small_heads h = {.n = n,
                            .dim = dim,
                            .pages = pages,
                            .q = make_floats(tame, seed, n * dim),
                            .kv = make_floats(how, seed, (int)count)};
    int16_t *sum = malloc(count / 8);
    h.scaled = malloc((size_t)(n * dim) * sizeof(float));
    h.half = malloc(count * 2);
    h.code = malloc((size_t)(n * dim));
    h.scale = malloc((size_t)(n * dim) / 8 + 4);
    h.kv_code = malloc(count);
    h.kv_scale = malloc(count / 8);
    for (int t = 0; t < n; t++) h.seen[t] = t == 1 ? random_below(seed, BLOCK + 1) : 1 + random_below(seed, BLOCK);
    if (random_below(seed, 2)) h.seen[1] = h.seen[0];
    for (int i = 0; i < n * dim; i++) h.scaled[i] = h.q[i] * F16_SCALE;
    kernels_scalar.narrow(h.half, h.kv, (int)count);
    if (dim % BLOCK == 0) kernels_scalar.quantize(h.q, n * dim, h.code, h.scale, sum);
    if (dim % BLOCK == 0) kernels_scalar.quantize(h.kv, (int)count, h.kv_code, h.kv_scale, sum);
    free(sum);
    return h;
}

static void heads_free(struct small_heads *h)
{
    void *parts[] = {h->q, h->scaled, h->code, h->scale, h->kv, h->half, h->kv_code, h->kv_scale};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) free(parts[i]);
}

enum source { FORM_F32, FORM_F16, FORM_F16_SPREAD, FORM_F16_IN_REGISTERS, FORM_Q8, SOURCES };

/* Computes the scores of page b, then p * v: one call of each kernel for this form. */
static void attend_page(const struct kernels *k, enum source form, const struct small_heads *h, struct query *q, int b,
                        float *p)
{
    size_t page = (size_t)(BLOCK * h->dim), keys = 2 * (size_t)b * page, values = keys + page;
    float scale = 1.0f / sqrtf((float)h->dim), *floats = malloc(page * sizeof *floats);
    const float *k32 = form == FORM_F32 ? h->kv + keys : floats, *v32 = form == FORM_F32 ? h->kv + values : floats;
    if (form == FORM_F16) k->widen(floats, h->half + keys, (int)page);
    if (form == FORM_F16_SPREAD) k->spread(floats, h->half + keys, (int)page);
    for (int t = 0; t < h->n; t++) q[t].q = form == FORM_F16_SPREAD ? q[t].scaled : h->q + t * h->dim;
    if (form == FORM_F16_IN_REGISTERS) k->scores_f16(p, q, h->n, h->half + keys, h->dim, scale);
    else if (form == FORM_Q8) k->scores_q8(p, q, h->n, h->kv_code + keys, h->kv_scale + keys / BLOCK, h->dim, scale);
    else k->scores(p, q, h->n, k32, h->dim, scale);
    k->soften(p, q, h->n, h->dim);
    if (form == FORM_F16) k->widen(floats, h->half + values, (int)page);
    if (form == FORM_F16_SPREAD) k->spread(floats, h->half + values, (int)page);
    for (int i = 0; form == FORM_F16_SPREAD && i < h->n * BLOCK; i++) p[i] *= F16_SCALE;
    if (form == FORM_Q8) k->dequantize(floats, h->kv_code + values, h->kv_scale + values / BLOCK, BLOCK, h->dim);
    if (form == FORM_F16_IN_REGISTERS) k->values_f16(p, q, h->n, h->half + values, h->dim);
    else k->values(p, q, h->n, v32, h->dim);
    free(floats);
}

static void attend_pages(const struct kernels *k, enum source form, const struct small_heads *h, struct state *s)
{
    struct query q[3];
    for (int t = 0; t < h->n; t++)
        q[t] = (struct query){.q = h->q + t * h->dim,
                              .scaled = h->scaled + t * h->dim,
                              .code = h->code + t * h->dim,
                              .scale = h->scale + t * (h->dim / BLOCK),
                              .acc = s->acc[t],
                              .max = -INFINITY};
    for (int b = 0; b < h->pages; b++) {
        for (int t = 0; t < h->n; t++) q[t].seen = b + 1 < h->pages ? BLOCK : h->seen[t];
        attend_page(k, form, h, q, b, s->p);
    }
    for (int t = 0; t < h->n; t++) s->max[t] = q[t].max, s->sum[t] = q[t].sum;
    memset(s->p, 0, sizeof s->p); /* scratch: its final contents do not matter */
}

/* Checks softmax(q k) v in double, over all positions at once, for query t. */
static void check_attention(const struct state *s, const struct small_heads *h, int t)
{
    int dim = h->dim;
    double weights = 0, out[HEAD_MAX] = {0};
    for (int i = 0; i < (h->pages - 1) * BLOCK + h->seen[t]; i++) {
        const float *k = h->kv + 2 * (i / BLOCK) * BLOCK * dim, *v = k + BLOCK * dim;
        double score = 0;
        for (int d = 0; d < dim; d++) score += (double)h->q[t * dim + d] * (double)k[key_place(i % BLOCK, d, dim)];
        double p = exp(score / sqrt(dim));
        weights += p;
        for (int d = 0; d < dim; d++) out[d] += p * (double)v[value_place(i % BLOCK, d, dim)];
    }
    for (int d = 0; d < dim; d++) CHECK(fabs((double)(s->acc[t][d] / s->sum[t]) - out[d] / weights) <= 2e-6);
}

/* This form needs finite halves, and queries that their factor does not overflow. */
static bool form_takes(enum source form, const struct small_heads *h)
{
    if (form == FORM_Q8) return h->dim % BLOCK == 0;
    if (form != FORM_F16_IN_REGISTERS && form != FORM_F16_SPREAD) return true;
    for (int i = 0; i < h->n * h->dim; i++)
        if (!(fabsf(h->scaled[i]) < INFINITY)) return false;
    for (int i = 0; i < 2 * h->pages * BLOCK * h->dim; i++)
        if ((h->half[i] & 0x7C00) == 0x7C00) return false;
    return form == FORM_F16_SPREAD || h->dim % 16 == 0;
}

static void attend_one(enum floats how, uint64_t *seed, int n, int dim)
{
    struct small_heads h = heads_new(how, seed, n, dim, 3);
    const struct state start = {.p = {0}};
    for (int form = 0; form < SOURCES; form++) {
        if (!form_takes(form, &h)) continue;
        struct pair s = pair_new(sizeof start, &start);
        attend_pages(&kernels_scalar, form == FORM_F16_IN_REGISTERS || form == FORM_F16_SPREAD ? FORM_F16 : form, &h,
                     (struct state *)(void *)s.a);
        attend_pages(&simd, form, &h, (struct state *)(void *)s.b);
        check_floats("attend", &s);
        for (int t = 0; t < n && how == FLOATS_UNIT && form == FORM_F32; t++)
            check_attention((struct state *)(void *)s.a, &h, t);
        pair_free(&s);
    }
    heads_free(&h);
}

static void attend(void)
{
    static const int dims[] = {2, 14, 16, 20, 32, 64, 80, 128};
    uint64_t seed = 29;
    for (int how = 0; how < FLOATS_KINDS; how++)
        for (int round = 0; round < 12; round++)
            for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) attend_one(how, &seed, 1 + round % 3, dims[i]);
}

/* Every element of a page has its own place, in any dimension. */
static void places(void)
{
    for (int dim = 1; dim <= HEAD_MAX; dim++) {
        uint8_t key[BLOCK * HEAD_MAX] = {0}, value[BLOCK * HEAD_MAX] = {0};
        for (int i = 0; i < BLOCK; i++)
            for (int d = 0; d < dim; d++) key[key_place(i, d, dim)]++, value[value_place(i, d, dim)]++;
        for (int i = 0; i < BLOCK * dim; i++) CHECK(key[i] == 1 && value[i] == 1);
    }
}

/* --- the tables ------------------------------------------------------------------------------------------------ */

static void tables_complete(void)
{
    CHECK(!strcmp(kernels_scalar.name, "scalar") && !strcmp(simd.name, "simd"));
    for (int dots = -1; dots < DOTS_COUNT; dots++) {
        struct kernels table = dots < 0 ? kernels_scalar : kernels_simd((enum dots)dots);
        const struct kernels *k = &table;
        for (int layout = LAYOUT_F32; layout < LAYOUT_COUNT; layout++) {
            CHECK(k->gemm[layout] && (dots < 0 || k->gemm[layout] != kernels_scalar.gemm[layout]));
            CHECK(!k->few[ONE_ROW][layout] && !k->few[MANY_ROWS][layout]);
        }
        CHECK(k->quantize && k->rmsnorm && k->rope && k->swiglu && k->add && k->add_scaled && k->widen && k->narrow &&
              k->dequantize);
        CHECK(k->scores && k->scores_q8 && k->soften && k->values && !k->scores_f16 == !k->values_f16 &&
              !k->scores_f16 == !k->spread);
    }
}

static const struct check tests[] = {
    {"tables_complete", tables_complete},
    {"gemm", gemm},
    {"largest_sums", largest_sums},
    {"small_codes_are_q4_0", small_codes_are_q4_0},
    {"tile_heights", tile_heights},
    {"probe", probe},
    {"quantize", quantize},
    {"quantize_ties", quantize_ties},
    {"rmsnorm", rmsnorm},
    {"rope", rope},
    {"elementwise", elementwise},
    {"widen", widen},
    {"narrow", narrow},
    {"places", places},
    {"attend", attend},
};

int main(int argc, char **argv)
{
    simd = kernels_simd(dots_probe());
    return check_run(argc, argv, tests, sizeof tests / sizeof *tests);
}
