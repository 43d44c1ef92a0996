/* SPDX-License-Identifier: MIT
 *
 * Reads and writes the files of a conversion.
 */
#include "cli/cli_quantize.h"

#include "cli/cli_described.h"
#include "cli/cli_files.h"
#include "cli/cli_output.h"
#include "cli/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct quantizing {
    struct convert_options options;
    struct convert *convert;   /* NULL until the first step */
    struct cli_files files;
    uint64_t *sizes;           /* [files.n] */
    int *inputs;               /* [files.n] descriptors, -1: not open */
    struct bytes *described;   /* [files.n] bytes to read in place of a file; data NULL: read the file */
    char *out;                 /* name of the new file */
    char *imatrix;             /* path of a file of importance; NULL: none */
    uint8_t *importance;       /* its bytes */
    struct output output;
    int write_error;           /* errno */
    const char *code;
    struct error error;
};

static int complain(struct quantizing *q, const char *code, const char *sentence)
{
    q->code = code;
    return fail(&q->error, ERR_PARAM, "file", 0, "%s", sentence);
}

static size_t read_file(void *context, int file, uint64_t at, void *bytes, size_t n)
{
    struct quantizing *q = context;
    const struct bytes d = q->described[file];
    if (d.data) {
        size_t left = at < d.size ? d.size - (size_t)at : 0;
        if (n > left) n = left;
        if (n) memcpy(bytes, d.data + at, n);
        return n;
    }
    ssize_t got = pread(q->inputs[file], bytes, n, (off_t)at);
    return got > 0 ? (size_t)got : 0;
}

static bool write_file(void *context, uint64_t at, const void *bytes, size_t n)
{
    struct quantizing *q = context;
    const uint8_t *from = bytes;
    while (n) {
        ssize_t put = pwrite(q->output.fd, from, n, (off_t)at);
        if (put <= 0) {
            q->write_error = put ? errno : ENOSPC;
            return false;
        }
        from += put;
        at += (uint64_t)put;
        n -= (size_t)put;
    }
    return true;
}

static int fail_output(struct quantizing *q, int failed)
{
    q->code = output_explain(&q->output, failed, &q->error);
    return q->error.code;
}

static int fail_memory(struct quantizing *q)
{
    q->code = NULL;
    return fail(&q->error, ERR_MEM_LOAD, "convert", 0, "Not enough memory to convert this model.");
}

/* --- opening ------------------------------------------------------------------------------------------------- */

struct quantizing *quantizing_new(const char *in, const char *out, const char *type, const char *imatrix, int threads)
{
    struct quantizing *q = calloc(1, sizeof *q);
    if (!q) return NULL;
    q->output.fd = -1;
    q->files = cli_files(in);
    q->options =
        (struct convert_options){.recipe = recipe_by_name(type), .threads = threads, .io = {q, read_file, write_file}};
    q->out = strdup(out);
    if (imatrix && *imatrix && !(q->imatrix = strdup(imatrix))) fail_memory(q);
    return q;
}

/* Whether the new file would replace this one. */
static bool is_output(const struct quantizing *q, const char *path)
{
    struct stat new, old;
    return !stat(q->out, &new) && !stat(path, &old) && old.st_dev == new.st_dev && old.st_ino == new.st_ino;
}

static int check_inputs(struct quantizing *q)
{
    for (int i = 0; i < q->files.n; i++)
        if (is_output(q, q->files.paths[i]))
            return complain(q, "use/param",
                            "The new file would replace the model it is made from; give it another name.");
    if (q->imatrix && is_output(q, q->imatrix))
        return complain(q, "use/param", "The new file would replace the file of --imatrix; give it another name.");
    return OK;
}

static bool is_address(const char *path) { return !strncmp(path, "hf:", 3) || strstr(path, "://"); }

/* Reports that the model's file i cannot be opened. */
static int fail_missing(struct quantizing *q, int i)
{
    const char *path = q->files.paths[i];
    if (i) return fail(&q->error, ERR_PARAM, "file", 0, "The file '%.300s' is missing or cannot be read.", path);
    return complain(
        q, "use/param",
        is_address(path)
            ? "This is an address, but quantize takes files and folders of this machine; download the model first."
            : "The model is neither a readable file nor a folder with one.");
}

static int open_inputs(struct quantizing *q)
{
    if (q->files.failed) return fail_memory(q);
    q->sizes = calloc((size_t)q->files.n, sizeof *q->sizes);
    q->inputs = malloc((size_t)q->files.n * sizeof *q->inputs);
    q->described = calloc((size_t)q->files.n, sizeof *q->described);
    if (!q->sizes || !q->inputs || !q->described) return fail_memory(q);
    for (int i = 0; i < q->files.n; i++) q->inputs[i] = -1;
    for (int i = 0; i < q->files.n; i++) {
        FILE *f = cli_open(q->files.paths[i], &q->sizes[i]);
        if (f) fclose(f);
        q->inputs[i] = f ? open(q->files.paths[i], O_RDONLY) : -1;
        if (q->inputs[i] < 0) return fail_missing(q, i);
        q->described[i] = cli_described(q->files.paths[i]);
        if (q->described[i].data) q->sizes[i] = q->described[i].size;
    }
    return OK;
}

static int open_imatrix(struct quantizing *q)
{
    uint64_t size;
    if (!q->imatrix) return OK;
    FILE *f = cli_open(q->imatrix, &size);
    if (!f) return complain(q, "use/param", "The file of --imatrix cannot be read.");
    q->importance = size <= SIZE_MAX / 2 ? malloc((size_t)size + 1) : NULL;
    bool whole = q->importance && fread(q->importance, 1, (size_t)size, f) == size;
    fclose(f);
    q->options.imatrix = (struct bytes){q->importance, (size_t)size};
    if (!q->importance) return fail_memory(q);
    return whole ? OK : complain(q, "use/param", "The file of --imatrix cannot be read.");
}

static int open_output(struct quantizing *q)
{
    int status = check_inputs(q);
    if (status) return status;
    if (output_is_stream(q->out))
        return complain(q, "use/param", "The new file's name belongs to something that is not a regular file.");
    int failed = output_open(&q->output, q->out);
    return failed ? fail_output(q, failed) : OK;
}

static int begin(struct quantizing *q)
{
    if (!q->out) return fail_memory(q);
    if (!q->options.recipe)
        return complain(q, "use/param",
                        "The type must be q8_0, q4_0, q4_k (known as Q4_K_M), q5_k (Q5_K_M), q6_k or iq4_xs.");
    if (q->files.n == 0) return complain(q, "use/param", "The folder holds no model.");
    int status = open_inputs(q);
    if (!status) status = open_imatrix(q);
    if (!status) status = open_output(q);
    if (status) return status;
    q->options.n_files = q->files.n;
    q->options.sizes = q->sizes;
    q->convert = convert_open(&q->options, &q->error);
    return q->convert ? 1 : q->error.code;
}

/* --- going on ------------------------------------------------------------------------------------------------ */

int quantizing_step(struct quantizing *q)
{
    if (q->error.code) return q->error.code;
    int status = q->convert ? convert_step(q->convert, &q->error) : begin(q);
    if (!status) q->write_error = output_finish(&q->output);
    return q->write_error ? fail_output(q, q->write_error) : status;
}

const char *quantizing_code(const struct quantizing *q) { return q->code ? q->code : status_name(q->error.code); }
const char *quantizing_message(const struct quantizing *q) { return q->error.message; }

double quantizing_progress(const struct quantizing *q)
{
    uint64_t done = 0, total = 0;
    if (q->convert) convert_progress(q->convert, &done, &total);
    return total ? (double)done / (double)total : 0;
}

void quantizing_free(struct quantizing *q)
{
    if (!q) return;
    convert_close(q->convert);
    for (int i = 0; q->inputs && i < q->files.n; i++)
        if (q->inputs[i] >= 0) close(q->inputs[i]);
    for (int i = 0; q->described && i < q->files.n; i++) free((void *)q->described[i].data);
    output_close(&q->output);
    cli_files_free(&q->files);
    void *parts[] = {q->sizes, q->inputs, q->described, q->out, q->imatrix, q->importance, q};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) free(parts[i]);
}
