/* SPDX-License-Identifier: MIT
 *
 * Conversations and their steps, as the rest of the engine sees them; quern.h has what its callers see.
 */
#ifndef QUERN_SEQUENCE_H
#define QUERN_SEQUENCE_H

#include "engine/state.h"

/* Bytes of a step's arrays; and of a conversation that replies. */
uint64_t step_cost(const struct step *s);
uint64_t sequence_cost(const struct quern_engine *e, int context_size);

#endif
