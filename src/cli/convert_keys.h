/* SPDX-License-Identifier: MIT
 *
 * The metadata of a converted model.
 */
#ifndef QUERN_CONVERT_KEYS_H
#define QUERN_CONVERT_KEYS_H

#include "cli/gguf_writer.h"
#include "engine/intake.h"
#include "models/model.h"

/* Copies all keys of a GGUF file, except those about its storage. Metadata from JSON files is completed, and gets the
 * types that other programs expect. prefix: of the model's keys. */
void convert_keys(struct gguf_writer *w, const struct intake *in, const char *prefix, const struct model_config *model,
                  uint32_t file_type);

#endif
