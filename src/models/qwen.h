/* SPDX-License-Identifier: MIT
 *
 * What files of Qwen's models have in common: their older names, and their tokenizer.
 */
#ifndef QUERN_QWEN_H
#define QUERN_QWEN_H

#include "models/model.h"

/* Whether a file by the name of an older architecture is a Qwen3 model: struct model_ops, claim. */
int qwen_claim(const struct checkpoint *ck, struct bytes name, const char **prefix, struct error *err);

/* By the metadata: byte-level BPE behind Qwen2's split, or qwen3.c's scores. Others are refused by name (ERR_UNSUPPORTED "tokenizer"); a file
 * that does not name its split must have a vocabulary like Qwen's. */
int qwen_tokenizer(const struct checkpoint *ck, struct model_tokenizer *out, struct error *err);
/* The same with the pads of Qwen3-VL. */
int qwen_vl_tokenizer(const struct checkpoint *ck, struct model_tokenizer *out, struct error *err);

#endif
