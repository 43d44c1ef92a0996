/* SPDX-License-Identifier: MIT
 *
 * What the readers of Hugging Face's JSON files share. One walk over a file's outermost object hands each known key to
 * the reader that knows it, whatever the file is called; when the file has ended, each adds what it found to the
 * model's metadata, in GGUF's words.
 */
#ifndef QUERN_HF_H
#define QUERN_HF_H

#include "base/json_reader.h"
#include "load/format.h"

/* A reader of some keys. `key` reads the value of one of its keys; then it is asked once what it has found. */
struct hf_reader {
    const char *const *keys; /* NULL at the end */
    void (*key)(void *state, struct json_reader *r, int key);
    int (*done)(void *state, struct checkpoint *model, struct error *err);
};

struct hf_config;
extern const struct hf_reader hf_config; /* config.json and generation_config.json */
struct hf_config *hf_config_new(struct mem *m);

struct hf_vision;
/* config.json's vision_config, and the files of the preprocessors of images and videos */
extern const struct hf_reader hf_vision;
struct hf_vision *hf_vision_new(struct mem *m);

struct hf_special;
extern const struct hf_reader hf_special; /* tokenizer_config.json's special tokens */
struct hf_special *hf_special_new(struct mem *m);

struct hf_vectors;
extern const struct hf_reader hf_vectors; /* 1_Pooling/config.json */
struct hf_vectors *hf_vectors_new(struct mem *m);
/* modules.json, which is a list. */
int hf_read_modules(struct json_reader *r, struct checkpoint *model);

struct hf_tokenizer;
extern const struct hf_reader hf_tokenizer; /* tokenizer.json */
struct hf_tokenizer *hf_tokenizer_new(struct mem *m);
void hf_tokenizer_free(struct hf_tokenizer *t); /* accepts NULL */

/* config.json: weights as other programs make them smaller, of which we read FP8 alone; no state */
extern const struct hf_reader hf_quantization;
/* The value of quantization_config: refused by the method's name unless it is FP8 in blocks. */
void hf_read_quantization(struct json_reader *r);
/* The name of the method that stores a tensor under such a name; NULL: none that we know. */
const char *hf_quantized_tensor(struct bytes name);

/* Something that is valid but not for us; keeps the first error. */
void hf_unsupported(struct json_reader *r, const char *rule, const char *what, struct bytes name);

/* null is taken as if the key were not there. */
bool hf_null(struct json_reader *r);

#endif
