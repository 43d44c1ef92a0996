/* SPDX-License-Identifier: MIT
 *
 * How a file is refused: with which error, in how little time and memory.
 */
#ifndef QUERN_REFUSAL_H
#define QUERN_REFUSAL_H

#include "base/base.h"

enum {
    REFUSAL_MB = 16,
    REFUSAL_MS = 100 /* under sanitizers, which take twice the time and more */,
    REFUSAL_TRIES = 5
};

struct verdict {
    int status;
    struct error error;
    uint64_t peak; /* bytes */
    double cpu_ms;
};

/* Whether a load was quick; only a refusal must be. */
static inline bool verdict_quick(const struct verdict *v) { return !v->status || v->cpu_ms < REFUSAL_MS; }

/* What load_once says: the machine may do other things meanwhile, so that a slow refusal is tried again. */
static inline struct verdict verdict_of(struct verdict (*load_once)(const void *what), const void *what)
{
    struct verdict v = load_once(what);
    for (int i = 1; i < REFUSAL_TRIES && !verdict_quick(&v); i++) v = load_once(what);
    return v;
}

#endif
