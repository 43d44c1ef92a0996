/* SPDX-License-Identifier: MIT
 *
 * The step loop: memory and limits. Its public calls are in quern.h.
 */
#ifndef QUERN_STEP_H
#define QUERN_STEP_H

#include "engine/state.h"

/* Sets the rows and outputs of a step, from the options and the model. */
void step_size(struct quern_engine *e);
/* Bytes that step_reserve() allocates for a step's arrays. ERR_MEM_LOAD. */
uint64_t step_cost(const struct step *s);
int step_reserve(struct quern_engine *e);
void step_free(struct quern_engine *e);

/* The outputs of the last step have arrived; the device worked on them for ms. */
void step_arrived(struct quern_engine *e, double ms);

/* The scheduler's limits for a context of context_size positions. */
struct sched_limits step_limits(const struct quern_engine *e, int context_size);

#endif
