/* SPDX-License-Identifier: MIT
 *
 * Writes a model's encoding of one image to a file. Images are PPM, that is pixels with their size: decoders are
 * written in JavaScript.
 */
#ifndef QUERN_CLI_VISION_H
#define QUERN_CLI_VISION_H

#include "quern.h"

/* Encodes the PPM file `image`, resized to at most max_pixels (0: the default), and writes floats [tokens, width] to
 * `out`. Returns 0, 1 after an error message, or the engine's error. */
int cli_vision(struct quern_engine *e, const char *image, double max_pixels, const char *out);

#endif
