/* SPDX-License-Identifier: MIT
 *
 * Whose image the encoder looks at, and when.
 *
 * An image is encoded once a reader stands before its rows; what is known of a conversation is never looked at.
 * Encoding goes on in parts between steps: beside writers it takes half of what reading may take, and reading the other
 * half, so that a writer's gap stays what it was; without them it takes turns with the steps of others. One image is
 * looked at at a time, the first in the order of turns, to its end, unless nobody wants it any more. Where the store
 * has no room, the later reader waits, and never the first.
 */
#ifndef QUERN_LOOK_H
#define QUERN_LOOK_H

#include "engine/state.h"

/* Rows of s that can be computed by now: struct sched_limits. */
int look_ready(const struct sched_seq *s);
/* Whether something is to be encoded. */
bool look_awaited(const struct quern_engine *e);
/* Encodes a part, between two steps; false: there is nothing to encode. */
bool look_part(struct quern_engine *e);
/* What the last part has made is there. */
void look_arrived(struct quern_engine *e);
/* A step has ended: how long encoding may go on before the next one. */
void look_turn(struct quern_engine *e, double step_ms);
/* Whatever is being encoded is given up. */
void look_drop(struct quern_engine *e);

/* Of a conversation: visual tokens that the encoder has made, and will have in all, as far as it is known. */
void look_progress(const struct quern_sequence *s, int *done, int *total);

#endif
