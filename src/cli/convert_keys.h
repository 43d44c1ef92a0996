/* SPDX-License-Identifier: MIT
 *
 * The metadata of a converted model.
 */
#ifndef QUERN_CONVERT_KEYS_H
#define QUERN_CONVERT_KEYS_H

#include "cli/gguf_writer.h"
#include "engine/intake.h"
#include "models/model.h"

/* Of a GGUF file all keys, but those that say how it is stored. What comes from JSON files is completed and given the
 * types that other programs ask for. */
void convert_keys(struct gguf_writer *w, const struct intake *in, const struct model_config *model, uint32_t file_type);

#endif
