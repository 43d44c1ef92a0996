/* SPDX-License-Identifier: MIT
 *
 * The check of a chunk of a stored file: XXH3's 128 bits, by the xxHash library, whose one header is compiled in. It
 * finds damage, not malice; it is fast enough that every byte from the store is checked before use.
 */
#ifndef QUERN_HASH_H
#define QUERN_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_BYTES 16

/* out [HASH_BYTES]: the hash in its canonical, big-endian order. */
void hash128(const void *bytes, size_t n, uint8_t *out);

#endif
