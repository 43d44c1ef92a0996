/* SPDX-License-Identifier: MIT
 *
 * The store of media, and the rows of conversations with media.
 */
#include "engine/media.h"

#include <string.h>

/* --- life ---------------------------------------------------------------------------------------------------- */

int store_open(struct media_store *s, struct mem *mem, uint64_t floats, int width)
{
    *s = (struct media_store){.mem = mem, .room = floats, .width = width};
    s->pool = mem_alloc_raw(mem, floats * sizeof *s->pool); /* not touched before images come */
    return s->pool ? OK : ERR_MEM_LOAD;
}

static void free_frames(struct media_store *s, struct medium *m)
{
    if (m->frames[1] != m->frames[0]) mem_free(s->mem, m->frames[1]);
    mem_free(s->mem, m->frames[0]);
    m->frames[0] = m->frames[1] = NULL;
}

static void remove_medium(struct media_store *s, struct medium *m)
{
    struct medium **link = &s->first;
    while (*link != m) link = &(*link)->next;
    *link = m->next;
    free_frames(s, m);
    mem_free(s->mem, m);
}

void store_close(struct media_store *s)
{
    while (s->first) remove_medium(s, s->first);
    mem_free(s->mem, s->pool);
    s->pool = NULL;
}

static struct medium *find_any(const struct media_store *s, uint64_t id)
{
    struct medium *m = s->first;
    while (m && m->id != id) m = m->next;
    return m;
}

struct medium *store_find(const struct media_store *s, uint64_t id)
{
    struct medium *m = find_any(s, id);
    return m && m->held > 0 ? m : NULL;
}

static uint8_t *copy_frame(struct media_store *s, const struct image_grid *grid, const uint8_t *frame)
{
    size_t n = (size_t)grid->height * (size_t)grid->width * 3;
    uint8_t *copy = mem_alloc_raw(s->mem, n);
    if (copy) memcpy(copy, frame, n);
    return copy;
}

static uint64_t splitmix64(uint64_t x)
{
    uint64_t z = x + 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

static struct medium *new_medium(struct media_store *s, uint64_t id, uint64_t content, uint32_t scope,
                                 const struct image_grid *grid)
{
    struct medium *m = mem_alloc(s->mem, sizeof *m);
    if (!m) return NULL;
    *m = (struct medium){.id = id, .content = content, .scope = scope, .grid = *grid, .next = s->first};
    s->first = m;
    return m;
}

struct medium *store_add(struct media_store *s, const struct image_grid *grid, const uint8_t *frame0,
                         const uint8_t *frame1, uint32_t scope)
{
    uint64_t content = image_id(grid, (const uint8_t *const[]){frame0, frame1 ? frame1 : frame0});
    uint64_t id = scope ? splitmix64(content ^ splitmix64(scope)) : content;
    struct medium *m = find_any(s, id);
    if (!m) m = new_medium(s, id, content, scope, grid);
    if (!m) return NULL;
    if (!m->frames[0]) {
        m->frames[0] = copy_frame(s, grid, frame0);
        m->frames[1] = frame1 && m->frames[0] ? copy_frame(s, grid, frame1) : m->frames[0];
    }
    store_hold(m);
    if (m->frames[0] && m->frames[1]) return m;
    store_let_go(s, m);
    return NULL;
}

void store_hold(struct medium *m) { m->held++; }

void store_let_go(struct media_store *s, struct medium *m)
{
    if (--m->held > 0) return;
    if (m->result) free_frames(s, m);
    else remove_medium(s, m);
}

/* --- the pool ------------------------------------------------------------------------------------------------ */

static uint64_t size_of(const struct media_store *s, const struct medium *m)
{
    return (uint64_t)medium_tokens(m) * (uint64_t)s->width;
}

static uint64_t filled(const struct media_store *s)
{
    uint64_t sum = 0;
    for (const struct medium *m = s->first; m; m = m->next) sum += m->result ? size_of(s, m) : 0;
    return sum;
}

static void give_up(struct media_store *s, struct medium *m)
{
    m->result = NULL;
    m->whole = false;
    if (m->held == 0) remove_medium(s, m);
}

/* Floats of a scope's results, without those that must be kept. */
static uint64_t held_by(const struct media_store *s, uint32_t scope)
{
    uint64_t sum = 0;
    for (const struct medium *m = s->first; m; m = m->next)
        sum += m->result && !m->kept && m->scope == scope ? size_of(s, m) : 0;
    return sum;
}

/* Chooses the result to give up for `wants`: of the scope with the most floats (counting `wants`), the one that was
 * wanted longest ago. So a scope with many media does not push out those of others. */
static struct medium *oldest(const struct media_store *s, const struct medium *wants)
{
    struct medium *found = NULL;
    uint64_t most = 0;
    for (struct medium *m = s->first; m; m = m->next) {
        if (!m->result || m->kept) continue;
        uint64_t held = held_by(s, m->scope) + (m->scope == wants->scope ? size_of(s, wants) : 0);
        if (found && (held < most || (held == most && m->wanted > found->wanted))) continue;
        found = m;
        most = held;
    }
    return found;
}

/* Moves all results together at the beginning of the pool. */
static void compact(struct media_store *s)
{
    const float *done = s->pool;
    s->used = 0;
    for (;;) {
        struct medium *next = NULL;
        for (struct medium *m = s->first; m; m = m->next)
            if (m->result && m->result >= done && (!next || m->result < next->result)) next = m;
        if (!next) return;
        uint64_t n = size_of(s, next);
        done = next->result + n;
        next->result = memmove(s->pool + s->used, next->result, (size_t)n * sizeof *s->pool);
        s->used += n;
    }
}

void store_place(struct media_store *s, struct medium *m)
{
    uint64_t n = size_of(s, m), kept = 0;
    for (const struct medium *o = s->first; o; o = o->next) kept += o->result && o->kept ? size_of(s, o) : 0;
    if (n > s->room || kept > s->room - n) return;
    while (filled(s) > s->room - n) give_up(s, oldest(s, m));
    if (s->used > s->room - n) compact(s);
    m->result = s->pool + s->used;
    m->wanted = ++s->clock;
    s->used += n;
}

void store_abandon(struct media_store *s, struct medium *m)
{
    if (m->result && !m->whole) give_up(s, m);
}

/* --- rows ---------------------------------------------------------------------------------------------------- */

uint64_t media_row(uint64_t content, int i) { return (uint64_t)1 << 63 | splitmix64(content + (uint64_t)i) >> 1; }

/* After a medium: the row that follows it, and the position of that row. */
static int end_of(const struct placed *p) { return p->first + medium_tokens(p->medium); }
static int32_t position_behind(const struct placed *p)
{
    return p->position + max_int(p->medium->grid.rows, p->medium->grid.cols);
}

int media_place(const int32_t *ids, int n, const int32_t pads[2], struct placed *out, int n_media, int *bad)
{
    int placed = 0;
    int32_t next = 0;
    for (int i = 0; i < n;) {
        *bad = i;
        if (ids[i] < 0 || (ids[i] != pads[QUERN_IMAGE] && ids[i] != pads[QUERN_VIDEO])) {
            i++, next++;
            continue;
        }
        if (placed == n_media) return ERR_PARAM;
        struct placed *p = &out[placed++];
        int32_t pad = pads[p->medium->grid.frames == 1 ? QUERN_IMAGE : QUERN_VIDEO];
        p->first = i;
        p->position = next;
        for (; i < end_of(p); i++)
            if (i == n || ids[i] != pad) return ERR_PARAM;
        next = position_behind(p);
    }
    *bad = n;
    return placed == n_media ? OK : ERR_PARAM;
}

int media_at(const struct placed *media, int n_media, int at, int32_t position[3], const struct medium **in)
{
    const struct placed *p = NULL;
    for (int i = 0; i < n_media && media[i].first <= at; i++) p = &media[i];
    bool inside = p && at < end_of(p);
    int token = inside ? at - p->first : -1, cols = inside ? p->medium->grid.cols : 1;
    position[0] = inside ? p->position : p ? position_behind(p) + at - end_of(p) : at;
    position[1] = position[0] + (inside ? token / cols : 0);
    position[2] = position[0] + (inside ? token % cols : 0);
    *in = inside ? p->medium : NULL;
    return token;
}

int media_ready(const struct placed *media, int n_media, int from, int most, struct medium **awaited)
{
    *awaited = NULL;
    for (int i = 0; i < n_media; i++) {
        if (media[i].medium->whole || end_of(&media[i]) <= from) continue;
        *awaited = media[i].medium;
        return max_int(media[i].first, from);
    }
    return most;
}
