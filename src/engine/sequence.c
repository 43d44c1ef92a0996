/* SPDX-License-Identifier: MIT
 *
 * Sequences: their content, their turns and their outputs. Steps compute them (step.c); the owner samples, or the
 * engine does (reply.c). A sequence may leave a step at any layer (when it is set again, or freed): the scheduler keeps
 * the pages that the step still writes to.
 */
#include "engine/sequence.h"

#include <math.h>
#include <string.h>

static bool has_pads(const struct quern_engine *e) { return e->pads[0] >= 0 || e->pads[1] >= 0; }

uint64_t sequence_cost(const struct quern_engine *e, int context_size)
{
    const struct quern_sequence *s = NULL;
    uint64_t n = (uint64_t)context_size, pages = (n + KV_PAGE - 1) / KV_PAGE;
    return mem_cost(sizeof *s) + mem_cost(n * sizeof *s->ids) + mem_cost(pages * sizeof *s->turn.kv.pages) +
           (e->looks_up ? lookup_cost(context_size) : 0) + mem_cost(e->longest_token + sizeof s->stream.held) +
           sampler_cost(e->n_sampled, context_size) +
           mem_cost((uint64_t)(e->n_sampled + 31) / 32 * sizeof *s->allowed) +
           (has_pads(e) ? 2 * mem_cost(PADS * sizeof(struct logit_bias)) : 0);
}

/* --- images ------------------------------------------------------------------------------------------------- */

static void drop_media(struct quern_engine *e, struct placed *media, int n)
{
    for (int i = 0; i < n; i++) store_let_go(&e->projector->store, media[i].medium);
    mem_free(&e->mem, media);
}

static int fail_pads(struct quern_engine *e, int row, int n)
{
    if (row == n)
        return fail(&e->error, ERR_PARAM, "media", 0, "There are more images than places for them in the text.");
    return fail(&e->error, ERR_PARAM, "media", 0,
                "The places for images in the text do not match the images (token %d).", row);
}

/* Holds the media and finds their places among ids: *out [n_media], or NULL without media. In a model without vision
 * pads are tokens like others. */
static int take_media(struct quern_engine *e, const int32_t *ids, int n, const uint64_t *media, int n_media,
                      struct placed **out)
{
    int bad, found = 0;
    *out = NULL;
    if (!quern_sees(e) && n_media == 0) return OK;
    if (!quern_sees(e))
        return fail(&e->error, ERR_PARAM, "vision", 0,
                    "This model has no vision: load it with its projector (`vision`).");
    struct placed *placed = n_media > 0 ? mem_array(&e->mem, (uint64_t)n_media, sizeof *placed) : NULL;
    if (n_media > 0 && !placed)
        return fail(&e->error, ERR_MEM_LOAD, "media", 0, "There is not enough memory for %d images.", n_media);
    while (found < n_media && (placed[found].medium = store_find(&e->projector->store, media[found])))
        store_hold(placed[found++].medium);
    if (found == n_media && media_place(ids, n, e->pads, placed, n_media, &bad) == OK) {
        *out = placed;
        return OK;
    }
    drop_media(e, placed, found);
    return found < n_media ? fail(&e->error, ERR_PARAM, "media", 0, "Image %d of %d is not held.", found + 1, n_media)
                           : fail_pads(e, bad, n);
}

/* Replaces the ids of media rows by ids of their content, by which the cache knows these rows. */
static void set_rows(struct quern_sequence *s)
{
    for (int i = 0; i < s->n_media; i++)
        for (int j = 0; j < medium_tokens(s->media[i].medium); j++)
            s->ids[s->media[i].first + j] = media_row(s->media[i].medium->content, j);
}

/* --- life ---------------------------------------------------------------------------------------------------- */

static struct quern_sequence *fail_new(struct quern_engine *e)
{
    if (e->state != STATE_READY) engine_check(e);
    else if (!e->kv) fail(&e->error, ERR_BUSY, "inspect", 0, "A model that is only inspected makes no replies.");
    else fail(&e->error, ERR_MEM_LOAD, "sequence", 0, "There is not enough memory for another reply.");
    return NULL;
}

struct quern_sequence *quern_sequence_new(struct quern_engine *e, uint32_t scope, int priority)
{
    if (e->state != STATE_READY || !e->kv) return fail_new(e);
    struct quern_sequence *s = mem_alloc(&e->mem, sizeof *s);
    if (!s) return fail_new(e);
    s->e = e;
    s->number = ++e->numbers;
    s->priority = priority > 0;
    s->text = mem_alloc(&e->mem, e->longest_token + sizeof s->stream.held);
    s->sampler = sampler_new(&e->mem, e->n_sampled, e->context_size);
    bool opened = kv_seq_open(e->kv, e->context_size, scope, &s->turn.kv) == OK;
    s->next = e->sequences;
    e->sequences = s;
    if (s->text && s->sampler && opened) return s;
    quern_sequence_free(s);
    return fail_new(e);
}

void quern_sequence_free(struct quern_sequence *s)
{
    if (!s) return;
    struct quern_engine *e = s->e;
    struct quern_sequence **link = &e->sequences;
    sequence_leave(s);
    drop_media(e, s->media, s->n_media);
    while (*link != s) link = &(*link)->next;
    *link = s->next;
    kv_seq_close(&s->turn.kv);
    sampler_free(s->sampler);
    lookup_free(&e->mem, &s->lookup);
    mem_free(&e->mem, s->ids);
    mem_free(&e->mem, s->text);
    mem_free(&e->mem, s->allowed);
    mem_free(&e->mem, s);
}

int quern_sequence_number(const struct quern_sequence *s) { return s->number; }

/* --- turns ----------------------------------------------------------------------------------------------------- */

int sequence_enter(struct quern_sequence *s)
{
    struct quern_engine *e = s->e;
    bool held = s->turn.held;
    s->turn.held = false;
    int status = sched_add(e->sched, &s->turn);
    s->turn.held = status && held;
    if (status)
        return fail(&e->error, status, "waiting", 0,
                    "%d others wait for their turn already; ask again when one of them has ended.", e->options.waiting);
    s->listed = true;
    s->since = e->options.now();
    return OK;
}

void sequence_hold(struct quern_sequence *s)
{
    if (s->listed) return;
    s->turn.held = s->listed = true;
    sched_add(s->e->sched, &s->turn); /* never fails for a held sequence */
    kv_extend(&s->turn.kv, s->ids, s->turn.n - 1);
    if (kv_slots(s->e->kv)) kv_extend_part(&s->turn.kv, s->ids, s->turn.n - 1); /* states end within pages too */
}

void sequence_leave(struct quern_sequence *s)
{
    struct quern_engine *e = s->e;
    s->replies = false;
    if (!s->listed) return;
    s->listed = false;
    sched_remove(e->sched, &s->turn);
    s->turn.held = false;
    if (!e->step.running || !sched_lost(e->sched)) return;
    sched_drop(e->sched);
    e->step.running = false;
}

/* --- content --------------------------------------------------------------------------------------------------- */

static int check_id(struct quern_engine *e, int64_t id)
{
    if (id >= 0 && id < e->model->config.vocab_size) return OK;
    return fail(&e->error, ERR_PARAM, "token", 0, "The token id %lld is not in 0..%d.", (long long)id,
                e->model->config.vocab_size - 1);
}

int sequence_fail_context(struct quern_engine *e, int n)
{
    return fail(
        &e->error, ERR_CONTEXT, "context", 0,
        "%d tokens do not fit into the context of %d; shorten the text or load the model with a larger contextSize.", n,
        e->context_size);
}

int sequence_reserve(struct quern_sequence *s, int n)
{
    struct quern_engine *e = s->e;
    if (n <= s->room) return OK;
    uint64_t *ids = mem_resize(&e->mem, s->ids, (uint64_t)n * sizeof *ids);
    if (ids) s->turn.ids = s->ids = ids;
    if (!ids || (e->looks_up && !lookup_reserve(&e->mem, &s->lookup, n)))
        return fail(&e->error, ERR_MEM_LOAD, "tokens", 0, "There is not enough memory for a conversation of %d tokens.",
                    n);
    s->room = n;
    return OK;
}

int quern_sequence_set(struct quern_sequence *s, const int32_t *ids, int n, enum quern_outputs outputs)
{
    return quern_sequence_set_media(s, ids, n, NULL, 0, outputs);
}

static int fail_headless(struct quern_engine *e)
{
    return fail(
        &e->error, ERR_UNSUPPORTED, "head", 0,
        "This model has no output head, so it cannot write: its folder was saved to make vectors of texts; take the whole model.");
}

int quern_sequence_set_media(struct quern_sequence *s, const int32_t *ids, int n, const uint64_t *media, int n_media,
                             enum quern_outputs outputs)
{
    struct quern_engine *e = s->e;
    struct placed *placed;
    if (engine_lost(e)) return ERR_LOST;
    if (n < 1) return fail(&e->error, ERR_EMPTY, "tokens", 0, "There is nothing to do: no tokens.");
    if (outputs != QUERN_HIDDEN && outputs != QUERN_STATES && e->model->config.headless) return fail_headless(e);
    if (n > e->context_size) return sequence_fail_context(e, n);
    for (int i = 0; i < n; i++)
        if (check_id(e, ids[i])) return ERR_PARAM;
    int status = sequence_reserve(s, outputs == QUERN_HELD ? n : e->context_size);
    if (!status) status = take_media(e, ids, n, media, n_media, &placed);
    if (status) return status;
    sequence_leave(s);
    drop_media(e, s->media, s->n_media);
    s->media = placed;
    s->n_media = n_media;
    s->looked = 0;
    for (int i = 0; i < n; i++) s->ids[i] = (uint64_t)ids[i];
    set_rows(s);
    s->turn.n = n;
    s->outputs = outputs;
    /* pages are promised up to this limit; hidden states are not continued by a reply */
    s->turn.limit = sequence_hidden(s) ? n : e->context_size;
    s->turn.all = outputs == QUERN_ALL || outputs == QUERN_STATES;
    s->turn.priority = s->priority;
    s->turn.forgotten_first = s->priority > 0;
    s->turn.marks[0] = (n - 1) / KV_PAGE * KV_PAGE;
    s->turn.n_marks = s->turn.marks[0] > 0 && !sequence_hidden(s);
    s->begun = false;
    s->made_rows = 0;
    if (outputs != QUERN_HELD) status = sequence_enter(s);
    if (status) s->turn.n = 0;
    /* the last token is always computed: it makes the output */
    return status || s->turn.all ? status : kv_known(e->kv, s->turn.kv.scope, s->ids, n - 1);
}

int quern_sequence_marks(struct quern_sequence *s, const int32_t *marks, int n)
{
    struct quern_engine *e = s->e;
    bool good = n >= 0 && n <= SCHED_MARKS;
    for (int i = 0; i < n && good; i++) good = marks[i] > (i ? marks[i - 1] : 0) && marks[i] < s->turn.n;
    if (!good)
        return fail(&e->error, ERR_PARAM, "marks", 0, "Marks are at most %d ascending places inside the tokens.",
                    SCHED_MARKS);
    if (n) memcpy(s->turn.marks, marks, (size_t)n * sizeof *marks);
    s->turn.n_marks = n;
    return OK;
}

int quern_sequence_push(struct quern_sequence *s, int32_t id)
{
    struct quern_engine *e = s->e;
    if (engine_lost(e)) return ERR_LOST;
    if (check_id(e, id)) return ERR_PARAM;
    if (s->replies || !s->listed || s->turn.held)
        return fail(&e->error, ERR_BUSY, "driven", 0,
                    "Tokens are pushed after a sequence has been set, and not into a reply.");
    if (s->turn.n == e->context_size) return sequence_fail_context(e, s->turn.n + 1);
    s->turn.limit = e->context_size;
    s->ids[s->turn.n++] = (uint64_t)id;
    return OK;
}

int quern_sequence_length(const struct quern_sequence *s) { return s->turn.kv.length; }
int quern_sequence_pending(const struct quern_sequence *s) { return s->turn.n - s->turn.kv.length; }

/* --- outputs --------------------------------------------------------------------------------------------------- */

bool sequence_hidden(const struct quern_sequence *s)
{
    return s->outputs == QUERN_HIDDEN || s->outputs == QUERN_STATES;
}

/* The rows of outputs that the last step made for s; NULL if there are none of this kind or they have not arrived. */
static const float *made_by(const struct quern_sequence *s, bool hidden)
{
    const struct model_config *c = &s->e->model->config;
    if (!s->made_rows || s->e->awaits == AWAITED_OUTPUTS || sequence_hidden(s) != hidden) return NULL;
    return hidden ? s->e->hidden + (size_t)s->made_at * (size_t)c->dim
                  : s->e->logits + (size_t)s->made_at * (size_t)c->vocab_size;
}

const float *quern_logits(const struct quern_sequence *s, int *first, int *n_rows)
{
    const float *logits = made_by(s, false);
    int row = s->begun && s->single ? s->row : 0;
    *first = s->made_first + row;
    *n_rows = !logits ? 0 : s->begun && s->single ? 1 : s->made_rows;
    return logits ? sequence_row(s, row) : NULL;
}

const float *quern_hidden(const struct quern_sequence *s, int *first, int *n_rows)
{
    const float *states = made_by(s, true);
    *first = s->made_first;
    *n_rows = states ? s->made_rows : 0;
    return states;
}

bool quern_output_row(struct quern_engine *e, int32_t id, float *out)
{
    return model_output_row(e->model, id, out);
}

const float *sequence_row(const struct quern_sequence *s, int row)
{
    const float *logits = made_by(s, false);
    return logits ? logits + (size_t)row * (size_t)s->e->model->config.vocab_size : NULL;
}

/* --- sampling and text ----------------------------------------------------------------------------------------- */

static int begin_sampler(struct quern_sequence *s, const struct sampler_params *params)
{
    int32_t recent[SAMPLER_REPEAT_WINDOW];
    int n = min_int(s->turn.n, SAMPLER_REPEAT_WINDOW); /* the sampler uses no more */
    for (int i = 0; i < n; i++) {
        uint64_t id = s->ids[s->turn.n - n + i];
        recent[i] = id >> 63 ? -1 : (int32_t)id; /* a part of an image is no token */
    }
    return sampler_begin(s->sampler, params, recent, n, &s->e->error);
}

/* Begins the sampler with the pads of images forbidden, in addition to the given bias: as text they mean nothing. */
static int begin_without_pads(struct quern_sequence *s, const struct sampler_params *params)
{
    struct quern_engine *e = s->e;
    struct sampler_params all = *params;
    struct logit_bias *bias = mem_array(&e->mem, (uint64_t)params->n_bias + PADS, sizeof *bias);
    if (!bias) return fail(&e->error, ERR_MEM_LOAD, "sampling", 0, "Out of memory for sampling.");
    if (params->n_bias) memcpy(bias, params->bias, (size_t)params->n_bias * sizeof *bias);
    for (int i = 0; i < PADS; i++)
        if (e->pads[i] >= 0) bias[all.n_bias++] = (struct logit_bias){e->pads[i], -INFINITY};
    all.bias = bias;
    int status = begin_sampler(s, &all);
    mem_free(&e->mem, bias);
    return status;
}

int quern_sample_begin(struct quern_sequence *s, const struct sampler_params *params)
{
    /* the sampler refuses an invalid bias */
    bool plain = !has_pads(s->e) || params->n_bias < 0 || (params->n_bias && !params->bias);
    int status = plain ? begin_sampler(s, params) : begin_without_pads(s, params);
    s->stream = (struct tok_stream){0};
    return status;
}

int sequence_picked(struct quern_engine *e, int picked)
{
    if (picked == ERR_EMPTY)
        return fail(&e->error, picked, "bias", 0, "No token may be sampled: all of them are forbidden.");
    if (picked == ERR_NONFINITE)
        return fail(&e->error, picked, "logits", 0,
                    "The model produced invalid numbers; the file is probably damaged.");
    return picked;
}

int quern_sample(struct quern_sequence *s) { return quern_sample_among(s, NULL); }

int quern_sample_among(struct quern_sequence *s, const uint32_t *allowed)
{
    struct quern_engine *e = s->e;
    const float *logits = sequence_row(s, s->made_rows - 1);
    if (e->awaits == AWAITED_OUTPUTS)
        return fail(&e->error, ERR_BUSY, "awaited", 0, "The logits have not arrived yet.");
    if (!logits) return fail(&e->error, ERR_EMPTY, "logits", 0, "There are no logits to sample from.");
    return sequence_picked(e, sampler_pick(s->sampler, e->picking.scratch, logits, allowed));
}

struct bytes quern_stream(struct quern_sequence *s, int32_t id)
{
    size_t n =
        id < 0 ? tok_stream_end(&s->stream, s->text) : tok_stream_push(&s->stream, quern_token(s->e, id), s->text);
    return (struct bytes){s->text, n};
}
