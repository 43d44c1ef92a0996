/* SPDX-License-Identifier: MIT
 *
 * Weights of a Hugging Face folder that other programs have quantised. The method comes from config.json or, if that
 * does not name it, from the names of tensors, so that the error can name the method. Supported are FP8 with block
 * scales, MLX, GPTQ, AWQ and compressed-tensors. The widths and groups of codes follow from the shapes of tensors,
 * because config.json may be wrong.
 */
#include "load/formats/hf.h"

#include <string.h>

/* Contents of the quantization_config object. */
struct said {
    struct bytes method, version, form; /* form: of GPTQ's and AWQ's tensors */
    struct bytes format;                /* of compressed-tensors */
    bool blocks, others; /* block scales of 128 x 128, and of another size */
    bool bits, group, loads; /* keys of MLX (the first two), and of older bitsandbytes */
    bool changed; /* activations or weights are transformed, or weights are sparse */
};

static struct bytes text_of(const char *text) { return (struct bytes){(const uint8_t *)text, strlen(text)}; }

static void refuse(struct json_reader *r, const char *name)
{
    if (!r->status)
        r->status = fail(
            r->err, ERR_UNSUPPORTED, "quantisation", r->pos,
            "The weights are quantised with %.64s, which this version does not read; take the model's GGUF file, or its folder in "
            "BF16.",
            name);
}

/* Short names are abbreviations and get capitals (GPTQ, AWQ, EXL2, HQQ); others are words (bitsandbytes,
 * compressed-tensors). */
static void refuse_method(struct json_reader *r, struct bytes method)
{
    char name[QUOTED];
    quoted(method, name);
    for (char *c = name; method.size <= 4 && *c; c++)
        if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 32);
    refuse(r, name);
}

/* Published models have blocks of 128 x 128 only. */
static void read_blocks(struct said *s, struct json_reader *r)
{
    int64_t size;
    s->blocks = true;
    if (!json_open(r, JSON_ARRAY)) return;
    while (json_more(r) && json_integer(r, &size)) s->others = s->others || size != 128;
}

/* An object that is empty unless something is done with the weights that this engine does not undo. */
static void read_change(struct said *s, struct json_reader *r)
{
    struct bytes key, text = {NULL, 0};
    bool dense = false, some = false;
    if (json_peek(r) != JSON_OBJECT) {
        json_skip(r);
        return;
    }
    json_open(r, JSON_OBJECT);
    while (json_key(r, &key)) {
        some = true;
        if (bytes_equal(key, "format") && json_peek(r) == JSON_STRING) {
            json_string_value(r, &text);
            dense = bytes_equal(text, "dense");
        } else json_skip(r);
    }
    s->changed = s->changed || (some && !dense);
}

static void read_said(struct said *s, struct json_reader *r)
{
    struct bytes key;
    while (json_key(r, &key)) {
        s->bits = s->bits || bytes_equal(key, "bits");
        s->group = s->group || bytes_equal(key, "group_size");
        s->loads = s->loads || bytes_equal(key, "load_in_4bit") || bytes_equal(key, "load_in_8bit");
        struct bytes *text = bytes_equal(key, "quant_method")        ? &s->method
                             : bytes_equal(key, "version")           ? &s->version
                             : bytes_equal(key, "checkpoint_format") ? &s->form
                             : bytes_equal(key, "format")            ? &s->format
                                                                     : NULL;
        enum json_kind kind = json_peek(r);
        if (text && kind == JSON_STRING) json_string_value(r, text);
        else if (bytes_equal(key, "transform_config") || bytes_equal(key, "sparsity_config")) read_change(s, r);
        else if (bytes_equal(key, "weight_block_size") && kind == JSON_ARRAY) read_blocks(s, r);
        else json_skip(r);
    }
}

static void read_gptq(const struct said *s, struct json_reader *r, struct hf_quantized *out)
{
    bool second = bytes_equal(s->form, "gptq_v2");
    if (s->form.data && !second && !bytes_equal(s->form, "gptq"))
        hf_unsupported(r, "quantisation", "Weights of GPTQ in this form are not supported", s->form);
    out->method = second ? "gptq_v2" : "gptq";
}

static void read_awq(const struct said *s, struct json_reader *r, struct hf_quantized *out)
{
    struct bytes form = s->version.data ? s->version : s->form;
    if (form.data && !bytes_equal(form, "gemm") && !bytes_equal(form, "GEMM"))
        hf_unsupported(r, "quantisation", "Weights of AWQ in this form are not supported", form);
    out->method = "awq";
}

/* The kind of each tensor follows from the tensors beside it; mixtures have a format for each group of them. */
static void read_compressed(const struct said *s, struct json_reader *r, struct hf_quantized *out)
{
    static const char *const formats[] = {"pack-quantized",  "int-quantized",   "float-quantized",
                                          "naive-quantized", "mixed-precision", "dense"};
    bool known = !s->format.data;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) known = known || bytes_equal(s->format, formats[i]);
    if (!known)
        hf_unsupported(r, "quantisation", "Weights of compressed-tensors in this format are not supported", s->format);
    else if (s->changed)
        hf_unsupported(r, "quantisation",
                       "Weights of compressed-tensors that are sparse, or transformed beside their quantisation, are not supported",
                       (struct bytes){NULL, 0});
    out->method = "compressed-tensors";
}

void hf_read_quantization(struct json_reader *r, struct hf_quantized *out)
{
    const struct bytes none = {NULL, 0};
    struct said s = {.method = none};
    if (hf_null(r) || !json_open(r, JSON_OBJECT)) return;
    read_said(&s, r);
    if (r->status) return;
    bool mlx = !s.method.data && s.bits && s.group;
    if (bytes_equal(s.method, "gptq")) read_gptq(&s, r, out);
    else if (bytes_equal(s.method, "awq")) read_awq(&s, r, out);
    else if (bytes_equal(s.method, "compressed-tensors")) read_compressed(&s, r, out);
    else if (s.method.data && !bytes_equal(s.method, "fp8")) refuse_method(r, s.method);
    else if (!s.method.data && s.loads) refuse(r, "bitsandbytes");
    else if (!mlx && s.others)
        hf_unsupported(r, "quantisation", "Block scales other than 128 x 128 are not supported", none);
    else if (!mlx && !s.blocks)
        hf_unsupported(r, "quantisation", "FP8 weights without block scales are not supported", none);
    else out->method = mlx ? "mlx" : "fp8";
}

int hf_put_quantization(const struct hf_quantized *q, struct checkpoint *model, struct error *err)
{
    static const char key[] = "general.quantized_by";
    if (!q->method || ck_seek(model, text_of(key))) return OK;
    return ck_put_text(model, key, text_of(q->method), err);
}

/* --- keys beside quantization_config ------------------------------------------------------------------------- */

/* MLX writes its quantization_config under the first name too. */
static const char *const keys[] = {"quantization", "compression_config", NULL};

struct hf_quantized *hf_quantized_new(struct mem *m) { return mem_alloc(m, sizeof(struct hf_quantized)); }

static void read_key(void *state, struct json_reader *r, int key)
{
    if (key == 1 || json_peek(r) == JSON_OBJECT) hf_read_quantization(r, state);
    else json_skip(r);
}

static int done(void *state, struct checkpoint *model, struct error *err)
{
    return hf_put_quantization(state, model, err);
}

const struct hf_reader hf_quantization = {keys, read_key, done};

/* --- tensors ------------------------------------------------------------------------------------------------- */

/* Name endings that only one quantisation method uses. */
static const struct {
    const char *end, *name;
} tensors[] = {
    {".q_weight", "EXL2"},
    {".trellis", "EXL3"},
    {".W_q", "HQQ"},
    {".weight._data", "quanto"},
    {"_weight_qdata", "torchao"},
    {".weight.absmax", "bitsandbytes"},
    {".weight.quant_map", "bitsandbytes"},
    {".SCB", "bitsandbytes"},
};

const char *hf_quantized_tensor(struct bytes name)
{
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        size_t n = strlen(tensors[i].end);
        if (name.size > n && memcmp(name.data + name.size - n, tensors[i].end, n) == 0) return tensors[i].name;
    }
    return NULL;
}
