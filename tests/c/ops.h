/* SPDX-License-Identifier: MIT
 *
 * What tests of the CPU backend's operations share: handles of the test's own memory, and running single operations.
 */
#ifndef QUERN_TEST_OPS_H
#define QUERN_TEST_OPS_H

#include "compute/cpu/cpu.h"

/* A handle of any memory; only the CPU's backend allows this, and only after it has reserved its scratch. */
static inline struct handle handle_of(const struct backend *be, const void *p)
{
    return cpu_handle((const struct cpu *)be, p);
}

/* Computes one operation, with the arguments of add_op(): its kind, n and dim, then its other operands by name. */
#define RUN(be, ...) backend_run((be), &(struct op){__VA_ARGS__}, 1)

#endif
