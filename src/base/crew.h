/* SPDX-License-Identifier: MIT
 *
 * The crew: decides how many of the pool's threads work, from the measured time of layers.
 *
 * More threads than free processors are slower than fewer threads, many times slower in some browsers. No interface
 * tells how many processors are free: some systems claim twice the true number, and another program may take a
 * processor at any time. So the crew measures how long the caller waits for the other threads. If it waits long, the
 * crew starts a trial: some layers run with one thread less, alternating with the usual number, and the faster number
 * stays. Later it tries one thread more. If nobody waits, there is no trial and no cost. Results never depend on the
 * number of threads. The crew only decides; pool_limit() applies the decision.
 */
#ifndef QUERN_CREW_H
#define QUERN_CREW_H

#include "base/base.h"

struct crew {
    int most, working;    /* number of threads, and number that works now */
    int rows;             /* rows of the steps whose layers are compared */
    int window;           /* of a trial: even windows have `usual` threads, odd ones `tried`; -1: no trial */
    int usual, tried;
    int layers;           /* layers of the current window */
    double ms, waited;    /* milliseconds of these layers, and of the caller's waiting in them */
    struct {
        double ms;
        int layers;
    } sums[2];            /* sums over the trial's windows: [0] with `usual` threads, [1] with `tried` */
    double rested, rest;  /* ms of layers since the last trial, and ms needed until the next */
};

void crew_begin(struct crew *c, int most, int working);

/* Records one layer of a step with `rows` rows: it took ms milliseconds, of which the caller waited waited_ms for other
 * threads. Returns the number of threads that should work from now on. */
int crew_layer(struct crew *c, int rows, double ms, double waited_ms);

#endif
