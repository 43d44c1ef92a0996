/* SPDX-License-Identifier: MIT
 *
 * Headers inside the boxes or chunks of a container: WebP in RIFF, AVIF in ISO's boxes. Nested boxes are read by calls
 * of fixed depth.
 */
#include "image/header.h"

#define TEXT(text) text, sizeof text - 1

/* --- WebP --- */

enum { WEBP_START = 12, WEBP_EXIF = 8 };

static int webp_lossy(const struct bytes *s, struct image_header *out)
{
    if (s->size < 10 || s->data[0] & 1 || !header_is(s, 3, TEXT("\x9d\x01\x2a"))) return ERR_DECODE; /* no keyframe */
    out->width = header_little(s, 6, 2) & 0x3FFF;
    out->height = header_little(s, 8, 2) & 0x3FFF;
    return OK;
}

static int webp_lossless(const struct bytes *s, struct image_header *out)
{
    uint32_t bits = header_little(s, 1, 4);
    if (s->size < 5 || s->data[0] != 0x2F || bits >> 29) return ERR_DECODE;
    out->width = (bits & 0x3FFF) + 1;
    out->height = (bits >> 14 & 0x3FFF) + 1;
    return OK;
}

/* The chunk at `at`, as far as the file has it; *size gets the size that it declares. */
static struct bytes webp_chunk(const struct bytes *b, uint64_t at, uint64_t *size)
{
    *size = header_little(b, at + 4, 4);
    uint64_t there = b->size - at - 8;
    return header_part(b, at + 8, *size < there ? *size : there);
}

/* The orientation is in a chunk after the pixels. */
static int webp_exif(const struct bytes *b, uint64_t at, struct image_header *out)
{
    for (uint64_t size; header_has(b, at, 8); at += 8 + size + (size & 1)) {
        struct bytes s = webp_chunk(b, at, &size);
        if (!header_is(b, at, TEXT("EXIF"))) continue;
        if (s.size < size) return ERR_DECODE;
        uint64_t skip = header_is(&s, 0, TEXT("Exif\0\0")) ? 6 : 0;
        out->orientation = header_orientation(&s, skip, s.size - skip);
        return OK;
    }
    /* The flags announce a chunk that is missing: fine for a whole file, not for a cut one. */
    return at >= 8 + (uint64_t)header_little(b, 4, 4) ? OK : ERR_DECODE;
}

int header_webp(const struct bytes *b, struct image_header *out)
{
    if (!header_is(b, 0, TEXT("RIFF")) || !header_has(b, WEBP_START, 8)) return ERR_DECODE;
    uint64_t size;
    struct bytes s = webp_chunk(b, WEBP_START, &size);
    if (header_is(b, WEBP_START, TEXT("VP8 "))) return webp_lossy(&s, out);
    if (header_is(b, WEBP_START, TEXT("VP8L"))) return webp_lossless(&s, out);
    if (!header_is(b, WEBP_START, TEXT("VP8X")) || s.size < 10) return ERR_DECODE;
    out->width = header_little(&s, 4, 3) + 1;
    out->height = header_little(&s, 7, 3) + 1;
    return s.data[0] & WEBP_EXIF ? webp_exif(b, WEBP_START + 8 + size + (size & 1), out) : OK;
}

/* --- AVIF: boxes of size, type, contents --- */

/* Finds the next box of this type in `in` from *at on, returns its contents, and moves *at past it. False: none. */
static bool next_box(const struct bytes *in, uint64_t *at, const char *type, struct bytes *out)
{
    while (header_has(in, *at, 8)) {
        uint64_t start = *at, size = header_big(in, start, 4), head = 8;
        if (size == 1) size = (uint64_t)header_big(in, start + 8, 4) << 32 | header_big(in, start + 12, 4), head = 16;
        if (size == 0) size = in->size - start;
        if (size < head || !header_has(in, start, size)) return false;
        *at = start + size;
        if (!header_is(in, start + 4, type, 4)) continue;
        *out = header_part(in, start + head, size - head);
        return true;
    }
    return false;
}

static bool find_box(const struct bytes *in, uint64_t at, const char *type, struct bytes *out)
{
    return next_box(in, &at, type, out);
}

/* Finds the property box with this number; numbers start at 1. */
static bool property_at(const struct bytes *ipco, uint32_t number, const char *type, struct bytes *out)
{
    uint64_t at = 0;
    while (number-- > 1) {
        uint64_t size = header_big(ipco, at, 4);
        if (size < 8 || !header_has(ipco, at, size)) return false;
        at += size;
    }
    uint64_t end = at + header_big(ipco, at, 4);
    return next_box(ipco, &at, type, out) && at == end;
}

/* Takes the size and rotation from a property of the primary item. */
static void take_property(const struct bytes *ipco, uint32_t number, struct image_header *out, bool *turned)
{
    struct bytes p;
    if (property_at(ipco, number, "ispe", &p)) {
        out->width = header_big(&p, 4, 4);
        out->height = header_big(&p, 8, 4);
    }
    if (property_at(ipco, number, "irot", &p)) *turned = header_big(&p, 0, 1) & 1;
}

/* Reads which properties belong to the primary item. No image has as many properties as PROPERTIES. */
enum { PROPERTIES = 255 };

static void take_associations(const struct bytes *ipma, const struct bytes *ipco, uint32_t primary,
                              struct image_header *out)
{
    int id_bytes = header_big(ipma, 0, 1) == 0 ? 2 : 4, bytes = header_big(ipma, 3, 1) & 1 ? 2 : 1;
    bool turned = false, found = false;
    uint64_t at = 8;
    for (uint32_t items = header_big(ipma, 4, 4); items && !found && header_has(ipma, at, (uint64_t)id_bytes + 1);
         items--) {
        found = header_big(ipma, at, id_bytes) == primary;
        at += (uint64_t)id_bytes;
        for (uint32_t n = header_big(ipma, at++, 1); n; n--, at += (uint64_t)bytes) {
            uint32_t number = header_big(ipma, at, bytes) & (bytes == 2 ? 0x7FFF : 0x7F);
            if (found && number && number <= PROPERTIES) take_property(ipco, number, out, &turned);
        }
    }
    if (turned) {
        uint32_t width = out->width;
        out->width = out->height, out->height = width;
    }
}

/* Whether the file's brands, its own or a compatible one, include this one. */
static bool has_brand(const struct bytes *ftyp, const char *brand)
{
    for (uint64_t at = 0; header_has(ftyp, at, 4); at += at ? 4 : 8)
        if (header_is(ftyp, at, brand, 4)) return true;
    return false;
}

int header_avif(const struct bytes *b, struct image_header *out)
{
    struct bytes ftyp, meta, pitm, iprp, ipco, ipma;
    if (!find_box(b, 0, "ftyp", &ftyp) || !(has_brand(&ftyp, "avif") || has_brand(&ftyp, "avis"))) return ERR_DECODE;
    if (!find_box(b, 0, "meta", &meta) || !find_box(&meta, 4, "pitm", &pitm) || !find_box(&meta, 4, "iprp", &iprp))
        return ERR_DECODE;
    if (!find_box(&iprp, 0, "ipco", &ipco) || !find_box(&iprp, 0, "ipma", &ipma)) return ERR_DECODE;
    take_associations(&ipma, &ipco, header_big(&pitm, 4, header_big(&pitm, 0, 1) == 0 ? 2 : 4), out);
    return OK;
}
