/* SPDX-License-Identifier: MIT
 *
 * How a call that takes long pauses, so that whoever made it can do something else and then make it again.
 *
 * It pauses between two units of work, a derivation each; what it has found by then is kept: transitions, the search at
 * hand, the place of a walk (masks.h). Nothing is done twice that counts, so a call comes to the same in the same steps
 * however often it has paused.
 */
#ifndef QUERN_PAUSED_H
#define QUERN_PAUSED_H

#include "grammar/grammar.h"

#define UNIT_WORK (INT64_C(1) << 20) /* steps that a unit may take: some tens of milliseconds */

struct slice {
    int64_t steps;    /* after which a call pauses; 0: never */
    int64_t until;    /* of its work, what is left then */
    bool fresh;       /* it has not come to its first unit yet */
    bool over;        /* it has paused */
};

/* What a call is about: the mask of a state, or its step by a token. */
struct job {
    gr_state state;   /* 0: none has paused */
    uint32_t token;   /* NO_TOKEN: its mask */
    int64_t work;     /* steps that are left for it */
};

/* A search: whose texts, the queue's items, and where in them it is. */
struct search {
    gr_expr start;    /* 0: there is none */
    uint32_t n, at, byte_class;
};

/* A transition of which it is not known yet whether it is live. */
struct pending {
    gr_state from;    /* 0: there is none */
    uint32_t byte_class;
    gr_expr to;
};

/* Before a unit, when what was done so far is kept: whether the call pauses here. */
bool node_pauses(struct grammar *g);
/* derive() as a unit. */
gr_expr derive_unit(struct grammar *g, gr_expr a, uint8_t byte);

#endif
