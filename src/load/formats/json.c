/* SPDX-License-Identifier: MIT
 *
 * The JSON files of a model folder: each is kept whole, then walked once. Its keys determine what it is; a file without
 * known keys is ignored. This file has the walk, the chat templates (of tokenizer_config.json and chat_template.json,
 * and of separate files, which the code that reads them wraps in JSON) and the list of tensors of
 * model.safetensors.index.json. The rest is in hf_config.c, hf_quantization.c, hf_special.c, hf_tokenizer.c,
 * hf_vectors.c and hf_vision.c.
 */
#include "load/formats/hf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int header(struct checkpoint *ck, const uint8_t *bytes, size_t n, size_t *used, struct error *err)
{
    int status = ck_keep(ck, bytes, n, err);
    *used = n;
    return status ? status : NEED_MORE;
}

/* --- the index and chat templates ------------------------------------------------------------------------ */

enum { TEMPLATES = 16, TEMPLATE_NAME = 64 };

struct notes {
    struct mem *mem;
    struct template {
        struct bytes name, text;
    } templates[TEMPLATES];
    int n_templates;
    bool files;        /* the templates come from separate files */
    struct noted {
        uint64_t file, name;
    } *tensors;        /* [n_tensors] of the index: hashes of each tensor's name and of its file's name */
    size_t n_tensors, room;
    bool index;
};

static const char *const note_keys[] = {"chat_template", "chat_template_files", "weight_map", NULL};

/* Whether the name can be part of a metadata key. */
static bool is_plain(struct bytes name)
{
    static const char others[] = "_.-";
    for (size_t i = 0; i < name.size; i++) {
        int c = name.data[i], letter = c | 32;
        if (!(letter >= 'a' && letter <= 'z') && !(c >= '0' && c <= '9') && !(c && strchr(others, c))) return false;
    }
    return name.size > 0 && name.size <= TEMPLATE_NAME;
}

/* Adds a template; a later one replaces an earlier one of the same name. Ignores templates with unusable names, and
 * those after the first TEMPLATES. */
static void add_template(struct notes *n, struct bytes name, struct bytes text)
{
    int i = 0;
    while (i < n->n_templates && bytes_compare(n->templates[i].name, name)) i++;
    if (!text.data || !is_plain(name) || i == TEMPLATES) return;
    n->templates[i] = (struct template){name, text};
    n->n_templates += i == n->n_templates;
}

static void read_named(struct notes *n, struct json_reader *r)
{
    struct bytes key, name = {NULL, 0}, text = {NULL, 0};
    if (!json_open(r, JSON_OBJECT)) return;
    while (json_key(r, &key)) {
        if (bytes_equal(key, "name")) json_string_value(r, &name);
        else if (bytes_equal(key, "template")) json_string_value(r, &text);
        else json_skip(r);
    }
    add_template(n, name, text);
}

/* Reads a string, a list of named templates, or an object of templates. */
static void read_template(struct notes *n, struct json_reader *r)
{
    static const char usual[] = "default";
    struct bytes name = {(const uint8_t *)usual, sizeof usual - 1}, text = {NULL, 0};
    if (hf_null(r)) return;
    if (json_peek(r) == JSON_STRING) {
        json_string_value(r, &text);
        add_template(n, name, text);
    } else if (json_peek(r) == JSON_OBJECT) {
        json_open(r, JSON_OBJECT);
        while (json_key(r, &name) && json_string_value(r, &text)) add_template(n, name, text);
    } else if (json_open(r, JSON_ARRAY))
        while (json_more(r)) read_named(n, r);
}

/* Whether the name is that of a file in the same folder. */
static bool plain_name(struct bytes name)
{
    if (name.size == 0 || name.data[0] == '.') return false;
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] == '/' || name.data[i] == '\\' || name.data[i] == ':' || name.data[i] == 0) return false;
    return true;
}

static bool note_tensor(struct notes *n, struct bytes file, uint64_t name)
{
    if (n->n_tensors == n->room) {
        size_t room = n->room ? 2 * n->room : 1024;
        struct noted *grown = mem_resize(n->mem, n->tensors, room * sizeof *grown);
        if (!grown) return false;
        n->tensors = grown;
        n->room = room;
    }
    n->tensors[n->n_tensors++] = (struct noted){name_hash(file), name};
    return true;
}

static void read_weight_map(struct notes *n, struct json_reader *r)
{
    struct bytes tensor, file;
    char text[QUOTED];
    n->index = json_open(r, JSON_OBJECT);
    while (json_key(r, &tensor)) {
        uint64_t name = name_hash(tensor); /* before decoding the next string may overwrite it */
        if (!json_string_value(r, &file)) return;
        if (!plain_name(file))
            r->status =
                fail(r->err, ERR_INCONSISTENT, "index", r->pos,
                     "The index of the weights names a file outside its folder: \"%.64s\".", quoted(file, text));
        else if (!note_tensor(n, file, name))
            r->status = fail(r->err, ERR_MEM_LOAD, "header", 0, "Not enough memory for the index of the weights.");
    }
}

static void read_note(void *state, struct json_reader *r, int key)
{
    struct notes *n = state;
    if (key < 2) n->files |= key == 1, read_template(n, r);
    else read_weight_map(n, r);
}

static int compare_files(const void *a, const void *b)
{
    uint64_t x = ((const struct noted *)a)->file, y = ((const struct noted *)b)->file;
    return (x > y) - (x < y);
}

/* Replaces the list by one number for each file: the sum of its tensors' hashes, as name_hash in struct checkpoint.
 * Returns the number of files. */
static size_t sum_files(struct notes *n)
{
    uint64_t *sums = (uint64_t *)n->tensors;
    size_t files = 0;
    if (n->n_tensors) qsort(n->tensors, n->n_tensors, sizeof *n->tensors, compare_files);
    for (size_t i = 0; i < n->n_tensors;) {
        uint64_t file = n->tensors[i].file, sum = 0;
        for (; i < n->n_tensors && n->tensors[i].file == file; i++) sum += n->tensors[i].name;
        sums[files++] = sum;
    }
    return files;
}

/* Separate template files come one by one, before other files with templates. Of those other files only the first
 * counts. */
static int put_templates(const struct notes *n, struct checkpoint *model, struct error *err)
{
    static const char prefix[] = "tokenizer.chat_template";
    char key[sizeof prefix + 1 + TEMPLATE_NAME];
    int status = OK;
    if (!n->files && ck_any(model, prefix)) return OK;
    for (int i = 0; !status && i < n->n_templates; i++) {
        struct bytes name = n->templates[i].name;
        bool usual = bytes_equal(name, "default");
        int size = snprintf(key, sizeof key, "%s%s%.*s", prefix, usual ? "" : ".", usual ? 0 : (int)name.size,
                            (const char *)name.data);
        if (!ck_seek(model, (struct bytes){(const uint8_t *)key, (size_t)size}))
            status = ck_put_text(model, key, n->templates[i].text, err);
    }
    return status;
}

static int notes_done(void *state, struct checkpoint *model, struct error *err)
{
    struct notes *n = state;
    int status = put_templates(n, model, err);
    if (status || !n->index) return status;
    size_t files = sum_files(n);
    return ck_put_array(model, "index.files", META_U64,
                        (struct bytes){(const uint8_t *)n->tensors, files * sizeof(uint64_t)}, files, err);
}

static const struct hf_reader notes_reader = {note_keys, read_note, notes_done};

/* --- the walk ------------------------------------------------------------------------------------------------- */

enum { READERS = 7 };
struct walk {
    const struct hf_reader *readers[READERS];
    void *states[READERS];
    uint64_t seen[READERS]; /* keys */
    bool complains;
};

/* Keys of error messages that servers send. */
static bool is_complaint(struct bytes name)
{
    static const char *const words[] = {"error", "Error",  "errors",  "message", "Message",
                                        "msg",   "detail", "details", "status",  "statusCode"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (bytes_equal(name, words[i])) return true;
    return false;
}

static void read_field(struct walk *w, struct json_reader *r, struct bytes name)
{
    for (int i = 0; i < READERS; i++)
        for (int key = 0; w->readers[i]->keys[key]; key++) {
            if (!bytes_equal(name, w->readers[i]->keys[key])) continue;
            if (w->seen[i] >> key & 1) json_wrong(r, r->pos, "a key occurs twice");
            w->seen[i] |= 1ull << key;
            w->readers[i]->key(w->states[i], r, key);
            return;
        }
    w->complains = w->complains || is_complaint(name);
    json_skip(r);
}

static int read_all(struct walk *w, struct json_reader *r, struct checkpoint *model)
{
    struct bytes name;
    uint64_t seen = 0;
    if (json_peek(r) == JSON_ARRAY) json_skip(r);
    else if (json_open(r, JSON_OBJECT))
        while (json_key(r, &name)) read_field(w, r, name);
    int status = json_finish(r);
    for (int i = 0; i < READERS; i++) seen |= w->seen[i];
    if (!status && !seen && w->complains)
        status = fail(r->err, ERR_FORMAT, "magic", 0,
                      "This file is not a model: this is JSON, perhaps an error message of the server.");
    for (int i = 0; !status && i < READERS; i++)
        if (w->seen[i]) status = w->readers[i]->done(w->states[i], model, r->err);
    return status;
}

static int read(struct checkpoint *file, struct checkpoint *model, struct error *err)
{
    struct json_reader r = {
        .text = file->header, .size = file->header_size, .rule = "json", .what = "The JSON file", .err = err};
    struct notes notes = {.mem = file->mem};
    struct mem *m = file->mem;
    struct walk w = {
        {&notes_reader, &hf_tokenizer, &hf_config, &hf_vision, &hf_special, &hf_vectors, &hf_quantization},
        {&notes, hf_tokenizer_new(m), hf_config_new(m), hf_vision_new(m), hf_special_new(m), hf_vectors_new(m),
         hf_quantized_new(m)},
        {0},
        false};
    bool there = true;
    for (int i = 0; i < READERS; i++) there = there && w.states[i];
    int status = there ? json_peek(&r) == JSON_ARRAY ? hf_read_modules(&r, model) : read_all(&w, &r, model)
                       : fail(err, ERR_MEM_LOAD, "header", 0, "Not enough memory to read the JSON file.");
    mem_free(m, notes.tensors);
    hf_tokenizer_free(w.states[1]);
    for (int i = 2; i < READERS; i++) mem_free(m, w.states[i]);
    return status;
}

const struct format format_json = {.name = "json", .header = header, .read = read};
