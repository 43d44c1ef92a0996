/* SPDX-License-Identifier: MIT
 *
 * What tests with running models share: the golden files, logits of many tokens, and comparing bits.
 */
#ifndef QUERN_SESSION_H
#define QUERN_SESSION_H

#include "compute/cpu/cpu.h"
#include "engine/state.h"
#include "model_file.h"

enum { GOLDEN_ROWS = 192, GOLDEN_VOCAB = 320 };

static const char *const golden_names[] = {
    "nano.F32",        "nano.F16",    "nano.BF16",   "nano.Q8_0",   "nano.Q4_0",    "nano.Q4_1",
    "nano.Q5_0",       "nano.Q5_1",   "nano.Q2_K",   "nano.Q3_K_M", "nano.Q4_K_M",  "nano.Q5_K_M",
    "nano.Q6_K",       "nano.IQ4_NL", "nano.IQ4_XS", "nano.Q1_0",   "nano.Q2_0",    "nano.TQ1_0",
    "nano.TQ2_0",      "duo.F32",     "moe-nano.F32", "moe-nano.Q8_0", "moe-nano.Q4_K_M", "hyb.F32",
    "hybq.Q4_K_M",     "hybw.Q8_0",   "nano.IQ3_S",  "nano.IQ3_XXS", "nano.IQ2_S",  "nano.IQ2_XS",
    "nano.IQ2_XXS",    "nano.IQ1_S",  "nano.IQ1_M",  "nano.NVFP4",  "qw2.Q4_K_M",  "lla.Q8_0",
};
enum { GOLDEN_FILES = sizeof golden_names / sizeof *golden_names };

/* One file of each sort: rare types differ from these only in their kernels. */
static const char *const golden_few[] = {"nano.F32",        "nano.F16",  "nano.Q8_0",  "nano.Q4_0",
                                         "nano.Q4_K_M",     "nano.Q6_K", "duo.F32",    "moe-nano.Q4_K_M",
                                         "hybw.Q8_0",       "qw2.Q4_K_M", "lla.Q8_0"};
enum { GOLDEN_FEW = sizeof golden_few / sizeof *golden_few };

static inline struct file golden_file(const char *name, const char *ending)
{
    char file[64];
    snprintf(file, sizeof file, "%s.%s", name, ending);
    return file_read(golden_folder(), file);
}

/* The 192 ids of tokens.json. */
static inline void golden_tokens(int32_t ids[GOLDEN_ROWS])
{
    struct file f = file_read(golden_folder(), "tokens.json");
    int n = 0, inside = 0;
    for (size_t i = 0; i < f.size; i++) {
        int digit = f.data[i] >= '0' && f.data[i] <= '9';
        if (digit && !inside) ids[n++] = 0;
        if (digit) ids[n - 1] = ids[n - 1] * 10 + (f.data[i] - '0');
        inside = digit;
        CHECK(n <= GOLDEN_ROWS);
    }
    CHECK_EQ(n, GOLDEN_ROWS);
    file_free(&f);
}

/* --- logits ------------------------------------------------------------------------------------------- */

static inline float *logits_new(int rows, int vocab)
{
    float *out = malloc((size_t)rows * (size_t)vocab * sizeof *out);
    if (!out) exit(2);
    return out;
}

/* Copies the logits of the last step to its rows of all [n, vocab]. Returns the number of rows. */
static inline int logits_keep(const struct quern_sequence *s, int vocab, float *all)
{
    int first, n;
    const float *rows = quern_logits(s, &first, &n);
    CHECK((rows != NULL) == (n > 0));
    if (n) memcpy(all + (size_t)first * (size_t)vocab, rows, (size_t)n * (size_t)vocab * sizeof *rows);
    return n;
}

/* Logits of every token of ids [n]. */
static inline void logits_all(struct quern_engine *e, struct quern_sequence *s, const int32_t *ids, int n, float *all)
{
    int rows = 0;
    CHECK_EQ(quern_sequence_set(s, ids, n, QUERN_ALL), 0);
    while (quern_sequence_pending(s) > 0) {
        CHECK_EQ(quern_step(e, 0), OK);
        rows += logits_keep(s, quern_vocab_size(e), all);
    }
    CHECK_EQ(rows, n);
    CHECK_EQ(quern_sequence_length(s), n);
}

/* Computes all pending tokens and returns the logits of the last one. */
static inline const float *logits_last(struct quern_engine *e, struct quern_sequence *s)
{
    int first, n;
    while (quern_sequence_pending(s) > 0) CHECK_EQ(quern_step(e, 0), OK);
    const float *rows = quern_logits(s, &first, &n);
    CHECK_EQ(n, 1);
    CHECK_EQ(first, quern_sequence_length(s) - 1);
    return rows;
}

static inline bool same_bits(const float *a, const float *b, int n) { return memcmp(a, b, (size_t)n * sizeof *a) == 0; }

static inline struct quern_sequence *sequence_new(struct quern_engine *e)
{
    struct quern_sequence *s = quern_sequence_new(e, 0, 0);
    CHECK(s != NULL);
    return s;
}

/* --- the reference of one test: every logit of a file, computed by a plain engine ------------------------ */

struct reference {
    struct file file;
    int32_t ids[GOLDEN_ROWS];
    float *logits; /* [GOLDEN_ROWS, GOLDEN_VOCAB] */
};

static inline struct reference reference_with(const char *name, enum quern_kv kv)
{
    struct reference r = {.file = golden_file(name, "gguf"), .logits = logits_new(GOLDEN_ROWS, GOLDEN_VOCAB)};
    golden_tokens(r.ids);
    struct quern_engine *e = engine_load(&r.file, (struct quern_options){.kv = kv}, SIZE_MAX);
    CHECK_EQ(quern_vocab_size(e), GOLDEN_VOCAB);
    logits_all(e, sequence_new(e), r.ids, GOLDEN_ROWS, r.logits);
    quern_free(e);
    return r;
}

static inline struct reference reference_new(const char *name) { return reference_with(name, QUERN_KV_F16); }

static inline void reference_free(struct reference *r)
{
    file_free(&r->file);
    free(r->logits);
}

/* Row `at` of the reference: the logits after ids[0 .. at]. */
static inline const float *reference_row(const struct reference *r, int at)
{
    return r->logits + (size_t)at * GOLDEN_VOCAB;
}

static inline void check_row(const struct reference *r, int at, const float *logits)
{
    CHECK(same_bits(reference_row(r, at), logits, GOLDEN_VOCAB));
}

/* --- what tests do to pages between steps ----------------------------------------------------------------- */

static inline void poison_page(void *context, int page)
{
    cpu_kv_poison(context, page);
}

/* Fills every page that no sequence holds with NaN, and makes free pages come in random order. */
static inline void disturb_pages(struct quern_engine *e, uint64_t seed)
{
    kv_each_forgotten(e->kv, poison_page, e->be);
    kv_shuffle(e->kv, seed);
}

static inline void check_pages(const struct quern_engine *e)
{
    enum { PAGES_MOST = 4096 };
    const struct kv_seq *seqs[100];
    int n = sched_left(e->sched, seqs), scratch[PAGES_MOST];
    CHECK(kv_pages_used(e->kv) + kv_pages_unused(e->kv) <= PAGES_MOST);
    for (const struct quern_sequence *s = e->sequences; s; s = s->next) seqs[n++] = &s->turn.kv;
    CHECK(kv_check(e->kv, seqs, n, scratch));
}

#endif
