/* SPDX-License-Identifier: MIT
 *
 * The input is a schema and bytes to feed to its grammar. A schema compiles or is refused with a rule and a sentence.
 * Whatever bytes follow, each step leads to a state or to the end, an accepted text is JSON (unless its members stand
 * between tags), and from any state that is not dead a text can be finished.
 *
 * Layout: options (bit 0: white space, bits 1 and 2: draft, bit 3: between tags), the schema up to a zero byte, then
 * bytes: each is used if it is allowed, else the next allowed one.
 *
 *   build/fuzz/fuzz/fuzz_schema -max_len=2048 -timeout=10 -dict=tests/fuzz/schema.dict \
 *       NEW_CORPUS tests/fuzz/corpus/schema
 */
#include "base/json_reader.h"
#include "grammar/schema/schema.h"
#include "load.h"

enum { MEMORY = 128 << 20, WALK = 400 };

/* A text that the grammar accepts is also JSON for our own reader. */
static void check_json(struct bytes text)
{
    uint8_t own[WALK];
    struct error err = {0};
    require(text.size > 0 && text.size <= WALK);
    memcpy(own, text.data, text.size);
    struct json_reader r = {.text = own, .size = text.size, .rule = "json", .what = "The text", .err = &err};
    json_skip(&r);
    require(json_finish(&r) == OK || strstr(err.message, "nested") != NULL || strstr(err.message, "number") != NULL);
}

/* The current byte, or the next one that does not lead to a dead state. */
static int allowed_byte(struct grammar *g, gr_state state, int first, gr_state *next)
{
    for (int i = 0; i < 256; i++) {
        uint8_t byte = (uint8_t)(first + i);
        *next = grammar_step(g, state, (struct bytes){&byte, 1});
        if (*next != GR_DEAD || grammar_error(g)->code) return byte;
    }
    return -1;
}

static void walk(struct grammar *g, const uint8_t *data, size_t size, bool tagged)
{
    uint8_t text[WALK];
    gr_state state = grammar_start(g), next = GR_DEAD;
    for (size_t n = 0; n < size && n < WALK; n++) {
        int byte = allowed_byte(g, state, data[n], &next);
        if (grammar_error(g)->code) return; /* a limit was reached, and reported */
        if (byte < 0) {
            require(grammar_accepts(g, state));
            return;
        }
        text[n] = (uint8_t)byte;
        state = next;
        if (!tagged && grammar_accepts(g, state)) check_json((struct bytes){text, n + 1});
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int drafts[] = {0, 7, 2020, 4};
    struct mem mem = {.limit = MEMORY};
    struct error err = {0};
    gr_expr start = 0;
    if (size < 2) return 0;
    struct schema_options options = {
        .flexible = data[0] & 1, .draft = drafts[data[0] >> 1 & 3], .closed = data[0] & 16};
    const struct schema_options spaced = {.spaced = true, .closed = options.closed};
    const uint8_t *end = memchr(data + 1, 0, size - 1), *schema = data + 1;
    size_t n = end ? (size_t)(end - schema) : size - 1;
    struct grammar *g = grammar_new(&mem);
    require(g != NULL);
    uint64_t before = mem.used;
    bool tagged = (data[0] & 8) != 0;
    int status = tagged ? schema_tagged(g, &mem, (struct bytes){schema, n}, &spaced, &start, &err)
                        : schema_compile(g, &mem, (struct bytes){schema, n}, &options, &start, &err);
    require(status == err.code && (status == OK) == (start != 0) && (status == OK) == (err.message[0] == 0) &&
            (status == OK) == (err.rule[0] == 0));
    require(status == OK || status == ERR_SCHEMA || status == ERR_MEM_LOAD);
    if (status == OK) status = grammar_ready(g, start, &err);
    if (status == OK && end) walk(g, end + 1, size - n - 2, tagged);
    grammar_free(g);
    require(mem.used == 0 && before > 0);
    return 0;
}
