/* SPDX-License-Identifier: MIT
 *
 * What tests of the CPU backend's operations share: handles of memory of their own, and operations one at a time.
 */
#ifndef QUERN_TEST_OPS_H
#define QUERN_TEST_OPS_H

#include "compute/cpu/cpu.h"

/* A handle of any memory, which no backend but the CPU's can have, and only once it has reserved its own. */
static inline struct handle handle_of(const struct backend *be, const void *p)
{
    return cpu_handle((const struct cpu *)be, p);
}

/* Computes one operation, given as to add_op(): its kind, n and dim, then its other operands by name. */
#define RUN(be, ...) backend_run((be), &(struct op){__VA_ARGS__}, 1)

#endif
