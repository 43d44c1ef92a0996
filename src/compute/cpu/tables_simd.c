/* SPDX-License-Identifier: MIT
 *
 * The products of one row and of few with codes of one bit, by tables of sums: the same sums as kernels_scalar.c.
 *
 * Cutting such codes out of their bytes would cost as much as with codes of 4 bits. But 4 columns have only 16
 * combinations of signs. Their sums are computed once for all panels (FORM_TABLES), and one lookup gives the sums of 16
 * rows. A lookup returns bytes and a sum has 10 bits, so there are two: the lowest 5 bits and the rest. The 8 of a
 * block add up in a byte. No dot product is among this, so all processors run the same kernel. With codes of two bits
 * there would be twice as many lookups, and dot products are faster.
 */
#include "compute/cpu/products.h"

/* 16 rows are those of two panels. */
struct pair {
    const uint8_t *panel[2];
};

/* sum [16 rows], int16 = the sums of a block's activation codes with the rows' signs. The codes of a block are 2
 * vectors of each panel. The loop stays a loop: of an unrolled one V8 loads all tables first, and has no registers for
 * them. */
INLINE void block_sums(int16_t *sum, const struct pair *from, size_t at, const uint8_t *tables, vec nibble)
{
    vec low = i32_splat(0), high = low;
    const uint8_t *a = from->panel[0] + at, *b = from->panel[1] + at;
#pragma GCC unroll 1
    for (const uint8_t *end = loop_end(a + 32); a != end; a += 16, b += 16) {
        vec first = vec_load(a), second = vec_load(b);
        const vec codes[2] = {vec_low_pairs(first, second), vec_high_pairs(first, second)};
        for (int j = 0; j < 2; j++, tables += 64) { /* a step: 8 bytes of each panel */
            vec even = vec_and(codes[j], nibble), odd = vec_and(u32_shr(codes[j], 4), nibble);
            low = i8_add(low, vec_lookup(vec_load(tables), even));
            high = i8_add(high, vec_lookup(vec_load(tables + 16), even));
            low = i8_add(low, vec_lookup(vec_load(tables + 32), odd));
            high = i8_add(high, vec_lookup(vec_load(tables + 48), odd));
        }
    }
    vec_store(sum, i16_add(i16_from_u8_low(low), i16_shl(i16_from_i8_low(high), 5)));
    vec_store(sum + 8, i16_add(i16_from_u8_high(low), i16_shl(i16_from_i8_high(high), 5)));
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
INLINE void pair_product(vec acc[4], struct pair from, const uint8_t *x, int cols, const struct half_masks *m)
{
    enum { BLOCKS = 4 };
    const struct layout_info l = layouts[LAYOUT_Q1];
    const vec nibble = i32_kept(0x0F0F0F0F);
    int16_t sums[BLOCKS * 16];
    for (int i = 0; i < 4; i++) acc[i] = i32_splat(0);
    for (int u = cols / l.columns; u; u--, x += BLOCKS * act_bytes(FORM_TABLES)) {
#pragma GCC unroll 1
        for (size_t b = 0; b < BLOCKS; b++)
            block_sums(sums + 16 * b, &from, (size_t)l.head + b * (size_t)l.block,
                       x + b * act_bytes(FORM_TABLES) + TABLES_HEAD, nibble);
        add_scaled(acc, sums, &from, x, BLOCKS, m);
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
static void by_tables(const uint8_t *panels, size_t panel_bytes, int n, const struct act *a, int row, int n_rows,
                      float *out)
{
    const size_t tables = (size_t)(a->cols / BLOCK) * act_bytes(FORM_TABLES);
    const struct half_masks m = half_masks_new();
    for (int p = 0; p < n; p += 2) {
        const int last = min_int(p + 1, n - 1);
        const struct pair from = {{panels + (size_t)p * panel_bytes, panels + (size_t)last * panel_bytes}};
        fetch(from.panel[0], (size_t)(last + 1 - p) * panel_bytes, out + PANEL_ROWS * (p * n_rows));
        for (int t = 0; t < n_rows; t++) {
            vec acc[4];
            pair_product(acc, from, a->tiles[FORM_TABLES] + (size_t)(row + t) * tables, a->cols, &m);
            store_two((uint8_t *)(out + PANEL_ROWS * (last * n_rows + t)), acc + 2);
            store_two((uint8_t *)(out + PANEL_ROWS * (p * n_rows + t)), acc);
        }
    }
}

void tables_simd(struct kernels *k)
{
    k->gemv[IN_TURN][LAYOUT_Q1] = k->gemv[TOGETHER][LAYOUT_Q1] = by_tables;
    for (int n = 2; n <= FEW_MOST; n++) k->few[n][LAYOUT_Q1] = by_tables;
    for (int n = ONE_ROW; n <= FEW_MOST; n++) k->form[n][LAYOUT_Q1] = FORM_TABLES;
    k->few_at_once[LAYOUT_Q1] = STREAMS;
}
