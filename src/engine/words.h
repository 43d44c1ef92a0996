/* SPDX-License-Identifier: MIT
 *
 * The text side of a model: its tokenizer, special tokens and chat templates.
 */
#ifndef QUERN_WORDS_H
#define QUERN_WORDS_H

#include "engine/state.h"

/* Reads them from the model's first header. ERR_FORMAT "missing", "vocab", "template"; ERR_INCONSISTENT "vocab",
 * "value", "vision-token"; ERR_UNSUPPORTED "tokenizer" for a tokenizer that the architecture does not have;
 * ERR_MEM_LOAD. */
int words_open(struct quern_engine *e, struct error *err);
void words_free(struct quern_engine *e);

#endif
