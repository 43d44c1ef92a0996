/* SPDX-License-Identifier: MIT
 *
 * Terms to expressions.
 */
#include "grammar/schema/emit.h"

enum { INLINE_DEPTH = 24 }; /* terms inside each other that are made by recursion in C */

/* Any JSON value: one rule, which all open places share. */
static gr_expr any_value(struct schema *s)
{
    gr_expr rule = term_state(s, TERM_ANY)->expr;
    if (!rule) {
        rule = term_state(s, TERM_ANY)->expr = schema_checked(s, s->root, "limit", gr_rule(s->g));
        if (!rule) return 0; /* without a rule, the inner values would ask for it again, without end */
        gr_expr string = words_quoted(s, s->words->string);
        gr_expr arrays = emit_array(s, &ARRAY_ANY), objects = emit_object(s, &OBJECT_ANY);
        gr_expr parts[] = {gr_literal(s->g, "null"),
                           gr_literal(s->g, "true"),
                           gr_literal(s->g, "false"),
                           s->words->written,
                           string,
                           arrays,
                           objects};
        gr_define(s->g, rule, gr_any(s->g, parts, sizeof parts / sizeof *parts));
    }
    return schema_checked(s, s->root, "limit", rule);
}

static bool is_any(const struct schema *s, const struct schema_set *set)
{
    const struct schema_set *any = set_any(s);
    bool words = set->null && set->truth && set->untruth && set->number == any->number && set->string == any->string;
    return words && set->n_arrays == 1 && set->arrays[0] == &ARRAY_ANY && set->n_objects == 1 &&
           set->objects[0] == &OBJECT_ANY;
}

gr_expr emit_set(struct schema *s, const struct schema_set *set)
{
    const struct schema_words *w = s->words;
    uint32_t n = 0;
    gr_expr *parts = schema_take(s, 5 + (uint64_t)set->n_arrays + set->n_objects, sizeof *parts);
    if (!parts) return 0;
    if (is_any(s, set)) return any_value(s);
    if (set->null) parts[n++] = gr_literal(s->g, "null");
    if (set->truth) parts[n++] = gr_literal(s->g, "true");
    if (set->untruth) parts[n++] = gr_literal(s->g, "false");
    parts[n++] = set->number == w->number ? w->written : number_written(s->g, &w->forms, set->number);
    if (!is_never(s, set->string)) parts[n++] = words_quoted(s, set->string);
    for (uint32_t i = 0; i < set->n_arrays && !s->status; i++) parts[n++] = emit_array(s, set->arrays[i]);
    for (uint32_t i = 0; i < set->n_objects && !s->status; i++) parts[n++] = emit_object(s, set->objects[i]);
    return s->status ? 0 : gr_any(s->g, parts, n);
}

static gr_expr rule_of(struct schema *s, term t)
{
    struct term_state *state = term_state(s, t);
    if (!state->rule) state->rule = gr_rule(s->g);
    return schema_checked(s, s->root, "limit", state->rule);
}

/* Makes the expression of a term that has none yet. */
static gr_expr make(struct schema *s, term t)
{
    const struct schema_set *set = term_set(s, t);
    if (!set) return 0;
    term_state(s, t)->open = true;
    gr_expr e = schema_checked(s, s->root, "limit", emit_set(s, set));
    struct term_state *state = term_state(s, t);
    state->open = false;
    if (state->rule && e) gr_define(s->g, state->rule, e);
    return state->expr = state->rule && e ? state->rule : e;
}

gr_expr emit_term(struct schema *s, term t)
{
    if (s->status) return 0;
    if (t == TERM_NONE) return s->words->never;
    if (t == TERM_ANY) return any_value(s);
    struct term_state *state = term_state(s, t);
    if (state->expr) return state->expr;
    if (state->open || s->depth >= INLINE_DEPTH) return rule_of(s, t);
    s->depth++;
    gr_expr e = make(s, t);
    s->depth--;
    return e;
}

gr_expr emit_waiting(struct schema *s, gr_expr e)
{
    /* terms that wait have a rule, but no expression; making them may add more, anywhere */
    for (bool again = true; again && !s->status;) {
        again = false;
        for (term i = 2; i < terms_count(s) && !s->status; i++) {
            if (!term_state(s, i)->rule || term_state(s, i)->expr) continue;
            make(s, i);
            again = true;
        }
    }
    return s->status ? 0 : e;
}

gr_expr emit_whole(struct schema *s, term t) { return emit_waiting(s, emit_term(s, t)); }
