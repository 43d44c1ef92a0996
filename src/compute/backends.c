/* SPDX-License-Identifier: MIT
 *
 * The table of backends. A build with another set of them has another file in place of this one.
 */
#include "compute/backend.h"

const struct backend_row backends[] = {
    {"cpu", backend_cpu, backend_cpu_dots},
};
const int n_backends = sizeof backends / sizeof *backends;
