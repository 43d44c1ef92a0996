/* SPDX-License-Identifier: MIT
 *
 * What an engine needs to see: the encoder of images, which a folder has beside its language model and a pair of GGUF
 * files in a second one, the projector; and what it costs.
 *
 * A projector comes after all files of the model, but the plan counts it at the model's header, by its size, so that
 * what cannot run is refused before anything is downloaded. Its own header then corrects the plan, and only then caches
 * and scratch are taken: that is why who gives one says so before (options.vision_size).
 */
#ifndef QUERN_SIGHT_H
#define QUERN_SIGHT_H

#include "engine/state.h"

/* At the model's header: the vision part of a folder, unless the options leave it out, or that a projector is to come.
 * ERR_UNSUPPORTED "no-vision" where the model cannot have one, ERR_PARAM "vision" where it has one already,
 * ERR_INCONSISTENT "vision-token". */
int sight_open(struct quern_engine *e, struct error *err);
/* Binds the weights in a folder's file, which the model then takes with its own. */
int sight_bind(struct quern_engine *e, struct error *err);

/* The projector's file begins; its bytes, until sight->complete: *used of n were its header, whose encoder is open and
 * bound then; its end. */
int sight_begin(struct quern_engine *e, uint64_t size, struct error *err);
int sight_header(struct quern_engine *e, const uint8_t *bytes, size_t n, size_t *used, struct error *err);
int sight_ended(struct quern_engine *e, struct error *err);
/* Whether one is still to come. */
bool sight_awaited(const struct quern_engine *e);

/* The file that has the encoder's weights. */
struct checkpoint *sight_file(const struct quern_engine *e);

/* For the plan. Bytes of a projector's weights, those of its file while that is awaited; of its values in the backend's
 * scratch, behind the model's; of everything else; and what the backend must allow for. */
uint64_t sight_weights(const struct quern_engine *e);
uint64_t sight_values(const struct quern_engine *e);
uint64_t sight_scratch(const struct quern_engine *e);
int sight_rows(const struct quern_engine *e);
int sight_cols(const struct quern_engine *e);

/* Scratch, whose values lie from `first` on, and the store of media. ERR_MEM_LOAD. */
int sight_reserve(struct quern_engine *e, struct handle first);
void sight_free(struct quern_engine *e);

#endif
