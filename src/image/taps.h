/* SPDX-License-Identifier: MIT
 *
 * Which inputs an output of the resizing is made of, and their weights, for one direction. What runs over the
 * pixels is resize.c.
 */
#ifndef QUERN_IMAGE_TAPS_H
#define QUERN_IMAGE_TAPS_H

#include "base/base.h"

enum { WEIGHT_BITS = 22 };

/* Inputs first .. first + n - 1 of an output, whose weights are row `output` of the table. */
struct span {
    int32_t first, n;
};

struct taps {
    struct span *spans;
    int32_t *weights; /* [outputs, most] */
    int most;
};

/* Bytes that they take; 0 where the size stays. */
uint64_t taps_cost(int size, int to);

/* Takes that memory from *scratch. */
struct taps taps_make(int size, int to, uint8_t **scratch);

#endif
