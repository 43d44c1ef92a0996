/* SPDX-License-Identifier: MIT
 *
 * Reads an image from a PPM file, resizes and encodes it, and writes the result.
 */
#include "cli/cli_vision.h"

#include "cli/cli_output.h"
#include "cli/cli_terminal.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct image {
    int width, height;
    uint8_t *rgb; /* [height, width, 3] */
};

/* Reads the next number of a header, after spaces and comments; -1: none. */
static int read_number(FILE *f)
{
    int c = getc(f), n = -1;
    while (isspace(c) || c == '#') {
        if (c == '#')
            while (c != '\n' && c != EOF) c = getc(f);
        c = getc(f);
    }
    for (; isdigit(c) && n < 100000000; c = getc(f)) n = max_int(n, 0) * 10 + c - '0';
    return n; /* the one character after it is consumed, as PPM requires */
}

/* Returns false if the file is not such an image, or memory is short. */
static bool read_pixels(FILE *f, struct image *p)
{
    enum { SIDE_MOST = 16384 };
    if (getc(f) != 'P' || getc(f) != '6') return false;
    p->width = read_number(f);
    p->height = read_number(f);
    if (read_number(f) != 255 || p->width < 1 || p->height < 1 || p->width > SIDE_MOST || p->height > SIDE_MOST)
        return false;
    size_t n = 3 * (size_t)p->width * (size_t)p->height;
    p->rgb = malloc(n);
    return p->rgb && fread(p->rgb, 1, n, f) == n;
}

static bool read_image(const char *path, struct image *p)
{
    FILE *f = fopen(path, "rb");
    bool read = f && read_pixels(f, p);
    if (f) fclose(f);
    return read;
}

/* Adds the image to the engine; *id identifies it. */
static int add_image(struct quern_engine *e, const struct image *p, double max_pixels, struct image_grid *g,
                     uint64_t *id)
{
    int status = quern_media_plan(e, QUERN_IMAGE, p->width, p->height, 1, 0, max_pixels, g);
    if (status) return status;
    uint8_t *resized = malloc(3 * (size_t)g->height * (size_t)g->width);
    void *scratch = malloc((size_t)image_resize_cost(p->width, p->height, g->width, g->height) + 1);
    status = 1;
    if (resized && scratch) {
        image_resize(p->rgb, p->width, p->height, resized, g->width, g->height, scratch);
        status = quern_media_add(e, g, resized, NULL, 0, id);
    }
    free(resized);
    free(scratch);
    return status > 0 ? complain("mem/load", "Not enough memory for the image.") : status;
}

static int write_floats(const char *path, const float *x, size_t n)
{
    struct output o = {.fd = -1};
    struct error err;
    int failed = output_open(&o, path);
    if (!failed) failed = output_add(&o, x, n * sizeof *x);
    if (!failed) failed = output_finish(&o);
    if (failed) complain(output_explain(&o, failed, &err), err.message);
    output_close(&o);
    return failed != 0;
}

int cli_vision(struct quern_engine *e, const char *image, double max_pixels, const char *out)
{
    struct image p = {0};
    struct image_grid g = {0};
    uint64_t id;
    const float *made;
    int tokens = 0, width = 0,
        status =
            read_image(image, &p) ? OK : complain("image/decode", "The image is not a binary PPM file with 8 bits.");
    if (!status) status = add_image(e, &p, max_pixels, &g, &id);
    free(p.rgb);
    double start = now_ms();
    if (!status) status = quern_media_encode(e, id, 0, &made, &tokens, &width);
    double ms = now_ms() - start;
    if (!status) status = write_floats(out, made, (size_t)tokens * (size_t)width);
    if (!status)
        fprintf(stdout, "%d x %d pixels, %d tokens of %d numbers, %.0f ms\n", g.width, g.height, tokens, width, ms);
    return status;
}
