/* SPDX-License-Identifier: MIT
 *
 * The race: which order of reading weights is fastest here, found out by the first steps of decoding.
 *
 * No processor says how its memory likes to be read, and the difference is half the speed. So products of one row take the
 * orders in turn, some milliseconds each, until each has had its chances; the bits are the same, and with a model of real size it is over
 * within the first token. The best heat counts, since other programs only slow a heat down.
 */
#include "cpu.h"

enum { HEATS = 4 * ORDERS };
static const double HEAT_BYTES = 12e6; /* a millisecond or two: far above a browser's coarsest clock, 0.1 ms */

bool race_over(const struct race *r) { return r->heat == HEATS; }

enum order race_order(const struct race *r)
{
    if (!race_over(r)) return (enum order)(r->heat % ORDERS);
    return r->best[IN_TURN] > r->best[TOGETHER] ? IN_TURN : TOGETHER;
}

void race_add(struct race *r, double bytes, double ms)
{
    r->bytes += bytes;
    r->ms += ms;
    if (r->bytes < HEAT_BYTES) return;
    double rate = r->bytes / r->ms, *best = &r->best[race_order(r)];
    if (rate > *best) *best = rate;
    r->bytes = r->ms = 0;
    r->heat++;
}
