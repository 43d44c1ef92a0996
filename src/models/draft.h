/* SPDX-License-Identifier: MIT
 *
 * Drafts by a model's own block (MTP): from the hidden state that a token was sampled from, and the token, one decoder
 * layer guesses the token after it.
 *
 * The block has keys and values of its own, which every step appends for all its rows. Those of a row are made of the
 * row's token and the hidden state of the row before it, so they depend on earlier tokens only, as all keys and values
 * do. The last hidden state of a sequence is a part of its state. Drafts change the time, never a token: the engine
 * verifies them.
 */
#ifndef QUERN_DRAFT_H
#define QUERN_DRAFT_H

#include "models/decoder.h"

struct draft {
    struct weight *join;   /* [dim, 2 dim] of the norms of the embedding and of the hidden state */
    float *token_norm, *hidden_norm, *head_norm; /* [dim]; without head_norm the decoder's last norm is used */
    struct attention attention;
    struct dense ffn;
    int layer;             /* of keys and values */
    uint64_t at;           /* place of the hidden state in a slot, in values from its beginning */
    struct handle joined;  /* [n, 2 dim] */
    int rows;              /* of the output head, the first ones: what drafts are chosen from */
};

/* Whether the file has the block `l`, and it has no embedding and head of its own. */
bool draft_there(const struct checkpoint *ck, int l);
int draft_bind(struct draft *w, struct decoder *d, struct checkpoint *ck, int l, struct error *err);
void draft_drop(struct draft *w, struct decoder *d);
void draft_each(const struct draft *w, const struct decoder *d, model_part *fn, void *context);
/* The decoder needs `wide` of at least dim columns. */
void draft_lay_out(struct draft *w, const struct decoder *d, struct arena *a, int max_rows);

/* Behind the layers of a step: appends the keys and values of its rows, and keeps the last hidden states. */
void draft_remember(const struct draft *w, struct decoder *d, const struct batch *b);
/* The draft of model_ops. */
void draft_make(const struct draft *w, struct decoder *d, const struct batch *b, int32_t *drafts);

#endif
