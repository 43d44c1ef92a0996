/* SPDX-License-Identifier: MIT
 *
 * The special tokens of a vocabulary (control and user-defined ones), and which of them a text begins with.
 *
 * They are kept sorted by their bytes, in ranges by first byte. At each position of the text the range of
 * candidates narrows byte by byte, which finds the longest match in steps bounded by SPECIAL_MAX_BYTES, whatever
 * strings a file brings; text without a candidate's first byte costs one look-up a byte.
 */
#ifndef QUERN_SPECIALS_H
#define QUERN_SPECIALS_H

#include "text/vocab.h"

enum { SPECIAL_MAX_BYTES = 256 }; /* ten times the longest of Qwen3; bounds the cost of hostile ones */

struct specials {
    uint32_t *ids; /* [n] by (bytes, control before user-defined), no such pair twice */
    uint32_t n;
    uint32_t starts[257]; /* those whose first byte is c: starts[c] .. starts[c + 1] */
};

static inline bool is_special(int type) { return type == TOKEN_CONTROL || type == TOKEN_USER_DEFINED; }

/* OK, ERR_FORMAT (rule "vocab") or ERR_MEM_LOAD; mem_free(m, s->ids) in every case. */
int specials_load(struct mem *m, struct specials *s, const struct vocab *v, struct error *err);
/* The longest that text, at least one byte, begins with, of all or of the user-defined ones; TABLE_NONE when there is
 * none. */
uint32_t specials_match(const struct specials *s, const struct vocab *v, struct bytes text, bool user_only);

#endif
