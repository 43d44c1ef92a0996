/* SPDX-License-Identifier: MIT
 *
 * A hash table with open addressing finds nodes by their contents. Every probe counts as work, so an input that is made
 * to collide is refused instead of taking long. Ids grow from parts to wholes, so a pass in ascending order sees parts
 * first.
 */
#include "grammar/nodes.h"

#include <string.h>

enum { FIRST_NODES = 1 << 10, LIST_MOST = 1 << 16, FACTOR_DEPTH = 256 };

/* --- limits ---------------------------------------------------------------------------------------------------- */

gr_expr node_limit(struct grammar *g, const char *what)
{
    grammar_fail(g, "limit", 0, "The schema or grammar is too complicated: %s. Make it simpler.", what);
    return 0;
}

gr_expr node_memory(struct grammar *g)
{
    grammar_fail(g, "memory", 0,
                 "The schema or grammar needs more memory than is allowed. Make it simpler.");
    return 0;
}

static int (*pace)(void);

void grammar_pace(int (*call)(void)) { pace = call; }

static bool is_stopped(struct grammar *g)
{
    if (g->work < g->pace) {
        g->pace = g->work - PACE_WORK;
        g->stopped = g->stopped || (pace && pace());
    }
    return g->stopped;
}

bool node_work(struct grammar *g, int64_t n)
{
    g->work -= n;
    if (is_stopped(g)) return node_limit(g, "it takes too long");
    return g->work >= g->floor || node_limit(g, "it takes too many steps");
}

/* Never pauses before the first unit, so that each call makes progress. The work that led to the unit was also done
 * before the pause and counts once. */
bool node_pauses(struct grammar *g)
{
    if (g->slice.fresh) g->work = g->job.work;
    g->slice.over = !g->slice.fresh && g->work <= g->slice.until;
    g->slice.fresh = false;
    return g->slice.over;
}

bool node_room(struct grammar *g, void **array, uint32_t *room, uint64_t needed, size_t size)
{
    if (needed <= *room) return true;
    uint64_t most = *room ? *room : 64;
    while (most < needed) most *= 2;
    void *grown = most <= UINT32_MAX / 2 ? mem_resize(g->mem, *array, most * size) : NULL;
    if (!grown) return node_memory(g) != 0;
    *array = grown;
    *room = (uint32_t)most;
    return true;
}

/* --- nodes ----------------------------------------------------------------------------------------------------- */

static bool has_words(uint8_t kind)
{
    return kind == NODE_SET || kind == NODE_OR || kind == NODE_AND || kind == NODE_MULTIPLE;
}

static uint32_t mix(uint32_t h, uint32_t word)
{
    h = (h ^ word) * 0x9E3779B1u;
    return h ^ h >> 15;
}

static uint32_t hash_node(const struct grammar *g, const struct node *n)
{
    uint32_t h = mix(mix(n->kind, n->b), n->c);
    if (!has_words(n->kind)) return mix(mix(h, n->a), 1);
    for (uint32_t i = 0; i < n->b; i++) h = mix(h, g->lists[n->a + i]);
    return mix(h, 1);
}

static bool same_node(const struct grammar *g, const struct node *a, const struct node *b)
{
    if (a->kind != b->kind || a->b != b->b || a->c != b->c) return false;
    return has_words(a->kind) ? memcmp(g->lists + a->a, g->lists + b->a, a->b * sizeof *g->lists) == 0 : a->a == b->a;
}

static uint32_t *slot_of(struct grammar *g, const struct node *n)
{
    uint32_t at = hash_node(g, n) & (g->n_slots - 1), probes = 1;
    while (g->slots[at] && !same_node(g, n, &g->nodes[g->slots[at]])) at = (at + 1) & (g->n_slots - 1), probes++;
    g->work -= probes / 4;
    return &g->slots[at];
}

static bool grow_nodes(struct grammar *g)
{
    if (g->n_nodes >= NODES_MOST) return node_limit(g, "it has too many parts") != 0;
    uint32_t room = g->room_nodes ? g->room_nodes * 2 : FIRST_NODES;
    uint32_t *slots = mem_array(g->mem, (uint64_t)room * 2, sizeof *slots);
    struct node *nodes = slots ? mem_resize(g->mem, g->nodes, (uint64_t)room * sizeof *nodes) : NULL;
    if (!nodes) {
        mem_free(g->mem, slots);
        return node_memory(g) != 0;
    }
    mem_free(g->mem, g->slots);
    if (!g->nodes) nodes[0] = (struct node){0}; /* node 0 is never used, but loops over all nodes read it */
    g->nodes = nodes;
    g->slots = slots;
    g->room_nodes = room;
    g->n_slots = room * 2;
    for (uint32_t i = 1; i < g->n_nodes; i++) *slot_of(g, &g->nodes[i]) = i;
    return true;
}

static uint8_t facts_of_list(const struct grammar *g, const struct node *n)
{
    uint8_t any = 0, all = NULLABLE | LIVE | DEAD;
    for (uint32_t i = 0; i < n->b; i++) {
        uint8_t f = g->nodes[g->lists[n->a + i]].flags;
        any |= f;
        all &= f;
    }
    uint8_t rules = any & HAS_RULES;
    if (n->kind == NODE_OR) return (uint8_t)(rules | (any & (NULLABLE | LIVE)) | (any & LIVE ? 0 : all & DEAD));
    return (uint8_t)(rules | (all & NULLABLE) | (all & NULLABLE ? LIVE : any & DEAD));
}

uint8_t node_facts(const struct grammar *g, const struct node *n)
{
    uint8_t a = 0, b = 0;
    if (n->kind == NODE_CAT || n->kind == NODE_NOT || n->kind == NODE_REPEAT) a = g->nodes[n->a].flags;
    switch ((enum gr_kind)n->kind) {
    case NODE_NEVER: return DEAD;
    case NODE_EMPTY: return NULLABLE | LIVE;
    case NODE_SET: return LIVE;
    case NODE_CAT:
        b = g->nodes[n->b].flags;
        return (uint8_t)(((a | b) & (HAS_RULES | DEAD)) | (a & b & (NULLABLE | LIVE)));
    case NODE_OR:
    case NODE_AND: return facts_of_list(g, n);
    case NODE_NOT: return a & NULLABLE ? 0 : NULLABLE | LIVE;
    case NODE_REPEAT: return n->b == 0 ? (uint8_t)((a & HAS_RULES) | NULLABLE | LIVE) : a;
    case NODE_MULTIPLE: return n->c && !g->lists[n->a + 2] && !g->lists[n->a + 3] ? NULLABLE | LIVE : LIVE;
    case NODE_RULE: break;
    }
    gr_expr body = g->rules[n->a].body;
    return (uint8_t)(HAS_RULES | (g->ready && body ? g->nodes[body].flags : 0));
}

/* Finds or makes the node with these contents. Its words, if it has some, must be at the end of g->lists; they are
 * removed if the node exists. */
static gr_expr make(struct grammar *g, uint8_t kind, uint32_t a, uint32_t b, uint32_t c)
{
    struct node n = {.kind = kind, .a = a, .b = b, .c = c};
    if (!node_work(g, 1) || (g->n_nodes >= g->room_nodes && !grow_nodes(g))) return 0;
    uint32_t *slot = slot_of(g, &n);
    if (*slot) {
        if (has_words(kind)) g->n_lists = a;
        return *slot;
    }
    n.flags = node_facts(g, &n);
    *slot = g->n_nodes;
    g->nodes[g->n_nodes] = n;
    return g->n_nodes++;
}

static bool put_word(struct grammar *g, uint32_t word)
{
    if (!node_room(g, (void **)&g->lists, &g->room_lists, (uint64_t)g->n_lists + 1, sizeof *g->lists)) return false;
    g->lists[g->n_lists++] = word;
    return true;
}

static gr_expr make_words(struct grammar *g, uint8_t kind, const uint32_t *words, uint32_t n, uint32_t c)
{
    uint32_t begin = g->n_lists;
    for (uint32_t i = 0; i < n; i++)
        if (!put_word(g, words[i])) return 0;
    return make(g, kind, begin, n, c);
}

/* --- simple nodes ---------------------------------------------------------------------------------------------- */

gr_expr node_set(struct grammar *g, const uint32_t set[8])
{
    uint32_t any = 0;
    for (int i = 0; i < 8; i++) any |= set[i];
    return any ? make_words(g, NODE_SET, set, 8, 0) : EXPR_NEVER;
}

gr_expr node_never(struct grammar *g)
{
    gr_expr never = make(g, NODE_NEVER, 0, 0, 0);
    return make(g, NODE_EMPTY, 0, 0, 0) ? never : 0;
}

gr_expr node_rule(struct grammar *g, uint32_t number) { return make(g, NODE_RULE, number, 0, 0); }

gr_expr node_multiple(struct grammar *g, uint64_t divisor, uint64_t remainder, bool inside)
{
    uint32_t words[4] = {(uint32_t)divisor, (uint32_t)(divisor >> 32), (uint32_t)remainder,
                         (uint32_t)(remainder >> 32)};
    return make_words(g, NODE_MULTIPLE, words, 4, inside);
}

gr_expr node_not(struct grammar *g, gr_expr a)
{
    if (!a) return 0;
    return node_of(g, a)->kind == NODE_NOT ? node_of(g, a)->a : make(g, NODE_NOT, a, 0, 0);
}

static gr_expr raw_cat(struct grammar *g, gr_expr a, gr_expr b)
{
    if (!a || !b) return 0;
    return b == EXPR_EMPTY ? a : a == EXPR_EMPTY ? b : make(g, NODE_CAT, a, b, 0);
}

gr_expr node_straight(struct grammar *g, gr_expr a)
{
    const struct node *n = node_of(g, a);
    return n->kind == NODE_CAT && node_of(g, n->a)->kind == NODE_CAT ? node_cat(g, n->a, n->b) : a;
}

gr_expr node_cat(struct grammar *g, gr_expr a, gr_expr b)
{
    if (!a || !b) return 0;
    if (a == EXPR_NEVER || b == EXPR_NEVER) return EXPR_NEVER;
    if (a == EXPR_EMPTY) a = b, b = EXPR_EMPTY;
    while (a && node_of(g, a)->kind == NODE_CAT &&
           (b != EXPR_EMPTY || node_of(g, node_of(g, a)->a)->kind == NODE_CAT)) {
        b = raw_cat(g, node_of(g, a)->b, b);
        a = node_of(g, a)->a;
        if (!b) return 0;
    }
    return raw_cat(g, a, b);
}

gr_expr node_repeat(struct grammar *g, gr_expr a, uint32_t least, uint32_t most)
{
    if (!a) return 0;
    if (most < least) return EXPR_NEVER;
    if (most == 0 || a == EXPR_EMPTY) return EXPR_EMPTY;
    if (a == EXPR_NEVER) return least ? EXPR_NEVER : EXPR_EMPTY;
    if (is_nullable(g, a)) least = 0;
    if (least == 1 && most == 1) return a;
    const struct node *n = node_of(g, a);
    if (n->kind == NODE_REPEAT && n->b == 0 && n->c == GR_MANY) return a;
    return make(g, NODE_REPEAT, a, least, most);
}

/* --- lists ----------------------------------------------------------------------------------------------------- */

bool node_push(struct grammar *g, gr_expr a)
{
    if (!a || !node_room(g, (void **)&g->scratch, &g->room_scratch, (uint64_t)g->n_scratch + 1, sizeof *g->scratch))
        return false;
    g->scratch[g->n_scratch++] = a;
    return true;
}

static void sift(uint64_t *v, size_t at, size_t n)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && v[child + 1] > v[child]) child++;
        if (v[at] >= v[child]) return;
        uint64_t kept = v[at];
        v[at] = v[child];
        v[child] = kept;
    }
}

static void sort(uint64_t *v, size_t n)
{
    for (size_t i = n / 2; i-- > 0;) sift(v, i, n);
    for (size_t last = n; last-- > 1;) {
        uint64_t kept = v[0];
        v[0] = v[last];
        v[last] = kept;
        sift(v, 0, last);
    }
}

/* Merges inner lists into the list. Unites the sets of OR and intersects those of AND, into `set`. Returns false if it
 * failed. */
static bool flatten(struct grammar *g, uint8_t kind, uint32_t base, uint32_t set[8], bool *has_set)
{
    uint32_t end = g->n_scratch;
    if (!node_work(g, end - base)) return false;
    for (uint32_t i = base; i < end; i++) {
        const struct node *n = node_of(g, (gr_expr)g->scratch[i]);
        if (n->kind != kind) continue;
        uint32_t at = n->a, count = n->b;
        g->scratch[i] = kind == NODE_OR ? EXPR_NEVER : EXPR_ALL;
        for (uint32_t k = 0; k < count; k++)
            if (!node_push(g, g->lists[at + k])) return false;
    }
    if (g->n_scratch - base > LIST_MOST) return node_limit(g, "it has too many alternatives") != 0;
    uint32_t kept = base;
    *has_set = false;
    for (uint32_t i = base; i < g->n_scratch; i++) {
        const struct node *n = node_of(g, (gr_expr)g->scratch[i]);
        if (n->kind == NODE_SET) {
            for (uint32_t w = 0; w < 8; w++) {
                uint32_t word = g->lists[n->a + w];
                set[w] = !*has_set ? word : kind == NODE_OR ? set[w] | word : set[w] & word;
            }
            *has_set = true;
        } else if (g->scratch[i] != (kind == NODE_OR ? EXPR_NEVER : EXPR_ALL)) g->scratch[kept++] = g->scratch[i];
    }
    g->n_scratch = kept;
    return true;
}

/* Sorts by key << 32 | expression, and removes duplicates. */
static void sort_unique(struct grammar *g, uint32_t base)
{
    uint32_t kept = base;
    g->work -= g->n_scratch - base;
    sort(g->scratch + base, g->n_scratch - base);
    for (uint32_t i = base; i < g->n_scratch; i++)
        if (i == base || g->scratch[i] != g->scratch[kept - 1]) g->scratch[kept++] = g->scratch[i];
    g->n_scratch = kept;
}

static bool holds(const struct grammar *g, uint32_t base, gr_expr a)
{
    for (uint32_t i = base; i < g->n_scratch; i++)
        if ((gr_expr)g->scratch[i] == a) return true;
    return false;
}

/* Makes one expression of the remaining list. */
static gr_expr gather(struct grammar *g, uint8_t kind, uint32_t base)
{
    uint32_t begin = g->n_lists, n = g->n_scratch - base;
    if (n == 1) return (gr_expr)g->scratch[--g->n_scratch];
    for (uint32_t i = base; i < g->n_scratch; i++)
        if (!put_word(g, (uint32_t)g->scratch[i])) return 0;
    g->n_scratch = base;
    return make(g, kind, begin, n, 0);
}

/* --- alternatives ---------------------------------------------------------------------------------------------- */

static gr_expr head_of(const struct grammar *g, gr_expr a)
{
    return node_of(g, a)->kind == NODE_CAT ? node_of(g, a)->a : a;
}
static gr_expr tail_of(const struct grammar *g, gr_expr a)
{
    return node_of(g, a)->kind == NODE_CAT ? node_of(g, a)->b : EXPR_EMPTY;
}

/* x{i,j}t | x{k,l}t becomes x{min,max}t if the counts overlap or meet. Returns 0 if they do not. */
static gr_expr join_counts(struct grammar *g, gr_expr a, gr_expr b)
{
    struct node x = *node_of(g, head_of(g, a)), y = *node_of(g, head_of(g, b));
    if (x.kind != NODE_REPEAT || y.kind != NODE_REPEAT || x.a != y.a || tail_of(g, a) != tail_of(g, b)) return 0;
    if ((uint64_t)x.c + 1 < y.b || (uint64_t)y.c + 1 < x.b) return 0;
    gr_expr joined = node_repeat(g, x.a, x.b < y.b ? x.b : y.b, x.c > y.c ? x.c : y.c);
    return joined ? node_cat(g, joined, tail_of(g, a)) : 0;
}

/* Joins the counted repeats of a list, pair by pair. A list has few of them. */
static void join_repeats(struct grammar *g, uint32_t base)
{
    enum { COUNTED_MOST = 64 };
    uint32_t counted[COUNTED_MOST], n = 0;
    for (uint32_t i = base; i < g->n_scratch && n < COUNTED_MOST; i++)
        if (node_of(g, head_of(g, (gr_expr)g->scratch[i]))->kind == NODE_REPEAT) counted[n++] = i;
    g->work -= n * n / 2;
    for (uint32_t i = 1; i < n; i++) {
        for (uint32_t k = 0; k < i; k++) {
            gr_expr joined = join_counts(g, (gr_expr)g->scratch[counted[i]], (gr_expr)g->scratch[counted[k]]);
            if (!joined) continue;
            g->scratch[counted[i]] = joined;
            g->scratch[counted[k]] = EXPR_NEVER;
        }
    }
}

/* Alternatives of a sorted list with the same first part share it: h x | h y becomes h (x | y). */
static bool factor(struct grammar *g, uint32_t base)
{
    uint32_t kept = base, end = g->n_scratch;
    for (uint32_t i = base, next; i < end; i = next) {
        gr_expr head = (gr_expr)(g->scratch[i] >> 32), only = (gr_expr)g->scratch[i];
        for (next = i + 1; next < end && g->scratch[next] >> 32 == head;) next++;
        if (next > i + 1) {
            uint32_t inner = g->n_scratch;
            for (uint32_t k = i; k < next; k++) {
                gr_expr rest = node_straight(g, tail_of(g, (gr_expr)g->scratch[k]));
                if (!node_push(g, rest)) return false;
            }
            only = node_cat(g, head, node_or(g, inner));
            if (!only) return false;
        }
        g->scratch[kept++] = (uint64_t)head << 32 | only;
    }
    g->n_scratch = kept;
    return true;
}

static gr_expr unite(struct grammar *g, uint32_t base)
{
    uint32_t set[8];
    bool has_set;
    for (uint32_t i = base; i < g->n_scratch; i++) {
        gr_expr turned = node_straight(g, (gr_expr)g->scratch[i]);
        if (!turned) return 0;
        g->scratch[i] = turned;
    }
    if (!flatten(g, NODE_OR, base, set, &has_set)) return 0;
    if (has_set && !node_push(g, node_set(g, set))) return 0;
    if (g->n_scratch - base > 1) {
        if (holds(g, base, EXPR_ALL)) return EXPR_ALL;
        join_repeats(g, base);
        uint32_t kept = base;
        for (uint32_t i = base; i < g->n_scratch; i++) {
            gr_expr a = (gr_expr)g->scratch[i];
            if (a != EXPR_NEVER) g->scratch[kept++] = (uint64_t)head_of(g, a) << 32 | a;
        }
        g->n_scratch = kept;
        sort_unique(g, base);
        if (g->depth < FACTOR_DEPTH && !factor(g, base)) return 0;
    }
    return g->n_scratch == base ? EXPR_NEVER : gather(g, NODE_OR, base);
}

gr_expr node_or(struct grammar *g, uint32_t base)
{
    g->depth++;
    gr_expr all = unite(g, base);
    g->depth--;
    g->n_scratch = base;
    return all;
}

/* --- intersections --------------------------------------------------------------------------------------------- */

/* Removes x{0,} beside x{i,j}, since it has no effect there. */
static void drop_counted(struct grammar *g, uint32_t base)
{
    for (uint32_t i = base; i < g->n_scratch && g->n_scratch - base > 1; i++) {
        struct node star = *node_of(g, (gr_expr)g->scratch[i]);
        if (star.kind != NODE_REPEAT || star.b || star.c != GR_MANY) continue;
        g->work -= g->n_scratch - base;
        bool beside = false;
        for (uint32_t k = base; k < g->n_scratch && !beside; k++) {
            const struct node *n = node_of(g, (gr_expr)g->scratch[k]);
            beside = k != i && n->kind == NODE_REPEAT && n->a == star.a;
        }
        if (!beside) continue;
        memmove(g->scratch + i, g->scratch + i + 1, (g->n_scratch - i - 1) * sizeof *g->scratch);
        g->n_scratch--;
        return;
    }
}

static gr_expr intersect(struct grammar *g, uint32_t base)
{
    uint32_t set[8];
    bool has_set;
    if (!flatten(g, NODE_AND, base, set, &has_set)) return 0;
    if (has_set && !node_push(g, node_set(g, set))) return 0;
    sort_unique(g, base);
    if (holds(g, base, EXPR_NEVER)) return EXPR_NEVER;
    bool nullable = true;
    for (uint32_t i = base; i < g->n_scratch; i++) {
        const struct node *n = node_of(g, (gr_expr)g->scratch[i]);
        nullable = nullable && n->flags & NULLABLE;
        if (n->kind == NODE_NOT) g->work -= g->n_scratch - base;
        if (n->kind == NODE_NOT && holds(g, base, n->a)) return EXPR_NEVER;
    }
    drop_counted(g, base);
    if (holds(g, base, EXPR_EMPTY)) return nullable ? EXPR_EMPTY : EXPR_NEVER;
    return g->n_scratch == base ? EXPR_ALL : gather(g, NODE_AND, base);
}

gr_expr node_and(struct grammar *g, uint32_t base)
{
    gr_expr all = intersect(g, base);
    g->n_scratch = base;
    return all;
}
