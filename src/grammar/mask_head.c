/* SPDX-License-Identifier: MIT
 *
 * Masks in states where a regular expression (the head) stands before something else. A token stays inside the head; or
 * it leaves the head at a byte where the head may end and cannot continue, and the expression after it continues from
 * that byte. One walk finds the tokens of the first kind, and the exits of the second kind; the results are valid
 * wherever the head occurs. If the expression after it may begin with a byte with which the head may continue too, this
 * way is not used.
 */
#include "grammar/masks.h"

#include <string.h>

/* Bytes that follow most heads in JSON. Their exits are always found, so that a head in another place needs no new
 * walk. */
static const char usual[] = "\t\n\r \",:]}";

static bool is_nullable_state(const struct grammar *g, gr_state s) { return is_nullable(g, g->states[s].expr); }

/* Walks the head over all tokens: sets the bits of tokens inside it, and pushes exits on the scratch. Returns false if
 * it failed. */
static bool walk_head(struct grammar *g, struct masks *m, struct head *h, gr_state from)
{
    const struct trie *t = &m->vocabulary->all;
    m->states[0] = from;
    for (uint32_t i = m->at; i < t->n;) {
        const struct trie_node *node = &t->nodes[i];
        gr_state before = m->states[node->depth - 1];
        uint32_t to = masks_next(g, before, node->byte);
        if (!to) return m->at = i, false;
        if (set_has(h->leaves, node->byte) && is_nullable_state(g, before)) {
            if (to != NEXT_DEAD) bit_set(h->goes_on, node->byte);
            else if (!node_push(g, i + 1)) return false;
            else h->n_exits++;
        }
        i = to == NEXT_DEAD ? node->skip : i + 1;
        if (to == NEXT_DEAD) continue;
        m->states[node->depth] = to;
        if (node->token != NO_TOKEN) bit_set(m->bits, node->token);
    }
    return true;
}

static bool covers(const uint32_t *set, const uint32_t *part)
{
    uint32_t more = 0;
    for (int i = 0; i < 8; i++) more |= part[i] & ~set[i];
    return !more;
}

static void begin_head(struct head *h, const struct head *known, gr_expr expr, const uint32_t leaves[8])
{
    *h = (struct head){.expr = expr};
    for (int i = 0; i < 8; i++) h->leaves[i] = leaves[i] | (known->expr == expr ? known->leaves[i] : 0);
    for (const char *c = usual; *c; c++) bit_set(h->leaves, (uint8_t)*c);
}

/* The results for a head, with exits for at least these bytes. NULL: failed. */
static const struct head *head_of(struct grammar *g, struct masks *m, gr_expr expr, const uint32_t leaves[8])
{
    struct head *known = &m->heads[(expr * 0x9E3779B1u) >> 16 & (HEADS - 1)], *h = &m->part;
    if (known->expr == expr && covers(known->leaves, leaves)) return known;
    if (!m->at) begin_head(h, known, expr, leaves);
    masks_clear(m);
    gr_state from = state_of(g, expr);
    bool good = from && walk_head(g, m, h, from);
    if (g->slice.over) return NULL;
    if (good) {
        h->within = masks_keep(g, m, 0);
        h->exits = masks_keep_list(g, m, h->n_exits);
        good = (h->within && h->exits) || node_memory(g);
    }
    g->n_scratch -= h->n_exits;
    if (!good) return NULL;
    *known = *h;
    return known;
}

/* The bytes with which a state continues. Returns false if it failed. */
static bool first_bytes(struct grammar *g, gr_state state, uint32_t out[8])
{
    memset(out, 0, 8 * sizeof *out);
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t to = masks_next(g, state, (uint8_t)b);
        if (!to) return false;
        if (to != NEXT_DEAD) bit_set(out, b);
    }
    return true;
}

enum head_answer masks_by_head(struct grammar *g, struct masks *m, gr_expr expr, gr_expr rest)
{
    const struct trie *t = &m->vocabulary->all;
    uint32_t first[8];
    gr_state behind = state_of(g, rest);
    if (!behind || !first_bytes(g, behind, first)) return HEAD_FAILED;
    const struct head *h = head_of(g, m, expr, first);
    if (!h) return HEAD_FAILED;
    for (int i = 0; i < 8; i++)
        if (first[i] & h->goes_on[i]) return HEAD_UNFIT;
    masks_clear(m);
    masks_add(m, h->within);
    for (uint32_t i = 0; i < h->n_exits; i++) {
        uint32_t at = m->kept[h->exits + i] - 1;
        if (t->nodes[at].skip <= m->at) continue;
        if (set_has(first, t->nodes[at].byte) && !masks_walk(g, m, at, t->nodes[at].skip, behind)) return HEAD_FAILED;
    }
    return HEAD_FOUND;
}
