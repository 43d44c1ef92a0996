/* SPDX-License-Identifier: MIT
 *
 * config.json and generation_config.json -> metadata under the keys of GGUF files. Refuses settings of a known
 * architecture that this engine does not support.
 */
#include "load/formats/hf_config.h"

#include "base/num.h"
#include "load/architecture.h"

#include <stdio.h>
#include <string.h>

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
    "ssm.group_count",
    "ssm.time_step_rank",
    "ssm.state_size",
    NULL,
    "ssm.conv_kernel",
    "full_attention_interval",
    NULL,
    "attention.layer_norm_rms_epsilon",
    "rope.freq_base",
    NULL,
    "tie_word_embeddings",
    "expert_weights_norm",
    "attention.causal",
    NULL,
    NULL,
    NULL,
    NULL,
};

static const char *const scaling_names[] = {"rope.scaling.factor", "rope.scaling.attn_factor",
                                            "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow",
                                            "rope.scaling.original_context_length", "rope.scaling.low_freq_factor",
                                            "rope.scaling.high_freq_factor"};

static const char *const sampling_names[] = {"general.sampling.temp", "general.sampling.top_p",
                                             "general.sampling.top_k", "general.sampling.min_p",
                                             "general.sampling.penalty_repeat"};

/* --- architecture ------------------------------------------------------------------------------------- */

/* NULL if the architecture is unknown. */
static const struct architecture *known_of(const struct hf_config *c)
{
    return architecture_described(c->architecture, c->model_type);
}

static bool sees(const struct hf_config *c) { return known_of(c) && known_of(c)->sees; }

/* Whether some layers have linear attention, and the others an output gate. */
static bool is_hybrid(const struct hf_config *c) { return known_of(c) && known_of(c)->family == FAMILY_QWEN35; }

bool hf_config_nested(const struct hf_config *c) { return sees(c) || is_hybrid(c); }

/* The architecture's name in GGUF files. An unknown name is kept, so that the error can show it. */
static struct bytes architecture_name(const struct hf_config *c)
{
    const struct architecture *a = known_of(c);
    if (a) return (struct bytes){(const uint8_t *)a->name, strlen(a->name)};
    return c->architecture.data ? c->architecture : c->model_type;
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
                (hf_config_nested(c) && bytes_equal(c->scaling_type, "mrope"));
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

/* The part of each head's columns that RoPE turns. */
static double turned_part(const struct hf_config *c)
{
    return c->has_part ? c->part : c->there[TURNED_PART] ? c->number[TURNED_PART] : is_hybrid(c) ? 0.25 : 1;
}

/* Settings of vision models: the shares of their experts always sum up to 1. A hybrid one without suitable sections
 * only has its text. */
static void set_vision(struct hf_config *c)
{
    const struct architecture *a = known_of(c);
    const int32_t *usual = a->sections;
    bool suits = !is_hybrid(c) || 2 * (usual[0] + usual[1] + usual[2]) == (double)c->integer[HEAD_DIM] * turned_part(c);
    if (!c->n_sections && suits)
        memcpy(c->sections, usual, SECTIONS_SAID * sizeof *usual), c->n_sections = SECTIONS_SAID;
    if (c->apart) c->n_sections = 0;
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

static int check_layer_types(const struct hf_config *c, struct error *err)
{
    char text[QUOTED];
    bool hybrid = is_hybrid(c);
    struct bytes type = c->other_type.data || hybrid ? c->other_type : c->linear_type;
    if (type.data)
        return fail(err, ERR_UNSUPPORTED, "architecture", 0,
                    "Layers of the type \"%.64s\" are not supported; those of %s have %s.", quoted(type, text),
                    known_of(c)->name, hybrid ? "linear or full attention" : "full attention");
    if (!hybrid || !c->has_layer_types || c->n_types == c->integer[LAYERS]) return OK;
    return fail(err, ERR_INCONSISTENT, "layers", 0, "config.json gives the types of %d layers, but the model has %lld.",
                c->n_types, (long long)c->integer[LAYERS]);
}

/* Refuses models with attention in a window. In some architectures every layer has the window; in others the layers
 * that layer_types names, or else those from max_window_layers on. A window as long as the context has no effect. */
static int check_windows(const struct hf_config *c, struct error *err)
{
    enum { WINDOW_MISSING = 4096, FROM_MISSING = 28 }; /* defaults of transformers */
    int64_t window = c->there[WINDOW] ? c->integer[WINDOW] : WINDOW_MISSING,
            from = c->there[WINDOW_FROM] ? c->integer[WINDOW_FROM] : FROM_MISSING;
    bool windows = c->truth[SLIDING] && !c->no_window && !(c->there[CONTEXT] && window >= c->integer[CONTEXT]);
    if (known_of(c)->windows) from = 0;
    else if (c->has_layer_types) windows = false;
    if (!windows || (c->there[LAYERS] && from >= c->integer[LAYERS])) return OK;
    return refuse(err, "architecture", "Attention in a sliding window is not supported.");
}

/* Refuses what Qwen3.5's configuration can express and its published models do not do. For its missing numbers
 * transformers has defaults that belong to no published size. */
static int check_hybrid(const struct hf_config *c, struct error *err)
{
    static const int required[] = {LAYERS,      DIM,           FFN,        HEADS,         KV_HEADS, HEAD_DIM, CONTEXT,
                                   LINEAR_KEYS, LINEAR_VALUES, LINEAR_DIM, LINEAR_KERNEL, EPS,      THETA};
    char text[QUOTED];
    const double part = turned_part(c);
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (!c->there[required[i]])
            return fail(err, ERR_FORMAT, "missing", 0, "The key %s of config.json is missing.",
                        hf_config_names[required[i]]);
    if (c->there[OUTPUT_GATE] && !c->truth[OUTPUT_GATE])
        return refuse(err, "architecture", "Attention without an output gate is not supported; Qwen3.5's has one.");
    if (c->gate.data && !bytes_equal(c->gate, "swish") && !bytes_equal(c->gate, "silu"))
        return fail(err, ERR_UNSUPPORTED, "architecture", 0,
                    "Output gates with the activation function \"%.64s\" are not supported; Qwen3.5's have swish.",
                    quoted(c->gate, text));
    if (c->n_dense)
        return refuse(err, "architecture", "Layers without experts are named, but Qwen3.5 has experts in no layer.");
    if (c->there[LINEAR_VALUE_DIM] && c->integer[LINEAR_VALUE_DIM] != c->integer[LINEAR_DIM])
        return fail(err, ERR_UNSUPPORTED, "architecture", 0,
                    "In linear attention keys have %lld columns per head and values %lld; only equal numbers are supported.",
                    (long long)c->integer[LINEAR_DIM], (long long)c->integer[LINEAR_VALUE_DIM]);
    if (!(part > 0 && part <= 1))
        return fail(err, ERR_INCONSISTENT, "value", 0,
                    "partial_rotary_factor is %g; it must be above 0 and at most 1.", part);
    return OK;
}

/* Checks that the layers without RoPE are those that the architecture says, because GGUF files cannot name others. */
static int check_turned(const struct hf_config *c, struct error *err)
{
    const int each = known_of(c)->unturned;
    bool usual = c->n_turned || !c->there[UNTURNED] || c->integer[UNTURNED] == each;
    if (!each) return OK;
    for (int l = 0; l < c->n_turned; l++) usual = usual && c->turned[l] == ((l + 1) % each != 0);
    if (c->n_turned && c->n_turned != c->integer[LAYERS])
        return fail(err, ERR_INCONSISTENT, "layers", 0,
                    "config.json says of %d layers whether they have RoPE, but the model has %lld.", c->n_turned,
                    (long long)c->integer[LAYERS]);
    if (usual) return OK;
    return fail(err, ERR_UNSUPPORTED, "architecture", 0,
                "Other layers have no RoPE than every %dth, which is not supported for %s.", each, known_of(c)->name);
}

/* Refuses settings of a known architecture that this engine does not support. */
static int check_kind(const struct hf_config *c, struct error *err)
{
    if (!known_of(c)) return OK;
    int status = is_hybrid(c) ? check_hybrid(c, err) : OK;
    if (!status) status = check_layer_types(c, err);
    if (!status) status = check_turned(c, err);
    if (status) return status;
    if (c->truth[MLP_BIAS]) return refuse(err, "architecture", "Feed-forward blocks with biases are not supported.");
    if (c->truth[BIAS] && !known_of(c)->biases)
        return refuse(err, "architecture", "Attention with biases is not supported.");
    if (!is_hybrid(c) && turned_part(c) != 1)
        return refuse(err, "rope-scaling", "RoPE on a part of a head is not supported.");
    if (bytes_equal(c->scaling_type, "llama3") && !known_of(c)->paired)
        return refuse(err, "rope-scaling", "Llama 3's scaling of RoPE is supported for Llama's architectures only.");
    if (sees(c) && !is_hybrid(c) && c->apart)
        return refuse(err, "rope-scaling", "Positions whose sections are not interleaved are not supported.");
    return check_windows(c, err);
}

static void write_int(struct writer *w, const char *name, int64_t value)
{
    char full[128];
    if (!w->status) w->status = ck_put_int(w->model, full_key(w, name, full), value, w->err);
}

static void write_true(struct writer *w, const char *name)
{
    char full[128];
    if (!w->status) w->status = ck_put_bool(w->model, full_key(w, name, full), true, w->err);
}

/* Writes what follows from several keys, and how a folder's weights differ from those of GGUF files: norms are stored
 * less 1, and the value heads of a key head are neighbours. */
static void write_hybrid(struct writer *w, const struct hf_config *c)
{
    const int64_t beyond = INT32_MAX; /* any number that the model refuses */
    char full[128];
    const int64_t dim = c->integer[LINEAR_DIM], heads = c->integer[LINEAR_VALUES];
    const double turned = (double)c->integer[HEAD_DIM] * turned_part(c);
    const struct bytes linear = {(const uint8_t *)c->linear, (size_t)c->n_types};
    write_int(w, "attention.value_length", c->integer[HEAD_DIM]);
    write_int(w, "rope.dimension_count", turned < (double)beyond ? (int64_t)turned : beyond);
    write_int(w, "ssm.inner_size", dim < beyond && heads < beyond ? dim * heads : beyond);
    if (!c->there[INTERVAL]) write_int(w, names[INTERVAL], 4);
    write_true(w, "norm.zero_centered");
    write_true(w, "ssm.grouped");
    if (!w->status && c->n_types)
        w->status = ck_put_array(w->model, full_key(w, "attention.recurrent_layers", full), META_BOOL, linear,
                                 linear.size, w->err);
}

int hf_config_put(struct hf_config *c, struct checkpoint *model, struct error *err)
{
    struct writer writer = {model, architecture_name(c), err, check_kind(c, err)}, *w = &writer;
    if (!w->status) w->status = ck_put_text(model, "general.architecture", w->prefix, err);
    if (!w->status && c->version.data) w->status = ck_put_text(model, "config.transformers", c->version, err);
    set_defaults(c);
    if (hf_config_nested(c)) set_vision(c);
    for (int key = 0; key < TRUTHS_END; key++) write_number(w, c, key);
    write_scaling(w, c);
    write_list(w, "mlp_only_layers", c->dense_layers, c->n_dense);
    if (hf_config_nested(c)) write_list(w, "rope.dimension_sections", c->sections, c->n_sections);
    if (is_hybrid(c)) write_hybrid(w, c);
    if (known_of(c) && known_of(c)->paired) write_true(w, "rope.halves");
    return w->status;
}

/* Older models have such numbers too, which nobody chose. */
int hf_config_put_sampling(const struct hf_config *c, struct checkpoint *model, struct error *err)
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
