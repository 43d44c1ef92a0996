/* SPDX-License-Identifier: MIT
 *
 * The JSON reader.
 */
#include "base/json_reader.h"

#include "base/json.h"

#include <string.h>

enum { NUMBER_MAX = 64 }; /* bytes; 17 digits express every double */

bool json_wrong(struct json_reader *r, size_t at, const char *sentence)
{
    uint64_t place = r->base + at;
    if (!r->status)
        r->status = fail(r->err, ERR_FORMAT, r->rule, place, "%s is damaged at byte %llu: %s.", r->what,
                         (unsigned long long)place, sentence);
    return false;
}

/* Skips white space and returns the next byte; -1 at the end, and after an error. */
static int next_byte(struct json_reader *r)
{
    while (r->pos < r->size &&
           (r->text[r->pos] == ' ' || r->text[r->pos] == '\n' || r->text[r->pos] == '\r' || r->text[r->pos] == '\t'))
        r->pos++;
    return r->status || r->pos == r->size ? -1 : r->text[r->pos];
}

enum json_kind json_peek(struct json_reader *r)
{
    int c = next_byte(r);
    switch (c) {
    case '{': return JSON_OBJECT;
    case '[': return JSON_ARRAY;
    case '"': return JSON_STRING;
    case 't': return JSON_TRUE;
    case 'f': return JSON_FALSE;
    case 'n': return JSON_NULL;
    default: return c == '-' || (c >= '0' && c <= '9') ? JSON_NUMBER : JSON_NOTHING;
    }
}

/* --- containers --------------------------------------------------------------------------------------- */

bool json_open(struct json_reader *r, enum json_kind kind)
{
    if (json_peek(r) != kind)
        return json_wrong(r, r->pos, kind == JSON_OBJECT ? "an object was expected" : "a list was expected");
    if (r->depth == JSON_DEPTH) return json_wrong(r, r->pos, "it is nested too deeply");
    uint64_t bit = 1ull << r->depth++;
    r->objects = kind == JSON_OBJECT ? r->objects | bit : r->objects & ~bit;
    r->fresh = true;
    r->pos++;
    return true;
}

static bool in_object(const struct json_reader *r) { return r->objects >> (r->depth - 1) & 1; }

/* Skips a comma and returns true, or skips the end of the container and returns false. */
bool json_more(struct json_reader *r)
{
    int c = next_byte(r), end = in_object(r) ? '}' : ']';
    bool fresh = r->fresh;
    r->fresh = false;
    if (c == end) {
        r->pos++;
        r->depth--;
        return false;
    }
    if (fresh && c >= 0) return true;
    if (c != ',')
        return json_wrong(r, r->pos, c < 0 ? "it ends too early" : "a comma or the end of the list was expected");
    r->pos++;
    c = next_byte(r);
    return c >= 0 && c != end ? true : json_wrong(r, r->pos, "something must follow a comma");
}

bool json_key(struct json_reader *r, struct bytes *key)
{
    if (!json_more(r) || !json_string_value(r, key)) return false;
    if (next_byte(r) != ':') return json_wrong(r, r->pos, "a colon was expected");
    r->pos++;
    return true;
}

/* --- strings ------------------------------------------------------------------------------------------- */

/* Value of the four hexadecimal digits at r->pos; -1 if they are not digits. */
static int hex4(struct json_reader *r)
{
    int value = 0;
    if (r->size - r->pos < 4) return -1;
    for (int i = 0; i < 4; i++) {
        int c = r->text[r->pos++], letter = c | 32;
        if (c >= '0' && c <= '9') value = value * 16 + c - '0';
        else if (letter >= 'a' && letter <= 'f') value = value * 16 + letter - 'a' + 10;
        else return -1;
    }
    return value;
}

/* Code point of the digits after \u, with the second half of a surrogate pair; -1 if they are not a character. */
static int32_t escaped_character(struct json_reader *r)
{
    int32_t high = hex4(r);
    if (high < 0xD800 || high >= 0xE000) return high;
    if (high >= 0xDC00 || r->size - r->pos < 6 || r->text[r->pos] != '\\' || r->text[r->pos + 1] != 'u') return -1;
    r->pos += 2;
    int32_t low = hex4(r);
    return low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00) : -1;
}

static size_t put_utf8(uint8_t *out, uint32_t c)
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t first[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6) out[i] = (uint8_t)(0x80 | (c & 63));
    out[0] = (uint8_t)(first[n] | c);
    return n;
}

/* Decodes the escape at r->pos, which is after its backslash, to out. Returns the number of bytes, which is less than
 * the escape's length; 0 if the escape is wrong. */
static size_t unescape(struct json_reader *r, uint8_t *out)
{
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    int c = r->pos < r->size ? r->text[r->pos++] : 0;
    const char *at = c ? strchr(letters, c) : NULL;
    if (at) return *out = (uint8_t)values[at - letters], 1;
    int32_t character = c == 'u' ? escaped_character(r) : -1;
    return character >= 0 ? put_utf8(out, (uint32_t)character) : 0;
}

bool json_string_value(struct json_reader *r, struct bytes *out)
{
    if (next_byte(r) != '"') return json_wrong(r, r->pos, "a string was expected");
    size_t to = ++r->pos;
    *out = (struct bytes){r->text + to, 0};
    while (r->pos < r->size && r->text[r->pos] != '"') {
        size_t at = r->pos, n = 1;
        uint8_t c = r->text[at];
        if (c < 0x20) return json_wrong(r, at, "a control character stands in a string");
        if (c == '\\') {
            r->pos++;
            n = unescape(r, r->text + to);
        } else {
            if (c >= 0x80) n = utf8_length(r->text + at, r->size - at);
            if (to != at) memmove(r->text + to, r->text + at, n);
            r->pos += n;
        }
        if (n == 0) return json_wrong(r, at, c == '\\' ? "an escape is wrong" : "it is not UTF-8");
        to += n;
    }
    if (r->pos == r->size) return json_wrong(r, r->pos, "it ends inside a string");
    out->size = (size_t)(r->text + to - out->data);
    r->pos++;
    return true;
}

/* --- numbers and words ---------------------------------------------------------------------------------- */

static size_t digits(const struct json_reader *r, size_t at)
{
    size_t n = 0;
    while (at + n < r->size && r->text[at + n] >= '0' && r->text[at + n] <= '9') n++;
    return n;
}

/* Length of the number at r->pos; 0 if there is no number by JSON's grammar. */
static size_t number_length(const struct json_reader *r)
{
    size_t at = r->pos + (r->text[r->pos] == '-'), n = digits(r, at);
    if (n == 0 || (n > 1 && r->text[at] == '0')) return 0;
    at += n;
    if (at < r->size && r->text[at] == '.') {
        n = digits(r, ++at);
        if (n == 0) return 0;
        at += n;
    }
    if (at < r->size && (r->text[at] | 32) == 'e') {
        at++;
        if (at < r->size && (r->text[at] == '+' || r->text[at] == '-')) at++;
        n = digits(r, at);
        if (n == 0) return 0;
        at += n;
    }
    return at - r->pos;
}

bool json_integer(struct json_reader *r, int64_t *out)
{
    size_t at = r->pos, n = json_peek(r) == JSON_NUMBER ? number_length(r) : 0;
    uint64_t value = 0;
    at = r->pos;
    if (n == 0 || n != digits(r, at) || n > 19)
        return json_wrong(r, at, "a whole number below 2^63, written in digits, was expected");
    for (size_t i = 0; i < n; i++) value = value * 10 + (uint64_t)(r->text[at + i] - '0'); /* below 10^19 */
    if (value > INT64_MAX) return json_wrong(r, at, "a number is not below 2^63");
    r->pos += n;
    *out = (int64_t)value;
    return true;
}

/* Returns value * 10^e. Powers up to 10^22 are exact, so numbers of up to 15 digits in that range are rounded only
 * once. */
static double scaled(double value, int e)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    for (; e > 22; e -= 22) value *= 1e22;
    for (; e < -22; e += 22) value /= 1e22;
    return e < 0 ? value / powers[-e] : value * powers[e];
}

/* The exponent after the letter e, cut at 9999. */
static int exponent_of(const uint8_t *text, size_t n)
{
    bool negative = n && *text == '-';
    int value = 0;
    for (size_t i = n && (*text == '-' || *text == '+'); i < n; i++)
        value = value > 999 ? 9999 : value * 10 + text[i] - '0';
    return negative ? -value : value;
}

/* Value of a number that fits JSON's grammar. Digits after the 18th count as zeros. */
static double number_of(const uint8_t *text, size_t n)
{
    bool negative = *text == '-', fraction = false;
    uint64_t digits = 0;
    int e = 0;
    for (size_t i = negative; i < n; i++) {
        if ((text[i] | 32) == 'e') {
            e += exponent_of(text + i + 1, n - i - 1);
            break;
        }
        if (text[i] == '.') {
            fraction = true;
            continue;
        }
        bool kept = digits < 100000000000000000u;
        if (kept) digits = digits * 10 + (uint64_t)(text[i] - '0');
        e += !kept - fraction;
    }
    double value = digits ? scaled((double)digits, e < -400 ? -400 : e > 400 ? 400 : e) : 0;
    return negative ? -value : value;
}

bool json_float(struct json_reader *r, double *out)
{
    size_t n = json_peek(r) == JSON_NUMBER ? number_length(r) : 0;
    if (n == 0 || n > NUMBER_MAX) return json_wrong(r, r->pos, "a number was expected");
    *out = number_of(r->text + r->pos, n);
    r->pos += n;
    return true;
}

static bool word(struct json_reader *r, const char *text)
{
    size_t n = strlen(text);
    if (r->size - r->pos < n || memcmp(r->text + r->pos, text, n) != 0)
        return json_wrong(r, r->pos, "true, false or null was expected");
    r->pos += n;
    return true;
}

bool json_truth(struct json_reader *r, bool *out)
{
    enum json_kind kind = json_peek(r);
    if (kind != JSON_TRUE && kind != JSON_FALSE) return json_wrong(r, r->pos, "true or false was expected");
    *out = kind == JSON_TRUE;
    return word(r, *out ? "true" : "false");
}

/* --- anything ------------------------------------------------------------------------------------------- */

/* Skips the value at r->pos. An object or array is only opened. */
static void skip_one(struct json_reader *r)
{
    struct bytes text;
    double number;
    switch (json_peek(r)) {
    case JSON_OBJECT: json_open(r, JSON_OBJECT); break;
    case JSON_ARRAY: json_open(r, JSON_ARRAY); break;
    case JSON_STRING: json_string_value(r, &text); break;
    case JSON_NUMBER: json_float(r, &number); break;
    case JSON_TRUE: word(r, "true"); break;
    case JSON_FALSE: word(r, "false"); break;
    case JSON_NULL: word(r, "null"); break;
    default: json_wrong(r, r->pos, "a value was expected");
    }
}

void json_skip(struct json_reader *r)
{
    struct bytes key;
    int depth = r->depth;
    skip_one(r);
    while (!r->status && r->depth > depth)
        if (in_object(r) ? json_key(r, &key) : json_more(r)) skip_one(r);
}

int json_finish(struct json_reader *r)
{
    if (next_byte(r) >= 0) json_wrong(r, r->pos, "something follows its end");
    return r->status;
}
