/* SPDX-License-Identifier: MIT
 *
 * The memory plan: what running the model will take, computed from the header before anything large is taken, and the
 * context that fits. It is exact but for the last pages of small things, since every module says what its own reserving
 * costs. Conversations are counted as many as compute side by side, each with a whole context. Those that wait are not:
 * each takes, when it comes, 8 bytes a token of its text, with penalties 8 more a position of the context, and some KB.
 * Of 4,096 positions that is 4 MB at most for 64 of them, and mostly much less; to promise it would take it from every
 * context. For whom it is not there is refused (ERR_MEM_LOAD), alone.
 *
 * The default context is 4,096 positions, or the model's own if that is less; where they do not fit, as many as do, 512
 * at least. It is not larger where memory allows: the cache of a whole context is taken at once, so that no reply can
 * fail for want of it later, and most models' own context (40,960 positions) takes more than their weights. Who needs
 * it asks for it. Of a model that has states two slots are taken for each conversation of the wanted context that the
 * pool has room for, `parallel` at most, and one for each snapshot; where that is too much, one snapshot is left before
 * the context shrinks or is refused. A context that was asked for is granted or refused, never reduced (but to the
 * model's own). Where the types of the weights are left to the plan (QUERN_AUTO), they are the first of "as stored",
 * Q8_0 and Q4_0 with which it is granted.
 */
#ifndef QUERN_PLAN_H
#define QUERN_PLAN_H

#include "engine/state.h"

/* After binding a file's weights: what they become, as the options say, or as the first file's plan has chosen. */
void plan_types(struct quern_engine *e, bool first);
/* After binding the first file's weights and before taking anything for them: fills e->plan and chooses
 * e->context_size; once more when a projector's header has come, and before caches and scratch are taken. ERR_MEM_PLAN
 * says what would fit. */
int plan_make(struct quern_engine *e, struct error *err);
/* The plan again for a context that memory allowed, since allocations may fail below the limit. */
void plan_settle(struct quern_engine *e, int context_size);

/* What weights become in the end, as plan_make() has chosen. */
struct model_types plan_loaded(const struct quern_engine *e);

/* What the backend is to reserve beside such a cache. The values of the model come first, then those of the encoder of
 * images. */
struct reserve plan_reserve(const struct quern_engine *e, struct cache_shape shape);
uint64_t plan_model_values(const struct quern_engine *e); /* bytes */
/* Positions of the pool of pages, beside a context; and the geometry of pages and slots. */
int plan_kv_positions(const struct quern_engine *e, int context_size);
struct cache_shape plan_shape(const struct quern_engine *e, int context_size);

#endif
