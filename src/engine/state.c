/* SPDX-License-Identifier: MIT
 *
 * Checks whether an engine can be used.
 */
#include "engine/state.h"

int engine_lost(struct quern_engine *e)
{
    if (e->state != STATE_LOST) return OK;
    e->error = e->failure;
    return e->failure.code;
}

int engine_check(struct quern_engine *e)
{
    if (engine_lost(e)) return e->failure.code;
    if (e->state != STATE_READY) return fail(&e->error, ERR_BUSY, "loading", 0, "The model is not loaded yet.");
    if (e->awaits)
        return fail(&e->error, ERR_BUSY, "awaited", 0,
                    "The results of the last call have not arrived from the device yet.");
    return OK;
}
