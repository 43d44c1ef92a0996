/* SPDX-License-Identifier: MIT
 *
 * The text build, for pages whose models are GGUF files without vision. It has no vision, reads no other format and no
 * types of weights/grids.c, has no kernels of FULL_LAYOUTS, makes no profile and waits for no device, and is a quarter
 * smaller than the full build. It is linked with this file in place of the files that the Makefile lists as FULL, and
 * no code reaches other names of those files.
 *
 * js/worker/start.js chooses a build before it opens the model's files. If a file of another format or with weights of
 * those types comes, the text build refuses its header by ERR_UNSUPPORTED "build", and the full build replaces it.
 *
 * The build's mark comes after the interface version (wasm.c), because parts of a custom section stand in the order of
 * their files.
 */
#include "compute/cpu/simd.h"
#include "compute/profile.h"
#include "engine/encode.h"
#include "engine/projector.h"
#include "load/format.h"
#include "models/bind_parts.h"

__asm__(".section .custom_section.quern,\"\",@\n"
        ".ascii \" text\"\n"
        ".text\n");

bool quern_awaits(const struct quern_engine *e) { return (void)e, false; }
void quern_arrive(struct quern_engine *e, double ms) { (void)e, (void)ms; }

bool quern_sees(const struct quern_engine *e) { return (void)e, false; }
int32_t quern_media_pad(const struct quern_engine *e, enum quern_medium kind) { return (void)e, (void)kind, -1; }

int projector_open(struct quern_engine *e, struct error *err) { return (void)e, (void)err, OK; }
int projector_bind(struct quern_engine *e, struct error *err) { return (void)e, (void)err, OK; }
int projector_begin(struct quern_engine *e, uint64_t size, struct error *err)
{
    (void)e, (void)size;
    return fail(err, ERR_UNSUPPORTED, "no-vision", 0, "This build of the engine has no vision.");
}
bool projector_awaited(const struct quern_engine *e) { return (void)e, false; }
uint64_t projector_weights(const struct quern_engine *e) { return (void)e, 0; }
uint64_t projector_values(const struct quern_engine *e) { return (void)e, 0; }
uint64_t projector_scratch(const struct quern_engine *e) { return (void)e, 0; }
int projector_rows(const struct quern_engine *e) { return (void)e, 0; }
int projector_cols(const struct quern_engine *e) { return (void)e, 0; }
int projector_reserve(struct quern_engine *e, struct handle first) { return (void)e, (void)first, OK; }
void projector_free(struct quern_engine *e) { (void)e; }

void encode_simd(struct kernels *k) { (void)k; }
void full_simd(struct kernels *k) { (void)k; }

/* GGUF files have scales beside their codes, and columns in their order. */
void pack_ordered(const struct dtype *type, const uint8_t *rows, size_t row_bytes, int n_rows, int cols,
                  const uint32_t *order, uint8_t *panel)
{
    (void)type, (void)rows, (void)row_bytes, (void)n_rows, (void)cols, (void)order, (void)panel;
}
void pack_part(const struct dtype *type, uint8_t *panel, int r, int col, int n_cols, enum weight_part part,
               float value)
{
    (void)type, (void)panel, (void)r, (void)col, (void)n_cols, (void)part, (void)value;
}
int parts_wanted(const struct dtype *type) { return (void)type, HAS_ROWS; }
int parts_unfold(const struct checkpoint *ck, struct tensor *t, const char *weight, const struct sink *sink,
                 struct error *err)
{
    return (void)ck, (void)t, (void)weight, (void)sink, (void)err, OK;
}
int parts_bind(struct checkpoint *ck, const char *weight, int what, int *there, struct sink *sink, struct error *err)
{
    return (void)ck, (void)weight, (void)what, (void)there, (void)sink, (void)err, OK;
}
int parts_bind_order(struct checkpoint *ck, const char *weight, const struct sink *sink, struct error *err)
{
    return (void)ck, (void)weight, (void)sink, (void)err, OK;
}
uint64_t parts_cost(const struct binder *b) { return (void)b, 0; }
int parts_take(struct binder *b, struct error *err) { return (void)b, (void)err, OK; }
void parts_free(struct binder *b) { (void)b; }

/* Types of the full build are known by name. */
#define LACKED(name, id, block, bytes, ...) {#name, id, block, bytes, LAYOUT_FULL, NULL},
const struct dtype full_types[FULL_TYPES] = {EACH_FULL_TYPE(LACKED)};

bool encode_awaited(const struct quern_engine *e) { return (void)e, false; }
bool encode_part(struct quern_engine *e) { return (void)e, false; }

struct profile *profile_new(struct mem *m, struct pool *pool) { return (void)m, (void)pool, NULL; }
uint64_t profile_cost_bytes(const struct profile *p, int n_layers) { return (void)p, (void)n_layers, 0; }
int profile_reserve(struct profile *p, int n_layers, const struct kv_shape *kv)
{
    return (void)p, (void)n_layers, (void)kv, OK;
}
void profile_free(struct profile *p) { (void)p; }
void profile_step(struct profile *p, enum profile_phase phase, int rows, int drafts)
{
    (void)p, (void)phase, (void)rows, (void)drafts;
}
void profile_layer(struct profile *p, int layer) { (void)p, (void)layer; }

static int refuse(struct error *err)
{
    return fail(err, ERR_UNSUPPORTED, "build", 0, "This build of the engine reads only GGUF files.");
}
static int header(struct checkpoint *ck, const uint8_t *bytes, size_t n, size_t *used, struct error *err)
{
    return (void)ck, (void)bytes, (void)n, (void)used, refuse(err);
}
static int read(struct checkpoint *file, struct checkpoint *model, struct error *err)
{
    return (void)file, (void)model, refuse(err);
}

const struct format format_safetensors = {.name = "safetensors", .header = header};
const struct format format_ajc1 = {.name = "ajc1", .header = header};
const struct format format_json = {.name = "json", .header = header, .read = read};
const struct format format_tokenizer = {.name = "tokenizer", .header = header, .read = read};
