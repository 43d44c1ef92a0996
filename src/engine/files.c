/* SPDX-License-Identifier: MIT
 *
 * The files of a model: one; the parts of a split GGUF model; or files that describe it (JSON, a vocabulary) and then its weights.
 *
 * e->ck has the metadata: it is the first file itself where that has weights, and otherwise collects what the side files say.
 */
#include "engine/files.h"

#include "base/reader.h"
#include "load/format.h"
#include "load/metadata.h"

/* --- split GGUF ----------------------------------------------------------------------------------------- */

/* The first file of a split model, or a whole one. */
static int check_first(const struct quern_engine *e, const struct split *s, struct error *err)
{
    int given = max_int(e->options.files, 1);
    if (s->number > 0)
        return fail(err, ERR_UNSUPPORTED, "split", 0,
                    "This is file %lld of a model that is split into %lld; begin with the first, whose name ends in -00001-of-%05lld.gguf.",
                    (long long)s->number + 1, (long long)s->files, (long long)s->files);
    if (s->files > 1 && given == 1)
        return fail(err, ERR_UNSUPPORTED, "split", 0, "This is the first of the %lld files of a split model; all of them are needed.",
                    (long long)s->files);
    if (s->files != given)
        return fail(err, ERR_INCONSISTENT, "split", 0, "%d files were given, but the model consists of %lld.", given, (long long)s->files);
    return OK;
}

/* A later one. */
static int check_later(const struct quern_engine *e, const struct split *s, struct error *err)
{
    const struct split *first = &e->split;
    if (s->files == first->files && s->number == first->number && s->tensors == first->tensors) return OK;
    return fail(err, ERR_INCONSISTENT, "split", 0,
                "File %lld of %lld was expected; this one says it is file %lld of %lld, or belongs to another model.", (long long)first->number + 1,
                (long long)first->files, (long long)s->number + 1, (long long)s->files);
}

static int check_split(struct quern_engine *e, struct error *err)
{
    struct split s;
    int status = ck_split(e->file, &s, err);
    if (!status) status = !e->model ? check_first(e, &s, err) : check_later(e, &s, err);
    if (status) return status;
    e->split = s;
    e->tensors += e->file->n_tensors;
    if (!s.tensors || s.number + 1 < s.files || e->tensors == (uint64_t)s.tensors) return OK;
    return fail(err, ERR_INCONSISTENT, "split", 0,
                "The files of the split model hold %llu tensors, but there should be %lld; they do not belong together.",
                (unsigned long long)e->tensors, (long long)s.tensors);
}

/* --- weights that other files describe ------------------------------------------------------------------- */

/* Each file must hold the tensors that the index has for one of its files, and all together those of all. */
static int check_index(const struct quern_engine *e, struct error *err)
{
    struct bytes sums;
    uint64_t files, all = 0;
    bool known = false;
    int status = meta_array(&e->ck, "index.files", META_U64, false, &sums, &files, err);
    if (status || !sums.data) return status;
    if (files != (uint64_t)e->split.files)
        return fail(err, ERR_INCONSISTENT, "index", 0, "%lld files with weights were given, but the index names %llu.", (long long)e->split.files,
                    (unsigned long long)files);
    for (uint64_t i = 0; i < files; i++) {
        known |= load_u64(sums.data + 8 * i) == e->file->name_hash;
        all += load_u64(sums.data + 8 * i);
    }
    if (known && ((uint64_t)e->split.number + 1 < files || e->name_hash == all)) return OK;
    return fail(err, ERR_INCONSISTENT, "index", 0, "File %lld of those with weights does not hold the tensors that the index says.",
                (long long)e->split.number + 1);
}

/* These do not say how many they are: whoever loads them does. */
static int count_file(struct quern_engine *e, struct error *err)
{
    e->split.files = max_int(max_int(e->options.files, 1) - e->sides, 1);
    e->tensors += e->file->n_tensors;
    e->name_hash += e->file->name_hash;
    return check_index(e, err);
}

static int fail_missing(struct error *err, const char *what)
{
    return fail(err, ERR_FORMAT, "missing", 0, "%s", what);
}

static int check_described(const struct quern_engine *e, struct error *err)
{
    bool ajc1 = e->file->format == &format_ajc1;
    if (!meta_find(&e->ck, "general.architecture"))
        return fail_missing(err, "config.json is missing: weights in safetensors files need it; give the whole folder.");
    if (meta_find(&e->ck, "tokenizer.ggml.model")) return OK;
    return fail_missing(err, ajc1 ? "The model's .tokenizer file is missing; give it before the checkpoint."
                                  : "tokenizer.json is missing: weights in safetensors files need it; give the whole folder.");
}

/* What the side files said, and the first file with weights. */
static int join(struct quern_engine *e, struct error *err)
{
    bool one = max_int(e->options.files, 1) - e->sides <= 1;
    uint64_t tensors = one && e->file->n_tensors < TENSORS_MOST ? e->file->n_tensors : TENSORS_MOST;
    if (e->file->format == &format_gguf)
        return fail(err, ERR_UNSUPPORTED, "mixed", 0, "A GGUF file describes itself and has its own vocabulary; give it without other files.");
    int status = ck_merge(&e->ck, e->file, err);
    if (!status) status = ck_put_int(&e->ck, "split.tensors.count", (int64_t)tensors, err);
    return status ? status : ck_complete(&e->ck, err);
}

int files_check(struct quern_engine *e, struct error *err)
{
    bool first = !e->model;
    const struct format *before = e->weights;
    e->weights = e->file->format;
    if (e->file->format == &format_gguf && !e->sides) return check_split(e, err);
    int status = first && e->sides ? join(e, err) : OK;
    if (!status && first) status = check_described(e, err);
    if (!status && !first && e->weights != before)
        status = fail(err, ERR_INCONSISTENT, "mixed", 0, "The files are of different formats; they do not belong together.");
    return status ? status : count_file(e, err);
}

/* --- side files -------------------------------------------------------------------------------------------- */

int files_take_side(struct quern_engine *e, struct error *err)
{
    if (e->model) return fail(err, ERR_PARAM, "order", 0, "The files that describe a model must come before those with its weights.");
    if (e->file == &e->ck) { /* it begins the collection */
        e->part = e->ck;
        e->file = &e->part;
        ck_init(&e->ck, &e->mem, 0);
    }
    int status = ck_read_side(&e->part, &e->ck, err);
    e->sides++;
    e->side_bytes += e->part.header_size;
    if (!status && e->sides >= max_int(e->options.files, 1))
        status = fail_missing(err, "This file describes a model; its weights are missing. Give the whole folder.");
    return status;
}
