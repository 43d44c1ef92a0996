/* SPDX-License-Identifier: MIT
 *
 * How a file is refused: the error, the time and the memory.
 */
#ifndef QUERN_REFUSAL_H
#define QUERN_REFUSAL_H

#include "base/base.h"

enum {
    REFUSAL_MB = 16,
    REFUSAL_MS = 100 /* for sanitizers, which take at least twice the time */,
    REFUSAL_TRIES = 5
};

struct verdict {
    int status;
    struct error error;
    uint64_t peak; /* bytes */
    double cpu_ms;
};

/* Whether a load was quick; only refusals must be. */
static inline bool verdict_quick(const struct verdict *v) { return !v->status || v->cpu_ms < REFUSAL_MS; }

/* The verdict of load_once. A slow refusal is tried again, since the machine may be busy with other things. */
static inline struct verdict verdict_of(struct verdict (*load_once)(const void *what), const void *what)
{
    struct verdict v = load_once(what);
    for (int i = 1; i < REFUSAL_TRIES && !verdict_quick(&v); i++) v = load_once(what);
    return v;
}

#endif
