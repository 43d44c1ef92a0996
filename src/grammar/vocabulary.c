/* SPDX-License-Identifier: MIT
 *
 * Tokens are sorted by their bytes, eight at a time where these differ, and written as a tree in one pass.
 */
#include "grammar/vocabulary.h"

#include <string.h>

/* --- the order of tokens ---------------------------------------------------------------------------------------------------- */

struct sorted {
    uint64_t key; /* the first eight bytes, big-endian */
    uint32_t id;
};

static struct bytes bytes_of(const struct vocabulary *v, uint32_t id) { return (struct bytes){v->bytes + v->at[id], v->at[id + 1] - v->at[id]}; }

static bool comes_first(const struct vocabulary *v, const struct sorted *a, const struct sorted *b)
{
    if (a->key != b->key) return a->key < b->key;
    int order = bytes_compare(bytes_of(v, a->id), bytes_of(v, b->id));
    return order ? order < 0 : a->id < b->id;
}

static uint64_t key_of(struct bytes text)
{
    uint64_t key = 0;
    for (size_t i = 0; i < 8; i++) key = key << 8 | (i < text.size ? text.data[i] : 0);
    return key;
}

/* Merges runs of growing length, from one half of the room into the other; returns where the result is. */
static struct sorted *sort(const struct vocabulary *v, struct sorted *from, struct sorted *to, uint32_t n)
{
    for (uint32_t run = 1; run < n; run *= 2) {
        for (uint32_t begin = 0; begin < n; begin += 2 * run) {
            uint32_t a = begin, middle = n - begin < run ? n : begin + run, b = middle, end = n - begin < 2 * run ? n : begin + 2 * run;
            for (uint32_t i = begin; i < end; i++) to[i] = b == end || (a < middle && !comes_first(v, &from[b], &from[a])) ? from[a++] : from[b++];
        }
        struct sorted *held = from;
        from = to;
        to = held;
    }
    return from;
}

/* --- the tree --------------------------------------------------------------------------------------------------------------- */

static uint32_t common(struct bytes a, struct bytes b)
{
    uint32_t n = 0;
    while (n < a.size && n < b.size && a.data[n] == b.data[n]) n++;
    return n;
}

/* A token's bytes below those it shares with the one before; a token of the same bytes is a node of its own beside it. */
static uint32_t first_new(struct bytes before, struct bytes text)
{
    uint32_t shared = common(before, text);
    return shared == text.size ? shared - 1 : shared;
}

/* Writes the tree of some tokens in their order. `open` [longest + 1]: the nodes on the way to the last one. */
static bool build_trie(const struct vocabulary *v, const struct sorted *order, uint32_t n, uint32_t *open, struct trie *out)
{
    uint64_t n_nodes = 0;
    struct bytes before = {NULL, 0};
    for (uint32_t i = 0; i < n; i++) {
        struct bytes text = bytes_of(v, order[i].id);
        n_nodes += text.size - first_new(before, text);
        before = text;
    }
    out->n = 0;
    out->nodes = n_nodes < UINT32_MAX ? mem_array(v->mem, n_nodes, sizeof *out->nodes) : NULL;
    if (!out->nodes) return false;
    uint32_t depth = 0;
    before.size = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct bytes text = bytes_of(v, order[i].id);
        uint32_t begin = first_new(before, text);
        while (depth > begin) out->nodes[open[depth--]].skip = out->n;
        while (depth < text.size) {
            uint8_t byte = text.data[depth++];
            open[depth] = out->n;
            out->nodes[out->n++] = (struct trie_node){.token = NO_TOKEN, .depth = (uint16_t)depth, .byte = byte};
        }
        out->nodes[out->n - 1].token = order[i].id;
        before = text;
    }
    while (depth > 0) out->nodes[open[depth--]].skip = out->n;
    return true;
}

/* --- the slice and the tails ------------------------------------------------------------------------------------------------------ */

/* A new row of `width` words in a list that grows; NULL: no memory. */
static uint32_t *add_row(struct vocabulary *v, uint32_t **list, uint32_t *n, uint32_t *room, uint32_t width)
{
    if (*n == *room) {
        uint32_t more = *room ? *room * 2 : 256, *grown = mem_resize(v->mem, *list, (uint64_t)more * width * sizeof *grown);
        if (!grown) return NULL;
        *list = grown;
        *room = more;
    }
    return *list + (size_t)(*n)++ * width;
}

static bool add_inside(struct vocabulary *v, uint32_t token, uint32_t count)
{
    uint32_t bit = 1u << (token & 31), word = token >> 5;
    for (uint32_t c = count; c <= SLICE_COUNTS; c++) v->inside[(size_t)c * v->n_words + word] |= bit;
    v->inside[(size_t)SLICE_COUNTS * v->n_words + word] |= bit;
    if (count < SLICE_COUNTS) return true;
    uint32_t *row = add_row(v, &v->long_ones, &v->n_long, &v->room_long, 2);
    if (row) memcpy(row, (uint32_t[]){token, count}, 2 * sizeof *row);
    return row != NULL;
}

/* The tokens of a node and below it, which leave a string behind so many characters, before the node's byte. */
static bool add_tails(struct vocabulary *v, const struct trie_node *t, uint32_t count)
{
    for (const struct trie_node *n = t, *end = v->all.nodes + t->skip; n < end; n++) {
        if (n->token == NO_TOKEN) continue;
        uint32_t *row = add_row(v, &v->tail_ones, &v->n_tails, &v->room_tails, 3);
        if (!row) return false;
        memcpy(row, (uint32_t[]){n->token, count, t->depth - 1u}, 3 * sizeof *row);
    }
    return true;
}

/* Walks the tree with one character after the other: where one ends the next begins. states, counts [longest + 1] by depth. What no character
 * goes on with leaves the string, unless it stands within a character: nothing that follows a string begins so. */
static bool find_inside(struct vocabulary *v, struct grammar *g, gr_state *states, uint32_t *counts)
{
    gr_state begin = grammar_start(g);
    states[0] = begin;
    counts[0] = 0;
    for (uint32_t i = 0; i < v->all.n;) {
        const struct trie_node *t = &v->all.nodes[i];
        gr_state from = states[t->depth - 1];
        uint32_t to = state_next(g, from, g->class_of[t->byte]), count = counts[t->depth - 1];
        if (!to) return false;
        if (to == NEXT_DEAD) {
            if (from == begin && !add_tails(v, t, count)) return false;
            i = t->skip;
            continue;
        }
        bool ends = grammar_accepts(g, to);
        states[t->depth] = ends ? begin : to;
        counts[t->depth] = count + ends;
        if (t->token != NO_TOKEN && !add_inside(v, t->token, count + 1)) return false;
        i++;
    }
    return true;
}

/* The tails are sorted and become a tree as tokens do: those of a vocabulary that borrows their bytes. */
static bool build_tails(struct vocabulary *v, uint32_t *open)
{
    uint32_t n = v->n_tails, total = 0;
    for (uint32_t i = 0; i < n; i++) total += v->at[v->tail_ones[i * 3] + 1] - v->at[v->tail_ones[i * 3]];
    struct vocabulary tails = {.mem = v->mem, .n = n};
    tails.bytes = mem_alloc_raw(v->mem, total);
    tails.at = mem_array(v->mem, (uint64_t)n + 1, sizeof *tails.at);
    struct sorted *room = mem_array(v->mem, (uint64_t)n * 2, sizeof *room), *order = room;
    bool good = tails.bytes && tails.at && room;
    for (uint32_t i = 0; good && i < n; i++) {
        const uint32_t *row = v->tail_ones + (size_t)i * 3;
        uint32_t size = v->at[row[0] + 1] - v->at[row[0]] - row[2];
        memcpy(tails.bytes + tails.at[i], v->bytes + v->at[row[0]] + row[2], size);
        tails.at[i + 1] = tails.at[i] + size;
        room[i] = (struct sorted){key_of(bytes_of(&tails, i)), i};
    }
    if (good && n) order = sort(&tails, room, room + n, n);
    good = good && build_trie(&tails, order, n, open, &v->tails);
    mem_free(v->mem, tails.bytes);
    mem_free(v->mem, tails.at);
    mem_free(v->mem, room);
    return good;
}

static bool make_slice(struct vocabulary *v, uint32_t *open)
{
    struct grammar *g = grammar_new(v->mem);
    gr_state *states = mem_array(v->mem, (uint64_t)v->longest + 1, sizeof *states);
    v->inside = mem_array(v->mem, (uint64_t)(SLICE_COUNTS + 1) * v->n_words, sizeof *v->inside);
    bool good = g && states && v->inside && grammar_ready(g, gr_class(g, GR_JSON, &(struct gr_range){0, UINT32_MAX}, 1), NULL) == OK;
    good = good && find_inside(v, g, states, open) && build_tails(v, open);
    mem_free(v->mem, states);
    grammar_free(g);
    return good;
}

/* --- the vocabulary --------------------------------------------------------------------------------------------------------- */

static int check_source(const struct vocabulary_source *s, uint64_t *total, struct error *err)
{
    *total = 0;
    if (!s->n || s->n > TOKENS_MOST) return fail(err, ERR_PARAM, "vocabulary", 0, "A vocabulary has 1 to %d tokens.", TOKENS_MOST);
    for (uint32_t i = 0; i < s->n; i++) {
        *total += s->sizes[i];
        if (s->kinds[i] > TOKEN_NEVER || (s->kinds[i] == TOKEN_TEXT && s->sizes[i] > TOKEN_BYTES_MOST))
            return fail(err, ERR_PARAM, "vocabulary", 0, "Token %u is longer than %d bytes, or of no kind.", i, TOKEN_BYTES_MOST);
    }
    return *total < UINT32_MAX ? OK : fail(err, ERR_PARAM, "vocabulary", 0, "The tokens have more than 4 GB.");
}

static bool copy(struct vocabulary *v, const struct vocabulary_source *s, uint64_t total)
{
    v->bytes = mem_alloc_raw(v->mem, total);
    v->at = mem_array(v->mem, (uint64_t)s->n + 1, sizeof *v->at);
    v->kinds = mem_alloc_raw(v->mem, s->n);
    v->ends = mem_array(v->mem, v->n_words, sizeof *v->ends);
    if (!v->bytes || !v->at || !v->kinds || !v->ends) return false;
    if (total) memcpy(v->bytes, s->bytes, (size_t)total);
    memcpy(v->kinds, s->kinds, s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        v->at[i + 1] = v->at[i] + s->sizes[i];
        if (s->kinds[i] == TOKEN_END) v->ends[i >> 5] |= 1u << (i & 31);
        if (s->kinds[i] == TOKEN_TEXT && s->sizes[i] > v->longest) v->longest = s->sizes[i];
    }
    return true;
}

static bool build(struct vocabulary *v)
{
    struct sorted *room = mem_array(v->mem, (uint64_t)v->n * 2, sizeof *room), *order = room;
    uint32_t *open = mem_array(v->mem, (uint64_t)v->longest + 1, sizeof *open), n = 0;
    bool good = room && open;
    for (uint32_t i = 0; good && i < v->n; i++)
        if (v->kinds[i] == TOKEN_TEXT && v->at[i + 1] > v->at[i]) room[n++] = (struct sorted){key_of(bytes_of(v, i)), i};
    for (uint32_t i = 0; i < n; i++) v->begin_with[room[i].key >> 56]++;
    if (good) order = sort(v, room, room + v->n, n);
    good = good && build_trie(v, order, n, open, &v->all) && make_slice(v, open);
    mem_free(v->mem, room);
    mem_free(v->mem, open);
    return good;
}

int vocabulary_new(struct mem *m, const struct vocabulary_source *source, struct vocabulary **out, struct error *err)
{
    uint64_t total;
    int status = check_source(source, &total, err);
    if (status) return status;
    struct vocabulary *v = mem_alloc(m, sizeof *v);
    if (v) *v = (struct vocabulary){.mem = m, .n = source->n, .n_words = (source->n + 31) / 32};
    if (!v || !copy(v, source, total) || !build(v)) {
        vocabulary_free(v);
        return fail(err, ERR_MEM_LOAD, "vocabulary", 0, "There is not enough memory for the tree of the vocabulary.");
    }
    *out = v;
    return OK;
}

void vocabulary_free(struct vocabulary *v)
{
    if (!v) return;
    void *parts[] = {v->bytes, v->at, v->kinds, v->ends, v->all.nodes, v->tails.nodes, v->inside,
                     v->long_ones, v->tail_ones};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) mem_free(v->mem, parts[i]);
    mem_free(v->mem, v);
}
