/* SPDX-License-Identifier: MIT
 *
 * Models of several files: Hugging Face folders and qwen3.c checkpoints. The same weights give the same bits as in a
 * GGUF file, whatever the chunks; every broken set of tests/fixtures/bad-sets.mjs (groups S and J) is refused with its
 * code and rule, with little time and memory.
 */
#include "model_set.h"
#include "refusal.h"

#define WHOLE SIZE_MAX

/* --- twins ------------------------------------------------------------------------------------------------ */

enum { TOKENS = 24 };

/* Logits of TOKENS tokens; the caller frees them. */
static float *logits_of(struct quern_engine *e, size_t *bytes)
{
    int32_t ids[TOKENS];
    for (int i = 0; i < TOKENS; i++) ids[i] = (i * 37 + 5) % quern_vocab_size(e);
    struct quern_sequence *s = quern_sequence_new(e, 0, 0);
    CHECK(s != NULL);
    CHECK_EQ(quern_sequence_set(s, ids, TOKENS, QUERN_ALL), 0);
    size_t row = (size_t)quern_vocab_size(e) * sizeof(float);
    uint8_t *out = malloc(row * TOKENS);
    for (int done = 0, first, rows; done < TOKENS; done += rows) {
        CHECK_EQ(quern_step(e, 0), OK);
        const float *logits = quern_logits(s, &first, &rows);
        CHECK_EQ(first, done);
        memcpy(out + row * (size_t)first, logits, row * (size_t)rows);
    }
    quern_sequence_free(s);
    *bytes = row * TOKENS;
    return (float *)(void *)out;
}

/* Inspected only, a set gives the same information in any chunks, allocates nothing for its weights and cannot run. */
static void check_inspected(const struct set *s)
{
    struct quern_engine *whole = load_set(s, (struct quern_options){.inspect = true}, SIZE_MAX),
                        *cut = load_set(s, (struct quern_options){.inspect = true}, 61);
    CHECK(strstr(quern_info(whole), "\"parameters\":") != NULL);
    CHECK(!strcmp(quern_info(whole), quern_info(cut)));
    CHECK(quern_sequence_new(whole, 0, 0) == NULL);
    quern_free(whole);
    quern_free(cut);
}

static void check_twins(const struct set *s, const struct file *gguf)
{
    check_inspected(s);
    const struct quern_options options[] = {{.scalar = true}, {0}, {.threads = 2, .chunk = 7}};
    const size_t chunks[] = {WHOLE, 4093, 1};
    size_t bytes, expected_bytes;
    struct quern_engine *reference = engine_load(gguf, options[0], WHOLE);
    float *expected = logits_of(reference, &expected_bytes);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct quern_engine *e = load_set(s, options[i], chunks[i]);
        float *logits = logits_of(e, &bytes);
        CHECK_EQ(bytes, expected_bytes);
        CHECK_EQ(memcmp(logits, expected, bytes), 0);
        CHECK(quern_is_end(e, 264));
        CHECK_EQ(quern_chat_template(e).size, s->n > 2 ? quern_chat_template(reference).size : 0);
        CHECK(strstr(quern_info(e), s->n > 2 ? "\"format\":\"safetensors\"" : "\"format\":\"ajc1\"") != NULL);
        free(logits);
        quern_free(e);
    }
    quern_free(reference);
    free(expected);
}

static void folders(void)
{
    static const char *const names[] = {"f32", "f16", "bf16", "f8", "moe", "moe-f8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char folder[1100], gguf[64];
        snprintf(folder, sizeof folder, "%s/hf/%s", check_fixtures, names[i]);
        snprintf(gguf, sizeof gguf, "%s.gguf", names[i]);
        struct set s = read_folder(folder);
        struct file twin = file_read(built_fixtures("/twins"), gguf);
        CHECK(s.n >= 5);
        check_twins(&s, &twin);
        set_free(&s);
        file_free(&twin);
    }
}

static void checkpoints(void)
{
    for (int group = 32; group <= 128; group *= 2) {
        char name[64];
        const char *kinds[] = {"tokenizer", "checkpoint", "gguf"};
        struct file files[3];
        for (int i = 0; i < 3; i++) {
            snprintf(name, sizeof name, "ajc1-%d.%s", group, kinds[i]);
            files[i] = file_read(built_fixtures("/twins"), name);
        }
        struct set s = {{files[0], files[1]}, 2};
        check_twins(&s, &files[2]);
        set_free(&s);
        file_free(&files[2]);
    }
}

/* --- the catalogue ---------------------------------------------------------------------------------------- */

struct loading {
    const struct set *set;
    bool sizes; /* the sizes of all files are known in advance */
    size_t chunk;
};

static void generate(struct quern_engine *e)
{
    const int32_t prompt[] = {0, 1};
    struct quern_sequence *s = quern_sequence_new(e, 0, 0);
    bool headless = strstr(quern_info(e), "\"headless\":true") != NULL;
    CHECK(s != NULL);
    if (headless) CHECK_EQ(quern_sequence_set(s, prompt, 2, QUERN_LAST), ERR_UNSUPPORTED);
    CHECK_EQ(quern_sequence_set(s, prompt, 2, headless ? QUERN_HIDDEN : QUERN_LAST), 0);
    while (quern_sequence_pending(s) > 0) CHECK_EQ(quern_step(e, 0), OK);
    CHECK_EQ(quern_sample_begin(s, &(struct sampler_params){0}), OK);
    int id = quern_sample(s);
    CHECK(headless ? id == ERR_EMPTY : id == ERR_NONFINITE || (id >= 0 && id < quern_vocab_size(e)));
    int32_t ids[8];
    CHECK(quern_tokenize(e, (struct bytes){(const uint8_t *)"the th", 6}, QUERN_CHAT, 0, ids, 8) > 0);
    quern_sequence_free(s);
}

static struct verdict load_once(const void *what)
{
    const struct loading *l = what;
    const struct set *s = l->set;
    struct quern_options options = {.file_size = l->sizes ? s->files[0].size : 0,
                                    .files = s->n,
                                    .chunk = 4,
                                    .context_size = 64,
                                    .media_cache = 65536}; /* allocating a cache for many images would take longest */
    struct verdict v = {0};
    uint64_t used;
    double begin = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    struct quern_engine *e = quern_new(&options);
    CHECK(e != NULL);
    v.status = feed_set(e, s, l->sizes, l->chunk);
    v.cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - begin;
    v.error = *quern_error(e);
    quern_memory(e, &used, &v.peak);
    CHECK_EQ(v.error.code, v.status);
    if (!v.status) generate(e);
    else CHECK_EQ(quern_finish(e), v.status);
    quern_free(e);
    return v;
}

static struct verdict judge_load(const struct set *s, bool sizes, size_t chunk)
{
    return verdict_of(load_once, &(struct loading){s, sizes, chunk});
}

struct entry {
    char kind[8], id[16], codes[128], rules[128];
    int n;
};

static int judge(const struct entry *t, const char *how, const struct verdict *v)
{
    bool good = !strcmp(t->kind, "good");
    bool right = good ? v->status == OK
                      : v->status && listed(t->codes, status_name(v->status)) && listed(t->rules, v->error.rule);
    bool cheap = good || (verdict_quick(v) && v->peak < REFUSAL_MB << 20);
    if (!right)
        printf("# %s %s: expected %s %s, is %s %s: %s\n", t->id, how, t->codes, t->rules,
               v->status ? status_name(v->status) : "loaded", v->error.rule, v->error.message);
    if (!cheap)
        printf("# %s %s: refused after %.1f ms with %.1f MB\n", t->id, how, v->cpu_ms, (double)v->peak / 1048576);
    return !right + !cheap;
}

static int judge_line(const char *line, void *context)
{
    (void)context;
    struct entry t;
    CHECK_EQ(sscanf(line, "%7s %15s %127s %127s %d", t.kind, t.id, t.codes, t.rules, &t.n), 5);
    CHECK(t.n > 0 && t.n <= FILES_MOST);
    struct set s = {.n = t.n};
    for (int i = 0; i < t.n; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s.%d", strcmp(t.kind, "good") ? "" : "good-", t.id, i);
        s.files[i] = file_read(built_fixtures("/sets"), name);
    }
    struct verdict known = judge_load(&s, true, WHOLE), whole = judge_load(&s, false, WHOLE),
                   cut = judge_load(&s, false, 1021);
    int wrong = judge(&t, "with sizes", &known) + judge(&t, "without sizes", &whole);
    if (cut.status != whole.status || strcmp(cut.error.rule, whole.error.rule) ||
        strcmp(cut.error.message, whole.error.message)) {
        printf("# %s in chunks: %s %s, whole: %s %s\n", t.id, status_name(cut.status), cut.error.rule,
               status_name(whole.status), whole.error.rule);
        wrong++;
    }
    set_free(&s);
    return wrong;
}

static void catalogue(void) { CHECK_EQ(catalogue_judge("/sets", judge_line, NULL), 0); }

/* --- damage ------------------------------------------------------------------------------------------------ */

static bool proper(int status)
{
    return status == OK || status == ERR_FORMAT || status == ERR_UNSUPPORTED || status == ERR_INCONSISTENT;
}

/* --- experts in stacks ------------------------------------------------------------------------------------- */

static struct set read_set(const char *id, int n)
{
    struct set s = {.n = n};
    for (int i = 0; i < s.n; i++) {
        char name[32];
        snprintf(name, sizeof name, "good-%s.%d", id, i);
        s.files[i] = file_read(built_fixtures("/sets"), name);
    }
    return s;
}

static void check_same(struct set one, struct set other, size_t chunk)
{
    size_t bytes, other_bytes;
    struct quern_engine *a = load_set(&one, (struct quern_options){0}, WHOLE),
                        *b = load_set(&other, (struct quern_options){0}, chunk);
    float *logits = logits_of(a, &bytes), *others = logits_of(b, &other_bytes);
    CHECK_EQ(bytes, other_bytes);
    CHECK_EQ(memcmp(logits, others, bytes), 0);
    free(logits);
    free(others);
    quern_free(a);
    quern_free(b);
    set_free(&one);
    set_free(&other);
}

/* The same bits from single matrices, from stacks, from stacks by columns and by rows, also from square ones; in any
 * chunks. */
static void stacks(void)
{
    static const struct {
        const char *one, *other;
        int files, other_files;
    } twins[] = {{"S16a", "S16b", 4, 4}, {"S16c", "S16d", 4, 12}, {"S16e", "S16f", 4, 4},
                 {"S16g", "S16h", 4, 4}, {"S16i", "S16j", 4, 4}, {"S16k", "S16l", 4, 4}};
    const size_t chunks[] = {WHOLE, 4093, 61};
    for (size_t i = 0; i < sizeof twins / sizeof *twins; i++)
        for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++)
            check_same(read_set(twins[i].one, twins[i].files), read_set(twins[i].other, twins[i].other_files),
                       chunks[c]);
}

/* Cuts every file of a set from `first` on at every place up to `most`, and flips bits of each byte there: the set is
 * refused, or still runs. */
static void damage(struct set *s, int first, size_t most)
{
    for (int i = first; i < s->n; i++) {
        struct file *f = &s->files[i];
        size_t size = f->size, end = size < most ? size : most;
        for (size_t cut = 0; cut < end; cut += check_every(3)) {
            f->size = cut;
            struct verdict v = judge_load(s, cut % 2, WHOLE);
            CHECK(proper(v.status) && (v.status || cut + 1 >= size)); /* only a line end at the end may be missing */
        }
        f->size = size;
        for (size_t bit = 0; bit < end * 8; bit += 7 * check_every(3)) {
            f->data[bit / 8] ^= (uint8_t)(1 << bit % 8);
            struct verdict v = judge_load(s, true, WHOLE);
            if (!proper(v.status))
                printf("# file %d damaged at byte %zu: %s: %s\n", i, bit / 8, status_name(v.status), v.error.message);
            CHECK(proper(v.status));
            f->data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
}

static void damage_set(const char *id, int n, int first, size_t most)
{
    struct set s = read_set(id, n);
    damage(&s, first, most);
    set_free(&s);
}

static void damaged_folder(void) { damage_set("S08b", 4, 0, 1500); }

/* Damages a model with vision, including its preprocessors' files, and a model with experts in stacks. */
static void damaged_sight(void)
{
    damage_set("S15f", 6, 0, 800);
    damage_set("S15b", 4, 3, 3000);
}

/* Inspects by the headers alone: a trunk's tensors have other names, and experts in stacks are settled file by file. */
static void inspected(void)
{
    static const struct {
        const char *id;
        int files;
    } sets[] = {{"S17a", 6}, {"S17b", 6}, {"S16d", 12}, {"S16h", 4}};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        struct set s = read_set(sets[i].id, sets[i].files);
        check_inspected(&s);
        set_free(&s);
    }
}

/* Experts in stacks by rows; a trunk with the files that say how vectors are made. */
static void damaged_stacks(void) { damage_set("S16b", 4, 3, 3000); }
static void damaged_modules(void) { damage_set("S17a", 6, 3, 1500); }

/* Layers of linear and of full attention: the settings and the header. */
static void damaged_hybrid(void) { damage_set("S18a", 4, 0, 1800); }

/* Folders of other quantisers in several files: their headers. In two of them scales come before codes. */
static void damaged_quantised(void)
{
    static const struct {
        const char *name;
        int files; /* with weights */
    } folders[] = {{"gptq4-moe-last", 2}, {"mlx-moe4-mixed", 3}, {"autoawq-last", 2}, {"ct-w4a16-asym-mixed", 3}};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char folder[1100];
        snprintf(folder, sizeof folder, "%s/%s", built_fixtures("/quantised"), folders[i].name);
        struct set s = read_folder(folder);
        damage(&s, s.n - folders[i].files, (size_t)check_length(700, 6000));
        set_free(&s);
    }
}

static void damaged_checkpoint(void)
{
    struct set s = {
        {file_read(built_fixtures("/sets"), "good-J01a.0"), file_read(built_fixtures("/sets"), "good-J01a.1")}, 2};
    damage(&s, 0, 256);
    set_free(&s);
}

static const struct check tests[] = {
    {"folders", folders},
    {"checkpoints", checkpoints},
    {"catalogue", catalogue},
    {"damaged_folder", damaged_folder},
    {"damaged_sight", damaged_sight},
    {"stacks", stacks},
    {"inspected", inspected},
    {"damaged_stacks", damaged_stacks},
    {"damaged_modules", damaged_modules},
    {"damaged_hybrid", damaged_hybrid},
    {"damaged_quantised", damaged_quantised},
    {"damaged_checkpoint", damaged_checkpoint},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
