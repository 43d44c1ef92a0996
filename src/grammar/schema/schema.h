/* SPDX-License-Identifier: MIT
 *
 * JSON Schema (draft 2020-12 and draft 7) to a grammar of the JSON texts that satisfy it.
 *
 * The texts are canonical: one text for each value, but for white space and the order of properties. Properties come as
 * the schema writes them, then required ones that it names nowhere else, then others; numbers and strings as
 * JSON.stringify writes them. What cannot be honoured exactly is refused by the keyword's name, never ignored;
 * docs/schemas.md has the list.
 *
 * How: a schema is a formula over assertions, and each assertion speaks of one type. Numbers and strings are regular,
 * so and, or and not are exact there; arrays and objects are alternatives of shapes (sets.h), each a conjunction, which
 * become expressions one by one.
 */
#ifndef QUERN_SCHEMA_H
#define QUERN_SCHEMA_H

#include "base/arena.h"
#include "grammar/grammar.h"

enum { SCHEMA_TEXT_MAX = 1 << 20 }; /* bytes */

struct schema_options {
    bool flexible; /* white space where JSON allows it, bounded; else none */
    bool spaced;   /* one space behind each comma and colon, as Python writes JSON, and chat templates */
    bool plain;    /* strings as they are, for tagged.c, which takes no other texts of such a schema */
    bool strict;   /* what would be passed over is refused */
    int tool;      /* whose parameters it describes, from 1 on, for notes; 0: nobody's */
    int draft;     /* 4, 6, 7, 2019 or 2020; 0: what $schema says, else 2020 */
    /* objects that list `properties` and say nothing of others have no others, though JSON Schema lets them */
    bool closed;
};

/* The texts that satisfy a schema. OK, ERR_SCHEMA (rule: the keyword, "json" or "limit"), ERR_MEM_LOAD. */
int schema_compile(struct grammar *g, struct mem *mem, struct bytes text, const struct schema_options *options,
                   gr_expr *start, struct error *err);
/* The members of an object that satisfies a schema, between tags (tagged.c). spaced; statuses as above. */
int schema_tagged(struct grammar *g, struct mem *mem, struct bytes text, const struct schema_options *options,
                  gr_expr *start, struct error *err);
/* Any JSON value. */
int schema_any(struct grammar *g, struct mem *mem, const struct schema_options *options, gr_expr *start,
               struct error *err);

#endif
