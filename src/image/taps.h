/* SPDX-License-Identifier: MIT
 *
 * The inputs of each output of the resizing, and their weights, in one direction. resize.c applies them to the pixels.
 */
#ifndef QUERN_IMAGE_TAPS_H
#define QUERN_IMAGE_TAPS_H

#include "base/base.h"

enum { WEIGHT_BITS = 22 };

/* An output's inputs are first .. first + n - 1; their weights are row `output` of the table. */
struct span {
    int32_t first, n;
};

struct taps {
    struct span *spans;
    int32_t *weights; /* [outputs, most] */
    int most;
};

/* Bytes that the table takes; 0 if the size does not change. */
uint64_t taps_cost(int size, int to);

/* Takes its memory from *scratch. */
struct taps taps_make(int size, int to, uint8_t **scratch);

#endif
