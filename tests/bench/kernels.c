/* SPDX-License-Identifier: MIT
 *
 * Measures the product kernels one by one, and a plain read of memory in the same run.
 *
 * "gemv" is one row times 64 Mi weights, limited by memory, with eight panels together and one by one; "N rows" is few
 * rows times as many weights, also in both orders; "gemm" is 64 rows times 1 Mi weights, including expanding, limited
 * by arithmetic. One thread; "read 2" is the read by two threads. Built natively, where main() prints, and as
 * WebAssembly, where kernels.mjs measures. Run it with: make bench-kernels
 */
#include "base/arena.h"
#include "compute/cpu/kernels.h"
#include "base/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLS = 1024, GEMV_PANELS = 8192, GEMM_PANELS = 128, ROWS = 64 };

static const struct {
    const char *type;
    uint32_t gguf_id;
    /* offsets of the scales in a block; the same one twice if there is only one, -1 if they are powers of 2 */
    int halves[2];
} types[] = {
    {"Q8_0", 8, {0, 0}},     {"Q4_0", 2, {0, 0}},      {"Q4_1", 3, {0, 2}},      {"Q5_0", 6, {0, 0}},
    {"Q5_1", 7, {0, 2}},     {"Q2_K", 10, {80, 82}},   {"Q3_K", 11, {108, 108}}, {"Q4_K", 12, {0, 2}},
    {"Q5_K", 13, {0, 2}},    {"Q6_K", 14, {208, 208}}, {"IQ4_NL", 20, {0, 0}},   {"IQ4_XS", 23, {0, 0}},
    {"MXFP4", 39, {-1, -1}}, {"NVFP4", 40, {-1, -1}},  {"Q1_0", 41, {0, 0}},     {"Q2_0", 42, {0, 0}},
    {"F16", 1, {0, 0}},      {"F32", 0, {0, 0}},       {"IQ3_S", 21, {0, 0}},    {"IQ3_XXS", 18, {0, 0}},
    {"IQ2_S", 22, {0, 0}},   {"IQ2_XXS", 16, {0, 0}},  {"IQ1_S", 19, {0, 0}},
};

/* gemv and few rows by order, gemm */
static const struct {
    const char *name;
    int rows;
    enum order order;
} kinds[] = {{"gemv, 8", 1, TOGETHER},   {"gemv, 1", 1, IN_TURN},    {"2 rows, 8", 2, TOGETHER},
             {"2 rows, 1", 2, IN_TURN},  {"3 rows, 8", 3, TOGETHER}, {"3 rows, 1", 3, IN_TURN},
             {"4 rows, 8", 4, TOGETHER}, {"4 rows, 1", 4, IN_TURN},  {"8 rows, 8", 8, TOGETHER},
             {"8 rows, 1", 8, IN_TURN},  {"gemm", ROWS, TOGETHER}};

enum {
    TYPES = sizeof types / sizeof *types,
    READS = 2,
    KINDS = sizeof kinds / sizeof *kinds,
    CASES = READS + KINDS * TYPES
};

static struct {
    struct mem mem;
    struct pool *pool;
    struct kernels k;
    struct act act;
    uint8_t *panels;   /* the weights of each case: the same panel repeated */
    uint8_t *tiles[FORMS], *expanded;
    size_t capacity;
    uint64_t sink[2][8]; /* keeps compilers from removing the reads */
} bench;

/* --- data ---------------------------------------------------------------------------------------------- */

static uint32_t next(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }

static void fill_activations(struct act *a)
{
    size_t cells = (size_t)ROWS * COLS;
    float *x = malloc(cells * sizeof *x);
    int8_t *code = malloc(cells);
    float *scale = malloc(cells / BLOCK * sizeof *scale);
    int16_t *sum = malloc(cells / 16 * sizeof *sum);
    uint32_t state = 1;
    for (size_t i = 0; i < cells; i++) x[i] = (float)(int32_t)next(&state) / 2147483648.0f;
    for (size_t t = 0; t < ROWS; t++)
        kernels_scalar.quantize(x + t * COLS, COLS, code + t * COLS, scale + t * COLS / BLOCK, sum + t * COLS / 16);
    *a = (struct act){.x = x, .code = code, .scale = scale, .sum = sum, .cols = COLS};
}

/* Random blocks, but ordinary numbers in place of halves and floats. */
static void fill_rows(int t, const struct dtype *type, uint8_t *rows, size_t size)
{
    uint32_t state = 2;
    for (size_t i = 0; i < size; i++) rows[i] = (uint8_t)(next(&state) >> 24);
    for (size_t at = 0; at < size; at += type->bytes) {
        uint16_t half = (uint16_t)(0x2C00 | rows[at]);
        if (type->layout == LAYOUT_F32) memcpy(rows + at, &(float){(float)rows[at] / 256}, 4);
        for (int i = 0; i < 2 && type->layout != LAYOUT_F32; i++) {
            if (types[t].halves[i] < 0) rows[at] = 120;
            else memcpy(rows + at + types[t].halves[i], &half, 2);
        }
    }
}

static void fill_panels(int t, const struct dtype *type, int n)
{
    size_t row = (size_t)COLS / type->block * type->bytes, panel = panel_bytes(type->layout, COLS);
    uint8_t *rows = malloc(PANEL_ROWS * row);
    fill_rows(t, type, rows, PANEL_ROWS * row);
    pack_panel(type, rows, row, PANEL_ROWS, COLS, bench.panels);
    for (int i = 1; i < n; i++) memcpy(bench.panels + (size_t)i * panel, bench.panels, panel);
    free(rows);
}

/* --- cases --------------------------------------------------------------------------------------------- */

static void read_part(void *arg, int thread, int n_threads)
{
    (void)arg;
    typedef uint64_t wide __attribute__((vector_size(64)));
    size_t step = bench.capacity / 64 / (size_t)n_threads * 64;
    const uint8_t *from = bench.panels + (size_t)thread * step;
    wide sum = {0};
    for (size_t i = 0; i < step; i += 64) {
        wide v;
        memcpy(&v, from + i, 64);
        sum += v;
    }
    memcpy(bench.sink[thread], &sum, sizeof bench.sink[thread]);
}

/* Runs a kernel over all panels, as the backend does. */
static void run_packed(gemv_fn *kernel, enum layout layout, int rows, int at_once)
{
    size_t panel = panel_bytes(layout, COLS);
    float out[STREAMS * FEW_TILE * PANEL_ROWS];
    for (size_t i = 0; i < GEMV_PANELS; i += (size_t)at_once)
        for (int t = 0, n; t < rows; t += n) {
            n = tile_rows(&bench.k, layout, rows, rows - t);
            kernel(bench.panels + i * panel, panel, at_once, &bench.act, t, n, out);
        }
}

static void run_gemm(enum layout layout, int rows, size_t panels)
{
    float out[TILE * PANEL_ROWS];
    for (size_t i = 0; i < panels; i++) {
        const uint8_t *panel = bench.panels + i * panel_bytes(layout, COLS);
        if (bench.k.expand[layout]) bench.k.expand[layout](panel, COLS, bench.expanded), panel = bench.expanded;
        for (int t = 0, n; t < rows; t += n)
            bench.k.gemm[layout](panel, &bench.act, t, n = tile_rows(&bench.k, layout, rows, rows - t), out);
    }
}

static void run_rows(enum layout layout, int rows, enum order order, size_t panels)
{
    gemv_fn *kernel = rows == 1 ? bench.k.gemv[order][layout] : bench.k.few[rows_kind(rows)][layout];
    if (kernel)
        run_packed(kernel, layout, rows, rows == 1 ? STREAMS : order == TOGETHER ? bench.k.few_at_once[layout] : 1);
    else run_gemm(layout, rows, panels);
}

static enum layout layout_of(int i) { return dtype_by_gguf(types[(i - READS) % TYPES].gguf_id)->layout; }
static int kind_of(int i) { return (i - READS) / TYPES; }
static int rows_of(int i) { return kinds[kind_of(i)].rows; }
static int panels_of(int i) { return rows_of(i) == ROWS ? GEMM_PANELS : GEMV_PANELS; }

static void arrange_rows(int rows)
{
    for (int f = 0; f < FORMS; f++)
        for (int t = 0, n; t < rows && bench.k.arrange[f]; t += n) {
            n = tile_rows(&bench.k, LAYOUT_Q8, rows, rows - t);
            bench.k.arrange[f](&bench.act, t, n, bench.tiles[f] + (size_t)t * (COLS / BLOCK) * bench.k.arranged[f]);
        }
    memcpy(bench.act.tiles, bench.tiles, sizeof bench.tiles);
}

/* --- called by the measuring program: begin once for each case, then run repeatedly --------------------------- */

int kernels_open(int threads)
{
    bench.k = kernels_simd(dots_choose());
    bench.pool = pool_new(&bench.mem, threads);
    bench.capacity = (size_t)GEMV_PANELS * panel_bytes(LAYOUT_F32, COLS) / 2;
    bench.panels = mem_alloc_raw(&bench.mem, bench.capacity);
    for (int f = 0; f < FORMS; f++)
        bench.tiles[f] = mem_alloc_raw(&bench.mem, (size_t)ROWS * COLS / BLOCK * bench.k.arranged[f]);
    bench.expanded = mem_alloc_raw(&bench.mem, COLS / BLOCK * bench.k.expanded);
    fill_activations(&bench.act);
    if (bench.panels) memset(bench.panels, 1, bench.capacity);
    return bench.pool && bench.panels && bench.tiles[FORM_BYTES] && bench.tiles[FORM_WORDS] && bench.expanded ? CASES
                                                                                                              : 0;
}

const char *kernels_variant(void)
{
    static char text[32];
    snprintf(text, sizeof text, "%s, %s", bench.k.name, dots_names[bench.k.dots]);
    return text;
}

const char *kernels_name(int i)
{
    static char text[32];
    if (i < READS) snprintf(text, sizeof text, "read %d", i + 1);
    else snprintf(text, sizeof text, "%s %s", kinds[kind_of(i)].name, types[(i - READS) % TYPES].type);
    return text;
}

/* Returns whether the case exists here: the second read needs a second thread, F32 has half the panels. */
int kernels_begin(int i)
{
    if (i < READS) return i < pool_threads(bench.pool);
    const struct dtype *type = dtype_by_gguf(types[(i - READS) % TYPES].gguf_id);
    if (panels_of(i) == GEMV_PANELS && type->layout == LAYOUT_F32) return 0;
    fill_panels((i - READS) % TYPES, type, panels_of(i));
    arrange_rows(rows_of(i));
    return 1;
}

double kernels_macs(int i)
{
    return i < READS ? 0 : (double)PANEL_ROWS * COLS * panels_of(i) * rows_of(i);
}

double kernels_bytes(int i)
{
    return i < READS ? (double)bench.capacity : (double)panel_bytes(layout_of(i), COLS) * panels_of(i);
}

void kernels_run(int i)
{
    if (i == 0) read_part(NULL, 0, 1);
    else if (i == 1) pool_run(bench.pool, read_part, NULL);
    else run_rows(layout_of(i), rows_of(i), kinds[kind_of(i)].order, (size_t)panels_of(i));
}

#ifndef __EMSCRIPTEN__

#include <time.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Prints one line of JSON for each case, as kernels.mjs does: the best of several runs. */
int main(void)
{
    if (!kernels_open(2)) return 1;
    for (int i = 0; i < CASES; i++) {
        double best = 1e9;
        if (!kernels_begin(i)) continue;
        for (double start = seconds(), before; seconds() - start < 0.5;
             best = seconds() - before < best ? seconds() - before : best) {
            before = seconds();
            kernels_run(i);
        }
        printf("{\"name\":\"%s\",\"gmacs\":%.2f,\"gbs\":%.2f}\n", kernels_name(i), kernels_macs(i) / best / 1e9,
               kernels_bytes(i) / best / 1e9);
    }
    printf("{\"variant\":\"%s\"}\n", kernels_variant());
    return 0;
}

#endif
