/* SPDX-License-Identifier: MIT
 *
 * The exported symbols of the wasm build: quern.h with flat integers and doubles, because JavaScript has neither
 * structs nor 64-bit integers. This file has no logic: decisions belong to the engine or to js/engine/engine.js, the
 * only caller.
 *
 * Addresses, sizes and offsets are doubles (exact up to 2^53) in both directions, so that wasm32 and wasm64 have the
 * same interface and no address is negative. A function with two results writes the second one to `out`.
 */
#include "base/hash.h"
#include "engine/saved.h"
#include "engine/scheduler.h"
#include "engine/state.h"
#include "image/image.h"
#include "option_data.h"
#include "quern.h"
#include "text/vocab.h"

#include <emscripten/emscripten.h>
#include <stdlib.h>
#include <unistd.h>

/* The version of this interface. Raise it with every change of a name, an argument or a meaning below;
 * js/engine/instance.js expects this text. It is a custom section, so that it can be read before any code of another
 * version runs. */
__asm__(".section .custom_section.quern,\"\",@\n"
        ".ascii \"20\"\n"
        ".text\n");

#define EXPORT EMSCRIPTEN_KEEPALIVE

/* Converts addresses to and from JavaScript. */
typedef double address;
#define FROM(p) ((address)(uintptr_t)(p))
#define TO(type, a) ((type *)(uintptr_t)(a))
#define ENGINE(a) TO(struct quern_engine, a)
#define SEQUENCE(a) TO(struct quern_sequence, a)

/* Returns the address and writes the size. */
static address view(struct bytes text, address out)
{
    *TO(uint32_t, out) = (uint32_t)text.size;
    return FROM(text.data);
}

/* --- memory for the caller: the staging buffer for file bytes and arguments --- */

EXPORT address wasm_alloc(double size) { return size < (double)SIZE_MAX ? FROM(malloc((size_t)size)) : 0; }
EXPORT void wasm_release(address p) { free(TO(void, p)); }

/* out [16]: the hash of a stored file's chunk. */
EXPORT void wasm_hash(address bytes, double n, address out)
{
    hash128(TO(const void, bytes), (size_t)n, TO(uint8_t, out));
}

/* --- images, without a model --- */

/* out [4]: kind, width, height, orientation. */
EXPORT int wasm_image_header(address bytes, double n, address out)
{
    struct image_header h = {0};
    int status = image_header(TO(const uint8_t, bytes), (size_t)n, &h);
    const int numbers[4] = {(int)h.kind, (int)h.width, (int)h.height, h.orientation};
    for (int i = 0; i < 4; i++) TO(int, out)[i] = numbers[i];
    return status;
}

EXPORT void wasm_image_opaque(address rgba, double n, address rgb)
{
    image_opaque(TO(const uint8_t, rgba), (uint64_t)n, TO(uint8_t, rgb));
}
EXPORT double wasm_image_resize_cost(int width, int height, int to_width, int to_height)
{
    return (double)image_resize_cost(width, height, to_width, to_height);
}
EXPORT void wasm_image_resize(address rgb, int width, int height, address out, int to_width, int to_height,
                              address scratch)
{
    image_resize(TO(const uint8_t, rgb), width, height, TO(uint8_t, out), to_width, to_height, TO(void, scratch));
}
EXPORT int wasm_image_sample(int total, double fps, double per_second, int least, int most, address indices)
{
    return image_sample(total, fps, per_second, least, most, TO(int32_t, indices));
}
EXPORT int wasm_image_label(double seconds, address out) { return image_label(seconds, TO(char, out)); }

/* --- engine --- */

/* table: one double for each of ENGINE_OPTIONS. memory_limit is the size to which the memory can grow. Bytes below the
 * break are in use already, and 2 MiB are left for the caller's arguments. */
EXPORT address wasm_new(address table)
{
    const double *next = TO(const double, table), taken = FROM(sbrk(0)) + (2 << 20);
    struct quern_options options = {0};
#define READ(field) options.field = (__typeof__(options.field))*next++;
    ENGINE_OPTIONS(READ)
#undef READ
    options.memory_limit = (double)options.memory_limit > taken ? options.memory_limit - (uint64_t)taken : 1;
    return FROM(quern_new(&options));
}

EXPORT int wasm_feed(address e, address bytes, int n)
{
    return quern_feed(ENGINE(e), TO(const void, bytes), (size_t)n);
}
EXPORT int wasm_warm(address e) { return quern_warm(ENGINE(e)); }
EXPORT void wasm_hash_begin(address e, address bytes, double n, double chunk, address out)
{
    quern_hash_begin(ENGINE(e), TO(const void, bytes), (size_t)n, (size_t)chunk, TO(uint8_t, out));
}
EXPORT void wasm_hash_end(address e) { quern_hash_end(ENGINE(e)); }
EXPORT int wasm_next_file(address e, double file_size) { return quern_next_file(ENGINE(e), (uint64_t)file_size); }
EXPORT int wasm_finish(address e) { return quern_finish(ENGINE(e)); }
EXPORT address wasm_info(address e) { return FROM(quern_info(ENGINE(e))); }
/* out [8]: struct quern_plan in order. */
EXPORT void wasm_plan(address e, address out)
{
    const struct quern_plan *p = quern_plan(ENGINE(e));
    const double numbers[8] = {(double)p->weights, (double)p->cache, (double)p->scratch, (double)p->total,
                               (double)p->limit,   p->context_size,  p->wanted,          p->largest};
    for (int i = 0; i < 8; i++) TO(double, out)[i] = numbers[i];
}

EXPORT double wasm_file_size(address e) { return (double)quern_file_size(ENGINE(e)); }
/* which: 0 conversations, 1 ranking, 2 conversations with tools (when that template is another one). */
EXPORT address wasm_chat_template(address e, int which, address out)
{
    struct bytes (*const templates[])(const struct quern_engine *) = {quern_chat_template, quern_rerank_template,
                                                                      quern_tool_template};
    return view(templates[which](ENGINE(e)), out);
}

EXPORT double wasm_memory_used(address e)
{
    uint64_t used, peak;
    quern_memory(ENGINE(e), &used, &peak);
    return (double)used;
}

EXPORT double wasm_memory_peak(address e)
{
    uint64_t used, peak;
    quern_memory(ENGINE(e), &used, &peak);
    return (double)peak;
}

/* Returns 0 without a profile. Reading it begins a new one. */
EXPORT address wasm_profile(address e)
{
    struct profile *p = quern_profile(ENGINE(e));
    const char *json = p ? profile_json(p) : NULL;
    if (json) profile_reset(p);
    return FROM(json);
}

/* --- the last error --- */

EXPORT address wasm_status_name(int status) { return FROM(status_name(status)); }
EXPORT int wasm_error_code(address e) { return quern_error(ENGINE(e))->code; }
EXPORT address wasm_error_rule(address e) { return FROM(quern_error(ENGINE(e))->rule); }
EXPORT address wasm_error_message(address e) { return FROM(quern_error(ENGINE(e))->message); }
EXPORT double wasm_error_offset(address e) { return (double)quern_error(ENGINE(e))->offset; }

/* --- text --- */

EXPORT address wasm_text_new(address e, int mode, uint32_t sentinel)
{
    return FROM(tok_run_new(ENGINE(e)->tok, (enum tok_mode)mode, sentinel));
}
EXPORT void wasm_text_free(address run) { tok_run_free(TO(struct tok_run, run)); }

/* flags: 1 the text ends here, 2 a piece may be long. out [2]: number of ids, bytes that have become tokens. */
EXPORT int wasm_text_go_on(address e, address run, address text, int size, int flags, int budget, address ids, int cap,
                           address out)
{
    struct tok_text in = {.bytes = {TO(const uint8_t, text), (size_t)size}, .is_whole = flags & 1};
    struct id_sink sink = {.ids = TO(int32_t, ids), .cap = cap};
    int status = tok_run_go_on(TO(struct tok_run, run), &in, flags & 2, budget, &sink);
    TO(int, out)[0] = sink.n;
    TO(int, out)[1] = (int)in.used;
    return status < 0 ? fail(&ENGINE(e)->error, status, "text", 0, "There is not enough memory for this text.")
                      : status;
}

EXPORT address wasm_token(address e, int id, address out) { return view(quern_token(ENGINE(e), id), out); }
EXPORT int wasm_token_type(address e, int id) { return quern_token_type(ENGINE(e), id); }
/* All tokens of a loaded model. out [3]: the addresses of starts, text and types (text/vocab.h). */
EXPORT void wasm_tokens(address e, address out)
{
    const struct vocab *v = tok_vocab(ENGINE(e)->tok);
    const double parts[3] = {FROM(v->starts), FROM(v->text), FROM(v->types)};
    for (int i = 0; i < 3; i++) TO(double, out)[i] = parts[i];
}

/* --- sequences --- */

EXPORT address wasm_sequence_new(address e, uint32_t scope, int priority)
{
    return FROM(quern_sequence_new(ENGINE(e), scope, priority));
}
EXPORT void wasm_sequence_free(address s) { quern_sequence_free(SEQUENCE(s)); }
EXPORT int wasm_sequence_number(address s) { return quern_sequence_number(SEQUENCE(s)); }

EXPORT int wasm_sequence_marks(address s, address marks, int n)
{
    return quern_sequence_marks(SEQUENCE(s), TO(const int32_t, marks), n);
}
EXPORT int wasm_sequence_pending(address s) { return quern_sequence_pending(SEQUENCE(s)); }

EXPORT int wasm_step(address e, int budget_ms) { return quern_step(ENGINE(e), budget_ms); }
EXPORT int wasm_awaits(address e) { return quern_awaits(ENGINE(e)); }
EXPORT void wasm_arrive(address e, double ms) { quern_arrive(ENGINE(e), ms); }

/* Logits, or else hidden states. out [2]: the first position, the number of rows. */
EXPORT address wasm_logits(address s, address out)
{
    const float *logits = quern_logits(SEQUENCE(s), TO(int, out), TO(int, out) + 1);
    return FROM(logits ? logits : quern_hidden(SEQUENCE(s), TO(int, out), TO(int, out) + 1));
}

EXPORT int wasm_output_row(address e, int id, address out) { return quern_output_row(ENGINE(e), id, TO(float, out)); }

/* bias [n_bias]: struct logit_bias, which is (int32 id, float32 bias); silent [n_silent]: int32. */
EXPORT int wasm_reply_begin(address s, float temperature, int top_k, float top_p, float min_p, float repeat_penalty,
                            float presence_penalty, float frequency_penalty, double seed, address bias, int n_bias,
                            address silent, int n_silent, int max_tokens, int single)
{
    const struct quern_reply reply = {
        .sampling.temperature = temperature,
        .sampling.top_p = top_p,
        .sampling.min_p = min_p,
        .sampling.top_k = top_k,
        .sampling.repeat_penalty = repeat_penalty,
        .sampling.presence_penalty = presence_penalty,
        .sampling.frequency_penalty = frequency_penalty,
        .sampling.seed = (uint64_t)seed,
        .sampling.bias = TO(const struct logit_bias, bias),
        .sampling.n_bias = n_bias,
        .max_tokens = max_tokens,
        .silent = TO(const int32_t, silent),
        .n_silent = n_silent,
        .single = single,
    };
    return quern_reply_begin(SEQUENCE(s), &reply);
}

/* bits: 0 allows all ids. */
EXPORT int wasm_reply_allow(address s, address bits, int flags)
{
    return quern_reply_allow(SEQUENCE(s), TO(const uint32_t, bits), flags);
}

EXPORT void wasm_reply_draft(address s, address ids, int n, int how)
{
    quern_reply_draft(SEQUENCE(s), TO(const int32_t, ids), n, (enum quern_draft)how);
}
EXPORT int wasm_reply_wants(address s, double ms) { return quern_reply_wants(SEQUENCE(s), ms); }

EXPORT void wasm_reply_end(address s) { quern_reply_end(SEQUENCE(s)); }

/* Returns struct quern_event [n], each of eleven int32. out: n as an int32; at byte 8 the address of the texts, a
 * double. */
EXPORT address wasm_events(address e, address out)
{
    TO(double, out)[1] = FROM(quern_event_text(ENGINE(e)));
    return FROM(quern_events(ENGINE(e), TO(int, out)));
}

/* out [9 + SCHED_SIZES]: struct sched_facts in order. */
EXPORT void wasm_facts(address e, address out)
{
    struct sched_facts f;
    quern_facts(ENGINE(e), &f);
    const double numbers[9] = {f.running,         f.waiting,      f.used,           f.remembered,
                               (double)f.steps,   (double)f.rows, (double)f.let_go, (double)f.recomputed,
                               (double)f.followed};
    for (int i = 0; i < 9; i++) TO(double, out)[i] = numbers[i];
    for (int i = 0; i < SCHED_SIZES; i++) TO(double, out)[9 + i] = (double)f.sizes[i];
}

/* The rest of the text of a reply that the caller ends. */
EXPORT address wasm_rest(address s, address out) { return view(quern_stream(SEQUENCE(s), -1), out); }

/* --- saved conversations --- */

EXPORT double wasm_saved_record(address e) { return (double)saved_record(ENGINE(e)); }
EXPORT int wasm_saved_print(address e, int budget_ms) { return saved_print(ENGINE(e), budget_ms); }
/* out [SAVED_HEADER] */
EXPORT int wasm_saved_open(address s, address name, int size, address out)
{
    return saved_open(SEQUENCE(s), (struct bytes){TO(const uint8_t, name), (size_t)size}, TO(uint8_t, out));
}
EXPORT int wasm_saved_give_begin(address s, address record, double n)
{
    return saved_give_begin(SEQUENCE(s), TO(uint8_t, record), (uint64_t)n);
}
EXPORT int wasm_saved_give_end(address s) { return saved_give_end(SEQUENCE(s)); }
EXPORT int wasm_saved_take(address s, address out) { return saved_take(SEQUENCE(s), TO(uint8_t, out)); }

/* --- images: quern_media.h --- */

EXPORT int wasm_sees(address e) { return quern_sees(ENGINE(e)); }
EXPORT int wasm_vision_next(address e, double file_size) { return quern_vision_next(ENGINE(e), (uint64_t)file_size); }
EXPORT int wasm_media_pad(address e, int kind) { return quern_media_pad(ENGINE(e), (enum quern_medium)kind); }

/* out: struct image_grid, five int32. */
EXPORT int wasm_media_plan(address e, int kind, int width, int height, int frames, double low, double high, address out)
{
    return quern_media_plan(ENGINE(e), (enum quern_medium)kind, width, height, frames, low, high,
                            TO(struct image_grid, out));
}

/* id: eight bytes, here and below. */
EXPORT int wasm_media_add(address e, address grid, address frame0, address frame1, uint32_t scope, address id)
{
    const struct image_grid *g = TO(const struct image_grid, grid);
    return quern_media_add(ENGINE(e), g, TO(const uint8_t, frame0), TO(const uint8_t, frame1), scope, TO(uint64_t, id));
}

EXPORT void wasm_media_release(address e, address id) { quern_media_release(ENGINE(e), *TO(uint64_t, id)); }

EXPORT int wasm_sequence_set_media(address s, address ids, int n, address media, int n_media, int outputs)
{
    return quern_sequence_set_media(SEQUENCE(s), TO(const int32_t, ids), n, TO(const uint64_t, media), n_media,
                                    (enum quern_outputs)outputs);
}

/* out [3]: the address of floats [tokens, width], tokens, width. */
EXPORT int wasm_media_encode(address e, address id, int budget_ms, address out)
{
    const float *made = NULL;
    int tokens = 0, width = 0;
    int status = quern_media_encode(ENGINE(e), *TO(uint64_t, id), budget_ms, &made, &tokens, &width);
    const double numbers[3] = {FROM(made), tokens, width};
    for (int i = 0; i < 3 && status == OK; i++) TO(double, out)[i] = numbers[i];
    return status;
}
