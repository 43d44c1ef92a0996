/* SPDX-License-Identifier: MIT
 *
 * Types of codes whose scales and mins are tensors of their own, as programs store them that quantise folders (MLX,
 * GPTQ, AWQ, compressed-tensors). A file of its own, because the text build reads only GGUF files.
 *
 * A row is a stream of codes from its lowest bit on. 32 codes fill whole words of 32 bits, whatever their width. Codes
 * of up to 4 bits get the layout of 4 bits, wider ones that of 8: two layouts hold every width exactly. Groups of a
 * multiple of 64 columns are cut into units of 64, others into units of 32.
 */
#include "weights/pack.h"

#include <string.h>

/* The code of column c among codes of `bits` bits. */
static inline __attribute__((always_inline)) uint8_t code_at(const uint8_t *b, int c, const int bits)
{
    const int at = c * bits, byte = at / 8, shift = at % 8;
    int code = b[byte] >> shift;
    if (shift + bits > 8) code |= b[byte + 1] << (8 - shift);
    return (uint8_t)(code & ((1 << bits) - 1));
}

/* --- types ---------------------------------------------------------------------------------------------- */

/* A panel's codes of 8 bits are signed, so 128 is taken off. */
enum { LESS = 128 };
#define LESS_OF(bits) ((bits) == 8 ? LESS : 0)

#define EACH_WIDTH(ROW, columns, suffix) \
    ROW(2, columns, LAYOUT_A4##suffix) \
    ROW(3, columns, LAYOUT_A4##suffix) \
    ROW(4, columns, LAYOUT_A4##suffix) \
    ROW(5, columns, LAYOUT_A8##suffix) \
    ROW(6, columns, LAYOUT_A8##suffix) \
    ROW(8, columns, LAYOUT_A8##suffix)
#define EACH_TYPE(ROW) EACH_WIDTH(ROW, 64, ) EACH_WIDTH(ROW, 32, S)

#define UNPACK(bits, columns, layout) \
    static void unpack_u##bits##_##columns(const uint8_t *b, struct unit *u) \
    { \
        for (int c = 0; c < (columns); c++) u->code[c] = (uint8_t)(code_at(b, c, bits) - LESS_OF(bits)); \
    }
EACH_TYPE(UNPACK)

struct codes {
    struct dtype type;
    int less;    /* what unpack() takes off the file's codes */
    int middle;  /* zero point of codes without zero points */
    bool biased; /* biases belong to the scales, not zero points */
};

#define ROW(bits, columns, layout, biased) \
    {{"U" #bits, NO_GGUF_ID, columns, (columns) / 8 * (bits), layout, unpack_u##bits##_##columns}, \
     LESS_OF(bits), \
     1 << ((bits) - 1), \
     biased},
#define BIASED(bits, columns, layout) ROW(bits, columns, layout, true)
#define UNBIASED(bits, columns, layout) ROW(bits, columns, layout, false)
static const struct codes types[] = {EACH_TYPE(BIASED) EACH_TYPE(UNBIASED)};

/* Wide units come first. */
const struct dtype *dtype_of_codes(int bits, int group, bool biased)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const struct dtype *t = &types[i].type;
        bool fits = t->bytes * 8 == t->block * (uint32_t)bits && group % (int)t->block == 0;
        if (fits && types[i].biased == biased) return t;
    }
    return NULL;
}

bool dtype_biased(const struct dtype *type)
{
    return layouts[type->layout].scaled && has_mins(layouts[type->layout].kind) && ((const struct codes *)type)->biased;
}

void pack_ordered(const struct dtype *type, const uint8_t *rows, size_t row_bytes, int n_rows, int cols,
                  const uint32_t *order, uint8_t *panel)
{
    const int bits = (int)(8 * type->bytes / type->block), block = (int)type->block;
    struct unit units[PANEL_ROWS];
    memset(units, 0, sizeof units);
    for (int column = 0; column < cols; column += block, panel += layouts[type->layout].bytes) {
        for (int r = 0; r < n_rows; r++)
            for (int c = 0; c < block; c++)
                units[r].code[c] = (uint8_t)(code_at(rows + (size_t)r * row_bytes, (int)order[column + c], bits) -
                                             LESS_OF(bits));
        pack_unit(type->layout, units, 0, panel);
    }
}

/* --- numbers beside codes --------------------------------------------------------------------------------- */

/* Adds a number to what the head of a unit has of row r: dmin = -(less * d + bias), or d * (zero point - less), in
 * whatever order they come. Before its scale, dmin has the zero point's distance from the middle, which is 0 if none
 * comes. d is +0 before its scale, so a scale of 0 becomes -0. */
static void put_part(const struct codes *type, uint8_t *unit, int r, enum weight_part part, float value)
{
    const float less = (float)type->less, middle = (float)type->middle;
    float d = load_f32(unit + 4 * r), dmin = load_f32(unit + 32 + 4 * r);
    if (part == PART_SCALE) d = value != 0 ? value : -0.0f;
    if (part == PART_SCALE) dmin = type->biased ? dmin - less * d : d * (dmin + middle - less);
    if (part == PART_BIAS) dmin -= value;
    if (part == PART_ZERO) dmin = bits_from_f32(d) ? d * (value - less) : value - middle;
    memcpy(unit + 4 * r, &d, sizeof d);
    memcpy(unit + 32 + 4 * r, &dmin, sizeof dmin);
}

void pack_part(const struct dtype *type, uint8_t *panel, int r, int col, int n_cols, enum weight_part part,
               float value)
{
    const struct layout_info *l = &layouts[type->layout];
    size_t columns = (size_t)l->columns;
    /* Not +0, which stands for a missing scale. */
    if (l->kind == KIND_HALF_FLOATS) value = value != 0 ? value * UNDOUBLED : -0.0f;
    for (size_t c = (size_t)col; c < (size_t)(col + n_cols); c += columns) {
        uint8_t *unit = panel + c / columns * (size_t)l->bytes;
        if (has_mins(l->kind)) put_part((const struct codes *)type, unit, r, part, value);
        else memcpy(unit + 4 * r, &value, sizeof value);
    }
}
