/* SPDX-License-Identifier: MIT
 *
 * The metadata of a converted model. GGUF keys are copied, without those of draft blocks that are left out. Metadata
 * from JSON files is in the engine's own form (64-bit integers, lists of end tokens, a vocabulary shorter than the
 * embedding) and becomes the form that other programs read.
 */
#include "cli/convert_keys.h"

#include "load/metadata.h"

#include <stdio.h>
#include <string.h>

enum { TOKEN_UNUSED = 5, QUANTIZATION_VERSION = 2 };

#define ADDED_BEFORE "tokenizer.added.before"
#define ADDED_AFTER "tokenizer.added.after"

static bool starts_with(struct bytes key, const char *text)
{
    size_t n = strlen(text);
    return key.size >= n && memcmp(key.data, text, n) == 0;
}

static bool ends_with(struct bytes key, const char *text)
{
    size_t n = strlen(text);
    return key.size >= n && memcmp(key.data + key.size - n, text, n) == 0;
}

/* Keys of a folder for special and added tokens; GGUF has ids and switches instead (put_special). */
static bool is_of_specials(struct bytes key)
{
    static const char *const keys[] = {ADDED_BEFORE,          ADDED_AFTER,           "tokenizer.bos_token",
                                       "tokenizer.eos_token", "tokenizer.pad_token", "tokenizer.unk_token"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (bytes_equal(key, keys[i])) return true;
    return false;
}

/* A folder's metadata about images belongs in a projector's file, not into the language model's. */
static bool is_of_images(struct bytes key) { return starts_with(key, "clip."); }

/* Keys about the old file's storage, and the engine's own keys, which the new file expresses otherwise. */
static bool is_dropped(struct bytes key)
{
    static const char *const begins[] = {
        "split.",           "index.", "config.", "generation.", "general.file_type", "general.quantization_version",
        "general.alignment"};
    static const char *const ends[] = {".tie_word_embeddings", ".decoder_sparse_step", ".mlp_only_layers",
                                       ".norm.zero_centered", ".ssm.grouped", ".rope.halves"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (starts_with(key, begins[i])) return true;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_with(key, ends[i])) return true;
    return false;
}

static void put_u32(struct gguf_writer *w, const char *key, uint32_t value)
{
    gguf_key(w, text_bytes(key), META_U32, (struct bytes){(const uint8_t *)&value, sizeof value});
}

static void copy(struct gguf_writer *w, const struct checkpoint *ck, const struct meta *m)
{
    struct bytes key = ck_view(ck, m->key), value = ck_view(ck, m->value);
    if (m->type == META_ARRAY) gguf_array(w, key, m->element, m->count, value);
    else gguf_key(w, key, m->type, value);
}

/* Copies a key of a file whose draft blocks, its last ones, the new file lacks: their number is left out, and a list
 * with a value for each block becomes shorter. */
static void copy_shorter(struct gguf_writer *w, const struct checkpoint *ck, const struct meta *m, size_t n_layers,
                         size_t n_blocks)
{
    struct bytes key = ck_view(ck, m->key), value = ck_view(ck, m->value);
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)key.size, (const char *)key.data);
    if (ends_with(key, ".nextn_predict_layers")) return;
    bool may_differ = strstr(name, ".attention.") || ends_with(key, ".feed_forward_length");
    if (ends_with(key, ".block_count")) put_u32(w, name, (uint32_t)n_layers);
    else if (may_differ && m->type == META_ARRAY && m->element != META_STRING && m->count == n_blocks)
        gguf_array(w, key, m->element, n_layers, (struct bytes){value.data, value.size / n_blocks * n_layers});
    else copy(w, ck, m);
}

/* Copies numbers in the types that other programs expect, of 32 bits. */
static void copy_described(struct gguf_writer *w, const struct checkpoint *ck, const struct meta *m)
{
    struct bytes key = ck_view(ck, m->key), value = ck_view(ck, m->value);
    double number;
    int64_t whole;
    if (m->type != META_I64 && m->type != META_F64) return copy(w, ck, m);
    memcpy(&number, value.data, sizeof number);
    memcpy(&whole, value.data, sizeof whole);
    if (m->type == META_F64 && ends_with(key, ".original_context_length")) whole = (int64_t)number;
    else if (m->type == META_F64) {
        float rounded = (float)number;
        gguf_key(w, key, META_F32, (struct bytes){(const uint8_t *)&rounded, sizeof rounded});
        return;
    }
    uint32_t narrow = (uint32_t)whole;
    gguf_key(w, key, META_U32, (struct bytes){(const uint8_t *)&narrow, sizeof narrow});
}

/* --- the vocabulary --------------------------------------------------------------------------------------------- */

/* Takes the next of packed strings. */
static struct bytes next_text(struct bytes *packed)
{
    size_t n = (size_t)load_u64(packed->data);
    struct bytes text = {packed->data + 8, n};
    *packed = (struct bytes){packed->data + 8 + n, packed->size - 8 - n};
    return text;
}

/* Writes as many tokens as the embedding has rows: programs take the vocabulary's size from them. */
static void put_tokens(struct gguf_writer *w, const struct checkpoint *ck, uint64_t rows)
{
    struct bytes texts, types;
    uint64_t n, n_types;
    struct buffer names = {.mem = ck->mem}, kinds = {.mem = ck->mem};
    if (meta_array(ck, "tokenizer.ggml.tokens", META_STRING, true, &texts, &n, NULL) ||
        meta_array(ck, "tokenizer.ggml.token_type", META_I32, true, &types, &n_types, NULL))
        return;
    for (uint64_t id = 0; id < rows || id < n; id++) {
        char padding[32];
        struct bytes text = id < n ? next_text(&texts) : (struct bytes){NULL, 0};
        int32_t type = id < n_types ? (int32_t)load_u32(types.data + 4 * id) : TOKEN_UNUSED;
        snprintf(padding, sizeof padding, "[PAD%llu]", (unsigned long long)id);
        buffer_string(&names, text.size ? text : text_bytes(padding));
        buffer_add(&kinds, &type, sizeof type);
    }
    n = kinds.size / 4;
    gguf_array(w, text_bytes("tokenizer.ggml.tokens"), META_STRING, n, (struct bytes){names.data, names.size});
    gguf_array(w, text_bytes("tokenizer.ggml.token_type"), META_I32, n, (struct bytes){kinds.data, kinds.size});
    w->out.failed |= names.failed || kinds.failed;
    buffer_free(&names);
    buffer_free(&kinds);
}

/* The token with this text; -1: none. */
static int64_t find_token(const struct checkpoint *ck, struct bytes text)
{
    struct bytes texts;
    uint64_t n;
    if (meta_array(ck, "tokenizer.ggml.tokens", META_STRING, true, &texts, &n, NULL)) return -1;
    for (uint64_t id = 0; id < n; id++)
        if (bytes_compare(next_text(&texts), text) == 0) return (int64_t)id;
    return -1;
}

/* The first number of a list; -1: no list, or an empty one. */
static int64_t first_of(const struct checkpoint *ck, const char *list)
{
    struct bytes ids;
    uint64_t n;
    return meta_array(ck, list, META_I32, false, &ids, &n, NULL) || n == 0 ? -1 : (int64_t)load_u32(ids.data);
}

/* The token that tokenizer_config.json names for this key; else `other`. */
static int64_t named(const struct checkpoint *ck, const char *key, int64_t other)
{
    struct bytes text;
    int64_t id = meta_text(ck, key, false, &text, NULL) || !text.data ? -1 : find_token(ck, text);
    return id < 0 ? other : id;
}

static void put_id(struct gguf_writer *w, const char *key, int64_t id)
{
    if (id >= 0) put_u32(w, key, (uint32_t)id);
}

static void put_bool(struct gguf_writer *w, const char *key, bool value)
{
    gguf_key(w, text_bytes(key), META_BOOL, (struct bytes){(const uint8_t *)&value, 1});
}

/* Whether a list has more than the one token that a switch can add. */
static bool is_long(const struct checkpoint *ck, const char *list)
{
    const struct meta *m = meta_find(ck, list);
    return m && m->count > 1;
}

/* GGUF's switches add one token at the beginning or the end: the added token is then the bos or eos token. Otherwise
 * the eos token is the first end token of generation_config.json, or of config.json; the other ids come from
 * tokenizer_config.json, or are Qwen's own. */
static void put_special(struct gguf_writer *w, const struct checkpoint *ck)
{
    const int64_t end = find_token(ck, text_bytes("<|endoftext|>"));
    const int64_t before = is_long(ck, ADDED_BEFORE) ? -1 : first_of(ck, ADDED_BEFORE);
    const int64_t after = is_long(ck, ADDED_AFTER) ? -1 : first_of(ck, ADDED_AFTER);
    int64_t last = first_of(ck, "generation.eos_token_ids");
    if (last < 0) last = first_of(ck, "config.eos_token_ids");
    put_id(w, "tokenizer.ggml.eos_token_id", after >= 0 ? after : last);
    put_id(w, "tokenizer.ggml.padding_token_id", named(ck, "tokenizer.pad_token", end));
    put_id(w, "tokenizer.ggml.bos_token_id", before >= 0 ? before : named(ck, "tokenizer.bos_token", end));
    put_id(w, "tokenizer.ggml.unknown_token_id", named(ck, "tokenizer.unk_token", -1));
    put_bool(w, "tokenizer.ggml.add_bos_token", before >= 0);
    if (after >= 0) put_bool(w, "tokenizer.ggml.add_eos_token", true);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

/* Keys that the new file does not need: the number of tokens gives the vocabulary's size; and the normalisation of
 * experts' shares matters only to models where it may be off. */
static bool is_rebuilt(struct bytes key, const struct model_config *model)
{
    return ends_with(key, ".vocab_size") ||
           ((!model->n_experts || model->sees) && ends_with(key, ".expert_weights_norm"));
}

static bool is_vocabulary(struct bytes key)
{
    return bytes_equal(key, "tokenizer.ggml.tokens") || bytes_equal(key, "tokenizer.ggml.token_type");
}

/* Writes after how many layers something is added to rows of images. */
static void put_added(struct gguf_writer *w, const struct checkpoint *ck, const char *architecture)
{
    struct bytes after;
    uint64_t n;
    uint32_t added = 0;
    char key[KEY_SIZE];
    if (meta_array(ck, "clip.vision.is_deepstack_layers", META_BOOL, true, &after, &n, NULL)) return;
    for (uint64_t i = 0; i < n; i++) added += after.data[i];
    put_u32(w, model_key(key, architecture, "n_deepstack_layers"), added);
}

static void complete(struct gguf_writer *w, const struct checkpoint *ck, const struct model_config *model)
{
    char key[KEY_SIZE];
    struct bytes architecture;
    char name[32];
    if (meta_text(ck, "general.architecture", true, &architecture, NULL)) return;
    snprintf(name, sizeof name, "%.*s", (int)architecture.size, (const char *)architecture.data);
    if (!meta_find(ck, model_key(key, name, "attention.value_length"))) put_u32(w, key, (uint32_t)model->head_dim);
    if (model->pooling >= 0 && !meta_find(ck, model_key(key, name, "pooling_type")))
        put_u32(w, key, (uint32_t)model->pooling);
    gguf_key(w, text_bytes("general.type"), META_STRING, text_bytes("model"));
    if (model->sees) put_added(w, ck, name);
    put_special(w, ck);
}

void convert_keys(struct gguf_writer *w, const struct intake *in, const char *prefix, const struct model_config *model,
                  uint32_t file_type)
{
    const struct checkpoint *ck = &in->ck;
    bool described = in->weights != &format_gguf,
         switched = described && !is_long(ck, ADDED_BEFORE) && !is_long(ck, ADDED_AFTER);
    const size_t n_layers = (size_t)model->n_layers, n_blocks = n_layers + (model->drafts ? 0 : (size_t)model->n_nextn);
    struct bytes scaling;
    char scalings[KEY_SIZE];
    /* a tensor has what Llama 3's scaling does */
    bool blended = !meta_text(ck, model_key(scalings, prefix, "rope.scaling.type"), false, &scaling, NULL) &&
                   bytes_equal(scaling, "llama3");
    bool padded = in->sides > 0 && meta_find(ck, "tokenizer.ggml.token_type");
    for (size_t i = 0; i < ck->n_metas; i++) {
        const struct meta *m = &ck->metas[i];
        struct bytes key = ck_view(ck, m->key);
        bool said_otherwise = (described && (is_rebuilt(key, model) || is_of_images(key))) ||
                              (blended && starts_with(key, model_key(scalings, prefix, "rope.scaling.")));
        if (is_dropped(key) || said_otherwise || (switched && is_of_specials(key)) || (padded && is_vocabulary(key)))
            continue;
        if (described) copy_described(w, ck, m);
        else if (n_blocks > n_layers) copy_shorter(w, ck, m, n_layers, n_blocks);
        else copy(w, ck, m);
    }
    if (described) complete(w, ck, model);
    if (padded) put_tokens(w, ck, (uint64_t)model->vocab_size);
    put_u32(w, "general.file_type", file_type);
    put_u32(w, "general.quantization_version", QUANTIZATION_VERSION);
}
