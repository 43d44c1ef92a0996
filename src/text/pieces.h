/* SPDX-License-Identifier: MIT
 *
 * Qwen2's pre-tokenizer: cuts text into the pieces that byte pairs may not cross. A piece is looked for a little at a
 * time, in a text that may go on, so a piece of any length makes nobody wait.
 */
#ifndef QUERN_PIECES_H
#define QUERN_PIECES_H

#include "base/base.h"

/* What there is of a text from a piece's beginning on. */
struct piece_text {
    struct bytes bytes;
    bool is_whole;      /* nothing follows */
    struct bytes skip;  /* what stands between characters and is none; empty: nothing */
};

/* A piece whose end is looked for: zero at its beginning. */
struct piece {
    enum piece_kind { PIECE_NEW, PIECE_LETTERS, PIECE_OTHERS, PIECE_LINES, PIECE_SPACES } kind;
    size_t end;               /* so far */
    /* of spaces: where the last one begins, what is behind the last line end (0: there is none) */
    size_t last, after_line;
};

/* Whether `skip`, which is not empty, stands there. */
bool piece_skips(const struct piece_text *text, size_t at);

/* Looks at as many characters as *budget has, which it lowers. true: the piece ends at ->end, > 0 where the text is not
 * empty. false: the budget is spent, or more of the text is wanted. Until then ->end stays inside of what there is. */
bool piece_find(struct piece *p, const struct piece_text *text, int64_t *budget);

#endif
