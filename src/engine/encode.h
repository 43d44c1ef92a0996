/* SPDX-License-Identifier: MIT
 *
 * Decides which medium the encoder works on, and when.
 *
 * A medium is encoded when a reading sequence reaches its rows; cached rows are never encoded. Encoding runs in parts
 * between steps. While sequences write, encoding takes half of the time that reading may take, and reading the other
 * half, so the gaps between written tokens stay the same. Otherwise encoding takes turns with steps. The encoder works
 * on one medium at a time, the first in the order of turns, and finishes it unless no sequence wants it any more. If
 * the store has no room, a later reader waits, never the first.
 */
#ifndef QUERN_ENCODE_H
#define QUERN_ENCODE_H

#include "engine/state.h"

/* Rows of s that can be computed now: struct sched_limits. */
int encode_ready(const struct sched_seq *s);
/* Whether a medium is waiting to be encoded. */
bool encode_awaited(const struct quern_engine *e);
/* Encodes one part, between two steps. Returns false when there is nothing to encode. */
bool encode_part(struct quern_engine *e);
/* The result of the last part has arrived. */
void encode_arrived(struct quern_engine *e);
/* A step has ended: sets how long encoding may go on before the next one. */
void encode_turn(struct quern_engine *e, double step_ms);
/* Gives up the medium that is being encoded. */
void encode_drop(struct quern_engine *e);

/* Visual tokens of a conversation that are encoded, and that will have to be in all, as far as known. */
void encode_progress(const struct quern_sequence *s, int *done, int *total);

#endif
