/* SPDX-License-Identifier: MIT
 *
 * The files of a model: one file, the parts of a split GGUF model, or any number of safetensors files. Files that
 * describe the model (JSON, a vocabulary) come before them; only GGUF needs none.
 */
#include "engine/intake.h"

#include "base/reader.h"

void intake_open(struct intake *in, struct mem *m, int n_files, uint64_t first_size)
{
    *in = (struct intake){.mem = m, .n_files = max_int(n_files, 1), .file = &in->ck};
    ck_init(&in->ck, m, first_size);
    ck_init(&in->part, m, 0);
}

void intake_close(struct intake *in)
{
    ck_close(&in->ck);
    ck_close(&in->part);
}

bool intake_more(const struct intake *in) { return in->split.number + 1 < in->split.files; }

/* The number of files with weights that the caller announced. */
static int given(const struct intake *in) { return max_int(in->n_files - in->sides, 1); }

/* --- split GGUF ----------------------------------------------------------------------------------------- */

/* Checks the first file of a split model, or a whole model. */
static int check_first(const struct intake *in, const struct split *s, struct error *err)
{
    if (s->number > 0)
        return fail(
            err, ERR_UNSUPPORTED, "split", 0,
            "This is file %lld of a model that is split into %lld; begin with the first, whose name ends in -00001-of-%05lld.gguf.",
            (long long)s->number + 1, (long long)s->files, (long long)s->files);
    if (s->files > 1 && given(in) == 1)
        return fail(err, ERR_UNSUPPORTED, "split", 0,
                    "This is the first of the %lld files of a split model; all of them are needed.",
                    (long long)s->files);
    if (s->files != given(in))
        return fail(err, ERR_INCONSISTENT, "split", 0, "%d files were given, but the model consists of %lld.",
                    given(in), (long long)s->files);
    /* A later file may have weights in grids, and no other build can take over when this one's weights have been read. */
    if (s->files > 1 && !reads_full_types())
        return fail(err, ERR_UNSUPPORTED, "build", 0, "This build of the engine reads no split models.");
    return OK;
}

/* Checks a later file of a split model. */
static int check_later(const struct intake *in, const struct split *s, struct error *err)
{
    const struct split *first = &in->split;
    if (s->files == first->files && s->number == first->number && s->tensors == first->tensors) return OK;
    return fail(err, ERR_INCONSISTENT, "split", 0,
                "File %lld of %lld was expected; this one says it is file %lld of %lld, or belongs to another model.",
                (long long)first->number + 1, (long long)first->files, (long long)s->number + 1, (long long)s->files);
}

static int check_split(struct intake *in, bool first, struct error *err)
{
    struct split s;
    int status = ck_split(in->file, &s, err);
    if (!status) status = first ? check_first(in, &s, err) : check_later(in, &s, err);
    if (status) return status;
    in->split = s;
    in->tensors += in->file->n_tensors;
    if (!s.tensors || intake_more(in) || in->tensors == (uint64_t)s.tensors) return OK;
    return fail(
        err, ERR_INCONSISTENT, "split", 0,
        "The files of the split model hold %llu tensors, but there should be %lld; they do not belong together.",
        (unsigned long long)in->tensors, (long long)s.tensors);
}

/* --- weights that other files describe ------------------------------------------------------------------- */

/* The index lists the tensors of each file. Each file must match one entry, and all files together all entries. */
static int check_index(const struct intake *in, struct error *err)
{
    struct bytes sums;
    uint64_t files, all = 0;
    bool known = false;
    int status = meta_array(&in->ck, "index.files", META_U64, false, &sums, &files, err);
    if (status || !sums.data) return status;
    if (files != (uint64_t)in->split.files)
        return fail(err, ERR_INCONSISTENT, "index", 0, "%lld files with weights were given, but the index names %llu.",
                    (long long)in->split.files, (unsigned long long)files);
    for (uint64_t i = 0; i < files; i++) {
        known |= load_u64(sums.data + 8 * i) == in->file->name_hash;
        all += load_u64(sums.data + 8 * i);
    }
    if (known && (intake_more(in) || in->name_hash == all)) return OK;
    return fail(err, ERR_INCONSISTENT, "index", 0,
                "Weights file %lld does not hold the tensors that the index lists.",
                (long long)in->split.number + 1);
}

/* These files do not say how many they are; the caller does. */
static int count_file(struct intake *in, struct error *err)
{
    in->split.files = given(in);
    in->tensors += in->file->n_tensors;
    in->name_hash += in->file->name_hash;
    return check_index(in, err);
}

static int fail_missing(struct error *err, const char *what)
{
    return fail(err, ERR_FORMAT, "missing", 0, "%s", what);
}

static int check_described(const struct intake *in, struct error *err)
{
    bool ajc1 = in->file->format == &format_ajc1;
    if (!meta_find(&in->ck, "general.architecture"))
        return fail_missing(err,
                            "config.json is missing: weights in safetensors files need it; give the whole folder.");
    if (meta_find(&in->ck, "tokenizer.ggml.model")) return OK;
    return fail_missing(
        err, ajc1 ? "The model's .tokenizer file is missing; give it before the checkpoint."
                  : "tokenizer.json is missing: weights in safetensors files need it; give the whole folder.");
}

/* Joins the metadata of the side files with the first file with weights. */
static int join(struct intake *in, struct error *err)
{
    uint64_t tensors = given(in) == 1 && in->file->n_tensors < TENSORS_MOST ? in->file->n_tensors : TENSORS_MOST;
    int status = ck_merge(&in->ck, in->file, err);
    if (!status) status = ck_put_int(&in->ck, "split.tensors.count", (int64_t)tensors, err);
    return status ? status : ck_complete(&in->ck, err);
}

/* Templates in side files replace all templates of the GGUF file, except for the ranking template, which only GGUF
 * files have. */
static void drop_templates(struct checkpoint *ck, const struct checkpoint *beside)
{
    static const char prefix[] = "tokenizer.chat_template";
    if (ck_any(beside, prefix)) ck_drop(ck, prefix, "tokenizer.chat_template.rerank");
}

/* A GGUF file describes itself. Side files override what it says about texts: the vocabulary, the chat templates, the
 * end tokens, sampling. What they say about weights belongs to other files and is dropped. */
static int join_gguf(struct intake *in, struct error *err)
{
    struct checkpoint beside = in->ck;
    in->ck = in->part;
    in->part = beside;
    in->file = &in->ck;
    drop_templates(&in->ck, &beside);
    int status = ck_override(&in->ck, &beside, "tokenizer.", err);
    if (!status) status = ck_override(&in->ck, &beside, "generation.", err);
    if (!status) status = ck_override(&in->ck, &beside, "general.sampling.", err);
    if (!status) status = ck_complete(&in->ck, err);
    ck_close(&in->part);
    return status;
}

static bool is_mixed(const struct intake *in)
{
    return in->weights && in->file->format && in->file->format != in->weights;
}

static int fail_mixed(struct error *err)
{
    return fail(err, ERR_INCONSISTENT, "mixed", 0, "The files are of different formats; they do not belong together.");
}

/* Finds the place of a file with weights among the model's files. */
static int place(struct intake *in, struct error *err)
{
    bool first = !in->weights, gguf = in->file->format == &format_gguf;
    int status = OK;
    if (is_mixed(in)) return fail_mixed(err);
    if (first && in->sides) status = gguf ? join_gguf(in, err) : join(in, err);
    if (!status && first && !gguf) status = check_described(in, err);
    if (!status && in->file->format->settle) status = in->file->format->settle(in->file, &in->ck, err);
    if (status) return status;
    return gguf ? check_split(in, first, err) : count_file(in, err);
}

int intake_header(struct intake *in, const uint8_t *bytes, size_t n, size_t *used, struct error *err)
{
    int status = ck_header(in->file, bytes, n, used, err);
    if (status == NEED_MORE) return OK;
    if (status && is_mixed(in)) return fail_mixed(err); /* whatever else is wrong in it */
    if (!status) status = place(in, err);
    if (status) return status;
    in->weights = in->file->format;
    in->file_size = in->file->file_size;
    in->bytes += in->file_size;
    in->complete = true;
    return OK;
}

/* --- ends ---------------------------------------------------------------------------------------------------- */

/* The current file has no weights: it describes the model. */
static int take_side(struct intake *in, struct error *err)
{
    if (in->weights)
        return fail(err, ERR_PARAM, "order", 0,
                    "The files that describe a model must come before those with its weights.");
    if (in->file == &in->ck) { /* the first side file: from now on ck collects */
        in->part = in->ck;
        in->file = &in->part;
        ck_init(&in->ck, in->mem, 0);
    }
    int status = ck_read_side(&in->part, &in->ck, err);
    if (!status && in->n_files == 1 && in->ck.n_metas == 0)
        status = fail(err, ERR_FORMAT, "magic", 0,
                      "This file is not a model: this is JSON, perhaps an error message of the server.");
    in->sides++;
    in->side_bytes += in->part.header_size;
    if (!status && in->sides >= in->n_files)
        status = fail_missing(err, "This file describes a model; its weights are missing. Give the whole folder.");
    return status;
}

static int file_ended(struct intake *in, struct error *err)
{
    if (in->complete) return in->headers_only ? OK : ck_data_ended(in->file, err);
    int status = ck_header_ended(in->file, err);
    return status ? status : take_side(in, err);
}

int intake_next(struct intake *in, uint64_t size, struct error *err)
{
    int status = file_ended(in, err);
    if (!status && in->weights && !intake_more(in))
        status = fail(err, ERR_INCONSISTENT, "split", 0, "The model has %lld files only.", (long long)in->split.files);
    if (status) return status;
    ck_close(&in->part);
    ck_init(&in->part, in->mem, size);
    in->file = &in->part;
    in->split.number += in->weights != NULL;
    in->complete = false;
    return OK;
}

int intake_finish(struct intake *in, struct error *err)
{
    int status = file_ended(in, err);
    if (!status && !in->weights) status = fail_missing(err, "The model's weights are missing; give the whole folder.");
    if (status || !intake_more(in)) return status;
    return fail(err, ERR_INCONSISTENT, "split", 0, "The last %lld of the split model's files are missing.",
                (long long)(in->split.files - in->split.number - 1));
}
