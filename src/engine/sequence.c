/* SPDX-License-Identifier: MIT
 *
 * Sequences and the step loop: pending tokens of all conversations become one batch, layer by layer.
 *
 * A sequence's length moves only when a step has ended, so a step can be dropped at any layer (abort, or a sequence
 * set anew) and nothing has happened. Logits belong to the step that made them.
 */
#include "engine/sequence.h"

#include <string.h>

uint64_t step_cost(const struct step *s)
{
    const struct batch *b = &s->batch;
    uint64_t rows = (uint64_t)s->max_rows;
    return mem_cost(rows * sizeof *b->tokens) + mem_cost(rows * sizeof *b->kv) + mem_cost(rows * sizeof *b->pos) +
           mem_cost((uint64_t)s->max_out * sizeof *b->out);
}

uint64_t sequence_cost(const struct quern_engine *e, int context_size)
{
    uint64_t n = (uint64_t)context_size;
    return mem_cost(sizeof(struct quern_sequence)) + mem_cost(n * sizeof(uint64_t)) + mem_cost(n / KV_PAGE * sizeof(int32_t)) +
           mem_cost(n * sizeof(int32_t)) + mem_cost(e->longest_token) + sampler_cost(e->n_sampled);
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
    bool opened = kv_seq_open(e->kv, e->context_size, &s->kv) == OK;
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
    step_drop(e);
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
    step_drop(e);
    for (int i = 0; i < n; i++) s->ids[i] = (uint64_t)ids[i];
    s->n = n;
    s->outputs = outputs;
    s->logit_rows = 0;
    if (outputs == QUERN_LAST) return kv_match(&s->kv, s->ids, n - 1); /* the last token makes the logits */
    kv_clear(&s->kv);
    return 0;
}

int quern_sequence_push(struct quern_sequence *s, int32_t id)
{
    if (check_id(s->e, id)) return ERR_PARAM;
    if (s->n == s->e->context_size) return fail_context(s->e, s->n + 1);
    step_drop(s->e);
    s->ids[s->n++] = (uint64_t)id;
    return OK;
}

int quern_sequence_length(const struct quern_sequence *s) { return s->kv.length; }
int quern_sequence_pending(const struct quern_sequence *s) { return s->n - s->kv.length; }

/* --- one step ----------------------------------------------------------------------------------------------------- */

void step_drop(struct quern_engine *e)
{
    e->step.running = false;
    for (struct quern_sequence *s = e->sequences; s; s = s->next) kv_trim(&s->kv);
}

/* How many pending tokens of s fit into the batch. */
static int rows_for(const struct step *p, const struct quern_sequence *s)
{
    int pending = quern_sequence_pending(s), out_room = p->max_out - p->batch.n_out;
    int n = min_int(pending, p->rows - p->batch.n);
    if (s->outputs == QUERN_ALL) return min_int(n, out_room);
    return n == pending && out_room == 0 ? n - 1 : n;
}

static void add_rows(struct step *p, struct quern_sequence *s, int n)
{
    struct batch *b = &p->batch;
    for (int i = 0; i < n; i++, b->n++) {
        int32_t at = s->kv.length + i;
        b->tokens[b->n] = (int32_t)s->ids[at];
        b->kv[b->n] = (struct kv_row){s->kv.pages, at};
        for (int k = 0; k < 3; k++) b->pos[b->n][k] = at;
        if (s->outputs == QUERN_ALL || at == s->n - 1) b->out[b->n_out++] = b->n;
    }
    s->taken = n;
}

/* Room for n more rows of s, or, when pages are short, for what its next page holds. Returns for how many. */
static int reserve_rows(struct quern_sequence *s, int n)
{
    if (kv_reserve(&s->kv, n) == OK) return n;
    n = min_int(n, KV_PAGE - s->kv.length % KV_PAGE);
    return kv_reserve(&s->kv, n) == OK ? n : 0;
}

/* OK with an empty batch when nothing is pending. */
static int step_begin(struct quern_engine *e)
{
    struct step *p = &e->step;
    int status = OK, most = 0;
    p->batch.n = p->batch.n_out = 0;
    for (struct quern_sequence *s = e->sequences; s; s = s->next) {
        int wanted = rows_for(p, s), n = wanted > 0 ? reserve_rows(s, wanted) : 0;
        s->taken = 0;
        if (wanted > 0 && n == 0) status = ERR_MEM_KV;
        add_rows(p, s, n);
        most = max_int(most, n);
    }
    if (p->batch.n == 0) return status;
    for (struct quern_sequence *s = e->sequences; s; s = s->next) s->logit_rows = 0;
    profile_step(e->profile, most == 1 ? PROFILE_DECODE : PROFILE_PREFILL, p->batch.n);
    model_begin(e->model, &p->batch);
    p->running = true;
    p->layer = 0;
    p->ms = 0;
    return OK;
}

static void step_end(struct quern_engine *e)
{
    struct step *p = &e->step;
    profile_layer(e->profile, PROFILE_OUTSIDE);
    const float *logits = model_end(e->model, &p->batch);
    for (struct quern_sequence *s = e->sequences; s; s = s->next) {
        if (s->taken == 0) continue;
        bool all = s->outputs == QUERN_ALL;
        int first = s->kv.length;
        kv_commit(&s->kv, s->ids + first, s->taken);
        s->logit_rows = all ? s->taken : quern_sequence_pending(s) == 0;
        s->logit_first = all ? first : s->n - 1;
        s->logits = logits;
        logits += (size_t)s->logit_rows * (size_t)e->model->config.vocab_size;
    }
    p->running = false;
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
static bool aborted(struct quern_engine *e)
{
    return __atomic_load_n(&e->control.abort, __ATOMIC_RELAXED) != 0;
}

/* One layer took ms, of which the caller has waited for other threads. */
static void adapt_threads(struct quern_engine *e, double ms, double waited)
{
    pool_limit(e->pool, crew_layer(&e->crew, e->step.batch.n, ms, waited));
}

static int run_layers(struct quern_engine *e, int budget_ms)
{
    struct step *p = &e->step;
    double start = now_ms(), now = start;
    while (p->layer < e->model->config.n_layers) {
        if (aborted(e)) {
            step_drop(e);
            return ERR_ABORTED;
        }
        if (budget_ms > 0 && now - start >= budget_ms) break;
        double last = now, waited = pool_waited(e->pool);
        profile_layer(e->profile, p->layer);
        model_layer(e->model, &p->batch, p->layer++);
        __atomic_fetch_add(&e->control.heartbeat, 1, __ATOMIC_RELAXED);
        now = now_ms();
        adapt_threads(e, now - last, pool_waited(e->pool) - waited);
    }
    p->ms += now - start;
    return p->layer < e->model->config.n_layers ? NEED_MORE : OK;
}

int quern_step(struct quern_engine *e, int budget_ms)
{
    if (e->state != STATE_READY) return fail(&e->error, ERR_BUSY, "loading", 0, "The model is not loaded yet.");
    int status = e->step.running ? OK : step_begin(e);
    if (status)
        return fail(&e->error, status, "pages", 0, "No free page of the KV cache is left; end another conversation or use a larger contextSize.");
    if (!e->step.running) return OK;
    status = run_layers(e, budget_ms);
    if (status == ERR_ABORTED) return fail(&e->error, status, "", 0, "Stopped.");
    if (status == OK) {
        adapt_rows(e);
        step_end(e);
    }
    return status;
}

const float *quern_logits(const struct quern_sequence *s, int *first, int *n_rows)
{
    *first = s->logit_first;
    *n_rows = s->logit_rows;
    return s->logit_rows ? s->logits : NULL;
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
    if (!s->logit_rows) return fail(&e->error, ERR_EMPTY, "logits", 0, "There are no logits to sample from.");
    int id = sampler_pick(s->sampler, s->logits + (size_t)(s->logit_rows - 1) * (size_t)e->model->config.vocab_size);
    if (id == ERR_NONFINITE) return fail(&e->error, id, "logits", 0, "The model produced invalid numbers; the file is probably damaged.");
    return id;
}

struct bytes quern_stream(struct quern_sequence *s, int32_t id)
{
    size_t n = id < 0 ? tok_stream_end(&s->stream, s->text) : tok_stream_push(&s->stream, quern_token(s->e, id), s->text);
    return (struct bytes){s->text, n};
}
