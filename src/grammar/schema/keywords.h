/* SPDX-License-Identifier: MIT
 *
 * One schema being read, for one place: each group of keywords adds its condition. A positive schema is the AND of its
 * keywords; a negated one is the OR of their negations.
 */
#ifndef QUERN_SCHEMA_KEYWORDS_H
#define QUERN_SCHEMA_KEYWORDS_H

#include "grammar/schema/sets.h"

struct pass {
    struct schema *s;
    uint32_t node;
    bool negative;
    const struct schema_set *set; /* the result so far; NULL after an error */
};

void pass_add(struct pass *p, const struct schema_set *one);
uint32_t pass_member(const struct pass *p, const char *keyword); /* the keyword's value; 0: absent, or after an error */
bool pass_expects(struct pass *p, uint32_t value, enum json_kind kind, const char *keyword);
void pass_refuse(struct pass *p, const char *keyword, const char *sentence);

void pass_arrays(struct pass *p);   /* arrays.c */
void pass_objects(struct pass *p);  /* objects.c */
void pass_logic(struct pass *p);    /* logic.c */
/* objects.c: the set of objects that have the name `with` and lack the name `without`; 0: no condition. */
const struct schema_set *set_of_names(struct schema *s, uint32_t with, uint32_t without, bool negative);
void pass_unevaluated(struct pass *p); /* unevaluated.c */

#endif
