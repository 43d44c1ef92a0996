/* SPDX-License-Identifier: MIT
 *
 * The table of architectures, and how their weights are bound.
 */
#include "model.h"

#include "quantize.h"
#include "reader.h"

#include <stdio.h>
#include <string.h>

static const struct model_ops *const architectures[] = {&model_qwen3, &model_qwen3moe};

/* Files without the key are taken for the architecture whose keys they have. */
static int find_architecture(const struct checkpoint *ck, const struct model_ops **out, struct error *err)
{
    size_t n = sizeof architectures / sizeof *architectures;
    struct bytes name;
    int status = meta_text(ck, "general.architecture", false, &name, err);
    if (status) return status;
    for (size_t i = 0; i < n; i++) {
        char key[64];
        *out = architectures[i];
        snprintf(key, sizeof key, "%s.block_count", (*out)->architecture);
        if (name.data ? bytes_equal(name, (*out)->architecture) : meta_find(ck, key) != NULL) return OK;
    }
    if (!name.data) return fail(err, ERR_FORMAT, "missing", 0, "The metadata key general.architecture is missing.");
    char text[QUOTED];
    return fail(err, ERR_UNSUPPORTED, "architecture", 0, "The file's architecture is \"%.64s\"; this version runs qwen3 and qwen3moe.", quoted(name, text));
}

int model_open(struct mem *mem, struct backend *be, const struct checkpoint *ck, struct model **out, struct error *err)
{
    const struct model_ops *ops = NULL;
    *out = NULL;
    int status = find_architecture(ck, &ops, err);
    return status ? status : ops->open(mem, be, ck, out, err);
}

void model_free(struct model *m)
{
    if (m) m->ops->free(m);
}

int model_bind(struct model *m, struct checkpoint *ck, bool more, struct error *err)
{
    m->more = more;
    return m->ops->bind(m, ck, err);
}

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
const float *model_end(struct model *m, const struct batch *b) { return m->ops->end(m, b); }

const char *model_key(char out[KEY_SIZE], const char *architecture, const char *name)
{
    snprintf(out, KEY_SIZE, "%s.%s", architecture, name);
    return out;
}

/* --- binding ---------------------------------------------------------------------------------------- */

/* Where a tensor's rows go; the checkpoint owns it. One of `matrix` and `vector` is NULL, and what the other points to is made by model_take(). */
struct sink {
    struct model *m;
    const struct dtype *type; /* of the weight */
    const struct dtype *from; /* of the tensor */
    int rows, cols, stack;    /* rows: of the whole stack */
    struct weight **matrix;
    float **vector;
    bool new;                 /* the first tensor of its weight in any file */
    /* Of a tensor of scales: */
    const struct dtype *scales;
    int n_scales;             /* in a row */
    int high, wide;           /* the rectangle of weights that has one */
};

static void put_matrix(void *context, int row, int n, const uint8_t *rows)
{
    struct sink *sink = context;
    sink->m->be->ops->weight_put(sink->m->be, *sink->matrix, row, n, rows);
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
            be->ops->weight_scale(be, *s->matrix, top, min_int(s->high, s->rows - top), left, min_int(s->wide, s->cols - left), scale);
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
    return fail(err, ERR_INCONSISTENT, "split", t->name.at, "The tensor %s is in two files of the split model; they do not belong together.", name);
}

/* What a matrix becomes. Routers stay floats, and rows that are not whole blocks. */
static const struct dtype *loaded_type(const struct model *m, const struct dtype *type, const char *name, int cols)
{
    bool stays = !m->quantize || type->block > 1 || layouts[type->layout].scaled || cols % (int)m->quantize->block || strstr(name, "ffn_gate_inp");
    return stays ? type : m->quantize;
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
        return fail(err, ERR_INCONSISTENT, "scale", t->name.at, "The tensor %s has the type %s, but another file has scales for it.", name, t->type->name);
    sink->from = t->type;
    sink->type = sink->matrix ? loaded_type(sink->m, t->type, name, sink->cols) : t->type;
    return keep(t, *sink, sink->matrix ? put_matrix : put_vector, err);
}

/* The scales of NAME.weight are NAME.scale. */
static void scale_name(const char *name, char out[80]) { snprintf(out, 80, "%.*s.scale", (int)(strlen(name) - strlen(".weight")), name); }

/* Rectangles of 128 x 128, the last ones cut; or parts of a row. */
static int check_scales(const struct tensor *t, const char *name, struct sink *sink, struct error *err)
{
    uint64_t rows = (uint64_t)sink->rows, cols = (uint64_t)sink->cols;
    bool square = sink->type->layout == LAYOUT_F8, whole = t->cols && cols % t->cols == 0 && (cols / t->cols) % (uint64_t)layouts[sink->type->layout].columns == 0;
    bool fits = square ? t->rows == (rows + 127) / 128 && t->cols == (cols + 127) / 128 : t->rows == rows && whole;
    if (t->type->layout != LAYOUT_F32 && t->type->layout != LAYOUT_F16 && t->type->layout != LAYOUT_BF16)
        return fail(err, ERR_UNSUPPORTED, "quantisation", t->name.at, "The scales %s have the type %s, which this version does not read.", name, t->type->name);
    if (!fits)
        return fail(err, ERR_INCONSISTENT, "shape", t->name.at, "The scales %s are %llu x %llu, which does not suit weights of %d x %d.", name, (unsigned long long)t->cols,
                    (unsigned long long)t->rows, sink->cols, sink->rows);
    sink->scales = t->type;
    sink->n_scales = (int)t->cols;
    sink->high = square ? 128 : 1;
    sink->wide = square ? 128 : (int)(cols / t->cols);
    return OK;
}

static int bind_scales(struct checkpoint *ck, const char *weight, bool there, struct sink sink, struct error *err)
{
    char name[80];
    scale_name(weight, name);
    struct tensor *t = ck_find(ck, name);
    bool wanted = sink.type && layouts[sink.type->layout].scaled;
    if (!t && (!wanted || there || sink.m->more)) return OK;
    if (!t) return fail(err, ERR_FORMAT, "missing", 0, "The tensor %s is missing.", name);
    if (there) return fail_twice(t, name, err);
    if (sink.type && !wanted) return fail(err, ERR_INCONSISTENT, "scale", t->name.at, "The tensor %s has scales, but its type %s has no need of them.", weight, sink.type->name);
    sink.new = !sink.type;
    if (!sink.type) sink.type = dtype_by_name("F8_E4M3"); /* the only one whose scales may be in an earlier file */
    int status = check_scales(t, name, &sink, err);
    t->weights = sink.type;
    return status ? status : keep(t, sink, put_scales, err);
}

int model_matrix(struct model *m, struct checkpoint *ck, const char *name, int layer, int cols, int rows, struct weight **out, struct error *err)
{
    return model_stack(m, ck, name, layer, cols, rows, 1, out, err);
}

int model_stack(struct model *m, struct checkpoint *ck, const char *name, int layer, int cols, int rows, int stack, struct weight **out, struct error *err)
{
    char full[80];
    struct weight_facts facts = *out ? m->be->ops->weight_facts(m->be, *out) : (struct weight_facts){0};
    struct sink sink = {.m = m, .type = facts.type, .rows = rows * stack, .cols = cols, .stack = stack, .matrix = out, .new = !*out};
    int status = bind(ck, tensor_name(full, name, layer), facts.has_rows, &sink, err);
    return status ? status : bind_scales(ck, full, facts.has_scales, sink, err);
}

int model_vector(struct model *m, struct checkpoint *ck, const char *name, int layer, int n, float **out, struct error *err)
{
    char full[80];
    return bind(ck, tensor_name(full, name, layer), *out != NULL, &(struct sink){.m = m, .cols = n, .stack = 1, .vector = out, .new = true}, err);
}

/* --- storage ------------------------------------------------------------------------------------------ */

uint64_t model_take_cost(const struct model *m, const struct checkpoint *ck)
{
    const struct backend_ops *op = m->be->ops;
    uint64_t sum = 0;
    for (size_t i = 0; i < ck->n_tensors; i++) {
        const struct sink *sink = ck->tensors[i].context;
        if (!sink || !sink->new) continue;
        uint64_t cost = sink->matrix ? op->weight_cost(m->be, sink->type, sink->rows, sink->cols) : mem_cost((uint64_t)sink->cols * sizeof(float));
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
        if (sink->matrix) *sink->matrix = m->be->ops->weight_new(m->be, sink->type, sink->rows, sink->cols);
        else *sink->vector = mem_array(m->mem, (uint64_t)sink->cols, sizeof(float));
        if (sink->matrix && *sink->matrix && sink->from != sink->type && sink->from) m->be->ops->weight_from(m->be, *sink->matrix, sink->from);
        if (sink->matrix ? !*sink->matrix : !*sink->vector)
            return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the tensor %.64s (%llu bytes).", quoted(ck_view(ck, t->name), name),
                        (unsigned long long)t->bytes);
    }
    return OK;
}
