/* SPDX-License-Identifier: MIT
 *
 * Detects a file's format by its first bytes, never by its name; guesses the kind of other files. Then runs the phases
 * of the format: the header, and the end of the file.
 */
#include "load/format.h"

#include <string.h>

/* --- formats that are read ------------------------------------------------------------------------------- */

static bool begins(const uint8_t *bytes, size_t n, const char *text)
{
    size_t m = strlen(text);
    return n >= m && memcmp(bytes, text, m) == 0;
}

static bool is_gguf(const uint8_t *b, size_t n) { return begins(b, n, "GGUF"); }

static bool is_ajc1(const uint8_t *b, size_t n) { return begins(b, n, "1cja"); }

/* Accepts a brace in the ninth byte after a number that is not text; or a byte that damaged files have there, after a
 * small number. */
static bool is_safetensors(const uint8_t *b, size_t n)
{
    bool text = true;
    if (n <= 8) return false;
    for (int i = 0; i < 8; i++)
        text &= (b[i] >= 0x20 && b[i] < 0x7F) || b[i] == '\n' || b[i] == '\r' || b[i] == '\t';
    if (b[8] == '{') return !text;
    return load_u32(b + 4) == 0 && load_u32(b) < SAFETENSORS_MOST && memchr(" \t\r\n\xEF\xFE\xFF\0", b[8], 8);
}

static void skip_space(const uint8_t **b, size_t *n)
{
    while (*n && (**b == ' ' || **b == '\n' || **b == '\r' || **b == '\t')) ++*b, --*n;
}

/* Accepts objects, lists of objects, and empty lists. */
static bool is_json(const uint8_t *b, size_t n)
{
    skip_space(&b, &n);
    if (!n || *b != '[') return n && *b == '{';
    b++, n--;
    skip_space(&b, &n);
    return !n || *b == '{' || *b == ']';
}

/* A .tokenizer file has no magic number. Accepts a first token of plausible length. Rejects texts, which have printable
 * bytes where the small numbers are. */
static bool is_vocabulary(const uint8_t *b, size_t n)
{
    return n >= 20 && load_u32(b + 16) <= TOKEN_MOST && (b[3] == 0 || b[3] == 0xFF) && b[7] == 0 && b[11] == 0;
}

/* The order matters: a safetensors file may also look like JSON if its ninth byte is a brace, and a vocabulary is what
 * matches no other format. */
static const struct {
    bool (*is)(const uint8_t *bytes, size_t n); /* n >= 4 */
    const struct format *format;
} formats[] = {
    {is_gguf, &format_gguf}, {is_ajc1, &format_ajc1},           {is_safetensors, &format_safetensors},
    {is_json, &format_json}, {is_vocabulary, &format_tokenizer},
};

/* --- other files ------------------------------------------------------------------------------------------ */

/* A protocol buffer: the version of the intermediate representation, then a string with the producer's name. */
static bool looks_like_onnx(const uint8_t *b, size_t n)
{
    return n >= 4 && b[0] == 0x08 && b[1] >= 1 && b[1] <= 32 && b[2] == 0x12 && b[3] && b[3] < 64;
}

static bool looks_like_pickle(const uint8_t *b, size_t n) { return n >= 3 && b[0] == 0x80 && b[1] >= 2 && b[1] <= 5; }

/* A version, then the length of a specification's name and the name. */
static bool looks_like_ctranslate2(const uint8_t *b, size_t n)
{
    return n >= 17 && b[0] >= 1 && b[0] <= 16 && !b[1] && !b[2] && !b[3] && begins(b + 6, n - 6, "Transformer");
}

/* First bytes of other kinds of files, from position `at`. */
static const struct {
    uint8_t at;
    const char *text, *what;
} others[] = {
    {0, "PK\3\4",
     "a PyTorch checkpoint (pytorch_model.bin), which would run code, a MediaPipe bundle (.task) or another archive; "
     "take the GGUF or safetensors file"},
    {4, "TFL3", "a TensorFlow Lite model; take the GGUF or safetensors file of the same model"},
    {0, "LITERTLM", "a LiteRT-LM model (.litertlm); take the GGUF or safetensors file of the same model"},
    {0, "model_config.yaml", "a NeMo archive (.nemo); export it from NeMo as a Hugging Face folder"},
    {0, "./model_config.yaml", "a NeMo archive (.nemo); export it from NeMo as a Hugging Face folder"},
    {0, "\x89HDF", "an HDF5 file; take the GGUF or safetensors file of the same model"},
    {0, "IQ== 0\n", "a vocabulary in tiktoken's form (qwen.tiktoken), not a model"},
    {0, "#version: ", "a list of merges (merges.txt), not a model; a folder needs its tokenizer.json"},
    {0, "ggla", "a LoRA adapter of an older format, not a model"},
    {0, "ggjt", "an older GGML file; convert it to GGUF"},
    {0, "tjgg", "an older GGML file; convert it to GGUF"},
    {0, "GGML", "an older GGML file; convert it to GGUF"},
    {0, "lmgg", "an older GGML file; convert it to GGUF"},
    {0, "FUGG", "a GGUF file whose bytes are swapped"},
    {0, "\x1f\x8b", "a compressed file; unpack it first"},
    {0, "7z\xbc\xaf", "a compressed file; unpack it first"},
    {0,
     "\xfd"
     "7zXZ",
     "a compressed file; unpack it first"},
    {0, "\x28\xb5\x2f\xfd", "a compressed file; unpack it first"},
};

/* First characters of text files, after white space. */
static const struct {
    const char *text, *what;
} texts[] = {
    {"<?xml version=\"1.0\"?>\n<n", "an OpenVINO model; take the GGUF or safetensors file of the same model"},
    {"<!", "perhaps a web page"},
    {"<h", "perhaps a web page"},
    {"<H", "perhaps a web page"},
    {"<?xml", "XML: a web page, or an OpenVINO model"},
    {"version https://git-lfs", "a Git-LFS pointer, not the file it points to"},
};

static const char *guess(const uint8_t *b, size_t n)
{
    if (looks_like_onnx(b, n)) return "an ONNX model; take the GGUF or safetensors file of the same model";
    if (looks_like_ctranslate2(b, n)) return "a CTranslate2 model; take the GGUF or safetensors file of the same model";
    if (looks_like_pickle(b, n)) return others[0].what;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (n > others[i].at && begins(b + others[i].at, n - others[i].at, others[i].text)) return others[i].what;
    skip_space(&b, &n);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (begins(b, n, texts[i].text)) return texts[i].what;
    return "a file of an unknown format";
}

int format_sniff(const uint8_t *bytes, size_t n, const struct format **out, struct error *err)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        *out = formats[i].format;
        if (formats[i].is(bytes, n)) return OK;
    }
    *out = NULL;
    return fail(err, ERR_FORMAT, "magic", 0, "This file is not a model: this is %s.", guess(bytes, n));
}

/* --- a file's phases ------------------------------------------------------------------------------------ */

int ck_header(struct checkpoint *ck, const uint8_t *bytes, size_t n, size_t *used, struct error *err)
{
    *used = n;
    if (ck->format) return ck->format->header(ck, bytes, n, used, err);
    /* The first bytes are collected before the format is determined, so that chunk sizes never change the result. */
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
    /* an empty object, {}, is a valid side file */
    if (ck->header_size < 4 && is_json(ck->header, ck->header_size)) ck->format = &format_json;
    if (!ck->format && ck->header_size >= 4) {
        int status = format_sniff(ck->header, ck->header_size, &ck->format, err);
        if (status) return status;
        if (!ck->format->read && ck->header_size < SNIFF) ck->format = NULL;
    }
    if (!ck->format)
        return fail(err, ERR_FORMAT, "too-short", ck->header_size,
                    "The file has only %zu bytes; that is too short for a model.", ck->header_size);
    return ck->format->read ? OK : ck->format->ended(ck, err);
}

bool ck_is_side(const struct checkpoint *ck) { return ck->format && ck->format->read; }

int ck_read_side(struct checkpoint *file, struct checkpoint *model, struct error *err)
{
    return file->format->read(file, model, err);
}

int ck_data_ended(const struct checkpoint *ck, struct error *err)
{
    const struct format *f = ck->format;
    char name[QUOTED];
    if (ck->pos == ck->file_size || (ck->pos > ck->file_size && !f->too_long)) return OK;
    if (ck->pos > ck->file_size)
        return fail(err, ERR_FORMAT, f->too_long, ck->file_size,
                    "The file has %llu bytes; by its header it should have %llu.", (unsigned long long)ck->pos,
                    (unsigned long long)ck->file_size);
    return fail(err, ERR_FORMAT, f->too_short ? f->too_short : "truncated", ck->pos,
                "The file ends at byte %llu, before the end of the tensor \"%.64s\"; it should have %llu bytes.",
                (unsigned long long)ck->pos, quoted(ck_view(ck, ck->tensors[ck->current].name), name),
                (unsigned long long)ck->file_size);
}
