/* SPDX-License-Identifier: MIT
 *
 * The simulated device, and the table of backends for programs that use it.
 */
#include "played.h"

#include <stdlib.h>
#include <string.h>

/* Incorrect use of the device ends the program. */
#define PLAYED_CHECK(ok) ((ok) ? (void)0 : abort())

struct played *played_of(const struct backend *b) { return (struct played *)(uintptr_t)b->ops; }

/* --- copies for a call ---------------------------------------------------------------------------------------- */

static void *played_keep(struct played_call *c, const void *p, size_t bytes)
{
    PLAYED_CHECK(c->n_copies < 16);
    void *copy = malloc(bytes ? bytes : 1);
    if (!copy) abort();
    memcpy(copy, p, bytes);
    return c->copies[c->n_copies++] = copy;
}

/* Copies the n rows of `width` values behind the pointers into one block. */
static void played_keep_features(struct played_call *c)
{
    struct op *op = &c->op;
    size_t n = (size_t)op->n, width = (size_t)(op->first + op->dim);
    const float *const *rows = op->features;
    const float **own = played_keep(c, rows, n * sizeof *own);
    float *block = malloc(n * width * sizeof *block);
    if (!block) abort();
    c->copies[c->n_copies++] = block;
    for (size_t i = 0; i < n; i++) {
        if (rows[i]) memcpy(block + i * width, rows[i], width * sizeof *block);
        own[i] = rows[i] ? block + i * width : NULL;
    }
    op->features = own;
}

/* Rows of one conversation share one table of pages. */
static void played_keep_rows(struct played_call *c)
{
    struct op *op = &c->op;
    struct kv_row *rows = played_keep(c, op->kv, (size_t)op->n * sizeof *rows);
    size_t pages = 0, used = 0;
    for (int i = 0; i < op->n; i++) pages += (size_t)(rows[i].index / KV_PAGE + 1);
    int32_t *all = malloc(pages * sizeof *all);
    if (!all) abort();
    c->copies[c->n_copies++] = all;
    const int32_t *before = NULL;
    for (int i = op->n - 1; i >= 0; i--) { /* the last row of a conversation reads the most pages */
        size_t n = (size_t)(rows[i].index / KV_PAGE + 1);
        const int32_t *theirs = rows[i].pages;
        if (theirs == before) {
            rows[i].pages = rows[i + 1].pages;
            continue;
        }
        memcpy(all + used, theirs, n * sizeof *all);
        before = theirs;
        rows[i].pages = all + used;
        used += n;
    }
    op->kv = rows;
}

static void played_keep_linear(struct played_call *c)
{
    struct op *op = &c->op;
    struct linear_layer *l = played_keep(c, op->linear, sizeof *l);
    size_t heads = (size_t)l->n_value_heads * sizeof(float);
    l->taps = played_keep(c, l->taps, TAPS * (size_t)linear_channels(l) * sizeof(float));
    l->rate = played_keep(c, l->rate, heads);
    l->bias = played_keep(c, l->bias, heads);
    op->linear = l;
}

static void played_keep_operands(struct played_call *c)
{
    struct op *op = &c->op;
    size_t n = (size_t)op->n, dim = (size_t)op->dim, angles = n * (size_t)op->rot / 2;
    if (op->route) op->route = played_keep(c, op->route, sizeof *op->route);
    if (op->ids) op->ids = played_keep(c, op->ids, n * sizeof *op->ids);
    if (op->vector) op->vector = played_keep(c, op->vector, dim * sizeof(float));
    if (op->bias) op->bias = played_keep(c, op->bias, dim * sizeof(float));
    if (op->cosine) op->cosine = played_keep(c, op->cosine, angles * sizeof(float));
    if (op->sine) op->sine = played_keep(c, op->sine, angles * sizeof(float));
    if (op->linear) played_keep_linear(c);
    if (op->runs) op->runs = played_keep(c, op->runs, (size_t)op->n_runs * sizeof *op->runs);
    if (op->features) played_keep_features(c);
    if (op->kv) played_keep_rows(c);
}

static struct played_call *played_add(struct played *p, enum played_what what)
{
    struct played_call *c = calloc(1, sizeof *c);
    if (!c) abort();
    c->what = what;
    *p->last = c;
    p->last = &c->next;
    return c;
}

void played_do(struct backend *b, played_work *work, const void *context, size_t bytes)
{
    if (!b->late) {
        work(b, context);
        return;
    }
    struct played_call *c = played_add(played_of(b), PLAYED_WORK);
    c->work = work;
    played_keep(c, context, bytes);
}

/* --- checks ------------------------------------------------------------------------------------------------------ */

static void played_check(const struct played *p, struct handle h, uint64_t n)
{
    PLAYED_CHECK(h.at % sizeof(float) == 0 && h.at <= p->values && n * sizeof(float) <= p->values - h.at);
}

static void played_check_operand(const struct played *p, struct backend *b, const struct op *op, struct handle h,
                                 unsigned operand)
{
    uint64_t rows = (uint64_t)op->n * (uint64_t)op->dim;
    if (operand == OP_NONE) PLAYED_CHECK(h.at == 0);
    else if (operand & OF_ROWS) played_check(p, h, rows);
    else if (operand & OF_CHANNELS) played_check(p, h, (uint64_t)op->n * (uint64_t)linear_channels(op->linear));
    else if (operand & OF_HALVES) played_check(p, h, rows / 2);
    else if (operand & OF_PAIRS) played_check(p, h, 2 * (uint64_t)op->n * (uint64_t)op->linear->n_value_heads);
    else if (operand & OF_PLACES) played_check(p, h, rows * (uint64_t)op->route->n_used);
    else if (operand & OF_CACHE) played_check(p, h, p->cpu->heads_size(b, &op->attended));
    else
        for (int i = 0; i < op->n; i++) played_check(p, h, (uint64_t)(op->ids[i] + 1) * (uint64_t)op->dim);
}

static void played_check_op(const struct played *p, struct backend *b, const struct op *op)
{
    const struct op_row *row = &op_rows[op->kind];
    int experts = op->kind == OP_EXPERTS ? op->route->n_experts : 1;
    PLAYED_CHECK(op->n > 0 && op->dim > 0);
    played_check_operand(p, b, op, op->y, row->y);
    played_check_operand(p, b, op, op->x, row->x);
    played_check_operand(p, b, op, op->z, row->z);
    if (op->w) PLAYED_CHECK(p->cpu->weight_facts(b, op->w).cols == op->dim);
    for (const struct product *one = op->products; one < op->products + OP_PRODUCTS && one->w; one++) {
        struct weight_facts facts = p->cpu->weight_facts(b, one->w);
        PLAYED_CHECK(facts.cols == op->dim && one->first + one->rows <= facts.rows);
        played_check(p, one->y, (uint64_t)op->n * (uint64_t)(facts.rows / experts));
    }
    if (!op->route) return;
    uint64_t places =
        (uint64_t)(op->kind == OP_EXPERTS ? op->n / op->route->n_used : op->n) * (uint64_t)op->route->n_used;
    played_check(p, op->route->first, (uint64_t)op->route->n_experts + 1);
    played_check(p, op->route->place, places);
    played_check(p, op->route->share, places);
}

static void played_forget_results(struct played *p)
{
    for (int i = 0; i < p->n_answers; i++) free(p->answers[i].values);
    memset(p->answers, 0, sizeof p->answers);
    p->n_answers = p->n_asked = 0;
}

/* --- the backend ----------------------------------------------------------------------------------------------- */

static void played_run(struct backend *b, const struct op *ops, int n)
{
    struct played *p = played_of(b);
    if (p->n_asked == p->n_answers && !p->submitted) played_forget_results(p); /* they were borrowed until now */
    for (int i = 0; i < n; i++) {
        played_check_op(p, b, &ops[i]);
        if (p->seen) p->seen(&ops[i]);
        p->n_run[ops[i].kind]++;
        struct played_call *c = played_add(p, PLAYED_OP);
        c->op = ops[i];
        played_keep_operands(c);
    }
}

static void played_kv_copy(struct backend *b, int to, int from, int n)
{
    struct played_call *c = played_add(played_of(b), PLAYED_COPY);
    c->to = to, c->from = from, c->n = n;
}

static void played_kv_set(struct backend *b, int page, const void *bytes)
{
    struct played *p = played_of(b);
    struct played_call *c = played_add(p, PLAYED_SET);
    c->to = page;
    played_keep(c, bytes, (size_t)p->cpu->kv_bytes(b));
}

static void played_slot_set(struct backend *b, int slot, uint64_t from, uint64_t n, const void *bytes)
{
    struct played_call *c = played_add(played_of(b), PLAYED_SLOT);
    c->to = slot, c->at = from, c->bytes = n;
    played_keep(c, bytes, (size_t)n);
}

/* Called on any thread. */
static void played_ask(struct backend *b, struct played_answer answer)
{
    struct played *p = played_of(b);
    int i = __atomic_fetch_add(&p->n_answers, 1, __ATOMIC_RELAXED);
    PLAYED_CHECK(i < PLAYED_ANSWERS && !p->submitted);
    p->answers[i] = answer;
}

static void played_kv_get(struct backend *b, int page, int n, void *bytes)
{
    memset(bytes, 0xFF, (size_t)played_of(b)->cpu->kv_bytes(b));
    played_ask(b, (struct played_answer){.page = page, .rows = n, .bytes = bytes});
}

static void played_slot_get(struct backend *b, int slot, uint64_t from, uint64_t n, void *bytes)
{
    memset(bytes, 0xFF, (size_t)n);
    played_ask(b, (struct played_answer){.page = slot, .of_slot = true, .from = from, .n = n, .bytes = bytes});
}

static void played_weight_hash(struct backend *b, const struct weight *w, uint64_t from, uint64_t n, uint8_t *out)
{
    memset(out, 0xFF, 16);
    played_ask(b, (struct played_answer){.w = w, .from = from, .n = n, .bytes = out});
}

static void played_submit(struct backend *b, const struct result *results, int n)
{
    struct played *p = played_of(b);
    PLAYED_CHECK(!p->submitted);
    for (int i = 0; i < n; i++) {
        played_check(p, results[i].y, results[i].n);
        played_ask(b, (struct played_answer){.result = results[i]});
    }
    p->submitted = p->n_answers > p->n_asked;
    p->n_asked = p->n_answers;
}

static const float *played_result(const struct backend *b, struct handle y)
{
    const struct played *p = played_of(b);
    for (int i = 0; i < p->n_asked; i++)
        if (p->answers[i].values && p->answers[i].result.y.at == y.at) return p->answers[i].values;
    return NULL;
}

static int played_reserve(struct backend *b, const struct reserve *r)
{
    struct played *p = played_of(b);
    int status = p->cpu->reserve(b, r);
    p->values = r->values;
    if (!status) memset(((struct cpu *)b)->values, 0xFF, (size_t)r->values);
    return status;
}

static bool played_warm(struct backend *b) { return (void)b, false; }

static void played_drop_calls(struct played *p)
{
    while (p->first) {
        struct played_call *c = p->first;
        p->first = c->next;
        for (int i = 0; i < c->n_copies; i++) free(c->copies[i]);
        free(c);
    }
    p->last = &p->first;
}

static void played_free(struct backend *b)
{
    struct played *p = played_of(b);
    played_drop_calls(p);
    played_forget_results(p);
    b->ops = p->cpu;
    b->ops->free(b);
    free(p);
}

/* Turns the CPU's backend into a simulated device. */
static void install(struct backend *b)
{
    struct played *p = calloc(1, sizeof *p);
    if (!p) abort();
    p->cpu = b->ops;
    p->ops = *b->ops;
    p->last = &p->first;
    p->ops.free = played_free;
    p->ops.reserve = played_reserve;
    p->ops.warm = played_warm;
    p->ops.run = played_run;
    p->ops.kv_copy = played_kv_copy;
    p->ops.kv_set = played_kv_set;
    p->ops.kv_get = played_kv_get;
    p->ops.slot_set = played_slot_set;
    p->ops.slot_get = played_slot_get;
    p->ops.weight_hash = played_weight_hash;
    p->ops.submit = played_submit;
    p->ops.result = played_result;
    b->ops = &p->ops;
    b->late = true;
}

/* --- the device ------------------------------------------------------------------------------------------------ */

static void played_compute(struct backend *b, const struct played_call *c)
{
    const struct backend_ops *cpu = played_of(b)->cpu;
    switch (c->what) {
    case PLAYED_OP: cpu->run(b, &c->op, 1); break;
    case PLAYED_COPY: cpu->kv_copy(b, c->to, c->from, c->n); break;
    case PLAYED_SET: cpu->kv_set(b, c->to, c->copies[0]); break;
    case PLAYED_SLOT: cpu->slot_set(b, c->to, c->at, c->bytes, c->copies[0]); break;
    case PLAYED_WORK: c->work(b, c->copies[0]); break;
    }
}

static void answer_one(struct backend *b, struct played_answer *a)
{
    const struct backend_ops *cpu = played_of(b)->cpu;
    size_t bytes = (size_t)a->result.n * sizeof(float);
    a->come = true;
    if (a->w) {
        cpu->weight_hash(b, a->w, a->from, a->n, a->bytes);
    } else if (a->of_slot) {
        cpu->slot_get(b, a->page, a->from, a->n, a->bytes);
    } else if (a->bytes) {
        cpu->kv_get(b, a->page, a->rows, a->bytes);
    } else {
        a->values = malloc(bytes);
        if (!a->values) abort();
        memcpy(a->values, cpu->result(b, a->result.y), bytes);
    }
}

void played_deliver(struct backend *b)
{
    struct played *p = played_of(b);
    PLAYED_CHECK(p->submitted);
    for (const struct played_call *c = p->first; c; c = c->next) played_compute(b, c);
    played_drop_calls(p);
    for (int i = 0; i < p->n_asked; i++)
        if (!p->answers[i].come) answer_one(b, &p->answers[i]);
    p->submitted = false;
}

/* --- the table ------------------------------------------------------------------------------------------------- */

backend_open_fn *played_instead;

static struct backend *open_played(struct mem *m, struct pool *pool, bool scalar)
{
    if (played_instead) return played_instead(m, pool, scalar);
    struct backend *b = backend_cpu(m, pool, scalar);
    if (b) install(b);
    return b;
}

const struct backend_row backends[] = {
    [BACKEND_CPU] = {"cpu", backend_cpu, backend_cpu_dots},
    [BACKEND_PLAYED] = {"played", open_played, backend_cpu_dots},
};
const int n_backends = sizeof backends / sizeof *backends;
