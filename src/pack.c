/* SPDX-License-Identifier: MIT
 *
 * File blocks -> panels, and one panel row -> floats.
 *
 * Packing goes unit by unit: decode the block of each of 8 rows into a struct unit, then scatter the eight. That is one scalar
 * decoder per file type and one scatter per layout, whatever their number.
 */
#include "pack.h"

#include "num.h"

#include <string.h>

const struct layout_info layouts[LAYOUT_COUNT] = {
    [LAYOUT_F32] = {1, 32, false, false},
    [LAYOUT_F16] = {1, 16, false, false},
    [LAYOUT_BF16] = {1, 16, false, false},
    [LAYOUT_Q8] = {32, 16 + 256, true, false},
    [LAYOUT_Q4] = {32, 16 + 128, true, false},
    [LAYOUT_Q4K] = {256, 32 + 8 * 144, true, false},
    [LAYOUT_Q6K] = {256, 16 + 8 * 208, true, false},
    [LAYOUT_Q8F] = {32, 32 + 256, true, true},
    [LAYOUT_F8] = {128, 16 + 1024, false, true},
};

size_t panel_bytes(enum layout layout, int cols)
{
    return (size_t)(cols / layouts[layout].columns) * (size_t)layouts[layout].bytes;
}

/* --- scatter: 8 decoded rows -> one unit of a panel --------------------------------------------------- */

typedef void scatter_fn(const struct unit u[PANEL_ROWS], uint8_t *out);

static void put_u16(uint8_t *out, uint16_t v) { memcpy(out, &v, sizeof v); }
static void put_u32(uint8_t *out, uint32_t v) { memcpy(out, &v, sizeof v); }

/* Each byte of a word masked, its bits moved up by n. */
static uint32_t bits_up(uint32_t codes, uint32_t mask, int n) { return (codes & mask * 0x01010101u) << n; }

static void scatter_bytes(const struct unit u[PANEL_ROWS], uint8_t *out)
{
    for (int r = 0; r < PANEL_ROWS; r++)
        for (int g = 0; g < 8; g++) memcpy(out + 32 * g + 4 * r, u[r].code + 4 * g, 4);
}

static void scatter_q8(const struct unit u[PANEL_ROWS], uint8_t *out)
{
    for (int r = 0; r < PANEL_ROWS; r++) put_u16(out + 2 * r, u[r].d);
    scatter_bytes(u, out + 16);
}

static void scatter_q8f(const struct unit u[PANEL_ROWS], uint8_t *out) { scatter_bytes(u, out + 32); }

/* 8 groups of 4 columns from column `from` on: 128 bytes of low nibbles. Four columns at a time. */
static void scatter_nibbles(const struct unit u[PANEL_ROWS], int from, uint8_t *out)
{
    for (int g = 0; g < 8; g++)
        for (int r = 0; r < 4; r++) {
            int c = from + 4 * g;
            put_u32(out + 16 * g + 4 * r, bits_up(load_u32(u[r].code + c), 15, 0) | bits_up(load_u32(u[r + 4].code + c), 15, 4));
        }
}

static void scatter_q4(const struct unit u[PANEL_ROWS], uint8_t *out)
{
    for (int r = 0; r < PANEL_ROWS; r++) put_u16(out + 2 * r, u[r].d);
    scatter_nibbles(u, 0, out + 16);
}

static void scatter_q4k(const struct unit u[PANEL_ROWS], uint8_t *out)
{
    for (int r = 0; r < PANEL_ROWS; r++) {
        put_u16(out + 2 * r, u[r].d);
        put_u16(out + 16 + 2 * r, u[r].dmin);
    }
    for (int b = 0; b < 8; b++) {
        uint8_t *block = out + 32 + 144 * b;
        for (int r = 0; r < PANEL_ROWS; r++) {
            block[r] = u[r].scale[b];
            block[8 + r] = u[r].min[b];
        }
        scatter_nibbles(u, 32 * b, block + 16);
    }
}

/* The two high bits of four codes of 6. */
static uint32_t high_pairs(const uint8_t *codes) { return load_u32(codes) >> 4 & 0x03030303u; }

/* 4 times 16 bytes of bit pairs from column `from` on. */
static void scatter_pairs(const struct unit u[PANEL_ROWS], int from, uint8_t *out)
{
    for (int k = 0; k < 4; k++)
        for (int r = 0; r < 4; r++) {
            const uint8_t *low = u[r].code + from + 8 * k, *high = u[r + 4].code + from + 8 * k;
            put_u32(out + 16 * k + 4 * r, high_pairs(low) | high_pairs(high) << 2 | high_pairs(low + 4) << 4 | high_pairs(high + 4) << 6);
        }
}

static void scatter_q6k(const struct unit u[PANEL_ROWS], uint8_t *out)
{
    for (int r = 0; r < PANEL_ROWS; r++) put_u16(out + 2 * r, u[r].d);
    for (int b = 0; b < 8; b++) {
        uint8_t *block = out + 16 + 208 * b;
        for (int r = 0; r < PANEL_ROWS; r++) {
            block[r] = u[r].scale[2 * b];
            block[8 + r] = u[r].scale[2 * b + 1];
        }
        scatter_nibbles(u, 32 * b, block + 16);
        scatter_pairs(u, 32 * b, block + 144);
    }
}

static scatter_fn *const scatters[LAYOUT_COUNT] = {
    [LAYOUT_Q8] = scatter_q8, [LAYOUT_Q4] = scatter_q4, [LAYOUT_Q4K] = scatter_q4k, [LAYOUT_Q6K] = scatter_q6k, [LAYOUT_Q8F] = scatter_q8f,
};

/* --- packing ------------------------------------------------------------------------------------------ */

static void pack_quantised(const struct dtype *type, const uint8_t *rows, size_t row_bytes, int n_rows, int cols, uint8_t *panel)
{
    struct unit units[PANEL_ROWS];
    memset(units, 0, sizeof units);
    size_t unit_bytes = (size_t)layouts[type->layout].bytes;
    for (size_t b = 0; b < (size_t)cols / type->block; b++) {
        for (int r = 0; r < n_rows; r++) type->unpack(rows + (size_t)r * row_bytes + b * type->bytes, &units[r]);
        scatters[type->layout](units, panel + b * unit_bytes);
    }
}

/* Each width has code of its own: moves of a known size are one instruction. */
static inline __attribute__((always_inline)) void pack_floats(size_t width, const uint8_t *rows, size_t row_bytes, int n_rows, int cols, uint8_t *panel)
{
    if (n_rows < PANEL_ROWS) memset(panel, 0, (size_t)cols * PANEL_ROWS * width);
    for (size_t c = 0; c < (size_t)cols; c++)
        for (size_t r = 0; r < (size_t)n_rows; r++) memcpy(panel + (c * PANEL_ROWS + r) * width, rows + r * row_bytes + c * width, width);
}

/* A byte of row r of column c. */
static size_t f8_at(size_t c, size_t r) { return c / 128 * 1040 + 16 + c % 128 * PANEL_ROWS + r; }

static void pack_f8(const uint8_t *rows, size_t row_bytes, int n_rows, int cols, uint8_t *panel)
{
    for (size_t c = 0; c < (size_t)cols; c++)
        for (size_t r = 0; r < PANEL_ROWS; r++) panel[f8_at(c, r)] = r < (size_t)n_rows ? rows[r * row_bytes + c] : 0;
}

void pack_scale(enum layout layout, uint8_t *panel, int r, int col, int n_cols, float scale)
{
    size_t columns = (size_t)layouts[layout].columns, bytes = (size_t)layouts[layout].bytes, offset = layout == LAYOUT_F8 ? 0 : 4 * (size_t)r;
    for (size_t c = (size_t)col; c < (size_t)(col + n_cols); c += columns) memcpy(panel + c / columns * bytes + offset, &scale, sizeof scale);
}

void pack_panel(const struct dtype *type, const uint8_t *rows, size_t row_bytes, int n_rows, int cols, uint8_t *panel)
{
    if (layouts[type->layout].quantised) pack_quantised(type, rows, row_bytes, n_rows, cols, panel);
    else if (type->layout == LAYOUT_F8) pack_f8(rows, row_bytes, n_rows, cols, panel);
    else if (type->bytes == 4) pack_floats(4, rows, row_bytes, n_rows, cols, panel);
    else pack_floats(2, rows, row_bytes, n_rows, cols, panel);
}

/* --- one panel row back to floats -------------------------------------------------------------------- */

static float half_at(const uint8_t *halves, int i) { return f32_from_f16(load_u16(halves + 2 * i)); }

/* Row r, column c (0..31) of a block's nibbles. */
static int nibble_at(const uint8_t *nibbles, int r, int c)
{
    return nibbles[16 * (c / 4) + 4 * (r % 4) + c % 4] >> (r < 4 ? 0 : 4) & 15;
}

static int pair_at(const uint8_t *pairs, int r, int c)
{
    int shift = (r < 4 ? 0 : 2) + (c / 4 % 2) * 4;
    return pairs[16 * (c / 8) + 4 * (r % 4) + c % 4] >> shift & 3;
}

static void row_q8(const uint8_t *u, int r, float *out)
{
    float d = half_at(u, r);
    for (int c = 0; c < 32; c++) out[c] = (float)(int8_t)u[16 + 32 * (c / 4) + 4 * r + c % 4] * d;
}

static void row_q4(const uint8_t *u, int r, float *out)
{
    float d = half_at(u, r);
    for (int c = 0; c < 32; c++) out[c] = (float)(nibble_at(u + 16, r, c) - 8) * d;
}

static void row_q4k(const uint8_t *u, int r, float *out)
{
    float d = half_at(u, r), dmin = half_at(u + 16, r);
    for (int c = 0; c < 256; c++) {
        const uint8_t *block = u + 32 + 144 * (c / 32);
        float scale = d * (float)block[r], min = dmin * (float)block[8 + r];
        out[c] = scale * (float)nibble_at(block + 16, r, c % 32) - min;
    }
}

static void row_q6k(const uint8_t *u, int r, float *out)
{
    float d = half_at(u, r);
    for (int c = 0; c < 256; c++) {
        const uint8_t *block = u + 16 + 208 * (c / 32);
        float scale = d * (float)(int8_t)block[8 * (c % 32 / 16) + r];
        int code = nibble_at(block + 16, r, c % 32) | pair_at(block + 144, r, c % 32) << 4;
        out[c] = scale * (float)(code - 32);
    }
}

static void row_q8f(const uint8_t *u, int r, float *out)
{
    float d = load_f32(u + 4 * r);
    for (int c = 0; c < 32; c++) out[c] = (float)(int8_t)u[32 + 32 * (c / 4) + 4 * r + c % 4] * d;
}

static void row_f8(const uint8_t *u, int r, float *out)
{
    float d = load_f32(u);
    for (int c = 0; c < 128; c++) out[c] = f32_from_e4m3(u[16 + 8 * c + r]) * d;
}

static void row_f32(const uint8_t *u, int r, float *out) { *out = load_f32(u + 4 * r); }
static void row_f16(const uint8_t *u, int r, float *out) { *out = half_at(u, r); }
static void row_bf16(const uint8_t *u, int r, float *out) { *out = f32_from_bf16(load_u16(u + 2 * r)); }

void unpack_panel_row(enum layout layout, const uint8_t *panel, int r, int cols, float *out)
{
    static void (*const rows[LAYOUT_COUNT])(const uint8_t *, int, float *) = {
        [LAYOUT_F32] = row_f32, [LAYOUT_F16] = row_f16, [LAYOUT_BF16] = row_bf16,
        [LAYOUT_Q8] = row_q8, [LAYOUT_Q4] = row_q4, [LAYOUT_Q4K] = row_q4k, [LAYOUT_Q6K] = row_q6k,
        [LAYOUT_Q8F] = row_q8f, [LAYOUT_F8] = row_f8,
    };
    const struct layout_info *info = &layouts[layout];
    for (int c = 0; c < cols; c += info->columns) {
        rows[layout](panel, r, out + c);
        panel += info->bytes;
    }
}
