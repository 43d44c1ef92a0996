/* SPDX-License-Identifier: MIT
 *
 * What masks of one grammar share: the ways to find one, and those that were found.
 *
 * Three ways, all exact. A state inside a JSON string (mask_string.c) has the slice. Where a regular expression stands
 * before whatever follows it (mask_head.c), what tokens do in it is found once, for all places of the grammar where it
 * stands. And a state that nearly every token leads where it leads from another one (the beginning of a key that is
 * none of those named) differs from that one's mask in little (mask.c).
 *
 * A call may pause at any transition that is not known yet. The next one comes to the same place by what is known by
 * then (transitions, heads, other masks), and the walk goes on where it was.
 */
#ifndef QUERN_GRAMMAR_MASKS_H
#define QUERN_GRAMMAR_MASKS_H

#include "grammar/vocabulary.h"

enum { HEADS = 64 };

/* What tokens do in a regular expression, whatever stands behind it. */
struct head {
    gr_expr expr;            /* 0: none */
    uint32_t within;         /* a kept mask: those that lie inside it */
    uint32_t exits, n_exits; /* kept: the tree's nodes at which it ends, the byte being the first one behind it */
    uint32_t leaves[8];      /* the bytes for which exits are kept */
    uint32_t goes_on[8];     /* those of them with which it also goes on somewhere where it may end */
};

struct masks {
    const struct vocabulary *vocabulary;
    /* the tree's node where a walk goes on that failed or paused, with the states and bits that it has; 0: begins */
    uint32_t at;
    struct head part;          /* the head that it walks; its exits so far are the last on the scratch */
    gr_state *states, *others; /* [longest + 1]: of a walk, by depth; of the state that it is compared with */
    uint32_t *bits;            /* [n_words]: the mask at hand */
    uint32_t *kept;            /* [room_kept]: masks and lists of exits; place 0 is none */
    uint32_t n_kept, room_kept;
    struct head heads[HEADS];  /* by a hash of their expression */
    uint32_t weight[CLASSES_MOST]; /* tokens whose first byte is of the class */
    gr_expr inside;            /* a JSON string's character in this grammar */
};

/* A transition, NEXT_DEAD, or 0: failed. */
static inline uint32_t masks_next(struct grammar *g, gr_state from, uint8_t byte)
{
    uint32_t to = g->next[(size_t)from * g->n_classes + g->class_of[byte]];
    return to ? to : state_next(g, from, g->class_of[byte]);
}

static inline void bit_set(uint32_t *bits, uint32_t i) { bits[i >> 5] |= 1u << (i & 31); }
static inline void bit_clear(uint32_t *bits, uint32_t i) { bits[i >> 5] &= ~(1u << (i & 31)); }

/* mask.c: sets the bits of the tree's tokens from node `begin` to `end`, which follow one place, that may come after a
 * state there. false: failed. */
bool masks_walk(struct grammar *g, struct masks *m, uint32_t begin, uint32_t end, gr_state from);
/* None, where a walk begins. */
void masks_clear(struct masks *m);
/* Ends a walk: keeps the bits at hand, as what differs from a row of the slice (0: from nothing). Returns their place,
 * 0: no memory. */
uint32_t masks_keep(struct grammar *g, struct masks *m, uint32_t row);
/* Keeps the last n numbers on the scratch. */
uint32_t masks_keep_list(struct grammar *g, struct masks *m, uint32_t n);
/* Adds a mask that was kept to the bits at hand. */
void masks_add(struct masks *m, uint32_t place);

/* mask_string.c: least to most characters of a JSON string are to come, then `rest`, which begins with no byte of one.
 */
struct inside {
    uint32_t least, most;
    gr_expr rest;
};
bool masks_is_inside(struct grammar *g, const struct masks *m, gr_state state, struct inside *out);
/* Its mask becomes the bits at hand; *row: the one it differs little from. false: failed. */
bool masks_inside(struct grammar *g, struct masks *m, const struct inside *in, uint32_t *row);

/* mask_head.c: adds what may follow a regular expression that stands before `rest` to the bits at hand, which are none
 * so far. */
enum head_answer { HEAD_FAILED, HEAD_FOUND, HEAD_UNFIT };
enum head_answer masks_by_head(struct grammar *g, struct masks *m, gr_expr head, gr_expr rest);

#endif
