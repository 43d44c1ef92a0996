/* SPDX-License-Identifier: MIT
 *
 * The vision part of an engine: opens the encoder, counts its memory and loads its weights. A Hugging Face folder has
 * the encoder beside its language model; a GGUF model has it in a second file, the projector.
 *
 * A projector comes after all files of the model. The plan counts it already at the model's header, by its file size,
 * so that a model that cannot run is refused before any download. The projector's own header then corrects the plan,
 * and only then caches and scratch are allocated. Therefore the caller must announce a projector beforehand
 * (options.vision_size).
 */
#ifndef QUERN_PROJECTOR_H
#define QUERN_PROJECTOR_H

#include "engine/state.h"

/* At the model's header: opens the vision part of a folder, unless the options leave it out, or prepares for a
 * projector. ERR_UNSUPPORTED "no-vision" if the model cannot have vision, ERR_PARAM "vision" if it has a vision part
 * already, ERR_INCONSISTENT "vision-token". */
int projector_open(struct quern_engine *e, struct error *err);
/* Binds the vision weights in a folder's file, which are then loaded with the model's own. */
int projector_bind(struct quern_engine *e, struct error *err);

/* Reads the projector's file. projector_begin() starts it. projector_header() takes bytes until projector->complete;
 * then the encoder is open and bound, and the first *used of n bytes belonged to the header. projector_ended() ends the
 * file. */
int projector_begin(struct quern_engine *e, uint64_t size, struct error *err);
int projector_header(struct quern_engine *e, const uint8_t *bytes, size_t n, size_t *used, struct error *err);
int projector_ended(struct quern_engine *e, struct error *err);
/* Whether a projector is still to come. */
bool projector_awaited(const struct quern_engine *e);

/* The checkpoint with the encoder's weights. */
struct checkpoint *projector_file(const struct quern_engine *e);

/* Costs for the plan, in bytes: the projector's weights, or its file size while it is awaited; its values in the
 * backend's scratch, after the model's; everything else. Then the rows and columns that the backend must allow for. */
uint64_t projector_weights(const struct quern_engine *e);
uint64_t projector_values(const struct quern_engine *e);
uint64_t projector_scratch(const struct quern_engine *e);
int projector_rows(const struct quern_engine *e);
int projector_cols(const struct quern_engine *e);

/* Allocates scratch, with values from `first` on, and the store of media. ERR_MEM_LOAD. */
int projector_reserve(struct quern_engine *e, struct handle first);
void projector_free(struct quern_engine *e);

#endif
