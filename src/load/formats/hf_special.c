/* SPDX-License-Identifier: MIT
 *
 * tokenizer_config.json's special tokens, which chat templates use: each is a string or an object that contains one.
 * Only the texts are stored. The vocabulary determines their ids, and being listed here does not make a token end a
 * reply.
 */
#include "load/formats/hf.h"

static const char *const keys[] = {"bos_token", "eos_token", "pad_token", "unk_token", NULL};
enum { TEXTS = sizeof keys / sizeof *keys - 1 };
static const char *const names[TEXTS] = {"tokenizer.bos_token", "tokenizer.eos_token", "tokenizer.pad_token",
                                         "tokenizer.unk_token"};

struct hf_special {
    struct bytes texts[TEXTS];
};

struct hf_special *hf_special_new(struct mem *m) { return mem_alloc(m, sizeof(struct hf_special)); }

static void read_content(struct bytes *text, struct json_reader *r)
{
    struct bytes key;
    if (!json_open(r, JSON_OBJECT)) return;
    while (json_key(r, &key)) {
        if (bytes_equal(key, "content") && json_peek(r) == JSON_STRING) json_string_value(r, text);
        else json_skip(r);
    }
}

static void read_key(void *state, struct json_reader *r, int key)
{
    struct hf_special *s = state;
    enum json_kind kind = json_peek(r);
    if (kind == JSON_STRING) json_string_value(r, &s->texts[key]);
    else if (kind == JSON_OBJECT) read_content(&s->texts[key], r);
    else json_skip(r); /* null, or a form of older programs */
}

static int done(void *state, struct checkpoint *model, struct error *err)
{
    const struct hf_special *s = state;
    int status = OK;
    for (int i = 0; !status && i < TEXTS; i++)
        if (s->texts[i].data) status = ck_put_text(model, names[i], s->texts[i], err);
    return status;
}

const struct hf_reader hf_special = {keys, read_key, done};
