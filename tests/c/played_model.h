/* SPDX-License-Identifier: MIT
 *
 * An imitation of a recurrent architecture: Qwen3 with a state beside its pages, which is, in each layer, a hash of all
 * ids read so far. Its logits depend on the state, so a slot that is wrong, old, half-written or read out of order
 * gives other logits.
 *
 * While played_states is set, qwen3 files load as this architecture, with the CPU's backend and with the played device
 * (played.h).
 */
#ifndef QUERN_PLAYED_MODEL_H
#define QUERN_PLAYED_MODEL_H

#include <stdbool.h>

extern bool played_states;

#endif
