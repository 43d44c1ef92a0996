/* SPDX-License-Identifier: MIT
 *
 * A reply that is one of some texts.
 */
#include "grammar/nodes.h"

#include "base/json_reader.h"

gr_expr gr_choices(struct grammar *g, uint8_t *json, size_t size, struct error *err)
{
    struct error said = {0};
    struct json_reader r = {.text = json, .size = size, .rule = "choices", .what = "The list of choices", .err = &said};
    uint32_t base = g->n_scratch;
    bool good = json_open(&r, JSON_ARRAY);
    while (good && json_more(&r)) {
        struct bytes text;
        good = json_string_value(&r, &text) && node_push(g, gr_text(g, text));
    }
    if (good && json_finish(&r) == OK && g->n_scratch == base)
        grammar_fail(g, "choices", 0, "The list of choices is empty.");
    if (r.status) grammar_fail(g, "choices", said.offset, "%s", said.message);
    gr_expr made = g->err.code ? 0 : node_or(g, base);
    g->n_scratch = base;
    if (!made && err) *err = g->err;
    return made;
}
