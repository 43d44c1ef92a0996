/* SPDX-License-Identifier: MIT
 *
 * Mutates the first files of a Hugging Face folder: tokenizer.json and tokenizer_config.json. The other files stay as
 * they are.
 *
 *   build/fuzz/fuzz/fuzz_hf_tokenizer -max_len=24576 -timeout=5 -malloc_limit_mb=64 -dict=tests/fuzz/json.dict \
 *       NEW_CORPUS tests/fuzz/corpus/hf_tokenizer
 */
#include "set.h"

const int set_first = 0, set_end = 2;
