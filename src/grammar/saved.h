/* SPDX-License-Identifier: MIT
 *
 * A ready grammar as one block of bytes, so that one module can compile it and another match with it: a side worker's
 * module compiles, and the module of the engine's worker has the vocabulary. The block is only valid for the same build
 * on the same machine; it is not a file format.
 */
#ifndef QUERN_GRAMMAR_SAVED_H
#define QUERN_GRAMMAR_SAVED_H

#include "grammar/grammar.h"

/* For a grammar that is ready and has not matched anything yet. */
uint64_t grammar_saved_size(const struct grammar *g);
void grammar_save(const struct grammar *g, uint8_t *out);

/* Checks every size and index that memory safety depends on. A damaged block is refused (ERR_PARAM), or gives a
 * different grammar. ERR_MEM_LOAD. */
int grammar_load(struct mem *m, struct bytes block, struct grammar **out, struct error *err);

#endif
