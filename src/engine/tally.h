/* SPDX-License-Identifier: MIT
 *
 * Weights of a model, counted by the types in which its files have them.
 */
#ifndef QUERN_TALLY_H
#define QUERN_TALLY_H

#include "weights/dtype.h"

enum { TYPES_MOST = 64 }; /* more than dtype.c has */

/* Bound tensors of one type, as they stand in the files. */
struct type_count {
    const struct dtype *type;
    double tensors, bytes, weights;
};

struct tally {
    struct type_count types[TYPES_MOST]; /* of the files so far, as they come; the rest is zero */
    double all, used; /* weights in those; and how many of them work for a token */
};

#endif
