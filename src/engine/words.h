/* SPDX-License-Identifier: MIT
 *
 * A model's texts: its tokenizer, the tokens that have a meaning, and its chat templates.
 */
#ifndef QUERN_WORDS_H
#define QUERN_WORDS_H

#include "engine/state.h"

/* Fills what the model's first header says of them. ERR_FORMAT "missing", "vocab", "template"; ERR_INCONSISTENT
 * "vocab", "value", "vision-token"; ERR_UNSUPPORTED "tokenizer" for one that the architecture does not have;
 * ERR_MEM_LOAD. */
int words_open(struct quern_engine *e, struct error *err);
void words_free(struct quern_engine *e);

#endif
