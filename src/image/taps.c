/* SPDX-License-Identifier: MIT
 *
 * The weights of the resizing: Pillow's bicubic kernel, stretched to the scale, as integers of 22 bits.
 */
#include "image/taps.h"

#include <math.h>

/* Most weights of an output: the kernel reaches 2 stretched inputs in both directions. */
static int most_taps(int size, int to) { return (int)ceil(2.0 * fmax((double)size / (double)to, 1.0)) * 2 + 1; }

uint64_t taps_cost(int size, int to)
{
    return size == to ? 0 : (uint64_t)to * (sizeof(struct span) + (uint64_t)most_taps(size, to) * sizeof(int32_t));
}

/* Keys' cubic with a = -0.5. */
static double cubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * a : 0.0;
}

struct taps taps_make(int size, int to, uint8_t **scratch)
{
    struct taps t = {.spans = (struct span *)(void *)*scratch, .most = most_taps(size, to)};
    t.weights = (int32_t *)(void *)(*scratch + (size_t)to * sizeof(struct span));
    *scratch += taps_cost(size, to);
    double scale = (double)size / (double)to, wide = fmax(scale, 1.0), support = 2.0 * wide, narrow = 1.0 / wide;
    for (int i = 0; i < to; i++) {
        double center = (i + 0.5) * scale, sum = 0.0;
        int first = max_int((int)(center - support + 0.5), 0), last = min_int((int)(center + support + 0.5), size);
        for (int x = 0; x < last - first; x++) sum += cubic((first + x - center + 0.5) * narrow);
        double norm = 1.0 / sum;
        int32_t *weights = t.weights + (size_t)i * (size_t)t.most;
        for (int x = 0; x < last - first; x++) {
            double k = cubic((first + x - center + 0.5) * narrow) * norm * (1 << WEIGHT_BITS);
            weights[x] = (int32_t)(k >= 0 ? k + 0.5 : k - 0.5);
        }
        t.spans[i] = (struct span){first, last - first};
    }
    return t;
}
