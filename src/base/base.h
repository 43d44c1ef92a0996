/* SPDX-License-Identifier: MIT
 *
 * Types that every file of the engine shares: status codes, the error record, byte views.
 *
 * A function that reads untrusted bytes returns a status (0 or a negative code) and fills a `struct error`; a function
 * that computes returns void. Rules are short fixed words ("tensor-range"), so that tests can compare them; messages
 * are for people.
 */
#ifndef QUERN_BASE_H
#define QUERN_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Status codes. Their names for users ("model/format") come from status_name(). */
enum status {
    OK = 0,
    ERR_FORMAT = -1,       /* model/format: not a valid file of its kind */
    ERR_UNSUPPORTED = -2,  /* model/unsupported: valid, but not something this engine runs */
    ERR_INCONSISTENT = -3, /* model/inconsistent: metadata and tensors disagree */
    ERR_NONFINITE = -4,    /* model/nonfinite: the model produced NaN or infinity */
    ERR_MEM_PLAN = -5,     /* mem/plan: needs more memory than is allowed */
    ERR_MEM_LOAD = -6,     /* mem/load: an allocation failed while loading */
    ERR_MEM_KV = -7,       /* mem/kv: no free page for one more position */
    ERR_PARAM = -8,        /* use/param: an argument is out of range */
    ERR_CONTEXT = -9,      /* use/context: more tokens than the context holds */
    ERR_EMPTY = -10,       /* use/empty: nothing to do */
    ERR_BUSY = -11,        /* use/busy: called in the wrong state */
    ERR_DECODE = -12,      /* image/decode: not an image of a supported format, or a damaged one */
    ERR_SIZE = -13,        /* image/size: an image is too large, too small or too narrow, or there are too many */
    ERR_SCHEMA = -14,      /* use/schema: the required form of a reply is unsupported or contradicts itself */
    ERR_LOST = -15         /* gpu/lost: the device that computed is gone, with all data that it held */
};

enum { ERROR_MESSAGE = 201 }; /* bytes, the final NUL included */

struct error {
    int code;                    /* enum status */
    char rule[32];               /* fixed word that names the broken rule, "" when there is none */
    uint64_t offset;             /* byte position in the file, 0 when unknown */
    char message[ERROR_MESSAGE]; /* one sentence: the fault, the place, the remedy */
};

/* Returns "model/format" for ERR_FORMAT and so on; "engine/trap" for a number that is not a status code. */
const char *status_name(int status);

/* Fills *err and returns `code`. `err` may be NULL. The message is cut at 200 bytes, between characters. */
int fail(struct error *err, int code, const char *rule, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* A view of bytes that another structure owns. */
struct bytes {
    const uint8_t *data;
    size_t size;
};

/* text_equal() takes two numbers instead of a structure, because WebAssembly passes structures through memory, which is
 * slow for so frequent a call. */
bool text_equal(const uint8_t *data, size_t size, const char *text);
static inline bool bytes_equal(struct bytes a, const char *text) { return text_equal(a.data, a.size, text); }
int bytes_compare(struct bytes a, struct bytes b); /* ordered as by memcmp; a prefix comes first */

/* Writes at most 64 bytes of `text` into out, so that strings of a file can stand in a message. Bytes that are not
 * printable text become \xNN, and quotes become \". Returns out. */
enum { QUOTED = 64 * 4 + 4 };
const char *quoted(struct bytes text, char out[QUOTED]);

/* Milliseconds of a monotonic clock. */
double now_ms(void);

/* Unaligned little-endian loads; every supported machine is little-endian. */
static inline uint16_t load_u16(const void *p) { uint16_t v; __builtin_memcpy(&v, p, sizeof v); return v; }
static inline uint32_t load_u32(const void *p) { uint32_t v; __builtin_memcpy(&v, p, sizeof v); return v; }
static inline uint64_t load_u64(const void *p) { uint64_t v; __builtin_memcpy(&v, p, sizeof v); return v; }
static inline float load_f32(const void *p) { float v; __builtin_memcpy(&v, p, sizeof v); return v; }
static inline float f32_from_bits(uint32_t bits) { float v; __builtin_memcpy(&v, &bits, sizeof v); return v; }
static inline uint32_t bits_from_f32(float v) { uint32_t bits; __builtin_memcpy(&bits, &v, sizeof bits); return bits; }

static inline int min_int(int a, int b) { return a < b ? a : b; }
static inline int max_int(int a, int b) { return a > b ? a : b; }

/* Before a loop that compilers shall vectorize, also in a file that is compiled without that. */
#ifdef __clang__
#define VECTORIZE _Pragma("clang loop vectorize(enable) unroll(disable)")
#else
#define VECTORIZE
#endif

#endif
