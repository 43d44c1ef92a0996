/* SPDX-License-Identifier: MIT
 *
 * tokenizer.json with Qwen3's whole vocabulary, merges in both spellings: the same tokens, types and merges as from the ranks, and so the
 * reference's ids.
 */
#include "load/checkpoint.h"
#include "load/format.h"
#include "load/metadata.h"
#include "model_file.h"
#include "tok_fixture.h"

enum { TOKENS = 151669 };

static struct builder qwen;

/* As the engine does it, in chunks. */
static struct checkpoint read_json(struct mem *mem, const struct file *f)
{
    struct checkpoint file, model;
    struct error err = {0};
    size_t used;
    ck_init(&file, mem, 0);
    ck_init(&model, mem, 0);
    for (size_t at = 0; at < f->size; at += 65521) CHECK_EQ(ck_header(&file, f->data + at, f->size - at < 65521 ? f->size - at : 65521, &used, &err), NEED_MORE);
    CHECK_EQ(ck_header_ended(&file, &err), OK);
    CHECK(ck_is_side(&file));
    int status = ck_read_side(&file, &model, &err);
    if (status) printf("# %s\n", err.message);
    CHECK_EQ(status, OK);
    CHECK_EQ(ck_complete(&model, &err), OK);
    ck_close(&file);
    return model;
}

static void check_array(const struct checkpoint *ck, const char *key, enum meta_type type, struct bytes *data, uint64_t *n, const struct buffer *expected, uint64_t count)
{
    struct error err = {0};
    CHECK_EQ(meta_array(ck, key, type, true, data, n, &err), OK);
    CHECK_EQ(*n, count);
    CHECK(data->size <= expected->size);
    CHECK_EQ(memcmp(data->data, expected->data, data->size), 0);
}

static void check_file(const char *name)
{
    struct mem mem = {0};
    struct file f = file_read(built_fixtures(""), name);
    struct checkpoint model = read_json(&mem, &f);
    struct tok_source s = {0};
    struct tokenizer *t = NULL;
    struct error err = {0};
    uint64_t n_types;
    check_array(&model, "tokenizer.ggml.tokens", META_STRING, &s.tokens, &s.n_tokens, &qwen.tokens, TOKENS);
    check_array(&model, "tokenizer.ggml.token_type", META_I32, &s.types, &n_types, &qwen.types, TOKENS);
    check_array(&model, "tokenizer.ggml.merges", META_STRING, &s.merges, &s.n_merges, &qwen.merges, qwen.n_merges);
    CHECK_EQ(s.merges.size, qwen.merges.size);
    CHECK_EQ(tok_new(&mem, &s, &t, &err), OK);
    CHECK(mem.peak < 16 * f.size);
    reference_cases(t);
    tok_free(t);
    ck_close(&model);
    CHECK_EQ(mem.used, 0);
    file_free(&f);
}

static void merges_as_pairs(void) { check_file("qwen-pairs.json"); }
static void merges_as_strings(void) { check_file("qwen-strings.json"); }

static const struct check tests[] = {{"merges_as_pairs", merges_as_pairs}, {"merges_as_strings", merges_as_strings}};

int main(int argc, char **argv)
{
    if (argc > 1) check_fixtures = argv[1];
    qwen = build_qwen();
    int status = check_run(argc, argv, tests, sizeof tests / sizeof *tests);
    builder_free(&qwen);
    return status;
}
