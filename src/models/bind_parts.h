/* SPDX-License-Identifier: MIT
 *
 * Binds the numbers that files store beside codes, in tensors of their own: scales, biases and zero points. NAME.weight
 * has NAME.scale, and NAME.offset (biases) or NAME.zero (zero points), in any order and any of a model's files. Numbers
 * that come in an earlier file than their codes, whose width is then unknown, are held until then.
 */
#ifndef QUERN_BIND_PARTS_H
#define QUERN_BIND_PARTS_H

#include "models/bind_sink.h"

/* What there is of a weight, one bit each. */
enum { HAS_ROWS = 1, HAS_SCALES = 2, HAS_MINS = 4, HAS_ORDER = 8 /* may be missing */ };

/* All that a type needs. */
int parts_wanted(const struct dtype *type);

/* Gives the tensor of a matrix's codes their type, if its type and shape depend on the matrix. */
int parts_unfold(const struct checkpoint *ck, struct tensor *t, const char *weight, const struct sink *sink,
                 struct error *err);

/* Binds scales (HAS_SCALES) or mins (HAS_MINS) of a weight, whose sink has a type if that is known. *there: what
 * earlier calls found; the bit is added if this file has it. */
int parts_bind(struct checkpoint *ck, const char *weight, int what, int *there, struct sink *sink, struct error *err);

/* Binds the groups of a matrix's columns. If they do not ascend, the columns are sorted by them while codes come; the
 * binder notes why that fails. */
int parts_bind_order(struct checkpoint *ck, const char *weight, const struct sink *sink, struct error *err);

/* Bytes that parts_take() allocates; saturates. */
uint64_t parts_cost(const struct binder *b);
/* Call after a file's weights are taken. Passes on what was held, and prepares to hold more. ERR_MEM_LOAD. */
int parts_take(struct binder *b, struct error *err);
void parts_free(struct binder *b);

#endif
