/* SPDX-License-Identifier: MIT
 *
 * The step loop: the scheduler's plan becomes one batch, which is computed layer by layer, then the output head part by
 * part.
 *
 * A plan says which rows each sequence has, and no sequence changes before the plan ends. So a step may stop after any
 * layer and continue later, and a sequence that leaves the step does not disturb the others. Logits belong to the step
 * that made them.
 */
#include "engine/step.h"

#include "engine/encode.h"
#include "engine/reply.h"
#include "engine/sequence.h"

enum {
    CHUNK_DEFAULT = 64,        /* rows, with which products reach their best speed */
    CHUNK_MOST = 1024,
    CHUNK_FIRST = 16,          /* rows of the first step, until the machine's speed is known */
    LOGIT_BYTES = 4 << 20,     /* room for rows of logits, but at least for LOGIT_ROWS_MIN rows */
    LOGIT_ROWS_MIN = 8,
};

/* --- memory ------------------------------------------------------------------------------------------------------ */

void step_size(struct quern_engine *e)
{
    struct step *s = &e->step;
    int rows = LOGIT_BYTES / 4 / e->model->config.vocab_size;
    s->chunk = e->options.chunk > 0 ? min_int(e->options.chunk, CHUNK_MOST) : CHUNK_DEFAULT;
    s->rows = e->options.chunk > 0 ? s->chunk : CHUNK_FIRST;
    s->max_rows = max_int(s->chunk, e->options.parallel);
    s->max_runs = 2 * e->options.parallel;
    s->max_out = min_int(s->max_rows, max_int(rows, max_int(LOGIT_ROWS_MIN, e->options.parallel)));
}

uint64_t step_cost(const struct step *s)
{
    const struct batch *b = &s->batch;
    uint64_t rows = (uint64_t)s->max_rows;
    return mem_cost(rows * sizeof *b->tokens) + mem_cost(rows * sizeof *b->kv) + mem_cost(rows * sizeof *b->pos) +
           mem_cost((uint64_t)s->max_runs * sizeof *b->runs) + mem_cost((uint64_t)s->max_out * sizeof *b->out);
}

int step_reserve(struct quern_engine *e)
{
    struct batch *b = &e->step.batch;
    uint64_t rows = (uint64_t)e->step.max_rows;
    b->tokens = mem_array(&e->mem, rows, sizeof *b->tokens);
    b->kv = mem_array(&e->mem, rows, sizeof *b->kv);
    b->pos = mem_array(&e->mem, rows, sizeof *b->pos);
    b->runs = mem_array(&e->mem, (uint64_t)e->step.max_runs, sizeof *b->runs);
    b->out = mem_array(&e->mem, (uint64_t)e->step.max_out, sizeof *b->out);
    return b->tokens && b->kv && b->pos && b->runs && b->out ? OK : ERR_MEM_LOAD;
}

void step_free(struct quern_engine *e)
{
    struct batch *b = &e->step.batch;
    void *parts[] = {b->tokens, b->kv, b->pos, b->runs, b->out};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) mem_free(&e->mem, parts[i]);
}

struct sched_limits step_limits(const struct quern_engine *e, int context_size)
{
    return (struct sched_limits){.parallel = e->options.parallel,
                                 .waiting = e->options.waiting,
                                 .rows = e->step.max_rows,
                                 .outs = e->step.max_out,
                                 .length = context_size,
                                 .extra_min_ms = 50,
                                 .extra_max_ms = 200,
                                 .ready = replies_ready};
}

/* --- the batch --------------------------------------------------------------------------------------------------- */

static struct quern_sequence *sequence_of(const struct sched_take *t) { return (struct quern_sequence *)t->seq; }

/* A row that is a part of an image uses the part's features instead of a token's, so its token does not matter. */
static void add_row(struct quern_engine *e, const struct sched_take *t, int at)
{
    struct batch *b = &e->step.batch;
    const struct quern_sequence *s = sequence_of(t);
    const struct medium *m;
    int part = media_at(s->media, s->n_media, at, b->pos[b->n], &m);
    b->tokens[b->n] = m ? 0 : (int32_t)s->ids[at];
    b->kv[b->n] = (struct kv_row){t->pages, at};
    if (e->projector)
        e->projector->features[b->n] = m ? m->result + (size_t)part * (size_t)e->projector->store.width : NULL;
    if (m) b->features = e->projector->features;
    b->n++;
}

static void add_rows(struct quern_engine *e, const struct sched_take *t)
{
    struct batch *b = &e->step.batch;
    for (int i = 0; i < t->n_runs; i++) b->runs[b->n_runs++] = t->runs[i];
    for (int at = t->first; at < t->first + t->rows; at++) add_row(e, t, at);
}

/* Adds the rows that need logits, or with `hidden` those that need hidden states. */
static void add_outs(const struct step *p, struct batch *b, bool hidden)
{
    int end = 0;
    for (const struct sched_take *t = p->takes; t < p->takes + p->n_takes; t++) {
        end += t->rows;
        if (sequence_hidden(sequence_of(t)) != hidden) continue;
        sequence_of(t)->made_at = hidden ? b->n_out - b->n_logits : b->n_out;
        for (int i = end - t->outs; i < end; i++) b->out[b->n_out++] = i;
    }
}

/* Lets the model draft the tokens of the rows that the plan has for drafts. */
static void draft_tokens(struct quern_engine *e)
{
    struct step *p = &e->step;
    struct batch *b = &p->batch;
    int32_t drafts[PARALLEL_MOST];
    double start = e->options.now();
    b->n = 0;
    b->features = NULL;
    for (const struct sched_take *t = p->takes; t < p->takes + p->n_takes; t++) {
        if (!t->drafted || !replies_drafts_own(sequence_of(t))) continue;
        b->out[b->n] = sequence_of(t)->made_at + sequence_of(t)->row;
        add_row(e, t, t->first);
    }
    if (b->n == 0) return;
    model_draft(e->model, b, drafts);
    double ms = (e->options.now() - start) / b->n;
    p->draft_ms = p->draft_ms > 0 ? p->draft_ms + (ms - p->draft_ms) / 8 : ms;
    for (int i = 0, n = 0; i < p->n_takes; i++) {
        struct quern_sequence *s = sequence_of(&p->takes[i]);
        if (p->takes[i].drafted && replies_drafts_own(s)) s->ids[s->turn.n] = (uint64_t)drafts[n++];
    }
}

/* Tells the profile the kind of the step; writers come first in a plan. */
static void tell_profile(struct profile *profile, const struct step *p)
{
    int most = 0, drafts = 0;
    for (const struct sched_take *t = p->takes; t < p->takes + p->n_takes; t++) {
        most = max_int(most, t->rows - t->drafted);
        drafts += t->drafted;
    }
    bool writes = p->takes->seq->state == SCHED_WRITING;
    profile_step(profile, most == 1 ? PROFILE_DECODE : writes ? PROFILE_MIXED : PROFILE_PREFILL, p->batch.n, drafts);
}

/* Begins a step. Returns whether there is anything to compute. */
static bool step_begin(struct quern_engine *e)
{
    struct step *p = &e->step;
    struct batch *b = &p->batch;
    replies_hurry(e);
    replies_draft(e);
    sched_share(e->sched, encode_awaited(e) ? 0.5 : 1);
    p->takes = sched_plan(e->sched, p->rows, &p->n_takes);
    replies_planned(e);
    if (p->n_takes == 0) return false;
    if (e->model->config.drafts) draft_tokens(e);
    b->n = b->n_runs = b->n_out = 0;
    b->features = NULL;
    b->n_added = quern_sees(e) ? vision_config(e->projector->vision)->n_added : 0;
    for (const struct sched_take *t = p->takes; t < p->takes + p->n_takes; t++) add_rows(e, t);
    add_outs(p, b, false);
    b->n_logits = b->n_out;
    add_outs(p, b, true);
    for (struct quern_sequence *s = e->sequences; s; s = s->next) s->made_rows = 0;
    tell_profile(e->profile, p);
    model_begin(e->model, b);
    p->running = true;
    p->part = 0;
    p->parts = e->model->config.n_layers + model_parts(e->model, b);
    p->ms = p->layers_ms = 0;
    return true;
}

/* --- computing --------------------------------------------------------------------------------------------------- */

/* A layer cannot be interrupted, so steps read fewer rows on a slow machine or far into a long context. Results do not
 * depend on it. */
static void adapt_rows(struct quern_engine *e)
{
    enum { ROWS_MIN = 4 };
    const double most_ms = 40; /* per layer */
    struct step *p = &e->step;
    double layer_ms = p->layers_ms / e->model->config.n_layers;
    if (e->options.chunk > 0 || p->batch.n < p->rows) return; /* the caller chose, or the step was not full */
    if (layer_ms > most_ms) p->rows = max_int(p->rows / 2, ROWS_MIN);
    else if (layer_ms * 3 < most_ms) p->rows = min_int(p->rows * 2, p->chunk);
}

/* Another thread writes this word. */
static bool wanted(const struct quern_engine *e)
{
    return __atomic_load_n(&e->control.attention, __ATOMIC_RELAXED) != 0;
}

/* Adapts the number of threads after a layer: it took `ms`, and this thread waited `waited` ms for the others. */
static void adapt_threads(struct quern_engine *e, double ms, double waited)
{
    e->step.layers_ms += ms;
    pool_limit(e->pool, crew_layer(&e->crew, e->step.batch.n, ms, waited));
}

/* Returns whether the last part is done. */
static bool run_parts(struct quern_engine *e, double start, int budget_ms)
{
    struct step *p = &e->step;
    int layers = e->model->config.n_layers;
    double begin = e->options.now(), now = begin;
    do {
        double last = now, waited = pool_waited(e->pool);
        bool layer = p->part < layers;
        profile_layer(e->profile, layer ? p->part : PROFILE_OUTSIDE);
        if (layer) model_layer(e->model, &p->batch, p->part);
        else model_head(e->model, &p->batch, p->part - layers);
        engine_beat(e);
        now = e->options.now();
        if (layer) adapt_threads(e, now - last, pool_waited(e->pool) - waited);
    } while (++p->part < p->parts && !wanted(e) && (budget_ms <= 0 || now - start < budget_ms));
    p->ms += now - begin;
    return p->part == p->parts;
}

/* Reads the outputs of the last step, which have arrived. */
static void take_outputs(struct quern_engine *e)
{
    const struct backend_ops *op = e->be->ops;
    e->hidden = op->result(e->be, e->step.made.hidden);
    e->logits = op->result(e->be, e->step.made.logits);
    replies_write(e);
}

/* Ends the step: commits the plan and takes the outputs, or awaits them from a device. */
static void step_end(struct quern_engine *e)
{
    struct step *p = &e->step;
    const struct batch *b = &p->batch;
    double now = e->options.now();
    p->made = model_end(e->model, b);
    for (const struct sched_take *t = p->takes; t < p->takes + p->n_takes; t++) {
        struct quern_sequence *s = sequence_of(t);
        if (!s) continue;
        s->made_rows = t->outs;
        s->drafted = t->drafted;
        s->made_first = t->first + t->rows - t->outs;
        replies_computed(s, t->first + t->rows, now);
    }
    if (e->be->late && b->n_out > 0) e->awaits = AWAITED_OUTPUTS;
    p->queued = e->be->late && (p->queued || b->n_out == 0);
    sched_commit(e->sched, e->be->late ? 0 : p->ms);
    p->running = false;
    p->n_takes = 0;
    if (!e->awaits) take_outputs(e);
    if (e->projector) encode_turn(e, p->ms);
}

/* Begins a step, after the encoding of images if that has its turn; without a step to make, encoding continues.
 * NEED_MORE: the time is over; OK: a step runs, or there is nothing to do. */
static int take_turns(struct quern_engine *e, double start, int budget_ms)
{
    while (!e->step.running) {
        bool turn = e->projector && e->projector->look.left > 0;
        if (!turn && step_begin(e)) return OK;
        if (encode_part(e)) {
            if (e->awaits || wanted(e) || (budget_ms > 0 && e->options.now() - start >= budget_ms)) return NEED_MORE;
        } else if (turn) {
            e->projector->look.left = 0;
        } else {
            return OK;
        }
    }
    return OK;
}

int quern_step(struct quern_engine *e, int budget_ms)
{
    struct step *p = &e->step;
    int status = engine_check(e);
    if (status) return status;
    double start = e->options.now();
    replies_heard(e);
    if (replies_go_on(e)) return OK;
    status = take_turns(e, start, budget_ms);
    replies_encoded(e);
    if (status || !p->running) return status;
    if (!run_parts(e, start, budget_ms)) return NEED_MORE;
    if (!e->be->late) adapt_rows(e);
    step_end(e);
    return OK;
}

void step_arrived(struct quern_engine *e, double ms)
{
    struct step *p = &e->step;
    if (!p->queued) sched_took(e->sched, p->batch.n, ms);
    p->queued = false;
    p->layers_ms = ms;
    adapt_rows(e);
    take_outputs(e);
}
