/* SPDX-License-Identifier: MIT
 *
 * Decides the type of each tensor, and sends rows through the quantisers.
 *
 * The files are checked by the engine's own code (intake.h). The list of weights of the model, or of a projector, is
 * bound over all headers together, without a backend; the rows of every bound tensor come here. A folder is converted
 * to its language model only, and its weights get the values and the order that GGUF files have (convert_values.h).
 */
#include "cli/convert.h"

#include "base/reader.h"
#include "cli/convert_keys.h"
#include "cli/convert_values.h"
#include "cli/imatrix.h"
#include "engine/intake.h"
#include "models/decoder.h"
#include "models/vision.h"
#include "weights/quantize.h"

#include <stdio.h>
#include <string.h>

enum { CHUNK = 4 << 20 }; /* bytes read at once */

/* --- which weights get which type -------------------------------------------------------------------------- */

/* The types of llama.cpp's own tool, so that each name means what people expect. */
struct recipe {
    const char *name;
    uint32_t file_type;            /* general.file_type */
    /* matrices; the output head (or the embedding that serves as one); values and down projections of some layers */
    const char *most, *head, *more;
};

static const struct recipe recipes[] = {
    {"q8_0", 7, "Q8_0", "Q8_0", "Q8_0"},
    {"q4_0", 2, "Q4_0", "Q6_K", "Q4_0"},
    {"q4_k", 15, "Q4_K", "Q6_K", "Q6_K"}, /* known as Q4_K_M */
    {"q5_k", 17, "Q5_K", "Q6_K", "Q6_K"}, /* known as Q5_K_M */
    {"q6_k", 18, "Q6_K", "Q6_K", "Q6_K"},
    {"iq4_xs", 30, "IQ4_XS", "Q6_K", "Q5_K"},
};

const struct recipe *recipe_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        if (!strcmp(recipes[i].name, name)) return &recipes[i];
    return NULL;
}

/* The layers where errors matter most get more bits: the first and last eighth, and every third in between. */
static bool gets_more(int layer, int n_layers)
{
    int eighth = n_layers / 8;
    return layer < eighth || layer >= 7 * n_layers / 8 || (layer - eighth) % 3 == 2;
}

/* Small matrices whose errors matter most: routers, and the gates and filters of linear attention. */
static bool is_float(const char *role)
{
    static const char *const roles[] = {"ffn_gate_inp.weight", "ssm_alpha.weight", "ssm_beta.weight",
                                        "ssm_conv1d.weight"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(role, roles[i])) return true;
    return false;
}

static const struct dtype *wanted_type(const struct recipe *r, const char *name, const struct model_config *model)
{
    int layer, end = 0;
    if (!strcmp(name, "output.weight") || (model->tied && !strcmp(name, "token_embd.weight")))
        return dtype_by_name(r->head);
    if (sscanf(name, "blk.%d.%n", &layer, &end) != 1 || !end) return dtype_by_name(r->most);
    const char *role = name + end;
    bool more = (!strcmp(role, "attn_v.weight") || !strncmp(role, "ffn_down", 8)) && gets_more(layer, model->n_layers);
    return is_float(role) ? dtype_by_name("F32") : dtype_by_name(more ? r->more : r->most);
}

/* Patches and positions of images, which all programs expect as floats. */
static bool is_kept(const char *name)
{
    return !strncmp(name, "v.patch_embd", 12) || !strncmp(name, "v.position_embd", 15);
}

/* Vectors and some small matrices stay floats. Rows that are not whole blocks of 256 become Q8_0, or F16 if they are
 * not whole blocks of 32 either. */
static const struct dtype *choose_type(const struct recipe *r, const char *name, const struct tensor *t,
                                       const struct model_config *model)
{
    if (is_kept(name)) return dtype_by_name(t->type->layout == LAYOUT_F16 ? "F16" : "F32");
    const struct dtype *type = t->rows == 1 ? dtype_by_name("F32") : wanted_type(r, name, model);
    if (t->cols % type->block) type = dtype_by_name("Q8_0");
    return t->cols % type->block ? dtype_by_name("F16") : type;
}

/* --- state ------------------------------------------------------------------------------------------------- */

/* A tensor of the new file. */
struct made {
    char name[80];
    const struct dtype *type;
    struct change change;
    uint64_t dims[4];
    int n_dims;
    uint64_t offset, row_bytes, rows;
    float *weights; /* of columns, [dims[2], dims[0]]; NULL: all alike */
};

/* Where the rows of a file's tensor go; owned by the checkpoint. */
struct target {
    struct convert *c;
    const struct dtype *from;
    size_t made;
    int first; /* row of the new tensor */
    int cols;
};

/* A file with weights. */
struct source {
    int file;
    struct checkpoint *ck, own; /* own, or the intake's */
};

struct convert {
    struct convert_options options;
    struct mem mem;
    struct pool *pool;
    struct imatrix *imatrix; /* or NULL */
    struct intake intake;
    struct checkpoint all;  /* the tensors of all files, for binding; without data */
    struct model *model;
    struct storage storage; /* of the model's weights */
    struct vision *vision;  /* instead of `model`, for a projector */
    struct source *sources; /* [n_sources] */
    int n_sources, current;
    bool begun;             /* the data of the current source */
    struct made *made;      /* [n_made] */
    size_t n_made, made_room;
    uint64_t data;          /* offset of the tensors */
    uint64_t done, total;
    uint8_t *chunk;         /* [CHUNK] bytes of a file */
    uint8_t *blocks;        /* the current rows, quantised */
    uint64_t blocks_room;
    float *floats;          /* [threads, 2, max_cols] */
    int max_cols;
    struct error *err;      /* of the current step */
    int status;
};

/* --- rows ------------------------------------------------------------------------------------------------------- */

struct job {
    const struct target *t;
    const struct made *made;
    const uint8_t *rows;
    size_t row_bytes;
    int first, n;
    int bad[POOL_MAX_THREADS]; /* per thread: its first row with a value that cannot be represented, or n */
};

/* How much the columns of a row count; NULL: all alike. */
static const float *weights_of(const struct made *m, int row)
{
    return m->weights ? m->weights + (uint64_t)row / m->dims[1] * m->dims[0] : NULL;
}

static void make_rows(void *arg, int thread, int n_threads)
{
    struct job *j = arg;
    struct convert *c = j->t->c;
    float *x = c->floats + 2 * (size_t)thread * (size_t)c->max_cols;
    quantize_fn *quantize = quantizer(j->made->type);
    int begin, end;
    pool_share(j->n, thread, n_threads, &begin, &end);
    j->bad[thread] = j->n;
    for (int r = begin; r < end; r++) {
        read_floats(j->t->from, j->rows + (size_t)r * j->row_bytes, j->t->cols, x);
        change_row(&j->made->change, x, j->t->cols, x + c->max_cols);
        uint8_t *blocks = c->blocks + (size_t)r * j->made->row_bytes;
        if (!quantize(x, weights_of(j->made, j->first + r), j->t->cols, blocks) && r < j->bad[thread])
            j->bad[thread] = r;
    }
}

static int fail_memory(struct error *err)
{
    return fail(err, ERR_MEM_LOAD, "convert", 0, "Not enough memory to convert this model.");
}

static int write_at(struct convert *c, uint64_t at, const void *bytes, uint64_t n, struct error *err)
{
    if (c->options.io.write(c->options.io.context, at, bytes, (size_t)n)) return OK;
    return fail(err, ERR_PARAM, "write", 0, "The new file could not be written.");
}

/* Writes the rows, each run of rows that remain neighbours at once. */
static int write_rows(struct convert *c, const struct job *j)
{
    const struct made *m = j->made;
    int status = OK;
    for (int at = 0, n; !status && at < j->n; at += n) {
        const int row = j->first + at, to = change_place(&m->change, row);
        for (n = 1; at + n < j->n && change_place(&m->change, row + n) == to + n;) n++;
        status = write_at(c, c->data + m->offset + (uint64_t)to * m->row_bytes,
                          c->blocks + (size_t)at * m->row_bytes, (uint64_t)n * m->row_bytes, c->err);
    }
    return status;
}

static int make_and_write(struct convert *c, struct job *j)
{
    uint64_t bytes = (uint64_t)j->n * j->made->row_bytes;
    if (bytes > c->blocks_room) {
        uint8_t *grown = mem_resize(&c->mem, c->blocks, bytes);
        if (!grown) return fail_memory(c->err);
        c->blocks = grown;
        c->blocks_room = bytes;
    }
    pool_run(c->pool, make_rows, j);
    c->done += (uint64_t)j->n * j->row_bytes;
    for (int t = 0; t < pool_threads(c->pool); t++)
        if (j->bad[t] < j->n)
            return fail(c->err, ERR_NONFINITE, "value", 0,
                        "Row %d of the tensor %s holds a value that is not finite, or too large for %s.",
                        j->first + j->bad[t], j->made->name, j->made->type->name);
    return write_rows(c, j);
}

static void put_rows(void *context, int row, int n, const uint8_t *rows)
{
    struct target *t = context;
    struct convert *c = t->c;
    struct job j = {
        .t = t, .made = &c->made[t->made], .rows = rows, .row_bytes = (size_t)t->cols * t->from->bytes,
        .first = t->first + row, .n = n};
    if (!c->status) c->status = make_and_write(c, &j);
}

/* --- headers: what there is ------------------------------------------------------------------------------------- */

/* All zero for a projector. */
static const struct model_config *config_of(const struct convert *c)
{
    static const struct model_config none;
    return c->model ? &c->model->config : &none;
}

/* `bound`: the tensor with the type that binding gave it. */
static int check_type(const struct made *m, const struct tensor *t, const struct tensor *bound, struct error *err)
{
    if (t->type->block == 1 && !layouts[t->type->layout].scaled && !t->packing) return OK;
    return fail(err, ERR_UNSUPPORTED, "quantisation", t->name.at,
                "The tensor %s belongs to weights that are quantised already (%s); convert the model's F32, F16 or BF16 files.",
                m->name, (bound->weights ? bound->weights : bound->type)->name);
}

static int add_made(struct convert *c, const struct made *m, struct error *err)
{
    if (c->n_made == c->made_room) {
        size_t room = c->made_room ? 2 * c->made_room : 512;
        struct made *grown = mem_resize(&c->mem, c->made, room * sizeof *grown);
        if (!grown) return fail_memory(err);
        c->made = grown;
        c->made_room = room;
    }
    c->made[c->n_made++] = *m;
    return OK;
}

/* Searches backwards: the parts of a tensor are usually close together. Returns n_made if there is none. */
static size_t find_made(const struct convert *c, const char *name)
{
    for (size_t i = c->n_made; i-- > 0;)
        if (!strcmp(c->made[i].name, name)) return i;
    return c->n_made;
}

/* Describes the new tensor for a file's tensor. An expert's own matrix, NAME.i.weight, goes into the stack
 * NAME_exps.weight. */
static struct made describe(const struct convert *c, const struct checkpoint *ck, const struct tensor *t, int *first)
{
    struct bytes view = ck_view(ck, t->name);
    struct made m = {.n_dims = t->n_dims, .dims = {t->cols, t->rows / t->stack, t->stack, 1}};
    int expert, prefix;
    *first = 0;
    snprintf(m.name, sizeof m.name, "%.*s", (int)view.size, (const char *)view.data);
    if (sscanf(m.name, "blk.%*d.ffn_%*[a-z]%n.%d.weight", &prefix, &expert) == 1) {
        *first = expert * (int)t->rows;
        m.n_dims = 3;
        m.dims[2] = (uint64_t)config_of(c)->n_experts;
        snprintf(m.name + prefix, sizeof m.name - (size_t)prefix, "_exps.weight");
    }
    m.change = change_of(&c->storage, m.name);
    /* square patches with three colours */
    if (t->n_dims == 4) m.dims[1] = t->cols, m.dims[2] = 3, m.dims[3] = t->rows / t->cols / 3;
    m.rows = m.dims[1] * m.dims[2] * m.dims[3];
    return m;
}

/* Adds a bound tensor of a file. */
static int add_tensor(struct convert *c, const struct checkpoint *ck, struct tensor *t, const struct tensor *bound,
                      struct error *err)
{
    struct target *target = mem_alloc(&c->mem, sizeof *target);
    if (!target) return fail_memory(err);
    *target = (struct target){.c = c, .from = t->type, .cols = (int)t->cols};
    struct made m = describe(c, ck, t, &target->first);
    target->made = find_made(c, m.name);
    t->context = target;
    t->put = put_rows;
    c->total += t->bytes;
    c->max_cols = max_int(c->max_cols, (int)t->cols);
    int status = check_type(&m, t, bound, err);
    if (status || target->made < c->n_made) return status;
    m.type = choose_type(c->options.recipe, m.name, t, config_of(c));
    return add_made(c, &m, err);
}

static const struct tensor *find_bound(const struct convert *c, struct bytes name)
{
    char text[80]; /* names that a model binds are shorter */
    snprintf(text, sizeof text, "%.*s", (int)name.size, (const char *)name.data);
    const struct tensor *t = name.size < sizeof text ? ck_find(&c->all, text) : NULL;
    return t && t->put ? t : NULL;
}

static int add_tensors(struct convert *c, struct checkpoint *ck, struct error *err)
{
    int status = OK;
    for (size_t i = 0; !status && i < ck->n_tensors; i++) {
        const struct tensor *bound = find_bound(c, ck_view(ck, ck->tensors[i].name));
        if (bound) status = add_tensor(c, ck, &ck->tensors[i], bound, err);
    }
    return status;
}

/* Opens the model or projector with the first file with weights. */
static int open_model(struct convert *c, struct error *err)
{
    const struct checkpoint *ck = &c->intake.ck;
    struct bytes name;
    bool projector = !meta_text(ck, "general.architecture", false, &name, NULL) && bytes_equal(name, "clip");
    if (projector) return vision_open(&c->mem, NULL, ck, &c->vision, err);
    int status = model_open(&c->mem, NULL, ck, &c->model, err);
    return status ? status : storage_read(ck, c->model->prefix, &c->storage, err);
}

/* Takes a file with weights, after its header is complete. */
static int take_file(struct convert *c, int file, struct error *err)
{
    struct intake *in = &c->intake;
    struct source *s = &c->sources[c->n_sources];
    int status = c->model || c->vision ? OK : open_model(c, err);
    if (!status) status = ck_gather(&c->all, in->file, in->bytes - in->file->file_size, err);
    if (status) return status;
    c->n_sources++;
    *s = (struct source){.file = file, .ck = in->file};
    if (in->file == &in->ck) return OK;
    s->own = in->part;
    s->ck = &s->own;
    ck_init(&in->part, &c->mem, 0);
    return OK;
}

/* Reads a file with weights up to the end of its header, and any other file completely. */
static int read_file(struct convert *c, int file, struct error *err)
{
    struct intake *in = &c->intake;
    int status = file ? intake_next(in, c->options.sizes[file], err) : OK;
    for (uint64_t at = 0, n = 1; !status && n && !in->complete; at += n) {
        size_t used;
        n = c->options.io.read(c->options.io.context, file, at, c->chunk, CHUNK);
        if (n) status = intake_header(in, c->chunk, (size_t)n, &used, err);
    }
    return status || !in->complete ? status : take_file(c, file, err);
}

/* --- the new file's header ------------------------------------------------------------------------------------- */

/* Places the tensors one after the other, in the order in which they were found. */
static void place(struct convert *c)
{
    uint64_t at = 0;
    for (size_t i = 0; i < c->n_made; i++) {
        struct made *m = &c->made[i];
        m->row_bytes = m->dims[0] / m->type->block * m->type->bytes;
        m->offset = at;
        at += (m->rows * m->row_bytes + GGUF_ALIGNMENT - 1) / GGUF_ALIGNMENT * GGUF_ALIGNMENT;
    }
}

static int write_header(struct convert *c, struct error *err)
{
    struct gguf_writer w;
    gguf_begin(&w, &c->mem, c->n_made);
    convert_keys(&w, &c->intake, c->model ? c->model->prefix : "clip", config_of(c), c->options.recipe->file_type);
    for (size_t i = 0; i < c->n_made; i++)
        gguf_tensor(&w, c->made[i].name, c->made[i].n_dims, c->made[i].dims, c->made[i].type, c->made[i].offset);
    gguf_end(&w);
    int status = w.out.failed ? fail_memory(err) : write_at(c, 0, w.out.data, w.out.size, err);
    c->data = w.out.size;
    buffer_free(&w.out);
    return status;
}

#define DIVISORS "rope_freqs.weight"

/* Adds the divisors of RoPE's frequencies, for which a folder has a rule. */
static int add_divisors(struct convert *c, struct error *err)
{
    const struct rope *r = c->model ? decoder_rope(c->model) : NULL;
    if (!r || r->scaling != ROPE_LLAMA3) return OK;
    return add_made(c,
                    &(struct made){.name = DIVISORS,
                                   .type = dtype_by_name("F32"),
                                   .dims = {(uint64_t)r->dim / 2, 1, 1, 1},
                                   .n_dims = 1,
                                   .rows = 1},
                    err);
}

static int write_divisors(struct convert *c, struct error *err)
{
    size_t at = find_made(c, DIVISORS);
    int status = OK;
    for (uint64_t i = 0; !status && at < c->n_made && i < c->made[at].dims[0]; i++) {
        float divisor = rope_divisor(decoder_rope(c->model), (int)i);
        status = write_at(c, c->data + c->made[at].offset + i * sizeof divisor, &divisor, sizeof divisor, err);
    }
    return status;
}

/* Pads the data of the last tensor like that of the others. */
static int write_end(struct convert *c, struct error *err)
{
    static const uint8_t zeros[GGUF_ALIGNMENT];
    const struct made *last = &c->made[c->n_made - 1];
    uint64_t end = c->data + last->offset + last->rows * last->row_bytes,
             rest = (GGUF_ALIGNMENT - end % GGUF_ALIGNMENT) % GGUF_ALIGNMENT;
    return rest ? write_at(c, end, zeros, rest, err) : OK;
}

/* --- importance ------------------------------------------------------------------------------------------------- */

/* Gives the new tensors the weights of their columns, before any row arrives. */
static int weigh(struct convert *c, struct error *err)
{
    size_t found = 0;
    int status = imatrix_read(&c->mem, c->options.imatrix, &c->imatrix, err);
    for (size_t i = 0; !status && i < c->n_made; i++) {
        struct made *m = &c->made[i];
        if (m->n_dims > 3) continue;
        status = imatrix_weights(c->imatrix, m->name, m->dims[0], m->dims[2], &m->weights, err);
        found += m->weights != NULL;
    }
    if (status || found) return status;
    return fail(err, ERR_PARAM, "imatrix", 0, "The importance matrix names no tensor of this model.");
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static int open_all(struct convert *c, struct error *err)
{
    int status = OK;
    for (int i = 0; !status && i < c->options.n_files; i++) status = read_file(c, i, err);
    if (!status) status = intake_finish(&c->intake, err);
    if (!status)
        status = c->model ? model_bind(c->model, &c->all, false, err) : vision_bind(c->vision, &c->all, false, err);
    for (int i = 0; !status && i < c->n_sources; i++) status = add_tensors(c, c->sources[i].ck, err);
    if (!status) status = add_divisors(c, err);
    if (status) return status;
    c->floats = mem_array(&c->mem, 2 * (uint64_t)pool_threads(c->pool) * (uint64_t)c->max_cols, sizeof *c->floats);
    if (!c->floats) return fail_memory(err);
    status = c->options.imatrix.data ? weigh(c, err) : OK;
    if (status) return status;
    place(c);
    status = write_header(c, err);
    return status ? status : write_divisors(c, err);
}

struct convert *convert_open(const struct convert_options *options, struct error *err)
{
    struct mem mem = {.limit = options->memory_limit};
    struct convert *c = mem_alloc(&mem, sizeof *c);
    if (!c) return (void)fail_memory(err), NULL;
    c->options = *options;
    c->mem = mem;
    c->pool = pool_new(&c->mem, max_int(options->threads, 1));
    c->sources = mem_array(&c->mem, (uint64_t)options->n_files, sizeof *c->sources);
    c->chunk = mem_alloc_raw(&c->mem, CHUNK);
    intake_open(&c->intake, &c->mem, options->n_files, options->sizes[0]);
    c->intake.headers_only = true;
    ck_init(&c->all, &c->mem, 0);
    int status = c->pool && c->sources && c->chunk ? open_all(c, err) : fail_memory(err);
    if (!status) return c;
    convert_close(c);
    return NULL;
}

void convert_close(struct convert *c)
{
    if (!c) return;
    for (int i = 0; i < c->n_sources; i++)
        if (c->sources[i].ck == &c->sources[i].own) ck_close(&c->sources[i].own);
    ck_close(&c->all);
    intake_close(&c->intake);
    vision_free(c->vision);
    model_free(c->model);
    pool_free(c->pool);
    imatrix_free(c->imatrix);
    for (size_t i = 0; i < c->n_made; i++) mem_free(&c->mem, c->made[i].weights);
    void *parts[] = {c->sources, c->made, c->chunk, c->blocks, c->floats};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) mem_free(&c->mem, parts[i]);
    struct mem mem = c->mem;
    mem_free(&mem, c);
}

static int file_ended(struct convert *c, struct error *err)
{
    int status = ck_data_ended(c->sources[c->current].ck, err);
    c->current++;
    c->begun = false;
    if (status || c->current < c->n_sources) return status ? status : 1;
    return write_end(c, err);
}

int convert_step(struct convert *c, struct error *err)
{
    if (c->status || c->current == c->n_sources) return c->status;
    struct source *s = &c->sources[c->current];
    if (!c->begun) c->status = ck_data_begin(s->ck, err);
    c->begun = true;
    c->err = err;
    if (c->status) return c->status;
    size_t n = c->options.io.read(c->options.io.context, s->file, s->ck->pos, c->chunk, CHUNK);
    if (n == 0) {
        int status = file_ended(c, err);
        if (status < 0) c->status = status;
        return status;
    }
    ck_data(s->ck, c->chunk, n);
    return c->status ? c->status : 1;
}

void convert_progress(const struct convert *c, uint64_t *done, uint64_t *total)
{
    *done = c->done;
    *total = c->total;
}
