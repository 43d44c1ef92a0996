/* SPDX-License-Identifier: MIT
 *
 * The metadata of a converted model.
 */
#ifndef QUERN_CONVERT_KEYS_H
#define QUERN_CONVERT_KEYS_H

#include "cli/gguf_writer.h"
#include "models/model.h"

/* Of a GGUF file all keys, but those that say how it is stored. `described`: they come from JSON files, and are completed and
 * given the types that other programs ask for. */
void convert_keys(struct gguf_writer *w, const struct checkpoint *ck, const struct model_config *model, uint32_t file_type, bool described);

#endif
