/* SPDX-License-Identifier: MIT
 *
 * What the targets that load models share: files go into an engine in chunks whose sizes the input decides, a refusal
 * must be correct, a loaded model must generate and give every text back, and all memory must be given back. Limits are
 * far below libFuzzer's own, so that sizes that follow a lie in a file become findings.
 */
#ifndef QUERN_FUZZ_LOAD_H
#define QUERN_FUZZ_LOAD_H

#include "quern.h"

#include <stdlib.h>
#include <string.h>

enum { LOAD_MEMORY = 32 << 20, LOAD_TOKENS = 4, LOAD_PIXELS = 4096, LOAD_TEXT = 48 };

/* Functions that libFuzzer calls, or provides for mutators. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/* From AddressSanitizer: bytes on the heap. */
size_t __sanitizer_get_current_allocated_bytes(void);

/* The files of a model, and how they are fed. */
struct load {
    const struct bytes *files;
    int n;
    uint64_t random; /* seed of the chunk sizes */
    bool sizes;      /* sizes are given in advance */
    bool whole;      /* each file in one chunk */
};

static inline void require(bool condition)
{
    if (!condition) abort();
}

/* 0 .. n - 1; xorshift64*, whose state is never 0. */
static inline uint64_t below(uint64_t *random, uint64_t n)
{
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    return (*random * 0x2545F4914F6CDD1D >> 16) % n;
}

/* FNV-1a: a seed that depends on the input. */
static inline uint64_t seed_of(const uint8_t *data, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; i++) hash = (hash ^ data[i]) * 0x100000001b3;
    return hash | 1;
}

/* --- loading -------------------------------------------------------------------------------------------- */

/* Feeds from memory of exactly this size, for the sanitizers. */
static inline int load_chunk(struct quern_engine *e, const uint8_t *data, size_t n)
{
    uint8_t *own = malloc(n);
    require(own != NULL);
    memcpy(own, data, n);
    int status = quern_feed(e, own, n);
    free(own);
    return status;
}

static inline int load_files(struct quern_engine *e, const struct load *l)
{
    uint64_t random = l->random;
    const size_t largest[] = {SIZE_MAX, 2000, 16};
    size_t most = l->whole ? SIZE_MAX : largest[below(&random, 3)];
    int status = OK;
    for (int i = 0; i < l->n && !status; i++) {
        struct bytes f = l->files[i];
        if (i > 0) status = quern_next_file(e, l->sizes ? f.size : 0);
        for (size_t at = 0, n; !status && at < f.size; at += n) {
            n = most == SIZE_MAX ? f.size : 1 + (size_t)below(&random, most);
            n = n < f.size - at ? n : f.size - at;
            status = load_chunk(e, f.data + at, n);
        }
    }
    return status ? status : quern_finish(e);
}

static inline struct quern_engine *load_new(const struct load *l)
{
    struct quern_options options = {.context_size = 16, .chunk = 4, .memory_limit = LOAD_MEMORY, .files = l->n,
                                    .max_pixels = LOAD_PIXELS, .max_video_pixels = LOAD_PIXELS};
    if (l->sizes) options.file_size = l->files[0].size;
    struct quern_engine *e = quern_new(&options);
    require(e != NULL);
    return e;
}

/* An error has a code, a rule and a sentence, remains, and does not depend on the chunks. */
static inline void check_refused(struct quern_engine *e, const struct load *l, int status)
{
    struct error error = *quern_error(e);
    require(error.code == status && status < 0 && status != ERR_NONFINITE && error.rule[0] && error.message[0]);
    require(quern_feed(e, "more", 4) == status && quern_finish(e) == status && quern_info(e)[0] == 0);
    if (l->whole || l->random % 8) return;
    struct load whole = *l;
    whole.whole = true;
    struct quern_engine *again = load_new(&whole);
    require(load_files(again, &whole) == status);
    require(!strcmp(quern_error(again)->rule, error.rule) && !strcmp(quern_error(again)->message, error.message));
    quern_free(again);
}

/* --- running -------------------------------------------------------------------------------------------- */

static inline void check_reply(struct quern_engine *e, struct quern_sequence *s, const struct sampler_params *params)
{
    const int32_t prompt[] = {0, 1, 2};
    int n = quern_vocab_size(e) < 3 ? 1 : 3, reused = quern_sequence_set(s, prompt, n, QUERN_LAST);
    require(quern_sample_begin(s, params) == OK);
    for (int i = 0; reused >= 0 && i < LOAD_TOKENS; i++) {
        while (quern_sequence_pending(s) > 0) require(quern_step(e, 0) == OK);
        int id = quern_sample(s);
        require(id == ERR_NONFINITE || (id >= 0 && id < quern_vocab_size(e)));
        if (id < 0) return;
        require(quern_stream(s, id).data != NULL);
        if (quern_sequence_push(s, id) == ERR_CONTEXT) return;
    }
}

/* The ids of a text are tokens, and their bytes are the text. */
static inline void check_text(struct quern_engine *e, struct bytes text, enum quern_text mode)
{
    int32_t ids[LOAD_TEXT];
    int64_t n = quern_tokenize(e, text, mode, 0, ids, LOAD_TEXT);
    size_t at = 0;
    require(n >= 0 && n <= LOAD_TEXT && text.size <= LOAD_TEXT);
    for (int64_t i = 0; i < n; i++) {
        struct bytes token = quern_token(e, ids[i]);
        require(quern_token_type(e, ids[i]) > 0 && token.size <= text.size - at &&
                memcmp(text.data + at, token.data, token.size) == 0);
        at += token.size;
    }
    require(at == text.size);
}

static inline void check_loaded(struct quern_engine *e, const struct load *l)
{
    static const uint8_t chat[] = "the <|im_start|> \n then<think> \xff\xc3";
    struct bytes last = l->files[l->n - 1], tail = {last.data, last.size < LOAD_TEXT ? last.size : LOAD_TEXT};
    tail.data += last.size - tail.size;
    struct quern_sequence *s = quern_sequence_new(e, 0, 0);
    require(s != NULL && quern_error(e)->message[0] == 0 && quern_info(e)[0] == '{');
    check_reply(e, s, &(struct sampler_params){0});
    check_reply(
        e, s,
        &(struct sampler_params){
            .temperature = 0.8f, .top_k = 20, .top_p = 0.95f, .min_p = 0.01f, .repeat_penalty = 1.1f, .seed = 1});
    for (int mode = QUERN_PLAIN; mode <= QUERN_CHAT; mode++) {
        check_text(e, (struct bytes){chat, sizeof chat}, (enum quern_text)mode);
        check_text(e, tail, (enum quern_text)mode);
    }
    quern_sequence_free(s);
}

static inline void check_load(const struct bytes *files, int n, uint64_t random)
{
    struct load l = {.files = files, .n = n, .random = random, .sizes = random % 3 != 0};
    size_t before = __sanitizer_get_current_allocated_bytes();
    struct quern_engine *e = load_new(&l);
    uint64_t used, peak;
    int status = load_files(e, &l);
    quern_memory(e, &used, &peak);
    require(used <= peak && peak <= LOAD_MEMORY);
    if (status) check_refused(e, &l, status);
    else check_loaded(e, &l);
    quern_free(e);
    require(__sanitizer_get_current_allocated_bytes() == before);
}

#endif
