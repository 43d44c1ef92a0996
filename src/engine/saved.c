/* SPDX-License-Identifier: MIT
 *
 * The layout of saved conversations, little-endian.
 *
 * Header: "QUERNKV\0"; u32 version, arithmetic, positions of a page, type of keys and values; u64 bytes of a page,
 * bytes of a record; u32 layers, kv heads, head dim, records of a state (0: none); fingerprint [16]; u16 length of the
 * name, the name, zeros; hash [16] of the 4,080 bytes before it.
 *
 * Record: u64 ids [32]; u32 number, 0; hash [16] of the record before it, or of the header; hash [16] of this record,
 * computed with zeros in its place; zeros up to 512; the page; zeros up to a multiple of 4,096.
 *
 * If the model has a state, its records follow the last whole page: first the page in which the state ends, with the
 * rows that the state has read (maybe none), then the slot, cut into as many records as it needs. The ids are those of
 * these rows, then zeros. The u32 at 260 counts the records from 1, and the u32 at 296 is the number of positions that
 * the state has read; both are 0 in a page's record.
 */
#include "engine/saved.h"

#include "base/hash.h"
#include "engine/plan.h"
#include "engine/sequence.h"

#include <string.h>

/* ARITHMETIC (MODEL.md) is raised when bits of keys or values change. */
enum { VERSION = 2, ARITHMETIC = 1, ALIGN = 4096 };
enum { AT_NAME = 72, AT_HEADER_HASH = SAVED_HEADER - HASH_BYTES };                      /* in the header */
enum { AT_NUMBER = KV_PAGE * 8, AT_PART = AT_NUMBER + 4, AT_BEFORE = AT_PART + 4, AT_HASH = AT_BEFORE + HASH_BYTES,
       AT_LENGTH = AT_HASH + HASH_BYTES }; /* in a record */

static const uint8_t magic[8] = "QUERNKV";

uint64_t saved_record(const struct quern_engine *e)
{
    if (!e->kv) return 0;
    return (SAVED_HEAD + e->be->ops->kv_bytes(e->be) + ALIGN - 1) / ALIGN * ALIGN;
}

static uint64_t slot_bytes(const struct quern_engine *e) { return plan_shape(e, e->context_size).state.bytes; }

/* Number of records of a state: one for its page, the others for the slot. */
static int state_records(const struct quern_engine *e)
{
    uint64_t bytes = slot_bytes(e), room = saved_record(e) - SAVED_HEAD;
    return bytes ? (int)((bytes + room - 1) / room) + 1 : 0;
}

/* The range of the slot's bytes that the state's record number `part` holds. */
static void slot_range(const struct quern_engine *e, int part, uint64_t *from, uint64_t *size)
{
    uint64_t bytes = slot_bytes(e), room = saved_record(e) - SAVED_HEAD;
    *from = (uint64_t)(part - 2) * room;
    *size = bytes - *from < room ? bytes - *from : room;
}

/* --- the model's fingerprint ----------------------------------------------------------------------------------- */

/* bytes of a block; blocks of a job for each thread, which take some ms on a slow machine */
enum { PRINTED = 1 << 20, JOB = 8 };

/* A walk over all weights, which counts their blocks and visits blocks from .. to - 1: to hash them, or to add their
 * hashes to the sum, which does not depend on the order. */
struct walk {
    struct quern_engine *e;
    void (*visit)(struct walk *k, const struct weight *w, struct bytes vector, struct weight_facts f, uint64_t block,
                  uint8_t *content);
    int64_t at, from, to;
    int part;
};

/* Hashes the content of a block. */
static void hash_block(struct walk *k, const struct weight *w, struct bytes vector, struct weight_facts f,
                       uint64_t block, uint8_t *content)
{
    struct backend *be = k->e->be;
    uint64_t from = block * PRINTED, n = f.bytes - from < PRINTED ? f.bytes - from : PRINTED;
    memset(content, 0, HASH_BYTES);
    if (w) __atomic_store_n(&k->e->printing.asked, true, __ATOMIC_RELAXED);
    if (w) be->ops->weight_hash(be, w, from, n, content);
    else if (vector.data) hash128(vector.data + from, (size_t)n, content);
}

/* Adds a block to the sum, with the number, type and shape of its part. */
static void add_block(struct walk *k, const struct weight *w, struct bytes vector, struct weight_facts f,
                      uint64_t block, uint8_t *content)
{
    struct {
        uint64_t part, block, rows, cols;
        uint8_t type[32], content[HASH_BYTES];
    } facts = {.part = (uint64_t)k->part, .block = block, .rows = (uint64_t)f.rows, .cols = (uint64_t)f.cols};
    uint64_t hash[HASH_BYTES / 8];
    (void)vector;
    if (w) memcpy(facts.type, f.type->name, strlen(f.type->name));
    memcpy(facts.content, content, HASH_BYTES);
    hash128(&facts, sizeof facts, (uint8_t *)hash);
    for (int i = 0; i < HASH_BYTES / 8; i++) k->e->printing.sum[i] += hash[i];
}

static void walk_part(void *context, const struct weight *w, struct bytes vector)
{
    struct walk *k = context;
    struct printing *p = &k->e->printing;
    const struct weight_facts vector_facts = {.cols = (int)vector.size, .bytes = vector.size};
    const struct weight_facts f = w ? k->e->be->ops->weight_facts(k->e->be, w) : vector_facts;
    /* the last block may be empty */
    int64_t n = (int64_t)(f.bytes / PRINTED) + 1, first = k->from - k->at, end = k->to - k->at;
    for (int64_t i = first > 0 ? first : 0; i < n && i < end; i++)
        k->visit(k, w, vector, f, (uint64_t)i, p->content[k->at + i - p->done]);
    k->at += n;
    k->part++;
}

static void walk(struct walk *k)
{
    model_each(k->e->model, walk_part, k);
    if (quern_sees(k->e)) vision_each(k->e->projector->vision, walk_part, k);
}

static void hash_blocks(void *arg, int thread, int n_threads)
{
    struct quern_engine *e = arg;
    struct printing *p = &e->printing;
    (void)thread;
    for (int64_t from, to; pool_claim(&p->claimed, p->until - p->done, n_threads, &from, &to);)
        walk(&(struct walk){.e = e, .visit = hash_block, .from = p->done + from, .to = p->done + to});
}

/* Makes the fingerprint, once all blocks are in the sum. */
static void end_printing(struct quern_engine *e)
{
    const struct model_config *c = &e->model->config;
    struct {
        uint64_t parts[HASH_BYTES / 8];
        double config[16];
        char architecture[32];
    } all = {.config = {c->n_layers, c->dim, c->ffn_dim, c->n_heads, c->n_kv_heads, c->head_dim, c->vocab_size,
                        c->n_experts, c->n_used, c->expert_dim, c->renormalise, c->rope_dim, c->rope_theta,
                        c->rope_factor, (double)c->eps, c->tied}};
    memcpy(all.parts, e->printing.sum, sizeof all.parts);
    memcpy(all.architecture, e->model->architecture->name, strlen(e->model->architecture->name));
    hash128(&all, sizeof all, e->fingerprint);
    e->printing = (struct printing){0};
    e->has_fingerprint = true;
}

static void count_blocks(struct quern_engine *e)
{
    struct walk k = {.e = e};
    walk(&k); /* from = to = 0: it visits nothing */
    e->printing.n = k.at;
}

/* Hashes the blocks of the next job, or lets a device do so. */
static void begin_job(struct quern_engine *e)
{
    struct printing *p = &e->printing;
    int most = min_int(PRINT_MOST, JOB * pool_working(e->pool));
    p->until = p->n - p->done < most ? p->n : p->done + most;
    p->claimed = 0;
    p->asked = false;
    pool_run(e->pool, hash_blocks, e);
    e->be->ops->submit(e->be, NULL, 0);
    if (e->be->late && p->asked) e->awaits = AWAITED_HASHES;
}

static void end_job(struct quern_engine *e)
{
    struct printing *p = &e->printing;
    walk(&(struct walk){.e = e, .visit = add_block, .from = p->done, .to = p->until});
    p->done = p->until;
    engine_beat(e);
}

int saved_print(struct quern_engine *e, int budget_ms)
{
    struct printing *p = &e->printing;
    double start = e->options.now();
    if (e->has_fingerprint) return OK;
    int status = engine_check(e);
    if (status) return status;
    if (p->n == 0) count_blocks(e);
    do {
        if (p->until == p->done) begin_job(e);
        if (e->awaits) return NEED_MORE;
        end_job(e);
    } while (p->done < p->n && (budget_ms <= 0 || e->options.now() - start < budget_ms));
    if (p->done < p->n) return NEED_MORE;
    end_printing(e);
    return OK;
}

/* --- the header ------------------------------------------------------------------------------------------------ */

static uint8_t *put(uint8_t *to, const void *from, size_t n) { return (uint8_t *)memcpy(to, from, n) + n; }

static void make_header(struct quern_engine *e, struct bytes name, uint8_t *out)
{
    const struct kv_shape shape = plan_shape(e, e->context_size).kv;
    const uint32_t first[] = {VERSION, ARITHMETIC, KV_PAGE, (uint32_t)shape.type};
    const uint64_t sizes[] = {e->be->ops->kv_bytes(e->be), saved_record(e)};
    const uint32_t last[] = {(uint32_t)shape.n_layers, (uint32_t)shape.n_kv_heads, (uint32_t)shape.head_dim,
                             (uint32_t)state_records(e)};
    const uint16_t length = (uint16_t)name.size;
    memset(out, 0, SAVED_HEADER);
    uint8_t *at = put(out, magic, sizeof magic);
    at = put(at, first, sizeof first);
    at = put(at, sizes, sizeof sizes);
    at = put(at, last, sizeof last);
    at = put(at, e->fingerprint, HASH_BYTES);
    put(put(at, &length, sizeof length), name.data, name.size);
    hash128(out, AT_HEADER_HASH, out + AT_HEADER_HASH);
}

static int fail_held(struct quern_engine *e)
{
    return fail(&e->error, ERR_BUSY, "held", 0,
                "Pages are saved and given after a conversation has been set and held, and before its reply begins.");
}

static bool is_held(const struct quern_sequence *s) { return s->outputs == QUERN_HELD && !s->replies && s->turn.n > 0; }

int saved_open(struct quern_sequence *s, struct bytes name, uint8_t *out)
{
    struct quern_engine *e = s->e;
    if (!saved_record(e) || name.size < 1 || name.size > SAVED_NAME)
        return fail(&e->error, ERR_PARAM, "name", 0, "The name of a saved conversation has 1 to %d bytes, not %zu.",
                    SAVED_NAME, name.size);
    if (!is_held(s)) return fail_held(e);
    int status = saved_print(e, 0);
    if (status) return status;
    sequence_hold(s);
    make_header(e, name, out);
    s->saved = (struct saved){0};
    memcpy(s->saved.before, out + AT_HEADER_HASH, HASH_BYTES);
    return OK;
}

int saved_name(const uint8_t *header, struct bytes *name)
{
    uint8_t hash[HASH_BYTES];
    size_t n = load_u16(header + AT_NAME);
    hash128(header, AT_HEADER_HASH, hash);
    if (memcmp(header, magic, sizeof magic) || n < 1 || n > SAVED_NAME ||
        memcmp(hash, header + AT_HEADER_HASH, HASH_BYTES))
        return ERR_FORMAT;
    *name = (struct bytes){header + AT_NAME + 2, n};
    return OK;
}

/* --- records --------------------------------------------------------------------------------------------------- */

static int fail_record(const struct quern_sequence *s, const char *what)
{
    return fail(&s->e->error, ERR_FORMAT, "saved", (uint64_t)s->saved.next, "Record %d of a saved conversation %s.",
                s->saved.next, what);
}

/* Hashes a record, with zeros in the place of its own hash. */
static void hash_record(uint8_t *record, uint64_t n, uint8_t *out)
{
    memset(record + AT_HASH, 0, HASH_BYTES);
    hash128(record, (size_t)n, out);
}

/* Hashes a whole record and copies its content, each by the first free thread. The content goes to a place that nobody
 * reads before the hash is found right. */
static void give_parts(void *arg, int thread, int n_threads)
{
    enum { HASHED, COPIED, PARTS };
    struct quern_engine *e = arg;
    struct giving *g = &e->giving;
    (void)thread, (void)n_threads;
    for (int part; (part = __atomic_fetch_add(&g->next, 1, __ATOMIC_RELAXED)) < PARTS;) {
        if (part == HASHED) hash_record(g->record, g->n, g->hash);
        else if (g->page >= 0) e->be->ops->kv_set(e->be, g->page, g->record + SAVED_HEAD);
        else if (g->slot >= 0) e->be->ops->slot_set(e->be, g->slot, g->from, g->size, g->record + SAVED_HEAD);
    }
}

static int fail_unused(struct quern_engine *e)
{
    return fail(&e->error, ERR_BUSY, "pages", 0, "No page is unused; what is saved is read again.");
}

static int fail_taken(struct quern_engine *e)
{
    return fail(&e->error, ERR_BUSY, "pages", 0, "Others took pages of the conversation.");
}

static int fail_otherwise(struct quern_engine *e)
{
    return fail(&e->error, ERR_EMPTY, "saved", 0, "What is saved differs from the conversation.");
}

static int begin_parts(struct quern_engine *e, uint64_t n)
{
    e->giving.n = n;
    pool_begin(e->pool, give_parts, e);
    return OK;
}

static int begin_page(struct quern_sequence *s, const uint8_t *record, uint64_t n)
{
    struct quern_engine *e = s->e;
    struct kv_seq *kv = &s->turn.kv;
    int at = s->saved.next * KV_PAGE;
    if (at + KV_PAGE > s->turn.n || memcmp(record, s->ids + at, KV_PAGE * sizeof *s->ids)) return fail_otherwise(e);
    /* after this page there may be no state to continue from */
    if (n < saved_record(e) && at + KV_PAGE > kv->length && kv_slots(e->kv)) return fail_otherwise(e);
    /* the last token of a prompt is always computed */
    if (n < saved_record(e) || at + KV_PAGE <= kv->length || at + KV_PAGE >= s->turn.n) return OK;
    if (at > kv->length) return fail_taken(e);
    if (at < kv->length) kv_cut(kv, at);
    if (kv_reserve_pages(kv, KV_PAGE)) return fail_unused(e);
    e->giving.page = kv->pages[at / KV_PAGE];
    e->giving.rows = KV_PAGE;
    return begin_parts(e, n);
}

/* The number of positions that a state has read, from one of its records; 0 if the record is wrong here. */
static int state_length(const struct quern_sequence *s, const uint8_t *record, uint32_t part)
{
    uint32_t length = load_u32(record + AT_LENGTH), whole = length / KV_PAGE;
    return part <= (uint32_t)state_records(s->e) && length <= INT32_MAX && whole + part - 1 == (uint32_t)s->saved.next
               ? (int)length
               : 0;
}

static int begin_state(struct quern_sequence *s, const uint8_t *record, uint64_t n, uint32_t part)
{
    struct quern_engine *e = s->e;
    struct giving *g = &e->giving;
    struct kv_seq *kv = &s->turn.kv;
    int length = state_length(s, record, part), rows = length % KV_PAGE, first = length - rows;
    if (!length) return fail_record(s, "does not follow the record before");
    if (length >= s->turn.n || memcmp(record, s->ids + first, (size_t)rows * sizeof *s->ids)) return fail_otherwise(e);
    if (kv->length == length && kv->slot >= 0 && kv->next < 0) return OK; /* the state is known */
    if (n < saved_record(e) || kv->length > length) return fail_otherwise(e);
    if (kv->length < first || (part > 1 && kv->next < 0)) return fail_taken(e);
    if (kv->length > first) kv_cut(kv, first);
    if (kv_reserve(kv, rows)) return fail_unused(e);
    if (part == 1 && rows) g->page = kv->pages[first / KV_PAGE];
    if (part > 1) slot_range(e, (int)part, &g->from, &g->size), g->slot = kv->next;
    if ((int)part == state_records(e)) g->rows = rows;
    return begin_parts(e, n);
}

static int end_parts(struct quern_sequence *s)
{
    struct quern_engine *e = s->e;
    struct giving *g = &e->giving;
    struct kv_seq *kv = &s->turn.kv;
    give_parts(e, 0, 0);
    pool_end(e->pool);
    engine_beat(e);
    memcpy(g->record + AT_HASH, g->own, HASH_BYTES);
    if (memcmp(g->hash, g->own, HASH_BYTES)) {
        kv_trim(kv);
        return fail_record(s, "is damaged");
    }
    if (g->rows >= 0) kv_commit(kv, s->ids + kv->length, g->rows);
    return OK;
}

int saved_give_begin(struct quern_sequence *s, uint8_t *record, uint64_t n)
{
    struct quern_engine *e = s->e;
    if (!is_held(s) || !s->listed) return fail_held(e);
    if (n < SAVED_HEAD) return fail_record(s, "is cut off");
    if (load_u32(record + AT_NUMBER) != (uint32_t)s->saved.next ||
        memcmp(record + AT_BEFORE, s->saved.before, HASH_BYTES))
        return fail_record(s, "does not follow the record before");
    uint32_t part = load_u32(record + AT_PART);
    e->giving = (struct giving){.record = record, .page = -1, .slot = -1, .rows = -1};
    memcpy(e->giving.own, record + AT_HASH, HASH_BYTES);
    return part ? begin_state(s, record, n, part) : begin_page(s, record, n);
}

int saved_give_end(struct quern_sequence *s)
{
    int status = s->e->giving.n ? end_parts(s) : OK;
    if (status) return status;
    s->saved.next++;
    memcpy(s->saved.before, s->e->giving.own, HASH_BYTES);
    return OK;
}

int saved_give(struct quern_sequence *s, uint8_t *record, uint64_t n)
{
    int status = saved_give_begin(s, record, n);
    return status ? status : saved_give_end(s);
}

/* Which record of the state is next, from 1; 0 if a page is next. */
static int part_of(const struct quern_sequence *s)
{
    return max_int(s->saved.next - s->turn.kv.length / KV_PAGE + 1, 0);
}

/* Writes what follows the head of the next record. */
static void get_part(struct quern_sequence *s, int part, uint8_t *out)
{
    const struct backend_ops *op = s->e->be->ops;
    const struct kv_seq *kv = &s->turn.kv;
    uint64_t from, size;
    memset(out + SAVED_HEAD, 0, (size_t)(saved_record(s->e) - SAVED_HEAD));
    if (part > 1) {
        slot_range(s->e, part, &from, &size);
        op->slot_get(s->e->be, kv->slot, from, size, out + SAVED_HEAD);
    } else if (!part || kv->length % KV_PAGE) {
        op->kv_get(s->e->be, kv->pages[s->saved.next], part ? kv->length % KV_PAGE : KV_PAGE, out + SAVED_HEAD);
    }
}

/* A device writes to `out` later, so `out` must stay the same until then. */
static int begin_take(struct quern_sequence *s, uint8_t *out)
{
    struct quern_engine *e = s->e;
    int part = part_of(s), status = engine_check(e);
    if (status) return status;
    if (!is_held(s) || !s->listed) return fail_held(e);
    if (part > (s->turn.kv.slot < 0 ? 0 : state_records(e)))
        return fail(&e->error, ERR_EMPTY, "saved", 0, "The conversation has no further whole page.");
    get_part(s, part, out);
    e->be->ops->submit(e->be, NULL, 0);
    if (e->be->late) e->awaits = AWAITED_PAGE;
    s->saved.taking = true;
    return e->be->late ? NEED_MORE : OK;
}

static void make_head(const struct quern_sequence *s, int part, uint8_t *out)
{
    const uint32_t numbers[] = {(uint32_t)s->saved.next, (uint32_t)part}, length = (uint32_t)s->turn.kv.length;
    int first = part ? s->turn.kv.length / KV_PAGE * KV_PAGE : s->saved.next * KV_PAGE,
        rows = part ? s->turn.kv.length - first : KV_PAGE;
    memset(out, 0, SAVED_HEAD);
    put(out, s->ids + first, (size_t)rows * sizeof *s->ids);
    put(put(out + AT_NUMBER, numbers, sizeof numbers), s->saved.before, HASH_BYTES);
    if (part) put(out + AT_LENGTH, &length, sizeof length);
}

int saved_take(struct quern_sequence *s, uint8_t *out)
{
    struct quern_engine *e = s->e;
    int status = s->saved.taking ? engine_check(e) : begin_take(s, out);
    if (status) return status;
    make_head(s, part_of(s), out);
    hash_record(out, saved_record(e), s->saved.before);
    memcpy(out + AT_HASH, s->saved.before, HASH_BYTES);
    engine_beat(e);
    s->saved.taking = false;
    s->saved.next++;
    return OK;
}
