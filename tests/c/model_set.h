/* SPDX-License-Identifier: MIT
 *
 * Models of several files: reads them, and feeds them to an engine one after the other.
 */
#ifndef QUERN_MODEL_SET_H
#define QUERN_MODEL_SET_H

#include "model_file.h"

#include <dirent.h>

enum { FILES_MOST = 12 };

struct set {
    struct file files[FILES_MOST];
    int n;
};

static inline void set_free(struct set *s)
{
    for (int i = 0; i < s->n; i++) file_free(&s->files[i]);
    s->n = 0;
}

static inline int feed_set(struct quern_engine *e, const struct set *s, bool sizes, size_t chunk)
{
    int status = OK;
    for (int i = 0; !status && i < s->n; i++) {
        const struct file *f = &s->files[i];
        if (i > 0) status = quern_next_file(e, sizes ? f->size : 0);
        for (size_t at = 0, n; !status && at < f->size; at += n) {
            n = f->size - at < chunk ? f->size - at : chunk;
            uint8_t *own = malloc(n); /* of exactly this size, for the sanitizers */
            memcpy(own, f->data + at, n);
            status = quern_feed(e, own, n);
            free(own);
        }
    }
    return status ? status : quern_finish(e);
}

/* Returns a loaded engine; the check fails if loading fails. */
static inline struct quern_engine *load_set(const struct set *s, struct quern_options options, size_t chunk)
{
    options.files = s->n;
    options.file_size = s->files[0].size;
    struct quern_engine *e = quern_new(&options);
    CHECK(e != NULL);
    int status = feed_set(e, s, true, chunk);
    if (status) printf("# %s %s: %s\n", status_name(status), quern_error(e)->rule, quern_error(e)->message);
    CHECK_EQ(status, OK);
    return e;
}

static inline int compare_names(const void *a, const void *b) { return strcmp(a, b); }

/* Reads a folder, JSON files first. */
static inline struct set read_folder(const char *folder)
{
    struct set s = {0};
    char names[FILES_MOST][256];
    int n = 0;
    DIR *d = opendir(folder);
    CHECK(d != NULL);
    for (struct dirent *entry; (entry = readdir(d)) && n < FILES_MOST;)
        if (entry->d_name[0] != '.') snprintf(names[n++], sizeof *names, "%.250s", entry->d_name);
    closedir(d);
    qsort(names, (size_t)n, sizeof *names, compare_names);
    for (int json = 1; json >= 0; json--)
        for (int i = 0; i < n; i++)
            if ((strstr(names[i], ".json") != NULL) == json) s.files[s.n++] = file_read(folder, names[i]);
    return s;
}

#endif
