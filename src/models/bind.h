/* SPDX-License-Identifier: MIT
 *
 * Binding: which tensors of a file are a model's weights, and where their bytes go.
 *
 * A model names each of its weights once, with the shape that it must have; the checkpoint then routes the tensor's
 * rows. A weight is a matrix in the backend or floats in memory, made by binder_take() when all weights of a file have
 * been named and its plan was granted. A name may hold one %d for the layer. Nothing happens where more files follow
 * and this one does not have it. Every weight must be in one of the files, and in one only: ERR_FORMAT "missing",
 * ERR_INCONSISTENT "shape", "type", "split", ERR_UNSUPPORTED "quantisation".
 */
#ifndef QUERN_BIND_H
#define QUERN_BIND_H

#include "compute/backend.h"
#include "load/checkpoint.h"

/* Q8_0 or Q4_0; NULL: as stored. */
struct model_types {
    const struct dtype *layers, *ends; /* matrices of layers; the embedding and the output head */
};

/* Must stay where it is while files are bound. */
struct binder {
    struct mem *mem;
    struct backend *be;
    struct model_types quantize; /* what matrices become while they are loaded, if that is smaller */
    bool more; /* files of a split model are still to come: what is missing may be there */
};

/* A matrix [rows, cols], which *out will be. */
int bind_matrix(struct binder *b, struct checkpoint *ck, const char *name, int layer, int cols, int rows,
                struct weight **out, struct error *err);
/* One that stays as it is stored, whatever b->quantize says. */
int bind_matrix_as_stored(struct binder *b, struct checkpoint *ck, const char *name, int layer, int cols, int rows,
                          struct weight **out, struct error *err);
/* n matrices [rows, cols] that are one tensor, one below the other: out [n]. rows is a multiple of 8. */
int bind_matrices(struct binder *b, struct checkpoint *ck, const char *name, int layer, int cols, int rows, int n,
                  struct weight **out, struct error *err);
/* One matrix whose rows lie in n tensors, *there of them (bits) so far: strips of so many columns, of each tensor in
 * turn. Floats, as stored; how a tensor's dimensions are cut does not count. */
int bind_strips(struct binder *b, struct checkpoint *ck, const char *const *names, int n, int strip, int cols, int rows,
                struct weight **out, int *there, struct error *err);

/* What files have of a stack of matrices one by one: their type, and which parts of each; `there` NULL: none. */
struct singles {
    const struct dtype *type; /* of the tensors */
    uint8_t *there; /* [stack] */
};
/* A stack of matrices, which become one of stack * rows rows: NAME_exps.weight, or, in any order and any of the files,
 * each matrix i as NAME.i.weight. rows is a multiple of 8. The caller frees singles->there. */
int bind_stack(struct binder *b, struct checkpoint *ck, const char *name, int layer, int cols, int rows, int stack,
               struct weight **out, struct singles *singles, struct error *err);

/* A float vector [n], as float32. */
int bind_vector(struct binder *b, struct checkpoint *ck, const char *name, int layer, int n, float **out,
                struct error *err);
/* A float matrix [rows, cols], the same. */
int bind_table(struct binder *b, struct checkpoint *ck, const char *name, int cols, int rows, float **out,
               struct error *err);

/* The number and the full stop that the rest of a layer's name begins with, which are taken off it; -1: there are none.
 */
int bind_layer_of(struct bytes *rest);

/* A file with more layers than its metadata says would run, without the last of them: ERR_INCONSISTENT "layers" for a
 * tensor PREFIX.n. with n >= n_layers. `prefix` ends in a full stop. */
int bind_check_layers(const struct checkpoint *ck, const char *prefix, int n_layers, struct error *err);

/* Whether a bound tensor is one expert's matrix or all experts': not all of them work for a token. */
bool bind_of_experts(const struct tensor *t);

/* What the bound matrices of this file become, and those of later files. May be said again until they are taken. Rows
 * that are not whole blocks, and types whose scales come apart, stay what they are. */
void binder_quantize(struct binder *b, struct checkpoint *ck, struct model_types types);
/* Bytes that binder_take() takes for the bound tensors of this file; saturates. */
uint64_t binder_take_cost(const struct binder *b, const struct checkpoint *ck);
/* Storage for the weights bound in this file. ERR_MEM_LOAD. */
int binder_take(struct binder *b, struct checkpoint *ck, struct error *err);

#endif
