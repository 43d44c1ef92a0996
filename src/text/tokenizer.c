/* SPDX-License-Identifier: MIT
 *
 * Puts the parts together: vocabulary, merges and special tokens from a file; text -> special tokens and segments ->
 * pieces (pieces.h) -> byte pairs (bpe.h).
 *
 * Special tokens are kept sorted by their bytes, in ranges by first byte. At each position of the text the range of
 * candidates narrows byte by byte, which finds the longest match in steps bounded by SPECIAL_MAX_BYTES, whatever
 * strings a file brings; text without a candidate's first byte costs one look-up a byte.
 */
#include "text/tokenizer.h"

#include "base/reader.h"
#include "text/bpe.h"
#include "text/pieces.h"
#include "text/scores.h"
#include "base/unicode.h"
#include "text/vocab.h"

#include <string.h>

enum { SPECIAL_MAX_BYTES = 256 }; /* ten times the longest of Qwen3; bounds the cost of hostile ones */

struct tokenizer {
    struct mem *mem;
    struct vocab vocab;
    struct bpe bpe;
    bool scored;         /* joined by scores, over the whole text */
    uint32_t *specials; /* [n_specials] ids by (bytes, control before user-defined), no such pair twice */
    uint32_t n_specials;
    uint32_t special_start[257]; /* specials whose first byte is c: special_start[c] .. special_start[c + 1] */
};

static int out_of_memory(struct error *err) { return fail(err, ERR_MEM_LOAD, "vocab", 0, "Out of memory for the tokenizer."); }

/* --- loading: bytes and merges ------------------------------------------------------------------------ */

static bool is_special(int type) { return type == TOKEN_CONTROL || type == TOKEN_USER_DEFINED; }

/* A token of its own that pieces are made of as well: programs call an ordinary one a special one so that they have something to pad texts with.
 * It stays a token wherever it stands, and is shown like others. */
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
            return fail(err, ERR_INCONSISTENT, "vocab", 0, "The vocabulary cannot represent byte 0x%02X: no normal token stands for it.",
                        (unsigned)i);
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
    make_ordinary(v, out->result); /* its parts are bytes, or results of other merges */
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
        return fail(err, ERR_FORMAT, "merges", 0, "Merge %u is \"%s\", not two parts with one space between them.", (unsigned)rank,
                    quoted(line, text));
    if (!resolve_merge(&t->vocab, left, right, buffer, &merge))
        return fail(err, ERR_INCONSISTENT, "merges", 0, "Merge %u has a part or a result that is no token: \"%s\".", (unsigned)rank,
                    quoted(line, text));
    if (!bpe_set_merge(&t->bpe, rank, merge))
        return fail(err, ERR_FORMAT, "merges", 0, "The merges collide far beyond chance; the file is not trustworthy.");
    return OK;
}

/* Without merges a token of several bytes could never be made: then they are missing. */
static int check_no_merges(const struct tokenizer *t, struct error *err)
{
    for (uint32_t id = 0; id < t->vocab.n_tokens; id++) {
        struct bytes token = vocab_bytes(&t->vocab, id);
        if (token.size > 1 && !is_special(t->vocab.types[id]) && vocab_find(&t->vocab, token) == id)
            return fail(err, ERR_FORMAT, "merges", 0, "The list of merges is missing: nothing makes token %u.", (unsigned)id);
    }
    return OK;
}

static int load_merges(struct tokenizer *t, struct bytes merges, uint64_t n_merges, struct error *err)
{
    if (n_merges > TABLE_MAX_ITEMS || n_merges > merges.size / 8)
        return fail(err, ERR_FORMAT, "merges", 0, "The file claims %llu merges in %zu bytes.", (unsigned long long)n_merges, merges.size);
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

/* --- loading: special tokens -------------------------------------------------------------------------- */

static struct bytes special_bytes(const struct tokenizer *t, uint32_t i) { return vocab_bytes(&t->vocab, t->specials[i]); }

/* By bytes, then type, then id. */
static int compare_specials(const struct vocab *v, uint32_t a, uint32_t b)
{
    int order = bytes_compare(vocab_bytes(v, a), vocab_bytes(v, b));
    if (order == 0) order = (int)v->types[a] - (int)v->types[b];
    return order ? order : (a > b) - (a < b);
}

static void sift_down(const struct vocab *v, uint32_t *ids, uint32_t i, uint32_t n)
{
    for (uint32_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && compare_specials(v, ids[child], ids[child + 1]) < 0) child++;
        if (compare_specials(v, ids[i], ids[child]) >= 0) return;
        uint32_t id = ids[i];
        ids[i] = ids[child];
        ids[child] = id;
        i = child;
    }
}

/* Heapsort: the file chooses how many there are, so neither recursion nor a bad case is acceptable. */
static void sort_specials(const struct vocab *v, uint32_t *ids, uint32_t n)
{
    for (uint32_t i = n / 2; i-- > 0;) sift_down(v, ids, i, n);
    for (uint32_t end = n; end-- > 1;) {
        uint32_t id = ids[0];
        ids[0] = ids[end];
        ids[end] = id;
        sift_down(v, ids, 0, end);
    }
}

/* Of specials with the same bytes and type the first, which has the lowest id, stays. */
static void drop_duplicates(struct tokenizer *t)
{
    const struct vocab *v = &t->vocab;
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_specials; i++) {
        uint32_t id = t->specials[i];
        bool same = n && v->types[id] == v->types[t->specials[n - 1]] && bytes_compare(vocab_bytes(v, id), special_bytes(t, n - 1)) == 0;
        if (!same) t->specials[n++] = id;
    }
    t->n_specials = n;
}

static int load_specials(struct tokenizer *t, struct error *err)
{
    const struct vocab *v = &t->vocab;
    for (uint32_t id = 0; id < v->n_tokens; id++) t->n_specials += is_special(v->types[id]);
    t->specials = mem_array(t->mem, t->n_specials, sizeof *t->specials);
    if (!t->specials) return out_of_memory(err);
    for (uint32_t id = 0, n = 0; id < v->n_tokens; id++) {
        if (!is_special(v->types[id])) continue;
        t->specials[n++] = id;
        if (vocab_bytes(v, id).size > SPECIAL_MAX_BYTES)
            return fail(err, ERR_FORMAT, "vocab", 0, "The special token %u has more than %d bytes.", (unsigned)id, SPECIAL_MAX_BYTES);
    }
    sort_specials(v, t->specials, t->n_specials);
    drop_duplicates(t);
    uint32_t i = 0;
    for (uint32_t c = 0; c <= 256; c++) {
        while (i < t->n_specials && special_bytes(t, i).data[0] < c) i++;
        t->special_start[c] = i;
    }
    return OK;
}

static int load_scores(struct tokenizer *t, struct bytes scores, struct error *err)
{
    if (scores.size != (uint64_t)t->vocab.n_tokens * 4)
        return fail(err, ERR_FORMAT, "vocab", 0, "The vocabulary has %u tokens but %zu bytes of scores (4 each).", (unsigned)t->vocab.n_tokens,
                    scores.size);
    for (uint32_t id = 0; id < t->vocab.n_tokens; id++)
        if ((load_u32(scores.data + 4 * (size_t)id) & 0x7F800000) == 0x7F800000)
            return fail(err, ERR_FORMAT, "vocab", 0, "The score of token %u is not a number.", (unsigned)id);
    return scores_load(t->mem, &t->bpe, &t->vocab, scores, err);
}

static int load(struct tokenizer *t, const struct tok_source *source, struct error *err)
{
    t->scored = source->scores.size != 0;
    int status = vocab_load(t->mem, &t->vocab, source->tokens, source->n_tokens, source->types, err);
    if (!status && !t->scored && !vocab_index_literals(&t->vocab))
        status = fail(err, ERR_FORMAT, "vocab", 0, "The token strings collide far beyond chance; the file is not trustworthy.");
    if (!status) status = load_bytes(t, err);
    if (!status && t->scored) status = load_scores(t, source->scores, err);
    else if (!status) status = load_merges(t, source->merges, source->n_merges, err);
    vocab_drop_index(t->mem, &t->vocab);
    return status ? status : load_specials(t, err);
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
    vocab_free(t->mem, &t->vocab);
    bpe_free(t->mem, &t->bpe);
    mem_free(t->mem, t->specials);
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

/* --- special tokens in text --------------------------------------------------------------------------- */

static bool recognised(const struct tokenizer *t, uint32_t id, enum tok_mode mode)
{
    return mode == TOK_CHAT || (mode == TOK_TEXT && t->vocab.types[id] == TOKEN_USER_DEFINED);
}

static int special_byte(const struct tokenizer *t, uint32_t i, size_t depth) { return special_bytes(t, i).data[depth]; }

/* The first of specials low .. high, which agree in `depth` bytes and are longer, whose next byte is >= byte. */
static uint32_t special_bound(const struct tokenizer *t, uint32_t low, uint32_t high, size_t depth, int byte)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (special_byte(t, middle, depth) < byte) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* The longest special token that text, at least one byte, begins with; TABLE_NONE when there is none. */
static uint32_t match_special(const struct tokenizer *t, struct bytes text, enum tok_mode mode)
{
    uint32_t low = t->special_start[text.data[0]], high = t->special_start[text.data[0] + 1], best = TABLE_NONE;
    for (size_t depth = 1; low < high; depth++) {
        bool found = false;
        for (; low < high && special_bytes(t, low).size == depth; low++) {
            if (found || !recognised(t, t->specials[low], mode)) continue;
            best = t->specials[low];
            found = true;
        }
        if (low == high || depth == text.size) break;
        int byte = text.data[depth];
        if (special_byte(t, low, depth) == byte && special_byte(t, high - 1, depth) == byte) continue; /* all between agree */
        low = special_bound(t, low, high, depth, byte);
        high = special_bound(t, low, high, depth, byte + 1);
    }
    return best;
}

int tok_find_special(const struct tokenizer *t, struct bytes text)
{
    uint32_t id = text.size ? match_special(t, text, TOK_CHAT) : TABLE_NONE;
    return id != TABLE_NONE && vocab_bytes(&t->vocab, id).size == text.size ? (int)id : -1;
}

/* --- encoding ----------------------------------------------------------------------------------------- */

struct encoder {
    const struct tokenizer *t;
    struct bpe_scratch scratch;
    struct id_sink out;
    uint8_t sentinel[UTF8_MAX];
    size_t sentinel_size; /* 0: none */
    uint8_t *cleaned;     /* [text_size] a segment without sentinels; NULL until one is met */
    size_t text_size;
};

static int encode_text(struct encoder *e, struct bytes text)
{
    for (size_t pos = 0, end; pos < text.size; pos = end) {
        end = e->t->scored ? text.size : pieces_next(text, pos);
        int status = bpe_encode(&e->t->bpe, (struct bytes){text.data + pos, end - pos}, &e->scratch, &e->out);
        if (status) return status;
    }
    return OK;
}

static bool sentinel_at(const struct encoder *e, struct bytes text, size_t pos)
{
    return text.size - pos >= e->sentinel_size && memcmp(text.data + pos, e->sentinel, e->sentinel_size) == 0;
}

static size_t find_sentinel(const struct encoder *e, struct bytes text)
{
    size_t pos = 0;
    while (pos < text.size && !sentinel_at(e, text, pos)) pos++;
    return pos;
}

/* Text between special tokens. */
static int encode_segment(struct encoder *e, struct bytes text)
{
    if (!e->sentinel_size || find_sentinel(e, text) == text.size) return encode_text(e, text);
    if (!e->cleaned) e->cleaned = mem_alloc_raw(e->t->mem, e->text_size);
    if (!e->cleaned) return ERR_MEM_LOAD;
    size_t n = 0;
    for (size_t pos = 0; pos < text.size;) {
        if (sentinel_at(e, text, pos)) pos += e->sentinel_size;
        else e->cleaned[n++] = text.data[pos++];
    }
    return encode_text(e, (struct bytes){e->cleaned, n});
}

static int encode_specials(struct encoder *e, struct bytes text, enum tok_mode mode)
{
    size_t begin = 0, pos = 0;
    while (pos < text.size) {
        uint32_t id = match_special(e->t, (struct bytes){text.data + pos, text.size - pos}, mode);
        if (id == TABLE_NONE) {
            pos++;
            continue;
        }
        int status = encode_segment(e, (struct bytes){text.data + begin, pos - begin});
        if (status) return status;
        id_sink_put(&e->out, id);
        begin = pos += vocab_bytes(&e->t->vocab, id).size;
    }
    return encode_segment(e, (struct bytes){text.data + begin, text.size - begin});
}

int64_t tok_encode(const struct tokenizer *t, struct bytes text, enum tok_mode mode, uint32_t sentinel, int32_t *ids, int64_t cap)
{
    struct encoder e = {
        .t = t, .scratch = {.mem = t->mem}, .out = {.ids = ids, .cap = cap}, .text_size = text.size};
    if (text.size == 0) return 0;
    if (mode == TOK_CHAT && sentinel) e.sentinel_size = utf8_write(sentinel, e.sentinel);
    int status = mode == TOK_PLAIN ? encode_text(&e, text) : encode_specials(&e, text, mode);
    mem_free(t->mem, e.cleaned);
    bpe_scratch_free(&e.scratch);
    return status ? status : e.out.n;
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
