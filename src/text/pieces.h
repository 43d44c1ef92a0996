/* SPDX-License-Identifier: MIT
 *
 * The pre-tokenizers: they cut text into the pieces that byte pairs may not cross. They read a little at a time, from a
 * text that may not be complete, so even a very long piece delays no other work.
 */
#ifndef QUERN_PIECES_H
#define QUERN_PIECES_H

#include "base/unicode.h"
#include "text/rules.h"

/* The known part of a text, from the beginning of a piece. */
struct piece_text {
    struct bytes bytes;
    bool is_whole;      /* no more text follows */
    struct bytes skip;  /* bytes to ignore between characters (the sentinel); may be empty */
    const struct unicode_classes *classes;
    struct piece_rules rules;
};

/* A piece whose end is not known yet. All fields are zero at its beginning. */
struct piece {
    enum piece_kind { PIECE_NEW, PIECE_LETTERS, PIECE_NUMBERS, PIECE_OTHERS, PIECE_LINES, PIECE_SPACES } kind;
    size_t end;               /* end of the piece so far */
    /* for spaces: where the last character begins, and the position after the last line end (0: no line end) */
    size_t last, after_line;
    int n;                    /* numbers */
};

/* Whether `skip`, which must not be empty, is at position `at`. */
bool piece_skips(const struct piece_text *text, size_t at);

/* Reads at most *budget characters, which it subtracts. true: the piece ends at ->end, which is > 0 unless the text is
 * empty. false: the budget is used up, or more text is needed. Before the result is true, ->end stays within the known
 * text. */
bool piece_find(struct piece *p, const struct piece_text *text, int64_t *budget);

#endif
