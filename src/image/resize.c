/* SPDX-License-Identifier: MIT
 *
 * Resizing as in the training of this model family: Pillow's bicubic on bytes. Each output is a sum over its inputs,
 * weighted by the kernel stretched to the scale; weights are integers of 22 bits, and sums are rounded to bytes after
 * each of the two passes. So the order of additions does not matter, and compilers may choose it.
 */
#include "image/image.h"
#include "image/taps.h"

#include <string.h>

enum { COLUMNS = 192 /* bytes of a row whose sums are computed together */ };

static uint8_t byte_of(int32_t sum)
{
    int32_t v = sum >> WEIGHT_BITS;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* rgb [rows, width, 3] -> out [rows, to, 3] */
static void resize_rows(const uint8_t *rgb, int rows, int width, const struct taps *t, uint8_t *out, int to)
{
    for (int y = 0; y < rows; y++) {
        const uint8_t *row = rgb + (size_t)y * (size_t)width * 3;
        for (int x = 0; x < to; x++, out += 3) {
            const uint8_t *p = row + 3 * (size_t)t->spans[x].first;
            const int32_t *w = t->weights + (size_t)x * (size_t)t->most;
            int32_t r = 1 << (WEIGHT_BITS - 1), g = r, b = r;
            for (int i = 0; i < t->spans[x].n; i++, p += 3) {
                r += p[0] * w[i];
                g += p[1] * w[i];
                b += p[2] * w[i];
            }
            out[0] = byte_of(r), out[1] = byte_of(g), out[2] = byte_of(b);
        }
    }
}

/* Makes one row of `bytes` from n rows, one below the other. */
static void blend(const uint8_t *rows, size_t bytes, const int32_t *weights, int n, uint8_t *out)
{
    for (size_t from = 0; from < bytes; from += COLUMNS) {
        int32_t sums[COLUMNS];
        size_t part = bytes - from < COLUMNS ? bytes - from : COLUMNS;
        for (size_t j = 0; j < part; j++) sums[j] = 1 << (WEIGHT_BITS - 1);
        for (int i = 0; i < n; i++) {
            const uint8_t *row = rows + (size_t)i * bytes + from;
            int32_t w = weights[i];
            for (size_t j = 0; j < part; j++) sums[j] += row[j] * w;
        }
        for (size_t j = 0; j < part; j++) out[from + j] = byte_of(sums[j]);
    }
}

uint64_t image_resize_cost(int width, int height, int to_width, int to_height)
{
    uint64_t between = width == to_width || height == to_height ? 0 : (uint64_t)to_width * (uint64_t)height * 3;
    return taps_cost(width, to_width) + taps_cost(height, to_height) + between;
}

void image_resize(const uint8_t *rgb, int width, int height, uint8_t *out, int to_width, int to_height, void *scratch)
{
    uint8_t *free = scratch;
    size_t row = (size_t)to_width * 3;
    if (width == to_width && height == to_height) {
        memcpy(out, rgb, row * (size_t)height);
        return;
    }
    struct taps across = {0}, down = {0};
    if (width != to_width) across = taps_make(width, to_width, &free);
    if (height != to_height) down = taps_make(height, to_height, &free);
    if (across.most) {
        uint8_t *to = down.most ? free : out;
        resize_rows(rgb, height, width, &across, to, to_width);
        rgb = to;
    }
    for (int y = 0; down.most && y < to_height; y++) {
        const struct span *s = down.spans + y;
        blend(rgb + (size_t)s->first * row, row, down.weights + (size_t)y * (size_t)down.most, s->n,
              out + (size_t)y * row);
    }
}
