/* SPDX-License-Identifier: MIT
 *
 * What all models share: finding the architecture, and calling the code of its family.
 */
#include "models/model.h"

#include "base/reader.h"
#include "load/metadata.h"

#include <stdio.h>
#include <string.h>

#define LAYERS "blk."

/* Refuses files that are not a language model, though their architecture may say qwen3. */
static int check_kind(const struct checkpoint *ck, struct error *err)
{
    struct bytes kind, name;
    if (meta_text(ck, "general.type", false, &kind, NULL) || meta_text(ck, "general.architecture", false, &name, NULL))
        return OK;
    if (bytes_equal(kind, "adapter"))
        return fail(err, ERR_UNSUPPORTED, "lora", 0,
                    "This is an adapter (LoRA), not a model; merge it into its model first.");
    if (bytes_equal(kind, "imatrix"))
        return fail(err, ERR_UNSUPPORTED, "imatrix", 0,
                    "This is an importance matrix, not a model; `quern quantize` takes it as --imatrix.");
    if (bytes_equal(kind, "mmproj") || bytes_equal(name, "clip"))
        return fail(err, ERR_UNSUPPORTED, "projector", 0,
                    "This is the vision part of a model. Load the language model and give this file as `vision`.");
    return OK;
}

/* Programs from before Qwen3 wrote an older name. The attention tells the model: Qwen3 has norms of queries and keys. */
static bool is_older(const struct checkpoint *ck, struct bytes name, const char *older)
{
    return bytes_equal(name, older) && ck_find(ck, "blk.0.attn_q_norm.weight");
}

static int refuse_architecture(struct bytes name, struct error *err)
{
    char text[QUOTED], known[192];
    size_t n = 0;
    for (const struct architecture *a = architectures; a->name && n < sizeof known; a++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", a->name);
    return fail(err, ERR_UNSUPPORTED, "architecture", 0, "The file's architecture is \"%.64s\"; this version runs %s.",
                quoted(name, text), known);
}

/* A file without a name gets the architecture whose keys it has. */
static int find_architecture(const struct checkpoint *ck, const struct architecture **out, const char **prefix,
                             struct error *err)
{
    struct bytes name;
    char key[KEY_SIZE];
    int status = meta_text(ck, "general.architecture", false, &name, err);
    if (status) return status;
    for (const struct architecture *a = architectures; a->name; a++) {
        *out = a;
        *prefix = a->name;
        if (name.data ? bytes_equal(name, a->name) : meta_find(ck, model_key(key, a->name, "block_count")) != NULL)
            return OK;
        for (const char *const *older = a->older; *older; older++)
            if (is_older(ck, name, *prefix = *older)) return OK;
    }
    if (!name.data) return fail(err, ERR_FORMAT, "missing", 0, "The metadata key general.architecture is missing.");
    return refuse_architecture(name, err);
}

/* Refuses metadata that would change all results and that nothing here implements. */
static int check_promises(const struct model *m, const struct checkpoint *ck, struct error *err)
{
    static const char rotated[] = "prism.hadamard.";
    char key[KEY_SIZE];
    bool causal;
    for (size_t i = 0; i < ck->n_metas; i++) {
        struct bytes name = ck_view(ck, ck->metas[i].key);
        if (name.size >= sizeof rotated - 1 && !memcmp(name.data, rotated, sizeof rotated - 1))
            return fail(
                err, ERR_UNSUPPORTED, "rotation", ck->metas[i].key.at,
                "The model's weights are rotated (metadata keys %s*), which this version does not undo; take another copy of the model.",
                rotated);
    }
    int status = meta_bool(ck, model_key(key, m->prefix, "attention.causal"), true, &causal, err);
    if (status || causal) return status;
    return fail(
        err, ERR_UNSUPPORTED, "causal", 0,
        "In this model every token also attends to later tokens (attention is not causal); this version runs causal models only.");
}

/* Reads the kind of pooling, as GGUF's number: from a GGUF file itself, or from the files beside a folder's weights. */
static int read_pooling(struct model *m, const struct checkpoint *ck, struct error *err)
{
    const int64_t unsaid = POOLING_UNSAID;
    char key[KEY_SIZE];
    int64_t pooling = POOLING_UNSAID, beside;
    int status = meta_int(ck, "vectors.pooling", POOLING_UNSAID, POOLING_RANK, &unsaid, &beside, err);
    if (!status)
        status = meta_int(ck, model_key(key, m->prefix, "pooling_type"), POOLING_UNSAID, POOLING_RANK, &beside,
                          &pooling, err);
    m->config.pooling = (enum model_pooling)pooling;
    return status;
}

/* AutoGPTQ saves a bias beside each matrix that it quantises: zeros, unless the architecture has one. */
static void read_quantizer(struct model *m, const struct checkpoint *ck)
{
    struct bytes by;
    meta_text(ck, "general.quantized_by", false, &by, NULL);
    m->bind.zeros = bytes_equal(by, "gptq") || bytes_equal(by, "gptq_v2");
}

int model_open(struct mem *mem, struct backend *be, const struct checkpoint *ck, struct model **out, struct error *err)
{
    const struct architecture *architecture = NULL;
    const char *prefix = NULL;
    *out = NULL;
    int status = check_kind(ck, err);
    if (!status) status = find_architecture(ck, &architecture, &prefix, err);
    if (!status) status = families[architecture->family]->open(architecture, mem, be, ck, prefix, out, err);
    if (!status) status = check_promises(*out, ck, err);
    if (!status) read_quantizer(*out, ck);
    return status ? status : read_pooling(*out, ck, err);
}

void model_free(struct model *m)
{
    if (!m) return;
    if (m->bind.be) m->bind.be->ops->weight_free(m->bind.be, m->classes);
    binder_free(&m->bind);
    m->ops->free(m);
}

/* The matrix of a ranking model is in one of the files, or in none. A `trunk`, a model saved without its head, is a
 * model for vectors. */
static int bind_vectors(struct model *m, struct checkpoint *ck, struct error *err)
{
    const char *name = "cls.output.weight";
    if (ck->trunk && m->config.pooling == POOLING_UNSAID) m->config.pooling = POOLING_LAST;
    if (!ck_find(ck, name)) return OK;
    m->config.n_classes = MODEL_CLASSES;
    return bind_matrix_as_stored(&m->bind, ck, name, 0, m->config.dim, MODEL_CLASSES, &m->classes, err);
}

/* Beginnings of the names of other models' tensors, including models for vectors; ignoring them would change the
 * results. In layers, any tensor that is not bound counts. */
static const struct foreign {
    const char *begin, *what;
} foreign[] = {
    {LAYERS, "a part of a layer that this kind of model does not have"},
    {"dense_", "a projection after the model"},
    {"cls.", "a part of a classification head"},
    {"output.bias", "a bias of the output head"},
    {"output_norm.bias", "a bias of the last norm"},
    {"token_embd.bias", "a bias of the embedding"},
    {"token_embd_norm.", "a norm of the embedding"},
    {"token_types.", "an embedding of token types"},
    {"position_embd.", "an embedding of positions"},
    {"rope_factors_", "a table of RoPE's frequencies"},
};

static bool ends_in(struct bytes name, const char *end)
{
    size_t n = strlen(end);
    return name.size >= n && !memcmp(name.data + name.size - n, end, n);
}

/* Tensors of a layer that change nothing: the angles of positions, which some programs store although they can always
 * be computed, and scales for activations, which stand beside the weights of NVFP4; here every row of activations gets
 * scales of its own. */
static bool is_idle(struct bytes name)
{
    static const char angles[] = "attn_rot_embd.";
    return ends_in(name, ".input_scale") ||
           (name.size >= sizeof angles - 1 && !memcmp(name.data, angles, sizeof angles - 1));
}

/* Refuses tensors that the computation would leave out; other unbound tensors are ignored, and so are blocks behind the
 * layers. */
static int check_unbound(struct binder *b, struct checkpoint *ck, int n_layers, struct error *err)
{
    char name[QUOTED];
    struct bytes rest;
    int status = OK;
    for (const struct foreign *f = foreign; f < foreign + sizeof foreign / sizeof *foreign; f++)
        for (size_t at = ck_first(ck, f->begin); !status && ck_rest(ck, at, f->begin, &rest); at++) {
            struct tensor *t = &ck->tensors[ck->by_name[at]];
            int layer = f == foreign ? bind_layer_of(&rest) : 0;
            if (t->put || layer < 0 || layer >= n_layers || (f == foreign && is_idle(rest))) continue;
            quoted(ck_view(ck, t->name), name);
            if (f == foreign && b->zeros && ends_in(rest, ".bias")) status = bind_zeros(b, t, name, err);
            else
                status = fail(
                    err, ERR_UNSUPPORTED, "tensor", t->name.at,
                    "The tensor %.64s is %s, which this version does not compute; results without it would be wrong.",
                    name, f->what);
        }
    return status;
}

int model_bind(struct model *m, struct checkpoint *ck, bool more, struct error *err)
{
    int status = bind_check_layers(ck, LAYERS, m->config.n_layers + m->config.n_nextn, err);
    m->bind.more = more;
    if (!status) status = bind_vectors(m, ck, err);
    if (!status) status = m->ops->bind(m, ck, err);
    return status ? status : check_unbound(&m->bind, ck, m->config.n_layers, err);
}

bool model_of_experts(const struct tensor *t) { return bind_of_experts(t); }
void model_quantize(struct model *m, struct checkpoint *ck, struct model_types types)
{
    binder_quantize(&m->bind, ck, types);
}
uint64_t model_take_cost(const struct model *m, const struct checkpoint *ck) { return binder_take_cost(&m->bind, ck); }
int model_take(struct model *m, struct checkpoint *ck, struct error *err) { return binder_take(&m->bind, ck, err); }
int model_check(const struct model *m, struct error *err) { return binder_check(&m->bind, err); }
void model_each(const struct model *m, model_part *fn, void *context) { m->ops->each(m, fn, context); }
struct cache_shape model_cache(const struct model *m, int n_pages, int n_slots, enum kv_type type)
{
    return m->ops->cache(m, n_pages, n_slots, type);
}


uint64_t model_values(const struct model *m, int max_rows, int max_out) { return m->ops->values(m, max_rows, max_out); }
uint64_t model_reserve_cost(const struct model *m, int max_rows) { return m->ops->reserve_cost(m, max_rows); }
int model_reserve(struct model *m, int max_rows, int max_out) { return m->ops->reserve(m, max_rows, max_out); }

int model_max_cols(const struct model *m)
{
    const struct model_config *c = &m->config;
    int experts = c->n_used * max_int(c->dim, c->expert_dim);
    int mixed = max_int(c->n_heads * c->head_dim, c->value_dim);
    return max_int(max_int(max_int(c->drafts ? 2 * c->dim : c->dim, c->ffn_dim), mixed), experts);
}

void model_begin(struct model *m, const struct batch *b) { m->ops->begin(m, b); }
void model_layer(struct model *m, const struct batch *b, int layer) { m->ops->layer(m, b, layer); }

/* Outputs that one part computes: as many multiplications as 8,192 outputs of 16 rows and 1,024 columns. */
static int part_outputs(const struct model *m, const struct batch *b)
{
    enum { MULTIPLE = 64 }; /* of struct product */
    int64_t n = ((int64_t)1 << 27) / ((int64_t)max_int(b->n_logits, 1) * m->config.dim) / MULTIPLE * MULTIPLE;
    return n < MULTIPLE ? MULTIPLE : n < m->config.vocab_size ? (int)n : m->config.vocab_size;
}

int model_parts(const struct model *m, const struct batch *b)
{
    int outputs = part_outputs(m, b);
    return b->n_logits ? (m->config.vocab_size + outputs - 1) / outputs : 1;
}

void model_head(struct model *m, const struct batch *b, int part)
{
    int outputs = part_outputs(m, b), first = part * outputs;
    m->ops->head(m, b, first, min_int(outputs, m->config.vocab_size - first));
}

void model_draft(struct model *m, const struct batch *b, int32_t *drafts) { m->ops->draft(m, b, drafts); }

struct outputs model_end(struct model *m, const struct batch *b)
{
    struct backend *be = m->bind.be;
    struct outputs made = m->ops->end(m);
    uint64_t logits = (uint64_t)b->n_logits, rest = (uint64_t)(b->n_out - b->n_logits), dim = (uint64_t)m->config.dim;
    struct result results[2];
    int n = 0;
    made.hidden = handle_at(made.hidden, (size_t)(logits * dim));
    if (logits) results[n++] = (struct result){made.logits, logits * (uint64_t)m->config.vocab_size};
    if (rest) results[n++] = (struct result){made.hidden, rest * dim};
    be->ops->submit(be, results, n);
    return made;
}

bool model_output_row(struct model *m, int32_t id, float *out)
{
    struct backend *be = m->bind.be;
    const struct weight *w = id < 0 ? m->classes : m->ops->output(m);
    const int32_t row = id < 0 ? -1 - id : id;
    const struct handle y = m->ops->end(m).hidden;
    if (be->late || (id >= 0 && m->config.headless) || row >= (id < 0 ? m->config.n_classes : m->config.vocab_size))
        return false;
    backend_run(be, &(struct op){OP_EMBED, 1, m->config.dim, .y = y, .w = w, .ids = &row}, 1);
    memcpy(out, be->ops->result(be, y), (size_t)m->config.dim * sizeof *out);
    return true;
}

const char *model_key(char out[KEY_SIZE], const char *prefix, const char *name)
{
    snprintf(out, KEY_SIZE, "%s.%s", prefix, name);
    return out;
}
