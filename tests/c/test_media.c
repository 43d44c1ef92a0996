/* SPDX-License-Identifier: MIT
 *
 * Images and videos in conversations: against transformers (tests/fixtures/vision); and other sequences, chunks, caches
 * and abandoned work never change a bit.
 */
#include "engine/saved.h"
#include "engine/encode.h"
#include "engine/projector.h"
#include "visions.h"

#include <math.h>

static const char *const models[] = {"dense", "moe"};

enum { CONTEXT = 512, VOCAB = 320 };

static struct quern_options with_context(struct quern_options o)
{
    if (!o.context_size) o.context_size = CONTEXT;
    return o;
}

/* The model of the tests below; see HYBRID. */
static const char *chosen = "dense";

static struct quern_engine *pair(struct quern_options o) { return pair_load(chosen, "f16", with_context(o)); }

/* --- against transformers ------------------------------------------------------------------------------------- */

/* The prompt becomes these ids, with as many pads as each medium has tokens. */
static void check_ids(struct quern_engine *e, const struct vision_set *v, const struct vision_case *c)
{
    char name[60];
    int32_t ids[CASE_TOKENS];
    snprintf(name, sizeof name, "%.9s.%.15s.prompt", v->model, c->name);
    struct file text = file_read(built_fixtures("/vision"), name);
    int64_t n = quern_tokenize(e, (struct bytes){text.data, text.size}, QUERN_CHAT, 0, ids, CASE_TOKENS);
    const struct source *s = c->media;
    int at = 0, pair = 0;
    for (int64_t i = 0; i < n; i++) {
        int tokens = 1;
        if (ids[i] == quern_media_pad(e, QUERN_IMAGE) || ids[i] == quern_media_pad(e, QUERN_VIDEO)) {
            CHECK_EQ(ids[i], quern_media_pad(e, s->video ? QUERN_VIDEO : QUERN_IMAGE));
            tokens = s->to_height / 32 * (s->to_width / 32);
            if (++pair == s->pairs) s++, pair = 0;
        }
        for (int k = 0; k < tokens; k++, at++) CHECK(at < c->n && ids[i] == c->ids[at]);
    }
    CHECK_EQ(at, c->n);
    CHECK_EQ(s - c->media, c->n_media);
    file_free(&text);
}

static void check_positions(const struct quern_sequence *s, const struct vision_case *c)
{
    int32_t pos[3];
    const struct medium *m;
    for (int i = 0; i < c->n; i++) {
        media_at(s->media, s->n_media, i, pos, &m);
        for (int k = 0; k < 3; k++) CHECK_EQ(pos[k], c->pos[k][i]);
    }
    media_at(s->media, s->n_media, c->n, pos, &m);
    for (int k = 0; k < 3; k++) CHECK_EQ(pos[k], c->n + c->delta);
}

/* KL(p || q) of softmaxes. */
static double divergence(const float *p, const float *q)
{
    double sp = 0, sq = 0, kl = 0;
    for (int i = 0; i < VOCAB; i++) sp += exp(p[i]), sq += exp(q[i]);
    for (int i = 0; i < VOCAB; i++) kl += exp(p[i]) / sp * ((double)p[i] - log(sp) - q[i] + log(sq));
    return kl;
}

static bool is_pad(const struct quern_engine *e, int32_t id) { return id == e->pads[0] || id == e->pads[1]; }

struct distance {
    double worst, kl; /* of a logit; the mean over text rows */
};

/* format: the folder of a case's golden logits. */
static struct distance distance_of(const struct quern_engine *e, const struct vision_set *v,
                                   const struct vision_case *c, const float *all, const char *format)
{
    char name[60];
    snprintf(name, sizeof name, format, c->name);
    struct file golden = vision_file(v->model, name);
    CHECK_EQ(golden.size, (size_t)c->n_rows * VOCAB * sizeof(float));
    double worst = 0, kl = 0;
    int rows = 0;
    for (int r = 0; r < c->n_rows; r++) {
        const float *g = (const float *)golden.data + r * VOCAB, *x = all + c->rows[r] * VOCAB;
        for (int i = 0; i < VOCAB; i++) worst = fmax(worst, fabs((double)g[i] - x[i]));
        if (is_pad(e, c->ids[c->rows[r]])) continue;
        kl += divergence(g, x);
        rows++;
    }
    printf("# %s %s: off by %.2g of the scale, KL %.2g\n", v->model, c->name, worst / c->scale, kl / rows);
    file_free(&golden);
    return (struct distance){worst, kl / rows};
}

static void check_logits(struct quern_engine *e, const struct vision_set *v, const struct vision_case *c,
                         const float *all, double bound, double kl)
{
    struct distance d = distance_of(e, v, c, all, "logits/%.15s.f32");
    CHECK(d.worst <= bound * c->scale);
    CHECK(d.kl <= kl);
}

static void check_greedy(struct quern_engine *e, struct quern_sequence *s, const struct vision_set *v,
                         const struct vision_case *c)
{
    CHECK(case_set(e, s, v, c, QUERN_LAST) >= 0);
    logits_last(e, s);
    CHECK_EQ(quern_sample_begin(s, &(struct sampler_params){0}), OK);
    for (int i = 0; i < GREEDY; i++) {
        CHECK_EQ(quern_sample(s), c->greedy[i]);
        CHECK_EQ(quern_sequence_push(s, c->greedy[i]), OK);
        logits_last(e, s);
    }
}

static void check_model(struct quern_engine *e, const char *model, double bound, double kl)
{
    struct vision_set *v = vision_set(model);
    struct quern_sequence *s = sequence_new(e);
    CHECK_EQ(quern_vocab_size(e), VOCAB);
    for (const struct vision_case *c = v->cases; c < v->cases + v->n; c++) {
        check_ids(e, v, c);
        float *all = case_logits(e, s, v, c);
        check_positions(s, c);
        check_logits(e, v, c, all, bound, kl);
        if (kl < 1e-6 || c->margin > 0.2) check_greedy(e, s, v, c);
        free(all);
    }
    free(v);
    quern_free(e);
}

static void golden_pair(void)
{
    check_model(pair((struct quern_options){.kv = QUERN_KV_F32}), chosen, 2e-4, 1e-9);
}

static void golden_folders(void)
{
    for (int i = 0; i < 2; i++)
        check_model(folder_load(models[i], with_context((struct quern_options){.kv = QUERN_KV_F32})), models[i], 2e-4,
                    1e-9);
}

static void golden_f16_cache(void)
{
    for (int i = 0; i < 2; i++)
        check_model(folder_load(models[i], with_context((struct quern_options){0})), models[i], 1e-2, 1e-5);
}

static void golden_hybrid(void)
{
    check_model(pair_load("hybrid", "f16", with_context((struct quern_options){.kv = QUERN_KV_F32})), "hybrid", 2e-4,
                1e-9);
    check_model(pair_load("hybrid", "f16", with_context((struct quern_options){0})), "hybrid", 1e-2, 1e-5);
}

/* Encoder and language model both in Q8_0, compared with llama.cpp's int8 arithmetic for both (int8act.json has its
 * distances). */
static void golden_q8_0(void)
{
    static const struct {
        const char *name;
        double kl;
    } theirs[] = {{"text", 0.0043764},  {"image", 0.0144596}, {"exact", 0.0062936}, {"two", 0.0064605},
                  {"alpha", 0.0045779}, {"kinds", 0.0043814}, {"later", 0.0032739}};
    enum { N = sizeof theirs / sizeof *theirs };
    struct vision_set *v = vision_set("dense");
    struct quern_engine *e = pair_load("dense", "q8_0", with_context((struct quern_options){.kv = QUERN_KV_F32}));
    struct quern_sequence *s = sequence_new(e);
    double ours_sum = 0, their_sum = 0;
    for (int i = 0; i < N; i++) {
        const struct vision_case *c = vision_case(v, theirs[i].name);
        float *all = case_logits(e, s, v, c);
        struct distance d = distance_of(e, v, c, all, "q8_0/%.15s.logits.f32");
        ours_sum += d.kl;
        their_sum += theirs[i].kl;
        if (!i) CHECK(d.kl <= 1.25 * theirs[i].kl);
        free(all);
    }
    printf("# Q8_0: KL %.2g, %.2f times llama.cpp's\n", ours_sum / N, ours_sum / their_sum);
    CHECK(ours_sum <= 1.6 * their_sum);
    quern_free(e);
    free(v);
}

/* --- the same bits -------------------------------------------------------------------------------------------- */

static float *logits_of(struct quern_engine *e, const struct vision_set *v, const char *name)
{
    struct quern_sequence *s = sequence_new(e);
    float *all = case_logits(e, s, v, vision_case(v, name));
    quern_sequence_free(s);
    return all;
}

static void same_bits_however(void)
{
    static const char *const names[] = {"later", "video", "two"};
    const struct quern_options ways[] = {{.threads = 2}, {.threads = 3}, {.threads = 4},  {.threads = 8},  {.chunk = 1},
                                         {.chunk = 7},   {.chunk = 64},  {.chunk = 1024}, {.scalar = true}};
    struct vision_set *v = vision_set(chosen);
    struct quern_engine *plain = pair((struct quern_options){0}),
                        *folder = folder_load(chosen, with_context((struct quern_options){0}));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct vision_case *c = vision_case(v, names[i]);
        float *expected = logits_of(plain, v, c->name), *same = logits_of(folder, v, c->name);
        CHECK(same_bits(expected, same, c->n * VOCAB));
        free(same);
        for (size_t w = i % check_every(3); w < sizeof ways / sizeof *ways; w += check_every(3)) {
            struct quern_engine *e = pair(ways[w]);
            same = logits_of(e, v, c->name);
            CHECK(same_bits(expected, same, c->n * VOCAB));
            free(same);
            quern_free(e);
        }
        free(expected);
    }
    quern_free(plain);
    quern_free(folder);
    free(v);
}

/* The last row of each case, from a new engine. */
static float *last_rows(const struct vision_set *v)
{
    float *rows = logits_new(v->n, VOCAB);
    for (int i = 0; i < v->n; i++) {
        struct quern_engine *e = pair((struct quern_options){0});
        struct quern_sequence *s = sequence_new(e);
        CHECK_EQ(case_set(e, s, v, &v->cases[i], QUERN_LAST), 0);
        memcpy(rows + i * VOCAB, logits_last(e, s), VOCAB * sizeof *rows);
        quern_free(e);
    }
    return rows;
}

/* Makes steps until every sequence has logits, some of them cut short; stores the last logits of each. */
static void step_all(struct quern_engine *e, struct quern_sequence *const *s, int n, float *rows)
{
    bool made[CASES_MOST] = {false};
    for (int left = n; left > 0;) {
        int status = quern_step(e, 1);
        CHECK(status == OK || status == NEED_MORE);
        check_pages(e);
        for (int i = 0; i < n; i++) {
            int first, rows_made;
            const float *logits = status == OK ? quern_logits(s[i], &first, &rows_made) : NULL;
            if (!logits) continue;
            memcpy(rows + i * VOCAB, logits, VOCAB * sizeof *rows);
            left -= !made[i];
            made[i] = true;
        }
    }
}

/* Runs all cases, several at a time, with a media store that holds little more than one image. */
static void same_bits_together(void)
{
    struct vision_set *v = vision_set(chosen);
    float *expected = last_rows(v), *rows = logits_new(v->n, VOCAB);
    for (int parallel = 1; parallel <= 16; parallel *= 4)
        for (int store = 0; store < 2; store++) {
            struct quern_engine *e = pair((struct quern_options){
                .parallel = parallel, .kv_positions = 1024, .media_cache = store, .max_pixels = store ? 20480 : 0});
            struct quern_sequence *s[CASES_MOST];
            for (int i = 0; i < v->n; i++) {
                s[i] = sequence_new(e);
                CHECK(case_set(e, s[i], v, &v->cases[i], QUERN_LAST) >= 0);
            }
            step_all(e, s, v->n, rows);
            CHECK(same_bits(expected, rows, v->n * VOCAB));
            quern_free(e);
        }
    free(rows);
    free(expected);
    free(v);
}

/* --- known media ---------------------------------------------------------------------------------------------- */

/* Computes all pending tokens; returns the number of visual tokens that were encoded. */
static int count_parts(struct quern_engine *e, struct quern_sequence *s)
{
    int before = s->looked;
    while (quern_sequence_pending(s) > 0) CHECK(quern_step(e, 0) == OK);
    return s->looked - before;
}

/* A known image costs no encoding; without its pages it costs reading its features; without its features it is encoded
 * again. */
static void known_is_not_looked_at(void)
{
    struct vision_set *v = vision_set(chosen);
    const struct vision_case *c = vision_case(v, "exact"), *other = vision_case(v, "later");
    struct quern_engine *e = pair((struct quern_options){.max_pixels = 20480, .media_cache = 1});
    struct quern_sequence *s = sequence_new(e);
    float first[VOCAB];
    CHECK_EQ(case_set(e, s, v, c, QUERN_LAST), 0);
    CHECK_EQ(count_parts(e, s), 12);
    memcpy(first, logits_last(e, s), sizeof first);
    CHECK_EQ(case_set(e, s, v, c, QUERN_LAST), c->n - 1); /* by its pages */
    CHECK_EQ(count_parts(e, s), 0);
    CHECK(same_bits(first, logits_last(e, s), VOCAB));
    quern_sequence_free(s);
    disturb_pages(e, 1);
    s = sequence_new(e);
    CHECK_EQ(case_set(e, s, v, c, QUERN_LAST), 0); /* by its features */
    CHECK_EQ(count_parts(e, s), 0);
    CHECK(same_bits(first, logits_last(e, s), VOCAB));
    /* this case and the next have 58 tokens together: no room for the first */
    CHECK(case_set(e, s, v, other, QUERN_LAST) >= 0);
    CHECK_EQ(count_parts(e, s), 12);
    CHECK(case_set(e, s, v, vision_case(v, "alpha"), QUERN_LAST) >= 0);
    CHECK_EQ(count_parts(e, s), 22);
    CHECK(case_set(e, s, v, vision_case(v, "video"), QUERN_LAST) >= 0);
    CHECK_EQ(count_parts(e, s), 12);
    CHECK(case_set(e, s, v, vision_case(v, "kinds"), QUERN_LAST) >= 0);
    CHECK_EQ(count_parts(e, s), 12);
    quern_sequence_free(s);
    disturb_pages(e, 2);
    s = sequence_new(e);
    CHECK_EQ(case_set(e, s, v, c, QUERN_LAST), 0);
    CHECK_EQ(count_parts(e, s), 12);
    CHECK(same_bits(first, logits_last(e, s), VOCAB));
    quern_free(e);
    free(v);
}

/* The first n ids of a case. */
static struct vision_case cut(const struct vision_case *c, int n, int n_media)
{
    struct vision_case part = *c;
    part.n = n;
    part.n_media = n_media;
    return part;
}

static void second_turn_adds_a_image(void)
{
    struct vision_set *v = vision_set(chosen);
    const struct vision_case *c = vision_case(v, "later");
    struct quern_engine *fresh = pair((struct quern_options){0}), *e = pair((struct quern_options){0});
    struct quern_sequence *s = sequence_new(e), *t = sequence_new(fresh);
    int second = 0, runs = 0;
    for (int i = 1; i < c->n && !second; i++) {
        runs += is_pad(e, c->ids[i]) && !is_pad(e, c->ids[i - 1]);
        if (runs == 2) second = i;
    }
    CHECK(second > 100);
    struct vision_case turn = cut(c, second - 5, 1);
    CHECK_EQ(case_set(e, s, v, &turn, QUERN_LAST), 0);
    CHECK_EQ(count_parts(e, s), 6);
    CHECK_EQ(case_set(e, s, v, c, QUERN_LAST), turn.n);
    CHECK_EQ(count_parts(e, s), 6); /* only the new image */
    CHECK_EQ(case_set(fresh, t, v, c, QUERN_LAST), 0);
    CHECK(same_bits(logits_last(fresh, t), logits_last(e, s), VOCAB));
    quern_free(e);
    quern_free(fresh);
    free(v);
}

/* Adds an image with other content, of the size of a source. */
static uint64_t negative_add(struct quern_engine *e, const struct source *s)
{
    struct pixels p = frame_read(s, 0);
    struct image_grid g = {p.height, p.width, 1, p.height / 32, p.width / 32};
    uint64_t id;
    for (int i = 0; i < p.height * p.width * 3; i++) p.data[i] = (uint8_t)~p.data[i];
    CHECK_EQ(quern_media_add(e, &g, p.data, NULL, 0, &id), OK);
    free(p.data);
    return id;
}

/* One of two images is replaced by its negative: everything before it is known, and nothing after it. */
static void replaced_images_share_nothing(void)
{
    struct vision_set *v = vision_set(chosen);
    const struct vision_case *c = vision_case(v, "two");
    for (int which = 0; which < 2; which++) {
        struct quern_engine *e = pair((struct quern_options){0}), *fresh = pair((struct quern_options){0});
        struct quern_sequence *s = sequence_new(e), *t = sequence_new(fresh);
        float before[VOCAB];
        uint64_t media[PAIRS_MOST], same[PAIRS_MOST];
        CHECK_EQ(case_set(e, s, v, c, QUERN_LAST), 0);
        int first = s->media[which].first;
        CHECK_EQ(quern_sequence_marks(s, &first, 1), OK); /* a model with states remembers one here */
        memcpy(before, logits_last(e, s), sizeof before);
        CHECK_EQ(media_add(e, v, c, false, media), 2);
        CHECK_EQ(media_add(fresh, v, c, false, same), 2);
        CHECK(media[0] == same[0] && media[1] == same[1]);
        media[which] = negative_add(e, &c->media[which]);
        same[which] = negative_add(fresh, &c->media[which]);
        CHECK_EQ(quern_sequence_set_media(s, c->ids, c->n, media, 2, QUERN_LAST), first);
        CHECK_EQ(quern_sequence_set_media(t, c->ids, c->n, same, 2, QUERN_LAST), 0);
        const float *changed = logits_last(e, s);
        CHECK(same_bits(logits_last(fresh, t), changed, VOCAB));
        CHECK(!same_bits(before, changed, VOCAB));
        quern_free(e);
        quern_free(fresh);
    }
    free(v);
}

/* Pairs are added and encoded from the last to the first. */
static void pairs_in_any_order(void)
{
    struct vision_set *v = vision_set(chosen);
    const struct vision_case *c = vision_case(v, "mixed");
    struct quern_engine *e = pair((struct quern_options){0});
    struct quern_sequence *s = sequence_new(e);
    uint64_t media[PAIRS_MOST], again[PAIRS_MOST];
    float *expected = logits_of(e, v, c->name);
    quern_free(e);
    e = pair((struct quern_options){0});
    s = sequence_new(e);
    int n = media_add(e, v, c, true, media), tokens, width;
    CHECK_EQ(n, 4);
    for (int i = n - 1; i >= 0; i--) {
        const float *made;
        CHECK_EQ(quern_media_encode(e, media[i], 0, &made, &tokens, &width), OK);
        CHECK_EQ(tokens, 6);
        CHECK_EQ(width, 3 * 64);
    }
    CHECK_EQ(quern_sequence_set_media(s, c->ids, c->n, media, n, QUERN_LAST), 0);
    CHECK_EQ(count_parts(e, s), 0);
    CHECK(same_bits(expected + (c->n - 1) * VOCAB, logits_last(e, s), VOCAB));
    CHECK_EQ(media_add(e, v, c, false, again), n);
    CHECK(!memcmp(media, again, (size_t)n * sizeof *media));
    free(expected);
    quern_free(e);
    free(v);
}

/* Pages with images are saved and restored like others: their images are not encoded again. With another encoder, or
 * none, the pages do not match. */
static void saved_pages_have_images(void)
{
    static const struct bytes name = {(const uint8_t *)"c", 1};
    struct vision_set *v = vision_set(chosen);
    const struct vision_case *c = vision_case(v, "later");
    struct quern_engine *e = pair((struct quern_options){0});
    struct quern_sequence *s = sequence_new(e);
    uint8_t header[SAVED_HEADER], other[SAVED_HEADER];
    float last[VOCAB];
    CHECK_EQ(case_set(e, s, v, c, QUERN_LAST), 0);
    memcpy(last, logits_last(e, s), sizeof last);
    CHECK_EQ(case_set(e, s, v, c, QUERN_HELD), c->n - 1);
    CHECK_EQ(saved_open(s, name, header), OK);
    uint64_t size = saved_record(e);
    int n = 0;
    uint8_t *records = malloc(size * (uint64_t)(c->n / KV_PAGE));
    CHECK(records != NULL);
    while (n < c->n / KV_PAGE && saved_take(s, records + size * (uint64_t)n) == OK) n++;
    CHECK_EQ(n, c->n / KV_PAGE);
    quern_free(e);
    e = pair((struct quern_options){0});
    s = sequence_new(e);
    CHECK_EQ(case_set(e, s, v, c, QUERN_HELD), 0);
    CHECK_EQ(saved_open(s, name, other), OK);
    CHECK(!memcmp(header, other, sizeof header));
    for (int i = 0; i < n; i++) CHECK_EQ(saved_give(s, records + size * (uint64_t)i, size), OK);
    CHECK_EQ(case_set(e, s, v, c, QUERN_LAST), n * KV_PAGE);
    CHECK_EQ(count_parts(e, s), c->n_media == 2 ? 0 : -1);
    CHECK(same_bits(last, logits_last(e, s), VOCAB));
    quern_free(e);
    struct file f = vision_file("dense", "f16/model.gguf");
    e = engine_load(&f, with_context((struct quern_options){0}), 1 << 20);
    s = sequence_new(e);
    CHECK_EQ(quern_sequence_set(s, (int32_t[]){1, 2}, 2, QUERN_HELD), 0);
    CHECK_EQ(saved_open(s, name, other), OK);
    CHECK(memcmp(header, other, sizeof header));
    quern_free(e);
    file_free(&f);
    free(records);
    free(v);
}

/* --- turns ------------------------------------------------------------------------------------------------------ */

static struct quern_sequence *reply_begin(struct quern_engine *e, const struct vision_set *v, const char *name,
                                          int tokens)
{
    struct quern_sequence *s = sequence_new(e);
    CHECK(case_set(e, s, v, vision_case(v, name), QUERN_HELD) >= 0);
    CHECK_EQ(quern_reply_begin(s, &(struct quern_reply){.max_tokens = tokens}), OK);
    return s;
}

/* A reply's tokens and events, until it ends. */
struct told {
    int n, looks, done, total;
    bool ended;
    int32_t ids[64];
};

static void listen(struct quern_engine *e, const struct quern_sequence *s, struct told *t)
{
    int n;
    const struct quern_event *event = quern_events(e, &n);
    for (; n-- > 0; event++) {
        if (event->number != quern_sequence_number(s)) continue;
        if (event->type == QUERN_TOKEN && t->n < 64) t->ids[t->n++] = event->token;
        CHECK(event->type != QUERN_END || event->end != QUERN_ERROR);
        t->ended |= event->type == QUERN_END;
        if (event->type != QUERN_ENCODE) continue;
        CHECK(event->done >= t->done && event->done <= event->total && event->total > 0);
        t->looks++;
        t->done = event->done;
        t->total = event->total;
    }
}

static struct told reply_alone(const struct vision_set *v, const char *name)
{
    struct quern_engine *e = pair((struct quern_options){0});
    struct quern_sequence *s = reply_begin(e, v, name, 40);
    struct told t = {0};
    while (!t.ended) {
        CHECK(quern_step(e, 0) >= 0);
        listen(e, s, &t);
    }
    CHECK(t.looks > 0);
    CHECK_EQ(t.done, t.total);
    quern_free(e);
    return t;
}

/* A clock by which each part takes this long. */
enum { PART_MS = 20 };
static double clock_now, clock_tick;
static double ticking(void) { return clock_now += clock_tick; }

/* Others continue to write while images are encoded, one token in every step, and their tokens do not change; progress
 * is reported up to the end. */
static void others_write_on(void)
{
    static const char *const names[] = {"text", "later", "video", "two"};
    struct vision_set *v = vision_set(chosen);
    struct told alone[4], t[4] = {0};
    clock_tick = PART_MS / 2;
    for (int i = 1; i < 4; i++) alone[i] = reply_alone(v, names[i]);
    const struct quern_options options = {.parallel = 4, .kv_positions = 2048, .now = ticking, .no_drafts = true};
    struct quern_engine *e = pair(options);
    struct quern_sequence *s[4] = {reply_begin(e, v, "text", 60)};
    double alone_ms = 0, worst = 0;
    for (int i = 0; i < 5; i++) {
        double begin = clock_now;
        CHECK_EQ(quern_step(e, 0), OK);
        listen(e, s[0], &t[0]);
        alone_ms = clock_now - begin;
    }
    for (int i = 1; i < 4; i++) s[i] = reply_begin(e, v, names[i], 40);
    bool all = false;
    for (double last = clock_now; !all; all = t[1].ended && t[2].ended && t[3].ended) {
        int before = t[0].n;
        CHECK(quern_step(e, 0) == OK);
        for (int i = 0; i < 4; i++) listen(e, s[i], &t[i]);
        if (!t[0].ended && !t[3].ended) CHECK_EQ(t[0].n, before + 1); /* F1 */
        worst = fmax(worst, clock_now - last);
        last = clock_now;
    }
    printf("# a step alone %g ms, the longest %g ms\n", alone_ms, worst);
    CHECK(worst <= 2 * alone_ms + 2 * PART_MS); /* as beside readers without images, and one more part */
    for (int i = 1; i < 4; i++) {
        CHECK_EQ(t[i].n, alone[i].n);
        CHECK(!memcmp(t[i].ids, alone[i].ids, (size_t)t[i].n * sizeof *t[i].ids));
        CHECK(t[i].looks > 0);
        CHECK_EQ(t[i].done, t[i].total);
    }
    quern_free(e);
    free(v);
}

/* A step may stop at every part: for the budget, and for the attention word. */
static void stops_at_every_part(void)
{
    struct vision_set *v = vision_set(chosen);
    struct quern_engine *e = pair((struct quern_options){0});
    struct quern_sequence *s = sequence_new(e);
    float *expected = logits_of(e, v, "image");
    const struct vision_case *c = vision_case(v, "image");
    quern_free(e);
    e = pair((struct quern_options){0});
    s = sequence_new(e);
    CHECK_EQ(case_set(e, s, v, c, QUERN_LAST), 0);
    int stops = 0, beats = 0, last = 0;
    quern_control(e)->attention = 1;
    for (int status = 1; status; stops++) {
        status = quern_step(e, 0);
        CHECK(status == OK || status == NEED_MORE);
        CHECK_EQ(quern_control(e)->heartbeat - last, beats ? 1 : quern_control(e)->heartbeat - last);
        last = quern_control(e)->heartbeat;
        beats = 1;
        if (!quern_sequence_pending(s)) break;
        if (status == OK) status = NEED_MORE; /* the text before the image was one step */
    }
    CHECK(stops > vision_parts(e->projector->vision) + 3);
    CHECK(same_bits(expected + (c->n - 1) * VOCAB, logits_last(e, s), VOCAB));
    free(expected);
    quern_free(e);
    free(v);
}

/* A sequence that leaves while its image is encoded leaves nothing behind; another one that wants the same image gets
 * it. */
static void leaving_while_looked_at(void)
{
    struct vision_set *v = vision_set(chosen);
    const struct vision_case *c = vision_case(v, "image");
    float *rows = last_rows(v);
    const float *expected = rows + (c - v->cases) * VOCAB;
    for (int way = 0; way < 4; way++)
        for (int parts = 1 + way; parts < 30; parts += (int)check_every(4)) { /* each at different places */
            struct quern_engine *e = pair((struct quern_options){0});
            struct quern_sequence *s = sequence_new(e), *t = way == 2 ? sequence_new(e) : NULL;
            CHECK_EQ(case_set(e, s, v, c, QUERN_LAST), 0);
            if (t) CHECK_EQ(case_set(e, t, v, c, QUERN_LAST), 0);
            quern_control(e)->attention = 1;
            for (int i = 0; i < parts; i++) CHECK(quern_step(e, 0) >= 0);
            quern_control(e)->attention = 0;
            if (way == 1) CHECK(quern_sequence_set(s, c->ids, 5, QUERN_LAST) >= 0);
            else quern_sequence_free(s);
            if (!t) t = sequence_new(e);
            if (way == 3) {
                CHECK(case_set(e, t, v, vision_case(v, "two"), QUERN_LAST) >= 0);
                logits_last(e, t);
            }
            if (way != 2) CHECK(case_set(e, t, v, c, QUERN_LAST) >= 0);
            CHECK(same_bits(expected, logits_last(e, t), VOCAB));
            quern_sequence_free(t);
            if (way == 1) quern_sequence_free(s);
            CHECK(quern_step(e, 0) == OK);
            for (const struct medium *m = e->projector->store.first; m; m = m->next)
                CHECK(!m->held && m->whole && !m->frames[0]);
            quern_free(e);
        }
    free(rows);
    free(v);
}

/* In a pool with room for one conversation, replies lose their pages in the middle of their images. */
static void let_go_and_looked_at_again(void)
{
    static const char *const names[] = {"later", "image", "two", "video"};
    struct vision_set *v = vision_set(chosen);
    struct told alone[4], t[4] = {0};
    for (int i = 0; i < 4; i++) alone[i] = reply_alone(v, names[i]);
    struct quern_engine *e =
        pair_load(chosen, "f16",
                  (struct quern_options){.context_size = 288, .parallel = 4, .max_pixels = 20480, .media_cache = 1});
    struct quern_sequence *s[4];
    for (int i = 0; i < 4; i++) s[i] = reply_begin(e, v, names[i], 40);
    for (bool all = false; !all;) {
        CHECK(quern_step(e, 1) >= 0);
        check_pages(e);
        all = true;
        for (int i = 0; i < 4; i++) listen(e, s[i], &t[i]), all &= t[i].ended;
    }
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(t[i].n, alone[i].n);
        CHECK(!memcmp(t[i].ids, alone[i].ids, (size_t)t[i].n * sizeof *t[i].ids));
    }
    quern_free(e);
    free(v);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static void plan_is_the_peak(void)
{
    const struct quern_options ways[] = {{0},
                                         {.max_pixels = 20480, .media_cache = 100000},
                                         {.threads = 3, .kv = QUERN_KV_F32},
                                         {.max_pixels = 4000000, .quantize = QUERN_TO_Q8}};
    struct vision_set *v = vision_set(chosen);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (int folder = 0; folder < 2; folder++) {
            struct quern_engine *e = folder ? folder_load("dense", ways[w]) : pair_load("dense", "f16", ways[w]);
            float *all = logits_of(e, v, "mixed");
            uint64_t used, peak;
            quern_memory(e, &used, &peak);
            /* for an image of the largest size, which this one is not */
            double pixels = 3.0 * 256 * e->projector->max_patches;
            double off = 100.0 * ((double)quern_plan(e)->total - pixels - (double)peak) / (double)peak;
            printf("# planned %llu, peak %llu (%+.2f %%)\n", (unsigned long long)quern_plan(e)->total,
                   (unsigned long long)peak, off);
            CHECK(off > -3 && off < 3);
            free(all);
            quern_free(e);
        }
    free(v);
}

/* Without images, a model with vision behaves as the model without, and takes no memory for missing images. */
static void text_is_what_it_was(void)
{
    struct vision_set *v = vision_set(chosen);
    const struct vision_case *c = vision_case(v, "text");
    struct file f = vision_file("dense", "f16/model.gguf");
    struct quern_engine *blind = engine_load(&f, with_context((struct quern_options){0}), 1 << 20),
                        *e = pair((struct quern_options){0});
    struct quern_sequence *s = sequence_new(blind);
    float *all = logits_new(c->n, VOCAB), *same = logits_of(e, v, "text");
    CHECK(!quern_sees(blind) && quern_sees(e));
    logits_all(blind, s, c->ids, c->n, all);
    CHECK(same_bits(all, same, c->n * VOCAB));
    CHECK(!blind->projector);
    struct quern_engine *out = folder_load("dense", with_context((struct quern_options){.no_vision = true}));
    CHECK(!quern_sees(out) && strstr(quern_info(out), "\"vision\":null"));
    CHECK(strstr(quern_info(e), "\"vision\":{\"layers\":4,"));
    CHECK_EQ(quern_plan(out)->weights, quern_plan(blind)->weights);
    free(all);
    free(same);
    file_free(&f);
    quern_free(out);
    quern_free(e);
    quern_free(blind);
    free(v);
}

static void profile_counts_images(void)
{
    struct vision_set *v = vision_set(chosen);
    struct quern_engine *e = pair((struct quern_options){.profile = true});
    struct quern_sequence *s = sequence_new(e);
    CHECK_EQ(case_set(e, s, v, vision_case(v, "two"), QUERN_LAST), 0);
    logits_last(e, s);
    CHECK_EQ(profile_tokens(e->profile, PROFILE_VISION), 13);
    CHECK_EQ(profile_tokens(e->profile, PROFILE_PREFILL), vision_case(v, "two")->n);
    CHECK(profile_cost(e->profile, PROFILE_VISION, PROFILE_ALL, PROFILE_OUTSIDE).macs > 1e6);
    quern_free(e);
    free(v);
}

static void hundreds_of_images(void)
{
    enum { SIDE = 64 };
    static uint8_t rgb[SIDE * SIDE * 3];
    const int n = (int)check_length(100, 500); /* 85 of them fill the store */
    struct quern_engine *e = pair((struct quern_options){.media_cache = 1 << 18, .max_pixels = 1 << 16});
    const struct image_grid g = {SIDE, SIDE, 1, SIDE / 32, SIDE / 32};
    const int32_t pad = quern_media_pad(e, QUERN_IMAGE), ids[] = {1, 2, pad, pad, pad, pad, 3};
    uint64_t used, peak, after_ten = 0, state = 7;
    for (int i = 0; i < n; i++) {
        uint64_t id;
        for (size_t k = 0; k < sizeof rgb; k++) rgb[k] = (uint8_t)random_next(&state);
        struct quern_sequence *s = sequence_new(e);
        CHECK_EQ(quern_media_add(e, &g, rgb, NULL, 0, &id), OK);
        CHECK(quern_sequence_set_media(s, ids, 7, &id, 1, QUERN_LAST) >= 0);
        quern_media_release(e, id);
        logits_last(e, s);
        quern_sequence_free(s);
        quern_memory(e, &used, &peak);
        if (i == 9) after_ten = peak;
    }
    /* for an image that the store still has, a record of some 100 bytes remains */
    CHECK(peak - after_ten < (uint64_t)n * 256);
    quern_memory(e, &used, &peak);
    int known = 0;
    for (const struct medium *m = e->projector->store.first; m; m = m->next) known++;
    CHECK(known <= (1 << 18) / (4 * 3 * 64 * 4));
    quern_free(e);
}

/* Reads the first image of a case in a new sequence of a scope, to its end. Returns the number of parts encoded, and
 * the last logits. */
static int read_in_scope(struct quern_engine *e, const struct vision_case *c, uint32_t scope, float *logits)
{
    struct pixels p = frame_read(c->media, 0);
    struct image_grid g = {p.height, p.width, 1, p.height / 32, p.width / 32};
    struct quern_sequence *s = quern_sequence_new(e, scope, 0);
    uint64_t id;
    CHECK_EQ(quern_media_add(e, &g, p.data, NULL, scope, &id), OK);
    CHECK(quern_sequence_set_media(s, c->ids, c->n, &id, 1, QUERN_LAST) >= 0);
    quern_media_release(e, id);
    int parts = count_parts(e, s);
    memcpy(logits, logits_last(e, s), VOCAB * sizeof *logits);
    quern_sequence_free(s);
    free(p.data);
    return parts;
}

/* An image that one scope has shown is encoded again for another scope, with the same result. */
static void scopes_share_no_images(void)
{
    struct vision_set *v = vision_set(chosen);
    const struct vision_case *c = vision_case(v, "exact");
    struct quern_engine *e = pair((struct quern_options){0});
    float first[VOCAB], other[VOCAB];
    CHECK_EQ(read_in_scope(e, c, 0, first), 12);
    for (uint32_t scope = 1; scope < 3; scope++) {
        CHECK_EQ(read_in_scope(e, c, scope, other), 12);
        CHECK(same_bits(first, other, VOCAB));
    }
    for (uint32_t scope = 0; scope < 3; scope++) CHECK_EQ(read_in_scope(e, c, scope, other), 0);
    quern_free(e);
    free(v);
}

/* Shows an image of noise in a scope. */
static void show_noise(struct quern_engine *e, uint32_t scope, uint64_t state)
{
    enum { SIDE = 64 };
    static uint8_t rgb[SIDE * SIDE * 3];
    const struct image_grid g = {SIDE, SIDE, 1, SIDE / 32, SIDE / 32};
    uint64_t id;
    int tokens, width;
    const float *made;
    for (size_t k = 0; k < sizeof rgb; k++) rgb[k] = (uint8_t)random_next(&state);
    CHECK_EQ(quern_media_add(e, &g, rgb, NULL, scope, &id), OK);
    CHECK_EQ(quern_media_encode(e, id, 0, &made, &tokens, &width), OK);
    quern_media_release(e, id);
}

static int shown_in(const struct quern_engine *e, uint32_t scope)
{
    int n = 0;
    for (const struct medium *m = e->projector->store.first; m; m = m->next) n += m->scope == scope && m->whole;
    return n;
}

/* When two scopes show images, the one that goes on showing loses its own: the other's stay, up to half of the room. */
static void who_shows_much_gives_way(void)
{
    enum { ROOM = 8 };
    struct quern_engine *e = pair((struct quern_options){.media_cache = ROOM * 4 * 3 * 64 * 4, .max_pixels = 4096});
    for (uint64_t i = 0; i < 6; i++) show_noise(e, 1, 100 + i);
    for (uint64_t i = 0; i < 20; i++) show_noise(e, 2, 200 + i);
    CHECK_EQ(shown_in(e, 1), ROOM / 2);
    CHECK_EQ(shown_in(e, 2), ROOM / 2);
    for (uint64_t i = 0; i < 2; i++) show_noise(e, 3, 300 + i);
    CHECK_EQ(shown_in(e, 3), 2);
    for (uint64_t i = 0; i < 20; i++) show_noise(e, 2, 400 + i);
    CHECK_EQ(shown_in(e, 3), 2);
    CHECK_EQ(shown_in(e, 1), 3);
    quern_free(e);
}

/* --- wrong use --------------------------------------------------------------------------------------------------- */

static void expect(struct quern_engine *e, int status, int code, const char *rule)
{
    if (status != code || strcmp(quern_error(e)->rule, rule))
        printf("# %d %s: %s\n", status, quern_error(e)->rule, quern_error(e)->message);
    CHECK_EQ(status, code);
    CHECK(!strcmp(quern_error(e)->rule, rule));
}

static void wrong_media(void)
{
    struct vision_set *v = vision_set(chosen);
    const struct vision_case *c = vision_case(v, "two"), *video = vision_case(v, "video");
    struct quern_engine *e = pair((struct quern_options){.max_pixels = 20480});
    struct quern_sequence *s = sequence_new(e);
    uint64_t m[PAIRS_MOST], f[PAIRS_MOST], none = 1;
    struct image_grid g;
    CHECK_EQ(media_add(e, v, c, false, m), 2);
    CHECK_EQ(media_add(e, v, video, false, f), 2);
    expect(e, quern_sequence_set_media(s, c->ids, c->n, m, 1, QUERN_LAST), ERR_PARAM, "media");
    expect(e, quern_sequence_set_media(s, c->ids, c->n, NULL, 0, QUERN_LAST), ERR_PARAM, "media");
    expect(e, quern_sequence_set(s, c->ids, c->n, QUERN_LAST), ERR_PARAM, "media");
    expect(e, quern_sequence_set_media(s, c->ids, c->n, (uint64_t[]){m[0], m[1], m[0]}, 3, QUERN_LAST), ERR_PARAM,
           "media");
    expect(e, quern_sequence_set_media(s, c->ids, c->n, (uint64_t[]){m[1], m[0]}, 2, QUERN_LAST), ERR_PARAM, "media");
    expect(e, quern_sequence_set_media(s, c->ids, c->n, (uint64_t[]){m[0], none}, 2, QUERN_LAST), ERR_PARAM, "media");
    expect(e, quern_sequence_set_media(s, c->ids, c->n, (uint64_t[]){m[0], f[0]}, 2, QUERN_LAST), ERR_PARAM, "media");
    expect(e, quern_sequence_set_media(s, video->ids, video->n, (uint64_t[]){f[0], m[1]}, 2, QUERN_LAST), ERR_PARAM,
           "media");
    expect(e, quern_sequence_set_media(s, c->ids, 600, m, 2, QUERN_LAST), ERR_CONTEXT, "context");
    expect(e, quern_media_plan(e, QUERN_IMAGE, 4100, 20, 1, 0, 0, &g), ERR_SIZE, "aspect");
    expect(e, quern_media_plan(e, QUERN_IMAGE, 0, 20, 1, 0, 0, &g), ERR_SIZE, "sides");
    CHECK_EQ(quern_media_plan(e, QUERN_IMAGE, 3000, 3000, 1, 0, 1e9, &g), OK); /* cut to max_pixels */
    CHECK(g.height * g.width <= 20480);
    CHECK_EQ(quern_media_plan(e, QUERN_VIDEO, 300, 300, 20, 0, 1e9, &g), OK);
    CHECK(g.height * g.width <= 20480 && g.frames == 20);
    /* a narrow strip: it takes more pixels than max_pixels, and there is room for them */
    CHECK_EQ(quern_media_plan(e, QUERN_IMAGE, 2000, 10, 1, 0, 0, &g), OK);
    g = (struct image_grid){4096, 4096, 1, 128, 128};
    expect(e, quern_media_add(e, &g, (const uint8_t[1]){0}, NULL, 0, &none), ERR_SIZE, "pixels");
    g = (struct image_grid){64, 64, 1, 2, 3};
    expect(e, quern_media_add(e, &g, (const uint8_t[1]){0}, NULL, 0, &none), ERR_PARAM, "media");
    CHECK_EQ(quern_sequence_set_media(s, c->ids, c->n, m, 2, QUERN_LAST), 0);
    logits_last(e, s);
    quern_media_release(e, none);
    quern_media_release(e, m[0]);
    quern_media_release(e, m[0]); /* one release too many */
    CHECK(store_find(&e->projector->store, m[0]) != NULL); /* the sequence still holds it */
    quern_free(e);
    free(v);
}

/* Replaces the bytes `find` in a header by `with`, of the same length. */
static void patch(struct file *f, const char *find, const char *with)
{
    size_t n = strlen(find);
    CHECK_EQ(n, strlen(with));
    for (size_t i = 0; i + n <= f->size; i++)
        if (!memcmp(f->data + i, find, n)) {
            memcpy(f->data + i, with, n);
            return;
        }
    CHECK(!"found");
}

/* Pairs that do not match, refused at the model's header or at the projector's. */
static void wrong_pairs(void)
{
    static const char *const tokens[] = {"<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>"};
    struct file text = vision_file("dense", "f16/model.gguf"), projector = vision_file("dense", "f16/mmproj.gguf"),
                moe = vision_file("moe", "f16/model.gguf"), hybrid = vision_file("hybrid", "f16/model.gguf"),
                nano = golden_file("nano.F16", "gguf");
    const struct {
        const struct file *model, *projector;
        uint64_t said;
        int code;
        const char *rule;
    } pairs[] = {
        {&projector, NULL, 0, ERR_UNSUPPORTED, "projector"},
        {&text, &text, text.size, ERR_UNSUPPORTED, "projector"},
        {&nano, &projector, projector.size, ERR_UNSUPPORTED, "no-vision"},
        {&nano, &projector, 0, ERR_UNSUPPORTED, "no-vision"},
        {&moe, &projector, projector.size, ERR_INCONSISTENT, "deepstack"},
        {&hybrid, &projector, projector.size, ERR_INCONSISTENT, "deepstack"},
        {&text, &projector, 0, ERR_PARAM, "vision"},
        {&text, NULL, 1, ERR_FORMAT, "missing"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct quern_engine *e = quern_new(&(struct quern_options){.vision_size = pairs[i].said, .context_size = 64});
        int status = pairs[i].projector ? pair_feed(e, pairs[i].model, pairs[i].projector, 5000)
                                        : engine_feed(e, pairs[i].model, 5000);
        expect(e, status, pairs[i].code, pairs[i].rule);
        quern_free(e);
    }
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        struct file other = vision_file("dense", "f16/model.gguf");
        char with[24];
        snprintf(with, sizeof with, "<|X%.20s", tokens[i] + 3);
        patch(&other, tokens[i], with);
        struct quern_engine *e = quern_new(&(struct quern_options){.vision_size = projector.size, .context_size = 64});
        expect(e, pair_feed(e, &other, &projector, 5000), ERR_INCONSISTENT, "vision-token");
        quern_free(e);
        file_free(&other);
    }
    file_free(&text);
    file_free(&projector);
    file_free(&hybrid);
    file_free(&moe);
    file_free(&nano);
}

/* A model that needs more memory than there is, together with its projector, is refused at its own header, by the size
 * of the projector alone. */
static void refused_at_the_first_header(void)
{
    struct file text = vision_file("dense", "f16/model.gguf"), projector = vision_file("dense", "f16/mmproj.gguf");
    struct quern_options o = {.memory_limit = 300 << 20, .context_size = 64};
    for (int huge = 0; huge < 2; huge++) {
        o.vision_size = huge ? 400 << 20 : projector.size;
        struct quern_engine *e = quern_new(&o);
        size_t fed = 0;
        int status = OK;
        for (; !status && fed < text.size && !e->plan.total; fed += 4096)
            status = quern_feed(e, text.data + fed, text.size - fed < 4096 ? text.size - fed : 4096);
        CHECK_EQ(status, huge ? ERR_MEM_PLAN : OK);
        CHECK(fed < text.size);
        quern_free(e);
    }
    file_free(&text);
    file_free(&projector);
}

/* Every allocation fails once, from the beginning to the end of a conversation with images; nothing leaks, and the next
 * attempt succeeds. */
static void every_allocation_fails(void)
{
    struct vision_set *v = vision_set(chosen);
    struct file text = vision_file("dense", "f16/model.gguf"), projector = vision_file("dense", "f16/mmproj.gguf");
    const struct vision_case *c = vision_case(v, "two");
    bool over = false;
    for (uint64_t at = 1; !over; at++) {
        struct quern_engine *e = quern_new(&(struct quern_options){
            .vision_size = projector.size, .context_size = 128, .max_pixels = 20480, .media_cache = 1});
        CHECK(e != NULL);
        e->mem.fail_at = e->mem.n_allocs + at;
        int status = pair_feed(e, &text, &projector, 1 << 20);
        CHECK(status == OK || status == ERR_MEM_LOAD || status == ERR_MEM_PLAN);
        struct quern_sequence *s = status ? NULL : quern_sequence_new(e, 0, 0);
        for (int i = 0; s && i < 2; i++) {
            struct pixels p = frame_read(&c->media[i], 0);
            const struct image_grid g = {p.height, p.width, 1, p.height / 32, p.width / 32};
            uint64_t id, media[2];
            status = quern_media_add(e, &g, p.data, NULL, 0, &id);
            if (status) CHECK_EQ(status, ERR_MEM_LOAD), status = quern_media_add(e, &g, p.data, NULL, 0, &id);
            CHECK_EQ(status, OK);
            free(p.data);
            if (!i) continue;
            CHECK_EQ(media_add(e, v, c, false, media), 2);
            status = quern_sequence_set_media(s, c->ids, c->n, media, 2, QUERN_LAST);
            if (status)
                CHECK_EQ(status, ERR_MEM_LOAD),
                    status = quern_sequence_set_media(s, c->ids, c->n, media, 2, QUERN_LAST);
            CHECK_EQ(status, 0);
            logits_last(e, s);
        }
        over = e->mem.n_allocs < e->mem.fail_at;
        quern_sequence_free(s);
        quern_free(e);
    }
    file_free(&text);
    file_free(&projector);
    free(v);
}

static void inspected(void)
{
    struct file text = vision_file("dense", "f16/model.gguf"), projector = vision_file("dense", "f16/mmproj.gguf");
    struct quern_engine *e = quern_new(&(struct quern_options){.inspect = true});
    CHECK_EQ(pair_feed(e, &text, &projector, 5000), OK);
    CHECK(strstr(quern_info(e), "\"deepstack\":[0,2]"));
    quern_free(e);
    e = folder_load("dense", (struct quern_options){.inspect = true});
    CHECK(strstr(quern_info(e), "\"deepstack\":[0,2]") && strstr(quern_info(e), "\"maxPixels\":20480"));
    quern_free(e);
    file_free(&text);
    file_free(&projector);
}

/* --- Qwen3.5 ------------------------------------------------------------------------------------------------------ */

/* The same tests with states, sections of some columns, and nothing added after layers. */
#define HYBRID(test) \
    static void hybrid_##test(void) \
    { \
        chosen = "hybrid"; \
        test(); \
        chosen = "dense"; \
    }

/* Without sections no row has a row and a column: the model reads text, with the same bits, and takes no projector. */
static void hybrid_without_sections(void)
{
    struct vision_set *v = vision_set("hybrid");
    const struct vision_case *c = vision_case(v, "text");
    struct file f = vision_file("hybrid", "f16/model.gguf"), projector = projector_file_of("hybrid", "f16");
    struct quern_engine *sees = engine_load(&f, with_context((struct quern_options){0}), 1 << 20);
    patch(&f, "qwen35.rope.dimension_sections", "qwen35.rope.dimension_unknowns");
    struct quern_engine *e = engine_load(&f, with_context((struct quern_options){0}), 1 << 20);
    float *all = logits_new(c->n, VOCAB), *same = logits_new(c->n, VOCAB);
    CHECK(strstr(quern_info(sees), "\"takesVision\":true") && strstr(quern_info(e), "\"takesVision\":false"));
    logits_all(sees, sequence_new(sees), c->ids, c->n, all);
    logits_all(e, sequence_new(e), c->ids, c->n, same);
    CHECK(same_bits(all, same, c->n * VOCAB));
    quern_free(sees);
    quern_free(e);
    e = quern_new(&(struct quern_options){.vision_size = projector.size, .context_size = 64});
    expect(e, pair_feed(e, &f, &projector, 5000), ERR_UNSUPPORTED, "no-vision");
    quern_free(e);
    free(all);
    free(same);
    free(v);
    file_free(&f);
    file_free(&projector);
}

HYBRID(same_bits_however)
HYBRID(same_bits_together)
HYBRID(second_turn_adds_a_image)
HYBRID(replaced_images_share_nothing)
HYBRID(others_write_on)
HYBRID(stops_at_every_part)
HYBRID(leaving_while_looked_at)
HYBRID(let_go_and_looked_at_again)

int main(int argc, char **argv)
{
    static const struct check tests[] = {
        {"golden_pair", golden_pair},
        {"golden_folders", golden_folders},
        {"golden_f16_cache", golden_f16_cache},
        {"golden_hybrid", golden_hybrid},
        {"golden_q8_0", golden_q8_0},
        {"same_bits_however", same_bits_however},
        {"same_bits_together", same_bits_together},
        {"known_is_not_looked_at", known_is_not_looked_at},
        {"second_turn_adds_a_image", second_turn_adds_a_image},
        {"replaced_images_share_nothing", replaced_images_share_nothing},
        {"pairs_in_any_order", pairs_in_any_order},
        {"saved_pages_have_images", saved_pages_have_images},
        {"others_write_on", others_write_on},
        {"stops_at_every_part", stops_at_every_part},
        {"leaving_while_looked_at", leaving_while_looked_at},
        {"let_go_and_looked_at_again", let_go_and_looked_at_again},
        {"plan_is_the_peak", plan_is_the_peak},
        {"text_is_what_it_was", text_is_what_it_was},
        {"profile_counts_images", profile_counts_images},
        {"hundreds_of_images", hundreds_of_images},
        {"scopes_share_no_images", scopes_share_no_images},
        {"who_shows_much_gives_way", who_shows_much_gives_way},
        {"wrong_media", wrong_media},
        {"wrong_pairs", wrong_pairs},
        {"refused_at_the_first_header", refused_at_the_first_header},
        {"every_allocation_fails", every_allocation_fails},
        {"inspected", inspected},
        {"hybrid_without_sections", hybrid_without_sections},
        {"hybrid_same_bits_however", hybrid_same_bits_however},
        {"hybrid_same_bits_together", hybrid_same_bits_together},
        {"hybrid_second_turn_adds_a_image", hybrid_second_turn_adds_a_image},
        {"hybrid_replaced_images_share_nothing", hybrid_replaced_images_share_nothing},
        {"hybrid_others_write_on", hybrid_others_write_on},
        {"hybrid_stops_at_every_part", hybrid_stops_at_every_part},
        {"hybrid_leaving_while_looked_at", hybrid_leaving_while_looked_at},
        {"hybrid_let_go_and_looked_at_again", hybrid_let_go_and_looked_at_again},
    };
    return check_run(argc, argv, tests, sizeof tests / sizeof *tests);
}
