/* SPDX-License-Identifier: MIT
 *
 * UTF-8 and the three character classes that Qwen2's split needs.
 *
 * A text may be any bytes. Bytes that are not strict UTF-8 (overlong forms, surrogates, a cut character) are read as
 * single bytes of class "other", so no caller has an error path and no byte is lost.
 */
#ifndef QUERN_UNICODE_H
#define QUERN_UNICODE_H

#include "base/base.h"

enum unicode_class {
    UNICODE_OTHER = 0,
    UNICODE_LETTER = 1, /* \p{L} */
    UNICODE_NUMBER = 2, /* \p{N} */
    UNICODE_SPACE = 3   /* \s: the property White_Space */
};

enum unicode_class unicode_class(uint32_t code_point);
/* Ranges of code points with one class: sets the class, first and last of range i, counted from 0. Returns false when i
 * is too large. */
bool unicode_stretch(size_t i, enum unicode_class *class, uint32_t *first, uint32_t *last);

enum { UTF8_MAX = 4 };                /* bytes of a character */
#define UTF8_INVALID UINT32_MAX       /* stands for a byte that belongs to no character; its class is "other" */

/* Reads one character at text[0], size >= 1. Returns its length; 1 with UTF8_INVALID for a stray byte. */
size_t utf8_read(const uint8_t *text, size_t size, uint32_t *code_point);
/* Returns the length, 0 for a number above U+10FFFF. */
size_t utf8_write(uint32_t code_point, uint8_t out[UTF8_MAX]);
/* Length (0..3) of the incomplete character at the end of text; 0 if there is none. */
size_t utf8_unfinished(const uint8_t *text, size_t size);

#endif
