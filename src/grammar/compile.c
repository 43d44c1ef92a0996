/* SPDX-License-Identifier: MIT
 *
 * The table of the kinds of texts.
 */
#include "grammar/compile.h"

#include "grammar/calls.h"
#include "grammar/schema/schema.h"

struct text {
    struct mem *mem;
    uint8_t *data;
    size_t size;
    uint32_t flags;
};

typedef int kind_fn(struct grammar *g, const struct text *t, gr_expr *start, struct error *err);

static int made(struct grammar *g, gr_expr e, gr_expr *start, struct error *err)
{
    *start = e;
    if (!e && err) *err = *grammar_error(g);
    return e ? OK : grammar_error(g)->code;
}

static struct schema_options options_of(const struct text *t)
{
    return (struct schema_options){.flexible = (t->flags & GRAMMAR_FLEXIBLE) != 0,
                                   .strict = (t->flags & GRAMMAR_STRICT) != 0,
                                   .closed = (t->flags & GRAMMAR_CLOSED) != 0};
}

static int from_schema(struct grammar *g, const struct text *t, gr_expr *start, struct error *err)
{
    struct schema_options options = options_of(t);
    return schema_compile(g, t->mem, (struct bytes){t->data, t->size}, &options, start, err);
}

static int from_nothing(struct grammar *g, const struct text *t, gr_expr *start, struct error *err)
{
    return schema_any(g, t->mem, &(struct schema_options){.flexible = (t->flags & GRAMMAR_FLEXIBLE) != 0}, start, err);
}

static int from_regex(struct grammar *g, const struct text *t, gr_expr *start, struct error *err)
{
    static const struct {
        uint32_t flag;
        int where;
    } flags[] = {{GRAMMAR_IGNORE_CASE, GR_IGNORE_CASE}, {GRAMMAR_DOT_ALL, GR_DOT_ALL},
                 {GRAMMAR_MULTILINE, GR_MULTILINE}, {GRAMMAR_OLD_CASE, GR_OLD_CASE}};
    int where = GR_WHOLE;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (t->flags & flags[i].flag) where |= flags[i].where;
    return made(g, gr_regex(g, (struct bytes){t->data, t->size}, where, GR_PLAIN, NULL), start, err);
}

static int from_gbnf(struct grammar *g, const struct text *t, gr_expr *start, struct error *err)
{
    return made(g, gr_gbnf(g, (struct bytes){t->data, t->size}, NULL), start, err);
}

static int from_choices(struct grammar *g, const struct text *t, gr_expr *start, struct error *err)
{
    return made(g, gr_choices(g, t->data, t->size, NULL), start, err);
}

static int from_calls(struct grammar *g, const struct text *t, gr_expr *start, struct error *err)
{
    struct schema_options options = options_of(t);
    return calls_compile(g, t->mem, (struct bytes){t->data, t->size}, CALLS_JSON, &options, start, err);
}

static int from_tagged_calls(struct grammar *g, const struct text *t, gr_expr *start, struct error *err)
{
    struct schema_options options = options_of(t);
    return calls_compile(g, t->mem, (struct bytes){t->data, t->size}, CALLS_TAGGED, &options, start, err);
}

static kind_fn *const kinds[GRAMMAR_KINDS] = {
    [GRAMMAR_SCHEMA] = from_schema,
    [GRAMMAR_REGEX] = from_regex,
    [GRAMMAR_GBNF] = from_gbnf,
    [GRAMMAR_CHOICES] = from_choices,
    [GRAMMAR_JSON] = from_nothing,
    [GRAMMAR_CALLS] = from_calls,
    [GRAMMAR_TAGGED_CALLS] = from_tagged_calls,
};

int grammar_compile(struct mem *m, int kind, uint8_t *text, size_t size, uint32_t flags, struct grammar **out,
                    struct error *err)
{
    *out = NULL;
    if (kind < 0 || kind >= GRAMMAR_KINDS || !kinds[kind])
        return fail(err, ERR_PARAM, "kind", 0, "There is no such kind of grammar.");
    if (size > GRAMMAR_TEXT_MOST)
        return fail(err, ERR_SCHEMA, "size", 0,
                    "The schema or grammar has %zu bytes; at most 1 MB is allowed.", size);
    struct grammar *g = grammar_new(m);
    if (!g) return fail(err, ERR_MEM_LOAD, "memory", 0, "There is not enough memory for a grammar.");
    gr_expr start = 0;
    int status = kinds[kind](g, &(struct text){m, text, size, flags}, &start, err);
    if (!status) status = grammar_ready(g, start, err);
    if (status) grammar_free(g);
    else *out = g;
    return status;
}
