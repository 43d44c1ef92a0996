/* SPDX-License-Identifier: MIT
 *
 * tokenizer.json with Qwen3's complete vocabulary, with merges in both notations: the same tokens, types and merges as
 * from the ranks, and therefore the reference's ids.
 */
#include "load/checkpoint.h"
#include "load/format.h"
#include "load/metadata.h"
#include "model_file.h"
#include "tok_fixture.h"

enum { TOKENS = 151669 };

static struct builder qwen;

/* The regular expression by which Qwen's tokenizer.json splits text (GGUF calls this split "qwen2"; Qwen3 has the
 * same), as JSON. */
static const char split_text[] =
    "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| ?"
    "[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}, \"behavior\": \"Isolated\", \"invert\": false},";

/* Reads it in chunks, as the engine does. */
static struct checkpoint read_json(struct mem *mem, const struct file *f)
{
    struct checkpoint file, model;
    struct error err = {0};
    size_t used;
    ck_init(&file, mem, 0);
    ck_init(&model, mem, 0);
    for (size_t at = 0; at < f->size; at += 65521)
        CHECK_EQ(ck_header(&file, f->data + at, f->size - at < 65521 ? f->size - at : 65521, &used, &err), NEED_MORE);
    CHECK_EQ(ck_header_ended(&file, &err), OK);
    CHECK(ck_is_side(&file));
    int status = ck_read_side(&file, &model, &err);
    if (status) printf("# %s\n", err.message);
    CHECK_EQ(status, OK);
    CHECK_EQ(ck_complete(&model, &err), OK);
    ck_close(&file);
    return model;
}

static void check_array(const struct checkpoint *ck, const char *key, enum meta_type type, struct bytes *data,
                        uint64_t *n, const struct buffer *expected, uint64_t count)
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

/* Checks the ids that a post-processor's template adds before and after a text; in a sequence of post-processors each
 * adds around the previous one. */
static void template_of(const char *post, const int32_t *before, uint64_t n_before, const int32_t *behind,
                        uint64_t n_behind)
{
    char text[4096];
    struct mem mem = {0};
    struct bytes ids;
    uint64_t n;
    int size = snprintf(
        text, sizeof text,
        "{\"post_processor\": %s, \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [%s"
        "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}]}, \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": []}}",
        post, split_text);
    struct file f = {(uint8_t *)text, (size_t)size};
    struct checkpoint model = read_json(&mem, &f);
    struct error err;
    CHECK_EQ(meta_array(&model, "tokenizer.added.before", META_I32, true, &ids, &n, &err), OK);
    CHECK(n == n_before && !memcmp(ids.data, before, ids.size));
    CHECK_EQ(meta_array(&model, "tokenizer.added.after", META_I32, true, &ids, &n, &err), OK);
    CHECK(n == n_behind && !memcmp(ids.data, behind, ids.size));
    ck_close(&model);
    CHECK_EQ(mem.used, 0);
}

#define TEXT_PIECE "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}"
#define PIECE(name) "{\"SpecialToken\": {\"id\": \"" name "\", \"type_id\": 0}}"
#define SPECIALS \
    "\"special_tokens\": {\"x\": {\"id\": \"x\", \"ids\": [7], \"tokens\": [\"x\"]}, \"y\": {\"id\": \"y\", \"ids\": [8, 9], \"tokens\": [\"y\", \"y\"]}}"
#define TEMPLATE(pieces) "{\"type\": \"TemplateProcessing\", \"single\": [" pieces "], \"pair\": [], " SPECIALS "}"

static void templates(void)
{
    static const int32_t ids[] = {7, 8, 9, 7};
    template_of("null", ids, 0, ids, 0);
    template_of("{\"type\": \"ByteLevel\"}", ids, 0, ids, 0);
    template_of(TEMPLATE(TEXT_PIECE), ids, 0, ids, 0);
    template_of(TEMPLATE(TEXT_PIECE "," PIECE("y")), ids, 0, ids + 1, 2);
    template_of(TEMPLATE(PIECE("x") "," PIECE("y") "," TEXT_PIECE "," PIECE("x")), ids, 3, ids, 1);
    template_of("{" SPECIALS ", \"single\": [" PIECE("x") "," TEXT_PIECE "], \"type\": \"TemplateProcessing\"}", ids, 1,
                ids, 0);
    template_of("{\"type\": \"Sequence\", \"processors\": [{\"type\": \"ByteLevel\"}, " TEMPLATE(PIECE(
                    "y") "," TEXT_PIECE "," PIECE("y")) ", " TEMPLATE(PIECE("x") "," TEXT_PIECE "," PIECE("x")) "]}",
                ids, 3, ids + 1, 3);
}

static const struct check tests[] = {
    {"merges_as_pairs", merges_as_pairs}, {"merges_as_strings", merges_as_strings}, {"templates", templates}};

int main(int argc, char **argv)
{
    if (argc > 1) check_fixtures = argv[1];
    qwen = build_qwen();
    int status = check_run(argc, argv, tests, sizeof tests / sizeof *tests);
    builder_free(&qwen);
    return status;
}
