/* SPDX-License-Identifier: MIT
 *
 * A candidate is one 64-bit key: the logit's bits, changed so that they sort like integers, above the complement of the
 * id. The largest key is the next candidate by (logit descending, id ascending), and every selection is integer work on
 * keys. top-k keeps the k largest in a heap. Then a heap of the rest yields candidates in order, only as many as the
 * filters and the draw need, so 150,000 logits are never sorted in full.
 *
 * Filters apply as in Hugging Face's processors: temperature, top-k, top-p over the result of top-k, min-p. Each keeps
 * at least the first candidate. The generator is xoshiro256** (Blackman, Vigna 2018). Its state is four outputs of
 * splitmix64 from the seed; a draw is its upper 53 bits as a fraction. Each token takes one draw if the temperature is
 * above 0.
 */
#include "text/sampler.h"

#include "base/num.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Number of times that a token occurs in this reply. */
struct tally {
    int32_t id;
    uint32_t count;
};

struct sampler {
    struct mem *mem;
    int n_tokens, most; /* number of ids, and most tokens of a reply */
    struct sampler_params params; /* params.bias is a copy that the sampler owns */
    uint64_t random[4];
    int32_t recent[SAMPLER_REPEAT_WINDOW]; /* a ring: token i of prompt and reply is at i mod the window */
    int n_recent;    /* tokens in the ring */
    int next_recent; /* where the next token goes */
    /* [n_counts] sorted by id if the presence or frequency penalty is on, else NULL; room for min(n_tokens, most) */
    struct tally *counts;
    int n_counts;
    bool lenient;    /* penalties are off for now */
};

/* --- randomness --------------------------------------------------------------------------------------- */

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

static uint64_t rotate_left(uint64_t x, int k) { return x << k | x >> (64 - k); }

static uint64_t xoshiro256(uint64_t s[4])
{
    uint64_t result = rotate_left(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/* Uniform in [0, 1). */
static double draw(uint64_t s[4]) { return (double)(xoshiro256(s) >> 11) * 0x1p-53; }

/* --- a reply starts ----------------------------------------------------------------------------------- */

static uint64_t counts_most(const struct sampler *s) { return (uint64_t)min_int(s->n_tokens, s->most); }

uint64_t sampler_cost(int n_tokens, int most)
{
    const struct sampler s = {.n_tokens = n_tokens, .most = most};
    return mem_cost(sizeof s) + mem_cost(counts_most(&s) * sizeof *s.counts);
}

struct sampler *sampler_new(struct mem *m, int n_tokens, int most)
{
    struct sampler *s = mem_alloc(m, sizeof *s);
    if (!s) return NULL;
    s->mem = m;
    s->n_tokens = n_tokens;
    s->most = most;
    return s;
}

static void free_lists(struct sampler *s)
{
    mem_free(s->mem, s->counts);
    mem_free(s->mem, (void *)(uintptr_t)s->params.bias);
}

void sampler_free(struct sampler *s)
{
    if (!s) return;
    free_lists(s);
    mem_free(s->mem, s);
}

void sampler_scratch_take(struct arena *a, int n_tokens, struct sampler_scratch *out)
{
    out->adjusted = arena_take(a, (uint64_t)n_tokens, sizeof *out->adjusted);
    out->keys = arena_take(a, (uint64_t)n_tokens, sizeof *out->keys);
}

static int check_numbers(const struct sampler_params *p, struct error *err)
{
    const struct {
        const char *name;
        float value, low, high;
    } rules[] = {
        {"temperature", p->temperature, -FLT_MAX, FLT_MAX},
        {"topP", p->top_p, 0.0f, FLT_MAX},
        {"minP", p->min_p, 0.0f, 1.0f},
        {"repeatPenalty", p->repeat_penalty, 0.0f, FLT_MAX},
        {"presencePenalty", p->presence_penalty, -FLT_MAX, FLT_MAX},
        {"frequencyPenalty", p->frequency_penalty, -FLT_MAX, FLT_MAX},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!(rules[i].value >= rules[i].low && rules[i].value <= rules[i].high)) /* NaN fails too */
            return fail(err, ERR_PARAM, rules[i].name, 0, "%s must be %s, not %g.", rules[i].name,
                        rules[i].low == 0.0f ? rules[i].high == 1.0f ? "from 0 to 1" : "finite and not negative"
                                             : "finite",
                        (double)rules[i].value);
    return OK;
}

static int check_bias(const struct sampler_params *p, int n_tokens, struct error *err)
{
    if (p->n_bias < 0 || (p->n_bias > 0 && !p->bias))
        return fail(err, ERR_PARAM, "logitBias", 0, "logitBias has no entries to read.");
    for (int i = 0; i < p->n_bias; i++) {
        if (p->bias[i].id < 0 || p->bias[i].id >= n_tokens)
            return fail(err, ERR_PARAM, "logitBias", 0, "logitBias names token %d; ids are 0 to %d.",
                        (int)p->bias[i].id, n_tokens - 1);
        if (!(p->bias[i].bias <= FLT_MAX) || (p->bias[i].bias < -FLT_MAX && p->bias[i].bias != -INFINITY))
            return fail(err, ERR_PARAM, "logitBias", 0, "logitBias of token %d must be finite or -Infinity.",
                        (int)p->bias[i].id);
    }
    return OK;
}

static bool is_greedy(const struct sampler_params *p) { return p->temperature <= 0.0f; }
static bool counts_reply(const struct sampler_params *p)
{
    return p->presence_penalty != 0.0f || p->frequency_penalty != 0.0f;
}
static bool repeats_cost(const struct sampler_params *p)
{
    return p->repeat_penalty != 0.0f && p->repeat_penalty != 1.0f;
}

static float saturated(double x) { return x > (double)FLT_MAX ? FLT_MAX : x < -(double)FLT_MAX ? -FLT_MAX : (float)x; }

/* Sets *out to whether every id has a bias of -INFINITY. Returns OK or ERR_MEM_LOAD. */
static int all_forbidden(const struct sampler *s, const struct sampler_params *p, bool *out)
{
    int n = 0;
    *out = false;
    if (p->n_bias < s->n_tokens) return OK;
    bool *forbidden = mem_array(s->mem, (uint64_t)s->n_tokens, sizeof *forbidden);
    if (!forbidden) return ERR_MEM_LOAD;
    for (int i = 0; i < p->n_bias; i++) {
        bool *id = &forbidden[p->bias[i].id], new = !*id && p->bias[i].bias == -INFINITY;
        *id |= new;
        n += new;
    }
    *out = n == s->n_tokens;
    mem_free(s->mem, forbidden);
    return OK;
}

/* Allocates the lists that the parameters need. Returns OK or ERR_MEM_LOAD; the caller then frees the lists of
 * `next`. */
static int take_lists(struct sampler *next, const struct sampler_params *p)
{
    if (counts_reply(p) && !(next->counts = mem_array(next->mem, counts_most(next), sizeof *next->counts)))
        return ERR_MEM_LOAD;
    if (p->n_bias == 0) return OK;
    struct logit_bias *bias = mem_array(next->mem, (uint64_t)p->n_bias, sizeof *bias);
    if (!bias) return ERR_MEM_LOAD;
    memcpy(bias, p->bias, (size_t)p->n_bias * sizeof *bias);
    next->params.bias = bias;
    return OK;
}

static void remember(struct sampler *s, int32_t id)
{
    s->recent[s->next_recent] = id;
    s->next_recent = (s->next_recent + 1) % SAMPLER_REPEAT_WINDOW;
    s->n_recent = min_int(s->n_recent + 1, SAMPLER_REPEAT_WINDOW);
}

int sampler_begin(struct sampler *s, const struct sampler_params *p, const int32_t *prompt, int n_prompt,
                  struct error *err)
{
    int status = check_numbers(p, err);
    if (!status) status = check_bias(p, s->n_tokens, err);
    if (status) return status;
    bool none_left;
    struct sampler next = {.mem = s->mem, .n_tokens = s->n_tokens, .most = s->most, .params = *p};
    next.params.bias = NULL;
    status = all_forbidden(s, p, &none_left);
    if (!status && none_left) return fail(err, ERR_PARAM, "logitBias", 0, "logitBias forbids every token.");
    if (!status) status = take_lists(&next, p);
    if (status) {
        free_lists(&next);
        return fail(err, status, "sampling", 0, "Out of memory for sampling.");
    }
    uint64_t seed = p->seed;
    for (int i = 0; i < 4; i++) next.random[i] = splitmix64(&seed);
    for (int i = max_int(0, n_prompt - SAMPLER_REPEAT_WINDOW); i < n_prompt; i++) remember(&next, prompt[i]);
    free_lists(s);
    *s = next;
    return OK;
}

/* --- penalties and bias ------------------------------------------------------------------------------- */

static bool seen_earlier(const struct sampler *s, int i)
{
    for (int j = 0; j < i; j++)
        if (s->recent[j] == s->recent[i]) return true;
    return false;
}

/* Counts each token of the window once; skips ids that cannot be chosen. */
static void penalise_repeats(const struct sampler *s, float *logits)
{
    double penalty = s->params.repeat_penalty;
    for (int i = 0; i < s->n_recent; i++) {
        int32_t id = s->recent[i];
        if (id < 0 || id >= s->n_tokens || seen_earlier(s, i)) continue;
        double logit = logits[id];
        logits[id] = saturated(logit > 0.0 ? logit / penalty : logit * penalty);
    }
}

static void penalise_counts(const struct sampler *s, float *logits)
{
    double presence = s->params.presence_penalty, frequency = s->params.frequency_penalty;
    for (const struct tally *t = s->counts; t < s->counts + s->n_counts; t++)
        logits[t->id] = saturated(logits[t->id] - presence - frequency * t->count);
}

static void add_bias(const struct sampler *s, float *logits)
{
    for (int i = 0; i < s->params.n_bias; i++) {
        float *logit = &logits[s->params.bias[i].id], bias = s->params.bias[i].bias;
        bool forbidden = bias == -INFINITY || *logit == -INFINITY;
        *logit = forbidden ? -INFINITY : saturated((double)*logit + bias);
    }
}

/* Returns the logits to choose from; a forbidden token has -INFINITY. */
static const float *adjust(const struct sampler *s, float *adjusted, const float *logits)
{
    bool repeats = repeats_cost(&s->params) && !s->lenient, counts = s->counts && !s->lenient;
    if (!repeats && !counts && s->params.n_bias == 0) return logits;
    memcpy(adjusted, logits, (size_t)s->n_tokens * sizeof *logits);
    if (repeats) penalise_repeats(s, adjusted);
    if (counts) penalise_counts(s, adjusted);
    add_bias(s, adjusted);
    return adjusted;
}

void sampler_spare(struct sampler *s, bool lenient) { s->lenient = lenient; }

/* Counts one more occurrence of id. The list stays within `most` entries. */
static void count(struct sampler *s, int32_t id)
{
    int low = 0, high = s->n_counts;
    while (low < high) {
        int mid = (low + high) / 2;
        if (s->counts[mid].id < id) low = mid + 1;
        else high = mid;
    }
    struct tally *at = s->counts + low;
    if (low < s->n_counts && at->id == id) at->count++;
    else if ((uint64_t)s->n_counts < counts_most(s)) {
        memmove(at + 1, at, (size_t)(s->n_counts++ - low) * sizeof *at);
        *at = (struct tally){id, 1};
    }
}

/* --- choosing ----------------------------------------------------------------------------------------- */

/* `allowed` has a bit per id; NULL allows all. Tokens that are not allowed and tokens that are forbidden are skipped at
 * the same place, so a mask and biases of -INFINITY give the same choices. */
static bool is_allowed(const uint32_t *allowed, int id) { return !allowed || (allowed[id / 32] >> id % 32 & 1); }

static bool all_finite(const float *x, int n)
{
    uint32_t worst = 0;
    for (int i = 0; i < n; i++) {
        uint32_t magnitude = bits_from_f32(x[i]) & 0x7FFFFFFF;
        worst = magnitude > worst ? magnitude : worst;
    }
    return worst < 0x7F800000;
}

/* Takes the maxima of 8 interleaved parts, which compilers turn into vector code, then finds the first place of the
 * largest. */
static int first_largest(const float *x, int n)
{
    float part[8], largest = -INFINITY;
    int i = 0;
    for (int k = 0; k < 8; k++) part[k] = -INFINITY;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) part[k] = x[i + k] > part[k] ? x[i + k] : part[k];
    for (int k = 0; k < 8; k++) largest = part[k] > largest ? part[k] : largest;
    for (; i < n; i++) largest = x[i] > largest ? x[i] : largest;
    int id = 0;
    while (x[id] != largest) id++;
    return id;
}

static int first_largest_allowed(const float *x, const uint32_t *allowed, int n)
{
    float largest = -INFINITY;
    int best = ERR_EMPTY;
    for (int id = 0; id < n; id++)
        if (is_allowed(allowed, id) && x[id] > largest) largest = x[id], best = id;
    return best;
}

/* Flips the sign bit of positive numbers and all bits of negative ones. -0 first becomes +0, since they are equal. */
static uint64_t key_of(float logit, int id)
{
    uint32_t bits = bits_from_f32(logit + 0.0f);
    bits ^= bits >> 31 ? UINT32_MAX : 0x80000000;
    return (uint64_t)bits << 32 | ~(uint32_t)id;
}

static int key_id(uint64_t key) { return (int)~(uint32_t)key; }

static double key_logit(uint64_t key)
{
    uint32_t bits = (uint32_t)(key >> 32);
    return (double)f32_from_bits(bits ^ (bits >> 31 ? 0x80000000 : UINT32_MAX));
}

/* Restores the heap's order from i downwards. flip = 0: a parent is larger than its children; UINT64_MAX: it is
 * smaller. */
static void sift_down(uint64_t *keys, int n, int i, uint64_t flip)
{
    uint64_t moving = keys[i];
    for (int child = 2 * i + 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && (keys[child + 1] ^ flip) > (keys[child] ^ flip)) child++;
        if ((keys[child] ^ flip) <= (moving ^ flip)) break;
        keys[i] = keys[child];
        i = child;
    }
    keys[i] = moving;
}

static void make_heap(uint64_t *keys, int n, uint64_t flip)
{
    for (int i = n / 2 - 1; i >= 0; i--) sift_down(keys, n, i, flip);
}

/* Fills keys with the best logits that are allowed and not forbidden: top_k of them, or all. Returns their number. */
static int select_candidates(const struct sampler *s, uint64_t *keys, const float *logits, const uint32_t *allowed)
{
    int n = 0, id = 0, most = s->params.top_k > 0 ? min_int(s->params.top_k, s->n_tokens) : s->n_tokens;
    for (; id < s->n_tokens && n < most; id++)
        if (is_allowed(allowed, id) && logits[id] != -INFINITY) keys[n++] = key_of(logits[id], id);
    if (id == s->n_tokens) return n;
    make_heap(keys, n, UINT64_MAX);
    float worst = (float)key_logit(keys[0]);
    for (; id < s->n_tokens; id++) {
        if (logits[id] <= worst || !is_allowed(allowed, id)) continue; /* among equal logits keys has the lower id */
        keys[0] = key_of(logits[id], id);
        sift_down(keys, n, 0, UINT64_MAX);
        worst = (float)key_logit(keys[0]);
    }
    return n;
}

/* The candidates as a heap, of which only as much is sorted as the caller reads. */
struct ranking {
    uint64_t *keys;     /* [n]: a heap of the first n - n_sorted keys; after it the sorted keys, the best last */
    int n, n_sorted;
    double max_logit, temperature;
};

static double weight_of(const struct ranking *r, uint64_t key)
{
    return num_exp64((key_logit(key) - r->max_logit) / r->temperature);
}

/* Returns the candidate of rank i. Ranks must be requested in order. */
static uint64_t ranked(struct ranking *r, int i)
{
    if (i == r->n_sorted) {
        int end = r->n - 1 - r->n_sorted++;
        uint64_t top = r->keys[0];
        r->keys[0] = r->keys[end];
        r->keys[end] = top;
        sift_down(r->keys, end, 0, 0);
    }
    return r->keys[r->n - 1 - i];
}

/* Sum of the weights of all candidates, in array order, which depends only on the logits. */
static double total_weight(const struct ranking *r)
{
    double sum = 0.0;
    for (int i = 0; i < r->n; i++) sum += weight_of(r, r->keys[i]);
    return sum;
}

/* Drops candidates by top_p and min_p. Returns the weight of the remaining ones. The first has weight 1 and stays. */
static double filter(struct ranking *r, const struct sampler_params *p, double total)
{
    bool by_mass = p->top_p > 0.0f && p->top_p < 1.0f;
    if (!by_mass && p->min_p <= 0.0f) return total;
    double wanted = by_mass ? (double)p->top_p * total : INFINITY, kept = 0.0;
    int n = 0;
    for (; n < r->n && (n == 0 || kept < wanted); n++) {
        double weight = weight_of(r, ranked(r, n));
        if (n > 0 && weight < (double)p->min_p) break;
        kept += weight;
    }
    memmove(r->keys, r->keys + r->n - n, (size_t)n * sizeof *r->keys);
    r->n = r->n_sorted = n;
    return kept;
}

static int pick_random(struct sampler *s, uint64_t *keys, const float *logits, const uint32_t *allowed)
{
    struct ranking r = {
        .keys = keys, .n = select_candidates(s, keys, logits, allowed), .temperature = (double)s->params.temperature};
    if (!r.n) return ERR_EMPTY;
    uint64_t best = 0;
    for (int i = 0; i < r.n; i++) best = r.keys[i] > best ? r.keys[i] : best;
    r.max_logit = key_logit(best);
    double total = total_weight(&r);
    make_heap(r.keys, r.n, 0);
    double target = draw(s->random) * filter(&r, &s->params, total), sum = 0.0;
    int chosen = key_id(best);
    for (int i = 0; i < r.n; i++) {
        uint64_t key = ranked(&r, i);
        double weight = weight_of(&r, key);
        if (weight <= 0.0) break; /* the order of summing differs, so the sum may stay slightly below the target */
        chosen = key_id(key);
        sum += weight;
        if (sum > target) break;
    }
    return chosen;
}

int sampler_pick(struct sampler *s, const struct sampler_scratch *scratch, const float *logits, const uint32_t *allowed)
{
    if (!all_finite(logits, s->n_tokens)) return ERR_NONFINITE;
    const float *x = adjust(s, scratch->adjusted, logits);
    int id = !is_greedy(&s->params) ? pick_random(s, scratch->keys, x, allowed)
             : allowed              ? first_largest_allowed(x, allowed, s->n_tokens)
                                    : first_largest(x, s->n_tokens);
    if (id < 0) return id;
    if (s->counts) count(s, id);
    remember(s, id);
    return id;
}
