/* SPDX-License-Identifier: MIT
 *
 * Limits of a reply that change between two steps: alone, beside others, after its pages were taken; penalties that are
 * off; the end of the context.
 */
#include "session.h"

#include <math.h>

enum { MASK = (GOLDEN_VOCAB + 31) / 32, MOST = 120, WRITERS = 6 };

struct writer {
    struct quern_sequence *s;
    int32_t tokens[MOST];
    int n, let_go;
    int waits; /* steps before its next limit is known */
    enum quern_end end;
    int32_t status;
};

static struct quern_engine *open_nano(struct quern_options options)
{
    struct file f = golden_file("nano.Q8_0", "gguf");
    struct quern_engine *e = engine_load(&f, options, SIZE_MAX);
    file_free(&f);
    return e;
}

/* Every third id, another third after each token; never an id that ends the reply. */
static bool may_follow(const struct quern_engine *e, int who, int n, int id)
{
    return (id + who + n) % 3 == 0 && !quern_is_end(e, id);
}

static void limit(struct quern_engine *e, struct writer *w, int who)
{
    uint32_t bits[MASK] = {0};
    for (int id = 0; id < e->n_sampled; id++)
        if (may_follow(e, who, w->n, id)) bits[id / 32] |= 1u << id % 32;
    CHECK_EQ(quern_reply_allow(w->s, bits, w->n % 2 ? QUERN_LENIENT : 0), OK);
}

/* The next limit becomes known after some steps. */
static void limit_later(struct writer *w, int who)
{
    w->waits = 1 + (w->n + who) % 3;
    CHECK_EQ(quern_reply_allow(w->s, NULL, QUERN_WAITS), OK);
}

static void begin(struct quern_engine *e, struct writer *w, int who, const struct quern_reply *reply)
{
    int32_t ids[40];
    for (int i = 0; i < 40; i++) ids[i] = 20 + i + 5 * who;
    *w = (struct writer){.s = quern_sequence_new(e, (uint32_t)who, who < 3)};
    CHECK(w->s != NULL);
    CHECK(quern_sequence_set(w->s, ids, 10 + 5 * who, QUERN_HELD) >= 0);
    CHECK_EQ(quern_reply_begin(w->s, reply), OK);
}

enum how { FREE, LIMITED, LATE };

/* The replies as they are alone; NULL: not known yet. Then they are what is drafted, with a wrong token now and then. */
static const struct writer *known;

static void draft(struct writer *w, int who)
{
    int32_t ids[8] = {0};
    int n = 0;
    for (; known && n < 8 && w->n + n < known[who].n; n++)
        ids[n] = known[who].tokens[w->n + n] ^ ((w->n + n) % 7 == 6);
    quern_reply_draft(w->s, ids, n, w->n % 2 ? QUERN_FORCED : QUERN_GUESSED);
    if (n > 0) CHECK_EQ(quern_reply_wants(w->s, 0), 0); /* these are known already, or come too late */
}

/* Makes a step of all writers. Limited writers get a new limit after each token, at once or (LATE) later; until then
 * they write nothing. */
static void step(struct quern_engine *e, struct writer *writers, int first, int n, enum how limited)
{
    int n_events;
    for (int i = 0; i < n; i++)
        if (writers[i].waits && --writers[i].waits == 0) limit(e, &writers[i], first + i);
    CHECK_EQ(quern_step(e, 0), OK);
    const struct quern_event *events = quern_events(e, &n_events);
    for (int i = 0; i < n_events; i++) {
        int at = 0;
        while (at < n && quern_sequence_number(writers[at].s) != events[i].number) at++;
        CHECK(at < n);
        struct writer *w = &writers[at];
        if (events[i].type == QUERN_LET_GO) w->let_go++;
        if (events[i].type == QUERN_END) w->end = (enum quern_end)events[i].end, w->status = events[i].status;
        if (events[i].type != QUERN_TOKEN) continue;
        CHECK(w->n < MOST);
        CHECK(!limited || may_follow(e, first + at, w->n, events[i].token));
        CHECK_EQ(w->waits, 0);
        w->tokens[w->n++] = events[i].token;
        if (limited == LATE) limit_later(w, first + at);
        else if (limited) limit(e, w, first + at);
        draft(w, first + at);
    }
}

static void write_all(struct quern_engine *e, struct writer *writers, int first, int n, enum how limited)
{
    bool left = true;
    for (int calls = 0; left; calls++) {
        CHECK(calls < 2000);
        step(e, writers, first, n, limited);
        left = false;
        for (int i = 0; i < n; i++) left |= !writers[i].end;
    }
}

static struct quern_reply reply_of(int who)
{
    static const struct sampler_params ways[] = {
        {.temperature = 0},
        {.temperature = 1, .seed = 1, .top_k = 30},
        {.temperature = 1.5f, .seed = 2, .repeat_penalty = 1.4f, .presence_penalty = 0.5f}};
    return (struct quern_reply){.sampling = ways[who % 3], .max_tokens = MOST - 10 * who, .single = true};
}

/* Steps take equally long, however many rows they have, so drafts pay. */
static double played_ms;
static double played_clock(void) { return played_ms += 1; }

/* A reply is the same alone and beside others, some of which lose their pages and read again; also if limits become
 * known late, from the prompt on, and if its tokens are drafted. */
static void in_company(void)
{
    static struct writer alone[WRITERS], together[WRITERS];
    for (int who = 0; who < WRITERS; who++) {
        struct quern_engine *e = open_nano((struct quern_options){.context_size = 256, .no_drafts = true});
        struct quern_reply reply = reply_of(who);
        begin(e, &alone[who], who, &reply);
        limit(e, &alone[who], who);
        write_all(e, &alone[who], who, 1, LIMITED);
        CHECK(alone[who].end == QUERN_LENGTH && alone[who].n == reply.max_tokens);
        quern_free(e);
    }
    for (int way = 0; way < 4; way++) {
        enum how how = way % 2 ? LATE : LIMITED;
        int let_go = 0;
        struct sched_facts facts;
        known = way < 2 ? NULL : alone;
        struct quern_engine *e = open_nano(
            (struct quern_options){.context_size = 256, .parallel = WRITERS, .kv_positions = 256, .threads = 2, .now = played_clock});
        for (int who = 0; who < WRITERS; who++) {
            struct quern_reply reply = reply_of(who);
            begin(e, &together[who], who, &reply);
            if (how == LATE) limit_later(&together[who], who);
            else limit(e, &together[who], who);
            /* first the background replies, then the others */
            for (int i = 0; who == 2 && i < 20; i++) step(e, together, 0, 3, how);
        }
        write_all(e, together, 0, WRITERS, how);
        for (int who = 0; who < WRITERS; who++) {
            CHECK_EQ(together[who].n, alone[who].n);
            CHECK(!memcmp(together[who].tokens, alone[who].tokens, (size_t)alone[who].n * sizeof *alone[who].tokens));
            let_go += together[who].let_go;
        }
        CHECK(let_go > 0);
        quern_facts(e, &facts);
        /* drafts of a reply that waits for its limit are dropped when the others go on */
        if (known) CHECK(facts.right > (how == LIMITED ? 50 : 0) && facts.drafted > facts.right);
        quern_free(e);
    }
    known = NULL;
}

/* Drafts that are right save steps, and as many are wanted as pay. */
static void given(void)
{
    static struct writer alone, w;
    struct quern_reply reply = reply_of(0);
    struct sched_facts facts[2];
    int wanted = 0;
    for (int i = 0; i < 2; i++) {
        struct quern_engine *e = open_nano((struct quern_options){.context_size = 256, .no_drafts = i == 0});
        begin(e, &w, 0, &reply);
        CHECK_EQ(quern_reply_wants(w.s, 0), 0); /* nothing is written yet */
        while (!w.end) {
            known = NULL;
            step(e, &w, 0, 1, FREE);
            int most = quern_reply_wants(w.s, 0);
            CHECK(most >= QUERN_TRY && most <= 7 && (i == 1 || most == 0) && quern_reply_wants(w.s, 1e9) <= 0);
            wanted += most > 0;
            known = i ? &alone : NULL;
            draft(&w, 0);
        }
        quern_facts(e, &facts[i]);
        if (i == 0) alone = w;
        CHECK(w.n == alone.n && !memcmp(w.tokens, alone.tokens, (size_t)w.n * sizeof *w.tokens));
        quern_free(e);
    }
    CHECK(wanted > 0 && facts[1].right > 0 && facts[1].steps < facts[0].steps);
    known = NULL;
}

/* A reply that waits for its limit has its prompt read except for the last row, and no step does anything for it; steps
 * without other replies do nothing at all. It may end while it waits. */
static void waiting(void)
{
    static struct writer w[2];
    int n_events;
    struct quern_engine *e = open_nano((struct quern_options){.context_size = 128, .parallel = 2});
    struct quern_reply reply = {.max_tokens = 8};
    begin(e, &w[0], 0, &reply);
    CHECK_EQ(quern_reply_allow(w[0].s, NULL, QUERN_WAITS), OK);
    for (int i = 0; i < 5; i++) CHECK_EQ(quern_step(e, 0), OK);
    CHECK_EQ(quern_sequence_pending(w[0].s), 1);
    quern_events(e, &n_events);
    CHECK_EQ(n_events, 0);
    begin(e, &w[1], 1, &reply);
    write_all(e, w + 1, 1, 1, FREE);
    CHECK(w[1].end && quern_sequence_pending(w[0].s) == 1);
    quern_sequence_free(w[0].s);
    CHECK_EQ(quern_step(e, 0), OK);
    begin(e, &w[0], 0, &reply); /* this reply does not wait */
    write_all(e, w, 0, 1, FREE);
    quern_free(e);
}

/* A mask and biases of minus infinity have the same effect; without them the reply differs. */
static void as_biases(void)
{
    static struct writer masked, biased, plain;
    struct logit_bias never[GOLDEN_VOCAB];
    struct quern_engine *e = open_nano((struct quern_options){.context_size = 128});
    struct quern_reply reply = {.sampling = {.temperature = 1, .seed = 9}, .max_tokens = 40};
    uint32_t bits[MASK] = {0};
    int n = 0;
    for (int id = 0; id < e->n_sampled; id++) {
        if (may_follow(e, 0, 0, id)) bits[id / 32] |= 1u << id % 32;
        else never[n++] = (struct logit_bias){id, -INFINITY};
    }
    begin(e, &masked, 0, &reply);
    CHECK_EQ(quern_reply_allow(masked.s, bits, 0), OK);
    memset(bits, 0, sizeof bits); /* the engine has a copy */
    write_all(e, &masked, 0, 1, FREE);
    quern_sequence_free(masked.s);
    for (int id = 0; id < e->n_sampled; id++) bits[id / 32] |= (uint32_t)may_follow(e, 0, 0, id) << id % 32;
    reply.sampling.bias = never, reply.sampling.n_bias = n;
    struct quern_engine *other = open_nano((struct quern_options){.context_size = 128});
    begin(other, &biased, 0, &reply);
    write_all(other, &biased, 0, 1, FREE);
    CHECK(masked.n == 40 && biased.n == 40 && !memcmp(masked.tokens, biased.tokens, sizeof masked.tokens));
    quern_free(other);
    quern_free(e);
    e = open_nano((struct quern_options){.context_size = 128});
    reply.sampling.n_bias = 0;
    begin(e, &plain, 0, &reply);
    CHECK_EQ(quern_reply_allow(plain.s, bits, 0), OK);
    CHECK_EQ(quern_reply_allow(plain.s, NULL, 0), OK);
    write_all(e, &plain, 0, 1, FREE);
    CHECK(memcmp(masked.tokens, plain.tokens, sizeof masked.tokens));
    quern_free(e);
}

/* A mask that allows nothing ends its reply with an error; other replies and the next one continue. */
static void nothing_left(void)
{
    static struct writer w[2], next;
    static const uint32_t none[MASK];
    struct quern_engine *e = open_nano((struct quern_options){.context_size = 128, .parallel = 2});
    struct quern_reply reply = {.max_tokens = 8};
    begin(e, &w[0], 0, &reply);
    begin(e, &w[1], 1, &reply);
    CHECK_EQ(quern_reply_allow(w[0].s, none, 0), OK);
    write_all(e, w, 0, 2, FREE);
    CHECK(w[0].end == QUERN_ERROR && w[0].status == ERR_EMPTY && w[0].n == 0);
    CHECK(strstr(quern_error(e)->message, "forbidden"));
    CHECK(w[1].end == QUERN_LENGTH || w[1].end == QUERN_STOP);
    CHECK_EQ(quern_reply_allow(w[0].s, none, 0), OK); /* it has ended already */
    quern_sequence_free(w[0].s);
    begin(e, &next, 0, &reply); /* a new reply has no limits */
    write_all(e, &next, 0, 1, FREE);
    CHECK(next.end == QUERN_LENGTH || next.end == QUERN_STOP);
    quern_free(e);
}

static void without_penalties(void)
{
    static struct writer spared, plain, penalised;
    struct sampler_params params = {.temperature = 0.01f, .seed = 3};
    for (int way = 0; way < 3; way++) {
        struct writer *w = way == 0 ? &plain : way == 1 ? &spared : &penalised;
        struct quern_engine *e = open_nano((struct quern_options){.context_size = 128});
        if (way) params.repeat_penalty = 2, params.presence_penalty = 2, params.frequency_penalty = 1;
        begin(e, w, 0, &(struct quern_reply){.sampling = params, .max_tokens = 40});
        if (way == 1) CHECK_EQ(quern_reply_allow(w->s, NULL, QUERN_LENIENT), OK);
        write_all(e, w, 0, 1, FREE);
        quern_free(e);
    }
    CHECK(spared.n == plain.n && !memcmp(spared.tokens, plain.tokens, sizeof plain.tokens));
    CHECK(memcmp(spared.tokens, penalised.tokens, sizeof plain.tokens));
}

/* The end of the context and the caller's limit, one token apart. */
static void ends_of_room(void)
{
    for (int most = 9; most <= 12; most++) {
        static struct writer w;
        struct quern_engine *e = open_nano((struct quern_options){.context_size = 20});
        begin(e, &w, 0, &(struct quern_reply){.max_tokens = most == 12 ? 0 : most});
        for (limit(e, &w, 0); !w.end;) step(e, &w, 0, 1, LIMITED);
        CHECK_EQ(w.n, most == 9 ? 9 : 10);
        CHECK_EQ(w.end, most <= 10 ? QUERN_LENGTH : QUERN_CONTEXT);
        quern_free(e);
    }
}

static const struct check tests[] = {
    {"in_company", in_company},     {"given", given},
    {"waiting", waiting},           {"as_biases", as_biases},
    {"nothing_left", nothing_left}, {"without_penalties", without_penalties},
    {"ends_of_room", ends_of_room},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
