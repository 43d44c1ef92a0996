/* SPDX-License-Identifier: MIT
 *
 * The input is a pattern, a GBNF grammar or a list of choices, and bytes. The text compiles or is refused with a rule
 * and a sentence; then the masks of the visited states agree with every token, and all memory is given back.
 *
 * Layout: the kind (modulo 3) and flags (bits 2 to 4), the text up to a zero byte, then bytes: each is used if it is
 * allowed, else the next allowed one.
 *
 *   build/fuzz/fuzz/fuzz_grammar -max_len=1024 -timeout=10 NEW_CORPUS tests/fuzz/corpus/grammar
 */
#include "grammar/compile.h"
#include "grammar/vocabulary.h"
#include "load.h"

enum { MEMORY = 48 << 20, WALK = 24, TOKENS = 257, END = 256 };

static struct vocabulary *every_byte(struct mem *mem)
{
    uint8_t bytes[TOKENS], kinds[TOKENS] = {0};
    uint32_t sizes[TOKENS];
    struct vocabulary *v = NULL;
    for (uint32_t i = 0; i < TOKENS; i++) bytes[i] = (uint8_t)i, sizes[i] = 1;
    kinds[END] = TOKEN_END;
    require(vocabulary_new(mem, &(struct vocabulary_source){bytes, sizes, kinds, TOKENS}, &v, NULL) == OK);
    return v;
}

static void walk(struct grammar *g, const struct vocabulary *v, const uint8_t *data, size_t size)
{
    gr_state state = grammar_start(g);
    for (size_t i = 0; i < size && i < WALK; i++) {
        uint32_t mask[(TOKENS + 31) / 32];
        const uint32_t *bits = grammar_mask(g, v, state);
        gr_state next = GR_DEAD;
        if (!bits) {
            require(grammar_error(g)->code == ERR_SCHEMA);
            return;
        }
        memcpy(mask, bits, sizeof mask);
        for (uint32_t k = 0; k < 256; k++) {
            uint32_t id = (data[i] + k) & 255;
            gr_state to = grammar_take(g, v, state, id);
            require((to != GR_DEAD) == (mask[id >> 5] >> (id & 31) & 1) || grammar_error(g)->code);
            if (next == GR_DEAD) next = to;
        }
        require(grammar_accepts(g, state) == (mask[END >> 5] >> (END & 31) & 1));
        require(next != GR_DEAD || grammar_accepts(g, state) || grammar_error(g)->code); /* there was a way on */
        if (next == GR_DEAD) return;
        state = next;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum grammar_kind kinds[] = {GRAMMAR_REGEX, GRAMMAR_GBNF, GRAMMAR_CHOICES};
    struct mem mem = {.limit = MEMORY};
    struct grammar *g = NULL;
    struct error err = {0};
    if (size < 2) return 0;
    enum grammar_kind kind = kinds[data[0] % 3];
    uint32_t flags = data[1] & (GRAMMAR_FLEXIBLE | GRAMMAR_IGNORE_CASE | GRAMMAR_DOT_ALL);
    const uint8_t *text = data + 2, *end = memchr(text, 0, size - 2);
    size_t n = end ? (size_t)(end - text) : size - 2;
    uint8_t *own = malloc(n + 1);
    require(own != NULL);
    memcpy(own, text, n);
    int status = grammar_compile(&mem, kind, own, n, flags, &g, &err);
    free(own);
    require(status == err.code && (status == OK) == (g != NULL) && (status == OK || err.rule[0]));
    if (g && end) {
        struct vocabulary *v = every_byte(&mem);
        walk(g, v, end + 1, size - 2 - n - 1);
        grammar_free(g);
        vocabulary_free(v);
    } else grammar_free(g);
    require(mem.used == 0);
    return 0;
}
