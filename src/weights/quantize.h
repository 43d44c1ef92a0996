/* SPDX-License-Identifier: MIT
 *
 * Floats -> blocks of a file's weight type, laid out as GGUF stores them: what dtype.c decodes.
 *
 * Q8_0 and Q4_0 are as the format's description has them. Q4_K and Q6_K say only how blocks decode; the scales are
 * found by a search for the least squared error. The same bits in every build: IEEE operations in a stated order.
 */
#ifndef QUERN_QUANTIZE_H
#define QUERN_QUANTIZE_H

#include "weights/pack.h"

/* x [n], n a multiple of the type's block. false: a value is NaN, infinite, or too large for the type's scales
 * (halves); its block then decodes to NaN. */
typedef bool quantize_fn(const float *x, int n, uint8_t *blocks);

quantize_fn quantize_q8_0, quantize_q4_0, quantize_q4_k, quantize_q6_k;

/* What writes values of a type, also F32 and F16; NULL: nothing does. */
quantize_fn *quantizer(const struct dtype *type);

/* n values of a float type. */
void read_floats(const struct dtype *type, const uint8_t *values, int n, float *out);

/* n (1..8) rows of a file, row_bytes apart, of any type whose scales do not come apart -> one panel of Q8_0 or Q4_0.
 * What is not finite becomes NaN, and the model's logits with it. */
void quantize_panel(const struct dtype *from, const uint8_t *rows, size_t row_bytes, int n, int cols,
                    const struct dtype *to, uint8_t *panel);

#endif
