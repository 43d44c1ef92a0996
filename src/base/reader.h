/* SPDX-License-Identifier: MIT
 *
 * Checked arithmetic and a cursor over bytes of an untrusted file.
 *
 * All sizes from a file are uint64_t until to_size() narrows them, once, against ADDR_MAX. ADDR_MAX is a macro so that
 * a native build can be tested with the 4 GiB address space of wasm32.
 */
#ifndef QUERN_READER_H
#define QUERN_READER_H

#include "base/base.h"

#ifndef ADDR_MAX
#define ADDR_MAX SIZE_MAX
#endif

/* Return false when the result does not fit in 64 bits; *out is then unchanged. */
bool add64(uint64_t a, uint64_t b, uint64_t *out);
bool mul64(uint64_t a, uint64_t b, uint64_t *out);
/* Rounds up to a multiple of `to`, a power of two. */
bool pad64(uint64_t a, uint64_t to, uint64_t *out);
/* The only conversion from a file's 64-bit size to an address of this machine. Returns false when the size is too
 * large. */
bool to_size(uint64_t a, size_t *out);

struct cursor {
    const uint8_t *data;
    size_t size, pos; /* always pos <= size */
};

/* Each advances the cursor and returns true, or leaves the cursor where it is and returns false. */
bool take_u32(struct cursor *c, uint32_t *out);
bool take_u64(struct cursor *c, uint64_t *out);
bool take_bytes(struct cursor *c, uint64_t n, struct bytes *out); /* a view into data */

#endif
