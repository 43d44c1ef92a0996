/* SPDX-License-Identifier: MIT
 *
 * Turns files with chat templates into JSON.
 */
#ifndef QUERN_CLI_DESCRIBED_H
#define QUERN_CLI_DESCRIBED_H

#include "base/base.h"

/* The JSON to feed in place of a chat template; file names tell which files are templates. The caller frees it. data is
 * NULL for any other file, and for one that cannot be read. */
struct bytes cli_described(const char *path);

#endif
