/* SPDX-License-Identifier: MIT
 *
 * The table of backends. A build with other backends replaces this file.
 */
#include "compute/backend.h"

const struct backend_row backends[] = {
    {"cpu", backend_cpu, backend_cpu_dots},
};
const int n_backends = sizeof backends / sizeof *backends;
