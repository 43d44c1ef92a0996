/* SPDX-License-Identifier: MIT
 *
 * The table of families: the code of architectures that compute alike. Programs that imitate a model replace this file.
 */
#include "models/model.h"

const struct model_ops *const families[FAMILIES] = {[FAMILY_QWEN3] = &model_qwen3, [FAMILY_QWEN35] = &model_qwen35};
