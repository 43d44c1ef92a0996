/* SPDX-License-Identifier: MIT
 *
 * The first files of a Hugging Face folder are mutated: tokenizer.json and tokenizer_config.json. The rest of it stays.
 *
 *   build/fuzz/fuzz/fuzz_hf_tokenizer -max_len=24576 -timeout=5 -malloc_limit_mb=64 -dict=tests/fuzz/json.dict
 * NEW_CORPUS tests/fuzz/corpus/hf_tokenizer
 */
#include "set.h"

const int set_first = 0, set_end = 2;
