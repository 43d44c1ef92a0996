/* SPDX-License-Identifier: MIT
 *
 * What comes back from a device, and what happens when the device is gone.
 *
 * A call that needs an answer of the device ends before that has arrived, and nothing else is computed meanwhile.
 * Whoever drives the engine waits for the device, says so here, and goes on with the call. All that is on the device is
 * lost with it, so a lost device ends every reply and the engine.
 */
#include "engine/look.h"
#include "engine/reply.h"
#include "engine/step.h"

bool quern_awaits(const struct quern_engine *e) { return e->awaits != AWAITED_NOTHING; }

static void lose(struct quern_engine *e)
{
    fail(&e->error, ERR_LOST, "device", 0,
         "The graphics device was lost, and what it had computed with it; load the model again.");
    e->state = STATE_LOST;
    e->failure = e->error;
    replies_lost(e);
}

void quern_arrive(struct quern_engine *e, double ms)
{
    enum awaited what = e->awaits;
    e->awaits = AWAITED_NOTHING;
    replies_heard(e);
    if (ms < 0) lose(e);
    else if (what == AWAITED_OUTPUTS) step_arrived(e, ms);
    else if (what == AWAITED_TOKENS) look_arrived(e);
    engine_beat(e);
}
