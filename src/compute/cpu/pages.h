/* SPDX-License-Identifier: MIT
 *
 * Where the keys and values of a page lie.
 */
#ifndef QUERN_PAGES_H
#define QUERN_PAGES_H

#include "compute/shapes.h"

/* Keys and values of a page lie in the order in which they are read, so that memory sees one stream: 16 lanes at a
 * time, positions of keys [KV_PAGE / 16][dim, by remainders of 8][16], columns of values [dim / 16][KV_PAGE][16]; what
 * is left of the columns makes narrower rows. */
enum { KV_LANES = 16 };

static inline size_t key_place(int position, int column, int dim)
{
    int r = column % 8, rank = r * (dim / 8) + min_int(r, dim % 8) + column / 8;
    return (size_t)((position / KV_LANES * dim + rank) * KV_LANES + position % KV_LANES);
}

static inline size_t value_place(int position, int column, int dim)
{
    int lane = column % KV_LANES, first = column - lane;
    return (size_t)(first * KV_PAGE + position * min_int(KV_LANES, dim - first) + lane);
}

#endif
