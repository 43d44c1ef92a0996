/* SPDX-License-Identifier: MIT
 *
 * File blocks -> panels, and one panel row -> floats.
 *
 * Packing works unit by unit: it decodes the blocks of 8 rows into struct units, then interleaves them. So there is one
 * scalar decoder per file type, and one interleaving function, which the table of layouts adapts to each layout.
 */
#include "weights/pack.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

size_t panel_bytes(enum layout layout, int cols)
{
    return (size_t)(cols / layouts[layout].columns) * (size_t)layouts[layout].bytes;
}

/* --- scatter: 8 decoded rows -> one unit of a panel --------------------------------------------------- */

static void put_u16(uint8_t *out, uint16_t v) { memcpy(out, &v, sizeof v); }
static void put_u32(uint8_t *out, uint32_t v) { memcpy(out, &v, sizeof v); }

/* Interleaves the codes of 32 columns, four columns at a time. */
INLINE void scatter_codes(const struct unit u[PANEL_ROWS], int column, uint8_t *out, const int bits)
{
    for (int step = 0; step < 4; step++)
        for (int r = 0; r < 4; r++) {
            uint32_t words[4] = {0};
#pragma GCC unroll 8
            for (int i = 0; i < PIECES; i++) {
                const struct piece p = pieces[bits][i];
                uint32_t code = load_u32(u[r + p.k / 2 * 4].code + column + 8 * step + p.k % 2 * 4) >> p.from;
                words[p.place] |= (code & ((1u << p.width) - 1) * 0x01010101u) << p.to;
            }
#pragma GCC unroll 8
            for (int v = 0; v < (bits + 1) / 2; v++) {
                uint8_t *to = out + piece_at(bits, step, v) + 4 * r;
                int shift = piece_shift(bits, step, v);
                put_u32(to, shift ? load_u32(to) | words[v] << shift : words[v]);
            }
        }
}

/* 8 codes of one bit as a byte: the product moves code c to bit 56 + c. */
INLINE uint8_t byte_of(const uint8_t *code) { return (uint8_t)(load_u64(code) * 0x0102040810204080 >> 56); }

static void scatter_bits(const struct unit u[PANEL_ROWS], int column, uint8_t *out)
{
    for (int step = 0; step < 4; step++)
        for (int r = 0; r < PANEL_ROWS; r++) *out++ = byte_of(u[r].code + column + 8 * step);
}

/* One function for each width. */
#define WIDTHS(WIDTH) WIDTH(2) WIDTH(3) WIDTH(4) WIDTH(5) WIDTH(6) WIDTH(8)
typedef void scatter_fn(const struct unit u[PANEL_ROWS], int column, uint8_t *out);
#define SCATTER(bits) \
    static void scatter_##bits(const struct unit u[PANEL_ROWS], int column, uint8_t *out) \
    { \
        scatter_codes(u, column, out, bits); \
    }
WIDTHS(SCATTER)
#define ENTRY(bits) [bits] = scatter_##bits,
static scatter_fn *const scatters[] = {WIDTHS(ENTRY)};

static void scatter_scales(const struct unit *u, int r, int block, enum kind kind, uint8_t *out)
{
    if (kind == KIND_SCALE) out[r] = u->scale[block];
    if (kind == KIND_MINS) out[r] = u->scale[block], out[8 + r] = u->min[block];
    for (int h = 0; h < 2; h++) {
        if (kind == KIND_HALVES || kind == KIND_HALF_FLOATS) out[8 * h + r] = u->scale[2 * block + h];
        if (kind == KIND_HALF_MINS) out[8 * h + r] = (uint8_t)(u->scale[2 * block + h] | u->min[2 * block + h] << 4);
    }
}

/* `column` is 0 unless a block of the file fills several units, which have its d. */
void pack_unit(enum layout layout, const struct unit u[PANEL_ROWS], int column, uint8_t *out)
{
    const struct layout_info *l = &layouts[layout];
    uint8_t *block = out + l->head;
    for (int r = 0; r < PANEL_ROWS && !l->scaled; r++) {
        put_u16(out + 2 * r, u[r].d);
        if (has_mins(l->kind)) put_u16(out + 16 + 2 * r, u[r].dmin);
    }
    for (int r = 0; r < PANEL_ROWS && l->kind == KIND_HALF_FLOATS; r++)
        if (!load_u32(out + 4 * r)) put_u32(out + 4 * r, bits_from_f32(UNDOUBLED));
    for (int b = 0; b < l->columns / BLOCK; b++, block += l->block) {
        for (int r = 0; r < PANEL_ROWS && l->scales; r++) scatter_scales(&u[r], r, b, l->kind, block);
        if (l->bits == 1) scatter_bits(u, column + b * BLOCK, block + l->scales);
        else scatters[l->bits](u, column + b * BLOCK, block + l->scales);
    }
}

/* --- packing ------------------------------------------------------------------------------------------ */

static void pack_quantised(const struct dtype *type, const uint8_t *rows, size_t row_bytes, int n_rows, int cols,
                           uint8_t *panel)
{
    struct unit units[PANEL_ROWS];
    memset(units, 0, sizeof units);
    const struct layout_info *l = &layouts[type->layout];
    for (size_t b = 0; b < (size_t)cols / type->block; b++) {
        for (int r = 0; r < n_rows; r++) type->unpack(rows + (size_t)r * row_bytes + b * type->bytes, &units[r]);
        for (int column = 0; column < (int)type->block; column += l->columns, panel += l->bytes)
            pack_unit(type->layout, units, column, panel);
    }
}

/* Each width has its own copy of this code, because a copy of a constant size is one instruction. */
INLINE void pack_floats(size_t width, const uint8_t *rows, size_t row_bytes, int n_rows, int cols, uint8_t *panel)
{
    if (n_rows < PANEL_ROWS) memset(panel, 0, (size_t)cols * PANEL_ROWS * width);
    for (size_t c = 0; c < (size_t)cols; c++)
        for (size_t r = 0; r < (size_t)n_rows; r++)
            memcpy(panel + (c * PANEL_ROWS + r) * width, rows + r * row_bytes + c * width, width);
}

static void pack_f8(const uint8_t *rows, size_t row_bytes, int n_rows, int cols, uint8_t *panel)
{
    for (size_t c = 0; c < (size_t)cols; c++)
        for (size_t r = 0; r < PANEL_ROWS; r++)
            panel[f8_column(c) + r] = r < (size_t)n_rows ? rows[r * row_bytes + c] : 0;
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

/* The scale d that 16 bits hold. */
static float scale_of(enum d_type d, uint16_t bits)
{
    return d == D_BF16 ? f32_from_bf16(bits) : f32_from_f16(bits) * d_part(d);
}

/* Adds a piece of row r's codes, for 8 columns. */
static void read_piece(const struct piece *p, const uint8_t *vector, int shift, int r, int *code)
{
    for (int c = 0; c < 4; c++)
        code[p->k % 2 * 4 + c] |= (vector[4 * (r % 4) + c] >> shift >> p->to & ((1 << p->width) - 1)) << p->from;
}

/* Value of a code. */
static int code_value(const struct layout_info *l, int code)
{
    return l->table ? l->table[code] : l->bits == 8 ? (int8_t)code : code - l->offset;
}

static void read_codes(const struct layout_info *l, const uint8_t *codes, int r, int *code)
{
    memset(code, 0, BLOCK * sizeof *code);
    for (int c = 0; c < BLOCK && l->bits == 1; c++) code[c] = codes[c / 8 * PANEL_ROWS + r] >> c % 8 & 1;
    for (int step = 0; step < 4 && l->bits > 1; step++)
        for (const struct piece *p = pieces[l->bits]; p < pieces[l->bits] + PIECES; p++)
            if (p->k / 2 == r / 4)
                read_piece(p, codes + piece_at(l->bits, step, p->place), piece_shift(l->bits, step, p->place), r,
                           code + 8 * step);
    for (int c = 0; c < BLOCK; c++) code[c] = code_value(l, code[c]);
}

static void read_scales(enum kind kind, const uint8_t *scales, int r, struct block *out)
{
    for (int h = 0; h < 2; h++) {
        const uint8_t *half = scales + 8 * h + r;
        out->scale[h] = 1;
        out->min[h] = kind == KIND_MIN;
        if (kind == KIND_SCALE) out->scale[h] = (int8_t)scales[r];
        if (kind == KIND_HALVES) out->scale[h] = (int8_t)*half;
        if (kind == KIND_HALF_FLOATS) out->scale[h] = f32_from_e4m3(*half);
        if (kind == KIND_MINS) out->scale[h] = scales[r], out->min[h] = scales[8 + r];
        if (kind == KIND_HALF_MINS) out->scale[h] = *half & 15, out->min[h] = *half >> 4;
    }
}

void unpack_block(enum layout layout, const uint8_t *panel, int b, int r, struct block *out)
{
    const struct layout_info *l = &layouts[layout];
    int blocks = l->columns / BLOCK;
    const uint8_t *unit = panel + (size_t)(b / blocks) * (size_t)l->bytes,
                  *block = unit + l->head + b % blocks * l->block;
    out->d = l->d == D_F32 ? load_f32(unit + 4 * r) : scale_of(l->d, load_u16(unit + 2 * r));
    out->dmin = !has_mins(l->kind) ? 0 : l->d == D_F32 ? load_f32(unit + 32 + 4 * r) : half_at(unit + 16, r);
    read_scales(l->kind, block, r, out);
    read_codes(l, block + l->scales, r, out->code);
}

/* Every product is exact; the difference is rounded once. */
static void block_values(const struct block *b, float *out)
{
    for (int c = 0; c < BLOCK; c++)
        out[c] = b->d * (b->scale[c / 16] * (float)b->code[c]) - b->dmin * (float)b->min[c / 16];
}

static void row_codes(enum layout layout, const uint8_t *panel, int r, int cols, float *out)
{
    struct block block;
    for (int b = 0; b < cols / BLOCK; b++) {
        unpack_block(layout, panel, b, r, &block);
        block_values(&block, out + b * BLOCK);
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

/* --- a file's row to floats ---------------------------------------------------------------------------- */

/* Block b of a unit, as struct block. */
static void unit_block(const struct layout_info *l, const struct unit *u, int b, struct block *out)
{
    for (int h = 0; h < 2; h++) {
        int i = l->kind == KIND_SCALE || l->kind == KIND_MINS ? b : 2 * b + h;
        out->scale[h] = !l->scales                                        ? 1
                        : l->kind == KIND_SCALE || l->kind == KIND_HALVES ? (int8_t)u->scale[i]
                        : l->kind == KIND_HALF_FLOATS                     ? f32_from_e4m3(u->scale[i])
                                                                          : u->scale[i];
        out->min[h] = l->kind == KIND_MIN ? 1 : has_mins(l->kind) ? u->min[i] : 0;
    }
    for (int c = 0; c < BLOCK; c++) out->code[c] = code_value(l, u->code[b * BLOCK + c]);
}

void unpack_row(const struct dtype *type, const uint8_t *row, int cols, float *out)
{
    const struct layout_info *l = &layouts[type->layout];
    struct unit unit;
    struct block block;
    for (int c = 0; c < cols; c += (int)type->block, row += type->bytes) {
        type->unpack(row, &unit);
        block.d = l->scaled ? UNDOUBLED : scale_of(l->d, unit.d);
        block.dmin = has_mins(l->kind) ? f32_from_f16(unit.dmin) : 0;
        for (int b = 0; b < (int)type->block / BLOCK; b++, out += BLOCK) {
            unit_block(l, &unit, b, &block);
            block_values(&block, out);
        }
    }
}
