/* SPDX-License-Identifier: MIT
 *
 * Answers requests about schemas and texts, one to a line, for tests/fixtures/schema-lines.mjs:
 *
 *   S DRAFT FLAGS SCHEMA   "ok", or "refused RULE MESSAGE"; flag 1: flexible white space
 *   I TEXT                 "1" if the last schema's grammar accepts it, else "0"
 *   W SEED                 a text of random allowed bytes that ends as soon as it can; "cut" if that is too late
 */
#include "grammar/schema/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 2 << 20, WALK = 6000 };

static struct mem mem = {.limit = 256 << 20};
static struct grammar *grammar;

static void compile(char *rest, size_t n)
{
    struct schema_options options = {0};
    struct error err = {0};
    gr_expr start;
    char *text = rest;
    grammar_free(grammar);
    grammar = grammar_new(&mem);
    options.draft = (int)strtol(text, &text, 10);
    options.flexible = strtol(text, &text, 10) & 1;
    text++;
    int status = schema_compile(grammar, &mem, (struct bytes){(uint8_t *)text, n - (size_t)(text - rest)}, &options,
                                &start, &err);
    if (!status) status = grammar_ready(grammar, start, &err);
    if (status) {
        grammar_free(grammar);
        grammar = NULL;
        printf("refused %s %s\n", err.rule[0] ? err.rule : "?", err.message);
    } else puts("ok");
}

static void accept(const char *text, size_t n)
{
    gr_state state =
        grammar ? grammar_step(grammar, grammar_start(grammar), (struct bytes){(const uint8_t *)text, n}) : GR_DEAD;
    puts(state != GR_DEAD && grammar_accepts(grammar, state) ? "1" : "0");
}

static uint64_t below(uint64_t *random, uint64_t n)
{
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    return (*random * 0x2545F4914F6CDD1D >> 16) % n;
}

/* Chooses an allowed byte; bytes that end something are chosen more often, and always when the text is long. */
static int next_byte(gr_state state, uint64_t *random, size_t at)
{
    static const char ends[] = "\"}]";
    int allowed[256], n = 0;
    for (size_t i = 0; i < 3; i++)
        if ((at > 400 || below(random, 4) == 0) &&
            grammar_step(grammar, state, (struct bytes){(const uint8_t *)ends + i, 1}) != GR_DEAD)
            return ends[i];
    for (int c = 0; c < 256; c++) {
        uint8_t byte = (uint8_t)c;
        if (grammar_step(grammar, state, (struct bytes){&byte, 1}) != GR_DEAD) allowed[n++] = c;
    }
    return n ? allowed[below(random, (uint64_t)n)] : -1;
}

static void walk(uint64_t seed)
{
    static uint8_t text[WALK];
    uint64_t random = seed * 0x9E3779B97F4A7C15 | 1;
    size_t n = 0;
    gr_state state = grammar ? grammar_start(grammar) : GR_DEAD;
    if (!grammar) {
        puts("none");
        return;
    }
    while (!grammar_accepts(grammar, state) || (n < 400 && below(&random, 3) > 0)) {
        int c = n < WALK ? next_byte(state, &random, n) : -1;
        if (c < 0) {
            bool end = grammar_accepts(grammar, state);
            if (end) break;
            printf("%s %.*s\n", n < WALK ? "stuck" : "cut", n < WALK ? (int)n : 200, text);
            return;
        }
        text[n++] = (uint8_t)(c == '\n' || c == '\r' ? ' ' : c); /* white space instead, since an answer is one line */
        state = grammar_step(grammar, state, (struct bytes){&text[n - 1], 1});
    }
    printf("text %.*s\n", (int)n, text);
}

int main(void)
{
    static char line[LINE];
    while (fgets(line, sizeof line, stdin)) {
        size_t n = strcspn(line, "\n");
        line[n] = 0;
        if (line[0] == 'S') compile(line + 1, n - 1);
        else if (line[0] == 'I') accept(line + 2, n - 2);
        else if (line[0] == 'W') walk(strtoull(line + 1, NULL, 10));
        fflush(stdout);
    }
    grammar_free(grammar);
    return 0;
}
