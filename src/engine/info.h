/* SPDX-License-Identifier: MIT
 *
 * What a model is, as text.
 */
#ifndef QUERN_INFO_H
#define QUERN_INFO_H

#include "engine/state.h"

/* Counts the bound tensors of the file at hand. */
void info_count(struct quern_engine *e);
/* Fills e->info. ERR_MEM_LOAD. */
int info_write(struct quern_engine *e, struct error *err);

#endif
