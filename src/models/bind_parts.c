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

static void put_numbers(void *context, int row, int n, const uint8_t *bytes)
{
    const struct sink *s = context;
    for (int r = row; r < row + n; r++)
        for (int i = 0; i < s->n_numbers; i++, bytes += s->numbers->bytes) {
            float number;
            read_floats(s->numbers, bytes, 1, &number);
            put_number(s, r * s->high, i * s->wide, number);
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

static int hold(struct tensor *t, const char *name, struct sink sink, struct error *err)
{
    struct held *h = mem_alloc(sink.b->mem, sizeof *h);
    if (!h) return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the list of tensors.");
    *h = (struct held){.next = sink.b->held, .t = *t};
    snprintf(h->name, sizeof h->name, "%s", name);
    sink.b->held = sink.held = h;
    sink.new = false;
    t->weights = t->type;
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

int parts_wanted(const struct dtype *type)
{
    const struct layout_info *l = &layouts[type->layout];
    return !l->scaled ? HAS_ROWS : HAS_ROWS | HAS_SCALES | (has_mins(l->kind) ? HAS_MINS : 0);
}

/* The tensors beside NAME.weight. */
static struct tensor *find_part(const struct checkpoint *ck, const char *weight, const char *part, char name[80])
{
    snprintf(name, 80, "%.*s.%s", (int)(strlen(weight) - strlen(".weight")), weight, part);
    return ck_find(ck, name);
}

int parts_unfold(const struct checkpoint *ck, struct tensor *t, const char *weight, const struct sink *sink,
                 struct error *err)
{
    char name[80];
    const struct tensor *scales = find_part(ck, weight, "scale", name);
    uint64_t cols = (uint64_t)sink->cols, group = sink->type ? sink->type->block : BLOCK;
    if (!t->packing) return OK;
    if (scales && !sink->type && scales->cols) group = cols / scales->cols;
    return ck_unfold(t, weight, cols, group, err);
}

/* One number for each 128 x 128 rectangle (those at the ends may be smaller), or for each part of a row. */
static int check_shape(const struct tensor *t, const char *name, struct sink *sink, struct error *err)
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
    sink->numbers = t->type;
    sink->n_numbers = (int)t->cols;
    sink->high = square ? 128 : 1;
    sink->wide = square ? 128 : (int)(cols / t->cols);
    return OK;
}

/* Binds a tensor of this file, or one that is held: t is NULL then. */
static int bind_known(struct tensor *t, const char *name, struct held *h, struct sink sink, struct error *err)
{
    sink.new = false;
    int status = check_shape(t ? t : &h->t, name, &sink, err);
    if (status) return status;
    if (!t) {
        h->sink = sink;
        h->bound = true;
        return OK;
    }
    t->weights = sink.type;
    return sink_keep(t, &sink, put_numbers, err);
}

int parts_bind(struct checkpoint *ck, const char *weight, int what, int *there, struct sink *sink, struct error *err)
{
    char name[80];
    struct tensor *t = find_part(ck, weight, what == HAS_SCALES ? "scale" : "offset", name);
    struct held *h = find_held(sink->b, name);
    bool wanted = sink->type && parts_wanted(sink->type) & what;
    if (t && (*there & what || h)) return sink_fail_twice(t, name, err);
    if (t) *there |= what;
    if (t && !sink->type) return hold(t, name, *sink, err);
    if ((t || h) && !wanted && sink->type)
        return fail(err, ERR_INCONSISTENT, "scale", t ? t->name.at : 0,
                    "The tensor %s has scales, but its type %s does not use them.", weight, sink->type->name);
    sink->part = what == HAS_SCALES ? PART_SCALE : PART_BIAS;
    if (t || (h && wanted && !h->bound)) return bind_known(t, name, h, *sink, err);
    return !wanted || h || *there & what || sink->b->more ? OK : sink_fail_missing(err, name);
}
