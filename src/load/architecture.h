/* SPDX-License-Identifier: MIT
 *
 * The architectures that this version runs: a row for each, which has everything that depends on an architecture's
 * name. A new one is a row here; where it computes something new, it also gets a family, whose code models/model.c
 * names.
 */
#ifndef QUERN_ARCHITECTURE_H
#define QUERN_ARCHITECTURE_H

#include "base/base.h"

/* Which code runs a model. */
enum model_family { FAMILY_QWEN3, FAMILIES };

/* How text is cut into pieces, which the pairs of byte-level BPE do not cross. */
struct text_split {
    /* in GGUF files (tokenizer.ggml.pre): its own, then others for the same expression; NULL at the end */
    const char *const *names;
    const char *regex;        /* in tokenizer.json */
};

enum { VISION_MARKS = 4 };

/* Texts of the special tokens that a family of models shares. */
struct marks {
    const char *word;      /* by which the tables of marks in JavaScript know them */
    /* where the file does not name its split: the special tokens that come first, in this order */
    const char *first[3];
    const char *ends[2];   /* end a reply, whatever else the files say: published ones name only one of them */
    /* stand for a part of an image and for one of a video; before the parts, and behind them */
    const char *vision[VISION_MARKS];
};

/* Sampling as a model card advises; top-k is 20 and min-p is 0 on each of them. */
struct card {
    double temperature, top_p, presence_penalty;
};

enum { SECTIONS_SAID = 3 }; /* time, row, column */

struct architecture {
    const char *name;           /* in GGUF files: general.architecture, and what their keys begin with */
    const char *const *older;   /* names that programs gave such files before they knew this one; NULL at the end */
    /* in config.json: the class of transformers, and that of the model without its output head */
    const char *class, *trunk;
    const char *type;           /* in config.json: model_type, which counts where no class is named */
    enum model_family family;
    bool experts;               /* layers may have them */
    bool sees;                  /* rows may be parts of images: it may be given a vision part */
    /* config.json's sliding window holds for every layer, whatever it says of some of them */
    bool windows;
    bool turned;                /* transformers before version 5 saved its experts' matrices by columns */
    /* [SECTIONS_SAID] of positions, where config.json does not say them; of one that sees */
    const int32_t *sections;
    const struct text_split *split;
    const struct marks *marks;
    /* by which the table of forms in js/reply/calls.js knows how it writes calls of tools */
    const char *call_form;
    const struct card *cards;   /* [2] without thinking, and with it */
};

extern const struct architecture architectures[]; /* name NULL at the end */
extern const struct text_split text_splits[];     /* all of them; names NULL at the end */

/* By the name in GGUF files; NULL: none of them. */
const struct architecture *architecture_named(struct bytes name);

#endif
