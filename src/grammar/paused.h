/* SPDX-License-Identifier: MIT
 *
 * How a long call pauses, so that its caller can do other work and then repeat the call.
 *
 * A call pauses between two units of work, each a derivation. It keeps its results: transitions, the current search,
 * the place of a walk (masks.h). Counted work is never done twice, so a call gives the same result in the same number
 * of steps, however often it pauses.
 */
#ifndef QUERN_PAUSED_H
#define QUERN_PAUSED_H

#include "grammar/grammar.h"

#define UNIT_WORK (INT64_C(1) << 20) /* most steps of a unit: some tens of milliseconds */

struct slice {
    int64_t steps;    /* steps after which a call pauses; 0: never */
    int64_t until;    /* value of `work` at which it pauses */
    bool fresh;       /* it has not reached its first unit yet */
    bool over;        /* it has paused */
};

/* The task of a call: the mask of a state, or its step by a token. */
struct job {
    gr_state state;   /* 0: no job has paused */
    uint32_t token;   /* NO_TOKEN: the mask */
    int64_t work;     /* steps left for the job */
};

/* A search: its start, the number of items in the queue, and its position in them. */
struct search {
    gr_expr start;    /* 0: no search */
    uint32_t n, at, byte_class;
};

/* A transition whose target may be live or dead. */
struct pending {
    gr_state from;    /* 0: no such transition */
    uint32_t byte_class;
    gr_expr to;
};

/* Call before a unit, when all results are kept. Returns whether the call pauses here. */
bool node_pauses(struct grammar *g);
/* derive() as one unit. */
gr_expr derive_unit(struct grammar *g, gr_expr a, uint8_t byte);

#endif
