/* SPDX-License-Identifier: MIT
 *
 * States with a whole engine: an imitated recurrent architecture (played_model.h), then Qwen3.5, whose layers are of
 * two kinds. A conversation's logits are the same however it was cut into steps, beside whatever others, from whatever
 * snapshot it continued, after steps dropped at any layer, after losing its pages, or restored from a file.
 */
#include "engine/saved.h"
#include "played.h"
#include "played_model.h"
#include "session.h"

enum { CONTEXT = 192, TALKS = 5, TALK = 150, USERS = 7, REPLY = 10, RECORDS_MOST = 32 };

/* Conversations that begin alike, and all their logits, from an engine that shares nothing. */
static bool imitated; /* the architecture is imitated, not Qwen3.5 */
static struct file model;
static int32_t talks[TALKS][TALK];
static float *rows; /* [TALKS][TALK][GOLDEN_VOCAB] */

static const float *row_of(int talk, int at) { return rows + ((size_t)talk * TALK + (size_t)at) * GOLDEN_VOCAB; }

static struct quern_engine *load(struct quern_options options)
{
    played_states = imitated;
    if (!options.context_size) options.context_size = CONTEXT;
    struct quern_engine *e = engine_load(&model, options, SIZE_MAX);
    played_states = false;
    CHECK(kv_slots(e->kv) > 0);
    return e;
}

static void begin(void)
{
    static const int common[TALKS] = {0, 140, 70, 64, 33};
    int32_t ids[GOLDEN_ROWS];
    model = golden_file(imitated ? "nano.Q8_0" : "hyb.F32", "gguf");
    golden_tokens(ids);
    rows = logits_new(TALKS * TALK, GOLDEN_VOCAB);
    for (int t = 0; t < TALKS; t++) {
        struct quern_engine *e = load((struct quern_options){0});
        for (int i = 0; i < TALK; i++) talks[t][i] = i < common[t] ? ids[i] : ids[(i + 7 * t) % GOLDEN_ROWS];
        logits_all(e, sequence_new(e), talks[t], TALK, rows + (size_t)t * TALK * GOLDEN_VOCAB);
        quern_free(e);
    }
}

static void end(void)
{
    file_free(&model);
    free(rows);
}

static void poison_slot(void *context, int slot)
{
    const struct cpu *c = context;
    memset(cpu_slot(c, slot), 0xFF, (size_t)c->state.bytes);
}

/* Slots of a whole conversation: one to read, one to write, and in a model that drafts one for the state between. */
static int slots_each(void) { return imitated ? 2 : 3; }

static void disturb(struct quern_engine *e)
{
    kv_each_free_slot(e->kv, poison_slot, e->be);
    check_pages(e);
}

static void check_logits(const struct quern_sequence *s, int talk)
{
    int first, n;
    const float *logits = quern_logits(s, &first, &n);
    for (int i = 0; i < n; i++)
        CHECK(same_bits(row_of(talk, first + i), logits + (size_t)i * GOLDEN_VOCAB, GOLDEN_VOCAB));
}

/* Reads the first n tokens of a conversation, with marks. Returns the length of the known part. */
static int read_talk(struct quern_engine *e, struct quern_sequence *s, int talk, int n, const int32_t *marks,
                     int n_marks)
{
    int known = quern_sequence_set(s, talks[talk], n, QUERN_LAST);
    CHECK(known >= 0);
    if (marks) CHECK_EQ(quern_sequence_marks(s, marks, n_marks), OK);
    disturb(e);
    logits_last(e, s);
    check_logits(s, talk);
    return known;
}

/* --- cut, continued -------------------------------------------------------------------------------------------- */

/* The state affects the logits; otherwise these tests would show nothing. */
static void states_matter(void)
{
    begin();
    struct quern_engine *e = load((struct quern_options){0});
    struct quern_sequence *s = sequence_new(e);
    CHECK_EQ(read_talk(e, s, 0, 40, NULL, 0), 0);
    memset(cpu_slot((struct cpu *)e->be, s->turn.kv.slot), 0x3F, 8); /* in its first layer only */
    CHECK_EQ(quern_sequence_push(s, talks[0][40]), OK);
    CHECK(!same_bits(logits_last(e, s), row_of(0, 40), GOLDEN_VOCAB));
    quern_free(e);
    end();
}

static void cuts(void)
{
    static const int chunks[] = {1, 3, 7, 32, 64, 200};
    static const int32_t marks[] = {1, 2, 40, 64, 65, 96, 140, 149};
    begin();
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        struct quern_engine *e =
            load((struct quern_options){.chunk = chunks[i], .threads = 1 + (int)i % 3, .snapshots = 20});
        struct quern_sequence *s = sequence_new(e);
        CHECK_EQ(read_talk(e, s, 0, TALK, marks, 8), 0);
        quern_sequence_free(s);
        for (int m = 7; m >= 0; m--) {
            s = sequence_new(e);
            CHECK_EQ(read_talk(e, s, 0, marks[m] + 1, NULL, 0), marks[m]);
            for (int at = marks[m] + 1; at < min_int(marks[m] + 4, TALK); at++) { /* and continues from there */
                CHECK_EQ(quern_sequence_push(s, talks[0][at]), OK);
                logits_last(e, s);
                check_logits(s, 0);
            }
            quern_sequence_free(s);
        }
        quern_free(e);
    }
    end();
}

/* The rows of a second turn are those after the mark, and no other conversation's state is used. */
static void second_turn(void)
{
    static const int32_t marks[] = {60, 90};
    begin();
    struct quern_engine *e = load((struct quern_options){.chunk = 64});
    struct quern_sequence *s = sequence_new(e);
    CHECK_EQ(read_talk(e, s, 0, 100, marks, 2), 0);
    quern_sequence_free(s);
    s = sequence_new(e);
    CHECK_EQ(read_talk(e, s, 1, 145, NULL, 0), 100); /* its end was saved too */
    quern_sequence_free(s);
    uint64_t before = sched_facts(e->sched).rows;
    s = sequence_new(e);
    CHECK_EQ(read_talk(e, s, 2, 150, NULL, 0), 60); /* diverges at 70 */
    CHECK_EQ(sched_facts(e->sched).rows - before, 90);
    quern_sequence_free(s);
    s = sequence_new(e);
    CHECK_EQ(read_talk(e, s, 4, 50, NULL, 0), 0); /* diverges at 33 */
    s = quern_sequence_new(e, 7, 0);
    CHECK_EQ(read_talk(e, s, 0, 100, NULL, 0), 0); /* another scope */
    CHECK_EQ(quern_sequence_marks(s, marks, SCHED_MARKS + 1), ERR_PARAM);
    CHECK_EQ(quern_sequence_marks(s, (int32_t[]){5, 5}, 2), ERR_PARAM);
    CHECK_EQ(quern_sequence_marks(s, (int32_t[]){0}, 1), ERR_PARAM);
    CHECK_EQ(quern_sequence_marks(s, (int32_t[]){100}, 1), ERR_PARAM);
    quern_free(e);
    end();
}

enum { SYSTEM = 10, SAYS = 5 };

/* A turn of a conversation: its prompt, with marks after the system message, before the question (asked; 0: the same
 * place) and before the reply, then a reply that the next prompt does not have. Returns the length of the known part.
 */
static int turn(struct quern_engine *e, int talk, int n, int asked, uint32_t scope)
{
    struct quern_sequence *s = quern_sequence_new(e, scope, 0);
    const int32_t three[] = {SYSTEM, asked, n - 2}, two[] = {SYSTEM, n - 2};
    int known = read_talk(e, s, talk, n, asked ? three : two, asked ? 3 : 2);
    for (int i = 0; i < SAYS; i++) {
        CHECK_EQ(quern_sequence_push(s, 5 + i), OK);
        logits_last(e, s);
    }
    quern_sequence_free(s);
    return known;
}

/* With the default number of snapshots, a conversation continues, its question changes, and its reply is made again;
 * two conversations continue in turn. */
static void turns(void)
{
    begin();
    struct quern_engine *e = load(
        (struct quern_options){.kv_positions = 4 * CONTEXT, .parallel = 1, .chunk = 64, .snapshots = 5 - slots_each()});
    CHECK_EQ(kv_slots(e->kv), 5);
    for (int round = 0; round < 2; round++) {
        CHECK_EQ(turn(e, 0, 35, 0, 0), 0);
        CHECK_EQ(turn(e, 0, 60, 45, 0), 33);
        CHECK_EQ(turn(e, 0, 100, 70, 0), 58);
        CHECK_EQ(turn(e, 0, 100, 70, 0), 98);
        CHECK_EQ(turn(e, 0, 100, 70, 0), 98);
        CHECK_EQ(turn(e, 2, 95, 70, 0), 70);
        CHECK_EQ(turn(e, 2, 120, 107, 0), 93);
        kv_each_forgotten(e->kv, poison_page, e->be);
        CHECK_EQ(turn(e, 0, 35, 0, 0), 0);
        CHECK_EQ(turn(e, 0, 60, 45, 0), 33);
        CHECK_EQ(turn(e, 4, 80, 0, 0), SYSTEM); /* another conversation */
        CHECK_EQ(turn(e, 0, 100, 70, 0), 58);
        CHECK_EQ(turn(e, 4, 110, 90, 0), 78);
        kv_each_forgotten(e->kv, poison_page, e->be);
        for (uint32_t scope = 1; scope <= 2; scope++) CHECK_EQ(turn(e, 0, 35, 0, scope), 0);
        for (uint32_t scope = 1; scope <= 2; scope++) CHECK_EQ(turn(e, 0, 60, 45, scope), 33);
        for (uint32_t scope = 1; scope <= 2; scope++) CHECK_EQ(turn(e, 0, 100, 70, scope), 58);
        kv_each_forgotten(e->kv, poison_page, e->be);
    }
    quern_free(e);
    end();
}

/* Of equal prompts at the same time, one is read up to its mark, and the others continue from there. */
static void followers(void)
{
    begin();
    struct quern_engine *e = load((struct quern_options){.snapshots = 8});
    struct quern_sequence *all[3];
    for (int i = 0; i < 3; i++) {
        all[i] = sequence_new(e);
        CHECK(quern_sequence_set(all[i], talks[0], TALK, QUERN_LAST) >= 0);
    }
    for (int i = 0; i < 3; i++) {
        while (quern_sequence_pending(all[i]) > 0) {
            CHECK_EQ(quern_step(e, 0), OK);
            for (int k = i; k < 3; k++) check_logits(all[k], 0);
            disturb(e);
        }
        quern_sequence_free(all[i]);
    }
    CHECK(sched_facts(e->sched).rows <= TALK + 2 * (TALK - 128));
    quern_free(e);
    end();
}

/* --- dropped --------------------------------------------------------------------------------------------------- */

/* Computes some layers of the next step. Returns whether it stopped within the step. */
static bool some_layers(struct quern_engine *e, int layers)
{
    int status = OK;
    quern_control(e)->attention = 1;
    for (int i = 0; i < layers && (i == 0 || status == NEED_MORE); i++) status = quern_step(e, 0);
    quern_control(e)->attention = 0;
    CHECK(status == OK || status == NEED_MORE);
    return status == NEED_MORE;
}

/* Three sequences are in a step; after each layer one leaves it, or all do. */
static void aborts(void)
{
    begin();
    struct quern_engine *e = load((struct quern_options){.chunk = 100, .kv_positions = 4 * CONTEXT});
    int parts = e->model->config.n_layers + 1, stopped = 0;
    for (int all = 0; all < 2; all++)
        for (int layers = 1; layers < parts + 1; layers++)
            for (int how = 0; how < 3; how++) {
                struct quern_sequence *s[3];
                for (int i = 0; i < 3; i++) {
                    s[i] = sequence_new(e);
                    CHECK(quern_sequence_set(s[i], talks[i + 1], 30 + 40 * i, QUERN_LAST) >= 0);
                    CHECK_EQ(quern_sequence_marks(s[i], (int32_t[]){7, 20 + 10 * i}, 2), OK);
                }
                stopped += some_layers(e, layers);
                for (int i = 0; i < 3; i++) {
                    if (i != 1 && !all) continue;
                    if (how == 0) quern_sequence_free(s[i]), s[i] = sequence_new(e);
                    if (how < 2) CHECK(quern_sequence_set(s[i], talks[i + 1], 90, QUERN_LAST) >= 0);
                    else CHECK_EQ(quern_sequence_push(s[i], talks[i + 1][30 + 40 * i]), OK);
                    disturb(e);
                }
                for (int i = 0; i < 3; i++) {
                    if (quern_sequence_pending(s[i])) logits_last(e, s[i]);
                    disturb(e);
                    if (i != 1 || how < 2) check_logits(s[i], i + 1);
                    CHECK_EQ(quern_sequence_set(s[i], talks[0], 1, QUERN_LAST), 0);
                    quern_sequence_free(s[i]);
                    kv_each_forgotten(e->kv, poison_page, e->be);
                }
            }
    CHECK(stopped >= 2 * 3 * (parts - 1));
    quern_free(e);
    end();
}

/* --- random operations ----------------------------------------------------------------------------------------- */

struct user {
    struct quern_sequence *s;
    int talk, n;
    bool all;
};

static void set_anew(struct user *u, uint64_t *seed)
{
    int32_t marks[3];
    int n_marks = 0, at = 0;
    u->talk = random_below(seed, TALKS);
    u->n = 1 + random_below(seed, TALK);
    u->all = random_below(seed, 8) == 0;
    CHECK(quern_sequence_set(u->s, talks[u->talk], u->n, u->all ? QUERN_ALL : QUERN_LAST) >= 0);
    for (int i = random_below(seed, 4); i > 0; i--) {
        at += 1 + random_below(seed, 50);
        if (at < u->n) marks[n_marks++] = at;
    }
    if (random_below(seed, 4)) CHECK_EQ(quern_sequence_marks(u->s, marks, n_marks), OK);
}

static void act(struct quern_engine *e, struct user users[USERS], uint64_t *seed)
{
    struct user *u = &users[random_below(seed, USERS)];
    int what = random_below(seed, 100);
    if (what < 50) {
        if (random_below(seed, 3) ? quern_step(e, 0) == OK : !some_layers(e, 1 + random_below(seed, 4)))
            for (int i = 0; i < USERS; i++)
                if (users[i].s) check_logits(users[i].s, users[i].talk);
    } else if (what < 70) {
        bool more = u->s && u->n && u->n < TALK && quern_sequence_pending(u->s) == 0;
        if (more) CHECK_EQ(quern_sequence_push(u->s, talks[u->talk][u->n++]), OK);
    } else if (what < 85) {
        if (!u->s) u->s = quern_sequence_new(e, (uint32_t)random_below(seed, 2), random_below(seed, 4) == 0);
        set_anew(u, seed);
    } else if (what < 92) {
        quern_sequence_free(u->s);
        *u = (struct user){0};
    } else if (what < 94) disturb_pages(e, random_next(seed));
    else disturb(e);
}

static void simulation(void)
{
    static const struct quern_options ways[] = {
        {.snapshots = -1},
        {.parallel = 2, .kv_positions = 2 * CONTEXT, .chunk = 9},
        {.parallel = 4, .kv_positions = 3 * CONTEXT, .snapshots = 6, .threads = 2},
        {.snapshots = 1, .chunk = 40}};
    struct sched_facts sum = {0};
    begin();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct quern_engine *e = load(ways[i]);
        struct user users[USERS] = {0};
        uint64_t seed = 17 + i;
        for (long n = check_length(2500, 100000); n > 0; n--) act(e, users, &seed);
        struct sched_facts f = sched_facts(e->sched);
        sum.steps += f.steps, sum.let_go += f.let_go, sum.recomputed += f.recomputed, sum.followed += f.followed;
        quern_free(e);
    }
    CHECK(sum.steps > 1000 && sum.let_go > 20 && sum.recomputed > 1000);
    end();
}

/* --- saved ----------------------------------------------------------------------------------------------------- */

static const struct bytes name = {(const uint8_t *)"a", 1};

struct saved_file {
    uint8_t header[SAVED_HEADER], *records;
    uint64_t record;
    int n;
};

static uint8_t *record_at(const struct saved_file *f, int i) { return f->records + (uint64_t)i * f->record; }

/* Delivers the device's answer. */
static void deliver(struct quern_engine *e)
{
    CHECK(quern_awaits(e));
    played_deliver(e->be);
    quern_arrive(e, 10);
}

static struct quern_sequence *hold(struct quern_engine *e, int n, uint8_t *header)
{
    struct quern_sequence *s = sequence_new(e);
    CHECK(quern_sequence_set(s, talks[0], n, QUERN_HELD) >= 0);
    int status = saved_open(s, name, header);
    for (; status == NEED_MORE; status = saved_open(s, name, header)) deliver(e);
    CHECK_EQ(status, OK);
    return s;
}

/* Takes the file's next record, and waits for the device if needed. */
static int take(struct quern_engine *e, struct quern_sequence *s, uint8_t *record)
{
    int status = saved_take(s, record);
    if (status != NEED_MORE) return status;
    deliver(e);
    return saved_take(s, record);
}

/* Saves the known part of a conversation of n tokens, after the records of the file that agree with it. Returns the
 * number of these. */
static int keep(struct quern_engine *e, int n, struct saved_file *f)
{
    struct quern_sequence *s = hold(e, n, f->header);
    int agreed = 0;
    f->record = saved_record(e);
    if (!f->records) f->records = calloc(RECORDS_MOST, (size_t)f->record);
    while (agreed < f->n && saved_give(s, record_at(f, agreed), SAVED_HEAD) == OK) agreed++;
    for (f->n = agreed; take(e, s, record_at(f, f->n)) == OK;) CHECK(++f->n < RECORDS_MOST);
    quern_sequence_free(s);
    return agreed;
}

/* Restores a file in a held sequence. */
static int give_all(struct quern_sequence *s, struct saved_file *f)
{
    int status = OK;
    for (int i = 0; i < f->n && !status; i++) status = saved_give(s, record_at(f, i), f->record);
    return status;
}

/* Returns the number of known positions. */
static int reply(struct quern_engine *e, struct quern_sequence *s, int32_t *said)
{
    int cached = 0, n_said = 0, n;
    CHECK_EQ(quern_reply_begin(s, &(struct quern_reply){.max_tokens = REPLY}), OK);
    for (bool ended = false; !ended;) {
        if (quern_awaits(e)) deliver(e);
        else CHECK_EQ(quern_step(e, 0), OK);
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

/* An engine that has computed the first `length` tokens of a conversation. */
static struct quern_engine *having_read(int length, struct quern_options options)
{
    struct quern_engine *e = load(options);
    struct quern_sequence *s = sequence_new(e);
    read_talk(e, s, 0, length, NULL, 0);
    quern_sequence_free(s);
    return e;
}

/* What is restored equals what never left the engine: from within a page, and from its end. */
static void kept(void)
{
    begin();
    for (int length = 96; length <= 149; length += 53) {
        struct saved_file f = {0};
        int32_t stayed[REPLY], said[REPLY];
        uint8_t header[SAVED_HEADER];
        struct quern_engine *e = having_read(length, (struct quern_options){.chunk = 13});
        CHECK_EQ(keep(e, length + 1, &f), 0);
        CHECK_EQ(f.n, length / KV_PAGE + load_u32(f.header + 52));
        CHECK(load_u32(f.header + 52) >= 3);
        struct quern_sequence *s = hold(e, length + 1, header);
        CHECK_EQ(reply(e, s, stayed), length);
        quern_free(e);
        e = load((struct quern_options){.threads = 2});
        s = hold(e, length + 1, header);
        CHECK(!memcmp(header, f.header, SAVED_HEADER));
        disturb(e);
        CHECK_EQ(give_all(s, &f), OK);
        CHECK_EQ(quern_sequence_length(s), length);
        disturb(e);
        CHECK_EQ(reply(e, s, said), length);
        CHECK(!memcmp(said, stayed, sizeof said));
        check_pages(e);
        quern_free(e);
        free(f.records);
    }
    end();
}

/* Of a page that is not full only computed rows are saved: the rest may be of another conversation. */
static void kept_alone(void)
{
    begin();
    for (enum quern_kv kv = QUERN_KV_F16; kv <= QUERN_KV_Q8; kv++) {
        struct saved_file f[2] = {0};
        for (int i = 0; i < 2; i++) {
            struct quern_engine *e = load((struct quern_options){.kv = kv});
            if (i) kv_each_forgotten(e->kv, poison_page, e->be);
            struct quern_sequence *s = sequence_new(e);
            CHECK_EQ(quern_sequence_set(s, talks[0], 70, QUERN_LAST), 0);
            logits_last(e, s);
            quern_sequence_free(s);
            keep(e, 71, &f[i]);
            quern_free(e);
        }
        CHECK(f[0].n == f[1].n && !memcmp(f[0].records, f[1].records, (size_t)((uint64_t)f[0].n * f[0].record)));
        free(f[0].records);
        free(f[1].records);
    }
    end();
}

/* A device that answers late gives the same logits and the same records, and continues from them as well. */
static void late(void)
{
    struct saved_file f[2] = {0};
    int32_t said[2][REPLY];
    uint8_t header[SAVED_HEADER];
    begin();
    for (int backend = BACKEND_CPU; backend <= BACKEND_PLAYED; backend++) {
        struct quern_engine *e = load((struct quern_options){.backend = backend, .chunk = 13});
        struct quern_sequence *s = sequence_new(e);
        CHECK_EQ(quern_sequence_set(s, talks[0], 70, QUERN_LAST), 0);
        CHECK_EQ(quern_sequence_marks(s, (int32_t[]){20, 40}, 2), OK);
        while (quern_sequence_pending(s) > 0) {
            CHECK_EQ(quern_step(e, 0), OK);
            if (quern_awaits(e)) deliver(e);
            check_logits(s, 0);
        }
        quern_sequence_free(s);
        keep(e, 71, &f[backend]);
        quern_free(e);
    }
    CHECK(f[0].n == f[1].n && !memcmp(f[0].records, f[1].records, (size_t)((uint64_t)f[0].n * f[0].record)));
    CHECK(f[0].n > 2 && !memcmp(f[0].header, f[1].header, SAVED_HEADER));
    for (int backend = BACKEND_CPU; backend <= BACKEND_PLAYED; backend++) {
        struct quern_engine *e = load((struct quern_options){.backend = backend});
        struct quern_sequence *s = hold(e, TALK, header);
        CHECK_EQ(give_all(s, &f[1 - backend]), OK);
        CHECK_EQ(quern_sequence_length(s), 70);
        CHECK_EQ(reply(e, s, said[backend]), 70);
        quern_free(e);
    }
    CHECK(!memcmp(said[0], said[1], sizeof said[0]));
    free(f[0].records);
    free(f[1].records);
    end();
}

/* The records of a state are replaced by the next pages; the longer file restores as well as a new one. */
static void saved_on(void)
{
    int32_t stayed[REPLY], said[REPLY];
    uint8_t header[SAVED_HEADER];
    struct saved_file f = {0};
    begin();
    struct quern_engine *e = having_read(70, (struct quern_options){0});
    keep(e, 71, &f);
    CHECK_EQ(keep(e, 71, &f), f.n); /* nothing is new */
    struct quern_sequence *s = sequence_new(e);
    CHECK_EQ(read_talk(e, s, 0, 149, NULL, 0), 70);
    quern_sequence_free(s);
    CHECK_EQ(keep(e, TALK, &f), 2);
    CHECK_EQ(f.n, 149 / KV_PAGE + load_u32(f.header + 52));
    s = hold(e, TALK, header);
    reply(e, s, stayed);
    quern_free(e);
    /* restored in a sequence that knows a part of it, which does not end with a page */
    for (int known = 40; known <= 133; known += 93) {
        e = having_read(known, (struct quern_options){0});
        s = hold(e, TALK, header);
        CHECK_EQ(quern_sequence_length(s), known);
        for (int i = 0; i < f.n; i++) {
            CHECK_EQ(saved_give(s, record_at(&f, i), (i + 1) * KV_PAGE <= known ? SAVED_HEAD : f.record), OK);
            if (i < 4) CHECK_EQ(quern_sequence_length(s), max_int((i + 1) * KV_PAGE, i < known / KV_PAGE ? known : 0));
        }
        CHECK_EQ(reply(e, s, said), 149);
        CHECK(!memcmp(said, stayed, sizeof said));
        check_pages(e);
        quern_free(e);
    }
    free(f.records);
    end();
}

/* A damaged or missing record loses the state, but never changes a bit. */
static void saved_badly(void)
{
    int32_t stayed[REPLY], said[REPLY];
    uint8_t header[SAVED_HEADER];
    struct saved_file f = {0};
    begin();
    struct quern_engine *e = having_read(149, (struct quern_options){0});
    keep(e, TALK, &f);
    struct quern_sequence *s = hold(e, TALK, header);
    reply(e, s, stayed);
    quern_sequence_free(s);
    for (int i = 0; i < 2 * f.n; i++) {
        bool cut = i % 2;
        disturb_pages(e, 3);
        disturb(e);
        s = hold(e, TALK, header);
        CHECK_EQ(quern_sequence_length(s), 0);
        int whole = f.n, status = OK;
        record_at(&f, i / 2)[f.record / 2] ^= !cut;
        if (cut) f.n = i / 2;
        status = give_all(s, &f);
        f.n = whole;
        CHECK_EQ(status, cut ? OK : ERR_FORMAT);
        record_at(&f, i / 2)[f.record / 2] ^= !cut;
        check_pages(e);
        if (i % 3 == 0) CHECK_EQ(saved_take(s, record_at(&f, f.n)), ERR_EMPTY);
        CHECK_EQ(reply(e, s, said), 0);
        CHECK(!memcmp(said, stayed, sizeof said));
        quern_sequence_free(s);
    }
    for (int field = 260; field < 300; field += field == 260 ? 36 : 4) { /* the fields of its head about the state */
        disturb_pages(e, 3);
        s = hold(e, TALK, header);
        for (int i = 0; i < 4; i++) CHECK_EQ(saved_give(s, record_at(&f, i), f.record), OK);
        for (int k = 0; k < 32; k++) {
            record_at(&f, 4)[field + k / 8] ^= (uint8_t)(1 << k % 8);
            CHECK(saved_give(s, record_at(&f, 4), f.record) < 0);
            record_at(&f, 4)[field + k / 8] ^= (uint8_t)(1 << k % 8);
            check_pages(e);
        }
        quern_sequence_free(s);
    }
    quern_free(e);
    free(f.records);
    end();
}

/* A sequence that is being restored loses its pages to another one, whatever part of its state has arrived. */
static void saved_let_go(void)
{
    int32_t said[REPLY];
    uint8_t header[SAVED_HEADER];
    struct saved_file f = {0};
    begin();
    struct quern_engine *e = having_read(149, (struct quern_options){0});
    keep(e, TALK, &f);
    quern_free(e);
    e = load((struct quern_options){.snapshots = -1, .kv_positions = CONTEXT});
    struct quern_sequence *s = hold(e, TALK, header), *other = sequence_new(e);
    for (int i = 0; i < f.n - 1; i++) CHECK_EQ(saved_give(s, record_at(&f, i), f.record), OK);
    CHECK_EQ(read_talk(e, other, 4, TALK, NULL, 0), 0);
    CHECK_EQ(saved_give(s, record_at(&f, f.n - 1), f.record), ERR_BUSY);
    disturb(e);
    quern_sequence_free(other);
    CHECK_EQ(reply(e, s, said), 0);
    quern_free(e);
    free(f.records);
    end();
}

/* --- the plan -------------------------------------------------------------------------------------------------- */

/* Two slots for each whole conversation and one for each snapshot; snapshots are reduced before the context shrinks. */
static void plan(void)
{
    begin();
    struct quern_engine *e = load((struct quern_options){.context_size = CONTEXT});
    struct quern_plan p = *quern_plan(e);
    uint64_t slot = ((struct cpu *)e->be)->state.bytes, used, peak;
    CHECK_EQ(kv_slots(e->kv), slots_each() + 3);
    read_talk(e, sequence_new(e), 0, TALK, NULL, 0);
    quern_memory(e, &used, &peak);
    CHECK(peak < p.total + p.total / 20 && p.total < peak + peak / 20);
    quern_free(e);
    e = load((struct quern_options){.context_size = CONTEXT, .kv_positions = 3 * CONTEXT, .snapshots = 7});
    CHECK_EQ(kv_slots(e->kv), 3 * slots_each() + 7);
    quern_free(e);
    e = load((struct quern_options){.context_size = CONTEXT, .snapshots = -1});
    CHECK_EQ(kv_slots(e->kv), slots_each());
    CHECK_EQ((p.cache - quern_plan(e)->cache) / slot, 3);
    quern_free(e);
    e = load((struct quern_options){.context_size = CONTEXT, .memory_limit = p.total - slot});
    CHECK_EQ(kv_slots(e->kv), slots_each() + 1);
    CHECK_EQ(e->context_size, CONTEXT);
    quern_free(e);
    played_states = imitated;
    e = quern_new(&(struct quern_options){.context_size = CONTEXT, .memory_limit = p.total - 3 * slot});
    CHECK_EQ(engine_feed(e, &model, SIZE_MAX), ERR_MEM_PLAN);
    played_states = false;
    quern_free(e);
    end();
}

static const struct check tests[] = {
    {"states_matter", states_matter}, {"cuts", cuts},     {"second_turn", second_turn}, {"turns", turns},
    {"followers", followers},         {"aborts", aborts}, {"simulation", simulation},   {"kept", kept},
    {"kept_alone", kept_alone},       {"late", late},     {"saved_on", saved_on},         {"saved_badly", saved_badly},
    {"saved_let_go", saved_let_go},     {"plan", plan},
};

int main(int argc, char **argv)
{
    int failed = check_run(argc, argv, tests, sizeof tests / sizeof *tests);
    imitated = true;
    return check_run(argc, argv, tests, sizeof tests / sizeof *tests) || failed;
}
