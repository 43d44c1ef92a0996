/* SPDX-License-Identifier: MIT
 *
 * What binding needs to know through all files of a model (bind.h).
 */
#ifndef QUERN_BINDER_H
#define QUERN_BINDER_H

#include "compute/backend.h"
#include "load/checkpoint.h"

/* Q8_0 or Q4_0; NULL: the stored type. */
struct model_types {
    const struct dtype *layers, *ends; /* matrices of layers; the embedding and the output head */
};

enum order_fault {
    ORDER_FOLLOWED,
    ORDER_LATE,    /* not in the file of the codes, before them */
    ORDER_UNEQUAL, /* groups of different sizes */
    ORDER_MEMORY,
};

/* Must not move while files are bound. */
struct binder {
    struct mem *mem;
    struct backend *be;
    struct model_types quantize; /* types to quantise matrices to on loading, if that makes them smaller */
    bool more; /* more files of a split model follow, and may have what is missing */
    enum order_fault order; /* why the order of a matrix's columns cannot be followed */
    struct held *held; /* scales and mins that came before their weights (bind_parts.h) */
    bool zeros; /* biases that the architecture does not have are allowed, if all numbers are 0 */
    bool biased; /* one of them has another number */
};

#endif
