/* SPDX-License-Identifier: MIT
 *
 * Reading a post-processor. A template names its tokens, and the file may list their ids before or after it, so the
 * names are kept until the object ends. Processors of a sequence apply one after another: each adds its tokens around
 * the results of the earlier ones.
 */
#include "load/formats/hf_template.h"

#include "load/formats/hf.h"

#include <string.h>

enum { SPECIALS_MOST = 16, BEFORE = 0, BEHIND = 1 };

static const struct bytes nothing = {NULL, 0};

/* A token that the template may name. */
struct special {
    struct bytes name;
    struct hf_ids ids;
};

struct processor {
    struct bytes type;
    struct bytes names[2][HF_ADDED_MOST]; /* special tokens before and after the text */
    int n_names[2];
    int texts;                            /* number of places for the text in the template */
    struct special specials[SPECIALS_MOST];
    int n_specials;
};

static void refuse(struct json_reader *r, const char *what, struct bytes name)
{
    hf_unsupported(r, "tokenizer", what, name);
}

/* --- a template ------------------------------------------------------------------------------------------- */

static struct bytes read_id(struct json_reader *r)
{
    struct bytes key, id = nothing;
    if (!json_open(r, JSON_OBJECT)) return id;
    while (json_key(r, &key)) {
        if (bytes_equal(key, "id")) json_string_value(r, &id);
        else json_skip(r);
    }
    return id;
}

static void add_name(struct processor *p, struct json_reader *r, struct bytes name)
{
    int side = p->texts ? BEHIND : BEFORE;
    if (p->n_names[side] == HF_ADDED_MOST)
        refuse(r, "The tokenizer adds more special tokens to a text than are supported", nothing);
    else p->names[side][p->n_names[side]++] = name;
}

/* Reads {"SpecialToken": {"id": NAME}}, or {"Sequence": {"id": "A"}}, which is the text. */
static void read_piece(struct processor *p, struct json_reader *r)
{
    struct bytes key;
    if (!json_open(r, JSON_OBJECT)) return;
    while (json_key(r, &key)) {
        struct bytes id = read_id(r);
        if (bytes_equal(key, "SpecialToken")) add_name(p, r, id);
        else if (!bytes_equal(key, "Sequence") || !bytes_equal(id, "A") || p->texts++)
            refuse(r, "The tokenizer's template is not supported; it has one text and special tokens around it", key);
    }
}

static void read_pieces(struct processor *p, struct json_reader *r)
{
    if (!json_open(r, JSON_ARRAY)) return;
    while (json_more(r)) read_piece(p, r);
}

static void read_special_ids(struct hf_ids *out, struct json_reader *r)
{
    int64_t id;
    if (!json_open(r, JSON_ARRAY)) return;
    while (json_more(r) && json_integer(r, &id)) {
        if (id > INT32_MAX) json_wrong(r, r->pos, "a token's id is too large");
        else if (out->n == HF_ADDED_MOST)
            refuse(r, "A special token of the tokenizer's template stands for more ids than are supported", nothing);
        else out->ids[out->n++] = (int32_t)id;
    }
}

static void read_specials(struct processor *p, struct json_reader *r)
{
    struct bytes name, key;
    if (!json_open(r, JSON_OBJECT)) return;
    while (json_key(r, &name)) {
        struct special one = {.name = name};
        if (!json_open(r, JSON_OBJECT)) return;
        while (json_key(r, &key)) {
            if (bytes_equal(key, "ids")) read_special_ids(&one.ids, r);
            else json_skip(r);
        }
        if (p->n_specials == SPECIALS_MOST)
            refuse(r, "The tokenizer's template has more special tokens than are supported", nothing);
        else p->specials[p->n_specials++] = one;
    }
}

/* --- added ids ------------------------------------------------------------------------------------------------ */

static const struct special *find_special(const struct processor *p, struct bytes name)
{
    for (int i = 0; i < p->n_specials; i++)
        if (bytes_compare(p->specials[i].name, name) == 0) return &p->specials[i];
    return NULL;
}

static void append(struct json_reader *r, struct hf_ids *to, const struct hf_ids *from)
{
    if (to->n + from->n > HF_ADDED_MOST) {
        refuse(r, "The tokenizer adds more special tokens to a text than are supported", nothing);
        return;
    }
    memcpy(to->ids + to->n, from->ids, (size_t)from->n * sizeof *from->ids);
    to->n += from->n;
}

/* Ids of one side's tokens, in order. */
static struct hf_ids ids_of(const struct processor *p, struct json_reader *r, int side)
{
    struct hf_ids out = {.n = 0};
    for (int i = 0; i < p->n_names[side]; i++) {
        const struct special *s = find_special(p, p->names[side][i]);
        if (s) append(r, &out, &s->ids);
        else json_wrong(r, r->pos, "the tokenizer's template names a special token that is not defined");
    }
    return out;
}

/* Adds the template's tokens around those that earlier processors have added. */
static void apply_template(const struct processor *p, struct json_reader *r, struct hf_added *out)
{
    struct hf_ids before = ids_of(p, r, BEFORE), behind = ids_of(p, r, BEHIND);
    if (!p->texts) refuse(r, "The tokenizer's template has no place for the text", nothing);
    append(r, &before, &out->sides[BEFORE]);
    append(r, &out->sides[BEHIND], &behind);
    out->sides[BEFORE] = before;
}

static void apply(const struct processor *p, struct json_reader *r, struct hf_added *out)
{
    if (r->status) return;
    if (bytes_equal(p->type, "TemplateProcessing")) apply_template(p, r, out);
    else if (!bytes_equal(p->type, "ByteLevel")) refuse(r, "The post-processor is not supported", p->type);
}

/* --- processors ------------------------------------------------------------------------------------------- */

static void read_field(struct processor *p, struct json_reader *r, struct bytes key)
{
    if (bytes_equal(key, "type")) json_string_value(r, &p->type);
    else if (bytes_equal(key, "single") && json_peek(r) == JSON_ARRAY) read_pieces(p, r);
    else if (bytes_equal(key, "special_tokens") && json_peek(r) == JSON_OBJECT) read_specials(p, r);
    else json_skip(r);
}

/* Reads one processor of a sequence. A sequence inside a sequence is refused by its name. */
static void read_one(struct json_reader *r, struct hf_added *out)
{
    struct processor p = {.texts = 0};
    struct bytes key;
    if (!json_open(r, JSON_OBJECT)) return;
    while (json_key(r, &key)) read_field(&p, r, key);
    apply(&p, r, out);
}

void hf_read_post(struct json_reader *r, struct hf_added *out)
{
    struct processor p = {.texts = 0};
    struct bytes key;
    bool sequence = false;
    if (hf_null(r) || !json_open(r, JSON_OBJECT)) return;
    while (json_key(r, &key)) {
        if (bytes_equal(key, "processors") && json_peek(r) == JSON_ARRAY) {
            sequence = json_open(r, JSON_ARRAY);
            while (json_more(r)) read_one(r, out);
        } else read_field(&p, r, key);
    }
    if (!sequence || !bytes_equal(p.type, "Sequence")) apply(&p, r, out);
}
