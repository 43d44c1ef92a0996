/* SPDX-License-Identifier: MIT
 *
 * The state of an engine and of a sequence, shared by the files of this folder. The public interface is quern.h.
 */
#ifndef QUERN_STATE_H
#define QUERN_STATE_H

#include "base/crew.h"
#include "engine/intake.h"
#include "engine/saved_state.h"
#include "engine/media.h"
#include "engine/lookup.h"
#include "engine/scheduler.h"
#include "models/model.h"
#include "quern.h"
#include "text/tokenizer.h"

enum { PADS = 2, PARALLEL_MOST = 16, DRAFT_TRUSTS = LOOKUP_TRUSTS + 2 };
/* sampling values that a model's files may recommend */
enum { ADVISED_TEMPERATURE, ADVISED_TOP_P, ADVISED_TOP_K, ADVISED_MIN_P, ADVISED_REPEAT_PENALTY, ADVISED };

enum state { STATE_LOADING, STATE_READY, STATE_FAILED, STATE_LOST /* the device was lost */ };

/* What a device has still to deliver: see quern_awaits(). */
enum awaited { AWAITED_NOTHING, AWAITED_OUTPUTS, AWAITED_TOKENS, AWAITED_PAGE, AWAITED_HASHES };

/* A step, which may stop after a layer or a part of the output head and go on later. */
struct step {
    bool running;
    bool queued;           /* on a device: steps whose end was not awaited are part of the time of this one */
    int part, parts;       /* next part, number of parts: the layers, then those of the head */
    const struct sched_take *takes; /* [n_takes] while the step runs */
    int n_takes;
    struct batch batch;    /* arrays of max_rows, max_runs, max_out */
    int max_rows, max_runs, max_out;
    /* Most rows to read in a step; and now, which follows the machine's speed unless the caller chose a chunk */
    int chunk, rows;
    double ms, layers_ms; /* ms of this step so far; of its layers */
    double draft_ms;      /* to draft a token, on average */
    int drafted;          /* steps with drafts since one without */
    int guesses;          /* of another model, judged so far */
    double guessed;       /* share of them that were right lately */
    struct outputs made;  /* outputs of the last finished step */
};

/* Samples all replies of a step: threads take one reply after the other. */
struct picking {
    struct sampler_scratch *scratch; /* [n_scratch]: one for each thread that samples */
    int n_scratch;
    void *arena;                     /* the memory of all scratch */
    struct quern_sequence **who;     /* [parallel]; the first n are used in this step */
    int n, next;                     /* next: the first that no thread has taken */
};

/* A type of KV cache: bytes for each position, and the largest context that fits; 0 if the model cannot use it. */
struct cache_choice {
    double bytes;
    int largest;
};

struct hashing {
    const uint8_t *bytes;
    size_t n, chunk;
    uint8_t *out;
    size_t next;              /* the first chunk that no thread has taken */
};

/* Tokens that are added at one end of a plain text. */
struct added {
    int32_t ids[8];
    int n;
};

struct quern_engine {
    struct quern_options options;
    enum state state;
    struct error error;
    struct error failure;       /* of loading, or of a lost device; every later call repeats it */
    struct mem mem;
    struct pool *pool;
    struct crew crew;         /* chooses how many threads work */
    struct hashing hashing;   /* the last hashing that was begun */
    struct backend *be;
    struct profile *profile;  /* NULL: not wanted */
    struct intake intake;     /* the files read so far */
    struct model *model;
    struct tokenizer *tok;
    bool split_assumed;       /* the files do not name the tokenizer's split */
    bool begins;              /* texts get the bos token if the files do not say it */
    struct kv_cache *kv;
    struct sched *sched;
    struct tally tally;       /* of the language model; vision weights are in struct projector */
    uint64_t taken;           /* bytes of weights in memory so far */
    struct quern_plan plan;
    struct cache_choice caches[QUERN_KV_Q8 + 1];
    enum quern_quantize quantized[2]; /* chosen types: of layers; of the embedding and the output head */
    int context_size;
    int snapshots;            /* of states that are to be remembered, as the plan has chosen */
    int n_sampled;            /* ids from this one on are padding */
    size_t longest_token;     /* bytes */
    int32_t ends[16];         /* tokens that end a reply */
    int n_ends;
    struct added added[2];    /* before a plain text, and after it */
    /* pad tokens of images and of videos, which are never sampled; -1: none */
    int32_t pads[PADS];
    struct bytes template;    /* copied; data NULL when the file has none */
    struct bytes tool_template; /* for conversations with tools */
    struct bytes rerank;      /* for ranking documents */
    char *info;
    double advice[ADVISED];   /* -1: none; set with info */
    struct step step;
    struct projector *projector;      /* NULL: no vision */
    enum awaited awaits;
    const float *hidden, *logits; /* outputs of the last finished step */
    struct picking picking;
    struct quern_event *events; /* [events_most()]; n_events since the last call */
    int n_events;
    uint8_t *told;            /* texts of events, n_told bytes */
    int n_told;
    struct quern_sequence *sequences; /* linked */
    bool looks_up;            /* replies draft by look-up */
    int32_t numbers;          /* numbers given to sequences so far */
    struct quern_control control;
    struct printing printing;
    struct giving giving;
    uint8_t fingerprint[HASH_BYTES]; /* of the model, valid with has_fingerprint */
    bool has_fingerprint;
};

struct quern_sequence {
    struct sched_seq turn;
    struct quern_engine *e;
    struct quern_sequence *next;
    int32_t number;
    int priority;             /* the priority of `turn` until the sequence has waited too long */
    uint64_t *ids;            /* [room]; turn.n are set, turn.kv.length are computed */
    int room;
    struct placed *media;     /* [n_media] in the order of their rows; each is held */
    int n_media;
    int looked;               /* visual tokens encoded for this sequence */
    bool looks;               /* a medium of it was encoded in this step: to be reported */
    bool listed;              /* the scheduler has it in its list */
    enum quern_outputs outputs;
    bool begun;               /* its reply has begun since quern_sequence_set() */
    bool replies;             /* the engine samples and pushes */
    bool reads, writes;       /* its first step has begun; its first token was sampled */
    int left;                 /* tokens that may still be sampled */
    bool fits;                /* max_tokens fits into the context; else `left` is the context's room */
    int let_go;               /* value of turn.let_go that was reported last */
    struct saved saved;
    double since;           /* time in ms of its last row, or when it began to wait */
    int picked;             /* the token sampled in this step, or an error */
    int row;                /* the row of outputs from which it is sampled */
    bool single;            /* the caller wants one token in a call */
    int given_trust;        /* which of `hits` is for those that are given */
    int given;              /* so many tokens from ids[turn.n] on are drafts that the caller has given */
    int drafted;            /* the last rows of outputs are those of drafts: the tokens from ids[turn.n] on */
    bool right;             /* the last token was drafted: the row of that draft is the next to sample from */
    struct lookup lookup;   /* finds drafts of a model that does not make its own */
    int trust;              /* which of `hits` tells how good the drafts are */
    double hits[DRAFT_TRUSTS]; /* share of drafts that were right lately */
    int undrafted;          /* tokens since the last draft */
    bool guessed;           /* ids[turn.n] was looked up, but did not pay as a draft */
    int n_drafted, n_right; /* drafts of the reply; right ones */
    /* Outputs of the last finished step: made_rows rows, for positions from made_first on; made_at: the index of the
     * first row among all logits or hidden states */
    int made_first, made_rows, made_at;
    struct sampler *sampler;
    uint32_t *allowed;        /* a bit for each id; NULL until the reply is limited */
    bool limited;             /* only ids in `allowed` may be sampled */
    bool waits;               /* the caller does not know yet which ids are allowed */
    int32_t silent[QUERN_SILENT_MOST]; /* [n_silent] tokens that are not part of the reply's text */
    int n_silent;
    struct tok_stream stream;
    uint8_t *text;            /* returned by quern_stream(): room for the longest token and the held bytes */
};

/* Whether the engine can be used now: OK, ERR_BUSY "loading" or "awaited", or the error that has ended it. */
int engine_check(struct quern_engine *e);
/* OK, or ERR_LOST with the error if the engine has lost its device. */
int engine_lost(struct quern_engine *e);

/* Shows callers that wait for the engine that it makes progress. */
static inline void engine_beat(struct quern_engine *e)
{
    __atomic_fetch_add(&e->control.heartbeat, 1, __ATOMIC_RELAXED);
}

#endif
