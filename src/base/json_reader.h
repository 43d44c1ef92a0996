/* SPDX-License-Identifier: MIT
 *
 * A JSON reader over a whole text of an untrusted file: the caller walks it, asking for what it expects next.
 *
 * Strict RFC 8259 in UTF-8: no byte order mark, comments, trailing commas or lone surrogates. Nothing recurses: a value
 * that is skipped counts its brackets, and nesting is limited. Strings are decoded in place, so the text must be the
 * caller's to write; they are views into it. The first error is kept, and then every call returns false, so loops end
 * by themselves.
 */
#ifndef QUERN_JSON_READER_H
#define QUERN_JSON_READER_H

#include "base/base.h"

enum { JSON_DEPTH = 64 }; /* containers inside each other; configurations have about 5 */

struct json_reader {
    uint8_t *text;
    size_t size, pos;
    uint64_t base;     /* offset of the text in its file, for errors */
    const char *rule;  /* of errors */
    const char *what;  /* "The header", as sentences begin */
    struct error *err;
    int status;        /* OK, or ERR_FORMAT once something was wrong */
    int depth;
    uint64_t objects;  /* bit d: the container at depth d is an object */
    bool fresh;        /* a container has just been opened */
};

enum json_kind { JSON_OBJECT, JSON_ARRAY, JSON_STRING, JSON_NUMBER, JSON_TRUE, JSON_FALSE, JSON_NULL, JSON_NOTHING };

/* What the next value is, by its first byte. */
enum json_kind json_peek(struct json_reader *r);

/* An object or array begins; then json_key() or json_more() until it says that there is no other. */
bool json_open(struct json_reader *r, enum json_kind kind);
bool json_key(struct json_reader *r, struct bytes *key); /* its value is to be read next */
bool json_more(struct json_reader *r);                   /* an element is to be read next */

bool json_string_value(struct json_reader *r, struct bytes *out);
bool json_integer(struct json_reader *r, int64_t *out); /* 0 .. 2^63 - 1, digits only, no leading zero */
bool json_float(struct json_reader *r, double *out);
bool json_truth(struct json_reader *r, bool *out);
void json_skip(struct json_reader *r);
/* Nothing but white space follows. Returns the status. */
int json_finish(struct json_reader *r);

/* Something else is wrong with what was read at `at`; returns false. */
bool json_wrong(struct json_reader *r, size_t at, const char *sentence);

#endif
