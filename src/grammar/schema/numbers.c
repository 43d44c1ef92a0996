/* SPDX-License-Identifier: MIT
 *
 * Languages of numbers. A bound becomes a comparison digit by digit, as an expression over positive magnitudes of one
 * form.
 */
#include "grammar/schema/numbers.h"

#include <string.h>

static struct bytes text_of(const char *text) { return (struct bytes){(const uint8_t *)text, strlen(text)}; }

static gr_expr pattern(struct grammar *g, const char *text)
{
    return gr_regex(g, text_of(text), GR_WHOLE, GR_PLAIN, NULL);
}

/* --- decimals -------------------------------------------------------------------------------------------- */

/* Reads the digits without zeros at either end. Returns false if there are too many. */
static bool read_digits(struct bytes text, size_t end, struct decimal *d)
{
    int zeros = 0, point = 0;
    bool after = false;
    for (size_t i = d->negative; i < end; i++) {
        if (text.data[i] == '.') {
            after = true;
            continue;
        }
        uint8_t digit = (uint8_t)(text.data[i] - '0');
        point += !after && (d->n || digit || zeros);
        if (digit == 0) {
            if (d->n) zeros++;
            else if (after) point--;
            continue;
        }
        if (d->n + zeros >= DECIMAL_DIGITS) return false;
        for (; zeros > 0; zeros--) d->digits[d->n++] = 0;
        d->digits[d->n++] = digit;
    }
    d->point = point;
    return true;
}

bool decimal_read(struct bytes text, struct decimal *d)
{
    size_t end = 0;
    int exponent = 0;
    *d = (struct decimal){.negative = text.size && text.data[0] == '-'};
    while (end < text.size && (text.data[end] | 32) != 'e') end++;
    bool down = end + 1 < text.size && text.data[end + 1] == '-';
    for (size_t i = end + 1; i < text.size; i++)
        if (text.data[i] >= '0' && text.data[i] <= '9' && exponent < 10000)
            exponent = exponent * 10 + text.data[i] - '0';
    if (!read_digits(text, end, d)) return false;
    if (d->n == 0) d->negative = false, d->point = 0;
    else d->point += down ? -exponent : exponent;
    return d->point <= 308 && d->point >= -306;
}

int decimal_compare_texts(struct bytes a, struct bytes b)
{
    struct decimal x, y;
    if (!decimal_read(a, &x) || !decimal_read(b, &y)) return bytes_compare(a, b);
    return x.negative != y.negative || x.n != y.n || x.point != y.point || memcmp(x.digits, y.digits, (size_t)x.n) != 0;
}

/* The nearest decimal, towards zero or away from it, that no reader rounds to d. d is not 0. */
static struct decimal neighbour(const struct decimal *d, bool away)
{
    bool power = d->n == 1 && d->digits[0] == 1;
    struct decimal out = *d;
    int n = (d->n <= d->point ? 16 : 15) + (power && !away); /* whole numbers are doubles, so one digit more is safe */
    if (n < d->n) n = d->n;
    memset(out.digits + d->n, 0, (size_t)(DECIMAL_DIGITS - d->n));
    int i = n - 1;
    if (away) {
        while (i >= 0 && out.digits[i] == 9) out.digits[i--] = 0;
        if (i >= 0) out.digits[i]++;
        else out = (struct decimal){.negative = d->negative, .point = d->point + 1, .digits = {1}};
    } else {
        while (out.digits[i] == 0) out.digits[i--] = 9; /* the first digit is not 0 */
        out.digits[i]--;
        if (out.digits[0] == 0) {
            memmove(out.digits, out.digits + 1, DECIMAL_DIGITS - 1);
            out.digits[DECIMAL_DIGITS - 1] = 0;
            out.point--;
        }
    }
    for (out.n = DECIMAL_DIGITS; out.n > 0 && out.digits[out.n - 1] == 0;) out.n--;
    return out;
}

/* --- forms ----------------------------------------------------------------------------------------------- */

/* Exponents stay in the range where every mantissa gives a finite, normal number; the last power has its own limit. */
bool number_forms(struct grammar *g, struct number_forms *f)
{
    f->whole = pattern(g, "[1-9][0-9]{0,20}");
    gr_expr high = pattern(g, "[1-9][0-9]{0,20}\\.[0-9]{0,20}[1-9]");
    f->fraction =
        gr_or(g, pattern(g, "0\\.0{0,5}[1-9](?:[0-9]{0,15}[1-9])?"), gr_and(g, high, pattern(g, "[0-9.]{3,18}")));
    f->parted =
        gr_or(g, pattern(g, "0\\.0{0,5}[1-9](?:[0-9]{0,14}[1-9])?"), gr_and(g, high, pattern(g, "[0-9.]{3,17}")));
    f->sure = gr_or(g, pattern(g, "0\\.0{0,5}[1-9](?:[0-9]{0,13}[1-9])?"), gr_and(g, high, pattern(g, "[0-9.]{3,16}")));
    f->tiny = pattern(g, "[1-9](?:\\.[0-9]{0,15}[1-9])?e-(?:[7-9]|[1-9][0-9]|[12][0-9][0-9]|30[0-7])");
    f->huge = pattern(
        g,
        "[1-9](?:\\.[0-9]{0,15}[1-9])?e\\+(?:2[1-9]|[3-9][0-9]|[12][0-9][0-9]|30[0-7])|1(?:\\.(?:[0-6][0-9]{0,14})?[1-6])?e\\+308");
    return f->huge != 0;
}

static gr_expr three(struct grammar *g, gr_expr a, gr_expr b, gr_expr c)
{
    gr_expr parts[3] = {a, b, c};
    return gr_sequence(g, parts, 3);
}

/* Zero if wanted, magnitudes with a minus sign, and magnitudes without one. */
static gr_expr signs(struct grammar *g, gr_expr negative, bool zero, gr_expr positive)
{
    gr_expr parts[3] = {gr_cat(g, gr_literal(g, "-"), negative), zero ? gr_literal(g, "0") : gr_never(g), positive};
    return gr_any(g, parts, 3);
}

static gr_expr any_magnitude(struct grammar *g, const struct number_forms *f)
{
    gr_expr parts[4] = {f->whole, f->fraction, f->tiny, f->huge};
    return gr_any(g, parts, 4);
}

gr_expr number_any(struct grammar *g, const struct number_forms *f)
{
    return signs(g, any_magnitude(g, f), true, any_magnitude(g, f));
}

gr_expr number_integer(struct grammar *g, const struct number_forms *f) { return signs(g, f->whole, true, f->whole); }

gr_expr number_not_integer(struct grammar *g, const struct number_forms *f)
{
    gr_expr parts = gr_or(g, f->parted, f->tiny);
    return signs(g, parts, false, parts);
}

enum { ZEROS = 6 /* most zeros at the end of a fraction */ };

/* Any finite number: digits, a fraction, an exponent. */
static gr_expr any_written(struct grammar *g)
{
    return pattern(
        g,
        "0|-?(?:0\\.[0-9]{1,20}|[1-9][0-9]{0,20}(?:\\.[0-9]{1,20})?"
        "|[1-9](?:\\.[0-9]{1,20})?[eE][-+]?(?:[0-9]{1,2}|[12][0-9][0-9]|30[0-7])|1(?:\\.[0-6][0-9]{0,15})?[eE][+]?308)");
}

gr_expr number_written(struct grammar *g, const struct number_forms *f, gr_expr numbers)
{
    if (numbers == number_any(g, f)) return any_written(g);
    if (numbers == gr_never(g) || numbers == number_integer(g, f)) return numbers;
    gr_expr parts = gr_and(g, numbers, signs(g, f->fraction, false, f->fraction)),
            wholes = gr_and(g, numbers, number_integer(g, f));
    if (gr_is_empty(g, parts) == GR_YES) return numbers;
    gr_expr zeros = gr_repeat(g, gr_literal(g, "0"), 1, ZEROS);
    return gr_any(g, (gr_expr[]){numbers, gr_cat(g, parts, zeros), three(g, wholes, gr_literal(g, "."), zeros)}, 3);
}

/* The text of a number with these digits, as JSON.stringify writes it. */
gr_expr number_text(struct grammar *g, const struct decimal *d)
{
    uint8_t out[DECIMAL_DIGITS + 40];
    size_t n = 0;
    bool plain = d->point > -6 && d->point <= 21;
    if (d->n == 0) return gr_literal(g, "0");
    if (d->negative) out[n++] = '-';
    if (plain && d->point <= 0) {
        out[n++] = '0';
        out[n++] = '.';
        for (int i = d->point; i < 0; i++) out[n++] = '0';
    }
    int before = !plain ? 1 : d->point;
    for (int i = 0; i < d->n || (plain && i < d->point); i++) {
        if (i == before && before > 0) out[n++] = '.';
        out[n++] = (uint8_t)('0' + (i < d->n ? d->digits[i] : 0));
    }
    int exponent = d->point - 1, size = exponent < 0 ? -exponent : exponent;
    if (!plain) {
        out[n++] = 'e';
        out[n++] = exponent < 0 ? '-' : '+';
        if (size >= 100) out[n++] = (uint8_t)('0' + size / 100);
        if (size >= 10) out[n++] = (uint8_t)('0' + size / 10 % 10);
        out[n++] = (uint8_t)('0' + size % 10);
    }
    return gr_text(g, (struct bytes){out, n});
}

/* --- comparisons ----------------------------------------------------------------------------------------- */

/* A bound's magnitude as digits before and after the point. */
struct split {
    uint8_t whole[24], parts[DECIMAL_DIGITS + 8]; /* as text */
    int n_whole, n_parts;                          /* whole is "0" if the magnitude is below 1 */
};

static struct split split_of(const struct decimal *d)
{
    struct split s = {0};
    for (int i = 0; i < d->point; i++) s.whole[s.n_whole++] = (uint8_t)('0' + (i < d->n ? d->digits[i] : 0));
    if (s.n_whole == 0) s.whole[s.n_whole++] = '0';
    for (int i = d->point; i < 0; i++) s.parts[s.n_parts++] = '0';
    for (int i = d->point > 0 ? d->point : 0; i < d->n; i++) s.parts[s.n_parts++] = (uint8_t)('0' + d->digits[i]);
    return s;
}

static gr_expr digit_between(struct grammar *g, int first, int last)
{
    return first > last ? gr_never(g) : gr_range(g, (uint32_t)('0' + first), (uint32_t)('0' + last));
}

static gr_expr digits(struct grammar *g, uint32_t least, uint32_t most)
{
    return gr_repeat(g, digit_between(g, 0, 9), least, most);
}

/* Whole numbers below (or above) the one of n digits in `text`; zero included. */
static gr_expr whole_beyond(struct grammar *g, const uint8_t *text, int n, bool below)
{
    gr_expr out =
        below ? (n > 1 ? gr_or(g, gr_literal(g, "0"), gr_cat(g, digit_between(g, 1, 9), digits(g, 0, (uint32_t)n - 2)))
                       : gr_never(g))
              : gr_cat(g, digit_between(g, 1, 9), digits(g, (uint32_t)n, GR_MANY));
    for (int i = 0; i < n; i++) {
        int digit = text[i] - '0', least = i == 0 && n > 1;
        gr_expr other = below ? digit_between(g, least, digit - 1) : digit_between(g, digit + 1, 9);
        out = gr_or(g, out,
                    three(g, gr_text(g, (struct bytes){text, (size_t)i}), other,
                          digits(g, (uint32_t)(n - 1 - i), (uint32_t)(n - 1 - i))));
    }
    return out;
}

/* Digits after the point, any number of them, whose value is at most (or at least) that of s. */
static gr_expr parts_beyond(struct grammar *g, const struct split *s, bool below)
{
    gr_expr out = gr_never(g);
    for (int i = 0; i < s->n_parts; i++) {
        int digit = s->parts[i] - '0';
        struct bytes before = {s->parts, (size_t)i};
        gr_expr other = below ? digit_between(g, 0, digit - 1) : digit_between(g, digit + 1, 9);
        out = gr_or(g, out, three(g, gr_text(g, before), other, digits(g, 0, GR_MANY)));
        if (below && i > 0) out = gr_or(g, out, gr_text(g, before));
    }
    gr_expr same = gr_text(g, (struct bytes){s->parts, (size_t)s->n_parts});
    if (!below) same = gr_cat(g, same, digits(g, 0, GR_MANY));
    else if (s->n_parts == 0) same = gr_never(g);
    return gr_or(g, out, same);
}

/* Magnitudes with a point that are at most (or at least) d. */
static gr_expr fractions_beyond(struct grammar *g, const struct number_forms *f, const struct decimal *d, bool below)
{
    struct split s = split_of(d);
    gr_expr point = gr_literal(g, "."), same = gr_text(g, (struct bytes){s.whole, (size_t)s.n_whole});
    gr_expr other = three(g, whole_beyond(g, s.whole, s.n_whole, below), point, digits(g, 1, GR_MANY));
    return gr_and(g, f->fraction, gr_or(g, other, three(g, same, point, parts_beyond(g, &s, below))));
}

static gr_expr wholes_beyond(struct grammar *g, const struct number_forms *f, const struct decimal *d,
                             enum number_order order)
{
    struct split s = split_of(d);
    bool below = order <= NUMBER_LE, itself = s.n_parts ? below : order == NUMBER_LE || order == NUMBER_GE;
    gr_expr out = whole_beyond(g, s.whole, s.n_whole, below);
    if (itself) out = gr_or(g, out, gr_text(g, (struct bytes){s.whole, (size_t)s.n_whole}));
    return gr_and(g, f->whole, out);
}

/* Positive magnitudes that satisfy the comparison with d > 0. */
static gr_expr magnitudes(struct grammar *g, const struct number_forms *f, const struct decimal *d,
                          enum number_order order)
{
    bool below = order <= NUMBER_LE, strict = order == NUMBER_LT || order == NUMBER_GT;
    struct decimal near = strict ? neighbour(d, !below) : *d;
    bool rounded = strict && d->point > 15; /* large whole numbers may be rounded to the bound */
    gr_expr wholes =
        rounded ? wholes_beyond(g, f, &near, below ? NUMBER_LE : NUMBER_GE) : wholes_beyond(g, f, d, order);
    gr_expr parts[3] = {wholes, fractions_beyond(g, f, &near, below), below ? f->tiny : f->huge};
    return gr_any(g, parts, 3);
}

bool number_bound_fits(const struct decimal *d) { return d->n == 0 || (d->point > -5 && d->point <= 21); }

gr_expr number_bound(struct grammar *g, const struct number_forms *f, enum number_order order, const struct decimal *d)
{
    static const enum number_order mirrored[] = {NUMBER_GT, NUMBER_GE, NUMBER_LE, NUMBER_LT};
    gr_expr all = any_magnitude(g, f), none = gr_never(g);
    bool below = order <= NUMBER_LE, itself = order == NUMBER_LE || order == NUMBER_GE;
    if (d->n == 0) return signs(g, below ? all : none, itself, below ? none : all);
    gr_expr some = magnitudes(g, f, d, d->negative ? mirrored[order] : order);
    if (d->negative) return below ? signs(g, some, false, none) : signs(g, some, true, all);
    return below ? signs(g, all, true, some) : signs(g, none, false, some);
}

/* --- multiples ------------------------------------------------------------------------------------------- */

/* Whole numbers up to 2^53, which every reader represents exactly. */
static gr_expr exact_wholes(struct grammar *g, const struct number_forms *f)
{
    static const struct decimal most = {
        .n = 16, .point = 16, .digits = {9, 0, 0, 7, 1, 9, 9, 2, 5, 4, 7, 4, 0, 9, 9, 2}};
    return wholes_beyond(g, f, &most, NUMBER_LE);
}

gr_expr number_sure(struct grammar *g, const struct number_forms *f)
{
    gr_expr parts = gr_any(g, (gr_expr[]){exact_wholes(g, f), f->sure, f->tiny}, 3);
    return signs(g, parts, true, parts);
}

/* Digits after the point in multiples of step / 10^places, where `one` stands for 1. */
static gr_expr parts_of_multiples(struct grammar *g, uint64_t step, uint64_t one, int places)
{
    gr_expr out = gr_never(g);
    if (step == 1) return digits(g, 1, (uint32_t)places);
    for (uint64_t value = step; value < one; value += step) {
        uint8_t text[20];
        uint64_t rest = value;
        for (int i = places; i > 0; rest /= 10) text[--i] = (uint8_t)('0' + rest % 10);
        size_t n = (size_t)places;
        while (n > 0 && text[n - 1] == '0') n--;
        out = gr_or(g, out, gr_text(g, (struct bytes){text, n}));
    }
    return out;
}

/* Tiny multiples of 10^-places. */
static gr_expr tiny_multiples(struct grammar *g, const struct number_forms *f, int places)
{
    gr_expr out = gr_never(g), digit = digit_between(g, 1, 9), point = gr_literal(g, ".");
    for (int i = 7; i <= places; i++) {
        char tail[8] = {'e', '-', i < 10 ? (char)('0' + i) : '1', i < 10 ? 0 : (char)('0' + i - 10)};
        gr_expr mantissa =
            places > i ? gr_or(g, digit, three(g, digit, point, digits(g, 1, (uint32_t)(places - i)))) : digit;
        out = gr_or(g, out, gr_and(g, f->tiny, gr_cat(g, mantissa, gr_literal(g, tail))));
    }
    return out;
}

gr_expr number_multiple(struct grammar *g, const struct number_forms *f, const struct decimal *d)
{
    uint64_t step = 0, one = 1;
    int places = d->n - d->point;
    if (d->n == 0 || d->negative || d->n > 17 || d->point > 18 || places > 17) return 0;
    for (int i = 0; i < d->n || i < d->point; i++) step = step * 10 + (uint64_t)(i < d->n ? d->digits[i] : 0);
    if (places <= 0) {
        gr_expr whole = step == 1 ? f->whole : gr_and(g, exact_wholes(g, f), gr_multiple(g, step));
        return signs(g, whole, true, whole);
    }
    for (int i = 0; i < places; i++) one *= 10;
    if (one % step || (step > 1 && (one / step > 1000 || places > 6))) return 0;
    gr_expr tail = gr_and(
        g, f->fraction, three(g, digits(g, 1, GR_MANY), gr_literal(g, "."), parts_of_multiples(g, step, one, places)));
    gr_expr parts[3] = {f->whole, tail, tiny_multiples(g, f, places)};
    gr_expr positive = gr_any(g, parts, 3);
    return signs(g, positive, true, positive);
}
