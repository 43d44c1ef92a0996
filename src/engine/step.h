/* SPDX-License-Identifier: MIT
 *
 * The step loop's memory; quern.h has its calls.
 */
#ifndef QUERN_STEP_H
#define QUERN_STEP_H

#include "engine/state.h"

/* How many rows and outputs a step has, by the options and the model. */
void step_size(struct quern_engine *e);
/* Bytes that step_reserve() takes; and a step's arrays. ERR_MEM_LOAD. */
uint64_t step_cost(const struct step *s);
int step_reserve(struct quern_engine *e);
void step_free(struct quern_engine *e);

/* The outputs of the last step are there, for which a device took ms. */
void step_arrived(struct quern_engine *e, double ms);

/* Of the scheduler, for a context of so many positions. */
struct sched_limits step_limits(const struct quern_engine *e, int context_size);

#endif
