/* SPDX-License-Identifier: MIT
 *
 * What the header readers share: checked loads, and EXIF's orientation. Bytes are passed by address: a copy for each of
 * a hundred loads would be a quarter of the code.
 */
#ifndef QUERN_IMAGE_HEADER_H
#define QUERN_IMAGE_HEADER_H

#include "image/image.h"

/* Whether n bytes from `at` on exist. */
bool header_has(const struct bytes *b, uint64_t at, uint64_t n);

/* Numbers of 1 to 4 bytes, most or least significant byte first. Bytes past the end read as 0, so a reader calls
 * header_has() where that matters. */
uint32_t header_big(const struct bytes *b, uint64_t at, int n);
uint32_t header_little(const struct bytes *b, uint64_t at, int n);

/* Whether the bytes at `at` are these characters. */
bool header_is(const struct bytes *b, uint64_t at, const char *text, size_t n);

/* The n bytes from `at` on, which must exist. */
static inline struct bytes header_part(const struct bytes *b, uint64_t at, uint64_t n)
{
    return (struct bytes){b->data + at, (size_t)n};
}

/* The orientation in a TIFF structure of n bytes, which must exist; 1 if it has no valid one: a faulty orientation is
 * no reason to refuse an image. */
int header_orientation(const struct bytes *b, uint64_t at, uint64_t n);

/* One reader for each kind. `out` comes with its kind, and with orientation 1. */
int header_png(const struct bytes *b, struct image_header *out);
int header_jpeg(const struct bytes *b, struct image_header *out);
int header_gif(const struct bytes *b, struct image_header *out);
int header_bmp(const struct bytes *b, struct image_header *out);
int header_webp(const struct bytes *b, struct image_header *out);
int header_avif(const struct bytes *b, struct image_header *out);

#endif
