/* SPDX-License-Identifier: MIT
 *
 * Attention over pages, through the backend's operations: compared with one softmax in double; over pages in any order,
 * for rows of several sequences in one call, on contexts of several spans, with NaN in every position that a row must
 * not see. Sequences that share pages, as in a tree of prefixes or in any other way, get the results that each of their
 * rows gets alone.
 */
#include "model_file.h"
#include "ops.h"

#include <math.h>

enum { POSITIONS = 1100, N_PAGES = 2 * (POSITIONS / KV_PAGE + 1), LAYERS = 2, HEAD_MAX = 64 };

static struct mem mem;

struct world {
    struct kv_shape shape;
    struct pool *pool;
    struct backend *be;
    int32_t pages[N_PAGES]; /* of both sequences, shuffled: the first half belongs to the first sequence */
    float *k, *v;           /* [2 sequences, POSITIONS, kv_dim] appended values */
};

static size_t kv_dim(const struct world *w) { return (size_t)(w->shape.n_kv_heads * w->shape.head_dim); }
static size_t q_dim(const struct world *w) { return (size_t)(w->shape.n_heads * w->shape.head_dim); }
static const int32_t *pages_of(const struct world *w, int sequence) { return w->pages + sequence * (N_PAGES / 2); }

/* Rounds x as an 8-bit cache does, 32 columns at a time; rounding the result again changes almost nothing. */
static void coarsen_codes(float *x, size_t n)
{
    for (; n > 0; n -= 32, x += 32) {
        float top = 0;
        for (int i = 0; i < 32; i++) top = fmaxf(top, fabsf(x[i]));
        for (int i = 0; i < 32; i++) x[i] = rintf(x[i] * 127 / top) * top / 127;
    }
}

static bool same_float(float a, float b) { return (a != a && b != b) || bits_from_f32(a) == bits_from_f32(b); }

/* Values that f16 holds exactly, so that both cache types give the same result. */
static float coarse(uint64_t *seed) { return (float)(random_below(seed, 4095) - 2047) / 1024.0f; }

static void world_open(struct world *w, struct kv_shape shape, int threads, bool scalar)
{
    uint64_t seed = 3;
    *w = (struct world){.shape = shape, .pool = pool_new(&mem, threads)};
    w->be = backend_cpu(&mem, w->pool, scalar);
    CHECK_EQ(w->be->ops->reserve(w->be, &(struct reserve){.kv = shape, .max_rows = 64, .max_cols = 64}), OK);
    for (int i = 0; i < N_PAGES; i++) w->pages[i] = i;
    for (int i = N_PAGES - 1; i > 0; i--) {
        int j = random_below(&seed, i + 1), page = w->pages[i];
        w->pages[i] = w->pages[j];
        w->pages[j] = page;
    }
    for (int i = 0; i < N_PAGES; i++) cpu_kv_poison(w->be, i);
    w->k = malloc(2 * POSITIONS * kv_dim(w) * sizeof(float));
    w->v = malloc(2 * POSITIONS * kv_dim(w) * sizeof(float));
    CHECK(w->k && w->v);
    for (size_t i = 0; i < 2 * POSITIONS * kv_dim(w); i++) w->k[i] = coarse(&seed), w->v[i] = coarse(&seed);
    if (shape.type == KV_Q8)
        coarsen_codes(w->k, 2 * POSITIONS * kv_dim(w)), coarsen_codes(w->v, 2 * POSITIONS * kv_dim(w));
}

static void world_close(struct world *w)
{
    free(w->k);
    free(w->v);
    w->be->ops->free(w->be);
    pool_free(w->pool);
    CHECK_EQ(mem.used, 0);
}

static void append(struct world *w, int layer, int sequence, int from, int n)
{
    struct kv_row rows[64] = {0};
    size_t at = (size_t)(sequence * POSITIONS + from) * kv_dim(w);
    for (int i = 0; i < n; i++) rows[i] = (struct kv_row){pages_of(w, sequence), from + i};
    RUN(w->be, OP_KV_APPEND, n, (int)kv_dim(w), .x = handle_of(w->be, w->k + at), .z = handle_of(w->be, w->v + at),
        .kv = rows, .layer = layer);
}

/* o = attention of n rows q */
static void run_attention(const struct world *w, int layer, float *o, const float *q, const struct kv_row *rows, int n)
{
    RUN(w->be, OP_ATTENTION, n, (int)q_dim(w), .y = handle_of(w->be, o), .x = handle_of(w->be, q), .kv = rows,
        .layer = layer);
}

/* Head h of one row, by the definition. */
static void exact_head(const struct world *w, const float *q, int sequence, int index, int h, double *out)
{
    int dim = w->shape.head_dim, kv_head = h / (w->shape.n_heads / w->shape.n_kv_heads);
    double weights = 0;
    for (int d = 0; d < dim; d++) out[d] = 0;
    for (int i = 0; i <= index; i++) {
        size_t at = (size_t)(sequence * POSITIONS + i) * kv_dim(w) + (size_t)(kv_head * dim);
        double score = 0;
        for (int d = 0; d < dim; d++) score += (double)q[h * dim + d] * (double)w->k[at + (size_t)d];
        double p = exp(score / sqrt(dim));
        weights += p;
        for (int d = 0; d < dim; d++) out[d] += p * (double)w->v[at + (size_t)d];
    }
    for (int d = 0; d < dim; d++) out[d] /= weights;
}

static void check_rows(const struct world *w, const float *o, const float *q, const struct kv_row *rows, int n)
{
    int dim = w->shape.head_dim;
    double exact[HEAD_MAX];
    for (int i = 0; i < n; i++)
        for (int h = 0; h < w->shape.n_heads; h++) {
            exact_head(w, q + (size_t)i * q_dim(w), rows[i].pages != w->pages, rows[i].index, h, exact);
            for (int d = 0; d < dim; d++)
                CHECK(fabs((double)o[(size_t)i * q_dim(w) + (size_t)(h * dim + d)] - exact[d]) < 3e-6);
        }
}

/* Attends with rows of the first sequence, then with a few of the second's. */
static void attend(struct world *w, int layer, int a_from, int a_n, int b_from, int b_n, float *o)
{
    struct kv_row rows[64] = {0};
    uint64_t seed = 99;
    int n = a_n + b_n;
    float *q = malloc((size_t)n * q_dim(w) * sizeof *q);
    for (size_t i = 0; i < (size_t)n * q_dim(w); i++) q[i] = 2 * random_unit(&seed);
    if (w->shape.type == KV_Q8) coarsen_codes(q, (size_t)n * q_dim(w));
    for (int i = 0; i < n; i++)
        rows[i] = i < a_n ? (struct kv_row){w->pages, a_from + i} : (struct kv_row){pages_of(w, 1), b_from + i - a_n};
    run_attention(w, layer, o, q, rows, n);
    check_rows(w, o, q, rows, n);
    free(q);
}

static void fill(struct world *w, int layer, int sequence, int to)
{
    for (int i = 0; i < to; i += 64) append(w, layer, sequence, i, to - i < 64 ? to - i : 64);
}

static const struct kv_shape shapes[] = {
    {.n_layers = LAYERS, .n_heads = 4, .n_kv_heads = 2, .head_dim = 16, .n_pages = N_PAGES, .type = KV_F32},
    {.n_layers = LAYERS, .n_heads = 3, .n_kv_heads = 3, .head_dim = 20, .n_pages = N_PAGES},
    {.n_layers = LAYERS, .n_heads = 6, .n_kv_heads = 1, .head_dim = 64, .n_pages = N_PAGES},
    {.n_layers = LAYERS, .n_heads = 4, .n_kv_heads = 2, .head_dim = 32, .n_pages = N_PAGES},
    {.n_layers = LAYERS, .n_heads = 4, .n_kv_heads = 2, .head_dim = 64, .n_pages = N_PAGES, .type = KV_Q8},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Checks around the borders of every page and span; the positions after the rows are NaN. */
static void borders(void)
{
    static const int ends[] = {1, 2, 31, 32, 33, 64, 65, 511, 512, 513, 1023, 1024, 1025, POSITIONS};
    for (int shape = 0; shape < SHAPES; shape++)
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            struct world w;
            float o[40 * 6 * HEAD_MAX];
            int rows = ends[i] < 20 ? ends[i] : 20;
            world_open(&w, shapes[shape], 1, false);
            fill(&w, 1, 0, ends[i]);
            fill(&w, 1, 1, 40);
            attend(&w, 1, ends[i] - rows, rows, 35, 5, o);
            world_close(&w);
        }
}

/* Scalar or SIMD, any number of threads, in one call (of more rows than the scratch holds) or row by row: the same
 * bits. */
static void same_bits(void)
{
    enum { ROWS = 43, WAYS = 6 };
    static const int threads[WAYS] = {1, 1, 2, 3, 4, 8};
    static float o[WAYS][ROWS * 6 * HEAD_MAX];
    for (int shape = 0; shape < SHAPES; shape++) {
        float single[6 * HEAD_MAX];
        for (int way = 0; way < WAYS; way++) {
            struct world w;
            world_open(&w, shapes[shape], threads[way], way == 0);
            fill(&w, 0, 0, POSITIONS);
            fill(&w, 0, 1, 600);
            attend(&w, 0, POSITIONS - 30, 30, 587, 13, o[way]);
            size_t bytes = q_dim(&w) * sizeof(float);
            CHECK_EQ(memcmp(o[0], o[way], ROWS * bytes), 0);
            attend(&w, 0, POSITIONS - 30, 1, 0, 0, single);
            CHECK_EQ(memcmp(o[0], single, bytes), 0);
            world_close(&w);
        }
    }
}

/* Keys, values and queries with some large, infinite, NaN or subnormal numbers: the reference's bits; a NaN may be any
 * NaN. */
static void odd_numbers(void)
{
    static const float odd[] = {1e9f, INFINITY, -INFINITY, NAN, 65504, 65520, 1e-7f, -3e-5f, 40000, 0};
    enum { ODD = sizeof odd / sizeof *odd, AT = 600 };
    for (int shape = 0; shape < SHAPES; shape++)
        for (int i = 0; i < 3 * ODD; i++) {
            float o[2][6 * HEAD_MAX], q[6 * HEAD_MAX];
            for (int way = 0; way < 2; way++) {
                struct world w;
                uint64_t seed = 7;
                world_open(&w, shapes[shape], 1, way == 0);
                for (size_t j = 0; j < q_dim(&w); j++) q[j] = random_unit(&seed);
                float *const to[] = {w.k + 550 * kv_dim(&w) + 3, w.v + 10 * kv_dim(&w) + 9, q + 5};
                *to[i / ODD] = odd[i % ODD];
                fill(&w, 0, 0, AT + 1);
                run_attention(&w, 0, o[way], q, &(struct kv_row){w.pages, AT}, 1);
                for (size_t j = 0; j < q_dim(&w); j++) CHECK(same_float(o[0][j], o[way][j]));
                world_close(&w);
            }
        }
}

/* Copies the first n positions of a page, in every head and layer. */
static void pages_copied(void)
{
    for (int shape = 0; shape < SHAPES; shape++)
        for (int n = 1; n <= KV_PAGE; n += 5) {
            struct world w;
            float o[6 * HEAD_MAX], copy[6 * HEAD_MAX];
            world_open(&w, shapes[shape], 1, false);
            fill(&w, 0, 0, KV_PAGE);
            fill(&w, 1, 0, KV_PAGE);
            w.be->ops->kv_copy(w.be, w.pages[5], w.pages[0], n);
            for (int layer = 0; layer < LAYERS; layer++) {
                attend(&w, layer, n - 1, 1, 0, 0, o);
                int32_t page = w.pages[0];
                w.pages[0] = w.pages[5];
                attend(&w, layer, n - 1, 1, 0, 0, copy);
                CHECK_EQ(memcmp(o, copy, q_dim(&w) * sizeof *o), 0);
                w.pages[0] = page;
            }
            world_close(&w);
        }
}

/* Poisoned positions are NaN, and attention shows it: so the other tests are able to fail. */
static void poison_shows(void)
{
    for (int shape = 0; shape < SHAPES; shape++) {
        struct world w;
        float o[6 * HEAD_MAX], q[6 * HEAD_MAX] = {1};
        world_open(&w, shapes[shape], 1, false);
        fill(&w, 0, 0, 10);
        run_attention(&w, 0, o, q, &(struct kv_row){w.pages, 9}, 1);
        CHECK(o[0] == o[0]);
        run_attention(&w, 0, o, q, &(struct kv_row){w.pages, 10}, 1);
        CHECK(o[0] != o[0]);
        world_close(&w);
    }
}

/* --- beside others ----------------------------------------------------------------------------------------- */

enum { TALKS = 8, TALK_PAGES = POSITIONS / KV_PAGE, COMPANY = 60 };

/* Makes tables of pages: each begins with some pages of an earlier one, and goes on with random pages. */
static void grow_talks(const struct world *w, int32_t talks[TALKS][TALK_PAGES], uint64_t *seed)
{
    static const int common[] = {0, 1, 3, 8, 12, 16, 20, 32, 33, TALK_PAGES};
    for (int t = 0; t < TALKS; t++) {
        int same = t ? common[random_below(seed, 10)] : 0, of = t ? random_below(seed, t) : 0;
        for (int i = 0; i < TALK_PAGES; i++)
            talks[t][i] = i < same ? talks[of][i] : pages_of(w, random_below(seed, 2))[random_below(seed, TALK_PAGES)];
    }
}

/* Picks rows of these sequences in any order: one that decodes, some that are read, sometimes twice from one sequence.
 * Returns their number. */
static int gather_rows(int32_t talks[TALKS][TALK_PAGES], struct kv_row rows[COMPANY], uint64_t *seed)
{
    static const int ends[] = {20, 31, 32, 100, 500, 511, 512, 530, 640, 1023, 1024, 1030, TALK_PAGES * KV_PAGE};
    int n = 0;
    while (n < COMPANY) {
        const int32_t *pages = talks[random_below(seed, TALKS)];
        int end = ends[random_below(seed, 13)], count = random_below(seed, 3) ? 1 : 1 + random_below(seed, 20);
        for (int i = end - count; i < end && n < COMPANY; i++) rows[n++] = (struct kv_row){pages, i < 0 ? 0 : i};
    }
    return n - random_below(seed, COMPANY - 1);
}

static void company_of(const struct kv_shape *shape, int threads, bool scalar)
{
    static float q[COMPANY * 6 * HEAD_MAX], o[COMPANY * 6 * HEAD_MAX], alone[6 * HEAD_MAX];
    static int32_t talks[TALKS][TALK_PAGES];
    struct kv_row rows[COMPANY] = {0};
    struct world w;
    uint64_t seed = 41;
    world_open(&w, *shape, threads, scalar);
    for (int s = 0; s < 2; s++) fill(&w, 1, s, TALK_PAGES * KV_PAGE);
    for (int round = 0; round < 12; round++) {
        grow_talks(&w, talks, &seed);
        int n = gather_rows(talks, rows, &seed);
        for (size_t i = 0; i < (size_t)n * q_dim(&w); i++) q[i] = 2 * random_unit(&seed);
        run_attention(&w, 1, o, q, rows, n);
        for (int i = 0; i < n; i++) {
            run_attention(&w, 1, alone, q + (size_t)i * q_dim(&w), rows + i, 1);
            CHECK(alone[0] == alone[0]);
            CHECK_EQ(memcmp(o + (size_t)i * q_dim(&w), alone, q_dim(&w) * sizeof *o), 0);
        }
    }
    world_close(&w);
}

/* A row gets the bits that it gets alone, whatever other rows there are. */
static void company(void)
{
    for (int shape = 0; shape < SHAPES; shape++)
        for (int threads = 1; threads <= 3; threads++) company_of(&shapes[shape], threads, threads == 1 && shape % 2);
}

static const struct check tests[] = {
    {"borders", borders},         {"same_bits", same_bits},       {"company", company},
    {"odd_numbers", odd_numbers}, {"pages_copied", pages_copied}, {"poison_shows", poison_shows},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
