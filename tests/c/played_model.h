/* SPDX-License-Identifier: MIT
 *
 * A recurrent architecture, played: Qwen3 with a state beside its pages, in each layer a hash of all ids read so far.
 * Its logits depend on it, so a slot that is wrong, old, half-written or read out of order makes others.
 *
 * Files of qwen3 are of this architecture while played_states is set. CPU's backend only.
 */
#ifndef QUERN_PLAYED_MODEL_H
#define QUERN_PLAYED_MODEL_H

#include <stdbool.h>

extern bool played_states;

#endif
