/* SPDX-License-Identifier: MIT
 *
 * The JSON writer.
 */
#include "base/json.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 200 };

static void put(struct json *j, const char *bytes, size_t n)
{
    if (j->failed) return;
    if (j->size + n + 1 > j->room) {
        size_t room = (j->size + n + 1) * 2;
        char *grown = mem_resize(j->mem, j->text, room);
        if (!grown) {
            j->failed = true;
            return;
        }
        j->text = grown;
        j->room = room;
    }
    memcpy(j->text + j->size, bytes, n);
    j->size += n;
    j->text[j->size] = 0;
}

static void puts_json(struct json *j, const char *text) { put(j, text, strlen(text)); }

static void begin(struct json *j, const char *key)
{
    if (j->comma) puts_json(j, ",");
    j->comma = true;
    if (!key) return;
    puts_json(j, "\"");
    puts_json(j, key);
    puts_json(j, "\":");
}

void json_object(struct json *j, const char *key)
{
    begin(j, key);
    puts_json(j, "{");
    j->comma = false;
}

void json_end(struct json *j)
{
    puts_json(j, "}");
    j->comma = true;
}

void json_array(struct json *j, const char *key)
{
    begin(j, key);
    puts_json(j, "[");
    j->comma = false;
}

void json_array_end(struct json *j)
{
    puts_json(j, "]");
    j->comma = true;
}

void json_number(struct json *j, const char *key, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    begin(j, key);
    puts_json(j, text);
}

void json_null(struct json *j, const char *key)
{
    begin(j, key);
    puts_json(j, "null");
}

void json_bool(struct json *j, const char *key, bool value)
{
    begin(j, key);
    puts_json(j, value ? "true" : "false");
}

size_t utf8_length(const uint8_t *p, size_t n)
{
    size_t length = *p < 0x80                 ? 1
                    : *p >= 0xC2 && *p < 0xE0 ? 2
                    : (*p & 0xF0) == 0xE0     ? 3
                    : *p >= 0xF0 && *p < 0xF5 ? 4
                                              : 0;
    if (length == 0 || length > n) return 0;
    for (size_t i = 1; i < length; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    bool overlong = (*p == 0xE0 && p[1] < 0xA0) || (*p == 0xF0 && p[1] < 0x90);
    bool outside = (*p == 0xED && p[1] >= 0xA0) || (*p == 0xF4 && p[1] >= 0x90);
    return overlong || outside ? 0 : length;
}

void json_text(struct json *j, const char *key, struct bytes value)
{
    size_t n = value.size < TEXT_MAX ? value.size : TEXT_MAX;
    begin(j, key);
    puts_json(j, "\"");
    for (size_t i = 0, step; i < n; i += step) {
        const uint8_t *p = value.data + i;
        char escape[8];
        step = utf8_length(p, n - i);
        bool plain = step && (step > 1 || (*p >= 0x20 && *p != 0x7F && *p != '"' && *p != '\\'));
        snprintf(escape, sizeof escape, "\\u%04x", *p);
        if (plain) put(j, (const char *)p, step);
        else puts_json(j, escape);
        if (step == 0) step = 1;
    }
    puts_json(j, "\"");
}

void json_string(struct json *j, const char *key, const char *value)
{
    json_text(j, key, (struct bytes){(const uint8_t *)value, strlen(value)});
}
