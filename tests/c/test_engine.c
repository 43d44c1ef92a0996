/* SPDX-License-Identifier: MIT
 *
 * Models: the golden logits within their bar, and the same bits however a file is fed and its tokens are computed:
 * scalar or SIMD, any number of threads, any chunks, alone or beside others, with pages in any order, NaN in all unused
 * pages, and after an abort from another thread.
 */
#include "base/hash.h"
#include "session.h"

#include <math.h>
#include <pthread.h>

/* ThreadSanitizer makes everything 10 times slower and looks for races, not for wrong numbers. */
#ifdef __SANITIZE_THREAD__
enum { FILES = 1, ROWS = 70 };
#else
enum { FILES = GOLDEN_FILES, ROWS = 72 };
#endif

/* --- the bar of tests/fixtures/golden/README.md ----------------------------------------------------------- */

/* The number after "key": in bar.json. */
static double bar_number(const char *key)
{
    struct file f = file_read(golden_folder(), "bar.json");
    char *text = realloc(f.data, f.size + 1), quoted_key[64];
    CHECK(text != NULL);
    text[f.size] = 0;
    snprintf(quoted_key, sizeof quoted_key, "\"%.50s\":", key);
    const char *at = strstr(text, quoted_key);
    CHECK(at != NULL);
    double value = strtod(at + strlen(quoted_key), NULL);
    free(text);
    return value;
}

static void log_softmax(const float *x, double *out)
{
    double max = -INFINITY, sum = 0;
    for (int i = 0; i < GOLDEN_VOCAB; i++) max = fmax(max, (double)x[i]);
    for (int i = 0; i < GOLDEN_VOCAB; i++) sum += exp((double)x[i] - max);
    for (int i = 0; i < GOLDEN_VOCAB; i++) out[i] = (double)x[i] - max - log(sum);
}

static double divergence(const float *exact, const float *ours)
{
    double p[GOLDEN_VOCAB], q[GOLDEN_VOCAB], kl = 0;
    log_softmax(exact, p);
    log_softmax(ours, q);
    for (int i = 0; i < GOLDEN_VOCAB; i++) kl += exp(p[i]) * (p[i] - q[i]);
    return kl;
}

static int top_of(const float *x)
{
    int best = 0;
    for (int i = 1; i < GOLDEN_VOCAB; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

/* The same top token, or a margin below twice the row's largest error. */
static bool top_agrees(const float *exact, const float *ours)
{
    int top = top_of(exact);
    double second = -INFINITY, error = 0;
    if (top_of(ours) == top) return true;
    for (int i = 0; i < GOLDEN_VOCAB; i++) {
        if (i != top) second = fmax(second, (double)exact[i]);
        error = fmax(error, fabs((double)exact[i] - (double)ours[i]));
    }
    return (double)exact[top] - second < 2 * error;
}

/* The limit of the mean divergence from exact logits. */
static double bar_of(const char *name, enum quern_kv kv)
{
    double bar = fmax(bar_number("factor") * bar_number(name), bar_number(kv == QUERN_KV_F32 ? "f32" : "f16"));
    return kv == QUERN_KV_Q8 ? bar + bar_number("q8") : bar;
}

static void check_golden(const char *name, enum quern_kv kv)
{
    static const char *const kv_names[] = {[QUERN_KV_F16] = "f16", [QUERN_KV_F32] = "f32", [QUERN_KV_Q8] = "q8"};
    struct file model = golden_file(name, "gguf"), wanted = golden_file(name, "exact.f32");
    CHECK_EQ(wanted.size, GOLDEN_ROWS * GOLDEN_VOCAB * sizeof(float));
    const float *exact = (const float *)(void *)wanted.data;
    float *ours = logits_new(GOLDEN_ROWS, GOLDEN_VOCAB);
    int32_t ids[GOLDEN_ROWS];
    golden_tokens(ids);
    struct quern_engine *e = engine_load(&model, (struct quern_options){.kv = kv}, SIZE_MAX);
    logits_all(e, sequence_new(e), ids, GOLDEN_ROWS, ours);
    double kl = 0;
    for (int i = 0; i < GOLDEN_ROWS * GOLDEN_VOCAB; i += GOLDEN_VOCAB) {
        kl += divergence(exact + i, ours + i) / GOLDEN_ROWS;
        CHECK(top_agrees(exact + i, ours + i));
    }
    double bar = bar_of(name, kv);
    printf("# %-15s kv %s: KL %.3e, bar %.3e\n", name, kv_names[kv], kl, bar);
    CHECK(kl >= -1e-12 && kl <= bar);
    quern_free(e);
    free(ours);
    file_free(&model);
    file_free(&wanted);
}

static void golden(void)
{
    for (int i = 0; i < FILES; i++) {
        check_golden(golden_names[i], QUERN_KV_F16);
        if ((size_t)i % check_every(2)) continue;
        check_golden(golden_names[i], QUERN_KV_F32);
        check_golden(golden_names[i], QUERN_KV_Q8);
    }
}

/* --- the same bits ------------------------------------------------------------------------------------------ */

/* Checks that a file's logits with other options or chunks equal those of a plain engine. */
static void check_same(const struct reference *r, struct quern_options options, size_t feed, int rows)
{
    struct quern_engine *e = engine_load(&r->file, options, feed);
    float *all = logits_new(rows, GOLDEN_VOCAB);
    CHECK(!strcmp(e->be->ops->name(e->be), options.scalar ? "scalar" : "simd"));
    logits_all(e, sequence_new(e), r->ids, rows, all);
    CHECK(same_bits(all, r->logits, rows * GOLDEN_VOCAB));
    check_pages(e);
    quern_free(e);
    free(all);
}

static void same_bits_everywhere(void)
{
    const struct quern_options ways[] = {
        {.scalar = true},
        {.scalar = true, .threads = 3, .chunk = 5},
        {.chunk = 1},
        {.threads = 2, .chunk = 7},
        {.threads = 4, .chunk = 64},
        {.threads = 4, .chunk = 1},
        {.chunk = 1000, .context_size = ROWS},
    };
    for (int i = 0; i < FILES; i++) {
        struct reference r = reference_new(golden_names[i]);
        for (size_t w = (size_t)i % check_every(4); w < sizeof ways / sizeof *ways; w += check_every(4))
            check_same(&r, ways[w], SIZE_MAX, ROWS);
        reference_free(&r);
    }
}

/* The same for the other types of keys and values. */
static void same_bits_of_every_cache(void)
{
    const enum quern_kv types[] = {QUERN_KV_F32, QUERN_KV_Q8};
    const char *const names[] = {"nano.Q4_K_M", "duo.F32"};
    for (int i = 0; i < 4; i += (int)check_every(3)) {
        enum quern_kv kv = types[i % 2];
        struct reference r = reference_with(names[i / 2], kv);
        check_same(&r, (struct quern_options){.kv = kv, .scalar = true, .chunk = 5}, SIZE_MAX, ROWS);
        for (int threads = 2; threads <= 8; threads = threads == 4 ? 8 : threads + (int)check_length(threads, 1))
            check_same(&r, (struct quern_options){.kv = kv, .threads = threads, .chunk = 2 * threads - 3}, SIZE_MAX,
                       ROWS);
        reference_free(&r);
    }
}

/* A context longer than a span of 512 positions, whose softmaxes are merged. */
static void check_long_context(enum quern_kv kv)
{
    enum { LONG = 1100, PIECE = 25 };
    struct file f = file_read(built_fixtures(""), "long.gguf");
    const struct quern_options ways[] = {
        {.kv = kv, .chunk = 128},
        {.kv = kv, .scalar = true, .chunk = 64},
        {.kv = kv, .threads = 3, .chunk = 100},
        {.kv = kv, .chunk = 1},
    };
    int32_t ids[LONG];
    uint64_t seed = 5;
    float *first = NULL;
    for (int i = 0; i < LONG; i++) ids[i] = random_below(&seed, 256);
    for (int w = 0; w < 4; w++) {
        struct quern_engine *e = engine_load(&f, ways[w], SIZE_MAX);
        struct quern_sequence *s = sequence_new(e);
        int vocab = quern_vocab_size(e);
        if (w == 0) first = logits_new(PIECE, vocab);
        CHECK_EQ(quern_sequence_set(s, ids, LONG - PIECE + 1, QUERN_LAST), 0);
        for (int i = 0; i < PIECE; i++) {
            const float *row = logits_last(e, s);
            if (w == 0) memcpy(first + i * vocab, row, (size_t)vocab * sizeof *row);
            CHECK(same_bits(first + i * vocab, row, vocab));
            if (i + 1 < PIECE) CHECK_EQ(quern_sequence_push(s, ids[LONG - PIECE + 1 + i]), OK);
        }
        quern_free(e);
    }
    free(first);
    file_free(&f);
}

static void same_bits_in_long_contexts(void)
{
    check_long_context(QUERN_KV_F16);
    check_long_context(QUERN_KV_F32);
}

/* Heads of 16 columns have no block of 32 columns. */
static void q8_needs_whole_blocks(void)
{
    struct file f = file_read(built_fixtures(""), "long.gguf");
    struct quern_engine *e = quern_new(&(struct quern_options){.kv = QUERN_KV_Q8});
    CHECK_EQ(quern_feed(e, f.data, f.size), ERR_PARAM);
    CHECK(!strcmp(quern_error(e)->rule, "kv"));
    quern_free(e);
    file_free(&f);
}

static void same_bits_from_any_chunks(void)
{
    const size_t chunks[] = {1, 7, 4096, 65536};
    for (int i = 0; i < GOLDEN_FEW; i += 3) {
        struct reference r = reference_new(golden_few[i]);
        for (int c = 0; c < 4; c++)
            if (r.file.size < 1 << 20 || chunks[c] > 4096)
                check_same(&r, (struct quern_options){.file_size = r.file.size}, chunks[c], 9);
        reference_free(&r);
    }
}

/* --- beside others -------------------------------------------------------------------------------------------- */

/* One sequence is prefilled in chunks while the other decodes: every logit of both is the same as alone. */
static void beside_another(void)
{
    enum { DECODED = 12 };
    for (int i = 0; i < GOLDEN_FEW; i += GOLDEN_FEW / 2 + 1) {
        struct reference r = reference_new(golden_few[i]);
        struct quern_engine *e = engine_load(&r.file, (struct quern_options){.chunk = 16, .threads = 2}, SIZE_MAX);
        struct quern_sequence *a = sequence_new(e), *b = sequence_new(e);
        float *all = logits_new(ROWS, GOLDEN_VOCAB);
        int kept = 0;
        CHECK_EQ(quern_sequence_set(b, r.ids, 40, QUERN_LAST), 0);
        check_row(&r, 39, logits_last(e, b));
        CHECK_EQ(quern_sequence_set(a, r.ids, ROWS, QUERN_ALL), 0);
        for (int n = 40; quern_sequence_pending(a) > 0 || n < 40 + DECODED; n++) {
            if (n < 40 + DECODED) CHECK_EQ(quern_sequence_push(b, r.ids[n]), OK);
            CHECK_EQ(quern_step(e, 0), OK);
            kept += logits_keep(a, GOLDEN_VOCAB, all);
            if (n < 40 + DECODED) check_row(&r, n, logits_last(e, b));
            disturb_pages(e, (uint64_t)n);
            check_pages(e);
        }
        CHECK_EQ(kept, ROWS);
        CHECK(same_bits(all, r.logits, ROWS * GOLDEN_VOCAB));
        quern_free(e);
        free(all);
        reference_free(&r);
    }
}

/* Two conversations with different texts, token by token, over pages in random order. */
static void interleaved(void)
{
    for (int i = 0; i < GOLDEN_FEW; i += 3) {
        struct reference r = reference_new(golden_few[i]);
        struct quern_engine *e = engine_load(&r.file, (struct quern_options){.context_size = 128}, SIZE_MAX);
        struct quern_sequence *a = sequence_new(e), *b = sequence_new(e);
        float *other = logits_new(ROWS, GOLDEN_VOCAB);
        logits_all(e, b, r.ids + 50, ROWS, other);
        disturb_pages(e, 3);
        CHECK_EQ(quern_sequence_set(a, r.ids, 1, QUERN_LAST), 0);
        CHECK_EQ(quern_sequence_set(b, r.ids + 50, 1, QUERN_ALL), 0);
        for (int n = 0;; n++) {
            check_row(&r, n, logits_last(e, a));
            CHECK(same_bits(other + n * GOLDEN_VOCAB, logits_last(e, b), GOLDEN_VOCAB));
            if (n + 1 == ROWS - 5) break;
            CHECK_EQ(quern_sequence_push(a, r.ids[n + 1]), OK);
            CHECK_EQ(quern_sequence_push(b, r.ids[50 + n + 1]), OK);
            disturb_pages(e, (uint64_t)n + 7);
        }
        quern_free(e);
        free(other);
        reference_free(&r);
    }
}

/* More conversations than a chunk has rows, of different lengths, ending at different steps. */
static void many_at_once(void)
{
    enum { TALKS = 9 };
    struct reference r = reference_new("nano.Q8_0");
    struct quern_engine *e =
        engine_load(&r.file, (struct quern_options){.chunk = 8, .context_size = 1024, .threads = 3}, SIZE_MAX);
    struct quern_sequence *s[TALKS];
    float *own[TALKS];
    for (int k = 0; k < TALKS; k++) {
        s[k] = sequence_new(e);
        own[k] = logits_new(1 + 7 * k, GOLDEN_VOCAB);
        CHECK_EQ(quern_sequence_set(s[k], r.ids, 1 + 7 * k, QUERN_ALL), 0);
    }
    for (int step = 0, left = 1; left > 0; step++) {
        CHECK_EQ(quern_step(e, 0), OK);
        left = 0;
        for (int k = 0; k < TALKS; k++) left += quern_sequence_pending(s[k]), logits_keep(s[k], GOLDEN_VOCAB, own[k]);
        disturb_pages(e, (uint64_t)step);
        CHECK(step < 1000);
    }
    for (int k = 0; k < TALKS; k++) {
        CHECK(same_bits(own[k], r.logits, (1 + 7 * k) * GOLDEN_VOCAB));
        free(own[k]);
    }
    quern_free(e);
    reference_free(&r);
}

/* Several prompts that end in one step: each gets the row of its own last token. */
static void last_rows_of_many(void)
{
    enum { TALKS = 7 };
    struct reference r = reference_new("nano.F32");
    for (int chunk = 5; chunk <= 80; chunk += 25) {
        struct quern_engine *e =
            engine_load(&r.file, (struct quern_options){.chunk = chunk, .context_size = 1024}, SIZE_MAX);
        struct quern_sequence *s[TALKS];
        int ended = 0, first, n;
        for (int k = 0; k < TALKS; k++) {
            s[k] = sequence_new(e);
            CHECK_EQ(quern_sequence_set(s[k], r.ids, 3 + 5 * k, QUERN_LAST), 0);
        }
        for (int step = 0; ended < TALKS; step++) {
            CHECK(step < 100);
            CHECK_EQ(quern_step(e, 0), OK);
            for (int k = 0; k < TALKS; k++) {
                const float *row = quern_logits(s[k], &first, &n);
                if (row) check_row(&r, 2 + 5 * k, row);
                CHECK(n == 0 || (n == 1 && first == 2 + 5 * k && quern_sequence_pending(s[k]) == 0));
                ended += n;
            }
        }
        quern_free(e);
    }
    reference_free(&r);
}

/* --- stopping ------------------------------------------------------------------------------------------------- */

struct caller {
    struct quern_control *control;
    int32_t quit;
};

/* Sets the attention word as soon as a layer has been computed. */
static void *call_soon(void *arg)
{
    struct caller *c = arg;
    int32_t before = __atomic_load_n(&c->control->heartbeat, __ATOMIC_RELAXED);
    while (!__atomic_load_n(&c->quit, __ATOMIC_RELAXED)) {
        if (__atomic_load_n(&c->control->heartbeat, __ATOMIC_RELAXED) == before) continue;
        __atomic_store_n(&c->control->attention, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    return NULL;
}

/* Computes from the start again and again, until the word stops a step. Returns the length at the beginning of that
 * step. */
static int step_until_called(struct quern_engine *e, struct quern_sequence *s, const int32_t *ids)
{
    int status = OK, length = 0;
    double begin = clock_ms(CLOCK_MONOTONIC);
    while (status == OK && clock_ms(CLOCK_MONOTONIC) - begin < 20000) {
        if (quern_sequence_pending(s) == 0) CHECK_EQ(quern_sequence_set(s, ids, GOLDEN_ROWS, QUERN_ALL), 0);
        length = quern_sequence_length(s);
        status = quern_step(e, 0);
    }
    CHECK_EQ(status, 1);
    CHECK_EQ(quern_sequence_length(s), length);
    return length;
}

/* While the word is set, each call computes one layer; nothing is lost. */
static void attention_from_another_thread(void)
{
    struct reference r = reference_new("duo.F32");
    struct quern_engine *e = engine_load(&r.file, (struct quern_options){.chunk = 32, .threads = 2}, SIZE_MAX);
    struct quern_sequence *s = sequence_new(e);
    struct caller c = {.control = quern_control(e)};
    float *all = logits_new(GOLDEN_ROWS, GOLDEN_VOCAB);
    pthread_t thread;
    int status = 1;
    CHECK_EQ(pthread_create(&thread, NULL, call_soon, &c), 0);
    int length = step_until_called(e, s, r.ids);
    __atomic_store_n(&c.quit, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    while (status == 1) {
        int32_t layers = c.control->heartbeat;
        status = quern_step(e, 0);
        CHECK_EQ(c.control->heartbeat, layers + 1);
        check_pages(e);
    }
    CHECK_EQ(status, OK);
    CHECK_EQ(quern_sequence_length(s), length + 32);
    logits_keep(s, GOLDEN_VOCAB, all);
    __atomic_store_n(&c.control->attention, 0, __ATOMIC_RELAXED);
    while (quern_sequence_pending(s) > 0) {
        CHECK_EQ(quern_step(e, 0), OK);
        logits_keep(s, GOLDEN_VOCAB, all);
    }
    CHECK(same_bits(all + length * GOLDEN_VOCAB, reference_row(&r, length), (GOLDEN_ROWS - length) * GOLDEN_VOCAB));
    quern_free(e);
    free(all);
    reference_free(&r);
}

/* --- the warm-up ---------------------------------------------------------------------------------------- */

enum warmth { COLD, BEGUN, WHOLE, STARVED, WARMTHS };

/* A loaded engine: not warmed, warmed for one slice, completely, or without memory for warming. */
static struct quern_engine *load_warming(const struct file *f, struct quern_options options, enum warmth warmth)
{
    struct quern_engine *e = quern_new(&options);
    size_t most = f->size - 1;
    int slices = 0;
    CHECK(e != NULL);
    CHECK(quern_warm(e)); /* there will be something to warm, but nothing is known yet */
    CHECK_EQ(quern_feed(e, f->data, most), OK);
    CHECK_EQ(quern_control(e)->heartbeat, 1); /* every feed updates the heartbeat */
    if (warmth == STARVED) e->mem.fail_at = e->mem.n_allocs + 1;
    if (warmth == BEGUN) CHECK(quern_warm(e));
    else if (warmth != COLD)
        while (quern_warm(e)) slices++;
    CHECK((slices > 0) == (warmth == WHOLE));
    CHECK_EQ(quern_feed(e, f->data + most, f->size - most), OK);
    CHECK_EQ(quern_finish(e), OK);
    CHECK(!quern_warm(e)); /* pages may belong to a conversation now */
    return e;
}

/* Warming changes no bit, and gives its memory back. */
static void check_warmed(const struct reference *r, struct quern_options options)
{
    uint64_t used[WARMTHS], peak;
    float *all = logits_new(ROWS, GOLDEN_VOCAB);
    for (int warmth = 0; warmth < WARMTHS; warmth++) {
        struct quern_engine *e = load_warming(&r->file, options, (enum warmth)warmth);
        quern_memory(e, &used[warmth], &peak);
        logits_all(e, sequence_new(e), r->ids, ROWS, all);
        CHECK(same_bits(all, r->logits, ROWS * GOLDEN_VOCAB));
        quern_free(e);
    }
    CHECK(used[WHOLE] == used[COLD] && used[STARVED] == used[COLD]);
    free(all);
}

static void check_warmed_few(struct quern_options options)
{
    for (int i = (int)check_length(4, 0); i < GOLDEN_FEW; i += (int)check_length(GOLDEN_FEW, 3)) {
        struct reference r = reference_new(golden_few[i]);
        check_warmed(&r, options);
        reference_free(&r);
    }
}

static void warmed_up(void)
{
    check_warmed_few((struct quern_options){.threads = 1});
    check_warmed_few((struct quern_options){.scalar = true});
}

static void warmed_up_by_threads(void) { check_warmed_few((struct quern_options){.threads = 3, .chunk = 1}); }

/* --- the hashes of stored chunks ------------------------------------------------------------------------- */

/* Whatever the threads do, each chunk gets its hash, also the last one, and nothing is written after it. */
static void hashes_of_chunks(void)
{
    enum { SIZE = 10000, CHUNK = 700, MOST = 16 };
    uint8_t bytes[SIZE], hashes[MOST][HASH_BYTES], unused[MOST][HASH_BYTES], expected[HASH_BYTES],
        none[HASH_BYTES] = {0};
    for (int i = 0; i < SIZE; i++) bytes[i] = (uint8_t)(i * i >> 3);
    for (int threads = 1; threads <= 4; threads++) {
        struct quern_engine *e = quern_new(&(struct quern_options){.threads = threads});
        quern_hash_end(e); /* the hashes of no bytes */
        for (size_t size = 0; size <= SIZE; size += 50) {
            quern_hash_begin(e, bytes, SIZE, CHUNK, unused[0]); /* ended before the next begin */
            memset(hashes, 0, sizeof hashes);
            quern_hash_begin(e, bytes, size, CHUNK, hashes[0]);
            quern_hash_end(e);
            for (size_t i = 0; i < MOST; i++) {
                size_t from = i * CHUNK, n = from >= size ? 0 : size - from < CHUNK ? size - from : CHUNK;
                if (n) hash128(bytes + from, n, expected);
                CHECK(memcmp(hashes[i], n ? expected : none, HASH_BYTES) == 0);
            }
        }
        quern_free(e);
    }
}

static const struct check tests[] = {
    {"golden", golden},
    {"same_bits_everywhere", same_bits_everywhere},
    {"same_bits_of_every_cache", same_bits_of_every_cache},
    {"q8_needs_whole_blocks", q8_needs_whole_blocks},
    {"same_bits_in_long_contexts", same_bits_in_long_contexts},
    {"same_bits_from_any_chunks", same_bits_from_any_chunks},
    {"beside_another", beside_another},
    {"interleaved", interleaved},
    {"many_at_once", many_at_once},
    {"last_rows_of_many", last_rows_of_many},
    {"attention_from_another_thread", attention_from_another_thread},
    {"warmed_up", warmed_up},
    {"warmed_up_by_threads", warmed_up_by_threads},
    {"hashes_of_chunks", hashes_of_chunks},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
