/* SPDX-License-Identifier: MIT
 *
 * What a reply writes between the marks of a call: the beginning, which names the tool, its arguments, which obey the
 * tool's schema, and the end. Arguments are spaced as templates space them, so that a call stands in the next prompt as
 * it was written, and its tokens are known.
 */
#ifndef QUERN_CALLS_H
#define QUERN_CALLS_H

#include "grammar/schema/schema.h"

enum { CALLS_MAX = 128 };

/* How arguments are written: as JSON, or each between tags (schema/tagged.c). */
enum calls_form { CALLS_JSON, CALLS_TAGGED };

/* text: for each tool what stands before its arguments, NUL, the schema of the arguments, NUL, what follows them, NUL
 * (the last one may lack). how: strict and closed count. Statuses as schema_compile(); messages say which tool (from
 * 0). */
int calls_compile(struct grammar *g, struct mem *mem, struct bytes text, enum calls_form form,
                  const struct schema_options *how, gr_expr *start, struct error *err);

#endif
