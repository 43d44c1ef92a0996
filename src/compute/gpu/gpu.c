/* SPDX-License-Identifier: MIT
 *
 * The GPU backend: opening and freeing it, its buffers, what comes back.
 */
#include "compute/gpu/gpu.h"

#include "base/hash.h"
#include "base/reader.h"
#include "compute/pages.h"

#include <string.h>

static const char *gpu_name(const struct backend *b) { return (void)b, "webgpu"; }
const char *backend_gpu_dots(bool scalar) { return (void)scalar, "none"; }

/* --- opening ----------------------------------------------------------------------------------------------------- */

static int gpu_check(const struct backend *b, const struct kv_shape *kv, const struct state_shape *state, bool encodes,
                     struct error *err)
{
    (void)b, (void)encodes;
    if (kv->n_layers + state->n_layers > GPU_LAYERS)
        return fail(err, ERR_UNSUPPORTED, "gpu", 0,
                    "On the graphics device models have %d layers at most; this one has %d.", GPU_LAYERS,
                    kv->n_layers + state->n_layers);
    if (kv->type == KV_Q8)
        return fail(err, ERR_UNSUPPORTED, "gpu", 0,
                    "On the graphics device the cache has the types f16 and f32, not q8.");
    if (kv->head_dim % 32 || kv->head_dim > 256)
        return fail(err, ERR_UNSUPPORTED, "gpu", 0,
                    "On the graphics device heads have multiples of 32 columns, 256 at most; this model's have %d.",
                    kv->head_dim);
    return OK;
}

/* Words of the scratch: the values, then quantised rows. Sets the places of the latter. */
static uint64_t scratch_words(struct gpu *g, const struct reserve *r)
{
    uint64_t cells = (uint64_t)r->max_rows * (((uint64_t)r->max_cols + BLOCK - 1) / BLOCK);
    uint64_t codes = (r->values + 3) / 4, scales = codes + cells * (BLOCK / 4), sums = scales + cells;
    uint64_t experts = sums + 2 * cells;
    g->spare = (uint32_t)(experts + cells - codes);
    g->codes = (uint32_t)codes, g->scales = (uint32_t)scales, g->sums = (uint32_t)sums, g->experts = (uint32_t)experts;
    return experts + cells;
}

static uint64_t table_words(const struct reserve *r)
{
    uint64_t rows = (uint64_t)r->max_rows, words = rows * (20 + (uint64_t)HEAD_MOST);
    return words + rows * (uint64_t)r->kv.n_pages;
}

/* What is larger than a buffer can be costs more than there is. */
static struct reserve_cost gpu_reserve_cost(const struct backend *b, const struct reserve *r)
{
    struct gpu measured = *(const struct gpu *)b;
    uint64_t layer, states = 0, scratch = 4 * scratch_words(&measured, r), binding = gpu_binding();
    for (int i = 0; i <= r->state.n_layers; i++) {
        uint64_t part = gpu_state_bytes(&r->state, i) * (uint64_t)r->state.n_slots;
        states = part > binding || states == UINT64_MAX ? UINT64_MAX : states + part;
    }
    if (!mul64((uint64_t)r->kv.n_pages, page_layer_bytes(&r->kv), &layer)) layer = UINT64_MAX;
    return (struct reserve_cost){
        .scratch = scratch > binding ? UINT64_MAX : scratch + mem_cost(r->values) + mem_cost(4 * table_words(r)),
        .pages = layer > binding ? UINT64_MAX : layer * (uint64_t)r->kv.n_layers,
        .states = states};
}

static void release_buffers(struct gpu *g)
{
    for (int l = 0; g->pages && l < g->kv.n_layers; l++) gpu_release(g->pages[l]);
    for (int i = 0; g->states && i <= g->state.n_layers; i++) gpu_release(g->states[i]);
    gpu_release(g->scratch);
    mem_free(g->mem, g->pages);
    mem_free(g->mem, g->states);
    mem_free(g->mem, g->mirror);
    mem_free(g->mem, g->table);
    g->pages = g->states = NULL;
    g->mirror = NULL;
    g->table = NULL;
    g->scratch = 0;
}

static int gpu_reserve(struct backend *b, const struct reserve *r)
{
    struct gpu *g = (struct gpu *)b;
    struct reserve_cost cost = gpu_reserve_cost(b, r);
    if (cost.scratch == UINT64_MAX) return ERR_MEM_LOAD;
    if (cost.pages == UINT64_MAX || cost.states == UINT64_MAX) return ERR_MEM_KV;
    g->kv = r->kv;
    g->state = r->state;
    g->layer_bytes = page_layer_bytes(&r->kv);
    g->max_rows = r->max_rows;
    g->max_cols = r->max_cols;
    g->table_room = (int)table_words(r);
    g->table = mem_alloc_raw(g->mem, 4 * table_words(r));
    g->mirror = mem_alloc_raw(g->mem, r->values);
    g->pages = mem_array(g->mem, (uint64_t)r->kv.n_layers, sizeof *g->pages);
    g->states = mem_array(g->mem, (uint64_t)r->state.n_layers + 1, sizeof *g->states);
    if (!g->table || !g->mirror || !g->pages || !g->states) {
        release_buffers(g);
        return ERR_MEM_LOAD;
    }
    g->n_table = 1;
    g->scratch = gpu_buffer(4.0 * (double)scratch_words(g, r));
    for (int l = 0; l < r->kv.n_layers; l++) g->pages[l] = gpu_buffer((double)r->kv.n_pages * (double)g->layer_bytes);
    for (int i = 0; i <= r->state.n_layers; i++)
        if (gpu_state_bytes(&r->state, i))
            g->states[i] = gpu_buffer((double)r->state.n_slots * (double)gpu_state_bytes(&r->state, i));
    return OK;
}

static void gpu_free(struct backend *b)
{
    struct gpu *g = (struct gpu *)b;
    struct mem *m = g->mem;
    for (int i = 0; i < g->n_shared; i++) gpu_release(g->shared[i]);
    release_buffers(g);
    mem_free(m, g->shared);
    mem_free(m, g->vectors);
    mem_free(m, g->commands);
    mem_free(m, g->staging);
    mem_free(m, g);
}

static bool gpu_warm(struct backend *b) { return (void)b, false; }

static uint64_t gpu_heads_size(const struct backend *b, const struct heads *s)
{
    return (void)b, (uint64_t)s->n_heads * gpu_head_words(s);
}

/* --- pages ------------------------------------------------------------------------------------------------------- */

/* What was recorded before comes first. */
static void gpu_kv_copy(struct backend *b, int to, int from, int n)
{
    struct gpu *g = (struct gpu *)b;
    double bytes = (double)g->layer_bytes;
    (void)n;
    gpu_begin(g);
    for (int l = 0; l < g->kv.n_layers; l++) gpu_copy(g->pages[l], to * bytes, from * bytes, bytes);
}

static uint64_t gpu_kv_bytes(const struct backend *b)
{
    const struct gpu *g = (const struct gpu *)b;
    return (uint64_t)g->kv.n_layers * g->layer_bytes;
}

static void gpu_kv_set(struct backend *b, int page, const void *bytes)
{
    struct gpu *g = (struct gpu *)b;
    double size = (double)g->layer_bytes;
    gpu_begin(g);
    for (int l = 0; l < g->kv.n_layers; l++)
        gpu_write(g->pages[l], page * size, (const uint8_t *)bytes + (uint64_t)l * g->layer_bytes, size);
}

/* --- slots ------------------------------------------------------------------------------------------------------- */

/* Where byte `from` of a slot lies, and how many of the n bytes from there on lie in the same buffer. */
struct in_slot {
    uint32_t buffer;
    uint64_t at, n;
};

static struct in_slot in_slot(const struct gpu *g, int slot, uint64_t from, uint64_t n)
{
    uint64_t layer = g->state.layer_bytes;
    int i = layer && from / layer < (uint64_t)g->state.n_layers ? (int)(from / layer) : g->state.n_layers;
    uint64_t bytes = gpu_state_bytes(&g->state, i), at = from - (uint64_t)i * layer;
    return (struct in_slot){g->states[i], (uint64_t)slot * bytes + at, n < bytes - at ? n : bytes - at};
}

static void gpu_slot_set(struct backend *b, int slot, uint64_t from, uint64_t n, const void *bytes)
{
    struct gpu *g = (struct gpu *)b;
    const uint8_t *next = bytes;
    gpu_begin(g);
    for (uint64_t end = from + n; from < end;) {
        struct in_slot part = in_slot(g, slot, from, end - from);
        gpu_write(part.buffer, (double)part.at, next, (double)part.n);
        from += part.n, next += part.n;
    }
}

/* --- what comes back --------------------------------------------------------------------------------------------- */

static void gpu_kv_get(struct backend *b, int page, int n, void *bytes)
{
    struct gpu *g = (struct gpu *)b;
    g->gets[g->n_gets++] = (struct gpu_get){bytes, n};
    for (int l = 0; l < g->kv.n_layers; l++)
        gpu_ask(g, g->pages[l], (uint64_t)page * g->layer_bytes, g->layer_bytes,
                (uint8_t *)bytes + (uint64_t)l * g->layer_bytes);
}

static void gpu_slot_get(struct backend *b, int slot, uint64_t from, uint64_t n, void *bytes)
{
    struct gpu *g = (struct gpu *)b;
    uint8_t *next = bytes;
    for (uint64_t end = from + n; from < end;) {
        struct in_slot part = in_slot(g, slot, from, end - from);
        gpu_ask(g, part.buffer, part.at, part.n, next);
        from += part.n, next += part.n;
    }
}

/* With fast kernels hashes differ, and so does the fingerprint that saved conversations have: nobody takes keys and
 * values of fast kernels for those of others. */
static void gpu_arrived(struct backend *b)
{
    struct gpu *g = (struct gpu *)b;
    for (const struct gpu_hash *h = g->hashes; h < g->hashes + g->n_hashes; h++) {
        hash128(h->bytes, (size_t)h->n, h->out);
        h->out[0] ^= gpu_fast();
    }
    for (const struct gpu_get *get = g->gets; get < g->gets + g->n_gets; get++) page_clear(&g->kv, get->bytes, get->n);
    g->n_hashes = g->n_gets = 0;
}

static void gpu_submit_results(struct backend *b, const struct result *results, int n)
{
    struct gpu *g = (struct gpu *)b;
    for (int i = 0; i < n; i++)
        gpu_ask(g, g->scratch, results[i].y.at, results[i].n * sizeof(float), (uint8_t *)g->mirror + results[i].y.at);
    gpu_begin(g);
}

static const float *gpu_result(const struct backend *b, struct handle y)
{
    return (const float *)(const void *)((const uint8_t *)((const struct gpu *)b)->mirror + y.at);
}

/* All weights have come before the first operation. */
static void gpu_run(struct backend *b, const struct op *ops, int n)
{
    struct gpu *g = (struct gpu *)b;
    gpu_weights_end(g);
    gpu_record(g, ops, n);
}

static const struct backend_ops gpu_ops = {
    .name = gpu_name,
    .free = gpu_free,
    .check = gpu_check,
    .weight_new = gpu_weight_new,
    .weight_from = gpu_weight_from,
    .weight_cost = gpu_weight_cost,
    .weight_free = gpu_weight_free,
    .weight_put = gpu_weight_put,
    .weight_put_columns = gpu_weight_put_columns,
    .weight_part = gpu_weight_part,
    .weight_order = gpu_weight_order,
    .weight_facts = gpu_weight_facts,
    .reserve_cost = gpu_reserve_cost,
    .reserve = gpu_reserve,
    .warm = gpu_warm,
    .kv_copy = gpu_kv_copy,
    .kv_bytes = gpu_kv_bytes,
    .kv_set = gpu_kv_set,
    .kv_get = gpu_kv_get,
    .slot_set = gpu_slot_set,
    .slot_get = gpu_slot_get,
    .weight_hash = gpu_weight_hash,
    .arrived = gpu_arrived,
    .heads_size = gpu_heads_size,
    .run = gpu_run,
    .submit = gpu_submit_results,
    .result = gpu_result,
};

/* Tells JavaScript what its kernels are made of. */
static void tell_layouts(void)
{
    struct gpu_layout all[LAYOUT_COUNT] = {0};
    for (int i = LAYOUT_F32; i < LAYOUT_COUNT; i++) {
        const struct layout_info *l = &layouts[i];
        all[i] =
            (struct gpu_layout){l->columns, l->bytes,      (int)l->kind,     (int)(i == LAYOUT_BF16 ? D_BF16 : l->d),
                                l->head,    l->scales,     l->block,         l->bits,
                                l->offset,  l->value_bits, l->table != NULL, {0}};
        for (int k = 0; k < 16 && l->table; k++) all[i].table[k] = l->table[k];
    }
    gpu_layouts(all, LAYOUT_COUNT, pieces);
}

struct backend *backend_gpu(struct mem *m, struct pool *pool, bool scalar)
{
    (void)pool, (void)scalar;
    struct gpu *g = mem_alloc(m, sizeof *g);
    if (!g) return NULL;
    g->base.ops = &gpu_ops;
    g->base.late = true;
    g->mem = m;
    g->staging = mem_alloc_raw(m, GPU_STAGING);
    g->commands = mem_array(m, GPU_COMMANDS, sizeof *g->commands);
    g->vectors = mem_array(m, GPU_VECTORS, sizeof *g->vectors);
    g->shared = mem_array(m, GPU_SHARED, sizeof *g->shared);
    if (g->staging && g->commands && g->vectors && g->shared) {
        tell_layouts();
        return &g->base;
    }
    gpu_free(&g->base);
    return NULL;
}
