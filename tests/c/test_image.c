/* SPDX-License-Identifier: MIT
 *
 * Images and videos against transformers and Pillow (tests/fixtures/vision), to the byte; and file headers of every
 * kind, cut off anywhere, and false ones.
 */
#include "check.h"
#include "base/sha256.h"
#include "image/image.h"

#include <math.h>
#include <stdlib.h>

#define FOLDER "build/fixtures/vision/"

struct buffer {
    uint8_t *data;
    size_t size;
};

static struct buffer read_file(const char *folder, const char *name, const char *ending)
{
    char path[600];
    snprintf(path, sizeof path, "%.300s%.200s%s", folder, name, ending);
    FILE *f = fopen(path, "rb");
    CHECK(f != NULL);
    fseek(f, 0, SEEK_END);
    struct buffer b = {.size = (size_t)ftell(f)};
    b.data = malloc(b.size + 1);
    rewind(f);
    CHECK(b.data && fread(b.data, 1, b.size, f) == b.size);
    fclose(f);
    return b;
}

static FILE *open_list(const char *name)
{
    char path[100];
    snprintf(path, sizeof path, FOLDER "%s", name);
    FILE *f = fopen(path, "r");
    CHECK(f != NULL);
    return f;
}

static void check_hash(const char *what, const void *bytes, size_t n, const char *expected)
{
    struct sha256 h;
    uint8_t hash[SHA256_BYTES];
    char text[2 * SHA256_BYTES + 1];
    sha256_begin(&h);
    sha256_add(&h, bytes, n);
    sha256_end(&h, hash);
    for (int i = 0; i < SHA256_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", hash[i]);
    if (strcmp(text, expected)) check_fail(__FILE__, __LINE__, what);
}

/* --- base/sha256 --- */

static void hashes(void)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    check_hash("empty", "", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_hash("abc", "abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_hash("two blocks", two_blocks, 56, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = malloc(1000000);
    CHECK(million != NULL);
    memset(million, 'a', 1000000);
    check_hash("million", million, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    struct sha256 h;
    uint8_t whole[SHA256_BYTES], parts[SHA256_BYTES];
    for (size_t n = 0; n < 200; n++) { /* the same in parts of every size */
        sha256_begin(&h);
        sha256_add(&h, million, n);
        sha256_end(&h, whole);
        for (size_t part = 1; part < 70; part += 3) {
            sha256_begin(&h);
            for (size_t at = 0; at < n; at += part) sha256_add(&h, million + at, n - at < part ? n - at : part);
            sha256_end(&h, parts);
            CHECK(!memcmp(whole, parts, sizeof whole));
        }
    }
    free(million);
}

/* --- sizes --- */

static void golden_sizes(void)
{
    int h, w, frames, height, width, count = 0;
    double low, high;
    FILE *f = open_list("sizes.txt");
    while (fscanf(f, "%d %d %d %lf %lf %d %d", &h, &w, &frames, &low, &high, &height, &width) == 7) {
        const struct image_limits limits = {.patch = 16, .low = low, .high = high};
        struct image_grid g;
        int status = frames ? image_video_size(frames, h, w, &limits, &g) : image_size(h, w, &limits, &g);
        CHECK_EQ(status, height ? OK : ERR_SIZE);
        count++;
        if (!height) continue;
        CHECK_EQ(g.height, height);
        CHECK_EQ(g.width, width);
        CHECK_EQ(g.rows * 32, height);
        CHECK_EQ(g.cols * 32, width);
        CHECK_EQ(g.frames, frames ? frames + frames % 2 : 1);
    }
    fclose(f);
    CHECK_EQ(count, 249 + 112);
}

static void odd_sizes(void)
{
    const struct image_limits limits = {.patch = 16, .low = 65536, .high = 262144},
                              none = {.patch = 16, .low = 0, .high = 1e19};
    struct image_grid g;
    CHECK_EQ(image_size(0, 10, &limits, &g), ERR_SIZE);
    CHECK_EQ(image_size(-1, 10, &limits, &g), ERR_SIZE);
    CHECK_EQ(image_video_size(2, 10, 0, &limits, &g), ERR_SIZE);
    CHECK_EQ(image_video_size(0, 10, 10, &limits, &g), ERR_SIZE);
    CHECK_EQ(image_size(1, 200, &limits, &g), OK);
    CHECK_EQ(image_size(1, 201, &limits, &g), ERR_SIZE);
    CHECK_EQ(image_size(2, 400, &none, &g), ERR_SIZE); /* height would be 0, and no limit enlarges it */
    CHECK_EQ(image_size(INT32_MAX, INT32_MAX, &none, &g), ERR_SIZE);
    CHECK_EQ(image_video_size(1, 64, 64, &limits, &g), OK); /* one frame counts as two */
    CHECK_EQ(g.frames, 2);
    CHECK_EQ(image_video_size(INT32_MAX - 1, 64, 64, &limits, &g), OK);
    CHECK_EQ(g.height, 32);
}

static void read_ints(FILE *f, int n, int32_t *out)
{
    for (int i = 0; i < n; i++) CHECK_EQ(fscanf(f, "%d", &out[i]), 1);
}

static void golden_samples(void)
{
    int total, count, n, cases = 0;
    double fps;
    FILE *f = open_list("samples.txt");
    while (fscanf(f, "%d %lf %d", &total, &fps, &count) == 3) {
        int32_t indices[768], expected[768];
        CHECK_EQ(image_sample(total, fps, 2.0, 4, 768, NULL), count);
        CHECK_EQ(image_sample(total, fps, 2.0, 4, 768, indices), count);
        CHECK_EQ(fscanf(f, "%d", &n), 1);
        read_ints(f, n, expected);
        CHECK(!memcmp(indices, expected, (size_t)n * sizeof *indices));
        CHECK_EQ(fscanf(f, "%d", &n), 1);
        read_ints(f, n, expected);
        CHECK(!memcmp(indices + count - n, expected, (size_t)n * sizeof *indices));
        cases++;
    }
    fclose(f);
    CHECK_EQ(cases, 12);
    CHECK_EQ(image_sample(48, 0, 2.0, 4, 768, NULL), 4); /* unknown rate: 24 frames a second */
    CHECK_EQ(image_sample(INT32_MAX, 1e-9, 2.0, 4, 16, NULL), 16);
}

static void labels(void)
{
    char out[32], expected[64], text[32];
    int first, second, cases = 0;
    double fps;
    FILE *f = open_list("labels.txt");
    while (fscanf(f, "%lf %d %d %31[^ ] seconds>", &fps, &first, &second, text) == 4) {
        snprintf(expected, sizeof expected, "%s seconds>", text);
        CHECK_EQ(image_label((first / fps + second / fps) / 2, out), strlen(expected));
        CHECK(!strcmp(out, expected));
        cases++;
    }
    fclose(f);
    CHECK_EQ(cases, 46);
    CHECK_EQ(image_label(1e9, out), 22);
    CHECK(!strcmp(out, "<1000000000.0 seconds>"));
    CHECK_EQ(image_label(-0.0, out), 13);
    CHECK(!strcmp(out, "<0.0 seconds>"));
    CHECK_EQ(image_label(0.25, out), 13);
    CHECK(!strcmp(out, "<0.2 seconds>"));
    CHECK_EQ(image_label(-0.1, out), 0);
    CHECK_EQ(image_label(NAN, out), 0);
    CHECK_EQ(image_label(INFINITY, out), 0);
}

/* --- pixels --- */

static void over_white(void)
{
    for (int v = 0; v < 256; v++) {
        for (int a = 0; a < 256; a++) {
            const uint8_t rgba[4] = {(uint8_t)v, 255, 0, (uint8_t)a};
            uint8_t rgb[3];
            image_opaque(rgba, 1, rgb);
            CHECK_EQ(rgb[0], (2 * (v * a + 255 * (255 - a)) + 255) / 510); /* rounded; ties do not occur */
            CHECK_EQ(rgb[1], 255);
            CHECK_EQ(rgb[2], 255 - a);
        }
    }
    uint8_t same[8] = {10, 20, 30, 255, 40, 50, 60, 0};
    image_opaque(same, 2, same);
    CHECK(!memcmp(same, (uint8_t[]){10, 20, 30, 255, 255, 255}, 6));
}

/* Resizes with scratch of exactly the requested size. */
static void resize(const uint8_t *rgb, int w, int h, uint8_t *out, int W, int H)
{
    void *scratch = malloc((size_t)image_resize_cost(w, h, W, H) + 1);
    CHECK(scratch != NULL);
    image_resize(rgb, w, h, out, W, H, scratch);
    free(scratch);
}

static void golden_images(void)
{
    char name[64], hash[65];
    int channels, w, h, W, H, count = 0;
    FILE *f = open_list("images.txt");
    while (fscanf(f, "%63s %d %d %d %d %d %64s", name, &channels, &w, &h, &W, &H, hash) == 7) {
        struct buffer in = read_file(FOLDER, name, ".raw");
        CHECK_EQ(in.size, w * h * channels);
        uint8_t *out = malloc((size_t)(W * H * 3));
        CHECK(out != NULL);
        if (channels == 4) image_opaque(in.data, (uint64_t)(w * h), in.data);
        resize(in.data, w, h, out, W, H);
        check_hash(name, out, (size_t)(W * H * 3), hash);
        free(out);
        free(in.data);
        count++;
    }
    fclose(f);
    CHECK_EQ(count, 17);
}

static uint8_t *noise(int w, int h)
{
    size_t n = (size_t)w * (size_t)h * 3;
    uint8_t *bytes = malloc(n);
    CHECK(bytes != NULL);
    for (size_t i = 0; i < n; i++) {
        uint32_t v = (uint32_t)i * 2654435761u;
        bytes[i] = (uint8_t)((v ^ v >> 15) * 2246822519u >> 24);
    }
    return bytes;
}

/* Against Pillow 11.3: up, down, one direction only, 12 million pixels. */
static void noise_resized(void)
{
    static const struct {
        int w, h, W, H;
        const char *hash;
    } cases[] = {
        {1, 1, 32, 32, "e761271032b3d4318cc8f7d951d0cfb4eb4bfad6e7268c4c16b694abb0b55c5f"},
        {1, 200, 32, 3648, "c7b6bedc1555f776d8dd82d15e607a4d608240e7d84e237ec95c08e7fbb43066"},
        {97, 61, 96, 64, "bfe29b6674caa869f646c7b3d5e96da20de80021e9f45ea6fa0cbbec3e918377"},
        {640, 480, 512, 384, "510d96be4df73e4cf5c4cad0088d8265b74c9b16944b8de4e8953352a29299c5"},
        {640, 480, 640, 96, "5f7a8e94c1dcec99f32a01d844a7d38c37ecf4e700b1b7eb2cff5047e9c0c551"},
        {640, 480, 96, 480, "ff52211d4faaf8d3701d197cc26a3cbd3af7623b30a3693e9909a58ae30fc3ab"},
        {333, 777, 224, 512, "833da9cc757013cc83c59da1f646e9d084fa4449ac4dfade28af80de21adb5f0"},
        {50, 40, 1024, 800, "3d0fb207559b3ed5dc6c506b620aac457d88d3ac2c5a7afb0d447ea6e8df51f3"},
        {3000, 11, 32, 32, "08715fc9f55c83da99b5f61522f1abe694497000dedf1211fccf8daac4ccf2f4"},
        {2048, 1536, 512, 384, "21676f520498548bda325185649bfad9b4309fe408d9d530dfce4bb5d5f2556a"},
        {4000, 3000, 512, 512, "12a29ccb25d7ead29ff754f32f896936a3e9208203e70369c20e73a9c1cdd647"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t *in = noise(cases[i].w, cases[i].h), *out = malloc((size_t)(cases[i].W * cases[i].H * 3));
        CHECK(out != NULL);
        resize(in, cases[i].w, cases[i].h, out, cases[i].W, cases[i].H);
        check_hash(cases[i].hash, out, (size_t)(cases[i].W * cases[i].H * 3), cases[i].hash);
        free(in);
        free(out);
    }
}

/* An image at its own size, and the range of the sums: no weights let a sum overflow. */
static void resized_extremes(void)
{
    uint8_t in[64 * 3], out[64 * 3], large[97 * 3];
    for (size_t i = 0; i < sizeof in; i++) in[i] = (uint8_t)i;
    resize(in, 8, 8, out, 8, 8);
    CHECK(!memcmp(in, out, sizeof in));
    CHECK_EQ(image_resize_cost(8, 8, 8, 8), 0);
    for (int to = 1; to <= 97; to += 3) {
        memset(in, 255, sizeof in);
        resize(in, 64, 1, large, to, 1);
        for (int i = 0; i < 3 * to; i++) CHECK_EQ(large[i], 255);
        memset(in, 0, sizeof in);
        resize(in, 64, 1, large, to, 1);
        for (int i = 0; i < 3 * to; i++) CHECK_EQ(large[i], 0);
    }
}

static void golden_patches(void)
{
    enum { W = 96, H = 64, PATCHES = W * H / 256, SIZE = 1536 };
    static float out[PATCHES * SIZE], part[PATCHES * SIZE], table[3][256];
    const float half[3] = {0.5f, 0.5f, 0.5f};
    struct buffer in = read_file(FOLDER, "tiny", ".raw");
    uint8_t rgb[W * H * 3];
    resize(in.data, 14, 9, rgb, W, H);
    const uint8_t *const frames[2] = {rgb, rgb};
    image_table(half, half, table);
    image_patches(frames, W, 16, table, 0, PATCHES, out);
    check_hash("tiny", out, sizeof out, "0361b752951b6fed461201eef684f4fcb97c5b97bba92ce60b40d0cfc8b4fde5");
    for (int n = 1; n <= PATCHES; n += 5) /* the same in smaller portions */
        for (int first = 0; first < PATCHES; first += n)
            image_patches(frames, W, 16, table, first, min_int(n, PATCHES - first), part + first * SIZE);
    CHECK(!memcmp(out, part, sizeof out));
    free(in.data);
}

/* Each channel uses its own table, each frame has its place; also another patch size. */
static void patches_in_order(void)
{
    enum { P = 8, W = 3 * 2 * P, H = 2 * 2 * P, PATCHES = W * H / (P * P) };
    uint8_t first[W * H * 3], second[W * H * 3];
    float table[3][256], out[PATCHES * 6 * P * P];
    const float mean[3] = {0.48f, 0.46f, 0.41f}, std[3] = {0.27f, 0.26f, 0.28f};
    for (size_t i = 0; i < sizeof first; i++) first[i] = (uint8_t)(i * 7 + i / 256), second[i] = (uint8_t)(i * 11 + 1);
    image_table(mean, std, table);
    CHECK(table[1][200] == (200.0f - (float)(0.46f * 255.0)) / (float)(0.26f * 255.0));
    image_patches((const uint8_t *const[]){first, second}, W, P, table, 0, PATCHES, out);
    const float *at = out;
    for (int R = 0; R < H / P / 2; R++)
        for (int C = 0; C < W / P / 2; C++)
            for (int r = 0; r < 2; r++)
                for (int c = 0; c < 2; c++)
                    for (int channel = 0; channel < 3; channel++)
                        for (int t = 0; t < 2; t++)
                            for (int y = 0; y < P; y++)
                                for (int x = 0; x < P; x++) {
                                    int place = (((2 * R + r) * P + y) * W + (2 * C + c) * P + x) * 3 + channel;
                                    CHECK(*at++ == table[channel][(t ? second : first)[place]]);
                                }
}

static void identities(void)
{
    enum { SIZE = 64 * 32 * 3 };
    static uint8_t three[SIZE], five[SIZE];
    for (size_t i = 0; i < SIZE; i++) three[i] = (uint8_t)(i * 3), five[i] = (uint8_t)(i * 5);
    const uint8_t *const frames[3][2] = {{three, NULL}, {five, NULL}, {three, five}};
    FILE *f = open_list("ids.txt");
    for (int i = 0; i < 3; i++) {
        struct image_grid g = {.height = 32, .width = 64, .rows = 1, .cols = 2};
        unsigned long long expected;
        CHECK_EQ(fscanf(f, "%d %llx", &g.frames, &expected), 2);
        CHECK(image_id(&g, frames[i]) == __builtin_bswap64(expected));
    }
    fclose(f);
}

/* --- headers --- */

static int header_of(const uint8_t *bytes, size_t n, struct image_header *h)
{
    uint8_t *own = malloc(n + (n == 0)); /* exact size, to detect reads past the end */
    CHECK(own != NULL);
    memcpy(own, bytes, n);
    int status = image_header(own, n, h);
    free(own);
    return status;
}

static struct buffer image(const char *name)
{
    char folder[400];
    snprintf(folder, sizeof folder, "%.300s/vision/files/", check_fixtures);
    return read_file(folder, name, "");
}

static void headers(void)
{
    char name[64];
    int kind, width, height, orientation, count = 0;
    FILE *f = open_list("files.txt");
    while (fscanf(f, "%63s %d %d %d %d", name, &kind, &width, &height, &orientation) == 5) {
        struct buffer b = image(name);
        struct image_header h, part;
        check_name = name;
        CHECK_EQ(header_of(b.data, b.size, &h), OK);
        CHECK_EQ(h.kind, kind);
        CHECK_EQ(h.width, width);
        CHECK_EQ(h.height, height);
        CHECK_EQ(h.orientation, orientation);
        for (size_t n = 0; n < b.size; n++) { /* cut anywhere: refused, or the same */
            int status = header_of(b.data, n, &part);
            CHECK(status == ERR_DECODE || (status == OK && part.width == h.width && part.height == h.height &&
                                           part.orientation == h.orientation));
            CHECK(n >= 10 || status);
        }
        for (size_t at = 0; at < b.size; at++) { /* bits flipped anywhere: within the limits, or refused */
            for (int bit = 1; bit < 256; bit *= 4) {
                b.data[at] ^= (uint8_t)bit;
                int status = header_of(b.data, b.size, &part);
                b.data[at] ^= (uint8_t)bit;
                CHECK(status == ERR_DECODE || status == ERR_SIZE ||
                      (part.width >= 1 && part.width <= 16384 && part.height >= 1 && part.height <= 16384));
                CHECK(status ||
                      (part.orientation >= 1 && part.orientation <= 8 && part.width * part.height <= 100000000));
            }
        }
        free(b.data);
        count++;
    }
    fclose(f);
    check_name = "headers";
    CHECK_EQ(count, 33);
}

/* False headers: n bytes written at `at` after `mark`, and the expected result. */
static const struct lie {
    const char *name, *file, *mark;
    int at, n;
    const char *bytes;
    int status;
} lies[] = {
    {"png, a bomb", "scene.png", "IHDR", 4, 8, "\0\0\xff\xff\0\0\xff\xff", ERR_SIZE},
    {"png, 16,384 wide", "scene.png", "IHDR", 4, 4, "\0\0\x40\0", OK},
    {"png, 16,385 wide", "scene.png", "IHDR", 4, 4, "\0\0\x40\1", ERR_SIZE},
    {"png, more than 100 million", "scene.png", "IHDR", 4, 8, "\0\0\x40\0\0\0\x18\0", ERR_SIZE},
    {"png, nearly 100 million", "scene.png", "IHDR", 4, 8, "\0\0\x40\0\0\0\x17\xd0", OK},
    {"png, 2^31 wide", "scene.png", "IHDR", 4, 4, "\x80\0\0\0", ERR_DECODE},
    {"png, 0 high", "scene.png", "IHDR", 8, 4, "\0\0\0\0", ERR_DECODE},
    {"png, depth 3", "scene.png", "IHDR", 12, 1, "\3", ERR_DECODE},
    {"png, depth 200", "scene.png", "IHDR", 12, 1, "\310", ERR_DECODE},
    {"png, colour of depth 4", "scene.png", "IHDR", 12, 1, "\4", ERR_DECODE},
    {"png, colour 5", "scene.png", "IHDR", 13, 1, "\5", ERR_DECODE},
    {"png, interlacing 2", "scene.png", "IHDR", 16, 1, "\2", ERR_DECODE},
    {"png, a long first chunk", "scene.png", "\x1a\n", 2, 4, "\0\0\1\0", ERR_DECODE},
    {"png, a chunk without an end", "exif8.png", "IHDR", 21, 4, "\xff\xff\xff\xff", ERR_DECODE},
    {"png, EXIF of nothing", "exif8.png", "eXIf", 4, 4, "XXXX", OK},
    {"jpeg, 65,500", "plain.jpg", "\xff\xc0", 5, 4, "\xff\xdc\xff\xdc", ERR_SIZE},
    {"jpeg, 0 high", "plain.jpg", "\xff\xc0", 5, 2, "\0\0", ERR_DECODE},
    {"jpeg, 0 wide", "plain.jpg", "\xff\xc0", 7, 2, "\0\0", ERR_DECODE},
    {"jpeg, a frame of two bytes", "plain.jpg", "\xff\xc0", 2, 2, "\0\4", ERR_DECODE},
    {"jpeg, a segment of one byte", "plain.jpg", "\xff\xdb", 2, 2, "\0\1", ERR_DECODE},
    {"jpeg, a segment without an end", "plain.jpg", "\xff\xdb", 2, 2, "\xff\xff", ERR_DECODE},
    {"jpeg, no marker", "plain.jpg", "\xff\xdb", 0, 1, "\0", ERR_DECODE},
    {"jpeg, an end at once", "plain.jpg", "\xff\xdb", 0, 2, "\xff\xd9", ERR_DECODE},
    {"jpeg, a scan without a frame", "plain.jpg", "\xff\xdb", 0, 2, "\xff\xda", ERR_DECODE},
    {"jpeg, two frames", "plain.jpg", "\xff\xdb", 0, 2, "\xff\xc1", ERR_DECODE},
    {"jpeg, orientation 9", "exif6.jpg", "Exif", 25, 1, "\x09", OK},
    {"jpeg, EXIF of a byte order that is none", "exif6.jpg", "Exif", 6, 2, "IM", OK},
    {"jpeg, EXIF that points nowhere", "exif6.jpg", "Exif", 10, 4, "\xff\xff\xff\x7f", OK},
    {"jpeg, an orientation of another type", "exif6.jpg", "Exif", 19, 1, "\4", OK},
    {"jpeg, EXIF with 65,535 entries", "exif1.jpg", "Exif", 14, 2, "\xff\xff", OK},
    {"webp, 16,383", "lossy.webp", "\x9d\x01\x2a", 3, 4, "\xff\x3f\xff\x3f", ERR_SIZE},
    {"webp, 0 wide", "lossy.webp", "\x9d\x01\x2a", 3, 2, "\0\0", ERR_DECODE},
    {"webp, no key frame", "lossy.webp", "VP8 ", 8, 1, "\1", ERR_DECODE},
    {"webp, another start", "lossy.webp", "\x9d\x01\x2a", 0, 1, "\x9e", ERR_DECODE},
    {"webp, another chunk first", "lossy.webp", "VP8 ", 0, 4, "VP9 ", ERR_DECODE},
    {"webp lossless, 16,384", "lossless.webp", "VP8L", 9, 4, "\xff\xff\xff\x0f", ERR_SIZE},
    {"webp lossless, version 1", "lossless.webp", "VP8L", 12, 1, "\x20", ERR_DECODE},
    {"webp lossless, another sign", "lossless.webp", "VP8L", 8, 1, "\x2e", ERR_DECODE},
    {"webp, a canvas of 2^24", "animated.webp", "VP8X", 12, 6, "\xff\xff\xff\xff\xff\xff", ERR_SIZE},
    {"webp, EXIF behind the end", "exif6.webp", "EXIF", 4, 4, "\xff\xff\xff\xff", ERR_DECODE},
    {"webp, EXIF that is not there", "exif6.webp", "EXIF", 0, 4, "EXIT", OK},
    {"webp, not in RIFF", "exif6.webp", "RIFF", 0, 4, "RIFX", ERR_DECODE},
    {"gif, 65,535", "plain.gif", "GIF8", 6, 4, "\xff\xff\xff\xff", ERR_SIZE},
    {"gif, 0 wide, as its frame", "plain.gif", "GIF8", 6, 2, "\0\0", OK},
    {"gif, an unknown block", "plain.gif", "GIF8", 61, 1, "\x2d", ERR_DECODE},
    {"gif, a frame of 65,535", "plain.gif", "GIF8", 66, 2, "\xff\xff", ERR_SIZE},
    {"bmp, 2^31 - 1 wide", "plain.bmp", "BM", 18, 4, "\xff\xff\xff\x7f", ERR_SIZE},
    {"bmp, negative width", "plain.bmp", "BM", 18, 4, "\xff\xff\xff\xff", ERR_DECODE},
    {"bmp, from top to bottom", "plain.bmp", "BM", 22, 4, "\xf0\xff\xff\xff", OK},
    {"bmp, -2^31 high", "plain.bmp", "BM", 22, 4, "\0\0\0\x80", ERR_SIZE},
    {"bmp, 0 high", "plain.bmp", "BM", 22, 4, "\0\0\0\0", ERR_DECODE},
    {"bmp, 7 bits", "plain.bmp", "BM", 28, 2, "\7\0", ERR_DECODE},
    {"bmp, a header of 13 bytes", "plain.bmp", "BM", 14, 4, "\x0d\0\0\0", ERR_DECODE},
    {"bmp, a header without an end", "plain.bmp", "BM", 14, 4, "\xff\xff\xff\xff", ERR_DECODE},
    {"avif, 65,536", "plain.avif", "ispe", 8, 8, "\0\1\0\0\0\1\0\0", ERR_SIZE},
    {"avif, 0 wide", "plain.avif", "ispe", 8, 4, "\0\0\0\0", ERR_DECODE},
    {"avif, no size", "plain.avif", "ispe", 0, 4, "ispx", ERR_DECODE},
    {"avif, another item", "plain.avif", "pitm", 8, 2, "\0\2", ERR_DECODE},
    {"avif, no brand", "plain.avif", "ftyp", 4, 4, "heic", OK}, /* the list of compatible brands still has it */
    {"avif, a box without an end", "plain.avif", "iprp", -4, 4, "\xff\xff\xff\xff", ERR_DECODE},
    {"avif, a box of 7 bytes", "plain.avif", "ipco", -4, 4, "\0\0\0\7", ERR_DECODE},
    {"avif, many associations", "plain.avif", "ipma", 8, 4, "\xff\xff\xff\xff", OK},
};

static void lying_headers(void)
{
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        const struct lie *l = lies + i;
        struct buffer b = image(l->file);
        struct image_header h;
        size_t n = strlen(l->mark), at = 0;
        check_name = l->name;
        while (n && at + n < b.size && memcmp(b.data + at, l->mark, n)) at++;
        CHECK(at + n < b.size);
        memcpy(b.data + at + l->at, l->bytes, (size_t)l->n);
        CHECK_EQ(header_of(b.data, b.size, &h), l->status);
        free(b.data);
    }
    check_name = "lying_headers";
}

static void no_images(void)
{
    static const char *const texts[] = {"",
                                        "P6 1 1 255 abc",
                                        "<svg xmlns=\"http://www.w3.org/2000/svg\"/>",
                                        "<?xml version=\"1.0\"?><svg/>",
                                        "%PDF-1.7",
                                        "II*\0\10\0\0\0",
                                        "GIF88a",
                                        "\x89PNG\r\n",
                                        "RIFF\1\0\0\0WAVE",
                                        "BM",
                                        "\xff\xd8",
                                        "\xff\xd8\xff"};
    struct image_header h;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        CHECK_EQ(header_of((const uint8_t *)texts[i], strlen(texts[i]), &h), ERR_DECODE);
    struct buffer b = image("plain.avif"); /* a HEIC file: the same boxes, other brands */
    for (size_t i = 8; i + 4 < 60; i++)
        if (!memcmp(b.data + i, "avi", 3)) memcpy(b.data + i, "heic", 4);
    CHECK_EQ(header_of(b.data, b.size, &h), ERR_DECODE);
    free(b.data);
}

static const struct check tests[] = {
    {"hashes", hashes},
    {"golden_sizes", golden_sizes},
    {"odd_sizes", odd_sizes},
    {"golden_samples", golden_samples},
    {"labels", labels},
    {"over_white", over_white},
    {"golden_images", golden_images},
    {"noise_resized", noise_resized},
    {"resized_extremes", resized_extremes},
    {"golden_patches", golden_patches},
    {"patches_in_order", patches_in_order},
    {"identities", identities},
    {"headers", headers},
    {"lying_headers", lying_headers},
    {"no_images", no_images},
};

int main(int argc, char **argv)
{
    return check_run(argc, argv, tests, sizeof tests / sizeof *tests);
}
