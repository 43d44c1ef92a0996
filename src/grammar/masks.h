/* SPDX-License-Identifier: MIT
 *
 * Shared data of the masks of one grammar: the ways to compute a mask, and the masks computed so far.
 *
 * There are three ways, all exact. A state inside a JSON string (mask_string.c) uses the slice. Where a regular
 * expression stands before something else (mask_head.c), the effect of tokens inside it is computed once for all its
 * places in the grammar. And if nearly every token leads to the same state as from another state (such as the beginning
 * of a key that is not one of the named ones), the mask is computed as a difference from the other state's mask
 * (mask.c).
 *
 * A call may pause at any unknown transition. The next call reaches the same place by what is known by then
 * (transitions, heads, other masks), and the walk continues there.
 */
#ifndef QUERN_GRAMMAR_MASKS_H
#define QUERN_GRAMMAR_MASKS_H

#include "grammar/vocabulary.h"

enum { HEADS = 64 };

/* The effect of tokens inside a regular expression, whatever follows it. */
struct head {
    gr_expr expr;            /* 0: none */
    uint32_t within;         /* a kept mask: tokens that stay inside the expression */
    uint32_t exits, n_exits; /* a kept list: nodes of the tree at whose byte the expression has ended */
    uint32_t leaves[8];      /* bytes for which exits are kept */
    uint32_t goes_on[8];     /* those of `leaves` with which the expression may also continue where it may end */
};

struct masks {
    const struct vocabulary *vocabulary;
    /* node of the tree where a failed or paused walk continues, with its states and bits; 0: a walk begins */
    uint32_t at;
    struct head part;          /* the head that is being walked; its exits so far are the last numbers on the scratch */
    gr_state *states, *others; /* [longest + 1] by depth: states of a walk; of the state that it is compared with */
    uint32_t *bits;            /* [n_words]: the current mask */
    uint32_t *kept;            /* [room_kept]: masks and lists of exits; place 0 is not used */
    uint32_t n_kept, room_kept;
    struct head heads[HEADS];  /* by a hash of the expression */
    uint32_t weight[CLASSES_MOST]; /* number of tokens whose first byte is in the class */
    gr_expr inside;            /* expression of one character of a JSON string */
};

/* Returns a transition, NEXT_DEAD, or 0: failed. */
static inline uint32_t masks_next(struct grammar *g, gr_state from, uint8_t byte)
{
    uint32_t to = g->next[(size_t)from * g->n_classes + g->class_of[byte]];
    return to ? to : state_next(g, from, g->class_of[byte]);
}

static inline void bit_set(uint32_t *bits, uint32_t i) { bits[i >> 5] |= 1u << (i & 31); }
static inline void bit_clear(uint32_t *bits, uint32_t i) { bits[i >> 5] &= ~(1u << (i & 31)); }

/* mask.c: sets the bits of the tokens of nodes `begin` .. `end`, which are siblings with their subtrees, that may
 * follow the state `from`. Returns false if it failed. */
bool masks_walk(struct grammar *g, struct masks *m, uint32_t begin, uint32_t end, gr_state from);
/* Clears m->bits, if a walk begins. */
void masks_clear(struct masks *m);
/* Ends a walk: keeps m->bits as a difference from a row of the slice (0: from nothing). Returns its place, or 0: no
 * memory. */
uint32_t masks_keep(struct grammar *g, struct masks *m, uint32_t row);
/* Keeps the last n numbers of the scratch. Returns their place, or 0: no memory. */
uint32_t masks_keep_list(struct grammar *g, struct masks *m, uint32_t n);
/* Adds a kept mask to m->bits. */
void masks_add(struct masks *m, uint32_t place);

/* mask_string.c: least to most characters of a JSON string follow, then `rest`, which begins with a byte that no such
 * character begins with. */
struct inside {
    uint32_t least, most;
    gr_expr rest;
};
bool masks_is_inside(struct grammar *g, const struct masks *m, gr_state state, struct inside *out);
/* Computes the mask in m->bits. *row: the row that it is similar to. Returns false if it failed. */
bool masks_inside(struct grammar *g, struct masks *m, const struct inside *in, uint32_t *row);

/* mask_head.c: computes the mask of a regular expression that stands before `rest`. m->bits must be empty. */
enum head_answer { HEAD_FAILED, HEAD_FOUND, HEAD_UNFIT };
enum head_answer masks_by_head(struct grammar *g, struct masks *m, gr_expr head, gr_expr rest);

#endif
