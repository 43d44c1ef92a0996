/* SPDX-License-Identifier: MIT
 *
 * Sequences and the step loop: pending tokens of all conversations become one batch, layer by layer.
 *
 * A step is a plan of who takes which rows. A sequence's length moves only when the step has ended, so that one may leave it at any layer
 * (set anew, or freed) without the others noticing; a state beside keys and values would be written beside, too, and swapped in then.
 * Logits belong to the step that made them.
 */
#include "engine/sequence.h"

#include <string.h>

uint64_t step_cost(const struct step *s)
{
    const struct batch *b = &s->batch;
    uint64_t rows = (uint64_t)s->max_rows;
    return mem_cost(rows * sizeof *s->takes) + mem_cost(rows * sizeof *b->tokens) + mem_cost(rows * sizeof *b->kv) + mem_cost(rows * sizeof *b->pos) +
           mem_cost((uint64_t)s->max_out * sizeof *b->out);
}

uint64_t sequence_cost(const struct quern_engine *e, int context_size)
{
    uint64_t n = (uint64_t)context_size;
    return mem_cost(sizeof(struct quern_sequence)) + mem_cost(n * sizeof(uint64_t)) + 2 * mem_cost(n / KV_PAGE * sizeof(int32_t)) +
           mem_cost(n * sizeof(int32_t)) + mem_cost(e->longest_token) + sampler_cost(e->n_sampled);
}

/* --- who is in the step ----------------------------------------------------------------------------------------- */

/* Forgets a step that has not ended: nothing of it counts. */
static void step_drop(struct step *p)
{
    for (struct take *t = p->takes; t < p->takes + p->n_takes; t++) {
        if (t->seq) kv_trim(&t->seq->kv);
        else kv_seq_close(&t->kv);
    }
    p->running = false;
    p->n_takes = 0;
}

/* s leaves the running step: its rows go on in vain, in pages that are let go when the step ends. A step that nobody is left in is dropped;
 * so is one where memory for this is short, and then the others are computed once more. */
static void leave(struct quern_sequence *s)
{
    struct step *p = &s->e->step;
    struct take *own = NULL;
    int others = 0;
    for (struct take *t = p->takes; t < p->takes + p->n_takes; t++) {
        if (t->seq == s) own = t;
        else others += t->seq != NULL;
    }
    if (!own) return;
    own->kv = s->kv;
    if (others > 0 && kv_seq_open(s->e->kv, s->e->context_size, 0, &s->kv) == OK) {
        own->seq = NULL;
        return;
    }
    s->kv = own->kv;
    step_drop(p);
}

/* --- life ---------------------------------------------------------------------------------------------------- */

struct quern_sequence *quern_sequence_new(struct quern_engine *e)
{
    if (e->state != STATE_READY || !e->kv) return NULL;
    struct quern_sequence *s = mem_alloc(&e->mem, sizeof *s);
    if (!s) return NULL;
    s->e = e;
    s->ids = mem_array(&e->mem, (uint64_t)e->context_size, sizeof *s->ids);
    s->text = mem_alloc(&e->mem, e->longest_token + sizeof s->stream.held);
    s->sampler = sampler_new(&e->mem, e->n_sampled);
    bool opened = kv_seq_open(e->kv, e->context_size, 0, &s->kv) == OK;
    s->next = e->sequences;
    e->sequences = s;
    if (s->ids && s->text && s->sampler && opened) return s;
    quern_sequence_free(s);
    return NULL;
}

void quern_sequence_free(struct quern_sequence *s)
{
    if (!s) return;
    struct quern_engine *e = s->e;
    struct quern_sequence **link = &e->sequences;
    leave(s);
    while (*link != s) link = &(*link)->next;
    *link = s->next;
    kv_seq_close(&s->kv);
    sampler_free(s->sampler);
    mem_free(&e->mem, s->ids);
    mem_free(&e->mem, s->text);
    mem_free(&e->mem, s);
}

/* --- content --------------------------------------------------------------------------------------------------- */

static int check_id(struct quern_engine *e, int64_t id)
{
    if (id >= 0 && id < e->model->config.vocab_size) return OK;
    return fail(&e->error, ERR_PARAM, "token", 0, "The token id %lld is not in 0..%d.", (long long)id, e->model->config.vocab_size - 1);
}

static int fail_context(struct quern_engine *e, int n)
{
    return fail(&e->error, ERR_CONTEXT, "context", 0,
                "%d tokens do not fit into the context of %d; shorten the text or load the model with a larger contextSize.", n, e->context_size);
}

int quern_sequence_set(struct quern_sequence *s, const int32_t *ids, int n, enum quern_outputs outputs)
{
    struct quern_engine *e = s->e;
    if (n < 1) return fail(&e->error, ERR_EMPTY, "tokens", 0, "There is nothing to do: no tokens.");
    if (n > e->context_size) return fail_context(e, n);
    for (int i = 0; i < n; i++)
        if (check_id(e, ids[i])) return ERR_PARAM;
    leave(s);
    for (int i = 0; i < n; i++) s->ids[i] = (uint64_t)ids[i];
    s->n = n;
    s->outputs = outputs;
    s->made_rows = 0;
    if (outputs != QUERN_ALL) return kv_match(&s->kv, s->ids, n - 1); /* the last token makes what is wanted */
    kv_clear(&s->kv);
    return 0;
}

int quern_sequence_push(struct quern_sequence *s, int32_t id)
{
    if (check_id(s->e, id)) return ERR_PARAM;
    if (s->n == s->e->context_size) return fail_context(s->e, s->n + 1);
    s->ids[s->n++] = (uint64_t)id;
    return OK;
}

int quern_sequence_length(const struct quern_sequence *s) { return s->kv.length; }
int quern_sequence_pending(const struct quern_sequence *s) { return s->n - s->kv.length; }

/* --- one step ----------------------------------------------------------------------------------------------------- */

/* How many pending tokens of s fit beside `rows` and `outs`. */
static int rows_for(const struct step *p, const struct quern_sequence *s, int rows, int outs)
{
    int pending = quern_sequence_pending(s), out_room = p->max_out - outs;
    int n = min_int(pending, p->rows - rows);
    if (s->outputs == QUERN_ALL) return min_int(n, out_room);
    return n == pending && out_room == 0 ? n - 1 : n;
}

/* Room for n more rows of s, or, when pages are short, for what its next page holds. Returns for how many. */
static int reserve_rows(struct quern_sequence *s, int n)
{
    if (kv_reserve(&s->kv, n) == OK) return n;
    n = min_int(n, KV_PAGE - s->kv.length % KV_PAGE);
    return kv_reserve(&s->kv, n) == OK ? n : 0;
}

/* Who takes which rows: each in turn all that are left, the newest first. ERR_MEM_KV when there are no pages for anybody. */
static int plan_rows(struct quern_engine *e)
{
    struct step *p = &e->step;
    int status = OK, rows = 0, outs = 0;
    for (struct quern_sequence *s = e->sequences; s; s = s->next) {
        int wanted = rows_for(p, s, rows, outs), n = wanted > 0 ? reserve_rows(s, wanted) : 0, first = s->kv.length;
        if (wanted > 0 && n == 0) status = ERR_MEM_KV;
        if (n == 0) continue;
        struct take t = {.seq = s, .first = first, .rows = n, .outs = s->outputs == QUERN_ALL ? n : first + n == s->n,
                         .hidden = s->outputs == QUERN_HIDDEN};
        p->takes[p->n_takes++] = t;
        rows += n;
        outs += t.outs;
    }
    return p->n_takes ? OK : status;
}

/* Where a token stands for RoPE: text counts, in all three. */
static void set_position(int32_t pos[3], int at)
{
    for (int k = 0; k < 3; k++) pos[k] = at;
}

static void add_rows(struct batch *b, const struct take *t)
{
    for (int at = t->first; at < t->first + t->rows; at++, b->n++) {
        b->tokens[b->n] = (int32_t)t->seq->ids[at];
        b->kv[b->n] = (struct kv_row){t->seq->kv.pages, at};
        set_position(b->pos[b->n], at);
    }
}

/* The rows of which logits are wanted, or those of which the hidden state is. */
static void add_outs(const struct step *p, struct batch *b, bool hidden)
{
    int end = 0;
    for (const struct take *t = p->takes; t < p->takes + p->n_takes; t++) {
        end += t->rows;
        for (int i = end - t->outs; i < end && t->hidden == hidden; i++) b->out[b->n_out++] = i;
    }
}

static void step_begin(struct quern_engine *e)
{
    struct step *p = &e->step;
    struct batch *b = &p->batch;
    int most = 0;
    b->n = b->n_out = 0;
    for (const struct take *t = p->takes; t < p->takes + p->n_takes; t++) {
        add_rows(b, t);
        most = max_int(most, t->rows);
    }
    add_outs(p, b, false);
    b->n_logits = b->n_out;
    add_outs(p, b, true);
    for (struct quern_sequence *s = e->sequences; s; s = s->next) s->made_rows = 0;
    profile_step(e->profile, most == 1 ? PROFILE_DECODE : PROFILE_PREFILL, b->n);
    model_begin(e->model, b);
    p->running = true;
    p->layer = 0;
    p->ms = 0;
}

/* The sequence has these rows now. */
static void commit(struct take *t, const float *made)
{
    struct quern_sequence *s = t->seq;
    kv_commit(&s->kv, s->ids + t->first, t->rows);
    s->made_rows = t->outs;
    s->made_first = t->first + t->rows - t->outs;
    s->made = made;
}

static void step_end(struct quern_engine *e)
{
    struct step *p = &e->step;
    const struct batch *b = &p->batch;
    profile_layer(e->profile, PROFILE_OUTSIDE);
    struct outputs made = model_end(e->model, b);
    const float *logits = made.logits, *hidden = made.hidden + (size_t)b->n_logits * (size_t)e->model->config.dim;
    for (struct take *t = p->takes; t < p->takes + p->n_takes; t++) {
        if (t->seq) commit(t, t->hidden ? hidden : logits);
        else kv_seq_close(&t->kv);
        if (t->hidden) hidden += (size_t)t->outs * (size_t)e->model->config.dim;
        else logits += (size_t)t->outs * (size_t)e->model->config.vocab_size;
    }
    p->running = false;
    p->n_takes = 0;
    e->awaits = e->be->ops->submit && b->n_out > 0;
}

/* A layer cannot be interrupted, so on a slow machine, or far into a long context, steps take fewer rows. Results
 * do not depend on it. */
static void adapt_rows(struct quern_engine *e)
{
    enum { ROWS_MIN = 4 };
    const double most_ms = 40; /* per layer */
    struct step *p = &e->step;
    double layer_ms = p->ms / e->model->config.n_layers;
    if (e->options.chunk > 0 || p->batch.n < p->rows) return; /* the caller chose, or the step was not full */
    if (layer_ms > most_ms) p->rows = max_int(p->rows / 2, ROWS_MIN);
    else if (layer_ms * 3 < most_ms) p->rows = min_int(p->rows * 2, p->max_rows);
}

/* Another thread writes this word. */
static bool wanted(const struct quern_engine *e) { return __atomic_load_n(&e->control.attention, __ATOMIC_RELAXED) != 0; }

/* One layer took ms, of which the caller has waited for other threads. */
static void adapt_threads(struct quern_engine *e, double ms, double waited)
{
    pool_limit(e->pool, crew_layer(&e->crew, e->step.batch.n, ms, waited));
}

/* Returns whether the last one is done. */
static bool run_layers(struct quern_engine *e, int budget_ms)
{
    struct step *p = &e->step;
    double start = e->options.now(), now = start;
    do {
        double last = now, waited = pool_waited(e->pool);
        profile_layer(e->profile, p->layer);
        model_layer(e->model, &p->batch, p->layer++);
        __atomic_fetch_add(&e->control.heartbeat, 1, __ATOMIC_RELAXED);
        now = e->options.now();
        adapt_threads(e, now - last, pool_waited(e->pool) - waited);
    } while (p->layer < e->model->config.n_layers && !wanted(e) && (budget_ms <= 0 || now - start < budget_ms));
    p->ms += now - start;
    return p->layer == e->model->config.n_layers;
}

int quern_step(struct quern_engine *e, int budget_ms)
{
    struct step *p = &e->step;
    if (e->state != STATE_READY) return fail(&e->error, ERR_BUSY, "loading", 0, "The model is not loaded yet.");
    if (e->awaits) return fail(&e->error, ERR_BUSY, "awaited", 0, "The results of the last step have not arrived yet.");
    int status = p->running ? OK : plan_rows(e);
    if (status)
        return fail(&e->error, status, "pages", 0, "No free page of the KV cache is left; end another conversation or use a larger contextSize.");
    if (p->n_takes == 0) return OK;
    if (!p->running) step_begin(e);
    if (!run_layers(e, budget_ms)) return NEED_MORE;
    if (!e->be->ops->submit) adapt_rows(e);
    step_end(e);
    return OK;
}

bool quern_awaits(const struct quern_engine *e) { return e->awaits; }

void quern_arrive(struct quern_engine *e, double ms)
{
    if (!e->awaits) return;
    e->awaits = false;
    e->step.ms = ms;
    adapt_rows(e);
}

/* Nothing before it has arrived. */
static const float *made_by(const struct quern_sequence *s, bool hidden)
{
    return s->made_rows && !s->e->awaits && (s->outputs == QUERN_HIDDEN) == hidden ? s->made : NULL;
}

const float *quern_logits(const struct quern_sequence *s, int *first, int *n_rows)
{
    const float *logits = made_by(s, false);
    *first = s->made_first;
    *n_rows = logits ? s->made_rows : 0;
    return logits;
}

const float *quern_hidden(const struct quern_sequence *s, int *dim)
{
    *dim = s->e->model->config.dim;
    return made_by(s, true);
}

/* --- sampling and text --------------------------------------------------------------------------------------------- */

int quern_sample_begin(struct quern_sequence *s, const struct sampler_params *params)
{
    int32_t *prompt = mem_array(&s->e->mem, (uint64_t)s->n, sizeof *prompt);
    if (!prompt) return fail(&s->e->error, ERR_MEM_LOAD, "prompt", 0, "Not enough memory to begin a reply.");
    for (int i = 0; i < s->n; i++) prompt[i] = (int32_t)s->ids[i];
    int status = sampler_begin(s->sampler, params, prompt, s->n, &s->e->error);
    mem_free(&s->e->mem, prompt);
    s->stream = (struct tok_stream){0};
    return status;
}

int quern_sample(struct quern_sequence *s)
{
    struct quern_engine *e = s->e;
    const float *logits = made_by(s, false);
    if (e->awaits) return fail(&e->error, ERR_BUSY, "awaited", 0, "The logits have not arrived yet.");
    if (!logits) return fail(&e->error, ERR_EMPTY, "logits", 0, "There are no logits to sample from.");
    int id = sampler_pick(s->sampler, logits + (size_t)(s->made_rows - 1) * (size_t)e->model->config.vocab_size, NULL);
    if (id == ERR_EMPTY) return fail(&e->error, id, "bias", 0, "No token may be sampled: all of them are forbidden.");
    if (id == ERR_NONFINITE) return fail(&e->error, id, "logits", 0, "The model produced invalid numbers; the file is probably damaged.");
    return id;
}

struct bytes quern_stream(struct quern_sequence *s, int32_t id)
{
    size_t n = id < 0 ? tok_stream_end(&s->stream, s->text) : tok_stream_push(&s->stream, quern_token(s->e, id), s->text);
    return (struct bytes){s->text, n};
}
