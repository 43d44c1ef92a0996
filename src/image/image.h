/* SPDX-License-Identifier: MIT
 *
 * Images and videos before the vision encoder: file headers, sizes, resizing, patches.
 *
 * Pixels are bytes, sRGB, interleaved, without gaps between rows. All arithmetic is in integers or rounded once, so
 * that every build gives the same bits. Files are decoded elsewhere (js/media); only their headers are read here,
 * before a decoder sees them. Sides are at least 1 unless stated otherwise.
 */
#ifndef QUERN_IMAGE_H
#define QUERN_IMAGE_H

#include "base/base.h"

/* --- files -------------------------------------------------------------------------------------------- */

enum image_kind { IMAGE_PNG, IMAGE_JPEG, IMAGE_WEBP, IMAGE_GIF, IMAGE_BMP, IMAGE_AVIF };

struct image_header {
    enum image_kind kind;
    uint32_t width, height; /* as displayed: `orientation` applied */
    /* EXIF's, 1 .. 8: how the decoded pixels still have to be turned; 1 for AVIF, whose decoders turn them */
    int orientation;
};

/* Reads the header before the pixels (in WebP the orientation comes after them). OK; ERR_DECODE: no known kind, broken,
 * or cut too early (the first 64 KB usually suffice); ERR_SIZE: more than 16,384 a side or 100 million pixels. */
int image_header(const uint8_t *bytes, size_t n, struct image_header *out);

/* --- sizes -------------------------------------------------------------------------------------------- */

enum { IMAGE_FRAMES = 2, IMAGE_MERGE = 2 }; /* frames of a patch; patches on each side of a visual token */

struct image_limits {
    int patch;        /* side of a patch in pixels */
    double low, high; /* pixels of an image, or of all frames of a video together: at least, at most */
};

struct image_grid {
    int height, width; /* pixels after resizing */
    int frames;        /* 1 for an image. For a video even: the last frame is repeated if the number is odd */
    int rows, cols;    /* visual tokens of an image or of a pair of frames */
};

/* The size that an image is resized to. OK, ERR_SIZE (one side is more than 200 times the other). */
int image_size(int height, int width, const struct image_limits *limits, struct image_grid *out);

/* The size that each of n >= 1 frames is resized to. */
int image_video_size(int n, int height, int width, const struct image_limits *limits, struct image_grid *out);

/* Chooses frames of a video of `total` >= 1 frames at `fps` a second (0: unknown, taken as 24): `per_second` frames a
 * second, but at least `least` and at most `most` >= 1 (and `total`), evenly from the first to the last. Writes their
 * numbers to indices [most], unless NULL, and returns their count. */
int image_sample(int total, double fps, double per_second, int least, int most, int32_t *indices);

/* The text before a pair of frames, "<0.2 seconds>": one digit, rounded half to even. Returns its length, or 0 if
 * seconds are not in 0 .. 1e9. */
int image_label(double seconds, char out[32]);

/* --- pixels ------------------------------------------------------------------------------------------- */

/* Blends rgba [n, 4] over white into rgb [n, 3]; both may be the same memory. */
void image_opaque(const uint8_t *rgba, uint64_t n, uint8_t *rgb);

/* Bicubic, with weights of 22 bits and bytes between the passes, rows first (as Pillow before 13):
 * rgb [height, width, 3] -> out [to_height, to_width, 3]. Sides up to 2^20. */
/* bytes of scratch, which must be aligned to 4 */
uint64_t image_resize_cost(int width, int height, int to_width, int to_height);
void image_resize(const uint8_t *rgb, int width, int height, uint8_t *out, int to_width, int to_height, void *scratch);

/* The value of each byte for the encoder: out[c][v] = (v - 255 mean[c]) / (255 std[c]), its factors rounded to floats.
 */
void image_table(const float mean[3], const float std[3], float out[3][256]);

/* Patches first .. first + n - 1 of a pair of frames [.., width, 3] (for an image: the same frame twice), ordered in
 * blocks of 2 x 2 neighbours, row after row: out [n, 3, 2, patch, patch]. Sides are multiples of 2 * patch. */
void image_patches(const uint8_t *const frames[IMAGE_FRAMES], int width, int patch, const float table[3][256],
                   int first, int n, float *out);

/* Identifies an image (of one frame) or a pair of frames after resizing: the first 8 bytes of a SHA-256. */
uint64_t image_id(const struct image_grid *grid, const uint8_t *const frames[IMAGE_FRAMES]);

#endif
