/* SPDX-License-Identifier: MIT
 *
 * The store of media by id, and the place of media in a conversation. The store has a medium's pixels while it is held,
 * and its encoded result while there is room.
 *
 * All results lie in one pool, which is allocated when the model is loaded, so encoding cannot fail. A new result goes
 * after the others. If it does not fit, the scope with the most floats gives up the result that was wanted longest ago,
 * and the rest is moved together. Results move only between steps, never while a step uses them.
 */
#ifndef QUERN_MEDIA_STORE_H
#define QUERN_MEDIA_STORE_H

#include "base/arena.h"
#include "engine/tally.h"
#include "models/vision.h"
#include "quern_media.h"

/* Exists while it is held or has a result. */
struct medium {
    uint64_t id;
    uint64_t content;         /* hash of the pixels, from which the cache's ids of its rows are made, in any scope */
    uint32_t scope;           /* the scope whose sequences may use it */
    struct image_grid grid;   /* of an image, or of two frames */
    int given, held;          /* holds by the caller; holds in all */
    uint8_t *frames[2];       /* pixels while it is held; for an image both are the same */
    float *result;            /* [tokens, width] in the pool, or NULL */
    bool whole;               /* the result is complete; else it is being made */
    bool kept;                /* the result must not be given up now */
    uint64_t wanted;          /* last time it was wanted, by the store's clock */
    struct medium *next;
};

struct media_store {
    struct mem *mem;
    struct medium *first;
    float *pool;              /* [room] floats, of which the first `used` are taken */
    uint64_t room, used;
    int width;                /* floats of a visual token */
    uint64_t clock;
};

/* The medium that is being encoded. */
struct look {
    struct medium *medium;    /* held; NULL: none */
    int part;                 /* next part */
    double left;              /* ms that encoding may take before the next step */
};

/* State of an engine with vision; see projector.h. */
struct projector {
    bool apart;               /* the projector is a separate file */
    struct checkpoint ck;     /* the projector's file */
    bool begun, complete;     /* that file is being read; its header is complete */
    uint64_t bytes;           /* bytes of that file, from its header */
    struct vision *vision;    /* NULL: the projector has not come yet */
    struct tally tally;       /* of the vision weights */
    double most[2];           /* most pixels, by enum quern_medium: of an image or frame; of a whole video */
    int max_patches;          /* most patches of an image or a frame */
    struct media_store store;
    struct look look;
    const float **features;   /* [max_rows] for the current step */
};

/* The place of a medium in a conversation. */
struct placed {
    struct medium *medium;
    int first;                /* its first row */
    int32_t position;         /* position of that row, in all three dimensions */
};

static inline int medium_tokens(const struct medium *m) { return m->grid.rows * m->grid.cols; }

/* Allocates a pool of `floats`; a visual token has `width` of them. ERR_MEM_LOAD. */
int store_open(struct media_store *s, struct mem *mem, uint64_t floats, int width);
void store_close(struct media_store *s);

/* Returns NULL when the medium is not held. */
struct medium *store_find(const struct media_store *s, uint64_t id);
/* Adds a medium and holds it for the caller. Copies frames [height, width, 3] (frame1 NULL: an image) unless the store
 * has them. The same pixels are another medium in another scope. Returns NULL when memory is short. */
struct medium *store_add(struct media_store *s, const struct image_grid *grid, const uint8_t *frame0,
                         const uint8_t *frame1, uint32_t scope);
void store_hold(struct medium *m);
void store_let_go(struct media_store *s, struct medium *m);
/* Makes a place for the medium's result; m->result is NULL when there is no room beside results that must be kept.
 * Other results may move or be given up. */
void store_place(struct media_store *s, struct medium *m);
/* Drops an incomplete result. */
void store_abandon(struct media_store *s, struct medium *m);

/* Finds the places of media at the runs of pads in ids [n]. out [n_media] has the media on entry (their grids count)
 * and gets first and position. OK, or ERR_PARAM when a run does not suit its medium; *bad is its row, or n when media
 * are left over. */
int media_place(const int32_t *ids, int n, const int32_t pads[2], struct placed *out, int n_media, int *bad);
/* The cache's id for the row of visual token i. */
uint64_t media_row(uint64_t content, int i);
/* Describes row `at` of a conversation: sets its three positions, and *in to its medium, or NULL for text. Returns the
 * medium's token whose result the row takes; -1 for text. */
int media_at(const struct placed *media, int n_media, int at, int32_t position[3], const struct medium **in);
/* Returns the number of rows of a conversation that can be computed now: up to the first medium after row `from`
 * without a complete result, which *awaited is set to; otherwise `most`, and *awaited is NULL. */
int media_ready(const struct placed *media, int n_media, int from, int most, struct medium **awaited);

#endif
