/* SPDX-License-Identifier: MIT
 *
 * What every loader yields: typed metadata and a directory of tensors; then the tensors' bytes, routed to who bound
 * them.
 *
 * A file is pushed in, in chunks of any size (network, disk and a fuzzer's bytes use the same code). First the header
 * is collected and checked; then a model binds the tensors it wants, shape by shape; then data flows to the bound ones
 * in groups of rows and the rest is dropped. No copy of the file ever exists: at most the header and one row group are
 * held, or one expert's matrices where the file has them by columns.
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
    bool turned;            /* the file has each matrix of the stack by columns */
    int twin; /* 0; 2: matrices of this tensor and of the next one take turns, where they are turned side by side, else
                 one below the other; 1: that one. Their places are halves of what both have */
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
    bool trunk;              /* its tensors' names are those of a language model without its output head */
    uint64_t name_hash;      /* sum of the hashes of its tensors' own names, for an index of several files */
    void *parser;            /* the format's own state while the header is read */
    /* data phase */
    uint64_t pos;            /* in the file */
    size_t current;          /* tensor */
    /* one group of 8 rows, cut by a chunk's end; or a matrix that stands by columns, and some of its rows */
    uint8_t *stage;
    size_t staged, stage_room;
    uint64_t next_row;       /* of it, and of its twin; or the next matrix */
};

enum {
    NEED_MORE = 1,
    TENSORS_MOST = 65536, /* of all files of a model */
};

void ck_init(struct checkpoint *ck, struct mem *m, uint64_t known_size);
void ck_close(struct checkpoint *ck);

/* A borrowed view, valid until ck_close. */
struct bytes ck_view(const struct checkpoint *ck, struct span s);

/* --- filling: what formats do while the header is read --- */

/* Appends to ck->header. */
int ck_keep(struct checkpoint *ck, const uint8_t *bytes, size_t n, struct error *err);
int ck_add_meta(struct checkpoint *ck, const struct meta *m, struct error *err);
int ck_add_tensor(struct checkpoint *ck, const struct tensor *t, struct error *err);
/* The same for metadata that the file words otherwise: key and value are appended to ck->header. */
int ck_put_text(struct checkpoint *ck, const char *key, struct bytes text, struct error *err);
int ck_put_int(struct checkpoint *ck, const char *key, int64_t value, struct error *err);
int ck_put_float(struct checkpoint *ck, const char *key, double value, struct error *err);
int ck_put_bool(struct checkpoint *ck, const char *key, bool value, struct error *err);
int ck_put_array(struct checkpoint *ck, const char *key, enum meta_type element, struct bytes data, uint64_t count,
                 struct error *err);
/* What has been put so far, whatever its order; NULL: nothing. Valid until more is put. */
struct meta *ck_seek(const struct checkpoint *ck, struct bytes key);
/* Whether any key begins with `prefix`, and the end of all that do but one. */
bool ck_any(const struct checkpoint *ck, const char *prefix);
void ck_drop(struct checkpoint *ck, const char *prefix, const char *except);
/* Adds a copy of all metadata of another file. */
int ck_merge(struct checkpoint *ck, const struct checkpoint *from, struct error *err);
/* The same of metadata whose keys begin with `prefix`, in place of what was there under these keys. ck_complete() is to
 * follow. */
int ck_override(struct checkpoint *ck, const struct checkpoint *from, const char *prefix, struct error *err);
/* Adds a copy of its tensors, as if it began at `at`, and whether they are a trunk. */
int ck_gather(struct checkpoint *ck, const struct checkpoint *from, uint64_t at, struct error *err);
void ck_sort_tensors(struct checkpoint *ck); /* by their places; empty ones first */
/* Sorts both lists and checks what no format may violate: duplicates, overlaps. */
int ck_complete(struct checkpoint *ck, struct error *err);

uint64_t name_hash(struct bytes name); /* FNV-1a */

/* --- tensors --- */

struct tensor *ck_find(const struct checkpoint *ck, const char *name); /* NULL when absent */
/* The tensors whose names begin with `prefix` are neighbours in by_name: the place of the first of them; and what
 * follows the prefix in the name at a place, false where that name begins otherwise. */
size_t ck_first(const struct checkpoint *ck, const char *prefix);
bool ck_rest(const struct checkpoint *ck, size_t place, const char *prefix, struct bytes *rest);
/* A tensor that must be there with this shape (rows = 0: a vector; stack: so many matrices one below the other) in a
 * supported type. ERR_FORMAT "missing", ERR_INCONSISTENT "shape", ERR_UNSUPPORTED "quantisation". The caller then sets
 * put and context. */
int ck_bind(const struct checkpoint *ck, const char *name, uint64_t cols, uint64_t rows, uint64_t stack,
            struct tensor **out, struct error *err);

/* --- data --- */

/* Bytes that ck_data_begin() will take, and that ck_close() will give back of what there is now (its largest parts). */
uint64_t ck_data_cost(const struct checkpoint *ck);
uint64_t ck_held(const struct checkpoint *ck);
/* After binding: makes the stage. ERR_MEM_LOAD. */
int ck_data_begin(struct checkpoint *ck, struct error *err);
void ck_data(struct checkpoint *ck, const uint8_t *bytes, size_t n);

#endif
