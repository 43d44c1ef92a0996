/* SPDX-License-Identifier: MIT
 *
 * Checked arithmetic and the cursor. The builtins are GCC's and clang's overflow checks.
 */
#include "base/reader.h"

bool add64(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return false;
    *out = sum;
    return true;
}

bool mul64(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product)) return false;
    *out = product;
    return true;
}

bool pad64(uint64_t a, uint64_t to, uint64_t *out)
{
    uint64_t sum;
    if (!add64(a, to - 1, &sum)) return false;
    *out = sum & ~(to - 1);
    return true;
}

bool to_size(uint64_t a, size_t *out)
{
    if (a > (uint64_t)ADDR_MAX) return false;
    *out = (size_t)a;
    return true;
}

bool take_bytes(struct cursor *c, uint64_t n, struct bytes *out)
{
    if (n > c->size - c->pos) return false;
    *out = (struct bytes){c->data + c->pos, (size_t)n};
    c->pos += (size_t)n;
    return true;
}

bool take_u32(struct cursor *c, uint32_t *out)
{
    struct bytes b;
    if (!take_bytes(c, 4, &b)) return false;
    *out = load_u32(b.data);
    return true;
}

bool take_u64(struct cursor *c, uint64_t *out)
{
    struct bytes b;
    if (!take_bytes(c, 8, &b)) return false;
    *out = load_u64(b.data);
    return true;
}
