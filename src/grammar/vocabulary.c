/* SPDX-License-Identifier: MIT
 *
 * Tokens are sorted by their bytes, first by a key of eight bytes, and written as a tree in one pass. All work is done
 * in parts of some milliseconds.
 */
#include "grammar/vocabulary.h"

#include <string.h>

enum { PART = 1 << 14 /* tokens, or nodes, per part */ };

enum progress { NO_MEMORY, ON_ITS_WAY, THERE };

/* --- the order of tokens --------------------------------------------------------------------------------------- */

struct sorted {
    uint64_t key; /* the first eight bytes, big-endian */
    uint32_t id;
};

static struct bytes bytes_of(const struct vocabulary *v, uint32_t id)
{
    return (struct bytes){v->bytes + v->at[id], v->at[id + 1] - v->at[id]};
}

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

/* The state of sorting n tokens in `from`: runs of this length are sorted; 0: runs of one token. */
struct sorting {
    struct sorted *from, *to;
    uint32_t n, run;
};

/* Merges pairs of runs from one half of the room into the other. Returns false if all tokens are sorted. */
static bool sort_on(const struct vocabulary *v, struct sorting *s)
{
    struct sorted *from = s->from, *to = s->to;
    uint32_t n = s->n, run = s->run ? s->run : 1;
    if (run >= n) return false;
    for (uint32_t begin = 0; begin < n; begin += 2 * run) {
        uint32_t a = begin, middle = n - begin < run ? n : begin + run, b = middle,
                 end = n - begin < 2 * run ? n : begin + 2 * run;
        for (uint32_t i = begin; i < end; i++)
            to[i] = b == end || (a < middle && !comes_first(v, &from[b], &from[a])) ? from[a++] : from[b++];
    }
    *s = (struct sorting){to, from, n, 2 * run};
    return true;
}

/* --- the tree -------------------------------------------------------------------------------------------------- */

static uint32_t common(struct bytes a, struct bytes b)
{
    uint32_t n = 0;
    while (n < a.size && n < b.size && a.data[n] == b.data[n]) n++;
    return n;
}

/* Number of bytes that a token shares with the one before it. A token of the same bytes gets a node of its own beside
 * it. */
static uint32_t first_new(struct bytes before, struct bytes text)
{
    uint32_t shared = common(before, text);
    return shared == text.size ? shared - 1 : shared;
}

/* The unfinished tree of n sorted tokens. */
struct growing {
    const struct sorted *order;
    uint32_t n, at;
    uint64_t n_nodes;
    struct bytes before;
    uint32_t *open;      /* [longest + 1]: the nodes on the path to the last one */
    uint32_t depth;
};

static uint32_t end_of_part(uint32_t at, uint32_t n) { return n - at < PART ? n : at + PART; }

static enum progress count_nodes(const struct vocabulary *v, struct growing *w, struct trie *out)
{
    for (uint32_t end = end_of_part(w->at, w->n); w->at < end; w->at++) {
        struct bytes text = bytes_of(v, w->order[w->at].id);
        w->n_nodes += text.size - first_new(w->before, text);
        w->before = text;
    }
    if (w->at < w->n) return ON_ITS_WAY;
    out->n = w->at = w->depth = 0;
    w->before.size = 0;
    out->nodes = w->n_nodes < UINT32_MAX ? mem_array(v->mem, w->n_nodes, sizeof *out->nodes) : NULL;
    return out->nodes ? THERE : NO_MEMORY;
}

static void write_token(struct growing *w, struct trie *out, struct bytes text, uint32_t id)
{
    uint32_t begin = first_new(w->before, text);
    while (w->depth > begin) out->nodes[w->open[w->depth--]].skip = out->n;
    while (w->depth < text.size) {
        uint8_t byte = text.data[w->depth++];
        w->open[w->depth] = out->n;
        out->nodes[out->n++] = (struct trie_node){.token = NO_TOKEN, .depth = (uint16_t)w->depth, .byte = byte};
    }
    out->nodes[out->n - 1].token = id;
    w->before = text;
}

static enum progress write_nodes(const struct vocabulary *v, struct growing *w, struct trie *out)
{
    for (uint32_t end = end_of_part(w->at, w->n); w->at < end; w->at++)
        write_token(w, out, bytes_of(v, w->order[w->at].id), w->order[w->at].id);
    if (w->at < w->n) return ON_ITS_WAY;
    while (w->depth > 0) out->nodes[w->open[w->depth--]].skip = out->n;
    return THERE;
}

/* State of an unfinished vocabulary. */
struct making {
    uint32_t part;              /* index in parts_of_making */
    struct sorted *room;        /* [2 * n] */
    struct sorting sorting;
    struct growing tree;
    struct grammar *character;  /* grammar of one character in a JSON string */
    gr_state *states;           /* [longest + 1] of that grammar, by depth; tree.open holds the counts of characters */
    uint32_t at;                /* current node of the tree */
};

/* --- the slice and the tails ----------------------------------------------------------------------------------- */

/* Adds a row of `width` words to a growing list and returns it; NULL: no memory. */
static uint32_t *add_row(struct vocabulary *v, uint32_t **list, uint32_t *n, uint32_t *room, uint32_t width)
{
    if (*n == *room) {
        uint32_t more = *room ? *room * 2 : 256,
                 *grown = mem_resize(v->mem, *list, (uint64_t)more * width * sizeof *grown);
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

/* Adds the tokens of a node's subtree. They leave a string after `count` characters, before the node's byte. */
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

/* Walks the tree with one character after another. A byte that no character begins with leaves the string. Inside a
 * character such a byte makes the token impossible: no text after a string begins so. */
static enum progress find_inside(struct vocabulary *v, struct making *m)
{
    gr_state begin = grammar_start(m->character), *states = m->states;
    uint32_t *counts = m->tree.open;
    states[0] = begin;
    counts[0] = 0;
    for (uint32_t end = end_of_part(m->at, v->all.n); m->at < end;) {
        const struct trie_node *t = &v->all.nodes[m->at];
        gr_state from = states[t->depth - 1];
        uint32_t to = state_next(m->character, from, m->character->class_of[t->byte]), count = counts[t->depth - 1];
        if (!to) return NO_MEMORY;
        if (to == NEXT_DEAD) {
            if (from == begin && !add_tails(v, t, count)) return NO_MEMORY;
            m->at = t->skip;
            continue;
        }
        bool ends = grammar_accepts(m->character, to);
        states[t->depth] = ends ? begin : to;
        counts[t->depth] = count + ends;
        if (t->token != NO_TOKEN && !add_inside(v, t->token, count + 1)) return NO_MEMORY;
        m->at++;
    }
    return m->at < v->all.n ? ON_ITS_WAY : THERE;
}

/* Sorts the tails and makes a tree of them, as for tokens, in a temporary vocabulary. There are few. */
static enum progress build_tails(struct vocabulary *v, struct making *m)
{
    uint32_t n = v->n_tails, total = 0;
    for (uint32_t i = 0; i < n; i++) total += v->at[v->tail_ones[i * 3] + 1] - v->at[v->tail_ones[i * 3]];
    struct vocabulary tails = {.mem = v->mem, .n = n};
    tails.bytes = mem_alloc_raw(v->mem, total);
    tails.at = mem_array(v->mem, (uint64_t)n + 1, sizeof *tails.at);
    struct sorted *room = mem_array(v->mem, (uint64_t)n * 2, sizeof *room);
    bool good = tails.bytes && tails.at && room;
    for (uint32_t i = 0; good && i < n; i++) {
        const uint32_t *row = v->tail_ones + (size_t)i * 3;
        uint32_t size = v->at[row[0] + 1] - v->at[row[0]] - row[2];
        memcpy(tails.bytes + tails.at[i], v->bytes + v->at[row[0]] + row[2], size);
        tails.at[i + 1] = tails.at[i] + size;
        room[i] = (struct sorted){key_of(bytes_of(&tails, i)), i};
    }
    struct sorting sorting = {room, room + n, n, 0};
    while (good && sort_on(&tails, &sorting)) {}
    struct growing tree = {.order = sorting.from, .n = n, .open = m->tree.open};
    enum progress progress = good ? ON_ITS_WAY : NO_MEMORY;
    while (progress == ON_ITS_WAY) progress = count_nodes(&tails, &tree, &v->tails);
    if (progress == THERE) progress = ON_ITS_WAY;
    while (progress == ON_ITS_WAY) progress = write_nodes(&tails, &tree, &v->tails);
    mem_free(v->mem, tails.bytes);
    mem_free(v->mem, tails.at);
    mem_free(v->mem, room);
    return progress;
}

/* --- the vocabulary -------------------------------------------------------------------------------------------- */

static int check_source(const struct vocabulary_source *s, uint64_t *total, struct error *err)
{
    *total = 0;
    if (!s->n || s->n > TOKENS_MOST)
        return fail(err, ERR_PARAM, "vocabulary", 0, "A vocabulary has 1 to %d tokens.", TOKENS_MOST);
    for (uint32_t i = 0; i < s->n; i++) {
        *total += s->sizes[i];
        if (s->kinds[i] > TOKEN_NEVER || (s->kinds[i] == TOKEN_TEXT && s->sizes[i] > TOKEN_BYTES_MOST))
            return fail(err, ERR_PARAM, "vocabulary", 0, "Token %u is longer than %d bytes, or has no kind.", i,
                        TOKEN_BYTES_MOST);
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

/* --- in parts -------------------------------------------------------------------------------------------------- */

static enum progress gather_tokens(struct vocabulary *v, struct making *m)
{
    uint32_t n = 0;
    m->room = mem_array(v->mem, (uint64_t)v->n * 2, sizeof *m->room);
    m->tree.open = mem_array(v->mem, (uint64_t)v->longest + 1, sizeof *m->tree.open);
    if (!m->room || !m->tree.open) return NO_MEMORY;
    for (uint32_t i = 0; i < v->n; i++)
        if (v->kinds[i] == TOKEN_TEXT && v->at[i + 1] > v->at[i])
            m->room[n++] = (struct sorted){key_of(bytes_of(v, i)), i};
    for (uint32_t i = 0; i < n; i++) v->begin_with[m->room[i].key >> 56]++;
    m->sorting = (struct sorting){m->room, m->room + v->n, n, 0};
    return THERE;
}

static enum progress sort_tokens(struct vocabulary *v, struct making *m)
{
    if (sort_on(v, &m->sorting)) return ON_ITS_WAY;
    m->tree.order = m->sorting.from;
    m->tree.n = m->sorting.n;
    return THERE;
}

static enum progress count_tree(struct vocabulary *v, struct making *m) { return count_nodes(v, &m->tree, &v->all); }
static enum progress write_tree(struct vocabulary *v, struct making *m) { return write_nodes(v, &m->tree, &v->all); }

static enum progress open_slice(struct vocabulary *v, struct making *m)
{
    m->character = grammar_new(v->mem);
    m->states = mem_array(v->mem, (uint64_t)v->longest + 1, sizeof *m->states);
    v->inside = mem_array(v->mem, (uint64_t)(SLICE_COUNTS + 1) * v->n_words, sizeof *v->inside);
    if (!m->character || !m->states || !v->inside) return NO_MEMORY;
    return grammar_ready(m->character, gr_class(m->character, GR_JSON, &(struct gr_range){0, UINT32_MAX}, 1), NULL)
               ? NO_MEMORY
               : THERE;
}

typedef enum progress part_fn(struct vocabulary *v, struct making *m);

static part_fn *const parts_of_making[] = {gather_tokens, sort_tokens, count_tree, write_tree,
                                           open_slice,    find_inside, build_tails};

static void free_making(struct vocabulary *v)
{
    struct making *m = v->making;
    if (!m) return;
    grammar_free(m->character);
    mem_free(v->mem, m->states);
    mem_free(v->mem, m->room);
    mem_free(v->mem, m->tree.open);
    mem_free(v->mem, m);
    v->making = NULL;
}

static int fail_memory(struct error *err)
{
    return fail(err, ERR_MEM_LOAD, "vocabulary", 0, "There is not enough memory for the tree of the vocabulary.");
}

int vocabulary_begin(struct mem *m, const struct vocabulary_source *source, struct vocabulary **out, struct error *err)
{
    uint64_t total;
    int status = check_source(source, &total, err);
    if (status) return status;
    struct vocabulary *v = mem_alloc(m, sizeof *v);
    if (v)
        *v = (struct vocabulary){
            .mem = m, .n = source->n, .n_words = (source->n + 31) / 32, .making = mem_alloc(m, sizeof *v->making)};
    if (!v || !v->making || !copy(v, source, total)) {
        vocabulary_free(v);
        return fail_memory(err);
    }
    *out = v;
    return OK;
}

int vocabulary_go_on(struct vocabulary *v, struct error *err)
{
    struct making *m = v->making;
    if (!m) return OK;
    enum progress progress = parts_of_making[m->part](v, m);
    if (progress == NO_MEMORY) return fail_memory(err);
    if (progress == THERE && ++m->part == sizeof parts_of_making / sizeof *parts_of_making) free_making(v);
    return v->making ? 1 : OK;
}

int vocabulary_new(struct mem *m, const struct vocabulary_source *source, struct vocabulary **out, struct error *err)
{
    struct vocabulary *v = NULL;
    int status = vocabulary_begin(m, source, &v, err);
    if (status) return status;
    do status = vocabulary_go_on(v, err);
    while (status == 1);
    if (status) vocabulary_free(v);
    else *out = v;
    return status;
}

void vocabulary_free(struct vocabulary *v)
{
    if (!v) return;
    free_making(v);
    void *parts[] = {v->bytes, v->at, v->kinds, v->ends, v->all.nodes, v->tails.nodes, v->inside,
                     v->long_ones, v->tail_ones};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) mem_free(v->mem, parts[i]);
    mem_free(v->mem, v);
}
