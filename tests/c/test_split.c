/* SPDX-License-Identifier: MIT
 *
 * Split models (G33): the same bits as the whole file, however the tensors are distributed; parts that are missing, in
 * another order or from another model are refused, and a part alone is recognised as one.
 */
#include "session.h"

enum { PARTS_MAX = 3, PART_HEADER = 128 << 10 }; /* bytes that reading a later part's header takes */

struct parts {
    struct file file[PARTS_MAX];
    int n;
};

static struct parts parts_read(const char *name, int n)
{
    struct parts p = {.n = n};
    for (int i = 0; i < n; i++) {
        char file[128];
        snprintf(file, sizeof file, "%.80s-%05d-of-%05d.gguf", name, i + 1, n);
        p.file[i] = file_read(built_fixtures("/split"), file);
    }
    return p;
}

static void parts_free(struct parts *p)
{
    for (int i = 0; i < p->n; i++) file_free(&p->file[i]);
}

static struct quern_options options_of(const struct parts *p)
{
    struct quern_options options = {.files = p->n, .file_size = p->file[0].size};
    for (int i = 1; i < p->n; i++) options.rest_size += p->file[i].size;
    return options;
}

static int feed_all(struct quern_engine *e, const struct file *f, size_t chunk)
{
    int status = OK;
    for (size_t at = 0; !status && at < f->size; at += chunk)
        status = quern_feed(e, f->data + at, f->size - at < chunk ? f->size - at : chunk);
    return status;
}

/* Feeds the first n parts in the given order. Returns the status of quern_finish, or of the first call that failed. */
static int feed_parts(struct quern_engine *e, const struct parts *p, const int *order, int n, size_t chunk)
{
    int status = OK;
    for (int i = 0; !status && i < n; i++) {
        const struct file *f = &p->file[order[i]];
        if (i > 0) status = quern_next_file(e, f->size);
        if (!status) status = feed_all(e, f, chunk);
    }
    return status ? status : quern_finish(e);
}

static const int in_order[] = {0, 1, 2};

/* --- parts that belong together ------------------------------------------------------------------------- */

static void same_as_whole(const char *name, const char *kind, size_t chunk)
{
    char base[80];
    snprintf(base, sizeof base, "%s%s", name, kind);
    struct parts p = parts_read(base, 3);
    struct reference r = reference_new(name);
    struct quern_options options = options_of(&p);
    struct quern_engine *e = quern_new(&options);
    float *logits = logits_new(GOLDEN_ROWS, GOLDEN_VOCAB);
    int status = feed_parts(e, &p, in_order, 3, chunk);
    if (status) printf("# %s\n", quern_error(e)->message);
    CHECK_EQ(status, OK);
    CHECK(strstr(quern_info(e), "\"files\":3") != NULL);
    logits_all(e, sequence_new(e), r.ids, GOLDEN_ROWS, logits);
    CHECK(same_bits(logits, r.logits, GOLDEN_ROWS * GOLDEN_VOCAB));
    quern_free(e);
    free(logits);
    reference_free(&r);
    parts_free(&p);
}

static void same_bits_as_whole(void)
{
    const char *const names[] = {"nano.Q8_0", "nano.Q4_K_M", "duo.F32", "moe-nano.Q8_0"};
    const size_t chunks[] = {SIZE_MAX, 1000, 1};
    for (int i = 0; i < 4; i++)
        for (size_t k = (size_t)i % check_every(2); k < 3; k += check_every(2)) {
            same_as_whole(names[i], "", chunks[k]);
            same_as_whole(names[i], ".bare", chunks[k]);
        }
}

/* The logits of the first tokens of a model with a vocabulary of 288. */
static float *first_logits(struct quern_engine *e)
{
    enum { ROWS = 16, VOCAB = 288 };
    int32_t ids[ROWS];
    for (int i = 0; i < ROWS; i++) ids[i] = 7 * i + 3;
    float *logits = logits_new(ROWS, VOCAB);
    CHECK_EQ(e->model->config.vocab_size, VOCAB);
    logits_all(e, sequence_new(e), ids, ROWS, logits);
    return logits;
}

/* Any part may show which layers have experts. */
static void experts_cut_anywhere(void)
{
    struct file whole = file_read(built_fixtures(""), "moe.gguf");
    struct quern_engine *e = engine_load(&whole, (struct quern_options){0}, SIZE_MAX);
    float *expected = first_logits(e);
    int n = (int)e->intake.tensors;
    CHECK(n > 30);
    quern_free(e);
    for (int at = 1; at < n; at++) {
        char name[32];
        snprintf(name, sizeof name, "moe.at%d", at);
        struct parts p = parts_read(name, 2);
        struct quern_options options = options_of(&p);
        e = quern_new(&options);
        CHECK_EQ(feed_parts(e, &p, in_order, 2, SIZE_MAX), OK);
        float *logits = first_logits(e);
        CHECK(same_bits(logits, expected, 16 * 288));
        quern_free(e);
        free(logits);
        parts_free(&p);
    }
    free(expected);
    file_free(&whole);
}

/* With the first header and the sizes of the other parts, the plan is that of the whole model. */
static void planned_from_the_first(void)
{
    const char *const names[] = {"nano.Q8_0", "nano.Q8_0.bare"};
    for (int i = 0; i < 2; i++) {
        struct parts p = parts_read(names[i], 3);
        struct quern_options options = options_of(&p);
        struct quern_engine *e = quern_new(&options);
        uint64_t used, peak;
        CHECK_EQ(feed_parts(e, &p, in_order, 3, SIZE_MAX), OK);
        sequence_new(e);
        quern_memory(e, &used, &peak);
        uint64_t planned = quern_plan(e)->total;
        printf("# planned %llu, peak %llu\n", (unsigned long long)planned, (unsigned long long)peak);
        CHECK(planned < peak / 100 * 103 && peak < planned / 100 * 103 + PART_HEADER);
        options.memory_limit = planned - planned / 10;
        quern_free(e);
        e = quern_new(&options);
        CHECK_EQ(feed_all(e, &p.file[0], SIZE_MAX), ERR_MEM_PLAN);
        quern_free(e);
        parts_free(&p);
    }
}

/* --- parts that do not ------------------------------------------------------------------------------------ */

static void refuse(const char *name, int parts, int files, const int *order, int n, int expected, const char *words)
{
    struct parts p = parts_read(name, parts);
    struct quern_options options = options_of(&p);
    options.files = files;
    options.file_size = 0;
    struct quern_engine *e = quern_new(&options);
    int status = feed_parts(e, &p, order, n, SIZE_MAX);
    bool said = strstr(quern_error(e)->message, words) != NULL;
    if (status != expected || !said) printf("# %s: %s\n", name, quern_error(e)->message);
    CHECK_EQ(status, expected);
    CHECK(said);
    CHECK_EQ(quern_feed(e, "x", 1), expected); /* forever */
    quern_free(e);
    parts_free(&p);
}

static void g33_refused(void)
{
    const int swapped[] = {0, 2, 1}, twice[] = {0, 1, 1}, second[] = {1};
    refuse("nano.Q8_0", 3, 1, in_order, 1, ERR_UNSUPPORTED, "the first of the 3 files");
    refuse("nano.Q8_0", 3, 1, second, 1, ERR_UNSUPPORTED, "file 2 of a model that is split into 3");
    refuse("nano.Q8_0", 3, 3, second, 1, ERR_UNSUPPORTED, "begin with the first");
    refuse("nano.Q8_0", 3, 2, in_order, 2, ERR_INCONSISTENT, "2 files were given, but the model consists of 3");
    refuse("nano.Q8_0", 3, 3, swapped, 3, ERR_INCONSISTENT,
           "File 2 of 3 was expected; this one says it is file 3 of 3");
    refuse("nano.Q8_0", 3, 3, twice, 3, ERR_INCONSISTENT, "File 3 of 3 was expected");
    refuse("nano.Q8_0", 3, 3, in_order, 2, ERR_INCONSISTENT, "The last 1 of the split model's files");
    refuse("nano.Q8_0.short", 2, 2, in_order, 2, ERR_FORMAT, "is missing");
    refuse("nano.Q8_0.miscounted", 2, 2, in_order, 2, ERR_INCONSISTENT, "tensors, but there should be");
    refuse("moe.both", 2, 2, in_order, 2, ERR_INCONSISTENT,
           "Layer 2 has experts in one file of the split model and is dense in another");
}

/* A part of another model: other counts, other shapes, or tensors that exist already. */
static void g33_mixed(void)
{
    struct parts a = parts_read("nano.Q8_0", 3), b = parts_read("duo.F32", 3), bare = parts_read("nano.Q8_0.bare", 3);
    const struct file others[] = {b.file[1], bare.file[1]};
    for (int i = 0; i < 2; i++) {
        struct quern_options options = options_of(&a);
        struct quern_engine *e = quern_new(&options);
        CHECK_EQ(feed_all(e, &a.file[0], SIZE_MAX), OK);
        CHECK_EQ(quern_next_file(e, others[i].size), OK);
        int status = feed_all(e, &others[i], SIZE_MAX);
        printf("# %s\n", quern_error(e)->message);
        CHECK_EQ(status, ERR_INCONSISTENT);
        CHECK(!strcmp(quern_error(e)->rule, "split"));
        quern_free(e);
    }
    parts_free(&a);
    parts_free(&b);
    parts_free(&bare);
}

/* A part that ends early, at any place, and a next file where none can be. */
static void ends_early(void)
{
    struct parts p = parts_read("nano.Q8_0", 3);
    for (size_t cut = 0; cut < p.file[1].size; cut += cut < 2000 ? check_every(3) : 977) {
        struct quern_options options = options_of(&p);
        struct quern_engine *e = quern_new(&options);
        CHECK_EQ(feed_all(e, &p.file[0], SIZE_MAX), OK);
        CHECK_EQ(quern_next_file(e, 0), OK);
        CHECK_EQ(feed_all(e, &(struct file){p.file[1].data, cut}, SIZE_MAX), OK);
        int status = cut % 2 ? quern_next_file(e, 0) : quern_finish(e);
        CHECK_EQ(status, ERR_FORMAT);
        quern_free(e);
    }
    struct reference r = reference_new("nano.Q8_0");
    struct quern_engine *e = quern_new(&(struct quern_options){0});
    CHECK_EQ(feed_all(e, &r.file, SIZE_MAX), OK);
    CHECK_EQ(quern_next_file(e, 0), ERR_INCONSISTENT);
    quern_free(e);
    e = engine_load(&r.file, (struct quern_options){0}, SIZE_MAX);
    CHECK_EQ(quern_next_file(e, 0), ERR_BUSY);
    quern_free(e);
    reference_free(&r);
    parts_free(&p);
}

/* Every allocation while loading three parts fails once. */
static void q04_allocations_fail(void)
{
    struct parts p = parts_read("nano.Q8_0", 3);
    struct quern_options options = options_of(&p);
    options.context_size = 64;
    int failures = 0;
    for (uint64_t at = 1;; at++) {
        struct quern_engine *e = quern_new(&options);
        CHECK(e != NULL);
        e->mem.fail_at = e->mem.n_allocs + at;
        int status = feed_parts(e, &p, in_order, 3, 4096);
        bool failed = e->mem.n_allocs >= e->mem.fail_at;
        CHECK(failed ? status == ERR_MEM_LOAD || status == ERR_MEM_PLAN : status == OK);
        failures += status != OK;
        quern_free(e);
        if (!failed) break;
    }
    printf("# %d allocations\n", failures);
    CHECK(failures > 60);
    parts_free(&p);
}

static const struct check tests[] = {
    {"same_bits_as_whole", same_bits_as_whole},
    {"experts_cut_anywhere", experts_cut_anywhere},
    {"planned_from_the_first", planned_from_the_first},
    {"g33_refused", g33_refused},
    {"g33_mixed", g33_mixed},
    {"ends_early", ends_early},
    {"q04_allocations_fail", q04_allocations_fail},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
