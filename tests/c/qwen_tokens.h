/* SPDX-License-Identifier: MIT
 *
 * Qwen3's tokens for grammars, from the published rank file (on each line base64, a space, a number), then 26 special
 * tokens.
 */
#ifndef QUERN_QWEN_TOKENS_H
#define QUERN_QWEN_TOKENS_H

#include "grammar/vocabulary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QWEN_TOKENS = 151643, QWEN_SPECIAL = 26, QWEN_END = 151645 };

static inline int base64_digit(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

static inline size_t base64_decode(const char *text, uint8_t *out)
{
    uint32_t bits = 0;
    size_t n = 0;
    for (int held = 0; base64_digit(*text) >= 0; text++) {
        bits = bits << 6 | (uint32_t)base64_digit(*text);
        held += 6;
        if (held < 8) continue;
        held -= 8;
        out[n++] = (uint8_t)(bits >> held);
    }
    return n;
}

/* Reads every `step`-th token, and every end token. The caller frees the parts. false: the file does not exist. */
static inline bool qwen_tokens(const char *fixtures, uint32_t step, struct vocabulary_source *out)
{
    char path[1000], line[1000];
    snprintf(path, sizeof path, "%s/vocab/qwen.tiktoken", fixtures);
    FILE *f = fopen(path, "r");
    if (!f) return false;
    uint32_t most = QWEN_TOKENS + QWEN_SPECIAL, at = 0;
    uint8_t *bytes = malloc(most * 16), *kinds = calloc(most, 1);
    uint32_t *sizes = calloc(most, sizeof *sizes), n = 0;
    for (uint32_t i = 0; fgets(line, sizeof line, f); i++) {
        if (i % step && i >= 256) continue; /* keeps single bytes, so that every text can be written */
        sizes[n] = (uint32_t)base64_decode(line, bytes + at);
        at += sizes[n++];
    }
    for (uint32_t i = 0; i < QWEN_SPECIAL; i++, n++) {
        bytes[at++] = '<';
        sizes[n] = 1;
        kinds[n] = i == 0 || i == 2 ? TOKEN_END : TOKEN_NEVER;
    }
    fclose(f);
    *out = (struct vocabulary_source){bytes, sizes, kinds, n};
    return true;
}

static inline void qwen_tokens_free(struct vocabulary_source *s)
{
    free((void *)s->bytes);
    free((void *)s->sizes);
    free((void *)s->kinds);
}

#endif
