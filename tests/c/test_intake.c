/* SPDX-License-Identifier: MIT
 *
 * The files of a model as they arrive: recognising each one without loading a model; a GGUF file with other files
 * beside it, whose texts count; files in the form of older programs. Broken sets are in tests/fixtures/beside-gguf.mjs.
 */
#include "cli/convert.h"
#include "session.h"

enum { FILES_MOST = 8, ROWS = 16, VOCAB = 288 };

struct set {
    struct file files[FILES_MOST];
    int n;
};

/* Reads files of build/fixtures/beside, whose names are separated by spaces. */
static struct set set_read(const char *names)
{
    struct set s = {0};
    char list[256];
    snprintf(list, sizeof list, "%s", names);
    for (char *name = strtok(list, " "); name; name = strtok(NULL, " "))
        s.files[s.n++] = file_read(built_fixtures("/beside"), name);
    return s;
}

static void set_free(struct set *s)
{
    for (int i = 0; i < s->n; i++) file_free(&s->files[i]);
}

static int feed(struct quern_engine *e, const struct set *s, size_t chunk)
{
    int status = OK;
    for (int i = 0; !status && i < s->n; i++) {
        const struct file *f = &s->files[i];
        if (i > 0) status = quern_next_file(e, f->size);
        for (size_t at = 0; !status && at < f->size; at += chunk)
            status = quern_feed(e, f->data + at, f->size - at < chunk ? f->size - at : chunk);
    }
    return status ? status : quern_finish(e);
}

static struct quern_options options_of(const struct set *s)
{
    struct quern_options options = {.files = s->n, .file_size = s->files[0].size, .context_size = 64};
    for (int i = 1; i < s->n; i++) options.rest_size += s->files[i].size;
    return options;
}

static struct quern_engine *load_set(struct set s, bool inspect)
{
    struct quern_options options = options_of(&s);
    options.inspect = inspect;
    struct quern_engine *e = quern_new(&options);
    CHECK(e != NULL);
    int status = feed(e, &s, 1000);
    if (status) printf("# %s\n", quern_error(e)->message);
    CHECK_EQ(status, OK);
    set_free(&s);
    return e;
}

static struct quern_engine *load(const char *names, bool inspect) { return load_set(set_read(names), inspect); }

static void check_logits(struct quern_engine *a, struct quern_engine *b)
{
    int32_t ids[ROWS];
    float *x = logits_new(ROWS, VOCAB), *y = logits_new(ROWS, VOCAB);
    for (int i = 0; i < ROWS; i++) ids[i] = 7 * i + 3;
    CHECK(quern_vocab_size(a) == VOCAB && quern_vocab_size(b) == VOCAB);
    logits_all(a, sequence_new(a), ids, ROWS, x);
    logits_all(b, sequence_new(b), ids, ROWS, y);
    CHECK(same_bits(x, y, ROWS * VOCAB));
    free(x);
    free(y);
}

static bool is_text(struct bytes text, const char *expected) { return bytes_equal(text, expected); }

static bool says(struct quern_engine *e, const char *words) { return strstr(quern_info(e), words) != NULL; }

/* Loads description texts, and then a model of the same folder. */
static struct quern_engine *load_texts(const char *const *texts, const char *model)
{
    struct set s = {0};
    for (; *texts; texts++) {
        struct file f = {.data = malloc(strlen(*texts)), .size = strlen(*texts)};
        CHECK(f.data != NULL);
        memcpy(f.data, *texts, f.size);
        s.files[s.n++] = f;
    }
    s.files[s.n++] = file_read(built_fixtures("/beside"), model);
    return load_set(s, false);
}

/* --- an intake alone -------------------------------------------------------------------------------------- */

/* Reading the headers and what the files are together needs no model. */
static void files_without_a_model(void)
{
    struct set s = set_read("tokenizer.json config.json mistaken.gguf");
    const size_t chunks[] = {SIZE_MAX, 1000, 1};
    for (int k = 0; k < 3; k++) {
        struct mem mem = {0};
        struct intake in;
        struct error err = {0};
        intake_open(&in, &mem, s.n, s.files[0].size);
        in.headers_only = true;
        for (int i = 0; i < s.n; i++) {
            const struct file *f = &s.files[i];
            if (i > 0) CHECK_EQ(intake_next(&in, f->size, &err), OK);
            CHECK(in.sides == i && !in.weights && !in.complete);
            for (size_t at = 0, used; at < f->size && !in.complete; at += used) {
                CHECK_EQ(
                    intake_header(&in, f->data + at, f->size - at < chunks[k] ? f->size - at : chunks[k], &used, &err),
                    OK);
                CHECK(used > 0 || in.complete);
            }
            CHECK_EQ(in.complete, i + 1 == s.n);
        }
        CHECK(in.file == &in.ck && !strcmp(in.weights->name, "gguf") && in.split.files == 1 && !intake_more(&in));
        CHECK_EQ(in.tensors, in.ck.n_tensors);
        CHECK_EQ(in.bytes, s.files[2].size);
        CHECK_EQ(in.side_bytes, s.files[0].size + s.files[1].size);
        CHECK(ck_find(&in.ck, "blk.1.ffn_up.weight") && meta_find(&in.ck, "qwen3.block_count") &&
              meta_find(&in.ck, "tokenizer.ggml.merges"));
        CHECK_EQ(intake_finish(&in, &err), OK);
        CHECK_EQ(intake_next(&in, 0, &err), ERR_INCONSISTENT);
        intake_close(&in);
        CHECK_EQ(mem.used, 0);
    }
    set_free(&s);
}

/* The number of files given in advance may be wrong. */
static void nothing_but_descriptions(void)
{
    struct set s = set_read("tokenizer.json config.json");
    for (int more = 0; more < 2; more++) {
        struct quern_options options = options_of(&s);
        options.files += more;
        struct quern_engine *e = quern_new(&options);
        CHECK_EQ(feed(e, &s, SIZE_MAX), ERR_FORMAT);
        CHECK(!strcmp(quern_error(e)->rule, "missing") && strstr(quern_error(e)->message, "weights are missing"));
        quern_free(e);
    }
    set_free(&s);
}

/* --- chat templates ----------------------------------------------------------------------------------------- */

#define FILE_OF(name, text) "{\"chat_template_files\":[{\"name\":\"" name "\",\"template\":\"" text "\"}]}"
#define NAMED(name, text) "{\"name\":\"" name "\",\"template\":\"" text "\"}"

static void templates(void)
{
    static const struct {
        const char *texts[4], *chat, *tools; /* NULL: none */
    } cases[] = {
        {{FILE_OF("default", "a\\u000a\\u0022"), "{\"chat_template\":\"b\"}"}, "a\n\"", NULL},
        {{FILE_OF("default", "a"), FILE_OF("tool_use", "t"), "{\"chat_template\":\"b\"}"}, "a", "t"},
        {{FILE_OF("default", "a"), "{\"chat_template\":[" NAMED("default", "b") "," NAMED("tool_use", "t") "]}"},
         "a",
         NULL},
        {{FILE_OF("tool_use", "t"), "{\"chat_template\":\"b\"}"}, NULL, "t"},
        {{"{\"chat_template\":[" NAMED("tool_use", "t") "," NAMED("default", "b") "," NAMED("tool_use", "u") "]}"},
         "b",
         "u"},
        {{"{\"chat_template\":{\"default\":\"b\",\"tool_use\":\"t\"}}", "{\"chat_template\":\"c\"}"}, "b", "t"},
        {{"{\"transformers_version\":\"5.24.0\"}", "{}", "{\"chat_template\":\"c\"}"}, "c", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct quern_engine *e = load_texts(cases[i].texts, "mistaken.gguf");
        CHECK(cases[i].chat ? is_text(quern_chat_template(e), cases[i].chat) : quern_chat_template(e).data == NULL);
        CHECK(cases[i].tools ? is_text(quern_tool_template(e), cases[i].tools) : quern_tool_template(e).data == NULL);
        CHECK(is_text(quern_rerank_template(e), "a rank"));
        quern_free(e);
    }
}

/* --- beside a GGUF file ------------------------------------------------------------------------------------- */

static void texts_of_other_files(void)
{
    struct quern_engine *plain = load("plain.gguf", false), *own = load("mistaken.gguf", false),
                        *e = load("generation.json config.json template.json index.json tokenizer.json mistaken.gguf",
                                  false);
    check_logits(plain, e);
    check_logits(plain, own);
    CHECK(is_text(quern_token(own, 264), "<other264>") && is_text(quern_token(e, 264), "<|im_end|>"));
    CHECK(is_text(quern_chat_template(own), "another") &&
          is_text(quern_chat_template(e), "{% for m in messages %}{{ m.content }}{% endfor %}"));
    CHECK(is_text(quern_tool_template(own), "another with tools") && quern_tool_template(e).data == NULL);
    CHECK(is_text(quern_rerank_template(own), "a rank") && is_text(quern_rerank_template(e), "a rank"));
    for (int id = 0; id < VOCAB; id++) {
        struct bytes wanted = quern_token(plain, id), token = quern_token(e, id);
        CHECK(bytes_compare(wanted, token) == 0 && quern_token_type(plain, id) == quern_token_type(e, id));
    }
    CHECK(quern_is_end(e, 264) && quern_is_end(e, 287) && quern_is_end(e, 5) && !quern_is_end(e, 9) &&
          !quern_is_end(own, 287));
    CHECK(says(e, "\"files\":6") && says(e, "\"format\":\"gguf\"") && says(e, "\"layers\":2") &&
          says(e, "\"assumed\":{}"));
    quern_free(plain);
    quern_free(own);
    quern_free(e);
    plain = load("generation.json tokenizer.json mistaken.gguf", true);
    CHECK(says(plain, "\"files\":3") && says(plain, "\"tokens\":288") && says(plain, "\"endTokens\":[264,287,5,262]"));
    quern_free(plain);
}

/* The plan counts everything once. */
static void planned(void)
{
    struct set s = set_read("tokenizer.json mistaken.gguf");
    struct quern_options options = options_of(&s);
    struct quern_engine *e = quern_new(&options);
    uint64_t used, peak;
    CHECK_EQ(feed(e, &s, SIZE_MAX), OK);
    sequence_new(e);
    quern_memory(e, &used, &peak);
    uint64_t planned = quern_plan(e)->total;
    printf("# planned %llu, peak %llu\n", (unsigned long long)planned, (unsigned long long)peak);
    CHECK(planned < peak / 100 * 103 && peak < planned / 100 * 103);
    quern_free(e);
    set_free(&s);
}

static void every_allocation_fails(void)
{
    struct set s = set_read("generation.json tokenizer.json mistaken.gguf");
    struct quern_options options = options_of(&s);
    int failures = 0;
    for (uint64_t at = 1;; at++) {
        struct quern_engine *e = quern_new(&options);
        CHECK(e != NULL);
        e->mem.fail_at = e->mem.n_allocs + at;
        int status = feed(e, &s, 4096);
        bool failed = e->mem.n_allocs >= e->mem.fail_at;
        CHECK(failed ? status == ERR_MEM_LOAD || status == ERR_MEM_PLAN : status == OK);
        failures += status != OK;
        quern_free(e);
        if (!failed) break;
    }
    printf("# %d allocations\n", failures);
    CHECK(failures > 60);
    set_free(&s);
}

/* --- converted ---------------------------------------------------------------------------------------------- */

struct disk {
    const struct set *in;
    uint8_t out[1 << 20];
    size_t size;
};

static size_t disk_read(void *context, int file, uint64_t at, void *bytes, size_t n)
{
    const struct file *f = &((struct disk *)context)->in->files[file];
    if (at >= f->size) return 0;
    size_t take = f->size - (size_t)at < n ? f->size - (size_t)at : n;
    memcpy(bytes, f->data + at, take);
    return take;
}

static bool disk_write(void *context, uint64_t at, const void *bytes, size_t n)
{
    struct disk *d = context;
    CHECK(at + n <= sizeof d->out);
    memcpy(d->out + at, bytes, n);
    if (at + n > d->size) d->size = (size_t)at + n;
    return true;
}

/* The new file has the texts that counted, and a token for each row of the embedding. */
static void converted(void)
{
    struct set s = set_read("tokenizer.json template.json padded.gguf");
    struct disk *d = calloc(1, sizeof *d);
    uint64_t sizes[FILES_MOST];
    struct error err;
    d->in = &s;
    for (int i = 0; i < s.n; i++) sizes[i] = s.files[i].size;
    struct convert *c = convert_open(&(struct convert_options){.recipe = recipe_by_name("q8_0"),
                                                               .threads = 2,
                                                               .n_files = s.n,
                                                               .sizes = sizes,
                                                               .io = {d, disk_read, disk_write}},
                                     &err);
    CHECK(c != NULL);
    int status;
    while ((status = convert_step(c, &err)) == 1) continue;
    CHECK_EQ(status, OK);
    convert_close(c);
    struct file made = {d->out, d->size};
    struct quern_engine *e = engine_load(&made, (struct quern_options){.context_size = 64}, SIZE_MAX);
    CHECK(is_text(quern_token(e, 264), "<|im_end|>") && quern_chat_template(e).size > 20);
    CHECK(says(e, "\"tokens\":320") && says(e, "\"vocabSize\":320") && quern_token_type(e, 300) == 5 &&
          says(e, "\"Q8_0\""));
    quern_free(e);
    free(d);
    set_free(&s);
}

/* --- what older programs wrote -------------------------------------------------------------------------------- */

/* A Qwen3 model with the architecture name and the keys of qwen2, and without the name of the split of text
 * (tokenizer.ggml.pre). */
static void older_names(void)
{
    struct quern_engine *plain = load("plain.gguf", false), *older = load("older.gguf", false),
                        *seen = load("older.gguf", true);
    check_logits(plain, older);
    const char *const words = "\"assumed\":{\"general.architecture\":\"qwen3\",\"tokenizer.ggml.pre\":\"qwen2\"}";
    CHECK(says(older, words) && says(seen, words) && says(plain, "\"assumed\":{}"));
    CHECK(says(older, "\"architecture\":\"qwen3\""));
    quern_free(plain);
    quern_free(older);
    quern_free(seen);
}

/* --- what depends on the architecture and the size ---------------------------------------------------------------- */

static void recommendations_by_size(void)
{
    static const struct cards cards[] = {{.dim = 64}, {.dim = 2048}, {.dim = ANY_DIM}};
    const struct architecture a = {.cards = cards};
    static const int dims[] = {1, 64, 65, 2048, 2049, 1 << 24};
    for (int i = 0; i < 6; i++) CHECK(architecture_cards(&a, dims[i]) == cards + i / 2);
    for (const struct architecture *one = architectures; one->name; one++)
        for (const struct cards *c = one->cards;; c++) {
            CHECK(c->plain.top_p > 0 && c->thinking.top_p > 0 && c->images.top_p > 0);
            if (c->dim == ANY_DIM) break;
        }
}

static const struct check tests[] = {
    {"files_without_a_model", files_without_a_model},
    {"nothing_but_descriptions", nothing_but_descriptions},
    {"texts_of_other_files", texts_of_other_files},
    {"templates", templates},
    {"planned", planned},
    {"every_allocation_fails", every_allocation_fails},
    {"converted", converted},
    {"older_names", older_names},
    {"recommendations_by_size", recommendations_by_size},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
