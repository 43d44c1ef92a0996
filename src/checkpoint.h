/* SPDX-License-Identifier: MIT
 *
 * What every loader yields: typed metadata and a directory of tensors; then the tensors' bytes, routed to who bound them.
 *
 * A file is pushed in, in chunks of any size (network, disk and a fuzzer's bytes use the same code). First the header
 * is collected and checked; then a model binds the tensors it wants, shape by shape; then data flows to the bound ones in groups of
 * rows and the rest is dropped. No copy of the file ever exists: at most the header and one row group are held.
 */
#ifndef QUERN_CHECKPOINT_H
#define QUERN_CHECKPOINT_H

#include "arena.h"
#include "pack.h"

/* Value types, numbered as in GGUF. */
enum meta_type {
    META_U8, META_I8, META_U16, META_I16, META_U32, META_I32, META_F32, META_BOOL, META_STRING, META_ARRAY,
    META_U64, META_I64, META_F64, META_TYPES
};

/* Bytes of the header, by place: the header may still move while it grows. */
struct span {
    size_t at, size;
};

struct meta {
    struct span key;
    enum meta_type type;
    struct span value;      /* a scalar's bytes, a string's text, an array's packed elements */
    enum meta_type element; /* of an array */
    uint64_t count;         /* of an array */
};

/* Takes rows row .. row + n - 1 of a tensor; n is a multiple of 8 unless they are the last. */
typedef void tensor_put(void *context, int row, int n, const uint8_t *rows);

struct tensor {
    struct span name;
    const struct dtype *type;
    uint64_t cols, rows;    /* dims[0] and the product of the others */
    uint64_t stack;         /* dims[2]; 1 when there is none */
    int n_dims;
    uint64_t offset;        /* in the file */
    uint64_t bytes;
    const struct dtype *weights; /* of scales: the type of the weights they belong to; else NULL */
    tensor_put *put;        /* NULL: nobody wants it */
    void *context;          /* allocated from mem; ck_close frees it */
};

struct format;

struct checkpoint {
    struct mem *mem;
    const struct format *format; /* NULL until it is known */
    uint8_t *header;         /* the file's first header_size bytes */
    size_t header_size, header_room;
    struct meta *metas;      /* [n_metas] sorted by key once the header is complete */
    size_t n_metas, metas_room;
    struct tensor *tensors;  /* [n_tensors] sorted by offset once the header is complete */
    size_t n_tensors, tensors_room;
    size_t *by_name;         /* [n_tensors] their numbers in the order of their names */
    uint64_t begin;          /* bytes of the file that were read as its header */
    uint64_t file_size;      /* what the header promises; 0 until it is complete */
    uint64_t known_size;     /* of the file, when the caller knows; else 0 */
    uint64_t name_hash;      /* sum of the hashes of its tensors' own names, for an index of several files */
    void *parser;            /* the format's own state while the header is read */
    /* data phase */
    uint64_t pos;            /* in the file */
    size_t current;          /* tensor */
    uint8_t *stage;          /* one group of 8 rows, cut by a chunk's end */
    size_t staged, stage_room;
    int next_row;
};

enum { NEED_MORE = 1 };

void ck_init(struct checkpoint *ck, struct mem *m, uint64_t known_size);
void ck_close(struct checkpoint *ck);

/* Takes bytes of the header. OK: complete, *used of n taken; NEED_MORE: all taken; or an error. */
int ck_header(struct checkpoint *ck, const uint8_t *bytes, size_t n, size_t *used, struct error *err);
/* The file ended inside the header: why that is an error. */
int ck_header_ended(struct checkpoint *ck, struct error *err);

/* --- metadata: borrowed views, valid until ck_close --- */

struct bytes ck_view(const struct checkpoint *ck, struct span s);
const struct meta *meta_find(const struct checkpoint *ck, const char *key); /* NULL when absent */

/* Typed access. Absent: `missing` when it is not NULL, else ERR_FORMAT "missing". Wrong type: ERR_FORMAT "kv-type".
 * Out of lo..hi: ERR_INCONSISTENT "value". Integers of any width and sign are accepted where their value fits. */
int meta_int(const struct checkpoint *ck, const char *key, int64_t lo, int64_t hi, const int64_t *missing, int64_t *out, struct error *err);
int meta_float(const struct checkpoint *ck, const char *key, double lo, double hi, const double *missing, double *out, struct error *err);
int meta_bool(const struct checkpoint *ck, const char *key, bool missing, bool *out, struct error *err);
int meta_text(const struct checkpoint *ck, const char *key, bool required, struct bytes *out, struct error *err);
/* The packed elements of an array of exactly this element type. Absent and not required: count 0. */
int meta_array(const struct checkpoint *ck, const char *key, enum meta_type element, bool required, struct bytes *data, uint64_t *count, struct error *err);

/* --- split models: the first file has the metadata, each its own tensors --- */

struct split {
    int64_t files, number; /* how many, and which one of them this is, from 0 */
    int64_t tensors;       /* of all files; 0: not said */
};

/* {1, 0, 0} for a file that is whole. */
int ck_split(const struct checkpoint *ck, struct split *out, struct error *err);
/* Tensors of all files, by what this one says; its own at least. */
uint64_t ck_tensors_in_all(const struct checkpoint *ck);

/* --- tensors --- */

struct tensor *ck_find(const struct checkpoint *ck, const char *name); /* NULL when absent */
/* Tensors whose names begin with `prefix` follow each other in by_name: the place of the first, and what follows the prefix there; false where that is none. */
size_t ck_first(const struct checkpoint *ck, const char *prefix);
bool ck_rest(const struct checkpoint *ck, size_t place, const char *prefix, struct bytes *rest);
/* A tensor that must be there with this shape (rows = 0: a vector; stack: so many matrices one below the other) in a supported type.
 * ERR_FORMAT "missing", ERR_INCONSISTENT "shape", ERR_UNSUPPORTED "quantisation". The caller then sets put and context. */
int ck_bind(const struct checkpoint *ck, const char *name, uint64_t cols, uint64_t rows, uint64_t stack, struct tensor **out, struct error *err);

/* --- data --- */

/* Bytes that ck_data_begin() will take, and that ck_close() will give back of what there is now (its largest parts). */
uint64_t ck_data_cost(const struct checkpoint *ck);
uint64_t ck_held(const struct checkpoint *ck);
/* After binding: makes the stage. ERR_MEM_LOAD. */
int ck_data_begin(struct checkpoint *ck, struct error *err);
void ck_data(struct checkpoint *ck, const uint8_t *bytes, size_t n);
/* The file has ended. ERR_FORMAT "truncated" when a tensor is not complete, bound or not. */
int ck_data_ended(const struct checkpoint *ck, struct error *err);

/* --- files beside the weights, which describe the model (JSON, vocabularies) --- */

/* Whether the file, which has ended, is one. */
bool ck_is_side(const struct checkpoint *ck);
/* Adds what it says to the model's metadata. */
int ck_read_side(struct checkpoint *file, struct checkpoint *model, struct error *err);
/* Adds a copy of all metadata of another file. */
int ck_merge(struct checkpoint *ck, const struct checkpoint *from, struct error *err);

#endif
