/* SPDX-License-Identifier: MIT
 *
 * The GPU backend over a device that computes nothing: weights, pages and hashes reach its buffers with the CPU's bytes,
 * in slices of any size, and every command stays inside the buffers and the table that it names. What kernels compute is
 * tested where shaders run (tests/js/gpu, tests/web/gpu.test.mjs).
 */
#include "compute/gpu/fuse.c"
#include "compute/gpu/gpu.c"
#include "compute/gpu/record.c"
#undef SET
#include "compute/gpu/shared.c"
#include "compute/gpu/weights.c"

#include "engine/saved.h"
#include "engine/state.h"
#include "check.h"
#include "model_file.h"

/* Of played.h, which has the CPU's struct weight. */
typedef struct backend *backend_open_fn(struct mem *m, struct pool *pool, bool scalar);
extern backend_open_fn *played_instead;
enum { BACKEND_CPU, BACKEND_PLAYED };

/* --- the device -------------------------------------------------------------------------------------------------- */

enum { DEVICE_BUFFERS = 4096 };

static struct {
    struct {
        uint8_t *data;
        size_t size;
    } buffers[DEVICE_BUFFERS];
    int n_buffers, n_submits, n_commands, n_layouts;
    bool fast;
    uint32_t binding;
    int seen[GPU_KERNELS];
} device;

static size_t buffer_size(uint32_t id)
{
    CHECK(id > 0 && id < (uint32_t)device.n_buffers && device.buffers[id].data);
    return device.buffers[id].size;
}

void gpu_layouts(const struct gpu_layout *all, int n, const void *some)
{
    CHECK(all[LAYOUT_Q8].bits == 8 && all[LAYOUT_Q4].bits == 4 && some != NULL);
    device.n_layouts = n;
}

bool gpu_fast(void) { return device.fast; }
uint32_t gpu_binding(void) { return device.binding; }

uint32_t gpu_buffer(double bytes)
{
    CHECK(bytes > 0 && bytes <= (double)device.binding && (size_t)bytes % 4 == 0 && device.n_buffers < DEVICE_BUFFERS);
    device.buffers[device.n_buffers].data = calloc((size_t)bytes, 1);
    device.buffers[device.n_buffers].size = (size_t)bytes;
    if (!device.buffers[device.n_buffers].data) exit(2);
    return (uint32_t)device.n_buffers++;
}

void gpu_release(uint32_t id)
{
    if (!id) return;
    buffer_size(id);
    free(device.buffers[id].data);
    device.buffers[id].data = NULL;
}

void gpu_write(uint32_t id, double offset, const void *bytes, double n)
{
    CHECK((size_t)offset % 4 == 0 && (size_t)n % 4 == 0 && offset + n <= (double)buffer_size(id));
    memcpy(device.buffers[id].data + (size_t)offset, bytes, (size_t)n);
}

void gpu_copy(uint32_t id, double to, double from, double n)
{
    CHECK(to + n <= (double)buffer_size(id) && from + n <= (double)buffer_size(id));
    memmove(device.buffers[id].data + (size_t)to, device.buffers[id].data + (size_t)from, (size_t)n);
}

/* The only kernel whose result is looked at. */
static void put_heads(const struct gpu_command *c)
{
    const uint32_t *p = c->params;
    uint32_t *matrix = (uint32_t *)(void *)device.buffers[c->pages].data;
    const uint32_t *heads = (const uint32_t *)(const void *)device.buffers[c->matrix].data;
    for (uint32_t i = 0; i < p[3]; i++) {
        uint32_t unit = i / p[1], at = p[8] + unit / p[6] * p[4] + unit % p[6] * p[2] + i % p[1];
        CHECK(at < buffer_size(c->pages) / 4 && p[7] + i < buffer_size(c->matrix) / 4);
        matrix[at] = heads[p[7] + i];
    }
}

/* What a command reads and writes: n words from `at` on, of `all`. */
static void inside(uint64_t at, uint64_t n, uint64_t all) { CHECK(at + n <= all); }

static void check_rows(const struct gpu_command *c, const uint32_t *table, int words, uint32_t at, uint32_t page_words)
{
    inside(at, 2 * (uint64_t)c->groups[1], (uint64_t)words);
    for (uint32_t i = 0; i < c->groups[1]; i++) {
        uint32_t pages = table[at + 2 * i + 1], n = table[at + 2 * i] / KV_PAGE + 1;
        inside(pages, n, (uint64_t)words);
        for (uint32_t j = 0; j < n; j++)
            inside((uint64_t)table[pages + j] * page_words, page_words, buffer_size(c->pages) / 4);
    }
}

/* Slots of rows: of each the first row of its chain, and the slots from which it starts and to which it goes. */
static void check_runs(const struct gpu_command *c, const uint32_t *table, int words, uint32_t at, uint32_t slot_words)
{
    inside(at, 3 * (uint64_t)c->groups[1], (uint64_t)words);
    for (uint32_t i = 0; i < c->groups[1]; i++) {
        const uint32_t *row = table + at + 3 * (uint64_t)i;
        CHECK(row[0] <= i);
        for (int s = 1; s < 3; s++) inside(0, (uint64_t)row[s] * slot_words, buffer_size(c->pages) / 4);
    }
}

/* n rows of dim values that are quantised, too. */
static void check_quantised(const uint32_t *p, uint64_t n, uint64_t scratch)
{
    if (!p[GPU_QUANTISED]) return;
    CHECK(n % BLOCK == 0);
    inside(p[GPU_QUANTISED], n / 4, scratch);
    inside(p[GPU_QUANTISED + 1], n / BLOCK, scratch);
    inside(p[GPU_QUANTISED + 2], n / 16, scratch);
}

static void check_product(const struct gpu_command *c, uint64_t scratch)
{
    const uint32_t *p = c->params;
    uint64_t n = p[12], cols = p[5];
    uint32_t each = c->kernel == GPU_PRODUCT ? PANEL_ROWS : 64, all = 0;
    inside(p[1], n * cols / (layouts[c->layout].kind == KIND_FLOAT ? 1 : 4), scratch);
    CHECK(p[4] > 0 && p[4] <= GPU_PARTS);
    for (uint32_t i = 0; i < p[4]; i++) {
        const uint32_t *part = p + GPU_PART + GPU_PART_WORDS * i;
        uint64_t panels = p[11] ? p[10] : (part[1] + PANEL_ROWS - 1) / PANEL_ROWS;
        inside(part[0], (n - 1) * part[2] + part[1], scratch);
        inside(part[3], panels * p[13], buffer_size(c->matrix) / 4);
        if (part[4]) inside(part[4] - 1, part[1], buffer_size(c->pages) / 4);
        if (part[5]) inside(part[5] - 1, (n - 1) * part[2] + part[1], scratch);
        all += (part[1] + each - 1) / each;
    }
    CHECK(c->groups[0] == all && p[13] * 4 == panel_bytes(c->layout, (int)cols));
    if (c->kernel != GPU_FLOATS) inside(p[3], n * cols / 16, scratch);
}

/* Heads of rows: of q, of k, and of v if they go to the cache. */
static void check_heads(const struct gpu_command *c, uint64_t scratch, const uint32_t *table, int words)
{
    const uint32_t *p = c->params;
    uint64_t rows = c->groups[1], kv = rows * p[11] * p[2];
    CHECK(c->groups[0] == p[7] + p[11] * (c->kernel == GPU_APPEND ? 2 : 1) && 2 * p[3] <= p[2]);
    inside(p[1], rows * p[7] * p[2], scratch);
    inside(p[10], kv, scratch);
    for (int i = 4; i < 6; i++) inside(p[i], p[i] ? rows * p[3] : 0, (uint64_t)words);
    for (int i = 8; i <= 12; i += 4)
        if (p[i]) inside(p[i] - 1, p[2], buffer_size(c->matrix) / 4);
    if (c->kernel != GPU_APPEND) return;
    inside(p[13], kv, scratch);
    check_rows(c, table, words, p[14], p[15]);
}

static void check_command(const struct gpu_command *c, uint64_t scratch, const uint32_t *table, int words)
{
    const uint32_t *p = c->params;
    CHECK(c->kernel < GPU_KERNELS && p[0] == 0);
    for (int i = 0; i < 3; i++) CHECK(c->groups[i] > 0 && c->groups[i] <= 65535);
    device.seen[c->kernel]++;
    switch (c->kernel) {
    case GPU_EMBED:
        inside(p[1], (uint64_t)c->groups[1] * p[3], scratch);
        inside(p[2], c->groups[1], (uint64_t)words);
        break;
    case GPU_PICK:
        inside(p[1], (uint64_t)c->groups[1] * p[4], scratch);
        inside(p[3], c->groups[1], (uint64_t)words);
        break;
    case GPU_RMSNORM:
        inside(p[1], (uint64_t)p[5] * p[3], scratch);
        inside(p[7], p[3], buffer_size(c->matrix) / 4);
        check_quantised(p, (uint64_t)p[5] * p[3], scratch);
        break;
    case GPU_QUANTIZE:
        inside(p[1], p[3], scratch);
        check_quantised(p, p[3], scratch);
        break;
    case GPU_PRODUCT: case GPU_TILE: case GPU_FLOATS: check_product(c, scratch); break;
    case GPU_ROPE: case GPU_APPEND: check_heads(c, scratch, table, words); break;
    case GPU_ATTEND:
        inside(p[1], (uint64_t)c->groups[1] * p[4] * c->head_dim, scratch);
        check_quantised(p, (uint64_t)c->groups[1] * p[4] * c->head_dim, scratch);
        check_rows(c, table, words, p[3], p[6]);
        break;
    case GPU_CONVOLVE:
        inside(p[2], (uint64_t)c->groups[1] * p[4], scratch);
        inside(p[11], 4 * (uint64_t)p[4], buffer_size(c->matrix) / 4);
        check_runs(c, table, words, p[3], p[7]);
        CHECK(p[8] + 3 * (uint64_t)p[4] == p[7]);
        break;
    case GPU_DECAY:
        inside(p[1], 2 * (uint64_t)p[3], scratch);
        inside(p[2], 2 * (uint64_t)p[3], scratch);
        inside(p[5], p[4], buffer_size(c->matrix) / 4);
        inside(p[6], p[4], buffer_size(c->pages) / 4);
        break;
    case GPU_DELTA:
        inside(p[5], c->groups[1] + 1, (uint64_t)words);
        CHECK(table[p[5]] == 0);
        inside(p[4], 4 * (uint64_t)table[p[5] + c->groups[1]], (uint64_t)words);
        inside(0, (uint64_t)p[8] * c->head_dim * c->head_dim, p[10]);
        break;
    case GPU_LATER:
        inside(p[1], (uint64_t)c->groups[1] * p[4], scratch);
        check_runs(c, table, words, p[3], p[5]);
        inside(p[6], p[4], p[5]);
        break;
    case GPU_JOIN: inside(p[1], 2 * (uint64_t)c->groups[1] * p[4], scratch); break;
    case GPU_HEADS: put_heads(c); break;
    case GPU_BIAS: inside(p[6], p[4], buffer_size(c->pages) / 4); /* falls through */
    case GPU_SWIGLU: case GPU_GATE: case GPU_ADD:
        inside(p[1], p[3], scratch);
        check_quantised(p, p[3], scratch);
        break;
    default: break;
    }
}

void gpu_submit(uint32_t scratch, const struct gpu_command *commands, int n, const uint32_t *table, int words,
                const struct gpu_read *reads, int n_reads)
{
    for (int i = 0; i < n; i++) check_command(&commands[i], buffer_size(scratch) / 4, table, words);
    for (const struct gpu_read *r = reads; r < reads + n_reads; r++) {
        inside(r->offset, r->bytes, buffer_size(r->buffer));
        memcpy((void *)r->to, device.buffers[r->buffer].data + r->offset, r->bytes);
    }
    device.n_submits++;
    device.n_commands += n;
}

static void device_begin(uint32_t binding)
{
    memset(&device, 0, sizeof device);
    device.n_buffers = 1;
    device.binding = binding;
    played_instead = backend_gpu;
}

static void device_end(void)
{
    for (int i = 1; i < device.n_buffers; i++) CHECK(!device.buffers[i].data);
    played_instead = NULL;
}

/* --- the tests --------------------------------------------------------------------------------------------------- */

static struct file model_of(const char *name)
{
    char file[64];
    snprintf(file, sizeof file, "%s.gguf", name);
    return file_read(golden_folder(), file);
}

static void arrive(struct quern_engine *e)
{
    if (quern_awaits(e)) quern_arrive(e, 1);
}

/* The fingerprint of all weights, which a device reads back. */
static void fingerprint_of(struct quern_engine *e, uint8_t out[HASH_BYTES])
{
    while (saved_print(e, 1) == NEED_MORE) arrive(e);
    memcpy(out, e->fingerprint, HASH_BYTES);
}

static void one_model(const char *name, uint32_t binding, enum quern_kv kv)
{
    struct file f = model_of(name);
    uint8_t expected[HASH_BYTES], found[HASH_BYTES];
    struct quern_options options = {.chunk = 24, .kv = kv, .context_size = 256};
    struct quern_engine *cpu = engine_load(&f, options, SIZE_MAX);
    fingerprint_of(cpu, expected);
    quern_free(cpu);
    device_begin(binding);
    options.backend = BACKEND_PLAYED;
    struct quern_engine *e = engine_load(&f, options, 1000);
    fingerprint_of(e, found);
    CHECK(!memcmp(expected, found, sizeof found));
    struct quern_sequence *s = quern_sequence_new(e, 0, 0), *other = quern_sequence_new(e, 0, 0);
    int32_t ids[100];
    for (int i = 0; i < 100; i++) ids[i] = 3 + i * 7 % 200;
    CHECK_EQ(quern_sequence_set(s, ids, 100, QUERN_ALL), 0);
    CHECK_EQ(quern_sequence_set(other, ids + 10, 50, QUERN_LAST), 0);
    while (quern_sequence_pending(s) > 0 || quern_sequence_pending(other) > 0) {
        CHECK_EQ(quern_step(e, 0), OK);
        arrive(e);
    }
    CHECK(device.n_commands > 50 && device.n_submits > 4);
    quern_free(e);
    device_end();
    file_free(&f);
}

static void models(void)
{
    static const char *const names[] = {"nano.Q8_0", "nano.Q4_K_M", "moe-nano.Q4_K_M", "duo.F32",
                                        "qw2.Q4_K_M", "nano.IQ2_S",  "hybq.Q4_K_M",     "nano.NVFP4"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) one_model(names[i], 64 << 20, QUERN_KV_F16);
    CHECK(device.seen[GPU_HEADS] > 0);
}

/* What a token takes: the commands of each layer by kernel, then those of the embedding and the output head. */
static void one_token(const char *name, const int *layer)
{
    struct file f = model_of(name);
    device_begin(64 << 20);
    struct quern_options options = {.context_size = 256, .backend = BACKEND_PLAYED};
    struct quern_engine *e = engine_load(&f, options, SIZE_MAX);
    struct quern_sequence *s = quern_sequence_new(e, 0, 0);
    const int32_t ids[] = {3, 10, 17, 24};
    for (int n = 3; n <= 4; n++) {
        memset(device.seen, 0, sizeof device.seen);
        CHECK(quern_sequence_set(s, ids, n, QUERN_LAST) >= 0);
        CHECK_EQ(quern_step(e, 0), OK);
        arrive(e);
    }
    static const int others[GPU_KERNELS] = {[GPU_EMBED] = 1, [GPU_PICK] = 1, [GPU_RMSNORM] = 1, [GPU_PRODUCT] = 1};
    for (int i = 0; i < GPU_KERNELS; i++)
        CHECK_EQ(device.seen[i], e->model->config.n_layers * layer[i] + others[i]);
    quern_free(e);
    device_end();
    file_free(&f);
}

/* Nine commands for a dense layer: a norm, products of q, k and v, their heads, attention, a product, a norm, products
 * of the gate and up, SwiGLU, a product. */
static void commands(void)
{
    static const int dense[GPU_KERNELS] = {[GPU_RMSNORM] = 2, [GPU_PRODUCT] = 4, [GPU_APPEND] = 1, [GPU_ATTEND] = 1,
                                           [GPU_SWIGLU] = 1};
    static const int experts[GPU_KERNELS] = {[GPU_RMSNORM] = 2, [GPU_PRODUCT] = 4, [GPU_APPEND] = 1, [GPU_ATTEND] = 1,
                                             [GPU_SWIGLU] = 1,  [GPU_FLOATS] = 1,  [GPU_ROUTE] = 1,  [GPU_GATHER] = 1,
                                             [GPU_COMBINE] = 1};
    one_token("nano.Q8_0", dense);
    one_token("lla.Q8_0", dense);
    one_token("moe-nano.Q8_0", experts);
}

/* Embeddings and output heads are cut into slices of 64 rows. */
static void slices(void)
{
    one_model("nano.Q8_0", 1 << 20, QUERN_KV_F32);
    one_model("moe-nano.Q4_K_M", 1 << 20, QUERN_KV_F16);
    one_model("nano.NVFP4", 1 << 20, QUERN_KV_F32);
}

/* To saved conversations a device with fast kernels is another model. */
static void fast_kernels(void)
{
    struct file f = model_of("nano.Q8_0");
    uint8_t prints[2][HASH_BYTES];
    for (int fast = 0; fast < 2; fast++) {
        device_begin(64 << 20);
        device.fast = fast;
        struct quern_options options = {.backend = BACKEND_PLAYED, .context_size = 256};
        struct quern_engine *e = engine_load(&f, options, 1000);
        fingerprint_of(e, prints[fast]);
        quern_free(e);
        device_end();
    }
    CHECK(memcmp(prints[0], prints[1], HASH_BYTES));
    file_free(&f);
}

/* What a device does not run is refused by the header. */
static void refusals(void)
{
    struct file f = model_of("nano.Q8_0");
    device_begin(64 << 20);
    struct quern_options options = {.kv = QUERN_KV_Q8, .backend = BACKEND_PLAYED};
    struct quern_engine *e = quern_new(&options);
    CHECK_EQ(quern_feed(e, f.data, f.size), ERR_UNSUPPORTED);
    CHECK(!strcmp(quern_error(e)->rule, "gpu"));
    quern_free(e);
    struct error err;
    const struct kv_shape most = {.n_layers = GPU_LAYERS, .head_dim = 64, .type = KV_F16};
    CHECK_EQ(gpu_check(NULL, &most, &(struct state_shape){0}, false, &err), OK);
    CHECK_EQ(gpu_check(NULL, &most, &(struct state_shape){.n_layers = 1}, false, &err), ERR_UNSUPPORTED);
    device_end();
    file_free(&f);
}

/* Rows so wide that a panel of them does not fit into the staging. */
static void wide_rows(void)
{
    struct mem m = {0};
    device_begin(UINT32_MAX);
    struct backend *b = backend_gpu(&m, NULL, false);
    const struct dtype *f32 = dtype_by_name("F32");
    const int most = GPU_STAGING / (PANEL_ROWS * (int)sizeof(float));
    struct weight *w = gpu_weight_new(b, f32, 8, most);
    CHECK(w != NULL && gpu_weight_cost(b, f32, 8, most) < UINT64_MAX);
    gpu_weight_free(b, w);
    CHECK(gpu_weight_new(b, f32, 8, most + 1) == NULL && gpu_weight_cost(b, f32, 8, most + 1) == UINT64_MAX);
    gpu_free(b);
    CHECK_EQ(m.used, 0);
    device_end();
}

int main(int argc, char **argv)
{
    const struct check tests[] = {
        {"models", models},
        {"commands", commands},
        {"slices", slices},
        {"fast_kernels", fast_kernels},
        {"refusals", refusals},
        {"wide_rows", wide_rows},
    };
    return check_run(argc, argv, tests, sizeof tests / sizeof *tests);
}
