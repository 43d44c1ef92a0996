/* SPDX-License-Identifier: MIT
 *
 * States: numbered expressions that texts have reached, with their transitions by class of bytes, which are computed
 * when first needed.
 */
#include "grammar/nodes.h"

#include <string.h>

gr_state state_of(struct grammar *g, gr_expr a)
{
    if (g->nodes[a].state) return g->nodes[a].state;
    if (g->n_states >= STATES_MOST) return node_limit(g, "it has too many states");
    if (g->n_states >= g->room_states) {
        uint32_t room = g->room_states, most = room;
        if (!node_room(g, (void **)&g->states, &room, (uint64_t)g->n_states + 1, sizeof *g->states)) return 0;
        if (!node_room(g, (void **)&g->next, &most, (uint64_t)g->n_states + 1, g->n_classes * sizeof *g->next))
            return 0;
        g->room_states = room;
    }
    uint32_t first[8], *next = g->next + (size_t)g->n_states * g->n_classes;
    derive_first(g, a, first);
    for (uint32_t c = 0; c < g->n_classes; c++) next[c] = set_has(first, g->byte_of[c]) ? 0 : NEXT_DEAD;
    g->states[g->n_states] = (struct state){.expr = a};
    g->nodes[a].state = g->n_states;
    return g->n_states++;
}

/* The target is kept in g->pending while its liveness is decided, because the call may pause meanwhile. */
uint32_t state_next(struct grammar *g, gr_state state, uint32_t byte_class)
{
    uint32_t *known = &g->next[(size_t)state * g->n_classes + byte_class], to = NEXT_DEAD;
    struct pending *p = &g->pending;
    if (*known) return *known;
    if (p->from != state || p->byte_class != byte_class) {
        if (node_pauses(g)) return 0;
        *p = (struct pending){state, byte_class, derive_unit(g, g->states[state].expr, g->byte_of[byte_class])};
    }
    enum gr_answer live = derive_live(g, p->to);
    if (g->slice.over) return 0;
    p->from = 0;
    if (live == GR_UNKNOWN) return node_limit(g, "it takes too long to decide whether any text satisfies it");
    if (live == GR_YES) to = state_of(g, p->to);
    if (to) g->next[(size_t)state * g->n_classes + byte_class] = to;
    return to;
}

gr_state grammar_start(const struct grammar *g) { return g->start; }

gr_state state_after(struct grammar *g, gr_state state, struct bytes text)
{
    for (size_t i = 0; i < text.size && state != GR_DEAD; i++) {
        uint32_t to = state_next(g, state, g->class_of[text.data[i]]);
        state = to == NEXT_DEAD ? GR_DEAD : to;
    }
    return state;
}

gr_state grammar_step(struct grammar *g, gr_state state, struct bytes text)
{
    if (!g->ready || state >= g->n_states) return GR_DEAD;
    g->work = CALL_WORK;
    g->slice.until = INT64_MIN;
    g->slice.fresh = false;
    g->err = (struct error){0};
    return state_after(g, state, text);
}

bool grammar_accepts(const struct grammar *g, gr_state state)
{
    return state != GR_DEAD && state < g->n_states && is_nullable(g, g->states[state].expr);
}

/* Memory counts as worn at half of the room left when the grammar became ready, because arrays double. */
bool grammar_worn(const struct grammar *g)
{
    uint64_t used = g->mem->used, limit = g->mem->limit;
    return g->n_states > STATES_MOST / 4 * 3 || (limit && used > g->begun + (limit - g->begun) / 2);
}

int grammar_ready(struct grammar *g, gr_expr start, struct error *err)
{
    g->depth = 0;
    if (start && !g->err.code && ready_check(g, start)) {
        g->n_states = 1;
        g->start = state_of(g, node_straight(g, start));
    }
    if (!g->start && !g->err.code) node_limit(g, "it gives no start state");
    g->begun = g->mem->used;
    g->pace = INT64_MIN;
    if (err) *err = g->err;
    return g->err.code;
}
