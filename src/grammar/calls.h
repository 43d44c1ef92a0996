/* SPDX-License-Identifier: MIT
 *
 * The text of a tool call in a reply, between the marks of the call: a beginning that names the tool, arguments that
 * obey the tool's schema, and an end. Arguments have the spaces that templates write. So the call is the same in the
 * next prompt, and its tokens are known.
 */
#ifndef QUERN_CALLS_H
#define QUERN_CALLS_H

#include "grammar/schema/schema.h"

enum { CALLS_MAX = 128 };

/* Form of the arguments: JSON, or each between tags (schema/tagged.c). */
enum calls_form { CALLS_JSON, CALLS_TAGGED };

/* text: for each tool the text before its arguments, NUL, the schema of the arguments, NUL, the text after them, NUL
 * (the last one may be missing). how: only strict and closed are used. Statuses are those of schema_compile(); messages
 * name the tool by its number, from 0. */
int calls_compile(struct grammar *g, struct mem *mem, struct bytes text, enum calls_form form,
                  const struct schema_options *how, gr_expr *start, struct error *err);

#endif
