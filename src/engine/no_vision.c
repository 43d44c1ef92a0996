/* SPDX-License-Identifier: MIT
 *
 * An engine without vision, a tenth smaller, for pages with text only. It is linked with this file in place of the
 * files that the Makefile lists as VISION. No model has vision then, a folder's vision part is skipped, and no code
 * reaches other names of those files. js/worker/start.js chooses the build before it opens the model's files.
 *
 * The build's mark comes after the interface version (wasm.c), because parts of a custom section stand in the order of
 * their files.
 */
#include "compute/cpu/simd.h"
#include "engine/encode.h"
#include "engine/projector.h"
#include "load/formats/hf.h"

__asm__(".section .custom_section.quern,\"\",@\n"
        ".ascii \" text\"\n"
        ".text\n");

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

bool encode_awaited(const struct quern_engine *e) { return (void)e, false; }
bool encode_part(struct quern_engine *e) { return (void)e, false; }

static void read_nothing(void *state, struct json_reader *r, int key) { (void)state, (void)r, (void)key; }
static int find_nothing(void *state, struct checkpoint *model, struct error *err)
{
    return (void)state, (void)model, (void)err, OK;
}

const struct hf_reader hf_vision = {(const char *const[]){NULL}, read_nothing, find_nothing};
struct hf_vision *hf_vision_new(struct mem *m) { return mem_alloc(m, 1); }
