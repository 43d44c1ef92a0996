/* SPDX-License-Identifier: MIT
 *
 * The wasm interface of an engine that breaks on demand, for the tests of the watchdog (make faults). The text
 * "fault KIND THREAD", when it is to be tokenized, makes that thread of the pool trap, read out of bounds, fill its
 * stack, spin for ever or wait for ever (halt, which leaves the processor to others), while all others wait for it as
 * they do in a step. Nothing of this is shipped.
 */
#define wasm_text_go_on wasm_text_go_on_unharmed
#include "../src/wasm.c"
#undef wasm_text_go_on

#include <stdio.h>
#include <string.h>

#include "engine/state.h"

struct fault {
    char kind[16];
    int thread;
};

static volatile int zero; /* what the compiler must not see through */

/* Overwrites whatever lies below the stack, `zero` too; hence `stop`. */
static int fill_stack(int depth, int stop)
{
    volatile char room[1024];
    room[depth % 1024] = (char)depth;
    return stop ? 0 : fill_stack(depth + 1, stop) + room[depth % 1024];
}

static void strike(void *arg, int thread, int n_threads)
{
    const struct fault *f = arg;
    (void)n_threads;
    if (thread != f->thread) return;
    if (!strcmp(f->kind, "trap")) __builtin_trap();
    if (!strcmp(f->kind, "bounds")) zero = *(volatile int *)(0xfffffff0u + (unsigned)zero);
    if (!strcmp(f->kind, "stack")) fill_stack(0, zero);
    while (!strcmp(f->kind, "spin") && !zero) continue;
    while (!strcmp(f->kind, "halt") && !zero) __builtin_wasm_memory_atomic_wait32((int *)&zero, 0, -1);
}

EXPORT int wasm_text_go_on(address e, address run, address text, int size, int flags, int budget, address ids, int cap,
                           address out)
{
    struct fault fault;
    char line[32] = "";
    if (size < (int)sizeof line) memcpy(line, TO(const char, text), (size_t)size);
    if (sscanf(line, "fault %15s %d", fault.kind, &fault.thread) == 2) {
        struct pool *p = ENGINE(e)->pool;
        pool_limit(p, pool_threads(p)); /* all of them, whatever the crew has decided */
        pool_run(p, strike, &fault);
    }
    return wasm_text_go_on_unharmed(e, run, text, size, flags, budget, ids, cap, out);
}
