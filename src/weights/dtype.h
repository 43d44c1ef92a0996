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
    LAYOUT_FULL, /* known by name; the full build supports it (engine/text_build.c) */
    LAYOUT_F32, LAYOUT_F16, LAYOUT_BF16,
    LAYOUT_Q8, LAYOUT_Q4, LAYOUT_Q4_1, LAYOUT_Q5, LAYOUT_Q5_1,
    LAYOUT_Q2K, LAYOUT_Q3K, LAYOUT_Q4K, LAYOUT_Q5K, LAYOUT_Q6K,
    LAYOUT_IQ4, LAYOUT_IQ4XS, LAYOUT_FP4,
    LAYOUT_Q1, LAYOUT_Q2,
    LAYOUT_IQ3S, LAYOUT_IQ3XXS, LAYOUT_IQ2S, LAYOUT_IQ2XXS, LAYOUT_IQ1M, LAYOUT_IQ1S,
    LAYOUT_NV4, LAYOUT_Q8F, LAYOUT_F8, /* scales are stored apart from codes */
    LAYOUT_A4, LAYOUT_A4S, LAYOUT_A8, LAYOUT_A8S, /* the same, with a scale and a min */
    LAYOUT_COUNT
};

/* One row's block, decoded. value = d * scale * (code - offset) - dmin * min. The layout determines which fields are
 * used (pack.h). */
struct unit {
    uint8_t code[256];   /* [block]; int8 for Q8_0, indexes into a table for IQ1 to IQ4, MXFP4, NVFP4, Q1_0 */
    /* per 32 columns (Q4_K and Q5_K 0..63, IQ4_XS int8) or per 16 (Q2_K 0..15, Q3_K and Q6_K int8, NVFP4 e4m3); for IQ1
     * to IQ3 odd numbers up to 31, per 32 or 16 columns */
    uint8_t scale[16];
    uint8_t min[16];     /* per 32 columns (Q4_K and Q5_K, 0..63) or per 16 (Q2_K, 0..15) */
    uint16_t d, dmin;    /* f16; bf16 for MXFP4. Q4_1 and Q5_1 add their min, so it is stored negated */
};

/* Numbers that files store apart from codes. value = scale * code + bias, or scale * (code - zero point); without zero
 * points they are in the middle of the codes. */
enum weight_part { PART_SCALE, PART_BIAS, PART_ZERO };

#define NO_GGUF_ID UINT32_MAX

struct dtype {
    const char *name;    /* name in files and messages: "Q4_K" */
    uint32_t gguf_id;    /* ggml's number; NO_GGUF_ID: the type does not occur in GGUF files */
    uint32_t block;      /* columns per block */
    uint32_t bytes;      /* bytes per block */
    enum layout layout;
    void (*unpack)(const uint8_t *block, struct unit *out); /* NULL for float types */
};

/* Whether values are stored as they are. F8_E4M3 is none of these: it has scales apart. */
static inline bool dtype_is_plain(const struct dtype *type)
{
    return type->layout == LAYOUT_F32 || type->layout == LAYOUT_F16 || type->layout == LAYOUT_BF16;
}

/* The types of GGUF files that only the full build reads: name, GGUF's id, columns and bytes of a block, layout,
 * decoder. */
#define EACH_FULL_TYPE(ROW)                             \
    ROW(IQ2_XXS, 16, 256, 66, IQ2XXS, unpack_iq2_xxs)   \
    ROW(IQ2_XS,  17, 256, 74, IQ2S,   unpack_iq2_xs)    \
    ROW(IQ3_XXS, 18, 256, 98, IQ3XXS, unpack_iq3_xxs)   \
    ROW(IQ1_S,   19, 256, 50, IQ1S,   unpack_iq1_s)     \
    ROW(IQ3_S,   21, 256, 110, IQ3S,  unpack_iq3_s)     \
    ROW(IQ2_S,   22, 256, 82, IQ2S,   unpack_iq2_s)     \
    ROW(IQ1_M,   29, 256, 56, IQ1M,   unpack_iq1_m)     \
    ROW(NVFP4,   40, 64, 36,  NV4,    unpack_nvfp4)
enum { FULL_TYPES = 8 };
extern const struct dtype full_types[FULL_TYPES]; /* grids.c; in the text build engine/text_build.c */
static inline bool reads_full_types(void) { return full_types->layout != LAYOUT_FULL; }

/* NULL for an id that no type has, including removed ids. */
const struct dtype *dtype_by_gguf(uint32_t id);
const struct dtype *dtype_by_name(const char *name); /* NULL for an unknown name */
/* The type of unsigned codes of 2, 3, 4, 5, 6 or 8 bits, whose scales, and biases or zero points, are stored apart, for
 * `group` columns each: a multiple of 32 (codes.c). NULL if there is none. */
const struct dtype *dtype_of_codes(int bits, int group, bool biased);
bool dtype_biased(const struct dtype *type); /* whether it is such a type with biases */

#endif
