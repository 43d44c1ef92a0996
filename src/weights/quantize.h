/* SPDX-License-Identifier: MIT
 *
 * Floats -> blocks of a file's weight type, in GGUF's layout, which dtype.c decodes.
 *
 * Q8_0 and Q4_0 follow the format's description. For the other types only decoding is defined; a search finds the
 * scales with the least squared error (fit.c). Every build gives the same bits: IEEE operations in a fixed order.
 */
#ifndef QUERN_QUANTIZE_H
#define QUERN_QUANTIZE_H

#include "weights/pack.h"

/* x [n], n a multiple of the type's block. w [n]: how much the squared error of each column counts, finite numbers
 * above 0 and near 1; NULL: all count alike. Q8_0 and floats do not use w. Returns false if a value is NaN, infinite,
 * or too large for the type's scales (f16); its block then decodes to NaN. */
typedef bool quantize_fn(const float *x, const float *w, int n, uint8_t *blocks);

quantize_fn quantize_q8_0, quantize_q4_0, quantize_q4_k, quantize_q5_k, quantize_q6_k, quantize_iq4_xs;
quantize_fn fit_q4_0; /* by a search; w is not NULL */

/* The function that writes values of a type, also of F32 and F16; NULL if there is none. */
quantize_fn *quantizer(const struct dtype *type);

/* Converts n values of a float type to floats. */
void read_floats(const struct dtype *type, const uint8_t *values, int n, float *out);

/* Converts n (1..8) rows of a file, row_bytes apart, to one panel of Q8_0 or Q4_0. Not for types whose scales are
 * stored apart. A value that is not finite becomes NaN, and so do the model's logits. */
void quantize_panel(const struct dtype *from, const uint8_t *rows, size_t row_bytes, int n, int cols,
                    const struct dtype *to, uint8_t *panel);

#endif
