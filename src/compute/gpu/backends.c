/* SPDX-License-Identifier: MIT
 *
 * The table of backends of the GPU's build, in place of compute/backends.c.
 */
#include "compute/gpu/gpu.h"

struct backend *backend_gpu(struct mem *m, struct pool *pool, bool scalar);
const char *backend_gpu_dots(bool scalar);

const struct backend_row backends[] = {
    {"webgpu", backend_gpu, backend_gpu_dots},
};
const int n_backends = sizeof backends / sizeof *backends;
