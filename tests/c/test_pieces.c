/* SPDX-License-Identifier: MIT
 *
 * The splits against the pieces that Hugging Face's tokenizers and llama.cpp make of 60 texts
 * (fixtures/qwen35/split.json): Qwen3.5's on all, Qwen2's on those that both split alike, and however a text arrives.
 * Llama 3's and SmolLM's against the tokenizers' pieces of 220 texts (fixtures/splits).
 */
#include "check.h"
#include "model_file.h"

#include "base/json_reader.h"
#include "text/pieces.h"

enum { CASES = 60, RULED = 220, PIECES_MOST = 80 };

static const struct piece_rules qwen2, qwen35 = {.marks = true}, llama = {.digits = 3}, smollm = {.bare = true};

struct expected {
    struct bytes text, pieces[PIECES_MOST];
    int n;
    bool same;
};

static struct mem mem = {.limit = UINT64_MAX};
static struct unicode_classes all;

/* pieces: the key of the pieces. */
static void read_case(struct json_reader *r, const char *pieces, struct expected *c)
{
    struct bytes key;
    *c = (struct expected){.n = 0};
    CHECK(json_open(r, JSON_OBJECT));
    while (json_key(r, &key)) {
        if (bytes_equal(key, "text")) json_string_value(r, &c->text);
        else if (bytes_equal(key, "same_as_qwen2")) json_truth(r, &c->same);
        else if (bytes_equal(key, pieces) && json_open(r, JSON_ARRAY))
            while (json_more(r) && c->n < PIECES_MOST) json_string_value(r, &c->pieces[c->n++]);
        else json_skip(r);
    }
}

/* Finds the end of the first piece while `step` more bytes become known at a time. */
static size_t end_of_piece(struct bytes text, const struct piece_rules *rules, size_t step)
{
    struct piece p = {0};
    for (size_t known = 1;; known += step) {
        struct piece_text view = {
            .bytes = {text.data, known < text.size ? known : text.size}, .classes = &all, .rules = *rules};
        int64_t budget = 1000;
        view.is_whole = view.bytes.size == text.size;
        if (piece_find(&p, &view, &budget)) return p.end;
        CHECK(!view.is_whole);
    }
}

/* Whether a split makes these pieces. */
static bool makes(const struct expected *c, const struct piece_rules *rules, size_t step)
{
    struct bytes rest = c->text;
    for (int i = 0; i < c->n; i++) {
        if (!rest.size || end_of_piece(rest, rules, step) != c->pieces[i].size) return false;
        rest.data += c->pieces[i].size;
        rest.size -= c->pieces[i].size;
    }
    return rest.size == 0;
}

static void both_splits(void)
{
    struct file f = file_read(check_fixtures, "qwen35/split.json");
    struct error err;
    struct json_reader r = {.text = f.data, .size = f.size, .rule = "test", .what = "The fixture", .err = &err};
    static struct expected c;
    int n = 0, same = 0;
    CHECK(unicode_open(&mem, &all));
    CHECK(json_open(&r, JSON_ARRAY));
    for (; json_more(&r); n++) {
        read_case(&r, "pieces", &c);
        for (size_t step = 1; step < 40; step = 3 * step) {
            CHECK(makes(&c, &qwen35, step));
            CHECK_EQ(makes(&c, &qwen2, step), c.same);
        }
        same += c.same;
    }
    CHECK_EQ(json_finish(&r), OK);
    CHECK_EQ(n, CASES);
    CHECK_EQ(same, CASES - 23);
    unicode_close(&mem, &all);
    CHECK_EQ(mem.used, 0);
    file_free(&f);
}

/* Each rule differs from Qwen2's on some texts. */
static void ruled(const char *name, const struct piece_rules *rules)
{
    struct file f = file_read(check_fixtures, "splits/splits.json");
    struct error err;
    struct json_reader r = {.text = f.data, .size = f.size, .rule = "test", .what = "The fixture", .err = &err};
    static struct expected c;
    int n = 0, same = 0;
    CHECK(unicode_open(&mem, &all));
    CHECK(json_open(&r, JSON_ARRAY));
    for (; json_more(&r); n++) {
        read_case(&r, name, &c);
        for (size_t step = 1; step < 40; step = 3 * step) CHECK(makes(&c, rules, step));
        same += makes(&c, &qwen2, 1);
    }
    CHECK_EQ(json_finish(&r), OK);
    CHECK_EQ(n, RULED);
    CHECK(same > 20 && same < RULED - 20);
    unicode_close(&mem, &all);
    CHECK_EQ(mem.used, 0);
    file_free(&f);
}

static void split_of_llama(void) { ruled("llama", &llama); }
static void split_of_smollm(void) { ruled("smollm", &smollm); }

int main(int argc, char **argv)
{
    static const struct check tests[] = {
        {"both_splits", both_splits}, {"split_of_llama", split_of_llama}, {"split_of_smollm", split_of_smollm}};
    return check_run(argc, argv, tests, sizeof tests / sizeof *tests);
}
