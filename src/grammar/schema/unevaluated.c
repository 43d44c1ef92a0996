/* SPDX-License-Identifier: MIT
 *
 * unevaluatedProperties and unevaluatedItems: the members that no other keyword in this place has evaluated. Each
 * alternative knows which it has evaluated.
 */
#include "grammar/schema/keywords.h"

/* A copy of the shape in which all members count as evaluated; those that were not satisfy `what`. */
static const struct object_shape *rest_of_object(struct pass *p, const struct object_shape *shape, term what)
{
    struct schema *s = p->s;
    struct object_shape *o = schema_take(s, 1, sizeof *o);
    struct object_keys *keys = schema_take(s, (uint64_t)shape->n_keys + 1, sizeof *keys);
    if (!o || !keys) return NULL;
    *o = *shape;
    for (uint32_t i = 0; i < shape->n_keys; i++) keys[i] = shape->keys[i];
    keys[shape->n_keys] = (struct object_keys){
        {.n = shape->seen.n, .names = shape->seen.names, .keys = shape->seen.keys, .rest = true}, what};
    if (!shape->seen.rest && what != TERM_ANY) o->n_keys++;
    o->keys = keys;
    o->seen = (struct key_set){.rest = true};
    o->open = true;
    return o;
}

static const struct array_shape *rest_of_array(struct pass *p, const struct array_shape *shape, term what)
{
    struct schema *s = p->s;
    struct array_shape *o = schema_take(s, 1, sizeof *o);
    uint32_t n = shape->seen != GR_MANY && shape->seen > shape->n_first ? shape->seen : shape->n_first;
    term *first = schema_take(s, n, sizeof *first);
    if (!o || !first) return NULL;
    *o = *shape;
    o->seen = GR_MANY;
    if (shape->seen == GR_MANY) return o;
    if (shape->marks) return pass_refuse(p, "unevaluatedItems", "beside contains it is not supported"), NULL;
    for (uint32_t i = 0; i < n; i++) {
        first[i] = i < shape->n_first ? shape->first[i] : shape->rest;
        if (i >= shape->seen) first[i] = term_and(s, first[i], what);
    }
    o->n_first = n;
    o->first = first;
    o->rest = term_and(s, shape->rest, what);
    return o;
}

static void leave(struct pass *p, const char *keyword, bool arrays)
{
    struct schema *s = p->s;
    uint32_t value = pass_member(p, keyword);
    if (!value) return;
    if (p->negative && s->nodes[value].kind != JSON_TRUE)
        return pass_refuse(p, keyword, "its negation is not supported");
    if (p->negative) return;
    term what = term_of(s, LITERAL(value, false, false));
    struct schema_set *set = schema_take(s, 1, sizeof *set);
    const void **shapes = schema_take(s, arrays ? p->set->n_arrays : p->set->n_objects, sizeof *shapes);
    if (!set || !shapes) return (void)(p->set = NULL);
    *set = *p->set;
    for (uint32_t i = 0; i < (arrays ? set->n_arrays : set->n_objects) && p->set; i++) {
        shapes[i] =
            arrays ? (const void *)rest_of_array(p, set->arrays[i], what) : rest_of_object(p, set->objects[i], what);
        if (!shapes[i]) p->set = NULL;
    }
    if (!p->set) return;
    if (arrays) set->arrays = (const struct array_shape *const *)shapes;
    else set->objects = (const struct object_shape *const *)shapes;
    p->set = set;
}

void pass_unevaluated(struct pass *p)
{
    leave(p, "unevaluatedProperties", false);
    leave(p, "unevaluatedItems", true);
}
