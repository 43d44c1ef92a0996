/* SPDX-License-Identifier: MIT
 *
 * Panels: weights in the order that the kernels need. 8 rows of a matrix are interleaved, so that one 16-byte load of
 * codes meets one broadcast of 4 activations, and the sums of 8 rows stay in lanes.
 *
 * A panel is a row of units, from column 0 on; rows after the end of the matrix are zero. A unit of floats is one
 * column of 8 rows: f32 [8] or u16 [8]; for F8 it is 128 columns: f32 d[8], u8 [128][8]. A unit of codes,
 * with r the row 0..7, has u16 d[8], then u16 dmin[8] if the layout has mins (f32 if they come apart); then per 32
 * columns its scales (see enum kind) and its codes. The codes of a block are 4 steps of 8 columns. A step has 4 half
 * groups k = 2 * (r / 4) + column / 4 % 2 of 4 rows x 4 columns. They are in vectors of 16 bytes, bits / 2 vectors per
 * step; byte 4 * (r % 4) + column % 4 belongs to row r. Odd widths add one vector per two steps, low nibble first.
 * `pieces` assigns the bits. With codes of one bit a step has 8 bytes, with the 8 columns of row r in byte r.
 */
#ifndef QUERN_PACK_H
#define QUERN_PACK_H

#include "base/num.h"
#include "weights/dtype.h"

enum { PANEL_ROWS = 8, BLOCK = 32 }; /* BLOCK: columns per activation scale (MODEL.md, "Arithmetic") */

/* Scales that are stored with a block of codes. value = d * scale * (code - offset) - dmin * min; an absent min is 0,
 * other absent factors are 1. */
enum kind {
    KIND_FLOAT,     /* no codes */
    KIND_PLAIN,     /* d */
    KIND_MIN,       /* d, dmin */
    KIND_SCALE,     /* d; per block: int8 scale[8] */
    KIND_HALVES,    /* d; per block: int8 scale[2 halves of 16 columns][8] */
    KIND_MINS,      /* d, dmin; per block: u8 scale[8], u8 min[8] */
    KIND_HALF_MINS, /* d, dmin; per block: u8 [2 halves][8], scale in the low nibble and min in the high one */
    KIND_HALF_FLOATS, /* d; per block: e4m3 scale[2 halves of 16 columns][8] */
};

#define HAS_MINS(kind) ((kind) == KIND_MIN || (kind) == KIND_MINS || (kind) == KIND_HALF_MINS)
static inline bool has_mins(enum kind kind) { return HAS_MINS(kind); }

/* D_QUARTER, D_EIGHTH: d is that part of the f16. D_F32: stored apart from the codes, see pack_part(); UNDOUBLED if a
 * file has none of KIND_HALF_FLOATS. */
enum d_type { D_F16, D_BF16, D_F32, D_QUARTER, D_EIGHTH };
static inline float d_part(enum d_type d) { return d == D_QUARTER ? 0.25f : d == D_EIGHTH ? 0.125f : 1; }

/* The values of IQ4's codes, and those of a 4-bit float (1 sign bit, 2 exponent bits, 1 fraction bit) times 2. */
static const int8_t table_iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
static const int8_t table_fp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
#define UNDOUBLED 0.5f /* factor for the values of table_fp4 */
/* The values of codes of 1 bit and of 2 bits. */
static const int8_t table_signs[16] = {-1, 1};

/* The values of the codes that grids.c makes: a magnitude, with the sign in the highest bit. Those of IQ1 are times 8,
 * with the shift of an eighth added (highest bit 0) or subtracted. */
static const int8_t table_iq3_s[16] = {1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15};
static const int8_t table_iq3_xxs[16] = {4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62};
static const int8_t table_iq2[16] = {8, 25, 43, 0, -8, -25, -43};
static const int8_t table_iq1[16] = {-7, 1, 9, 0, -9, -1, 7};

/* Facts about a unit: 8 rows x columns. */
struct layout_info {
    int columns, bytes;
    enum kind kind;
    enum d_type d;
    int head, scales;    /* bytes of d and dmin per unit; bytes of the scales per block */
    int block;           /* bytes per block: scales, then codes */
    int bits, offset;    /* bits of a code; the offset is 0, or a power of 2 */
    int value_bits;      /* bits of a code's value with its sign; more than `bits` if there is a table */
    const int8_t *table; /* [16] values of the codes, or NULL */
    bool scaled;         /* d, and dmin, are stored apart from the codes: pack_part() */
};

/* The layouts of codes. Packing, scalar kernels and SIMD kernels with their constants are generated from these rows.
 * Those of this list are in every build. */
#define CODE_LAYOUTS(ROW)                                                      \
    /*  name   kind          columns bits offset value_bits table      d */    \
    ROW(Q8,    KIND_PLAIN,      32,  8,  0, 8, NULL,      D_F16)               \
    ROW(Q4,    KIND_PLAIN,      32,  4,  8, 4, NULL,      D_F16)               \
    ROW(Q4_1,  KIND_MIN,        32,  4,  0, 4, NULL,      D_F16)               \
    ROW(Q5,    KIND_PLAIN,      32,  5, 16, 5, NULL,      D_F16)               \
    ROW(Q5_1,  KIND_MIN,        32,  5,  0, 5, NULL,      D_F16)               \
    ROW(Q2K,   KIND_HALF_MINS, 256,  2,  0, 2, NULL,      D_F16)               \
    ROW(Q3K,   KIND_HALVES,    256,  3,  4, 3, NULL,      D_F16)               \
    ROW(Q4K,   KIND_MINS,      256,  4,  0, 4, NULL,      D_F16)               \
    ROW(Q5K,   KIND_MINS,      256,  5,  0, 5, NULL,      D_F16)               \
    ROW(Q6K,   KIND_HALVES,    256,  6, 32, 6, NULL,      D_F16)               \
    ROW(IQ4,   KIND_PLAIN,      32,  4,  0, 8, table_iq4, D_F16)               \
    ROW(IQ4XS, KIND_SCALE,     256,  4,  0, 8, table_iq4, D_F16)               \
    ROW(FP4,   KIND_PLAIN,      32,  4,  0, 5, table_fp4, D_BF16)              \
    ROW(Q1,    KIND_PLAIN,     128,  1,  0, 4, table_signs, D_F16)             \
    ROW(Q2,    KIND_PLAIN,      64,  2,  1, 2, NULL,      D_F16)

/* The same of other types of GGUF files (grids.c), of folders that other programs quantised (codes.c), and of
 * checkpoints. Only the full build has their kernels. Values in grids have 7 bits, also where fewer would do: every dot
 * product of bytes is exact for them, so all have the same few kernels. */
#define FULL_LAYOUTS(ROW)                                                          \
    /*  name    kind         columns bits offset value_bits table          d */    \
    ROW(IQ3S,   KIND_SCALE,     256,  4,  0, 7, table_iq3_s,   D_F16)              \
    ROW(IQ3XXS, KIND_SCALE,     256,  4,  0, 7, table_iq3_xxs, D_QUARTER)          \
    ROW(IQ2S,   KIND_HALVES,    256,  3,  0, 7, table_iq2,     D_EIGHTH)           \
    ROW(IQ2XXS, KIND_SCALE,     256,  3,  0, 7, table_iq2,     D_EIGHTH)           \
    ROW(IQ1M,   KIND_HALVES,    256,  3,  0, 7, table_iq1,     D_EIGHTH)           \
    ROW(IQ1S,   KIND_SCALE,     256,  3,  0, 7, table_iq1,     D_EIGHTH)           \
    ROW(NV4,    KIND_HALF_FLOATS, 64, 4, 0, 5, table_fp4,      D_F32)              \
    ROW(Q8F,    KIND_PLAIN,      32,  8,  0, 8, NULL,          D_F32)              \
    ROW(A4,     KIND_MIN,        64,  4,  0, 4, NULL,          D_F32)              \
    ROW(A4S,    KIND_MIN,        32,  4,  0, 4, NULL,          D_F32)              \
    ROW(A8,     KIND_MIN,        64,  8,  0, 8, NULL,          D_F32)              \
    ROW(A8S,    KIND_MIN,        32,  8,  0, 8, NULL,          D_F32)
#define ALL_LAYOUTS(ROW) CODE_LAYOUTS(ROW) FULL_LAYOUTS(ROW)

#define HEAD_BYTES(kind, d) (PANEL_ROWS * ((d) == D_F32 ? 4 : 2) * (HAS_MINS(kind) ? 2 : 1))
#define SCALE_BYTES(kind) ((kind) == KIND_SCALE ? 8 : (kind) > KIND_SCALE ? 16 : 0)
#define BLOCK_BYTES(kind, bits) (SCALE_BYTES(kind) + PANEL_ROWS * BLOCK / 8 * (bits))
#define INFO(name, kind, columns, bits, offset, value_bits, table, d) \
    [LAYOUT_##name] = {columns, \
                       HEAD_BYTES(kind, d) + (columns) / BLOCK * BLOCK_BYTES(kind, bits), \
                       kind, \
                       d, \
                       HEAD_BYTES(kind, d), \
                       SCALE_BYTES(kind), \
                       BLOCK_BYTES(kind, bits), \
                       bits, \
                       offset, \
                       value_bits, \
                       table, \
                       (d) == D_F32},

static const struct layout_info layouts[LAYOUT_COUNT] = {
    [LAYOUT_F32] = {.columns = 1, .bytes = 32},
    [LAYOUT_F16] = {.columns = 1, .bytes = 16},
    [LAYOUT_BF16] = {.columns = 1, .bytes = 16},
    [LAYOUT_F8] = {.columns = 128, .bytes = 32 + 1024, .d = D_F32, .head = 32, .scaled = true},
    ALL_LAYOUTS(INFO)
};
#undef INFO

/* Bits `from` .. `from` + `width` of half group k's codes are at bit `to` of vector `place` of a step. For odd widths
 * the last vector of a step is a nibble wide. As many codes as possible stay whole; the remaining bits of the vectors
 * together make the other codes. */
struct piece {
    int k, from, width, place, to;
};
enum { PIECES = 6 };

static const struct piece pieces[9][PIECES] = {
    [2] = {{0, 0, 2, 0, 0}, {1, 0, 2, 0, 2}, {2, 0, 2, 0, 4}, {3, 0, 2, 0, 6}},
    [3] = {{0, 0, 3, 0, 0}, {1, 0, 3, 0, 3}, {2, 1, 2, 0, 6}, {2, 0, 1, 1, 0}, {3, 0, 3, 1, 1}},
    [4] = {{0, 0, 4, 0, 0}, {1, 0, 4, 0, 4}, {2, 0, 4, 1, 0}, {3, 0, 4, 1, 4}},
    [5] = {{0, 0, 5, 0, 0}, {1, 0, 5, 1, 0}, {2, 2, 3, 0, 5}, {3, 2, 3, 1, 5}, {2, 0, 2, 2, 0}, {3, 0, 2, 2, 2}},
    [6] = {{0, 0, 6, 0, 0}, {1, 0, 6, 1, 0}, {2, 0, 6, 2, 0}, {3, 0, 2, 0, 6}, {3, 2, 2, 1, 6}, {3, 4, 2, 2, 6}},
    [8] = {{0, 0, 8, 0, 0}, {1, 0, 8, 1, 0}, {2, 0, 8, 2, 0}, {3, 0, 8, 3, 0}},
};

/* Position of a vector among the codes of a block. */
static inline size_t piece_at(int bits, int step, int place)
{
    return 16 * (size_t)(place < bits / 2 ? bits / 2 * step + place : bits / 2 * 4 + step / 2);
}

/* Shift of a step's bits within its vector. */
static inline int piece_shift(int bits, int step, int place) { return place < bits / 2 ? 0 : 4 * (step % 2); }

/* Bytes of one panel of `cols` columns (a multiple of the type's block). */
size_t panel_bytes(enum layout layout, int cols);

/* Packs n_rows (1..8) rows of a file, row_bytes apart, into one panel. */
void pack_panel(const struct dtype *type, const uint8_t *rows, size_t row_bytes, int n_rows, int cols, uint8_t *panel);

/* The same for a type of dtype_of_codes(), with column order[k] of the file as column k. */
void pack_ordered(const struct dtype *type, const uint8_t *rows, size_t row_bytes, int n_rows, int cols,
                  const uint32_t *order, uint8_t *panel);

/* Packs 8 decoded rows into one unit of a panel, from `column` of each on. */
void pack_unit(enum layout layout, const struct unit u[PANEL_ROWS], int column, uint8_t *out);

/* Decodes `cols` columns (whole blocks) of a file's row of codes to exactly the values that it encodes. Of the types
 * whose scales are stored apart only for NVFP4, without that scale. */
void unpack_row(const struct dtype *type, const uint8_t *row, int cols, float *out);

/* Sets a number of n_cols columns of row r, in any order; col is the first column of a unit. The panel began as zeros.
 */
void pack_part(const struct dtype *type, uint8_t *panel, int r, int col, int n_cols, enum weight_part part,
               float value);

/* 32 columns of one row, decoded. Without mins dmin is 0; absent scales are 1. */
struct block {
    float d, dmin;
    float scale[2]; /* per half of 16 columns; an integer, except that of KIND_HALF_FLOATS */
    int min[2];
    int code[BLOCK];      /* without the offset */
};

/* Block b of row r of a panel of codes. */
void unpack_block(enum layout layout, const uint8_t *panel, int b, int r, struct block *out);

/* For F8: offset in a panel of the unit of column c, and of the bytes of its 8 rows. */
static inline size_t f8_unit(size_t c)
{
    return c / (size_t)layouts[LAYOUT_F8].columns * (size_t)layouts[LAYOUT_F8].bytes;
}
static inline size_t f8_column(size_t c)
{
    return f8_unit(c) + (size_t)layouts[LAYOUT_F8].head + c % (size_t)layouts[LAYOUT_F8].columns * PANEL_ROWS;
}
static inline float f8_value(const uint8_t *panel, size_t c, size_t r)
{
    return f32_from_e4m3(panel[f8_column(c) + r]) * load_f32(panel + f8_unit(c) + 4 * r);
}

/* Decodes row r (0..7) of a panel to exactly the values that the file encodes. out [cols]. */
void unpack_panel_row(enum layout layout, const uint8_t *panel, int r, int cols, float *out);

#endif
