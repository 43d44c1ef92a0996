/* SPDX-License-Identifier: MIT
 *
 * The shape of an object as an expression: its names in their order, each at most once, then the other members.
 *
 * E(i, k) is the expression of what may follow before name i, after k members. It is built from the end, so the later
 * ones are ready. k counts up to where it no longer matters; for most objects it only decides about a comma.
 */
#include "grammar/schema/emit.h"

#include <string.h>

enum { CELLS_MAX = 64, COUNTS_MAX = 40000, WAYS_MAX = 200 };

/* Other keys to which the same keywords apply. */
struct cell {
    gr_expr keys; /* 0: all; the names are excluded at the end */
    term value;
};

struct members {
    struct schema *s;
    uint32_t n, n_cells, least, most;
    uint32_t counts; /* k goes from 0 to this number */
    uint32_t asked;  /* least; or 0 if the required names are as many */
    struct object_name *names;
    bool *have; /* [n] scratch */
    struct cell cells[CELLS_MAX];
    gr_expr other, special; /* any other member; one that must exist (0: none must) */
    const struct member_form *form;
    gr_expr comma;          /* between members */
    bool closed;            /* no other members */
};

/* --- names and cells --------------------------------------------------------------------------------------- */

/* Copies the names, each with all conditions on its value. */
static bool read_names(struct members *m, const struct object_shape *o)
{
    struct schema *s = m->s;
    m->n = o->n_names;
    m->names = schema_take(s, o->n_names, sizeof *m->names);
    if (!m->names) return false;
    if (o->n_names) memcpy(m->names, o->names, o->n_names * sizeof *m->names);
    m->have = schema_take(s, m->n, sizeof *m->have);
    for (uint32_t j = 0; m->have && j < o->n_keys && !s->status; j++) {
        keys_have(s, &o->keys[j].keys, m->names, m->n, m->have);
        for (uint32_t i = 0; i < m->n; i++)
            if (m->have[i]) m->names[i].value = term_and(s, m->names[i].value, o->keys[j].value);
    }
    return !s->status;
}

static gr_expr keys_both(struct schema *s, gr_expr a, gr_expr b)
{
    return a && b ? words_and(s, s->words->string, a, b) : a ? a : b;
}

/* Splits every cell into keys to which a group applies, and the rest. */
static bool split_cells(struct members *m, const struct object_keys *k)
{
    struct schema *s = m->s;
    gr_expr keys = k->keys.keys ? k->keys.keys : s->words->never; /* the names of a group are also names of the shape */
    gr_expr others = words_but(s, s->words->string, keys);
    gr_expr in = k->keys.rest ? others : keys, out = k->keys.rest ? keys : others;
    struct cell parts[2 * CELLS_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_cells && !s->status; i++) {
        struct cell inside = m->cells[i], left = m->cells[i];
        inside.keys = in == s->words->string ? inside.keys : keys_both(s, inside.keys, in);
        inside.value = term_and(s, inside.value, k->value);
        left.keys = keys_both(s, left.keys, out);
        if (!is_never(s, inside.keys)) parts[n++] = inside;
        if (!is_never(s, left.keys)) parts[n++] = left;
    }
    if (n > CELLS_MAX)
        return schema_refuse(s, s->here, "patternProperties", "its patterns overlap in too many ways"), false;
    memcpy(m->cells, parts, n * sizeof *parts);
    m->n_cells = n;
    return !s->status;
}

/* An expression for all keys that are not named. */
static gr_expr names_expr(struct members *m)
{
    uint32_t *names = schema_take(m->s, m->n, sizeof *names);
    for (uint32_t i = 0; names && i < m->n; i++) names[i] = m->names[i].name;
    return names ? keys_expr(m->s, &(struct key_set){.n = m->n, .names = names, .rest = true}) : 0;
}

static gr_expr member(struct schema *s, gr_expr key, gr_expr value)
{
    return gr_sequence(s->g, (gr_expr[]){words_quoted(s, key), s->words->colon, value}, 3);
}

/* A member with one of some keys that are not named. */
static gr_expr keyed_member(struct members *m, gr_expr keys, term value)
{
    struct schema *s = m->s;
    if (m->form && !is_never(s, keys)) keys = m->form->keys(m->form, keys);
    if (!keys || is_never(s, keys)) return keys;
    if (m->form) return m->form->member(m->form, keys, value);
    gr_expr e = emit_term(s, value);
    return is_never(s, e) ? e : member(s, keys, e);
}

static gr_expr named_member(struct members *m, const struct object_name *n)
{
    struct schema *s = m->s;
    gr_expr name = m->form ? m->form->name(m->form, n->name) : 0;
    if (m->form) return name ? m->form->member(m->form, name, n->value) : 0;
    gr_expr e = emit_term(s, n->value);
    return is_never(s, e) ? e : member(s, words_of_name(s, n->name), e);
}

/* Any other member with a key of `keys` (0: all) and a value that also satisfies `value`. */
static gr_expr other_member(struct members *m, gr_expr keys, term value)
{
    struct schema *s = m->s;
    gr_expr out = s->words->never, free = 0;
    for (uint32_t i = 0; i < m->n_cells && !s->status; i++) {
        term what = term_and(s, m->cells[i].value, value);
        if (term_hopeless(s, what) || is_never(s, m->cells[i].keys)) continue;
        if (!free) free = names_expr(m);
        gr_expr key = keys_both(s, keys_both(s, keys, m->cells[i].keys), free);
        out = gr_or(s->g, out, keyed_member(m, key, what));
    }
    return schema_checked(s, s->here, "limit", out);
}

static bool read_others(struct members *m, const struct object_shape *o)
{
    m->n_cells = !m->closed;
    m->cells[0] = (struct cell){0, TERM_ANY};
    for (uint32_t i = 0; i < o->n_keys; i++)
        if (!split_cells(m, &o->keys[i])) return false;
    m->other = other_member(m, 0, TERM_ANY);
    return m->other != 0;
}

/* --- a body ------------------------------------------------------------------------------------------------ */

static gr_expr comma(struct members *m, uint32_t count, gr_expr e) { return count ? gr_cat(m->s->g, m->comma, e) : e; }

/* The expression after the names, with k members so far. Two other members may have the same key, so with more than one
 * the number of properties is unknown. */
static gr_expr tail(struct members *m, uint32_t k)
{
    struct schema *s = m->s;
    gr_expr empty = gr_empty(s->g), never = s->words->never;
    uint32_t least = m->asked > k ? m->asked - k : 0, most = m->most == GR_MANY ? GR_MANY : m->most - k;
    if (m->special && least == 0) least = 1;
    if (least > most) return never;
    if (is_never(s, m->other)) return least ? never : empty;
    if (least > 1)
        return (void)schema_refuse(s, s->here, "minProperties",
                                   "it can require at most one property that is not named"),
               0;
    if (most == 0) return empty;
    uint32_t more = most == GR_MANY ? GR_MANY : most - 1;
    gr_expr others = gr_repeat(s->g, gr_cat(s->g, m->comma, m->other), 0, more);
    if (!m->special) {
        gr_expr some = comma(m, k, gr_cat(s->g, m->other, others));
        return least ? some : gr_or(s->g, empty, some);
    }
    if (k > 0) return gr_cat(s->g, others, comma(m, k, m->special)); /* if a key occurs twice, the last one counts */
    gr_expr before = gr_repeat(s->g, gr_cat(s->g, m->other, m->comma), 0, more);
    return gr_cat(s->g, before, m->special);
}

static gr_expr body(struct members *m)
{
    struct schema *s = m->s;
    uint32_t needed = 0;
    for (uint32_t i = 0; i < m->n; i++) needed += m->names[i].required;
    m->asked = m->least > needed ? m->least : 0;
    m->counts = m->most != GR_MANY ? (m->most < m->n ? m->most : m->n) : m->asked;
    if (m->counts < 1) m->counts = 1;
    if ((uint64_t)(m->n + 1) * (m->counts + 1) > COUNTS_MAX)
        return (void)schema_refuse(s, s->here, "limit", "it has too many properties"), 0;
    gr_expr *after = schema_take(s, m->counts + 1, sizeof *after);
    bool exact = m->asked || m->most != GR_MANY; /* k is the exact number of members, so not below `needed` here */
    for (uint32_t k = 0; after && k <= m->counts; k++)
        after[k] = m->most < k || (exact && k < needed) ? s->words->never : tail(m, k);
    for (uint32_t i = m->n; after && i-- > 0 && !s->status;) {
        gr_expr one = named_member(m, &m->names[i]);
        if (is_never(s, one) && !m->names[i].required) continue;
        for (uint32_t k = 0; k <= m->counts; k++) { /* after[k + 1] still belongs to name i + 1 */
            gr_expr then =
                k >= m->most ? s->words->never : gr_cat(s->g, comma(m, k, one), after[k < m->counts ? k + 1 : k]);
            after[k] = m->names[i].required ? then : gr_or(s->g, then, after[k]);
        }
    }
    return s->status || !after ? 0 : after[0];
}

static gr_expr one_way(struct members *m)
{
    struct schema *s = m->s;
    gr_expr inside = schema_checked(s, s->here, "limit", body(m));
    if (!inside || is_never(s, inside) || m->form) return inside;
    return gr_sequence(s->g, (gr_expr[]){s->words->open, inside, s->words->close}, 3);
}

/* --- members that must exist ------------------------------------------------------------------------------- */

/* The choices for a member that must exist: some of the names, or another member. */
struct existing {
    uint32_t n, *names; /* indexes of m->names; m->n: another member */
    gr_expr other;
};

static bool read_existing(struct members *m, const struct object_keys *k, struct existing *e)
{
    struct schema *s = m->s;
    e->names = schema_take(s, (uint64_t)m->n + 1, sizeof *e->names);
    keys_have(s, &k->keys, m->names, m->n, m->have);
    for (uint32_t i = 0; e->names && i < m->n; i++)
        if (m->have[i] && !terms_apart(s, m->names[i].value, k->value)) e->names[e->n++] = i;
    e->other = e->names ? other_member(m, keys_expr(s, &k->keys), k->value) : 0;
    if (e->other && !is_never(s, e->other)) e->names[e->n++] = m->n;
    return !s->status;
}

/* The members for one choice of each member that must exist. */
static gr_expr one_choice(struct members *m, const struct object_shape *o, const struct existing *all, uint64_t way)
{
    struct schema *s = m->s;
    struct object_name *names = m->names, *own = schema_take(s, m->n, sizeof *own);
    if (!own) return 0;
    if (m->n) memcpy(own, names, m->n * sizeof *own);
    m->special = 0;
    for (uint32_t i = 0; i < o->n_exists; way /= all[i++].n) {
        uint32_t at = all[i].names[way % all[i].n];
        if (at == m->n && m->special)
            return schema_refuse(s, s->here, "not", "it requires more than one property that is not named"), 0;
        if (at == m->n) {
            m->special = all[i].other;
            continue;
        }
        own[at].required = true;
        own[at].value = term_and(s, own[at].value, o->exists[i].value);
    }
    m->names = own;
    gr_expr e = s->status ? 0 : one_way(m);
    m->names = names;
    return e;
}

static gr_expr with_existing(struct members *m, const struct object_shape *o)
{
    struct schema *s = m->s;
    uint64_t ways = 1;
    gr_expr out = s->words->never;
    struct existing *all = schema_take(s, o->n_exists, sizeof *all);
    for (uint32_t i = 0; all && i < o->n_exists && ways <= WAYS_MAX; i++)
        if (read_existing(m, &o->exists[i], &all[i])) ways *= all[i].n;
    if (ways > WAYS_MAX) schema_refuse(s, s->here, "not", "it can be broken in too many ways");
    for (uint64_t way = 0; way < ways && !s->status; way++) out = gr_or(s->g, out, one_choice(m, o, all, way));
    return s->status ? 0 : out;
}

static gr_expr emit_all(struct schema *s, const struct object_shape *o, const struct member_form *form, bool closed)
{
    struct members *m = schema_take(s, 1, sizeof *m);
    if (!m) return 0;
    *m = (struct members){.s = s, .least = o->least, .most = o->most, .form = form, .closed = closed};
    m->comma = form ? gr_empty(s->g) : s->words->comma;
    if (!read_names(m, o) || !read_others(m, o)) return 0;
    return o->n_exists ? with_existing(m, o) : one_way(m);
}

/* A shape that is impossible without other members keeps them, even if it should be closed. */
gr_expr emit_members(struct schema *s, const struct object_shape *o, const struct member_form *form)
{
    bool closed = s->options.closed && o->lists && !o->open;
    gr_expr e = emit_all(s, o, form, closed);
    return closed && e && is_never(s, e) ? emit_all(s, o, form, false) : e;
}

gr_expr emit_object(struct schema *s, const struct object_shape *o) { return emit_members(s, o, NULL); }
