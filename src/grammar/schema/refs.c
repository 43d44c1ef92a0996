/* SPDX-License-Identifier: MIT
 *
 * Targets of references: the resources ($id), anchors and pointers of the document. Nothing is ever fetched.
 */
#include "grammar/nodes.h"
#include "grammar/schema/tree.h"

#include <string.h>

/* --- URIs ------------------------------------------------------------------------------------------------- */

/* Length of a scheme with its colon; 0: none. */
static size_t scheme_of(struct bytes uri)
{
    for (size_t i = 0; i < uri.size; i++) {
        int c = uri.data[i], letter = c | 32;
        bool inside =
            (letter >= 'a' && letter <= 'z') || (i > 0 && ((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'));
        if (c == ':' && i > 0) return i + 1;
        if (!inside) return 0;
    }
    return 0;
}

/* Position of a URI's path, after scheme and authority. */
static size_t path_of(struct bytes uri)
{
    size_t at = scheme_of(uri);
    if (uri.size - at < 2 || uri.data[at] != '/' || uri.data[at + 1] != '/') return at;
    for (at += 2; at < uri.size && uri.data[at] != '/';) at++;
    return at;
}

/* Removes "." and ".." from a path, in place. Returns the new length. */
static size_t without_dots(uint8_t *path, size_t n)
{
    size_t out = 0;
    for (size_t at = 0, end; at < n; at = end) {
        end = at;
        while (end < n && path[end] != '/') end++;
        bool last = end == n, one = end - at == 1 && path[at] == '.',
             two = end - at == 2 && path[at] == '.' && path[at + 1] == '.';
        if (!last) end++;
        if (two && out > 1) {
            out--;
            while (out > 0 && path[out - 1] != '/') out--;
        } else if (!one && !two) {
            memmove(path + out, path + at, end - at);
            out += end - at;
        }
    }
    return out;
}

/* Resolves a reference against a base; both without fragments. */
static struct bytes resolved(struct schema *s, struct bytes base, struct bytes ref)
{
    size_t keep = path_of(base), from = keep;
    if (ref.size == 0) return base;
    if (scheme_of(ref)) return ref;
    if (ref.size > 1 && ref.data[0] == '/' && ref.data[1] == '/') keep = from = scheme_of(base);
    else if (ref.data[0] != '/')
        for (size_t i = keep; i < base.size; i++)
            if (base.data[i] == '/') keep = i + 1;
    uint8_t *out = schema_take(s, keep + ref.size, 1);
    if (!out) return ref;
    if (keep) memcpy(out, base.data, keep);
    memcpy(out + keep, ref.data, ref.size);
    return (struct bytes){out, from + without_dots(out + from, keep + ref.size - from)};
}

/* Returns a reference without its fragment. *fragment: the text after the #, or NULL data if there is no #. */
static struct bytes cut(struct bytes ref, struct bytes *fragment)
{
    const uint8_t *hash = ref.size ? memchr(ref.data, '#', ref.size) : NULL;
    size_t n = hash ? (size_t)(hash - ref.data) : ref.size;
    *fragment = hash ? (struct bytes){hash + 1, ref.size - n - 1} : (struct bytes){NULL, 0};
    return (struct bytes){ref.data, n};
}

/* --- places ------------------------------------------------------------------------------------------------ */

static bool is_one_of(struct bytes key, const char *const *list)
{
    for (; *list; list++)
        if (bytes_equal(key, *list)) return true;
    return false;
}

static enum schema_place place_below(const struct schema *s, uint32_t node)
{
    static const char *const maps[] = {"properties",       "patternProperties", "$defs", "definitions",
                                       "dependentSchemas", "dependencies",      NULL};
    static const char *const lists[] = {"allOf", "anyOf", "oneOf", "prefixItems", NULL};
    static const char *const schemas[] = {"items",
                                          "additionalItems",
                                          "contains",
                                          "additionalProperties",
                                          "propertyNames",
                                          "unevaluatedItems",
                                          "unevaluatedProperties",
                                          "not",
                                          "if",
                                          "then",
                                          "else",
                                          "contentSchema",
                                          NULL};
    const struct schema_node *n = &s->nodes[node];
    enum schema_place up = s->nodes[n->parent].place;
    if (up == PLACE_MAP || up == PLACE_LIST) return PLACE_SCHEMA;
    if (up != PLACE_SCHEMA || !n->key) return PLACE_OTHER; /* elements of a list that are not schemas */
    struct bytes key = s->names[n->key];
    if (is_one_of(key, maps)) return PLACE_MAP;
    if (is_one_of(key, lists)) return PLACE_LIST;
    if (!is_one_of(key, schemas)) return PLACE_OTHER;
    return bytes_equal(key, "items") && n->kind == JSON_ARRAY ? PLACE_LIST : PLACE_SCHEMA;
}

static uint32_t string_member(const struct schema *s, uint32_t node, const char *key)
{
    uint32_t value = schema_member(s, node, key);
    return value && s->nodes[value].kind == JSON_STRING ? value : 0;
}

static void add_anchor(struct schema *s, uint32_t node, struct bytes name, bool dynamic)
{
    s->anchors[++s->n_anchors] =
        (struct schema_anchor){schema_name(s, name), node, s->nodes[node].resource, 0, dynamic};
}

/* Records the address and the anchors of a schema. */
static void place_schema(struct schema *s, uint32_t node)
{
    uint32_t id = string_member(s, node, s->draft == 4 ? "id" : "$id"), anchor = string_member(s, node, "$anchor");
    uint32_t dynamic = string_member(s, node, "$dynamicAnchor");
    bool ignored = s->draft <= 7 && schema_member(s, node, "$ref");
    struct bytes fragment = {NULL, 0};
    if (id && !ignored) {
        struct bytes uri = cut(s->nodes[id].text, &fragment);
        if (uri.size) {
            struct bytes whole = resolved(s, s->resources[s->nodes[node].resource].uri, uri);
            s->resources[++s->n_resources] = (struct schema_resource){whole, schema_name(s, whole), node};
            s->nodes[node].resource = s->n_resources;
        }
        if (fragment.size) add_anchor(s, node, fragment, false); /* the form of anchors in drafts up to 7 */
    }
    if (anchor) add_anchor(s, node, s->nodes[anchor].text, false);
    if (dynamic) add_anchor(s, node, s->nodes[dynamic].text, true);
}

/* Number of a draft by its address, whatever the scheme; 0: unknown. */
static int draft_named(struct bytes uri)
{
    static const struct {
        const char *name;
        int draft;
    } drafts[] = {{"draft-04/schema", 4},         {"draft-06/schema", 6},         {"draft-07/schema", 7},
                  {"draft/2019-09/schema", 2019}, {"draft/2020-12/schema", 2020}, {"schema", 2020},
                  {"draft-03/schema", 3},         {"draft-02/schema", 3},         {"draft-01/schema", 3}};
    static const char host[] = "//json-schema.org/";
    size_t skip = scheme_of(uri), n = sizeof host - 1;
    if (uri.size - skip < n || memcmp(uri.data + skip, host, n) != 0) return 0;
    struct bytes name = {uri.data + skip + n, uri.size - skip - n};
    for (size_t i = 0; i < sizeof drafts / sizeof *drafts; i++)
        if (bytes_equal(name, drafts[i].name)) return drafts[i].draft;
    return 0;
}

static int draft_of(struct schema *s)
{
    struct bytes fragment;
    uint32_t value = string_member(s, s->root, "$schema");
    int draft = value ? draft_named(cut(s->nodes[value].text, &fragment)) : 0;
    if (draft == 3) return schema_refuse(s, s->root, "$schema", "drafts before 4 are not supported");
    if (value && !draft)
        schema_note(s, value,
                    "this dialect is unknown; the schema is read as draft 2020-12 with the keywords of older ones",
                    false);
    s->draft = draft ? draft : s->options.draft ? s->options.draft : 2020;
    return s->status;
}

/* Indexes resources and anchors by name: the first resource of each name, and all its anchors in their order. */
static int name_places(struct schema *s)
{
    s->n_named = s->n_names;
    s->resource_named = schema_take(s, (uint64_t)s->n_named + 1, sizeof *s->resource_named);
    s->anchor_named = schema_take(s, (uint64_t)s->n_named + 1, sizeof *s->anchor_named);
    for (uint32_t i = s->n_resources; i > 0 && !s->status; i--) s->resource_named[s->resources[i].name] = i;
    for (uint32_t i = s->n_anchors; i > 0 && !s->status; i--) {
        s->anchors[i].next = s->anchor_named[s->anchors[i].name];
        s->anchor_named[s->anchors[i].name] = i;
    }
    return s->status;
}

int schema_places(struct schema *s)
{
    uint32_t n = 2, anchors = 2;
    if (draft_of(s)) return s->status;
    s->nodes[s->root].place = PLACE_SCHEMA;
    for (uint32_t i = 2; i <= s->n_nodes; i++) {
        if (!s->nodes[i].parent) continue;
        s->nodes[i].place = place_below(s, i);
        if (!s->nodes[i].key) continue;
        struct bytes key = s->names[s->nodes[i].key];
        bool id = bytes_equal(key, "$id") || bytes_equal(key, "id");
        n += id;
        anchors += id || bytes_equal(key, "$anchor") || bytes_equal(key, "$dynamicAnchor");
        s->n_outermost += s->nodes[i].kind == JSON_TRUE && bytes_equal(key, "$recursiveAnchor");
        s->tracks |= bytes_equal(key, "unevaluatedProperties") || bytes_equal(key, "unevaluatedItems");
    }
    s->resources = schema_take(s, n, sizeof *s->resources);
    s->anchors = schema_take(s, anchors, sizeof *s->anchors);
    if (s->status) return s->status;
    s->resources[0].node = s->root;
    for (uint32_t i = 1; i <= s->n_nodes && !s->status; i++) {
        if (s->nodes[i].parent) s->nodes[i].resource = s->nodes[s->nodes[i].parent].resource;
        if (s->nodes[i].place == PLACE_SCHEMA) place_schema(s, i);
    }
    return name_places(s);
}

/* --- references --------------------------------------------------------------------------------------------- */

static int hex_of(int c)
{
    int letter = c | 32;
    return c >= '0' && c <= '9' ? c - '0' : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* Decodes %XX to bytes. */
static struct bytes decoded(struct schema *s, struct bytes text)
{
    uint8_t *out = schema_take(s, text.size, 1);
    size_t n = 0;
    for (size_t i = 0; out && i < text.size; i++) {
        bool escape =
            text.data[i] == '%' && text.size - i > 2 && hex_of(text.data[i + 1]) >= 0 && hex_of(text.data[i + 2]) >= 0;
        out[n++] = escape ? (uint8_t)(hex_of(text.data[i + 1]) * 16 + hex_of(text.data[i + 2])) : text.data[i];
        if (escape) i += 2;
    }
    return (struct bytes){out, n};
}

/* Children by a step of a pointer: the number of a name, or ELEMENT + an index. */
#define ELEMENT (UINT32_C(1) << 31)

static struct schema_child *child_slot(const struct schema *s, uint32_t parent, uint32_t step)
{
    uint32_t mask = s->child_slots - 1, h = (parent * 0x9E3779B1u ^ step) * 0x85EBCA6Bu, at = (h ^ h >> 15) & mask;
    while (s->children[at].node && (s->children[at].step != step || s->nodes[s->children[at].node].parent != parent))
        at = (at + 1) & mask;
    return &s->children[at];
}

/* Indexes all children. Called for the first pointer. */
static bool find_children(struct schema *s)
{
    if (s->children) return true;
    for (s->child_slots = 64; s->child_slots < 2 * s->n_nodes;) s->child_slots *= 2;
    s->children = schema_take(s, s->child_slots, sizeof *s->children);
    for (uint32_t parent = 1; s->children && parent <= s->n_nodes; parent++) {
        uint32_t place = ELEMENT;
        for (uint32_t i = s->nodes[parent].first; i; i = s->nodes[i].next, place++) {
            uint32_t step = s->nodes[i].key ? s->nodes[i].key : place;
            *child_slot(s, parent, step) = (struct schema_child){i, step};
        }
    }
    return s->children != NULL;
}

/* Follows one step of a pointer, in which ~0 and ~1 are decoded in place. Returns the node; 0: it does not exist. */
static uint32_t follow(struct schema *s, uint32_t node, uint8_t *step, size_t size)
{
    size_t n = 0;
    uint32_t index = 0;
    for (size_t i = 0; i < size; i++) {
        bool escape = step[i] == '~' && i + 1 < size && (step[i + 1] == '0' || step[i + 1] == '1');
        step[n++] = escape ? (step[i + 1] == '0' ? '~' : '/') : step[i];
        i += escape;
    }
    bool list = s->nodes[node].kind == JSON_ARRAY;
    if (!list && s->nodes[node].kind != JSON_OBJECT) return 0;
    for (size_t i = 0; list && i < n; i++) {
        if (step[i] < '0' || step[i] > '9' || index > 1000000) return 0;
        index = index * 10 + step[i] - '0';
    }
    return child_slot(s, node, list ? ELEMENT + index : schema_name(s, (struct bytes){step, n}))->node;
}

static uint32_t pointed(struct schema *s, uint32_t node, struct bytes pointer)
{
    uint8_t *own = schema_take(s, pointer.size, 1);
    if (!own || !find_children(s)) return 0;
    memcpy(own, pointer.data, pointer.size);
    for (size_t at = 0, end; at < pointer.size && node; at = end) {
        end = ++at; /* after the slash */
        while (end < pointer.size && own[end] != '/') end++;
        node = follow(s, node, own + at, end - at);
    }
    return node;
}

static uint32_t resource_of(struct schema *s, uint32_t node, struct bytes uri)
{
    uint32_t name = schema_name(s, resolved(s, s->resources[s->nodes[node].resource].uri, uri));
    uint32_t found = name <= s->n_named ? s->resource_named[name] : 0;
    return found ? found : UINT32_MAX;
}

/* The node of an anchor. *dynamic: the target may depend on the path of references to it. */
static uint32_t anchored(struct schema *s, uint32_t resource, struct bytes text, bool *dynamic)
{
    uint32_t found = 0, others = 0, name = schema_name(s, text);
    for (uint32_t i = name <= s->n_named ? s->anchor_named[name] : 0; i && node_work(s->g, 1); i = s->anchors[i].next) {
        if (s->anchors[i].resource == resource && (!found || !s->anchors[i].dynamic)) {
            found = s->anchors[i].node;
            *dynamic = s->anchors[i].dynamic;
        } else others += s->anchors[i].dynamic;
    }
    *dynamic = *dynamic && others > 0;
    return found;
}

/* Target of "#": its resource. Refused if `$recursiveAnchor: true` in it and in another one makes the outermost the
 * target. */
static uint32_t recursive_target(struct schema *s, uint32_t node, uint32_t value)
{
    uint32_t home = s->resources[s->nodes[node].resource].node, anchor = schema_member(s, home, "$recursiveAnchor");
    if (!bytes_equal(s->nodes[value].text, "#"))
        return (void)schema_refuse(s, node, "$recursiveRef", "\"#\" was expected"), 0;
    if (s->n_outermost < 2 || !anchor || s->nodes[anchor].kind != JSON_TRUE) return home;
    return (void)schema_refuse(s, node, "$recursiveRef", "its target depends on the path of references to it"), 0;
}

uint32_t schema_target(struct schema *s, uint32_t node, uint32_t value, const char *keyword)
{
    struct bytes fragment;
    bool dynamic = false;
    if (s->nodes[value].kind != JSON_STRING) return (void)schema_refuse(s, node, keyword, "a string was expected"), 0;
    if (!strcmp(keyword, "$recursiveRef")) return recursive_target(s, node, value);
    struct bytes uri = cut(s->nodes[value].text, &fragment);
    uint32_t resource = uri.size ? resource_of(s, node, uri) : s->nodes[node].resource;
    if (resource == UINT32_MAX)
        return (void)schema_refuse(s, node, keyword, "it refers to another document, and nothing is fetched"), 0;
    fragment = decoded(s, fragment);
    if (s->status) return 0;
    uint32_t target = s->resources[resource].node;
    if (fragment.size && fragment.data[0] == '/') target = pointed(s, target, fragment);
    else if (fragment.size) target = anchored(s, resource, fragment, &dynamic);
    if (!target) return (void)schema_refuse(s, node, keyword, "its target does not exist"), 0;
    if (dynamic && keyword[1] == 'd')
        return (void)schema_refuse(s, node, keyword, "its target depends on the path of references to it"), 0;
    return target;
}
