/* SPDX-License-Identifier: MIT
 *
 * Arranges activations for the products: the codes, scales and sums of a tile of rows, block by block.
 */
#include "compute/cpu/products.h"

#include <string.h>

/* Writes 4 columns of a row to a tile's codes. */
INLINE void arrange_group(uint8_t *codes, const int8_t *from, size_t g, size_t t, size_t T, const enum form form)
{
    if (form == FORM_BYTES) memcpy(codes + 4 * (g * T + t), from, 4);
    for (size_t i = 0; i < 2; i++) {
        int even = from[2 * i], odd = from[2 * i + 1];
        if (form == FORM_WORDS) memcpy(codes + 4 * ((2 * g + i) * T + t), (int16_t[]){(int16_t)even, (int16_t)odd}, 4);
        if (form != FORM_APART && form != FORM_TWOS) continue;
        const int16_t words[] = {(int16_t)even, (int16_t)(form == FORM_TWOS ? odd - 256 * even : odd)};
        for (size_t k = 0; k < 2; k++) memcpy(codes + 8 * (g * T + t) + 4 * k + 2 * i, words + k, 2);
    }
}

/* Writes 8 columns: a word of weights holds column 2 * i of the first four, of the second four, then 2 * i + 1 of both.
 */
INLINE void arrange_eight(uint8_t *codes, const int8_t *from, size_t i)
{
    int last = 0;
    for (size_t k = 0; k < 4; k++) {
        int x = from[2 * i + k / 2 + k % 2 * 4];
        memcpy(codes + 4 * k + 2 * i, &(int16_t){(int16_t)(x - 16 * last)}, 2);
        last = x;
    }
}

/* Sums the even and the odd pairs of 16 columns. */
INLINE void pair_sums(const int8_t *code, int sum[2])
{
    vec bytes = vec_load(code);
    int32_t pair[4];
    vec_store(pair, i16_pairs(i16_add(i16_from_i8_low(bytes), i16_from_i8_high(bytes))));
    for (int i = 0; i < 2; i++) sum[i] = pair[i] + pair[i + 2];
}

/* Start values of the sums of pairs: for a block, then for its halves. */
INLINE void pairs_begin(const int8_t *code, int32_t begin[3])
{
    int first[2], second[2];
    int16_t pairs[3][2];
    pair_sums(code, first);
    pair_sums(code + 16, second);
    for (int i = 0; i < 2; i++) {
        pairs[0][i] = (int16_t)(-8 * (first[i] + second[i]));
        pairs[1][i] = (int16_t)(-4 * first[i]);
        pairs[2][i] = (int16_t)(-4 * second[i]);
    }
    memcpy(begin, pairs, sizeof pairs);
}

INLINE void arrange(const struct act *a, int row, int n_rows, uint8_t *tile, const enum dots dots, const enum form form)
{
    size_t T = (size_t)n_rows, blocks = (size_t)(a->cols / BLOCK), bytes = T * act_bytes(form);
    for (size_t t = 0; t < T; t++) {
        size_t at = ((size_t)row + t) * blocks;
        for (size_t b = 0; b < blocks; b++, at++) {
            uint8_t *block = tile + b * bytes;
            const int8_t *code = a->code + at * BLOCK;
            const int16_t *half = a->sum + 2 * at;
            int32_t begin[3] = {-8 * (half[0] + half[1]), -4 * half[0], -4 * half[1]};
            if (dots == DOTS_U7 || form >= FORM_TWOS) pairs_begin(code, begin);
            memcpy(block + 4 * t, a->scale + at, 4);
            memcpy(block + 4 * (T + t), &(float){(float)(half[0] + half[1])}, 4);
            memcpy(block + 4 * (2 * T + t), begin, 4);
            memcpy(block + 4 * (3 * T + t), half, 4);
            memcpy(block + 4 * (4 * T + t), begin + 1, 4);
            memcpy(block + 4 * (5 * T + t), begin + 2, 4);
            for (size_t g = 0; g < 8; g++) {
                if (form == FORM_FOURS)
                    arrange_eight(block + ACT_HEAD * T + 16 * (g / 2 * T + t), code + 8 * (g / 2), g % 2);
                else arrange_group(block + ACT_HEAD * T, code + 4 * g, g, t, T, form);
            }
        }
    }
}

static void arrange_bytes(const struct act *a, int row, int n_rows, uint8_t *tile)
{
    arrange(a, row, n_rows, tile, DOTS_U8, FORM_BYTES);
}
static void arrange_pairs(const struct act *a, int row, int n_rows, uint8_t *tile)
{
    arrange(a, row, n_rows, tile, DOTS_U7, FORM_BYTES);
}
static void arrange_words(const struct act *a, int row, int n_rows, uint8_t *tile)
{
    arrange(a, row, n_rows, tile, DOTS_I16, FORM_WORDS);
}
static void arrange_apart(const struct act *a, int row, int n_rows, uint8_t *tile)
{
    arrange(a, row, n_rows, tile, DOTS_I16, FORM_APART);
}
static void arrange_twos(const struct act *a, int row, int n_rows, uint8_t *tile)
{
    arrange(a, row, n_rows, tile, DOTS_I16, FORM_TWOS);
}
static void arrange_fours(const struct act *a, int row, int n_rows, uint8_t *tile)
{
    arrange(a, row, n_rows, tile, DOTS_I16, FORM_FOURS);
}

/* The two tables of 4 columns. */
INLINE void signed_sums(uint8_t *tables, const int8_t *x, const vec signs[3])
{
    vec rest = i32_splat(0), last = i16_splat(x[3]), low[2], high[2];
    for (int k = 0; k < 3; k++) rest = i16_add(rest, i16_mul(i16_splat(x[k]), signs[k]));
    for (int i = 0; i < 2; i++) {
        vec sum = i ? i16_add(rest, last) : i16_sub(rest, last);
        low[i] = vec_and(sum, i16_splat(31)), high[i] = i16_shr(sum, 5);
    }
    vec_store(tables, i8_from_i16(low[0], low[1]));
    vec_store(tables + 16, i8_from_i16(high[0], high[1]));
}

static void arrange_tables(const struct act *a, int row, int n_rows, uint8_t *tile)
{
    static const int16_t bits[3][8] = {
        {-1, 1, -1, 1, -1, 1, -1, 1}, {-1, -1, 1, 1, -1, -1, 1, 1}, {-1, -1, -1, -1, 1, 1, 1, 1}};
    const vec signs[3] = {vec_kept(bits[0]), vec_kept(bits[1]), vec_kept(bits[2])};
    size_t blocks = (size_t)(a->cols / BLOCK), at = (size_t)row * blocks;
    for (size_t end = at + (size_t)n_rows * blocks; at < end; at++, tile += act_bytes(FORM_TABLES)) {
        memcpy(tile, a->scale + at, 4);
        for (size_t g = 0; g < 8; g++) signed_sums(tile + TABLES_HEAD + 32 * g, a->code + at * BLOCK + 4 * g, signs);
    }
}

void arrange_simd(struct kernels *k)
{
    k->arrange[FORM_TABLES] = arrange_tables;
    if (k->dots != DOTS_I16) k->arrange[FORM_BYTES] = k->dots == DOTS_U7 ? arrange_pairs : arrange_bytes;
    else k->arrange[FORM_TWOS] = arrange_twos, k->arrange[FORM_FOURS] = arrange_fours;
    if (k->dots == DOTS_I16 || k->dots == DOTS_U7)
        k->arrange[FORM_WORDS] = arrange_words, k->arrange[FORM_APART] = arrange_apart;
    for (enum form f = 0; f < FORMS; f++) k->arranged[f] = k->arrange[f] ? act_bytes(f) : 0;
}
