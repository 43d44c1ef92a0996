/* SPDX-License-Identifier: MIT
 *
 * A text of any kind that says what replies may be, made ready for matching in one call.
 */
#ifndef QUERN_GRAMMAR_COMPILE_H
#define QUERN_GRAMMAR_COMPILE_H

#include "grammar/grammar.h"

/* Numbers that js/engine/grammar.js knows too. Schemas and JSON: schema.h; tools' calls: calls.h. REGEX: the whole
 * reply. CHOICES: a JSON array of strings. */
enum grammar_kind {
    GRAMMAR_SCHEMA,
    GRAMMAR_REGEX,
    GRAMMAR_GBNF,
    GRAMMAR_CHOICES,
    GRAMMAR_JSON,
    GRAMMAR_CALLS,
    GRAMMAR_TAGGED_CALLS,
    GRAMMAR_KINDS
};
/* FLEXIBLE: white space in JSON. Of schemas and calls, as in schema_options: STRICT, CLOSED. The flags i, s and m of a
 * pattern; OLD_CASE: i is meant as without u. */
enum {
    GRAMMAR_FLEXIBLE = 1,
    GRAMMAR_IGNORE_CASE = 2,
    GRAMMAR_DOT_ALL = 4,
    GRAMMAR_STRICT = 8,
    GRAMMAR_MULTILINE = 16,
    GRAMMAR_OLD_CASE = 32,
    GRAMMAR_CLOSED = 64
};
enum { GRAMMAR_TEXT_MOST = 1 << 20 }; /* bytes */

/* The text is the caller's to write: some kinds decode strings in it. OK, ERR_SCHEMA, ERR_PARAM (no such kind),
 * ERR_MEM_LOAD. All memory is m's, so its limit is the grammar's; grammar_free() gives it back. */
int grammar_compile(struct mem *m, int kind, uint8_t *text, size_t size, uint32_t flags, struct grammar **out,
                    struct error *err);

#endif
