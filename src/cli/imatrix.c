/* SPDX-License-Identifier: MIT
 *
 * Reads importance matrices. An entry is a tensor's name with sums of squared inputs, one for each column of each of
 * its matrices. How often a matrix was used does not matter here: only columns of one matrix are compared.
 */
#include "cli/imatrix.h"

#include "base/reader.h"
#include "load/format.h"

#include <stdio.h>
#include <string.h>

enum { NAME_MOST = 128, ENTRIES_MOST = TENSORS_MOST };

struct entry {
    char name[NAME_MOST]; /* of the tensor: "blk.0.attn_q.weight" */
    const uint8_t *sums;  /* float [n], anywhere in the file */
    uint64_t n;
};

struct imatrix {
    struct mem *mem;
    struct entry *entries; /* [n] */
    size_t n, room;
};

static int fail_file(struct error *err, const char *what)
{
    return fail(err, ERR_PARAM, "imatrix", 0, "The file of --imatrix %s.", what);
}

static int fail_memory(struct error *err)
{
    return fail(err, ERR_MEM_LOAD, "imatrix", 0, "Not enough memory to read the importance matrix.");
}

static int add(struct imatrix *im, struct bytes name, const uint8_t *sums, uint64_t n, struct error *err)
{
    if (name.size >= NAME_MOST || im->n == ENTRIES_MOST) return fail_file(err, "is damaged");
    if (im->n == im->room) {
        size_t room = im->room ? 2 * im->room : 512;
        struct entry *grown = mem_resize(im->mem, im->entries, room * sizeof *grown);
        if (!grown) return fail_memory(err);
        im->entries = grown;
        im->room = room;
    }
    struct entry *e = &im->entries[im->n++];
    *e = (struct entry){.sums = sums, .n = n};
    memcpy(e->name, name.data, name.size);
    return OK;
}

/* --- the older format: i32 entries, each i32 length, name, i32 calls, i32 n, float [n] ----------------------------- */

static int read_older(struct imatrix *im, struct bytes file, struct error *err)
{
    struct cursor c = {file.data, file.size, 0};
    uint32_t entries = 0, length, calls, n;
    struct bytes name, sums;
    if (!take_u32(&c, &entries) || !entries || entries > ENTRIES_MOST)
        return fail_file(err, "is not an importance matrix (GGUF, or the older .dat)");
    int status = OK;
    for (uint32_t i = 0; !status && i < entries; i++) {
        bool whole = take_u32(&c, &length) && take_bytes(&c, length, &name) && take_u32(&c, &calls) &&
                     take_u32(&c, &n) && take_bytes(&c, 4 * (uint64_t)n, &sums);
        status = whole ? add(im, name, sums.data, n, err)
                       : fail_file(err, i ? "is cut off or damaged" : "is not an importance matrix");
    }
    return status;
}

/* --- GGUF ------------------------------------------------------------------------------------------------------------ */

static int read_tensors(struct imatrix *im, struct checkpoint *ck, struct bytes file, struct error *err)
{
    static const char end[] = ".in_sum2";
    size_t used, n_end = sizeof end - 1;
    int status = ck_header(ck, file.data, file.size, &used, err);
    if (status && status != ERR_MEM_LOAD) return fail_file(err, "is cut off or damaged");
    for (size_t i = 0; !status && i < ck->n_tensors; i++) {
        const struct tensor *t = &ck->tensors[i];
        struct bytes name = ck_view(ck, t->name);
        if (name.size < n_end || memcmp(name.data + name.size - n_end, end, n_end) != 0) continue;
        if (strcmp(t->type->name, "F32") != 0) return fail_file(err, "has sums of another type than F32");
        name.size -= n_end;
        status = add(im, name, file.data + t->offset, t->cols * t->rows, err);
    }
    return status;
}

/* ck_header() checks that all tensors end before the end of the file. */
static int read_gguf(struct imatrix *im, struct bytes file, struct error *err)
{
    struct checkpoint ck;
    ck_init(&ck, im->mem, file.size);
    int status = read_tensors(im, &ck, file, err);
    ck_close(&ck);
    if (!status && im->n == 0) return fail_file(err, "is a model, not an importance matrix");
    return status;
}

int imatrix_read(struct mem *m, struct bytes file, struct imatrix **out, struct error *err)
{
    struct imatrix *im = mem_alloc(m, sizeof *im);
    if (!im) return fail_memory(err);
    im->mem = m;
    bool gguf = file.size >= 4 && memcmp(file.data, "GGUF", 4) == 0;
    int status = gguf ? read_gguf(im, file, err) : read_older(im, file, err);
    *out = status ? NULL : im;
    if (status) imatrix_free(im);
    return status;
}

void imatrix_free(struct imatrix *im)
{
    if (!im) return;
    mem_free(im->mem, im->entries);
    mem_free(im->mem, im);
}

/* --- weights --------------------------------------------------------------------------------------------------------- */

/* A column that the texts never used still counts a little: other texts may use it. */
static const double LEAST = 1.0 / 1024;

/* Sums of n columns -> weights with a mean of 1. Returns false if a sum is not a finite number from 0 on. */
static bool balance(const uint8_t *sums, uint64_t n, float *out)
{
    double total = 0;
    for (uint64_t i = 0; i < n; i++) {
        float v = load_f32(sums + 4 * i);
        if (!(v >= 0 && v - v == 0)) return false;
        total += (double)v;
    }
    for (uint64_t i = 0; i < n; i++) {
        double share = total > 0 ? (double)load_f32(sums + 4 * i) * ((double)n / total) : 1;
        out[i] = (float)(share * (1 - LEAST) + LEAST);
    }
    return true;
}

int imatrix_weights(const struct imatrix *im, const char *tensor, uint64_t cols, uint64_t matrices, float **out,
                    struct error *err)
{
    const struct entry *e = NULL;
    *out = NULL;
    for (size_t i = 0; i < im->n; i++)
        if (!strcmp(im->entries[i].name, tensor)) e = &im->entries[i];
    if (!e) return OK;
    if (e->n != cols * matrices)
        return fail(err, ERR_PARAM, "imatrix", 0,
                    "The importance matrix has %llu numbers for %s, which needs %llu: it is of another model.",
                    (unsigned long long)e->n, tensor, (unsigned long long)(cols * matrices));
    *out = mem_array(im->mem, e->n, sizeof **out);
    if (!*out) return fail_memory(err);
    for (uint64_t m = 0; m < matrices; m++)
        if (!balance(e->sums + 4 * m * cols, cols, *out + m * cols))
            return fail(err, ERR_PARAM, "imatrix", 0,
                        "The importance matrix has a number for %s that is negative or not finite.", tensor);
    return OK;
}
