/* SPDX-License-Identifier: MIT
 *
 * Internals of regular expressions: the cursor over a pattern, and its sets of code points (regex_class.c).
 */
#ifndef QUERN_GRAMMAR_REGEX_H
#define QUERN_GRAMMAR_REGEX_H

#include "grammar/nodes.h"

struct part;

struct regex {
    struct grammar *g;
    struct bytes text;
    size_t at;
    int depth; /* of groups */
    int looks; /* lookaheads, and groups with lookaheads, before the current position */
    bool open; /* the current part extends to the end of the text, followed by `tail` */
    const struct part *tail; /* part that follows; NULL: nothing */
    int where; /* enum gr_where, with the flags that modifiers have changed */
    enum gr_form form;
    struct gr_range *ranges; /* [room]: ranges of the current class */
    uint32_t n, room;
};

/* Records an error at the cursor. Returns 0. */
gr_expr regex_wrong(struct regex *r, const char *sentence);
bool regex_takes(struct regex *r, const char *word); /* moves past the word if it comes next */
int regex_peek(const struct regex *r);               /* the next byte, -1 at the end */
/* Adds first .. last to the current class. Returns false if it failed. */
bool regex_add(struct regex *r, uint32_t first, uint32_t last);
/* Reads the escape after `\`. Returns a code point, or adds a set like \d and returns REGEX_SET. REGEX_WRONG:
 * refused. */
#define REGEX_SET 0xFFFFFFFEu
#define REGEX_WRONG 0xFFFFFFFFu
uint32_t regex_escape(struct regex *r, bool in_class);
/* Reads a class after `[`, up to its closing bracket. */
gr_expr regex_class(struct regex *r);
gr_expr regex_dot(struct regex *r);
/* Makes an expression of the code points that were added, or of all others, and empties the class. */
gr_expr regex_take_class(struct regex *r, bool negated);

/* properties.c: adds the code points of \p{name}, or all others. Returns false if it failed or the name is unknown. */
bool regex_property(struct regex *r, struct bytes name, bool negated, bool *known);
/* Adds the code points that equal the added ones under the flag i. The ranges are sorted before and after. */
bool regex_fold(struct regex *r);

#endif
