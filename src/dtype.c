/* SPDX-License-Identifier: MIT
 *
 * The table of types and the block decoders.
 */
#include "dtype.h"

#include <string.h>

/* f16 d, int8 code[32] */
static void unpack_q8_0(const uint8_t *b, struct unit *u)
{
    u->d = load_u16(b);
    memcpy(u->code, b + 2, 32);
}

/* int8 code[32] */
static void unpack_q8f(const uint8_t *b, struct unit *u) { memcpy(u->code, b, 32); }

/* n bytes: low nibbles to out [0, n), high ones to out [n, 2 n). */
static inline __attribute__((always_inline)) void split_nibbles(const uint8_t *restrict in, int n, uint8_t *restrict out)
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

/* f16 d, f16 dmin, 12 bytes of 6-bit scales and mins, 128 bytes of nibbles: each 32 bytes hold 64 columns,
 * low nibbles first. Scales 0..3 and mins 0..3 are the low 6 bits of bytes 0..7; numbers 4..7 have their low nibbles
 * in bytes 8..11 and their two high bits on top of bytes 0..7. */
static void unpack_q4_k(const uint8_t *b, struct unit *u)
{
    const uint8_t *packed = b + 4, *nibbles = b + 16;
    u->d = load_u16(b);
    u->dmin = load_u16(b + 2);
    for (int i = 0; i < 4; i++) {
        u->scale[i] = packed[i] & 63;
        u->min[i] = packed[i + 4] & 63;
        u->scale[i + 4] = (uint8_t)((packed[i + 8] & 15) | (packed[i] >> 6) << 4);
        u->min[i + 4] = (uint8_t)(packed[i + 8] >> 4 | (packed[i + 4] >> 6) << 4);
    }
    for (int i = 0; i < 4; i++) split_nibbles(nibbles + 32 * i, 32, u->code + 64 * i);
}

/* 128 bytes of low nibbles, 64 bytes of high bit pairs, int8 scale[16], f16 d. Each half of 128 columns has 64
 * nibble bytes and 32 pair bytes: column group g (32 columns) takes nibble bytes 32 * (g % 2) on, low nibbles for g < 2,
 * and bit pair g of the pair bytes. */
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

static const struct dtype types[] = {
    /*name      id  block bytes  layout       unpack */
    {"F32",      0,   1,   4, LAYOUT_F32,  NULL},
    {"F16",      1,   1,   2, LAYOUT_F16,  NULL},
    {"BF16",    30,   1,   2, LAYOUT_BF16, NULL},
    {"Q8_0",     8,  32,  34, LAYOUT_Q8,   unpack_q8_0},
    {"Q4_0",     2,  32,  18, LAYOUT_Q4,   unpack_q4_0},
    {"Q4_K",    12, 256, 144, LAYOUT_Q4K,  unpack_q4_k},
    {"Q6_K",    14, 256, 210, LAYOUT_Q6K,  unpack_q6_k},
    /* Of other files than GGUF. Q8F: 8-bit codes with a float scale for 32, 64 or 128 columns; F8_E4M3: with one for 128 x 128 weights. */
    {"Q8F",     NO_GGUF_ID, 32, 32, LAYOUT_Q8F, unpack_q8f},
    {"F8_E4M3", NO_GGUF_ID,  1,  1, LAYOUT_F8,  NULL},
    /* Known by name, so that a file that holds one is refused with a sentence that says so. */
    {"Q4_1",     3,  32,  20, LAYOUT_NONE, NULL},
    {"Q5_0",     6,  32,  22, LAYOUT_NONE, NULL},
    {"Q5_1",     7,  32,  24, LAYOUT_NONE, NULL},
    {"Q8_1",     9,  32,  36, LAYOUT_NONE, NULL},
    {"Q2_K",    10, 256,  84, LAYOUT_NONE, NULL},
    {"Q3_K",    11, 256, 110, LAYOUT_NONE, NULL},
    {"Q5_K",    13, 256, 176, LAYOUT_NONE, NULL},
    {"Q8_K",    15, 256, 292, LAYOUT_NONE, NULL},
    {"IQ2_XXS", 16, 256,  66, LAYOUT_NONE, NULL},
    {"IQ2_XS",  17, 256,  74, LAYOUT_NONE, NULL},
    {"IQ3_XXS", 18, 256,  98, LAYOUT_NONE, NULL},
    {"IQ1_S",   19, 256,  50, LAYOUT_NONE, NULL},
    {"IQ4_NL",  20,  32,  18, LAYOUT_NONE, NULL},
    {"IQ3_S",   21, 256, 110, LAYOUT_NONE, NULL},
    {"IQ2_S",   22, 256,  82, LAYOUT_NONE, NULL},
    {"IQ4_XS",  23, 256, 136, LAYOUT_NONE, NULL},
    {"I8",      24,   1,   1, LAYOUT_NONE, NULL},
    {"I16",     25,   1,   2, LAYOUT_NONE, NULL},
    {"I32",     26,   1,   4, LAYOUT_NONE, NULL},
    {"I64",     27,   1,   8, LAYOUT_NONE, NULL},
    {"F64",     28,   1,   8, LAYOUT_NONE, NULL},
    {"IQ1_M",   29, 256,  56, LAYOUT_NONE, NULL},
    {"TQ1_0",   34, 256,  54, LAYOUT_NONE, NULL},
    {"TQ2_0",   35, 256,  66, LAYOUT_NONE, NULL},
    {"MXFP4",   39,  32,  17, LAYOUT_NONE, NULL},
};

const struct dtype *dtype_by_gguf(uint32_t id)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].gguf_id == id && id != NO_GGUF_ID) return &types[i];
    return NULL;
}

const struct dtype *dtype_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, name)) return &types[i];
    return NULL;
}
