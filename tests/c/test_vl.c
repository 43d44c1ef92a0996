/* SPDX-License-Identifier: MIT
 *
 * The language models of Qwen3-VL and Qwen3.5 against transformers: text, and rows of images and videos from the golden
 * encoder, in chunks that cut images anywhere. Qwen3-VL's tensors named as a model without vision give the same bits
 * for text, and so do folder and GGUF file.
 */
#include "model_set.h"
#include "session.h"

#include <math.h>

enum { IDS_MOST = 256, MEDIA_MOST = 4, GREEDY = 6, PAGES = 8, VOCAB = 320, ADDED_MOST = 4 };

static const char *const models[] = {"dense", "moe"};

struct shown {
    char name[32];
    int tokens;
};

struct story {
    char name[32];
    int n, n_rows, n_media, delta;
    double scale, margin; /* of the logits; the smallest lead of a greedy token over the next best */
    int32_t ids[IDS_MOST + GREEDY], pos[IDS_MOST + GREEDY][3], rows[IDS_MOST], greedy[GREEDY];
    struct shown media[MEDIA_MOST];
    const float *features[IDS_MOST + GREEDY]; /* for rows of media: [1 + levels, dim] */
    float *visual;                            /* the memory of `features` */
    int levels;
    float *expected;                          /* [n_rows, VOCAB] */
};

/* --- reading ------------------------------------------------------------------------------------------------- */

static char *text_of(const char *folder, const char *name)
{
    struct file f = file_read(folder, name);
    char *text = realloc(f.data, f.size + 1);
    CHECK(text != NULL);
    text[f.size] = 0;
    return text;
}

static int32_t take_number(char **at) { return (int32_t)strtol(*at, at, 10); }

static float *take_floats(const char *model, const char *sub, const char *name, const char *ending, size_t *n)
{
    char folder[1200], file[80];
    snprintf(folder, sizeof folder, "%s/vision/models/%s/%s", check_fixtures, model, sub);
    snprintf(file, sizeof file, "%s%s", name, ending);
    struct file f = file_read(folder, file);
    *n = f.size / sizeof(float);
    return (float *)(void *)f.data;
}

/* Reads a medium's tokens, each with its additions: [tokens, 1 + levels, dim]. The golden files have [tokens, dim] and
 * [levels, tokens, dim]. */
static void take_medium(struct story *s, const char *model, const char *sub, const struct shown *m, int dim, float *out)
{
    size_t n, all;
    char stem[32];
    snprintf(stem, sizeof stem, "%.*s", (int)strcspn(m->name, "."), m->name);
    float *merged = take_floats(model, sub, stem, ".merged.f32", &n), *added = NULL;
    CHECK_EQ(n, m->tokens * dim);
    if (s->levels) {
        added = take_floats(model, sub, stem, ".deepstack.f32", &all);
        CHECK_EQ(all, n * (size_t)s->levels);
    }
    for (int t = 0; t < m->tokens; t++)
        for (int k = 0; k <= s->levels; k++)
            memcpy(out + (t * (1 + s->levels) + k) * dim, k ? added + (size_t)(k - 1) * n + t * dim : merged + t * dim,
                   (size_t)dim * sizeof *out);
    free(merged);
    free(added);
}

static bool is_pad(const struct quern_engine *e, int32_t id) { return id == e->pads[0] || id == e->pads[1]; }

/* Sets the rows of media, in order. */
static void place_media(struct story *s, const struct quern_engine *e, const char *model, const char *sub)
{
    int dim = e->model->config.dim, tokens = 0, next = 0;
    s->levels = e->model->config.n_added < 0 ? 1 : e->model->config.n_added;
    for (int i = 0; i < s->n_media; i++) tokens += s->media[i].tokens;
    size_t wide = (size_t)(1 + s->levels) * (size_t)dim;
    s->visual = malloc(((size_t)tokens * wide + 1) * sizeof *s->visual);
    for (int i = 0, t = 0; i < s->n_media; t += s->media[i++].tokens)
        take_medium(s, model, sub, &s->media[i], dim, s->visual + (size_t)t * wide);
    for (int i = 0; i < s->n; i++) s->features[i] = is_pad(e, s->ids[i]) ? s->visual + (size_t)next++ * wide : NULL;
    CHECK_EQ(next, tokens);
}

/* Reads the next case of the text that vision-models.mjs wrote; false: there is none. */
static bool story_next(struct story *s, char **at)
{
    int used;
    *s = (struct story){0};
    if (sscanf(*at, " %31s %d %d %d %lf %lf %d%n", s->name, &s->n, &s->n_rows, &s->n_media, &s->scale, &s->margin,
               &s->delta, &used) != 7)
        return false;
    CHECK(s->n <= IDS_MOST && s->n_media <= MEDIA_MOST);
    *at += used;
    for (int i = 0; i < s->n; i++) s->ids[i] = take_number(at);
    for (int i = 0; i < s->n * 3; i++) s->pos[i / 3][i % 3] = take_number(at);
    for (int i = 0; i < s->n_rows; i++) s->rows[i] = take_number(at);
    for (int i = 0; i < GREEDY; i++) s->greedy[i] = take_number(at);
    for (int i = 0; i < s->n_media; i++) {
        CHECK_EQ(sscanf(*at, " %31s %d%n", s->media[i].name, &s->media[i].tokens, &used), 2);
        *at += used;
    }
    return true;
}

static void story_free(struct story *s)
{
    free(s->visual);
    free(s->expected);
}

/* --- running -------------------------------------------------------------------------------------------------- */

static const int32_t pages[PAGES] = {0, 1, 2, 3, 4, 5, 6, 7};

/* Computes rows first .. first + n - 1 as one step, after those before them; their logits go to all [.., VOCAB]. */
static void run_rows(struct quern_engine *e, struct story *s, int first, int n, float *all)
{
    static int32_t state;
    struct kv_row kv[IDS_MOST];
    int32_t out[IDS_MOST];
    for (int i = 0; i < n; i++) kv[i] = (struct kv_row){pages, first + i}, out[i] = i;
    struct state_run run = {0, n, first ? state : -1, !state}; /* two slots in turn */
    state = run.to;
    if (!kv_slots(e->kv)) run.from = run.to = -1;
    struct batch b = {.n = n,
                      .tokens = s->ids + first,
                      .features = s->features + first,
                      .n_added = s->levels,
                      .kv = kv,
                      .pos = s->pos + first,
                      .runs = &run,
                      .n_runs = 1,
                      .n_out = n,
                      .n_logits = n,
                      .out = out};
    model_begin(e->model, &b);
    for (int l = 0; l < e->model->config.n_layers; l++) model_layer(e->model, &b, l);
    for (int i = 0; i < model_parts(e->model, &b); i++) model_head(e->model, &b, i);
    const float *logits = e->be->ops->result(e->be, model_end(e->model, &b).logits);
    memcpy(all + (size_t)first * VOCAB, logits, (size_t)n * VOCAB * sizeof *all);
}

static float *run_story(struct quern_engine *e, struct story *s, int chunk)
{
    float *all = logits_new(IDS_MOST + GREEDY, VOCAB);
    for (int at = 0; at < s->n; at += chunk) run_rows(e, s, at, min_int(chunk, s->n - at), all);
    return all;
}

/* Six more tokens after run_story(), each the best allowed one. Returns how many equal the golden ones. */
static int run_greedy(struct quern_engine *e, struct story *s, float *all)
{
    int right = 0;
    for (int i = 0; i < GREEDY; i++) {
        const float *row = all + (size_t)(s->n + i - 1) * VOCAB;
        int best = -1;
        for (int id = 0; id < e->n_sampled; id++)
            if (!is_pad(e, id) && (best < 0 || row[id] > row[best])) best = id;
        right += best == s->greedy[i];
        s->ids[s->n + i] = s->greedy[i];
        for (int k = 0; k < 3; k++) s->pos[s->n + i][k] = s->n + i + s->delta;
        run_rows(e, s, s->n + i, 1, all);
    }
    return right;
}

/* --- measuring ------------------------------------------------------------------------------------------------ */

static double log_sum(const float *x)
{
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < VOCAB; i++) most = fmax(most, x[i]);
    for (int i = 0; i < VOCAB; i++) sum += exp(x[i] - most);
    return most + log(sum);
}

static double divergence(const float *p, const float *q)
{
    double from = log_sum(p), to = log_sum(q), sum = 0;
    for (int i = 0; i < VOCAB; i++) sum += exp(p[i] - from) * ((p[i] - from) - (q[i] - to));
    return sum;
}

struct distance {
    double worst, kl; /* fraction of the scale; the mean over text rows */
};

static struct distance measure(const struct quern_engine *e, const struct story *s, const float *all)
{
    struct distance d = {0};
    int n = 0;
    for (int i = 0; i < s->n_rows; i++) {
        const float *golden = s->expected + (size_t)i * VOCAB, *ours = all + (size_t)s->rows[i] * VOCAB;
        for (int j = 0; j < VOCAB; j++) d.worst = fmax(d.worst, fabs((double)golden[j] - ours[j]) / s->scale);
        if (is_pad(e, s->ids[s->rows[i]])) continue;
        d.kl += divergence(golden, ours);
        n++;
    }
    d.kl /= n;
    return d;
}

/* --- tests ---------------------------------------------------------------------------------------------------- */

static struct file model_file(const char *model, const char *kind)
{
    char folder[1200];
    snprintf(folder, sizeof folder, "%s/vision/models/%s/%s", check_fixtures, model, kind);
    return file_read(folder, "model.gguf");
}

static struct quern_engine *load_golden(const char *model, const char *kind, struct quern_options options)
{
    struct file f = model_file(model, kind);
    options.context_size = (PAGES - 1) * 32;
    if (!options.chunk) options.chunk = 64;
    struct quern_engine *e = engine_load(&f, options, SIZE_MAX);
    CHECK(e->model->config.sees);
    file_free(&f);
    return e;
}

/* The golden folder with its weights in one file, or in two. */
static struct set golden_folder_of(const char *model, bool parts)
{
    char folder[1200];
    snprintf(folder, sizeof folder, "%s/vision/models/%s/hf", check_fixtures, model);
    struct set set = read_folder(folder);
    if (!parts) return set;
    file_free(&set.files[--set.n]);
    for (int i = 0; i < 2; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s.%d.safetensors", model, i);
        set.files[set.n++] = file_read(built_fixtures("/vision"), name);
    }
    return set;
}

/* Loads with chunks smaller than an expert. */
static struct quern_engine *load_folder(const char *model)
{
    struct set set = golden_folder_of(model, false);
    struct quern_engine *e =
        load_set(&set, (struct quern_options){.context_size = (PAGES - 1) * 32, .chunk = 64, .kv = QUERN_KV_F32}, 4093);
    set_free(&set);
    return e;
}

/* Every case of a model, with an f32 cache and an f16 one. */
static void check_model(const char *model)
{
    char name[32];
    snprintf(name, sizeof name, "%s.cases", model);
    char *text = text_of(built_fixtures("/vision"), name), *at = text;
    struct quern_engine *e = load_golden(model, "f16", (struct quern_options){.kv = QUERN_KV_F32, .threads = 2});
    struct quern_engine *scalar = load_golden(model, "f16", (struct quern_options){.kv = QUERN_KV_F32, .scalar = true});
    struct quern_engine *halves = load_golden(model, "f16", (struct quern_options){.kv = QUERN_KV_F16}),
                        *folder = load_folder(model);
    struct story s;
    int n = 0;
    for (; story_next(&s, &at); n++) {
        size_t size;
        place_media(&s, e, model, "media");
        s.expected = take_floats(model, "logits", s.name, ".f32", &size);
        CHECK_EQ(size, s.n_rows * VOCAB);
        float *all = run_story(e, &s, 64);
        CHECK_EQ(run_greedy(e, &s, all), GREEDY);
        float *half = run_story(halves, &s, 64);
        if (s.margin > 0.2) CHECK_EQ(run_greedy(halves, &s, half), GREEDY);
        const int chunks[] = {1, 7, 64};
        for (int i = n % (int)check_every(3); i < 6; i += (int)check_every(3)) {
            float *again = run_story(i < 3 ? scalar : folder, &s, chunks[i % 3]);
            CHECK(same_bits(all, again, s.n * VOCAB));
            free(again);
        }
        struct distance d = measure(e, &s, all), f16 = measure(halves, &s, half);
        printf("# %s %s: %.1e of the scale, KL %.1e; f16 %.1e, KL %.1e\n", model, s.name, d.worst, d.kl, f16.worst,
               f16.kl);
        CHECK(d.worst <= 2e-4 && d.kl <= 1e-9);
        CHECK(f16.kl <= 1e-5);
        free(all);
        free(half);
        story_free(&s);
    }
    CHECK(n >= 5);
    free(text);
    quern_free(e);
    quern_free(scalar);
    quern_free(halves);
    quern_free(folder);
}

static void dense(void) { check_model("dense"); }
static void experts(void) { check_model("moe"); }
static void hybrid(void) { check_model("hybrid"); }

/* Compared with llama.cpp's own 8-bit arithmetic, whose distances are in int8act.json: 0.00438 for text, 0.00626 on
 * average over its cases. */
static void quantised(void)
{
    static const char *const judged[] = {"text", "image", "exact", "two", "alpha", "kinds", "later"};
    char *text = text_of(built_fixtures("/vision"), "dense.cases"), *at = text;
    struct quern_engine *e = load_golden("dense", "q8_0", (struct quern_options){.kv = QUERN_KV_F32});
    struct story s;
    double sum = 0;
    int n = 0;
    while (story_next(&s, &at)) {
        bool known = false;
        size_t size;
        for (size_t i = 0; i < sizeof judged / sizeof *judged; i++) known |= !strcmp(judged[i], s.name);
        place_media(&s, e, "dense", "q8_0");
        s.expected = take_floats("dense", "q8_0", s.name, ".logits.f32", &size);
        float *all = run_story(e, &s, 64);
        struct distance d = measure(e, &s, all);
        printf("# %s: %.1e of the scale, KL %.2e\n", s.name, d.worst, d.kl);
        if (!strcmp(s.name, "text")) CHECK(d.kl <= 1.25 * 0.004376);
        sum += known ? d.kl : 0;
        n += known;
        free(all);
        story_free(&s);
    }
    CHECK_EQ(n, 7);
    CHECK(sum / n <= 1.6 * 0.00626);
    free(text);
    quern_free(e);
}

/* Text alone: with any cache and chunk, the bits of a model without vision. */
static void blind(void)
{
    int32_t ids[96];
    for (int i = 0; i < 96; i++) ids[i] = (i * 37 + 5) % 256;
    for (int m = 0; m < 2; m++) {
        char name[32];
        snprintf(name, sizeof name, "%s.blind.gguf", models[m]);
        struct file twin = file_read(built_fixtures("/vision"), name);
        for (enum quern_kv kv = 0; kv <= QUERN_KV_Q8; kv++)
            for (int i = 0; i < 3; i++) {
                struct quern_options options = {.kv = kv, .chunk = (const int[]){1, 7, 64}[i], .threads = 1 + i};
                struct quern_engine *e = load_golden(models[m], "f16", options),
                                    *plain = engine_load(&twin, options, SIZE_MAX);
                float *ours = logits_new(96, VOCAB), *theirs = logits_new(96, VOCAB);
                CHECK(!plain->model->config.sees && !strstr(plain->model->architecture->name, "vl"));
                logits_all(e, sequence_new(e), ids, 96, ours);
                logits_all(plain, sequence_new(plain), ids, 96, theirs);
                CHECK(same_bits(ours, theirs, 96 * VOCAB));
                free(ours);
                free(theirs);
                quern_free(e);
                quern_free(plain);
            }
        file_free(&twin);
    }
}

/* Experts whose matrices are in different files, in chunks that hold none, some, or all of them completely; loading
 * takes the planned memory. */
static void by_columns(void)
{
    int32_t ids[96];
    for (int i = 0; i < 96; i++) ids[i] = (i * 37 + 5) % 256;
    struct quern_engine *e = load_golden("moe", "f16", (struct quern_options){0});
    float *expected = logits_new(96, VOCAB), *logits = logits_new(96, VOCAB);
    logits_all(e, sequence_new(e), ids, 96, expected);
    quern_free(e);
    for (int i = 0; i < 8; i++) {
        struct set set = golden_folder_of("moe", i % 2);
        e = load_set(&set, (struct quern_options){.chunk = 64, .context_size = 128},
                     (const size_t[]){61, 10240, 15361, SIZE_MAX}[i / 2]);
        logits_all(e, sequence_new(e), ids, 96, logits);
        CHECK(same_bits(expected, logits, 96 * VOCAB));
        uint64_t used, peak;
        quern_memory(e, &used, &peak);
        CHECK(i % 2 || peak <= quern_plan(e)->total); /* the engine has not been told of the next file */
        quern_free(e);
        set_free(&set);
    }
    free(expected);
    free(logits);
}

/* A token for a part of an image is never written, not even with a bias. */
static void no_pads(void)
{
    struct quern_engine *e = load_golden("dense", "f16", (struct quern_options){0});
    struct quern_sequence *s = sequence_new(e);
    const int32_t prompt[] = {276, 84, 82};
    int picked[3] = {0};
    CHECK(e->pads[0] == 287 && e->pads[1] == 288);
    struct logit_bias *bias = malloc((size_t)e->n_sampled * sizeof *bias);
    for (int id = 0; id < e->n_sampled; id++) bias[id] = (struct logit_bias){id, is_pad(e, id) || id == 7 ? 100 : -100};
    CHECK_EQ(quern_sequence_set(s, prompt, 3, QUERN_LAST), 0);
    logits_last(e, s);
    for (int i = 0; i < 3; i++) { /* greedy, at random, and at random without an alternative */
        struct sampler_params p = {.temperature = i ? 1.0f : 0, .seed = 5, .bias = bias, .n_bias = e->n_sampled};
        if (i == 2) bias[7].bias = -INFINITY;
        CHECK_EQ(quern_sample_begin(s, &p), OK);
        picked[i] = quern_sample(s);
    }
    CHECK(picked[0] == 7 && picked[1] == 7 && picked[2] != 7 && picked[2] >= 0 && !is_pad(e, picked[2]));
    for (int id = 0; id < e->n_sampled; id++) bias[id].bias = is_pad(e, id) ? 0 : -INFINITY;
    CHECK_EQ(quern_sample_begin(s, &(struct sampler_params){.bias = bias, .n_bias = e->n_sampled}), ERR_PARAM);
    free(bias);
    quern_free(e);
}

/* However many allocations succeed, loading a folder with images leaks nothing. */
static void allocations(void)
{
    struct set set = golden_folder_of("moe", true);
    struct quern_options options = {.context_size = 64, .chunk = 4, .files = set.n, .file_size = set.files[0].size};
    int loaded = 0;
    for (uint64_t at = 1; !loaded; at += 1 + at / 64) {
        struct quern_engine *e = quern_new(&options);
        CHECK(e != NULL);
        e->mem.fail_at = e->mem.n_allocs + at;
        e->intake.mem->fail_after = true;
        int status = feed_set(e, &set, true, SIZE_MAX);
        CHECK(status == OK || status == ERR_MEM_LOAD);
        loaded = status == OK;
        quern_free(e);
    }
    set_free(&set);
}

static const struct check tests[] = {
    {"dense", dense}, {"experts", experts},       {"hybrid", hybrid},   {"quantised", quantised},
    {"blind", blind}, {"by_columns", by_columns}, {"no_pads", no_pads}, {"allocations", allocations},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
