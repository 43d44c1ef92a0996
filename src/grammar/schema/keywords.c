/* SPDX-License-Identifier: MIT
 *
 * The keywords of a schema: their lists, and those about types, values, numbers and strings.
 */
#include "grammar/schema/keywords.h"

#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 80 }; /* of schemas in one place: $ref to $ref, allOf in allOf */

/* --- the lists --------------------------------------------------------------------------------------------- */

/* Keywords with conditions on values. */
static const char *const kept[] = {
    "type",
    "enum",
    "const",
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "format",
    "prefixItems",
    "items",
    "additionalItems",
    "contains",
    "minContains",
    "maxContains",
    "maxItems",
    "minItems",
    "uniqueItems",
    "unevaluatedItems",
    "properties",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "maxProperties",
    "minProperties",
    "required",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
};

/* Keywords without conditions on values, from drafts and from common extensions. Names that begin with x- count too. */
static const char *const idle[] = {
    "$schema",
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$vocabulary",
    "$defs",
    "definitions",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "example",
    "readOnly",
    "writeOnly",
    "deprecated",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "discriminator",
    "xml",
    "externalDocs",
    "markdownDescription",
    "enumDescriptions",
    "markdownEnumDescriptions",
    "propertyOrdering",
    "deprecationMessage",
    "errorMessage",
};

/* Keywords of draft 3 that had conditions, which are not supported. */
static const char *const gone[] = {"extends", "disallow", "divisibleBy"};

#define IS_AMONG(name, list) is_among(name, list, sizeof list / sizeof *list)

static bool is_among(struct bytes name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes_equal(name, list[i])) return true;
    return false;
}

/* The keyword that a name would be if the case of letters did not matter; NULL: none. */
static const char *meant(struct bytes name)
{
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        size_t n = strlen(kept[i]), at = 0;
        while (n == name.size && at < n && (name.data[at] | 32) == (kept[i][at] | 32)) at++;
        if (at == n && n == name.size) return kept[i];
    }
    return NULL;
}

static void note_unknown(struct schema *s, uint32_t node, struct bytes name)
{
    char text[QUOTED], sentence[QUOTED + 60];
    const char *word = meant(name);
    snprintf(sentence, sizeof sentence, "the keyword \"%s\" is unknown and is ignored", quoted(name, text));
    if (word) snprintf(sentence, sizeof sentence, "the keyword is unknown and is ignored; is %s meant?", word);
    if (bytes_equal(name, "nullable"))
        snprintf(sentence, sizeof sentence,
                 "it is not a JSON Schema keyword and allows no null: write \"type\": [..., \"null\"]");
    schema_note(s, node, sentence, false);
}

/* Notes the members of a schema without effect, and refuses unsupported ones. Drafts up to 7 ignore everything beside
 * $ref. */
static void encode_over(struct schema *s, uint32_t node)
{
    bool alone = s->draft <= 7 && schema_member(s, node, "$ref");
    char word[QUOTED];
    for (uint32_t i = s->nodes[node].first; i && !s->status; i = s->nodes[i].next) {
        struct bytes name = s->names[s->nodes[i].key];
        bool id = s->draft == 4 && bytes_equal(name, "id");
        if (id || IS_AMONG(name, idle) || (name.size > 2 && name.data[0] == 'x' && name.data[1] == '-')) continue;
        if (alone && IS_AMONG(name, kept)) {
            if (!bytes_equal(name, "$ref"))
                schema_note(s, i, "beside $ref it has no effect in drafts up to 7; use allOf for both", false);
        } else if (IS_AMONG(name, gone))
            schema_refuse(s, node, quoted(name, word), "this keyword of draft 3 is not supported");
        else if (!IS_AMONG(name, kept)) note_unknown(s, i, name);
    }
}

/* --- a pass ------------------------------------------------------------------------------------------------ */

void pass_add(struct pass *p, const struct schema_set *one)
{
    if (!p->set || !one || p->s->status) p->set = NULL;
    else p->set = p->negative ? set_or(p->s, p->set, one) : set_and(p->s, p->set, one);
}

uint32_t pass_member(const struct pass *p, const char *keyword)
{
    return p->set ? schema_keyword(p->s, p->node, keyword) : 0;
}

void pass_refuse(struct pass *p, const char *keyword, const char *sentence)
{
    schema_refuse(p->s, p->node, keyword, sentence);
    p->set = NULL;
}

bool pass_expects(struct pass *p, uint32_t value, enum json_kind kind, const char *keyword)
{
    if (p->s->nodes[value].kind == kind) return true;
    pass_refuse(p, keyword, kind == JSON_ARRAY ? "a list was expected" : "an object was expected");
    return false;
}

/* --- types and values --------------------------------------------------------------------------------------- */

enum { T_NULL = 1, T_BOOLEAN = 2, T_NUMBER = 4, T_INTEGER = 8, T_STRING = 16, T_ARRAY = 32, T_OBJECT = 64 };

static unsigned type_of(struct pass *p, uint32_t value)
{
    static const char *const names[] = {"null", "boolean", "number", "integer", "string", "array", "object"};
    const struct schema_node *n = &p->s->nodes[value];
    for (unsigned i = 0; n->kind == JSON_STRING && i < sizeof names / sizeof *names; i++)
        if (bytes_equal(n->text, names[i])) return 1u << i;
    pass_refuse(p, "type", "a type is null, boolean, number, integer, string, array or object");
    return 0;
}

static void pass_type(struct pass *p, uint32_t value)
{
    const struct schema_words *w = p->s->words;
    const struct schema_set *any = set_any(p->s);
    unsigned types = 0;
    if (p->s->nodes[value].kind == JSON_ARRAY)
        for (uint32_t i = p->s->nodes[value].first; i && p->set; i = p->s->nodes[i].next) types |= type_of(p, i);
    else types = type_of(p, value);
    if (!p->set) return;
    bool integer = (types & T_INTEGER) && !(types & T_NUMBER);
    if (p->negative) types = ~types;
    struct schema_set *set = schema_take(p->s, 1, sizeof *set);
    if (!set) return (void)(p->set = NULL);
    *set = *set_none(p->s);
    set->null = types & T_NULL;
    set->truth = set->untruth = types & T_BOOLEAN;
    if (integer) set->number = p->negative ? number_not_integer(p->s->g, &w->forms) : w->integer;
    else if (types & T_NUMBER) set->number = w->number;
    if (types & T_STRING) set->string = w->string;
    if (types & T_ARRAY) set->arrays = any->arrays, set->n_arrays = 1;
    if (types & T_OBJECT) set->objects = any->objects, set->n_objects = 1;
    pass_add(p, set);
}

/* An enum of many strings is one list of alternatives, instead of a union step by step. */
static const struct schema_set *set_of_enum(struct pass *p, uint32_t list)
{
    struct schema *s = p->s;
    uint32_t n = 0;
    gr_expr *texts = schema_take(s, s->nodes[list].count, sizeof *texts);
    const struct schema_set *set = p->negative ? set_any(s) : set_none(s);
    for (uint32_t i = s->nodes[list].first; i && texts && set; i = s->nodes[i].next) {
        if (s->nodes[i].kind == JSON_STRING) texts[n++] = words_const_string(s, i);
        else set = p->negative ? set_and(s, set, value_set_of(s, i, true)) : set_or(s, set, value_set_of(s, i, false));
    }
    if (!texts || !set || n == 0) return set;
    gr_expr strings = schema_checked(s, p->node, "enum", gr_any(s->g, texts, n));
    if (!strings) return NULL;
    if (!p->negative) return set_or(s, set, set_of_string(s, strings, true));
    return set_and(s, set, set_of_string(s, words_but(s, s->words->string, strings), false));
}

static void pass_values(struct pass *p)
{
    struct schema *s = p->s;
    uint32_t type = pass_member(p, "type"), value = pass_member(p, "const"), list = pass_member(p, "enum");
    if (type) pass_type(p, type);
    if (value && p->set) pass_add(p, value_set_of(s, value, p->negative));
    if (list && p->set && pass_expects(p, list, JSON_ARRAY, "enum")) pass_add(p, set_of_enum(p, list));
}

static void pass_words(struct pass *p)
{
    struct schema *s = p->s;
    for (uint32_t i = s->nodes[p->node].first; i && p->set; i = s->nodes[i].next) {
        char keyword[32];
        struct bytes name = s->names[s->nodes[i].key];
        if (name.size >= sizeof keyword) continue;
        if (name.size) memcpy(keyword, name.data, name.size);
        keyword[name.size] = 0;
        if (words_is_number(keyword))
            pass_add(p, set_of_number(s, words_number(s, i, keyword, p->negative), p->negative));
        else if (words_is_string(keyword))
            pass_add(p, set_of_string(s, words_string(s, i, keyword, p->negative), p->negative));
    }
}

/* --- a schema ----------------------------------------------------------------------------------------------- */

static const struct schema_set *read_schema(struct schema *s, uint32_t node, bool negative)
{
    struct pass p = {s, node, negative, negative ? set_none(s) : set_any(s)};
    encode_over(s, node);
    pass_values(&p);
    pass_words(&p);
    pass_arrays(&p);
    pass_objects(&p);
    pass_logic(&p);
    pass_unevaluated(&p);
    if (s->status) return NULL;
    return negative ? set_unseen(s, p.set) : p.set;
}

const struct schema_set *schema_set_of(struct schema *s, uint32_t node, bool negative)
{
    static const struct schema_set open = {0};
    enum json_kind kind = s->nodes[node].kind;
    if (s->status) return NULL;
    if (kind == JSON_TRUE || kind == JSON_FALSE) return (kind == JSON_TRUE) != negative ? set_any(s) : set_none(s);
    if (kind != JSON_OBJECT)
        return (void)schema_refuse(s, node, "schema", "a schema is an object, true or false"), NULL;
    const struct schema_set *set = s->nodes[node].sets[negative];
    if (set == &open) schema_refuse(s, node, "$ref", "it leads back to itself");
    else if (!set && s->depth == DEPTH_MAX) schema_refuse(s, node, "limit", "schemas refer to each other too deeply");
    if (s->status || set) return s->status ? NULL : set;
    uint32_t before = s->here;
    s->depth++;
    s->here = node;
    s->nodes[node].sets[negative] = &open;
    set = read_schema(s, node, negative);
    s->nodes[node].sets[negative] = set;
    s->here = before;
    s->depth--;
    return set;
}
