/* SPDX-License-Identifier: MIT
 *
 * The race: which order of reading weights is fastest here, found out by the first steps of decoding.
 *
 * No processor says how its memory likes to be read, and the difference is half the speed. So products of one row take
 * the orders in turn, some milliseconds each, until each has had its chances; the bits are the same, and with a model
 * of real size it is over within the first token. The best heat counts, since other programs only slow a heat down. It
 * is run again now and then: a browser may have had one order's kernel compiled well and the other's not yet.
 */
#include "compute/cpu/cpu.h"

enum { HEATS = 4 * ORDERS };
static const double HEAT_BYTES = 12e6; /* a millisecond or two: far above a browser's coarsest clock, 0.1 ms */

/* Products until the next race, after the second: two tokens, in the end 40, of which it takes less than a hundredth.
 */
enum { REST_FIRST = 256, REST = 4096 };

bool race_over(const struct race *r) { return r->heat == HEATS; }

bool race_on(struct race *r)
{
    if (race_over(r) && ++r->rested >= r->rest)
        *r = (struct race){.rest = r->rest ? min_int(4 * r->rest, REST) : REST_FIRST};
    return !race_over(r);
}

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
