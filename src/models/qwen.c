/* SPDX-License-Identifier: MIT
 *
 * Which tokenizers are Qwen's.
 */
#include "models/qwen.h"

#include "load/metadata.h"

/* They end a reply in every file: published ones name only one of them. */
static const char *const ends[] = {"<|im_end|>", "<|endoftext|>", NULL};

static int check_split(const struct checkpoint *ck, struct error *err)
{
    struct bytes pre;
    char text[QUOTED];
    int status = meta_text(ck, "tokenizer.ggml.pre", true, &pre, err);
    if (status || bytes_equal(pre, "qwen2")) return status;
    return fail(err, ERR_UNSUPPORTED, "tokenizer", 0, "The pre-tokenizer \"%.64s\" is not supported; Qwen3's is qwen2.", quoted(pre, text));
}

int qwen_tokenizer(const struct checkpoint *ck, struct model_tokenizer *out, struct error *err)
{
    struct bytes kind;
    char text[QUOTED];
    int status = meta_text(ck, "tokenizer.ggml.model", true, &kind, err);
    *out = (struct model_tokenizer){.scored = bytes_equal(kind, "scores"), .ends = ends};
    if (status || out->scored) return status;
    if (bytes_equal(kind, "gpt2")) return check_split(ck, err);
    return fail(err, ERR_UNSUPPORTED, "tokenizer", 0, "The tokenizer \"%.64s\" is not supported; Qwen3's is byte-level BPE (gpt2).",
                quoted(kind, text));
}
