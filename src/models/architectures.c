/* SPDX-License-Identifier: MIT
 *
 * The table of architectures. Programs that play one have another file in place of this one.
 */
#include "models/model.h"

const struct model_ops *const architectures[] = {&model_qwen3, &model_qwen3moe, &model_qwen3vl, &model_qwen3vlmoe};
const int n_architectures = sizeof architectures / sizeof *architectures;
