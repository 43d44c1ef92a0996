/* SPDX-License-Identifier: MIT
 *
 * Saved conversations: what is restored is what was computed, to the bit, in another engine and whatever threads,
 * chunks and kernels wrote it. Of a file that is cut, damaged, foreign or half-written, only complete and matching
 * records are used.
 */
#include "engine/saved.h"
#include "session.h"

enum { TOKENS = 170, RECORDS = TOKENS / KV_PAGE, CONTEXT = 256, REPLY = 12 };

/* A file as a store would hold it. */
struct saved_file {
    uint8_t header[SAVED_HEADER];
    uint8_t *records; /* n records */
    uint64_t record;  /* bytes of each record */
    int n;
};

static const struct bytes name = {(const uint8_t *)"conversation-17", 15};
static int32_t ids[GOLDEN_ROWS];
static int n_kept; /* files made so far */

static struct quern_engine *load(const struct file *f, struct quern_options options)
{
    options.context_size = CONTEXT;
    golden_tokens(ids);
    return engine_load(f, options, SIZE_MAX);
}

static uint8_t *record_at(const struct saved_file *f, int i) { return f->records + (uint64_t)i * f->record; }

static struct quern_sequence *hold(struct quern_engine *e, int n)
{
    struct quern_sequence *s = sequence_new(e);
    CHECK(quern_sequence_set(s, ids, n, QUERN_HELD) >= 0);
    return s;
}

/* Saves everything that is known of the conversation, from its beginning. */
static struct saved_file keep(struct quern_engine *e, int n)
{
    struct saved_file f = {.record = saved_record(e)};
    struct quern_sequence *s = hold(e, n);
    f.records = malloc((RECORDS + 1) * (size_t)f.record);
    CHECK(f.records != NULL && f.record % SAVED_HEADER == 0);
    memset(f.records, ++n_kept, (RECORDS + 1) * (size_t)f.record);
    CHECK_EQ(saved_open(s, name, f.header), OK);
    CHECK_EQ(quern_sequence_push(s, 1), ERR_BUSY); /* its tokens cannot be appended to */
    int status = OK;
    while (!(status = saved_take(s, record_at(&f, f.n)))) f.n++;
    CHECK_EQ(status, ERR_EMPTY);
    quern_sequence_free(s);
    return f;
}

static void compute(struct quern_engine *e, int n)
{
    struct quern_sequence *s = sequence_new(e);
    quern_sequence_set(s, ids, n, QUERN_LAST);
    logits_last(e, s);
    quern_sequence_free(s);
}

/* A conversation of TOKENS, computed and saved. */
static struct saved_file made_by(const struct file *model, struct quern_options options)
{
    struct quern_engine *e = load(model, options);
    compute(e, TOKENS);
    struct saved_file f = keep(e, TOKENS);
    CHECK_EQ(f.n, RECORDS);
    quern_free(e);
    return f;
}

/* Restores a file's records in a held sequence; returns the first error. */
static int give_all(struct quern_sequence *s, struct saved_file *f)
{
    uint8_t header[SAVED_HEADER];
    CHECK_EQ(saved_open(s, name, header), OK);
    if (memcmp(header, f->header, sizeof header)) return ERR_FORMAT;
    int status = OK;
    for (int i = 0; i < f->n && !status; i++) status = saved_give(s, record_at(f, i), f->record);
    return status;
}

/* The reply to the conversation of n tokens, by the engine's own sampling. Returns the number of known positions. */
static int reply(struct quern_engine *e, struct quern_sequence *s, int32_t *said)
{
    struct quern_reply r = {.max_tokens = REPLY};
    int cached = 0, n_said = 0, n;
    CHECK_EQ(quern_reply_begin(s, &r), OK);
    for (bool ended = false; !ended;) {
        CHECK_EQ(quern_step(e, 0), OK);
        const struct quern_event *events = quern_events(e, &n);
        for (int i = 0; i < n; i++) {
            if (events[i].number != quern_sequence_number(s)) continue;
            if (events[i].type == QUERN_READ) cached = events[i].cached;
            if (events[i].type == QUERN_END) ended = true;
            if (events[i].type == QUERN_TOKEN) said[n_said++] = events[i].token;
        }
    }
    for (; n_said < REPLY; n_said++) said[n_said] = -1;
    return cached;
}

static void check_last_row(const struct reference *r, struct quern_engine *e, int n, int known)
{
    struct quern_sequence *s = sequence_new(e);
    CHECK_EQ(quern_sequence_set(s, ids, n, QUERN_LAST), known);
    check_row(r, n - 1, logits_last(e, s));
    quern_sequence_free(s);
}

/* --- what is restored ------------------------------------------------------------------------------------------ */

static void round_trip(void)
{
    static const enum quern_kv types[] = {QUERN_KV_F16, QUERN_KV_F32, QUERN_KV_Q8};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct reference r = reference_with("nano.Q8_0", types[i]);
        struct saved_file f = made_by(&r.file, (struct quern_options){.kv = types[i], .chunk = 7});
        struct quern_engine *e = load(&r.file, (struct quern_options){.kv = types[i]});
        struct quern_sequence *s = hold(e, TOKENS);
        int32_t said[REPLY], alone[REPLY];
        CHECK(load_u32(f.header + 20) == (uint32_t)types[i] && load_u64(f.header + 32) == f.record &&
              load_u32(f.header + 16) == KV_PAGE);
        CHECK_EQ(give_all(s, &f), OK);
        CHECK_EQ(reply(e, s, said), RECORDS * KV_PAGE);
        quern_sequence_free(s);
        check_last_row(&r, e, TOKENS, TOKENS - 1);
        disturb_pages(e, 5);
        s = hold(e, TOKENS);
        CHECK_EQ(reply(e, s, alone), 0);
        CHECK(!memcmp(said, alone, sizeof said));
        quern_sequence_free(s);
        check_pages(e);
        quern_free(e);
        free(f.records);
        reference_free(&r);
    }
}

/* The file depends only on model, name and conversation, not on threads, chunks or kernels. */
static void same_bytes(void)
{
    static const struct quern_options ways[] = {
        {.chunk = 1}, {.threads = 3, .chunk = 64}, {.scalar = true}, {.profile = true}};
    struct file model = golden_file("moe-nano.Q4_K_M", "gguf");
    struct saved_file f = made_by(&model, (struct quern_options){0});
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct saved_file g = made_by(&model, ways[i]);
        CHECK(!memcmp(f.header, g.header, SAVED_HEADER) && !memcmp(f.records, g.records, (size_t)(f.record * RECORDS)));
        free(g.records);
    }
    free(f.records);
    file_free(&model);
}

/* Known positions are not taken from the file. */
static void known_in_part(void)
{
    struct reference r = reference_new("nano.Q8_0");
    struct saved_file f = made_by(&r.file, (struct quern_options){0});
    struct quern_engine *e = load(&r.file, (struct quern_options){0});
    compute(e, 70);
    struct quern_sequence *s = hold(e, TOKENS);
    memset(record_at(&f, 1) + SAVED_HEAD, 0, (size_t)f.record - SAVED_HEAD); /* so this record is not read */
    CHECK_EQ(give_all(s, &f), OK);
    CHECK_EQ(quern_sequence_length(s), RECORDS * KV_PAGE);
    quern_sequence_free(s);
    check_last_row(&r, e, TOKENS, RECORDS * KV_PAGE);
    check_pages(e);
    quern_free(e);
    free(f.records);
    reference_free(&r);
}

/* A file is extended: record heads show where it agrees, and only new records are made. */
static void appending(void)
{
    struct file model = golden_file("nano.F16", "gguf");
    struct saved_file whole = made_by(&model, (struct quern_options){0});
    struct quern_engine *e = load(&model, (struct quern_options){0});
    compute(e, 100);
    struct saved_file f = keep(e, 100);
    CHECK_EQ(f.n, 3);
    compute(e, TOKENS);
    struct quern_sequence *s = hold(e, TOKENS);
    uint8_t header[SAVED_HEADER];
    CHECK_EQ(saved_open(s, name, header), OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(saved_give(s, record_at(&f, i), SAVED_HEAD), OK);
    while (saved_take(s, record_at(&f, f.n)) == OK) f.n++;
    CHECK(f.n == RECORDS && !memcmp(f.records, whole.records, (size_t)(f.record * RECORDS)));
    quern_sequence_free(s);

    ids[70] ^= 1; /* the conversation continues differently, so the third record is not part of it */
    s = hold(e, TOKENS);
    CHECK_EQ(saved_open(s, name, header), OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(saved_give(s, record_at(&f, i), SAVED_HEAD), OK);
    CHECK_EQ(saved_give(s, record_at(&f, 2), f.record), ERR_EMPTY);
    CHECK_EQ(saved_take(s, record_at(&f, 2)), ERR_EMPTY); /* and its positions are not computed either */
    quern_free(e);
    free(f.records);
    free(whole.records);
    file_free(&model);
}

/* --- what is refused ------------------------------------------------------------------------------------------- */

/* Any flipped bit ends restoring at its record; the reply is the same. */
static void flipped(void)
{
    struct reference r = reference_new("nano.Q4_0");
    struct saved_file f = made_by(&r.file, (struct quern_options){0});
    struct quern_engine *e = load(&r.file, (struct quern_options){0});
    uint64_t seed = 7;
    for (int round = 0; round < 600; round++) {
        int damaged = round % f.n;
        uint64_t at =
            round < 3 * SAVED_HEAD / 4 ? (uint64_t)(round * 4 / 3) : (uint64_t)random_below(&seed, (int)f.record);
        uint8_t bit = (uint8_t)(1 << random_below(&seed, 8));
        struct quern_sequence *s = hold(e, TOKENS);
        record_at(&f, damaged)[at] ^= bit;
        int status = give_all(s, &f);
        CHECK(status == (at < KV_PAGE * 8 ? ERR_EMPTY : ERR_FORMAT));
        CHECK_EQ(quern_sequence_length(s), damaged * KV_PAGE);
        record_at(&f, damaged)[at] ^= bit;
        quern_sequence_free(s);
        if (round % 50 == 0) check_last_row(&r, e, TOKENS, damaged * KV_PAGE);
        disturb_pages(e, 3);
    }
    for (int at = 0; at < SAVED_HEADER; at++) {
        struct bytes found;
        f.header[at] ^= 4;
        CHECK_EQ(saved_name(f.header, &found), ERR_FORMAT);
        f.header[at] ^= 4;
    }
    quern_free(e);
    free(f.records);
    reference_free(&r);
}

/* Records that are cut, half-written, in another order, twice, or from another conversation's file. */
static void out_of_place(void)
{
    struct reference r = reference_new("nano.Q6_K");
    struct saved_file f = made_by(&r.file, (struct quern_options){0});
    struct quern_engine *e = load(&r.file, (struct quern_options){0});
    uint8_t header[SAVED_HEADER];
    uint8_t *torn = calloc(1, (size_t)f.record);
    for (int i = 0; i < f.n; i++) {
        struct quern_sequence *s = hold(e, TOKENS);
        CHECK_EQ(saved_open(s, name, header), OK);
        for (int k = 0; k < i; k++) CHECK_EQ(saved_give(s, record_at(&f, k), f.record), OK);
        for (int k = 0; k < f.n; k++)
            if (k != i) CHECK_EQ(saved_give(s, record_at(&f, k), f.record), ERR_FORMAT);
        memcpy(torn, record_at(&f, i), (size_t)f.record / 2); /* as after a crash: the rest is zeros */
        CHECK_EQ(saved_give(s, torn, f.record), ERR_FORMAT);
        CHECK_EQ(saved_give(s, torn, SAVED_HEAD - 1), ERR_FORMAT);
        torn[KV_PAGE * 8] ^= 1; /* the record's number */
        CHECK_EQ(saved_give(s, torn, SAVED_HEAD), ERR_FORMAT);
        CHECK_EQ(saved_give(s, memset(torn, 0, (size_t)f.record), f.record), ERR_FORMAT);
        CHECK_EQ(quern_sequence_length(s), i * KV_PAGE);
        CHECK_EQ(saved_give(s, record_at(&f, i), f.record), OK);
        quern_sequence_free(s);
        check_last_row(&r, e, TOKENS, (i + 1) * KV_PAGE);
        disturb_pages(e, 3);
    }
    quern_free(e);
    free(torn);
    free(f.records);
    reference_free(&r);
}

/* Another model, cache type or name gives another header, and none accepts the records of another. */
static void foreign(void)
{
    struct file model = golden_file("nano.F32", "gguf"), other = golden_file("nano.F16", "gguf");
    struct saved_file f = made_by(&model, (struct quern_options){0});
    const struct file *models[] = {&model, &other, &model};
    const struct quern_options options[] = {{.kv = QUERN_KV_F32}, {0}, {.quantize = QUERN_TO_Q8}};
    for (int i = 0; i < 3; i++) {
        struct quern_engine *e = load(models[i], options[i]);
        struct quern_sequence *s = hold(e, TOKENS);
        uint8_t header[SAVED_HEADER];
        CHECK_EQ(saved_open(s, name, header), OK);
        CHECK(memcmp(header, f.header, SAVED_HEADER));
        CHECK_EQ(saved_give(s, f.records, f.record), ERR_FORMAT);
        CHECK_EQ(quern_sequence_length(s), 0);
        quern_free(e);
    }
    struct bytes found;
    CHECK_EQ(saved_name(f.header, &found), OK);
    CHECK(found.size == name.size && !memcmp(found.data, name.data, name.size));
    free(f.records);
    file_free(&model);
    file_free(&other);
}

/* Every matrix and vector of the model is part of its fingerprint. */
struct part {
    int n, changed;
    bool absent; /* the part to change */
};

static void flip_part(void *context, const struct weight *w, struct bytes vector)
{
    struct part *p = context;
    uint8_t *bytes = w ? w->panels : (uint8_t *)(uintptr_t)vector.data;
    if (p->n++ != p->changed) return;
    p->absent = !bytes;
    if (bytes) bytes[w ? w->panel - 1 : vector.size - 1] ^= 1;
}

static void fingerprint(void)
{
    struct file model = golden_file("moe-nano.Q8_0", "gguf");
    struct quern_engine *e = load(&model, (struct quern_options){.threads = 2});
    struct quern_sequence *s = hold(e, TOKENS);
    struct part p = {.changed = -1};
    uint8_t before[SAVED_HEADER], header[SAVED_HEADER];
    CHECK_EQ(saved_open(s, name, before), OK);
    model_each(e->model, flip_part, &p);
    for (int i = 1, n = p.n; i < n; i++) { /* the first part comes from the configuration */
        p = (struct part){.changed = i};
        model_each(e->model, flip_part, &p);
        e->has_fingerprint = false;
        CHECK_EQ(saved_open(s, name, header), OK);
        CHECK_EQ(!memcmp(header, before, SAVED_HEADER), p.absent);
        p.n = 0;
        model_each(e->model, flip_part, &p);
    }
    e->has_fingerprint = false;
    CHECK_EQ(saved_open(s, name, header), OK);
    CHECK(p.n > 10);
    CHECK(!memcmp(header, before, SAVED_HEADER));
    quern_free(e);
    file_free(&model);
}

static double hours(void)
{
    static double ms;
    return ms += 3.6e6;
}

/* The fingerprint is computed in slices, each of which updates the heartbeat; it is the same with any number of
 * threads. */
static void fingerprint_in_slices(void)
{
    struct file model = golden_file("moe-nano.Q8_0", "gguf");
    uint8_t header[3][SAVED_HEADER];
    for (int threads = 1; threads <= 3; threads++) {
        struct quern_engine *e = load(&model, (struct quern_options){.threads = threads});
        int slices = 1, before = quern_control(e)->heartbeat;
        e->options.now = hours;
        while (saved_print(e, 1) == NEED_MORE) slices++;
        CHECK(slices > 1 || threads > 1);
        CHECK_EQ(quern_control(e)->heartbeat, before + slices);
        CHECK_EQ(saved_open(hold(e, TOKENS), name, header[threads - 1]), OK);
        CHECK(!memcmp(header[threads - 1], header[0], SAVED_HEADER));
        CHECK_EQ(quern_control(e)->heartbeat, before + slices);
        quern_free(e);
    }
    file_free(&model);
}

/* Restoring a record has two halves, and other threads may run in between. The second half reports damage; its page is
 * unused again then. */
static void in_halves(void)
{
    struct reference r = reference_new("nano.Q8_0");
    struct saved_file f = made_by(&r.file, (struct quern_options){0});
    uint8_t header[SAVED_HEADER];
    for (int threads = 1; threads <= 3; threads++) {
        struct quern_engine *e = load(&r.file, (struct quern_options){.threads = threads});
        struct quern_sequence *s = hold(e, TOKENS);
        CHECK_EQ(saved_open(s, name, header), OK);
        for (int i = 0; i < f.n; i++) {
            int unused = kv_pages_unused(e->kv);
            for (uint8_t damage = 1; damage != 255; damage--) {
                record_at(&f, i)[f.record - 1] ^= damage;
                CHECK_EQ(saved_give_begin(s, record_at(&f, i), f.record), OK);
                CHECK_EQ(quern_sequence_length(s), i * KV_PAGE);
                CHECK_EQ(saved_give_end(s), damage ? ERR_FORMAT : OK);
                record_at(&f, i)[f.record - 1] ^= damage;
                CHECK_EQ(kv_pages_unused(e->kv), damage ? unused : unused - 1);
            }
        }
        quern_sequence_free(s);
        check_last_row(&r, e, TOKENS, RECORDS * KV_PAGE);
        check_pages(e);
        quern_free(e);
    }
    free(f.records);
    reference_free(&r);
}

static void bad_calls(void)
{
    static const uint8_t letters[SAVED_NAME + 1] = {'a'};
    struct file model = golden_file("nano.F32", "gguf");
    struct quern_engine *e = load(&model, (struct quern_options){0});
    struct saved_file f = made_by(&model, (struct quern_options){0});
    uint8_t header[SAVED_HEADER];
    struct quern_sequence *s = sequence_new(e);
    CHECK_EQ(saved_open(s, name, header), ERR_BUSY); /* no tokens are set */
    CHECK_EQ(saved_give(s, f.records, f.record), ERR_BUSY);
    CHECK_EQ(saved_take(s, f.records), ERR_BUSY);
    quern_sequence_set(s, ids, TOKENS, QUERN_LAST);
    CHECK_EQ(saved_open(s, name, header), ERR_BUSY); /* not held */
    quern_sequence_set(s, ids, TOKENS, QUERN_HELD);
    CHECK_EQ(saved_give(s, f.records, f.record), ERR_BUSY); /* not opened */
    CHECK_EQ(saved_open(s, (struct bytes){letters, SAVED_NAME + 1}, header), ERR_PARAM);
    CHECK_EQ(saved_open(s, (struct bytes){letters, 0}, header), ERR_PARAM);
    CHECK_EQ(saved_open(s, (struct bytes){letters, SAVED_NAME}, header), OK);
    CHECK_EQ(saved_take(s, f.records), ERR_EMPTY);
    /* its last token is always computed, so its only page is not needed */
    quern_sequence_set(s, ids, KV_PAGE, QUERN_HELD);
    CHECK_EQ(saved_open(s, name, header), OK);
    CHECK_EQ(saved_give(s, f.records, f.record), OK);
    CHECK_EQ(quern_sequence_length(s), 0);
    CHECK_EQ(saved_give(s, record_at(&f, 1), f.record), ERR_EMPTY);
    quern_free(e);
    free(f.records);
    file_free(&model);
}

/* Held sequences lose their pages first; that costs nothing but time. */
static void pages_run_out(void)
{
    struct reference r = reference_new("nano.Q8_0");
    struct saved_file f = made_by(&r.file, (struct quern_options){0});
    struct quern_engine *e = load(&r.file, (struct quern_options){.kv_positions = CONTEXT});
    struct quern_sequence *held = hold(e, TOKENS), *other = sequence_new(e);
    int32_t own[CONTEXT], said[REPLY], alone[REPLY];
    uint8_t header[SAVED_HEADER];
    CHECK_EQ(saved_open(held, name, header), OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(saved_give(held, record_at(&f, i), f.record), OK);
    for (int i = 0; i < CONTEXT; i++) own[i] = ids[(i + 5) % 97];
    quern_sequence_set(other, own, CONTEXT, QUERN_LAST);
    logits_last(e, other);
    CHECK_EQ(quern_sequence_length(held), 0);
    CHECK_EQ(saved_give(held, record_at(&f, 3), f.record), ERR_BUSY);
    uint8_t *record = malloc((size_t)f.record);
    CHECK_EQ(saved_take(held, record), ERR_EMPTY);
    free(record);
    quern_sequence_free(other);
    reply(e, held, said);
    quern_sequence_free(held);
    disturb_pages(e, 9);
    held = hold(e, TOKENS);
    CHECK_EQ(reply(e, held, alone), 0);
    CHECK(!memcmp(said, alone, sizeof said));
    check_pages(e);
    quern_free(e);
    free(f.records);
    reference_free(&r);
}

static const struct check tests[] = {
    {"round_trip", round_trip}, {"same_bytes", same_bytes},   {"known_in_part", known_in_part},
    {"appending", appending},   {"flipped", flipped},         {"out_of_place", out_of_place},
    {"foreign", foreign},       {"fingerprint", fingerprint}, {"fingerprint_in_slices", fingerprint_in_slices},
    {"in_halves", in_halves},   {"bad_calls", bad_calls},     {"pages_run_out", pages_run_out},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
