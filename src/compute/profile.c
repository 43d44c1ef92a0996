/* SPDX-License-Identifier: MIT
 *
 * The profile's backend, its table of costs, and the table as JSON.
 *
 * Costs are kept in cells [phase][layer][operation], the last layer standing for what is outside the layers. An operation
 * is what is called with matrices of one shape and type; a new one gets the next slot, and its name is written then.
 */
#include "compute/profile.h"

#include "base/json.h"
#include "compute/backend.h"

#include <stdio.h>
#include <string.h>

enum { SLOTS = 48, NAME_SIZE = 64 }; /* Qwen3 has some 20 operations; the last slot takes what is too much */

struct slot {
    const char *op;
    uint32_t layouts; /* of the matrices, a bit each */
    int rows, cols;   /* 0: none */
    char name[NAME_SIZE];
};

struct profile {
    struct backend base;
    struct backend_ops ops;     /* base's: those that the inner one leaves out are left out here */
    struct backend *inner;
    struct mem *mem;
    struct pool *pool;
    struct kv_shape kv;
    struct slot slots[SLOTS];
    int n_slots;
    struct profile_cost *cells; /* [PROFILE_PHASES][n_layers + 1][SLOTS] */
    double tokens[PROFILE_PHASES];
    enum profile_phase phase;
    int layer;                  /* n_layers: outside */
    double started;             /* the call at hand: when, and the pool's jobs then */
    uint32_t jobs;
    char *json;
};

static struct profile *profile_of(struct backend *b) { return (struct profile *)b; }

/* --- one call ------------------------------------------------------------------------------------------ */

static void start(struct profile *p)
{
    p->jobs = pool_jobs(p->pool);
    p->started = now_ms();
}

static bool same_slot(const struct slot *a, const struct slot *b)
{
    return a->op == b->op && a->layouts == b->layouts && a->rows == b->rows && a->cols == b->cols;
}

/* The slot of what `key` says, made and named when it is new. */
static int find_slot(struct profile *p, const struct slot *key, const char *types)
{
    int i = 0;
    while (i < p->n_slots && !same_slot(&p->slots[i], key)) i++;
    if (i < p->n_slots || p->n_slots == SLOTS) return min_int(i, SLOTS - 1);
    struct slot *s = &p->slots[p->n_slots++];
    *s = *key;
    if (key->rows) snprintf(s->name, sizeof s->name, "%s%s [%d, %d]", key->op, types, key->rows, key->cols);
    else snprintf(s->name, sizeof s->name, key->cols ? "%s [%d]" : "%s", key->op, key->cols);
    return i;
}

static struct profile_cost *cell(const struct profile *p, int phase, int layer, int slot)
{
    return p->cells + (size_t)((phase * (p->kv.n_layers + 1) + layer) * SLOTS + slot);
}

static void stop(struct profile *p, const struct slot *key, const char *types, double macs, double bytes)
{
    double ms = now_ms() - p->started;
    uint32_t barriers = pool_jobs(p->pool) - p->jobs;
    struct profile_cost *c = cell(p, (int)p->phase, p->layer, find_slot(p, key, types));
    c->calls++;
    c->ms += ms;
    c->macs += macs;
    c->bytes += bytes;
    c->barriers += barriers;
}

/* --- operations: start, the inner one, stop --------------------------------------------------------------- */

static void profile_embed(struct backend *b, float *y, const struct weight *w, const int32_t *ids, int n)
{
    struct profile *p = profile_of(b);
    struct weight_facts facts = p->inner->ops->weight_facts(p->inner, w);
    start(p);
    p->inner->ops->embed(p->inner, y, w, ids, n);
    stop(p, &(struct slot){.op = "embed", .cols = facts.cols}, "", 0, (double)facts.bytes / facts.rows * n);
}

static void profile_features(struct backend *b, float *x, const float *const *features, int from, int n, int dim, bool add)
{
    struct profile *p = profile_of(b);
    start(p);
    p->inner->ops->features(p->inner, x, features, from, n, dim, add);
    stop(p, &(struct slot){.op = "features", .cols = dim}, "", 0, 0);
}

static void profile_pick(struct backend *b, float *y, const float *x, const int32_t *rows, int n, int dim)
{
    struct profile *p = profile_of(b);
    start(p);
    p->inner->ops->pick(p->inner, y, x, rows, n, dim);
    stop(p, &(struct slot){.op = "pick", .cols = dim}, "", 0, 0);
}

static void profile_rmsnorm(struct backend *b, float *y, const float *x, const float *w, int n, int dim, float eps)
{
    struct profile *p = profile_of(b);
    start(p);
    p->inner->ops->rmsnorm(p->inner, y, x, w, n, dim, eps);
    stop(p, &(struct slot){.op = "rmsnorm", .cols = dim}, "", 0, 0);
}

/* The share of a weight that a product reads: all, a part of the rows, or the experts' that have places. */
static double share_read(const struct product *p, int rows, const struct route *r)
{
    int busy = 0;
    for (int e = 0; r && e < r->n_experts; e++) busy += r->first[e + 1] > r->first[e];
    return r ? (double)busy / r->n_experts : p->rows ? (double)p->rows / rows : 1;
}

static void profile_matmul(struct backend *b, const struct product *products, int n_products, const float *x, int n, const struct route *r)
{
    struct profile *p = profile_of(b);
    struct slot key = {.op = r ? "experts" : "matmul"};
    char types[NAME_SIZE] = "";
    double bytes = 0, macs = 0;
    for (int i = 0; i < n_products; i++) {
        struct weight_facts facts = p->inner->ops->weight_facts(p->inner, products[i].w);
        size_t used = strlen(types);
        if (!(key.layouts >> facts.type->layout & 1)) snprintf(types + used, sizeof types - used, "%s%s", i ? "+" : " ", facts.type->name);
        key.layouts |= 1u << facts.type->layout;
        key.rows += facts.rows / (r ? r->n_experts : 1);
        key.cols = facts.cols;
        bytes += (double)facts.bytes * share_read(&products[i], facts.rows, r);
        macs += (double)n * facts.cols * (products[i].rows ? products[i].rows : facts.rows / (r ? r->n_experts : 1));
    }
    start(p);
    p->inner->ops->matmul(p->inner, products, n_products, x, n, r);
    stop(p, &key, types, macs, bytes);
}

static void profile_route(struct backend *b, float *scores, int n, bool renormalise, struct route *r)
{
    struct profile *p = profile_of(b);
    start(p);
    p->inner->ops->route(p->inner, scores, n, renormalise, r);
    stop(p, &(struct slot){.op = "route"}, "", 0, 0);
}

static void profile_gather(struct backend *b, float *y, const float *x, const struct route *r, int n, int dim)
{
    struct profile *p = profile_of(b);
    start(p);
    p->inner->ops->gather(p->inner, y, x, r, n, dim);
    stop(p, &(struct slot){.op = "gather", .cols = dim}, "", 0, 0);
}

static void profile_combine(struct backend *b, float *y, const float *x, const struct route *r, int n, int dim)
{
    struct profile *p = profile_of(b);
    start(p);
    p->inner->ops->combine(p->inner, y, x, r, n, dim);
    stop(p, &(struct slot){.op = "combine", .cols = dim}, "", 0, 0);
}

static void profile_rope(struct backend *b, float *x, const float *cosine, const float *sine, int n, int heads, int head_dim,
                         int rot)
{
    struct profile *p = profile_of(b);
    start(p);
    p->inner->ops->rope(p->inner, x, cosine, sine, n, heads, head_dim, rot);
    stop(p, &(struct slot){.op = "rope", .rows = heads, .cols = head_dim}, "", 0, 0);
}

/* Bytes of one position's keys and values in one layer. */
static double kv_bytes(const struct profile *p)
{
    static const double element[] = {[KV_F16] = 2, [KV_F32] = 4, [KV_Q8] = 1.125};
    return 2.0 * p->kv.n_kv_heads * p->kv.head_dim * element[p->kv.type];
}

static void profile_kv_append(struct backend *b, int layer, const float *k, const float *v, const struct kv_row *rows, int n)
{
    struct profile *p = profile_of(b);
    start(p);
    p->inner->ops->kv_append(p->inner, layer, k, v, rows, n);
    stop(p, &(struct slot){.op = "kv_append"}, "", 0, n * kv_bytes(p));
}

static void profile_attention(struct backend *b, int layer, float *o, const float *q, const struct kv_row *rows, int n)
{
    struct profile *p = profile_of(b);
    double pairs = 0, positions = 0; /* (row, position) that meet; positions read, once for all rows of a sequence */
    for (int i = 0; i < n; i++) {
        pairs += rows[i].index + 1.0;
        if (i + 1 == n || rows[i + 1].pages != rows[i].pages) positions += rows[i].index + 1.0;
    }
    start(p);
    p->inner->ops->attention(p->inner, layer, o, q, rows, n);
    stop(p, &(struct slot){.op = "attention"}, "", pairs * 2 * p->kv.n_heads * p->kv.head_dim, positions * kv_bytes(p));
}

static void profile_swiglu(struct backend *b, float *gate, const float *up, int n, int dim)
{
    struct profile *p = profile_of(b);
    start(p);
    p->inner->ops->swiglu(p->inner, gate, up, n, dim);
    stop(p, &(struct slot){.op = "swiglu", .cols = dim}, "", 0, 0);
}

static void profile_add(struct backend *b, float *x, const float *y, int n, int dim)
{
    struct profile *p = profile_of(b);
    start(p);
    p->inner->ops->add(p->inner, x, y, n, dim);
    stop(p, &(struct slot){.op = "add", .cols = dim}, "", 0, 0);
}

static void profile_layernorm(struct backend *b, float *y, const float *x, const float *w, const float *bias, int n, int dim, float eps)
{
    struct profile *p = profile_of(b);
    start(p);
    p->inner->ops->layernorm(p->inner, y, x, w, bias, n, dim, eps);
    stop(p, &(struct slot){.op = "layernorm", .cols = dim}, "", 0, 0);
}

static void profile_bias(struct backend *b, float *y, const float *bias, int n, int dim)
{
    struct profile *p = profile_of(b);
    start(p);
    p->inner->ops->bias(p->inner, y, bias, n, dim);
    stop(p, &(struct slot){.op = "bias", .cols = dim}, "", 0, 0);
}

static void profile_gelu(struct backend *b, float *x, enum gelu kind, int n, int dim)
{
    static const char *const names[GELU_KINDS] = {[GELU_TANH] = "gelu", [GELU_ERF] = "gelu_erf"};
    struct profile *p = profile_of(b);
    start(p);
    p->inner->ops->gelu(p->inner, x, kind, n, dim);
    stop(p, &(struct slot){.op = names[kind], .cols = dim}, "", 0, 0);
}

static void profile_keep(struct backend *b, float *kept, const float *k, const float *v, int first, int n, const struct heads *s)
{
    struct profile *p = profile_of(b);
    start(p);
    p->inner->ops->keep(p->inner, kept, k, v, first, n, s);
    stop(p, &(struct slot){.op = "keep"}, "", 0, 8.0 * n * s->n_heads * s->head_dim);
}

static void profile_attend_all(struct backend *b, float *o, const float *q, float *kept, int n, const struct heads *s)
{
    struct profile *p = profile_of(b);
    double wide = (double)s->n_heads * s->head_dim;
    start(p);
    p->inner->ops->attend_all(p->inner, o, q, kept, n, s);
    stop(p, &(struct slot){.op = "attend_all"}, "", 2 * wide * n * s->rows, 8 * wide * s->rows);
}

/* --- what is handed on ------------------------------------------------------------------------------------- */

static const char *profile_name(const struct backend *b)
{
    const struct backend *inner = ((const struct profile *)b)->inner;
    return inner->ops->name(inner);
}

static struct weight *profile_weight_new(struct backend *b, const struct dtype *type, int rows, int cols)
{
    struct backend *inner = profile_of(b)->inner;
    return inner->ops->weight_new(inner, type, rows, cols);
}

static uint64_t profile_weight_cost(const struct backend *b, const struct dtype *type, int rows, int cols)
{
    const struct backend *inner = ((const struct profile *)b)->inner;
    return inner->ops->weight_cost(inner, type, rows, cols);
}

static void profile_weight_free(struct backend *b, struct weight *w)
{
    struct backend *inner = profile_of(b)->inner;
    inner->ops->weight_free(inner, w);
}

static void profile_weight_from(struct backend *b, struct weight *w, const struct dtype *type)
{
    struct backend *inner = profile_of(b)->inner;
    inner->ops->weight_from(inner, w, type);
}

static void profile_weight_put(struct backend *b, struct weight *w, int row, int n, const uint8_t *rows)
{
    struct backend *inner = profile_of(b)->inner;
    inner->ops->weight_put(inner, w, row, n, rows);
}

static void profile_weight_put_columns(struct backend *b, struct weight *w, int row, int n, int col, int n_cols, const uint8_t *rows,
                                       size_t row_bytes)
{
    struct backend *inner = profile_of(b)->inner;
    inner->ops->weight_put_columns(inner, w, row, n, col, n_cols, rows, row_bytes);
}

static uint64_t profile_kept_size(const struct backend *b, const struct heads *s)
{
    const struct backend *inner = ((const struct profile *)b)->inner;
    return inner->ops->kept_size(inner, s);
}

static void profile_weight_scale(struct backend *b, struct weight *w, int row, int n_rows, int col, int n_cols, float scale)
{
    struct backend *inner = profile_of(b)->inner;
    inner->ops->weight_scale(inner, w, row, n_rows, col, n_cols, scale);
}

static struct weight_facts profile_weight_facts(const struct backend *b, const struct weight *w)
{
    const struct backend *inner = ((const struct profile *)b)->inner;
    return inner->ops->weight_facts(inner, w);
}

static bool profile_warm(struct backend *b)
{
    struct backend *inner = profile_of(b)->inner;
    return inner->ops->warm(inner);
}

static void profile_weight_hash(const struct backend *b, const struct weight *w, uint64_t from, uint64_t n, uint8_t *out)
{
    const struct backend *inner = ((const struct profile *)b)->inner;
    inner->ops->weight_hash(inner, w, from, n, out);
}

static uint64_t profile_kv_bytes(const struct backend *b)
{
    const struct backend *inner = ((const struct profile *)b)->inner;
    return inner->ops->kv_bytes(inner);
}

static void profile_kv_get(struct backend *b, int page, void *bytes)
{
    struct backend *inner = profile_of(b)->inner;
    inner->ops->kv_get(inner, page, bytes);
}

static void profile_kv_set(struct backend *b, int page, const void *bytes)
{
    struct backend *inner = profile_of(b)->inner;
    inner->ops->kv_set(inner, page, bytes);
}

static void profile_kv_copy(struct backend *b, int to, int from, int n)
{
    struct backend *inner = profile_of(b)->inner;
    inner->ops->kv_copy(inner, to, from, n);
}

static void profile_adopt(struct backend *b, void *base, uint64_t bytes)
{
    struct backend *inner = profile_of(b)->inner;
    inner->ops->adopt(inner, base, bytes);
}

static void profile_submit(struct backend *b, const struct result *results, int n)
{
    struct backend *inner = profile_of(b)->inner;
    inner->ops->submit(inner, results, n);
}

/* --- life -------------------------------------------------------------------------------------------------- */

static size_t cell_count(const struct kv_shape *kv) { return (size_t)PROFILE_PHASES * (size_t)(kv->n_layers + 1) * SLOTS; }

static struct reserve_cost profile_reserve_cost(const struct backend *b, const struct kv_shape *shape, int max_rows, int max_cols)
{
    const struct profile *p = (const struct profile *)b;
    struct reserve_cost cost = p->inner->ops->reserve_cost(p->inner, shape, max_rows, max_cols);
    cost.scratch += mem_cost(cell_count(shape) * sizeof *p->cells);
    return cost;
}

static int profile_reserve(struct backend *b, const struct kv_shape *shape, int max_rows, int max_cols)
{
    struct profile *p = profile_of(b);
    p->kv = *shape;
    p->cells = mem_array(p->mem, cell_count(shape), sizeof *p->cells);
    int status = p->cells ? p->inner->ops->reserve(p->inner, shape, max_rows, max_cols) : ERR_MEM_LOAD;
    if (!status) return OK;
    mem_free(p->mem, p->cells);
    p->cells = NULL;
    return status;
}

static void profile_free(struct backend *b)
{
    struct profile *p = profile_of(b);
    struct mem *m = p->mem;
    p->inner->ops->free(p->inner);
    mem_free(m, p->cells);
    mem_free(m, p->json);
    mem_free(m, p);
}

static const struct backend_ops profile_ops = {
    .name = profile_name,
    .free = profile_free,
    .weight_new = profile_weight_new,
    .weight_cost = profile_weight_cost,
    .reserve_cost = profile_reserve_cost,
    .weight_free = profile_weight_free,
    .weight_from = profile_weight_from,
    .weight_put = profile_weight_put,
    .weight_put_columns = profile_weight_put_columns,
    .weight_scale = profile_weight_scale,
    .weight_facts = profile_weight_facts,
    .weight_hash = profile_weight_hash,
    .reserve = profile_reserve,
    .warm = profile_warm,
    .kv_copy = profile_kv_copy,
    .kv_bytes = profile_kv_bytes,
    .kv_get = profile_kv_get,
    .kv_set = profile_kv_set,
    .adopt = profile_adopt,
    .submit = profile_submit,
    .embed = profile_embed,
    .features = profile_features,
    .pick = profile_pick,
    .rmsnorm = profile_rmsnorm,
    .matmul = profile_matmul,
    .route = profile_route,
    .gather = profile_gather,
    .combine = profile_combine,
    .rope = profile_rope,
    .kv_append = profile_kv_append,
    .attention = profile_attention,
    .swiglu = profile_swiglu,
    .add = profile_add,
    .layernorm = profile_layernorm,
    .bias = profile_bias,
    .gelu = profile_gelu,
    .kept_size = profile_kept_size,
    .keep = profile_keep,
    .attend_all = profile_attend_all,
};

struct profile *profile_new(struct mem *m, struct backend *inner, struct pool *pool)
{
    struct profile *p = mem_alloc(m, sizeof *p);
    if (!p) return NULL;
    p->ops = profile_ops;
    if (!inner->ops->adopt) p->ops.adopt = NULL;
    if (!inner->ops->submit) p->ops.submit = NULL;
    p->base.ops = &p->ops;
    p->inner = inner;
    p->mem = m;
    p->pool = pool;
    return p;
}

struct backend *profile_backend(struct profile *p) { return &p->base; }

/* --- where the step is ---------------------------------------------------------------------------------------- */

void profile_step(struct profile *p, enum profile_phase phase, int rows)
{
    if (!p) return;
    p->phase = phase;
    p->tokens[phase] += rows;
    profile_layer(p, PROFILE_OUTSIDE);
}

void profile_layer(struct profile *p, int layer)
{
    if (p) p->layer = layer == PROFILE_OUTSIDE ? p->kv.n_layers : layer;
}

/* --- the costs -------------------------------------------------------------------------------------------------- */

void profile_reset(struct profile *p)
{
    p->n_slots = 0;
    memset(p->tokens, 0, sizeof p->tokens);
    if (p->cells) memset(p->cells, 0, cell_count(&p->kv) * sizeof *p->cells);
}

const char *profile_operation(const struct profile *p, int i) { return i < p->n_slots ? p->slots[i].name : NULL; }

double profile_tokens(const struct profile *p, enum profile_phase phase) { return p->tokens[phase]; }

struct profile_cost profile_cost(const struct profile *p, enum profile_phase phase, int operation, int layer)
{
    struct profile_cost sum = {0};
    int outside = p->kv.n_layers;
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

/* --- JSON ---------------------------------------------------------------------------------------------------------- */

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
    for (int l = 0; l < p->kv.n_layers; l++) json_number(j, NULL, profile_cost(p, phase, i, l).ms);
    json_array_end(j);
    json_number(j, "outsideMs", profile_cost(p, phase, i, PROFILE_OUTSIDE).ms);
    json_end(j);
}

static void write_phase(struct json *j, const struct profile *p, const char *key, enum profile_phase phase)
{
    struct profile_cost all = profile_cost(p, phase, PROFILE_ALL, PROFILE_ALL);
    json_object(j, key);
    json_number(j, "tokens", p->tokens[phase]);
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
