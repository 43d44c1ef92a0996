/* SPDX-License-Identifier: MIT
 *
 * The sampler: the effects of filters, penalties and bias; hostile parameters and logits; random choices against an
 * independent implementation; and masks against a plain version of the rules.
 */
#include "model_file.h"
#include "base/num.h"
#include "text/sampler.h"

#include <float.h>
#include <math.h>

static struct mem mem;

#define BEGIN(s, ...) sampler_begin(s, &(struct sampler_params){__VA_ARGS__}, NULL, 0, NULL)

/* 16 different logits 0, 1.25, 2.5, 3.75, 1 ...: multiples of a quarter. */
static void spread(float logits[16])
{
    for (int i = 0; i < 16; i++) logits[i] = (float)(i * 37 % 16) / 4.0f;
}

enum { TOKENS_MOST = 200000 };

static int pick(struct sampler *s, const float *logits, const uint32_t *allowed)
{
    static float adjusted[TOKENS_MOST];
    static uint64_t keys[TOKENS_MOST];
    return sampler_pick(s, &(struct sampler_scratch){adjusted, keys}, logits, allowed);
}

static struct sampler *new_sampler(int n)
{
    struct sampler *s = sampler_new(&mem, n, n);
    CHECK(s != NULL);
    return s;
}

static void finish(struct sampler *s)
{
    sampler_free(s);
    CHECK_EQ(mem.used, 0);
}

/* --- greedy ------------------------------------------------------------------------------------------- */

static void greedy(void)
{
    struct sampler *s = new_sampler(50);
    float logits[60];
    const float temperatures[] = {0.0f, -1.0f, -0.0f, -FLT_MAX};
    for (size_t t = 0; t < sizeof temperatures / sizeof *temperatures; t++) {
        CHECK_EQ(BEGIN(s, .temperature = temperatures[t]), OK);
        for (int best = 0; best < 50; best++) {
            for (int i = 0; i < 60; i++) logits[i] = i < 50 ? (float)-i : 1e9f; /* padding must not win */
            logits[best] = 7.0f;
            if (best + 3 < 50) logits[best + 3] = 7.0f; /* a tie goes to the lower id */
            CHECK_EQ(pick(s, logits, NULL), best);
        }
    }
    for (int i = 0; i < 60; i++) logits[i] = i % 2 ? 0.0f : -0.0f;
    CHECK_EQ(pick(s, logits, NULL), 0);
    for (int i = 0; i < 60; i++) logits[i] = -FLT_MAX;
    CHECK_EQ(pick(s, logits, NULL), 0);
    finish(s);
}

/* A sampler that has not begun is greedy; a single candidate is always chosen. */
static void defaults(void)
{
    struct sampler *s = new_sampler(1);
    const float logit = -3.0f;
    CHECK_EQ(pick(s, &logit, NULL), 0);
    CHECK_EQ(BEGIN(s, .temperature = 2.0f, .top_p = 0.01f, .min_p = 1.0f, .top_k = 9), OK);
    CHECK_EQ(pick(s, &logit, NULL), 0);
    finish(s);
}

static void nonfinite_logits(void)
{
    struct sampler *s = new_sampler(16);
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (int greedy_too = 0; greedy_too < 2; greedy_too++) {
        CHECK_EQ(BEGIN(s, .temperature = greedy_too ? 0.0f : 1.0f, .top_k = 5), OK);
        for (int i = 0; i < 16 * 4; i++) {
            float logits[17];
            spread(logits);
            logits[16] = NAN; /* padding may be anything */
            CHECK(pick(s, logits, NULL) >= 0);
            logits[i / 4] = bad[i % 4];
            CHECK_EQ(pick(s, logits, NULL), ERR_NONFINITE);
        }
    }
    finish(s);
}

/* --- random choices ----------------------------------------------------------------------------------- */

/* Sequences of an implementation of the same rules in Python (64-bit floats, its own exp and generator). */
static void reference_sequences(void)
{
    static const struct {
        struct sampler_params params;
        int ids[24];
    } cases[] = {
        {{.temperature = 0.8f, .seed = 42},
         {3, 6, 12, 11, 10, 15, 15, 2, 15, 9, 12, 6, 2, 6, 12, 5, 12, 2, 12, 12, 3, 3, 6, 9}},
        {{.temperature = 0.8f, .top_p = 0.9f, .min_p = 0.05f, .top_k = 6, .seed = UINT64_MAX},
         {6, 9, 6, 9, 6, 9, 6, 9, 9, 9, 3, 3, 6, 6, 3, 12, 3, 9, 6, 6, 3, 9, 9, 6}},
        {{.temperature = 1.0f, .repeat_penalty = 1.5f, .presence_penalty = 0.5f, .frequency_penalty = 0.25f, .seed = 7},
         {15, 6, 6, 10, 0, 14, 3, 9, 5, 12, 9, 9, 13, 5, 11, 1, 8, 6, 2, 3, 12, 2, 2, 6}},
    };
    float logits[16];
    spread(logits);
    struct sampler *s = new_sampler(16);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        CHECK_EQ(sampler_begin(s, &cases[c].params, NULL, 0, NULL), OK);
        for (int i = 0; i < 24; i++) CHECK_EQ(pick(s, logits, NULL), cases[c].ids[i]);
    }
    finish(s);
}

static void same_seed(void)
{
    struct sampler *a = new_sampler(16), *b = new_sampler(16);
    const struct sampler_params params = {.temperature = 1.0f, .frequency_penalty = 0.1f, .seed = 5};
    float logits[16];
    int first[100], differ = 0;
    spread(logits);
    CHECK_EQ(sampler_begin(a, &params, NULL, 0, NULL), OK);
    CHECK_EQ(sampler_begin(b, &params, NULL, 0, NULL), OK);
    for (int i = 0; i < 100; i++) {
        first[i] = pick(a, logits, NULL);
        CHECK_EQ(pick(b, logits, NULL), first[i]);
    }
    CHECK_EQ(sampler_begin(a, &params, NULL, 0, NULL), OK); /* counts and generator start again */
    CHECK_EQ(BEGIN(b, .temperature = 1.0f, .frequency_penalty = 0.1f, .seed = 6), OK);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(pick(a, logits, NULL), first[i]);
        differ += pick(b, logits, NULL) != first[i];
    }
    CHECK(differ > 20);
    sampler_free(b);
    finish(a);
}

static void distribution(void)
{
    enum { DRAWS = 100000 };
    static const float logits[4] = {0.0f, 1.0f, -1.0f, 0.5f};
    struct sampler *s = new_sampler(4);
    int counts[4] = {0};
    double total = 0.0;
    CHECK_EQ(BEGIN(s, .temperature = 0.5f, .seed = 3), OK);
    for (int i = 0; i < DRAWS; i++) counts[pick(s, logits, NULL)]++;
    for (int i = 0; i < 4; i++) total += num_exp64(2.0 * (double)logits[i]);
    for (int i = 0; i < 4; i++) { /* within five standard deviations */
        double p = num_exp64(2.0 * (double)logits[i]) / total, distance = counts[i] - p * (double)DRAWS;
        CHECK(distance * distance < 25.0 * p * (1.0 - p) * (double)DRAWS);
    }
    finish(s);
}

/* Which of 16 ids 2,000 draws with one seed give, as bits. */
static unsigned reachable(struct sampler *s, const struct sampler_params *params, const float *logits)
{
    unsigned seen = 0;
    CHECK_EQ(sampler_begin(s, params, NULL, 0, NULL), OK);
    for (int i = 0; i < 2000; i++) seen |= 1u << pick(s, logits, NULL);
    return seen;
}

/* Probabilities 0.4, 0.3, 0.2, 0.1 for ids 3, 0, 1, 2; nearly zero for all others. */
static void filters(void)
{
    float logits[16];
    for (int i = 0; i < 16; i++) logits[i] = -200.0f;
    const double p[4] = {0.3, 0.2, 0.1, 0.4};
    for (int i = 0; i < 4; i++) logits[i] = (float)num_log64(p[i]);
    static const struct {
        struct sampler_params params;
        unsigned expected;
    } cases[] = {
        {{.temperature = 1.0f}, 0xF},
        {{.temperature = 1.0f, .top_k = 1}, 0x8},
        {{.temperature = 1.0f, .top_k = 3}, 0xB},
        {{.temperature = 1.0f, .top_k = 99}, 0xF},
        {{.temperature = 1.0f, .top_k = -4}, 0xF},
        {{.temperature = 1.0f, .top_p = 0.39f}, 0x8},
        {{.temperature = 1.0f, .top_p = 0.41f}, 0x9},
        {{.temperature = 1.0f, .top_p = 0.71f}, 0xB},
        {{.temperature = 1.0f, .top_p = 0.95f}, 0xF},
        {{.temperature = 1.0f, .top_p = 1e-30f}, 0x8},
        {{.temperature = 1.0f, .top_p = 7.0f}, 0xF},
        {{.temperature = 1.0f, .top_k = 2, .top_p = 0.56f}, 0x8}, /* among the two of top-k, the first has 4/7 */
        {{.temperature = 1.0f, .top_k = 2, .top_p = 0.58f}, 0x9},
        {{.temperature = 1.0f, .min_p = 0.24f}, 0xF},
        {{.temperature = 1.0f, .min_p = 0.26f}, 0xB},
        {{.temperature = 1.0f, .min_p = 1.0f}, 0x8},
        {{.temperature = 1.0f, .min_p = 0.6f, .top_p = 0.5f}, 0x9},
        {{.temperature = 1e-45f}, 0x8},
        {{.temperature = 0.01f}, 0x8},
    };
    struct sampler *s = new_sampler(16);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_EQ(reachable(s, &cases[i].params, logits), cases[i].expected);
    CHECK_EQ(reachable(s, &(struct sampler_params){.temperature = 1e9f}, logits), 0xFFFF);
    /* -200 gives ties: the lowest id */
    CHECK_EQ(reachable(s, &(struct sampler_params){.temperature = FLT_MAX, .top_k = 5}, logits), 0x1F);
    finish(s);
}

/* --- penalties and bias ------------------------------------------------------------------------------- */

static void repeat_penalty(void)
{
    static const float logits[4] = {4.0f, 3.0f, -1.0f, -1.5f};
    const int32_t prompt[] = {0, 99, -1, 4}; /* unknown ids have no effect */
    const struct sampler_params params = {.repeat_penalty = 2.0f};
    struct sampler *s = new_sampler(4);
    CHECK_EQ(sampler_begin(s, &params, prompt, 4, NULL), OK);
    CHECK_EQ(pick(s, logits, NULL), 1); /* 4 / 2 < 3 */
    CHECK_EQ(pick(s, logits, NULL), 0); /* both halved, once however often seen */
    CHECK_EQ(pick(s, logits, NULL), 0);
    static const float negative[4] = {-1.0f, -1.5f, -1.2f, -9.0f};
    CHECK_EQ(pick(s, negative, NULL), 2); /* -2, -3, -1.2 */
    finish(s);
}

/* A token leaves the window after 64 tokens. */
static void repeat_window(void)
{
    int32_t prompt[SAMPLER_REPEAT_WINDOW + 1] = {0};
    const float logits[2] = {2.0f, 1.5f};
    const struct sampler_params params = {.repeat_penalty = 2.0f};
    struct sampler *s = new_sampler(2);
    for (int i = 1; i <= SAMPLER_REPEAT_WINDOW; i++) prompt[i] = 77;
    CHECK_EQ(sampler_begin(s, &params, prompt, SAMPLER_REPEAT_WINDOW, NULL), OK);
    CHECK_EQ(pick(s, logits, NULL), 1);
    CHECK_EQ(sampler_begin(s, &params, prompt, SAMPLER_REPEAT_WINDOW + 1, NULL), OK);
    CHECK_EQ(pick(s, logits, NULL), 0);
    for (int i = 1; i < SAMPLER_REPEAT_WINDOW; i++) CHECK(pick(s, logits, NULL) >= 0);
    finish(s);
}

static void reply_penalties(void)
{
    const int32_t prompt[] = {0, 0, 0};
    const float logits[3] = {5.0f, 4.5f, 0.0f};
    struct sampler *s = new_sampler(3);
    CHECK_EQ(sampler_begin(s, &(struct sampler_params){.presence_penalty = 1.0f}, prompt, 3, NULL), OK);
    const int by_presence[] = {0, 1, 0, 0, 0};
    for (int i = 0; i < 5; i++) CHECK_EQ(pick(s, logits, NULL), by_presence[i]);
    CHECK_EQ(sampler_begin(s, &(struct sampler_params){.frequency_penalty = 1.0f}, prompt, 3, NULL), OK);
    const int by_frequency[] = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 2};
    for (int i = 0; i < 10; i++) CHECK_EQ(pick(s, logits, NULL), by_frequency[i]);
    finish(s);
}

/* Many tokens with a plain count: with a frequency penalty each comes when it is due. */
static void reply_penalties_of_many(void)
{
    enum { N = 300, PICKS = 3000 };
    struct sampler *s = new_sampler(N);
    float logits[N], due[N];
    for (int i = 0; i < N; i++) due[i] = logits[i] = (float)(i * 7919 % N) / 8.0f;
    CHECK_EQ(BEGIN(s, .presence_penalty = 1.0f, .frequency_penalty = 0.5f), OK);
    int seen[N] = {0};
    for (int n = 0; n < PICKS; n++) {
        int best = 0;
        for (int i = 0; i < N; i++)
            if (due[i] > due[best]) best = i;
        CHECK_EQ(pick(s, logits, NULL), best);
        seen[best]++;
        due[best] = logits[best] - 1.0f - 0.5f * (float)seen[best];
    }
    finish(s);
}

static void bias(void)
{
    const float logits[4] = {1.0f, 0.0f, 0.5f, 3.0f};
    const struct logit_bias forbid[] = {{3, -INFINITY}, {3, 100.0f}, {1, 0.75f}, {1, 0.5f}};
    struct sampler *s = new_sampler(4);
    CHECK_EQ(BEGIN(s, .bias = forbid, .n_bias = 4), OK);
    CHECK_EQ(pick(s, logits, NULL), 1);
    CHECK_EQ(BEGIN(s, .temperature = 1e9f, .bias = forbid, .n_bias = 4), OK);
    for (int i = 0; i < 500; i++) CHECK(pick(s, logits, NULL) != 3);
    const struct logit_bias all[] = {{0, -INFINITY}, {1, -INFINITY}, {2, -INFINITY}, {3, -INFINITY}, {2, 1.0f}};
    const struct logit_bias most[] = {{0, -INFINITY}, {1, -INFINITY}, {1, -INFINITY}, {3, -INFINITY}};
    struct error err = {0};
    CHECK_EQ(sampler_begin(s, &(struct sampler_params){.bias = all, .n_bias = 5}, NULL, 0, &err), ERR_PARAM);
    CHECK(strstr(err.message, "every token") != NULL);
    CHECK_EQ(sampler_begin(s, &(struct sampler_params){.temperature = 1.0f, .bias = all, .n_bias = 4}, NULL, 0, &err),
             ERR_PARAM);
    for (int top_k = 0; top_k < 3; top_k++) {
        CHECK_EQ(BEGIN(s, .temperature = 1.0f, .top_k = top_k, .bias = most, .n_bias = 4), OK);
        CHECK_EQ(pick(s, logits, NULL), 2);
    }
    finish(s);
}

/* --- masks -------------------------------------------------------------------------------------------- */

enum { MOST = 100, WORDS = (MOST + 31) / 32 };

/* Up to 100 ids: logits in quarters, so that some are equal, and a mask of exactly the promised size. */
struct masked {
    int n;
    float logits[MOST];
    uint32_t *allowed;
};

static bool allows(const uint32_t *allowed, int id) { return allowed[id / 32] >> id % 32 & 1; }

/* One in `sparse` ids is allowed; bits beyond the ids are random. */
static void masked_fill(struct masked *m, uint64_t *seed, int sparse)
{
    for (int i = 0; i < m->n; i++) m->logits[i] = (float)(random_below(seed, 64) - 32) / 4.0f;
    for (int i = 0; i < (m->n + 31) / 32 * 32; i++) {
        uint32_t bit = 1u << i % 32;
        m->allowed[i / 32] = random_below(seed, sparse) == 0 ? m->allowed[i / 32] | bit : m->allowed[i / 32] & ~bit;
    }
}

static struct masked masked_new(int n)
{
    struct masked m = {.n = n, .allowed = calloc((size_t)(n + 31) / 32, sizeof *m.allowed)};
    CHECK(m.allowed != NULL);
    return m;
}

static int count_allowed(const struct masked *m)
{
    int n = 0;
    for (int i = 0; i < m->n; i++) n += allows(m->allowed, i);
    return n;
}

static struct sampler_params random_params(uint64_t *seed)
{
    static const float temperatures[] = {0.0f, 0.3f, 1.0f, 5.0f}, limits[] = {0.0f, 0.1f, 0.5f, 0.95f},
                       penalties[] = {0.0f, 0.0f, 0.5f, 1.5f};
    static const int tops[] = {0, 1, 3, 20};
    return (struct sampler_params){
        .temperature = temperatures[random_below(seed, 4)],
        .top_k = tops[random_below(seed, 4)],
        .top_p = limits[random_below(seed, 4)],
        .min_p = limits[random_below(seed, 4)],
        .repeat_penalty = penalties[random_below(seed, 4)],
        .presence_penalty = penalties[random_below(seed, 4)],
        .frequency_penalty = -penalties[random_below(seed, 4)],
        .seed = random_next(seed),
    };
}

/* The plain rules: sorts everything, stores nothing. */
struct plain {
    struct sampler_params p;
    uint64_t random[4];
    int replied[64], n_replied;
};

struct plain_candidate {
    int id;
    double logit, weight;
};

static struct plain plain_new(const struct sampler_params *p)
{
    struct plain r = {.p = *p};
    uint64_t state = p->seed;
    for (int i = 0; i < 4; i++) {
        uint64_t z = state += 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        r.random[i] = z ^ z >> 31;
    }
    return r;
}

static double plain_draw(uint64_t s[4])
{
    uint64_t five = s[1] * 5, result = (five << 7 | five >> 57) * 9, t = s[1] << 17;
    s[2] ^= s[0], s[3] ^= s[1], s[1] ^= s[2], s[0] ^= s[3], s[2] ^= t;
    s[3] = s[3] << 45 | s[3] >> 19;
    return (double)(result >> 11) / 9007199254740992.0;
}

static double plain_logit(const struct plain *r, int id, double logit)
{
    int times = 0;
    for (int i = 0; i < r->n_replied; i++) times += r->replied[i] == id;
    if (!times) return logit;
    if (r->p.repeat_penalty > 0.0f)
        logit = (double)(float)(logit > 0 ? logit / (double)r->p.repeat_penalty : logit * (double)r->p.repeat_penalty);
    return (double)(float)(logit - (double)r->p.presence_penalty - (double)r->p.frequency_penalty * times);
}

static int plain_order(const void *a, const void *b)
{
    const struct plain_candidate *x = a, *y = b;
    return x->logit != y->logit ? (x->logit < y->logit) - (x->logit > y->logit) : x->id - y->id;
}

static int plain_pick(struct plain *r, const float *logits, int n_tokens, const uint32_t *allowed)
{
    struct plain_candidate c[MOST];
    int n = 0, left = 0;
    for (int i = 0; i < n_tokens; i++)
        if (allows(allowed, i))
            c[n++] = (struct plain_candidate){.id = i, .logit = plain_logit(r, i, (double)logits[i])};
    if (!n) return ERR_EMPTY;
    qsort(c, (size_t)n, sizeof *c, plain_order);
    if (r->p.temperature <= 0.0f || (r->p.top_k > 0 && r->p.top_k < n)) n = r->p.temperature <= 0.0f ? 1 : r->p.top_k;
    double total = 0, kept = 0, sum = 0;
    for (int i = 0; i < n; i++)
        total += c[i].weight =
            num_exp64((c[i].logit - c[0].logit) / (r->p.temperature > 0 ? (double)r->p.temperature : 1));
    for (; left < n; left++) {
        bool enough = r->p.top_p > 0.0f && kept >= (double)r->p.top_p * total,
             unlikely = c[left].weight < (double)r->p.min_p;
        if (left > 0 && (enough || unlikely)) break;
        kept += c[left].weight;
    }
    double target = r->p.temperature > 0.0f ? plain_draw(r->random) * kept : -1;
    int chosen = 0;
    for (int i = 0; i < left && sum <= target; i++) sum += c[chosen = i].weight;
    if (r->n_replied < 64) r->replied[r->n_replied++] = c[chosen].id;
    return c[chosen].id;
}

/* Replies of 60 tokens, each with its own logits and mask; a mask may exclude all ids. */
static void masks_by_the_rules(void)
{
    static const int sizes[] = {1, 2, 5, 31, 32, 33, 64, 99, 100};
    uint64_t seed = 21;
    int chosen = 0, none = 0;
    for (int round = 0; round < 1500; round++) {
        struct masked m = masked_new(sizes[round % 9]);
        struct sampler *s = new_sampler(m.n);
        const struct sampler_params params = random_params(&seed);
        struct plain rules = plain_new(&params);
        CHECK_EQ(sampler_begin(s, &params, NULL, 0, NULL), OK);
        for (int i = 0; i < 60; i++) {
            masked_fill(&m, &seed, 1 << random_below(&seed, 6));
            int id = pick(s, m.logits, m.allowed);
            CHECK_EQ(id, plain_pick(&rules, m.logits, m.n, m.allowed));
            CHECK(id < 0 ? id == ERR_EMPTY && !count_allowed(&m) : id < m.n && allows(m.allowed, id));
            chosen += id >= 0, none += id < 0;
        }
        free(m.allowed);
        finish(s);
    }
    CHECK(chosen > 50000 && none > 1000);
}

/* A mask of all ids and no mask; a mask, and biases that forbid the other ids. */
static void masks_that_say_the_same(void)
{
    static const int sizes[] = {1, 7, 32, 50, 100};
    const uint32_t all[WORDS] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    uint64_t seed = 22;
    for (int round = 0; round < 500; round++) {
        struct masked m = masked_new(sizes[round % 5]);
        struct sampler *a = new_sampler(m.n), *b = new_sampler(m.n);
        struct sampler_params params = random_params(&seed);
        struct logit_bias bias[MOST];
        masked_fill(&m, &seed, 1 + round % 4);
        CHECK_EQ(sampler_begin(a, &params, NULL, 0, NULL), OK);
        CHECK_EQ(sampler_begin(b, &params, NULL, 0, NULL), OK);
        for (int i = 0; i < 50; i++) CHECK_EQ(pick(a, m.logits, all), pick(b, m.logits, NULL));
        for (int i = 0; i < m.n; i++)
            if (!allows(m.allowed, i)) bias[params.n_bias++] = (struct logit_bias){i, -INFINITY};
        params.bias = bias;
        if (sampler_begin(b, &params, NULL, 0, NULL) == OK) {
            params.n_bias = 0;
            CHECK_EQ(sampler_begin(a, &params, NULL, 0, NULL), OK);
            for (int i = 0; i < 50; i++) CHECK_EQ(pick(a, m.logits, m.allowed), pick(b, m.logits, NULL));
        } else CHECK_EQ(count_allowed(&m), 0);
        free(m.allowed);
        sampler_free(b);
        finish(a);
    }
}

/* A mask of one id gives that id, whatever the logits; an empty mask is an error, which changes nothing afterwards. */
static void masks_of_one_and_none(void)
{
    static const uint32_t none[WORDS] = {0}, beyond[WORDS] = {0, 0, 0xFFFFFFFCu, UINT32_MAX}; /* of 66 ids */
    const struct logit_bias forbidden[] = {{5, -INFINITY}, {33, -INFINITY}};
    const uint32_t only_forbidden[WORDS] = {1u << 5, 1u << 1};
    float logits[66];
    uint64_t seed = 23;
    for (int i = 0; i < 66; i++) logits[i] = random_unit(&seed) * 10;
    struct sampler *a = new_sampler(66), *b = new_sampler(66);
    for (int round = 0; round < 300; round++) {
        struct sampler_params params = random_params(&seed);
        params.bias = forbidden, params.n_bias = round % 3;
        CHECK_EQ(sampler_begin(a, &params, NULL, 0, NULL), OK);
        CHECK_EQ(sampler_begin(b, &params, NULL, 0, NULL), OK);
        for (int i = 0; i < 20; i++) {
            int only = random_below(&seed, 66);
            uint32_t one[WORDS] = {0, 0, 0xFFFFFF00u};
            one[only / 32] |= 1u << only % 32;
            int expected = round % 3 && (only == 5 || (only == 33 && round % 3 == 2)) ? ERR_EMPTY : only;
            CHECK_EQ(pick(a, logits, one), expected);
            CHECK_EQ(pick(b, logits, one), expected);
            CHECK_EQ(pick(a, logits, none), ERR_EMPTY);
            CHECK_EQ(pick(a, logits, beyond), ERR_EMPTY);
            if (round % 3 == 2) CHECK_EQ(pick(a, logits, only_forbidden), ERR_EMPTY);
            CHECK_EQ(pick(a, logits, NULL), pick(b, logits, NULL));
        }
    }
    logits[7] = NAN; /* noticed, although it is not allowed */
    CHECK_EQ(pick(a, logits, only_forbidden), ERR_NONFINITE);
    sampler_free(b);
    finish(a);
}

/* --- hostile parameters ------------------------------------------------------------------------------- */

static void refuse(const struct sampler_params *params, const char *name)
{
    struct sampler *s = new_sampler(4);
    struct error err = {0};
    const float logits[4] = {0.0f, 1.0f, 2.0f, 0.0f};
    CHECK_EQ(sampler_begin(s, params, NULL, 0, &err), ERR_PARAM);
    CHECK(strstr(err.message, name) != NULL);
    CHECK_EQ(pick(s, logits, NULL), 2); /* as before */
    finish(s);
}

static void refused_parameters(void)
{
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        refuse(&(struct sampler_params){.temperature = bad[i]}, "temperature");
        refuse(&(struct sampler_params){.top_p = bad[i]}, "topP");
        refuse(&(struct sampler_params){.min_p = bad[i]}, "minP");
        refuse(&(struct sampler_params){.repeat_penalty = bad[i]}, "repeatPenalty");
        refuse(&(struct sampler_params){.presence_penalty = bad[i]}, "presencePenalty");
        refuse(&(struct sampler_params){.frequency_penalty = bad[i]}, "frequencyPenalty");
        if (bad[i] == -INFINITY) continue;
        refuse(&(struct sampler_params){.bias = &(struct logit_bias){0, bad[i]}, .n_bias = 1}, "logitBias");
    }
    refuse(&(struct sampler_params){.top_p = -0.1f}, "topP");
    refuse(&(struct sampler_params){.min_p = -0.1f}, "minP");
    refuse(&(struct sampler_params){.min_p = 1.1f}, "minP");
    refuse(&(struct sampler_params){.repeat_penalty = -1.0f}, "repeatPenalty");
    refuse(&(struct sampler_params){.bias = &(struct logit_bias){4, 0.0f}, .n_bias = 1}, "logitBias");
    refuse(&(struct sampler_params){.bias = &(struct logit_bias){-1, 0.0f}, .n_bias = 1}, "logitBias");
    refuse(&(struct sampler_params){.n_bias = 1}, "logitBias");
    refuse(&(struct sampler_params){.n_bias = -1}, "logitBias");
}

/* Whatever parameters are accepted, a token results. */
static void extreme_parameters(void)
{
    const float extremes[] = {0.0f, 1e-45f, 1e-10f, 1.0f, 1e9f, FLT_MAX, -1e9f, -FLT_MAX};
    const float logits[6] = {FLT_MAX, -FLT_MAX, 0.0f, -1e-45f, 1.0f, 1e30f};
    const struct logit_bias biases[] = {{0, FLT_MAX}, {1, -FLT_MAX}, {5, -INFINITY}};
    struct sampler *s = new_sampler(6);
    for (int i = 0; i < 8 * 8 * 8 * 2; i++) {
        float a = extremes[i % 8], b = extremes[i / 8 % 8], c = extremes[i / 64 % 8];
        const struct sampler_params params = {.temperature = a,
                                              .repeat_penalty = fabsf(b),
                                              .presence_penalty = b,
                                              .frequency_penalty = c,
                                              .top_p = fabsf(c),
                                              .bias = biases,
                                              .n_bias = i / 512 * 3,
                                              .top_k = i % 5};
        CHECK_EQ(sampler_begin(s, &params, (const int32_t[]){0, 1, 2, 3}, 4, NULL), OK);
        for (int k = 0; k < 20; k++) {
            int id = pick(s, logits, NULL);
            CHECK(id >= 0 && id < (params.n_bias ? 5 : 6));
        }
    }
    finish(s);
}

static void short_memory(void)
{
    const struct logit_bias one = {1, 5.0f};
    const struct sampler_params params = {.temperature = 1.0f, .presence_penalty = 1.0f, .bias = &one, .n_bias = 1};
    const float logits[4] = {0.0f, 1.0f, 2.0f, 0.0f};
    int status = ERR_MEM_LOAD;
    mem.fail_at = mem.n_allocs + 1;
    CHECK(sampler_new(&mem, 4, 4) == NULL);
    struct sampler *s = new_sampler(4);
    uint64_t used = mem.used;
    for (uint64_t call = 1; status; call++) {
        struct error err = {0};
        mem.fail_at = mem.n_allocs + call;
        status = sampler_begin(s, &params, NULL, 0, &err);
        CHECK(status == OK || (status == ERR_MEM_LOAD && err.code == ERR_MEM_LOAD && mem.used == used));
        if (status) CHECK_EQ(pick(s, logits, NULL), 2); /* as before: greedy */
        CHECK(call < 10);
    }
    mem.fail_at = 0;
    sampler_free(NULL);
    finish(s);
}

/* Qwen3's vocabulary: prints the time of a choice; the bound only catches design errors. */
static void speed(void)
{
    enum { N = 151936, ROUNDS = 10 };
    static const struct {
        const char *name;
        struct sampler_params params;
    } cases[] = {
        {"greedy", {.temperature = 0.0f}},
        {"top-k 20, top-p 0.95", {.temperature = 0.6f, .top_p = 0.95f, .top_k = 20}},
        {"top-p 0.95", {.temperature = 1.0f, .top_p = 0.95f}},
        {"all penalties", {.temperature = 0.6f, .top_k = 20, .repeat_penalty = 1.1f, .frequency_penalty = 0.1f}}};
    float *logits = malloc(N * sizeof *logits);
    CHECK(logits != NULL);
    uint32_t state = 1;
    /* 0 .. 4 */
    for (int i = 0; i < N; i++) logits[i] = (float)((state = state * 1664525 + 1013904223) >> 8) * 0x1p-22f;
    logits[1234] = 14.0f;
    struct sampler *s = new_sampler(N);
    static uint32_t even[(N + 31) / 32];
    memset(even, 0x55, sizeof even);
    for (size_t c = 0; c < 2 * (sizeof cases / sizeof *cases); c++) {
        CHECK_EQ(sampler_begin(s, &cases[c / 2].params, NULL, 0, NULL), OK);
        clock_t start = clock();
        for (int i = 0; i < ROUNDS; i++) CHECK(pick(s, logits, c % 2 ? even : NULL) >= 0);
        double ms = 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC / (double)ROUNDS;
        printf("# %s%s: %.3f ms\n", cases[c / 2].name, c % 2 ? ", masked" : "", ms);
        CHECK(ms < 200.0);
    }
    free(logits);
    finish(s);
}

int main(int argc, char **argv)
{
    static const struct check tests[] = {
        {"greedy", greedy},
        {"defaults", defaults},
        {"nonfinite_logits", nonfinite_logits},
        {"reference_sequences", reference_sequences},
        {"same_seed", same_seed},
        {"distribution", distribution},
        {"filters", filters},
        {"repeat_penalty", repeat_penalty},
        {"repeat_window", repeat_window},
        {"reply_penalties", reply_penalties},
        {"reply_penalties_of_many", reply_penalties_of_many},
        {"bias", bias},
        {"masks_by_the_rules", masks_by_the_rules},
        {"masks_that_say_the_same", masks_that_say_the_same},
        {"masks_of_one_and_none", masks_of_one_and_none},
        {"refused_parameters", refused_parameters},
        {"extreme_parameters", extreme_parameters},
        {"short_memory", short_memory},
        {"speed", speed},
    };
    return check_run(argc, argv, tests, sizeof tests / sizeof *tests);
}
