/* SPDX-License-Identifier: MIT
 *
 * The text side of a model: chooses the tokenizer from the files and the architecture, finds the tokens that end a
 * reply or stand for parts of images, copies the chat templates, and implements the calls of quern.h that turn text
 * into tokens and back.
 */
#include "engine/words.h"

#include "base/reader.h"
#include "engine/special.h"
#include "load/metadata.h"

#include <string.h>

enum {
    TEMPLATE_MAX = 1 << 20, /* bytes */
    PADDING_MOST = 1024,    /* embedding rows without a token in a .tokenizer file */
};

/* --- which tokenizer it is ------------------------------------------------------------------------------------- */

/* Whether the vocabulary has a token for each byte, then one for each merge, then the family's special tokens. All
 * vocabularies of Qwen's models are like that, and no other known one. */
static bool is_familys(const struct checkpoint *ck, const struct marks *marks)
{
    if (!marks->first[0]) return false;
    enum { BYTES = 256, FIRST = sizeof marks->first / sizeof *marks->first };
    struct bytes tokens, merges, text;
    uint64_t n_tokens, n_merges, size;
    if (meta_array(ck, "tokenizer.ggml.tokens", META_STRING, true, &tokens, &n_tokens, NULL) ||
        meta_array(ck, "tokenizer.ggml.merges", META_STRING, true, &merges, &n_merges, NULL))
        return false;
    struct cursor c = {tokens.data, tokens.size, 0};
    uint64_t begin = BYTES + n_merges;
    for (uint64_t id = 0; id < begin + FIRST; id++)
        if (!take_u64(&c, &size) || !take_bytes(&c, size, &text) ||
            (id >= begin && !bytes_equal(text, marks->first[id - begin])))
            return false;
    return true;
}

static bool is_called(const struct text_split *split, struct bytes name)
{
    const char *const *one = split->names;
    while (*one && !bytes_equal(name, *one)) one++;
    return *one != NULL;
}

/* Chooses the split that the file names; without a name that of the architecture. */
static int read_split(struct quern_engine *e, const struct text_split **out, struct error *err)
{
    const struct architecture *a = e->model->architecture;
    const struct checkpoint *ck = &e->intake.ck;
    struct bytes pre;
    char text[QUOTED];
    int status = meta_text(ck, "tokenizer.ggml.pre", false, &pre, err);
    if (status) return status;
    for (*out = text_splits; pre.data && (*out)->names; ++*out)
        if (is_called(*out, pre)) return OK;
    *out = a->split;
    if (pre.data)
        return fail(err, ERR_UNSUPPORTED, "tokenizer", 0,
                    "The pre-tokenizer \"%.64s\" is not supported; that of %s is %s.", quoted(pre, text), a->name,
                    *a->split->names);
    e->split_assumed = is_familys(ck, a->marks);
    if (e->split_assumed) return OK;
    return fail(
        err, ERR_FORMAT, "missing", 0,
        "The metadata key tokenizer.ggml.pre is missing, and the vocabulary is not like Qwen's; take a newer copy of the model.");
}

/* Sets *scored: tokens are joined by scores and without a split; otherwise by merges, with *split. */
static int read_kind(struct quern_engine *e, bool *scored, const struct text_split **split, struct error *err)
{
    struct bytes kind;
    char text[QUOTED];
    int status = meta_text(&e->intake.ck, "tokenizer.ggml.model", true, &kind, err);
    *scored = bytes_equal(kind, "scores");
    if (status || *scored) return status;
    if (bytes_equal(kind, "gpt2")) return read_split(e, split, err);
    return fail(err, ERR_UNSUPPORTED, "tokenizer", 0,
                "The tokenizer \"%.64s\" is not supported; byte-level BPE (gpt2) is.", quoted(kind, text));
}

static int open_tokenizer(struct quern_engine *e, struct error *err)
{
    struct tok_source s = {0};
    uint64_t n_types, n_scores;
    int vocab_size = e->model->config.vocab_size;
    const struct text_split *split = text_splits;
    bool scored;
    int status = read_kind(e, &scored, &split, err);
    if (!status)
        status = meta_array(&e->intake.ck, "tokenizer.ggml.tokens", META_STRING, true, &s.tokens, &s.n_tokens, err);
    if (!status)
        status = meta_array(&e->intake.ck, "tokenizer.ggml.token_type", META_I32, false, &s.types, &n_types, err);
    if (!status && scored)
        status = meta_array(&e->intake.ck, "tokenizer.ggml.scores", META_F32, true, &s.scores, &n_scores, err);
    else if (!status)
        status = meta_array(&e->intake.ck, "tokenizer.ggml.merges", META_STRING, true, &s.merges, &s.n_merges, err);
    if (!status && meta_find(&e->intake.ck, "tokenizer.ggml.token_type") && n_types != s.n_tokens)
        status = fail(err, ERR_FORMAT, "vocab", 0, "The vocabulary has %llu tokens, but %llu token types.",
                      (unsigned long long)s.n_tokens, (unsigned long long)n_types);
    if (!status && s.n_tokens > (uint64_t)vocab_size)
        status = fail(err, ERR_INCONSISTENT, "vocab", 0, "The vocabulary has %llu tokens, the embedding only %d rows.",
                      (unsigned long long)s.n_tokens, vocab_size);
    if (!status && scored && s.n_tokens + PADDING_MOST < (uint64_t)vocab_size)
        status = fail(err, ERR_INCONSISTENT, "vocab", 0,
                      "The tokenizer file has %llu tokens, the embedding %d rows; it belongs to another model.",
                      (unsigned long long)s.n_tokens, vocab_size);
    s.rules = (struct piece_rules){split->marks, split->bare, split->digits};
    s.whole = split->whole;
    e->begins = !scored && split->begins;
    if (!status) status = tok_new(&e->mem, &s, &e->tok, err);
    if (status) return status;
    e->n_sampled = tok_count(e->tok);
    while (e->n_sampled > 1 && tok_type(e->tok, e->n_sampled - 1) == 5) e->n_sampled--;
    for (int id = 0; id < tok_count(e->tok); id++)
        if (tok_bytes(e->tok, id).size > e->longest_token) e->longest_token = tok_bytes(e->tok, id).size;
    return OK;
}

/* --- tokens with a meaning --------------------------------------------------------------------------------------- */

static int32_t find_special(const struct quern_engine *e, const char *text)
{
    return tok_find_special(e->tok, (struct bytes){(const uint8_t *)text, strlen(text)});
}

static void add_end(struct quern_engine *e, int64_t id)
{
    for (int i = 0; i < e->n_ends; i++)
        if (e->ends[i] == id) return;
    if (id >= 0 && e->n_ends < (int)(sizeof e->ends / sizeof *e->ends)) e->ends[e->n_ends++] = (int32_t)id;
}

/* Reads the lists of end tokens, which are of the JSON files or of some GGUF files. */
static int read_end_lists(struct quern_engine *e, struct error *err)
{
    static const char *const keys[] = {"generation.eos_token_ids", "config.eos_token_ids",
                                       "tokenizer.ggml.eos_token_ids"};
    int status = OK;
    for (size_t i = 0; !status && i < sizeof keys / sizeof *keys; i++) {
        struct bytes ids;
        uint64_t n;
        const struct meta *m = meta_find(&e->intake.ck, keys[i]);
        enum meta_type type = m && m->element == META_U32 ? META_U32 : META_I32;
        status = meta_array(&e->intake.ck, keys[i], type, false, &ids, &n, err);
        for (uint64_t j = 0; !status && j < n; j++) {
            uint32_t id = load_u32(ids.data + 4 * j);
            if (id < (uint32_t)tok_count(e->tok)) add_end(e, id);
            else
                status =
                    fail(err, ERR_INCONSISTENT, "value", 0, "The end token %u is not in the vocabulary.", (unsigned)id);
        }
    }
    return status;
}

/* Collects the file's end tokens, and the family's own if the vocabulary has them. */
static int read_ends(struct quern_engine *e, struct error *err)
{
    const struct marks *marks = e->model->architecture->marks;
    const int64_t none = -1, top = tok_count(e->tok) - 1;
    int64_t eos, eot;
    int status = meta_int(&e->intake.ck, "tokenizer.ggml.eos_token_id", 0, top, &none, &eos, err);
    if (!status) status = meta_int(&e->intake.ck, "tokenizer.ggml.eot_token_id", 0, top, &none, &eot, err);
    if (status) return status;
    add_end(e, eos);
    add_end(e, eot);
    status = read_end_lists(e, err);
    for (int i = 0; i < MARK_ENDS && marks->ends[i]; i++) add_end(e, find_special(e, marks->ends[i]));
    return status;
}

/* Finds the tokens that stand for parts of images, if the model sees and may. config.json gives their ids, which must
 * agree with their texts in the vocabulary. */
static int read_pads(struct quern_engine *e, struct error *err)
{
    static const char *const keys[] = {"config.image_token_id", "config.video_token_id", "config.vision_start_token_id",
                                       "config.vision_end_token_id"};
    const char *const *marks = e->model->architecture->marks->vision;
    const bool sees = e->model->config.sees && !e->options.no_vision;
    int status = OK;
    for (int i = 0; i < PADS; i++) e->pads[i] = sees ? find_special(e, marks[i]) : -1;
    for (size_t i = 0; sees && !status && i < sizeof keys / sizeof *keys; i++) {
        const int64_t id = find_special(e, marks[i]);
        int64_t said;
        status = meta_int(&e->intake.ck, keys[i], INT64_MIN, INT64_MAX, &id, &said, err);
        if (!status && said != id)
            status = fail(err, ERR_INCONSISTENT, "vision-token", 0,
                          "The token %s is %lld in config.json, but %lld in the vocabulary.", marks[i], (long long)said,
                          (long long)id);
    }
    return status;
}

/* --- templates -------------------------------------------------------------------------------------------------- */

static int copy_template(struct quern_engine *e, const char *key, struct bytes *out, struct error *err)
{
    struct bytes text;
    int status = meta_text(&e->intake.ck, key, false, &text, err);
    if (status || !text.data) return status;
    if (text.size > TEMPLATE_MAX)
        return fail(err, ERR_FORMAT, "template", 0, "The chat template has %zu bytes; at most 1 MiB is allowed.",
                    text.size);
    uint8_t *copy = mem_alloc(&e->mem, text.size);
    if (!copy) return fail(err, ERR_MEM_LOAD, "template", 0, "Not enough memory for the chat template.");
    memcpy(copy, text.data, text.size);
    *out = (struct bytes){copy, text.size};
    return OK;
}

/* --- all of them ------------------------------------------------------------------------------------------------- */

int words_open(struct quern_engine *e, struct error *err)
{
    int status = open_tokenizer(e, err);
    if (!status) status = read_ends(e, err);
    if (!status) status = special_read(e, err);
    if (!status) status = read_pads(e, err);
    if (!status) status = copy_template(e, "tokenizer.chat_template", &e->template, err);
    if (!status) status = copy_template(e, "tokenizer.chat_template.tool_use", &e->tool_template, err);
    return status ? status : copy_template(e, "tokenizer.chat_template.rerank", &e->rerank, err);
}

void words_free(struct quern_engine *e)
{
    tok_free(e->tok);
    mem_free(&e->mem, (void *)e->template.data);
    mem_free(&e->mem, (void *)e->tool_template.data);
    mem_free(&e->mem, (void *)e->rerank.data);
}

/* --- the calls of quern.h ---------------------------------------------------------------------------------------- */

struct bytes quern_chat_template(const struct quern_engine *e) { return e->template; }
struct bytes quern_tool_template(const struct quern_engine *e) { return e->tool_template; }
struct bytes quern_rerank_template(const struct quern_engine *e) { return e->rerank; }

int quern_vocab_size(const struct quern_engine *e) { return e->model ? e->model->config.vocab_size : 0; }

int64_t quern_tokenize(struct quern_engine *e, struct bytes text, enum quern_text mode, uint32_t sentinel, int32_t *ids,
                       int64_t cap)
{
    if (!e->tok) return fail(&e->error, ERR_BUSY, "loading", 0, "The model is not loaded yet.");
    int64_t n = tok_encode(e->tok, text, (enum tok_mode)mode, sentinel, ids, cap);
    return n < 0 ? fail(&e->error, (int)n, "text", 0, "There is not enough memory for this text.") : n;
}

struct bytes quern_token(const struct quern_engine *e, int32_t id)
{
    return e->tok ? tok_bytes(e->tok, id) : (struct bytes){NULL, 0};
}

int quern_token_type(const struct quern_engine *e, int32_t id) { return e->tok ? tok_type(e->tok, id) : 0; }

bool quern_is_end(const struct quern_engine *e, int32_t id)
{
    for (int i = 0; i < e->n_ends; i++)
        if (e->ends[i] == id) return true;
    return false;
}
