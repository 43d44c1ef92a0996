/* SPDX-License-Identifier: MIT
 *
 * Binding decides which tensors of a file are a model's weights, and where their bytes go.
 *
 * A model names each of its weights once, with the required shape; the checkpoint then routes the tensor's rows. A
 * weight is a matrix in the backend or floats in memory; binder_take() allocates it after all weights of a file are
 * named and the plan of memory is granted. A name may hold one %d for the layer. If more files follow and this one
 * lacks the tensor, nothing happens. Every weight must be in exactly one of the files: ERR_FORMAT "missing",
 * ERR_INCONSISTENT "shape", "type", "split", ERR_UNSUPPORTED "quantisation".
 */
#ifndef QUERN_BIND_H
#define QUERN_BIND_H

#include "models/binder.h"

/* Binds a matrix [rows, cols]; *out will point to it. */
int bind_matrix(struct binder *b, struct checkpoint *ck, const char *name, int layer, int cols, int rows,
                struct weight **out, struct error *err);
/* The same, but the matrix keeps its stored type, whatever b->quantize is. */
int bind_matrix_as_stored(struct binder *b, struct checkpoint *ck, const char *name, int layer, int cols, int rows,
                          struct weight **out, struct error *err);
/* Binds two matrices [rows, cols] whose rows alternate in one tensor, `unit` rows of each: out [2]. unit is a multiple
 * of 8 and divides rows. */
int bind_in_turn(struct binder *b, struct checkpoint *ck, const char *name, int layer, int cols, int rows, int unit,
                 struct weight **out, struct error *err);
/* A part of a tensor that joins matrices: n matrices of `rows` rows each, whose rows alternate, `unit` rows of each;
 * both numbers are multiples of 8. */
struct fused {
    int n, rows, unit;
    struct weight **out; /* [n] */
};
/* Binds the matrices of a tensor whose rows are those of at most 4 parts, in their order. */
int bind_fused(struct binder *b, struct checkpoint *ck, const char *name, int layer, int cols,
               const struct fused *parts, int n, struct error *err);
/* Binds n matrices [rows, cols] that are stacked in one tensor: out [n]. rows is a multiple of 8. */
int bind_matrices(struct binder *b, struct checkpoint *ck, const char *name, int layer, int cols, int rows, int n,
                  struct weight **out, struct error *err);
/* Binds one matrix whose rows are spread over n tensors: strips of `strip` columns, of each tensor in turn. *there: the
 * tensors found so far, one bit each. Float types, kept as stored; a tensor's own dimensions do not matter. */
int bind_strips(struct binder *b, struct checkpoint *ck, const char *const *names, int n, int strip, int cols, int rows,
                struct weight **out, int *there, struct error *err);

/* A stack of matrices that files have one by one: their type, and the parts found so far; `there` NULL: none. */
struct singles {
    const struct dtype *type; /* of the tensors */
    uint8_t *there; /* [stack] */
};
/* Binds a stack of matrices, which become one matrix of stack * rows rows: NAME_exps.weight, or, in any order and any
 * of the files, each matrix i as NAME.i.weight. rows is a multiple of 8. The caller frees singles->there. */
int bind_stack(struct binder *b, struct checkpoint *ck, const char *name, int layer, int cols, int rows, int stack,
               struct weight **out, struct singles *singles, struct error *err);

/* Binds a float vector [n], as float32. */
int bind_vector(struct binder *b, struct checkpoint *ck, const char *name, int layer, int n, float **out,
                struct error *err);
/* The same, but each element x becomes change(x). */
int bind_changed(struct binder *b, struct checkpoint *ck, const char *name, int layer, int n, float (*change)(float x),
                 float **out, struct error *err);
/* Binds a float matrix [rows, cols], as float32. */
int bind_table(struct binder *b, struct checkpoint *ck, const char *name, int cols, int rows, float **out,
               struct error *err);

/* The same in a layer, stored by columns: out [cols, rows]. */
int bind_turned(struct binder *b, struct checkpoint *ck, const char *name, int layer, int cols, int rows, float **out,
                struct error *err);

/* Binds a tensor whose numbers must all be 0, which binder_check() tells. ERR_UNSUPPORTED "quantisation" unless they
 * are floats, ERR_MEM_LOAD. */
int bind_zeros(struct binder *b, struct tensor *t, const char *name, struct error *err);

/* Reads the number and the full stop at the beginning of `rest`, and removes them; -1: there are none. */
int bind_layer_of(struct bytes *rest);

/* Refuses a file with more layers than its metadata says, which would otherwise run without the last ones:
 * ERR_INCONSISTENT "layers" for a tensor PREFIX.n. with n >= n_layers. `prefix` ends in a full stop. */
int bind_check_layers(const struct checkpoint *ck, const char *prefix, int n_layers, struct error *err);

/* Whether a bound tensor is the matrix of one expert or of all experts; a token uses only some of them. */
bool bind_of_experts(const struct tensor *t);

/* Sets the types that the bound matrices of this file, and those of later files, are quantised to. May be called again
 * until they are taken. Rows that are not whole blocks, and types with separate scales, stay as they are. */
void binder_quantize(struct binder *b, struct checkpoint *ck, struct model_types types);
/* Bytes that binder_take() allocates for the bound tensors of this file; saturates. */
uint64_t binder_take_cost(const struct binder *b, const struct checkpoint *ck);
/* Allocates the weights bound in this file. ERR_MEM_LOAD. */
int binder_take(struct binder *b, struct checkpoint *ck, struct error *err);
/* Call when all data have come: ERR_UNSUPPORTED "quantisation" or "architecture" for what only data tell. */
int binder_check(const struct binder *b, struct error *err);
/* Frees what the binder itself holds. */
void binder_free(struct binder *b);

#endif
