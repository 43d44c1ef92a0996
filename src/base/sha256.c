/* SPDX-License-Identifier: MIT
 *
 * SHA-256 as in the standard, one block of 64 bytes at a time. The constants are computed, because a table of them
 * would be incompressible data in the download of the engine.
 */
#include "base/sha256.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* --- constants: the first 32 fraction bits of roots of the first 64 primes ---------------------------------------- */

static uint32_t fraction(double x) { return (uint32_t)((x - floor(x)) * 0x1p32); }

static double cube_root(double x)
{
    double root = x;
    for (int i = 0; i < 32; i++) root -= (root * root * root - x) / (3 * root * root);
    return root;
}

static bool is_prime(int n)
{
    for (int i = 2; i * i <= n; i++)
        if (n % i == 0) return false;
    return true;
}

void sha256_begin(struct sha256 *h)
{
    h->size = 0;
    for (int n = 2, i = 0; i < SHA256_BLOCK; n++) {
        if (!is_prime(n)) continue;
        if (i < 8) h->state[i] = fraction(sqrt(n));
        h->constants[i++] = fraction(cube_root(n));
    }
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

static uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }
static uint32_t big_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
static void put_big_u32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void take_block(struct sha256 *h, const uint8_t block[SHA256_BLOCK])
{
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++) w[i] = big_u32(block + 4 * i);
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] =
            w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] + (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(s, h->state, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t a = s[0], e = s[4];
        uint32_t choice = (e & s[5]) ^ (~e & s[6]), majority = (a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]);
        uint32_t t1 = s[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choice + h->constants[i] + w[i];
        uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority;
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++) h->state[i] += s[i];
}

void sha256_add(struct sha256 *h, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    size_t filled = (size_t)(h->size % SHA256_BLOCK);
    h->size += n;
    while (filled + n >= SHA256_BLOCK) {
        size_t part = SHA256_BLOCK - filled;
        if (filled) memcpy(h->block + filled, p, part);
        take_block(h, filled ? h->block : p);
        p += part, n -= part, filled = 0;
    }
    if (n) memcpy(h->block + filled, p, n);
}

void sha256_end(struct sha256 *h, uint8_t out[SHA256_BYTES])
{
    static const uint8_t padding[SHA256_BLOCK] = {0x80};
    uint64_t bits = h->size * 8;
    uint8_t length[8];
    put_big_u32(length, (uint32_t)(bits >> 32));
    put_big_u32(length + 4, (uint32_t)bits);
    sha256_add(h, padding, 1 + (size_t)((SHA256_BLOCK + 55 - h->size % SHA256_BLOCK) % SHA256_BLOCK));
    sha256_add(h, length, sizeof length);
    for (int i = 0; i < 8; i++) put_big_u32(out + 4 * i, h->state[i]);
}
