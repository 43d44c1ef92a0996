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

/* --- strings ---------------------------------------------------------------------------------------------------------------- */

/* A state inside a JSON string: least to most characters are to come, then `rest`, which begins with no byte of a character. */
struct inside {
    uint32_t least, most;
    gr_expr rest;
};

static bool is_inside(struct grammar *g, const struct masks *m, gr_state state, struct inside *out)
{
    struct node n = *node_of(g, g->states[state].expr), count;
    if (n.kind != NODE_CAT) return false;
    count = *node_of(g, n.a);
    if (count.kind != NODE_REPEAT || count.a != m->inside) return false;
    gr_expr rest = node_straight(g, n.b);
    if (!rest) return false;
    for (uint32_t c = 0; c < g->n_classes; c++) {
        gr_expr in = derive(g, m->inside, g->byte_of[c]);
        if (!in || (in != EXPR_NEVER && derive(g, rest, g->byte_of[c]) != EXPR_NEVER)) return false;
    }
    *out = (struct inside){count.b, count.c, rest};
    return true;
}

/* Tokens of at most so many characters. Longer ones cannot be in: what follows the last character begins otherwise. */
static void add_inside(const struct vocabulary *v, uint32_t most, uint32_t *bits)
{
    memcpy(bits, v->inside + (size_t)(most < SLICE_COUNTS ? most : SLICE_COUNTS) * v->n_words, v->n_words * sizeof *bits);
    for (uint32_t i = 0; i < v->n_long && most >= SLICE_COUNTS; i++)
        if (v->long_ones[i * 2 + 1] > most) bits[v->long_ones[i * 2] >> 5] &= ~(1u << (v->long_ones[i * 2] & 31));
}

/* Tokens that leave the string: as many characters as there may be, then what may follow. Returns how many nodes were seen, 0: failed. */
static uint32_t add_leaving(struct grammar *g, struct masks *m, const struct vocabulary *v, const struct inside *in)
{
    uint32_t seen = 1;
    m->states[0] = state_of(g, in->rest);
    if (!m->states[0]) return 0;
    for (uint32_t i = 0; i < v->tails.n; seen++) {
        const struct trie_node *node = &v->tails.nodes[i];
        uint32_t to = state_next(g, m->states[node->depth - 1], g->class_of[node->byte]);
        if (!to) return 0;
        i = to == NEXT_DEAD ? node->skip : i + 1;
        if (to == NEXT_DEAD) continue;
        m->states[node->depth] = to;
        if (node->token == NO_TOKEN) continue;
        const uint32_t *row = v->tail_ones + (size_t)node->token * 3;
        if (row[1] >= in->least && row[1] <= in->most) m->bits[row[0] >> 5] |= 1u << (row[0] & 31);
    }
    return seen;
}

/* --- beginnings of strings ---------------------------------------------------------------------------------------------------- */

enum { INSIDE_UNKNOWN, INSIDE_NOT, INSIDE_ENDLESS };

/* Whether every token of the slice may follow. */
static bool is_endless(struct grammar *g, const struct masks *m, gr_state state)
{
    if (g->states[state].inside == INSIDE_UNKNOWN) {
        struct inside in;
        bool endless = is_inside(g, m, state, &in) && in.most >= m->vocabulary->longest;
        g->states[state].inside = endless ? INSIDE_ENDLESS : INSIDE_NOT;
    }
    return g->states[state].inside == INSIDE_ENDLESS;
}

/* Whether most tokens of the slice lead into an endless string by their first byte: where a key begins that is none of those named. */
static bool is_beginning(struct grammar *g, const struct masks *m, gr_state state)
{
    uint32_t found = 0;
    for (uint32_t b = 0; b < 128; b++) {
        if (!m->vocabulary->inside_by[b]) continue;
        uint32_t to = state_next(g, state, g->class_of[b]);
        if (to && to != NEXT_DEAD && is_endless(g, m, to)) found += m->vocabulary->inside_by[b];
    }
    return found > m->vocabulary->n_inside / 2;
}

/* From the slice: takes away what does not go on from a state, and does not look below where an endless string has begun. */
static uint32_t take_away(struct grammar *g, struct masks *m, gr_state from)
{
    const struct trie *t = &m->vocabulary->all;
    uint32_t seen = 1;
    m->states[0] = from;
    for (uint32_t i = 0; i < t->n; seen++) {
        const struct trie_node *node = &t->nodes[i];
        uint32_t to = state_next(g, m->states[node->depth - 1], g->class_of[node->byte]);
        if (!to) return 0;
        if (to == NEXT_DEAD) {
            for (; i < node->skip; i++)
                if (t->nodes[i].token != NO_TOKEN) m->bits[t->nodes[i].token >> 5] &= ~(1u << (t->nodes[i].token & 31));
        } else if (is_endless(g, m, to)) {
            i = node->skip;
        } else {
            m->states[node->depth] = to;
            i++;
        }
    }
    return seen;
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
    struct inside in;
    uint32_t seen;
    if (is_inside(g, m, state, &in)) {
        add_inside(v, in.most, m->bits);
        seen = add_leaving(g, m, v, &in);
    } else if (is_beginning(g, m, state)) {
        add_inside(v, GR_MANY, m->bits);
        seen = take_away(g, m, state);
        if (seen) seen = walk(g, m, &v->rest, state, m->bits);
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
