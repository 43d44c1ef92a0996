/* SPDX-License-Identifier: MIT
 *
 * Packing loses nothing: every panel row decodes to the values that a second decoder reads from the file's own blocks,
 * to the bit.
 */
#include "blocks.h"
#include "weights/pack.h"

enum { GUARD = 64, GUARD_BYTE = 0xA5 };

static uint32_t bits_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static bool same(float a, float b) { return (a != a && b != b) || bits_of(a) == bits_of(b); }

static const struct dtype *type_of(const struct ref_type *t)
{
    const struct dtype *type = dtype_by_gguf(t->gguf_id);
    CHECK(type != NULL);
    return type;
}

/* Compares row r of a panel with the file's row (NULL: a row past the end, all zero). */
static void compare_row(const struct ref_type *t, const uint8_t *panel, int r, int cols, const uint8_t *row)
{
    float *out = malloc(2 * (size_t)cols * sizeof *out), *expected = out + cols;
    CHECK(out != NULL);
    unpack_panel_row(type_of(t)->layout, panel, r, cols, out);
    if (row) ref_row(t, row, cols, expected);
    for (int c = 0; c < cols; c++) {
        bool right = row ? same(out[c], expected[c]) : out[c] == 0;
        if (!right)
            printf("# %s row %d column %d is %.9g, expected %.9g\n", t->name, r, c, (double)out[c],
                   row ? (double)expected[c] : 0.0);
        CHECK(right);
    }
    free(out);
}

static void pack_and_compare(const struct ref_type *t, enum hostility how, uint64_t *seed, int n_rows, int cols)
{
    const struct dtype *type = type_of(t);
    size_t row_bytes = ref_row_bytes(t, cols), size = panel_bytes(type->layout, cols);
    uint8_t *rows = make_rows(t, how, seed, n_rows, cols), *memory = malloc(size + 2 * GUARD), *panel = memory + GUARD;
    CHECK(memory != NULL);
    memset(memory, GUARD_BYTE, size + 2 * GUARD);
    memset(panel, 0, size);
    pack_panel(type, rows, row_bytes, n_rows, cols, panel);
    for (int i = 0; i < GUARD; i++) CHECK(memory[i] == GUARD_BYTE && panel[size + (size_t)i] == GUARD_BYTE);
    for (int r = 0; r < PANEL_ROWS; r++)
        compare_row(t, panel, r, cols, r < n_rows ? rows + (size_t)r * row_bytes : NULL);
    free(rows);
    free(memory);
}

/* Decodes a row of codes without a panel. */
static void unpack_and_compare(const struct ref_type *t, enum hostility how, uint64_t *seed, int cols)
{
    float *out = malloc((2 * (size_t)cols + 1) * sizeof *out), *expected = out + cols + 1;
    uint8_t *row = make_rows(t, how, seed, 1, cols);
    CHECK(out != NULL);
    out[cols] = 42;
    unpack_row(type_of(t), row, cols, out);
    ref_row(t, row, cols, expected);
    for (int c = 0; c < cols; c++) {
        if (!same(out[c], expected[c]))
            printf("# %s column %d is %.9g, expected %.9g\n", t->name, c, (double)out[c], (double)expected[c]);
        CHECK(same(out[c], expected[c]));
    }
    CHECK(out[cols] == 42);
    free(row);
    free(out);
}

/* --- tests --------------------------------------------------------------------------------------------- */

static void types_agree(void)
{
    for (int i = 0; i < REF_TYPES; i++) {
        const struct dtype *type = type_of(&ref_types[i]);
        CHECK(!strcmp(type->name, ref_types[i].name));
        CHECK_EQ(type->block, ref_types[i].columns);
        CHECK_EQ(type->bytes, ref_types[i].bytes);
        CHECK(type->layout != LAYOUT_NONE);
    }
    CHECK(dtype_by_gguf(4) == NULL && dtype_by_gguf(31) == NULL && dtype_by_gguf(255) == NULL);
}

static void panels_hold_the_file(void)
{
    uint64_t seed = 1;
    for (int i = 0; i < REF_TYPES; i++) {
        const struct ref_type *t = &ref_types[i];
        for (int how = 0; how < BLOCKS_KINDS; how++)
            for (int n_rows = 1; n_rows <= PANEL_ROWS; n_rows++)
                for (int blocks = 1; blocks <= 5; blocks++)
                    pack_and_compare(t, how, &seed, n_rows, blocks * t->columns);
    }
}

static void rows_hold_the_file(void)
{
    uint64_t seed = 3;
    for (int i = 0; i < REF_TYPES; i++)
        for (int how = 0; ref_types[i].columns > 1 && how < BLOCKS_KINDS; how++)
            for (int blocks = 1; blocks <= 9; blocks += 4)
                unpack_and_compare(&ref_types[i], how, &seed, blocks * ref_types[i].columns);
}

static void long_rows(void)
{
    uint64_t seed = 2;
    for (int i = 0; i < REF_TYPES; i++)
        for (int how = 0; how < BLOCKS_KINDS; how++) pack_and_compare(&ref_types[i], how, &seed, PANEL_ROWS, 4096);
}

/* Sets each code at each place once, with every other byte zero: no bit may come from elsewhere. */
static void single_bits(void)
{
    for (int i = 0; i < REF_TYPES; i++) {
        const struct ref_type *t = &ref_types[i];
        const struct dtype *type = type_of(t);
        size_t size = panel_bytes(type->layout, t->columns);
        uint8_t *panel = calloc(1, size), *rows = calloc(PANEL_ROWS, (size_t)t->bytes);
        CHECK(panel && rows);
        for (int bit = 0; bit < PANEL_ROWS * t->bytes * 8; bit++) {
            memset(rows, 0, (size_t)(PANEL_ROWS * t->bytes));
            for (int r = 0; t->read && r < PANEL_ROWS; r++)
                for (int h = 0; h < 2; h++) put_scale(t, h, 0x3C00, rows + r * t->bytes);
            rows[bit / 8] ^= (uint8_t)(1 << bit % 8);
            pack_panel(type, rows, (size_t)t->bytes, PANEL_ROWS, t->columns, panel);
            compare_row(t, panel, bit / 8 / t->bytes, t->columns, rows + bit / 8 / t->bytes * t->bytes);
        }
        free(rows);
        free(panel);
    }
}

/* Bits of a weight in a panel, at most, of types of the full build: 4 or 3 for the code, and its scales. */
static double bits_of_full(const char *name)
{
    return !strcmp(name, "NVFP4") ? 5 : !strncmp(name, "IQ3", 3) ? 4.3125 : !strncmp(name, "IQ2", 3) || !strncmp(name, "IQ1", 3) ? 3.5625 : 0;
}

/* Types may grow by 7 % at most, but the rare TQ1_0 and TQ2_0 take what Q2_0 takes. */
static void growth(void)
{
    for (int i = 0; i < REF_TYPES; i++)
        for (int cols = 256; cols <= 4096; cols += 256) {
            double file = PANEL_ROWS * (double)ref_row_bytes(&ref_types[i], cols);
            double most = !strcmp(ref_types[i].name, "TQ1_0") ? 1.34 : !strcmp(ref_types[i].name, "TQ2_0") ? 1.1 : 1.07;
            double panel = (double)panel_bytes(type_of(&ref_types[i])->layout, cols);
            CHECK(panel <= fmax(most * file, PANEL_ROWS * cols / 8 * bits_of_full(ref_types[i].name)));
        }
}

static const struct check tests[] = {
    {"types_agree", types_agree}, {"panels_hold_the_file", panels_hold_the_file},
    {"long_rows", long_rows},     {"rows_hold_the_file", rows_hold_the_file},
    {"single_bits", single_bits}, {"growth", growth},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
