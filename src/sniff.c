/* SPDX-License-Identifier: MIT
 *
 * What a file is, by its first bytes and never by its name: the formats that the engine reads, and a guess at others.
 */
#include "format.h"

#include <string.h>

/* In this order: what looks like a safetensors file may also look like JSON with a brace in its ninth place. */
static const struct format *const formats[] = {&format_gguf, &format_ajc1, &format_safetensors, &format_json, &format_tokenizer};

static bool begins(const uint8_t *bytes, size_t n, const char *text)
{
    size_t m = strlen(text);
    return n >= m && memcmp(bytes, text, m) == 0;
}

/* A protocol buffer: the version of the intermediate representation, then a string of the producer's name. */
static bool looks_like_onnx(const uint8_t *b, size_t n) { return n >= 4 && b[0] == 0x08 && b[1] >= 1 && b[1] <= 32 && b[2] == 0x12 && b[3] && b[3] < 64; }

static bool looks_like_pickle(const uint8_t *b, size_t n) { return n >= 3 && b[0] == 0x80 && b[1] >= 2 && b[1] <= 5; }

static const char *guess(const uint8_t *b, size_t n)
{
    if (begins(b, n, "PK\3\4") || looks_like_pickle(b, n))
        return "this is a PyTorch checkpoint (pytorch_model.bin) or another archive: pickled, so reading it would run code; take the GGUF or safetensors file";
    if (looks_like_onnx(b, n)) return "this is an ONNX model; take the GGUF or safetensors file of the same model";
    if (n >= 8 && begins(b + 4, n - 4, "TFL3")) return "this is a TensorFlow Lite model; take the GGUF or safetensors file of the same model";
    if (begins(b, n, "\x89HDF")) return "this is an HDF5 file; take the GGUF or safetensors file of the same model";
    if (begins(b, n, "ggla")) return "this is a LoRA adapter of an older format, not a model";
    if (begins(b, n, "ggjt") || begins(b, n, "tjgg") || begins(b, n, "GGML") || begins(b, n, "lmgg")) return "this is an older GGML file; convert it to GGUF";
    if (begins(b, n, "FUGG")) return "this GGUF file is byte-swapped";
    if (begins(b, n, "\x1f\x8b") || begins(b, n, "7z\xbc\xaf") || begins(b, n, "\xfd" "7zXZ") || begins(b, n, "\x28\xb5\x2f\xfd")) return "this is a compressed file; unpack it first";
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
