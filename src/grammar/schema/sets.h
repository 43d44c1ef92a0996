/* SPDX-License-Identifier: MIT
 *
 * The values that a schema allows, as a set with one part per type.
 *
 * Numbers and strings are expressions. Arrays and objects are alternatives of shapes, each a conjunction. Inner values
 * are terms: conjunctions of schemas, values and their negations, which are evaluated only when an expression is made
 * of them. So recursion reaches the same term again, which becomes a rule. Sets never change, so they share their
 * contents.
 */
#ifndef QUERN_SCHEMA_SETS_H
#define QUERN_SCHEMA_SETS_H

#include "grammar/schema/words.h"

/* The number of a conjunction of literals. */
typedef uint32_t term;
enum { TERM_ANY = 0, TERM_NONE = 1 };

/* A schema or a value at a node, or its negation. */
#define LITERAL(node, value, negative) ((uint32_t)(node) << 2 | (value ? 2u : 0u) | (negative ? 1u : 0u))

/* A set of keys: the names and the keys of the expression; `rest`: all other keys instead. */
struct key_set {
    uint32_t n;
    const uint32_t *names;
    gr_expr keys;
    bool rest;
};

struct object_name {
    uint32_t name;
    bool required;
    term value;
    bool late; /* only required: it comes after the described ones */
};

struct object_keys {
    struct key_set keys;
    term value;
};

struct object_shape {
    uint32_t n_names, n_keys, n_exists, least, most;
    const struct object_name *names;  /* in the order in which they are written */
    const struct object_keys *keys;   /* conditions on other members: all that have the key apply */
    const struct object_keys *exists; /* for each of these a matching member must exist */
    struct key_set seen;              /* keys that unevaluatedProperties ignores; rest: all keys */
    /* for schema_options.closed: `properties` has names; a keyword is about other members */
    bool lists, open;
};

struct array_contains {
    term value;
    uint32_t from, least, most; /* counts items from this position on */
};

struct array_shape {
    uint32_t n_first, n_contains, least, most;
    const term *first;
    term rest;
    const struct array_contains *contains;
    bool unique, marks; /* marks: `contains` has evaluated items, which unevaluatedItems would have to ignore */
    uint32_t seen;      /* number of first items that unevaluatedItems ignores; GR_MANY: all */
};

struct schema_set {
    bool null, truth, untruth;
    gr_expr number, string;
    uint32_t n_arrays, n_objects;
    const struct array_shape *const *arrays;
    const struct object_shape *const *objects;
};

/* --- terms --- */

bool terms_new(struct schema *s);
term term_of(struct schema *s, uint32_t literal);
term term_and(struct schema *s, term a, term b);
const struct schema_set *term_set(struct schema *s, term t);  /* NULL after an error */
const uint32_t *term_literals(const struct schema *s, term t, uint32_t *n);
/* types and values show that nothing satisfies t */
bool term_hopeless(struct schema *s, term t);
bool terms_apart(struct schema *s, term a, term b); /* the same for the conjunction of both, without making that term */
struct term_state {
    gr_expr expr, rule;
    bool open;
};
struct term_state *term_state(struct schema *s, term t);      /* valid until another term is made */
uint32_t terms_count(const struct schema *s);

/* --- sets --- */

const struct schema_set *set_any(const struct schema *s);
const struct schema_set *set_none(const struct schema *s);
bool set_is_empty(const struct schema *s, const struct schema_set *a);
const struct schema_set *set_and(struct schema *s, const struct schema_set *a, const struct schema_set *b);
const struct schema_set *set_or(struct schema *s, const struct schema_set *a, const struct schema_set *b);
/* Sets with a condition on one type. All other types are complete (positive) or empty (negative). */
const struct schema_set *set_of_number(struct schema *s, gr_expr e, bool negative);
const struct schema_set *set_of_string(struct schema *s, gr_expr e, bool negative);
const struct schema_set *set_of_array(struct schema *s, const struct array_shape *shape, bool negative);
const struct schema_set *set_of_object(struct schema *s, const struct object_shape *shape, bool negative);
/* a copy in which nothing counts as evaluated */
const struct schema_set *set_unseen(struct schema *s, const struct schema_set *a);

extern const struct array_shape ARRAY_ANY;
extern const struct object_shape OBJECT_ANY;
uint32_t *names_where(struct schema *s); /* scratch, indexed by name: zero, and must be zero again */
/* have[i]: whether names[i] is among the keys. */
void keys_have(struct schema *s, const struct key_set *k, const struct object_name *names, uint32_t n, bool *have);
struct key_set keys_and_more(struct schema *s, struct key_set a, struct key_set b);
gr_expr keys_expr(struct schema *s, const struct key_set *k);

/* --- sets of schemas and values: keywords.c, logic.c, values.c; NULL after an error --- */

const struct schema_set *schema_set_of(struct schema *s, uint32_t node, bool negative);
const struct schema_set *value_set_of(struct schema *s, uint32_t node, bool negative);

#endif
