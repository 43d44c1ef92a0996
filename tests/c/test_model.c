/* SPDX-License-Identifier: MIT
 *
 * The interface between a model, its backend and a batch: rows may be features instead of tokens, have three positions,
 * and request their hidden state.
 */
#include "ops.h"
#include "played.h"
#include "session.h"

#include "base/num.h"

#include <math.h>

/* Operations that devices were given: where tokens became rows, the angles of the first rotation, and after which
 * layers something was added. */
static struct seen {
    struct handle embedded;
    float cosine[64 * 16];
    bool rotated;
    int attentions, n_added, added_after[8], added_from[8];
} seen;

static void see(const struct op *op)
{
    if (op->kind == OP_EMBED) seen = (struct seen){.embedded = op->y};
    if (op->kind == OP_ATTENTION) seen.attentions++;
    if (op->kind == OP_FEATURES && op->adds) {
        seen.added_after[seen.n_added] = seen.attentions - 1;
        seen.added_from[seen.n_added++] = op->first;
    }
    if (op->kind == OP_ROPE && !seen.rotated &&
        op->n * op->rot / 2 <= (int)(sizeof seen.cosine / sizeof *seen.cosine)) {
        memcpy(seen.cosine, op->cosine, (size_t)(op->n * op->rot / 2) * sizeof *seen.cosine);
        seen.rotated = true;
    }
}

/* --- on a device -------------------------------------------------------------------------------------------- */

static struct quern_engine *device_load(const struct file *f, struct quern_options options)
{
    options.backend = BACKEND_PLAYED;
    struct quern_engine *e = quern_new(&options);
    if (!e) exit(2);
    played_of(e->be)->seen = see;
    CHECK_EQ(engine_feed(e, f, SIZE_MAX), OK);
    return e;
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

/* Returns the logits of its rows, borrowed until the next run. */
static const float *hand_run(struct quern_engine *e, const struct hand *h)
{
    model_begin(e->model, &h->batch);
    for (int l = 0; l < e->model->config.n_layers; l++) model_layer(e->model, &h->batch, l);
    for (int i = 0; i < model_parts(e->model, &h->batch); i++) model_head(e->model, &h->batch, i);
    struct outputs made = model_end(e->model, &h->batch);
    if (e->be->late) played_deliver(e->be);
    return e->be->ops->result(e->be, made.logits);
}

/* The embedding of a token, as the backend decodes it. */
static void embedding_of(struct quern_engine *device, const struct hand *h, int32_t id, float *out)
{
    struct hand one = *h;
    struct backend *be = device->be;
    seen = (struct seen){0};
    one.tokens[0] = id;
    model_begin(device->model, &(struct batch){.n = 1, .tokens = one.tokens, .kv = one.kv, .pos = one.pos});
    be->ops->submit(be, &(struct result){seen.embedded, (uint64_t)device->model->config.dim}, 1);
    played_deliver(be);
    memcpy(out, be->ops->result(be, seen.embedded), (size_t)device->model->config.dim * sizeof *out);
}

/* A row with a token's embedding as its features equals that token, whatever its id is. */
static void rows_of_features(void)
{
    static const char *const names[] = {"nano.F32", "nano.Q4_0", "moe-nano.Q8_0"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        struct reference r = reference_new(names[k]);
        struct quern_engine *plain =
            engine_load(&r.file, (struct quern_options){.chunk = ROWS, .threads = 2}, SIZE_MAX);
        struct quern_engine *device = device_load(&r.file, (struct quern_options){.chunk = ROWS});
        int dim = plain->model->config.dim;
        float *rows = logits_new(ROWS, dim);
        struct hand h;
        hand_fill(&h, &r);
        CHECK(same_bits(hand_run(plain, &h), r.logits, ROWS * GOLDEN_VOCAB));
        h.batch.features = h.features;
        for (int i = 3; i < 11; i++) {
            embedding_of(device, &h, r.ids[i], rows + i * dim);
            h.features[i] = rows + i * dim;
            h.tokens[i] = 7;
        }
        CHECK(same_bits(hand_run(plain, &h), r.logits, ROWS * GOLDEN_VOCAB));
        h.features[5] = rows + 6 * dim;
        const float *other = hand_run(plain, &h);
        CHECK(same_bits(other, r.logits, 5 * GOLDEN_VOCAB));
        CHECK(!same_bits(other + 5 * GOLDEN_VOCAB, reference_row(&r, 5), GOLDEN_VOCAB));
        quern_free(plain);
        quern_free(device);
        free(rows);
        reference_free(&r);
    }
}

/* An addition after a layer changes its row and later rows, from that layer on. */
static void rows_added_after_layers(void)
{
    struct reference r = reference_new("duo.F32");
    struct quern_engine *device = device_load(&r.file, (struct quern_options){.chunk = ROWS});
    struct quern_engine *plain = engine_load(&r.file, (struct quern_options){.chunk = ROWS}, SIZE_MAX);
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
    CHECK(same_bits(hand_run(plain, &h), r.logits, ROWS * GOLDEN_VOCAB));
    h.features[8] = row;
    const float *changed = hand_run(plain, &h);
    CHECK(same_bits(changed, r.logits, 8 * GOLDEN_VOCAB));
    for (int i = 8; i < ROWS; i++) CHECK(!same_bits(changed + i * GOLDEN_VOCAB, reference_row(&r, i), GOLDEN_VOCAB));
    CHECK(same_bits(hand_run(device, &h), changed, ROWS * GOLDEN_VOCAB));
    CHECK_EQ(seen.n_added, 2);
    for (int i = 0; i < 2; i++) CHECK(seen.added_after[i] == i && seen.added_from[i] == (i + 1) * dim);
    quern_free(plain);
    quern_free(device);
    free(row);
    free(zeros);
    reference_free(&r);
}

/* --- positions --------------------------------------------------------------------------------------------------- */

static struct file odd_model(const char *name) { return file_read(built_fixtures("/bad"), name); }

/* Radians per position of a pair of 16 columns. YaRN by 4 from 32,768 positions on: pairs from 2 on turn more slowly,
 * pairs from 5 on by the whole factor. */
static double turn_of(const struct quern_engine *e, int i)
{
    double fast = num_exp64(-2.0 * i / 16 * num_log64(e->model->config.rope_theta)),
           slow = fmin(fmax((i - 2) / 3.0, 0), 1);
    return e->model->config.rope_factor == 1 ? fast : fast / 4 * slow + fast * (1 - slow);
}

/* Heads of 16 columns with sections [4, 2, 2]: the pairs turn by time, row, column, time, row, column, time, time. */
static void check_positions(const char *name, const char *plain_name, double magnitude)
{
    static const int axis[8] = {0, 1, 2, 0, 1, 2, 0, 0};
    struct reference r = reference_new("nano.F32");
    struct file f = odd_model(name), plain = odd_model(plain_name);
    struct quern_engine *e = device_load(&f, (struct quern_options){.chunk = ROWS}),
                        *p = device_load(&plain, (struct quern_options){.chunk = ROWS});
    int half = e->model->config.head_dim / 2;
    struct hand h;
    hand_fill(&h, &r);
    CHECK_EQ(half, 8);
    for (int i = 0; i < ROWS; i++) h.tokens[i] %= 256; /* its vocabulary is smaller */
    CHECK(same_bits(hand_run(e, &h), hand_run(p, &h), ROWS * e->model->config.vocab_size));
    for (int i = 0; i < ROWS; i++) h.pos[i][1] = 3 * i + 1, h.pos[i][2] = 7 * i + 2;
    hand_run(e, &h);
    for (int t = 0; t < ROWS; t++)
        for (int i = 0; i < half; i++) {
            double sine, cosine;
            num_sincos64(h.pos[t][axis[i]] * turn_of(e, i), &sine, &cosine);
            CHECK(seen.cosine[t * half + i] == (float)(cosine * magnitude));
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

/* The first columns of a head turn like a whole head of that size; the others stay. */
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
        RUN(be, OP_ROPE, 2, HEADS * DIM, .y = handle_of(be, y), .cosine = cosine, .sine = sine, .heads = HEADS,
            .rot = ROT);
        RUN(be, OP_ROPE, 2, HEADS * ROT, .y = handle_of(be, part), .cosine = cosine, .sine = sine, .heads = HEADS,
            .rot = ROT);
        for (int i = 0; i < 2 * HEADS; i++) {
            const float *before = x + i * DIM, *after = y + i * DIM;
            CHECK(same_bits(after, part + i * ROT, ROT) && same_bits(after + ROT, before + ROT, DIM - ROT) &&
                  !same_bits(after, before, ROT));
        }
        be->ops->free(be);
    }
    pool_free(pool);
    CHECK_EQ(mem.used, 0);
}

/* A model that turns half of each head: its logits differ from one that turns all, and equal those of the reference
 * kernels. */
static void models_that_turn_a_part(void)
{
    struct file f = odd_model("good-M09d.gguf"), whole = odd_model("good-M09b.gguf");
    int32_t ids[ROWS];
    for (int i = 0; i < ROWS; i++) ids[i] = 40 + 3 * i;
    struct quern_engine *e = engine_load(&f, (struct quern_options){.threads = 2}, SIZE_MAX),
                        *w = engine_load(&whole, (struct quern_options){0}, SIZE_MAX);
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

/* --- hidden states --------------------------------------------------------------------------------------------- */

static const float *hidden_last(struct quern_engine *e, struct quern_sequence *s)
{
    int first, n;
    while (quern_sequence_pending(s) > 0) CHECK_EQ(quern_step(e, 0), OK);
    const float *hidden = quern_hidden(s, &first, &n);
    CHECK(hidden && n == 1);
    return hidden;
}

/* Checks the hidden states of all tokens against those where each token is the last. */
static void check_states(struct quern_engine *e, const int32_t *ids, int total)
{
    struct quern_sequence *s = sequence_new(e), *other = sequence_new(e);
    int dim = e->model->config.dim, first, n;
    float *all = logits_new(total, dim);
    CHECK_EQ(quern_sequence_set(s, ids, total, QUERN_STATES), 0);
    for (int done = 0; done < total; done += n) {
        CHECK_EQ(quern_step(e, 0), OK);
        const float *states = quern_hidden(s, &first, &n);
        CHECK(n == 0 || (states && first == done)); /* steps without states may come first */
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

/* The output head gives the logits of a hidden state; beside a conversation that wants logits, both are the same as
 * alone. */
static void hidden_states(void)
{
    struct reference r = reference_new("nano.F32");
    struct quern_engine *e = engine_load(&r.file, (struct quern_options){0}, SIZE_MAX),
                        *device = device_load(&r.file, (struct quern_options){0});
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
    CHECK(!quern_output_row(e, GOLDEN_VOCAB, row) && !quern_output_row(e, -1, row)); /* the model has no classes */
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
    played_deliver(device->be);
    quern_arrive(device, 10);
    CHECK(same_bits(quern_hidden(d, &first, &n), alone, dim));
    quern_free(device);
    free(alone);
    free(row);
    free(other_row);
    reference_free(&r);
}

static const struct check tests[] = {
    {"rows_of_features", rows_of_features},
    {"rows_added_after_layers", rows_added_after_layers},
    {"three_positions", three_positions},
    {"part_of_a_head", part_of_a_head},
    {"models_that_turn_a_part", models_that_turn_a_part},
    {"hidden_states", hidden_states},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
