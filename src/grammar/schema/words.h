/* SPDX-License-Identifier: MIT
 *
 * The regular languages of a schema: its numbers, and its strings as they are written between quotes. AND, OR and NOT
 * are exact here.
 */
#ifndef QUERN_SCHEMA_WORDS_H
#define QUERN_SCHEMA_WORDS_H

#include "grammar/schema/numbers.h"
#include "grammar/schema/tree.h"

struct schema_words {
    enum gr_form form; /* of strings */
    struct number_forms forms;
    gr_expr never, number, integer, letter, string; /* letter: one code point */
    gr_expr written; /* any number, in all allowed spellings */
    /* brackets of objects and arrays, separators and quote, with the allowed white space */
    gr_expr open, close, begin, end, comma, colon, quote;
};

bool words_new(struct schema *s);
/* AND of a and b; fast if one of them is `all`. An empty result is `never`. */
gr_expr words_and(struct schema *s, gr_expr all, gr_expr a, gr_expr b);
gr_expr words_but(struct schema *s, gr_expr all, gr_expr a); /* all but a */
gr_expr words_quoted(struct schema *s, gr_expr strings);     /* those that can be written, in quotes */
bool words_empty(struct schema *s, gr_expr e);               /* certainly empty; false if unknown */

/* Assertions about numbers and strings: the texts that satisfy them, or those that violate them. value: node of the
 * keyword's value. 0 after an error. */
bool words_is_number(const char *keyword);
bool words_is_string(const char *keyword);
gr_expr words_number(struct schema *s, uint32_t value, const char *keyword, bool negative);
gr_expr words_string(struct schema *s, uint32_t value, const char *keyword, bool negative);
/* Texts of a value that is a number or a string. */
gr_expr words_const_number(struct schema *s, uint32_t value, bool negative);
gr_expr words_const_string(struct schema *s, uint32_t value);
gr_expr words_of_name(struct schema *s, uint32_t name);
bool words_have_name(struct schema *s, gr_expr e, uint32_t name); /* whether e contains it */

/* formats.c: the pattern of a format; NULL if it is unknown */
const char *format_pattern(struct bytes name);

#endif
