/* SPDX-License-Identifier: MIT
 *
 * What a model asks of its backend and gets from a batch: it computes on a device that shares no memory with it, to the same bits; rows may
 * be features instead of tokens, stand at three positions, and ask for their hidden state.
 */
#include "heap_backend.h"

#include "base/num.h"

#include <math.h>

/* --- on a device -------------------------------------------------------------------------------------------- */

static struct quern_engine *heap_load(const struct file *f, struct quern_options options)
{
    struct quern_engine *e = heap_engine(options);
    CHECK_EQ(engine_feed(e, f, SIZE_MAX), OK);
    CHECK(heap_untouched(heap_of(e->be)));
    return e;
}

/* A step, whose results come a call later. Returns whether there were any. */
static bool heap_step(struct quern_engine *e, struct quern_sequence *s)
{
    int first, n;
    int status = quern_step(e, 0);
    CHECK_EQ(status, OK);
    if (!quern_awaits(e)) return false;
    CHECK(quern_logits(s, &first, &n) == NULL && n == 0);
    CHECK_EQ(quern_sample(s), ERR_BUSY);
    CHECK_EQ(quern_step(e, 0), ERR_BUSY);
    heap_deliver(e);
    return true;
}

static void golden_on_a_device(void)
{
    for (int i = 0; i < GOLDEN_FILES; i++) {
        struct reference r = reference_new(golden_names[i]);
        struct quern_engine *e = heap_load(&r.file, (struct quern_options){.chunk = 48, .threads = 1 + i % 2, .profile = false});
        struct quern_sequence *s = sequence_new(e);
        float *all = logits_new(GOLDEN_ROWS, GOLDEN_VOCAB);
        CHECK_EQ(quern_sequence_set(s, r.ids, GOLDEN_ROWS, QUERN_ALL), 0);
        while (quern_sequence_pending(s) > 0) {
            CHECK(heap_step(e, s));
            CHECK(logits_keep(s, GOLDEN_VOCAB, all) > 0);
            heap_clear(e);
        }
        CHECK(same_bits(all, r.logits, GOLDEN_ROWS * GOLDEN_VOCAB));
        quern_free(e);
        free(all);
        reference_free(&r);
    }
}

/* A prompt of several chunks, of which the last one gives something, and tokens after it. */
static void reply_on_a_device(void)
{
    struct reference r = reference_new("moe-nano.Q4_K_M");
    struct quern_engine *e = heap_load(&r.file, (struct quern_options){.chunk = 16});
    struct quern_sequence *s = sequence_new(e);
    int first, n, steps = 0;
    CHECK_EQ(quern_sequence_set(s, r.ids, 70, QUERN_LAST), 0);
    for (int at = 69; at < 80; at++) {
        while (!heap_step(e, s)) steps++;
        check_row(&r, at, quern_logits(s, &first, &n));
        CHECK(first == at && n == 1);
        heap_clear(e);
        CHECK_EQ(quern_sequence_push(s, r.ids[at + 1]), OK);
    }
    CHECK_EQ(steps, 4);
    quern_free(e);
    reference_free(&r);
}

/* --- a batch by hand ------------------------------------------------------------------------------------------ */

enum { ROWS = 20, PAIRS_MAX = 64 };

struct hand {
    struct batch batch;
    int32_t tokens[ROWS], pos[ROWS][3], out[ROWS];
    struct kv_row kv[ROWS];
    const float *features[ROWS];
};

static const int32_t hand_pages[] = {0, 1};

/* ROWS tokens of the golden ids in pages 0 and 1, whose logits are wanted. */
static void hand_fill(struct hand *h, const struct reference *r)
{
    *h = (struct hand){.batch = {.n = ROWS, .n_out = ROWS, .n_logits = ROWS}};
    h->batch.tokens = h->tokens;
    h->batch.kv = h->kv;
    h->batch.pos = h->pos;
    h->batch.out = h->out;
    for (int i = 0; i < ROWS; i++) {
        h->tokens[i] = r->ids[i];
        h->kv[i] = (struct kv_row){hand_pages, i};
        for (int k = 0; k < 3; k++) h->pos[i][k] = i;
        h->out[i] = i;
    }
}

static struct outputs hand_run(struct quern_engine *e, const struct hand *h)
{
    model_begin(e->model, &h->batch);
    for (int l = 0; l < e->model->config.n_layers; l++) model_layer(e->model, &h->batch, l);
    for (int i = 0; i < model_parts(e->model, &h->batch); i++) model_head(e->model, &h->batch, i);
    return model_end(e->model, &h->batch);
}

/* The embedding of a token, as the backend decodes it. */
static void embedding_of(struct quern_engine *e, struct hand *h, int32_t id, float *out)
{
    struct hand one = *h;
    const struct heap *heap = heap_of(e->be);
    one.tokens[0] = id;
    model_begin(e->model, &(struct batch){.n = 1, .tokens = one.tokens, .kv = one.kv, .pos = one.pos});
    memcpy(out, heap->embedded, (size_t)e->model->config.dim * sizeof *out);
}

/* Rows that are given a token's embedding are that token, whatever id stands there. */
static void rows_of_features(void)
{
    static const char *const names[] = {"nano.F32", "nano.Q4_0", "moe-nano.Q8_0"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        struct reference r = reference_new(names[k]);
        struct quern_engine *plain = engine_load(&r.file, (struct quern_options){.chunk = ROWS, .threads = 2}, SIZE_MAX);
        struct quern_engine *device = heap_load(&r.file, (struct quern_options){.chunk = ROWS});
        int dim = plain->model->config.dim;
        float *rows = logits_new(ROWS, dim);
        struct hand h;
        hand_fill(&h, &r);
        CHECK(same_bits(hand_run(plain, &h).logits, r.logits, ROWS * GOLDEN_VOCAB));
        h.batch.features = h.features;
        for (int i = 3; i < 11; i++) {
            embedding_of(device, &h, r.ids[i], rows + i * dim);
            h.features[i] = rows + i * dim;
            h.tokens[i] = 7;
        }
        CHECK(same_bits(hand_run(plain, &h).logits, r.logits, ROWS * GOLDEN_VOCAB));
        h.features[5] = rows + 6 * dim;
        const float *other = hand_run(plain, &h).logits;
        CHECK(same_bits(other, r.logits, 5 * GOLDEN_VOCAB));
        CHECK(!same_bits(other + 5 * GOLDEN_VOCAB, reference_row(&r, 5), GOLDEN_VOCAB));
        quern_free(plain);
        quern_free(device);
        free(rows);
        reference_free(&r);
    }
}

/* What is added after a layer changes that row and those behind it, from that layer on. */
static void rows_added_after_layers(void)
{
    struct reference r = reference_new("duo.F32");
    struct quern_engine *device = heap_load(&r.file, (struct quern_options){.chunk = ROWS});
    struct quern_engine *plain = engine_load(&r.file, (struct quern_options){.chunk = ROWS}, SIZE_MAX);
    struct heap *heap = heap_of(device->be);
    int dim = plain->model->config.dim;
    float *row = logits_new(3, dim), *zeros = logits_new(3, dim);
    struct hand h;
    hand_fill(&h, &r);
    embedding_of(device, &h, r.ids[8], zeros);
    for (int i = dim; i < 3 * dim; i++) zeros[i] = 0, row[i] = (float)(i % 5) - 2;
    memcpy(row, zeros, (size_t)dim * sizeof *row);
    h.batch.features = h.features;
    h.batch.n_added = 2;
    h.features[8] = zeros;
    CHECK(same_bits(hand_run(plain, &h).logits, r.logits, ROWS * GOLDEN_VOCAB));
    h.features[8] = row;
    const float *changed = hand_run(plain, &h).logits;
    CHECK(same_bits(changed, r.logits, 8 * GOLDEN_VOCAB));
    for (int i = 8; i < ROWS; i++) CHECK(!same_bits(changed + i * GOLDEN_VOCAB, reference_row(&r, i), GOLDEN_VOCAB));
    hand_run(device, &h);
    CHECK_EQ(heap->n_added, 2);
    for (int i = 0; i < 2; i++) CHECK(heap->added[i] == i && heap->added_from[i] == (i + 1) * dim);
    CHECK(same_bits(heap_at(heap, heap->results[0].y, 1), changed, ROWS * GOLDEN_VOCAB));
    quern_free(plain);
    quern_free(device);
    free(row);
    free(zeros);
    reference_free(&r);
}

/* --- positions --------------------------------------------------------------------------------------------------- */

static struct file odd_model(const char *name) { return file_read(built_fixtures("/bad"), name); }

/* Radians per position of a pair of 16 columns. YaRN by 4 from 32,768 positions on: pairs from 2 on are slower, from 5 on by all of it. */
static double turn_of(const struct quern_engine *e, int i)
{
    double fast = num_exp64(-2.0 * i / 16 * num_log64(e->model->config.rope_theta)), slow = fmin(fmax((i - 2) / 3.0, 0), 1);
    return e->model->config.rope_factor == 1 ? fast : fast / 4 * slow + fast * (1 - slow);
}

/* Heads of 16 columns with sections [4, 2, 2]: pairs turn by time, row, column, time, row, column, time, time. */
static void check_positions(const char *name, const char *plain_name, double magnitude)
{
    static const int axis[8] = {0, 1, 2, 0, 1, 2, 0, 0};
    struct reference r = reference_new("nano.F32");
    struct file f = odd_model(name), plain = odd_model(plain_name);
    struct quern_engine *e = heap_load(&f, (struct quern_options){.chunk = ROWS}), *p = heap_load(&plain, (struct quern_options){.chunk = ROWS});
    struct heap *heap = heap_of(e->be);
    int half = e->model->config.head_dim / 2;
    struct hand h;
    hand_fill(&h, &r);
    CHECK_EQ(half, 8);
    for (int i = 0; i < ROWS; i++) h.tokens[i] %= 256; /* its vocabulary is smaller */
    hand_run(e, &h);
    hand_run(p, &h);
    const float *equal = heap_at(heap, heap->results[0].y, 1), *without = heap_at(heap_of(p->be), heap_of(p->be)->results[0].y, 1);
    CHECK(same_bits(equal, without, ROWS * e->model->config.vocab_size));
    heap->n_results = 0;
    for (int i = 0; i < ROWS; i++) h.pos[i][1] = 3 * i + 1, h.pos[i][2] = 7 * i + 2;
    hand_run(e, &h);
    for (int t = 0; t < ROWS; t++)
        for (int i = 0; i < half; i++) {
            double sine, cosine;
            num_sincos64(h.pos[t][axis[i]] * turn_of(e, i), &sine, &cosine);
            CHECK(heap->cosine[t * half + i] == (float)(cosine * magnitude));
        }
    quern_free(e);
    quern_free(p);
    file_free(&f);
    file_free(&plain);
    reference_free(&r);
}

static void three_positions(void)
{
    check_positions("good-M09c.gguf", "good-M09b.gguf", 1);
    check_positions("good-M09e.gguf", "good-M09e.gguf", 0.1 * num_log64(4) + 1);
}

/* The first columns of a head turn as a head of that size does, the others stay. */
static void part_of_a_head(void)
{
    enum { HEADS = 3, DIM = 48, ROT = 20 };
    struct mem mem = {0};
    struct pool *pool = pool_new(&mem, 1);
    uint64_t seed = 4;
    for (int scalar = 0; scalar < 2; scalar++) {
        struct backend *be = backend_cpu(&mem, pool, scalar);
        float x[2 * HEADS * DIM], y[2 * HEADS * DIM], part[2 * HEADS * ROT], cosine[ROT], sine[ROT]; /* of two rows */
        for (int i = 0; i < 2 * HEADS * DIM; i++) x[i] = y[i] = random_unit(&seed);
        for (int i = 0; i < ROT; i++) cosine[i] = random_unit(&seed), sine[i] = random_unit(&seed);
        for (int i = 0; i < 2 * HEADS; i++) memcpy(part + i * ROT, x + i * DIM, ROT * sizeof *x);
        be->ops->rope(be, y, cosine, sine, 2, HEADS, DIM, ROT);
        be->ops->rope(be, part, cosine, sine, 2, HEADS, ROT, ROT);
        for (int i = 0; i < 2 * HEADS; i++) {
            const float *before = x + i * DIM, *after = y + i * DIM;
            CHECK(same_bits(after, part + i * ROT, ROT) && same_bits(after + ROT, before + ROT, DIM - ROT) && !same_bits(after, before, ROT));
        }
        be->ops->free(be);
    }
    pool_free(pool);
    CHECK_EQ(mem.used, 0);
}

/* A model that turns half of each head: other logits than one that turns all, the same ones from the reference kernels. */
static void models_that_turn_a_part(void)
{
    struct file f = odd_model("good-M09d.gguf"), whole = odd_model("good-M09b.gguf");
    int32_t ids[ROWS];
    for (int i = 0; i < ROWS; i++) ids[i] = 40 + 3 * i;
    struct quern_engine *e = engine_load(&f, (struct quern_options){.threads = 2}, SIZE_MAX), *w = engine_load(&whole, (struct quern_options){0}, SIZE_MAX);
    struct quern_engine *scalar = engine_load(&f, (struct quern_options){.scalar = true, .chunk = 3}, SIZE_MAX);
    struct quern_engine *engines[] = {e, w, scalar};
    const float *last[3];
    for (int i = 0; i < 3; i++) {
        struct quern_sequence *s = sequence_new(engines[i]);
        CHECK_EQ(quern_sequence_set(s, ids, ROWS, QUERN_LAST), 0);
        last[i] = logits_last(engines[i], s);
    }
    CHECK_EQ(e->model->config.rope_dim, e->model->config.head_dim / 2);
    CHECK(same_bits(last[0], last[2], quern_vocab_size(e)));
    CHECK(!same_bits(last[0], last[1], quern_vocab_size(e)));
    for (int i = 0; i < 3; i++) quern_free(engines[i]);
    file_free(&f);
    file_free(&whole);
}

/* --- hidden states -------------------------------------------------------------------------------------------------- */

static const float *hidden_last(struct quern_engine *e, struct quern_sequence *s)
{
    int first, n;
    while (quern_sequence_pending(s) > 0) CHECK_EQ(quern_step(e, 0), OK);
    const float *hidden = quern_hidden(s, &first, &n);
    CHECK(hidden && n == 1);
    return hidden;
}

/* Those of all tokens, each as it is where that token is the last. */
static void check_states(struct quern_engine *e, const int32_t *ids, int total)
{
    struct quern_sequence *s = sequence_new(e), *other = sequence_new(e);
    int dim = e->model->config.dim, first, n;
    float *all = logits_new(total, dim);
    CHECK_EQ(quern_sequence_set(s, ids, total, QUERN_STATES), 0);
    for (int done = 0; done < total; done += n) {
        CHECK_EQ(quern_step(e, 0), OK);
        const float *states = quern_hidden(s, &first, &n);
        CHECK(n == 0 || (states && first == done)); /* others may come before it */
        if (n) memcpy(all + (size_t)done * (size_t)dim, states, (size_t)n * (size_t)dim * sizeof *all);
    }
    CHECK(quern_logits(s, &first, &n) == NULL);
    for (int i = 0; i < total; i += 7) {
        CHECK(quern_sequence_set(other, ids, i + 1, QUERN_HIDDEN) >= 0);
        CHECK(same_bits(hidden_last(e, other), all + (size_t)i * (size_t)dim, dim));
    }
    quern_sequence_free(s);
    quern_sequence_free(other);
    free(all);
}

/* The output head makes the logits of it; beside a conversation that wants logits both are what they are alone. */
static void hidden_states(void)
{
    struct reference r = reference_new("nano.F32");
    struct quern_engine *e = engine_load(&r.file, (struct quern_options){0}, SIZE_MAX), *device = heap_load(&r.file, (struct quern_options){0});
    struct quern_sequence *s = sequence_new(e), *other = sequence_new(e);
    int dim = e->model->config.dim, first, n;
    float *alone = logits_new(1, dim), *row = logits_new(1, dim), *other_row = logits_new(1, dim);
    struct hand h;
    hand_fill(&h, &r);
    CHECK_EQ(quern_sequence_set(s, r.ids, 50, QUERN_HIDDEN), 0);
    memcpy(alone, hidden_last(e, s), (size_t)dim * sizeof *alone);
    CHECK(quern_logits(s, &first, &n) == NULL && quern_sample(s) == ERR_EMPTY);
    for (int id = 0; id < GOLDEN_VOCAB; id++) {
        double sum = 0;
        embedding_of(device, &h, id, row);
        for (int i = 0; i < dim; i++) sum += (double)row[i] * alone[i];
        CHECK(fabs(sum - reference_row(&r, 49)[id]) < 1e-4);
        CHECK(quern_output_row(e, id, other_row));
        CHECK(same_bits(row, other_row, dim));
    }
    CHECK(!quern_output_row(e, GOLDEN_VOCAB, row) && !quern_output_row(e, -1, row)); /* it has no classes */
    CHECK(!quern_output_row(device, 0, row));
    CHECK_EQ(quern_sequence_set(s, r.ids, 50, QUERN_HIDDEN), 49); /* known, like any prompt */
    CHECK_EQ(quern_sequence_set(other, r.ids, 30, QUERN_LAST), 29);
    CHECK(same_bits(hidden_last(e, s), alone, dim));
    check_row(&r, 29, quern_logits(other, &first, &n));
    CHECK_EQ(quern_sequence_set(s, r.ids, 50, QUERN_HIDDEN), 49);
    CHECK_EQ(quern_sequence_set(other, r.ids + 50, 20, QUERN_ALL), 0);
    CHECK(same_bits(hidden_last(e, s), alone, dim));
    check_states(e, r.ids, 50);
    quern_free(e);
    struct quern_sequence *d = sequence_new(device);
    CHECK_EQ(quern_sequence_set(d, r.ids, 50, QUERN_HIDDEN), 0);
    while (quern_sequence_pending(d) > 0) CHECK_EQ(quern_step(device, 0), OK);
    CHECK(quern_hidden(d, &first, &n) == NULL);
    heap_deliver(device);
    CHECK(same_bits(quern_hidden(d, &first, &n), alone, dim));
    quern_free(device);
    free(alone);
    free(row);
    free(other_row);
    reference_free(&r);
}

static const struct check tests[] = {
    {"golden_on_a_device", golden_on_a_device},
    {"reply_on_a_device", reply_on_a_device},
    {"rows_of_features", rows_of_features},
    {"rows_added_after_layers", rows_added_after_layers},
    {"three_positions", three_positions},
    {"part_of_a_head", part_of_a_head},
    {"models_that_turn_a_part", models_that_turn_a_part},
    {"hidden_states", hidden_states},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
