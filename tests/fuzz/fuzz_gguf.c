/* SPDX-License-Identifier: MIT
 *
 * The input is a model file. It is loaded in chunks whose size the input decides, and what loads must generate: 4 greedy and 4
 * sampled tokens. Limits are far below libFuzzer's own, so that what is sized by a lie in the file shows as a finding.
 *
 *   build/fuzz/fuzz/fuzz_gguf -max_len=16384 -timeout=2 -malloc_limit_mb=64 -dict=tests/fuzz/gguf.dict NEW_CORPUS tests/fuzz/corpus/gguf
 */
#include "quern.h"

#include <stdlib.h>

enum { MEMORY = 32 << 20, TOKENS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) abort();
}

static void reply(struct quern_engine *e, struct quern_sequence *s, const struct sampler_params *params)
{
    const int32_t prompt[] = {0, 1, 2};
    int n = quern_vocab_size(e) < 3 ? 1 : 3, reused = quern_sequence_set(s, prompt, n, QUERN_LAST);
    require(quern_sample_begin(s, params) == OK);
    for (int i = 0; reused >= 0 && i < TOKENS; i++) {
        while (quern_sequence_pending(s) > 0) require(quern_step(e, 0) == OK);
        int id = quern_sample(s);
        require(id == ERR_NONFINITE || (id >= 0 && id < quern_vocab_size(e)));
        if (id < 0) return;
        struct bytes text = quern_stream(s, id);
        require(text.data != NULL);
        if (quern_sequence_push(s, id) == ERR_CONTEXT) return;
    }
}

static void run(struct quern_engine *e)
{
    struct quern_sequence *s = quern_sequence_new(e);
    require(s != NULL);
    reply(e, s, &(struct sampler_params){0});
    reply(e, s, &(struct sampler_params){.temperature = 0.8f, .top_k = 20, .top_p = 0.95f, .min_p = 0.01f, .repeat_penalty = 1.1f, .seed = 1});
    quern_sequence_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t chunks[] = {SIZE_MAX, 1, 24, 1000};
    struct quern_options options = {.context_size = 16, .chunk = 4, .memory_limit = MEMORY, .file_size = size % 3 ? size : 0};
    size_t chunk = chunks[size % 4];
    struct quern_engine *e = quern_new(&options);
    require(e != NULL);
    int status = OK;
    for (size_t at = 0; at < size && status == OK; at += chunk < size - at ? chunk : size - at)
        status = quern_feed(e, data + at, chunk < size - at ? chunk : size - at);
    if (status == OK) status = quern_finish(e);
    require(status == quern_error(e)->code);
    require((status == OK) == (quern_error(e)->message[0] == 0));
    if (status == OK) run(e);
    quern_free(e);
    return 0;
}
