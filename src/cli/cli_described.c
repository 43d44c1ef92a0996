/* SPDX-License-Identifier: MIT
 *
 * A chat template is arbitrary text, which the engine cannot recognise by its bytes. Its file name identifies it, but
 * the engine does not know file names; so the template becomes JSON before it is fed, as in the package
 * (js/worker/described.js).
 */
#include "cli/cli_described.h"

#include "cli/cli_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 10 << 20, NAME_MAX_BYTES = 64 };

static const char *last_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool in_folder(const char *path, const char *folder)
{
    size_t end = (size_t)(last_of(path) - path), n = strlen(folder);
    return end > n && !strncmp(path + end - n - 1, folder, n) && (end == n + 1 || path[end - n - 2] == '/');
}

/* The name of the template in a file; 0 letters: the file is not a template. */
static int template_name(const char *path, const char **name)
{
    static const char ending[] = ".jinja",
                      plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    const char *last = last_of(path);
    size_t n = strlen(last);
    *name = "default";
    if (!strcmp(last, "chat_template.jinja")) return (int)strlen(*name);
    if (!in_folder(path, "additional_chat_templates") || n < sizeof ending ||
        strcmp(last + n - sizeof ending + 1, ending))
        return 0;
    n -= sizeof ending - 1;
    *name = last;
    return n <= NAME_MAX_BYTES && strspn(last, plain) >= n ? (int)n : 0;
}

/* Writes bytes as they appear in a JSON string, at most six for each. Returns the end of the output. */
static char *put_escaped(char *to, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        uint8_t c = bytes[i];
        if (c >= 0x20 && c != '"' && c != '\\') *to++ = (char)c;
        else {
            memcpy(to, "\\u00", 4);
            to[4] = digits[c >> 4];
            to[5] = digits[c & 15];
            to += 6;
        }
    }
    return to;
}

static struct bytes describe(const char *name, int letters, const uint8_t *bytes, size_t n)
{
    static const char before[] = "{\"chat_template_files\":[{\"name\":\"%.*s\",\"template\":\"", after[] = "\"}]}";
    char *all = malloc(sizeof before + NAME_MAX_BYTES + 6 * n + sizeof after), *to = all;
    if (!all) return (struct bytes){NULL, 0};
    to += sprintf(to, before, letters, name);
    to = put_escaped(to, bytes, n);
    memcpy(to, after, sizeof after - 1);
    return (struct bytes){(const uint8_t *)all, (size_t)(to - all) + sizeof after - 1};
}

struct bytes cli_described(const char *path)
{
    const char *name;
    uint64_t size;
    int letters = template_name(path, &name);
    FILE *f = letters ? cli_open(path, &size) : NULL;
    uint8_t *bytes = f && size <= FILE_MAX ? malloc((size_t)size + 1) : NULL;
    size_t n = bytes ? fread(bytes, 1, (size_t)size, f) : 0;
    struct bytes all = bytes ? describe(name, letters, bytes, n) : (struct bytes){NULL, 0};
    if (f) fclose(f);
    free(bytes);
    return all;
}
