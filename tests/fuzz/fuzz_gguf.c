/* SPDX-License-Identifier: MIT
 *
 * The input is a GGUF file; gguf_mutator.c changes one of its fields at a time.
 *
 *   build/fuzz/fuzz/fuzz_gguf -max_len=16384 -timeout=5 -malloc_limit_mb=64 -dict=tests/fuzz/gguf.dict \
 *       NEW_CORPUS tests/fuzz/corpus/gguf
 */
#include "load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_load(&(struct bytes){data, size}, 1, seed_of(data, size));
    return 0;
}
