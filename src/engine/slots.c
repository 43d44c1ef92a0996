/* SPDX-License-Identifier: MIT
 *
 * There are few slots, and a few times as many snapshots, so everything here is a walk over short arrays.
 */
#include "engine/slots.h"

#include <string.h>

enum { NONE = -1, SNAPSHOTS = 4 /* for each slot: several conversations may continue from it */ };

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

static void insert(struct slots *s, struct snapshot k, enum kept_as as)
{
    int at = as == KEPT_LEAST ? 0 : as == KEPT_LESS ? s->n_less : s->n_snapshots;
    memmove(s->snapshots + at + 1, s->snapshots + at, (size_t)(s->n_snapshots - at) * sizeof k);
    s->snapshots[at] = k;
    s->snapshots[at].as = as;
    s->n_snapshots++;
    s->n_less += as != KEPT_MOST;
}

static struct snapshot take_out(struct slots *s, int i)
{
    struct snapshot k = s->snapshots[i];
    s->n_snapshots--;
    s->n_less -= i < s->n_less;
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

void slots_touch(struct slots *s, int32_t page, int length, enum kept_as as)
{
    int i = find(s, page, length);
    if (i != NONE && as != KEPT_LEAST) insert(s, take_out(s, i), as);
}

void slots_keep(struct slots *s, struct snapshot k, enum kept_as as)
{
    slots_touch(s, k.page, k.length, as);
    if (find(s, k.page, k.length) != NONE) return;
    s->kept[k.slot]++;
    s->refs[k.slot]++;
    if (s->n_snapshots == s->room) forget(s, 0);
    insert(s, k, as);
}

void slots_lower(struct slots *s, int32_t slot)
{
    for (int i = s->n_less; i < s->n_snapshots; i++)
        if (s->snapshots[i].slot == slot) insert(s, take_out(s, i), KEPT_LESS);
}

void slots_copy(struct slots *s, int32_t from, int32_t to, int length)
{
    for (int i = 0; i < s->n_snapshots && s->n_snapshots < s->room; i++) { /* one may be seen twice; it is added once */
        struct snapshot k = s->snapshots[i];
        if (k.page != from || k.length > length) continue;
        k.page = to;
        slots_keep(s, k, KEPT_LESS);
    }
}

void slots_age(struct slots *s, int32_t page)
{
    for (int i = 0; i < s->n_snapshots; i++)
        if (s->snapshots[i].page == page) insert(s, take_out(s, i), KEPT_LEAST);
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

/* Whether a snapshot is the youngest of its rank; never true of KEPT_LEAST. */
static bool is_youngest(const struct slots *s, int i)
{
    return s->snapshots[i].as != KEPT_LEAST && (i == s->n_less - 1 || i == s->n_snapshots - 1);
}

/* Among slots that only snapshots hold, the one whose youngest snapshot is the oldest; NONE if there is none. */
static int32_t find_oldest(const struct slots *s)
{
    for (int youngest = 0; youngest < 2; youngest++)
        for (int i = 0; i < s->n_snapshots; i++) {
            int32_t slot = s->snapshots[i].slot;
            if (is_youngest(s, i) == youngest && s->refs[slot] == s->kept[slot] && !kept_later(s, i)) return slot;
        }
    return NONE;
}

static int32_t take(struct slots *s, enum kept_as most)
{
    int32_t slot = find_free(s);
    if (slot == NONE) slot = find_oldest(s);
    if (slot == NONE) return NONE;
    for (int i = 0; i < s->n_snapshots; i++)
        if (s->snapshots[i].slot == slot && s->snapshots[i].as > most) return NONE;
    for (int i = s->n_snapshots - 1; i >= 0; i--)
        if (s->snapshots[i].slot == slot) forget(s, i);
    s->refs[slot] = 1;
    return slot;
}

int32_t slots_take(struct slots *s) { return take(s, KEPT_MOST); }
int32_t slots_take_spare(struct slots *s) { return take(s, KEPT_LEAST); }

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
