/* SPDX-License-Identifier: MIT
 *
 * Output to a terminal, and the standard input.
 */
#include "cli/cli_terminal.h"

#include "base/unicode.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether a character could steer a terminal: control characters except tab and line feed, direction controls, unusual
 * line ends, and bytes that are not a character, which a terminal may take for controls. */
static bool steers(uint32_t c)
{
    bool control = c < 0x20 ? c != '\t' && c != '\n' : c >= 0x7F && c < 0xA0;
    bool direction =
        c == 0x61C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
    return control || direction || c == 0x2028 || c == 0x2029 || c == UTF8_INVALID;
}

/* Writes the first character of text [n] in its harmless form. Returns its bytes; *step: its bytes in the text. */
static size_t shown(const char *text, size_t n, size_t *step, char out[UTF8_MAX])
{
    static const char replacement[] = "\xEF\xBF\xBD";
    uint32_t c;
    *step = utf8_read((const uint8_t *)text, n, &c);
    if (c == '\r') return 0;
    size_t size = steers(c) ? sizeof replacement - 1 : *step;
    memcpy(out, steers(c) ? replacement : text, size);
    return size;
}

void show(const char *text, size_t n)
{
    bool terminal = isatty(STDOUT_FILENO);
    if (!terminal) fwrite(text, 1, n, stdout);
    for (size_t i = 0, step; terminal && i < n; i += step) {
        char c[UTF8_MAX];
        fwrite(c, 1, shown(text + i, n - i, &step, c), stdout);
    }
}

int complain(const char *code, const char *sentence)
{
    char line[2048];
    size_t n = (size_t)snprintf(line, sizeof line, "quern: %s: ", code);
    bool gap = false;
    for (size_t left = strlen(sentence), step; left && n + UTF8_MAX < sizeof line; sentence += step, left -= step) {
        size_t more = shown(sentence, left, &step, line + n);
        if (more == 0) continue;
        bool space = line[n] == '\n' || line[n] == '\t';
        if (space) line[n] = ' ';
        n += space && gap ? 0 : more;
        gap = space;
    }
    line[n++] = '\n';
    fwrite(line, 1, n, stderr);
    return 1;
}

int end_output(int status)
{
    bool failed = fflush(stdout) || ferror(stdout);
    return failed && !status ? complain("use/param", "the output cannot be written.") : status;
}

static bool is_plain(uint8_t c) { return c >= 0x20 && c != '"' && c != '\\'; }

void show_json_text(const char *text, size_t size)
{
    char escape[8];
    putchar('"');
    for (size_t i = 0, plain = 0; i < size; i += plain + 1, plain = 0) {
        while (i + plain < size && is_plain((uint8_t)text[i + plain])) plain++;
        show(text + i, plain);
        if (i + plain == size) break;
        snprintf(escape, sizeof escape, (uint8_t)text[i + plain] < 0x20 ? "\\u%04x" : "\\%c", text[i + plain]);
        fputs(escape, stdout);
    }
    putchar('"');
}

char *terminal_input(size_t *size)
{
    size_t room = 1 << 16;
    char *text = malloc(room);
    *size = 0;
    for (size_t n = 1; text && n > 0; *size += n) {
        if (*size == room) {
            char *grown = realloc(text, room *= 2);
            if (!grown) free(text);
            text = grown;
        }
        n = text ? fread(text + *size, 1, room - *size, stdin) : 0;
    }
    if (!text) complain("mem/load", "Not enough memory for the input.");
    if (!text || !ferror(stdin)) return text;
    complain("use/param", errno == EISDIR ? "the input is a folder." : "the input cannot be read.");
    free(text);
    return NULL;
}
