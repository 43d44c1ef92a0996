/* SPDX-License-Identifier: MIT
 *
 * The pool of expressions: nodes of 24 bytes, each made once.
 *
 * Constructors bring what they are given into one form, so that equal languages are mostly equal numbers and the set of
 * states stays small: alternatives are sorted, those that begin alike share their beginning, byte sets are united,
 * repeats of one thread are counted together. A sequence's first part is never a sequence itself; its rest may be one
 * that has not been turned yet (raw), which is done when it comes to the front: so calling a rule costs two nodes, not
 * a copy of what is left of it.
 */
#ifndef QUERN_GRAMMAR_NODES_H
#define QUERN_GRAMMAR_NODES_H

#include "grammar/paused.h"

enum gr_kind {
    NODE_NEVER,
    NODE_EMPTY,
    NODE_SET,
    NODE_CAT,
    NODE_OR,
    NODE_AND,
    NODE_NOT,
    NODE_REPEAT,
    NODE_MULTIPLE,
    NODE_RULE
};

/* Those that every pool begins with. */
enum { EXPR_NEVER = 1, EXPR_EMPTY = 2, EXPR_ALL = 3 };

enum {
    HAS_RULES = 1, /* not regular */
    NULLABLE = 2,  /* the empty text is in it */
    LIVE = 4,      /* some text is in it */
    DEAD = 8       /* none is; neither: not known yet */
};

struct node {
    uint8_t kind, flags;
    /* SET, OR, AND, MULTIPLE: words [b] at lists + a. CAT: a, then b. NOT a. REPEAT: a, b to c times. RULE: number a */
    uint32_t a, b, c;
    uint32_t mark;    /* of the last search that came here */
    uint32_t state;   /* its number, 0: none yet */
};

enum { RULE_NAME = 32 };

struct rule {
    gr_expr body; /* 0: not defined */
    char name[RULE_NAME];
};

struct memo {
    uint32_t expr, byte, result;
};

struct state {
    gr_expr expr;
    uint32_t mask; /* the place of its mask among those kept; 0: none */
};

struct masks;

struct grammar {
    struct mem *mem;
    struct error err;
    char *notes;        /* [NOTES_MOST], NULL: none yet */
    struct node *nodes; /* [room_nodes], n_nodes of them made; 0 is none */
    uint32_t n_nodes, room_nodes;
    uint32_t *slots;    /* [n_slots], a power of two, at most half full: nodes by their contents */
    uint32_t n_slots;
    uint32_t *lists;    /* [room_lists] */
    uint32_t n_lists, room_lists;
    uint64_t *scratch;  /* [room_scratch]: lists being made, a stack */
    uint32_t n_scratch, room_scratch;
    uint32_t *queue;    /* [2 * room_queue]: of a search, pairs of node and the one before */
    uint32_t room_queue;
    struct rule *rules; /* [room_rules] */
    uint32_t n_rules, room_rules;
    struct memo *memo;  /* [MEMO], by a hash: derivatives made last */
    struct state *states; /* [room_states]; 0 is dead */
    uint32_t *next;     /* [room_states, n_classes]: 0 not known, NEXT_DEAD, or a state */
    uint32_t n_states, room_states;
    uint8_t class_of[256];   /* bytes that no set tells apart */
    uint8_t byte_of[256];    /* [n_classes]: one of each */
    uint32_t n_classes;
    uint32_t n_split;        /* nodes whose sets have been looked at for them */
    uint32_t stamp;          /* of marks */
    /* steps that the call at hand may still do, and that it has to leave to whoever asked it */
    int64_t work, floor;
    int64_t pace;            /* what is left of them when others are let in next */
    bool stopped;            /* since nobody waits for it */
    struct slice slice;      /* of a call that may pause */
    struct job job;
    struct search search;
    struct pending pending;
    int depth;               /* of derivatives and alternatives being made */
    bool ready;
    uint64_t begun;          /* bytes that it took when it was ready */
    gr_state start;
    struct masks *masks; /* mask.c; NULL until the first */
};

enum {
    NOTES_MOST = 8192,
    MEMO = 1 << 15,
    NODES_MOST = 1 << 21,
    STATES_MOST = 1 << 15,
    DEPTH_MOST = 1200,
    CLASSES_MOST = 256
};
#define NEXT_DEAD UINT32_MAX
#define BUILD_WORK (INT64_C(3) << 22) /* steps that building and readiness may take: less than a second */
#define CALL_WORK (INT64_C(1) << 23)  /* those of one call later */
#define PACE_WORK (INT64_C(1) << 14)  /* from one question whether to go on to the next: a millisecond or two */

/* Record an error and return 0: a limit by name; memory. */
gr_expr node_limit(struct grammar *g, const char *what);
gr_expr node_memory(struct grammar *g);
/* Counts n steps; false when there were too many, or whoever is asked while a grammar is made (grammar_pace()) says so.
 */
bool node_work(struct grammar *g, int64_t n);

gr_expr node_cat(struct grammar *g, gr_expr a, gr_expr b);
gr_expr node_not(struct grammar *g, gr_expr a);
gr_expr node_repeat(struct grammar *g, gr_expr a, uint32_t least, uint32_t most);
gr_expr node_set(struct grammar *g, const uint32_t set[8]);
gr_expr node_never(struct grammar *g); /* makes the first three */
gr_expr node_rule(struct grammar *g, uint32_t number);
gr_expr node_multiple(struct grammar *g, uint64_t divisor, uint64_t remainder, bool inside);
/* Parts are pushed, then united: those on the scratch from `base` on, which they leave. */
bool node_push(struct grammar *g, gr_expr a);
gr_expr node_or(struct grammar *g, uint32_t base);
gr_expr node_and(struct grammar *g, uint32_t base);
/* The form in which a sequence is derived. */
gr_expr node_straight(struct grammar *g, gr_expr a);
/* Room for one more of an array that doubles. */
bool node_room(struct grammar *g, void **array, uint32_t *room, uint64_t needed, size_t size);
/* NULLABLE, LIVE and DEAD by those of its parts. */
uint8_t node_facts(const struct grammar *g, const struct node *n);

static inline const struct node *node_of(const struct grammar *g, gr_expr a) { return &g->nodes[a]; }
static inline bool is_nullable(const struct grammar *g, gr_expr a) { return (g->nodes[a].flags & NULLABLE) != 0; }
static inline bool set_has(const uint32_t *set, uint8_t byte) { return (set[byte >> 5] >> (byte & 31) & 1) != 0; }

/* derive.c: what may follow after this byte. */
gr_expr derive(struct grammar *g, gr_expr a, uint8_t byte);
/* The bytes that its texts may begin with, and perhaps some more. */
void derive_first(struct grammar *g, gr_expr a, uint32_t set[8]);
/* Whether some text is in it: GR_YES, GR_NO, GR_UNKNOWN after too much work, or where the call pauses. */
enum gr_answer derive_live(struct grammar *g, gr_expr a);
/* Brings class_of up to date with the sets there are. */
void derive_classes(struct grammar *g);

/* class.c: in order, those that meet joined; returns how many are left. */
size_t class_order(struct grammar *g, struct gr_range *ranges, size_t n);
/* ready.c: whether matching may begin; the error is g's. */
bool ready_check(struct grammar *g, gr_expr start);
/* state.c: an expression's number; 0: failed. */
gr_state state_of(struct grammar *g, gr_expr a);
/* A transition by class, made if it is not known yet. NEXT_DEAD, a state, or 0 (failed, or paused). */
uint32_t state_next(struct grammar *g, gr_state state, uint32_t byte_class);
/* The state behind a text; GR_DEAD: none, or failed, or paused. */
gr_state state_after(struct grammar *g, gr_state state, struct bytes text);
/* mask.c */
void masks_free(struct grammar *g);

#endif
