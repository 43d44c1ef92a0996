/* SPDX-License-Identifier: MIT
 *
 * How to know a Qwen3 model under an older name, and Qwen's tokenizer, named or not.
 */
#include "models/qwen.h"

#include "base/reader.h"
#include "load/metadata.h"

/* Programs that knew no Qwen3 yet wrote the name before. What it is, its attention tells: Qwen3's has norms of queries and keys. Where the
 * first file has no attention at all, binding finds out. */
int qwen_claim(const struct checkpoint *ck, struct bytes name, const char **prefix, struct error *err)
{
    static const char *const older[] = {"qwen2", "qwen"};
    for (size_t i = 0; i < sizeof older / sizeof *older; i++) {
        if (!bytes_equal(name, older[i])) continue;
        if (ck_find(ck, "blk.0.attn_q.weight") && !ck_find(ck, "blk.0.attn_q_norm.weight"))
            return fail(err, ERR_UNSUPPORTED, "architecture", 0,
                        "This is a Qwen2 model (\"%s\", without norms of queries and keys), which this version does not run; take a Qwen3 model.",
                        older[i]);
        *prefix = older[i];
    }
    return OK;
}

/* --- the tokenizer -------------------------------------------------------------------------------------------- */

/* They end a reply in every file: published ones name only one of them. */
static const char *const ends[] = {"<|im_end|>", "<|endoftext|>", NULL};

/* A token for each byte, one for each merge, and then these: so are the vocabularies of all Qwen models, and of no other known one. */
static bool is_qwens(const struct checkpoint *ck)
{
    static const char *const first[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    enum { BYTES = 256, SPECIAL = sizeof first / sizeof *first };
    struct bytes tokens, merges, text;
    uint64_t n_tokens, n_merges, size;
    if (meta_array(ck, "tokenizer.ggml.tokens", META_STRING, true, &tokens, &n_tokens, NULL) ||
        meta_array(ck, "tokenizer.ggml.merges", META_STRING, true, &merges, &n_merges, NULL))
        return false;
    struct cursor c = {tokens.data, tokens.size, 0};
    uint64_t begin = BYTES + n_merges;
    for (uint64_t id = 0; id < begin + SPECIAL; id++)
        if (!take_u64(&c, &size) || !take_bytes(&c, size, &text) || (id >= begin && !bytes_equal(text, first[id - begin]))) return false;
    return true;
}

/* Whether a pre-tokenizer cuts text as Qwen2's does. The names are those that llama.cpp's loader of vocabularies (src/llama-vocab.cpp) gives the same
 * expression, each without a prefix, a space or a token of its own. "laguna", "ufakzeka", "seed-coder", "bailingmoe" and "qwen35" are near, but not
 * the same. */
static bool is_known_split(struct bytes name)
{
    static const char *const splits[] = {"qwen2", "deepseek-r1-qwen", "f2llmv2", "kormo", "megrez", "hunyuan", "solar-open", "stablelm2", "grok-2"};
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
        if (bytes_equal(name, splits[i])) return true;
    return false;
}

static int check_split(const struct checkpoint *ck, struct model_tokenizer *t, struct error *err)
{
    struct bytes pre;
    char text[QUOTED];
    int status = meta_text(ck, "tokenizer.ggml.pre", false, &pre, err);
    if (status || is_known_split(pre)) return status;
    if (pre.data)
        return fail(err, ERR_UNSUPPORTED, "tokenizer", 0, "The pre-tokenizer \"%.64s\" is not supported; Qwen3's is qwen2.", quoted(pre, text));
    t->split_assumed = is_qwens(ck);
    if (t->split_assumed) return OK;
    return fail(err, ERR_FORMAT, "missing", 0,
                "The metadata key tokenizer.ggml.pre is missing, and the vocabulary is not like Qwen's; take a newer copy of the model.");
}

int qwen_tokenizer(const struct checkpoint *ck, struct model_tokenizer *out, struct error *err)
{
    struct bytes kind;
    char text[QUOTED];
    int status = meta_text(ck, "tokenizer.ggml.model", true, &kind, err);
    *out = (struct model_tokenizer){.scored = bytes_equal(kind, "scores"), .ends = ends};
    if (status || out->scored) return status;
    if (bytes_equal(kind, "gpt2")) return check_split(ck, out, err);
    return fail(err, ERR_UNSUPPORTED, "tokenizer", 0, "The tokenizer \"%.64s\" is not supported; Qwen3's is byte-level BPE (gpt2).",
                quoted(kind, text));
}

int qwen_vl_tokenizer(const struct checkpoint *ck, struct model_tokenizer *out, struct error *err)
{
    static const char *const pads[] = {"<|image_pad|>", "<|video_pad|>"};
    int status = qwen_tokenizer(ck, out, err);
    out->pads = pads;
    return status;
}
