/* SPDX-License-Identifier: MIT
 *
 * Masks: the flat tree is walked with a state for each depth; a dead one skips what hangs below. A mask that took long is kept, the oldest gives way.
 */
#include "grammar/vocabulary.h"

#include <string.h>

enum { KEPT_MOST = 64, WORTH_KEEPING = 2048 /* nodes walked */ };

struct masks {
    const struct vocabulary *vocabulary;
    gr_state *states;   /* [longest + 1]: of a walk, by depth */
    uint32_t *bits;     /* [n_words]: the last mask that is not kept */
    uint32_t *kept[KEPT_MOST];
    gr_state kept_for[KEPT_MOST];
    uint32_t next;      /* place to be taken next */
    gr_expr inside;     /* a JSON string's character in this grammar */
};

void masks_free(struct grammar *g)
{
    if (!g->masks) return;
    for (int i = 0; i < KEPT_MOST; i++) mem_free(g->mem, g->masks->kept[i]);
    mem_free(g->mem, g->masks->states);
    mem_free(g->mem, g->masks->bits);
    mem_free(g->mem, g->masks);
    g->masks = NULL;
}

static struct masks *open_masks(struct grammar *g, const struct vocabulary *v)
{
    if (g->masks && g->masks->vocabulary == v) return g->masks;
    masks_free(g);
    for (uint32_t s = 0; s < g->n_states; s++) g->states[s].mask = 0;
    struct masks *m = g->masks = mem_alloc(g->mem, sizeof *m);
    if (m) {
        m->vocabulary = v;
        m->states = mem_array(g->mem, (uint64_t)v->longest + 1, sizeof *m->states);
        m->bits = mem_array(g->mem, v->n_words, sizeof *m->bits);
        m->inside = gr_class(g, GR_JSON, &(struct gr_range){0, UINT32_MAX}, 1);
    }
    if (m && m->states && m->bits && m->inside) return m;
    masks_free(g);
    node_memory(g);
    return NULL;
}

/* Sets the bits of the tree's tokens that the state allows. Returns how many nodes were seen, 0: failed. */
static uint32_t walk(struct grammar *g, struct masks *m, const struct trie *t, gr_state from, uint32_t *bits)
{
    const struct trie_node *nodes = t->nodes;
    const uint32_t *next = g->next;
    uint32_t seen = 1, n_classes = g->n_classes;
    m->states[0] = from;
    for (uint32_t i = 0; i < t->n; seen++) {
        const struct trie_node *node = &nodes[i];
        uint32_t class = g->class_of[node->byte], to = next[(size_t)m->states[node->depth - 1] * n_classes + class];
        if (!to) {
            to = state_next(g, m->states[node->depth - 1], class);
            if (!to) return 0;
            next = g->next;
        }
        if (to == NEXT_DEAD) {
            i = node->skip;
            continue;
        }
        m->states[node->depth] = to;
        if (node->token != NO_TOKEN) bits[node->token >> 5] |= 1u << (node->token & 31);
        i++;
    }
    return seen;
}

/* --- counted strings -------------------------------------------------------------------------------------------------------- */

/* Whether the state is characters of a JSON string, *most of them, then something that begins with no byte of a character. */
static bool is_inside(struct grammar *g, const struct masks *m, gr_state state, uint32_t *most)
{
    struct node n = *node_of(g, g->states[state].expr), count;
    if (n.kind != NODE_CAT) return false;
    count = *node_of(g, n.a);
    gr_expr rest = node_straight(g, n.b);
    if (count.kind != NODE_REPEAT || count.a != m->inside || !rest) return false;
    for (uint32_t c = 0; c < g->n_classes; c++) {
        gr_expr in = derive(g, m->inside, g->byte_of[c]);
        if (!in || (in != EXPR_NEVER && derive(g, rest, g->byte_of[c]) != EXPR_NEVER)) return false;
    }
    *most = count.c;
    return true;
}

/* Tokens of at most so many characters. Longer ones cannot be in: what follows the last character begins otherwise. */
static void add_inside(const struct vocabulary *v, uint32_t most, uint32_t *bits)
{
    memcpy(bits, v->inside + (size_t)(most < SLICE_COUNTS ? most : SLICE_COUNTS) * v->n_words, v->n_words * sizeof *bits);
    for (uint32_t i = 0; i < v->n_long && most >= SLICE_COUNTS; i++)
        if (v->long_ones[i * 2 + 1] > most) bits[v->long_ones[i * 2] >> 5] &= ~(1u << (v->long_ones[i * 2] & 31));
}

/* --- the face ----------------------------------------------------------------------------------------------------------------- */

static const uint32_t *keep(struct grammar *g, struct masks *m, gr_state state)
{
    uint32_t place = m->next, *bits = m->kept[place];
    if (!bits) bits = m->kept[place] = mem_alloc_raw(g->mem, m->vocabulary->n_words * sizeof *bits);
    if (!bits) return m->bits; /* short of memory: made anew each time */
    if (m->kept_for[place]) g->states[m->kept_for[place]].mask = 0;
    memcpy(bits, m->bits, m->vocabulary->n_words * sizeof *bits);
    m->kept_for[place] = state;
    g->states[state].mask = place + 1;
    m->next = (place + 1) % KEPT_MOST;
    return bits;
}

const uint32_t *grammar_mask(struct grammar *g, const struct vocabulary *v, gr_state state)
{
    if (!g->ready || state == GR_DEAD || state >= g->n_states) return NULL;
    g->work = CALL_WORK;
    g->err = (struct error){0};
    struct masks *m = open_masks(g, v);
    if (!m) return NULL;
    if (g->states[state].mask) return m->kept[g->states[state].mask - 1];
    uint32_t most, seen;
    if (is_inside(g, m, state, &most)) {
        add_inside(v, most, m->bits);
        seen = walk(g, m, &v->rest, state, m->bits);
    } else {
        memset(m->bits, 0, v->n_words * sizeof *m->bits);
        seen = walk(g, m, &v->all, state, m->bits);
    }
    if (!seen) return NULL;
    if (grammar_accepts(g, state))
        for (uint32_t w = 0; w < v->n_words; w++) m->bits[w] |= v->ends[w];
    return seen > WORTH_KEEPING ? keep(g, m, state) : m->bits;
}

gr_state grammar_take(struct grammar *g, const struct vocabulary *v, gr_state state, uint32_t id)
{
    if (id >= v->n || state == GR_DEAD || state >= g->n_states) return GR_DEAD;
    if (v->kinds[id] == TOKEN_END) return grammar_accepts(g, state) ? state : GR_DEAD;
    if (v->kinds[id] == TOKEN_NEVER || v->at[id] == v->at[id + 1]) return GR_DEAD;
    return grammar_step(g, state, (struct bytes){v->bytes + v->at[id], v->at[id + 1] - v->at[id]});
}
