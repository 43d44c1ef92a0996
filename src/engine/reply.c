/* SPDX-License-Identifier: MIT
 *
 * Replies: samples the rows of a step side by side, pushes the tokens, and reports by events.
 *
 * Events are an array, not a ring, because one thread writes and reads them, between two steps. The number of threads
 * changes only the time: each reply's sampler has its own random draws, and one thread samples a row.
 */
#include "engine/reply.h"

#include "engine/encode.h"
#include "engine/sequence.h"

#include <string.h>

enum { CONTROL = 3 }; /* token type of control tokens */

enum {
    PROBE_AFTER = 32, /* tokens without a draft, after which one is tried; */
    PROBE_SOON = 8,   /* if it is probably right, and so costs little even on a machine where rows are dear */
    PLAIN_AFTER = 32, /* steps with drafts, after which one is made without: so that it stays known what that takes */
    DRAFTS_MOST = 7,  /* of a sequence in a step */
    DRAFTS_SEEN = 8,  /* how many of them tell how often they are right: texts change between what is copied and not; */
    GUESSES_SEEN = 32, /* a model's guesses are equally good for long, and must not end by chance */
    OWN_DRAFTS = 1,   /* the trust in the model's own drafts */
    GIVEN_DRAFTS = LOOKUP_TRUSTS, /* in those that the caller has given, by enum quern_draft: */
    GUESSES = GIVEN_DRAFTS + QUERN_GUESSED,
};

/* Share of drafts assumed to be right at the beginning, by `trust`; cost of a row, as a share of a step, before it is
 * known. */
static const double HITS_BEGIN[DRAFT_TRUSTS] = {0.35, 0.6, 0.85, 0.9, 0.7}, ROW_COST = 0.2;
static const double LEAST_GAIN = 1.03; /* less is not worth a draft: what times and chances promise is often too much */
static const double BACKGROUND_MS = 10000; /* without a row; after that the sequence has normal priority */

/* Most events of a step: a TOKEN for each output, three for each sequence in the step, and a LET_GO for each sequence
 * that was admitted before the plan and for each that was admitted in it. With vision two more for each: an ENCODE, and
 * room for further plans that are made while a medium is encoded. */
static int events_most(const struct quern_engine *e)
{
    return e->step.max_out + (e->projector ? 7 : 5) * e->options.parallel;
}

/* Most bytes of text in a step: a token for each output, and for each reply the bytes held before, also at its end. */
static uint64_t told_most(const struct quern_engine *e)
{
    return (uint64_t)e->step.max_out * e->longest_token +
           (uint64_t)e->options.parallel * (e->longest_token + sizeof((struct tok_stream *)0)->held);
}

static int scratch_count(const struct quern_engine *e) { return min_int(pool_threads(e->pool), e->options.parallel); }

/* Only measures when out is NULL. */
static uint64_t take_scratch(const struct quern_engine *e, struct arena a, struct sampler_scratch *out)
{
    struct sampler_scratch measured;
    for (int i = 0; i < scratch_count(e); i++) sampler_scratch_take(&a, e->n_sampled, out ? &out[i] : &measured);
    return a.used;
}

static uint64_t scratch_bytes(const struct quern_engine *e) { return take_scratch(e, (struct arena){0}, NULL); }

uint64_t replies_cost(const struct quern_engine *e)
{
    uint64_t n = (uint64_t)scratch_count(e), parallel = (uint64_t)e->options.parallel;
    return mem_cost(scratch_bytes(e)) + mem_cost(n * sizeof *e->picking.scratch) +
           mem_cost(parallel * sizeof *e->picking.who) + mem_cost((uint64_t)events_most(e) * sizeof *e->events) +
           mem_cost(told_most(e));
}

int replies_reserve(struct quern_engine *e)
{
    struct picking *k = &e->picking;
    k->n_scratch = scratch_count(e);
    k->arena = mem_alloc_raw(&e->mem, scratch_bytes(e));
    k->scratch = mem_array(&e->mem, (uint64_t)k->n_scratch, sizeof *k->scratch);
    k->who = mem_array(&e->mem, (uint64_t)e->options.parallel, sizeof *k->who);
    e->events = mem_array(&e->mem, (uint64_t)events_most(e), sizeof *e->events);
    e->told = mem_alloc_raw(&e->mem, told_most(e));
    e->step.guessed = HITS_BEGIN[GUESSES];
    if (!k->arena || !k->scratch || !k->who || !e->events || !e->told) return ERR_MEM_LOAD;
    take_scratch(e, (struct arena){.base = k->arena}, k->scratch);
    return OK;
}

void replies_free(struct quern_engine *e)
{
    void *parts[] = {e->picking.arena, e->picking.scratch, e->picking.who, e->events, e->told};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) mem_free(&e->mem, parts[i]);
}

/* --- events ------------------------------------------------------------------------------------------------------ */

/* Room for all TOKENs and the ENDs of the step is reserved; others are dropped when the rest is full. */
static void tell(struct quern_sequence *s, struct quern_event event)
{
    struct quern_engine *e = s->e;
    bool reserved = event.type == QUERN_TOKEN || event.type == QUERN_END;
    int others = reserved ? 0 : e->step.max_out + e->options.parallel;
    event.number = s->number;
    if (e->n_events < events_most(e) - others) e->events[e->n_events++] = event;
}

void replies_heard(struct quern_engine *e) { e->n_events = e->n_told = 0; }

const struct quern_event *quern_events(const struct quern_engine *e, int *n)
{
    *n = e->n_events;
    return e->events;
}

const uint8_t *quern_event_text(const struct quern_engine *e) { return e->told; }

void quern_facts(const struct quern_engine *e, struct sched_facts *out)
{
    *out = e->sched ? sched_facts(e->sched) : (struct sched_facts){0};
}

int replies_ready(const struct sched_seq *turn)
{
    const struct quern_sequence *s = (const struct quern_sequence *)turn;
    int ready = s->e->projector ? encode_ready(turn) : turn->n;
    return s->waits ? min_int(ready, turn->n - 1) : ready;
}

/* A background sequence that had no row for too long; one that waits for quern_reply_allow() does not count. */
static bool is_late(const struct quern_sequence *s)
{
    return s->listed && !s->turn.held && !s->waits && s->turn.priority > 0 &&
           s->e->options.now() - s->since > BACKGROUND_MS;
}

void replies_hurry(struct quern_engine *e)
{
    for (struct quern_sequence *s = e->sequences; s; s = s->next)
        if (is_late(s)) sched_prefer(e->sched, &s->turn, 0);
}

static void tell_read(struct quern_sequence *s, int done)
{
    tell(s, (struct quern_event){.type = QUERN_READ, .done = done, .total = s->turn.n, .cached = s->turn.cached});
    s->reads = true;
}

void replies_planned(struct quern_engine *e)
{
    for (struct quern_sequence *s = e->sequences; s; s = s->next) {
        if (s->replies && s->turn.let_go != s->let_go) tell(s, (struct quern_event){.type = QUERN_LET_GO});
        s->let_go = s->turn.let_go;
        if (s->replies && !s->reads && s->turn.rows > 0) tell_read(s, s->turn.kv.length);
    }
}

void replies_encoded(struct quern_engine *e)
{
    for (struct quern_sequence *s = e->sequences; s; s = s->next) {
        struct quern_event event = {.type = QUERN_ENCODE, .cached = s->turn.cached};
        if (s->looks && s->replies) {
            encode_progress(s, &event.done, &event.total);
            tell(s, event);
        }
        s->looks = false;
    }
}

void replies_computed(struct quern_sequence *s, int end, double now)
{
    s->since = now;
    if (s->replies && !s->writes) tell_read(s, end);
}

/* --- begin and end ----------------------------------------------------------------------------------------------- */

int quern_reply_begin(struct quern_sequence *s, const struct quern_reply *r)
{
    struct quern_engine *e = s->e;
    int room = e->context_size - s->turn.n;
    if (engine_lost(e)) return ERR_LOST;
    if (s->outputs != QUERN_HELD || s->begun || s->turn.n == 0)
        return fail(&e->error, ERR_BUSY, "held", 0, "A reply begins once, after its tokens have been set and held.");
    if (room == 0) return sequence_fail_context(e, s->turn.n + 1);
    if (r->n_silent < 0 || r->n_silent > QUERN_SILENT_MOST || (r->n_silent && !r->silent))
        return fail(&e->error, ERR_PARAM, "silent", 0, "At most %d tokens of a reply can be silent.",
                    QUERN_SILENT_MOST);
    int status = quern_sample_begin(s, &r->sampling);
    if (status) return status;
    s->n_silent = r->n_silent;
    for (int i = 0; i < r->n_silent; i++) s->silent[i] = r->silent[i];
    s->fits = r->max_tokens > 0 && r->max_tokens <= room;
    s->left = s->fits ? r->max_tokens : room;
    s->turn.limit = s->turn.n + s->left;
    status = sequence_reserve(s, s->turn.limit);
    if (!status) status = sequence_enter(s);
    if (status) return status;
    s->single = r->single;
    s->drafted = s->given = 0;
    s->right = false;
    memcpy(s->hits, HITS_BEGIN, sizeof s->hits);
    s->hits[GUESSES] = e->step.guessed;
    s->undrafted = s->n_drafted = s->n_right = 0;
    lookup_forget(&s->lookup);
    s->begun = s->replies = true;
    s->reads = s->writes = s->limited = s->waits = false;
    s->let_go = s->turn.let_go;
    return OK;
}

void quern_reply_end(struct quern_sequence *s)
{
    if (s->replies) sequence_leave(s);
}

int quern_reply_allow(struct quern_sequence *s, const uint32_t *bits, int flags)
{
    size_t bytes = (size_t)(s->e->n_sampled + 31) / 32 * sizeof *bits;
    if (!s->replies) return OK;
    if (s->waits) s->since = s->e->options.now();
    s->waits = flags & QUERN_WAITS;
    if (s->waits) return OK;
    if (bits && !s->allowed && !(s->allowed = mem_alloc_raw(&s->e->mem, bytes)))
        return fail(&s->e->error, ERR_MEM_LOAD, "allowed", 0,
                    "There is not enough memory to limit what a reply may say.");
    if (bits) memcpy(s->allowed, bits, bytes);
    s->limited = bits != NULL;
    sampler_spare(s->sampler, flags & QUERN_LENIENT);
    return OK;
}

static void finish(struct quern_sequence *s, enum quern_end why, int32_t token, int status)
{
    struct quern_engine *e = s->e;
    struct quern_event event = {.type = QUERN_END,
                                .end = (int32_t)why,
                                .token = token,
                                .status = status,
                                .text = e->n_told,
                                .done = s->n_right,
                                .total = s->n_drafted};
    if (why != QUERN_ERROR) event.size = (int32_t)tok_stream_end(&s->stream, e->told + e->n_told);
    e->n_told += event.size;
    tell(s, event);
    sequence_leave(s);
}

/* --- drafts ---------------------------------------------------------------------------------------------------- */

/* ms of a step with this number of rows, guessed from that of `writers` rows before it was measured. 0: not known. */
static double step_ms(const struct quern_engine *e, int writers, int rows)
{
    double ms = sched_ms(e->sched, rows), plain = sched_ms(e->sched, writers);
    return ms > 0 || rows == writers ? ms : plain * (1 + ROW_COST * (rows - writers) / writers);
}

/* The number of drafts, at most `most`, each right in a share `hits` of cases if the one before it is, with which steps
 * of so many rows write the most tokens in their time and that of drafting, draft_ms each; 0 if that gains little. */
static int best_number(const struct quern_engine *e, int writers, int rows, double hits, double draft_ms, int most)
{
    double tokens = writers, right = 1, best = 0;
    int best_n = 0;
    for (int n = 0; n <= most; n++) {
        double ms = step_ms(e, writers, rows + n) + n * draft_ms;
        if (n) tokens += right *= hits;
        if (ms <= 0) return 0;
        double speed = tokens / ms * (n ? 1 : LEAST_GAIN);
        if (speed > best) best = speed, best_n = n;
    }
    return best_n;
}

static bool allows(const struct quern_sequence *s, uint64_t id)
{
    return !s->limited || (id < (uint64_t)s->e->n_sampled && s->allowed[id >> 5] >> (id & 31) & 1);
}

/* Finds what followed the end of s before: its place, or 0. */
static int look_up(struct quern_sequence *s)
{
    int length, from = lookup_find(&s->lookup, s->ids, s->turn.n, &length);
    s->trust = length < 4 ? 0 : length < LOOKUP_LONGEST ? 1 : 2;
    return from && allows(s, s->ids[from]) ? from : 0;
}

static bool may_draft(const struct quern_engine *e)
{
    return (e->looks_up || e->model->config.drafts) && e->step.drafted < PLAIN_AFTER;
}

/* Whether s writes, and nothing else is known of its next tokens than what may be drafted. */
static bool goes_on_alone(const struct quern_sequence *s)
{
    return s->replies && s->writes && s->made_rows && s->left > 1 && !s->waits && !s->right;
}

static int count_writers(const struct quern_engine *e)
{
    int n = 0;
    for (const struct quern_sequence *s = e->sequences; s; s = s->next) n += s->replies && s->writes;
    return n;
}

/* Whether to try a draft though it seems not to pay: what rows cost may have changed since one was tried last. */
static bool probes(struct quern_sequence *s, int trust)
{
    return ++s->undrafted > (s->hits[trust] > 0.8 ? PROBE_SOON : PROBE_AFTER);
}

/* The number of drafts of s in a step of so many rows; those that are looked up are put behind its ids. */
static int drafts_of(struct quern_sequence *s, int writers, int rows)
{
    bool own = s->e->model->config.drafts;
    int n = 0, end = s->turn.n, from = 0, most = own ? 1 : min_int(DRAFTS_MOST, s->left - 1);
    s->guessed = false;
    if (!may_draft(s->e) || !goes_on_alone(s)) return 0;
    if (s->given) s->trust = s->given_trust, most = min_int(most, s->given);
    else if (s->e->be->late && own) return 0; /* the step would wait for the device twice */
    else if (own) s->trust = OWN_DRAFTS;
    else if (!(from = look_up(s))) return 0;
    most = best_number(s->e, writers, rows, s->hits[s->trust], s->given ? 0 : s->e->step.draft_ms, most);
    if (most == 0) most = s->trust == GUESSES || probes(s, s->trust); /* guesses are there, and cost nothing more */
    if (!from) return most;
    s->ids[end] = s->ids[from];
    s->guessed = most == 0;
    for (; n < most && !(s->ids[from + n] >> 63); n++) s->ids[end + n] = s->ids[from + n]; /* parts of media are none */
    return n;
}

void replies_draft(struct quern_engine *e)
{
    int writers = count_writers(e), rows = writers;
    for (struct quern_sequence *s = e->sequences; s; s = s->next) {
        s->turn.drafts = drafts_of(s, writers, rows);
        rows += s->turn.drafts;
    }
    e->step.drafted = rows > writers ? e->step.drafted + 1 : 0;
}

bool replies_drafts_own(const struct quern_sequence *s) { return s->trust == OWN_DRAFTS; }

int quern_reply_wants(struct quern_sequence *s, double ms)
{
    struct quern_engine *e = s->e;
    if (!may_draft(e) || !goes_on_alone(s) || s->given || s->turn.rows) return 0;
    if (e->looks_up && look_up(s) && s->trust > 0) return 0;
    int most = e->model->config.drafts ? 1 : min_int(DRAFTS_MOST, s->left - 1), writers = count_writers(e);
    int n = best_number(e, writers, writers, s->hits[GUESSES], ms, most);
    return n ? n : QUERN_TRY;
}

void quern_reply_draft(struct quern_sequence *s, const int32_t *ids, int n, enum quern_draft how)
{
    if (!s->replies || s->drafted || s->turn.rows || !may_draft(s->e)) return;
    s->given_trust = GIVEN_DRAFTS + (int)how;
    n = min_int(min_int(n, DRAFTS_MOST), s->left - 1);
    for (s->given = 0; s->given < n; s->given++) {
        int32_t id = ids[s->given];
        if (id < 0 || id >= s->e->n_sampled) break;
        s->ids[s->turn.n + s->given] = (uint64_t)id;
    }
}

/* The next token is not sampled from a draft's row, so those that are left are none. */
static void drop_drafts(struct quern_sequence *s)
{
    sched_judge(s->e->sched, &s->turn, false);
    s->drafted = 0;
    s->right = false;
}

/* Whether s was foreseen rightly, by a draft or by what would have been one. */
static void learn(struct quern_sequence *s, bool right)
{
    double *hits = &s->hits[s->trust], seen = DRAFTS_SEEN;
    struct step *p = &s->e->step;
    if (s->trust == GUESSES) {
        seen = min_int(DRAFTS_SEEN + p->guesses++, GUESSES_SEEN);
        p->guessed += ((double)right - p->guessed) / seen;
    }
    *hits += ((double)right - *hits) / seen;
}

/* s has written a token, which its next draft has foreseen or not. */
static void judge(struct quern_sequence *s, bool right)
{
    s->undrafted = 0;
    learn(s, right);
    s->right = right && s->replies;
    if (!right && s->replies) drop_drafts(s);
}

/* The next token is sampled from the row of the draft that was right. */
static void go_on(struct quern_sequence *s)
{
    sched_judge(s->e->sched, &s->turn, true);
    s->n_right++;
    s->drafted--;
    s->row++;
    s->right = false;
    s->e->picking.who[s->e->picking.n++] = s;
}

/* --- sampling ---------------------------------------------------------------------------------------------------- */

/* Each thread with scratch takes one row after the other. */
static void pick_rows(void *arg, int thread, int n_threads)
{
    struct picking *k = arg;
    (void)n_threads;
    if (thread >= k->n_scratch) return;
    for (int i; (i = __atomic_fetch_add(&k->next, 1, __ATOMIC_RELAXED)) < k->n;) {
        struct quern_sequence *s = k->who[i];
        const uint32_t *allowed = s->limited ? s->allowed : NULL;
        s->picked = sampler_pick(s->sampler, &k->scratch[thread], sequence_row(s, s->row), allowed);
    }
}

static bool is_text(const struct quern_sequence *s, int32_t id, int kind)
{
    bool silent = kind == CONTROL;
    for (int i = 0; i < s->n_silent; i++) silent |= s->silent[i] == id;
    return !silent;
}

static void tell_token(struct quern_sequence *s, int32_t id)
{
    struct quern_engine *e = s->e;
    struct quern_event event = {.type = QUERN_TOKEN, .token = id, .kind = quern_token_type(e, id), .text = e->n_told};
    if (is_text(s, id, event.kind))
        event.size = (int32_t)tok_stream_push(&s->stream, quern_token(e, id), e->told + e->n_told);
    e->n_told += event.size;
    tell(s, event);
}

static void write_token(struct quern_sequence *s, int id)
{
    if (id < 0) {
        finish(s, QUERN_ERROR, 0, sequence_picked(s->e, id));
    } else if (quern_is_end(s->e, id)) {
        finish(s, QUERN_STOP, id, OK);
    } else {
        s->writes = true;
        s->left--;
        s->given = 0;
        tell_token(s, id);
        if (s->left == 0) finish(s, s->fits ? QUERN_LENGTH : QUERN_CONTEXT, 0, OK);
        else s->ids[s->turn.n++] = (uint64_t)id;
    }
}

/* Writes a token of each reply of e->picking, and more of those whose drafts were right. */
static void write_tokens(struct quern_engine *e)
{
    struct picking *k = &e->picking;
    while (k->n > 0) {
        int n = k->n;
        k->next = 0;
        if (n > 1) pool_run(e->pool, pick_rows, k);
        else pick_rows(k, 0, 1);
        k->n = 0;
        for (int i = 0; i < n; i++) {
            struct quern_sequence *s = k->who[i];
            bool right = (s->drafted || s->guessed) && s->picked >= 0 && s->ids[s->turn.n] == (uint64_t)s->picked;
            write_token(s, s->picked);
            if (s->drafted) judge(s, right);
            else if (s->guessed) learn(s, right);
            if (s->right && !s->single) go_on(s);
        }
    }
}

void replies_write(struct quern_engine *e)
{
    struct picking *k = &e->picking;
    k->n = 0;
    for (struct quern_sequence *s = e->sequences; s; s = s->next) {
        if (!s->replies || !s->made_rows) continue;
        s->row = s->made_rows - 1 - s->drafted;
        s->n_drafted += s->drafted;
        k->who[k->n++] = s;
    }
    write_tokens(e);
}

bool replies_go_on(struct quern_engine *e)
{
    e->picking.n = 0;
    for (struct quern_sequence *s = e->sequences; s; s = s->next)
        if (s->replies && s->right && !s->waits) go_on(s);
    bool any = e->picking.n > 0;
    for (struct quern_sequence *s = e->sequences; s; s = s->next) {
        if (!any && s->replies && s->right) drop_drafts(s);
        if (any && !s->begun) s->made_rows = 0; /* its outputs were those of the call before */
    }
    write_tokens(e);
    return any;
}

void replies_lost(struct quern_engine *e)
{
    for (struct quern_sequence *s = e->sequences; s; s = s->next) {
        s->made_rows = 0;
        if (s->replies) finish(s, QUERN_ERROR, 0, ERR_LOST);
    }
}
