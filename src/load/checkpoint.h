/* SPDX-License-Identifier: MIT
 *
 * The common result of all loaders: typed metadata and a list of tensors; then the tensors' bytes, passed to the code
 * that bound each tensor.
 *
 * A file comes in chunks of any size (network, disk and fuzzer use the same code). First the header is collected and
 * checked. Then a model binds the tensors that it needs, shape by shape. Then data flows to the bound tensors in groups
 * of rows, and other data is dropped. No copy of the file ever exists: at most the header and one group of rows are in
 * memory, or one expert's matrices if the file stores them by columns.
 */
#ifndef QUERN_CHECKPOINT_H
#define QUERN_CHECKPOINT_H

#include "base/arena.h"
#include "weights/pack.h"

/* Value types, numbered as in GGUF. */
enum meta_type {
    META_U8, META_I8, META_U16, META_I16, META_U32, META_I32, META_F32, META_BOOL, META_STRING, META_ARRAY,
    META_U64, META_I64, META_F64, META_TYPES
};

/* A part of the header, by offset, because the header may move in memory while it grows. */
struct span {
    size_t at, size;
};

struct meta {
    struct span key;
    enum meta_type type;
    struct span value;      /* a scalar's bytes, a string's text, an array's packed elements */
    enum meta_type element; /* type of an array's elements */
    uint64_t count;         /* number of an array's elements */
};

/* Receives rows row .. row + n - 1 of a tensor; n is a multiple of 8 except for the last rows. */
typedef void tensor_put(void *context, int row, int n, const uint8_t *rows);

/* How words of 32 bits hold the codes of a matrix, of a width that only the matrix's columns tell. */
enum packing {
    PACKING_NONE,
    PACKING_MLX, /* each row is a stream of codes; scales and biases [rows, groups] */
    /* GPTQ and its version 2: each column is a stream down the words; scales [groups, rows] and zero points, whose
     * words are several rows of one group. In version 1 zero points are stored 1 too small. */
    PACKING_GPTQ, PACKING_GPTQ_V2,
    PACKING_AWQ, /* a word has 8 rows of one column, in an order of its own, also of zero points */
    PACKING_CT,  /* as MLX, with zero points whose words are rows of one group, or none */
};

struct tensor {
    struct span name;
    const struct dtype *type;
    uint64_t cols, rows;    /* dims[0], and the product of the other dimensions */
    uint64_t stack;         /* dims[2]; 1 if there is no third dimension */
    int n_dims;
    bool turned;            /* the file stores each matrix of the stack by columns */
    int twin; /* 2: matrices of this tensor alternate with those of the next one, side by side if turned, else one
                 below the other; 1: this is that next tensor; 0: neither. Both have half of the common range */
    enum packing packing;   /* of words that hold codes: ck_unfold() */
    uint64_t offset;        /* position in the file */
    uint64_t bytes;
    const struct dtype *weights; /* for scales: the type of the weights that they belong to; else NULL */
    bool uncounted;         /* in reports: early scales, which count with their weights, and orders of columns */
    uint64_t beside;        /* bytes of a weight's scales in earlier files, which count with it */
    tensor_put *put;        /* receives the rows; NULL: the tensor is not needed */
    void *context;          /* for put; allocated from mem, freed by ck_close() */
};

struct format;

struct checkpoint {
    struct mem *mem;
    const struct format *format; /* NULL until the format is known */
    uint8_t *header;         /* the file's first header_size bytes */
    size_t header_size, header_room;
    struct meta *metas;      /* [n_metas] sorted by key once the header is complete */
    size_t n_metas, metas_room;
    struct tensor *tensors;  /* [n_tensors] sorted by offset once the header is complete */
    size_t n_tensors, tensors_room;
    size_t *by_name;         /* [n_tensors] indexes of tensors, sorted by name */
    uint64_t begin;          /* bytes of the file before the data, read as header */
    uint64_t file_size;      /* size by the header; 0 until the header is complete */
    uint64_t known_size;     /* file size if the caller knows it; else 0 */
    bool trunk;              /* the tensor names are those of a language model without its output head */
    uint64_t name_hash; /* sum of the hashes of the tensors' own names, to compare with an index of several files */
    void *parser;            /* state of the format while it reads the header */
    /* data phase */
    uint64_t pos;            /* position in the file */
    size_t current;          /* index of the current tensor */
    /* a group of 8 rows that the end of a chunk has cut; or a matrix stored by columns, and some of its rows */
    uint8_t *stage;
    size_t staged, stage_room;
    uint64_t next_row;       /* next row of the current tensor and its twin; or the next matrix */
};

enum {
    NEED_MORE = 1,
    TENSORS_MOST = 65536, /* in all files of a model together */
};

void ck_init(struct checkpoint *ck, struct mem *m, uint64_t known_size);
void ck_close(struct checkpoint *ck);

/* A view into the header, valid until ck_close(). */
struct bytes ck_view(const struct checkpoint *ck, struct span s);

/* --- filling: functions for formats that read a header --- */

/* Appends to ck->header. */
int ck_keep(struct checkpoint *ck, const uint8_t *bytes, size_t n, struct error *err);
int ck_add_meta(struct checkpoint *ck, const struct meta *m, struct error *err);
int ck_add_tensor(struct checkpoint *ck, const struct tensor *t, struct error *err);
/* Add metadata that the file expresses in another way: key and value are appended to ck->header. */
int ck_put_text(struct checkpoint *ck, const char *key, struct bytes text, struct error *err);
int ck_put_int(struct checkpoint *ck, const char *key, int64_t value, struct error *err);
int ck_put_float(struct checkpoint *ck, const char *key, double value, struct error *err);
int ck_put_bool(struct checkpoint *ck, const char *key, bool value, struct error *err);
int ck_put_array(struct checkpoint *ck, const char *key, enum meta_type element, struct bytes data, uint64_t count,
                 struct error *err);
/* Finds metadata added so far, in any order; NULL if absent. Valid until more is added. */
struct meta *ck_seek(const struct checkpoint *ck, struct bytes key);
/* ck_any: whether any key begins with `prefix`. ck_drop: removes all keys that begin with it, but not the key
 * `except`. */
bool ck_any(const struct checkpoint *ck, const char *prefix);
void ck_drop(struct checkpoint *ck, const char *prefix, const char *except);
/* Adds a copy of all metadata of another file. */
int ck_merge(struct checkpoint *ck, const struct checkpoint *from, struct error *err);
/* Adds a copy of the metadata with keys that begin with `prefix`, and replaces earlier values of these keys. Call
 * ck_complete() afterwards. */
int ck_override(struct checkpoint *ck, const struct checkpoint *from, const char *prefix, struct error *err);
/* Adds a copy of another file's tensors, as if that file began at `at`; sets ck->trunk if they are a trunk. */
int ck_gather(struct checkpoint *ck, const struct checkpoint *from, uint64_t at, struct error *err);
void ck_sort_tensors(struct checkpoint *ck); /* by position; empty tensors first */
/* Sorts both lists and checks rules that hold for all formats: no duplicates, no overlaps. */
int ck_complete(struct checkpoint *ck, struct error *err);

uint64_t name_hash(struct bytes name); /* FNV-1a */

/* --- tensors --- */

struct tensor *ck_find(const struct checkpoint *ck, const char *name); /* NULL when absent */
/* Tensors whose names begin with `prefix` are neighbours in by_name. ck_first() returns the index of the first of them.
 * ck_rest() gives the part after the prefix of the name at an index; false if that name begins otherwise. */
size_t ck_first(const struct checkpoint *ck, const char *prefix);
bool ck_rest(const struct checkpoint *ck, size_t place, const char *prefix, struct bytes *rest);
/* Gives a tensor with a packing the type and the shape of a matrix [rows, cols] of codes, whose scales are for `group`
 * columns each. ERR_UNSUPPORTED "quantisation", ERR_INCONSISTENT "shape". */
int ck_unfold(struct tensor *t, const char *name, uint64_t cols, uint64_t rows, uint64_t group, struct error *err);
/* Finds a tensor that must exist with this shape and a supported type. rows = 0: a vector; stack: number of matrices.
 * ERR_FORMAT "missing", ERR_INCONSISTENT "shape", ERR_UNSUPPORTED "quantisation". The caller then sets put and
 * context. */
int ck_bind(const struct checkpoint *ck, const char *name, uint64_t cols, uint64_t rows, uint64_t stack,
            struct tensor **out, struct error *err);

/* --- data --- */

/* Bytes that ck_data_begin() will allocate, and bytes held now that ck_close() will free (only the largest parts). */
uint64_t ck_data_cost(const struct checkpoint *ck);
uint64_t ck_held(const struct checkpoint *ck);
/* Call after binding: allocates the stage. ERR_MEM_LOAD. */
int ck_data_begin(struct checkpoint *ck, struct error *err);
void ck_data(struct checkpoint *ck, const uint8_t *bytes, size_t n);

#endif
