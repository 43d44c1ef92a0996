/* SPDX-License-Identifier: MIT
 *
 * The table of architectures. MODEL.md has the facts about each and their sources.
 */
#include "load/architecture.h"

#include "base/reader.h"

/* Names for which llama.cpp's loader of vocabularies (src/llama-vocab.cpp) uses the same expression, without an added
 * prefix, space or token. "laguna", "ufakzeka", "seed-coder" and "bailingmoe" are similar, but not the
 * same. */
static const char *const qwen2[] = {"qwen2",   "deepseek-r1-qwen", "f2llmv2",   "kormo",  "megrez",
                                    "hunyuan", "solar-open",       "stablelm2", "grok-2", NULL},
                        *const qwen35[] = {"qwen35", NULL}, *const llama[] = {"llama-bpe", "llama3", "llama-v3", NULL},
                        *const smaug[] = {"smaug-bpe", NULL}, *const smollm[] = {"smollm", NULL};

#define LLAMA_REGEX                                                                                                    \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

enum { SPLIT_QWEN2, SPLIT_QWEN35, SPLIT_LLAMA, SPLIT_SMAUG };

const struct text_split text_splits[] = {
    {qwen2,
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     .digits = 1},
    {qwen35,
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     .marks = true, .digits = 1},
    {llama, LLAMA_REGEX, .digits = 3, .whole = true, .begins = true},
    {smaug, LLAMA_REGEX, .digits = 3},
    {smollm, TEXT_DIGITS, .bare = true, .digits = 1},
    {.names = NULL},
};

static const struct marks qwen = {
    .word = "qwen",
    .first = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"},
    .ends = {"<|im_end|>", "<|endoftext|>"},
    .vision = {"<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>"},
};

static const struct marks llama_marks = {
    .word = "llama",
    .ends = {"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|im_end|>"},
};

static const char *const older_qwen3[] = {"qwen2", "qwen", NULL}, *const none[] = {NULL};

/* From the model cards: Qwen3's "Best Practices", and Qwen3-VL's. */
static const struct cards text_cards[] = {{ANY_DIM, 20, {0.7, 0.8, 0}, {0.6, 0.95, 0}, {0.7, 0.8, 0}}},
                          vision_cards[] = {{ANY_DIM, 20, {0.7, 0.8, 1.5}, {1, 0.95, 0}, {0.7, 0.8, 1.5}}};

/* Qwen3.5's; those of 0.8B and 2B differ. */
static const struct cards qwen35_cards[] = {{2048, 20, {1, 1, 2}, {1, 0.95, 1.5}, {0.7, 0.8, 1.5}},
                                            {ANY_DIM, 20, {0.7, 0.8, 1.5}, {1, 0.95, 1.5}, {0.7, 0.8, 1.5}}};

/* Llama 3's generation_config.json, and SmolLM3's card. */
static const struct cards llama_cards[] = {{ANY_DIM, 0, {0.6, 0.9, 0}, {0.6, 0.9, 0}, {0.6, 0.9, 0}}},
                          smollm_cards[] = {{ANY_DIM, 0, {0.6, 0.95, 0}, {0.6, 0.95, 0}, {0.6, 0.95, 0}}};

static const int32_t sections[SECTIONS_SAID] = {24, 20, 20}, partial_sections[SECTIONS_SAID] = {11, 11, 10};

#define PAIRED .family = FAMILY_QWEN3, .older = none, .paired = true
#define QWEN3                                                                                                          \
    .family = FAMILY_QWEN3, .norms = true, .theta = 1e6, .split = text_splits, .marks = &qwen, .call_form = "json"
#define OF_TEXT .cards = text_cards
#define OF_VISION .cards = vision_cards, .sees = true, .sections = sections

const struct architecture architectures[] = {
    {QWEN3, OF_TEXT, .name = "qwen3", .older = older_qwen3, .classes = {"Qwen3ForCausalLM", "Qwen3Model"},
     .types = {"qwen3"}},
    {QWEN3, OF_TEXT, .name = "qwen3moe", .older = none, .classes = {"Qwen3MoeForCausalLM", "Qwen3MoeModel"},
     .types = {"qwen3_moe"}, .experts = true, .windows = true},
    {QWEN3, OF_VISION, .name = "qwen3vl", .older = none, .classes = {"Qwen3VLForConditionalGeneration", "Qwen3VLModel"},
     .types = {"qwen3_vl"}},
    {QWEN3, OF_VISION, .name = "qwen3vlmoe", .older = none,
     .classes = {"Qwen3VLMoeForConditionalGeneration", "Qwen3VLMoeModel"}, .types = {"qwen3_vl_moe"},
     .experts = true, .turned = true},
    {.family = FAMILY_QWEN3, OF_TEXT, .name = "qwen2", .older = none, .biases = true, .theta = 1e4,
     .split = text_splits, .marks = &qwen, .call_form = "json", .classes = {"Qwen2ForCausalLM", "Qwen2Model"},
     .types = {"qwen2"}},
    {PAIRED, .name = "llama", .theta = 1e4, .split = text_splits + SPLIT_LLAMA, .marks = &llama_marks,
     .call_form = "parameters", .cards = llama_cards, .classes = {"LlamaForCausalLM", "LlamaModel"},
     .types = {"llama"}},
    {PAIRED, .name = "smollm3", .theta = 2e6, .unturned = 4, .split = text_splits + SPLIT_SMAUG, .marks = &qwen,
     .call_form = "json", .cards = smollm_cards, .classes = {"SmolLM3ForCausalLM", "SmolLM3Model"},
     .types = {"smollm3"}},
    {.family = FAMILY_QWEN35, .norms = true, .split = text_splits + SPLIT_QWEN35, .marks = &qwen,
     .call_form = "tagged", .cards = qwen35_cards, .sees = true, .sections = partial_sections, .name = "qwen35", .older = none,
     .classes = {"Qwen3_5ForConditionalGeneration", "Qwen3_5ForCausalLM", "Qwen3_5Model", "Qwen3_5TextModel"},
     .types = {"qwen3_5", "qwen3_5_text"}},
    {.name = NULL},
};

const struct architecture *architecture_named(struct bytes name)
{
    const struct architecture *a = architectures;
    while (a->name && !bytes_equal(name, a->name)) a++;
    return a->name ? a : NULL;
}

const struct cards *architecture_cards(const struct architecture *a, int dim)
{
    const struct cards *c = a->cards;
    while (c->dim < dim) c++;
    return c;
}

static bool is_among(struct bytes name, const char *const *names, int most)
{
    for (int i = 0; i < most && names[i]; i++)
        if (bytes_equal(name, names[i])) return true;
    return false;
}

const struct architecture *architecture_described(struct bytes class, struct bytes type)
{
    for (const struct architecture *a = architectures; a->name; a++)
        if (class.data ? is_among(class, a->classes, CLASS_NAMES) : is_among(type, a->types, TYPE_NAMES)) return a;
    return NULL;
}
