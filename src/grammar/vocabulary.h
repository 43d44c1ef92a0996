/* SPDX-License-Identifier: MIT
 *
 * A model's tokens as a flat tree of bytes, and masks: the tokens that a state allows.
 *
 * Inside a JSON string nearly every token is allowed, and a string with a counted length is in another state after each
 * character. So the tokens that lie completely inside a string are found once, with their numbers of characters (the
 * slice). For tokens that leave a string, the bytes after its last character are kept (the tails). The mask of such a
 * state is the slice for its count, and the tokens whose tails may follow the string.
 */
#ifndef QUERN_GRAMMAR_VOCABULARY_H
#define QUERN_GRAMMAR_VOCABULARY_H

#include "grammar/nodes.h"

enum { TOKENS_MOST = 1 << 22, TOKEN_BYTES_MOST = 1 << 15, SLICE_COUNTS = 24 };
#define NO_TOKEN UINT32_MAX

enum token_kind { TOKEN_TEXT, TOKEN_END, TOKEN_NEVER };

struct vocabulary_source {
    const uint8_t *bytes;  /* bytes of all tokens, one after the other */
    const uint32_t *sizes; /* [n] */
    const uint8_t *kinds;  /* [n]: enum token_kind */
    uint32_t n;
};

/* Nodes are sorted by their bytes, a prefix first. The nodes after a node, up to `skip`, are its subtree. Tokens with
 * the same bytes are neighbours. */
struct trie_node {
    uint32_t skip, token;
    uint16_t depth; /* number of bytes, including this one */
    uint8_t byte;
};

struct trie {
    struct trie_node *nodes;
    uint32_t n;
};

struct making;

struct vocabulary {
    struct mem *mem;
    struct making *making; /* NULL: the vocabulary is complete */
    uint32_t n, n_words; /* number of tokens; words of a mask */
    uint8_t *bytes;
    uint32_t *at;        /* [n + 1]: position of each token's bytes */
    uint8_t *kinds;
    uint32_t *ends;      /* [n_words] */
    uint32_t longest;    /* most bytes of a token */
    struct trie all;
    uint32_t begin_with[256]; /* numbers of tokens, by their first byte */
    /* [SLICE_COUNTS + 1, n_words]: tokens of at most this many characters, an incomplete one included; last row: any
     * number */
    uint32_t *inside;
    uint32_t *long_ones; /* [n_long, 2]: tokens of at least SLICE_COUNTS characters, and their numbers of characters */
    uint32_t n_long, room_long;
    struct trie tails;   /* its tokens are indexes of tail_ones */
    uint32_t *tail_ones; /* [n_tails, 3]: a token that leaves a string, and the characters and bytes before its tail */
    uint32_t n_tails, room_tails;
};

/* Begins a vocabulary and copies the source. vocabulary_go_on() does the work in parts of some milliseconds: 1: more
 * parts are left; OK: the vocabulary is ready; ERR_MEM_LOAD: it can only be freed. vocabulary_begin() returns OK,
 * ERR_PARAM or ERR_MEM_LOAD. */
int vocabulary_begin(struct mem *m, const struct vocabulary_source *source, struct vocabulary **out, struct error *err);
int vocabulary_go_on(struct vocabulary *v, struct error *err);
/* Does all of this in one call. */
int vocabulary_new(struct mem *m, const struct vocabulary_source *source, struct vocabulary **out, struct error *err);
void vocabulary_free(struct vocabulary *v); /* accepts NULL */

/* From now on the two calls below pause after about this many steps; 0: never. Calling again with the same arguments
 * continues, and gives the same result in the same number of steps. A call with other arguments first continues the
 * paused call. */
void grammar_slice(struct grammar *g, int64_t steps);
bool grammar_paused(const struct grammar *g); /* the last call has paused: its NULL or GR_DEAD means only that */

/* One bit per token, lowest first: the tokens that the state allows, with end tokens if it accepts. NULL: it has
 * paused, or reached a limit, which grammar_error() names. Valid until the grammar's next call. */
const uint32_t *grammar_mask(struct grammar *g, const struct vocabulary *v, gr_state state);
/* The state after a token. An end token keeps the state if it accepts. GR_DEAD also for ids out of range, and if it has
 * paused. */
gr_state grammar_take(struct grammar *g, const struct vocabulary *v, gr_state state, uint32_t id);
/* The bytes that every text has next, such as the quotes and the name of a member: as long as the text may not end and
 * one byte alone may follow. Writes at most `most` of them to out and returns their number. Fewer if finding them takes
 * longer than a slice; 0 while another call is paused. */
uint32_t grammar_forced(struct grammar *g, gr_state state, uint8_t *out, uint32_t most);

#endif
