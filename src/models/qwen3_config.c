/* SPDX-License-Identifier: MIT
 *
 * Reads the metadata of Qwen3 and its relatives, and refuses by name what other models do and these do not.
 */
#include "models/config.h"
#include "models/qwen3.h"

#include "load/metadata.h"

/* Refuses the gating of other models with experts. */
static int check_gating(const struct keys *k, struct error *err)
{
    enum { SOFTMAX = 1 };
    const int64_t softmax = SOFTMAX, none = 0;
    const double one = 1;
    int gating, shared;
    double scale;
    int status = config_int(k, "expert_gating_func", 0, INT32_MAX, &softmax, &gating, err);
    if (!status) status = config_int(k, "expert_shared_count", 0, INT32_MAX, &none, &shared, err);
    if (!status) status = config_float(k, "expert_weights_scale", -1e9, 1e9, &one, &scale, err);
    if (status) return status;
    if (gating == SOFTMAX && shared == 0 && (scale == 1 || scale == 0)) return OK;
    return fail(
        err, ERR_UNSUPPORTED, "experts", 0,
        "The experts are chosen by gating function %d with scale %g, and %d are shared; Qwen3 has softmax, no scale and none shared.",
        gating, scale, shared);
}

/* Limits the product of experts and columns, which is counted in int32. */
static int check_expert_sizes(const struct model_config *c, struct error *err)
{
    int64_t widest = max_int(c->dim, c->expert_dim);
    if (c->expert_dim % 8 || c->dim % 8)
        return fail(err, ERR_INCONSISTENT, "value", 0, "Experts of %d x %d; both must be multiples of 8.",
                    c->expert_dim, c->dim);
    if (c->n_experts * widest <= INT32_MAX) return OK;
    return fail(err, ERR_INCONSISTENT, "value", 0, "%d experts of %lld columns are too many.", c->n_experts,
                (long long)widest);
}

static int read_experts(const struct keys *k, struct model_config *c, struct error *err)
{
    enum { EXPERTS_MAX = 1024 }; /* Qwen3 has 128 */
    char key[KEY_SIZE];
    int status = config_int(k, "expert_count", 1, EXPERTS_MAX, NULL, &c->n_experts, err);
    if (!status) status = config_int(k, "expert_used_count", 1, c->n_experts, NULL, &c->n_used, err);
    if (!status) status = config_int(k, "expert_feed_forward_length", 1, 1 << 22, NULL, &c->expert_dim, err);
    if (!status)
        status = meta_bool(k->ck, model_key(key, k->prefix, "expert_weights_norm"), true, &c->renormalise, err);
    if (!status) status = check_gating(k, err);
    if (status) return status;
    return check_expert_sizes(c, err);
}

/* Other programs' models with experts may have the name of a dense architecture. */
static int refuse_experts(const struct keys *k, struct error *err)
{
    const int64_t none = 0;
    int n, status = config_int(k, "expert_count", 0, INT32_MAX, &none, &n, err);
    if (status || n == 0) return status;
    return fail(err, ERR_UNSUPPORTED, "experts", 0,
                "The model has %d experts; this version runs models of the architecture %s without experts only.", n,
                k->prefix);
}

/* The keys of a model with vision. Its positions have sections, and its experts' shares always sum up to 1. */
static int read_projector(const struct keys *k, struct model_config *c, struct error *err)
{
    const int64_t unsaid = -1;
    char key[KEY_SIZE];
    int status = config_int(k, "n_deepstack_layers", 0, INT32_MAX, &unsaid, &c->n_added, err);
    c->sees = c->renormalise = true;
    if (!status && !meta_find(k->ck, model_key(key, k->prefix, "rope.dimension_sections")))
        return fail(err, ERR_FORMAT, "missing", 0, "The metadata key %s is missing.", key);
    if (status || c->n_added <= c->n_layers) return status;
    return fail(err, ERR_INCONSISTENT, "deepstack", 0, "Images are added after %d layers, but the model has %d.",
                c->n_added, c->n_layers);
}

int qwen3_config(const struct architecture *architecture, const struct checkpoint *ck, const char *prefix,
                 struct model_config *c, struct rope *rope, struct error *err)
{
    const bool moe = architecture->experts;
    const int64_t n_tensors = (int64_t)ck_tensors_in_all(ck), unset = 0;
    struct keys keys = {.ck = ck, .prefix = prefix, .theta = &architecture->theta,
                        .feed_forward = moe ? &unset : NULL}, *k = &keys;
    int status = config_int(k, "block_count", 1, n_tensors, NULL, &c->n_layers, err);
    k->n_blocks = c->n_layers;
    if (!status) status = config_decoder(k, c, rope, err);
    if (!status) status = moe ? read_experts(k, c, err) : refuse_experts(k, err);
    if (!status && architecture->sees) status = read_projector(k, c, err);
    return status;
}
