/* SPDX-License-Identifier: MIT
 *
 * Vocabularies with scores instead of merges, as qwen3.c has them: any two tokens whose bytes together are a token may
 * be joined, the pair whose result has the highest score first, of equal scores the lowest id, of one result the
 * leftmost.
 */
#ifndef QUERN_SCORES_H
#define QUERN_SCORES_H

#include "text/bpe.h"
#include "text/vocab.h"

enum { SCORED_MAX_BYTES = 256 }; /* of a token that is made by joining; Qwen3's longest has 128 */

/* Fills b's merges and ranks; scores: v->n_tokens finite floats. A token of several bytes that no pair makes becomes
 * user-defined: nobody else can mean it. ERR_FORMAT (rule "vocab") or ERR_MEM_LOAD; bpe_free() in every case. */
int scores_load(struct mem *m, struct bpe *b, struct vocab *v, struct bytes scores, struct error *err);

#endif
