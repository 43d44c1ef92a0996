/* SPDX-License-Identifier: MIT
 *
 * Counts a model's weights by their types in the files.
 */
#ifndef QUERN_TALLY_H
#define QUERN_TALLY_H

#include "weights/dtype.h"

enum { TYPES_MOST = 64 }; /* more types than dtype.c has */

/* Bound tensors of one type, as stored in the files. */
struct type_count {
    const struct dtype *type;
    double tensors, bytes, weights;
};

struct tally {
    struct type_count types[TYPES_MOST]; /* in order of appearance; the rest is zero */
    double all, used; /* weights in all; weights that compute for one token */
};

#endif
