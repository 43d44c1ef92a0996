/* SPDX-License-Identifier: MIT
 *
 * The files of a model as they arrive: which of them has what.
 */
#ifndef QUERN_FILES_H
#define QUERN_FILES_H

#include "engine/state.h"

/* What the header of a file with weights means among the files of the model. */
int files_check(struct quern_engine *e, struct error *err);
/* The file at hand has ended and had no weights: it describes the model. */
int files_take_side(struct quern_engine *e, struct error *err);

#endif
