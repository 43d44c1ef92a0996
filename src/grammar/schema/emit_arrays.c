/* SPDX-License-Identifier: MIT
 *
 * The shape of an array as an expression. If only positions and lengths matter, it is a chain and a counted repeat.
 * With `contains` it also counts matching items; unique items are chosen from a few possible values. Both go through
 * all counts or sets of earlier items, from the end.
 */
#include "grammar/schema/emit.h"

enum { CONTAINS_MAX = 4, STATES_MAX = 4000, UNIQUE_MAX = 10, CANDIDATES_DEPTH = 8 };

static gr_expr brackets(struct schema *s, gr_expr inside)
{
    if (!inside || is_never(s, inside)) return inside;
    return gr_sequence(s->g, (gr_expr[]){s->words->begin, inside, s->words->end}, 3);
}

static gr_expr behind(struct schema *s, uint32_t place, gr_expr item)
{
    return place ? gr_cat(s->g, s->words->comma, item) : item;
}

static term item_at(const struct array_shape *a, uint32_t place)
{
    return place < a->n_first ? a->first[place] : a->rest;
}

/* --- places and lengths ------------------------------------------------------------------------------------ */

static gr_expr emit_plain(struct schema *s, const struct array_shape *a)
{
    uint32_t n = a->n_first, most = a->most;
    gr_expr *items = schema_take(s, (uint64_t)n + 1, sizeof *items), empty = gr_empty(s->g);
    for (uint32_t i = 0; items && i <= n && !s->status; i++) {
        items[i] = i < most ? emit_term(s, item_at(a, i)) : s->words->never;
        if (items[i] && is_never(s, items[i])) most = most < i ? most : i;
    }
    if (!items || s->status) return 0;
    if (a->least > most) return s->words->never;
    gr_expr end = empty;
    if (most > n) {
        uint32_t least = a->least > n ? a->least - n : 0, room = most == GR_MANY ? GR_MANY : most - n;
        gr_expr more = gr_cat(s->g, s->words->comma, items[n]);
        if (n > 0) end = gr_repeat(s->g, more, least, room);
        else {
            end = gr_cat(s->g, items[n],
                         gr_repeat(s->g, more, least ? least - 1 : 0, room == GR_MANY ? GR_MANY : room - 1));
            if (least == 0) end = gr_or(s->g, end, empty);
        }
    }
    for (uint32_t i = n < most ? n : most; i-- > 0;) {
        end = gr_cat(s->g, behind(s, i, items[i]), end);
        if (i >= a->least) end = gr_or(s->g, end, empty);
    }
    return brackets(s, end);
}

/* --- contains ---------------------------------------------------------------------------------------------- */

/* State of counting matches: for each `contains` the number so far, up to the number where it no longer matters. They
 * are digits of one number. */
struct counting {
    struct schema *s;
    const struct array_shape *a;
    uint32_t places;               /* positions go from 0 to this one, and stay there if there is no maximum */
    uint32_t base[CONTAINS_MAX];   /* largest count + 1 */
    uint32_t states;
    gr_expr *kept;                 /* [places + 1][states] */
};

static uint32_t digit_of(const struct counting *c, uint32_t counts, uint32_t which)
{
    for (uint32_t i = 0; i < which; i++) counts /= c->base[i];
    return counts % c->base[which];
}

static bool enough(const struct counting *c, uint32_t place, uint32_t counts)
{
    bool fine = place >= c->a->least;
    for (uint32_t i = 0; i < c->a->n_contains; i++) fine &= digit_of(c, counts, i) >= c->a->contains[i].least;
    return fine;
}

/* The item at a position that matches exactly the `contains` in the bits of `hits`. *then: the counts after it.
 * TERM_NONE: impossible. */
static term counted_item(const struct counting *c, uint32_t place, uint32_t counts, uint32_t hits, uint32_t *then)
{
    term item = item_at(c->a, place);
    uint32_t weight = 1;
    *then = counts;
    for (uint32_t i = 0; i < c->a->n_contains; weight *= c->base[i++]) {
        const struct array_contains *one = &c->a->contains[i];
        bool hit = hits >> i & 1, bounded = one->most != GR_MANY, full = digit_of(c, counts, i) + 1 == c->base[i];
        if (place < one->from || (full && !bounded)) { /* nothing to count */
            if (hit) return TERM_NONE;
            continue;
        }
        if (hit && full) return TERM_NONE;
        if (hit) item = term_and(c->s, item, one->value), *then += weight;
        else if (bounded) { /* the negation of a term with one literal */
            uint32_t n;
            const uint32_t *literals = term_literals(c->s, one->value, &n);
            term not = one->value == TERM_NONE  ? TERM_ANY
                       : one->value == TERM_ANY ? TERM_NONE
                                                : term_of(c->s, literals[0] ^ 1);
            item = term_and(c->s, item, not);
        }
    }
    return item;
}

/* The expression after `place` items with these counts. At the last position, without a maximum, items that change no
 * count repeat. */
static gr_expr counted(const struct counting *c, uint32_t place, uint32_t counts)
{
    struct schema *s = c->s;
    bool loops = place == c->places && c->a->most == GR_MANY;
    gr_expr out = enough(c, place, counts) ? gr_empty(s->g) : s->words->never, same = s->words->never;
    for (uint32_t hits = 0; hits < 1u << c->a->n_contains && place < c->a->most && !s->status; hits++) {
        uint32_t then;
        term what = counted_item(c, place, counts, hits, &then);
        gr_expr item = term_hopeless(s, what) ? s->words->never : emit_term(s, what);
        if (!item || is_never(s, item)) continue;
        item = behind(s, place, item);
        if (loops && then == counts) same = gr_or(s->g, same, item);
        else out = gr_or(s->g, out, gr_cat(s->g, item, c->kept[(uint64_t)(place + !loops) * c->states + then]));
    }
    return loops ? gr_cat(s->g, gr_repeat(s->g, same, 0, GR_MANY), out) : out;
}

static gr_expr emit_counted(struct schema *s, const struct array_shape *a)
{
    struct counting c = {.s = s, .a = a, .states = 1};
    uint64_t states = 1, places = a->n_first > a->least ? a->n_first : a->least;
    if (a->n_contains > CONTAINS_MAX)
        return (void)schema_refuse(s, s->here, "contains", "more than four of them cannot be counted together"), 0;
    for (uint32_t i = 0; i < a->n_contains; i++) {
        const struct array_contains *one = &a->contains[i];
        if (one->least > one->most) return s->words->never;
        if (one->from > places) places = one->from;
        uint64_t most = one->most == GR_MANY ? one->least : one->most;
        c.base[i] = most < STATES_MAX ? (uint32_t)most + 1 : STATES_MAX;
        states *= c.base[i];
        if (states > STATES_MAX) break;
    }
    if (a->most != GR_MANY && places < a->most) places = a->most;
    places += places == 0;
    if (states > STATES_MAX || (places + 1) * states > STATES_MAX)
        return (void)schema_refuse(s, s->here, "contains", "it counts too many items"), 0;
    c.places = (uint32_t)places;
    c.states = (uint32_t)states;
    c.kept = schema_take(s, (places + 1) * states, sizeof *c.kept);
    for (uint32_t place = c.places + 1; c.kept && place-- > 0;)
        for (uint32_t counts = c.states; counts-- > 0 && !s->status;)
            c.kept[(uint64_t)place * c.states + counts] = counted(&c, place, counts);
    return s->status || !c.kept ? 0 : brackets(s, c.kept[0]);
}

/* --- unique items ------------------------------------------------------------------------------------------ */

struct values {
    uint32_t nodes[UNIQUE_MAX], n;
    bool many; /* more than can be distinguished */
};

static void add_value(const struct schema *s, struct values *v, uint32_t node)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (schema_equal(s, v->nodes[i], node)) return;
    if (v->n == UNIQUE_MAX) v->many = true;
    else v->nodes[v->n++] = node;
}

/* Collects all values that a schema may allow, if there are few. Returns false if there may be more. */
static bool candidates_of(struct schema *s, uint32_t node, struct values *v, int depth)
{
    uint32_t value = schema_keyword(s, node, "const"), list = schema_keyword(s, node, "enum"),
             type = schema_keyword(s, node, "type");
    uint32_t ref = schema_member(s, node, "$ref"), any = schema_keyword(s, node, "anyOf");
    if (s->nodes[node].kind == JSON_FALSE) return true;
    if (value) return add_value(s, v, value), true;
    if (list) {
        for (uint32_t i = s->nodes[list].first; i; i = s->nodes[i].next) add_value(s, v, i);
        return true;
    }
    if (type && bytes_equal(s->nodes[type].text, "boolean"))
        return add_value(s, v, s->truth), add_value(s, v, s->untruth), true;
    if (type && bytes_equal(s->nodes[type].text, "null")) return add_value(s, v, s->nothing), true;
    if (depth == CANDIDATES_DEPTH) return false;
    if (ref) {
        uint32_t target = schema_target(s, node, ref, "$ref");
        return target && candidates_of(s, target, v, depth + 1);
    }
    if (!any || s->nodes[any].kind != JSON_ARRAY) return false;
    for (uint32_t i = s->nodes[any].first; i; i = s->nodes[i].next)
        if (!candidates_of(s, i, v, depth + 1)) return false;
    return true;
}

static bool candidates(struct schema *s, term t, struct values *v)
{
    uint32_t n;
    if (t == TERM_NONE) return true;
    if (t == TERM_ANY) return false;
    const uint32_t *literals = term_literals(s, t, &n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t l = literals[i];
        if ((l & 3) == 2) return add_value(s, v, l >> 2), true;
        if ((l & 3) == 0 && candidates_of(s, l >> 2, v, 0)) return true;
    }
    return false;
}

/* One of the values as the item at a position. */
static gr_expr drawn(struct schema *s, const struct array_shape *a, uint32_t place, uint32_t node)
{
    return emit_term(s, term_and(s, item_at(a, place), term_of(s, LITERAL(node, true, false))));
}

/* The expression after the values in `used`. `after` has the expressions of all larger sets. */
static gr_expr unused(struct schema *s, const struct array_shape *a, const struct values *v, uint32_t used,
                      const gr_expr *after)
{
    gr_expr parts[UNIQUE_MAX + 1];
    uint32_t place = 0, n = 0;
    for (uint32_t i = 0; i < v->n; i++) place += used >> i & 1;
    if (place >= a->least) parts[n++] = gr_empty(s->g);
    for (uint32_t i = 0; i < v->n && place < a->most && !s->status; i++) {
        if (used >> i & 1) continue;
        gr_expr item = drawn(s, a, place, v->nodes[i]);
        if (item && !is_never(s, item)) parts[n++] = gr_cat(s->g, behind(s, place, item), after[used | 1u << i]);
    }
    return gr_any(s->g, parts, n);
}

static gr_expr emit_unique(struct schema *s, const struct array_shape *a)
{
    struct values v = {.n = 0};
    bool few = true;
    for (uint32_t i = 0; i < a->n_first && i < a->most && few; i++) {
        few = candidates(s, a->first[i], &v);
        if (few && term_hopeless(s, a->first[i])) break;
    }
    if (few && a->n_first < a->most) few = candidates(s, a->rest, &v);
    if (!few || v.many)
        schema_refuse(s, s->here, "uniqueItems",
                      "it is supported for items of at most ten values (enum, const)");
    if (a->n_contains) return (void)schema_refuse(s, s->here, "uniqueItems", "beside contains it is not supported"), 0;
    gr_expr *after = schema_take(s, 1u << v.n, sizeof *after);
    for (uint32_t used = 1u << v.n; after && used-- > 0 && !s->status;) after[used] = unused(s, a, &v, used, after);
    return s->status || !after ? 0 : brackets(s, after[0]);
}

gr_expr emit_array(struct schema *s, const struct array_shape *a)
{
    gr_expr e = a->unique && a->most > 1 ? emit_unique(s, a) : a->n_contains ? emit_counted(s, a) : emit_plain(s, a);
    return schema_checked(s, s->here, "limit", e);
}
