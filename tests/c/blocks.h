/* SPDX-License-Identifier: MIT
 *
 * A second decoder of GGUF's weight blocks, written column by column from the published description, and generators of
 * hostile blocks. It shares no code with src/: its numbers and the engine's must be equal. Only the numbers of grids are
 * the same ones; test_grids.c compares them with those of the package gguf.
 */
#ifndef QUERN_BLOCKS_H
#define QUERN_BLOCKS_H

#include "model_file.h"
#include "weights/grid_data.h"

#include <math.h>

/* value of column c = d * scale[c / 16] * code[c] - dmin * min[c / 16], or + where the type adds; `code` has its offset
 * taken off already. */
struct ref_block {
    double d, dmin, scale[16];
    int code[256], min[16];
};

struct ref_type {
    const char *name;
    uint32_t gguf_id;
    int columns, bytes;                                          /* of one block */
    void (*read)(const uint8_t *bytes, struct ref_block *out); /* NULL: plain floats */
    /* offsets of the f16 scales in a block; the same one twice if there is only one */
    uint8_t halves[2];
    bool adds;                                                   /* the min is added, not subtracted */
};

/* Decodes f16 and bf16 by their definitions. */
static inline double ref_half(const uint8_t *bytes, int exponent_bits)
{
    int bits = bytes[0] | bytes[1] << 8, fraction_bits = 15 - exponent_bits, top = (1 << exponent_bits) - 1;
    int exponent = (bits & 0x7FFF) >> fraction_bits, fraction = bits & ((1 << fraction_bits) - 1);
    double sign = bits & 0x8000 ? -1 : 1, unit = ldexp(1, -fraction_bits);
    if (exponent == top) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(fraction * unit, 2 - (1 << (exponent_bits - 1)));
    return sign * ldexp(1 + fraction * unit, exponent + 1 - (1 << (exponent_bits - 1)));
}

static inline void ref_plain(struct ref_block *b, double d)
{
    *b = (struct ref_block){.d = d};
    for (int i = 0; i < 16; i++) b->scale[i] = 1;
}

static inline void ref_q8_0(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes, 5));
    for (int c = 0; c < 32; c++) b->code[c] = bytes[2 + c] < 128 ? bytes[2 + c] : bytes[2 + c] - 256;
}

static inline void ref_q4_0(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes, 5));
    for (int c = 0; c < 32; c++) b->code[c] = (c < 16 ? bytes[2 + c] % 16 : bytes[2 + c - 16] / 16) - 8;
}

static inline void ref_min(struct ref_block *b, double min)
{
    b->dmin = min;
    for (int i = 0; i < 16; i++) b->min[i] = 1;
}

static inline int ref_nibble(const uint8_t *nibbles, int c) { return c < 16 ? nibbles[c] % 16 : nibbles[c - 16] / 16; }
static inline int ref_bit(const uint8_t *bits, int i) { return bits[i / 8] >> i % 8 & 1; }

static inline void ref_q4_1(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes, 5));
    ref_min(b, ref_half(bytes + 2, 5));
    for (int c = 0; c < 32; c++) b->code[c] = ref_nibble(bytes + 4, c);
}

static inline void ref_q5_0(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes, 5));
    for (int c = 0; c < 32; c++) b->code[c] = ref_nibble(bytes + 6, c) + 16 * ref_bit(bytes + 2, c) - 16;
}

static inline void ref_q5_1(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes, 5));
    ref_min(b, ref_half(bytes + 2, 5));
    for (int c = 0; c < 32; c++) b->code[c] = ref_nibble(bytes + 8, c) + 16 * ref_bit(bytes + 4, c);
}

static inline void ref_q2_k(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes + 80, 5));
    b->dmin = ref_half(bytes + 82, 5);
    for (int i = 0; i < 16; i++) b->scale[i] = bytes[i] % 16, b->min[i] = bytes[i] / 16;
    for (int c = 0; c < 256; c++) b->code[c] = bytes[16 + c / 128 * 32 + c % 32] >> c / 32 % 4 * 2 & 3;
}

static inline void ref_q3_k(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes + 108, 5));
    for (int i = 0; i < 16; i++) {
        int low = i < 8 ? bytes[96 + i] % 16 : bytes[96 + i - 8] / 16, high = bytes[104 + i % 4] >> i / 4 * 2 & 3;
        b->scale[i] = low + 16 * high - 32;
    }
    for (int c = 0; c < 256; c++) {
        int pair = bytes[32 + c / 128 * 32 + c % 32] >> c / 32 % 4 * 2 & 3;
        b->code[c] = bytes[c % 32] >> c / 32 & 1 ? pair : pair - 4;
    }
}

/* The j-th 6-bit scale (which = 0) or min (which = 1) of Q4_K's 12 packed bytes. */
static inline int ref_six(const uint8_t *packed, int j, int which)
{
    if (j < 4) return packed[4 * which + j] % 64;
    int low = which ? packed[4 + j] / 16 : packed[4 + j] % 16;
    return low + packed[4 * which + j - 4] / 64 * 16;
}

/* Reads d, dmin and the scales and mins at the beginning of Q4_K and Q5_K. */
static inline void ref_with_mins(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes, 5));
    b->dmin = ref_half(bytes + 2, 5);
    for (int i = 0; i < 16; i++) {
        b->scale[i] = ref_six(bytes + 4, i / 2, 0);
        b->min[i] = ref_six(bytes + 4, i / 2, 1);
    }
}

static inline void ref_q4_k(const uint8_t *bytes, struct ref_block *b)
{
    ref_with_mins(bytes, b);
    for (int c = 0; c < 256; c++) {
        int byte = bytes[16 + c / 64 * 32 + c % 32];
        b->code[c] = c % 64 < 32 ? byte % 16 : byte / 16;
    }
}

static inline void ref_q5_k(const uint8_t *bytes, struct ref_block *b)
{
    static const int high[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    ref_with_mins(bytes, b);
    for (int c = 0; c < 256; c++) {
        int byte = bytes[48 + c / 64 * 32 + c % 32];
        b->code[c] = (c % 64 < 32 ? byte % 16 : byte / 16) + (bytes[16 + c % 32] & high[c / 32] ? 16 : 0);
    }
}

/* The non-linear 4-bit code. */
static inline int ref_iq4(int i)
{
    static const int negative[] = {127, 104, 83, 65, 49, 35, 22, 10}, positive[] = {1, 13, 25, 38, 53, 69, 89, 113};
    return i < 8 ? -negative[i] : positive[i - 8];
}

static inline void ref_iq4_nl(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes, 5));
    for (int c = 0; c < 32; c++) b->code[c] = ref_iq4(ref_nibble(bytes + 2, c));
}

static inline void ref_iq4_xs(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes, 5));
    for (int i = 0; i < 16; i++) {
        int byte = bytes[4 + i / 4], low = i / 2 % 2 ? byte / 16 : byte % 16,
            high = ref_bit(bytes + 2, i / 2 * 2) + 2 * ref_bit(bytes + 2, i / 2 * 2 + 1);
        b->scale[i] = low + 16 * high - 32;
    }
    for (int c = 0; c < 256; c++) b->code[c] = ref_iq4(ref_nibble(bytes + 8 + c / 32 * 16, c % 32));
}

/* A sign, two bits of exponent and one bit of fraction, by its definition, times 2; d is half of 2^(e - 127). */
static inline void ref_mxfp4(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ldexp(0.5, bytes[0] - 127));
    for (int c = 0; c < 32; c++) {
        int n = ref_nibble(bytes + 1, c), exponent = n >> 1 & 3, fraction = n & 1;
        int twice = exponent ? (2 + fraction) << (exponent - 1) : fraction;
        b->code[c] = n & 8 ? -twice : twice;
    }
}

static inline void ref_q6_k(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes + 208, 5));
    for (int i = 0; i < 16; i++) b->scale[i] = bytes[192 + i] < 128 ? bytes[192 + i] : bytes[192 + i] - 256;
    for (int c = 0; c < 256; c++) {
        int half = c / 128, j = c % 128;
        int nibbles = bytes[64 * half + j % 64], pairs = bytes[128 + 32 * half + j % 32];
        int low = j < 64 ? nibbles % 16 : nibbles / 16, high = pairs >> j / 32 * 2 & 3;
        b->code[c] = low + 16 * high - 32;
    }
}

static inline void ref_q1_0(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes, 5));
    for (int c = 0; c < 128; c++) b->code[c] = ref_bit(bytes + 2, c) ? 1 : -1;
}

static inline void ref_q2_0(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes, 5));
    for (int c = 0; c < 64; c++) b->code[c] = ref_bit(bytes + 2, 2 * c) + 2 * ref_bit(bytes + 2, 2 * c + 1) - 1;
}

/* The fraction byte / 256 has the codes as its digits of base 3. */
static inline void ref_tq1_0(const uint8_t *bytes, struct ref_block *b)
{
    static const int powers[] = {1, 3, 9, 27, 81, 243};
    ref_plain(b, ref_half(bytes + 52, 5));
    for (int c = 0; c < 256; c++) {
        int part = c < 160 ? 0 : c < 240 ? 160 : 240, width = c < 160 ? 32 : c < 240 ? 16 : 4;
        int byte = bytes[part / 5 + (c - part) % width], digit = (c - part) / width;
        b->code[c] = byte * powers[digit + 1] / 256 % 3 - 1;
    }
}

static inline void ref_tq2_0(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes + 64, 5));
    for (int c = 0; c < 256; c++) b->code[c] = (bytes[c / 128 * 32 + c % 32] >> c / 32 % 4 * 2 & 3) - 1;
}

/* Sets the scales of the n parts of a block to 2 s + 1; s is an expression of `part`. */
#define REF_SCALES(b, n, s) \
    for (int i = 0; i < 16; i++) { \
        int part = i * (n) / 16; \
        (b)->scale[i] = 2 * (s) + 1; \
    }

/* Column c of 8 columns of 2 bits, or of 4 columns of 4 bits. */
static inline int ref_pair(int row, int c) { return row >> c % 8 * 2 & 3; }
static inline int ref_four(int row, int c) { return row >> c % 4 * 4 & 15; }
static inline uint32_t ref_word(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* The sign of column c of 8, from seven bits: with the eighth, the number of negative columns is even. */
static inline int ref_even_sign(uint32_t seven, int c)
{
    int negative = 0;
    for (int i = 0; i < 7; i++) negative += seven >> i & 1;
    return c % 8 < 7 ? (seven >> c % 8 & 1 ? -1 : 1) : negative % 2 ? -1 : 1;
}
static inline int ref_sign(const uint8_t *bits, int c) { return ref_bit(bits, c) ? -1 : 1; }

static const int ref_iq2[] = {8, 25, 43}, ref_iq3_xxs_values[] = {4, 12, 20, 28, 36, 44, 52, 62};

static inline void ref_iq2_xxs(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes, 5) / 8);
    REF_SCALES(b, 8, (int)(ref_word(bytes + 6 + 8 * part) >> 28))
    for (int c = 0; c < 256; c++) {
        const uint8_t *part = bytes + 2 + c / 32 * 8;
        int row = grid_iq2_xxs[part[c / 8 % 4]];
        b->code[c] = ref_iq2[ref_pair(row, c)] * ref_even_sign(ref_word(part + 4) >> c / 8 % 4 * 7 & 127, c);
    }
}

static inline void ref_iq2_xs(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes, 5) / 8);
    REF_SCALES(b, 16, part % 2 ? bytes[66 + part / 2] / 16 : bytes[66 + part / 2] % 16)
    for (int c = 0; c < 256; c++) {
        int word = bytes[2 + c / 8 * 2] + 256 * bytes[3 + c / 8 * 2];
        b->code[c] = ref_iq2[ref_pair(grid_iq2_xs[word % 512], c)] * ref_even_sign((uint32_t)(word / 512), c);
    }
}

static inline void ref_iq2_s(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes, 5) / 8);
    REF_SCALES(b, 16, part % 2 ? bytes[74 + part / 2] / 16 : bytes[74 + part / 2] % 16)
    for (int c = 0; c < 256; c++) {
        int row = bytes[2 + c / 8] + 256 * (bytes[66 + c / 32] >> c / 8 % 4 * 2 & 3);
        b->code[c] = ref_iq2[ref_pair(grid_iq2_s[row], c)] * ref_sign(bytes + 34, c);
    }
}

static inline void ref_iq3_xxs(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes, 5) / 4);
    REF_SCALES(b, 8, (int)(ref_word(bytes + 66 + 4 * part) >> 28))
    for (int c = 0; c < 256; c++) {
        uint32_t signs = ref_word(bytes + 66 + c / 32 * 4) >> c / 8 % 4 * 7 & 127;
        b->code[c] = ref_iq3_xxs_values[ref_four(grid_iq3_xxs[bytes[2 + c / 4]], c)] * ref_even_sign(signs, c);
    }
}

static inline void ref_iq3_s(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes, 5));
    REF_SCALES(b, 8, part % 2 ? bytes[106 + part / 2] / 16 : bytes[106 + part / 2] % 16)
    for (int c = 0; c < 256; c++) {
        int row = bytes[2 + c / 4] + 256 * ref_bit(bytes + 66, c / 4);
        b->code[c] = (2 * ref_four(grid_iq3_s[row], c) + 1) * ref_sign(bytes + 74, c);
    }
}

static inline void ref_iq1_s(const uint8_t *bytes, struct ref_block *b)
{
    ref_plain(b, ref_half(bytes, 5) / 8);
    REF_SCALES(b, 8, bytes[35 + 2 * part] / 16 % 8)
    for (int c = 0; c < 256; c++) {
        int word = bytes[34 + c / 32 * 2] + 256 * bytes[35 + c / 32 * 2];
        int row = bytes[2 + c / 8] + 256 * (word >> c / 8 % 4 * 3 & 7);
        b->code[c] = 8 * (ref_pair(grid_iq1[row], c) - 1) + (word >= 0x8000 ? -1 : 1);
    }
}

static inline void ref_iq1_m(const uint8_t *bytes, struct ref_block *b)
{
    uint8_t d[2] = {(uint8_t)(bytes[49] / 16 + bytes[51] / 16 * 16), (uint8_t)(bytes[53] / 16 + bytes[55] / 16 * 16)};
    ref_plain(b, ref_half(d, 5) / 8);
    REF_SCALES(b, 16, (bytes[48 + part / 4 * 2] + 256 * bytes[49 + part / 4 * 2]) >> part % 4 * 3 & 7)
    for (int c = 0; c < 256; c++) {
        int nibble = c / 8 % 2 ? bytes[32 + c / 16] / 16 : bytes[32 + c / 16] % 16;
        b->code[c] = 8 * (ref_pair(grid_iq1[bytes[c / 8] + 256 * (nibble % 8)], c) - 1) + (nibble >= 8 ? -1 : 1);
    }
}

static inline double ref_e4m3(int bits)
{
    int exponent = bits >> 3 & 15, fraction = bits & 7;
    return (bits & 127) == 127 ? 0 : exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
}

static inline void ref_nvfp4(const uint8_t *bytes, struct ref_block *b)
{
    static const int doubled[8] = {0, 1, 2, 3, 4, 6, 8, 12};
    ref_plain(b, 0.5);
    for (int i = 0; i < 4; i++) b->scale[i] = ref_e4m3(bytes[i]);
    for (int c = 0; c < 64; c++) {
        int byte = bytes[4 + c / 16 * 8 + c % 8], nibble = c % 16 < 8 ? byte % 16 : byte / 16;
        b->code[c] = nibble < 8 ? doubled[nibble] : -doubled[nibble - 8];
    }
}

enum { ID_Q8_0 = 8, ID_IQ1_M = 29, ID_MXFP4 = 39, ID_NVFP4 = 40 };

static const struct ref_type ref_types[] = {
    {"F32", 0, 1, 4, NULL, {0, 0}, false},
    {"F16", 1, 1, 2, NULL, {0, 0}, false},
    {"BF16", 30, 1, 2, NULL, {0, 0}, false},
    {"Q8_0", ID_Q8_0, 32, 34, ref_q8_0, {0, 0}, false},
    {"Q4_0", 2, 32, 18, ref_q4_0, {0, 0}, false},
    {"Q4_1", 3, 32, 20, ref_q4_1, {0, 2}, true},
    {"Q5_0", 6, 32, 22, ref_q5_0, {0, 0}, false},
    {"Q5_1", 7, 32, 24, ref_q5_1, {0, 2}, true},
    {"Q2_K", 10, 256, 84, ref_q2_k, {80, 82}, false},
    {"Q3_K", 11, 256, 110, ref_q3_k, {108, 108}, false},
    {"Q4_K", 12, 256, 144, ref_q4_k, {0, 2}, false},
    {"Q5_K", 13, 256, 176, ref_q5_k, {0, 2}, false},
    {"Q6_K", 14, 256, 210, ref_q6_k, {208, 208}, false},
    {"IQ4_NL", 20, 32, 18, ref_iq4_nl, {0, 0}, false},
    {"IQ4_XS", 23, 256, 136, ref_iq4_xs, {0, 0}, false},
    {"MXFP4", ID_MXFP4, 32, 17, ref_mxfp4, {0, 0}, false},
    {"Q1_0", 41, 128, 18, ref_q1_0, {0, 0}, false},
    {"Q2_0", 42, 64, 18, ref_q2_0, {0, 0}, false},
    {"TQ1_0", 34, 256, 54, ref_tq1_0, {52, 52}, false},
    {"TQ2_0", 35, 256, 66, ref_tq2_0, {64, 64}, false},
    {"IQ2_XXS", 16, 256, 66, ref_iq2_xxs, {0, 0}, false},
    {"IQ2_XS", 17, 256, 74, ref_iq2_xs, {0, 0}, false},
    {"IQ3_XXS", 18, 256, 98, ref_iq3_xxs, {0, 0}, false},
    {"IQ1_S", 19, 256, 50, ref_iq1_s, {0, 0}, false},
    {"IQ3_S", 21, 256, 110, ref_iq3_s, {0, 0}, false},
    {"IQ2_S", 22, 256, 82, ref_iq2_s, {0, 0}, false},
    {"IQ1_M", ID_IQ1_M, 256, 56, ref_iq1_m, {0, 0}, false},
    {"NVFP4", ID_NVFP4, 64, 36, ref_nvfp4, {0, 0}, false},
};
enum { REF_TYPES = sizeof ref_types / sizeof *ref_types };

/* The values of a block's columns according to the format; exact in double, rounded once. */
static inline void ref_values(const struct ref_type *t, const uint8_t *at, float *out)
{
    struct ref_block b;
    if (!t->read && t->bytes == 2) *out = (float)ref_half(at, t->gguf_id == 1 ? 5 : 8);
    if (!t->read && t->bytes == 4) memcpy(out, at, sizeof *out);
    if (!t->read) return;
    t->read(at, &b);
    for (int c = 0; c < t->columns; c++) {
        double product = b.d * b.scale[c / 16] * b.code[c];
        double min = (t->adds ? 1 : -1) * b.dmin * b.min[c / 16];
        out[c] = (float)(t->halves[1] == t->halves[0] ? product : product + min);
    }
}

static inline void ref_row(const struct ref_type *t, const uint8_t *row, int cols, float *out)
{
    for (int c = 0; c < cols; c += t->columns, row += t->bytes) ref_values(t, row, out + c);
}

/* --- generators ---------------------------------------------------------------------------------------- */

enum hostility {
    BLOCKS_RANDOM,  /* any codes (of Q8_0 all but -128), scales of small weights */
    BLOCKS_HOSTILE, /* any bytes, scales 0, subnormal, largest, infinite, NaN */
    BLOCKS_WIDE,    /* the same, with codes of -128 for Q8_0 */
    BLOCKS_FULL,    /* scales 1, every other bit set: largest codes, scales and mins; 127 for Q8_0 */
    BLOCKS_LOW,     /* scales 1, every other bit clear: most negative codes; -128 for Q8_0 */
    BLOCKS_KINDS
};

static inline void put_half(uint8_t *at, int bits) { at[0] = (uint8_t)bits, at[1] = (uint8_t)(bits >> 8); }

static inline int hostile_half(uint64_t *seed)
{
    static const int odd[] = {0,      0x8000, 1,      0x8001, 0x03FF, 0x0400, 0x7BFF,
                              0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFD01, 0x3C00};
    return odd[random_below(seed, sizeof odd / sizeof *odd)];
}

/* Scales near 2^-10, as in real weights. */
static inline int tame_half(uint64_t *seed) { return (random_below(seed, 0x10000) & 0x83FF) | 0x1400; }

static inline bool hostile(enum hostility how) { return how == BLOCKS_HOSTILE || how == BLOCKS_WIDE; }

static inline void make_float_weight(const struct ref_type *t, enum hostility how, uint64_t *seed, uint8_t *out)
{
    float v = random_unit(seed);
    if (t->bytes == 4 && !hostile(how)) memcpy(out, &v, sizeof v);
    if (t->bytes == 2)
        put_half(out, hostile(how) && random_below(seed, 2) ? hostile_half(seed) : tame_half(seed) + 0x2000);
}

/* Writes scale i (0 or 1) of a block; IQ1_M has its own in nibbles, and those of NVFP4 become 1. */
static inline void put_scale(const struct ref_type *t, int i, int bits, uint8_t *block)
{
    if (t->gguf_id == ID_NVFP4) memset(block, 0x38, 4);
    else if (t->gguf_id != ID_IQ1_M) put_half(block + t->halves[i], bits);
    else
        for (int k = 0; k < 4; k++) block[49 + 2 * k] = (uint8_t)(block[49 + 2 * k] % 16 + (bits >> 4 * k & 15) * 16);
}

/* Writes the scales of a block. MXFP4 has a byte that is a power of 2; all bytes are scales of NVFP4. */
static inline void make_scales(const struct ref_type *t, enum hostility how, uint64_t *seed, uint8_t *out)
{
    if (t->gguf_id == ID_NVFP4) return;
    if (t->gguf_id == ID_MXFP4) {
        if (!hostile(how)) out[0] = (uint8_t)(how == BLOCKS_RANDOM ? 110 + random_below(seed, 20) : 128);
        return;
    }
    for (int i = 0; i < 2; i++)
        put_scale(t, i, how == BLOCKS_RANDOM ? tame_half(seed) : hostile(how) ? hostile_half(seed) : 0x3C00, out);
}

static inline void make_block(const struct ref_type *t, enum hostility how, uint64_t *seed, uint8_t *out)
{
    int fill = how == BLOCKS_FULL ? 0xFF : how == BLOCKS_LOW ? 0 : -1;
    bool q8 = t->gguf_id == ID_Q8_0;
    if (q8 && fill >= 0) fill ^= 0x80;
    for (int i = 0; i < t->bytes; i++) {
        out[i] = fill >= 0 ? (uint8_t)fill : (uint8_t)random_below(seed, 256);
        if (q8 && out[i] == 0x80 && how <= BLOCKS_HOSTILE) out[i] = 0x81;
    }
    if (!t->read) make_float_weight(t, how, seed, out);
    if (t->read) make_scales(t, how, seed, out);
}

/* Makes rows x cols of the type as in a file; the caller frees them. */
static inline uint8_t *make_rows(const struct ref_type *t, enum hostility how, uint64_t *seed, int rows, int cols)
{
    size_t count = (size_t)rows * (size_t)(cols / t->columns);
    uint8_t *out = malloc(count * (size_t)t->bytes);
    if (!out) exit(2);
    for (size_t i = 0; i < count; i++) make_block(t, how, seed, out + i * (size_t)t->bytes);
    return out;
}

static inline size_t ref_row_bytes(const struct ref_type *t, int cols)
{
    return (size_t)(cols / t->columns * t->bytes);
}

#endif
