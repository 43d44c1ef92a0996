/* SPDX-License-Identifier: MIT
 *
 * The pool of expressions: nodes of 24 bytes, each made only once.
 *
 * Constructors normalise expressions, so that equal languages mostly are equal numbers and the set of states stays
 * small. Alternatives are sorted, those with the same beginning share it, byte sets are united, and repeats of the same
 * expression join their counts. The first part of a sequence is never a sequence. Its rest may be one whose first part
 * still is one (raw); it is straightened when it comes to the front. So calling a rule costs two nodes, not a copy of
 * the rest.
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

/* The first expressions of every pool. */
enum { EXPR_NEVER = 1, EXPR_EMPTY = 2, EXPR_ALL = 3 };

enum {
    HAS_RULES = 1, /* not regular */
    NULLABLE = 2,  /* the empty text matches */
    LIVE = 4,      /* some text matches */
    DEAD = 8       /* no text matches; neither LIVE nor DEAD: not known yet */
};

struct node {
    uint8_t kind, flags;
    /* SET, OR, AND, MULTIPLE: words [b] at lists + a. CAT: a, then b. NOT a. REPEAT: a, b to c times. RULE: number a */
    uint32_t a, b, c;
    uint32_t mark;    /* stamp of the last search that reached this node */
    uint32_t state;   /* number of its state, 0: none yet */
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
    uint32_t mask; /* place of its kept mask; 0: none */
};

struct masks;

struct grammar {
    struct mem *mem;
    struct error err;
    char *notes;        /* [NOTES_MOST], NULL: none yet */
    struct node *nodes; /* [room_nodes], n_nodes of them used; node 0 is not used */
    uint32_t n_nodes, room_nodes;
    uint32_t *slots;    /* [n_slots], a power of two, at most half full: hash table of nodes */
    uint32_t n_slots;
    uint32_t *lists;    /* [room_lists] */
    uint32_t n_lists, room_lists;
    uint64_t *scratch;  /* [room_scratch]: a stack of unfinished lists */
    uint32_t n_scratch, room_scratch;
    uint32_t *queue;    /* [2 * room_queue] of a search: pairs of a node and the item before it */
    uint32_t room_queue;
    struct rule *rules; /* [room_rules] */
    uint32_t n_rules, room_rules;
    struct memo *memo;  /* [MEMO], by a hash: the latest derivatives */
    struct state *states; /* [room_states]; 0 is dead */
    uint32_t *next;     /* [room_states, n_classes]: 0 (unknown), NEXT_DEAD, or a state */
    uint32_t n_states, room_states;
    uint8_t class_of[256];   /* class of each byte; no set separates bytes of one class */
    uint8_t byte_of[256];    /* [n_classes]: one byte of each class */
    uint32_t n_classes;
    uint32_t n_split;        /* nodes whose sets have split the classes */
    uint32_t stamp;          /* the latest mark of a search */
    /* steps left for the current call; number of them that it must leave to its caller */
    int64_t work, floor;
    int64_t pace;            /* value of `work` at which pace() is called next */
    bool stopped;            /* pace() has ended the compilation */
    struct slice slice;      /* of a call that may pause */
    struct job job;
    struct search search;
    struct pending pending;
    int depth;               /* nesting of the derivatives and alternatives being made */
    bool ready;
    uint64_t begun;          /* bytes of memory in use when it became ready */
    gr_state start;
    struct masks *masks; /* mask.c; NULL before the first mask */
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
#define BUILD_WORK (INT64_C(3) << 22) /* steps for building and readiness: less than a second */
#define CALL_WORK (INT64_C(1) << 23)  /* steps for each later call */
#define PACE_WORK (INT64_C(1) << 14)  /* steps between two calls of pace(): a millisecond or two */

/* Record an error and return 0: a limit, named by `what`; or too little memory. */
gr_expr node_limit(struct grammar *g, const char *what);
gr_expr node_memory(struct grammar *g);
/* Counts n steps. Returns false after too many steps, or if the callback of grammar_pace() ends the compilation. */
bool node_work(struct grammar *g, int64_t n);

gr_expr node_cat(struct grammar *g, gr_expr a, gr_expr b);
gr_expr node_not(struct grammar *g, gr_expr a);
gr_expr node_repeat(struct grammar *g, gr_expr a, uint32_t least, uint32_t most);
gr_expr node_set(struct grammar *g, const uint32_t set[8]);
gr_expr node_never(struct grammar *g); /* makes the first two nodes */
gr_expr node_rule(struct grammar *g, uint32_t number);
gr_expr node_multiple(struct grammar *g, uint64_t divisor, uint64_t remainder, bool inside);
/* Push the parts, then unite those on the scratch from `base` on, which removes them. */
bool node_push(struct grammar *g, gr_expr a);
gr_expr node_or(struct grammar *g, uint32_t base);
gr_expr node_and(struct grammar *g, uint32_t base);
/* Straightens a sequence: its first part is then no sequence. Only this form has derivatives. */
gr_expr node_straight(struct grammar *g, gr_expr a);
/* Makes room for `needed` items in an array whose size doubles. */
bool node_room(struct grammar *g, void **array, uint32_t *room, uint64_t needed, size_t size);
/* Flags of a node, from the flags of its parts. */
uint8_t node_facts(const struct grammar *g, const struct node *n);

static inline const struct node *node_of(const struct grammar *g, gr_expr a) { return &g->nodes[a]; }
static inline bool is_nullable(const struct grammar *g, gr_expr a) { return (g->nodes[a].flags & NULLABLE) != 0; }
static inline bool set_has(const uint32_t *set, uint8_t byte) { return (set[byte >> 5] >> (byte & 31) & 1) != 0; }

/* derive.c: the expression of the texts that may follow after this byte. */
gr_expr derive(struct grammar *g, gr_expr a, uint8_t byte);
/* The bytes with which texts of a may begin, and perhaps some more. */
void derive_first(struct grammar *g, gr_expr a, uint32_t set[8]);
/* Whether any text matches a: GR_YES, GR_NO; GR_UNKNOWN after too much work, or if the call pauses. */
enum gr_answer derive_live(struct grammar *g, gr_expr a);
/* Updates class_of for new sets. */
void derive_classes(struct grammar *g);

/* class.c: sorts the ranges and joins those that meet. Returns their new number. */
size_t class_order(struct grammar *g, struct gr_range *ranges, size_t n);
/* ready.c: whether matching may begin. If not, the error is in g. */
bool ready_check(struct grammar *g, gr_expr start);
/* state.c: the state of an expression; 0: failed. */
gr_state state_of(struct grammar *g, gr_expr a);
/* The transition for a class of bytes, computed if unknown: NEXT_DEAD, a state, or 0 (failed or paused). */
uint32_t state_next(struct grammar *g, gr_state state, uint32_t byte_class);
/* The state after a text; GR_DEAD if there is none, or it has failed or paused. */
gr_state state_after(struct grammar *g, gr_state state, struct bytes text);
/* mask.c */
void masks_free(struct grammar *g);

#endif
