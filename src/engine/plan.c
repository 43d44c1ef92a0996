/* SPDX-License-Identifier: MIT
 *
 * Adds up memory, and words the refusal if it is too much.
 */
#include "engine/plan.h"

#include "base/reader.h"
#include "engine/reply.h"
#include "engine/sequence.h"
#include "engine/projector.h"
#include "engine/step.h"

#include <stdio.h>

enum {
    CONTEXT_DEFAULT = 4096, /* where memory allows: plan.h says why */
    CONTEXT_LEAST = 512,    /* a smaller context is granted on request, but not chosen */
    INFO_BYTES = 4096,      /* of quern_info() */
};

static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return add64(a, b, &sum) ? sum : UINT64_MAX;
}

/* The memory limit in bytes; always below a saturated sum. */
static uint64_t limit_of(const struct quern_engine *e)
{
    if (e->options.inspect && !e->options.memory_limit) return UINT32_MAX;
    return e->options.memory_limit ? e->options.memory_limit
           : ADDR_MAX < UINT64_MAX ? (uint64_t)ADDR_MAX
                                   : UINT64_MAX - 1;
}

/* Number of slots: each conversation that the pool has room for reads one slot and writes another, or two with a draft.
 * It is the same for every context that is tried. */
static int slots_of(const struct quern_engine *e)
{
    return (e->model->config.drafts ? 3 : 2) *
               min_int(e->options.parallel, max_int(e->options.kv_positions / max_int(e->plan.wanted, 1), 1)) +
           e->snapshots;
}

/* The shape of a cache with this number of positions; two pages more are for copies. */
static struct cache_shape shape_of(const struct quern_engine *e, enum quern_kv kv, int positions)
{
    return model_cache(e->model, positions / KV_PAGE + 2, slots_of(e), (enum kv_type)kv);
}

uint64_t plan_model_values(const struct quern_engine *e)
{
    return model_values(e->model, e->step.max_rows, e->step.max_out);
}

struct reserve plan_reserve(const struct quern_engine *e, struct cache_shape shape)
{
    return (struct reserve){.kv = shape.kv,
                            .state = shape.state,
                            .max_rows = max_int(e->step.max_rows, projector_rows(e)),
                            .max_cols = max_int(model_max_cols(e->model), projector_cols(e)),
                            .values = plus(plan_model_values(e), projector_values(e))};
}

int plan_kv_positions(const struct quern_engine *e, int context_size)
{
    return max_int(e->options.kv_positions, context_size);
}

struct cache_shape plan_shape(const struct quern_engine *e, int context_size)
{
    return shape_of(e, e->options.kv, plan_kv_positions(e, context_size));
}

/* Bytes that the bound tensors of the first file take in memory for each byte of the file. The other files of a split
 * model are assumed to be alike. */
static double growth(const struct quern_engine *e)
{
    const struct checkpoint *ck = e->intake.file;
    uint64_t file = 0;
    for (size_t i = 0; i < ck->n_tensors; i++)
        if (ck->tensors[i].put) file = plus(file, ck->tensors[i].bytes);
    return file ? (double)model_take_cost(e->model, ck) / (double)file : 1;
}

static uint64_t minus(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

/* Bytes of the files with weights that follow the first one. */
static uint64_t rest_size(const struct quern_engine *e)
{
    const struct intake *in = &e->intake;
    uint64_t rest = minus(e->options.rest_size, e->options.vision_size);
    return in->sides ? minus(plus(e->options.file_size, rest), plus(in->side_bytes, in->file->file_size)) : rest;
}

/* Bytes of all weights. When a projector's header arrives, the model's own weights have been taken. */
static uint64_t weight_bytes(const struct quern_engine *e)
{
    if (e->taken) return plus(e->taken, projector_weights(e));
    double rest = (double)rest_size(e) * growth(e);
    uint64_t here = plus(model_take_cost(e->model, e->intake.file), projector_weights(e));
    return plus(here, rest < 0x1p63 ? (uint64_t)rest : UINT64_MAX);
}

/* Computes a plan except limit, wanted and largest. Memory that is only used while loading (the file's header) is
 * reused for conversations later. */
static struct quern_plan measure(const struct quern_engine *e, enum quern_kv kv, int context_size, int kv_positions)
{
    const struct step *s = &e->step;
    const struct intake *in = &e->intake;
    const struct sched_limits limits = step_limits(e, context_size);
    struct cache_shape shape = shape_of(e, kv, kv_positions);
    const struct reserve reserve = plan_reserve(e, shape);
    struct reserve_cost reserved = e->be->ops->reserve_cost(e->be, &reserve);
    struct quern_plan p = {
        .weights = weight_bytes(e), .cache = plus(reserved.pages, reserved.states), .context_size = context_size};
    uint64_t later = (uint64_t)limits.parallel * sequence_cost(e, context_size);
    uint64_t freed = ck_held(&in->ck) + (in->file != &in->ck ? ck_held(in->file) : 0);
    if (e->projector && e->projector->begun) freed = plus(freed, ck_held(&e->projector->ck));
    p.scratch = plus(minus(e->mem.used, e->taken), reserved.scratch);
    p.scratch = plus(p.scratch, projector_scratch(e));
    p.scratch = plus(p.scratch, model_reserve_cost(e->model, s->max_rows));
    p.scratch = plus(p.scratch, profile_cost_bytes(e->profile, e->model->config.n_layers));
    p.scratch = plus(p.scratch, step_cost(s));
    p.scratch = plus(p.scratch, replies_cost(e));
    p.scratch = plus(p.scratch, kv_cost(shape.kv.n_pages, shape.state.n_slots));
    p.scratch = plus(p.scratch, sched_cost(&limits));
    p.scratch = plus(p.scratch, ck_data_cost(e->projector && e->projector->begun ? &e->projector->ck : in->file));
    p.scratch = plus(p.scratch, INFO_BYTES);
    p.scratch = plus(p.scratch, minus(later, freed));
    p.total = plus(plus(p.weights, p.cache), p.scratch);
    return p;
}

/* The largest context up to `most` that fits; 0 if none does. */
static int largest_context(const struct quern_engine *e, enum quern_kv kv, int most)
{
    int fits = 0, above = most;
    while (fits < above) {
        int mid = above - (above - fits) / 2;
        if (measure(e, kv, mid, plan_kv_positions(e, mid)).total <= e->plan.limit) fits = mid;
        else above = mid - 1;
    }
    return fits;
}

/* --- refusing ---------------------------------------------------------------------------------------------------- */

struct size_text {
    char text[24];
};

static struct size_text size_text(double bytes)
{
    struct size_text t;
    snprintf(t.text, sizeof t.text, bytes < 1e9 ? "%.1f MB" : "%.2f GB", bytes / (bytes < 1e9 ? 1e6 : 1e9));
    return t;
}

static double bits_per_weight(const struct quern_engine *e, double bytes)
{
    const struct checkpoint *ck = e->intake.file;
    double weights = 0;
    for (size_t i = 0; i < ck->n_tensors; i++)
        if (ck->tensors[i].put) weights += (double)ck->tensors[i].cols * (double)ck->tensors[i].rows;
    return weights > 0 ? 8 * bytes / weights : 0;
}

/* Refuses a model whose weights do not fit, and says which size of file would fit with the least context. */
static int refuse_weights(const struct quern_engine *e, struct error *err)
{
    const struct quern_plan *p = &e->plan;
    int context = min_int(CONTEXT_LEAST, p->wanted);
    struct quern_plan least = measure(e, e->options.kv, context, context);
    double room = (double)p->limit - (double)(least.total - least.weights),
           file = room / growth(e) + (double)e->intake.ck.header_size;
    struct size_text total = size_text((double)p->total), weights = size_text((double)p->weights),
                     limit = size_text((double)p->limit);
    if (room <= 0)
        return fail(err, ERR_MEM_PLAN, "weights", 0,
                    "The model needs %s, but %s can be used here, too little for any model of its dimensions.",
                    total.text, limit.text);
    if (rest_size(e))
        return fail(
            err, ERR_MEM_PLAN, "weights", 0,
            "The model needs %s, %s of them for weights, but %s can be used here; files of %s in all would fit.",
            total.text, weights.text, limit.text, size_text(file).text);
    return fail(
        err, ERR_MEM_PLAN, "weights", 0,
        "The model needs %s, %s of them for weights, but %s can be used here; a file of %s would fit, with %.1f instead of %.1f bits per "
        "weight.",
        total.text, weights.text, limit.text, size_text(file).text, bits_per_weight(e, room),
        bits_per_weight(e, (double)p->weights));
}

/* The largest cache in positions, at least a context, that fits; 0 if none does. */
static int largest_cache(const struct quern_engine *e, int context_size)
{
    int fits = 0, below = context_size, above = e->options.kv_positions;
    while (below <= above) {
        int mid = below + (above - below) / 2;
        if (measure(e, e->options.kv, context_size, mid).total <= e->plan.limit) fits = mid, below = mid + 1;
        else above = mid - 1;
    }
    return fits;
}

static int refuse(const struct quern_engine *e, struct error *err)
{
    const struct quern_plan *p = &e->plan;
    struct size_text total = size_text((double)p->total), limit = size_text((double)p->limit);
    int kv_positions = largest_cache(e, p->context_size);
    if (kv_positions > 0)
        return fail(
            err, ERR_MEM_PLAN, "cache", 0,
            "The model needs %s with a cache of %d positions, but %s can be used here; kvPositions of %d would fit.",
            total.text, e->options.kv_positions, limit.text, kv_positions);
    if (p->largest == 0) return refuse_weights(e, err);
    return fail(
        err, ERR_MEM_PLAN, "context", 0,
        "The model needs %s with a context of %d tokens, but %s can be used here; a contextSize of %d would fit.",
        total.text, p->context_size, limit.text, p->largest);
}

/* --- the choice ------------------------------------------------------------------------------------------------ */

void plan_settle(struct quern_engine *e, int context_size)
{
    struct quern_plan p = e->plan;
    e->plan = measure(e, e->options.kv, context_size, plan_kv_positions(e, context_size));
    e->plan.limit = p.limit;
    e->plan.wanted = p.wanted;
    e->plan.largest = p.largest;
    e->context_size = context_size;
}

static double page_bytes(const struct quern_engine *e, enum quern_kv kv)
{
    const struct reserve none = plan_reserve(e, shape_of(e, kv, 0)), one = plan_reserve(e, shape_of(e, kv, KV_PAGE));
    return (double)(e->be->ops->reserve_cost(e->be, &one).pages - e->be->ops->reserve_cost(e->be, &none).pages);
}

/* Measures each type of cache, not only the requested one. */
static void compare_caches(const struct quern_engine *e, int most, struct cache_choice *out)
{
    for (enum quern_kv kv = 0; kv <= QUERN_KV_Q8; kv++) {
        if (kv == QUERN_KV_Q8 && e->model->config.head_dim % 32) continue;
        out[kv].largest = largest_context(e, kv, most);
        out[kv].bytes = page_bytes(e, kv) / (int)KV_PAGE;
    }
}

/* Finds the largest contexts that fit, with one snapshot if the wanted context does not fit otherwise. */
static void measure_contexts(struct quern_engine *e, int most)
{
    bool fewer;
    e->snapshots = e->options.snapshots;
    do {
        compare_caches(e, most, e->caches);
        e->plan.largest = e->caches[e->options.kv].largest;
        fewer = e->snapshots > 1 && e->plan.largest < e->plan.wanted && shape_of(e, e->options.kv, 0).state.bytes;
        if (fewer) e->snapshots = 1;
    } while (fewer);
}

/* Chooses a context for these types of weights. Returns whether it is granted. */
static bool choose_context(struct quern_engine *e, int most)
{
    int asked = e->options.context_size;
    measure_contexts(e, most);
    bool whole = e->plan.largest >= e->plan.wanted, granted = whole || (asked <= 0 && e->plan.largest >= CONTEXT_LEAST);
    plan_settle(e, whole || !granted ? e->plan.wanted : e->plan.largest);
    return granted;
}

static const struct dtype *loaded_type(enum quern_quantize q)
{
    return q == QUERN_TO_Q8 ? dtype_by_name("Q8_0") : q == QUERN_TO_Q4 ? dtype_by_name("Q4_0") : NULL;
}

struct model_types plan_loaded(const struct quern_engine *e)
{
    return (struct model_types){loaded_type(e->quantized[0]), loaded_type(e->quantized[1])};
}

static void set_types(struct quern_engine *e, enum quern_quantize layers, enum quern_quantize ends)
{
    e->quantized[0] = layers;
    e->quantized[1] = ends;
    model_quantize(e->model, e->intake.file, plan_loaded(e));
    if (quern_sees(e)) vision_quantize(e->projector->vision, projector_file(e), plan_loaded(e));
}

void plan_types(struct quern_engine *e, bool first)
{
    const struct quern_options *o = &e->options;
    if (!first) set_types(e, e->quantized[0], e->quantized[1]);
    else if (o->quantize == QUERN_AUTO || o->embeddings == QUERN_AUTO) set_types(e, QUERN_AS_STORED, QUERN_AS_STORED);
    else set_types(e, o->quantize, o->embeddings);
}

int plan_make(struct quern_engine *e, struct error *err)
{
    int64_t own = e->model->config.context_length;
    int most = own < INT32_MAX ? (int)own : INT32_MAX, asked = e->options.context_size;
    e->plan.limit = limit_of(e);
    e->plan.wanted = min_int(asked > 0 ? asked : CONTEXT_DEFAULT, most);
    bool granted = choose_context(e, most);
    for (enum quern_quantize q = QUERN_TO_Q8;
         !granted && !e->taken && e->options.quantize == QUERN_AUTO && q <= QUERN_TO_Q4; q++) {
        set_types(e, q, q);
        granted = choose_context(e, most);
    }
    return granted ? OK : refuse(e, err);
}
