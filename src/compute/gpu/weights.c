/* SPDX-License-Identifier: MIT
 *
 * Weights on the device: rows are packed into panels as they arrive, and written. A matrix is cut into slices, since a
 * kernel can bind only so many bytes of a buffer.
 */
#include "compute/gpu/gpu.h"

#include "base/reader.h"
#include "weights/quantize.h"

static size_t slice_bytes(const struct weight *w, int slice)
{
    int left = gpu_panels(w->rows) - slice * w->slice_panels;
    return (size_t)min_int(w->slice_panels, left) * w->panel;
}

/* Panels of a slice; 0 if the matrix has too many slices. */
static int slice_panels(size_t panel, int rows)
{
    size_t most = gpu_binding() / panel / (GPU_SLICE_ROWS / PANEL_ROWS) * (GPU_SLICE_ROWS / PANEL_ROWS);
    int all = gpu_panels(rows);
    if ((size_t)all <= most) return all;
    return most && (size_t)all <= most * GPU_SLICES ? (int)most : 0;
}

void gpu_weight_free(struct backend *b, struct weight *w)
{
    if (!w) return;
    for (int i = 0; i < w->n_slices; i++) gpu_release(w->slice[i]);
    mem_free(((struct gpu *)b)->mem, w);
}

struct weight *gpu_weight_new(struct backend *b, const struct dtype *type, int rows, int cols)
{
    struct weight *w = mem_alloc(((struct gpu *)b)->mem, sizeof *w);
    if (!w) return NULL;
    *w = (struct weight){
        .type = type, .from = type, .rows = rows, .cols = cols, .panel = panel_bytes(type->layout, cols)};
    w->slice_panels = slice_panels(w->panel, rows);
    if (w->slice_panels)
        for (; w->n_slices * w->slice_panels < gpu_panels(rows); w->n_slices++)
            w->slice[w->n_slices] = gpu_buffer((double)slice_bytes(w, w->n_slices));
    if (w->n_slices) return w;
    gpu_weight_free(b, w);
    return NULL;
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
    return add64(panels, mem_cost(sizeof(struct weight)), &total) ? total : UINT64_MAX;
}

/* Writes the first `bytes` of n packed panels, each of which lies `stride` bytes after the one before, from byte `at`
 * of panel `first` of the matrix on. */
static void write_panels(const struct weight *w, int first, int n, size_t at, size_t bytes, size_t stride,
                         const uint8_t *panels)
{
    for (int i = 0; i < n;) {
        int slice = (first + i) / w->slice_panels, place = (first + i) % w->slice_panels;
        int some = bytes == w->panel ? min_int(n - i, w->slice_panels - place) : 1;
        gpu_write(w->slice[slice], (double)((size_t)place * w->panel + at), panels + (size_t)i * stride,
                  (double)((size_t)some * bytes));
        i += some;
    }
}

void gpu_weight_put_columns(struct backend *b, struct weight *w, int row, int n, int col, int n_cols,
                            const uint8_t *rows, size_t row_bytes)
{
    struct gpu *g = (struct gpu *)b;
    size_t at = panel_bytes(w->type->layout, col), bytes = panel_bytes(w->type->layout, n_cols);
    int most = max_int((int)(GPU_STAGING / bytes), 1);
    w->has_rows = true;
    for (int first = 0; first < n; first += most * PANEL_ROWS) {
        int panels = min_int(gpu_panels(n - first), most);
        for (int i = 0; i < panels; i++) {
            int r = first + i * PANEL_ROWS, some = min_int(PANEL_ROWS, n - r);
            const uint8_t *from = rows + (size_t)r * row_bytes;
            uint8_t *to = g->staging + (size_t)i * bytes;
            if (w->from != w->type) quantize_panel(w->from, from, row_bytes, some, n_cols, w->type, to);
            else pack_panel(w->type, from, row_bytes, some, n_cols, to);
        }
        write_panels(w, (row + first) / PANEL_ROWS, panels, at, bytes, bytes, g->staging);
    }
}

void gpu_weight_put(struct backend *b, struct weight *w, int row, int n, const uint8_t *rows)
{
    gpu_weight_put_columns(b, w, row, n, 0, w->cols, rows, (size_t)w->cols / w->from->block * w->from->bytes);
}

/* Weights with scales apart, which may have columns in another order, are refused: gpu_reads(). */
bool gpu_weight_order(struct backend *b, struct weight *w, int row, int n_rows, const uint32_t *columns)
{
    return (void)b, (void)w, (void)row, (void)n_rows, (void)columns, false;
}

void gpu_weight_part(struct backend *b, struct weight *w, int row, int n_rows, int col, int n_cols,
                     enum weight_part part, float value)
{
    (void)b, (void)w, (void)row, (void)n_rows, (void)col, (void)n_cols, (void)part, (void)value;
}

struct weight_facts gpu_weight_facts(const struct backend *b, const struct weight *w)
{
    (void)b;
    return (struct weight_facts){.type = w->type,
                                 .rows = w->rows,
                                 .cols = w->cols,
                                 .bytes = (uint64_t)gpu_panels(w->rows) * w->panel,
                                 .has_rows = w->has_rows};
}

/* Panels follow one another through all slices. */
void gpu_weight_hash(struct backend *b, const struct weight *w, uint64_t from, uint64_t n, uint8_t *out)
{
    struct gpu *g = (struct gpu *)b;
    uint64_t slice = (uint64_t)w->slice_panels * w->panel;
    uint8_t *bytes = g->staging + (size_t)g->n_hashes * (GPU_STAGING / GPU_HASHES);
    g->hashes[g->n_hashes++] = (struct gpu_hash){bytes, n, out};
    for (uint64_t end = from + n; from < end;) {
        uint64_t at = from % slice, some = slice - at < end - from ? slice - at : end - from;
        gpu_ask(g, w->slice[from / slice], at, some, bytes);
        bytes += some;
        from += some;
    }
}
