/* SPDX-License-Identifier: MIT
 *
 * quern: run a Qwen3 language model from the file people publish.
 *
 * Two nouns. An engine is a loaded model: feed it the file's bytes in any chunks, then finish. A model of several files
 * comes file after file, with quern_next_file() between them: the parts of a split GGUF model in their order; or first,
 * in any order, the JSON files of a Hugging Face folder (or a .tokenizer file), then its safetensors files (or the ajc1
 * checkpoint, or GGUF). What a file is, its bytes say. A sequence is one conversation: set its tokens, then step the
 * engine. Its owner samples and pushes what follows (it is driven), or the engine does (it replies) and tells by
 * events. Sequences compute side by side; what comes out of one never depends on the others. Nothing about tensors,
 * kernels or threads shows here. Keep it so: what a page, a command line or a test needs is tokens in, text out.
 *
 * One thread calls an engine at a time. Everything that can fail, fails before quern_finish() returns OK,
 * except what a caller asks for later (a prompt too long, a bad option).
 */
#ifndef QUERN_H
#define QUERN_H

#include "base/base.h"
#include "compute/profile.h"
#include "quern_media.h"
#include "quern_options.h"
#include "text/sampler.h"

struct quern_engine;
struct quern_sequence;
struct sched_facts;

/* --- engine --- */

/* Never fails but for memory (NULL). Errors of later calls are kept in quern_error(). */
struct quern_engine *quern_new(const struct quern_options *options);
void quern_free(struct quern_engine *e); /* its sequences too; accepts NULL */

/* Takes the next n bytes of the file. OK or the error's code; after an error every call repeats it. */
int quern_feed(struct quern_engine *e, const void *bytes, size_t n);
/* Between two feeds, while bytes are awaited, where code is compiled while it runs: about a millisecond of work that
 * makes the first token as fast as the hundredth. Returns whether another call has something to do. */
bool quern_warm(struct quern_engine *e);
/* Hashes each chunk of bytes (hash.h) into `out` while the caller reads others; both are borrowed until
 * quern_hash_end(), which does the rest. */
void quern_hash_begin(struct quern_engine *e, const void *bytes, size_t n, size_t chunk, uint8_t *out);
void quern_hash_end(struct quern_engine *e);
/* The file has ended, and the model's next one begins with the next feed. Its size: 0 when not known. */
int quern_next_file(struct quern_engine *e, uint64_t file_size);
/* The (last) file has ended. Checks that every weight has arrived and makes the engine ready. */
int quern_finish(struct quern_engine *e);
/* the last one; code OK when there was none; borrowed until the next call */
const struct error *quern_error(const struct quern_engine *e);
/* What was loaded, or inspected, as one JSON object (keys: info.c, index.d.ts); "" before quern_finish() is OK;
 * borrowed until quern_free(). */
const char *quern_info(struct quern_engine *e);
/* without thinking: as the files advise, else the model's card; then too */
struct sampler_params quern_defaults(const struct quern_engine *e);
/* All zero until the header has arrived; also after ERR_MEM_PLAN. Borrowed until the engine is freed. */
const struct quern_plan *quern_plan(const struct quern_engine *e);
/* Bytes of the file at hand, by its header; 0 until that has arrived. To inspect a model takes no more, but files
 * without weights it needs whole. */
uint64_t quern_file_size(const struct quern_engine *e);
int quern_vocab_size(const struct quern_engine *e); /* width of a row of logits; 0 until the header has arrived */
/* empty when the file has none; borrowed until the engine is freed */
struct bytes quern_chat_template(const struct quern_engine *e);
/* others, if it has them */
struct bytes quern_tool_template(const struct quern_engine *e), quern_rerank_template(const struct quern_engine *e);

/* Two words that another thread may use while a call runs: while attention is not zero, quern_step() returns after each
 * layer; heartbeat changes with every layer, every feed and every page of a kept conversation. */
struct quern_control {
    int32_t attention;
    int32_t heartbeat;
};
struct quern_control *quern_control(struct quern_engine *e);

/* --- text --- */

enum quern_text { QUERN_PLAIN = 0, QUERN_TEXT = 1, QUERN_CHAT = 2 }; /* which special tokens: enum tok_mode */

/* Returns how many ids the text has and writes at most cap of them; a negative status on failure. */
int64_t quern_tokenize(struct quern_engine *e, struct bytes text, enum quern_text mode, uint32_t sentinel, int32_t *ids,
                       int64_t cap);
/* how many the files want before a plain text, or behind it */
int quern_added(const struct quern_engine *e, bool behind, const int32_t **ids);
/* what it stands for; empty for padding and ids out of range */
struct bytes quern_token(const struct quern_engine *e, int32_t id);
/* 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte; 0 out of range */
int quern_token_type(const struct quern_engine *e, int32_t id);
/* whether it ends a reply (the file's end-of-text and end-of-turn tokens) */
bool quern_is_end(const struct quern_engine *e, int32_t id);

/* --- sequences --- */

/* NULL when memory is short, or the engine can do nothing any more: quern_error() says which. Nothing is known of
 * another scope's tokens: 0, or one for each who may not learn what others have asked. priority: 0 normal, 1
 * background: after all others, until it has had no row for 10 s, and its pages are taken first. */
struct quern_sequence *quern_sequence_new(struct quern_engine *e, uint32_t scope, int priority);
void quern_sequence_free(struct quern_sequence *s); /* accepts NULL; its pages stay known for reuse */
int quern_sequence_number(const struct quern_sequence *s); /* from 1 on; no other of this engine ever has it */

/* Makes these n >= 1 tokens the content of the sequence, which leaves a step that is not finished; others in it do not
 * notice. A reply ends here. Returns how many of them are known: they need no computing while their pages are not taken
 * for others. ERR_EMPTY, ERR_PARAM (an id out of range), ERR_CONTEXT, ERR_BUSY (`waiting` wait already),
 * ERR_UNSUPPORTED "head" (a model without an output head has hidden states only). */
int quern_sequence_set(struct quern_sequence *s, const int32_t *ids, int n, enum quern_outputs outputs);
/* Of a model that has states: where those of a sequence that has been set, and not been computed yet, shall be
 * remembered, so that what begins alike goes on from there: after marks[i] tokens, ascending, 8 at most. Otherwise the
 * largest multiple of 32 below n is the only one. OK, ERR_PARAM. */
int quern_sequence_marks(struct quern_sequence *s, const int32_t *marks, int n);
/* Appends one token, as in decoding. OK, ERR_PARAM, ERR_CONTEXT. */
int quern_sequence_push(struct quern_sequence *s, int32_t id);
int quern_sequence_length(const struct quern_sequence *s);  /* tokens computed */
int quern_sequence_pending(const struct quern_sequence *s); /* tokens set or pushed, not yet computed */

/* Computes pending tokens of sequences together: of each that writes one, of others at most a chunk in all. Stops early
 * after a layer or a part of the output head when budget_ms > 0 has passed or attention is asked for; the next call
 * goes on from there. A sequence may find that nothing of it was computed, as it waits, or was let go and starts anew.
 * OK (it is done, or nothing is pending), 1 (stopped early), ERR_BUSY (awaited). */
int quern_step(struct quern_engine *e, int budget_ms);
/* Where a device computes (never on the CPU): whether an answer of it is on its way to what was called last, a step, an
 * image, or a page or the fingerprint of a kept conversation. Until it has arrived, computing is ERR_BUSY.
 * quern_arrive() says that it is there, after `ms` of work; then quern_events() has what follows from it, and a call
 * that returned NEED_MORE is made again. A negative `ms` says that the device is lost: every reply ends with ERR_LOST,
 * and so does every later call but quern_free(). */
bool quern_awaits(const struct quern_engine *e);
void quern_arrive(struct quern_engine *e, double ms);

/* Rows of logits that the last finished step made for s, [n_rows, vocab_size], for tokens from *first on. QUERN_LAST
 * gives one, of what was the last token. Borrowed until the next step. */
const float *quern_logits(const struct quern_sequence *s, int *first, int *n_rows);
/* The same of hidden states, after the model's last norm: one row of QUERN_HIDDEN, all of QUERN_STATES; NULL when there
 * are none. */
const float *quern_hidden(const struct quern_sequence *s, int *first, int *n_rows);

/* The weights [dim] by which a hidden state becomes the logit of token id, or for id -1 - i the output of class i,
 * where the file has classes (yes and no). Once a model is ready. false: there is none, or a device has them. */
bool quern_output_row(struct quern_engine *e, int32_t id, float *out);

/* Driven. Starts a reply: sampling parameters; the sequence's tokens so far count as prompt. OK, ERR_PARAM. */
int quern_sample_begin(struct quern_sequence *s, const struct sampler_params *params);
/* The next token by the last logits, not pushed: an id, ERR_NONFINITE, ERR_EMPTY (no logits; every token forbidden),
 * ERR_BUSY (awaited). */
int quern_sample(struct quern_sequence *s);
/* of those with their bit, as sampler_pick() has it; NULL: any */
int quern_sample_among(struct quern_sequence *s, const uint32_t *allowed);
/* Whole characters of the reply so far: appends token id's bytes to the stream, gives what is complete. id -1: the end,
 * gives the rest, also of a reply that the engine samples. Borrowed until the next call. */
struct bytes quern_stream(struct quern_sequence *s, int32_t id);

enum { QUERN_SILENT_MOST = 32 };
/* The engine samples and pushes. After quern_sequence_set(QUERN_HELD). OK, ERR_PARAM, ERR_MEM_LOAD, ERR_BUSY (`waiting`
 * wait already). */
struct quern_reply {
    struct sampler_params sampling;
    int max_tokens; /* <= 0: what the context has room for */
    /* [n_silent], copied: tokens that are none of its text, such as marks, beside those that only steer */
    const int32_t *silent;
    int n_silent;          /* <= QUERN_SILENT_MOST */
};
int quern_reply_begin(struct quern_sequence *s, const struct quern_reply *r);
/* Between two steps: of which ids its next tokens are, by a bit each, [ceil(tokens / 32)], as sampler_pick() has it;
 * copied. NULL: of all, as at first. Where none is left it ends with ERR_EMPTY. QUERN_LENIENT: and without penalties.
 * QUERN_WAITS: it is not known yet which; until the next call it samples none, and the others go on. OK, also without a
 * reply; ERR_MEM_LOAD. */
enum { QUERN_LENIENT = 1, QUERN_WAITS = 2 };
int quern_reply_allow(struct quern_sequence *s, const uint32_t *bits, int flags);
/* where it is; its pages stay known; no event follows. Without a reply nothing happens */
void quern_reply_end(struct quern_sequence *s);

/* READ: the first step with its rows begins, or one has ended: done of total, cached of which were known. TOKEN:
 * sampled, and pushed unless END follows. END: why, and nothing follows. LET_GO: its pages were taken for others; it
 * goes on by itself, and no bit changes. LOOK: done of total visual tokens that it needs are encoded. */
enum quern_event_type { QUERN_READ = 1, QUERN_TOKEN, QUERN_END, QUERN_LET_GO, QUERN_LOOK };
/* an end token; max_tokens; `status`; the context is full */
enum quern_end { QUERN_STOP = 1, QUERN_LENGTH, QUERN_ERROR, QUERN_CONTEXT };
struct quern_event {
    /* number: of the sequence; 0 where they do not apply */
    int32_t type, number, token, status, done, total, cached, end;
    int32_t kind;       /* of TOKEN: quern_token_type() */
    /* bytes of quern_event_text(): the whole characters that a TOKEN completes; what is left at an END, but of an error
     */
    int32_t text, size;
};
/* of the last quern_step(); borrowed until the next */
const struct quern_event *quern_events(const struct quern_engine *e, int *n);
const uint8_t *quern_event_text(const struct quern_engine *e);               /* the same */
void quern_facts(const struct quern_engine *e, struct sched_facts *out);      /* engine/scheduler.h */

/* what steps have cost so far (profile.h); NULL unless options.profile */
struct profile *quern_profile(struct quern_engine *e);

/* bytes of everything this engine allocated */
void quern_memory(const struct quern_engine *e, uint64_t *used, uint64_t *peak);

#endif
