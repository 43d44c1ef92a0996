/* SPDX-License-Identifier: MIT
 *
 * The products of one row and of few with codes of 1 and 2 bits, by tables of sums: the same sums as kernels_scalar.c.
 *
 * Cutting such codes out of their bytes would cost as much as with codes of 4 bits. But 4 columns of a plane have only
 * 16 combinations of signs. Their sums are computed once for all panels (FORM_TABLES), and one lookup gives the sums of
 * 16 rows. A lookup returns bytes and a sum has 10 bits, so there are two: the lowest 5 bits and the rest. The 8 of a
 * block add up in a byte. No dot product is among this, so all processors run the same kernel.
 *
 * A bit c of a plane stands for a sign s = 2c - 1. Q1's values are its signs; Q2's are c0 + 2 c1 - 1, which is
 * (s0 + 1) / 2 + s1.
 */
#include "compute/cpu/products.h"

/* 16 rows are those of two panels. */
struct pair {
    const uint8_t *panel[2];
};

/* sum [2] = 8 rows each, int16: the signed sums of one plane of a block. */
INLINE void join(vec sum[2], vec low, vec high)
{
    sum[0] = i16_add(i16_from_u8_low(low), i16_shl(i16_from_i8_low(high), 5));
    sum[1] = i16_add(i16_from_u8_high(low), i16_shl(i16_from_i8_high(high), 5));
}

/* sum [16 rows], int16 = the integer sums of a block's values times the row's codes. The codes of a block are 2 * bits
 * vectors. The loop stays a loop: of an unrolled one V8 loads all tables first, and has no registers for them. */
INLINE void block_sums(int16_t *sum, const struct pair *from, size_t at, const uint8_t *x, vec nibble, const int bits)
{
    vec low[2], high[2], out[2];
    const uint8_t *tables = x + TABLES_HEAD, *a = from->panel[0] + at, *b = from->panel[1] + at;
    for (int p = 0; p < bits; p++) low[p] = high[p] = i32_splat(0);
#pragma GCC unroll 1
    for (const uint8_t *end = loop_end(a + 32 * bits); a != end; a += 16, b += 16) {
        vec first = vec_load(a), second = vec_load(b);
        const vec codes[2] = {vec_low_pairs(first, second), vec_high_pairs(first, second)};
        for (int j = 0; j < 2; j++) { /* 8 bytes of each panel: a step of Q1, or one plane of a step of Q2 */
            const int p = bits == 1 ? 0 : j;
            vec even = vec_and(codes[j], nibble), odd = vec_and(u32_shr(codes[j], 4), nibble);
            low[p] = i8_add(low[p], vec_lookup(vec_load(tables), even));
            high[p] = i8_add(high[p], vec_lookup(vec_load(tables + 16), even));
            low[p] = i8_add(low[p], vec_lookup(vec_load(tables + 32), odd));
            high[p] = i8_add(high[p], vec_lookup(vec_load(tables + 48), odd));
            if (bits == 1) tables += 64;
        }
        if (bits == 2) tables += 64;
    }
    join(out, low[0], high[0]);
    if (bits == 2) {
        vec other[2], whole = vec_spread4(x + 4);
        join(other, low[1], high[1]);
        for (int i = 0; i < 2; i++) out[i] = i16_add(i16_shr(i16_add(out[i], whole), 1), other[i]);
    }
    vec_store(sum, out[0]), vec_store(sum + 8, out[1]);
}

/* acc [4 rows each] += sums of blocks * (d * scale of the row's block) */
INLINE void add_scaled(vec acc[4], const int16_t *sums, const struct pair *from, const uint8_t *x, size_t n,
                       const struct half_masks *m)
{
    vec d[4];
    for (int i = 0; i < 2; i++) load_halves(d + 2 * i, from->panel[i], m);
#pragma GCC unroll 1
    for (const int16_t *end = sums + 16 * n; sums != end; sums += 16, x += act_bytes(FORM_TABLES)) {
        vec xs = vec_spread4(x);
        for (int i = 0; i < 4; i++) {
            vec whole = f32_from_i32(i32_from_i16_low(vec_load8(sums + 4 * i)));
            acc[i] = f32_add(acc[i], f32_mul(whole, f32_mul(d[i], xs)));
        }
    }
}

/* acc [4 rows each] = one row times two panels */
INLINE void pair_product(vec acc[4], struct pair from, const uint8_t *x, int cols, const struct half_masks *m,
                         const enum layout layout)
{
    enum { MOST_BLOCKS = 4 };
    const struct layout_info l = layouts[layout];
    const size_t blocks = (size_t)l.columns / BLOCK;
    const vec nibble = i32_kept(0x0F0F0F0F);
    int16_t sums[MOST_BLOCKS * 16];
    for (int i = 0; i < 4; i++) acc[i] = i32_splat(0);
    for (int u = cols / l.columns; u; u--, x += blocks * act_bytes(FORM_TABLES)) {
#pragma GCC unroll 1
        for (size_t b = 0; b < blocks; b++)
            block_sums(sums + 16 * b, &from, (size_t)l.head + b * (size_t)l.block, x + b * act_bytes(FORM_TABLES),
                       nibble, l.bits);
        add_scaled(acc, sums, &from, x, blocks, m);
        for (int i = 0; i < 2; i++) from.panel[i] += l.bytes;
    }
}

/* Reads a word of each line of n bytes, in order. Two streams as short as the panels of a pair come late from memory,
 * because processors fetch only long streams ahead; now they come from the cache. `out` has room for the words' sum. */
INLINE void fetch(const uint8_t *from, size_t n, float *out)
{
    enum { LINE = 64 };
    uint32_t sum = 0;
    for (const uint8_t *end = from + n - n % LINE; from < end; from += LINE) sum += load_u32(from);
    *(volatile uint32_t *)(void *)out = sum;
}

/* out [n, n_rows, 8]. The last panel of an odd number is its own partner. */
INLINE void by_tables(const uint8_t *panels, size_t panel_bytes, int n, const struct act *a, int row, int n_rows,
                      float *out, const enum layout layout)
{
    const size_t tables = (size_t)(a->cols / BLOCK) * act_bytes(FORM_TABLES);
    const struct half_masks m = half_masks_new();
    for (int p = 0; p < n; p += 2) {
        const int last = min_int(p + 1, n - 1);
        const struct pair from = {{panels + (size_t)p * panel_bytes, panels + (size_t)last * panel_bytes}};
        fetch(from.panel[0], (size_t)(last + 1 - p) * panel_bytes, out + PANEL_ROWS * (p * n_rows));
        for (int t = 0; t < n_rows; t++) {
            vec acc[4];
            pair_product(acc, from, a->tiles[FORM_TABLES] + (size_t)(row + t) * tables, a->cols, &m, layout);
            store_two((uint8_t *)(out + PANEL_ROWS * (last * n_rows + t)), acc + 2);
            store_two((uint8_t *)(out + PANEL_ROWS * (p * n_rows + t)), acc);
        }
    }
}

#define BY_TABLES(name, layout) \
    static void name(const uint8_t *panels, size_t panel_bytes, int n, const struct act *a, int row, int n_rows, \
                     float *out) \
    { \
        by_tables(panels, panel_bytes, n, a, row, n_rows, out, layout); \
    }
BY_TABLES(by_tables_q1, LAYOUT_Q1)
BY_TABLES(by_tables_q2, LAYOUT_Q2)

static void set(struct kernels *k, enum layout layout, gemv_fn *kernel)
{
    k->gemv[IN_TURN][layout] = k->gemv[TOGETHER][layout] = kernel;
    for (int n = 2; n <= FEW_MOST; n++) k->few[n][layout] = kernel;
    for (int n = ONE_ROW; n <= FEW_MOST; n++) k->form[n][layout] = FORM_TABLES;
    k->few_at_once[layout] = STREAMS;
}

void tables_simd(struct kernels *k)
{
    set(k, LAYOUT_Q1, by_tables_q1);
    set(k, LAYOUT_Q2, by_tables_q2);
}
