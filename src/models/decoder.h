/* SPDX-License-Identifier: MIT
 *
 * What all decoders here share: the embedding, the output head, the angles of RoPE, attention to keys and values, and a
 * dense feed-forward block.
 *
 * An architecture's struct begins with a struct decoder, so these functions serve as entries of its model_ops.
 */
#ifndef QUERN_DECODER_H
#define QUERN_DECODER_H

#include "models/rope.h"

/* Where the output head is; GGUF files do not say. */
enum head { HEAD_FOUND, HEAD_OWN, HEAD_TIED };

struct decoder {
    struct model base;
    enum head head;
    struct weight *embedding, *output; /* [vocab_size, dim]; output NULL when tied */
    float *output_norm;                /* [dim] */
    struct rope rope;
    double *frequency;             /* [rope_dim / 2] radians per position */
    float *cosine, *sine;          /* [max_rows, rope_dim / 2] of the current step */
    float *divisors;               /* [rope_dim / 2] the frequencies are divided by them; NULL: they are not */
    bool paired;                   /* q and k come with neighbouring columns as pairs (OP_ROPE) */
    float (*norm_change)(float x); /* of the norms' weights, on loading; NULL: none */
    float attention_scale;         /* of scores; 0: 1 / sqrt(head_dim) */
    struct handle x, h;            /* [n, dim] the residual stream; its norm, or a block's result */
    struct handle q, o, k, v;      /* [n, wide] twice, wide >= q_dim; [n, kv_dim] twice */
    struct handle gate, up;        /* [n, inner] of a block */
    struct handle last;            /* [n_out, dim] rows whose output is wanted */
    struct handle logits;          /* [n_logits, vocab_size] */
};

/* o(attention of norm'd, turned q and k, and v), with the norm before it; `gate`: its result is gated before o. */
struct attention {
    float *norm;             /* [dim] */
    float *q_norm, *k_norm;  /* [head_dim]; NULL: none */
    float *q_bias;           /* [q_dim]; NULL: none */
    float *k_bias, *v_bias;  /* [kv_dim]; NULL: none */
    float *qkv_bias;         /* [q_dim + 2 kv_dim] all three, if the file joins them: decoder_bias() */
    bool unturned;           /* no RoPE */
    struct weight *q, *gate; /* [q_dim, dim]; gate may be NULL */
    struct weight *k, *v;    /* [kv_dim, dim] */
    struct weight *o;        /* [dim, q_dim] */
};

/* down(silu(gate x) * (up x)), with the norm before it. */
struct dense {
    float *norm;                     /* [dim] */
    struct weight *gate, *up, *down; /* [ffn_dim, dim] twice, [dim, ffn_dim] */
};

/* Reads where the head is, and prepares the frequencies; base.config and rope are read. */
int decoder_open(struct decoder *d, const struct checkpoint *ck, struct error *err);
/* Binds the embedding, the last norm and the output head. */
int decoder_bind(struct decoder *d, struct checkpoint *ck, struct error *err);
/* Binds the attention of a layer, with or without a gate, whose rows then alternate with those of q, head by head. */
int decoder_bind_attention(struct decoder *d, struct checkpoint *ck, int l, bool gated, struct attention *w,
                           struct error *err);
/* The bias of q, k or v (0, 1, 2); NULL: none. */
const float *decoder_bias(const struct decoder *d, const struct attention *w, int which);
int decoder_bind_dense(struct decoder *d, struct checkpoint *ck, int l, int ffn_dim, struct dense *w,
                       struct error *err);
/* Binds a norm [n] of a layer. */
int decoder_bind_norm(struct decoder *d, struct checkpoint *ck, const char *name, int l, int n, float **out,
                      struct error *err);
/* Frees weights, each of which may be NULL. */
void decoder_drop(struct decoder *d, float *const *vectors, int n_vectors, struct weight *const *matrices,
                  int n_matrices);
void decoder_drop_attention(struct decoder *d, struct attention *w);
void decoder_drop_dense(struct decoder *d, struct dense *w);
void decoder_free(struct decoder *d); /* and d itself */
const struct rope *decoder_rope(const struct model *m);
/* Reports the numbers of RoPE. */
void decoder_each_turn(const struct decoder *d, model_part *fn, void *context);
void decoder_each(const struct decoder *d, model_part *fn, void *context);
void decoder_each_vector(model_part *fn, void *context, const float *v, int n); /* v may be NULL */

/* Lays out the values: `wide` columns of q and o, `inner` columns of gate and up. */
void decoder_lay_out(struct decoder *d, struct arena *a, int max_rows, int max_out, uint64_t wide, uint64_t inner);
struct kv_shape decoder_kv(const struct model *m, int n_layers, int n_pages, enum kv_type type);
int decoder_q_dim(const struct model *m); /* columns of all heads */
uint64_t decoder_reserve_cost(const struct model *m, int max_rows);
int decoder_reserve(struct decoder *d, int max_rows);

/* x += the attention's result; `layer` counts the layers with keys and values. */
void decoder_attend(const struct decoder *d, const struct batch *b, const struct attention *w, int layer,
                    struct op_list *ops);
/* x += down(silu(gate(h)) * up(h)), h = norm(x) */
void decoder_feed_forward(const struct decoder *d, const struct dense *w, int ffn_dim, int n, struct op_list *ops);

/* Sets cosine and sine for the rows of b. decoder_begin() does so. */
void decoder_turn(struct decoder *d, const struct batch *b);
/* Appends k and v of the rows to the keys and values of `layer`; h is their norm. */
void decoder_remember(const struct decoder *d, const struct batch *b, const struct attention *w, int layer,
                      struct op_list *ops);

/* Entries of model_ops. */
void decoder_begin(struct model *m, const struct batch *b);
void decoder_head(struct model *m, const struct batch *b, int first, int n);
struct outputs decoder_end(const struct model *m);
const struct weight *decoder_output(const struct model *m);

#endif
