/* SPDX-License-Identifier: MIT
 *
 * What a file is, by its first bytes and never by its name: the formats that the engine reads, and a guess at others. Then its phases,
 * as its format says: the header, and how it ends.
 */
#include "load/format.h"

#include <string.h>

/* In this order: what looks like a safetensors file may also look like JSON with a brace in its ninth place. */
static const struct format *const formats[] = {&format_gguf, &format_ajc1, &format_safetensors, &format_json, &format_tokenizer};

static bool begins(const uint8_t *bytes, size_t n, const char *text)
{
    size_t m = strlen(text);
    return n >= m && memcmp(bytes, text, m) == 0;
}

/* A protocol buffer: the version of the intermediate representation, then a string of the producer's name. */
static bool looks_like_onnx(const uint8_t *b, size_t n)
{
    return n >= 4 && b[0] == 0x08 && b[1] >= 1 && b[1] <= 32 && b[2] == 0x12 && b[3] && b[3] < 64;
}

static bool looks_like_pickle(const uint8_t *b, size_t n) { return n >= 3 && b[0] == 0x80 && b[1] >= 2 && b[1] <= 5; }

static const char *guess(const uint8_t *b, size_t n)
{
    if (begins(b, n, "PK\3\4") || looks_like_pickle(b, n))
        return "this is a PyTorch checkpoint (pytorch_model.bin) or another archive: pickled, so reading it would run code; take the GGUF or "
               "safetensors file";
    if (looks_like_onnx(b, n)) return "this is an ONNX model; take the GGUF or safetensors file of the same model";
    if (n >= 8 && begins(b + 4, n - 4, "TFL3")) return "this is a TensorFlow Lite model; take the GGUF or safetensors file of the same model";
    if (begins(b, n, "\x89HDF")) return "this is an HDF5 file; take the GGUF or safetensors file of the same model";
    if (begins(b, n, "ggla")) return "this is a LoRA adapter of an older format, not a model";
    if (begins(b, n, "ggjt") || begins(b, n, "tjgg") || begins(b, n, "GGML") || begins(b, n, "lmgg"))
        return "this is an older GGML file; convert it to GGUF";
    if (begins(b, n, "FUGG")) return "this GGUF file is byte-swapped";
    if (begins(b, n, "\x1f\x8b") || begins(b, n, "7z\xbc\xaf") || begins(b, n, "\xfd" "7zXZ") || begins(b, n, "\x28\xb5\x2f\xfd"))
        return "this is a compressed file; unpack it first";
    while (n && (*b == ' ' || *b == '\n' || *b == '\r' || *b == '\t')) b++, n--;
    if (begins(b, n, "<!") || begins(b, n, "<h") || begins(b, n, "<H") || begins(b, n, "<?xml")) return "this looks like a web page";
    if (begins(b, n, "version https://git-lfs")) return "this is a Git-LFS pointer, not the file it points to";
    return "the first bytes are no known model format";
}

int format_sniff(const uint8_t *bytes, size_t n, const struct format **out, struct error *err)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        *out = formats[i];
        if (formats[i]->sniff(bytes, n)) return OK;
    }
    *out = NULL;
    return fail(err, ERR_FORMAT, "magic", 0, "This file is not a model: %s.", guess(bytes, n));
}

/* --- a file's phases ------------------------------------------------------------------------------------ */

int ck_header(struct checkpoint *ck, const uint8_t *bytes, size_t n, size_t *used, struct error *err)
{
    *used = n;
    if (ck->format) return ck->format->header(ck, bytes, n, used, err);
    /* The first bytes are collected before the format is named, so that a guess never depends on chunks. */
    size_t first = SNIFF - ck->header_size < n ? SNIFF - ck->header_size : n;
    int status = ck_keep(ck, bytes, first, err);
    if (status || ck->header_size < SNIFF) return status ? status : NEED_MORE;
    status = format_sniff(ck->header, ck->header_size, &ck->format, err);
    if (status) return status;
    status = ck->format->header(ck, bytes + first, n - first, used, err);
    *used += first;
    return status;
}

int ck_header_ended(struct checkpoint *ck, struct error *err)
{
    if (!ck->format && ck->header_size >= 4) {
        int status = format_sniff(ck->header, ck->header_size, &ck->format, err);
        if (status) return status;
        if (!ck->format->read && ck->header_size < SNIFF) ck->format = NULL;
    }
    if (!ck->format)
        return fail(err, ERR_FORMAT, "too-short", ck->header_size, "The file has only %zu bytes; that is too short for a model.", ck->header_size);
    return ck->format->read ? OK : ck->format->ended(ck, err);
}

bool ck_is_side(const struct checkpoint *ck) { return ck->format && ck->format->read; }

int ck_read_side(struct checkpoint *file, struct checkpoint *model, struct error *err) { return file->format->read(file, model, err); }

int ck_data_ended(const struct checkpoint *ck, struct error *err)
{
    const struct format *f = ck->format;
    char name[QUOTED];
    if (ck->pos == ck->file_size || (ck->pos > ck->file_size && !f->too_long)) return OK;
    if (ck->pos > ck->file_size)
        return fail(err, ERR_FORMAT, f->too_long, ck->file_size, "The file has %llu bytes; by its header it should have %llu.",
                    (unsigned long long)ck->pos, (unsigned long long)ck->file_size);
    return fail(err, ERR_FORMAT, f->too_short ? f->too_short : "truncated", ck->pos,
                "The file ends at byte %llu, before the end of the tensor \"%.64s\"; it should have %llu bytes.", (unsigned long long)ck->pos,
                quoted(ck_view(ck, ck->tensors[ck->current].name), name), (unsigned long long)ck->file_size);
}
