/* SPDX-License-Identifier: MIT
 *
 * Languages of bytes that describe the allowed replies: built as expressions, matched byte by byte.
 *
 * An expression is a number. Equal expressions are made only once, so comparing them is comparing numbers. Regular
 * expressions are matched by their derivatives (the texts that may follow a byte are an expression again), which makes
 * AND, NOT and counted repeats exact and cheap. Rules may nest: what follows a call stays after it in the expression,
 * which so replaces the stack of a pushdown automaton. States are the expressions reached so far, and their transitions
 * are stored. A state from which no text can be completed is dead at once, so no reply runs into a dead end.
 *
 * Everything is bounded: memory by `struct mem`, the work of each call, nesting. Exceeding a limit is a typed error
 * (ERR_SCHEMA, ERR_MEM_LOAD) in grammar_error(), which keeps the first error. Results are integers and the same on all
 * machines.
 */
#ifndef QUERN_GRAMMAR_H
#define QUERN_GRAMMAR_H

#include "base/arena.h"

struct grammar;

typedef uint32_t gr_expr; /* 0: failed; all functions pass 0 on, so builders need to check the end result only */

#define GR_MANY UINT32_MAX /* no limit */

/* NULL when memory is short. */
struct grammar *grammar_new(struct mem *m);
void grammar_free(struct grammar *g);                            /* accepts NULL */
const struct error *grammar_error(const struct grammar *g);      /* code is OK if there was no error; borrowed */
/* For builders: records the first error. rule: the keyword with the error. Returns 0. */
gr_expr grammar_fail(struct grammar *g, const char *rule, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Records a part that a builder ignored, once: a rule, a space, a sentence and a line end. There are some dozens of
 * notes at most. */
void grammar_note(struct grammar *g, const char *rule, const char *format, ...) __attribute__((format(printf, 3, 4)));
const char *grammar_notes(const struct grammar *g); /* borrowed */

/* From now on `call` is called every millisecond or two while a grammar is compiled. A result other than 0 ends the
 * compilation with an error. NULL: nothing is called. */
void grammar_pace(int (*call)(void));

/* --- expressions ----------------------------------------------------------------------------------------------- */

/* Form of code points in a text: UTF-8, or the inside of a JSON string. In JSON each code point has one form: escapes
 * only where JSON requires them, the short ones (\" \\ \b \f \n \r \t) or \u00XX in lower case. */
enum gr_form { GR_PLAIN, GR_JSON };

struct gr_range {
    uint32_t first, last; /* code points; surrogates are left out */
};

gr_expr gr_never(struct grammar *g);                             /* no text at all, not even the empty one */
gr_expr gr_empty(struct grammar *g);                             /* the empty text */
gr_expr gr_everything(struct grammar *g);                        /* any bytes */
gr_expr gr_text(struct grammar *g, struct bytes text);           /* exactly these bytes */
gr_expr gr_literal(struct grammar *g, const char *text);
/* this UTF-8 text in its JSON form (GR_JSON); invalid bytes are an error */
gr_expr gr_json_text(struct grammar *g, struct bytes text);
gr_expr gr_byte_set(struct grammar *g, const uint32_t set[8]);   /* one byte of the set */
gr_expr gr_range(struct grammar *g, uint32_t first, uint32_t last); /* one code point, as UTF-8 */
/* one code point of the ranges, which may be in any order */
gr_expr gr_class(struct grammar *g, enum gr_form form, const struct gr_range *ranges, size_t n);
/* Sequences and alternatives. Build long ones in one call, or from the right: cat(a, cat(b, cat(c, ...))). */
gr_expr gr_cat(struct grammar *g, gr_expr a, gr_expr b);
gr_expr gr_sequence(struct grammar *g, const gr_expr *parts, size_t n);
gr_expr gr_or(struct grammar *g, gr_expr a, gr_expr b);
gr_expr gr_any(struct grammar *g, const gr_expr *choices, size_t n);
/* Only for regular expressions (without rules). NOT: all byte strings that are not in a. */
gr_expr gr_and(struct grammar *g, gr_expr a, gr_expr b);
gr_expr gr_not(struct grammar *g, gr_expr a);
/* a, repeated least to most times (GR_MANY: no limit). a may have rules. Repeats are counted, not copied. */
gr_expr gr_repeat(struct grammar *g, gr_expr a, uint32_t least, uint32_t most);
/* Decimal numbers without leading zeros that are multiples of divisor, which is 1 .. 10^18. */
gr_expr gr_multiple(struct grammar *g, uint64_t divisor);
/* Recursion: a rule represents its body, which is defined once, later. */
gr_expr gr_rule(struct grammar *g);
void gr_define(struct grammar *g, gr_expr rule, gr_expr body);
void gr_name(struct grammar *g, gr_expr rule, struct bytes name); /* for messages */

/* Questions about regular expressions, with bounded work. GR_UNKNOWN also if an expression has rules or has failed. */
enum gr_answer { GR_NO, GR_YES, GR_UNKNOWN };
bool gr_is_regular(const struct grammar *g, gr_expr a);
enum gr_answer gr_is_empty(struct grammar *g, gr_expr a);                /* whether no text is in a */
enum gr_answer gr_disjoint(struct grammar *g, gr_expr a, gr_expr b);     /* whether no text is in both */
enum gr_answer gr_contains(struct grammar *g, gr_expr a, struct bytes text); /* whether the text is in a */

/* --- matching -------------------------------------------------------------------------------------------------- */

/* Ends building and prepares matching. Returns OK or the error's code: a rule that calls itself before any byte (left
 * recursion), an undefined rule, a start that no text satisfies, or a limit. */
int grammar_ready(struct grammar *g, gr_expr start, struct error *err);

typedef uint32_t gr_state;
enum { GR_DEAD = 0 }; /* no allowed text begins so; or a limit was reached, which grammar_error() names */

gr_state grammar_start(const struct grammar *g);
gr_state grammar_step(struct grammar *g, gr_state state, struct bytes text);
bool grammar_accepts(const struct grammar *g, gr_state state); /* whether the text may end here */
/* whether most of the grammar's states or memory are used; new texts should then begin in a new grammar */
bool grammar_worn(const struct grammar *g);

/* --- texts that are compiled to expressions -------------------------------------------------------------------- */

/* Compiles an ECMAScript pattern as with the flag u. form: form of the matched texts. GR_WHOLE: the whole text must
 * match; GR_SEARCH: a part of it, as for RegExp.test() and JSON Schema. The other flags are s, i and m; GR_OLD_CASE: i
 * compares letters as without u. Unsupported features (lookbehind, backreferences, \b) are refused by name. */
enum gr_where { GR_WHOLE = 0, GR_SEARCH = 1, GR_DOT_ALL = 2, GR_IGNORE_CASE = 4, GR_MULTILINE = 8, GR_OLD_CASE = 16 };
gr_expr gr_regex(struct grammar *g, struct bytes pattern, int where, enum gr_form form, struct error *err);
/* Compiles GBNF in llama.cpp's form. Replies match the rule `root`. */
gr_expr gr_gbnf(struct grammar *g, struct bytes text, struct error *err);
/* Compiles a JSON array of strings; a reply is exactly one of them. The text must be writable: strings are decoded in
 * it. */
gr_expr gr_choices(struct grammar *g, uint8_t *json, size_t size, struct error *err);

#endif
