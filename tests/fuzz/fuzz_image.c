/* SPDX-License-Identifier: MIT
 *
 * The input is an image file. Its header is within the limits or refused, and so is the header of any part of it. The
 * input's bytes are also resized as pixels, in exactly the memory that is requested.
 *
 *   build/fuzz/fuzz/fuzz_image -max_len=4096 -timeout=5 NEW_CORPUS tests/fuzz/corpus/image
 */
#include "image/image.h"
#include "load.h"

enum { SIDE = 48 };

static int read_header(const uint8_t *data, size_t size, struct image_header *h)
{
    int status = image_header(data, size, h);
    require(status == OK || status == ERR_DECODE || status == ERR_SIZE);
    if (status) return status;
    require(h->width >= 1 && h->width <= 16384 && h->height >= 1 && h->height <= 16384 &&
            (uint64_t)h->width * h->height <= 100000000);
    require(h->orientation >= 1 && h->orientation <= 8);
    return status;
}

static void check_header(const uint8_t *data, size_t size, uint64_t *random)
{
    struct image_header h = {0}, part = {0};
    int status = read_header(data, size, &h);
    size_t n = (size_t)below(random, size + 1);
    uint8_t *own = malloc(n + (n == 0));
    require(own != NULL);
    if (n) memcpy(own, data, n);
    read_header(own, n, &part);
    free(own);
    struct image_grid g;
    const struct image_limits limits = {.patch = 16, .low = 65536, .high = 262144};
    if (status || image_size((int)h.height, (int)h.width, &limits, &g)) return;
    require(g.height == g.rows * 32 && g.width == g.cols * 32 && g.height > 0 && g.width > 0 &&
            g.height * g.width <= 2 * 262144);
}

/* The pixels are the input, repeated. */
static void check_resizing(const uint8_t *data, size_t size, uint64_t *random)
{
    int sides[4];
    for (int i = 0; i < 4; i++) sides[i] = 1 + (int)below(random, SIDE);
    size_t n = (size_t)(sides[0] * sides[1] * 3), to = (size_t)(sides[2] * sides[3] * 3);
    uint64_t cost = image_resize_cost(sides[0], sides[1], sides[2], sides[3]);
    uint8_t *rgb = malloc(n), *out = malloc(to);
    void *scratch = malloc((size_t)cost + (cost == 0));
    require(rgb && out && scratch);
    for (size_t i = 0; i < n; i++) rgb[i] = size ? data[i % size] : 0;
    image_resize(rgb, sides[0], sides[1], out, sides[2], sides[3], scratch);
    free(rgb);
    free(out);
    free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t random = seed_of(data, size);
    check_header(data, size, &random);
    check_resizing(data, size, &random);
    return 0;
}
