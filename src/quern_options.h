/* SPDX-License-Identifier: MIT
 *
 * What an engine is asked for, and what it takes. quern.h includes this.
 */
#ifndef QUERN_OPTIONS_H
#define QUERN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum quern_kv { QUERN_KV_F16 = 0, QUERN_KV_F32 = 1, QUERN_KV_Q8 = 2 }; /* Q8: heads of a multiple of 32 columns only */

/* What matrices become while they are loaded: the blocks of a Q8_0 or Q4_0 file, unless theirs are as small already.
 * AUTO: the first that fits. */
enum quern_quantize { QUERN_AS_STORED = 0, QUERN_TO_Q8 = 1, QUERN_TO_Q4 = 2, QUERN_AUTO = 3 };

/* What a sequence is to make of its tokens. */
enum quern_outputs {
    QUERN_LAST = 0, /* logits of the last token only; the longest known prefix is not computed again */
    QUERN_ALL = 1,  /* logits of every token; nothing is reused */
    QUERN_HIDDEN = 2, /* the last token's hidden state, and no logits; else like QUERN_LAST */
    QUERN_HELD = 3,  /* QUERN_LAST, but nothing is computed before quern_reply_begin() */
    QUERN_STATES = 4 /* every token's hidden state, and no logits; else like QUERN_ALL */
};

/* Zero = default. */
struct quern_options {
    int threads;           /* default 1, the caller included */
    int context_size;      /* positions; default: see struct quern_plan */
    enum quern_kv kv;      /* type of the KV cache */
    int chunk;             /* rows per step at most, but for one of each sequence that writes; default 64 */
    int parallel;          /* sequences that compute side by side, 1 .. 16; default 4 */
    int waiting;           /* sequences that may wait beside them; default 64 */
    int kv_positions;        /* positions that all of them have room for; default, and at least, context_size */
    int snapshots;           /* states that are remembered, of a model that has some; default 3, at most 64; -1: none */
    int backend;           /* what computes: a row of the table of backends (compute/backend.h); default the CPU */
    bool scalar;           /* use the scalar reference kernels */
    uint64_t memory_limit; /* bytes that may be taken; default what can be addressed */
    enum quern_quantize quantize, embeddings; /* of layers; of the embedding and the output head. AUTO is for both */
    bool profile;          /* measure what each operation costs: quern_profile() */
    uint64_t file_size;    /* of the (first) file to come, when known: a header that promises more is refused at once */
    int files;             /* that will come in all; default 1 */
    uint64_t rest_size;    /* of all files but the first, when known: the plan counts their weights */
    bool blind;            /* of a folder that has a vision part too, that is left out */
    /* of the projector's file, which comes after all others, rest_size included; 1 when not known; 0: none comes */
    uint64_t vision_size;
    /* of an image or a video's frame: what scratch is taken for; default 1,048,576, or the model's most */
    double max_pixels;
    double max_video_pixels; /* of all frames of a video; default the model's most */
    /* bytes of what images have become that are kept; default 64 MiB, at least one image of max_pixels */
    uint64_t media_cache;
    bool inspect;          /* only reads headers: quern_info() after quern_finish() is all that there will be */
    double (*now)(void);   /* milliseconds of a clock; default the system's */
};

/* What running the model takes, in bytes, known once the (first) header has arrived and before anything of it is taken.
 * What exceeds the limit is refused then (ERR_MEM_PLAN), with the largest context or the file that would fit; but not
 * when a model is only inspected, where the limit is what a page has without 64-bit addresses. The default context is
 * at most 4,096 positions: see plan.h. */
struct quern_plan {
    /* packed; keys and values, and states; everything else, the header in hand included */
    uint64_t weights, cache, scratch;
    uint64_t total, limit;            /* their sum; what may be taken */
    int context_size;                 /* what the sums are for */
    int wanted, largest;              /* what was asked for, or the default; what fits the limit, 0: none */
};

#endif
