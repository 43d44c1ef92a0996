/* SPDX-License-Identifier: MIT
 *
 * Times the operations of the image encoder: with a projector's file and an image of noise, it prints the time of each
 * operation and its multiplications a second, the best of several runs. Natively it reads the file itself; as wasm
 * (Node) vision.mjs feeds it.
 *
 *   build/release/bench/vision PROJECTOR [PIXELS-A-SIDE] [THREADS] [LOOKS] [scalar]
 */
#include "compute/profile.h"
#include "engine/intake.h"
#include "models/vision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __EMSCRIPTEN__
#include <emscripten/emscripten.h>
#define EXPORT EMSCRIPTEN_KEEPALIVE
#else
#define EXPORT
#endif

enum { OPERATIONS = 48 };

static struct {
    struct mem mem;
    struct pool *pool;
    struct profile *profile;
    struct backend *be;
    struct intake in;
    struct vision *v;
    struct error err;
    uint8_t *frame;
    float *out;
    int patches; /* patches on each side */
    double best[OPERATIONS], whole;
    uint8_t room[1 << 20]; /* receives pieces of the file */
} bench;

static int fail_with(const char *what)
{
    printf("%s: %s\n", what, bench.err.message);
    return 1;
}

EXPORT uint8_t *vision_room(void) { return bench.room; }

EXPORT int vision_bench_open(int threads, int scalar)
{
    bench.pool = pool_new(&bench.mem, threads);
    bench.be = backend_cpu(&bench.mem, bench.pool, scalar);
    bench.profile = profile_new(&bench.mem, bench.pool);
    if (bench.profile) profile_watch(bench.profile, bench.be);
    intake_open(&bench.in, &bench.mem, 1, 0);
    return pool_threads(bench.pool);
}

/* Takes a piece of the file, no larger than the room. */
EXPORT int vision_bench_feed(const uint8_t *bytes, size_t n)
{
    size_t used = 0;
    struct checkpoint *ck = &bench.in.ck;
    int status = OK;
    if (!bench.in.complete) {
        status = intake_header(&bench.in, bytes, n, &used, &bench.err);
        if (status || !bench.in.complete) return status ? fail_with("header") : 0;
        status = vision_open(&bench.mem, bench.be, ck, &bench.v, &bench.err);
        if (!status) status = vision_bind(bench.v, ck, false, &bench.err);
        if (!status) status = vision_take(bench.v, ck, &bench.err);
        if (!status) status = ck_data_begin(ck, &bench.err);
    }
    if (status) return fail_with("model");
    ck_data(ck, bytes + used, n - used);
    return 0;
}

/* Called after the file's end: makes room for an image with this many pixels a side. */
EXPORT int vision_bench_reserve(int pixels)
{
    int side = bench.patches = pixels / vision_config(bench.v)->patch;
    const struct reserve r = {.kv = {1, 1, 1, 32, 1, KV_F32},
                              .max_rows = vision_max_rows(bench.v),
                              .max_cols = vision_max_cols(bench.v),
                              .values = vision_values(bench.v, side * side)};
    size_t bytes = (size_t)pixels * (size_t)pixels * 3;
    uint32_t state = 1;
    bench.frame = malloc(bytes);
    bench.out = malloc(vision_size(bench.v, side, side) * sizeof *bench.out);
    if (!bench.frame || !bench.out || profile_reserve(bench.profile, &r.kv) || bench.be->ops->reserve(bench.be, &r) ||
        vision_reserve(bench.v, side * side, (struct handle){0}))
        return fail_with("memory");
    for (size_t i = 0; i < bytes; i++) bench.frame[i] = (uint8_t)((state = state * 1664525u + 1013904223u) >> 24);
    return 0;
}

/* Encodes the image once; stores the best time of each operation, and of the whole. */
EXPORT double vision_bench_look(void)
{
    double start = now_ms(), longest = 0;
    profile_reset(bench.profile);
    profile_step(bench.profile, PROFILE_PREFILL, 1);
    vision_begin(bench.v, (const uint8_t *const[]){bench.frame, bench.frame}, bench.patches, bench.patches, bench.out);
    for (int i = 0, n = vision_parts(bench.v); i < n; i++) {
        double part = now_ms();
        vision_part(bench.v, i);
        vision_arrive(bench.v);
        if (now_ms() - part > longest) longest = now_ms() - part;
    }
    double ms = now_ms() - start;
    if (!bench.whole || ms < bench.whole) bench.whole = ms;
    for (int i = 0; profile_operation(bench.profile, i); i++) {
        double one = profile_cost(bench.profile, PROFILE_PREFILL, i, PROFILE_ALL).ms;
        if (!bench.best[i] || one < bench.best[i]) bench.best[i] = one;
    }
    return longest;
}

EXPORT void vision_bench_report(void)
{
    double macs = 0, sum = 0;
    for (int i = 0; profile_operation(bench.profile, i); i++) {
        struct profile_cost c = profile_cost(bench.profile, PROFILE_PREFILL, i, PROFILE_ALL);
        macs += c.macs;
        sum += bench.best[i];
        printf("%-34s %9.1f ms %8.1f GMAC/s\n", profile_operation(bench.profile, i), bench.best[i],
               c.macs / bench.best[i] / 1e6);
    }
    printf("%-34s %9.1f ms %8.1f GMAC/s (the best look; the operations' best %.1f ms), %.0f GMAC, %s, %d threads\n",
           "all", bench.whole, macs / bench.whole / 1e6, sum, macs / 1e9, bench.be->ops->name(bench.be),
           pool_threads(bench.pool));
}

#ifndef __EMSCRIPTEN__
int main(int argc, char **argv)
{
    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
    int looks = argc > 4 ? atoi(argv[4]) : 3;
    if (!f) return fail_with("the projector's file");
    vision_bench_open(argc > 3 ? atoi(argv[3]) : 2, argc > 5);
    for (size_t n; (n = fread(bench.room, 1, sizeof bench.room, f)) > 0;)
        if (vision_bench_feed(bench.room, n)) return 1;
    fclose(f);
    if (vision_bench_reserve(argc > 2 ? atoi(argv[2]) : 512)) return 1;
    for (int i = 0; i < looks; i++) printf("look %d: longest part %.1f ms\n", i, vision_bench_look());
    vision_bench_report();
    return 0;
}
#endif
