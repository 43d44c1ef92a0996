/* SPDX-License-Identifier: MIT
 *
 * The profile's table of costs, and the table as JSON.
 *
 * Costs are stored in cells [phase][layer][operation]; the last layer stands for everything outside the layers. Calls
 * with matrices of the same shape and type are one operation; a new operation takes the next slot, which gets its name
 * then.
 */
#include "compute/profile.h"

#include "base/json.h"
#include "compute/backend.h"

#include <stdio.h>
#include <string.h>

/* Qwen3 has some 20 operations; the last slot collects any overflow */
enum { SLOTS = 48, NAME_SIZE = 64, TYPES_SIZE = 40 };

struct slot {
    const char *op;
    uint32_t layouts; /* of the matrices, one bit each */
    int rows, cols;   /* 0: none */
    char name[NAME_SIZE];
};

struct profile {
    struct watcher watcher;
    struct mem *mem;
    struct pool *pool;
    struct kv_shape kv;
    int n_layers;
    struct slot slots[SLOTS];
    int n_slots;
    struct profile_cost *cells; /* [PROFILE_PHASES][n_layers + 1][SLOTS] */
    double tokens[PROFILE_PHASES], drafts[PROFILE_PHASES];
    enum profile_phase phase;
    int layer;                  /* n_layers: outside */
    char *json;
};

/* --- one call ------------------------------------------------------------------------------------------ */

static bool same_slot(const struct slot *a, const struct slot *b)
{
    return a->op == b->op && a->layouts == b->layouts && a->rows == b->rows && a->cols == b->cols;
}

/* Finds the slot of this key, or takes a new one if there is room. */
static int find_slot(struct profile *p, const struct slot *key)
{
    int i = 0;
    while (i < p->n_slots && !same_slot(&p->slots[i], key)) i++;
    if (i == p->n_slots && i < SLOTS) p->slots[p->n_slots++] = *key;
    return min_int(i, SLOTS - 1);
}

static struct profile_cost *cell(const struct profile *p, int phase, int layer, int slot)
{
    return p->cells + (size_t)((phase * (p->n_layers + 1) + layer) * SLOTS + slot);
}

/* --- one list ----------------------------------------------------------------------------------------------- */

static struct op_facts facts_of(const struct profile *p, const struct backend *b, const struct op *op)
{
    struct op_facts f = {.kv = p->kv};
    if (op->w) *f.weights = b->ops->weight_facts(b, op->w);
    for (int i = 0; i < OP_PRODUCTS && op->products[i].w; i++)
        f.weights[i] = b->ops->weight_facts(b, op->products[i].w);
    return f;
}

/* Adds up the rows of an operation's weights, and writes their types to `types`, as in " Q4_K+Q6_K". */
static void add_weights(struct slot *key, const struct op *op, const struct op_facts *f, char types[TYPES_SIZE])
{
    for (int i = 0; i < OP_PRODUCTS && op->products[i].w; i++) {
        const struct weight_facts *w = &f->weights[i];
        size_t used = strlen(types);
        if (!(key->layouts >> w->type->layout & 1))
            snprintf(types + used, TYPES_SIZE - used, "%s%s", used ? "+" : " ", w->type->name);
        key->layouts |= 1u << w->type->layout;
        key->rows += w->rows / (op->route ? op->route->n_experts : 1);
        key->cols = w->cols;
    }
}

/* The key of an operation, and its name. */
static struct slot slot_of(const struct op *op, const struct op_facts *f)
{
    struct slot key = {.op = op_rows[op->kind].name};
    char types[TYPES_SIZE] = "";
    switch (op_rows[op->kind].naming) {
    case BY_NAME: break;
    case BY_DIM: key.cols = op->dim; break;
    case BY_HEADS: key.rows = op->heads, key.cols = op->dim / op->heads; break;
    case BY_WEIGHTS: add_weights(&key, op, f, types); break;
    }
    if (key.rows) snprintf(key.name, sizeof key.name, "%s%s [%d, %d]", key.op, types, key.rows, key.cols);
    else snprintf(key.name, sizeof key.name, key.cols ? "%s [%d]" : "%s", key.op, key.cols);
    return key;
}

static void add_cost(struct profile *p, const struct backend *b, const struct op *op, double ms, uint32_t barriers)
{
    const struct op_facts facts = facts_of(p, b, op);
    const struct slot key = slot_of(op, &facts);
    const struct op_cost cost = op_rows[op->kind].cost(op, &facts);
    struct profile_cost *c = cell(p, (int)p->phase, p->layer, find_slot(p, &key));
    c->calls++;
    c->ms += ms;
    c->macs += cost.macs;
    c->bytes += cost.bytes;
    c->barriers += barriers;
}

static void run(struct watcher *w, struct backend *b, const struct op *ops, int n)
{
    struct profile *p = (struct profile *)w;
    for (const struct op *op = ops; op < ops + n; op++) {
        uint32_t jobs = pool_jobs(p->pool);
        double start = now_ms();
        b->ops->run(b, op, 1);
        add_cost(p, b, op, now_ms() - start, pool_jobs(p->pool) - jobs);
    }
}

/* --- life -------------------------------------------------------------------------------------------------- */

static uint64_t cell_count(int n_layers)
{
    return (uint64_t)PROFILE_PHASES * (uint64_t)(n_layers + 1) * SLOTS;
}

uint64_t profile_cost_bytes(const struct profile *p, int n_layers)
{
    return p ? mem_cost(cell_count(n_layers) * sizeof *p->cells) : 0;
}

int profile_reserve(struct profile *p, int n_layers, const struct kv_shape *kv)
{
    if (!p) return OK;
    mem_free(p->mem, p->cells);
    p->kv = *kv;
    p->n_layers = n_layers;
    p->cells = mem_array(p->mem, cell_count(n_layers), sizeof *p->cells);
    return p->cells ? OK : ERR_MEM_LOAD;
}

struct profile *profile_new(struct mem *m, struct pool *pool)
{
    struct profile *p = mem_alloc(m, sizeof *p);
    if (!p) return NULL;
    p->watcher.run = run;
    p->mem = m;
    p->pool = pool;
    return p;
}

void profile_watch(struct profile *p, struct backend *b) { b->watcher = &p->watcher; }

void profile_free(struct profile *p)
{
    if (!p) return;
    mem_free(p->mem, p->cells);
    mem_free(p->mem, p->json);
    mem_free(p->mem, p);
}

/* --- where the step is ---------------------------------------------------------------------------------------- */

void profile_step(struct profile *p, enum profile_phase phase, int rows, int drafts)
{
    if (!p) return;
    p->phase = phase;
    p->tokens[phase] += rows;
    p->drafts[phase] += drafts;
    profile_layer(p, PROFILE_OUTSIDE);
}

void profile_layer(struct profile *p, int layer)
{
    if (p) p->layer = layer == PROFILE_OUTSIDE ? p->n_layers : layer;
}

/* --- the costs -------------------------------------------------------------------------------------------------- */

void profile_reset(struct profile *p)
{
    p->n_slots = 0;
    memset(p->tokens, 0, sizeof p->tokens);
    memset(p->drafts, 0, sizeof p->drafts);
    if (p->cells) memset(p->cells, 0, (size_t)cell_count(p->n_layers) * sizeof *p->cells);
}

const char *profile_operation(const struct profile *p, int i) { return i < p->n_slots ? p->slots[i].name : NULL; }

double profile_tokens(const struct profile *p, enum profile_phase phase) { return p->tokens[phase]; }

double profile_drafts(const struct profile *p, enum profile_phase phase) { return p->drafts[phase]; }

struct profile_cost profile_cost(const struct profile *p, enum profile_phase phase, int operation, int layer)
{
    struct profile_cost sum = {0};
    int outside = p->n_layers;
    if (layer >= outside || operation >= p->n_slots) return sum;
    if (layer == PROFILE_OUTSIDE) layer = outside;
    for (int l = 0; l <= outside; l++)
        for (int i = 0; i < p->n_slots; i++) {
            if ((layer != PROFILE_ALL && l != layer) || (operation != PROFILE_ALL && i != operation)) continue;
            const struct profile_cost *c = cell(p, (int)phase, l, i);
            sum.calls += c->calls;
            sum.ms += c->ms;
            sum.macs += c->macs;
            sum.bytes += c->bytes;
            sum.barriers += c->barriers;
        }
    return sum;
}

double profile_barrier_us(const struct profile *p) { return pool_barrier_us(p->pool); }
int profile_threads(const struct profile *p) { return pool_working(p->pool); }

/* --- JSON ------------------------------------------------------------------------------------------------------ */

static void write_cost(struct json *j, const struct profile_cost *c)
{
    json_number(j, "calls", c->calls);
    json_number(j, "ms", c->ms);
    json_number(j, "macs", c->macs);
    json_number(j, "bytes", c->bytes);
    json_number(j, "barriers", c->barriers);
}

static void write_operation(struct json *j, const struct profile *p, enum profile_phase phase, int i)
{
    struct profile_cost all = profile_cost(p, phase, i, PROFILE_ALL);
    if (all.calls == 0) return;
    json_object(j, NULL);
    json_string(j, "name", p->slots[i].name);
    write_cost(j, &all);
    json_array(j, "layerMs");
    for (int l = 0; l < p->n_layers; l++) json_number(j, NULL, profile_cost(p, phase, i, l).ms);
    json_array_end(j);
    json_number(j, "outsideMs", profile_cost(p, phase, i, PROFILE_OUTSIDE).ms);
    json_end(j);
}

static void write_phase(struct json *j, const struct profile *p, const char *key, enum profile_phase phase)
{
    struct profile_cost all = profile_cost(p, phase, PROFILE_ALL, PROFILE_ALL);
    json_object(j, key);
    json_number(j, "tokens", p->tokens[phase]);
    json_number(j, "drafts", p->drafts[phase]);
    write_cost(j, &all);
    json_array(j, "operations");
    for (int i = 0; i < p->n_slots; i++) write_operation(j, p, phase, i);
    json_array_end(j);
    json_end(j);
}

const char *profile_json(struct profile *p)
{
    struct json j = {.mem = p->mem};
    json_object(&j, NULL);
    json_number(&j, "threads", profile_threads(p));
    json_number(&j, "barrierUs", profile_barrier_us(p));
    write_phase(&j, p, "prefill", PROFILE_PREFILL);
    write_phase(&j, p, "decode", PROFILE_DECODE);
    write_phase(&j, p, "mixed", PROFILE_MIXED);
    write_phase(&j, p, "vision", PROFILE_VISION);
    json_end(&j);
    mem_free(p->mem, p->json);
    p->json = j.text;
    return j.failed ? NULL : p->json;
}
