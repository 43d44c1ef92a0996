/* SPDX-License-Identifier: MIT
 *
 * Conversations, as the rest of the engine sees them; quern.h has what its callers see.
 */
#ifndef QUERN_SEQUENCE_H
#define QUERN_SEQUENCE_H

#include "engine/state.h"

/* Bytes of a conversation that fills the context. */
uint64_t sequence_cost(const struct quern_engine *e, int context_size);

/* Room for n tokens. OK, ERR_MEM_LOAD. */
int sequence_reserve(struct quern_sequence *s, int n);
/* It takes turns from now on. OK, ERR_BUSY. */
int sequence_enter(struct quern_sequence *s);
/* It waits for its reply to begin with the pages of what is known of it, which go first when others need them. */
void sequence_hold(struct quern_sequence *s);
/* And no longer: nothing of it is computed, its pages are only remembered. A step that nobody is left in is dropped. */
void sequence_leave(struct quern_sequence *s);

/* ERR_CONTEXT: n tokens do not fit. */
int sequence_fail_context(struct quern_engine *e, int n);
/* Hidden states are wanted of it, not logits. */
bool sequence_hidden(const struct quern_sequence *s);
/* The logits that the last finished step made, of one of its made_rows rows; NULL: none, or they have not arrived. */
const float *sequence_row(const struct quern_sequence *s, int row);
/* The word for what sampler_pick() returned: an id, or its error. */
int sequence_picked(struct quern_engine *e, int picked);

#endif
