/* SPDX-License-Identifier: MIT
 *
 * Checks before matching begins, made once over everything that the start reaches: every rule is defined, and none
 * calls itself before a byte has come. Also finds which expressions may be empty, and which can be satisfied at all.
 * Nothing recurses, because rules may form a chain of any length.
 */
#include "grammar/nodes.h"

static uint32_t n_parts(const struct grammar *g, const struct node *n)
{
    switch ((enum gr_kind)n->kind) {
    case NODE_OR:
    case NODE_AND: return n->b;
    case NODE_CAT: return 2;
    case NODE_NOT:
    case NODE_REPEAT: return 1;
    case NODE_RULE: return g->rules[n->a].body ? 1 : 0;
    default: return 0;
    }
}

static gr_expr part(const struct grammar *g, const struct node *n, uint32_t i)
{
    if (n->kind == NODE_OR || n->kind == NODE_AND) return g->lists[n->a + i];
    return n->kind == NODE_RULE ? g->rules[n->a].body : i ? n->b : n->a;
}

static bool push(struct grammar *g, uint32_t *n, gr_expr a)
{
    if (!node_room(g, (void **)&g->queue, &g->room_queue, ((uint64_t)*n + 1) * 2, sizeof *g->queue)) return false;
    g->queue[*n * 2] = a;
    g->queue[(*n)++ * 2 + 1] = 0;
    return true;
}

static bool undefined(struct grammar *g, const struct node *n)
{
    return grammar_fail(g, "undefined", 0, "The rule \"%s\" is used, but not defined.",
                        g->rules[n->a].name) != 0;
}

/* Marks everything that the start reaches with the stamp. */
static bool mark_all(struct grammar *g, gr_expr start)
{
    uint32_t n = 0;
    g->stamp++;
    g->nodes[start].mark = g->stamp;
    if (!push(g, &n, start)) return false;
    while (n > 0) {
        struct node at = *node_of(g, g->queue[--n * 2]);
        if (at.kind == NODE_RULE && !g->rules[at.a].body) return undefined(g, &at);
        for (uint32_t i = 0; i < n_parts(g, &at); i++) {
            gr_expr p = part(g, &at, i);
            if (g->nodes[p].mark == g->stamp) continue;
            g->nodes[p].mark = g->stamp;
            if (!push(g, &n, p)) return false;
        }
    }
    return true;
}

/* Returns the marked expressions in ascending order: parts before wholes. The caller frees the array. */
static gr_expr *collect(struct grammar *g, uint32_t *n)
{
    gr_expr *ids = mem_array(g->mem, g->n_nodes, sizeof *ids);
    *n = 0;
    for (gr_expr a = 1; ids && a < g->n_nodes; a++)
        if (g->nodes[a].mark == g->stamp) ids[(*n)++] = a;
    if (!ids) node_memory(g);
    return ids;
}

/* Finds NULLABLE and LIVE bottom-up until nothing changes. An expression that is not live then never will be. */
static bool find_facts(struct grammar *g, const uint32_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct node *at = &g->nodes[ids[i]];
        if (at->flags & HAS_RULES) at->flags = HAS_RULES;
        else if (!(at->flags & (LIVE | DEAD))) at->flags |= node_facts(g, at);
        if (!(at->flags & (HAS_RULES | LIVE | DEAD)) && derive_live(g, ids[i]) == GR_UNKNOWN)
            return node_limit(g, "it takes too long to decide whether any text satisfies it") != 0;
    }
    for (bool changed = true; changed;) {
        changed = false;
        if (!node_work(g, n)) return false;
        for (uint32_t i = 0; i < n; i++) {
            struct node *at = &g->nodes[ids[i]];
            uint8_t flags = at->flags & HAS_RULES ? at->flags | node_facts(g, at) : at->flags;
            changed = changed || flags != at->flags;
            at->flags = flags;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        if (!(g->nodes[ids[i]].flags & LIVE)) g->nodes[ids[i]].flags |= DEAD;
    return true;
}

/* The first rule of a loop. The last item of the queue closes the loop, because it may begin with p. */
static gr_expr rule_of_loop(const struct grammar *g, uint32_t n, gr_expr p)
{
    gr_expr rule = p;
    for (gr_expr a = 0; n > 0 && a != p; n--) {
        a = g->queue[n * 2 - 2];
        if (node_of(g, a)->kind == NODE_RULE) rule = a;
    }
    return rule;
}

/* Depth-first search along parts that may come first. Reaching a node that is still open means that it may begin with
 * itself. Open nodes are marked with the stamp. Returns a rule that does so, `start` if memory is short, or 0: none. */
static gr_expr begins_with_itself(struct grammar *g, gr_expr start)
{
    uint32_t n = 0, open = g->stamp, closed = g->stamp + 1;
    g->nodes[start].mark = open;
    if (!push(g, &n, start)) return start;
    while (n > 0) {
        gr_expr a = g->queue[n * 2 - 2];
        struct node at = *node_of(g, a);
        uint32_t i = g->queue[n * 2 - 1]++;
        if (i >= n_parts(g, &at) || (at.kind == NODE_CAT && i == 1 && !is_nullable(g, at.a)) ||
            !(at.flags & HAS_RULES)) {
            g->nodes[a].mark = closed;
            n--;
            continue;
        }
        gr_expr p = part(g, &at, i);
        if (g->nodes[p].mark == open) return rule_of_loop(g, n, p);
        if (g->nodes[p].mark == closed) continue;
        g->nodes[p].mark = open;
        if (!push(g, &n, p)) return start;
    }
    return 0;
}

static bool no_left_recursion(struct grammar *g, const gr_expr *ids, uint32_t n)
{
    uint32_t closed = (g->stamp += 2) + 1;
    for (uint32_t i = 0; i < n; i++) {
        if (node_of(g, ids[i])->kind != NODE_RULE || node_of(g, ids[i])->mark == closed) continue;
        gr_expr rule = begins_with_itself(g, ids[i]);
        if (!rule) continue;
        const char *name = g->rules[node_of(g, rule)->a].name;
        return grammar_fail(g, "left-recursion", 0,
                            "The rule \"%s\" leads to itself before any character; put a character first.", name) != 0;
    }
    g->stamp = closed;
    return true;
}

bool ready_check(struct grammar *g, gr_expr start)
{
    uint32_t n;
    if (!mark_all(g, start)) return false;
    gr_expr *ids = collect(g, &n);
    derive_classes(g);
    g->ready = true;
    bool good = ids && find_facts(g, ids, n) && no_left_recursion(g, ids, n);
    mem_free(g->mem, ids);
    if (good && !(node_of(g, start)->flags & LIVE))
        grammar_fail(g, "nothing", 0, "No reply can satisfy this: the conditions exclude each other.");
    return g->ready = !g->err.code;
}
