/* SPDX-License-Identifier: MIT
 *
 * The table of architectures, and how their weights are bound.
 */
#include "model.h"

#include "num.h"

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

int model_open(struct mem *mem, struct backend *be, struct checkpoint *ck, struct model **out, struct error *err)
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

/* Where a matrix's rows go; the checkpoint owns it. */
struct matrix_sink {
    struct backend *be;
    struct weight *w;
};

static void put_matrix(void *context, int row, int n, const uint8_t *rows)
{
    struct matrix_sink *sink = context;
    sink->be->ops->weight_put(sink->be, sink->w, row, n, rows);
}

static const char *tensor_name(char out[80], const char *format, int layer)
{
    const char *mark = strstr(format, "%d");
    if (!mark) snprintf(out, 80, "%s", format);
    else snprintf(out, 80, "%.*s%d%s", (int)(mark - format), format, layer, mark + 2);
    return out;
}

int model_matrix(struct model *m, struct checkpoint *ck, const char *name, int layer, int cols, int rows, struct weight **out, struct error *err)
{
    return model_stack(m, ck, name, layer, cols, rows, 1, out, err);
}

int model_stack(struct model *m, struct checkpoint *ck, const char *name, int layer, int cols, int rows, int stack, struct weight **out, struct error *err)
{
    char full[80];
    struct tensor *t;
    int status = ck_bind(ck, tensor_name(full, name, layer), (uint64_t)cols, (uint64_t)rows, (uint64_t)stack, &t, err);
    if (status) return status;
    struct matrix_sink *sink = mem_alloc(m->mem, sizeof *sink);
    *out = m->be->ops->weight_new(m->be, t->type, rows * stack, cols);
    if (!sink || !*out) {
        mem_free(m->mem, sink);
        return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the tensor %s (%llu bytes).", full, (unsigned long long)t->bytes);
    }
    *sink = (struct matrix_sink){m->be, *out};
    t->put = put_matrix;
    t->context = sink;
    return OK;
}

struct vector_sink {
    float *out;
    const struct dtype *type;
    int n;
};

static void put_vector(void *context, int row, int n, const uint8_t *bytes)
{
    struct vector_sink *sink = context;
    (void)row, (void)n; /* one row */
    for (int i = 0; i < sink->n; i++, bytes += sink->type->bytes)
        sink->out[i] = sink->type->layout == LAYOUT_F32   ? load_f32(bytes)
                       : sink->type->layout == LAYOUT_F16 ? f32_from_f16(load_u16(bytes))
                                                          : f32_from_bf16(load_u16(bytes));
}

int model_vector(struct model *m, struct checkpoint *ck, const char *name, int layer, int n, float **out, struct error *err)
{
    char full[80];
    struct tensor *t;
    int status = ck_bind(ck, tensor_name(full, name, layer), (uint64_t)n, 0, 1, &t, err);
    if (status) return status;
    struct vector_sink *sink = mem_alloc(m->mem, sizeof *sink);
    *out = mem_array(m->mem, (uint64_t)n, sizeof **out);
    if (!sink || !*out) {
        mem_free(m->mem, sink);
        return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the tensor %s.", full);
    }
    *sink = (struct vector_sink){*out, t->type, n};
    t->put = put_vector;
    t->context = sink;
    return OK;
}
