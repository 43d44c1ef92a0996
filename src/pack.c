/* SPDX-License-Identifier: MIT
 *
 * File blocks -> panels, and one panel row -> floats.
 *
 * Packing goes unit by unit: decode the block of each of 8 rows into a struct unit, then scatter the eight. That is one scalar
 * decoder per file type and one scatter, which the table of layouts makes each layout's own.
 */
#include "pack.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

size_t panel_bytes(enum layout layout, int cols)
{
    return (size_t)(cols / layouts[layout].columns) * (size_t)layouts[layout].bytes;
}

/* Bits of a layout's first plane. */
INLINE int low_bits(int bits) { return bits == 8 ? 8 : bits >= 4 ? 4 : 2; }

/* --- scatter: 8 decoded rows -> one unit of a panel --------------------------------------------------- */

typedef void scatter_fn(const struct unit u[PANEL_ROWS], uint8_t *out);

static void put_u16(uint8_t *out, uint16_t v) { memcpy(out, &v, sizeof v); }
static void put_u32(uint8_t *out, uint32_t v) { memcpy(out, &v, sizeof v); }

/* Bits from .. from + width - 1 of the codes of 32 columns as a plane. Four columns at a time. */
INLINE void scatter_plane(const struct unit u[PANEL_ROWS], int column, int from, int width, uint8_t *out)
{
    const int per_byte = 8 / width;
    const uint32_t mask = ((1u << width) - 1) * 0x01010101u;
    for (int v = 0; v < 16 / per_byte; v++)
        for (int r = 0; r < 4; r++) {
            uint32_t word = 0;
#pragma GCC unroll 8
            for (int i = 0; i < per_byte; i++) {
                int k = v * per_byte + i;
                word |= (load_u32(u[r + k / 2 % 2 * 4].code + column + k / 4 * 8 + k % 2 * 4) >> from & mask) << width * i;
            }
            put_u32(out + 16 * v + 4 * r, word);
        }
}

INLINE void scatter_scales(const struct unit *u, int r, int block, const enum kind kind, uint8_t *out)
{
    if (kind == KIND_SCALE) out[r] = u->scale[block];
    if (kind == KIND_MINS) out[r] = u->scale[block], out[8 + r] = u->min[block];
    for (int h = 0; h < 2; h++) {
        if (kind == KIND_HALVES) out[8 * h + r] = u->scale[2 * block + h];
        if (kind == KIND_HALF_MINS) out[8 * h + r] = (uint8_t)(u->scale[2 * block + h] | u->min[2 * block + h] << 4);
    }
}

INLINE void scatter(const struct unit u[PANEL_ROWS], uint8_t *out, const enum layout layout)
{
    const struct layout_info l = layouts[layout];
    const int blocks = l.columns / BLOCK, low = low_bits(l.bits);
    uint8_t *block = out + l.head;
    for (int r = 0; r < PANEL_ROWS; r++) {
        put_u16(out + 2 * r, u[r].d);
        if (has_mins(l.kind)) put_u16(out + 16 + 2 * r, u[r].dmin);
    }
    for (int b = 0; b < blocks; b++, block += l.block) {
        uint8_t *codes = block + l.scales;
        for (int r = 0; r < PANEL_ROWS; r++) scatter_scales(&u[r], r, b, l.kind, block);
        scatter_plane(u, b * BLOCK, 0, low, codes);
        if (l.bits > low) scatter_plane(u, b * BLOCK, low, l.bits - low, codes + 32 * low);
    }
}

/* What people download most has code of its own, in which the numbers of the layout's row are constants; the others share one loop. */
#define DEFINE(name, layout) static void scatter_##name(const struct unit u[PANEL_ROWS], uint8_t *out) { scatter(u, out, layout); }
DEFINE(q8, LAYOUT_Q8)
DEFINE(q4, LAYOUT_Q4)
DEFINE(q4k, LAYOUT_Q4K)
DEFINE(q5k, LAYOUT_Q5K)
DEFINE(q6k, LAYOUT_Q6K)
static void scatter_q8f(const struct unit u[PANEL_ROWS], uint8_t *out) { scatter_plane(u, 0, 0, 8, out + 32); }
static __attribute__((noinline, cold)) void scatter_any(const struct unit u[PANEL_ROWS], uint8_t *out, enum layout layout) { scatter(u, out, layout); }

static scatter_fn *const scatters[LAYOUT_COUNT] = {
    [LAYOUT_Q8] = scatter_q8,   [LAYOUT_Q4] = scatter_q4,   [LAYOUT_Q4K] = scatter_q4k, [LAYOUT_Q5K] = scatter_q5k, [LAYOUT_Q6K] = scatter_q6k,
    [LAYOUT_Q8F] = scatter_q8f, [LAYOUT_IQ4] = scatter_q4,  [LAYOUT_FP4] = scatter_q4, /* bytes as of Q4 */
};

/* --- packing ------------------------------------------------------------------------------------------ */

static void pack_quantised(const struct dtype *type, const uint8_t *rows, size_t row_bytes, int n_rows, int cols, uint8_t *panel)
{
    struct unit units[PANEL_ROWS];
    memset(units, 0, sizeof units);
    size_t unit_bytes = (size_t)layouts[type->layout].bytes;
    for (size_t b = 0; b < (size_t)cols / type->block; b++) {
        for (int r = 0; r < n_rows; r++) type->unpack(rows + (size_t)r * row_bytes + b * type->bytes, &units[r]);
        if (scatters[type->layout]) scatters[type->layout](units, panel + b * unit_bytes);
        else scatter_any(units, panel + b * unit_bytes, type->layout);
    }
}

/* Each width has code of its own: moves of a known size are one instruction. */
INLINE void pack_floats(size_t width, const uint8_t *rows, size_t row_bytes, int n_rows, int cols, uint8_t *panel)
{
    if (n_rows < PANEL_ROWS) memset(panel, 0, (size_t)cols * PANEL_ROWS * width);
    for (size_t c = 0; c < (size_t)cols; c++)
        for (size_t r = 0; r < (size_t)n_rows; r++) memcpy(panel + (c * PANEL_ROWS + r) * width, rows + r * row_bytes + c * width, width);
}

static void pack_f8(const uint8_t *rows, size_t row_bytes, int n_rows, int cols, uint8_t *panel)
{
    for (size_t c = 0; c < (size_t)cols; c++)
        for (size_t r = 0; r < PANEL_ROWS; r++) panel[f8_column(c) + r] = r < (size_t)n_rows ? rows[r * row_bytes + c] : 0;
}

void pack_scale(enum layout layout, uint8_t *panel, int r, int col, int n_cols, float scale)
{
    size_t columns = (size_t)layouts[layout].columns, bytes = (size_t)layouts[layout].bytes, offset = layout == LAYOUT_F8 ? 0 : 4 * (size_t)r;
    for (size_t c = (size_t)col; c < (size_t)(col + n_cols); c += columns) memcpy(panel + c / columns * bytes + offset, &scale, sizeof scale);
}

void pack_panel(const struct dtype *type, const uint8_t *rows, size_t row_bytes, int n_rows, int cols, uint8_t *panel)
{
    if (layouts[type->layout].kind != KIND_FLOAT) pack_quantised(type, rows, row_bytes, n_rows, cols, panel);
    else if (type->layout == LAYOUT_F8) pack_f8(rows, row_bytes, n_rows, cols, panel);
    else if (type->bytes == 4) pack_floats(4, rows, row_bytes, n_rows, cols, panel);
    else pack_floats(2, rows, row_bytes, n_rows, cols, panel);
}

/* --- one panel row back to floats -------------------------------------------------------------------- */

static float half_at(const uint8_t *halves, int i) { return f32_from_f16(load_u16(halves + 2 * i)); }
static float bfloat_at(const uint8_t *halves, int i) { return f32_from_bf16(load_u16(halves + 2 * i)); }

/* Adds a plane of `width` bits to 32 codes of row r, moved up by `to`. */
static void read_plane(const uint8_t *plane, int width, int r, int to, int *code)
{
    const int per_byte = 8 / width, mask = (1 << width) - 1;
    for (int c = 0; c < BLOCK; c++) {
        int k = c / 8 * 4 + r / 4 * 2 + c / 4 % 2;
        code[c] |= (plane[16 * (k / per_byte) + 4 * (r % 4) + c % 4] >> k % per_byte * width & mask) << to;
    }
}

static void read_codes(const struct layout_info *l, const uint8_t *codes, int r, int *code)
{
    int low = low_bits(l->bits);
    memset(code, 0, BLOCK * sizeof *code);
    read_plane(codes, low, r, 0, code);
    if (l->bits > low) read_plane(codes + 32 * low, l->bits - low, r, low, code);
    for (int c = 0; c < BLOCK; c++) code[c] = l->table ? l->table[code[c]] : l->bits == 8 ? (int8_t)code[c] : code[c] - l->offset;
}

static void read_scales(enum kind kind, const uint8_t *scales, int r, struct block *out)
{
    for (int h = 0; h < 2; h++) {
        const uint8_t *half = scales + 8 * h + r;
        out->scale[h] = 1;
        out->min[h] = kind == KIND_MIN;
        if (kind == KIND_SCALE) out->scale[h] = (int8_t)scales[r];
        if (kind == KIND_HALVES) out->scale[h] = (int8_t)*half;
        if (kind == KIND_MINS) out->scale[h] = scales[r], out->min[h] = scales[8 + r];
        if (kind == KIND_HALF_MINS) out->scale[h] = *half & 15, out->min[h] = *half >> 4;
    }
}

void unpack_block(enum layout layout, const uint8_t *panel, int b, int r, struct block *out)
{
    const struct layout_info *l = &layouts[layout];
    int blocks = l->columns / BLOCK;
    const uint8_t *unit = panel + (size_t)(b / blocks) * (size_t)l->bytes, *block = unit + l->head + b % blocks * l->block;
    out->d = layout == LAYOUT_Q8F ? load_f32(unit + 4 * r) : layout == LAYOUT_FP4 ? bfloat_at(unit, r) : half_at(unit, r);
    out->dmin = has_mins(l->kind) ? half_at(unit + 16, r) : 0;
    read_scales(l->kind, block, r, out);
    read_codes(l, block + l->scales, r, out->code);
}

/* Every product is exact; the difference is rounded once. */
static void row_codes(enum layout layout, const uint8_t *panel, int r, int cols, float *out)
{
    struct block block;
    for (int b = 0; b < cols / BLOCK; b++) {
        unpack_block(layout, panel, b, r, &block);
        for (int c = 0; c < BLOCK; c++)
            *out++ = block.d * (float)block.scale[c / 16] * (float)block.code[c] - block.dmin * (float)block.min[c / 16];
    }
}

void unpack_panel_row(enum layout layout, const uint8_t *panel, int r, int cols, float *out)
{
    if (layouts[layout].kind != KIND_FLOAT) row_codes(layout, panel, r, cols, out);
    else if (layout == LAYOUT_F32) for (int c = 0; c < cols; c++) out[c] = load_f32(panel + 32 * (size_t)c + 4 * r);
    else if (layout == LAYOUT_F8) for (int c = 0; c < cols; c++) out[c] = f8_value(panel, (size_t)c, (size_t)r);
    else if (layout == LAYOUT_F16) for (int c = 0; c < cols; c++) out[c] = half_at(panel + 16 * (size_t)c, r);
    else for (int c = 0; c < cols; c++) out[c] = bfloat_at(panel + 16 * (size_t)c, r);
}
