/* SPDX-License-Identifier: MIT
 *
 * Code points as bytes: ranges become a tree over their UTF-8, six bits per level, which shares equal branches. Inside
 * a JSON string some code points are escapes instead.
 */
#include "grammar/nodes.h"

#include "base/unicode.h"

#include <string.h>

enum { LEVEL = 64, CODE_POINT_MOST = 0x10FFFF, RANGES_MOST = 1 << 14 };

/* Ranges in ascending order that neither overlap nor meet. */
struct ranges {
    struct gr_range *of;
    size_t n;
};

static gr_expr any_tail(struct grammar *g, int n)
{
    static const uint32_t set[8] = {0, 0, 0, 0, UINT32_MAX, UINT32_MAX, 0, 0};
    gr_expr all = EXPR_EMPTY;
    while (n-- > 0) all = node_cat(g, node_set(g, set), all);
    return all;
}

/* Bytes after which the same expression follows. */
struct branch {
    gr_expr rest;
    uint32_t set[8];
};

static void add_branch(struct branch *branches, size_t *n, gr_expr rest, uint32_t byte)
{
    size_t i = 0;
    while (i < *n && branches[i].rest != rest) i++;
    if (i == *n) branches[(*n)++] = (struct branch){.rest = rest};
    branches[i].set[byte >> 5] |= 1u << (byte & 31);
}

/* One code point of r. All of them begin with the bits of `base`; `shift` bits follow the bits of the current byte,
 * which adds them to `mark`. */
static gr_expr level(struct grammar *g, struct ranges r, uint32_t base, int shift, uint32_t mark)
{
    struct branch branches[LEVEL];
    gr_expr all = r.n ? any_tail(g, shift / 6) : 0;
    size_t n = 0;
    for (uint32_t digit = 0; digit < LEVEL && r.n; digit++) {
        uint32_t first = base + (digit << shift), last = first + (1u << shift) - 1;
        size_t inside = 0;
        while (r.n && r.of->last < first) r.of++, r.n--;
        while (inside < r.n && r.of[inside].first <= last) inside++;
        if (!inside) continue;
        bool whole = r.of->first <= first && r.of->last >= last;
        gr_expr rest = whole ? all : level(g, (struct ranges){r.of, inside}, first, shift - 6, 0x80);
        if (!rest) return 0;
        add_branch(branches, &n, rest, mark | digit);
    }
    uint32_t begin = g->n_scratch;
    for (size_t i = 0; i < n; i++)
        if (!node_push(g, node_cat(g, node_set(g, branches[i].set), branches[i].rest))) return 0;
    return node_or(g, begin);
}

/* ASCII has the values of two levels in one byte. */
static gr_expr ascii(struct grammar *g, struct ranges r)
{
    uint32_t set[8] = {0};
    for (size_t i = 0; i < r.n; i++)
        for (uint32_t c = r.of[i].first; c <= r.of[i].last; c++) set[c >> 5] |= 1u << (c & 31);
    return node_set(g, set);
}

/* The parts of r from `first` to `last`. `room` has space for r.n ranges. */
static struct ranges cut(struct ranges r, uint32_t first, uint32_t last, struct gr_range *room)
{
    size_t n = 0;
    for (size_t i = 0; i < r.n; i++) {
        if (r.of[i].last < first || r.of[i].first > last) continue;
        room[n].first = r.of[i].first > first ? r.of[i].first : first;
        room[n++].last = r.of[i].last < last ? r.of[i].last : last;
    }
    return (struct ranges){room, n};
}

static gr_expr utf8(struct grammar *g, struct ranges r, struct gr_range *room)
{
    gr_expr lengths[] = {
        ascii(g, cut(r, 0, 0x7F, room)),
        level(g, cut(r, 0x80, 0x7FF, room), 0, 6, 0xC0),
        level(g, cut(r, 0x800, 0xD7FF, room), 0, 12, 0xE0),
        level(g, cut(r, 0xE000, 0xFFFF, room), 0, 12, 0xE0),
        level(g, cut(r, 0x10000, CODE_POINT_MOST, room), 0, 18, 0xF0),
    };
    return gr_any(g, lengths, sizeof lengths / sizeof *lengths);
}

/* --- inside a JSON string -------------------------------------------------------------------------------------- */

/* The escape of a code point, or "" if it needs none. */
static void escape_of(uint32_t c, char out[8])
{
    static const char hex[] = "0123456789abcdef", from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *at = c ? strchr(from, (int)c) : NULL;
    memset(out, 0, 8);
    if (c > '\\' || (c >= ' ' && !at)) return;
    out[0] = '\\';
    out[1] = at ? to[at - from] : 'u';
    if (at) return;
    out[2] = out[3] = '0';
    out[4] = hex[c >> 4];
    out[5] = hex[c & 15];
}

static bool has(struct ranges r, uint32_t c)
{
    for (size_t i = 0; i < r.n; i++)
        if (c >= r.of[i].first && c <= r.of[i].last) return true;
    return false;
}

static gr_expr json(struct grammar *g, struct ranges r, struct gr_range *room)
{
    static const struct gr_range plain[] = {{' ', '!'}, {'#', '['}, {']', CODE_POINT_MOST}};
    uint32_t base = g->n_scratch;
    char escape[8];
    for (uint32_t c = 0; c <= '\\'; c++) {
        escape_of(c, escape);
        if (*escape && has(r, c) && !node_push(g, gr_literal(g, escape))) return 0;
    }
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        struct gr_range *rest = room + r.n;
        struct ranges part = cut(r, plain[i].first, plain[i].last, room);
        if (!node_push(g, utf8(g, part, rest))) return 0;
    }
    return node_or(g, base);
}

/* --- the face -------------------------------------------------------------------------------------------------- */

/* Insertion sort, because most ranges come in order; others count as work. Joins ranges that meet. */
size_t class_order(struct grammar *g, struct gr_range *of, size_t n)
{
    size_t kept = 0;
    for (size_t i = 1; i < n; i++) {
        struct gr_range held = of[i];
        size_t k = i;
        for (; k > 0 && of[k - 1].first > held.first; k--) of[k] = of[k - 1];
        of[k] = held;
        g->work -= (int64_t)(i - k) / 8;
    }
    for (size_t i = 0; i < n; i++) {
        struct gr_range r = of[i];
        if (r.last > CODE_POINT_MOST) r.last = CODE_POINT_MOST;
        if (r.first > r.last) continue;
        if (!kept || r.first > of[kept - 1].last + 1) of[kept++] = r;
        else if (r.last > of[kept - 1].last) of[kept - 1].last = r.last;
    }
    return kept;
}

gr_expr gr_class(struct grammar *g, enum gr_form form, const struct gr_range *ranges, size_t n)
{
    if (n > RANGES_MOST) return node_limit(g, "a class has too many ranges");
    struct gr_range *own = mem_array(g->mem, n * 3 + 1, sizeof *own);
    if (!own) return node_memory(g);
    if (n) memcpy(own, ranges, n * sizeof *own);
    struct ranges r = {own, class_order(g, own, n)};
    uint32_t base = g->n_scratch;
    gr_expr made = form == GR_JSON ? json(g, r, own + n) : utf8(g, r, own + n);
    g->n_scratch = base;
    mem_free(g->mem, own);
    return made;
}

gr_expr gr_range(struct grammar *g, uint32_t first, uint32_t last)
{
    return gr_class(g, GR_PLAIN, &(struct gr_range){first, last}, 1);
}

gr_expr gr_json_text(struct grammar *g, struct bytes text)
{
    uint32_t base = g->n_scratch;
    for (size_t i = 0; i < text.size;) {
        uint32_t c;
        char escape[8];
        size_t n = utf8_read(text.data + i, text.size - i, &c);
        if (c == UTF8_INVALID)
            return grammar_fail(g, "utf-8", i, "The text is not valid UTF-8 from byte %u on.", (unsigned)i);
        escape_of(c, escape);
        gr_expr one = *escape ? gr_literal(g, escape) : gr_text(g, (struct bytes){text.data + i, n});
        if (!node_push(g, one)) return 0;
        i += n;
    }
    gr_expr all = EXPR_EMPTY;
    while (g->n_scratch > base && all) all = node_cat(g, (gr_expr)g->scratch[--g->n_scratch], all);
    g->n_scratch = base;
    return all;
}
