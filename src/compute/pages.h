/* SPDX-License-Identifier: MIT
 *
 * The bytes of a page, which are the same in every backend and in saved conversations: for each layer and head of keys
 * and values the parts below, each of KV_PAGE positions.
 */
#ifndef QUERN_PAGES_H
#define QUERN_PAGES_H

#include "compute/shapes.h"

/* Notes: for q8 the scales of the codes, float [head_dim / 32]. For f16 one byte for each position: the number of its
 * subnormal halves, or ODD if one is infinite or NaN. */
enum page_part { KEY_NOTES, VALUE_NOTES, KEYS, VALUES, PARTS }; /* notes are read first, which also fetches what follows */
enum { ODD = 255 };

/* Keys and values are stored in the order of reading, so that memory sees one stream, 16 lanes at a time: keys
 * [KV_PAGE / 16][dim, ordered by column mod 8][16 positions], values [dim / 16][KV_PAGE][16 columns]. If dim is no
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

/* Bytes of a page: of one layer, and of all. 64 bits, since a backend finds out with them whether the pages fit. */
uint64_t page_layer_bytes(const struct kv_shape *s);
uint64_t page_bytes(const struct kv_shape *s);

/* The parts of one head. */
struct page_view {
    uint8_t *part[PARTS];
};

/* Of a page that lies at `bytes`. */
struct page_view page_view(const struct kv_shape *s, uint8_t *bytes, int layer, int head);

/* Zeros in all parts for the positions after the first n: they may be anybody's. */
void page_clear(const struct kv_shape *s, uint8_t *bytes, int n);

#endif
