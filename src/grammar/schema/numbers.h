/* SPDX-License-Identifier: MIT
 *
 * Numbers as JSON.stringify writes them: each value has one text, so that AND, OR and NOT of texts are those of values.
 *
 * Readers round texts to doubles. Texts have at most 17 digits, which is what a double may need; where 16 or 17 digits
 * could be rounded to a bound that excludes itself, or to a whole number, they are left out.
 */
#ifndef QUERN_SCHEMA_NUMBERS_H
#define QUERN_SCHEMA_NUMBERS_H

#include "grammar/grammar.h"

enum { DECIMAL_DIGITS = 40 };

/* 0.DIGITS * 10^point; no digits: zero. The first and the last digit are not 0. */
struct decimal {
    bool negative;
    int n, point;
    uint8_t digits[DECIMAL_DIGITS];
};

bool decimal_read(struct bytes text, struct decimal *d); /* false: more digits than it keeps, or no finite double */
/* 0: the same number; texts that cannot be read are compared as they are */
int decimal_compare_texts(struct bytes a, struct bytes b);

/* The forms that everything else is cut out of. */
struct number_forms {
    gr_expr whole;    /* positive integers below 10^21 */
    gr_expr fraction; /* positive, with a point */
    gr_expr parted;   /* the same with at most 16 digits: never read as a whole number */
    gr_expr sure;     /* with at most 15: read as no other of them */
    gr_expr tiny;     /* positive, below 10^-6, with an exponent */
    gr_expr huge;     /* from 10^21 on */
};

bool number_forms(struct grammar *g, struct number_forms *f);
gr_expr number_any(struct grammar *g, const struct number_forms *f);
gr_expr number_integer(struct grammar *g, const struct number_forms *f);
gr_expr number_not_integer(struct grammar *g, const struct number_forms *f);
gr_expr number_sure(struct grammar *g, const struct number_forms *f); /* those that no rounding makes a multiple */
gr_expr number_text(struct grammar *g, const struct decimal *d);

/* What texts of numbers become where they are written: a fraction may end in zeros, and a whole number among fractions
 * in .0; of any number there are exponents too, as other programs write them. No value is added. */
gr_expr number_written(struct grammar *g, const struct number_forms *f, gr_expr numbers);

enum number_order { NUMBER_LT, NUMBER_LE, NUMBER_GE, NUMBER_GT };
/* Whether a bound can be kept exactly: 0, or from 10^-5 on and below 10^21. */
bool number_bound_fits(const struct decimal *d);
gr_expr number_bound(struct grammar *g, const struct number_forms *f, enum number_order order, const struct decimal *d);
/* Multiples of d > 0; 0 without an error in the grammar: not of such a number. */
gr_expr number_multiple(struct grammar *g, const struct number_forms *f, const struct decimal *d);

#endif
