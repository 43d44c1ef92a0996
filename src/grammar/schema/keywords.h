/* SPDX-License-Identifier: MIT
 *
 * One schema being read, in one place: each group of keywords adds what it says. Positive, a schema is the AND of its
 * keywords; negated, the OR of their negations.
 */
#ifndef QUERN_SCHEMA_KEYWORDS_H
#define QUERN_SCHEMA_KEYWORDS_H

#include "grammar/schema/sets.h"

struct pass {
    struct schema *s;
    uint32_t node;
    bool negative;
    const struct schema_set *set; /* so far; NULL after an error */
};

void pass_add(struct pass *p, const struct schema_set *one);
uint32_t pass_member(const struct pass *p, const char *keyword); /* its value; 0: none, or an error came before */
bool pass_expects(struct pass *p, uint32_t value, enum json_kind kind, const char *keyword);
void pass_refuse(struct pass *p, const char *keyword, const char *sentence);

void pass_arrays(struct pass *p);   /* arrays.c */
void pass_objects(struct pass *p);  /* objects.c */
void pass_logic(struct pass *p);    /* logic.c */
/* objects.c: those that have a name (but not `without`), if one is given. */
const struct schema_set *set_of_names(struct schema *s, uint32_t with, uint32_t without, bool negative);
void pass_unevaluated(struct pass *p); /* unevaluated.c */

#endif
