/* SPDX-License-Identifier: MIT
 *
 * Vocabularies with scores instead of merges, as in qwen3.c. Two adjacent tokens may be joined if their bytes together
 * are a token. The pair whose result has the highest score is joined first; of equal scores the lowest id, of the same
 * result the leftmost pair.
 */
#ifndef QUERN_SCORES_H
#define QUERN_SCORES_H

#include "text/bpe.h"
#include "text/vocab.h"

enum { SCORED_MAX_BYTES = 256 }; /* of a token that joining can make; Qwen3's longest has 128 */

/* Fills b's merges and ranks from `scores`, which are v->n_tokens finite floats. A token of several bytes that no pair
 * makes becomes user-defined. ERR_FORMAT (rule "vocab") or ERR_MEM_LOAD. Call bpe_free() in every case. */
int scores_load(struct mem *m, struct bpe *b, struct vocab *v, struct bytes scores, struct error *err);

#endif
