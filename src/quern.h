/* SPDX-License-Identifier: MIT
 *
 * quern: runs a Qwen3 language model from the files in which it is published.
 *
 * An engine is a loaded model. Feed it the bytes of the model's files in chunks of any size, then call quern_finish().
 * Call quern_next_file() between two files. The parts of a split GGUF model come in their order. Of a Hugging Face
 * folder the JSON files (or a .tokenizer file) come first, in any order, then the safetensors files (or the ajc1
 * checkpoint, or GGUF). The engine recognises each file by its content.
 *
 * A sequence is one conversation: set its tokens, then step the engine. Either the caller samples and pushes the next
 * tokens (the sequence is driven), or the engine does (the sequence replies) and reports by events. Sequences are
 * computed side by side; none changes the result of another. Tensors, kernels and threads do not show here. One thread
 * calls an engine at a time. Whatever can fail, fails before quern_finish() returns OK, except what a caller asks for
 * later (a prompt too long, a bad option).
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

/* Returns NULL when memory is short. Later errors are reported by quern_error(). */
struct quern_engine *quern_new(const struct quern_options *options);
void quern_free(struct quern_engine *e); /* frees its sequences too; accepts NULL */

/* Takes the next n bytes of the file. Returns OK or the error's code; after an error every call repeats it. */
int quern_feed(struct quern_engine *e, const void *bytes, size_t n);
/* For engines whose code is compiled while it runs, between two feeds: does about a millisecond of work that makes the
 * first token as fast as the hundredth. Returns whether another call has something to do. */
bool quern_warm(struct quern_engine *e);
/* Hashes each chunk of bytes (hash.h) into `out` while the caller reads other bytes. quern_hash_end() does the rest;
 * until then `bytes` and `out` are borrowed. */
void quern_hash_begin(struct quern_engine *e, const void *bytes, size_t n, size_t chunk, uint8_t *out);
void quern_hash_end(struct quern_engine *e);
/* The file has ended, and the next feed begins the model's next file. file_size: 0 when not known. */
int quern_next_file(struct quern_engine *e, uint64_t file_size);
/* The (last) file has ended. Checks that every weight has arrived and makes the engine ready. */
int quern_finish(struct quern_engine *e);
/* The last error; its code is OK when there was none. Borrowed until the next call. */
const struct error *quern_error(const struct quern_engine *e);
/* Describes the loaded or inspected model as one JSON object (keys: info.c, index.d.ts). Returns "" before
 * quern_finish() has returned OK. Borrowed until quern_free(). */
const char *quern_info(struct quern_engine *e);
/* Sampling defaults for replies without thinking: the values in the model's files, else those of the model's card. Call
 * it after quern_finish(). */
struct sampler_params quern_defaults(const struct quern_engine *e);
/* The memory plan: all zero until the header has arrived; filled also after ERR_MEM_PLAN. Borrowed until quern_free().
 */
const struct quern_plan *quern_plan(const struct quern_engine *e);
/* Bytes of the current file, from its header; 0 until the header has arrived. To inspect a model, feed this many bytes;
 * files without weights are needed whole. */
uint64_t quern_file_size(const struct quern_engine *e);
int quern_vocab_size(const struct quern_engine *e); /* width of a row of logits; 0 until the header has arrived */
/* Empty when the file has none. Borrowed until quern_free(). */
struct bytes quern_chat_template(const struct quern_engine *e);
/* The templates for conversations with tools and for ranking; empty when there are none. */
struct bytes quern_tool_template(const struct quern_engine *e), quern_rerank_template(const struct quern_engine *e);

/* Two words that another thread may use while a call runs. While `attention` is not zero, quern_step() returns after
 * each layer. `heartbeat` changes with every layer, every feed and every page of a saved conversation. */
struct quern_control {
    int32_t attention;
    int32_t heartbeat;
};
struct quern_control *quern_control(struct quern_engine *e);

/* --- text --- */

enum quern_text { QUERN_PLAIN = 0, QUERN_TEXT = 1, QUERN_CHAT = 2 }; /* recognised special tokens: tok_mode */

/* Returns the number of ids of the text and writes at most cap of them. Returns a negative status on failure. */
int64_t quern_tokenize(struct quern_engine *e, struct bytes text, enum quern_text mode, uint32_t sentinel, int32_t *ids,
                       int64_t cap);
/* Returns the number of tokens that the model's files add before a plain text, or after it (behind). */
int quern_added(const struct quern_engine *e, bool behind, const int32_t **ids);
/* The text of a token; empty for padding and for ids out of range. */
struct bytes quern_token(const struct quern_engine *e, int32_t id);
/* 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte; 0 out of range. */
int quern_token_type(const struct quern_engine *e, int32_t id);
/* Whether the token ends a reply (the file's end-of-text and end-of-turn tokens). */
bool quern_is_end(const struct quern_engine *e, int32_t id);

/* --- sequences --- */

/* Returns NULL when memory is short or the engine cannot be used any more; quern_error() says which. Sequences reuse
 * pages only of their own scope: use 0, or one scope for each guest who must not learn the prompts of others. priority:
 * 0 normal, 1 background: runs after all others until it has had no row for 10 s, and its pages are taken first. */
struct quern_sequence *quern_sequence_new(struct quern_engine *e, uint32_t scope, int priority);
void quern_sequence_free(struct quern_sequence *s); /* accepts NULL; its pages remain reusable */
int quern_sequence_number(const struct quern_sequence *s); /* from 1; unique in this engine */

/* Sets the content of the sequence to n >= 1 tokens and ends its reply. The sequence leaves an unfinished step; other
 * sequences in the step are not affected. Returns the number of leading tokens that are in the cache: they need no
 * computing unless their pages are taken meanwhile. ERR_EMPTY, ERR_PARAM (an id out of range), ERR_CONTEXT, ERR_BUSY
 * (`waiting` sequences wait already), ERR_UNSUPPORTED "head" (a model without an output head only has hidden states).
 */
int quern_sequence_set(struct quern_sequence *s, const int32_t *ids, int n, enum quern_outputs outputs);
/* Sets where a model with states remembers the state of a sequence, so that sequences with the same beginning continue
 * from there: after marks[i] tokens, ascending, at most 8; the last one is remembered longest. Call it after
 * quern_sequence_set(), before a step. The default is one mark, the largest multiple of 32 below n, and none for hidden
 * states. Has no effect on models without states. OK, ERR_PARAM. */
int quern_sequence_marks(struct quern_sequence *s, const int32_t *marks, int n);
/* Appends one token, as in decoding. OK, ERR_PARAM, ERR_CONTEXT. */
int quern_sequence_push(struct quern_sequence *s, int32_t id);
int quern_sequence_length(const struct quern_sequence *s);  /* tokens computed */
int quern_sequence_pending(const struct quern_sequence *s); /* tokens set or pushed, not yet computed */

/* Computes pending tokens of all sequences together: one token of each sequence that writes, and at most a chunk of the
 * others in all. Stops early, after a layer or a part of the output head, when budget_ms > 0 has passed or attention is
 * asked for; the next call goes on from there. A sequence may find that none of its tokens were computed, because it
 * waits or because its pages were taken and it starts again. Returns OK (the step is done, tokens were written
 * that the last step has drafted rightly, or nothing is pending), NEED_MORE = 1 (stopped early), ERR_BUSY (a device's
 * answer is awaited). */
int quern_step(struct quern_engine *e, int budget_ms);
/* For backends on a device (never the CPU). quern_awaits(): whether the last call (a step, an image, a page or the
 * fingerprint for a saved conversation) awaits an answer of the device. Until the answer has arrived, computing returns
 * ERR_BUSY. quern_arrive() tells the engine that it has arrived, after `ms` of work; then quern_events() has the
 * results, and a call that returned NEED_MORE is made again. A negative `ms` means that the device is lost: every reply
 * ends with ERR_LOST, and every later call that loads, sets tokens or computes returns it. */
bool quern_awaits(const struct quern_engine *e);
void quern_arrive(struct quern_engine *e, double ms);

/* Rows of logits [n_rows, vocab_size] that the last finished step made for s, for its tokens from *first on. QUERN_LAST
 * makes one row, that of the last token. Of a reply with `single` it is the row that its last token was sampled from.
 * Borrowed until the next step. */
const float *quern_logits(const struct quern_sequence *s, int *first, int *n_rows);
/* The same for hidden states, after the model's last norm: one row for QUERN_HIDDEN, all rows for QUERN_STATES; NULL
 * when there are none. */
const float *quern_hidden(const struct quern_sequence *s, int *first, int *n_rows);

/* The weights [dim] that turn a hidden state into the logit of token id, or for id -1 - i into the output of class i,
 * where the file has classes (yes and no). Call it once the model is ready. Returns false when there are none, or a
 * device has them. */
bool quern_output_row(struct quern_engine *e, int32_t id, float *out);

/* For driven sequences. Starts a reply with these sampling parameters; the tokens so far are its prompt. OK, ERR_PARAM.
 */
int quern_sample_begin(struct quern_sequence *s, const struct sampler_params *params);
/* Samples the next token from the last logits and does not push it. Returns an id, ERR_NONFINITE, ERR_EMPTY (no logits,
 * or every token is forbidden) or ERR_BUSY (a device's answer is awaited). */
int quern_sample(struct quern_sequence *s);
/* The same, among the tokens whose bit is set, as in sampler_pick(); NULL: all tokens. */
int quern_sample_among(struct quern_sequence *s, const uint32_t *allowed);
/* Appends the bytes of token id to the reply's text and returns the characters that are complete now. id -1 ends the
 * text and returns the rest, also of a reply that the engine samples. Borrowed until the next call. */
struct bytes quern_stream(struct quern_sequence *s, int32_t id);

enum { QUERN_SILENT_MOST = 32 };
/* A reply that the engine samples and pushes, of a sequence that was set with QUERN_HELD. OK, ERR_PARAM, ERR_MEM_LOAD,
 * ERR_BUSY (`waiting` sequences wait already). */
struct quern_reply {
    struct sampler_params sampling;
    int max_tokens; /* <= 0: as many as fit into the context */
    /* [n_silent], copied: tokens that are not part of the reply's text, such as marks, in addition to control tokens */
    const int32_t *silent;
    int n_silent; /* <= QUERN_SILENT_MOST */
    /* At most one token in a call of quern_step(), for callers that decide after each token: what may follow, or
     * whether the reply ends. The next call then writes the next token without computing a step, if it was drafted.
     * Otherwise a call writes all drafts that were right, up to seven, which are the same tokens. */
    bool single;
};
int quern_reply_begin(struct quern_sequence *s, const struct quern_reply *r);
/* Sets, between two steps, which ids the next tokens may have: one bit for each id, [ceil(tokens / 32)], as in
 * sampler_pick(); copied. NULL allows all ids, as at the beginning. When no allowed id is left, the reply ends with
 * ERR_EMPTY. QUERN_LENIENT: sample without penalties. QUERN_WAITS: the bits are not known yet; the reply pauses until
 * the next call, and other replies go on. What changes with each token needs `single`. OK, also without a reply;
 * ERR_MEM_LOAD. */
enum { QUERN_LENIENT = 1, QUERN_WAITS = 2 };
int quern_reply_allow(struct quern_sequence *s, const uint32_t *bits, int flags);
/* Tells, between two steps, which tokens the reply will probably write next: ids [n], copied; up to seven are used. The
 * next steps compute them beside its own row, as far as that pays; they change the time only. Ignored while earlier
 * drafts are left, without a reply, and with options.no_drafts. FORCED: a text that must follow; GUESSED: what another
 * model would write. How often each was right lately counts by itself. */
enum quern_draft { QUERN_FORCED, QUERN_GUESSED };
void quern_reply_draft(struct quern_sequence *s, const int32_t *ids, int n, enum quern_draft how);
/* How many guesses pay before the next step, if each takes `ms` to make; 0 also while other drafts are known.
 * QUERN_TRY: none seems to pay, but one may be tried now and then, since what rows cost and what is right change. */
enum { QUERN_TRY = -1 };
int quern_reply_wants(struct quern_sequence *s, double ms);
/* Ends the reply at once, also between two calls of an unfinished step, which goes on for the others. Its pages remain
 * reusable, and no event follows. Does nothing without a reply. */
void quern_reply_end(struct quern_sequence *s);

/* READ: the first step with rows of the prompt begins, or such a step has ended: `done` of `total` tokens are computed,
 * `cached` of them came from the cache. TOKEN: a token was sampled, and pushed unless END follows. END: the reply has
 * ended for the reason in `end`, after `total` drafts of which `done` were right; no event follows. LET_GO: its pages
 * were taken for other sequences; it continues by itself with the same result. ENCODE: `done` of `total` visual tokens
 * that it needs are encoded. */
enum quern_event_type { QUERN_READ = 1, QUERN_TOKEN, QUERN_END, QUERN_LET_GO, QUERN_ENCODE };
/* An end token came; max_tokens was reached; an error, see `status`; the context is full. */
enum quern_end { QUERN_STOP = 1, QUERN_LENGTH, QUERN_ERROR, QUERN_CONTEXT };
struct quern_event {
    /* number: the sequence's; fields that do not apply are 0 */
    int32_t type, number, token, status, done, total, cached, end;
    int32_t kind;       /* of TOKEN: quern_token_type() */
    /* range of bytes in quern_event_text(): the characters that a TOKEN completes, or the rest at an END without an
     * error */
    int32_t text, size;
};
/* Events of the last quern_step(), and the bytes of their texts. Borrowed until the next step. */
const struct quern_event *quern_events(const struct quern_engine *e, int *n);
const uint8_t *quern_event_text(const struct quern_engine *e);
void quern_facts(const struct quern_engine *e, struct sched_facts *out);      /* engine/scheduler.h */

/* The cost of the steps so far (profile.h); NULL unless options.profile is set. */
struct profile *quern_profile(struct quern_engine *e);

/* Bytes that the engine has allocated, now and at most. */
void quern_memory(const struct quern_engine *e, uint64_t *used, uint64_t *peak);

#endif
