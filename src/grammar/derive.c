/* SPDX-License-Identifier: MIT
 *
 * Derivatives (Brzozowski): the derivative of an expression by a byte is the expression of the texts that may follow.
 * Also the questions about expressions, answered by breadth-first search along derivatives. The functions recurse over
 * structure only, to a bounded depth; the rest of a sequence, where stacks grow, is a loop.
 */
#include "grammar/nodes.h"

#include <string.h>

enum { SEARCH_MOST = 1 << 15 /* expressions that a search may see */, FIRST_DEPTH = 40, FIRST_MOST = 1 << 16 };

/* --- derivatives ----------------------------------------------------------------------------------------------- */

static gr_expr derive_list(struct grammar *g, const struct node *n, uint8_t byte)
{
    uint32_t base = g->n_scratch;
    for (uint32_t i = 0; i < n->b; i++) {
        gr_expr d = derive(g, g->lists[n->a + i], byte);
        if (d == EXPR_NEVER && n->kind == NODE_OR) continue;
        if (!node_push(g, d)) return 0;
        if (d == EXPR_NEVER) break;
    }
    return n->kind == NODE_OR ? node_or(g, base) : node_and(g, base);
}

/* Derivative of a straight sequence: its first part continues, or is nullable and the next part begins. */
static gr_expr derive_cat(struct grammar *g, gr_expr a, uint8_t byte)
{
    uint32_t base = g->n_scratch;
    for (;;) {
        struct node n = *node_of(g, a);
        if (n.kind != NODE_CAT) {
            if (!node_push(g, derive(g, a, byte))) return 0;
            break;
        }
        gr_expr first = derive(g, n.a, byte);
        if (!first || (first != EXPR_NEVER && !node_push(g, node_cat(g, first, n.b)))) return 0;
        if (!is_nullable(g, n.a)) break;
        a = node_straight(g, n.b);
        if (!a || !node_work(g, 1)) return 0;
    }
    if (g->n_scratch == base + 1) return node_straight(g, (gr_expr)g->scratch[--g->n_scratch]);
    return node_or(g, base);
}

static gr_expr derive_multiple(struct grammar *g, const struct node *n, uint8_t byte)
{
    uint64_t divisor = g->lists[n->a] | (uint64_t)g->lists[n->a + 1] << 32,
             rest = g->lists[n->a + 2] | (uint64_t)g->lists[n->a + 3] << 32;
    if (byte < '0' || byte > '9') return EXPR_NEVER;
    if (!n->c && byte == '0') return EXPR_EMPTY;
    return node_multiple(g, divisor, (rest * 10 + (byte - '0')) % divisor, true); /* divisor <= 10^18: no overflow */
}

static gr_expr derive_anew(struct grammar *g, gr_expr a, uint8_t byte)
{
    struct node n = *node_of(g, a);
    switch ((enum gr_kind)n.kind) {
    case NODE_OR:
    case NODE_AND: return derive_list(g, &n, byte);
    case NODE_NOT: return node_not(g, derive(g, n.a, byte));
    case NODE_CAT: return derive_cat(g, a, byte);
    case NODE_MULTIPLE: return derive_multiple(g, &n, byte);
    case NODE_RULE: return g->rules[n.a].body ? derive(g, g->rules[n.a].body, byte) : 0;
    case NODE_REPEAT: {
        gr_expr first = derive(g, n.a, byte);
        if (!first || first == EXPR_NEVER) return first;
        return node_cat(g, first, node_repeat(g, n.a, n.b ? n.b - 1 : 0, n.c == GR_MANY ? n.c : n.c - 1));
    }
    default: return EXPR_NEVER;
    }
}

gr_expr derive(struct grammar *g, gr_expr a, uint8_t byte)
{
    if (!a || !node_work(g, 1)) return 0;
    const struct node *n = node_of(g, a);
    if (n->kind == NODE_NEVER || n->kind == NODE_EMPTY) return EXPR_NEVER;
    if (n->kind == NODE_SET) return set_has(g->lists + n->a, byte) ? EXPR_EMPTY : EXPR_NEVER;
    if (n->kind == NODE_CAT && node_of(g, n->a)->kind == NODE_SET)
        return set_has(g->lists + node_of(g, n->a)->a, byte) ? node_straight(g, n->b) : EXPR_NEVER;
    struct memo *known = &g->memo[(a * 0x9E3779B1u ^ byte * 0x85EBCA6Bu) >> 7 & (MEMO - 1)];
    if (known->expr == a && known->byte == byte) return known->result;
    if (g->depth >= DEPTH_MOST) return node_limit(g, "it is nested too deeply");
    uint32_t base = g->n_scratch;
    g->depth++;
    gr_expr d = derive_anew(g, a, byte);
    g->depth--;
    g->n_scratch = base;
    if (d) *known = (struct memo){a, byte, d};
    return d;
}

gr_expr derive_unit(struct grammar *g, gr_expr a, uint8_t byte)
{
    int64_t before = g->floor;
    if (g->start && g->work - UNIT_WORK > before) g->floor = g->work - UNIT_WORK; /* the text is matched already */
    gr_expr d = derive(g, a, byte);
    g->floor = before;
    return d;
}

/* --- first bytes ----------------------------------------------------------------------------------------------- */

static void add_set(uint32_t *set, const uint32_t *more)
{
    for (int i = 0; i < 8; i++) set[i] |= more[i];
}

/* Bytes found so far, and the number of expressions that may still be visited. Parts may be shared, so that many paths
 * lead to each. */
struct first {
    uint32_t *set;
    int left;
};

static void add_first(struct grammar *g, gr_expr a, struct first *f, int depth);

/* Adds the bytes with which all parts of a list may begin. */
static void add_common(struct grammar *g, const struct node *n, struct first *f, int depth)
{
    uint32_t all[8];
    memset(all, 0xFF, sizeof all);
    for (uint32_t i = 0; i < n->b; i++) {
        uint32_t one[8] = {0};
        struct first part = {one, f->left};
        add_first(g, g->lists[n->a + i], &part, depth);
        f->left = part.left;
        for (int w = 0; w < 8; w++) all[w] &= one[w];
    }
    add_set(f->set, all);
}

/* A sequence is a loop, as for derivatives. An expression that is nested too deeply, or costs too much, may begin with
 * any byte. */
static void add_first(struct grammar *g, gr_expr a, struct first *f, int depth)
{
    static const uint32_t digits[8] = {0, 0x03FF0000};
    struct node n = *node_of(g, a);
    for (f->left--; n.kind == NODE_CAT && depth < FIRST_DEPTH && f->left > 0; n = *node_of(g, n.b), f->left--) {
        add_first(g, n.a, f, depth + 1);
        if (!is_nullable(g, n.a)) return;
    }
    switch (depth < FIRST_DEPTH && f->left > 0 ? (enum gr_kind)n.kind : NODE_NOT) {
    case NODE_NEVER:
    case NODE_EMPTY: return;
    case NODE_SET: return add_set(f->set, g->lists + n.a);
    case NODE_OR:
        for (uint32_t i = 0; i < n.b && f->left > 0; i++) add_first(g, g->lists[n.a + i], f, depth + 1);
        return;
    case NODE_AND: return add_common(g, &n, f, depth + 1);
    case NODE_REPEAT: return add_first(g, n.a, f, depth + 1);
    case NODE_MULTIPLE: return add_set(f->set, digits);
    case NODE_RULE: return add_first(g, g->rules[n.a].body, f, depth + 1);
    default: memset(f->set, 0xFF, 8 * sizeof *f->set);
    }
}

void derive_first(struct grammar *g, gr_expr a, uint32_t set[8])
{
    struct first f = {set, FIRST_MOST};
    memset(set, 0, 8 * sizeof *set);
    add_first(g, a, &f, 0);
    g->work -= FIRST_MOST - f.left;
    if (f.left <= 0) memset(set, 0xFF, 8 * sizeof *set);
}

/* --- classes of bytes ------------------------------------------------------------------------------------------ */

/* Splits each class that has bytes inside and outside of the set. */
static void split_classes(struct grammar *g, const uint32_t *set)
{
    /* numbers of bytes: in the set, in all; moved: the new class of bytes in the set */
    uint16_t in[CLASSES_MOST] = {0}, moved[CLASSES_MOST] = {0}, all[CLASSES_MOST] = {0};
    for (uint32_t b = 0; b < 256; b++) all[g->class_of[b]]++;
    for (uint32_t w = 0; w < 8; w++)
        for (uint32_t left = set[w]; left; left &= left - 1) in[g->class_of[w * 32 + (uint32_t)__builtin_ctz(left)]]++;
    for (uint32_t w = 0; w < 8; w++) {
        for (uint32_t left = set[w]; left; left &= left - 1) {
            uint32_t b = w * 32 + (uint32_t)__builtin_ctz(left), c = g->class_of[b];
            if (in[c] == all[c]) continue;
            if (!moved[c]) moved[c] = (uint16_t)g->n_classes++;
            g->class_of[b] = (uint8_t)moved[c];
        }
    }
}

void derive_classes(struct grammar *g)
{
    uint32_t before = g->n_classes;
    for (; g->n_split < g->n_nodes; g->n_split++)
        if (node_of(g, g->n_split)->kind == NODE_SET) split_classes(g, g->lists + node_of(g, g->n_split)->a);
    if (g->n_classes == before && g->byte_of[g->class_of[255]] == 255) return;
    for (uint32_t b = 0; b < 256; b++) g->byte_of[g->class_of[b]] = (uint8_t)b;
}

/* --- searches -------------------------------------------------------------------------------------------------- */

/* Adds an item to the queue: an expression, and the item that led to it. */
static bool enqueue(struct grammar *g, uint32_t *n, gr_expr a, uint32_t before)
{
    if (!node_room(g, (void **)&g->queue, &g->room_queue, ((uint64_t)*n + 1) * 2, sizeof *g->queue)) return false;
    g->nodes[a].mark = g->stamp;
    g->queue[*n * 2] = a;
    g->queue[*n * 2 + 1] = before;
    (*n)++;
    return true;
}

static enum gr_answer found(struct grammar *g, uint32_t item)
{
    for (uint32_t i = item;; i = g->queue[i * 2 + 1]) {
        g->nodes[g->queue[i * 2]].flags |= LIVE;
        if (i == 0) return GR_YES;
    }
}

/* Visits one derivative of the search's current item. GR_NO: continue with the next. */
static enum gr_answer search_one(struct grammar *g, struct search *s)
{
    gr_expr d = derive_unit(g, g->queue[s->at * 2], g->byte_of[s->byte_class]);
    if (!d) return GR_UNKNOWN;
    if (g->nodes[d].flags & (NULLABLE | LIVE)) {
        g->nodes[d].flags |= LIVE;
        return found(g, s->at);
    }
    if (g->nodes[d].flags & DEAD || g->nodes[d].mark == g->stamp) return GR_NO;
    return s->n < SEARCH_MOST && enqueue(g, &s->n, d, s->at) ? GR_NO : GR_UNKNOWN;
}

/* Breadth-first search for an expression that may end here. All expressions on the path to it are live. If there is
 * none, all visited expressions are dead. A paused search continues. */
static enum gr_answer search(struct grammar *g, gr_expr start)
{
    struct search *s = &g->search;
    enum gr_answer answer = GR_NO;
    if (s->start != start) {
        *s = (struct search){.start = start};
        g->stamp++;
        if (!enqueue(g, &s->n, start, 0)) answer = GR_UNKNOWN;
    }
    for (; s->at < s->n && answer == GR_NO; s->at++, s->byte_class = 0) {
        uint32_t first[8];
        derive_first(g, g->queue[s->at * 2], first);
        for (; s->byte_class < g->n_classes && answer == GR_NO; s->byte_class++) {
            if (!set_has(first, g->byte_of[s->byte_class])) continue;
            if (node_pauses(g)) return GR_UNKNOWN;
            answer = search_one(g, s);
        }
    }
    for (uint32_t i = 0; i < s->n && answer == GR_NO; i++) g->nodes[g->queue[i * 2]].flags |= DEAD;
    s->start = 0;
    return answer;
}

/* Decides by the parts first: only AND and NOT need a search. */
static enum gr_answer settle(struct grammar *g, gr_expr a)
{
    struct node n = *node_of(g, a);
    enum gr_answer answer = GR_NO;
    switch ((enum gr_kind)n.kind) {
    case NODE_CAT:
        for (; node_of(g, a)->kind == NODE_CAT && !(node_of(g, a)->flags & (LIVE | DEAD)); a = node_of(g, a)->b) {
            answer = derive_live(g, node_of(g, a)->a);
            if (answer != GR_YES) return answer;
        }
        return derive_live(g, a);
    case NODE_OR:
        for (uint32_t i = 0; i < n.b && answer == GR_NO; i++) answer = derive_live(g, g->lists[n.a + i]);
        return answer;
    case NODE_REPEAT: return derive_live(g, n.a);
    case NODE_AND:
    case NODE_NOT: return search(g, a);
    default: return GR_UNKNOWN;
    }
}

enum gr_answer derive_live(struct grammar *g, gr_expr a)
{
    if (!a) return GR_UNKNOWN;
    uint8_t flags = node_of(g, a)->flags;
    if (flags & LIVE) return GR_YES;
    if (flags & DEAD) return GR_NO;
    if (g->depth >= DEPTH_MOST) {
        node_limit(g, "it is nested too deeply");
        return GR_UNKNOWN;
    }
    g->depth++;
    enum gr_answer answer = settle(g, a);
    g->depth--;
    if (answer != GR_UNKNOWN) g->nodes[a].flags |= answer == GR_YES ? LIVE : DEAD;
    return answer;
}
