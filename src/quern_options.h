/* SPDX-License-Identifier: MIT
 *
 * Options of an engine, and the plan of its memory. quern.h includes this.
 */
#ifndef QUERN_OPTIONS_H
#define QUERN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum quern_kv { QUERN_KV_F16 = 0, QUERN_KV_F32 = 1, QUERN_KV_Q8 = 2 }; /* Q8 needs heads of a multiple of 32 columns */

/* To what matrices are quantized while they are loaded: the blocks of a Q8_0 or Q4_0 file, unless their own are as
 * small already. AUTO: the first of these that fits into memory. */
enum quern_quantize { QUERN_AS_STORED = 0, QUERN_TO_Q8 = 1, QUERN_TO_Q4 = 2, QUERN_AUTO = 3 };

/* The outputs that a sequence computes. */
enum quern_outputs {
    QUERN_LAST = 0, /* logits of the last token only; the longest cached prefix is not computed again */
    QUERN_ALL = 1,  /* logits of every token; nothing is reused */
    QUERN_HIDDEN = 2, /* the last token's hidden state and no logits; otherwise like QUERN_LAST */
    QUERN_HELD = 3,  /* QUERN_LAST, but nothing is computed before quern_reply_begin() */
    QUERN_STATES = 4 /* every token's hidden state and no logits; otherwise like QUERN_ALL */
};

/* Zero means the default. */
struct quern_options {
    int threads;           /* including the caller's; default 1 */
    int context_size;      /* positions; default: see struct quern_plan */
    enum quern_kv kv;      /* type of the KV cache */
    int chunk;             /* most rows per step, with those of sequences that write; default 64 */
    int parallel;          /* sequences computed side by side, 1 .. 16; default 4 */
    int waiting;           /* further sequences that may wait; default 64 */
    int kv_positions;      /* positions of all sequences together; default, and at least, context_size */
    int snapshots;         /* states that a model with states remembers; default 3, at most 64; -1: none */
    bool no_drafts;        /* leave out the block of a model that drafts tokens, and look none up */
    int backend;           /* index into the table of backends (compute/backend.h); default the CPU */
    bool scalar;           /* use the scalar reference kernels */
    uint64_t memory_limit; /* bytes that the engine may allocate; default: the address space */
    enum quern_quantize quantize, embeddings; /* for layers; for the embedding and the output head. AUTO sets both */
    bool profile;          /* measure the cost of each operation: quern_profile() */
    uint64_t file_size;    /* size of the (first) file, when known: a header that promises more is refused at once */
    int files;             /* number of files in all; default 1 */
    uint64_t rest_size;    /* size of all files but the first, when known: the plan counts their weights */
    bool no_vision;            /* leave out the vision part of a folder that has one */
    /* size of the projector's file, which comes after all others and is included in rest_size; 1: not known; 0: no
     * projector comes */
    uint64_t vision_size;
    /* largest image or video frame, for which scratch memory is taken; default 1,048,576, or the model's maximum if
     * less */
    double max_pixels;
    double max_video_pixels; /* most pixels of all frames of a video; default the model's maximum */
    /* bytes for encoded images; default 64 MiB, at least one image of max_pixels */
    uint64_t media_cache;
    bool inspect;          /* only read headers; after quern_finish() only quern_info() is available */
    double (*now)(void);   /* a clock in milliseconds; default the system's */
};

/* The memory that running the model takes, in bytes, known once the (first) header has arrived and before any of it is
 * allocated. A plan over the limit is refused (ERR_MEM_PLAN) with the largest context, or the file, that would fit. A
 * model that is only inspected is not refused; its limit is what a page can address with 32 bits. The default context
 * is at most 4,096 positions: see plan.h. */
struct quern_plan {
    /* packed weights; keys and values, and states; everything else, including the current file's header */
    uint64_t weights, cache, scratch;
    uint64_t total, limit;            /* the sum of the three; the limit */
    int context_size;                 /* the context that the sums are for */
    int wanted, largest;              /* the requested or default context; the largest that fits, 0: none */
};

#endif
