/* SPDX-License-Identifier: MIT
 *
 * What every file of the engine shares: status codes, the error record, byte views.
 *
 * A function that reads untrusted bytes returns a status (0 or a negative code) and fills a
 * `struct error`; a function that computes returns void. Rules are short fixed words
 * ("tensor-range"), so that tests can ask for the exact one; messages are for people.
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
    ERR_MEM_KV = -7,       /* mem/kv: no free page for another position */
    ERR_PARAM = -8,        /* use/param: an argument is out of range */
    ERR_CONTEXT = -9,      /* use/context: more tokens than the context holds */
    ERR_EMPTY = -10,       /* use/empty: nothing to do */
    ERR_BUSY = -11,        /* use/busy: called in the wrong state */
    ERR_DECODE = -12,      /* image/decode: no image of a kind that can be read, or a broken one */
    ERR_SIZE = -13,        /* image/size: an image too large, too small or too narrow; too many of them */
    ERR_SCHEMA = -14,      /* use/schema: what a reply must look like cannot be honoured, or contradicts itself */
    ERR_LOST = -15         /* gpu/lost: the device that computed is gone, and what it held with it */
};

enum { ERROR_MESSAGE = 201 }; /* bytes, the final NUL included */

struct error {
    int code;                    /* enum status */
    char rule[32];               /* fixed word naming the broken rule, "" when none */
    uint64_t offset;             /* byte in the file, 0 when it has no place */
    char message[ERROR_MESSAGE]; /* one sentence: what, where, what to do */
};

/* "model/format" for ERR_FORMAT and so on; "engine/trap" for a number that is no code. */
const char *status_name(int status);

/* Fills *err and returns `code`. `err` may be NULL. The message is cut at 200 bytes, at a character. */
int fail(struct error *err, int code, const char *rule, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* A view of bytes somebody else owns. */
struct bytes {
    const uint8_t *data;
    size_t size;
};

/* In WebAssembly a structure is handed on in memory; of what is compared so often, its two numbers are. */
bool text_equal(const uint8_t *data, size_t size, const char *text);
static inline bool bytes_equal(struct bytes a, const char *text) { return text_equal(a.data, a.size, text); }
int bytes_compare(struct bytes a, struct bytes b); /* as memcmp; a prefix comes first */

/* Writes at most 64 bytes of `text` into out, what is no text as \xNN and quotes as \", so that strings of a
 * file can stand in a message. Returns out. */
enum { QUOTED = 64 * 4 + 4 };
const char *quoted(struct bytes text, char out[QUOTED]);

/* Milliseconds of a clock that only goes forward. */
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

#endif
