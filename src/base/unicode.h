/* SPDX-License-Identifier: MIT
 *
 * UTF-8, and the character classes that the splits of text need.
 *
 * A text may be any bytes. Bytes that are not strict UTF-8 (overlong forms, surrogates, a cut character) are read as
 * single bytes of class "other", so no caller has an error path and no byte is lost.
 */
#ifndef QUERN_UNICODE_H
#define QUERN_UNICODE_H

#include "base/arena.h"

enum unicode_class {
    UNICODE_OTHER = 0,
    UNICODE_LETTER = 1, /* \p{L} */
    UNICODE_NUMBER = 2, /* \p{N} */
    UNICODE_SPACE = 3,  /* \s: the property White_Space */
    UNICODE_MARK = 4    /* \p{M} */
};

/* The table of classes. It is packed in the program and unpacked into memory, where it takes 8 KB. */
struct unicode_classes {
    uint32_t *starts; /* [n] where the class changes, ascending: first code point << 3 | class */
    size_t n;
};

/* Returns false when memory is short. */
bool unicode_open(struct mem *m, struct unicode_classes *c);
void unicode_close(struct mem *m, struct unicode_classes *c);
enum unicode_class unicode_class(const struct unicode_classes *c, uint32_t code_point);

enum { UTF8_MAX = 4 };                /* bytes of a character */
#define UTF8_INVALID UINT32_MAX       /* stands for a byte that belongs to no character; its class is "other" */

/* Reads one character at text[0], size >= 1. Returns its length; 1 with UTF8_INVALID for a stray byte. */
size_t utf8_read(const uint8_t *text, size_t size, uint32_t *code_point);
/* Returns the length, 0 for a number above U+10FFFF. */
size_t utf8_write(uint32_t code_point, uint8_t out[UTF8_MAX]);
/* Length (0..3) of the incomplete character at the end of text; 0 if there is none. */
size_t utf8_unfinished(const uint8_t *text, size_t size);

#endif
