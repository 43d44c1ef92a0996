/* SPDX-License-Identifier: MIT
 *
 * Weights on the device: rows are packed into panels as they arrive, and written. A matrix is cut into slices, since a
 * kernel can bind only so many bytes of a buffer. Matrices that fit lie in common buffers, in the order in which the
 * model names them, so that one command can multiply with several of them.
 *
 * Scales that come apart from the codes lie in the heads of units, all over the panels, and come in any order. They are
 * gathered here, a fifth of the weights at most, and go to the device together, before the first operation.
 */
#include "compute/gpu/gpu.h"

#include "base/reader.h"
#include "weights/quantize.h"

#include <string.h>

static size_t slice_bytes(const struct weight *w, int slice)
{
    int left = gpu_panels(w->rows) - slice * w->slice_panels;
    return (size_t)min_int(w->slice_panels, left) * w->panel;
}

/* Panels of a slice; 0 if the matrix has too many slices, or panels that the staging does not hold. */
static int slice_panels(size_t panel, int rows)
{
    size_t most = gpu_binding() / panel / (GPU_SLICE_ROWS / PANEL_ROWS) * (GPU_SLICE_ROWS / PANEL_ROWS);
    int all = gpu_panels(rows);
    if (panel > GPU_STAGING) return 0;
    if ((size_t)all <= most) return all;
    return most && (size_t)all <= most * GPU_SLICES ? (int)most : 0;
}

static size_t units_of(const struct weight *w) { return (size_t)(w->cols / layouts[w->type->layout].columns); }

static size_t heads_bytes(const struct dtype *type, int rows, int cols)
{
    const struct layout_info *l = &layouts[type->layout];
    return l->scaled ? (size_t)gpu_panels(rows) * (size_t)(cols / l->columns) * (size_t)l->head : 0;
}

/* The head of a unit of a panel. */
static uint8_t *head_of(const struct weight *w, size_t panel, size_t unit)
{
    return w->heads + (panel * units_of(w) + unit) * (size_t)layouts[w->type->layout].head;
}

static void drop_heads(struct gpu *g, struct weight *w)
{
    struct weight **at = &g->apart;
    while (*at && *at != w) at = &(*at)->next;
    if (*at) *at = w->next;
    mem_free(g->mem, w->heads);
    mem_free(g->mem, w->order);
    w->heads = NULL;
    w->order = NULL;
}

static void drop_unplaced(struct gpu *g, const struct weight *w)
{
    struct weight **at = &g->unplaced;
    while (*at && *at != w) at = &(*at)->unplaced;
    if (*at) *at = w->unplaced;
}

void gpu_weight_free(struct backend *b, struct weight *w)
{
    if (!w) return;
    drop_heads((struct gpu *)b, w);
    drop_unplaced((struct gpu *)b, w);
    gpu_release(w->ordered);
    for (int i = 0; w->n_slices > 1 && i < w->n_slices; i++) gpu_release(w->slice[i]);
    mem_free(((struct gpu *)b)->mem, w);
}

struct weight *gpu_weight_new(struct backend *b, const struct dtype *type, int rows, int cols)
{
    struct weight *w = mem_alloc(((struct gpu *)b)->mem, sizeof *w);
    if (!w) return NULL;
    *w = (struct weight){
        .type = type, .from = type, .rows = rows, .cols = cols, .panel = panel_bytes(type->layout, cols)};
    w->slice_panels = slice_panels(w->panel, rows);
    if (w->slice_panels) w->n_slices = (gpu_panels(rows) + w->slice_panels - 1) / w->slice_panels;
    size_t heads = heads_bytes(type, rows, cols);
    if (heads) w->heads = mem_alloc(((struct gpu *)b)->mem, heads);
    if (!w->n_slices || (heads && !w->heads)) {
        gpu_weight_free(b, w);
        return NULL;
    }
    if (heads) w->next = ((struct gpu *)b)->apart, ((struct gpu *)b)->apart = w;
    struct weight **last = &((struct gpu *)b)->unplaced;
    while (*last) last = &(*last)->unplaced;
    *last = w;
    return w;
}

/* Makes the buffers of all weights that have none. What the weights of a model take is known when its first rows come:
 * so a buffer is just as large as the weights in it. */
static void place_weights(struct gpu *g)
{
    const uint64_t most = gpu_binding() < GPU_SHARED_BYTES ? gpu_binding() : GPU_SHARED_BYTES;
    while (g->unplaced) {
        struct weight *w = g->unplaced, *end = w;
        uint64_t bytes = 0;
        for (int s = 0; w->n_slices > 1 && s < w->n_slices; s++) w->slice[s] = gpu_buffer((double)slice_bytes(w, s));
        for (; end && end->n_slices == 1 && (!bytes || bytes + slice_bytes(end, 0) <= most); end = end->unplaced) {
            end->at = (uint32_t)(bytes / sizeof(uint32_t));
            bytes += slice_bytes(end, 0);
        }
        uint32_t buffer = bytes ? gpu_shared(g, bytes) : 0;
        for (; w != end; w = w->unplaced) w->slice[0] = buffer;
        g->unplaced = bytes ? end : w->unplaced;
    }
}

void gpu_weight_from(struct backend *b, struct weight *w, const struct dtype *type)
{
    (void)b;
    w->from = type;
}

/* What does not fit into slices costs more than there is. */
uint64_t gpu_weight_cost(const struct backend *b, const struct dtype *type, int rows, int cols)
{
    (void)b;
    uint64_t panels, total, panel = panel_bytes(type->layout, cols);
    if (!slice_panels((size_t)panel, rows) || !mul64((uint64_t)gpu_panels(rows), panel, &panels)) return UINT64_MAX;
    uint64_t apart = layouts[type->layout].scaled ? mem_cost(heads_bytes(type, rows, cols)) : 0;
    return add64(panels, mem_cost(sizeof(struct weight)) + apart, &total) ? total : UINT64_MAX;
}

/* Writes the first `bytes` of n packed panels, each of which lies `stride` bytes after the one before, from byte `at`
 * of panel `first` of the matrix on. */
static void write_panels(const struct weight *w, int first, int n, size_t at, size_t bytes, size_t stride,
                         const uint8_t *panels)
{
    for (int i = 0; i < n;) {
        int slice = (first + i) / w->slice_panels, place = (first + i) % w->slice_panels;
        int some = bytes == w->panel ? min_int(n - i, w->slice_panels - place) : 1;
        size_t to = 4 * (size_t)w->at + (size_t)place * w->panel + at;
        gpu_write(w->slice[slice], (double)to, panels + (size_t)i * stride, (double)((size_t)some * bytes));
        i += some;
    }
}

static const uint32_t *order_of(const struct weight *w, int row)
{
    return w->order + (size_t)(row / w->order_rows) * (size_t)w->cols;
}

/* Packs a panel of n rows from `row` on. Heads that have come take part in it. */
static void pack(const struct weight *w, int row, int n, int col, int n_cols, const uint8_t *rows, size_t row_bytes,
                 uint8_t *panel)
{
    const struct layout_info *l = &layouts[w->type->layout];
    size_t first = (size_t)(col / l->columns), units = w->heads ? (size_t)(n_cols / l->columns) : 0,
           number = (size_t)row / PANEL_ROWS, head = (size_t)l->head, bytes = (size_t)l->bytes;
    for (size_t u = 0; u < units; u++) memcpy(panel + u * bytes, head_of(w, number, first + u), head);
    if (w->order) pack_ordered(w->type, rows, row_bytes, n, n_cols, order_of(w, row), panel);
    else if (w->from != w->type) quantize_panel(w->from, rows, row_bytes, n, n_cols, w->type, panel);
    else pack_panel(w->type, rows, row_bytes, n, n_cols, panel);
    for (size_t u = 0; u < units; u++) memcpy(head_of(w, number, first + u), panel + u * bytes, head);
}

void gpu_weight_put_columns(struct backend *b, struct weight *w, int row, int n, int col, int n_cols,
                            const uint8_t *rows, size_t row_bytes)
{
    struct gpu *g = (struct gpu *)b;
    size_t at = panel_bytes(w->type->layout, col), bytes = panel_bytes(w->type->layout, n_cols);
    int most = (int)(GPU_STAGING / bytes);
    w->has_rows = true;
    place_weights(g);
    for (int first = 0; first < n; first += most * PANEL_ROWS) {
        int panels = min_int(gpu_panels(n - first), most);
        for (int i = 0; i < panels; i++) {
            int r = first + i * PANEL_ROWS, some = min_int(PANEL_ROWS, n - r);
            pack(w, row + r, some, col, n_cols, rows + (size_t)r * row_bytes, row_bytes,
                 g->staging + (size_t)i * bytes);
        }
        write_panels(w, (row + first) / PANEL_ROWS, panels, at, bytes, bytes, g->staging);
    }
}

void gpu_weight_put(struct backend *b, struct weight *w, int row, int n, const uint8_t *rows)
{
    gpu_weight_put_columns(b, w, row, n, 0, w->cols, rows, (size_t)w->cols / w->from->block * w->from->bytes);
}

/* --- what comes apart from the rows ------------------------------------------------------------------------------ */

bool gpu_weight_order(struct backend *b, struct weight *w, int row, int n_rows, const uint32_t *columns)
{
    size_t cols = (size_t)w->cols, n = (size_t)(w->rows / n_rows);
    if (!w->order) w->order = mem_array(((struct gpu *)b)->mem, n * cols, sizeof *w->order);
    if (!w->order) return false;
    for (size_t i = 0; i < n * cols && !w->order_rows; i++) w->order[i] = (uint32_t)(i % cols);
    w->order_rows = n_rows;
    memcpy(w->order + (size_t)(row / n_rows) * cols, columns, cols * sizeof *columns);
    return true;
}

/* pack_part() sees one head as a panel of one unit. */
void gpu_weight_part(struct backend *b, struct weight *w, int row, int n_rows, int col, int n_cols,
                     enum weight_part part, float value)
{
    (void)b;
    int columns = layouts[w->type->layout].columns;
    *(part == PART_SCALE ? &w->has_scales : &w->has_mins) = true;
    for (int r = row; r < row + n_rows; r++)
        for (int c = col; c < col + n_cols; c += columns)
            pack_part(w->type, head_of(w, (size_t)(r / PANEL_ROWS), (size_t)(c / columns)), r % PANEL_ROWS, 0, columns,
                      part, value);
}

void gpu_weights_end(struct gpu *g)
{
    place_weights(g);
    while (g->apart) {
        struct weight *w = g->apart;
        double bytes = (double)heads_bytes(w->type, w->rows, w->cols);
        uint32_t heads = gpu_buffer(bytes);
        gpu_write(heads, 0, w->heads, bytes);
        for (int s = 0; s < w->n_slices; s++) gpu_put_heads(g, w, s, heads);
        gpu_begin(g);
        gpu_release(heads);
        if (w->order) {
            double columns = (double)(w->rows / w->order_rows) * (double)w->cols * sizeof *w->order;
            w->ordered = gpu_buffer(columns);
            gpu_write(w->ordered, 0, w->order, columns);
        }
        drop_heads(g, w);
    }
}

struct weight_facts gpu_weight_facts(const struct backend *b, const struct weight *w)
{
    (void)b;
    return (struct weight_facts){.type = w->type,
                                 .rows = w->rows,
                                 .cols = w->cols,
                                 .bytes = (uint64_t)gpu_panels(w->rows) * w->panel,
                                 .has_rows = w->has_rows,
                                 .has_scales = w->has_scales,
                                 .has_mins = w->has_mins};
}

/* Panels follow one another through all slices. */
void gpu_weight_hash(struct backend *b, const struct weight *w, uint64_t from, uint64_t n, uint8_t *out)
{
    struct gpu *g = (struct gpu *)b;
    gpu_weights_end(g);
    uint64_t slice = (uint64_t)w->slice_panels * w->panel;
    uint8_t *bytes = g->staging + (size_t)g->n_hashes * (GPU_STAGING / GPU_HASHES);
    g->hashes[g->n_hashes++] = (struct gpu_hash){bytes, n, out};
    for (uint64_t end = from + n; from < end;) {
        uint64_t at = from % slice, some = slice - at < end - from ? slice - at : end - from;
        gpu_ask(g, w->slice[from / slice], 4 * (uint64_t)w->at + at, some, bytes);
        bytes += some;
        from += some;
    }
}
