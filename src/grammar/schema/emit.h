/* SPDX-License-Identifier: MIT
 *
 * Sets to expressions. A term that is met while it is being made becomes a rule, and so does one that lies deep, which
 * waits its turn.
 */
#ifndef QUERN_SCHEMA_EMIT_H
#define QUERN_SCHEMA_EMIT_H

#include "grammar/schema/sets.h"

gr_expr emit_term(struct schema *s, term t);          /* the texts of what satisfies it; 0 after an error */
gr_expr emit_whole(struct schema *s, term t);         /* the same, with all that waits */
gr_expr emit_waiting(struct schema *s, gr_expr e);    /* e, once all that waits is made */
gr_expr emit_set(struct schema *s, const struct schema_set *set);
gr_expr emit_object(struct schema *s, const struct object_shape *o);
gr_expr emit_array(struct schema *s, const struct array_shape *a);

/* How the members of an object are written; JSON: NULL. */
struct member_form {
    gr_expr (*name)(const struct member_form *form, uint32_t name); /* 0: it cannot be written so */
    gr_expr (*keys)(const struct member_form *form, gr_expr keys);  /* of JSON strings, those that can */
    gr_expr (*member)(const struct member_form *form, gr_expr key, term value);
};
/* Members alone, nothing around and between them. */
gr_expr emit_members(struct schema *s, const struct object_shape *o, const struct member_form *form);

/* compile.c: a schema up to its terms, and what came of it. */
int schema_begin(struct schema *s, struct bytes text);
int schema_end(struct schema *s, gr_expr e, gr_expr *start);

static inline bool is_never(const struct schema *s, gr_expr e) { return e == s->words->never; }

#endif
