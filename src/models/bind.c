/* SPDX-License-Identifier: MIT
 *
 * Binds a model's weights to tensors, and allocates them.
 */
#include "models/bind.h"

#include "base/reader.h"
#include "weights/quantize.h"

#include <stdio.h>
#include <string.h>

int bind_layer_of(struct bytes *rest)
{
    int layer = 0;
    size_t n = 0;
    for (; n < rest->size && n < 8 && rest->data[n] >= '0' && rest->data[n] <= '9'; n++)
        layer = layer * 10 + rest->data[n] - '0';
    if (n == 0 || n == rest->size || rest->data[n] != '.') return -1;
    *rest = (struct bytes){rest->data + n + 1, rest->size - n - 1};
    return layer;
}

int bind_check_layers(const struct checkpoint *ck, const char *prefix, int n_layers, struct error *err)
{
    struct bytes rest;
    for (size_t at = ck_first(ck, prefix); ck_rest(ck, at, prefix, &rest); at++) {
        int layer = bind_layer_of(&rest);
        if (layer < n_layers) continue;
        return fail(
            err, ERR_INCONSISTENT, "layers", ck->tensors[ck->by_name[at]].name.at,
            "There are weights of a layer %d, but the metadata says that the layers are 0 to %d; take another copy of the model, or correct "
            "its block_count.",
            layer, n_layers - 1);
    }
    return OK;
}

/* --- binding ---------------------------------------------------------------------------------------- */

/* Where a tensor's rows go; owned by the checkpoint. One of `matrix` and `vector` is NULL; binder_take() allocates what
 * the other points to. */
struct sink {
    struct binder *b;
    const struct dtype *type; /* of the weight */
    const struct dtype *from; /* of the tensor */
    int rows, cols, stack;    /* of the tensor; rows: of its whole stack, 0 for a vector */
    int first, all;           /* place and number of rows within the weight */
    int n;                    /* weights of `all` rows each */
    int unit;                 /* rows that go to each of them in turn */
    struct weight **matrix;   /* [n] */
    float **vector;
    float (*change)(float x); /* of a vector, on loading; NULL: none */
    bool turned;              /* the table is stored by columns */
    int begin;                /* first row in the tensor, if its rows go to several sinks */
    struct sink *next;        /* the sink of the following rows */
    /* for a weight whose rows are spread over several tensors: their number, and the index of this one */
    int strips, strip;
    int strip_cols;
    bool new;                 /* the first tensor of its weight in any file */
    bool stays;               /* keeps its stored type */
    bool outside;             /* not in a layer */
    bool experts;             /* a matrix of experts */
    /* For a tensor of scales: */
    const struct dtype *scales;
    int n_scales;             /* in each row */
    int high, wide;           /* the rectangle of weights that shares a scale */
};

/* Finds the weight that has row *row of the tensor; makes *row count within that weight, and cuts *n to rows that
 * follow each other there. */
static struct weight *weight_of(const struct sink *s, int *row, int *n)
{
    int unit = *row / s->unit, within = *row % s->unit;
    *row = unit / s->n * s->unit + within;
    *n = min_int(*n, s->unit - within);
    return s->matrix[unit % s->n];
}

static size_t row_bytes(const struct sink *s) { return (size_t)s->cols / s->from->block * s->from->bytes; }

static void put_rows(const struct sink *s, int row, int n, const uint8_t *rows)
{
    for (int at = s->first + row, end = at + n, some; at < end; at += some, rows += (size_t)some * row_bytes(s)) {
        int own = at;
        some = end - at;
        struct weight *w = weight_of(s, &own, &some);
        s->b->be->ops->weight_put(s->b->be, w, own, some, rows);
    }
}

static void put_matrix(void *context, int row, int n, const uint8_t *rows)
{
    for (const struct sink *s = context; s; s = s->next) {
        int from = max_int(row, s->begin), to = min_int(row + n, s->begin + s->rows);
        if (from < to) put_rows(s, from - s->begin, to - from, rows + (size_t)(from - row) * row_bytes(s));
    }
}

static void put_strips(void *context, int row, int n, const uint8_t *rows)
{
    const struct sink *s = context;
    size_t width = (size_t)s->strip_cols * s->from->bytes, pitch = row_bytes(s);
    for (int i = 0; i < s->cols / s->strip_cols; i++)
        s->b->be->ops->weight_put_columns(s->b->be, *s->matrix, row, n, (i * s->strips + s->strip) * s->strip_cols,
                                          s->strip_cols, rows + (size_t)i * width, pitch);
}

static void put_vector(void *context, int row, int n, const uint8_t *bytes)
{
    const struct sink *s = context;
    float *out = *s->vector + (size_t)row * (size_t)s->cols;
    read_floats(s->type, bytes, n * s->cols, out);
    for (int i = 0; s->change && i < n * s->cols; i++) out[i] = s->change(out[i]);
}

static void put_turned(void *context, int row, int n, const uint8_t *bytes)
{
    const struct sink *s = context;
    for (int i = 0; i < n * s->cols; i++, bytes += s->type->bytes)
        read_floats(s->type, bytes, 1,
                    *s->vector + (size_t)(i % s->cols) * (size_t)s->rows + (size_t)(row + i / s->cols));
}

/* Sets the scale of the rectangle whose first weight is at row `top` and column `left`. */
static void put_scale(const struct sink *s, int top, int left, float scale)
{
    for (int at = s->first + top, end = at + min_int(s->high, s->rows - top), some; at < end; at += some) {
        int own = at;
        some = end - at;
        struct weight *w = weight_of(s, &own, &some);
        s->b->be->ops->weight_scale(s->b->be, w, own, some, left, min_int(s->wide, s->cols - left), scale);
    }
}

static void put_scales(void *context, int row, int n, const uint8_t *bytes)
{
    const struct sink *s = context;
    for (int r = row; r < row + n; r++)
        for (int i = 0; i < s->n_scales; i++, bytes += s->scales->bytes) {
            float scale;
            read_floats(s->scales, bytes, 1, &scale);
            put_scale(s, r * s->high, i * s->wide, scale);
        }
}

static const char *tensor_name(char out[80], const char *format, int layer)
{
    const char *mark = strchr(format, '%');
    if (!mark) snprintf(out, 80, "%s", format);
    else snprintf(out, 80, "%.*s%d%s", (int)(mark - format), format, layer, mark + 2);
    return out;
}

/* Keeps a sink, with those that follow it in one block. */
static int keep(struct tensor *t, struct sink sink, tensor_put *put, struct error *err)
{
    size_t n = 1, i = 0;
    for (const struct sink *s = sink.next; s; s = s->next) n++;
    struct sink *kept = mem_alloc(sink.b->mem, n * sizeof *kept);
    if (!kept) return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the list of tensors.");
    for (const struct sink *s = &sink; s; s = s->next, i++) {
        kept[i] = *s;
        kept[i].type = sink.type;
        kept[i].from = sink.from;
        kept[i].next = s->next ? &kept[i + 1] : NULL;
    }
    t->put = put;
    t->context = kept;
    return OK;
}

static int fail_twice(const struct tensor *t, const char *name, struct error *err)
{
    return fail(err, ERR_INCONSISTENT, "split", t->name.at,
                "The tensor %s exists twice; the files do not belong together.", name);
}

static tensor_put *put_of(const struct sink *s)
{
    return s->strips ? put_strips : s->matrix ? put_matrix : s->turned ? put_turned : put_vector;
}

/* `there`: an earlier file had the tensor. rows = 0: a vector. */
static int bind(struct checkpoint *ck, const char *name, bool there, struct sink *sink, struct error *err)
{
    struct tensor *t = ck_find(ck, name);
    if (there && t) return fail_twice(t, name, err);
    if (!t && (there || sink->b->more)) return OK;
    int status =
        ck_bind(ck, name, (uint64_t)sink->cols, (uint64_t)(sink->rows / sink->stack), (uint64_t)sink->stack, &t, err);
    if (status) return status;
    if (sink->type && sink->type != t->type)
        return fail(err, ERR_INCONSISTENT, "type", t->name.at,
                    "The tensor %s has the type %s, but other tensors of this weight need %s.", name, t->type->name,
                    sink->type->name);
    sink->from = sink->type = t->type;
    return keep(t, *sink, put_of(sink), err);
}

/* The scales of NAME.weight are NAME.scale. */
static void scale_name(const char *name, char out[80])
{
    snprintf(out, 80, "%.*s.scale", (int)(strlen(name) - strlen(".weight")), name);
}

/* One scale for each 128 x 128 rectangle (those at the ends may be smaller), or for each part of a row. */
static int check_scales(const struct tensor *t, const char *name, struct sink *sink, struct error *err)
{
    uint64_t rows = (uint64_t)sink->rows, cols = (uint64_t)sink->cols;
    bool square = sink->type->layout == LAYOUT_F8,
         whole =
             t->cols && cols % t->cols == 0 && (cols / t->cols) % (uint64_t)layouts[sink->type->layout].columns == 0;
    bool fits = square ? t->rows == (rows + 127) / 128 && t->cols == (cols + 127) / 128 : t->rows == rows && whole;
    if (t->type->layout != LAYOUT_F32 && t->type->layout != LAYOUT_F16 && t->type->layout != LAYOUT_BF16)
        return fail(err, ERR_UNSUPPORTED, "quantisation", t->name.at,
                    "The scales %s have the type %s, which this version does not read.", name, t->type->name);
    if (!fits)
        return fail(err, ERR_INCONSISTENT, "shape", t->name.at,
                    "The scales %s are %llu x %llu, which does not fit weights of %d x %d.", name,
                    (unsigned long long)t->cols, (unsigned long long)t->rows, sink->cols, sink->rows);
    sink->scales = t->type;
    sink->n_scales = (int)t->cols;
    sink->high = square ? 128 : 1;
    sink->wide = square ? 128 : (int)(cols / t->cols);
    return OK;
}

static int fail_missing(struct error *err, const char *name)
{
    return fail(err, ERR_FORMAT, "missing", 0, "The tensor %s is missing.", name);
}

static int bind_scales(struct checkpoint *ck, const char *weight, bool there, struct sink *sink, struct error *err)
{
    char name[80];
    scale_name(weight, name);
    struct tensor *t = ck_find(ck, name);
    bool wanted = sink->type && layouts[sink->type->layout].scaled;
    if (!t && (!wanted || there || sink->b->more)) return OK;
    if (!t) return fail_missing(err, name);
    if (there) return fail_twice(t, name, err);
    if (sink->type && !wanted)
        return fail(err, ERR_INCONSISTENT, "scale", t->name.at,
                    "The tensor %s has scales, but its type %s does not use them.", weight, sink->type->name);
    sink->new = sink->new && !sink->type;
    if (!sink->type) sink->type = dtype_by_name("F8_E4M3"); /* the only type whose scales may be in an earlier file */
    int status = check_scales(t, name, sink, err);
    t->weights = sink->type;
    return status ? status : keep(t, *sink, put_scales, err);
}

static int bind_whole(struct checkpoint *ck, const char *name, struct sink sink, struct error *err)
{
    if (!sink.unit) sink.unit = sink.all;
    struct backend *be = sink.b->be;
    struct weight_facts facts = *sink.matrix ? be->ops->weight_facts(be, *sink.matrix) : (struct weight_facts){0};
    sink.type = facts.type;
    sink.new = !*sink.matrix;
    int status = bind(ck, name, facts.has_rows, &sink, err);
    return status ? status : bind_scales(ck, name, facts.has_scales, &sink, err);
}

static int bind_below(struct binder *b, struct checkpoint *ck, const char *name, int layer, struct sink sink,
                      struct error *err)
{
    char full[80];
    sink.b = b;
    sink.rows = sink.n * sink.all;
    sink.stack = 1;
    return bind_whole(ck, tensor_name(full, name, layer), sink, err);
}

int bind_matrix(struct binder *b, struct checkpoint *ck, const char *name, int layer, int cols, int rows,
                struct weight **out, struct error *err)
{
    struct sink sink = {.all = rows, .cols = cols, .n = 1, .matrix = out, .outside = !strchr(name, '%')};
    return bind_below(b, ck, name, layer, sink, err);
}

int bind_matrix_as_stored(struct binder *b, struct checkpoint *ck, const char *name, int layer, int cols, int rows,
                          struct weight **out, struct error *err)
{
    return bind_below(b, ck, name, layer,
                      (struct sink){.all = rows, .cols = cols, .n = 1, .matrix = out, .stays = true}, err);
}

int bind_in_turn(struct binder *b, struct checkpoint *ck, const char *name, int layer, int cols, int rows, int unit,
                 struct weight **out, struct error *err)
{
    return bind_below(b, ck, name, layer, (struct sink){.all = rows, .cols = cols, .n = 2, .unit = unit, .matrix = out},
                      err);
}

int bind_fused(struct binder *b, struct checkpoint *ck, const char *name, int layer, int cols,
               const struct fused *parts, int n, struct error *err)
{
    enum { MOST = 4 };
    struct sink sinks[MOST];
    char full[80];
    int rows = 0;
    const struct tensor *t = ck_find(ck, tensor_name(full, name, layer));
    bool there = *parts->out && b->be->ops->weight_facts(b->be, *parts->out).has_rows;
    if (t && layouts[t->type->layout].scaled)
        return fail(err, ERR_UNSUPPORTED, "quantisation", t->name.at,
                    "The tensor %s joins several matrices and has scales of its own, which this version does not read.",
                    full);
    for (int i = 0; i < n; rows += sinks[i++].rows) {
        const struct fused *part = &parts[i];
        sinks[i] = (struct sink){.b = b,
                                 .rows = part->n * part->rows,
                                 .all = part->rows,
                                 .cols = cols,
                                 .stack = 1,
                                 .n = part->n,
                                 .unit = part->unit,
                                 .matrix = part->out,
                                 .begin = rows,
                                 .next = i + 1 < n ? &sinks[i + 1] : NULL,
                                 .new = !*part->out};
    }
    int own = sinks->rows;
    sinks->rows = rows;
    int status = bind(ck, full, there, sinks, err);
    if (!status && t) ((struct sink *)t->context)->rows = own;
    return status;
}

int bind_matrices(struct binder *b, struct checkpoint *ck, const char *name, int layer, int cols, int rows, int n,
                  struct weight **out, struct error *err)
{
    return bind_below(b, ck, name, layer, (struct sink){.all = rows, .cols = cols, .n = n, .matrix = out}, err);
}

/* --- matrices of a stack one by one ------------------------------------------------------------------- */

enum part { PART_NONE, PART_WEIGHT, PART_SCALE };

/* Parses the rest of NAME.i.weight or NAME.i.scale after the first full stop. */
static enum part parse_single(struct bytes rest, int *i)
{
    size_t n = 0;
    for (*i = 0; n < rest.size && n < 6 && rest.data[n] >= '0' && rest.data[n] <= '9'; n++)
        *i = *i * 10 + rest.data[n] - '0';
    struct bytes part = {rest.data + n, rest.size - n};
    return n == 0                         ? PART_NONE
           : bytes_equal(part, ".weight") ? PART_WEIGHT
           : bytes_equal(part, ".scale")  ? PART_SCALE
                                          : PART_NONE;
}

static int bind_single(struct checkpoint *ck, const char *prefix, int i, enum part part, struct sink sink,
                       struct singles *s, struct error *err)
{
    char name[80];
    bool there = s->there[i] & part;
    snprintf(name, sizeof name, "%.50s%d.weight", prefix, i);
    sink.first = i * sink.rows;
    sink.unit = sink.all;
    sink.type = s->type;
    sink.new = part == PART_WEIGHT;
    int status = part == PART_WEIGHT ? bind(ck, name, there, &sink, err) : bind_scales(ck, name, there, &sink, err);
    s->there[i] |= (uint8_t)part;
    s->type = sink.type;
    return status;
}

/* Binds the matrices of one file, in any order. `n`: how many there must be in all files. */
static int bind_singles(struct checkpoint *ck, const char *prefix, int n, const struct sink *sink, struct singles *s,
                        struct error *err)
{
    struct bytes rest;
    int i, status = OK;
    for (size_t at = ck_first(ck, prefix); !status && ck_rest(ck, at, prefix, &rest); at++) {
        const struct tensor *t = &ck->tensors[ck->by_name[at]];
        enum part part = parse_single(rest, &i);
        if (!part) continue;
        if (i >= n)
            return fail(err, ERR_INCONSISTENT, "experts", t->name.at,
                        "There is an expert %d in %s, but the metadata says that there are %d.", i, prefix, n);
        if (!s->there && *sink->matrix) return fail_twice(t, prefix, err);
        if (!s->there) s->there = mem_alloc(sink->b->mem, (size_t)n);
        if (!s->there) return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the list of experts.");
        status = bind_single(ck, prefix, i, part, *sink, s, err);
    }
    return status;
}

/* Called after the last file. */
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

int bind_stack(struct binder *b, struct checkpoint *ck, const char *name, int layer, int cols, int rows, int stack,
               struct weight **out, struct singles *singles, struct error *err)
{
    char prefix[80], whole[96];
    struct sink sink = {
        .b = b, .rows = rows, .all = rows * stack, .cols = cols, .stack = 1, .n = 1, .matrix = out, .experts = true};
    tensor_name(prefix, name, layer);
    snprintf(whole, sizeof whole, "%s_exps.weight", prefix);
    strcat(prefix, ".");
    int status = bind_singles(ck, prefix, stack, &sink, singles, err);
    if (status) return status;
    if (singles->there && ck_find(ck, whole)) return fail_twice(ck_find(ck, whole), whole, err);
    if (singles->there) return b->more ? OK : check_singles(prefix, stack, singles, err);
    sink.rows = sink.all;
    sink.stack = stack;
    return bind_whole(ck, whole, sink, err);
}

/* --- vectors ------------------------------------------------------------------------------------------ */

int bind_changed(struct binder *b, struct checkpoint *ck, const char *name, int layer, int n, float (*change)(float x),
                 float **out, struct error *err)
{
    char full[80];
    return bind(ck, tensor_name(full, name, layer), *out != NULL,
                &(struct sink){.b = b, .cols = n, .stack = 1, .vector = out, .change = change, .new = true}, err);
}

int bind_vector(struct binder *b, struct checkpoint *ck, const char *name, int layer, int n, float **out,
                struct error *err)
{
    return bind_changed(b, ck, name, layer, n, NULL, out, err);
}

static int bind_floats(struct binder *b, struct checkpoint *ck, const char *name, int cols, int rows, bool turned,
                       float **out, struct error *err)
{
    const struct tensor *t = ck_find(ck, name);
    if (t && (t->type->block != 1 || layouts[t->type->layout].scaled || t->type->layout == LAYOUT_NONE))
        return fail(err, ERR_UNSUPPORTED, "quantisation", t->name.at,
                    "The tensor %s has the type %s; floats are supported.", name, t->type->name);
    return bind(
        ck, name, *out != NULL,
        &(struct sink){.b = b, .rows = rows, .cols = cols, .stack = 1, .vector = out, .turned = turned, .new = true},
        err);
}

int bind_table(struct binder *b, struct checkpoint *ck, const char *name, int cols, int rows, float **out,
               struct error *err)
{
    return bind_floats(b, ck, name, cols, rows, false, out, err);
}

int bind_turned(struct binder *b, struct checkpoint *ck, const char *name, int layer, int cols, int rows, float **out,
                struct error *err)
{
    char full[80];
    return bind_floats(b, ck, tensor_name(full, name, layer), cols, rows, true, out, err);
}

/* --- one matrix in strips ----------------------------------------------------------------------------- */

/* Views a tensor as rows of this many columns, whatever its dimensions are; if they do not fit, binding reports it. */
static void fold(struct tensor *t, int cols)
{
    uint64_t size = t->cols * t->rows;
    if (t->type->block != 1 || size % (uint64_t)cols) return;
    t->cols = (uint64_t)cols;
    t->rows = size / (uint64_t)cols;
    t->stack = 1;
    t->n_dims = 2;
}

int bind_strips(struct binder *b, struct checkpoint *ck, const char *const *names, int n, int strip, int cols, int rows,
                struct weight **out, int *there, struct error *err)
{
    const struct dtype *type = NULL;
    int status = OK;
    for (int i = 0; !status && i < n; i++) {
        struct sink sink = {.b = b,
                            .rows = rows,
                            .all = rows,
                            .cols = cols / n,
                            .stack = 1,
                            .n = 1,
                            .matrix = out,
                            .stays = true,
                            .strips = n,
                            .strip = i,
                            .strip_cols = strip};
        struct tensor *t = ck_find(ck, names[i]);
        if (t) fold(t, cols / n);
        sink.type = *out ? b->be->ops->weight_facts(b->be, *out).type : type;
        sink.new = !*there;
        status = bind(ck, names[i], *there >> i & 1, &sink, err);
        type = sink.type;
        if (t) *there |= 1 << i;
    }
    return status;
}

bool bind_of_experts(const struct tensor *t) { return ((const struct sink *)t->context)->experts; }

/* --- quantising --------------------------------------------------------------------------------------- */

static bool is_smaller(const struct dtype *a, const struct dtype *b)
{
    return a->bytes * b->block < b->bytes * a->block;
}

/* The type that a matrix is loaded as. */
static const struct dtype *loaded_type(const struct sink *sink, const struct dtype *type)
{
    const struct dtype *wanted = sink->outside ? sink->b->quantize.ends : sink->b->quantize.layers;
    bool stays = !wanted || sink->stays || layouts[type->layout].scaled || sink->cols % (int)wanted->block ||
                 !is_smaller(wanted, type);
    return stays ? type : wanted;
}

void binder_quantize(struct binder *b, struct checkpoint *ck, struct model_types types)
{
    b->quantize = types;
    for (size_t i = 0; i < ck->n_tensors; i++) {
        struct sink *sink = ck->tensors[i].put == put_matrix ? ck->tensors[i].context : NULL;
        for (; sink; sink = sink->next) sink->type = loaded_type(sink, ck->tensors[i].type);
    }
}

/* --- storage ------------------------------------------------------------------------------------------ */

static uint64_t weight_cols(const struct sink *s) { return (uint64_t)s->cols * (uint64_t)max_int(s->strips, 1); }
static uint64_t vector_size(const struct sink *s) { return (uint64_t)s->cols * (uint64_t)max_int(s->rows, 1); }

static uint64_t sink_cost(const struct binder *b, const struct sink *s)
{
    uint64_t cost;
    if (s->vector) return mem_cost(vector_size(s) * sizeof(float));
    if (!mul64((uint64_t)s->n, b->be->ops->weight_cost(b->be, s->type, s->all, (int)weight_cols(s)), &cost))
        return UINT64_MAX;
    /* one tensor's share of the first one's cost */
    return s->rows < s->all ? cost / (uint64_t)(s->all / s->rows) + 1 : cost;
}

uint64_t binder_take_cost(const struct binder *b, const struct checkpoint *ck)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < ck->n_tensors; i++) {
        const struct sink *sink = ck->tensors[i].context;
        for (; sink; sink = sink->next)
            if (sink->new && !add64(sum, sink_cost(b, sink), &sum)) return UINT64_MAX;
    }
    return sum;
}

/* Returns false when memory is short; existing weights stay. */
static bool take_weights(const struct binder *b, const struct sink *s)
{
    for (int i = 0; i < s->n; i++) {
        if (s->matrix[i]) continue;
        s->matrix[i] = b->be->ops->weight_new(b->be, s->type, s->all, (int)weight_cols(s));
        if (!s->matrix[i]) return false;
        if (s->from && s->from != s->type) b->be->ops->weight_from(b->be, s->matrix[i], s->from);
    }
    return !s->next || take_weights(b, s->next);
}

static bool take_vector(const struct binder *b, const struct sink *s)
{
    *s->vector = mem_array(b->mem, vector_size(s), sizeof(float));
    return *s->vector != NULL;
}

int binder_take(struct binder *b, struct checkpoint *ck, struct error *err)
{
    for (size_t i = 0; i < ck->n_tensors; i++) {
        const struct tensor *t = &ck->tensors[i];
        const struct sink *s = t->context;
        char name[QUOTED];
        if (s && !(s->matrix ? take_weights(b, s) : take_vector(b, s)))
            return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the tensor %.64s (%llu bytes).",
                        quoted(ck_view(ck, t->name), name), (unsigned long long)t->bytes);
    }
    return OK;
}
