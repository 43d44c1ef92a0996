/* SPDX-License-Identifier: MIT
 *
 * Recognises image files and reads the headers that are a list of chunks or a fixed record (PNG, JPEG, GIF, BMP), and
 * EXIF's orientation; checks the limits.
 */
#include "image/header.h"

#include <string.h>

/* Larger images are not decoded. */
#define SIDE_MOST 16384u
#define PIXELS_MOST 100000000u

#define TEXT(text) text, sizeof text - 1

struct kind {
    const char *name;
    uint64_t at; /* where the signature begins */
    size_t n;
    enum image_kind kind;
    int (*read)(const struct bytes *b, struct image_header *out);
};

static const struct kind kinds[] = {
    {"\x89PNG\r\n\x1a\n", 0, 8, IMAGE_PNG, header_png}, {"\xff\xd8\xff", 0, 3, IMAGE_JPEG, header_jpeg},
    {"GIF87a", 0, 6, IMAGE_GIF, header_gif},            {"GIF89a", 0, 6, IMAGE_GIF, header_gif},
    {"BM", 0, 2, IMAGE_BMP, header_bmp},                {"WEBP", 8, 4, IMAGE_WEBP, header_webp},
    {"ftyp", 4, 4, IMAGE_AVIF, header_avif},
};

int image_header(const uint8_t *bytes, size_t n, struct image_header *out)
{
    const struct bytes b = {bytes, n};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!header_is(&b, kinds[i].at, kinds[i].name, kinds[i].n)) continue;
        struct image_header h = {.kind = kinds[i].kind, .orientation = 1};
        int status = kinds[i].read(&b, &h);
        if (!status && (h.width == 0 || h.height == 0)) status = ERR_DECODE;
        if (!status && (h.width > SIDE_MOST || h.height > SIDE_MOST || h.width * h.height > PIXELS_MOST))
            status = ERR_SIZE;
        if (h.orientation > 4) { /* the image is turned by 90 degrees */
            uint32_t width = h.width;
            h.width = h.height, h.height = width;
        }
        *out = h;
        return status;
    }
    return ERR_DECODE;
}

/* --- checked loads --- */

bool header_has(const struct bytes *b, uint64_t at, uint64_t n) { return at <= b->size && n <= b->size - at; }

uint32_t header_big(const struct bytes *b, uint64_t at, int n)
{
    uint32_t v = 0;
    for (int i = 0; header_has(b, at, (uint64_t)n) && i < n; i++) v = v << 8 | b->data[at + (uint64_t)i];
    return v;
}

uint32_t header_little(const struct bytes *b, uint64_t at, int n)
{
    uint32_t v = 0;
    for (int i = n; header_has(b, at, (uint64_t)n) && i-- > 0;) v = v << 8 | b->data[at + (uint64_t)i];
    return v;
}

bool header_is(const struct bytes *b, uint64_t at, const char *text, size_t n)
{
    return header_has(b, at, n) && memcmp(b->data + at, text, n) == 0;
}

/* --- EXIF --- */

enum { TIFF_ORIENTATION = 0x112, TIFF_SHORT = 3, TIFF_ENTRY = 12 };

int header_orientation(const struct bytes *b, uint64_t at, uint64_t n)
{
    const struct bytes part = header_part(b, at, n), *tiff = &part;
    bool big = header_is(tiff, 0, TEXT("MM\0*"));
    if (!big && !header_is(tiff, 0, TEXT("II*\0"))) return 1;
    uint32_t (*const load)(const struct bytes *, uint64_t, int) = big ? header_big : header_little;
    at = load(tiff, 4, 4);
    uint32_t entries = load(tiff, at, 2);
    for (at += 2; entries && header_has(tiff, at, TIFF_ENTRY); entries--, at += TIFF_ENTRY) {
        if (load(tiff, at, 2) != TIFF_ORIENTATION) continue;
        uint32_t value = load(tiff, at + 8, 2);
        return load(tiff, at + 2, 2) == TIFF_SHORT && load(tiff, at + 4, 4) == 1 && value >= 1 && value <= 8
                   ? (int)value
                   : 1;
    }
    return 1;
}

/* --- PNG --- */

enum {
    PNG_GREY,
    PNG_RGB = 2,
    PNG_PALETTE,
    PNG_GREY_ALPHA,
    PNG_RGB_ALPHA = 6,
    PNG_START = 8,
    PNG_SIZE_MOST = 0x7FFFFFFF
};

/* Bit depths that a colour type may have, as a set of bits; 0: no such type. */
static unsigned png_depths(uint32_t color)
{
    return color == PNG_GREY ? 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8 | 1 << 16
        : color == PNG_PALETTE ? 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8
        : color == PNG_RGB || color == PNG_GREY_ALPHA || color == PNG_RGB_ALPHA ? 1 << 8 | 1 << 16 : 0;
}

static int png_start(const struct bytes *b, struct image_header *out)
{
    if (header_big(b, PNG_START, 4) != 13 || !header_is(b, PNG_START + 4, TEXT("IHDR"))) return ERR_DECODE;
    out->width = header_big(b, PNG_START + 8, 4);
    out->height = header_big(b, PNG_START + 12, 4);
    uint32_t depth = header_big(b, PNG_START + 16, 1), color = header_big(b, PNG_START + 17, 1),
             rest = header_big(b, PNG_START + 18, 3);
    /* rest: compression, filter, interlace */
    if (depth > 16 || !(png_depths(color) >> depth & 1) || rest > 1) return ERR_DECODE;
    if (out->width > PNG_SIZE_MOST || out->height > PNG_SIZE_MOST) return ERR_DECODE;
    return OK;
}

int header_png(const struct bytes *b, struct image_header *out)
{
    int status = png_start(b, out);
    for (uint64_t at = PNG_START; !status && header_has(b, at, 8);) {
        uint32_t size = header_big(b, at, 4);
        if (header_is(b, at + 4, TEXT("IDAT"))) return OK;
        if (header_is(b, at + 4, TEXT("eXIf")) && header_has(b, at + 8, size))
            out->orientation = header_orientation(b, at + 8, size);
        at += 12 + (uint64_t)size;
    }
    return ERR_DECODE;
}

/* --- JPEG --- */

enum {
    JPEG_TEM = 0x01,
    JPEG_SOF = 0xC0,
    JPEG_DHT = 0xC4,
    JPEG_JPG = 0xC8,
    JPEG_DAC = 0xCC,
    JPEG_RST = 0xD0,
    JPEG_SOI = 0xD8,
    JPEG_EOI,
    JPEG_SOS,
    JPEG_APP1 = 0xE1
};

/* Reads the contents of a segment. *frames counts the frame headers; a file has one. */
static int jpeg_segment(uint32_t marker, const struct bytes *s, struct image_header *out, int *frames)
{
    if (marker == JPEG_APP1 && header_is(s, 0, TEXT("Exif\0\0")) && out->orientation == 1) {
        out->orientation = header_orientation(s, 6, s->size - 6);
    }
    if (marker < JPEG_SOF || marker >= JPEG_RST || marker == JPEG_DHT || marker == JPEG_JPG || marker == JPEG_DAC)
        return OK;
    if (s->size < 6 || (*frames)++) return ERR_DECODE;
    out->height = header_big(s, 1, 2);
    out->width = header_big(s, 3, 2);
    return OK;
}

int header_jpeg(const struct bytes *b, struct image_header *out)
{
    int frames = 0, status = OK;
    for (uint64_t at = 2; !status && header_has(b, at, 2);) {
        uint32_t marker = b->data[at + 1];
        if (b->data[at] != 0xFF) return ERR_DECODE;
        if (marker == 0xFF) { /* fill bytes */
            at++;
            continue;
        }
        if (marker == JPEG_SOS) return frames ? OK : ERR_DECODE;
        if (marker == JPEG_EOI || marker == 0) return ERR_DECODE;
        at += 2;
        if (marker == JPEG_TEM || (marker >= JPEG_RST && marker <= JPEG_SOI)) continue;
        uint32_t size = header_big(b, at, 2);
        if (size < 2 || !header_has(b, at, size)) return ERR_DECODE;
        const struct bytes segment = header_part(b, at + 2, size - 2);
        status = jpeg_segment(marker, &segment, out, &frames);
        at += size;
    }
    return ERR_DECODE;
}

/* --- GIF --- */

enum { GIF_EXTENSION = 0x21, GIF_IMAGE = 0x2C };

/* Bytes of a colour table with these flags. */
static uint64_t gif_table(uint32_t flags) { return flags & 0x80 ? 3u << ((flags & 7) + 1) : 0; }

/* Frames may be larger than the screen; takes the larger of both, as some decoders do. */
static int gif_frame(const struct bytes *b, uint64_t at, struct image_header *out)
{
    if (!header_has(b, at, 9)) return ERR_DECODE;
    uint32_t right = header_little(b, at, 2) + header_little(b, at + 4, 2),
             bottom = header_little(b, at + 2, 2) + header_little(b, at + 6, 2);
    if (right > out->width) out->width = right;
    if (bottom > out->height) out->height = bottom;
    return OK;
}

int header_gif(const struct bytes *b, struct image_header *out)
{
    if (!header_has(b, 0, 13)) return ERR_DECODE;
    out->width = header_little(b, 6, 2);
    out->height = header_little(b, 8, 2);
    for (uint64_t at = 13 + gif_table(b->data[10]); header_has(b, at, 2);) {
        if (b->data[at] == GIF_IMAGE) return gif_frame(b, at + 1, out);
        if (b->data[at] != GIF_EXTENSION) return ERR_DECODE;
        for (at += 2; header_big(b, at, 1); at += 1 + b->data[at]) { /* blocks, until an empty one */
        }
        if (!header_has(b, at++, 1)) return ERR_DECODE;
    }
    return ERR_DECODE;
}

/* --- BMP --- */

enum { BMP_CORE = 12, BMP_INFO = 40 };

int header_bmp(const struct bytes *b, struct image_header *out)
{
    uint32_t size = header_little(b, 14, 4), bits;
    if (!header_has(b, 14, size)) return ERR_DECODE;
    if (size == BMP_CORE) {
        out->width = header_little(b, 18, 2);
        out->height = header_little(b, 20, 2);
        bits = header_little(b, 24, 2);
    } else if (size >= BMP_INFO && size <= 256) {
        uint32_t height = header_little(b, 22, 4);
        out->width = header_little(b, 18, 4);
        out->height = height > INT32_MAX ? 0 - height : height; /* negative: rows run from top to bottom */
        bits = header_little(b, 28, 2);
        if (out->width > INT32_MAX) return ERR_DECODE;
    } else {
        return ERR_DECODE;
    }
    static const uint8_t depths[] = {1, 2, 4, 8, 16, 24, 32};
    return bits <= 32 && memchr(depths, (int)bits, sizeof depths) ? OK : ERR_DECODE;
}
