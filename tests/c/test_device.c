/* SPDX-License-Identifier: MIT
 *
 * An engine whose backend computes on a device and answers late: text, images and saved conversations have the same
 * bits as on the CPU. A lost device ends everything that was running, and nothing else.
 */
#include "engine/saved.h"
#include "played.h"
#include "visions.h"

static struct quern_options on_device(struct quern_options o)
{
    o.backend = BACKEND_PLAYED;
    return o;
}

/* Delivers what the device was asked for. */
static void deliver(struct quern_engine *e)
{
    CHECK(quern_awaits(e));
    played_deliver(e->be);
    quern_arrive(e, 10);
    CHECK(!quern_awaits(e));
}

/* Makes a step whose results arrive a call later. Returns whether there were any. */
static bool device_step(struct quern_engine *e, struct quern_sequence *s)
{
    int first, n;
    int status = quern_step(e, 0);
    CHECK_EQ(status, OK);
    if (!quern_awaits(e)) return false;
    CHECK(quern_logits(s, &first, &n) == NULL && n == 0);
    CHECK_EQ(quern_sample(s), ERR_BUSY);
    CHECK_EQ(quern_step(e, 0), ERR_BUSY);
    deliver(e);
    return true;
}

static void golden_models(void)
{
    for (int i = 0; i < GOLDEN_FILES; i++) {
        struct reference r = reference_new(golden_names[i]);
        struct quern_engine *e = engine_load(
            &r.file, on_device((struct quern_options){.chunk = 48, .threads = 1 + i % 2, .profile = i % 3 == 0}),
            SIZE_MAX);
        struct quern_sequence *s = sequence_new(e);
        float *all = logits_new(GOLDEN_ROWS, GOLDEN_VOCAB);
        CHECK_EQ(quern_sequence_set(s, r.ids, GOLDEN_ROWS, QUERN_ALL), 0);
        while (quern_sequence_pending(s) > 0) {
            CHECK(device_step(e, s));
            CHECK(logits_keep(s, GOLDEN_VOCAB, all) > 0);
        }
        CHECK(same_bits(all, r.logits, GOLDEN_ROWS * GOLDEN_VOCAB));
        quern_free(e);
        free(all);
        reference_free(&r);
    }
}

/* A prompt of several chunks, of which only the last one has outputs, and tokens after it. */
static void a_prompt_and_tokens(void)
{
    struct reference r = reference_new("moe-nano.Q4_K_M");
    struct quern_engine *e = engine_load(&r.file, on_device((struct quern_options){.chunk = 16}), SIZE_MAX);
    struct quern_sequence *s = sequence_new(e);
    int first, n, steps = 0;
    CHECK_EQ(quern_sequence_set(s, r.ids, 70, QUERN_LAST), 0);
    for (int at = 69; at < 80; at++) {
        while (!device_step(e, s)) steps++;
        check_row(&r, at, quern_logits(s, &first, &n));
        CHECK(first == at && n == 1);
        CHECK_EQ(quern_sequence_push(s, r.ids[at + 1]), OK);
    }
    CHECK_EQ(steps, 4);
    quern_free(e);
    reference_free(&r);
}

/* --- replies, images, saved conversations ----------------------------------------------------------------------- */

enum { SAID = 24 };

/* A reply, or its events during the first `most` steps. */
struct told {
    int32_t ids[SAID];
    int n, looks, end, status;
};

static void listen(const struct quern_engine *e, const struct quern_sequence *s, struct told *t)
{
    int n;
    const struct quern_event *event = quern_events(e, &n);
    for (; n-- > 0; event++) {
        if (event->number != quern_sequence_number(s)) continue;
        if (event->type == QUERN_TOKEN) t->ids[t->n++] = event->token;
        if (event->type == QUERN_ENCODE) t->looks++;
        if (event->type == QUERN_END) t->end = event->end, t->status = event->status;
    }
}

static struct told run_reply(struct quern_engine *e, struct quern_sequence *s, int most)
{
    struct told t = {0};
    CHECK_EQ(quern_reply_begin(s, &(struct quern_reply){.max_tokens = SAID}), OK);
    for (int i = 0; i < most && !t.end; i++) {
        CHECK(quern_step(e, 0) >= 0);
        listen(e, s, &t);
        if (!quern_awaits(e)) continue;
        deliver(e);
        listen(e, s, &t);
    }
    return t;
}

static struct quern_engine *pair(const char *model, bool device, struct quern_options o)
{
    o.context_size = 256;
    return pair_load(model, "f16", device ? on_device(o) : o);
}

static struct told show(struct quern_engine *e, const struct vision_set *v, const char *name)
{
    struct quern_sequence *s = sequence_new(e);
    CHECK(case_set(e, s, v, vision_case(v, name), QUERN_HELD) >= 0);
    struct told t = run_reply(e, s, INT32_MAX);
    quern_sequence_free(s);
    return t;
}

/* Images are encoded on the device, which answers part by part. */
static void check_images(const char *model)
{
    static const char *const names[] = {"later", "video", "two", "text"};
    struct vision_set *v = vision_set(model);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct quern_engine *e = pair(model, false, (struct quern_options){0}),
                            *device = pair(model, true, (struct quern_options){.threads = 2, .profile = i == 1});
        struct told expected = show(e, v, names[i]), found = show(device, v, names[i]);
        CHECK(expected.n > 0 && expected.n == found.n && expected.end == found.end &&
              (expected.looks > 0) == (found.looks > 0));
        CHECK(!memcmp(expected.ids, found.ids, sizeof found.ids));
        CHECK((played_of(device->be)->n_run[OP_ATTEND_ALL] > 0) == (i < 3));
        quern_free(e);
        quern_free(device);
    }
    free(v);
}

static void images(void)
{
    check_images("dense");
    check_images("hybrid");
}

/* The same for an image by itself. */
static void an_image_alone(void)
{
    struct vision_set *v = vision_set("dense");
    const struct source *source = &vision_case(v, "later")->media[0];
    const float *made[2];
    int tokens[2], width[2];
    struct quern_engine *e[2] = {pair("dense", false, (struct quern_options){0}),
                                 pair("dense", true, (struct quern_options){0})};
    for (int i = 0; i < 2; i++) {
        struct image_grid grid = {.rows = source->to_height / 32,
                                  .cols = source->to_width / 32,
                                  .height = source->to_height,
                                  .width = source->to_width,
                                  .frames = 1};
        int status;
        uint64_t id = source_add(e[i], source, &grid, 0);
        while ((status = quern_media_encode(e[i], id, 0, &made[i], &tokens[i], &width[i])) == NEED_MORE) {
            CHECK_EQ(quern_media_encode(e[i], id, 0, &made[i], &tokens[i], &width[i]), ERR_BUSY);
            deliver(e[i]);
        }
        CHECK_EQ(status, OK);
    }
    CHECK(tokens[0] == tokens[1] && width[0] == width[1] && same_bits(made[0], made[1], tokens[0] * width[0]));
    for (int i = 0; i < 2; i++) quern_free(e[i]);
    free(v);
}

enum { TOKENS = 170, RECORDS = TOKENS / KV_PAGE };

struct saved_copy {
    uint8_t header[SAVED_HEADER];
    uint8_t *records;
    uint64_t record;
};

/* Repeats a call until the device has answered. */
#define AWAIT(e, status, call) while (((status) = (call)) == NEED_MORE) deliver(e)

static struct saved_copy keep(struct quern_engine *e, const int32_t *ids)
{
    static const struct bytes name = {(const uint8_t *)"c", 1};
    struct saved_copy k = {.record = saved_record(e)};
    struct quern_sequence *s = sequence_new(e);
    int status;
    k.records = malloc(RECORDS * (size_t)k.record);
    CHECK(k.records != NULL);
    CHECK_EQ(quern_sequence_set(s, ids, TOKENS, QUERN_LAST), 0);
    while (quern_sequence_pending(s) > 0) {
        CHECK_EQ(quern_step(e, 0), OK);
        if (quern_awaits(e)) deliver(e);
    }
    CHECK_EQ(quern_sequence_set(s, ids, TOKENS, QUERN_HELD), TOKENS - 1);
    AWAIT(e, status, saved_open(s, name, k.header));
    CHECK_EQ(status, OK);
    for (int i = 0; i < RECORDS; i++) {
        AWAIT(e, status, saved_take(s, k.records + (uint64_t)i * k.record));
        CHECK_EQ(status, OK);
    }
    CHECK_EQ(saved_take(s, k.records), ERR_EMPTY);
    quern_sequence_free(s);
    return k;
}

/* A file written with a device equals the CPU's, byte by byte, and both engines read it. */
static void saved_conversations(void)
{
    static const struct bytes name = {(const uint8_t *)"c", 1};
    struct reference r = reference_new("moe-nano.Q8_0");
    struct saved_copy k[2];
    for (int device = 0; device < 2; device++) {
        struct quern_options o = {.context_size = 256, .threads = 1 + device};
        struct quern_engine *e = engine_load(&r.file, device ? on_device(o) : o, SIZE_MAX);
        k[device] = keep(e, r.ids);
        quern_free(e);
    }
    CHECK(k[0].record == k[1].record && !memcmp(k[0].header, k[1].header, SAVED_HEADER) &&
          !memcmp(k[0].records, k[1].records, RECORDS * (size_t)k->record));
    for (int device = 0; device < 2; device++) {
        struct quern_options o = {.context_size = 256};
        struct quern_engine *e = engine_load(&r.file, device ? on_device(o) : o, SIZE_MAX);
        struct quern_sequence *s = sequence_new(e);
        uint8_t header[SAVED_HEADER];
        int status, first, n;
        CHECK_EQ(quern_sequence_set(s, r.ids, TOKENS, QUERN_HELD), 0);
        AWAIT(e, status, saved_open(s, name, header));
        CHECK(status == OK && !memcmp(header, k->header, SAVED_HEADER));
        for (int i = 0; i < RECORDS; i++)
            CHECK_EQ(saved_give(s, k[!device].records + (uint64_t)i * k->record, k->record), OK);
        CHECK_EQ(quern_sequence_set(s, r.ids, TOKENS, QUERN_LAST), RECORDS * KV_PAGE);
        CHECK_EQ(quern_step(e, 0), OK);
        if (device) deliver(e);
        check_row(&r, TOKENS - 1, quern_logits(s, &first, &n));
        quern_free(e);
    }
    for (int i = 0; i < 2; i++) free(k[i].records);
    reference_free(&r);
}

/* --- drafts ------------------------------------------------------------------------------------------------------ */

struct drafted {
    int32_t ids[120];
    int n, drafted, right, steps;
};

static struct drafted reply_with_drafts(struct quern_engine *e, const struct quern_reply *r, int guess)
{
    int32_t prompt[60];
    struct drafted d = {0};
    struct quern_sequence *s = sequence_new(e);
    for (int i = 0; i < 60; i++) prompt[i] = 20 + i % 20 * 7;
    CHECK_EQ(quern_sequence_set(s, prompt, 60, QUERN_HELD), 0);
    CHECK_EQ(quern_reply_begin(s, r), OK);
    for (bool over = false; !over;) {
        CHECK_EQ(quern_step(e, 0), OK);
        d.steps += quern_awaits(e);
        if (quern_awaits(e)) deliver(e);
        int n;
        const struct quern_event *event = quern_events(e, &n);
        for (; n-- > 0; event++) {
            if (event->type == QUERN_TOKEN) d.ids[d.n++] = event->token;
            if (event->type == QUERN_END) over = true, d.drafted = event->total, d.right = event->done;
        }
        if (guess && !over && d.n > 0) quern_reply_draft(s, &d.ids[d.n - 1], 1, QUERN_FORCED);
    }
    quern_sequence_free(s);
    return d;
}

/* Several rows of one reply in a step, of which some are wrong, change nothing but the number of steps. In turn without
 * drafts, with drafts that are looked up, the same one token in each call, and with drafts that the caller gives. */
static void check_drafts(const char *name, bool looks_up)
{
    struct file f = golden_file(name, "gguf");
    for (int seed = 0; seed < 3; seed++) {
        struct quern_reply r = {.sampling = {.temperature = (float)seed / 2, .seed = (uint64_t)seed}, .max_tokens = 120};
        struct drafted d[4];
        for (int i = 0; i < 4; i++) {
            struct quern_options o = {.context_size = 256, .no_drafts = i == 0, .threads = 1 + i % 2};
            struct quern_engine *e = engine_load(&f, on_device(o), SIZE_MAX);
            r.single = i == 2;
            d[i] = reply_with_drafts(e, &r, i == 3);
            CHECK(d[i].n == d[0].n && !memcmp(d[i].ids, d[0].ids, (size_t)d[0].n * sizeof *d[0].ids));
            CHECK((d[i].drafted > 0) == (i == 3 || (i > 0 && looks_up)) && d[i].right <= d[i].drafted);
            quern_free(e);
        }
        if (seed == 0) CHECK(d[3].right > 0 && d[3].steps < d[0].steps);
        if (seed == 0 && looks_up) CHECK(d[1].steps < d[0].steps * 3 / 4 && d[2].steps == d[1].steps);
    }
    file_free(&f);
}

/* A model's own drafts are not made on a device. */
static void drafts(void)
{
    check_drafts("nano.Q8_0", true);
    check_drafts("hyb.F32", false);
}

/* --- a device that is lost --------------------------------------------------------------------------------------- */

/* Every reply ends with the code, and so does every call; the next engine is not affected. */
static void check_lost(struct quern_engine *e, struct quern_sequence *const *s, int n)
{
    struct told t[2] = {0};
    quern_arrive(e, -1);
    CHECK(!quern_awaits(e));
    for (int i = 0; i < n; i++) {
        int first, rows;
        listen(e, s[i], &t[i]);
        CHECK(t[i].end == QUERN_ERROR && t[i].status == ERR_LOST);
        CHECK(!quern_logits(s[i], &first, &rows) && rows == 0);
    }
    for (int i = 0; i < 2; i++) {
        int32_t id = 1;
        CHECK_EQ(quern_step(e, 0), ERR_LOST);
        CHECK(quern_error(e)->code == ERR_LOST && strstr(quern_error(e)->message, "lost"));
        CHECK_EQ(quern_sequence_set(s[0], &id, 1, QUERN_HELD), ERR_LOST);
        CHECK_EQ(quern_reply_begin(s[0], &(struct quern_reply){.max_tokens = 1}), ERR_LOST);
        CHECK_EQ(quern_sequence_push(s[0], id), ERR_LOST);
        CHECK_EQ(quern_feed(e, "x", 1), ERR_LOST);
        CHECK_EQ(quern_finish(e), ERR_LOST);
    }
}

static void lost_in_a_reply(void)
{
    struct reference r = reference_new("nano.Q8_0");
    struct told whole = {0};
    for (int steps = 1; steps < 12; steps++) {
        struct quern_engine *e =
            engine_load(&r.file, on_device((struct quern_options){.chunk = 16, .context_size = 256}), SIZE_MAX);
        struct quern_sequence *s[2] = {sequence_new(e), sequence_new(e)};
        CHECK_EQ(quern_sequence_set(s[1], r.ids + 40, 50, QUERN_HELD), 0);
        CHECK_EQ(quern_reply_begin(s[1], &(struct quern_reply){.max_tokens = SAID}), OK);
        CHECK_EQ(quern_sequence_set(s[0], r.ids, 40, QUERN_HELD), 0);
        struct told t = run_reply(e, s[0], steps);
        CHECK(t.end == 0);
        while (!quern_awaits(e)) CHECK_EQ(quern_step(e, 0), OK);
        check_lost(e, s, 2);
        quern_free(e);
        if (t.n > whole.n) whole = t;
    }
    struct quern_engine *e = engine_load(&r.file, (struct quern_options){.context_size = 256}, SIZE_MAX);
    struct quern_sequence *s = sequence_new(e);
    CHECK_EQ(quern_sequence_set(s, r.ids, 40, QUERN_HELD), 0);
    struct told again = run_reply(e, s, INT32_MAX);
    CHECK(whole.n > 2 && again.n >= whole.n && !memcmp(again.ids, whole.ids, (size_t)whole.n * sizeof *whole.ids));
    quern_free(e);
    reference_free(&r);
}

/* The device is lost while an image is encoded, and while nothing is running. */
static void lost_with_an_image(void)
{
    struct vision_set *v = vision_set("dense");
    for (int parts = 0; parts < 3; parts++) {
        struct quern_engine *e = pair("dense", true, (struct quern_options){0});
        struct quern_sequence *s = sequence_new(e);
        CHECK(case_set(e, s, v, vision_case(v, "later"), QUERN_HELD) >= 0);
        CHECK_EQ(quern_reply_begin(s, &(struct quern_reply){.max_tokens = 4}), OK);
        for (int i = 0; i < parts; i++) {
            while (!quern_awaits(e)) CHECK(quern_step(e, 0) >= 0);
            if (i + 1 < parts) deliver(e);
        }
        check_lost(e, &s, 1);
        quern_free(e);
    }
    free(v);
}

static const struct check tests[] = {
    {"golden_models", golden_models},
    {"a_prompt_and_tokens", a_prompt_and_tokens},
    {"images", images},
    {"an_image_alone", an_image_alone},
    {"saved_conversations", saved_conversations},
    {"drafts", drafts},
    {"lost_in_a_reply", lost_in_a_reply},
    {"lost_with_an_image", lost_with_an_image},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
