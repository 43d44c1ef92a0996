/* SPDX-License-Identifier: MIT
 *
 * Replies side by side: whenever others arrive, stop, end or need pages, at whatever layer, each reply is the same as
 * alone, and its logits are the same to the bit. Also what events report, and what ends a reply.
 */
#include "played_model.h"
#include "session.h"

#include <math.h>

enum { TALKS = 8, GUESTS = 2, PROMPT_MOST = 70, TOKENS_MOST = 150, CONTEXT = 256 };

/* A request for a reply. */
struct script {
    int32_t prompt[PROMPT_MOST];
    int n;
    uint32_t scope;
    int priority;
    struct quern_reply reply;
};

/* The reply to it alone. */
struct alone {
    int32_t tokens[TOKENS_MOST];
    int n;
    enum quern_end end;
    float logits[TOKENS_MOST][GOLDEN_VOCAB]; /* before each token */
};

/* A running reply beside others. */
struct talk {
    const struct script *script;
    struct alone said;
    struct quern_sequence *s;
    int done, cached;  /* from the last event; -1: none yet */
    bool ended;
    bool let_go;       /* lost its pages since it last read or wrote */
    struct tok_stream stream;
};

static int n_drafted, n_right; /* of all replies */
static int n_silenced, n_left; /* for all replies: tokens that were reported without text, ends with some text */

/* --- watching ---------------------------------------------------------------------------------------------------- */

static void begin_talk(struct quern_engine *e, struct talk *t, const struct script *script)
{
    *t = (struct talk){.script = script, .s = quern_sequence_new(e, script->scope, script->priority), .done = -1};
    CHECK(t->s != NULL);
    CHECK(quern_sequence_set(t->s, script->prompt, script->n, QUERN_HELD) >= 0);
    CHECK_EQ(quern_reply_begin(t->s, &script->reply), OK);
}

/* An event reports the whole characters that its token completes, and the end event the rest: the same text as from a
 * stream of the tokens. */
static void check_text(struct quern_engine *e, struct talk *t, const struct quern_event *event)
{
    static uint8_t text[1024];
    const struct quern_reply *r = &t->script->reply;
    size_t n = 0;
    bool silent = event->kind == 3;
    if (event->type == QUERN_TOKEN) {
        CHECK_EQ(event->kind, quern_token_type(e, event->token));
        for (int i = 0; i < r->n_silent; i++) silent |= r->silent[i] == event->token;
        if (!silent) n = tok_stream_push(&t->stream, quern_token(e, event->token), text);
        n_silenced += silent && event->kind != 3;
    } else if (event->type == QUERN_END) {
        n = tok_stream_end(&t->stream, text);
        n_left += n > 0;
    }
    CHECK_EQ(event->size, (int)n);
    CHECK(n == 0 || !memcmp(quern_event_text(e) + event->text, text, n));
}

/* Checks the order of this reply's events: READ*, TOKEN*, END. */
static void hear(struct quern_engine *e, struct talk *t, const struct quern_event *event)
{
    check_text(e, t, event);
    CHECK(!t->ended);
    if (event->type == QUERN_LET_GO) {
        t->let_go = true;
    } else if (event->type == QUERN_READ) {
        CHECK(t->said.n == 0);
        CHECK_EQ(event->total, t->script->n);
        CHECK(event->done <= event->total && (event->done > t->done || t->let_go));
        CHECK(event->cached >= 0 && event->cached < event->total);
        t->done = event->done;
        t->cached = event->cached;
        t->let_go = false;
    } else if (event->type == QUERN_TOKEN) {
        CHECK(t->said.n < TOKENS_MOST);
        CHECK_EQ(t->done, t->script->n);
        t->said.tokens[t->said.n++] = event->token;
    } else {
        CHECK_EQ(event->type, QUERN_END);
        t->said.end = (enum quern_end)event->end;
        n_drafted += event->total, n_right += event->done;
        t->ended = true;
    }
}

static struct talk *talk_of(struct talk *talks, int n, int32_t number)
{
    for (int i = 0; i < n; i++)
        if (talks[i].s && quern_sequence_number(talks[i].s) == number) return &talks[i];
    return NULL;
}

/* Stores the logits before the token that was just reported. */
static void keep_logits(struct talk *t)
{
    int first, n;
    const float *logits = quern_logits(t->s, &first, &n);
    int row = first - (t->script->n - 1);
    if (n == 0) return;
    CHECK(n <= 8 && row >= 0 && row + n <= TOKENS_MOST);
    memcpy(t->said.logits[row], logits, (size_t)n * sizeof t->said.logits[row]); /* a wrong draft's row comes again */
}

/* Calls step once; returns its status. */
static int step_talks(struct quern_engine *e, struct talk *talks, int n)
{
    int n_events, status = quern_step(e, 0);
    const struct quern_event *events = quern_events(e, &n_events);
    CHECK(status == OK || status == 1);
    for (int i = 0; i < n_events; i++) {
        struct talk *t = talk_of(talks, n, events[i].number);
        CHECK(t != NULL);
        hear(e, t, &events[i]);
    }
    for (int i = 0; status == OK && i < n; i++)
        if (talks[i].s) keep_logits(&talks[i]);
    return status;
}

static void check_said(const struct alone *said, const struct alone *alone)
{
    CHECK_EQ(said->n, alone->n);
    CHECK_EQ(said->end, alone->end);
    CHECK(!memcmp(said->tokens, alone->tokens, (size_t)alone->n * sizeof *alone->tokens));
    for (int i = 0; i < alone->n; i++) CHECK(same_bits(said->logits[i], alone->logits[i], GOLDEN_VOCAB));
}

/* --- scripts --------------------------------------------------------------------------------------------------- */

/* Writes prompts, some with a common beginning, with every way to sample. Half of the replies are long and take more
 * pages than promised. Guests are background replies, so that they lose their places too. */
static void write_scripts(const struct file *f, struct script *scripts)
{
    static struct logit_bias never[8];
    static int32_t silent[QUERN_SILENT_MOST];
    int n_never = 0;
    static const struct sampler_params ways[] = {
        {.temperature = 0},
        {.temperature = 1, .seed = 1},
        {.temperature = 0.7f, .top_k = 20, .top_p = 0.8f, .seed = 2},
        {.temperature = 1, .repeat_penalty = 1.3f, .presence_penalty = 0.5f, .frequency_penalty = 0.2f, .seed = 3},
        {.temperature = 2, .min_p = 0.01f, .seed = 4},
    };
    int32_t ids[GOLDEN_ROWS];
    golden_tokens(ids);
    struct quern_engine *e = engine_load(f, (struct quern_options){0}, SIZE_MAX);
    for (int id = 0; id < GOLDEN_VOCAB; id++)
        if (quern_is_end(e, id)) never[n_never++] = (struct logit_bias){id, -INFINITY};
    for (int i = 0; i < QUERN_SILENT_MOST; i++) silent[i] = 7 * i;
    quern_free(e);
    for (int i = 0; i < TALKS + GUESTS; i++) {
        struct script *s = &scripts[i];
        bool is_long = i % 3 == 0;
        *s = (struct script){
            .n = 5 + 9 * (i % TALKS),
            .scope = i % 4 == 3,
            .priority = i >= TALKS,
            .reply = {.sampling = ways[i % 5], .max_tokens = is_long ? TOKENS_MOST - 2 * i : 5 + 3 * i}};
        if (i % 2) s->reply.silent = silent, s->reply.n_silent = QUERN_SILENT_MOST;
        if (is_long) s->reply.sampling.bias = never, s->reply.sampling.n_bias = n_never;
        for (int k = 0; k < s->n; k++) s->prompt[k] = i % 2 ? ids[k] : ids[(k + 31 * i) % GOLDEN_ROWS];
        s->prompt[s->n - 1] = 100 + i;
    }
}

static void write_alone(const struct file *f, enum quern_kv kv, const struct script *scripts, struct alone *alone)
{
    for (int i = 0; i < TALKS; i++) {
        struct quern_engine *e = engine_load(f, (struct quern_options){.context_size = CONTEXT, .kv = kv}, SIZE_MAX);
        struct talk t;
        begin_talk(e, &t, &scripts[i]);
        while (!t.ended) CHECK_EQ(step_talks(e, &t, 1), OK);
        CHECK(t.said.n > 0 && t.said.end != QUERN_ERROR);
        alone[i] = t.said;
        quern_free(e);
    }
}

/* --- beside others --------------------------------------------------------------------------------------------- */

/* Begins a reply that is stopped at some layer, and then set anew, freed, or ended. */
static void disturb_talk(struct quern_engine *e, struct talk *t, const struct script *scripts, uint64_t *seed)
{
    if (!t->s) {
        begin_talk(e, t, &scripts[TALKS + random_below(seed, GUESTS)]);
        return;
    }
    int how = random_below(seed, 4);
    t->ended = true;
    if (how == 0) quern_reply_end(t->s);
    if (how <= 1) CHECK(quern_sequence_set(t->s, t->script->prompt, t->script->n, QUERN_HELD) >= 0);
    if (how == 0) {
        *t = (struct talk){.script = t->script, .s = t->s, .done = -1};
        CHECK_EQ(quern_reply_begin(t->s, &t->script->reply), OK);
    } else if (how > 1) {
        quern_sequence_free(t->s);
        t->s = NULL;
    }
}

/* Runs all replies, each beginning at some layer of the others' steps, beside guests that come and go. */
static struct sched_facts in_company(const struct file *f, struct quern_options options, const struct script *scripts,
                                     const struct alone *alone, uint64_t seed)
{
    struct quern_engine *e = engine_load(f, options, SIZE_MAX);
    static struct talk talks[TALKS + GUESTS];
    struct sched_facts facts;
    uint64_t before = e->mem.used, let_go = 0;
    int begun = 0, left = TALKS;
    memset(talks, 0, sizeof talks);
    for (int calls = 0; left > 0; calls++) {
        CHECK(calls < 100000);
        if (begun < TALKS && random_below(&seed, 6) == 0) begin_talk(e, &talks[begun], &scripts[begun]), begun++;
        if (left > 2 && random_below(&seed, 12) == 0)
            disturb_talk(e, &talks[TALKS + random_below(&seed, GUESTS)], scripts, &seed);
        quern_control(e)->attention = random_below(&seed, 2);
        uint64_t allocs = e->mem.n_allocs;
        step_talks(e, talks, TALKS + GUESTS);
        CHECK_EQ(e->mem.n_allocs, allocs);
        check_pages(e);
        quern_facts(e, &facts);
        if (!e->step.running && (facts.let_go > let_go || calls % 50 == 0)) {
            disturb_pages(e, seed); /* pages that no reply holds are NaN now */
            let_go = facts.let_go;
        }
        for (int i = 0; i < begun; i++) {
            if (!talks[i].ended || !talks[i].s) continue;
            check_said(&talks[i].said, &alone[i]);
            quern_sequence_free(talks[i].s);
            talks[i].s = NULL;
            left--;
        }
    }
    while (e->sequences) quern_sequence_free(e->sequences);
    quern_facts(e, &facts);
    CHECK(facts.used == 0 && facts.running == 0 && facts.waiting == 0);
    CHECK_EQ(e->mem.used, before);
    quern_free(e);
    return facts;
}

/* Tells the played model the conversations, of which it drafts tokens from now on. */
static void expect(const struct script *scripts, const struct alone *alone)
{
    static int32_t ids[TALKS][PROMPT_MOST + TOKENS_MOST];
    played_forget();
    for (int i = 0; i < TALKS; i++) {
        memcpy(ids[i], scripts[i].prompt, (size_t)scripts[i].n * sizeof **ids);
        memcpy(ids[i] + scripts[i].n, alone[i].tokens, (size_t)alone[i].n * sizeof **ids);
        played_expect(ids[i], scripts[i].n + alone[i].n);
    }
}

/* Compares with replies alone. The first nine rounds have all combinations of threads and chunks; any three successive
 * rounds have each number of threads and each chunk. */
static void as_alone(const char *name, enum quern_kv kv, int first, int rounds)
{
    static const int chunks[] = {1, 7, 64}, parallel[] = {4, 1, 16, 2}, caches[] = {0, 0, 0, 1000};
    static struct script scripts[TALKS + GUESTS];
    static struct alone alone[TALKS];
    struct file f = golden_file(name, "gguf");
    uint64_t let_go = 0, followed = 0;
    write_scripts(&f, scripts);
    write_alone(&f, kv, scripts, alone);
    CHECK(n_silenced > 0 && n_left > 0);
    expect(scripts, alone);
    n_drafted = n_right = 0;
    for (int i = first; i < first + rounds; i++) {
        struct quern_options options = {.context_size = CONTEXT,
                                        .kv = kv,
                                        .threads = 1 + (i + i / 3) % 3,
                                        .chunk = chunks[i % 3],
                                        .parallel = parallel[i % 4],
                                        .kv_positions = caches[i / 2 % 4]};
        played_drafts = i % 3 != 1;
        struct sched_facts facts = in_company(&f, options, scripts, alone, (uint64_t)i + 1);
        played_drafts = false;
        let_go += facts.let_go, followed += facts.followed;
    }
    printf("# %s: let go %llu times, %llu positions followed, %d of %d drafts right\n", name,
           (unsigned long long)let_go, (unsigned long long)followed, n_right, n_drafted);
    CHECK(let_go > 0 && n_right > 0 && n_drafted > n_right);
    file_free(&f);
}

static void as_alone_f16(void) { as_alone("duo.F32", QUERN_KV_F16, 0, (int)check_length(3, 6)); }
static void as_alone_q8(void) { as_alone("nano.Q8_0", QUERN_KV_Q8, 2, 3); }
static void as_alone_f32(void) { as_alone("nano.Q4_0", QUERN_KV_F32, 0, 3); }
static void as_alone_experts(void) { as_alone("moe-nano.Q4_K_M", QUERN_KV_F16, 2, 2); }
static void as_alone_states(void) { as_alone("hyb.F32", QUERN_KV_F16, 0, 3); }
static void by_threads(void)
{
    as_alone("nano.Q4_0", QUERN_KV_F16, 0, 3);
} /* for ThreadSanitizer */

/* --- ends and events ------------------------------------------------------------------------------------------- */

static struct quern_engine *open_nano(struct quern_options options)
{
    struct file f = golden_file("nano.Q8_0", "gguf");
    struct quern_engine *e = engine_load(&f, options, SIZE_MAX);
    file_free(&f);
    return e;
}

/* Runs a reply to its end. */
static struct alone say(struct quern_engine *e, const struct script *script)
{
    struct talk t;
    begin_talk(e, &t, script);
    for (int calls = 0; !t.ended; calls++) {
        CHECK(calls < 1000);
        step_talks(e, &t, 1);
    }
    quern_sequence_free(t.s);
    return t.said;
}

static void ends(void)
{
    static struct script s = {.prompt = {5, 6, 7, 8}, .n = 4};
    struct quern_engine *e = open_nano((struct quern_options){.context_size = 20});
    struct logit_bias bias = {0};
    for (int most = 1; most < 4; most++) {
        s.reply.max_tokens = most;
        struct alone said = say(e, &s);
        CHECK(said.n == most && said.end == QUERN_LENGTH);
    }
    while (!quern_is_end(e, bias.id)) bias.id++;
    s.reply = (struct quern_reply){.sampling = {.bias = &bias, .n_bias = 1}};
    bias.bias = -1000;
    struct alone whole = say(e, &s);
    CHECK(whole.n == 16 && whole.end == QUERN_CONTEXT);
    bias.bias = 1000;
    struct alone none = say(e, &s);
    CHECK(none.n == 0 && none.end == QUERN_STOP);
    quern_free(e);
}

/* A model's own drafts change nothing but the time, and are the same with any threads and kernels. */
static void own_drafts(void)
{
    static const struct quern_options ways[] = {{.no_drafts = true}, {.scalar = true}, {.threads = 3, .chunk = 7}, {0}};
    static struct script s = {.prompt = {5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, .n = 12};
    struct file f = golden_file("hyb.F32", "gguf");
    struct alone said[4];
    int drafted[4], right[4];
    for (int seed = 0; seed < 6; seed++) {
        s.reply = (struct quern_reply){.sampling = {.temperature = (float)(seed / 2), .seed = (uint64_t)seed},
                                       .max_tokens = 100,
                                       .single = seed % 2};
        for (int i = 0; i < 4; i++) {
            struct quern_options options = ways[i];
            options.context_size = CONTEXT;
            struct quern_engine *e = engine_load(&f, options, SIZE_MAX);
            n_drafted = n_right = 0;
            said[i] = say(e, &s);
            drafted[i] = n_drafted, right[i] = n_right;
            CHECK_EQ(said[i].n, said[0].n);
            CHECK(!memcmp(said[i].tokens, said[0].tokens, (size_t)said[0].n * sizeof *said[0].tokens));
            if (i > 1) CHECK(drafted[i] > 0 && right[i] <= drafted[i]);
            quern_free(e);
        }
        CHECK_EQ(drafted[0], 0);
    }
    file_free(&f);
}

/* Neither do drafts of what followed before, of which a step has up to seven; and what repeats itself takes fewer
 * steps. */
static void looked_up(void)
{
    static const struct quern_options ways[] = {{.no_drafts = true}, {.scalar = true}, {.threads = 3, .chunk = 7}, {0}};
    static struct script s = {.n = 60};
    struct file f = golden_file("nano.Q8_0", "gguf");
    for (int i = 0; i < s.n; i++) s.prompt[i] = 20 + i % 20 * 7;
    for (int seed = 0; seed < 4; seed++) {
        struct alone said[4];
        uint64_t steps[4];
        s.reply = (struct quern_reply){.sampling = {.temperature = (float)seed / 2, .seed = (uint64_t)seed},
                                       .max_tokens = 120};
        for (int i = 0; i < 4; i++) {
            struct quern_options options = ways[i];
            options.context_size = CONTEXT;
            struct quern_engine *e = engine_load(&f, options, SIZE_MAX);
            struct sched_facts facts;
            n_drafted = n_right = 0;
            said[i] = say(e, &s);
            quern_facts(e, &facts);
            steps[i] = facts.steps;
            CHECK_EQ(said[i].n, said[0].n);
            CHECK(!memcmp(said[i].tokens, said[0].tokens, (size_t)said[0].n * sizeof *said[0].tokens));
            CHECK(n_right <= n_drafted && facts.drafted == (uint64_t)n_drafted && facts.right == (uint64_t)n_right);
            if (i == 0) CHECK_EQ(n_drafted, 0);
            else if (seed == 0) CHECK(n_right > 0);
            quern_free(e);
        }
        if (seed == 0) CHECK(steps[3] < steps[0] * 3 / 4);
    }
    file_free(&f);
}

/* Known positions are reported once, also if the reply loses its pages in between. */
static void known_positions(void)
{
    struct quern_engine *e = open_nano((struct quern_options){.context_size = 100});
    struct quern_sequence *s = sequence_new(e);
    int32_t ids[90];
    int n, cached = -1;
    for (int i = 0; i < 90; i++) ids[i] = 10 + i;
    for (int round = 0; round < 2; round++) {
        CHECK_EQ(quern_sequence_set(s, ids, round ? 90 : 50, QUERN_HELD), round ? 50 : 0);
        CHECK_EQ(quern_reply_begin(s, &(struct quern_reply){.max_tokens = 1}), OK);
        CHECK_EQ(quern_reply_begin(s, &(struct quern_reply){.max_tokens = 1}), ERR_BUSY);
        for (bool ended = false; !ended;) {
            CHECK_EQ(quern_step(e, 0), OK);
            const struct quern_event *events = quern_events(e, &n);
            for (int i = 0; i < n; i++) {
                CHECK_EQ(events[i].number, quern_sequence_number(s));
                if (events[i].type == QUERN_READ) cached = events[i].cached;
                ended |= events[i].type == QUERN_END;
            }
        }
        CHECK_EQ(cached, round ? 50 : 0);
        CHECK_EQ(quern_sequence_length(s), 0);
    }
    quern_free(e);
}

static void bad_replies(void)
{
    static const int32_t silent[QUERN_SILENT_MOST + 1] = {0};
    static const struct quern_reply plain = {.max_tokens = 5}, bad = {.sampling = {.temperature = NAN}};
    static const struct quern_reply odd[] = {
        {.n_silent = 1}, {.silent = silent, .n_silent = -1}, {.silent = silent, .n_silent = QUERN_SILENT_MOST + 1}};
    struct quern_engine *e = open_nano(
        (struct quern_options){.context_size = 64, .parallel = 1, .waiting = 2, .no_drafts = true});
    struct quern_sequence *s[4], *full = sequence_new(e), *driven = sequence_new(e);
    int32_t ids[64];
    for (int i = 0; i < 64; i++) ids[i] = 20 + i;
    CHECK_EQ(quern_reply_begin(full, &plain), ERR_BUSY); /* no tokens are set */
    CHECK_EQ(quern_sequence_push(full, 1), ERR_BUSY);
    CHECK_EQ(quern_sequence_set(full, ids, 64, QUERN_HELD), 0);
    CHECK_EQ(quern_reply_begin(full, &plain), ERR_CONTEXT);
    CHECK_EQ(quern_reply_begin(full, &bad), ERR_CONTEXT);
    CHECK_EQ(quern_sequence_push(full, 1), ERR_BUSY); /* held */
    for (int i = 0; i < 4; i++) {
        s[i] = sequence_new(e);
        CHECK_EQ(quern_sequence_set(s[i], ids + i, 10, QUERN_HELD), 0);
        CHECK_EQ(quern_reply_begin(s[i], &bad), ERR_PARAM);
        for (int k = 0; k < 3; k++) CHECK_EQ(quern_reply_begin(s[i], &odd[k]), ERR_PARAM);
        CHECK_EQ(quern_reply_begin(s[i], &plain), i < 3 ? OK : ERR_BUSY);
        CHECK_EQ(quern_step(e, 0), OK);
    }
    CHECK_EQ(quern_error(e)->code, ERR_BUSY);
    CHECK(strstr(quern_error(e)->message, "2 others"));
    CHECK_EQ(quern_sequence_set(driven, ids, 3, QUERN_LAST), ERR_BUSY);
    CHECK_EQ(quern_sequence_pending(driven), 0);
    CHECK_EQ(quern_sequence_push(s[0], 1), ERR_BUSY); /* the engine appends its tokens */
    quern_reply_end(s[1]);
    quern_reply_end(s[1]);
    CHECK_EQ(quern_reply_begin(s[3], &plain), OK);
    quern_sequence_free(s[0]);
    CHECK_EQ(quern_sequence_set(driven, ids, 3, QUERN_LAST), 3 - 1); /* two are known from other sequences */
    for (int i = 0; i < 30; i++) CHECK_EQ(quern_step(e, 0), OK);
    CHECK_EQ(quern_sequence_pending(driven), 0);
    CHECK_EQ(quern_reply_begin(s[3], &plain), ERR_BUSY); /* it has ended; a reply begins only once */
    quern_free(e);
}

/* A caller without a limit may pass INT32_MAX. */
static void any_may_wait(void)
{
    struct quern_engine *e = open_nano((struct quern_options){.context_size = 64, .parallel = 1, .waiting = INT32_MAX});
    for (int i = 0; i < 3; i++)
        CHECK_EQ(quern_sequence_set(sequence_new(e), (int32_t[]){20 + i, 21, 22}, 3, QUERN_LAST), 0);
    quern_free(e);
}

/* A reply whose logits are not finite ends alone. */
static void nonfinite_ends_one(void)
{
    enum { VOCAB = 288 };
    struct file f = file_read(built_fixtures("/bad"), "good-M18a.gguf"); /* the embedding of token 65 is NaN */
    struct quern_engine *e = engine_load(&f, (struct quern_options){.context_size = 64, .threads = 2}, SIZE_MAX);
    struct quern_sequence *s[3];
    int tokens[3] = {0}, n;
    const struct logit_bias never = {65, -INFINITY};
    for (int i = 0; i < 3; i++) {
        s[i] = sequence_new(e);
        CHECK_EQ(quern_sequence_set(s[i], (int32_t[]){100, i == 1 ? 65 : 101, 102 + i}, 3, QUERN_HELD), 0);
        CHECK_EQ(
            quern_reply_begin(s[i], &(struct quern_reply){.sampling = {.bias = &never, .n_bias = 1}, .max_tokens = 10}),
            OK);
    }
    bool failed = false;
    for (int i = 0; i < 12; i++) {
        CHECK_EQ(quern_step(e, 0), OK);
        const struct quern_event *events = quern_events(e, &n);
        for (int k = 0; k < n; k++) {
            int who = events[k].number - quern_sequence_number(s[0]);
            tokens[who] += events[k].type == QUERN_TOKEN;
            if (events[k].type != QUERN_END) continue;
            CHECK_EQ(events[k].end, who == 1 ? QUERN_ERROR : events[k].end == QUERN_STOP ? QUERN_STOP : QUERN_LENGTH);
            CHECK_EQ(events[k].status, who == 1 ? ERR_NONFINITE : OK);
            failed |= who == 1;
        }
    }
    CHECK(failed && tokens[0] > 0 && tokens[1] == 0 && tokens[2] > 0);
    CHECK_EQ(quern_error(e)->code, ERR_NONFINITE);
    quern_free(e);
    file_free(&f);
}

static double played_ms;

static double played_clock(void) { return played_ms += 0.001; }

/* A background reply waits for normal ones, but not forever. */
static void background(void)
{
    static struct script normal = {.prompt = {5, 6}, .n = 2, .reply = {.max_tokens = 30}},
                         behind = {.prompt = {9, 8, 7}, .n = 3, .priority = 1, .reply = {.max_tokens = 2}};
    struct quern_engine *e = open_nano((struct quern_options){.parallel = 1, .context_size = 100, .now = played_clock});
    for (int late = 0; late < 2; late++) {
        struct talk talks[2];
        begin_talk(e, &talks[1], &behind);
        begin_talk(e, &talks[0], &normal);
        for (int i = 0; i < 10; i++) CHECK_EQ(step_talks(e, talks, 2), OK);
        CHECK(talks[0].said.n > 5 && talks[1].done < 0);
        if (late) played_ms += 10001;
        while (!talks[0].ended || !talks[1].ended) {
            CHECK_EQ(step_talks(e, talks, 2), OK);
            if (talks[0].ended && !late) CHECK(talks[0].said.n == 30);
            if (!late && !talks[0].ended) CHECK(talks[1].done < 0);
            if (late && talks[1].ended) break;
        }
        if (late) CHECK(talks[1].said.n == 2 && !talks[0].ended); /* by then it was the first in order */
        for (int i = 0; i < 2; i++) quern_sequence_free(talks[i].s);
    }
    quern_free(e);
}

/* A driven background sequence that wants all logits: normal replies that come later are read and answered first, and
 * take its place if there is only one. It is completed nevertheless, even while replies are always running. */
static void scores_behind(void)
{
    enum { LONG = 190 };
    static struct script normal = {
        .prompt = {5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, .n = 12, .reply = {.max_tokens = 3}};
    struct reference r = reference_new("nano.Q8_0");
    float *all = logits_new(LONG, GOLDEN_VOCAB);
    for (int parallel = 1; parallel <= 4; parallel++) {
        struct quern_engine *e = engine_load(
            &r.file,
            (struct quern_options){.context_size = 256, .parallel = parallel, .chunk = 16, .now = played_clock},
            SIZE_MAX);
        struct quern_sequence *s = quern_sequence_new(e, 0, 1);
        struct talk t;
        int steps = 0;
        CHECK_EQ(quern_sequence_set(s, r.ids, LONG, QUERN_ALL), 0);
        CHECK_EQ(quern_step(e, 0), OK);
        int before = quern_sequence_pending(s);
        logits_keep(s, GOLDEN_VOCAB, all);
        begin_talk(e, &t, &normal);
        for (; !t.ended; steps++) {
            CHECK_EQ(step_talks(e, &t, 1), OK);
            logits_keep(s, GOLDEN_VOCAB, all);
        }
        CHECK_EQ(steps, 3);
        if (parallel == 1) CHECK(quern_sequence_pending(s) >= before); /* nothing of it was computed meanwhile */
        played_ms += 10001; /* it counts as normal now, so replies do not hold it up */
        for (int i = 0; quern_sequence_pending(s) > 0; i++) {
            CHECK(i < 1000);
            if (t.ended) quern_sequence_free(t.s), begin_talk(e, &t, &normal);
            CHECK_EQ(step_talks(e, &t, 1), OK);
            logits_keep(s, GOLDEN_VOCAB, all);
        }
        CHECK(same_bits(all, r.logits, LONG * GOLDEN_VOCAB));
        quern_free(e);
    }
    free(all);
    reference_free(&r);
}

/* A scope knows nothing of another scope's prompts, neither saved pages nor prompts that are being read. */
static void scopes_apart(void)
{
    static struct script s = {.n = 60, .reply = {.max_tokens = 4}};
    struct quern_engine *e = open_nano((struct quern_options){.context_size = 100, .kv_positions = 800, .chunk = 8});
    struct sched_facts facts;
    for (int i = 0; i < s.n; i++) s.prompt[i] = 30 + i;
    for (int round = 0; round < 2; round++) { /* first one after the other, then side by side */
        struct talk talks[4];
        for (uint32_t i = 0; i < 4; i++) {
            s.scope = 10 + 10 * (uint32_t)round + i % 2;
            begin_talk(e, &talks[i], &s);
            int known = quern_sequence_set(talks[i].s, s.prompt, s.n, QUERN_HELD);
            CHECK_EQ(known, round == 0 && i >= 2 ? s.n - 1 : 0);
            CHECK_EQ(quern_reply_begin(talks[i].s, &s.reply), OK);
            while (round == 0 && !talks[i].ended) CHECK_EQ(step_talks(e, talks, (int)i + 1), OK);
        }
        while (!talks[0].ended || !talks[1].ended || !talks[2].ended || !talks[3].ended)
            CHECK_EQ(step_talks(e, talks, 4), OK);
        for (int i = 0; i < 4; i++) {
            check_said(&talks[i].said, &talks[0].said);
            CHECK_EQ(talks[i].cached > 0, i >= 2);
            quern_sequence_free(talks[i].s);
        }
        check_pages(e);
    }
    quern_facts(e, &facts);
    CHECK(facts.followed >= 2 * 32); /* each pair followed its own scope */
    CHECK_EQ(facts.recomputed, 0);
    quern_free(e);
}

/* --- the output head ------------------------------------------------------------------------------------------- */

/* A reply to one of the scripts, without end tokens. */
static struct quern_sequence *hold(struct quern_engine *e, const struct script *script, int seed)
{
    static struct logit_bias never[16];
    int n = 0;
    for (int id = 0; id < quern_vocab_size(e) && n < 16; id++)
        if (quern_is_end(e, id)) never[n++] = (struct logit_bias){id, -INFINITY};
    struct quern_sequence *s = sequence_new(e);
    CHECK(quern_sequence_set(s, script->prompt, script->n, QUERN_HELD) >= 0);
    CHECK_EQ(quern_reply_begin(s,
                               &(struct quern_reply){
                                   .sampling = {.temperature = 1, .seed = (uint64_t)seed, .bias = never, .n_bias = n}}),
             OK);
    return s;
}

/* Hashes the logits of the last step. */
static void hash_row(const struct quern_sequence *s, int vocab, uint8_t out[HASH_BYTES])
{
    int first, n;
    const float *logits = quern_logits(s, &first, &n);
    CHECK_EQ(n, 1);
    hash128(logits, (size_t)vocab * sizeof *logits, out);
}

/* With a real vocabulary, a step may stop between parts of the output head, and gives the same logits. */
static void parts_of_the_head(void)
{
    enum { ROWS = 16, VOCAB = 151936 };
    struct file f = file_read(built_fixtures(""), "big-q8_0.gguf");
    float *whole = logits_new(ROWS, VOCAB), *parts = logits_new(ROWS, VOCAB);
    int32_t ids[ROWS];
    for (int i = 0; i < ROWS; i++) ids[i] = 1000 * i + 7;
    for (int chunk = 1; chunk <= ROWS; chunk += ROWS - 1) {
        struct quern_engine *e = engine_load(
            &f, (struct quern_options){.context_size = 64, .chunk = chunk, .parallel = ROWS, .threads = 2}, SIZE_MAX);
        struct quern_sequence *s = sequence_new(e);
        int calls = 0, rows = 0;
        CHECK_EQ(quern_sequence_set(s, ids, ROWS, QUERN_ALL), 0);
        quern_control(e)->attention = 1;
        for (; quern_sequence_pending(s) > 0; calls++)
            if (quern_step(e, 0) == OK) rows += logits_keep(s, VOCAB, chunk == 1 ? whole : parts);
        CHECK_EQ(rows, ROWS);
        CHECK_EQ(calls, chunk == 1 ? ROWS * (8 + 1) : 8 + 5);
        quern_free(e);
    }
    CHECK(same_bits(whole, parts, ROWS * VOCAB));
    free(whole);
    free(parts);
    file_free(&f);
}

/* At each layer and each part of the head a sequence leaves the step in some way, or a new one arrives; the others
 * continue unaffected. */
static void leaving_anywhere(void)
{
    enum { WRITERS = 7, PARTS = 8 + 3, STEPS = PARTS - 1, VOCAB = 151936 };
    static struct script scripts[3] = {
        {.prompt = {100, 200, 300}, .n = 3}, {.prompt = {9000, 90, 9}, .n = 3}, {.prompt = {7, 77, 777, 7777}, .n = 4}};
    static uint8_t alone[2][STEPS][HASH_BYTES];
    struct file f = file_read(built_fixtures(""), "big-q8_0.gguf");
    const struct quern_options options = {
        .context_size = 64, .kv_positions = 1024, .parallel = WRITERS + 2, .threads = 2};
    struct quern_engine *e = engine_load(&f, options, SIZE_MAX);
    struct quern_sequence *writers[WRITERS], *guest = NULL;
    for (int i = 0; i < 2; i++) {
        struct quern_sequence *s = hold(e, &scripts[i], i);
        for (int step = 0; step < STEPS; step++) {
            CHECK_EQ(quern_step(e, 0), OK);
            hash_row(s, VOCAB, alone[i][step]);
        }
        quern_sequence_free(s);
    }
    for (int i = 0; i < WRITERS; i++) writers[i] = hold(e, &scripts[i % 2], i % 2);
    for (int step = 0; step < STEPS; step++) {
        int part = 1 + step, way = step % 4;
        struct quern_sequence *other = NULL;
        if (!guest) guest = hold(e, &scripts[2], 2);
        quern_control(e)->attention = 1;
        for (int i = 0; i < part; i++) CHECK_EQ(quern_step(e, 0), NEED_MORE);
        CHECK_EQ(e->step.part, part);
        CHECK_EQ(e->step.n_takes, WRITERS + 1);
        CHECK_EQ(e->step.parts, PARTS);
        if (way == 0) quern_reply_end(guest);
        if (way == 1) CHECK(quern_sequence_set(guest, scripts[2].prompt, 2, QUERN_HELD) >= 0);
        if (way <= 2) quern_sequence_free(guest), guest = NULL;
        else other = hold(e, &scripts[2], 2);
        quern_control(e)->attention = part % 2;
        for (int status = NEED_MORE; status; status = quern_step(e, 0)) check_pages(e);
        for (int i = 0; i < WRITERS; i++) {
            uint8_t hash[HASH_BYTES];
            hash_row(writers[i], VOCAB, hash);
            CHECK(!memcmp(hash, alone[i % 2][step], sizeof hash));
        }
        quern_sequence_free(other);
    }
    for (int i = 0; i < WRITERS; i++) quern_sequence_free(writers[i]);
    quern_sequence_free(guest);
    /* the only sequence leaves, which drops the step; in the last round it stays, and gives its logits */
    for (int part = 1, whole = 9; part <= whole; part++) {
        uint8_t hash[HASH_BYTES];
        struct quern_sequence *s = hold(e, &scripts[0], 0);
        quern_control(e)->attention = 1;
        for (int i = 0; i < part; i++) CHECK_EQ(quern_step(e, 0), i == whole - 1 ? OK : NEED_MORE);
        CHECK_EQ(e->step.running, part < whole);
        CHECK_EQ(e->step.parts, whole);
        if (part == whole) hash_row(s, VOCAB, hash);
        CHECK(part < whole || !memcmp(hash, alone[0][0], sizeof hash));
        quern_sequence_free(s);
        CHECK(!e->step.running);
        check_pages(e);
    }
    quern_free(e);
    file_free(&f);
}

/* --- the cost of scheduling ------------------------------------------------------------------------------------ */

/* The time of a plan of 16 writers and its commit, printed; the bound only catches design errors. */
static void planning(void)
{
    enum { MANY = 16, STEPS = 400 };
    struct quern_engine *e =
        open_nano((struct quern_options){.parallel = MANY, .context_size = 512, .kv_positions = MANY * 512});
    struct quern_sequence *s[MANY];
    for (int i = 0; i < MANY; i++) {
        s[i] = sequence_new(e);
        CHECK_EQ(quern_sequence_set(s[i], (int32_t[]){i, 2, 3}, 3, QUERN_LAST), 0);
        while (quern_sequence_pending(s[i])) CHECK_EQ(quern_step(e, 0), OK);
    }
    double start = clock_ms(CLOCK_THREAD_CPUTIME_ID);
    for (int step = 0; step < STEPS; step++) {
        int n;
        for (int i = 0; i < MANY; i++) CHECK_EQ(quern_sequence_push(s[i], 4), OK);
        sched_plan(e->sched, 16, &n);
        CHECK_EQ(n, MANY);
        sched_commit(e->sched, 1);
    }
    double us = 1e3 * (clock_ms(CLOCK_THREAD_CPUTIME_ID) - start) / STEPS;
    printf("# a plan of %d writers and its end: %.1f us\n", MANY, us);
    CHECK(us < 1000);
    quern_free(e);
}

static const struct check tests[] = {
    {"as_alone_f16", as_alone_f16},
    {"as_alone_q8", as_alone_q8},
    {"as_alone_f32", as_alone_f32},
    {"as_alone_experts", as_alone_experts},
    {"as_alone_states", as_alone_states},
    {"by_threads", by_threads},
    {"ends", ends},
    {"own_drafts", own_drafts},
    {"looked_up", looked_up},
    {"known_positions", known_positions},
    {"bad_replies", bad_replies},
    {"any_may_wait", any_may_wait},
    {"nonfinite_ends_one", nonfinite_ends_one},
    {"background", background},
    {"scores_behind", scores_behind},
    {"scopes_apart", scopes_apart},
    {"parts_of_the_head", parts_of_the_head},
    {"leaving_anywhere", leaving_anywhere},
    {"planning", planning},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
