/* SPDX-License-Identifier: MIT
 *
 * Each tool is one alternative. Their schemas are compiled one by one and not as parts of one schema, because a
 * reference in a schema ("#/$defs/...") means its own definitions.
 */
#include "grammar/calls.h"

#include <string.h>

/* Returns the text before the next NUL, and removes both from the rest. */
static struct bytes next_part(struct bytes *rest)
{
    struct bytes part = *rest;
    const uint8_t *end = rest->size ? memchr(rest->data, 0, rest->size) : NULL;
    if (!end) {
        rest->size = 0;
        return part;
    }
    part.size = (size_t)(end - rest->data);
    rest->data = end + 1;
    rest->size -= part.size + 1;
    return part;
}

typedef int compile_fn(struct grammar *g, struct mem *mem, struct bytes text, const struct schema_options *options,
                       gr_expr *out, struct error *err);

static int fail_tool(struct error *err, int i)
{
    struct error why = *err;
    return fail(err, why.code, why.rule, why.offset, "The parameters of tool %d: %s", i, why.message);
}

int calls_compile(struct grammar *g, struct mem *mem, struct bytes text, enum calls_form form,
                  const struct schema_options *how, gr_expr *start, struct error *err)
{
    gr_expr calls[CALLS_MAX];
    int n = 0;
    for (struct bytes rest = text; rest.size > 0; n++) {
        struct bytes before = next_part(&rest);
        const struct schema_options options = {
            .spaced = true, .strict = how->strict, .closed = how->closed, .tool = n + 1};
        gr_expr arguments = 0;
        if (n == CALLS_MAX) return fail(err, ERR_SCHEMA, "limit", 0, "There are more than %d tools.", CALLS_MAX);
        compile_fn *compile = form == CALLS_TAGGED ? schema_tagged : schema_compile;
        if (compile(g, mem, next_part(&rest), &options, &arguments, err)) return fail_tool(err, n);
        calls[n] = gr_sequence(g, (gr_expr[]){gr_text(g, before), arguments, gr_text(g, next_part(&rest))}, 3);
    }
    *start = gr_any(g, calls, (size_t)n);
    if (*start) return OK;
    *err = *grammar_error(g);
    return err->code;
}
