/* SPDX-License-Identifier: MIT
 *
 * A model's tokens as a tree of bytes, laid flat, and masks: which tokens a state allows.
 *
 * Inside a JSON string nearly every token is allowed, and a counted string is in another state after each character. So
 * the tokens that lie wholly inside one are found once, with their characters (the slice), and of those that leave one
 * what follows its last character (the tails): such a state's mask is the slice up to its count, and those whose tails
 * may follow the string.
 */
#ifndef QUERN_GRAMMAR_VOCABULARY_H
#define QUERN_GRAMMAR_VOCABULARY_H

#include "grammar/nodes.h"

enum { TOKENS_MOST = 1 << 22, TOKEN_BYTES_MOST = 1 << 15, SLICE_COUNTS = 24 };
#define NO_TOKEN UINT32_MAX

enum token_kind { TOKEN_TEXT, TOKEN_END, TOKEN_NEVER };

struct vocabulary_source {
    const uint8_t *bytes;  /* of all tokens, one after the other */
    const uint32_t *sizes; /* [n] */
    const uint8_t *kinds;  /* [n]: enum token_kind */
    uint32_t n;
};

/* In the order of their bytes, a prefix first: what follows a node up to `skip` goes on from it. Tokens of the same
 * bytes are neighbours. */
struct trie_node {
    uint32_t skip, token;
    uint16_t depth; /* bytes, this one included */
    uint8_t byte;
};

struct trie {
    struct trie_node *nodes;
    uint32_t n;
};

struct making;

struct vocabulary {
    struct mem *mem;
    struct making *making; /* NULL: it is whole */
    uint32_t n, n_words; /* tokens; words of a mask */
    uint8_t *bytes;
    uint32_t *at;        /* [n + 1]: where their bytes begin */
    uint8_t *kinds;
    uint32_t *ends;      /* [n_words] */
    uint32_t longest;    /* bytes of a token */
    struct trie all;
    uint32_t begin_with[256]; /* tokens, by their first byte */
    /* [SLICE_COUNTS + 1, n_words]: those of at most so many characters, one begun included; the last row: any number */
    uint32_t *inside;
    uint32_t *long_ones; /* [n_long, 2]: tokens of at least SLICE_COUNTS characters, and how many these are */
    uint32_t n_long, room_long;
    struct trie tails;   /* its tokens are places in tail_ones */
    uint32_t *tail_ones; /* [n_tails, 3]: tokens that leave a string, and the characters and bytes before their tails */
    uint32_t n_tails, room_tails;
};

/* Copies what it is given. It is of use when vocabulary_go_on() has done all its parts, of some milliseconds each (1:
 * there are more; OK; ERR_MEM_LOAD: it can only be freed). ERR_PARAM, ERR_MEM_LOAD. */
int vocabulary_begin(struct mem *m, const struct vocabulary_source *source, struct vocabulary **out, struct error *err);
int vocabulary_go_on(struct vocabulary *v, struct error *err);
/* The same at once. */
int vocabulary_new(struct mem *m, const struct vocabulary_source *source, struct vocabulary **out, struct error *err);
void vocabulary_free(struct vocabulary *v); /* accepts NULL */

/* From now on the two calls below pause after so many steps, and some more; 0: never. Who calls again with the same
 * goes on, and comes to the same in the same steps; who calls with something else carries on first what has paused. */
void grammar_slice(struct grammar *g, int64_t steps);
bool grammar_paused(const struct grammar *g); /* the last one has: its NULL or GR_DEAD means nothing else */

/* One bit per token, lowest first: what the state allows; end tokens where it accepts. NULL: a limit, grammar_error()
 * says which; or paused. Borrowed until the grammar's next call. */
const uint32_t *grammar_mask(struct grammar *g, const struct vocabulary *v, gr_state state);
/* The state after a token; after an end token the same one where it accepts. GR_DEAD also for ids out of range, and
 * where it has paused. */
gr_state grammar_take(struct grammar *g, const struct vocabulary *v, gr_state state, uint32_t id);

#endif
