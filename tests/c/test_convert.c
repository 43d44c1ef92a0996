/* SPDX-License-Identifier: MIT
 *
 * Conversion between files in memory: the same bytes with any number of threads, as close to the floats as llama.cpp's
 * own files, and every possible failure, without a leak.
 */
#include "blocks.h"
#include "load/checkpoint.h"
#include "cli/convert.h"
#include "load/format.h"
#include "load/metadata.h"
#include "weights/quantize.h"

enum { FILES_MAX = 9 };

/* The input files, and the new file as it grows. */
struct disk {
    struct file in[FILES_MAX];
    int n;
    uint8_t *out;
    size_t size, room;
    int writes, fail_at; /* number of the write that fails, from 1; 0: none */
    int reads, shrink_at; /* number of the read before which the file loses half; 0: none */
};

static size_t disk_read(void *context, int file, uint64_t at, void *bytes, size_t n)
{
    struct disk *d = context;
    struct file *f = &d->in[file];
    if (++d->reads == d->shrink_at) f->size /= 2;
    if (at >= f->size) return 0;
    size_t take = f->size - (size_t)at < n ? f->size - (size_t)at : n;
    memcpy(bytes, f->data + at, take);
    return take;
}

static bool disk_write(void *context, uint64_t at, const void *bytes, size_t n)
{
    struct disk *d = context;
    if (++d->writes == d->fail_at) return false;
    CHECK(at + n <= d->room);
    memcpy(d->out + at, bytes, n);
    if (at + n > d->size) d->size = (size_t)at + n;
    return true;
}

static void disk_free(struct disk *d)
{
    for (int i = 0; i < d->n; i++) file_free(&d->in[i]);
    free(d->out);
    *d = (struct disk){0};
}

/* Complete input files; the new file is smaller than their sum. */
static struct disk disk_of(struct file first)
{
    struct disk d = {.in = {first}, .n = 1, .room = first.size + 65536};
    d.out = calloc(1, d.room);
    CHECK(d.out != NULL);
    return d;
}

static struct disk golden(const char *name) { return disk_of(file_read(golden_folder(), name)); }

/* Reads the files of a folder, in this order. */
static struct disk folder(const char *name, const char *const *files, int n)
{
    struct disk d = {.room = 65536};
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", check_fixtures, name);
    for (int i = 0; i < n; i++) {
        d.in[d.n++] = file_read(path, files[i]);
        d.room += d.in[i].size;
    }
    d.out = calloc(1, d.room);
    CHECK(d.out != NULL);
    return d;
}

#define FOLDER(name, files) folder(name, files, (int)(sizeof(files) / sizeof *(files)))

/* A Hugging Face folder with single experts, in four files. */
static struct disk experts(void)
{
    static const char *const files[] = {"config.json",
                                        "generation_config.json",
                                        "tokenizer_config.json",
                                        "tokenizer.json",
                                        "model.safetensors.index.json",
                                        "model-00001-of-00004.safetensors",
                                        "model-00002-of-00004.safetensors",
                                        "model-00003-of-00004.safetensors",
                                        "model-00004-of-00004.safetensors"};
    return FOLDER("hf/moe", files);
}

/* A folder of Qwen3.5; two value heads belong to each key head. */
static struct disk hybrid(void)
{
    static const char *const files[] = {"config.json", "generation_config.json", "tokenizer_config.json",
                                        "tokenizer.json", "model.safetensors"};
    return FOLDER("qwen35/hyb.hf", files);
}

static int convert(struct disk *d, const char *type, int threads, uint64_t memory_limit, struct error *err)
{
    uint64_t sizes[FILES_MAX];
    for (int i = 0; i < d->n; i++) sizes[i] = d->in[i].size;
    struct convert_options o = {.recipe = recipe_by_name(type),
                                .threads = threads,
                                .memory_limit = memory_limit,
                                .n_files = d->n,
                                .sizes = sizes,
                                .io = {d, disk_read, disk_write}};
    *err = (struct error){0};
    struct convert *c = convert_open(&o, err);
    int status = c ? 1 : err->code;
    uint64_t done = 0, total = 0, before = 0;
    while (status == 1) {
        status = convert_step(c, err);
        convert_progress(c, &done, &total);
        CHECK(done >= before && done <= total);
        before = done;
    }
    if (!status) CHECK(done == total && total > 0);
    if (c && status < 0) CHECK_EQ(convert_step(c, err), status);
    convert_close(c);
    return status;
}

static const char *const types[] = {"q8_0", "q4_0", "q4_k", "q6_k"};
static const char *const models[] = {"nano.F32.gguf", "nano.BF16.gguf", "duo.F32.gguf", "moe-nano.F32.gguf"};

/* --- tests --------------------------------------------------------------------------------------------- */

static void threads_change_nothing(void)
{
    struct error err;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (size_t t = m % check_every(2); t < sizeof types / sizeof *types; t += check_every(2)) {
            struct disk one = golden(models[m]), more = golden(models[m]);
            CHECK_EQ(convert(&one, types[t], 1, 0, &err), OK);
            CHECK_EQ(convert(&more, types[t], 2 + (int)t, 0, &err), OK);
            CHECK_EQ(more.size, one.size);
            CHECK(memcmp(more.out, one.out, one.size) == 0);
            CHECK(one.size < one.in[0].size && one.size % 32 == 0);
            disk_free(&one);
            disk_free(&more);
        }
}

/* What the engine reports about the new file. */
static void the_engine_loads_them(void)
{
    struct error err;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            struct disk d = golden(models[m]);
            CHECK_EQ(convert(&d, types[t], 2, 0, &err), OK);
            struct quern_engine *e = quern_new(&(struct quern_options){.file_size = d.size, .context_size = 64});
            CHECK(e && quern_feed(e, d.out, d.size) == OK && quern_finish(e) == OK);
            CHECK(strstr(quern_info(e), "\"format\":\"gguf\"") != NULL);
            quern_free(e);
            disk_free(&d);
        }
}

/* --- against llama.cpp's files ------------------------------------------------------------------------- */

static struct checkpoint header_of(struct mem *mem, const uint8_t *bytes, size_t size)
{
    struct checkpoint ck;
    struct error err;
    size_t used;
    ck_init(&ck, mem, size);
    CHECK_EQ(ck_header(&ck, bytes, size, &used, &err), OK);
    return ck;
}

/* The error of a file's tensor against its floats. */
static double square_error(const struct tensor *t, const uint8_t *file, const uint8_t *floats)
{
    const struct ref_type *type = NULL;
    float x[256], y[256];
    double sum = 0;
    for (int i = 0; i < REF_TYPES; i++)
        if (!strcmp(ref_types[i].name, t->type->name)) type = &ref_types[i];
    CHECK(type != NULL && t->cols * t->rows % t->type->block == 0);
    for (uint64_t at = 0, n = t->type->block; at < t->cols * t->rows; at += n) {
        memcpy(x, floats + 4 * at, 4 * n);
        ref_row(type, file + t->offset + at / n * t->type->bytes, (int)n, y);
        for (uint64_t i = 0; i < n; i++) sum += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    }
    return sum;
}

/* Compares tensors that have the same type in both files. Where the format leaves no choice (Q8_0, Q4_0), the bytes are
 * equal. */
static int compare_tensors(const struct disk *d, const struct file *theirs)
{
    struct mem mem = {0};
    struct checkpoint f = header_of(&mem, d->in[0].data, d->in[0].size), a = header_of(&mem, d->out, d->size),
                      b = header_of(&mem, theirs->data, theirs->size);
    int alike = 0;
    CHECK_EQ(a.n_tensors, b.n_tensors);
    for (size_t i = 0; i < a.n_tensors; i++) {
        char name[80];
        struct bytes view = ck_view(&a, a.tensors[i].name);
        snprintf(name, sizeof name, "%.*s", (int)view.size, (const char *)view.data);
        const struct tensor *ours = &a.tensors[i], *other = ck_find(&b, name), *floats = ck_find(&f, name);
        CHECK(other != NULL && floats != NULL);
        if (ours->type != other->type) continue;
        const uint8_t *x = d->in[0].data + floats->offset;
        CHECK(square_error(ours, d->out, x) <= square_error(other, theirs->data, x));
        if (strstr(ours->type->name, "_0"))
            CHECK(memcmp(d->out + ours->offset, theirs->data + other->offset, (size_t)ours->bytes) == 0);
        alike++;
    }
    ck_close(&f);
    ck_close(&a);
    ck_close(&b);
    return alike;
}

static void as_near_as_llama_cpp(void)
{
    static const char *const pairs[][3] = {
        {"nano.F32.gguf", "q8_0", "nano.Q8_0.gguf"},         {"nano.F32.gguf", "q4_0", "nano.Q4_0.gguf"},
        {"nano.F32.gguf", "q4_k", "nano.Q4_K_M.gguf"},       {"nano.F32.gguf", "q6_k", "nano.Q6_K.gguf"},
        {"nano.F32.gguf", "q5_k", "nano.Q5_K_M.gguf"},       {"nano.F32.gguf", "iq4_xs", "nano.IQ4_XS.gguf"},
        {"moe-nano.F32.gguf", "q8_0", "moe-nano.Q8_0.gguf"}, {"moe-nano.F32.gguf", "q4_k", "moe-nano.Q4_K_M.gguf"},
    };
    struct error err;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct disk d = golden(pairs[i][0]);
        struct file theirs = file_read(golden_folder(), pairs[i][2]);
        CHECK_EQ(convert(&d, pairs[i][1], 2, 0, &err), OK);
        CHECK(compare_tensors(&d, &theirs) >= 10);
        file_free(&theirs);
        disk_free(&d);
    }
}

/* --- against another converter's file ------------------------------------------------------------------ */

/* Whether a tensor has the values that another file has as floats. */
static bool is_made_of(const struct tensor *t, const uint8_t *file, const struct tensor *floats, const uint8_t *other)
{
    const size_t row = (size_t)t->cols / t->type->block * t->type->bytes;
    float *x = malloc((size_t)t->cols * sizeof *x);
    uint8_t *blocks = malloc(row);
    CHECK(x && blocks);
    bool same = t->cols == floats->cols && t->rows == floats->rows && t->n_dims == floats->n_dims;
    for (size_t r = 0; same && r < t->rows; r++) {
        memcpy(x, other + floats->offset + r * (size_t)t->cols * sizeof *x, (size_t)t->cols * sizeof *x);
        CHECK(quantizer(t->type)(x, NULL, (int)t->cols, blocks));
        same = !memcmp(file + t->offset + r * row, blocks, row);
    }
    free(x);
    free(blocks);
    return same;
}

/* Compares the converted file with the floats of `theirs`. Only GGUF files have the block that drafts tokens, blk.4. */
static void check_values(const struct disk *d, const struct file *theirs, bool drafts)
{
    static const char *const floats[] = {"norm.weight", "ssm_alpha.weight", "ssm_beta.weight", "ssm_conv1d.weight",
                                         "ssm_a",       "ssm_dt.bias"};
    struct mem mem = {0};
    struct checkpoint a = header_of(&mem, d->out, d->size), b = header_of(&mem, theirs->data, theirs->size);
    size_t n = 0;
    for (size_t i = 0; i < b.n_tensors; i++) {
        char name[80];
        struct bytes view = ck_view(&b, b.tensors[i].name);
        snprintf(name, sizeof name, "%.*s", (int)view.size, (const char *)view.data);
        if (!drafts && !strncmp(name, "blk.4.", 6)) continue;
        const struct tensor *ours = ck_find(&a, name);
        bool stays = false;
        for (size_t f = 0; f < sizeof floats / sizeof *floats; f++) stays |= strstr(name, floats[f]) != NULL;
        if (!ours || stays != !strcmp(ours->type->name, "F32") ||
            !is_made_of(ours, d->out, &b.tensors[i], theirs->data))
            check_fail(__FILE__, __LINE__, name);
        n++;
    }
    CHECK_EQ(a.n_tensors, n);
    ck_close(&a);
    ck_close(&b);
}

static bool is_about_blocks(const char *key) { return strstr(key, ".block_count") || strstr(key, ".nextn"); }

/* Compares the settings. */
static void check_settings(const struct disk *d, const struct file *theirs, bool drafts)
{
    const int64_t none = 0;
    struct mem mem = {0};
    struct checkpoint a = header_of(&mem, d->out, d->size), b = header_of(&mem, theirs->data, theirs->size);
    int64_t blocks;
    int n = 0;
    for (size_t i = 0; i < b.n_metas; i++) {
        struct bytes key = ck_view(&b, b.metas[i].key), value = ck_view(&b, b.metas[i].value);
        char name[80];
        snprintf(name, sizeof name, "%.*s", (int)key.size, (const char *)key.data);
        if (strncmp(name, "qwen35.", 7) || is_about_blocks(name)) continue;
        const struct meta *m = meta_find(&a, name);
        struct bytes ours = m ? ck_view(&a, m->value) : (struct bytes){NULL, 0};
        if (!m || m->type != b.metas[i].type || ours.size != value.size || memcmp(ours.data, value.data, value.size))
            check_fail(__FILE__, __LINE__, name);
        n++;
    }
    CHECK_EQ(n, 17);
    CHECK_EQ(meta_int(&a, "qwen35.block_count", 0, INT32_MAX, &none, &blocks, NULL), OK);
    CHECK_EQ(blocks, drafts ? 5 : 4);
    CHECK_EQ(meta_find(&a, "qwen35.nextn_predict_layers") != NULL, drafts);
    CHECK(!meta_find(&a, "qwen35.norm.zero_centered") && !meta_find(&a, "qwen35.ssm.grouped"));
    ck_close(&a);
    ck_close(&b);
}

/* Qwen3.5, from a folder and from a file: the values of norms and decays, the order of heads, and small matrices that
 * stay floats. */
static void hybrids_are_alike(void)
{
    struct error err;
    struct file theirs = file_read(golden_folder(), "hyb.F32.gguf");
    for (size_t i = 0; i < 2 * sizeof types / sizeof *types; i++) {
        struct disk d = i % 2 ? golden("hyb.F32.gguf") : hybrid();
        CHECK_EQ(convert(&d, types[i / 2], 1 + (int)i % 3, 0, &err), OK);
        check_values(&d, &theirs, i % 2);
        check_settings(&d, &theirs, i % 2);
        disk_free(&d);
    }
    file_free(&theirs);
}

/* --- failures ------------------------------------------------------------------------------------------ */

static void experts_are_gathered(void)
{
    struct error err;
    struct mem mem = {0};
    struct disk one = experts(), more = experts();
    CHECK_EQ(convert(&one, "q4_k", 1, 0, &err), OK);
    CHECK_EQ(convert(&more, "q4_k", 3, 0, &err), OK);
    CHECK(one.size == more.size && memcmp(one.out, more.out, one.size) == 0);
    struct checkpoint ck = header_of(&mem, one.out, one.size);
    const struct tensor *stack = ck_find(&ck, "blk.2.ffn_up_exps.weight");
    CHECK(stack && stack->cols == 32 && stack->stack == 12 && stack->rows == 12 * 16);
    CHECK_EQ(ck.n_tensors, 2 + 2 * 12 + 11);
    ck_close(&ck);
    disk_free(&one);
    disk_free(&more);
    uint64_t limit = 1024;
    for (int status = ERR_MEM_LOAD; status; limit = limit * 9 / 8) {
        struct disk d = experts();
        status = convert(&d, "q8_0", 2, limit, &err);
        disk_free(&d);
        CHECK(!status || (status == ERR_MEM_LOAD && limit < 1u << 26));
    }
}

static void every_write_can_fail(void)
{
    struct error err;
    for (int at = 1;; at += (int)check_every(3)) {
        struct disk d = golden("duo.F32.gguf");
        d.fail_at = at;
        int status = convert(&d, "q4_0", 2, 0, &err);
        bool reached = d.writes >= at;
        disk_free(&d);
        CHECK_EQ(status, reached ? ERR_PARAM : OK);
        if (!reached) break;
        CHECK(!strcmp(err.rule, "write"));
    }
}

static void memory_can_be_short(void)
{
    struct error err;
    for (uint64_t limit = 1024;; limit = limit * 9 / 8) {
        struct disk d = golden("moe-nano.F32.gguf");
        int status = convert(&d, "q4_k", 2, limit, &err);
        disk_free(&d);
        if (!status) break;
        CHECK_EQ(status, ERR_MEM_LOAD);
        CHECK(limit < 1u << 26);
    }
}

/* Makes the last values of the last tensor infinite or NaN. */
static void not_finite(void)
{
    static const uint32_t odd[] = {0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF};
    struct error err;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            struct disk d = golden("duo.F32.gguf");
            memcpy(d.in[0].data + d.in[0].size - 400, &odd[i], 4);
            CHECK_EQ(convert(&d, types[t], 3, 0, &err), ERR_NONFINITE);
            CHECK(!strcmp(err.rule, "value") && strstr(err.message, "Row 255 of the tensor blk.1.ffn_down.weight"));
            disk_free(&d);
        }
}

static void refused(void)
{
    static const char *const quantised[] = {"nano.Q8_0.gguf", "nano.Q4_K_M.gguf", "moe-nano.Q8_0.gguf"};
    struct error err;
    for (size_t i = 0; i < sizeof quantised / sizeof *quantised; i++) {
        struct disk d = golden(quantised[i]);
        CHECK_EQ(convert(&d, "q4_0", 1, 0, &err), ERR_UNSUPPORTED);
        CHECK(!strcmp(err.rule, "quantisation"));
        CHECK_EQ(d.writes, 0);
        disk_free(&d);
    }
    CHECK(recipe_by_name("q2_k") == NULL && recipe_by_name("") == NULL);
}

/* Cuts a file in its header or in its data, at any place. */
static void truncated(void)
{
    struct error err;
    struct file whole = file_read(golden_folder(), "nano.BF16.gguf");
    for (size_t size = 0; size < whole.size; size += size < 2000 ? 97 : 90001) {
        struct file cut = {.data = malloc(size + 1), .size = size};
        CHECK(cut.data != NULL);
        memcpy(cut.data, whole.data, size);
        struct disk d = disk_of(cut);
        CHECK_EQ(convert(&d, "q8_0", 2, 0, &err), ERR_FORMAT);
        disk_free(&d);
    }
    file_free(&whole);
}

/* G35: the file shrinks while it is read. */
static void shrinks(void)
{
    struct error err;
    struct disk d = golden("nano.BF16.gguf");
    CHECK_EQ(convert(&d, "q8_0", 2, 0, &err), OK);
    int reads = d.reads;
    disk_free(&d);
    for (int at = 1; at < reads; at++) {
        d = golden("nano.BF16.gguf");
        d.shrink_at = at;
        CHECK_EQ(convert(&d, "q8_0", 2, 0, &err), ERR_FORMAT);
        CHECK(!strcmp(err.rule, "truncated"));
        disk_free(&d);
    }
}

static const struct check tests[] = {
    {"threads_change_nothing", threads_change_nothing},
    {"the_engine_loads_them", the_engine_loads_them},
    {"as_near_as_llama_cpp", as_near_as_llama_cpp},
    {"hybrids_are_alike", hybrids_are_alike},
    {"experts_are_gathered", experts_are_gathered},
    {"every_write_can_fail", every_write_can_fail},
    {"memory_can_be_short", memory_can_be_short},
    {"not_finite", not_finite},
    {"refused", refused},
    {"truncated", truncated},
    {"shrinks", shrinks},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
