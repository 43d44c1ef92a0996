/* SPDX-License-Identifier: MIT
 *
 * From logits to the next token, in this order: penalties, bias, mask, temperature, top-k, top-p, min-p, one random
 * draw.
 *
 * The same seed gives the same tokens everywhere: candidates are ordered by (logit descending, id ascending),
 * probabilities are f64 from num_exp64(), and sampler.c states the random generator.
 */
#ifndef QUERN_SAMPLER_H
#define QUERN_SAMPLER_H

#include "base/arena.h"

struct logit_bias {
    int32_t id;
    float bias; /* added to the logit; -INFINITY forbids the token */
};

/* Zero means off, so a zeroed struct is greedy decoding without limits. Every number must be finite, except a bias of
 * -INFINITY. Adjusted logits saturate at the largest finite float. */
struct sampler_params {
    float temperature;       /* <= 0: greedy; the lowest id wins among equal logits */
    float top_p;             /* >= 0; 0 or >= 1: off. Keeps the fewest candidates whose probabilities reach top_p */
    float min_p;             /* 0..1; 0: off. Keeps candidates with p >= min_p * p_max */
    int top_k;               /* <= 0: off */
    float repeat_penalty;    /* >= 0; 0 or 1: off; divides positive, multiplies negative logits of tokens among the last
                                SAMPLER_REPEAT_WINDOW of prompt and reply */
    float presence_penalty;  /* subtracted once from tokens generated in this reply */
    float frequency_penalty; /* subtracted per occurrence in this reply */
    uint64_t seed;
    const struct logit_bias *bias; /* [n_bias], copied; entries of one id add up */
    int n_bias;
};

/* Over a longer window the words that every sentence needs get ever less likely. 64 is the usual default of local
 * runners. */
enum { SAMPLER_REPEAT_WINDOW = 64 };

struct sampler;

/* Scratch memory of one pick; nothing is kept between picks. Samplers that pick at the same time need one each. */
struct sampler_scratch {
    float *adjusted; /* [n_tokens] */
    uint64_t *keys;  /* [n_tokens] */
};
void sampler_scratch_take(struct arena *a, int n_tokens, struct sampler_scratch *out);

/* Highest memory use of a sampler in bytes, for any parameters, without biases. */
uint64_t sampler_cost(int n_tokens, int most);
/* n_tokens >= 1: higher ids are padding and are never chosen. A reply should have at most `most` tokens; the penalties
 * may not count all of a longer one. NULL when memory is short. */
struct sampler *sampler_new(struct mem *m, int n_tokens, int most);
void sampler_free(struct sampler *s); /* accepts NULL */
/* Starts a reply: parameters, seed, and the prompt's tokens for the repeat penalty. ERR_PARAM if a value is not finite
 * or out of range (the error names it), or if every id is forbidden; ERR_MEM_LOAD. After an error the sampler is
 * unchanged. */
int sampler_begin(struct sampler *s, const struct sampler_params *p, const int32_t *prompt, int n_prompt,
                  struct error *err);
/* lenient: the next picks ignore the penalties, which still count tokens. sampler_begin() resets it to false. */
void sampler_spare(struct sampler *s, bool lenient);
/* Chooses the next token, counts it for the penalties and returns its id. logits [>= n_tokens] is not changed.
 * `allowed` has a bit per id, [ceil(n_tokens / 32)], lowest bit first; bits from n_tokens on are ignored; NULL allows
 * every id. An id that is not allowed is never chosen and does not count for limits or probabilities. ERR_NONFINITE if
 * any logit, allowed or not, is NaN or infinite; ERR_EMPTY if no id is allowed and not forbidden by a bias. After an
 * error the sampler is unchanged. */
int sampler_pick(struct sampler *s, const struct sampler_scratch *scratch, const float *logits,
                 const uint32_t *allowed);

#endif
