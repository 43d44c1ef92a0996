/* SPDX-License-Identifier: MIT
 *
 * Inputs of several files: u8 n_files (1 to 8), n_files times a size of 24 bits, then the files; the end of the input
 * may cut them short. A target defines which range of files set.c mutates.
 */
#ifndef QUERN_FUZZ_SET_H
#define QUERN_FUZZ_SET_H

#include "load.h"

enum { SET_FILES = 8 };

extern const int set_first, set_end;

#endif
