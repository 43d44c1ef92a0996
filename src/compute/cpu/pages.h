/* SPDX-License-Identifier: MIT
 *
 * The places of keys and values within a page.
 */
#ifndef QUERN_PAGES_H
#define QUERN_PAGES_H

#include "compute/shapes.h"

/* Keys and values of a page are stored in the order of reading, so that memory sees one stream, 16 lanes at a time:
 * keys [KV_PAGE / 16][dim, ordered by column mod 8][16 positions], values [dim / 16][KV_PAGE][16 columns]. If dim is no
 * multiple of 16, the last columns of values make narrower rows. */
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
