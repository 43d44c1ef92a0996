/* SPDX-License-Identifier: MIT
 *
 * The image encoder: a projector's configuration, its weights in a backend, and the computation of a language model's
 * rows from pixels.
 *
 * As with a model, vision_open() reads the configuration, vision_bind() finds the weights, file by file, vision_take()
 * allocates them, and vision_reserve() allocates scratch. Then images are encoded one after the other, in parts of some
 * 20 to 50 ms, between which the engine looks at the clock and does other work; a part cannot fail and allocates
 * nothing. An image is one frame or a pair of frames of a video: attention sees no other image, so the bits of its rows
 * depend on its pixels alone. MODEL.md has the formulas.
 */
#ifndef QUERN_VISION_H
#define QUERN_VISION_H

#include "models/model.h"

struct vision;

enum { VISION_LAYERS = 256 }; /* most layers */

struct vision_config {
    int n_layers, dim, ffn_dim, n_heads, head_dim;
    int patch, merge; /* pixels of a patch's side, patches of a token's side (2) */
    int side;         /* the position table is side x side */
    int out_dim;      /* the language model's dim */
    int n_added;      /* additions of a token beside its row: values to add after the language model's first layers */
    int added_after[VISION_LAYERS]; /* [n_added] the encoder's layer after which each addition is made, ascending */
    float eps, mean[3], std[3];
    double low, high, video_low, video_high; /* pixels of an image, and of all frames of a video: at least, at most */
};

/* Whether there is an encoder to open: the file is a projector (GGUF "clip"), or the folder's metadata has its keys. */
bool vision_there(const struct checkpoint *ck);

/* Reads the keys clip.* of a projector or of a folder. be NULL: only vision_bind() may follow. ERR_UNSUPPORTED
 * "projector": a file that is not a projector, "projector-type": another kind of projector, "preprocessor";
 * ERR_INCONSISTENT "value"; ERR_FORMAT "missing", "kv-type". */
int vision_open(struct mem *mem, struct backend *be, const struct checkpoint *ck, struct vision **out,
                struct error *err);
void vision_free(struct vision *v); /* accepts NULL */
const struct vision_config *vision_config(const struct vision *v);

/* Whether the encoder fits a language model of `dim` columns and n_layers layers that expects n_added additions (-1:
 * any number). ERR_INCONSISTENT "projector-dim", "deepstack". */
int vision_suits(const struct vision *v, int dim, int n_layers, int n_added, struct error *err);

/* See model_bind() and the following functions. Matrices of layers and of mergers are quantised as a model's layers;
 * patches and positions stay as stored. */
int vision_bind(struct vision *v, struct checkpoint *ck, bool more, struct error *err);
void vision_quantize(struct vision *v, struct checkpoint *ck, struct model_types types);
uint64_t vision_take_cost(const struct vision *v, const struct checkpoint *ck);
int vision_take(struct vision *v, struct checkpoint *ck, struct error *err);
void vision_each(const struct vision *v, model_part *fn, void *context);

/* Sizes for the backend's reserve. Values lie in its scratch from `first` on. */
int vision_max_rows(const struct vision *v);
int vision_max_cols(const struct vision *v);
uint64_t vision_values(const struct vision *v, int max_patches); /* bytes */
/* Bytes that vision_reserve() allocates beside the values. */
uint64_t vision_reserve_cost(const struct vision *v, int max_patches);
/* Called once, for images of at most max_patches patches. ERR_MEM_LOAD. */
int vision_reserve(struct vision *v, int max_patches, struct handle first);

/* Number of floats of an encoded image: [tokens, (1 + n_added) * out_dim], each token's row, then its additions. rows
 * and cols count patches; both are even. */
uint64_t vision_size(const struct vision *v, int rows, int cols);
/* Begins an image (the same frame twice) or a pair of frames, RGB [rows * patch, cols * patch, 3], of at most
 * max_patches patches; frames and `out` [vision_size()] are borrowed until the last part. */
void vision_begin(struct vision *v, const uint8_t *const frames[2], int rows, int cols, float *out);
int vision_parts(const struct vision *v);     /* of the current image */
/* Computes part 0 .. parts - 1, in order. Ends with a submit of the backend; when that has arrived, vision_arrive()
 * takes the results. */
void vision_part(struct vision *v, int part);
bool vision_awaits(const struct vision *v); /* whether the last part has results */
void vision_arrive(struct vision *v);       /* after the last part `out` is complete */

#endif
