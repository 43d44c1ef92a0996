/* SPDX-License-Identifier: MIT
 *
 * The keywords of a schema about objects.
 */
#include "grammar/schema/keywords.h"

static term inner(struct pass *p, uint32_t node, bool negative)
{
    return term_of(p->s, LITERAL(node, false, negative));
}

static void add_object(struct pass *p, const struct object_shape *shape)
{
    pass_add(p, set_of_object(p->s, shape, p->negative));
}

/* Objects that have the name `with` and lack the name `without`; 0: no condition. negative: only objects. */
const struct schema_set *set_of_names(struct schema *s, uint32_t with, uint32_t without, bool negative)
{
    struct object_name *names = schema_take(s, 2, sizeof *names);
    uint32_t n = 0;
    if (!names) return NULL;
    if (with) names[n++] = (struct object_name){with, true, TERM_ANY, true};
    if (without) names[n++] = (struct object_name){without, false, TERM_NONE, true};
    return set_of_object(s, &(struct object_shape){.n_names = n, .names = names, .most = GR_MANY}, negative);
}

/* --- properties --- */

/* The values of the three keywords that divide an object's keys. */
struct sharing {
    uint32_t names, patterns, rest; /* values of the keywords; 0: absent */
    struct object_keys *keys;       /* those of the patterns, then the remaining keys */
    uint32_t n_patterns;
    struct key_set told;            /* keys that names and patterns cover */
};

static bool read_patterns(struct pass *p, struct sharing *h)
{
    struct schema *s = p->s;
    for (uint32_t i = h->patterns ? s->nodes[h->patterns].first : 0; i; i = s->nodes[i].next) {
        struct error err = {0};
        gr_expr keys = gr_regex(s->g, s->names[s->nodes[i].key], GR_SEARCH, GR_JSON, &err);
        if (!keys && err.code == ERR_SCHEMA) schema_refuse(s, p->node, "patternProperties", err.message);
        if (keys) keys = gr_and(s->g, s->words->string, keys);
        if (!schema_checked(s, p->node, "patternProperties", keys)) return false;
        h->keys[h->n_patterns++] = (struct object_keys){{.keys = keys}, inner(p, i, p->negative)};
        h->told.keys = h->told.keys ? gr_or(s->g, h->told.keys, keys) : keys;
    }
    return true;
}

static bool read_sharing(struct pass *p, struct sharing *h)
{
    struct schema *s = p->s;
    *h = (struct sharing){pass_member(p, "properties"),
                          pass_member(p, "patternProperties"),
                          pass_member(p, "additionalProperties"),
                          NULL,
                          0,
                          {0}};
    if (h->names && !pass_expects(p, h->names, JSON_OBJECT, "properties")) return false;
    if (h->patterns && !pass_expects(p, h->patterns, JSON_OBJECT, "patternProperties")) return false;
    uint32_t *names = schema_take(s, h->names ? s->nodes[h->names].count : 0, sizeof *names), n = 0;
    h->keys = schema_take(s, (h->patterns ? s->nodes[h->patterns].count : 0) + 1, sizeof *h->keys);
    if (!names || !h->keys) return (void)(p->set = NULL), false;
    for (uint32_t i = h->names ? s->nodes[h->names].first : 0; i; i = s->nodes[i].next) names[n++] = s->nodes[i].key;
    h->told.n = n;
    h->told.names = names;
    if (!read_patterns(p, h)) return (void)(p->set = NULL), false;
    struct key_set others = h->told;
    others.rest = true;
    if (h->rest) h->keys[h->n_patterns] = (struct object_keys){others, inner(p, h->rest, p->negative)};
    return true;
}

/* Adds objects in which a member, named or not, violates its schema. */
static void not_shared(struct pass *p, const struct sharing *h)
{
    struct schema *s = p->s;
    for (uint32_t i = h->names ? s->nodes[h->names].first : 0; i && p->set; i = s->nodes[i].next) {
        struct object_name *name = schema_take(s, 1, sizeof *name);
        if (!name) return (void)(p->set = NULL);
        *name = (struct object_name){s->nodes[i].key, true, inner(p, i, true), false};
        if (name->value != TERM_NONE)
            add_object(p, &(struct object_shape){.n_names = 1, .names = name, .most = GR_MANY});
    }
    for (uint32_t i = 0; i < h->n_patterns + (h->rest != 0) && p->set; i++)
        if (h->keys[i].value != TERM_NONE)
            add_object(p, &(struct object_shape){.n_exists = 1, .exists = &h->keys[i], .most = GR_MANY});
}

static void pass_properties(struct pass *p)
{
    struct schema *s = p->s;
    struct sharing h;
    uint32_t n = 0;
    if (!p->set || !read_sharing(p, &h) || (!h.names && !h.patterns && !h.rest)) return;
    if (p->negative) return not_shared(p, &h);
    struct object_name *names = schema_take(s, h.told.n, sizeof *names);
    if (!names) return (void)(p->set = NULL);
    for (uint32_t i = h.names ? s->nodes[h.names].first : 0; i; i = s->nodes[i].next)
        names[n++] = (struct object_name){s->nodes[i].key, false, inner(p, i, false), false};
    bool says = h.rest && h.keys[h.n_patterns].value != TERM_ANY;
    struct object_shape shape = {
        .n_names = n, .names = names, .n_keys = h.n_patterns + says, .keys = h.keys, .most = GR_MANY, .seen = h.told};
    if (h.rest) shape.seen = (struct key_set){.rest = true};
    shape.lists = h.names != 0;
    shape.open = h.rest || h.patterns;
    add_object(p, &shape);
}

static void pass_names(struct pass *p)
{
    struct schema *s = p->s;
    uint32_t value = pass_member(p, "propertyNames");
    const struct schema_set *set = value ? schema_set_of(s, value, false) : NULL;
    if (!value) return;
    struct object_keys *bad = schema_take(s, 1, sizeof *bad);
    if (!set || !bad) return (void)(p->set = NULL);
    gr_expr keys = words_but(s, s->words->string, set->string);
    if (!schema_checked(s, p->node, "propertyNames", keys)) return (void)(p->set = NULL);
    *bad = (struct object_keys){{.keys = keys}, p->negative ? TERM_ANY : TERM_NONE};
    if (p->negative && keys != s->words->never)
        add_object(p, &(struct object_shape){.n_exists = 1, .exists = bad, .most = GR_MANY});
    if (!p->negative)
        add_object(
            p, &(struct object_shape){.n_keys = keys != s->words->never, .keys = bad, .most = GR_MANY, .open = true});
}

/* --- required, counts --- */

/* The names in a list of strings, without duplicates. */
static uint32_t *read_names(struct pass *p, uint32_t list, const char *keyword, uint32_t *n)
{
    struct schema *s = p->s;
    *n = 0;
    if (!pass_expects(p, list, JSON_ARRAY, keyword)) return NULL;
    uint32_t *names = schema_take(s, s->nodes[list].count, sizeof *names), all = 0;
    for (uint32_t i = s->nodes[list].first; i && names; i = s->nodes[i].next) {
        if (s->nodes[i].kind != JSON_STRING) return pass_refuse(p, keyword, "a list of names was expected"), NULL;
        names[all++] = schema_name(s, s->nodes[i].text);
    }
    uint32_t *where = names_where(s);
    for (uint32_t i = 0; where && i < all; i++)
        if (!where[names[i]]++) names[(*n)++] = names[i];
    for (uint32_t i = 0; where && i < *n; i++) where[names[i]] = 0;
    if (!where) p->set = NULL;
    return p->set ? names : NULL;
}

/* Objects that have all of these names. */
static const struct schema_set *set_of_required(struct schema *s, const uint32_t *names, uint32_t n, bool negative)
{
    struct object_name *all = schema_take(s, n, sizeof *all);
    for (uint32_t i = 0; all && i < n; i++) all[i] = (struct object_name){names[i], true, TERM_ANY, true};
    return all ? set_of_object(s, &(struct object_shape){.n_names = n, .names = all, .most = GR_MANY}, negative) : NULL;
}

static void pass_required(struct pass *p)
{
    uint32_t list = pass_member(p, "required"), n;
    uint32_t *names = list ? read_names(p, list, "required", &n) : NULL;
    if (!names) return;
    if (!p->negative && n > 0) pass_add(p, set_of_required(p->s, names, n, false));
    for (uint32_t i = 0; p->negative && i < n && p->set; i++) pass_add(p, set_of_names(p->s, 0, names[i], true));
}

static void pass_size(struct pass *p)
{
    uint32_t least = pass_member(p, "minProperties"), most = pass_member(p, "maxProperties");
    uint32_t from = least ? schema_count(p->s, least, "minProperties") : 0,
             to = most ? schema_count(p->s, most, "maxProperties") : GR_MANY;
    if (p->s->status) return (void)(p->set = NULL);
    if (!p->negative) {
        if (from > 0 || to != GR_MANY) add_object(p, &(struct object_shape){.least = from, .most = to});
        return;
    }
    if (from > 0) add_object(p, &(struct object_shape){.most = from - 1});
    if (to != GR_MANY) add_object(p, &(struct object_shape){.least = to + 1, .most = GR_MANY});
}

/* --- dependencies --- */

/* Objects that have all of `list` if they have `name`. */
static void depends_on_names(struct pass *p, uint32_t name, uint32_t list, const char *keyword)
{
    uint32_t n;
    uint32_t *names = read_names(p, list, keyword, &n);
    if (!names || n == 0) return;
    for (uint32_t i = 0; p->negative && i < n && p->set; i++)
        if (names[i] != name) pass_add(p, set_of_names(p->s, name, names[i], true));
    if (p->negative) return;
    pass_add(p, set_or(p->s, set_of_names(p->s, 0, name, false), set_of_required(p->s, names, n, true)));
}

static void depends_on_schema(struct pass *p, uint32_t name, uint32_t schema)
{
    struct schema *s = p->s;
    const struct schema_set *set = schema_set_of(s, schema, p->negative), *with = set_of_names(s, name, 0, true);
    if (p->negative) pass_add(p, set_and(s, with, set));
    else pass_add(p, set_or(s, set_of_names(s, 0, name, false), set_and(s, with, set)));
}

static void pass_dependencies(struct pass *p, const char *keyword)
{
    struct schema *s = p->s;
    uint32_t value = pass_member(p, keyword);
    bool names = keyword[9] == 'R';   /* dependentRequired */
    bool schemas = keyword[9] == 'S'; /* dependentSchemas */
    if (!value || !pass_expects(p, value, JSON_OBJECT, keyword)) return;
    for (uint32_t i = s->nodes[value].first; i && p->set; i = s->nodes[i].next) {
        bool list = names || (!schemas && s->nodes[i].kind == JSON_ARRAY);
        if (list) depends_on_names(p, s->nodes[i].key, i, keyword);
        else depends_on_schema(p, s->nodes[i].key, i);
    }
}

void pass_objects(struct pass *p)
{
    pass_properties(p);
    pass_required(p);
    pass_names(p);
    pass_size(p);
    pass_dependencies(p, "dependentRequired");
    pass_dependencies(p, "dependentSchemas");
    pass_dependencies(p, "dependencies");
}
