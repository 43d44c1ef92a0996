/* SPDX-License-Identifier: MIT
 *
 * The crew: how many of the pool's threads work, found out by what layers take.
 *
 * More threads than processors are slower than fewer, many times in some browsers, and which processors are free nobody
 * says: some claim twice what there is, and another program may take one at any time. So the crew looks at how long the
 * caller waits for the others. Where that is much, some layers are computed by one thread less in turn with the others,
 * and the faster number stays; later one more is tried. Where nobody waits nothing is tried and nothing lost. Results
 * never depend on it. It only decides: pool_limit() does it.
 */
#ifndef QUERN_CREW_H
#define QUERN_CREW_H

#include "base/base.h"

struct crew {
    int most, working;    /* threads there are, and that work now */
    int rows;             /* of the steps whose layers are compared */
    int window;           /* of a trial: even ones with `usual` threads, odd ones with `tried`; -1: no trial */
    int usual, tried;
    int layers;           /* of this window */
    double ms, waited;    /* theirs */
    struct {
        double ms;
        int layers;
    } sums[2];            /* of the trial's windows */
    double rested, rest;  /* ms of layers since the last trial, and those until the next */
};

void crew_begin(struct crew *c, int most, int working);

/* A layer of a step of so many rows took ms, of which the caller waited for others. Returns how many threads are to
 * work from now on. */
int crew_layer(struct crew *c, int rows, double ms, double waited_ms);

#endif
