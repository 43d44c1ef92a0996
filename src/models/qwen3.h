/* SPDX-License-Identifier: MIT
 *
 * What the files of Qwen3 share: qwen3_config.c reads the metadata, qwen3.c binds and computes.
 */
#ifndef QUERN_QWEN3_H
#define QUERN_QWEN3_H

#include "models/rope.h"

/* Fills c and rope from the keys PREFIX.*, including those of experts and of vision if the architecture has them.
 * ERR_FORMAT "missing", "kv-type"; ERR_INCONSISTENT "value"; ERR_UNSUPPORTED with the name of what Qwen3 does not do.
 */
int qwen3_config(const struct architecture *architecture, const struct checkpoint *ck, const char *prefix,
                 struct model_config *c, struct rope *rope, struct error *err);

#endif
