/* SPDX-License-Identifier: MIT
 *
 * Numbers as JSON.stringify writes them: each value has one text, so AND, OR and NOT of texts are those of values.
 *
 * Readers round texts to doubles. Texts have at most 17 digits, which a double may need. Texts of 16 or 17 digits that
 * could be rounded to an excluded bound, or to a whole number, are left out.
 */
#ifndef QUERN_SCHEMA_NUMBERS_H
#define QUERN_SCHEMA_NUMBERS_H

#include "grammar/grammar.h"

enum { DECIMAL_DIGITS = 40 };

/* 0.DIGITS * 10^point; without digits: zero. The first and the last digit are not 0. */
struct decimal {
    bool negative;
    int n, point;
    uint8_t digits[DECIMAL_DIGITS];
};

bool decimal_read(struct bytes text, struct decimal *d); /* false: too many digits, or not a finite double */
/* 0: the same number; texts that cannot be read are compared as bytes */
int decimal_compare_texts(struct bytes a, struct bytes b);

/* The basic forms; all other languages are parts of these. */
struct number_forms {
    gr_expr whole;    /* positive integers below 10^21 */
    gr_expr fraction; /* positive, with a point */
    gr_expr parted;   /* fractions of at most 16 digits: never rounded to a whole number */
    gr_expr sure;     /* fractions of at most 15 digits: each is read as a different number */
    gr_expr tiny;     /* positive, below 10^-6, with an exponent */
    gr_expr huge;     /* from 10^21 on */
};

bool number_forms(struct grammar *g, struct number_forms *f);
gr_expr number_any(struct grammar *g, const struct number_forms *f);
gr_expr number_integer(struct grammar *g, const struct number_forms *f);
gr_expr number_not_integer(struct grammar *g, const struct number_forms *f);
gr_expr number_sure(struct grammar *g, const struct number_forms *f); /* numbers that no rounding makes a multiple */
gr_expr number_text(struct grammar *g, const struct decimal *d);

/* The texts in which numbers may be generated: a fraction may end in zeros, and among fractions a whole number may end
 * in .0. For any number there are also exponents in the forms of other programs. No values are added. */
gr_expr number_written(struct grammar *g, const struct number_forms *f, gr_expr numbers);

enum number_order { NUMBER_LT, NUMBER_LE, NUMBER_GE, NUMBER_GT };
/* Whether a bound can be respected exactly: 0, or of a size from 10^-5 to below 10^21. */
bool number_bound_fits(const struct decimal *d);
gr_expr number_bound(struct grammar *g, const struct number_forms *f, enum number_order order, const struct decimal *d);
/* Multiples of d > 0. Returns 0 without an error in the grammar if multiples of such a number are not supported. */
gr_expr number_multiple(struct grammar *g, const struct number_forms *f, const struct decimal *d);

#endif
