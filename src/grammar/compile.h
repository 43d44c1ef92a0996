/* SPDX-License-Identifier: MIT
 *
 * Compiles a schema, pattern or other text that describes the allowed replies, until it is ready for matching, in one
 * call.
 */
#ifndef QUERN_GRAMMAR_COMPILE_H
#define QUERN_GRAMMAR_COMPILE_H

#include "grammar/grammar.h"

/* The numbers are known to js/engine/grammar.js. SCHEMA and JSON: see schema.h; CALLS: see calls.h. REGEX: a pattern
 * that the whole reply matches. CHOICES: a JSON array of strings. */
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
/* FLEXIBLE: allows white space in JSON. STRICT, CLOSED: as in schema_options, for schemas and calls. IGNORE_CASE,
 * DOT_ALL, MULTILINE: the flags i, s and m of a pattern. OLD_CASE: i works as without the flag u. */
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

/* The text must be writable, because some kinds decode strings in it. Returns OK, ERR_SCHEMA, ERR_PARAM (unknown kind)
 * or ERR_MEM_LOAD. All memory comes from m, so m's limit is the grammar's limit. Free the grammar with
 * grammar_free(). */
int grammar_compile(struct mem *m, int kind, uint8_t *text, size_t size, uint32_t flags, struct grammar **out,
                    struct error *err);

#endif
