/* SPDX-License-Identifier: MIT
 *
 * A value (of const or enum) as the set of values equal to it, or the complement of that set. Inner values are terms,
 * so nothing recurses.
 */
#include "grammar/schema/sets.h"

/* --- arrays ---------------------------------------------------------------------------------------------- */

static term item_term(struct schema *s, uint32_t node, bool negative)
{
    return term_of(s, LITERAL(node, true, negative));
}

static const struct schema_set *array_itself(struct schema *s, uint32_t node)
{
    uint32_t n = s->nodes[node].count, at = 0;
    term *first = schema_take(s, n, sizeof *first);
    if (!first) return NULL;
    for (uint32_t i = s->nodes[node].first; i; i = s->nodes[i].next) first[at++] = item_term(s, i, false);
    return set_of_array(s, &(struct array_shape){.n_first = n, .first = first, .least = n, .most = n}, true);
}

/* Arrays that are shorter, longer, or differ in one item. */
static const struct schema_set *other_arrays(struct schema *s, uint32_t node)
{
    uint32_t n = s->nodes[node].count, at = 0;
    const struct schema_set *set = set_of_array(s, &(struct array_shape){.least = n + 1, .most = GR_MANY}, false);
    if (n > 0) set = set_or(s, set, set_of_array(s, &(struct array_shape){.most = n - 1}, true));
    for (uint32_t i = s->nodes[node].first; i && set; i = s->nodes[i].next) {
        term *first = schema_take(s, ++at, sizeof *first); /* items before it are TERM_ANY, which is 0 */
        if (!first) return NULL;
        first[at - 1] = item_term(s, i, true);
        set = set_or(
            s, set, set_of_array(s, &(struct array_shape){.n_first = at, .first = first, .least = n, .most = n}, true));
    }
    return set;
}

/* --- objects --------------------------------------------------------------------------------------------- */

static const struct schema_set *object_itself(struct schema *s, uint32_t node)
{
    uint32_t n = s->nodes[node].count, at = 0;
    struct object_name *names = schema_take(s, n, sizeof *names);
    uint32_t *own = schema_take(s, n, sizeof *own);
    struct object_keys *others = schema_take(s, 1, sizeof *others);
    if (!names || !own || !others) return NULL;
    for (uint32_t i = s->nodes[node].first; i; i = s->nodes[i].next, at++) {
        own[at] = s->nodes[i].key;
        names[at] = (struct object_name){own[at], true, item_term(s, i, false), false};
    }
    *others = (struct object_keys){{.n = n, .names = own, .rest = true}, TERM_NONE};
    return set_of_object(
        s, &(struct object_shape){.n_names = n, .names = names, .n_keys = 1, .keys = others, .most = GR_MANY}, true);
}

/* Objects that have another name, lack a name, or have another value for a name. */
static const struct schema_set *other_objects(struct schema *s, uint32_t node)
{
    uint32_t n = s->nodes[node].count, at = 0;
    uint32_t *own = schema_take(s, n, sizeof *own);
    struct object_keys *others = schema_take(s, 1, sizeof *others);
    if (!own || !others) return NULL;
    for (uint32_t i = s->nodes[node].first; i; i = s->nodes[i].next) own[at++] = s->nodes[i].key;
    *others = (struct object_keys){{.n = n, .names = own, .rest = true}, TERM_ANY};
    const struct schema_set *set =
        set_of_object(s, &(struct object_shape){.n_exists = 1, .exists = others, .most = GR_MANY}, false);
    for (uint32_t i = s->nodes[node].first; i && set; i = s->nodes[i].next) {
        struct object_name *names = schema_take(s, 2, sizeof *names);
        if (!names) return NULL;
        names[0] = (struct object_name){s->nodes[i].key, false, TERM_NONE, false};
        names[1] = (struct object_name){s->nodes[i].key, true, item_term(s, i, true), false};
        set = set_or(s, set,
                     set_of_object(s, &(struct object_shape){.n_names = 1, .names = names, .most = GR_MANY}, true));
        set = set_or(s, set,
                     set_of_object(s, &(struct object_shape){.n_names = 1, .names = names + 1, .most = GR_MANY}, true));
    }
    return set;
}

/* --- any value ------------------------------------------------------------------------------------------- */

static const struct schema_set *of_word(struct schema *s, enum json_kind kind, bool negative)
{
    struct schema_set *set = schema_take(s, 1, sizeof *set);
    if (!set) return NULL;
    *set = *(negative ? set_any(s) : set_none(s));
    *(kind == JSON_NULL ? &set->null : kind == JSON_TRUE ? &set->truth : &set->untruth) = !negative;
    return set;
}

static const struct schema_set *read_value(struct schema *s, uint32_t node, bool negative)
{
    enum json_kind kind = s->nodes[node].kind;
    gr_expr string;
    switch (kind) {
    case JSON_OBJECT: return negative ? other_objects(s, node) : object_itself(s, node);
    case JSON_ARRAY: return negative ? other_arrays(s, node) : array_itself(s, node);
    case JSON_STRING:
        string = words_const_string(s, node);
        return string ? set_of_string(s, negative ? words_but(s, s->words->string, string) : string, !negative) : NULL;
    case JSON_NUMBER: return set_of_number(s, words_const_number(s, node, negative), !negative);
    default: return of_word(s, kind, negative);
    }
}

const struct schema_set *value_set_of(struct schema *s, uint32_t node, bool negative)
{
    const struct schema_set **kept = &s->nodes[node].sets[2 + negative];
    if (!*kept && !s->status) *kept = read_value(s, node, negative);
    return s->status ? NULL : *kept;
}
