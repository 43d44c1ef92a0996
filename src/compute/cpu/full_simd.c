/* SPDX-License-Identifier: MIT
 *
 * The only call of gemm_full(). The text build has no such file, so its linker drops the kernels of FULL_LAYOUTS.
 */
#include "compute/cpu/simd.h"

void full_simd(struct kernels *k) { gemm_full(k); }
