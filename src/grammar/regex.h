/* SPDX-License-Identifier: MIT
 *
 * Inside regular expressions: the cursor over a pattern, and its sets of code points (regex_class.c).
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
    int looks; /* lookaheads, and groups with some, that what is read stands behind */
    bool open; /* what is read goes on to the end of the text, with `tail` behind it */
    const struct part *tail; /* NULL: nothing */
    int where; /* enum gr_where; of the flags those that modifiers leave */
    enum gr_form form;
    struct gr_range *ranges; /* [room]: of the class being read */
    uint32_t n, room;
};

/* Records what is wrong at the cursor, and returns 0. */
gr_expr regex_wrong(struct regex *r, const char *sentence);
bool regex_takes(struct regex *r, const char *word); /* moves on where the word comes next */
int regex_peek(const struct regex *r);               /* the next byte, -1 at the end */
/* Adds first .. last, or what is not in them; false: failed. */
bool regex_add(struct regex *r, uint32_t first, uint32_t last);
/* What `\` begins: a code point, returned, or a set like \d, which is added (REGEX_SET). REGEX_WRONG: refused. */
#define REGEX_SET 0xFFFFFFFEu
#define REGEX_WRONG 0xFFFFFFFFu
uint32_t regex_escape(struct regex *r, bool in_class);
/* After `[`, to the matching bracket. */
gr_expr regex_class(struct regex *r);
gr_expr regex_dot(struct regex *r);
/* The code points that were added, or the others, as an expression; none are left. */
gr_expr regex_take_class(struct regex *r, bool negated);

/* properties.c: adds what \p{name} has, or the others; false: failed, or not known. */
bool regex_property(struct regex *r, struct bytes name, bool negated, bool *known);
/* Adds what the flag i takes for the same as what was added, which is in order and stays so. */
bool regex_fold(struct regex *r);

#endif
