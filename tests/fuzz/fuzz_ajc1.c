/* SPDX-License-Identifier: MIT
 *
 * A .tokenizer file and a qwen3.c checkpoint.
 *
 *   build/fuzz/fuzz/fuzz_ajc1 -max_len=24576 -timeout=5 -malloc_limit_mb=64 NEW_CORPUS tests/fuzz/corpus/ajc1
 */
#include "set.h"

const int set_first = 0, set_end = SET_FILES;
