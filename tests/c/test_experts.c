/* SPDX-License-Identifier: MIT
 *
 * Mixture of experts: the routing of rows, products by expert against a plain sum, and models with experts, whose
 * logits are the same alone, in chunks and beside others; also with layers without experts.
 */
#include "ops.h"
#include "session.h"

#include <math.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#endif

enum { EXPERTS = 12, USED = 3, DIM = 64, FFN = 72, ROWS = 33 }; /* FFN: more than the panels read at once */

/* --- routing ---------------------------------------------------------------------------------------------- */

struct routed {
    struct mem mem;
    struct pool *pool;
    struct backend *be;
    int32_t first[EXPERTS + 1], place[ROWS * USED];
    float share[ROWS * USED];
    struct route r;
};

static struct routed *routed_new(int threads, bool scalar)
{
    struct routed *t = calloc(1, sizeof *t);
    CHECK(t != NULL);
    t->pool = pool_new(&t->mem, threads);
    t->be = backend_cpu(&t->mem, t->pool, scalar);
    struct kv_shape shape = {.n_layers = 1, .n_heads = 1, .n_kv_heads = 1, .head_dim = 32, .n_pages = 1};
    CHECK_EQ(t->be->ops->reserve(t->be, &(struct reserve){.kv = shape, .max_rows = ROWS, .max_cols = USED * DIM}), OK);
    t->r = (struct route){EXPERTS, USED, handle_of(t->be, t->first), handle_of(t->be, t->place),
                          handle_of(t->be, t->share)};
    return t;
}

static void routed_free(struct routed *t)
{
    t->be->ops->free(t->be);
    pool_free(t->pool);
    CHECK_EQ(t->mem.used, 0);
    free(t);
}

/* Chooses the experts of n rows by their scores, which it overwrites. */
static void run_route(struct routed *t, float *scores, int n, bool renormalise)
{
    RUN(t->be, OP_ROUTE, n, EXPERTS, .y = handle_of(t->be, scores), .route = &t->r, .renormalise = renormalise);
}

static int expert_of(const struct routed *t, int place)
{
    int e = 0;
    while (t->first[e + 1] <= place) e++;
    return e;
}

/* Compares the scores of a row's experts with a sort in double; the engine chooses in float. */
static void check_row_choice(const struct routed *t, const float *scores, int row, bool renormalise)
{
    double p[EXPERTS], all = 0, chosen = 0;
    bool taken[EXPERTS] = {false};
    const int32_t *place = t->place + row * USED;
    for (int e = 0; e < EXPERTS; e++) all += p[e] = exp((double)scores[e]);
    for (int i = 0; i < USED; i++) {
        int best = -1;
        for (int e = 0; e < EXPERTS; e++)
            if (!taken[e] && (best < 0 || p[e] > p[best])) best = e;
        taken[best] = true;
        chosen += p[best];
    }
    for (int i = 0, e = 0; i < USED; i++, e++) {
        while (!taken[e]) e++;
        CHECK_EQ(expert_of(t, place[i]), e);
        CHECK(fabs(t->share[row * USED + i] - p[e] / (renormalise ? chosen : all)) < 1e-6);
    }
}

/* Every place exists once; those of an expert are in the order of the rows. */
static void check_places(const struct routed *t, int n)
{
    int row_of[ROWS * USED];
    bool seen[ROWS * USED] = {false};
    CHECK_EQ(t->first[0], 0);
    CHECK_EQ(t->first[EXPERTS], n * USED);
    for (int i = 0; i < n * USED; i++) {
        CHECK(t->place[i] >= 0 && t->place[i] < n * USED && !seen[t->place[i]]);
        seen[t->place[i]] = true;
        row_of[t->place[i]] = i / USED;
    }
    for (int e = 0; e < EXPERTS; e++)
        for (int i = t->first[e] + 1; i < t->first[e + 1]; i++) CHECK(row_of[i] > row_of[i - 1]);
}

static void chooses_the_largest(void)
{
    float scores[ROWS * EXPERTS], kept[ROWS * EXPERTS];
    uint64_t seed = 3;
    for (int n = 1; n <= ROWS; n += 8) {
        struct routed *t = routed_new(1, true);
        for (int i = 0; i < n * EXPERTS; i++) kept[i] = scores[i] = 4 * random_unit(&seed);
        run_route(t, scores, n, n % 16 == 1);
        check_places(t, n);
        for (int i = 0; i < n; i++) check_row_choice(t, kept + i * EXPERTS, i, n % 16 == 1);
        routed_free(t);
    }
}

/* Equal scores choose the lowest ids. NaN scores choose any three different experts. */
static void ties_and_no_numbers(void)
{
    const float odd[] = {0, -INFINITY, INFINITY, NAN, -1000};
    float scores[EXPERTS];
    struct routed *t = routed_new(1, true);
    for (int i = 0; i < 5; i++) {
        for (int e = 0; e < EXPERTS; e++) scores[e] = odd[i];
        run_route(t, scores, 1, true);
        check_places(t, 1);
        for (int u = 0; u < USED; u++)
            CHECK(i == 1 || i == 2 || i == 3 || (expert_of(t, t->place[u]) == u && t->share[u] == 1.0f / 3));
    }
    for (int e = 0; e < EXPERTS; e++) scores[e] = e == 4 || e == 9 || e == 11 || e == 7 ? 2 : 1;
    run_route(t, scores, 1, true);
    CHECK(expert_of(t, t->place[0]) == 4 && expert_of(t, t->place[1]) == 7 && expert_of(t, t->place[2]) == 9);
    for (int e = 0; e < EXPERTS; e++) scores[e] = e == 6 ? NAN : 1;
    run_route(t, scores, 1, true);
    check_places(t, 1);
    routed_free(t);
}

/* --- products by expert -------------------------------------------------------------------------------------- */

static struct weight *random_stack(struct backend *be, const struct dtype *type, int rows, int cols, uint64_t seed)
{
    struct weight *w = be->ops->weight_new(be, type, EXPERTS * rows, cols);
    size_t size = (size_t)(EXPERTS * rows) * (size_t)(cols / (int)type->block) * type->bytes;
    uint8_t *bytes = malloc(size);
    CHECK(w && bytes);
    if (type->bytes == 4)
        for (size_t i = 0; i < size / 4; i++) ((float *)(void *)bytes)[i] = random_unit(&seed);
    else
        /* Q8_0 with scale 1/16 */
        for (size_t i = 0; i < size; i++)
            bytes[i] = i % 34 == 1 ? 0x2C : i % 34 == 0 ? 0 : (uint8_t)(random_next(&seed) >> 40 | 1);
    be->ops->weight_put(be, w, 0, EXPERTS * rows, bytes);
    free(bytes);
    return w;
}

/* Multiplies row by row with the expert's own panels: the grouped product must be equal to the bit. */
static void check_products(struct routed *t, const struct dtype *type, const float *x, int n)
{
    float places[ROWS * USED * DIM], y[2][ROWS * USED * FFN], alone[FFN];
    struct backend *be = t->be;
    struct weight *w[2] = {random_stack(be, type, FFN, DIM, 7), random_stack(be, type, FFN, DIM, 8)};
    RUN(be, OP_GATHER, n, DIM, .y = handle_of(be, places), .x = handle_of(be, x), .route = &t->r);
    RUN(be, OP_EXPERTS, n * USED, DIM, .x = handle_of(be, places),
        .products = {product(handle_of(be, y[0]), w[0]), product(handle_of(be, y[1]), w[1])}, .route = &t->r);
    for (int i = 0; i < n * USED; i++) {
        int place = t->place[i], e = expert_of(t, place);
        for (int j = 0; j < 2; j++) {
            struct weight one = *w[j];
            one.rows = FFN;
            one.panels += (size_t)e * FFN / 8 * one.panel;
            RUN(be, OP_MATMUL, 1, DIM, .x = handle_of(be, x + i / USED * DIM),
                .products = {product(handle_of(be, alone), &one)});
            CHECK(same_bits(alone, y[j] + place * FFN, FFN));
        }
    }
    for (int j = 0; j < 2; j++) be->ops->weight_free(be, w[j]);
}

/* The sum over a row's experts, ascending, from zero. */
static void check_combined(struct routed *t, int n)
{
    float x[ROWS * USED * DIM], y[ROWS * DIM];
    uint64_t seed = 11;
    for (int i = 0; i < n * USED * DIM; i++) x[i] = random_unit(&seed);
    RUN(t->be, OP_COMBINE, n, DIM, .y = handle_of(t->be, y), .x = handle_of(t->be, x), .route = &t->r);
    for (int i = 0; i < n * DIM; i++) {
        float sum = 0;
        for (int u = 0; u < USED; u++) {
            volatile float product = t->share[i / DIM * USED + u] * x[t->place[i / DIM * USED + u] * DIM + i % DIM];
            sum += product;
        }
        CHECK(y[i] == sum);
    }
}

static void products_by_expert(void)
{
    const struct dtype *types[] = {dtype_by_gguf(0), dtype_by_gguf(8)};
    uint64_t seed = 5;
    for (int n = 1; n <= ROWS; n = n * 2 + 1)
        for (int way = 0; way < 6; way++) {
            struct routed *t = routed_new(1 + way % 3, way / 3 == 0);
            float scores[ROWS * EXPERTS], x[ROWS * DIM];
            /* one expert that many rows choose */
            for (int i = 0; i < n * EXPERTS; i++) scores[i] = (i % EXPERTS == 5 ? 3 : 1) * random_unit(&seed);
            for (int i = 0; i < n * DIM; i++) x[i] = random_unit(&seed);
            run_route(t, scores, n, true);
            for (int k = 0; k < 2; k++) check_products(t, types[k], x, n);
            check_combined(t, n);
            routed_free(t);
        }
}

/* AddressSanitizer reports any byte read from an expert that no row chose. */
static void check_unread(struct routed *t, const struct dtype *type, int n)
{
    struct weight *w = random_stack(t->be, type, FFN, DIM, 9);
    size_t size = FFN / 8 * w->panel;
    float scores[ROWS * EXPERTS], x[ROWS * DIM], places[ROWS * USED * DIM], y[ROWS * USED * FFN];
    int unread = 0;
    for (int i = 0; i < n * EXPERTS; i++) scores[i] = (float)(i % EXPERTS * 5 % EXPERTS);
    for (int i = 0; i < n * DIM; i++) x[i] = (float)(i % 50);
    run_route(t, scores, n, true);
    RUN(t->be, OP_GATHER, n, DIM, .y = handle_of(t->be, places), .x = handle_of(t->be, x), .route = &t->r);
    for (int e = 0; e < EXPERTS; e++) {
        if (t->first[e] < t->first[e + 1]) continue;
        ASAN_POISON_MEMORY_REGION(w->panels + (size_t)e * size, size);
        unread++;
    }
    RUN(t->be, OP_EXPERTS, n * USED, DIM, .x = handle_of(t->be, places), .products = {product(handle_of(t->be, y), w)},
        .route = &t->r);
    ASAN_UNPOISON_MEMORY_REGION(w->panels, EXPERTS * size);
    CHECK_EQ(unread, EXPERTS - USED);
    t->be->ops->weight_free(t->be, w);
}

static void only_the_chosen_are_read(void)
{
    for (int way = 0; way < 4; way++) {
        struct routed *t = routed_new(1 + way % 2, way / 2 == 0);
        for (int n = 1; n <= ROWS; n += 16) {
            check_unread(t, dtype_by_gguf(0), n);
            check_unread(t, dtype_by_gguf(8), n);
        }
        routed_free(t);
    }
}

/* --- models ----------------------------------------------------------------------------------------------------- */

enum { TOKENS = 60, VOCAB = 288 };

static void tokens_of(int32_t ids[TOKENS])
{
    uint64_t seed = 21;
    for (int i = 0; i < TOKENS; i++) ids[i] = random_below(&seed, 256);
}

/* One text is read in chunks while another is written: both get the same logits as alone. */
static void check_beside_another(const char *name, struct quern_options options)
{
    struct file f = file_read(built_fixtures(""), name);
    int32_t ids[TOKENS];
    float *alone = logits_new(TOKENS, VOCAB), *beside = logits_new(TOKENS, VOCAB);
    tokens_of(ids);
    struct quern_engine *plain = engine_load(&f, (struct quern_options){.scalar = true, .chunk = 1}, SIZE_MAX);
    logits_all(plain, sequence_new(plain), ids, TOKENS, alone);
    struct quern_engine *e = engine_load(&f, options, 1000);
    struct quern_sequence *a = sequence_new(e), *b = sequence_new(e);
    CHECK_EQ(quern_sequence_set(b, ids, 20, QUERN_LAST), 0);
    CHECK(same_bits(logits_last(e, b), alone + 19 * VOCAB, VOCAB));
    CHECK_EQ(quern_sequence_set(a, ids, TOKENS, QUERN_ALL), 0);
    for (int n = 20, kept = 0; kept < TOKENS; n++) {
        if (n < TOKENS) CHECK_EQ(quern_sequence_push(b, ids[n]), OK);
        CHECK_EQ(quern_step(e, 0), OK);
        kept += logits_keep(a, VOCAB, beside);
        if (n < TOKENS) CHECK(same_bits(logits_last(e, b), alone + n * VOCAB, VOCAB));
    }
    CHECK(same_bits(alone, beside, TOKENS * VOCAB));
    quern_free(plain);
    quern_free(e);
    free(alone);
    free(beside);
    file_free(&f);
}

static void beside_another(void)
{
    const char *const names[] = {"moe.gguf", "moe-q8.gguf", "moe-plain.gguf"};
    for (int i = 0; i < 3; i++)
        for (int threads = 1 + i % 2; threads <= 4; threads += (int)check_every(2))
            check_beside_another(
                names[i], (struct quern_options){.threads = threads, .chunk = 7 * threads, .scalar = threads == 3});
}

/* The file's key for renormalising changes the logits, and info reports what exists. */
static void the_files_keys(void)
{
    const char *const names[] = {"moe.gguf", "moe-plain.gguf"};
    float *logits[2];
    int32_t ids[TOKENS];
    tokens_of(ids);
    for (int i = 0; i < 2; i++) {
        struct file f = file_read(built_fixtures(""), names[i]);
        struct quern_engine *e = engine_load(&f, (struct quern_options){.threads = 2}, SIZE_MAX);
        const struct model_config *c = &e->model->config;
        CHECK(c->n_experts == 6 && c->n_used == 3 && c->expert_dim == 64 && c->renormalise == (i == 0));
        CHECK(strstr(quern_info(e), "\"architecture\":\"qwen3moe\"") &&
              strstr(quern_info(e), "\"experts\":6,\"expertsUsed\":3,\"expertDim\":64"));
        logits_all(e, sequence_new(e), ids, TOKENS, logits[i] = logits_new(TOKENS, VOCAB));
        quern_free(e);
        file_free(&f);
    }
    CHECK(!same_bits(logits[0], logits[1], VOCAB));
    free(logits[0]);
    free(logits[1]);
}

/* The profile counts the experts that were read, and their products. */
static void profiled(void)
{
    struct file f = file_read(built_fixtures(""), "moe.gguf");
    struct quern_engine *e = engine_load(&f, (struct quern_options){.profile = true}, SIZE_MAX);
    struct quern_sequence *s = sequence_new(e);
    const struct model_config *c = &e->model->config;
    const double one = (double)c->dim * c->expert_dim * c->n_used;
    int seen = 0;
    CHECK_EQ(quern_sequence_set(s, (const int32_t[]){65}, 1, QUERN_LAST), 0);
    logits_last(e, s);
    for (int i = 0; profile_operation(e->profile, i); i++) {
        const char *name = profile_operation(e->profile, i);
        if (strncmp(name, "experts F32", 11)) continue;
        struct profile_cost cost = profile_cost(e->profile, PROFILE_DECODE, i, 0);
        double matrices = strstr(name, "[128, 32]") ? 2 : 1; /* gate and up are one operation */
        CHECK_EQ(cost.macs, matrices * one);
        CHECK_EQ(cost.bytes, matrices * one * 4);
        CHECK_EQ(profile_cost(e->profile, PROFILE_DECODE, i, 1).calls, 0); /* this layer is dense */
        seen += (int)matrices;
    }
    CHECK_EQ(seen, 3);
    quern_free(e);
    file_free(&f);
}

static const struct check tests[] = {
    {"chooses_the_largest", chooses_the_largest},
    {"ties_and_no_numbers", ties_and_no_numbers},
    {"products_by_expert", products_by_expert},
    {"only_the_chosen_are_read", only_the_chosen_are_read},
    {"beside_another", beside_another},
    {"the_files_keys", the_files_keys},
    {"profiled", profiled},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
