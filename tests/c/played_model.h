/* SPDX-License-Identifier: MIT
 *
 * An imitation of a recurrent architecture: Qwen3 with a state beside its pages, which is, in each layer, a hash of all
 * ids read so far. Its logits depend on the state, so a slot that is wrong, old, half-written or read out of order
 * gives other logits.
 *
 * While played_states is set, qwen3 files load as this architecture, with the CPU's backend and with the played device
 * (played.h). While played_drafts is set, models of every architecture draft tokens: about two of three are those of
 * the expected conversations.
 */
#ifndef QUERN_PLAYED_MODEL_H
#define QUERN_PLAYED_MODEL_H

#include <stdbool.h>
#include <stdint.h>

extern bool played_states, played_drafts;

/* Adds a conversation whose tokens are drafted; ids [n] is borrowed. played_forget() forgets all of them. */
void played_expect(const int32_t *ids, int n);
void played_forget(void);

#endif
