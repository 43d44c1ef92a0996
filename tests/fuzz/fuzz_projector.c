/* SPDX-License-Identifier: MIT
 *
 * The input is a projector's file; gguf_mutator.c changes one of its fields at a time. A projector that loads encodes
 * an image of two tokens.
 *
 *   build/fuzz/fuzz/fuzz_projector -max_len=16384 -timeout=5 -malloc_limit_mb=64 -dict=tests/fuzz/gguf.dict \
 *       NEW_CORPUS tests/fuzz/corpus/projector
 */
#include "engine/intake.h"
#include "load.h"
#include "models/vision.h"

#include <stdio.h>

enum { ROWS = 2, COLS = 4, PIXELS_MOST = ROWS * COLS * 32 * 32 * 3 };

struct projector {
    struct mem mem;
    struct pool *pool;
    struct backend *be;
    struct intake in;
    struct vision *v;
    struct error err;
};

static void look(struct projector *p)
{
    static const uint8_t frame[PIXELS_MOST];
    static float out[1 << 18];
    if (vision_size(p->v, ROWS, COLS) > sizeof out / sizeof *out) return;
    vision_begin(p->v, (const uint8_t *const[]){frame, frame}, ROWS, COLS, out);
    for (int i = 0; i < vision_parts(p->v); i++) {
        vision_part(p->v, i);
        vision_arrive(p->v);
    }
}

/* Reserves memory for an image in the backend and in the encoder; returns whether there was enough. */
static bool reserve(struct projector *p)
{
    const struct reserve r = {
        .kv = {.n_layers = 1, .n_heads = 1, .n_kv_heads = 1, .head_dim = 32, .n_pages = 1, .type = KV_F32},
        .max_rows = vision_max_rows(p->v),
        .max_cols = vision_max_cols(p->v),
        .values = vision_values(p->v, ROWS * COLS)};
    return p->be->ops->reserve(p->be, &r) == OK && vision_reserve(p->v, ROWS * COLS, (struct handle){0}) == OK;
}

static bool too_large(const struct projector *p)
{
    return vision_take_cost(p->v, &p->in.ck) > LOAD_MEMORY || vision_values(p->v, ROWS * COLS) > LOAD_MEMORY ||
           vision_reserve_cost(p->v, ROWS * COLS) > LOAD_MEMORY;
}

static int run(struct projector *p, const uint8_t *data, size_t size)
{
    struct checkpoint *ck = &p->in.ck;
    size_t used;
    int status = intake_header(&p->in, data, size, &used, &p->err);
    if (!status && !p->in.complete) status = intake_finish(&p->in, &p->err);
    if (!status) status = vision_open(&p->mem, p->be, ck, &p->v, &p->err);
    if (!status) status = vision_bind(p->v, ck, false, &p->err);
    if (!status) vision_quantize(p->v, ck, (struct model_types){dtype_by_name("Q8_0"), NULL});
    if (status || too_large(p)) return status;
    status = vision_take(p->v, ck, &p->err);
    if (!status) status = ck_data_begin(ck, &p->err);
    if (!status) ck_data(ck, data + used, size - used);
    if (!status) status = intake_finish(&p->in, &p->err);
    if (!status && reserve(p)) look(p);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct projector p = {.mem = {.limit = LOAD_MEMORY}};
    p.pool = pool_new(&p.mem, 1);
    p.be = backend_cpu(&p.mem, p.pool, false);
    intake_open(&p.in, &p.mem, 1, size);
    int status = run(&p, data, size);
    require(!status || (p.err.code == status && p.err.rule[0] && p.err.message[0]));
    vision_free(p.v);
    intake_close(&p.in);
    p.be->ops->free(p.be);
    pool_free(p.pool);
    require(p.mem.used == 0);
    return 0;
}
