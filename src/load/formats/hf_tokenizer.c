/* SPDX-License-Identifier: MIT
 *
 * tokenizer.json -> the vocabulary in the form of GGUF files, and the ids that the post-processor's template puts
 * around a text. Only byte-level BPE after a known split is accepted. Other kinds are refused by their names, because a
 * wrong split would give wrong tokens without any error.
 */
#include "load/architecture.h"
#include "load/formats/hf.h"
#include "load/formats/hf_template.h"

#include <string.h>

enum { TOKENS_MAX = 1 << 24, HOLES_MAX = 4096 };

static const char *const keys[] = {"model", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", NULL};
enum { MODEL, ADDED, NORMALIZER, PRE, POST };

enum { NORMAL = 1, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5 }; /* values of tokenizer.ggml.token_type */

struct token {
    struct bytes text;
    uint32_t id;
    int32_t type;
};

/* A growing array of bytes. */
struct buffer {
    uint8_t *data;
    size_t size, room;
};

struct hf_tokenizer {
    struct mem *mem;
    struct buffer tokens; /* struct token */
    struct buffer merges; /* packed strings "left right" */
    uint64_t n_merges;
    uint32_t n_ids;       /* the highest id + 1 */
    bool model;
    const struct text_split *split; /* the first with the expression; NULL: no split */
    bool whole;           /* ignore_merges */
    struct hf_added added;
};

struct hf_tokenizer *hf_tokenizer_new(struct mem *m)
{
    struct hf_tokenizer *t = mem_alloc(m, sizeof *t);
    if (t) t->mem = m;
    return t;
}

void hf_tokenizer_free(struct hf_tokenizer *t)
{
    if (!t) return;
    mem_free(t->mem, t->tokens.data);
    mem_free(t->mem, t->merges.data);
    mem_free(t->mem, t);
}

static bool append(struct mem *m, struct buffer *b, const void *data, size_t n)
{
    if (b->room - b->size < n) {
        size_t room = b->room ? 2 * b->room : 4096;
        while (room - b->size < n) room *= 2;
        uint8_t *grown = mem_resize(m, b->data, room);
        if (!grown) return false;
        b->data = grown;
        b->room = room;
    }
    if (n) memcpy(b->data + b->size, data, n);
    b->size += n;
    return true;
}

static bool append_packed(struct mem *m, struct buffer *b, struct bytes text)
{
    uint64_t size = text.size;
    return append(m, b, &size, sizeof size) && append(m, b, text.data, text.size);
}

static void fail_memory(struct json_reader *r)
{
    if (!r->status) r->status = fail(r->err, ERR_MEM_LOAD, "header", 0, "Not enough memory for the vocabulary.");
}

static const struct bytes nothing = {NULL, 0};

/* --- tokens ---------------------------------------------------------------------------------------------- */

static void add_token(struct hf_tokenizer *t, struct json_reader *r, struct bytes text, int64_t id, int32_t type)
{
    struct token token = {text, (uint32_t)id, type};
    if (r->status) return;
    if (id < 0 || id >= TOKENS_MAX) json_wrong(r, r->pos, "a token's id is missing or too large");
    else if (!append(t->mem, &t->tokens, &token, sizeof token)) fail_memory(r);
    else if (id >= t->n_ids) t->n_ids = (uint32_t)id + 1;
}

static void read_vocab(struct hf_tokenizer *t, struct json_reader *r)
{
    struct bytes text;
    int64_t id;
    if (!json_open(r, JSON_OBJECT)) return;
    while (json_key(r, &text) && json_integer(r, &id)) add_token(t, r, text, id, NORMAL);
}

/* Flags that would change where a token is recognised. */
static bool is_flag(struct bytes key)
{
    return bytes_equal(key, "single_word") || bytes_equal(key, "lstrip") || bytes_equal(key, "rstrip");
}

static void read_added_token(struct hf_tokenizer *t, struct json_reader *r)
{
    struct bytes key, text = nothing;
    int64_t id = -1;
    bool special = false, flag = false;
    if (!json_open(r, JSON_OBJECT)) return;
    while (json_key(r, &key)) {
        if (bytes_equal(key, "id")) json_integer(r, &id);
        else if (bytes_equal(key, "content")) json_string_value(r, &text);
        else if (bytes_equal(key, "special")) json_truth(r, &special);
        else if (!is_flag(key)) json_skip(r);
        else if (json_truth(r, &flag) && flag)
            hf_unsupported(r, "tokenizer", "Special tokens that take the spaces around them are not supported", key);
    }
    if (!text.data) json_wrong(r, r->pos, "an added token has no content");
    add_token(t, r, text, id, special ? CONTROL : USER_DEFINED);
}

static void read_added(struct hf_tokenizer *t, struct json_reader *r)
{
    if (hf_null(r) || !json_open(r, JSON_ARRAY)) return;
    while (json_more(r)) read_added_token(t, r);
}

/* --- merges ---------------------------------------------------------------------------------------------- */

/* Reads ["left", "right"] and writes "left right" in its place, which is shorter than the JSON between them. */
static bool read_pair(struct json_reader *r, struct bytes *out)
{
    struct bytes left, right;
    if (!json_open(r, JSON_ARRAY) || !json_more(r) || !json_string_value(r, &left) || !json_more(r) ||
        !json_string_value(r, &right))
        return false;
    if (json_more(r)) return json_wrong(r, r->pos, "a merge has more than two parts");
    uint8_t *text = r->text + (left.data - r->text);
    text[left.size] = ' ';
    memmove(text + left.size + 1, right.data, right.size);
    *out = (struct bytes){text, left.size + 1 + right.size};
    return !r->status;
}

static void read_merges(struct hf_tokenizer *t, struct json_reader *r)
{
    struct bytes text;
    if (!json_open(r, JSON_ARRAY)) return;
    while (json_more(r) && (json_peek(r) == JSON_STRING ? json_string_value(r, &text) : read_pair(r, &text))) {
        if (!append_packed(t->mem, &t->merges, text)) fail_memory(r);
        t->n_merges++;
    }
}

/* Settings of these names would change the result of encoding. */
static bool is_refinement(struct bytes key)
{
    static const char *const names[] = {
        "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bytes_equal(key, names[i])) return true;
    return false;
}

/* Accepts null, false and "". */
static void read_refinement(struct json_reader *r, struct bytes key)
{
    struct bytes text = nothing;
    bool flag = false;
    if (hf_null(r)) return;
    enum json_kind kind = json_peek(r);
    if (kind == JSON_TRUE || kind == JSON_FALSE) json_truth(r, &flag);
    else if (kind == JSON_STRING) json_string_value(r, &text);
    else flag = true;
    if (flag || text.size) hf_unsupported(r, "tokenizer", "The tokenizer's setting is not supported", key);
}

static void read_model(struct hf_tokenizer *t, struct json_reader *r)
{
    struct bytes key, type = nothing;
    bool flag;
    if (!json_open(r, JSON_OBJECT)) return;
    t->model = true;
    while (json_key(r, &key)) {
        if (bytes_equal(key, "type")) {
            if (json_string_value(r, &type) && !bytes_equal(type, "BPE"))
                hf_unsupported(r, "tokenizer", "The tokenizer is not supported; byte-level BPE is", type);
        } else if (bytes_equal(key, "vocab") && json_peek(r) == JSON_OBJECT) read_vocab(t, r);
        else if (bytes_equal(key, "vocab"))
            hf_unsupported(r, "tokenizer", "The tokenizer is not supported; byte-level BPE is", nothing);
        else if (bytes_equal(key, "merges")) read_merges(t, r);
        else if (bytes_equal(key, "ignore_merges")) t->whole = !hf_null(r) && json_truth(r, &flag) && flag;
        else if (is_refinement(key)) read_refinement(r, key);
        else json_skip(r);
    }
}

/* --- before and after -------------------------------------------------------------------------------------- */

/* A normaliser, pre-tokenizer or post-processor. */
struct component {
    struct bytes type, regex, behavior;
    bool invert, add_prefix_space, use_regex, individual_digits;
};

static void read_pattern(struct json_reader *r, struct component *c)
{
    struct bytes key;
    if (!json_open(r, JSON_OBJECT)) return;
    while (json_key(r, &key)) {
        if (bytes_equal(key, "Regex")) json_string_value(r, &c->regex);
        else json_skip(r);
    }
}

static void read_component_key(struct json_reader *r, struct bytes key, struct component *c)
{
    if (bytes_equal(key, "type")) json_string_value(r, &c->type);
    else if (bytes_equal(key, "behavior")) json_string_value(r, &c->behavior);
    else if (bytes_equal(key, "pattern") && json_peek(r) == JSON_OBJECT) read_pattern(r, c);
    else if (bytes_equal(key, "invert")) json_truth(r, &c->invert);
    else if (bytes_equal(key, "add_prefix_space")) json_truth(r, &c->add_prefix_space);
    else if (bytes_equal(key, "use_regex")) json_truth(r, &c->use_regex);
    else if (bytes_equal(key, "individual_digits")) json_truth(r, &c->individual_digits);
    else json_skip(r);
}

static struct component read_component(struct json_reader *r)
{
    struct component c = {.use_regex = true, .add_prefix_space = true};
    struct bytes key;
    if (!json_open(r, JSON_OBJECT)) return c;
    while (json_key(r, &key)) read_component_key(r, key, &c);
    return c;
}

/* Finds a split by its expression; names is NULL if it is unknown. */
static const struct text_split *split_of(struct bytes regex)
{
    const struct text_split *s = text_splits;
    while (s->names && !bytes_equal(regex, s->regex)) s++;
    return s;
}

static bool is_split(const struct component *c, const struct text_split *split)
{
    if (split->bare) return bytes_equal(c->type, TEXT_DIGITS) && c->individual_digits;
    return bytes_equal(c->type, "Split") && bytes_equal(c->behavior, "Isolated") && !c->invert;
}

static bool is_byte_level(const struct component *c, const struct text_split *split)
{
    return bytes_equal(c->type, "ByteLevel") && c->use_regex == split->bare && !c->add_prefix_space;
}

static void refuse_pre(struct json_reader *r, struct bytes name)
{
    hf_unsupported(r, "tokenizer",
                   "The pre-tokenizer is not supported; those are that GGUF files call qwen2, qwen35, llama-bpe and smollm",
                   name);
}

static void read_sequence(struct hf_tokenizer *t, struct json_reader *r)
{
    int n = 0;
    if (!json_open(r, JSON_ARRAY)) return;
    for (; json_more(r); n++) {
        struct component c = read_component(r);
        const struct text_split *split = split_of(c.regex.data ? c.regex : c.type);
        if (n == 0) t->split = split->names ? split : NULL;
        if (!t->split || (n == 0 ? !is_split(&c, split) : n == 1 ? !is_byte_level(&c, t->split) : true))
            refuse_pre(r, c.regex.data && !split->names ? c.regex : c.type);
    }
    if (n != 2) refuse_pre(r, nothing);
}

/* Reads a known split, then the mapping of bytes to characters. */
static void read_pre(struct hf_tokenizer *t, struct json_reader *r)
{
    struct bytes key, type = nothing;
    bool sequence = false;
    if (hf_null(r) || !json_open(r, JSON_OBJECT)) return;
    while (json_key(r, &key)) {
        if (bytes_equal(key, "type")) json_string_value(r, &type);
        else if (bytes_equal(key, "pretokenizers")) {
            sequence = true;
            read_sequence(t, r);
        } else json_skip(r);
    }
    if (!sequence || !bytes_equal(type, "Sequence")) refuse_pre(r, type);
}

static void read_outer(struct json_reader *r, const char *accepted, const char *complaint)
{
    if (hf_null(r)) return;
    struct component c = read_component(r);
    if (!bytes_equal(c.type, accepted)) hf_unsupported(r, "tokenizer", complaint, c.type);
}

static void read_key(void *state, struct json_reader *r, int key)
{
    struct hf_tokenizer *t = state;
    switch (key) {
    case MODEL: read_model(t, r); break;
    case ADDED: read_added(t, r); break;
    case PRE: read_pre(t, r); break;
    case NORMALIZER: read_outer(r, "NFC", "The normaliser is not supported; Qwen3 uses NFC"); break;
    default: hf_read_post(r, &t->added); break;
    }
}

/* --- metadata ------------------------------------------------------------------------------------------------ */

/* by_id [n_ids]: index in the list of tokens, + 1. An added token replaces one of the vocabulary. */
static int sort_tokens(const struct hf_tokenizer *t, uint32_t *by_id, struct error *err)
{
    const struct token *tokens = (const struct token *)(const void *)t->tokens.data;
    for (size_t i = 0; i < t->tokens.size / sizeof *tokens; i++) {
        uint32_t *slot = &by_id[tokens[i].id];
        if (*slot && (tokens[*slot - 1].type != NORMAL) == (tokens[i].type != NORMAL))
            return fail(err, ERR_FORMAT, "vocab", 0, "The vocabulary has two tokens with the id %u.",
                        (unsigned)tokens[i].id);
        if (!*slot || tokens[i].type != NORMAL) *slot = (uint32_t)i + 1;
    }
    return OK;
}

static bool pack(struct hf_tokenizer *t, const uint32_t *by_id, struct buffer *texts, struct buffer *types)
{
    const struct token *tokens = (const struct token *)(const void *)t->tokens.data;
    const struct token hole = {.type = UNUSED};
    for (uint32_t id = 0; id < t->n_ids; id++) {
        const struct token *token = by_id[id] ? &tokens[by_id[id] - 1] : &hole;
        if (!append_packed(t->mem, texts, token->text) || !append(t->mem, types, &token->type, sizeof token->type))
            return false;
    }
    return true;
}

static struct bytes view(const struct buffer *b) { return (struct bytes){b->data, b->size}; }
static struct bytes text_of(const char *text) { return (struct bytes){(const uint8_t *)text, strlen(text)}; }

static int write_vocabulary(struct hf_tokenizer *t, struct checkpoint *model, const struct buffer *texts,
                            const struct buffer *types, struct error *err)
{
    int status = ck_put_text(model, "tokenizer.ggml.model", text_of("gpt2"), err);
    if (!status) status = ck_put_text(model, "tokenizer.ggml.pre", text_of(t->split->names[0]), err);
    if (!status) status = ck_put_array(model, "tokenizer.ggml.tokens", META_STRING, view(texts), t->n_ids, err);
    if (!status) status = ck_put_array(model, "tokenizer.ggml.token_type", META_I32, view(types), t->n_ids, err);
    return status ? status
                  : ck_put_array(model, "tokenizer.ggml.merges", META_STRING, view(&t->merges), t->n_merges, err);
}

/* An empty list means that nothing is added, even if the GGUF file whose vocabulary this one replaces adds ids. */
static int write_added(const struct hf_tokenizer *t, struct checkpoint *model, struct error *err)
{
    static const char *const keys_of[] = {"tokenizer.added.before", "tokenizer.added.after"};
    int status = OK;
    for (int side = 0; !status && side < 2; side++) {
        const struct hf_ids *ids = &t->added.sides[side];
        status = ck_put_array(model, keys_of[side], META_I32,
                              (struct bytes){(const uint8_t *)ids->ids, (size_t)ids->n * sizeof *ids->ids},
                              (uint64_t)ids->n, err);
    }
    return status;
}

static int done(void *state, struct checkpoint *model, struct error *err)
{
    struct hf_tokenizer *t = state;
    struct buffer texts = {0}, types = {0};
    size_t n = t->tokens.size / sizeof(struct token);
    if (!t->model || n == 0) return fail(err, ERR_FORMAT, "vocab", 0, "The tokenizer.json file has no vocabulary.");
    if (!t->split)
        return fail(err, ERR_UNSUPPORTED, "tokenizer", 0,
                    "The tokenizer.json file has no pre-tokenizer; byte-level BPE needs one.");
    const struct text_split *split = t->split;
    while (split->names && (split->whole != t->whole || strcmp(split->regex, t->split->regex))) split++;
    if (!split->names)
        return fail(err, ERR_UNSUPPORTED, "tokenizer", 0,
                    "The tokenizer's setting ignore_merges is not supported with the split %s.", t->split->names[0]);
    t->split = split;
    if (t->n_ids > 2 * n + HOLES_MAX)
        return fail(err, ERR_FORMAT, "vocab", 0, "The vocabulary has %zu tokens with ids up to %u.", n,
                    (unsigned)t->n_ids - 1);
    uint32_t *by_id = mem_array(t->mem, t->n_ids, sizeof *by_id);
    int status = by_id ? sort_tokens(t, by_id, err) : ERR_MEM_LOAD;
    if (!status && !pack(t, by_id, &texts, &types)) status = ERR_MEM_LOAD;
    if (status == ERR_MEM_LOAD) fail(err, ERR_MEM_LOAD, "header", 0, "Not enough memory for the vocabulary.");
    if (!status) status = write_vocabulary(t, model, &texts, &types, err);
    if (!status) status = write_added(t, model, err);
    mem_free(t->mem, by_id);
    mem_free(t->mem, texts.data);
    mem_free(t->mem, types.data);
    return status;
}

const struct hf_reader hf_tokenizer = {keys, read_key, done};
