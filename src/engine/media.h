/* SPDX-License-Identifier: MIT
 *
 * Media by their identity: pixels while somebody holds them, what the encoder has made of them while there is room, and
 * where they stand in a conversation.
 *
 * All results lie in one pool, taken when the model is loaded, so that encoding cannot fail. What is wanted next goes
 * behind what is there; where that is too much, the scope with the most gives up what it wanted longest ago and the
 * rest is moved together, which no step at hand may see: results change their places only between steps.
 */
#ifndef QUERN_MEDIA_STORE_H
#define QUERN_MEDIA_STORE_H

#include "base/arena.h"
#include "engine/tally.h"
#include "models/vision.h"
#include "quern_media.h"

/* Lives while it is held or has a result. */
struct medium {
    uint64_t id;
    uint64_t content;         /* by which the cache knows its rows, of whatever scope they are */
    uint32_t scope;           /* who may know that it was seen */
    struct image_grid grid;   /* of one image, or of two frames */
    int given, held;          /* by the caller; in all */
    uint8_t *frames[2];       /* while it is held; an image's are the same */
    float *result;            /* [tokens, width] in the pool, or NULL */
    bool whole;               /* the result is; else it is being made */
    bool kept;                /* may not be given up now */
    uint64_t wanted;          /* when it was last, by the store's clock */
    struct medium *next;
};

struct media_store {
    struct mem *mem;
    struct medium *first;
    float *pool;              /* [room] floats; used of them, from the first on, have a place */
    uint64_t room, used;
    int width;                /* floats of a visual token's result */
    uint64_t clock;
};

/* What is being encoded. */
struct look {
    struct medium *medium;    /* held; NULL: nothing */
    int part;                 /* the next one */
    double left;              /* ms until the next step */
};

/* What an engine that sees has beside the others; sight.h. */
struct sight {
    bool apart;               /* the projector is a file of its own: */
    struct checkpoint ck;     /* that file */
    bool begun, complete;     /* it is being read; its header has come */
    uint64_t bytes;           /* of it, as its header promises */
    struct vision *vision;    /* NULL: still to come */
    struct tally tally;       /* of its weights */
    double most[2];           /* pixels, by enum quern_medium: of an image or a frame; of a whole video */
    int max_patches;          /* of an image or a frame */
    struct media_store store;
    struct look look;
    const float **features;   /* [max_rows] of the step at hand */
};

/* Where a medium stands in a conversation. */
struct placed {
    struct medium *medium;
    int first;                /* row of its first token */
    int32_t position;         /* of that row, in all three dimensions */
};

static inline int medium_tokens(const struct medium *m) { return m->grid.rows * m->grid.cols; }

/* Room for `floats` results of media whose tokens have `width` each. ERR_MEM_LOAD. */
int store_open(struct media_store *s, struct mem *mem, uint64_t floats, int width);
void store_close(struct media_store *s);

/* NULL: it is not held. */
struct medium *store_find(const struct media_store *s, uint64_t id);
/* Copies frames [height, width, 3] (frame1 NULL: an image) unless it is held already; and holds it for the caller. The
 * same image is another medium to another scope. NULL when memory is short. */
struct medium *store_add(struct media_store *s, const struct image_grid *grid, const uint8_t *frame0,
                         const uint8_t *frame1, uint32_t scope);
void store_hold(struct medium *m);
void store_let_go(struct media_store *s, struct medium *m);
/* A place for its result, which nothing that is `kept` gives way to; m->result NULL when there is none. Results may
 * move. */
void store_place(struct media_store *s, struct medium *m);
/* What was being made of it is worth nothing. */
void store_abandon(struct media_store *s, struct medium *m);

/* Finds media [n_media] at the runs of pads in ids [n]: out [n_media], but for the media themselves, whose grids count.
 * OK, or ERR_PARAM where a run does not suit its medium: *bad is its row, or n where media are left over. */
int media_place(const int32_t *ids, int n, const int32_t pads[2], struct placed *out, int n_media, int *bad);
/* The id of a row in the cache: of visual token i. */
uint64_t media_row(uint64_t content, int i);
/* What row `at` of a conversation is: its three positions, and the medium's token whose result it takes: -1, and *in
 * NULL, where it is text. */
int media_at(const struct placed *media, int n_media, int at, int32_t position[3], const struct medium **in);
/* Rows of a conversation that can be computed by now: up to the first medium behind row `from` that has no whole
 * result, where that is *awaited; else `most` and NULL. */
int media_ready(const struct placed *media, int n_media, int from, int most, struct medium **awaited);

#endif
