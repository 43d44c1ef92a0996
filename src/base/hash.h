/* SPDX-License-Identifier: MIT
 *
 * Checksum of a chunk of a stored file: XXH3 with 128 bits, from the header-only xxHash library. It detects damage, not
 * malice, and is fast enough to check every byte from the store before use.
 */
#ifndef QUERN_HASH_H
#define QUERN_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_BYTES 16

/* Writes the hash to out [HASH_BYTES] in its canonical, big-endian order. */
void hash128(const void *bytes, size_t n, uint8_t *out);

#endif
