/* SPDX-License-Identifier: MIT
 *
 * The input is a model of several files: JSON files with safetensors, or a .tokenizer file with a checkpoint. What loads must generate.
 *
 * Layout: u8 n_files (1 to 6), n_files times a size of 24 bits, then the files. What is missing at the end is not there.
 *
 *   build/fuzz/fuzz/fuzz_set -max_len=32768 -timeout=2 -malloc_limit_mb=64 -dict=tests/fuzz/json.dict NEW_CORPUS tests/fuzz/corpus/set
 */
#include "quern.h"

#include <stdlib.h>

enum { MEMORY = 32 << 20, FILES = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) abort();
}

static void run(struct quern_engine *e)
{
    const int32_t prompt[] = {0, 1, 2};
    int32_t ids[64];
    struct quern_sequence *s = quern_sequence_new(e);
    require(s != NULL);
    int n = quern_vocab_size(e) < 3 ? 1 : 3, reused = quern_sequence_set(s, prompt, n, QUERN_LAST);
    require(quern_sample_begin(s, &(struct sampler_params){0}) == OK);
    for (int i = 0; reused >= 0 && i < 4; i++) {
        while (quern_sequence_pending(s) > 0) require(quern_step(e, 0) == OK);
        int id = quern_sample(s);
        require(id == ERR_NONFINITE || (id >= 0 && id < quern_vocab_size(e)));
        if (id < 0 || quern_sequence_push(s, id) == ERR_CONTEXT) break;
    }
    static const uint8_t text[] = "the <|im_start|> \n then<think> \xff\xc3";
    int64_t count = quern_tokenize(e, (struct bytes){text, sizeof text}, QUERN_CHAT, 0, ids, 64);
    require(count > 0 && count <= 64);
    for (int64_t i = 0; i < count; i++) require(quern_token_type(e, ids[i]) > 0);
    quern_sequence_free(s);
}

static int feed(struct quern_engine *e, const uint8_t *data, size_t size, size_t chunk)
{
    int status = OK;
    for (size_t at = 0; at < size && status == OK; at += chunk < size - at ? chunk : size - at)
        status = quern_feed(e, data + at, chunk < size - at ? chunk : size - at);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t chunks[] = {SIZE_MAX, 1, 24, 1000};
    if (size < 1 || data[0] < 1 || data[0] > FILES || size < 1 + 3 * (size_t)data[0]) return 0;
    int n = data[0], status = OK;
    const uint8_t *sizes = data + 1, *at = sizes + 3 * n, *end = data + size;
    struct quern_options options = {.context_size = 16, .chunk = 4, .memory_limit = MEMORY, .files = n};
    struct quern_engine *e = quern_new(&options);
    require(e != NULL);
    for (int i = 0; i < n && status == OK; i++) {
        size_t wanted = sizes[3 * i] | (size_t)sizes[3 * i + 1] << 8 | (size_t)sizes[3 * i + 2] << 16, there = (size_t)(end - at);
        size_t bytes = wanted < there ? wanted : there;
        if (i > 0) status = quern_next_file(e, size % 3 ? bytes : 0);
        if (status == OK) status = feed(e, at, bytes, chunks[size % 4]);
        at += bytes;
    }
    if (status == OK) status = quern_finish(e);
    require(status == quern_error(e)->code);
    require((status == OK) == (quern_error(e)->message[0] == 0));
    if (status == OK) run(e);
    quern_free(e);
    return 0;
}
