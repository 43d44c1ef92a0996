/* SPDX-License-Identifier: MIT
 *
 * What a model is, and what running it takes, as one JSON object: the report of `quern info`, of a loaded model and of one that is
 * only inspected. It is the one definition; index.d.ts documents it, the command lines print it.
 */
#include "engine/info.h"

#include "base/json.h"
#include "engine/plan.h"

/* --- counting ------------------------------------------------------------------------------------------------- */

static struct type_count *count_of(struct quern_engine *e, const struct dtype *type)
{
    struct type_count *c = e->types;
    while (c->type && c->type != type) c++; /* fewer types are supported than there is room for */
    c->type = type;
    return c;
}

void info_count(struct quern_engine *e)
{
    for (size_t i = 0; i < e->intake.file->n_tensors; i++) {
        const struct tensor *t = &e->intake.file->tensors[i];
        if (!t->put) continue;
        struct type_count *c = count_of(e, t->weights ? t->weights : t->type);
        c->bytes += (double)t->bytes;
        if (t->weights) continue;
        double weights = (double)t->cols * (double)t->rows;
        c->tensors++;
        c->weights += weights;
        e->weights_all += weights;
        if (model_of_experts(t)) weights = weights * e->model->config.n_used / e->model->config.n_experts;
        e->weights_used += weights;
    }
}

/* --- the report ------------------------------------------------------------------------------------------------- */

static void write_texts(struct json *j, const struct checkpoint *ck)
{
    static const char *const texts[][2] = {
        {"name", "general.name"}, {"license", "general.license"}, {"licenseName", "general.license.name"}, {"licenseLink", "general.license.link"},
        {"tokenizer", "tokenizer.ggml.model"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct bytes text;
        meta_text(ck, texts[i][1], false, &text, NULL); /* empty where there is none */
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
    json_bool(j, "tied", c->tied);
    json_number(j, "ropeTheta", c->rope_theta);
    json_number(j, "ropeFactor", c->rope_factor);
    json_number(j, "contextLength", (double)c->context_length);
}

/* What the files do not say, or say otherwise: metadata keys, and what they were taken to be. */
static void write_assumed(struct json *j, const struct quern_engine *e)
{
    struct bytes said;
    const char *architecture = e->model->ops->architecture;
    json_object(j, "assumed");
    if (meta_text(&e->intake.ck, "general.architecture", true, &said, NULL) || !bytes_equal(said, architecture))
        json_string(j, "general.architecture", architecture);
    if (e->kind.split_assumed) json_string(j, "tokenizer.ggml.pre", "qwen2");
    json_end(j);
}

/* The tokens that end a reply. */
static void write_ends(struct json *j, const struct quern_engine *e)
{
    json_array(j, "endTokens");
    for (int i = 0; i < e->n_ends; i++) json_number(j, NULL, e->ends[i]);
    json_array_end(j);
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

/* What the weights have become. */
static void write_quantized(struct json *j, const struct quern_engine *e)
{
    static const char *const names[] = {[QUERN_AS_STORED] = "none", [QUERN_TO_Q8] = "q8", [QUERN_TO_Q4] = "q4"};
    json_object(j, "quantize");
    json_string(j, "weights", names[e->quantized[0]]);
    json_string(j, "embeddings", names[e->quantized[1]]);
    json_end(j);
}

/* How it runs here. */
static void write_run(struct json *j, const struct quern_engine *e)
{
    json_number(j, "threads", pool_threads(e->pool));
    json_string(j, "variant", e->be->ops->name(e->be));
    json_string(j, "dots", backend_cpu_dots(e->options.scalar));
    json_number(j, "address", 8 * sizeof(void *));
    json_number(j, "memoryBytes", (double)e->mem.used);
}

int info_write(struct quern_engine *e, struct error *err)
{
    struct json j = {.mem = &e->mem};
    json_object(&j, NULL);
    write_texts(&j, &e->intake.ck);
    json_string(&j, "format", e->intake.weights->name);
    json_string(&j, "architecture", e->model->ops->architecture);
    json_number(&j, "parameters", e->weights_all);
    json_number(&j, "activeParameters", (double)(uint64_t)(e->weights_used + 0.5));
    json_number(&j, "fileBytes", (double)e->intake.bytes);
    json_number(&j, "files", (double)(e->intake.split.files + e->intake.sides));
    write_types(&j, e->types);
    write_dimensions(&j, &e->model->config);
    json_number(&j, "tokens", tok_count(e->tok));
    json_bool(&j, "chatTemplate", e->template.data != NULL);
    write_ends(&j, e);
    write_assumed(&j, e);
    json_number(&j, "contextSize", e->context_size);
    json_string(&j, "kv", kv_names[e->options.kv]);
    json_number(&j, "chunk", e->step.chunk);
    json_number(&j, "parallel", e->options.parallel);
    json_number(&j, "cacheSize", plan_cache_size(e, e->context_size));
    write_quantized(&j, e);
    if (!e->options.inspect) write_run(&j, e);
    write_plan(&j, e);
    json_end(&j);
    e->info = j.text;
    return j.failed ? fail(err, ERR_MEM_LOAD, "info", 0, "Not enough memory to describe the model.") : OK;
}
