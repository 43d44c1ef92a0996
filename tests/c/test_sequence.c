/* SPDX-License-Identifier: MIT
 *
 * Conversations: known prefixes, steps that are stopped or dropped, every error of the calls and the state after it,
 * sampling. Whatever happened before, the next logits are the reference's, to the bit.
 */
#include "session.h"

#include <math.h>

/* --- known prefixes ------------------------------------------------------------------------------------- */

/* What set() must return: the longest prefix seen before, except the last token, which makes the logits. */
static void prefix_reuse(void)
{
    struct reference r = reference_new("nano.Q8_0");
    struct quern_engine *e = engine_load(&r.file, (struct quern_options){.chunk = 16}, SIZE_MAX);
    struct quern_sequence *s = sequence_new(e);
    CHECK_EQ(quern_sequence_set(s, r.ids, 40, QUERN_LAST), 0);
    check_row(&r, 39, logits_last(e, s));
    for (int i = 40; i < 50; i++) { /* the reply */
        CHECK_EQ(quern_sequence_push(s, r.ids[i]), OK);
        check_row(&r, i, logits_last(e, s));
    }
    CHECK_EQ(quern_sequence_set(s, r.ids, 90, QUERN_LAST), 50); /* the second turn */
    CHECK_EQ(quern_sequence_pending(s), 90); /* until its turn */
    check_row(&r, 89, logits_last(e, s));
    CHECK_EQ(quern_sequence_set(s, r.ids, 90, QUERN_LAST), 89); /* the same again */
    check_row(&r, 89, logits_last(e, s));
    CHECK_EQ(quern_sequence_set(s, r.ids, 37, QUERN_LAST), 36); /* back into the middle of a page */
    check_row(&r, 36, logits_last(e, s));
    quern_sequence_free(s);
    s = sequence_new(e); /* other sequences find it too */
    CHECK_EQ(quern_sequence_set(s, r.ids, 100, QUERN_LAST), 90);
    check_row(&r, 99, logits_last(e, s));
    quern_free(e);
    reference_free(&r);
}

/* Sets another continuation from every place of a page, then the first one again. */
static void regeneration(void)
{
    struct reference r = reference_new("nano.F32");
    int32_t other[GOLDEN_ROWS];
    for (int at = 30; at <= 66; at += 3) {
        struct quern_engine *e = engine_load(&r.file, (struct quern_options){0}, SIZE_MAX),
                            *fresh = engine_load(&r.file, (struct quern_options){0}, SIZE_MAX);
        struct quern_sequence *s = sequence_new(e), *t = sequence_new(fresh);
        for (int i = 0; i < 80; i++) other[i] = i < at ? r.ids[i] : (r.ids[i] + 1) % 256;
        CHECK_EQ(quern_sequence_set(s, r.ids, 80, QUERN_LAST), 0);
        check_row(&r, 79, logits_last(e, s));
        CHECK_EQ(quern_sequence_set(s, other, 80, QUERN_LAST), at);
        CHECK_EQ(quern_sequence_set(t, other, 80, QUERN_LAST), 0);
        CHECK(same_bits(logits_last(e, s), logits_last(fresh, t), GOLDEN_VOCAB));
        CHECK_EQ(quern_sequence_set(s, r.ids, 80, QUERN_LAST), 79);
        check_row(&r, 79, logits_last(e, s));
        check_pages(e);
        quern_free(e);
        quern_free(fresh);
    }
    reference_free(&r);
}

/* Two sequences share a beginning and are written side by side; one is freed while the other continues. */
static void forks(void)
{
    struct reference r = reference_new("nano.Q4_K_M");
    struct quern_engine *e = engine_load(&r.file, (struct quern_options){0}, SIZE_MAX);
    struct quern_sequence *a = sequence_new(e), *b = sequence_new(e);
    CHECK_EQ(quern_sequence_set(a, r.ids, 45, QUERN_LAST), 0);
    check_row(&r, 44, logits_last(e, a));
    CHECK_EQ(quern_sequence_set(b, r.ids, 45, QUERN_LAST), 44);
    check_row(&r, 44, logits_last(e, b));
    for (int i = 45; i < 75; i++) {
        CHECK_EQ(quern_sequence_push(a, r.ids[i]), OK);
        if (b) CHECK_EQ(quern_sequence_push(b, 7), OK); /* another text at the same place */
        check_row(&r, i, logits_last(e, a));
        if (i == 60) quern_sequence_free(b), b = NULL;
        disturb_pages(e, (uint64_t)i);
    }
    quern_free(e);
    reference_free(&r);
}

/* --- steps that are stopped ----------------------------------------------------------------------------------- */

/* A clock that advances by a millisecond at each call: a budget of one is over after each layer. */
static double played_ms;

static double played_clock(void) { return played_ms += 1; }

/* With a budget that is over after each layer, the logits are the same, with more calls. */
static void budget(void)
{
    struct reference r = reference_new("duo.F32");
    struct quern_engine *e = engine_load(&r.file, (struct quern_options){.chunk = 96, .now = played_clock}, SIZE_MAX);
    struct quern_sequence *s = sequence_new(e);
    int stopped = 0, layers = e->model->config.n_layers;
    CHECK_EQ(quern_sequence_set(s, r.ids, GOLDEN_ROWS, QUERN_LAST), 0);
    while (quern_sequence_pending(s) > 0) {
        int length = quern_sequence_length(s), status = quern_step(e, 1);
        CHECK(status == OK || status == 1);
        CHECK(status ? quern_sequence_length(s) == length : quern_sequence_length(s) > length);
        stopped += status;
    }
    CHECK_EQ(stopped, 2 * layers); /* two chunks, each stopped after every layer */
    check_row(&r, GOLDEN_ROWS - 1, logits_last(e, s));
    quern_free(e);
    reference_free(&r);
}

enum leaving { SET, SET_ALIKE, FREED, PUSHED, SET_TWICE, SET_SHORT_OF_MEMORY, LEAVINGS };

/* Something happens to a sequence in the middle of a step. `other`: what it held. Returns whether it still exists. */
static bool let_leave(struct quern_engine *e, struct quern_sequence *s, enum leaving how, const struct reference *r,
                      const int32_t *other)
{
    if (how == SET_SHORT_OF_MEMORY) e->mem.fail_at = e->mem.n_allocs + 1;
    if (how == FREED) quern_sequence_free(s);
    else if (how == PUSHED) CHECK_EQ(quern_sequence_push(s, r->ids[0]), OK);
    else if (how == SET_ALIKE) CHECK(quern_sequence_set(s, other, 15, QUERN_LAST) >= 0);
    else CHECK(quern_sequence_set(s, r->ids, 33, QUERN_LAST) >= 0);
    if (how == SET_TWICE) CHECK(quern_sequence_set(s, r->ids, 21, QUERN_ALL) == 0);
    e->mem.fail_at = 0;
    return how != FREED;
}

/* Three sequences are in a step; after `layer` layers one leaves, or stays. The others get the same logits as before,
 * and later so does the one. */
static void leave_at(const struct reference *r, enum leaving how, int layer)
{
    struct quern_engine *e =
        engine_load(&r->file, (struct quern_options){.chunk = 96, .threads = 2, .now = played_clock}, SIZE_MAX);
    struct quern_sequence *a = sequence_new(e), *b = sequence_new(e), *c = sequence_new(e);
    int32_t other[20];
    int status = 1;
    for (int i = 0; i < 20; i++) other[i] = 255 - r->ids[i] % 256;
    CHECK_EQ(quern_sequence_set(a, r->ids, 30, QUERN_LAST), 0);
    CHECK_EQ(quern_sequence_set(b, other, 20, QUERN_LAST), 0);
    CHECK_EQ(quern_sequence_set(c, r->ids, 26, QUERN_ALL), 0);
    for (int i = 0; i < layer; i++) CHECK_EQ(quern_step(e, 1), 1);
    CHECK_EQ(e->step.n_takes, layer ? 3 : 0);
    bool there = let_leave(e, b, how, r, other);
    CHECK_EQ(e->step.running, layer > 0);
    check_pages(e);
    disturb_pages(e, 17); /* pages that no sequence holds are NaN now */
    while (quern_sequence_pending(a) || quern_sequence_pending(c)) {
        status = quern_step(e, 1);
        CHECK(status == OK || status == 1);
        check_pages(e);
    }
    int first, n;
    check_row(r, 29, quern_logits(a, &first, &n));
    CHECK(same_bits(quern_logits(c, &first, &n), r->logits, 26 * GOLDEN_VOCAB));
    CHECK(first == 0 && n == 26);
    while (there && quern_sequence_pending(b)) CHECK_EQ(quern_step(e, 0), OK);
    if (how == SET || how == SET_SHORT_OF_MEMORY) check_row(r, 32, quern_logits(b, &first, &n));
    if (how == SET_TWICE) CHECK(same_bits(quern_logits(b, &first, &n), r->logits, 21 * GOLDEN_VOCAB));
    if (there) CHECK(quern_sequence_set(b, r->ids, 60, QUERN_LAST) >= 0);
    if (there) check_row(r, 59, logits_last(e, b));
    quern_free(e);
}

static void leaving_a_step(void)
{
    struct reference r = reference_new("duo.F32");
    for (enum leaving how = 0; how < LEAVINGS; how++)
        for (int layer = 0; layer < 2; layer++) leave_at(&r, how, layer);
    reference_free(&r);
}

/* The only sequence leaves its step: nothing of it remains. Then all sequences leave, one after the other: the same. */
static void left_by_all(void)
{
    struct reference r = reference_new("duo.F32");
    struct quern_engine *e = engine_load(&r.file, (struct quern_options){.chunk = 96, .now = played_clock}, SIZE_MAX);
    struct quern_sequence *a = sequence_new(e), *b = sequence_new(e);
    int32_t other[96];
    for (int i = 0; i < 96; i++) other[i] = 255 - r.ids[i] % 256;
    CHECK_EQ(quern_sequence_set(a, other, 96, QUERN_LAST), 0);
    CHECK_EQ(quern_step(e, 1), 1);
    CHECK_EQ(quern_sequence_set(a, r.ids, 90, QUERN_LAST), 0);
    CHECK(!e->step.running);
    check_row(&r, 89, logits_last(e, a));
    CHECK_EQ(quern_sequence_set(a, other, 40, QUERN_LAST), 0);
    CHECK_EQ(quern_sequence_set(b, other + 1, 40, QUERN_LAST), 0);
    CHECK_EQ(quern_step(e, 1), 1);
    quern_sequence_free(a);
    CHECK(e->step.running);
    CHECK_EQ(quern_sequence_set(b, r.ids, 50, QUERN_LAST), 49);
    CHECK(!e->step.running);
    check_pages(e);
    check_row(&r, 49, logits_last(e, b));
    CHECK_EQ(quern_sequence_push(b, 7), OK);
    CHECK_EQ(quern_step(e, 1), 1);
    quern_free(e); /* in the middle of a step */
    reference_free(&r);
}

/* --- errors -------------------------------------------------------------------------------------------------- */

/* After the error everything is still there, and continues. */
static void check_goes_on(struct quern_engine *e, struct quern_sequence *s, const struct reference *r, int code)
{
    CHECK_EQ(quern_error(e)->code, code);
    CHECK(quern_error(e)->message[0] != 0);
    int n = quern_sequence_length(s) + quern_sequence_pending(s);
    CHECK_EQ(quern_sequence_push(s, r->ids[n]), OK);
    check_row(r, n, logits_last(e, s));
}

static void bad_calls(void)
{
    struct reference r = reference_new("nano.Q8_0");
    struct quern_engine *e = engine_load(&r.file, (struct quern_options){0}, SIZE_MAX);
    struct quern_sequence *s = sequence_new(e);
    const int32_t wrong[] = {-1, GOLDEN_VOCAB, INT32_MAX, INT32_MIN};
    int first, n;
    CHECK_EQ(quern_step(e, 0), OK); /* a step without work is no error */
    CHECK(quern_logits(s, &first, &n) == NULL && n == 0);
    CHECK_EQ(quern_sample_begin(s, &(struct sampler_params){0}), OK);
    CHECK_EQ(quern_sample(s), ERR_EMPTY);
    CHECK_EQ(quern_sequence_set(s, r.ids, 20, QUERN_LAST), 0);
    check_row(&r, 19, logits_last(e, s));
    for (int i = 0; i < 4; i++) {
        int32_t ids[3] = {1, wrong[i], 2};
        CHECK_EQ(quern_sequence_set(s, ids, 3, QUERN_LAST), ERR_PARAM);
        check_goes_on(e, s, &r, ERR_PARAM);
        CHECK_EQ(quern_sequence_push(s, wrong[i]), ERR_PARAM);
        check_goes_on(e, s, &r, ERR_PARAM);
        CHECK_EQ(quern_token(e, wrong[i]).size, 0);
        CHECK(!quern_is_end(e, wrong[i]));
    }
    CHECK_EQ(quern_sequence_set(s, r.ids, 0, QUERN_LAST), ERR_EMPTY);
    check_goes_on(e, s, &r, ERR_EMPTY);
    CHECK_EQ(quern_sequence_set(s, r.ids, -1, QUERN_ALL), ERR_EMPTY);
    check_goes_on(e, s, &r, ERR_EMPTY);
    CHECK_EQ(quern_sample_begin(s, &(struct sampler_params){.temperature = NAN}), ERR_PARAM);
    check_goes_on(e, s, &r, ERR_PARAM);
    CHECK_EQ(quern_feed(e, "more", 4), ERR_BUSY);
    check_goes_on(e, s, &r, ERR_BUSY);
    CHECK_EQ(quern_next_file(e, 4), ERR_BUSY);
    check_goes_on(e, s, &r, ERR_BUSY);
    CHECK_EQ(quern_vision_next(e, 4), ERR_BUSY);
    check_goes_on(e, s, &r, ERR_BUSY);
    CHECK_EQ(quern_finish(e), OK);
    quern_free(e);
    reference_free(&r);
}

static void before_loading(void)
{
    struct quern_engine *e = quern_new(&(struct quern_options){0});
    int32_t id;
    CHECK(quern_sequence_new(e, 0, 0) == NULL);
    CHECK_EQ(quern_step(e, 0), ERR_BUSY);
    CHECK_EQ(quern_tokenize(e, (struct bytes){(const uint8_t *)"a", 1}, QUERN_TEXT, 0, &id, 1), ERR_BUSY);
    CHECK_EQ(quern_vocab_size(e), 0);
    CHECK(!strcmp(quern_info(e), "") && quern_file_size(e) == 0 && quern_token(e, 0).size == 0 &&
          quern_chat_template(e).data == NULL);
    CHECK_EQ(quern_feed(e, "", 0), OK);
    CHECK_EQ(quern_finish(e), ERR_FORMAT);
    CHECK_EQ(quern_step(e, 0), ERR_BUSY);
    CHECK_EQ(quern_feed(e, "", 0), ERR_FORMAT);
    CHECK_EQ(quern_error(e)->code, ERR_FORMAT);
    quern_free(e);
    quern_free(NULL);
    quern_sequence_free(NULL);
}

/* A context of 70: the 70th token fits, the 71st does not, with any call. */
static void context(void)
{
    struct reference r = reference_new("nano.F16");
    struct quern_engine *e = engine_load(&r.file, (struct quern_options){.context_size = 70, .chunk = 32}, SIZE_MAX);
    struct quern_sequence *s = sequence_new(e);
    CHECK_EQ(quern_sequence_set(s, r.ids, 71, QUERN_LAST), ERR_CONTEXT);
    CHECK(strstr(quern_error(e)->message, "71") && strstr(quern_error(e)->message, "70"));
    CHECK_EQ(quern_sequence_pending(s), 0);
    CHECK_EQ(quern_sequence_set(s, r.ids, 69, QUERN_LAST), 0);
    check_row(&r, 68, logits_last(e, s));
    CHECK_EQ(quern_sequence_push(s, r.ids[69]), OK);
    CHECK_EQ(quern_sequence_push(s, r.ids[70]), ERR_CONTEXT);
    check_row(&r, 69, logits_last(e, s));
    CHECK_EQ(quern_sequence_push(s, r.ids[70]), ERR_CONTEXT);
    CHECK_EQ(quern_sequence_length(s), 70);
    CHECK_EQ(quern_sequence_set(s, r.ids, 70, QUERN_LAST), 69);
    check_row(&r, 69, logits_last(e, s));
    quern_free(e);
    reference_free(&r);
}

/* A context of 64 has pages for two conversations of 64 positions. A third one gets its turn: an idle sequence gives up
 * its pages, and reads again when it continues. */
static void pages_run_out(void)
{
    struct reference r = reference_new("nano.Q4_0");
    struct quern_engine *e = engine_load(&r.file, (struct quern_options){.context_size = 64, .chunk = 64}, SIZE_MAX);
    struct quern_sequence *a = sequence_new(e), *b = sequence_new(e), *c = sequence_new(e);
    struct sched_facts facts;
    int32_t own[64];
    for (int i = 0; i < 64; i++) own[i] = 255 - r.ids[i] % 256;
    CHECK_EQ(quern_sequence_set(a, r.ids, 60, QUERN_LAST), 0);
    check_row(&r, 59, logits_last(e, a));
    CHECK_EQ(quern_sequence_set(b, own, 60, QUERN_LAST), 0);
    logits_last(e, b);
    CHECK_EQ(quern_sequence_set(c, r.ids, 10, QUERN_ALL), 0);
    while (quern_sequence_pending(c)) CHECK_EQ(quern_step(e, 0), OK);
    check_pages(e);
    quern_facts(e, &facts);
    CHECK(facts.let_go > 0 && facts.waiting == 0);
    disturb_pages(e, 3);
    for (int i = 60; i < 64; i++) {
        CHECK_EQ(quern_sequence_push(a, r.ids[i]), OK);
        CHECK_EQ(quern_sequence_push(c, r.ids[10 + i - 60]), OK);
        while (quern_sequence_pending(a) || quern_sequence_pending(c)) CHECK_EQ(quern_step(e, 0), OK);
        check_pages(e);
    }
    check_row(&r, 63, logits_last(e, a));
    quern_free(e);
    reference_free(&r);
}

/* --- sampling -------------------------------------------------------------------------------------------------- */

/* At a temperature that makes all tokens equally likely, every real token occurs, and no padding. */
static void padding_never_sampled(void)
{
    enum { DRAWS = 20000 };
    struct file f = golden_file("nano.Q8_0", "gguf");
    struct quern_engine *e = engine_load(&f, (struct quern_options){0}, SIZE_MAX);
    struct quern_sequence *s = sequence_new(e);
    int seen[GOLDEN_VOCAB] = {0}, real = 0;
    CHECK_EQ(quern_sequence_set(s, (const int32_t[]){1, 2, 3}, 3, QUERN_LAST), 0);
    logits_last(e, s);
    CHECK_EQ(quern_sample_begin(s, &(struct sampler_params){.temperature = 1e6f, .seed = 5}), OK);
    for (int i = 0; i < DRAWS; i++) {
        int id = quern_sample(s);
        CHECK(id >= 0 && id < GOLDEN_VOCAB);
        seen[id]++;
    }
    for (int id = 0; id < GOLDEN_VOCAB; id++) {
        bool padding = quern_token(e, id).size == 0;
        CHECK((seen[id] > 0) == !padding);
        real += !padding;
    }
    CHECK(real >= 256 + 19 && real < GOLDEN_VOCAB);
    quern_free(e);
    file_free(&f);
}

/* Samples 60 tokens after `prompt`. */
static void sample_text(struct quern_engine *e, uint64_t seed, const int32_t *prompt, int32_t *out)
{
    struct quern_sequence *s = sequence_new(e);
    CHECK(quern_sequence_set(s, prompt, 10, QUERN_LAST) >= 0);
    CHECK_EQ(
        quern_sample_begin(s,
                           &(struct sampler_params){
                               .temperature = 0.9f, .top_k = 40, .top_p = 0.95f, .repeat_penalty = 1.1f, .seed = seed}),
        OK);
    for (int i = 0; i < 60; i++) {
        logits_last(e, s);
        out[i] = quern_sample(s);
        CHECK(out[i] >= 0);
        CHECK_EQ(quern_sequence_push(s, out[i]), OK);
    }
    quern_sequence_free(s);
}

static void same_seed_same_text(void)
{
    struct reference r = reference_new("nano.Q6_K");
    struct quern_engine *e = engine_load(&r.file, (struct quern_options){.threads = 2}, SIZE_MAX);
    struct quern_engine *scalar = engine_load(&r.file, (struct quern_options){.scalar = true}, SIZE_MAX);
    int32_t one[60], again[60], elsewhere[60], other[60];
    sample_text(e, 42, r.ids, one);
    sample_text(e, 42, r.ids, again);
    sample_text(scalar, 42, r.ids, elsewhere);
    sample_text(e, 43, r.ids, other);
    CHECK_EQ(memcmp(one, again, sizeof one), 0);
    CHECK_EQ(memcmp(one, elsewhere, sizeof one), 0);
    CHECK(memcmp(one, other, sizeof one) != 0);
    quern_free(e);
    quern_free(scalar);
    reference_free(&r);
}

/* --- the demo model --------------------------------------------------------------------------------------------- */

enum { TOKENS_MAX = 160 };

/* Reads one line of ids; returns their number. */
static int read_ids(char **text, int32_t *ids)
{
    int n = 0;
    for (char *end = *text; **text != '\n'; *text = end) {
        CHECK(n < TOKENS_MAX);
        ids[n++] = (int32_t)strtol(*text, &end, 10);
        CHECK(end != *text);
        if (*end == ' ') end++;
    }
    ++*text;
    return n;
}

static void check_reply(struct quern_engine *e, const int32_t *prompt, int n_prompt, const int32_t *reply, int n_reply)
{
    struct quern_sequence *s = sequence_new(e);
    CHECK(quern_sequence_set(s, prompt, n_prompt, QUERN_LAST) >= 0);
    CHECK_EQ(quern_sample_begin(s, &(struct sampler_params){0}), OK);
    for (int i = 0; i < n_reply; i++) {
        logits_last(e, s);
        CHECK_EQ(quern_sample(s), reply[i]);
        CHECK_EQ(quern_is_end(e, reply[i]), i + 1 == n_reply);
        CHECK_EQ(quern_sequence_push(s, reply[i]), OK);
    }
    quern_sequence_free(s);
}

/* Complete greedy replies of llama.cpp. Its 8-bit products round differently, so only items are used in which every
 * token wins by at least a quarter of a logit (of the others all but three agree too). */
static void demo_replies(void)
{
    static const int chosen[] = {0, 14, 26, 29, 61};
    char folder[1100];
    snprintf(folder, sizeof folder, "%.1000s/../../web/models", check_fixtures);
    struct file model = file_read(folder, "demo-q8_0.gguf"), list = file_read(built_fixtures(""), "demo-replies.txt");
    struct quern_engine *e = engine_load(&model, (struct quern_options){.context_size = 512}, SIZE_MAX);
    char *text = (char *)list.data;
    size_t next = 0;
    for (int item = 0; next < sizeof chosen / sizeof *chosen; item++) {
        int32_t prompt[TOKENS_MAX], reply[TOKENS_MAX];
        CHECK(text < (char *)list.data + list.size);
        int n_prompt = read_ids(&text, prompt), n_reply = read_ids(&text, reply);
        if (item != chosen[next]) continue;
        check_reply(e, prompt, n_prompt, reply, n_reply);
        next++;
    }
    quern_free(e);
    file_free(&model);
    file_free(&list);
}

/* --- odd models --------------------------------------------------------------------------------------------------- */

/* M19, M20: norms or all weights are zero, and all logits equal: the lowest id. */
static void lowest_id(const char *name)
{
    struct file f = file_read(built_fixtures("/bad"), name);
    struct quern_engine *e = engine_load(&f, (struct quern_options){0}, SIZE_MAX);
    struct quern_sequence *s = sequence_new(e);
    CHECK_EQ(quern_sequence_set(s, (const int32_t[]){9, 8}, 2, QUERN_LAST), 0);
    CHECK(logits_last(e, s)[0] == 0);
    CHECK_EQ(quern_sample_begin(s, &(struct sampler_params){0}), OK);
    CHECK_EQ(quern_sample(s), 0);
    quern_free(e);
    file_free(&f);
}

static void equal_logits(void)
{
    lowest_id("good-M19a.gguf");
    lowest_id("good-M20a.gguf");
}

/* V10: the file's own end token counts, and Qwen's two as well. */
static void end_tokens(void)
{
    struct file f = file_read(built_fixtures("/bad"), "good-V10b.gguf");
    struct quern_engine *e = engine_load(&f, (struct quern_options){0}, SIZE_MAX);
    int ends = 0;
    for (int id = 0; id < quern_vocab_size(e); id++) {
        struct bytes text = quern_token(e, id);
        bool qwen = bytes_equal(text, "<|im_end|>") || bytes_equal(text, "<|endoftext|>");
        CHECK_EQ(quern_is_end(e, id), id == 32 || qwen);
        ends += quern_is_end(e, id);
    }
    CHECK_EQ(ends, 3);
    quern_free(e);
    file_free(&f);
}

enum { SPOILT_ROWS = 40, GOOD_ROWS = 33, SPOILT_VOCAB = 288 };
/* where a sequence with non-finite numbers is: in the same steps, or earlier in its pages */
enum where { ALONE, BEFORE, BEHIND, AFTER };

/* The embedding of token 65 is NaN. */
static void logits_at(enum where place, const struct file *f, float *out)
{
    int32_t ids[SPOILT_ROWS];
    struct quern_engine *e =
        engine_load(f, (struct quern_options){.context_size = place == AFTER ? 64 : 128}, SIZE_MAX);
    CHECK_EQ(quern_vocab_size(e), SPOILT_VOCAB);
    struct quern_sequence *first = sequence_new(e), *second = sequence_new(e), *good = place == BEHIND ? second : first,
                          *spoilt = good == first ? second : first;
    for (int i = 0; i < SPOILT_ROWS; i++) ids[i] = i ? 100 + i : 65;
    if (place != ALONE) CHECK_EQ(quern_sequence_set(spoilt, ids, SPOILT_ROWS, QUERN_LAST), 0);
    if (place == AFTER) {
        logits_last(e, spoilt);
        CHECK_EQ(quern_sample_begin(spoilt, &(struct sampler_params){0}), OK);
        CHECK_EQ(quern_sample(spoilt), ERR_NONFINITE);
        quern_sequence_free(spoilt);
    }
    ids[0] = 100;
    CHECK_EQ(quern_sequence_set(good, ids, GOOD_ROWS, QUERN_LAST), 0);
    memcpy(out, logits_last(e, good), SPOILT_VOCAB * sizeof *out);
    quern_free(e);
}

/* M18, M19: it affects only its own conversation. */
static void nan_stays_alone(void)
{
    float alone[SPOILT_VOCAB], beside[SPOILT_VOCAB];
    struct file f = file_read(built_fixtures("/bad"), "good-M18a.gguf");
    logits_at(ALONE, &f, alone);
    for (int i = 0; i < SPOILT_VOCAB; i++) CHECK(alone[i] - alone[i] == 0);
    for (enum where place = BEFORE; place <= AFTER; place++) {
        logits_at(place, &f, beside);
        CHECK(same_bits(alone, beside, SPOILT_VOCAB));
    }
    file_free(&f);
}

/* M19: a norm that is not finite is detected at the first token. */
static void spoilt_norms(void)
{
    for (char which = 'b'; which <= 'e'; which++) {
        char name[] = "good-M19?.gguf";
        name[8] = which;
        struct file f = file_read(built_fixtures("/bad"), name);
        struct quern_engine *e = engine_load(&f, (struct quern_options){0}, SIZE_MAX);
        struct quern_sequence *s = sequence_new(e);
        CHECK_EQ(quern_sequence_set(s, (const int32_t[]){9, 8}, 2, QUERN_LAST), 0);
        logits_last(e, s);
        CHECK_EQ(quern_sample_begin(s, &(struct sampler_params){0}), OK);
        CHECK_EQ(quern_sample(s), ERR_NONFINITE);
        quern_free(e);
        file_free(&f);
    }
}

/* M18: NaN in one weight leads to an error or to a normal token. */
static void damaged_weights(void)
{
    struct reference r = reference_new("nano.F16");
    uint64_t seed = 8;
    int words = 0;
    for (int i = 0; i < 40; i++) {
        /* inside the tensors, at an f16 */
        size_t at = r.file.size / 4 * 3 / 2 * 2 + 2 * (size_t)random_below(&seed, (int)(r.file.size / 8));
        uint8_t saved[2];
        memcpy(saved, r.file.data + at, 2);
        memcpy(r.file.data + at, "\xFF\x7F", 2);
        struct quern_engine *e = engine_load(&r.file, (struct quern_options){0}, SIZE_MAX);
        struct quern_sequence *s = sequence_new(e);
        CHECK_EQ(quern_sequence_set(s, r.ids, 20, QUERN_LAST), 0);
        logits_last(e, s);
        CHECK_EQ(quern_sample_begin(s, &(struct sampler_params){.temperature = 1}), OK);
        int id = quern_sample(s);
        CHECK((id >= 0 && id < GOLDEN_VOCAB) || (id == ERR_NONFINITE && quern_error(e)->code == ERR_NONFINITE));
        words += id == ERR_NONFINITE;
        quern_free(e);
        memcpy(r.file.data + at, saved, 2);
    }
    CHECK(words > 0);
    reference_free(&r);
}

static const struct check tests[] = {
    {"prefix_reuse", prefix_reuse},
    {"regeneration", regeneration},
    {"forks", forks},
    {"budget", budget},
    {"leaving_a_step", leaving_a_step},
    {"left_by_all", left_by_all},
    {"bad_calls", bad_calls},
    {"before_loading", before_loading},
    {"context", context},
    {"pages_run_out", pages_run_out},
    {"padding_never_sampled", padding_never_sampled},
    {"same_seed_same_text", same_seed_same_text},
    {"demo_replies", demo_replies},
    {"equal_logits", equal_logits},
    {"end_tokens", end_tokens},
    {"damaged_weights", damaged_weights},
    {"nan_stays_alone", nan_stays_alone},
    {"spoilt_norms", spoilt_norms},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
