/* SPDX-License-Identifier: MIT
 *
 * UTF-8 and the three character classes that Qwen2's split asks for.
 *
 * Text here is any bytes: what is no strict UTF-8 (overlong forms, surrogates, a cut character) is read as
 * single bytes of class "other", so no caller has an error path and no byte is ever lost.
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
/* Stretches of one class, from 0 on: the class of the i-th and where it begins and ends. false: there are no more. */
bool unicode_stretch(size_t i, enum unicode_class *class, uint32_t *first, uint32_t *last);

enum { UTF8_MAX = 4 };                /* bytes of a character */
#define UTF8_INVALID UINT32_MAX       /* stands for a byte that is part of no character; its class is "other" */

/* Reads one character at text[0], size >= 1. Returns its length; 1 with UTF8_INVALID for a stray byte. */
size_t utf8_read(const uint8_t *text, size_t size, uint32_t *code_point);
/* Returns the length, 0 for a number above U+10FFFF. */
size_t utf8_write(uint32_t code_point, uint8_t out[UTF8_MAX]);
/* The length (0..3) of the character that the end of text begins but does not finish. */
size_t utf8_unfinished(const uint8_t *text, size_t size);

#endif
