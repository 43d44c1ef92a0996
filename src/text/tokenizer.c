/* SPDX-License-Identifier: MIT
 *
 * Puts the parts together: loads vocabulary, merges and special tokens from a file, and encodes: text -> special tokens
 * and segments -> pieces (pieces.h) -> byte pairs (bpe.h).
 *
 * A call always starts at the first byte of a piece. The results so far (up to where no special token begins, how far
 * the piece reaches, which symbols are joined) are kept from call to call as offsets from that byte.
 */
#include "text/tokenizer.h"

#include "base/reader.h"
#include "text/bpe.h"
#include "text/pieces.h"
#include "text/scores.h"
#include "text/specials.h"
#include "base/unicode.h"

#include <string.h>

struct tokenizer {
    struct mem *mem;
    struct vocab vocab;
    struct unicode_classes classes;
    struct piece_rules rules;
    bool whole;          /* struct tok_source; the vocabulary then keeps its index */
    struct bpe bpe;
    bool scored;         /* tokens are joined by scores, over the whole text */
    struct specials specials;
};

static int out_of_memory(struct error *err)
{
    return fail(err, ERR_MEM_LOAD, "vocab", 0, "Out of memory for the tokenizer.");
}

/* --- loading: bytes and merges ------------------------------------------------------------------------ */

/* A special token that pieces also produce: some programs mark an ordinary token as special to have one for padding. It
 * stays one token wherever it occurs, and is shown like other text. */
static uint32_t make_ordinary(struct vocab *v, uint32_t id)
{
    if (id != TABLE_NONE && v->types[id] == TOKEN_CONTROL) v->types[id] = TOKEN_USER_DEFINED;
    return id;
}

static int load_bytes(struct tokenizer *t, struct error *err)
{
    for (int i = 0; i < 256; i++) {
        uint8_t byte = (uint8_t)i;
        t->bpe.byte_ids[i] = make_ordinary(&t->vocab, vocab_find(&t->vocab, (struct bytes){&byte, 1}));
        if (t->bpe.byte_ids[i] == TABLE_NONE)
            return fail(err, ERR_INCONSISTENT, "vocab", 0,
                        "The vocabulary cannot represent byte 0x%02X: no normal token stands for it.", (unsigned)i);
    }
    return OK;
}

/* Cuts "left right" at its only space. */
static bool cut_merge(struct bytes line, struct bytes *left, struct bytes *right)
{
    const uint8_t *space = line.size ? memchr(line.data, ' ', line.size) : NULL;
    if (!space) return false;
    size_t n = (size_t)(space - line.data);
    *left = (struct bytes){line.data, n};
    *right = (struct bytes){space + 1, line.size - n - 1};
    return left->size && right->size && !memchr(right->data, ' ', right->size);
}

/* Both parts and their concatenation must be tokens. buffer: 2 * TOKEN_MAX_BYTES. */
static bool resolve_merge(struct vocab *v, struct bytes left, struct bytes right, uint8_t *buffer, struct merge *out)
{
    size_t n_left, n_right;
    if (left.size > TOKEN_MAX_BYTES || right.size > TOKEN_MAX_BYTES) return false;
    if (!alphabet_decode(left, buffer, &n_left) || !alphabet_decode(right, buffer + n_left, &n_right)) return false;
    out->left = vocab_find(v, (struct bytes){buffer, n_left});
    out->right = vocab_find(v, (struct bytes){buffer + n_left, n_right});
    out->result = vocab_find(v, (struct bytes){buffer, n_left + n_right});
    if (out->left == TABLE_NONE || out->right == TABLE_NONE || out->result == TABLE_NONE) return false;
    make_ordinary(v, out->result); /* the parts are bytes, or results of other merges */
    return true;
}

static int load_merge(struct tokenizer *t, struct cursor *c, uint32_t rank, uint8_t *buffer, struct error *err)
{
    uint64_t size;
    struct bytes line, left, right;
    struct merge merge;
    char text[QUOTED];
    if (!take_u64(c, &size) || !take_bytes(c, size, &line))
        return fail(err, ERR_FORMAT, "merges", 0, "The list of merges ends in the middle of merge %u.", (unsigned)rank);
    if (!cut_merge(line, &left, &right))
        return fail(err, ERR_FORMAT, "merges", 0, "Merge %u is \"%s\", not two parts with one space between them.",
                    (unsigned)rank, quoted(line, text));
    if (!resolve_merge(&t->vocab, left, right, buffer, &merge))
        return fail(err, ERR_INCONSISTENT, "merges", 0, "Merge %u has a part or a result that is no token: \"%s\".",
                    (unsigned)rank, quoted(line, text));
    if (!bpe_set_merge(&t->bpe, rank, merge))
        return fail(err, ERR_FORMAT, "merges", 0, "The merges collide far beyond chance; the file is not trustworthy.");
    return OK;
}

/* Without merges no token of several bytes could be made, so an empty list with such tokens means that merges are
 * missing. */
static int check_no_merges(const struct tokenizer *t, struct error *err)
{
    for (uint32_t id = 0; id < t->vocab.n_tokens; id++) {
        struct bytes token = vocab_bytes(&t->vocab, id);
        if (token.size > 1 && !is_special(t->vocab.types[id]) && vocab_find(&t->vocab, token) == id)
            return fail(err, ERR_FORMAT, "merges", 0, "The list of merges is missing: no merge makes token %u.",
                        (unsigned)id);
    }
    return OK;
}

static int load_merges(struct tokenizer *t, struct bytes merges, uint64_t n_merges, struct error *err)
{
    if (n_merges > TABLE_MAX_ITEMS || n_merges > merges.size / 8)
        return fail(err, ERR_FORMAT, "merges", 0, "The file claims %llu merges in %zu bytes.",
                    (unsigned long long)n_merges, merges.size);
    uint8_t *buffer = mem_alloc_raw(t->mem, 2 * TOKEN_MAX_BYTES);
    if (!buffer || !bpe_new(t->mem, &t->bpe, n_merges)) {
        mem_free(t->mem, buffer);
        return out_of_memory(err);
    }
    struct cursor c = {.data = merges.data, .size = merges.size};
    int status = n_merges ? OK : check_no_merges(t, err);
    for (uint32_t rank = 0; !status && rank < n_merges; rank++) status = load_merge(t, &c, rank, buffer, err);
    if (!status && c.pos != c.size)
        status = fail(err, ERR_FORMAT, "merges", 0, "The list of merges has bytes left after its last one.");
    mem_free(t->mem, buffer);
    return status;
}

static int load_scores(struct tokenizer *t, struct bytes scores, struct error *err)
{
    if (scores.size != (uint64_t)t->vocab.n_tokens * 4)
        return fail(err, ERR_FORMAT, "vocab", 0, "The vocabulary has %u tokens but %zu bytes of scores (4 each).",
                    (unsigned)t->vocab.n_tokens, scores.size);
    for (uint32_t id = 0; id < t->vocab.n_tokens; id++)
        if ((load_u32(scores.data + 4 * (size_t)id) & 0x7F800000) == 0x7F800000)
            return fail(err, ERR_FORMAT, "vocab", 0, "The score of token %u is not a number.", (unsigned)id);
    return scores_load(t->mem, &t->bpe, &t->vocab, scores, err);
}

static int load(struct tokenizer *t, const struct tok_source *source, struct error *err)
{
    t->scored = source->scores.size != 0;
    t->rules = source->rules;
    t->whole = source->whole && !t->scored;
    int status = unicode_open(t->mem, &t->classes) ? OK : out_of_memory(err);
    if (!status) status = vocab_load(t->mem, &t->vocab, source->tokens, source->n_tokens, source->types, err);
    if (!status && !t->scored && !vocab_index_literals(&t->vocab))
        status = fail(err, ERR_FORMAT, "vocab", 0,
                      "The token strings collide far beyond chance; the file is not trustworthy.");
    if (!status) status = load_bytes(t, err);
    if (!status && t->scored) status = load_scores(t, source->scores, err);
    else if (!status) status = load_merges(t, source->merges, source->n_merges, err);
    if (!t->whole) vocab_drop_index(t->mem, &t->vocab);
    return status ? status : specials_load(t->mem, &t->specials, &t->vocab, err);
}

int tok_new(struct mem *m, const struct tok_source *source, struct tokenizer **out, struct error *err)
{
    *out = NULL;
    struct tokenizer *t = mem_alloc(m, sizeof *t);
    if (!t) return out_of_memory(err);
    t->mem = m;
    int status = load(t, source, err);
    if (status) tok_free(t);
    else *out = t;
    return status;
}

void tok_free(struct tokenizer *t)
{
    if (!t) return;
    unicode_close(t->mem, &t->classes);
    vocab_free(t->mem, &t->vocab);
    bpe_free(t->mem, &t->bpe);
    mem_free(t->mem, t->specials.ids);
    mem_free(t->mem, t);
}

/* --- tokens ------------------------------------------------------------------------------------------- */

int tok_count(const struct tokenizer *t) { return (int)t->vocab.n_tokens; }

static bool has_token(const struct tokenizer *t, int id) { return id >= 0 && (uint32_t)id < t->vocab.n_tokens; }

struct bytes tok_bytes(const struct tokenizer *t, int id)
{
    return has_token(t, id) ? vocab_bytes(&t->vocab, (uint32_t)id) : (struct bytes){t->vocab.text, 0};
}

const struct vocab *tok_vocab(const struct tokenizer *t) { return &t->vocab; }

int tok_type(const struct tokenizer *t, int id) { return has_token(t, id) ? t->vocab.types[id] : 0; }

int tok_find_special(const struct tokenizer *t, struct bytes text)
{
    uint32_t id = text.size ? specials_match(&t->specials, &t->vocab, text, false) : TABLE_NONE;
    return id != TABLE_NONE && vocab_bytes(&t->vocab, id).size == text.size ? (int)id : -1;
}

/* --- encoding ----------------------------------------------------------------------------------------- */

enum {
    LONG_PIECE = 8192, /* bytes; shorter pieces are joined in one call, in two milliseconds at most */
    BLOCK = 4096,      /* bytes that one pass searches for special tokens */
};

struct tok_run {
    const struct tokenizer *t;
    enum tok_mode mode;
    uint8_t sentinel[UTF8_MAX];
    size_t sentinel_size;  /* 0: none */
    size_t clear;          /* bytes at the beginning in which no special token begins */
    uint32_t special;      /* the special token after these bytes; TABLE_NONE: not known */
    struct piece piece;
    bool is_found, is_joining;
    struct bpe_run joining; /* of a long piece */
};

struct tok_run *tok_run_new(const struct tokenizer *t, enum tok_mode mode, uint32_t sentinel)
{
    struct tok_run *r = mem_alloc(t->mem, sizeof *r);
    if (!r) return NULL;
    r->t = t;
    r->mode = mode;
    r->special = TABLE_NONE;
    r->joining.mem = t->mem;
    if (mode == TOK_CHAT && sentinel) r->sentinel_size = utf8_write(sentinel, r->sentinel);
    return r;
}

void tok_run_free(struct tok_run *r)
{
    if (!r) return;
    bpe_end(&r->joining);
    mem_free(r->t->mem, r);
}

static struct bytes behind(struct bytes text, size_t n) { return (struct bytes){text.data + n, text.size - n}; }

/* Number of positions where a special token could begin and would be completely visible. */
static size_t seen_of(struct bytes text, bool is_whole)
{
    if (is_whole) return text.size;
    return text.size < SPECIAL_MAX_BYTES ? 0 : text.size - (SPECIAL_MAX_BYTES - 1);
}

/* Searches the next block for special tokens. Returns whether it made progress. */
static bool clear_more(struct tok_run *r, struct bytes text, bool is_whole, int64_t *budget)
{
    size_t begin = r->clear, seen = r->mode == TOK_PLAIN ? text.size : seen_of(text, is_whole);
    if (r->special != TABLE_NONE) return false;
    if (r->mode == TOK_PLAIN) {
        r->clear = text.size;
    } else {
        size_t end = begin + BLOCK < seen ? begin + BLOCK : seen;
        for (; r->special == TABLE_NONE && r->clear < end; r->clear++) {
            r->special = specials_match(&r->t->specials, &r->t->vocab, behind(text, r->clear), r->mode == TOK_TEXT);
            if (r->special != TABLE_NONE) break;
        }
        *budget -= (int64_t)(r->clear - begin);
    }
    return r->special != TABLE_NONE || r->clear > begin;
}

/* The text that is known to come before the next special token. */
static struct piece_text view_of(const struct tok_run *r, struct bytes text, bool is_whole)
{
    bool ends = r->special != TABLE_NONE || (is_whole && r->clear == text.size);
    return (struct piece_text){.bytes = {text.data, r->clear},
                               .is_whole = ends,
                               .skip = {r->sentinel, r->sentinel_size},
                               .classes = &r->t->classes,
                               .rules = r->t->rules};
}

/* Searches for the end of the piece at the start of the text. Tokens that are joined by scores have no pieces. */
static bool find_piece(struct tok_run *r, struct bytes text, bool is_whole, int64_t *budget)
{
    do {
        struct piece_text view = view_of(r, text, is_whole);
        if (!r->t->scored && view.bytes.size) r->is_found = piece_find(&r->piece, &view, budget);
        if (r->t->scored && view.is_whole) {
            r->piece.end = view.bytes.size;
            r->is_found = true;
        }
    } while (!r->is_found && *budget > 0 && clear_more(r, text, is_whole, budget));
    return r->is_found;
}

/* Moves the state n bytes forward in the text, to the next piece. Returns n. */
static size_t pass(struct tok_run *r, size_t n)
{
    r->clear = r->clear > n ? r->clear - n : 0;
    r->piece = (struct piece){0};
    r->is_found = r->is_joining = false;
    return n;
}

/* Returns the number of bytes that have become tokens, 0 if the piece is not finished; or a negative status. */
static int64_t join_long(struct tok_run *r, struct bytes piece, struct bytes skip, int64_t *budget, struct id_sink *out)
{
    if (!r->is_joining && bpe_begin(&r->joining, piece.size)) return ERR_MEM_LOAD;
    r->is_joining = true;
    if (!bpe_go_on(&r->t->bpe, &r->joining, piece, skip, budget, out)) return 0;
    bpe_end(&r->joining);
    return (int64_t)pass(r, piece.size);
}

/* The token that a piece is, without the bytes to skip; TABLE_NONE: none. */
static uint32_t token_of(const struct tokenizer *t, struct bytes piece, struct bytes skip)
{
    uint8_t text[LONG_PIECE];
    size_t n = 0;
    if (!t->whole || piece.size > sizeof text) return TABLE_NONE;
    for (size_t i = 0; i < piece.size;) {
        if (skip.size && piece.size - i >= skip.size && !memcmp(piece.data + i, skip.data, skip.size)) i += skip.size;
        else text[n++] = piece.data[i++];
    }
    uint32_t id = n ? vocab_find(&t->vocab, (struct bytes){text, n}) : TABLE_NONE;
    return id != TABLE_NONE && is_special(t->vocab.types[id]) ? TABLE_NONE : id;
}

/* Writes the tokens of a piece whose end is known. Returns as join_long(). */
static int64_t join(struct tok_run *r, struct bytes text, struct bpe_run *scratch, int64_t *budget, struct id_sink *out)
{
    struct bytes piece = {text.data, r->piece.end}, skip = {r->sentinel, r->sentinel_size};
    if (piece.size > LONG_PIECE) return join_long(r, piece, skip, budget, out);
    uint32_t id = token_of(r->t, piece, skip);
    if (id != TABLE_NONE) id_sink_put(out, id);
    else if (bpe_encode(&r->t->bpe, piece, skip, scratch, budget, out)) return ERR_MEM_LOAD;
    return (int64_t)pass(r, piece.size);
}

static int64_t tell_special(struct tok_run *r, struct id_sink *out)
{
    size_t n = vocab_bytes(&r->t->vocab, r->special).size;
    id_sink_put(out, r->special);
    r->special = TABLE_NONE;
    return (int64_t)pass(r, n);
}

/* Whether out has room for the tokens of a piece that is joined in one call. */
static bool has_room(const struct tok_run *r, const struct id_sink *out)
{
    return out->cap - out->n >= (r->piece.end > LONG_PIECE ? 1 : LONG_PIECE);
}

static bool is_at_special(const struct tok_run *r) { return r->special != TABLE_NONE && r->clear == 0; }

int tok_run_go_on(struct tok_run *r, struct tok_text *in, bool may_be_long, int64_t budget, struct id_sink *out)
{
    struct bpe_run scratch = {.mem = r->t->mem};
    int status = TOK_MORE;
    in->used = 0;
    while (status == TOK_MORE && budget > 0 && has_room(r, out)) {
        struct bytes text = behind(in->bytes, in->used);
        int64_t n = 0;
        if (!text.size && in->is_whole) status = TOK_DONE;
        else if (is_at_special(r)) n = tell_special(r, out);
        else if (r->is_found && r->piece.end > LONG_PIECE && !may_be_long) status = TOK_LONG;
        else if (r->is_found) n = join(r, text, &scratch, &budget, out);
        else if (!find_piece(r, text, in->is_whole, &budget) && !is_at_special(r) && budget > 0)
            status = TOK_WANTS_TEXT;
        if (n < 0) status = (int)n;
        else in->used += (size_t)n;
    }
    bpe_end(&scratch);
    return status == TOK_MORE && r->is_joining ? TOK_LONG : status;
}

int64_t tok_encode(const struct tokenizer *t, struct bytes text, enum tok_mode mode, uint32_t sentinel, int32_t *ids,
                   int64_t cap)
{
    enum { ROOM = 2 * LONG_PIECE };
    int32_t some[ROOM];
    struct tok_run *r = tok_run_new(t, mode, sentinel);
    int64_t n = 0;
    if (!r) return ERR_MEM_LOAD;
    int status = TOK_MORE;
    while (status > TOK_DONE) {
        struct tok_text in = {.bytes = text, .is_whole = true};
        struct id_sink out = {.ids = some, .cap = ROOM};
        status = tok_run_go_on(r, &in, true, INT64_MAX, &out);
        text = behind(text, in.used);
        if (n < cap && out.n) memcpy(ids + n, some, (size_t)(cap - n < out.n ? cap - n : out.n) * sizeof *ids);
        n += out.n;
    }
    tok_run_free(r);
    return status < 0 ? status : n;
}

/* --- streaming decode --------------------------------------------------------------------------------- */

size_t tok_stream_push(struct tok_stream *s, struct bytes piece, uint8_t *out)
{
    size_t held = (size_t)s->n_held, size = held + piece.size;
    memcpy(out, s->held, held);
    if (piece.size) memcpy(out + held, piece.data, piece.size);
    size_t keep = utf8_unfinished(out, size);
    memcpy(s->held, out + size - keep, keep);
    s->n_held = (int)keep;
    return size - keep;
}

size_t tok_stream_end(struct tok_stream *s, uint8_t *out)
{
    size_t n = (size_t)s->n_held;
    memcpy(out, s->held, n);
    s->n_held = 0;
    return n;
}
