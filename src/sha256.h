/* SPDX-License-Identifier: MIT
 *
 * SHA-256 (FIPS 180-4), which servers and callers know files by; browsers only hash what is there as a whole. Who calls this
 * (js/sha256.js) keeps the state and pads the end.
 */
#ifndef QUERN_SHA256_H
#define QUERN_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_BLOCK 64 /* bytes */

/* state [8], bytes [n * SHA256_BLOCK] */
void sha256_blocks(uint32_t *state, const uint8_t *bytes, size_t n);

#endif
