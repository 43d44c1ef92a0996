/* SPDX-License-Identifier: MIT
 *
 * The engine: owns everything, and loads a model from a stream of bytes.
 *
 * Loading is a small state machine: header, data (repeated for each file of a split model), then ready, or failed for
 * good. When the first header is complete, the engine plans all memory and allocates it (except for the weights of
 * further files). So a model that cannot run is refused before its weights are downloaded. For a model that is only
 * inspected, the engine reads headers only and does everything at the end.
 */
#include "base/hash.h"
#include "base/reader.h"
#include "engine/info.h"
#include "engine/plan.h"
#include "engine/reply.h"
#include "engine/projector.h"
#include "engine/step.h"
#include "engine/words.h"

#include <string.h>

enum {
    PARALLEL_DEFAULT = 4,
    SNAPSHOTS_DEFAULT = 3,
    SNAPSHOTS_MOST = 64,
    WAITING_DEFAULT = 64,
    WAITING_MOST = 1 << 20,
};

struct quern_engine *quern_new(const struct quern_options *options)
{
    struct mem mem = {.limit = options->memory_limit};
    struct quern_engine *e = mem_alloc(&mem, sizeof *e);
    if (!e) return NULL;
    e->mem = mem;
    e->options = *options;
    if (!e->options.now) e->options.now = now_ms;
    e->options.parallel = options->parallel > 0 ? min_int(options->parallel, PARALLEL_MOST) : PARALLEL_DEFAULT;
    e->options.waiting = options->waiting > 0 ? min_int(options->waiting, WAITING_MOST) : WAITING_DEFAULT;
    e->options.snapshots =
        options->snapshots ? max_int(min_int(options->snapshots, SNAPSHOTS_MOST), 0) : SNAPSHOTS_DEFAULT;
    e->pool = pool_new(&e->mem, max_int(options->threads, 1));
    e->options.backend = options->backend > 0 && options->backend < n_backends ? options->backend : 0;
    e->be = e->pool ? backends[e->options.backend].open(&e->mem, e->pool, options->scalar) : NULL;
    if (e->be && options->profile) e->profile = profile_new(&e->mem, e->pool);
    if (e->profile) profile_watch(e->profile, e->be);
    /* a truncated file is enough for inspection */
    if (options->inspect) e->options.file_size = e->options.rest_size = 0;
    intake_open(&e->intake, &e->mem, options->files, e->options.file_size);
    e->intake.headers_only = options->inspect;
    if (e->be && (e->profile || !options->profile)) return e;
    quern_free(e);
    return NULL;
}

void quern_free(struct quern_engine *e)
{
    if (!e) return;
    while (e->sequences) quern_sequence_free(e->sequences);
    intake_close(&e->intake);
    replies_free(e);
    step_free(e);
    projector_free(e);
    sched_free(e->sched);
    kv_free(e->kv);
    words_free(e);
    model_free(e->model);
    if (e->be) e->be->ops->free(e->be);
    profile_free(e->profile);
    pool_free(e->pool);
    mem_free(&e->mem, e->info);
    struct mem mem = e->mem;
    mem_free(&mem, e);
}

/* --- opening: memory ----------------------------------------------------------------------------------------- */

static void copy_page(void *context, int to, int from, int n)
{
    struct backend *be = context;
    be->ops->kv_copy(be, to, from, n);
}

static int check_kv(const struct quern_engine *e, struct error *err)
{
    int head_dim = e->model->config.head_dim;
    if (e->options.kv != QUERN_KV_Q8 || head_dim % 32 == 0) return OK;
    return fail(err, ERR_PARAM, "kv", 0,
                "An 8-bit cache needs heads of a multiple of 32 columns, this model's have %d; use kv f16.", head_dim);
}

/* Whether the backend can run the model. */
static int check_backend(const struct quern_engine *e, struct error *err)
{
    const struct cache_shape shape = model_cache(e->model, 1, 1, (enum kv_type)e->options.kv);
    return e->be->ops->check ? e->be->ops->check(e->be, &shape.kv, &shape.state, quern_sees(e), err) : OK;
}

static int reserve_context(struct quern_engine *e, int context_size)
{
    const struct reserve r = plan_reserve(e, plan_shape(e, context_size));
    int status = profile_reserve(e->profile, e->model->config.n_layers, &r.kv);
    return status ? status : e->be->ops->reserve(e->be, &r);
}

/* Reserves the planned context. If the system gives less memory than planned, halves a default context until it fits; a
 * requested context is an error then. */
static int reserve_cache(struct quern_engine *e, struct error *err)
{
    int wanted = e->context_size, context = wanted;
    int status = reserve_context(e, context);
    if (status && e->options.kv_positions > wanted)
        return fail(err, ERR_MEM_PLAN, "cache", 0,
                    "There is not enough memory for a cache of %d positions; load the model with fewer kvPositions.",
                    e->options.kv_positions);
    while (status && context > KV_PAGE) status = reserve_context(e, context /= 2);
    if (status) return fail(err, ERR_MEM_LOAD, "context", 0, "Not enough memory to run this model.");
    if (context < wanted && e->options.context_size > 0)
        return fail(err, ERR_MEM_PLAN, "context", 0,
                    "There is not enough memory for a context of %d tokens; a contextSize of %d would fit.", wanted,
                    context);
    if (context < wanted) plan_settle(e, context);
    return OK;
}

static int reserve(struct quern_engine *e, struct error *err)
{
    const struct handle behind_model = {(size_t)plan_model_values(e)};
    if (step_reserve(e) || replies_reserve(e) || model_reserve(e->model, e->step.max_rows, e->step.max_out) ||
        projector_reserve(e, behind_model))
        return fail(err, ERR_MEM_LOAD, "scratch", 0, "Not enough memory to run this model.");
    int status = reserve_cache(e, err);
    if (status) return status;
    const struct sched_limits limits = step_limits(e, e->context_size);
    const struct cache_shape shape = plan_shape(e, e->context_size);
    e->kv = kv_new(&e->mem, shape.kv.n_pages, shape.state.n_slots, copy_page, e->be);
    e->sched = e->kv ? sched_new(&e->mem, e->kv, &limits) : NULL;
    return e->sched ? OK : fail(err, ERR_MEM_LOAD, "context", 0, "Not enough memory to run this model.");
}

/* --- the stream ------------------------------------------------------------------------------------------------- */

/* Reads what the first header says besides its weights. */
static int read_first(struct quern_engine *e, struct error *err)
{
    int status = words_open(e, err);
    if (!status) status = check_kv(e, err);
    if (!status) status = projector_open(e, err);
    if (!status) status = check_backend(e, err);
    if (!status) step_size(e);
    return status;
}

/* Binds the weights of a file's header; from the first header also reads everything else. */
static int read_header(struct quern_engine *e, bool first, struct error *err)
{
    int status = model_bind(e->model, e->intake.file, intake_more(&e->intake), err);
    if (!status && first) status = read_first(e, err);
    if (!status) status = projector_bind(e, err);
    if (status) return status;
    plan_types(e, first);
    info_count(e, e->intake.file, false, &e->tally);
    if (quern_sees(e)) info_count(e, e->intake.file, true, &e->projector->tally);
    return OK;
}

/* Allocates memory for the file. With a separate projector, caches and scratch wait for the projector's header, which
 * says how much it needs. */
static int take_file(struct quern_engine *e, bool first, struct error *err)
{
    int status = first ? plan_make(e, err) : OK;
    uint64_t before = e->mem.used;
    if (!status) status = model_take(e->model, e->intake.file, err);
    e->taken += e->mem.used - before;
    if (!status && first && !projector_awaited(e)) status = reserve(e, err);
    return status ? status : ck_data_begin(e->intake.file, err);
}

/* The same for a projector, whose weights are bound already. */
static int take_projector(struct quern_engine *e, struct error *err)
{
    vision_quantize(e->projector->vision, &e->projector->ck, plan_loaded(e));
    info_count(e, &e->projector->ck, true, &e->projector->tally);
    if (e->options.inspect) return OK;
    int status = plan_make(e, err);
    if (!status) status = vision_take(e->projector->vision, &e->projector->ck, err);
    if (!status) status = reserve(e, err);
    return status ? status : ck_data_begin(&e->projector->ck, err);
}

/* Whether the current file is a projector. */
static bool is_projector(const struct quern_engine *e) { return e->projector && e->projector->begun; }

/* For inspection: collects the tensors of all files in one checkpoint. */
static int gather(struct quern_engine *e, struct error *err)
{
    struct intake *in = &e->intake;
    return in->file == &in->ck ? OK : ck_gather(&in->ck, in->file, in->bytes - in->file->file_size, err);
}

/* Shrinks the header's buffer, whose size depends on how the file was cut into chunks; the report must not depend on
 * that. */
static void trim(struct checkpoint *ck)
{
    uint8_t *header = mem_resize(ck->mem, ck->header, ck->header_size);
    if (!header) return;
    ck->header = header;
    ck->header_room = ck->header_size;
}

static int inspect(struct quern_engine *e, struct error *err)
{
    e->intake.file = &e->intake.ck;
    trim(e->intake.file);
    if (is_projector(e)) trim(&e->projector->ck);
    int status = read_header(e, true, err);
    if (!status) plan_make(e, NULL); /* a model that does not fit is reported, not refused */
    return status;
}

/* The header of a file with weights is complete. */
static int open_file(struct quern_engine *e, struct error *err)
{
    bool first = !e->model;
    int status = first ? model_open(&e->mem, e->be, &e->intake.ck, &e->model, err) : OK;
    if (status) return status;
    if (e->options.no_drafts) e->model->config.drafts = false;
    bool states = model_cache(e->model, 1, 1, (enum kv_type)e->options.kv).state.bytes > 0;
    e->looks_up = !e->options.no_drafts && !e->model->config.drafts && !states;
    if (e->options.inspect) return gather(e, err);
    status = read_header(e, first, err);
    return status ? status : take_file(e, first, err);
}

static bool has_header(const struct quern_engine *e)
{
    return is_projector(e) ? e->projector->complete : e->intake.complete;
}

static int failed(struct quern_engine *e, int status)
{
    if (status >= 0) return status;
    e->state = STATE_FAILED;
    e->failure = e->error;
    return status;
}

/* OK if the engine can take files now, else the reason. */
static int check_loading(struct quern_engine *e)
{
    if (engine_lost(e)) return ERR_LOST;
    if (e->state == STATE_FAILED) e->error = e->failure;
    if (e->state == STATE_FAILED) return e->failure.code;
    return e->state == STATE_LOADING ? OK : fail(&e->error, ERR_BUSY, "loaded", 0, "A model is loaded already.");
}

/* Takes header bytes of the current file. *used: how many of n belong to the header, once it is complete. */
static int feed_header(struct quern_engine *e, const uint8_t *bytes, size_t n, size_t *used)
{
    bool projector = is_projector(e);
    int status = projector ? projector_header(e, bytes, n, used, &e->error)
                           : intake_header(&e->intake, bytes, n, used, &e->error);
    if (status || !has_header(e)) return status;
    return projector ? take_projector(e, &e->error) : open_file(e, &e->error);
}

int quern_feed(struct quern_engine *e, const void *bytes, size_t n)
{
    const uint8_t *data = bytes;
    size_t used = 0;
    engine_beat(e);
    int status = check_loading(e);
    if (status || n == 0) return status;
    if (!has_header(e)) {
        status = feed_header(e, data, n, &used);
        if (status || !has_header(e)) return failed(e, status);
    }
    if (!e->options.inspect) ck_data(is_projector(e) ? &e->projector->ck : e->intake.file, data + used, n - used);
    return OK;
}

/* Only while loading: later the pages hold conversations. */
bool quern_warm(struct quern_engine *e)
{
    if (e->state != STATE_LOADING) return false;
    return e->kv ? e->be->ops->warm(e->be) : !e->intake.complete || projector_awaited(e);
}

/* Each thread takes one chunk after the other. */
static void hash_chunks(void *arg, int thread, int n_threads)
{
    struct hashing *h = arg;
    (void)thread, (void)n_threads;
    for (size_t i; (i = __atomic_fetch_add(&h->next, 1, __ATOMIC_RELAXED)) * h->chunk < h->n;)
        hash128(h->bytes + i * h->chunk, h->n - i * h->chunk < h->chunk ? h->n - i * h->chunk : h->chunk,
                h->out + i * HASH_BYTES);
}

void quern_hash_begin(struct quern_engine *e, const void *bytes, size_t n, size_t chunk, uint8_t *out)
{
    pool_end(e->pool);
    e->hashing = (struct hashing){.bytes = bytes, .n = n, .chunk = chunk, .out = out};
    pool_begin(e->pool, hash_chunks, &e->hashing);
}

void quern_hash_end(struct quern_engine *e)
{
    hash_chunks(&e->hashing, 0, 0);
    pool_end(e->pool);
}

int quern_next_file(struct quern_engine *e, uint64_t file_size)
{
    int status = check_loading(e);
    if (!status && is_projector(e))
        status = fail(&e->error, ERR_PARAM, "order", 0, "The projector is the last of a model's files.");
    return status ? status : failed(e, intake_next(&e->intake, e->options.inspect ? 0 : file_size, &e->error));
}

int quern_vision_next(struct quern_engine *e, uint64_t file_size)
{
    int status = check_loading(e);
    if (status) return status;
    status = intake_finish(&e->intake, &e->error);
    if (!status) status = projector_begin(e, e->options.inspect ? 0 : file_size, &e->error);
    return failed(e, status);
}

/* The last file has ended. */
static int all_ended(struct quern_engine *e)
{
    int status = is_projector(e) ? projector_ended(e, &e->error) : intake_finish(&e->intake, &e->error);
    if (status || !projector_awaited(e)) return status;
    return fail(&e->error, ERR_FORMAT, "missing", 0, "The model's projector is missing.");
}

/* Chooses the most threads whose barrier takes at most 100 us. The 200 barriers of a token then take 20 ms, no more
 * than the computing of a model that is large enough to matter. */
static void choose_threads(struct quern_engine *e)
{
    const double most_us = 100;
    while (pool_barrier_us(e->pool) > most_us) pool_limit(e->pool, pool_working(e->pool) - 1);
    crew_begin(&e->crew, pool_threads(e->pool), pool_working(e->pool));
}

int quern_finish(struct quern_engine *e)
{
    if (e->state == STATE_READY) return OK;
    int status = check_loading(e);
    if (status) return status;
    status = all_ended(e);
    if (!status) status = model_check(e->model, &e->error);
    if (!status && e->options.inspect) status = inspect(e, &e->error);
    if (!status) status = info_write(e, &e->error);
    if (status) return failed(e, status);
    intake_close(&e->intake);
    if (is_projector(e)) ck_close(&e->projector->ck);
    choose_threads(e);
    e->state = STATE_READY;
    return OK;
}

const struct error *quern_error(const struct quern_engine *e) { return &e->error; }
const char *quern_info(struct quern_engine *e) { return e->info ? e->info : ""; }
struct quern_control *quern_control(struct quern_engine *e) { return &e->control; }
const struct quern_plan *quern_plan(const struct quern_engine *e) { return &e->plan; }
uint64_t quern_file_size(const struct quern_engine *e)
{
    return !has_header(e) ? 0 : is_projector(e) ? e->projector->bytes : e->intake.file_size;
}

struct profile *quern_profile(struct quern_engine *e) { return e->profile; }

void quern_memory(const struct quern_engine *e, uint64_t *used, uint64_t *peak)
{
    *used = e->mem.used;
    *peak = e->mem.peak;
}
