/* SPDX-License-Identifier: MIT
 *
 * Schemas made of others: allOf, anyOf, oneOf, not, if, $ref. A negation moves down to the assertions, each of which
 * can be negated.
 */
#include "grammar/schema/keywords.h"

/* most branches of anyOf if every combination of them is considered, because unevaluated keywords need to know which
 * hold */
enum { SPLIT_MAX = 4 };

static bool is_gone(const struct schema *s, gr_expr e) { return e == s->words->never; }

static const struct schema_set *inner(struct schema *s, uint32_t node, bool negative)
{
    return schema_set_of(s, node, negative);
}

/* All schemas of a list, or any of them. A negation negates each schema and swaps AND and OR. */
static const struct schema_set *joined(struct pass *p, uint32_t list, bool all)
{
    struct schema *s = p->s;
    bool both = all != p->negative;
    const struct schema_set *set = both ? set_any(s) : set_none(s);
    for (uint32_t i = s->nodes[list].first; i && set; i = s->nodes[i].next)
        set = both ? set_and(s, set, inner(s, i, p->negative)) : set_or(s, set, inner(s, i, p->negative));
    return set;
}

static uint32_t list_of(struct pass *p, const char *keyword)
{
    uint32_t list = pass_member(p, keyword);
    if (!list || !pass_expects(p, list, JSON_ARRAY, keyword)) return 0;
    if (p->s->nodes[list].count == 0) return pass_refuse(p, keyword, "a list of at least one schema was expected"), 0;
    return list;
}

/* With unevaluated keywords it matters which branches hold, so each combination of branches is an alternative. */
static const struct schema_set *split_any_of(struct pass *p, uint32_t list)
{
    struct schema *s = p->s;
    const struct schema_set *set = set_none(s);
    for (uint32_t chosen = 1; chosen < 1u << s->nodes[list].count && set; chosen++) {
        const struct schema_set *one = set_any(s);
        uint32_t bit = 0;
        for (uint32_t i = s->nodes[list].first; i && one; i = s->nodes[i].next, bit++)
            one = set_and(s, one, inner(s, i, !(chosen >> bit & 1)));
        set = set_or(s, set, one);
    }
    return set;
}

static void pass_any_of(struct pass *p)
{
    uint32_t list = list_of(p, "anyOf");
    if (!list) return;
    bool split = p->s->tracks && !p->negative && p->s->nodes[list].count > 1;
    if (split && p->s->nodes[list].count > SPLIT_MAX)
        return pass_refuse(p, "anyOf", "with unevaluatedProperties or unevaluatedItems it has at most four branches");
    pass_add(p, split ? split_any_of(p, list) : joined(p, list, false));
}

/* `set` without another set: `not` is the other set's negation, `both` the intersection. The negation applies only to
 * types where `both` is not empty. */
static const struct schema_set *without(struct schema *s, const struct schema_set *set, const struct schema_set *both,
                                        const struct schema_set * not)
{
    const struct schema_set *any = set_any(s);
    struct schema_set *some = schema_take(s, 1, sizeof *some);
    if (!some || !not) return NULL;
    *some = *not;
    if (is_gone(s, both->number)) some->number = any->number;
    if (is_gone(s, both->string)) some->string = any->string;
    if (both->n_arrays == 0) some->arrays = any->arrays, some->n_arrays = 1;
    if (both->n_objects == 0) some->objects = any->objects, some->n_objects = 1;
    return set_and(s, set, some);
}

/* The values of `among` that match this branch and no other. `among` often already separates the branches. */
static const struct schema_set *only(struct schema *s, uint32_t list, uint32_t branch, const struct schema_set *among)
{
    const struct schema_set *own = inner(s, branch, false), *set = set_and(s, among, own);
    for (uint32_t i = s->nodes[list].first; i && set; i = s->nodes[i].next) {
        if (i == branch) continue;
        const struct schema_set *both = set_and(s, own, inner(s, i, false));
        if (both && !set_is_empty(s, both)) both = set_and(s, set, inner(s, i, false));
        if (!both) set = NULL;
        else if (!set_is_empty(s, both)) set = without(s, set, both, inner(s, i, true));
    }
    return set;
}

/* Values that match no branch, or at least two. */
static const struct schema_set *not_only(struct schema *s, uint32_t list)
{
    const struct schema_set *set = set_any(s);
    for (uint32_t i = s->nodes[list].first; i && set; i = s->nodes[i].next) set = set_and(s, set, inner(s, i, true));
    for (uint32_t i = s->nodes[list].first; i && set; i = s->nodes[i].next)
        for (uint32_t j = s->nodes[i].next; j && set; j = s->nodes[j].next)
            set = set_or(s, set, set_and(s, inner(s, i, false), inner(s, j, false)));
    return set;
}

static void pass_one_of(struct pass *p)
{
    uint32_t list = list_of(p, "oneOf");
    if (!list) return;
    if (p->negative) return pass_add(p, not_only(p->s, list));
    const struct schema_set *set = set_none(p->s);
    for (uint32_t i = p->s->nodes[list].first; i && set; i = p->s->nodes[i].next)
        set = set_or(p->s, set, only(p->s, list, i, p->set));
    p->set = set;
}

static void pass_if(struct pass *p)
{
    struct schema *s = p->s;
    uint32_t test = pass_member(p, "if"), then = pass_member(p, "then"), other = pass_member(p, "else");
    if (!test || (!then && !other && (!s->tracks || p->negative))) return;
    const struct schema_set *yes = inner(s, test, false), *no = inner(s, test, true);
    if (then) yes = set_and(s, yes, inner(s, then, p->negative));
    else if (p->negative) yes = set_none(s);
    if (other) no = set_and(s, no, inner(s, other, p->negative));
    else if (p->negative) no = set_none(s);
    pass_add(p, set_or(s, yes, no));
}

static void pass_ref(struct pass *p, const char *keyword)
{
    uint32_t value = pass_member(p, keyword);
    uint32_t target = value ? schema_target(p->s, p->node, value, keyword) : 0;
    if (!value) return;
    if (!target) p->set = NULL;
    else pass_add(p, inner(p->s, target, p->negative));
}

void pass_logic(struct pass *p)
{
    uint32_t not = pass_member(p, "not"), all = list_of(p, "allOf");
    pass_ref(p, "$ref");
    pass_ref(p, "$dynamicRef");
    pass_ref(p, "$recursiveRef");
    if (all) pass_add(p, joined(p, all, true));
    pass_any_of(p);
    pass_one_of(p);
    pass_if(p);
    if (not) pass_add(p, p->negative ? inner(p->s, not, false) : set_unseen(p->s, inner(p->s, not, true)));
}
