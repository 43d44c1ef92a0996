/* SPDX-License-Identifier: MIT
 *
 * Sets of values: AND and OR. An AND of alternatives makes all pairs. Pairs that are easily seen to be impossible are
 * dropped, and too many pairs are refused.
 */
#include "grammar/schema/sets.h"

#include <string.h>

enum { SHAPES_MAX = 400 };

const struct array_shape ARRAY_ANY = {.most = GR_MANY};
const struct object_shape OBJECT_ANY = {.most = GR_MANY};

/* --- keys ------------------------------------------------------------------------------------------------ */

uint32_t *names_where(struct schema *s)
{
    if (s->where_room < s->name_slots) {
        s->where = schema_take(s, s->name_slots, sizeof *s->where);
        s->where_room = s->where ? s->name_slots : 0;
    }
    return s->status ? NULL : s->where;
}

void keys_have(struct schema *s, const struct key_set *k, const struct object_name *names, uint32_t n, bool *have)
{
    uint32_t *where = names_where(s);
    for (uint32_t i = 0; where && i < k->n; i++) where[k->names[i]] = 1;
    for (uint32_t i = 0; where && i < n; i++)
        have[i] = (where[names[i].name] || words_have_name(s, k->keys, names[i].name)) != k->rest;
    for (uint32_t i = 0; where && i < k->n; i++) where[k->names[i]] = 0;
}

static gr_expr some_keys(struct schema *s, const struct key_set *k)
{
    gr_expr *texts = schema_take(s, (uint64_t)k->n + 1, sizeof *texts);
    if (!texts) return 0;
    for (uint32_t i = 0; i < k->n; i++) texts[i] = words_of_name(s, k->names[i]);
    texts[k->n] = k->keys ? k->keys : s->words->never;
    return gr_any(s->g, texts, k->n + 1);
}

gr_expr keys_expr(struct schema *s, const struct key_set *k)
{
    gr_expr some = some_keys(s, k);
    return schema_checked(s, s->here, "limit", k->rest && some ? words_but(s, s->words->string, some) : some);
}

struct key_set keys_and_more(struct schema *s, struct key_set a, struct key_set b)
{
    if (a.rest || (b.n == 0 && !b.keys && !b.rest)) return a;
    if (b.rest || (a.n == 0 && !a.keys)) return b;
    uint32_t *names = schema_take(s, (uint64_t)a.n + b.n, sizeof *names);
    if (!names) return a;
    if (a.n) memcpy(names, a.names, a.n * sizeof *names);
    if (b.n) memcpy(names + a.n, b.names, b.n * sizeof *names);
    gr_expr keys = a.keys && b.keys ? gr_or(s->g, a.keys, b.keys) : a.keys ? a.keys : b.keys;
    return (struct key_set){.n = a.n + b.n, .names = names, .keys = keys};
}

/* --- objects --------------------------------------------------------------------------------------------- */

/* Whether a required name has no value that both shapes allow. */
static bool names_apart(struct schema *s, const struct object_shape *a, const struct object_shape *b,
                        const uint32_t *where)
{
    for (uint32_t i = 0; i < b->n_names; i++) {
        uint32_t at = where[b->names[i].name];
        if (!at || !(a->names[at - 1].required || b->names[i].required)) continue;
        if (terms_apart(s, a->names[at - 1].value, b->names[i].value)) return true;
    }
    return false;
}

/* Appends b's names of one kind (late or not) that are not in out[0 .. n). For names that are, adds b's conditions.
 * where: index in out + 1. Returns the new number. */
static uint32_t join_some(struct schema *s, struct object_name *out, uint32_t n, const struct object_shape *b,
                          bool late, uint32_t *where)
{
    for (uint32_t i = 0; i < b->n_names; i++) {
        const struct object_name *one = &b->names[i];
        if (one->late != late) continue;
        uint32_t at = where[one->name];
        if (!at) {
            where[one->name] = ++n;
            out[n - 1] = *one;
            continue;
        }
        out[at - 1].required |= one->required;
        out[at - 1].value = term_and(s, out[at - 1].value, one->value);
    }
    return n;
}

/* a's names, then b's, those that are only required after the others. NULL also if the two exclude each other. */
static struct object_name *join_names(struct schema *s, const struct object_shape *a, const struct object_shape *b,
                                      uint32_t *n)
{
    uint32_t *where = names_where(s);
    for (uint32_t i = 0; where && i < a->n_names; i++) where[a->names[i].name] = i + 1;
    bool can = where && !names_apart(s, a, b, where);
    for (uint32_t i = 0; where && i < a->n_names; i++) where[a->names[i].name] = 0;
    struct object_name *names = can ? schema_take(s, (uint64_t)a->n_names + b->n_names, sizeof *names) : NULL;
    *n = 0;
    for (int turn = 0; names && turn < 4; turn++) *n = join_some(s, names, *n, turn & 1 ? b : a, turn >= 2, where);
    for (uint32_t i = 0; names && i < *n; i++) where[names[i].name] = 0;
    return names;
}

static const struct object_keys *join_keys(struct schema *s, const struct object_keys *a, uint32_t n,
                                           const struct object_keys *b, uint32_t m)
{
    if (n == 0 || m == 0) return n ? a : b;
    struct object_keys *out = schema_take(s, (uint64_t)n + m, sizeof *out);
    if (!out) return NULL;
    memcpy(out, a, n * sizeof *out);
    memcpy(out + n, b, m * sizeof *out);
    return out;
}

/* Whether a required name is forbidden. */
static bool contradicts(struct schema *s, const struct object_shape *o)
{
    bool *have = NULL, found = o->least > o->most;
    for (uint32_t i = 0; i < o->n_keys && !found; i++) {
        if (o->keys[i].value != TERM_NONE || !o->n_names) continue;
        if (!have && !(have = schema_take(s, o->n_names, sizeof *have))) return false;
        keys_have(s, &o->keys[i].keys, o->names, o->n_names, have);
        for (uint32_t j = 0; j < o->n_names && !found; j++) found = o->names[j].required && have[j];
    }
    return found;
}

/* NULL: no object satisfies both. */
static const struct object_shape *object_and(struct schema *s, const struct object_shape *a,
                                             const struct object_shape *b)
{
    if (a == &OBJECT_ANY || b == &OBJECT_ANY) return a == &OBJECT_ANY ? b : a;
    uint32_t n;
    struct object_name *names = join_names(s, a, b, &n);
    struct object_shape *o = names ? schema_take(s, 1, sizeof *o) : NULL;
    if (!o) return NULL;
    o->n_names = n;
    o->names = names;
    o->keys = join_keys(s, a->keys, a->n_keys, b->keys, b->n_keys);
    o->exists = join_keys(s, a->exists, a->n_exists, b->exists, b->n_exists);
    o->n_keys = a->n_keys + b->n_keys;
    o->n_exists = a->n_exists + b->n_exists;
    o->least = a->least > b->least ? a->least : b->least;
    o->most = a->most < b->most ? a->most : b->most;
    o->seen = keys_and_more(s, a->seen, b->seen);
    o->lists = a->lists || b->lists;
    o->open = a->open || b->open;
    return s->status || contradicts(s, o) ? NULL : o;
}

/* --- arrays ---------------------------------------------------------------------------------------------- */

static const struct array_contains *join_contains(struct schema *s, const struct array_shape *a,
                                                  const struct array_shape *b)
{
    if (a->n_contains == 0 || b->n_contains == 0) return a->n_contains ? a->contains : b->contains;
    struct array_contains *out = schema_take(s, (uint64_t)a->n_contains + b->n_contains, sizeof *out);
    if (!out) return NULL;
    memcpy(out, a->contains, a->n_contains * sizeof *out);
    memcpy(out + a->n_contains, b->contains, b->n_contains * sizeof *out);
    return out;
}

static term item_of(const struct array_shape *a, uint32_t i) { return i < a->n_first ? a->first[i] : a->rest; }

/* NULL: no array satisfies both. */
static const struct array_shape *array_and(struct schema *s, const struct array_shape *a, const struct array_shape *b)
{
    if (a == &ARRAY_ANY || b == &ARRAY_ANY) return a == &ARRAY_ANY ? b : a;
    struct array_shape *o = schema_take(s, 1, sizeof *o);
    uint32_t n = a->n_first > b->n_first ? a->n_first : b->n_first;
    term *first = schema_take(s, n, sizeof *first);
    if (!o || !first) return NULL;
    *o = (struct array_shape){
        .n_first = n, .first = first, .rest = term_and(s, a->rest, b->rest), .contains = join_contains(s, a, b)};
    o->n_contains = a->n_contains + b->n_contains;
    o->least = a->least > b->least ? a->least : b->least;
    o->most = a->most < b->most ? a->most : b->most;
    o->unique = a->unique || b->unique;
    o->marks = a->marks || b->marks;
    o->seen = a->seen > b->seen ? a->seen : b->seen;
    bool none = o->least > n && term_hopeless(s, o->rest);
    for (uint32_t i = 0; i < n; i++) {
        first[i] = term_and(s, item_of(a, i), item_of(b, i));
        none |= i < o->least && term_hopeless(s, first[i]);
    }
    return s->status || none || o->least > o->most ? NULL : o;
}

/* --- lists of shapes --------------------------------------------------------------------------------------- */

/* ANDs two shapes of either kind: lists of shapes are lists of pointers. */
typedef const void *shape_and(struct schema *s, const void *a, const void *b);

static const void *pair_arrays(struct schema *s, const void *a, const void *b) { return array_and(s, a, b); }
static const void *pair_objects(struct schema *s, const void *a, const void *b) { return object_and(s, a, b); }

struct shapes {
    const void *const *all;
    uint32_t n;
};

static struct shapes too_many(struct schema *s)
{
    schema_refuse(s, s->here, "limit", "it has too many combinations of alternatives");
    return (struct shapes){NULL, 0};
}

static struct shapes shapes_and(struct schema *s, struct shapes a, struct shapes b, const void *any, shape_and *both)
{
    if (a.n == 0 || (b.n == 1 && b.all[0] == any)) return a;
    if (b.n == 0 || (a.n == 1 && a.all[0] == any)) return b;
    if ((uint64_t)a.n * b.n > (uint64_t)SHAPES_MAX * SHAPES_MAX) return too_many(s);
    const void *found[SHAPES_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < a.n; i++) {
        for (uint32_t j = 0; j < b.n && !s->status; j++) {
            const void *one = both(s, a.all[i], b.all[j]);
            if (!one) continue;
            if (n == SHAPES_MAX) return too_many(s);
            found[n++] = one;
        }
    }
    const void **out = schema_take(s, n, sizeof *out);
    if (out && n) memcpy(out, found, n * sizeof *out);
    return (struct shapes){out, out ? n : 0};
}

/* The name, if the shape is about one name only; NULL: it is not. */
static const struct object_name *only_name(const struct object_shape *o)
{
    return o->n_names == 1 && !o->n_keys && !o->n_exists && !o->least && o->most == GR_MANY ? o->names : NULL;
}

/* Unites "without this name" and "with it and such a value" to "with such a value, if it exists". Negations contain
 * many such pairs. */
static const struct object_shape *united(struct schema *s, const struct object_shape *a, const struct object_shape *b)
{
    const struct object_name *x = only_name(a), *y = only_name(b);
    if (!x || !y || x->name != y->name || s->tracks) return NULL;
    if (!x->required && x->value == TERM_NONE && y->required) return united(s, b, a);
    if (!x->required || y->required || y->value != TERM_NONE) return NULL;
    struct object_shape *o = schema_take(s, 1, sizeof *o);
    struct object_name *name = schema_take(s, 1, sizeof *name);
    if (!o || !name) return NULL;
    *name = (struct object_name){x->name, false, x->value, x->late};
    *o = *a;
    o->names = name;
    return o;
}

/* Adds an alternative to the n existing ones. Returns the new number. */
static uint32_t add_shape(struct schema *s, const void **out, uint32_t n, const void *one, bool objects)
{
    for (uint32_t i = 0; i < n; i++) {
        if (out[i] == one) return n;
        const struct object_shape *both = objects ? united(s, out[i], one) : NULL;
        if (both) return out[i] = both, n;
    }
    out[n] = one;
    return n + 1;
}

static struct shapes shapes_or(struct schema *s, struct shapes a, struct shapes b, const void *any)
{
    if (a.n == 0 || (a.n == b.n && a.all == b.all)) return b;
    if (b.n == 0) return a;
    const void **out = schema_take(s, (uint64_t)a.n + b.n, sizeof *out);
    uint32_t n = 0;
    if (a.n + b.n > SHAPES_MAX) return too_many(s);
    for (uint32_t i = 0; out && i < a.n + b.n; i++) {
        const void *one = i < a.n ? a.all[i] : b.all[i - a.n];
        n = add_shape(s, out, n, one, any == &OBJECT_ANY);
        if (one == any && !s->tracks) {
            out[0] = any;
            return (struct shapes){out, 1};
        }
    }
    return (struct shapes){out, n};
}

static struct shapes arrays_of(const struct schema_set *a)
{
    return (struct shapes){(const void *const *)a->arrays, a->n_arrays};
}
static struct shapes objects_of(const struct schema_set *a)
{
    return (struct shapes){(const void *const *)a->objects, a->n_objects};
}

static const struct schema_set *with_shapes(struct schema *s, struct schema_set set, struct shapes arrays,
                                            struct shapes objects)
{
    set.arrays = (const struct array_shape *const *)arrays.all;
    set.n_arrays = arrays.n;
    set.objects = (const struct object_shape *const *)objects.all;
    set.n_objects = objects.n;
    if (!set.number || !set.string) schema_checked(s, s->here, "limit", 0);
    struct schema_set *out = schema_take(s, 1, sizeof *out);
    if (!out) return NULL;
    *out = set;
    return out;
}

/* --- sets ------------------------------------------------------------------------------------------------ */

bool set_is_empty(const struct schema *s, const struct schema_set *a)
{
    gr_expr never = s->words->never;
    return !a->null && !a->truth && !a->untruth && a->number == never && a->string == never && a->n_arrays == 0 &&
           a->n_objects == 0;
}

const struct schema_set *set_and(struct schema *s, const struct schema_set *a, const struct schema_set *b)
{
    if (!a || !b || s->status) return NULL;
    if (a == b || b == set_any(s) || a == set_none(s)) return a;
    if (a == set_any(s) || b == set_none(s)) return b;
    struct schema_set set = {
        .null = a->null && b->null, .truth = a->truth && b->truth, .untruth = a->untruth && b->untruth};
    set.number = words_and(s, s->words->number, a->number, b->number);
    set.string = words_and(s, s->words->string, a->string, b->string);
    struct shapes arrays = shapes_and(s, arrays_of(a), arrays_of(b), &ARRAY_ANY, pair_arrays);
    return with_shapes(s, set, arrays, shapes_and(s, objects_of(a), objects_of(b), &OBJECT_ANY, pair_objects));
}

static gr_expr words_or(struct schema *s, gr_expr all, gr_expr a, gr_expr b)
{
    if (a == all || b == all || a == b) return a == b ? a : all;
    return a == s->words->never ? b : b == s->words->never ? a : gr_or(s->g, a, b);
}

const struct schema_set *set_or(struct schema *s, const struct schema_set *a, const struct schema_set *b)
{
    if (!a || !b || s->status) return NULL;
    if (a == b || b == set_none(s)) return a;
    if (a == set_none(s) || (b == set_any(s) && !s->tracks)) return b;
    if (a == set_any(s) && !s->tracks) return a;
    struct schema_set set = {
        .null = a->null || b->null, .truth = a->truth || b->truth, .untruth = a->untruth || b->untruth};
    set.number = words_or(s, s->words->number, a->number, b->number);
    set.string = words_or(s, s->words->string, a->string, b->string);
    struct shapes arrays = shapes_or(s, arrays_of(a), arrays_of(b), &ARRAY_ANY);
    return with_shapes(s, set, arrays, shapes_or(s, objects_of(a), objects_of(b), &OBJECT_ANY));
}

/* --- sets of one assertion --------------------------------------------------------------------------------- */

static const struct schema_set *changed(struct schema *s, struct schema_set set)
{
    struct schema_set *out = schema_take(s, 1, sizeof *out);
    if (out) *out = set;
    return out;
}

const struct schema_set *set_of_number(struct schema *s, gr_expr e, bool negative)
{
    struct schema_set set = *(negative ? set_none(s) : set_any(s));
    set.number = e;
    return e ? changed(s, set) : NULL;
}

const struct schema_set *set_of_string(struct schema *s, gr_expr e, bool negative)
{
    struct schema_set set = *(negative ? set_none(s) : set_any(s));
    set.string = e;
    return e ? changed(s, set) : NULL;
}

const struct schema_set *set_of_array(struct schema *s, const struct array_shape *shape, bool negative)
{
    struct schema_set set = *(negative ? set_none(s) : set_any(s));
    struct array_shape *own = schema_take(s, 1, sizeof *own);
    const struct array_shape **list = schema_take(s, 1, sizeof *list);
    if (!own || !list) return NULL;
    *own = *shape;
    list[0] = own;
    set.arrays = list;
    set.n_arrays = shape->least <= shape->most;
    return changed(s, set);
}

const struct schema_set *set_of_object(struct schema *s, const struct object_shape *shape, bool negative)
{
    struct schema_set set = *(negative ? set_none(s) : set_any(s));
    struct object_shape *own = schema_take(s, 1, sizeof *own);
    const struct object_shape **list = schema_take(s, 1, sizeof *list);
    if (!own || !list) return NULL;
    *own = *shape;
    list[0] = own;
    set.objects = list;
    set.n_objects = shape->least <= shape->most;
    return changed(s, set);
}

const struct schema_set *set_unseen(struct schema *s, const struct schema_set *a)
{
    if (!a || !s->tracks) return a;
    struct schema_set set = *a;
    const struct array_shape **arrays = schema_take(s, a->n_arrays, sizeof *arrays);
    const struct object_shape **objects = schema_take(s, a->n_objects, sizeof *objects);
    for (uint32_t i = 0; arrays && i < a->n_arrays; i++) {
        struct array_shape *own = schema_take(s, 1, sizeof *own);
        if (!own) return NULL;
        *own = *a->arrays[i];
        own->marks = false;
        own->seen = 0;
        arrays[i] = own;
    }
    for (uint32_t i = 0; objects && i < a->n_objects; i++) {
        struct object_shape *own = schema_take(s, 1, sizeof *own);
        if (!own) return NULL;
        *own = *a->objects[i];
        own->seen = (struct key_set){0};
        objects[i] = own;
    }
    set.arrays = arrays;
    set.objects = objects;
    return arrays && objects ? changed(s, set) : NULL;
}
