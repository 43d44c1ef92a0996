/* SPDX-License-Identifier: MIT
 *
 * A device, played: a backend that only keeps what it is asked for, and computes it when it is told that the device has
 * done so.
 *
 * It is the CPU's backend with other ways of running and answering. Every operand is checked against the table of
 * operations and the size of the scratch, whose values are NaN at first. What a model hands over is copied, since it
 * may be anything else by the time that the device computes.
 */
#ifndef QUERN_PLAYED_H
#define QUERN_PLAYED_H

#include "compute/cpu/cpu.h"

/* Rows of the table of backends that programs with played.c have. */
enum { BACKEND_CPU, BACKEND_PLAYED };

enum { PLAYED_ANSWERS = 1024 };

enum played_what { PLAYED_OP, PLAYED_COPY, PLAYED_SET, PLAYED_SLOT };

struct played_call {
    enum played_what what;
    struct op op;
    int to, from, n;      /* of pages; `to` also a slot, of which: */
    uint64_t at, bytes;
    void *copies[16];     /* what it holds */
    int n_copies;
    struct played_call *next;
};

/* Bytes that are asked for, and where they go. */
struct played_answer {
    struct result result; /* a copy of its values: */
    float *values;
    int page;             /* or a page, to */
    void *bytes;
    bool of_slot;         /* or n bytes of slot `page` */
    const struct weight *w; /* or the hash of a part of a weight, to `bytes` */
    uint64_t from, n;
    bool come;
};

struct played {
    struct backend_ops ops;
    const struct backend_ops *cpu;
    uint64_t values;      /* bytes of scratch */
    struct played_call *first, **last;
    struct played_answer answers[PLAYED_ANSWERS];
    int n_answers, n_asked; /* those before n_asked had been asked for when submit() was called last */
    bool submitted;
    int n_run[OP_KINDS];  /* operations of each kind so far */
    void (*seen)(const struct op *op); /* NULL, or what is told of each */
};

struct played *played_of(const struct backend *b);

/* Everything that was asked for is computed, and has come back; then quern_arrive() is due. */
void played_deliver(struct backend *b);

#endif
