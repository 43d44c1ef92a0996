/* SPDX-License-Identifier: MIT
 *
 * What all kinds of bound tensors share.
 */
#include "models/bind_sink.h"

struct weight *sink_weight(const struct sink *s, int *row, int *n)
{
    int unit = *row / s->unit, within = *row % s->unit;
    *row = unit / s->n * s->unit + within;
    *n = min_int(*n, s->unit - within);
    return s->matrix[unit % s->n];
}

int sink_keep(struct tensor *t, const struct sink *sink, tensor_put *put, struct error *err)
{
    size_t n = 1, i = 0;
    for (const struct sink *s = sink->next; s; s = s->next) n++;
    struct sink *kept = mem_alloc(sink->b->mem, n * sizeof *kept);
    if (!kept) return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the list of tensors.");
    for (const struct sink *s = sink; s; s = s->next, i++) {
        kept[i] = *s;
        kept[i].type = sink->type;
        kept[i].from = sink->from;
        kept[i].next = s->next ? &kept[i + 1] : NULL;
    }
    t->put = put;
    t->context = kept;
    return OK;
}

int sink_fail_missing(struct error *err, const char *name)
{
    return fail(err, ERR_FORMAT, "missing", 0, "The tensor %s is missing.", name);
}

int sink_fail_twice(const struct tensor *t, const char *name, struct error *err)
{
    return fail(err, ERR_INCONSISTENT, "split", t->name.at,
                "The tensor %s exists twice; the files do not belong together.", name);
}
