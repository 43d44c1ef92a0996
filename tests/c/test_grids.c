/* SPDX-License-Identifier: MIT
 *
 * Types that only the full build reads against the values that the package gguf decodes from the same blocks, to the
 * bit. Every row of each grid occurs in tests/fixtures/grids/ (make.py there), so this also checks the numbers of
 * src/weights/grid_data.h.
 */
#include "blocks.h"
#include "weights/pack.h"

/* A file: bytes of a block, number of blocks, the blocks, 256 floats for each. */
struct golden {
    struct file file;
    const uint8_t *blocks;
    int size, n;
};

static struct golden golden_read(const struct dtype *type)
{
    char folder[512], name[32];
    snprintf(folder, sizeof folder, "%s/grids", check_fixtures);
    snprintf(name, sizeof name, "%s.bin", type->name);
    struct golden g = {.file = file_read(folder, name)};
    CHECK(g.file.size > 8);
    g.size = (int)load_u32(g.file.data), g.n = (int)load_u32(g.file.data + 4), g.blocks = g.file.data + 8;
    CHECK_EQ(g.size, 256 / type->block * type->bytes);
    CHECK(g.n >= 8 && g.file.size == 8 + (size_t)g.n * ((size_t)g.size + 256 * sizeof(float)));
    return g;
}

static const uint8_t *value_at(const struct golden *g, int block, int c)
{
    return g->blocks + g->n * g->size + 4 * (256 * block + c);
}

static void check_values(const struct golden *g, int block, const float *out)
{
    for (int c = 0; c < 256; c++) CHECK_EQ(load_u32(out + c), load_u32(value_at(g, block, c)));
}

static void rows_equal(void)
{
    for (int t = 0; t < FULL_TYPES; t++) {
        struct golden g = golden_read(&full_types[t]);
        for (int i = 0; i < g.n; i++) {
            float out[256];
            unpack_row(&full_types[t], g.blocks + i * g.size, 256, out);
            check_values(&g, i, out);
        }
        file_free(&g.file);
    }
}

/* Eight blocks are the rows of a panel. */
static void panels_equal(void)
{
    for (int t = 0; t < FULL_TYPES; t++) {
        const struct dtype *type = &full_types[t];
        struct golden g = golden_read(type);
        uint8_t *panel = calloc(1, panel_bytes(type->layout, 256));
        CHECK(panel != NULL);
        for (int i = 0; i + PANEL_ROWS <= g.n; i += PANEL_ROWS) {
            pack_panel(type, g.blocks + i * g.size, (size_t)g.size, PANEL_ROWS, 256, panel);
            for (int r = 0; r < PANEL_ROWS; r++) {
                float out[256];
                unpack_panel_row(type->layout, panel, r, 256, out);
                check_values(&g, i + r, out);
            }
        }
        free(panel);
        file_free(&g.file);
    }
}

/* The decoder of the other tests, which is written column by column. */
static void second_decoder_equal(void)
{
    int found = 0;
    for (int i = 0; i < REF_TYPES; i++)
        for (int t = 0; t < FULL_TYPES; t++) {
            if (strcmp(ref_types[i].name, full_types[t].name)) continue;
            struct golden g = golden_read(&full_types[t]);
            for (int b = 0; b < g.n; b++) {
                float out[256];
                ref_row(&ref_types[i], g.blocks + b * g.size, 256, out);
                check_values(&g, b, out);
            }
            file_free(&g.file);
            found++;
        }
    CHECK_EQ(found, FULL_TYPES);
}

static const struct check tests[] = {
    {"rows_equal", rows_equal}, {"panels_equal", panels_equal}, {"second_decoder_equal", second_decoder_equal}};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
