/* SPDX-License-Identifier: MIT
 *
 * A head, then the arrays unchanged. Caches are left out. Of the states there is only the start, which is made again.
 * The order of nodes (parts before wholes) is checked too, so a loaded grammar has no cycles except through rules.
 */
#include "grammar/saved.h"

#include "grammar/nodes.h"

#include <string.h>

enum { SAVED_MAGIC = 0x31725167, BEGUN = EXPR_ALL + 1 /* number of nodes in every pool */ };

struct head {
    uint32_t magic, n_nodes, room_nodes, n_lists, n_rules, n_classes, n_split, start, stamp,
        notes /* bytes, the final NUL included */;
    uint8_t class_of[256], byte_of[256];
};

static uint64_t size_of(const struct head *h)
{
    return sizeof *h + (uint64_t)h->n_nodes * sizeof(struct node) + (uint64_t)h->room_nodes * 2 * sizeof(uint32_t) +
           (uint64_t)h->n_lists * sizeof(uint32_t) + (uint64_t)h->n_rules * sizeof(struct rule) + h->notes;
}

static struct head head_of(const struct grammar *g)
{
    struct head h = {.magic = SAVED_MAGIC,
                     .n_nodes = g->n_nodes,
                     .room_nodes = g->room_nodes,
                     .n_lists = g->n_lists,
                     .n_rules = g->n_rules,
                     .n_classes = g->n_classes,
                     .n_split = g->n_split,
                     .start = g->states[g->start].expr,
                     .stamp = g->stamp,
                     .notes = g->notes ? (uint32_t)strlen(g->notes) + 1 : 0};
    memcpy(h.class_of, g->class_of, sizeof h.class_of);
    memcpy(h.byte_of, g->byte_of, sizeof h.byte_of);
    return h;
}

uint64_t grammar_saved_size(const struct grammar *g)
{
    struct head h = head_of(g);
    return size_of(&h);
}

static uint8_t *put(uint8_t *out, const void *from, uint64_t size)
{
    if (size) memcpy(out, from, (size_t)size);
    return out + size;
}

void grammar_save(const struct grammar *g, uint8_t *out)
{
    struct head h = head_of(g);
    struct node start = g->nodes[h.start];
    uint8_t *nodes = out + sizeof h;
    start.state = 0;
    out = put(out, &h, sizeof h);
    out = put(out, g->nodes, (uint64_t)h.n_nodes * sizeof *g->nodes);
    memcpy(nodes + (size_t)h.start * sizeof start, &start, sizeof start);
    out = put(out, g->slots, (uint64_t)h.room_nodes * 2 * sizeof *g->slots);
    out = put(out, g->lists, (uint64_t)h.n_lists * sizeof *g->lists);
    out = put(out, g->rules, (uint64_t)h.n_rules * sizeof *g->rules);
    put(out, g->notes, h.notes);
}

/* --- checks ---------------------------------------------------------------------------------------------------- */

static bool good_head(const struct head *h, uint64_t size)
{
    bool power = h->room_nodes && (h->room_nodes & (h->room_nodes - 1)) == 0;
    bool sizes = h->n_nodes <= h->room_nodes && h->room_nodes <= NODES_MOST * 2 && h->n_nodes > h->start && h->start &&
                 h->n_nodes >= BEGUN;
    bool classes = h->n_classes >= 1 && h->n_classes <= CLASSES_MOST && h->n_split <= h->n_nodes;
    for (int b = 0; b < 256; b++) classes = classes && h->class_of[b] < h->n_classes;
    return h->magic == SAVED_MAGIC && power && sizes && classes && h->notes <= NOTES_MOST && size_of(h) == size;
}

static bool within(const struct grammar *g, const struct node *n, uint32_t words)
{
    return (uint64_t)n->a + words <= g->n_lists;
}

/* Whether every part of a list comes before the list. */
static bool good_list(const struct grammar *g, const struct node *n, gr_expr self)
{
    bool good = within(g, n, n->b);
    for (uint32_t i = 0; good && i < n->b; i++) good = g->lists[n->a + i] - 1 < self - 1;
    return good;
}

static bool good_node(const struct grammar *g, gr_expr self)
{
    const struct node *n = &g->nodes[self];
    if (n->state) return false;
    switch ((enum gr_kind)n->kind) {
    case NODE_NEVER:
    case NODE_EMPTY: return true;
    case NODE_SET: return n->b == 8 && within(g, n, 8);
    case NODE_CAT: return n->a - 1 < self - 1 && n->b - 1 < self - 1;
    case NODE_OR:
    case NODE_AND: return good_list(g, n, self);
    case NODE_NOT:
    case NODE_REPEAT: return n->a - 1 < self - 1;
    case NODE_MULTIPLE: return n->b == 4 && within(g, n, 4) && (g->lists[n->a] || g->lists[n->a + 1]);
    case NODE_RULE: return n->a < g->n_rules;
    }
    return false;
}

/* Checks that at least half of the slots are free, so that every search ends. */
static bool good_slots(const struct grammar *g)
{
    uint32_t taken = 0, most = 0;
    for (uint32_t i = 0; i < g->n_slots; i++) {
        taken += g->slots[i] != 0;
        most = g->slots[i] > most ? g->slots[i] : most;
    }
    return taken < g->n_nodes && most < g->n_nodes;
}

static bool good_parts(const struct grammar *g)
{
    const struct node *n = g->nodes;
    bool good = n[EXPR_NEVER].kind == NODE_NEVER && n[EXPR_EMPTY].kind == NODE_EMPTY && n[EXPR_ALL].kind == NODE_NOT &&
                good_slots(g);
    good = good && n[0].kind == NODE_NEVER && !n[0].state;
    for (gr_expr a = 1; good && a < g->n_nodes; a++) good = good_node(g, a);
    for (uint32_t i = 0; good && i < g->n_rules; i++)
        good = g->rules[i].body < g->n_nodes && !g->rules[i].name[RULE_NAME - 1];
    return good;
}

/* --- loading --------------------------------------------------------------------------------------------------- */

/* Allocates an array of `room` items and copies the next n items of the block to its beginning. */
static void *take(struct mem *m, const uint8_t **from, uint64_t n, uint64_t room, size_t size)
{
    void *out = mem_alloc_raw(m, room * size);
    if (out && n) memcpy(out, *from, (size_t)(n * size));
    *from += n * size;
    return out;
}

static bool take_parts(struct grammar *g, const struct head *h, const uint8_t *from)
{
    g->memo = mem_array(g->mem, MEMO, sizeof *g->memo);
    g->nodes = take(g->mem, &from, h->n_nodes, h->room_nodes, sizeof *g->nodes);
    g->slots = take(g->mem, &from, (uint64_t)h->room_nodes * 2, (uint64_t)h->room_nodes * 2, sizeof *g->slots);
    g->lists = take(g->mem, &from, h->n_lists, h->n_lists, sizeof *g->lists);
    g->rules = take(g->mem, &from, h->n_rules, h->n_rules, sizeof *g->rules);
    if (h->notes) g->notes = take(g->mem, &from, h->notes, NOTES_MOST, 1);
    if (g->notes) g->notes[h->notes - 1] = 0;
    return g->memo && g->nodes && g->slots && g->lists && g->rules && (g->notes || !h->notes);
}

static void set_numbers(struct grammar *g, const struct head *h)
{
    g->n_nodes = h->n_nodes;
    g->room_nodes = h->room_nodes;
    g->n_slots = h->room_nodes * 2;
    g->n_lists = g->room_lists = h->n_lists;
    g->n_rules = g->room_rules = h->n_rules;
    g->n_classes = h->n_classes;
    g->n_split = h->n_split;
    g->stamp = h->stamp;
    memcpy(g->class_of, h->class_of, sizeof g->class_of);
    memcpy(g->byte_of, h->byte_of, sizeof g->byte_of);
}

static int load(struct grammar *g, const struct head *h, const uint8_t *from, struct error *err)
{
    if (!take_parts(g, h, from))
        return fail(err, ERR_MEM_LOAD, "memory", 0, "There is not enough memory for a grammar.");
    set_numbers(g, h);
    if (!good_parts(g)) return fail(err, ERR_PARAM, "saved", 0, "These bytes are not a grammar.");
    g->ready = true;
    g->work = CALL_WORK;
    g->pace = INT64_MIN;
    g->n_states = 1;
    g->start = state_of(g, h->start);
    g->begun = g->mem->used;
    if (g->start) return OK;
    *err = g->err;
    return g->err.code;
}

int grammar_load(struct mem *m, struct bytes block, struct grammar **out, struct error *err)
{
    struct head h;
    *out = NULL;
    bool good = block.size >= sizeof h;
    if (good) memcpy(&h, block.data, sizeof h);
    if (!good || !good_head(&h, block.size)) return fail(err, ERR_PARAM, "saved", 0, "These bytes are not a grammar.");
    struct grammar *g = mem_alloc(m, sizeof *g);
    if (!g) return fail(err, ERR_MEM_LOAD, "memory", 0, "There is not enough memory for a grammar.");
    g->mem = m;
    int status = load(g, &h, block.data + sizeof h, err);
    if (status) grammar_free(g);
    else *out = g;
    return status;
}
