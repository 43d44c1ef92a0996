/* SPDX-License-Identifier: MIT
 *
 * Scales, biases and zero points. Each number belongs to a rectangle of its matrix.
 */
#include "models/bind_parts.h"

#include "base/reader.h"
#include "weights/quantize.h"

#include <stdio.h>
#include <string.h>

/* --- data ------------------------------------------------------------------------------------------------- */

/* Sets the number of the rectangle whose first weight is at row `top` and column `left`. */
static void put_number(const struct sink *s, int top, int left, float number)
{
    for (int at = s->first + top, end = at + min_int(s->high, s->rows - top), some; at < end; at += some) {
        int own = at;
        some = end - at;
        struct weight *w = sink_weight(s, &own, &some);
        s->b->be->ops->weight_part(s->b->be, w, own, some, left, min_int(s->wide, s->cols - left), s->part, number);
    }
}

/* A word of zero points, of as many rows: those from `top` on, of the group that begins at column `left`. */
static void put_word(const struct sink *s, int top, int left, uint32_t word)
{
    static const int awq[8] = {0, 4, 1, 5, 2, 6, 3, 7}; /* place of each row in a word */
    if (s->packing == PACKING_GPTQ) word += s->bits == 4 ? 0x11111111u : s->bits == 8 ? 0x01010101u : 0x55555555u;
    for (int i = 0; i < 32 / s->bits; i++) {
        int place = s->packing == PACKING_AWQ ? awq[i] : i;
        put_number(s, top + i, left, (float)(word >> place * s->bits & ((1u << s->bits) - 1)));
    }
}

static void put_numbers(void *context, int row, int n, const uint8_t *bytes)
{
    const struct sink *s = context;
    for (int r = row; r < row + n && s->bits; r++)
        for (int i = 0, each = 32 / s->bits; i < s->n_numbers; i++, bytes += 4)
            put_word(s, (s->by_columns ? i : r) * each, (s->by_columns ? r : i) * s->wide, load_u32(bytes));
    for (int r = row; r < row + n && !s->bits; r++)
        for (int i = 0; i < s->n_numbers; i++, bytes += s->numbers->bytes) {
            float number;
            read_floats(s->numbers, bytes, 1, &number);
            if (s->by_columns) put_number(s, i * s->high, r * s->wide, number);
            else put_number(s, r * s->high, i * s->wide, number);
        }
}

/* --- numbers that come first ------------------------------------------------------------------------------ */

struct held {
    struct held *next;
    char name[80];
    struct tensor t;   /* its shape and type */
    uint8_t *bytes;    /* NULL before they come, and after they are passed on */
    bool bound;        /* `sink` is where they go */
    struct sink sink;
};

static struct held *find_held(const struct binder *b, const char *name)
{
    struct held *h = b->held;
    while (h && strcmp(h->name, name) != 0) h = h->next;
    return h;
}

static void put_held(void *context, int row, int n, const uint8_t *bytes)
{
    const struct held *h = ((const struct sink *)context)->held;
    size_t each = (size_t)(h->t.bytes / h->t.rows);
    memcpy(h->bytes + (size_t)row * each, bytes, (size_t)n * each);
}

static int fail_shape(const struct tensor *t, const char *name, const struct sink *sink, struct error *err)
{
    return fail(err, ERR_INCONSISTENT, "shape", t->name.at,
                "The tensor %s is %llu x %llu, which does not fit weights of %d x %d.", name,
                (unsigned long long)t->cols, (unsigned long long)t->rows, sink->cols, sink->rows);
}

static int hold(struct tensor *t, const char *name, struct sink sink, struct error *err)
{
    if (!t->bytes) return fail_shape(t, name, &sink, err);
    struct held *h = mem_alloc(sink.b->mem, sizeof *h);
    if (!h) return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the list of tensors.");
    *h = (struct held){.next = sink.b->held, .t = *t};
    snprintf(h->name, sizeof h->name, "%s", name);
    sink.b->held = sink.held = h;
    sink.new = false;
    t->uncounted = true;
    return sink_keep(t, &sink, put_held, err);
}

uint64_t parts_cost(const struct binder *b)
{
    uint64_t sum = 0;
    for (const struct held *h = b->held; h; h = h->next)
        if (!h->bytes && !h->bound && !add64(sum, mem_cost(h->t.bytes), &sum)) return UINT64_MAX;
    return sum;
}

int parts_take(struct binder *b, struct error *err)
{
    for (struct held *h = b->held; h; h = h->next) {
        if (h->bound && h->bytes) {
            put_numbers(&h->sink, 0, (int)h->t.rows, h->bytes);
            mem_free(b->mem, h->bytes);
            h->bytes = NULL;
        } else if (!h->bound && !h->bytes && !(h->bytes = mem_alloc_raw(b->mem, h->t.bytes)))
            return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the tensor %s (%llu bytes).", h->name,
                        (unsigned long long)h->t.bytes);
    }
    return OK;
}

void parts_free(struct binder *b)
{
    for (struct held *h = b->held, *next; h; h = next) {
        next = h->next;
        mem_free(b->mem, h->bytes);
        mem_free(b->mem, h);
    }
    b->held = NULL;
}

/* --- binding ------------------------------------------------------------------------------------------------ */

/* Whether a scale of the whole matrix is stored apart: it may be missing, and is 1 then. */
static bool one_scale(const struct dtype *type) { return layouts[type->layout].kind == KIND_HALF_FLOATS; }

int parts_wanted(const struct dtype *type)
{
    if (!layouts[type->layout].scaled || one_scale(type)) return HAS_ROWS;
    return HAS_ROWS | HAS_SCALES | (dtype_biased(type) ? HAS_MINS : 0);
}

/* The tensors beside NAME.weight. */
static struct tensor *find_part(const struct checkpoint *ck, const char *weight, const char *part, char name[80])
{
    snprintf(name, 80, "%.*s.%s", (int)(strlen(weight) - strlen(".weight")), weight, part);
    return ck_find(ck, name);
}

/* Whether the numbers of a group follow one another, instead of those of a row. */
static bool by_columns(const struct tensor *t)
{
    return t->packing == PACKING_GPTQ || t->packing == PACKING_GPTQ_V2 || t->packing == PACKING_AWQ;
}

int parts_unfold(const struct checkpoint *ck, struct tensor *t, const char *weight, const struct sink *sink,
                 struct error *err)
{
    char name[80];
    const struct tensor *scales = find_part(ck, weight, "scale", name);
    uint64_t cols = (uint64_t)sink->cols, group = sink->type ? sink->type->block : BLOCK;
    if (!t->packing) return OK;
    if (scales && t->packing == PACKING_MLX && !strcmp(scales->type->name, "U8"))
        return fail(err, ERR_UNSUPPORTED, "quantisation", t->name.at,
                    "The tensor %s is in one of MLX's modes with floating-point codes (mxfp4, mxfp8, nvfp4), which this version does "
                    "not read; take an affine one.",
                    weight);
    uint64_t groups = !scales || sink->type ? 0 : by_columns(scales) ? scales->rows : scales->cols;
    if (groups) group = cols / groups;
    return ck_unfold(t, weight, cols, (uint64_t)sink->rows, group, err);
}

static int check_floats(const struct tensor *t, const char *name, struct sink *sink, struct error *err)
{
    sink->numbers = t->type;
    if (dtype_is_plain(t->type)) return OK;
    return fail(err, ERR_UNSUPPORTED, "quantisation", t->name.at,
                "The scales %s have the type %s, which this version does not read.", name, t->type->name);
}

/* A number for each 128 x 128 weights (those at the ends may be fewer), for each row, or for all. */
static int check_rectangles(const struct tensor *t, const char *name, struct sink *sink, struct error *err)
{
    const uint64_t rows = (uint64_t)sink->rows, cols = (uint64_t)sink->cols;
    bool rectangles = t->rows == (rows + 127) / 128 && t->cols == (cols + 127) / 128,
         one = t->rows * t->cols == 1, each = t->rows == rows && t->cols == 1;
    sink->high = each ? 1 : one ? sink->rows : 128;
    sink->wide = each || one ? sink->cols : 128;
    sink->n_numbers = (int)t->cols;
    return rectangles || one || each ? check_floats(t, name, sink, err) : fail_shape(t, name, sink, err);
}

/* A number for the matrix, or for each of a stack. */
static int check_matrices(const struct tensor *t, const char *name, struct sink *sink, struct error *err)
{
    uint64_t n = t->rows * t->cols;
    if (n != 1 && n != (uint64_t)sink->stack) return fail_shape(t, name, sink, err);
    sink->high = sink->rows / (int)n;
    sink->wide = sink->cols;
    sink->n_numbers = (int)n;
    sink->by_columns = true;
    return check_floats(t, name, sink, err);
}

/* A number for each part of a row, or words of them for several rows. */
static int check_groups(const struct tensor *t, const char *name, struct sink *sink, struct error *err)
{
    const struct dtype *type = sink->type;
    uint64_t groups = by_columns(t) ? t->rows : t->cols, rows = by_columns(t) ? t->cols : t->rows,
             cols = (uint64_t)sink->cols;
    bool words = sink->part == PART_ZERO;
    if (words) sink->bits = (int)(8 * type->bytes / type->block);
    const uint64_t each = !words ? 1 : 32 % sink->bits ? 0 : (uint64_t)(32 / sink->bits);
    bool fits = groups && each && rows == ((uint64_t)sink->rows + each - 1) / each && cols % groups == 0 &&
                cols / groups % (uint64_t)layouts[type->layout].columns == 0;
    if (!fits) return fail_shape(t, name, sink, err);
    sink->n_numbers = (int)t->cols;
    sink->high = 1;
    sink->wide = (int)(cols / groups);
    sink->by_columns = by_columns(t);
    sink->packing = t->packing;
    return words ? OK : check_floats(t, name, sink, err);
}

static int check_shape(const struct tensor *t, const char *name, struct sink *sink, struct error *err)
{
    return (one_scale(sink->type)               ? check_matrices
            : sink->type->layout == LAYOUT_F8 ? check_rectangles
                                              : check_groups)(t, name, sink, err);
}

/* Binds a tensor of this file, or one that is held: t is NULL then. `weight` is their weight, if this file has it. */
static int bind_known(struct tensor *weight, struct tensor *t, const char *name, struct held *h, struct sink sink,
                      struct error *err)
{
    sink.new = false;
    int status = check_shape(t ? t : &h->t, name, &sink, err);
    if (status) return status;
    if (!t) {
        h->sink = sink;
        h->bound = true;
        if (weight) weight->beside += h->t.bytes;
        return OK;
    }
    t->weights = sink.type;
    return sink_keep(t, &sink, put_numbers, err);
}

/* The tensors that a weight may have beside it. */
static const struct beside {
    const char *name;
    int what;
    enum weight_part part;
} kinds[] = {{"scale", HAS_SCALES, PART_SCALE}, {"offset", HAS_MINS, PART_BIAS}, {"zero", HAS_MINS, PART_ZERO}};

/* Whether codes of a type have such numbers; zero points may be missing. */
static bool takes(const struct dtype *type, enum weight_part part)
{
    const struct layout_info *l = &layouts[type->layout];
    return l->scaled && (part == PART_SCALE || (has_mins(l->kind) && dtype_biased(type) == (part == PART_BIAS)));
}

static int bind_part(struct checkpoint *ck, const char *weight, const struct beside *kind, int *there,
                     struct sink *sink, struct error *err)
{
    char name[80];
    struct tensor *t = find_part(ck, weight, kind->name, name);
    struct held *h = find_held(sink->b, name);
    if (!t && !h) {
        bool missing = sink->type && kind->part != PART_ZERO && takes(sink->type, kind->part) &&
                       !one_scale(sink->type) && !sink->b->more;
        return missing && !(*there & kind->what) ? sink_fail_missing(err, name) : OK;
    }
    if (t && (h || *there & kind->what)) return sink_fail_twice(t, name, err);
    if (t) *there |= kind->what;
    if (t && !sink->type) return hold(t, name, *sink, err);
    if (sink->type && !takes(sink->type, kind->part))
        return fail(err, ERR_INCONSISTENT, "scale", t ? t->name.at : 0,
                    "The tensor %s belongs to %s, but the type %s does not use it.", name, weight, sink->type->name);
    sink->part = kind->part;
    return t || (sink->type && !h->bound) ? bind_known(ck_find(ck, weight), t, name, h, *sink, err) : OK;
}

int parts_bind(struct checkpoint *ck, const char *weight, int what, int *there, struct sink *sink, struct error *err)
{
    int status = OK;
    for (size_t i = 0; !status && i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].what == what) status = bind_part(ck, weight, &kinds[i], there, sink, err);
    return status;
}

/* --- the order of columns ------------------------------------------------------------------------------------- */

static uint32_t group_at(const uint8_t *groups, uint32_t column) { return load_u32(groups + 4 * (size_t)column); }

/* Sorts the columns by their groups of `wide` columns. Returns false if a group has more or fewer. */
static bool sort_columns(const uint8_t *groups, uint32_t cols, uint32_t wide, uint32_t *columns)
{
    uint32_t n = 0;
    for (uint32_t group = 0; group < cols / wide; group++) {
        for (uint32_t c = 0; c < cols && n <= (group + 1) * wide; c++)
            if (group_at(groups, c) == group && n < cols) columns[n++] = c;
        if (n != (group + 1) * wide) return false;
    }
    return true;
}

static enum order_fault follow_order(const struct sink *s, const uint8_t *groups, uint32_t wide)
{
    struct backend *be = s->b->be;
    uint32_t cols = (uint32_t)s->cols, *columns = mem_array(s->b->mem, cols, sizeof *columns);
    enum order_fault fault = !columns                                      ? ORDER_MEMORY
                             : !sort_columns(groups, cols, wide, columns) ? ORDER_UNEQUAL
                             : s->late                                    ? ORDER_LATE
                                                                          : ORDER_FOLLOWED;
    for (int at = s->first, end = at + s->rows, some; !fault && at < end; at += some) {
        int own = at;
        some = end - at;
        struct weight *w = sink_weight(s, &own, &some);
        if (!be->ops->weight_order(be, w, own, some, columns)) fault = ORDER_MEMORY;
    }
    mem_free(s->b->mem, columns);
    return fault;
}

/* The group of each column, u32, in one row. Usually they ascend, and nothing is to be done. */
static void put_order(void *context, int row, int n, const uint8_t *bytes)
{
    const struct sink *s = context;
    uint32_t cols = (uint32_t)s->cols, groups = (uint32_t)s->groups, c = 0;
    (void)row, (void)n;
    for (uint32_t i = 0; i < cols && !s->groups; i++)
        if (group_at(bytes, i) >= groups) groups = group_at(bytes, i) + 1;
    bool equal = groups > 0 && groups <= cols && cols % groups == 0;
    while (equal && c < cols && group_at(bytes, c) == c / (cols / groups)) c++;
    if (c == cols || s->b->order) return;
    s->b->order = equal ? follow_order(s, bytes, cols / groups) : ORDER_UNEQUAL;
}

int parts_bind_order(struct checkpoint *ck, const char *weight, const struct sink *sink, struct error *err)
{
    char name[80];
    const struct tensor *codes = ck_find(ck, weight), *scales = find_part(ck, weight, "scale", name);
    const struct held *early = find_held(sink->b, name);
    struct tensor *t = find_part(ck, weight, "order", name);
    struct sink order = *sink;
    if (!scales && early) scales = &early->t;
    if (!t) return OK;
    if (t->rows != 1 || t->cols != (uint64_t)sink->cols || t->bytes != 4 * t->cols)
        return fail_shape(t, name, sink, err);
    const struct layout_info *l = sink->type ? &layouts[sink->type->layout] : layouts;
    bool apart = !codes || codes->offset < t->offset, looked_up = !strcmp(weight, "token_embd.weight");
    order.late = apart || looked_up || !l->scaled || !has_mins(l->kind);
    if (scales) order.groups = (int)(by_columns(scales) ? scales->rows : scales->cols);
    order.new = order.beside = true;
    t->uncounted = true;
    return sink_keep(t, &order, put_order, err);
}
