/* SPDX-License-Identifier: MIT
 *
 * A WebAssembly engine that has the played device as a backend (make faults): what the device has been asked for is
 * computed, and comes back, when played_answer() is called. Its models have states after played_recurrent(1). Nothing
 * of this is shipped.
 */
#include "c/played.c"
#include "c/played_model.c"

#include "engine/state.h"

#include <emscripten/emscripten.h>

EMSCRIPTEN_KEEPALIVE void played_recurrent(int on) { played_states = on; }
EMSCRIPTEN_KEEPALIVE void played_answer(double engine)
{
    played_deliver(((struct quern_engine *)(uintptr_t)engine)->be);
}
