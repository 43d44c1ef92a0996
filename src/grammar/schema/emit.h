/* SPDX-License-Identifier: MIT
 *
 * Turns sets into expressions. A term that is reached again while it is being made becomes a rule. So does a term that
 * is nested deeply, which is made later.
 */
#ifndef QUERN_SCHEMA_EMIT_H
#define QUERN_SCHEMA_EMIT_H

#include "grammar/schema/sets.h"

gr_expr emit_term(struct schema *s, term t);          /* the texts of the values that satisfy it; 0 after an error */
gr_expr emit_whole(struct schema *s, term t);         /* the same, and makes all terms that wait */
gr_expr emit_waiting(struct schema *s, gr_expr e);    /* e, after all terms that wait are made */
gr_expr emit_set(struct schema *s, const struct schema_set *set);
gr_expr emit_object(struct schema *s, const struct object_shape *o);
gr_expr emit_array(struct schema *s, const struct array_shape *a);

/* How the members of an object are written; NULL: as JSON. */
struct member_form {
    gr_expr (*name)(const struct member_form *form, uint32_t name); /* 0: the name cannot be written in this form */
    gr_expr (*keys)(const struct member_form *form, gr_expr keys);  /* JSON strings that can be written in this form */
    gr_expr (*member)(const struct member_form *form, gr_expr key, term value);
};
/* Only the members, without text around or between them. */
gr_expr emit_members(struct schema *s, const struct object_shape *o, const struct member_form *form);

/* compile.c: reads a schema up to its terms; gives the result of compiling it. */
int schema_begin(struct schema *s, struct bytes text);
int schema_end(struct schema *s, gr_expr e, gr_expr *start);

static inline bool is_never(const struct schema *s, gr_expr e) { return e == s->words->never; }

#endif
