/* SPDX-License-Identifier: MIT
 *
 * The memory plan: the memory that running the model will take, computed from the header before anything large is
 * taken, and the context that fits. It is exact to the last pages of small things, since every module computes what it
 * will reserve. `parallel` sequences with a whole context each are counted. Waiting sequences are not: each takes 8
 * bytes for each token of its text, with penalties 8 more for each position of the context, and some KB. For 64 of them
 * with 4,096 positions that is at most 4 MB, and mostly much less; reserving it would reduce every context. If it is
 * missing, only that sequence is refused (ERR_MEM_LOAD).
 *
 * The default context is 4,096 positions, or the model's own if that is less; if these do not fit, as many as do, at
 * least 512. It is not larger where memory allows, because the cache of a whole context is taken at once, so that no
 * reply can fail for lack of it later, and most models' own context (40,960 positions) takes more than their weights. A
 * model with states takes two slots for each conversation of the wanted context that the pool has room for, up to
 * `parallel`, and one slot for each snapshot; if that is too much, snapshots are reduced to one before the context
 * shrinks or is refused. A requested context is granted or refused, never reduced (except to the model's own). With
 * QUERN_AUTO the weights get the first type of "as stored", Q8_0 and Q4_0 with which the context is granted.
 */
#ifndef QUERN_PLAN_H
#define QUERN_PLAN_H

#include "engine/state.h"

/* Call after binding a file's weights. Chooses their types, from the options or from the first file's plan. */
void plan_types(struct quern_engine *e, bool first);
/* Fills e->plan and chooses e->context_size. Call after binding the first file's weights and before taking memory for
 * them; again when a projector's header has arrived; and before taking caches and scratch. ERR_MEM_PLAN says what would
 * fit. */
int plan_make(struct quern_engine *e, struct error *err);
/* Makes the plan again for another context, since allocations may fail below the limit. */
void plan_settle(struct quern_engine *e, int context_size);

/* The types that plan_make() has chosen for the weights. */
struct model_types plan_loaded(const struct quern_engine *e);

/* What the backend has to reserve with a cache of this shape. Values of the model come first, then values of the image
 * encoder. */
struct reserve plan_reserve(const struct quern_engine *e, struct cache_shape shape);
uint64_t plan_model_values(const struct quern_engine *e); /* bytes */
/* For a context: the number of positions of all pages together; the shape of pages and slots. */
int plan_kv_positions(const struct quern_engine *e, int context_size);
struct cache_shape plan_shape(const struct quern_engine *e, int context_size);

#endif
