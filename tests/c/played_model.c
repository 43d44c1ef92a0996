/* SPDX-License-Identifier: MIT
 *
 * The imitated architecture, and the table of families for programs that use it.
 */
#include "played_model.h"

#include "models/model.h"
#include "played.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* size of a layer's state, chosen so that a slot does not end together with a record of a saved conversation */
enum { WORDS = 4000, ROWS_MOST = 4096 };

bool played_states, played_drafts;

static struct expected {
    const int32_t *ids;
    int n;
} expected[64];
static int n_expected;

static const struct batch *batch; /* of the running step */
static uint64_t hashes[ROWS_MOST]; /* hashes of its rows, after the layers computed so far */

/* Data for the backend's work: rows of a run in a layer, or rows of logits. */
struct played_rows {
    struct state_run run;
    int layer, vocab, n;
    struct handle logits;
    int32_t ids[ROWS_MOST]; /* [n] tokens of the run, or rows of the batch */
};

static struct played_rows rows;

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 31) * 0x9E3779B97F4A7C15;
    return (x ^ x >> 29) * 0xBF58476D1CE4E5B9;
}

static uint64_t *state_of(const struct backend *b, int slot, int layer)
{
    return (uint64_t *)(void *)cpu_slot((const struct cpu *)b, slot) + (size_t)layer * WORDS;
}

/* Updates a state with an id. Every word of the state affects later updates sooner or later. */
static void read_id(uint64_t *state, uint64_t id)
{
    uint64_t *word = &state[1 + state[0] % (WORDS - 1)];
    *word = mix(*word ^ id);
    state[0] = mix(state[0] + *word + id);
}

static void read_rows(struct backend *b, const void *context)
{
    const struct played_rows *r = context;
    uint64_t *to = state_of(b, r->run.to, r->layer);
    if (r->run.from == r->run.to || r->run.n < 1) abort();
    if (r->run.from >= 0) memcpy(to, state_of(b, r->run.from, r->layer), WORDS * sizeof *to);
    else memset(to, 0, WORDS * sizeof *to);
    for (int i = 0; i < r->n; i++) {
        uint64_t *hash = &hashes[r->run.first + i];
        read_id(to, (uint64_t)r->ids[i] + 1000 * (uint64_t)r->layer);
        *hash = mix((r->layer ? *hash : 0) ^ to[0]);
    }
}

static void add_to_logits(struct backend *b, const void *context)
{
    const struct played_rows *r = context;
    float *logits = cpu_at((struct cpu *)b, r->logits);
    size_t vocab = (size_t)r->vocab;
    for (int i = 0; i < r->n; i++) {
        uint64_t hash = hashes[r->ids[i]];
        for (int k = 0; k < 4; k++, hash = mix(hash + 1))
            logits[(size_t)i * vocab + hash % vocab] += (float)(hash >> 40 & 0xFFFF) / 8192;
    }
}

/* Does work with the first rows.n of `rows`. */
static void do_rows(const struct model *m, played_work *work)
{
    played_do(m->bind.be, work, &rows, offsetof(struct played_rows, ids) + (size_t)rows.n * sizeof *rows.ids);
}

/* --- the architecture: what differs from Qwen3 ------------------------------------------------------------------- */

static struct cache_shape played_cache(const struct model *m, int n_pages, int n_slots, enum kv_type type)
{
    struct cache_shape shape = model_qwen3.cache(m, n_pages, n_slots, type);
    shape.state = (struct state_shape){.bytes = (uint64_t)m->config.n_layers * WORDS * sizeof(uint64_t), .n_slots = n_slots};
    return shape;
}

/* Checks that runs cover all rows, in their order. */
static void played_begin(struct model *m, const struct batch *b)
{
    int at = 0;
    for (int i = 0; i < b->n_runs; at += b->runs[i++].n)
        if (b->runs[i].first != at || (b->runs[i].from < 0) != (b->kv[at].index == 0)) abort();
    if (at != b->n || b->n > ROWS_MOST) abort();
    batch = b;
    model_qwen3.begin(m, b);
}

static void played_layer(struct model *m, const struct batch *b, int layer)
{
    for (int i = 0; i < b->n_runs; i++) {
        rows.run = b->runs[i];
        rows.layer = layer;
        rows.n = rows.run.n;
        memcpy(rows.ids, b->tokens + rows.run.first, (size_t)rows.n * sizeof *rows.ids);
        do_rows(m, read_rows);
    }
    model_qwen3.layer(m, b, layer);
}

static struct outputs played_end(const struct model *m)
{
    struct outputs made = model_qwen3.end(m);
    rows.vocab = m->config.vocab_size;
    rows.logits = made.logits;
    rows.n = batch ? batch->n_logits : 0;
    if (rows.n) memcpy(rows.ids, batch->out, (size_t)rows.n * sizeof *rows.ids);
    do_rows(m, add_to_logits);
    return made;
}

/* --- drafts --------------------------------------------------------------------------------------------------------
 */

void played_expect(const int32_t *ids, int n) { expected[n_expected++] = (struct expected){ids, n}; }
void played_forget(void) { n_expected = 0; }

/* The token after position `at`, whose token is `id`, in one of the conversations; 0: none. */
static int32_t expected_after(int32_t id, int at)
{
    for (const struct expected *x = expected; x < expected + n_expected; x++)
        if (at + 1 < x->n && x->ids[at] == id) return x->ids[at + 1];
    return 0;
}

static void played_draft(struct model *m, const struct batch *b, int32_t *drafts)
{
    static uint64_t random;
    (void)m;
    for (int i = 0; i < b->n; i++) {
        random = mix(random + 1);
        drafts[i] = expected_after(b->tokens[i], b->kv[i].index) + (random % 3 == 0);
    }
}

static struct model_ops played[FAMILIES];

static int played_open(const struct architecture *a, struct mem *mem, struct backend *be, const struct checkpoint *ck,
                       const char *prefix, struct model **out, struct error *err)
{
    struct model_ops *ops = &played[a->family];
    *ops = a->family == FAMILY_QWEN35 ? model_qwen35 : model_qwen3;
    int status = ops->open(a, mem, be, ck, prefix, out, err);
    if (status) return status;
    if (played_states) {
        ops->cache = played_cache;
        ops->begin = played_begin;
        ops->layer = played_layer;
        ops->end = played_end;
    }
    if (played_drafts) {
        ops->draft = played_draft;
        (*out)->config.drafts |= a->family == FAMILY_QWEN3;
    }
    if (played_states || played_drafts) (*out)->ops = ops;
    return OK;
}

static struct model_ops opens = {.open = played_open};

const struct model_ops *const families[FAMILIES] = {[FAMILY_QWEN3] = &opens, [FAMILY_QWEN35] = &opens};
