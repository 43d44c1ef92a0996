/* SPDX-License-Identifier: MIT
 *
 * The JSON files beside safetensors files: kept whole, then walked once. Which one it is, its keys say. Here: the walk, the chat template of
 * tokenizer_config.json and the list of tensors of model.safetensors.index.json; the rest is in hf_config.c and hf_tokenizer.c.
 */
#include "hf.h"

#include <stdlib.h>
#include <string.h>

static bool sniff(const uint8_t *b, size_t n)
{
    while (n && (*b == ' ' || *b == '\n' || *b == '\r' || *b == '\t')) b++, n--;
    return n && *b == '{';
}

static int header(struct checkpoint *ck, const uint8_t *bytes, size_t n, size_t *used, struct error *err)
{
    int status = ck_keep(ck, bytes, n, err);
    *used = n;
    return status ? status : NEED_MORE;
}

void hf_unsupported(struct json_reader *r, const char *rule, const char *what, struct bytes name)
{
    char text[QUOTED];
    if (r->status) return;
    r->status = name.data ? fail(r->err, ERR_UNSUPPORTED, rule, r->pos, "%s: \"%.64s\".", what, quoted(name, text)) : fail(r->err, ERR_UNSUPPORTED, rule, r->pos, "%s.", what);
}

bool hf_null(struct json_reader *r)
{
    if (json_peek(r) != JSON_NULL) return false;
    json_skip(r);
    return true;
}

/* --- the index and the chat template ------------------------------------------------------------------------ */

struct notes {
    struct mem *mem;
    struct bytes template;
    uint64_t *files;        /* [tensors] hashes of the names of their files */
    size_t room;
    uint64_t tensors, hash; /* of the index: how many, and the sum of the hashes of their names */
    bool index;
};

static const char *const note_keys[] = {"chat_template", "weight_map", NULL};

/* A string, or a list of named ones, of which "default" is the one. */
static void read_template(struct notes *n, struct json_reader *r)
{
    struct bytes key, name, text;
    if (json_peek(r) == JSON_STRING) {
        json_string_value(r, &n->template);
        return;
    }
    if (hf_null(r) || !json_open(r, JSON_ARRAY)) return;
    while (json_more(r) && json_open(r, JSON_OBJECT)) {
        name = text = (struct bytes){NULL, 0};
        while (json_key(r, &key)) {
            if (bytes_equal(key, "name")) json_string_value(r, &name);
            else if (bytes_equal(key, "template")) json_string_value(r, &text);
            else json_skip(r);
        }
        if (name.data && bytes_equal(name, "default")) n->template = text;
    }
}

/* A file of the same folder. */
static bool plain_name(struct bytes name)
{
    if (name.size == 0 || name.data[0] == '.') return false;
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] == '/' || name.data[i] == '\\' || name.data[i] == ':' || name.data[i] == 0) return false;
    return true;
}

static bool note_file(struct notes *n, struct bytes name)
{
    if (n->tensors == n->room) {
        size_t room = n->room ? 2 * n->room : 1024;
        uint64_t *grown = mem_resize(n->mem, n->files, room * sizeof *grown);
        if (!grown) return false;
        n->files = grown;
        n->room = room;
    }
    n->files[n->tensors++] = name_hash(name);
    return true;
}

static void read_weight_map(struct notes *n, struct json_reader *r)
{
    struct bytes tensor, file;
    char text[QUOTED];
    n->index = json_open(r, JSON_OBJECT);
    while (json_key(r, &tensor) && json_string_value(r, &file)) {
        n->hash += name_hash(tensor);
        if (!plain_name(file))
            r->status = fail(r->err, ERR_INCONSISTENT, "index", r->pos, "The index of the weights names a file outside its folder: \"%.64s\".", quoted(file, text));
        else if (!note_file(n, file)) r->status = fail(r->err, ERR_MEM_LOAD, "header", 0, "Not enough memory for the index of the weights.");
    }
}

static void read_note(void *state, struct json_reader *r, int key)
{
    if (key == 0) read_template(state, r);
    else read_weight_map(state, r);
}

static int compare_hashes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int64_t count_files(struct notes *n)
{
    int64_t count = n->tensors > 0;
    if (n->tensors) qsort(n->files, (size_t)n->tensors, sizeof *n->files, compare_hashes);
    for (uint64_t i = 1; i < n->tensors; i++) count += n->files[i] != n->files[i - 1];
    return count;
}

static int notes_done(void *state, struct checkpoint *model, struct error *err)
{
    struct notes *n = state;
    int status = OK;
    if (n->template.data) status = ck_put_text(model, "tokenizer.chat_template", n->template, err);
    if (!status && n->index) status = ck_put_int(model, "index.tensors", (int64_t)n->tensors, err);
    if (!status && n->index) status = ck_put_int(model, "index.hash", (int64_t)n->hash, err);
    if (!status && n->index) status = ck_put_int(model, "index.files", count_files(n), err);
    return status;
}

static const struct hf_reader notes_reader = {note_keys, read_note, notes_done};

/* --- the walk ------------------------------------------------------------------------------------------------- */

enum { READERS = 3 };
struct walk {
    const struct hf_reader *readers[READERS];
    void *states[READERS];
    uint64_t seen[READERS]; /* keys */
};

static void read_field(struct walk *w, struct json_reader *r, struct bytes name)
{
    for (int i = 0; i < READERS; i++)
        for (int key = 0; w->readers[i]->keys[key]; key++) {
            if (!bytes_equal(name, w->readers[i]->keys[key])) continue;
            if (w->seen[i] >> key & 1) json_wrong(r, r->pos, "a key stands there twice");
            w->seen[i] |= 1ull << key;
            w->readers[i]->key(w->states[i], r, key);
            return;
        }
    json_skip(r);
}

static int read_all(struct walk *w, struct json_reader *r, struct checkpoint *model)
{
    struct bytes name;
    uint64_t seen = 0;
    if (json_open(r, JSON_OBJECT))
        while (json_key(r, &name)) read_field(w, r, name);
    int status = json_finish(r);
    for (int i = 0; i < READERS; i++) seen |= w->seen[i];
    if (!status && !seen) status = fail(r->err, ERR_FORMAT, "magic", 0, "This file is not a model: this is JSON, perhaps an error message of the server.");
    for (int i = 0; !status && i < READERS; i++)
        if (w->seen[i]) status = w->readers[i]->done(w->states[i], model, r->err);
    return status;
}

static int read(struct checkpoint *file, struct checkpoint *model, struct error *err)
{
    struct json_reader r = {.text = file->header, .size = file->header_size, .rule = "json", .what = "The JSON file", .err = err};
    struct notes notes = {.mem = file->mem};
    struct walk w = {{&hf_config, &hf_tokenizer, &notes_reader}, {hf_config_new(file->mem), hf_tokenizer_new(file->mem), &notes}, {0}};
    int status = w.states[0] && w.states[1] ? read_all(&w, &r, model) : fail(err, ERR_MEM_LOAD, "header", 0, "Not enough memory to read the JSON file.");
    mem_free(file->mem, w.states[0]);
    hf_tokenizer_free(w.states[1]);
    mem_free(file->mem, notes.files);
    return status;
}

const struct format format_json = {.name = "json", .sniff = sniff, .header = header, .read = read};
