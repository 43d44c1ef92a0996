/* SPDX-License-Identifier: MIT
 *
 * The members of an object between tags: <parameter=NAME>, a line end, the value, a line end, </parameter>, a line end.
 * The templates of Qwen3-Coder and Qwen3.5 write arguments of calls in this form.
 *
 * A string is written without quotes and escapes; other values are JSON. So the schema is read twice, with JSON strings
 * and with plain ones. Both have the same nodes, and a term has the same literals in both. No string contains the end
 * tag, and a string that the reader (js/reply/tagged.js) would take for another allowed value of the parameter is
 * excluded. Python's words for null, true and false are allowed too, because templates write them into histories.
 */
#include "grammar/schema/emit.h"

#include <string.h>

#define SPACE "[ \\t\\r\\n]*"

struct tagged {
    struct member_form form;
    struct schema *s, *plain;
    /* strings that are read as other values; others: arrays and objects, by their first and last characters */
    gr_expr nulls, truths, numbers, others;
};

/* --- names ------------------------------------------------------------------------------------------------- */

static gr_expr tagged_name(const struct member_form *form, uint32_t name)
{
    struct schema *s = ((const struct tagged *)form)->s;
    struct bytes text = s->names[name];
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == '>' || text.data[i] == '\n')
            return (void)schema_refuse(s, s->here, "properties",
                                       "in calls of this model a name cannot have '>' or a line end"),
                   0;
    return gr_text(s->g, text);
}

/* The keys that JSON writes without escapes and that have no '>'. */
static gr_expr tagged_keys(const struct member_form *form, gr_expr keys)
{
    static const struct gr_range fine[] = {{' ', '!'}, {'#', '='}, {'?', '['}, {']', 0x10FFFF}};
    struct schema *s = ((const struct tagged *)form)->s;
    gr_expr letter = gr_class(s->g, GR_JSON, fine, sizeof fine / sizeof *fine);
    return schema_checked(s, s->here, "limit",
                          words_and(s, s->words->string, keys, gr_repeat(s->g, letter, 0, GR_MANY)));
}

/* --- values ------------------------------------------------------------------------------------------------ */

/* The set of the same term in the schema with plain strings. */
static const struct schema_set *plain_set(const struct tagged *t, term value)
{
    uint32_t n;
    const uint32_t *literals = term_literals(t->s, value, &n);
    term same = value == TERM_NONE ? TERM_NONE : TERM_ANY;
    for (uint32_t i = 0; i < n; i++) same = term_and(t->plain, same, term_of(t->plain, literals[i]));
    const struct schema_set *set = term_set(t->plain, same);
    if (!set && !t->s->status) t->s->status = t->plain->status;
    return set;
}

/* Python's words for the set's null, true and false. */
static gr_expr words_among(const struct tagged *t, const struct schema_set *set)
{
    struct grammar *g = t->s->g;
    gr_expr words = t->s->words->never;
    if (set->null) words = gr_or(g, words, gr_literal(g, "None"));
    if (set->truth) words = gr_or(g, words, gr_literal(g, "True"));
    if (set->untruth) words = gr_or(g, words, gr_literal(g, "False"));
    return words;
}

/* The set's strings, without those that contain the end tag or are read as another value of the set. */
static gr_expr strings_among(const struct tagged *t, const struct schema_set *set, gr_expr strings)
{
    struct grammar *g = t->s->g;
    gr_expr none = t->s->excluded;
    if (is_never(t->s, strings)) return strings;
    if (set->null) none = gr_or(g, none, t->nulls);
    if (set->truth || set->untruth) none = gr_or(g, none, t->truths);
    if (!is_never(t->s, set->number)) none = gr_or(g, none, t->numbers);
    if (set->n_arrays || set->n_objects) none = gr_or(g, none, t->others);
    return gr_and(g, strings, gr_not(g, none));
}

static gr_expr tagged_value(const struct tagged *t, term value)
{
    struct schema *s = t->s;
    const struct schema_set *set = term_set(s, value), *plain = set ? plain_set(t, value) : NULL;
    if (!plain) return 0;
    struct schema_set rest = *set;
    rest.string = s->words->never;
    gr_expr parts[] = {strings_among(t, set, plain->string), words_among(t, set), emit_set(s, &rest)};
    return schema_checked(s, s->here, "limit", gr_any(s->g, parts, 3));
}

static gr_expr tagged_member(const struct member_form *form, gr_expr key, term value)
{
    const struct tagged *t = (const struct tagged *)form;
    struct grammar *g = t->s->g;
    gr_expr e = tagged_value(t, value);
    if (!e || is_never(t->s, e)) return e;
    return gr_sequence(
        g, (gr_expr[]){gr_literal(g, "<parameter="), key, gr_literal(g, ">\n"), e, gr_literal(g, "\n</parameter>\n")},
        5);
}

/* --- a schema ---------------------------------------------------------------------------------------------- */

static gr_expr pattern(struct tagged *t, const char *text)
{
    return gr_regex(t->s->g, (struct bytes){(const uint8_t *)text, strlen(text)}, GR_WHOLE | GR_DOT_ALL, GR_PLAIN,
                    NULL);
}

/* Strings of any bytes that contain the end tag. */
static gr_expr early_ends(struct grammar *g)
{
    gr_expr any = gr_everything(g);
    return gr_sequence(g, (gr_expr[]){any, gr_literal(g, "</parameter>"), any}, 3);
}

static gr_expr emit_tagged(struct tagged *t)
{
    struct schema *s = t->s;
    const struct schema_set *set = term_set(s, term_of(s, LITERAL(s->root, false, false)));
    gr_expr out = s->words->never;
    s->excluded = early_ends(s->g);
    t->nulls = pattern(t, SPACE "(?:null|None)" SPACE);
    t->truths = pattern(t, SPACE "(?:[tT]rue|[fF]alse)" SPACE);
    t->numbers = pattern(t, SPACE "-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][-+]?[0-9]+)?" SPACE);
    t->others = pattern(t, SPACE "(?:\\[.*\\]|\\{.*\\})" SPACE);
    for (uint32_t i = 0; set && i < set->n_objects && !s->status; i++)
        out = gr_or(s->g, out, emit_members(s, set->objects[i], &t->form));
    return set ? emit_waiting(s, schema_checked(s, s->root, "limit", out)) : 0;
}

int schema_tagged(struct grammar *g, struct mem *mem, struct bytes text, const struct schema_options *options,
                  gr_expr *start, struct error *err)
{
    struct schema s = {.g = g, .mem = mem, .err = err, .options = *options};
    struct schema plain = {.g = g, .mem = mem, .err = err, .options = *options};
    plain.options.plain = true;
    struct tagged t = {{tagged_name, tagged_keys, tagged_member}, &s, &plain, 0, 0, 0, 0};
    *start = 0;
    int status = schema_begin(&s, text);
    if (!status) status = schema_begin(&plain, text);
    if (!status) status = schema_end(&s, emit_tagged(&t), start);
    schema_release(&s);
    schema_release(&plain);
    mem_free(mem, s.nodes);
    mem_free(mem, plain.nodes);
    return status;
}
