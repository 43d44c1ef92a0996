/* SPDX-License-Identifier: MIT
 *
 * The header of a GGUF file (version 3), written into memory: fixed part, metadata, list of tensors, padding.
 */
#ifndef QUERN_GGUF_WRITER_H
#define QUERN_GGUF_WRITER_H

#include "load/checkpoint.h"

enum { GGUF_ALIGNMENT = 32 };

/* Growing bytes. `failed` is set when memory was short; nothing more is added then. */
struct buffer {
    struct mem *mem;
    uint8_t *data;
    size_t size, room;
    bool failed;
};

void buffer_add(struct buffer *b, const void *bytes, size_t n);
void buffer_free(struct buffer *b);

/* Keys are counted as they are written. */
struct gguf_writer {
    struct buffer out;
    uint64_t n_keys;
};

void gguf_begin(struct gguf_writer *w, struct mem *mem, uint64_t n_tensors);
/* value: the bytes of a scalar, the text of a string, or the packed elements of an array, as in struct meta. */
void gguf_key(struct gguf_writer *w, struct bytes key, enum meta_type type, struct bytes value);
void gguf_array(struct gguf_writer *w, struct bytes key, enum meta_type element, uint64_t count, struct bytes elements);
/* offset: from the beginning of the data; a multiple of GGUF_ALIGNMENT. */
void gguf_tensor(struct gguf_writer *w, const char *name, int n_dims, const uint64_t *dims, const struct dtype *type,
                 uint64_t offset);
/* Pads to the beginning of the data. */
void gguf_end(struct gguf_writer *w);

struct bytes text_bytes(const char *text);
/* Adds a string in the form of an array's element: length, then text. */
void buffer_string(struct buffer *b, struct bytes text);

#endif
