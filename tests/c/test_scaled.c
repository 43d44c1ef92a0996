/* SPDX-License-Identifier: MIT
 *
 * Types with separate scales (Q8F, F8_E4M3, and codes of 2 to 8 bits with biases or zero points): packing loses nothing,
 * and every kernel gives the bits of the rules, which are written here once more over the file's own codes. Vocabularies with scores: merging as qwen3.c does it, by trying
 * all pairs each time.
 */
#include "compute/cpu/kernels.h"
#include "model_file.h"
#include "base/num.h"
#include "tok_fixture.h"

enum { COLS = 384, GUARD = 64 };

/* --- FP8 --------------------------------------------------------------------------------------------------- */

static void fp8_values(void)
{
    for (int b = 0; b < 256; b++) {
        int exponent = b >> 3 & 15, fraction = b & 7;
        double size = exponent ? (8 + fraction) / 8.0 : fraction / 8.0;
        for (int i = exponent ? exponent : 1; i < 7; i++) size /= 2;
        for (int i = 7; i < exponent; i++) size *= 2;
        float v = f32_from_e4m3((uint8_t)b);
        if ((b & 127) == 127) CHECK(v != v);
        else CHECK_EQ(bits_from_f32(v), bits_from_f32((float)(b & 128 ? -size : size)));
    }
    CHECK_EQ(f32_from_e4m3(0x7E), 448);
}

/* --- packing and products ------------------------------------------------------------------------------------ */

/* What a matrix has beside codes and scales. */
enum beside { NOTHING, BIASES, ZEROS, MIDDLE /* zero points that are not stored */ };

struct matrix {
    const struct dtype *type;
    uint8_t codes[PANEL_ROWS * COLS];
    float scales[PANEL_ROWS * COLS / 32], others[PANEL_ROWS * COLS / 32]; /* [row][column / 32] */
    enum beside beside;
    int group, rows, bits;
};

static struct matrix random_matrix(const struct dtype *type, int group, int rows, enum beside beside, uint64_t *seed)
{
    struct matrix m = {.type = type, .group = group, .rows = rows, .beside = beside};
    CHECK(m.type != NULL);
    m.bits = (int)(8 * type->bytes / type->block);
    for (size_t i = 0; i < sizeof m.codes; i++) m.codes[i] = (uint8_t)(random_next(seed) >> 40 & ((1 << m.bits) - 1));
    bool f8 = m.type->layout == LAYOUT_F8;
    for (int i = 0; f8 && i < (int)sizeof m.codes; i++)
        if ((m.codes[i] & 127) == 127) m.codes[i] = 0; /* NaN codes are tested in fp8_values */
    for (int r = 0; r < PANEL_ROWS; r++)
        for (int c = 0; c < COLS / 32; c++) {
            float *s = &m.scales[r * (COLS / 32) + c], *o = &m.others[r * (COLS / 32) + c];
            if (c % (group / 32)) *s = s[-1], *o = o[-1];
            else *s = random_unit(seed) * 0.01f;
            if (c % (group / 32) || !beside) continue;
            /* as files have them: halves of either sign; sometimes 0 */
            *s = f32_from_f16(f16_from_f32(random_below(seed, 20) ? *s : 0));
            *o = beside == MIDDLE ? (float)(1 << (m.bits - 1))
                 : beside == ZEROS  ? (float)random_below(seed, 1 << m.bits)
                                   : f32_from_f16(f16_from_f32(-*s * (float)random_below(seed, 1 << m.bits)));
        }
    return m;
}

static float value_at(const struct matrix *m, int r, int c)
{
    uint8_t code = m->codes[r * COLS + c];
    float scale = m->scales[r * (COLS / 32) + c / 32], other = m->others[r * (COLS / 32) + c / 32];
    if (m->beside == BIASES) return scale * (float)code + other;
    if (m->beside) return scale * ((float)code - other);
    return (m->type->layout == LAYOUT_F8 ? f32_from_e4m3(code) : (float)(int8_t)code) * scale;
}

/* The rows of the file, bit by bit. */
static void write_rows(const struct matrix *m, uint8_t out[PANEL_ROWS * COLS])
{
    memset(out, 0, PANEL_ROWS * COLS);
    for (int i = 0; i < PANEL_ROWS * COLS * m->bits; i++)
        if (m->codes[i / m->bits] >> i % m->bits & 1) out[i / 8] |= (uint8_t)(1 << i % 8);
}

static void pack_numbers(const struct matrix *m, uint8_t *panel, enum weight_part part, const float *numbers)
{
    for (int r = 0; r < m->rows; r++)
        for (int c = 0; c < COLS; c += m->group)
            pack_part(m->type, panel, r, c, m->group, part, numbers[r * (COLS / 32) + c / 32]);
}

/* In any order of codes, scales and the rest nothing is lost. */
static uint8_t *pack(const struct matrix *m, int order)
{
    static const int orders[6][3] = {{0, 1, 2}, {1, 0, 2}, {2, 1, 0}, {0, 2, 1}, {1, 2, 0}, {2, 0, 1}};
    size_t size = panel_bytes(m->type->layout, COLS);
    uint8_t *memory = malloc(size + 2 * GUARD), *panel = memory + GUARD, rows[PANEL_ROWS * COLS];
    write_rows(m, rows);
    memset(memory, 0xA5, size + 2 * GUARD);
    memset(panel, 0, size);
    for (int i = 0; i < 3; i++) {
        int step = orders[order][i];
        if (step == 0) pack_panel(m->type, rows, (size_t)(COLS * m->bits / 8), m->rows, COLS, panel);
        if (step == 1) pack_numbers(m, panel, PART_SCALE, m->scales);
        if (step == 2 && m->beside == BIASES) pack_numbers(m, panel, PART_BIAS, m->others);
        if (step == 2 && m->beside == ZEROS) pack_numbers(m, panel, PART_ZERO, m->others);
    }
    for (size_t i = 0; i < GUARD; i++) CHECK(memory[i] == 0xA5 && panel[size + i] == 0xA5);
    return memory;
}

static void check_values(const struct matrix *m, const uint8_t *panel)
{
    float out[COLS];
    for (int r = 0; r < PANEL_ROWS; r++) {
        unpack_panel_row(m->type->layout, panel, r, COLS, out);
        for (int c = 0; c < COLS; c++) CHECK(out[c] == (r < m->rows ? value_at(m, r, c) : 0));
    }
}

/* 8-bit codes are 128 less in a panel, and their biases and zero points with them. */
static float rule_with_mins(const struct matrix *m, const struct act *a, int t, int r)
{
    const int less = m->bits == 8 ? 128 : 0;
    float products = 0, mins = 0;
    for (int b = 0; b < COLS / BLOCK; b++) {
        const float d = m->scales[r * (COLS / 32) + b], o = m->others[r * (COLS / 32) + b],
                    xs = a->scale[t * (COLS / BLOCK) + b],
                    dmin = m->beside == BIASES ? -((float)less * d + o) : d * (o - (float)less);
        int32_t sum = 0, whole = 0;
        for (int c = b * BLOCK; c < (b + 1) * BLOCK; c++) {
            sum += (m->codes[r * COLS + c] - less) * a->code[t * COLS + c];
            whole += a->code[t * COLS + c];
        }
        products += (float)sum * (d * xs);
        mins += (float)whole * (dmin * xs);
    }
    return products - mins;
}

static float rule(const struct matrix *m, const struct act *a, int t, int r)
{
    float y = 0;
    if (m->beside) return rule_with_mins(m, a, t, r);
    if (m->type->layout == LAYOUT_F8) {
        for (int c = 0; c < COLS; c++) y += value_at(m, r, c) * a->x[t * COLS + c];
        return y;
    }
    for (int b = 0; b < COLS / BLOCK; b++) {
        int32_t sum = 0;
        for (int c = 0; c < BLOCK; c++)
            sum += (int8_t)m->codes[r * COLS + b * BLOCK + c] * a->code[t * COLS + b * BLOCK + c];
        y += (float)sum * (m->scales[r * (COLS / 32) + b] * a->scale[t * (COLS / BLOCK) + b]);
    }
    return y;
}

/* Whether the kernels for this kind of rows process tiles of n. */
static bool takes(const struct kernels *k, enum layout layout, int kind, int n)
{
    if (kind == ONE_ROW) return n == 1 && !k->gemv[IN_TURN][layout];
    if (kind < MANY_ROWS) return n == kind && n <= FEW_TILE;
    return n > 1 && n <= k->tile;
}

static void check_tile(const struct kernels *k, const struct matrix *m, const uint8_t *panel, struct act *a, int n)
{
    enum layout layout = m->type->layout;
    uint8_t *tiles[FORMS], *expanded = malloc((size_t)(COLS / BLOCK) * (k->expanded ? k->expanded : 1));
    float out[STREAMS * PANEL_ROWS];
    for (enum form f = 0; f < FORMS; f++) {
        a->tiles[f] = tiles[f] = malloc((size_t)(n * COLS / BLOCK) * k->arranged[f] + 1);
        if (k->arrange[f]) k->arrange[f](a, 0, n, tiles[f]);
    }
    if (k->expand[layout]) k->expand[layout](panel, COLS, expanded);
    for (int kind = ONE_ROW; kind < ROWS_KINDS; kind++) {
        if (!takes(k, layout, kind, n)) continue;
        if (k->few[kind][layout]) k->few[kind][layout](panel, 0, 1, a, 0, n, out);
        else k->gemm[layout](k->expand[layout] ? expanded : panel, a, 0, n, out);
        for (int i = 0; i < n * PANEL_ROWS; i++)
            if (i % PANEL_ROWS < m->rows)
                CHECK_EQ(bits_from_f32(out[i]), bits_from_f32(rule(m, a, i / PANEL_ROWS, i % PANEL_ROWS)));
    }
    for (int order = 0; n == 1 && order < ORDERS && k->gemv[order][layout]; order++) {
        size_t size = panel_bytes(m->type->layout, COLS);
        uint8_t *streams = malloc(STREAMS * size);
        for (size_t i = 0; i < STREAMS; i++) memcpy(streams + i * size, panel, size);
        k->gemv[order][layout](streams, size, STREAMS, a, 0, 1, out);
        for (int i = 0; i < STREAMS * PANEL_ROWS; i++)
            if (i % PANEL_ROWS < m->rows) CHECK_EQ(bits_from_f32(out[i]), bits_from_f32(rule(m, a, 0, i % PANEL_ROWS)));
        free(streams);
    }
    for (enum form f = 0; f < FORMS; f++) free(tiles[f]);
    free(expanded);
}

static void check_products(const struct matrix *m, const uint8_t *panel, uint64_t *seed)
{
    static float x[TILE * COLS], scale[TILE * COLS / BLOCK];
    static int8_t code[TILE * COLS];
    static int16_t sum[TILE * COLS / 16];
    for (int i = 0; i < TILE * COLS; i++) x[i] = random_unit(seed);
    kernels_scalar.quantize(x, TILE * COLS, code, scale, sum);
    struct act a = {.x = x, .code = code, .scale = scale, .sum = sum, .cols = COLS};
    for (int kind = -1; kind < DOTS_COUNT; kind++) {
        struct kernels k = kind < 0 ? kernels_scalar : kernels_simd((enum dots)kind);
        for (int n = 1; n <= TILE; n++)
            check_tile(&k, m, panel, &a, n);
    }
}

static void check_type(const struct dtype *type, int group, enum beside beside)
{
    uint64_t seed = 7;
    for (int rows = 1; rows <= PANEL_ROWS; rows++) {
        struct matrix m = random_matrix(type, group, rows, beside, &seed);
        for (int order = 0; order < (beside ? 6 : 2); order++) {
            uint8_t *memory = pack(&m, order);
            check_values(&m, memory + GUARD);
            if (order < 2) check_products(&m, memory + GUARD, &seed);
            free(memory);
        }
    }
}

static void scaled_layouts(void)
{
    check_type(dtype_by_name("Q8F"), 32, NOTHING);
    check_type(dtype_by_name("Q8F"), 64, NOTHING);
    check_type(dtype_by_name("Q8F"), 128, NOTHING);
    check_type(dtype_by_name("F8_E4M3"), 128, NOTHING);
}

static void codes_with_mins(void)
{
    static const int widths[] = {2, 3, 4, 5, 6, 8};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (int group = 32; group <= 128; group *= 2)
            for (enum beside beside = BIASES; beside <= ZEROS; beside++) {
                const struct dtype *type = dtype_of_codes(widths[i], group, beside == BIASES);
                CHECK(type && type->block == (group == 32 ? 32 : 64));
                check_type(type, group, beside);
            }
    check_type(dtype_of_codes(4, 64, false), 64, MIDDLE);
    check_type(dtype_of_codes(8, 32, false), 32, MIDDLE);
    CHECK(!dtype_of_codes(7, 64, true) && !dtype_of_codes(4, 48, true) && !dtype_of_codes(16, 64, false));
}

/* --- scores -------------------------------------------------------------------------------------------------- */

struct scored_vocab {
    struct builder b;
    float scores[400];
    char texts[400][16];
    int n;
};

static void add_scored(struct scored_vocab *v, const char *text, float score, int type)
{
    size_t size = strlen(text);
    if (type == 1) add_normal(&v->b, text, size ? size : 1); /* the first one is byte 0 */
    else add_literal(&v->b, text, type);
    snprintf(v->texts[v->n], sizeof *v->texts, "%s", text);
    v->scores[v->n++] = score;
}

static struct scored_vocab make_vocab(void)
{
    static const char *const words[] = {"ab", "ba", "aa", "aaa", "aab",  "abab", "bab", "bb",
                                        "  ", "a ", " a", "ab ", "aaaa", "b a",  "abb", "aabb"};
    static const float scores[] = {-1, -2, -0.5f, -3, -4, -2.5f, -1e11f, -0.5f, -7, -8, -8, -1e6f, -0.25f, -9, -10, 5};
    struct scored_vocab v = {0};
    for (int i = 0; i < 256; i++) add_scored(&v, (char[]){(char)i, 0}, -1e6f, 1);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) add_scored(&v, words[i], scores[i], 1);
    add_scored(&v, "<tag>", -1e6f, 1); /* no merge makes it */
    add_scored(&v, "<|end|>", -1e6f, 3);
    return v;
}

static int find_joined(const struct scored_vocab *v, int left, int right)
{
    char text[40];
    snprintf(text, sizeof text, "%s%s", v->texts[left], v->texts[right]);
    for (int i = 256; i < v->n - 2; i++)
        if (!strcmp(v->texts[i], text)) return i;
    return -1;
}

/* Tries all pairs each time, and takes the first of the best. */
static int naive(const struct scored_vocab *v, const char *text, int *ids)
{
    int n = 0;
    for (; text[n]; n++) ids[n] = (uint8_t)text[n];
    for (;;) {
        float best = -1e10f;
        int at = -1, id = -1;
        for (int i = 0; i + 1 < n; i++) {
            int joined = find_joined(v, ids[i], ids[i + 1]);
            if (joined < 0 || v->scores[joined] <= -1e10f) continue;
            if (at < 0 || v->scores[joined] > best || (v->scores[joined] == best && joined < id))
                best = v->scores[joined], at = i, id = joined;
        }
        if (at < 0) return n;
        ids[at] = id;
        memmove(ids + at + 1, ids + at + 2, (size_t)(n - at - 2) * sizeof *ids);
        n--;
    }
}

static void scores_join(void)
{
    static struct scored_vocab v;
    v = make_vocab();
    struct tok_source source = source_of(&v.b);
    source.scores = (struct bytes){(const uint8_t *)v.scores, (size_t)v.n * 4};
    source.n_merges = 0;
    struct mem mem = {0};
    struct tokenizer *t = NULL;
    struct error err = {0};
    CHECK_EQ(tok_new(&mem, &source, &t, &err), OK);
    uint64_t seed = 11;
    for (int round = 0; round < 3000; round++) {
        char text[201];
        int n = random_below(&seed, round % 10 ? 30 : 200), expected[200];
        int32_t ids[200];
        for (int i = 0; i < n; i++) text[i] = "aaab b"[random_below(&seed, 6)];
        text[n] = 0;
        int count = naive(&v, text, expected);
        CHECK_EQ(tok_encode(t, view(text), TOK_PLAIN, 0, ids, 200), count);
        for (int i = 0; i < count; i++) CHECK_EQ(ids[i], expected[i]);
    }
    int32_t ids[16];
    CHECK_EQ(tok_type(t, v.n - 2), 4);
    CHECK_EQ(tok_encode(t, view("a<tag>b"), TOK_TEXT, 0, ids, 16), 3);
    CHECK_EQ(ids[1], v.n - 2);
    CHECK(tok_encode(t, view("<|end|>"), TOK_TEXT, 0, ids, 16) > 1);
    CHECK_EQ(tok_encode(t, view("<|end|>"), TOK_CHAT, 0, ids, 16), 1);
    tok_free(t);
    CHECK_EQ(mem.used, 0);
    builder_free(&v.b);
}

static const struct check tests[] = {
    {"fp8_values", fp8_values}, {"scaled_layouts", scaled_layouts},
    {"codes_with_mins", codes_with_mins}, {"scores_join", scores_join}};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
