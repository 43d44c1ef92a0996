/* SPDX-License-Identifier: MIT
 *
 * Memory: any failing allocation gives an error about memory and nothing else; the memory that loading takes beside the
 * weights; and what a conversation gives back. LeakSanitizer checks the rest.
 */
#include "engine/saved.h"
#include "session.h"

enum { HEADROOM_MB = 16, DECIDED_MB = 8, GROWTH_PERCENT = 7 };

static bool about_memory(int status)
{
    return status == ERR_MEM_LOAD || status == ERR_MEM_KV || status == ERR_MEM_PLAN;
}

/* --- every allocation fails ----------------------------------------------------------------------------- */

/* The parts of one attempt after loading, in order. Each returns false when memory was short. */
static bool try_tokenize(struct quern_engine *e)
{
    const char *text = "the then <|im_start|> the end";
    int32_t ids[64];
    int64_t n = quern_tokenize(e, (struct bytes){(const uint8_t *)text, strlen(text)}, QUERN_CHAT, 0, ids, 64);
    CHECK(n > 0 || about_memory((int)n));
    return n > 0;
}

static bool try_sequence(struct quern_engine *e, struct quern_sequence **s)
{
    if (!*s) *s = quern_sequence_new(e, 0, 0);
    return *s != NULL;
}

static bool try_reply(struct quern_engine *e, struct quern_sequence *s, float *logits)
{
    const int32_t prompt[] = {5, 6, 7};
    const struct logit_bias bias = {3, 1.5f};
    const struct sampler_params params = {.temperature = 1, .repeat_penalty = 1.2f, .bias = &bias, .n_bias = 1};
    int set = quern_sequence_set(s, prompt, 3, QUERN_ALL);
    CHECK(set == 0 || about_memory(set));
    if (set) return false;
    while (quern_sequence_pending(s) > 0) CHECK_EQ(quern_step(e, 0), OK); /* computing takes no memory */
    logits_keep(s, quern_vocab_size(e), logits);
    int status = quern_sample_begin(s, &params);
    CHECK(status == OK || about_memory(status));
    if (status) return false;
    CHECK(quern_sample(s) >= 0);
    return quern_stream(s, 'a').data != NULL;
}

/* Two replies side by side, of conversations that are saved afterwards. */
static bool try_company(struct quern_engine *e, struct quern_sequence **s)
{
    const struct quern_reply reply = {.sampling = {.temperature = 1, .repeat_penalty = 1.2f}, .max_tokens = 2};
    int left = 2, n;
    for (int i = 0; i < 2; i++) {
        uint8_t header[SAVED_HEADER];
        if (!s[i]) s[i] = quern_sequence_new(e, 0, 0);
        int status = s[i] ? quern_sequence_set(s[i], (int32_t[]){5, 6, 7 + i}, 3, QUERN_HELD) : ERR_MEM_LOAD;
        if (status >= 0) status = saved_open(s[i], (struct bytes){(const uint8_t *)"two", 3}, header);
        if (!status) status = quern_reply_begin(s[i], &reply);
        CHECK(status == OK || about_memory(status));
        if (status) return false;
    }
    for (int calls = 0; left; calls++) { /* computing takes no memory */
        CHECK(calls < 100);
        CHECK_EQ(quern_step(e, 0), OK);
        const struct quern_event *events = quern_events(e, &n);
        for (int i = 0; i < n; i++) {
            left -= events[i].type == QUERN_END;
            CHECK(events[i].type != QUERN_END || events[i].end != QUERN_ERROR);
        }
    }
    return true;
}

/* Runs everything, with the at-th allocation after quern_new failing, and all later ones if `lasting`. Returns whether
 * any failed. */
static bool attempt(const struct file *f, uint64_t at, bool lasting, const float *expected)
{
    struct quern_engine *e = quern_new(&(struct quern_options){.context_size = 64, .chunk = 4});
    struct quern_sequence *s = NULL, *two[2] = {NULL, NULL};
    float *logits = calloc(3 * GOLDEN_VOCAB, sizeof *logits);
    CHECK(e && logits);
    e->mem.fail_at = at ? e->mem.n_allocs + at : 0;
    e->mem.fail_after = lasting;
    int status = engine_feed(e, f, 1000);
    CHECK(status == OK || (about_memory(status) && quern_error(e)->message[0]));
    bool whole = status == OK;
    for (int tries = 0; status == OK && tries < 2; tries++) { /* what failed once succeeds the next time */
        bool over = e->mem.fail_at && e->mem.n_allocs >= e->mem.fail_at && !lasting;
        bool worked = try_tokenize(e) && try_sequence(e, &s) && try_reply(e, s, logits) && try_company(e, two);
        CHECK(worked || !over);
        whole &= worked;
        if (tries == 1 && worked) CHECK(same_bits(logits, expected, 3 * quern_vocab_size(e)));
    }
    bool failed = e->mem.fail_at && e->mem.n_allocs >= e->mem.fail_at;
    CHECK(whole || failed);
    quern_free(e);
    free(logits);
    return failed;
}

static void fail_everywhere(const struct file *f, int at_least)
{
    struct quern_engine *e = engine_load(f, (struct quern_options){0}, SIZE_MAX);
    float *expected = logits_new(3, GOLDEN_VOCAB);
    logits_all(e, sequence_new(e), (const int32_t[]){5, 6, 7}, 3, expected);
    quern_free(e);
    uint64_t at = 1;
    while (attempt(f, at, false, expected)) {
        CHECK(attempt(f, at, true, expected));
        CHECK(!attempt(f, 0, false, expected)); /* the next attempt is unaffected */
        at++;
    }
    printf("# %llu allocations\n", (unsigned long long)at - 1);
    CHECK(at > (uint64_t)at_least);
    free(expected);
}

static void allocations_fail(void)
{
    struct file small = file_read(built_fixtures(""), "minimal.gguf"),
                larger = file_read(built_fixtures(""), "long.gguf");
    fail_everywhere(&small, 40);
    fail_everywhere(&larger, 60);
    file_free(&small);
    file_free(&larger);
}

/* quern_new itself under every limit: returns an engine or NULL. */
static void limits_of_new(void)
{
    int made = 0, refused = 0;
    for (uint64_t limit = 64; limit < 65536; limit += 64) {
        struct quern_engine *e = quern_new(&(struct quern_options){.memory_limit = limit, .threads = 2});
        uint64_t used = 0, peak = 0;
        if (e) quern_memory(e, &used, &peak);
        CHECK(used <= limit && peak <= limit);
        made += e != NULL;
        refused += e == NULL;
        quern_free(e);
    }
    CHECK(made > 0 && refused > 0);
}

/* --- loading ------------------------------------------------------------------------------------------------ */

/* Beside the weights, loading a file of 60 MB never takes much memory. */
static void peak_of_loading(void)
{
    const size_t chunks[] = {16384, 1 << 20, 4 << 20};
    struct file f = file_read(built_fixtures(""), "big-q8_0.gguf");
    for (int i = 0; i < 3; i++) {
        struct quern_engine *e =
            engine_load(&f, (struct quern_options){.context_size = 256, .file_size = f.size}, chunks[i]);
        uint64_t used, peak;
        quern_memory(e, &used, &peak);
        printf("# file %.1f MB, in use %.1f MB, at most %.1f MB\n", (double)f.size / 1048576, (double)used / 1048576,
               (double)peak / 1048576);
        CHECK(peak - used <= HEADROOM_MB << 20);
        CHECK(used < f.size / 100 * (100 + GROWTH_PERCENT) + (HEADROOM_MB << 20));
        quern_free(e);
    }
    file_free(&f);
}

/* A model that cannot fit is refused before its weights arrive. */
static void refused_early(void)
{
    struct file f = file_read(built_fixtures(""), "big-q8_0.gguf");
    for (uint64_t limit = 8; limit <= 56; limit += 8) {
        struct quern_engine *e = quern_new(&(struct quern_options){.memory_limit = limit << 20, .file_size = f.size});
        size_t fed = 0;
        while (fed < f.size && quern_feed(e, f.data + fed, 65536) == OK) fed += 65536;
        uint64_t used, peak;
        quern_memory(e, &used, &peak);
        CHECK(about_memory(quern_error(e)->code));
        CHECK(fed <= DECIDED_MB << 20);
        CHECK(peak <= limit << 20);
        quern_free(e);
    }
    file_free(&f);
}

/* --- what a conversation gives back --------------------------------------------------------------------------- */

static void one_conversation(struct quern_engine *e, int n)
{
    struct quern_sequence *s = sequence_new(e);
    int32_t ids[40];
    for (int i = 0; i < 40; i++) ids[i] = (i * 7 + n) % 256;
    CHECK(quern_sequence_set(s, ids, 40, QUERN_LAST) >= 0);
    logits_last(e, s);
    CHECK_EQ(quern_sample_begin(s, &(struct sampler_params){.temperature = 1, .seed = (uint64_t)n}), OK);
    for (int i = 0; i < 5; i++) {
        int id = quern_sample(s);
        quern_stream(s, id);
        CHECK_EQ(quern_sequence_push(s, id), OK);
        logits_last(e, s);
    }
    quern_stream(s, -1);
    quern_sequence_free(s);
}

static void conversations_give_back(void)
{
    struct file f = file_read(built_fixtures(""), "long.gguf");
    struct quern_engine *e = engine_load(&f, (struct quern_options){.context_size = 100}, SIZE_MAX);
    uint64_t before, after, peak, first_peak = 0;
    quern_memory(e, &before, &peak);
    for (int n = 0; n < 100; n++) {
        one_conversation(e, n);
        quern_memory(e, &after, &peak);
        CHECK_EQ(after, before);
        if (n == 0) first_peak = peak;
        CHECK_EQ(peak, first_peak);
    }
    sequence_new(e); /* quern_free also frees open sequences */
    quern_free(e);
    file_free(&f);
}

static const struct check tests[] = {
    {"allocations_fail", allocations_fail}, {"limits_of_new", limits_of_new},
    {"peak_of_loading", peak_of_loading},   {"refused_early", refused_early},
    {"conversations_give_back", conversations_give_back},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
