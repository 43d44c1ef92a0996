/* SPDX-License-Identifier: MIT
 *
 * Files of any kind, alone or together, which are recognised by their bytes.
 *
 *   build/fuzz/fuzz/fuzz_any -max_len=24576 -timeout=5 -malloc_limit_mb=64 -dict=tests/fuzz/json.dict \
 *       NEW_CORPUS tests/fuzz/corpus/any
 */
#include "set.h"

const int set_first = 0, set_end = SET_FILES;
