/* SPDX-License-Identifier: MIT
 *
 * The vocabulary as a tree, one grammar, and the reply's state in it.
 */
#include "cli/cli_grammar.h"

#include "cli/cli_files.h"
#include "cli/cli_terminal.h"
#include "grammar/compile.h"
#include "grammar/vocabulary.h"

#include <stdlib.h>
#include <string.h>

struct cli_grammar {
    struct mem mem;
    struct vocabulary *vocabulary;
    struct grammar *grammar;
    gr_state state;
};

static const struct {
    enum option option;
    enum grammar_kind kind;
    bool is_file;
} rows[] = {
    {OPT_SCHEMA, GRAMMAR_SCHEMA, true},
    {OPT_GRAMMAR, GRAMMAR_GBNF, true},
    {OPT_REGEX, GRAMMAR_REGEX, false},
    {OPT_JSON_REPLY, GRAMMAR_JSON, false},
};

enum { ROWS = sizeof rows / sizeof *rows };

void cli_grammar_free(struct cli_grammar *g)
{
    if (!g) return;
    grammar_free(g->grammar);
    vocabulary_free(g->vocabulary);
    free(g);
}

/* Reads a file, whose bytes the caller frees; NULL after an error message. */
static uint8_t *read_file(const char *option, const char *path, size_t *size)
{
    char sentence[400];
    uint64_t n = 0;
    FILE *f = cli_open(path, &n);
    uint8_t *text = f && n <= GRAMMAR_TEXT_MOST ? malloc((size_t)n + 1) : NULL;
    bool good = text && fread(text, 1, (size_t)n, f) == n;
    if (f) fclose(f);
    *size = (size_t)n;
    if (good) return text;
    free(text);
    if (f && n > GRAMMAR_TEXT_MOST)
        complain("use/schema", "What a reply must look like is described in more than 1 MB.");
    else {
        snprintf(sentence, sizeof sentence, "--%s cannot be read: %.300s.", option, path);
        complain("use/param", sentence);
    }
    return NULL;
}

/* Makes the vocabulary from the bytes of all tokens; only text tokens and end tokens may be written. */
static int learn(struct cli_grammar *g, struct quern_engine *e, struct error *err)
{
    enum { NORMAL = 1, BYTE = 6 };
    uint32_t n = (uint32_t)quern_vocab_size(e);
    size_t total = 0, at = 0;
    for (uint32_t i = 0; i < n; i++) total += quern_token(e, (int32_t)i).size;
    uint8_t *bytes = malloc(total + 1), *kinds = malloc(n + 1);
    uint32_t *sizes = malloc((n + 1) * sizeof *sizes);
    for (uint32_t i = 0; bytes && kinds && sizes && i < n; i++) {
        struct bytes text = quern_token(e, (int32_t)i);
        int type = quern_token_type(e, (int32_t)i);
        if (text.size) memcpy(bytes + at, text.data, text.size);
        at += text.size;
        sizes[i] = (uint32_t)text.size;
        kinds[i] = quern_is_end(e, (int32_t)i)                     ? TOKEN_END
                   : text.size && (type == NORMAL || type == BYTE) ? TOKEN_TEXT
                                                                   : TOKEN_NEVER;
    }
    int status = bytes && kinds && sizes
                     ? vocabulary_new(&g->mem, &(struct vocabulary_source){bytes, sizes, kinds, n}, &g->vocabulary, err)
                     : fail(err, ERR_MEM_LOAD, "memory", 0, "Not enough memory for the vocabulary.");
    free(bytes);
    free(kinds);
    free(sizes);
    return status;
}

static int compile(struct cli_grammar *g, int row, const char *word, struct error *err)
{
    size_t size = rows[row].option == OPT_JSON_REPLY ? 0 : strlen(word);
    uint8_t *text = rows[row].is_file ? read_file(rows[row].option == OPT_SCHEMA ? "schema" : "grammar", word, &size)
                                      : malloc(size + 1);
    if (!text) return ERR_PARAM;
    if (!rows[row].is_file && size) memcpy(text, word, size);
    int status = grammar_compile(&g->mem, rows[row].kind, text, size, 0, &g->grammar, err);
    free(text);
    if (!status) g->state = grammar_start(g->grammar);
    return status;
}

int cli_grammar_open(struct quern_engine *e, const struct args *a, struct cli_grammar **out)
{
    int row = -1, n = 0;
    struct error err = {0};
    *out = NULL;
    for (int i = 0; i < ROWS; i++)
        if (a->given[rows[i].option]) row = i, n++;
    if (n == 0) return 0;
    if (n > 1) return complain("use/param", "Only one of --schema, --grammar, --regex and --json-reply can be given.");
    struct cli_grammar *g = *out = calloc(1, sizeof *g);
    if (!g) return complain("mem/load", "Not enough memory for a grammar.");
    int status = compile(g, row, a->text[rows[row].option], &err);
    if (!status) status = learn(g, e, &err);
    if (!status) return 0;
    if (err.code) complain(status_name(err.code), err.message); /* otherwise a message has been printed */
    cli_grammar_free(g);
    *out = NULL;
    return 1;
}

int cli_grammar_pick(struct cli_grammar *g, struct quern_sequence *s, bool *said)
{
    if (!g) return quern_sample(s);
    const uint32_t *allowed = grammar_mask(g->grammar, g->vocabulary, g->state);
    int id = allowed ? quern_sample_among(s, allowed) : ERR_SCHEMA;
    if (id >= 0) g->state = grammar_take(g->grammar, g->vocabulary, g->state, (uint32_t)id);
    *said = !allowed;
    if (!allowed) complain("use/schema", grammar_error(g->grammar)->message);
    return id;
}

int cli_grammar_whole(const struct cli_grammar *g, const char *finish)
{
    if (!g || !strcmp(finish, "stop")) return 0;
    bool context = !strcmp(finish, "context");
    return complain("use/schema",
                    context ? "The reply ended before it was whole, at the limit of --context: give it a larger one."
                            : "The reply ended before it was whole, at the limit of --max-tokens: allow more.");
}
