/* SPDX-License-Identifier: MIT
 *
 * Describes a model and the memory it needs as one JSON object: the report of `quern info`, of a loaded and of an
 * inspected model. This is its definition; index.d.ts documents it, the command lines print it.
 */
#include "engine/info.h"

#include "base/json.h"
#include "engine/plan.h"
#include "engine/projector.h"
#include "engine/special.h"

#include <string.h>

/* --- counting ------------------------------------------------------------------------------------------------- */

static struct type_count *count_of(struct tally *tally, const struct dtype *type)
{
    struct type_count *c = tally->types;
    /* there is room for more types than are supported; some differ only in the columns of a scale */
    while (c->type && strcmp(c->type->name, type->name) != 0) c++;
    c->type = type;
    return c;
}

/* Whether this is a canonical name of the vision part. A folder has both parts in one file. */
static bool is_visual(struct bytes name)
{
    return (name.size > 2 && !memcmp(name.data, "v.", 2)) || (name.size > 3 && !memcmp(name.data, "mm.", 3));
}

void info_count(const struct quern_engine *e, const struct checkpoint *ck, bool visual, struct tally *tally)
{
    for (size_t i = 0; i < ck->n_tensors; i++) {
        const struct tensor *t = &ck->tensors[i];
        if (!t->put || t->uncounted || is_visual(ck_view(ck, t->name)) != visual) continue;
        struct type_count *c = count_of(tally, t->weights ? t->weights : t->type);
        c->bytes += (double)(t->bytes + t->beside);
        if (t->weights) continue;
        double weights = (double)t->cols * (double)t->rows;
        c->tensors++;
        c->weights += weights;
        tally->all += weights;
        if (model_of_experts(t)) weights = weights * e->model->config.n_used / e->model->config.n_experts;
        tally->used += weights;
    }
}

/* --- the report ------------------------------------------------------------------------------------------------- */

static void write_texts(struct json *j, const struct checkpoint *ck)
{
    static const char *const texts[][2] = {{"name", "general.name"},
                                           {"license", "general.license"},
                                           {"licenseName", "general.license.name"},
                                           {"licenseLink", "general.license.link"},
                                           {"tokenizer", "tokenizer.ggml.model"},
                                           {"quantizedBy", "general.quantized_by"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct bytes text;
        meta_text(ck, texts[i][1], false, &text, NULL); /* empty if there is none */
        json_text(j, texts[i][0], text);
    }
}

static void write_types(struct json *j, const struct type_count *c)
{
    json_object(j, "types");
    for (; c->type; c++) {
        json_object(j, c->type->name);
        json_number(j, "tensors", c->tensors);
        json_number(j, "parameters", c->weights);
        json_number(j, "bytes", c->bytes);
        json_end(j);
    }
    json_end(j);
}

static void write_dimensions(struct json *j, const struct model_config *c)
{
    json_number(j, "layers", c->n_layers);
    json_number(j, "dim", c->dim);
    json_number(j, "ffnDim", c->ffn_dim);
    json_number(j, "experts", c->n_experts);
    json_number(j, "expertsUsed", c->n_used);
    json_number(j, "expertDim", c->expert_dim);
    json_number(j, "heads", c->n_heads);
    json_number(j, "kvHeads", c->n_kv_heads);
    json_number(j, "headDim", c->head_dim);
    json_number(j, "vocabSize", c->vocab_size);
    json_bool(j, "tied", c->tied && !c->headless);
    json_bool(j, "headless", c->headless);
    json_number(j, "ropeTheta", c->rope_theta);
    json_number(j, "ropeFactor", c->rope_factor);
    json_number(j, "contextLength", (double)c->context_length);
}

/* Metadata keys that the files lack or that say something else, with the values assumed for them. */
static void write_assumed(struct json *j, const struct quern_engine *e)
{
    struct bytes said;
    const struct architecture *a = e->model->architecture;
    json_object(j, "assumed");
    if (meta_text(&e->intake.ck, "general.architecture", true, &said, NULL) || !bytes_equal(said, a->name))
        json_string(j, "general.architecture", a->name);
    if (e->split_assumed) json_string(j, "tokenizer.ggml.pre", *a->split->names);
    json_end(j);
}

static void write_ends(struct json *j, const struct quern_engine *e)
{
    json_array(j, "endTokens");
    for (int i = 0; i < e->n_ends; i++) json_number(j, NULL, e->ends[i]);
    json_array_end(j);
}

static void write_added(struct json *j, const struct quern_engine *e)
{
    static const char *const names[2] = {"before", "after"};
    json_object(j, "added");
    for (int i = 0; i < 2; i++) {
        json_array(j, names[i]);
        for (int k = 0; k < e->added[i].n; k++) json_number(j, NULL, e->added[i].ids[k]);
        json_array_end(j);
    }
    json_end(j);
}

/* The special tokens that templates know by name. */
static void write_specials(struct json *j, const struct quern_engine *e)
{
    json_object(j, "specialTokens");
    for (const struct special *s = specials; s->name; s++) {
        struct bytes text = special_text(e, s);
        if (text.data) json_text(j, s->name, text);
    }
    json_end(j);
}

/* The sampling values that the files recommend, if they are valid; rounded to six decimals, since floats have seven
 * digits. */
static void write_sampling(struct json *j, struct quern_engine *e)
{
    static const struct {
        const char *name, *key;
        double most;
    } numbers[ADVISED] = {[ADVISED_TEMPERATURE] = {"temperature", "general.sampling.temp", 100},
                          [ADVISED_TOP_P] = {"topP", "general.sampling.top_p", 1},
                          [ADVISED_TOP_K] = {"topK", "general.sampling.top_k", 1e9},
                          [ADVISED_MIN_P] = {"minP", "general.sampling.min_p", 1},
                          [ADVISED_REPEAT_PENALTY] = {"repeatPenalty", "general.sampling.penalty_repeat", 10}};
    json_object(j, "sampling");
    for (int i = 0; i < ADVISED; i++) {
        double value;
        int status = meta_float(&e->intake.ck, numbers[i].key, 0, numbers[i].most, NULL, &value, NULL);
        e->advice[i] = status ? -1 : (double)(int64_t)(value * 1e6 + 0.5) / 1e6;
        if (!status) json_number(j, numbers[i].name, e->advice[i]);
    }
    json_end(j);
}

enum { CARD_MIN_P = 0 }; /* the same on every model card */

static void write_card(struct json *j, const char *name, const struct card *card, int top_k)
{
    json_object(j, name);
    json_number(j, "temperature", card->temperature);
    json_number(j, "topP", card->top_p);
    json_number(j, "topK", top_k);
    json_number(j, "minP", CARD_MIN_P);
    if (card->presence_penalty != 0) json_number(j, "presencePenalty", card->presence_penalty);
    json_end(j);
}

/* What depends on the architecture, so that readers need not know architecture names. */
static void write_row(struct json *j, const struct architecture *a, int dim)
{
    const struct cards *cards = architecture_cards(a, dim);
    json_object(j, "card");
    write_card(j, "plain", &cards->plain, cards->top_k);
    write_card(j, "thinking", &cards->thinking, cards->top_k);
    write_card(j, "images", &cards->images, cards->top_k);
    json_end(j);
    json_string(j, "marks", a->marks->word);
    json_string(j, "callForm", a->call_form);
}

struct sampler_params quern_defaults(const struct quern_engine *e)
{
    const struct cards *cards = architecture_cards(e->model->architecture, e->model->config.dim);
    const struct card *of = &cards->plain;
    const double card[ADVISED] = {of->temperature, of->top_p, cards->top_k, CARD_MIN_P, 1};
    double numbers[ADVISED];
    for (int i = 0; i < ADVISED; i++) numbers[i] = e->advice[i] < 0 ? card[i] : e->advice[i];
    return (struct sampler_params){
        .temperature = (float)numbers[ADVISED_TEMPERATURE],
        .top_p = (float)numbers[ADVISED_TOP_P],
        .top_k = (int)numbers[ADVISED_TOP_K],
        .min_p = (float)numbers[ADVISED_MIN_P],
        .repeat_penalty = (float)numbers[ADVISED_REPEAT_PENALTY],
        .presence_penalty = (float)of->presence_penalty,
    };
}

/* Names of enum quern_kv. */
static const char *const kv_names[] = {"f16", "f32", "q8"};

static void write_plan(struct json *j, const struct quern_engine *e)
{
    const struct quern_plan *p = &e->plan;
    json_object(j, "plan");
    json_number(j, "weights", (double)p->weights);
    json_number(j, "cache", (double)p->cache);
    json_number(j, "scratch", (double)p->scratch);
    json_number(j, "total", (double)p->total);
    json_number(j, "limit", (double)p->limit);
    for (int kv = 0; kv <= QUERN_KV_Q8; kv++) {
        json_object(j, kv_names[kv]);
        json_number(j, "bytesPerToken", e->caches[kv].bytes);
        json_number(j, "largestContext", e->caches[kv].largest);
        json_end(j);
    }
    json_end(j);
}

/* The state that a conversation has beside pages, and how many states are remembered at least. */
static void write_states(struct json *j, const struct quern_engine *e)
{
    uint64_t bytes = plan_shape(e, e->context_size).state.bytes;
    json_number(j, "stateBytes", (double)bytes);
    json_number(j, "snapshots", bytes ? e->snapshots : 0);
    json_bool(j, "drafts", e->model->config.drafts);
}

/* The types to which weights were quantized. */
static void write_quantized(struct json *j, const struct quern_engine *e)
{
    static const char *const names[] = {[QUERN_AS_STORED] = "none", [QUERN_TO_Q8] = "q8", [QUERN_TO_Q4] = "q4"};
    json_object(j, "quantize");
    json_string(j, "weights", names[e->quantized[0]]);
    json_string(j, "embeddings", names[e->quantized[1]]);
    json_end(j);
}

/* How the files turn a text into a vector, besides the pooling: whether they say it at all, and which part is not
 * supported. */
static void write_vectors(struct json *j, const struct quern_engine *e)
{
    const struct checkpoint *ck = &e->intake.ck;
    struct bytes refused;
    bool normalize;
    meta_text(ck, "vectors.refused", false, &refused, NULL);
    if (meta_bool(ck, "vectors.normalize", true, &normalize, NULL)) normalize = true;
    json_object(j, "vectors");
    json_bool(j, "described", meta_find(ck, "vectors.normalize") || meta_find(ck, "vectors.pooling") || refused.data);
    json_bool(j, "normalize", normalize);
    json_text(j, "refused", refused);
    json_end(j);
}

/* How the model runs on this machine. */
static void write_run(struct json *j, const struct quern_engine *e)
{
    json_number(j, "threads", pool_threads(e->pool));
    json_string(j, "variant", e->be->ops->name(e->be));
    json_string(j, "dots", backends[e->options.backend].dots(e->options.scalar));
    json_number(j, "address", 8 * sizeof(void *));
    json_number(j, "memoryBytes", (double)e->mem.used);
}

static double bytes_of(const struct tally *tally)
{
    double sum = 0;
    for (const struct type_count *c = tally->types; c->type; c++) sum += c->bytes;
    return sum;
}

static void write_vision(struct json *j, const struct quern_engine *e)
{
    if (!quern_sees(e)) {
        json_null(j, "vision");
        return;
    }
    const struct projector *s = e->projector;
    const struct vision_config *c = vision_config(s->vision);
    json_object(j, "vision");
    json_number(j, "layers", c->n_layers);
    json_number(j, "dim", c->dim);
    json_number(j, "heads", c->n_heads);
    json_number(j, "patch", c->patch);
    json_number(j, "merge", c->merge);
    json_array(j, "deepstack");
    for (int i = 0; i < c->n_added; i++) json_number(j, NULL, c->added_after[i]);
    json_array_end(j);
    json_number(j, "parameters", s->tally.all);
    json_number(j, "fileBytes", s->apart ? (double)s->bytes : bytes_of(&s->tally));
    write_types(j, s->tally.types);
    json_number(j, "minPixels", c->low);
    json_number(j, "maxPixels", s->most[QUERN_IMAGE]);
    json_number(j, "minVideoPixels", c->video_low);
    json_number(j, "maxVideoPixels", s->most[QUERN_VIDEO]);
    json_number(j, "maxTokens", s->max_patches / (IMAGE_MERGE * IMAGE_MERGE));
    json_number(j, "scratchBytes", (double)projector_scratch(e));
    json_end(j);
}

int info_write(struct quern_engine *e, struct error *err)
{
    struct json j = {.mem = &e->mem};
    json_object(&j, NULL);
    write_texts(&j, &e->intake.ck);
    json_string(&j, "format", e->intake.weights->name);
    json_string(&j, "architecture", e->model->architecture->name);
    json_number(&j, "parameters", e->tally.all);
    json_number(&j, "activeParameters", (double)(uint64_t)(e->tally.used + 0.5));
    json_number(&j, "fileBytes", (double)e->intake.bytes);
    json_number(&j, "files", (double)(e->intake.split.files + e->intake.sides));
    write_types(&j, e->tally.types);
    write_dimensions(&j, &e->model->config);
    json_number(&j, "tokens", tok_count(e->tok));
    json_bool(&j, "chatTemplate", e->template.data != NULL);
    write_ends(&j, e);
    write_added(&j, e);
    write_specials(&j, e);
    json_number(&j, "pooling", e->model->config.pooling);
    json_number(&j, "classes", e->model->config.n_classes);
    write_vectors(&j, e);
    write_assumed(&j, e);
    write_sampling(&j, e);
    write_row(&j, e->model->architecture, e->model->config.dim);
    json_bool(&j, "takesVision", e->model->config.sees);
    json_number(&j, "contextSize", e->context_size);
    json_string(&j, "kv", kv_names[e->options.kv]);
    json_number(&j, "chunk", e->step.chunk);
    json_number(&j, "parallel", e->options.parallel);
    json_number(&j, "kvPositions", plan_kv_positions(e, e->context_size));
    write_states(&j, e);
    write_quantized(&j, e);
    write_vision(&j, e);
    if (!e->options.inspect) write_run(&j, e);
    write_plan(&j, e);
    json_end(&j);
    e->info = j.text;
    return j.failed ? fail(err, ERR_MEM_LOAD, "info", 0, "Not enough memory to describe the model.") : OK;
}
