/* SPDX-License-Identifier: MIT
 *
 * The table of families, each the code of architectures that compute alike. Programs that play one have another file in
 * place of this one.
 */
#include "models/model.h"

const struct model_ops *const families[FAMILIES] = {[FAMILY_QWEN3] = &model_qwen3};
