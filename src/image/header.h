/* SPDX-License-Identifier: MIT
 *
 * What the readers of headers share: loads that are checked, and the orientation that EXIF gives. Bytes are handed on
 * by their address: a copy for each of a hundred loads would be a quarter of the code.
 */
#ifndef QUERN_IMAGE_HEADER_H
#define QUERN_IMAGE_HEADER_H

#include "image/image.h"

/* Whether n bytes from `at` on are there. */
bool header_has(const struct bytes *b, uint64_t at, uint64_t n);

/* Numbers of 1 to 4 bytes, most or least significant first; what lies outside is 0, so a reader asks for header_has()
 * where that matters. */
uint32_t header_big(const struct bytes *b, uint64_t at, int n);
uint32_t header_little(const struct bytes *b, uint64_t at, int n);

/* Whether these characters stand at `at`. */
bool header_is(const struct bytes *b, uint64_t at, const char *text, size_t n);

/* The n bytes from `at` on, which are there. */
static inline struct bytes header_part(const struct bytes *b, uint64_t at, uint64_t n)
{
    return (struct bytes){b->data + at, (size_t)n};
}

/* The orientation in a TIFF structure of n bytes, which are there; 1 where it has none, or none that makes sense: what
 * is wrong with it is no reason to refuse an image. */
int header_orientation(const struct bytes *b, uint64_t at, uint64_t n);

/* One for each kind. `out` has its kind, and 1 as its orientation. */
int header_png(const struct bytes *b, struct image_header *out);
int header_jpeg(const struct bytes *b, struct image_header *out);
int header_gif(const struct bytes *b, struct image_header *out);
int header_bmp(const struct bytes *b, struct image_header *out);
int header_webp(const struct bytes *b, struct image_header *out);
int header_avif(const struct bytes *b, struct image_header *out);

#endif
