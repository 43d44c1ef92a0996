/* SPDX-License-Identifier: MIT
 *
 * Weights that other programs have made smaller, in a Hugging Face folder: which method it was, by config.json or,
 * where that is silent, by the names of tensors, so that a refusal names it. Of all these only FP8 with scales of
 * blocks is read.
 */
#include "load/formats/hf.h"

#include <string.h>

/* What the object says of itself. */
struct said {
    struct bytes method;
    bool blocks, others; /* scales of blocks of 128 x 128, and of other ones */
    bool bits, group, loads; /* keys of MLX (the first two), and of older bitsandbytes */
};

static void refuse(struct json_reader *r, const char *name)
{
    if (!r->status)
        r->status = fail(
            r->err, ERR_UNSUPPORTED, "quantisation", r->pos,
            "The weights are quantised with %.64s, which this version does not read; take the model's GGUF file, or its folder in "
            "BF16.",
            name);
}

/* Short names are abbreviations (GPTQ, AWQ, EXL2, HQQ), others words (bitsandbytes, compressed-tensors). */
static void refuse_method(struct json_reader *r, struct bytes method)
{
    char name[QUOTED];
    quoted(method, name);
    for (char *c = name; method.size <= 4 && *c; c++)
        if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 32);
    refuse(r, name);
}

/* Blocks of 128 x 128 only, as published. */
static void read_blocks(struct said *s, struct json_reader *r)
{
    int64_t size;
    s->blocks = true;
    if (!json_open(r, JSON_ARRAY)) return;
    while (json_more(r) && json_integer(r, &size)) s->others = s->others || size != 128;
}

static void read_said(struct said *s, struct json_reader *r)
{
    struct bytes key;
    while (json_key(r, &key)) {
        s->bits = s->bits || bytes_equal(key, "bits");
        s->group = s->group || bytes_equal(key, "group_size");
        s->loads = s->loads || bytes_equal(key, "load_in_4bit") || bytes_equal(key, "load_in_8bit");
        if (bytes_equal(key, "quant_method") && json_peek(r) == JSON_STRING) json_string_value(r, &s->method);
        else if (bytes_equal(key, "weight_block_size") && json_peek(r) == JSON_ARRAY) read_blocks(s, r);
        else json_skip(r);
    }
}

void hf_read_quantization(struct json_reader *r)
{
    const struct bytes none = {NULL, 0};
    struct said s = {.method = none};
    if (hf_null(r) || !json_open(r, JSON_OBJECT)) return;
    read_said(&s, r);
    if (r->status) return;
    if (s.method.data && !bytes_equal(s.method, "fp8")) refuse_method(r, s.method);
    else if (!s.method.data && s.loads) refuse(r, "bitsandbytes");
    else if (!s.method.data && s.bits && s.group) refuse(r, "MLX");
    else if (s.others)
        hf_unsupported(r, "quantisation", "Scales of blocks that are not 128 x 128 are not supported", none);
    else if (!s.blocks)
        hf_unsupported(r, "quantisation", "Of FP8 weights only those with scales of blocks are supported", none);
}

/* --- keys beside quantization_config ------------------------------------------------------------------------- */

static const char *const keys[] = {"quantization", "compression_config", NULL};

static void read_key(void *state, struct json_reader *r, int key)
{
    (void)state;
    if (hf_null(r)) return;
    if (key == 1) hf_read_quantization(r);
    /* which repeats it as quantization_config, without its name */
    else if (json_peek(r) == JSON_OBJECT) refuse(r, "MLX");
    else json_skip(r);
}

static int done(void *state, struct checkpoint *model, struct error *err)
{
    (void)state, (void)model, (void)err;
    return OK;
}

const struct hf_reader hf_quantization = {keys, read_key, done};

/* --- tensors ------------------------------------------------------------------------------------------------- */

/* Ends of names that only one way of storing has. */
static const struct {
    const char *end, *name;
} tensors[] = {
    {".qweight", "GPTQ or AWQ"},
    {".weight_packed", "compressed-tensors"},
    {".q_weight", "EXL2"},
    {".trellis", "EXL3"},
    {".biases", "MLX"},
    {".W_q", "HQQ"},
    {".weight._data", "quanto"},
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
