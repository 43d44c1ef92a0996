/* SPDX-License-Identifier: MIT
 *
 * Opens the vision encoder, and takes images from the caller: their sizes, adding and releasing.
 */
#include "engine/projector.h"

#include "load/format.h"

#include <math.h>
#include <string.h>

enum {
    IMAGE_DEFAULT = 262144, VIDEO_DEFAULT = 524288, /* pixels when the caller gives no limit */
    IMAGE_MOST = 1048576,                          /* most pixels of an image by default */
    PIXELS_MOST = 100000000,
    ASPECT_MOST = 200,                               /* as in image_size() */
    STORE_DEFAULT = 64 << 20,                        /* bytes */
};

/* Assumed sizes of an encoder whose header has not come: those of the largest published one. */
enum { DIM_AWAITED = 1152, FFN_AWAITED = 4304, ADDED_AWAITED = 3, ROWS_AWAITED = 256 };

/* --- opening ------------------------------------------------------------------------------------------------- */

bool quern_sees(const struct quern_engine *e) { return e->projector && e->projector->vision; }
bool projector_awaited(const struct quern_engine *e) { return e->projector && !e->projector->vision; }

struct checkpoint *projector_file(const struct quern_engine *e)
{
    return e->projector->apart ? &e->projector->ck : e->intake.file;
}

static int new_projector(struct quern_engine *e, bool apart, struct error *err)
{
    e->projector = mem_alloc(&e->mem, sizeof *e->projector);
    if (!e->projector) return fail(err, ERR_MEM_LOAD, "vision", 0, "Not enough memory for the model's vision part.");
    e->projector->apart = apart;
    return OK;
}

/* Checks that the vocabulary has the tokens that mark images in a text. */
static int check_tokens(const struct quern_engine *e, struct error *err)
{
    const char *const *texts = e->model->architecture->marks->vision;
    for (size_t i = 0; i < VISION_MARKS; i++)
        if (tok_find_special(e->tok, (struct bytes){(const uint8_t *)texts[i], strlen(texts[i])}) < 0)
            return fail(err, ERR_INCONSISTENT, "vision-token", 0,
                        "The vocabulary has no %s, without which images have no place in a text.", texts[i]);
    return OK;
}

/* Sets the most pixels, and the most patches of an image. These may exceed the pixels: the sides of an enlarged image
 * are rounded up, and a strip is at least one token high. */
static void set_limits(struct quern_engine *e)
{
    struct projector *s = e->projector;
    const struct quern_options *o = &e->options;
    const struct vision_config *c = vision_config(s->vision);
    double side = (double)(c->patch * IMAGE_MERGE);
    double image = o->max_pixels > 0 ? o->max_pixels : fmin(IMAGE_MOST, c->high);
    s->most[QUERN_IMAGE] = fmin(fmax(image, side * side), PIXELS_MOST);
    s->most[QUERN_VIDEO] = o->max_video_pixels > 0 ? o->max_video_pixels : c->video_high;
    double most = s->most[QUERN_IMAGE], square = sqrt(most) + side,
           strip = side * (sqrt((double)ASPECT_MOST * most) + side);
    s->max_patches = (int)(fmax(square * square, strip) / (side * side)) * IMAGE_MERGE * IMAGE_MERGE;
}

static int open_encoder(struct quern_engine *e, const struct checkpoint *ck, struct error *err)
{
    const struct model_config *m = &e->model->config;
    int status = vision_open(&e->mem, e->be, ck, &e->projector->vision, err);
    if (!status) status = vision_suits(e->projector->vision, m->dim, m->n_layers, m->n_added, err);
    if (!status) set_limits(e);
    return status;
}

static int fail_no_vision(struct error *err)
{
    return fail(err, ERR_UNSUPPORTED, "no-vision", 0,
                "This model reads no images: load it without `vision`, or take a model that does, such as Qwen3-VL.");
}

int projector_open(struct quern_engine *e, struct error *err)
{
    const bool sees = e->model->config.sees;
    bool folder = sees && !e->options.no_vision && vision_there(&e->intake.ck),
         file = e->options.vision_size > 0 || e->projector;
    if (!folder && !file) return OK;
    if (!sees) return fail_no_vision(err);
    if (folder && file)
        return fail(err, ERR_PARAM, "vision", 0,
                    "The folder has a vision part of its own; load it without another projector, or leave that out.");
    int status = e->projector ? OK : new_projector(e, file, err);
    if (!status) status = check_tokens(e, err);
    return status || file ? status : open_encoder(e, &e->intake.ck, err);
}

int projector_bind(struct quern_engine *e, struct error *err)
{
    if (!quern_sees(e) || e->projector->apart) return OK;
    return vision_bind(e->projector->vision, e->intake.file, intake_more(&e->intake), err);
}

/* --- a projector's file -------------------------------------------------------------------------------------- */

int projector_begin(struct quern_engine *e, uint64_t size, struct error *err)
{
    if (e->model && !e->model->config.sees) return fail_no_vision(err);
    int status = e->projector || !e->options.inspect ? OK : new_projector(e, true, err);
    if (status) return status;
    if (!e->projector || !e->projector->apart || e->projector->begun)
        return fail(err, ERR_PARAM, "vision", 0, "No projector was expected; announce it before loading.");
    ck_init(&e->projector->ck, &e->mem, size);
    e->projector->begun = true;
    return OK;
}

int projector_header(struct quern_engine *e, const uint8_t *bytes, size_t n, size_t *used, struct error *err)
{
    struct projector *s = e->projector;
    int status = ck_header(&s->ck, bytes, n, used, err);
    if (status == NEED_MORE) return OK;
    if (!status) status = ck_complete(&s->ck, err);
    if (!status) status = open_encoder(e, &s->ck, err);
    if (!status) status = vision_bind(s->vision, &s->ck, false, err);
    if (status) return status;
    s->bytes = s->ck.file_size;
    s->complete = true;
    return OK;
}

int projector_ended(struct quern_engine *e, struct error *err)
{
    struct projector *s = e->projector;
    if (s->complete) return e->options.inspect ? OK : ck_data_ended(&s->ck, err);
    int status = ck_header_ended(&s->ck, err);
    return status ? status
                  : fail(err, ERR_UNSUPPORTED, "projector", 0, "The file given as `vision` is not a projector.");
}

/* --- memory -------------------------------------------------------------------------------------------------- */

uint64_t projector_weights(const struct quern_engine *e)
{
    if (!e->projector || !e->projector->apart) return 0;
    return projector_awaited(e) ? e->options.vision_size : vision_take_cost(e->projector->vision, &e->projector->ck);
}

static uint64_t store_floats(const struct quern_engine *e, int patches, int width)
{
    uint64_t least = (uint64_t)(patches / (IMAGE_MERGE * IMAGE_MERGE)) * (uint64_t)width;
    uint64_t asked = (e->options.media_cache ? e->options.media_cache : STORE_DEFAULT) / sizeof(float);
    return asked > least ? asked : least;
}

static int width_of(const struct vision_config *c) { return (1 + c->n_added) * c->out_dim; }

/* The store, its part of a step, and the pixels of one image. Further images are allocated as they come, as texts are.
 */
static uint64_t media_cost(const struct quern_engine *e, int patches, int width, int patch)
{
    uint64_t pixels = (uint64_t)patches * (uint64_t)patch * (uint64_t)patch;
    return mem_cost(store_floats(e, patches, width) * sizeof(float)) +
           mem_cost((uint64_t)e->step.max_rows * sizeof *e->projector->features) + mem_cost(3 * pixels);
}

enum { PATCH_AWAITED = 16 }; /* pixels per side */

static int patches_awaited(const struct quern_engine *e)
{
    double most = e->options.max_pixels > 0 ? fmin(e->options.max_pixels, PIXELS_MOST) : (double)IMAGE_MOST;
    return (int)(most / (PATCH_AWAITED * PATCH_AWAITED));
}

uint64_t projector_values(const struct quern_engine *e)
{
    const struct projector *s = e->projector;
    if (!s) return 0;
    if (s->vision) return vision_values(s->vision, s->max_patches);
    return sizeof(float) *
           (4 * (uint64_t)patches_awaited(e) * DIM_AWAITED + (uint64_t)ROWS_AWAITED * (2 * DIM_AWAITED + FFN_AWAITED));
}

static uint64_t awaited_cost(const struct quern_engine *e)
{
    const struct model_config *m = &e->model->config;
    int patches = patches_awaited(e), width = (1 + (m->n_added < 0 ? ADDED_AWAITED : m->n_added)) * m->dim;
    return media_cost(e, patches, width, PATCH_AWAITED);
}

uint64_t projector_scratch(const struct quern_engine *e)
{
    const struct projector *s = e->projector;
    if (!s || !s->vision) return s ? awaited_cost(e) : 0;
    const struct vision_config *c = vision_config(s->vision);
    return vision_reserve_cost(s->vision, s->max_patches) + media_cost(e, s->max_patches, width_of(c), c->patch);
}

int projector_rows(const struct quern_engine *e)
{
    return quern_sees(e) ? vision_max_rows(e->projector->vision) : e->projector ? ROWS_AWAITED : 0;
}
int projector_cols(const struct quern_engine *e)
{
    return quern_sees(e)  ? vision_max_cols(e->projector->vision)
           : e->projector ? DIM_AWAITED * IMAGE_MERGE * IMAGE_MERGE
                          : 0;
}

int projector_reserve(struct quern_engine *e, struct handle first)
{
    struct projector *s = e->projector;
    if (!s) return OK;
    int width = width_of(vision_config(s->vision));
    s->features = mem_array(&e->mem, (uint64_t)e->step.max_rows, sizeof *s->features);
    if (!s->features || vision_reserve(s->vision, s->max_patches, first)) return ERR_MEM_LOAD;
    return store_open(&s->store, &e->mem, store_floats(e, s->max_patches, width), width);
}

void projector_free(struct quern_engine *e)
{
    struct projector *s = e->projector;
    if (!s) return;
    if (s->store.mem) store_close(&s->store);
    mem_free(&e->mem, s->features);
    vision_free(s->vision);
    if (s->begun) ck_close(&s->ck);
    mem_free(&e->mem, s);
}

/* --- images from the caller ---------------------------------------------------------------------------------- */

int32_t quern_media_pad(const struct quern_engine *e, enum quern_medium kind)
{
    return quern_sees(e) ? e->pads[kind] : -1;
}

static int check_sees(struct quern_engine *e)
{
    if (quern_sees(e) && e->state == STATE_READY) return OK;
    return fail(&e->error, ERR_PARAM, "vision", 0, "This model has no vision: load it with its projector (`vision`).");
}

/* Checks that the scratch is large enough. */
static int check_patches(struct quern_engine *e, const struct image_grid *g)
{
    int64_t patches = (int64_t)g->rows * g->cols * IMAGE_MERGE * IMAGE_MERGE;
    if (patches <= e->projector->max_patches) return OK;
    return fail(&e->error, ERR_SIZE, "pixels", 0,
                "An image of %d x %d pixels is too large; load the model with a larger maxPixels.", g->width,
                g->height);
}

int quern_media_plan(struct quern_engine *e, enum quern_medium kind, int width, int height, int frames, double low,
                     double high, struct image_grid *out)
{
    if (check_sees(e)) return ERR_PARAM;
    const struct projector *s = e->projector;
    const struct vision_config *c = vision_config(s->vision);
    bool video = kind == QUERN_VIDEO;
    int n = video ? frames : 1;
    if (width < 1 || height < 1 || n < 1)
        return fail(&e->error, ERR_SIZE, "sides", 0, "An image of %d x %d pixels cannot be read.", width, height);
    double asked = high > 0 ? high : video ? fmin(VIDEO_DEFAULT, c->video_high) : fmin(IMAGE_DEFAULT, c->high);
    double most = video ? fmin(s->most[QUERN_VIDEO], s->most[QUERN_IMAGE] * n) : s->most[QUERN_IMAGE];
    struct image_limits limits = {.patch = c->patch, .high = fmin(asked, most)};
    limits.low = fmin(low > 0 ? low : video ? c->video_low : c->low, limits.high);
    if ((video ? image_video_size(n, height, width, &limits, out) : image_size(height, width, &limits, out)) == OK)
        return check_patches(e, out);
    return fail(&e->error, ERR_SIZE, "aspect", 0,
                "An image of %d x %d pixels is too long; one side may be %d times the other.", width, height,
                ASPECT_MOST);
}

/* Checks that the grid could come from quern_media_plan(). */
static int check_grid(struct quern_engine *e, const struct image_grid *g, const uint8_t *frame0)
{
    int side = vision_config(e->projector->vision)->patch * IMAGE_MERGE;
    bool whole = g->rows > 0 && g->cols > 0 && g->height % side == 0 && g->width % side == 0;
    if (whole && g->height / side == g->rows && g->width / side == g->cols && g->frames >= 1 && frame0)
        return check_patches(e, g);
    return fail(&e->error, ERR_PARAM, "media", 0, "%d x %d pixels are not an image of %d x %d tokens.", g->width,
                g->height, g->cols, g->rows);
}

int quern_media_add(struct quern_engine *e, const struct image_grid *grid, const uint8_t *frame0, const uint8_t *frame1,
                    uint32_t scope, uint64_t *id)
{
    int status = check_sees(e);
    if (!status) status = check_grid(e, grid, frame0);
    if (status) return status;
    struct image_grid one = *grid;
    one.frames = frame1 && grid->frames > 1 ? 2 : 1;
    struct medium *m = store_add(&e->projector->store, &one, frame0, one.frames == 2 ? frame1 : NULL, scope);
    if (!m)
        return fail(&e->error, ERR_MEM_LOAD, "media", 0, "There is not enough memory for an image of %d x %d pixels.",
                    one.width, one.height);
    m->given++;
    *id = m->id;
    return OK;
}

void quern_media_release(struct quern_engine *e, uint64_t id)
{
    struct medium *m = quern_sees(e) ? store_find(&e->projector->store, id) : NULL;
    if (!m || m->given == 0) return;
    m->given--;
    store_let_go(&e->projector->store, m);
}
