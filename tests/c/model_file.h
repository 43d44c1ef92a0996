/* SPDX-License-Identifier: MIT
 *
 * What tests over model files share: reading fixtures, feeding them to an engine, random numbers, the clock.
 */
#ifndef QUERN_MODEL_FILE_H
#define QUERN_MODEL_FILE_H

#include "check.h"
#include "quern.h"

#include <stdlib.h>
#include <time.h>

/* --- files ------------------------------------------------------------------------------------------- */

/* data is exactly `size` bytes of heap, so that a sanitizer detects any read past the end. */
struct file {
    uint8_t *data;
    size_t size;
};

/* Ends the program if the file does not exist: no test may pass because its data is missing. */
static inline struct file file_read(const char *folder, const char *name)
{
    char path[2048];
    snprintf(path, sizeof path, "%.1023s/%.1000s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END)) {
        printf("cannot read %s (node tests/fixtures/write-c-fixtures.mjs writes what is under build/)\n", path);
        exit(2);
    }
    struct file out = {.size = (size_t)ftell(f)};
    out.data = malloc(out.size ? out.size : 1);
    rewind(f);
    if (!out.data || fread(out.data, 1, out.size, f) != out.size) exit(2);
    fclose(f);
    return out;
}

static inline void file_free(struct file *f)
{
    free(f->data);
    *f = (struct file){0};
}

/* Folder of the fixtures that write-c-fixtures.mjs has made. */
static inline const char *built_fixtures(const char *sub)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/../../build/fixtures%s", check_fixtures, sub);
    return path;
}

static inline const char *golden_folder(void)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/golden", check_fixtures);
    return path;
}

/* Judges every line of the catalogue in a folder of built fixtures; returns the sum of the errors that `judge` finds.
 */
static inline int catalogue_judge(const char *folder, int (*judge)(const char *line, void *context), void *context)
{
    struct file list = file_read(built_fixtures(folder), "manifest.txt");
    char *text = realloc(list.data, list.size + 1);
    CHECK(text != NULL);
    text[list.size] = 0;
    int wrong = 0, n = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), n++) wrong += judge(line, context);
    free(text);
    CHECK(n > 300);
    return wrong;
}

/* --- engines ----------------------------------------------------------------------------------------- */

/* Feeds the file in chunks; small chunks are each in memory of exactly their size. Returns the status of quern_finish,
 * or of the first feed that failed. */
static inline int engine_feed(struct quern_engine *e, const struct file *f, size_t chunk)
{
    int status = OK;
    for (size_t at = 0, n; !status && at < f->size; at += n) {
        n = f->size - at < chunk ? f->size - at : chunk;
        uint8_t own[16];
        uint8_t *end = own + sizeof own;
        if (n <= sizeof own) memcpy(end - n, f->data + at, n);
        status = quern_feed(e, n <= sizeof own ? end - n : f->data + at, n);
    }
    return status ? status : quern_finish(e);
}

/* Returns a loaded engine; the check fails if loading fails. */
static inline struct quern_engine *engine_load(const struct file *f, struct quern_options options, size_t chunk)
{
    struct quern_engine *e = quern_new(&options);
    CHECK(e != NULL);
    int status = engine_feed(e, f, chunk);
    if (status) printf("# %s: %s\n", status_name(status), quern_error(e)->message);
    CHECK_EQ(status, OK);
    return e;
}

/* --- random numbers and time ------------------------------------------------------------------------- */

/* xorshift64*: https://www.jstatsoft.org/article/view/v011i14; state must not be 0. */
static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1D;
}

static inline int random_below(uint64_t *state, int n) { return (int)((random_next(state) >> 33) % (uint64_t)n); }

/* -1 .. 1 */
static inline float random_unit(uint64_t *state) { return (float)(int32_t)(random_next(state) >> 32) / 2147483648.0f; }

static inline double clock_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

#endif
