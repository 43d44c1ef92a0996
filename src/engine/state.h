/* SPDX-License-Identifier: MIT
 *
 * An engine's state and a conversation's, which the files of this room share. The public face is quern.h.
 */
#ifndef QUERN_STATE_H
#define QUERN_STATE_H

#include "base/crew.h"
#include "engine/intake.h"
#include "engine/kept_state.h"
#include "engine/media.h"
#include "engine/scheduler.h"
#include "models/model.h"
#include "quern.h"
#include "text/tokenizer.h"

enum { PADS = 2 };
/* what files advise for sampling */
enum { ADVISED_TEMPERATURE, ADVISED_TOP_P, ADVISED_TOP_K, ADVISED_MIN_P, ADVISED_REPEAT_PENALTY, ADVISED };

enum state { STATE_LOADING, STATE_READY, STATE_FAILED, STATE_LOST /* with its device */ };

/* What is on its way from a device: see quern_awaits(). */
enum awaited { AWAITED_NOTHING, AWAITED_OUTPUTS, AWAITED_TOKENS, AWAITED_PAGE, AWAITED_HASHES };

/* A step that may be stopped after a layer, or a part of the output head, and go on later. */
struct step {
    bool running;
    int part, parts;       /* the next one, of layers and then of the head */
    const struct sched_take *takes; /* n_takes of them while it runs */
    int n_takes;
    struct batch batch;    /* arrays of max_rows, max_runs and max_out */
    int max_rows, max_runs, max_out;
    /* read in a step at most; and at most now: follows the machine's speed unless the caller chose a chunk */
    int chunk, rows;
    double ms, layers_ms;  /* spent in this step so far; in its layers */
    struct outputs made;   /* of the last finished step */
};

/* Sampling of all replies of a step: threads take one after the other. */
struct picking {
    struct sampler_scratch *scratch; /* [n_scratch]: so many threads pick */
    int n_scratch;
    void *arena;                     /* what they point to */
    struct quern_sequence **who;     /* [parallel]; n of them in this step */
    int n, next;                     /* next: that no thread has taken */
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

/* Tokens that a plain text gets at one of its ends. */
struct added {
    int32_t ids[8];
    int n;
};

struct quern_engine {
    struct quern_options options;
    enum state state;
    struct error error;
    struct error failure;       /* of loading, or of a device that is lost: every later call repeats it */
    struct mem mem;
    struct pool *pool;
    struct crew crew;         /* how many of its threads work */
    struct hashing hashing;   /* the last ones begun */
    struct backend *be;
    struct profile *profile;  /* NULL: none wanted */
    struct intake intake;     /* the files so far */
    struct model *model;
    struct tokenizer *tok;
    bool split_assumed;       /* of the tokenizer: the files do not name it */
    struct kv_cache *kv;
    struct sched *sched;
    struct tally tally;       /* of the model's weights; a projector's are the sight's */
    uint64_t taken;           /* bytes of the model's weights in memory so far */
    struct quern_plan plan;
    struct cache_choice caches[QUERN_KV_Q8 + 1];
    enum quern_quantize quantized[2]; /* what weights become: those of layers; the embedding and the output head */
    int context_size;
    int snapshots;            /* of states that are to be remembered, as the plan has chosen */
    int n_sampled;            /* ids from here on are padding */
    size_t longest_token;     /* bytes */
    int32_t ends[16];         /* tokens that end a reply */
    int n_ends;
    struct added added[2];    /* what stands before a plain text, and behind it */
    /* tokens that stand for a part of an image and of a video, and are never sampled; -1: none */
    int32_t pads[PADS];
    struct bytes template;    /* a copy; data NULL when the file has none */
    struct bytes tool_template; /* the one for conversations with tools */
    struct bytes rerank;      /* the same of one that ranks documents */
    char *info;
    double advice[ADVISED];   /* -1: none; as of info */
    struct step step;
    struct sight *sight;      /* NULL: it sees nothing */
    enum awaited awaits;
    const float *hidden, *logits; /* of the last finished step: struct outputs */
    struct picking picking;
    struct quern_event *events; /* [events_most()]; n_events of them since the last call */
    int n_events;
    uint8_t *told;            /* texts of events; n_told bytes of them */
    int n_told;
    struct quern_sequence *sequences; /* linked */
    int32_t numbers;          /* given to sequences so far */
    struct quern_control control;
    struct printing printing;
    struct giving giving;
    uint8_t fingerprint[HASH_BYTES]; /* of the model; once it is known: */
    bool has_fingerprint;
};

struct quern_sequence {
    struct sched_seq turn;
    struct quern_engine *e;
    struct quern_sequence *next;
    int32_t number;
    int priority;             /* turn's, until it has waited too long */
    uint64_t *ids;            /* [room]; turn.n of them set, turn.kv.length computed */
    int room;
    struct placed *media;     /* [n_media] in the order of their rows, each held */
    int n_media;
    int looked;               /* visual tokens that were encoded for it */
    bool looks;               /* in this step: to be told of */
    bool listed;              /* with the scheduler */
    enum quern_outputs outputs;
    bool begun;               /* its reply has, since it was set */
    bool replies;             /* the engine samples and pushes: */
    bool reads, writes;       /* a step with rows of it has begun; it has sampled */
    int left;                 /* tokens that it may sample still */
    bool fits;                /* into the context, whatever it says: `left` is what the caller wanted */
    int let_go;               /* times that its owner knows of */
    struct kept kept;
    double since;             /* ms of the clock: its last row, or when it began to wait */
    int picked;               /* in this step: an id, or an error */
    int made_first, made_rows, made_at; /* rows of outputs that the last finished step made, for positions from
                                           made_first on; the first of them among all logits or hidden states */
    struct sampler *sampler;
    uint32_t *allowed;        /* [mask_words()] once it was limited for the first time */
    bool limited;             /* to the ids in it */
    bool waits;               /* its owner does not know yet to which */
    int32_t silent[QUERN_SILENT_MOST]; /* n_silent of them: tokens that are none of the reply's text */
    int n_silent;
    struct tok_stream stream;
    uint8_t *text;            /* what quern_stream returned: room for the longest token and what is held */
};

/* OK, ERR_BUSY "loading" or "awaited", or why it can do nothing any more. */
int engine_check(struct quern_engine *e);

/* A sign of life, by which who waits for the engine knows that it gets on. */
static inline void engine_beat(struct quern_engine *e)
{
    __atomic_fetch_add(&e->control.heartbeat, 1, __ATOMIC_RELAXED);
}

#endif
