/* SPDX-License-Identifier: MIT
 *
 * Importance matrices: how much each input column of a model's matrices matters, measured on texts by llama.cpp's
 * llama-imatrix. Both of its file formats are read: GGUF (tensors NAME.in_sum2), and the older one (.dat).
 */
#ifndef QUERN_IMATRIX_H
#define QUERN_IMATRIX_H

#include "base/arena.h"

struct imatrix;

/* Reads a whole file, which must stay in memory. ERR_PARAM "imatrix", ERR_MEM_LOAD. */
int imatrix_read(struct mem *m, struct bytes file, struct imatrix **out, struct error *err);
void imatrix_free(struct imatrix *im); /* accepts NULL */

/* Sets *out to the weights of the columns of a tensor's matrices, [matrices, cols] with a mean of 1 in each row, to be
 * freed with mem_free(); or to NULL if the file has none. ERR_PARAM "imatrix" if they do not suit this shape. */
int imatrix_weights(const struct imatrix *im, const char *tensor, uint64_t cols, uint64_t matrices, float **out,
                    struct error *err);

#endif
