/* SPDX-License-Identifier: MIT
 *
 * What a reply may be: languages of bytes, built as expressions, matched byte by byte.
 *
 * An expression is a number; equal ones are made once, so that comparing is comparing numbers. Regular ones are matched
 * by their derivatives (what may follow after a byte is an expression again), which makes AND, NOT and counted repeats
 * exact and cheap; rules nest as what follows a call stands behind it in the expression: the pushdown's stack. States
 * are expressions that were reached, their transitions are kept. A state from which no text can be finished is dead at
 * once, so no reply runs into a corner.
 *
 * Everything is bounded: memory by `struct mem`, work of each call, nesting. What is too much is a typed error
 * (ERR_SCHEMA, ERR_MEM_LOAD), kept in grammar_error(); the first one stays. Results are integers that depend on nothing
 * else: the same everywhere.
 */
#ifndef QUERN_GRAMMAR_H
#define QUERN_GRAMMAR_H

#include "base/arena.h"

struct grammar;

typedef uint32_t gr_expr; /* 0: failed; every function passes it on, so that builders need to look at the end only */

#define GR_MANY UINT32_MAX /* no limit */

/* NULL when memory is short. */
struct grammar *grammar_new(struct mem *m);
void grammar_free(struct grammar *g);                            /* accepts NULL */
const struct error *grammar_error(const struct grammar *g);      /* code OK when there was none; borrowed */
/* For builders: records the first error. rule: the keyword. Returns 0. */
gr_expr grammar_fail(struct grammar *g, const char *rule, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* What a builder passed over, told once: a rule, a space, a sentence and a line end each; at most some dozens. */
void grammar_note(struct grammar *g, const char *rule, const char *format, ...) __attribute__((format(printf, 3, 4)));
const char *grammar_notes(const struct grammar *g); /* borrowed */

/* From now on this is called every millisecond or two of work on a grammar that is being made, and ends it, by an
 * error, where it says other than 0. NULL: nothing. */
void grammar_pace(int (*call)(void));

/* --- expressions ----------------------------------------------------------------------------------------------- */

/* How the code points of a text stand in bytes: as UTF-8; or inside a JSON string, which has one way for each: escapes
 * only where they must be, the short ones (\" \\ \b \f \n \r \t) or \u00XX in lower case. */
enum gr_form { GR_PLAIN, GR_JSON };

struct gr_range {
    uint32_t first, last; /* code points; surrogates among them are left out */
};

gr_expr gr_never(struct grammar *g);                             /* no text at all */
gr_expr gr_empty(struct grammar *g);                             /* the text of no bytes */
gr_expr gr_everything(struct grammar *g);                        /* any bytes */
gr_expr gr_text(struct grammar *g, struct bytes text);           /* exactly these bytes */
gr_expr gr_literal(struct grammar *g, const char *text);
/* UTF-8, as the inside of a JSON string; invalid bytes are an error */
gr_expr gr_json_text(struct grammar *g, struct bytes text);
gr_expr gr_byte_set(struct grammar *g, const uint32_t set[8]);   /* one byte of the set */
gr_expr gr_range(struct grammar *g, uint32_t first, uint32_t last); /* one code point, as UTF-8 */
/* one code point of any of them, in any order */
gr_expr gr_class(struct grammar *g, enum gr_form form, const struct gr_range *ranges, size_t n);
/* Sequences and alternatives. Of many build them at once, or from the right: cat(a, cat(b, cat(c, ...))). */
gr_expr gr_cat(struct grammar *g, gr_expr a, gr_expr b);
gr_expr gr_sequence(struct grammar *g, const gr_expr *parts, size_t n);
gr_expr gr_or(struct grammar *g, gr_expr a, gr_expr b);
gr_expr gr_any(struct grammar *g, const gr_expr *choices, size_t n);
/* Regular expressions only (no rules inside). NOT: all byte strings that are not a's. */
gr_expr gr_and(struct grammar *g, gr_expr a, gr_expr b);
gr_expr gr_not(struct grammar *g, gr_expr a);
/* least to most (GR_MANY: no limit) times a, which may have rules. Counted, not copied. */
gr_expr gr_repeat(struct grammar *g, gr_expr a, uint32_t least, uint32_t most);
/* Decimal digits without leading zeros whose number is a multiple; divisor 1 .. 10^18. */
gr_expr gr_multiple(struct grammar *g, uint64_t divisor);
/* Recursion: a rule stands for its body, which is defined once, later. */
gr_expr gr_rule(struct grammar *g);
void gr_define(struct grammar *g, gr_expr rule, gr_expr body);
void gr_name(struct grammar *g, gr_expr rule, struct bytes name); /* for messages */

/* Questions about regular expressions, with bounded work. GR_UNKNOWN also where they have rules or have failed. */
enum gr_answer { GR_NO, GR_YES, GR_UNKNOWN };
bool gr_is_regular(const struct grammar *g, gr_expr a);
enum gr_answer gr_is_empty(struct grammar *g, gr_expr a);                /* no text is in it */
enum gr_answer gr_disjoint(struct grammar *g, gr_expr a, gr_expr b);     /* no text is in both */
enum gr_answer gr_contains(struct grammar *g, gr_expr a, struct bytes text); /* the text is in a */

/* --- matching -------------------------------------------------------------------------------------------------- */

/* Nothing is built after it. OK or the error's code: a rule that calls itself before any byte (left recursion) or was
 * never defined, a start that no text satisfies, limits. */
int grammar_ready(struct grammar *g, gr_expr start, struct error *err);

typedef uint32_t gr_state;
enum { GR_DEAD = 0 }; /* no text begins so; or a limit was met, and grammar_error() says which */

gr_state grammar_start(const struct grammar *g);
gr_state grammar_step(struct grammar *g, gr_state state, struct bytes text);
bool grammar_accepts(const struct grammar *g, gr_state state); /* the text may end here */
/* most of the states, or of the memory, that it may have are taken: texts should begin in a new one */
bool grammar_worn(const struct grammar *g);

/* --- texts that are compiled to expressions -------------------------------------------------------------------- */

/* An ECMAScript pattern as with the flag u; form: in which its texts stand. Anchored: the whole text has to match; else
 * `search`, as RegExp.test() and JSON Schema do. What is not honoured (lookbehind, backreferences, \b) is refused by
 * name. With GR_WHOLE or GR_SEARCH: the flags s, i and m, and that letters differ in case as they do without u. */
enum gr_where { GR_WHOLE = 0, GR_SEARCH = 1, GR_DOT_ALL = 2, GR_IGNORE_CASE = 4, GR_MULTILINE = 8, GR_OLD_CASE = 16 };
gr_expr gr_regex(struct grammar *g, struct bytes pattern, int where, enum gr_form form, struct error *err);
/* GBNF as llama.cpp writes it; the rule `root`. */
gr_expr gr_gbnf(struct grammar *g, struct bytes text, struct error *err);
/* A JSON array of strings, one of which it is, as it stands. The text is the caller's to write: strings are decoded in
 * it. */
gr_expr gr_choices(struct grammar *g, uint8_t *json, size_t size, struct error *err);

#endif
