/* SPDX-License-Identifier: MIT
 *
 * The special tokens of a vocabulary (control and user-defined ones), and the search for one at a position of a text.
 *
 * They are sorted by their bytes, with a range per first byte. At each position of the text the range of candidates
 * narrows byte by byte. This finds the longest match in at most SPECIAL_MAX_BYTES steps, whatever strings a file
 * contains. Where no special token begins with the text's byte, the search costs one look-up.
 */
#ifndef QUERN_SPECIALS_H
#define QUERN_SPECIALS_H

#include "text/vocab.h"

enum { SPECIAL_MAX_BYTES = 256 }; /* ten times Qwen3's longest; bounds the cost of hostile files */

struct specials {
    uint32_t *ids; /* [n] sorted by (bytes, control before user-defined), without duplicates of such a pair */
    uint32_t n;
    uint32_t starts[257]; /* specials with the first byte c: starts[c] .. starts[c + 1] */
};

static inline bool is_special(int type) { return type == TOKEN_CONTROL || type == TOKEN_USER_DEFINED; }

/* OK, ERR_FORMAT (rule "vocab") or ERR_MEM_LOAD. The caller frees s->ids in every case. */
int specials_load(struct mem *m, struct specials *s, const struct vocab *v, struct error *err);
/* Returns the longest special token that text begins with; TABLE_NONE if there is none. text has at least one byte.
 * user_only: only user-defined tokens count. */
uint32_t specials_match(const struct specials *s, const struct vocab *v, struct bytes text, bool user_only);

#endif
