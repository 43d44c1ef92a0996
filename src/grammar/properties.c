/* SPDX-License-Identifier: MIT
 *
 * Unicode properties by their names in patterns (\p{Lu}, \p{Script=Greek}, \p{Emoji}), and letters that differ only in
 * case. All data is in byte tables that tools/property-tables.mjs writes. A property is stored as its differences from
 * a union of general categories.
 */
#include "grammar/regex.h"

#include "grammar/property_data.h"

#include <string.h>

enum { END = 0x110000, ALTERNATING = 30, SHORT = 7, CHAIN = 8, UNASSIGNED = 29, ASCII = 0x80 };

/* Categories in the order of the tables, then groups of them. */
static const char category_names[] =
    "Lu Uppercase_Letter;Ll Lowercase_Letter;Lt Titlecase_Letter;Lm Modifier_Letter;Lo Other_Letter;Mn Nonspacing_Mark;Mc Spacing_Mark;"
    "Me Enclosing_Mark;Nd Decimal_Number digit;Nl Letter_Number;No Other_Number;Pc Connector_Punctuation;Pd Dash_Punctuation;"
    "Ps Open_Punctuation;Pe Close_Punctuation;Pi Initial_Punctuation;Pf Final_Punctuation;Po Other_Punctuation;Sm Math_Symbol;"
    "Sc Currency_Symbol;Sk Modifier_Symbol;So Other_Symbol;Zs Space_Separator;Zl Line_Separator;Zp Paragraph_Separator;Cc Control cntrl;"
    "Cf Format;Cs Surrogate;Co Private_Use;Cn Unassigned;LC Cased_Letter;L Letter;M Mark Combining_Mark;N Number;P Punctuation punct;"
    "S Symbol;Z Separator;C Other;";
static const struct {
    uint8_t first, last;
} groups[] = {{0, 2}, {0, 4}, {5, 7}, {8, 10}, {11, 17}, {18, 21}, {22, 24}, {25, 29}};

/* Number, from 1 on, of the row of "a b;c;" that contains this name; 0 if no row does. */
static uint32_t row_of(const char *rows, struct bytes name)
{
    uint32_t row = 1;
    for (const char *at = rows; *at;) {
        size_t n = strcspn(at, " ;");
        if (n == name.size && !memcmp(at, name.data, n)) return row;
        row += at[n] == ';';
        at += n + 1;
    }
    return 0;
}

static uint32_t number(const uint8_t **at)
{
    uint32_t value = 0;
    for (int shift = 0;; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (byte & 127u) << shift;
        if (byte < 128) return value;
    }
}

/* --- sets of categories, and differences from them ------------------------------------------------------------- */

/* Code points of one category, up to `end`. */
struct run {
    const uint8_t *at;
    uint32_t category, end, alternating; /* alternating: number of following code points that are Lu and Ll in turn */
};

static void next_run(struct run *run)
{
    if (run->alternating) {
        run->alternating--;
        run->category ^= 1;
        run->end++;
        return;
    }
    uint8_t head = *run->at++;
    uint32_t length = (head & SHORT) < SHORT ? head & SHORT : SHORT + number(&run->at);
    run->category = head >> 3;
    if (run->category == ALTERNATING) {
        run->category = 0;
        run->alternating = length - 1;
        length = 1;
    }
    run->end += length;
}

/* Positions where a property begins or ends to differ from its base. */
struct toggles {
    const uint8_t *at, *end;
    uint32_t next;
};

static void next_toggle(struct toggles *t) { t->next = t->at < t->end ? t->next + number(&t->at) : UINT32_MAX; }

static struct toggles toggles_of(uint32_t property)
{
    size_t begin = 0;
    for (uint32_t i = 0; i < property; i++) begin += property_sets[i].size;
    struct toggles t = {property_toggles + begin, property_toggles + begin + property_sets[property].size, 0};
    next_toggle(&t);
    return t;
}

/* Adds the code points of a mask of categories, changed by a property (from 1 on; 0: none) and by its bases. */
static bool add_categories(struct regex *r, uint32_t mask, uint32_t property, bool negated)
{
    struct toggles chain[CHAIN];
    size_t n = 0;
    bool differs = negated;
    for (; property && n < CHAIN; property = property_sets[property - 1].base) {
        mask ^= property_sets[property - 1].categories;
        chain[n++] = toggles_of(property - 1);
    }
    struct run run = {.at = category_runs};
    for (uint32_t at = 0; at < END;) {
        if (at == run.end) next_run(&run);
        uint32_t until = run.end;
        for (size_t i = 0; i < n; i++)
            if (chain[i].next < until) until = chain[i].next;
        if (until > at && (mask >> run.category & 1) != differs && !regex_add(r, at, until - 1)) return false;
        for (size_t i = 0; i < n; i++) {
            if (chain[i].next != until) continue;
            differs = !differs;
            next_toggle(&chain[i]);
        }
        at = until;
    }
    return true;
}

/* --- scripts --------------------------------------------------------------------------------------------------- */

/* Code points that belong to several scripts. */
struct several {
    const uint8_t *at;
    uint32_t first, end, set;
};

static void next_several(struct several *s)
{
    if (s->at == extension_runs + sizeof extension_runs) {
        s->first = s->end = UINT32_MAX;
        return;
    }
    s->first = s->end + number(&s->at);
    s->end = s->first + number(&s->at);
    s->set = *s->at++;
}

static bool several_have(uint32_t set, uint32_t script)
{
    const uint8_t *at = extension_sets;
    for (; set; set--) at += 1 + *at;
    return memchr(at + 1, (int)script, *at) != NULL;
}

static bool add_script(struct regex *r, uint32_t script, bool extended, bool negated)
{
    struct several several = {extension_runs, 0, 0, 0};
    const uint8_t *runs = script_runs;
    if (extended) next_several(&several);
    else several.first = several.end = UINT32_MAX;
    for (uint32_t at = 0, end = 0, of = 0; at < END;) {
        if (at == end) {
            of = *runs++;
            end += number(&runs);
        }
        if (several.end <= at) next_several(&several);
        bool inside = at >= several.first;
        uint32_t until = inside ? several.end : several.first;
        if (until > end) until = end;
        bool has = inside ? several_have(several.set, script) : of == script;
        if (until > at && has != negated && !regex_add(r, at, until - 1)) return false;
        at = until;
    }
    return true;
}

/* --- names ----------------------------------------------------------------------------------------------------- */

static bool is_either(struct bytes name, const char *a, const char *b)
{
    return bytes_equal(name, a) || bytes_equal(name, b);
}

/* Mask of the categories of a row. */
static uint32_t mask_of(uint32_t row)
{
    if (row <= ALTERNATING) return 1u << (row - 1);
    uint32_t first = groups[row - 1 - ALTERNATING].first, last = groups[row - 1 - ALTERNATING].last;
    return (UINT32_MAX >> (31 - last)) & ~((1u << first) - 1);
}

bool regex_property(struct regex *r, struct bytes name, bool negated, bool *known)
{
    const uint8_t *equals = memchr(name.data, '=', name.size);
    struct bytes kind = {name.data, equals ? (size_t)(equals - name.data) : 0};
    struct bytes value = {equals ? equals + 1 : name.data, equals ? name.size - kind.size - 1 : name.size};
    bool extended = is_either(kind, "Script_Extensions", "scx");
    uint32_t row;
    *known = true;
    if (equals && (extended || is_either(kind, "Script", "sc"))) {
        if ((row = row_of(script_names, value))) return add_script(r, row - 1, extended, negated);
    } else if (!equals || is_either(kind, "General_Category", "gc")) {
        if ((row = row_of(category_names, value))) return add_categories(r, mask_of(row), 0, negated);
    }
    if (!equals) {
        if (bytes_equal(name, "Any")) return negated || regex_add(r, 0, END - 1);
        if (bytes_equal(name, "ASCII")) return negated ? regex_add(r, ASCII, END - 1) : regex_add(r, 0, ASCII - 1);
        if (bytes_equal(name, "Assigned")) return add_categories(r, 1u << UNASSIGNED, 0, !negated);
        if ((row = row_of(property_names, name))) return add_categories(r, 0, row, negated);
    }
    return *known = false;
}

/* --- letters that are equal under the flag i --------------------------------------------------------------------- */

static bool has(const struct gr_range *of, uint32_t n, uint32_t c)
{
    uint32_t low = 0;
    if (c < of[0].first || c > of[n - 1].last) return false;
    while (n > low) {
        uint32_t middle = (low + n) / 2;
        if (of[middle].last < c) low = middle + 1;
        else n = middle;
    }
    return of[low].first <= c && of[low].last >= c;
}

/* Adds the folded form of each letter in the sorted ranges; or, with `back`, all letters that fold to one in the
 * ranges. */
static bool add_folded(struct regex *r, bool back)
{
    uint32_t n = r->n, first = 0;
    for (const uint8_t *at = fold_runs; at < fold_runs + sizeof fold_runs && n;) {
        uint32_t head = number(&at), count = number(&at), zigzag = number(&at), step = 1 + (head >> 1 & 1);
        uint32_t by = zigzag & 1 ? 0 - (zigzag >> 1) - 1 : zigzag >> 1, from = (first += head >> 2), to = from + by;
        uint32_t low = back ? to : from, high = low + (count - 1) * step;
        if ((head & 1 && r->where & GR_OLD_CASE) || high < r->ranges[0].first || low > r->ranges[n - 1].last) continue;
        for (uint32_t i = 0; i < count; i++, from += step, to += step) {
            uint32_t c = back ? to : from, other = back ? from : to;
            if (has(r->ranges, n, c) && !has(r->ranges, n, other) && !regex_add(r, other, other)) return false;
        }
    }
    r->n = (uint32_t)class_order(r->g, r->ranges, r->n);
    return node_work(r->g, 64);
}

bool regex_fold(struct regex *r) { return add_folded(r, false) && add_folded(r, true); }
