/* SPDX-License-Identifier: MIT
 *
 * A model of the byte dots for builds without such an instruction: the results of each kind of processor, so that the
 * kernels for all of them can be tested on any. If b is out of an operation's range, the result is wrong on purpose.
 * Included by vec.h only.
 */
#ifndef QUERN_VEC_MODEL_H
#define QUERN_VEC_MODEL_H

VEC dot4_s8(vec acc, vec a, vec b)
{
    vec low = dot2_i16(i16_from_i8_low(a), i16_from_i8_low(b)),
        high = dot2_i16(i16_from_i8_high(a), i16_from_i8_high(b));
    return i32_add(acc, i32_add_pairs(low, high));
}
VEC dot4_u8(vec acc, vec a, vec b)
{
    vec low = dot2_i16(i16_from_i8_low(a), i16_from_u8_low(b)),
        high = dot2_i16(i16_from_i8_high(a), i16_from_u8_high(b));
    return i32_add(acc, i32_add_pairs(low, high));
}
VEC dot2_u7(vec a, vec b)
{
    vec low = dot2_i16(i16_from_i8_low(a), i16_from_i8_low(b)),
        high = dot2_i16(i16_from_i8_high(a), i16_from_i8_high(b));
    return vec_xor(i16_narrow(low, high), vec_and(b, i32_splat((int32_t)0x80808080u)));
}
VEC dot4_probe(vec acc, vec a, vec b) { return dot4_u8(acc, a, b); }

#endif
