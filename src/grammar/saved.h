/* SPDX-License-Identifier: MIT
 *
 * A grammar that is ready as one block of bytes, so that it can be made in one place and matched in another: the module
 * of a side worker makes it, that of the engine's worker has the vocabulary. The bytes are those of the same build on
 * the same machine; they are no format to keep.
 */
#ifndef QUERN_GRAMMAR_SAVED_H
#define QUERN_GRAMMAR_SAVED_H

#include "grammar/grammar.h"

/* Of a grammar that is ready and has matched nothing yet. */
uint64_t grammar_saved_size(const struct grammar *g);
void grammar_save(const struct grammar *g, uint8_t *out);

/* Every size and index that memory safety rests on is checked: what is damaged is refused (ERR_PARAM), or describes
 * something else. ERR_MEM_LOAD. */
int grammar_load(struct mem *m, struct bytes block, struct grammar **out, struct error *err);

#endif
