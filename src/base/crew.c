/* SPDX-License-Identifier: MIT
 *
 * The crew's trials. Windows of a few layers alternate between two numbers of threads, so that other load on the
 * machine affects both numbers alike.
 */
#include "base/crew.h"

#include <string.h>

enum {
    WINDOWS = 6,       /* windows of a trial, half of them for each number of threads */
    LAYERS_LEAST = 2,  /* layers of a window at least */
};
static const double WINDOW_MS = 20;        /* several time slices of the system's scheduler, which are a few ms each */
static const double WAITED_MOST = 0.05; /* share of a window that the caller may wait before fewer threads are tried */
static const double BETTER = 0.97;         /* better means less than this share of the other's time */
static const double REST_MS = 1000, REST_MOST_MS = 16000; /* between trials; doubles after a trial without gain */

static void window_begin(struct crew *c)
{
    c->layers = 0;
    c->ms = c->waited = 0;
}

static void trial_begin(struct crew *c, int threads)
{
    c->window = 0;
    c->usual = c->working;
    c->tried = threads;
    memset(c->sums, 0, sizeof c->sums);
}

static void trial_end(struct crew *c, int threads)
{
    c->window = -1;
    c->rested = 0;
    c->working = threads;
}

static double mean(const struct crew *c, int i) { return c->sums[i].ms / c->sums[i].layers; }

/* Ends the trial. After a gain, the next number in the same direction is tried at once. */
static void trial_judge(struct crew *c)
{
    bool better = mean(c, 1) < BETTER * mean(c, 0);
    int next = 2 * c->tried - c->usual;
    c->rest = better ? REST_MS : 2 * c->rest < REST_MOST_MS ? 2 * c->rest : REST_MOST_MS;
    trial_end(c, better ? c->tried : c->usual);
    if (better && next >= 1 && next <= c->most) trial_begin(c, next);
}

static void trial_window(struct crew *c)
{
    c->sums[c->window % 2].ms += c->ms;
    c->sums[c->window % 2].layers += c->layers;
    if (++c->window == WINDOWS) trial_judge(c);
    else c->working = c->window % 2 ? c->tried : c->usual;
}

static void usual_window(struct crew *c)
{
    c->rested += c->ms;
    if (c->rested < c->rest) return;
    if (c->working > 1 && c->waited > WAITED_MOST * c->ms) trial_begin(c, c->working - 1);
    else if (c->working < c->most) trial_begin(c, c->working + 1);
}

void crew_begin(struct crew *c, int most, int working)
{
    *c = (struct crew){.most = most, .working = working, .window = -1, .rest = REST_MS};
    c->rested = working < most ? 0 : REST_MS; /* the crew may try fewer threads at once */
}

int crew_layer(struct crew *c, int rows, double ms, double waited_ms)
{
    if (c->most == 1) return 1;
    if (rows != c->rows) { /* a different kind of step: earlier measurements do not compare */
        if (c->window >= 0) trial_end(c, c->usual);
        c->rows = rows;
        window_begin(c);
    }
    c->layers++;
    c->ms += ms;
    c->waited += waited_ms;
    if (c->ms < WINDOW_MS || c->layers < LAYERS_LEAST) return c->working;
    if (c->window < 0) usual_window(c);
    else trial_window(c);
    window_begin(c);
    return c->working;
}
