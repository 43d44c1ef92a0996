/* SPDX-License-Identifier: MIT
 *
 * Turns of the encoder, and quern_media_encode(), which takes no turns.
 */
#include "engine/encode.h"

static const struct quern_sequence *sequence_of(const struct sched_seq *s) { return (const struct quern_sequence *)s; }

int encode_ready(const struct sched_seq *turn)
{
    const struct quern_sequence *s = sequence_of(turn);
    struct medium *awaited;
    return media_ready(s->media, s->n_media, turn->kv.length, turn->n, &awaited);
}

/* --- which sequence wants which medium -------------------------------------------------------------------------- */

static bool reads(const struct quern_sequence *s)
{
    return s->listed && s->n_media > 0 && s->turn.state == SCHED_READING;
}

static bool comes_before(const struct quern_sequence *a, const struct quern_sequence *b)
{
    return a->turn.priority != b->turn.priority ? a->turn.priority < b->turn.priority
                                                : a->turn.arrival < b->turn.arrival;
}

static bool unread(const struct quern_sequence *s, const struct placed *p)
{
    return p->first + medium_tokens(p->medium) > s->turn.kv.length;
}

static bool wants(const struct quern_sequence *s, const struct medium *m)
{
    for (int i = 0; i < s->n_media && reads(s); i++)
        if (s->media[i].medium == m && unread(s, &s->media[i])) return true;
    return false;
}

static bool wanted(const struct quern_engine *e, const struct medium *m)
{
    for (const struct quern_sequence *s = e->sequences; s; s = s->next)
        if (wants(s, m)) return true;
    return false;
}

/* The medium that a reader needs for its next step; NULL: none. */
static struct medium *awaits(const struct quern_engine *e, const struct quern_sequence *s)
{
    struct medium *m;
    if (!reads(s) || s->turn.follows) return NULL;
    int at = media_ready(s->media, s->n_media, s->turn.kv.length, s->turn.n, &m);
    return m && at < s->turn.kv.length + e->step.rows ? m : NULL;
}

bool encode_awaited(const struct quern_engine *e)
{
    for (const struct quern_sequence *s = e->sequences; s; s = s->next)
        if (awaits(e, s)) return true;
    return false;
}

/* --- begin and end --------------------------------------------------------------------------------------------- */

/* Marks the media that must not be given up for m: those that sequences before s have still to read, and those that s
 * reads before m. Refreshes all media that any reader wants, so that they are given up last. */
static void keep(struct quern_engine *e, const struct quern_sequence *s, const struct medium *m)
{
    struct media_store *store = &e->projector->store;
    for (struct medium *o = store->first; o; o = o->next) o->kept = false;
    for (const struct quern_sequence *o = e->sequences; o; o = o->next) {
        bool before = true;
        for (int i = 0; i < o->n_media && reads(o); i++) {
            struct medium *has = o->media[i].medium;
            if (!unread(o, &o->media[i])) continue;
            if (o == s && has == m) before = false;
            has->wanted = ++store->clock;
            has->kept |= s && (o == s ? before : comes_before(o, s));
        }
    }
}

static bool begin(struct quern_engine *e, const struct quern_sequence *s, struct medium *m)
{
    keep(e, s, m);
    store_place(&e->projector->store, m);
    if (!m->result) return false;
    store_hold(m);
    e->projector->look.medium = m;
    e->projector->look.part = 0;
    vision_begin(e->projector->vision, (const uint8_t *const[]){m->frames[0], m->frames[1]}, m->grid.rows * IMAGE_MERGE,
                 m->grid.cols * IMAGE_MERGE, m->result);
    return true;
}

static void end(struct quern_engine *e)
{
    struct medium *m = e->projector->look.medium;
    e->projector->look.medium = NULL;
    store_let_go(&e->projector->store, m);
}

void encode_drop(struct quern_engine *e)
{
    if (!e->projector->look.medium) return;
    store_abandon(&e->projector->store, e->projector->look.medium);
    end(e);
}

/* The next reader after `after` that needs a medium; after NULL: the first. Returns NULL when there is none. */
static struct quern_sequence *reader_behind(const struct quern_engine *e, const struct quern_sequence *after)
{
    struct quern_sequence *found = NULL;
    for (struct quern_sequence *s = e->sequences; s; s = s->next)
        if (awaits(e, s) && (!after || comes_before(after, s)) && (!found || comes_before(s, found))) found = s;
    return found;
}

static bool begin_next(struct quern_engine *e)
{
    struct quern_sequence *s = reader_behind(e, NULL);
    if (s) encode_drop(e);
    while (s && !begin(e, s, awaits(e, s))) s = reader_behind(e, s);
    return s != NULL;
}

/* --- parts ----------------------------------------------------------------------------------------------------- */

/* Counts the medium's tokens for every sequence that wants it. */
static void finish(struct quern_engine *e)
{
    struct medium *m = e->projector->look.medium;
    m->whole = true;
    for (struct quern_sequence *s = e->sequences; s; s = s->next)
        if (wants(s, m)) s->looked += medium_tokens(m);
    end(e);
}

static void run_part(struct quern_engine *e)
{
    struct look *l = &e->projector->look;
    double start = e->options.now();
    for (struct quern_sequence *s = e->sequences; s; s = s->next) s->looks |= wants(s, l->medium);
    profile_step(e->profile, PROFILE_VISION, l->part ? 0 : medium_tokens(l->medium), 0);
    profile_layer(e->profile, PROFILE_OUTSIDE);
    vision_part(e->projector->vision, l->part++);
    engine_beat(e);
    l->left -= e->options.now() - start;
    if (e->be->late && vision_awaits(e->projector->vision)) e->awaits = AWAITED_TOKENS;
    else encode_arrived(e);
}

void encode_arrived(struct quern_engine *e)
{
    const struct look *l = &e->projector->look;
    if (!l->medium) return; /* the medium was given up meanwhile */
    vision_arrive(e->projector->vision);
    if (l->part == vision_parts(e->projector->vision)) finish(e);
}

bool encode_part(struct quern_engine *e)
{
    if (!quern_sees(e)) return false;
    const struct medium *m = e->projector->look.medium;
    if (m && m->held == 1) encode_drop(e); /* only the encoder holds it */
    if ((!e->projector->look.medium || !wanted(e, m)) && !begin_next(e)) return false;
    run_part(e);
    return true;
}

void encode_turn(struct quern_engine *e, double step_ms)
{
    double beside = sched_extra(e->sched);
    e->projector->look.left = !encode_awaited(e) ? 0 : beside > 0 ? beside / 2 : step_ms;
}

void encode_progress(const struct quern_sequence *s, int *done, int *total)
{
    const struct look *l = &s->e->projector->look;
    *done = *total = s->looked;
    for (int i = 0; i < s->n_media; i++) {
        const struct medium *m = s->media[i].medium;
        bool again = false;
        for (int j = 0; j < i; j++) again |= s->media[j].medium == m;
        if (m->whole || again || !unread(s, &s->media[i])) continue;
        *total += medium_tokens(m);
        if (l->medium == m) *done += (int)((int64_t)medium_tokens(m) * l->part / vision_parts(s->e->projector->vision));
    }
}

/* --- on the caller's request ------------------------------------------------------------------------------------ */

static bool stopped(const struct quern_engine *e, double start, int budget_ms)
{
    return __atomic_load_n(&e->control.attention, __ATOMIC_RELAXED) ||
           (budget_ms > 0 && e->options.now() - start >= budget_ms);
}

int quern_media_encode(struct quern_engine *e, uint64_t id, int budget_ms, const float **out, int *tokens, int *width)
{
    struct medium *m = quern_sees(e) ? store_find(&e->projector->store, id) : NULL;
    if (!m) return fail(&e->error, ERR_PARAM, "media", 0, "No image with this id is held.");
    if (e->step.running && !m->whole)
        return fail(&e->error, ERR_BUSY, "step", 0, "Images are encoded between steps.");
    int status = engine_check(e);
    if (status) return status;
    double start = e->options.now();
    if (!m->whole && e->projector->look.medium != m) encode_drop(e);
    if (!m->whole && !e->projector->look.medium) begin(e, NULL, m); /* the store has room for any single medium */
    while (!m->whole) {
        run_part(e);
        if (!m->whole && (e->awaits || stopped(e, start, budget_ms))) return NEED_MORE;
    }
    *out = m->result;
    *tokens = medium_tokens(m);
    *width = e->projector->store.width;
    return OK;
}
