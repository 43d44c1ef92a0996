/* SPDX-License-Identifier: MIT
 *
 * safetensors: a length, a JSON header of that length, and tensors that fill the rest of the file without gaps.
 *
 * The header is collected as it arrives (its length may be false) and read when it is complete. Hugging Face's names
 * are replaced by canonical ones in place, so that errors have positions. The JSON files of the folder describe the
 * model (see json.c), so the layout of experts in one tensor is determined later, by settle().
 */
#include "base/json_reader.h"
#include "base/reader.h"
#include "load/architecture.h"
#include "load/formats/hf.h"
#include "load/metadata.h"

#include <stdio.h>
#include <string.h>

enum {
    FIXED = 8, /* the length */
    DIMS_MAX = 8,
};

/* --- names ---------------------------------------------------------------------------------------------- */

/* Removes `text` from the beginning of b. Returns false if b does not begin with it. */
static bool take_text(struct bytes *b, const char *text)
{
    size_t n = strlen(text);
    if (b->size < n || memcmp(b->data, text, n) != 0) return false;
    *b = (struct bytes){b->data + n, b->size - n};
    return true;
}

/* Removes a decimal number and a full stop from the beginning of b. */
static bool take_index(struct bytes *b, int *out)
{
    size_t n = 0;
    *out = 0;
    while (n < b->size && n < 6 && b->data[n] >= '0' && b->data[n] <= '9') *out = *out * 10 + b->data[n++] - '0';
    if (n == 0 || (n > 1 && b->data[0] == '0') || n == b->size || b->data[n] != '.') return false;
    *b = (struct bytes){b->data + n + 1, b->size - n - 1};
    return true;
}

static bool ends_with(struct bytes b, const char *text)
{
    size_t n = strlen(text);
    return b.size > n && memcmp(b.data + b.size - n, text, n) == 0;
}

struct rename {
    const char *from, *to;
};

static const char *renamed(struct bytes *b, const struct rename *table, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (take_text(b, table[i].from)) return table[i].to;
    return NULL;
}

#define RENAMED(b, table) renamed((b), (table), sizeof(table) / sizeof *(table))

static const struct rename outside[] = {
    {"embed_tokens.", "token_embd"}, {"norm.", "output_norm"}, {"lm_head.", "output"}};
static const struct rename inside[] = {
    {"input_layernorm.", "attn_norm"},           {"post_attention_layernorm.", "post_attention_norm"},
    {"self_attn.q_proj.", "attn_q"},             {"self_attn.k_proj.", "attn_k"},
    {"self_attn.v_proj.", "attn_v"},             {"self_attn.o_proj.", "attn_output"},
    {"self_attn.q_norm.", "attn_q_norm"},        {"self_attn.k_norm.", "attn_k_norm"},
    {"mlp.gate_proj.", "ffn_gate"},              {"mlp.up_proj.", "ffn_up"},
    {"mlp.down_proj.", "ffn_down"},              {"mlp.gate.", "ffn_gate_inp"}, /* the router */
    {"mlp.switch_mlp.gate_proj.", "ffn_gate_exps"}, {"mlp.switch_mlp.up_proj.", "ffn_up_exps"},
    {"mlp.switch_mlp.down_proj.", "ffn_down_exps"},
    {"linear_attn.in_proj_qkv.", "attn_qkv"},    {"linear_attn.in_proj_z.", "attn_gate"},
    {"linear_attn.in_proj_a.", "ssm_alpha"},     {"linear_attn.in_proj_b.", "ssm_beta"},
    {"linear_attn.conv1d.", "ssm_conv1d"},       {"linear_attn.norm.", "ssm_norm"},
    {"linear_attn.out_proj.", "ssm_out"},
};
/* Names without ".weight". GGUF's ssm_a has other values than A_log, hence the other name. */
static const struct rename partless[] = {{"linear_attn.A_log", "ssm_a_log"}, {"linear_attn.dt_bias", "ssm_dt.bias"}};
static const struct rename expert[] = {{"gate_proj.", "ffn_gate"}, {"up_proj.", "ffn_up"}, {"down_proj.", "ffn_down"}};
static const struct rename parts[] = {
    /* of FP8, of compressed-tensors, of MLX, of GPTQ and AWQ; longer names before those that they begin with */
    {"weight_scale_inv", "scale"}, {"weight_scale", "scale"}, {"weight_packed", "weight"},
    {"weight_zero_point", "zero"}, {"weight_g_idx", "order"}, {"weight", "weight"}, {"scales", "scale"},
    {"biases", "offset"}, {"bias", "bias"}, {"qweight", "weight"}, {"qzeros", "zero"}, {"g_idx", "order"}};

/* Names of the vision encoder, and of the layers that it adds after some of its blocks, each numbered by its
 * position. */
static const struct rename vision[] = {
    {"patch_embed.proj.", "v.patch_embd"}, {"pos_embed.", "v.position_embd"},
    {"merger.norm.", "v.post_ln"},         {"merger.linear_fc1.", "mm.0"},
    {"merger.linear_fc2.", "mm.2"},
};
static const struct rename block[] = {
    {"norm1.", "ln1"},             {"norm2.", "ln2"},
    {"attn.qkv.", "attn_qkv"},     {"attn.proj.", "attn_out"},
    {"mlp.linear_fc1.", "ffn_up"}, {"mlp.linear_fc2.", "ffn_down"},
};
static const struct rename added[] = {{"norm.", "norm"}, {"linear_fc1.", "fc1"}, {"linear_fc2.", "fc2"}};

enum { CANONICAL = 64 };

static void vision_name(struct bytes name, char out[CANONICAL])
{
    int i = -1;
    bool in_block = take_text(&name, "blocks.") && take_index(&name, &i);
    bool in_added = !in_block && take_text(&name, "deepstack_merger_list.") && take_index(&name, &i);
    const char *role = in_block ? RENAMED(&name, block) : in_added ? RENAMED(&name, added) : RENAMED(&name, vision);
    const char *part = role ? RENAMED(&name, parts) : NULL;
    if (!part || name.size) return;
    if (i < 0) snprintf(out, CANONICAL, "%s.%s", role, part);
    else snprintf(out, CANONICAL, "v.%s.%d.%s.%s", in_block ? "blk" : "deepstack", i, role, part);
}

/* Writes the canonical name of a tensor, such as blk.N.ffn_gate.e.weight for expert e of a layer; "" if no model uses
 * it. */
static void canonical_name(struct bytes name, char out[CANONICAL])
{
    int layer = -1, e = -1;
    out[0] = 0;
    take_text(&name, "model.");
    if (take_text(&name, "visual.")) {
        vision_name(name, out);
        return;
    }
    take_text(&name, "language_model.");
    bool in_layer = take_text(&name, "layers.") && take_index(&name, &layer);
    bool in_expert = in_layer && take_text(&name, "mlp.experts.") && take_index(&name, &e);
    const char *vector = in_layer && !in_expert ? RENAMED(&name, partless) : NULL;
    if (vector && !name.size) snprintf(out, CANONICAL, "blk.%d.%s", layer, vector);
    if (vector) return;
    const char *role = in_expert ? RENAMED(&name, expert) : in_layer ? RENAMED(&name, inside) : RENAMED(&name, outside);
    const char *part = role ? RENAMED(&name, parts) : NULL;
    if (!part || name.size) return;
    if (in_expert) snprintf(out, CANONICAL, "blk.%d.%s.%d.%s", layer, role, e, part);
    else if (in_layer) snprintf(out, CANONICAL, "blk.%d.%s.%s", layer, role, part);
    else snprintf(out, CANONICAL, "%s.%s", role, part);
}

/* Writes the canonical name over the name and its quotes, if it fits. output_norm.weight is one byte longer, and still
 * fits. */
static struct span rename_tensor(struct json_reader *r, struct bytes name)
{
    char canonical[CANONICAL];
    size_t at = (size_t)(name.data - r->text), n;
    canonical_name(name, canonical);
    n = strlen(canonical);
    if (n == 0 || n > name.size + 2) return (struct span){FIXED + at, name.size};
    memcpy(r->text + at - 1, canonical, n);
    return (struct span){FIXED + at - 1, n};
}

/* --- types ---------------------------------------------------------------------------------------------- */

/* Types that the format has and this engine does not run. They are refused only if a model uses such a tensor. */
#define OTHER(name, bytes) {name, UINT32_MAX, 1, bytes, LAYOUT_NONE, NULL}
static const struct dtype others[] = {
    OTHER("BOOL", 1),        OTHER("U8", 1),          OTHER("I8", 1),  OTHER("F8_E5M2", 1), OTHER("F8_E8M0", 1),
    OTHER("F8_E4M3FNUZ", 1), OTHER("F8_E5M2FNUZ", 1), OTHER("I16", 2), OTHER("U16", 2),     OTHER("I32", 4),
    OTHER("U32", 4),         OTHER("F64", 8),         OTHER("I64", 8), OTHER("U64", 8),     OTHER("C64", 8),
};
static const char *const sub_byte[] = {"F4", "F6_E2M3", "F6_E3M2"};

static const struct dtype *find_type(struct bytes name)
{
    static const char *const ours[] = {"F32", "F16", "BF16", "F8_E4M3"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (bytes_equal(name, ours[i])) return dtype_by_name(ours[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (bytes_equal(name, others[i].name)) return &others[i];
    return NULL;
}

static int fail_type(struct json_reader *r, struct bytes name)
{
    char text[QUOTED];
    for (size_t i = 0; i < sizeof sub_byte / sizeof *sub_byte; i++)
        if (bytes_equal(name, sub_byte[i]))
            return r->status =
                       fail(r->err, ERR_UNSUPPORTED, "dtype", FIXED + r->pos,
                            "The file holds tensors of the type %s, which this version does not run.", sub_byte[i]);
    return r->status = fail(r->err, ERR_FORMAT, "dtype", FIXED + r->pos,
                            "The file holds a tensor of the unknown type \"%.64s\".", quoted(name, text));
}

/* --- the header ------------------------------------------------------------------------------------------- */

struct entry {
    struct tensor t;
    uint64_t elements, outer; /* outer: the outermost dimension */
    int64_t begin, end;
    bool has_type, has_shape, has_offsets;
};

/* Reads the dimensions, outermost first. The last one is the columns, the product of the others the rows. */
static void read_shape(struct json_reader *r, struct entry *e)
{
    int64_t dim;
    e->t.cols = e->t.rows = e->t.stack = e->elements = e->outer = 1;
    if (!json_open(r, JSON_ARRAY)) return;
    while (json_more(r) && json_integer(r, &dim)) {
        bool fits = e->t.n_dims < DIMS_MAX && mul64(e->t.rows, e->t.cols, &e->t.rows) &&
                    mul64(e->elements, (uint64_t)dim, &e->elements);
        if (!fits || (dim > INT32_MAX)) {
            r->status =
                fail(r->err, ERR_FORMAT, "size", FIXED + r->pos, "The shape at byte %zu is too large.", FIXED + r->pos);
            return;
        }
        if (e->t.n_dims == 0) e->outer = (uint64_t)dim;
        e->t.cols = (uint64_t)dim;
        e->t.n_dims++;
    }
    if (e->t.n_dims == 3 && e->outer > 0) e->t.stack = e->outer;
}

static void read_offsets(struct json_reader *r, struct entry *e)
{
    int64_t *ends[] = {&e->begin, &e->end};
    int n = 0;
    if (!json_open(r, JSON_ARRAY)) return;
    for (; n < 3 && json_more(r); n++)
        if (n < 2) json_integer(r, ends[n]);
    if (!r->status && (n != 2 || e->begin > e->end))
        r->status = fail(r->err, ERR_FORMAT, "offsets", FIXED + r->pos,
                         "The data_offsets at byte %zu are not a beginning and an end.", FIXED + r->pos);
}

static void read_field(struct json_reader *r, struct bytes key, struct entry *e)
{
    struct bytes name;
    size_t at = r->pos;
    bool *seen = bytes_equal(key, "dtype")          ? &e->has_type
                 : bytes_equal(key, "shape")        ? &e->has_shape
                 : bytes_equal(key, "data_offsets") ? &e->has_offsets
                                                    : NULL;
    if (!seen || *seen) {
        json_wrong(r, at,
                   seen ? "a field occurs twice in one entry" : "an entry has a field that the format does not have");
        return;
    }
    *seen = true;
    if (seen == &e->has_shape) read_shape(r, e);
    else if (seen == &e->has_offsets) read_offsets(r, e);
    else if (json_string_value(r, &name) && !(e->t.type = find_type(name))) fail_type(r, name);
}

static int check_entry(const struct checkpoint *ck, struct json_reader *r, struct entry *e, size_t at)
{
    char name[QUOTED];
    if (!e->has_type || !e->has_shape || !e->has_offsets)
        return json_wrong(r, at, "an entry lacks its type, its shape or its offsets"), r->status;
    e->t.bytes = (uint64_t)e->end - (uint64_t)e->begin;
    uint64_t bytes;
    if (mul64(e->elements, e->t.type->bytes, &bytes) && bytes == e->t.bytes) return OK;
    return r->status = fail(r->err, ERR_FORMAT, "size", FIXED + at,
                            "The tensor \"%.64s\" has %llu bytes, but its shape and type ask for another number.",
                            quoted(ck_view(ck, e->t.name), name), (unsigned long long)e->t.bytes);
}

/* --- tensors whose storage differs from GGUF's -------------------------------------------------------------- */

/* Gives two dimensions to the matrix of patches, which is [dim, 3, 2, 16, 16] in the file, and to that of a
 * convolution, [channels, 1, 4]. */
static void flatten(struct tensor *t, const struct entry *e, struct bytes name)
{
    int layer;
    bool patches = e->t.n_dims == 5 && bytes_equal(name, "v.patch_embd.weight");
    bool filters = e->t.n_dims == 3 && t->rows == e->outer && take_text(&name, "blk.") && take_index(&name, &layer) &&
                   bytes_equal(name, "ssm_conv1d.weight");
    if (!e->outer || !(patches || filters)) return;
    t->cols = e->elements / e->outer;
    t->rows = e->outer;
    t->stack = 1;
    t->n_dims = 2;
}

/* Programs that only need vectors save a model's trunk, under names without "model.". */
static bool is_trunk(struct bytes name)
{
    take_text(&name, "language_model.");
    return bytes_equal(name, "norm.weight") || bytes_equal(name, "embed_tokens.weight") || take_text(&name, "layers.");
}

static int read_entry(struct checkpoint *ck, struct json_reader *r, struct bytes name)
{
    struct entry e = {0};
    struct bytes key;
    size_t at = (size_t)(name.data - r->text);
    ck->trunk = ck->trunk || is_trunk(name);
    if (name.size == 0 || memchr(name.data, 0, name.size))
        return json_wrong(r, at, "a tensor's name is empty or holds a NUL"), r->status;
    for (size_t i = 0; i + 6 <= name.size; i++)
        /* PEFT has a capital A, MLX a small one */
        if (memcmp(name.data + i, "lora_", 5) == 0 && (name.data[i + 5] | 32) == 'a')
            return r->status = fail(r->err, ERR_UNSUPPORTED, "lora", FIXED + at,
                                    "This is a LoRA adapter, not a model; merge it into its model first.");
    const char *method = hf_quantized_tensor(name);
    if (method)
        return r->status = fail(
                   r->err, ERR_UNSUPPORTED, "quantisation", FIXED + at,
                   "The weights are quantised with %s, which this version does not read; take the model's GGUF file.",
                   method);
    bool words = ends_with(name, ".qweight") || ends_with(name, ".qzeros"),
         along = ends_with(name, ".weight_packed") || ends_with(name, ".weight_zero_point");
    ck->name_hash += name_hash(name);
    e.t.name = rename_tensor(r, name);
    if (json_open(r, JSON_OBJECT))
        while (json_key(r, &key)) read_field(r, key, &e);
    if (!r->status) check_entry(ck, r, &e, at);
    e.t.offset = (uint64_t)e.begin; /* made absolute later */
    if (r->status) return r->status;
    if (!strcmp(e.t.type->name, "U32")) e.t.packing = PACKING_MLX;
    if (along && !strcmp(e.t.type->name, "I32")) e.t.packing = PACKING_CT;
    if (words && !strcmp(e.t.type->name, "I32")) e.t.packing = PACKING_GPTQ; /* or AWQ: settle() */
    flatten(&e.t, &e, ck_view(ck, e.t.name));
    return ck_add_tensor(ck, &e.t, r->err);
}

/* Skips an object of strings, which the engine does not use. */
static void read_notes(struct json_reader *r)
{
    struct bytes text;
    if (json_peek(r) == JSON_NULL) {
        json_skip(r);
        return;
    }
    if (!json_open(r, JSON_OBJECT)) return;
    while (json_key(r, &text) && json_string_value(r, &text)) {}
}

static int read_header(struct checkpoint *ck, struct json_reader *r)
{
    struct bytes name;
    int notes = 0;
    if (!json_open(r, JSON_OBJECT)) return r->status;
    while (json_key(r, &name)) {
        if (!bytes_equal(name, "__metadata__")) {
            if (read_entry(ck, r, name)) return r->err->code;
        } else if (notes++) json_wrong(r, r->pos, "__metadata__ occurs twice");
        else read_notes(r);
    }
    return r->status ? r->status : json_finish(r);
}

/* --- positions -------------------------------------------------------------------------------------------- */

/* Sorts the tensors and checks that they follow each other without gaps after the header. Makes offsets absolute. */
static int place_tensors(struct checkpoint *ck, struct error *err)
{
    uint64_t at = 0;
    char name[QUOTED];
    ck_sort_tensors(ck);
    for (size_t i = 0; i < ck->n_tensors; i++) {
        struct tensor *t = &ck->tensors[i];
        if (t->offset != at)
            return fail(err, ERR_FORMAT, "offsets", t->name.at,
                        "The tensor \"%.64s\" begins at %llu, but the one before it ends at %llu.",
                        quoted(ck_view(ck, t->name), name), (unsigned long long)t->offset, (unsigned long long)at);
        at += t->bytes; /* data_offsets are below 2^63 */
        t->offset += ck->begin;
    }
    ck->file_size = ck->begin + at;
    return OK;
}

static int check_file_size(const struct checkpoint *ck, struct error *err)
{
    bool less = ck->known_size < ck->file_size;
    if (!ck->known_size || ck->known_size == ck->file_size) return OK;
    return fail(err, ERR_FORMAT, less ? "truncated" : "trailing", less ? ck->known_size : ck->file_size,
                "The file has %llu bytes; by its header it should have %llu.", (unsigned long long)ck->known_size,
                (unsigned long long)ck->file_size);
}

static int finish(struct checkpoint *ck, struct error *err)
{
    struct json_reader r = {.text = ck->header + FIXED,
                            .size = ck->header_size - FIXED,
                            .base = FIXED,
                            .rule = "header-json",
                            .what = "The file's header",
                            .err = err};
    int status = read_header(ck, &r);
    ck->begin = ck->header_size;
    if (!status && ck->n_tensors == 0)
        status = fail(err, ERR_FORMAT, "no-tensors", FIXED, "The file holds no tensors.");
    if (!status) status = place_tensors(ck, err);
    if (!status) status = check_file_size(ck, err);
    return status ? status : ck_complete(ck, err);
}

/* At the first call ck->header already has the first SNIFF bytes. */
static int header(struct checkpoint *ck, const uint8_t *bytes, size_t n, size_t *used, struct error *err)
{
    uint64_t length = load_u64(ck->header), end;
    if (length < 2 || length > SAFETENSORS_MOST || !add64(length, FIXED, &end) ||
        (ck->known_size && end > ck->known_size))
        return fail(err, ERR_FORMAT, "header-length", 0,
                    "The file claims a header of %llu bytes, which is impossible.", (unsigned long long)length);
    if (end < ck->header_size) /* so short that sniffing has read past its end */
        return fail(err, ERR_FORMAT, "no-tensors", FIXED, "The file holds no tensors.");
    *used = end - ck->header_size < n ? (size_t)(end - ck->header_size) : n;
    int status = ck_keep(ck, bytes, *used, err);
    if (status || ck->header_size < end) return status ? status : NEED_MORE;
    return finish(ck, err);
}

static int ended(struct checkpoint *ck, struct error *err)
{
    return fail(err, ERR_FORMAT, "truncated", ck->header_size, "The file ends at byte %zu, inside its header.",
                ck->header_size);
}

/* --- settings of the folder's other files ------------------------------------------------------------------- */

/* Renames a tensor if the header has no room for the new name. */
static int rename_later(struct checkpoint *ck, size_t i, const char *name, struct error *err)
{
    struct span span = {ck->header_size, strlen(name)};
    int status = ck_keep(ck, (const uint8_t *)name, span.size, err);
    if (!status) ck->tensors[i].name = span;
    return status;
}

/* All experts of a layer in one tensor, with one matrix for each expert, or two (gate and up). Published Qwen3-VL
 * models store them by columns ([E, dim, 2 e], [E, e, dim]), newer programs by rows ([E, 2 e, dim], [E, dim, e]). */
struct stack {
    int layer;
    bool pair;
};

static bool is_stack(struct bytes name, struct stack *s)
{
    take_text(&name, "model.");
    take_text(&name, "language_model.");
    if (!take_text(&name, "layers.") || !take_index(&name, &s->layer) || !take_text(&name, "mlp.experts."))
        return false;
    s->pair = take_text(&name, "gate_up_proj");
    return (s->pair || take_text(&name, "down_proj")) && name.size == 0;
}

/* Outer dimension of a stack's matrices in the file. */
static uint64_t outer_side(const struct tensor *t) { return t->rows / t->stack; }

/* Whether the tensor is a stack of floats in three dimensions. Others keep their own names, so the model misses
 * them. */
static bool is_stacked(const struct checkpoint *ck, const struct tensor *t, struct stack *s)
{
    return is_stack(ck_view(ck, t->name), s) && t->n_dims == 3 && t->bytes > 0 && dtype_is_plain(t->type);
}

enum order { EITHER, BY_ROWS, BY_COLUMNS };

/* The order that puts the model's width on the expected side; EITHER if the matrix is square. */
static enum order order_of(const struct tensor *t, const struct stack *s, uint64_t dim)
{
    uint64_t when_rows = s->pair ? t->cols : outer_side(t), when_columns = s->pair ? outer_side(t) : t->cols;
    if (when_rows == when_columns && when_rows == dim) return EITHER;
    return when_columns == dim ? BY_COLUMNS : BY_ROWS;
}

/* The order of square matrices: that of the file's other matrices, or else the order of the transformers version that
 * saved them. */
static enum order usual_order(const struct checkpoint *ck, const struct checkpoint *model, bool turned, uint64_t dim)
{
    struct bytes version;
    struct stack s;
    for (size_t i = 0; i < ck->n_tensors; i++)
        if (is_stacked(ck, &ck->tensors[i], &s) && order_of(&ck->tensors[i], &s, dim) != EITHER)
            return order_of(&ck->tensors[i], &s, dim);
    meta_text(model, "config.transformers", false, &version, NULL);
    bool newer = version.size && version.data[0] >= '5' && version.data[0] <= '9';
    return turned && !newer ? BY_COLUMNS : BY_ROWS;
}

/* Splits a stack into one tensor for each matrix of an expert. */
static int split_stack(struct checkpoint *ck, size_t i, const struct stack *s, enum order order, struct error *err)
{
    static const char *const roles[] = {"gate", "up", "down"};
    struct tensor t = ck->tensors[i];
    const uint64_t n = s->pair ? 2 : 1, outer = outer_side(&t), rows = order == BY_ROWS ? outer : t.cols;
    char name[CANONICAL];
    if (rows % n) return OK;
    t.turned = order == BY_COLUMNS;
    if (t.turned) t.cols = outer;
    t.rows = rows / n * t.stack;
    t.bytes /= n;
    t.twin = s->pair ? 2 : 0;
    ck->tensors[i] = t;
    snprintf(name, sizeof name, "blk.%d.ffn_%s_exps.weight", s->layer, roles[s->pair ? 0 : 2]);
    int status = rename_later(ck, i, name, err);
    if (status || !s->pair) return status;
    t.twin = 1;
    t.offset += t.bytes;
    snprintf(name, sizeof name, "blk.%d.ffn_%s_exps.weight", s->layer, roles[1]);
    status = ck_add_tensor(ck, &t, err);
    return status ? status : rename_later(ck, ck->n_tensors - 1, name, err);
}

/* Some programs split stacks by columns as if they were by rows. Each of the two names then has half of the columns of
 * both matrices. */
static int check_halves(const struct checkpoint *ck, uint64_t dim, struct error *err)
{
    struct bytes rest;
    int layer, e;
    for (size_t at = ck_first(ck, "blk."); ck_rest(ck, at, "blk.", &rest); at++) {
        const struct tensor *t = &ck->tensors[ck->by_name[at]];
        if (!take_index(&rest, &layer) || !take_text(&rest, "ffn_gate.") || !take_index(&rest, &e) || t->cols == dim ||
            2 * t->rows != dim)
            continue;
        return fail(
            err, ERR_UNSUPPORTED, "experts", t->name.at,
            "The experts of this folder are cut in halves, as transformers 5.0 saves them by mistake; save the model with a newer version.");
    }
    return OK;
}

static int split_stacks(struct checkpoint *ck, const struct checkpoint *model, struct bytes architecture,
                        struct error *err)
{
    const int64_t unknown = 0;
    char key[96];
    struct stack s;
    int64_t dim = 0;
    size_t n = ck->n_tensors;
    int status = OK;
    snprintf(key, sizeof key, "%.*s.embedding_length", (int)(architecture.size < 64 ? architecture.size : 64),
             (const char *)architecture.data);
    if (meta_int(model, key, 0, INT64_MAX, &unknown, &dim, NULL)) dim = 0;
    const struct architecture *a = architecture_named(architecture);
    bool turned = a && a->turned;
    if (turned) status = check_halves(ck, (uint64_t)dim, err);
    enum order usual = usual_order(ck, model, turned, (uint64_t)dim);
    for (size_t i = 0; !status && i < n; i++) {
        if (!is_stacked(ck, &ck->tensors[i], &s)) continue;
        enum order order = order_of(&ck->tensors[i], &s, (uint64_t)dim);
        status = split_stack(ck, i, &s, order == EITHER ? usual : order, err);
    }
    return status;
}

/* The name of the trunk's last norm is too short to be renamed in place. */
static int name_norm(struct checkpoint *ck, struct error *err)
{
    struct tensor *t = ck_find(ck, "norm.weight");
    return t ? rename_later(ck, (size_t)(t - ck->tensors), "output_norm.weight", err) : OK;
}

/* Qwen3.5 calls the norm before the feed-forward network post_attention_norm, other architectures ffn_norm, which is
 * shorter and replaces it in place. */
static void name_ffn_norms(struct checkpoint *ck)
{
    static const char norm[] = "ffn_norm.weight";
    int layer;
    for (size_t i = 0; i < ck->n_tensors; i++) {
        struct span *name = &ck->tensors[i].name;
        struct bytes role = ck_view(ck, *name);
        if (!take_text(&role, "blk.") || !take_index(&role, &layer) ||
            !bytes_equal(role, "post_attention_norm.weight"))
            continue;
        memcpy(ck->header + name->at + name->size - role.size, norm, sizeof norm - 1);
        name->size -= role.size - (sizeof norm - 1);
    }
}

/* MLX's programs change the norms and the convolutions of Qwen3.5 when they convert it. */
static int check_hybrid(struct bytes by, struct error *err)
{
    if (!bytes_equal(by, "mlx")) return OK;
    return fail(err, ERR_UNSUPPORTED, "quantisation", 0,
                "This is a Qwen3.5 folder of MLX, whose norms have another form, which this version does not read; take the model's "
                "GGUF file, or its folder in BF16.");
}

/* GPTQ and AWQ have the same names of tensors for words and scales of other orders. Whole numbers of 8 bits are codes
 * of compressed-tensors only. */
static int tell_packings(struct checkpoint *ck, struct bytes by, struct error *err)
{
    const enum packing packing = bytes_equal(by, "gptq")      ? PACKING_GPTQ
                                 : bytes_equal(by, "gptq_v2") ? PACKING_GPTQ_V2
                                 : bytes_equal(by, "awq")     ? PACKING_AWQ
                                                              : PACKING_NONE;
    bool codes = bytes_equal(by, "compressed-tensors");
    char name[QUOTED];
    for (size_t i = 0; i < ck->n_tensors; i++) {
        struct tensor *t = &ck->tensors[i];
        struct bytes own = ck_view(ck, t->name);
        if (codes && !strcmp(t->type->name, "I8") && ends_with(own, ".weight")) t->type = dtype_by_name("Q8F");
        if (t->packing == PACKING_GPTQ && !packing)
            return fail(err, ERR_UNSUPPORTED, "quantisation", t->name.at,
                        "The tensor %.64s is of GPTQ or AWQ, but config.json says of neither; take a whole copy of the folder.",
                        quoted(own, name));
        if (t->packing == PACKING_GPTQ || (packing && ends_with(own, ".scale"))) t->packing = packing;
    }
    return OK;
}

static int settle(struct checkpoint *ck, const struct checkpoint *model, struct error *err)
{
    struct bytes architecture, by;
    meta_text(model, "general.quantized_by", false, &by, NULL);
    int status = meta_text(model, "general.architecture", true, &architecture, err);
    if (!status) status = tell_packings(ck, by, err);
    if (!status) status = name_norm(ck, err);
    if (!status) status = split_stacks(ck, model, architecture, err);
    if (status) return status;
    const struct architecture *a = architecture_named(architecture);
    if (!a || a->family != FAMILY_QWEN35) name_ffn_norms(ck);
    else status = check_hybrid(by, err);
    return status ? status : ck_complete(ck, err);
}

const struct format format_safetensors = {
    .name = "safetensors", .too_long = "trailing", .header = header, .ended = ended, .settle = settle};
