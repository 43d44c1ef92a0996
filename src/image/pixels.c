/* SPDX-License-Identifier: MIT
 *
 * Pixels in the encoder's form: over white, as floats in patches; and the identity of an image, which stands for its
 * rows in the KV cache.
 */
#include "base/sha256.h"
#include "image/image.h"

/* v / 255, rounded, for v <= 65,025. */
static uint32_t div255(uint32_t v) { return (v + 128 + ((v + 128) >> 8)) >> 8; }

void image_opaque(const uint8_t *rgba, uint64_t n, uint8_t *rgb)
{
    for (uint64_t i = 0; i < n; i++, rgba += 4, rgb += 3) {
        uint32_t a = rgba[3];
        for (int c = 0; c < 3; c++) rgb[c] = (uint8_t)div255(rgba[c] * a + 255 * (255 - a));
    }
}

void image_table(const float mean[3], const float std[3], float out[3][256])
{
    for (int c = 0; c < 3; c++) {
        float offset = (float)((double)mean[c] * 255.0), scale = (float)((double)std[c] * 255.0);
        for (int v = 0; v < 256; v++) out[c][v] = ((float)v - offset) / scale;
    }
}

/* Copies one channel of one frame's patch, from its first pixel on: out [patch, patch] */
static void take_plane(const uint8_t *pixel, size_t stride, int patch, const float table[256], float *out)
{
    for (int y = 0; y < patch; y++, pixel += stride)
        for (int x = 0; x < patch; x++) *out++ = table[pixel[3 * x]];
}

void image_patches(const uint8_t *const frames[IMAGE_FRAMES], int width, int patch, const float table[3][256],
                   int first, int n, float *out)
{
    int across = width / (patch * IMAGE_MERGE);
    size_t stride = (size_t)width * 3, plane = (size_t)patch * (size_t)patch;
    for (int i = first; i < first + n; i++) {
        int token = i / (IMAGE_MERGE * IMAGE_MERGE), part = i % (IMAGE_MERGE * IMAGE_MERGE);
        int row = token / across * IMAGE_MERGE + part / IMAGE_MERGE,
            col = token % across * IMAGE_MERGE + part % IMAGE_MERGE;
        size_t at = (size_t)(row * patch) * stride + (size_t)(col * patch) * 3;
        for (int c = 0; c < 3; c++)
            for (int t = 0; t < IMAGE_FRAMES; t++, out += plane)
                take_plane(frames[t] + at + c, stride, patch, table[c], out);
    }
}

uint64_t image_id(const struct image_grid *grid, const uint8_t *const frames[IMAGE_FRAMES])
{
    static const char name[] = "quern-vision-1";
    const uint32_t shape[3] = {1, (uint32_t)(grid->rows * IMAGE_MERGE), (uint32_t)(grid->cols * IMAGE_MERGE)};
    uint8_t hash[SHA256_BYTES];
    struct sha256 h;
    sha256_begin(&h);
    sha256_add(&h, name, sizeof name - 1);
    sha256_add(&h, shape, sizeof shape);
    for (int i = 0; i < (grid->frames == 1 ? 1 : IMAGE_FRAMES); i++)
        sha256_add(&h, frames[i], (size_t)grid->height * (size_t)grid->width * 3);
    sha256_end(&h, hash);
    return load_u64(hash);
}
