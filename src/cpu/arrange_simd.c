/* SPDX-License-Identifier: MIT
 *
 * Activations as the products take them: the codes, scales and sums of a tile of rows, block by block.
 */
#include "products.h"

#include <string.h>

/* 4 columns of a row, as bytes or as two pairs of int16, into a tile's codes. */
INLINE void arrange_group(uint8_t *codes, const int8_t *from, size_t g, size_t t, size_t T, const bool words)
{
    if (!words) {
        memcpy(codes + 4 * (g * T + t), from, 4);
        return;
    }
    for (size_t i = 0; i < 2; i++) memcpy(codes + 4 * ((2 * g + i) * T + t), (int16_t[]){from[2 * i], from[2 * i + 1]}, 4);
}

INLINE void arrange(const struct act *a, int row, int n_rows, uint8_t *tile, const bool words)
{
    size_t T = (size_t)n_rows, blocks = (size_t)(a->cols / BLOCK), bytes = T * act_bytes(words ? DOTS_I16 : DOTS_U8);
    for (size_t t = 0; t < T; t++) {
        size_t at = ((size_t)row + t) * blocks;
        for (size_t b = 0; b < blocks; b++, at++) {
            uint8_t *block = tile + b * bytes;
            int32_t half[2] = {a->sum[2 * at], a->sum[2 * at + 1]}, sum = half[0] + half[1];
            const int32_t begin[4] = {-8 * sum, -128 * sum, -32 * half[0], -32 * half[1]};
            memcpy(block + 4 * t, a->scale + at, 4);
            memcpy(block + 4 * (T + t), &(float){(float)sum}, 4);
            for (size_t i = 0; i < 4; i++) memcpy(block + 4 * ((2 + i) * T + t), begin + i, 4);
            for (size_t g = 0; g < 8; g++) arrange_group(block + ACT_HEAD * T, a->code + at * BLOCK + 4 * g, g, t, T, words);
        }
    }
}

static void arrange_bytes(const struct act *a, int row, int n_rows, uint8_t *tile) { arrange(a, row, n_rows, tile, false); }
static void arrange_words(const struct act *a, int row, int n_rows, uint8_t *tile) { arrange(a, row, n_rows, tile, true); }

void arrange_simd(struct kernels *k)
{
    if (k->dots != DOTS_I16) k->arrange[FORM_BYTES] = arrange_bytes, k->arranged[FORM_BYTES] = act_bytes(DOTS_U8);
    if (k->dots == DOTS_I16 || k->dots == DOTS_U7) k->arrange[FORM_WORDS] = arrange_words, k->arranged[FORM_WORDS] = act_bytes(DOTS_I16);
}
