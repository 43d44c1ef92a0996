/* SPDX-License-Identifier: MIT
 *
 * Takes results from a device, and handles a lost device.
 *
 * A call that needs an answer of the device returns before the answer has arrived, and the engine computes nothing
 * meanwhile. The caller waits for the device, calls quern_arrive() and repeats the call. A lost device takes all its
 * data with it, so every reply and the engine end.
 */
#include "engine/encode.h"
#include "engine/reply.h"
#include "engine/step.h"

bool quern_awaits(const struct quern_engine *e) { return e->awaits != AWAITED_NOTHING; }

static void lose(struct quern_engine *e)
{
    fail(&e->error, ERR_LOST, "device", 0,
         "The graphics device was lost with all its results; load the model again.");
    e->state = STATE_LOST;
    e->failure = e->error;
    replies_lost(e);
}

void quern_arrive(struct quern_engine *e, double ms)
{
    enum awaited what = e->awaits;
    e->awaits = AWAITED_NOTHING;
    replies_heard(e);
    if (ms >= 0 && e->be->ops->arrived) e->be->ops->arrived(e->be);
    if (ms < 0) lose(e);
    else if (what == AWAITED_OUTPUTS) step_arrived(e, ms);
    else if (what == AWAITED_TOKENS) encode_arrived(e);
    engine_beat(e);
}
