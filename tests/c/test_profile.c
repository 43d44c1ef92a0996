/* SPDX-License-Identifier: MIT
 *
 * The profile changes no bit, counts calls, products and bytes exactly, its sums agree, and it can be switched off.
 */
#include "session.h"

enum { PROMPT = 40, CHUNK = 16, STEPS = 3, REPLY = 5 };

static struct quern_engine *open_profiled(const struct file *f, int threads)
{
    return engine_load(f, (struct quern_options){.profile = true, .threads = threads, .chunk = CHUNK}, SIZE_MAX);
}

/* A prompt of PROMPT tokens in STEPS steps, then REPLY single tokens. */
static void run(struct quern_engine *e, struct quern_sequence *s, const int32_t *ids)
{
    CHECK_EQ(quern_sequence_set(s, ids, PROMPT, QUERN_LAST), 0);
    logits_last(e, s);
    for (int i = 0; i < REPLY; i++) {
        CHECK_EQ(quern_sequence_push(s, ids[PROMPT + i]), OK);
        logits_last(e, s);
    }
}

static void same_bits_as_without(void)
{
    for (int i = 0; i < GOLDEN_FILES; i += 2) {
        struct reference r = reference_new(golden_names[i]);
        struct quern_engine *e = open_profiled(&r.file, 2);
        float *logits = logits_new(GOLDEN_ROWS, GOLDEN_VOCAB);
        logits_all(e, sequence_new(e), r.ids, GOLDEN_ROWS, logits);
        CHECK(same_bits(r.logits, logits, GOLDEN_ROWS * GOLDEN_VOCAB));
        CHECK(profile_cost(quern_profile(e), PROFILE_PREFILL, PROFILE_ALL, PROFILE_ALL).calls > 0);
        quern_free(e);
        free(logits);
        reference_free(&r);
    }
}

/* Weights of one layer's seven matrices. */
static double layer_weights(const struct model_config *c)
{
    double q_dim = c->n_heads * c->head_dim, kv_dim = c->n_kv_heads * c->head_dim;
    return c->dim * (2 * q_dim + 2 * kv_dim + 3.0 * c->ffn_dim);
}

/* (row, position) pairs of rows from .. to - 1. */
static double pairs(int from, int to)
{
    double n = 0;
    for (int i = from; i < to; i++) n += i + 1;
    return n;
}

static void check_phase(const struct quern_engine *e, enum profile_phase phase, int tokens, int steps, int outputs,
                        double n_pairs, double positions)
{
    const struct profile *p = e->profile;
    const struct model_config *c = &e->model->config;
    struct profile_cost all = profile_cost(p, phase, PROFILE_ALL, PROFILE_ALL);
    double weights = layer_weights(c), head = (double)c->vocab_size * c->dim, kv = 2.0 * c->n_kv_heads * c->head_dim;
    CHECK_EQ(profile_tokens(p, phase), tokens);
    CHECK_EQ(all.calls, steps * (1 + 15 * c->n_layers) + outputs * 3);
    CHECK_EQ(all.macs,
             tokens * c->n_layers * weights + outputs * head + c->n_layers * n_pairs * 2 * c->n_heads * c->head_dim);
    /* f32 weights; rows of the embedding; f16 keys and values, appended and then read */
    CHECK_EQ(all.bytes, 4 * (steps * c->n_layers * weights + outputs * head + tokens * c->dim) +
                            2 * c->n_layers * kv * (tokens + positions));
    CHECK_EQ(all.barriers, 0);
    CHECK(all.ms > 0);
}

static void exact_counts(void)
{
    struct file f = golden_file("duo.F32", "gguf");
    int32_t ids[GOLDEN_ROWS];
    golden_tokens(ids);
    struct quern_engine *e = open_profiled(&f, 1);
    CHECK(e->model->config.n_layers > 1);
    run(e, sequence_new(e), ids);
    check_phase(e, PROFILE_PREFILL, PROMPT, STEPS, 1, pairs(0, PROMPT), 16 + 32 + 40);
    check_phase(e, PROFILE_DECODE, REPLY, REPLY, REPLY, pairs(PROMPT, PROMPT + REPLY), pairs(PROMPT, PROMPT + REPLY));
    CHECK_EQ(profile_cost(e->profile, PROFILE_DECODE, PROFILE_ALL, 0).calls, REPLY * 15);
    CHECK_EQ(profile_cost(e->profile, PROFILE_DECODE, PROFILE_ALL, PROFILE_OUTSIDE).calls, REPLY * 4);
    CHECK_EQ(profile_cost(e->profile, PROFILE_DECODE, PROFILE_ALL, e->model->config.n_layers).calls, 0);
    quern_free(e);
    file_free(&f);
}

/* A vector costs the layers only: no product of the output head, and none of its weights is read. */
static void no_head_for_a_vector(void)
{
    struct file f = golden_file("duo.F32", "gguf");
    int32_t ids[GOLDEN_ROWS];
    int first, rows;
    golden_tokens(ids);
    struct quern_engine *e = open_profiled(&f, 1);
    struct quern_sequence *s = sequence_new(e);
    const struct model_config *c = &e->model->config;
    CHECK_EQ(quern_sequence_set(s, ids, PROMPT, QUERN_HIDDEN), 0);
    while (quern_sequence_pending(s) > 0) CHECK_EQ(quern_step(e, 0), OK);
    CHECK(quern_hidden(s, &first, &rows) != NULL && rows == 1);
    struct profile_cost all = profile_cost(e->profile, PROFILE_PREFILL, PROFILE_ALL, PROFILE_ALL);
    double weights = layer_weights(c), kv = 2.0 * c->n_kv_heads * c->head_dim, positions = 16 + 32 + 40;
    CHECK_EQ(profile_tokens(e->profile, PROFILE_PREFILL), PROMPT);
    CHECK_EQ(all.macs, PROMPT * c->n_layers * weights + c->n_layers * pairs(0, PROMPT) * 2 * c->n_heads * c->head_dim);
    CHECK_EQ(all.bytes,
             4 * (STEPS * c->n_layers * weights + PROMPT * c->dim) + 2 * c->n_layers * kv * (PROMPT + positions));
    CHECK_EQ(all.calls, STEPS * (1 + 15 * c->n_layers) + 2);
    quern_free(e);
    file_free(&f);
}

/* Two conversations of one row each count as decoding; a prompt beside a reply as mixed. */
static void phases(void)
{
    struct file f = golden_file("nano.Q8_0", "gguf");
    int32_t ids[GOLDEN_ROWS];
    golden_tokens(ids);
    struct quern_engine *e = open_profiled(&f, 1);
    struct quern_sequence *a = sequence_new(e), *b = sequence_new(e);
    run(e, a, ids);
    CHECK_EQ(quern_sequence_set(b, ids + 1, 10, QUERN_LAST), 0);
    CHECK_EQ(quern_sequence_push(a, 3), OK);
    CHECK_EQ(quern_step(e, 0), OK);
    CHECK_EQ(profile_tokens(e->profile, PROFILE_PREFILL), PROMPT);
    CHECK_EQ(profile_tokens(e->profile, PROFILE_MIXED), 11);
    CHECK_EQ(quern_sequence_push(a, 3), OK);
    CHECK_EQ(quern_sequence_push(b, 3), OK);
    CHECK_EQ(quern_step(e, 0), OK);
    CHECK_EQ(profile_tokens(e->profile, PROFILE_DECODE), REPLY + 2);
    quern_free(e);
    file_free(&f);
}

static void add_cost(struct profile_cost *sum, struct profile_cost c)
{
    sum->calls += c.calls, sum->ms += c.ms, sum->macs += c.macs, sum->bytes += c.bytes, sum->barriers += c.barriers;
}

static void check_same(struct profile_cost a, struct profile_cost b)
{
    CHECK(a.calls == b.calls && a.macs == b.macs && a.bytes == b.bytes && a.barriers == b.barriers);
    CHECK(a.ms >= b.ms * 0.999999 && a.ms <= b.ms * 1.000001);
}

/* By operation, by layer or in all, the sums are equal, and within the clock's time; barriers equal the pool's count.
 */
static void sums_agree(void)
{
    struct file f = golden_file("nano.Q4_K_M", "gguf");
    int32_t ids[GOLDEN_ROWS];
    golden_tokens(ids);
    struct quern_engine *e = open_profiled(&f, 2);
    struct quern_sequence *s = sequence_new(e);
    uint32_t jobs = pool_jobs(e->pool);
    double begin = now_ms();
    run(e, s, ids);
    double took = now_ms() - begin, barriers = pool_jobs(e->pool) - jobs, ms = 0;
    for (enum profile_phase phase = 0; phase < PROFILE_PHASES; phase++) {
        struct profile_cost all = profile_cost(e->profile, phase, PROFILE_ALL, PROFILE_ALL), operations = {0};
        struct profile_cost layers = profile_cost(e->profile, phase, PROFILE_ALL, PROFILE_OUTSIDE);
        for (int i = 0; profile_operation(e->profile, i); i++)
            add_cost(&operations, profile_cost(e->profile, phase, i, PROFILE_ALL));
        for (int l = 0; l < e->model->config.n_layers; l++)
            add_cost(&layers, profile_cost(e->profile, phase, PROFILE_ALL, l));
        check_same(operations, all);
        check_same(layers, all);
        ms += all.ms, barriers -= all.barriers;
    }
    CHECK(ms > 0 && ms <= took);
    CHECK_EQ(barriers, 0);
    CHECK(pool_working(e->pool) == 1 || profile_barrier_us(e->profile) > 0);
    quern_free(e);
    file_free(&f);
}

static void names_and_reset(void)
{
    static const char *const parts[] = {"\"name\":\"matmul F32 [",  "\"name\":\"attention\"", "\"name\":\"rmsnorm [",
                                        "\"decode\":{\"tokens\":5", "\"barrierUs\":0",        "\"layerMs\":["};
    struct file f = golden_file("nano.F32", "gguf");
    int32_t ids[GOLDEN_ROWS];
    golden_tokens(ids);
    struct quern_engine *e = open_profiled(&f, 1);
    run(e, sequence_new(e), ids);
    const char *json = profile_json(e->profile);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) CHECK(strstr(json, parts[i]) != NULL);
    profile_reset(e->profile);
    CHECK_EQ(profile_cost(e->profile, PROFILE_DECODE, PROFILE_ALL, PROFILE_ALL).calls, 0);
    CHECK(profile_operation(e->profile, 0) == NULL);
    CHECK(strstr(profile_json(e->profile), "\"operations\":[]") != NULL);
    quern_free(e);
    e = engine_load(&f, (struct quern_options){0}, SIZE_MAX);
    CHECK(quern_profile(e) == NULL);
    quern_free(e);
    file_free(&f);
}

/* Any failing allocation is reported, and all memory is given back. */
static void short_memory(void)
{
    struct file f = golden_file("nano.Q8_0", "gguf");
    bool loaded = false;
    for (uint64_t limit = 1000; !loaded; limit += limit / 8) {
        struct quern_engine *e =
            quern_new(&(struct quern_options){.profile = true, .context_size = 64, .memory_limit = limit});
        int status = e ? engine_feed(e, &f, SIZE_MAX) : ERR_MEM_LOAD;
        loaded = status == OK;
        CHECK(loaded || status == ERR_MEM_LOAD || status == ERR_MEM_KV || status == ERR_MEM_PLAN);
        CHECK(limit < 1u << 30);
        quern_free(e);
    }
    file_free(&f);
}

static const struct check tests[] = {
    {"same_bits_as_without", same_bits_as_without},
    {"exact_counts", exact_counts},
    {"no_head_for_a_vector", no_head_for_a_vector},
    {"phases", phases},
    {"sums_agree", sums_agree},
    {"names_and_reset", names_and_reset},
    {"short_memory", short_memory},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
