/* SPDX-License-Identifier: MIT
 *
 * Compiles a schema from text to expression.
 */
#include "grammar/schema/schema.h"

#include "grammar/schema/emit.h"

int schema_begin(struct schema *s, struct bytes text)
{
    int status = schema_read(s, text);
    if (!status) status = schema_places(s);
    if (!status && !words_new(s)) status = s->status;
    if (!status && !terms_new(s)) status = s->status;
    s->here = s->root;
    return status;
}

int schema_end(struct schema *s, gr_expr e, gr_expr *start)
{
    if (!s->status && is_never(s, e))
        return fail(s->err, ERR_SCHEMA, "nothing", 0,
                    "Nothing satisfies the schema: its conditions exclude each other.");
    *start = e;
    return s->status;
}

static int compile(struct schema *s, struct bytes text, gr_expr *start)
{
    int status = schema_begin(s, text);
    if (status) return status;
    term t = term_of(s, LITERAL(s->root, false, false));
    gr_expr e = s->status ? 0 : emit_whole(s, t);
    return schema_end(s, t == TERM_NONE ? s->words->never : e, start);
}

int schema_compile(struct grammar *g, struct mem *mem, struct bytes text, const struct schema_options *options,
                   gr_expr *start, struct error *err)
{
    struct schema s = {.g = g, .mem = mem, .err = err, .options = *options};
    *start = 0;
    int status = compile(&s, text, start);
    schema_release(&s);
    mem_free(mem, s.nodes);
    return status;
}

int schema_any(struct grammar *g, struct mem *mem, const struct schema_options *options, gr_expr *start,
               struct error *err)
{
    static const uint8_t any[] = "true";
    return schema_compile(g, mem, (struct bytes){any, 4}, options, start, err);
}
