/* SPDX-License-Identifier: MIT
 *
 * Slots are few, and snapshots a few times as many, so everything here is a walk over short arrays.
 */
#include "engine/slots.h"

#include <string.h>

enum { NONE = -1, SNAPSHOTS = 4 /* for each slot, which several conversations may go on from */ };

uint64_t slots_cost(int n)
{
    const struct slots *s = NULL;
    uint64_t slots = (uint64_t)n;
    return n ? 2 * mem_cost(slots * sizeof *s->refs) + mem_cost(SNAPSHOTS * slots * sizeof *s->snapshots) : 0;
}

int slots_open(struct slots *s, struct mem *m, int n)
{
    *s = (struct slots){.mem = m, .n = n, .room = SNAPSHOTS * n};
    if (!n) return OK;
    s->refs = mem_array(m, (uint64_t)n, sizeof *s->refs);
    s->kept = mem_array(m, (uint64_t)n, sizeof *s->kept);
    s->snapshots = mem_array(m, (uint64_t)s->room, sizeof *s->snapshots);
    return s->refs && s->kept && s->snapshots ? OK : ERR_MEM_LOAD;
}

void slots_close(struct slots *s)
{
    mem_free(s->mem, s->refs);
    mem_free(s->mem, s->kept);
    mem_free(s->mem, s->snapshots);
}

/* --- snapshots --------------------------------------------------------------------------------------------- */

static void insert(struct slots *s, int at, struct snapshot k)
{
    memmove(s->snapshots + at + 1, s->snapshots + at, (size_t)(s->n_snapshots - at) * sizeof k);
    s->snapshots[at] = k;
    s->n_snapshots++;
}

static struct snapshot take_out(struct slots *s, int i)
{
    struct snapshot k = s->snapshots[i];
    s->n_snapshots--;
    memmove(s->snapshots + i, s->snapshots + i + 1, (size_t)(s->n_snapshots - i) * sizeof k);
    return k;
}

static void forget(struct slots *s, int i)
{
    int32_t slot = take_out(s, i).slot;
    s->kept[slot]--;
    s->refs[slot]--;
}

static int find(const struct slots *s, int32_t page, int length)
{
    for (int i = 0; i < s->n_snapshots; i++)
        if (s->snapshots[i].page == page && s->snapshots[i].length == length) return i;
    return NONE;
}

void slots_keep(struct slots *s, struct snapshot k, bool first)
{
    int i = find(s, k.page, k.length);
    if (i != NONE && first) return;
    if (i != NONE) {
        k = take_out(s, i);
        insert(s, s->n_snapshots, k);
        return;
    }
    s->kept[k.slot]++;
    s->refs[k.slot]++;
    if (s->n_snapshots == s->room) forget(s, 0);
    insert(s, first ? 0 : s->n_snapshots, k);
}

void slots_copy(struct slots *s, int32_t from, int32_t to, int length)
{
    /* copies come behind those that are still to be seen */
    for (int i = s->n_snapshots - 1; i >= 0 && s->n_snapshots < s->room; i--) {
        struct snapshot k = s->snapshots[i];
        if (k.page != from || k.length > length) continue;
        k.page = to;
        slots_keep(s, k, false);
    }
}

void slots_age(struct slots *s, int32_t page)
{
    for (int i = 0; i < s->n_snapshots; i++)
        if (s->snapshots[i].page == page) insert(s, 0, take_out(s, i));
}

void slots_forget(struct slots *s, int32_t page)
{
    for (int i = s->n_snapshots - 1; i >= 0; i--)
        if (s->snapshots[i].page == page) forget(s, i);
}

/* --- slots --------------------------------------------------------------------------------------------------- */

static int32_t find_free(const struct slots *s)
{
    for (int32_t i = 0; i < s->n; i++)
        if (s->refs[i] == 0) return i;
    return NONE;
}

static bool kept_later(const struct slots *s, int i)
{
    for (int k = i + 1; k < s->n_snapshots; k++)
        if (s->snapshots[k].slot == s->snapshots[i].slot) return true;
    return false;
}

/* The slot that only snapshots hold whose youngest snapshot is the oldest; NONE. */
static int32_t find_oldest(const struct slots *s)
{
    for (int i = 0; i < s->n_snapshots; i++) {
        int32_t slot = s->snapshots[i].slot;
        if (s->refs[slot] == s->kept[slot] && !kept_later(s, i)) return slot;
    }
    return NONE;
}

int32_t slots_take(struct slots *s)
{
    int32_t slot = find_free(s);
    if (slot == NONE) slot = find_oldest(s);
    if (slot == NONE) return NONE;
    for (int i = s->n_snapshots - 1; i >= 0; i--)
        if (s->snapshots[i].slot == slot) forget(s, i);
    s->refs[slot] = 1;
    return slot;
}

void slots_hold(struct slots *s, int32_t slot) { s->refs[slot]++; }

void slots_let_go(struct slots *s, int32_t slot)
{
    if (slot != NONE) s->refs[slot]--;
}

/* --- tests ------------------------------------------------------------------------------------------------------ */

bool slots_check(const struct slots *s, const int *users)
{
    for (int32_t slot = 0; slot < s->n; slot++) {
        int kept = 0;
        for (int i = 0; i < s->n_snapshots; i++) kept += s->snapshots[i].slot == slot;
        if (kept != s->kept[slot] || s->refs[slot] != users[slot] + kept) return false;
    }
    for (int i = 0; i < s->n_snapshots; i++)
        if (find(s, s->snapshots[i].page, s->snapshots[i].length) != i) return false;
    return s->n_snapshots <= s->room;
}
