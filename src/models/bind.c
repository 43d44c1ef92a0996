/* SPDX-License-Identifier: MIT
 *
 * Binds a model's weights to tensors, and allocates them.
 */
#include "models/bind.h"

#include "models/bind_parts.h"

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

static size_t row_bytes(const struct sink *s) { return (size_t)s->cols / s->from->block * s->from->bytes; }

static void put_rows(const struct sink *s, int row, int n, const uint8_t *rows)
{
    for (int at = s->first + row, end = at + n, some; at < end; at += some, rows += (size_t)some * row_bytes(s)) {
        int own = at;
        some = end - at;
        struct weight *w = sink_weight(s, &own, &some);
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

static const char *tensor_name(char out[80], const char *format, int layer)
{
    const char *mark = strchr(format, '%');
    if (!mark) snprintf(out, 80, "%s", format);
    else snprintf(out, 80, "%.*s%d%s", (int)(mark - format), format, layer, mark + 2);
    return out;
}

static tensor_put *put_of(const struct sink *s)
{
    return s->strips ? put_strips : s->matrix ? put_matrix : s->turned ? put_turned : put_vector;
}

/* `there`: an earlier file had the tensor. rows = 0: a vector. */
static int bind(struct checkpoint *ck, const char *name, bool there, struct sink *sink, struct error *err)
{
    struct tensor *t = ck_find(ck, name);
    if (there && t) return sink_fail_twice(t, name, err);
    if (!t && (there || sink->b->more)) return OK;
    int status = t && sink->matrix ? parts_unfold(ck, t, name, sink, err) : OK;
    if (status) return status;
    status =
        ck_bind(ck, name, (uint64_t)sink->cols, (uint64_t)(sink->rows / sink->stack), (uint64_t)sink->stack, &t, err);
    if (status) return status;
    if (sink->type && sink->type != t->type)
        return fail(err, ERR_INCONSISTENT, "type", t->name.at,
                    "The tensor %s has the type %s, but other tensors of this weight need %s.", name, t->type->name,
                    sink->type->name);
    sink->from = sink->type = t->type;
    return sink_keep(t, sink, put_of(sink), err);
}

static int bind_parts(struct checkpoint *ck, const char *name, int *there, struct sink *sink, struct error *err)
{
    int status = parts_bind(ck, name, HAS_SCALES, there, sink, err);
    if (!status) status = parts_bind(ck, name, HAS_MINS, there, sink, err);
    return status ? status : parts_bind_order(ck, name, sink, err);
}

static int bind_whole(struct checkpoint *ck, const char *name, struct sink sink, struct error *err)
{
    if (!sink.unit) sink.unit = sink.all;
    struct backend *be = sink.b->be;
    struct weight_facts facts = *sink.matrix ? be->ops->weight_facts(be, *sink.matrix) : (struct weight_facts){0};
    int there = (facts.has_scales ? HAS_SCALES : 0) | (facts.has_mins ? HAS_MINS : 0);
    sink.type = facts.type;
    sink.new = !*sink.matrix;
    int status = bind(ck, name, facts.has_rows, &sink, err);
    return status ? status : bind_parts(ck, name, &there, &sink, err);
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

/* Parses the rest of NAME.i.PART after the first full stop. Returns what the tensor has; 0 for other names. */
static int parse_single(struct bytes rest, int *i)
{
    size_t n = 0;
    for (*i = 0; n < rest.size && n < 6 && rest.data[n] >= '0' && rest.data[n] <= '9'; n++)
        *i = *i * 10 + rest.data[n] - '0';
    struct bytes part = {rest.data + n, rest.size - n};
    return n == 0                         ? 0
           : bytes_equal(part, ".weight") ? HAS_ROWS
           : bytes_equal(part, ".scale")  ? HAS_SCALES
           : bytes_equal(part, ".offset") ? HAS_MINS
           : bytes_equal(part, ".zero")   ? HAS_MINS
           : bytes_equal(part, ".order")  ? HAS_ORDER
                                          : 0;
}

/* Binds the matrix, or what belongs to it. What is beside it in the file is bound with it. */
static int bind_single(struct checkpoint *ck, const char *prefix, int i, int what, struct sink sink, struct singles *s,
                       struct error *err)
{
    char name[80];
    int there = s->there[i], status;
    snprintf(name, sizeof name, "%.50s%d.weight", prefix, i);
    sink.first = i * sink.rows;
    sink.unit = sink.all;
    sink.type = s->type;
    sink.new = what == HAS_ROWS;
    if (what == HAS_ROWS) {
        status = bind(ck, name, there & HAS_ROWS, &sink, err);
        there |= HAS_ROWS;
        if (!status) status = bind_parts(ck, name, &there, &sink, err);
    } else if (what == HAS_ORDER) status = parts_bind_order(ck, name, &sink, err);
    else status = parts_bind(ck, name, what, &there, &sink, err);
    s->there[i] = (uint8_t)there;
    s->type = sink.type;
    return status;
}

/* Binds the matrices of one file, in any order, or only their scales and mins. `n`: how many there must be in all
 * files. */
static int bind_singles(struct checkpoint *ck, const char *prefix, int n, bool rows, const struct sink *sink,
                        struct singles *s, struct error *err)
{
    struct bytes rest;
    int i, status = OK;
    for (size_t at = ck_first(ck, prefix); !status && ck_rest(ck, at, prefix, &rest); at++) {
        const struct tensor *t = &ck->tensors[ck->by_name[at]];
        int what = parse_single(rest, &i);
        if (!what || (what == HAS_ROWS) != rows || t->put) continue;
        if (i >= n)
            return fail(err, ERR_INCONSISTENT, "experts", t->name.at,
                        "There is an expert %d in %s, but the metadata says that there are %d.", i, prefix, n);
        if (!s->there && *sink->matrix) return sink_fail_twice(t, prefix, err);
        if (!s->there) s->there = mem_alloc(sink->b->mem, (size_t)n);
        if (!s->there) return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the list of experts.");
        status = bind_single(ck, prefix, i, what, *sink, s, err);
    }
    return status;
}

/* Called after the last file. */
static int check_singles(const char *prefix, int n, const struct singles *s, struct error *err)
{
    int wanted = s->type ? parts_wanted(s->type) : HAS_ROWS;
    char name[80];
    for (int i = 0; i < n; i++) {
        int missing = wanted & ~s->there[i];
        if (!missing) continue;
        snprintf(name, sizeof name, "%.50s%d.%s", prefix, i,
                 missing & HAS_ROWS     ? "weight"
                 : missing & HAS_SCALES ? "scale"
                                        : "offset");
        return sink_fail_missing(err, name);
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
    int status = bind_singles(ck, prefix, stack, true, &sink, singles, err);
    if (!status) status = bind_singles(ck, prefix, stack, false, &sink, singles, err);
    if (status) return status;
    if (singles->there && ck_find(ck, whole)) return sink_fail_twice(ck_find(ck, whole), whole, err);
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

static int check_floats(const struct tensor *t, const char *name, struct error *err)
{
    if (dtype_is_plain(t->type)) return OK;
    return fail(err, ERR_UNSUPPORTED, "quantisation", t->name.at,
                "The tensor %s has the type %s; floats are supported.", name, t->type->name);
}

static int bind_floats(struct binder *b, struct checkpoint *ck, const char *name, int cols, int rows, bool turned,
                       float **out, struct error *err)
{
    const struct tensor *t = ck_find(ck, name);
    int status = t ? check_floats(t, name, err) : OK;
    return status ? status : bind(
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

static void put_zeros(void *context, int row, int n, const uint8_t *bytes)
{
    const struct sink *s = context;
    (void)row;
    for (int64_t i = 0; i < (int64_t)n * s->cols; i++, bytes += s->from->bytes) {
        float number;
        read_floats(s->from, bytes, 1, &number);
        if (number != 0) s->b->biased = true;
    }
}

int bind_zeros(struct binder *b, struct tensor *t, const char *name, struct error *err)
{
    const struct sink sink = {.b = b, .from = t->type, .cols = (int)t->cols, .beside = true};
    int status = check_floats(t, name, err);
    t->uncounted = true;
    return status || !t->bytes ? status : sink_keep(t, &sink, put_zeros, err);
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
    if (s->beside) return mem_cost((uint64_t)s->cols * sizeof(uint32_t));
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
    return add64(sum, parts_cost(b), &sum) ? sum : UINT64_MAX;
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
        if (s && !s->held && !s->beside && !(s->matrix ? take_weights(b, s) : take_vector(b, s)))
            return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the tensor %.64s (%llu bytes).",
                        quoted(ck_view(ck, t->name), name), (unsigned long long)t->bytes);
    }
    return parts_take(b, err);
}

int binder_check(const struct binder *b, struct error *err)
{
    if (b->biased)
        return fail(err, ERR_UNSUPPORTED, "architecture", 0,
                    "The folder has biases that are not 0 where the architecture has none; this version does not compute them.");
    switch (b->order) {
    case ORDER_FOLLOWED: return OK;
    case ORDER_MEMORY: return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the order of a matrix's columns.");
    case ORDER_LATE:
        return fail(err, ERR_UNSUPPORTED, "quantisation", 0,
                    "The columns of a matrix have an order of their own (g_idx), which does not stand before its codes in the same file; "
                    "take the model's GGUF file, or its folder in BF16.");
    case ORDER_UNEQUAL: break;
    }
    return fail(err, ERR_INCONSISTENT, "quantisation", 0,
                "The columns of a matrix (g_idx) are in groups of different sizes, or in other groups than its scales have.");
}

void binder_free(struct binder *b) { parts_free(b); }
