/* SPDX-License-Identifier: MIT
 *
 * Images and videos in a conversation. quern.h includes this.
 *
 * A medium is what the model's encoder looks at in one go: an image, or two frames of a video. Its bytes are RGB,
 * resized to a size that quern_media_plan() gives; its id is made of them. In a conversation it stands as so many pad
 * tokens as it has visual tokens. The encoder runs inside quern_step(), in parts, once a row is to be read that nobody
 * knows yet; what is known of a conversation needs no encoding.
 */
#ifndef QUERN_MEDIA_H
#define QUERN_MEDIA_H

#include "image/image.h"
#include "quern_options.h"

struct quern_engine;
struct quern_sequence;

/* After all files of the model, and not counted among them: the bytes of its projector follow, as options.vision_size
 * has said, which a model that is only inspected does without. Its size: 0 when not known. */
int quern_vision_next(struct quern_engine *e, uint64_t file_size);
bool quern_sees(const struct quern_engine *e); /* it has a projector, or its folder's vision part */

enum quern_medium { QUERN_IMAGE = 0, QUERN_VIDEO = 1 };

/* The token that stands for a part of such a medium; -1 where the model sees nothing. */
int32_t quern_media_pad(const struct quern_engine *e, enum quern_medium kind);

/* The size to which an image, or each frame of a video, is resized, and its visual tokens: *out. low, high: pixels of
 * an image, or of all frames together; 0: the model's least, and 262,144 of an image, 524,288 of a video. No frame has
 * more than options.max_pixels, whatever high is. OK, ERR_SIZE, ERR_PARAM (no projector). */
int quern_media_plan(struct quern_engine *e, enum quern_medium kind, int width, int height, int frames, double low,
                     double high, struct image_grid *out);

/* Copies [height, width, 3] bytes of one image (frame1 NULL or the same) or two frames, by a grid of
 * quern_media_plan(), and gives the medium's id. It is held until quern_media_release() as many times, and by the
 * sequences that have it. What another scope has shown is looked at anew, and known by another id; a sequence is given
 * those of its own scope. OK, ERR_PARAM, ERR_MEM_LOAD. */
int quern_media_add(struct quern_engine *e, const struct image_grid *grid, const uint8_t *frame0, const uint8_t *frame1,
                    uint32_t scope, uint64_t *id);
void quern_media_release(struct quern_engine *e, uint64_t id);

/* As quern_sequence_set(). ids [n] with the pads expanded; media [n_media] in the order of their pads, which the
 * sequence holds then until it is set anew or freed. n_media 0: the same as quern_sequence_set(). ERR_PARAM too:
 * another number of pads than the media have. */
int quern_sequence_set_media(struct quern_sequence *s, const int32_t *ids, int n, const uint64_t *media, int n_media,
                             enum quern_outputs outputs);

/* What the encoder makes of a medium: *out [tokens, width], each token's features and then what is added after the
 * first layers; borrowed until the next call, or that of quern_media_release(). OK; 1: stopped early as quern_step()
 * is; ERR_PARAM (not held), ERR_MEM_LOAD. */
int quern_media_look(struct quern_engine *e, uint64_t id, int budget_ms, const float **out, int *tokens, int *width);

#endif
