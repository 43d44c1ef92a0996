/* SPDX-License-Identifier: MIT
 *
 * Panels: weights as the kernels want them. 8 rows of a matrix are interleaved, so that one 16-byte load of codes
 * meets one broadcast of 4 activations and 8 row sums stay in lanes.
 */
/*
 * A panel is a row of units, from column 0 on; matrix rows past the end are zero. In a unit, r is the row 0..7:
 *
 *   F32    1 column:    f32 [8]
 *   F16    1 column:    u16 [8]        BF16 the same
 *   Q8     32 columns:  f16 d[8]; 8 groups of 4 columns: int8 [8 rows][4 columns]
 *   Q4     32 columns:  f16 d[8]; 8 groups of 4 columns: 16 bytes, byte 4 * (r % 4) + column, low nibble r < 4, high r >= 4
 *   Q4K    256 columns: f16 d[8], f16 dmin[8]; 8 times: u8 scale[8], u8 min[8], 8 groups as in Q4
 *   Q6K    256 columns: f16 d[8]; 8 times: int8 scale[2 halves][8], 8 groups as in Q4, then 4 times 16 bytes of
 *                       high bit pairs, byte 4 * (r % 4) + column: bits 0-1 group 2i r < 4, 2-3 group 2i r >= 4,
 *                       4-5 and 6-7 the same of group 2i + 1
 *   Q8F    32 columns:  f32 d[8]; codes as in Q8
 *   F8     128 columns: f32 d, 12 bytes unused; u8 [128 columns][8]
 *
 * Bytes against the file: the same, but Q4K + 2.8 % (its 6-bit scales become bytes), F8 + 1.6 %,
 * and Q8F + 5.9 % and + 9.1 % in groups of 64 and 128, whose scales are repeated.
 */
#ifndef QUERN_PACK_H
#define QUERN_PACK_H

#include "dtype.h"

enum { PANEL_ROWS = 8, BLOCK = 32 }; /* BLOCK: columns per activation scale (ARITHMETIC) */

struct layout_info {
    int columns;     /* per unit */
    int bytes;       /* of a unit: 8 rows x columns */
    bool quantised;
    bool scaled;     /* scales come apart: pack_scale() */
};
extern const struct layout_info layouts[LAYOUT_COUNT];

/* Bytes of one panel of `cols` columns (a multiple of the type's block). */
size_t panel_bytes(enum layout layout, int cols);

/* Packs n_rows (1..8) rows of a file, row_bytes apart, into one panel. */
void pack_panel(const struct dtype *type, const uint8_t *rows, size_t row_bytes, int n_rows, int cols, uint8_t *panel);

/* Sets the scale of n_cols columns of row r, from a unit's first one on; of F8 that of all rows. */
void pack_scale(enum layout layout, uint8_t *panel, int r, int col, int n_cols, float scale);

/* Decodes row r (0..7) of a panel to the very values the file encodes: out [cols]. */
void unpack_panel_row(enum layout layout, const uint8_t *panel, int r, int cols, float *out);

#endif
