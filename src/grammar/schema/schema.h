/* SPDX-License-Identifier: MIT
 *
 * Compiles JSON Schema (draft 2020-12 and draft 7) to a grammar of the JSON texts that satisfy it.
 *
 * The texts are canonical: one text per value, except for white space and the order of properties. Properties come in
 * the order of the schema, then required ones that it does not describe, then others. Numbers and strings are as in
 * JSON.stringify. Conditions that cannot be met exactly are refused by the keyword's name, never ignored;
 * docs/recipes/schemas.md has the list.
 *
 * Method: a schema is a formula over assertions, and each assertion is about one type. Numbers and strings are regular,
 * so AND, OR and NOT are exact there. Arrays and objects are alternatives of shapes (sets.h), each a conjunction, which
 * become expressions one by one.
 */
#ifndef QUERN_SCHEMA_H
#define QUERN_SCHEMA_H

#include "base/arena.h"
#include "grammar/grammar.h"

enum { SCHEMA_TEXT_MAX = 1 << 20 }; /* bytes */

struct schema_options {
    bool flexible; /* bounded white space where JSON allows it; else none */
    bool spaced;   /* one space after each comma and colon, as in Python's JSON and in chat templates */
    bool plain;    /* strings without JSON escapes, for tagged.c, which uses no other texts of such a schema */
    bool strict;   /* refuses what would be ignored with a note */
    int tool;      /* number of the tool whose parameters the schema describes, from 1 on, for notes; 0: no tool */
    int draft;     /* 4, 6, 7, 2019 or 2020; 0: by $schema, else 2020 */
    /* objects with `properties` and no keyword about other members have no other members, although JSON Schema allows
     * them */
    bool closed;
};

/* Compiles the texts that satisfy a schema. OK, ERR_SCHEMA (rule: the keyword, "json" or "limit"), ERR_MEM_LOAD. */
int schema_compile(struct grammar *g, struct mem *mem, struct bytes text, const struct schema_options *options,
                   gr_expr *start, struct error *err);
/* Compiles the members of an object that satisfies a schema, between tags (tagged.c). options: spaced; statuses as
 * above. */
int schema_tagged(struct grammar *g, struct mem *mem, struct bytes text, const struct schema_options *options,
                  gr_expr *start, struct error *err);
/* Compiles any JSON value. */
int schema_any(struct grammar *g, struct mem *mem, const struct schema_options *options, gr_expr *start,
               struct error *err);

#endif
