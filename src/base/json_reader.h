/* SPDX-License-Identifier: MIT
 *
 * A JSON reader over the whole text of an untrusted file. The caller asks for the value that it expects next.
 *
 * The format is strict RFC 8259 in UTF-8: no byte order mark, comments, trailing commas or lone surrogates. Nothing
 * recurses: json_skip() counts brackets, and nesting is limited. Strings are decoded in place, so the text must be
 * writable, and the strings are views into it. After the first error every call returns false, so loops end by
 * themselves.
 */
#ifndef QUERN_JSON_READER_H
#define QUERN_JSON_READER_H

#include "base/base.h"

enum { JSON_DEPTH = 64 }; /* most containers inside each other; configurations have about 5 */

struct json_reader {
    uint8_t *text;
    size_t size, pos;
    uint64_t base;     /* offset of the text in its file, for errors */
    const char *rule;  /* rule of every error */
    const char *what;  /* name of the text at the start of a sentence, such as "The header" */
    struct error *err;
    int status;        /* OK, or ERR_FORMAT after the first error */
    int depth;
    uint64_t objects;  /* bit d: the container at depth d is an object */
    bool fresh;        /* a container has just been opened */
};

enum json_kind { JSON_OBJECT, JSON_ARRAY, JSON_STRING, JSON_NUMBER, JSON_TRUE, JSON_FALSE, JSON_NULL, JSON_NOTHING };

/* Returns the kind of the next value, by its first byte. */
enum json_kind json_peek(struct json_reader *r);

/* Opens an object or array. Then call json_key() or json_more() until it returns false. */
bool json_open(struct json_reader *r, enum json_kind kind);
bool json_key(struct json_reader *r, struct bytes *key); /* the caller reads the key's value next */
bool json_more(struct json_reader *r);                   /* the caller reads an element next */

bool json_string_value(struct json_reader *r, struct bytes *out);
bool json_integer(struct json_reader *r, int64_t *out); /* 0 .. 2^63 - 1, digits only, no leading zero */
bool json_float(struct json_reader *r, double *out);
bool json_truth(struct json_reader *r, bool *out);
void json_skip(struct json_reader *r);
/* Checks that only white space follows. Returns the status. */
int json_finish(struct json_reader *r);

/* Reports an error of the caller's at position `at` of the text. Returns false. */
bool json_wrong(struct json_reader *r, size_t at, const char *sentence);

#endif
