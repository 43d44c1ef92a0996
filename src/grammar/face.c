/* SPDX-License-Identifier: MIT
 *
 * The interface of dist/grammar.wasm for js/engine/grammar.js and js/worker/side-compile.js. The module has a memory of
 * its own and imports one function, which decides whether work continues. The instance of a side worker compiles and
 * saves; the instance of the engine loads, and has the vocabulary that matching needs. Grammars are handles, each with
 * a share of the memory. States are numbers that stay valid as long as the grammar.
 */
#include "grammar/compile.h"
#include "grammar/saved.h"
#include "grammar/vocabulary.h"

#define EXPORT(name) __attribute__((export_name(name), used))

/* Called every millisecond or two while a grammar is compiled; a result other than 0 ends the compilation. */
__attribute__((import_module("env"), import_name("pace"))) int face_pace(void);

enum {
    HANDLES = 64,
    SLICE = 1 << 14,   /* steps after which computing a mask or a step pauses: a millisecond or two */
    FORCED_MOST = 80   /* bytes: more than the drafts of a step have */
};
static const uint64_t SHARE = 48 << 20; /* bytes that one grammar may use */

static uint32_t most = UINT32_MAX;

static struct mem mem; /* for the vocabulary and for input */
static void *room;
static struct vocabulary *vocabulary;
static struct error last;

static struct {
    struct mem mem;
    struct grammar *g;
} grammars[HANDLES];

/* Emscripten calls this when memory grows, to inform its JavaScript. This module has no such JavaScript. */
void emscripten_notify_memory_growth(size_t index);
void emscripten_notify_memory_growth(size_t index) { (void)index; }

/* malloc calls this to get more memory (the Makefile links it so). It refuses to grow beyond `most`. */
int __real_emscripten_resize_heap(size_t size);
int __wrap_emscripten_resize_heap(size_t size);
int __wrap_emscripten_resize_heap(size_t size) { return size <= most && __real_emscripten_resize_heap(size); }

/* Sets the most bytes that the module's memory may grow to. */
EXPORT("grammar_limit") void face_limit(uint32_t bytes) { most = bytes; }

static struct grammar *at(int handle) { return handle >= 1 && handle <= HANDLES ? grammars[handle - 1].g : NULL; }

static int no_handle(void) { return fail(&last, ERR_PARAM, "handle", 0, "There is no such grammar."); }

/* Status of a call without a result: OK if it has paused, the grammar's limit, or that the token cannot follow. */
static int why(const struct grammar *g)
{
    last = *grammar_error(g);
    if (grammar_paused(g)) return OK;
    return last.code ? last.code : fail(&last, ERR_PARAM, "token", 0, "This token cannot follow here.");
}

/* Scratch memory for input, until the next call of this function. */
EXPORT("grammar_room") void *face_room(uint32_t size)
{
    mem_free(&mem, room);
    return room = mem_alloc_raw(&mem, size);
}

EXPORT("grammar_vocabulary")
int face_vocabulary(uint32_t n, const uint8_t *bytes, const uint32_t *sizes, const uint8_t *kinds)
{
    if (vocabulary) return fail(&last, ERR_BUSY, "vocabulary", 0, "There is a vocabulary already.");
    int status = vocabulary_begin(&mem, &(struct vocabulary_source){bytes, sizes, kinds, n}, &vocabulary, &last);
    face_room(0);
    return status;
}

/* Does a part of the vocabulary's preparation. Returns 1 if more is left. */
EXPORT("grammar_learn") int face_learn(void)
{
    int status = vocabulary ? vocabulary_go_on(vocabulary, &last)
                            : fail(&last, ERR_BUSY, "vocabulary", 0, "There is no vocabulary yet.");
    if (status >= 0 || !vocabulary) return status;
    vocabulary_free(vocabulary);
    vocabulary = NULL;
    return status;
}

/* Index of a free place for a grammar, or a status. */
static int free_place(void)
{
    int i = 0;
    while (i < HANDLES && grammars[i].g) i++;
    if (i == HANDLES) return fail(&last, ERR_SCHEMA, "limit", 0, "There are %d grammars in use; release one.", HANDLES);
    grammars[i].mem = (struct mem){.limit = SHARE};
    return i;
}

/* Returns a handle from 1 on, or a status. */
EXPORT("grammar_compile") int face_compile(int kind, uint8_t *text, uint32_t size, uint32_t flags)
{
    int i = free_place();
    if (i < 0) return i;
    grammar_pace(face_pace);
    int status = grammar_compile(&grammars[i].mem, kind, text, size, flags, &grammars[i].g, &last);
    return status ? status : i + 1;
}

EXPORT("grammar_saved_size") uint32_t face_saved_size(int handle)
{
    return at(handle) ? (uint32_t)grammar_saved_size(at(handle)) : 0;
}

/* Writes a grammar that was just compiled to `out`. */
EXPORT("grammar_save") void face_save(int handle, uint8_t *out)
{
    if (at(handle)) grammar_save(at(handle), out);
}

/* Returns a handle from 1 on, or a status. Frees the input. */
EXPORT("grammar_load") int face_load(const uint8_t *block, uint32_t size)
{
    int i = free_place();
    if (i < 0) return i;
    int status = grammar_load(&grammars[i].mem, (struct bytes){block, size}, &grammars[i].g, &last);
    face_room(0);
    if (status) return status;
    grammar_slice(grammars[i].g, SLICE);
    return i + 1;
}

EXPORT("grammar_release") void face_release(int handle)
{
    if (!at(handle)) return;
    grammar_free(at(handle));
    grammars[handle - 1].g = NULL;
}

EXPORT("grammar_start") int face_start(int handle) { return at(handle) ? (int)grammar_start(at(handle)) : no_handle(); }

/* Returns a state, 0 if it has paused, or a status. */
EXPORT("grammar_take") int face_take(int handle, uint32_t state, uint32_t id)
{
    if (!at(handle)) return no_handle();
    gr_state next = grammar_take(at(handle), vocabulary, state, id);
    return next != GR_DEAD ? (int)next : why(at(handle));
}

/* Returns NULL on errors and pauses; grammar_error_status() is OK if it has paused. */
EXPORT("grammar_mask") const uint32_t *face_mask(int handle, uint32_t state)
{
    const uint32_t *mask = at(handle) ? grammar_mask(at(handle), vocabulary, state) : NULL;
    if (!mask && at(handle)) why(at(handle));
    return mask || at(handle) ? mask : (no_handle(), NULL);
}

EXPORT("grammar_accepts") int face_accepts(int handle, uint32_t state)
{
    return at(handle) && grammar_accepts(at(handle), state);
}

/* The text that must follow (vocabulary.h): a byte with its size, then its bytes; valid until the next call. */
EXPORT("grammar_forced") const uint8_t *face_forced(int handle, uint32_t state)
{
    static uint8_t text[1 + FORCED_MOST];
    text[0] = at(handle) ? (uint8_t)grammar_forced(at(handle), state, text + 1, FORCED_MOST) : 0;
    return text;
}

EXPORT("grammar_worn") int face_worn(int handle) { return at(handle) && grammar_worn(at(handle)); }

/* Ignored parts of the schema, one per line (grammar.h); valid until the release. */
EXPORT("grammar_notes") const char *face_notes(int handle) { return at(handle) ? grammar_notes(at(handle)) : ""; }

EXPORT("grammar_error_status") int face_error_status(void) { return last.code; }
EXPORT("grammar_error_rule") const char *face_error_rule(void) { return last.rule; }
EXPORT("grammar_error_message") const char *face_error_message(void) { return last.message; }
EXPORT("grammar_error_offset") uint32_t face_error_offset(void) { return (uint32_t)last.offset; }
