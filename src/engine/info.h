/* SPDX-License-Identifier: MIT
 *
 * What a model is, as text.
 */
#ifndef QUERN_INFO_H
#define QUERN_INFO_H

#include "engine/state.h"

/* Adds the bound tensors of a file: of the language model, or what is visual. */
void info_count(const struct quern_engine *e, const struct checkpoint *ck, bool visual, struct tally *tally);
/* Fills e->info. ERR_MEM_LOAD. */
int info_write(struct quern_engine *e, struct error *err);

#endif
