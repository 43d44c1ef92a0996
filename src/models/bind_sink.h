/* SPDX-License-Identifier: MIT
 *
 * Where the rows of a tensor go. Shared by the files that bind tensors: bind.c (weights) and bind_parts.c (numbers that
 * files store beside codes).
 */
#ifndef QUERN_BIND_SINK_H
#define QUERN_BIND_SINK_H

#include "models/binder.h"

/* Where a tensor's rows go; owned by the checkpoint. One of `matrix` and `vector` is NULL; binder_take() allocates what
 * the other points to. */
struct sink {
    struct binder *b;
    const struct dtype *type; /* of the weight */
    const struct dtype *from; /* of the tensor */
    int rows, cols, stack;    /* of the tensor; rows: of its whole stack, 0 for a vector */
    int first, all;           /* place and number of rows within the weight */
    int n;                    /* weights of `all` rows each */
    int unit;                 /* rows that go to each of them in turn */
    struct weight **matrix;   /* [n] */
    float **vector;
    float (*change)(float x); /* of a vector, on loading; NULL: none */
    bool turned;              /* the table is stored by columns */
    int begin;                /* first row in the tensor, if its rows go to several sinks */
    struct sink *next;        /* the sink of the following rows */
    /* for a weight whose rows are spread over several tensors: their number, and the index of this one */
    int strips, strip;
    int strip_cols;
    bool new;                 /* the first tensor of its weight in any file */
    bool stays;               /* keeps its stored type */
    bool outside;             /* not in a layer */
    bool experts;             /* a matrix of experts */
    /* For a tensor of numbers beside codes: */
    const struct dtype *numbers;
    enum weight_part part;
    int n_numbers;            /* in each row */
    int high, wide;           /* the rectangle of weights that shares a number */
    bool by_columns;          /* the numbers of a group of columns follow one another, not those of a row */
    int bits;                 /* numbers are zero points in words of 32 bits; 0: they are floats */
    enum packing packing;     /* of the words */
    struct held *held;        /* keeps them until their weight is known; NULL: it is */
    /* For the groups of a matrix's columns: */
    bool beside;              /* the weight is taken for its own tensor */
    bool late;                /* the order cannot be followed */
    int groups;               /* that the scales have; 0: not known */
};


/* Finds the weight that has row *row of the tensor; makes *row count within that weight, and cuts *n to rows that
 * follow each other there. */
struct weight *sink_weight(const struct sink *s, int *row, int *n);

/* Makes a copy of a sink, and of those that follow it, the target of the tensor's rows. ERR_MEM_LOAD. */
int sink_keep(struct tensor *t, const struct sink *sink, tensor_put *put, struct error *err);

/* The errors of a tensor that is missing from all files, or in two of them. */
int sink_fail_missing(struct error *err, const char *name);
int sink_fail_twice(const struct tensor *t, const char *name, struct error *err);

#endif
