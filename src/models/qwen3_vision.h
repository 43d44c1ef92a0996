/* SPDX-License-Identifier: MIT
 *
 * What the two files of the encoder share: qwen3_vision.c reads and binds it, qwen3_encode.c computes.
 */
#ifndef QUERN_QWEN3_VISION_H
#define QUERN_QWEN3_VISION_H

#include "models/vision.h"

enum {
    CHUNK = 256,               /* rows computed at once */
    FRAMES = 2, CHANNELS = 3,  /* of a patch */
    JOINED = 4,                /* neighbouring patches that make one token */
};

/* w [rows, cols], b [rows] */
struct linear {
    struct weight *w;
    float *b;
};

struct norm {
    float *w, *b;
};

struct vision_layer {
    struct norm ln1, ln2;      /* [dim] */
    struct weight *qkv[3];     /* [dim, dim] each */
    float *qkv_bias;           /* [3, dim] */
    struct linear out;         /* [dim, dim] */
    struct linear up, down;    /* [ffn_dim, dim], [dim, ffn_dim] */
};

/* Makes tokens of 4 patches each. */
struct merger {
    struct norm norm;          /* [dim] per patch for the last merger, else [4 dim] */
    struct linear fc1, fc2;    /* [4 dim, 4 dim], [out_dim, 4 dim] */
};

/* Values of an image of n patches. */
struct vision_scratch {
    struct handle x;           /* [n, dim] the residual stream */
    struct handle q;           /* [n, dim] */
    struct handle kept;        /* keys and values of all rows: the cache of OP_KEEP */
    struct handle h, k, v;     /* [CHUNK, dim] */
    struct handle f;           /* [CHUNK, the widest of pixels, ffn_dim and dim] */
    struct handle made;        /* [CHUNK / 4, out_dim] tokens of the current part */
};

struct vision {
    struct vision_config config;
    struct binder bind;
    bool by_place;             /* names of an addition's tensors count additions, not layers */
    float table[CHANNELS][256]; /* values of bytes: image_table() */
    struct weight *patches;    /* [dim, pixels of a patch] */
    int patch_tensors, patches_there; /* number of tensors of that matrix; a bit for each one found */
    float *patch_bias;         /* [dim] */
    float *positions;          /* [side, side, dim] */
    struct vision_layer *layers; /* [n_layers] */
    struct merger *mergers;    /* [n_added + 1] the last one makes the rows, the others the additions */
    double *frequency;         /* [head_dim / 4] radians per patch */
    struct vision_scratch s;
    float *cosine, *sine;      /* [n, head_dim / 2] */
    float *up;                 /* [CHUNK, the wider of pixels and dim] pixels or positions for rows */
    const float **ups;         /* [CHUNK] rows of `up` */
    /* The current image. */
    const uint8_t *frames[FRAMES];
    int rows, cols;            /* patches */
    float *out;
    int made_by, made_at, n_made; /* tokens of this part: which merger made them, the first one, how many */
};

static inline int vision_pixels(const struct vision_config *c) { return CHANNELS * FRAMES * c->patch * c->patch; }

#endif
