/* SPDX-License-Identifier: MIT
 *
 * Pages: references, the list of unused ones (oldest first), and the table that finds the pages after a given one.
 */
#include "engine/kvcache.h"

#include <string.h>

enum { NONE = -1 };

struct page {
    int refs;              /* sequences that use it */
    int filled;            /* positions whose content is known */
    uint64_t serial;       /* unique for every new content; 0: never used */
    uint64_t parent;       /* serial of the page before, or its scope's root */
    int32_t next_sibling;  /* in the bucket of its parent's serial */
    int32_t older, newer;  /* in the list of unused pages */
    uint64_t ids[KV_PAGE];
};

struct kv_cache {
    struct mem *mem;
    int n_pages, n_unused;
    struct page *pages;    /* [n_pages] */
    int32_t *buckets;      /* [n_buckets], a power of two; heads of sibling lists */
    uint32_t n_buckets;
    int32_t oldest, newest; /* unused pages */
    uint64_t last_serial;
    kv_copy_fn *copy;
    void *context;
};

/* --- unused pages --------------------------------------------------------------------------------------- */

/* Into the list between two neighbours. */
static void unused_insert(struct kv_cache *c, int32_t i, int32_t older, int32_t newer)
{
    c->pages[i].older = older;
    c->pages[i].newer = newer;
    *(older == NONE ? &c->oldest : &c->pages[older].newer) = i;
    *(newer == NONE ? &c->newest : &c->pages[newer].older) = i;
    c->n_unused++;
}

static void unused_remove(struct kv_cache *c, int32_t i)
{
    struct page *p = &c->pages[i];
    if (p->older != NONE) c->pages[p->older].newer = p->newer;
    else c->oldest = p->newer;
    if (p->newer != NONE) c->pages[p->newer].older = p->older;
    else c->newest = p->older;
    c->n_unused--;
}

static void page_retain(struct kv_cache *c, int32_t i)
{
    if (c->pages[i].refs++ == 0) unused_remove(c, i);
}

/* --- chains ----------------------------------------------------------------------------------------------- */

static int32_t *bucket_of(const struct kv_cache *c, uint64_t parent)
{
    return &c->buckets[(uint32_t)(parent * 0x9E3779B97F4A7C15u >> 32) & (c->n_buckets - 1)];
}

static void chain_insert(struct kv_cache *c, int32_t i)
{
    int32_t *head = bucket_of(c, c->pages[i].parent);
    c->pages[i].next_sibling = *head;
    *head = i;
}

/* Forgets the page's content. What came after it can no longer be found, and ages away. */
static void chain_remove(struct kv_cache *c, int32_t i)
{
    struct page *p = &c->pages[i];
    if (!p->serial) return;
    int32_t *link = bucket_of(c, p->parent);
    while (*link != i) link = &c->pages[*link].next_sibling;
    *link = p->next_sibling;
    p->serial = 0;
    p->filled = 0;
}

/* One user less. The last one leaves it as the newest unused page, or the oldest: if it is wanted first, and where it has no content. */
static void page_release(struct kv_cache *c, int32_t i, bool first)
{
    struct page *p = &c->pages[i];
    if (--p->refs > 0) return;
    if (!p->filled) chain_remove(c, i);
    if (first || !p->filled) unused_insert(c, i, NONE, c->oldest);
    else unused_insert(c, i, c->newest, NONE);
}

/* A page for new content after `parent`, with one reference; NONE when all are in use. */
static int32_t page_take(struct kv_cache *c, uint64_t parent)
{
    int32_t i = c->oldest;
    if (i == NONE) return NONE;
    chain_remove(c, i);
    page_retain(c, i);
    c->pages[i].serial = ++c->last_serial;
    c->pages[i].parent = parent;
    chain_insert(c, i);
    return i;
}

static int common(const struct page *p, const uint64_t *ids, int n)
{
    int most = min_int(p->filled, n), k = 0;
    while (k < most && p->ids[k] == ids[k]) k++;
    return k;
}

/* The known page after `parent` that agrees with most of ids [n]; *agreed is how many. */
static int32_t chain_find(const struct kv_cache *c, uint64_t parent, const uint64_t *ids, int n, int *agreed)
{
    int32_t best = NONE;
    *agreed = 0;
    for (int32_t i = *bucket_of(c, parent); i != NONE; i = c->pages[i].next_sibling) {
        if (c->pages[i].parent != parent) continue;
        int k = common(&c->pages[i], ids, n);
        if (k > *agreed) best = i, *agreed = k;
    }
    return best;
}

/* --- life -------------------------------------------------------------------------------------------------- */

static uint32_t bucket_count(int n_pages)
{
    uint32_t n = 16;
    while (n < (uint32_t)n_pages) n *= 2;
    return n;
}

uint64_t kv_cost(int n_pages)
{
    return mem_cost(sizeof(struct kv_cache)) + mem_cost((uint64_t)n_pages * sizeof(struct page)) +
           mem_cost((uint64_t)bucket_count(n_pages) * sizeof(int32_t));
}

struct kv_cache *kv_new(struct mem *m, int n_pages, kv_copy_fn *copy, void *context)
{
    struct kv_cache *c = mem_alloc(m, sizeof *c);
    if (!c) return NULL;
    uint32_t n_buckets = bucket_count(n_pages);
    *c = (struct kv_cache){.mem = m, .n_pages = n_pages, .n_buckets = n_buckets, .oldest = NONE, .newest = NONE, .copy = copy, .context = context};
    c->pages = mem_array(m, (uint64_t)n_pages, sizeof *c->pages);
    c->buckets = mem_array(m, n_buckets, sizeof *c->buckets);
    if (!c->pages || !c->buckets) {
        kv_free(c);
        return NULL;
    }
    for (uint32_t b = 0; b < n_buckets; b++) c->buckets[b] = NONE;
    for (int32_t i = 0; i < n_pages; i++) unused_insert(c, i, c->newest, NONE);
    return c;
}

void kv_free(struct kv_cache *c)
{
    if (!c) return;
    mem_free(c->mem, c->pages);
    mem_free(c->mem, c->buckets);
    mem_free(c->mem, c);
}

int kv_seq_open(struct kv_cache *c, int max_length, uint32_t scope, struct kv_seq *out)
{
    int max_pages = (max_length + KV_PAGE - 1) / KV_PAGE;
    *out = (struct kv_seq){.cache = c, .scope = scope, .pages = mem_array(c->mem, (uint64_t)max_pages, sizeof(int32_t))};
    return out->pages ? OK : ERR_MEM_LOAD;
}

void kv_seq_close(struct kv_seq *s)
{
    if (!s->cache) return;
    kv_clear(s);
    mem_free(s->cache->mem, s->pages);
    *s = (struct kv_seq){0};
}

/* The last page first, so that the start of a conversation is forgotten last. */
static void drop_pages(struct kv_seq *s, int keep)
{
    while (s->n_pages > keep) page_release(s->cache, s->pages[--s->n_pages], false);
}

void kv_clear(struct kv_seq *s)
{
    drop_pages(s, 0);
    s->length = 0;
}

/* Whether a page besides `next` comes after page i. */
static bool followed_too(const struct kv_cache *c, int32_t i, int32_t next)
{
    uint64_t serial = c->pages[i].serial;
    for (int32_t k = *bucket_of(c, serial); k != NONE; k = c->pages[k].next_sibling)
        if (k != next && c->pages[k].parent == serial) return true;
    return false;
}

void kv_clear_first(struct kv_seq *s)
{
    int own = s->n_pages; /* pages from here on are this sequence's way alone */
    int32_t next = NONE;
    while (own > 0 && !followed_too(s->cache, s->pages[own - 1], next)) next = s->pages[--own];
    for (int i = own; i < s->n_pages; i++) page_release(s->cache, s->pages[i], true); /* so that the last one is the oldest */
    s->n_pages = own;
    kv_clear(s);
}

/* --- the prefix ---------------------------------------------------------------------------------------------- */

/* What the first page's parent is called: above all serials, which count up from 1. */
static uint64_t root_of(uint32_t scope) { return ~(uint64_t)scope; }

static uint64_t last_serial_of(const struct kv_seq *s)
{
    return s->n_pages ? s->cache->pages[s->pages[s->n_pages - 1]].serial : root_of(s->scope);
}

static void append(struct kv_seq *s, int32_t i, int n)
{
    s->pages[s->n_pages++] = i;
    s->length += n;
}

/* Appends the first k positions of page i: the page itself when nobody else uses it and all of it is wanted, else a copy. */
static void append_partial(struct kv_seq *s, int32_t i, int k)
{
    struct kv_cache *c = s->cache;
    struct page *p = &c->pages[i];
    bool own = k == p->filled && p->refs == 0;
    page_retain(c, i);
    if (own) {
        append(s, i, k);
        return;
    }
    int32_t copy = page_take(c, p->parent);
    if (copy != NONE) {
        c->copy(c->context, copy, i, k);
        memcpy(c->pages[copy].ids, p->ids, (size_t)k * sizeof *p->ids);
        c->pages[copy].filled = k;
        append(s, copy, k);
    }
    page_release(c, i, false);
}

/* The known page whose content is the KV_PAGE ids after `parent`; NONE. */
static int32_t find_whole(const struct kv_cache *c, uint64_t parent, const uint64_t *ids)
{
    int agreed;
    int32_t i = chain_find(c, parent, ids, KV_PAGE, &agreed);
    return agreed == KV_PAGE ? i : NONE;
}

int kv_extend(struct kv_seq *s, const uint64_t *ids, int n)
{
    while (n - s->length >= KV_PAGE) {
        int32_t i = find_whole(s->cache, last_serial_of(s), ids + s->length);
        if (i == NONE) break;
        page_retain(s->cache, i);
        append(s, i, KV_PAGE);
    }
    return s->length;
}

int kv_extend_part(struct kv_seq *s, const uint64_t *ids, int n)
{
    int agreed;
    int32_t i = chain_find(s->cache, last_serial_of(s), ids + s->length, min_int(n - s->length, KV_PAGE), &agreed);
    if (i != NONE) append_partial(s, i, agreed);
    return s->length;
}

int kv_match(struct kv_seq *s, const uint64_t *ids, int n)
{
    kv_clear(s);
    kv_extend(s, ids, n);
    return kv_extend_part(s, ids, n);
}

int kv_known(const struct kv_cache *c, uint32_t scope, const uint64_t *ids, int n)
{
    uint64_t parent = root_of(scope);
    for (int at = 0, agreed;; at += agreed) {
        int32_t i = chain_find(c, parent, ids + at, min_int(n - at, KV_PAGE), &agreed);
        if (agreed < KV_PAGE) return at + agreed;
        parent = c->pages[i].serial;
    }
}

int kv_probe(const struct kv_cache *c, uint32_t scope, const uint64_t *ids, int n, int *unused)
{
    uint64_t parent = root_of(scope);
    int known = 0;
    *unused = 0;
    for (; n - known * KV_PAGE >= KV_PAGE; known++) {
        int32_t i = find_whole(c, parent, ids + known * KV_PAGE);
        if (i == NONE) break;
        *unused += c->pages[i].refs == 0;
        parent = c->pages[i].serial;
    }
    return known;
}

int kv_reserve(struct kv_seq *s, int n)
{
    int before = s->n_pages, wanted = (s->length + n + KV_PAGE - 1) / KV_PAGE;
    while (s->n_pages < wanted) {
        int32_t i = page_take(s->cache, last_serial_of(s));
        if (i == NONE) {
            drop_pages(s, before);
            return ERR_MEM_KV;
        }
        s->pages[s->n_pages++] = i;
    }
    return OK;
}

void kv_trim(struct kv_seq *s) { drop_pages(s, (s->length + KV_PAGE - 1) / KV_PAGE); }

void kv_commit(struct kv_seq *s, const uint64_t *ids, int n)
{
    for (int i = 0; i < n; i++, s->length++) {
        struct page *p = &s->cache->pages[s->pages[s->length / KV_PAGE]];
        p->ids[s->length % KV_PAGE] = ids[i];
        p->filled = s->length % KV_PAGE + 1;
    }
}

int kv_pages_used(const struct kv_cache *c) { return c->n_pages - c->n_unused; }
int kv_users(const struct kv_cache *c, int32_t page) { return c->pages[page].refs; }
int kv_pages_unused(const struct kv_cache *c) { return c->n_unused; }

int kv_pages_remembered(const struct kv_cache *c)
{
    int n = 0;
    for (int32_t i = c->newest; i != NONE; i = c->pages[i].older) n += c->pages[i].filled > 0;
    return n;
}

/* --- tests ------------------------------------------------------------------------------------------------------ */

/* The page with this serial; NONE. */
static int32_t page_of(const struct kv_cache *c, uint64_t serial)
{
    for (int32_t i = 0; i < c->n_pages; i++)
        if (c->pages[i].serial == serial) return i;
    return NONE;
}

void kv_shuffle(struct kv_cache *c, uint64_t seed)
{
    for (int round = c->n_unused; round > 0; round--) { /* makes a page picked at random the newest, and then those before it in its chain */
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int32_t i = c->oldest;
        for (int steps = (int)(seed >> 33) % round; steps > 0; steps--) i = c->pages[i].newer;
        for (; i != NONE && c->pages[i].refs == 0; i = c->pages[i].serial ? page_of(c, c->pages[i].parent) : NONE) {
            unused_remove(c, i);
            unused_insert(c, i, c->newest, NONE);
        }
    }
}

void kv_each_forgotten(struct kv_cache *c, void (*fn)(void *context, int page), void *context)
{
    for (int32_t i = c->oldest; i != NONE; i = c->pages[i].newer) {
        chain_remove(c, i);
        fn(context, i);
    }
}

/* Whether `users` [n_pages] is how many use each page. */
static bool check_users(const struct kv_cache *c, const struct kv_seq *const *seqs, int n_seqs, int *users)
{
    memset(users, 0, (size_t)c->n_pages * sizeof *users);
    for (int s = 0; s < n_seqs; s++)
        for (int i = 0; i < seqs[s]->n_pages; i++) users[seqs[s]->pages[i]]++;
    for (int32_t i = 0; i < c->n_pages; i++)
        if (users[i] != c->pages[i].refs) return false;
    return true;
}

/* Whether every page with content can be found: in the chain that begins at its scope's root. */
static bool check_chains(const struct kv_cache *c)
{
    int known = 0, linked = 0;
    for (int32_t i = 0; i < c->n_pages; i++) {
        const struct page *p = &c->pages[i];
        if (!p->serial) continue;
        known++;
        linked += p->parent >= root_of(UINT32_MAX);
        for (int32_t k = *bucket_of(c, p->serial); k != NONE; k = c->pages[k].next_sibling) linked += c->pages[k].parent == p->serial;
    }
    return known == linked;
}

bool kv_check(const struct kv_cache *c, const struct kv_seq *const *seqs, int n_seqs, int *scratch)
{
    int unused = 0, steps = 0;
    for (int32_t i = c->oldest; i != NONE && steps <= c->n_pages; i = c->pages[i].newer, steps++) unused += c->pages[i].refs == 0;
    if (steps != c->n_unused || unused != steps || !check_users(c, seqs, n_seqs, scratch)) return false;
    for (int32_t i = 0; i < c->n_pages; i++) unused -= scratch[i] == 0;
    for (int s = 0; s < n_seqs; s++)
        for (int i = 0; i < seqs[s]->n_pages; i++)
            if (c->pages[seqs[s]->pages[i]].parent != (i ? c->pages[seqs[s]->pages[i - 1]].serial : root_of(seqs[s]->scope))) return false;
    return unused == 0 && check_chains(c);
}
