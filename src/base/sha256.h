/* SPDX-License-Identifier: MIT
 *
 * SHA-256 (FIPS 180-4), for names that must be safe against collisions made on purpose. To detect damage use hash.h,
 * which is far faster.
 */
#ifndef QUERN_SHA256_H
#define QUERN_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_BLOCK = 64 };

struct sha256 {
    uint32_t state[8], constants[SHA256_BLOCK];
    uint64_t size; /* bytes added so far */
    uint8_t block[SHA256_BLOCK];
};

void sha256_begin(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *bytes, size_t n);
void sha256_end(struct sha256 *h, uint8_t out[SHA256_BYTES]);

#endif
