/* SPDX-License-Identifier: MIT
 *
 * Sorting of special tokens, and the narrowing search.
 */
#include "text/specials.h"

static struct bytes bytes_of(const struct specials *s, const struct vocab *v, uint32_t i)
{
    return vocab_bytes(v, s->ids[i]);
}

/* By bytes, then type, then id. */
static int compare_specials(const struct vocab *v, uint32_t a, uint32_t b)
{
    int order = bytes_compare(vocab_bytes(v, a), vocab_bytes(v, b));
    if (order == 0) order = (int)v->types[a] - (int)v->types[b];
    return order ? order : (a > b) - (a < b);
}

static void sift_down(const struct vocab *v, uint32_t *ids, uint32_t i, uint32_t n)
{
    for (uint32_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && compare_specials(v, ids[child], ids[child + 1]) < 0) child++;
        if (compare_specials(v, ids[i], ids[child]) >= 0) return;
        uint32_t id = ids[i];
        ids[i] = ids[child];
        ids[child] = id;
        i = child;
    }
}

/* Heapsort without recursion and without slow cases, because an untrusted file decides how many tokens there are. */
static void sort_specials(const struct vocab *v, uint32_t *ids, uint32_t n)
{
    for (uint32_t i = n / 2; i-- > 0;) sift_down(v, ids, i, n);
    for (uint32_t end = n; end-- > 1;) {
        uint32_t id = ids[0];
        ids[0] = ids[end];
        ids[end] = id;
        sift_down(v, ids, 0, end);
    }
}

/* Keeps the first of specials with the same bytes and type, which has the lowest id. */
static void drop_duplicates(struct specials *s, const struct vocab *v)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t id = s->ids[i];
        bool same = n && v->types[id] == v->types[s->ids[n - 1]] &&
                    bytes_compare(vocab_bytes(v, id), bytes_of(s, v, n - 1)) == 0;
        if (!same) s->ids[n++] = id;
    }
    s->n = n;
}

int specials_load(struct mem *m, struct specials *s, const struct vocab *v, struct error *err)
{
    for (uint32_t id = 0; id < v->n_tokens; id++) s->n += is_special(v->types[id]);
    s->ids = mem_array(m, s->n, sizeof *s->ids);
    if (!s->ids) return fail(err, ERR_MEM_LOAD, "vocab", 0, "Out of memory for the tokenizer.");
    for (uint32_t id = 0, n = 0; id < v->n_tokens; id++) {
        if (!is_special(v->types[id])) continue;
        s->ids[n++] = id;
        if (vocab_bytes(v, id).size > SPECIAL_MAX_BYTES)
            return fail(err, ERR_FORMAT, "vocab", 0, "The special token %u has more than %d bytes.", (unsigned)id,
                        SPECIAL_MAX_BYTES);
    }
    sort_specials(v, s->ids, s->n);
    drop_duplicates(s, v);
    uint32_t i = 0;
    for (uint32_t c = 0; c <= 256; c++) {
        while (i < s->n && bytes_of(s, v, i).data[0] < c) i++;
        s->starts[c] = i;
    }
    return OK;
}

/* --- in text ------------------------------------------------------------------------------------------ */

static int byte_at(const struct specials *s, const struct vocab *v, uint32_t i, size_t depth)
{
    return bytes_of(s, v, i).data[depth];
}

/* First of the specials low .. high whose byte at `depth` is >= byte. They agree in `depth` bytes and are longer. */
static uint32_t bound(const struct specials *s, const struct vocab *v, uint32_t low, uint32_t high, size_t depth,
                      int byte)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (byte_at(s, v, middle, depth) < byte) low = middle + 1;
        else high = middle;
    }
    return low;
}

uint32_t specials_match(const struct specials *s, const struct vocab *v, struct bytes text, bool user_only)
{
    uint32_t low = s->starts[text.data[0]], high = s->starts[text.data[0] + 1], best = TABLE_NONE;
    for (size_t depth = 1; low < high; depth++) {
        bool found = false;
        for (; low < high && bytes_of(s, v, low).size == depth; low++) {
            if (found || (user_only && v->types[s->ids[low]] != TOKEN_USER_DEFINED)) continue;
            best = s->ids[low];
            found = true;
        }
        if (low == high || depth == text.size) break;
        int byte = text.data[depth];
        /* all specials of the range have this byte */
        if (byte_at(s, v, low, depth) == byte && byte_at(s, v, high - 1, depth) == byte) continue;
        low = bound(s, v, low, high, depth, byte);
        high = bound(s, v, low, high, depth, byte + 1);
    }
    return best;
}
