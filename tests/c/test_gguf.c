/* SPDX-License-Identifier: MIT
 *
 * Hostile model files: the catalogue of tests/fixtures/bad-*.mjs with the exact error of each, and a small valid file
 * cut at every byte, with every bit of its header flipped, and with every field of it replaced by numbers that
 * overflow. A file either loads and then generates, or is refused with a code and a rule, with little time and memory,
 * whatever its chunks were.
 */
#include "model_file.h"
#include "base/reader.h"
#include "refusal.h"

enum { CUTS = 4, FIXED_HEADER = 24 };
#define WHOLE SIZE_MAX

/* --- one load ---------------------------------------------------------------------------------------- */

struct loading {
    const struct file *file;
    uint64_t known_size, limit;
    size_t chunk;
};

/* A loaded model must run: it writes two tokens, or its numbers are found not to be finite. */
static void generate(struct quern_engine *e)
{
    const int32_t prompt[] = {0, 1};
    struct quern_sequence *s = quern_sequence_new(e, 0, 0);
    CHECK(s != NULL);
    int n = quern_vocab_size(e) > 1 ? 2 : 1;
    int reused = quern_sequence_set(s, prompt, n, QUERN_LAST);
    CHECK(reused == 0 || reused == ERR_CONTEXT);
    while (reused == 0 && quern_sequence_pending(s) > 0) CHECK_EQ(quern_step(e, 0), OK);
    CHECK_EQ(quern_sample_begin(s, &(struct sampler_params){0}), OK);
    for (int i = 0; reused == 0 && i < 2; i++) {
        int id = quern_sample(s);
        CHECK(id == ERR_NONFINITE || (id >= 0 && id < quern_vocab_size(e)));
        if (id < 0 || quern_sequence_push(s, id)) break;
        CHECK_EQ(quern_step(e, 0), OK);
    }
    quern_sequence_free(s);
}

/* An engine that has failed keeps its error forever. */
static void check_failed(struct quern_engine *e, const struct verdict *v)
{
    const uint8_t more[64] = {0};
    struct error before = v->error;
    CHECK_EQ(before.code, v->status);
    CHECK(before.rule[0] != 0 && before.message[0] != 0);
    CHECK(strlen(before.message) < ERROR_MESSAGE);
    CHECK_EQ(quern_feed(e, more, sizeof more), v->status);
    CHECK_EQ(quern_finish(e), v->status);
    CHECK_EQ(memcmp(&before, quern_error(e), sizeof before), 0);
    CHECK(quern_sequence_new(e, 0, 0) == NULL);
}

static struct verdict load_once(const void *what)
{
    const struct loading *l = what;
    struct quern_options options = {
        .file_size = l->known_size, .memory_limit = l->limit, .chunk = 4, .context_size = 64};
    struct verdict v = {0};
    uint64_t used;
    double begin = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    struct quern_engine *e = quern_new(&options);
    CHECK(e != NULL);
    v.status = engine_feed(e, l->file, l->chunk);
    v.cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - begin;
    v.error = *quern_error(e);
    quern_memory(e, &used, &v.peak);
    if (v.status) check_failed(e, &v);
    else generate(e);
    quern_free(e);
    return v;
}

static struct verdict load(const struct file *f, uint64_t known_size, uint64_t limit, size_t chunk)
{
    return verdict_of(load_once, &(struct loading){f, known_size, limit, chunk});
}

static bool same_error(const struct error *a, const struct error *b)
{
    return a->code == b->code && a->offset == b->offset && !strcmp(a->rule, b->rule) && !strcmp(a->message, b->message);
}

/* --- the catalogue ------------------------------------------------------------------------------------ */

struct entry {
    char kind[8], id[16], codes[128], rules[128], file[64];
};

/* Prints what differs from the catalogue; returns the number of differences. */
static int judge(const struct entry *t, const char *how, const struct verdict *v)
{
    bool good = !strcmp(t->kind, "good");
    bool right = good ? v->status == OK
                      : v->status && listed(t->codes, status_name(v->status)) && listed(t->rules, v->error.rule);
    if (!right)
        printf("# %s %s: expected %s %s, is %s %s: %s\n", t->id, how, t->codes, t->rules,
               v->status ? status_name(v->status) : "loaded", v->error.rule, v->error.message);
    bool cheap = good || (verdict_quick(v) && v->peak < REFUSAL_MB << 20);
    if (!cheap)
        printf("# %s %s: refused after %.1f ms with %.1f MB\n", t->id, how, v->cpu_ms, (double)v->peak / 1048576);
    return !right + !cheap;
}

/* Any chunks give exactly the same verdict. */
static int judge_chunks(const struct entry *t, const struct file *f, const struct verdict *whole)
{
    const size_t chunks[] = {f->size <= 65536 ? 1 : 8191, 24, 4093};
    int wrong = 0;
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        if (chunks[i] < 4093 && f->size > 200000) continue;
        struct verdict v = load(f, 0, 0, chunks[i]);
        if (v.status == whole->status && same_error(&v.error, &whole->error)) continue;
        printf("# %s in chunks of %zu: %s %s, whole: %s %s\n", t->id, chunks[i], status_name(v.status), v.error.rule,
               status_name(whole->status), whole->error.rule);
        wrong++;
    }
    return wrong;
}

static int judge_line(const char *line, void *context)
{
    const struct file *good = context;
    struct entry t;
    CHECK_EQ(sscanf(line, "%7s %15s %127s %127s %63s", t.kind, t.id, t.codes, t.rules, t.file), 5);
    struct file f = file_read(built_fixtures("/bad"), t.file);
    struct verdict known = load(&f, f.size, 0, WHOLE), whole = load(&f, 0, 0, WHOLE);
    int wrong =
        judge(&t, "with its size", &known) + judge(&t, "without its size", &whole) + judge_chunks(&t, &f, &whole);
    wrong += load(good, good->size, 0, WHOLE).status != OK; /* the process still loads a good file */
    file_free(&f);
    return wrong;
}

static void catalogue(void)
{
    struct file good = file_read(built_fixtures(""), "minimal.gguf");
    CHECK_EQ(catalogue_judge("/bad", judge_line, &good), 0);
    file_free(&good);
}

/* --- one small file, damaged everywhere ---------------------------------------------------------------- */

/* Bytes before the first tensor's data. Fed byte by byte, the header is complete there if the engine knows the file's
 * size. */
static size_t header_size(const struct file *f)
{
    struct quern_engine *e = quern_new(&(struct quern_options){0});
    size_t at = 0;
    while (at < f->size && !quern_file_size(e)) CHECK_EQ(quern_feed(e, f->data + at++, 1), OK);
    quern_free(e);
    CHECK(at > 1000 && at < f->size);
    return at;
}

static void truncated(void)
{
    struct file f = file_read(built_fixtures(""), "minimal.gguf");
    size_t header = header_size(&f), full = f.size;
    for (size_t cut = 0; cut < full; cut += cut < 2 * FIXED_HEADER ? 1 : check_every(3)) {
        struct file part = {malloc(cut ? cut : 1), cut};
        memcpy(part.data, f.data, cut);
        struct verdict v[CUTS] = {load(&part, 0, 0, WHOLE), load(&part, full, 0, WHOLE), load(&part, cut, 0, WHOLE),
                                  load(&part, 0, 0, 1)};
        for (int i = 0; i < CUTS; i++) {
            CHECK_EQ(v[i].status, ERR_FORMAT);
            const char *rule = cut < FIXED_HEADER        ? "too-short"
                               : i == 2 && cut >= header ? "tensor-range"
                                                         : "truncated";
            if (strcmp(v[i].error.rule, rule))
                printf("# cut at %zu (%d): %s, expected %s\n", cut, i, v[i].error.rule, rule);
            CHECK(!strcmp(v[i].error.rule, rule));
            CHECK(i == 2 || v[i].error.offset == cut);
        }
        file_free(&part);
    }
    file_free(&f);
}

/* A damaged header may give a model that runs, or an error about the file; an error about memory only if the file's
 * size is unknown. */
static void check_damaged(const struct file *f, size_t at)
{
    for (int known = 0; known < 2; known++) {
        struct verdict v = load(f, known ? f->size : 0, 64 << 20, WHOLE);
        bool proper =
            v.status == OK || v.status == ERR_FORMAT || v.status == ERR_UNSUPPORTED || v.status == ERR_INCONSISTENT;
        if (!known) proper |= v.status == ERR_MEM_LOAD || v.status == ERR_MEM_KV || v.status == ERR_MEM_PLAN;
        if (!proper) printf("# damaged at byte %zu: %s: %s\n", at, status_name(v.status), v.error.message);
        CHECK(proper);
        if (known && !verdict_quick(&v)) printf("# damaged at byte %zu: %.1f ms\n", at, v.cpu_ms);
        CHECK(!known || verdict_quick(&v));
    }
}

/* G19: the file in two pieces, cut at every byte of its header. */
static void header_in_two(void)
{
    struct file f = file_read(built_fixtures(""), "minimal.gguf");
    size_t header = header_size(&f);
    struct quern_engine *whole = engine_load(&f, (struct quern_options){.file_size = f.size}, WHOLE);
    for (size_t cut = 1; cut <= header; cut += check_every(3)) {
        struct file first = {malloc(cut), cut}; /* of exactly this size, for the sanitizers */
        memcpy(first.data, f.data, cut);
        struct quern_engine *e = quern_new(&(struct quern_options){.file_size = f.size});
        CHECK(e != NULL);
        CHECK_EQ(quern_feed(e, first.data, cut), OK);
        file_free(&first);
        CHECK_EQ(quern_feed(e, f.data + cut, f.size - cut), OK);
        CHECK_EQ(quern_finish(e), OK);
        CHECK(!strcmp(quern_info(e), quern_info(whole)));
        generate(e);
        quern_free(e);
    }
    quern_free(whole);
    file_free(&f);
}

static void bits_turned(void)
{
    struct file f = file_read(built_fixtures(""), "minimal.gguf");
    size_t header = header_size(&f);
    for (size_t bit = 0; bit < header * 8; bit += check_every(3)) {
        f.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        check_damaged(&f, bit / 8);
        f.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    file_free(&f);
}

/* Lengths, counts, dimensions and offsets are all u32 or u64: replaces 8 bytes at every place. */
static void fields_replaced(void)
{
    static const uint64_t values[] = {0,          1ull << 31,       (1ull << 32) - 1, 1ull << 32,
                                      1ull << 63, (1ull << 63) - 1, UINT64_MAX,       UINT64_MAX - 31};
    struct file f = file_read(built_fixtures(""), "minimal.gguf");
    size_t header = header_size(&f);
    for (size_t at = 0; at + 8 <= header; at++)
        for (size_t i = at % 2; i < sizeof values / sizeof *values; i += 2) { /* half of the values at each place */
            uint64_t old = load_u64(f.data + at);
            memcpy(f.data + at, &values[i], 8);
            check_damaged(&f, at);
            memcpy(f.data + at, &old, 8);
        }
    file_free(&f);
}

/* --- reading ------------------------------------------------------------------------------------------- */

static void checked_arithmetic(void)
{
    uint64_t out = 7;
    size_t size = 7;
    CHECK(add64(UINT64_MAX - 1, 1, &out) && out == UINT64_MAX);
    CHECK(!add64(UINT64_MAX, 1, &out) && out == UINT64_MAX);
    CHECK(mul64(1ull << 32, (1ull << 32) - 1, &out) && out == UINT64_MAX - 0xFFFFFFFF);
    CHECK(!mul64(1ull << 32, 1ull << 32, &out) && mul64(0, UINT64_MAX, &out) && out == 0);
    CHECK(pad64(33, 32, &out) && out == 64 && pad64(64, 32, &out) && out == 64);
    CHECK(!pad64(UINT64_MAX, 32, &out) && out == 64);
    CHECK(to_size(ADDR_MAX, &size) && size == ADDR_MAX);
    if (ADDR_MAX < UINT64_MAX) CHECK(!to_size((uint64_t)ADDR_MAX + 1, &size) && size == ADDR_MAX);
}

/* Models whose sizes overflow when multiplied in 32 bits (wide.mjs), in an address space of 4 GiB. */
static void wide_sizes(void)
{
    const char *const names[] = {"wide-scratch.gguf", "wide-logits.gguf", "wide-pages.gguf", "wide-experts.gguf"};
    const int expected[] = {ERR_MEM_PLAN, ERR_INCONSISTENT, ERR_MEM_PLAN, ERR_MEM_PLAN};
    for (int i = 0; i < 4; i++) {
        struct file f = file_read(built_fixtures(""), names[i]);
        struct quern_engine *e = quern_new(&(struct quern_options){.memory_limit = UINT32_MAX});
        CHECK(e != NULL);
        CHECK_EQ(quern_feed(e, f.data, f.size), expected[i]);
        quern_free(e);
        file_free(&f);
    }
}

static const struct check tests[] = {
    {"checked_arithmetic", checked_arithmetic},
    {"catalogue", catalogue},
    {"truncated", truncated},
    {"header_in_two", header_in_two},
    {"bits_turned", bits_turned},
    {"fields_replaced", fields_replaced},
    {"wide_sizes", wide_sizes},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
