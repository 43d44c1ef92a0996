/* SPDX-License-Identifier: MIT
 *
 * Sizes of images and videos, the choice of a video's frames, and their times. Everything is binary64 in steps that are
 * rounded once (sqrt, floor, ceil, a division), in the order of the model's own preprocessing: another order sometimes
 * gives another size.
 */
#include "image/image.h"

#include <math.h>
#include <stdio.h>

/* No side gets longer, whatever the limits are. */
#define SIDE_MOST 1048576.0

/* Largest ratio of the two sides. */
#define ASPECT_MOST 200.0

/* `frames` counts for the limits; `sampled` is the real number. Both are 1 for an image. */
static int fit(double frames, double sampled, double h, double w, const struct image_limits *l, struct image_grid *out)
{
    double side = (double)(l->patch * IMAGE_MERGE), longer = h > w ? h : w, shorter = h > w ? w : h;
    if (!(shorter >= 1.0) || longer / shorter > ASPECT_MOST) return ERR_SIZE;
    double height = rint(h / side) * side, width = rint(w / side) * side, area = frames * height * width;
    if (area > l->high) {
        double b = sqrt(sampled * h * w / l->high);
        height = fmax(side, floor(h / b / side) * side);
        width = fmax(side, floor(w / b / side) * side);
    } else if (area < l->low) {
        double b = sqrt(l->low / (sampled * h * w));
        height = ceil(h * b / side) * side;
        width = ceil(w * b / side) * side;
    }
    /* low limits can leave a side of 0 */
    if (!(height >= side && width >= side && height <= SIDE_MOST && width <= SIDE_MOST)) return ERR_SIZE;
    out->height = (int)height, out->width = (int)width;
    out->rows = (int)(height / side), out->cols = (int)(width / side);
    return OK;
}

int image_size(int height, int width, const struct image_limits *limits, struct image_grid *out)
{
    out->frames = 1;
    return fit(1.0, 1.0, height, width, limits, out);
}

int image_video_size(int n, int height, int width, const struct image_limits *limits, struct image_grid *out)
{
    double side = (double)(limits->patch * IMAGE_MERGE), h = height, w = width;
    if (n < 1 || height < 1 || width < 1) return ERR_SIZE;
    if (h < side || w < side) {
        double s = fmax(side / h, side / w);
        h = trunc(h * s), w = trunc(w * s);
    }
    double span = IMAGE_FRAMES, sampled = fmax(n, span);
    out->frames = (n + 1) / IMAGE_FRAMES * IMAGE_FRAMES;
    return fit(rint(sampled / span) * span, sampled, h, w, limits, out);
}

int image_sample(int total, double fps, double per_second, int least, int most, int32_t *indices)
{
    double wanted = trunc(total / (fps > 0 ? fps : 24.0) * per_second);
    int n = wanted < most ? (int)wanted : most;
    n = min_int(min_int(max_int(n, least), most), total);
    double step = n > 1 ? (double)(total - 1) / (double)(n - 1) : 0.0;
    for (int i = 0; indices && i < n; i++) indices[i] = i && i == n - 1 ? total - 1 : (int32_t)rint(i * step);
    return n;
}

/* Rounds as printf does: by the whole number, ties to even. No time is -0.0. */
int image_label(double seconds, char out[32])
{
    return seconds >= 0 && seconds <= 1e9 ? snprintf(out, 32, "<%.1f seconds>", fabs(seconds)) : 0;
}
