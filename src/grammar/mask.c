/* SPDX-License-Identifier: MIT
 *
 * Masks: a walk over the flat tree of tokens, with a state for each depth; a dead state skips its subtree. Masks are
 * kept as lists of differences from a row of the slice, or from nothing. Most lists are short, so thousands are kept.
 * When their room is full, all are dropped.
 */
#include "grammar/masks.h"

#include <string.h>

enum {
    KEPT_MOST = 1 << 19 /* words; the current call may take some more */,
    KEPT_WHOLE = SLICE_COUNTS + 1 /* in place of a row: all words follow */
};

#define FORCED (NO_TOKEN - 1) /* the job of grammar_forced() */

void masks_free(struct grammar *g)
{
    if (!g->masks) return;
    void *parts[] = {g->masks->states, g->masks->others, g->masks->bits, g->masks->kept, g->masks};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) mem_free(g->mem, parts[i]);
    g->masks = NULL;
}

static void forget(struct grammar *g, struct masks *m)
{
    for (uint32_t s = 0; s < g->n_states; s++) g->states[s].mask = 0;
    memset(m->heads, 0, sizeof m->heads);
    m->n_kept = 1;
}

static struct masks *open_masks(struct grammar *g, const struct vocabulary *v)
{
    if (g->masks && g->masks->vocabulary == v) return g->masks;
    masks_free(g);
    struct masks *m = g->masks = mem_alloc(g->mem, sizeof *m);
    if (m) {
        m->vocabulary = v;
        m->states = mem_array(g->mem, (uint64_t)v->longest + 1, sizeof *m->states);
        m->others = mem_array(g->mem, (uint64_t)v->longest + 1, sizeof *m->others);
        m->bits = mem_array(g->mem, v->n_words, sizeof *m->bits);
        m->inside = gr_class(g, GR_JSON, &(struct gr_range){0, UINT32_MAX}, 1);
        for (int b = 0; b < 256; b++) m->weight[g->class_of[b]] += v->begin_with[b];
        forget(g, m);
    }
    if (m && m->states && m->others && m->bits && m->inside) return m;
    masks_free(g);
    node_memory(g);
    return NULL;
}

void masks_clear(struct masks *m)
{
    if (!m->at) memset(m->bits, 0, m->vocabulary->n_words * sizeof *m->bits);
}

bool masks_walk(struct grammar *g, struct masks *m, uint32_t begin, uint32_t end, gr_state from)
{
    const struct trie_node *nodes = m->vocabulary->all.nodes;
    const uint32_t *next = g->next;
    uint32_t n_classes = g->n_classes, *bits = m->bits;
    if (begin < end) m->states[nodes[begin].depth - 1] = from;
    for (uint32_t i = begin < m->at ? m->at : begin; i < end;) {
        const struct trie_node *node = &nodes[i];
        uint32_t class = g->class_of[node->byte], to = next[(size_t)m->states[node->depth - 1] * n_classes + class];
        if (!to) {
            to = state_next(g, m->states[node->depth - 1], class);
            if (!to) return m->at = i, false;
            next = g->next;
        }
        if (to == NEXT_DEAD) {
            i = node->skip;
            continue;
        }
        m->states[node->depth] = to;
        if (node->token != NO_TOKEN) bit_set(bits, node->token);
        i++;
    }
    return true;
}

/* --- keeping --------------------------------------------------------------------------------------------------- */

static bool room_for(struct grammar *g, struct masks *m, uint32_t n)
{
    uint64_t room = m->room_kept ? m->room_kept : 1 << 12;
    while (room < (uint64_t)m->n_kept + n) room *= 2;
    if (room == m->room_kept) return true;
    uint32_t *grown = room <= UINT32_MAX ? mem_resize(g->mem, m->kept, room * sizeof *grown) : NULL;
    if (!grown) return false;
    m->kept = grown;
    m->room_kept = (uint32_t)room;
    return true;
}

static const uint32_t *row_of(const struct masks *m, uint32_t row)
{
    return m->vocabulary->inside + (size_t)row * m->vocabulary->n_words;
}

static bool four_alike(const uint32_t *a, const uint32_t *b)
{
    return !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]));
}

/* Keeps a mask: its row, the number of tokens that differ, and these tokens; or KEPT_WHOLE, and all words. */
uint32_t masks_keep(struct grammar *g, struct masks *m, uint32_t row)
{
    const uint32_t *from = row_of(m, row), *bits = m->bits;
    uint32_t n_words = m->vocabulary->n_words, n = 0, place = m->n_kept;
    m->at = 0;
    if (!room_for(g, m, n_words + 2)) return 0;
    uint32_t *out = m->kept + place + 2;
    for (uint32_t w = 0; w < n_words && row != KEPT_WHOLE; w++) {
        if (w + 4 <= n_words && four_alike(bits + w, from + w)) {
            w += 3;
            continue;
        }
        for (uint32_t left = bits[w] ^ from[w]; left && row != KEPT_WHOLE; left &= left - 1) {
            if (n == n_words) row = KEPT_WHOLE;
            else out[n++] = w * 32 + (uint32_t)__builtin_ctz(left);
        }
    }
    if (row == KEPT_WHOLE) memcpy(out, bits, n_words * sizeof *out);
    out[-2] = row;
    out[-1] = n;
    m->n_kept = place + 2 + n;
    return place;
}

uint32_t masks_keep_list(struct grammar *g, struct masks *m, uint32_t n)
{
    uint32_t place = m->n_kept;
    if (!room_for(g, m, n)) return 0;
    for (uint32_t i = 0; i < n; i++) m->kept[place + i] = (uint32_t)g->scratch[g->n_scratch - n + i];
    m->n_kept += n;
    return place;
}

void masks_add(struct masks *m, uint32_t place)
{
    const uint32_t *kept = m->kept + place, n = kept[1];
    if (kept[0] == KEPT_WHOLE)
        for (uint32_t w = 0; w < n; w++) m->bits[w] |= kept[2 + w];
    else
        for (uint32_t i = 0; i < n; i++) bit_set(m->bits, kept[2 + i]);
}

/* Copies a kept mask to m->bits, unless a paused walk that began with it continues. Returns its row. */
static uint32_t restore(struct masks *m, uint32_t place)
{
    const uint32_t *kept = m->kept + place, row = kept[0], n = kept[1];
    bool whole = row == KEPT_WHOLE;
    if (m->at) return whole ? 0 : row;
    memcpy(m->bits, whole ? kept + 2 : row_of(m, row), m->vocabulary->n_words * sizeof *m->bits);
    for (uint32_t i = 0; i < n && !whole; i++) m->bits[kept[2 + i] >> 5] ^= 1u << (kept[2 + i] & 31);
    return whole ? 0 : row;
}

/* --- states that are almost equal to another one --------------------------------------------------------------- */

/* Finds the state to which most tokens lead by their first byte, if the next such byte stays there; else 0. Failures
 * show again later, and g tells of a pause. */
static gr_state likely(struct grammar *g, const struct masks *m, gr_state state)
{
    uint32_t found = 0, total = 0, sum = 0, most = 0, heaviest = 0;
    uint64_t lead = 0;
    for (uint32_t c = 0; c < g->n_classes; c++) { /* a majority vote by weight */
        uint32_t to = masks_next(g, state, g->byte_of[c]), weight = m->weight[c];
        if (g->slice.over) return 0;
        total += weight;
        if (to == found) lead += weight;
        else if (lead >= weight) lead -= weight;
        else found = to, lead = weight - lead;
    }
    if (!found || found == NEXT_DEAD || found == state) return 0;
    for (uint32_t c = 0; c < g->n_classes; c++) {
        if (masks_next(g, state, g->byte_of[c]) != found) continue;
        sum += m->weight[c];
        if (m->weight[c] > most) most = m->weight[c], heaviest = c;
    }
    return sum > total / 2 && masks_next(g, found, g->byte_of[heaviest]) == found ? found : 0;
}

static void clear_below(struct masks *m, uint32_t begin)
{
    const struct trie_node *nodes = m->vocabulary->all.nodes;
    for (uint32_t i = begin; i < nodes[begin].skip; i++)
        if (nodes[i].token != NO_TOKEN) bit_clear(m->bits, nodes[i].token);
}

/* Changes the mask of state `other` to that of `state`. If both reach the same state, or none, their tokens below are
 * the same. */
static bool differ(struct grammar *g, struct masks *m, gr_state state, gr_state other)
{
    const struct trie *t = &m->vocabulary->all;
    m->states[0] = state;
    m->others[0] = other;
    for (uint32_t i = m->at; i < t->n;) {
        const struct trie_node *node = &t->nodes[i];
        gr_state before = m->others[node->depth - 1];
        uint32_t to = masks_next(g, m->states[node->depth - 1], node->byte);
        uint32_t beside = before == NEXT_DEAD ? NEXT_DEAD : !to ? 0 : masks_next(g, before, node->byte);
        if (!to || !beside) return m->at = i, false;
        if (to == NEXT_DEAD && beside != NEXT_DEAD) clear_below(m, i);
        i = to == beside || to == NEXT_DEAD ? node->skip : i + 1;
        if (to == beside || to == NEXT_DEAD) continue;
        m->states[node->depth] = to;
        m->others[node->depth] = beside;
        if (node->token != NO_TOKEN) bit_set(m->bits, node->token);
    }
    return true;
}

/* --- the face -------------------------------------------------------------------------------------------------- */

static bool find_others(struct grammar *g, struct masks *m, gr_state state)
{
    struct node n = *node_of(g, g->states[state].expr);
    gr_expr head = n.kind == NODE_CAT ? n.a : g->states[state].expr,
            rest = n.kind == NODE_CAT ? node_straight(g, n.b) : EXPR_EMPTY;
    if (!rest) return false;
    if (node_of(g, head)->kind != NODE_SET && gr_is_regular(g, head)) {
        enum head_answer answer = masks_by_head(g, m, head, rest);
        if (answer != HEAD_UNFIT) return answer == HEAD_FOUND;
    }
    masks_clear(m);
    return masks_walk(g, m, 0, m->vocabulary->all.n, state);
}

/* Computes and keeps the state's mask, without end tokens, in m->bits. `other`: it may start from the mask of another
 * state. */
static bool find(struct grammar *g, struct masks *m, gr_state state, bool other, uint32_t *row)
{
    struct inside in;
    uint32_t known = g->states[state].mask;
    bool good;
    *row = 0;
    if (known) {
        *row = restore(m, known);
        return true;
    }
    gr_state from = 0;
    if (masks_is_inside(g, m, state, &in)) good = masks_inside(g, m, &in, row);
    else if (other && (from = likely(g, m, state)) != 0)
        good = find(g, m, from, false, row) && differ(g, m, state, from);
    else good = !g->slice.over && find_others(g, m, state);
    if (good) g->states[state].mask = masks_keep(g, m, *row);
    return good;
}

static bool is_at_hand(const struct grammar *g, gr_state state, uint32_t token)
{
    return g->job.state == state && g->job.token == token;
}

/* Begins a job, or continues it. */
static void enter(struct grammar *g, gr_state state, uint32_t token)
{
    if (!is_at_hand(g, state, token)) {
        g->job = (struct job){state, token, CALL_WORK};
        g->n_scratch = 0;
        if (g->masks && g->masks->n_kept > KEPT_MOST) forget(g, g->masks);
    }
    g->work = g->job.work;
    g->slice.until = g->slice.steps ? g->work - g->slice.steps : INT64_MIN;
    g->err = (struct error){0};
    g->slice.fresh = true;
    g->slice.over = false;
}

/* Ends a job that has not paused, so that nothing continues its unfinished work. */
static void leave(struct grammar *g)
{
    g->job.work = g->work;
    if (g->slice.over) return;
    g->job.state = g->search.start = g->pending.from = 0;
    if (g->masks) g->masks->at = 0;
}

static bool do_mask(struct grammar *g, const struct vocabulary *v, gr_state state)
{
    uint32_t row;
    enter(g, state, NO_TOKEN);
    struct masks *m = open_masks(g, v);
    bool good = m && find(g, m, state, true, &row);
    leave(g);
    return good;
}

static gr_state do_take(struct grammar *g, const struct vocabulary *v, gr_state state, uint32_t id)
{
    enter(g, state, id);
    gr_state to = state_after(g, state, (struct bytes){v->bytes + v->at[id], v->at[id + 1] - v->at[id]});
    leave(g);
    return to;
}

/* First finishes the paused job of another call. So only one job is unfinished at a time, and none discards what
 * another one has found. */
static bool is_free_for(struct grammar *g, const struct vocabulary *v, gr_state state, uint32_t token)
{
    struct job other = g->job;
    if (!other.state || is_at_hand(g, state, token)) return true;
    if (other.token == NO_TOKEN) do_mask(g, v, other.state);
    else do_take(g, v, other.state, other.token);
    return !g->slice.over;
}

void grammar_slice(struct grammar *g, int64_t steps) { g->slice.steps = steps; }

bool grammar_paused(const struct grammar *g) { return g->slice.over; }

const uint32_t *grammar_mask(struct grammar *g, const struct vocabulary *v, gr_state state)
{
    g->slice.over = false;
    if (!g->ready || state == GR_DEAD || state >= g->n_states) return NULL;
    if (!is_free_for(g, v, state, NO_TOKEN) || !do_mask(g, v, state)) return NULL;
    uint32_t *bits = g->masks->bits;
    if (grammar_accepts(g, state))
        for (uint32_t w = 0; w < v->n_words; w++) bits[w] |= v->ends[w];
    return bits;
}

gr_state grammar_take(struct grammar *g, const struct vocabulary *v, gr_state state, uint32_t id)
{
    g->slice.over = false;
    if (id >= v->n || state == GR_DEAD || state >= g->n_states) return GR_DEAD;
    if (v->kinds[id] == TOKEN_END) return grammar_accepts(g, state) ? state : GR_DEAD;
    if (v->kinds[id] == TOKEN_NEVER || v->at[id] == v->at[id + 1]) return GR_DEAD;
    return is_free_for(g, v, state, id) ? do_take(g, v, state, id) : GR_DEAD;
}

/* The only byte that may follow a state, and *to, the state after it; -1: there is not only one, or it is not known. */
static int only_byte(struct grammar *g, gr_state state, gr_state *to)
{
    int only = -1;
    for (int b = 0; b < 256; b++) {
        uint32_t next = masks_next(g, state, (uint8_t)b);
        if (!next || (next != NEXT_DEAD && only >= 0)) return -1;
        if (next != NEXT_DEAD) only = b, *to = next;
    }
    return only;
}

uint32_t grammar_forced(struct grammar *g, gr_state state, uint8_t *out, uint32_t most)
{
    uint32_t n = 0;
    if (!g->ready || state == GR_DEAD || state >= g->n_states || g->job.state) return 0;
    enter(g, state, FORCED);
    while (n < most && !grammar_accepts(g, state)) {
        int byte = only_byte(g, state, &state);
        if (byte < 0) break;
        out[n++] = (uint8_t)byte;
    }
    g->slice.over = false; /* what was not found is left out: nobody continues */
    g->err = (struct error){0};
    leave(g);
    return n;
}
