/* SPDX-License-Identifier: MIT
 *
 * What all of Qwen's models have in common: their tokenizer.
 */
#ifndef QUERN_QWEN_H
#define QUERN_QWEN_H

#include "models/model.h"

/* By the metadata: byte-level BPE behind Qwen2's split, or qwen3.c's scores. Other ones are refused by name (ERR_UNSUPPORTED "tokenizer"). */
int qwen_tokenizer(const struct checkpoint *ck, struct model_tokenizer *out, struct error *err);

#endif
