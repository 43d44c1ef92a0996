/* SPDX-License-Identifier: MIT
 *
 * Finds out by trying what this processor's byte dot instruction gives exactly.
 */
#include "compute/cpu/simd.h"

/* volatile, so that compilers cannot compute the answer themselves */
static bool dot_is(volatile const int8_t *a, volatile const int8_t *b, int32_t expected)
{
    int8_t x[16], y[16];
    int32_t lanes[4];
    for (int i = 0; i < 16; i++) x[i] = a[i % 4], y[i] = b[i % 4];
    vec_store(lanes, dot4_probe(i32_splat(0), vec_load(x), vec_load(y)));
    return lanes[0] == expected && lanes[3] == expected;
}

enum dots dots_probe(void)
{
    /* Products that differ if the second factor is signed, and sums of two that overflow 16 bits if it is unsigned. */
    static volatile const int8_t a[2][4] = {{127, 127, 127, 127}, {-127, -127, 1, 127}},
                                 b[2][4] = {{-1, -1, -1, -1}, {-128, -128, 127, -2}};
    if (!VEC_BYTE_DOTS) return DOTS_I16;
    if (dot_is(a[0], b[0], 4 * 127 * 255) && dot_is(a[1], b[1], -2 * 127 * 128 + 127 + 127 * 254)) return DOTS_U8;
    if (dot_is(a[0], b[0], -4 * 127) && dot_is(a[1], b[1], 2 * 127 * 128 + 127 - 2 * 127)) return DOTS_S8;
    return DOTS_U7;
}

enum dots dots_choose(void) { return VEC_MODEL ? DOTS_I16 : dots_probe(); }
