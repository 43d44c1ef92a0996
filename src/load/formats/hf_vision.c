/* SPDX-License-Identifier: MIT
 *
 * A folder's settings for images and videos -> the keys "clip.*" of a projector's GGUF file, so that the encoder reads
 * one form.
 *
 * config.json (vision_config) has the encoder's sizes. Limits and normalisation are in preprocessor_config.json and
 * video_preprocessor_config.json, or both in processor_config.json, which then takes precedence. vision.c decides
 * whether the encoder is supported.
 */
#include "load/formats/hf.h"

#include <math.h>
#include <string.h>

enum { DEPTH_MAX = 256, CHANNELS = 3, MERGE = 2, TEMPORAL = 2, BICUBIC = 3 };

static const char *const keys[] = {
    /* in a preprocessor: whole numbers */
    "min_pixels",
    "max_pixels",
    "patch_size",
    "merge_size",
    "temporal_patch_size",
    "resample",
    "min_frames",
    "max_frames",
    /* numbers */
    "fps",
    "rescale_factor",
    /* required steps */
    "do_resize",
    "do_rescale",
    "do_normalize",
    "do_convert_rgb",
    /* the rest */
    "size",
    "image_mean",
    "image_std",
    "video_processor_type",
    /* only in the outermost object */
    "image_processor",
    "video_processor",
    "image_token_id",
    "video_token_id",
    "vision_start_token_id",
    "vision_end_token_id",
    "vision_config",
    NULL,
};
enum {
    LOW, HIGH, PATCH, MERGE_SIZE, TEMPORAL_SIZE, RESAMPLE, MIN_FRAMES, MAX_FRAMES, INTS,
    FPS = INTS, RESCALE, FLOATS_END,
    DO_RESIZE = FLOATS_END, TRUTHS_END = DO_RESIZE + 4,
    SIZE = TRUTHS_END, MEAN, STD, VIDEO_TYPE, OUTER,
    IMAGES = OUTER, VIDEOS, IDS, VISION = IDS + 4
};

static const char *const vision_keys[] = {
    "depth",      "hidden_size",        "intermediate_size",   "num_heads",   "out_hidden_size",
    "patch_size", "spatial_merge_size", "temporal_patch_size", "in_channels", "num_position_embeddings"};
/* Metadata keys; NULL: only checked. */
static const char *const vision_names[] = {"clip.vision.block_count",
                                           "clip.vision.embedding_length",
                                           "clip.vision.feed_forward_length",
                                           "clip.vision.attention.head_count",
                                           "clip.vision.projection_dim",
                                           "clip.vision.patch_size",
                                           "clip.vision.spatial_merge_size",
                                           NULL,
                                           NULL,
                                           NULL};
enum { V_DEPTH, V_PATCH = 5, V_MERGE, V_TEMPORAL, V_CHANNELS, V_POSITIONS, V_INTS };

/* Preprocessing of images or videos before the encoder. */
struct processor {
    bool there[FLOATS_END], video;
    int64_t integer[INTS];
    double number[FLOATS_END];
    float mean[CHANNELS], std[CHANNELS];
    bool has_mean, has_std;
};

struct hf_vision {
    struct processor own, images, videos; /* settings of the file itself; the two objects of processor_config.json */
    bool has_own, has_vision;
    bool there[V_INTS];
    int64_t integer[V_INTS];
    bool added[DEPTH_MAX];  /* blocks whose output is added to a layer of the language model */
    bool tanh;              /* the activation function is gelu_pytorch_tanh */
    bool has_id[4];
    int64_t id[4];
};

struct hf_vision *hf_vision_new(struct mem *m) { return mem_alloc(m, sizeof(struct hf_vision)); }

/* --- preprocessors ---------------------------------------------------------------------------------------- */

static void refuse(struct json_reader *r, const char *what)
{
    hf_unsupported(r, "preprocessor", what, (struct bytes){NULL, 0});
}

static void read_size(struct processor *p, struct json_reader *r)
{
    struct bytes key;
    if (!json_open(r, JSON_OBJECT)) return;
    while (json_key(r, &key)) {
        int side = bytes_equal(key, "shortest_edge") ? LOW : bytes_equal(key, "longest_edge") ? HIGH : INTS;
        if (side == INTS || json_peek(r) != JSON_NUMBER) json_skip(r);
        else p->there[side] = json_integer(r, &p->integer[side]);
    }
}

static void read_colours(struct json_reader *r, float out[CHANNELS], bool *there)
{
    double value;
    int n = 0;
    if (!json_open(r, JSON_ARRAY)) return;
    for (; json_more(r) && json_float(r, &value); n++)
        if (n < CHANNELS) out[n] = (float)value;
    if (!r->status && n != CHANNELS) json_wrong(r, r->pos, "a number for each of three colours was expected");
    *there = !r->status;
}

/* Refuses values other than those that this engine implements. */
static void check_number(const struct processor *p, struct json_reader *r, int key)
{
    const int64_t wanted = key == MERGE_SIZE ? MERGE : key == TEMPORAL_SIZE ? TEMPORAL : key == RESAMPLE ? BICUBIC : -1;
    if (r->status) return;
    if (key < INTS && wanted >= 0 && p->integer[key] != wanted)
        refuse(r, key == RESAMPLE ? "Only bicubic resampling is supported"
                                  : "Only visual tokens of 2 x 2 patches of 2 frames are supported");
    if (key == RESCALE && fabs(p->number[RESCALE] * 255 - 1) > 1e-6)
        refuse(r, "Only pixel values divided by 255 are supported");
}

static void read_processor_key(struct processor *p, struct json_reader *r, int key)
{
    bool done = true;
    if (hf_null(r)) return;
    if (key == MIN_FRAMES || key == MAX_FRAMES || key == FPS || key == VIDEO_TYPE) p->video = true;
    if (key < INTS) p->there[key] = json_integer(r, &p->integer[key]);
    else if (key < FLOATS_END) p->there[key] = json_float(r, &p->number[key]);
    else if (key < TRUTHS_END) json_truth(r, &done);
    else if (key == SIZE) read_size(p, r);
    else if (key == MEAN) read_colours(r, p->mean, &p->has_mean);
    else if (key == STD) read_colours(r, p->std, &p->has_std);
    else json_skip(r);
    if (key < FLOATS_END) check_number(p, r, key);
    if (!done) refuse(r, "Images that are not resized, rescaled, normalised and made RGB are not supported");
}

static void read_processor(struct processor *p, struct json_reader *r)
{
    struct bytes name;
    if (!json_open(r, JSON_OBJECT)) return;
    while (json_key(r, &name)) {
        int key = 0;
        while (key < OUTER && !bytes_equal(name, keys[key])) key++;
        if (key < OUTER) read_processor_key(p, r, key);
        else json_skip(r);
    }
}

/* --- the encoder ------------------------------------------------------------------------------------------ */

static void read_added(struct hf_vision *v, struct json_reader *r)
{
    int64_t block, last = -1;
    if (json_peek(r) != JSON_ARRAY || !json_open(r, JSON_ARRAY)) return;
    while (json_more(r) && json_integer(r, &block)) {
        if (block <= last || block >= DEPTH_MAX)
            json_wrong(r, r->pos, "deepstack_visual_indexes must ascend, below 256");
        else v->added[block] = true;
        last = block;
    }
}

/* Tolerates any types, because configurations of other models are refused later by their names. */
static void read_vision_key(struct hf_vision *v, struct json_reader *r, struct bytes name)
{
    struct bytes text;
    int key = 0;
    while (key < V_INTS && !bytes_equal(name, vision_keys[key])) key++;
    if (key < V_INTS && json_peek(r) == JSON_NUMBER) v->there[key] = json_integer(r, &v->integer[key]);
    else if (bytes_equal(name, "deepstack_visual_indexes") && json_peek(r) == JSON_ARRAY) read_added(v, r);
    else if (bytes_equal(name, "hidden_act") && json_peek(r) == JSON_STRING)
        v->tanh = json_string_value(r, &text) && bytes_equal(text, "gelu_pytorch_tanh");
    else json_skip(r);
}

static void read_vision(struct hf_vision *v, struct json_reader *r)
{
    struct bytes name;
    v->has_vision = v->tanh = json_open(r, JSON_OBJECT);
    while (json_key(r, &name)) read_vision_key(v, r, name);
}

static void read_key(void *state, struct json_reader *r, int key)
{
    struct hf_vision *v = state;
    if (key < OUTER) {
        v->has_own = true;
        read_processor_key(&v->own, r, key);
        return;
    }
    if (hf_null(r)) return;
    if (key == IMAGES) read_processor(&v->images, r);
    else if (key == VIDEOS) read_processor(&v->videos, r);
    else if (key == VISION) read_vision(v, r);
    else v->has_id[key - IDS] = json_integer(r, &v->id[key - IDS]);
}

/* --- metadata --------------------------------------------------------------------------------------------- */

struct writer {
    struct checkpoint *model;
    bool counts; /* replaces values of other files */
    struct error *err;
    int status;
};

static struct bytes text_of(const char *text) { return (struct bytes){(const uint8_t *)text, strlen(text)}; }

/* Whether a key should be written. If this writer takes precedence, removes an earlier value. */
static bool is_free(struct writer *w, const char *key)
{
    if (w->status) return false;
    struct meta *m = ck_seek(w->model, text_of(key));
    if (m && w->counts) *m = w->model->metas[--w->model->n_metas];
    return !m || w->counts;
}

static void write_int(struct writer *w, const char *key, bool there, int64_t value)
{
    if (there && is_free(w, key)) w->status = ck_put_int(w->model, key, value, w->err);
}

/* config.json and the preprocessor files must agree on the patch size, in any order of reading. */
static void write_patch(struct writer *w, bool there, int64_t patch)
{
    static const char key[] = "clip.vision.patch_size";
    struct meta *m = ck_seek(w->model, text_of(key));
    int64_t before = patch;
    if (w->status || !there) return;
    if (m) memcpy(&before, ck_view(w->model, m->value).data, sizeof before);
    else w->status = ck_put_int(w->model, key, patch, w->err);
    if (before != patch)
        w->status = fail(w->err, ERR_INCONSISTENT, "value", 0,
                         "Patches of images are %lld pixels wide in one file of the folder, %lld in another.",
                         (long long)before, (long long)patch);
}

static void write_colours(struct writer *w, const char *key, bool there, const float *values)
{
    struct bytes data = {(const uint8_t *)values, CHANNELS * sizeof *values};
    if (there && is_free(w, key)) w->status = ck_put_array(w->model, key, META_F32, data, CHANNELS, w->err);
}

static void write_processor(struct writer *w, const struct processor *p, bool video)
{
    write_patch(w, p->there[PATCH], p->integer[PATCH]);
    write_int(w, video ? "clip.vision.video_min_pixels" : "clip.vision.image_min_pixels", p->there[LOW],
              p->integer[LOW]);
    write_int(w, video ? "clip.vision.video_max_pixels" : "clip.vision.image_max_pixels", p->there[HIGH],
              p->integer[HIGH]);
    write_colours(w, video ? "clip.vision.video_mean" : "clip.vision.image_mean", p->has_mean, p->mean);
    write_colours(w, video ? "clip.vision.video_std" : "clip.vision.image_std", p->has_std, p->std);
    if (!video) return;
    write_int(w, "clip.vision.video_min_frames", p->there[MIN_FRAMES], p->integer[MIN_FRAMES]);
    write_int(w, "clip.vision.video_max_frames", p->there[MAX_FRAMES], p->integer[MAX_FRAMES]);
    if (p->there[FPS] && is_free(w, "clip.vision.video_fps"))
        w->status = ck_put_float(w->model, "clip.vision.video_fps", p->number[FPS], w->err);
}

static int fail_value(struct error *err, const char *what, int64_t value)
{
    return fail(err, ERR_INCONSISTENT, "value", 0, "config.json gives the vision encoder %lld %s, which is impossible.",
                (long long)value, what);
}

/* The table of positions must be a square. */
static int write_side(struct writer *w, int64_t positions, int64_t patch)
{
    int64_t side = positions < 1 << 24 ? (int64_t)sqrt((double)positions) : 0;
    if (side == 0 || side * side != positions || patch > 1 << 16) return fail_value(w->err, "positions", positions);
    return ck_put_int(w->model, "clip.vision.image_size", side * patch, w->err);
}

static int write_added(struct writer *w, const struct hf_vision *v)
{
    int64_t depth = v->integer[V_DEPTH];
    if (depth < 1 || depth > DEPTH_MAX) return fail_value(w->err, "blocks", depth);
    for (int i = (int)depth; i < DEPTH_MAX; i++)
        if (v->added[i])
            return fail(w->err, ERR_INCONSISTENT, "value", 0,
                        "deepstack_visual_indexes names block %d, but there are only %d.", i, (int)depth);
    int status = ck_put_array(w->model, "clip.vision.is_deepstack_layers", META_BOOL,
                              (struct bytes){(const uint8_t *)v->added, (size_t)depth}, (uint64_t)depth, w->err);
    return status ? status : ck_put_bool(w->model, "clip.vision.deepstack_by_place", true, w->err);
}

/* Value of a number; `value`, which is transformers' default, if the file does not have it. */
static int64_t or_default(const struct hf_vision *v, int key, int64_t value)
{
    return v->there[key] ? v->integer[key] : value;
}

static void write_encoder(struct writer *w, const struct hf_vision *v)
{
    const int64_t patch = or_default(v, V_PATCH, 16);
    bool ours = or_default(v, V_TEMPORAL, TEMPORAL) == TEMPORAL && or_default(v, V_CHANNELS, CHANNELS) == CHANNELS;
    if (!w->status) w->status = ck_put_bool(w->model, "clip.has_vision_encoder", true, w->err);
    if (!w->status)
        w->status = ck_put_text(w->model, "clip.projector_type",
                                text_of(ours ? "qwen3vl_merger" : "other frames or colours"), w->err);
    if (!w->status) w->status = ck_put_bool(w->model, "clip.use_gelu", v->tanh, w->err);
    if (!w->status) w->status = ck_put_float(w->model, "clip.vision.attention.layer_norm_epsilon", 1e-6, w->err);
    for (int i = 0; i < V_INTS; i++)
        if (vision_names[i] && i != V_PATCH) write_int(w, vision_names[i], v->there[i], v->integer[i]);
    write_patch(w, true, patch);
    if (!w->status && v->there[V_POSITIONS]) w->status = write_side(w, v->integer[V_POSITIONS], patch);
    if (!w->status && v->there[V_DEPTH]) w->status = write_added(w, v);
}

static int done(void *state, struct checkpoint *model, struct error *err)
{
    static const char *const ids[] = {"config.image_token_id", "config.video_token_id", "config.vision_start_token_id",
                                      "config.vision_end_token_id"};
    struct hf_vision *v = state;
    struct writer w = {.model = model, .err = err}, both = {.model = model, .err = err, .counts = true};
    for (int i = 0; i < 4; i++)
        if (v->has_id[i]) write_int(&w, ids[i], true, v->id[i]);
    if (v->has_vision) write_encoder(&w, v);
    if (v->has_own) write_processor(&w, &v->own, v->own.video);
    both.status = w.status;
    write_processor(&both, &v->images, false);
    write_processor(&both, &v->videos, true);
    return both.status;
}

const struct hf_reader hf_vision = {keys, read_key, done};
