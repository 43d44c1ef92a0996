/* SPDX-License-Identifier: MIT
 *
 * The types that only the full build reads. The codes of IQ1, IQ2 and IQ3 are numbers of rows of a grid: 8 or 4
 * neighbouring magnitudes. NVFP4 has no grid, but has kernels that no other type needs.
 *
 * Each type has few different values, so a decoder writes for each column the place of its value in a table of pack.h.
 * Grids are therefore read only while a model loads, and kernels look values up in one register. Factors of a format
 * that are no integers are in the tables and in D_EIGHTH, so that all values are exact. Only the full build has this
 * file: the text build leaves its grids and kernels to models that need them (engine/text_build.c).
 */
#include "weights/dtype.h"
#include "weights/grid_data.h"

#include <string.h>

/* --- eight codes at once ------------------------------------------------------------------------------------ */

#define EACH_BYTE 0x0101010101010101u

/* 8 codes of 2 bits, as bytes. */
static uint64_t spread_pairs(uint64_t v)
{
    v = (v | v << 24) & 0x000000FF000000FF;
    v = (v | v << 12) & 0x000F000F000F000F;
    return (v | v << 6) & 3 * EACH_BYTE;
}

/* 8 codes of 4 bits, as bytes. */
static uint64_t spread_nibbles(uint64_t v)
{
    v = (v | v << 16) & 0x0000FFFF0000FFFF;
    v = (v | v << 8) & 0x00FF00FF00FF00FF;
    return (v | v << 4) & 15 * EACH_BYTE;
}

/* 8 bits, as bytes 0 or 1. */
static uint64_t spread_bits(uint64_t v)
{
    return ((v * EACH_BYTE & 0x8040201008040201) + 0x7F * EACH_BYTE) >> 7 & EACH_BYTE;
}

/* Seven signs; the eighth makes the number of negative columns even. */
static uint32_t eight_signs(uint32_t seven)
{
    return seven | (uint32_t)__builtin_parity(seven) << 7;
}

/* Writes the codes of 8 columns from a row of a grid of 8 columns; bit i of `high` is the third bit of column i. */
static void put_eight(uint8_t *code, uint32_t row, uint32_t high)
{
    uint64_t codes = spread_pairs(row) | spread_bits(high) << 2;
    memcpy(code, &codes, sizeof codes);
}

/* The same from two rows of a grid of 4 columns and the signs. */
static void put_fours(uint8_t *code, uint32_t first, uint32_t second, uint32_t signs)
{
    uint64_t codes = spread_nibbles(first | second << 16) | spread_bits(signs) << 3;
    memcpy(code, &codes, sizeof codes);
}

/* --- decoders ------------------------------------------------------------------------------------------------ */

/* Two scales of 4 bits in a byte, the lower first, stand for odd numbers. */
static void put_scales(uint8_t *scale, const uint8_t *nibbles, int n)
{
    for (int i = 0; i < n; i++) scale[i] = (uint8_t)(2 * (nibbles[i / 2] >> i % 2 * 4 & 15) + 1);
}

/* f16 d; per 32 columns 4 numbers of rows and 32 bits: four times 7 signs, then a scale of 4 bits. */
static void unpack_iq2_xxs(const uint8_t *b, struct unit *u)
{
    u->d = load_u16(b);
    for (int i = 0; i < 8; i++) {
        const uint8_t *rows = b + 2 + 8 * i;
        uint32_t bits = load_u32(rows + 4);
        for (int k = 0; k < 4; k++)
            put_eight(u->code + 32 * i + 8 * k, grid_iq2_xxs[rows[k]], eight_signs(bits >> 7 * k & 127));
        u->scale[i] = (uint8_t)(2 * (bits >> 28) + 1);
    }
}

/* f16 d, 32 u16 with 9 bits for the row and 7 signs, 16 scales of 4 bits. */
static void unpack_iq2_xs(const uint8_t *b, struct unit *u)
{
    u->d = load_u16(b);
    for (int i = 0; i < 32; i++) {
        uint32_t bits = load_u16(b + 2 + 2 * i);
        put_eight(u->code + 8 * i, grid_iq2_xs[bits & 511], eight_signs(bits >> 9));
    }
    put_scales(u->scale, b + 66, 16);
}

/* f16 d, 32 numbers of rows, 32 bytes of signs, 8 bytes with the rows' high pairs of bits, 16 scales of 4 bits. */
static void unpack_iq2_s(const uint8_t *b, struct unit *u)
{
    u->d = load_u16(b);
    for (int i = 0; i < 32; i++) {
        int high = b[66 + i / 4] >> i % 4 * 2 & 3;
        put_eight(u->code + 8 * i, grid_iq2_s[b[2 + i] | high << 8], b[34 + i]);
    }
    put_scales(u->scale, b + 74, 16);
}

/* f16 d, 64 numbers of rows; per 32 columns 32 bits as in IQ2_XXS. */
static void unpack_iq3_xxs(const uint8_t *b, struct unit *u)
{
    u->d = load_u16(b);
    for (int i = 0; i < 8; i++) {
        uint32_t bits = load_u32(b + 66 + 4 * i);
        for (int k = 0; k < 4; k++) {
            const uint8_t *rows = b + 2 + 8 * i + 2 * k;
            put_fours(u->code + 32 * i + 8 * k, grid_iq3_xxs[rows[0]], grid_iq3_xxs[rows[1]],
                      eight_signs(bits >> 7 * k & 127));
        }
        u->scale[i] = (uint8_t)(2 * (bits >> 28) + 1);
    }
}

/* f16 d, 64 numbers of rows, 64 bits with their ninth bits, 32 bytes of signs, 8 scales of 4 bits. */
static void unpack_iq3_s(const uint8_t *b, struct unit *u)
{
    u->d = load_u16(b);
    for (int i = 0; i < 32; i++) {
        const uint8_t *rows = b + 2 + 2 * i;
        int high = b[66 + i / 4] >> i % 4 * 2;
        put_fours(u->code + 8 * i, grid_iq3_s[rows[0] | (high & 1) << 8], grid_iq3_s[rows[1] | (high & 2) << 7],
                  b[74 + i]);
    }
    put_scales(u->scale, b + 106, 8);
}

/* f16 d, 32 numbers of rows; per 32 columns 16 bits: four times the rows' three high bits, a scale of 3 bits, and the
 * sign of the shift. */
static void unpack_iq1_s(const uint8_t *b, struct unit *u)
{
    u->d = load_u16(b);
    for (int i = 0; i < 8; i++) {
        uint32_t bits = load_u16(b + 34 + 2 * i), shift = bits >> 15 ? 0xFF : 0;
        for (int k = 0; k < 4; k++)
            put_eight(u->code + 32 * i + 8 * k, grid_iq1[b[2 + 4 * i + k] | (bits >> 3 * k & 7) << 8], shift);
        u->scale[i] = (uint8_t)(2 * (bits >> 12 & 7) + 1);
    }
}

/* 32 numbers of rows; per row a nibble with their three high bits and the sign of the shift; four u16 with four scales
 * of 3 bits each and 4 bits of the f16 d, the lowest first. */
static void unpack_iq1_m(const uint8_t *b, struct unit *u)
{
    u->d = 0;
    for (int i = 0; i < 32; i++) {
        int bits = b[32 + i / 2] >> i % 2 * 4;
        put_eight(u->code + 8 * i, grid_iq1[b[i] | (bits & 7) << 8], bits & 8 ? 0xFF : 0);
    }
    for (int i = 0; i < 4; i++) {
        int bits = load_u16(b + 48 + 2 * i);
        u->d = (uint16_t)(u->d | bits >> 12 << 4 * i);
        for (int k = 0; k < 4; k++) u->scale[4 * i + k] = (uint8_t)(2 * (bits >> 3 * k & 7) + 1);
    }
}

/* A scale (e4m3) for each 16 columns, whose sign is ignored and whose NaN stands for 0; then nibbles, 8 bytes for 16
 * columns, as in Q4_0. Codes are indexes into a table of doubled values. */
static void unpack_nvfp4(const uint8_t *b, struct unit *u)
{
    for (int i = 0; i < 4; i++) {
        u->scale[i] = (b[i] & 127) == 127 ? 0 : b[i] & 127;
        for (int k = 0; k < 8; k++) {
            u->code[16 * i + k] = b[4 + 8 * i + k] & 15;
            u->code[16 * i + 8 + k] = b[4 + 8 * i + k] >> 4;
        }
    }
}

#define TYPE(name, id, block, bytes, layout, unpack) {#name, id, block, bytes, LAYOUT_##layout, unpack},
const struct dtype full_types[FULL_TYPES] = {EACH_FULL_TYPE(TYPE)};
