/* SPDX-License-Identifier: MIT
 *
 * Reads config.json and generation_config.json. hf_config_keys.c makes metadata of them.
 */
#include "load/formats/hf_config.h"

#include <string.h>

const char *const hf_config_names[] = {
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
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "linear_conv_kernel_dim",
    "full_attention_interval",
    "no_rope_layer_interval",
    /* numbers */
    "rms_norm_eps",
    "rope_theta",
    "partial_rotary_factor",
    /* Booleans */
    "tie_word_embeddings",
    "norm_topk_prob",
    "is_causal",
    "attention_bias",
    "mlp_bias",
    "use_sliding_window",
    "attn_output_gate",
    /* the rest */
    "hidden_act",
    "output_gate_type",
    "eos_token_id",
    "mlp_only_layers",
    "no_rope_layers",
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
static const char *const scaling_keys[] = {"factor", "attention_factor", "beta_fast", "beta_slow",
                                           "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"};

struct hf_config *hf_config_new(struct mem *m)
{
    struct hf_config *c = mem_alloc(m, sizeof(struct hf_config));
    if (c) c->whole_columns = true;
    return c;
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
    if (bytes_equal(key, "rope_type") || bytes_equal(key, "type")) json_string_value(r, &c->scaling_type);
    else if (bytes_equal(key, "mrope_section")) c->n_sections = 0, read_ids(r, c->sections, SECTIONS, &c->n_sections);
    else if (bytes_equal(key, "mrope_interleaved")) {
        if (json_truth(r, &interleaved)) c->apart = !interleaved;
    } else if (bytes_equal(key, "rope_theta")) c->there[THETA] = json_float(r, &c->number[THETA]);
    else if (bytes_equal(key, "mscale")) json_float(r, &c->magnitude[0]);
    else if (bytes_equal(key, "mscale_all_dim")) json_float(r, &c->magnitude[1]);
    else if (bytes_equal(key, "truncate")) json_truth(r, &c->whole_columns);
    else if (bytes_equal(key, "partial_rotary_factor")) c->has_part = json_float(r, &c->part);
    else json_skip(r);
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
    while (json_more(r) && json_string_value(r, &type)) {
        bool linear = bytes_equal(type, "linear_attention");
        if (linear) c->linear_type = type;
        else if (!bytes_equal(type, "full_attention")) c->other_type = type;
        if (c->n_types < LAYERS_MAX) c->linear[c->n_types++] = linear;
        else json_wrong(r, r->pos, "the list is too long");
    }
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
    else if (key == DENSE_LAYERS) read_ids(r, c->dense_layers, LAYERS_MAX, &c->n_dense);
    else if (key == TURNED_LAYERS) read_ids(r, c->turned, LAYERS_MAX, &c->n_turned);
    else if (key == ROPE_SCALING || key == ROPE_PARAMETERS) read_scaling(c, r);
    else if (key == QUANTIZATION) hf_read_quantization(r, &c->quantized);
    else if (key == BIDIRECTIONAL) read_bidirectional(c, r);
    else if (key == LOCAL_EXPERTS) read_local_experts(c, r);
    else if (key == LAYER_TYPES) read_layer_types(c, r);
    else if (key == GATE_ACTIVATION) json_string_value(r, &c->gate);
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
    if (c->architecture.data && !hf_config_nested(c)) {
        json_skip(r);
        return;
    }
    c->inside = true;
    if (!json_open(r, JSON_OBJECT)) return;
    while (json_key(r, &name)) {
        int key = 0;
        while (key < OUTER && !bytes_equal(name, hf_config_names[key])) key++;
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

/* --- the end --------------------------------------------------------------------------------------------------- */

/* Only config.json describes the model. Its end tokens get another key than those of generation_config.json. */
static int done(void *state, struct checkpoint *model, struct error *err)
{
    struct hf_config *c = state;
    bool whole = c->architecture.data || c->model_type.data;
    int status = whole ? hf_config_put(c, model, err) : hf_config_put_sampling(c, model, err);
    if (!status) status = hf_put_quantization(&c->quantized, model, err);
    if (status || !c->n_ends) return status;
    return ck_put_array(model, whole ? "config.eos_token_ids" : "generation.eos_token_ids", META_I32,
                        (struct bytes){(const uint8_t *)c->ends, (size_t)c->n_ends * 4}, (uint64_t)c->n_ends, err);
}

const struct hf_reader hf_config = {hf_config_names, read_key, done};
