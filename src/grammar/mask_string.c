/* SPDX-License-Identifier: MIT
 *
 * Masks inside JSON strings: the row of the slice for a number of characters, and the tokens that leave the string.
 */
#include "grammar/masks.h"

#include <string.h>

bool masks_is_inside(struct grammar *g, const struct masks *m, gr_state state, struct inside *out)
{
    struct node n = *node_of(g, g->states[state].expr), count;
    if (n.kind != NODE_CAT) return false;
    count = *node_of(g, n.a);
    if (count.kind != NODE_REPEAT || count.a != m->inside) return false;
    gr_expr rest = node_straight(g, n.b);
    if (!rest) return false;
    uint32_t inside[8], behind[8];
    derive_first(g, m->inside, inside);
    derive_first(g, rest, behind);
    for (int i = 0; i < 8; i++)
        if (inside[i] & behind[i]) return false;
    *out = (struct inside){count.b, count.c, rest};
    return true;
}

/* Sets the tokens of at most this many characters. Longer tokens cannot match: what follows the last character begins
 * with another byte. */
static uint32_t take_inside(struct masks *m, uint32_t most)
{
    const struct vocabulary *v = m->vocabulary;
    uint32_t row = most < SLICE_COUNTS ? most : SLICE_COUNTS;
    if (m->at) return row;
    memcpy(m->bits, v->inside + (size_t)row * v->n_words, v->n_words * sizeof *m->bits);
    for (uint32_t i = 0; i < v->n_long && most >= SLICE_COUNTS; i++)
        if (v->long_ones[i * 2 + 1] > most) bit_clear(m->bits, v->long_ones[i * 2]);
    return row;
}

/* Adds the tokens that leave the string: an allowed number of characters, then text that may follow. */
bool masks_inside(struct grammar *g, struct masks *m, const struct inside *in, uint32_t *row)
{
    const struct vocabulary *v = m->vocabulary;
    *row = take_inside(m, in->most);
    m->states[0] = state_of(g, in->rest);
    if (!m->states[0]) return false;
    for (uint32_t i = m->at; i < v->tails.n;) {
        const struct trie_node *node = &v->tails.nodes[i];
        uint32_t to = masks_next(g, m->states[node->depth - 1], node->byte);
        if (!to) return m->at = i, false;
        i = to == NEXT_DEAD ? node->skip : i + 1;
        if (to == NEXT_DEAD) continue;
        m->states[node->depth] = to;
        if (node->token == NO_TOKEN) continue;
        const uint32_t *one = v->tail_ones + (size_t)node->token * 3;
        if (one[1] >= in->least && one[1] <= in->most) bit_set(m->bits, one[0]);
    }
    return true;
}
