/* SPDX-License-Identifier: MIT
 *
 * Chat templates in files of their own, as JSON.
 */
#ifndef QUERN_CLI_DESCRIBED_H
#define QUERN_CLI_DESCRIBED_H

#include "base/base.h"

/* What the engine is given in place of a chat template, which the file is by its name; the caller frees it. data NULL
 * for any other file, and where it cannot be read. */
struct bytes cli_described(const char *path);

#endif
