/* SPDX-License-Identifier: MIT
 *
 * The small models with vision: loading them, and the conversations that transformers has computed
 * (tests/fixtures/vision).
 */
#ifndef QUERN_VISIONS_H
#define QUERN_VISIONS_H

#include "session.h"

enum { CASE_TOKENS = 256, CASE_ROWS = 64, CASE_MEDIA = 4, CASES_MOST = 12, PAIRS_MOST = 8, GREEDY = 6 };

/* An image or a video: its decoded form, and the size to resize it to. */
struct source {
    char name[24];
    int video, height, width, to_height, to_width, pairs, frames;
};

struct vision_case {
    char name[16];
    int n, n_rows, n_media, delta;
    double scale, margin;
    int32_t ids[CASE_TOKENS], pos[3][CASE_TOKENS], rows[CASE_ROWS], greedy[GREEDY];
    struct source media[CASE_MEDIA];
};

struct vision_set {
    const char *model;
    double low, high, video_low, video_high;
    int n;
    struct vision_case cases[CASES_MOST];
};

static inline void read_ints(FILE *f, int32_t *out, int n)
{
    for (int i = 0; i < n; i++) CHECK(fscanf(f, "%d", &out[i]) == 1);
}

static inline void read_source(FILE *f, struct source *s)
{
    CHECK(fscanf(f, "%23s %d %d %d %d %d %d %d", s->name, &s->video, &s->height, &s->width, &s->to_height, &s->to_width,
                 &s->pairs, &s->frames) == 8);
}

static inline void read_case(FILE *f, struct vision_case *c)
{
    CHECK(c->n <= CASE_TOKENS && c->n_rows <= CASE_ROWS && c->n_media <= CASE_MEDIA);
    read_ints(f, c->ids, c->n);
    for (int k = 0; k < 3; k++) read_ints(f, c->pos[k], c->n);
    read_ints(f, c->rows, c->n_rows);
    read_ints(f, c->greedy, GREEDY);
    for (int i = 0; i < c->n_media; i++) read_source(f, &c->media[i]);
}

static inline FILE *open_vision(const char *name)
{
    char path[1100];
    snprintf(path, sizeof path, "%s/%s", built_fixtures("/vision"), name);
    FILE *f = fopen(path, "r");
    if (f) return f;
    printf("cannot read %s (node tests/fixtures/write-c-fixtures.mjs writes it)\n", path);
    exit(2);
}

/* model: "dense" or "moe", which are Qwen3-VL, or "hybrid", which is Qwen3.5. The caller frees it. */
static inline struct vision_set *vision_set(const char *model)
{
    char name[40];
    snprintf(name, sizeof name, "%s.cases.txt", model);
    FILE *f = open_vision(name);
    struct vision_set *v = calloc(1, sizeof *v);
    if (!v) exit(2);
    v->model = model;
    CHECK(fscanf(f, "%lf %lf %lf %lf", &v->low, &v->high, &v->video_low, &v->video_high) == 4);
    for (struct vision_case *c = v->cases; v->n < CASES_MOST; c++, v->n++) {
        if (fscanf(f, "%15s %d %d %d %d %lf %lf", c->name, &c->n, &c->n_rows, &c->n_media, &c->delta, &c->scale,
                   &c->margin) != 7)
            break;
        read_case(f, c);
    }
    fclose(f);
    CHECK(v->n >= 5);
    return v;
}

static inline const struct vision_case *vision_case(const struct vision_set *v, const char *name)
{
    for (const struct vision_case *c = v->cases; c < v->cases + v->n; c++)
        if (!strcmp(c->name, name)) return c;
    printf("no case %s\n", name);
    exit(2);
}

/* --- files -------------------------------------------------------------------------------------------------- */

static inline struct file vision_file(const char *model, const char *name)
{
    char folder[1100];
    snprintf(folder, sizeof folder, "%s/vision/models/%s", check_fixtures, model);
    return file_read(folder, name);
}

static inline int feed_all(struct quern_engine *e, const struct file *f, size_t chunk)
{
    int status = OK;
    for (size_t at = 0, n; !status && at < f->size; at += n) {
        n = f->size - at < chunk ? f->size - at : chunk;
        status = quern_feed(e, f->data + at, n);
    }
    return status;
}

/* Feeds both files of a pair; returns the status of the first call that failed. */
static inline int pair_feed(struct quern_engine *e, const struct file *model, const struct file *projector,
                            size_t chunk)
{
    int status = feed_all(e, model, chunk);
    if (!status) status = quern_vision_next(e, projector->size);
    if (!status) status = feed_all(e, projector, chunk);
    return status ? status : quern_finish(e);
}

static inline struct quern_engine *ready(struct quern_engine *e, int status)
{
    if (status) printf("# %s: %s\n", status_name(status), quern_error(e)->message);
    CHECK_EQ(status, OK);
    return e;
}

/* The projector of a pair; all but the dense model's are made of the folders. */
static inline struct file projector_file_of(const char *model, const char *kind)
{
    char name[40];
    bool golden = !strcmp(model, "dense");
    snprintf(name, sizeof name, "%s%smmproj.gguf", golden ? kind : model, golden ? "/" : ".");
    return golden ? vision_file(model, name) : file_read(built_fixtures("/vision"), name);
}

/* kind: "f16" or "q8_0". */
static inline struct quern_engine *pair_load(const char *model, const char *kind, struct quern_options options)
{
    char name[40];
    snprintf(name, sizeof name, "%s/model.gguf", kind);
    struct file text = vision_file(model, name);
    struct file projector = projector_file_of(model, kind);
    options.vision_size = options.rest_size = projector.size;
    options.file_size = text.size;
    struct quern_engine *e = quern_new(&options);
    CHECK(e != NULL);
    int status = pair_feed(e, &text, &projector, 100000);
    file_free(&text);
    file_free(&projector);
    return ready(e, status);
}

static inline struct quern_engine *folder_load(const char *model, struct quern_options options)
{
    static const char *const names[] = {
        "config.json",           "generation_config.json",   "tokenizer.json",
        "tokenizer_config.json", "preprocessor_config.json", "video_preprocessor_config.json",
        "model.safetensors"};
    int n = sizeof names / sizeof *names, status = OK;
    options.files = n;
    struct quern_engine *e = quern_new(&options);
    CHECK(e != NULL);
    for (int i = 0; i < n && !status; i++) {
        char name[60];
        snprintf(name, sizeof name, "hf/%s", names[i]);
        struct file f = vision_file(model, name);
        if (i) status = quern_next_file(e, f.size);
        if (!status) status = feed_all(e, &f, 100000);
        file_free(&f);
    }
    return ready(e, status ? status : quern_finish(e));
}

/* --- images ------------------------------------------------------------------------------------------------- */

struct pixels {
    uint8_t *data; /* [height, width, 3] */
    int height, width;
};

/* Decoded pixels, blended over white. */
static inline struct pixels pixels_read(const char *name)
{
    char line[24], file[40];
    int channels, found = 0;
    struct pixels p = {0};
    FILE *list = open_vision("images.txt");
    while (!found && fscanf(list, "%23s %d %d %d %*d %*d %*s", line, &channels, &p.width, &p.height) == 4)
        found = !strcmp(line, name);
    fclose(list);
    CHECK(found);
    snprintf(file, sizeof file, "%.23s.raw", name);
    struct file raw = file_read(built_fixtures("/vision"), file);
    uint64_t n = (uint64_t)p.width * (uint64_t)p.height;
    CHECK_EQ(raw.size, n * (uint64_t)channels);
    if (channels == 4) image_opaque(raw.data, n, raw.data);
    p.data = raw.data;
    return p;
}

static inline struct pixels pixels_resize(struct pixels from, int height, int width)
{
    struct pixels p = {malloc((size_t)height * (size_t)width * 3), height, width};
    void *scratch = malloc(image_resize_cost(from.width, from.height, width, height) + 1);
    CHECK(p.data && scratch);
    image_resize(from.data, from.width, from.height, p.data, width, height, scratch);
    free(scratch);
    free(from.data);
    return p;
}

/* Frame i of a source, resized. */
static inline struct pixels frame_read(const struct source *s, int i)
{
    char name[40];
    if (s->video) snprintf(name, sizeof name, "%s-%d", s->name, min_int(i, s->frames - 1));
    else snprintf(name, sizeof name, "%s", s->name);
    return pixels_resize(pixels_read(name), s->to_height, s->to_width);
}

/* Adds an image, or pair `at` of a video; returns its id. */
static inline uint64_t source_add(struct quern_engine *e, const struct source *s, const struct image_grid *grid, int at)
{
    uint64_t id = 0;
    struct pixels one = frame_read(s, 2 * at), two = {0};
    if (s->video) two = frame_read(s, 2 * at + 1);
    struct image_grid of = *grid;
    if (s->video) of.frames = 2;
    CHECK_EQ(quern_media_add(e, &of, one.data, two.data, 0, &id), OK);
    free(one.data);
    free(two.data);
    return id;
}

/* Adds the media of a case, with `backwards` videos from their last pair on; media [PAIRS_MOST]. Returns their number.
 */
static inline int media_add(struct quern_engine *e, const struct vision_set *v, const struct vision_case *c,
                            bool backwards, uint64_t *media)
{
    int n = 0;
    for (const struct source *s = c->media; s < c->media + c->n_media; s++) {
        struct image_grid g;
        CHECK_EQ(quern_media_plan(e, s->video ? QUERN_VIDEO : QUERN_IMAGE, s->width, s->height, s->frames,
                                  s->video ? v->video_low : v->low, s->video ? v->video_high : v->high, &g),
                 OK);
        CHECK_EQ(g.height, s->to_height);
        CHECK_EQ(g.width, s->to_width);
        CHECK_EQ(g.frames, s->video ? 2 * s->pairs : 1);
        CHECK(n + s->pairs <= PAIRS_MOST);
        for (int i = 0; i < s->pairs; i++) {
            int at = backwards ? s->pairs - 1 - i : i;
            media[n + at] = source_add(e, s, &g, at);
        }
        n += s->pairs;
    }
    return n;
}

static inline void media_release(struct quern_engine *e, const uint64_t *media, int n)
{
    for (int i = 0; i < n; i++) quern_media_release(e, media[i]);
}

/* Sets the case in a sequence, with media that only this sequence holds. */
static inline int case_set(struct quern_engine *e, struct quern_sequence *s, const struct vision_set *v,
                           const struct vision_case *c, enum quern_outputs outputs)
{
    uint64_t media[PAIRS_MOST];
    int n = media_add(e, v, c, false, media);
    int known = quern_sequence_set_media(s, c->ids, c->n, media, n, outputs);
    if (known < 0) printf("# %s\n", quern_error(e)->message);
    media_release(e, media, n);
    return known;
}

/* Logits of every row of a case, [n, vocab]; the caller frees them. */
static inline float *case_logits(struct quern_engine *e, struct quern_sequence *s, const struct vision_set *v,
                                 const struct vision_case *c)
{
    int vocab = quern_vocab_size(e), rows = 0;
    float *all = logits_new(c->n, vocab);
    CHECK_EQ(case_set(e, s, v, c, QUERN_ALL), 0);
    while (quern_sequence_pending(s) > 0) {
        CHECK_EQ(quern_step(e, 0), OK);
        rows += logits_keep(s, vocab, all);
    }
    CHECK_EQ(rows, c->n);
    return all;
}

#endif
