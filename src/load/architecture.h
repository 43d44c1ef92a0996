/* SPDX-License-Identifier: MIT
 *
 * The architectures that this version runs: one row each, with all facts that depend on an architecture's name. A new
 * architecture is a new row. If it computes something new, it also gets a family, whose code models/model.c names.
 */
#ifndef QUERN_ARCHITECTURE_H
#define QUERN_ARCHITECTURE_H

#include "base/base.h"

/* The code that runs a model. */
enum model_family { FAMILY_QWEN3, FAMILY_QWEN35, FAMILIES };

#define TEXT_DIGITS "Digits"

/* How text is cut into pieces, which the merges of byte-level BPE do not cross, and how a piece becomes tokens. */
struct text_split {
    /* names in GGUF files (tokenizer.ggml.pre): the usual one first, then others for the same rules; NULL at the end */
    const char *const *names;
    const char *regex;        /* the expression in tokenizer.json; TEXT_DIGITS: none, but digits alone */
    bool marks;               /* combining marks belong to words */
    bool bare;                /* the split of GPT-2, after single digits */
    int digits;               /* most digits of a piece */
    bool whole;               /* a piece that is a token is not made by merges */
    bool begins;              /* GGUF files that do not say it add the bos token to texts */
};

enum { VISION_MARKS = 4, MARK_ENDS = 4 };

/* Texts of the special tokens that a family of models shares. */
struct marks {
    const char *word;      /* key of the tables of marks in JavaScript */
    /* special tokens that come first, in this order; identify the split if the file does not name it */
    const char *first[3];
    /* end a reply, whatever the files say; published files name only some of them */
    const char *ends[MARK_ENDS];
    /* token for a part of an image, token for a part of a video, token before the parts, token after them */
    const char *vision[VISION_MARKS];
};

/* Sampling parameters that a model card recommends. All cards have min-p 0. */
struct card {
    double temperature, top_p, presence_penalty;
};

enum { ANY_DIM = INT32_MAX };

/* What the cards recommend for models of at most `dim` dimensions. */
struct cards {
    int dim, top_k; /* top_k 0: the card names none */
    struct card plain, thinking, images; /* images: in the conversation, without thinking */
};

enum { SECTIONS_SAID = 3 }; /* time, row, column */
enum { CLASS_NAMES = 4, TYPE_NAMES = 2 };

struct architecture {
    const char *name;           /* general.architecture in GGUF files, and the prefix of their keys */
    const char *const *older;   /* names that older programs gave such files; NULL at the end */
    /* in config.json: class names in transformers, with and without the output head; and values of model_type, used if
     * no class is named */
    const char *classes[CLASS_NAMES], *types[TYPE_NAMES];
    enum model_family family;
    bool norms;                 /* attention norms the heads of q and k */
    bool biases;                /* attention adds biases to q, k and v */
    /* in GGUF files the rows of q and k have another order, so that RoPE turns neighbouring columns, and the tensor
     * rope_freqs may divide RoPE's frequencies */
    bool paired;
    int unturned;               /* each such layer has no RoPE; 0: all layers have it */
    double theta;               /* base of RoPE if the files have none */
    bool experts;               /* layers may have experts */
    bool sees;                  /* rows may be parts of images: the model may have a vision part */
    /* config.json's sliding window applies to every layer, even if config.json limits it to some */
    bool windows;
    bool turned;                /* versions of transformers before 5 saved its experts' matrices by columns */
    /* [SECTIONS_SAID] of positions, used if config.json has none; for a model with vision */
    const int32_t *sections;
    const struct text_split *split;
    const struct marks *marks;
    /* key of this model's tool calls in the table of forms in js/reply/calls.js */
    const char *call_form;
    const struct cards *cards;  /* small models first; the last row is of ANY_DIM */
};

extern const struct architecture architectures[]; /* name NULL at the end */
extern const struct text_split text_splits[];     /* all splits; names NULL at the end */

/* Find an architecture by its name in GGUF files; by the class in config.json, or, if class.data is NULL, by the
 * model_type there. NULL if there is none. */
const struct architecture *architecture_named(struct bytes name);
const struct architecture *architecture_described(struct bytes class, struct bytes type);

/* Finds the recommendations for a model of an architecture. */
const struct cards *architecture_cards(const struct architecture *a, int dim);

#endif
