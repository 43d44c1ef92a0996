/* SPDX-License-Identifier: MIT
 *
 * How a sentence-transformers folder makes a text's vector: 1_Pooling/config.json selects hidden states, modules.json
 * lists the steps after them, sentence_bert_config.json changes the text before. Files are recognised by their
 * contents, whatever their names. An unsupported step is not an error, because such a model can still generate and
 * rank; its name is stored (vectors.refused) for callers that request vectors.
 */
#include "load/formats/hf.h"

#include <stdio.h>
#include <string.h>

/* GGUF's numbers; UNSAID for other kinds. */
enum { UNSAID = -1, MEAN = 1, FIRST = 2, LAST = 3 };

static const char *const keys[] = {
    "pooling_mode_cls_token",
    "pooling_mode_mean_tokens",
    "pooling_mode_lasttoken",
    "pooling_mode_max_tokens",
    "pooling_mode_mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens",
    "pooling_mode",
    "include_prompt",
    "modality_config",
    "do_lower_case",
    "word_embedding_dimension",
    NULL,
};
enum { MODES = 6, MODE = MODES, PROMPT, MODALITIES, LOWER };

/* Names of the modes in newer files, in the order of the keys, and their kinds. */
static const struct {
    const char *name;
    int kind;
} modes[MODES] = {
    {"cls", FIRST},          {"mean", MEAN}, {"lasttoken", LAST}, {"max", UNSAID}, {"mean_sqrt_len_tokens", UNSAID},
    {"weightedmean", UNSAID}};

struct hf_vectors {
    bool older[MODES], newer[MODES]; /* by keys of older files; by names in newer files, which take precedence */
    bool said, named;
    bool bare;                       /* tokens before the text, such as an instruction, do not count */
    bool messages, lower;            /* texts first become messages of a chat; texts first become lower case */
    struct bytes other;              /* an unknown mode */
};

struct hf_vectors *hf_vectors_new(struct mem *m) { return mem_alloc(m, sizeof(struct hf_vectors)); }

/* --- pooling ---------------------------------------------------------------------------------------------- */

static void read_mode(struct hf_vectors *v, struct json_reader *r)
{
    struct bytes name;
    int i = 0;
    if (!json_string_value(r, &name)) return;
    while (i < MODES && !bytes_equal(name, modes[i].name)) i++;
    if (i < MODES) v->newer[i] = true;
    else v->other = name;
    v->said = v->named = true;
}

/* A list of one mode means that mode. With several modes, their vectors are joined. */
static void read_modes(struct hf_vectors *v, struct json_reader *r)
{
    if (json_peek(r) != JSON_ARRAY) {
        read_mode(v, r);
        return;
    }
    v->said = v->named = json_open(r, JSON_ARRAY);
    while (json_more(r)) read_mode(v, r);
}

/* For a model with a chat template, newer files state that it takes messages; sentence-transformers then makes a
 * message of each text. */
static void read_modalities(struct hf_vectors *v, struct json_reader *r)
{
    struct bytes key;
    if (!json_open(r, JSON_OBJECT)) return;
    while (json_key(r, &key)) {
        v->messages = v->messages || bytes_equal(key, "message");
        json_skip(r);
    }
}

static void read_key(void *state, struct json_reader *r, int key)
{
    struct hf_vectors *v = state;
    bool there = true;
    if (hf_null(r)) return;
    if (key < MODES) v->said = json_truth(r, &v->older[key]) || v->said;
    else if (key == MODE) read_modes(v, r);
    else if (key == PROMPT) v->bare = json_truth(r, &there) && !there;
    else if (key == MODALITIES && json_peek(r) == JSON_OBJECT) read_modalities(v, r);
    else if (key == LOWER) json_truth(r, &v->lower);
    else json_skip(r);
}

static struct bytes text_of(const char *text) { return (struct bytes){(const uint8_t *)text, strlen(text)}; }

/* Keeps only the first reason. */
static int put_refused(struct checkpoint *model, const char *what, struct error *err)
{
    const char *key = "vectors.refused";
    return ck_seek(model, text_of(key)) ? OK : ck_put_text(model, key, text_of(what), err);
}

static int done(void *state, struct checkpoint *model, struct error *err)
{
    const struct hf_vectors *v = state;
    const bool *chosen = v->named ? v->newer : v->older;
    char text[QUOTED], what[QUOTED + 32];
    int n = 0, mode = 0;
    for (int i = 0; i < MODES; i++)
        if (chosen[i]) n++, mode = i;
    if (v->messages || v->lower)
        return put_refused(model, v->messages ? "texts as messages of a chat" : "texts in lower case", err);
    if (!v->said) return OK;
    if (n == 1 && modes[mode].kind == MEAN && v->bare)
        return put_refused(model, "means of the tokens after the instruction", err);
    if (n == 1 && !v->other.data && modes[mode].kind != UNSAID)
        return ck_put_int(model, "vectors.pooling", modes[mode].kind, err);
    const char *name = n == 1 ? modes[mode].name : n ? "several kinds, joined" : "nothing";
    snprintf(what, sizeof what, "pooling by %.64s", v->other.data ? quoted(v->other, text) : name);
    return put_refused(model, what, err);
}

const struct hf_reader hf_vectors = {keys, read_key, done};

/* --- modules ---------------------------------------------------------------------------------------------- */

struct module {
    struct bytes type, path;
};

static struct module read_module(struct json_reader *r)
{
    struct module m = {0};
    struct bytes key;
    if (!json_open(r, JSON_OBJECT)) return m;
    while (json_key(r, &key)) {
        if (bytes_equal(key, "type") && json_peek(r) == JSON_STRING) json_string_value(r, &m.type);
        else if (bytes_equal(key, "path") && json_peek(r) == JSON_STRING) json_string_value(r, &m.path);
        else json_skip(r);
    }
    return m;
}

/* Class name without its Python modules, since the classes were moved more than once. */
static struct bytes class_of(struct bytes type)
{
    size_t begin = type.size;
    while (begin && type.data[begin - 1] != '.') begin--;
    return begin ? (struct bytes){type.data + begin, type.size - begin} : type;
}

static int put_module(struct checkpoint *model, const struct module *m, struct error *err)
{
    char type[QUOTED], path[QUOTED], what[2 * QUOTED + 32];
    snprintf(what, sizeof what, "a module %.64s (%.64s)", quoted(class_of(m->type), type), quoted(m->path, path));
    return put_refused(model, what, err);
}

static int walk(struct json_reader *r, struct checkpoint *model, bool *normalizes, int *n)
{
    static const char *const known[] = {"Transformer", "Pooling", "Normalize"};
    int status = OK;
    if (!json_open(r, JSON_ARRAY)) return r->status;
    for (; !status && json_more(r); ++*n) {
        struct module m = read_module(r);
        size_t i = 0;
        if (!r->status && !m.type.data) json_wrong(r, r->pos, "a list of modules was expected");
        while (i < 3 && !bytes_equal(class_of(m.type), known[i])) i++;
        *normalizes = *normalizes || i == 2;
        if (!r->status && i == 3) status = put_module(model, &m, r->err);
    }
    return status ? status : json_finish(r);
}

int hf_read_modules(struct json_reader *r, struct checkpoint *model)
{
    bool normalizes = false;
    int n = 0, status = walk(r, model, &normalizes, &n);
    return status || !n ? status : ck_put_bool(model, "vectors.normalize", normalizes, r->err);
}
