/* SPDX-License-Identifier: MIT
 *
 * Tokens that the model's files add around plain texts, which no template writes, and the texts of the tokens that
 * templates know by name.
 *
 * A folder lists the tokens for both ends of a text in tokenizer.json; GGUF has two switches. Rendered chats get
 * neither, because templates write their own. An id outside the vocabulary (all ones, from programs without such a
 * token) is an error only when that token is needed.
 */
#include "engine/special.h"

#include "base/reader.h"
#include "load/metadata.h"

const struct special specials[] = {
    {"bos_token", "tokenizer.bos_token", "tokenizer.ggml.bos_token_id"},
    {"eos_token", "tokenizer.eos_token", "tokenizer.ggml.eos_token_id"},
    {"pad_token", "tokenizer.pad_token", "tokenizer.ggml.padding_token_id"},
    {"unk_token", "tokenizer.unk_token", "tokenizer.ggml.unknown_token_id"},
    {NULL, NULL, NULL},
};

/* Reads an id of the vocabulary; -1: none. */
static int read_id(const struct quern_engine *e, const char *key, int64_t *id, struct error *err)
{
    const int64_t none = -1;
    int status = meta_int(&e->intake.ck, key, INT64_MIN, INT64_MAX, &none, id, err);
    if (status || *id < 0 || *id >= tok_count(e->tok)) *id = -1;
    return status;
}

struct bytes special_text(const struct quern_engine *e, const struct special *s)
{
    struct bytes text;
    int64_t id;
    if (!meta_text(&e->intake.ck, s->text, false, &text, NULL) && text.data) return text;
    return read_id(e, s->id, &id, NULL) || id < 0 ? (struct bytes){NULL, 0} : tok_bytes(e->tok, (int)id);
}

/* --- around plain texts ----------------------------------------------------------------------------------------- */

static const char *const lists[2] = {"tokenizer.added.before", "tokenizer.added.after"};
static const char *const switches[2] = {"tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token"};
static const char *const switched[2] = {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"};

static int read_list(const struct quern_engine *e, const char *key, struct added *out, struct error *err)
{
    enum { MOST = sizeof out->ids / sizeof *out->ids };
    struct bytes ids;
    uint64_t n;
    int status = meta_array(&e->intake.ck, key, META_I32, false, &ids, &n, err);
    if (!status && n > MOST)
        status = fail(err, ERR_UNSUPPORTED, "tokenizer", 0,
                      "The model adds %llu tokens at one end of texts; at most %d are supported.",
                      (unsigned long long)n, MOST);
    for (uint64_t i = 0; !status && i < n; i++) {
        uint32_t id = load_u32(ids.data + 4 * i);
        if (id < (uint32_t)tok_count(e->tok)) out->ids[out->n++] = (int32_t)id;
        else
            status = fail(err, ERR_INCONSISTENT, "value", 0,
                          "The token %u, which is added to texts, is not in the vocabulary.", (unsigned)id);
    }
    return status;
}

static int read_switch(const struct quern_engine *e, const char *key, bool unsaid, const char *token, struct added *out,
                       struct error *err)
{
    bool adds;
    int64_t id = -1;
    int status = meta_bool(&e->intake.ck, key, unsaid, &adds, err);
    if (!status && adds) status = read_id(e, token, &id, err);
    if (status || !adds) return status;
    if (id < 0)
        return fail(err, ERR_INCONSISTENT, "value", 0, "%s is set, but %s is no token of the vocabulary.", key, token);
    out->ids[out->n++] = (int32_t)id;
    return OK;
}

/* Checks that all metadata have the right types. */
static int check_specials(const struct quern_engine *e, struct error *err)
{
    struct bytes text;
    int64_t id;
    int status = OK;
    for (const struct special *s = specials; !status && s->name; s++) {
        status = read_id(e, s->id, &id, err);
        if (!status) status = meta_text(&e->intake.ck, s->text, false, &text, err);
    }
    return status;
}

int special_read(struct quern_engine *e, struct error *err)
{
    const struct checkpoint *ck = &e->intake.ck;
    bool listed = meta_find(ck, lists[0]) || meta_find(ck, lists[1]);
    int status = check_specials(e, err);
    for (int i = 0; !status && i < 2; i++)
        status = listed ? read_list(e, lists[i], &e->added[i], err)
                        : read_switch(e, switches[i], i == 0 && e->begins, switched[i], &e->added[i], err);
    return status;
}

int quern_added(const struct quern_engine *e, bool behind, const int32_t **ids)
{
    *ids = e->added[behind].ids;
    return e->added[behind].n;
}
