/* SPDX-License-Identifier: MIT
 *
 * The hash of stored chunks against values of another implementation (hash-wasm's), one for each length class of XXH3;
 * and every flipped bit changes the hash.
 */
#include "check.h"
#include "base/hash.h"

#include <stdlib.h>

static const struct {
    size_t size;
    const char *hash;
} cases[] = {
    {0, "99aa06d3014798d86001c324468d497f"},
    {1, "a6cd5e9392000f6ac44bdff4074eecdb"},
    {3, "381b806921e6d9abf4f33fa3678ce51e"},
    {16, "e8eca5a325c8ba3f089f18f7116edfa5"},
    {17, "59344d0453359049efa082dbd1b5072b"},
    {128, "22bf3371acccf158db0b44936abce351"},
    {129, "41617b5b2d01940d7b0fe814730f5835"},
    {240, "790028186011dfbdc75f5f217aeab9c9"},
    {241, "644d48e8ee0bf9bb2d6873b128d3f478"},
    {1024, "3a2665b9798f8a969769bcccf904a209"},
    {1025, "3361b8e96de22eb55b8e18b97aeddddf"},
    {4194304, "1bed3f40718dce01343d71ea11a0ccfc"},
};

static void hex(const uint8_t *hash, char *text)
{
    for (int i = 0; i < HASH_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", hash[i]);
}

static void known_values(void)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint8_t *bytes = malloc(cases[k].size + 1), hash[HASH_BYTES];
        char text[2 * HASH_BYTES + 1];
        CHECK(bytes != NULL);
        for (size_t i = 0; i < cases[k].size; i++) bytes[i] = (uint8_t)(i * i + 7 * i + (i >> 8));
        hash128(bytes, cases[k].size, hash);
        hex(hash, text);
        free(bytes);
        CHECK(strcmp(text, cases[k].hash) == 0);
    }
}

static void flipped_bits(void)
{
    uint8_t bytes[1000] = {0}, clean[HASH_BYTES], hash[HASH_BYTES];
    hash128(bytes, sizeof bytes, clean);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        hash128(bytes, sizeof bytes, hash);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK(memcmp(hash, clean, HASH_BYTES) != 0);
    }
}

static const struct check tests[] = {
    {"known_values", known_values},
    {"flipped_bits", flipped_bits},
};

int main(int argc, char **argv)
{
    return check_run(argc, argv, tests, sizeof tests / sizeof *tests);
}
