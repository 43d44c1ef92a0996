/* SPDX-License-Identifier: MIT
 *
 * The imitated architecture, and the table of families for programs that use it.
 */
#include "played_model.h"

#include "compute/cpu/cpu.h"
#include "models/model.h"

#include <stdlib.h>
#include <string.h>

/* size of a layer's state, chosen so that a slot does not end together with a record of a saved conversation */
enum { WORDS = 4000, ROWS_MOST = 4096 };

bool played_states;

static const struct batch *batch; /* of the running step */
static uint64_t hashes[ROWS_MOST]; /* of its rows, after the layers computed so far */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 31) * 0x9E3779B97F4A7C15;
    return (x ^ x >> 29) * 0xBF58476D1CE4E5B9;
}

static uint64_t *state_of(const struct model *m, int slot, int layer)
{
    return (uint64_t *)(void *)cpu_slot((const struct cpu *)m->bind.be, slot) + (size_t)layer * WORDS;
}

/* Every word is read again sooner or later. */
static void read_id(uint64_t *state, uint64_t id)
{
    uint64_t *word = &state[1 + state[0] % (WORDS - 1)];
    *word = mix(*word ^ id);
    state[0] = mix(state[0] + *word + id);
}

static void run_rows(const struct model *m, const struct state_run *run, int layer)
{
    uint64_t *to = state_of(m, run->to, layer);
    if (run->from == run->to || run->n < 1) abort();
    if (run->from >= 0) memcpy(to, state_of(m, run->from, layer), WORDS * sizeof *to);
    else memset(to, 0, WORDS * sizeof *to);
    for (int i = run->first; i < run->first + run->n; i++) {
        read_id(to, (uint64_t)batch->tokens[i] + 1000 * (uint64_t)layer);
        hashes[i] = mix(hashes[i] ^ to[0]);
    }
}

/* --- the architecture: what differs from Qwen3 ------------------------------------------------------------------- */

static struct cache_shape played_cache(const struct model *m, int n_pages, int n_slots, enum kv_type type)
{
    struct cache_shape shape = model_qwen3.cache(m, n_pages, n_slots, type);
    shape.state = (struct state_shape){(uint64_t)m->config.n_layers * WORDS * sizeof(uint64_t), n_slots};
    return shape;
}

/* Runs cover all rows, in their order. */
static void played_begin(struct model *m, const struct batch *b)
{
    int at = 0;
    for (int i = 0; i < b->n_runs; at += b->runs[i++].n)
        if (b->runs[i].first != at || (b->runs[i].from < 0) != (b->kv[at].index == 0)) abort();
    if (at != b->n || b->n > ROWS_MOST) abort();
    batch = b;
    memset(hashes, 0, sizeof hashes);
    model_qwen3.begin(m, b);
}

static void played_layer(struct model *m, const struct batch *b, int layer)
{
    for (int i = 0; i < b->n_runs; i++) run_rows(m, &b->runs[i], layer);
    model_qwen3.layer(m, b, layer);
}

static struct outputs played_end(const struct model *m)
{
    struct outputs made = model_qwen3.end(m);
    float *logits = (float *)(uintptr_t)m->bind.be->ops->result(m->bind.be, made.logits);
    size_t vocab = (size_t)m->config.vocab_size;
    for (int i = 0; batch && i < batch->n_logits; i++) {
        uint64_t hash = hashes[batch->out[i]];
        for (int k = 0; k < 4; k++, hash = mix(hash + 1))
            logits[(size_t)i * vocab + hash % vocab] += (float)(hash >> 40 & 0xFFFF) / 8192;
    }
    return made;
}

static struct model_ops played;

static int played_open(const struct architecture *a, struct mem *mem, struct backend *be, const struct checkpoint *ck,
                       const char *prefix, struct model **out, struct error *err)
{
    int status = model_qwen3.open(a, mem, be, ck, prefix, out, err);
    if (status || !played_states) return status;
    played = model_qwen3;
    played.cache = played_cache;
    played.begin = played_begin;
    played.layer = played_layer;
    played.end = played_end;
    (*out)->ops = &played;
    return OK;
}

static struct model_ops opens = {.open = played_open};

const struct model_ops *const families[FAMILIES] = {[FAMILY_QWEN3] = &opens};
