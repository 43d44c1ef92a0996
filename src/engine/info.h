/* SPDX-License-Identifier: MIT
 *
 * Describes a model as JSON.
 */
#ifndef QUERN_INFO_H
#define QUERN_INFO_H

#include "engine/state.h"

/* Counts the bound tensors of a file: those of the language model, or (visual) those of the vision part. */
void info_count(const struct quern_engine *e, const struct checkpoint *ck, bool visual, struct tally *tally);
/* Fills e->info. ERR_MEM_LOAD. */
int info_write(struct quern_engine *e, struct error *err);

#endif
