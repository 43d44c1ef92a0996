/* SPDX-License-Identifier: MIT
 *
 * The table of architectures, and how their weights are bound.
 */
#include "models/model.h"

#include "base/reader.h"
#include "load/metadata.h"
#include "weights/quantize.h"

#include <stdio.h>
#include <string.h>

static const struct model_ops *const architectures[] = {&model_qwen3, &model_qwen3moe, &model_qwen3vl, &model_qwen3vlmoe};

/* What a file is that is no model, though it may say that it is a qwen3's. */
static int check_kind(const struct checkpoint *ck, struct error *err)
{
    struct bytes kind, name;
    if (meta_text(ck, "general.type", false, &kind, NULL) || meta_text(ck, "general.architecture", false, &name, NULL)) return OK;
    if (bytes_equal(kind, "adapter"))
        return fail(err, ERR_UNSUPPORTED, "lora", 0, "This is an adapter (LoRA), not a model; merge it into its model first.");
    if (bytes_equal(kind, "mmproj") || bytes_equal(name, "clip"))
        return fail(err, ERR_UNSUPPORTED, "projector", 0,
                    "This is the vision part of a model. Load the language model and give this file as `vision`.");
    return OK;
}

/* Files without the name are taken for the architecture whose keys they have. */
static bool is_named(const struct checkpoint *ck, struct bytes name, const struct model_ops *ops)
{
    char key[KEY_SIZE];
    return name.data ? bytes_equal(name, ops->architecture) : meta_find(ck, model_key(key, ops->architecture, "block_count")) != NULL;
}

static int find_architecture(const struct checkpoint *ck, const struct model_ops **out, const char **prefix, struct error *err)
{
    struct bytes name;
    char text[QUOTED];
    int status = meta_text(ck, "general.architecture", false, &name, err);
    *prefix = NULL;
    for (size_t i = 0; !status && !*prefix && i < sizeof architectures / sizeof *architectures; i++) {
        *out = architectures[i];
        if (is_named(ck, name, *out)) *prefix = (*out)->architecture;
        else if (name.data && (*out)->claim) status = (*out)->claim(ck, name, prefix, err);
    }
    if (status || *prefix) return status;
    if (!name.data) return fail(err, ERR_FORMAT, "missing", 0, "The metadata key general.architecture is missing.");
    return fail(err, ERR_UNSUPPORTED, "architecture", 0,
                "The file's architecture is \"%.64s\"; this version runs qwen3, qwen3moe, qwen3vl and qwen3vlmoe.", quoted(name, text));
}

int model_open(struct mem *mem, struct backend *be, const struct checkpoint *ck, struct model **out, struct error *err)
{
    const struct model_ops *ops = NULL;
    const char *prefix;
    *out = NULL;
    int status = check_kind(ck, err);
    if (!status) status = find_architecture(ck, &ops, &prefix, err);
    return status ? status : ops->open(ops, mem, be, ck, prefix, out, err);
}

void model_free(struct model *m)
{
    if (m) m->ops->free(m);
}

/* A file with more layers than its metadata says would run, without the last of them. */
static int check_layers(const struct model *m, const struct checkpoint *ck, struct error *err)
{
    struct bytes rest;
    for (size_t at = ck_first(ck, "blk."); ck_rest(ck, at, "blk.", &rest); at++) {
        int layer = 0;
        size_t n = 0;
        for (; n < rest.size && n < 8 && rest.data[n] >= '0' && rest.data[n] <= '9'; n++) layer = layer * 10 + rest.data[n] - '0';
        if (n == 0 || n == rest.size || rest.data[n] != '.' || layer < m->config.n_layers) continue;
        return fail(err, ERR_INCONSISTENT, "layers", ck->tensors[ck->by_name[at]].name.at,
                    "There are weights of a layer %d, but the metadata says that the layers are 0 to %d; take another copy of the model, or correct "
                    "its block_count.", layer, m->config.n_layers - 1);
    }
    return OK;
}

int model_bind(struct model *m, struct checkpoint *ck, bool more, struct error *err)
{
    int status = check_layers(m, ck, err);
    m->more = more;
    return status ? status : m->ops->bind(m, ck, err);
}

int model_tokenizer(const struct model *m, const struct checkpoint *ck, struct model_tokenizer *out, struct error *err)
{
    return m->ops->tokenizer(ck, out, err);
}

void model_each(const struct model *m, model_part *fn, void *context) { m->ops->each(m, fn, context); }
struct cache_shape model_cache(const struct model *m, int n_pages, enum kv_type type) { return m->ops->cache(m, n_pages, type); }
uint64_t model_reserve_cost(const struct model *m, int max_rows, int max_out) { return m->ops->reserve_cost(m, max_rows, max_out); }
int model_reserve(struct model *m, int max_rows, int max_out) { return m->ops->reserve(m, max_rows, max_out); }

int model_max_cols(const struct model *m)
{
    const struct model_config *c = &m->config;
    int experts = c->n_used * max_int(c->dim, c->expert_dim);
    return max_int(max_int(max_int(c->dim, c->ffn_dim), c->n_heads * c->head_dim), experts);
}

void model_begin(struct model *m, const struct batch *b) { m->ops->begin(m, b); }
void model_layer(struct model *m, const struct batch *b, int layer) { m->ops->layer(m, b, layer); }

/* Outputs that one part makes: multiplications as many as 8,192 of 16 rows and 1,024 columns take. */
static int part_outputs(const struct model *m, const struct batch *b)
{
    enum { MULTIPLE = 64 }; /* struct product's */
    int64_t n = ((int64_t)1 << 27) / ((int64_t)max_int(b->n_logits, 1) * m->config.dim) / MULTIPLE * MULTIPLE;
    return n < MULTIPLE ? MULTIPLE : n < m->config.vocab_size ? (int)n : m->config.vocab_size;
}

int model_parts(const struct model *m, const struct batch *b)
{
    int outputs = part_outputs(m, b);
    return b->n_logits ? (m->config.vocab_size + outputs - 1) / outputs : 1;
}

void model_head(struct model *m, const struct batch *b, int part)
{
    int outputs = part_outputs(m, b), first = part * outputs;
    m->ops->head(m, b, first, min_int(outputs, m->config.vocab_size - first));
}

struct outputs model_end(struct model *m, const struct batch *b)
{
    const struct backend_ops *op = m->be->ops;
    struct outputs made = m->ops->end(m);
    uint64_t logits = (uint64_t)b->n_logits, rest = (uint64_t)(b->n_out - b->n_logits), dim = (uint64_t)m->config.dim;
    struct result results[2];
    int n = 0;
    if (logits) results[n++] = (struct result){made.logits, logits * (uint64_t)m->config.vocab_size};
    if (rest) results[n++] = (struct result){made.hidden + logits * dim, rest * dim};
    if (op->submit) op->submit(m->be, results, n);
    return made;
}

const char *model_key(char out[KEY_SIZE], const char *prefix, const char *name)
{
    snprintf(out, KEY_SIZE, "%s.%s", prefix, name);
    return out;
}

/* --- binding ---------------------------------------------------------------------------------------- */

/* Where a tensor's rows go; the checkpoint owns it. One of `matrix` and `vector` is NULL, and what the other points to is made by model_take(). */
struct sink {
    struct model *m;
    const struct dtype *type; /* of the weight */
    const struct dtype *from; /* of the tensor */
    int rows, cols, stack;    /* of the tensor; rows: of its whole stack */
    int first, all;           /* its place among the rows of the weight */
    struct weight **matrix;
    float **vector;
    bool new;                 /* the first tensor of its weight in any file */
    bool stays;               /* in the type that it is stored in */
    bool outside;             /* of the layers */
    bool experts;             /* a matrix of experts */
    /* Of a tensor of scales: */
    const struct dtype *scales;
    int n_scales;             /* in a row */
    int high, wide;           /* the rectangle of weights that has one */
};

static void put_matrix(void *context, int row, int n, const uint8_t *rows)
{
    struct sink *sink = context;
    sink->m->be->ops->weight_put(sink->m->be, *sink->matrix, sink->first + row, n, rows);
}

static void put_vector(void *context, int row, int n, const uint8_t *bytes)
{
    struct sink *sink = context;
    (void)row, (void)n; /* one row */
    read_floats(sink->type, bytes, sink->cols, *sink->vector);
}

static void put_scales(void *context, int row, int n, const uint8_t *bytes)
{
    const struct sink *s = context;
    struct backend *be = s->m->be;
    for (int r = row; r < row + n; r++)
        for (int i = 0; i < s->n_scales; i++, bytes += s->scales->bytes) {
            int top = r * s->high, left = i * s->wide;
            float scale;
            read_floats(s->scales, bytes, 1, &scale);
            be->ops->weight_scale(be, *s->matrix, s->first + top, min_int(s->high, s->rows - top), left, min_int(s->wide, s->cols - left), scale);
        }
}

static const char *tensor_name(char out[80], const char *format, int layer)
{
    const char *mark = strstr(format, "%d");
    if (!mark) snprintf(out, 80, "%s", format);
    else snprintf(out, 80, "%.*s%d%s", (int)(mark - format), format, layer, mark + 2);
    return out;
}

static int keep(struct tensor *t, struct sink sink, tensor_put *put, struct error *err)
{
    struct sink *kept = mem_alloc(sink.m->mem, sizeof *kept);
    if (!kept) return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the list of tensors.");
    *kept = sink;
    t->put = put;
    t->context = kept;
    return OK;
}

static int fail_twice(const struct tensor *t, const char *name, struct error *err)
{
    return fail(err, ERR_INCONSISTENT, "split", t->name.at, "The tensor %s is there twice; the files do not belong together.", name);
}

/* `there`: an earlier file had it. rows = 0: a vector. */
static int bind(struct checkpoint *ck, const char *name, bool there, struct sink *sink, struct error *err)
{
    struct tensor *t = ck_find(ck, name);
    if (there && t) return fail_twice(t, name, err);
    if (!t && (there || sink->m->more)) return OK;
    int status = ck_bind(ck, name, (uint64_t)sink->cols, (uint64_t)(sink->rows / sink->stack), (uint64_t)sink->stack, &t, err);
    if (status) return status;
    if (sink->type && sink->type != t->type)
        return fail(err, ERR_INCONSISTENT, "type", t->name.at, "The tensor %s has the type %s, but what belongs to it is for %s.", name,
                    t->type->name, sink->type->name);
    sink->from = sink->type = t->type;
    return keep(t, *sink, sink->matrix ? put_matrix : put_vector, err);
}

/* The scales of NAME.weight are NAME.scale. */
static void scale_name(const char *name, char out[80]) { snprintf(out, 80, "%.*s.scale", (int)(strlen(name) - strlen(".weight")), name); }

/* Rectangles of 128 x 128, the last ones cut; or parts of a row. */
static int check_scales(const struct tensor *t, const char *name, struct sink *sink, struct error *err)
{
    uint64_t rows = (uint64_t)sink->rows, cols = (uint64_t)sink->cols;
    bool square = sink->type->layout == LAYOUT_F8,
         whole = t->cols && cols % t->cols == 0 && (cols / t->cols) % (uint64_t)layouts[sink->type->layout].columns == 0;
    bool fits = square ? t->rows == (rows + 127) / 128 && t->cols == (cols + 127) / 128 : t->rows == rows && whole;
    if (t->type->layout != LAYOUT_F32 && t->type->layout != LAYOUT_F16 && t->type->layout != LAYOUT_BF16)
        return fail(err, ERR_UNSUPPORTED, "quantisation", t->name.at, "The scales %s have the type %s, which this version does not read.", name,
                    t->type->name);
    if (!fits)
        return fail(err, ERR_INCONSISTENT, "shape", t->name.at, "The scales %s are %llu x %llu, which does not suit weights of %d x %d.", name,
                    (unsigned long long)t->cols, (unsigned long long)t->rows, sink->cols, sink->rows);
    sink->scales = t->type;
    sink->n_scales = (int)t->cols;
    sink->high = square ? 128 : 1;
    sink->wide = square ? 128 : (int)(cols / t->cols);
    return OK;
}

static int fail_missing(struct error *err, const char *name) { return fail(err, ERR_FORMAT, "missing", 0, "The tensor %s is missing.", name); }

static int bind_scales(struct checkpoint *ck, const char *weight, bool there, struct sink *sink, struct error *err)
{
    char name[80];
    scale_name(weight, name);
    struct tensor *t = ck_find(ck, name);
    bool wanted = sink->type && layouts[sink->type->layout].scaled;
    if (!t && (!wanted || there || sink->m->more)) return OK;
    if (!t) return fail_missing(err, name);
    if (there) return fail_twice(t, name, err);
    if (sink->type && !wanted)
        return fail(err, ERR_INCONSISTENT, "scale", t->name.at, "The tensor %s has scales, but its type %s has no need of them.", weight,
                    sink->type->name);
    sink->new = sink->new && !sink->type;
    if (!sink->type) sink->type = dtype_by_name("F8_E4M3"); /* the only one whose scales may be in an earlier file */
    int status = check_scales(t, name, sink, err);
    t->weights = sink->type;
    return status ? status : keep(t, *sink, put_scales, err);
}

static int bind_whole(struct checkpoint *ck, const char *name, struct sink sink, struct error *err)
{
    struct backend *be = sink.m->be;
    struct weight_facts facts = *sink.matrix ? be->ops->weight_facts(be, *sink.matrix) : (struct weight_facts){0};
    sink.type = facts.type;
    sink.new = !*sink.matrix;
    int status = bind(ck, name, facts.has_rows, &sink, err);
    return status ? status : bind_scales(ck, name, facts.has_scales, &sink, err);
}

int model_matrix(struct model *m, struct checkpoint *ck, const char *name, int layer, int cols, int rows, struct weight **out, struct error *err)
{
    char full[80];
    struct sink sink = {.m = m, .rows = rows, .all = rows, .cols = cols, .stack = 1, .matrix = out, .outside = !strstr(name, "%d")};
    return bind_whole(ck, tensor_name(full, name, layer), sink, err);
}

int model_matrix_as_stored(struct model *m, struct checkpoint *ck, const char *name, int layer, int cols, int rows, struct weight **out,
                           struct error *err)
{
    char full[80];
    struct sink sink = {.m = m, .rows = rows, .all = rows, .cols = cols, .stack = 1, .matrix = out, .stays = true};
    return bind_whole(ck, tensor_name(full, name, layer), sink, err);
}

/* --- matrices of a stack one by one ------------------------------------------------------------------- */

enum part { PART_NONE, PART_WEIGHT, PART_SCALE };

/* What comes after the full stop of NAME.i.weight or NAME.i.scale. */
static enum part parse_single(struct bytes rest, int *i)
{
    size_t n = 0;
    for (*i = 0; n < rest.size && n < 6 && rest.data[n] >= '0' && rest.data[n] <= '9'; n++) *i = *i * 10 + rest.data[n] - '0';
    struct bytes part = {rest.data + n, rest.size - n};
    return n == 0 ? PART_NONE : bytes_equal(part, ".weight") ? PART_WEIGHT : bytes_equal(part, ".scale") ? PART_SCALE : PART_NONE;
}

static int bind_single(struct checkpoint *ck, const char *prefix, int i, enum part part, struct sink sink, struct singles *s, struct error *err)
{
    char name[80];
    bool there = s->there[i] & part;
    snprintf(name, sizeof name, "%.50s%d.weight", prefix, i);
    sink.first = i * sink.rows;
    sink.type = s->type;
    sink.new = part == PART_WEIGHT;
    int status = part == PART_WEIGHT ? bind(ck, name, there, &sink, err) : bind_scales(ck, name, there, &sink, err);
    s->there[i] |= (uint8_t)part;
    s->type = sink.type;
    return status;
}

/* Those of a file, whatever their order. `n`: how many there must be in all files. */
static int bind_singles(struct checkpoint *ck, const char *prefix, int n, const struct sink *sink, struct singles *s, struct error *err)
{
    struct bytes rest;
    int i, status = OK;
    for (size_t at = ck_first(ck, prefix); !status && ck_rest(ck, at, prefix, &rest); at++) {
        const struct tensor *t = &ck->tensors[ck->by_name[at]];
        enum part part = parse_single(rest, &i);
        if (!part) continue;
        if (i >= n)
            return fail(err, ERR_INCONSISTENT, "experts", t->name.at, "There is an expert %d in %s, but the metadata says that they are %d.", i,
                        prefix, n);
        if (!s->there && *sink->matrix) return fail_twice(t, prefix, err);
        if (!s->there) s->there = mem_alloc(sink->m->mem, (size_t)n);
        if (!s->there) return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the list of experts.");
        status = bind_single(ck, prefix, i, part, *sink, s, err);
    }
    return status;
}

/* After the last file. */
static int check_singles(const char *prefix, int n, const struct singles *s, struct error *err)
{
    int wanted = s->type && layouts[s->type->layout].scaled ? PART_WEIGHT | PART_SCALE : PART_WEIGHT;
    char name[80];
    for (int i = 0; i < n; i++) {
        if (s->there[i] == wanted) continue;
        snprintf(name, sizeof name, "%.50s%d.%s", prefix, i, s->there[i] & PART_WEIGHT ? "scale" : "weight");
        return fail_missing(err, name);
    }
    return OK;
}

int model_stack(struct model *m, struct checkpoint *ck, const char *name, int layer, int cols, int rows, int stack, struct weight **out,
                struct singles *singles, struct error *err)
{
    char prefix[80], whole[96];
    struct sink sink = {.m = m, .rows = rows, .all = rows * stack, .cols = cols, .stack = 1, .matrix = out, .experts = true};
    tensor_name(prefix, name, layer);
    snprintf(whole, sizeof whole, "%s_exps.weight", prefix);
    strcat(prefix, ".");
    int status = bind_singles(ck, prefix, stack, &sink, singles, err);
    if (status) return status;
    if (singles->there && ck_find(ck, whole)) return fail_twice(ck_find(ck, whole), whole, err);
    if (singles->there) return m->more ? OK : check_singles(prefix, stack, singles, err);
    sink.rows = sink.all;
    sink.stack = stack;
    return bind_whole(ck, whole, sink, err);
}

/* --- vectors ------------------------------------------------------------------------------------------ */

int model_vector(struct model *m, struct checkpoint *ck, const char *name, int layer, int n, float **out, struct error *err)
{
    char full[80];
    return bind(ck, tensor_name(full, name, layer), *out != NULL, &(struct sink){.m = m, .cols = n, .stack = 1, .vector = out, .new = true}, err);
}

bool model_of_experts(const struct tensor *t) { return ((const struct sink *)t->context)->experts; }

/* --- quantising --------------------------------------------------------------------------------------- */

static bool is_smaller(const struct dtype *a, const struct dtype *b) { return a->bytes * b->block < b->bytes * a->block; }

/* What a matrix becomes. */
static const struct dtype *loaded_type(const struct sink *sink, const struct dtype *type)
{
    const struct dtype *wanted = sink->outside ? sink->m->quantize.ends : sink->m->quantize.layers;
    bool stays = !wanted || sink->stays || layouts[type->layout].scaled || sink->cols % (int)wanted->block || !is_smaller(wanted, type);
    return stays ? type : wanted;
}

void model_quantize(struct model *m, struct checkpoint *ck, struct model_types types)
{
    m->quantize = types;
    for (size_t i = 0; i < ck->n_tensors; i++) {
        struct sink *sink = ck->tensors[i].context;
        if (ck->tensors[i].put == put_matrix) sink->type = loaded_type(sink, ck->tensors[i].type);
    }
}

/* --- storage ------------------------------------------------------------------------------------------ */

uint64_t model_take_cost(const struct model *m, const struct checkpoint *ck)
{
    const struct backend_ops *op = m->be->ops;
    uint64_t sum = 0;
    for (size_t i = 0; i < ck->n_tensors; i++) {
        const struct sink *sink = ck->tensors[i].context;
        if (!sink || !sink->new) continue;
        uint64_t cost = sink->matrix ? op->weight_cost(m->be, sink->type, sink->all, sink->cols) : mem_cost((uint64_t)sink->cols * sizeof(float));
        if (sink->matrix && sink->rows < sink->all) cost = cost / (uint64_t)(sink->all / sink->rows) + 1; /* a part of what the first of them takes */
        if (!add64(sum, cost, &sum)) return UINT64_MAX;
    }
    return sum;
}

int model_take(struct model *m, struct checkpoint *ck, struct error *err)
{
    for (size_t i = 0; i < ck->n_tensors; i++) {
        const struct tensor *t = &ck->tensors[i];
        const struct sink *sink = t->context;
        char name[QUOTED];
        if (!sink || (sink->matrix && *sink->matrix)) continue;
        if (sink->matrix) *sink->matrix = m->be->ops->weight_new(m->be, sink->type, sink->all, sink->cols);
        else *sink->vector = mem_array(m->mem, (uint64_t)sink->cols, sizeof(float));
        if (sink->matrix && *sink->matrix && sink->from && sink->from != sink->type) m->be->ops->weight_from(m->be, *sink->matrix, sink->from);
        if (sink->matrix ? !*sink->matrix : !*sink->vector)
            return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the tensor %.64s (%llu bytes).", quoted(ck_view(ck, t->name), name),
                        (unsigned long long)t->bytes);
    }
    return OK;
}
