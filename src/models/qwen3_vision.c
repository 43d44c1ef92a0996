/* SPDX-License-Identifier: MIT
 *
 * The image encoder of Qwen3-VL and Qwen3.5: its configuration and its weights, from a projector's file or a folder.
 *
 * A plain transformer with learned positions (an interpolated table), LayerNorm and biases. After its last layer, and
 * in Qwen3-VL after some earlier ones, mergers turn 2 x 2 patches into a row of the language model. The list of binds
 * defines the architecture. Facts and shapes: MODEL.md.
 */
#include "models/qwen3_vision.h"

#include "base/num.h"
#include "base/reader.h"
#include "image/image.h"
#include "load/metadata.h"

#include <stdio.h>
#include <string.h>

/* --- configuration ------------------------------------------------------------------------------------- */

bool vision_there(const struct checkpoint *ck)
{
    struct bytes name;
    if (meta_find(ck, "clip.has_vision_encoder")) return true;
    return !meta_text(ck, "general.architecture", false, &name, NULL) && bytes_equal(name, "clip");
}

static int fail_kind(struct error *err, const char *what)
{
    return fail(err, ERR_UNSUPPORTED, "projector-type", 0,
                "The projector is of another kind (%s); this version runs qwen3vl_merger.", what);
}

/* Refuses other encoders. */
static int check_kind(const struct checkpoint *ck, struct error *err)
{
    const char *key = meta_find(ck, "clip.projector_type") ? "clip.projector_type" : "clip.vision.projector_type";
    struct bytes type;
    char text[QUOTED];
    bool sees, hears, gelu, silu;
    if (!vision_there(ck))
        return fail(
            err, ERR_UNSUPPORTED, "projector", 0,
            "This is not a projector. Give the vision part of the model as `vision`; the names of such files usually begin with mmproj.");
    int status = meta_bool(ck, "clip.has_vision_encoder", false, &sees, err);
    if (!status) status = meta_bool(ck, "clip.has_audio_encoder", false, &hears, err);
    if (!status) status = meta_text(ck, key, sees, &type, err);
    if (!status) status = meta_bool(ck, "clip.use_gelu", false, &gelu, err);
    if (!status) status = meta_bool(ck, "clip.use_silu", false, &silu, err);
    if (status) return status;
    if (!sees) return fail_kind(err, "without an image encoder");
    if (hears) return fail_kind(err, "with an audio encoder");
    if (!bytes_equal(type, "qwen3vl_merger"))
        return fail(err, ERR_UNSUPPORTED, "projector-type", 0,
                    "The projector's type is \"%.64s\"; this version runs qwen3vl_merger.", quoted(type, text));
    if (meta_find(ck, "clip.vision.n_wa_pattern")) return fail_kind(err, "with window attention");
    return gelu && !silu ? OK : fail_kind(err, "its activation is not gelu");
}

static int config_int(const struct checkpoint *ck, const char *name, int lo, int hi, const int64_t *missing, int *out,
                      struct error *err)
{
    char key[KEY_SIZE];
    int64_t value;
    int status = meta_int(ck, model_key(key, "clip.vision", name), lo, hi, missing, &value, err);
    if (!status) *out = (int)value;
    return status;
}

static int config_colours(const struct checkpoint *ck, const char *name, const float *missing, float out[CHANNELS],
                          struct error *err)
{
    char key[KEY_SIZE];
    struct bytes list;
    uint64_t n;
    int status = meta_array(ck, model_key(key, "clip.vision", name), META_F32, false, &list, &n, err);
    for (int i = 0; !status && i < CHANNELS; i++)
        out[i] = list.data && n == CHANNELS ? load_f32(list.data + 4 * i) : missing[i];
    if (!status && list.data && n != CHANNELS)
        return fail(err, ERR_INCONSISTENT, "value", 0, "The metadata key %s has %llu values, not 3.", key,
                    (unsigned long long)n);
    return status;
}

static int read_colours(const struct checkpoint *ck, struct vision_config *c, struct error *err)
{
    static const float half[CHANNELS] = {0.5f, 0.5f, 0.5f};
    float video_mean[CHANNELS], video_std[CHANNELS];
    int status = config_colours(ck, "image_mean", half, c->mean, err);
    if (!status) status = config_colours(ck, "image_std", half, c->std, err);
    if (!status) status = config_colours(ck, "video_mean", c->mean, video_mean, err);
    if (!status) status = config_colours(ck, "video_std", c->std, video_std, err);
    for (int i = 0; !status && i < CHANNELS; i++) {
        if (!(c->std[i] > 0 && c->std[i] < 1e6f && c->mean[i] > -1e6f && c->mean[i] < 1e6f))
            return fail(err, ERR_INCONSISTENT, "value", 0,
                        "Pixels cannot be scaled by a mean of %g and a deviation of %g.", (double)c->mean[i],
                        (double)c->std[i]);
        if (video_mean[i] != c->mean[i] || video_std[i] != c->std[i])
            return fail(err, ERR_UNSUPPORTED, "preprocessor", 0,
                        "The pixels of videos are scaled differently from those of images.");
    }
    return status;
}

static int read_limits(const struct checkpoint *ck, const char *low_name, const char *high_name, double *low,
                       double *high, struct error *err)
{
    char key[KEY_SIZE];
    int status = meta_float(ck, model_key(key, "clip.vision", low_name), 1, 1e15, low, low, err);
    if (!status) status = meta_float(ck, model_key(key, "clip.vision", high_name), 1, 1e15, high, high, err);
    if (status || *low <= *high) return status;
    return fail(err, ERR_INCONSISTENT, "value", 0, "Images must have at least %.0f pixels, but at most %.0f.", *low,
                *high);
}

/* Reads after which layers something is added. */
static int read_added(const struct checkpoint *ck, struct vision *v, struct error *err)
{
    struct vision_config *c = &v->config;
    struct bytes list;
    uint64_t n;
    int status = meta_array(ck, "clip.vision.is_deepstack_layers", META_BOOL, false, &list, &n, err);
    if (!status) status = meta_bool(ck, "clip.vision.deepstack_by_place", false, &v->by_place, err);
    if (status || !list.data) return status;
    if (n != (uint64_t)c->n_layers)
        return fail(err, ERR_INCONSISTENT, "value", 0, "clip.vision.is_deepstack_layers has %llu values for %d layers.",
                    (unsigned long long)n, c->n_layers);
    for (int l = 0; l < c->n_layers; l++)
        if (list.data[l]) c->added_after[c->n_added++] = l;
    return OK;
}

/* The size of the position table: from its tensor; if another file has it, from the metadata. */
static int read_side(const struct checkpoint *ck, struct vision_config *c, struct error *err)
{
    enum { SIDE_MAX = 1024 };
    const struct tensor *t = ck_find(ck, "v.position_embd.weight");
    const int64_t unsaid = 0;
    int size, status = config_int(ck, "image_size", 0, SIDE_MAX * 32, t ? &unsaid : NULL, &size, err);
    if (status) return status;
    c->side = size / c->patch;
    if (t && c->side == 0)
        while (c->side < SIDE_MAX && (uint64_t)c->side * (uint64_t)c->side < t->rows) c->side++;
    if (size % c->patch == 0 && c->side > 0 && c->side <= SIDE_MAX &&
        (!t || (uint64_t)c->side * (uint64_t)c->side == t->rows))
        return OK;
    return fail(
        err, ERR_INCONSISTENT, "value", t ? t->name.at : 0,
        "The position table has %llu rows, which is not the square of its size in the metadata (%d pixels, %d a patch).",
        (unsigned long long)(t ? t->rows : 0), size, c->patch);
}

static int check_sizes(const struct vision_config *c, struct error *err)
{
    enum { HEAD_MAX = 1024 };
    if (c->dim % c->n_heads || c->dim / c->n_heads % 4)
        return fail(err, ERR_INCONSISTENT, "value", 0, "%d columns do not divide into %d heads of a multiple of 4.",
                    c->dim, c->n_heads);
    if (c->head_dim > HEAD_MAX || c->dim % 8)
        return fail(err, ERR_UNSUPPORTED, "value", 0,
                    "An encoder of %d columns with heads of %d is not supported in this version.", c->dim, c->head_dim);
    return OK;
}

static int read_config(const struct checkpoint *ck, struct vision *v, struct error *err)
{
    struct vision_config *c = &v->config;
    const int64_t two = 2;
    const double small = 1e-6;
    double eps;
    *c = (struct vision_config){.low = 65536, .high = 16777216, .video_low = 4096, .video_high = 25165824};
    int status = check_kind(ck, err);
    if (!status) status = config_int(ck, "block_count", 1, VISION_LAYERS, NULL, &c->n_layers, err);
    if (!status) status = config_int(ck, "embedding_length", 1, 16384, NULL, &c->dim, err);
    if (!status) status = config_int(ck, "feed_forward_length", 1, 65536, NULL, &c->ffn_dim, err);
    if (!status) status = config_int(ck, "attention.head_count", 1, 4096, NULL, &c->n_heads, err);
    if (!status) status = config_int(ck, "projection_dim", 1, 1 << 20, NULL, &c->out_dim, err);
    if (!status) status = config_int(ck, "patch_size", 8, 32, NULL, &c->patch, err);
    if (!status) status = config_int(ck, "spatial_merge_size", 1, INT32_MAX, &two, &c->merge, err);
    if (!status) status = meta_float(ck, "clip.vision.attention.layer_norm_epsilon", 1e-30, 1, &small, &eps, err);
    if (!status && c->merge != IMAGE_MERGE) status = fail_kind(err, "its tokens are not 2 x 2 patches");
    if (status) return status;
    c->eps = (float)eps;
    c->head_dim = c->dim / c->n_heads;
    status = check_sizes(c, err);
    if (!status) status = read_side(ck, c, err);
    if (!status) status = read_added(ck, v, err);
    if (!status) status = read_colours(ck, c, err);
    if (!status) status = read_limits(ck, "image_min_pixels", "image_max_pixels", &c->low, &c->high, err);
    if (!status) status = read_limits(ck, "video_min_pixels", "video_max_pixels", &c->video_low, &c->video_high, err);
    return status;
}

const struct vision_config *vision_config(const struct vision *v) { return &v->config; }

int vision_suits(const struct vision *v, int dim, int n_layers, int n_added, struct error *err)
{
    const struct vision_config *c = &v->config;
    if (c->out_dim != dim)
        return fail(err, ERR_INCONSISTENT, "projector-dim", 0, "This projector belongs to a model of width %d, not %d.",
                    c->out_dim, dim);
    if (c->n_added > n_layers)
        return fail(err, ERR_INCONSISTENT, "deepstack", 0, "This projector adds to %d layers, but the model has %d.",
                    c->n_added, n_layers);
    if (n_added >= 0 && c->n_added != n_added)
        return fail(err, ERR_INCONSISTENT, "deepstack", 0,
                    "This projector adds to %d layers, but the model expects %d.", c->n_added, n_added);
    return OK;
}

/* --- weights: the list of all in layers and mergers, for binding, telling and freeing --------------------------- */

/* One tensor: n matrices [rows, cols], or a vector [rows]. */
struct slot {
    const char *name; /* in a file; with a %d for the layer */
    int layer, cols, rows, n;
    struct weight **w;
    float **vector;   /* NULL: the slot is matrices */
};

struct visit {
    const struct vision *v;
    void (*see)(struct visit *visit, const struct slot *s);
    int layer;
    struct checkpoint *ck; /* for binding */
    struct binder *bind;
    struct error *err;
    int status;
    model_part *part;      /* for telling */
    void *context;
};

static void matrices(struct visit *t, const char *name, int cols, int rows, int n, struct weight **out)
{
    t->see(t, &(struct slot){name, t->layer, cols, rows, n, out, NULL});
}

static void vector(struct visit *t, const char *name, int n, float **out)
{
    t->see(t, &(struct slot){name, t->layer, 0, n, 0, NULL, out});
}

static void linear(struct visit *t, const char *name, int cols, int rows, struct linear *out)
{
    char full[64];
    snprintf(full, sizeof full, "%s.weight", name);
    matrices(t, full, cols, rows, 1, &out->w);
    snprintf(full, sizeof full, "%s.bias", name);
    vector(t, full, rows, &out->b);
}

static void norm(struct visit *t, const char *name, int n, struct norm *out)
{
    char full[64];
    snprintf(full, sizeof full, "%s.weight", name);
    vector(t, full, n, &out->w);
    snprintf(full, sizeof full, "%s.bias", name);
    vector(t, full, n, &out->b);
}

static void visit_layer(struct visit *t, struct vision_layer *w)
{
    int dim = t->v->config.dim, ffn = t->v->config.ffn_dim;
    norm(t, "v.blk.%d.ln1", dim, &w->ln1);
    matrices(t, "v.blk.%d.attn_qkv.weight", dim, dim, 3, w->qkv);
    vector(t, "v.blk.%d.attn_qkv.bias", 3 * dim, &w->qkv_bias);
    linear(t, "v.blk.%d.attn_out", dim, dim, &w->out);
    norm(t, "v.blk.%d.ln2", dim, &w->ln2);
    linear(t, "v.blk.%d.ffn_up", dim, ffn, &w->up);
    linear(t, "v.blk.%d.ffn_down", ffn, dim, &w->down);
}

static void visit_all(struct visit *t)
{
    const struct vision_config *c = &t->v->config;
    struct merger *m = t->v->mergers;
    int wide = JOINED * c->dim;
    for (t->layer = 0; t->layer < c->n_layers; t->layer++) visit_layer(t, &t->v->layers[t->layer]);
    for (int i = 0; i < c->n_added; i++, m++) {
        t->layer = t->v->by_place ? i : c->added_after[i];
        norm(t, "v.deepstack.%d.norm", wide, &m->norm);
        linear(t, "v.deepstack.%d.fc1", wide, wide, &m->fc1);
        linear(t, "v.deepstack.%d.fc2", wide, c->out_dim, &m->fc2);
    }
    norm(t, "v.post_ln", c->dim, &m->norm);
    linear(t, "mm.0", wide, wide, &m->fc1);
    linear(t, "mm.2", wide, c->out_dim, &m->fc2);
}

/* --- binding ------------------------------------------------------------------------------------------- */

/* Binds the weights before the layers. The patches' matrix is one tensor (in a folder), or one for each frame. */
static int bind_patches(struct vision *v, struct checkpoint *ck, struct error *err)
{
    static const char *const names[FRAMES] = {"v.patch_embd.weight", "v.patch_embd.weight.1"};
    const struct vision_config *c = &v->config;
    const struct tensor *t = ck_find(ck, names[0]);
    int pixels = vision_pixels(c), *n = &v->patch_tensors;
    if (*n == 0 && t) *n = t->cols * t->rows == (uint64_t)c->dim * (uint64_t)pixels ? 1 : FRAMES;
    int status = bind_strips(&v->bind, ck, names, *n ? *n : FRAMES, c->patch * c->patch, pixels, c->dim, &v->patches,
                             &v->patches_there, err);
    if (!status) status = bind_vector(&v->bind, ck, "v.patch_embd.bias", 0, c->dim, &v->patch_bias, err);
    if (!status)
        status = bind_table(&v->bind, ck, "v.position_embd.weight", c->dim, c->side * c->side, &v->positions, err);
    return status;
}

/* t->status keeps the first failure. */
static void bind_slot(struct visit *t, const struct slot *s)
{
    if (t->status) return;
    t->status = s->vector ? bind_vector(t->bind, t->ck, s->name, s->layer, s->rows, s->vector, t->err)
        : bind_matrices(t->bind, t->ck, s->name, s->layer, s->cols, s->rows, s->n, s->w, t->err);
}

/* Refuses weights of an addition that the metadata lacks, which would be ignored otherwise. */
static int check_added(const struct vision *v, const struct checkpoint *ck, struct error *err)
{
    const struct vision_config *c = &v->config;
    struct bytes rest;
    for (size_t at = ck_first(ck, "v.deepstack."); ck_rest(ck, at, "v.deepstack.", &rest); at++) {
        int n = 0, known = 0;
        for (size_t i = 0; i < rest.size && i < 6 && rest.data[i] >= '0' && rest.data[i] <= '9'; i++)
            n = n * 10 + rest.data[i] - '0';
        for (int i = 0; i < c->n_added; i++) known |= n == (v->by_place ? i : c->added_after[i]);
        if (known) continue;
        return fail(
            err, ERR_INCONSISTENT, "deepstack", ck->tensors[ck->by_name[at]].name.at,
            "There are weights of an addition %d (v.deepstack) that the metadata does not have; take another copy of the projector.",
            n);
    }
    return OK;
}

int vision_bind(struct vision *v, struct checkpoint *ck, bool more, struct error *err)
{
    struct visit t = {.v = v, .see = bind_slot, .ck = ck, .bind = &v->bind, .err = err};
    v->bind.more = more;
    t.status = bind_check_layers(ck, "v.blk.", v->config.n_layers, err);
    if (!t.status) t.status = check_added(v, ck, err);
    if (!t.status) t.status = bind_patches(v, ck, err);
    visit_all(&t);
    return t.status;
}

void vision_quantize(struct vision *v, struct checkpoint *ck, struct model_types types)
{
    binder_quantize(&v->bind, ck, types);
}
uint64_t vision_take_cost(const struct vision *v, const struct checkpoint *ck)
{
    return binder_take_cost(&v->bind, ck);
}
int vision_take(struct vision *v, struct checkpoint *ck, struct error *err) { return binder_take(&v->bind, ck, err); }

/* --- telling ------------------------------------------------------------------------------------------- */

static void tell_vector(struct visit *t, const float *v, int n)
{
    t->part(t->context, NULL, (struct bytes){(const uint8_t *)v, v ? (size_t)n * sizeof *v : 0});
}

static void tell_slot(struct visit *t, const struct slot *s)
{
    for (int i = 0; i < s->n; i++) t->part(t->context, s->w[i], (struct bytes){0});
    if (s->vector) tell_vector(t, *s->vector, s->rows);
}

void vision_each(const struct vision *v, model_part *fn, void *context)
{
    const struct vision_config *c = &v->config;
    struct visit t = {.v = v, .see = tell_slot, .part = fn, .context = context};
    const double numbers[] = {c->n_heads, c->patch,   c->side,   c->eps,    c->mean[0],
                              c->mean[1], c->mean[2], c->std[0], c->std[1], c->std[2]};
    fn(context, NULL, (struct bytes){(const uint8_t *)numbers, sizeof numbers});
    fn(context, NULL, (struct bytes){(const uint8_t *)c->added_after, (size_t)c->n_added * sizeof *c->added_after});
    fn(context, v->patches, (struct bytes){0});
    tell_vector(&t, v->patch_bias, c->dim);
    tell_vector(&t, v->positions, c->side * c->side * c->dim);
    visit_all(&t);
}

/* --- life ------------------------------------------------------------------------------------------------- */

static int take_lists(struct vision *v, struct error *err)
{
    const struct vision_config *c = &v->config;
    int quarter = c->head_dim / 4;
    v->layers = mem_array(v->bind.mem, (uint64_t)c->n_layers, sizeof *v->layers);
    v->mergers = mem_array(v->bind.mem, (uint64_t)c->n_added + 1, sizeof *v->mergers);
    v->frequency = mem_array(v->bind.mem, (uint64_t)quarter, sizeof *v->frequency);
    if (!v->layers || !v->mergers || !v->frequency)
        return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the image encoder.");
    for (int j = 0; j < quarter; j++) v->frequency[j] = num_exp64(-2.0 * j / (2 * quarter) * num_log64(10000));
    image_table(c->mean, c->std, v->table);
    return OK;
}

int vision_open(struct mem *mem, struct backend *be, const struct checkpoint *ck, struct vision **out,
                struct error *err)
{
    struct vision *v = mem_alloc(mem, sizeof *v);
    *out = NULL;
    if (!v) return fail(err, ERR_MEM_LOAD, "weights", 0, "Not enough memory for the image encoder.");
    v->bind = (struct binder){.mem = mem, .be = be};
    int status = read_config(ck, v, err);
    if (!status) status = take_lists(v, err);
    if (status) vision_free(v);
    else *out = v;
    return status;
}

static void free_slot(struct visit *t, const struct slot *s)
{
    const struct binder *b = &t->v->bind;
    for (int i = 0; i < s->n && b->be; i++) b->be->ops->weight_free(b->be, s->w[i]);
    if (s->vector) mem_free(b->mem, *s->vector);
}

void vision_free(struct vision *v)
{
    if (!v) return;
    struct visit t = {.v = v, .see = free_slot};
    if (v->layers && v->mergers) visit_all(&t);
    binder_free(&v->bind);
    matrices(&t, "", 0, 0, 1, &v->patches);
    void *parts[] = {v->patch_bias, v->positions, v->layers, v->mergers, v->frequency, v->cosine, v->ups, v};
    struct mem *mem = v->bind.mem;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) mem_free(mem, parts[i]);
}
