/* SPDX-License-Identifier: MIT
 *
 * The interface of the builder: creating and freeing a grammar, its expressions, and questions about them.
 */
#include "grammar/nodes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { QUESTION_WORK = 1 << 21 };
static const uint64_t DIVISOR_MOST = UINT64_C(1000000000000000000);

struct grammar *grammar_new(struct mem *m)
{
    struct grammar *g = mem_alloc(m, sizeof *g);
    if (!g) return NULL;
    g->mem = m;
    g->work = BUILD_WORK;
    g->pace = BUILD_WORK - PACE_WORK;
    g->slice.until = INT64_MIN;
    g->n_nodes = 1;
    g->n_classes = 1;
    g->memo = mem_array(m, MEMO, sizeof *g->memo);
    gr_expr never = 0;
    if (g->memo) {
        never = node_never(g);
        node_not(g, never);
    }
    if (g->n_nodes != EXPR_ALL + 1) {
        grammar_free(g);
        return NULL;
    }
    return g;
}

void grammar_free(struct grammar *g)
{
    if (!g) return;
    masks_free(g);
    void *parts[] = {g->nodes, g->slots, g->lists,  g->scratch, g->queue,
                     g->rules, g->memo,  g->states, g->next,    g->notes};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) mem_free(g->mem, parts[i]);
    mem_free(g->mem, g);
}

const struct error *grammar_error(const struct grammar *g) { return &g->err; }

gr_expr grammar_fail(struct grammar *g, const char *rule, uint64_t offset, const char *format, ...)
{
    char message[ERROR_MESSAGE];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (!g->err.code) fail(&g->err, ERR_SCHEMA, rule, offset, "%s", message);
    return 0;
}

void grammar_note(struct grammar *g, const char *rule, const char *format, ...)
{
    char line[ERROR_MESSAGE + 64];
    size_t n = (size_t)snprintf(line, sizeof line, "%s ", rule);
    va_list args;
    va_start(args, format);
    vsnprintf(line + n, sizeof line - n - 1, format, args);
    va_end(args);
    strcat(line, "\n");
    if (!g->notes) g->notes = mem_array(g->mem, NOTES_MOST, 1);
    if (!g->notes || strstr(g->notes, line)) return;
    if (strlen(g->notes) + strlen(line) < NOTES_MOST) strcat(g->notes, line);
}

const char *grammar_notes(const struct grammar *g) { return g->notes ? g->notes : ""; }

/* --- building -------------------------------------------------------------------------------------------------- */

gr_expr gr_never(struct grammar *g) { return (void)g, EXPR_NEVER; }
gr_expr gr_empty(struct grammar *g) { return (void)g, EXPR_EMPTY; }
gr_expr gr_everything(struct grammar *g) { return (void)g, EXPR_ALL; }

gr_expr gr_byte_set(struct grammar *g, const uint32_t set[8]) { return node_set(g, set); }

static gr_expr one_byte(struct grammar *g, uint8_t byte)
{
    uint32_t set[8] = {0};
    set[byte >> 5] = 1u << (byte & 31);
    return node_set(g, set);
}

gr_expr gr_text(struct grammar *g, struct bytes text)
{
    gr_expr all = EXPR_EMPTY;
    for (size_t i = text.size; i-- > 0 && all;) all = node_cat(g, one_byte(g, text.data[i]), all);
    return all;
}

gr_expr gr_literal(struct grammar *g, const char *text)
{
    return gr_text(g, (struct bytes){(const uint8_t *)text, strlen(text)});
}

gr_expr gr_cat(struct grammar *g, gr_expr a, gr_expr b) { return node_cat(g, a, b); }

gr_expr gr_sequence(struct grammar *g, const gr_expr *parts, size_t n)
{
    gr_expr all = EXPR_EMPTY;
    for (size_t i = n; i-- > 0 && all;) all = node_cat(g, parts[i], all);
    return all;
}

gr_expr gr_any(struct grammar *g, const gr_expr *choices, size_t n)
{
    uint32_t base = g->n_scratch;
    for (size_t i = 0; i < n; i++) {
        if (node_push(g, choices[i])) continue;
        g->n_scratch = base;
        return 0;
    }
    return node_or(g, base);
}

gr_expr gr_or(struct grammar *g, gr_expr a, gr_expr b) { return gr_any(g, (gr_expr[]){a, b}, 2); }

bool gr_is_regular(const struct grammar *g, gr_expr a) { return a && !(node_of(g, a)->flags & HAS_RULES); }

static gr_expr only_regular(struct grammar *g)
{
    return grammar_fail(g, "recursion", 0,
                        "A recursive definition cannot be combined with other conditions or negated.");
}

gr_expr gr_and(struct grammar *g, gr_expr a, gr_expr b)
{
    if (!a || !b) return 0;
    if (a == b || b == EXPR_ALL) return a;
    if (a == EXPR_ALL) return b;
    if (!gr_is_regular(g, a) || !gr_is_regular(g, b)) return only_regular(g);
    uint32_t base = g->n_scratch;
    return node_push(g, a) && node_push(g, b) ? node_and(g, base) : 0;
}

gr_expr gr_not(struct grammar *g, gr_expr a)
{
    if (!a) return 0;
    return gr_is_regular(g, a) ? node_not(g, a) : only_regular(g);
}

gr_expr gr_repeat(struct grammar *g, gr_expr a, uint32_t least, uint32_t most)
{
    return node_repeat(g, a, least, most);
}

gr_expr gr_multiple(struct grammar *g, uint64_t divisor)
{
    if (!divisor || divisor > DIVISOR_MOST)
        return grammar_fail(g, "multiple", 0, "A number can be a multiple of 1 to 10^18 only.");
    for (uint8_t digit = '0'; digit <= '9'; digit++)
        if (!one_byte(g, digit)) return 0; /* makes the digits belong to different byte classes */
    return node_multiple(g, divisor, 0, false);
}

gr_expr gr_rule(struct grammar *g)
{
    if (!node_room(g, (void **)&g->rules, &g->room_rules, (uint64_t)g->n_rules + 1, sizeof *g->rules)) return 0;
    g->rules[g->n_rules] = (struct rule){0};
    return node_rule(g, g->n_rules++);
}

void gr_define(struct grammar *g, gr_expr rule, gr_expr body)
{
    if (rule && node_of(g, rule)->kind == NODE_RULE) g->rules[node_of(g, rule)->a].body = body;
}

void gr_name(struct grammar *g, gr_expr rule, struct bytes name)
{
    if (rule && node_of(g, rule)->kind == NODE_RULE)
        snprintf(g->rules[node_of(g, rule)->a].name, RULE_NAME, "%.*s", min_int((int)name.size, RULE_NAME),
                 (const char *)name.data);
}

/* --- questions ------------------------------------------------------------------------------------------------- */

enum gr_answer gr_is_empty(struct grammar *g, gr_expr a)
{
    if (!gr_is_regular(g, a)) return GR_UNKNOWN;
    struct error before = g->err;
    g->floor = g->work > QUESTION_WORK ? g->work - QUESTION_WORK : 0;
    derive_classes(g);
    enum gr_answer live = derive_live(g, a);
    g->floor = 0;
    if (g->work >= 0 && !g->stopped) g->err = before; /* an unknown answer is not an error */
    return live == GR_UNKNOWN ? live : live == GR_YES ? GR_NO : GR_YES;
}

enum gr_answer gr_disjoint(struct grammar *g, gr_expr a, gr_expr b)
{
    return gr_is_regular(g, a) && gr_is_regular(g, b) ? gr_is_empty(g, gr_and(g, a, b)) : GR_UNKNOWN;
}

enum gr_answer gr_contains(struct grammar *g, gr_expr a, struct bytes text)
{
    if (!gr_is_regular(g, a)) return GR_UNKNOWN;
    for (size_t i = 0; i < text.size && a && a != EXPR_NEVER; i++) a = derive(g, a, text.data[i]);
    return !a ? GR_UNKNOWN : is_nullable(g, a) ? GR_YES : GR_NO;
}
