/* SPDX-License-Identifier: MIT
 *
 * Weight types of files, one table row each. No other part of the engine switches on a type.
 *
 * A quantised type decodes one of its blocks into a `struct unit`: plain codes and scales, in column order. pack.c
 * turns units into panels, so only this file knows the bit order of files. The block formats are those of GGUF (the
 * published description of ggml's quantised blocks).
 */
#ifndef QUERN_DTYPE_H
#define QUERN_DTYPE_H

#include "base/base.h"

/* Panel layouts: see pack.h. */
enum layout {
    LAYOUT_NONE, /* known by name, not supported */
    LAYOUT_F32, LAYOUT_F16, LAYOUT_BF16,
    LAYOUT_Q8, LAYOUT_Q4, LAYOUT_Q4_1, LAYOUT_Q5, LAYOUT_Q5_1,
    LAYOUT_Q2K, LAYOUT_Q3K, LAYOUT_Q4K, LAYOUT_Q5K, LAYOUT_Q6K,
    LAYOUT_IQ4, LAYOUT_IQ4XS, LAYOUT_FP4,
    LAYOUT_Q1, LAYOUT_Q2,
    LAYOUT_Q8F, LAYOUT_F8, /* scales are stored apart from codes */
    LAYOUT_COUNT
};

/* One row's block, decoded. value = d * scale * (code - offset) - dmin * min. The layout determines which fields are
 * used (pack.h). */
struct unit {
    uint8_t code[256];   /* [block]; int8 for Q8_0, indexes into a table for IQ4, MXFP4, Q1_0, Q2_0 */
    /* per 32 columns (Q4_K and Q5_K 0..63, IQ4_XS int8) or per 16 (Q2_K 0..15, Q3_K and Q6_K int8) */
    uint8_t scale[16];
    uint8_t min[16];     /* per 32 columns (Q4_K and Q5_K, 0..63) or per 16 (Q2_K, 0..15) */
    uint16_t d, dmin;    /* f16; bf16 for MXFP4. Q4_1 and Q5_1 add their min, so it is stored negated */
};

#define NO_GGUF_ID UINT32_MAX

struct dtype {
    const char *name;    /* name in files and messages: "Q4_K" */
    uint32_t gguf_id;    /* ggml's number; NO_GGUF_ID: the type does not occur in GGUF files */
    uint32_t block;      /* columns per block */
    uint32_t bytes;      /* bytes per block */
    enum layout layout;
    void (*unpack)(const uint8_t *block, struct unit *out); /* NULL for float types */
};

/* NULL for an id that no type has, including removed ids. */
const struct dtype *dtype_by_gguf(uint32_t id);
const struct dtype *dtype_by_name(const char *name); /* NULL for an unknown name */

#endif
