/* SPDX-License-Identifier: MIT
 *
 * The keywords of a schema about arrays.
 */
#include "grammar/schema/keywords.h"

static term inner(struct pass *p, uint32_t node, bool negative)
{
    return term_of(p->s, LITERAL(node, false, negative));
}

static void add_array(struct pass *p, const struct array_shape *shape)
{
    pass_add(p, set_of_array(p->s, shape, p->negative));
}

/* --- items --- */

/* Adds arrays in which one item of a list differs from its schema. */
static void not_first(struct pass *p, uint32_t list)
{
    uint32_t at = 0;
    for (uint32_t i = p->s->nodes[list].first; i && p->set; i = p->s->nodes[i].next) {
        term *first = schema_take(p->s, ++at, sizeof *first);
        if (!first) return (void)(p->set = NULL);
        first[at - 1] = inner(p, i, true);
        add_array(p, &(struct array_shape){.n_first = at, .first = first, .least = at, .most = GR_MANY});
    }
}

static void pass_items(struct pass *p)
{
    struct schema *s = p->s;
    uint32_t list = pass_member(p, "prefixItems"), rest = pass_member(p, "items"), at = 0;
    if (rest && s->nodes[rest].kind == JSON_ARRAY) {
        if (list) return pass_refuse(p, "items", "a list in it excludes prefixItems");
        list = rest;
        rest = pass_member(p, "additionalItems");
    }
    if (!p->set || (!list && !rest) || (list && !pass_expects(p, list, JSON_ARRAY, "prefixItems"))) return;
    uint32_t n = list ? s->nodes[list].count : 0;
    if (p->negative) {
        if (list) not_first(p, list);
        struct array_contains *one = schema_take(s, 1, sizeof *one);
        if (!one) return (void)(p->set = NULL);
        *one = (struct array_contains){rest ? inner(p, rest, true) : TERM_NONE, n, 1, GR_MANY};
        if (one->value != TERM_NONE)
            add_array(p, &(struct array_shape){.n_contains = 1, .contains = one, .least = n + 1, .most = GR_MANY});
        return;
    }
    term *first = schema_take(s, n, sizeof *first);
    for (uint32_t i = list ? s->nodes[list].first : 0; i && first; i = s->nodes[i].next)
        first[at++] = inner(p, i, false);
    term other = rest ? inner(p, rest, false) : TERM_ANY;
    add_array(p, &(struct array_shape){
                     .n_first = n, .first = first, .rest = other, .most = GR_MANY, .seen = rest ? GR_MANY : n});
}

/* --- contains, counts --- */

static void add_contains(struct pass *p, struct array_contains one, bool marks)
{
    struct array_contains *own = schema_take(p->s, 1, sizeof *own);
    if (!own) return (void)(p->set = NULL);
    *own = one;
    bool says = one.least > 0 || one.most != GR_MANY;
    add_array(p, &(struct array_shape){
                     .n_contains = says, .contains = own, .most = GR_MANY, .least = one.least, .marks = marks});
}

static void pass_contains(struct pass *p)
{
    uint32_t value = pass_member(p, "contains"), least = pass_member(p, "minContains"),
             most = pass_member(p, "maxContains");
    if (!value) return;
    uint32_t from = least ? schema_count(p->s, least, "minContains") : 1,
             to = most ? schema_count(p->s, most, "maxContains") : GR_MANY;
    term what = inner(p, value, false);
    if (p->s->status) return (void)(p->set = NULL);
    if (!p->negative) return add_contains(p, (struct array_contains){what, 0, from, to}, p->s->tracks);
    if (from > 0) add_contains(p, (struct array_contains){what, 0, 0, from - 1}, false);
    if (to != GR_MANY) add_contains(p, (struct array_contains){what, 0, to + 1, GR_MANY}, false);
}

static void pass_length(struct pass *p)
{
    uint32_t least = pass_member(p, "minItems"), most = pass_member(p, "maxItems");
    uint32_t from = least ? schema_count(p->s, least, "minItems") : 0,
             to = most ? schema_count(p->s, most, "maxItems") : GR_MANY;
    if (p->s->status) return (void)(p->set = NULL);
    if (!p->negative) {
        if (from > 0 || to != GR_MANY) add_array(p, &(struct array_shape){.least = from, .most = to});
        return;
    }
    if (from > 0) add_array(p, &(struct array_shape){.most = from - 1});
    if (to != GR_MANY) add_array(p, &(struct array_shape){.least = to + 1, .most = GR_MANY});
}

static void pass_unique(struct pass *p)
{
    uint32_t value = pass_member(p, "uniqueItems");
    if (!value || p->s->nodes[value].kind == JSON_FALSE) return;
    if (p->s->nodes[value].kind != JSON_TRUE) return pass_refuse(p, "uniqueItems", "true or false was expected");
    if (p->negative) return pass_refuse(p, "uniqueItems", "its negation is not supported");
    add_array(p, &(struct array_shape){.unique = true, .most = GR_MANY});
}

void pass_arrays(struct pass *p)
{
    pass_items(p);
    pass_contains(p);
    pass_length(p);
    pass_unique(p);
}
