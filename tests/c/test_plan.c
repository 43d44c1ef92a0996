/* SPDX-License-Identifier: MIT
 *
 * The memory plan (Q01, Q06, R9): the planned memory is what is taken; what exceeds the limit is refused with the
 * header; and a context that the refusal suggests does fit.
 */
#include "session.h"

/* PERCENT of tolerance; SMALL: bytes, for models of a few kilobytes */
enum { PERCENT = 3, SMALL = 16384, PIECE = 65536 };

/* Loads, and opens as many conversations as compute side by side, each with a reply that uses everything of a sampler.
 * Returns the peak. */
static uint64_t real_peak(const struct file *f, struct quern_options options, struct quern_plan *plan)
{
    struct quern_engine *e = engine_load(f, options, 1 << 20);
    struct quern_sequence *s = sequence_new(e);
    const struct sampler_params params = {.temperature = 1, .repeat_penalty = 1.5f, .presence_penalty = 1};
    int32_t ids[64];
    for (int i = 0; i < 64; i++) ids[i] = 5 + i;
    /* a whole chunk, or less if it takes sanitizers seconds */
    CHECK(quern_sequence_set(s, ids, f->size < 8 << 20 ? 64 : 8, QUERN_ALL) == 0);
    while (quern_sequence_pending(s) > 0) CHECK_EQ(quern_step(e, 0), OK);
    CHECK_EQ(quern_sample_begin(s, &params), OK);
    CHECK(quern_sample(s) >= 0);
    for (int i = 1; i < e->options.parallel; i++) {
        s = sequence_new(e);
        CHECK(quern_sequence_set(s, ids, 1, QUERN_LAST) >= 0);
        CHECK_EQ(quern_sample_begin(s, &params), OK);
    }
    uint64_t used, peak;
    quern_memory(e, &used, &peak);
    *plan = *quern_plan(e);
    CHECK_EQ(plan->total, plan->weights + plan->cache + plan->scratch);
    CHECK_EQ(plan->context_size, e->context_size);
    quern_free(e);
    return peak;
}

static void check_plan(const char *name, const struct file *f, struct quern_options options)
{
    struct quern_plan plan;
    uint64_t peak = real_peak(f, options, &plan);
    double off = 100.0 * ((double)plan.total - (double)peak) / (double)peak;
    printf("# %-14s context %4d: planned %9llu, peak %9llu (%+.2f %%)\n", name, plan.context_size,
           (unsigned long long)plan.total, (unsigned long long)peak, off);
    CHECK(plan.total + peak / 100 * PERCENT + SMALL >= peak);
    CHECK(plan.total <= peak + peak / 100 * PERCENT + SMALL);
}

static void equals_the_peak(void)
{
    const struct quern_options variants[] = {
        {0},
        {.scalar = true, .threads = 3},
        {.kv = QUERN_KV_F32, .chunk = 1},
        {.kv = QUERN_KV_Q8, .context_size = 100, .chunk = 200},
        {.profile = true, .threads = 2},
        {.quantize = QUERN_TO_Q4, .embeddings = QUERN_TO_Q4},
        {.quantize = QUERN_TO_Q8},
        {.kv_positions = 3000, .parallel = 16, .waiting = 3},
    };
    struct file big = file_read(built_fixtures(""), "big-q8_0.gguf"), wide = file_read(built_fixtures(""), "long.gguf");
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        if (v == 0 || (variants[v].embeddings && check_length(0, 1))) check_plan("big-q8_0", &big, variants[v]);
        /* each variant with a quarter of the files, or half */
        for (size_t i = v % (2 * check_every(2)); i < GOLDEN_FILES; i += 2 * check_every(2)) {
            struct file f = golden_file(golden_names[i], "gguf");
            check_plan(golden_names[i], &f, variants[v]);
            file_free(&f);
        }
        if (variants[v].kv != QUERN_KV_Q8) check_plan("long", &wide, variants[v]);
    }
    file_free(&big);
    file_free(&wide);
}

/* The piece of a file that begins at `at`. */
static int feed_piece(struct quern_engine *e, const struct file *f, size_t at)
{
    return quern_feed(e, f->data + at, f->size - at < PIECE ? f->size - at : PIECE);
}

/* The plan from the header alone. */
static struct quern_plan planned(const struct file *f, struct quern_options options)
{
    struct quern_engine *e = quern_new(&options);
    for (size_t at = 0; !quern_plan(e)->total && at < f->size; at += PIECE) CHECK_EQ(feed_piece(e, f, at), OK);
    struct quern_plan plan = *quern_plan(e);
    CHECK(plan.total > 0);
    quern_free(e);
    return plan;
}

/* --- limits ----------------------------------------------------------------------------------------------- */

/* Feeds until the engine refuses or the file ends. Returns the engine; its status goes to *status, the bytes fed to
 * *fed. */
static struct quern_engine *feed_under(const struct file *f, uint64_t limit, int context_size, int *status, size_t *fed)
{
    struct quern_engine *e =
        quern_new(&(struct quern_options){.memory_limit = limit, .context_size = context_size, .file_size = f->size});
    CHECK(e != NULL);
    *status = OK;
    for (*fed = 0; !*status && *fed < f->size; *fed += PIECE) *status = feed_piece(e, f, *fed);
    if (!*status) *status = quern_finish(e);
    return e;
}

/* The number after `words` in the error sentence. */
static double said(const struct quern_engine *e, const char *words)
{
    const char *at = strstr(quern_error(e)->message, words);
    if (!at) printf("# %s\n", quern_error(e)->message);
    CHECK(at != NULL);
    return at ? atof(at + strlen(words)) : 0;
}

/* Checks that the context is the expected one, or a little more: what its pages hold. */
static void loads_under(const struct file *f, uint64_t limit, int context_size, int expected_context)
{
    int status;
    size_t fed;
    uint64_t used, peak;
    struct quern_engine *e = feed_under(f, limit, context_size, &status, &fed);
    if (status) printf("# %s\n", quern_error(e)->message);
    CHECK_EQ(status, OK);
    CHECK(e->context_size >= expected_context && e->context_size < expected_context + KV_PAGE);
    struct quern_sequence *s = sequence_new(e);
    CHECK(quern_sequence_set(s, (int32_t[]){1, 2, 3}, 3, QUERN_LAST) == 0);
    CHECK_EQ(quern_step(e, 0), OK);
    CHECK_EQ(quern_sample_begin(
                 s, &(struct sampler_params){.temperature = 1, .repeat_penalty = 1.5f, .presence_penalty = 1}),
             OK);
    quern_memory(e, &used, &peak);
    CHECK(peak <= limit);
    quern_free(e);
}

/* A file of 60 MB whose own context is 2,048 positions. The suggested context is tried at every fourth limit. */
static void q01_refused_by_the_header(void)
{
    struct file f = file_read(built_fixtures(""), "big-q8_0.gguf");
    struct quern_plan all = planned(&f, (struct quern_options){0});
    CHECK_EQ(all.context_size, 2048);
    CHECK_EQ(all.wanted, 2048);
    size_t tries = 0;
    for (uint64_t limit = all.total - (all.total >> 5); limit > 40 << 20; limit -= 4 << 20) {
        int status;
        size_t fed;
        struct quern_engine *e = feed_under(&f, limit, 2048, &status, &fed);
        const struct quern_plan plan = *quern_plan(e);
        CHECK_EQ(status, ERR_MEM_PLAN);
        CHECK(fed <= 8 << 20);
        CHECK(e->mem.peak <= limit && e->mem.used < 16 << 20); /* no weights were allocated */
        CHECK_EQ(plan.limit, limit);
        CHECK(plan.total > limit);
        CHECK_EQ((int)(said(e, "needs ") * 10 + 0.5), (int)((double)plan.total / 1e5 + 0.5));
        if (plan.largest > 0) {
            CHECK_EQ((int)said(e, "a contextSize of "), plan.largest);
            if (tries++ % check_every(16) == 0) loads_under(&f, limit, plan.largest, plan.largest);
        } else {
            double file = said(e, "a file of ") * 1e6, weights = (double)plan.weights;
            CHECK(file > 0 && file < (double)limit && file < weights);
        }
        quern_free(e);
    }
    file_free(&f);
}

/* Without a requested context, the context shrinks to what fits, but not below 512. */
static void default_context(void)
{
    struct file f = file_read(built_fixtures(""), "big-q8_0.gguf");
    struct quern_plan all = planned(&f, (struct quern_options){0}),
                      half = planned(&f, (struct quern_options){.context_size = 1024}),
                      least = planned(&f, (struct quern_options){.context_size = 512});
    loads_under(&f, all.total, 0, 2048);
    loads_under(&f, half.total, 0, 1024);
    loads_under(&f, least.total, 0, 512);
    int status;
    size_t fed;
    struct quern_engine *e = feed_under(&f, least.total - 65536, 0, &status, &fed);
    CHECK_EQ(status, ERR_MEM_PLAN);
    CHECK((int)said(e, "a contextSize of ") < 512);
    quern_free(e);
    file_free(&f);
}

static uint64_t weights_as(const struct file *f, enum quern_quantize layers, enum quern_quantize ends)
{
    return planned(f, (struct quern_options){.quantize = layers, .embeddings = ends, .context_size = 512}).weights;
}

/* Each limit of memory leads to the weight types that fit, and the plan reports them. */
static void chosen_types(void)
{
    struct file f = file_read(built_fixtures(""), "big-q8_0.gguf");
    struct quern_plan stored = planned(&f, (struct quern_options){.context_size = 512}),
                      four = planned(&f, (struct quern_options){
                                             .context_size = 512, .quantize = QUERN_TO_Q4, .embeddings = QUERN_TO_Q4});
    CHECK(four.weights < stored.weights * 6 / 10);
    CHECK_EQ(weights_as(&f, QUERN_TO_Q8, QUERN_TO_Q8), stored.weights); /* the weights have that type already */
    uint64_t layers = weights_as(&f, QUERN_TO_Q4, QUERN_AS_STORED), ends = weights_as(&f, QUERN_AS_STORED, QUERN_TO_Q4);
    CHECK(layers < stored.weights && ends < stored.weights);
    CHECK_EQ(stored.weights - layers + stored.weights - ends, stored.weights - four.weights);
    const uint64_t limits[] = {stored.total, stored.total - 65536, four.total, four.total - 65536};
    for (int i = (int)check_length(1, 0); i < 4; i += (int)check_every(2)) {
        struct quern_options options = {
            .quantize = QUERN_AUTO, .memory_limit = limits[i], .context_size = 512, .file_size = f.size};
        struct quern_engine *e = quern_new(&options);
        CHECK_EQ(engine_feed(e, &f, 1 << 20), i < 3 ? OK : ERR_MEM_PLAN);
        CHECK_EQ(quern_plan(e)->weights, i ? four.weights : stored.weights);
        if (i < 3)
            CHECK(strstr(quern_info(e),
                         i ? "\"quantize\":{\"weights\":\"q4\"" : "\"quantize\":{\"weights\":\"none\"") != NULL);
        quern_free(e);
    }
    file_free(&f);
}

/* A pool larger than the context: if it does not fit, the refusal suggests one that does. */
static void kv_positions_given(void)
{
    struct file f = file_read(built_fixtures(""), "big-q8_0.gguf");
    struct quern_plan plan = planned(&f, (struct quern_options){.context_size = 512, .kv_positions = 3000});
    for (int size = 3000 + 2 * KV_PAGE; size >= 3000; size -= 2 * KV_PAGE) {
        struct quern_engine *e =
            quern_new(&(struct quern_options){.context_size = 512, .kv_positions = size, .memory_limit = plan.total});
        int status = engine_feed(e, &f, 1 << 20);
        CHECK_EQ(status, size > 3000 ? ERR_MEM_PLAN : OK);
        if (status) CHECK((int)said(e, "kvPositions of ") >= 3000 && (int)said(e, "kvPositions of ") < size);
        else CHECK(strstr(quern_info(e), "\"kvPositions\":3000") != NULL);
        quern_free(e);
    }
    file_free(&f);
}

/* A context beyond all sizes is refused; its size does not overflow to a small number. */
static void q06_no_wrap(void)
{
    struct file f = file_read(built_fixtures(""), "wide-pages.gguf");
    const int contexts[] = {0, 1 << 20, INT32_MAX};
    for (int i = 0; i < 3; i++) {
        struct quern_engine *e =
            quern_new(&(struct quern_options){.context_size = contexts[i], .memory_limit = 1 << 30});
        CHECK_EQ(quern_feed(e, f.data, f.size), ERR_MEM_PLAN);
        CHECK(quern_plan(e)->total > 1 << 30);
        quern_free(e);
    }
    file_free(&f);
}

/* The system gives less memory than the plan assumed: the default context shrinks, a requested one is refused, and both
 * are reported. */
static void q03_the_system_refuses(void)
{
    struct file f = file_read(built_fixtures(""), "big-q8_0.gguf");
    struct quern_plan all = planned(&f, (struct quern_options){0});
    for (int wish = 0; wish <= 2048; wish += 2048) {
        struct quern_engine *e = quern_new(&(struct quern_options){.context_size = wish});
        e->mem.limit = all.total - all.cache / 4;
        int status = engine_feed(e, &f, 1 << 20);
        CHECK_EQ(status, wish ? ERR_MEM_PLAN : OK);
        if (wish) CHECK_EQ((int)said(e, "a contextSize of "), 1024);
        else CHECK_EQ(e->context_size, 1024);
        quern_free(e);
    }
    file_free(&f);
}

static const struct check tests[] = {
    {"equals_the_peak", equals_the_peak},
    {"q01_refused_by_the_header", q01_refused_by_the_header},
    {"default_context", default_context},
    {"q06_no_wrap", q06_no_wrap},
    {"q03_the_system_refuses", q03_the_system_refuses},
    {"chosen_types", chosen_types},
    {"kv_positions_given", kv_positions_given},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
