/* SPDX-License-Identifier: MIT
 *
 * Where the parts of a page are.
 */
#include "compute/pages.h"

#include <string.h>

/* Bytes of one position in a part. */
static size_t part_bytes(const struct kv_shape *s, enum page_part part)
{
    size_t dim = (size_t)s->head_dim;
    bool notes = part < KEYS;
    if (s->type == KV_F32) return notes ? 0 : dim * sizeof(float);
    if (s->type == KV_F16) return notes ? 1 : dim * sizeof(uint16_t);
    return notes ? dim / 32 * sizeof(float) : dim;
}

static size_t head_bytes(const struct kv_shape *s)
{
    size_t bytes = 0;
    for (enum page_part part = KEY_NOTES; part < PARTS; part++) bytes += KV_PAGE * part_bytes(s, part);
    return bytes;
}

uint64_t page_layer_bytes(const struct kv_shape *s) { return (uint64_t)s->n_kv_heads * head_bytes(s); }
uint64_t page_bytes(const struct kv_shape *s) { return (uint64_t)s->n_layers * page_layer_bytes(s); }

struct page_view page_view(const struct kv_shape *s, uint8_t *bytes, int layer, int head)
{
    struct page_view p;
    bytes += (size_t)((uint64_t)layer * page_layer_bytes(s)) + (size_t)head * head_bytes(s);
    for (enum page_part part = KEY_NOTES; part < PARTS; bytes += KV_PAGE * part_bytes(s, part), part++)
        p.part[part] = bytes;
    return p;
}

/* Codes and notes of a position lie together, its halves or floats among those of others. */
static void clear_head(const struct kv_shape *s, const struct page_view *page, int position)
{
    size_t size = s->type == KV_F32 ? sizeof(float) : sizeof(uint16_t);
    for (enum page_part part = KEY_NOTES; part < PARTS; part++) {
        size_t bytes = part_bytes(s, part);
        if (part < KEYS || s->type == KV_Q8)
            memset(page->part[part] + (size_t)position * bytes, 0, (size_t)(KV_PAGE - position) * bytes);
        else
            for (int i = position * s->head_dim; i < KV_PAGE * s->head_dim; i++) {
                int at = i / s->head_dim, d = i % s->head_dim;
                memset(page->part[part] +
                           (part == KEYS ? key_place(at, d, s->head_dim) : value_place(at, d, s->head_dim)) * size,
                       0, size);
            }
    }
}

void page_clear(const struct kv_shape *s, uint8_t *bytes, int n)
{
    for (int i = 0; i < s->n_layers * s->n_kv_heads && n < KV_PAGE; i++) {
        struct page_view view = page_view(s, bytes, i / s->n_kv_heads, i % s->n_kv_heads);
        clear_head(s, &view, n);
    }
}
