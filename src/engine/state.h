/* SPDX-License-Identifier: MIT
 *
 * An engine's state and a conversation's, which the files of this room share. The public face is quern.h.
 */
#ifndef QUERN_STATE_H
#define QUERN_STATE_H

#include "base/crew.h"
#include "engine/intake.h"
#include "engine/kvcache.h"
#include "models/model.h"
#include "quern.h"
#include "text/tokenizer.h"

enum { TYPES_MOST = 64 }; /* more than dtype.c has */

enum state { STATE_LOADING, STATE_READY, STATE_FAILED };

/* What a step does for one sequence, whose rows in it are neighbours. */
struct take {
    struct quern_sequence *seq; /* NULL: it has left the step; its rows go on in vain */
    struct kv_seq kv;           /* then: its pages, which the step may write until it ends */
    int first, rows;            /* positions first .. first + rows - 1 */
    int outs;                   /* of so many of the last of them something is wanted: */
    bool hidden;                /* their hidden state, or logits */
};

/* A step that may be stopped at a layer and go on later. It is a plan: who takes which rows, and nothing of a sequence changes before it ends. */
struct step {
    bool running;
    int layer;             /* next one */
    struct take *takes;    /* [max_rows]; n_takes of them while it runs */
    int n_takes;
    struct batch batch;    /* arrays of max_rows and max_out */
    int max_rows, max_out;
    int rows;              /* taken at most now: follows the machine's speed unless the caller chose a chunk */
    double ms;             /* spent in the layers of this step so far */
};

/* Bound tensors of one type, as they stand in the files. */
struct type_count {
    const struct dtype *type;
    double tensors, bytes, weights;
};

/* A type of cache: bytes for each position, and the largest context that fits; 0 where the model cannot have it. */
struct cache_choice {
    double bytes;
    int largest;
};

struct hashing {
    const uint8_t *bytes;
    size_t n, chunk;
    uint8_t *out;
    size_t next;              /* chunk that no thread has taken */
};

struct quern_engine {
    struct quern_options options;
    enum state state;
    struct error error;
    struct mem mem;
    struct pool *pool;
    struct crew crew;         /* how many of its threads work */
    struct hashing hashing;   /* the last ones begun */
    struct backend *be;
    struct profile *profile;  /* NULL: none wanted */
    struct intake intake;     /* the files so far */
    struct model *model;
    struct model_tokenizer kind; /* of it; then the tokenizer itself */
    struct tokenizer *tok;
    struct kv_cache *kv;
    struct type_count types[TYPES_MOST]; /* of the files so far, as they come; the rest is zero */
    double weights_all, weights_used; /* in those; and how many of them work for a token */
    struct quern_plan plan;
    struct cache_choice caches[QUERN_KV_Q8 + 1];
    enum quern_quantize quantized[2]; /* what weights become: those of layers; the embedding and the output head */
    int context_size;
    int n_sampled;            /* ids from here on are padding */
    size_t longest_token;     /* bytes */
    int32_t ends[16];         /* tokens that end a reply */
    int n_ends;
    struct bytes template;    /* a copy; data NULL when the file has none */
    char *info;
    struct step step;
    bool awaits;              /* results of the last step are on their way */
    struct quern_sequence *sequences; /* linked */
    struct quern_control control;
};

struct quern_sequence {
    struct quern_engine *e;
    struct quern_sequence *next;
    struct kv_seq kv;
    uint64_t *ids;            /* [context_size]; n of them set, kv.length computed */
    int n;
    enum quern_outputs outputs;
    const float *made;        /* by the last finished step: [made_rows] rows of logits, or a hidden state; for positions from made_first on */
    int made_first, made_rows;
    struct sampler *sampler;
    struct tok_stream stream;
    uint8_t *text;            /* what quern_stream returned: room for the longest token and what is held */
};

#endif
