/* SPDX-License-Identifier: MIT
 *
 * The exported symbols of the wasm build: quern.h in flat integers, doubles and addresses, because a
 * JavaScript caller has neither structs nor 64-bit integers. No logic here: whatever needs a decision
 * belongs to the engine (below) or to js/engine.js (above), the one caller.
 *
 * Sizes and offsets of files are doubles (exact up to 2^53). A function with two results writes the
 * second one to `out`.
 */
#include <emscripten/emscripten.h>
#include <stdlib.h>

#include "hash.h"
#include "quern.h"

/* The version of this interface, raised with every change of a name, an argument or a meaning below. js/instance.js expects
 * this very text. It is a custom section, so that it can be read before anything of another version runs. */
__asm__(".section .custom_section.quern,\"\",@\n"
        ".ascii \"5\"\n"
        ".text\n");

#define EXPORT EMSCRIPTEN_KEEPALIVE

/* --- memory of the caller's: the staging buffer for file bytes and arguments --- */

EXPORT void *wasm_alloc(size_t size) { return malloc(size); }
EXPORT void wasm_release(void *p) { free(p); }

/* out [16]: the hash of a chunk of a stored file. */
EXPORT void wasm_hash(const void *bytes, size_t n, uint8_t *out) { hash128(bytes, n, out); }

/* --- threads --- */

/* Not zero once a thread of the pool has ended, which none does while its engine lives. src/pthread.js sets it, the page
 * looks at it. A variable of the instance's, because there is nothing else that both know where to find. */
static int32_t lost;
EXPORT int32_t *wasm_lost(void) { return &lost; }

/* --- engine --- */

EXPORT struct quern_engine *wasm_new(int threads, int context_size, int kv, int chunk, int scalar, int profile, double file_size)
{
    struct quern_options options = {
        .threads = threads,
        .context_size = context_size,
        .kv = (enum quern_kv)kv,
        .chunk = chunk,
        .scalar = scalar != 0,
        .profile = profile != 0,
        .file_size = (uint64_t)file_size,
    };
    return quern_new(&options);
}

EXPORT int wasm_feed(struct quern_engine *e, const void *bytes, size_t n) { return quern_feed(e, bytes, n); }
EXPORT int wasm_warm(struct quern_engine *e) { return quern_warm(e); }
EXPORT int wasm_finish(struct quern_engine *e) { return quern_finish(e); }
EXPORT const char *wasm_info(struct quern_engine *e) { return quern_info(e); }
EXPORT double wasm_file_size(struct quern_engine *e) { return (double)quern_file_size(e); }
EXPORT struct quern_control *wasm_control(struct quern_engine *e) { return quern_control(e); }

EXPORT const uint8_t *wasm_chat_template(struct quern_engine *e, uint32_t *out)
{
    struct bytes text = quern_chat_template(e);
    *out = (uint32_t)text.size;
    return text.data;
}

EXPORT double wasm_memory_used(struct quern_engine *e)
{
    uint64_t used, peak;
    quern_memory(e, &used, &peak);
    return (double)used;
}

EXPORT double wasm_memory_peak(struct quern_engine *e)
{
    uint64_t used, peak;
    quern_memory(e, &used, &peak);
    return (double)peak;
}

/* NULL when none is kept; reading it begins a new one. */
EXPORT const char *wasm_profile(struct quern_engine *e)
{
    struct profile *p = quern_profile(e);
    const char *json = p ? profile_json(p) : NULL;
    if (json) profile_reset(p);
    return json;
}

/* --- the last error --- */

EXPORT const char *wasm_status_name(int status) { return status_name(status); }
EXPORT int wasm_error_code(struct quern_engine *e) { return quern_error(e)->code; }
EXPORT const char *wasm_error_rule(struct quern_engine *e) { return quern_error(e)->rule; }
EXPORT const char *wasm_error_message(struct quern_engine *e) { return quern_error(e)->message; }
EXPORT double wasm_error_offset(struct quern_engine *e) { return (double)quern_error(e)->offset; }

/* --- text --- */

/* Texts here are shorter than 2 GiB, so the count fits an int. */
EXPORT int wasm_tokenize(struct quern_engine *e, const uint8_t *text, size_t size, int mode, uint32_t sentinel, int32_t *ids, int cap)
{
    return (int)quern_tokenize(e, (struct bytes){text, size}, (enum quern_text)mode, sentinel, ids, cap);
}

EXPORT const uint8_t *wasm_token(struct quern_engine *e, int id, uint32_t *out)
{
    struct bytes text = quern_token(e, id);
    *out = (uint32_t)text.size;
    return text.data;
}

EXPORT int wasm_token_type(struct quern_engine *e, int id) { return quern_token_type(e, id); }
EXPORT int wasm_is_end(struct quern_engine *e, int id) { return quern_is_end(e, id); }

/* --- sequences --- */

EXPORT struct quern_sequence *wasm_sequence_new(struct quern_engine *e) { return quern_sequence_new(e); }

EXPORT int wasm_sequence_set(struct quern_sequence *s, const int32_t *ids, int n, int outputs)
{
    return quern_sequence_set(s, ids, n, (enum quern_outputs)outputs);
}

EXPORT int wasm_sequence_push(struct quern_sequence *s, int id) { return quern_sequence_push(s, id); }
EXPORT int wasm_sequence_length(struct quern_sequence *s) { return quern_sequence_length(s); }
EXPORT int wasm_sequence_pending(struct quern_sequence *s) { return quern_sequence_pending(s); }

EXPORT int wasm_step(struct quern_engine *e, int budget_ms) { return quern_step(e, budget_ms); }

/* out [2]: the first position and the number of rows. */
EXPORT const float *wasm_logits(struct quern_sequence *s, int *out) { return quern_logits(s, &out[0], &out[1]); }

/* bias [n_bias]: struct logit_bias, that is (int32 id, float32 bias) pairs. */
EXPORT int wasm_sample_begin(struct quern_sequence *s, float temperature, int top_k, float top_p, float min_p, float repeat_penalty,
                             float presence_penalty, float frequency_penalty, double seed, const struct logit_bias *bias, int n_bias)
{
    struct sampler_params params = {
        .temperature = temperature,
        .top_p = top_p,
        .min_p = min_p,
        .top_k = top_k,
        .repeat_penalty = repeat_penalty,
        .presence_penalty = presence_penalty,
        .frequency_penalty = frequency_penalty,
        .seed = (uint64_t)seed,
        .bias = bias,
        .n_bias = n_bias,
    };
    return quern_sample_begin(s, &params);
}

EXPORT int wasm_sample(struct quern_sequence *s) { return quern_sample(s); }

EXPORT const uint8_t *wasm_stream(struct quern_sequence *s, int id, uint32_t *out)
{
    struct bytes text = quern_stream(s, id);
    *out = (uint32_t)text.size;
    return text.data;
}
