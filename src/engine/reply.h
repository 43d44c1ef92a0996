/* SPDX-License-Identifier: MIT
 *
 * Replies that the engine samples: the parts that steps call.
 */
#ifndef QUERN_REPLY_H
#define QUERN_REPLY_H

#include "engine/state.h"

/* Bytes that replies_reserve() allocates for sampling and events. ERR_MEM_LOAD. */
uint64_t replies_cost(const struct quern_engine *e);
int replies_reserve(struct quern_engine *e);
void replies_free(struct quern_engine *e);

/* Rows of s that can be computed now: struct sched_limits. Without the last row while the reply waits for
 * quern_reply_allow(). */
int replies_ready(const struct sched_seq *s);
/* Clears the events. */
void replies_heard(struct quern_engine *e);
/* Before a plan: says which replies may get a row for a draft. */
void replies_draft(struct quern_engine *e);
/* Before a plan: gives normal priority to background sequences that have waited too long. */
void replies_hurry(struct quern_engine *e);
/* After a plan: reports sequences whose pages were taken, and those that are read for the first time. */
void replies_planned(struct quern_engine *e);
/* After encoding: reports the progress of the sequences that wait for media. */
void replies_encoded(struct quern_engine *e);
/* A step has computed rows of s up to position `end`. */
void replies_computed(struct quern_sequence *s, int end, double now);
/* The logits of a step have arrived: samples all rows, pushes tokens, ends replies. */
void replies_write(struct quern_engine *e);
/* Before a plan: writes the next token of each reply that wants one in a call and whose last draft was right. Returns
 * false if there is none: drafts of replies that wait are then dropped. */
bool replies_go_on(struct quern_engine *e);
/* Whether the drafts of s in this plan are the model's own. */
bool replies_drafts_own(const struct quern_sequence *s);
/* Ends all replies with ERR_LOST. */
void replies_lost(struct quern_engine *e);

#endif
