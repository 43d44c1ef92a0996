/* SPDX-License-Identifier: MIT
 *
 * Images and videos in a conversation. quern.h includes this.
 *
 * A medium is one input of the vision encoder: an image, or two frames of a video. Its bytes are RGB, resized to the
 * size that quern_media_plan() returns; its id is computed from them. In the tokens of a conversation a medium stands
 * as one pad token for each of its visual tokens. The encoder runs inside quern_step(), in parts, when the next row to
 * be read belongs to a medium that is not in the cache; cached rows need no encoding.
 */
#ifndef QUERN_MEDIA_H
#define QUERN_MEDIA_H

#include "image/image.h"
#include "quern_options.h"

struct quern_engine;
struct quern_sequence;

/* Begins the model's projector file, after all other files; it is not counted among options.files. options.vision_size
 * must have announced it, except for a model that is only inspected. file_size: 0 when not known. */
int quern_vision_next(struct quern_engine *e, uint64_t file_size);
bool quern_sees(const struct quern_engine *e); /* a projector or a folder's vision part is loaded */

enum quern_medium { QUERN_IMAGE = 0, QUERN_VIDEO = 1 };

/* The pad token for such a medium; -1 if the model has no vision. */
int32_t quern_media_pad(const struct quern_engine *e, enum quern_medium kind);

/* Sets *out to the size to which an image, or each frame of a video, is resized, and to the number of its visual
 * tokens. low, high: limits of pixels of an image, or of all frames together; 0: the model's minimum, and a maximum of
 * 262,144 for an image, 524,288 for a video. No frame has more than options.max_pixels, whatever `high` is. OK,
 * ERR_SIZE, ERR_PARAM (no projector). */
int quern_media_plan(struct quern_engine *e, enum quern_medium kind, int width, int height, int frames, double low,
                     double high, struct image_grid *out);

/* Copies the bytes [height, width, 3] of one image (frame1 NULL or the same) or of two frames, with a grid of
 * quern_media_plan(), and returns the medium's id. The medium is held by the sequences that use it, and until
 * quern_media_release() has been called once for each add. The same pixels have another id in another scope and are
 * encoded again; a sequence takes media of its own scope only. OK, ERR_PARAM, ERR_MEM_LOAD. */
int quern_media_add(struct quern_engine *e, const struct image_grid *grid, const uint8_t *frame0, const uint8_t *frame1,
                    uint32_t scope, uint64_t *id);
void quern_media_release(struct quern_engine *e, uint64_t id);

/* Like quern_sequence_set(), with media. ids [n]: pads expanded; media [n_media]: ids in the order of their pads. The
 * sequence holds the media until it is set again or freed. n_media 0: the same as quern_sequence_set(). Also ERR_PARAM:
 * the number of pads does not suit the media. */
int quern_sequence_set_media(struct quern_sequence *s, const int32_t *ids, int n, const uint64_t *media, int n_media,
                             enum quern_outputs outputs);

/* Encodes a medium. *out [tokens, width]: for each visual token its features, then what is added after the first
 * layers. Borrowed until the next call of this function or of quern_media_release(). OK; 1: stopped early, as in
 * quern_step(); ERR_PARAM (not held), ERR_MEM_LOAD. */
int quern_media_encode(struct quern_engine *e, uint64_t id, int budget_ms, const float **out, int *tokens, int *width);

#endif
