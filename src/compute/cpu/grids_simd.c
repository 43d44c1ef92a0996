/* SPDX-License-Identifier: MIT
 *
 * The only call of gemm_grids(). The text build has no such file, so its linker drops the kernels of GRID_LAYOUTS.
 */
#include "compute/cpu/simd.h"

void grids_simd(struct kernels *k) { gemm_grids(k); }
