/* SPDX-License-Identifier: MIT
 *
 * Terms: sorted lists of literals, each made only once.
 */
#include "grammar/schema/sets.h"

#include <string.h>

enum { TERMS_MAX = 20000, FEW = 4096 };

struct one_term {
    const uint32_t *literals;
    uint32_t n;
    const struct schema_set *set;
    struct term_state state;
};

struct schema_terms {
    struct one_term *all;     /* [n_slots / 2], n of them used */
    uint32_t n, n_slots;
    uint32_t *slots;          /* [n_slots], a power of two: hash table of terms by their literals */
    const struct schema_set *any, *none;
    uint32_t *scratch, room; /* literals of a term that may exist already */
};

static struct schema_set *new_set(struct schema *s) { return schema_take(s, 1, sizeof(struct schema_set)); }

static uint32_t hash_of(const struct one_term *t)
{
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < t->n; i++) hash = (hash ^ t->literals[i]) * 16777619u, hash ^= hash >> 15;
    return hash;
}

/* The tables start small, because few schemas have many terms, and full tables would cost more than the rest of the
 * work for a small schema. */
static bool grow(struct schema *s, struct schema_terms *t)
{
    uint32_t n_slots = t->n_slots ? t->n_slots * 4 : 256;
    struct one_term *all = schema_take(s, n_slots / 2, sizeof *all);
    uint32_t *slots = schema_take(s, n_slots, sizeof *slots);
    if (!all || !slots) return false;
    if (t->n) memcpy(all, t->all, t->n * sizeof *all);
    for (uint32_t i = TERM_NONE + 1; i < t->n; i++) {
        uint32_t at = hash_of(&all[i]) & (n_slots - 1);
        while (slots[at]) at = (at + 1) & (n_slots - 1);
        slots[at] = i;
    }
    t->all = all;
    t->slots = slots;
    t->n_slots = n_slots;
    return true;
}

bool terms_new(struct schema *s)
{
    static const struct array_shape *const arrays[] = {&ARRAY_ANY};
    static const struct object_shape *const objects[] = {&OBJECT_ANY};
    struct schema_terms *t = schema_take(s, 1, sizeof *t);
    struct schema_set *any = new_set(s), *none = new_set(s);
    if (!t || !any || !none || !grow(s, t)) return false;
    *any = (struct schema_set){true, true, true, s->words->number, s->words->string, 1, 1, arrays, objects};
    *none = (struct schema_set){.number = s->words->never, .string = s->words->never};
    t->all[TERM_ANY].set = t->any = any;
    t->all[TERM_NONE].set = t->none = none;
    t->n = 2;
    s->terms = t;
    return true;
}

const struct schema_set *set_any(const struct schema *s) { return s->terms->any; }
const struct schema_set *set_none(const struct schema *s) { return s->terms->none; }
struct term_state *term_state(struct schema *s, term t) { return &s->terms->all[t].state; }
uint32_t terms_count(const struct schema *s) { return s->terms->n; }

const uint32_t *term_literals(const struct schema *s, term t, uint32_t *n)
{
    *n = s->terms->all[t].n;
    return s->terms->all[t].literals;
}

/* --- making ---------------------------------------------------------------------------------------------- */

/* Finds or makes the term of n sorted literals. */
static term intern(struct schema *s, const uint32_t *literals, uint32_t n)
{
    struct schema_terms *t = s->terms;
    if (t->n == t->n_slots / 2 && !grow(s, t)) return TERM_NONE;
    uint32_t at = hash_of(&(struct one_term){.literals = literals, .n = n}) & (t->n_slots - 1);
    for (; t->slots[at]; at = (at + 1) & (t->n_slots - 1)) {
        const struct one_term *one = &t->all[t->slots[at]];
        if (one->n == n && !memcmp(one->literals, literals, n * sizeof *literals)) return t->slots[at];
    }
    if (t->n == TERMS_MAX) schema_refuse(s, s->root, "limit", "the schema has too many combinations");
    uint32_t *own = schema_take(s, n, sizeof *own);
    if (!own) return TERM_NONE;
    memcpy(own, literals, n * sizeof *own);
    t->all[t->n] = (struct one_term){.literals = own, .n = n};
    t->slots[at] = t->n;
    return t->n++;
}

term term_of(struct schema *s, uint32_t literal)
{
    enum json_kind kind = s->nodes[literal >> 2].kind;
    bool schema = !(literal & 2), negative = literal & 1;
    if (schema && (kind == JSON_TRUE || kind == JSON_FALSE))
        return (kind == JSON_TRUE) != negative ? TERM_ANY : TERM_NONE;
    if (schema && kind == JSON_OBJECT && s->nodes[literal >> 2].count == 0) return negative ? TERM_NONE : TERM_ANY;
    return intern(s, &literal, 1);
}

static uint32_t *scratch_of(struct schema *s, uint32_t n)
{
    struct schema_terms *t = s->terms;
    if (n > t->room) {
        t->scratch = schema_take(s, 2 * (uint64_t)n, sizeof *t->scratch);
        t->room = t->scratch ? 2 * n : 0;
    }
    return t->scratch;
}

term term_and(struct schema *s, term a, term b)
{
    if (a == b || b == TERM_ANY) return a;
    if (a == TERM_ANY) return b;
    if (a == TERM_NONE || b == TERM_NONE) return TERM_NONE;
    const struct one_term *x = &s->terms->all[a], *y = &s->terms->all[b];
    uint32_t *own = scratch_of(s, x->n + y->n), n = 0;
    if (!own) return TERM_NONE;
    for (uint32_t i = 0, j = 0; i < x->n || j < y->n;) {
        uint32_t next =
            j == y->n || (i < x->n && x->literals[i] <= y->literals[j]) ? x->literals[i++] : y->literals[j++];
        if (n && own[n - 1] == next) continue;
        if (n && (own[n - 1] ^ next) == 1) return TERM_NONE; /* a literal and its negation */
        own[n++] = next;
    }
    return intern(s, own, n);
}

const struct schema_set *term_set(struct schema *s, term t)
{
    struct one_term one = s->terms->all[t]; /* a copy, because new terms may move the array */
    if (one.set || s->status) return s->status ? NULL : one.set;
    const struct schema_set *set = set_any(s);
    for (uint32_t i = 0; i < one.n && set; i++) {
        uint32_t l = one.literals[i];
        const struct schema_set *next = l & 2 ? value_set_of(s, l >> 2, l & 1) : schema_set_of(s, l >> 2, l & 1);
        set = next ? set_and(s, set, next) : NULL;
    }
    return s->terms->all[t].set = s->status ? NULL : set;
}

/* --- quick checks by types and values only, so that impossible alternatives are dropped early ------------------- */

/* A superset of a literal's values: types as bits, and the values themselves if they are few. */
struct brief {
    unsigned kinds;  /* 1 << enum json_kind */
    uint32_t list;   /* an enum's array, or 0 */
    uint32_t value;  /* a const's, or 0 */
};

enum { ALL_KINDS = 1 << JSON_NOTHING };

static unsigned kinds_of_type(const struct schema_node *n)
{
    static const struct {
        const char *name;
        unsigned kinds;
    } types[] = {{"object", 1 << JSON_OBJECT},  {"array", 1 << JSON_ARRAY},
                 {"string", 1 << JSON_STRING},  {"number", 1 << JSON_NUMBER},
                 {"integer", 1 << JSON_NUMBER}, {"boolean", 1 << JSON_TRUE | 1 << JSON_FALSE},
                 {"null", 1 << JSON_NULL}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (bytes_equal(n->text, types[i].name)) return types[i].kinds;
    return ALL_KINDS - 1;
}

static unsigned kinds_of_types(const struct schema *s, uint32_t type)
{
    unsigned kinds = 0;
    if (s->nodes[type].kind == JSON_STRING) return kinds_of_type(&s->nodes[type]);
    for (uint32_t i = s->nodes[type].first; i; i = s->nodes[i].next) kinds |= kinds_of_type(&s->nodes[i]);
    return kinds;
}

static struct brief brief_of_schema(const struct schema *s, uint32_t node)
{
    struct brief b = {.kinds = ALL_KINDS - 1};
    uint32_t type = schema_keyword(s, node, "type");
    b.value = schema_keyword(s, node, "const");
    b.list = schema_keyword(s, node, "enum");
    if (type) b.kinds = kinds_of_types(s, type);
    if (b.value) b.kinds &= 1u << s->nodes[b.value].kind;
    return b;
}

/* Whether a value is not in a brief's set. */
static bool outside(const struct schema *s, uint32_t value, const struct brief *b)
{
    if (!(b->kinds >> s->nodes[value].kind & 1)) return true;
    if (b->value && !schema_equal(s, value, b->value)) return true;
    if (!b->list || s->nodes[b->list].kind != JSON_ARRAY) return false;
    for (uint32_t i = s->nodes[b->list].first; i; i = s->nodes[i].next)
        if (schema_equal(s, value, i)) return false;
    return true;
}

static bool apart(const struct schema *s, const struct brief *a, const struct brief *b)
{
    if (!(a->kinds & b->kinds)) return true;
    if (a->value) return outside(s, a->value, b);
    if (b->value) return outside(s, b->value, a);
    if (!a->list || !b->list || (uint64_t)s->nodes[a->list].count * s->nodes[b->list].count > FEW) return false;
    for (uint32_t i = s->nodes[a->list].first; i; i = s->nodes[i].next)
        if (!outside(s, i, b)) return false;
    return true;
}

static struct brief brief_of(const struct schema *s, uint32_t literal)
{
    uint32_t node = literal >> 2;
    if (literal & 1) return (struct brief){.kinds = ALL_KINDS - 1};
    if (literal & 2) return (struct brief){.kinds = 1u << s->nodes[node].kind, .value = node};
    return brief_of_schema(s, node);
}

/* Whether a quick check shows that two literals exclude each other. */
static bool literals_apart(const struct schema *s, uint32_t x, uint32_t y)
{
    struct brief a = brief_of(s, x), b = brief_of(s, y);
    if ((x ^ y) == 1) return true;
    if ((x & 3) == 3) return b.value && schema_equal(s, b.value, x >> 2); /* this value is excluded */
    if ((y & 3) == 3) return a.value && schema_equal(s, a.value, y >> 2);
    return apart(s, &a, &b);
}

bool terms_apart(struct schema *s, term a, term b)
{
    const struct one_term *x = &s->terms->all[a], *y = &s->terms->all[b];
    if (a == TERM_NONE || b == TERM_NONE) return true;
    for (uint32_t i = 0; i < x->n; i++)
        for (uint32_t j = 0; j < y->n; j++)
            if (literals_apart(s, x->literals[i], y->literals[j])) return true;
    return false;
}

bool term_hopeless(struct schema *s, term t)
{
    const struct one_term *one = &s->terms->all[t];
    return one->set ? set_is_empty(s, one->set) : terms_apart(s, t, t);
}
