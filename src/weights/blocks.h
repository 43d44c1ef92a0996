/* SPDX-License-Identifier: MIT
 *
 * What all quantisers need: halves for scales, and blocks whose values no scale suits.
 */
#ifndef QUERN_BLOCKS_H
#define QUERN_BLOCKS_H

#include "base/num.h"

#include <string.h>

static inline void store_half(uint8_t *out, float v)
{
    uint16_t half = f16_from_f32(v);
    memcpy(out, &half, sizeof half);
}

/* The nearest f16 number that is not closer to 0 than v. With a smaller scale the largest code could not reach the
 * largest value; below 2^-14, where f16 is coarse, up to a third of it would be cut off. */
static inline float half_beyond(float v)
{
    uint16_t half = f16_from_f32(v);
    float near = f32_from_f16(half);
    return f32_from_f16((uint16_t)(half + (v < 0 ? near > v : near < v)));
}

#define HALF_MOST 65504.0f

/* Writes a block that decodes to NaN, because the type cannot express its values. Returns false. */
static inline bool broken(uint8_t *block, size_t bytes, size_t half)
{
    static const uint16_t nan = 0x7E00;
    memset(block, 0, bytes);
    memcpy(block + half, &nan, sizeof nan);
    return false;
}

/* The value farthest from 0, with its sign; NaN if any value is NaN. */
static inline float largest(const float *x, int n)
{
    float most = 0;
    for (int i = 0; i < n; i++) {
        float a = x[i] < 0 ? -x[i] : x[i], b = most < 0 ? -most : most;
        if (!(a <= b)) most = x[i];
        if (x[i] != x[i]) return x[i];
    }
    return most;
}

/* 1 / d; 0 if that is not a finite number. Values are then so small that all codes are 0. */
static inline float inverse(float d)
{
    float size = d < 0 ? -d : d;
    return size >= 0x1p-126f ? 1.0f / d : 0.0f;
}

#endif
