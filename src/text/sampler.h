/* SPDX-License-Identifier: MIT
 *
 * From logits to the next token: penalties, bias, a mask, temperature, top-k, top-p, min-p, one random draw, in this
 * order.
 *
 * The same seed gives the same tokens everywhere: candidates are ordered by (logit descending, id ascending),
 * probabilities are f64 by our own exp, and the generator is stated in sampler.c.
 */
#ifndef QUERN_SAMPLER_H
#define QUERN_SAMPLER_H

#include "base/arena.h"

struct logit_bias {
    int32_t id;
    float bias; /* added to the logit; -INFINITY forbids */
};

/* Zero means off (greedy, no limits), so a zeroed struct is greedy decoding. Every number must be finite, but for a
 * bias of -INFINITY. Adjusted logits saturate at the largest finite float. */
struct sampler_params {
    float temperature;       /* <= 0: greedy, ties to the lowest id */
    float top_p;             /* >= 0; 0 or >= 1: off. The fewest candidates whose probabilities reach it stay */
    float min_p;             /* 0..1; 0: off; keep p >= min_p * p_max */
    int top_k;               /* <= 0: off */
    float repeat_penalty;    /* >= 0; 0 or 1: off; divides positive, multiplies negative logits of tokens among the last
                                SAMPLER_REPEAT_WINDOW of prompt and reply */
    float presence_penalty;  /* subtracted once from tokens generated in this reply */
    float frequency_penalty; /* subtracted per occurrence in this reply */
    uint64_t seed;
    const struct logit_bias *bias; /* [n_bias], copied; entries of one id add up */
    int n_bias;
};

/* A longer memory makes the words every sentence needs ever less likely; 64 is what local runners use by default. */
enum { SAMPLER_REPEAT_WINDOW = 64 };

struct sampler;

/* What a pick writes on; nothing of it is kept. Samplers that pick at a time have one each. */
struct sampler_scratch {
    float *adjusted; /* [n_tokens] */
    uint64_t *keys;  /* [n_tokens] */
};
void sampler_scratch_take(struct arena *a, int n_tokens, struct sampler_scratch *out);

/* Bytes that a sampler takes at most, whatever its parameters but for biases. */
uint64_t sampler_cost(int n_tokens, int most);
/* n_tokens >= 1: ids from there on are padding and are never chosen. A reply has at most `most` tokens: of more the
 * penalties may not count all. NULL when memory is short. */
struct sampler *sampler_new(struct mem *m, int n_tokens, int most);
void sampler_free(struct sampler *s); /* accepts NULL */
/* Starts a reply: parameters, seed, and the prompt's tokens for the repeat penalty. ERR_PARAM on a non-finite or
 * out-of-range value, naming it, or when every id is forbidden; ERR_MEM_LOAD. After an error the sampler is as it was.
 */
int sampler_begin(struct sampler *s, const struct sampler_params *p, const int32_t *prompt, int n_prompt,
                  struct error *err);
/* Whether what follows is chosen without the penalties, which go on counting; not so at the beginning. */
void sampler_spare(struct sampler *s, bool lenient);
/* logits [>= n_tokens], unchanged. `allowed`: a bit per id, [ceil(n_tokens / 32)], lowest bit first, of which those
 * from n_tokens on do not count; NULL: every id. Others are as if they were not there: they are never chosen, and
 * neither limits nor probabilities know of them. Returns the id, and counts it for the penalties; ERR_NONFINITE when a
 * logit, allowed or not, is NaN or infinite; ERR_EMPTY when no id is left that is allowed and that no bias forbids.
 * After an error the sampler is as it was. */
int sampler_pick(struct sampler *s, const struct sampler_scratch *scratch, const float *logits,
                 const uint32_t *allowed);

#endif
