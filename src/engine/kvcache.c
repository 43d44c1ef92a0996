/* SPDX-License-Identifier: MIT
 *
 * Pages: references, the list of unused pages (oldest first), and the table that finds the pages after a given page.
 */
#include "engine/kvcache.h"

#include <string.h>

enum { NONE = -1 };

struct page {
    int refs;              /* sequences that use it */
    int filled;            /* positions whose content is known */
    uint64_t serial;       /* unique for every new content; 0: never used */
    uint64_t parent;       /* serial of the page before, or its scope's root */
    int32_t up;            /* the page before, as long as it has this serial; NONE: a root */
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
    struct slots slots;
    kv_copy_fn *copy;
    void *context;
};

/* --- unused pages --------------------------------------------------------------------------------------- */

/* Inserts page i between two neighbours of the list. */
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

/* Forgets the page's content. Pages after it can no longer be found, and are reused as they get old. */
static void chain_remove(struct kv_cache *c, int32_t i)
{
    struct page *p = &c->pages[i];
    if (!p->serial) return;
    int32_t *link = bucket_of(c, p->parent);
    while (*link != i) link = &c->pages[*link].next_sibling;
    *link = p->next_sibling;
    p->serial = 0;
    p->filled = 0;
    slots_forget(&c->slots, i);
}

/* Drops one reference. After the last one the page is the newest unused page, or with `first` or without content the
 * oldest. */
static void page_release(struct kv_cache *c, int32_t i, bool first)
{
    struct page *p = &c->pages[i];
    if (--p->refs > 0) return;
    if (!p->filled) chain_remove(c, i);
    if (first || !p->filled) unused_insert(c, i, NONE, c->oldest);
    else unused_insert(c, i, c->newest, NONE);
}

/* Takes a page for new content after page `up`, whose serial is `parent`, with one reference. NONE if all pages are in
 * use. */
static int32_t page_take(struct kv_cache *c, uint64_t parent, int32_t up)
{
    int32_t i = c->oldest;
    if (i == NONE) return NONE;
    chain_remove(c, i);
    page_retain(c, i);
    c->pages[i].serial = ++c->last_serial;
    c->pages[i].parent = parent;
    c->pages[i].up = up;
    chain_insert(c, i);
    return i;
}

static int common(const struct page *p, const uint64_t *ids, int n)
{
    int most = min_int(p->filled, n), k = 0;
    while (k < most && p->ids[k] == ids[k]) k++;
    return k;
}

/* The known page after `parent` that agrees with the most of ids [n]; *agreed: with how many. */
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

uint64_t kv_cost(int n_pages, int n_slots)
{
    return mem_cost(sizeof(struct kv_cache)) + mem_cost((uint64_t)n_pages * sizeof(struct page)) +
           mem_cost((uint64_t)bucket_count(n_pages) * sizeof(int32_t)) + slots_cost(n_slots);
}

struct kv_cache *kv_new(struct mem *m, int n_pages, int n_slots, kv_copy_fn *copy, void *context)
{
    struct kv_cache *c = mem_alloc(m, sizeof *c);
    if (!c) return NULL;
    uint32_t n_buckets = bucket_count(n_pages);
    *c = (struct kv_cache){.mem = m,
                           .n_pages = n_pages,
                           .n_buckets = n_buckets,
                           .oldest = NONE,
                           .newest = NONE,
                           .copy = copy,
                           .context = context};
    c->pages = mem_array(m, (uint64_t)n_pages, sizeof *c->pages);
    c->buckets = mem_array(m, n_buckets, sizeof *c->buckets);
    if (!c->pages || !c->buckets || slots_open(&c->slots, m, n_slots)) {
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
    slots_close(&c->slots);
    mem_free(c->mem, c);
}

int kv_seq_open(struct kv_cache *c, int max_length, uint32_t scope, struct kv_seq *out)
{
    int max_pages = (max_length + KV_PAGE - 1) / KV_PAGE;
    *out = (struct kv_seq){.cache = c, .scope = scope, .slot = NONE, .next = NONE, .mid = NONE};
    out->pages = mem_array(c->mem, (uint64_t)max_pages, sizeof(int32_t));
    return out->pages ? OK : ERR_MEM_LOAD;
}

void kv_seq_close(struct kv_seq *s)
{
    if (!s->cache) return;
    kv_clear(s);
    mem_free(s->cache->mem, s->pages);
    *s = (struct kv_seq){0};
}

/* Drops the last page first, so that the beginning of a conversation is forgotten last. */
static void drop_pages(struct kv_seq *s, int keep)
{
    while (s->n_pages > keep) page_release(s->cache, s->pages[--s->n_pages], false);
}

/* --- the state ------------------------------------------------------------------------------------------------ */

static void drop_slot(struct kv_seq *s, int32_t *slot)
{
    slots_let_go(&s->cache->slots, *slot);
    *slot = NONE;
}

/* Drops the slots that the step was to write. */
static void drop_step(struct kv_seq *s)
{
    drop_slot(s, &s->next);
    drop_slot(s, &s->mid);
    s->end_as = KEPT_NOT;
}

/* Makes a snapshot of the state at a computed length. */
static void keep(const struct kv_seq *s, int32_t slot, int length, enum kept_as as)
{
    if (slot == NONE || !length || as == KEPT_NOT) return;
    slots_keep(&s->cache->slots, (struct snapshot){slot, s->pages[(length - 1) / KV_PAGE], length, as}, as);
}

static void leave_state(struct kv_seq *s)
{
    drop_step(s);
    keep(s, s->slot, s->length, KEPT_LEAST);
    drop_slot(s, &s->slot);
}

bool kv_lacks_state(const struct kv_seq *s) { return s->cache->slots.n && s->length && s->slot == NONE; }

/* --- letting go ----------------------------------------------------------------------------------------------- */

void kv_clear(struct kv_seq *s)
{
    leave_state(s);
    drop_pages(s, 0);
    s->length = 0;
}

void kv_cut(struct kv_seq *s, int n)
{
    leave_state(s);
    drop_pages(s, n / KV_PAGE);
    s->length = n;
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
    int own = s->n_pages; /* pages from here on are followed by pages of this sequence only */
    int32_t next = NONE;
    leave_state(s);
    while (own > 0 && !followed_too(s->cache, s->pages[own - 1], next)) next = s->pages[--own];
    for (int i = own; i < s->n_pages; i++) { /* in this order, so that the last page is the oldest */
        slots_age(&s->cache->slots, s->pages[i]);
        page_release(s->cache, s->pages[i], true);
    }
    s->n_pages = own;
    kv_clear(s);
}

/* --- the prefix ---------------------------------------------------------------------------------------------- */

/* The parent of the first page: greater than all serials, which count up from 1. */
static uint64_t root_of(uint32_t scope) { return ~(uint64_t)scope; }

static int32_t last_page_of(const struct kv_seq *s) { return s->n_pages ? s->pages[s->n_pages - 1] : NONE; }

static uint64_t last_serial_of(const struct kv_seq *s)
{
    return s->n_pages ? s->cache->pages[last_page_of(s)].serial : root_of(s->scope);
}

static void append(struct kv_seq *s, int32_t i, int n)
{
    s->pages[s->n_pages++] = i;
    s->length += n;
}

/* Appends the first k positions of page i: the page itself if it is unused and all of its content is wanted, otherwise
 * a copy. */
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
    int32_t copy = page_take(c, p->parent, p->up);
    if (copy != NONE) {
        c->copy(c->context, copy, i, k);
        memcpy(c->pages[copy].ids, p->ids, (size_t)k * sizeof *p->ids);
        c->pages[copy].filled = k;
        slots_copy(&c->slots, i, copy, s->length + k);
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

/* --- the prefix that a model with states can continue from ------------------------------------------------------- */

/* Whether ids lead from the page with serial `parent`, which ends at `from`, to a snapshot. Goes backwards from the
 * snapshot, since several pages with equal content may follow the same page. */
static bool leads_to(const struct kv_cache *c, const struct snapshot *k, uint64_t parent, int from, const uint64_t *ids)
{
    const struct page *p = &c->pages[k->page];
    for (int at = (k->length - 1) / KV_PAGE * KV_PAGE;; at -= KV_PAGE) {
        int n = min_int(k->length - at, KV_PAGE);
        if (common(p, ids + at, n) < n) return false;
        if (at == from) return p->parent == parent;
        if (p->up == NONE || c->pages[p->up].serial != p->parent) return false;
        p = &c->pages[p->up];
    }
}

/* The longest snapshot that ids [n] lead to, or NULL. whole: only snapshots that end with a page. */
static const struct snapshot *best_snapshot(const struct kv_cache *c, uint64_t parent, int from, const uint64_t *ids,
                                            int n, bool whole)
{
    const struct snapshot *best = NULL;
    for (int i = 0; i < c->slots.n_snapshots; i++) {
        const struct snapshot *k = &c->slots.snapshots[i];
        if (k->length <= (best ? best->length : from) || k->length > n || (whole && k->length % KV_PAGE)) continue;
        if (leads_to(c, k, parent, from, ids)) best = k;
    }
    return best;
}

/* Lets a sequence whose last page is whole continue from a snapshot. Returns false if no page is left for a copy of the
 * snapshot's last page. */
static bool resume_at(struct kv_seq *s, struct snapshot k)
{
    struct kv_cache *c = s->cache;
    int before = s->n_pages, whole = k.length / KV_PAGE, part = k.length % KV_PAGE;
    slots_hold(&c->slots, k.slot);
    int32_t page = part ? c->pages[k.page].up : k.page;
    for (int i = whole; i-- > before; page = c->pages[page].up) page_retain(c, s->pages[i] = page);
    s->n_pages = whole;
    s->length = whole * KV_PAGE;
    if (part) append_partial(s, k.page, part);
    if (s->length < k.length) {
        drop_pages(s, before);
        s->length = before * KV_PAGE;
        slots_let_go(&c->slots, k.slot);
        return false;
    }
    /* the conversation continues after this snapshot; otherwise its mark raises the rank again */
    slots_lower(&c->slots, k.slot);
    keep(s, k.slot, k.length, KEPT_LESS);
    slots_let_go(&c->slots, s->slot);
    s->slot = k.slot;
    return true;
}

static int resume(struct kv_seq *s, const uint64_t *ids, int n, bool whole)
{
    const struct snapshot *k = best_snapshot(s->cache, last_serial_of(s), s->length, ids, n, whole);
    if (k && !resume_at(s, *k) && (k = best_snapshot(s->cache, last_serial_of(s), s->length, ids, n, true)))
        resume_at(s, *k);
    return s->length;
}

/* --- the longest prefix ---------------------------------------------------------------------------------------- */

int kv_extend(struct kv_seq *s, const uint64_t *ids, int n)
{
    if (s->cache->slots.n) return resume(s, ids, n, true);
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
    if (s->cache->slots.n) return resume(s, ids, n, false);
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
    const struct snapshot *k = best_snapshot(c, parent, 0, ids, n, false); /* NULL without states */
    if (c->slots.n) return k ? k->length : 0;
    for (int at = 0, agreed;; at += agreed) {
        int32_t i = chain_find(c, parent, ids + at, min_int(n - at, KV_PAGE), &agreed);
        if (agreed < KV_PAGE) return at + agreed;
        parent = c->pages[i].serial;
    }
}

/* kv_probe() for a model with states. */
static int probe(const struct kv_cache *c, const struct snapshot *k, int *unused)
{
    int whole = k ? k->length / KV_PAGE : 0;
    int32_t page = !k ? NONE : k->length % KV_PAGE ? c->pages[k->page].up : k->page;
    for (int i = 0; i < whole; i++, page = c->pages[page].up) *unused += c->pages[page].refs == 0;
    return whole;
}

int kv_probe(const struct kv_cache *c, uint32_t scope, const uint64_t *ids, int n, int *unused)
{
    uint64_t parent = root_of(scope);
    int known = 0;
    *unused = 0;
    if (c->slots.n) return probe(c, best_snapshot(c, parent, 0, ids, n, false), unused);
    for (; n - known * KV_PAGE >= KV_PAGE; known++) {
        int32_t i = find_whole(c, parent, ids + known * KV_PAGE);
        if (i == NONE) break;
        *unused += c->pages[i].refs == 0;
        parent = c->pages[i].serial;
    }
    return known;
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

int kv_reserve_pages(struct kv_seq *s, int n)
{
    int before = s->n_pages, wanted = (s->length + n + KV_PAGE - 1) / KV_PAGE;
    while (s->n_pages < wanted) {
        int32_t i = page_take(s->cache, last_serial_of(s), last_page_of(s));
        if (i == NONE) {
            drop_pages(s, before);
            return ERR_MEM_KV;
        }
        s->pages[s->n_pages++] = i;
    }
    return OK;
}

int kv_reserve(struct kv_seq *s, int n)
{
    bool taken = s->cache->slots.n && s->next == NONE;
    if (taken) s->next = slots_take(&s->cache->slots);
    if (taken && s->next == NONE) return ERR_MEM_KV;
    int status = kv_reserve_pages(s, n);
    if (status && taken) drop_slot(s, &s->next);
    return status;
}

bool kv_reserve_drafts(struct kv_seq *s, int n, int drafts)
{
    struct slots *slots = &s->cache->slots;
    if (slots->n && (s->mid != NONE || (s->mid = slots_take_spare(slots)) == NONE)) return false;
    s->mid_at = s->length + n;
    s->mid_as = KEPT_NOT;
    if (kv_reserve_pages(s, n + drafts) == OK) return true;
    drop_slot(s, &s->mid);
    return false;
}

void kv_mark(struct kv_seq *s, int at, int end, enum kept_as as)
{
    struct slots *slots = &s->cache->slots;
    if (!slots->n) return;
    if (at == s->length) keep(s, s->slot, at, as); /* a step may have ended here by chance */
    else if (at < s->length) slots_touch(slots, s->pages[(at - 1) / KV_PAGE], at, as);
    else if (at == end) s->end_as = as;
    else if (s->mid == NONE) s->mid = slots_take(slots), s->mid_at = at, s->mid_as = as;
}

void kv_trim(struct kv_seq *s)
{
    drop_step(s);
    drop_pages(s, (s->length + KV_PAGE - 1) / KV_PAGE);
}

static void add_ids(struct kv_seq *s, const uint64_t *ids, int n)
{
    for (int i = 0; i < n; i++, s->length++) {
        struct page *p = &s->cache->pages[s->pages[s->length / KV_PAGE]];
        p->ids[s->length % KV_PAGE] = ids[i];
        p->filled = s->length % KV_PAGE + 1;
    }
}

void kv_commit_before(struct kv_seq *s, const uint64_t *ids, int n)
{
    add_ids(s, ids, n);
    drop_slot(s, &s->slot);
    s->slot = s->mid;
    s->mid = NONE;
}

void kv_commit(struct kv_seq *s, const uint64_t *ids, int n)
{
    add_ids(s, ids, n);
    drop_slot(s, &s->slot);
    s->slot = s->next;
    s->next = NONE;
    keep(s, s->mid, s->mid_at, s->mid_as);
    keep(s, s->slot, s->length, s->end_as);
    drop_step(s);
}

int kv_slots(const struct kv_cache *c) { return c->slots.n; }
int kv_snapshots(const struct kv_cache *c) { return c->slots.n_snapshots; }

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
    /* makes a page picked at random the newest, and then those before it in its chain */
    for (int round = c->n_unused; round > 0; round--) {
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

void kv_each_free_slot(struct kv_cache *c, void (*fn)(void *context, int slot), void *context)
{
    for (int slot = 0; slot < c->slots.n; slot++)
        if (c->slots.refs[slot] == 0) fn(context, slot);
}

/* Whether references to slots are right, and every snapshot's page has content at the snapshot's last position. */
static bool check_slots(const struct kv_cache *c, const struct kv_seq *const *seqs, int n_seqs, int *users)
{
    memset(users, 0, (size_t)c->slots.n * sizeof *users);
    for (int s = 0; s < n_seqs && c->slots.n; s++) {
        const int32_t held[] = {seqs[s]->slot, seqs[s]->next, seqs[s]->mid};
        for (int i = 0; i < 3; i++)
            if (held[i] != NONE) users[held[i]]++;
        if (seqs[s]->slot != NONE && !seqs[s]->length) return false;
    }
    for (int i = 0; i < c->slots.n_snapshots; i++) {
        const struct snapshot *k = &c->slots.snapshots[i];
        const struct page *p = &c->pages[k->page];
        if (!p->serial || k->length < 1 || (k->length - 1) % KV_PAGE >= p->filled) return false;
    }
    return slots_check(&c->slots, users);
}

/* Whether references to pages are right. users [n_pages]: written with the number of references to each page. */
static bool check_users(const struct kv_cache *c, const struct kv_seq *const *seqs, int n_seqs, int *users)
{
    memset(users, 0, (size_t)c->n_pages * sizeof *users);
    for (int s = 0; s < n_seqs; s++)
        for (int i = 0; i < seqs[s]->n_pages; i++) users[seqs[s]->pages[i]]++;
    for (int32_t i = 0; i < c->n_pages; i++)
        if (users[i] != c->pages[i].refs) return false;
    return true;
}

/* Whether every page with content can be found, in a chain that begins at its scope's root. */
static bool check_chains(const struct kv_cache *c)
{
    int known = 0, linked = 0;
    for (int32_t i = 0; i < c->n_pages; i++) {
        const struct page *p = &c->pages[i];
        if (!p->serial) continue;
        known++;
        linked += p->parent >= root_of(UINT32_MAX);
        for (int32_t k = *bucket_of(c, p->serial); k != NONE; k = c->pages[k].next_sibling)
            linked += c->pages[k].parent == p->serial;
    }
    return known == linked;
}

bool kv_check(const struct kv_cache *c, const struct kv_seq *const *seqs, int n_seqs, int *scratch)
{
    int unused = 0, steps = 0;
    if (!check_slots(c, seqs, n_seqs, scratch)) return false;
    for (int32_t i = c->oldest; i != NONE && steps <= c->n_pages; i = c->pages[i].newer, steps++)
        unused += c->pages[i].refs == 0;
    if (steps != c->n_unused || unused != steps || !check_users(c, seqs, n_seqs, scratch)) return false;
    for (int32_t i = 0; i < c->n_pages; i++) unused -= scratch[i] == 0;
    for (int s = 0; s < n_seqs; s++)
        for (int i = 0; i < seqs[s]->n_pages; i++)
            if (c->pages[seqs[s]->pages[i]].parent !=
                (i ? c->pages[seqs[s]->pages[i - 1]].serial : root_of(seqs[s]->scope)))
                return false;
    return unused == 0 && check_chains(c);
}
