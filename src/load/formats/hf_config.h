/* SPDX-License-Identifier: MIT
 *
 * What config.json and generation_config.json say: hf_config.c reads it, hf_config_keys.c checks it and writes it as
 * metadata under the keys of GGUF files.
 */
#ifndef QUERN_HF_CONFIG_H
#define QUERN_HF_CONFIG_H

#include "load/formats/hf.h"

/* Keys of config.json; hf_config.c has their names. */
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
    LINEAR_KEYS,
    LINEAR_VALUES,
    LINEAR_DIM,
    LINEAR_VALUE_DIM,
    LINEAR_KERNEL,
    INTERVAL,
    UNTURNED,
    INTS,
    EPS = INTS,
    THETA,
    TURNED_PART,
    FLOATS_END,
    TIED = FLOATS_END,
    NORM_TOPK,
    CAUSAL,
    BIAS,
    MLP_BIAS,
    SLIDING,
    OUTPUT_GATE,
    TRUTHS_END,
    ACTIVATION = TRUTHS_END,
    GATE_ACTIVATION,
    EOS,
    DENSE_LAYERS,
    TURNED_LAYERS,
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

/* Keys of rope_scaling that are numbers. */
enum { FACTOR, ATTENTION, ORIGINAL = 4, SCALINGS = 7 };
enum { ENDS_MAX = 8, LAYERS_MAX = 1024, SECTIONS = 4, SAMPLINGS = 5 };

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
    bool has_part;              /* rope_parameters has the part of each head's columns that RoPE turns */
    double part;
    bool apart;                 /* the sections of positions are not interleaved */
    bool has_local_experts;
    int64_t local_experts;
    bool no_window;             /* sliding_window is null */
    bool has_layer_types;
    bool linear[LAYERS_MAX];    /* [n_types] layers with linear attention */
    int n_types;
    struct bytes linear_type;   /* type of a layer with linear attention */
    struct bytes other_type;    /* type of a layer with neither full nor linear attention */
    struct bytes gate;          /* activation function of the attention's output gate */
    bool has_sampling[SAMPLINGS];
    double sampling[SAMPLINGS];
    int32_t ends[ENDS_MAX];
    int n_ends;
    int32_t dense_layers[LAYERS_MAX];
    int n_dense;
    int32_t turned[LAYERS_MAX]; /* [n_turned] 1: the layer has RoPE, 0: it has none */
    int n_turned;
    int32_t sections[SECTIONS]; /* of positions: time, row, column */
    int n_sections;
    bool bidirectional;       /* every token attends to all tokens, whatever is_causal says */
    bool inside;              /* text_config is being read */
    struct hf_quantized quantized;
    bool outer_tied;          /* tie_word_embeddings was outside text_config, which takes precedence */
};

extern const char *const hf_config_names[]; /* of the keys, as in config.json; NULL at the end */

/* Whether the class exists with vision: the language model's keys are in text_config, and positions have sections. */
bool hf_config_nested(const struct hf_config *c);
/* Writes what config.json describes; refuses settings of a known architecture that this engine does not support. The
 * second writes the sampling parameters that the model's makers recommend. */
int hf_config_put(struct hf_config *c, struct checkpoint *model, struct error *err);
int hf_config_put_sampling(const struct hf_config *c, struct checkpoint *model, struct error *err);

#endif
