/* SPDX-License-Identifier: MIT
 *
 * config.json and generation_config.json -> metadata under the keys of GGUF files.
 */
#include "load/formats/hf.h"

#include "base/num.h"
#include "load/architecture.h"

#include <stdio.h>
#include <string.h>

enum { ENDS_MAX = 8 };

static const char *const keys[] = {
    /* whole numbers */
    "num_hidden_layers",
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "max_position_embeddings",
    "vocab_size",
    "num_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "decoder_sparse_step",
    "sliding_window",
    "max_window_layers",
    /* numbers */
    "rms_norm_eps",
    "rope_theta",
    /* Booleans */
    "tie_word_embeddings",
    "norm_topk_prob",
    "is_causal",
    "attention_bias",
    "use_sliding_window",
    /* the rest */
    "hidden_act",
    "eos_token_id",
    "mlp_only_layers",
    "rope_scaling",
    "rope_parameters",
    "quantization_config",
    "use_bidirectional_attention",
    "peft_type",
    "num_local_experts",
    "layer_types",
    /* only in the outermost object */
    "architectures",
    "model_type",
    "text_config",
    "transformers_version",
    /* in generation_config.json */
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    NULL,
};
enum {
    LAYERS,
    DIM,
    FFN,
    HEADS,
    KV_HEADS,
    HEAD_DIM,
    CONTEXT,
    VOCAB,
    EXPERTS,
    EXPERTS_USED,
    EXPERT_FFN,
    SPARSE_STEP,
    WINDOW,
    WINDOW_FROM,
    INTS,
    EPS = INTS,
    THETA,
    FLOATS_END,
    TIED = FLOATS_END,
    NORM_TOPK,
    CAUSAL,
    BIAS,
    SLIDING,
    TRUTHS_END,
    ACTIVATION = TRUTHS_END,
    EOS,
    DENSE_LAYERS,
    ROPE_SCALING,
    ROPE_PARAMETERS,
    QUANTIZATION,
    BIDIRECTIONAL,
    PEFT,
    LOCAL_EXPERTS,
    LAYER_TYPES,
    OUTER,
    ARCHITECTURES = OUTER,
    MODEL_TYPE,
    TEXT,
    VERSION,
    SAMPLING
};

/* Metadata keys of numbers and Booleans, after the architecture's name; NULL: only checked. */
static const char *const names[] = {
    "block_count",
    "embedding_length",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "context_length",
    "vocab_size",
    "expert_count",
    "expert_used_count",
    "expert_feed_forward_length",
    "decoder_sparse_step",
    NULL,
    NULL,
    "attention.layer_norm_rms_epsilon",
    "rope.freq_base",
    "tie_word_embeddings",
    "expert_weights_norm",
    "attention.causal",
    NULL,
    NULL,
};

static const char *const scaling_keys[] = {"factor", "attention_factor", "beta_fast", "beta_slow",
                                           "original_max_position_embeddings"};
static const char *const scaling_names[] = {"rope.scaling.factor", "rope.scaling.attn_factor",
                                            "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow",
                                            "rope.scaling.original_context_length"};
enum { FACTOR, ATTENTION, ORIGINAL = 4, SCALINGS = 5, SECTIONS = 4, SAMPLINGS = 5 };

static const char *const sampling_names[] = {"general.sampling.temp", "general.sampling.top_p",
                                             "general.sampling.top_k", "general.sampling.min_p",
                                             "general.sampling.penalty_repeat"};

struct hf_config {
    bool there[TRUTHS_END];
    int64_t integer[INTS];
    double number[FLOATS_END];
    bool truth[TRUTHS_END];
    struct bytes architecture, model_type, version, scaling_type;
    bool has_scaling[SCALINGS];
    double scaling[SCALINGS];
    double magnitude[2];        /* YaRN's mscale and mscale_all_dim; 0: absent */
    bool whole_columns;         /* YaRN's truncate */
    bool turns_part;            /* RoPE rotates only a part of each head's columns */
    bool has_local_experts;
    int64_t local_experts;
    bool no_window;             /* sliding_window is null */
    bool has_layer_types;
    struct bytes layer_type;    /* type of a layer that does not attend to all earlier positions */
    bool has_sampling[SAMPLINGS];
    double sampling[SAMPLINGS];
    int32_t ends[ENDS_MAX];
    int n_ends;
    int32_t dense_layers[1024];
    int n_dense;
    int32_t sections[SECTIONS]; /* of positions: time, row, column */
    int n_sections;
    bool bidirectional;       /* every token attends to all tokens, whatever is_causal says */
    bool inside;              /* text_config is being read */
    bool outer_tied;          /* tie_word_embeddings was outside text_config, which takes precedence */
};

struct hf_config *hf_config_new(struct mem *m)
{
    struct hf_config *c = mem_alloc(m, sizeof(struct hf_config));
    if (c) c->whole_columns = true;
    return c;
}

/* --- architecture ------------------------------------------------------------------------------------- */

/* NULL if the architecture is unknown. */
static const struct architecture *known_of(const struct hf_config *c)
{
    return architecture_described(c->architecture, c->model_type);
}

static bool sees(const struct hf_config *c) { return known_of(c) && known_of(c)->sees; }

/* The architecture's name in GGUF files. An unknown name is kept, so that the error can show it. */
static struct bytes architecture_name(const struct hf_config *c)
{
    const struct architecture *a = known_of(c);
    if (a) return (struct bytes){(const uint8_t *)a->name, strlen(a->name)};
    return c->architecture.data ? c->architecture : c->model_type;
}

/* --- values ------------------------------------------------------------------------------------------- */

/* Reads a number or a list of numbers. More than `most` numbers are an error. */
static void read_ids(struct json_reader *r, int32_t *out, int most, int *n)
{
    int64_t id;
    bool list = json_peek(r) == JSON_ARRAY;
    if (list && !json_open(r, JSON_ARRAY)) return;
    while (!list || json_more(r)) {
        if (!json_integer(r, &id)) return;
        if (id > INT32_MAX) {
            json_wrong(r, r->pos, "an id is too large");
            return;
        }
        if (*n < most) out[(*n)++] = (int32_t)id;
        else json_wrong(r, r->pos, "the list is too long");
        if (!list) return;
    }
}

static void read_architectures(struct hf_config *c, struct json_reader *r)
{
    struct bytes name;
    if (!json_open(r, JSON_ARRAY)) return;
    while (json_more(r) && json_string_value(r, &name))
        if (!c->architecture.data) c->architecture = name;
}

static void read_scaling_key(struct hf_config *c, struct json_reader *r, struct bytes key)
{
    for (int i = 0; i < SCALINGS; i++)
        if (bytes_equal(key, scaling_keys[i])) {
            c->has_scaling[i] = json_float(r, &c->scaling[i]);
            return;
        }
    bool interleaved;
    double part;
    if (bytes_equal(key, "rope_type") || bytes_equal(key, "type")) json_string_value(r, &c->scaling_type);
    else if (bytes_equal(key, "mrope_section")) c->n_sections = 0, read_ids(r, c->sections, SECTIONS, &c->n_sections);
    else if (bytes_equal(key, "mrope_interleaved")) {
        if (json_truth(r, &interleaved) && !interleaved)
            hf_unsupported(r, "rope-scaling", "Positions whose sections are not interleaved are not supported",
                           (struct bytes){NULL, 0});
    } else if (bytes_equal(key, "rope_theta")) c->there[THETA] = json_float(r, &c->number[THETA]);
    else if (bytes_equal(key, "mscale")) json_float(r, &c->magnitude[0]);
    else if (bytes_equal(key, "mscale_all_dim")) json_float(r, &c->magnitude[1]);
    else if (bytes_equal(key, "truncate")) json_truth(r, &c->whole_columns);
    else if (bytes_equal(key, "partial_rotary_factor")) {
        if (json_float(r, &part)) c->turns_part = part != 1;
    } else json_skip(r);
}

static void read_scaling(struct hf_config *c, struct json_reader *r)
{
    struct bytes key;
    if (hf_null(r) || !json_open(r, JSON_OBJECT)) return;
    while (json_key(r, &key)) {
        if (!hf_null(r)) read_scaling_key(c, r, key);
    }
}

static void read_number(struct hf_config *c, struct json_reader *r, int key)
{
    if (hf_null(r)) {
        c->no_window = c->no_window || key == WINDOW;
        return;
    }
    if (key == TIED && c->inside && c->outer_tied) {
        json_skip(r);
        return;
    }
    if (key < INTS) c->there[key] = json_integer(r, &c->integer[key]);
    else if (key < FLOATS_END) c->there[key] = json_float(r, &c->number[key]);
    else c->there[key] = json_truth(r, &c->truth[key]);
    if (key == TIED) c->outer_tied = !c->inside;
}

/* Newer programs write the type of each layer; older ones only write from which layer on there is a window. */
static void read_layer_types(struct hf_config *c, struct json_reader *r)
{
    struct bytes type;
    if (!json_open(r, JSON_ARRAY)) return;
    c->has_layer_types = true;
    while (json_more(r) && json_string_value(r, &type))
        if (!bytes_equal(type, "full_attention")) c->layer_type = type;
}

/* Some programs rename num_experts when they save. If both keys are present, num_experts counts. */
static void read_local_experts(struct hf_config *c, struct json_reader *r)
{
    c->has_local_experts = json_integer(r, &c->local_experts);
}

/* Reads a Boolean, or a word that limits where it holds. */
static void read_bidirectional(struct hf_config *c, struct json_reader *r)
{
    bool value = true;
    struct bytes text;
    if (json_peek(r) == JSON_STRING) json_string_value(r, &text);
    else json_truth(r, &value);
    c->bidirectional |= value;
}

static void read_inner_key(struct hf_config *c, struct json_reader *r, int key)
{
    struct bytes text;
    if (key < TRUTHS_END) read_number(c, r, key);
    else if (hf_null(r)) return;
    else if (key == EOS) read_ids(r, c->ends, ENDS_MAX, &c->n_ends);
    else if (key == DENSE_LAYERS) read_ids(r, c->dense_layers, 1024, &c->n_dense);
    else if (key == ROPE_SCALING || key == ROPE_PARAMETERS) read_scaling(c, r);
    else if (key == QUANTIZATION) hf_read_quantization(r);
    else if (key == BIDIRECTIONAL) read_bidirectional(c, r);
    else if (key == LOCAL_EXPERTS) read_local_experts(c, r);
    else if (key == LAYER_TYPES) read_layer_types(c, r);
    else if (json_string_value(r, &text) && (key == PEFT || !bytes_equal(text, "silu")))
        hf_unsupported(r, key == PEFT ? "lora" : "architecture",
                       key == PEFT ? "This describes an adapter (LoRA), not a model; merge it into its model first"
                                   : "This activation function is not supported",
                       text);
}

/* Reads the language model of a vision model. Of an unknown architecture nothing is read; it is refused by its name. */
static void read_text(struct hf_config *c, struct json_reader *r)
{
    struct bytes name;
    uint64_t seen = 0;
    if (c->architecture.data && !sees(c)) {
        json_skip(r);
        return;
    }
    c->inside = true;
    if (!json_open(r, JSON_OBJECT)) return;
    while (json_key(r, &name)) {
        int key = 0;
        while (key < OUTER && !bytes_equal(name, keys[key])) key++;
        if (key < OUTER && seen >> key & 1) json_wrong(r, r->pos, "a key occurs twice");
        seen |= 1ull << key;
        if (key < OUTER) read_inner_key(c, r, key);
        else json_skip(r);
    }
    c->inside = false;
}

static void read_key(void *state, struct json_reader *r, int key)
{
    struct hf_config *c = state;
    if (key < OUTER) read_inner_key(c, r, key);
    else if (hf_null(r)) return;
    else if (key == ARCHITECTURES) read_architectures(c, r);
    else if (key == MODEL_TYPE) json_string_value(r, &c->model_type);
    else if (key == VERSION) json_string_value(r, &c->version);
    else if (key >= SAMPLING) c->has_sampling[key - SAMPLING] = json_float(r, &c->sampling[key - SAMPLING]);
    else read_text(c, r);
}

/* --- metadata --------------------------------------------------------------------------------------------- */

struct writer {
    struct checkpoint *model;
    struct bytes prefix;
    struct error *err;
    int status;
};

static const char *full_key(const struct writer *w, const char *name, char out[128])
{
    snprintf(out, 128, "%.*s.%s", (int)(w->prefix.size < 64 ? w->prefix.size : 64), (const char *)w->prefix.data, name);
    return out;
}

static void write_number(struct writer *w, const struct hf_config *c, int key)
{
    char full[128];
    if (w->status || !c->there[key] || !names[key]) return;
    full_key(w, names[key], full);
    w->status = key < INTS         ? ck_put_int(w->model, full, c->integer[key], w->err)
                : key < FLOATS_END ? ck_put_float(w->model, full, c->number[key], w->err)
                                   : ck_put_bool(w->model, full, c->truth[key], w->err);
}

static void write_scaling(struct writer *w, const struct hf_config *c)
{
    char full[128];
    bool none = !c->scaling_type.data || bytes_equal(c->scaling_type, "default") ||
                (sees(c) && bytes_equal(c->scaling_type, "mrope"));
    if (w->status || none) return;
    w->status = ck_put_text(w->model, full_key(w, "rope.scaling.type", full), c->scaling_type, w->err);
    for (int i = 0; !w->status && i < SCALINGS; i++)
        if (c->has_scaling[i])
            w->status = ck_put_float(w->model, full_key(w, scaling_names[i], full), c->scaling[i], w->err);
    if (!w->status && !c->whole_columns)
        w->status = ck_put_bool(w->model, full_key(w, "rope.scaling.yarn_truncate", full), false, w->err);
}

/* Growth of YaRN's cosines and sines. */
static double growth(double factor, double scale) { return factor <= 1 ? 1 : 0.1 * scale * num_log64(factor) + 1; }

/* Here attention_factor is the whole growth, or the quotient of two growths. In GGUF files the factor is applied on top
 * of 0.1 ln(factor) + 1. */
static void convert_attention(struct hf_config *c)
{
    const double *scale = c->magnitude, factor = c->scaling[FACTOR];
    if (!c->has_scaling[FACTOR] || factor < 1) return;
    if (!c->has_scaling[ATTENTION] && scale[0] != 0 && scale[1] != 0) {
        c->scaling[ATTENTION] = growth(factor, scale[0]) / growth(factor, scale[1]);
        c->has_scaling[ATTENTION] = true;
    }
    c->scaling[ATTENTION] /= growth(factor, 1);
}

/* If YaRN's factor is missing, it is the quotient of the two context lengths. */
static void set_factor(struct hf_config *c)
{
    if (c->has_scaling[FACTOR] || !c->has_scaling[ORIGINAL] || !c->there[CONTEXT] || c->scaling[ORIGINAL] < 1) return;
    c->scaling[FACTOR] = (double)c->integer[CONTEXT] / c->scaling[ORIGINAL];
    c->has_scaling[FACTOR] = bytes_equal(c->scaling_type, "yarn");
}

/* Sets the defaults of transformers for missing values. */
static void set_defaults(struct hf_config *c)
{
    if (!c->there[HEAD_DIM] && c->there[DIM] && c->there[HEADS] && c->integer[HEADS]) {
        c->integer[HEAD_DIM] = c->integer[DIM] / c->integer[HEADS];
        c->there[HEAD_DIM] = true;
    }
    if (!c->there[KV_HEADS]) {
        c->integer[KV_HEADS] = c->integer[HEADS];
        c->there[KV_HEADS] = c->there[HEADS];
    }
    if (!c->there[SPARSE_STEP]) c->integer[SPARSE_STEP] = 1;
    if (!c->there[EXPERTS]) c->integer[EXPERTS] = c->local_experts, c->there[EXPERTS] = c->has_local_experts;
    c->there[SPARSE_STEP] = c->there[TIED] = c->there[NORM_TOPK] = true;
    if (c->bidirectional) c->truth[CAUSAL] = false, c->there[CAUSAL] = true;
    set_factor(c);
    convert_attention(c);
}

/* Settings of vision models: the shares of their experts always sum up to 1. */
static void set_projector(struct hf_config *c)
{
    const struct architecture *a = known_of(c);
    if (!c->n_sections)
        memcpy(c->sections, a->sections, SECTIONS_SAID * sizeof *a->sections), c->n_sections = SECTIONS_SAID;
    if (c->n_sections == 3) c->sections[c->n_sections++] = 0; /* GGUF files have a fourth section */
    c->truth[NORM_TOPK] = true;
}

static void write_list(struct writer *w, const char *name, const int32_t *list, int n)
{
    char full[128];
    if (w->status || !n) return;
    const struct bytes data = {(const uint8_t *)list, (size_t)n * sizeof *list};
    w->status = ck_put_array(w->model, full_key(w, name, full), META_I32, data, (uint64_t)n, w->err);
}

static int refuse(struct error *err, const char *rule, const char *what)
{
    return fail(err, ERR_UNSUPPORTED, rule, 0, "%s", what);
}

/* Refuses models with attention in a window. In some architectures every layer has the window; in others the layers
 * that layer_types names, or else those from max_window_layers on. A window as long as the context has no effect. */
static int check_windows(const struct hf_config *c, struct error *err)
{
    enum { WINDOW_MISSING = 4096, FROM_MISSING = 28 }; /* defaults of transformers */
    char text[QUOTED];
    int64_t window = c->there[WINDOW] ? c->integer[WINDOW] : WINDOW_MISSING,
            from = c->there[WINDOW_FROM] ? c->integer[WINDOW_FROM] : FROM_MISSING;
    bool windows = c->truth[SLIDING] && !c->no_window && !(c->there[CONTEXT] && window >= c->integer[CONTEXT]);
    if (c->layer_type.data)
        return fail(err, ERR_UNSUPPORTED, "architecture", 0,
                    "Layers of the type \"%.64s\" are not supported; Qwen3's have full attention.",
                    quoted(c->layer_type, text));
    if (known_of(c)->windows) from = 0;
    else if (c->has_layer_types) windows = false;
    if (!windows || (c->there[LAYERS] && from >= c->integer[LAYERS])) return OK;
    return refuse(err, "architecture", "Attention in a sliding window is not supported.");
}

/* Refuses settings of a known architecture that this engine does not support. */
static int check_kind(const struct hf_config *c, struct error *err)
{
    if (!known_of(c)) return OK;
    if (c->truth[BIAS]) return refuse(err, "architecture", "Attention with biases is not supported.");
    if (c->turns_part) return refuse(err, "rope-scaling", "RoPE on a part of a head is not supported.");
    return check_windows(c, err);
}

static int write_architecture(struct hf_config *c, struct writer *w)
{
    w->prefix = architecture_name(c);
    w->status = check_kind(c, w->err);
    if (!w->status) w->status = ck_put_text(w->model, "general.architecture", w->prefix, w->err);
    if (!w->status && c->version.data) w->status = ck_put_text(w->model, "config.transformers", c->version, w->err);
    set_defaults(c);
    if (sees(c)) set_projector(c);
    for (int key = 0; key < TRUTHS_END; key++) write_number(w, c, key);
    write_scaling(w, c);
    write_list(w, "mlp_only_layers", c->dense_layers, c->n_dense);
    if (sees(c)) write_list(w, "rope.dimension_sections", c->sections, c->n_sections);
    return w->status;
}

/* Writes the sampling parameters that the model's makers recommend. Older models have such numbers too, which nobody
 * chose. */
static int write_sampling(const struct hf_config *c, struct checkpoint *model, struct error *err)
{
    int status = OK;
    for (int i = 0; !status && i < SAMPLINGS; i++) {
        double value = c->sampling[i];
        /* GGUF files have top_k as an integer */
        bool is_whole = value > 1 && value < 1e9 && (double)(int64_t)value == value;
        if (!c->has_sampling[i]) continue;
        status = is_whole ? ck_put_int(model, sampling_names[i], (int64_t)value, err)
                          : ck_put_float(model, sampling_names[i], value, err);
    }
    return status;
}

/* Only config.json describes the model. Its end tokens get another key than those of generation_config.json. */
static int done(void *state, struct checkpoint *model, struct error *err)
{
    struct hf_config *c = state;
    struct writer w = {.model = model, .err = err};
    bool whole = c->architecture.data || c->model_type.data;
    int status = whole ? write_architecture(c, &w) : write_sampling(c, model, err);
    if (status || !c->n_ends) return status;
    return ck_put_array(model, whole ? "config.eos_token_ids" : "generation.eos_token_ids", META_I32,
                        (struct bytes){(const uint8_t *)c->ends, (size_t)c->n_ends * 4}, (uint64_t)c->n_ends, err);
}

const struct hf_reader hf_config = {keys, read_key, done};
