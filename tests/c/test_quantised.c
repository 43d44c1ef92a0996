/* SPDX-License-Identifier: MIT
 *
 * Folders that other programs have quantised. Every value of every matrix equals that of a second decoder
 * (tests/fixtures/quantised.mjs), whose values are the libraries' own. Logits are as close to exact ones as those of the
 * same model in Q8_0, and have the same bits in every build, in any chunks, and if the folder is in several files, in
 * whatever order codes and scales come.
 */
#include "compute/cpu/cpu.h"
#include "engine/state.h"
#include "model_set.h"

#include <math.h>

enum { TOKENS = 192, VOCAB = 272 };

static const char *const folders[] = {"mlx4",  "mlx8",       "mlx-mixed36", "mlx-moe4", "gptq4",
                                      "gptq8", "gptq4-asym", "gptq4-act",   "gptq4-moe", "autoawq", "awq4-zp",
                                      "ct-w4a16", "ct-w4a16-asym", "ct-w8a16", "ct-w8a8", "ct-fp8dyn"};
static const char *const splits[] = {"first", "last", "mixed"};
enum { FOLDERS = sizeof folders / sizeof *folders, SPLITS = sizeof splits / sizeof *splits };

static struct set saved(const char *name)
{
    char folder[1100];
    snprintf(folder, sizeof folder, "%s/quantised/%s", check_fixtures, name);
    return read_folder(folder);
}

static struct set written(const char *name, const char *suffix)
{
    char folder[1100];
    snprintf(folder, sizeof folder, "%s/%s%s", built_fixtures("/quantised"), name, suffix);
    return read_folder(folder);
}

/* --- values ------------------------------------------------------------------------------------------------- */

enum { WEIGHTS_MOST = 64 };

struct list {
    const struct weight *w[WEIGHTS_MOST];
    int n;
};

static void add_weight(void *context, const struct weight *w, struct bytes vector)
{
    struct list *l = context;
    (void)vector;
    CHECK(l->n < WEIGHTS_MOST);
    if (w) l->w[l->n++] = w;
}

enum { COLS_MOST = 512 };

static void row_of(const struct weight *w, int r, float *out)
{
    float row[COLS_MOST];
    CHECK(w->cols <= COLS_MOST);
    unpack_panel_row(w->type->layout, w->panels + (size_t)(r / PANEL_ROWS) * w->panel, r % PANEL_ROWS, w->cols, row);
    const uint32_t *order = w->order ? w->order + r / w->order_rows * w->cols : NULL;
    for (int c = 0; c < w->cols; c++) out[order ? order[c] : (uint32_t)c] = row[c];
}

static void check_values(const struct quern_engine *a, const struct quern_engine *b)
{
    struct list ours = {.n = 0}, exact = {.n = 0};
    model_each(a->model, add_weight, &ours);
    model_each(b->model, add_weight, &exact);
    CHECK(ours.n > 10);
    CHECK_EQ(ours.n, exact.n);
    int quantised = 0;
    for (int i = 0; i < ours.n; i++) {
        float x[COLS_MOST], y[COLS_MOST];
        CHECK_EQ(ours.w[i]->rows, exact.w[i]->rows);
        quantised += ours.w[i]->type != exact.w[i]->type && layouts[ours.w[i]->type->layout].scaled;
        for (int r = 0; r < ours.w[i]->rows; r++) {
            row_of(ours.w[i], r, x);
            row_of(exact.w[i], r, y);
            for (int c = 0; c < ours.w[i]->cols; c++) CHECK(x[c] == y[c]);
        }
    }
    CHECK(quantised >= 13);
}

static void values(void)
{
    for (int i = 0; i < FOLDERS; i++) {
        struct set set = saved(folders[i]), twin = written(folders[i], "");
        struct quern_engine *exact = load_set(&twin, (struct quern_options){0}, SIZE_MAX),
                            *ours = load_set(&set, (struct quern_options){0}, 1000);
        check_values(ours, exact);
        quern_free(ours);
        for (int s = 0; s < SPLITS; s++) {
            char suffix[16];
            snprintf(suffix, sizeof suffix, "-%s", splits[s]);
            struct set cut = written(folders[i], suffix);
            ours = load_set(&cut, (struct quern_options){0}, 4093);
            check_values(ours, exact);
            quern_free(ours);
            set_free(&cut);
        }
        quern_free(exact);
        set_free(&set);
        set_free(&twin);
    }
}

/* --- logits ------------------------------------------------------------------------------------------------- */

/* [TOKENS, VOCAB]; the caller frees them. */
static float *logits_of(const struct set *set, struct quern_options options, size_t chunk)
{
    struct quern_engine *e = load_set(set, options, chunk);
    struct quern_sequence *s = quern_sequence_new(e, 0, 0);
    float *out = malloc(TOKENS * VOCAB * sizeof *out);
    int32_t ids[TOKENS];
    uint64_t seed = 3;
    CHECK_EQ(quern_vocab_size(e), VOCAB);
    for (int i = 0; i < TOKENS; i++) ids[i] = random_below(&seed, 256);
    CHECK_EQ(quern_sequence_set(s, ids, TOKENS, QUERN_ALL), 0);
    for (int done = 0, first, rows; done < TOKENS; done += rows) {
        CHECK_EQ(quern_step(e, 0), OK);
        const float *logits = quern_logits(s, &first, &rows);
        CHECK_EQ(first, done);
        memcpy(out + first * VOCAB, logits, (size_t)(rows * VOCAB) * sizeof *out);
    }
    quern_sequence_free(s);
    quern_free(e);
    return out;
}

static void log_softmax(const float *x, double *out)
{
    double max = -INFINITY, sum = 0;
    for (int i = 0; i < VOCAB; i++) max = fmax(max, (double)x[i]);
    for (int i = 0; i < VOCAB; i++) sum += exp((double)x[i] - max);
    for (int i = 0; i < VOCAB; i++) out[i] = (double)x[i] - max - log(sum);
}

/* The mean over rows of KL(exact || ours). */
static double divergence(const float *exact, const float *ours)
{
    double kl = 0, p[VOCAB], q[VOCAB];
    for (int r = 0; r < TOKENS; r++) {
        log_softmax(exact + r * VOCAB, p);
        log_softmax(ours + r * VOCAB, q);
        for (int i = 0; i < VOCAB; i++) kl += exp(p[i]) * (p[i] - q[i]);
    }
    return kl / TOKENS;
}

static void close_to_exact(void)
{
    for (int i = 0; i < FOLDERS; i++) {
        struct set set = saved(folders[i]), twin = written(folders[i], "");
        float *exact = logits_of(&twin, (struct quern_options){.kv = QUERN_KV_F32}, SIZE_MAX),
              *q8 = logits_of(&twin, (struct quern_options){.kv = QUERN_KV_F32, .quantize = QUERN_TO_Q8}, SIZE_MAX),
              *ours = logits_of(&set, (struct quern_options){.kv = QUERN_KV_F32}, SIZE_MAX);
        double distance = divergence(exact, ours), bar = divergence(exact, q8);
        printf("# %s: KL %.3g, in Q8_0 %.3g\n", folders[i], distance, bar);
        CHECK(distance <= bar);
        free(exact);
        free(q8);
        free(ours);
        set_free(&set);
        set_free(&twin);
    }
}

static void same_bits(void)
{
    const struct quern_options ways[] = {{.scalar = true, .chunk = 5}, {.threads = 2, .chunk = 7}, {.threads = 3}};
    for (int i = 0; i < FOLDERS; i++) {
        struct set set = saved(folders[i]);
        float *expected = logits_of(&set, (struct quern_options){0}, SIZE_MAX);
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            float *logits = logits_of(&set, ways[w], w ? 4093 : 61);
            CHECK(!memcmp(logits, expected, TOKENS * VOCAB * sizeof *logits));
            free(logits);
        }
        for (int s = 0; s < SPLITS; s++) {
            char suffix[16];
            snprintf(suffix, sizeof suffix, "-%s", splits[s]);
            struct set cut = written(folders[i], suffix);
            float *logits = logits_of(&cut, (struct quern_options){.threads = 2}, 1000);
            CHECK(!memcmp(logits, expected, TOKENS * VOCAB * sizeof *logits));
            free(logits);
            set_free(&cut);
        }
        free(expected);
        set_free(&set);
    }
}

static const struct check tests[] = {{"values", values}, {"close_to_exact", close_to_exact}, {"same_bits", same_bits}};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
