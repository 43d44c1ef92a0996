/* SPDX-License-Identifier: MIT
 *
 * Replies that the engine samples: what steps do for them.
 */
#ifndef QUERN_REPLY_H
#define QUERN_REPLY_H

#include "engine/state.h"

/* Bytes that replies_reserve() takes; and what sampling and events need. ERR_MEM_LOAD. */
uint64_t replies_cost(const struct quern_engine *e);
int replies_reserve(struct quern_engine *e);
void replies_free(struct quern_engine *e);

/* Rows of s that can be computed by now: struct sched_limits. Not the last one, while it waits for what may follow. */
int replies_ready(const struct sched_seq *s);
/* What was told has been heard: events begin anew. */
void replies_heard(struct quern_engine *e);
/* Before a plan: who has waited too long waits no longer. */
void replies_hurry(struct quern_engine *e);
/* After a plan: whose pages were taken, and who is read for the first time. */
void replies_planned(struct quern_engine *e);
/* After encoding: for whom. */
void replies_looked(struct quern_engine *e);
/* A step has computed rows of s up to position `end`. */
void replies_computed(struct quern_sequence *s, int end, double now);
/* The logits of a step are there: samples all rows, pushes, ends. */
void replies_write(struct quern_engine *e);
/* Ends all with ERR_LOST. */
void replies_lost(struct quern_engine *e);

#endif
