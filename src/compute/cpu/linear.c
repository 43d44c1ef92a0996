/* SPDX-License-Identifier: MIT
 *
 * The operations that read and write states. CONVOLVE is shared by heads of rows; DELTA by value heads of sequences,
 * since the rows of a sequence depend on each other. Runs of one sequence are a chain: the later one continues where
 * the earlier one ends, and finds earlier rows in the batch.
 */
#include "compute/cpu/cpu.h"

#include "base/num.h"

#include <math.h>
#include <string.h>

struct linear_job {
    struct cpu *c;
    const struct op *op;
    float *y;
    const float *x, *alpha, *beta;
    size_t channels;
};

static struct linear_job linear_job(struct cpu *c, const struct op *op)
{
    const float *pairs = cpu_at(c, op->z);
    return (struct linear_job){c,
                               op,
                               cpu_at(c, op->y),
                               cpu_at(c, op->x),
                               pairs,
                               pairs + (size_t)op->n * (size_t)op->linear->n_value_heads,
                               (size_t)linear_channels(op->linear)};
}

/* The state of the operation's layer. */
static float *state_in(const struct linear_job *j, int slot)
{
    return (float *)(void *)cpu_slot(j->c, slot) + (size_t)j->op->layer * linear_state(j->op->linear);
}

static float *rows_in(const struct linear_job *j, int slot)
{
    return state_in(j, slot) + linear_state(j->op->linear) - (TAPS - 1) * j->channels;
}

/* --- the convolution ------------------------------------------------------------------------------------- */

/* The head of row t that begins at channel `at`; the chain of the row begins at row `first`, in slot `from`. */
static const float *earlier(const struct linear_job *j, int t, int first, int32_t from, size_t at)
{
    static const float zeros[LINEAR_HEAD_MOST];
    if (t >= first) return j->x + (size_t)t * j->channels + at;
    return from < 0 ? zeros : rows_in(j, from) + (size_t)(t - first + TAPS - 1) * j->channels + at;
}

/* Units begin .. end - 1, of which each row has one for each head; queries come first, then keys, then values. */
static void convolve_units(const struct linear_job *j, int begin, int end)
{
    const struct kernels *k = &j->c->k;
    const struct linear_layer *l = j->op->linear;
    int keys = l->n_key_heads, heads = 2 * keys + l->n_value_heads, first = 0;
    int32_t from = -1;
    float scale = (float)(1.0 / sqrt((double)l->head_dim));
    for (int i = 0; i < j->op->n_runs; i++) {
        const struct state_run *run = &j->op->runs[i];
        int last = run->first + run->n - 1;
        if (!run_goes_on(j->op->runs, i)) first = run->first, from = run->from;
        for (int u = max_int(begin, run->first * heads); u < min_int(end, (last + 1) * heads); u++) {
            int t = u / heads, h = u % heads;
            size_t at = (size_t)h * (size_t)l->head_dim;
            float *y = j->y + (size_t)t * j->channels + at;
            const float *x[TAPS];
            for (int tap = 0; tap < TAPS; tap++) x[tap] = earlier(j, t - TAPS + 1 + tap, first, from, at);
            k->convolve(y, x, l->taps + at, j->channels, l->head_dim);
            if (h < 2 * keys) k->unit(y, h < keys ? scale : 1, l->head_dim);
            for (size_t row = 0; t == last && row < TAPS - 1; row++)
                memcpy(rows_in(j, run->to) + row * j->channels + at, x[row + 1], (size_t)l->head_dim * sizeof *y);
        }
    }
}

static void convolve_rows(void *arg, int thread, int n_threads)
{
    const struct linear_job *j = arg;
    int heads = (int)j->channels / j->op->linear->head_dim, begin, end;
    pool_share(j->op->n * heads, thread, n_threads, &begin, &end);
    convolve_units(j, begin, end);
}

void cpu_convolve(struct cpu *c, const struct op *op)
{
    struct linear_job j = linear_job(c, op);
    cpu_run(c, (int64_t)op->n * op->dim > 2048, convolve_rows, &j);
}

/* --- the delta rule -------------------------------------------------------------------------------------- */

enum { STRETCH = 64 }; /* most rows of one call of the kernel */

/* 0 if it is so small that the state would fill with subnormal numbers, which are slow. */
static float decay_of(float alpha, float bias, float rate)
{
    float z = alpha + bias;
    if (z != z) return z;
    double soft = z > 20.0f ? (double)z : num_log64(1.0 + num_exp64((double)z));
    float decay = (float)num_exp64((double)rate * soft);
    return decay < 0x1p-100f ? 0.0f : decay;
}

/* Rows first .. first + n - 1 of a value head; n is at most STRETCH. */
static void delta_stretch(const struct linear_job *j, int head, int first, int n, const float *from, float *to)
{
    const struct linear_layer *l = j->op->linear;
    size_t dim = (size_t)l->head_dim, heads = (size_t)l->n_value_heads, h = (size_t)head;
    int of_key = l->grouped ? head / (l->n_value_heads / l->n_key_heads) : head % l->n_key_heads;
    const float *q = j->x + (size_t)first * j->channels + (size_t)of_key * dim, *k = q + (size_t)l->n_key_heads * dim,
                *v = j->x + (size_t)first * j->channels + (2 * (size_t)l->n_key_heads + h) * dim;
    float beta[STRETCH], decay[STRETCH];
    for (int t = 0; t < n; t++) {
        size_t at = (size_t)(first + t) * heads + h;
        beta[t] = num_sigmoid(j->beta[at]);
        decay[t] = decay_of(j->alpha[at], l->bias[head], l->rate[head]);
    }
    j->c->k.delta(&(struct delta){.y = j->y + ((size_t)first * heads + h) * dim,
                                  .y_stride = heads * dim,
                                  .q = q,
                                  .k = k,
                                  .v = v,
                                  .stride = j->channels,
                                  .beta = beta,
                                  .decay = decay,
                                  .n = n,
                                  .head_dim = l->head_dim,
                                  .from = from,
                                  .to = to});
}

static void delta_run(const struct linear_job *j, int head, const struct state_run *run)
{
    size_t size = (size_t)j->op->linear->head_dim * (size_t)j->op->linear->head_dim, at = (size_t)head * size;
    float *to = state_in(j, run->to) + at;
    const float *from = run->from < 0 ? to : state_in(j, run->from) + at;
    if (from == to) memset(to, 0, size * sizeof *to);
    for (int t = 0; t < run->n; t += STRETCH, from = to)
        delta_stretch(j, head, run->first + t, min_int(STRETCH, run->n - t), from, to);
}

/* Computes an interval of the total cost, which runs through the value heads of all chains. */
static void delta_between(const struct linear_job *j, int64_t begin, int64_t end)
{
    const struct op *op = j->op;
    const int heads = op->linear->n_value_heads;
    int64_t at = 0, cost;
    for (int i = 0, next; i < op->n_runs; i = next, at += cost * heads) {
        for (cost = 1, next = i; next == i || (next < op->n_runs && run_goes_on(op->runs, next)); next++)
            cost += op->runs[next].n;
        for (int h = unit_from(begin - at, cost, heads); h < unit_from(end - at, cost, heads); h++)
            for (int run = i; run < next; run++) delta_run(j, h, &op->runs[run]);
    }
}

static int64_t delta_cost(const struct op *op)
{
    int64_t sum = op->n;
    for (int i = 0; i < op->n_runs; i++) sum += !run_goes_on(op->runs, i);
    return sum * op->linear->n_value_heads;
}

static void delta_heads(void *arg, int thread, int n_threads)
{
    (void)thread;
    const struct linear_job *j = arg;
    int64_t total = delta_cost(j->op), begin, end;
    while (pool_claim(&j->c->claimed, total, n_threads, &begin, &end)) delta_between(j, begin, end);
}

void cpu_delta(struct cpu *c, const struct op *op)
{
    struct linear_job j = linear_job(c, op);
    cpu_run(c, true, delta_heads, &j);
}

/* --- rows one later ---------------------------------------------------------------------------------------- */

void cpu_later(struct cpu *c, const struct op *op)
{
    float *y = cpu_at(c, op->y);
    const float *x = cpu_at(c, op->x);
    size_t dim = (size_t)op->dim, bytes = dim * sizeof *y, at = (size_t)op->first * sizeof *y;
    for (int i = 0; i < op->n_runs; i++) {
        const struct state_run *run = &op->runs[i];
        size_t first = (size_t)run->first, n = (size_t)run->n;
        memcpy(y + (first + 1) * dim, x + first * dim, (n - 1) * bytes);
        if (run_goes_on(op->runs, i)) memcpy(y + first * dim, x + (first - 1) * dim, bytes);
        else if (run->from >= 0) memcpy(y + first * dim, cpu_slot(c, run->from) + at, bytes);
        else memset(y + first * dim, 0, bytes);
        memcpy(cpu_slot(c, run->to) + at, x + (first + n - 1) * dim, bytes);
    }
}
