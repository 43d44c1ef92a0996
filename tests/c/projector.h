/* SPDX-License-Identifier: MIT
 *
 * What tests of the image encoder share: loading a projector's file or a folder completely, and encoding an image.
 */
#ifndef QUERN_PROJECTOR_H
#define QUERN_PROJECTOR_H

#include "engine/intake.h"
#include "model_file.h"
#include "models/vision.h"

#include <dirent.h>

/* An encoder with its memory, pool and backend. */
struct projector {
    struct mem mem;
    struct pool *pool;
    struct backend *be;
    struct intake in;
    struct vision *v;
    struct error err;
};

struct projector_options {
    bool scalar;
    int threads, max_patches; /* 0: one thread; 1,024 patches */
    const char *type;         /* type that matrices are quantised to; NULL: none */
    uint64_t limit, fail_at;  /* memory limit in bytes; number of the allocation that fails */
    size_t chunk;             /* bytes fed at once; 0: all */
};

enum { EYES_FILES = 8 };

/* Reads the files of a folder, those that describe it first. */
static inline int projector_folder(const char *folder, struct file files[EYES_FILES])
{
    char names[EYES_FILES][80];
    struct dirent *entry;
    int n = 0, kept = 0;
    DIR *d = opendir(folder);
    if (!d) printf("# %s is missing\n", folder);
    CHECK(d != NULL);
    while ((entry = readdir(d)) && n < EYES_FILES)
        if (strstr(entry->d_name, ".json") || strstr(entry->d_name, ".safetensors"))
            snprintf(names[n++], sizeof names[0], "%.79s", entry->d_name);
    closedir(d);
    for (int json = 1; json >= 0; json--)
        for (int i = 0; i < n; i++)
            if ((strstr(names[i], ".json") != NULL) == json) files[kept++] = file_read(folder, names[i]);
    return n;
}

/* Loads one file with weights: its header, then all its data. */
static inline int projector_weights(struct projector *e, const struct file *f, size_t used,
                                    const struct projector_options *o)
{
    struct checkpoint *ck = e->in.file;
    int status = e->v ? OK : vision_open(&e->mem, e->be, &e->in.ck, &e->v, &e->err);
    if (!status) status = vision_bind(e->v, ck, intake_more(&e->in), &e->err);
    if (!status && o->type) vision_quantize(e->v, ck, (struct model_types){dtype_by_name(o->type), NULL});
    if (!status) status = vision_take(e->v, ck, &e->err);
    if (!status) status = ck_data_begin(ck, &e->err);
    for (size_t chunk = o->chunk ? o->chunk : f->size; !status && used < f->size; used += chunk)
        ck_data(ck, f->data + used, f->size - used < chunk ? f->size - used : chunk);
    return status;
}

static inline int projector_take(struct projector *e, const struct file *f, const struct projector_options *o)
{
    size_t used = 0;
    int status = intake_header(&e->in, f->data, f->size, &used, &e->err);
    return status || !e->in.complete ? status : projector_weights(e, f, used, o);
}

/* What an encoder reserves in a backend for images of this many patches. */
static inline struct reserve projector_needs(const struct vision *v, int patches)
{
    return (struct reserve){
        .kv = {.n_layers = 1, .n_heads = 1, .n_kv_heads = 1, .head_dim = 32, .n_pages = 1, .type = KV_F32},
        .max_rows = vision_max_rows(v),
        .max_cols = vision_max_cols(v),
        .values = vision_values(v, patches)};
}

/* Opens an encoder from the files of a model. projector_close() must follow, also after a failure. */
static inline int projector_open(struct projector *e, const struct file *files, int n,
                                 const struct projector_options *o)
{
    int patches = o->max_patches ? o->max_patches : 1024;
    *e = (struct projector){.mem = {.limit = o->limit, .fail_at = o->fail_at}};
    e->pool = pool_new(&e->mem, max_int(o->threads, 1));
    e->be = e->pool ? backend_cpu(&e->mem, e->pool, o->scalar) : NULL;
    intake_open(&e->in, &e->mem, n, files[0].size);
    int status = e->be ? OK : ERR_MEM_LOAD;
    for (int i = 0; !status && i < n; i++) {
        if (i) status = intake_next(&e->in, files[i].size, &e->err);
        if (!status) status = projector_take(e, &files[i], o);
    }
    if (!status) status = intake_finish(&e->in, &e->err);
    if (status) return status;
    const struct reserve needs = projector_needs(e->v, patches);
    status = e->be->ops->reserve(e->be, &needs);
    if (!status) status = vision_reserve(e->v, patches, (struct handle){0});
    return status;
}

static inline void projector_close(struct projector *e)
{
    vision_free(e->v);
    intake_close(&e->in);
    if (e->be) e->be->ops->free(e->be);
    if (e->pool) pool_free(e->pool);
    CHECK_EQ(e->mem.used, 0);
}

/* Computes one part and takes its tokens. */
static inline void projector_part(struct projector *e, int part)
{
    vision_part(e->v, part);
    vision_arrive(e->v);
}

/* Computes all parts; out [vision_size()]. */
static inline void projector_look(struct projector *e, const uint8_t *const frames[2], int rows, int cols, float *out)
{
    vision_begin(e->v, frames, rows, cols, out);
    for (int i = 0, n = vision_parts(e->v); i < n; i++) projector_part(e, i);
}

#endif
