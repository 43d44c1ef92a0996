/* SPDX-License-Identifier: MIT
 *
 * The image encoder against transformers with small models (tests/fixtures/vision/models): from the pixels of the
 * golden images to rows, for a projector, a folder and a quantised pair; the same bits in every build of the kernels,
 * with any threads; and broken projectors.
 */
#include "projector.h"
#include "image/image.h"
#include "models/qwen3_vision.h"

#include <math.h>

/* --- images and expected values --------------------------------------------------------------------------- */

enum { FRAMES_MOST = 6 };

/* An image's or a video's frames, resized. */
struct media {
    const char *name;
    int n, rows, cols; /* frames; patches */
    uint8_t *frames[FRAMES_MOST];
};

static const char *vision_path(const char *name)
{
    static char path[1200];
    snprintf(path, sizeof path, "%.1000s/vision/models/%.150s", check_fixtures, name);
    return path;
}

/* Reads the decoded pixels that write-images.mjs wrote, and resizes them as it says. */
static uint8_t *frame_read(const char *name, int *width, int *height)
{
    struct file list = file_read(built_fixtures("/vision"), "images.txt");
    char line[200], *at = (char *)list.data, format[64];
    int channels, w, h, found = 0;
    snprintf(format, sizeof format, "%s %%d %%d %%d %%d %%d ", name);
    for (char *end; !found && at < (char *)list.data + list.size && (end = memchr(at, '\n', list.size)); at = end + 1) {
        snprintf(line, sizeof line, "%.*s", (int)(end - at), at);
        found = sscanf(line, format, &channels, &w, &h, width, height) == 5;
    }
    CHECK(found);
    file_free(&list);
    snprintf(line, sizeof line, "%s.raw", name);
    struct file f = file_read(built_fixtures("/vision"), line);
    uint8_t *out = malloc((size_t)*width * (size_t)*height * 3),
            *scratch = malloc(image_resize_cost(w, h, *width, *height));
    CHECK(out && scratch);
    if (channels == 4) image_opaque(f.data, (uint64_t)w * (uint64_t)h, f.data);
    image_resize(f.data, w, h, out, *width, *height, scratch);
    free(scratch);
    file_free(&f);
    return out;
}

static struct media media_read(const char *name, int frames)
{
    struct media m = {.name = name, .n = max_int(frames, 1)};
    int width = 0, height = 0;
    for (int i = 0; i < m.n; i++) {
        char one[40];
        snprintf(one, sizeof one, frames ? "%s-%d" : "%s", name, i);
        m.frames[i] = frame_read(one, &width, &height);
    }
    m.rows = height / 16;
    m.cols = width / 16;
    return m;
}

static void media_free(struct media *m)
{
    for (int i = 0; i < m->n; i++) free(m->frames[i]);
}

static int pairs_of(const struct media *m) { return (m->n + 1) / 2; }

/* out [pairs, vision_size()] */
static float *media_encode(struct projector *e, const struct media *m)
{
    uint64_t size = vision_size(e->v, m->rows, m->cols);
    float *out = malloc((size_t)pairs_of(m) * size * sizeof *out);
    CHECK(out != NULL);
    for (int i = 0; i < pairs_of(m); i++) {
        const uint8_t *const frames[2] = {m->frames[2 * i], m->frames[min_int(2 * i + 1, m->n - 1)]};
        projector_look(e, frames, m->rows, m->cols, out + (size_t)i * size);
    }
    return out;
}

static const struct {
    const char *name;
    int frames;
} all_media[] = {{"alpha", 0}, {"exact", 0}, {"grey16", 0}, {"odd", 0},  {"palette", 0},
                 {"tall", 0},  {"tiny", 0},  {"wide", 0},   {"clip", 4}, {"five", 5}};
enum { MEDIA = sizeof all_media / sizeof *all_media };

/* --- comparing ------------------------------------------------------------------------------------------------ */

/* Largest difference, and the sums of squares that give the relative rms. */
struct distance {
    double most, squares, of;
};

static void distance_add(struct distance *d, float got, float expected)
{
    double difference = fabs((double)got - (double)expected);
    if (!(difference <= d->most)) d->most = difference;
    d->squares += difference * difference;
    d->of += (double)expected * (double)expected;
}

static struct file golden_read(const char *folder, const char *name, const char *what)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s.%s.f32", folder, name, what);
    return file_read(vision_path(""), path);
}

/* Compares the rows (level 0) or an addition (1, 2 ...) of all tokens with expected rows [tokens, D] or additions [k,
 * tokens, D]. */
static struct distance compare(const struct projector *e, const struct media *m, const float *out, int level,
                               const char *folder)
{
    const struct vision_config *c = vision_config(e->v);
    struct file f = golden_read(folder, m->name, level ? "deepstack" : "merged");
    size_t tokens = (size_t)pairs_of(m) * (size_t)(m->rows * m->cols / 4), dim = (size_t)c->out_dim,
           levels = (size_t)c->n_added;
    const float *expected = (const float *)(void *)f.data + (level ? (size_t)(level - 1) * tokens * dim : 0);
    struct distance d = {0};
    CHECK_EQ(f.size, (level ? levels : 1) * tokens * dim * sizeof *out);
    for (size_t t = 0; t < tokens; t++)
        for (size_t i = 0; i < dim; i++)
            distance_add(&d, out[(t * (1 + levels) + (size_t)level) * dim + i], expected[t * dim + i]);
    file_free(&f);
    return d;
}

/* Projectors of folders, from which fixtures are made. */
#define MOE_PROJECTOR "moe.mmproj.gguf"
#define HYBRID_PROJECTOR "hybrid.mmproj.gguf"

/* Opens a projector's file, or a folder. */
static void open_projector(struct projector *e, const char *path, const struct projector_options *o)
{
    struct file files[EYES_FILES];
    int n = 1;
    if (!strcmp(path, MOE_PROJECTOR) || !strcmp(path, HYBRID_PROJECTOR))
        files[0] = file_read(built_fixtures("/vision"), path);
    else if (strstr(path, ".gguf")) files[0] = file_read(vision_path(""), path);
    else n = projector_folder(vision_path(path), files);
    int status = projector_open(e, files, n, o);
    if (status) printf("# %s: %s\n", path, e->err.message);
    CHECK_EQ(status, OK);
    while (n) file_free(&files[--n]);
}

/* --- golden --------------------------------------------------------------------------------------------------- */

/* The bar for vision: rows and additions within 2e-4. */
static void check_golden(struct projector *e, const char *folder, int first, int end)
{
    double most = 0;
    for (int i = first; i < end; i++) {
        struct media m = media_read(all_media[i].name, all_media[i].frames);
        float *out = media_encode(e, &m);
        for (int level = 0; level <= vision_config(e->v)->n_added; level++) {
            struct distance d = compare(e, &m, out, level, folder);
            if (!(d.most <= 2e-4)) printf("# %s, level %d: %g\n", m.name, level, d.most);
            CHECK(d.most <= 2e-4);
            most = fmax(most, d.most);
        }
        free(out);
        media_free(&m);
    }
    printf("# %s: within %.2g\n", folder, most);
}

static void projector(void)
{
    struct projector e;
    open_projector(&e, "dense/f16/mmproj.gguf", &(struct projector_options){.threads = 2});
    check_golden(&e, "dense/media", 0, MEDIA);
    projector_close(&e);
}

static void folder(void)
{
    struct projector e;
    open_projector(&e, "dense/hf", &(struct projector_options){.chunk = 4099});
    check_golden(&e, "dense/media", 0, MEDIA);
    projector_close(&e);
}

/* Heads of 72 columns; a feed-forward of 168 = 5.25 x 32 columns. */
static void odd_sizes(void)
{
    static const char *const names[] = {"odd", "tiny", "wide"};
    struct projector e;
    open_projector(&e, "moe/hf", &(struct projector_options){0});
    CHECK_EQ(vision_config(e.v)->head_dim, 72);
    CHECK_EQ(vision_config(e.v)->ffn_dim % 32, 8);
    for (int i = 0; i < MEDIA; i++)
        for (size_t j = 0; j < sizeof names / sizeof *names; j++)
            if (!strcmp(all_media[i].name, names[j])) check_golden(&e, "moe/media", i, i + 1);
    projector_close(&e);
}

/* Qwen3.5's: after no layer is anything added. */
static void without_additions(void)
{
    static const char *const names[] = {"odd", "tiny", "wide", "clip"};
    static const char *const paths[] = {HYBRID_PROJECTOR, "hybrid/hf"};
    for (int way = 0; way < 2; way++) {
        struct projector e;
        open_projector(&e, paths[way], &(struct projector_options){.threads = 2});
        CHECK_EQ(vision_config(e.v)->n_added, 0);
        for (int i = 0; i < MEDIA; i++)
            for (size_t j = 0; j < sizeof names / sizeof *names; j++)
                if (!strcmp(all_media[i].name, names[j])) check_golden(&e, "hybrid/media", i, i + 1);
        projector_close(&e);
    }
}

/* The largest difference of the residual stream at this point. */
static double most_between(const struct projector *e, const char *folder, const char *what)
{
    const float *got = e->be->ops->result(e->be, e->v->s.x);
    struct file f = golden_read(folder, "tiny", what);
    struct distance d = {0};
    for (size_t i = 0; i < f.size / sizeof *got; i++) distance_add(&d, got[i], load_f32(f.data + i * sizeof *got));
    file_free(&f);
    printf("# %s, %s: within %.2g\n", folder, what, d.most);
    return d.most;
}

/* Inside the encoder: patches before their positions, and the last layer's rows. */
static void check_inside(struct projector *e, const char *folder)
{
    const struct vision_config *c = vision_config(e->v);
    struct media m = media_read("tiny", 0);
    size_t positions = (size_t)(c->side * c->side * c->dim) * sizeof(float);
    float *kept = malloc(positions), *out = media_encode(e, &m);
    CHECK(most_between(e, folder, "last") <= 1e-3);
    memcpy(kept, e->v->positions, positions);
    memset(e->v->positions, 0, positions);
    vision_begin(e->v, (const uint8_t *const[]){m.frames[0], m.frames[0]}, m.rows, m.cols, out);
    projector_part(e, 0);
    CHECK(most_between(e, folder, "patch") <= 2e-5);
    memcpy(e->v->positions, kept, positions);
    free(kept);
    free(out);
    media_free(&m);
}

static void inside(void)
{
    struct projector dense, moe;
    open_projector(&dense, "dense/f16/mmproj.gguf", &(struct projector_options){0});
    open_projector(&moe, "moe/hf", &(struct projector_options){0});
    check_inside(&dense, "dense/media");
    check_inside(&moe, "moe/media");
    projector_close(&dense);
    projector_close(&moe);
}

/* The bar for 8-bit weights: the relative rms, mean over the images, is at most 1.2 times that of llama.cpp's int8
 * path. */
static void quantised(void)
{
    struct projector e;
    open_projector(&e, "dense/q8_0/mmproj.gguf", &(struct projector_options){.threads = 2});
    struct file f = file_read(vision_path("dense/q8_0"), "int8act.json");
    f.data = realloc(f.data, f.size + 1);
    f.data[f.size] = 0;
    double ours[3] = {0}, theirs[3] = {0};
    for (int i = 0; i < MEDIA && !all_media[i].frames; i++) {
        char key[40];
        snprintf(key, sizeof key, "\"%s.png\"", all_media[i].name);
        const char *at = strstr((char *)f.data, key);
        at = at ? strchr(at, '[') : NULL;
        CHECK(at != NULL);
        struct media m = media_read(all_media[i].name, 0);
        float *out = media_encode(&e, &m);
        for (int level = 0; level < 3; level++) {
            struct distance d = compare(&e, &m, out, level, "dense/q8_0");
            ours[level] += sqrt(d.squares / d.of);
            theirs[level] += strtod(at + 1, (char **)(void *)&at);
        }
        free(out);
        media_free(&m);
    }
    for (int level = 0; level < 3; level++) {
        printf("# %s: %.3f of llama.cpp's\n", level ? "addition" : "rows", ours[level] / theirs[level]);
        CHECK(ours[level] <= 1.2 * theirs[level]);
    }
    file_free(&f);
    projector_close(&e);
}

/* --- the same bits ---------------------------------------------------------------------------------------------- */

static void check_same(struct projector *a, struct projector *b)
{
    for (int i = 0; i < MEDIA; i++) {
        struct media m = media_read(all_media[i].name, all_media[i].frames);
        float *one = media_encode(a, &m), *two = media_encode(b, &m);
        CHECK_EQ(memcmp(one, two, (size_t)pairs_of(&m) * vision_size(a->v, m.rows, m.cols) * sizeof *one), 0);
        free(one);
        free(two);
        media_free(&m);
    }
}

static void same_bits(void)
{
    const struct projector_options scalar = {.scalar = true}, many = {.threads = 4};
    struct projector file, tree, one, two;
    open_projector(&file, "dense/f16/mmproj.gguf", &scalar);
    open_projector(&tree, "dense/hf", &many);
    check_same(&file, &tree);
    projector_close(&file);
    projector_close(&tree);
    open_projector(&file, MOE_PROJECTOR, &many);
    open_projector(&tree, "moe/hf", &scalar);
    check_same(&file, &tree);
    projector_close(&file);
    projector_close(&tree);
    for (int quantise = (int)check_length(1, 0); quantise < 2; quantise++) {
        const char *type = quantise ? "Q8_0" : NULL;
        open_projector(&one, "moe/hf", &(struct projector_options){.scalar = true, .type = type});
        open_projector(&two, "moe/hf", &(struct projector_options){.threads = 3, .type = type});
        check_same(&one, &two);
        projector_close(&one);
        projector_close(&two);
    }
    open_projector(&one, "dense/q8_0/mmproj.gguf", &scalar);
    open_projector(&two, "dense/q8_0/mmproj.gguf", &many);
    check_same(&one, &two);
    projector_close(&one);
    projector_close(&two);
}

/* Hash of the result, the same on every machine: FNV-1a. */
#define LARGE_BITS 0xcbcd23b967b29fa2ull

/* An image of more patches than are computed at once and than one span of keys has: 24 x 22 = 528. */
static void large(void)
{
    const int rows = 24, cols = 22;
    size_t bytes = (size_t)(rows * cols * 16 * 16 * 3);
    uint8_t *frame = malloc(bytes);
    uint64_t seed = 7;
    for (size_t i = 0; i < bytes; i++) frame[i] = (uint8_t)(random_next(&seed) >> 56);
    float *out[2];
    for (int i = 0; i < 2; i++) {
        struct projector e;
        open_projector(&e, "dense/f16/mmproj.gguf",
                       &(struct projector_options){.scalar = i, .threads = 3, .max_patches = rows * cols + 5 * i});
        out[i] = malloc(vision_size(e.v, rows, cols) * sizeof(float));
        projector_look(&e, (const uint8_t *const[]){frame, frame}, rows, cols, out[i]);
        if (i) CHECK_EQ(memcmp(out[0], out[1], vision_size(e.v, rows, cols) * sizeof(float)), 0);
        projector_close(&e);
        CHECK(isfinite(out[i][0]));
    }
    uint64_t hash =
        name_hash((struct bytes){(const uint8_t *)out[0], (size_t)rows * (size_t)cols / 4 * 3 * 64 * sizeof(float)});
    printf("# bits: %016llx\n", (unsigned long long)hash);
    CHECK_EQ(hash, LARGE_BITS);
    free(out[0]);
    free(out[1]);
    free(frame);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

/* Reserving and taking use exactly the announced memory. */
static void costs(void)
{
    enum { PATCHES = 2048 };
    struct file f = file_read(vision_path("dense/q8_0"), "mmproj.gguf");
    struct projector e = {0};
    size_t used;
    e.pool = pool_new(&e.mem, 1);
    e.be = backend_cpu(&e.mem, e.pool, false);
    intake_open(&e.in, &e.mem, 1, f.size);
    CHECK_EQ(intake_header(&e.in, f.data, f.size, &used, &e.err), OK);
    CHECK_EQ(vision_open(&e.mem, e.be, &e.in.ck, &e.v, &e.err), OK);
    CHECK_EQ(vision_bind(e.v, &e.in.ck, false, &e.err), OK);
    uint64_t before = e.mem.used, cost = vision_take_cost(e.v, &e.in.ck);
    CHECK_EQ(vision_take(e.v, &e.in.ck, &e.err), OK);
    CHECK_EQ(e.mem.used - before, cost);
    before = e.mem.used, cost = vision_reserve_cost(e.v, PATCHES);
    CHECK_EQ(vision_reserve(e.v, PATCHES, (struct handle){0}), OK);
    CHECK_EQ(e.mem.used - before, cost);
    const struct reserve needs = projector_needs(e.v, PATCHES);
    const struct reserve_cost reserved = e.be->ops->reserve_cost(e.be, &needs);
    before = e.mem.used;
    CHECK(reserved.scratch > needs.values);
    CHECK_EQ(e.be->ops->reserve(e.be, &needs), OK);
    CHECK_EQ(e.mem.used - before, reserved.scratch + reserved.pages);
    projector_close(&e);
    file_free(&f);
}

/* Every allocation fails once. */
static void short_memory(void)
{
    struct file f = file_read(vision_path("dense/q8_0"), "mmproj.gguf");
    int status = ERR_MEM_LOAD, n = 0;
    for (uint64_t at = 1; status; at++, n++) {
        struct projector e;
        status = projector_open(&e, &f, 1, &(struct projector_options){.fail_at = at});
        CHECK(status == OK || status == ERR_MEM_LOAD || status == ERR_MEM_KV);
        projector_close(&e);
    }
    printf("# %d allocations\n", n);
    CHECK(n > 100);
    file_free(&f);
}

/* --- broken projectors -------------------------------------------------------------------------------------------- */

/* Replaces the n-th (from 0) occurrence of some bytes in a file. */
static void replace(struct file *f, const void *from, const void *to, size_t size, int nth)
{
    for (size_t i = 0; i + size <= f->size; i++)
        if (!memcmp(f->data + i, from, size) && nth-- == 0) {
            memcpy(f->data + i, to, size);
            return;
        }
    CHECK(false);
}

/* Sets a 4-byte number, or a 1-byte boolean, after a key. */
static void set_value(struct file *f, const char *key, uint32_t value, size_t size)
{
    for (size_t i = 0; i + 100 < f->size; i++) {
        size_t n = strlen(key);
        if (memcmp(f->data + i, key, n) || load_u64(f->data + i - 8) != n) continue;
        memcpy(f->data + i + n + 4, &value, size); /* after its type */
        return;
    }
    CHECK(false);
}

static void rename_to(struct file *f, const char *from, const char *to) { replace(f, from, to, strlen(from), 0); }

/* Changes to a good projector: a name replaced (by one of the same length), or a key's value set. */
static const struct {
    const char *from, *to; /* to NULL: `from` is a key that gets `value`, of `size` bytes */
    uint32_t value;
    int size, code;
    const char *rule;
} broken[] = {
    {"clip", "qlip", 0, 0, OK, NULL}, /* only the architecture's name: the encoder's keys remain */
    {"general.architecture", "general.orchitecture", 0, 0, OK, NULL},
    {"qwen3vl_merger", "qwen2vl_merger", 0, 0, ERR_UNSUPPORTED, "projector-type"},
    {"clip.projector_type", "clip.projektor_type", 0, 0, ERR_FORMAT, "missing"},
    {"clip.has_vision_encoder", NULL, 0, 1, ERR_UNSUPPORTED, "projector-type"},
    {"clip.use_gelu", NULL, 0, 1, ERR_UNSUPPORTED, "projector-type"},
    {"clip.use_gelu", "clip.use_silu", 0, 0, ERR_UNSUPPORTED, "projector-type"},
    {"clip.vision.spatial_merge_size", NULL, 3, 4, ERR_UNSUPPORTED, "projector-type"},
    {"clip.vision.block_count", NULL, 0, 4, ERR_INCONSISTENT, "value"},
    {"clip.vision.block_count", NULL, 257, 4, ERR_INCONSISTENT, "value"},
    {"clip.vision.block_count", NULL, 3, 4, ERR_INCONSISTENT, "value"}, /* is_deepstack_layers has four values */
    {"clip.vision.embedding_length", NULL, 0, 4, ERR_INCONSISTENT, "value"},
    {"clip.vision.embedding_length", NULL, 72, 4, ERR_INCONSISTENT, "shape"},
    {"clip.vision.embedding_length", NULL, 68, 4, ERR_UNSUPPORTED, "value"},
    {"clip.vision.feed_forward_length", NULL, 128, 4, ERR_INCONSISTENT, "shape"},
    {"clip.vision.feed_forward_length", NULL, 70000, 4, ERR_INCONSISTENT, "value"},
    {"clip.vision.attention.head_count", NULL, 3, 4, ERR_INCONSISTENT, "value"},
    {"clip.vision.attention.head_count", NULL, 32, 4, ERR_INCONSISTENT, "value"},
    {"clip.vision.projection_dim", NULL, 65, 4, ERR_INCONSISTENT, "shape"},
    {"clip.vision.patch_size", NULL, 7, 4, ERR_INCONSISTENT, "value"},
    {"clip.vision.patch_size", NULL, 12, 4, ERR_INCONSISTENT, "value"}, /* but the position table is 12 x 12 */
    {"clip.vision.image_size", NULL, 208, 4, ERR_INCONSISTENT, "value"},
    {"clip.vision.image_size", "clip.vision.image_sise", 0, 0, OK, NULL},
    {"clip.vision.attention.layer_norm_epsilon", NULL, 0, 4, ERR_INCONSISTENT, "value"},
    {"clip.vision.is_deepstack_layers", "clip.vision.is_deepstakk_layers", 0, 0, ERR_INCONSISTENT, "deepstack"},
    {"v.patch_embd.weight.1", "v.patch_embd.weight.2", 0, 0, ERR_FORMAT, "missing"},
    {"v.patch_embd.bias", "v.patch_embd.bjas", 0, 0, ERR_FORMAT, "missing"},
    {"v.position_embd.weight", "v.position_embd.veight", 0, 0, ERR_FORMAT, "missing"},
    {"v.blk.3.ffn_down.bias", "v.blk.3.ffn_down.bjas", 0, 0, ERR_FORMAT, "missing"},
    {"v.blk.2.attn_qkv.weight", "v.blk.2.attn_qkw.weight", 0, 0, ERR_FORMAT, "missing"},
    {"v.blk.2.ln1.weight", "v.blk.7.ln1.weight", 0, 0, ERR_INCONSISTENT, "layers"},
    {"v.deepstack.2.norm.bias", "v.deepstack.1.norm.bias", 0, 0, ERR_INCONSISTENT, "deepstack"},
    {"mm.2.bias", "mm.3.bias", 0, 0, ERR_FORMAT, "missing"},
    {"v.post_ln.weight", "v.post_lm.weight", 0, 0, ERR_FORMAT, "missing"},
};

static void refused(void)
{
    struct file good = file_read(vision_path("dense/q8_0"), "mmproj.gguf");
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct file f = {malloc(good.size), good.size};
        struct projector e;
        memcpy(f.data, good.data, good.size);
        if (broken[i].to) rename_to(&f, broken[i].from, broken[i].to);
        else set_value(&f, broken[i].from, broken[i].value, (size_t)broken[i].size);
        int status = projector_open(&e, &f, 1, &(struct projector_options){0});
        if (status != broken[i].code || (status && strcmp(e.err.rule, broken[i].rule)))
            printf("# %s, %u: %s %s: %s\n", broken[i].from, broken[i].value, status_name(status), e.err.rule,
                   e.err.message);
        CHECK_EQ(status, broken[i].code);
        CHECK(!status || (!strcmp(e.err.rule, broken[i].rule) && strlen(e.err.message) > 20));
        projector_close(&e);
        file_free(&f);
    }
    file_free(&good);
}

/* A language model is refused as a projector; a projector of another width belongs to another model. */
static void mistaken(void)
{
    struct projector e;
    struct file f = file_read(vision_path("dense/q8_0"), "model.gguf");
    CHECK_EQ(projector_open(&e, &f, 1, &(struct projector_options){0}), ERR_UNSUPPORTED);
    CHECK(!strcmp(e.err.rule, "projector"));
    projector_close(&e);
    file_free(&f);
    open_projector(&e, "dense/q8_0/mmproj.gguf", &(struct projector_options){0});
    CHECK_EQ(vision_suits(e.v, 64, 3, -1, &e.err), OK);
    CHECK_EQ(vision_suits(e.v, 64, 3, 2, &e.err), OK);
    CHECK_EQ(vision_suits(e.v, 48, 3, 2, &e.err), ERR_INCONSISTENT);
    CHECK(!strcmp(e.err.rule, "projector-dim") && strstr(e.err.message, "64") && strstr(e.err.message, "48"));
    CHECK_EQ(vision_suits(e.v, 64, 3, 3, &e.err), ERR_INCONSISTENT);
    CHECK(!strcmp(e.err.rule, "deepstack"));
    CHECK_EQ(vision_suits(e.v, 64, 1, -1, &e.err), ERR_INCONSISTENT);
    projector_close(&e);
}

/* The header cut at every byte, and every byte of it (or some) changed: an error or a model, and no leak. */
static void damaged(void)
{
    struct file good = file_read(vision_path("dense/q8_0"), "mmproj.gguf");
    struct projector e;
    int loads = 0, refusals = 0;
    CHECK_EQ(projector_open(&e, &good, 1, &(struct projector_options){0}), OK);
    size_t header = e.in.ck.header_size;
    projector_close(&e);
    for (size_t i = 1; i < header; i += check_every(1 + i / 64 % 9)) {
        struct file cut = {good.data, i}, f = {malloc(good.size), good.size};
        CHECK(projector_open(&e, &cut, 1, &(struct projector_options){0}) != OK);
        projector_close(&e);
        memcpy(f.data, good.data, good.size);
        f.data[i] ^= (uint8_t)(1u << i % 8);
        int status = projector_open(&e, &f, 1, &(struct projector_options){.limit = 64 << 20, .max_patches = 16});
        CHECK(status == OK || e.err.message[0] || status == ERR_MEM_LOAD || status == ERR_MEM_KV);
        projector_close(&e);
        file_free(&f);
        loads++, refusals += status != OK;
    }
    printf("# %d loads, %d refused\n", loads, refusals);
    CHECK(refusals > loads / 3);
    file_free(&good);
}

/* Several bytes changed at once, most of them in the header, and the end cut off. */
static void damaged_at_random(void)
{
    struct file good = file_read(vision_path("dense/q8_0"), "mmproj.gguf");
    int loads = (int)check_length(100, 20000), refusals = 0;
    uint64_t seed = 19;
    struct projector e;
    CHECK_EQ(projector_open(&e, &good, 1, &(struct projector_options){0}), OK);
    uint64_t header = e.in.ck.header_size;
    projector_close(&e);
    for (int i = 0; i < loads; i++) {
        struct file f = {malloc(good.size), good.size};
        memcpy(f.data, good.data, good.size);
        for (uint64_t n = 1 + random_next(&seed) % 4; n > 0; n--) {
            uint64_t at = random_next(&seed) % (random_next(&seed) % 8 ? header : good.size);
            f.data[at] = (uint8_t)(random_next(&seed) % 3 ? random_next(&seed) >> 56
                                                          : f.data[at] ^ 1u << random_next(&seed) % 8);
        }
        struct file some = {f.data, random_next(&seed) % 4 ? f.size : (size_t)(1 + random_next(&seed) % f.size)};
        int status = projector_open(
            &e, &some, 1,
            &(struct projector_options){.limit = 64 << 20, .max_patches = 16, .chunk = 1 + random_next(&seed) % 65536});
        CHECK(status == OK || e.err.message[0] || status == ERR_MEM_LOAD || status == ERR_MEM_KV);
        projector_close(&e);
        file_free(&f);
        refusals += status != OK;
    }
    printf("# %d loads, %d refused\n", loads, refusals);
    CHECK(refusals > loads / 4);
    file_free(&good);
}

static const struct check tests[] = {
    {"projector", projector},
    {"folder", folder},
    {"odd_sizes", odd_sizes},
    {"without_additions", without_additions},
    {"inside", inside},
    {"quantised", quantised},
    {"same_bits", same_bits},
    {"large", large},
    {"costs", costs},
    {"short_memory", short_memory},
    {"refused", refused},
    {"mistaken", mistaken},
    {"damaged", damaged},
    {"damaged_at_random", damaged_at_random},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
