/* SPDX-License-Identifier: MIT
 *
 * Writes GGUF's header, item by item.
 */
#include "cli/gguf_writer.h"

#include <string.h>

void buffer_add(struct buffer *b, const void *bytes, size_t n)
{
    if (b->failed) return;
    if (b->size + n > b->room) {
        size_t room = b->room ? b->room : 65536;
        while (room < b->size + n) room *= 2;
        uint8_t *grown = mem_resize(b->mem, b->data, room);
        if (!grown) {
            b->failed = true;
            return;
        }
        b->data = grown;
        b->room = room;
    }
    if (n) memcpy(b->data + b->size, bytes, n);
    b->size += n;
}

void buffer_free(struct buffer *b)
{
    mem_free(b->mem, b->data);
    *b = (struct buffer){.mem = b->mem};
}

struct bytes text_bytes(const char *text) { return (struct bytes){(const uint8_t *)text, strlen(text)}; }

static void add_u32(struct buffer *b, uint32_t v) { buffer_add(b, &v, sizeof v); }
static void add_u64(struct buffer *b, uint64_t v) { buffer_add(b, &v, sizeof v); }

void buffer_string(struct buffer *b, struct bytes text)
{
    add_u64(b, text.size);
    buffer_add(b, text.data, text.size);
}

void gguf_begin(struct gguf_writer *w, struct mem *mem, uint64_t n_tensors)
{
    *w = (struct gguf_writer){.out = {.mem = mem}};
    buffer_add(&w->out, "GGUF", 4);
    add_u32(&w->out, 3);
    add_u64(&w->out, n_tensors);
    add_u64(&w->out, 0); /* number of keys: set by gguf_end() */
}

void gguf_key(struct gguf_writer *w, struct bytes key, enum meta_type type, struct bytes value)
{
    w->n_keys++;
    buffer_string(&w->out, key);
    add_u32(&w->out, type);
    if (type == META_STRING) buffer_string(&w->out, value);
    else buffer_add(&w->out, value.data, value.size);
}

void gguf_array(struct gguf_writer *w, struct bytes key, enum meta_type element, uint64_t count, struct bytes elements)
{
    w->n_keys++;
    buffer_string(&w->out, key);
    add_u32(&w->out, META_ARRAY);
    add_u32(&w->out, element);
    add_u64(&w->out, count);
    buffer_add(&w->out, elements.data, elements.size);
}

void gguf_tensor(struct gguf_writer *w, const char *name, int n_dims, const uint64_t *dims, const struct dtype *type,
                 uint64_t offset)
{
    buffer_string(&w->out, text_bytes(name));
    add_u32(&w->out, (uint32_t)n_dims);
    for (int i = 0; i < n_dims; i++) add_u64(&w->out, dims[i]);
    add_u32(&w->out, type->gguf_id);
    add_u64(&w->out, offset);
}

void gguf_end(struct gguf_writer *w)
{
    static const uint8_t zeros[GGUF_ALIGNMENT];
    buffer_add(&w->out, zeros, (GGUF_ALIGNMENT - w->out.size % GGUF_ALIGNMENT) % GGUF_ALIGNMENT);
    if (!w->out.failed) memcpy(w->out.data + 16, &w->n_keys, sizeof w->n_keys);
}
