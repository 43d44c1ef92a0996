/* SPDX-License-Identifier: MIT
 *
 * Computes llama.cpp's logits of a prompt with images, for int8-images.mjs: float32 [positions, vocabulary], zeros for
 * the rows of images. One thread, an f32 cache, no flash attention.
 *
 *   mtmd_logits MODEL PROJECTOR PROMPT-FILE OUT [WIDTH HEIGHT RGB-FILE]...
 *
 * PROMPT-FILE has <__media__> in place of each image.
 */
#include "llama.h"
#include "mtmd.h"
#include "mtmd-helper.h"

#include <stdio.h>
#include <stdlib.h>

enum { CONTEXT = 1024, IMAGES_MOST = 16 };

static void quiet(enum ggml_log_level level, const char *text, void *data)
{
    (void)data;
    if (level >= GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static void fail(const char *what)
{
    fprintf(stderr, "mtmd_logits: %s\n", what);
    exit(1);
}

static char *read_all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f) fail(path);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *bytes = calloc(1, *n + 1);
    if (!bytes || fread(bytes, 1, *n, f) != *n) fail(path);
    fclose(f);
    return bytes;
}

static struct llama_context *open_context(struct llama_model *model)
{
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = p.n_batch = p.n_ubatch = CONTEXT;
    p.n_threads = p.n_threads_batch = 1;
    p.type_k = p.type_v = GGML_TYPE_F32;
    p.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    return llama_init_from_model(model, p);
}

static mtmd_context *open_projector(const char *path, const struct llama_model *model)
{
    struct mtmd_context_params p = mtmd_context_params_default();
    p.use_gpu = p.print_timings = p.warmup = false;
    p.n_threads = 1;
    p.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    p.image_min_tokens = 1;
    p.image_max_tokens = 4096;
    return mtmd_init_from_file(path, model, p);
}

static void text_chunk(struct llama_context *context, const mtmd_input_chunk *chunk, llama_pos *past, size_t vocab,
                       FILE *out)
{
    size_t n;
    const llama_token *tokens = mtmd_input_chunk_get_tokens_text(chunk, &n);
    struct llama_batch b = llama_batch_init((int)n, 0, 1);
    b.n_tokens = (int)n;
    for (size_t i = 0; i < n; i++) {
        b.token[i] = tokens[i];
        b.pos[i] = (*past)++;
        b.n_seq_id[i] = 1;
        b.seq_id[i][0] = 0;
        b.logits[i] = 1;
    }
    if (llama_decode(context, b)) fail("decoding text");
    for (size_t i = 0; i < n; i++) fwrite(llama_get_logits_ith(context, (int)i), sizeof(float), vocab, out);
    llama_batch_free(b);
}

static void image_chunk(mtmd_context *projector, struct llama_context *context, const mtmd_input_chunk *chunk,
                        llama_pos *past, size_t vocab, FILE *out)
{
    if (mtmd_encode_chunk(projector, chunk)) fail("encoding");
    if (mtmd_helper_decode_image_chunk(projector, context, chunk, mtmd_get_output_embd(projector), *past, 0, CONTEXT,
                                       past, NULL, NULL))
        fail("decoding an image");
    size_t n = mtmd_input_chunk_get_n_tokens(chunk);
    float *none = calloc(n * vocab, sizeof *none);
    if (!none) fail("memory");
    fwrite(none, sizeof *none, n * vocab, out);
    free(none);
}

int main(int argc, char **argv)
{
    if (argc < 5 || argc > 5 + 3 * IMAGES_MOST) fail("MODEL PROJECTOR PROMPT-FILE OUT [WIDTH HEIGHT RGB-FILE]...");
    llama_log_set(quiet, NULL);
    mtmd_log_set(quiet, NULL);
    llama_backend_init();
    ggml_backend_load_all();
    struct llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
    struct llama_context *context = model ? open_context(model) : NULL;
    mtmd_context *projector = context ? open_projector(argv[2], model) : NULL;
    if (!projector) fail("these files are not taken");
    const mtmd_bitmap *images[IMAGES_MOST];
    size_t n_images = 0, n;
    for (char **at = argv + 5; at + 2 < argv + argc; at += 3)
        images[n_images++] =
            mtmd_bitmap_init((uint32_t)atoi(at[0]), (uint32_t)atoi(at[1]), (unsigned char *)read_all(at[2], &n));
    char *text = read_all(argv[3], &n);
    mtmd_input_text prompt = {text, n, false, true};
    mtmd_input_chunks *chunks = mtmd_input_chunks_init();
    if (mtmd_tokenize(projector, chunks, &prompt, images, n_images)) fail("the prompt");
    FILE *out = fopen(argv[4], "wb");
    if (!out) fail(argv[4]);
    size_t vocab = (size_t)llama_vocab_n_tokens(llama_model_get_vocab(model));
    llama_pos past = 0;
    for (size_t i = 0; i < mtmd_input_chunks_size(chunks); i++) {
        const mtmd_input_chunk *chunk = mtmd_input_chunks_get(chunks, i);
        if (mtmd_input_chunk_get_type(chunk) == MTMD_INPUT_CHUNK_TYPE_TEXT)
            text_chunk(context, chunk, &past, vocab, out);
        else image_chunk(projector, context, chunk, &past, vocab, out);
    }
    return fclose(out) != 0;
}
