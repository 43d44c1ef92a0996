/* SPDX-License-Identifier: MIT
 *
 * Inputs of several files: u8 n_files (1 to 8), n_files times a size of 24 bits, then the files; what is missing at the
 * end is not there. A target over them is the range of files that set.c mutates.
 */
#ifndef QUERN_FUZZ_SET_H
#define QUERN_FUZZ_SET_H

#include "load.h"

enum { SET_FILES = 8 };

extern const int set_first, set_end;

#endif
