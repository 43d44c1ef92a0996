/* SPDX-License-Identifier: MIT
 *
 * See hash.h. xxhash.h comes from the system; the Makefile copies it to build/include for the WebAssembly build.
 */
#include "base/hash.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

void hash128(const void *bytes, size_t n, uint8_t *out)
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, n));
    memcpy(out, canonical.digest, HASH_BYTES);
}
