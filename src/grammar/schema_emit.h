/* SPDX-License-Identifier: MIT
 *
 * Sets to expressions. A term that is met while it is being made becomes a rule, and so does one that lies deep, which waits its turn.
 */
#ifndef QUERN_SCHEMA_EMIT_H
#define QUERN_SCHEMA_EMIT_H

#include "grammar/schema_sets.h"

gr_expr emit_term(struct schema *s, term t);          /* the texts of what satisfies it; 0 after an error */
gr_expr emit_whole(struct schema *s, term t);         /* the same, with all that waits */
gr_expr emit_object(struct schema *s, const struct object_shape *o);
gr_expr emit_array(struct schema *s, const struct array_shape *a);

static inline bool is_never(const struct schema *s, gr_expr e) { return e == s->words->never; }

#endif
