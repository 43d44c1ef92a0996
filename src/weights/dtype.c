/* SPDX-License-Identifier: MIT
 *
 * The table of types and the block decoders. grids.c has those of types that only the full build reads.
 */
#include "weights/dtype.h"

#include <string.h>

/* f16 d, int8 code[32] */
static void unpack_q8_0(const uint8_t *b, struct unit *u)
{
    u->d = load_u16(b);
    memcpy(u->code, b + 2, 32);
}

/* int8 code[32] */
static void unpack_q8f(const uint8_t *b, struct unit *u) { memcpy(u->code, b, 32); }

/* Splits n bytes: low nibbles to out [0, n), high nibbles to out [n, 2 n). */
static inline __attribute__((always_inline)) void split_nibbles(const uint8_t *restrict in, int n,
                                                                uint8_t *restrict out)
{
    for (int i = 0; i < n; i++) {
        out[i] = in[i] & 15;
        out[n + i] = in[i] >> 4;
    }
}

/* f16 d, 16 bytes: low nibbles are columns 0..15, high ones 16..31 */
static void unpack_q4_0(const uint8_t *b, struct unit *u)
{
    u->d = load_u16(b);
    split_nibbles(b + 2, 16, u->code);
}

/* f16 d, f16 m, nibbles as Q4_0; m is added. */
static void unpack_q4_1(const uint8_t *b, struct unit *u)
{
    u->d = load_u16(b);
    u->dmin = load_u16(b + 2) ^ 0x8000;
    split_nibbles(b + 4, 16, u->code);
}

/* Adds bit c of `bits` above the nibble of column c, for 32 columns. */
static void join_bits(const uint8_t *bits, uint8_t *code)
{
    uint32_t high = load_u32(bits);
    for (int c = 0; c < 32; c++) code[c] |= (uint8_t)((high >> c & 1) << 4);
}

/* f16 d, 32 high bits, nibbles as Q4_0 */
static void unpack_q5_0(const uint8_t *b, struct unit *u)
{
    u->d = load_u16(b);
    split_nibbles(b + 6, 16, u->code);
    join_bits(b + 2, u->code);
}

/* f16 d, f16 m, 32 high bits, nibbles; m is added. */
static void unpack_q5_1(const uint8_t *b, struct unit *u)
{
    u->d = load_u16(b);
    u->dmin = load_u16(b + 2) ^ 0x8000;
    split_nibbles(b + 8, 16, u->code);
    join_bits(b + 4, u->code);
}

/* Splits 64 bytes of bit pairs. Each 32 bytes hold 128 columns; column group g (32 columns) has bits 2g and 2g + 1. */
static void split_pairs(const uint8_t *pairs, uint8_t *code)
{
    for (int c = 0; c < 256; c++) code[c] = pairs[c / 128 * 32 + c % 32] >> c % 128 / 32 * 2 & 3;
}

/* 16 bytes of 4-bit scales (low) and mins, 64 bytes of bit pairs, f16 d, f16 dmin */
static void unpack_q2_k(const uint8_t *b, struct unit *u)
{
    for (int i = 0; i < 16; i++) {
        u->scale[i] = b[i] & 15;
        u->min[i] = b[i] >> 4;
    }
    split_pairs(b + 16, u->code);
    u->d = load_u16(b + 80);
    u->dmin = load_u16(b + 82);
}

/* 32 bytes of high bits (bit g: column group g), 64 bytes of bit pairs, 12 bytes of 6-bit scales, f16 d. The codes'
 * offset is 4. The scales' offset, 32, is subtracted here. Low nibbles of scales are in bytes 0..7: scales 0..7 in the
 * low nibbles, 8..15 in the high ones. The high pair of scale i is in byte 8 + i % 4, from bit i / 4 * 2 on. */
static void unpack_q3_k(const uint8_t *b, struct unit *u)
{
    const uint8_t *packed = b + 96;
    split_pairs(b + 32, u->code);
    for (int c = 0; c < 256; c++) u->code[c] |= (uint8_t)((b[c % 32] >> c / 32 & 1) << 2);
    for (int i = 0; i < 16; i++)
        u->scale[i] = (uint8_t)(((packed[i % 8] >> i / 8 * 4 & 15) | (packed[8 + i % 4] >> i / 4 * 2 & 3) << 4) - 32);
    u->d = load_u16(b + 108);
}

/* 12 bytes of 6-bit scales and mins. Scales 0..3 and mins 0..3 are the low 6 bits of bytes 0..7. Scales and mins 4..7
 * have their low nibbles in bytes 8..11 and their two high bits in the top bits of bytes 0..7. */
static inline __attribute__((always_inline)) void split_sixes(const uint8_t *packed, struct unit *u)
{
    for (int i = 0; i < 4; i++) {
        u->scale[i] = packed[i] & 63;
        u->min[i] = packed[i + 4] & 63;
        u->scale[i + 4] = (uint8_t)((packed[i + 8] & 15) | (packed[i] >> 6) << 4);
        u->min[i + 4] = (uint8_t)(packed[i + 8] >> 4 | (packed[i + 4] >> 6) << 4);
    }
}

/* f16 d, f16 dmin, 12 bytes of scales and mins, 128 bytes of nibbles: each 32 bytes hold 64 columns, low nibbles first.
 */
static void unpack_q4_k(const uint8_t *b, struct unit *u)
{
    u->d = load_u16(b);
    u->dmin = load_u16(b + 2);
    split_sixes(b + 4, u);
    for (int i = 0; i < 4; i++) split_nibbles(b + 16 + 32 * i, 32, u->code + 64 * i);
}

/* As Q4_K, with 32 bytes of high bits (bit g: column group g) before the nibbles. */
static void unpack_q5_k(const uint8_t *b, struct unit *u)
{
    u->d = load_u16(b);
    u->dmin = load_u16(b + 2);
    split_sixes(b + 4, u);
    for (int i = 0; i < 4; i++) split_nibbles(b + 48 + 32 * i, 32, u->code + 64 * i);
    for (int g = 0; g < 8; g++)
        for (int c = 0; c < 32; c++) u->code[32 * g + c] |= (uint8_t)((b[16 + c] >> g & 1) << 4);
}

/* 128 bytes of low nibbles, 64 bytes of high bit pairs, int8 scale[16], f16 d. Each half of 128 columns has 64
 * nibble bytes and 32 pair bytes: column group g (32 columns) takes nibble bytes 32 * (g % 2) on, low nibbles for g <
 * 2, and bit pair g of the pair bytes. */
static void unpack_q6_k(const uint8_t *b, struct unit *u)
{
    for (int half = 0; half < 2; half++)
        for (int j = 0; j < 32; j++) {
            const uint8_t *low = b + half * 64 + j;
            uint8_t *code = u->code + half * 128 + j, high = b[128 + half * 32 + j];
            code[0] = (uint8_t)((low[0] & 15) | (high & 3) << 4);
            code[32] = (uint8_t)((low[32] & 15) | (high >> 2 & 3) << 4);
            code[64] = (uint8_t)(low[0] >> 4 | (high >> 4 & 3) << 4);
            code[96] = (uint8_t)(low[32] >> 4 | (high >> 6) << 4);
        }
    memcpy(u->scale, b + 192, 16);
    u->d = load_u16(b + 208);
}

/* f16 d, 16 bits with the high pairs of the scales, 4 bytes with their nibbles, 128 bytes of nibbles, each 16 as in
 * Q4_0. The scales' offset is 32. */
static void unpack_iq4_xs(const uint8_t *b, struct unit *u)
{
    uint32_t high = load_u16(b + 2);
    u->d = load_u16(b);
    for (int i = 0; i < 8; i++)
        u->scale[i] = (uint8_t)(((b[4 + i / 2] >> i % 2 * 4 & 15) | (int)(high >> 2 * i & 3) << 4) - 32);
    for (int i = 0; i < 8; i++) split_nibbles(b + 8 + 16 * i, 16, u->code + 32 * i);
}

/* One byte e, nibbles as Q4_0. A code is an index into a table of doubled values, so d = 2^(e - 128). As bf16 that is
 * an exponent of e - 1, or a subnormal for the two smallest. */
static void unpack_mxfp4(const uint8_t *b, struct unit *u)
{
    u->d = (uint16_t)(b[0] < 2 ? 0x20 << b[0] : (b[0] - 1) << 7);
    split_nibbles(b + 1, 16, u->code);
}

/* f16 d, 16 bytes with the bit of column c at bit c % 8 of byte c / 8: a code of 1 is +d, 0 is -d. */
static void unpack_q1_0(const uint8_t *b, struct unit *u)
{
    u->d = load_u16(b);
    for (int c = 0; c < 128; c++) u->code[c] = b[2 + c / 8] >> c % 8 & 1;
}

/* f16 d, 16 bytes with the code of column c at bit c % 4 * 2 of byte c / 4. The codes' offset is 1. */
static void unpack_q2_0(const uint8_t *b, struct unit *u)
{
    u->d = load_u16(b);
    for (int c = 0; c < 64; c++) u->code[c] = b[2 + c / 4] >> c % 4 * 2 & 3;
}

/* Splits n bytes, each a fraction of 256, into their first `digits` digits of base 3: digit k to out [k * n, n). */
static void split_trits(const uint8_t *in, int n, int digits, uint8_t *out)
{
    for (int i = 0; i < n; i++)
        for (int k = 0, rest = in[i]; k < digits; k++, rest = rest * 3 & 255) out[k * n + i] = (uint8_t)(rest * 3 >> 8);
}

/* 32 and 16 bytes of five codes of base 3, 4 bytes of four, f16 d. The codes' offset is 1. */
static void unpack_tq1_0(const uint8_t *b, struct unit *u)
{
    split_trits(b, 32, 5, u->code);
    split_trits(b + 32, 16, 5, u->code + 160);
    split_trits(b + 48, 4, 4, u->code + 240);
    u->d = load_u16(b + 52);
}

/* 64 bytes of bit pairs, f16 d. The codes' offset is 1. */
static void unpack_tq2_0(const uint8_t *b, struct unit *u)
{
    split_pairs(b, u->code);
    u->d = load_u16(b + 64);
}

static const struct dtype types[] = {
    /*name      id  block bytes  layout        unpack */
    {"F32", 0, 1, 4, LAYOUT_F32, NULL},
    {"F16", 1, 1, 2, LAYOUT_F16, NULL},
    {"BF16", 30, 1, 2, LAYOUT_BF16, NULL},
    {"Q8_0", 8, 32, 34, LAYOUT_Q8, unpack_q8_0},
    {"Q4_0", 2, 32, 18, LAYOUT_Q4, unpack_q4_0},
    {"Q4_1", 3, 32, 20, LAYOUT_Q4_1, unpack_q4_1},
    {"Q5_0", 6, 32, 22, LAYOUT_Q5, unpack_q5_0},
    {"Q5_1", 7, 32, 24, LAYOUT_Q5_1, unpack_q5_1},
    {"Q2_K", 10, 256, 84, LAYOUT_Q2K, unpack_q2_k},
    {"Q3_K", 11, 256, 110, LAYOUT_Q3K, unpack_q3_k},
    {"Q4_K", 12, 256, 144, LAYOUT_Q4K, unpack_q4_k},
    {"Q5_K", 13, 256, 176, LAYOUT_Q5K, unpack_q5_k},
    {"Q6_K", 14, 256, 210, LAYOUT_Q6K, unpack_q6_k},
    {"IQ4_NL", 20, 32, 18, LAYOUT_IQ4, unpack_q4_0},
    {"IQ4_XS", 23, 256, 136, LAYOUT_IQ4XS, unpack_iq4_xs},
    {"MXFP4", 39, 32, 17, LAYOUT_FP4, unpack_mxfp4},
    {"Q1_0", 41, 128, 18, LAYOUT_Q1, unpack_q1_0},
    {"Q2_0", 42, 64, 18, LAYOUT_Q2, unpack_q2_0},
    {"TQ1_0", 34, 256, 54, LAYOUT_Q2, unpack_tq1_0},
    {"TQ2_0", 35, 256, 66, LAYOUT_Q2, unpack_tq2_0},
    /* Types that GGUF files do not have. Q8F: 8-bit codes with a float scale per 32, 64 or 128 columns. F8_E4M3: with a
     * float scale per 128 x 128 weights. */
    {"Q8F", NO_GGUF_ID, 32, 32, LAYOUT_Q8F, unpack_q8f},
    {"F8_E4M3", NO_GGUF_ID, 1, 1, LAYOUT_F8, NULL},
    /* Known by name only, so that the error can name the type of a file that is refused. */
    {"Q8_1", 9, 32, 36, LAYOUT_NONE, NULL},
    {"Q8_K", 15, 256, 292, LAYOUT_NONE, NULL},
    {"I8", 24, 1, 1, LAYOUT_NONE, NULL},
    {"I16", 25, 1, 2, LAYOUT_NONE, NULL},
    {"I32", 26, 1, 4, LAYOUT_NONE, NULL},
    {"I64", 27, 1, 8, LAYOUT_NONE, NULL},
    {"F64", 28, 1, 8, LAYOUT_NONE, NULL},
};

const struct dtype *dtype_by_gguf(uint32_t id)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].gguf_id == id && id != NO_GGUF_ID) return &types[i];
    for (size_t i = 0; i < FULL_TYPES; i++)
        if (full_types[i].gguf_id == id) return &full_types[i];
    return NULL;
}

const struct dtype *dtype_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, name)) return &types[i];
    for (size_t i = 0; i < FULL_TYPES; i++)
        if (!strcmp(full_types[i].name, name)) return &full_types[i];
    return NULL;
}
