/* SPDX-License-Identifier: MIT
 *
 * The layout of kept conversations, little-endian:
 *
 *   header  "QUERNKV\0", u32 version, arithmetic, positions of a page, type of keys and values, u64 bytes of a page, of a record, u32 layers,
 *           kv heads, head dim, 0, fingerprint [16], u16 length of the name, the name, zeros; hash [16] of the 4,080 bytes before
 *   record  u64 ids [32], u32 number, 0, hash [16] of the record before or the header, hash [16] of this record with zeros in its
 *           place, zeros up to 512, the page, zeros up to a multiple of 4,096
 */
#include "engine/kept.h"

#include "base/hash.h"
#include "engine/plan.h"
#include "engine/sequence.h"

#include <string.h>

/* ARITHMETIC: MODEL.md, raised when bits of keys or values change. */
enum { VERSION = 1, ARITHMETIC = 1, ALIGN = 4096 };
enum { AT_NAME = 72, AT_HEADER_HASH = KEPT_HEADER - HASH_BYTES };                      /* in the header */
enum { AT_NUMBER = KV_PAGE * 8, AT_BEFORE = AT_NUMBER + 8, AT_HASH = AT_BEFORE + HASH_BYTES }; /* in a record */

static const uint8_t magic[8] = "QUERNKV";

uint64_t kept_record(const struct quern_engine *e)
{
    if (!e->kv || !e->be->ops->kv_bytes) return 0;
    return (KEPT_HEAD + e->be->ops->kv_bytes(e->be) + ALIGN - 1) / ALIGN * ALIGN;
}

/* --- the model's fingerprint --------------------------------------------------------------------------------------- */

/* Parts are hashed by all threads, each its own; what is added up does not depend on their order. */
struct printing {
    const struct quern_engine *e;
    uint64_t sum[HASH_BYTES / 8];
};

struct hand {
    const struct quern_engine *e;
    int thread, n_threads, part;
    uint64_t sum[HASH_BYTES / 8];
};

/* A part's number, type, shape and content. */
static void add_part(void *context, const struct weight *w, struct bytes vector)
{
    struct hand *h = context;
    const struct backend *be = h->e->be;
    struct {
        uint64_t part, rows, cols;
        uint8_t type[32], content[HASH_BYTES];
    } facts = {.part = (uint64_t)h->part};
    uint64_t hash[HASH_BYTES / 8];
    if (h->part++ % h->n_threads != h->thread) return;
    if (w) {
        struct weight_facts f = be->ops->weight_facts(be, w);
        facts.rows = (uint64_t)f.rows;
        facts.cols = (uint64_t)f.cols;
        memcpy(facts.type, f.type->name, strlen(f.type->name));
        be->ops->weight_hash(be, w, facts.content);
    } else {
        facts.cols = vector.size;
        hash128(vector.data, vector.size, facts.content);
    }
    hash128(&facts, sizeof facts, (uint8_t *)hash);
    for (int i = 0; i < HASH_BYTES / 8; i++) h->sum[i] += hash[i];
}

static void add_parts(void *arg, int thread, int n_threads)
{
    struct printing *p = arg;
    struct hand h = {.e = p->e, .thread = thread, .n_threads = n_threads};
    model_each(p->e->model, add_part, &h);
    if (quern_sees(p->e)) vision_each(p->e->sight->vision, add_part, &h);
    for (int i = 0; i < HASH_BYTES / 8; i++) __atomic_fetch_add(&p->sum[i], h.sum[i], __ATOMIC_RELAXED);
}

static void make_fingerprint(struct quern_engine *e)
{
    const struct model_config *c = &e->model->config;
    struct printing p = {.e = e};
    pool_run(e->pool, add_parts, &p);
    struct {
        uint64_t parts[HASH_BYTES / 8];
        double config[16];
        char architecture[32];
    } all = {.config = {c->n_layers, c->dim, c->ffn_dim, c->n_heads, c->n_kv_heads, c->head_dim, c->vocab_size, c->n_experts, c->n_used,
                        c->expert_dim, c->renormalise, c->rope_dim, c->rope_theta, c->rope_factor, (double)c->eps, c->tied}};
    memcpy(all.parts, p.sum, sizeof all.parts);
    memcpy(all.architecture, e->model->ops->architecture, strlen(e->model->ops->architecture));
    hash128(&all, sizeof all, e->fingerprint);
    e->has_fingerprint = true;
}

/* --- the header ---------------------------------------------------------------------------------------------------- */

static uint8_t *put(uint8_t *to, const void *from, size_t n) { return (uint8_t *)memcpy(to, from, n) + n; }

static void make_header(struct quern_engine *e, struct bytes name, uint8_t *out)
{
    const struct kv_shape shape = plan_shape(e, e->context_size);
    const uint32_t first[] = {VERSION, ARITHMETIC, KV_PAGE, (uint32_t)shape.type};
    const uint64_t sizes[] = {e->be->ops->kv_bytes(e->be), kept_record(e)};
    const uint32_t last[] = {(uint32_t)shape.n_layers, (uint32_t)shape.n_kv_heads, (uint32_t)shape.head_dim, 0};
    const uint16_t length = (uint16_t)name.size;
    if (!e->has_fingerprint) make_fingerprint(e);
    memset(out, 0, KEPT_HEADER);
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
    return fail(&e->error, ERR_BUSY, "held", 0, "Pages are kept and given after a conversation has been set and held, and before its reply begins.");
}

static bool is_held(const struct quern_sequence *s) { return s->outputs == QUERN_HELD && !s->replies && s->turn.n > 0; }

int kept_open(struct quern_sequence *s, struct bytes name, uint8_t *out)
{
    struct quern_engine *e = s->e;
    if (!kept_record(e) || name.size < 1 || name.size > KEPT_NAME)
        return fail(&e->error, ERR_PARAM, "name", 0, "The name of a kept conversation has 1 to %d bytes, not %zu.", KEPT_NAME, name.size);
    if (!is_held(s)) return fail_held(e);
    sequence_hold(s);
    make_header(e, name, out);
    s->kept = (struct kept){0};
    memcpy(s->kept.before, out + AT_HEADER_HASH, HASH_BYTES);
    return OK;
}

int kept_name(const uint8_t *header, struct bytes *name)
{
    uint8_t hash[HASH_BYTES];
    size_t n = load_u16(header + AT_NAME);
    hash128(header, AT_HEADER_HASH, hash);
    if (memcmp(header, magic, sizeof magic) || n < 1 || n > KEPT_NAME || memcmp(hash, header + AT_HEADER_HASH, HASH_BYTES)) return ERR_FORMAT;
    *name = (struct bytes){header + AT_NAME + 2, n};
    return OK;
}

/* --- records ------------------------------------------------------------------------------------------------------- */

static int fail_record(const struct quern_sequence *s, const char *what)
{
    return fail(&s->e->error, ERR_FORMAT, "kept", (uint64_t)s->kept.next, "Record %d of a kept conversation %s.", s->kept.next, what);
}

/* The hash of a record whose own place for it is zero. */
static void hash_record(uint8_t *record, uint64_t n, uint8_t *out)
{
    memset(record + AT_HASH, 0, HASH_BYTES);
    hash128(record, (size_t)n, out);
}

/* Checks the whole record and takes its page. */
static int link_page(struct quern_sequence *s, uint8_t *record, uint64_t n)
{
    struct quern_engine *e = s->e;
    struct kv_seq *kv = &s->turn.kv;
    uint8_t hash[HASH_BYTES], own[HASH_BYTES];
    memcpy(own, record + AT_HASH, HASH_BYTES);
    hash_record(record, n, hash);
    memcpy(record + AT_HASH, own, HASH_BYTES);
    if (memcmp(hash, own, HASH_BYTES)) return fail_record(s, "is damaged");
    if (kv_reserve(kv, KV_PAGE)) return fail(&e->error, ERR_BUSY, "pages", 0, "No page is unused; what is kept is read anew.");
    e->be->ops->kv_set(e->be, kv->pages[kv->length / KV_PAGE], record + KEPT_HEAD);
    kv_commit(kv, s->ids + kv->length, KV_PAGE);
    return OK;
}

int kept_give(struct quern_sequence *s, uint8_t *record, uint64_t n)
{
    struct quern_engine *e = s->e;
    int at = s->kept.next * KV_PAGE, length = s->turn.kv.length;
    bool whole = n == kept_record(e);
    if (!is_held(s) || !s->listed) return fail_held(e);
    if (n < KEPT_HEAD) return fail_record(s, "is cut");
    if (load_u64(record + AT_NUMBER) != (uint64_t)s->kept.next || memcmp(record + AT_BEFORE, s->kept.before, HASH_BYTES))
        return fail_record(s, "does not follow the one before it");
    if (at + KV_PAGE > s->turn.n || memcmp(record, s->ids + at, KV_PAGE * sizeof *s->ids))
        return fail(&e->error, ERR_EMPTY, "kept", 0, "What is kept goes on otherwise than the conversation.");
    bool wanted = whole && at >= length && at + KV_PAGE < s->turn.n; /* its last token is always computed */
    int status = !wanted ? OK : at > length ? fail(&e->error, ERR_BUSY, "pages", 0, "Pages of it were taken for others.") : link_page(s, record, n);
    if (status) return status;
    s->kept.next++;
    memcpy(s->kept.before, record + AT_HASH, HASH_BYTES);
    return OK;
}

int kept_take(struct quern_sequence *s, uint8_t *out)
{
    struct quern_engine *e = s->e;
    const struct kv_seq *kv = &s->turn.kv;
    const uint32_t number[] = {(uint32_t)s->kept.next, 0};
    uint64_t n = kept_record(e), page = e->be->ops->kv_bytes(e->be);
    int at = s->kept.next * KV_PAGE;
    if (!is_held(s) || !s->listed) return fail_held(e);
    if (at + KV_PAGE > kv->length) return fail(&e->error, ERR_EMPTY, "kept", 0, "The conversation has no further whole page.");
    memset(out, 0, KEPT_HEAD);
    put(put(put(out, s->ids + at, KV_PAGE * sizeof *s->ids), number, sizeof number), s->kept.before, HASH_BYTES);
    e->be->ops->kv_get(e->be, kv->pages[s->kept.next], out + KEPT_HEAD);
    memset(out + KEPT_HEAD + page, 0, (size_t)(n - KEPT_HEAD - page));
    hash_record(out, n, s->kept.before);
    memcpy(out + AT_HASH, s->kept.before, HASH_BYTES);
    s->kept.next++;
    return OK;
}
