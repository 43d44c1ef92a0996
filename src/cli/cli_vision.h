/* SPDX-License-Identifier: MIT
 *
 * What a model makes of one image, as a file. Images are PPM, which is pixels and their sizes: decoders live in
 * JavaScript.
 */
#ifndef QUERN_CLI_VISION_H
#define QUERN_CLI_VISION_H

#include "quern.h"

/* Encodes the PPM file `image`, of at most so many pixels (0: the default), into `out`: floats [tokens, width]. 0, 1
 * after the complaint, or the engine's error. */
int cli_vision(struct quern_engine *e, const char *image, double max_pixels, const char *out);

#endif
