/* SPDX-License-Identifier: MIT
 *
 * Weights as panels: they arrive row group by row group and are packed on arrival.
 */
#include "compute/cpu/cpu.h"

#include "base/hash.h"
#include "base/reader.h"
#include "weights/quantize.h"

#include <string.h>

static uint64_t weight_bytes(const struct weight *w) { return (uint64_t)cpu_panels(w->rows) * w->panel; }

struct weight *cpu_weight_new(struct backend *b, const struct dtype *type, int rows, int cols)
{
    struct cpu *c = (struct cpu *)b;
    struct weight *w = mem_alloc(c->mem, sizeof *w);
    if (!w) return NULL;
    *w = (struct weight){
        .type = type, .from = type, .rows = rows, .cols = cols, .panel = panel_bytes(type->layout, cols)};
    /* Zeroed for scaled layouts: the scales of rows past the end are never set. */
    w->panels =
        layouts[type->layout].scaled ? mem_alloc(c->mem, weight_bytes(w)) : mem_alloc_raw(c->mem, weight_bytes(w));
    c->like[type->layout] = *w;
    if (w->panels) return w;
    mem_free(c->mem, w);
    return NULL;
}

void cpu_weight_from(struct backend *b, struct weight *w, const struct dtype *type)
{
    (void)b;
    w->from = type;
}

uint64_t cpu_weight_cost(const struct backend *b, const struct dtype *type, int rows, int cols)
{
    (void)b;
    uint64_t panels, total;
    if (!mul64((uint64_t)cpu_panels(rows), panel_bytes(type->layout, cols), &panels)) return UINT64_MAX;
    return add64(mem_cost(panels), mem_cost(sizeof(struct weight)), &total) ? total : UINT64_MAX;
}

void cpu_weight_free(struct backend *b, struct weight *w)
{
    if (!w) return;
    mem_free(((struct cpu *)b)->mem, w->panels);
    mem_free(((struct cpu *)b)->mem, w->order);
    mem_free(((struct cpu *)b)->mem, w);
}

struct put {
    struct weight *w;
    int row, n, col, n_cols;
    const uint8_t *rows;
    size_t row_bytes;
};

static const uint32_t *order_of(const struct weight *w, int row)
{
    return w->order + (size_t)(row / w->order_rows) * (size_t)w->cols;
}

static void put_panels(void *arg, int thread, int n_threads)
{
    struct put *p = arg;
    const struct weight *w = p->w;
    int begin, end;
    pool_share(cpu_panels(p->n), thread, n_threads, &begin, &end);
    for (int i = begin; i < end; i++) {
        int row = p->row + i * PANEL_ROWS, n = min_int(PANEL_ROWS, p->n - i * PANEL_ROWS);
        uint8_t *panel = w->panels + (size_t)(row / PANEL_ROWS) * w->panel + panel_bytes(w->type->layout, p->col);
        const uint8_t *rows = p->rows + (size_t)i * PANEL_ROWS * p->row_bytes;
        if (w->order) pack_ordered(w->type, rows, p->row_bytes, n, p->n_cols, order_of(w, row), panel);
        else if (w->from != w->type) quantize_panel(w->from, rows, p->row_bytes, n, p->n_cols, w->type, panel);
        else pack_panel(w->type, rows, p->row_bytes, n, p->n_cols, panel);
    }
}

void cpu_weight_put_columns(struct backend *b, struct weight *w, int row, int n, int col, int n_cols,
                            const uint8_t *rows, size_t row_bytes)
{
    struct put put = {.w = w, .row = row, .n = n, .col = col, .n_cols = n_cols, .rows = rows, .row_bytes = row_bytes};
    w->has_rows = true;
    cpu_run((struct cpu *)b, (size_t)n * row_bytes > 65536, put_panels, &put);
}

void cpu_weight_put(struct backend *b, struct weight *w, int row, int n, const uint8_t *rows)
{
    cpu_weight_put_columns(b, w, row, n, 0, w->cols, rows, (size_t)w->cols / w->from->block * w->from->bytes);
}

void cpu_weight_part(struct backend *b, struct weight *w, int row, int n_rows, int col, int n_cols,
                     enum weight_part part, float value)
{
    (void)b;
    *(part == PART_SCALE ? &w->has_scales : &w->has_mins) = true;
    for (int i = row; i < row + n_rows; i++)
        pack_part(w->type, w->panels + (size_t)(i / PANEL_ROWS) * w->panel, i % PANEL_ROWS, col, n_cols, part, value);
}

bool cpu_weight_order(struct backend *b, struct weight *w, int row, int n_rows, const uint32_t *columns)
{
    size_t cols = (size_t)w->cols, n = (size_t)(w->rows / n_rows);
    if (!w->order) w->order = mem_array(((struct cpu *)b)->mem, n * cols, sizeof *w->order);
    if (!w->order) return false;
    for (size_t i = 0; i < n * cols && !w->order_rows; i++) w->order[i] = (uint32_t)(i % cols);
    w->order_rows = n_rows;
    memcpy(w->order + (size_t)(row / n_rows) * cols, columns, cols * sizeof *columns);
    return true;
}

struct weight_facts cpu_weight_facts(const struct backend *b, const struct weight *w)
{
    (void)b;
    return (struct weight_facts){w->type, w->rows, w->cols, weight_bytes(w), w->has_rows, w->has_scales, w->has_mins};
}

void cpu_weight_hash(struct backend *b, const struct weight *w, uint64_t from, uint64_t n, uint8_t *out)
{
    (void)b;
    hash128(w->panels + from, (size_t)n, out);
}
