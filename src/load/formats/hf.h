/* SPDX-License-Identifier: MIT
 *
 * Shared by the readers of Hugging Face's JSON files. One walk over a file's outermost object passes each known key to
 * the reader of that key, whatever the file's name. At the end of the file each reader adds its results to the model's
 * metadata, under GGUF's keys.
 */
#ifndef QUERN_HF_H
#define QUERN_HF_H

#include "base/json_reader.h"
#include "load/format.h"

/* A reader of some keys. `key` reads the value of keys[key]; `done` is called once at the end to write the results. */
struct hf_reader {
    const char *const *keys; /* NULL at the end */
    void (*key)(void *state, struct json_reader *r, int key);
    int (*done)(void *state, struct checkpoint *model, struct error *err);
};

struct hf_config;
extern const struct hf_reader hf_config; /* config.json and generation_config.json */
struct hf_config *hf_config_new(struct mem *m);

struct hf_vision;
/* config.json's vision_config, and the preprocessor files of images and videos */
extern const struct hf_reader hf_vision;
struct hf_vision *hf_vision_new(struct mem *m);

struct hf_special;
extern const struct hf_reader hf_special; /* tokenizer_config.json's special tokens */
struct hf_special *hf_special_new(struct mem *m);

struct hf_vectors;
extern const struct hf_reader hf_vectors; /* 1_Pooling/config.json */
struct hf_vectors *hf_vectors_new(struct mem *m);
/* Reads modules.json, which is a list. */
int hf_read_modules(struct json_reader *r, struct checkpoint *model);

struct hf_tokenizer;
extern const struct hf_reader hf_tokenizer; /* tokenizer.json */
struct hf_tokenizer *hf_tokenizer_new(struct mem *m);
void hf_tokenizer_free(struct hf_tokenizer *t); /* accepts NULL */

/* What config.json says of weights that another program has quantised. */
struct hf_quantized {
    const char *method; /* "fp8", "mlx", "gptq", "gptq_v2", "awq", "compressed-tensors"; NULL: nothing */
};
extern const struct hf_reader hf_quantization; /* config.json: names of the object that other programs use */
struct hf_quantized *hf_quantized_new(struct mem *m);
/* Reads the value of quantization_config. Refuses methods that are not supported, by their names. */
void hf_read_quantization(struct json_reader *r, struct hf_quantized *out);
int hf_put_quantization(const struct hf_quantized *q, struct checkpoint *model, struct error *err);
/* Name of the method that stores tensors under such a name; NULL if no known method does. */
const char *hf_quantized_tensor(struct bytes name);

/* Reports input that is valid but not supported; keeps the first error. */
void hf_unsupported(struct json_reader *r, const char *rule, const char *what, struct bytes name);

/* Skips a null, which counts as an absent key. Returns whether there was one. */
bool hf_null(struct json_reader *r);

#endif
