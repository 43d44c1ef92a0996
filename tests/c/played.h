/* SPDX-License-Identifier: MIT
 *
 * A simulated device: a backend that only records its calls, and computes them when a test says that the device has
 * done so.
 *
 * It is the CPU's backend with its own ways to run and to answer. It checks every operand against the table of
 * operations and the size of the scratch, whose values are NaN at first. It copies what a model passes, since that may
 * change before the device computes.
 */
#ifndef QUERN_PLAYED_H
#define QUERN_PLAYED_H

#include "compute/cpu/cpu.h"

/* Rows of the table of backends in programs with played.c. */
enum { BACKEND_CPU, BACKEND_PLAYED };

/* If it is not NULL, it opens the backend in place of the simulated device: another one, under test. */
typedef struct backend *backend_open_fn(struct mem *m, struct pool *pool, bool scalar);
extern backend_open_fn *played_instead;

enum { PLAYED_ANSWERS = 1024 };

enum played_what { PLAYED_OP, PLAYED_COPY, PLAYED_SET, PLAYED_SLOT, PLAYED_WORK };

/* Work of an imitated architecture that is no operation. */
typedef void played_work(struct backend *b, const void *context);

struct played_call {
    enum played_what what;
    struct op op;
    int to, from, n;      /* page numbers; `to` may also be a slot, */
    uint64_t at, bytes;   /* with this range of its bytes */
    played_work *work;
    void *copies[16];     /* copies of what the call points to */
    int n_copies;
    struct played_call *next;
};

/* A requested answer and its destination. */
struct played_answer {
    struct result result; /* its values are copied to: */
    float *values;
    int page, rows;       /* or the first rows of a page, to: */
    void *bytes;
    bool of_slot;         /* or n bytes of slot `page`, to `bytes` */
    const struct weight *w; /* or the hash of a part of a weight, to `bytes` */
    uint64_t from, n;
    bool come;            /* whether it has arrived */
};

struct played {
    struct backend_ops ops;
    const struct backend_ops *cpu;
    uint64_t values;      /* bytes of scratch */
    struct played_call *first, **last;
    struct played_answer answers[PLAYED_ANSWERS];
    int n_answers, n_asked; /* requests before n_asked were made before the last submit() */
    bool submitted;
    int n_run[OP_KINDS];  /* operations of each kind so far */
    void (*seen)(const struct op *op); /* NULL, or called with each operation */
};

struct played *played_of(const struct backend *b);

/* Adds other work between the operations, with a copy of its context [bytes]; does it at once if the backend is the
 * CPU. */
void played_do(struct backend *b, played_work *work, const void *context, size_t bytes);

/* Computes everything that was requested; its results have then arrived, and quern_arrive() must be called. */
void played_deliver(struct backend *b);

#endif
