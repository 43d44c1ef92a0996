/* SPDX-License-Identifier: MIT
 *
 * A JSON writer into a growing string. The reader is json_reader.h.
 *
 * The writer puts the commas. A string is cut at 200 bytes. Bytes that are neither printable ASCII nor part of valid
 * UTF-8 become escapes, so the output is always valid JSON. If memory runs out, `failed` is set.
 */
#ifndef QUERN_JSON_H
#define QUERN_JSON_H

#include "base/arena.h"

struct json {
    struct mem *mem;
    char *text;         /* NUL-terminated; the caller frees it with mem_free */
    size_t size, room;
    bool comma;         /* a value came before */
    bool failed;
};

/* key is NULL for the outermost value and for elements of an array. */
void json_object(struct json *j, const char *key);
void json_end(struct json *j);
void json_array(struct json *j, const char *key);
void json_array_end(struct json *j);
void json_number(struct json *j, const char *key, double value); /* up to 17 digits */
void json_null(struct json *j, const char *key);
void json_bool(struct json *j, const char *key, bool value);
void json_text(struct json *j, const char *key, struct bytes value);
void json_string(struct json *j, const char *key, const char *value);

/* Length of the valid UTF-8 character at p, n >= 1 bytes; 0 when there is none. */
size_t utf8_length(const uint8_t *p, size_t n);

#endif
