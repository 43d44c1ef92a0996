/* SPDX-License-Identifier: MIT
 *
 * The race finds out, during the first steps of decoding, which order of reading weights is fastest on this machine.
 *
 * No processor says which order suits its memory, and the difference is half the speed. So products of one row try the
 * orders in turn, some milliseconds each, several times; the bits are the same, and with a model of real size the race
 * ends within the first token. The best heat counts, since other programs only slow a heat down. The race is repeated
 * now and then: a browser may have compiled one order's kernel well and the other's not yet.
 */
#include "compute/cpu/cpu.h"

enum { HEATS = 4 * ORDERS };
static const double HEAT_BYTES = 12e6; /* a millisecond or two: far above a browser's coarsest clock, 0.1 ms */

/* Products until the next race: none after the first race, then REST_FIRST (about two tokens), in the end REST (40
 * tokens), of which a race takes less than a hundredth. */
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
