/* SPDX-License-Identifier: MIT
 *
 * Mutates the files of a Hugging Face folder, except its first one, tokenizer.json: configurations, index, weights.
 *
 *   build/fuzz/fuzz/fuzz_safetensors -max_len=49152 -timeout=5 -malloc_limit_mb=64 -dict=tests/fuzz/json.dict \
 *       NEW_CORPUS tests/fuzz/corpus/safetensors
 */
#include "set.h"

const int set_first = 1, set_end = SET_FILES;
