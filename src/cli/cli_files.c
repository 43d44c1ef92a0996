/* SPDX-License-Identifier: MIT
 *
 * Finds the files of a model: the parts of a split model, a Hugging Face folder, a checkpoint with its vocabulary.
 */
#include "cli/cli_files.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

FILE *cli_open(const char *path, uint64_t *size)
{
    struct stat info;
    FILE *f = fopen(path, "rb");
    if (f && fstat(fileno(f), &info) == 0 && S_ISREG(info.st_mode)) {
        *size = (uint64_t)info.st_size;
        return f;
    }
    if (f) fclose(f);
    return NULL;
}

void cli_files_free(struct cli_files *f)
{
    for (int i = 0; i < f->n; i++) free(f->paths[i]);
    free(f->paths);
    *f = (struct cli_files){0};
}

static void fail_short(struct cli_files *f)
{
    while (f->n > 0) free(f->paths[--f->n]);
    f->failed = true;
}

/* folder "": name is a path. */
static void add(struct cli_files *f, const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size), **grown = realloc(f->paths, ((size_t)f->n + 1) * sizeof *grown);
    if (grown) f->paths = grown;
    if (!path || !grown) fail_short(f);
    if (f->failed) {
        free(path);
        return;
    }
    snprintf(path, size, "%s%s%s", folder, *folder ? "/" : "", name);
    f->paths[f->n++] = path;
}

void cli_files_add(struct cli_files *f, const char *path) { add(f, "", path); }

static bool exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* --- names ------------------------------------------------------------------------------------------------ */

enum { PART_NAME = sizeof "-00001-of-00003.gguf" - 1 };

/* The number of parts in the name of a split model's first file; else one. */
static int count_parts(const char *path)
{
    size_t n = strlen(path);
    int files = 1, end = 0;
    if (n > PART_NAME && sscanf(path + n - PART_NAME, "-00001-of-%5d.gguf%n", &files, &end) == 1 && end == PART_NAME &&
        files > 0)
        return files;
    return 1;
}

/* --- folders ---------------------------------------------------------------------------------------------- */

/* The same files as js/shared/folder.js chooses, in the same order. TEMPLATES: all templates with a name. */
static const char TEMPLATES[] = "additional_chat_templates";
static const char *const described_by[] = {"config.json",
                                           "generation_config.json",
                                           "chat_template.jinja",
                                           TEMPLATES,
                                           "processor_config.json",
                                           "preprocessor_config.json",
                                           "video_preprocessor_config.json",
                                           "chat_template.json",
                                           "tokenizer_config.json",
                                           "tokenizer.json",
                                           "modules.json",
                                           "1_Pooling/config.json",
                                           "sentence_bert_config.json",
                                           "model.safetensors.index.json"};
/* The files that count beside a GGUF file, which describes its weights itself. */
static const char *const beside_gguf[] = {"generation_config.json", "chat_template.jinja",   TEMPLATES,
                                          "chat_template.json",     "tokenizer_config.json", "tokenizer.json"};

static int compare_paths(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Adds all files with this ending, ordered by name. Returns their number. */
static int add_ending(struct cli_files *f, const char *folder, const char *end)
{
    int first = f->n;
    DIR *d = opendir(folder);
    for (struct dirent *entry; d && (entry = readdir(d));)
        if (ends_with(entry->d_name, end)) add(f, folder, entry->d_name);
    if (d) closedir(d);
    if (f->n > first) qsort(f->paths + first, (size_t)(f->n - first), sizeof *f->paths, compare_paths);
    return f->n - first;
}

static void add_templates(struct cli_files *f, const char *folder)
{
    size_t size = strlen(folder) + sizeof TEMPLATES + 1;
    char *below = malloc(size);
    if (!below) return fail_short(f);
    snprintf(below, size, "%s/%s", folder, TEMPLATES);
    add_ending(f, below, ".jinja");
    free(below);
}

/* Adds the files that exist. */
static void add_existing(struct cli_files *f, const char *folder, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (names[i] == TEMPLATES) {
            add_templates(f, folder);
            continue;
        }
        add(f, folder, names[i]);
        if (f->failed || exists(f->paths[f->n - 1])) continue;
        free(f->paths[--f->n]);
    }
}

/* Whether paths [n], sorted, are one GGUF file, or all parts of one file. */
static bool is_one(char *const *paths, int n)
{
    size_t size = n ? strlen(paths[0]) : 0;
    if (n == 0 || count_parts(paths[0]) != n) return false;
    for (int i = 1; i < n; i++)
        if (strlen(paths[i]) != size || strncmp(paths[i], paths[0], size - PART_NAME) ||
            !ends_with(paths[i], paths[0] + size - PART_NAME + 6))
            return false;
    return true;
}

static void add_folder(struct cli_files *f, const char *folder)
{
    struct cli_files found = {0};
    add_existing(f, folder, described_by, sizeof described_by / sizeof *described_by);
    if (add_ending(f, folder, ".safetensors") == 0 && f->n > 0) add_ending(&found, folder, ".gguf");
    if (found.failed) fail_short(f);
    if (!f->failed && is_one(found.paths, found.n)) {
        cli_files_free(f);
        add_existing(f, folder, beside_gguf, sizeof beside_gguf / sizeof *beside_gguf);
        add_ending(f, folder, ".gguf");
    }
    cli_files_free(&found);
}

/* --- files ------------------------------------------------------------------------------------------------ */

static void add_parts(struct cli_files *f, const char *path)
{
    int parts = count_parts(path);
    for (int i = 0; i < parts; i++) {
        char number[8];
        add(f, "", path);
        if (i == 0 || f->failed) continue;
        snprintf(number, sizeof number, "%05d", (i + 1) % 100000);
        memcpy(f->paths[f->n - 1] + strlen(path) - PART_NAME + 1, number, 5);
    }
}

/* The vocabulary of a qwen3.c checkpoint. */
static void add_vocabulary(struct cli_files *f, const char *path)
{
    size_t size = strlen(path) + sizeof ".tokenizer";
    char *name = malloc(size);
    if (!name) return fail_short(f);
    snprintf(name, size, "%s.tokenizer", path);
    if (exists(name)) add(f, "", name);
    free(name);
}

struct cli_files cli_files(const char *path)
{
    struct cli_files f = {0};
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        add_folder(&f, path);
        return f;
    }
    add_vocabulary(&f, path);
    add_parts(&f, path);
    return f;
}
